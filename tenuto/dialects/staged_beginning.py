"""How a staged task begins: a new one, a state.json that was there before Tenuto, what a dying writer left beside it.

A new task has the defaults that its users know, and what the caller says otherwise; a setting of another kind is
refused. `ownerPpid` names the session that a state belongs to, by its process id and by the time at which that process
began.

Real files drift: keys are missing, statuses are spelled in other ways, a schedule was written by hand. All of this is
read. The bytes are kept by their hash, and unknown keys stay in the file. A file that holds no staged task belongs to
another tool: it is refused by name, and not touched.

A left-over state.json.tmp: with state.json beside it, an interrupted write, which is removed; alone, a write whose
rename did not come, which is put in its place if it is whole. A writer that is still at work is left alone. Where a
journal knows the file, a lone .tmp is an edit like any other (tenuto.workspace.edits).
"""

from __future__ import annotations

import os

from tenuto.core.decisions.gates import plain
from tenuto.core.parts import merge, new_pause, new_step, new_visit, past_visit
from tenuto.core.rules import review
from tenuto.encoding import NotJson, digest, dumps, loads, loads_strict
from tenuto.errors import BadInput, Refused
from tenuto.names import slug
from tenuto.views.staged import identify, owner_key
from tenuto.views.staged_document import (
    COMPLEXITY,
    DEFAULTS,
    FILE,
    LEFT_OVER,
    PHASES,
    PROFILES,
    SETTINGS,
    STAGES,
    VERSION,
    agents,
    evidence_of,
    known_profile,
    name,
    path_of,
    phase_of_file,
    profile_of,
    review_in,
    schedule_of,
    with_coverage,
)
from tenuto.workspace.objects import began

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.records.commands import StartRun
    from tenuto.core.records.run import Block, Evidence, Failure, Json, Pause, ScheduledStep, Status, StepState, Visit
    from tenuto.workspace.objects import Files
    from tenuto.workspace.workspace import Turn, Workspace

_STATUS: dict[str, Status] = {
    "pending": "created",
    "in_progress": "running",
    "stopped": "stopped",
    "completed": "completed",
    "failed": "failed",
    "blocked": "blocked",
    "restarting": "running",
    "skipped": "stopped",
    "in-progress": "running",
    "running": "running",
    "active": "running",
    "paused": "stopped",
    "done": "completed",
    "complete": "completed",
}
_TELLING = ("currentPhase", "currentStage", "schedule", "gates", "stages", "pipelineProfile")
_SHOWN = (
    "version",
    "task",
    "status",
    "currentStage",
    "currentPhase",
    "pipelineProfile",
    *SETTINGS,
    "schedule",
    "gates",
    "stages",
    "restartHistory",
    "files",
    "failure",
    "startedAt",
    "updatedAt",
    "stoppedAt",
)
_STAGE = ("status", "phases", "restartCount", "blockReason", "enabled")
_REVIEW = ("fixAttempts", "dispatchRetries", "reviewResult")
FOLLOWING = (
    "version",
    "status",
    "currentStage",
    "currentPhase",
    "schedule",
    "gates",
    "stages",
    "restartHistory",
    "files",
    "failure",
    "startedAt",
    "updatedAt",
    "stoppedAt",
)
_SEVERITIES = ("HIGH", "MEDIUM", "LOW")
_SUPPLEMENTARY = ("on-issues", "always", "never")
_STILL_WRITTEN_NS = 2_000_000_000  # a writer may be between closing the .tmp and renaming it


# ---- what a dying writer left ----------------------------------------------------------------------


def recover(workspace: Workspace) -> bytes | None:
    """The state file's text, where no journal knows it; None where there is none."""
    folder = workspace.files()
    main, left = folder.read(FILE), folder.read(LEFT_OVER)
    if left is None or _is_live(folder, LEFT_OVER):
        return main
    if main is not None:
        _remove(workspace)
        return main
    state_in(LEFT_OVER, left)
    # A link, not a rename: a state.json that another program puts there in this moment stays.
    os.link(f"{workspace.root}/{LEFT_OVER}", f"{workspace.root}/{FILE}", follow_symlinks=False)
    os.unlink(f"{workspace.root}/{LEFT_OVER}")
    workspace.warn(f"{FILE} was missing; {LEFT_OVER}, which its last writer left behind, is in its place")
    return left


def clear_left_over(workspace: Workspace) -> None:
    """Beside a state file that the journal knows, it is what remains of an interrupted write."""
    folder = workspace.files()
    if folder.changed_at(FILE) is not None and not _is_live(folder, LEFT_OVER):
        _remove(workspace)


def _remove(workspace: Workspace) -> None:
    """Out of the way first, then looked at once more: a writer may have begun in this moment."""
    left, aside = f"{workspace.root}/{LEFT_OVER}", f"{workspace.root}/{LEFT_OVER}.old"
    try:
        os.rename(left, aside)
    except FileNotFoundError:
        return  # its writer was alive, and has renamed it
    if _is_live(workspace.files(), f"{LEFT_OVER}.old"):
        try:
            os.link(aside, left, follow_symlinks=False)
        except FileExistsError:
            pass  # they have begun anew
    else:
        workspace.warn(f"{LEFT_OVER} was left over by an interrupted write; it is removed")
    os.unlink(aside)


def _is_live(folder: Files, path: str) -> bool:
    """Whether a program writes to it, or did a moment ago and may be about to rename it."""
    from time import time_ns

    changed = folder.changed_at(path)
    return changed is None or time_ns() - changed < _STILL_WRITTEN_NS or folder.is_written(path)


# ---- whose file it is ------------------------------------------------------------------------------


def state_in(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state: Json = loads_strict(body)
    except NotJson as problem:
        raise Refused(
            "state-damaged", f"{path} is not JSON that can be read: {problem}", "mend it, or move it away", path=path
        ) from None
    sections = [key for key in _TELLING if key in state] if isinstance(state, dict) else []
    if len(sections) < 2 or not isinstance(state.get("task"), str) or not isinstance(state.get("stages", {}), dict):
        raise Refused(
            "not-a-staged-state",
            f"{path} is not a staged task's state: it has no task with phases and stages",
            "it belongs to another tool and stays as it is; move it away to use tenuto staged here",
            path=path,
        )
    if state.get("version") != VERSION:
        raise Refused(
            "bad-version",
            f"{path} has version {state.get('version')!r}; version {VERSION} is read and written",
            "migrate it with the tool that wrote it",
            path=path,
            version=state.get("version"),
        )
    return state


def adopt(turn: Turn, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    if path != FILE:
        raise Refused("not-its-place", f"{path} holds a staged task, but one lies at {FILE}", f"move it to {FILE}")
    state, sha, tree = state_in(path, body), digest(body), turn.workspace.tree
    run: str = turn.unused(slug(state["task"]))
    turn.tx.put_blob(sha, body)
    adopted = _run(run, state, {"tree": tree}, turn)
    turn.do(run, {"do": "Adopt", "dialect": name, "path": path, "sha256": sha, "state": adopted})
    turn.do_repo({"do": "OwnFile", "path": owner_key(tree), "run": run})
    turn.take_over(owner_key(tree), body)
    return run


def _run(run: str, state: Json, place: Json, turn: Turn) -> Json:
    profile = known_profile(state.get("pipelineProfile"))
    schedule = _schedule(state, profile)
    steps = [entry["step"] for entry in schedule]
    if "pipelineProfile" not in state:
        profile = next((known for known, phases in PROFILES.items() if list(phases) == steps), profile)
    here = str(state["currentPhase"]) if state.get("currentPhase") in steps else steps[0]
    status = _STATUS.get(str(state.get("status")), "running")
    started = _text(state.get("startedAt")) or turn.at
    settings = {key: state[key] for key in SETTINGS if key in state} | {"pipelineProfile": profile}
    evidence = _evidence(state, schedule)
    past = steps if status == "completed" else steps[: steps.index(here)]
    artifacts = _artifacts(state, evidence, past, turn)
    absent = [key for key in ("pipelineProfile", *SETTINGS) if key not in state]
    if "ownerPpid" in settings:
        settings["owner"] = identify(settings["ownerPpid"], began(settings["ownerPpid"]))
    return {
        "id": run,
        "name": state["task"].partition("\n")[0][:200],
        "request": state["task"],
        "created_at": started,
        "stopped_at": _text(state.get("stoppedAt")) or None,
        "status": status,
        "pipeline": {"name": f"staged-{profile}", "hash": None},
        "dialects": {name: {**place, "absent": absent} if absent else place},
        "order": "strict",
        "schedule": schedule,
        "evidence": evidence,
        "position": here,
        "steps": {step: _step(steps, step, here, status) for step in steps},
        "visits": _visits(steps, here, status, started),
        "reviews": _reviews(state, steps, artifacts),
        "restarts": _restarts(state),
        "failure": _failure(state, here, started),
        "blocked": _blocked(state, status),
        "pause": _pause(status, here),
        "artifacts": {output: artifact for output, (artifact, _) in artifacts.items()},
        "settings": settings,
        "extra": {name: _unknown(state)},
    }


# ---- part by part ----------------------------------------------------------------------------------


def _schedule(state: Json, profile: str) -> list[ScheduledStep]:
    schedule: list[ScheduledStep] = []
    known = {phase: (stage, called, kind) for phase, stage, called, kind in PHASES}
    entries = state.get("schedule")
    for entry in entries if isinstance(entries, list) else ():
        phase = entry.get("phase") if isinstance(entry, dict) else None
        if not isinstance(phase, str) or any(phase == other["step"] for other in schedule):
            continue
        stage, called, kind = known.get(phase, ("", phase, "subagent"))
        stage = entry.get("stage", stage)
        if stage in STAGES:
            schedule.append(
                {"step": phase, "stage": stage, "name": entry.get("name", called), "type": entry.get("type", kind)}
            )
    if schedule:
        return with_coverage(schedule)
    return schedule_of(profile, _object(state.get("taskAnalysis")).get("needsTests") is not False)


def _evidence(state: Json, schedule: list[ScheduledStep]) -> dict[str, Evidence]:
    """The gates as the file has them; one that cannot be read is the profile's, never none."""
    stages = list(dict.fromkeys(entry["stage"] for entry in schedule))
    evidence = evidence_of(schedule)
    gates = state.get("gates")
    for gate, gate_entry in _object(gates).items():
        required = _object(gate_entry).get("required")
        if (
            gate.partition("->")[0] in stages
            and isinstance(required, list)
            and all(isinstance(n, str) for n in required)
        ):
            evidence[gate] = {"required": required, "step": str(gate_entry.get("phase", ""))}
    return evidence


def _step(steps: list[str], step: str, here: str, status: Status) -> StepState:
    if steps.index(step) < steps.index(here) or (step == here and status == "completed"):
        return new_step("completed", 1)
    if step == here:
        return new_step("failed" if status == "failed" else "running", 1)
    return new_step()


def _visits(steps: list[str], here: str, status: Status, started: str) -> list[Visit]:
    before = steps[: steps.index(here)]
    visits = [past_visit(step, "success", started, started, closed=0) for step in before]
    match status:
        case "completed":
            return [*visits, past_visit(here, "success", started, started, closed=0)]
        case "failed":
            return [*visits, past_visit(here, "failed", started, started, closed=0)]
    return [*visits, new_visit(here, started)]


def _reviews(state: Json, steps: list[str], artifacts: Json) -> Json:
    """Counters and results as the file has them; a review that lies on disk is judged again, whatever the file says
    of it."""
    reviews: Json = {}
    for stage in state.get("stages", {}).values():
        for phase, entry in _object(_object(stage).get("phases")).items():
            if phase in steps and isinstance(entry, dict) and any(key in entry for key in _REVIEW):
                reviews[phase] = {
                    "fix_attempts": _count(entry.get("fixAttempts")),
                    "dispatch_retries": _count(entry.get("dispatchRetries")),
                    "answer": entry.get("reviewResult"),
                    "approved": False,
                    "visit": 0,
                }
    severity = str(_object(state.get("reviewPolicy")).get("minBlockSeverity", "LOW"))
    for artifact, answer in artifacts.values():
        if artifact["path"].endswith("-review.json"):
            judgement = review(plain(answer), severity)
            reviews[artifact["step"]] = reviews.get(artifact["step"], {}) | {
                "answer": answer,
                "approved": judgement["approved"],
                "reason": judgement["reason"],
                "visit": 1,
                "sha256": artifact["sha256"],
                "next": "",
            }
    return reviews


def _restarts(state: Json) -> list[Json]:
    history = state.get("restartHistory")
    restarts: list[Json] = []
    for entry in history if isinstance(history, list) else ():
        if isinstance(entry, dict):
            count = sum(1 for restart in restarts if restart["stage"] == entry.get("stage")) + 1
            restarts.append({"stage": "", "reason": "", "at": "", "restart": count, **entry})
    return restarts


def _failure(state: Json, here: str, at: str) -> Failure | None:
    failure = _object(state.get("failure"))
    if not failure:
        return None
    return {
        "step": failure.get("phase", here),
        "error": str(failure.get("error", "")),
        "at": _text(failure.get("failedAt")) or at,
        "context": failure.get("context"),
    }


def _blocked(state: Json, status: Status) -> Block | None:
    if status != "blocked":
        return None
    stage = state.get("currentStage")
    reason = _object(state.get("stages", {}).get(stage)).get("blockReason")
    return {"reason": reason or "blocked", "stage": stage, "missing": []}


def _pause(status: Status, here: str) -> Pause | None:
    if status != "stopped":
        return None
    return new_pause("stopped", "", here, "running")


def _artifacts(state: Json, evidence: dict[str, Evidence], past: list[str], turn: Turn) -> Json:
    """Outputs that are where the file says; the rest stays as it was. The hooks of this system record nothing: of the
    phases that are behind it, what gates ask for and what lies there counts as recorded."""
    named = _object(state.get("files"))
    asked = [output for gate in evidence.values() for output in gate["required"]]
    lie = {phase_of_file(output): path_of(output) for output in asked if phase_of_file(output) in past}
    artifacts: Json = {}
    for phase, path in (lie | named).items():
        output = str(path).rpartition("/")[2]
        text = turn.workspace.files().read(path) if _inside(path) and phase_of_file(output) == phase else None
        if text:
            sha = digest(text)
            turn.tx.put_blob(sha, text)
            artifact = {
                "path": path,
                "sha256": sha,
                "size": len(text),
                "step": phase,
                "attempt": None,
                "at": turn.at,
                "by": "external",
            }
            artifacts[output] = (artifact, review_in(text))
    return artifacts


def _unknown(state: Json) -> Json:
    """Every key that a run has no place for, where it stood."""
    unknown = {key: value for key, value in state.items() if key not in _SHOWN}
    if state.get("files"):
        unknown["files"] = _object(state["files"])
    stages: Json = {}
    for stage, fields in state.get("stages", {}).items():
        rest = {key: value for key, value in _object(fields).items() if key not in _STAGE}
        phases = {}
        for phase, entry in _object(_object(fields).get("phases")).items():
            phases[phase] = {key: value for key, value in _object(entry).items() if key not in ("status", *_REVIEW)}
        if _object(fields).get("phases") == {}:
            rest["phases"] = {}
        elif any(phases.values()):
            rest["phases"] = {phase: entry for phase, entry in phases.items() if entry}
        if rest:
            stages[stage] = rest
    return unknown | ({"stages": stages} if stages else {})


def _inside(path: object) -> bool:
    return isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


# ---- a new task ------------------------------------------------------------------------------------


def begin(workspace: Workspace, at: str, run: str, task: str, fields: Json) -> tuple[StartRun, Json]:
    """StartRun, and the keys that we keep for others."""
    for key in fields:
        if key in FOLLOWING:
            raise BadInput("not-by-init", f"{key} is not given to init", "it follows from task and profile", key=key)
    analysis = _analysis(fields)
    profile = profile_of(fields.get("pipelineProfile"), analysis["complexity"])
    schedule = schedule_of(profile, analysis["needsTests"])
    analysis["complexity"] = analysis["complexity"] or complexity_of(profile)
    settings: Json = loads(dumps(DEFAULTS))
    codex = fields.get("codexAvailable", True) is not False
    owner = str(fields["ownerPpid"] if "ownerPpid" in fields else session_process())
    settings |= {
        "pipelineProfile": profile,
        "codexAvailable": codex,
        "ownerPpid": owner,
        "owner": owner_record(owner),
        "worktree": worktree_of(workspace, at),
        **agents(codex),
        "taskAnalysis": analysis,
    }
    merge(
        settings, {key: v for key, v in fields.items() if key in SETTINGS and key not in ("taskAnalysis", "ownerPpid")}
    )
    check_settings({key: settings[key] for key in SETTINGS if key != "taskAnalysis"})
    start: StartRun = {
        "do": "StartRun",
        "run": run,
        "name": task.partition("\n")[0][:200],
        "request": task,
        "pipeline": {"name": f"staged-{profile}", "hash": None},
        "dialects": {name: {"tree": workspace.tree}},
        "order": "strict",
        "schedule": schedule,
        "evidence": evidence_of(schedule),
        "settings": settings,
    }
    unknown = {key: value for key, value in fields.items() if key not in SETTINGS and key != "pipelineProfile"}
    return start, unknown


def _analysis(fields: Json) -> Json:
    given = fields.get("taskAnalysis", {})
    if not isinstance(given, dict):
        raise BadInput("bad-analysis", "taskAnalysis is a JSON object", '{"complexity": "medium", "needsTests": true}')
    analysis: Json = {
        "complexity": given.get("complexity"),
        "needsTests": True,
        "needsDocs": True,
        "reasoning": "",
        **given,
    }
    for key in ("needsTests", "needsDocs"):
        if not isinstance(analysis[key], bool):
            raise BadInput("bad-analysis", f"taskAnalysis.{key} is true or false, not {analysis[key]!r}")
    return analysis


def complexity_of(profile: str) -> str:
    return next(word for word, chosen in COMPLEXITY.items() if chosen == profile)


def check_settings(settings: Json) -> None:
    """A setting of another kind would be read as its default, or not at all."""
    for key, value in settings.items():
        kind, is_allowed = _KINDS.get(key, ("", None))
        if is_allowed is not None and not is_allowed(value):
            raise BadInput("bad-setting", f"{key} is {kind}, not {dumps(value)[:60]}", key=key)
    if "reviewPolicy" in settings:
        _check_policy(settings["reviewPolicy"])


def _check_policy(policy: object) -> None:
    if not isinstance(policy, dict) or str(policy.get("minBlockSeverity")).upper() not in _SEVERITIES:
        raise BadInput("bad-policy", "reviewPolicy.minBlockSeverity is one of " + ", ".join(_SEVERITIES))
    for limit in ("maxFixAttempts", "maxStageRestarts"):
        if type(policy.get(limit)) is not int or policy[limit] < 0:
            raise BadInput("bad-policy", f"reviewPolicy.{limit} is a whole number, not {policy.get(limit)!r}")


def _is_percent(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_pid(value: object) -> bool:
    return not isinstance(value, bool) and str(value).isdecimal()


def _are_times(value: object) -> bool:
    return isinstance(value, dict) and all(time is None or (type(time) is int and time >= 0) for time in value.values())


_KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "codexAvailable": ("true or false", _is_switch),
    "webSearch": ("true or false", _is_switch),
    "ownerPpid": ("the number of a process", _is_pid),
    "worktree": ("an object or null", lambda value: value is None or isinstance(value, dict)),
    **dict.fromkeys(
        ("reviewer", "failureAnalyzer", "difficultyEstimator", "testDeveloper", "docUpdater"),
        ("the name of an agent", _is_name),
    ),
    "codexTimeout": ("an object of whole numbers", _are_times),
    "supplementaryPolicy": (
        f"one of {', '.join(_SUPPLEMENTARY)}",
        lambda value: isinstance(value, str) and value in _SUPPLEMENTARY,
    ),
    "coverageThreshold": ("a number from 0 to 100", _is_percent),
}


def session_process() -> str:
    """The process of the session that called us.

    The agent program names itself. Otherwise it is the nearest process above us that is no shell with one command to
    run (`sh -c`): such a shell is gone a moment later.
    """
    from os import environ, getppid

    lineage = [str(getppid())]
    while (above := _parent_of(lineage[-1])) is not None:
        lineage.append(above)
    named = environ.get("CLAUDE_PID", "")
    if named in lineage:
        return named
    return next((pid for pid in lineage if not _runs_one_command(pid)), lineage[0])


def _parent_of(pid: str) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            above = file.read().rpartition(b")")[2].split()[1].decode()
    except OSError:
        return None
    return above if above != "0" else None


def _runs_one_command(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            program, *options = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return False
    flags = [option for option in options[:1] if option.startswith(b"-") and not option.startswith(b"--")]
    return program.endswith(b"sh") and any(b"c" in option for option in flags)


def worktree_of(workspace: Workspace, at: str) -> Json | None:
    """In a linked work tree: which one."""
    if not workspace.tree:
        return None
    return {"path": workspace.root, "branch": _branch(workspace.root), "createdAt": at}


def _branch(root: str) -> str | None:
    from tenuto.files.git_links import git_directory, path_in

    folder = git_directory(root)
    head = path_in(f"{folder}/HEAD") if folder else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else None


def owner_record(pid: object) -> Json:
    return identify(pid, began(pid))
