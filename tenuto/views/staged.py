"""`.agents/tmp/state.json`, version 2: a task on its way through stages, with a gate between each two.

The file exists once in a work tree; the repository remembers which run it shows. Shell hooks share it: what they
write between two of our commands is absorbed, and judged like any other command. Position, statuses and gates follow
from the run: `advance` is the only way forward.

Another program changed state.json: the same in commands, which decide() judges like any others.

    settings                    changed, as written
    currentPhase                forwards: one Advance for each phase on the way, every gate and review judged;
                                backwards: only as a restart or a coverage round
    status, failure             Stop, Resume, Unblock, Block, Fail; completed: only by advancing from the last phase;
                                in_progress after failed: it is tried again
    restartHistory              an entry more: the stage begins again
    reviewResult, fixAttempts   a review, counters that only grow
    files                       recorded, as written; a move takes what lies in phases/ as recorded, where a gate or
                                a review on its way asks for it and it is of this visit
    what we do not know         kept where it stands

Labels that follow from all this (stages' statuses, counts, times) are not asked for: ours are shown again. Where the
run has moved on since the version that they started from, it stays where it is. Anything else that does not agree with
the run after these commands is refused by name.
"""

from __future__ import annotations

from tenuto.core.status import OVER, RESUMABLE
from tenuto.encoding import digest, loads_strict, pretty
from tenuto.errors import Refused
from tenuto.names import file_key
from tenuto.views.differences import ABSENT, absorbed, changes, dotted, dropped, nested
from tenuto.views.staged_document import (
    FILE,
    LEFT_OVER,
    SETTINGS,
    VERSION,
    block_reason,
    document,
    files,
    gather,
    is_review,
    lying,
    name,
    output_of,
    path_of,
    phase_of_file,
    stale_review,
    unjudged_review,
)

__all__ = ["dispensable", "log", "missing", "name", "paths", "read", "render", "stand_in"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from tenuto.core.records.commands import Command, Fail, Stop
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Json, Repo, Run
    from tenuto.ports import Surroundings
    from tenuto.views.differences import Change

missing: Literal["rewrite"] = "rewrite"
stand_in = {FILE: LEFT_OVER}
dispensable: tuple[str, ...] = ()

# Follow from the run; what others write there is neither asked for nor refused.
_LABELS = ("updatedAt", "stoppedAt", "startedAt")
_STAGE_LABELS = ("status", "restartCount", "enabled", "blockReason", "phases")
_PHASE_LABELS = ("status", "fixAttempts", "dispatchRetries", "reviewResult")
_RESTART_FIELDS = ("stage", "reason", "at", "restart")
# Must agree with the run when all is done.
_CLAIMS = (
    "version",
    "task",
    "status",
    "currentStage",
    "currentPhase",
    "pipelineProfile",
    "schedule",
    "gates",
    "failure",
    "restartHistory",
)


def owner_key(tree: str) -> str:
    """The file's name in the repository's list of owners: each work tree has a file of its own."""
    return file_key(tree, FILE)


def paths(run: Run, repo: Repo) -> list[str]:
    tree = run["dialects"][name].get("tree", "")
    return [FILE] if repo["owners"].get(owner_key(tree)) == run["id"] else []


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    if not paths(run, repo):
        return {}
    return {FILE: pretty(document(run)).encode()}


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> Iterator[Command]:
    """A generator: after each command the run stands where that command led. `around` has the outputs that gates ask
    for."""
    old, new = loads_strict(before) if before else {}, loads_strict(after)
    if not isinstance(new, dict) or not isinstance(old, dict):
        raise Refused("not-an-object", f"{FILE} holds no JSON object", path=FILE)
    if new.get("version") != VERSION:
        raise Refused("bad-version", f"{FILE} has version {new.get('version')!r}, not {VERSION}", path=FILE)
    differing = changes(old, new)
    since = [place for place, _, _ in changes(old, document(run))]  # what is another by now than when they read it
    if is_another_task(document(run), new):
        message = f"it holds another task, {_short(new['task'])}, and {run['name']!r} is {document(run)['status']}"
        raise Refused("another-task", message)
    taken: Json = {}  # outputs that the file does not name, and that the move needs
    if run["status"] == "failed":  # it is tried again first, and then goes where they say
        yield from _status(around, run, new, differing, taken)
    yield from _settings(differing, around)
    yield from _reviews(run, old, new)
    yield from _restarts(around, run, new, differing, taken)
    yield from _position(around, run, old, new, differing, taken)
    if ("status",) not in since or run["status"] not in OVER:
        yield from _status(around, run, new, differing, taken)
    _refuse_claims(run, [change for change in differing if change[0] not in since])
    unknown = [change for change in differing if _is_unknown(change)]
    extra = nested(unknown)
    if taken:
        extra["files"] = taken | _object(extra.get("files"))
    yield absorbed(name, path, after, extra, dropped(unknown))


def is_another_task(shown: Json, found: Json) -> bool:
    """Whether somebody began another task in this file: another text, and another time at which it began."""
    task = found.get("task")
    return isinstance(task, str) and task != shown["task"] and found.get("startedAt") != shown["startedAt"]


def _settings(differing: list[Change], around: Surroundings) -> Iterator[Command]:
    changed = nested([change for change in differing if change[0][0] in SETTINGS])
    if "ownerPpid" in changed:
        changed["owner"] = identify(changed["ownerPpid"], around.began(changed["ownerPpid"]))
    if changed:
        yield {"do": "ChangeSettings", "changes": changed}


def identify(pid: object, began: str | None) -> Json:
    """What is kept beside `ownerPpid`: when that process began (None: it has gone, or this cannot be known)."""
    return {"pid": str(pid), "began": began}


def _reviews(run: Run, old: Json, new: Json) -> Iterator[Command]:
    for stage, shown in _object(new.get("stages")).items():
        before = _object(_object(_object(old.get("stages")).get(stage)).get("phases"))
        for phase, entry in _object(_object(shown).get("phases")).items():
            if phase in run["steps"]:
                yield from _review(run, phase, _object(before.get(phase)), _object(entry))


def _review(run: Run, phase: str, old: Json, new: Json) -> Iterator[Command]:
    result = new.get("reviewResult")
    if result is not None and result != old.get("reviewResult") and phase == run["position"]:
        yield {"do": "RecordReview", "step": phase, "review": result}
    if "fixAttempts" in new and new["fixAttempts"] != old.get("fixAttempts"):
        yield {"do": "CountReview", "step": phase, "fix_attempts": new["fixAttempts"]}
    if "dispatchRetries" in new and new["dispatchRetries"] != old.get("dispatchRetries"):
        yield {"do": "CountReview", "step": phase, "dispatch_retries": new["dispatchRetries"]}


def _restarts(around: Surroundings, run: Run, written: Json, differing: list[Change], taken: Json) -> Iterator[Command]:
    for place, old, new in differing:
        if place != ("restartHistory",):
            continue
        known = old if isinstance(old, list) else []
        if not isinstance(new, list) or new[: len(known)] != known:
            raise Refused("history-rewritten", "restartHistory only grows", "undo the change")
        for entry in new[len(known) :]:
            if not isinstance(entry, dict):
                raise Refused("bad-restart", f"restartHistory holds {entry!r}, which names no stage")
            restart: Json = entry
            stage = restart.get("stage")
            if not isinstance(stage, str):
                raise Refused("unknown-stage", f"run {run['id']} has no stage {stage!r}", stage=stage)
            yield from _enter(around, run, stage, _object(written.get("files")), taken)
            yield {
                "do": "RestartStage",
                "stage": stage,
                "reason": str(restart.get("reason", "")),
                "extra": {key: value for key, value in restart.items() if key not in _RESTART_FIELDS},
            }


def _enter(around: Surroundings, run: Run, stage: str, recorded: Json, taken: Json) -> Iterator[Command]:
    """To the stage that they began again: they may have gone there since we looked, through every gate on the way."""
    steps = [entry["step"] for entry in run["schedule"]]
    first = next((entry["step"] for entry in run["schedule"] if entry.get("stage") == stage), None)
    while first is not None and run["position"] in steps and steps.index(run["position"]) < steps.index(first):
        yield from _forward(around, run, recorded, taken)


def _position(
    around: Surroundings, run: Run, old: Json, new: Json, differing: list[Change], taken: Json
) -> Iterator[Command]:
    target = _written(differing, "currentPhase")
    if target is None or target == run["position"]:
        return
    steps = [entry["step"] for entry in run["schedule"]]
    if target not in steps:
        raise Refused("no-such-phase", f"the schedule has no phase {target!r}; it has {', '.join(steps)}", phase=target)
    if run["position"] in steps and steps.index(target) < steps.index(run["position"]):
        started = old.get("currentPhase")
        if started not in steps or steps.index(target) < steps.index(started):
            yield from _back(run, target, new)
        return  # forwards for them, and the run is past it already
    while run["position"] != target:
        yield from _forward(around, run, _object(new.get("files")), taken)


def _back(run: Run, target: str, new: Json) -> Iterator[Command]:
    here = next(entry for entry in run["schedule"] if entry["step"] == run["position"])
    if here.get("coverage", {}).get("back_to") != target:
        message = f"currentPhase went back from {run['position']} to {target}; only a restart or a coverage round does"
        raise Refused("backwards", message, "tenuto staged restart", phase=target)
    from tenuto.core.rules import coverage

    figure = coverage({"coverage": _object(new.get("coverageLoop")).get("currentCoverage")})
    percent = figure["percent"] if figure else None
    yield {"do": "RecordCoverage", "step": here["step"], "percent": percent, "met": False}
    if run["position"] != target:
        raise Refused("backwards", block_reason(run) or "the coverage rounds are used up", phase=target)


def _forward(around: Surroundings, run: Run, recorded: Json, taken: Json) -> Iterator[Command]:
    """One phase on, or the reason why not. `recorded`: the outputs that the same edit records; those that it needs and
    does not record are put into `taken`."""
    from tenuto.core.decisions.steps import reviewed

    here = str(run["position"])
    found = lying(run, around.file)
    recorded = found | taken | recorded
    review = unjudged_review(run, around.file, around.written_at, recorded)
    if review is not None:
        yield review
    if is_review(run, here) and (run["position"] != here or not reviewed(run, here)):
        raise Refused(
            "not-reviewed", f"phase {here} cannot be left: {_unreviewed(around, run, here)}", **_mend(run, here)
        )
    yield {"do": "Advance", "facts": gather(run, around.file, recorded)}
    if run["status"] == "blocked":
        missing = run["blocked"]["missing"] if run["blocked"] else []
        lacking = phase_of_file(missing[0]) if missing else here
        raise Refused("gate-closed", block_reason(run) or "the gate is closed", **_mend(run, lacking))
    taken |= {phase: path for phase, path in found.items() if phase not in files(run)}


def _mend(run: Run, phase: str) -> dict[str, str]:
    """What a refusal says beside its reason: recording the output makes the move allowed."""
    return {"phase": phase, "mend": f"tenuto staged record-output {phase} --content-file FILE"}


def _unreviewed(around: Surroundings, run: Run, phase: str) -> str:
    """Why the review of a phase does not count."""
    said = run["reviews"].get(phase, {})
    text = around.file(path_of(output_of(run, phase)))
    if text is None:
        return f"there is no {output_of(run, phase)}"
    stale = stale_review(run, phase, digest(text), around.written_at) if run["position"] == phase else ""
    if stale:
        return f"{stale}, so it is no review of this visit"
    return f"its review is not approved: {said['reason']}" if said.get("reason") else "its review is not recorded"


def _status(around: Surroundings, run: Run, new: Json, differing: list[Change], taken: Json) -> Iterator[Command]:
    wanted, shown = _written(differing, "status"), document(run)["status"]
    if wanted is None or wanted == shown:
        return
    match wanted:
        case "stopped":
            stop: Stop = {"do": "Stop", "reason": "stopped by another program"}
            yield {**stop, "reported_at": stopped} if (stopped := _time(new.get("stoppedAt"))) else stop
        case "failed":
            failure = _object(new.get("failure"))
            fail: Fail = {
                "do": "Fail",
                "error": str(failure.get("error", "failed, by another program's word")),
                "step": failure.get("phase", run["position"]),
                "context": failure.get("context"),
            }
            yield {**fail, "reported_at": failed} if (failed := _time(failure.get("failedAt"))) else fail
        case "blocked":
            stage = str(new.get("currentStage"))
            reason = _object(_object(new.get("stages")).get(stage)).get("blockReason")
            yield {"do": "Block", "reason": reason or "blocked by another program", "stage": stage}
        case "in_progress" if run["driver"] != "manual" and run["status"] in (*RESUMABLE, "blocked"):
            raise Refused(
                "engine-driven",
                f"a run that follows a pipeline goes on with a person's word: tenuto resume {run['id']}",
            )
        case "in_progress" if run["status"] in (*RESUMABLE, "failed"):
            yield {"do": "Resume"}
        case "in_progress" if run["status"] == "blocked":
            yield {"do": "Unblock"}
        case "completed":
            yield from _forward(around, run, _object(new.get("files")), taken)


def _refuse_claims(run: Run, differing: list[Change]) -> None:
    shown = document(run)
    for place, _, claimed in differing:
        top = place[0]
        if top not in _CLAIMS:
            continue
        if top == "restartHistory" or (top == "failure" and place[1:] == ("failedAt",)):
            continue  # judged above; our clock tells when
        if top == "status" and claimed == "restarting" and any(p == ("restartHistory",) for p, _, _ in differing):
            continue  # it has begun again by now
        ours: object = shown
        for key in place:
            ours = ours.get(key, ABSENT) if isinstance(ours, dict) else ABSENT
        if top == "failure" and isinstance(claimed, dict) and isinstance(ours, dict):
            claimed, ours = ({k: v for k, v in side.items() if k in ("phase", "error")} for side in (claimed, ours))
        if ours != claimed:
            message = f"{dotted(place)} follows from the run: it is {_short(ours)}, not {_short(claimed)}"
            raise Refused("not-yours", message, "tenuto staged has an operation for it", key=dotted(place))


def _is_unknown(change: Change) -> bool:
    place, _, new = change
    top = place[0]
    if top in SETTINGS or top in _CLAIMS or top in _LABELS:
        return False
    if top != "stages" or len(place) < 3:
        return top != "stages" or isinstance(new, dict)
    if len(place) == 3:
        return place[2] not in _STAGE_LABELS
    return len(place) < 5 or place[2] != "phases" or place[4] not in _PHASE_LABELS


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _time(value: object) -> str:
    """A time as it is written; empty where it is none."""
    from tenuto.core.times import milliseconds

    return value if isinstance(value, str) and milliseconds(value) is not None else ""


def _written(differing: list[Change], key: str) -> object:
    """What they wrote there; None where they wrote nothing."""
    value = next((new for place, _, new in differing if place == (key,)), None)
    return None if value is ABSENT else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
