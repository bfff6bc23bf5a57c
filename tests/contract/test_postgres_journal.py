"""What PostgreSQL's journal does beyond the contract of all stores: lost connections, a server that is killed, programs
that stand still, versions of the schema, roles, and the way to the server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.core.fold import fold
from tenuto.encoding import digest
from tenuto.errors import Conflict, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Unwritable
from tenuto.stores.journal import MOVED
from tenuto.stores.postgres import journal as journals
from tenuto.stores.postgres import schema
from tenuto.stores.postgres.journal import PostgresJournal
from tenuto.stores.postgres.schema import project_named, set_up
from tests.support.failover import RULES, standby_of, take_over
from tests.support.journals import append, noted, started
from tests.support.postgres import fresh_journal, fresh_project
from tests.support.wires import Wire

pytestmark = pytest.mark.needs("postgres")
ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[PostgresJournal]:
    made = fresh_journal(str(tmp_path / "state"))
    append(made, "a", 0, started("a"))
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[PrivatePostgres]:
    """One that may be killed."""
    with PrivatePostgres.start() as made:
        yield made


def own_journal(server: PrivatePostgres, directory: Path, address: str = "") -> PostgresJournal:
    with psycopg.connect(server.url(), autocommit=True) as owner:
        set_up(owner, project_named("own"), "here")
    return PostgresJournal(str(directory), address or server.url(), "own")


def again(journal: PostgresJournal) -> PostgresJournal:
    return PostgresJournal(journal.directory, journal.address, journal.project.name)


def texts(journal: PostgresJournal) -> list[str]:
    with journal.read() as reader:
        return [event["text"] for event in reader.events("a", 1)]


def verified(journal: PostgresJournal) -> list[Any]:
    with journal.read() as reader:
        return [*reader.verify_store(), *reader.verify_contents(), *reader.verify_run("a")]


# ---- messages ---------------------------------------------------------------------------------------


def test_a_turn_takes_four_messages_and_one_of_a_driver_three(journal: PostgresJournal) -> None:
    """Beginning with the lock, a run with its renders, all writes with the COMMIT."""
    for number in range(3):
        before = journal.link().trips
        tx = journal.begin(lock=True, remember=number > 0)
        run = tx.load("a") if number < 2 else None
        tx.load_repo()
        version = tx.version("a")
        tx.marker("unproven:a")
        tx.renders("docs/a.json") if number else None
        new = noted(str(number))
        state = fold([*tx.events("a"), new]) if run is None else fold([new], run)
        tx.append("a", version, [new], state)
        tx.remember("docs/a.json", (digest(new["text"].encode()), new["text"].encode(), "a", version + 1))
        tx.append_log("docs/history.md", b"one\n")
        assert tx.logs() == [("docs/history.md", 4 * number + 4)]
        journal.commit()
        journal.unlock()
        assert journal.link().trips - before <= (4 if number < 2 else 3)
    assert verified(journal) == [] and texts(journal) == ["0", "1", "2"]


def test_texts_that_postgresql_cannot_hold_come_back_as_they_were(journal: PostgresJournal) -> None:
    odd = ["a\0b", "\1", "\1\1\2", "\0\1\0", "plain"]
    with journal.write() as tx:
        for number, text in enumerate(odd):
            tx.put_marker(f"m{number}", text)
        tx.index("a", "spec", "docs/a.md", [("He\0ading", "vault \0 text")])
    with journal.read() as reader:
        assert [reader.marker(f"m{number}") for number in range(len(odd))] == odd
        assert [(hit["heading"], hit["text"]) for hit in reader.search("vault", 3)] == [("He\0ading", "vault \0 text")]
        assert reader.load("no\0body") is None and reader.load("half \ud83d") is None


def test_words_are_found_by_their_stem_their_beginning_and_without_accents(journal: PostgresJournal) -> None:
    with journal.write() as tx:
        tx.index(
            "a", "one", "a.md", [("Sorted", "Entries are in the café"), ("Other", "class MetricsService, rate_limiter")]
        )
        tx.index("a", "two", "b.md", [("Far", "to be sorted " + "other words " * 50)])
    with journal.read() as reader:

        def found(words: str) -> list[str]:
            return [hit["heading"] for hit in reader.search(words, 5)]

        assert found("sorting") == ["Sorted", "Far"] and found("cafe") == ["Sorted"]
        assert found("metrics") == ["Other"] and found("rate_limiter") == ["Other"]
        assert found("the") == ["Sorted"] and found("o'clock (or) & !") == [] and found("") == []


# ---- a connection that breaks, a server that is killed ---------------------------------------------


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_whose_answer_was_lost_is_answered_as_what_it_was(
    server: PrivatePostgres, tmp_path: Path, arrives: bool
) -> None:
    """It arrived: then it is there, and the command succeeded. It did not: then nothing is there, and that is said."""
    with Wire(f"{server.folder}/.s.PGSQL.{server.port}") as wire:
        journal = own_journal(server, tmp_path, f"postgresql://postgres@127.0.0.1:{wire.port}/postgres")
        append(journal, "a", 0, started("a"))
        wire.cut_at(b"COMMIT", arrives)
        if arrives:
            append(journal, "a", 1, noted("one"))
        else:
            with pytest.raises(Conflict, match="nothing was written") as lost:
                append(journal, "a", 1, noted("one"))
            assert lost.value.code == "connection-lost" and lost.value.retryable
            append(journal, "a", 1, noted("one"))
        assert wire.cuts == 1 and texts(journal) == ["one"] and verified(journal) == []
        journal.close()


def test_a_server_killed_under_a_commit_has_what_was_answered_and_nothing_else(
    server: PrivatePostgres, tmp_path: Path
) -> None:
    """SIGKILL to all of it just after the COMMIT reached it, again and again, whichever of the two was faster."""
    expected: list[str] = []
    with Wire(f"{server.folder}/.s.PGSQL.{server.port}") as wire:
        journal = own_journal(server, tmp_path, f"postgresql://postgres@127.0.0.1:{wire.port}/postgres")
        append(journal, "a", 0, started("a"))

        def kill() -> None:
            server.kill()
            server.resume()

        for number in range(6):
            wire.cut_at(b"COMMIT", True, kill)
            try:
                append(journal, "a", 1 + len(expected), noted(str(number)))
                expected.append(str(number))
            except Conflict as lost:
                assert lost.code == "connection-lost"
        assert wire.cuts == 6 and texts(journal) == expected and verified(journal) == []
        journal.close()


def test_a_server_killed_inside_a_turn_leaves_nothing_of_it_and_the_turn_may_be_repeated(
    server: PrivatePostgres, tmp_path: Path
) -> None:
    journal = own_journal(server, tmp_path)
    append(journal, "a", 0, started("a"))
    with pytest.raises(Conflict) as lost, journal.write() as tx:
        tx.append("a", 1, [noted("one")], fold([started("a"), noted("one")]))
        server.kill()
        tx.load("another")
    assert lost.value.code == "connection-lost" and "nothing was written" in lost.value.message
    with pytest.raises(Conflict) as away:
        append(journal, "a", 1, noted("one"))
    assert away.value.code == "database-away" and away.value.retryable
    server.resume()
    append(journal, "a", 1, noted("one"))
    assert texts(journal) == ["one"] and verified(journal) == []


def test_a_server_that_was_restarted_between_two_turns_is_not_noticed(server: PrivatePostgres, tmp_path: Path) -> None:
    journal = own_journal(server, tmp_path)
    append(journal, "a", 0, started("a"))
    for number, stop in enumerate((server.halt, server.kill)):
        stop()
        server.resume()
        append(journal, "a", 1 + number, noted(str(number)))
        stop()
        server.resume()
        assert texts(journal)[-1] == str(number)


@pytest.fixture
def pair() -> Iterator[tuple[PrivatePostgres, PrivatePostgres]]:
    with PrivatePostgres.start(rules=RULES) as first, standby_of(first) as second:
        yield first, second


def test_a_standby_that_takes_over_in_the_middle_of_a_turn_has_what_was_answered(
    pair: tuple[PrivatePostgres, PrivatePostgres], tmp_path: Path
) -> None:
    first, second = pair
    address = f"host={first.folder},{second.folder} port={first.port} dbname=postgres user=postgres"
    journal = own_journal(first, tmp_path, address)
    append(journal, "a", 0, started("a"), noted("answered"))
    with pytest.raises(Conflict, match="nothing was written") as told, journal.write() as tx:
        tx.append("a", 2, [noted("lost")], fold([started("a"), noted("answered"), noted("lost")]))
        first.kill()
        take_over(second)
        tx.load("another")
    assert told.value.code == "connection-lost"
    append(journal, "a", 2, noted("goes on"))
    assert texts(journal) == ["answered", "goes on"] and verified(journal) == []


def test_a_commit_during_which_a_standby_takes_over_is_answered_as_what_it_was(
    pair: tuple[PrivatePostgres, PrivatePostgres], tmp_path: Path
) -> None:
    first, second = pair

    def fail_over() -> None:
        first.kill()
        take_over(second)

    with Wire(f"{first.folder}/.s.PGSQL.{first.port}") as wire:
        ways = f"host=127.0.0.1,{second.folder} port={wire.port},{second.port}"
        journal = own_journal(first, tmp_path, f"{ways} dbname=postgres user=postgres")
        append(journal, "a", 0, started("a"))
        wire.cut_at(b"COMMIT", True, fail_over)
        expected = []
        try:
            append(journal, "a", 1, noted("one"))
            expected.append("one")
        except Conflict as lost:
            assert lost.code == "connection-lost"
        assert wire.cuts == 1 and texts(journal) == expected and verified(journal) == []
        append(journal, "a", 1 + len(expected), noted("goes on"))
        journal.close()


# ---- who stands still -------------------------------------------------------------------------------

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import fold
from tenuto.errors import TenutoError
from tenuto.stores.journal import MOVED
from tenuto.stores.postgres import journal as journals
journals._STILL_SECONDS = 1
journal = journals.PostgresJournal(*sys.argv[2:5])
tx = journal.begin(lock=True)
run = tx.load("a")
event = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": "t", "text": "frozen", "extra": {}}
tx.append("a", run["version"], [event], fold([event], run))
print("inside", flush=True)
sys.stdin.readline()
try:
    journal.commit()
    print("committed")
except TenutoError as error:
    print(error.code, error.message)
"""


def test_a_program_that_is_frozen_inside_a_turn_is_cut_off_and_told_so(
    journal: PostgresJournal, tmp_path: Path
) -> None:
    """A laptop that is closed: whoever waits goes on, and what it had not committed is not there."""
    command = [sys.executable, "-c", HOLDER, ROOT, str(tmp_path / "there"), journal.address, journal.project.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "inside\n"
        holder.send_signal(signal.SIGSTOP)
        append(journal, "a", 1, noted("goes on"))
        holder.send_signal(signal.SIGCONT)
        said, _ = holder.communicate("\n")
    assert "nothing was written" in said and "committed" not in said
    assert texts(journal) == ["goes on"] and verified(journal) == []


def test_who_may_not_wait_for_ever_is_refused_by_name_while_another_machine_writes(
    journal: PostgresJournal, tmp_path: Path
) -> None:
    elsewhere = PostgresJournal(str(tmp_path / "there"), journal.address, journal.project.name)
    elsewhere.longest_wait = 0.05
    with journal.write() as tx:
        with pytest.raises(Conflict) as refused, elsewhere.write():
            raise AssertionError("two write at once")
        assert refused.value.code == "journal-busy"
        tx.put_marker("m", "1")
    append(elsewhere, "a", 1, noted("said"))
    assert texts(journal) == ["said"]


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import fold
from tenuto.stores.postgres.journal import PostgresJournal
journal = PostgresJournal(*sys.argv[2:5])
for number in range(10):
    with journal.write() as tx:
        run = tx.load("a")
        event = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": sys.argv[5], "text": str(number), "extra": {}}
        tx.append("a", run["version"], [event], fold([event], run))
"""  # noqa: E501


def test_writers_on_many_machines_lose_nothing_and_every_number_is_used_once(
    journal: PostgresJournal, tmp_path: Path
) -> None:
    """Each from a folder of its own, as on another machine: the lock is the database's."""
    place = (journal.address, journal.project.name)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, ROOT, str(tmp_path / f"m{n}"), *place, f"w{n}"])
        for n in range(8)
    ]
    assert [writer.wait() for writer in writers] == [0] * 8
    with journal.read() as reader:
        events = [*reader.events("a", 1)]
        assert reader.version("a") == 81
    for n in range(8):
        assert [event["text"] for event in events if event["by"] == f"w{n}"] == list(map(str, range(10)))


def test_who_waits_for_a_change_is_woken_by_it(journal: PostgresJournal) -> None:
    before = journal.pulse()
    other = again(journal)
    append(other, "a", 1, noted("meanwhile"))
    assert journal.await_pulse(before, 60) == other.pulse() != before
    assert journal.await_pulse(other.pulse(), 0.01) == other.pulse()


def test_who_waits_for_a_change_is_told_by_name_that_the_server_went_away(
    server: PrivatePostgres, tmp_path: Path
) -> None:
    with Wire(f"{server.folder}/.s.PGSQL.{server.port}") as wire:
        address = f"host=127.0.0.1 port={wire.port} dbname=postgres user=postgres"
        journal = own_journal(server, tmp_path, address)
        append(journal, "a", 0, started("a"))
        pulse = journal.pulse()
        wire.cut_at(b"LISTEN", False)
        with pytest.raises(Conflict) as cut:
            journal.await_pulse(pulse, 60)
        assert cut.value.code == "connection-lost"
        server.kill()
        with pytest.raises(Conflict) as away:
            journal.await_pulse(pulse, 60)
        assert away.value.code == "database-away"
        journal.close()


# ---- versions ---------------------------------------------------------------------------------------


def every_first_step(journal: PostgresJournal) -> list[Any]:
    def read() -> None:
        with journal.read():
            pass

    def write() -> None:
        with journal.write():
            pass

    return [read, write, journal.pulse, journal.exists]


@pytest.mark.parametrize(("version", "code"), [(99, "schema-newer"), (0, "schema-older")])
def test_a_schema_of_another_version_is_refused_by_name(journal: PostgresJournal, version: int, code: str) -> None:
    journal.first([*journal.opening("BEGIN"), f"UPDATE part SET version={version}", "COMMIT"])
    for step in every_first_step(again(journal)):
        with pytest.raises(SchemaSkew) as refusal:
            step()
        assert (refusal.value.exit_code, refusal.value.code) == (6, code) and str(version) in refusal.value.message


def test_an_older_schema_is_brought_up_to_date_by_its_owner_and_keeps_everything(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(journal, "a", 1, noted("from before"))
    steps = [*schema.JOURNAL.steps, "ALTER TABLE run ADD COLUMN colour text", "UPDATE run SET colour='blue'"]
    newer = schema.JOURNAL._replace(steps=steps)
    with psycopg.connect(journal.address, autocommit=True) as owner:
        assert set_up(owner, journal.project, "here", [newer]) == ["journal 2", "journal 3"]
        assert set_up(owner, journal.project, "here", [newer]) == []
        with pytest.raises(SchemaSkew):
            set_up(owner, journal.project, "here")
        broken = newer._replace(steps=[*steps, "ALTER TABLE run ADD COLUMN x text; UPDATE run SET nonsense=1"])
        with pytest.raises(TenutoError, match="nonsense"):
            set_up(owner, journal.project, "here", [broken])
        columns = owner.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema=%s AND table_name='run'",
            (journal.project.schema,),
        ).fetchall()
        assert ("colour",) in columns and ("x",) not in columns, "a step that fails leaves a whole version"
    monkeypatch.setattr(journals, "check_version", lambda found, address: None)
    assert texts(journal) == ["from before"]


def test_what_is_not_set_up_is_named_with_what_to_do(journal: PostgresJournal, tmp_path: Path) -> None:
    for step in every_first_step(PostgresJournal(str(tmp_path), journal.address, "nobodys")):
        with pytest.raises(NotFound) as refusal:
            step()
        assert refusal.value.code == "no-project" and "tenuto cluster init" in refusal.value.hint
    with pytest.raises(NotFound) as refusal:
        PostgresJournal(str(tmp_path), journal.address.rpartition("/")[0] + "/nowhere", "x").pulse()
    assert refusal.value.code == "no-database"


# ---- who may do what --------------------------------------------------------------------------------


def login(journal: PostgresJournal, role: str) -> PostgresJournal:
    name = f"{journal.project.schema}_{role}_login"
    with psycopg.connect(journal.address, autocommit=True) as owner:
        owner.execute(f'CREATE ROLE "{name}" LOGIN'.encode())
        owner.execute(f'GRANT "{journal.project.role(role)}" TO "{name}"'.encode())
    return PostgresJournal(journal.directory, journal.address.replace("postgres@", f"{name}@"), journal.project.name)


def test_a_driver_does_all_that_a_turn_does(journal: PostgresJournal) -> None:
    driver = login(journal, "driver")
    append(driver, "a", 1, noted("by a driver", key="k"))
    with driver.write() as tx:
        tx.put_blob(digest(b"x"), b"x")
        tx.remember("p", (digest(b"body"), b"body", "a", 2))
        tx.append_log("history.md", b"x")
        tx.index("a", "spec", "a.md", [("H", "text")])
        tx.put_marker("m", "1")
        tx.rebuild("a")
        tx.rebuild_index()
    with driver.write() as tx:
        assert tx.scrub_event("a", 2, {"at": "2026-11-15T10:00:00.000Z", "by": "t"})[0] == ["by a driver"]
    assert verified(driver) == []
    assert driver.pulse() == journal.pulse()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event",
        "UPDATE event SET digest=decode('00','hex')",
        "UPDATE event SET seq=seq+1",
        "DELETE FROM run",
        "DROP TABLE event",
        "UPDATE part SET version=9",
        "TRUNCATE event",
        "CREATE TABLE mine(x int)",
    ],
)
def test_a_driver_cannot_remove_what_happened_nor_change_its_place(journal: PostgresJournal, statement: str) -> None:
    driver = login(journal, "driver")
    with pytest.raises(Unwritable) as refused:
        driver.first([*driver.opening("BEGIN"), statement, "COMMIT"])
    assert refused.value.code == "not-allowed"
    driver.close()
    assert verified(journal) == []


def test_a_worker_reads_and_writes_nothing_of_the_journal(journal: PostgresJournal) -> None:
    worker = login(journal, "worker")
    for table in "head event run state render log logged blob piece passage note part turn".split():
        for statement in (f"SELECT * FROM {table}", f"DELETE FROM {table}"):
            with pytest.raises(Unwritable) as refused:
                worker.first([*worker.opening("BEGIN"), statement, "COMMIT"])
            assert refused.value.code == "not-allowed"
            worker.close()


def test_old_bytes_are_erased_by_the_owner_and_a_driver_is_told_by_whom(journal: PostgresJournal) -> None:
    journal.erase()
    with pytest.raises(Unwritable) as refused:
        login(journal, "driver").erase()
    assert refused.value.code == "not-erased" and "VACUUM FULL" in refused.value.hint


# ---- a journal that was moved -----------------------------------------------------------------------


def test_a_journal_that_was_moved_is_read_and_not_written(journal: PostgresJournal) -> None:
    with journal.write() as tx:
        tx.put_marker(MOVED, "/somewhere/.git/tenuto")
    with pytest.raises(Refused, match="/somewhere") as refused:
        append(journal, "a", 1, noted("late"))
    assert refused.value.code == "journal-moved"
    assert texts(journal) == []


def test_damage_is_damage_wherever_it_is(journal: PostgresJournal) -> None:
    journal.first([*journal.opening("BEGIN"), "UPDATE run SET seq=7", "COMMIT"])
    with pytest.raises(Damaged):
        journal.load("a")


def test_it_is_well_and_says_what_could_be_better(journal: PostgresJournal) -> None:
    driver = {check["name"]: check for check in login(journal, "driver").health()}
    owner = {check["name"]: check for check in journal.health()}
    assert {"database", "tls", "role", "clock", "durability", "connections", "room", "journal", "lock"} <= set(driver)
    assert driver["role"]["status"] == "ok" and owner["role"]["status"] == "note"
    assert driver["durability"]["status"] == "note", "the server of these tests flushes nothing"
    with journal.write():
        held = {check["name"]: check for check in again(journal).health()}
    assert "is writing" in held["lock"]["message"] and held["lock"]["status"] == "note"


def test_a_server_that_is_away_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    address, project = fresh_project()
    lost = PostgresJournal(str(tmp_path), address.replace("tenuto-pg-", "tenuto-no-"), project)
    assert [(check["status"], check["code"]) for check in lost.health()] == [("problem", "database-away")]
