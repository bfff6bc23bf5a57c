"""An agent was started; an agent has stopped. Each becomes an attempt of the run.

An attempt carries the agent's own id, so that a start and a stop that are reported twice are
recorded once. A stop without a start is both. An agent that is called again gets a new attempt.

Where verdicts are asked for (settings.hooks.verdicts), an answer without a verdict line is sent back,
at most MOST_SENT_BACK times, counted in the journal; after that it counts as ERROR.

A run that an engine drives is left alone, because the engine records what it dispatches.

In a run that is handed out piece by piece (engine/guided.py) the agent works on an attempt that was handed out, and
never on one of its own: the session that asked for work also reports it. What really happened is recorded in that
attempt. It is the attempt that the agent is known to be in; else the one whose mark stands in the prompt that the agent
was given; else the only one of its role that no agent works on yet. Where none fits, nothing is recorded. The agent's
last words are kept beside the prompt, and its verdict in the journal: a report cannot be better than that.
"""

from __future__ import annotations

import posix

from tenuto.errors import Refused
from tenuto.hooks.parse import run_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.commands import DispatchAttempt, FinishAttempt
    from tenuto.core.records.run import Json, Run
    from tenuto.hooks.parse import HookCall
    from tenuto.workspace.workspace import Turn, Workspace


MOST_SENT_BACK = 2
SEND_BACK = (
    "End your answer with one line that starts with DONE:, NEEDS_REVISION: or ERROR: and says in a few words what "
    "came of it."
)
_OPEN = ("dispatched", "running")


def started(workspace: Workspace, call: HookCall) -> str:
    if not call["role"]:
        return ""
    with workspace.turn() as turn:
        run = run_of(turn, call)
        if run is not None and run["driver"] == "guided":
            handed_out_started(turn, run, call)
        elif run is not None and run["driver"] == "manual" and open_attempt(run, call) is None:
            record_call(turn, run, call)
            _enter_phase(turn, run, call)
    return ""


def stopped(workspace: Workspace, call: HookCall) -> str:
    if not call["role"]:
        return ""  # the program compacted its memory with an agent of its own
    with workspace.turn() as turn:
        run = run_of(turn, call)
        if run is None:
            run = _adopted(turn, call)
        if run is not None and run["driver"] == "guided":
            return handed_out_stopped(turn, run, call)
        if run is None or run["driver"] != "manual":
            return ""
        attempt = open_attempt(run, call)
        if attempt is None:
            if call["agent"] in run["attempts"]:
                return ""  # reported before
            attempt = record_call(turn, run, call)
        if attempt is None:
            return ""
        return _end(turn, run, attempt, call)


def _end(turn: Turn, run: Run, attempt: str, call: HookCall) -> str:
    verdict, summary = verdict_of(call["text"])
    if verdict is None and _asked(turn, run):
        again = send_back(turn, run, attempt, call)
        if again:
            return again
        sent = run["attempts"][attempt]["extra"].get("sent_back", 0)
        verdict, summary = "ERROR", f"no verdict line after {sent} reminders"
    finish: FinishAttempt = {
        "do": "FinishAttempt",
        "attempt": attempt,
        "status": "failed" if verdict == "ERROR" else "completed",
        "verdict": verdict,
        "summary": summary,
    }
    if call["reported_at"]:
        finish["reported_at"] = call["reported_at"]
    turn.do(run["id"], finish)
    if verdict in (None, "DONE"):
        _complete_phase(turn, run, attempt, call)
    return ""


def _asked(turn: Turn, run: Run) -> bool:
    from tenuto.core.approvals import settings_of

    return bool(settings_of(turn.repo["settings"], run).get("verdicts"))


def send_back(turn: Turn, run: Run, attempt: str, call: HookCall) -> str:
    """An answer without a verdict line goes back where verdicts are asked for; "" once that was done often enough."""
    sent = int(run["attempts"][attempt]["extra"].get("sent_back", 0))
    if not _asked(turn, run) or sent >= MOST_SENT_BACK or call["host"] == "gemini":
        return ""
    turn.do(run["id"], {"do": "StartAttempt", "attempt": attempt, "extra": {"sent_back": sent + 1}})
    from tenuto.hooks.parse import block

    return block(call, SEND_BACK)


def open_attempt(run: Run, call: HookCall) -> str | None:
    """The attempt that this agent is in."""
    agent, attempts = call["agent"], run["attempts"]
    if agent in attempts and attempts[agent]["status"] in _OPEN:
        return agent
    for name, attempt in attempts.items():
        same = name.startswith(agent + "/") if agent else attempt["extra"].get("session") == call["session"]
        if same and attempt["status"] in _OPEN and attempt["role"] == call["role"]:
            return name
    return None


def record_call(turn: Turn, run: Run, call: HookCall) -> str | None:
    """Record that the agent was called. What cannot be an attempt now is noted, not lost."""
    from tenuto.core.approvals import depth_of

    role, session = call["role"], call["parent"] or call["session"]
    base = call["agent"] or role
    number = 1 + sum(1 for name in run["attempts"] if name == base or name.startswith(base + "/"))
    attempt = base if number == 1 else f"{base}/{number}"
    extra: Json = {"session": call["session"], "depth": depth_of(run, call["parent"])}
    dispatch: DispatchAttempt = {
        "do": "DispatchAttempt",
        "attempt": attempt,
        "role": role,
        "agent": call["host"],
        "number": number,
        "step": phase_for(run, role) or run["position"] or "",
        "extra": extra,
    }
    if call["reported_at"]:
        dispatch["reported_at"] = call["reported_at"]
    try:
        turn.do(run["id"], dispatch)
    except Refused as refusal:
        if refusal.code != "not-an-agent":  # the agent that keeps the state is no attempt, and no news either
            turn.do(run["id"], {"do": "Note", "text": f"{role} was called: {refusal.message}", "extra": extra})
        return None
    if session and session not in run["sessions"]:
        turn.bind(run["id"], session)
    return attempt


def verdict_of(text: str) -> tuple[str | None, str]:
    """(verdict, summary); no verdict: (None, the last line)."""
    from tenuto.agents.reply import parse_verdict

    claim = parse_verdict(text)
    if claim.get("problem") not in ("empty", "missing"):
        return claim["verdict"], claim["summary"][:500]
    lines = [line for line in text.splitlines() if line.strip()]
    return None, lines[-1].strip()[:500] if lines else ""


# ---- a feature's agents stand for its phases ---------------------------------------------------------


def phase_for(run: Run, role: str) -> str | None:
    """The phase that this agent's end completes."""
    if "feature_state" not in run["dialects"]:
        return None
    from tenuto.views.feature_state import phase_of_agent

    return phase_of_agent(run, role)


def _enter_phase(turn: Turn, run: Run, call: HookCall) -> None:
    phase = phase_for(run, call["role"])
    if phase:
        from tenuto.dialects.feature_progress import enter

        enter(turn, run, phase, call["reported_at"])


def _complete_phase(turn: Turn, run: Run, attempt: str, call: HookCall) -> None:
    """The phase that the agent was called for: it may be another one by now."""
    phase = run["attempts"][attempt]["step"] if phase_for(run, call["role"]) else None
    if phase and run["steps"][phase]["status"] != "completed":
        from tenuto.dialects.feature_progress import complete, next_phase

        complete(turn, run, phase, next_phase(run, phase), call["reported_at"])


def _adopted(turn: Turn, call: HookCall) -> Run | None:
    """A feature's agent reports in a work tree whose state file is from before Tenuto: it is taken over."""
    from tenuto.views.feature_state import AGENTS

    if call["role"] not in AGENTS:
        return None
    from tenuto.hooks.reports import feature_here

    return feature_here(turn, required=False)


# ---- attempts that were handed out ----------------------------------------


_LOOKED_INTO = 256 * 1024  # bytes of a transcript: its first message is the prompt
_LONGEST = 1 << 20


def handed_out_started(turn: Turn, run: Run, call: HookCall) -> None:
    if _known(run, call) is None:
        name = _only_one(run, call)
        if name is not None:
            _note(turn, run, name, call, {})


def handed_out_stopped(turn: Turn, run: Run, call: HookCall) -> str:
    name = _marked(run, call) or _known(run, call) or _only_one(run, call)
    if name is None:
        return ""

    verdict, summary = verdict_of(call["text"])
    again = send_back(turn, run, name, call) if verdict is None else ""
    _note(turn, run, name, call, {"said": {"verdict": verdict, "summary": summary}})
    _keep(f"{turn.workspace.state}/attempts/{run['id']}/{name}/1", call["text"])
    return again


def forget_agents(turn: Turn, run: Run, call: HookCall) -> None:
    """The program was started anew: agents that it had at work are gone, and what they had is to be done again."""
    if run["driver"] != "guided":
        return
    for name in _open(run):
        known = run["attempts"][name]["extra"]
        if known.get("agent_id") and not known.get("said") and known.get("session") == call["session"]:
            turn.do(run["id"], {"do": "StartAttempt", "attempt": name, "extra": {"agent_id": ""}})


def _note(turn: Turn, run: Run, name: str, call: HookCall, more: Json) -> None:
    since = run["attempts"][name]["extra"].get("at_work_since") or turn.at
    extra: Json = {
        "agent_id": call["agent"],
        "at_work_since": since,
        "session": call["session"],
        "host": call["host"],
        **more,
    }
    turn.do(run["id"], {"do": "StartAttempt", "attempt": name, "extra": extra})
    session = call["parent"] or call["session"]
    if session and session not in run["sessions"]:
        turn.bind(run["id"], session)


def _open(run: Run) -> list[str]:
    return [name for name in run["in_flight"] if run["attempts"][name]["agent"] == "guided"]


def _known(run: Run, call: HookCall) -> str | None:
    if not call["agent"]:
        return None
    return next((name for name in _open(run) if run["attempts"][name]["extra"].get("agent_id") == call["agent"]), None)


def _only_one(run: Run, call: HookCall) -> str | None:
    free = [
        name
        for name in _open(run)
        if not run["attempts"][name]["extra"].get("agent_id") and run["attempts"][name]["role"] == call["role"]
    ]
    return free[0] if len(free) == 1 else None


def _marked(run: Run, call: HookCall) -> str | None:
    """The attempt whose mark stands at the head of the agent's own transcript."""
    path = call["payload"].get("agent_transcript_path")
    head = _head(path) if isinstance(path, str) else b""
    marked = [name for name in _open(run) if f"[tenuto attempt {run['id']}.{name}]".encode() in head] if head else []
    return marked[0] if len(marked) == 1 else None


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
