"""All runs at a glance: what needs a person first, then what is under way, then what has ended.

    inbox_view(workspace, ...)   the three groups, by the summaries that the journal keeps: no run is read whole
    unfinished_of(workspace, ...) the run of the same request that still goes on, or waits
    listed(workspace, ...)       runs, newest first, with who drives each
    queue_view(workspace)        which requests wait or have begun, what comes again and when, who works it off, and
                                 what the budget of all runs has left
    driven_view(workspace, ...)  who moves a run, and the command that goes on with one that nobody moves

Needs you: a gate, a question, a form, a limit that was met, a pause, a block; a run that should go on and that nobody
drives; and a run that failed since a person last looked. A parked run is under way until its time has come; after that
it needs you where nobody waits for it.

What a summary does not tell, because an earlier version wrote it, is None here, never zero.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal, TypedDict

from tenuto.core.records.run import Run, ShownStatus, Status, Waits
from tenuto.core.status import ENDED, EVERY, OVER, RESTING, UNDER_WAY
from tenuto.core.times import between, iso, milliseconds
from tenuto.engine.many.day import Account
from tenuto.engine.many.queue import is_worked_off, log_of, next_time
from tenuto.engine.many.timetable import at_once, schedules_of, zone_name
from tenuto.errors import BadInput, TenutoError
from tenuto.ports import Progress, RunFigures
from tenuto.show.runs import ListedRun, listed_run, summaries
from tenuto.workspace.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tenuto.core.records.run import QueueEntry, Wanted
    from tenuto.ports import Reader, RunFilter, RunSummary
    from tenuto.workspace.workspace import Workspace

Need = Literal["gate", "form", "question", "limit", "pause", "blocked", "stalled", "failed"]
Mover = Literal["engine", "waiter", "orchestrator", "person", "nobody", "parked"]

_PAGE = 50  # runs that have ended, on one page
_MOST_FAILED = 20  # that are looked at, newest first
_RECENTLY = 24 * 3_600_000  # how far back a failure counts, where nobody knows when a person last looked


class DrivenView(TypedDict):
    """Who moves a run on."""

    by: Mover  # waiter: a process waits for its time; parked: nobody does; nobody: it rests, has ended, or was left
    words: str
    command: str  # what goes on with it; empty where somebody drives it, or nothing is left to do


class DrivenRun(ListedRun):
    """A run as a list shows it."""

    driven: DrivenView


class InboxEntry(TypedDict):
    run: str
    name: str
    summary: str
    pipeline: str
    status: ShownStatus
    position: str | None
    created_at: str
    updated_at: str
    needs: Need | None
    waits: Waits | None
    driven: DrivenView
    tree: str  # the work tree that it works in; empty: it has ended, or the tree is gone
    progress: Progress | None
    figures: RunFigures | None  # None: not known of this run
    error: str


class InboxView(TypedDict):
    has_journal: bool
    needs_you: list[InboxEntry]  # who waits longest, first
    under_way: list[InboxEntry]  # the newest first
    recent: list[InboxEntry]  # the newest first
    next: str  # the run after which the next page begins; empty: this is the last one
    words: str
    status: str
    empty: Literal["", "no-journal", "no-runs", "nothing-fits"]


def inbox_view(
    workspace: Workspace,
    words: str = "",
    status: str = "",
    after: str = "",
    looked_at: str = "",
    seen: Collection[str] = (),
    most: int = _PAGE,
) -> InboxView:
    """`looked_at`: when a person last looked; `seen`: failed runs that they have put aside since."""
    chosen = _status(status)
    if not workspace.journal.exists():
        return _view([], [], [], "", words, status, "no-journal")
    now = workspace.clock()
    since = looked_at or iso((milliseconds(now) or 0) - _RECENTLY)
    which: RunFilter = {"statuses": [chosen] if chosen else list(OVER), "words": words, "after": after}
    with workspace.journal.read() as reader:
        unfinished = [one for one in reader.unfinished() if one["status"] not in OVER]
        listed = reader.runs(limit=most + 1, **which) if not chosen or chosen in OVER else []
        failed = [] if after else reader.runs(limit=_MOST_FAILED, statuses=["failed"])
        is_empty = not unfinished and not listed and not reader.runs(limit=1)
    news = {one["id"] for one in failed if one["updated_at"] > since and one["id"] not in seen}
    still = [_entry(workspace, one, "failed") for one in failed if one["id"] in news and _fits(one, words, chosen)]
    entries = [_entry(workspace, one) for one in unfinished if not after and _fits(one, words, chosen)]
    needs = sorted([*(one for one in entries if one["needs"]), *still], key=_since)
    going = [one for one in entries if not one["needs"]]
    recent = [_entry(workspace, one) for one in listed[:most] if one["id"] not in news]
    last = listed[most - 1]["id"] if len(listed) > most else ""
    shown = needs or going or recent
    return _view(needs, going, recent, last, words, status, "" if shown else "no-runs" if is_empty else "nothing-fits")


def _view(
    needs: list[InboxEntry],
    going: list[InboxEntry],
    recent: list[InboxEntry],
    after: str,
    words: str,
    status: str,
    empty: Literal["", "no-journal", "no-runs", "nothing-fits"],
) -> InboxView:
    return {
        "has_journal": empty != "no-journal",
        "needs_you": needs,
        "under_way": going,
        "recent": recent,
        "next": after,
        "words": words,
        "status": status,
        "empty": empty,
    }


def listed(workspace: Workspace, statuses: Collection[str] = (), dialect: str = "", limit: int = 0) -> list[DrivenRun]:
    """Newest first, with who drives each."""
    return [
        {**one, "driven": driven_view(workspace, one["id"], one["status"], one["driver"])}
        for one in summaries(workspace, statuses, dialect, limit)
    ]


def unfinished_of(workspace: Workspace, request: str, pipeline: str) -> tuple[Run, DrivenView] | None:
    """The newest run of this very request and pipeline that has not ended."""
    if not workspace.journal.exists():
        return None
    with workspace.journal.read() as reader:
        known = [one for one in reader.unfinished() if one["status"] not in OVER and one["driver"] != "manual"]
        for one in known:
            run = reader.load(one["id"]) if one["pipeline"]["name"] == pipeline else None
            if run is not None and run["request"] == request:
                return run, driven_view(workspace, run["id"], run["status"], run["driver"])
    return None


def count_needs(workspace: Workspace) -> int:
    """How many runs wait for a person, those that failed apart: for a title and an icon."""
    if not workspace.journal.exists():
        return 0
    with workspace.journal.read() as reader:
        unfinished = reader.unfinished()
    return sum(1 for one in unfinished if one["status"] not in OVER and _entry(workspace, one)["needs"])


def _status(word: str) -> Status | None:
    if not word:
        return None
    for status in EVERY:
        if status == word:
            return status
    raise BadInput("bad-status", f"{word!r} is no status of a run", f"one of: {', '.join(EVERY)}")


def _fits(summary: RunSummary, words: str, status: Status | None) -> bool:
    texts: Iterable[str] = (summary["id"], summary["name"], summary["summary"], summary["pipeline"]["name"])
    return status in (None, summary["status"]) and any(words.lower() in text.lower() for text in texts)


def _since(entry: InboxEntry) -> str:
    return (entry["waits"]["since"] if entry["waits"] else None) or entry["updated_at"]


def _entry(workspace: Workspace, summary: RunSummary, needs: Need | None = None) -> InboxEntry:
    driven = driven_view(workspace, summary["id"], summary["status"], summary["driver"])
    waits = summary.get("waits")
    return {
        "run": summary["id"],
        "name": summary["name"],
        "summary": summary["summary"],
        "pipeline": summary["pipeline"]["name"],
        "status": listed_run(summary)["status"],
        "position": summary["position"],
        "created_at": summary["created_at"],
        "updated_at": summary["updated_at"],
        "needs": needs or _need(summary["status"], waits, driven, workspace.clock()),
        "waits": waits,
        "driven": driven,
        "tree": _tree_of(workspace, summary["open_in"]),
        "progress": summary.get("progress"),
        "figures": summary.get("figures"),
        "error": summary.get("error", ""),
    }


def _tree_of(workspace: Workspace, tree: str | None) -> str:
    return (workspace.root_of(tree) or "") if tree is not None else ""


def _need(status: Status, waits: Waits | None, driven: DrivenView, now: str) -> Need | None:
    if status in UNDER_WAY:
        return "stalled" if driven["by"] == "nobody" else None
    if status == "parked":
        has_come = waits is None or between(now, waits["until"]) == 0
        return "stalled" if driven["by"] == "parked" and has_come else None
    if status not in RESTING:
        return None
    kind = waits["kind"] if waits else _KINDS.get(status, "pause")
    if kind == "gate":
        return "form" if waits and waits["fields"] else "gate"
    return "pause" if kind == "time" else kind


_KINDS: dict[str, Need] = {"waiting_gate": "gate", "blocked": "blocked"}  # of summaries that do not say it


def driven_view(workspace: Workspace, name: str, status: str, driver: str) -> DrivenView:
    """`status` and `driver` as the run has them; a failed run can be tried again, but nothing waits for that."""
    from tenuto.engine.rest import is_driven, is_waited_for

    on = f"tenuto resume {shlex.quote(name)}"
    if status in ENDED:
        return {"by": "nobody", "words": "it has ended", "command": ""}
    if driver == "guided":
        return {"by": "orchestrator", "words": "another orchestrator leads it", "command": ""}
    if driver != "engine":
        return {"by": "person", "words": "it is led by hand", "command": ""}
    if is_driven(workspace, name):
        return {"by": "engine", "words": "an engine on this machine drives it", "command": ""}
    if status == "parked" and is_waited_for(workspace, name):
        return {"by": "waiter", "words": "a process on this machine waits for its time", "command": f"{on} --now"}
    if status == "parked":
        return {"by": "parked", "words": "it is parked, and nobody waits for its time", "command": f"{on} --wait"}
    if status in UNDER_WAY:
        return {"by": "nobody", "words": "nobody drives it", "command": on}
    return {"by": "nobody", "words": "it rests", "command": ""}


# ---- the queue -------------------------------------------------------------------------------------------


EntryStanding = Literal["waiting", "begun", "refused", "stuck"]


class EntryView(TypedDict):
    entry: str
    request: str
    pipeline: str
    standing: EntryStanding  # stuck: its run cannot be driven
    queued_at: str
    by: str
    schedule: str
    due: str
    run: str
    status: str  # of its run
    driven: DrivenView | None
    problem: str
    log: str


class ScheduleView(TypedDict):
    schedule: str
    every: str
    zone: str
    request: str
    last: str  # "": nobody has worked off the queue since it stands in the settings
    next: str


class LeftView(TypedDict):
    span: str  # day, ever
    unit: str
    limit: int
    used: float


class QueueView(TypedDict):
    entries: list[EntryView]
    schedules: list[ScheduleView]
    worked_off: bool
    at_once: int
    zone: str
    budget: list[LeftView]
    problem: str  # why settings or schedules cannot be read


def queue_view(workspace: Workspace) -> QueueView:
    view: QueueView = {
        "entries": [],
        "schedules": [],
        "worked_off": is_worked_off(workspace),
        "at_once": 1,
        "zone": "",
        "budget": [],
        "problem": "",
    }
    with workspace.journal.read() as reader:
        repo = reader.load_repo()
        runs = {one["id"]: one for one in reader.runs()} if repo["queue"] else {}
        view["entries"] = [_queued(workspace, one, runs.get(one["run"])) for one in repo["queue"].values()]
        try:
            settings = read_settings(workspace.root, workspace.state)
            view["at_once"], view["zone"] = at_once(settings), zone_name(settings.get("zone", ""))
            view["budget"] = _budget(workspace, reader)
            now = milliseconds(workspace.clock()) or 0
            view["schedules"] = [
                {
                    "schedule": one["name"],
                    "every": one["every"],
                    "zone": zone_name(one["zone"]),
                    "request": one["wanted"]["request"],
                    "last": repo["schedules"][one["name"]]["last"] if one["name"] in repo["schedules"] else "",
                    "next": next_time(repo, one, now),
                }
                for one in schedules_of(settings)
            ]
        except TenutoError as problem:
            view["problem"] = problem.message
    return view


def budget_view(workspace: Workspace) -> list[LeftView]:
    """What all runs together have used of what they may."""
    with workspace.journal.read() as reader:
        return _budget(workspace, reader)


def _budget(workspace: Workspace, reader: Reader) -> list[LeftView]:
    return [
        {"span": one.span, "unit": one.unit, "limit": one.limit, "used": one.held}
        for one in Account(workspace).look(reader)
    ]


def _queued(workspace: Workspace, entry: QueueEntry, run: RunSummary | None) -> EntryView:
    wanted: Wanted = entry["wanted"]
    stuck = entry["status"] == "begun" and bool(entry["problem"])
    return {
        "entry": entry["id"],
        "request": wanted["request"],
        "pipeline": wanted["pipeline"],
        "standing": "stuck" if stuck else entry["status"],
        "queued_at": entry["queued_at"],
        "by": entry["by"],
        "schedule": entry["schedule"],
        "due": entry["due"],
        "run": entry["run"],
        "status": listed_run(run)["status"] if run is not None else "",
        "driven": driven_view(workspace, run["id"], run["status"], run["driver"]) if run is not None else None,
        "problem": entry["problem"],
        "log": log_of(workspace, entry["id"]) if entry["run"] or entry["problem"] else "",
    }
