"""What only the whole pipeline shows.

Every step can be reached. Nothing runs for ever. No two places write one file. What is read was
written before. Counters that share a name share a bound.
"""

from __future__ import annotations

from tenuto.core.definition import paths
from tenuto.core.definition.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from tenuto.core.pipeline_records import Budget, GoOn, Outcome, Pipeline, Route, Seat, Step


def seats(step: Step) -> Iterator[Seat]:
    """Every seat of a step, its modes too."""
    if step["kind"] == "agent":
        yield step["agent"]
        yield from step["modes"].values()
    elif step["kind"] == "cluster":
        if step["cluster"]["first"]:
            yield step["cluster"]["first"]
        yield from step["cluster"]["members"]
        if step["aggregate"]:
            yield step["aggregate"]
    elif step["kind"] == "waves":
        yield from step["waves"]["seats"]


def outcomes(step: Step, but: str = "") -> Iterator[Outcome]:
    """Everything that can follow a step, however deep it stands."""
    waiting = [outcome for name, outcome in step["on"].items() if name != but]
    while waiting:
        outcome = waiting.pop(0)
        yield outcome
        if outcome["do"] == "route":
            waiting += [nested for nested in (outcome["then"], outcome["otherwise"]) if nested is not None]


def routes(step: Step) -> Iterator[Route]:
    for outcome in outcomes(step):
        if outcome["do"] == "route":
            yield outcome


def jumps(step: Step) -> Iterator[GoOn]:
    """The ways forward that are not its DONE: a hop that is DONE leads to the next hop instead."""
    for outcome in outcomes(step, but="DONE"):
        if outcome["do"] == "go_on":
            yield outcome


def complete(steps: list[Step]) -> None:
    """What follows from all routes together: the modes they use, the counters a restart resets."""
    by_id = {step["id"]: step for step in steps}
    for step in steps:
        for route in routes(step):
            for hop in route["route"]:
                there = by_id[hop["step"]]
                if there["kind"] == "agent" and hop["mode"] and hop["mode"] not in there["modes"]:
                    there["modes"][hop["mode"]] = {**there["agent"], "mode": hop["mode"]}
            if route["restart"] and not route["resets"]:
                route["resets"] = _stage_counters(steps, route["restart"])


def _stage_counters(steps: list[Step], stage: str) -> list[str]:
    found: list[str] = []
    for step in steps:
        if step["stage"] != stage or step["kind"] == "gate":
            continue
        coverage = step["on"].get("LOW_COVERAGE")
        fixed = {coverage["counter"]} if coverage and coverage["do"] == "route" else set()
        for route in routes(step):
            if not route["restart"] and route["counter"] not in fixed and route["counter"] not in found:
                found.append(route["counter"])
    return found


def check(view: View, pipeline: Pipeline, roles: Collection[str] | Mapping[str, Collection[str]] | None) -> None:
    """Once every step is sound by itself, and names only steps and roles that there are."""
    steps = [(view.get("steps").at(index, None), step) for index, step in enumerate(pipeline["steps"])]
    _reach(steps)
    _counters(steps)
    _gates(steps)
    _memory(view, steps, pipeline)
    _outputs(steps)
    _inputs(steps, pipeline)
    _evidence(steps)
    _stages(steps)
    _budgets(view, steps, pipeline)
    if hasattr(roles, "items"):
        modes: Any = roles
        _modes(steps, modes)


def _reach(steps: list[tuple[View, Step]]) -> None:
    by_id = {step["id"]: step for _, step in steps}
    reached: dict[str, None] = {}
    waiting = [steps[0][1]["id"]]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached[here] = None
        for outcome in outcomes(by_id[here]):
            if outcome["do"] == "go_on":
                waiting.append(outcome["to"])
            elif outcome["do"] == "route":
                waiting += [hop["step"] for hop in outcome["route"]]
    for view, step in steps:
        if step["id"] not in reached:
            hint = "let a route name it" if step["aside"] else "let an earlier step go on to it, or remove it"
            view.note("unreachable", f"no way leads to '{step['id']}'", hint)
    if steps[0][1]["aside"]:
        steps[0][0].note("contradiction", "the first step cannot be aside", "move it behind another")


def _gates(steps: list[tuple[View, Step]]) -> None:
    """By its name a gate is known as approved: one name for two would let an approval of the first open the second. And no way leads past one."""
    known: dict[str, str] = {}
    order = [step["id"] for _, step in steps]
    for place, (view, step) in enumerate(steps):
        if step["kind"] == "gate" and known.setdefault(step["gate"]["name"], step["id"]) != step["id"]:
            message = f"two gates are called '{step['gate']['name']}'"
            view.get("gate").note("duplicate", message, "give one of them another name")
        for outcome in outcomes(step):
            if outcome["do"] != "go_on":
                continue
            passed = [one["id"] for _, one in steps[place + 1 : order.index(outcome["to"])] if one["kind"] == "gate" and not one["aside"]]
            if passed:
                message = f"'{step['id']}' goes on to '{outcome['to']}', past the gate '{passed[0]}'"
                view.note("past-a-gate", message, f"go on to {passed[0]}: it is open where its switch is off")


def _memory(view: View, steps: list[tuple[View, Step]], pipeline: Pipeline) -> None:
    """initial-request.md and memory.md are files of feature_docs, in its own folder: elsewhere nobody would write them, or undo a change."""
    if "feature_docs" in pipeline["shown_as"] and pipeline["documents"] == "docs/feature/{slug}":
        return
    hint = "shown_as: feature_docs, and documents: docs/feature/{slug}"
    if pipeline["memory"] == "run":
        view.get("memory").note("contradiction", "the memory of a run is a file of feature_docs", hint)
    for own, step in steps:
        for action in step["action"] if step["kind"] == "action" else []:
            if action in ("write-request", "initialize-memory"):
                own.get("action").note("contradiction", f"{action} writes a file of feature_docs", hint)


def _counters(steps: list[tuple[View, Step]]) -> None:
    bounds: dict[str, int | None] = {}
    for view, step in steps:
        for route in routes(step):
            known = bounds.setdefault(route["counter"], route["at_most"])
            if known != route["at_most"]:
                message = f"the counter '{route['counter']}' is bounded by {known} and by {route['at_most']}"
                view.note("contradiction", message, "give them one bound, or two counters")
    for view, step in steps:
        for route in routes(step):
            for counter in route["resets"]:
                if counter not in bounds:
                    view.note(
                        "unknown-counter", f"there is no counter '{counter}' to reset", did_you_mean(counter, bounds)
                    )
                elif counter == route["counter"]:
                    view.note("unbounded-route", f"the counter '{counter}' resets itself", "leave it out of `resets`")
    _reset_cycles(steps)


def _reset_cycles(steps: list[tuple[View, Step]]) -> None:
    """A resets B and B resets A would be a loop without end."""
    resets: dict[str, list[str]] = {}
    for _, step in steps:
        for route in routes(step):
            resets.setdefault(route["counter"], []).extend(route["resets"])
    for view, step in steps:
        for route in routes(step):
            seen: list[str] = []
            waiting = [counter for counter in resets[route["counter"]] if counter != route["counter"]]
            while waiting:
                counter = waiting.pop()
                if counter == route["counter"]:
                    view.note("unbounded-route", f"resets lead from '{counter}' back to itself", "break the circle")
                    return
                if counter not in seen:
                    seen.append(counter)
                    waiting += resets.get(counter, [])


def _outputs(steps: list[tuple[View, Step]]) -> None:
    """Only literal names: two globs that could meet are the authors' business."""
    writers: dict[str, str] = {}
    for view, step in steps:
        mine: dict[str, str] = {}
        for seat in seats(step):
            for path in [*seat["out"], *seat["optional"]]:
                other = writers.get(path) or (mine.get(path) if step["kind"] != "agent" else None)
                if other is not None:
                    message = f"'{path}' is written by '{other}' and by '{step['id']}/{seat['id']}'"
                    view.note("shared-output", message, "give each its own file")
                mine[path] = f"{step['id']}/{seat['id']}"
        if step["kind"] == "waves" and step["waves"]["record"]:
            mine[step["waves"]["record"]] = step["id"]
        writers.update(mine)


def _written(steps: list[tuple[View, Step]], pipeline: Pipeline) -> list[str]:
    found = [*pipeline["given"], *pipeline["existing"]]
    for _, step in steps:
        for seat in seats(step):
            found += [*seat["out"], *seat["optional"]]
        if step["kind"] == "waves" and step["waves"]["record"]:
            found.append(step["waves"]["record"])
    return found


def _inputs(steps: list[tuple[View, Step]], pipeline: Pipeline) -> None:
    written = _written(steps, pipeline)
    for view, step in steps:
        wanted = [path for seat in seats(step) for path in [*seat["in"], *seat["if_present"]]]
        if step["kind"] == "gate":
            wanted += step["gate"]["show"]
        elif step["kind"] == "waves":
            wanted += [*step["waves"]["plan"], *([step["waves"]["items"]] if step["waves"]["items"] else [])]
        for path in dict.fromkeys(wanted):
            if not any(paths.meet(path, other) for other in written):
                hint = (
                    did_you_mean(path, written) if written else "list it under `existing` if it is there before the run"
                )
                view.note("unknown-input", f"'{step['id']}' reads '{path}', which nothing writes", hint)


def _evidence(steps: list[tuple[View, Step]]) -> None:
    """Evidence may be named without its folder; the full path is what is kept."""
    written: list[str] = []
    for view, step in steps:
        for seat in seats(step):
            written += [path for path in [*seat["out"], *seat["optional"]] if path not in written]
        if step["kind"] == "waves" and step["waves"]["record"]:
            written.append(step["waves"]["record"])
        for index, path in enumerate(step["evidence_for_next"]):
            named = [full for full in written if full == path] or [
                full for full in written if full.endswith("/" + path)
            ]
            if len(named) != 1:
                message = f"'{path}' is evidence, but no step up to '{step['id']}' writes it"
                view.get("evidence_for_next").at(index, None).note(
                    "unknown-evidence", message, did_you_mean(path, written)
                )
            else:
                step["evidence_for_next"][index] = named[0]


def _stages(steps: list[tuple[View, Step]]) -> None:
    closed: list[str] = []
    current = ""
    for view, step in steps:
        if step["aside"] or step["stage"] == current:
            continue
        if step["stage"] and step["stage"] in closed:
            view.get("stage").note(
                "split-stage", f"the stage '{step['stage']}' was left before", "keep a stage's steps together"
            )
        closed.append(current)
        current = step["stage"]


def _budgets(view: View, steps: list[tuple[View, Step]], pipeline: Pipeline) -> None:
    whole = pipeline["budget"]
    for there, step in steps:
        own = _limits(step["budget"])
        for key, most in _limits(whole).items():
            mine = own[key]
            if most is not None and mine is not None and mine > most:
                there.get("budget").note(
                    "contradiction", f"the step may spend more {key} than the whole run", "lower it"
                )
    one, most = whole["attempt_micro_usd"], whole["micro_usd"]
    if one is not None and most is not None and one > most:
        view.get("budget").note(
            "contradiction", "one attempt reserves more money than the run has", "lower attempt_money"
        )


def _limits(budget: Budget) -> dict[str, int | None]:
    return {
        "attempts": budget["attempts"],
        "tokens": budget["tokens"],
        "money": budget["micro_usd"],
        "wall_clock": budget["wall_clock"],
    }


def _modes(steps: list[tuple[View, Step]], roles: Mapping[str, Collection[str]]) -> None:
    for view, step in steps:
        for seat in seats(step):
            known = roles[seat["role"]]
            if seat["mode"] not in known:
                shown = [mode for mode in known if mode]
                message = f"the role '{seat['role']}' has no mode '{seat['mode']}'"
                view.note(
                    "unknown-mode", message, did_you_mean(seat["mode"], shown) if shown else "it has one mode only"
                )
