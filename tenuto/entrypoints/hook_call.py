"""One hook call: payload in, recorded durably, answer out. It never breaks the host.

Whatever goes wrong (a payload that is no JSON, a journal that cannot be read, a bug), the exit status
is 0, one line goes to standard error and one to hook.log. The exception is a question (may this
tool be used?) where the user declared a gate blocking: what cannot be answered is then denied,
in the host's own words. The exit status 2, which hosts take for "block", is never used.

A hook that was started by a hook (GUARD is set) does nothing.

Inside an attempt (ATTEMPT is set: an engine started this agent, or whoever leads the run did) nothing is recorded, saved, handed back or
held: whoever started the agent records it. Only what may be done is answered, for the run of that attempt.
"""

from __future__ import annotations

import posix
from time import time_ns

from tenuto.core.times import iso
from tenuto.drivers.hooks import answer
from tenuto.encoding import NotJson, loads_strict
from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.hosts.hearing import EVENTS, hear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tenuto.core.records import Json
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.secrets import Secrecy
    from tenuto.workspace.turn import Workspace

GUARD = b"TENUTO_HOOK"
ATTEMPT = b"TENUTO_ATTEMPT"
MOST_BYTES = 16 << 20
_PROJECT = (b"CLAUDE_PROJECT_DIR", b"GEMINI_PROJECT_DIR")


def call_and_leave(words: list[str], then: Callable[[], None]) -> NoReturn:
    """Ends the process at once: nobody waits for memory to be given back, and closing the journal would checkpoint it."""
    try:
        open_closed()
        status = call(words)
        then()
    except BaseException:  # noqa: BLE001  # not even standard error could be written to
        status = 0
    posix._exit(status)


def open_closed() -> None:
    """A standard stream that the host closed leads to /dev/null: its number would be that of the next file of ours, and the answer would go there."""
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            posix.open("/dev/null", posix.O_RDWR)


def call(words: list[str]) -> int:
    if words[:1] == ["declare"]:
        from tenuto.entrypoints.hook_declare import main

        return main(words[1:])
    if "--help" in words or "-h" in words or (not words and posix.isatty(0)):
        from tenuto.entrypoints.hook_usage import USAGE

        posix.write(1, USAGE.encode())
        return 0
    if GUARD in posix.environ:
        return 0
    event = next((word for word in words if not word.startswith("-")), "")
    said = Saying(event, "--blocking" in words)
    try:
        said.answer(payload(event))
    except BaseException as error:  # noqa: BLE001  # a hook never breaks the host
        said.fail(error)
    return 0


class Saying:
    """One call, and what is known of it so far: enough to answer even when everything else fails."""

    def __init__(self, event: str, blocking: bool) -> None:
        self.event = event
        self.blocking = blocking
        self.state = ""
        self.heard: Heard | None = None
        self.secrecy: Secrecy | None = None

    def answer(self, given: Json) -> None:
        heard = self.heard = hear(self.event, given)
        if ATTEMPT in posix.environ:
            confine(heard)
        if not heard["event"]:
            return
        workspace = self._open(heard)
        if workspace is None:
            return
        self.secrecy = workspace.secrecy
        if self.secrecy is not None:
            heard = self.heard = self.secrecy.out_of(heard)
        text = answer(workspace, heard)
        if text:
            posix.write(1, self._out(text).encode() + b"\n")
        if workspace.warnings:
            self._note("warning", "warning", "; ".join(workspace.warnings))

    def _open(self, heard: Heard) -> Workspace | None:
        """The repository that this is about; None where Tenuto is not used."""
        roots = self._roots()
        for root, tree, state in roots:
            if _is_there(state + "/journal.db"):
                self.state = state
                return _workspace(root, tree, state)
        if not concerns_a_feature(heard):
            return None
        for root, tree, state in roots:
            if _is_there(root + "/.feature-state.json"):
                return _workspace(root, tree, state)
        if heard["host"] == "seed":
            from tenuto.dialects.feature_state import NOT_FOUND

            raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
        return None

    def _roots(self) -> list[tuple[str, str, str]]:
        """What this may be about, the likeliest first. A folder that is gone still tells what it lay in: an agent that removes the one
        that it works in is asked no less for that.
        """
        from tenuto.workspace.locate import locate

        named = [self.heard["cwd"] if self.heard else "", *(posix.environ.get(name, b"").decode("utf-8", "replace") for name in _PROJECT), _here()]
        return [locate(place) for place in dict.fromkeys(named) if place[:1] == "/"]

    def fail(self, error: BaseException) -> None:
        from tenuto.drivers.hooks.failing import must_block

        code, message = _told(error)
        asked = self.heard["event"] if self.heard else EVENTS.get(self.event, "")
        concerned = self.heard is None or bool(self.heard["tool"])
        if asked in ("PreToolUse", "Delegation") and concerned and (self.blocking or must_block(self._state())):
            from tenuto.hosts.answers import deny

            reason = f"tenuto could not look at its gate, and it is declared blocking: {self._out(message)} (tenuto doctor)"
            posix.write(1, deny(self.heard or hear(self.event, {}), reason).encode() + b"\n")
        self._note("error", code, message)

    def _note(self, level: str, code: str, message: str) -> None:
        from tenuto.drivers.hooks.failing import log

        message = self._out(message)
        log(self._state(), iso(time_ns() // 1_000_000), self.event, level, code, message)
        posix.write(2, f"tenuto hook {self.event}: {' '.join(message.split())}\n".encode("utf-8", "replace"))

    def _out(self, text: str) -> str:
        return text if self.secrecy is None else str(self.secrecy.out_of(text))

    def _state(self) -> str:
        if not self.state:
            states = [state for _, _, state in self._roots()]
            self.state = next((state for state in states if _is_there(state + "/journal.db")), states[0] if states else "/nowhere")
        return self.state


def confine(heard: Heard) -> None:
    run = posix.environ.get(b"TENUTO_RUN") or posix.environ[ATTEMPT].partition(b".")[0]
    heard["run"] = run.decode("utf-8", "replace") or "?"
    heard["event"] = "PreToolUse" if heard["event"] in ("PreToolUse", "Delegation") else ""


def concerns_a_feature(heard: Heard) -> bool:
    """May this be the first word about a state file that Tenuto does not know yet?"""
    if heard["host"] == "seed" or heard["event"] == "PreCompact":
        return heard["event"] in ("SubagentStop", "PreCompact", "TaskUpdate")
    if heard["event"] != "SubagentStop":
        return False
    from tenuto.dialects.feature_state import AGENTS

    return heard["role"] in AGENTS


def payload(event: str) -> Json:
    chunks, size = [], 0
    while chunk := posix.read(0, 1 << 16):
        chunks.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise BadInput("too-large", f"the payload has more than {MOST_BYTES >> 20} MiB")
    text = b"".join(chunks)
    if not text.strip():
        return {}
    given = loads_strict(text)
    if not isinstance(given, dict):
        raise NotJson("the payload is no object")
    return given


def _workspace(root: str, tree: str, state: str) -> Workspace:
    from tenuto.workspace.open import open_at

    return open_at(root, tree, state, by="hook")


def _here() -> str:
    try:
        return posix.getcwd()
    except OSError:  # it was removed; where it was, the kernel still knows
        try:
            return posix.readlink("/proc/self/cwd").removesuffix(" (deleted)")
        except OSError:
            return ""


def _is_there(path: str) -> bool:
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def _told(error: BaseException) -> tuple[str, str]:
    if isinstance(error, TenutoError):
        from tenuto.dialects.feature_state import in_seeds_words

        known = in_seeds_words(error)
        return known.code, known.message
    if isinstance(error, NotJson):
        return "not-json", f"the payload is not JSON: {error}"
    return "unexpected", f"{type(error).__name__}: {error}"
