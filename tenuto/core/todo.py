"""What should be under way right now?

    todo(pipeline, run) -> actions

The same answer for the same run, always: a driver that dies between two lines loses nothing, the next one
asks again. Nothing here changes anything; each action becomes a command, and decide() has the last word.

    begin       start the next visit                       -> BeginVisit
    do          the engine itself acts (prune memory, ...)  -> RecordAction
    plan        read the plan of a waves step, or its list   -> PlanVisit
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
from tenuto.core.status import ACTIVE
from tenuto.core.visit import is_listed, lister_of, outcome, ready, step_of, unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.pipeline.records import ActionName, Pipeline, Step, WavesStep
    from tenuto.core.records.action import Action, Do
    from tenuto.core.records.run import Amounts, CurrentVisit, Run


def todo(pipeline: Pipeline, run: Run, now: str = "") -> list[Action]:
    if run["status"] not in ACTIVE:
        if run["status"] == "parked" and run["pause"] and not run["in_flight"]:
            return [{"act": "wake", "step": run["position"], "at": run["pause"]["until"]}]
        return []
    current_visit = run["current_visit"]
    if current_visit is None:
        return [{"act": "begin", "step": run["queue"][0]["step"]}] if run["queue"] else []
    step = step_of(pipeline, current_visit["step"])
    for action in step["before"]:
        if f"before:{action}" not in current_visit["done_actions"]:
            return [_do(step, action, f"before:{action}")]
    if step["kind"] == "action":
        for action in step["action"]:
            if action not in current_visit["done_actions"]:
                return [_do(step, action, action)]
        return _closing(pipeline, run, step, current_visit)
    if step["kind"] == "gate":
        return (
            _closing(pipeline, run, step, current_visit)
            if current_visit["decision"]
            else [{"act": "ask", "step": step["id"]}]
        )
    if step["kind"] == "waves":
        if not current_visit["planned"] and is_listed(step, current_visit):
            return [{"act": "plan", "step": step["id"]}]
        between = _between(step, current_visit)
        if between:
            return between
    return _dispatches(pipeline, run, step, current_visit, now or run["updated_at"])


def _do(step: Step, action: ActionName, name: str) -> Do:
    return {"act": "do", "action": action, "as": name, "step": step["id"]}


def _dispatches(pipeline: Pipeline, run: Run, step: Step, current_visit: CurrentVisit, now: str) -> list[Action]:
    in_flight = len(run["in_flight"])
    free = pipeline["cap"] - in_flight
    if free <= 0:
        return []
    places = ready(pipeline, run, step, current_visit, free)
    if not places:
        return [] if in_flight else _behind_waves(step, current_visit) or _closing(pipeline, run, step, current_visit)
    actions: list[Action] = []
    more: Amounts = {}
    reserved = reservation(pipeline, run, step)
    left = time_left(run, step["id"], now)
    late = time_is_up(run, step["id"], now) if left is not None and left <= 0 else None
    for key, seat, item in places[:free]:
        state = current_visit["seats"].get(key)
        number = state["tries"] + 1 if state else 1
        short = shortage(run, step["id"], reserved, more) or late
        if short:
            if not actions and not in_flight:
                return [{"act": "pause", "step": step["id"], "unit": short["unit"], "short": short}]
            break
        for name, amount in reserved.items():
            more[name] = more.get(name, 0) + amount
        place = key.replace(f"@{step['id']}.", "@") if step["kind"] == "waves" and step["waves"]["each"] else key
        name = "-".join([step["id"], str(current_visit["visit"]), place.replace("@", ".")])
        actions.append(
            {
                "act": "dispatch",
                "step": step["id"],
                "attempt": f"{name}-{number}",
                "key": key,
                "seat": seat,
                "item": item,
                "number": number,
                "reserved": dict(reserved),
                "time_left": left,
                "follows": unfinished(run, f"{name}-{number - 1}"),
            }
        )
    return actions


def _closing(pipeline: Pipeline, run: Run, step: Step, current_visit: CurrentVisit) -> list[Action]:
    """What comes after a DONE, then the end of the visit."""
    if step["after"] and outcome(pipeline, run)["name"] == "DONE":
        for action in step["after"]:
            if f"after:{action}" not in current_visit["done_actions"]:
                return [_do(step, action, f"after:{action}")]
    return [{"act": "conclude", "step": step["id"]}]


def _behind_waves(step: Step, current_visit: CurrentVisit) -> list[Action]:
    """What is done between two waves is done behind the last one, too: what its agents learned counts as much."""
    if step["kind"] != "waves" or not any(state["results"] for state in current_visit["seats"].values()):
        return []
    if lister_of(step) is not None and not current_visit["planned"]:
        return []
    for action in step["between"]:
        done = f"behind:{action}"
        if done not in current_visit["done_actions"]:
            return [_do(step, action, done)]
    return []


def _between(step: WavesStep, current_visit: CurrentVisit) -> list[Action]:
    """Between two waves, once the earlier one has ended and before the later one starts."""
    if not step["between"] or not current_visit["left"] or current_visit["busy"]:
        return []
    wave = current_visit["wave_of"][current_visit["left"][0]]
    if wave == 0 or any(current_visit["wave_of"][failed] < wave for failed in current_visit["stopped_by"]):
        return []
    for action in step["between"]:
        done = f"between:{wave}:{action}"
        if done not in current_visit["done_actions"]:
            return [_do(step, action, done)]
    return []
