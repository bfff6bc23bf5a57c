"""A name can never lead outside the repository, nor look like another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.names import check, check_path, slug
from tenuto.errors import BadInput

HOSTILE = [
    "", ".", "..", "../x", "/etc", "a/b", "a\\b", "C:", "a:b", "a\0b", "-rf", "x" * 256, "ü" * 128, "a\u202eb", "a\u2066b", "a\nb",
    "a\x1b[31m", "\ud800", "con", "NUL.txt", "end.", "end ", "a\u200bb", "\ufeffa", "a\u0085b",
]  # fmt: skip


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
        ("Add dark mode!", "add-dark-mode"), ("  User  Auth ", "user-auth"), ("../../etc/passwd", "etc-passwd"),
        ("Größe ändern", "größe-ändern"), ("--force", "force"), ("CON", "con-run"), ("日本語 タスク", "日本語-タスク"),
    ],
)  # fmt: skip
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
