"""A task that the engine drives, in this dialect's words.

    begin, opened, engaged    where it is shown: from its start, or from the middle of a task that was led by hand
    phases                    what the manifest calls phases: the attempts of agents; gates and actions are none
    artifact_name             what this dialect calls a file of the task's folder
    collected                 an attempt's outputs are there: audits go to the history
    ACTIONS                   what only this dialect can do for a pipeline: debt, graduation, project memory

Nothing here decides what runs, or whether it counts.
"""

from __future__ import annotations

from tenuto.dialects.context.places import NAME, folder_of
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json, Run
    from tenuto.dialects.context.shapes import Turn

# Attempts that neither succeeded nor failed: the phase goes on with the next one.
_UNFINISHED = ("PARKED", "QUESTION")


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Json:
    return {"place": {"tree": tree, "unseen": _unseen(pipeline)}, "order": "any"}


def opened(turn: Turn, run_id: str) -> None:
    from tenuto.dialects.context.tasks import open_history, point_to, settle_pointer

    files = turn.workspace.files()
    from tenuto.dialects.context.places import legacy_of, manifest_of

    if any(files.changed_at(path) is not None for path in (manifest_of(run_id), legacy_of(run_id))):
        raise Refused("task-exists", f"Task already exists: {run_id}", f"tenuto run --run {run_id}", task=run_id)
    settle_pointer(turn)
    point_to(turn, run_id)
    open_history(turn)


def engaged(turn: Turn, run: Run, pipeline: Any) -> None:
    """The engine takes over a task: from here its gates and actions are known as what they are."""
    from tenuto.dialects.context.tasks import point_to, settle_pointer, take_over

    take_over(turn, run)
    known = run["dialects"][NAME].get("unseen", [])
    place = {**run["dialects"][NAME], "unseen": [*known, *(step for step in _unseen(pipeline) if step not in known)]}
    turn.do(run["id"], {"do": "ShowIn", "dialect": NAME, "place": place})
    settle_pointer(turn)
    point_to(turn, run["id"])


def _unseen(pipeline: Any) -> list[str]:
    """Gates and actions, and groups of items: those are seen in their attempts."""
    return [step["id"] for step in pipeline["steps"] if step["kind"] in ("gate", "action") or _is_group(step)]


def _is_group(step: Any) -> bool:
    return step["kind"] == "waves" and all(step["id"] != seat["role"] for seat in step["waves"]["seats"])


# ---- phases ----------------------------------------------------------------------------------------


def phases(run: Run) -> list[Any]:
    """Visits as the manifest shows them. One entry per attempt, so that retries and items stay visible."""
    unseen = run["dialects"][NAME].get("unseen", [])
    tried = _attempts_by_visit(run)
    shown: list[Any] = []
    failures: dict[str, int] = {}
    for visit in run["visits"]:
        own = tried.get((visit["step"], visit["iteration"]), []) if visit["item"] is None else []
        entries = _entries(run, visit, own)
        if entries:
            for entry in entries:
                name = f"{entry['step']}:{entry['item']}"
                entry["retries"] = failures.get(name, 0)
                failures[name] = failures.get(name, 0) + (entry["status"] == "failed")
            shown += entries
        elif visit["step"] not in unseen:
            shown.append(visit)
    return shown


def retries(run: Run) -> int:
    """Failed attempts in place of failed visits, where the engine made them."""
    if not _is_driven(run):
        return run["retries"]
    by_hand = [visit for visit in run["visits"] if visit["status"] == "failed"]
    shown = [visit for visit in phases(run) if visit["status"] == "failed"]
    return run["retries"] - len(by_hand) + len(shown)


def _is_driven(run: Run) -> bool:
    return "unseen" in run["dialects"][NAME]


def _attempts_by_visit(run: Run) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = {}
    for attempt in run["attempts"].values():
        if "seat" in attempt["extra"]:
            found.setdefault((attempt["step"], attempt["iteration"]), []).append(attempt)
    return found


def _entries(run: Run, visit: Any, attempts: list[Any]) -> list[Any]:
    """In the order in which they ended; those under way last."""
    several = len({attempt["extra"]["seat"] for attempt in attempts}) > 1
    made = []
    for attempt in sorted(attempts, key=lambda one: one["ended_at"] or "~"):
        if attempt["verdict"] not in _UNFINISHED and (attempt["status"] != "lost" or attempt["ended_at"]):
            made.append(_entry(run, visit, attempt, several))
    return made


def _entry(run: Run, visit: Any, attempt: Any, several: bool) -> Any:
    from tenuto.core.times import between

    under_way = attempt["ended_at"] is None
    status = "running" if under_way else "success" if attempt["status"] == "completed" else "failed"
    return {
        "step": phase_name(attempt, several), "item": attempt["item"], "iteration": attempt["iteration"],
        "status": status, "started_at": attempt["started_at"], "ended_at": attempt["ended_at"],
        "duration_ms": None if under_way else between(attempt["started_at"], attempt["ended_at"]), "retries": 0,
        "closed": None if under_way else visit["closed"] if visit["closed"] is not None else run["version"],
    }  # fmt: skip


def phase_name(attempt: Any, several: bool) -> str:
    """`architect`; `implementer` of an item; the role's name where several work side by side."""
    return attempt["role"] if several or attempt["item"] else attempt["step"]  # type: ignore[no-any-return]


def is_driven_step(run: Run, step: str, ended_at: str) -> bool:
    """Did the engine make the visit of this step that ended then?"""
    tried = _attempts_by_visit(run)
    unseen = run["dialects"][NAME]["unseen"]
    return step in unseen or any(
        (step, visit["iteration"]) in tried
        for visit in run["visits"]
        if visit["step"] == step and visit["ended_at"] == ended_at
    )


def told_attempt(run: Run, name: str) -> tuple[str, str, int, str]:
    """(phase, success or failed, how long it took, what it said); no status where the phase goes on."""
    from tenuto.core.times import between
    from tenuto.dialects.context.places import phase_of

    attempt = run["attempts"][name]
    others = _attempts_by_visit(run)[(attempt["step"], attempt["iteration"])]
    several = len({one["extra"]["seat"] for one in others}) > 1
    phase = phase_of({"step": phase_name(attempt, several), "item": attempt["item"]})
    if attempt["ended_at"] is None or attempt["verdict"] in _UNFINISHED:
        return phase, "", 0, ""
    status = "success" if attempt["status"] == "completed" else "failed"
    return phase, status, between(attempt["started_at"], attempt["ended_at"]) or 0, attempt["summary"]


# ---- outputs ---------------------------------------------------------------------------------------


def artifact_name(path: str) -> str:
    """Of a file below the task's folder; the path itself where the layout has no such file."""
    from tenuto.dialects.context.storing import artifact_at

    return artifact_at(path) or path


def collected(turn: Turn, run: Run, attempt: str, artifacts: list[str]) -> None:
    from tenuto.dialects.context.audits import record_audit
    from tenuto.dialects.context.storing import AUDITS, LOOKED_INTO

    for artifact in artifacts:
        kept = run["artifacts"][artifact]
        if artifact in AUDITS:
            files = turn.workspace.files(run["dialects"][NAME].get("tree", ""))
            body = files.stored(turn.tx, kept["sha256"]) if kept["size"] <= LOOKED_INTO else b""
            iteration = run["attempts"][attempt]["iteration"]
            record_audit(turn, run, artifact, body, (body, ""), iteration, kept["path"])


# ---- actions ---------------------------------------------------------------------------------------


def promote_memory(turn: Turn, run: Run, pipeline: Any) -> Json:
    from tenuto.dialects.context.memory import remember_candidates

    remember_candidates(turn, run)
    return {}


def check_graduation(turn: Turn, run: Run, pipeline: Any) -> Json:
    from tenuto.dialects.context.retrieving import look_at_artifacts, refuse_graduation

    look_at_artifacts(turn, run)
    refuse_graduation(run, turn)
    return {}


def record_debt(turn: Turn, run: Run, pipeline: Any) -> Json:
    """What was left out, and what the documents of the task call wrong with it."""
    from tenuto.dialects.context.debt import with_front_matter
    from tenuto.dialects.context.storing import keep

    issues = _known_issues(turn, run)
    document = _debt_document(pipeline["skips"], issues, turn.at).encode()
    path = f"{folder_of(run['id'])}/debt.md"
    turn.look(run["id"], path, "debt")
    keep(turn, run, "debt", path, (with_front_matter(document), ""), step="debt")
    return {"skipped": pipeline["skips"], "issues": len(issues)}


def _known_issues(turn: Turn, run: Run) -> list[Json]:
    findings = turn.workspace.knowledge("findings").findings
    issues = []
    for artifact in sorted(run["artifacts"]):
        if artifact.endswith(".md") or artifact in ("debt", "audit-history"):
            continue
        phase = artifact.partition("/")[0]
        text = turn.workspace.files().stored(turn.tx, run["artifacts"][artifact]["sha256"]).decode("utf-8", "replace")
        for found in findings(text):
            issues.append(
                {"phase": phase, "description": " ".join(found["text"].split()), "severity": found["severity"].lower()}
            )
    return issues


def _debt_document(skipped: list[str], issues: list[Json], at: str) -> str:
    from tenuto.encoding import dumps

    lines = ["---", f"skipped_phases: [{', '.join(skipped)}]"]
    lines.append("known_issues:" if issues else "known_issues: []")
    for issue in issues:
        lines += [f"  - phase: {dumps(issue['phase'])}", f"    description: {dumps(issue['description'])}"]
        lines += [f"    severity: {dumps(issue['severity'])}", '    mitigation: "Graduation makes up for it"']
    lines += [f'created_at: "{at}"', "graduated_at: null", "---", "", "# Technical Debt", ""]
    lines.append("This is a proof of concept. These phases were left out; graduation makes up for them:\n")
    lines += [f"- {phase}" for phase in skipped]
    return "\n".join(lines) + "\n"


def mark_graduated(turn: Turn, run: Run, pipeline: Any) -> Json:
    """The time of graduation in debt.md; the pipeline's end says it of the run, in the same turn."""
    from tenuto.dialects.context.debt import with_front_matter, with_graduation
    from tenuto.dialects.context.storing import keep

    path = f"{folder_of(run['id'])}/debt.md"
    turn.look(run["id"], path, "debt")
    debt = turn.workspace.files().stored(turn.tx, run["artifacts"]["debt"]["sha256"])
    keep(turn, run, "debt", path, (with_graduation(with_front_matter(debt), turn.at), ""), step="debt")
    return {}


ACTIONS: dict[str, Callable[[Turn, Run, Any], Json]] = {
    "promote-memory": promote_memory, "check-graduation": check_graduation, "record-debt": record_debt,
    "mark-graduated": mark_graduated,
}  # fmt: skip
