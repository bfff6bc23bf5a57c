"""Where a projected file lies, found so that no name and no link can lead outside.

A path is checked name by name, and every folder on the way is opened relative to the one
before with O_NOFOLLOW: a folder that is a link, or becomes one while we look, is refused.
"""

from __future__ import annotations

import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start

from tenuto.core.names import check_path
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

LARGEST = 256 << 20  # of a state file or a document; nobody wrote more by hand, and whoever reads it all would not come back
_ELOOP = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """An open folder and a name in it. `with` closes the folder."""

    __slots__ = ("fd", "name", "path")

    def __init__(self, fd: int, name: str, path: str) -> None:
        self.fd = fd
        self.name = name
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def read(self) -> bytes | None:
        """All of the file; None where there is none."""
        try:
            file = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "is a symbolic link" if error.errno == _ELOOP else f"cannot be read: {error.strerror}"
            raise Refused(
                "bad-file", f"{self.path} {why}", "move it away", path=self.path
            ) from None
        try:
            size = os.fstat(file).st_size
            if size > LARGEST:
                raise Refused("too-large", f"{self.path} has {size} bytes; {LARGEST} are the most", "move it away", path=self.path)
            return read_all(file)
        except IsADirectoryError:
            raise Refused("bad-file", f"{self.path} is a folder", "move it away", path=self.path) from None
        finally:
            os.close(file)


def read_all(file: int) -> bytes:
    chunks = []
    while chunk := os.read(file, 1 << 16):  # more than this and each read maps memory anew
        chunks.append(chunk)
    return b"".join(chunks)


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def place(root: str, path: str, create: bool = True) -> Place | None:
    """The place of `path` below `root`. Without `create`, None where a folder on the way is missing."""
    check_path(path)
    if create and path.partition("/")[0].lower() == ".git":
        raise Refused("bad-folder", f"{path} belongs to git", "name another place", path=path)
    return descend(root, path, create)


def descend(root: str, path: str, create: bool = True) -> Place | None:
    """The same for a name that others chose, and that the caller knows not to lead up."""
    parts = path.split("/")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(parts[:-1], 1):
        try:
            below = _enter(here, part, create)
        except OSError:
            raise no_folder("/".join(parts[:number])) from None
        finally:
            os.close(here)
        if below is None:
            return None
        here = below
    return Place(here, parts[-1], path)


def no_folder(path: str) -> Refused:
    return Refused("bad-folder", f"{path} is not a folder of this repository", "a link or a file stands in the way", path=path)


def _enter(folder: int, name: str, create: bool) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            return None
    try:
        os.mkdir(name, dir_fd=folder)
        os.fsync(folder)  # a file that is flushed below it would be lost with it
    except FileExistsError:
        pass  # another process was faster
    return os.open(name, _FOLDER, dir_fd=folder)
