"""What `.agents/tmp/state.json` (version 2) shows of a run: profiles, the document, and the facts that its gates ask
for.

Literal data in the words of state.json: phases, gates and outputs of the three profiles. The pipelines staged-minimal,
staged-standard and staged-thorough say the same for the engine; tests/unit/staged/test_profiles.py holds both together.

The document, key by key in the order its users know: position and status follow from the run. What others keep in the
file and we do not know is shown again where they put it; where both know something, ours is shown.

Facts about an output that a gate asks for. Whether they suffice is decided in core/.

    exists      .agents/tmp/phases/<name> is a file
    filled      it holds more than blanks
    parses      it is JSON, where its name says so
    recorded    state.files has an entry for its phase
    step        the phase it belongs to; a review must be approved, too
"""

from __future__ import annotations

from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import BadInput
from tenuto.names import slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.records.commands import RecordReview
    from tenuto.core.records.run import CoverageRounds, Evidence, Json, Run, ScheduledStep

    Reader = Callable[[str], bytes | None]
    WrittenAt = Callable[[str], int | None]

name = "staged"
FOLDER = ".agents/tmp"
FILE = f"{FOLDER}/state.json"
LEFT_OVER = f"{FILE}.tmp"
PHASES_FOLDER = f"{FOLDER}/phases"
EARLIER_FOLDER = f"{FOLDER}/earlier"
"""Outputs of earlier tasks and visits: readable, and of no effect."""
VERSION = 2
STAGES = ("EXPLORE", "PLAN", "IMPLEMENT", "TEST", "FINAL")
COMPLETE = "COMPLETE"
PHASES = (
    ("0", "EXPLORE", "Explore", "dispatch"),
    ("1.1", "PLAN", "Brainstorm", "subagent"),
    ("1.2", "PLAN", "Plan", "dispatch"),
    ("1.3", "PLAN", "Plan Review", "review"),
    ("2.1", "IMPLEMENT", "Task Execution", "dispatch"),
    ("2.2", "IMPLEMENT", "Simplify", "subagent"),
    ("2.3", "IMPLEMENT", "Implementation Review", "review"),
    ("3.1", "TEST", "Run Tests & Analyze", "subagent"),
    ("3.2", "TEST", "Analyze Failures", "subagent"),
    ("3.3", "TEST", "Develop Tests", "subagent"),
    ("3.4", "TEST", "Test Dev Review", "review"),
    ("3.5", "TEST", "Test Review", "review"),
    ("4.1", "FINAL", "Documentation", "subagent"),
    ("4.2", "FINAL", "Final Review", "review"),
    ("4.3", "FINAL", "Completion", "subagent"),
)
OUTPUTS = {
    "0": "0-explore.md",
    "1.1": "1.1-brainstorm.md",
    "1.2": "1.2-plan.md",
    "1.3": "1.3-plan-review.json",
    "2.1": "2.1-tasks.json",
    "2.2": "2.2-simplify.md",
    "2.3": "2.3-impl-review.json",
    "3.1": "3.1-test-results.json",
    "3.2": "3.2-analysis.md",
    "3.3": "3.3-test-dev.json",
    "3.4": "3.4-test-dev-review.json",
    "3.5": "3.5-test-review.json",
    "4.1": "4.1-docs.md",
    "4.2": "4.2-final-review.json",
    "4.3": "4.3-completion.md",
}
# The name under which the system's own hooks look for an output that is JSON.
AS_JSON = {"4.3": "4.3-completion.json"}
PROFILES: dict[str, tuple[str, ...]] = {
    "minimal": ("0", "2.1", "2.3", "4.2", "4.3"),
    "standard": ("0", "1.1", "1.2", "1.3", "2.1", "2.3", "3.1", "3.3", "3.4", "3.5", "4.1", "4.2", "4.3"),
    "thorough": tuple(phase for phase, _, _, _ in PHASES),
}
COMPLEXITY = {"simple": "minimal", "medium": "standard", "complex": "thorough"}
# What a stage must have left behind before the next may begin, and the phase that completes it.
_EVIDENCE = {
    "EXPLORE": (("0",), "0"),
    "PLAN": (("1.2", "1.3"), "1.3"),
    "IMPLEMENT": (("2.1", "2.3"), "2.3"),
    "TEST": (("3.1", "3.3", "3.5"), "3.5"),
    "FINAL": (("4.2",), "4.2"),
}
_COVERAGE: dict[str, CoverageRounds] = {"3.5": {"back_to": "3.3", "at_most": 20}}
DEFAULTS: Json = {
    "codexTimeout": {
        "reviewPhases": 300000,
        "finalReviewPhases": None,
        "implementPhases": 1800000,
        "testPhases": 600000,
        "explorePhases": 600000,
        "maxRetries": 2,
    },
    "supplementaryPolicy": "on-issues",
    "coverageThreshold": 90,
    "webSearch": True,
    "reviewPolicy": {"minBlockSeverity": "LOW", "maxFixAttempts": 10, "maxStageRestarts": 3},
}
STATUS = {
    "created": "pending",
    "running": "in_progress",
    "paused": "stopped",
    "waiting_gate": "blocked",
    "parked": "stopped",
    "stopped": "stopped",
    "blocked": "blocked",
    "restarting": "restarting",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "stopped",
    "poc-complete": "completed",
    "graduated": "completed",
}
# Kept word for word; `update` and others may change them.
SETTINGS = (
    "codexAvailable",
    "ownerPpid",
    "worktree",
    "reviewer",
    "failureAnalyzer",
    "difficultyEstimator",
    "testDeveloper",
    "docUpdater",
    "taskAnalysis",
    "codexTimeout",
    "supplementaryPolicy",
    "coverageThreshold",
    "webSearch",
    "reviewPolicy",
)
_BEFORE_SCHEDULE = 9
_STEP_SHOWN = {
    "pending": "pending",
    "running": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "skipped": "skipped",
}
_SCHEDULED_FIELDS = ("stage", "name", "type")
_STAGE_FIELDS = {
    "EXPLORE": ("status", "agentCount"),
    "PLAN": ("status", "phases", "restartCount", "blockReason"),
    "IMPLEMENT": ("status", "phases", "restartCount", "blockReason"),
    "TEST": ("status", "enabled", "restartCount", "blockReason"),
    "FINAL": ("status", "restartCount", "blockReason"),
}


# ---- profiles --------------------------------------------------------------------------------------


def known_profile(profile: object) -> str:
    """The profile of a file or a setting; the whole, where there is none of this name."""
    return profile if isinstance(profile, str) and profile in PROFILES else "thorough"


def profile_of(profile: object, complexity: object) -> str:
    """The profile that was asked for, else the one for this complexity, else the whole."""
    if profile is not None:
        if not isinstance(profile, str) or profile not in PROFILES:
            raise BadInput("bad-profile", f"there is no profile {profile!r}", f"one of {', '.join(PROFILES)}")
        return profile
    if complexity is None:
        return "thorough"
    if not isinstance(complexity, str) or complexity not in COMPLEXITY:
        raise BadInput("bad-complexity", f"there is no complexity {complexity!r}", f"one of {', '.join(COMPLEXITY)}")
    return COMPLEXITY[complexity]


def schedule_of(profile: str, tests: bool = True) -> list[ScheduledStep]:
    schedule: list[ScheduledStep] = []
    for phase, stage, name, kind in PHASES:
        if phase in PROFILES[profile] and (tests or stage != "TEST"):
            entry: ScheduledStep = {"step": phase, "stage": stage, "name": name, "type": kind}
            if phase in _COVERAGE:
                entry["coverage"] = {**_COVERAGE[phase]}
            schedule.append(entry)
    return schedule


def evidence_of(schedule: list[ScheduledStep]) -> dict[str, Evidence]:
    stages = list(dict.fromkeys(entry["stage"] for entry in schedule))
    gates: dict[str, Evidence] = {}
    for stage, following in zip(stages, [*stages[1:], COMPLETE], strict=True):
        phases, last = _EVIDENCE[stage]
        gates[f"{stage}->{following}"] = {"required": [OUTPUTS[phase] for phase in phases], "step": last}
    return gates


def phase_of_file(name: str) -> str:
    """1.3-plan-review.json -> 1.3"""
    return name.partition("-")[0]


def with_coverage(schedule: list[ScheduledStep]) -> list[ScheduledStep]:
    """A schedule as a file tells it, with the loop that the file does not tell."""
    steps = [entry["step"] for entry in schedule]
    for entry in schedule:
        loop = _COVERAGE.get(entry["step"])
        if loop is not None and loop["back_to"] in steps:
            entry["coverage"] = {**loop}
    return schedule


def agents(codex: bool) -> dict[str, str]:
    """Who does what, with and without the second program."""
    reviewer = "subagents:codex-reviewer" if codex else "subagents:claude-reviewer"
    prefix = "subagents:codex-" if codex else "subagents:"
    return {
        "reviewer": reviewer,
        "failureAnalyzer": f"{prefix}failure-analyzer",
        "difficultyEstimator": f"{prefix}difficulty-estimator",
        "testDeveloper": f"{prefix}test-developer",
        "docUpdater": f"{prefix}doc-updater",
    }


# ---- the document ----------------------------------------------------------------------------------


def document(run: Run) -> Json:
    settings, extra = run["settings"], run["extra"].get(name, {})
    own = {key: settings.get(key) for key in SETTINGS}
    shown: Json = {
        "version": VERSION,
        "task": run["request"] or run["name"],
        "status": STATUS[run["status"]],
        "currentStage": stage_of(run),
        "currentPhase": phase_of(run),
        "pipelineProfile": profile_of_run(run),
        **{key: own[key] for key in SETTINGS[:_BEFORE_SCHEDULE]},
        "schedule": [_scheduled(entry) for entry in schedule(run)],
        "gates": {gate: {"required": e["required"], "phase": e["step"]} for gate, e in evidence(run).items()},
        "stages": {stage: _stage(run, stage, extra) for stage in _STAGE_FIELDS},
        **{key: own[key] for key in SETTINGS[_BEFORE_SCHEDULE:]},
        "restartHistory": [dict(restart) for restart in run["restarts"]],
        "files": files(run),
        "failure": _failure(run),
        "compaction": _compaction(run, extra),
        "startedAt": run["created_at"] or None,
        "updatedAt": run["updated_at"] or None,
        "stoppedAt": run["stopped_at"],
    }
    _add_unknown(shown, extra)
    for key in run["dialects"].get(name, {}).get("absent", ()):  # an adopted file gets no settings that it never had
        if shown.get(key) is None or key == "pipelineProfile":
            shown.pop(key, None)
    return shown


# ---- where the run is ------------------------------------------------------------------------------


def profile_of_run(run: Run) -> str:
    profile = run["settings"].get("pipelineProfile") or run["pipeline"]["name"].removeprefix("staged-")
    return profile if profile in ("minimal", "standard", "thorough") else "thorough"


def schedule(run: Run) -> list[ScheduledStep]:
    """The run's own; of a run that an engine leads, the one of its profile."""
    if run["schedule"]:
        return run["schedule"]
    return schedule_of(profile_of_run(run), run["switches"].get("tests", True))


def evidence(run: Run) -> dict[str, Evidence]:
    if run["evidence"] or run["schedule"]:
        return run["evidence"]
    return evidence_of(schedule(run))


def phase_of(run: Run) -> str:
    """The current phase. A run of another pipeline is at the beginning until it has ended."""
    steps = [entry["step"] for entry in schedule(run)]
    if run["position"] in steps:
        return str(run["position"])
    return steps[-1] if STATUS[run["status"]] == "completed" else steps[0]


def stage_of(run: Run) -> str:
    here = phase_of(run)
    return next(entry.get("stage", "") for entry in schedule(run) if entry["step"] == here)


def files(run: Run) -> Json:
    """phase -> path, of what was recorded: by our commands, and by others in the file itself."""
    shown: Json = {}
    for artifact in run["artifacts"].values():
        output = artifact["path"].rpartition("/")[2]
        # A file that is named after a phase is that phase's output, whatever the run did when it was stored.
        step = phase_of_file(output) if phase_of_file(output) in run["steps"] else artifact["step"]
        if step is not None and (output.startswith(f"{step}-") or step not in shown):
            shown[step] = artifact["path"]
    theirs = run["extra"].get(name, {}).get("files")
    for phase, path in theirs.items() if isinstance(theirs, dict) else ():
        shown.setdefault(phase, path)
    return {phase: shown[phase] for phase in sorted(shown, key=_order)}


def block_reason(run: Run) -> str | None:
    blocked = run["blocked"]
    if blocked is None:
        return None
    gate = evidence(run).get(blocked["reason"])
    if gate is None:
        return blocked["reason"]
    lacking, following = ", ".join(blocked["missing"]), blocked["reason"].partition("->")[2]
    return (
        f"Gate check failed: missing {lacking}. Phase {gate['step']} must complete before transitioning to {following}."
    )


# ---- stages and phases -----------------------------------------------------------------------------


def _scheduled(entry: ScheduledStep) -> Json:
    return {"phase": entry["step"], **{key: value for key, value in entry.items() if key in _SCHEDULED_FIELDS}}


def _stage(run: Run, stage: str, extra: Json) -> Json:
    mine = [entry["step"] for entry in schedule(run) if entry.get("stage") == stage]
    phases = {phase: _phase(run, phase) for phase in mine if _step(run, phase) != "pending"}
    here = run["blocked"] is not None and run["blocked"]["stage"] == stage
    shown: Json = {}
    for field in _STAGE_FIELDS[stage]:
        match field:
            case "status":
                shown[field] = _stage_status(run, stage, mine)
            case "agentCount":
                shown[field] = _agents(run, mine, extra, stage)
            case "phases":
                shown[field] = phases
            case "enabled":
                shown[field] = bool(mine)
            case "restartCount":
                shown[field] = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
            case "blockReason":
                shown[field] = block_reason(run) if here else None
    if stage in ("TEST", "FINAL") and phases:
        shown["phases"] = phases
    if here and "blockReason" not in shown:
        shown["blockReason"] = block_reason(run)
    return shown


def _stage_status(run: Run, stage: str, mine: list[str]) -> str:
    if not mine:
        return "skipped"
    if STATUS[run["status"]] == "completed":
        return "completed"
    if stage == stage_of(run):
        return STATUS[run["status"]]
    done = all(_step(run, phase) in ("completed", "skipped") for phase in mine)
    return "completed" if done and not _ahead(run, mine[0]) else "pending"


def _agents(run: Run, mine: list[str], extra: Json, stage: str) -> int:
    """Ours, or what a hook counted, whichever is more."""
    own = sum(1 for attempt in run["attempts"].values() if attempt["step"] in mine)
    counted = extra.get("stages", {}).get(stage, {}).get("agentCount", 0)
    return max(own, counted) if type(counted) is int else own


def _step(run: Run, phase: str) -> str:
    state = run["steps"].get(phase)
    return state["status"] if state else "pending"


def _ahead(run: Run, phase: str) -> bool:
    steps = [entry["step"] for entry in schedule(run)]
    return steps.index(phase) > steps.index(phase_of(run))


def _phase(run: Run, phase: str) -> Json:
    """What others know of a phase: a review has counters and a result, the rest a status."""
    shown: Json = {"status": "pending" if _ahead(run, phase) else _STEP_SHOWN[_step(run, phase)]}
    review = run["reviews"].get(phase)
    if review is not None:
        shown["fixAttempts"] = review.get("fix_attempts", 0)
        shown["dispatchRetries"] = review.get("dispatch_retries", 0)
        shown["reviewResult"] = review.get("answer")
    return shown


# ---- the rest --------------------------------------------------------------------------------------


def _failure(run: Run) -> Json | None:
    failed = run["failure"]
    if failed is None:
        return None
    context = failed["context"]
    if context is None and run["driver"] != "manual":
        context = task_progress(run)
    return {
        "phase": failed["step"] or phase_of(run),
        "error": failed["error"],
        "failedAt": failed["at"],
        "context": context,
    }


def _compaction(run: Run, extra: Json) -> Json:
    shown: Json = {"lastCompactedAt": None, "history": []}
    theirs = extra.get("compaction")
    if isinstance(theirs, dict):
        shown.update(theirs)
    saved = (run["resume"] or {}).get("saved_at")
    if saved and saved > str(shown["lastCompactedAt"] or "") and isinstance(shown["history"], list):
        shown["lastCompactedAt"] = saved
        shown["history"] = [*shown["history"], {"compactedAt": saved}]
    return shown


def _add_unknown(shown: Json, extra: Json) -> None:
    for key, value in extra.items():
        if key not in shown:
            shown[key] = value
        elif isinstance(value, dict) and isinstance(shown[key], dict):
            _add_unknown(shown[key], value)


def _order(phase: str) -> tuple[float, ...]:
    return tuple(int(part) if part.isdecimal() else 999 for part in phase.split("."))


def task_progress(run: Run) -> Json | None:
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


# ---- what gates ask for ----------------------------------------------------------------------------


def path_of(name: str) -> str:
    return f"{PHASES_FOLDER}/{name}"


def output_of(run: Run, phase: str) -> str:
    """The name of a phase's output: the one that a gate of this very run asks for, else the usual one."""
    asked = (name for gate in evidence(run).values() for name in gate["required"] if phase_of_file(name) == phase)
    entry = next((entry for entry in schedule(run) if entry["step"] == phase), None)
    called = slug(entry.get("name", "output")) if entry else "output"
    return next(asked, None) or OUTPUTS.get(phase) or f"{phase}-{called}.md"


def is_review(run: Run, phase: str) -> bool:
    return any(entry["step"] == phase and entry.get("type") == "review" for entry in schedule(run))


def lying(run: Run, read: Reader) -> Json:
    """phase -> path, of the outputs that gates ask for, or that are reviews, and that lie there without being
    recorded."""
    known = files(run)
    names = [name for gate in evidence(run).values() for name in gate["required"]]
    names += [output_of(run, entry["step"]) for entry in schedule(run) if entry.get("type") == "review"]
    return {
        phase_of_file(name): path_of(name)
        for name in dict.fromkeys(names)
        if phase_of_file(name) not in known and (read(path_of(name)) or b"").strip()
    }


def older_than(run: Run, phase: str, written_at: WrittenAt) -> str | None:
    """The name of the output before a review's own that was written later than the review: what it is no review of."""
    steps = [entry["step"] for entry in schedule(run)]
    mine = written_at(path_of(output_of(run, phase)))
    for step in reversed(steps[: steps.index(phase)]):
        before = written_at(path_of(output_of(run, step)))
        if before is not None:
            return output_of(run, step) if mine is not None and mine < before else None
    return None


def gather(run: Run, read: Reader, recorded: Json | None = None) -> dict[str, Json]:
    """The facts about every output that a gate of this run requires. `recorded`: outputs that are not in the run
    yet."""
    known = files(run) | (recorded or {})
    names = dict.fromkeys(name for gate in evidence(run).values() for name in gate["required"])
    return {name: _facts(name, read(path_of(name)), phase_of_file(name) in known) for name in names}


def _facts(name: str, text: bytes | None, recorded: bool) -> Json:
    filled = text is not None and bool(text.strip())
    return {
        "exists": text is not None,
        "filled": filled,
        "parses": filled and _parses(name, text),
        "recorded": recorded,
        "step": phase_of_file(name),
    }


def _parses(name: str, text: bytes | None) -> bool:
    if not name.endswith(".json"):
        return True
    try:
        loads_strict(text or b"")
    except NotJson:
        return False
    return True


def unjudged_review(run: Run, read: Reader, written_at: WrittenAt, recorded: Json | None = None) -> RecordReview | None:
    """The command that records the review of the current phase, when its file holds one of this visit that was not
    judged yet."""
    here = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), None)
    if here is None or here.get("type") != "review":
        return None
    step = here["step"]
    path = (files(run) | (recorded or {})).get(step)
    text = read(path) if isinstance(path, str) else None
    if text is None or stale_review(run, step, digest(text), written_at):
        return None
    judged = run["reviews"].get(step, {})
    if judged.get("sha256") == digest(text) and judged.get("visit") == run["steps"][step]["iteration"]:
        return None
    return {"do": "RecordReview", "step": step, "review": review_in(text), "sha256": digest(text)}


def stale_review(run: Run, phase: str, sha256: str, written_at: WrittenAt) -> str:
    """Why the file of a review is of another visit of its phase; empty where it is of this one."""
    from tenuto.core.decisions.gates import of_this_visit

    output = output_of(run, phase)
    if not of_this_visit(run, output, sha256):
        return f"{output} was recorded before phase {phase} began"
    before = older_than(run, phase, written_at)
    return f"{output} is older than {before}" if before is not None else ""


def review_in(text: bytes) -> object:
    """What a review file says; None where it cannot be read, which approves nothing."""
    try:
        return loads_strict(text)
    except NotJson:
        return None
