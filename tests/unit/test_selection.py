"""Which items run again, and what is wrong with an item before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenuto.core.items import LIMITS, affected, agent_for, due, has_changed, is_test, passed_limits

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem


def item(name: str, **given: Any) -> PlannedItem:
    made: Any = {
        "id": name,
        "title": name,
        "files": [],
        "depends_on": [],
        "agent": None,
        "wave": None,
        "description": "",
        "effort": None,
        "lines": None,
    } | given
    found: PlannedItem = made
    return found


PLAN = [
    item("01-api", files=["src/api.py"]),
    item("02-parser", files=["src/parse.py", "tests/test_parse.py"]),
    item("03-docs"),
]


# ---- affected --------------------------------------------------------------------------------------


def test_affected_are_items_whose_id_a_finding_names() -> None:
    """By any spelling of the id."""
    assert affected(PLAN, [{"text": "Task 3 forgot the title"}])["items"] == ["03-docs"]
    assert affected(PLAN, [{"text": "`02-parser` leaks"}, {"text": "so does #1"}])["items"] == ["01-api", "02-parser"]


def test_affected_are_items_whose_files_a_finding_names() -> None:
    """In its place or in its text."""
    assert affected(PLAN, [{"text": "a leak", "file": "src/parse.py"}])["items"] == ["02-parser"]
    assert affected(PLAN, [{"text": "see src/api.py:12, it leaks"}])["items"] == ["01-api"]
    assert affected(PLAN, [{"text": "see `parse.py`."}])["items"] == ["02-parser"]


def test_affected_none_matched_is_all() -> None:
    """Whoever cannot be named is everybody."""
    assert affected(PLAN, [{"text": "the whole thing is slow"}]) == {
        "items": ["01-api", "02-parser", "03-docs"],
        "unmatched": [0],
    }
    assert affected(PLAN, [])["items"] == ["01-api", "02-parser", "03-docs"]


def test_affected_reports_findings_that_name_nobody() -> None:
    """They are handed to every item that is affected, so that none gets lost."""
    found = affected(PLAN, [{"text": "too slow"}, {"text": "a leak", "file": "src/api.py"}])
    assert found == {"items": ["01-api"], "unmatched": [0]}


# ---- the fix pass ----------------------------------------------------------------------------------


def runs(items: list[PlannedItem], done: str = "01-api 02-parser 03-docs", failing: str = "") -> list[str]:
    return due(items, PLAN, done=done.split(), failing=failing.split())


def test_unchanged_done_items_do_not_run_again() -> None:
    """The plan is the same, all is done: nothing to do. To stand in another wave is no change."""
    assert runs(PLAN) == []
    assert runs([item("01-api", files=["src/api.py"], wave=7), *PLAN[1:]]) == []


def test_new_items_run() -> None:
    """In the plan's order."""
    assert runs([item("00-first"), *PLAN, item("04-fix")]) == ["00-first", "04-fix"]


@pytest.mark.parametrize(
    "change",
    [
        {"title": "other"},
        {"files": ["src/x.py"]},
        {"depends_on": ["01-api"]},
        {"description": "x"},
        {"agent": "implementer"},
    ],
)
def test_changed_items_run(change: dict[str, Any]) -> None:
    """Whatever about the work changed."""
    assert runs([*PLAN[:2], item("03-docs", **change)]) == ["03-docs"]


def test_a_changed_item_file_is_a_changed_item() -> None:
    """The digest covers the whole text of the item's file."""
    before, after = [item("01", digest="a")], [item("01", digest="b")]
    assert due(after, before, done=["01"], failing=[]) == ["01"]
    assert due(before, before, done=["01"], failing=[]) == []


def test_items_named_failing_run() -> None:
    """Also those that said DONE."""
    assert runs(PLAN, failing="02-parser") == ["02-parser"]


def test_items_never_started_or_failed_run() -> None:
    """An ERROR kept later waves from starting; now they get their turn."""
    assert runs(PLAN, done="01-api") == ["02-parser", "03-docs"]


# ---- routing ---------------------------------------------------------------------------------------

VALID = ["implementer", "documentation-writer"]


@pytest.mark.parametrize(
    ("written", "agent"),
    [
        (None, "implementer"),
        ("", "implementer"),
        ("implementer", "implementer"),
        ("documentation-writer", "documentation-writer"),
        ("`Documentation-Writer`", "documentation-writer"),
        ("documentation_writer", "documentation-writer"),
        ("Documentation Writer", "documentation-writer"),
    ],
)
def test_an_item_goes_to_the_agent_it_names_or_to_the_default(written: str | None, agent: str) -> None:
    """Without a warning: nothing is wrong with leaving it out."""
    assert agent_for("01", written, VALID, "implementer") == (agent, "")


@pytest.mark.parametrize("written", ["reviewer", "rm -rf", "implementor"])
def test_an_unrecognised_agent_is_a_warning_and_the_default(written: str) -> None:
    """The warning names item, agent and what is known."""
    agent, warning = agent_for("01", written, VALID, "implementer")
    assert agent == "implementer"
    assert "01" in warning
    assert written in warning
    assert "documentation-writer" in warning


# ---- the planner's limits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"files": ["a.py", "b.py", "c.py"]}, ""),
        ({"files": ["a.py", "b.py", "c.py", "d.py"]}, "4 production files"),
        ({"files": ["a.py", "b.py", "c.py", "tests/test_a.py", "test_b.py", "b.test.ts"]}, ""),
        ({"file_count": 4}, "4 production files"),
        ({"files": ["a.py"], "file_count": 4}, ""),
        ({"depends_on": ["1", "2"]}, ""),
        ({"depends_on": ["1", "2", "3"]}, "3 dependencies"),
        ({"lines": 500}, ""),
        ({"lines": 501}, "501 lines"),
        ({"effort": "Medium"}, ""),
        ({"effort": "Low"}, ""),
        ({"effort": "M"}, ""),
        ({"effort": "High"}, "High effort"),
        ({"effort": "Low-High"}, "Low-High effort"),
        ({"effort": "XL"}, "XL effort"),
        ({"effort": "3 days"}, ""),
    ],
)
def test_planner_limits_are_warnings(given: dict[str, Any], said: str) -> None:
    """3 production files, 2 dependencies, 500 lines, Medium effort."""
    found = passed_limits(item("01", **given))
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_a_pipeline_sets_its_own_limits() -> None:
    """None is no limit."""
    big = item("01", files=list("abcdefgh"), depends_on=list("abc"), lines=9000, effort="High")
    assert len(passed_limits(big)) == 4
    assert passed_limits(big, {"files": None, "depends_on": None, "lines": None, "effort": ""}) == []
    assert len(passed_limits(big, {**LIMITS, "effort": "High"})) == 3


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "src/__tests__/a.ts",
        "a.spec.ts",
        "a_test.go",
        "test_a.py",
        "conftest.py",
        "e2e/a.ts",
        "ParserTest.java",
        "ModelTests.swift",
    ],
)
def test_tests_are_not_production_files(path: str) -> None:
    """By folder or by name, in the languages that have a habit."""
    assert is_test(path)


@pytest.mark.parametrize(
    "path", ["src/a.py", "src/contest.py", "latest.py", "src/protest/a.py", "attest.ts", "Latest.java"]
)
def test_production_files_are_not_tests(path: str) -> None:
    """Part of a word is not the word."""
    assert not is_test(path)


def test_an_item_that_is_done_and_that_the_plan_before_did_not_have_runs() -> None:
    assert due([item("1")], [], done=["1"], failing=()) == ["1"]


def test_a_digest_on_one_side_says_nothing() -> None:
    for first, second in (({"digest": "x"}, {}), ({}, {"digest": "x"})):
        assert has_changed(item("1", **first), item("1", **second)) is False
        assert has_changed(item("1", **first), item("1", title="another", **second)) is True
    assert (
        has_changed(item("1", digest="x"), item("1", digest="y")) is True
        and has_changed(item("1", digest="x"), item("1", title="z", digest="x")) is False
    )


def test_what_an_item_does_not_have_passes_no_limit() -> None:
    none: Any = {"files": 0, "depends_on": 0, "lines": 0, "effort": None}
    assert passed_limits(item("1"), none) == [] == passed_limits(item("1", files=["tests/test_a.py"]), none)
    assert len(passed_limits(item("1", file_count=1, lines=1, depends_on=["2"]), none)) == 3


def test_a_path_in_a_text_is_one_by_its_dot_or_its_slash() -> None:
    plan = [item("one", files=["src/parser/"]), item("two", files=["Makefile"])]
    assert affected(plan, [{"text": "look at src/parser/tree again"}])["items"] == ["one"]
    assert affected(plan, [{"text": "the Makefile is odd"}])["unmatched"] == [0], "a bare word is no path"


def test_a_finding_without_a_file_concerns_no_file() -> None:
    assert affected([item("one", files=["None"]), item("two")], [{"text": "odd", "file": None}])["unmatched"] == [0]
