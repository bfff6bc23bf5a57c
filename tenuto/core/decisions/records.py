"""What is written down beside the steps: artifacts, memory, flags, commits, context, settings.

Most of it is always allowed. Saying again what already holds changes nothing, so that an
agent and a hook may both report the same thing.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.decisions.attempts import in_flight
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from tenuto.core.decide import Case
    from tenuto.core.records import commands
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Json, PipelineRef, Run


def store_artifact(case: Case, c: commands.StoreArtifact) -> list[Event]:
    known = case.run["artifacts"].get(c["name"])
    if known and known["sha256"] == c["sha256"] and known["path"] == c["path"]:
        return []
    return [
        new_event.artifact_stored(
            case.command,
            name=c["name"],
            path=c["path"],
            sha256=c["sha256"],
            size=c["size"],
            step=c.get("step", case.run["position"]),
            attempt=c.get("attempt"),
        )
    ]


def write_memory(case: Case, c: commands.WriteMemory | commands.WriteIndex) -> list[Event]:
    attempt = case.run["attempts"].get(c["by"])
    if attempt is not None and len(in_flight(case.run)) > 1:
        raise Refused(
            "memory-parallel",
            f"{c['by']} runs beside others and must not change memory",
            "only a step that runs alone writes memory",
        )
    if not c["entries"]:
        return []
    if c["kind"] == "index":
        return [new_event.index_written(case.command, kind="index", entries=c["entries"])]
    return [new_event.memory_written(case.command, kind=c["kind"], entries=c["entries"])]


def prune_memory(case: Case, c: commands.PruneMemory) -> list[Event]:
    return [new_event.memory_pruned(case.command, keep=c["keep"])]


def invalidate_memory(case: Case, c: commands.InvalidateMemory) -> list[Event]:
    return [new_event.memory_invalidated(case.command, steps=c["steps"], reason=c["reason"])]


def clean_memory(case: Case, c: commands.CleanMemory) -> list[Event]:
    return [new_event.memory_cleaned(case.command)]


def set_flags(case: Case, c: commands.SetFlags) -> list[Event]:
    fresh = {name: value for name, value in c["flags"].items() if case.run["flags"].get(name, _ABSENT) != value}
    if fresh and case.run["pipeline"]["name"] == "ticket":
        fresh = _not_following(case.run, fresh)
    return [new_event.flag_set(case.command, flags=fresh)] if fresh else []


def _not_following(run: Run, claimed: Json) -> Json:
    """Flags that follow from what happened cannot be set; saying what is so anyway changes nothing."""
    from tenuto.core.rules import flags, follows

    shown = flags(run)
    for name, value in claimed.items():
        if follows(name) and shown.get(name, False) is not value:
            message = (
                f"{name} follows from what happened in run {run['id']}: it is {shown.get(name, False)}, not {value}"
            )
            raise Refused("flag-follows", message, "record what makes it so", flag=name)
    return {name: value for name, value in claimed.items() if not follows(name)}


def record_commit(case: Case, c: commands.RecordCommit) -> list[Event]:
    if any(commit["hash"] == c["hash"] and commit["step"] == c["step"] for commit in case.run["commits"]):
        return []
    return [
        new_event.commit_recorded(
            case.command, step=c["step"], hash=c["hash"], message=c["message"], extra=c.get("extra", {})
        )
    ]


def save_context(case: Case, c: commands.SaveContext) -> list[Event]:
    resume, reason = case.run["resume"], c.get("reason", "")
    saved = resume is not None and not resume.get("restored_at") and resume["reason"] == reason
    if resume and saved and all(resume.get(name) == value for name, value in c["context"].items()):
        return []  # the same words again: the first time counts
    return [new_event.context_saved(case.command, context=c["context"], reason=reason)]


def restore_context(case: Case, c: commands.RestoreContext) -> list[Event]:
    resume = case.run["resume"]
    if resume is None or resume.get("restored_at"):
        return []
    return [new_event.context_restored(case.command, session=c.get("session", ""))]


def record_answers(case: Case, c: commands.RecordAnswers) -> list[Event]:
    fresh = {name: value for name, value in c["answers"].items() if case.run["answers"].get(name, _ABSENT) != value}
    return [new_event.answers_recorded(case.command, answers=fresh)] if fresh else []


def change_settings(case: Case, c: commands.ChangeSettings) -> list[Event]:
    if "gate_protection" in c["changes"]:
        message = f"how the gates of run {case.run['id']} are protected was settled when it began"
        raise Refused("protected", message, "it is part of .tenuto/config.yaml, for runs to come")
    return [new_event.settings_changed(case.command, changes=c["changes"])] if c["changes"] else []


def change_budget(case: Case, c: commands.ChangeBudget) -> list[Event]:
    of_steps = c.get("steps", {})
    for limits in (c["limits"], *of_steps.values()):
        for unit, limit in limits.items():
            _refuse_odd_limit(unit, limit)
    if case.pipeline is not None:
        known = [step["id"] for step in case.pipeline["steps"]]
        for step in of_steps:
            if step not in known:
                message = f"pipeline {case.pipeline['name']} has no step {step!r}; it has: {', '.join(known)}"
                raise Refused("no-such-step", message, step=step)
    told = {"steps": of_steps} if of_steps else {}
    return [new_event.budget_changed(case.command, limits=c["limits"], **told)]


def _refuse_odd_limit(unit: str, limit: object) -> None:
    from tenuto.core.budget import UNITS

    whole = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
    if unit not in UNITS or not (whole or limit is None):
        raise Refused(
            "bad-limit", f"{unit}={limit} is no limit", f"units: {', '.join(UNITS)}; a whole number", unit=unit
        )


def change_driver(case: Case, c: commands.ChangeDriver) -> list[Event]:
    pipeline = c.get("pipeline", case.run["pipeline"])
    if case.run["driver"] == c["driver"] and case.run["pipeline"] == pipeline:
        return []
    run = case.run
    if run["driver"] != "manual" and (run["current_visit"] is not None or run["queue"]):
        _refuse_busy(run, c["driver"], pipeline)
    return [new_event.driver_changed(case.command, driver=c["driver"], pipeline=pipeline)]


def _refuse_busy(run: Run, driver: str, pipeline: PipelineRef) -> None:
    """An engine lets go of a run between two agents, and not at a gate; what it follows does not change under it."""
    if pipeline != run["pipeline"]:
        message = f"run {run['id']} follows the pipeline {run['pipeline']['name']}"
        raise Refused("engine-driven", message, f"tenuto release {run['id']}, or let it end", run=run["id"])
    if run["in_flight"] and driver == "manual":
        message = f"agents of run {run['id']} are under way: {', '.join(run['in_flight'])}"
        raise Refused("attempts-in-flight", message, f"tenuto pause {run['id']}, and let them end", run=run["id"])
    if run["status"] == "waiting_gate" and driver == "manual":
        raise Refused("gate-open", f"run {run['id']} waits at a gate", f"tenuto approve {run['id']}, reject or revise")


def show_in(case: Case, c: commands.ShowIn) -> list[Event]:
    if case.run["dialects"].get(c["dialect"]) == c["place"]:
        return []
    return [new_event.shown_in(case.command, dialect=c["dialect"], place=c["place"])]


def bind_session(case: Case, c: commands.BindSession) -> list[Event]:
    return [] if c["session"] in case.run["sessions"] else [new_event.session_bound(case.command, session=c["session"])]


def absorb_edit(case: Case, c: commands.AbsorbEdit) -> list[Event]:
    return [
        new_event.foreign_edit_absorbed(
            case.command,
            dialect=c["dialect"],
            path=c["path"],
            sha256=c["sha256"],
            extra=c.get("extra", {}),
            drop=c.get("drop", []),
        )
    ]


def note(case: Case, c: commands.Note) -> list[Event]:
    return [new_event.noted(case.command, text=c["text"], extra=c.get("extra", {}))]


_ABSENT = object()
if TYPE_CHECKING:

    class Deciders(TypedDict):
        StoreArtifact: Callable[[Case, commands.StoreArtifact], list[Event]]
        WriteMemory: Callable[[Case, commands.WriteMemory | commands.WriteIndex], list[Event]]
        PruneMemory: Callable[[Case, commands.PruneMemory], list[Event]]
        InvalidateMemory: Callable[[Case, commands.InvalidateMemory], list[Event]]
        CleanMemory: Callable[[Case, commands.CleanMemory], list[Event]]
        SetFlags: Callable[[Case, commands.SetFlags], list[Event]]
        RecordCommit: Callable[[Case, commands.RecordCommit], list[Event]]
        SaveContext: Callable[[Case, commands.SaveContext], list[Event]]
        RestoreContext: Callable[[Case, commands.RestoreContext], list[Event]]
        RecordAnswers: Callable[[Case, commands.RecordAnswers], list[Event]]
        ChangeSettings: Callable[[Case, commands.ChangeSettings], list[Event]]
        ChangeBudget: Callable[[Case, commands.ChangeBudget], list[Event]]
        ChangeDriver: Callable[[Case, commands.ChangeDriver], list[Event]]
        ShowIn: Callable[[Case, commands.ShowIn], list[Event]]
        BindSession: Callable[[Case, commands.BindSession], list[Event]]
        AbsorbEdit: Callable[[Case, commands.AbsorbEdit], list[Event]]
        Note: Callable[[Case, commands.Note], list[Event]]


DECIDERS: Deciders = {
    "StoreArtifact": store_artifact,
    "WriteMemory": write_memory,
    "PruneMemory": prune_memory,
    "InvalidateMemory": invalidate_memory,
    "CleanMemory": clean_memory,
    "SetFlags": set_flags,
    "RecordCommit": record_commit,
    "SaveContext": save_context,
    "RestoreContext": restore_context,
    "RecordAnswers": record_answers,
    "ChangeSettings": change_settings,
    "ChangeBudget": change_budget,
    "ChangeDriver": change_driver,
    "ShowIn": show_in,
    "BindSession": bind_session,
    "AbsorbEdit": absorb_edit,
    "Note": note,
}
