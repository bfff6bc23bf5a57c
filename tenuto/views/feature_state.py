"""`.feature-state.json`: one feature on its way from discovery to commit.

The file exists once in a work tree; the repository remembers which run it shows. It is written
from the journal and never made out of nothing: where it is gone or damaged, commands refuse
in the words that its users know, and leave it as it is. `approval` is completed by a person only.

Another program changed the file: phases, tasks, answers and the resume context become the commands that say the same,
and are judged like any other: an edit that completes `approval` is refused, because its author is not known. Names,
texts and files are kept as they are written. So are keys that we do not know. A file that has lost its structure is
corrupted: it is named and left alone.
"""

from __future__ import annotations

from tenuto.core.status import BADLY, ENDED, RESUMABLE, UNDONE
from tenuto.encoding import NotJson, loads_strict, pretty
from tenuto.errors import Damaged, NotFound, Refused
from tenuto.names import file_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.commands import Command
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Item, Json, Repo, Run, ScheduledStep, StepStatus
    from tenuto.errors import TenutoError
    from tenuto.ports import Surroundings

name = "feature_state"
missing: Literal["refuse"] = "refuse"
stand_in: dict[str, str] = {}
dispensable: tuple[str, ...] = ()

FILE = ".feature-state.json"
PIPELINE = "feature-dev"
PHASES = ("discovery", "spec", "plan", "approval", "implementation", "test", "commit")
MAY_BE_SKIPPED = ("discovery", "test")
AGENTS = {
    "discovery-guide": ("discovery",),
    "spec-writer": ("spec",),
    "code-architect": ("plan", "implementation"),
    "test-designer": ("test",),
}
"""The phases that an agent's end completes: the first, and once that is done and approved, the next."""
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

PHASE_STATUSES = ("pending", "in_progress", "completed", "skipped")
TASK_STATUSES: dict[str, StepStatus] = {"pending": "pending", "in_progress": "running", "completed": "completed"}
"""As the file shows them."""
_TASK_WORDS: dict[str, StepStatus] = {
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    "in_progress": "running",
    "in-progress": "running",
    "running": "running",
    "active": "running",
    "pending": "pending",
    "todo": "pending",
    "failed": "failed",
    "error": "failed",
    "blocked": "failed",
    "skipped": "skipped",
    "cancelled": "skipped",
    "canceled": "skipped",
}
KNOWN = {
    "currentFeature": (
        "name",
        "description",
        "phase",
        *OUTPUTS,
        "startedAt",
        "updatedAt",
        "pausedAt",
        "pauseReason",
    ),
    "phases": PHASES,
    "resumeContext": CONTEXT,
}
SECTIONS = ("currentFeature", "phases", "tasks", "resumeContext", "discoveryAnswers")
_KEPT = ("name", "description", *OUTPUTS, "startedAt")
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


def schedule() -> list[ScheduledStep]:
    return [{"step": phase, "approval": True} if phase == "approval" else {"step": phase} for phase in PHASES]


def owner_key(tree: str) -> str:
    """The file's name in the repository's list of owners: each work tree has a file of its own."""
    return file_key(tree, FILE)


def paths(run: Run, repo: Repo) -> list[str]:
    tree = run["dialects"][name].get("tree", "")
    return [FILE] if repo["owners"].get(owner_key(tree)) == run["id"] else []


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    return {FILE: pretty(document(run)).encode()} if paths(run, repo) else {}


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    return {}


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
    shown["updatedAt"] = run["reported_at"]
    since, reason = pause(run)
    if since:
        shown["pausedAt"], shown["pauseReason"] = since, reason
    return shown


def shown_status(status: str) -> str:
    """Of a task, in the words of the file, which knows three."""
    return _TASK_SHOWN.get(status, "pending")


def pause(run: Run) -> tuple[str, str]:
    """Since when, and why; ("", "") while it goes on."""
    resume = run["resume"]
    if resume and resume.get("reason") and not resume.get("restored_at"):
        return resume["saved_at"], resume["reason"]
    if run["status"] in (*RESUMABLE, *BADLY):
        return run["paused_at"] or run["stopped_at"] or run["updated_at"], "user_request"
    return "", ""


def _output(run: Run, phase: str) -> str | None:
    """The first file that was created in this phase."""
    return next((artifact["path"] for artifact in run["artifacts"].values() if artifact["step"] == phase), None)


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


def phase_of_agent(run: Run, role: str) -> str | None:
    """The phase that this agent works on now; None for an agent that completes none."""
    first, *later = AGENTS.get(role.rpartition(":")[2], ("",))
    if not first:
        return None
    is_open = phase_status(run, first) == "completed" and phase_status(run, "approval") == "completed"
    return later[0] if later and is_open else first


def is_another(run: Run, body: bytes) -> bool:
    """Does the file tell of a feature that was begun after this one? A feature keeps the time at which it started."""
    try:
        state = loads_strict(body)
    except NotJson:
        return False
    feature = state.get("currentFeature") if isinstance(state, dict) else None
    if not isinstance(feature, dict) or not isinstance(feature.get("name"), str):
        return False
    place = run["dialects"][name]
    began_later = feature.get("startedAt") != (place.get("startedAt") or run["created_at"])
    return began_later and (run["status"] in ENDED or feature["name"] != (place.get("name") or run["id"]))


def tasks(run: Run) -> list[tuple[str, Item]]:
    return [(key, item) for key, item in run["items"].items() if not item["extra"].get("removed")]


def task(key: str, item: Item, place: int = 0) -> Json:
    if "depends_on" in item["extra"] and "wave" in item["extra"]:  # as an engine read it from a plan
        item = {**item, "extra": {}}
    number = item["extra"].get("id", int(key) if key.isdecimal() else place or key)
    shown: Json = {"id": number, "description": item["title"], "status": shown_status(item["status"])}
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
    """What ended last, in words: an agent's work, a task or a phase."""
    at, action = "", ""
    for visit in run["visits"]:
        if visit["status"] == "success" and (visit["ended_at"] or "") >= at:
            at, action = visit["ended_at"] or "", f"Completed {visit['step']}"
    done = [item["title"] for _, item in tasks(run) if item["status"] == "completed"]
    if done and phase_status(run, "implementation") == "in_progress":  # they came after the phases before it
        action = f"Completed task: {done[-1]}"
    for attempt in run["attempts"].values():
        if attempt["summary"] and (attempt["ended_at"] or "") >= at:
            at, action = attempt["ended_at"] or "", f"{attempt['role']}: {attempt['summary']}"
    return action


def _next_steps(run: Run) -> list[str]:
    phase = phase_of(run)
    here = PHASES.index(phase)
    open_tasks = [f"Task {key}: {item['title']}" for key, item in tasks(run) if item["status"] in UNDONE]
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
    if run["status"] in ENDED:
        message = f"feature {run['dialects'][name].get('name') or run['id']} is {run['status']}"
        raise Refused("run-ended", message, "tenuto feature start NAME", status=run["status"])


# ---- what another program wrote --------------------------------------------------------------------


def read(run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> list[Command]:
    from tenuto.views.differences import absorbed

    # What they wrote before may be the base of what they write now, and they may leave sections out.
    old = {"tasks": [], "discoveryAnswers": {}, "resumeContext": {}, **loads_strict(before)}
    new = structured(loads_strict(after))
    if is_another(run, after):
        message = f"{FILE} tells of {new['currentFeature'].get('name')!r}, which is not the feature of run {run['id']}"
        raise Refused("another-feature", message, "tenuto feature status takes it up", path=path)
    return [
        *_placed(run, old["currentFeature"], new["currentFeature"]),
        *_tasks(old["tasks"], new.get("tasks", old["tasks"])),
        *_answers(old["discoveryAnswers"], new.get("discoveryAnswers", old["discoveryAnswers"])),
        *_phases(run, old, new),
        *_context(old, new),
        absorbed(name, path, after, _unknown(old, new)),
    ]


def structured(state: object) -> Json:
    """The file as an object with its sections, or the refusal that it has lost them."""
    if not isinstance(state, dict):
        raise Refused("state-damaged", f"{FILE} holds no object")
    kinds: dict[str, type] = {section: dict for section in SECTIONS} | {"tasks": list}
    for section, kind in kinds.items():
        if section in state and not isinstance(state[section], kind):
            raise Refused("state-damaged", f"{FILE}: {section} is not {'a list' if kind is list else 'an object'}")
    for section in ("currentFeature", "phases"):
        if section not in state:
            raise Refused("state-damaged", f"{FILE} has no {section}")
    for phase in PHASES:
        if state["phases"].get(phase, "pending") not in PHASE_STATUSES:
            raise Refused("state-damaged", f"{FILE}: phases.{phase} is {state['phases'][phase]!r}")
    if any(not isinstance(task, dict) for task in state.get("tasks", ())):
        raise Refused("state-damaged", f"{FILE}: a task is not an object")
    return state


def _placed(run: Run, old: Json, new: Json) -> list[Command]:
    changed = {field: new[field] for field in _KEPT if field in new and new[field] != old.get(field)}
    if not changed:
        return []
    for field, value in changed.items():
        if value is not None and not isinstance(value, str):
            raise Refused("state-damaged", f"{FILE}: currentFeature.{field} is not a text")
    return [{"do": "ShowIn", "dialect": name, "place": {**run["dialects"][name], **changed}}]


def _tasks(old: list[Json], new: list[Json]) -> list[Command]:
    planned: dict[str, Json] = {}
    commands: list[Command] = []
    known = {str(task.get("id")): task for task in old}
    for number, task in enumerate(new, 1):
        key = str(task.get("id", number))
        before = known.pop(key, None)
        told = task.get("status", before.get("status", "pending") if before else "pending")
        status = task_status(told)
        if not isinstance(told, str):
            raise Refused("state-damaged", f"{FILE}: task {key} is {told!r}")
        if status is None:
            known_words = ", ".join(TASK_STATUSES)
            raise Refused(
                "bad-status", f"task {key}: {told!r} is no status; a task is {known_words}, failed or skipped"
            )
        words = {field: value for field, value in task.items() if field != "status"}
        if before is None or words != {field: value for field, value in before.items() if field != "status"}:
            planned[key] = item_of(task) | {"status": status}
        elif told != before.get("status"):
            commands.append({"do": "ChangeItem", "item": key, "status": status})
    for key, task in known.items():
        gone = item_of(task)
        planned[key] = gone | {"status": "skipped", "extra": gone["extra"] | {"removed": True}}
    return [{"do": "PlanItems", "items": planned}, *commands] if planned else commands


def task_status(word: object) -> StepStatus | None:
    """None for a word that is no task's status: what it means is not guessed."""
    return _TASK_WORDS.get(str(word).strip().lower().replace(" ", "_")) if isinstance(word, str) else None


def item_of(task: Json) -> Json:
    """A task as an item: what we do not know of it is kept."""
    number = task.get("id")
    extra = {key: value for key, value in task.items() if key not in ("id", "description", "status")}
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
        extra["id"] = number
    return {"title": str(task.get("description", "")), "extra": extra}


def _answers(old: Json, new: Json) -> list[Command]:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    changed |= {key: "" if key in ANSWERS else None for key in old if key not in new}
    return [{"do": "RecordAnswers", "answers": changed}] if changed else []


def _phases(run: Run, old: Json, new: Json) -> list[Command]:
    commands: list[Command] = []
    begun: list[str] = []
    for phase in PHASES:
        was = old["phases"].get(phase, "pending")
        now = new["phases"].get(phase, was)
        if now == was:
            continue
        step = run["steps"].get(phase)
        start: list[Command] = [] if step and step["status"] == "running" else [{"do": "StartStep", "step": phase}]
        if now == "in_progress":
            commands += start
            begun.append(phase)
        elif now == "skipped":
            commands.append({"do": "SkipStep", "step": phase, "reason": f"{FILE} was edited"})
        else:
            status: Literal["success", "failed"] = "success" if now == "completed" else "failed"
            commands += [*start, {"do": "EndStep", "step": phase, "status": status}]
    phase = new["currentFeature"].get("phase")
    if phase != old["currentFeature"].get("phase") and phase not in begun:
        if phase not in PHASES:
            raise Refused("state-damaged", f"{FILE}: there is no phase {phase!r}")
        if new["phases"].get(phase) in ("pending", None):
            commands.append({"do": "StartStep", "step": phase})
    return commands


def _context(old: Json, new: Json) -> list[Command]:
    feature, before = new["currentFeature"], old["currentFeature"]
    context: Json = new["resumeContext"] if "resumeContext" in new else old["resumeContext"]
    shown = {field: context.get(field, old["resumeContext"].get(field)) for field in CONTEXT}
    was = {field: old["resumeContext"].get(field) for field in CONTEXT}
    reason = feature.get("pauseReason") or ("user_request" if feature.get("pausedAt") else "")
    if feature.get("pausedAt") and (not before.get("pausedAt") or shown != was):
        return [{"do": "SaveContext", "context": shown, "reason": str(reason), "reported_at": str(feature["pausedAt"])}]
    commands: list[Command] = []
    if before.get("pausedAt") and not feature.get("pausedAt"):
        commands.append({"do": "RestoreContext"})
    if shown != was:
        commands.append({"do": "SaveContext", "context": shown, "reason": ""})
    return commands


def _unknown(old: Json, new: Json) -> Json:
    """Keys that are not ours: new and changed ones as [value], those taken away as []."""
    extra: Json = _differing(old, new, SECTIONS)
    for section, known in KNOWN.items():
        theirs: Json = new[section] if section in new else old[section]
        inside = _differing(old[section], theirs, known)
        if inside:
            extra[section] = inside
    return extra


def _differing(old: Json, new: Json, known: tuple[str, ...]) -> Json:
    differing: Json = {k: [v] for k, v in new.items() if k not in known and (k not in old or old[k] != v)}
    return differing | {k: [] for k in old if k not in known and k not in new}
