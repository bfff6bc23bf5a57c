"""A task as its files show it: manifest.json, current-task.md, metrics.

Rule 1: what stands here follows from the run alone. Keys that others added are shown again, after ours
or inside our objects, and never in place of one of ours.

Rule 2: a task that was found in the repository is left as it was found until a command changes it.

A run as the context manager's task: where its files lie, what its status and its phases are called.

    folder_of, manifest_of          paths, made from a task's slug, which is a checked name
    status_of                       the run's status in the words of this dialect
    visits_of, phase_of, retries    the phases: visits of steps that were led by hand, attempts where an engine drives

Pure: a run in, names out. Nothing here reads a file, and nothing decides what runs or whether it counts.
"""

from __future__ import annotations

from tenuto.core.parts import new_visit
from tenuto.core.times import between, item_of, plain, totals, wave_numbers
from tenuto.encoding import pretty
from tenuto.names import file_key

TYPE_CHECKING = False


if TYPE_CHECKING:
    from typing import Any, TypedDict

    from tenuto.core.records.run import Attempt, Json, Repo, Run, Visit

    class Whereabouts(TypedDict, total=False):
        """Where this dialect shows a run; in the run's `dialects`, under NAME."""

        tree: str  # the work tree; "" for the main one
        as_found: str  # an adopted task: its file, which is left alone until a command changes the task
        seen: int | None  # an adopted task: when its file had changed last
        status: str  # an adopted task: a word for its status that this dialect does not know
        created: object  # an adopted task: when it was made, as its file has it, where that is not a time of ours
        unseen: list[str]  # a driven task: the steps that are no phases

    class Extra(TypedDict, total=False):
        """What this dialect keeps of a run beyond what a run is; in the run's `extra`, under NAME."""

        name: object  # as an adopted manifest has it, where it is not the slug
        manifest: Json  # keys that others added to the manifest, also inside our objects
        metrics: Json  # the same for the metrics
        phases: Json  # entries of completed_phases that others wrote, by their position
        running: dict[str, Json]  # keys that others added to running_phases, by phase
        contexts: dict[str, Json]  # the same for a pause (by its time) or a gate (by its id)
        written: dict[str, Json]  # an adopted pause or gate as its file has it, by the same keys
        breakdown: object  # the plan of tasks, as it was written
        notes: str  # what others wrote below current-task.md


NAME = "context"
CONTEXT = "docs/orchestrator/context"
TASKS = CONTEXT + "/tasks"
CURRENT = CONTEXT + "/current-task.md"
HISTORY = CONTEXT + "/history.md"
DECISIONS = "docs/orchestrator/memory/decisions.md"
PATTERNS = "docs/orchestrator/memory/patterns.md"
METRICS = ".claude/orchestrator/metrics"

# Per phase that stores something: its file below the task's folder, or how that file's name begins.
PHASE_FILES = {
    "architect": "architect.md",
    "spec": "spec.md",
    "implementation": "implementations/",
    "tests": "tests/",
    "test-results": "test-results.md",
    "impl-audit": "impl-audit.md",
    "design-audit": "design-audit.md",
    "architect-revision": "architect-revision-",
    "implementation-fix": "implementation-fix-",
    "debt": "debt.md",
    "graduate-complete": "graduate-complete.md",
}
COUNTED = ("architect-revision", "implementation-fix")
PER_TASK = ("implementation", "tests")

# The words of this dialect for what a run can be; all others are its own.
_STATUSES = {
    "created": "running",
    "restarting": "running",
    "stopped": "paused",
    "blocked": "paused",
    "parked": "paused",
    "cancelled": "failed",
}
KNOWN_STATUSES = ("running", "paused", "waiting_gate", "completed", "failed", "poc-complete", "graduated")

# Attempts that neither succeeded nor failed: the phase goes on with the next one.
_UNFINISHED = ("PARKED", "QUESTION")


# ---- where its files lie ---------------------------------------------------------------------------


def folder_of(slug: str) -> str:
    return f"{TASKS}/{slug}"


def manifest_of(slug: str) -> str:
    return f"{TASKS}/{slug}/manifest.json"


def legacy_of(slug: str) -> str:
    return f"{TASKS}/{slug}/metadata.json"


def metrics_of(slug: str) -> str:
    return f"{METRICS}/{slug}.json"


def whereabouts(run: Run) -> Whereabouts:
    written_here: Any = run["dialects"].get(NAME, {})  # by this dialect alone
    place: Whereabouts = written_here
    return place


def tree_of(run: Run) -> str:
    """The work tree that shows this task."""
    return whereabouts(run).get("tree", "")


def as_found(run: Run) -> str:
    """The file that an adopted task is left in until a command changes it; empty from then on."""
    return whereabouts(run).get("as_found", "")


def is_current(run: Run, repo: Repo) -> bool:
    """Whether the current-task.md of its work tree shows this task."""
    return repo["owners"].get(file_key(tree_of(run), CURRENT)) == run["id"]


def extra_of(run: Run) -> Extra:
    """What this dialect keeps of a run beyond what a run is."""
    written_here: Any = run["extra"].get(NAME, {})  # by this dialect alone
    extra: Extra = written_here
    return extra


# ---- its status ------------------------------------------------------------------------------------


def shown_status(status: str, adopted: str | None = None) -> str:
    """`adopted`: the word that stood in an adopted file; it is shown for as long as the run has that status."""
    return status if adopted == status else _STATUSES.get(status, status)


def status_of(run: Run) -> str:
    return shown_status(run["status"], whereabouts(run).get("status"))


# ---- its phases ------------------------------------------------------------------------------------


def phase_of(visit: Visit) -> str:
    return phase_name(visit["step"], visit["item"])


def phase_name(step: str, item: str | None) -> str:
    """`architect`; `implementer:task-1` for an item."""
    if not item:
        return step
    return f"{step}:task-{item}" if item[:1].isdigit() else f"{step}:{item}"


def visits_of(run: Run) -> list[Visit]:
    """Its phases: visits of steps that were led by hand, attempts where an engine drives."""
    return phases(run) if is_driven(run) else run["visits"]


def ended_visits(run: Run) -> list[Visit]:
    """In the order in which they ended."""
    return sorted((visit for visit in visits_of(run) if visit["closed"] is not None), key=_closed)


def _closed(visit: Visit) -> int:
    return visit["closed"] or 0


def current_phase(run: Run) -> str | None:
    """Under an engine: of the phases under way, the first."""
    if not is_driven(run):
        return run["position"]
    return next((phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"), None)


def retries(run: Run) -> int:
    """Failed attempts in place of failed visits, where the engine made them."""
    if not is_driven(run):
        return run["retries"]
    by_hand = [visit for visit in run["visits"] if visit["status"] == "failed"]
    shown = [visit for visit in phases(run) if visit["status"] == "failed"]
    return run["retries"] - len(by_hand) + len(shown)


# ---- the phases of a task that the engine drives ---------------------------------------------------


def is_driven(run: Run) -> bool:
    return "unseen" in whereabouts(run)


def unseen_of(run: Run) -> list[str]:
    """Steps of a driven task that are no phases: gates, actions, and groups of items, which are seen in their
    attempts."""
    return whereabouts(run).get("unseen", [])


def phases(run: Run) -> list[Visit]:
    """Visits as the manifest shows them. One entry per attempt, so that retries and items stay visible."""
    unseen = unseen_of(run)
    by_visit = _attempts_by_visit(run)
    shown: list[Visit] = []
    failures: dict[str, int] = {}
    for visit in run["visits"]:
        own = by_visit.get((visit["step"], visit["iteration"]), []) if visit["item"] is None else []
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


def _attempts_by_visit(run: Run) -> dict[tuple[str, int], list[Attempt]]:
    by_visit: dict[tuple[str, int], list[Attempt]] = {}
    for attempt in run["attempts"].values():
        if "seat" in attempt["extra"]:
            by_visit.setdefault((attempt["step"], attempt["iteration"]), []).append(attempt)
    return by_visit


def _entries(run: Run, visit: Visit, attempts: list[Attempt]) -> list[Visit]:
    """In the order in which they ended; those under way last."""
    several = _have_several_seats(attempts)
    return [
        _entry(run, visit, attempt, several)
        for attempt in sorted(attempts, key=_end_of)
        if attempt["verdict"] not in _UNFINISHED and (attempt["status"] != "lost" or attempt["ended_at"])
    ]


def _end_of(attempt: Attempt) -> str:
    return attempt["ended_at"] or "~"


def _have_several_seats(attempts: list[Attempt]) -> bool:
    return len({attempt["extra"]["seat"] for attempt in attempts}) > 1


def _entry(run: Run, visit: Visit, attempt: Attempt, several: bool) -> Visit:
    step, ended_at = _step_shown(attempt, several), attempt["ended_at"]
    entry = new_visit(step, attempt["started_at"], item=attempt["item"], iteration=attempt["iteration"])
    if ended_at is not None:
        entry["status"] = "success" if attempt["status"] == "completed" else "failed"
        entry["ended_at"] = ended_at
        entry["duration_ms"] = between(attempt["started_at"], ended_at)
        entry["closed"] = visit["closed"] if visit["closed"] is not None else run["version"]
    return entry


def _step_shown(attempt: Attempt, several: bool) -> str:
    """`architect`; `implementer` of an item; the role's name where several work side by side."""
    return attempt["role"] if several or attempt["item"] else attempt["step"]


def is_driven_step(run: Run, step: str, ended_at: str) -> bool:
    """Did the engine make the visit of this step that ended then?"""
    by_visit = _attempts_by_visit(run)
    return step in unseen_of(run) or any(
        (step, visit["iteration"]) in by_visit
        for visit in run["visits"]
        if visit["step"] == step and visit["ended_at"] == ended_at
    )


def phase_of_attempt(run: Run, attempt: Attempt) -> str:
    others = _attempts_by_visit(run)[(attempt["step"], attempt["iteration"])]
    return phase_name(_step_shown(attempt, _have_several_seats(others)), attempt["item"])


def result_of_attempt(attempt: Attempt) -> str:
    """`success` or `failed`; empty where the phase goes on."""
    if attempt["ended_at"] is None or attempt["verdict"] in _UNFINISHED:
        return ""
    return "success" if attempt["status"] == "completed" else "failed"


# ---- state ------------------------------------------------------------


if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from tenuto.core.records.run import Item, Json, Repo, Run, Visit
    from tenuto.core.times import Totals

    class Figures(Totals):
        """What took how long."""

        waves: list[int | None]  # of each phase that ended

    class ManifestMetrics(TypedDict):
        total_duration_ms: int | None
        parallelization_savings_ms: int | None
        total_retries: int

    class TaskResult(TypedDict):
        id: int | str
        status: str
        duration_ms: int
        retries: int

    class WaveResult(TypedDict):
        waveNumber: int
        tasks: list[TaskResult]

    class ManifestWaves(TypedDict):
        task_breakdown: object  # as it was written
        execution: list[WaveResult]

    class Manifest(TypedDict):
        """manifest.json, before others' keys are laid over it."""

        name: object
        mode: str
        workflow: str
        status: str
        current_phase: str | None
        running_phases: list[Json]
        completed_phases: list[object]  # entries that others wrote stay as they wrote them
        failure_context: Json | None
        gate_context: Json | None
        metrics: ManifestMetrics
        waves: ManifestWaves
        created_at: object  # None: it was adopted, and nothing says when it was made
        updated_at: str
        graduated_at: NotRequired[str]

    class CompletedPhase(TypedDict):
        phase: str
        status: str
        started_at: str
        ended_at: str | None
        duration_ms: int | None
        retries: int

    class BreakdownTask(TypedDict):
        id: int | str
        name: str
        files: list[str]
        dependencies: list[int | str]
        description: str

    class MetricsFigures(TypedDict):
        total_duration_ms: int | None  # None: nothing is known
        sequential_estimate_ms: int | None
        parallelization_savings_ms: int | None
        savings_percent: int | None
        total_retries: int

    class MetricsWaves(TypedDict):
        taskBreakdown: object
        waveExecutionData: list[WaveResult]

    class Metrics(TypedDict):
        """The JSON form of METRICS."""

        task: str
        metrics: MetricsFigures
        waves: MetricsWaves
        completed_phases: list[object]


def paths(run: Run, repo: Repo) -> list[str]:
    file = as_found(run)
    if file:
        return [file]
    listed = [manifest_of(run["id"])]
    if is_current(run, repo):
        listed.append(CURRENT)
    if any(visit["closed"] is not None for visit in visits_of(run)):
        listed.append(metrics_of(run["id"]))
    return listed


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    if as_found(run):
        return {}
    ended = ended_visits(run)
    figures = measure(run, ended)
    files = {manifest_of(run["id"]): pretty(manifest(run, ended, figures)).encode()}
    if is_current(run, repo):
        files[CURRENT] = current_task(run).encode()
    if ended:
        shown: Json = {**metrics(run, ended, figures)}
        lay_over(shown, extra_of(run).get("metrics", {}))
        files[metrics_of(run["id"])] = pretty(shown).encode()
    return files


def lay_over(ours: Json, others: Json) -> None:
    """Add the keys that we do not have, at every depth."""
    for key, value in others.items():
        if key not in ours:
            ours[key] = value
        elif isinstance(value, dict) and isinstance(ours[key], dict):
            lay_over(ours[key], value)


# ---- the manifest ----------------------------------------------------------------------------------


def manifest(run: Run, ended: list[Visit], figures: Figures) -> Json:
    extra = extra_of(run)
    ours: Manifest = {
        "name": extra.get("name", run["id"]),
        "mode": run["mode"],
        "workflow": run["pipeline"]["name"],
        "status": status_of(run),
        "current_phase": current_phase(run),
        "running_phases": [_running_phase(visit, extra) for visit in visits_of(run) if visit["status"] == "running"],
        "completed_phases": completed_phases(run, ended),
        "failure_context": failure_context(run),
        "gate_context": gate_context(run),
        "metrics": {
            "total_duration_ms": figures["total"] if ended and is_known(ended) else None,
            "parallelization_savings_ms": figures["savings"] if ended and is_known(ended) else None,
            "total_retries": retries(run),
        },
        "waves": {"task_breakdown": breakdown(run), "execution": execution(run, ended, figures["waves"])},
        "created_at": whereabouts(run).get("created", run["created_at"] or None),
        "updated_at": run["updated_at"],
    }
    if run["graduated_at"]:
        ours["graduated_at"] = run["graduated_at"]
    shown: Json = {**ours}
    if extra:
        lay_over(shown, extra.get("manifest", {}))
    return shown


def _running_phase(visit: Visit, extra: Extra) -> Json:
    phase = phase_of(visit)
    entry: Json = {"phase": phase, "started_at": visit["started_at"]}
    if extra:
        lay_over(entry, extra.get("running", {}).get(phase, {}))
    return entry


def completed_phases(run: Run, ended: list[Visit], places: list[int] | None = None) -> list[object]:
    """Entries that others wrote stay as they wrote them. `places`: of these among all that ended, where they are not
    all."""
    others = extra_of(run).get("phases", {})
    return [
        others[str(at)] if str(at) in others else _completed_phase(visit)
        for at, visit in zip(places or range(len(ended)), ended, strict=True)
    ]


def _completed_phase(visit: Visit) -> CompletedPhase:
    return {
        "phase": phase_of(visit),
        "status": "success" if visit["status"] == "skipped" else visit["status"],
        "started_at": visit["started_at"],
        "ended_at": visit["ended_at"],
        "duration_ms": visit["duration_ms"],
        "retries": visit["retries"],
    }


def failure_context(run: Run) -> Json | None:
    pause = run["pause"]
    if pause is None or run["status"] == "waiting_gate":
        return None
    written = extra_of(run).get("written", {}).get(run["paused_at"] or "")
    if written is not None:
        return written
    context: Json = {
        "phase": pause["step"],
        "reason": pause["reason"],
        "attempts": pause["attempts"],
        "last_feedback": pause["feedback"] or pause["until"] or pause["question_of"],
        "recommendations": pause["recommendations"],
    }
    lay_over(context, extra_of(run).get("contexts", {}).get(run["paused_at"] or "", {}))
    return context


def gate_context(run: Run) -> Json | None:
    gate = run["gate"]
    if gate is None:
        return None
    written = extra_of(run).get("written", {}).get(gate["id"])
    if written is not None:
        return written
    context: Json = {
        "gate": gate["name"],
        "prompt": gate["prompt"],
        "options": gate["options"],
        "artifacts": [entry["path"] for entry in gate["shown"]],
    }
    lay_over(context, extra_of(run).get("contexts", {}).get(gate["id"], {}))
    return context


def breakdown(run: Run) -> object:
    """The plan as it was written; where an engine planned the items, in the same words."""
    written: object = extra_of(run).get("breakdown")
    if written is not None or not run["items"]:
        return written
    return {"tasks": [_breakdown_task(name, item) for name, item in run["items"].items()]}


def _breakdown_task(name: str, item: Item) -> BreakdownTask:
    return {
        "id": _number(name),
        "name": item["title"],
        "files": item["files"],
        "dependencies": [_number(before) for before in item["depends_on"]],
        "description": item["extra"].get("description", ""),
    }


def _number(item: str) -> int | str:
    bare = plain(item)
    return int(bare) if bare.isdecimal() and bare.isascii() else item


# ---- what took how long ----------------------------------------------------------------------------


def measure(run: Run, ended: list[Visit]) -> Figures:
    waves = wave_numbers(ended, [wave["items"] for wave in run["waves"]])
    return {**totals(ended, waves), "waves": waves}


def is_known(ended: list[Visit]) -> bool:
    """Whether anything is known of how long phases took; of no phases it is known that they took no time."""
    return not ended or any(visit["duration_ms"] is not None for visit in ended)


def retries_of(visits: list[Visit]) -> int:
    """How often these phases were tried again: as often as they failed, or as an adopted entry says."""
    by_phase: dict[str, list[Visit]] = {}
    for visit in visits:
        by_phase.setdefault(phase_of(visit), []).append(visit)
    return sum(
        max(sum(1 for visit in own if visit["status"] == "failed"), *(visit["retries"] for visit in own))
        for own in by_phase.values()
    )


def execution(run: Run, ended: list[Visit], waves: list[int | None], whole: bool = True) -> list[WaveResult]:
    """Per wave its tasks: how each stands, how long the longest of its phases took, how often it was tried again.
    `whole`: these are all phases that ended; else only the tasks that they are about are told of."""
    if not whole:
        run = {**run, "waves": [], "items": {}, "visits": ended, "attempts": {}}
    planned = {number: [plain(item) for item in wave["items"]] for number, wave in enumerate(run["waves"], 1)}
    tasks: dict[int, dict[str, list[Visit]]] = {
        number: {item: [] for item in items} for number, items in planned.items()
    }
    for visit, wave in zip(ended, waves, strict=True):
        if wave is not None:
            tasks.setdefault(wave, {}).setdefault(item_of(visit), []).append(visit)
    if not any(visits for items in tasks.values() for visits in items.values()) and not run["items"]:
        return []
    running = {item_of(visit) for visit in visits_of(run) if visit["status"] == "running"}
    failed = {item for items in tasks.values() for item, visits in items.items() if _has_failed(visits)}
    skipped = _dependents(run, failed) if failed else set()
    return [
        {
            "waveNumber": number,
            "tasks": [_task(item, visits, running, skipped, run) for item, visits in sorted(items.items(), key=_order)],
        }
        for number, items in sorted(tasks.items())
    ]


def _order(entry: tuple[str, list[Visit]]) -> tuple[int, int, str]:
    item = entry[0]
    return (0, int(item), "") if item.isdecimal() else (1, 0, item)


def _task(item: str, visits: list[Visit], running: set[str], skipped: set[str], run: Run) -> TaskResult:
    if item in running:
        status = "running"
    elif visits:
        status = "failed" if _has_failed(visits) else "completed"
    elif item in skipped:
        status = "skipped"
    else:
        status = next((it["status"] for name, it in run["items"].items() if plain(name) == item), "pending")
    return {
        "id": _number(item),
        "status": status,
        "duration_ms": max((visit["duration_ms"] or 0 for visit in visits), default=0),
        "retries": retries_of(visits),
    }


def _has_failed(visits: list[Visit]) -> bool:
    """The last word of any of its phases is a failure."""
    last = {phase_of(visit): visit["status"] for visit in visits}
    return "failed" in last.values()


def _dependents(run: Run, failed: set[str]) -> set[str]:
    """Everything that waits for a failed item, directly or through others."""
    lost = set(failed)
    grown = True
    while grown:
        grown = False
        for name, item in run["items"].items():
            if plain(name) not in lost and any(plain(before) in lost for before in item["depends_on"]):
                lost.add(plain(name))
                grown = True
    return lost - failed


def metrics(run: Run, ended: list[Visit], figures: Figures, places: list[int] | None = None) -> Metrics:
    """`places`: of these phases among all that ended, where they are not all."""
    known = is_known(ended)
    return {
        "task": run["id"],
        "metrics": {
            "total_duration_ms": figures["total"] if known else None,
            "sequential_estimate_ms": figures["sequential"] if known else None,
            "parallelization_savings_ms": figures["savings"] if known else None,
            "savings_percent": figures["percent"] if known else None,
            "total_retries": retries(run) if places is None else retries_of(ended),
        },
        "waves": {
            "taskBreakdown": breakdown(run),
            "waveExecutionData": execution(run, ended, figures["waves"], places is None),
        },
        "completed_phases": completed_phases(run, ended, places),
    }


# ---- current-task.md -------------------------------------------------------------------------------


def current_task(run: Run) -> str:
    text = (
        "# Current Task\n\n"
        f"**Task:** {run['id']}\n"
        f"**Mode:** {run['mode']}\n"
        f"**Workflow:** {run['pipeline']['name']}\n"
        f"**Status:** {status_of(run)}\n"
        f"**Path:** `{folder_of(run['id'])}/`\n\n"
        f"## Summary\n\n{situation(run)}\n"
    )
    notes = extra_of(run).get("notes")
    return f"{text}\n## Notes\n\n{notes}\n" if notes else text


def situation(run: Run) -> str:
    """One sentence: where the task stands and what it waits for."""
    status = status_of(run)
    running = [phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"]
    if run["gate"]:
        return f"Waiting for approval of the {run['gate']['name']} gate: {_line(run['gate']['prompt'])}"
    if status == "paused":
        return f"Paused: {_line(run['pause']['reason'])}" if run["pause"] else "Paused."
    if running:
        return f"Running: {', '.join(running)}."
    if status == "running":
        last = ended_visits(run)[-1:]
        return f"Last phase: {phase_of(last[0])} ({last[0]['status']})." if last else "Task initialized."
    return {
        "completed": "Task completed.",
        "failed": "Task failed.",
        "graduated": "POC graduated.",
        "poc-complete": "POC complete, ready for graduation.",
    }.get(status, f"Status: {status}.")


def _line(text: str) -> str:
    return " ".join(text.split())
