"""The inbox: what needs a person first, then what is under way, then what has ended; by summaries alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core.times import iso
from tenuto.errors import BadInput
from tenuto.show.inbox import InboxView, count_needs, inbox_view
from tests.support.journals import append, database_of, started

START = 1_763_194_331_000


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    (tmp_path / ".git").mkdir()
    opened = tenuto.open(str(tmp_path))
    opened.clock = lambda: at(1000)
    return opened


def at(minute: int) -> str:
    return iso(START + 60_000 * minute)


def event(word: str, minute: int, **more: Any) -> Any:
    return {"type": word, "v": 2, "at": at(minute), "by": "test", **more}


def begin(workspace: Any, name: str, minute: int, *then: Any, driver: str = "engine") -> None:
    begun = {**started(name, at(minute)), "driver": driver, "pipeline": {"name": "quick", "hash": None}}
    append(workspace.journal, name, 0, begun, *then)


def gate(minute: int, **more: Any) -> Any:
    shown = [{"path": "plan.md", "sha256": "aa"}]
    return event(
        "GateOpened",
        minute,
        gate=f"g{minute}",
        name="go",
        prompt="Go on?\nReally?",
        options=["approve"],
        shown=shown,
        completes=False,
        **more,
    )


def paused(kind: str, minute: int) -> Any:
    return event(
        "Paused", minute, kind=kind, reason=f"{kind}!", step=None, feedback="", question_of="", recommendations=[]
    )


def failed(minute: int) -> Any:
    return event("Failed", minute, step="build", error="tests: exit status 1\nmore", context=None)


def names(view: InboxView) -> list[list[str]]:
    return [[one["run"] for one in view[group]] for group in ("needs_you", "under_way", "recent")]


def test_what_needs_a_person_comes_first_and_who_waits_longest_before_the_others(workspace: Any) -> None:
    begin(workspace, "late", 1, gate(30))
    begin(workspace, "early", 2, paused("question", 20))
    begin(workspace, "hand", 3, driver="manual")
    begin(workspace, "stalled", 4)
    begin(workspace, "parked", 5, event("Parked", 40, until=at(5000), reason="a limit"))
    begin(workspace, "over", 6, event("Cancelled", 50, reason=""))
    view = inbox_view(workspace)
    assert names(view) == [["stalled", "early", "late"], ["parked", "hand"], ["over"]]
    needs = {one["run"]: one for one in view["needs_you"]}
    assert [needs[name]["needs"] for name in ("stalled", "early", "late")] == ["stalled", "question", "gate"]
    assert needs["stalled"]["driven"] == {
        "by": "nobody",
        "words": "nobody drives it",
        "command": "tenuto resume stalled",
    }
    late = needs["late"]["waits"]
    assert late is not None and (late["text"], late["documents"], late["since"]) == ("Go on?", 1, at(30))
    assert view["under_way"][1]["driven"]["by"] == "person" and view["under_way"][0]["driven"]["by"] == "parked"
    assert count_needs(workspace) == 3


def test_a_gate_that_asks_for_fields_is_a_form(workspace: Any) -> None:
    field: dict[str, object] = {"type": "text", "choices": [], "default": None, "required": True, "description": ""}
    begin(workspace, "r", 1, gate(2, fields={"env": field}))
    assert inbox_view(workspace)["needs_you"][0]["needs"] == "form"


def test_a_run_that_an_engine_drives_is_under_way(workspace: Any) -> None:
    begin(workspace, "r", 1)
    folder = Path(workspace.state) / "attempts/r"
    folder.mkdir(parents=True)
    lock = os.open(folder / "engine.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        view = inbox_view(workspace)
    finally:
        os.close(lock)
    assert names(view) == [[], ["r"], []] and view["under_way"][0]["driven"]["by"] == "engine"
    assert names(inbox_view(workspace))[0] == ["r"], "its engine is gone"


def test_a_failure_needs_a_person_until_they_have_looked(workspace: Any) -> None:
    begin(workspace, "old", 1, failed(10))
    begin(workspace, "new", 2, failed(500))
    assert names(inbox_view(workspace, looked_at=at(100))) == [["new"], [], ["old"]]
    assert inbox_view(workspace, looked_at=at(100))["needs_you"][0]["error"] == "tests: exit status 1"
    assert names(inbox_view(workspace, looked_at=at(100), seen=["new"])) == [[], [], ["new", "old"]]
    assert names(inbox_view(workspace)) == [["old", "new"], [], []], "a day back, where nobody has looked yet"
    workspace.clock = lambda: at(60 * 24 + 100)
    assert names(inbox_view(workspace)) == [["new"], [], ["old"]]


def test_a_long_past_is_read_in_pages_and_narrowed_by_words_and_status(workspace: Any) -> None:
    for number in range(7):
        begin(workspace, f"r{number}", number, event("Cancelled", 50, reason=""))
    begin(workspace, "open", 8, gate(9))
    first = inbox_view(workspace, most=3)
    assert names(first) == [["open"], [], ["r6", "r5", "r4"]] and first["next"] == "r4"
    last = inbox_view(workspace, most=4, after=first["next"])
    assert names(last) == [[], [], ["r3", "r2", "r1", "r0"]] and last["next"] == ""
    assert names(inbox_view(workspace, words="R3")) == [[], [], ["r3"]]
    assert names(inbox_view(workspace, status="waiting_gate")) == [["open"], [], []]
    assert names(inbox_view(workspace, status="cancelled", words="quick", most=1)) == [[], [], ["r6"]]
    with pytest.raises(BadInput):
        inbox_view(workspace, status="nonsense")


def test_what_is_not_there_is_said_in_words_that_teach(workspace: Any) -> None:
    assert inbox_view(workspace)["empty"] == "no-journal" and not workspace.journal.exists()
    begin(workspace, "r", 1)
    assert inbox_view(workspace, words="nothing like it")["empty"] == "nothing-fits"
    assert inbox_view(workspace)["empty"] == ""


def test_summaries_of_earlier_versions_say_that_they_do_not_know(workspace: Any) -> None:
    """They open, they verify, and no figure of theirs is taken for zero."""
    begin(workspace, "r", 1, gate(2))
    db = database_of(workspace)
    with workspace.journal.read() as reader:
        (card,) = reader.runs()
    older = {name: value for name, value in card.items() if name not in ("figures", "waits", "progress", "error")}
    from tenuto.encoding import dumps
    from tenuto.stores.journal import ROW, seal

    db.execute("UPDATE run SET card=? WHERE id='r'", (dumps(older),))
    row = db.execute(f"SELECT {ROW} FROM run WHERE id='r'").fetchone()
    db.execute("UPDATE run SET digest=? WHERE id='r'", (seal(row),))
    with workspace.journal.read() as reader:
        assert list(reader.verify_run("r")) == []
    (entry,) = inbox_view(workspace)["needs_you"]
    assert (entry["figures"], entry["waits"], entry["needs"]) == (None, None, "gate")
