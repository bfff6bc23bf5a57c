"""Events as sentences: what a history shows. One literal table, event type -> words.

`{field}` is the event's field. A group in angle brackets is left out when the field in it is
empty: `<: {summary}>`. An event type without a sentence is told by the words of its name, never hidden.
"""

from __future__ import annotations

import re
from typing import Any

SENTENCES = {
    "RunStarted": "run started with pipeline {pipeline.name}<, mode {mode}><: {summary}>",
    "Adopted": "taken over from {path}",
    "StepStarted": "{step} started<, item {item}><, iteration {iteration}>",
    "StepEnded": "{step} ended: {status}<, item {item}><, {verdict}><: {summary}>",
    "StepSkipped": "{step} skipped<: {reason}>",
    "AttemptDispatched": "{attempt} dispatched: {role}< ({agent})>< for {step}><: {task}>",
    "AttemptStarted": "{attempt} started",
    "AttemptFinished": "{attempt} {status}<, {verdict}><: {summary}>",
    "AttemptLost": "{attempt} lost<: {reason}>",
    "ItemsPlanned": "items planned: {items}",
    "ItemChanged": "item {item} is {status}",
    "WaveStarted": "wave {wave} started: {items}",
    "WaveEnded": "wave {wave} ended",
    "GateOpened": "gate {name} opened<: {prompt}>",
    "GateDecided": "gate {name}: {decision} by {who}<: {feedback}>",
    "Paused": "paused<: {reason}>",
    "Resumed": "resumed< with {decision}>",
    "Parked": "parked until {until}<: {reason}>",
    "Failed": "failed< in {step}><: {error}>",
    "Finished": "finished: {outcome}",
    "Cancelled": "cancelled<: {reason}>",
    "Stopped": "stopped<: {reason}>",
    "PickedUp": "picked up again< in session {session}>",
    "Blocked": "blocked at {reason}<, missing: {missing}>",
    "Unblocked": "unblocked< in {stage}>",
    "StageRestarted": "stage {stage} restarted<: {reason}>",
    "RouteTaken": "next: {queue}< ({route})><: {reason}>",
    "ReviewRecorded": "review of {step} recorded",
    "ArtifactStored": "{name} stored as {path} ({size} bytes)",
    "MemoryWritten": "memory: {entries} written to {kind}",
    "MemoryPruned": "memory pruned<, kept: {keep}>",
    "MemoryInvalidated": "memory of {steps} invalidated<: {reason}>",
    "MemoryCleaned": "memory cleaned",
    "FlagSet": "set: {flags}",
    "CommitRecorded": "commit {hash} of {step}<: {message}>",
    "ContextSaved": "resume context saved<: {reason}>",
    "ContextRestored": "resume context restored",
    "AnswersRecorded": "answered: {answers}",
    "SettingsChanged": "settings changed: {changes}",
    "BudgetChanged": "budget: {limits}",
    "DriverChanged": "driven by {driver} from here",
    "ShownIn": "shown in {dialect}",
    "SessionBound": "session {session} bound",
    "ForeignEditAbsorbed": "edit of {path} by another program taken in",
    "Forked": "forked from {source} at {at_step}",
    "Noted": "{text}",
    "Engaged": "driven by {driver} with pipeline {pipeline.name}<, next: {queue}>",
    "ActionDone": "done by the engine: {action}< ({detail})>",
    "CurrentRunChanged": "current run: {run}",
    "FileOwned": "{path} is shown from {run}",
}
_PIECE = re.compile(r"<([^<>]*\{([\w.]+)\}[^<>]*)>|\{([\w.]+)\}")


def sentence(event: dict[str, Any]) -> str:
    words = SENTENCES.get(event["type"])
    if words is None:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(event["type"])).lower()
    return _PIECE.sub(lambda found: _filled(found, event), words)


def _filled(found: re.Match[str], event: dict[str, Any]) -> str:
    group, optional, plain = found.groups()
    if plain:
        return _told(event, plain) or "-"
    value = _told(event, optional)
    return group.replace("{" + optional + "}", value) if value else ""


def _told(event: dict[str, Any], field: str) -> str:
    value: Any = event
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    match value:
        case None | "" | []:
            return ""
        case dict() if all(isinstance(item, dict) and "title" in item for item in value.values()):
            return ", ".join(f"{key} ({item['title']})" if item["title"] else key for key, item in value.items())
        case dict():  # `case {}` would be any of them
            return ", ".join(f"{key}={_short(item)}" for key, item in value.items())
        case [*entries] if all(isinstance(entry, dict) and "step" in entry for entry in entries):
            return " > ".join(str(entry["step"]) for entry in entries)
        case [*entries] if any(isinstance(entry, dict) for entry in entries):
            return f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
        case [*entries]:
            return ", ".join(map(str, entries))
    return str(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("title") or value.get("status") or value.get("agent") or "{...}")
    return f"[{len(value)}]" if isinstance(value, list) else "none" if value is None else str(value)
