"""The queue: which requests wait, which have begun, and what is to be done about them now.

    decide_queue(repo, command) -> events      may it happen?
    due(repo, runs, at_once, ...) -> moves    what whoever works off the queue is to do now, in this order

Rule 1: a request begins once. Who begins it says so in the same turn as its run starts; a second one is refused.

Rule 2: requests begin in the order in which they were queued. A run that has begun comes before one that has not.

Rule 3: at most `at_once` runs hold a place. A run holds one while somebody drives it, or could; also while it is
parked, for the next one would meet the same limit. One that waits for a person holds none.

Rule 4: a schedule queues nothing while its last request is still in the queue: that time is left out, and said so. A
schedule that is new, or was changed, counts from then on.

Rule 5: what was refused stays where it is, with the reason, until somebody renews it or takes it out. A run that nobody
can drive is tried again when something has happened to it.
"""

from __future__ import annotations

from tenuto.core.decisions import new_event
from tenuto.core.status import OVER, UNDER_WAY
from tenuto.core.times import milliseconds
from tenuto.errors import Refused, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Literal, TypedDict

    from tenuto.core.records import commands
    from tenuto.core.records.events import RepoEvent
    from tenuto.core.records.run import QueueEntry, Repo, Status

    class Standing(TypedDict):
        """What is to be known of a run that a request has begun."""

        status: Status
        version: int
        driven: bool  # somebody drives it, or waits for its time

    class Move(TypedDict):
        act: Literal["end", "drive", "begin"]
        entry: str
        run: str  # of end and drive
        status: str  # of end


HINT = "tenuto queue"


def decide_queue(repo: Repo, command: commands.QueueCommand) -> list[RepoEvent]:
    match command["do"]:
        case "QueueRequest":
            return _queue(repo, command)
        case "BeginRequest":
            entry = _existing(repo, command["entry"])
            if entry["status"] == "begun":
                message = f"request {entry['id']} has begun already, as run {entry['run']}"
                raise Refused("already-begun", message, f"tenuto status {entry['run']}", entry=entry["id"])
            return [new_event.request_begun(command, entry=entry["id"], run=command["run"])]
        case "RefuseRequest":
            entry, version = _existing(repo, command["entry"]), command.get("version", 0)
            if (entry["problem"], entry["problem_at"]) == (command["why"], version):
                return []
            return [new_event.request_refused(command, entry=entry["id"], why=command["why"], version=version)]
        case "RenewRequest":
            entry = _existing(repo, command["entry"])
            return [new_event.request_renewed(command, entry=entry["id"])] if entry["problem"] else []
        case "EndRequest":
            entry = _existing(repo, command["entry"])
            return [new_event.request_ended(command, entry=entry["id"], run=entry["run"], status=command["status"])]
        case "DropRequest":
            entry = _existing(repo, command["entry"])
            if entry["status"] == "begun":
                message = f"request {entry['id']} has begun, as run {entry['run']}"
                raise Refused("already-begun", message, f"tenuto cancel {entry['run']}", entry=entry["id"])
            return [new_event.request_dropped(command, entry=entry["id"], reason=command.get("reason", ""))]
        case "KeepSchedule":
            return _keep(repo, command)
        case "DropSchedule":
            known = command["schedule"] in repo["schedules"]
            return [new_event.schedule_dropped(command, schedule=command["schedule"])] if known else []
        case unknown:
            assert_never(unknown)


def _existing(repo: Repo, entry: str) -> QueueEntry:
    if entry not in repo["queue"]:
        raise Refused("no-such-request", f"there is no request {entry!r} in the queue", HINT, entry=entry)
    return repo["queue"][entry]


def _queue(repo: Repo, command: commands.QueueRequest) -> list[RepoEvent]:
    name, due = command.get("schedule", ""), command.get("due", "")
    if name:
        kept = repo["schedules"].get(name)
        if kept is None or (milliseconds(due) or 0) <= (milliseconds(kept["last"]) or 0):
            return []
        earlier = [entry for entry in repo["queue"].values() if entry["schedule"] == name]
        if earlier:
            reason = f"left out at {due}: request {earlier[0]['id']} is not done"
            return [
                new_event.schedule_kept(
                    command, schedule=name, every=kept["every"], zone=kept["zone"], last=due, reason=reason
                )
            ]
    number = str(repo["queued"] + 1)
    return [new_event.request_queued(command, entry=number, wanted=command["wanted"], schedule=name, due=due)]


def _keep(repo: Repo, command: commands.KeepSchedule) -> list[RepoEvent]:
    name, every, zone = command["schedule"], command["every"], command["zone"]
    kept = repo["schedules"].get(name)
    if kept is not None and (kept["every"], kept["zone"]) == (every, zone):
        return []
    reason = "it was changed" if kept is not None else "it is new"
    at = command["at"]
    return [new_event.schedule_kept(command, schedule=name, every=every, zone=zone, last=at, reason=reason)]


# ---- what is to be done --------------------------------------------------------------------------------


def due(
    repo: Repo, runs: Mapping[str, Standing], at_once: int, held: bool = False, starting: Collection[str] = ()
) -> list[Move]:
    """`runs`: those that requests have begun; one that is missing is gone. `held`: nothing may begin now. `starting`:
    requests that are being begun."""
    begun = [entry for entry in repo["queue"].values() if entry["status"] == "begun"]
    ended = list(_ended(begun, runs))
    over = [one["entry"] for one in ended]
    left = [entry for entry in begun if entry["id"] not in over]
    places = at_once - sum(1 for entry in left if runs[entry["run"]]["driven"]) - len(starting)
    moves: list[Move] = list(ended)
    for entry in left:
        if places > 0 and _can_be_driven(entry, runs[entry["run"]]):
            moves.append({"act": "drive", "entry": entry["id"], "run": entry["run"], "status": ""})
            places -= 1
    for entry in repo["queue"].values():
        if places > 0 and not held and entry["status"] == "waiting" and entry["id"] not in starting:
            moves.append({"act": "begin", "entry": entry["id"], "run": "", "status": ""})
            places -= 1
    return moves


def _ended(begun: list[QueueEntry], runs: Mapping[str, Standing]) -> Iterator[Move]:
    for entry in begun:
        standing = runs.get(entry["run"])
        status = standing["status"] if standing is not None else "gone"
        if standing is None or (status in OVER and not standing["driven"]):
            yield {"act": "end", "entry": entry["id"], "run": entry["run"], "status": status}


def _can_be_driven(entry: QueueEntry, run: Standing) -> bool:
    stuck = bool(entry["problem"]) and entry["problem_at"] == run["version"]
    return not run["driven"] and not stuck and run["status"] in (*UNDER_WAY, "parked")
