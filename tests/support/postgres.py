"""A PostgreSQL server for the tests of one process, and a database of its own for each test that asks.

    @pytest.mark.needs("postgres")
    def test_something(database: str) -> None:      # an address: psycopg.connect(database)

The server is started at the first question, and ends with the process. It flushes nothing: a killed server loses
nothing by that, only a killed machine would. A test that kills or stops a server starts one of its own
(`PrivatePostgres.start`), which nobody else uses.
"""

from __future__ import annotations

import atexit
from functools import cache
from itertools import count

import psycopg
import pytest

from tenuto.cluster.private_postgres import PrivatePostgres, binaries
from tenuto.errors import NotFound
from tenuto.stores.postgres.journal import PostgresJournal
from tenuto.stores.postgres.schema import project_named, set_up

_numbers = count(1)


@cache
def shared_server() -> PrivatePostgres:
    """The one of this process. Where the machine has no PostgreSQL, the test is skipped, and says so."""
    try:
        binaries()
    except NotFound as reason:
        pytest.skip(f"needs postgres, which is not installed ({reason.hint})")
    server = PrivatePostgres.start(settings={"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"})
    atexit.register(server.stop)
    return server


def fresh_database(server: PrivatePostgres | None = None) -> str:
    """The address of a new and empty database."""
    server = server or shared_server()
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return server.url(name)


@cache
def shared_database() -> str:
    return fresh_database()


def fresh_project(address: str = "") -> tuple[str, str]:
    """(address, project) of a new and empty journal, in the database that all tests of this process share."""
    address, project = address or shared_database(), f"t{next(_numbers)}"
    with psycopg.connect(address, autocommit=True) as owner:
        set_up(owner, project_named(project), address)
    return address, project


def fresh_journal(directory: str) -> PostgresJournal:
    return PostgresJournal(directory, *fresh_project())
