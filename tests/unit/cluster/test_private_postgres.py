"""A PostgreSQL server of one's own: begun, cut off, taken up again, and gone with whoever started it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tenuto.cluster import private_postgres
from tenuto.cluster.private_postgres import PrivatePostgres, binaries
from tenuto.errors import NotFound, TenutoError

pytestmark = pytest.mark.needs("postgres")

OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
from tenuto.cluster.private_postgres import PrivatePostgres
server = PrivatePostgres.start()
print(server.folder, server._server.pid, server._watcher.pid, flush=True)
sys.stdin.read()
"""
ROOT = str(Path(__file__).resolve().parents[3])


def await_end(process: int) -> None:
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return
    select.select([file], [], [])
    os.close(file)


def test_a_server_killed_and_begun_again_has_what_was_committed() -> None:
    with PrivatePostgres.start() as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url())
        server.resume()
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]
        server.halt()
        server.resume()
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]
    assert not os.path.exists(server.folder)


@pytest.mark.parametrize("signal", ["KILL", "INT"])
def test_it_ends_with_its_owner_however_that_one_ends(signal: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, ROOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    folder, server, watcher = owner.stdout.readline().split()
    assert os.path.exists(folder + "/data")
    subprocess.run(["kill", f"-{signal}", str(owner.pid)], check=True)
    owner.communicate()
    for process in (server, watcher):
        await_end(int(process))
    assert not os.path.exists(folder)


def test_nobody_reaches_it_from_outside_unless_it_is_told_to_listen() -> None:
    with PrivatePostgres.start() as server, pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.loopback_url(), connect_timeout=5)
    with PrivatePostgres.start(on_loopback=True, rules=["host all all 127.0.0.1/32 trust"]) as server:
        psycopg.connect(server.loopback_url()).close()


def test_its_folder_is_closed_to_other_users() -> None:
    with PrivatePostgres.start() as server:
        assert os.stat(server.folder).st_mode & 0o077 == 0


def test_a_server_that_does_not_start_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders: list[str] = []
    watch = PrivatePostgres._watch

    def noted(server: PrivatePostgres) -> None:
        folders.append(server.folder)
        watch(server)

    monkeypatch.setattr(PrivatePostgres, "_watch", noted)
    with pytest.raises(TenutoError, match="no_such_setting"):
        PrivatePostgres.start(settings={"no_such_setting": "1"})
    assert folders and not os.path.exists(folders[0])


def test_the_binaries_of_the_environment_come_first_and_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = binaries()
    monkeypatch.setenv("TENUTO_PG_BIN", str(tmp_path))
    with pytest.raises(NotFound, match="TENUTO_PG_BIN names") as refused:
        binaries()
    assert refused.value.code == "no-postgresql"
    for name in ("initdb", "postgres"):
        (tmp_path / name).symlink_to(f"{found}/{name}")
    assert binaries() == str(tmp_path)


def test_of_several_versions_of_the_system_the_newest_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("9.6", "17", "18"):
        (tmp_path / version / "bin").mkdir(parents=True)
        for name in ("initdb", "postgres") if version != "18" else ("psql",):
            (tmp_path / version / "bin" / name).touch(0o755)
    monkeypatch.setattr(private_postgres, "_SYSTEM", f"{tmp_path}/*/bin")
    assert binaries() == str(tmp_path / "17" / "bin")


def test_where_there_is_none_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(private_postgres, "_SYSTEM", f"{tmp_path}/*/bin")
    monkeypatch.setattr(private_postgres, "_WHEELS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="no PostgreSQL server") as refused:
        PrivatePostgres.start()
    assert "apt install postgresql" in refused.value.hint
