"""A flow-state.json that was there before Tenuto: the run that it tells of.

Real files drift: entries lack fields, statuses are spelled in other ways, flags are claimed. All that is read, nothing is
lost (the bytes are kept by their hash), and what we do not know stays in the file. A file that tells of no workflow is somebody
else's: named, refused, untouched.
"""

from __future__ import annotations

from tenuto.core.names import slug
from tenuto.core.tickets import COMPLETE, PHASES
from tenuto.dialects.flow import CHECKPOINT, COMMIT, ENTRY, FILE, FOLDER, PIPELINE, name, schedule
from tenuto.dialects.flow.commands import ENDS
from tenuto.dialects.flow.finding import describe
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_SHOWN = (
    "workflow_id", "phase", "started_at", "updated_at", "current_step", "completed_phases", "next_actions", "agent_history",
    "user_checkpoints", "commits_created", "context_summary", "quality_gates", "resumed_at",
)  # fmt: skip
_WORDS = {"research": "understanding", "analysis": "understanding", "plan": "planning", "implementation": "execution",
          "implement": "execution", "execute": "execution", "integrate": "integration", "completed": COMPLETE,
          "done": COMPLETE}  # fmt: skip


def adopt(turn: Any, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    top, _, rest = path.partition("/")
    folder, _, file = rest.partition("/")
    if top != FOLDER or file != FILE or not folder:
        raise Refused("not-its-place", f"{path} is not where a workflow lies", f"move it to {FOLDER}/<ticket>/{FILE}")
    state, sha, tree = state_in(path, body), digest(body), turn.workspace.tree
    run: str = turn.unused(slug(folder))
    turn.tx.put_blob(sha, body)
    told = str(state.get("workflow_id") or describe(folder))
    made = _run(run, state, {"tree": tree, "folder": folder, "ticket": told}, turn.at)
    turn.do(run, {"do": "Adopt", "dialect": name, "path": path, "sha256": sha, "state": made})
    turn.take_over(f"{tree}//{path}" if tree else path, body)
    return run


def state_in(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state = loads_strict(body)
    except NotJson as problem:
        raise Refused(
            "state-damaged", f"{path} is not JSON that can be read: {problem}", "mend it, or move it away", path=path
        ) from None
    lists = ("agent_history", "user_checkpoints", "commits_created", "completed_phases")
    told = [key for key in lists if isinstance(state.get(key), list)] if isinstance(state, dict) else []
    if not told or phase_in(state) is None:
        raise Refused(
            "not-a-flow-state", f"{path} is not a workflow's state: it has no phase and no history of agents",
            "it belongs to another tool and stays as it is; use another workspace name", path=path,
        )  # fmt: skip
    return state  # type: ignore[no-any-return]


def phase_in(state: Json) -> str | None:
    word = str(state.get("phase", "")).lower()
    return word if word in (*PHASES, COMPLETE) else _WORDS.get(word)


def _run(run: str, state: Json, place: Json, at: str) -> Json:
    phase = phase_in(state) or PHASES[0]
    here = PHASES[-1] if phase == COMPLETE else phase
    started = _text(state.get("started_at")) or at
    decisions = [_decision(n, said, started) for n, said in enumerate(_objects(state, "user_checkpoints"), 1)]
    known = dict(state.get("quality_gates") or {}) if isinstance(state.get("quality_gates"), dict) else {}
    return {
        "id": run, "name": place["folder"], "request": _text(state.get("context_summary")) or place["folder"],
        "summary": _text(state.get("context_summary")), "created_at": started,
        "resumed_at": _text(state.get("resumed_at")) or None,
        "status": "completed" if phase == COMPLETE else "running",
        "stopped_at": _text(state.get("updated_at")) or started if phase == COMPLETE else None,
        "pipeline": {"name": PIPELINE, "hash": None}, "dialects": {name: place}, "order": "strict",
        "schedule": schedule(), "position": here,
        "steps": {step: _step(step, here, phase) for step in PHASES}, "visits": _visits(here, phase, started),
        "attempts": {
            f"a{n}": _attempt(said, here, decisions, started)
            for n, said in enumerate(_objects(state, "agent_history"), 1)
        },
        "decisions": decisions, "commits": [_commit(said, started) for said in _objects(state, "commits_created")],
        "flags": known, "extra": {name: {key: value for key, value in state.items() if key not in _SHOWN}},
    }  # fmt: skip


def _step(step: str, here: str, phase: str) -> Json:
    if PHASES.index(step) < PHASES.index(here) or phase == COMPLETE:
        return {"status": "completed", "iteration": 1, "verdict": None}
    running = step == here
    return {"status": "running" if running else "pending", "iteration": int(running), "verdict": None}


def _visits(here: str, phase: str, started: str) -> list[Json]:
    made = []
    for step in PHASES[: PHASES.index(here) + 1]:
        ended = step != here or phase == COMPLETE
        made.append({
            "step": step, "item": None, "iteration": 1, "status": "success" if ended else "running", "started_at": started,
            "ended_at": started if ended else None, "duration_ms": None, "retries": 0, "closed": 0 if ended else None,
        })  # fmt: skip
    return made


def _attempt(said: Json, here: str, decisions: list[Json], started: str) -> Json:
    status, at = ENDS.get(str(said.get("status", "")).lower()), _text(said.get("timestamp")) or started
    extra = {key: value for key, value in said.items() if key not in ENTRY}
    if status is None and said.get("status") not in ("in_progress", "running", None):
        extra["status"] = said["status"]  # a word of their own, shown as it was
    phase = next((d["step"] for d in decisions if d["approved"] and d["at"] >= at and d["step"] in PHASES), here)
    return {
        "step": phase, "role": str(said.get("agent", "")), "agent": "", "task": str(said.get("task", "")), "item": None,
        "iteration": 1, "number": 1, "status": status or "running", "verdict": None,
        "summary": str(said.get("output_summary", "")), "started_at": at, "ended_at": at if status else None, "usage": {},
        "reserved": {}, "receipt": {}, "extra": extra,
    }  # fmt: skip


def _decision(number: int, said: Json, started: str) -> Json:
    told = {key: value for key, value in said.items() if key not in CHECKPOINT}
    approved = said.get("approved") is True
    return {
        "gate": f"checkpoint-{number}", "name": str(said.get("phase", "")), "step": str(said.get("phase", "")),
        "decision": "approve" if approved else "revise", "approved": approved,
        "feedback": str(said.get("user_feedback", "")), "who": "external", "at": _text(said.get("timestamp")) or started,
        "proof": {"told": told} if told else {},
    }  # fmt: skip


def _commit(said: Json, started: str) -> Json:
    return {
        "step": str(said.get("step", "")), "hash": str(said.get("commit_hash", "")),
        "message": str(said.get("commit_message", "")), "at": _text(said.get("timestamp")) or started,
        "extra": {key: value for key, value in said.items() if key not in COMMIT},
    }  # fmt: skip


def _objects(state: Json, key: str) -> list[Json]:
    found = state.get(key)
    return [said for said in found if isinstance(said, dict)] if isinstance(found, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
