"""Check a pipeline before anything starts.

    check(raw)         -> (pipeline, [])         the full record; records.py has its rules
    check(raw)         -> (None, problems)       everything that is wrong, each with its place and a way out
    stage_gates(p)     -> what must exist before each stage may be left

`raw` is plain data: mappings, lists, text, numbers, true/false, null. Null means "not given".

Rule 1: a wrong pipeline never starts. Unknown keys, steps, roles and files are refused by name.
Rule 2: nothing runs for ever. Going back needs a bound; only a person's wish has none.
Rule 3: one form. Shorthand and defaults are spelled out here, so nobody else has to know them,
and checking a checked pipeline changes nothing.
Rule 4: no expressions. A pipeline is data; what it cannot say in these words belongs in a role.

What only the whole pipeline shows.

Every step can be reached. Nothing runs for ever. No two places write one file. What is read was
written before. Counters that share a name share a bound.
"""

from __future__ import annotations

from tenuto.core.actions import CARRIED_OUT_BY, carries_out
from tenuto.core.pipeline import forms, params, results
from tenuto.core.pipeline.conditions import Scope, decided
from tenuto.core.pipeline.groups import READERS
from tenuto.core.pipeline.routes import Atlas, Setting, implied, read_on
from tenuto.core.pipeline.steps import INHERITED, budget, identifier, inspect, read_step
from tenuto.core.pipeline.values import View, did_you_mean, meet, near_word, read, read_one
from tenuto.core.status import WELL
from tenuto.names import DIALECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from tenuto.core.pipeline.records import (
        ActionName,
        Budget,
        GoOn,
        Outcome,
        Pipeline,
        PlannedChecks,
        Problem,
        Route,
        Seat,
        Setup,
        StageGate,
        Step,
    )
    from tenuto.core.records.run import Json, Run


def planned_checks(pipeline: Pipeline, commands: Mapping[str, str]) -> PlannedChecks:
    """`commands`: the settings' checks. A step that is a command of the project checks, too."""
    known: list[str] = []
    missing: list[str] = []
    for seat in [seat for step in pipeline["steps"] for seat in seats(step)]:
        if seat["command"] is not None:
            known.append(" ".join(seat["command"]["run"]))
        for check in seat["checks"]:
            command = check["run"] or commands.get(check["name"], "")
            (known if command else missing).append(command or check["name"])
    return {"commands": list(dict.fromkeys(known)), "left_out": list(dict.fromkeys(missing))}


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
        if step["waves"]["each"] and step["waves"]["each"]["seat"]:
            yield step["waves"]["each"]["seat"]
        yield from step["waves"]["seats"]


def actions(step: Step) -> Iterator[tuple[str, ActionName]]:
    """Every action of a step, with the key it stands under."""
    for action in step["before"]:
        yield "before", action
    if step["kind"] == "action":
        for action in step["action"]:
            yield "action", action
    if step["kind"] == "waves":
        for action in step["between"]:
            yield "between", action
    for action in step["after"]:
        yield "after", action


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
    """The ways forward that are not its DONE: a leg that is DONE leads to the next leg instead."""
    for outcome in outcomes(step, but="DONE"):
        if outcome["do"] == "go_on":
            yield outcome


def complete(steps: list[Step]) -> None:
    """What follows from all routes together: the modes they use, the counters a restart resets."""
    by_id = {step["id"]: step for step in steps}
    for step in steps:
        for route in routes(step):
            for leg in route["route"]:
                there = by_id[leg["step"]]
                if there["kind"] == "agent" and leg["mode"] and leg["mode"] not in there["modes"]:
                    there["modes"][leg["mode"]] = {**there["agent"], "mode": leg["mode"]}
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


def check_graph(
    view: View, pipeline: Pipeline, roles: Collection[str] | Mapping[str, Collection[str] | None] | None
) -> None:
    """Once every step is sound by itself, and names only steps and roles that there are."""
    steps = [(view.get("steps").at(index, None), step) for index, step in enumerate(pipeline["steps"])]
    _reach(steps)
    _counters(steps)
    _gates(steps)
    forms.check(view.get("steps"), pipeline["steps"])
    _memory(view, steps, pipeline)
    _actions(steps, pipeline)
    _outputs(steps)
    _inputs(steps, pipeline)
    results.check(view.get("steps"), pipeline["steps"], ways(pipeline["steps"]))
    _evidence(steps)
    _stages(steps)
    _budgets(view, steps, pipeline)
    if isinstance(roles, dict):
        _modes(steps, roles)


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
                waiting += [leg["step"] for leg in outcome["route"]]
    for view, step in steps:
        if step["id"] not in reached:
            hint = "let a route name it" if step["aside"] else "let an earlier step go on to it, or remove it"
            view.note("unreachable", f"no way leads to '{step['id']}'", hint)
    if steps[0][1]["aside"]:
        steps[0][0].note("contradiction", "the first step cannot be aside", "move it behind another")


def ways(steps: list[Step]) -> dict[str, list[str]]:
    """From each step to those that can follow it at once."""
    found: dict[str, list[str]] = {}
    for step in steps:
        own = found.setdefault(step["id"], [])
        for outcome in outcomes(step):
            if outcome["do"] == "go_on":
                own.append(outcome["to"])
            elif outcome["do"] == "route":
                legs = [leg["step"] for leg in outcome["route"]]
                own += legs[:1]
                for number, leg in enumerate(legs[:-1], 1):
                    found.setdefault(leg, []).append(legs[number])
    return found


def _gates(steps: list[tuple[View, Step]]) -> None:
    """By its name a gate is known as approved: one name for two would let an approval of the first open the second.
    And no way leads past one."""
    known: dict[str, str] = {}
    order = [step["id"] for _, step in steps]
    for place, (view, step) in enumerate(steps):
        if step["kind"] == "gate" and known.setdefault(step["gate"]["name"], step["id"]) != step["id"]:
            message = f"two gates are called '{step['gate']['name']}'"
            view.get("gate").note("duplicate", message, "give one of them another name")
        for outcome in outcomes(step):
            if outcome["do"] != "go_on":
                continue
            passed = [
                one["id"]
                for _, one in steps[place + 1 : order.index(outcome["to"])]
                if one["kind"] == "gate" and not one["aside"]
            ]
            if passed:
                message = f"'{step['id']}' goes on to '{outcome['to']}', past the gate '{passed[0]}'"
                view.note("past-a-gate", message, f"go on to {passed[0]}: it is open where its switch is off")


def _memory(view: View, steps: list[tuple[View, Step]], pipeline: Pipeline) -> None:
    """initial-request.md and memory.md are files of feature_docs, in its own folder: elsewhere nobody would write
    them, or undo a change."""
    if "feature_docs" in pipeline["shown_as"] and pipeline["documents"] == "docs/feature/{slug}":
        return
    hint = "shown_as: feature_docs, and documents: docs/feature/{slug}"
    if pipeline["memory"] == "run":
        view.get("memory").note("contradiction", "the memory of a run is a file of feature_docs", hint)
    for own, step in steps:
        for place, action in actions(step):
            if CARRIED_OUT_BY[action] == "feature_docs":
                own.get(place).note("contradiction", f"{action} writes a file of feature_docs", hint)


def _actions(steps: list[tuple[View, Step]], pipeline: Pipeline) -> None:
    """What nothing carries out would be recorded as done."""
    for view, step in steps:
        for place, action in actions(step):
            by = CARRIED_OUT_BY[action]
            if by != "feature_docs" and not carries_out(action, pipeline["shown_as"]):
                message = f"nothing carries out {action}: that is the dialect {by}, and the pipeline is not shown as it"
                view.get(place).note("contradiction", message, f"shown_as: {by}")


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
    exactly = dict.fromkeys(written)  # most are written under the very name: patterns are tried for the others
    for view, step in steps:
        for path in inputs_of(step):
            if path not in exactly and not any(meet(path, other) for other in written):
                view.note("unknown-input", f"'{step['id']}' reads '{path}', which nothing writes", _hint(path, written))


def inputs_of(step: Step) -> list[str]:
    """The documents that it reads, or may read."""
    wanted = [path for seat in seats(step) for path in [*seat["in"], *seat["if_present"]]]
    if step["kind"] == "gate":
        wanted += step["gate"]["show"]
    elif step["kind"] == "waves":
        wanted += [*step["waves"]["plan"], *([step["waves"]["items"]] if step["waves"]["items"] else [])]
        each = step["waves"]["each"]
        wanted += [name for name in (each["lines"], each["table"]) if name] if each else []
    return list(dict.fromkeys(wanted))


def _hint(path: str, written: list[str]) -> str:
    if near_word(path, written):
        return did_you_mean(path, written)
    known = f"; {did_you_mean(path, written)}" if written else ""
    return (
        "list it under `existing` if it is there before the run; a file of the repository is handed in by a parameter "
        f"of type file{known}"
    )


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


def _modes(steps: list[tuple[View, Step]], roles: Mapping[str, Collection[str] | None]) -> None:
    """None: another program's agent, whose modes are not declared."""
    for view, step in steps:
        for seat in seats(step):
            if seat["command"] is not None:
                continue
            known = roles[seat["role"]]
            if known is not None and seat["mode"] not in known:
                shown = [mode for mode in known if mode]
                message = f"the role '{seat['role']}' has no mode '{seat['mode']}'"
                view.note(
                    "unknown-mode", message, did_you_mean(seat["mode"], shown) if shown else "it has one mode only"
                )


# ---- pipeline ------------------------------------------------------------


LANGUAGE = 3
MOST_STEPS = 500
_KEYS = (
    "language",
    "name",
    "description",
    "shown_as",
    "documents",
    "mode",
    "starts_from",
    "finish",
    "cap",
    "workspace",
    "setup",
    "memory",
    "params",
    "switches",
    "given",
    "existing",
    "skips",
    "budget",
    "settings",
    "defaults",
    "steps",
)


def check(
    raw: object, roles: Collection[str] | Mapping[str, Collection[str] | None] | None = None
) -> tuple[Pipeline | None, list[Problem]]:
    """`roles` are the names that exist, or each name with its modes ("" is the plain one)."""
    problems: list[Problem] = []
    view = View(raw, (), problems)
    if not view.is_mapping("a pipeline", _KEYS):
        return None, problems
    pipeline = _top(view)
    answers = forms.declared(view.get("steps"))
    scope = Scope(pipeline["switches"], pipeline["params"], _names(view.get("steps")), answers)
    setting = Setting(view.get("defaults"), pipeline["given"], roles, pipeline["settings"], scope)
    if view.has("defaults"):
        view.get("defaults").is_mapping("`defaults`", INHERITED)
        inspect(view.get("defaults"))
    found = _steps(view.get("steps"), setting)
    pipeline["steps"] = [step for _, step in found]
    checked: Pipeline = pipeline  # type: ignore[assignment]  # its last key was read with the steps
    if not problems:  # routes over half-read steps would only report the same thing twice
        atlas = Atlas(checked["steps"], checked["finish"], scope)
        for there, step in found:
            on: Any = read_on(there.get("on"), step, atlas, implied(there, step, setting))
            step["on"] = on
    if not problems:
        complete(checked["steps"])
        check_graph(view, checked, roles)
    if problems:
        return None, _once(problems)
    return _own(checked), []


def documents_of(pipeline: Pipeline, run: Run) -> str:
    """The folder of a run's documents: where it was led by hand before, if that has another name."""
    told = run["settings"].get("documents")
    return str(told) if told else pipeline["documents"].replace("{slug}", run["id"])


def stage_gates(
    pipeline: Pipeline, switches: Mapping[str, bool] | None = None, skipped: Collection[str] = ()
) -> list[StageGate]:
    """For each stage with evidence: what it must leave behind, and which step does. Skipped steps prove nothing."""
    on = {**pipeline["switches"], **(switches or {})}
    running = [
        step for step in pipeline["steps"] if decided(step["when"], on) is not False and step["id"] not in skipped
    ]
    order = list(dict.fromkeys(step["stage"] for step in running if step["stage"] and not step["aside"]))
    found: list[StageGate] = []
    for index, stage in enumerate(order):
        proving = [step for step in running if step["stage"] == stage and step["evidence_for_next"]]
        if proving:
            required = list(dict.fromkeys(path for step in proving for path in step["evidence_for_next"]))
            following = order[index + 1] if index + 1 < len(order) else "COMPLETE"
            found.append({"stage": stage, "next": following, "required": required, "step": proving[-1]["id"]})
    return found


def _top(view: View) -> Json:
    language = view.get("language").number("the language", LANGUAGE, least=1)
    if language > LANGUAGE:
        view.get("language").note(
            "newer-language", f"this is language {language}; known is {LANGUAGE}", "upgrade, or rewrite it"
        )
    if not view.has("name"):
        view.note("missing", "a pipeline needs a name", "for example name: my-pipeline")
    mode = view.get("mode").choice("the mode", ("standard", "poc"), "standard")
    finish = view.get("finish").choice("the end", WELL, "completed")
    starts = view.get("starts_from").choice("the start", ("new", "poc-complete"), "new")
    if finish == "poc-complete" and mode != "poc":
        view.get("finish").note("contradiction", "only mode: poc can end as poc-complete", "mode: poc")
    if (finish == "graduated") != (starts == "poc-complete"):
        view.get("finish").note("contradiction", "what graduates starts from poc-complete, and the other way round")
    settings = view.get("settings").value
    if settings is not None and not isinstance(settings, dict):
        view.get("settings").note("wrong-type", "settings must be a mapping")
    return {
        "language": LANGUAGE,
        "name": identifier(view.get("name"), "the name of a pipeline", "unnamed"),
        "description": view.get("description").text("the description"),
        "shown_as": view.get("shown_as").words("a dialect", DIALECTS),
        "documents": _documents(view.get("documents")),
        "mode": mode,
        "starts_from": starts,
        "finish": finish,
        "cap": view.get("cap").number("the cap", 4, least=1, most=1000),
        "workspace": view.get("workspace").choice("the workspace", ("shared", "worktree"), "shared"),
        "setup": _setup(view.get("setup")),
        "memory": view.get("memory").choice("memory", ("run", "none"), "none"),
        "params": params.read(view.get("params")),
        "switches": _switches(view.get("switches")),
        "given": read(view.get("given"), "a given document"),
        "existing": read(view.get("existing"), "an existing document"),
        "skips": view.get("skips").words("a skipped phase"),
        "budget": budget(view.get("budget")),
        "settings": settings if isinstance(settings, dict) else {},
        "steps": [],
    }


def _documents(view: View) -> str:
    if isinstance(view.value, str) and view.value.strip("/"):  # a folder may be written like one: docs/
        view = View(view.value.rstrip("/"), view.path, view.problems)
    return "." if view.value == "." else read_one(view, "the documents' folder", "docs/feature/{slug}")


def _setup(view: View) -> Setup:
    if view.value is not None:
        view.is_mapping("the set-up", ("run", "copy"))
    return {"run": view.get("run").words("a command"), "copy": read(view.get("copy"), "a file to copy")}


def _switches(view: View) -> dict[str, bool]:
    """`approval` always exists, and is off unless the run asks for it."""
    found = {"approval": False}
    if view.value is not None and not isinstance(view.value, dict):
        view.note("wrong-type", "switches must be a mapping", "for example {tests: true}")
    for name, value in view.fields():
        if name == "always":
            value.note("contradiction", "`always` is no switch", "choose another name")
        found[name] = value.flag(f"the switch {name}", False)
    return found


def _steps(view: View, setting: Setting) -> list[tuple[View, Step]]:
    entries = view.entries() if isinstance(view.value, list) else []
    if not entries:
        view.note("missing", "a pipeline needs steps", "for example steps: [{id: work, agent: {role: implementer}}]")
    if len(entries) > MOST_STEPS:
        view.note("out-of-range", f"a pipeline has at most {MOST_STEPS} steps, not {len(entries)}")
        return []
    found: list[tuple[View, Step]] = []
    seen: list[str] = []
    for position, entry in enumerate(entries, 1):
        step = read_step(entry, position, setting, READERS)
        if step is None:
            continue
        if step["id"] in seen:
            entry.get("id").note("duplicate", f"two steps are called '{step['id']}'", "rename one of them")
        seen.append(step["id"])
        found.append((entry, step))
    return found


def _names(view: View) -> list[str]:
    return [entry.value["id"] for entry in view.entries() if isinstance(entry.value, dict) and "id" in entry.value]


def _once(problems: list[Problem]) -> list[Problem]:
    """A wrong default is seen by everyone who inherits it; say it once."""
    kept: list[Problem] = []
    for problem in problems:
        if problem not in kept:
            kept.append(problem)
    return kept


def _own(pipeline: Pipeline) -> Pipeline:
    """A deep copy: the checked pipeline shares nothing with what was read, nor with itself."""
    return _copy(pipeline)  # type: ignore[return-value]  # every part of it was checked


def _copy(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
