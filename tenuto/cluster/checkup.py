"""`tenuto doctor`, where machines share a database: can this one work, or drive? Nothing is changed.

Rule: a machine whose clock differs is told so, and works all the same: leases compare no clocks. What is read from a
machine's own clock is how much time a run may still use, and until when an agent is parked.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from tenuto.cluster.board import PROTOCOL
from tenuto.cluster.database import DRIVERS, WORKERS, Line, address
from tenuto.errors import TenutoError
from tenuto.workspace.checkup import check

if TYPE_CHECKING:
    from tenuto.ports import Check

_SKEW = 2.0  # seconds between two clocks that are kept set
_ROOM = 2 << 30  # bytes: code and work trees of a few attempts
_NAME = "machines"


def survey(state: str, home: str) -> Iterator[Check]:
    """`state`: of the workspace; `home`: where a worker of this machine would keep its attempts. Nothing is said where
    no database is named."""
    try:
        where = address(state)
    except TenutoError:
        return
    if find_spec("psycopg") is None:
        message = "a database is named, and psycopg is not installed"
        yield check("problem", _NAME, message, "pip install 'tenuto[cluster]'")
        return
    line = Line(where)
    try:
        yield from _of_database(line)
    except TenutoError as problem:
        yield check("problem", _NAME, problem.message, problem.hint or "", problem.code)
    finally:
        line.close()
    yield from _of_room(home)


def _of_database(line: Line) -> Iterator[Check]:
    question = """
        SELECT current_setting('server_version'), session_user::text,
               extract(epoch FROM clock_timestamp())::double precision,
               pg_has_role(session_user, %s, 'MEMBER'), pg_has_role(session_user, %s, 'MEMBER'),
               coalesce((SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), '')"""
    before = time.time()
    version, login, theirs, works, drives, tls = line.row(question, WORKERS, DRIVERS)
    skew = abs(cast(float, theirs) - (before + time.time()) / 2)
    way = f"encrypted ({tls!s})" if tls else "not encrypted: a socket, or this machine itself"
    may = [word for word, yes in (("work", works), ("drive", drives)) if yes]
    if not may:
        message = f"PostgreSQL {version!s}: the login {login!s} may neither work nor drive"
        yield check("problem", _NAME, message, f"its owner runs: tenuto cluster login {login!s}")
        return
    message = f"PostgreSQL {version!s}, {way}; {login!s} may {' and '.join(may)}; protocol {PROTOCOL}"
    yield check("ok", _NAME, message)
    if skew > _SKEW:
        message = f"the clock of this machine and of the database differ by {skew:.1f} s"
        yield check("note", _NAME, message, "let NTP set it: leases do not need it, time limits of runs do")


def _of_room(home: str) -> Iterator[Check]:
    folder = home
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    if free < _ROOM:
        message = f"{free >> 20} MiB are free at {folder}, where a worker keeps code and attempts"
        yield check("note", _NAME, message, "tenuto worker --home FOLDER, on a larger disk")
