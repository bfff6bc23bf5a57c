"""All runs at a glance: what needs a person first, then what is under way, then what has ended.

    inbox_view(workspace, ...)   the three groups, by the summaries that the journal keeps: no run is read whole
    driven_view(workspace, ...)  who moves a run, and the command that goes on with one that nobody moves

Needs you: a gate, a question, a form, a limit that was met, a pause, a block; a run that should go on and that nobody
drives; and a run that failed since a person last looked. A parked run goes on by itself, so it is under way.

What a summary does not tell, because an earlier version wrote it, is None here, never zero.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal, TypedDict

from tenuto.core.records.run import ShownStatus, Status, Waits
from tenuto.core.status import ENDED, EVERY, OVER, RESTING, UNDER_WAY
from tenuto.core.times import iso, milliseconds
from tenuto.errors import BadInput
from tenuto.ports import Progress, RunFigures
from tenuto.show.runs import listed_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tenuto.ports import RunFilter, RunSummary
    from tenuto.workspace.workspace import Workspace

Need = Literal["gate", "form", "question", "limit", "pause", "blocked", "stalled", "failed"]
Mover = Literal["engine", "orchestrator", "person", "nobody", "parked"]

_PAGE = 50  # runs that have ended, on one page
_MOST_FAILED = 20  # that are looked at, newest first
_RECENTLY = 24 * 3_600_000  # how far back a failure counts, where nobody knows when a person last looked


class DrivenView(TypedDict):
    """Who moves a run on."""

    by: Mover  # parked: nobody needs to, it has a time; nobody: it rests, has ended, or was left alone
    words: str
    command: str  # what goes on with it; empty where somebody drives it, or nothing is left to do


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
        "needs": needs or _need(summary["status"], waits, driven),
        "waits": waits,
        "driven": driven,
        "progress": summary.get("progress"),
        "figures": summary.get("figures"),
        "error": summary.get("error", ""),
    }


def _need(status: Status, waits: Waits | None, driven: DrivenView) -> Need | None:
    if status in UNDER_WAY:
        return "stalled" if driven["by"] == "nobody" else None
    if status not in RESTING or status == "parked":
        return None
    kind = waits["kind"] if waits else _KINDS.get(status, "pause")
    if kind == "gate":
        return "form" if waits and waits["fields"] else "gate"
    return "pause" if kind == "time" else kind


_KINDS: dict[str, Need] = {"waiting_gate": "gate", "blocked": "blocked"}  # of summaries that do not say it


def driven_view(workspace: Workspace, name: str, status: str, driver: str) -> DrivenView:
    """`status` and `driver` as the run has them; a failed run can be tried again, but nothing waits for that."""
    from tenuto.engine.rest import is_driven

    on = f"tenuto resume {shlex.quote(name)}"
    if status in ENDED:
        return {"by": "nobody", "words": "it has ended", "command": ""}
    if driver == "guided":
        return {"by": "orchestrator", "words": "another orchestrator leads it", "command": ""}
    if driver != "engine":
        return {"by": "person", "words": "it is led by hand", "command": ""}
    if is_driven(workspace, name):
        return {"by": "engine", "words": "an engine on this machine drives it", "command": ""}
    if status == "parked":
        return {"by": "parked", "words": "it is parked; tenuto run goes on with it in time", "command": f"{on} --now"}
    if status in UNDER_WAY:
        return {"by": "nobody", "words": "nobody drives it", "command": on}
    return {"by": "nobody", "words": "it rests", "command": ""}
