"""START_PHASE and END_PHASE. Whether they may happen is decided in core/."""

from __future__ import annotations

from tenuto.dialects.context.places import metrics_of
from tenuto.dialects.context.tasks import for_change, keep_file
from tenuto.dialects.context.wording import in_words, wrong
from tenuto.errors import TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import PhaseEnded, PhaseStarted, Turn, Workspace

RESULTS = ("success", "failed")


def start_phase(workspace: Workspace, phase: str, task: str) -> PhaseStarted:
    name = _phase(phase)
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(run["id"], {"do": "StartStep", "step": name})
        except TenutoError as refusal:
            raise in_words("START_PHASE", refusal, run) from None
        return {"status": "success", "task": run["id"], "phase_started": name, "started_at": turn.at}


def end_phase(workspace: Workspace, phase: str, status: str, task: str) -> PhaseEnded:
    name, result = _phase(phase), status.strip().lower()
    if result not in RESULTS:
        raise wrong(f"Invalid status: {status}. Use {' or '.join(RESULTS)}")
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(run["id"], {"do": "EndStep", "step": name, "status": result})
        except TenutoError as refusal:
            raise in_words("END_PHASE", refusal, run) from None
        ended = max((visit for visit in run["visits"] if visit["closed"] is not None), key=lambda v: v["closed"] or 0)
        _settle_metrics(turn, run)
        return {
            "status": "success", "task": run["id"], "phase_ended": name, "duration_ms": ended["duration_ms"] or 0,
            "result": result, "running_phases": sum(1 for visit in run["visits"] if visit["status"] == "running"),
        }  # fmt: skip


def _phase(phase: str) -> str:
    name = ":".join(" ".join(part.split()) for part in phase.split(":"))
    if not name:
        raise wrong("Missing required parameter: phase")
    if "," in name:
        raise wrong(f"Invalid phase: {name}. One phase per command")
    return name


def _settle_metrics(turn: Turn, run: Run) -> None:
    """Another program's metrics of a task of that name are kept before ours take their place."""
    if sum(1 for visit in run["visits"] if visit["closed"] is not None) == 1:
        keep_file(turn, run, metrics_of(run["id"]))
