"""Is it a person who decides? The one place that looks, wherever a gate is opened or a rest is ended.

An agent that we started is known by the supervisor above it, another one by what its program leaves in the environment. This
keeps mistakes out, not malice: whoever works as the same user can go around it (drivers/protection.py says what else there is).

The dialects' own commands (RESUME, update_user_checkpoint) are what a model calls to pass a user's word on, by their
seeds: there, only agents that we started are refused, and decisions that must be signed. That holds for runs that are led
by hand; where a pipeline is in force, these commands are no way around its gates.

Light enough for a hot command: a look at the processes above, and at one small file.
"""

from __future__ import annotations

import posix

from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.records import Json, Run

_MARK = b"TENUTO_ATTEMPT"
_SUPERVISOR = b"tenuto/supervise/__main__.py"
_DEEPEST = 200


def refuse_agents(what: str) -> None:
    """What an agent that we started may not do."""
    if _is_supervised():
        raise Refused(
            "agent-decides", f"An agent cannot {what}: only a person can", "leave it to the person who runs Tenuto"
        )


def require_person(what: str, command: str) -> None:
    """What no agent may do, whoever started it: a model in a session of yours neither."""
    refuse_agents(what)
    from tenuto.hosts.surroundings import mark, program

    around = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in posix.environ.items()}
    found = program(around)
    if found:
        message = f"An agent ({found}) cannot {what}: only a person can"
        raise Refused("agent-decides", message, f"in a terminal of your own, without {mark(around)}: {command}", agent=found)


def is_in_attempt(state: str) -> bool:
    """Of this very repository, whose state that is."""
    return any(directory.startswith(f"{state}/attempts/") for directory in _supervised())


def refuse_attempts(state: str, what: str) -> None:
    """What nobody may do who works in an attempt of this repository; in another one it may be what the work is about."""
    if is_in_attempt(state):
        message = f"An agent cannot {what}: it works in an attempt that somebody else leads"
        raise Refused("agent-leads", message, "do what your own prompt asks for, and end with its verdict")


def decision_by_hand(root: str, what: str, gate: bool, run: Run) -> Json:
    """A decision through a dialect's own command. The proof to record with it; Refused where a signature is needed."""
    if run["driver"] == "manual":
        refuse_agents(what)
    else:
        require_person(what, f"tenuto {'approve' if gate else 'resume'} {run['id']}")
    level = _level(root)
    if gate and level == "signed":
        raise Refused(
            "not-signed", "Decisions in this repository are signed", "tenuto approve RUN --sign-with KEY --as NAME"
        )
    return {"level": level}


def _supervised() -> Iterator[str]:
    """The directories of the attempts that this process runs in, the innermost first."""
    pid = posix.getppid()
    for _ in range(_DEEPEST):
        stat, command = _text(f"/proc/{pid}/stat"), _text(f"/proc/{pid}/cmdline")
        if pid <= 1 or not stat:
            return
        arguments = command.split(b"\0")
        if len(arguments) > 4 and arguments[3].endswith(_SUPERVISOR):
            yield arguments[4].decode("utf-8", "surrogateescape")
        pid = int(stat.rpartition(b")")[2].split()[1])


def _is_supervised() -> bool:
    if _MARK in posix.environ:
        return True
    if any(_supervised()):
        return True
    if _text("/proc/self/stat"):
        return False
    # No /proc: the slower way, which asks ps.
    from tenuto.supervise.attempts import enclosing_attempt

    return enclosing_attempt() is not None


def _level(root: str) -> str:
    text = _text(f"{root}/.tenuto/config.yaml")
    telling = [line for line in text.splitlines() if not line.lstrip().startswith(b"#")]
    if not any(word in line for line in telling for word in (b"signed", b"isolated")):
        return "guarded"
    from tenuto.knowledge import yaml_data

    found = yaml_data.read(text.decode("utf-8", "replace"), ".tenuto/config.yaml").data
    return str(found.get("gates", "guarded")) if isinstance(found, dict) else "guarded"


def _text(path: str) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(file, 1 << 16)
    except OSError:
        return b""
    finally:
        posix.close(file)
