"""Sub-pipelines: a pipeline as one step of another.

    - id: mend
      pipeline: bug-fix
      params: {module: "{params.target}", depth: 2}    what it asks for; values, or text with {answers...} and {each...}
      documents: mend                                  the folder of its documents; the id of the step unless given
      switches: {tests: false}                         how its switches are, unless the run says otherwise
      on: {ERROR: {route: [plan], at_most: 1}}         what follows where it would have failed the run

    handed_in(view, child name, params)  what the step gives for the parameters of the pipeline that it names
    embed(view, child, given, ...)       the steps that take its place, and what they need of the whole

The step is replaced when the definition is read, before it is checked as a whole. So a run, its plan, its budget, its
journal and everything that shows them know steps only, and a run never changes under an edited file.

Rule 1: a step of it is called after both: `mend.prove`. So are its gates, switches, counters and parameters.
Rule 2: its documents lie in a folder of their own. A document of the run is handed in by a parameter of type file.
Rule 3: where it would finish the run, the run goes on behind it: to the step that has the name of the whole, `mend`,
which has nothing to do. `{outcome: mend, is: DONE}` holds when the run came there. Where it would fail the run, the
step's `ERROR` follows instead, with one counter for all; a pause stays a pause.
Rule 4: `when` is asked once, before the first of its steps. What holds for the whole run (switches, parameters) is
asked at each of them, which is the same, and lets the plan see it.
Rule 5: cap, workspace, memory, mode, budget and dialects are those of the run. A pipeline that needs others is refused.
Rule 6: for every element of a list (`each`), its steps are agents and commands that work in turn. Ways back, gates and
conditions have no place there, and are refused.
"""

from __future__ import annotations

from tenuto.core.pipeline import params
from tenuto.core.pipeline.conditions import ALWAYS, decided
from tenuto.core.pipeline.values import View, did_you_mean, read_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypedDict

    from tenuto.core.pipeline.records import (
        ClusterStep,
        Each,
        Outcome,
        Param,
        ParamValue,
        PathPart,
        Pipeline,
        Seat,
        Step,
        StepInput,
        When,
    )
    from tenuto.core.records.run import Json

    Place = tuple[PathPart, ...]

    class HandedIn(TypedDict):
        values: dict[str, ParamValue]  # what the pipeline is filled with
        actual: dict[str, ParamValue]  # what these stand for
        documents: dict[str, str]  # of parameters of type file: the name in the pipeline -> the document of the run

    class Part(TypedDict):
        """One of the steps that take the place of another."""

        step: Json
        of: int | None  # its place among the steps of the sub-pipeline; None: it is made for the whole
        borrowed: dict[Place, Place]  # what in it was written in the step that was replaced, and where there

    class Embedded(TypedDict):
        parts: list[Part]
        params: dict[str, Json]
        switches: dict[str, bool]


DEEPEST = 4  # pipelines in each other
KEYS = (
    "id", "name", "stage", "type", "number", "phase", "aside", "when", "before", "after", "on", "evidence_for_next",
    "pipeline", "params", "switches", "documents", "each", "between",
)  # fmt: skip
BEGIN = "begin"  # the step that asks `when`: mend.begin
_OUTER = "{outer."
_LATER = ("{answers.", "{each.")
_STATIC = ("switch", "param", "all", "any", "not")


def name_in(step: object) -> str:
    """The pipeline that a step names, as it was read from its file; "" where it names none."""
    name = step.get("pipeline") if isinstance(step, dict) else None
    return name if isinstance(name, str) else ""


# ---- parameters ------------------------------------------------------------------------------------


def handed_in(view: View, child: str, declared: Mapping[str, Param]) -> HandedIn:
    """What is wrong with them is noted; what only the run will know stands as it is written."""
    own, given = view.get("params"), {}
    if own.value is not None and not isinstance(own.value, dict):
        own.note("wrong-type", "params must be a mapping", f"for example {{{next(iter(declared), 'target')}: web}}")
    for name, value in own.fields():
        if name not in declared or declared[name].get("fixed"):
            known = [one for one, param in declared.items() if not param.get("fixed")]
            value.note("unknown-parameter", f"'{child}' has no parameter '{name}'", did_you_mean(name, known))
        elif value.value is not None:
            problem = params.wrong(declared[name], value.value)
            if problem:
                value.note("wrong-value", f"'{name}' of '{child}': {problem}")
            else:
                given[name] = value.value
    lacking = [name for name in params.missing(declared, own.value if isinstance(own.value, dict) else {})]
    for name in lacking:
        hint = f"params: {{{name}: ...}}; it is {params.describe(declared[name])}"
        own.note("missing", f"'{child}' needs the parameter '{name}'", hint)
    actual, _ = params.complete(declared, given, "")
    documents = {_document(name): str(value) for name, value in actual.items() if declared[name]["type"] == "file"}
    found = {
        name: _document(name) if declared[name]["type"] == "file" else _later(value) for name, value in actual.items()
    }
    return {"values": found, "actual": actual, "documents": documents}


def _document(name: str) -> str:
    return f"the-document-{name}-of-the-run"


def _later(value: ParamValue) -> ParamValue:
    """What stands for something that only the run knows is not looked for inside the sub-pipeline."""
    if isinstance(value, list):
        return [str(_later(one)) for one in value]
    if isinstance(value, str):
        for mark in _LATER:
            value = value.replace(mark, _OUTER + mark[1:])
    return value


# ---- the steps -------------------------------------------------------------------------------------


def embed(view: View, child: Pipeline, given: HandedIn, position: int, parent: View) -> Embedded:
    """`view`: the step that names it. `parent`: the pipeline in which that stands, as it was read from its file."""
    view.is_mapping("a step with pipeline", KEYS)
    nothing: Embedded = {"parts": [], "params": {}, "switches": {}}
    own = view.get("id").value
    if not isinstance(own, str) or not own:
        view.note("missing", "a step needs an id", "for example id: research")
        return nothing
    before = len(view.problems)
    _fits_in(view.get("pipeline"), child, parent)
    names = _Names(view, own, child, given, position)
    names.check_switches()
    steps = _for_each(view, child, names) if view.has("each") else _in_line(view, child, names)
    found = nothing if len(view.problems) > before else steps
    return {**found, "params": names.declared(), "switches": names.switches()}


def _fits_in(view: View, child: Pipeline, parent: View) -> None:
    name = child["name"]
    for key, own, usual in (
        ("mode", child["mode"], "standard"),
        ("starts_from", child["starts_from"], "new"),
        ("finish", child["finish"], "completed"),
    ):
        if own != usual:
            message = f"'{name}' has {key}: {own}, and that belongs to a whole run"
            view.note("contradiction", message, "name another pipeline")
    budget = child["budget"]
    limits = [budget["attempts"], budget["tokens"], budget["micro_usd"], budget["wall_clock"]]
    if any(limit is not None for limit in limits):
        message = f"'{name}' has a budget, and a run has one only"
        view.note("contradiction", message, "say it in the pipeline that names it, or give its steps limits")
    if child["memory"] == "run" and parent.get("memory").value != "run":
        view.note("contradiction", f"'{name}' keeps a memory for its run, and this one keeps none", "memory: run")
    if child["workspace"] == "worktree" and parent.get("workspace").value != "worktree":
        view.note("contradiction", f"'{name}' works in work trees, and this run does not", "workspace: worktree")


def _in_line(view: View, child: Pipeline, names: _Names) -> Embedded:
    raw: Json = view.value if isinstance(view.value, dict) else {}
    when, aside, on = raw.get("when"), bool(raw.get("aside")), view.get("on")
    _check_on(on, aside)
    asks = when is not None and when != ALWAYS and not _is_static(when)
    condition: When | None = (
        None if when in (None, ALWAYS) else {"outcome": f"{names.own}.{BEGIN}", "is": "DONE"} if asks else when
    )
    common = {key: raw[key] for key in ("stage", "aside", "type", "phase") if raw.get(key) is not None}
    parts: list[Part] = []
    if asks or raw.get("before"):
        first = {
            **common,
            "id": f"{names.own}.{BEGIN}",
            "number": names.number,
            "action": [],
            "name": f"{names.title}: begins",
        }
        first |= {key: raw[key] for key in ("before",) if raw.get(key) is not None}
        first |= {"when": when} if when is not None else {}
        parts.append({"step": first, "of": None, "borrowed": {}})
    for index, step in enumerate(child["steps"]):
        made = names.step(step, raw.get("stage"))
        borrowed: dict[Place, Place] = {}
        if condition is not None:
            made["when"] = condition if made["when"] == ALWAYS else {"all": [condition, made["when"]]}
            borrowed[("when",)] = ("when",)
        made["on"], taken = _leads_on(view, names, step, made["on"], aside)
        borrowed |= taken
        parts.append({"step": {**made, "aside": aside or made["aside"]}, "of": index, "borrowed": borrowed})
    last = {**common, "id": names.own, "number": names.number, "action": [], "ends": child["name"], "name": names.title}
    last |= {key: raw[key] for key in ("after", "evidence_for_next") if raw.get(key) is not None}
    last |= {"on": {"DONE": on.value["DONE"]}} if on.has("DONE") and isinstance(on.value, dict) else {}
    last |= {"when": condition} if condition is not None else {}
    parts.append({"step": last, "of": None, "borrowed": {}})
    return {"parts": parts, "params": {}, "switches": {}}


def _check_on(on: View, aside: bool) -> None:
    if on.value is None:
        return
    on.is_mapping("`on` of a step with pipeline", ("DONE", "ERROR", "NOT_DONE"))
    if on.has("ERROR") and on.has("NOT_DONE"):
        on.get("NOT_DONE").note("contradiction", "`on` has NOT_DONE and also ERROR", "keep one of them")
    if aside and (on.has("ERROR") or on.has("NOT_DONE")):
        hint = "let the step that takes the route say it"
        on.note("contradiction", "a sub-pipeline that is aside has nothing that follows its ERROR", hint)


def _is_static(when: object) -> bool:
    """Is it about what holds for the whole run?"""
    if not isinstance(when, dict):
        return True
    if "all" in when or "any" in when:
        several = when.get("all", when.get("any"))
        return isinstance(several, list) and all(_is_static(one) for one in several)
    return _is_static(when["not"]) if "not" in when else any(word in when for word in _STATIC)


def _leads_on(
    view: View, names: _Names, step: Step, on: dict[str, Json], aside: bool
) -> tuple[dict[str, Json], dict[Place, Place]]:
    """What follows in the whole: behind the sub-pipeline instead of a good end, its `ERROR` instead of a bad one."""
    word = next((word for word in ("ERROR", "NOT_DONE") if view.get("on").has(word)), "")
    error = view.get("on").get(word).value if word else None
    found: dict[str, Json] = {}
    borrowed: dict[Place, Place] = {}

    def lead(outcome: Json, place: Place) -> Json:
        if outcome["do"] == "finish":
            if outcome["as"] != "completed":
                message = f"'{step['id']}' ends the run as {outcome['as']}"
                view.get("pipeline").note("contradiction", message, "name a pipeline that ends as completed")
            return {"do": "go_on", "to": names.own, "carry": ""}
        if outcome["do"] == "fail" and error is not None:
            borrowed[place] = ("on", word)
            return _counted(error, f"{names.own}.ERROR")
        if outcome["do"] == "route":
            nested = {key: lead(outcome[key], (*place, key)) for key in ("then", "otherwise") if outcome[key]}
            return {**outcome, **nested}
        return outcome

    for name, outcome in on.items():
        found[name] = lead(outcome, ("on", name))
        if aside and outcome["do"] in ("go_on", "finish"):
            following = names.following(step)
            if name != "DONE" or found[name]["to"] not in (names.own, following):
                message = f"'{step['id']}' of '{names.child['name']}' jumps forward, which it cannot where it is aside"
                view.get("aside").note("contradiction", message, "put it on the way, with a `when`")
            found.pop(name)
    return found, borrowed


def _counted(outcome: object, counter: str) -> Json:
    """An outcome as its author wrote it, with one counter wherever it is taken."""
    if not isinstance(outcome, dict):
        return outcome  # type: ignore[return-value]  # a word like pause, which has no counter
    made = dict(outcome)
    if "counter" not in made and ("route" in made or "restart" in made):
        made["counter"] = counter
    for key in ("then", "otherwise"):
        if key in made:
            made[key] = _counted(made[key], f"{counter}.{key}")
    return made


# ---- for every element -----------------------------------------------------------------------------


def _for_each(view: View, child: Pipeline, names: _Names) -> Embedded:
    place = view.get("pipeline")
    raw: Json = view.value if isinstance(view.value, dict) else {}
    found: list[Json] = []
    for step in child["steps"]:
        fixed = {name: one["default"] for name, one in child["params"].items() if one["default"] is not None}
        runs = decided(step["when"], None, {**fixed, **names.given["actual"]})
        if runs is False:
            continue
        problem = _out_of_turn(step, runs)
        if problem:
            message = f"'{child['name']}' cannot be done for every element: '{step['id']}' {problem}"
            place.note("not-in-turn", message, "its steps must be agents and commands, one after the other")
        elif step["kind"] == "agent":
            found.append({**names.seat(step["agent"]), "id": step["id"]})
    kept = {key: raw[key] for key in raw if key not in ("pipeline", "params", "switches", "documents")}
    made: Part = {"step": {**kept, "in_turn": found}, "of": None, "borrowed": {("in_turn",): ("pipeline",)}}
    return {"parts": [made], "params": {}, "switches": {}}


def _out_of_turn(step: Step, runs: bool | None) -> str:
    """Why a step cannot be one of those that work on an element in turn."""
    if step["kind"] != "agent":
        return f"is a step with {step['kind']}"
    if step["aside"]:
        return "is aside"
    if runs is None:
        return "has a condition that only the run can answer"
    if step["rule"] != "word" or step["modes"]:
        return "has modes, or a rule of its own"
    if step["before"] or step["after"]:
        return "has actions of the engine before or after it"
    for name, outcome in step["on"].items():
        if name == "DONE" or outcome["do"] == "fail":
            continue
        return f"leads to a {outcome['do']} after {name}"
    return ""


# ---- names -----------------------------------------------------------------------------------------


class _Names:
    """What everything in a sub-pipeline is called in the whole."""

    def __init__(self, view: View, own: str, child: Pipeline, given: HandedIn, position: int) -> None:
        self.view = view
        self.own = own
        self.child = child
        self.given = given
        self.prefix = f"{own}."
        self.number = view.get("number").text("the number", str(position))
        self.title = view.get("name").text("the name", own.replace("-", " ").replace("_", " ").capitalize())
        usual = f"{own}/{{item}}" if view.has("each") else own
        folder = view.get("documents")
        self.folder = "" if folder.value == "." else read_one(folder, "the folder of its documents", usual)
        self.asked: dict[str, None] = {}

    def following(self, step: Step) -> str:
        ids = [one["id"] for one in self.child["steps"]]
        place = ids.index(step["id"]) + 1
        return self.prefix + ids[place] if place < len(ids) else self.own

    # ---- of the whole

    def declared(self) -> dict[str, Json]:
        """Its parameters, as far as the run must know them: those that conditions and lists ask about."""
        found: dict[str, Json] = {}
        for name in self.asked:
            param = self.child["params"][name]
            value = param["default"] if param.get("fixed") else self.given["actual"].get(name)
            if _is_later(value):
                message = f"'{self.child['name']}' asks about '{name}' before the run can know it"
                self.view.get("params").get(name).note(
                    "too-early", message, "give it a value that is known from the start"
                )
                value = None
            found[self.prefix + name] = {**param, "default": value, "fixed": True, "required": False}
        return found

    def check_switches(self) -> None:
        view, known = self.view.get("switches"), [name for name in self.child["switches"] if name != "approval"]
        if view.value is not None and not isinstance(view.value, dict):
            view.note("wrong-type", "switches must be a mapping", "for example {tests: true}")
        for name, value in view.fields():
            value.flag(f"the switch {name}", False)
            if name not in known:
                hint = did_you_mean(name, known) or "it has none"
                value.note("unknown-switch", f"'{self.child['name']}' has no switch '{name}'", hint)

    def switches(self) -> dict[str, bool]:
        said = dict(self.view.get("switches").fields())
        return {
            self.prefix + name: bool(said[name].value) if name in said else on
            for name, on in self.child["switches"].items()
            if name != "approval"
        }

    # ---- of one step

    def step(self, step: Step, stage: object) -> Json:
        made: Json = {
            **step,
            "phase": self.view.get("phase").value,  # of the whole's; left out: by its number
            "id": self.prefix + step["id"],
            "number": f"{self.number}.{step['number']}",
            "stage": stage if stage is not None else step["stage"],
            "when": self.when(step["when"]),
            "on": {name: self.outcome(outcome, stage) for name, outcome in step["on"].items()},
            "evidence_for_next": self.paths(step["evidence_for_next"]),
            "budget": self.budget(step),
        }
        if step["kind"] == "agent":
            made["agent"] = self.seat(step["agent"])
            made["modes"] = {name: self.seat(seat) for name, seat in step["modes"].items()}
        elif step["kind"] == "cluster":
            made |= self.cluster(step)
        elif step["kind"] == "waves":
            waves = step["waves"]
            made["waves"] = {
                **waves,
                "plan": self.paths(waves["plan"]),
                "items": self.path(waves["items"]),
                "record": self.path(waves["record"]),
                "seats": [self.seat(seat) for seat in waves["seats"]],
                "each": self.each(waves["each"]) if waves["each"] else None,
                "strict": self.when(waves["strict"]) if isinstance(waves["strict"], str) else waves["strict"],
            }
        elif step["kind"] == "gate":
            gate = step["gate"]
            made["gate"] = {
                **gate,
                "name": self.prefix + gate["name"],
                "prompt": self.text(gate["prompt"]),
                "show": self.paths(gate["show"]),
            }
        return made

    def cluster(self, step: ClusterStep) -> Json:
        cluster, last = step["cluster"], step["aggregate"]
        first = cluster["first"]
        members = [self.seat(seat) for seat in cluster["members"]]
        return {
            "cluster": {**cluster, "first": self.seat(first) if first else None, "members": members},
            "aggregate": self.seat(last) if last else None,
        }

    def budget(self, step: Step) -> Json:
        """What an attempt sets aside stands in the pipeline for all steps that do not say otherwise."""
        own, whole = step["budget"], self.child["budget"]
        return {
            **own,
            "attempt_tokens": own["attempt_tokens"] or whole["attempt_tokens"],
            "attempt_micro_usd": own["attempt_micro_usd"] or whole["attempt_micro_usd"],
        }

    def seat(self, seat: Seat) -> Json:
        command, result = seat["command"], seat["result"]
        made: Json = {**seat, "focus": self.text(seat["focus"]), "task": self.text(seat["task"])}
        made["when"] = self.when(seat["when"])
        for key, paths in (
            ("in", seat["in"]),
            ("if_present", seat["if_present"]),
            ("out", seat["out"]),
            ("optional", seat["optional"]),
            ("append_only", seat["append_only"]),
        ):
            made[key] = self.paths(paths)
        made["touches"] = [self.text(path) for path in seat["touches"]]
        made["context"] = [one if isinstance(one, str) else self.input(one) for one in seat["context"]]
        if command is not None:
            env = {name: self.text(value) for name, value in command["env"].items()}
            words = [self.text(word) for word in command["run"]]
            made["command"] = {**command, "run": words, "env": env, "stdout": self.path(command["stdout"])}
        if result is not None:
            made["result"] = {**result, "file": self.path(result["file"])}
        return made

    def input(self, entry: StepInput) -> Json:
        return {word: self.prefix + str(name) for word, name in entry.items()}

    def each(self, each: Each) -> Json:
        if each["param"]:
            self.asked[each["param"]] = None
        return {
            **each,
            "param": self.prefix + each["param"] if each["param"] else "",
            "result": self.prefix + each["result"] if each["result"] else "",
            "lines": self.path(each["lines"]),
            "table": self.path(each["table"]),
            "files": self.text(each["files"]),
            "seat": self.seat(each["seat"]) if each["seat"] else None,
            "when": self.when(each["when"]),
        }

    def outcome(self, outcome: Outcome, stage: object) -> Json:
        if outcome["do"] == "go_on":
            return {**outcome, "to": self.prefix + outcome["to"]}
        if outcome["do"] != "route":
            return {**outcome}
        then, otherwise = outcome["then"], outcome["otherwise"]
        return {
            **outcome,
            "then": self.outcome(then, stage) if then else None,
            "otherwise": self.outcome(otherwise, stage) if otherwise else None,
            "route": [{**leg, "step": self.prefix + leg["step"]} for leg in outcome["route"]],
            "counter": self.prefix + outcome["counter"],
            "resets": [self.prefix + counter for counter in outcome["resets"]],
            "with": self.paths(outcome["with"]),
            "when": self.when(outcome["when"]),
            "restart": stage if outcome["restart"] and stage is not None else outcome["restart"],
        }

    def when(self, when: When) -> When:
        if isinstance(when, str):
            return when if when in (ALWAYS, "approval") else self.prefix + when
        if "all" in when:
            return {"all": [self.when(one) for one in when["all"]]}
        if "any" in when:
            return {"any": [self.when(one) for one in when["any"]]}
        if "not" in when:
            return {"not": self.when(when["not"])}
        if "exists" in when:
            return {"exists": self.path(when["exists"])}
        if "switch" in when:
            name = self.when(when["switch"])
            return {"switch": name if isinstance(name, str) else when["switch"]}
        if "param" in when:
            self.asked[when["param"]] = None
            return {**when, "param": self.prefix + when["param"]}
        if "outcome" in when:
            return {**when, "outcome": self.prefix + when["outcome"]}
        if "result" in when:
            return {**when, "result": self.prefix + when["result"]}
        if "answer" in when:
            return {**when, "answer": self.prefix + when["answer"]}
        return when

    def text(self, text: str) -> str:
        text = text.replace("{answers.", "{answers." + self.prefix).replace(_OUTER, "{")
        for name, document in self.given["documents"].items():
            text = text.replace(name, document)
        return text

    def path(self, path: str) -> str:
        if not path:
            return ""
        if any(name in path for name in self.given["documents"]):
            return self.text(path)
        return f"{self.folder}/{path}" if self.folder else path

    def paths(self, paths: Sequence[str]) -> list[str]:
        return [self.path(path) for path in paths]


def _is_later(value: ParamValue | None) -> bool:
    texts: Iterator[str] = iter(value if isinstance(value, list) else [value] if isinstance(value, str) else [])
    return any(mark in text for text in texts for mark in _LATER)
