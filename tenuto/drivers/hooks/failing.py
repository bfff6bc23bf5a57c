"""What went wrong in a hook is kept where `tenuto doctor` finds it; the host never sees more than a line.

<state folder>/hook.log      one JSON object a line; at MOST_BYTES it becomes hook.log.1
<state folder>/blocking      who declared a blocking gate ("@": the repository, else a run): while it is
                             there, a question that cannot be answered is answered with no
"""

from __future__ import annotations

import os

from tenuto.encoding import NotJson, dumps, loads_strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Json

MOST_BYTES = 256 * 1024
_LONGEST = 1000


def log(state: str, at: str, event: str, level: str, code: str, message: str) -> None:
    """Best effort: a log that cannot be written breaks nothing."""
    if not os.path.isdir(state):
        return
    path = state + "/hook.log"
    line = dumps({"at": at, "event": event[:64], "level": level, "code": code, "message": message[:_LONGEST]}) + "\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            os.write(file, line.encode("utf-8", "replace"))
            full = os.fstat(file).st_size > MOST_BYTES
        finally:
            os.close(file)
        if full:
            os.replace(path, path + ".1")
    except OSError:
        pass


def read_log(state: str, last: int = 100) -> list[Json]:
    """The newest entries, oldest first."""
    entries: list[Json] = []
    for name in ("hook.log.1", "hook.log"):
        try:
            with open(f"{state}/{name}", "rb") as file:
                lines = file.read(2 * MOST_BYTES).splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                entry = loads_strict(line)
            except NotJson:
                continue
            if isinstance(entry, dict):
                entries.append(entry)
    return entries[-last:]


def must_block(state: str) -> bool:
    """Did somebody declare a gate here that must not be passed unasked?"""
    try:
        return os.stat(state + "/blocking").st_size > 0
    except OSError:
        return False


def mark(state: str, who: str, blocking: bool) -> None:
    """Remember (or forget) outside the journal that `who` declared a blocking gate."""
    path = state + "/blocking"
    try:
        with open(path, encoding="utf-8") as file:
            declared = file.read(1 << 20).split("\n")
    except OSError:
        declared = []
    kept = [name for name in declared if name and name != who] + ([who] if blocking else [])
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("".join(name + "\n" for name in kept))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
