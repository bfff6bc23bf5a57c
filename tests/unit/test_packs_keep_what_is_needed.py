"""A pack holds every line that a person marked as needed, and tears no paragraph, list or table.

The documents and the rules of marking are in tests/data/packs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.marked import Line, Marks, by_task, lost_lines, read_marks, torn_units
from tests.unit.context.conftest import Repository

DOCUMENTS = Path(__file__).resolve().parents[1] / "data" / "packs"
MARKS = read_marks(DOCUMENTS)
TASKS = by_task(MARKS)
CASES = [(task, phase) for task in TASKS for phase in sorted({phase for marks in task for phase in marks["needs"]})]


def case_id(value: object) -> str:
    if isinstance(value, list):
        return str(value[0].get("task", value[0]["document"]))
    return str(value)


def text_of(marks: Marks) -> str:
    return (DOCUMENTS / marks["document"]).read_bytes().decode()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def pack_for(repository: Repository, task: list[Marks], phase: str) -> str:
    graduates = any(marks["stored_as"] == "debt" for marks in task)
    repository.must("INIT task: t mode: poc workflow: poc" if graduates else "INIT task: t")
    # Storing the debt ends a proof of concept, so it comes last.
    for marks in sorted(task, key=lambda marks: marks["stored_as"] == "debt"):
        repository.must(f"STORE phase: {marks['stored_as']} content: {text_of(marks)}")
    return str(repository.ask(f"RETRIEVE for_phase: {phase}")["data"])


@pytest.mark.parametrize(("task", "phase"), CASES, ids=case_id)
def test_every_line_that_a_phase_needs_is_in_its_pack(repository: Repository, task: list[Marks], phase: str) -> None:
    pack = pack_for(repository, task, phase)
    lost: dict[str, list[Line]] = {}
    for marks in task:
        if phase in marks["needs"] and (lines := lost_lines(text_of(marks), marks["needs"][phase], pack)):
            lost[marks["document"]] = lines
    assert not lost


@pytest.mark.parametrize(("task", "phase"), CASES, ids=case_id)
def test_a_paragraph_list_or_table_is_in_a_pack_whole_or_not_at_all(
    repository: Repository, task: list[Marks], phase: str
) -> None:
    pack = pack_for(repository, task, phase)
    torn: dict[str, list[tuple[Line, Line]]] = {}
    for marks in task:
        if marks.get("units", True) and (units := torn_units(text_of(marks), pack)):
            torn[marks["document"]] = units
    assert not torn


def test_there_are_documents_of_every_kind_that_is_stored() -> None:
    """A folder that was emptied by mistake must not pass."""
    assert len(MARKS) >= 40
    assert {marks["stored_as"].rstrip("-0123456789") for marks in MARKS} == {
        "architect",
        "architect-revision",
        "debt",
        "design-audit",
        "impl-audit",
        "implementation",
        "spec",
        "test-results",
        "tests",
    }


def test_marks_name_lines_that_exist() -> None:
    for marks in MARKS:
        last = len(text_of(marks).splitlines())
        for ranges in marks["needs"].values():
            spans = [] if ranges == "whole" else ranges
            assert all(1 <= first <= end <= last for first, end in spans), marks["document"]


def test_a_lost_line_is_found_also_where_the_same_line_stands_elsewhere() -> None:
    text = "class A:\n    def go(self): ...\nclass B:\n    def go(self): ...\n"
    assert lost_lines(text, "whole", text) == []
    assert lost_lines(text, "whole", "class A:\n    def go(self): ...\nclass B:\n") == [
        Line(4, "    def go(self): ...")
    ]


def test_a_torn_table_is_found() -> None:
    text = "| a | b |\n|---|---|\n| one | 1 |\n| two | 2 |\n"
    assert torn_units(text, text) == []
    assert torn_units(text, "nothing of it") == []
    assert torn_units(text, text.replace("| two | 2 |\n", "")) == [(Line(1, "| a | b |"), Line(4, "| two | 2 |"))]
