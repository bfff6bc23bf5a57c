"""A decision is for the gate that was seen, and for exactly what it showed."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.errors import Refused

AT = "2026-11-15T10:00:00.000Z"


def play(run: Any, *commands: dict[str, Any]) -> Any:
    for command in commands:
        stamped: Any = {"at": AT, "by": "ada", **command}
        for event in decide(None, new_repo(), run if run["version"] else None, stamped):
            apply(run, event)
    return run


def waiting(*shown: dict[str, Any]) -> Any:
    begun = {"do": "StartRun", "run": "x", "name": "x", "request": "", "summary": "", "mode": "", "driver": "manual"}
    more = {"pipeline": {"name": "", "hash": None}, "dialects": {}, "order": "free", "schedule": [], "settings": {}}
    opened = {"do": "OpenGate", "name": "design", "prompt": "good?", "shown": list(shown)}
    return play(new_run(), {**begun, **more}, opened)


def decision(**more: Any) -> dict[str, Any]:
    return {"do": "DecideGate", "decision": "approve", "who": "ada", **more}


@pytest.mark.parametrize("word", ["approve", "reject", "revise"])
def test_a_decision_for_another_gate_is_refused(word: str) -> None:
    """Whoever answers late answered the gate before: the one that waits now was never shown to them."""
    run = waiting()
    play(run, decision(decision="revise", gate="gate-1"), {"do": "OpenGate", "name": "design", "prompt": "better?"})
    assert run["gate"]["id"] == "gate-2"
    with pytest.raises(Refused) as refusal:
        play(run, decision(decision=word, gate="gate-1"))
    assert refusal.value.code == "gate-stale"
    assert run["gate"]["id"] == "gate-2"
    play(run, decision(decision=word, gate="gate-2"))
    assert run["gate"] is None


@pytest.mark.parametrize(
    "now",
    [
        [],
        [{"path": "b.md", "sha256": "1"}],
        [{"path": "a.md", "sha256": None}],
        [{"path": "a.md", "sha256": "2"}],
        [{"path": "a.md", "sha256": "1"}, {"path": "b.md", "sha256": "1"}],
    ],
)
def test_an_approval_that_does_not_know_what_it_approves_is_refused(now: list[Any]) -> None:
    """Changed, gone, simply not told, or joined by another one: only the very hashes that were shown are approved."""
    run = waiting({"path": "a.md", "sha256": "1"})
    with pytest.raises(Refused) as refusal:
        play(run, decision(shown=now))
    assert refusal.value.code == "gate-stale"
    play(run, decision(shown=[{"path": "a.md", "sha256": "1"}]))
    assert run["gate"] is None
