"""An agent was started; an agent has stopped. Each becomes an attempt of the run.

An attempt carries the agent's own id, so that a start and a stop that are reported twice are
recorded once. A stop without a start is both. An agent that is called again gets a new attempt.

Where verdicts are asked for (settings.hooks.verdicts), an answer without a verdict line is sent back,
at most MOST_SENT_BACK times, counted in the journal; after that it counts as ERROR.

A run that an engine drives is left alone: whoever dispatches also records. In a run that is handed out piece by
piece the agent works on one of those (handed_out.py).
"""

from __future__ import annotations

from tenuto.core.boundaries import depth_of, settings_of
from tenuto.drivers.hooks import found
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.turn import Turn, Workspace

MOST_SENT_BACK = 2
SEND_BACK = "End your answer with one line that starts with DONE:, NEEDS_REVISION: or ERROR: and says in a few words what came of it."
_WORDS = ("DONE:", "NEEDS_REVISION:", "ERROR:")
_OPEN = ("dispatched", "running")


def started(workspace: Workspace, heard: Heard) -> str:
    if not heard["role"]:
        return ""
    with workspace.turn() as turn:
        run = found(turn, heard)
        if run is not None and run["driver"] == "guided":
            _handed_out().started(turn, run, heard)
        elif run is not None and run["driver"] == "manual" and open_attempt(run, heard) is None:
            dispatch(turn, run, heard)
            _enter_phase(turn, run, heard)
    return ""


def stopped(workspace: Workspace, heard: Heard) -> str:
    if not heard["role"]:
        return ""  # the program compacted its memory with an agent of its own
    with workspace.turn() as turn:
        run = found(turn, heard)
        if run is None:
            run = _adopted(turn, heard)
        if run is not None and run["driver"] == "guided":
            return str(_handed_out().stopped(turn, run, heard))
        if run is None or run["driver"] != "manual":
            return ""
        attempt = open_attempt(run, heard)
        if attempt is None:
            if heard["agent"] in run["attempts"]:
                return ""  # reported before
            attempt = dispatch(turn, run, heard)
        if attempt is None:
            return ""
        return _end(turn, run, attempt, heard)


def _handed_out() -> Any:
    return __import__("tenuto.drivers.hooks.handed_out", fromlist=["started"])


def _end(turn: Turn, run: Run, attempt: str, heard: Heard) -> str:
    verdict, summary = verdict_of(heard["text"])
    if verdict is None and _asked(turn, run):
        again = send_back(turn, run, attempt, heard)
        if again:
            return again
        sent = run["attempts"][attempt]["extra"].get("sent_back", 0)
        verdict, summary = "ERROR", f"no verdict line after {sent} reminders"
    told: Json = {"told": heard["told"]} if heard["told"] else {}
    status = "failed" if verdict == "ERROR" else "completed"
    finish: Any = {"do": "FinishAttempt", "attempt": attempt, "status": status, "verdict": verdict, "summary": summary}
    turn.do(run["id"], finish | told)
    if verdict in (None, "DONE"):
        _complete_phase(turn, run, heard, told)
    return ""


def _asked(turn: Turn, run: Run) -> bool:
    return bool(settings_of(turn.repo["settings"], run).get("verdicts"))


def send_back(turn: Turn, run: Run, attempt: str, heard: Heard) -> str:
    """An answer without a verdict line goes back, where they are asked for; nothing once that was done often enough."""
    sent = int(run["attempts"][attempt]["extra"].get("sent_back", 0))
    if not _asked(turn, run) or sent >= MOST_SENT_BACK or heard["host"] == "gemini":
        return ""
    turn.do(run["id"], {"do": "StartAttempt", "attempt": attempt, "extra": {"sent_back": sent + 1}})
    from tenuto.hosts.answers import block

    return block(heard, SEND_BACK)


def open_attempt(run: Run, heard: Heard) -> str | None:
    """The attempt that this agent is in."""
    agent, attempts = heard["agent"], run["attempts"]
    if agent in attempts and attempts[agent]["status"] in _OPEN:
        return agent
    for name, attempt in attempts.items():
        same = name.startswith(agent + "/") if agent else attempt["extra"].get("session") == heard["session"]
        if same and attempt["status"] in _OPEN and attempt["role"] == heard["role"]:
            return name
    return None


def dispatch(turn: Turn, run: Run, heard: Heard) -> str | None:
    """Record that the agent was called. What cannot be an attempt now is noted, not lost."""
    role, session = heard["role"], heard["parent"] or heard["session"]
    base = heard["agent"] or role
    number = 1 + sum(1 for name in run["attempts"] if name == base or name.startswith(base + "/"))
    attempt = base if number == 1 else f"{base}/{number}"
    extra: Json = {"session": heard["session"], "depth": depth_of(run, heard["parent"])}
    called: Any = {
        "do": "DispatchAttempt", "attempt": attempt, "role": role, "agent": heard["host"], "number": number,
        "step": phase_for(run, role) or run["position"] or "", "extra": extra,
    }  # fmt: skip
    try:
        turn.do(run["id"], called | ({"told": heard["told"]} if heard["told"] else {}))
    except Refused as refusal:
        if refusal.code != "not-an-agent":  # the one who keeps the state is nobody's attempt, and no news either
            turn.do(run["id"], {"do": "Note", "text": f"{role} was called: {refusal.message}", "extra": extra})
        return None
    if session and session not in run["sessions"]:
        turn.bind(run["id"], session)
    return attempt


def verdict_of(text: str) -> tuple[str | None, str]:
    """(verdict, summary); no verdict: (None, the last line)."""
    claims = sum(text.count(word) for word in _WORDS)
    lines = [line for line in text.splitlines() if line.strip()]
    if claims == 1:
        for word in _WORDS:
            for line in lines:
                if line.startswith(word):
                    return word[:-1], line[len(word) :].strip()[:500]
    if claims:
        from tenuto.agents.reply import verdict

        reply = verdict(text)
        if "no line" not in reply.get("reason", ""):
            return reply["verdict"], reply["summary"][:500]
    return None, lines[-1].strip()[:500] if lines else ""


# ---- a feature's agents stand for its phases ---------------------------------------------------------


def phase_for(run: Run, role: str) -> str | None:
    """The phase that this agent's end completes."""
    if "feature_state" not in run["dialects"]:
        return None
    from tenuto.dialects.feature_state import AGENTS

    return AGENTS.get(role)


def _enter_phase(turn: Turn, run: Run, heard: Heard) -> None:
    phase = phase_for(run, heard["role"])
    if phase:
        from tenuto.dialects.feature_state.progress import enter

        enter(turn, run, phase, {"told": heard["told"]} if heard["told"] else {})


def _complete_phase(turn: Turn, run: Run, heard: Heard, told: Json) -> None:
    phase = phase_for(run, heard["role"])
    if phase and run["steps"][phase]["status"] != "completed":
        from tenuto.dialects.feature_state.progress import complete, next_phase

        complete(turn, run, phase, next_phase(run, phase), told)


def _adopted(turn: Turn, heard: Heard) -> Run | None:
    """A feature's agent reports in a work tree whose state file is from before Tenuto: it is taken over."""
    from tenuto.dialects.feature_state import AGENTS

    if heard["role"] not in AGENTS:
        return None
    from tenuto.drivers.hooks.reports import feature_here

    return feature_here(turn, required=False)
