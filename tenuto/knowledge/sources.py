"""Where pipelines, roles and settings come from, the strongest first: the repository, what it uses, the user's folder.

    origins(root)        the folders that count for a repository; shipped definitions come behind all of them
    uses_of(root)        the shared repositories that its settings name, each pinned by a commit
    reference(text)      one of them: github.com/org/repo@COMMIT; with a folder in it: github.com/org/repo//tools@COMMIT
    own_folder()         the user's: ~/.config/tenuto

Each folder holds pipelines/, roles/ and config.yaml, as .tenuto/ does. A shared repository keeps them in its
.tenuto/ or at its top. Only a commit is taken, never a branch: what was looked at counts until somebody pins another.

A shared repository lies in the user's folder of state, by its address and commit. It comes there by a fetch that a
person agreed to (workspace/shared.py). One that is named and not there is refused, not passed over: its gates and
settings would be missing without a word.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Literal, NamedTuple

from tenuto.encoding import digest
from tenuto.errors import BadInput, Refused
from tenuto.knowledge.plain_data import is_file, source_of

CONFIG = "config.yaml"
FORM = "github.com/org/repo@COMMIT"
Kind = Literal["repository", "shared", "user"]
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_ADDRESS = re.compile(r"(?:https|ssh|file)://[^\s@]*(?:@[^\s@]+)?\Z")
_PLAIN = re.compile(r"[\w.-]+\.[\w.-]+(?::\d+)?(?:/[\w.~-]+)+\Z")


class Origin(NamedTuple):
    kind: Kind
    folder: Path
    name: str
    """As people are told it."""


class Reference(NamedTuple):
    text: str
    address: str
    """As git takes it."""
    commit: str
    inside: str
    """A folder of that repository; empty: its top."""


def origins(root: Path | None) -> list[Origin]:
    here = of_here(root)
    shared = [Origin("shared", fetched(one), one.text) for one in uses_of(root)] if root else []
    return [*(one for one in here if one.kind == "repository"), *shared, *(one for one in here if one.kind == "user")]


def of_here(root: Path | None) -> list[Origin]:
    """Without the shared ones."""
    own = own_folder()
    found = [Origin("repository", root / ".tenuto", ".tenuto")] if root else []
    return [*found, Origin("user", own, str(own))] if own.is_dir() else found


def uses_of(root: Path) -> list[Reference]:
    """Of settings that cannot be read, none: whoever reads them says what is wrong."""
    path = root / ".tenuto" / CONFIG
    try:
        data = source_of(path).data if is_file(path) else None
        return references(data.get("uses")) if isinstance(data, dict) else []
    except BadInput:
        return []


def references(named: object) -> list[Reference]:
    wanted = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return [reference(one) for one in wanted if isinstance(one, str)]


def is_reference(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(reference(text))
    except BadInput:
        return False


def reference(text: str) -> Reference:
    where, _, commit = text.rpartition("@")
    if not _COMMIT.match(commit):
        message = f"'{text}' names no commit"
        raise BadInput("not-pinned", message, f"all of its {40} hexadecimal digits, not a branch or a tag: {FORM}")
    address, inside = split(where)
    return Reference(text, address, commit, inside)


def split(where: str) -> tuple[str, str]:
    """The address for git, and the folder in that repository."""
    scheme, mark, rest = where.rpartition("://")
    place, _, inside = rest.partition("//")
    address = f"{scheme}{mark}{place}" if mark else f"https://{place}"
    known = _ADDRESS.match(address) if mark else _PLAIN.match(place)
    if not known or any(part in ("", ".", "..") for part in (inside.split("/") if inside else ())):
        message = f"'{where}' is no address of a repository"
        raise BadInput("bad-uses", message, f"{FORM}, or https://, ssh:// or file:// before it")
    return address, inside


# ---- where they lie


def own_folder() -> Path:
    home = os.environ.get("HOME") or "/"
    return Path(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config") / "tenuto"


def place_of(one: Reference) -> Path:
    """Where its files lie, or will."""
    home = os.environ.get("HOME") or "/"
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = state if state.startswith("/") else f"{home}/.local/state"
    name = f"{digest(one.address.encode('utf-8', 'surrogateescape'))[:16]}-{one.commit}"
    return Path(folder) / "tenuto" / "shared" / name


def is_fetched(one: Reference) -> bool:
    return place_of(one).is_dir()


def fetched(one: Reference) -> Path:
    """The folder with its pipelines, roles and settings."""
    place = place_of(one)
    if not place.is_dir():
        message = f"{one.text} is used here, and nobody has fetched it yet"
        raise Refused("not-fetched", message, "tenuto trust   (fetches it, shows all of it, then asks)", uses=one.text)
    _refuse_strangers(place)
    top = place / one.inside if one.inside else place
    if not top.is_dir():
        raise BadInput("bad-uses", f"{one.text}: there is no folder {one.inside} in it", FORM)
    return top / ".tenuto" if (top / ".tenuto").is_dir() else top


def _refuse_strangers(place: Path) -> None:
    found = place.lstat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{place} could have been written by others"
        raise Refused("not-yours", message, f"remove it; tenuto trust fetches it again: rm -r {place}")


def refuse_strangers_file(path: Path) -> None:
    """A file of the user's own: what stands there runs unasked, so nobody else may have written it."""
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{path} names what runs for you, and others could have written it"
        raise Refused("not-yours", message, f"it must be a file of yours: chmod go-w {path}", path=str(path))
