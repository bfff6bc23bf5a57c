"""How single values of a definition are read: what counts, what is refused, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline.values import LARGEST, View, _distance, did_you_mean, kind_of


def read(how: str, value: object, *terms: Any, **more: Any) -> tuple[Any, list[str]]:
    """What it is read as, and the codes of what is wrong."""
    problems: list[Any] = []
    found = getattr(View(value, ("here",), problems), how)("it", *terms, **more)
    assert all(one["path"][0] == "here" for one in problems)
    return found, [one["code"] for one in problems]


WRONG, RANGE = ["wrong-type"], ["out-of-range"]


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, "d", []),
        ("", "", []),
        ("a", "a", []),
        (1, "d", WRONG),
        (True, "d", WRONG),
        (["a"], "d", WRONG),
        ({}, "d", WRONG),
    ],
)
def test_text(value: object, found: str, problems: list[str]) -> None:
    assert read("text", value, "d") == (found, problems)


def test_a_number_where_text_belongs_wants_quotes() -> None:
    for value, hint in ((1.2, "write it in quotes"), (3, "write it in quotes"), (["a"], "")):
        problems: list[Any] = []
        View(value, (), problems).text("it")
        assert problems[0]["hint"] == hint


@pytest.mark.parametrize(
    ("value", "found", "problems"), [(None, "a", []), ("b", "b", []), ("c", "a", ["unknown-value"]), (1, "a", WRONG)]
)
def test_one_of_a_few_words(value: object, found: str, problems: list[str]) -> None:
    assert read("choice", value, ("a", "b"), "a") == (found, problems)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [(None, True, []), (False, False, []), (True, True, []), (0, True, WRONG), ("no", True, WRONG)],
)
def test_true_or_false(value: object, found: bool, problems: list[str]) -> None:
    assert read("flag", value, True) == (found, problems)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, 7, []),
        (2, 2, []),
        (9, 9, []),
        (1, 7, RANGE),
        (10, 7, RANGE),
        (True, 7, WRONG),
        (2.0, 7, WRONG),
        ("3", 7, WRONG),
    ],
)
def test_a_whole_number_between_two(value: object, found: int, problems: list[str]) -> None:
    assert read("whole", value, 7, least=2, most=9) == (found, problems) == read("number", value, 7, least=2, most=9)


def test_a_whole_number_is_not_negative_and_not_endless() -> None:
    assert LARGEST == 10**15
    for how in ("whole", "number"):
        assert read(how, 0, 7) == (0, []) and read(how, LARGEST, 7) == (LARGEST, [])
        assert read(how, -1, 7) == (7, RANGE) == read(how, LARGEST + 1, 7)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, 7, []),
        (90, 90, []),
        (1, 1, []),
        ("90s", 90, []),
        ("2m", 120, []),
        ("3h", 10800, []),
        ("1d", 86400, []),
        ("123456789s", 123456789, []),
        (0, 7, RANGE),
        (1.5, 7, WRONG),
        ("0m", 7, WRONG),
        ("m", 7, WRONG),
        ("", 7, WRONG),
        ("5", 7, WRONG),
        ("5x", 7, WRONG),
        ("-5m", 7, WRONG),
        ("1.5h", 7, WRONG),
        ("٣m", 7, WRONG),
        ("²m", 7, WRONG),
        ("1234567890s", 7, WRONG),
    ],
)
def test_a_time(value: object, found: int, problems: list[str]) -> None:
    assert read("seconds", value, 7) == (found, problems)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, 7, []),
        (12, 12_000_000, []),
        (12.5, 12_500_000, []),
        ("12.50", 12_500_000, []),
        ("0.000001", 1, []),
        ("5.", 5_000_000, []),
        ("999999999", 999_999_999_000_000, []),
        ("0.0000001", 7, WRONG),
        ("1234567890", 7, WRONG),
        (".5", 7, WRONG),
        ("", 7, WRONG),
        ("-1", 7, WRONG),
        (True, 7, WRONG),
        (1e-7, 7, WRONG),
        ("٣", 7, WRONG),
        ("1.2.3", 7, WRONG),
        ("a lot", 7, WRONG),
        ([1], 7, WRONG),
    ],
)
def test_money(value: object, found: int, problems: list[str]) -> None:
    assert read("dollars", value, 7) == (found, problems)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, [], []),
        ("a", ["a"], []),
        (["a", "b"], ["a", "b"], []),
        ([], [], []),
        (["a", "a"], ["a"], ["duplicate"]),
        (["a", "x"], ["a"], ["unknown-value"]),
        ("", [], ["empty"]),
        (["", None], [], ["empty", "empty"]),
        ([1, "a"], ["a"], WRONG),
        ({"a": 1}, [], WRONG),
    ],
)
def test_a_list_of_words(value: object, found: list[str], problems: list[str]) -> None:
    assert read("words", value, ("a", "b")) == (found, problems)


def test_words_are_any_where_none_are_listed() -> None:
    assert read("words", ["x", "y"]) == (["x", "y"], [])


def test_each_problem_has_its_place() -> None:
    problems: list[Any] = []
    top = View({"a": ["x", 1], 3: "x", "odd": 1, "none": None}, ("top",), problems)
    top.get("a").words("it")
    assert top.is_mapping("this", ("a", "none"))
    assert [(one["path"], one["code"]) for one in problems] == [
        (["top", "a", 1], "wrong-type"),
        (["top"], "wrong-type"),
        (["top", "odd"], "unknown-key"),
    ]
    assert [name for name, _ in top.fields()] == ["a", "odd", "none"] and top.get("odd").fields() == []
    assert top.has("a") and not top.has("none") and not top.has("absent") and not top.get("a").has("x")
    assert top.get("a").get("x").value is None
    assert not View([], (), problems).is_mapping("this", ("a",)) and problems[-1]["hint"] == "known keys: a"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (True, "true/false"),
        (3, "the number 3"),
        (1.5, "the number 1.5"),
        ("a", "the text 'a'"),
        ("a" * 41, f"the text '{'a' * 40}'"),
        ([], "a list"),
        ({}, "a mapping"),
        (b"a", "something else"),
    ],
)
def test_what_a_value_is_called(value: object, words: str) -> None:
    assert kind_of(value) == words


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("desing", ["design", "plan"], "did you mean 'design'?"),
        ("DESIGN", ["Design"], "did you mean 'Design'?"),
        ("z", ["a"], "did you mean 'a'?"),
        ("zz", ["b", "aa"], "known: aa, b"),
        ("spec", ["spex", "spea"], "did you mean 'spea'?"),
        ("designs", ["desixyz", "plan"], "known: desixyz, plan"),
        ("design", ["desixy"], "did you mean 'desixy'?"),
        ("x", [], ""),
        ("", ["a"], "did you mean 'a'?"),
    ],
)
def test_the_closest_word_is_named_where_it_is_close(word: str, known: list[str], hint: str) -> None:
    assert did_you_mean(word, known) == hint


@pytest.mark.parametrize(
    ("a", "b", "edits"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("abc", "ab", 1),
        ("abc", "xabc", 1),
        ("ab", "ba", 1),
        ("abcd", "badc", 2),
        ("ca", "abc", 3),
        ("kitten", "sitting", 3),
        ("xab", "yba", 2),
        ("abx", "bay", 2),
        ("a" * 64 + "b", "a" * 64 + "c", 0),
        ("a" * 63 + "b", "a" * 63 + "c", 1),
        ("aab", "aba", 1),
        ("saturday", "sunday", 3),
        ("aaa", "a", 2),
    ],
)
def test_how_many_edits_lie_between_two_words(a: str, b: str, edits: int) -> None:
    assert _distance(a, b) == edits == _distance(b, a)
