"""Agents as coroutines: the same rules, and one commit for whatever ended meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tenuto.drivers.inside import Result, Work, drive
from tenuto.drivers.start import start
from tenuto.encoding import dumps
from tenuto.errors import Refused

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
    assert len(reopen(repository).load(name)["flying"]) == 1
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
    assert workspace.remembered[name]["flags"] == {"seen": 1}
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
