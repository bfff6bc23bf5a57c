"""PAUSE, SET_GATE and RESUME: a task comes to rest, and goes on. Whether it may is decided in core/.

A gate is bound to what it shows: each artifact's hash is taken when the gate is set and again when it is
approved. A file that is not there yet is shown without a hash.
"""

from __future__ import annotations

from tenuto.dialects.context.places import folder_of, phase_of, status_of, visits_of
from tenuto.dialects.context.render import ended_visits
from tenuto.dialects.context.tasks import for_change
from tenuto.dialects.context.wording import in_words, wrong
from tenuto.errors import BadInput, Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import GateSet, Paused, Resumed, Turn, Workspace

GATES = ("design", "final")
DECISIONS = ("approve", "reject", "retry", "revise")
# After a gate: (its name, the decision) -> where the work goes on.
ROUTES = {
    ("design", "approve"): "spec-writer",
    ("design", "revise"): "architect-revision",
    ("final", "revise"): "implementation-fix",
}
# For gates of other names, adopted with a folder: what follows the last phase that succeeded.
ORDER = ("architect", "design-audit", "spec-writer", "implementer", "test-writer", "test-runner", "impl-audit")
NOWHERE = "none"


def pause(workspace: Workspace, reason: str, recommendations: list[str], last_feedback: str, task: str) -> Paused:
    if not reason.strip():
        raise wrong("Missing required parameter: reason")
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(run["id"], {
                "do": "Pause", "reason": reason, "recommendations": recommendations, "last_feedback": last_feedback,
            })  # fmt: skip
        except TenutoError as refusal:
            raise in_words("PAUSE", refusal, run) from None
        return {
            "status": "success", "task": run["id"], "action": "paused", "reason": reason,
            "recommendations": recommendations, "resume_with": f"/resume {run['id']}",
        }  # fmt: skip


def set_gate(workspace: Workspace, gate: str, prompt: str, artifacts: list[str], task: str) -> GateSet:
    name = gate.strip().lower()
    with workspace.turn() as turn:
        run = for_change(turn, task)
        if name not in GATES and not any(visit["status"] == "running" for visit in visits_of(run)):
            raise wrong(f"Invalid gate type: {gate.strip()}")
        if name in GATES and not prompt.strip():
            raise wrong("Missing required parameter: prompt")
        command: Any = {
            "do": "OpenGate", "name": name, "prompt": prompt, "completes": name == "final",
            "shown": shown(turn, run, artifacts),
        }  # fmt: skip
        try:
            turn.do(run["id"], command)
        except TenutoError as refusal:
            raise in_words("SET_GATE", refusal, run) from None
        return {
            "status": "success", "task": run["id"], "action": "gate_set", "gate": name, "prompt": prompt,
            "artifacts": artifacts, "resume_with": f"/resume {run['id']}",
        }  # fmt: skip


def shown(turn: Turn, run: Run, artifacts: list[str]) -> list[dict[str, str | None]]:
    """Each path as it was written, with the hash of what lies there now."""
    return [{"path": path, "sha256": _hash_of(turn, run, path)} for path in artifacts]


def _hash_of(turn: Turn, run: Run, path: str) -> str | None:
    files = turn.workspace.files(run["dialects"]["context"].get("tree", ""))
    bare = path.removeprefix("./")
    if files.root and bare.startswith(files.root.rstrip("/") + "/"):
        bare = bare[len(files.root.rstrip("/")) + 1 :]
    try:
        return files.hash_of(bare) or files.hash_of(f"{folder_of(run['id'])}/{bare}")
    except (BadInput, Refused):
        raise wrong(f"Invalid artifact path: {path}. Use paths below the repository") from None


def resume(workspace: Workspace, decision: str, feedback: str, task: str) -> Resumed:
    word = decision.strip().lower()
    with workspace.turn() as turn:
        run = for_change(turn, task)
        previous = status_of(run)
        if word not in DECISIONS and previous in ("paused", "waiting_gate"):
            raise wrong(f"Invalid decision: {decision.strip()}. Use approve, reject, or retry")
        from_phase = run["pause"]["step"] if run["pause"] else None
        gate = run["gate"]["name"] if run["gate"] else ""
        try:
            turn.do(run["id"], _answer(turn, run, word, feedback))
        except TenutoError as refusal:
            raise in_words("RESUME", refusal, run) from None
        if run["status"] == "completed" and gate == "final":
            from tenuto.dialects.context.memory import remember_candidates

            remember_candidates(turn, run)
        return {
            "status": "success", "task": run["id"], "action": "resumed", "previous_state": previous, "decision": word,
            "continue_from": _continue_from(run, word, gate, from_phase),
            "completed_phases": [phase_of(visit) for visit in ended_visits(run)],
        }  # fmt: skip


def _answer(turn: Turn, run: Run, word: str, feedback: str) -> Any:
    """The command for core: a gate and a pause take different words, and core says which."""
    if run["status"] == "waiting_gate":
        now = shown(turn, run, [entry["path"] for entry in run["gate"]["shown"]]) if run["gate"] else []
        proof = turn.workspace.person(f"{word} a gate", True, run)
        return {
            "do": "DecideGate", "decision": word, "feedback": feedback, "who": turn.workspace.by, "shown": now,
            "proof": proof,
        }  # fmt: skip
    turn.workspace.person("let a paused task go on", False, run)
    if run["status"] == "blocked" and word in ("retry", "reject"):
        return {"do": "Unblock"} if word == "retry" else {"do": "Fail", "error": "rejected: blocked"}
    return {"do": "Resume", "decision": word}


def _continue_from(run: Run, word: str, gate: str, from_phase: str | None) -> str:
    status = status_of(run)
    if status in ("completed", "failed"):
        return NOWHERE
    if word == "retry":
        return from_phase or _following(run)
    if gate == "final" and word == "approve":
        audited = any(phase_of(visit).startswith("impl-audit") for visit in visits_of(run))
        return "graduate-complete" if status == "poc-complete" and audited else NOWHERE
    return ROUTES.get((gate, word)) or _following(run)


def _following(run: Run) -> str:
    """By the phases that have succeeded: the first that has not."""
    done = {phase_of(visit).partition(":")[0] for visit in visits_of(run) if visit["status"] == "success"}
    done |= {"spec-writer"} if "spec" in done else set()
    last = max((at for at, phase in enumerate(ORDER) if phase in done), default=-1)
    return ORDER[last + 1] if last + 1 < len(ORDER) else NOWHERE
