"""One constructor per event: the only place where an event is put together.

    step_ended(command, step="design", item=None, status="success", verdict="DONE", summary="", because=[])

Each takes the command that led to the event, for its time and its author, and the event's own fields by name. A field
that an event may lack is left out where it is None. `v` is the version of today (core/upgrade.py). Nothing is checked
here: deciders decide, and mypy sees that an event is whole.
"""

from __future__ import annotations

from tenuto.core.upgrade import EVERY, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records import events
    from tenuto.core.records.commands import Asked
    from tenuto.core.records.events import Happened
    from tenuto.core.records.run import (
        Amounts,
        Done,
        Driver,
        Ended,
        Evidence,
        Found,
        HandedOver,
        IndexEntry,
        Json,
        Leg,
        Limits,
        MemoryEntry,
        Order,
        Param,
        ParamValue,
        PipelineRef,
        Receipt,
        Said,
        ScheduledStep,
        Shown,
        StepStatus,
        Usage,
        Wanted,
    )


def _stamp(type_: str, asked: Asked) -> Happened:
    return {"v": VERSIONS.get(type_, EVERY), "at": asked["at"], "by": asked["by"]}


def run_started(
    asked: Asked,
    *,
    run: str,
    name: str,
    request: str,
    summary: str,
    mode: str,
    pipeline: PipelineRef,
    driver: Driver,
    dialects: dict[str, Json],
    order: Order,
    schedule: list[ScheduledStep],
    evidence: dict[str, Evidence],
    settings: Json,
) -> events.RunStarted:
    return {
        "type": "RunStarted",
        **_stamp("RunStarted", asked),
        "run": run,
        "name": name,
        "request": request,
        "summary": summary,
        "mode": mode,
        "pipeline": pipeline,
        "driver": driver,
        "dialects": dialects,
        "order": order,
        "schedule": schedule,
        "evidence": evidence,
        "settings": settings,
    }


def adopted(asked: Asked, *, dialect: str, path: str, sha256: str, state: Json) -> events.Adopted:
    return {
        "type": "Adopted",
        **_stamp("Adopted", asked),
        "dialect": dialect,
        "path": path,
        "sha256": sha256,
        "state": state,
    }


def step_started(asked: Asked, *, step: str, item: str | None, iteration: int, leg: Leg | None) -> events.StepStarted:
    return {
        "type": "StepStarted",
        **_stamp("StepStarted", asked),
        "step": step,
        "item": item,
        "iteration": iteration,
        "leg": leg,
    }


def step_ended(
    asked: Asked,
    *,
    step: str,
    item: str | None,
    status: Literal["success", "failed"],
    verdict: str | None,
    summary: str,
    because: list[str],
) -> events.StepEnded:
    return {
        "type": "StepEnded",
        **_stamp("StepEnded", asked),
        "step": step,
        "item": item,
        "status": status,
        "verdict": verdict,
        "summary": summary,
        "because": because,
    }


def step_skipped(asked: Asked, *, step: str, reason: str) -> events.StepSkipped:
    return {"type": "StepSkipped", **_stamp("StepSkipped", asked), "step": step, "reason": reason}


def attempt_dispatched(
    asked: Asked,
    *,
    attempt: str,
    step: str,
    role: str,
    agent: str,
    task: str,
    item: str | None,
    iteration: int,
    number: int,
    summary: str,
    reserved: Amounts,
    extra: Json,
) -> events.AttemptDispatched:
    return {
        "type": "AttemptDispatched",
        **_stamp("AttemptDispatched", asked),
        "attempt": attempt,
        "step": step,
        "role": role,
        "agent": agent,
        "task": task,
        "item": item,
        "iteration": iteration,
        "number": number,
        "summary": summary,
        "reserved": reserved,
        "extra": extra,
    }


def attempt_started(asked: Asked, *, attempt: str, extra: Json) -> events.AttemptStarted:
    return {"type": "AttemptStarted", **_stamp("AttemptStarted", asked), "attempt": attempt, "extra": extra}


def attempt_finished(
    asked: Asked,
    *,
    attempt: str,
    status: Ended,
    verdict: str | None,
    summary: str,
    said: Said | None,
    found: Found,
    receipt: Receipt,
    usage: Usage,
    extra: Json,
) -> events.AttemptFinished:
    return {
        "type": "AttemptFinished",
        **_stamp("AttemptFinished", asked),
        "attempt": attempt,
        "status": status,
        "verdict": verdict,
        "summary": summary,
        "said": said,
        "found": found,
        "receipt": receipt,
        "usage": usage,
        "extra": extra,
    }


def attempt_lost(asked: Asked, *, attempt: str, reason: str, ran: bool) -> events.AttemptLost:
    return {"type": "AttemptLost", **_stamp("AttemptLost", asked), "attempt": attempt, "reason": reason, "ran": ran}


def items_planned(
    asked: Asked,
    *,
    items: dict[str, Json],
    waves: list[list[str]],
    groups: list[list[str]],
    notes: list[str],
    made: list[str] | None = None,
    dropped: list[str] | None = None,
) -> events.ItemsPlanned:
    event: events.ItemsPlanned = {
        "type": "ItemsPlanned",
        "v": VERSIONS.get("ItemsPlanned", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "items": items,
        "waves": waves,
        "groups": groups,
        "notes": notes,
    }
    if made is not None:
        event["made"] = made
    if dropped:
        event["dropped"] = dropped
    return event


def item_changed(
    asked: Asked, *, item: str, status: StepStatus, files: list[str], harmless: bool
) -> events.ItemChanged:
    return {
        "type": "ItemChanged",
        **_stamp("ItemChanged", asked),
        "item": item,
        "status": status,
        "files": files,
        "harmless": harmless,
    }


def wave_started(asked: Asked, *, wave: int, items: list[str]) -> events.WaveStarted:
    return {"type": "WaveStarted", **_stamp("WaveStarted", asked), "wave": wave, "items": items}


def wave_ended(asked: Asked, *, wave: int) -> events.WaveEnded:
    return {"type": "WaveEnded", **_stamp("WaveEnded", asked), "wave": wave}


def gate_opened(
    asked: Asked,
    *,
    gate: str,
    name: str,
    prompt: str,
    options: list[str],
    shown: list[Shown],
    completes: bool,
    fields: dict[str, Param] | None,
) -> events.GateOpened:
    event: events.GateOpened = {
        "type": "GateOpened",
        "v": VERSIONS.get("GateOpened", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "gate": gate,
        "name": name,
        "prompt": prompt,
        "options": options,
        "shown": shown,
        "completes": completes,
    }
    if fields is not None:
        event["fields"] = fields
    return event


def gate_decided(
    asked: Asked,
    *,
    gate: str,
    name: str,
    step: str | None,
    decision: str,
    approved: bool,
    feedback: str,
    who: str,
    proof: Json,
    answers: dict[str, ParamValue] | None = None,
    stays: bool = False,
) -> events.GateDecided:
    event: events.GateDecided = {
        "type": "GateDecided",
        "v": VERSIONS.get("GateDecided", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "gate": gate,
        "name": name,
        "step": step,
        "decision": decision,
        "approved": approved,
        "feedback": feedback,
        "who": who,
        "proof": proof,
    }
    if answers is not None:
        event["answers"] = answers
    if stays:
        event["stays"] = True
    return event


def paused(
    asked: Asked,
    *,
    kind: str,
    reason: str,
    step: str | None,
    feedback: str,
    question_of: str,
    recommendations: list[str],
) -> events.Paused:
    return {
        "type": "Paused",
        **_stamp("Paused", asked),
        "kind": kind,
        "reason": reason,
        "step": step,
        "feedback": feedback,
        "question_of": question_of,
        "recommendations": recommendations,
    }


def resumed(asked: Asked, *, decision: str) -> events.Resumed:
    return {"type": "Resumed", **_stamp("Resumed", asked), "decision": decision}


def parked(asked: Asked, *, until: str, reason: str) -> events.Parked:
    return {"type": "Parked", **_stamp("Parked", asked), "until": until, "reason": reason}


def failed(asked: Asked, *, step: str | None, error: str, context: object) -> events.Failed:
    return {"type": "Failed", **_stamp("Failed", asked), "step": step, "error": error, "context": context}


def finished(asked: Asked, *, outcome: Done) -> events.Finished:
    return {"type": "Finished", **_stamp("Finished", asked), "outcome": outcome}


def cancelled(asked: Asked, *, reason: str) -> events.Cancelled:
    return {"type": "Cancelled", **_stamp("Cancelled", asked), "reason": reason}


def stopped(asked: Asked, *, reason: str) -> events.Stopped:
    return {"type": "Stopped", **_stamp("Stopped", asked), "reason": reason}


def picked_up(asked: Asked, *, session: str) -> events.PickedUp:
    return {"type": "PickedUp", **_stamp("PickedUp", asked), "session": session}


def blocked(asked: Asked, *, reason: str, stage: str | None, missing: list[str]) -> events.Blocked:
    return {"type": "Blocked", **_stamp("Blocked", asked), "reason": reason, "stage": stage, "missing": missing}


def unblocked(asked: Asked, *, stage: str | None) -> events.Unblocked:
    return {"type": "Unblocked", **_stamp("Unblocked", asked), "stage": stage}


def stage_restarted(
    asked: Asked, *, stage: str, reason: str, to: str, extra: Json | None = None
) -> events.StageRestarted:
    event: events.StageRestarted = {
        "type": "StageRestarted",
        "v": VERSIONS.get("StageRestarted", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "stage": stage,
        "reason": reason,
        "to": to,
    }
    if extra is not None:
        event["extra"] = extra
    return event


def review_recorded(asked: Asked, *, step: str, changes: Json) -> events.ReviewRecorded:
    return {"type": "ReviewRecorded", **_stamp("ReviewRecorded", asked), "step": step, "changes": changes}


def artifact_stored(
    asked: Asked, *, name: str, path: str, sha256: str, size: int, step: str | None, attempt: str | None
) -> events.ArtifactStored:
    return {
        "type": "ArtifactStored",
        **_stamp("ArtifactStored", asked),
        "name": name,
        "path": path,
        "sha256": sha256,
        "size": size,
        "step": step,
        "attempt": attempt,
    }


def memory_written(
    asked: Asked, *, kind: Literal["decisions", "lessons", "updates"], entries: list[MemoryEntry]
) -> events.MemoryWritten:
    return {"type": "MemoryWritten", **_stamp("MemoryWritten", asked), "kind": kind, "entries": entries}


def index_written(asked: Asked, *, kind: Literal["index"], entries: list[IndexEntry]) -> events.IndexWritten:
    return {"type": "MemoryWritten", **_stamp("MemoryWritten", asked), "kind": kind, "entries": entries}


def memory_pruned(asked: Asked, *, keep: list[str]) -> events.MemoryPruned:
    return {"type": "MemoryPruned", **_stamp("MemoryPruned", asked), "keep": keep}


def memory_invalidated(asked: Asked, *, steps: list[str], reason: str) -> events.MemoryInvalidated:
    return {"type": "MemoryInvalidated", **_stamp("MemoryInvalidated", asked), "steps": steps, "reason": reason}


def memory_cleaned(asked: Asked) -> events.MemoryCleaned:
    return {"type": "MemoryCleaned", **_stamp("MemoryCleaned", asked)}


def flag_set(asked: Asked, *, flags: Json) -> events.FlagSet:
    return {"type": "FlagSet", **_stamp("FlagSet", asked), "flags": flags}


def commit_recorded(asked: Asked, *, step: str, hash: str, message: str, extra: Json) -> events.CommitRecorded:
    return {
        "type": "CommitRecorded",
        **_stamp("CommitRecorded", asked),
        "step": step,
        "hash": hash,
        "message": message,
        "extra": extra,
    }


def context_saved(asked: Asked, *, context: Json, reason: str) -> events.ContextSaved:
    return {"type": "ContextSaved", **_stamp("ContextSaved", asked), "context": context, "reason": reason}


def context_restored(asked: Asked, *, session: str) -> events.ContextRestored:
    return {"type": "ContextRestored", **_stamp("ContextRestored", asked), "session": session}


def answers_recorded(asked: Asked, *, answers: Json) -> events.AnswersRecorded:
    return {"type": "AnswersRecorded", **_stamp("AnswersRecorded", asked), "answers": answers}


def settings_changed(asked: Asked, *, changes: Json) -> events.SettingsChanged:
    return {"type": "SettingsChanged", **_stamp("SettingsChanged", asked), "changes": changes}


def budget_changed(asked: Asked, *, limits: Limits, steps: dict[str, Limits] | None = None) -> events.BudgetChanged:
    event: events.BudgetChanged = {
        "type": "BudgetChanged",
        "v": VERSIONS.get("BudgetChanged", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "limits": limits,
    }
    if steps is not None:
        event["steps"] = steps
    return event


def driver_changed(asked: Asked, *, driver: Driver, pipeline: PipelineRef) -> events.DriverChanged:
    return {"type": "DriverChanged", **_stamp("DriverChanged", asked), "driver": driver, "pipeline": pipeline}


def shown_in(asked: Asked, *, dialect: str, place: Json) -> events.ShownIn:
    return {"type": "ShownIn", **_stamp("ShownIn", asked), "dialect": dialect, "place": place}


def session_bound(asked: Asked, *, session: str) -> events.SessionBound:
    return {"type": "SessionBound", **_stamp("SessionBound", asked), "session": session}


def foreign_edit_absorbed(
    asked: Asked, *, dialect: str, path: str, sha256: str, extra: Json, drop: list[list[str]]
) -> events.ForeignEditAbsorbed:
    return {
        "type": "ForeignEditAbsorbed",
        **_stamp("ForeignEditAbsorbed", asked),
        "dialect": dialect,
        "path": path,
        "sha256": sha256,
        "extra": extra,
        "drop": drop,
    }


def forked(
    asked: Asked,
    *,
    source: str,
    at_step: str,
    at_version: int,
    approved: list[str] | None = None,
    answers: dict[str, dict[str, ParamValue]] | None = None,
) -> events.Forked:
    event: events.Forked = {
        "type": "Forked",
        "v": VERSIONS.get("Forked", EVERY),
        "at": asked["at"],
        "by": asked["by"],
        "source": source,
        "at_step": at_step,
        "at_version": at_version,
    }
    if approved is not None:
        event["approved"] = approved
    if answers:
        event["answers"] = answers
    return event


def noted(asked: Asked, *, text: str, extra: Json) -> events.Noted:
    return {"type": "Noted", **_stamp("Noted", asked), "text": text, "extra": extra}


def current_run_changed(asked: Asked, *, run: str | None) -> events.CurrentRunChanged:
    return {"type": "CurrentRunChanged", **_stamp("CurrentRunChanged", asked), "run": run}


def file_owned(asked: Asked, *, path: str, run: str | None) -> events.FileOwned:
    return {"type": "FileOwned", **_stamp("FileOwned", asked), "path": path, "run": run}


def route_taken(
    asked: Asked, *, route: str, queue: list[Leg], resets: list[str], carry: dict[str, HandedOver], reason: str
) -> events.RouteTaken:
    return {
        "type": "RouteTaken",
        **_stamp("RouteTaken", asked),
        "route": route,
        "queue": queue,
        "resets": resets,
        "carry": carry,
        "reason": reason,
    }


def engaged(
    asked: Asked,
    *,
    pipeline: PipelineRef,
    driver: Literal["engine", "guided"],
    switches: dict[str, bool],
    params: dict[str, ParamValue],
    queue: list[Leg],
) -> events.Engaged:
    return {
        "type": "Engaged",
        **_stamp("Engaged", asked),
        "pipeline": pipeline,
        "driver": driver,
        "switches": switches,
        "params": params,
        "queue": queue,
    }


def files_seen(asked: Asked, *, files: dict[str, bool]) -> events.FilesSeen:
    return {"type": "FilesSeen", **_stamp("FilesSeen", asked), "files": files}


def action_done(asked: Asked, *, action: str, detail: Json) -> events.ActionDone:
    return {"type": "ActionDone", **_stamp("ActionDone", asked), "action": action, "detail": detail}


# ---- the queue -----------------------------------------------------------------------------------------


def request_queued(asked: Asked, *, entry: str, wanted: Wanted, schedule: str, due: str) -> events.RequestQueued:
    return {
        "type": "RequestQueued",
        **_stamp("RequestQueued", asked),
        "entry": entry,
        "wanted": wanted,
        "schedule": schedule,
        "due": due,
    }


def request_begun(asked: Asked, *, entry: str, run: str) -> events.RequestBegun:
    return {"type": "RequestBegun", **_stamp("RequestBegun", asked), "entry": entry, "run": run}


def request_refused(asked: Asked, *, entry: str, why: str, version: int) -> events.RequestRefused:
    return {
        "type": "RequestRefused",
        **_stamp("RequestRefused", asked),
        "entry": entry,
        "why": why,
        "version": version,
    }


def request_renewed(asked: Asked, *, entry: str) -> events.RequestRenewed:
    return {"type": "RequestRenewed", **_stamp("RequestRenewed", asked), "entry": entry}


def request_ended(asked: Asked, *, entry: str, run: str, status: str) -> events.RequestEnded:
    return {"type": "RequestEnded", **_stamp("RequestEnded", asked), "entry": entry, "run": run, "status": status}


def request_dropped(asked: Asked, *, entry: str, reason: str) -> events.RequestDropped:
    return {"type": "RequestDropped", **_stamp("RequestDropped", asked), "entry": entry, "reason": reason}


def schedule_kept(asked: Asked, *, schedule: str, every: str, zone: str, last: str, reason: str) -> events.ScheduleKept:
    return {
        "type": "ScheduleKept",
        **_stamp("ScheduleKept", asked),
        "schedule": schedule,
        "every": every,
        "zone": zone,
        "last": last,
        "reason": reason,
    }


def schedule_dropped(asked: Asked, *, schedule: str) -> events.ScheduleDropped:
    return {"type": "ScheduleDropped", **_stamp("ScheduleDropped", asked), "schedule": schedule}
