"""An agent works on an attempt that was handed out (guided.py): what really happened is recorded in that attempt.

It is never an attempt of its own: whoever asked what is to be done also reports. Which one it is: the one that the agent is
known to be in; else the one whose mark stands in the prompt that it was given; else the only one of its role that nobody
works on yet. An agent that fits none is the session's own business, and nothing is recorded.

Its last words are kept beside the prompt, and its verdict in the journal: a report cannot be better than that.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Json, Run
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.turn import Turn

_LOOKED_INTO = 256 * 1024  # bytes of a transcript: its first message is the prompt
_LONGEST = 1 << 20


def started(turn: Turn, run: Run, heard: Heard) -> None:
    if _known(run, heard) is None:
        name = _only_one(run, heard)
        if name is not None:
            _note(turn, run, name, heard, {})


def stopped(turn: Turn, run: Run, heard: Heard) -> str:
    name = _marked(run, heard) or _known(run, heard) or _only_one(run, heard)
    if name is None:
        return ""
    from tenuto.drivers.hooks.delegations import send_back, verdict_of

    verdict, summary = verdict_of(heard["text"])
    again = send_back(turn, run, name, heard) if verdict is None else ""
    _note(turn, run, name, heard, {"said": {"verdict": verdict, "summary": summary}})
    _keep(f"{turn.workspace.state}/attempts/{run['id']}/{name}/1", heard["text"])
    return again


def _note(turn: Turn, run: Run, name: str, heard: Heard, more: Json) -> None:
    extra: Json = {"agent_id": heard["agent"], "session": heard["session"], "host": heard["host"], **more}
    turn.do(run["id"], {"do": "StartAttempt", "attempt": name, "extra": extra})
    session = heard["parent"] or heard["session"]
    if session and session not in run["sessions"]:
        turn.bind(run["id"], session)


def _open(run: Run) -> list[str]:
    return [name for name in run["flying"] if run["attempts"][name]["agent"] == "guided"]


def _known(run: Run, heard: Heard) -> str | None:
    if not heard["agent"]:
        return None
    return next((name for name in _open(run) if run["attempts"][name]["extra"].get("agent_id") == heard["agent"]), None)


def _only_one(run: Run, heard: Heard) -> str | None:
    free = [name for name in _open(run) if "agent_id" not in run["attempts"][name]["extra"] and run["attempts"][name]["role"] == heard["role"]]
    return free[0] if len(free) == 1 else None


def _marked(run: Run, heard: Heard) -> str | None:
    """The attempt whose mark stands at the head of the agent's own transcript."""
    path = heard["payload"].get("agent_transcript_path")
    head = _head(path) if isinstance(path, str) else b""
    found = [name for name in _open(run) if f"[tenuto attempt {run['id']}.{name}]".encode() in head] if head else []
    return found[0] if len(found) == 1 else None


def _head(path: str) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        return posix.read(file, _LOOKED_INTO)
    except OSError:
        return b""
    finally:
        posix.close(file)


def _keep(directory: str, text: str) -> None:
    """Best effort: the verdict is in the journal already."""
    try:
        file = posix.open(f"{directory}/heard", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o644)
    except OSError:
        return
    try:
        posix.write(file, text.encode("utf-8", "replace")[:_LONGEST])
    finally:
        posix.close(file)
