"""Contents by their hash, and the files of a repository as they lie there.

An artifact that is too large for the journal is a file named by its hash, <state>/objects/ab/abcdef...: streamed in,
durable before its event is, never changed, never linked to a file that others may write to (showing one copies it).

    stored_version(workspace, sha)   any version of a file that Tenuto ever stored or wrote: an artifact from the
                                     journal or from objects/, one of the last state files as it was, an older one made
                                     again from the events up to that point, if its hash is the one that was asked for
    Files(workspace, tree)           files of a work tree; every path is below it, and no link leads outside
    Surroundings(root)               what lies around a state file, for a view that reads an edit (ports.Surroundings):
                                     other files of its work tree, and the processes of this machine
"""

from __future__ import annotations

import posix

from tenuto.core.fold import fold, fold_repo
from tenuto.encoding import digest, sha256
from tenuto.errors import BadInput, Damaged, HoldsSecret, NotFound, Refused
from tenuto.files.exchange import open_file, place, read_all, read_file, write_all
from tenuto.names import split_file_key
from tenuto.secrets import NO_SECRETS
from tenuto.stores.journal import object_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from tenuto.ports import Reader, Render
    from tenuto.secrets import Secrets
    from tenuto.workspace.workspace import Workspace


_CHUNK = 1 << 20


def put_object(state: str, sha: str, content: bytes) -> str:
    path = object_path(state, sha)
    if not _is_there(path):
        with _New(state) as new:
            write_all(new.file, content)
            new.settle(path)
    return path


def keep_aside(state: str, path: str, content: bytes) -> bool:
    """Keep what stood in a place of ours. False where it is kept already; half of it does not count."""
    try:
        if posix.stat(path).st_size == len(content):
            return False
    except FileNotFoundError:
        pass
    with _New(state) as new:
        write_all(new.file, content)
        new.settle(path)
    return True


def import_file(state: str, source: str, secrets: Secrets = NO_SECRETS) -> tuple[str, int, str]:
    """Copy a file in: (hash, size, path of the object). Refused where it holds a secret."""
    try:
        file = posix.open(source, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError as error:
        raise NotFound("no-such-file", f"{source} cannot be read: {error.strerror}", path=source) from None
    try:
        return import_open_file(state, file, secrets, source)
    finally:
        posix.close(file)


def import_open_file(state: str, file: int, secrets: Secrets = NO_SECRETS, name: str = "") -> tuple[str, int, str]:
    """Refused where the copy holds a secret: a program that writes to the file meanwhile changes nothing."""
    posix.lseek(file, 0, 0)
    hashed, size = sha256(), 0
    with _New(state) as new:
        while chunk := posix.read(file, _CHUNK):
            hashed.update(chunk)
            size += len(chunk)
            write_all(new.file, chunk)
        secrets.refuse_file(new.file, name)
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
        if not bring_object(state, reader, sha):
            raise NotFound("no-such-content", f"nothing is stored under {sha}", "tenuto verify", sha256=sha) from None
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        if hash_file(file)[0] != sha:
            raise Damaged("content-damaged", f"{path} is not what was stored", "tenuto verify", path=path)
    finally:
        posix.close(file)
    return path


def bring_object(state: str, reader: Reader, sha: str) -> bool:
    """From a journal that keeps large files itself; False where it has none of this hash. It is here afterwards."""
    if _is_there(object_path(state, sha)):
        return True
    hashed, found = sha256(), False
    with _New(state) as new:
        for part in reader.large(sha):
            found = True
            hashed.update(part)
            write_all(new.file, part)
        if not found:
            return False
        if hashed.hexdigest() != sha:
            raise Damaged("content-damaged", f"the content {sha} is not what was stored", "tenuto verify", sha256=sha)
        new.settle(object_path(state, sha))
    return True


def hash_at(root: str, path: str) -> str | None:
    """The hash of a file below the repository; None where there is no plain file."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        try:
            file = posix.open(
                spot.name, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK, dir_fd=spot.fd
            )
        except OSError:
            return None
    try:
        plain = posix.fstat(file).st_mode & 0o170000 == 0o100000
        return hash_file(file)[0] if plain else None
    finally:
        posix.close(file)


def keep_standing(workspace: Workspace, root: str | None, path: str, small: int) -> tuple[str, int, bytes | None]:
    """(hash, size, bytes if small) of a file below `root`; a larger one is copied in. ("", 0, None): none to keep."""
    file = open_file(root, path, "name the file itself") if root else None
    if file is None:
        return "", 0, None
    try:
        found = posix.fstat(file)
        if found.st_mode & 0o170000 != 0o100000:
            raise Refused("bad-file", f"{path} is not a plain file", "name the file itself", path=path)
        if found.st_size > small:
            sha, size, _ = import_open_file(workspace.state, file, workspace.secrets, path)
            return sha, size, None
        content = read_all(file)
        if workspace.has_secrets:
            workspace.secrets.refuse(content, path)
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
    out = posix.open(
        name, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o644, dir_fd=folder
    )
    try:
        while posix.sendfile(out, file, None, _CHUNK):
            pass
        posix.fsync(out)
    finally:
        posix.close(out)
        posix.close(file)


class _New:
    """An object on its way in: durable under its name, or gone. Under the lock, so a process has one at a time."""

    def __init__(self, state: str) -> None:
        make_folder(state + "/objects")
        self._path = f"{state}/objects/.new-{posix.getpid()}"
        # What a process of this number left behind when it died is garbage.
        self.file = posix.open(
            self._path, posix.O_RDWR | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o644
        )

    def settle(self, path: str) -> None:
        posix.fsync(self.file)
        folder = path.rpartition("/")[0]
        make_folder(folder)
        posix.rename(self._path, path)
        self._path = ""
        _sync_folder(folder)

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


def make_folder(path: str) -> None:
    """With the folders above it; each may be there already. Those that were not survive a loss of power."""
    try:
        posix.mkdir(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(path.rpartition("/")[0])
        make_folder(path)
        return
    _sync_folder(path.rpartition("/")[0] or "/")


def _sync_folder(path: str) -> None:
    """What was made in it, or renamed into it, is there for good."""
    folder = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        posix.fsync(folder)
    finally:
        posix.close(folder)


def stored_version(workspace: Workspace, sha: str) -> bytes:
    if len(sha) != 64 or sha.strip("0123456789abcdef"):
        raise BadInput("bad-hash", f"{sha!r} is not a SHA-256 hash: 64 of 0-9 and a-f")
    with workspace.journal.read() as reader:
        body = reader.blob(sha)
        if body is not None:
            return body
        found = reader.render_of(sha)
        if found is not None:
            kept = found[1][1] or _made_again(workspace, reader, *found)
            if kept is not None:
                return kept
        bring_object(workspace.state, reader, sha)

    try:
        with open(object_path(workspace.state, sha), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise NotFound("no-such-content", f"nothing is stored under {sha}", "tenuto show RUN", sha256=sha) from None


def _made_again(workspace: Workspace, reader: Reader, key: str, render: Render) -> bytes | None:
    sha, _, name, seq = render
    events = [event for number, event in enumerate(reader.events(name), 1) if number <= seq]
    if not events:
        return None
    run = fold(events)
    repo = fold_repo(event for event in reader.events("@") if event["at"] <= events[-1]["at"])
    _, path = split_file_key(key)
    for name in run["dialects"]:
        view = workspace.views.get(name)
        made = view.render(run, repo).get(path) if view is not None else None
        if made is not None and digest(made) == sha:
            return made
    return None


class Files:
    """The files of one work tree."""

    def __init__(self, workspace: Workspace, tree: str) -> None:
        self._state = workspace.state
        self._workspace = workspace
        self.root = workspace.root_of(tree)

    def read(self, path: str) -> bytes | None:
        """All of a file, without secrets; None where there is none."""
        text = read_file(self.root, path) if self.root else None
        return text if text is None else self._workspace.without_secrets(text, path)

    def names(self, path: str) -> list[str]:
        """What a folder holds, sorted; nothing where there is no such folder."""
        spot = place(self.root, f"{path}/x", create=False) if self.root else None
        if spot is None:
            return []
        with spot:
            return sorted(posix.listdir(spot.fd))

    def changed_at(self, path: str) -> int | None:
        """When a file or folder was last written to, in nanoseconds; None where there is none."""
        try:
            return posix.stat(f"{self.root}/{path}").st_mtime_ns
        except OSError:
            return None

    def is_written(self, path: str) -> bool:
        """Whether somebody has the file open for writing at this moment."""
        from tenuto.files.exchange import is_written

        spot = place(self.root, path, create=False) if self.root else None
        if spot is None:
            return False
        with spot:
            return is_written(spot.fd, spot.name)

    def hash_of(self, path: str) -> str | None:
        return hash_at(self.root, path) if self.root else None

    def stored(self, reader: Reader, sha256: str, limit: int = -1) -> bytes:
        """A stored content by its hash; `limit`: no more than so many bytes of it."""
        found = content_of(self._state, reader, sha256)
        if isinstance(found, bytes):
            return found if limit < 0 else found[:limit]
        file = posix.open(found, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return read_all(file) if limit < 0 else posix.read(file, limit)
        finally:
            posix.close(file)


class Surroundings:
    """Of one work tree. `root`: where it lies; None: it is gone, and none of its files are there. `given`: texts that
    are about to be written there, by path; they count as written now."""

    def __init__(self, root: str | None, given: Mapping[str, bytes] | None = None) -> None:
        self._root = root
        self._given = given or {}

    def written_at(self, path: str) -> int | None:
        """When a file was last written to, in nanoseconds; None where there is none."""
        if path in self._given:
            from time import time_ns

            return time_ns()
        try:
            return posix.stat(f"{self._root}/{path}", follow_symlinks=False).st_mtime_ns
        except OSError:
            return None

    def file(self, path: str) -> bytes | None:
        """The bytes of a plain file below the work tree; None where there is none."""
        if path in self._given:
            return self._given[path]
        if self._root is None or ".." in path.split("/") or path.startswith("/"):
            return None
        try:
            file = posix.open(f"{self._root}/{path}", posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
        except OSError:
            return None
        try:
            return posix.read(file, posix.fstat(file).st_size + 1)
        except OSError:
            return None
        finally:
            posix.close(file)

    def began(self, pid: object) -> str | None:
        return began(pid)


def began(pid: object) -> str | None:
    """When a process began, in the kernel's own count, with the boot that it counts from; None: it has gone.

    Process ids are used again: the two together name one process for ever.
    """
    if not str(pid).isdecimal():
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read().strip()
    except OSError:
        return None
    return f"{fields[19].decode()}@{boot.decode()}"
