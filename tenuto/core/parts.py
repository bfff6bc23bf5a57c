"""The parts of a run: how each begins, and how fold() changes those that fold.py leaves to this module.

    new_run()  new_repo()                 before the first event
    new_step()  new_visit(...)            a step of a schedule; one visit of a step
    new_attempt(...)  new_item(...)       an agent's attempt; a planned item
    new_seat(...)  new_pause(...)         an agent's place in a visit; why a run rests
    new_account()                         what a step may spend

A new part has every field, with the value that says "nothing yet". fold() makes its records here, and so does the code
that adopts the file of another program: a record that lacks a field would stop the next reader of the run, far from
where it was made.

Folded here are the current visit with its seats, its items and the legs to come, and what moves no run: artifacts,
memory, flags, commits, settings, what was spent. fold.py's rules hold: never refuse, add nothing, change the run in
place. What is ready, retried or finished is not known here: that needs the pipeline, and todo() and decide() have it.
"""

from __future__ import annotations

from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records import events
    from tenuto.core.records.run import (
        Account,
        Amounts,
        Attempt,
        Found,
        Item,
        Json,
        Leg,
        Pause,
        Repo,
        Run,
        Said,
        SeatState,
        Status,
        StepState,
        StepStatus,
        Usage,
        Visit,
    )


def new_run() -> Run:
    return {
        "id": "", "name": "", "request": "", "summary": "",
        "created_at": "", "updated_at": "", "reported_at": "",
        "stopped_at": None, "paused_at": None, "resumed_at": None, "graduated_at": None,
        "pipeline": {"name": "", "hash": None}, "driver": "manual", "dialects": {}, "mode": "standard",
        "status": "created", "version": 0, "order": "any", "schedule": [], "evidence": {}, "position": None,
        "steps": {}, "visits": [], "attempts": {}, "items": {}, "waves": [],
        "gate": None, "decisions": [], "pause": None, "failure": None, "blocked": None,
        "restarts": [], "reviews": {}, "artifacts": {},
        "memory": {"index": [], "decisions": [], "lessons": [], "updates": []},
        "flags": {}, "commits": [], "resume": None, "answers": {}, "routes": {}, "retries": 0, "refuted": 0,
        "budget": {
            "limits": {}, "spent": {}, "reserved": {}, "busy_ms": 0, "busy_since": None, "dearest": {}, "steps": {},
        },
        "in_flight": [], "sessions": [], "switches": {}, "params": {}, "files_seen": {}, "queue": [],
        "current_visit": None, "last_verdicts": {}, "handed_over": {}, "settings": {}, "extra": {},
    }  # fmt: skip


def new_repo() -> Repo:
    return {
        "version": 0, "current": None, "owners": {}, "settings": {}, "queue": {}, "queued": 0, "schedules": {},
    }  # fmt: skip


def is_refuted(said: Said | None, found: Found | None) -> bool:
    """An agent says DONE, and what was found says otherwise. One that waits for its time is not judged yet."""
    stands = found is None or found["verdict"] in ("DONE", "PARKED")
    return said is not None and said["verdict"] == "DONE" and not stands


def new_step(status: StepStatus = "pending", iteration: int = 0) -> StepState:
    return {"status": status, "iteration": iteration, "verdict": None}


def new_visit(step: str, started_at: str, *, item: str | None = None, iteration: int = 1, retries: int = 0) -> Visit:
    """A visit that has just begun."""
    return {
        "step": step,
        "item": item,
        "iteration": iteration,
        "status": "running",
        "started_at": started_at,
        "ended_at": None,
        "duration_ms": None,
        "retries": retries,
        "closed": None,
    }


def past_visit(
    step: str,
    status: Literal["success", "failed", "skipped"],
    started_at: str,
    ended_at: str | None,
    *,
    item: str | None = None,
    iteration: int = 1,
    duration_ms: int | None = None,
    closed: int | None = None,
) -> Visit:
    """A visit that has ended, as another program tells it."""
    visit = new_visit(step, started_at, item=item, iteration=iteration)
    visit["status"], visit["ended_at"], visit["duration_ms"], visit["closed"] = status, ended_at, duration_ms, closed
    return visit


def new_attempt(
    step: str,
    role: str,
    started_at: str,
    *,
    agent: str = "",
    task: str = "",
    item: str | None = None,
    iteration: int = 1,
    number: int = 1,
    summary: str = "",
    reserved: Amounts | None = None,
    extra: Json | None = None,
) -> Attempt:
    """An attempt that was dispatched and has not ended."""
    return {
        "step": step,
        "role": role,
        "agent": agent,
        "task": task,
        "item": item,
        "iteration": iteration,
        "number": number,
        "status": "dispatched",
        "verdict": None,
        "summary": summary,
        "started_at": started_at,
        "ended_at": None,
        "usage": {},
        "reserved": {} if reserved is None else reserved,
        "receipt": {},
        "said": None,
        "found": None,
        "extra": {} if extra is None else extra,
    }


def new_item(
    title: str = "",
    *,
    files: list[str] | None = None,
    depends_on: list[str] | None = None,
    agent: str = "",
    status: StepStatus = "pending",
    extra: Json | None = None,
) -> Item:
    return {
        "title": title,
        "files": [] if files is None else files,
        "depends_on": [] if depends_on is None else depends_on,
        "agent": agent,
        "status": status,
        "extra": {} if extra is None else extra,
    }


def new_seat(*results: str) -> SeatState:
    """A place that no attempt has taken; `results`: what was done in it before the engine came."""
    return {"tries": 0, "results": list(results), "open": None, "severities": [], "answer": None}


def new_pause(
    kind: str,
    reason: str,
    step: str | None,
    resting: Status,
    *,
    attempts: int = 0,
    feedback: str = "",
    until: str = "",
    question_of: str = "",
    recommendations: list[str] | None = None,
) -> Pause:
    return {
        "kind": kind,
        "reason": reason,
        "step": step,
        "attempts": attempts,
        "feedback": feedback,
        "until": until,
        "question_of": question_of,
        "recommendations": [] if recommendations is None else recommendations,
        "resting": resting,
    }


def new_account() -> Account:
    return {"limits": {}, "spent": {}, "reserved": {}, "busy_ms": 0}


def engaged(run: Run, e: events.Engaged) -> None:
    run["pipeline"], run["driver"] = e["pipeline"], e["driver"]
    run["switches"], run["params"], run["queue"] = e["switches"], e["params"], e["queue"]
    _leave_open_visits(run, e)


def files_seen(run: Run, e: events.FilesSeen) -> None:
    run["files_seen"] = {**run["files_seen"], **e["files"]}


def released(run: Run, e: events.DriverChanged) -> None:
    """A person leads the run from here: the visit ends without an outcome, and its leg waits for an engine."""
    current_visit = run["current_visit"]
    if current_visit is not None:
        kept = {seat: state for seat, state in current_visit["seats"].items() if _is_kept(seat, state)}
        leg: Leg = {**current_visit["leg"], "kept": kept}
        run["queue"] = [leg, *run["queue"]]
        run["current_visit"] = None
    _leave_open_visits(run, e)
    known = [entry["step"] for entry in run["schedule"]]
    if known and run["position"] not in known:
        # Gates and actions are steps of a pipeline only: by hand, the run is in the last of its own steps.
        run["position"] = next((v["step"] for v in reversed(run["visits"]) if v["step"] in known), None)
    here = run["steps"].get(run["position"] or "") if known else None
    if here is not None and here["status"] == "pending":
        # A run with an order is always in a step: this one is begun anew, by hand.
        here["status"] = "running"
        run["visits"].append(new_visit(run["position"] or "", e["at"], iteration=here["iteration"]))


def _is_kept(seat: str, state: SeatState) -> bool:
    """What agents have answered so far is not asked again; an item that failed begins anew."""
    return bool(state["results"]) and state["open"] is None and ("@" not in seat or state["results"][-1] == "DONE")


def _leave_open_visits(run: Run, e: events.DriverChanged | events.Engaged) -> None:
    """The next driver begins the step anew."""
    for visit in run["visits"]:
        if visit["status"] == "running":
            visit["status"], visit["ended_at"], visit["closed"] = "skipped", e["at"], run["version"]
            visit["duration_ms"] = between(visit["started_at"], e["at"])
            run["steps"][visit["step"]]["status"] = "pending"


def made_by_hand(run: Run, e: events.StepEnded) -> None:
    """A leg that waited for an engine was done by hand; after any other step done by hand, the waiting legs do not
    apply."""
    if e["status"] == "success" and run["queue"]:
        run["queue"] = run["queue"][1:] if run["queue"][0]["step"] == e["step"] and e["item"] is None else []


def visit_started(run: Run, e: events.StepStarted, leg: Leg) -> None:
    if run["queue"] and run["queue"][0]["step"] == e["step"]:
        run["queue"] = run["queue"][1:]
    # Only some seats run again, and the aggregator: what the others answered last still counts.
    again = leg.get("again") or leg.get("only") or []
    kept = run["last_verdicts"].get(e["step"], {}) if again else {}
    run["current_visit"] = {
        "step": e["step"],
        "visit": e["iteration"],
        "leg": leg,
        "findings": leg.get("findings", []),
        "done_actions": [],
        "seats": {
            **{seat: state for seat, state in kept.items() if seat not in again},
            **leg.get("kept", {}),
        },
        "planned": False,
        "left": [],
        "busy": [],
        "group_of": {},
        "wave_of": {},
        "stopped_by": [],
        "decision": None,
    }


def visit_ended(run: Run, e: events.StepEnded) -> None:
    current_visit = run["current_visit"]
    if current_visit is not None:
        run["last_verdicts"][e["step"]] = current_visit["seats"]
        run["handed_over"].pop(e["step"], None)
    run["current_visit"] = None


def route_taken(run: Run, e: events.RouteTaken) -> None:
    if e["route"]:
        run["routes"][e["route"]] = run["routes"].get(e["route"], 0) + 1
    for counter in e["resets"]:
        run["routes"].pop(counter, None)
    run["queue"] = e["queue"]
    run["handed_over"].update(e["carry"])


def action_done(run: Run, e: events.ActionDone) -> None:
    if run["current_visit"] is not None:
        run["current_visit"]["done_actions"].append(e["action"])


def seat_taken(run: Run, e: events.AttemptDispatched) -> None:
    current_visit, seat = run["current_visit"], e["extra"].get("seat")
    if current_visit is None or seat is None:
        return
    state = current_visit["seats"].setdefault(seat, new_seat())
    state["open"] = e["attempt"]
    state["tries"] += 1
    if e["item"] is not None and e["item"] not in current_visit["busy"]:
        current_visit["busy"].append(e["item"])
        run["items"][e["item"]]["status"] = "running"


def seat_freed(run: Run, attempt: Attempt) -> None:
    """The attempt was never started: the seat is as before, and may be taken again."""
    current_visit, seat = run["current_visit"], attempt["extra"].get("seat")
    if current_visit is not None and seat in current_visit["seats"]:
        current_visit["seats"][seat]["open"] = None


def seat_answered(run: Run, attempt: Attempt, result: str) -> None:
    current_visit, seat = run["current_visit"], attempt["extra"].get("seat")
    if current_visit is None or seat not in current_visit["seats"]:
        return
    state = current_visit["seats"][seat]
    state["results"].append(result)
    state["open"] = None
    state["severities"] = attempt["receipt"].get("severities", [])
    state["answer"] = attempt["receipt"].get("answer")


def items_chosen(run: Run, e: events.ItemsPlanned) -> None:
    current_visit = run["current_visit"]
    if current_visit is None:
        return
    current_visit["planned"] = True
    if "made" in e:
        current_visit["seats"] = {key: current_visit["seats"].get(key) or new_seat("DONE") for key in e["made"]}
    current_visit["left"] = [item for group in e["groups"] for item in group]
    current_visit["group_of"] = {item: number for number, group in enumerate(e["groups"]) for item in group}
    current_visit["wave_of"] = {item: number for number, wave in enumerate(e["waves"]) for item in wave}
    for item in current_visit["left"]:
        run["items"][item]["status"] = "pending"


def item_changed(run: Run, e: events.ItemChanged) -> None:
    current_visit = run["current_visit"]
    if current_visit is None or e["status"] not in ("completed", "failed", "skipped"):
        return
    if e["item"] in current_visit["left"]:
        current_visit["left"].remove(e["item"])
    if e["item"] in current_visit["busy"]:
        current_visit["busy"].remove(e["item"])
    if e["status"] == "failed" and not e["harmless"]:
        current_visit["stopped_by"].append(e["item"])


def merge(into: Json, changes: Json) -> None:
    """Objects deeply, everything else by replacement (arrays too)."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def artifact_stored(run: Run, e: events.ArtifactStored) -> None:
    run["artifacts"][e["name"]] = {
        "path": e["path"],
        "sha256": e["sha256"],
        "size": e["size"],
        "step": e["step"],
        "attempt": e["attempt"],
        "at": e["at"],
        "by": e["by"],
    }
    step = e["step"]
    for entry in run["schedule"]:
        if entry["step"] == step and entry.get("type") == "review":
            visit = run["steps"][step]["iteration"] if run["position"] == step else 0
            run["artifacts"][e["name"]]["visit"] = visit


def memory_written(run: Run, e: events.MemoryWritten | events.IndexWritten) -> None:
    memory = run["memory"]
    if e["kind"] == "index":
        changed = {entry["artifact"] for entry in e["entries"]}
        memory["index"] = [entry for entry in memory["index"] if entry["artifact"] not in changed]
        memory["index"].extend(e["entries"])
    else:
        memory[e["kind"]].extend(e["entries"])


def memory_pruned(run: Run, e: events.MemoryPruned) -> None:
    memory = run["memory"]
    memory["decisions"] = [entry for entry in memory["decisions"] if entry["step"] in e["keep"]]
    memory["updates"] = [entry for entry in memory["updates"] if entry["step"] in e["keep"]]


def memory_invalidated(run: Run, e: events.MemoryInvalidated) -> None:
    for entry in run["memory"]["decisions"] + run["memory"]["updates"]:
        if entry["step"] in e["steps"]:
            entry["invalidated"] = e["reason"]


def memory_cleaned(run: Run, e: events.MemoryCleaned) -> None:
    memory = run["memory"]
    memory["decisions"] = [entry for entry in memory["decisions"] if entry["invalidated"] is None]
    memory["updates"] = [entry for entry in memory["updates"] if entry["invalidated"] is None]


def flag_set(run: Run, e: events.FlagSet) -> None:
    run["flags"].update(e["flags"])


def commit_recorded(run: Run, e: events.CommitRecorded) -> None:
    run["commits"].append(
        {
            "step": e["step"],
            "hash": e["hash"],
            "message": e["message"],
            "at": e["at"],
            "extra": e["extra"],
        }
    )


def context_saved(run: Run, e: events.ContextSaved) -> None:
    run["resume"] = {**e["context"], "saved_at": e.get("reported_at") or e["at"], "reason": e["reason"]}


def context_restored(run: Run, e: events.ContextRestored) -> None:
    if run["resume"] is not None:
        run["resume"]["restored_at"] = e["at"]


def answers_recorded(run: Run, e: events.AnswersRecorded) -> None:
    run["answers"].update(e["answers"])


def settings_changed(run: Run, e: events.SettingsChanged) -> None:
    """How gates are protected is settled at the start: an event that says otherwise was decided by nobody."""
    merge(run["settings"], {name: value for name, value in e["changes"].items() if name != "gate_protection"})


def budget_changed(run: Run, e: events.BudgetChanged) -> None:
    run["budget"]["limits"].update(e["limits"])
    for step, limits in e.get("steps", {}).items():
        _account(run, step)["limits"].update(limits)


def set_aside(run: Run, e: events.AttemptDispatched) -> None:
    """One more is under way. The first one starts the clock."""
    if not run["in_flight"]:
        run["budget"]["busy_since"] = e["at"]
    run["in_flight"].append(e["attempt"])
    _book(run, e["step"], "reserved", e["reserved"], 1)


def charge(run: Run, e: events.AttemptFinished | events.AttemptLost, attempt: Attempt, used: Usage | Amounts) -> None:
    """One less: what was set aside for it is free again, what it used is spent. The last one stops the clock."""
    budget = run["budget"]
    _book(run, attempt["step"], "reserved", attempt["reserved"], -1)
    _book(run, attempt["step"], "spent", used, 1)
    for unit, amount in used.items():
        if isinstance(amount, int) and amount > budget["dearest"].get(unit, 0):
            budget["dearest"][unit] = amount
    if e["attempt"] in run["in_flight"]:
        run["in_flight"].remove(e["attempt"])
    if not run["in_flight"] and budget["busy_since"] is not None:
        # `lasted_ms`: what was measured where the clock tells less, because it was set back meanwhile.
        measured = e["extra"].get("lasted_ms", 0) if e["type"] == "AttemptFinished" else 0
        elapsed = max(between(budget["busy_since"], e["at"]), measured)
        budget["busy_ms"] += elapsed
        _account(run, attempt["step"])["busy_ms"] += elapsed
        budget["busy_since"] = None


def _book(run: Run, step: str, side: Literal["spent", "reserved"], amounts: Usage | Amounts, sign: int) -> None:
    if amounts:
        _add(run["budget"][side], amounts, sign)
        _add(_account(run, step)[side], amounts, sign)


def _account(run: Run, step: str) -> Account:
    accounts = run["budget"]["steps"]
    if step not in accounts:
        accounts[step] = new_account()
    return accounts[step]


def _add(into: Amounts, amounts: Usage | Amounts, sign: int) -> None:
    for unit, amount in amounts.items():
        if isinstance(amount, (int, float)) and not isinstance(amount, bool):
            into[unit] = into.get(unit, 0) + sign * amount


def driver_changed(run: Run, e: events.DriverChanged) -> None:
    if e["driver"] == "manual" and run["driver"] != "manual":
        released(run, e)
    run["driver"], run["pipeline"] = e["driver"], e["pipeline"]


def shown_in(run: Run, e: events.ShownIn) -> None:
    run["dialects"][e["dialect"]] = e["place"]


def session_bound(run: Run, e: events.SessionBound) -> None:
    if e["session"] not in run["sessions"]:
        run["sessions"].append(e["session"])


def foreign_edit_absorbed(run: Run, e: events.ForeignEditAbsorbed) -> None:
    kept = run["extra"].setdefault(e["dialect"], {})
    for place in e.get("drop", ()):
        _drop(kept, place)
    merge(kept, e["extra"])


def _drop(kept: Json, place: list[str]) -> None:
    *way, last = place
    for name in way:
        kept = kept.get(name, {})
        if not isinstance(kept, dict):
            return
    kept.pop(last, None)


def noted(run: Run, e: events.Noted) -> None:
    pass
