"""Events to fill a journal with, and the stores that a test of journals runs over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tenuto.core.fold import fold
from tenuto.stores.postgres.journal import PostgresJournal
from tenuto.stores.sqlite import SqliteJournal
from tests.support.memory_journal import MemoryJournal
from tests.support.postgres import fresh_journal

if TYPE_CHECKING:
    from sqlite3 import Connection

    from tenuto.ports import Journal
    from tenuto.workspace.workspace import Workspace

Damage = Literal["event", "link", "tail", "content"]

AT = "2026-11-15T10:00:00.000Z"


def noted(text: str, **more: Any) -> Any:
    return {"type": "Noted", "v": 2, "at": AT, "by": "test", "text": text, "extra": {}, **more}


def started(run: str, at: str = AT) -> Any:
    return {
        "type": "RunStarted",
        "v": 2,
        "at": at,
        "by": "test",
        "run": run,
        "name": run,
        "request": "",
        "summary": "",
        "mode": "standard",
        "pipeline": {"name": "orchestrate", "hash": None},
        "driver": "manual",
        "dialects": {"context": {}},
        "order": "any",
        "schedule": [],
        "evidence": {},
        "settings": {},
    }


def append(journal: Journal, run: str, expected: int, *events: Any) -> None:
    with journal.write() as tx:
        before = [*tx.events(run)]
        tx.append(run, expected, list(events), fold([*before, *events]))


def database_of(workspace: Workspace) -> Connection:
    """The connection behind a workspace's journal: for what only a disk or another program does to it."""
    assert isinstance(workspace.journal, SqliteJournal)
    return workspace.journal.connection()


# ---- the stores that keep the contract: a new one is added here -------------------------------------


class Store(NamedTuple):
    open: Callable[[str], Journal]
    """A journal at a location where there is none yet."""
    again: Callable[[Journal], Journal]
    """The same journal, as another process would open it."""
    damage: Callable[[Journal, Damage], None]
    """As a disk would do it, behind the store's back, to run a, whose second event holds the word `one`."""


def _damage_sqlite(journal: Journal, what: Damage) -> None:
    statements: dict[Damage, str] = {
        "event": "UPDATE event SET body=replace(body, 'one', 'two') WHERE run='a' AND seq=2",
        "link": "UPDATE event SET chain=zeroblob(32) WHERE run='a' AND seq=2",
        "tail": "DELETE FROM event WHERE run='a' AND seq=3",
        "content": "UPDATE blob SET body=x'00'",
    }
    assert isinstance(journal, SqliteJournal)
    journal.connection().execute(statements[what])


def _damage_memory(journal: Journal, what: Damage) -> None:
    assert isinstance(journal, MemoryJournal)
    rows = journal.tables.events["a"]
    match what:
        case "event":
            rows[1].text = rows[1].text.replace("one", "two")
        case "link":
            rows[1].chain = bytes(32)
        case "tail":
            del rows[2]
        case "content":
            journal.tables.blobs = dict.fromkeys(journal.tables.blobs, b"\0")


def _again(journal: Journal) -> Journal:
    assert isinstance(journal, PostgresJournal)
    return PostgresJournal(journal.directory, journal.address, journal.project.name)


def _damage_postgres(journal: Journal, what: Damage) -> None:
    statements: dict[Damage, str] = {
        "event": "UPDATE event SET body=replace(body, 'one', 'two') WHERE run='a' AND seq=2",
        "link": "UPDATE event SET chain=decode(repeat('00', 32), 'hex') WHERE run='a' AND seq=2",
        "tail": "DELETE FROM event WHERE run='a' AND seq=3",
        "content": "UPDATE blob SET body=decode('00', 'hex')",
    }
    assert isinstance(journal, PostgresJournal)
    journal.first([*journal.opening("BEGIN"), statements[what], "COMMIT"])


STORES = {
    "memory": Store(lambda location: MemoryJournal(), lambda journal: journal, _damage_memory),
    "sqlite": Store(SqliteJournal, lambda journal: SqliteJournal(journal.directory), _damage_sqlite),
    "postgresql": Store(fresh_journal, _again, _damage_postgres),
}
