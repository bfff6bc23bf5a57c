"""Small records on disk: whole or absent, durable where it matters, created by exactly one.

    publish       replace: unique temporary file, fsync, rename, fsync of the directory
    create_once   create, complete with its content, for the first caller only
    read          the record, None where there is none; what cannot be parsed is named, never guessed

`create_once` links a finished file to its name instead of creating the name first: nobody
ever sees the name without the content, and a crash leaves either both or neither.
"""

from __future__ import annotations

import os

from tenuto.encoding import NotJson, dumps, loads
from tenuto.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read(path: str) -> Any:
    try:
        with open(path, "rb", buffering=0) as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        record = loads(text.decode("utf-8", "surrogateescape"))
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


def publish(path: str, record: Mapping[str, Any], durable: bool = True) -> None:
    temporary, descriptor = _write_beside(path, record, durable)
    os.close(descriptor)
    try:
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    if durable:
        sync_directory(os.path.dirname(path))


def create_once(path: str, record: Mapping[str, Any]) -> int | None:
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


def is_locked(path: str) -> bool:
    """Does somebody still hold the descriptor that `create_once` gave out?"""
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


def _write_beside(path: str, record: Mapping[str, Any], durable: bool) -> tuple[str, int]:
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


def make_directory(path: str) -> None:
    """Make a directory and its parents so that they survive a power loss."""
    missing: list[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for made in reversed(missing):
        try:
            os.mkdir(made, 0o700)
        except FileExistsError:
            pass  # another process was faster, and may die before it has synced
        sync_directory(os.path.dirname(made))


def sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
