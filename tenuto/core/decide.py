"""Decide what may happen to a run.

    decide(pipeline, repo, run, command) -> events     may this happen, and what does it change?

Rule 1: every rule about order, retries, gates, caps and budgets lives in core/.
If a driver or a dialect has to know one, the rule is in the wrong place.

Rule 2: nothing here reads a clock, a file, the environment or a random number.
Times, ids and facts about files arrive inside commands, so a run replayed from its
journal makes the same decisions on every machine, for ever.

Rule 3: a command is accepted whole or refused whole. A refusal is an exception of
tenuto.errors with a stable code; dialects translate the code into their seed's words.

The deciders stand in core/decisions/, one module per family; a family is imported when
one of its commands is asked for, so that a hook loads only what it uses.
"""

from __future__ import annotations

from tenuto.core.upgrade import version_of
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.commands import Command, RepoCommand
    from tenuto.core.events import Event, RepoEvent
    from tenuto.core.records import Json, Repo, Run

_FAMILIES = {
    "runs": ("StartRun", "Adopt", "Pause", "Resume", "Park", "Fail", "Finish", "Cancel", "Stop", "PickUp", "Block", "Unblock"),
    "steps": ("StartStep", "EndStep", "SkipStep", "Advance", "CheckEvidence", "RestartStage"),
    "gates": ("OpenGate", "DecideGate", "Checkpoint"),
    "attempts": ("DispatchAttempt", "DispatchAttempts", "StartAttempt", "FinishAttempt", "LoseAttempt", "PlanItems", "ChangeItem"),
    "reviews": ("RecordReview", "CountReview", "RecordCoverage"),
    "engine": ("Engage", "BeginVisit", "RecordAction", "PlanVisit", "Conclude", "RetryStep", "Fork"),
    "records": (
        "StoreArtifact", "WriteMemory", "PruneMemory", "InvalidateMemory", "CleanMemory", "SetFlags", "RecordCommit",
        "SaveContext", "RestoreContext", "RecordAnswers", "ChangeSettings", "ChangeBudget", "ChangeDriver", "ShowIn",
        "BindSession", "AbsorbEdit", "Note",
    ),
}  # fmt: skip
_deciders: dict[str, Any] = {}  # of the families that were asked for so far
_FAMILY_OF = {command: family for family, commands in _FAMILIES.items() for command in commands}


class Case:
    """One command and everything that may be looked at to decide it."""

    __slots__ = ("_asked", "command", "pipeline", "repo", "run")

    def __init__(self, pipeline: Any, repo: Repo, run: Run, command: Any, asked: list[Any] | None = None) -> None:
        self._asked = asked
        self.pipeline = pipeline
        self.repo = repo
        self.run = run
        self.command = command

    def event(self, type_: str, **fields: Any) -> Any:
        return _event(type_, self.command, fields)

    def asked(self) -> list[Any]:
        """What todo() asks for at this moment."""
        if self._asked is None:
            self._asked = ask(self.pipeline, self.run, self.command["at"])
        return self._asked


_todo: Any = None  # loaded when first asked for: a hook does without it


def ask(pipeline: Any, run: Run, now: str) -> list[Any]:
    """todo(), for those who may never need it."""
    global _todo
    if _todo is None:
        from tenuto.core.todo import todo as _todo
    asked: list[Any] = _todo(pipeline, run, now)
    return asked


def decide(
    pipeline: Any, repo: Repo, run: Run | None, command: Command, asked: list[Any] | None = None
) -> list[Event]:  # fmt: skip
    """`asked`: what todo() says of this very run, where the caller has asked it already."""
    name: str = command["do"]
    family = _FAMILY_OF.get(name)
    if family is None:
        raise BadInput("unknown-command", f"there is no command {name!r}")
    decider = _deciders.get(name)
    if decider is None:
        _deciders.update(__import__(f"tenuto.core.decisions.{family}", fromlist=[name]).DECIDERS)
        decider = _deciders[name]
    case = Case(pipeline, repo, run, command, asked)  # type: ignore[arg-type]
    if run is None and name not in ("StartRun", "Adopt"):
        raise BadInput("no-run", f"{name} needs a run that has started")
    events: list[Event] = decider(case, command)
    if events and "key" in command:
        events[0]["key"] = command["key"]
    if command.get("told"):
        for event in events:
            event["told"] = command["told"]
    return events


def decide_repo(repo: Repo, command: RepoCommand) -> list[RepoEvent]:
    """The repository's own stream. Saying again what already holds changes nothing."""
    match command["do"]:
        case "MakeCurrent":
            if repo["current"] == command["run"]:
                return []
            return [_event("CurrentRunChanged", command, {"run": command["run"]})]
        case "OwnFile":
            if repo["owners"].get(command["path"]) == command["run"]:
                return []
            return [_event("FileOwned", command, {"path": command["path"], "run": command["run"]})]
        case "ChangeSettings":
            changes = {name: value for name, value in command["changes"].items() if repo["settings"].get(name) != value}
            return [_event("SettingsChanged", command, {"changes": changes})] if changes else []


def _event(type_: str, command: Any, fields: Json) -> Any:
    return {"type": type_, "v": version_of(type_), "at": command["at"], "by": command["by"], **fields}
