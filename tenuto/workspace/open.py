"""Open a repository: find its journal, know its dialects, take the time from the real clock, keep its secrets."""

from __future__ import annotations

import posix
from sys import modules
from time import time_ns

from tenuto.core.times import iso
from tenuto.encoding import hash_faster
from tenuto.errors import Refused
from tenuto.files.places import read_all
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace.locate import locate
from tenuto.workspace.turn import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tenuto.ports import Clock
    from tenuto.workspace.secrets import Secrecy

# A command that returns lets go of its workspace; the connection would close, and checkpoint outside the lock.
_latest: Workspace | None = None

CONFIG = ".tenuto/config.yaml"
_KIND, _PLAIN_FILE = 0o170000, 0o100000
DIALECTS = ("context", "flow", "feature_docs", "staged", "feature_state")


class LazyDialects(dict[str, "Any"]):
    """Dialects by name, each imported when a run is first shown in it."""

    def __missing__(self, name: str) -> Any:
        if name not in DIALECTS:
            raise KeyError(name)
        self[name] = module = __import__(f"tenuto.dialects.{name}", fromlist=["render"])
        return module

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in DIALECTS else default

    def __contains__(self, name: object) -> bool:
        return name in DIALECTS


def open_workspace(path: str = ".", *, clock: Clock | None = None, by: str = "user") -> Workspace:
    """The repository that `path` lies in. Nothing is created until something is written."""
    if "_hashlib" in modules:  # a program that has OpenSSL already uses it; it would cost a hook its whole time
        hash_faster()
    return open_at(*locate(path), clock=clock, by=by)


def open_at(root: str, tree: str, state: str, *, clock: Clock | None = None, by: str = "user") -> Workspace:
    """The same for a place that was located before."""
    global _latest
    _latest = Workspace(root, tree, SqliteJournal(state), LazyDialects(), clock or real_clock, by)
    return _latest


def real_clock() -> str:
    return iso(time_ns() // 1_000_000)


def secrecy_of(*roots: str | None, names: Iterable[str] = ()) -> Secrecy | None:
    """What is kept out of all that is taken in; None where nothing is secret, which is nearly everywhere.

    `roots`: of this work tree and of the main one: the settings need not be committed. `names`: declared besides.
    """
    declared = [*names, *declared_in(*roots)]
    if not declared:
        return None
    from tenuto.workspace.secrets import secrecy

    return secrecy(declared)


def declared_in(*roots: str | None) -> list[str]:
    """The names that the settings below `roots` call secret."""
    found = {root: text for root in dict.fromkeys(roots) if root and (text := _mention(root))}
    if not found:
        return []
    from tenuto.workspace.secrets import named_in

    return [name for root, text in found.items() for name in named_in(root, text)]


def _mention(root: str) -> bytes:
    """The settings below `root`, where they may say something about secrets."""
    try:
        file = posix.open(f"{root}/{CONFIG}", posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise Refused("bad-settings", f"{root}/{CONFIG} cannot be read: {error.strerror}", "whether anything is secret is not known") from None
    try:
        text = read_all(file) if posix.fstat(file).st_mode & _KIND == _PLAIN_FILE else b""
    finally:
        posix.close(file)
    # YAML may spell a letter in another way, and a text may be in another encoding: whoever reads it says so.
    return text if any(sign in text for sign in (b"secrets", b"\\x", b"\\u", b"\\U", b"\0")) else b""
