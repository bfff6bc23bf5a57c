"""A feature that the engine drives: the file's one owner, and the answers that discovery found."""

from __future__ import annotations

from tenuto.dialects.feature_state import ANSWERS, owner_key, schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Json:
    return {"place": {"tree": tree, "name": run_id}, "order": "open", "schedule": schedule()}


def opened(turn: Any, run_id: str) -> None:
    """The file takes one feature at a time: an unfinished one is never written over."""
    from tenuto.dialects.feature_state.commands import refuse_second

    refuse_second(turn)
    turn.do_repo({"do": "OwnFile", "path": owner_key(turn.workspace.tree), "run": run_id})


def collected(turn: Any, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
    """The discovery agent ends with a JSON block: {"discoveryAnswers": {...}}."""
    if run["attempts"][attempt]["step"] != "discovery":
        return
    told = turn.workspace.knowledge("findings").answer(reply)
    answers = told.get("discoveryAnswers", told) if isinstance(told, dict) else None
    if isinstance(answers, dict):
        known = {key: str(value) for key, value in answers.items() if key in ANSWERS and value}
        if known:
            turn.do(run["id"], {"do": "RecordAnswers", "answers": known})
