"""A DONE for an item whose files nobody changed: each row of the rule in core/claims.py by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.rules import answers_for_item, unproven

NOTE = "w-1 says DONE and changed none of its item's files: a.py, b.py"
GONE = "none of its item's files exists: a.py, b.py"
IDLE = (
    "none of its item's files changed since the run began: a.py, b.py (where the work was there before, the word "
    "is `DONE: nothing to do: ...`)"
)


def seat(*touches: str, out: tuple[str, ...] = ()) -> Any:
    return {"touches": list(touches), "out": list(out)}


def run(item: str | None = "1", *earlier: Any) -> Any:
    now: dict[str, Any] = {"item": item, "verdict": None, "receipt": {}}
    return {
        "items": {"1": {"files": ["a.py", "b.py"]}, "2": {"files": []}},
        "attempts": {**dict(enumerate(earlier)), "w-1": now},
    }


def said(item: str, verdict: str, *touched: str) -> Any:
    return {"item": item, "verdict": verdict, "receipt": {"touched": list(touched)}}


def held(told: Any, where: Any = None, **seen: Any) -> tuple[str, str]:
    what: Any = {"said": "did it", "changed": False, "there": True, "since_start": False, **seen}
    found = unproven(told, "w-1", where or seat("@item", "**/*test*"), what)
    return found["problem"], found["note"]


@pytest.mark.parametrize(
    ("where", "answers"),
    [
        (seat("@item"), True),
        (seat("@item", "**/*test*"), True),
        (seat("@item", out=("report.md",)), False),
        (seat("**"), False),
        (seat(), False),
    ],
)
def test_who_has_no_output_of_its_own_answers_for_its_items_files(where: Any, answers: bool) -> None:
    assert answers_for_item(where) is answers


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"changed": True, "there": False}, ("", "")),
        ({}, (IDLE, "")),
        ({"there": False}, (GONE, "")),
        ({"since_start": True}, ("", NOTE)),
        ({"since_start": True, "there": False}, ("", NOTE)),
        ({"since_start": None}, ("", NOTE)),
        ({"since_start": None, "there": False}, (GONE, "")),
        ({"said": " Nothing to do: line 3 has it "}, ("", f"{NOTE}; it says: Nothing to do: line 3 has it")),
        ({"said": "nothing to do", "there": False}, (GONE, "")),
        ({"said": "there was nothing to do"}, (IDLE, "")),
    ],
)
def test_the_first_row_that_holds_decides(seen: Any, told: tuple[str, str]) -> None:
    assert held(run(), **seen) == told


@pytest.mark.parametrize(
    ("earlier", "counts"),
    [
        (said("1", "DONE", "t.py"), True),
        (said("1", "DONE"), False),
        (said("1", "ERROR", "a.py"), False),
        (said("2", "DONE", "a.py"), False),
    ],
)
def test_an_earlier_done_of_the_item_with_changes_is_work_that_is_there(earlier: Any, counts: bool) -> None:
    """What failed may lie on a branch of its own; what another item did is another item's."""
    assert held(run("1", earlier)) == (("", NOTE) if counts else (IDLE, ""))


def test_who_works_on_no_item_or_on_one_without_files_claims_nothing_that_could_be_looked_at() -> None:
    assert held(run(None)) == held(run("2")) == held(run("unknown")) == ("", "")


def test_an_agent_with_an_output_of_its_own_is_only_named() -> None:
    assert held(run(), seat("@item", out=("report.md",)), there=False) == ("", NOTE)
