"""A staged run that the engine drives: what the file needs to know from the start, and the file's one owner.

The schedule and the gates are the pipeline's own where its steps are phases of this dialect; a run of another pipeline is
shown along the phases of its profile.
"""

from __future__ import annotations

from tenuto.dialects.staged import owner_key
from tenuto.dialects.staged.profiles import (
    COMPLEXITY,
    DEFAULTS,
    PHASES,
    agents,
    evidence_of,
    known_profile,
    schedule_of,
)
from tenuto.encoding import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Json:
    told = begun["settings"]
    profile = known_profile(told.get("pipelineProfile"))
    tests, docs = pipeline["switches"].get("tests", True), pipeline["switches"].get("docs", True)
    settings: Json = {**loads(dumps(DEFAULTS)), **told, "pipelineProfile": profile, **_owner(), **agents(False)}
    settings |= {"codexAvailable": False, "worktree": None, "taskAnalysis": {
        "complexity": next(word for word, chosen in COMPLEXITY.items() if chosen == profile),
        "needsTests": tests, "needsDocs": docs, "reasoning": "",
    }}  # fmt: skip
    made: Json = {"place": {"tree": tree}, "settings": settings, "order": "strict"}
    if _is_ours(pipeline):
        schedule = schedule_of(profile, tests)
        made |= {"schedule": schedule, "evidence": evidence_of(schedule)}
    return made


def _is_ours(pipeline: Any) -> bool:
    phases = [phase for phase, _, _, _ in PHASES]
    return all(step["id"] in phases for step in pipeline["steps"])


def _owner() -> Json:
    from os import getppid

    from tenuto.dialects.staged.owner import identify

    pid = str(getppid())
    return {"ownerPpid": pid, "owner": identify(pid)}


def opened(turn: Any, run_id: str) -> None:
    """The file takes one task at a time: an unfinished one is never written over."""
    from tenuto.dialects.staged.beginning import worktree_of
    from tenuto.dialects.staged.operations import refuse_second

    refuse_second(turn)
    turn.do_repo({"do": "OwnFile", "path": owner_key(turn.workspace.tree), "run": run_id})
    worktree = worktree_of(turn.workspace, turn.at)
    if worktree is not None:
        turn.do(run_id, {"do": "ChangeSettings", "changes": {"worktree": worktree}})


def tasks_told(run: Run) -> Json | None:
    """For the file's `failure.context`: how far the tasks were."""
    if not run["items"]:
        return None
    by: dict[str, list[str]] = {"completed": [], "failed": [], "pending": []}
    for name, item in run["items"].items():
        by[item["status"] if item["status"] in by else "pending"].append(name)
    return {
        "completedTasks": by["completed"],
        "failedTask": ", ".join(by["failed"]) or None,
        "pendingTasks": by["pending"],
    }
