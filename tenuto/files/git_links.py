"""Where git's own files lead: `.git` of a linked work tree, and `gitdir` and `commondir` of its git directory.

    path_in(file)            the path that such a file holds; "" where there is none
    git_directory(root)      where the file `.git` in this folder leads; "" where it is none that git would read

Each holds one path as it is, unquoted, and git takes off nothing but line ends at its end. So a path may hold each byte
that the system allows: a file is not read by lines, and no line end inside it is translated.
"""

from __future__ import annotations

from tenuto.files.planted import read_plain

_MOST = 65536  # bytes; no path is that long
_MARK = "gitdir: "


def path_in(file: str) -> str:
    body = (read_plain(file, _MOST) or b"").rstrip(b"\r\n")
    return body.partition(b"\0")[0].decode("utf-8", "surrogateescape")  # to git, a NUL is the end of a text


def git_directory(root: str) -> str:
    from os.path import join, normpath

    said = path_in(f"{root}/.git")
    return normpath(join(root or "/", said[len(_MARK) :])) if said.startswith(_MARK) and said != _MARK else ""
