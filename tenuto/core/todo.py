"""What should be under way right now?

    todo(pipeline, run) -> actions

The same answer for the same run, always: a driver that dies between two lines loses nothing, the next one
asks again. Nothing here changes anything; each action becomes a command, and decide() has the last word.

    begin       start the next visit                       -> BeginVisit
    do          the engine itself acts (prune memory, ...)  -> RecordAction
    plan        read the plan of a waves step               -> PlanVisit
    dispatch    start an agent                              -> DispatchAttempt ... FinishAttempt
    ask         a person decides                            -> OpenGate ... DecideGate
    conclude    everything has ended                        -> Conclude
    pause       the budget admits no further attempt        -> Pause
    wake        a parked run goes on at this time           -> Resume

`now` is the caller's clock (the time of the last event where it is left out): only limits of time look at it.
No actions and nothing in flight: the run rests. Never more than `cap` in flight, counted over the whole run.
"""

from __future__ import annotations

from tenuto.core.budget import reservation, shortage, time_is_up, time_left
from tenuto.core.outcome import outcome
from tenuto.core.visits import ready, step_of, unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.pipeline_records import Pipeline, Step
    from tenuto.core.records import Run, Stay

_ACTIVE = ("created", "running", "restarting", "poc-complete")


def todo(pipeline: Pipeline, run: Run, now: str = "") -> list[Any]:
    if run["status"] not in _ACTIVE:
        if run["status"] == "parked" and run["pause"] and not run["flying"]:
            return [{"act": "wake", "step": run["position"], "at": run["pause"]["last_feedback"]}]
        return []
    stay = run["stay"]
    if stay is None:
        return [{"act": "begin", "step": run["queue"][0]["step"]}] if run["queue"] else []
    step = step_of(pipeline, stay["step"])
    for action in step["before"]:
        if f"before:{action}" not in stay["did"]:
            return [{"act": "do", "action": action, "as": f"before:{action}", "step": step["id"]}]
    if step["kind"] == "action":
        for action in step["action"]:
            if action not in stay["did"]:
                return [{"act": "do", "action": action, "as": action, "step": step["id"]}]
        return _closing(pipeline, run, step, stay)
    if step["kind"] == "gate":
        return _closing(pipeline, run, step, stay) if stay["decision"] else [{"act": "ask", "step": step["id"]}]
    if step["kind"] == "waves":
        if not stay["planned"]:
            return [{"act": "plan", "step": step["id"]}]
        between = _between(step, stay)
        if between:
            return between
    return _dispatches(pipeline, run, step, stay, now or run["updated_at"])


def _dispatches(pipeline: Pipeline, run: Run, step: Step, stay: Stay, now: str) -> list[Any]:
    flying = len(run["flying"])
    free = pipeline["cap"] - flying
    if free <= 0:
        return []
    places = ready(pipeline, run, step, stay, free)
    if not places:
        return [] if flying else _closing(pipeline, run, step, stay)
    actions: list[Any] = []
    more: dict[str, int] = {}
    reserved = reservation(pipeline, run, step)
    left = time_left(run, step["id"], now)
    late = time_is_up(run, step["id"], now) if left is not None and left <= 0 else None
    for key, seat, item in places[:free]:
        state = stay["seats"].get(key)
        number = state["tries"] + 1 if state else 1
        short = shortage(run, step["id"], reserved, more) or late
        if short:
            if not actions and not flying:
                return [{"act": "pause", "step": step["id"], "unit": short["unit"], "short": short}]
            break
        for name, amount in reserved.items():
            more[name] = more.get(name, 0) + amount
        name = "-".join([step["id"], str(stay["visit"]), key.replace("@", ".")])
        actions.append({
            "act": "dispatch", "step": step["id"], "attempt": f"{name}-{number}", "key": key, "seat": seat, "item": item,
            "number": number, "reserved": dict(reserved), "time_left": left, "follows": unfinished(run, f"{name}-{number - 1}"),
        })  # fmt: skip
    return actions


def _closing(pipeline: Pipeline, run: Run, step: Step, stay: Stay) -> list[Any]:
    """What comes after a DONE, then the end of the visit."""
    if step["after"] and outcome(pipeline, run)["name"] == "DONE":
        for action in step["after"]:
            if f"after:{action}" not in stay["did"]:
                return [{"act": "do", "action": action, "as": f"after:{action}", "step": step["id"]}]
    return [{"act": "conclude", "step": step["id"]}]


def _between(step: Any, stay: Stay) -> list[Any]:
    """Between two waves, once the earlier one has ended and before the later one starts."""
    if not step["between"] or not stay["left"] or stay["busy"]:
        return []
    wave = stay["wave_of"][stay["left"][0]]
    if wave == 0 or any(stay["wave_of"][failed] < wave for failed in stay["stopped_by"]):
        return []
    for action in step["between"]:
        done = f"between:{wave}:{action}"
        if done not in stay["did"]:
            return [{"act": "do", "action": action, "as": done, "step": step["id"]}]
    return []
