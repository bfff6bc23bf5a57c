"""Copies into work trees and out of them: whatever stands there, nothing is written where a link leads.

    copy(source, root, name)         a file, a link or a folder becomes `name` below `root`
    put(root, name, text)            the same for bytes
    make_folder(root, name)          it, and those on the way
    keep_from_writing(root, name)    a file that is only read from now on

Names come from git, from patterns and from plans, so they are not held to what Tenuto calls its own files; none leads
up. Folders on the way are opened one from the other, none of them a link. A file is written beside its place and
renamed: a link that stands there is replaced, and a process that is killed meanwhile leaves the old file whole. Special
permissions (setuid) are not copied: the copy belongs to this user, and the file may be another user's.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable

from tenuto.encoding import digest
from tenuto.errors import BadInput, Refused
from tenuto.files.exchange import Place, descend, no_folder, write_all

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def copy(source: str, root: str, name: str) -> None:
    with _spot(root, name) as spot:
        _copy(source, spot.fd, spot.name, name)


def put(root: str, name: str, text: bytes) -> None:
    def write(fd: int, aside: str) -> None:
        file = os.open(aside, _NEW, 0o644, dir_fd=fd)
        try:
            write_all(file, text)
        finally:
            os.close(file)

    with _spot(root, name) as spot:
        _replace(spot.fd, spot.name, name, write)


def make_folder(root: str, name: str) -> None:
    with _spot(root, f"{name}/_"):
        pass


def keep_from_writing(root: str, name: str) -> None:
    with _spot(root, name) as spot:
        try:
            file = os.open(spot.name, _PLAIN, dir_fd=spot.fd)
        except OSError:
            return  # there is none, or a link: what it leads to is not ours
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.fchmod(file, 0o444)
    finally:
        os.close(file)


def _spot(root: str, name: str) -> Place:
    if {"", ".", ".."} & set(name.split("/")):
        raise BadInput(
            "bad-name", f"the path {name!r} cannot be used: it leads outside", "use a path below the repository"
        )
    spot = descend(root, name)
    assert spot is not None
    return spot


def _copy(source: str, fd: int, name: str, path: str) -> None:
    found = os.lstat(source)
    if stat.S_ISDIR(found.st_mode):
        _copy_folder(source, fd, name, path)
    elif stat.S_ISLNK(found.st_mode):
        _replace(fd, name, path, lambda fd, aside: os.symlink(os.readlink(source), aside, dir_fd=fd))
    elif stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        _replace(fd, name, path, lambda fd, aside: _copy_file(source, fd, aside))


def _copy_folder(source: str, fd: int, name: str, path: str) -> None:
    try:
        os.mkdir(name, dir_fd=fd)
    except FileExistsError:
        pass
    try:
        folder = os.open(name, _FOLDER, dir_fd=fd)
    except OSError:
        raise no_folder(path) from None
    try:
        for entry in os.listdir(source):
            _copy(f"{source}/{entry}", folder, entry, f"{path}/{entry}")
        os.fchmod(folder, os.stat(source).st_mode & 0o777)
    finally:
        os.close(folder)


def _copy_file(source: str, fd: int, aside: str) -> None:
    with open(source, "rb") as file, open(os.open(aside, _NEW, 0o600, dir_fd=fd), "wb") as out:
        shutil.copyfileobj(file, out, 1 << 20)
        out.flush()
        found = os.fstat(file.fileno())
        os.fchmod(out.fileno(), found.st_mode & 0o777)
        os.utime(out.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


def _replace(fd: int, name: str, path: str, make: Callable[[int, str], None]) -> None:
    aside = f".{digest(os.fsencode(name))[:16]}.tenuto-new"  # whose length no long name makes too long
    try:
        os.unlink(aside, dir_fd=fd)  # of a process that was killed
    except FileNotFoundError:
        pass
    make(fd, aside)
    try:
        os.rename(aside, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError as error:
        os.unlink(aside, dir_fd=fd)
        raise Refused(
            "bad-file", f"{path} cannot be written: {error.strerror}", "move away what stands there", path=path
        ) from None
