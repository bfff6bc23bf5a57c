"""What the engine and `tenuto adopt` ask about a task of the context manager.

    begin, opened, engaged    where it is shown: from its start, or from the middle of a task that was led by hand
    collected                 an attempt's outputs are there: audits go to the history
    act                       what only this dialect can do for a pipeline: debt, graduation, project memory

Nothing here decides what runs, or whether it counts.
"""

from __future__ import annotations

from tenuto.dialects.context.tasks import (
    adopt,
    find_task,
    look_at_artifacts,
    open_history,
    point_to,
    refuse_folder,
    settle_pointer,
    take_over,
)
from tenuto.dialects.dialect import Dialect
from tenuto.errors import NotFound, Refused
from tenuto.views.context.state import NAME, tree_of, unseen_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline, Step
    from tenuto.core.records.run import Json, Run
    from tenuto.dialects.context.storing import Issue
    from tenuto.dialects.dialect import Beginning
    from tenuto.workspace.workspace import Turn


class ContextDialect(Dialect):
    name = NAME

    def adopt(self, turn: Turn, path: str, body: bytes) -> str:
        slug = path.split("/")[-2]
        if adopt(turn, slug) is None:
            raise Refused("not-a-task", f"{path} holds no task", path=path)
        return slug

    def find(self, turn: Turn, name: str) -> Run | None:
        """A task whose folder lies there, and which no journal knows so far."""
        try:
            return find_task(turn, name)
        except NotFound:
            return None

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        return {"place": {"tree": tree, "unseen": _unseen(pipeline)}, "order": "any"}

    def opened(self, turn: Turn, run: str) -> None:
        """A new task: it becomes the current one, unless a folder of its name lies there."""
        refuse_folder(turn, run, f"tenuto run --run {run}")
        settle_pointer(turn)
        point_to(turn, run)
        open_history(turn)

    def engaged(self, turn: Turn, run: Run, pipeline: Pipeline) -> None:
        """The engine takes over a task: from here its gates and actions are known as what they are."""
        take_over(turn, run)
        before = unseen_of(run)
        unseen = [*before, *(step for step in _unseen(pipeline) if step not in before)]
        turn.do(run["id"], {"do": "ShowIn", "dialect": NAME, "place": {**run["dialects"][NAME], "unseen": unseen}})
        settle_pointer(turn)
        point_to(turn, run["id"])

    def artifact_name(self, path: str) -> str:
        """Of a file below the task's folder; the path itself where the layout has no such file."""
        from tenuto.views.context.manifest import artifact_at

        return artifact_at(path) or path

    def collected(self, turn: Turn, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
        """Audits go to the history. What the agent said besides is no document."""
        from tenuto.dialects.context.storing import AUDITS, LOOKED_INTO, record_audit

        for artifact in artifacts:
            record = run["artifacts"][artifact]
            if artifact in AUDITS:
                files = turn.workspace.files(tree_of(run))
                body = files.stored(turn.tx, record["sha256"]) if record["size"] <= LOOKED_INTO else b""
                record_audit(turn, run, artifact, body, run["attempts"][attempt]["iteration"], record["path"])

    def act(self, turn: Turn, run: Run, pipeline: Pipeline, action: str) -> Json | None:
        match action:
            case "promote-memory":
                return _promote_memory(turn, run)
            case "check-graduation":
                return _check_graduation(turn, run)
            case "record-debt":
                return _record_debt(turn, run, pipeline)
            case "mark-graduated":
                return _mark_graduated(turn, run)
        return None


def _unseen(pipeline: Pipeline) -> list[str]:
    """Gates and actions, and groups of items: those are seen in their attempts."""
    return [step["id"] for step in pipeline["steps"] if step["kind"] in ("gate", "action") or _is_group(step)]


def _is_group(step: Step) -> bool:
    return step["kind"] == "waves" and all(step["id"] != seat["role"] for seat in step["waves"]["seats"])


# ---- actions ---------------------------------------------------------------------------------------


def _promote_memory(turn: Turn, run: Run) -> Json:
    from tenuto.dialects.context.retrieving import remember_candidates

    remember_candidates(turn, run)
    return {}


def _check_graduation(turn: Turn, run: Run) -> Json:
    from tenuto.dialects.context.retrieving import refuse_graduation

    look_at_artifacts(turn, run)
    refuse_graduation(turn, run)
    return {}


def _record_debt(turn: Turn, run: Run, pipeline: Pipeline) -> Json:
    """What was left out, and what the documents of the task call wrong with it."""
    from tenuto.dialects.context.storing import debt_document, debt_of, keep, with_front_matter

    issues = _known_issues(turn, run)
    document = debt_document(pipeline["skips"], issues, turn.at)
    turn.look(run["id"], debt_of(run), "debt")
    keep(turn, run, "debt", debt_of(run), (with_front_matter(document), ""), "debt")
    return {"skipped": pipeline["skips"], "issues": len(issues)}


def _known_issues(turn: Turn, run: Run) -> list[Issue]:
    from tenuto.knowledge.findings import findings

    issues: list[Issue] = []
    for artifact in sorted(run["artifacts"]):
        if artifact.endswith(".md") or artifact in ("debt", "audit-history"):
            continue
        phase = artifact.partition("/")[0]
        text = turn.workspace.files().stored(turn.tx, run["artifacts"][artifact]["sha256"]).decode("utf-8", "replace")
        for finding in findings(text):
            description, severity = " ".join(finding["text"].split()), finding["severity"].lower()
            issues.append({"phase": phase, "description": description, "severity": severity})
    return issues


def _mark_graduated(turn: Turn, run: Run) -> Json:
    """The time of graduation in debt.md; the pipeline's end says it of the run, in the same turn."""
    from tenuto.dialects.context.storing import debt_of, graduated_debt, keep

    turn.look(run["id"], debt_of(run), "debt")
    keep(turn, run, "debt", debt_of(run), (graduated_debt(turn, run), ""), "debt")
    return {}
