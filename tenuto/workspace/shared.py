"""Repositories that a repository `uses`: fetched when a person agrees, and only the commit that is named.

unfetched(root)          those that are named and not there yet
fetch(references)        their files, into the user's folder of state (knowledge/sources.py says where)
pinned(text)             a reference with its commit, where a branch, a tag or nothing was named
copy_into(root, one)     `tenuto init --template`: its files become the repository's own; none is replaced
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.files import git_remote
from tenuto.files.exchange import place
from tenuto.knowledge import sources
from tenuto.knowledge.sources import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST = 1 << 20  # bytes of a file that is copied
_TAKEN = ("config.yaml", "pipelines", "roles")


def unfetched(root: str) -> list[Reference]:
    return [one for one in sources.uses_of(Path(root)) if not sources.is_fetched(one)]


def fetch(references: Iterable[Reference]) -> None:
    for one in references:
        git_remote.fetch_files(one.address, one.commit, str(sources.place_of(one)))


def pinned(text: str) -> Reference:
    """Asks the other machine where no commit is named."""
    where, mark, name = text.rpartition("@")
    if mark and sources.is_reference(text):
        return sources.reference(text)
    if mark and "/" not in name:
        address, _ = sources.split(where)
        return sources.reference(f"{where}@{git_remote.resolve(address, name)}")
    address, _ = sources.split(text)
    return sources.reference(f"{text}@{git_remote.resolve(address, 'HEAD')}")


def copy_into(root: str, one: Reference) -> list[str]:
    """Paths that were made."""
    top = sources.fetched(one)
    made: list[str] = []
    for source in _files(top):
        target = f".tenuto/{source.relative_to(top)}"
        spot = place(root, target)
        assert spot is not None
        with spot:
            if _make(spot.fd, spot.name, source.read_bytes()):
                made.append(target)
    return made


def _files(top: Path) -> list[Path]:
    found: list[Path] = []
    for name in _TAKEN:
        path = top / name
        found += [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    return [path for path in found if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST]


def _make(folder: int, name: str, body: bytes) -> bool:
    try:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except FileExistsError:
        return False
    with open(file, "wb") as out:
        out.write(body)
    return True
