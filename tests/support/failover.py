"""A PostgreSQL with a synchronous standby, which takes over: what was answered is on both."""

from __future__ import annotations

import shutil
import tempfile

import psycopg
import pytest

from tenuto.cluster.private_postgres import PrivatePostgres, binaries

RULES = ("local replication all trust",)  # of the first server
_PROMOTED_SECONDS = 300


def standby_of(first: PrivatePostgres) -> PrivatePostgres:
    """From now on, the first server answers when this one has it, too."""
    if not shutil.which("pg_basebackup", path=binaries()):
        pytest.skip("needs pg_basebackup, which is not among the binaries of this PostgreSQL")
    second = PrivatePostgres(tempfile.mkdtemp(prefix="tenuto-pg-"), binaries(), first._user, first.port)
    try:
        second._watch()
        if second._user is not None:
            shutil.chown(second.folder, second._user)
        place = ["-h", first.folder, "-p", str(first.port), "-U", "postgres"]
        copied = second._run("pg_basebackup", *place, "-D", second.data, "--write-recovery-conf", "--checkpoint=fast")
        assert copied.returncode == 0, copied.stderr
        second._configure({}, RULES, {}, False)
        second.resume()
        with psycopg.connect(first.url(), autocommit=True) as owner:
            owner.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            owner.execute("SELECT pg_reload_conf()")
    except BaseException:
        second.stop()
        raise
    return second


def take_over(second: PrivatePostgres) -> None:
    """Returns when it takes writes.

    Not by `SELECT pg_promote()`: that holds a snapshot on the standby. Where the first server had vacuumed meanwhile,
    replaying it waits for the snapshot, the promotion waits for the replay, and after 30 seconds the question is
    cancelled with the standby still read-only.
    """
    done = second._run("pg_ctl", "promote", "--wait", f"--timeout={_PROMOTED_SECONDS}", "-D", second.data)
    assert done.returncode == 0, done.stderr
