"""Which versions of events there are, and that no journal is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.fold import _APPLY
from tenuto.core.upgrade import EVERY, UPGRADES, VERSIONS, upgrade, version_of
from tenuto.errors import SchemaSkew


def test_every_version_that_was_ever_written_can_be_read() -> None:
    """A type at version 4 has a way from 2 to 3 and from 3 to 4, and no other; from 1 to 2 one serves all types."""
    assert {key for key in UPGRADES if key[1] >= EVERY} == {
        (type_, old) for type_, newest in VERSIONS.items() for old in range(EVERY, newest)
    }
    for type_ in _APPLY:
        known: dict[str, Any] = {
            "hop": {},
            "kind": "",
            "last_feedback": "",
            "state": {},
            "verdict": None,
            "receipt": {},
        }
        read = upgrade({"type": type_, "v": 1, "at": "t1", "by": "b", "told": "t0", **known}, "a")
        assert (read["v"], read["reported_at"], "told" in read) == (version_of(type_), "t0", False), type_


def test_a_leg_was_called_hop() -> None:
    old = {"type": "StepStarted", "v": 1, "step": "s"}
    assert upgrade({**old, "hop": {"step": "s"}}, "a") == {
        "type": "StepStarted",
        "v": 2,
        "step": "s",
        "leg": {"step": "s"},
    }
    assert upgrade({**old, "hop": {}}, "a")["leg"] is None, "led by hand"


@pytest.mark.parametrize(
    ("kind", "feedback", "question_of"), [("question", "", "x"), ("failure", "x", ""), ("outcome", "x", "")]
)
def test_what_a_pause_held_in_one_field_has_fields_of_its_own(kind: str, feedback: str, question_of: str) -> None:
    read = upgrade({"type": "Paused", "v": 1, "kind": kind, "last_feedback": "x"}, "a")
    assert read == {"type": "Paused", "v": 2, "kind": kind, "feedback": feedback, "question_of": question_of}


def test_an_adopted_run_is_whole() -> None:
    """Of one dialect visits came without the order in which they ended, and the engine stumbled over that."""
    pause = {"kind": "stopped", "last_feedback": "f"}
    visits: list[dict[str, Any]] = [
        {"step": "a", "ended_at": "t"},
        {"step": "b", "ended_at": None},
        {"step": "c", "ended_at": "t", "closed": -1},
    ]
    state: dict[str, Any] = {"pause": pause, "visits": visits, "attempts": {"x": {"role": "r"}}}
    read = upgrade({"type": "Adopted", "v": 1, "state": state}, "a")["state"]
    assert read["pause"] == {"kind": "stopped", "feedback": "f", "until": "", "question_of": ""}
    assert [visit["closed"] for visit in read["visits"]] == [0, None, -1]
    assert read["attempts"] == {"x": {"role": "r", "said": None, "found": None}}
    assert state["pause"] == pause and "closed" not in visits[0], "the record that was read is left alone"
    assert upgrade({"type": "Adopted", "v": 1, "state": {}}, "a")["state"] == {}


def test_what_an_agent_said_was_not_kept_then() -> None:
    old = {"type": "AttemptFinished", "v": 1, "verdict": "ERROR", "receipt": {"problem": "no file"}}
    read = upgrade(old, "a")
    assert (read["said"], read["found"]) == (None, {"verdict": "ERROR", "problem": "no file"})


def test_an_event_of_today_is_left_alone() -> None:
    event = {"type": "Noted", "v": 2, "text": "as it is"}
    assert upgrade(event, "a") is event


def test_an_event_of_tomorrow_is_refused_by_name() -> None:
    with pytest.raises(SchemaSkew, match="run a holds an event Noted of version 7; this tenuto knows 2"):
        upgrade({"type": "Noted", "v": 7}, "a")


def test_an_old_event_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.core import upgrade as module

    monkeypatch.setitem(module.VERSIONS, "Noted", 3)
    monkeypatch.setitem(module.UPGRADES, ("Noted", 1), lambda event: {**event, "v": 2, "two": True})
    monkeypatch.setitem(module.UPGRADES, ("Noted", 2), lambda event: {**event, "v": 3, "three": True})
    assert module.upgrade({"type": "Noted", "v": 1}, "x") == {"type": "Noted", "v": 3, "two": True, "three": True}
    assert module.upgrade({"type": "Noted", "v": 3}, "x") == {"type": "Noted", "v": 3}
