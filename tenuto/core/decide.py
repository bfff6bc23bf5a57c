"""Decide what may happen to a run.

    decide(pipeline, repo, run, command) -> events     may this happen, and what does it change?
    carry_out(...)                                     the same, folded into the run

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

from tenuto.core.decisions import new_event
from tenuto.core.fold import apply, apply_repo
from tenuto.core.parts import new_run
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.action import Action
    from tenuto.core.records.commands import Command, RepoCommand
    from tenuto.core.records.events import Event, RepoEvent
    from tenuto.core.records.run import Repo, Run

_FAMILIES = {
    "runs": (
        "StartRun",
        "Adopt",
        "Pause",
        "Resume",
        "Park",
        "Fail",
        "Finish",
        "Cancel",
        "Stop",
        "PickUp",
        "Block",
        "Unblock",
    ),
    "steps": ("StartStep", "EndStep", "SkipStep", "Advance", "CheckEvidence", "RestartStage"),
    "gates": ("OpenGate", "DecideGate", "Checkpoint", "RecordReview", "CountReview", "RecordCoverage"),
    "attempts": (
        "DispatchAttempt",
        "DispatchAttempts",
        "StartAttempt",
        "FinishAttempt",
        "LoseAttempt",
        "PlanItems",
        "ChangeItem",
    ),
    "engine": ("Engage", "BeginVisit", "RecordAction", "PlanVisit", "Conclude", "RetryStep", "Fork"),
    "records": (
        "StoreArtifact",
        "WriteMemory",
        "PruneMemory",
        "InvalidateMemory",
        "CleanMemory",
        "SetFlags",
        "RecordCommit",
        "SaveContext",
        "RestoreContext",
        "RecordAnswers",
        "ChangeSettings",
        "ChangeBudget",
        "ChangeDriver",
        "ShowIn",
        "BindSession",
        "AbsorbEdit",
        "Note",
    ),
}
_deciders: dict[str, Callable[..., list[Event]]] = {}  # of the families that were asked for so far
_FAMILY_OF = {command: family for family, commands in _FAMILIES.items() for command in commands}


class Case:
    """One command and everything that may be looked at to decide it."""

    __slots__ = ("_asked", "command", "pipeline", "repo", "run")

    def __init__(
        self, pipeline: Pipeline | None, repo: Repo, run: Run, command: Command, asked: list[Action] | None = None
    ) -> None:
        self._asked = asked
        self.pipeline = pipeline
        self.repo = repo
        self.run = run
        self.command = command

    def asked(self) -> list[Action]:
        """What todo() asks for at this moment; of a run without a pipeline, nothing."""
        if self._asked is None:
            self._asked = ask(self.pipeline, self.run, self.command["at"]) if self.pipeline is not None else []
        return self._asked


_todo: Callable[[Pipeline, Run, str], list[Action]] | None = None  # loaded when first needed: a hook does without it


def ask(pipeline: Pipeline, run: Run, now: str) -> list[Action]:
    """todo(), for callers that may never need it."""
    global _todo
    if _todo is None:
        from tenuto.core.todo import todo

        _todo = todo
    return _todo(pipeline, run, now)


def decide(
    pipeline: Pipeline | None, repo: Repo, run: Run | None, command: Command, asked: list[Action] | None = None
) -> list[Event]:
    """`asked`: what todo() says of this very run, where the caller has asked it already."""
    name = command["do"]
    family = _FAMILY_OF.get(name)
    if family is None:
        raise BadInput("unknown-command", f"there is no command {name!r}")
    decider = _deciders.get(name)
    if decider is None:
        _load(family)
        decider = _deciders[name]
    case = Case(pipeline, repo, run, command, asked)  # type: ignore[arg-type]
    if run is None and name not in ("StartRun", "Adopt"):
        raise BadInput("no-run", f"{name} needs a run that has started")
    events: list[Event] = decider(case, command)
    if events and "key" in command:
        events[0]["key"] = command["key"]
    if command.get("reported_at"):
        for event in events:
            event["reported_at"] = command["reported_at"]
    return events


def carry_out(
    pipeline: Pipeline | None, repo: Repo, run: Run | None, command: Command, asked: list[Action] | None = None
) -> tuple[Run | None, list[Event]]:
    """Decide, and fold what was decided into the run. The run is None where there is none, and nothing begins one."""
    events = decide(pipeline, repo, run, command, asked)
    if run is None and events:
        run = new_run()
    for event in events:
        apply(run, event)  # type: ignore[arg-type]  # where there is an event there is a run
    return run, events


def carry_out_repo(repo: Repo, command: RepoCommand) -> list[RepoEvent]:
    """The same for the repository's own stream."""
    events = decide_repo(repo, command)
    for event in events:
        apply_repo(repo, event)
    return events


def _load(family: str) -> None:
    """The deciders of one family, when the first of its commands comes: a hook needs one of them."""
    deciders: Mapping[str, object]
    match family:
        case "runs":
            from tenuto.core.decisions import runs

            deciders = runs.DECIDERS
        case "steps":
            from tenuto.core.decisions import steps

            deciders = steps.DECIDERS
        case "gates":
            from tenuto.core.decisions import gates

            deciders = gates.DECIDERS
        case "attempts":
            from tenuto.core.decisions import attempts

            deciders = attempts.DECIDERS
        case "engine":
            from tenuto.core.decisions import engine

            deciders = engine.DECIDERS
        case _:
            from tenuto.core.decisions import records

            deciders = records.DECIDERS
    _deciders.update({name: decider for name, decider in deciders.items() if callable(decider)})


def decide_repo(repo: Repo, command: RepoCommand) -> list[RepoEvent]:
    """The repository's own stream. Saying again what already holds changes nothing."""
    match command["do"]:
        case "MakeCurrent":
            if repo["current"] == command["run"]:
                return []
            return [new_event.current_run_changed(command, run=command["run"])]
        case "OwnFile":
            if repo["owners"].get(command["path"]) == command["run"]:
                return []
            return [new_event.file_owned(command, path=command["path"], run=command["run"])]
        case "ChangeSettings":
            changes = {name: value for name, value in command["changes"].items() if repo["settings"].get(name) != value}
            return [new_event.settings_changed(command, changes=changes)] if changes else []
        case _:
            from tenuto.core.queue.entries import decide_queue

            return decide_queue(repo, command)
