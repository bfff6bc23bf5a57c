"""Artifacts too large for the database: files named by their hash, streamed, durable before the event is.

    <state>/objects/ab/abcdef...

Never changed, never linked to a file that others may write to: showing one copies it.
"""

from __future__ import annotations

import posix

from tenuto.encoding import digest, sha256
from tenuto.errors import Damaged, HoldsSecret, NotFound, Refused
from tenuto.files.places import place, read_all, write_all
from tenuto.stores.schema import make_folder, sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from tenuto.ports import Reader
    from tenuto.workspace.secrets import Secrecy
    from tenuto.workspace.turn import Workspace

_CHUNK = 1 << 20


def object_path(state: str, sha: str) -> str:
    return f"{state}/objects/{sha[:2]}/{sha}"


def put_object(state: str, sha: str, content: bytes) -> str:
    path = object_path(state, sha)
    if not _is_there(path):
        with _New(state) as new:
            write_all(new.file, content)
            new.settle(path)
    return path


def keep_aside(state: str, path: str, content: bytes) -> bool:
    """What was found in a place of ours, for whoever may miss it. False where it is kept already; half of it does not count."""
    try:
        if posix.stat(path).st_size == len(content):
            return False
    except FileNotFoundError:
        pass
    with _New(state) as new:
        write_all(new.file, content)
        new.settle(path)
    return True


def import_file(state: str, source: str, secrecy: Secrecy | None = None) -> tuple[str, int, str]:
    """Copy a file in: (hash, size, path of the object). Refused where it holds a secret."""
    try:
        file = posix.open(source, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError as error:
        raise NotFound("no-such-file", f"{source} cannot be read: {error.strerror}", path=source) from None
    try:
        return import_open_file(state, file, secrecy, source)
    finally:
        posix.close(file)


def import_open_file(state: str, file: int, secrecy: Secrecy | None = None, name: str = "") -> tuple[str, int, str]:
    """Refused where what was copied holds a secret: whoever writes to the file meanwhile changes nothing."""
    posix.lseek(file, 0, 0)
    hashed, size = sha256(), 0
    with _New(state) as new:
        while chunk := posix.read(file, _CHUNK):
            hashed.update(chunk)
            size += len(chunk)
            write_all(new.file, chunk)
        if secrecy is not None:
            secrecy.refuse_file(new.file, name)
        path = object_path(state, hashed.hexdigest())
        new.settle(path)
    return hashed.hexdigest(), size, path


def content_of(state: str, reader: Reader, sha: str) -> bytes | str:
    """A stored content by its hash: the bytes, or the path of the object file where they are many."""
    body = reader.blob(sha)
    if body is not None:
        return body
    path = object_path(state, sha)
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound("no-such-content", f"nothing is stored under {sha}", "tenuto verify", sha256=sha) from None
    try:
        if hash_file(file)[0] != sha:
            raise Damaged("content-damaged", f"{path} is not what was stored", "tenuto verify", path=path)
    finally:
        posix.close(file)
    return path


def hash_at(root: str, path: str) -> str | None:
    """The hash of a file below the repository; None where there is none, or something else: a folder, a pipe, a link."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        try:
            file = posix.open(spot.name, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK, dir_fd=spot.fd)
        except OSError:
            return None
    try:
        plain = posix.fstat(file).st_mode & 0o170000 == 0o100000
        return hash_file(file)[0] if plain else None
    finally:
        posix.close(file)


def keep_standing(workspace: Workspace, root: str | None, path: str, small: int) -> tuple[str, int, bytes | None]:
    """(hash, size, bytes if small) of a file below `root`; a larger one is copied in. ("", 0, None) where there is none to be kept."""
    spot = place(root, path, create=False) if root else None
    if spot is None:
        return "", 0, None
    with spot:
        try:
            file = posix.open(spot.name, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK, dir_fd=spot.fd)
        except FileNotFoundError:
            return "", 0, None
        except OSError:
            raise Refused("bad-file", f"{path} is not a plain file", "name the file itself", path=path) from None
    try:
        found = posix.fstat(file)
        if found.st_mode & 0o170000 != 0o100000:
            raise Refused("bad-file", f"{path} is not a plain file", "name the file itself", path=path)
        if found.st_size > small:
            sha, size, _ = import_open_file(workspace.state, file, workspace.secrecy, path)
            return sha, size, None
        content = read_all(file)
        if workspace.secrecy is not None:
            workspace.secrecy.refuse(content, path)
        return digest(content), len(content), content
    except HoldsSecret as refusal:
        workspace.warn(f"{refusal.message}; its text is not kept")
        return "", 0, None
    finally:
        posix.close(file)


def hash_file(file: int) -> tuple[str, int]:
    hashed, size = sha256(), 0
    while chunk := posix.read(file, _CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return hashed.hexdigest(), size


def copy_to(source: str, folder: int, name: str) -> None:
    """A fresh copy of an object, as a new file."""
    try:
        posix.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    file = posix.open(source, posix.O_RDONLY | posix.O_CLOEXEC)
    out = posix.open(name, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        while posix.sendfile(out, file, None, _CHUNK):
            pass
        posix.fsync(out)
    finally:
        posix.close(out)
        posix.close(file)


class _New:
    """An object on its way in: durable under its name, or gone. Under the lock, so there is one of a process at a time."""

    def __init__(self, state: str) -> None:
        make_folder(state + "/objects")
        self._path = f"{state}/objects/.new-{posix.getpid()}"
        # What a process of this number left behind when it died is nobody's.
        self.file = posix.open(self._path, posix.O_RDWR | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o644)

    def settle(self, path: str) -> None:
        posix.fsync(self.file)
        folder = path.rpartition("/")[0]
        make_folder(folder)
        posix.rename(self._path, path)
        self._path = ""
        sync_folder(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        posix.close(self.file)
        if self._path:
            posix.unlink(self._path)


def _is_there(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True
