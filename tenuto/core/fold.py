"""Events -> Run: what a run is after everything that happened to it.

    run = fold(events)             from the beginning
    run = fold(later_events, run)  from a state that was kept; `run` is changed in place

Rule 1: fold never refuses. decide() did, before the event was written; what is in the
journal happened. An event type that this version does not know is an error, not a guess.

Rule 2: fold adds nothing of its own: no clock, no default that a later version may
change. Two machines that fold the same events hold the same bytes.

FOLD_VERSION names the shape of the result. It changes with any change to this file, to parts.py or
times.py (tests/unit/core/test_fold_version.py holds it), and state rows of other versions are folded anew.
"""

from __future__ import annotations

from tenuto.core import parts
from tenuto.core.parts import merge, new_attempt, new_item, new_pause, new_repo, new_run, new_step, new_visit
from tenuto.core.status import EVERY
from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypedDict

    from tenuto.core.records import events
    from tenuto.core.records.run import Gate, Json, Repo, Restart, Run, Status, StepState, Visit

FOLD_VERSION = 18


def fold(happened: Iterable[events.Event | Json], run: Run | None = None) -> Run:
    state = run if run is not None else new_run()
    for event in happened:
        apply(state, event)
    return state


def apply(run: Run, event: events.Event | Json) -> None:
    """`event`: as it was decided, or as the journal holds it (upgraded: core/upgrade.py)."""
    table: Mapping[str, object] = _APPLY
    change = table[event["type"]]
    if callable(change):
        change(run, event)
    run["version"] += 1
    run["updated_at"] = event["at"]
    run["reported_at"] = event.get("reported_at") or event["at"]


def fold_repo(happened: Iterable[events.RepoEvent | Json], repo: Repo | None = None) -> Repo:
    state = repo if repo is not None else new_repo()
    for event in happened:
        apply_repo(state, event)
    return state


def apply_repo(repo: Repo, event: events.RepoEvent | Json) -> None:
    table: Mapping[str, object] = _APPLY_REPO
    change = table[event["type"]]
    if callable(change):
        change(repo, event)
    repo["version"] += 1


def _current_run_changed(repo: Repo, e: events.CurrentRunChanged) -> None:
    repo["current"] = e["run"]


def _file_owned(repo: Repo, e: events.FileOwned) -> None:
    if e["run"] is None:
        repo["owners"].pop(e["path"], None)
    else:
        repo["owners"][e["path"]] = e["run"]


def _repo_settings_changed(repo: Repo, e: events.SettingsChanged) -> None:
    merge(repo["settings"], e["changes"])


def _request_queued(repo: Repo, e: events.RequestQueued) -> None:
    repo["queued"] += 1
    repo["queue"][e["entry"]] = {
        "id": e["entry"],
        "wanted": e["wanted"],
        "status": "waiting",
        "queued_at": e["at"],
        "by": e["by"],
        "schedule": e["schedule"],
        "due": e["due"],
        "run": "",
        "problem": "",
        "problem_at": 0,
    }
    if e["schedule"] in repo["schedules"]:
        repo["schedules"][e["schedule"]]["last"] = e["due"]


def _request_begun(repo: Repo, e: events.RequestBegun) -> None:
    entry = repo["queue"][e["entry"]]
    entry["status"], entry["run"], entry["problem"] = "begun", e["run"], ""


def _request_refused(repo: Repo, e: events.RequestRefused) -> None:
    entry = repo["queue"][e["entry"]]
    entry["problem"], entry["problem_at"] = e["why"], e["version"]
    if entry["status"] == "waiting":
        entry["status"] = "refused"


def _request_renewed(repo: Repo, e: events.RequestRenewed) -> None:
    entry = repo["queue"][e["entry"]]
    entry["problem"], entry["problem_at"] = "", 0
    if entry["status"] == "refused":
        entry["status"] = "waiting"


def _request_left(repo: Repo, e: events.RequestEnded | events.RequestDropped) -> None:
    del repo["queue"][e["entry"]]


def _schedule_kept(repo: Repo, e: events.ScheduleKept) -> None:
    repo["schedules"][e["schedule"]] = {"every": e["every"], "zone": e["zone"], "last": e["last"]}


def _schedule_dropped(repo: Repo, e: events.ScheduleDropped) -> None:
    del repo["schedules"][e["schedule"]]


def running_visits(run: Run) -> list[Visit]:
    return [visit for visit in run["visits"] if visit["status"] == "running"]


# ---- runs and their statuses -----------------------------------------------------------------------


def _run_started(run: Run, e: events.RunStarted) -> None:
    run["id"] = e["run"]
    run["name"], run["request"], run["summary"], run["mode"] = e["name"], e["request"], e["summary"], e["mode"]
    run["pipeline"], run["driver"], run["dialects"] = e["pipeline"], e["driver"], e["dialects"]
    run["order"], run["schedule"], run["evidence"] = e["order"], e["schedule"], e["evidence"]
    run["settings"] = e["settings"]
    run["created_at"] = e["at"]
    run["status"] = "running"
    for entry in e["schedule"]:
        run["steps"][entry["step"]] = new_step()


def _adopted(run: Run, e: events.Adopted) -> None:
    for field, value in e["state"].items():
        run[field] = value  # type: ignore[literal-required]
    run["in_flight"] = [name for name, a in run["attempts"].items() if a["status"] in ("dispatched", "running")]


def _paused(run: Run, e: events.Paused) -> None:
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    run["pause"] = new_pause(
        e["kind"],
        e["reason"],
        e["step"],
        resting if resting in EVERY else "running",  # a word that only the file of an adopted run knew
        attempts=run["retries"],
        feedback=e["feedback"],
        question_of=e["question_of"],
        recommendations=e["recommendations"],
    )
    run["status"] = "paused"
    run["paused_at"] = e["at"]


def _resumed(run: Run, e: events.Resumed) -> None:
    _try_again(run)
    run["status"] = run["pause"]["resting"] if run["pause"] else "running"
    run["pause"] = run["paused_at"] = run["stopped_at"] = None
    run["resumed_at"] = e["at"]


def _try_again(run: Run) -> None:
    """A failed run goes on: what it failed of is history."""
    if run["status"] == "failed":
        run["failure"] = run["stopped_at"] = None


def _picked_up(run: Run, e: events.PickedUp) -> None:
    run["resumed_at"] = e["at"]


def _parked(run: Run, e: events.Parked) -> None:
    resting = run["pause"]["resting"] if run["pause"] else run["status"]
    run["pause"] = new_pause("parked", e["reason"], run["position"], resting, attempts=run["retries"], until=e["until"])
    run["status"] = "parked"
    run["paused_at"] = e["at"]


def _failed(run: Run, e: events.Failed) -> None:
    failed_at = e.get("reported_at") or e["at"]
    run["failure"] = {"step": e["step"], "error": e["error"], "at": failed_at, "context": e["context"]}
    _rest(run, "failed", e["at"])


def _finished(run: Run, e: events.Finished) -> None:
    if e["outcome"] == "graduated":
        run["graduated_at"] = e["at"]
    _rest(run, e["outcome"], e["at"])


def _cancelled(run: Run, e: events.Cancelled) -> None:
    _rest(run, "cancelled", e["at"])


def _rest(run: Run, status: Status, at: str) -> None:
    run["status"] = status
    run["stopped_at"] = at
    run["pause"] = run["gate"] = run["paused_at"] = None


def _stopped(run: Run, e: events.Stopped) -> None:
    run["pause"] = new_pause("stopped", e["reason"], run["position"], run["status"], attempts=run["retries"])
    run["status"] = "stopped"
    run["stopped_at"] = e.get("reported_at") or e["at"]


def _blocked(run: Run, e: events.Blocked) -> None:
    run["blocked"] = {"reason": e["reason"], "stage": e["stage"], "missing": e["missing"]}
    run["status"] = "blocked"


def _unblocked(run: Run, e: events.Unblocked) -> None:
    run["blocked"] = None
    run["status"] = "running"


def _forked(run: Run, e: events.Forked) -> None:
    run["extra"]["fork"] = {"source": e["source"], "step": e["at_step"], "version": e["at_version"]}
    if "answers" in e:
        run["extra"]["fork"]["answers"] = e["answers"]


# ---- steps, stages, reviews ------------------------------------------------------------------------


def _step(run: Run, name: str) -> StepState:
    return run["steps"].setdefault(name, new_step())


def _step_started(run: Run, e: events.StepStarted) -> None:
    alone = not running_visits(run)
    known = e["step"] in run["steps"]  # the first visit of a step has none to count
    earlier = sum(1 for v in run["visits"] if v["step"] == e["step"] and v["status"] == "failed") if known else 0
    run["visits"].append(new_visit(e["step"], e["at"], item=e["item"], iteration=e["iteration"], retries=earlier))
    if alone or run["order"] == "open":
        run["position"] = e["step"]
    state = _step(run, e["step"])
    state["status"] = "running"
    state["iteration"] = e["iteration"]
    state.pop("reason", None)
    if run["status"] == "restarting":
        run["status"] = "running"
    if e["leg"]:
        parts.visit_started(run, e, e["leg"])


def _step_ended(run: Run, e: events.StepEnded) -> None:
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
    if run["current_visit"] is not None and run["current_visit"]["step"] == e["step"]:
        parts.visit_ended(run, e)
    elif run["driver"] == "manual":
        parts.made_by_hand(run, e)
    # A run with an order stays where it is until it advances; one without is nowhere between steps.
    if run["order"] == "any" and not running_visits(run):
        run["position"] = None


def _step_skipped(run: Run, e: events.StepSkipped) -> None:
    state = _step(run, e["step"])
    state["status"] = "skipped"
    state["reason"] = e["reason"]


def _stage_restarted(run: Run, e: events.StageRestarted) -> None:
    _try_again(run)
    count = sum(1 for r in run["restarts"] if r["stage"] == e["stage"]) + 1
    restart: Restart = {"stage": e["stage"], "reason": e["reason"], "at": e["at"], "restart": count}
    restart.update(e.get("extra", {}))  # type: ignore[typeddict-item]  # keys that we do not know are kept
    run["restarts"].append(restart)
    # What the stage and those behind it had is void: reviews are taken again, outputs recorded again.
    steps = [entry["step"] for entry in run["schedule"]]
    for step in steps[steps.index(e["to"]) :] if e["to"] in steps else []:
        run["steps"][step] = new_step()
        run["reviews"].pop(step, None)
        run["artifacts"] = {name: kept for name, kept in run["artifacts"].items() if kept["step"] != step}
    for visit in running_visits(run):
        visit["status"], visit["ended_at"] = "failed", e["at"]
        visit["duration_ms"] = between(visit["started_at"], e["at"])
        visit["closed"] = run["version"]
    run["position"] = e["to"]
    run["blocked"] = None
    run["status"] = "restarting"


def _review_recorded(run: Run, e: events.ReviewRecorded) -> None:
    run["reviews"].setdefault(e["step"], {}).update(e["changes"])


# ---- attempts, items, waves ------------------------------------------------------------------------


def _attempt_dispatched(run: Run, e: events.AttemptDispatched) -> None:
    run["attempts"][e["attempt"]] = new_attempt(
        e["step"],
        e["role"],
        e["at"],
        agent=e["agent"],
        task=e["task"],
        item=e["item"],
        iteration=e["iteration"],
        number=e["number"],
        summary=e["summary"],
        reserved=e["reserved"],
        extra=e["extra"],
    )
    parts.set_aside(run, e)
    parts.seat_taken(run, e)


def _attempt_started(run: Run, e: events.AttemptStarted) -> None:
    attempt = run["attempts"][e["attempt"]]
    attempt["status"] = "running"
    attempt["extra"].update(e["extra"])


def _attempt_finished(run: Run, e: events.AttemptFinished) -> None:
    attempt = run["attempts"][e["attempt"]]
    attempt["status"], attempt["verdict"] = e["status"], e["verdict"]
    attempt["said"], attempt["found"] = e["said"], e["found"]
    attempt["receipt"], attempt["usage"] = e["receipt"], e["usage"]
    attempt["summary"] = e["summary"] or attempt["summary"]
    attempt["ended_at"] = e["at"]
    attempt["extra"].update(e["extra"])
    run["refuted"] += parts.is_refuted(e["said"], e["found"])
    parts.charge(run, e, attempt, e["usage"])
    if e["verdict"] == "PARKED":
        parts.seat_freed(run, attempt)
    else:
        parts.seat_answered(run, attempt, e["verdict"] or "ERROR")


def _attempt_lost(run: Run, e: events.AttemptLost) -> None:
    attempt = run["attempts"][e["attempt"]]
    attempt["status"], attempt["summary"], attempt["ended_at"] = "lost", e["reason"], e["at"]
    # Nobody knows what it cost: it is charged what was set aside for it.
    parts.charge(run, e, attempt, attempt["reserved"] if e["ran"] else {})
    if e["ran"]:
        parts.seat_answered(run, attempt, "LOST")
    else:
        parts.seat_freed(run, attempt)


def _items_planned(run: Run, e: events.ItemsPlanned) -> None:
    for name, item in e["items"].items():
        before = run["items"].get(name)
        known = ("title", "files", "depends_on", "agent", "status", "extra")
        run["items"][name] = new_item(
            item.get("title", ""),
            files=item.get("files", []),
            depends_on=item.get("depends_on", []),
            agent=item.get("agent", ""),
            status=item.get("status", before["status"] if before else "pending"),
            extra=item.get("extra", {key: value for key, value in item.items() if key not in known}),
        )
    for name in e.get("dropped", []):
        del run["items"][name]
    run["waves"] = [
        {"wave": number, "items": items, "started_at": None, "ended_at": None}
        for number, items in enumerate(e["waves"], 1)
    ]
    parts.items_chosen(run, e)


def _item_changed(run: Run, e: events.ItemChanged) -> None:
    item = run["items"][e["item"]]
    item["status"] = e["status"]
    item["files"].extend(path for path in e["files"] if path not in item["files"])
    parts.item_changed(run, e)


def _wave_started(run: Run, e: events.WaveStarted) -> None:
    run["waves"][e["wave"] - 1]["started_at"] = e["at"]


def _wave_ended(run: Run, e: events.WaveEnded) -> None:
    run["waves"][e["wave"] - 1]["ended_at"] = e["at"]


# ---- gates -----------------------------------------------------------------------------------------


def _gate_opened(run: Run, e: events.GateOpened) -> None:
    gate: Gate = {
        "id": e["gate"],
        "name": e["name"],
        "prompt": e["prompt"],
        "options": e["options"],
        "shown": e["shown"],
        "opened_at": e["at"],
        "completes": e["completes"],
        "resting": run["gate"]["resting"] if run["gate"] else run["status"],
    }
    if "fields" in e:
        gate["fields"] = e["fields"]
    run["gate"] = gate
    run["status"] = "waiting_gate"


def _gate_decided(run: Run, e: events.GateDecided) -> None:
    run["decisions"].append(
        {
            "gate": e["gate"],
            "name": e["name"],
            "step": e["step"],
            "decision": e["decision"],
            "approved": e["approved"],
            "feedback": e["feedback"],
            "who": e["who"],
            "at": e["at"],
            "proof": e["proof"],
            "attempts": len(run["attempts"]),
        }
    )
    if "answers" in e:
        run["decisions"][-1]["answers"] = e["answers"]
    if e.get("stays"):
        run["decisions"][-1]["stays"] = True
    if run["gate"] and run["gate"]["id"] == e["gate"]:
        run["status"] = run["gate"]["resting"]
        run["gate"] = None
    if run["current_visit"] is not None:
        run["current_visit"]["decision"] = e["decision"]


if TYPE_CHECKING:

    class AppliesToRepo(TypedDict):
        CurrentRunChanged: Callable[[Repo, events.CurrentRunChanged], None]
        FileOwned: Callable[[Repo, events.FileOwned], None]
        SettingsChanged: Callable[[Repo, events.SettingsChanged], None]
        RequestQueued: Callable[[Repo, events.RequestQueued], None]
        RequestBegun: Callable[[Repo, events.RequestBegun], None]
        RequestRefused: Callable[[Repo, events.RequestRefused], None]
        RequestRenewed: Callable[[Repo, events.RequestRenewed], None]
        RequestEnded: Callable[[Repo, events.RequestEnded], None]
        RequestDropped: Callable[[Repo, events.RequestDropped], None]
        ScheduleKept: Callable[[Repo, events.ScheduleKept], None]
        ScheduleDropped: Callable[[Repo, events.ScheduleDropped], None]

    class Applies(TypedDict):
        """What each event does to a run: one function per type, which takes that event and no other."""

        RunStarted: Callable[[Run, events.RunStarted], None]
        Adopted: Callable[[Run, events.Adopted], None]
        StepStarted: Callable[[Run, events.StepStarted], None]
        StepEnded: Callable[[Run, events.StepEnded], None]
        StepSkipped: Callable[[Run, events.StepSkipped], None]
        AttemptDispatched: Callable[[Run, events.AttemptDispatched], None]
        AttemptStarted: Callable[[Run, events.AttemptStarted], None]
        AttemptFinished: Callable[[Run, events.AttemptFinished], None]
        AttemptLost: Callable[[Run, events.AttemptLost], None]
        ItemsPlanned: Callable[[Run, events.ItemsPlanned], None]
        ItemChanged: Callable[[Run, events.ItemChanged], None]
        WaveStarted: Callable[[Run, events.WaveStarted], None]
        WaveEnded: Callable[[Run, events.WaveEnded], None]
        GateOpened: Callable[[Run, events.GateOpened], None]
        GateDecided: Callable[[Run, events.GateDecided], None]
        Paused: Callable[[Run, events.Paused], None]
        Resumed: Callable[[Run, events.Resumed], None]
        Parked: Callable[[Run, events.Parked], None]
        Failed: Callable[[Run, events.Failed], None]
        Finished: Callable[[Run, events.Finished], None]
        Cancelled: Callable[[Run, events.Cancelled], None]
        Stopped: Callable[[Run, events.Stopped], None]
        PickedUp: Callable[[Run, events.PickedUp], None]
        Blocked: Callable[[Run, events.Blocked], None]
        Unblocked: Callable[[Run, events.Unblocked], None]
        StageRestarted: Callable[[Run, events.StageRestarted], None]
        RouteTaken: Callable[[Run, events.RouteTaken], None]
        ReviewRecorded: Callable[[Run, events.ReviewRecorded], None]
        ArtifactStored: Callable[[Run, events.ArtifactStored], None]
        MemoryWritten: Callable[[Run, events.MemoryWritten | events.IndexWritten], None]
        MemoryPruned: Callable[[Run, events.MemoryPruned], None]
        MemoryInvalidated: Callable[[Run, events.MemoryInvalidated], None]
        MemoryCleaned: Callable[[Run, events.MemoryCleaned], None]
        FlagSet: Callable[[Run, events.FlagSet], None]
        CommitRecorded: Callable[[Run, events.CommitRecorded], None]
        ContextSaved: Callable[[Run, events.ContextSaved], None]
        ContextRestored: Callable[[Run, events.ContextRestored], None]
        AnswersRecorded: Callable[[Run, events.AnswersRecorded], None]
        SettingsChanged: Callable[[Run, events.SettingsChanged], None]
        BudgetChanged: Callable[[Run, events.BudgetChanged], None]
        DriverChanged: Callable[[Run, events.DriverChanged], None]
        ShownIn: Callable[[Run, events.ShownIn], None]
        SessionBound: Callable[[Run, events.SessionBound], None]
        ForeignEditAbsorbed: Callable[[Run, events.ForeignEditAbsorbed], None]
        Forked: Callable[[Run, events.Forked], None]
        Noted: Callable[[Run, events.Noted], None]
        Engaged: Callable[[Run, events.Engaged], None]
        FilesSeen: Callable[[Run, events.FilesSeen], None]
        ActionDone: Callable[[Run, events.ActionDone], None]


_APPLY_REPO: AppliesToRepo = {
    "CurrentRunChanged": _current_run_changed,
    "FileOwned": _file_owned,
    "SettingsChanged": _repo_settings_changed,
    "RequestQueued": _request_queued,
    "RequestBegun": _request_begun,
    "RequestRefused": _request_refused,
    "RequestRenewed": _request_renewed,
    "RequestEnded": _request_left,
    "RequestDropped": _request_left,
    "ScheduleKept": _schedule_kept,
    "ScheduleDropped": _schedule_dropped,
}
_APPLY: Applies = {
    "RunStarted": _run_started,
    "Adopted": _adopted,
    "StepStarted": _step_started,
    "StepEnded": _step_ended,
    "StepSkipped": _step_skipped,
    "AttemptDispatched": _attempt_dispatched,
    "AttemptStarted": _attempt_started,
    "AttemptFinished": _attempt_finished,
    "AttemptLost": _attempt_lost,
    "ItemsPlanned": _items_planned,
    "ItemChanged": _item_changed,
    "WaveStarted": _wave_started,
    "WaveEnded": _wave_ended,
    "GateOpened": _gate_opened,
    "GateDecided": _gate_decided,
    "Paused": _paused,
    "Resumed": _resumed,
    "Parked": _parked,
    "Failed": _failed,
    "Finished": _finished,
    "Cancelled": _cancelled,
    "Stopped": _stopped,
    "PickedUp": _picked_up,
    "Blocked": _blocked,
    "Unblocked": _unblocked,
    "StageRestarted": _stage_restarted,
    "RouteTaken": parts.route_taken,
    "ReviewRecorded": _review_recorded,
    "ArtifactStored": parts.artifact_stored,
    "MemoryWritten": parts.memory_written,
    "MemoryPruned": parts.memory_pruned,
    "MemoryInvalidated": parts.memory_invalidated,
    "MemoryCleaned": parts.memory_cleaned,
    "FlagSet": parts.flag_set,
    "CommitRecorded": parts.commit_recorded,
    "ContextSaved": parts.context_saved,
    "ContextRestored": parts.context_restored,
    "AnswersRecorded": parts.answers_recorded,
    "SettingsChanged": parts.settings_changed,
    "BudgetChanged": parts.budget_changed,
    "DriverChanged": parts.driver_changed,
    "ShownIn": parts.shown_in,
    "SessionBound": parts.session_bound,
    "ForeignEditAbsorbed": parts.foreign_edit_absorbed,
    "Forked": _forked,
    "Noted": parts.noted,
    "Engaged": parts.engaged,
    "FilesSeen": parts.files_seen,
    "ActionDone": parts.action_done,
}
