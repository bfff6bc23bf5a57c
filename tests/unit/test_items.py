"""How items are named, and what names point to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.items import directory, key_of, look_up, meant_by, named_in, same_file

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem


def item(name: str, title: str = "") -> PlannedItem:
    return {
        "id": name,
        "title": title,
        "files": [],
        "depends_on": [],
        "agent": None,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    }


@pytest.mark.parametrize(
    "written",
    ["03", "3", "003", "task-3", "Task 3", "TASK-003", "T3", "t-03", "#3", "`03`", "[03]", "task_3", "Task: 3"],
)
@pytest.mark.parametrize("known", ["03", "3", "TASK-003", "T3", "task-3", "03-parser"])
def test_prefix_and_leading_zeros_do_not_matter(written: str, known: str) -> None:
    """Plans, agents and people write one item in many ways."""
    assert look_up(directory([item("01"), item(known), item("13")]), written) == [known]


@pytest.mark.parametrize(
    "written", ["03-parser", "parser", "3-parser", "task-03-parser", "03-parser.md", "Write the parser"]
)
def test_an_item_is_found_by_number_words_or_title(written: str) -> None:
    """The number is enough, and so are the words."""
    assert look_up(directory([item("03-parser", "Write the parser"), item("04-lexer")]), written) == ["03-parser"]


def test_a_longer_name_finds_the_bare_number() -> None:
    """The plan's table says 03, its list says 03-parser."""
    assert look_up(directory([item("03"), item("04")]), "03-parser") == ["03"]


def test_the_same_number_with_other_words_is_another_item() -> None:
    """A plan may use a number twice; then the number alone fits both, and nobody guesses."""
    names = directory([item("03-parser"), item("03-lexer")])
    assert look_up(names, "03-parser") == ["03-parser"]
    assert look_up(names, "03-printer") == []
    assert look_up(names, "03") == ["03-parser", "03-lexer"]


@pytest.mark.parametrize("written", ["", "  ", "-", "31", "0", "phase 3", "1-3", "par"])
def test_what_fits_nothing_finds_nothing(written: str) -> None:
    """No part of a name is enough."""
    assert look_up(directory([item("03-parser"), item("1")]), written) == []


@given(
    st.integers(0, 9999),
    st.sampled_from(["{:d}", "{:03d}", "task-{:d}", "TASK-{:04d}", "T{:d}", "#{:d}", "{:02d}-parser"]),
)
def test_every_spelling_of_a_number_has_one_key(number: int, spelling: str) -> None:
    """Whatever the width."""
    assert key_of(spelling.format(number)).removesuffix("-parser") == str(number)


# ---- names in running text -------------------------------------------------------------------------

ITEMS = [item("01-api"), item("02-parser"), item("03-docs"), item("TASK-010"), item("a"), item("b")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("02-parser drops the last token", ["02-parser"]),
        ("Task 2 drops the last token", ["02-parser"]),
        ("tasks 1, 2 and 3 need work", ["01-api", "02-parser", "03-docs"]),
        ("tasks 01–03 need work", ["01-api", "02-parser", "03-docs"]),
        ("tasks 1 to 2 need work", ["01-api", "02-parser"]),
        ("tasks 01-03", ["01-api", "02-parser", "03-docs"]),
        ("see #2.", ["02-parser"]),
        ("`TASK-010` and task-010 are one", ["TASK-010"]),
        ("2 tasks failed verification — task IDs: a,b", ["a", "b"]),
        ("task ids: [a]", ["a"]),
        ("these tasks:\n- a\n- b\nare to be done again", ["a", "b"]),
        ("tasks: a is broken, b is not", ["a"]),
        ("[High] in `02-parser`: a leak", ["02-parser"]),
    ],
)
def test_a_text_names_items_by_id(text: str, names: list[str]) -> None:
    """In the items' order, each once."""
    assert named_in(text, ITEMS) == names


@pytest.mark.parametrize(
    "text",
    [
        "2 files changed in line 3",
        "a test and b",
        "version 1.2 of 3",
        "HTTP/2",
        "2-phase commit",
        "step by step",
        "items",
        "",
    ],
)
def test_numbers_and_letters_in_a_sentence_are_no_items(text: str) -> None:
    """A bare number means something else nearly always."""
    assert named_in(text, ITEMS) == []


def test_a_word_that_begins_with_an_items_number_is_not_that_item() -> None:
    """`2-phase` is a word; after "task" it would be item 2 with a remark."""
    assert named_in("a 2-phase commit", [item("2")]) == []
    assert named_in("task 2-parser leaks", [item("2")]) == ["2"]


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("src/a.py", "src/a.py"),
        ("src/a.py", "a.py"),
        ("a.py", "src/a.py"),
        ("./src/a.py", "src/a.py:12"),
        ("src/a.py", "/elsewhere/project/src/a.py"),
        ("src\\a.py", "src/a.py"),
        ("src/auth/", "src/auth/login/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**/a.py", "src/x/y/a.py"),
    ],
)
def test_paths_that_mean_one_file(own: str, named: str) -> None:
    """Short, long, with a line, below a folder, by pattern."""
    assert same_file(own, named)


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("src/a.py", "src/b.py"),
        ("src/a.py", "xa.py"),
        ("a.py", "src/ba.py"),
        ("src/auth/", "src/author.py"),
        ("src/*.py", "lib/a.py"),
        ("", "a"),
        ("a.py", ""),
    ],
)
def test_paths_that_mean_different_files(own: str, named: str) -> None:
    """The end of a name is not the name."""
    assert not same_file(own, named)


@pytest.mark.parametrize(
    ("written", "patterns"),
    [
        ("a.py", ["a.py", "**/a.py"]),
        ("src/a.py", ["src/a.py", "**/src/a.py"]),
        ("`./src/a.py:12`", ["src/a.py", "**/src/a.py"]),
        ("ct-security", ["ct-security", "**/ct-security", "ct-security.*", "**/ct-security.*", "ct-security/**"]),
        ("src/", ["src/"]),
        ("src/*.py", ["src/*.py"]),
        ("/etc/passwd", ["/etc/passwd"]),
        ("../other/a.py", ["../other/a.py"]),
        ("", []),
    ],
)
def test_what_a_plan_can_mean_by_a_file_that_is_not_there(written: str, patterns: list[str]) -> None:
    """Never more than what is written for a pattern, a folder, or a path that leads outside."""
    assert meant_by(written) == patterns
