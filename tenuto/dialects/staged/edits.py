"""Somebody changed state.json: the same in commands, which decide() judges like any others.

    settings                    changed, as told
    currentPhase                forwards: one Advance for each phase on the way, every gate and review judged;
                                backwards: only as a restart or a coverage round
    status, failure             Stop, Resume, Unblock, Block, Fail; completed: only by advancing from the last phase
    restartHistory              an entry more: the stage begins again
    reviewResult, fixAttempts   a review, counters that only grow
    files                       recorded, as told
    what we do not know         kept where it stands

Labels that follow from all this (stages' statuses, counts, times) are not asked for: ours are shown again. Where the run
has moved on since the version that they started from, it stays where it is. Anything else that does not agree with the run
after these commands is refused by name.

A generator: after each command the run stands where that command led.
"""

from __future__ import annotations

from tenuto.dialects.differences import ABSENT, changes, dotted, dropped, nested
from tenuto.dialects.staged import FILE, VERSION
from tenuto.dialects.staged.document import SETTINGS, block_reason, document
from tenuto.dialects.staged.evidence import gather, unjudged_review
from tenuto.encoding import loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.core.records import Json, Run
    from tenuto.dialects.differences import Change

# Follow from the run; what others write there is neither asked for nor refused.
_LABELS = ("updatedAt", "stoppedAt", "startedAt")
_STAGE_LABELS = ("status", "restartCount", "enabled", "blockReason", "phases")
_PHASE_LABELS = ("status", "fixAttempts", "dispatchRetries", "reviewResult")
# Must agree with the run when all is done.
_OVER = ("completed", "failed", "cancelled", "graduated", "poc-complete")
_CLAIMS = (
    "version", "task", "status", "currentStage", "currentPhase", "pipelineProfile", "schedule", "gates", "failure",
    "restartHistory",
)  # fmt: skip


def understand(root: str | None, run: Run, before: bytes, after: bytes) -> Iterator[Any]:
    old, new = loads_strict(before) if before else {}, loads_strict(after)
    if not isinstance(new, dict) or not isinstance(old, dict):
        raise Refused("not-an-object", f"{FILE} holds no JSON object", path=FILE)
    if new.get("version") != VERSION:
        raise Refused("bad-version", f"{FILE} has version {new.get('version')!r}, not {VERSION}", path=FILE)
    found = changes(old, new)
    since = [place for place, _, _ in changes(old, document(run))]  # what is another by now than when they read it
    yield from _settings(found)
    yield from _reviews(run, old, new)
    yield from _restarts(run, found)
    yield from _position(root, run, old, new, found)
    if ("status",) not in since or run["status"] not in _OVER:
        yield from _status(root, run, new, found)
    _refuse_claims(run, [change for change in found if change[0] not in since])
    yield _unknown(found)


def _settings(found: list[Change]) -> Iterator[Any]:
    changed = nested([change for change in found if change[0][0] in SETTINGS])
    if "ownerPpid" in changed:
        from tenuto.dialects.staged.owner import identify

        changed["owner"] = identify(changed["ownerPpid"])
    if changed:
        yield {"do": "ChangeSettings", "changes": changed}


def _reviews(run: Run, old: Json, new: Json) -> Iterator[Any]:
    for stage, told in _object(new.get("stages")).items():
        before = _object(_object(_object(old.get("stages")).get(stage)).get("phases"))
        for phase, said in _object(_object(told).get("phases")).items():
            if phase in run["steps"]:
                yield from _review(run, phase, _object(before.get(phase)), _object(said))


def _review(run: Run, phase: str, old: Json, new: Json) -> Iterator[Any]:
    result = new.get("reviewResult")
    if result is not None and result != old.get("reviewResult") and phase == run["position"]:
        yield {"do": "RecordReview", "step": phase, "review": result}
    for told, counter in (("fixAttempts", "fix_attempts"), ("dispatchRetries", "dispatch_retries")):
        if told in new and new[told] != old.get(told):
            yield {"do": "CountReview", "step": phase, counter: new[told]}


def _restarts(run: Run, found: list[Change]) -> Iterator[Any]:
    for place, old, new in found:
        if place != ("restartHistory",):
            continue
        known = old if isinstance(old, list) else []
        if not isinstance(new, list) or new[: len(known)] != known:
            raise Refused("history-rewritten", "restartHistory only grows", "undo the change")
        for entry in new[len(known) :]:
            if not isinstance(entry, dict):
                raise Refused("bad-restart", f"restartHistory holds {entry!r}, which names no stage")
            told = {key: value for key, value in entry.items() if key not in ("stage", "reason", "at", "restart")}
            yield {
                "do": "RestartStage", "stage": entry.get("stage"), "reason": str(entry.get("reason", "")), "extra": told,
            }  # fmt: skip


def _position(root: str | None, run: Run, old: Json, new: Json, found: list[Change]) -> Iterator[Any]:
    target = _told(found, "currentPhase")
    if target is None or target == run["position"]:
        return
    steps = [entry["step"] for entry in run["schedule"]]
    if target not in steps:
        raise Refused("no-such-phase", f"the schedule has no phase {target!r}; it has {', '.join(steps)}", phase=target)
    if run["position"] in steps and steps.index(target) < steps.index(run["position"]):
        started = old.get("currentPhase")
        if started not in steps or steps.index(target) < steps.index(started):
            yield from _back(run, target)
        return  # forwards for them, and the run is past it already
    while run["position"] != target:
        yield from _forward(root, run, _object(new.get("files")))


def _back(run: Run, target: str) -> Iterator[Any]:
    here = next(entry for entry in run["schedule"] if entry["step"] == run["position"])
    if here.get("coverage", {}).get("back_to") != target:
        message = f"currentPhase went back from {run['position']} to {target}; only a restart or a coverage round does"
        raise Refused("backwards", message, "tenuto staged restart", phase=target)
    yield {"do": "RecordCoverage", "step": here["step"], "percent": None}
    if run["position"] != target:
        raise Refused("backwards", block_reason(run) or "the coverage rounds are used up", phase=target)


def _forward(root: str | None, run: Run, told: Json) -> Iterator[Any]:
    """One phase on, or the reason why not. `told`: the outputs that the same edit records."""
    here = run["position"]
    review = unjudged_review(run, lambda path: _read(root, path), told)
    if review is not None:
        yield review
        if run["position"] != here or not run["reviews"].get(str(here), {}).get("approved"):
            raise Refused("not-reviewed", f"phase {here} cannot be left: its review is not approved", phase=here)
    yield {"do": "Advance", "facts": gather(run, lambda path: _read(root, path), told)}
    if run["status"] == "blocked":
        raise Refused("gate-closed", block_reason(run) or "the gate is closed", phase=here)


def _status(root: str | None, run: Run, new: Json, found: list[Change]) -> Iterator[Any]:
    wanted, shown = _told(found, "status"), document(run)["status"]
    if wanted is None or wanted == shown:
        return
    match wanted:
        case "stopped":
            yield {"do": "Stop", "reason": "stopped by another program"}
        case "failed":
            told = _object(new.get("failure"))
            yield {
                "do": "Fail", "error": str(told.get("error", "failed, by another program's word")),
                "step": told.get("phase", run["position"]), "context": told.get("context"),
            }  # fmt: skip
        case "blocked":
            stage = str(new.get("currentStage"))
            reason = _object(_object(new.get("stages")).get(stage)).get("blockReason")
            yield {"do": "Block", "reason": reason or "blocked by another program", "stage": stage}
        case "in_progress" if run["driver"] != "manual" and run["status"] in ("stopped", "paused", "parked", "blocked"):
            raise Refused("engine-driven", f"a run that follows a pipeline goes on with a person's word: tenuto resume {run['id']}")
        case "in_progress" if run["status"] in ("stopped", "paused", "parked"):
            yield {"do": "Resume"}
        case "in_progress" if run["status"] == "blocked":
            yield {"do": "Unblock"}
        case "completed":
            yield from _forward(root, run, _object(new.get("files")))


def _refuse_claims(run: Run, found: list[Change]) -> None:
    shown = document(run)
    for place, _, claimed in found:
        top = place[0]
        if top not in _CLAIMS:
            continue
        if top == "restartHistory" or (top == "failure" and place[1:] == ("failedAt",)):
            continue  # judged above; our clock tells when
        if top == "status" and claimed == "restarting" and any(p == ("restartHistory",) for p, _, _ in found):
            continue  # it has begun again by now
        ours: Any = shown
        for name in place:
            ours = ours.get(name, ABSENT) if isinstance(ours, dict) else ABSENT
        if top == "failure" and isinstance(claimed, dict) and isinstance(ours, dict):
            claimed, ours = ({k: v for k, v in told.items() if k in ("phase", "error")} for told in (claimed, ours))
        if ours != claimed:
            message = f"{dotted(place)} follows from the run: it is {_short(ours)}, not {_short(claimed)}"
            raise Refused("not-yours", message, "tenuto staged has an operation for it", key=dotted(place))


def _unknown(found: list[Change]) -> Any:
    kept = [change for change in found if _is_unknown(change)]
    return {"do": "AbsorbEdit", "extra": nested(kept), "drop": dropped(kept)}


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


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _told(found: list[Change], key: str) -> Any:
    told = next((new for place, _, new in found if place == (key,)), None)
    return None if told is ABSENT else told


def _read(root: str | None, path: str) -> bytes | None:
    """A plain file below the repository; None where it is none."""
    from os import O_CLOEXEC, O_NOFOLLOW, O_RDONLY, close, fstat
    from os import open as open_file
    from os import read as read_from

    if root is None or ".." in path.split("/") or path.startswith("/"):
        return None
    try:
        file = open_file(f"{root}/{path}", O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_from(file, fstat(file).st_size + 1)
    except OSError:
        return None
    finally:
        close(file)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
