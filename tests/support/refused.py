"""What is refused is not written: `tenuto` as tests call it is held to that, whichever command and code it was.

Compared are every file below the folder that a test works in, the user's own state of Tenuto, and what every run says.
Locks hold nothing; the log of hooks says that one was refused; settings-*.json is a copy of the settings' file, made by
whoever reads it first. An engine that was at work before it was refused has
written what it did until then: its attempts say so.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import tenuto
from tenuto.errors import TenutoError
from tenuto.workspace.trust import folder

CHECKOUT = Path(__file__).resolve().parents[2]
REFUSED = (2, 3, 4)  # the exit status of a wrong command line, of what is not there, of what a rule refuses
_PASSING = ("lock", "/queue", "hook.log", "/journal.db", "/journal.db-wal", "/journal.db-shm", ".pyc")
_ANYWHERE = ("/slots/", "/.git/objects/", "/.git/tenuto/settings-", "/.git/tenuto/driven", "/.git/tenuto/check-slots")

Seen = dict[str, str]


def everything(root: Path) -> Seen:
    """Nothing, where a test works in the checkout itself: others write there, and it is large."""
    found: Seen = {}
    if root.resolve() == CHECKOUT:
        return found
    for top in (root, Path(folder())):
        for path in sorted(top.rglob("*")) if os.access(top, os.R_OK) else ():
            name = str(path.relative_to(top))
            if name.endswith(_PASSING) or any(part in f"/{name}" for part in _ANYWHERE):
                continue
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and ".git/tenuto" in name:
                continue  # where a lock lies
            if stat.S_ISREG(mode):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[name] = os.readlink(path) if stat.S_ISLNK(mode) else str(stat.S_IFMT(mode))
    return {**found, **_runs(root)}


def _runs(root: Path) -> Seen:
    try:
        workspace = tenuto.open(str(root))
    except (TenutoError, OSError):
        return {}
    try:
        with workspace.journal.read() as reader:
            names = ["@", *(run["id"] for run in reader.runs())]
            return {f"run {name}": str(reader.version(name)) for name in names}
    except (TenutoError, OSError):
        return {}
    finally:
        workspace.journal.close()


def hold_unwritten(words: tuple[str, ...], status: int, before: Seen, root: Path) -> None:
    if status not in REFUSED or "-C" in words:
        return
    now = everything(root)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    drove = any("/attempts/" in name for name in changed)
    assert drove or not changed, f"tenuto {' '.join(words)} was refused ({status}), and wrote {', '.join(changed)}"
