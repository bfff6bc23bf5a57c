"""One hook call: payload in, recorded durably, reply out. It never breaks the host.

Whatever goes wrong (a payload that is no JSON, a journal that cannot be read, a bug), the exit status
is 0, one line goes to standard error and one to hook.log. The exception is a question (may this
tool be used?) where the user declared a gate blocking: what cannot be answered is then denied,
in the host's own words. The exit status 2, which hosts take for "block", is never used.

A hook that was started by a hook (GUARD is set) does nothing but answer that question: who sets a variable passes no
gate. Nor does who begins a repository of their own below this one: where a gate was declared blocking further up, it is
asked, too.

Inside an attempt (ATTEMPT is set: an engine or a leading session started this agent) nothing is recorded,
saved, handed back or held, because the one that started the agent records it. Only the question what may be
done is answered, for the run of that attempt.

    answer(workspace, call)   what to print; "" means: go ahead

HANDLERS names the module that acts on each event; a module is imported when its event comes. What may happen
is decided in core/. A handler raises what goes wrong, and HookProcess keeps it away from the host.
"""

from __future__ import annotations

import posix

from tenuto.encoding import NotJson, loads_strict
from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.hooks.parse import EVENTS, parse_hook
from tenuto.stores import journal_exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tenuto.hooks.parse import Event, Handler, HookCall, Payload
    from tenuto.secrets import Secrets
    from tenuto.workspace.workspace import Workspace


GUARD = b"TENUTO_HOOK"
ATTEMPT = b"TENUTO_ATTEMPT"
_QUESTIONS = ("PreToolUse", "Delegation")
MOST_BYTES = 16 << 20
LONGEST_WAIT = 10.0  # seconds for another writer: a host that gets no answer gives up on the hook, and on what it said
_PROJECT = (b"CLAUDE_PROJECT_DIR", b"GEMINI_PROJECT_DIR")


def leave_with(main: Callable[[list[str]], int], words: list[str]) -> NoReturn:
    """Run it and end the process at once: memory need not be given back, and closing the journal would checkpoint
    it."""
    try:
        open_closed()
        status = main(words)
    except BaseException:  # noqa: BLE001  # not even standard error could be written to
        status = 0
    posix._exit(status)


def open_closed() -> None:
    """A standard stream that the host closed leads to /dev/null. Else the next file that Tenuto opens would get its
    number, and the reply would go there."""
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            posix.open("/dev/null", posix.O_RDWR)


def call(words: list[str]) -> int:
    event = next((word for word in words if not word.startswith("-")), "")
    options = [word for word in words if word.startswith("-")]
    process = HookProcess(event, bool(options))  # what is mistyped counts as --blocking: it must not open anything
    try:
        for word in options:
            if word != "--blocking":
                posix.write(2, f"tenuto hook does not know {word}; it knows --blocking\n".encode("utf-8", "replace"))
        process.answer(read_payload())
    except BaseException as error:  # noqa: BLE001  # a hook never breaks the host
        process.fail(error)
    return 0


class HookProcess:
    """One call, and what is known of it so far: enough to reply even when everything else fails."""

    def __init__(self, event: str, blocking: bool) -> None:
        self.event = event
        self.blocking = blocking
        self.state = ""
        self.call: HookCall | None = None
        self.secrets: Secrets | None = None  # also until the repository is known

    def answer(self, payload: Payload) -> None:
        call = self.call = parse_hook(self.event, payload)
        if GUARD in posix.environ and call["event"] not in _QUESTIONS:
            return
        if ATTEMPT in posix.environ:
            confine(call)
        if not call["event"]:
            return
        workspace = self._open(call)
        if workspace is None:
            return
        if workspace.has_secrets:
            self.secrets = workspace.secrets
            call = self.call = self.secrets.value(call)
        text = answer(workspace, call)
        if not text and call["event"] in _QUESTIONS:
            text = self._asked_above(call)
        if text:
            posix.write(1, self._masked(text).encode() + b"\n")
        if workspace.warnings:
            self._note("warning", "warning", "; ".join(workspace.warnings))

    def _asked_above(self, call: HookCall) -> str:
        """By every other repository around that has a blocking gate: the nearest one may have been put there."""
        from tenuto.workspace.locate import has_blocking_gate

        for root, tree, state in self._every_root():
            if state != self.state and has_blocking_gate(state):
                self.state = state
                _refuse_moved(state)
                text = answer(_workspace(root, tree, state), call)
                if text:
                    return text
        return ""

    def _open(self, call: HookCall) -> Workspace | None:
        """The repository that this is about; None where Tenuto is not used."""
        from tenuto.workspace.locate import has_blocking_gate

        roots = self._roots()
        for root, tree, state in roots:
            if journal_exists(state):
                self.state = state
                return _workspace(root, tree, state)
        if call["event"] in _QUESTIONS:
            for root, tree, state in self._every_root():
                if has_blocking_gate(state):
                    self.state = state
                    _refuse_moved(state)
                    return _workspace(root, tree, state)
        if not concerns_a_feature(call):
            return None
        for root, tree, state in roots:
            if _is_there(root + "/.feature-state.json"):
                return _workspace(root, tree, state)
        if call["host"] == "seed":
            from tenuto.views.feature_state import NOT_FOUND

            raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
        return None

    def _roots(self) -> list[tuple[str, str, str]]:
        """What this may be about, the likeliest first. A folder that is gone still tells what it lay in: an agent
        that removes the folder that it works in is asked all the same.
        """
        from tenuto.workspace.locate import locate

        folders = [
            self.call["cwd"] if self.call else "",
            *(posix.environ.get(name, b"").decode("utf-8", "replace") for name in _PROJECT),
            _here(),
        ]
        return [locate(folder) for folder in dict.fromkeys(folders) if folder[:1] == "/"]

    def _every_root(self) -> list[tuple[str, str, str]]:
        """The repositories that this may be about, and those that they lie in."""
        from tenuto.workspace.locate import locate

        found: list[tuple[str, str, str]] = []
        for place in self._roots():
            while place not in found:
                found.append(place)
                above = place[0].rpartition("/")[0]
                if above:  # what lies at the very top is found from below
                    place = locate(above)
        return found

    def fail(self, error: BaseException) -> None:
        code, message = _reason(error)
        event = self.call["event"] if self.call else EVENTS.get(self.event, "")
        concerned = self.call is None or bool(self.call["tool"])
        if event in _QUESTIONS and concerned and (self.blocking or self._has_blocking_gate()):
            from tenuto.hooks.parse import deny

            reason = (
                f"tenuto could not look at its gate, and it is declared blocking: {self._masked(message)} "
                "(tenuto doctor)"
            )
            posix.write(1, deny(self.call or parse_hook(self.event, {}), reason).encode() + b"\n")
        self._note("error", code, message)

    def _note(self, level: str, code: str, message: str) -> None:
        from time import time_ns

        from tenuto.core.times import iso
        from tenuto.hooks.reports import log

        message = self._masked(message)
        log(self._state(), iso(time_ns() // 1_000_000), self.event, level, code, message)
        posix.write(2, f"tenuto hook {self.event}: {' '.join(message.split())}\n".encode("utf-8", "replace"))

    def _masked(self, text: str) -> str:
        return text if self.secrets is None else self.secrets.text(text)

    def _has_blocking_gate(self) -> bool:
        from tenuto.workspace.locate import has_blocking_gate

        return any(has_blocking_gate(state) for _, _, state in self._every_root())

    def _state(self) -> str:
        if not self.state:
            states = [state for _, _, state in self._roots()]
            self.state = next((state for state in states if journal_exists(state)), states[0] if states else "/nowhere")
        return self.state


def _refuse_moved(state: str) -> None:
    if not journal_exists(state):
        raise NotFound("journal-gone", f"the journal of {state} is not where it was, and a gate here is blocking")


def confine(call: HookCall) -> None:
    run = posix.environ.get(b"TENUTO_RUN") or posix.environ[ATTEMPT].partition(b".")[0]
    call["run"] = run.decode("utf-8", "replace") or "?"
    call["event"] = "PreToolUse" if call["event"] in ("PreToolUse", "Delegation") else ""


def concerns_a_feature(call: HookCall) -> bool:
    """May this be the first report about a state file that Tenuto does not know yet?"""
    if call["host"] == "seed" or call["event"] == "PreCompact":
        return call["event"] in ("SubagentStop", "PreCompact", "TaskUpdate")
    if call["event"] != "SubagentStop":
        return False
    from tenuto.views.feature_state import AGENTS

    return call["role"] in AGENTS


def read_payload() -> Payload:
    chunks, size = [], 0
    while chunk := posix.read(0, 1 << 16):
        chunks.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise BadInput("too-large", f"the payload has more than {MOST_BYTES >> 20} MiB")
    text = b"".join(chunks)
    if not text.strip():
        return {}
    payload = loads_strict(text)
    if not isinstance(payload, dict):
        raise NotJson("the payload is no object")
    return payload


def _workspace(root: str, tree: str, state: str) -> Workspace:
    from tenuto.workspace.workspace import open_at

    workspace = open_at(root, tree, state, by="hook")
    workspace.journal.longest_wait = LONGEST_WAIT
    return workspace


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


def _reason(error: BaseException) -> tuple[str, str]:
    if isinstance(error, TenutoError):
        from tenuto.views.feature_state import in_seeds_words

        known = in_seeds_words(error)
        return known.code, known.message
    if isinstance(error, NotJson):
        return "not-json", f"the payload is not JSON: {error}"
    return "unexpected", f"{type(error).__name__}: {error}"


# ---- which module acts on which event --------------------------------------


def answer(workspace: Workspace, call: HookCall) -> str:
    handler = HANDLERS.get(call["event"])
    return handler(workspace, call) if handler else ""


def _agent_started(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.delegations import started

    return started(workspace, call)


def _agent_stopped(workspace: Workspace, call: HookCall) -> str:
    if call["host"] == "seed":
        from tenuto.hooks.reports import phase_completed

        return phase_completed(workspace, call)
    from tenuto.hooks.delegations import stopped

    return stopped(workspace, call)


def _task_updated(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.reports import task_update

    return task_update(workspace, call)


def _tool_used(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.reports import tool_used

    return tool_used(workspace, call)


def _tool_asked(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.gates import tool_asked

    return tool_asked(workspace, call)


def _delegation_asked(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.gates import delegation_asked

    return delegation_asked(workspace, call)


def _stop_asked(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.gates import stop_asked

    return stop_asked(workspace, call)


def _session_started(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.sessions import session_started

    return session_started(workspace, call)


def _compaction_ahead(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.sessions import compaction_ahead

    return compaction_ahead(workspace, call)


def _prompt_given(workspace: Workspace, call: HookCall) -> str:
    from tenuto.hooks.sessions import prompt_given

    return prompt_given(workspace, call)


HANDLERS: dict[Event, Handler] = {
    "SubagentStart": _agent_started,
    "SubagentStop": _agent_stopped,
    "TaskUpdate": _task_updated,
    "PreToolUse": _tool_asked,
    "Delegation": _delegation_asked,
    "PostToolUse": _tool_used,
    "Stop": _stop_asked,
    "SessionStart": _session_started,
    "PreCompact": _compaction_ahead,
    "Prompt": _prompt_given,
}
