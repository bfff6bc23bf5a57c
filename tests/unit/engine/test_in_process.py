"""Agents as coroutines: the same rules, and one commit for whatever ended meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tenuto.encoding import dumps
from tenuto.engine.attempt import pipeline_of
from tenuto.engine.begin import start
from tenuto.engine.in_process import Result, Work, drive
from tenuto.errors import Refused
from tenuto.workspace.checkup import examine

from .conftest import reopen


def begin(repository: Path) -> tuple[Any, str]:
    workspace = reopen(repository)
    return workspace, start(workspace, "Add dark mode", "small")["id"]


def test_a_run_completes_with_one_durable_turn_per_round(repository: Path) -> None:
    workspace, name = begin(repository)
    seen: list[Work] = []

    async def agent(work: Work) -> Result:
        seen.append(work)
        stored = reopen(repository).load(name)["attempts"][work.attempt]
        assert stored["status"] == "dispatched", "an agent starts when its dispatch is durable"
        return Result("DONE", "did it", {"tokens": 7})

    run = asyncio.run(drive(workspace, name, agent))
    assert run["status"] == "completed"
    assert [work.step for work in seen] == ["look", "look", "write"]
    assert run["budget"]["spent"] == {"attempts": 3, "tokens": 21}
    assert dumps(run) == dumps(reopen(repository).load(name)), "what is remembered between turns is what is stored"


def test_an_agent_that_raises_has_failed_and_one_that_was_under_way_when_the_process_died_is_lost(
    repository: Path,
) -> None:
    workspace, name = begin(repository)

    async def leave_in_the_middle() -> None:
        reached = asyncio.Event()

        async def stuck(work: Work) -> Result:
            if work.step == "write":
                reached.set()
                await asyncio.Event().wait()
            return Result("DONE")

        driving = asyncio.ensure_future(drive(workspace, name, stuck))
        await reached.wait()
        driving.cancel()

    asyncio.run(leave_in_the_middle())
    assert len(reopen(repository).load(name)["in_flight"]) == 1
    tries: list[str] = []

    async def careless(work: Work) -> Result:
        tries.append(work.attempt)
        raise ValueError("no such file")

    run = asyncio.run(drive(reopen(repository), name, careless))
    assert [a["status"] for a in run["attempts"].values()] == ["completed", "completed", "lost", "failed", "failed"]
    assert run["status"] == "failed" and len(tries) == 2
    assert run["attempts"][tries[-1]]["summary"] == "ValueError: no such file"


def test_what_a_failed_turn_changed_is_forgotten(repository: Path) -> None:
    workspace, name = begin(repository)
    with workspace.turn(remember=True) as turn:
        turn.do(name, {"do": "SetFlags", "flags": {"seen": 1}})
    assert workspace.remembered_runs[name]["flags"] == {"seen": 1}
    with pytest.raises(Refused), workspace.turn(remember=True) as turn:
        turn.do(name, {"do": "SetFlags", "flags": {"seen": 2}})
        turn.do(name, {"do": "Conclude"})
    with workspace.turn(remember=True) as turn:
        assert turn.existing(name)["flags"] == {"seen": 1}


def test_another_writer_between_two_turns_is_seen(repository: Path) -> None:
    workspace, name = begin(repository)
    with workspace.turn(remember=True) as turn:
        turn.do(name, {"do": "SetFlags", "flags": {"mine": 1}})
    with reopen(repository).turn() as other:
        other.do(name, {"do": "SetFlags", "flags": {"theirs": 2}})
    with workspace.turn(remember=True) as turn:
        assert turn.existing(name)["flags"] == {"mine": 1, "theirs": 2}


def test_a_parked_run_rests_until_its_time_and_then_goes_on(repository: Path) -> None:
    workspace, name = begin(repository)
    until = iter(["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])

    async def limited(work: Work) -> Result:
        return Result("PARKED", "too much", parked_until=next(until)) if work.step == "write" else Result("DONE")

    run = asyncio.run(drive(workspace, name, limited))
    assert run["pause"] is not None and run["current_visit"] is not None
    assert run["status"] == "parked" and run["pause"]["until"].startswith("2999"), "the first time had come"
    assert len(run["attempts"]) == 4 and run["current_visit"]["seats"]["designer"]["results"] == []


@pytest.mark.parametrize("held", [True, False], ids=["held-open", "as-commands-do"])
def test_the_log_is_written_over_and_stays_sound(repository: Path, held: bool) -> None:
    workspace, name = begin(repository)
    log = Path(workspace.journal.location + "-wal")
    if held:
        workspace.journal.hold_open(True)
    for number in range(40):
        with workspace.turn(remember=held) as turn:
            turn.do(name, {"do": "SetFlags", "flags": {"number": number, "text": f"{number}" * 50_000}})
    assert log.stat().st_size < 2_000_000, "about as long as it may be, however much was written"
    assert reopen(repository).load(name)["flags"]["number"] == 39, "others see all of it"
    assert [found for found in examine(workspace)["findings"] if found["severity"] != "behind"] == []


def test_what_was_asked_for_is_asked_for_once(repository: Path) -> None:
    """An answer of todo() serves one decision: asked for again without a new one, the same is refused; undone, it is
    open again."""
    workspace, name = begin(repository)
    with workspace.turn() as turn:
        pipeline = pipeline_of(turn.tx, turn.existing(name))
        assert [action["act"] for action in turn.todo(name, pipeline)] == ["begin"]
        mark = turn.mark(name)
        turn.do(name, {"do": "BeginVisit"}, pipeline)
        with pytest.raises(Refused, match="does not ask for 'begin' now"):
            turn.do(name, {"do": "BeginVisit"}, pipeline)
        turn.todo(name, pipeline)
        turn.undo(name, mark)
        assert turn.do(name, {"do": "BeginVisit"}, pipeline)
        wanted = turn.todo(name, pipeline)
        assert {action["act"] for action in wanted} == {"dispatch"}
        told = [
            {"attempt": action["attempt"], "role": action["seat"]["role"], "extra": {"seat": action["key"]}}
            for action in wanted
        ]
        turn.do(name, {"do": "DispatchAttempts", "attempts": told}, pipeline)
        with pytest.raises(Refused, match="does not ask for attempt"):
            turn.do(name, {"do": "DispatchAttempts", "attempts": told}, pipeline)
