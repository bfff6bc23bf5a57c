"""Pipes, sockets and devices that stand where files belong. Git does not see them, and whoever opens a pipe waits.

    special_files(folder)       all of them below a folder, by path; links are not followed
    is_read_unasked(path)       is it one that git or Tenuto opens by its name, wherever it lies in a work tree?
    is_in_use(path)             does a living process listen there?
    read_plain(path, most)      the bytes of a file; None where there is none, or where it is no file: never waits

No repository brings them along: a program of this machine made them. What stood there before an attempt is the user's.
"""

from __future__ import annotations

import os
import stat

_READ_BY_GIT = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".git")
_OPENED = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def special_files(folder: str) -> list[str]:
    found: list[str] = []
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        found.append(os.path.relpath(entry.path, folder))
        except OSError:
            continue  # it went away meanwhile, or nobody of this user may look into it
    return sorted(found)


def is_read_unasked(path: str) -> bool:
    return os.path.basename(path) in _READ_BY_GIT or path.startswith((".git/", ".tenuto/"))


def is_in_use(path: str) -> bool:
    """A socket at which a living process listens, as far as its name says: a server of the user's, perhaps."""
    name = os.path.basename(path).encode("utf-8", "surrogateescape")
    listed = read_plain("/proc/net/unix") or b""
    return any(line.rpartition(b" ")[2].rpartition(b"/")[2] == name for line in listed.splitlines()[1:])


def read_plain(path: str, most: int = -1) -> bytes | None:
    try:
        with open(os.open(path, _OPENED), "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None
