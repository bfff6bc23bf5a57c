"""Paths in a definition: which stay inside, which are the same, and which files a pattern means."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.pipeline.values import View, blank, meet, placeholders, read, read_one, wrong
from tenuto.names import fits


def found_in(value: object) -> tuple[list[str], list[tuple[list[Any], str]]]:
    problems: list[Any] = []
    return read(View(value, (), problems), "a file"), [(one["path"], one["code"]) for one in problems]


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, [], []),
        ("a.md", ["a.md"], []),
        (["a.md", "b/*.md"], ["a.md", "b/*.md"], []),
        ("././a.md", ["a.md"], []),
        ("@item", ["@item"], []),
        (["{slug}/{item}-{number}.{iteration}"],) * 2 + ([],),
        ("", [], [([], "empty")]),
        ("./", [], [([], "empty")]),
        ([None, "a.md"], ["a.md"], [([0], "empty")]),
        ([1], [], [([0], "wrong-type")]),
        (["a.md", "b.md", "./a.md"], ["a.md", "b.md"], [([2], "duplicate")]),
        (["a.md", "../b.md"], ["a.md"], [([1], "bad-path")]),
    ],
)
def test_a_list_of_paths(value: object, found: list[str], problems: Any) -> None:
    assert found_in(value) == (found, problems)


@pytest.mark.parametrize(
    ("value", "found", "problems"),
    [
        (None, "d", []),
        ("d", "d", []),
        ("./a.md", "a.md", []),
        ("/a.md", "d", ["bad-path"]),
        ("", "d", ["empty"]),
        (["a.md"], "d", ["wrong-type"]),
        (3, "d", ["wrong-type"]),
    ],
)
def test_a_single_path(value: object, found: str, problems: list[str]) -> None:
    noted: list[Any] = []
    assert (read_one(View(value, (), noted), "a file", "d"), [one["code"] for one in noted]) == (found, problems)
    assert read_one(View("", (), noted), "a file") == "", "where none is needed, none may be written"
    assert len(noted) == len(problems)


def test_what_is_wrong_with_a_path_is_said_without_its_name() -> None:
    assert wrong("a/{slug}.md") == "" == wrong("@item")
    assert wrong("{home}/a.md") == "{home} means nothing; known: {slug}, {item}, {number}, {iteration}"
    for path in ("../a.md", "/a.md", "a//b.md", "a/", "c:\\a.md", "a\x00.md"):
        assert wrong(path) and "cannot be used" not in wrong(path), path


def test_placeholders() -> None:
    assert (
        placeholders("{a}/x{b}.md") == ["a", "b"]
        and placeholders("a.md") == [] == placeholders("a}.md")
        and placeholders("a{") == [""]
    )
    assert blank("{slug}/{item}/{number}/{iteration}") == "x/x/x/x"


@pytest.mark.parametrize(
    ("pattern", "path", "meant"),
    [
        ("a.md", "a.md", True),
        ("a.md", "b.md", False),
        ("a/b.md", "a", False),
        ("a", "a/b.md", False),
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),
        ("*.md", ".md", True),
        ("*", "a/b", False),
        ("a*c", "abc", True),
        ("a*c", "ac", True),
        ("a*c", "ab", False),
        ("a*c", "bc", False),
        ("a*a", "a", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
        ("*ab*b", "ab", False),
        ("*ab*b", "xabb", True),
        ("a*bc*cd", "abcd", False),
        ("a*bc*cd", "abccd", True),
        ("*a*", "a", True),
        ("**/a.md", "a.md", True),
        ("**/a.md", "x/y/a.md", True),
        ("**/a.md", "x/b.md", False),
        ("x/**", "x/y/z", True),
        ("x/**", "y/x", False),
        ("x/**/y", "x/y", True),
        ("x/**/y", "x/1/2/y", True),
        ("x/**/y", "x/1/2/z", False),
        ("**/y/**/z", "x/y/z", True),
        ("**/y/**/z", "y/1/z", True),
        ("**/y/**/z", "z/y", False),
        ("**", "a/b/c", True),
        ("task-{number}.md", "task-007.md", True),
        ("{item}/a.md", "x/y/a.md", False),
        ("{slug}/{item}-{iteration}", "s/i-1", True),
    ],
)
def test_the_files_that_a_pattern_means(pattern: str, path: str, meant: bool) -> None:
    assert fits(pattern, path) is meant


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("a.md", "a.md", True),
        ("a.md", "b.md", False),
        ("*.md", "a.md", True),
        ("x/*.md", "x/{item}.md", True),
        ("x/{number}.md", "x/{item}.md", True),
        ("x/{item}.md", "y/*.md", False),
        ("x*", "*y", False),
    ],
)
def test_two_names_of_which_one_can_stand_for_the_other(a: str, b: str, same: bool) -> None:
    assert meet(a, b) is same is meet(b, a)
