"""A disk that changes a bit in the journal changes no answer: caches are made anew, anything else is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import dumps
from tenuto.errors import Damaged
from tenuto.stores.journal import ROW, seal
from tenuto.stores.tables import TableReader
from tenuto.workspace.checkup import repair, restore
from tests.support.journals import database_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    workspace = tenuto.open(str(tmp_path))
    workspace.context.init("Dark mode")
    workspace.context.store("spec", "# Dark mode\n\nA switch.\n")
    close(workspace)
    return tmp_path


def close(workspace: Any) -> None:
    workspace.journal.close()


def everything(workspace: Any) -> str:
    with workspace.journal.read() as reader:
        runs = reader.runs()
        return dumps(
            [
                runs,
                reader.load("dark-mode"),
                list(reader.events("dark-mode")),
                reader.search("switch", 5),
                [str(reader.blob(found["sha256"])) for found in reader.load("dark-mode")["artifacts"].values()],
                [part.decode() for path, _ in reader.logs() for part in reader.log_text(path)],
                reader.marker("unproven:dark-mode"),
            ]
        )


# A whole row where another one was, as a pointer of an index that is off shows it.
_IN_ANOTHERS_PLACE = (
    "UPDATE event SET (body, digest, chain) = (SELECT body, digest, chain FROM event WHERE run='dark-mode' AND"
)


def test_a_long_run_is_what_its_events_say_and_refused_where_one_does_not(root: Path) -> None:
    """Events are decoded by the hundred: the first and last of each hundred are compared as all others are, also
    with the one before."""
    workspace: Any = tenuto.open(str(root))
    with workspace.turn() as turn:
        for number in range(500):
            turn.do("dark-mode", {"do": "Note", "text": f"note {number}"})
    kept = workspace.load("dark-mode")
    database = workspace.journal.connection()
    database.execute("DELETE FROM state WHERE run='dark-mode'")
    assert workspace.load("dark-mode") == kept
    for number in (1, 2, 199, 200, 201, 202, 400, 401, kept["version"]):
        database.execute("BEGIN")
        earlier = f"{_IN_ANOTHERS_PLACE} seq={number - 1 or 2}) WHERE run='dark-mode' AND seq={number}"
        database.execute(earlier)
        with pytest.raises(Damaged, match=f"event {number} of run dark-mode"):
            TableReader(database, "journal.db").load("dark-mode")
        database.execute("ROLLBACK")
    close(workspace)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET body=replace(body, 'dark', 'dirk')",
        "UPDATE event SET body=NULL WHERE 0",
        "DELETE FROM event WHERE seq=2",
        "UPDATE event SET seq=seq + 100 WHERE run='dark-mode' AND seq=2",
        f"{_IN_ANOTHERS_PLACE} seq=2) WHERE run='dark-mode' AND seq=3",
        f"{_IN_ANOTHERS_PLACE} seq=1) WHERE run='dark-mode' AND seq=(SELECT max(seq) FROM event WHERE run='dark-mode')",
        "UPDATE run SET card=replace(card, 'running', 'runnung')",
        "UPDATE run SET dialects=',contixt,' WHERE id='dark-mode'",
        "UPDATE run SET seq=1 WHERE id='dark-mode'",
        "UPDATE run SET id='fark-mode' WHERE id='dark-mode'",
        "UPDATE state SET body=replace(body, 'running', 'runnung')",
        "UPDATE state SET body=x'00'",
        "UPDATE blob SET body=x'00'",
        "UPDATE log SET body=x'00'",
        "UPDATE note SET value='[' WHERE name LIKE 'unproven%'",
        "UPDATE passage SET body=replace(body, 'switch', 'Switch')",
    ],
)
def test_what_is_not_as_it_was_written_is_named_or_made_anew(root: Path, change: str) -> None:
    """Never is a changed answer given."""
    workspace = tenuto.open(str(root))
    before = everything(workspace)
    database_of(workspace).execute(change)
    try:
        after = everything(workspace)
    except Damaged as error:
        assert "is not what was" in error.message or "events" in error.message
        assert error.hint
    else:
        assert after == before
    close(workspace)


def test_a_head_that_is_not_the_last_events_is_not_believed(root: Path) -> None:
    """Also where the row of the run is whole in itself: it speaks of another event than the one that is there."""
    workspace = tenuto.open(str(root))
    database = database_of(workspace)
    database.execute("DELETE FROM state")
    earlier = "SELECT chain FROM event WHERE run='dark-mode' AND seq=1"
    database.execute(f"UPDATE run SET chain=({earlier}) WHERE id='dark-mode'")
    row = database.execute(f"SELECT {ROW} FROM run WHERE id='dark-mode'").fetchone()
    database.execute("UPDATE run SET digest=? WHERE id='dark-mode'", (seal(row),))
    with pytest.raises(Damaged, match="is not what was written"):
        workspace.load("dark-mode")
    close(workspace)


def test_a_number_where_a_file_was_kept_is_no_file(root: Path) -> None:
    """One bit of a row's header makes a number of it. The hash beside it still says what we wrote."""
    workspace = tenuto.open(str(root))
    with workspace.journal.read() as reader:
        path, _, sha = reader.projected()[0]
    database_of(workspace).execute("UPDATE render SET body=7")
    with workspace.journal.read() as reader:
        assert [(render[0], render[1]) for render in reader.renders(path, 1)] == [(sha, None)]
        found = reader.render_of(sha)
    assert found is not None and found[1][1] is None
    close(workspace)


def test_a_journal_that_is_gone_while_its_log_is_there_is_no_new_one(root: Path) -> None:
    """A new journal would throw the log away, and with it what was answered last."""
    journal, log = root / ".git/tenuto/journal.db", root / ".git/tenuto/journal.db-wal"
    workspace = tenuto.open(str(root))
    workspace.context.store("spec", "# Light mode\n")
    kept, last = journal.read_bytes(), log.read_bytes()
    close(workspace)
    journal.unlink()
    log.write_bytes(last)
    workspace = tenuto.open(str(root))
    for _ in range(2):
        with pytest.raises(Damaged, match=r"journal\.db is gone, and its log"):
            workspace.context.init("Another")
    assert not journal.exists() and log.read_bytes() == last
    journal.write_bytes(kept)
    assert "Light mode" in everything(workspace)
    close(workspace)


def test_an_emptied_journal_is_no_new_one(root: Path) -> None:
    """SQLite takes an empty file for a new database; we know better. Moved away, a new one may begin."""
    path = root / ".git/tenuto/journal.db"
    path.write_bytes(b"")
    workspace = tenuto.open(str(root))
    for _ in range(2):
        with pytest.raises(Damaged) as refusal, workspace.journal.read():
            pass
        assert str(path) in refusal.value.message
    close(workspace)
    assert path.read_bytes() == b""
    path.unlink()
    workspace = tenuto.open(str(root))
    with workspace.journal.read() as reader:
        assert reader.runs() == []
    close(workspace)


def test_a_damaged_object_is_not_shown(root: Path) -> None:
    workspace = tenuto.open(str(root))
    with workspace.turn() as turn:
        turn.store("dark-mode", "dump", "docs/dump.bin", b"x" * (1 << 19))
    (large,) = (root / ".git/tenuto/objects").glob("*/*")
    large.write_bytes(b"y" + large.read_bytes()[1:])
    (root / "docs/dump.bin").unlink()
    with pytest.raises(Damaged) as refusal:
        restore(workspace, "docs/dump.bin")
    assert not (root / "docs/dump.bin").exists()
    assert large.name in refusal.value.message
    close(workspace)


def test_a_damaged_search_index_is_made_anew(root: Path) -> None:
    workspace = tenuto.open(str(root))
    before = everything(workspace)
    db = database_of(workspace)
    db.execute(
        "INSERT INTO passage_text(passage_text, rowid, heading, body) VALUES('delete', 1, 'Dark mode', 'A switch.')"
    )
    assert [found["where"] for found in repair(workspace)["mended"]] == ["index"]
    assert everything(workspace) == before
    close(workspace)
