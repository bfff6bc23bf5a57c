"""What workers and drivers agree on, on a real PostgreSQL: leases, the fence, caps, logins.

No clock of ours is asked: where a test needs a lease to be over, it says so to the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest

from tenuto.cluster.board import Claim, DriverBoard, Held, Offer, WorkerBoard
from tenuto.cluster.checkup import survey
from tenuto.cluster.database import WORKERS, Line, allow, connect, install
from tenuto.cluster.machines import machines_view
from tenuto.errors import BadInput, NotFound, Refused, SchemaSkew

pytestmark = pytest.mark.needs("postgres")
LONG_AGO = "clock_timestamp() - interval '1 second'"


class Ground:
    def __init__(self, address: str) -> None:
        self.address = address
        install(address)
        self.lines: list[Line] = []
        self.driver = DriverBoard(self.line(), "p")
        self.worker = self.board("w1")

    def line(self, address: str = "") -> Line:
        self.lines.append(Line(address or self.address))
        return self.lines[-1]

    def board(self, name: str, *, slots: int = 8, labels: tuple[str, ...] = (), login: str = "") -> WorkerBoard:
        board = WorkerBoard(self.line(self.as_login(login) if login else ""), name)
        board.register("default", slots, labels, "0", "here")
        return board

    def as_login(self, login: str) -> str:
        allow(self.address, login, WORKERS)
        parts = urlsplit(self.address)
        return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()

    def offer(
        self, task: str, *, labels: list[str] | None = None, priority: int = 0, contents: list[str] | None = None
    ) -> bool:
        return self.driver.offer(Offer(task, "p", "r", task, "default", "{}", contents or [], labels or [], priority))

    def claimed(self, task: str, board: WorkerBoard | None = None) -> Held:
        claim = (board or self.worker).claim(task)
        assert claim.answer == "claimed"
        return Held(task, claim.epoch)

    def tell(self, question: str) -> None:
        with connect(self.address) as connection:
            connection.execute(question.encode())

    def lose(self, task: str) -> None:
        """Its lease is over, and a driver has ended it."""
        self.tell(f"UPDATE lease SET until = {LONG_AGO}, seconds = 0 WHERE task = '{task}'")
        assert self.driver.expire() == [task]


@pytest.fixture
def ground(database: str) -> Iterator[Ground]:
    made = Ground(database)
    yield made
    for line in made.lines:
        line.close()


# ---- claims


def test_an_attempt_is_claimed_once_whoever_asks(ground: Ground) -> None:
    ground.offer("t")
    other = ground.board("w2")
    first = ground.worker.claim("t")
    assert first == Claim("claimed", 1, 120.0, "{}")
    assert ground.worker.claim("t")._replace(answer="claimed") == first, "asked again, it is the same claim"
    assert (ground.worker.claim("t").answer, other.claim("t").answer) == ("yours", "held")


def test_many_ask_at_once_and_one_gets_it_and_no_pool_has_more_under_way_than_its_cap(ground: Ground) -> None:
    """16 workers, 40 attempts, a cap of 5: every answer is counted."""
    ground.tell("UPDATE pool SET cap = 5")
    boards = [ground.board(f"w{number}") for number in range(16)]
    tasks = [f"t{number:02}" for number in range(40)]
    for task in tasks:
        ground.offer(task)
    answers: list[tuple[str, str]] = []

    def ask(board: WorkerBoard) -> None:
        answers.extend((task, board.claim(task).answer) for task in tasks)

    _together([partial(ask, board) for board in boards])
    won = [task for task, answer in answers if answer == "claimed"]
    assert len(won) == len(set(won)) == 5
    assert {answer for _, answer in answers} == {"claimed", "yours", "held", "full"} - (
        {"yours"} - {a for _, a in answers}
    )


def test_a_place_is_free_again_when_what_held_it_has_ended_and_not_before(ground: Ground) -> None:
    """Also one whose lease is over keeps it, until somebody has ended that: it may still be at work."""
    ground.tell("UPDATE pool SET cap = 1")
    ground.offer("a")
    ground.offer("b")
    held = ground.claimed("a")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}")
    assert ground.worker.claim("b").answer == "full"
    assert ground.worker.report(held, "{}") == "accepted"
    assert ground.worker.claim("b").answer == "claimed"


def test_a_worker_takes_no_more_than_its_slots_and_nothing_while_it_drains(ground: Ground) -> None:
    small = ground.board("small", slots=1)
    for task in ("a", "b"):
        ground.offer(task)
    ground.claimed("a", small)
    assert small.claim("b").answer == "full"
    ground.worker.leave(False)
    assert (ground.worker.claim("b").answer, ground.worker.ready(9)) == ("draining", [])


def test_labels_and_versions_are_asked_of_the_worker(ground: Ground) -> None:
    ground.offer("gpu", labels=["gpu", "linux"])
    able = ground.board("able", labels=("linux", "gpu", "big"))
    assert (ground.worker.claim("gpu").answer, ground.worker.ready(9)) == ("unfit", [])
    assert able.ready(9) == ["gpu"]
    ground.tell("UPDATE task SET protocol = 99")
    assert (able.claim("gpu").answer, able.ready(9)) == ("version", [])


def test_what_waits_is_shown_by_priority_and_then_by_age(ground: Ground) -> None:
    for task, priority in (("a", 0), ("b", 5), ("c", 0)):
        ground.offer(task, priority=priority)
    assert ground.worker.ready(9) == ["b", "a", "c"]
    assert ground.worker.ready(1) == ["b"]


# ---- the fence


def test_a_result_counts_once_and_the_same_one_again_is_the_same(ground: Ground) -> None:
    """The answer to the first may have been lost on the way."""
    ground.offer("t")
    held = ground.claimed("t")
    assert ground.worker.report(held, "done") == "accepted"
    assert ground.worker.report(held, "done") == "repeated"
    assert ground.worker.report(held, "something else") == "late"
    assert [end.body for end in ground.driver.ended("r")] == ["done"]


def test_a_paid_result_counts_after_its_time_until_somebody_has_ended_the_lease(ground: Ground) -> None:
    ground.offer("t")
    held = ground.claimed("t")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}")
    assert ground.worker.report(held, "done") == "accepted"


def test_after_the_lease_was_ended_nothing_of_it_counts_and_it_is_kept_as_late(ground: Ground) -> None:
    ground.offer("t")
    held = ground.claimed("t")
    ground.lose("t")
    assert ground.worker.report(held, "done") == "late"
    assert ground.worker.beat([held]) == {"t": "over"}
    ground.worker.give_back(held)
    assert [(end.outcome, end.body) for end in ground.driver.ended("r")] == [("lost", "")]
    assert ground.worker.line.rows("SELECT task, epoch, body FROM late") == [("t", 1, "done")]


@pytest.mark.parametrize("epoch", [0, 1, 3, -1, 2**31 - 1])
def test_old_and_guessed_epochs_change_nothing(ground: Ground, epoch: int) -> None:
    """The attempt was given back and claimed again: its epoch is 2."""
    ground.offer("t")
    ground.worker.give_back(ground.claimed("t"))
    held = ground.claimed("t")
    assert held.epoch == 2
    stale = Held("t", epoch)
    assert ground.worker.report(stale, "stale") == "late"
    assert ground.worker.beat([stale]) == {"t": "over"}
    ground.worker.give_back(stale)
    with pytest.raises(Refused):
        ground.worker.content(stale, "0" * 64)
    assert ground.driver.ended("r") == []
    assert ground.worker.beat([held]) == {"t": "on"}


def test_another_worker_with_the_right_epoch_changes_nothing(ground: Ground) -> None:
    ground.offer("t")
    held = ground.claimed("t")
    other = ground.board("w2")
    assert (other.report(held, "mine"), other.beat([held])) == ("late", {"t": "over"})
    assert ground.worker.beat([held]) == {"t": "on"}


def test_a_beat_renews_what_it_names_and_nothing_else(ground: Ground) -> None:
    """A worker that was frozen inside a claim does not know that it holds it: nobody renews that."""
    for task in ("known", "forgotten"):
        ground.offer(task)
    known = ground.claimed("known")
    ground.claimed("forgotten")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}, seconds = 60")
    ground.worker.beat([known])
    rows = ground.worker.line.rows("SELECT task FROM lease WHERE until < clock_timestamp()")
    assert rows == [("forgotten",)]
    assert sorted(ground.worker.held()) == [Held("forgotten", 1), known], "a worker that starts again can ask"


def test_an_attempt_that_has_ended_is_never_offered_again(ground: Ground) -> None:
    """A driver that was asleep still believes that it has to be."""
    ground.offer("t")
    ground.worker.report(ground.claimed("t"), "done")
    ground.driver.recorded("t")
    assert not ground.offer("t")
    assert ground.worker.claim("t").answer == "gone"
    assert ground.driver.ended("r") == []


# ---- leases


def test_a_driver_that_could_not_see_the_database_ends_no_lease(ground: Ground) -> None:
    """Nor does any where the server has just been started: the workers could not beat, either."""
    ground.offer("t")
    ground.claimed("t")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}")
    assert ground.driver.expire() == [], "it has looked for less than a lease"
    ground.tell("UPDATE lease SET seconds = 0")
    assert ground.driver.expire() == ["t"]


def test_a_renewed_lease_is_not_ended(ground: Ground) -> None:
    ground.offer("t")
    held = ground.claimed("t")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}, seconds = 60")
    ground.worker.beat([held])
    ground.tell("UPDATE lease SET seconds = 0")
    assert ground.driver.expire() == []


def test_two_drivers_end_a_lease_once(ground: Ground) -> None:
    for number in range(20):
        ground.offer(f"t{number}")
        ground.tell("UPDATE worker SET slots = 99; UPDATE pool SET cap = 99")
        ground.claimed(f"t{number}")
    ground.tell(f"UPDATE lease SET until = {LONG_AGO}, seconds = 0")
    drivers = [DriverBoard(ground.line(), "p") for _ in range(4)]
    ended: list[str] = []
    _together([partial(_collect, ended, one.expire) for one in drivers])
    assert sorted(ended) == sorted(f"t{number}" for number in range(20))


# ---- given back, cancelled


def test_what_nobody_can_carry_out_is_given_back_a_few_times_and_then_ends(ground: Ground) -> None:
    ground.offer("t")
    for _ in range(5):
        ground.worker.give_back(ground.claimed("t"), "no such secret here")
    assert [(end.outcome, end.why) for end in ground.driver.ended("r")] == [("unwanted", "no such secret here")]


def test_a_worker_that_is_stopped_gives_back_as_often_as_it_likes(ground: Ground) -> None:
    ground.offer("t")
    for _ in range(9):
        ground.worker.give_back(ground.claimed("t"))
    assert ground.worker.ready(9) == ["t"]


def test_a_task_that_was_given_back_may_have_to_wait(ground: Ground) -> None:
    ground.offer("t")
    ground.worker.give_back(ground.claimed("t"), "the origin does not answer", 3600.0)
    assert ground.worker.ready(9) == []


def test_cancelled_while_it_waits_it_is_over_and_under_way_its_worker_is_told(ground: Ground) -> None:
    for task in ("waits", "runs"):
        ground.offer(task)
    held = ground.claimed("runs")
    for task in ("waits", "runs"):
        ground.driver.cancel(task)
    assert [(end.task, end.outcome) for end in ground.driver.ended("r")] == [("waits", "withdrawn")]
    assert ground.worker.beat([held]) == {"runs": "cancel"}
    assert ground.worker.claim("waits").answer == "gone"
    assert ground.worker.report(held, "cancelled") == "accepted"


# ---- logins


def test_a_worker_acts_under_its_own_login_only(ground: Ground) -> None:
    ground.offer("t")
    ground.offer("u")
    alice = ground.board("alice", login="alice")
    held = ground.claimed("t", alice)
    bob = WorkerBoard(ground.line(ground.as_login("bob")), "alice")
    calls: tuple[Callable[[], object], ...] = (
        lambda: bob.claim("u"),
        lambda: bob.beat([held]),
        lambda: bob.report(held, "mine"),
        lambda: bob.give_back(held),
        lambda: bob.content(held, "0" * 64),
        lambda: bob.register("default", 1, [], "0", "there"),
        lambda: bob.ready(1),
        lambda: bob.held(),
        lambda: bob.leave(True),
    )
    for call in calls:
        with pytest.raises(Refused, match="no worker of the login bob"):
            call()
    assert alice.beat([held]) == {"t": "on"}


def test_a_workers_login_reads_and_writes_no_table_and_calls_nothing_of_drivers(ground: Ground) -> None:
    ground.offer("t")
    board = ground.board("alice", login="alice")
    tables = ("pool", "worker", "content", "task", "lease", "report", "late", "driver")
    for table in tables:
        for question in (f"SELECT FROM {table}", f"DELETE FROM {table}", f"UPDATE {table} SET ctid = ctid"):
            with psycopg.connect(board.line.address, autocommit=True) as connection, pytest.raises(psycopg.Error):
                connection.execute(f"SET search_path = tenuto_cluster; {question}".encode())
    own = DriverBoard(board.line, "p")
    calls: tuple[Callable[[], object], ...] = (
        lambda: own.expire(),
        lambda: own.cancel("t"),
        lambda: own.drive("r", "h", "p", 1.0),
        lambda: own.offer(Offer("x", "p", "r", "x", "default", "{}", [], [])),
    )
    for call in calls:
        with pytest.raises(Refused):
            call()


def test_a_text_is_served_to_who_holds_a_lease_that_lists_it(ground: Ground) -> None:
    mine, other = ground.driver.keep(b"mine" * 1000), ground.driver.keep(b"of another task")
    ground.offer("t", contents=[mine])
    held = ground.claimed("t")
    assert ground.worker.content(held, mine) == b"mine" * 1000
    with pytest.raises(Refused, match="no lease"):
        ground.worker.content(held, other)
    ground.lose("t")
    with pytest.raises(Refused, match="no lease"):
        ground.worker.content(held, mine)


# ---- drivers


def test_a_run_is_driven_by_one_until_it_lets_go_or_its_time_is_over(ground: Ground) -> None:
    assert ground.driver.drive("r", "first", "here", 3600) == "first"
    assert ground.driver.drive("r", "second", "there", 3600) == "first"
    ground.driver.let_go("r", "second")
    assert ground.driver.drive("r", "second", "there", 3600) == "first"
    ground.driver.let_go("r", "first")
    assert ground.driver.drive("r", "second", "there", 3600) == "second"
    assert ground.driver.drive("r", "third", "there", 3600) == "third", "where the second was, only one can be"


# ---- the database itself


def test_a_broken_connection_is_made_again_and_the_question_asked_again(ground: Ground) -> None:
    ground.offer("t")
    ground.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    line = Line(ground.address, patience=60.0)
    ground.lines.append(line)
    board = WorkerBoard(line, "w1")
    board.ready(1)
    ground.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert board.claim("t").answer == "claimed"


def test_a_database_that_is_not_prepared_or_is_of_another_edition_is_refused(database: str) -> None:
    with pytest.raises(Refused, match="not prepared"):
        Line(database).rows("SELECT 1")
    assert (install(database), install(database)) == (True, False)
    with connect(database) as connection:
        connection.execute("UPDATE edition SET number = 99")
    with pytest.raises(SchemaSkew, match="edition 99"):
        Line(database).rows("SELECT 1")


@pytest.mark.parametrize(
    "address", ["postgresql://db.example.org/x?sslmode=require", "postgresql://me:secret@localhost/x"]
)
def test_an_address_that_would_not_be_safe_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises((Refused, BadInput)):
        connect(address)


def test_a_pool_that_is_not_there_is_named(ground: Ground) -> None:
    with pytest.raises(NotFound, match="no pool big"):
        ground.worker.register("big", 1, [], "0", "here")


def _together(calls: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _collect(into: list[str], ask: Callable[[], list[str]]) -> None:
    into.extend(ask())


def test_what_there_is_to_see_is_seen(ground: Ground) -> None:
    for task in ("a", "b", "c"):
        ground.offer(task)
    lost = ground.claimed("a")
    ground.lose("a")
    ground.worker.report(lost, "{}")
    ground.claimed("b")
    view = machines_view(ground.line())
    assert [(one["pool"], one["queued"], one["running"]) for one in view["pools"]] == [("default", 1, 1)]
    assert [(one["worker"], one["state"], one["busy"]) for one in view["workers"]] == [("w1", "at work", 1)]
    assert [(one["attempt"], one["worker"]) for one in view["under_way"]] == [("b", "w1")]
    assert [(one["attempt"], one["epoch"]) for one in view["late"]] == [("a", 1)]


def test_doctor_says_whether_this_machine_may_work_or_drive(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(ground.address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS nobody_here")
        connection.execute("CREATE ROLE nobody_here LOGIN")
    ground.as_login("alice")
    parts = urlsplit(ground.address)
    seen = {}
    for login in ("alice", "nobody_here"):
        address = parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()
        monkeypatch.setenv("TENUTO_CLUSTER", address)
        seen[login] = [(one["status"], one["message"]) for one in survey("", "/") if one["status"] != "note"]
    assert seen["alice"][0][0] == "ok" and "alice may work;" in seen["alice"][0][1]
    assert [status for status, _ in seen["nobody_here"]] == ["problem"]
    monkeypatch.delenv("TENUTO_CLUSTER")
    assert list(survey("", "/")) == []


def test_an_answer_is_durable_also_where_the_server_is_told_to_answer_early(ground: Ground) -> None:
    """A claim that the server forgets could be given to two."""
    with psycopg.connect(ground.address, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    assert ground.line().value("SELECT current_setting('synchronous_commit')") == "on"
