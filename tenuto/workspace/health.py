"""What about this machine and this repository could hurt, and what to do about each.

A check looks and answers; it mends nothing and waits for nobody.

    ok        nothing to do
    note      works, but could be better or will matter one day
    problem   something is broken, or will be
"""

from __future__ import annotations

import os

from tenuto.core.approvals import PASSED_ON
from tenuto.errors import TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from tenuto.workspace.turn import Workspace

    class Check(TypedDict):
        status: str
        name: str
        message: str
        fix: str
        code: str  # of the error behind it, if there is one


_SOUND_SQLITE = (3, 51, 3)
_OLDEST_GIT = (2, 20)
_LEAST_ROOM = 64 << 20
_LONG_LOG = 64 << 20
_NETWORK = (
    "9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
    "vboxsf", "virtiofs",
)  # fmt: skip


def check(status: str, name: str, message: str, fix: str = "", code: str = "") -> Check:
    return {"status": status, "name": name, "message": message, "fix": fix, "code": code}


def diagnose(workspace: Workspace) -> list[Check]:
    found = [*_check_sqlite(), _check_place(workspace), _check_room(workspace), *_check_journal(workspace)]
    found += [_check_lock(workspace), *_check_leftovers(workspace), _check_bytecode(), _check_git(), *_check_secrets(workspace)]
    return found


def _check_sqlite() -> Iterator[Check]:
    from _sqlite3 import connect, sqlite_version

    if tuple(map(int, sqlite_version.split("."))) < _SOUND_SQLITE:
        yield check(
            "note",
            "sqlite",
            f"SQLite {sqlite_version} has a rare fault (mended in 3.51.3) that Tenuto's lock keeps clear of",
            "let nothing but tenuto write to journal.db, or use a Python with a newer SQLite",
        )
    else:
        yield check("ok", "sqlite", f"SQLite {sqlite_version}")
    memory = connect(":memory:")
    options = [option for (option,) in memory.execute("PRAGMA compile_options")]
    memory.close()
    if "ENABLE_FTS5" not in options:
        yield check("problem", "search", "this SQLite has no FTS5", "use a Python whose SQLite has full-text search")


def _check_place(workspace: Workspace) -> Check:
    state = workspace.state
    while not os.path.exists(state):
        state = os.path.dirname(state)
    kind = file_system_of(os.path.realpath(state))
    if kind in _NETWORK:
        return check(
            "problem",
            "place",
            f"the journal lies on a network file system ({kind}), where locks cannot be relied on",
            "move the repository to a local disk",
        )
    stray = workspace.root + "/.tenuto/journal.db"
    if os.path.exists(stray) and os.path.realpath(os.path.dirname(stray)) != os.path.realpath(workspace.state):
        return check(
            "problem",
            "place",
            f"a journal from before this was a git repository lies in {workspace.root}/.tenuto, and is not used",
            f"move journal.db* and objects/ from there to {workspace.state}",
        )
    return check("ok", "place", workspace.state)


def file_system_of(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The kind of file system that a path lies on; empty where the system does not tell."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, rest.split(" ")[0]
    return kind


def _check_room(workspace: Workspace) -> Check:
    state = workspace.state if os.path.isdir(workspace.state) else workspace.root
    facts = os.statvfs(state)
    free = facts.f_bavail * facts.f_frsize
    if free < _LEAST_ROOM:
        return check("problem", "room", f"{free >> 20} MiB are free on the journal's disk", "make room")
    return check("ok", "room", f"{free >> 30} GiB free" if free >> 30 else f"{free >> 20} MiB free")


def _check_journal(workspace: Workspace) -> Iterator[Check]:
    path = workspace.state + "/journal.db"
    if not os.path.exists(path):
        yield check("note", "journal", "there is none here", "tenuto init")
        return
    try:
        with workspace.journal.read() as reader:
            (answer,) = workspace.journal.connection().execute("PRAGMA quick_check(1)").fetchone()  # type: ignore[attr-defined]
            count, passed_on = len(reader.runs()), reader.load_repo()["settings"].get(PASSED_ON)
    except TenutoError as error:
        yield check("problem", "journal", error.message, error.hint, error.code)
        return
    if answer != "ok":
        yield check("problem", "journal", f"SQLite: {answer}", "tenuto verify; restore a backup: tenuto import FILE")
    else:
        yield check("ok", "journal", f"readable, {count} run{'' if count == 1 else 's'}")
    for over in passed_on or ():
        yield check("note", "gates", f"over {over} a model may pass on what a person decides", f"tenuto {over} --approve off, unless you want that")
    if not os.access(path, os.W_OK) or not os.access(workspace.state, os.W_OK):
        yield check("problem", "journal", f"{workspace.state} may not be written to", "check who owns it")
    if _size(path + "-wal") > _LONG_LOG:
        yield check(
            "note",
            "journal",
            f"its log has grown to {_size(path + '-wal') >> 20} MiB: some program has been reading it all the time",
            "end programs that keep the journal open",
        )


def _check_lock(workspace: Workspace) -> Check:
    import fcntl

    try:
        file = os.open(workspace.state + "/lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return check("ok", "lock", "nobody holds it")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return check("ok", "lock", "nobody holds it")
    except OSError:
        who = holder_of(os.fstat(file).st_ino)
        return check(
            "note",
            "lock",
            f"{who or 'another process'} is writing; others wait for it",
            "wait a moment and look again; if it hangs, end it",
        )
    finally:
        os.close(file)


def holder_of(inode: int, locks: str = "/proc/locks") -> str:
    """The process that holds a flock on this file, with its command line."""
    try:
        with open(locks, encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return ""
    for row in rows:
        if "FLOCK" in row and "->" not in row and row[5].rpartition(":")[2] == str(inode) and int(row[4]) > 0:
            return f"process {row[4]} ({_command_of(row[4])})"
    return ""


def _command_of(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").strip() or "?"
    except OSError:
        return "?"


def _check_leftovers(workspace: Workspace) -> Iterator[Check]:
    state = workspace.state
    stale = _stale_on_shelf(workspace)
    if stale:
        yield check(
            "note",
            "shelf",
            f"{len(stale)} file{'' if len(stale) == 1 else 's'} on the shelf that nothing is shown in any more",
            f"rm {' '.join(stale[:3])}" + (" ..." if len(stale) > 3 else ""),
        )
    unfinished = [name for name in _names(state) if name.startswith("import-")]
    unfinished += [f"objects/{name}" for name in _names(state + "/objects") if name.startswith(".new-")]
    unfinished = [name for name in unfinished if not os.path.exists(f"/proc/{name.rpartition('-')[2]}")]
    if unfinished:
        yield check(
            "note", "objects", "left over by a crash", "rm " + " ".join(f"{state}/{name}" for name in unfinished)
        )
    kept = _names(state + "/quarantine")
    if kept:
        yield check(
            "note",
            "quarantine",
            f"{len(kept)} file{'' if len(kept) == 1 else 's'} that others wrote and Tenuto replaced",
            f"look at {state}/quarantine, then remove what you do not need",
        )


def _stale_on_shelf(workspace: Workspace) -> list[str]:
    from tenuto.workspace.publish import shelf_name

    names = _names(workspace.state + "/shelf")
    if not names:
        return []
    try:
        with workspace.journal.read() as reader:
            known = {shelf_name(key) for key, _, _ in reader.projected()}
            known |= {shelf_name(key.rpartition("//")[2]) for key, _, _ in reader.projected()}
    except TenutoError:
        return []  # said elsewhere
    return [f"{workspace.state}/shelf/{name}" for name in names if name[:32] not in known]


def _check_bytecode() -> Check:
    """A process without bytecode compiles everything it imports: a hook takes twice as long."""
    from importlib.util import cache_from_source

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    modules = [f"{where}/{name}" for where, _, names in os.walk(package) for name in names if name.endswith(".py")]
    missing = [path for path in modules if not _is_fresh(cache_from_source(path), path)]
    if len(missing) * 4 > len(modules):
        return check(
            "note",
            "bytecode",
            f"{len(missing)} of {len(modules)} modules have none: every start takes longer",
            f"python -m compileall -q {package}",
        )
    return check("ok", "bytecode", "in place")


def _is_fresh(cached: str, source: str) -> bool:
    try:
        return os.stat(cached).st_mtime >= os.stat(source).st_mtime
    except OSError:
        return False


def _check_git() -> Check:
    import subprocess

    try:
        told = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return check("note", "git", "not found: commits cannot be checked, and work trees not be used", "install git")
    number = next((word for word in told.split() if word[:1].isdecimal()), "").split(".")
    found = tuple(int(part) for part in number[:2] if part.isdecimal())
    if len(found) == 2 and found < _OLDEST_GIT:
        return check("note", "git", f"{told} is old", f"use git {_OLDEST_GIT[0]}.{_OLDEST_GIT[1]} or newer")
    return check("ok", "git", told or "found")


def _check_secrets(workspace: Workspace) -> Iterator[Check]:
    """Whether the values that the settings call secret are such that they can be kept out."""
    from tenuto.supervise.masking import SHORTEST, values
    from tenuto.workspace.open import declared_in
    from tenuto.workspace.secrets import secrecy

    try:
        names = dict.fromkeys(declared_in(workspace.root, workspace.root_of("")))
    except TenutoError:
        return  # what is wrong with the settings is told with the settings
    kept: list[str] = []
    for name in names:
        spelled = values(os.environ, [name])
        try:
            secrecy([name])
        except TenutoError as error:
            yield check("problem", "secrets", error.message, error.hint, error.code)
            continue
        if any(value.isalpha() for value in spelled):
            told = f"the value of {name} is a plain word, or has a line that is one: [secret] will stand in its place in every text"
            yield check("note", "secrets", told, "a value that stands nowhere by chance")
        elif spelled:
            kept.append(name)
        elif os.environ.get(name):
            told = f"the value of {name} is not looked for: it is shorter than {SHORTEST} characters, or part of [secret], or nothing but brackets"
            yield check("note", "secrets", told, "a longer value")
        else:
            yield check("ok", "secrets", f"{name} has no value here: this process cannot know it")
    if kept:
        yield check("ok", "secrets", f"kept out of all that is written: {', '.join(kept)}")


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
