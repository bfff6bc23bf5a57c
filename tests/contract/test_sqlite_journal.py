"""What SQLite's journal does beyond the contract of all stores: many processes, old and new schemas, its log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tenuto.core.fold import FOLD_VERSION
from tenuto.errors import Conflict, Damaged, SchemaSkew, TenutoError
from tenuto.stores import database, journal_exists, open_journal
from tenuto.stores.sqlite import SqliteJournal
from tests.support.journals import append, noted, started


def test_a_location_is_a_folder_and_its_journal_is_sqlites(tmp_path: Path) -> None:
    location = str(tmp_path / "state")
    journal = open_journal(location)
    assert isinstance(journal, SqliteJournal)
    assert not journal_exists(location) and not journal.exists()
    append(journal, "a", 0, started("a"))
    assert journal_exists(location) and journal.exists() and Path(journal.location).is_file()
    assert {path for path in journal.files() if Path(path).exists()} == set(map(str, Path(location).iterdir()))
    journal.close()


def test_no_error_of_sqlite_leaves_the_store(tmp_path: Path) -> None:
    """Whatever is asked of a file that is no database: the answer is an error of Tenuto's own."""
    (tmp_path / "journal.db").write_bytes(b"this is no database" * 1000)
    journal = SqliteJournal(str(tmp_path))
    for ask in (journal.read().__enter__, journal.write().__enter__, journal.pulse, lambda: journal.hold_open(True)):
        with pytest.raises(Damaged):
            ask()
    assert [check["status"] for check in journal.health() if check["name"] == "journal"] == ["problem"]


def test_no_module_above_the_stores_knows_which_store_it_is() -> None:
    """Another store is added in stores/ alone. What all stores share may be used above: journal, records, redaction."""
    package = Path(tenuto.__file__).parent
    inner = [path.stem for path in (package / "stores").glob("*.py")]
    shared = ("__init__", "journal", "records", "redaction", "moving")
    words = ["journal.db", "PRAGMA", "sqlite3", "SqliteJournal", ".connection()"]
    words += [f"tenuto.stores.{name} import" for name in inner if name not in shared]
    modules = [path for path in package.rglob("*.py") if "stores" not in path.relative_to(package).parts]
    assert len(modules) > 100
    assert [(str(path), word) for path in modules for word in words if word in path.read_text()] == []


class Watched(SqliteJournal):
    """Looks at the database file before and after everything that it does under the lock."""

    changed_locked = changed_unlocked = 0
    _seen = b""

    def lock(self) -> None:
        super().lock()
        self.changed_unlocked += self._look()

    def unlock(self) -> None:
        self.changed_locked += self._look()
        super().unlock()

    def _look(self) -> bool:
        """Has it changed since the last look?"""
        before, self._seen = self._seen, Path(self.location).read_bytes() if self.exists() else b""
        return before != self._seen


def test_the_log_is_checkpointed_by_the_holder_of_the_lock_at_about_200_frames(tmp_path: Path) -> None:
    """Decision 5: SQLite's own checkpoint is part of a commit. Readers and idle journals never change the database."""
    journal = Watched(str(tmp_path))
    append(journal, "a", 0, started("a"))
    for number in range(1, 201):
        append(journal, "a", number, noted("x" * 4000))
        other = SqliteJournal(str(tmp_path))
        with other.read() as reader:
            assert reader.version("a") == number + 1
        other.close()
    assert 2 <= journal.changed_locked <= 20 and not journal.changed_unlocked
    frames = os.stat(journal.location + "-wal").st_size / (4096 + 24)
    assert 150 < frames < 300, "the log is written over, not made longer"
    journal.close()


def test_a_state_row_of_another_fold_is_not_used(tmp_path: Path) -> None:
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    journal.connection().execute("UPDATE state SET fold=?, body='{\"version\": 99}'", (FOLD_VERSION + 1,))
    with journal.read() as reader:
        found = reader.load("a")
    assert found is not None and found["version"] == 1 and found["name"] == "a"


def test_a_journal_of_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    journal.connection().execute("PRAGMA user_version=99")
    journal.close()
    with pytest.raises(SchemaSkew) as refusal, SqliteJournal(str(tmp_path)).read():
        pass
    assert refusal.value.exit_code == 6 and "99" in refusal.value.message


def test_an_older_journal_is_brought_up_to_date_and_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version of Tenuto finds a journal of this one."""
    old = SqliteJournal(str(tmp_path))
    append(old, "a", 0, started("a"), noted("from before"))
    old.close()
    monkeypatch.setattr(database, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(database._MIGRATIONS, 2, "ALTER TABLE run ADD COLUMN colour TEXT;\n")
    monkeypatch.setitem(
        database._MIGRATIONS, 3, "UPDATE run SET colour='blue';\nCREATE INDEX run_colour ON run(colour);\n"
    )
    new = SqliteJournal(str(tmp_path))
    append(new, "a", 2, noted("from today"))
    with new.read() as reader:
        assert [e["text"] for e in reader.events("a", 1)] == ["from before", "from today"]
    assert new.connection().execute("SELECT id, colour FROM run").fetchall() == [("a", "blue")]
    assert new.connection().execute("PRAGMA user_version").fetchone() == (3,)
    new.close()


def test_a_migration_that_fails_leaves_a_whole_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(SqliteJournal(str(tmp_path)), "a", 0, started("a"))
    with monkeypatch.context() as newer:
        newer.setattr(database, "SCHEMA_VERSION", 2)
        newer.setitem(database._MIGRATIONS, 2, "ALTER TABLE run ADD COLUMN colour TEXT;\nUPDATE run SET nonsense=1;\n")
        with pytest.raises(TenutoError, match="no such column"), SqliteJournal(str(tmp_path)).read():
            pass
    again = SqliteJournal(str(tmp_path))
    append(again, "a", 1, noted("the old program still reads it"))
    assert "colour" not in str(again.connection().execute("SELECT sql FROM sqlite_master WHERE name='run'").fetchone())


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import fold
from tenuto.stores.sqlite import SqliteJournal
journal, name, slowest = SqliteJournal(sys.argv[2]), sys.argv[3], 0.0
import time
for number in range(int(sys.argv[4])):
    before = time.monotonic()
    with journal.write() as tx:
        run = tx.load("a")
        event = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": name, "text": str(number), "extra": {}}
        tx.append("a", run["version"], [event], fold([event], run))
    slowest = max(slowest, time.monotonic() - before)
print(slowest)
"""  # noqa: E501


def test_64_processes_lose_nothing_and_every_sequence_number_is_used_once(tmp_path: Path) -> None:
    """Each writer's updates are all there, in its own order, whoever else writes."""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, f"w{n}", "20"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(64)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    with journal.read() as reader:
        events = [e for e in reader.events("a") if e["type"] == "Noted"]
        assert reader.version("a") == 64 * 20 + 1
    for n in range(64):
        assert [e["text"] for e in events if e["by"] == f"w{n}"] == [str(i) for i in range(20)]


def test_a_log_that_was_laid_out_holds_what_was_written_and_nothing_else(tmp_path: Path) -> None:
    """A driver gives the log its blocks beforehand. Whoever finds it after a crash, at any moment, reads what was
    committed."""
    journal = SqliteJournal(str(tmp_path / "state"))
    append(journal, "a", 0, started("a"))
    for number in range(1, 31):
        if number % 10 == 1:
            journal.hold_open(number % 20 == 1)
        copy = SqliteJournal(str(shutil.copytree(tmp_path / "state", tmp_path / f"copy-{number}")))
        (tmp_path / f"copy-{number}" / "journal.db-shm").unlink()
        with copy.read() as reader:
            assert reader.version("a") == number == len([*reader.events("a")])
        append(copy, "a", number, noted("goes on"))
        copy.close()
        append(journal, "a", number, noted(str(number)))
    assert (tmp_path / "state" / "journal.db-wal").stat().st_size < 1 << 20, "it is written over, not made longer"


@pytest.mark.needs("strace")
def test_16_processes_on_a_slow_disk_wait_for_each_other_and_never_give_up(tmp_path: Path) -> None:
    """3 ms are added to each flush. (How long they wait: make bench ARGS=journal.)"""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root = str(Path(__file__).resolve().parents[2])
    slowed = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fsync,fdatasync",
        "-e",
        "inject=fsync,fdatasync:delay_exit=3000",
    ]
    command = [*slowed, sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path)]
    writers = [
        subprocess.Popen([*command, f"w{n}", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(16)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert (writer.returncode, errors) == (0, b""), errors.decode()
    with journal.read() as reader:
        assert reader.version("a") == 16 * 5 + 1


@pytest.mark.needs("strace")
def test_nobody_is_answered_before_their_write_is_flushed(tmp_path: Path) -> None:
    """The last thing that a process does to the journal before it answers is a flush; one that fails is no success."""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root, trace = str(Path(__file__).resolve().parents[2]), tmp_path / "trace"
    command = [sys.executable, "-I", "-S", "-c", WRITER, root, str(tmp_path), "w", "1"]
    watched = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=pwrite64,write,fsync,fdatasync"]
    subprocess.run([*watched, *command], check=True, capture_output=True)
    calls = [line.partition(" ")[2].strip() for line in trace.read_text().splitlines()]
    answer = next(at for at, line in enumerate(calls) if line.startswith("write(1<"))
    to_log = [line.partition("(")[0] for line in calls[:answer] if "journal.db-wal>" in line]
    assert to_log[-1] == "fdatasync" and "pwrite64" in to_log
    broken = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"]
    failed = subprocess.run([*broken, *command], check=False, capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stdout == ""
    assert "nobody can tell" in failed.stderr


TURNS = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.core.fold import fold
from tenuto.stores.sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[2])

def append(tx):
    run = tx.load("a")
    event = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": "a", "text": "t", "extra": {}}
    tx.append("a", run["version"], [event], fold([event], run))

for kind in sys.argv[3]:
    if kind == "w":
        with journal.write() as tx:
            append(tx)
    else:
        append(journal.begin(lock=True, remember=kind == "r"))
        journal.commit()
        journal.unlock()
    sys.stdout.write("answered\\n")
    sys.stdout.flush()
"""


@pytest.mark.needs("strace")
@pytest.mark.parametrize("order", ["wtwrtww", "twtrwrt"])
def test_every_answer_of_a_process_is_flushed_whatever_was_answered_before_it(tmp_path: Path, order: str) -> None:
    """Blocks of writers that share a flush, and turns that flush in their commit, on one connection."""
    journal = SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    root, trace = str(Path(__file__).resolve().parents[2]), tmp_path / "trace"
    command = [sys.executable, "-I", "-S", "-c", TURNS, root, str(tmp_path), order]
    watched = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=pwrite64,write,fsync,fdatasync"]
    subprocess.run([*watched, *command], check=True, capture_output=True)
    last, answers = "", []
    for line in trace.read_text().splitlines():
        call = line.partition(" ")[2].strip()
        if call.startswith("write(1<"):
            answers.append(last)
        elif "journal.db-wal>" in call:
            last = "written" if call.startswith("pwrite") else "flushed"
    assert answers == ["flushed"] * len(order)


def test_who_may_not_wait_for_ever_is_refused_by_name_while_another_writes(tmp_path: Path) -> None:
    """A hook: its host would give up on it, and on what it said. Nothing is written, and the next try succeeds."""
    journal, hasty = SqliteJournal(str(tmp_path)), SqliteJournal(str(tmp_path))
    append(journal, "a", 0, started("a"))
    hasty.longest_wait = 0.05
    journal.lock()
    with pytest.raises(Conflict) as refused, hasty.write():
        raise AssertionError("two write at once")
    assert refused.value.code == "journal-busy" and "another program" in refused.value.message
    journal.unlock()
    append(hasty, "a", 1, noted("said"))
    with journal.read() as reader:
        assert reader.version("a") == 2


def test_nor_does_it_wait_for_ever_where_the_journal_is_being_made(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    journal, hasty = SqliteJournal(folder), SqliteJournal(folder)
    hasty.longest_wait = 0.05
    journal.lock()
    with pytest.raises(Conflict, match="another program"), hasty.write():
        raise AssertionError("two write at once")
    journal.unlock()
    append(hasty, "a", 0, started("a"))
