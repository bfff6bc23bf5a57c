"""Events -> Run: what a run is after everything that happened to it.

    run = fold(events)             from the beginning
    run = fold(later_events, run)  from a state that was kept; `run` is changed in place

Rule 1: fold never refuses. decide() did, before the event was written; what is in the
journal happened. An event type that this version does not know is an error, not a guess.

Rule 2: fold adds nothing of its own: no clock, no default that a later version may
change. Two machines that fold the same events hold the same bytes.

FOLD_VERSION names the shape of the result. It changes with any change to this file or to notes.py
(tests/unit/core/test_fold_version.py holds it), and state rows of other versions are folded anew.
"""

from __future__ import annotations

from tenuto.core import notes, progress
from tenuto.core.notes import merge
from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tenuto.core.records import Repo, Run, Visit

FOLD_VERSION = 7
_TOLD_AT_START = (
    "name", "request", "summary", "mode", "pipeline", "driver", "dialects", "order", "schedule", "evidence", "settings",
)  # fmt: skip


def fold(events: Iterable[Any], run: Run | None = None) -> Run:
    state: Any = run if run is not None else new_run()
    for event in events:
        apply(state, event)
    return state  # type: ignore[no-any-return]


def apply(run: Run, event: Any) -> None:
    _APPLY[event["type"]](run, event)
    run["version"] += 1
    run["updated_at"] = event["at"]
    run["told_at"] = event.get("told") or event["at"]


def fold_repo(events: Iterable[Any], repo: Repo | None = None) -> Repo:
    state = repo if repo is not None else new_repo()
    for event in events:
        apply_repo(state, event)
    return state


def apply_repo(repo: Repo, event: Any) -> None:
    match event["type"]:
        case "CurrentRunChanged":
            repo["current"] = event["run"]
        case "FileOwned":
            if event["run"] is None:
                repo["owners"].pop(event["path"], None)
            else:
                repo["owners"][event["path"]] = event["run"]
        case "SettingsChanged":
            merge(repo["settings"], event["changes"])
        case unknown:
            raise KeyError(unknown)
    repo["version"] += 1


def new_run() -> Run:
    return {
        "id": "", "name": "", "request": "", "summary": "",
        "created_at": "", "updated_at": "", "told_at": "", "stopped_at": None, "paused_at": None, "resumed_at": None,
        "graduated_at": None,
        "pipeline": {"name": "", "hash": None}, "driver": "manual", "dialects": {}, "mode": "standard",
        "status": "created", "version": 0, "order": "any", "schedule": [], "evidence": {}, "position": None,
        "steps": {}, "visits": [], "attempts": {}, "items": {}, "waves": [],
        "gate": None, "decisions": [], "pause": None, "failure": None, "blocked": None,
        "restarts": [], "reviews": {}, "artifacts": {},
        "memory": {"index": [], "decisions": [], "lessons": [], "updates": []},
        "flags": {}, "commits": [], "resume": None, "answers": {}, "routes": {}, "retries": 0,
        "budget": {
            "limits": {}, "spent": {}, "reserved": {}, "busy_ms": 0, "busy_since": None, "dearest": {}, "steps": {},
        },
        "flying": [], "sessions": [], "switches": {}, "queue": [],
        "stay": None, "words": {}, "carried": {}, "settings": {}, "extra": {},
    }  # fmt: skip


def new_repo() -> Repo:
    return {"version": 0, "current": None, "owners": {}, "settings": {}}


def running_visits(run: Run) -> list[Visit]:
    return [visit for visit in run["visits"] if visit["status"] == "running"]


# ---- runs and their statuses -----------------------------------------------------------------------


def _run_started(run: Run, e: Any) -> None:
    run["id"] = e["run"]
    for field in _TOLD_AT_START:
        run[field] = e[field]  # type: ignore[literal-required]
    run["created_at"] = e["at"]
    run["status"] = "running"
    for entry in e["schedule"]:
        run["steps"][entry["step"]] = {"status": "pending", "iteration": 0, "verdict": None}


def _adopted(run: Run, e: Any) -> None:
    for field, value in e["state"].items():
        run[field] = value  # type: ignore[literal-required]
    run["flying"] = [name for name, a in run["attempts"].items() if a["status"] in ("dispatched", "running")]


def _paused(run: Run, e: Any) -> None:
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    run["pause"] = {
        "kind": e["kind"], "reason": e["reason"], "step": e["step"], "attempts": run["retries"],
        "last_feedback": e["last_feedback"], "recommendations": e["recommendations"], "resting": resting,
    }  # fmt: skip
    run["status"] = "paused"
    run["paused_at"] = e["at"]


def _resumed(run: Run, e: Any) -> None:
    run["status"] = run["pause"]["resting"] if run["pause"] else "running"
    run["pause"] = run["paused_at"] = run["stopped_at"] = None
    run["resumed_at"] = e["at"]


def _picked_up(run: Run, e: Any) -> None:
    run["resumed_at"] = e["at"]


def _parked(run: Run, e: Any) -> None:
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    run["pause"] = {
        "kind": "parked", "reason": e["reason"], "step": run["position"], "attempts": run["retries"],
        "last_feedback": e["until"], "recommendations": [], "resting": resting,
    }  # fmt: skip
    run["status"] = "parked"
    run["paused_at"] = e["at"]


def _failed(run: Run, e: Any) -> None:
    run["failure"] = {"step": e["step"], "error": e["error"], "at": e["at"], "context": e["context"]}
    _rest(run, "failed", e["at"])


def _finished(run: Run, e: Any) -> None:
    if e["outcome"] == "graduated":
        run["graduated_at"] = e["at"]
    _rest(run, e["outcome"], e["at"])


def _cancelled(run: Run, e: Any) -> None:
    _rest(run, "cancelled", e["at"])


def _rest(run: Run, status: Any, at: str) -> None:
    run["status"] = status
    run["stopped_at"] = at
    run["pause"] = run["gate"] = run["paused_at"] = None


def _stopped(run: Run, e: Any) -> None:
    run["pause"] = {
        "kind": "stopped", "reason": e["reason"], "step": run["position"], "attempts": run["retries"],
        "last_feedback": "", "recommendations": [], "resting": run["status"],
    }  # fmt: skip
    run["status"] = "stopped"
    run["stopped_at"] = e["at"]


def _blocked(run: Run, e: Any) -> None:
    run["blocked"] = {"reason": e["reason"], "stage": e["stage"], "missing": e["missing"]}
    run["status"] = "blocked"


def _unblocked(run: Run, e: Any) -> None:
    run["blocked"] = None
    run["status"] = "running"


def _forked(run: Run, e: Any) -> None:
    run["extra"]["fork"] = {"source": e["source"], "step": e["at_step"], "version": e["at_version"]}


# ---- steps, stages, reviews ------------------------------------------------------------------------


def _step(run: Run, name: str) -> Any:
    return run["steps"].setdefault(name, {"status": "pending", "iteration": 0, "verdict": None})


def _step_started(run: Run, e: Any) -> None:
    alone = not running_visits(run)
    known = e["step"] in run["steps"]  # the first visit of a step has none to count
    earlier = sum(1 for v in run["visits"] if v["step"] == e["step"] and v["status"] == "failed") if known else 0
    run["visits"].append({
        "step": e["step"], "item": e["item"], "iteration": e["iteration"], "status": "running",
        "started_at": e["at"], "ended_at": None, "duration_ms": None, "retries": earlier, "closed": None,
    })  # fmt: skip
    if alone or run["order"] == "open":
        run["position"] = e["step"]
    state = _step(run, e["step"])
    state["status"] = "running"
    state["iteration"] = e["iteration"]
    if run["status"] == "restarting":
        run["status"] = "running"
    if e["hop"]:
        progress.visit_started(run, e)


def _step_ended(run: Run, e: Any) -> None:
    for visit in reversed(run["visits"]):
        if visit["step"] == e["step"] and visit["status"] == "running" and visit["item"] == e["item"]:
            visit["status"] = e["status"]
            visit["ended_at"] = e["at"]
            visit["duration_ms"] = between(visit["started_at"], e["at"])
            visit["closed"] = run["version"]
            break
    if e["status"] == "failed":
        run["retries"] += 1
    state = _step(run, e["step"])
    state["status"] = "completed" if e["status"] == "success" else "failed"
    state["verdict"] = e["verdict"]
    if run["stay"] is not None and run["stay"]["step"] == e["step"]:
        progress.visit_ended(run, e)
    elif run["driver"] == "manual":
        progress.made_by_hand(run, e)
    # A run with an order stays where it is until it advances; one without is nowhere between steps.
    if run["order"] == "any" and not running_visits(run):
        run["position"] = None


def _step_skipped(run: Run, e: Any) -> None:
    _step(run, e["step"])["status"] = "skipped"


def _stage_restarted(run: Run, e: Any) -> None:
    count = sum(1 for r in run["restarts"] if r["stage"] == e["stage"]) + 1
    restart: Any = {"stage": e["stage"], "reason": e["reason"], "at": e["at"], "restart": count, **e.get("extra", {})}
    run["restarts"].append(restart)
    # What the stage and those behind it had is void: reviews are taken again, outputs recorded again.
    steps = [entry["step"] for entry in run["schedule"]]
    for step in steps[steps.index(e["to"]) :] if e["to"] in steps else []:
        run["steps"][step] = {"status": "pending", "iteration": 0, "verdict": None}
        run["reviews"].pop(step, None)
        run["artifacts"] = {name: kept for name, kept in run["artifacts"].items() if kept["step"] != step}
    for visit in running_visits(run):
        visit["status"], visit["ended_at"] = "failed", e["at"]
        visit["duration_ms"] = between(visit["started_at"], e["at"])
        visit["closed"] = run["version"]
    run["position"] = e["to"]
    run["blocked"] = None
    run["status"] = "restarting"


def _review_recorded(run: Run, e: Any) -> None:
    run["reviews"].setdefault(e["step"], {}).update(e["changes"])


# ---- attempts, items, waves ------------------------------------------------------------------------


def _attempt_dispatched(run: Run, e: Any) -> None:
    run["attempts"][e["attempt"]] = {
        "step": e["step"], "role": e["role"], "agent": e["agent"], "task": e["task"], "item": e["item"],
        "iteration": e["iteration"], "number": e["number"], "status": "dispatched", "verdict": None,
        "summary": e["summary"], "started_at": e["at"], "ended_at": None, "usage": {}, "reserved": e["reserved"],
        "receipt": {}, "extra": e["extra"],
    }  # fmt: skip
    notes.set_aside(run, e)
    progress.seat_taken(run, e)


def _attempt_started(run: Run, e: Any) -> None:
    attempt = run["attempts"][e["attempt"]]
    attempt["status"] = "running"
    attempt["extra"].update(e["extra"])


def _attempt_finished(run: Run, e: Any) -> None:
    attempt = run["attempts"][e["attempt"]]
    for field in ("status", "verdict", "receipt", "usage"):
        attempt[field] = e[field]
    attempt["summary"] = e["summary"] or attempt["summary"]
    attempt["ended_at"] = e["at"]
    attempt["extra"].update(e["extra"])
    notes.charge(run, e, attempt, e["usage"])
    if e["verdict"] == "PARKED":
        progress.seat_freed(run, attempt)
    else:
        progress.seat_answered(run, attempt, e["verdict"] or "ERROR")


def _attempt_lost(run: Run, e: Any) -> None:
    attempt = run["attempts"][e["attempt"]]
    attempt["status"], attempt["summary"], attempt["ended_at"] = "lost", e["reason"], e["at"]
    # Nobody knows what it cost: it is charged what was set aside for it.
    notes.charge(run, e, attempt, attempt["reserved"] if e["ran"] else {})
    if e["ran"]:
        progress.seat_answered(run, attempt, "LOST")
    else:
        progress.seat_freed(run, attempt)


def _items_planned(run: Run, e: Any) -> None:
    for name, item in e["items"].items():
        before = run["items"].get(name)
        known = ("title", "files", "depends_on", "agent", "status", "extra")
        run["items"][name] = {
            "title": item.get("title", ""), "files": item.get("files", []), "depends_on": item.get("depends_on", []),
            "agent": item.get("agent", ""), "status": item.get("status", before["status"] if before else "pending"),
            "extra": item.get("extra", {key: value for key, value in item.items() if key not in known}),
        }  # fmt: skip
    run["waves"] = [
        {"wave": number, "items": items, "started_at": None, "ended_at": None}
        for number, items in enumerate(e["waves"], 1)
    ]
    progress.items_chosen(run, e)


def _item_changed(run: Run, e: Any) -> None:
    item = run["items"][e["item"]]
    item["status"] = e["status"]
    item["files"].extend(path for path in e["files"] if path not in item["files"])
    progress.item_changed(run, e)


def _wave_started(run: Run, e: Any) -> None:
    run["waves"][e["wave"] - 1]["started_at"] = e["at"]


def _wave_ended(run: Run, e: Any) -> None:
    run["waves"][e["wave"] - 1]["ended_at"] = e["at"]


# ---- gates -----------------------------------------------------------------------------------------


def _gate_opened(run: Run, e: Any) -> None:
    run["gate"] = {
        "id": e["gate"], "name": e["name"], "prompt": e["prompt"], "options": e["options"],
        "shown": e["shown"], "opened_at": e["at"], "completes": e["completes"],
        "resting": run["gate"]["resting"] if run["gate"] else run["status"],
    }  # fmt: skip
    run["status"] = "waiting_gate"


def _gate_decided(run: Run, e: Any) -> None:
    run["decisions"].append({
        "gate": e["gate"], "name": e["name"], "step": e["step"], "decision": e["decision"], "approved": e["approved"],
        "feedback": e["feedback"], "who": e["who"], "at": e["at"], "proof": e["proof"],
    })  # fmt: skip
    if run["gate"] and run["gate"]["id"] == e["gate"]:
        run["status"] = run["gate"]["resting"]
        run["gate"] = None
    if run["stay"] is not None:
        run["stay"]["decision"] = e["decision"]


_APPLY: dict[str, Callable[[Run, Any], None]] = {
    "RunStarted": _run_started, "Adopted": _adopted, "StepStarted": _step_started, "StepEnded": _step_ended,
    "StepSkipped": _step_skipped, "AttemptDispatched": _attempt_dispatched, "AttemptStarted": _attempt_started,
    "AttemptFinished": _attempt_finished, "AttemptLost": _attempt_lost, "ItemsPlanned": _items_planned,
    "ItemChanged": _item_changed, "WaveStarted": _wave_started, "WaveEnded": _wave_ended, "GateOpened": _gate_opened,
    "GateDecided": _gate_decided, "Paused": _paused, "Resumed": _resumed, "Parked": _parked, "Failed": _failed,
    "Finished": _finished, "Cancelled": _cancelled, "Stopped": _stopped, "PickedUp": _picked_up, "Blocked": _blocked, "Unblocked": _unblocked,
    "StageRestarted": _stage_restarted, "RouteTaken": progress.route_taken, "ReviewRecorded": _review_recorded,
    "ArtifactStored": notes.artifact_stored, "MemoryWritten": notes.memory_written, "MemoryPruned": notes.memory_pruned,
    "MemoryInvalidated": notes.memory_invalidated, "MemoryCleaned": notes.memory_cleaned, "FlagSet": notes.flag_set,
    "CommitRecorded": notes.commit_recorded, "ContextSaved": notes.context_saved, "ContextRestored": notes.context_restored,
    "AnswersRecorded": notes.answers_recorded, "SettingsChanged": notes.settings_changed, "BudgetChanged": notes.budget_changed,
    "DriverChanged": notes.driver_changed, "ShownIn": notes.shown_in, "SessionBound": notes.session_bound,
    "ForeignEditAbsorbed": notes.foreign_edit_absorbed, "Forked": _forked, "Noted": notes.noted,
    "Engaged": progress.engaged, "ActionDone": progress.action_done,
}  # fmt: skip
