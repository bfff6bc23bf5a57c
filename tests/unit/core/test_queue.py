"""The queue's rules: each request begins once, in order, within its places; a schedule never piles up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenuto.core.decide import carry_out_repo
from tenuto.core.fold import fold_repo
from tenuto.core.parts import new_repo
from tenuto.core.queue.entries import due
from tenuto.errors import Refused

if TYPE_CHECKING:
    from tenuto.core.queue.entries import Standing
    from tenuto.core.records.run import Repo, Status

WANTED: Any = {
    "request": "x", "pipeline": "", "name": "", "agent": "", "roles": {}, "switches": {}, "params": {}, "limits": {},
    "steps": {},
}  # fmt: skip
T = "2026-11-19T0{}:00:00.000Z"


class Queue:
    def __init__(self, requests: int = 0) -> None:
        self.repo: Repo = new_repo()
        self.events: list[Any] = []
        for _ in range(requests):
            self.do("QueueRequest", wanted=WANTED)

    def do(self, name: str, hour: int = 1, **more: Any) -> list[str]:
        command: Any = {"do": name, "at": T.format(hour), "by": "ada", **more}
        happened = carry_out_repo(self.repo, command)
        self.events += happened
        return [event["type"] for event in happened]

    def moves(self, at_once: int = 9, held: bool = False, starting: tuple[str, ...] = (), **runs: Any) -> list[str]:
        found = due(self.repo, runs, at_once, held, starting)
        return [f"{move['act']} {move['entry']}" for move in found]


def run(status: Status, driven: bool = False, version: int = 5) -> Standing:
    return {"status": status, "version": version, "driven": driven}


def test_requests_begin_in_order_and_only_so_many_at_once() -> None:
    queue = Queue(3)
    assert queue.moves(2) == ["begin 1", "begin 2"]
    queue.do("BeginRequest", entry="1", run="one")
    assert queue.moves(2, one=run("running", True)) == ["begin 2"]
    assert queue.moves(2, starting=("2",), one=run("running", True)) == []
    assert queue.moves(2, held=True) == ["end 1"], "its run is gone; nothing begins while the budget is used up"


@pytest.mark.parametrize(
    ("standing", "moves"),
    [
        (run("running"), ["drive 1"]),
        (run("parked"), ["drive 1"]),
        (run("parked", True), []),
        (run("waiting_gate"), ["begin 2"]),
        (run("paused"), ["begin 2"]),
        (run("completed"), ["end 1", "begin 2"]),
        (run("failed"), ["end 1", "begin 2"]),
        (run("completed", True), []),
    ],
)
def test_what_holds_the_one_place(standing: Standing, moves: list[str]) -> None:
    queue = Queue(2)
    queue.do("BeginRequest", entry="1", run="one")
    assert queue.moves(1, one=standing) == moves


def test_a_request_begins_once_and_what_is_gone_is_refused_by_name() -> None:
    queue = Queue(1)
    queue.do("BeginRequest", entry="1", run="one")
    with pytest.raises(Refused, match="begun already, as run one"):
        queue.do("BeginRequest", entry="1", run="two")
    with pytest.raises(Refused, match="has begun, as run one"):
        queue.do("DropRequest", entry="1")
    queue.do("EndRequest", entry="1", status="completed")
    with pytest.raises(Refused, match="no request '1'"):
        queue.do("BeginRequest", entry="1", run="two")
    assert queue.do("QueueRequest", wanted=WANTED) == ["RequestQueued"]
    assert list(queue.repo["queue"]) == ["2"], "a number is never given twice"


def test_what_was_refused_waits_for_a_person_and_a_stuck_run_for_something_to_happen() -> None:
    queue = Queue(2)
    queue.do("RefuseRequest", entry="1", why="no agent")
    assert queue.do("RefuseRequest", entry="1", why="no agent") == []
    queue.do("BeginRequest", entry="2", run="two")
    queue.do("RefuseRequest", entry="2", why="not trusted", version=5)
    assert queue.moves(two=run("running", version=5)) == []
    assert queue.moves(two=run("running", version=6)) == ["drive 2"]
    queue.do("RenewRequest", entry="1")
    assert queue.moves(two=run("running", version=5)) == ["begin 1"]


def test_a_schedule_counts_from_when_it_is_new_and_queues_each_time_once() -> None:
    queue = Queue()
    assert queue.do("QueueRequest", 2, wanted=WANTED, schedule="nightly", due=T.format(1)) == []
    assert queue.do("KeepSchedule", 2, schedule="nightly", every="1h", zone="UTC") == ["ScheduleKept"]
    assert queue.do("KeepSchedule", 3, schedule="nightly", every="1h", zone="UTC") == []
    assert queue.do("QueueRequest", 3, wanted=WANTED, schedule="nightly", due=T.format(2)) == []
    assert queue.do("QueueRequest", 3, wanted=WANTED, schedule="nightly", due=T.format(3)) == ["RequestQueued"]
    assert queue.do("QueueRequest", 3, wanted=WANTED, schedule="nightly", due=T.format(3)) == []


def test_a_schedule_leaves_a_time_out_while_its_last_request_is_not_done() -> None:
    queue = Queue()
    queue.do("KeepSchedule", 1, schedule="nightly", every="1h", zone="UTC")
    queue.do("QueueRequest", 2, wanted=WANTED, schedule="nightly", due=T.format(2))
    queue.do("BeginRequest", entry="1", run="one")
    assert queue.do("QueueRequest", 3, wanted=WANTED, schedule="nightly", due=T.format(3)) == ["ScheduleKept"]
    assert "left out" in queue.events[-1]["reason"]
    queue.do("EndRequest", entry="1", status="completed")
    assert queue.do("QueueRequest", 3, wanted=WANTED, schedule="nightly", due=T.format(3)) == [], "it was left out"
    assert queue.do("QueueRequest", 4, wanted=WANTED, schedule="nightly", due=T.format(4)) == ["RequestQueued"]


def test_a_changed_schedule_counts_anew_and_one_that_is_gone_is_forgotten() -> None:
    queue = Queue()
    queue.do("KeepSchedule", 1, schedule="nightly", every="1h", zone="UTC")
    assert queue.do("KeepSchedule", 5, schedule="nightly", every="day 02:00", zone="UTC") == ["ScheduleKept"]
    assert queue.repo["schedules"]["nightly"]["last"] == T.format(5)
    assert queue.do("DropSchedule", schedule="nightly") == ["ScheduleDropped"]
    assert queue.do("DropSchedule", schedule="nightly") == []


def test_the_journal_tells_the_same_queue_again() -> None:
    queue = Queue(3)
    queue.do("KeepSchedule", 1, schedule="nightly", every="1h", zone="UTC")
    queue.do("QueueRequest", 2, wanted=WANTED, schedule="nightly", due=T.format(2))
    queue.do("BeginRequest", entry="1", run="one")
    queue.do("RefuseRequest", entry="2", why="no")
    queue.do("DropRequest", entry="3")
    assert fold_repo(queue.events) == queue.repo
