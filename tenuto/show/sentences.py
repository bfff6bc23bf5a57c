"""Events as sentences.

    sentence(event)              what a history shows: every event has one
    progress_line(event, run)    what a person who watches needs to know; None for what is of no interest then

SENTENCES is one literal table, event type -> words. `{field}` is the event's field. A group in angle brackets is left
out when the field in it is empty: `<: {summary}>`. An event type without a sentence is shown by the words of its name,
never hidden.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenuto.core.times import between
from tenuto.show.measures import span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.core.records.events import (
        AttemptDispatched,
        AttemptFinished,
        AttemptLost,
        Event,
        ItemsPlanned,
        RouteTaken,
        StepEnded,
    )
    from tenuto.core.records.run import Attempt, Run

SENTENCES = {
    "RunStarted": "run started with pipeline {pipeline.name}<, mode {mode}><: {summary}>",
    "Adopted": "taken over from {path}",
    "StepStarted": "{step} started<, item {item}><, iteration {iteration}><, without {leg.without}>",
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
    "GateDecided": "gate {name}: {decision} by {who}<: {feedback}>< ({answers})>",
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
    "FilesSeen": "looked at files for a condition: {files}",
    "Engaged": "driven by {driver} with pipeline {pipeline.name}<, next: {queue}>",
    "ActionDone": "done by the engine: {action}< ({detail})>",
    "CurrentRunChanged": "current run: {run}",
    "FileOwned": "{path} is shown from {run}",
    "RequestQueued": "request {entry} queued<, by schedule {schedule}>: {wanted.request}",
    "RequestBegun": "request {entry} begun as run {run}",
    "RequestRefused": "request {entry} does not go on: {why}",
    "RequestRenewed": "request {entry} waits for its turn again",
    "RequestEnded": "request {entry} done: run {run} is {status}",
    "RequestDropped": "request {entry} taken out of the queue<: {reason}>",
    "ScheduleKept": "schedule {schedule} ({every}, {zone}): the next time after {last} counts<, {reason}>",
    "ScheduleDropped": "schedule {schedule} is not in the settings any more",
}
_PIECE = re.compile(r"<([^<>]*\{([\w.]+)\}[^<>]*)>|\{([\w.]+)\}")


def sentence(event: Mapping[str, object]) -> str:
    name = str(event["type"])
    words = SENTENCES.get(name)
    if words is None:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return _PIECE.sub(lambda piece: _filled(piece, event), words)


def _filled(piece: re.Match[str], event: Mapping[str, object]) -> str:
    group, optional, plain = piece.groups()
    if plain:
        return _words(event, plain) or "-"
    value = _words(event, optional)
    return group.replace("{" + optional + "}", value) if value else ""


def _words(event: Mapping[str, object], field: str) -> str:
    value: object = event
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
            return " > ".join(str(entry["step"]) for entry in entries if isinstance(entry, dict))
        case [*entries] if any(isinstance(entry, dict) for entry in entries):
            return f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
        case [*entries]:
            return ", ".join(map(str, entries))
    return str(value)


def _short(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("title") or value.get("status") or value.get("agent") or "{...}")
    return f"[{len(value)}]" if isinstance(value, list) else "none" if value is None else str(value)


# ---- for a person who watches


def progress_line(event: Event, run: Run) -> str | None:
    """`run`: as it is by now; it knows the attempts and how often a route was taken."""
    if event["type"] == "AttemptDispatched":
        return _dispatched(event)
    if event["type"] == "AttemptFinished":
        return _finished(event, run["attempts"][event["attempt"]])
    if event["type"] == "AttemptLost":
        return _lost(event, run["attempts"][event["attempt"]])
    if event["type"] == "StepEnded":
        return _ended(event)
    if event["type"] == "StepStarted" and (leg := event.get("leg")) and leg.get("without"):
        return f"{event['step']}: without {', '.join(leg['without'])}, by their conditions"
    if event["type"] == "StepSkipped":
        return f"{event['step']} is left out: {event['reason']}"
    if event["type"] == "RouteTaken":
        return _route(event, run)
    if event["type"] == "ItemsPlanned":
        return _planned(event)
    if event["type"] == "GateOpened":
        return f"waits for a person: {event['prompt']}"
    if event["type"] == "GateDecided":
        return f"{event['name']}: {event['decision']} by {event['who']}"
    if event["type"] == "Paused" or event["type"] == "Blocked":
        return f"{event['type'].lower()}: {event['reason']}"
    if event["type"] == "Parked":
        return f"parked until {event['until']}: {event['reason']}"
    if event["type"] == "Resumed" or event["type"] == "Cancelled":
        return event["type"].lower()
    return None


def first_line(text: str) -> str:
    """A check that failed brings the end of its output along: `tenuto logs` shows all of it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first} [...]" if rest else first


def _who(attempt: AttemptDispatched | Attempt) -> str:
    """The step, the agent as its place in the step is called, and its item."""
    place = str(attempt["extra"].get("seat", "")).partition("@")[0] or attempt["role"]
    item = f" on {attempt['item']}" if attempt["item"] else ""
    return f"{attempt['step']}: {place}{item}"


def _dispatched(event: AttemptDispatched) -> str:
    follows = f", after {event['extra']['follows']}" if event["extra"].get("follows") else ""
    return _who(event) + (f" (attempt {event['number']}{follows})" if event["number"] > 1 else "")


def _finished(event: AttemptFinished, attempt: Attempt) -> str:
    took = span(between(attempt["started_at"], event["at"]))
    result = event["verdict"] or event["status"]
    return f"{_who(attempt)} {result} after {took}: {first_line(event['summary'])}".rstrip(": ")


def _lost(event: AttemptLost, attempt: Attempt) -> str | None:
    return f"{attempt['step']}: {event['attempt']} is lost: {event['reason']}" if event["ran"] else None


def _ended(event: StepEnded) -> str | None:
    reason = f": {first_line(event['summary'])}" if event["summary"] else ""
    return None if event["verdict"] in (None, "DONE") else f"{event['step']} ended with {event['verdict']}{reason}"


def _route(event: RouteTaken, run: Run) -> str | None:
    steps = " > ".join(leg["step"] for leg in event["queue"])
    if event["carry"]:
        handed = "; ".join(f"{', '.join(one['paths'])} as {one['name']}" for one in event["carry"].values())
        return f"on to {steps} all the same, with {handed}"
    count = run["routes"].get(event["route"], 1)
    return f"back to {steps} ({event['route']}, {count} so far)" if event["route"] else None


def _planned(event: ItemsPlanned) -> str:
    chosen, waves = sum(len(group) for group in event["groups"]), len(event["waves"])
    dropped = [f"no longer planned: {', '.join(event['dropped'])}"] if event.get("dropped") else []
    notes = "".join(f"; {note}" for note in [*dropped, *event["notes"]])
    return f"{chosen} item{'s' * (chosen != 1)} in {waves} wave{'s' * (waves != 1)}{notes}"
