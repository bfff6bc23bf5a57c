"""What happens in a run, line by line, for whoever has no terminal: a log file, a pipe, a CI job.

    line(event, run) -> one line, or None for what is of no interest while one watches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tenuto.core.times import between
from tenuto.entrypoints.cli.amounts import span

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace


class Telling:
    """Everything since the last call, each event once."""

    def __init__(self, workspace: Workspace, run: str, since: int = 0) -> None:
        self.workspace = workspace
        self.name = run
        self.seen = since

    def lines(self) -> Iterator[str]:
        with self.workspace.journal.read() as reader:
            run = reader.load(self.name)
            events = list(reader.events(self.name, self.seen))
        self.seen += len(events)
        for event in events if run else ():
            words = line(event, run)
            if words is not None:
                yield words


def line(event: Any, run: Any) -> str | None:
    teller: Callable[[Any, Run], str | None] | None = _TELLERS.get(event["type"])
    return teller(event, run) if teller else None


def _who(attempt: Any) -> str:
    """step: agent, as its place in the step is called, and its item."""
    seat = str(attempt["extra"].get("seat", "")).partition("@")[0] or attempt["role"]
    item = f" on {attempt['item']}" if attempt["item"] else ""
    return f"{attempt['step']}: {seat}{item}"


def _dispatched(e: Any, run: Run) -> str:
    follows = f", after {e['extra']['follows']}" if e["extra"].get("follows") else ""
    return _who(e) + (f" (attempt {e['number']}{follows})" if e["number"] > 1 else "")


def _finished(e: Any, run: Run) -> str:
    attempt = run["attempts"][e["attempt"]]
    took = span(between(attempt["started_at"], e["at"]))
    return f"{_who(attempt)} {e['verdict'] or e['status']} after {took}: {first_line(e['summary'])}".rstrip(": ")


def first_line(text: str) -> str:
    """A check that failed brings the end of its output along: `tenuto logs` shows all of it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first} [...]" if rest else first


def _lost(e: Any, run: Run) -> str | None:
    return f"{run['attempts'][e['attempt']]['step']}: {e['attempt']} is lost: {e['reason']}" if e["ran"] else None


def _ended(e: Any, run: Run) -> str | None:
    reason = f": {first_line(e['summary'])}" if e["summary"] else ""
    return None if e["verdict"] in (None, "DONE") else f"{e['step']} ended with {e['verdict']}{reason}"


def _routed(e: Any, run: Run) -> str | None:
    hops = " > ".join(hop["step"] for hop in e["queue"])
    if e["carry"]:
        handed = "; ".join(f"{', '.join(one['paths'])} as {one['name']}" for one in e["carry"].values())
        return f"on to {hops} all the same, with {handed}"
    return f"back to {hops} ({e['route']}, {run['routes'].get(e['route'], 1)} so far)" if e["route"] else None


def _planned(e: Any, run: Run) -> str:
    chosen = sum(len(group) for group in e["groups"])
    notes = "".join(f"; {note}" for note in e["notes"])
    return f"{chosen} items in {len(e['waves'])} waves{notes}"


_TELLERS: dict[str, Callable[[Any, Run], str | None]] = {
    "AttemptDispatched": _dispatched, "AttemptFinished": _finished, "AttemptLost": _lost, "StepEnded": _ended,
    "RouteTaken": _routed, "ItemsPlanned": _planned,
    "StepSkipped": lambda e, run: f"{e['step']} is left out: {e['reason']}",
    "GateOpened": lambda e, run: f"waits for a person: {e['prompt']}",
    "GateDecided": lambda e, run: f"{e['name']}: {e['decision']} by {e['who']}",
    "Paused": lambda e, run: f"paused: {e['reason']}",
    "Parked": lambda e, run: f"parked until {e['until']}: {e['reason']}",
    "Resumed": lambda e, run: "resumed", "Cancelled": lambda e, run: "cancelled",
    "Blocked": lambda e, run: f"blocked: {e['reason']}",
}  # fmt: skip
