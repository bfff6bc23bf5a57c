"""What can be wrong with a SQLite journal: its errors, its surroundings, its pages. Loaded only when one asks.

Errors: what SQLite's words mean to somebody who has a run to finish. They are told apart by their text: it has been
the same for many years, and in Python 3.11 some of them come without a number.

Health: what about the journal, its disk and its lock could hurt, and what to do about each. A check looks and answers;
it mends nothing and waits for no other process.
"""

from __future__ import annotations

import fcntl
import os

from tenuto.errors import Conflict, Damaged, TenutoError, Unwritable
from tenuto.stores.database import DatabaseError, connect, sqlite_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenuto.ports import Check
    from tenuto.stores.database import Connection
    from tenuto.stores.sqlite import SqliteJournal


_RESTORE = "tenuto doctor; a backup is read back into an empty journal with: tenuto import FILE"


def fault(error: BaseException, path: str) -> TenutoError:
    words = str(error)
    if "decode to UTF-8" in words or isinstance(
        error, UnicodeDecodeError
    ):  # SQLite quotes the text; it may be long, and it may be secret
        words = "a text in it is not UTF-8 any more"
        return Damaged("journal-damaged", f"{path} is damaged: {words}", "tenuto verify", path=path)
    if any(sign in words for sign in ("malformed", "not a database", "no such table", "no such column")):
        return Damaged("journal-damaged", f"{path} is damaged: {words}", _RESTORE, path=path)
    if "is full" in words:
        return Unwritable(
            "disk-full",
            f"no space left on the disk that holds {path}; nothing was written",
            "make room, then repeat the command",
            path=path,
        )
    if "readonly" in words or "unable to open" in words or "not authorized" in words:
        return Unwritable(
            "not-allowed",
            f"{path} cannot be opened: {words}",
            "check who owns its folder, and that its disk may be written to",
            path=path,
        )
    if "is locked" in words or "busy" in words:
        return Conflict("busy", f"{path} is in use by another program: {words}", "try again; tenuto doctor names it")
    if "disk I/O" in words:
        return Damaged("disk-error", f"{path}: the disk reported an error: {words}", "tenuto doctor", path=path)
    return TenutoError("journal-failed", f"{path}: {words}", "tenuto doctor", path=path)


def not_flushed(error: OSError, path: str) -> TenutoError:
    """After a flush that failed, the honest answer is "perhaps". It is not tried again: the kernel forgets."""
    message = (
        f"{path}: the disk reported an error ({error.strerror});"
        " whether what was just recorded will last, nobody can tell"
    )
    return Damaged("disk-error", message, "tenuto verify; look at the disk, then repeat what is not there", path=path)


_ANEW = "put it back; or move {path} and {path}-wal away, then: tenuto import FILE, or begin anew"


def emptied(path: str) -> Damaged:
    message = f"{path} is empty, and it was not: something cut it off"
    return Damaged("journal-damaged", message, _ANEW.format(path=path), path=path)


def gone(path: str) -> Damaged:
    """Its log alone tells nothing, and a new journal would throw it away."""
    return Damaged(
        "journal-damaged", f"{path} is gone, and its log {path}-wal is there", _ANEW.format(path=path), path=path
    )


def look_only(
    opened: Callable[[str, bool], tuple[Connection, bool]], path: str, error: BaseException
) -> tuple[Connection, bool]:
    """In a folder that may not be written to, and where nothing unfinished is left, a look is still possible."""
    uri = may_only_look(path)
    if not uri:
        raise fault(error, path) from error
    try:
        return opened(uri, True)
    except DatabaseError as again:
        raise fault(again, path) from again


def may_only_look(path: str) -> str:
    """How SQLite opens a journal that no process can be writing to: its folder is read-only, and no log is left over.

    Empty where that is not so. Then its last events may be in the log, and must not be passed over.
    """
    try:
        unfinished = os.stat(path + "-wal").st_size
    except OSError:
        unfinished = 0
    if unfinished or not os.path.exists(path) or os.access(os.path.dirname(path), os.W_OK):
        return ""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?mode=ro&immutable=1"


_SOUND_SQLITE = (3, 51, 3)
_LEAST_ROOM = 64 << 20
_LONG_LOG = 64 << 20
_NETWORK = (
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
)


def diagnose(journal: SqliteJournal, former: str) -> Iterator[Check]:
    """`former`: a folder where a journal of this repository may have been left behind."""
    yield from _check_sqlite()
    yield _check_folder(journal.directory, former)
    yield _check_room(journal.directory)
    yield from _check_journal(journal)
    yield _check_lock(journal.directory)


def _check(status: str, name: str, message: str, fix: str = "", code: str = "") -> Check:
    return {"status": status, "name": name, "message": message, "fix": fix, "code": code}


def _check_sqlite() -> Iterator[Check]:
    if tuple(map(int, sqlite_version.split("."))) < _SOUND_SQLITE:
        yield _check(
            "note",
            "sqlite",
            f"SQLite {sqlite_version} has a rare fault (mended in 3.51.3) that Tenuto's lock keeps clear of",
            "let nothing but tenuto write to journal.db, or use a Python with a newer SQLite",
        )
    else:
        yield _check("ok", "sqlite", f"SQLite {sqlite_version}")
    memory = connect(":memory:", 0.0)
    options = [option for (option,) in memory.execute("PRAGMA compile_options")]
    memory.close()
    if "ENABLE_FTS5" not in options:
        yield _check("problem", "search", "this SQLite has no FTS5", "use a Python whose SQLite has full-text search")


def _check_folder(directory: str, former: str) -> Check:
    state = directory
    while not os.path.exists(state):
        state = os.path.dirname(state)
    kind = file_system_of(os.path.realpath(state))
    if kind in _NETWORK:
        return _check(
            "problem",
            "place",
            f"the journal lies on a network file system ({kind}), where locks cannot be relied on",
            "move the repository to a local disk",
        )
    if former and os.path.exists(former + "/journal.db") and os.path.realpath(former) != os.path.realpath(directory):
        return _check(
            "problem",
            "place",
            f"a journal from before this was a git repository lies in {former}, and is not used",
            f"move journal.db* and objects/ from there to {directory}",
        )
    return _check("ok", "place", directory)


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


def _check_room(directory: str) -> Check:
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    facts = os.statvfs(directory)
    free = facts.f_bavail * facts.f_frsize
    if free < _LEAST_ROOM:
        return _check("problem", "room", f"{free >> 20} MiB are free on the journal's disk", "make room")
    return _check("ok", "room", f"{free >> 30} GiB free" if free >> 30 else f"{free >> 20} MiB free")


def _check_journal(journal: SqliteJournal) -> Iterator[Check]:
    path = journal.location
    if not journal.exists():
        yield _check("note", "journal", "there is none here", "tenuto init")
        return
    try:
        with journal.read() as reader:
            (answer,) = journal.connection().execute("PRAGMA quick_check(1)").fetchone()
            count = len(reader.runs())
            reader.load_repo()
    except TenutoError as error:
        yield _check("problem", "journal", error.message, error.hint, error.code)
        return
    if answer != "ok":
        yield _check("problem", "journal", f"SQLite: {answer}", "tenuto verify; restore a backup: tenuto import FILE")
    else:
        yield _check("ok", "journal", f"readable, {count} run{'' if count == 1 else 's'}")
    if not os.access(path, os.W_OK) or not os.access(journal.directory, os.W_OK):
        yield _check("problem", "journal", f"{journal.directory} may not be written to", "check who owns it")
    if _size(path + "-wal") > _LONG_LOG:
        yield _check(
            "note",
            "journal",
            f"its log has grown to {_size(path + '-wal') >> 20} MiB: some program has been reading it all the time",
            "end programs that keep the journal open",
        )


def _check_lock(directory: str) -> Check:
    try:
        file = os.open(directory + "/lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _check("ok", "lock", "nobody holds it")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _check("ok", "lock", "nobody holds it")
    except OSError:
        who = holder_of(os.fstat(file).st_ino)
        return _check(
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


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def erase(db: Connection, path: str) -> None:
    """Outside a transaction, under the lock. Nothing that was deleted is left in the file or its log, and a loss of
    power does not bring it back: SQLite cuts its log off and leaves the rest to the kernel.
    """
    db.execute("PRAGMA temp_store=MEMORY")
    db.execute("PRAGMA secure_delete=ON")
    for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
        try:
            row = db.execute(statement).fetchone()
        except DatabaseError as error:
            raise _not_erased(path, error) from None
        if row is not None and row[0]:
            raise Conflict(
                "journal-in-use",
                f"another program is reading {path}; until it ends, the old text stays in the log beside it",
                "end it, then repeat the command: tenuto doctor names it",
            )
    try:
        log = os.open(path + "-wal", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(log)
        finally:
            os.close(log)
    except OSError as error:
        raise _not_erased(path, error) from None


def _not_erased(path: str, error: Exception) -> Unwritable:
    message = f"the text is out of every record; its old bytes are still in {path}, which has to be rewritten: {error}"
    return Unwritable("not-erased", message, "make room for a second copy of it, then repeat the command")
