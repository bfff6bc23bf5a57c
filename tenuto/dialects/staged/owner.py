"""Which session a state belongs to: the process id that `ownerPpid` tells, and when that process began.

Process ids are used again. A state whose owner has gone, and whose number now names somebody else, belongs to nobody.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Json, Run


def identify(pid: object) -> Json:
    """What is kept beside `ownerPpid`: when that process began (None: it has gone, or nobody can tell)."""
    return {"pid": str(pid), "began": began(pid)}


def began(pid: object) -> str | None:
    """When a process began, in the kernel's own count, with the boot it counts from."""
    if not str(pid).isdecimal():
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read().strip()
    except OSError:
        return None
    return f"{fields[19].decode()}@{boot.decode()}"


def owns(run: Run, pid: object) -> bool:
    """Whether the process `pid` of this moment is the one that the run belongs to."""
    owner = run["settings"].get("owner")
    if not isinstance(owner, dict) or owner.get("pid") != str(pid) or owner.get("began") is None:
        return False
    return str(run["settings"].get("ownerPpid")) == str(pid) and owner["began"] == began(pid)


def is_alive(run: Run) -> bool:
    owner = run["settings"].get("owner")
    return isinstance(owner, dict) and owner.get("began") is not None and began(owner.get("pid")) == owner["began"]
