"""A journal on a server beside one in a file: the same turn on PostgreSQL and on SQLite, and PostgreSQL by itself.

    sqlite, postgresql   a turn of a fresh command: look at the run's file, decide, fold, append, flush, show it again
    driver               one of many turns of a driver, which remembers what only it has changed
    messages             what a turn cannot do without, with psycopg alone: a message that begins and takes a lock,
                         one that reads a row, one that writes two rows and commits
    commit               one row, one message, one flush

The server is private, stands on this machine, flushes, and is reached through its socket: the round trips of a network
come on top, once for each message.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import tenuto
from bench.measured import (
    Figure,
    Section,
    Table,
    folder,
    git_repository,
    interleave,
    median_ms,
    number,
    process,
    ratio,
    timed,
)
from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.errors import NotFound
from tenuto.stores.moving import move_to_server, set_up_project
from tenuto.stores.postgres.journal import PostgresJournal
from tenuto.workspace.workspace import Workspace

ROUNDS, PROCESSES = 300, 15
TEXT = (
    "The same run, in a file and in PostgreSQL, on one machine, in turns. Every turn flushes. A turn on a server is a "
    "few messages; what a network adds is its round trip for each of them."
)
NAMES = {
    "commit": "one row, psycopg alone",
    "messages": "three messages, psycopg alone",
    "sqlite": "Tenuto, SQLite",
    "postgresql": "Tenuto, PostgreSQL",
    "driver": "Tenuto, PostgreSQL, a driver's turn",
}


def measure() -> Section:
    try:
        server = PrivatePostgres.start()
    except NotFound as reason:
        return Section("A journal on a server", TEXT, [], [], missing=[f"PostgreSQL: {reason.message}"])
    with server, folder() as made:
        with repositories(made, server.url()) as (here, there):
            times = interleave({**bare(server.url()), **turns(here, there)}, ROUNDS)
            sent = {name: messages(there, remember) for name, remember in (("postgresql", False), ("driver", True))}
        hooks = {name: timed_process(made / name) for name in ("sqlite", "postgresql")}
        commands = interleave(hooks, PROCESSES)
    figures = [
        Figure("a turn beside its server", ratio(times, "postgresql", "sqlite"), 4.0, "x", "the same turn on SQLite"),
        Figure("the same", ratio(times, "postgresql", "messages"), 4.0, "x", "psycopg alone, in three messages"),
        Figure("messages of a turn", sent["postgresql"], 4, ""),
        Figure("messages of a driver's turn", sent["driver"], 3, ""),
    ]
    rows = [
        [
            shown,
            f"{median_ms(times, name):.2f} ms",
            number(ratio(times, name, "commit")),
            number(ratio(times, name, "sqlite")),
            str(sent.get(name, "")),
        ]
        for name, shown in NAMES.items()
    ]
    slower = statistics.median(b - a for a, b in zip(commands["sqlite"], commands["postgresql"], strict=True))
    more = f"{slower * 1000:.0f} ms longer on PostgreSQL"
    note = f"A command as a process of its own takes {more}: it loads psycopg, and logs in."
    return Section(
        "A journal on a server",
        TEXT,
        figures,
        [Table("One turn", ["", "median", "to one row", "to SQLite", "messages"], rows, note)],
    )


@contextmanager
def repositories(made: Path, address: str) -> Iterator[tuple[Workspace, Workspace]]:
    """The same run twice: in a file, and moved to the server."""
    for name in ("sqlite", "postgresql"):
        workspace = tenuto.open(str(git_repository(made / name)))
        workspace.feature_state.start("Bench", "A turn")
        workspace.journal.close()
    state = f"{made}/postgresql/.git/tenuto"
    set_up_project(state, address, "bench")
    move_to_server(state, address, "bench")
    here, there = (tenuto.open(f"{made}/{name}") for name in ("sqlite", "postgresql"))
    yield here, there
    here.journal.close()
    there.journal.close()


def turns(here: Workspace, there: Workspace) -> dict[str, Callable[[], float]]:
    return {
        "sqlite": timed(lambda: turn(here)),
        "postgresql": timed(lambda: turn(there)),
        "driver": timed(lambda: turn(there, remember=True)),
    }


def turn(workspace: Workspace, remember: bool = False) -> None:
    with workspace.turn(remember) as block:
        block.do("bench", {"do": "Note", "text": "one more"})


def messages(workspace: Workspace, remember: bool) -> int:
    """Of the second of two turns."""
    assert isinstance(workspace.journal, PostgresJournal)
    turn(workspace, remember)
    before = workspace.journal.link().trips
    turn(workspace, remember)
    return workspace.journal.link().trips - before


def bare(address: str) -> dict[str, Callable[[], float]]:
    connection = psycopg.connect(address, autocommit=True)
    connection.execute("CREATE TABLE bare(id bigserial PRIMARY KEY, body text)")
    body = "x" * 200

    def commit() -> None:
        connection.execute("INSERT INTO bare(body) VALUES(%s)", (body,))

    def three() -> None:
        connection.execute("BEGIN; SELECT pg_advisory_xact_lock(7)")
        connection.execute("SELECT body FROM bare ORDER BY id DESC LIMIT 1").fetchone()
        insert = f"INSERT INTO bare(body) VALUES('{body}')"
        connection.execute(f"{insert}; {insert}; COMMIT".encode())

    return {"commit": timed(commit), "messages": timed(three)}


def timed_process(root: Path) -> Callable[[], float]:
    program = os.path.join(os.path.dirname(sys.executable), "tenuto")
    return lambda: process([program, "list"], root)
