"""`.ai-workspace/<ticket>/flow-state.json`: a ticket from understanding to a merge request, a checkpoint after each phase.

    __init__    where the file lies, and what it shows
    commands    the seven commands
    finding     which workflow is meant
    commits     whether a commit exists
    edits       somebody changed the file: the same in commands
    adoption    a file that was there before Tenuto
    engine      a ticket that the engine drives

`next_actions`, `current_step` and the flags among `quality_gates` follow from what happened (tenuto.core.tickets);
nobody is asked for them.
"""

from __future__ import annotations

from tenuto.core.tickets import COMPLETE, PHASES, current_step, flags, next_actions, phase_of
from tenuto.encoding import pretty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.core.records import Attempt, Json, Repo, Run

name = "flow"
missing = "rewrite"

FOLDER = ".ai-workspace"
FILE = "flow-state.json"
PIPELINE = "ticket"
STATUS = {
    "dispatched": "in_progress", "running": "in_progress", "completed": "completed", "failed": "failed",
    "blocked": "blocked", "lost": "failed",
}  # fmt: skip
ENTRY = ("agent", "task", "status", "timestamp", "output_summary")
CHECKPOINT = ("phase", "approved", "timestamp", "user_feedback")
COMMIT = ("step", "commit_hash", "commit_message", "timestamp")
_HOOKS_OWN = ("session", "depth")
_KEYS = (
    "workflow_id", "phase", "started_at", "updated_at", "current_step", "completed_phases", "next_actions",
    "agent_history", "user_checkpoints", "commits_created", "context_summary", "quality_gates", "resumed_at",
)  # fmt: skip


def schedule() -> list[Any]:
    return [{"step": phase, "approval": True} for phase in PHASES]


def path_of(folder: str) -> str:
    return f"{FOLDER}/{folder}/{FILE}"


def folder_of(run: Run) -> str:
    return str(run["dialects"][name].get("folder") or run["id"])


def paths(run: Run, repo: Repo) -> list[str]:
    return [path_of(folder_of(run))]


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    return {path_of(folder_of(run)): pretty(document(run)).encode()}


def log(run: Run, events: list[Any]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes) -> Iterator[Any]:
    from tenuto.dialects.flow.edits import understand

    return understand(run, path, before, after)


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Any:
    from tenuto.dialects.flow import engine

    return engine.begin(run_id, begun, pipeline, tree)


def opened(turn: Any, run_id: str) -> None:
    from tenuto.dialects.flow import engine

    engine.opened(turn, run_id)


def engaged(turn: Any, run: Run, pipeline: Any) -> None:
    from tenuto.dialects.flow import engine

    engine.engaged(turn, run, pipeline)


def commit_step(run: Run, attempt: Any) -> str:
    from tenuto.dialects.flow import engine

    return engine.commit_step(run, attempt)


def api(workspace: Any) -> Any:
    from tenuto.dialects.flow.commands import FlowCommands

    return FlowCommands(workspace)


def adopt(turn: Any, path: str, body: bytes) -> str:
    from tenuto.dialects.flow.adoption import adopt as take_over

    return take_over(turn, path, body)


# ---- what the file shows ---------------------------------------------------------------------------


def document(run: Run) -> Json:
    place, extra, phase = run["dialects"][name], run["extra"].get(name, {}), phase_of(run)
    told = run["settings"].get(name, {})
    shown: Json = {
        "workflow_id": place.get("ticket") or folder_of(run), "phase": phase,
        "started_at": run["created_at"], "updated_at": run["updated_at"], "current_step": current_step(run),
        "completed_phases": list(PHASES if phase == COMPLETE else PHASES[: PHASES.index(phase)]),
        "next_actions": next_actions(run), "agent_history": history(run),
        "user_checkpoints": [_checkpoint(run, decision) for decision in run["decisions"]],
        "commits_created": [_commit(commit) for commit in run["commits"]],
        "context_summary": told.get("context_summary", run["summary"]), "quality_gates": flags(run),
    }  # fmt: skip
    if run["resumed_at"]:
        shown["resumed_at"] = run["resumed_at"]
    for key, value in extra.items():
        if key not in _KEYS:
            shown[key] = value
    return shown


def history(run: Run) -> list[Json]:
    told = run["extra"].get(name, {}).get("agent_history", {})
    return [entry(attempt) | told.get(key, {}) for key, attempt in run["attempts"].items()]


def entry(attempt: Attempt) -> Json:
    """One delegation. What its reporter told besides is shown as told."""
    shown: Json = {
        "agent": attempt["role"], "task": attempt["task"], "status": STATUS[attempt["status"]],
        "timestamp": attempt["ended_at"] or attempt["started_at"], "output_summary": attempt["summary"],
    }  # fmt: skip
    told = attempt["extra"]
    if "seat" in told:
        return shown  # an engine keeps notes of its own there
    if attempt["agent"]:  # so does a hook
        told = {key: value for key, value in told.items() if key not in _HOOKS_OWN}
    return shown | told


def _checkpoint(run: Run, decision: Any) -> Json:
    shown = {
        "phase": _phase_decided(run, decision), "approved": decision["approved"], "timestamp": decision["at"],
        "user_feedback": decision["feedback"],
    }  # fmt: skip
    told = decision["proof"].get("told")
    return shown | told if isinstance(told, dict) else shown


def _phase_decided(run: Run, decision: Any) -> str:
    """A gate of an engine is called after its phase; a checkpoint is its step."""
    for word in (decision["step"], decision["name"], str(decision["step"]).rpartition("-")[0]):
        if word in PHASES:
            return str(word)
    return phase_of(run)


def _commit(commit: Any) -> Json:
    return {
        "step": commit["step"], "commit_hash": commit["hash"], "commit_message": commit["message"],
        "timestamp": commit["at"], **commit["extra"],
    }  # fmt: skip
