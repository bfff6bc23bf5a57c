"""What another program wrote into a task's folder: the run that a manifest tells of, and which file is which artifact.

    read_manifest(slug, document, ...)   the parts of a run, and every key beyond them
    points_to(text)                      the task that a current-task.md names
    artifacts_in(names)                  which files of a task's folder are which artifacts, and which are none
    latest_of(run, phase)                the newest artifact of a phase that is done several times

Rule 1: real files hold drift: `phase` or `name` as a key, unknown statuses, impossible durations, two shapes of
the breakdown. All of it is read; what it meant to others is kept word for word and shown again.

Rule 2: nothing that can be parsed is refused: it is history. What it does not say stays unknown.

The `taskBreakdown` block of a design or a specification: which items there are, and in which waves.

    find_breakdown(text) -> the object, or None       plan(breakdown) -> items, waves

    {"tasks": [{"id": 1, "name": "...", "files": ["..."], "dependencies": [ids], "description": "..."}]}

At most 8 tasks, ids that exist, no cycle, no file shared inside a wave: anything else is refused by name,
before the document is stored. Real folders also hold {"wave_0": ["Task 1: ..."], ...}; that is read, too.
"""

from __future__ import annotations

from tenuto.core.parts import new_item, new_pause, new_step, new_visit, past_visit
from tenuto.core.times import between, iso, milliseconds, plain
from tenuto.encoding import NotJson, loads_strict
from tenuto.errors import Refused
from tenuto.views.context.state import COUNTED, KNOWN_STATUSES, NAME, PER_TASK, PHASE_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.run import Gate, Json, Pause, Run, Status, StepState, Visit
    from tenuto.views.context.state import Extra


_LEGACY = {"in-progress": "running", "in_progress": "running"}
KEYS = (
    "name",
    "mode",
    "workflow",
    "status",
    "current_phase",
    "running_phases",
    "completed_phases",
    "failure_context",
    "gate_context",
    "metrics",
    "waves",
    "created_at",
    "updated_at",
    "graduated_at",
)
INNER_KEYS = {
    "metrics": ("total_duration_ms", "parallelization_savings_ms", "total_retries"),
    "waves": ("task_breakdown", "execution"),
}


def points_to(text: str) -> str:
    """The task a current-task.md names: its `Task:` line in any dress, else a path of a task's folder."""
    for line in text.splitlines():
        bare = line.replace("*", "").replace("`", "").strip(" \t-#")
        label, colon, value = bare.partition(":")
        if colon and label.strip().lower() in ("task", "current task", "active task", "slug") and value.strip():
            return value.strip()
    _, folder, rest = text.partition("context/tasks/")
    if folder and rest.split("/")[0].split():
        return rest.split("/")[0].split()[0]
    words = text.split()
    return words[0] if len(words) == 1 else ""  # a file with nothing but the name


def phase_in(entry: Json) -> str:
    return _text(entry.get("phase")) or _text(entry.get("name"))


def read_manifest(slug: str, document: Json, now: str, place: Json, has_debt: bool) -> Json:
    """The parts of a run that a manifest tells of, as `Adopt` takes them. `place`: where this dialect shows the run."""
    extra: Extra = {"manifest": _others(document)}
    mode = _text(document.get("mode")) or "standard"
    word = _text(document.get("status")) or "running"
    status = _LEGACY.get(word.lower(), word)
    shown = place if status in KNOWN_STATUSES else {**place, "status": status}
    if document.get("name") not in (None, slug):
        extra["name"] = document["name"]
    visits = _visits(document, extra)
    written = document.get("created_at")
    created = _time(written) or ""
    if written is not None and written != created:
        shown = {**shown, "created": written}
    workflow = _text(document.get("workflow")) or ("poc" if mode == "poc" else "orchestrate")
    state: Json = {
        "id": slug,
        "name": _text(document.get("name")) or slug,
        "request": _text(document.get("name")) or slug,
        "mode": mode,
        "pipeline": {"name": workflow, "hash": None},
        "driver": "manual",
        "dialects": {NAME: shown},
        "status": status,
        "created_at": created,
        "position": _text(document.get("current_phase")) or None,
        "visits": visits,
        "steps": _steps(visits),
        "retries": _retries(document, visits),
        "graduated_at": _time(document.get("graduated_at")),
    }
    resting: Status = "poc-complete" if mode == "poc" and has_debt else "running"
    state |= _rest(document, status, _time(document.get("updated_at")) or created or now, resting, extra)
    state |= _plan(document, extra)
    state["extra"] = {NAME: {key: value for key, value in extra.items() if value}}
    return state


def _others(document: Json) -> Json:
    """Keys that are not ours, also inside our objects."""
    others = {key: value for key, value in document.items() if key not in KEYS}
    for key, ours in INNER_KEYS.items():
        inner = document.get(key)
        if isinstance(inner, dict):
            unknown = {name: value for name, value in inner.items() if name not in ours}
            if unknown:
                others[key] = unknown
        elif inner is not None:
            others[f"{key}_as_found"] = inner
    waves = document.get("waves")
    execution = waves.get("execution") if isinstance(waves, dict) else None
    if execution:
        others["waves"] = {**others.get("waves", {}), "execution_as_found": execution}
    return others


# ---- the files of a task's folder ------------------------------------------------------------------


# Who writes a phase's file, where the file has the writer's name.
_WRITERS = {
    "spec-writer": "spec",
    "implementer": "implementation",
    "test-writer": "tests",
    "test-runner": "test-results",
    "design-auditor": "design-audit",
    "impl-auditor": "impl-audit",
}
_PHASE_OF = {**{phase: phase for phase in PHASE_FILES}, **_WRITERS}
_ONCE = ("debt", "graduate-complete")
STATE_FILES = ("manifest.json", "metadata.json")


def artifacts_in(names: list[str]) -> tuple[dict[str, str], list[str]]:
    """(file -> artifact, files that are none), for the files below a task's folder.

    The layout's own file goes before another name for the same artifact; that one is kept beside it.
    """
    artifacts: dict[str, str] = {}
    others: list[str] = []
    for name in sorted(names, key=lambda name: (not _in_layout(name), name)):
        artifact = artifact_at(name)
        if artifact in artifacts.values():
            artifact = f"{part_of(artifact)[0]}/{name.rpartition('/')[2].removesuffix('.md')}"
        if artifact and artifact not in artifacts.values():
            artifacts[name] = artifact
        elif name not in STATE_FILES and name[0] != ".":
            others.append(name)
    return artifacts, others


def artifact_at(path: str) -> str:
    """The artifact's name for a file below a task's folder; empty where its name does not tell.

    implementations/task-001.md, implementer:task-1.md -> implementation/task-001
    impl-audit-2.md -> impl-audit-2    design-audit-revision-2.md -> design-audit-3    implementer:fix-1.md ->
    implementation-fix-1
    """
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    if stem == name:
        return "audit-history" if path == "audit-history.json" else ""
    if folder:
        return next((f"{phase}/{stem}" for phase in PER_TASK if PHASE_FILES[phase] == f"{folder}/"), "")
    words = stem.lower().replace(":", "-").replace("_", "-").replace(" ", "-")
    for known in sorted(_PHASE_OF, key=len, reverse=True):
        if f"{words}-".startswith(f"{known}-"):
            return _artifact(_PHASE_OF[known], stem, words[len(known) + 1 :])
    return ""


def _artifact(phase: str, stem: str, rest: str) -> str:
    """`rest`: what stands behind the phase in a file's name: a number, and a word that says what is counted."""
    words, number = _counted(rest)
    if phase in COUNTED:
        if words in ("", "iteration"):
            return f"{phase}-{number or 1}"
        before, task = _counted(words.removesuffix("-task"))
        return f"{phase}-{task}/task-{number:03d}" if number and task and not before else ""
    if words == "task" and number:
        return f"{phase}/task-{number:03d}"
    if phase in PER_TASK:
        if words == "fix" and phase == "implementation":
            return f"implementation-fix-{number or 1}"
        return f"{phase}/task-{number:03d}" if number and not words else f"{phase}/{stem}"
    if words in ("revision", "retry"):  # the first one comes after the original
        words, number = "", (number or 1) + 1
    if words not in ("", "iteration") or (number and phase in _ONCE):
        return ""
    if number < 2:
        return phase
    return f"architect-revision-{number - 1}" if phase == "architect" else f"{phase}-{number}"


def _counted(text: str) -> tuple[str, int]:
    """`task-1` -> task and 1; 0 where no number stands at the end."""
    words, _, last = text.rpartition("-")
    return (words, int(last)) if last.isascii() and last.isdecimal() and len(last) < 7 else (text, 0)


def _in_layout(name: str) -> bool:
    phase, item, number = part_of(artifact_at(name))
    file = PHASE_FILES.get(phase, "")
    return name in (file, f"{file}{item}.md", f"{file}{number}.md")


def part_of(artifact: str) -> tuple[str, str, int]:
    """(phase, item, how many-th): implementation/task-001 -> implementation, task-001, 1; impl-audit-2 -> impl-audit,
    "", 2."""
    head, _, item = artifact.partition("/")
    if head in PHASE_FILES:
        return head, item, 1
    phase, number = _counted(head)
    return (phase, item, number) if phase in PHASE_FILES and number else (head, item, 1)


def latest_of(run: Run, phase: str) -> str:
    """The artifact of the newest audit, test run, specification; empty where there is none."""
    numbers = {name: number_of(run, name) for name in run["artifacts"] if part_of(name)[:2] == (phase, "")}
    return max(numbers, key=lambda name: (numbers[name], name == phase), default="")


def number_of(run: Run, artifact: str) -> int:
    """How many-th of its phase an artifact is: what was said when it was stored, else what its name says."""
    attempt = run["artifacts"][artifact]["attempt"] or ""
    if attempt in run["attempts"]:
        return run["attempts"][attempt]["iteration"]
    return _counted(attempt)[1] or part_of(artifact)[2]


# ---- phases ----------------------------------------------------------------------------------------


def _visits(document: Json, extra: Extra) -> list[Visit]:
    completed = document.get("completed_phases")
    entries = completed if isinstance(completed, list) else []
    if completed is not None and not isinstance(completed, list):
        extra["manifest"]["completed_phases_as_found"] = completed
    visits: list[Visit] = []
    failures: dict[str, int] = {}
    phases: Json = {}
    for at, entry in enumerate(entries):
        shown = entry if isinstance(entry, dict) else {"phase": str(entry)}
        name = phase_in(shown) or f"phase-{at + 1}"
        failed = _text(shown.get("status")).lower() in ("failed", "failure", "error")
        visit = past_visit(
            name,
            "failed" if failed else "success",
            _text(shown.get("started_at")),
            _text(shown.get("ended_at")),
            duration_ms=_duration(shown),
            closed=at - len(entries),
        )
        visit["retries"] = _count(shown.get("retries"), failures.get(name, 0))
        visits.append(visit)
        failures[name] = failures.get(name, 0) + failed
        phases[str(at)] = entry
    extra["phases"] = phases
    return visits + _running(document, extra, failures)


def _running(document: Json, extra: Extra, failures: dict[str, int]) -> list[Visit]:
    running = document.get("running_phases")
    others: dict[str, Json] = {}
    visits: dict[str, Visit] = {}
    for entry in running if isinstance(running, list) else []:
        shown = entry if isinstance(entry, dict) else {"phase": str(entry)}
        name = phase_in(shown)
        if not name or name in visits:
            continue
        visits[name] = new_visit(name, _text(shown.get("started_at")), retries=failures.get(name, 0))
        unknown = {key: value for key, value in shown.items() if key not in ("phase", "started_at")}
        if unknown:
            others[name] = unknown
    extra["running"] = others
    return list(visits.values())


def _duration(entry: Json) -> int | None:
    """What was noted where it can be true, else what the times say; None where neither says anything."""
    noted = _count(entry.get("duration_ms"), -1)
    if noted >= 0:
        return noted
    start, end = entry.get("started_at"), entry.get("ended_at")
    return between(start, end) if milliseconds(start) is not None and milliseconds(end) is not None else None


def _steps(visits: list[Visit]) -> dict[str, StepState]:
    """Each step as its last visit left it. Numbers the visits of each step on the way."""
    counts: dict[str, int] = {}
    steps: dict[str, StepState] = {}
    for visit in visits:
        step = visit["step"]
        visit["iteration"] = counts[step] = counts.get(step, 0) + 1
        steps[step] = new_step(_step_status(visit), counts[step])
    return steps


def _step_status(visit: Visit) -> Literal["running", "completed", "failed"]:
    if visit["status"] == "running":
        return "running"
    return "failed" if visit["status"] == "failed" else "completed"


def _retries(document: Json, visits: list[Visit]) -> int:
    inner = document.get("metrics")
    noted = inner.get("total_retries") if isinstance(inner, dict) else None
    return _count(noted, sum(1 for visit in visits if visit["status"] == "failed"))


# ---- where it rests --------------------------------------------------------------------------------


def _rest(document: Json, status: str, at: str, resting: Status, extra: Extra) -> Json:
    """The pause or the gate that the task rests in, and what it goes back to."""
    rest: Json = {}
    context = document.get("failure_context")
    if status == "paused":
        shown = context if isinstance(context, dict) else {"reason": _text(context)}
        rest |= {"paused_at": at, "pause": _pause(shown, resting)}
        extra["written"] = {at: context} if isinstance(context, dict) else {}
    elif context is not None:
        extra["manifest"]["failure_context_as_found"] = context
    context = document.get("gate_context")
    if status == "waiting_gate":
        shown = context if isinstance(context, dict) else {"gate": _text(context)}
        rest["gate"] = _gate(shown, at, resting)
        extra["written"] = {"gate-1": context} if isinstance(context, dict) else {}
    elif context is not None:
        extra["manifest"]["gate_context_as_found"] = context
    return rest


def _pause(shown: Json, resting: Status) -> Pause:
    return new_pause(
        "failure",
        _text(shown.get("reason")),
        _text(shown.get("phase")) or None,
        resting,
        attempts=_count(shown.get("attempts"), 0),
        feedback=_text(shown.get("last_feedback")),
        recommendations=_texts(shown.get("recommendations")),
    )


def _gate(shown: Json, at: str, resting: Status) -> Gate:
    name = _text(shown.get("gate")) or "unknown"
    return {
        "id": "gate-1",
        "name": name,
        "prompt": _text(shown.get("prompt")),
        "options": _texts(shown.get("options")) or ["approve", "reject", "revise"],
        "shown": [{"path": path, "sha256": None} for path in _texts(shown.get("artifacts"))],
        "opened_at": at,
        "completes": name == "final",
        "resting": resting,
    }


# ---- its plan --------------------------------------------------------------------------------------


def _plan(document: Json, extra: Extra) -> Json:
    inner = document.get("waves")
    breakdown = inner.get("task_breakdown") if isinstance(inner, dict) else None
    if breakdown is None:
        return {}

    extra["breakdown"] = breakdown
    tasks, waves = read_adopted(breakdown)
    return {
        "items": {
            name: new_item(task["title"], files=task["files"], depends_on=task["depends_on"], extra={**task["extra"]})
            for name, task in tasks.items()
        },
        "waves": [
            {"wave": number, "items": names, "started_at": None, "ended_at": None}
            for number, names in enumerate(waves, 1)
        ],
    }


# ---- values ----------------------------------------------------------------------------------------


def _count(value: object, otherwise: int) -> int:
    """A number that can be a count, also one in quotes; or else another."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value.strip()[:17])
    elif isinstance(value, float) and 0 <= value < 1e15:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else otherwise


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [_text(entry) for entry in value if entry is not None]
    return [entry.strip() for entry in _text(value).split(",") if entry.strip()]


def _time(value: object) -> str | None:
    """A time as it was written, where it can stand among ours; another spelling of a time as we write it."""
    text = _text(value)
    known = milliseconds(text) or milliseconds(f"{text}T00:00:00Z")  # real files have days without a time
    if known is None:
        return None
    return text if text.endswith("Z") and text[10] == "T" else iso(known)


# ---- breakdown ------------------------------------------------------------


if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.records.run import Json, PlannedItem

    class PlannedTask(TypedDict):
        title: str
        files: list[str]
        depends_on: list[str]
        extra: dict[str, str]  # its description

    Plan = tuple[dict[str, PlannedTask], list[list[str]]]  # tasks by id, and their waves

MOST = 8
_KEY = "taskBreakdown"


def find_breakdown(text: str) -> object:
    """The object behind the key, in a JSON document, in a code block, or labelled by it."""
    at = text.find(_KEY)
    while at != -1:
        if text.startswith(f'"{_KEY}"', at - 1) and _value_after(text, at + len(_KEY) + 1) not in ("", "{"):
            raise _refused("it is no object")
        start = text.find("{", at + len(_KEY))
        between = text[at + len(_KEY) : start] if start != -1 else ""
        if start != -1 and _is_label(between):
            body = _object_at(text, start)
            if body is None:
                raise _refused("its JSON does not end")
            try:
                value: object = loads_strict(body)
            except NotJson as error:
                raise _refused(str(error)) from None
            if isinstance(value, dict) and _KEY in value:
                value = value[_KEY]
            return value
        at = text.find(_KEY, at + 1)
    return None


def _value_after(text: str, at: int) -> str:
    """The first sign of the value behind a JSON key; empty where no colon follows it."""
    rest = text[at : at + 200].lstrip()
    return rest[1:].lstrip()[:1] if rest.startswith(":") else ""


def _is_label(between: str) -> bool:
    """Only what leads from a label to its object: a colon, quotes, a fence, a heading's line end."""
    bare = between.replace("json", "").replace("JSON", "")
    return not bare.strip(" \t\r\n:=`\"'*#)")


def _object_at(text: str, start: int) -> str | None:
    depth, at, inside = 0, start, False
    while at < len(text):
        sign = text[at]
        if inside:
            if sign == "\\":
                at += 1
            elif sign == '"':
                inside = False
        elif sign == '"':
            inside = True
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
        at += 1
    return None


def plan(breakdown: object) -> Plan:
    tasks = breakdown.get("tasks") if isinstance(breakdown, dict) else None
    if not isinstance(tasks, list):
        raise _refused('it has no list "tasks"')
    if len(tasks) > MOST:
        raise _refused(f"{len(tasks)} tasks, at most {MOST} are allowed")
    items: dict[str, PlannedTask] = {}
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, dict) or isinstance(task.get("id"), bool) or not isinstance(task.get("id"), int | str):
            raise _refused(f"task number {number} has no id")
        name = plain(str(task["id"]).strip())
        if name in items:
            raise _refused(f"the id {task['id']} is used twice")
        items[name] = {
            "title": str(task.get("name") or ""),
            "files": _breakdown_texts(task, "files"),
            "depends_on": [plain(entry.strip()) for entry in _breakdown_texts(task, "dependencies")],
            "extra": {"description": str(task.get("description") or "")},
        }
    return items, _waves(items)


def _breakdown_texts(task: Json, key: str) -> list[str]:
    value = task.get(key) or []
    if not isinstance(value, list) or any(isinstance(v, bool) or not isinstance(v, int | str) for v in value):
        raise _refused(f"{key} of task {task['id']} is not a list")
    return [str(entry) for entry in value]


def _waves(items: dict[str, PlannedTask]) -> list[list[str]]:
    """Arranged by the same rules as every plan."""
    from tenuto.core.items import PlanRefused, arrange, shared_files

    listed = [_planned(name, item) for name, item in items.items()]
    try:
        waves = arrange(listed)["waves"]
    except PlanRefused as refusal:
        raise _refused(refusal.message) from None
    for path, names in shared_files(waves, listed):
        raise _refused(f"tasks {' and '.join(names)} of one wave both change {path}")
    return waves


def _planned(name: str, item: PlannedTask) -> PlannedItem:
    return {
        "id": name,
        "title": item["title"],
        "files": item["files"],
        "depends_on": item["depends_on"],
        "agent": None,
        "wave": None,
        "description": item["extra"]["description"],
        "effort": None,
        "lines": None,
    }


def as_items(tasks: dict[str, PlannedTask]) -> dict[str, Json]:
    """As PlanItems takes them."""
    return {name: {**task} for name, task in tasks.items()}


def read_adopted(breakdown: object) -> Plan:
    """What an adopted manifest holds, in either shape; nothing where it is neither. Never refused: it is history."""
    if not isinstance(breakdown, dict):
        return {}, []
    try:
        return plan(breakdown)
    except Refused:
        pass
    waves: list[list[str]] = []
    items: dict[str, PlannedTask] = {}
    for key in sorted((key for key in breakdown if key.startswith("wave")), key=_wave_number):
        entries = breakdown[key]
        names = []
        for entry in entries if isinstance(entries, list) else []:
            name = _number_in(str(entry)) or str(entry)
            items[name] = {"title": str(entry), "files": [], "depends_on": [], "extra": {}}
            names.append(name)
        waves.append(names)
    return items, waves


def _wave_number(key: str) -> int:
    digits = "".join(c for c in key if c.isascii() and c.isdigit())
    return int(digits) if digits else 0


def _number_in(entry: str) -> str:
    """`Task 3: Update ...`, `task-003` and `3` are item 3."""
    words = entry.replace("-", " ").replace(":", " ").replace(".", " ").split()
    if words and words[0].lower() == "task":
        words = words[1:]
    return plain(words[0]) if words and words[0].isascii() and words[0].isdigit() else ""


def _refused(reason: str) -> Refused:
    return Refused("bad-breakdown", f"Invalid taskBreakdown: {reason}", "correct it and STORE again")
