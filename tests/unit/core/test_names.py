"""A name can never lead outside the repository, nor look like another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.errors import BadInput
from tenuto.names import check, check_path, slug

HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "/etc",
    "a/b",
    "a\\b",
    "C:",
    "a:b",
    "a\0b",
    "-rf",
    "x" * 256,
    "ü" * 128,
    "a\u202eb",
    "a\u2066b",
    "a\nb",
    "a\x1b[31m",
    "\ud800",
    "con",
    "NUL.txt",
    "end.",
    "end ",
    "a\u200bb",
    "\ufeffa",
    "a\u0085b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_could_be_misread_is_refused(name: str) -> None:
    with pytest.raises(BadInput) as refusal:
        check(name)
    assert refusal.value.code == "bad-name" and refusal.value.hint


@pytest.mark.parametrize("path", ["/a", "a//b", "../a", "a/..", "a/./b", "", "a/"])
def test_a_path_stays_below_the_repository(path: str) -> None:
    with pytest.raises(BadInput):
        check_path(path)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Add dark mode!", "add-dark-mode"),
        ("  User  Auth ", "user-auth"),
        ("../../etc/passwd", "etc-passwd"),
        ("Größe ändern", "größe-ändern"),
        ("--force", "force"),
        ("CON", "con-run"),
        ("日本語 タスク", "日本語-タスク"),
    ],
)
def test_a_task_name_becomes_lowercase_words_with_hyphens(name: str, made: str) -> None:
    assert slug(name) == made


@given(st.text())
def test_every_slug_is_a_good_name_and_its_own_slug(name: str) -> None:
    try:
        made = slug(name)
    except BadInput:
        assert not any(c.isalnum() for c in name)
        return
    assert check(made) == made
    assert slug(made) == made


def test_two_long_names_that_begin_alike_stay_two() -> None:
    assert slug("a" * 300 + "1") != slug("a" * 300 + "2")


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "a b",
        "A-b_c.d",
        "_x",
        "a~",
        "a\u00a0b",
        "Größe",
        "日本語",
        "x" * 200,
        "ü" * 100,
        "concert",
        "console.txt",
        ".hidden",
        "a\ue000b",
    ],
)
def test_a_name_that_nobody_can_misread_is_used_as_it_is(name: str) -> None:
    assert check(name) == name and check_path(f"{name}/{name}") == f"{name}/{name}"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "names no file"),
        (".", "names no file"),
        ("..", "names no file"),
        ("x" * 201, "longer than 200"),
        ("a\x1fb", "U+001F"),
        ("a\x7fb", "U+007F"),
        ("a\x9fb", "U+009F"),
        ("a\ud800b", "U+D800"),
        ("a\udfffb", "U+DFFF"),
        ("a/b", "U+002F"),
        ("a\u2069b", "U+2069"),
        ("a\u200db", "U+200D"),
        ("lpt9.txt", "reserve"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_a_name(name: str, why: str) -> None:
    with pytest.raises(BadInput) as refusal:
        check(name)
    assert why in refusal.value.message


def test_an_absolute_path_is_called_so() -> None:
    with pytest.raises(BadInput, match="it is absolute"):
        check_path("/a")


def test_letters_that_are_written_in_two_ways_become_one() -> None:
    assert slug("ﬁne ＡＢ") == "fine-ab" and slug("a\ud800b") == "ab"


def test_a_long_name_is_cut_and_marked() -> None:
    assert slug("a" * 200) == "a" * 200
    made = slug("a" * 201)
    assert (
        len(made) == 200
        and made.startswith("a" * 191 + "-")
        and slug("a" * 190 + " " + "b" * 50).startswith("a" * 190 + "-")
    )


def test_a_name_without_letters_is_none() -> None:
    with pytest.raises(BadInput, match="no letter or digit"):
        slug("!?")
