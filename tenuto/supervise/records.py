"""Small records on disk: whole or absent, durable where it matters, created by exactly one.

    publish       replace: unique temporary file, fsync, rename, fsync of the directory
    create_once   create, complete with its content, for the first caller only
    read          the record, None where there is none; what cannot be parsed is named, never guessed
    read_all      several, in this order
    FileLock      a file's lock, held while something is done
    extend_lease  how long an attempt may go on; lease_left: the seconds until then

`create_once` links a finished file to its name instead of creating the name first: nobody
ever sees the name without the content, and a crash leaves either both or neither.

An attempt directory holds:

    spec.json      what to run (names of the environment, never its values)
    launch.json    who launched, and which supervisor process was started
    claim          the one supervisor that may start the agent, or void
    started.json   the agent: written without its identity before it starts, then with it
    stdout stderr  the agent's output, each bounded
    result.json    how it ended; written when nothing of the tree is left
    swept.json     what was left by a supervisor that was killed, and is now ended

A lease is a file with a moment of a clock that also counts while the machine sleeps. Whoever may end the lease waits
for longer than that, so no clocks of two machines are ever compared. A lease that cannot be read is over.
"""

from __future__ import annotations

import os
import time

from tenuto.encoding import NotJson, dumps, loads, loads_all
from tenuto.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal, NotRequired, TypedDict

    Record = Any  # one of the TypedDicts below: the name of the file says which

    class Identity(TypedDict):
        pid: int
        start: str  # in the kernel's ticks since boot
        boot: str
        space: str  # the PID namespace the pid counts in

    class Spec(TypedDict):
        attempt: str
        argv: list[str]
        cwd: str
        stdin: str | None  # a file; None reads as empty
        env: dict[str, str]  # complete: the agent gets this, TENUTO_ATTEMPT, and nothing else
        limit: float | None  # seconds from the agent's start
        grace: float  # seconds between SIGTERM and SIGKILL
        output_cap: int  # bytes kept of stdout, and of stderr
        pool: str  # directory of the slots
        cap: int
        cgroup: NotRequired[bool]  # False: do not use one even where we may
        masked: NotRequired[list[str]]  # variables whose values are kept out of its output
        lease: NotRequired[str]  # a file that says until when it may go on; without one, it may

    class StoredSpec(TypedDict):
        attempt: str
        argv: list[str]
        cwd: str
        stdin: str | None
        env: list[str]
        limit: float | None
        grace: float
        output_cap: int
        pool: str
        cap: int
        cgroup: NotRequired[bool]
        masked: NotRequired[list[str]]
        lease: NotRequired[str]

    class Launch(TypedDict):
        launcher: Identity | None
        supervisor: Identity | None

    class Claim(TypedDict):
        state: Literal["claimed", "void"]
        attempt: str
        at: str
        supervisor: Identity | None  # who voided, where void
        cgroup: str | None

    class Hold(TypedDict):
        """What a slot file says while it is held: enough to end the holder's tree without its directory."""

        directory: str
        claim: Claim

    class Started(TypedDict):
        at: str
        slot: int
        agent: Identity | None

    class Stream(TypedDict):
        bytes: int
        kept: int
        truncated: bool

    class Leftover(TypedDict):
        pid: int
        name: str

    class Result(TypedDict):
        attempt: str
        exit_code: int | None
        signal: int | None
        timed_out: bool
        cancelled: bool
        error: str | None  # why there is no agent, or what the supervisor could not do
        claimed: str
        started: str | None
        ended: str
        duration: float  # of the agent, in seconds, from a clock that is never set
        stdout: Stream
        stderr: Stream
        leftover: list[Leftover]  # outlived the agent, ended by the supervisor
        survivors: list[Leftover]  # could not be ended; the slot stays taken until they are gone
        lease_over: NotRequired[bool]  # nobody renewed its lease: it was ended, or never started

    class Status(TypedDict):
        state: Literal["absent", "launching", "queued", "running", "finished", "lost", "void"]
        directory: str
        stalled: NotRequired[bool]  # launching: nobody is left who would go on; void it or launch again
        supervisor: NotRequired[Identity | None]
        started: NotRequired[Started | None]
        may_have_run: NotRequired[bool]  # lost: False only where the agent certainly never started
        swept: NotRequired[bool]  # lost: what was left of its tree is ended
        result: NotRequired[Result]

    class Swept(TypedDict):
        at: str
        ended: list[Leftover]

    class Sweep(TypedDict):
        ended: dict[str, list[Leftover]]  # attempt directory -> what was still alive
        unproven: list[str]  # attempt directories with processes that could not be ended or seen

    class SlotState(TypedDict):
        slot: int
        state: Literal["free", "held", "unproven"]
        attempt: str | None
        directory: str | None
        supervisor: Identity | None


def read(path: str) -> Record:
    """None where there is no such file."""
    text = _text(path)
    return None if text is None else _parse(path, text)


def read_all(paths: Iterable[str]) -> list[Record]:
    """Each as `read` gives it; those that are there are parsed together."""
    texts = {path: _text(path) for path in paths}
    there = {path: text for path, text in texts.items() if text is not None}
    try:
        found = dict(zip(there, loads_all(there.values()), strict=True)) if there else {}
    except NotJson:
        found = {}
    if not all(isinstance(found.get(path), dict) for path in there):
        found = {path: _parse(path, text) for path, text in there.items()}
    return [found.get(path) for path in texts]


def _text(path: str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _parse(path: str, text: str) -> Record:
    try:
        record = loads(text)
    except NotJson as problem:
        raise _damaged(path, str(problem)) from None
    if not isinstance(record, dict):
        raise _damaged(path, "it is not a JSON object")
    return record


def _damaged(path: str, reason: str) -> Damaged:
    return Damaged(
        "attempt-record-damaged",
        f"{path} is not what was written: {reason}",
        "Tenuto writes this file whole or not at all, so something else changed it; look at it, restore or remove it",
        path=path,
    )


def publish(path: str, record: Mapping[str, object], durable: bool = True) -> None:
    temporary, descriptor = _write_beside(path, record, durable)
    os.close(descriptor)
    try:
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    if durable:
        sync_directory(os.path.dirname(path))


def create_once(path: str, record: Mapping[str, object]) -> int | None:
    """A descriptor of the new file, locked until it is closed; None where the name was already taken."""
    import fcntl

    temporary, descriptor = _write_beside(path, record, durable=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.link(temporary, path)
    except OSError as problem:
        os.close(descriptor)
        if not isinstance(problem, FileExistsError):
            raise
        return None
    finally:
        os.unlink(temporary)
    sync_directory(os.path.dirname(path))
    return descriptor


class FileLock:
    """`with FileLock(path) as ours`: False where another process has the lock and is not waited for."""

    __slots__ = ("_descriptor", "_path", "_wait")

    def __init__(self, path: str, wait: bool = True) -> None:
        self._path = path
        self._wait = wait

    def __enter__(self) -> bool:
        import fcntl

        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX if self._wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except BaseException:  # asked to stop while it waited
            os.close(self._descriptor)
            raise
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def is_locked(path: str) -> bool:
    """Does somebody still hold the descriptor that `create_once` gave out, or does a FileLock hold it?"""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _write_beside(path: str, record: Mapping[str, object], durable: bool) -> tuple[str, int]:
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        text = (dumps(record) + "\n").encode("utf-8", "surrogateescape")
        while text:
            text = text[os.write(descriptor, text) :]
        if durable:
            os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        os.unlink(temporary)
        raise
    return temporary, descriptor


def make_directory(path: str, mode: int = 0o700) -> None:
    """Make a directory and its parents so that they survive a power loss. What is kept in a directory whose own name
    was lost is lost with it."""
    missing: list[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for made in reversed(missing):
        try:
            os.mkdir(made, mode)
        except FileExistsError:
            pass  # another process was faster, and may die before it has synced
        sync_directory(os.path.dirname(made))


def sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# It counts on while the machine is suspended, and nobody can set it.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_clock() -> float:
    return time.clock_gettime(_CLOCK)


def extend_lease(path: str, until: float) -> None:
    """Until this moment of `lease_clock`. It need not survive the machine: what it is for does not, either."""
    publish(path, {"until": until, "boot": _boot()}, durable=False)


def lease_left(path: str) -> float:
    """Seconds, 0 where it is over."""
    try:
        lease = read(path)
        left = float(lease["until"]) - lease_clock() if lease is not None and lease["boot"] == _boot() else 0.0
    except (Damaged, OSError, KeyError, TypeError, ValueError):
        return 0.0
    return max(left, 0.0)


def _boot() -> str:
    from tenuto.supervise.processes import boot

    return boot()
