"""`.feature-state.json`: one feature on its way from discovery to commit.

The file exists once in a work tree; the repository remembers which run it shows. It is written
from the journal and never made out of nothing: where it is gone or damaged, commands refuse
in the words that its users know, and leave it as it is.

    __init__    what the file shows, and where
    progress    a phase completed, a task done, files created: the payloads that hooks send
    context     what to go on with after a compaction
    edits       somebody changed the file: the same in commands
    adoption    a file that was there before Tenuto
    commands    tenuto feature start, answer, task, ...
    engine      a feature that the engine drives

`approval` is completed by a person and by nobody else.
"""

from __future__ import annotations

from tenuto.encoding import pretty
from tenuto.errors import Damaged, NotFound, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Item, Json, Repo, Run
    from tenuto.errors import TenutoError

name = "feature_state"
missing = "refuse"

FILE = ".feature-state.json"
PIPELINE = "feature-dev"
PHASES = ("discovery", "spec", "plan", "approval", "implementation", "test", "commit")
MAY_BE_SKIPPED = ("discovery", "test")
AGENTS = {"discovery-guide": "discovery", "spec-writer": "spec", "code-architect": "plan", "test-designer": "test"}
ANSWERS = ("problem", "users", "outcome", "constraints", "successCriteria")
OUTPUTS = {"specFile": "spec", "planFile": "plan", "testFile": "test"}
CONTEXT = ("lastAction", "currentTask", "nextSteps", "filesInProgress")
MOST_FILES = 20
WORK = {
    "discovery": "Answer the discovery questions",
    "spec": "Write the specification",
    "plan": "Write the implementation plan",
    "approval": "Get the user's approval of specification and plan",
    "implementation": "Implement the planned tasks",
    "test": "Write and run the tests",
    "commit": "Commit the feature",
}

_PHASE_SHOWN = {"running": "in_progress", "completed": "completed", "skipped": "skipped"}
_TASK_SHOWN = {"running": "in_progress", "completed": "completed"}

NOT_FOUND = "State file not found. Cannot update state."
CORRUPTED = "State file corrupted. Manual intervention required."
_WORDS = {"state-missing": NOT_FOUND, "state-damaged": CORRUPTED}


def in_seeds_words(error: TenutoError) -> TenutoError:
    """The same refusal as the users of this file know it."""
    code = error.code if error.details.get("path", FILE) == FILE else ""
    if code == "foreign-edit" and error.details.get("reason") in ("not-json", "state-damaged"):
        code = "state-damaged"
    if code not in _WORDS:
        return error
    kind = NotFound if code == "state-missing" else Damaged
    return kind(code, _WORDS[code], f"tenuto repair --restore {FILE}", **{**error.details, "said": error.message})


def schedule() -> list[Any]:
    return [{"step": phase, "approval": True} if phase == "approval" else {"step": phase} for phase in PHASES]


def owner_key(tree: str) -> str:
    """The file's name in the repository's list of owners: each work tree has a file of its own."""
    return f"{tree}//{FILE}" if tree else FILE


def paths(run: Run, repo: Repo) -> list[str]:
    tree = run["dialects"][name].get("tree", "")
    return [FILE] if repo["owners"].get(owner_key(tree)) == run["id"] else []


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    return {FILE: pretty(document(run)).encode()} if paths(run, repo) else {}


def log(run: Run, events: list[Any]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes) -> list[Any]:
    from tenuto.dialects.feature_state.edits import understand

    return understand(run, before, after)


def begin(run_id: str, begun: Any, pipeline: Any, tree: str) -> Any:
    from tenuto.dialects.feature_state import engine

    return engine.begin(run_id, begun, pipeline, tree)


def opened(turn: Any, run_id: str) -> None:
    from tenuto.dialects.feature_state import engine

    engine.opened(turn, run_id)


def collected(turn: Any, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
    from tenuto.dialects.feature_state import engine

    engine.collected(turn, run, attempt, artifacts, reply)


def api(workspace: Any) -> Any:
    from tenuto.dialects.feature_state.commands import FeatureCommands

    return FeatureCommands(workspace)


def adopt(turn: Any, path: str, body: bytes) -> str:
    from tenuto.dialects.feature_state.adoption import adopt as take_over

    return take_over(turn, path, body)


# ---- what the file shows ---------------------------------------------------------------------------


def document(run: Run) -> Json:
    """All of it. Keys that are not ours stand in `extra` as [value], by section; [] is one that was taken away."""
    place, extra = run["dialects"][name], run["extra"].get(name, {})
    shown: Json = {
        "currentFeature": _feature(run, place),
        "phases": {phase: phase_status(run, phase) for phase in PHASES},
        "tasks": [task(key, item, place) for place, (key, item) in enumerate(tasks(run), 1)],
        "resumeContext": resume_context(run),
        "discoveryAnswers": {**dict.fromkeys(ANSWERS, ""), **_present(run["answers"])},
    }
    for key, value in extra.items():
        if isinstance(value, dict):
            shown[key].update((k, v[0]) for k, v in value.items() if v and k not in shown[key])
        elif value and key not in shown:
            shown[key] = value[0]
    return shown


def _feature(run: Run, place: Json) -> Json:
    shown: Json = {
        "name": place.get("name") or run["id"],
        "description": place.get("description", run["request"]),
        "phase": phase_of(run),
    }
    for field, phase in OUTPUTS.items():
        shown[field] = place.get(field) or _output(run, phase)
    shown["startedAt"] = place.get("startedAt") or run["created_at"]
    shown["updatedAt"] = run["told_at"]
    since, reason = pause(run)
    if since:
        shown["pausedAt"], shown["pauseReason"] = since, reason
    return shown


def pause(run: Run) -> tuple[str, str]:
    """Since when, and why; ("", "") while it goes on."""
    resume = run["resume"]
    if resume and resume.get("reason") and not resume.get("restored_at"):
        return resume["saved_at"], resume["reason"]
    if run["status"] in ("paused", "parked", "stopped", "cancelled", "failed"):
        return run["paused_at"] or run["stopped_at"] or run["updated_at"], "user_request"
    return "", ""


def _output(run: Run, phase: str) -> str | None:
    """The first file that was created in this phase."""
    return next((made["path"] for made in run["artifacts"].values() if made["step"] == phase), None)


def phase_of(run: Run) -> str:
    """The phase under way; of several, the one begun last."""
    for visit in reversed(run["visits"]):
        if visit["status"] == "running" and visit["step"] in PHASES:
            return visit["step"]
    if run["position"] in PHASES and phase_status(run, PHASES[-1]) != "completed":
        return str(run["position"])
    return next((phase for phase in PHASES if phase_status(run, phase) in ("pending", "in_progress")), PHASES[-1])


def phase_status(run: Run, phase: str) -> str:
    step = run["steps"].get(phase)
    status = _PHASE_SHOWN.get(step["status"], "pending") if step else "pending"
    return "pending" if status == "skipped" and phase not in MAY_BE_SKIPPED else status


def tasks(run: Run) -> list[tuple[str, Item]]:
    return [(key, item) for key, item in run["items"].items() if not item["extra"].get("removed")]


def task(key: str, item: Item, place: int = 0) -> Json:
    if "depends_on" in item["extra"] and "wave" in item["extra"]:  # as an engine read it from a plan
        item = {**item, "extra": {}}
    number: Any = item["extra"].get("id", int(key) if key.isdecimal() else place or key)
    shown: Json = {"id": number, "description": item["title"], "status": _TASK_SHOWN.get(item["status"], "pending")}
    shown.update((k, v) for k, v in item["extra"].items() if k not in shown)
    return shown


def resume_context(run: Run) -> Json:
    """What was saved, until it is handed back; from then on what the run itself tells."""
    resume = run["resume"]
    if resume and not resume.get("restored_at"):
        return {field: resume.get(field, [] if field in CONTEXT[2:] else "") for field in CONTEXT}
    busy = [item for _, item in tasks(run) if item["status"] == "running"]
    return {
        "lastAction": _last_action(run),
        "currentTask": busy[0]["title"] if busy else WORK[phase_of(run)],
        "nextSteps": _next_steps(run),
        "filesInProgress": list(dict.fromkeys(path for item in busy for path in item["files"]))[:MOST_FILES],
    }


def _last_action(run: Run) -> str:
    """What ended last, in words: an agent's work or a phase."""
    at, action = "", ""
    for visit in run["visits"]:
        if visit["status"] == "success" and (visit["ended_at"] or "") >= at:
            at, action = visit["ended_at"] or "", f"Completed {visit['step']}"
    for attempt in run["attempts"].values():
        if attempt["summary"] and (attempt["ended_at"] or "") >= at:
            at, action = attempt["ended_at"] or "", f"{attempt['role']}: {attempt['summary']}"
    return action


def _next_steps(run: Run) -> list[str]:
    phase = phase_of(run)
    here = PHASES.index(phase)
    open_tasks = [f"Task {key}: {item['title']}" for key, item in tasks(run) if item["status"] in ("pending", "failed")]
    now = open_tasks if phase == "implementation" and tasks(run) else [WORK[phase]]
    ahead = [WORK[later] for later in PHASES[here + 1 :] if phase_status(run, later) == "pending"]
    return [*now, *ahead][:3] if phase_status(run, phase) != "completed" else ahead[:3]


def _present(answers: Json) -> Json:
    """An engine keeps a person's words to an agent's question beside them."""
    return {key: value for key, value in answers.items() if value is not None and not key.startswith("question:")}


def owned(run: Run | None) -> Run:
    """The run that the file shows, or the words for there being none."""
    if run is None:
        raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
    return run


def refuse_ended(run: Run) -> None:
    if run["status"] in ("completed", "failed", "cancelled"):
        message = f"feature {run['dialects'][name].get('name') or run['id']} is {run['status']}"
        raise Refused("run-ended", message, "tenuto feature start NAME", status=run["status"])
