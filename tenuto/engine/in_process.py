"""Agents in this process: a driver for Python programs that bring their own agents as coroutines.

    async def agent(work: Work) -> Result: ...
    run = asyncio.run(drive(workspace, run_id, agent))

The same loop as every driver, and the same rules: a dispatch is durable before its agent starts, and one commit takes
in what ended since the last one together with what follows from it. What was under way when the process died is
lost, and made again where its step allows it. There is no process to supervise: no time limits, no boundaries, and of
the receipt only what the agent itself hands over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.decisions.runs import too_early
from tenuto.core.records.run import Run
from tenuto.engine import actions
from tenuto.engine.attempt import definition_of, kept_open
from tenuto.workspace.workspace import Turn, Workspace

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.action import Action, Definition, Dispatch
    from tenuto.core.records.commands import Dispatched, FinishAttempt
    from tenuto.core.records.run import Receipt, Usage


class Work(NamedTuple):
    run: str
    step: str
    attempt: str
    role: str
    item: str | None
    number: int


class Result(NamedTuple):
    verdict: str
    summary: str = ""
    usage: Usage = {}  # noqa: RUF012  # never changed
    receipt: Receipt = {}  # noqa: RUF012
    parked_until: str = ""  # with verdict PARKED: not before this time


Agent = Callable[[Work], Awaitable[Result]]


class InProcess:
    def __init__(self, workspace: Workspace, run: str, agent: Agent) -> None:
        self.workspace = workspace
        self.name = run
        self.agent = agent
        self._tasks: dict[asyncio.Task[Result], str] = {}

    async def drive(self) -> Run:
        """Until the run rests: ended, or waiting for a person."""
        with kept_open(self.workspace):
            return await self._drive()

    async def _drive(self) -> Run:
        ended: dict[str, Result | None] = dict.fromkeys(self.workspace.load(self.name)["in_flight"])
        while True:
            run, fresh = self.advance(ended)
            if len(fresh) == 1 and not self._tasks:
                ended = {fresh[0].attempt: await self._alone(fresh[0])}
                continue
            for work in fresh:
                self._tasks[asyncio.ensure_future(self.agent(work))] = work.attempt
            if not self._tasks:
                return run
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = {self._tasks.pop(task): _result(task) for task in self._tasks.copy() if task in done}

    async def _alone(self, work: Work) -> Result:
        """Nothing else is under way: it needs no task of its own."""
        try:
            return await self.agent(work)
        except Exception as error:  # noqa: BLE001  # whatever an agent raises, it is an attempt that failed
            return _failed(error)

    def advance(self, ended: dict[str, Result | None]) -> tuple[Run, list[Work]]:
        """One turn: what ended, and everything that follows from it. `None`: it is not known how it ended."""
        fresh: list[Work] = []
        with self.workspace.turn(remember=True, by="engine") as turn:
            run = turn.existing(self.name)
            definition = definition_of(turn.tx, run)
            for attempt, result in ended.items():
                self._end(turn, definition["pipeline"], attempt, result)
            while wanted := turn.todo(self.name, definition["pipeline"]):
                if wanted[0]["act"] == "dispatch":
                    dispatches = [action for action in wanted if action["act"] == "dispatch"]
                    fresh = self._dispatch(turn, definition["pipeline"], run, dispatches)
                    break  # it was everything that can start: nothing more is asked for before one of them ends
                elif wanted[0]["act"] == "wake" and too_early(wanted[0]["at"], turn.at):
                    break
                else:
                    self.perform(turn, definition, wanted[0])
        return run, fresh

    def perform(self, turn: Turn, definition: Definition, action: Action) -> None:
        actions.perform(self, turn, definition, action)

    def _dispatch(self, turn: Turn, pipeline: Pipeline, run: Run, dispatches: list[Dispatch]) -> list[Work]:
        visit = run["current_visit"]["visit"] if run["current_visit"] else 1
        attempts: list[Dispatched] = [
            {
                "attempt": action["attempt"],
                "role": action["seat"]["role"],
                "agent": "inside",
                "item": action["item"],
                "number": action["number"],
                "iteration": visit,
                "extra": {"seat": action["key"], "memory": action["seat"]["memory"], "parallel": len(dispatches) > 1},
            }
            for action in dispatches
        ]
        turn.do(self.name, {"do": "DispatchAttempts", "attempts": attempts}, pipeline)
        return [
            Work(self.name, one["step"], one["attempt"], one["seat"]["role"], one["item"], one["number"])
            for one in dispatches
        ]

    def _end(self, turn: Turn, pipeline: Pipeline, attempt: str, result: Result | None) -> None:
        if result is None:
            why = "the process that it ran in ended"
            turn.do(self.name, {"do": "LoseAttempt", "attempt": attempt, "reason": why, "ran": True}, pipeline)
            return
        finished: FinishAttempt = {
            "do": "FinishAttempt",
            "attempt": attempt,
            "verdict": result.verdict,
            "summary": result.summary,
            "receipt": result.receipt,
            "status": "failed" if result.verdict == "ERROR" else "completed",
            "usage": {"attempts": 1, **result.usage},
            "parked_until": result.parked_until,
        }
        turn.do(self.name, finished, pipeline)

    def directory(self, name: str) -> str:
        """Where a reply would be kept; actions that read replies find none."""
        return f"{self.workspace.state}/attempts/{self.name}/{name}"


def _result(task: asyncio.Task[Result]) -> Result:
    error = task.exception()
    return task.result() if error is None else _failed(error)


def _failed(error: BaseException) -> Result:
    return Result("ERROR", f"{type(error).__name__}: {error}")


async def drive(workspace: Workspace, run: str, agent: Agent) -> Run:
    return await InProcess(workspace, run, agent).drive()
