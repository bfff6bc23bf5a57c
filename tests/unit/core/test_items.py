"""Which items a text names, and which paths mean one file: the edges of core/items.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.items import directory, key_of, look_up, named_in, same_file


def items(*names: str, **titles: str) -> Any:
    return [{"id": name, "title": titles.get(name, "")} for name in names]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TASK-003", "3"),
        ("task", "task"),
        ("task-task-3", "3"),
        ("t-3", "3"),
        ("t-shirt", "t-shirt"),
        ("T3", "3"),
        ("t", "t"),
        ("taskforce", "taskforce"),
        ("tests", "tests"),
        ("task3", "3"),
        ("3.01", "3.1"),
        ("3.x", "3.x"),
        ("000", "0"),
        ("٣", "٣"),
        ("", ""),
        ("step-2-parser", "2-parser"),
        ("#07", "7"),
        ("03-parser.md", "3-parser"),
        (".5", ".5"),
        ("007b", "007b"),
    ],
)
def test_a_name_without_decoration(name: str, key: str) -> None:
    assert key_of(name) == key


TEN = items(*(str(number) for number in range(1, 11)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tasks 2 to 4", "234"),
        ("tasks 2 through 4", "234"),
        ("tasks 2-4", "234"),
        ("tasks 2..4", "234"),
        ("tasks 2–4", "234"),
        ("tasks 2 — 4", "234"),
        ("tasks 2 and 4", "24"),
        ("tasks 2, 4 and 6 to 8", "24678"),
        ("tasks 4 to 2", "24"),
        ("tasks 3 to 3", "3"),
        ("items 2 or 4", "24"),
        ("ids: 2, 4", "24"),
        ("task [2, 4]", "24"),
        ("task (2)", "2"),
        ("#3 is wrong", "3"),
        ("3 is wrong", ""),
        ("2 to 4 files", ""),
        ("task 2 has 3 files", "2"),
        ("task 2 fails and 3 files too", "2"),
        ("task-5 fails", "5"),
        ("T5", "5"),
        ("tasks: 2 3", "23"),
        ("to 4", ""),
        ("task x to 4", ""),
        ("tasks — 2..4", "234"),
        ("task 2-2", "2"),
        ("see (#3)", "3"),
        ("#3 has 4 files", "3"),
        ("# - 2 files changed", ""),
    ],
)
def test_numbers_in_a_text(text: str, names: str) -> None:
    assert "".join(named_in(text, TEN)) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tasks 2-parser to 4", "24"),
        ("tasks 2 to 4-parser", "24"),
        ("tasks 2-parser..4", "2"),
        ("task 2-4-parser", ""),
        ("task 2, item — 4", "24"),
        ("tasks 1.5 to 3", "3"),
        ("tasks 1 to 2.5", "1"),
        ("tasks 1..2.5", ""),
        ("tasks 2 to ²", "2"),
        ("tasks ²-4", ""),
    ],
)
def test_a_range_has_a_whole_number_at_both_ends(text: str, names: str) -> None:
    """Whatever else stands there names itself, if anything: what lies between is nobody's guess."""
    assert "".join(named_in(text, TEN)) == names


def test_a_range_that_is_no_list_names_its_ends_only() -> None:
    many = items(*(str(number) for number in range(1, 1000)))
    assert len(named_in("tasks 1 to 501", many)) == 501 and named_in("tasks 1 to 502", many) == ["1", "502"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("the api-client is slow", ["api-client"]),
        ("a 2-phase commit", []),
        ("task parser fails", ["parser"]),
        ("tasks: parser, lexer", ["parser", "lexer"]),
        ("see v2 of it", ["v2"]),
        ("the parser", []),
        ("tasks: v2, parser, lexer, other", ["v2", "parser", "lexer"]),
        ("task ids: [parser, lexer]", ["parser", "lexer"]),
        ("tasks (parser, lexer)", ["parser", "lexer"]),
        ("tasks: parser, v2 lexer", ["parser", "v2", "lexer"]),
        ("tasks: parser and lexer", ["parser", "lexer"]),
        ("task parser or the lexer", ["parser"]),
    ],
)
def test_words_in_a_text(text: str, names: list[str]) -> None:
    assert sorted(named_in(text, items("api-client", "parser", "lexer", "v2", "2"))) == sorted(names)


def test_the_words_of_a_numbered_item_name_it_in_a_text() -> None:
    assert named_in("the api-client is slow", items("01-api-client", "02-parser")) == ["01-api-client"]
    assert named_in("the api-client is slow", items("01-api-client", "02-api-client")) == []


def test_a_number_that_a_number_follows_is_another_name() -> None:
    """`1-3b` may be a step of its own: never item 1 with a remark."""
    assert look_up(directory(items("1", "10")), "1-3b") == [] == look_up(directory(items("1", "10")), "1-3")


def test_one_item_is_found_once_and_an_empty_name_never() -> None:
    made = directory(items("3", "other", other="3"))
    assert look_up(made, "3") == ["3"] and look_up(made, "") == [] == look_up(made, "nobody")
    assert look_up(directory(items("03-parser", "03-parser")), "parser") == ["03-parser"]
    assert all("" not in table or table[""] == [] for table in made.values())


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("a.py", "a.py", True),
        ("src/a.py", "a.py", True),
        ("a.py", "src/a.py", True),
        ("a.py", "ba.py", False),
        ("", "a.py", False),
        ("a.py", "", False),
        ("", "", False),
        ("a.py:12", "a.py", True),
        ("a.py:1:5", "a.py", True),
        ("./a.py", "a.py", True),
        ("src\\a.py", "src/a.py", True),
        ("src/", "src/a.py", True),
        ("src/", "lib/src/a.py", True),
        ("src/", "mysrc/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a.js", False),
        ("src/*.py", "lib/a.py", False),
        ("a*b*c", "axbxc", True),
        ("a*b*c", "axxc", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("a*bc*cd", "abcd", False),
        ("a*bc*cd", "abccd", True),
        ("*.py", "a.py", True),
        ("*a*a", "a", False),
        ("*a*", "ba", True),
        ("a*a*", "a", False),
        ("*", "a.py", True),
        ("*", "", False),
        ("", "src/", False),
        ("*src*", "src/a.py", False),
        ("**/*src*/**", "src/a.py", True),
        ("*src*", "lib/a.py", False),
    ],
)
def test_two_paths_that_mean_one_file(first: str, second: str, same: bool) -> None:
    assert same_file(first, second) is same
