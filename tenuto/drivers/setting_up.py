"""Settings of agent programs on this machine: read, planned, shown, and written as they were shown.

    plan(host, scope, places, servers)   -> what each file is and would be
    write(plans)                         -> does it, if nobody changed a file in the meantime
    find_launch()                        -> how this Tenuto is started by hooks

A file is exchanged whole (a link is followed, so that people's dotfiles stay links) and keeps its mode. A file that
was made for our entries goes with them; folders stay.
"""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tenuto.errors import BadInput, Conflict, TenutoError, Unwritable
from tenuto.hosts.settings import File, Launch, Places, files, set_up, undo

MOST_BYTES = 8 << 20


class Plan(NamedTuple):
    file: File
    before: str | None
    after: str | None

    @property
    def change(self) -> str:
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> Iterator[str]:
        old, new = (text or "" for text in (self.before, self.after))
        was, will = ("/dev/null" if text is None else self.file.path for text in (self.before, self.after))
        yield from difflib.unified_diff(old.splitlines(), new.splitlines(), was, will, lineterm="")


def find_launch() -> Launch:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return Launch(sys.executable, f"{package}/entrypoints/hook.py")


def places(root: str) -> Places:
    return Places(os.path.expanduser("~"), root, dict(os.environ))


def plan(host: str, scope: str, where: Places, servers: bool = True, taking_out: bool = False) -> list[Plan]:
    launch = find_launch()
    plans = []
    for file in files(host, scope, where, servers=servers or taking_out):
        before = read(file.path)
        try:
            after = (before and undo(before, file)) if taking_out else set_up(before, file, launch)
        except TenutoError as error:
            raise BadInput(error.code, f"{file.path}: {error.message}", error.hint) from None
        plans.append(Plan(file, before, after))
    return plans


def read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            body = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput("cannot-read", f"{path}: {error.strerror}", "check what this is and whose") from None
    if len(body) > MOST_BYTES:
        raise BadInput("too-large", f"{path} has more than {MOST_BYTES >> 20} MiB", "this is no settings file")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not-text", f"{path} is not UTF-8", "mend the file first") from None


def write(plans: list[Plan]) -> None:
    for one in plans:
        if read(one.file.path) != one.before:
            raise Conflict("changed-meanwhile", f"{one.file.path} was changed in the meantime", "do it again")
    for one in plans:
        if one.change != "none":
            try:
                _exchange(os.path.realpath(one.file.path), one.after)
            except OSError as error:
                raise Unwritable("cannot-write", f"{one.file.path}: {error.strerror}", "check whose it is") from None


def _exchange(path: str, text: str | None) -> None:
    if text is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.{os.getpid()}.new"
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = None
    try:
        with open(new, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(new, mode)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def compile_bytecode() -> None:
    """A hook without bytecode takes twice as long. Where it may not be written, Python does without."""
    import compileall

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.access(package, os.W_OK):
        compileall.compile_dir(package, quiet=2)
