"""The five kinds of step: from shorthand to the full record, everything but `on`. `each` makes waves of three of them.

What a step is follows from the one key it has: agent, cluster, waves, gate or action.
`review`, `coverage` and a gate's `revise` are shorthand for routes; reviews.py spells them out.

An agent's place in a step: from shorthand to the full record.

    "ct-security"                                       the role's name alone
    {role: researcher, focus: impact, out: impact.md}   with its own settings

Settings that are not the seat's own come from the first layer that has them: the cluster, the
step, the pipeline's defaults, the language's defaults. A layer replaces, it never merges.
"""

from __future__ import annotations

from tenuto.core.actions import CARRIED_OUT_BY
from tenuto.core.pipeline import conditions, each, forms, results, routes, values
from tenuto.core.pipeline.routes import Setting
from tenuto.core.pipeline.values import View, did_you_mean, near_word
from tenuto.core.status import VERDICTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from tenuto.core.pipeline.records import Budget, Check, Command, Each, Retry, Seat, Step, StepInput, Verdict, When
    from tenuto.core.records.run import Json

    Reader = Callable[["View", "View | None", Json, "Terms", Setting], None]


INHERITED = ("retry", "transient", "time_limit", "question", "questions", "checks", "touches", "verdicts", "program")
KEYS = (
    "id",
    "role",
    "mode",
    "focus",
    "task",
    "in",
    "if_present",
    "context",
    "out",
    "optional",
    "append_only",
    "memory",
    "weight",
    "command",
    "context_budget",
    "result",
    "when",
    *INHERITED,
)
CONTEXT = ("review-tier", "git-diff", "item", "answers", "project-memory")
COMMAND = "command"  # the role of a program of the project
CONTEXT_BUDGET = 40_000  # tokens
QUESTIONS = 3  # `question: true`
_OURS = "TENUTO_"
TRANSIENT = 2


class Terms:
    """What a place in a step means for whoever sits there."""

    __slots__ = ("each", "given", "in_waves", "layers", "may_revise", "parallel", "roles", "scope")

    def __init__(
        self,
        layers: list[View],
        roles: Collection[str] | None,
        given: list[str],
        parallel: bool = False,
        in_waves: bool = False,
        may_revise: bool = False,
        each: Each | None = None,
        scope: conditions.Scope | None = None,
    ) -> None:
        """`scope`: what a condition of the seat may name; None where it can have none."""
        self.each = each
        self.scope = scope
        self.layers = layers
        self.roles = roles
        self.given = given
        self.parallel = parallel
        self.in_waves = in_waves
        self.may_revise = may_revise


def read_seat(view: View, terms: Terms, extra: tuple[str, ...] = ()) -> Seat:
    """`extra` are keys that the caller reads from the same mapping."""
    if isinstance(view.value, str):
        view = View({"role": view.value}, view.path, view.problems)
    if not view.is_mapping("an agent", (*KEYS, *extra)):
        view = View({"role": "?"}, view.path, [])  # noted once; what follows from it is noise
    command = _command(view.get("command"))
    seat: Any = {
        "role": _role(view, terms) if command is None else COMMAND,
        "command": command,
        "mode": view.get("mode").text("the mode"),
        "focus": view.get("focus").text("the focus"),
        "task": view.get("task").text("the task"),
        "id": "",
        "in": _inputs(view, terms),
        "if_present": values.read(view.get("if_present"), "an input"),
        "context": _context(view, terms),
        "context_budget": view.get("context_budget").number("the context budget", CONTEXT_BUDGET, 100, 1_000_000),
        "out": values.read(view.get("out"), "an output"),
        "optional": values.read(view.get("optional"), "an optional output"),
        "append_only": values.read(view.get("append_only"), "an append-only output"),
        "memory": view.get("memory").choice("memory", ("read", "write"), "read"),
        "weight": view.get("weight").choice("the weight", ("blocking", "normal", "never-blocks"), "normal"),
        **settings(view, terms),
        "result": results.read(view.get("result")),
        "when": _when(view.get("when"), terms),
    }
    if seat["result"] and seat["result"]["file"] not in ("", *seat["out"]):
        seat["out"].append(seat["result"]["file"])
    # A focus of one word tells members apart; a sentence is no name.
    plain = seat["role"] + ("-" + seat["focus"] if _fits_id(seat["focus"]) else "")
    if command is not None:
        plain = _of_command(view, seat, command)
    seat["id"] = identifier(view.get("id"), "the id of an agent", plain)
    _contradictions(view, seat, terms)
    each.check_seat(view, seat, terms.each, terms.in_waves)
    checked: Seat = seat
    return checked


def _when(view: View, terms: Terms) -> When:
    if terms.scope is not None:
        return conditions.read(view, terms.scope)
    if view.value not in (None, conditions.ALWAYS):
        view.note("bad-place", "only a step, and a member of a cluster, have a `when`", "say it of the step")
    return conditions.ALWAYS


def _command(view: View) -> Command | None:
    """[make, test], or {run: [make, test], env: {CI: "1"}, exits: {2: NEEDS_REVISION}, stdout: tests.txt}."""
    if view.value is None:
        return None
    own = view if isinstance(view.value, dict) else view.at_same({"run": view.value})
    own.is_mapping("a command", ("run", "env", "exits", "stdout"))
    given = own.get("run").entries() if isinstance(own.get("run").value, list) else []
    words = [_word(word, "an argument") for word in given]
    if not words or not words[0]:
        own.get("run").note(
            "wrong-type", "a command is a list: the program and its arguments", "for example command: [make, test]"
        )
    exits: dict[str, Verdict] = {}
    for status, verdict in own.get("exits").fields():
        if not (status.isascii() and status.isdigit() and int(status) < 256):
            verdict.note("wrong-value", f"'{status}' is no exit status", "a number from 0 to 255")
        exits[status] = verdict.choice("what an exit status means", VERDICTS, "ERROR")  # type: ignore[assignment]
    env = {name: _word(value, "the value of a variable") for name, value in own.get("env").fields()}
    for name, value in own.get("env").fields():
        if not _names_variable(name):
            value.note("bad-name", f"'{name}' cannot be the name of a variable", "use letters, digits and '_'")
        elif name.startswith(_OURS):
            value.note("bad-name", f"'{name}': the names that begin with {_OURS} are Tenuto's own", "name it otherwise")
    stdout = values.read_one(own.get("stdout"), "the standard output")
    return {"run": words, "env": env, "exits": exits, "stdout": stdout}


def _names_variable(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()


def _word(view: View, what: str) -> str:
    """Text, or a whole number, which stands for its text. 1.10 would not."""
    whole = isinstance(view.value, int) and not isinstance(view.value, bool)
    return str(view.value) if whole else view.text(what)


def _of_command(view: View, seat: Json, command: Command) -> str:
    """What only agents have is refused, what follows from the command is filled in; returns what it is called."""
    for key in ("role", "mode", "focus", "context", "context_budget", "questions", "question", "program"):
        if view.has(key) and view.get(key).value not in (COMMAND, "", [], 0, CONTEXT_BUDGET):
            view.get(key).note("contradiction", f"a command has no `{key}`: that is an agent's", "leave it out")
    seat["context"], seat["questions"] = [], 0
    if seat["memory"] == "write":
        view.get("memory").note("contradiction", "a command does not write memory", "leave `memory` out")
    given = {"DONE", "ERROR", *command["exits"].values()}
    seat["verdicts"] = [word for word in VERDICTS if word in given or word in seat["verdicts"]]
    if command["stdout"] and command["stdout"] not in seat["optional"]:
        seat["optional"].append(command["stdout"])
    name = command["run"][0].rpartition("/")[2] if command["run"] else ""
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in name).strip("-.") or COMMAND


def settings(view: View, terms: Terms) -> dict[str, object]:
    def find(key: str) -> View:
        return next((layer.get(key) for layer in [view, *terms.layers] if layer.has(key)), view.get(key))

    touches = find("touches")
    return {
        "touches": values.read(touches, "a file")
        if touches.value is not None
        else [values.ITEM_FILES]
        if terms.in_waves
        else [],
        "verdicts": _verdicts(find("verdicts"), terms),
        "retry": _retry(find("retry")),
        "transient": find("transient").number("transient restarts", TRANSIENT, most=10),
        "time_limit": find("time_limit").seconds("the time limit", None),
        "questions": _questions(view, terms),
        "checks": [check(entry) for entry in find("checks").entries()],
        "program": find("program").text("the program"),
    }


def inspect(layer: View) -> None:
    """Note what is wrong with a layer's settings, even where every seat has its own."""
    settings(layer, Terms([], None, []))


def check(view: View) -> Check:
    if isinstance(view.value, str):
        view = View({"name": view.value}, view.path, view.problems)
    view.is_mapping("a check", ("name", "run", "time_limit"))
    name = view.get("name").text("the name of a check")
    if not name:
        view.note("missing", "a check needs a name", "for example {name: tests, run: make test}")
    return {
        "name": name,
        "run": view.get("run").text("the command of a check"),
        "time_limit": view.get("time_limit").seconds("the time limit", None),
    }


def identifier(view: View, what: str, default: str) -> str:
    found = view.text(what, default)
    good = _fits_id(found) and len(found) <= 100 and found[0] not in "-."
    if not good:
        view.note("bad-id", f"{what} cannot be '{found}'", "use letters, digits, '-', '_' and '.'")
    return found if good else default


def _fits_id(text: str) -> bool:
    return bool(text) and all(c.isalnum() or c in "-_.:" for c in text)


def _role(view: View, terms: Terms) -> str:
    role = view.get("role").text("the role")
    if not role:
        view.note("missing", "an agent needs a role", "for example {role: researcher}")
    elif role == COMMAND:
        view.get("role").note("unknown-role", "a command says what it runs", "for example command: [make, test]")
    elif terms.roles is not None and role not in terms.roles:
        view.get("role").note("unknown-role", f"there is no role '{role}'", did_you_mean(role, terms.roles))
    return role or "unnamed"


def _inputs(view: View, terms: Terms) -> list[str]:
    found = values.read(view.get("in"), "an input")
    return [*terms.given, *(path for path in found if path not in terms.given)]


def _context(view: View, terms: Terms) -> list[str | StepInput]:
    found = results.read_context(view.get("context"), CONTEXT)
    return ["item", *found] if terms.in_waves and "item" not in found else found


def _verdicts(view: View, terms: Terms) -> list[str]:
    if view.value is None:
        return [word for word in VERDICTS if terms.may_revise or word != "NEEDS_REVISION"]
    found = view.words("a verdict", VERDICTS)
    for needed in ("DONE", "ERROR"):
        if needed not in found:
            view.note("contradiction", f"every agent can answer {needed}", "list it, or leave `verdicts` out")
    return [word for word in VERDICTS if word in found]


def _retry(view: View) -> Retry:
    if view.value is not None:
        view.is_mapping("retry", ("ERROR", "NEEDS_REVISION", "LOST"))

    def times(word: str) -> int:
        return view.get(word).number(f"retries on {word}", 0, most=100)

    return {"ERROR": times("ERROR"), "NEEDS_REVISION": times("NEEDS_REVISION"), "LOST": times("LOST")}


def _questions(view: View, terms: Terms) -> int:
    for layer in [view, *terms.layers]:
        if layer.has("question") and layer.has("questions"):
            layer.get("question").note("contradiction", "`question` and `questions` are both given", "keep one of them")
        if layer.has("questions"):
            return layer.get("questions").number("questions", 0, most=100)
        if layer.has("question"):
            return QUESTIONS if layer.get("question").flag("question", False) else 0
    return 0


def _contradictions(view: View, seat: Seat, terms: Terms) -> None:
    if terms.parallel and seat["memory"] == "write":
        view.get("memory").note(
            "contradiction", f"'{seat['id']}' runs beside others and can only read memory", "memory: read"
        )
    if seat["retry"]["NEEDS_REVISION"] and "NEEDS_REVISION" not in seat["verdicts"]:
        view.note(
            "contradiction",
            f"'{seat['id']}' is retried on NEEDS_REVISION but may not answer it",
            "add it to `verdicts`",
        )
    for path in seat["append_only"]:
        if path not in seat["out"] and path not in seat["optional"]:
            view.get("append_only").note(
                "contradiction", f"'{path}' is append-only but no output", "list it under out or optional"
            )
    for path in seat["optional"]:
        if path in seat["out"]:
            view.get("optional").note("contradiction", f"'{path}' is both required and optional", "list it once")


# ---- steps ------------------------------------------------------------


KINDS = ("agent", "cluster", "waves", "gate", "action")
WRITTEN = (*KINDS, "command", "in_turn")  # a command is written in an agent's place; `in_turn` belongs to `each`
ACTIONS = tuple(CARRIED_OUT_BY)
_COMMON = (
    "id",
    "name",
    "stage",
    "type",
    "number",
    "phase",
    "aside",
    "when",
    "kind",
    "rule",
    "before",
    "after",
    "on",
    "evidence_for_next",
    "budget",
)
_OF_COMMANDS = ("command", "out", "optional", "in", "if_present", "result")
_KEYS = {
    "agent": ("agent", "modes", "review", "coverage", *INHERITED),
    "command": (*_OF_COMMANDS, *INHERITED),
    "cluster": ("cluster", "aggregate", *INHERITED),
    "waves": ("waves", "between", *INHERITED),
    "gate": ("gate",),
    "action": ("action", "ends"),
    "in_turn": ("in_turn", "each", "between", *INHERITED),
}
_OF_EACH = {
    "agent": ("agent", *INHERITED),
    "command": (*_OF_COMMANDS, *INHERITED),
    "cluster": ("cluster", "aggregate", *INHERITED),
    "in_turn": ("in_turn", *INHERITED),
}
EACH_OVER = ("agent", "command", "cluster", "in_turn")  # what may be done for every element of a list
_TYPES = {"agent": "subagent", "cluster": "dispatch", "waves": "dispatch", "gate": "gate", "action": "action"}
_BUDGET = (
    "attempts",
    "tokens",
    "wall_clock",
    "attempt_tokens",
    "money",
    "micro_usd",
    "attempt_money",
    "attempt_micro_usd",
)


def read_step(view: View, position: int, setting: Setting, groups: Mapping[str, Reader]) -> Step | None:
    """`groups`: who reads steps with several seats (groups.py)."""
    if not isinstance(view.value, dict):
        view.is_mapping("a step", _COMMON + WRITTEN)
        return None
    kinds = [kind for kind in WRITTEN if view.has(kind)]
    if len(kinds) != 1:
        found = f"has {' and '.join(kinds)}" if kinds else "does not say what runs"
        every, known = (*WRITTEN, "pipeline"), (*_COMMON, *INHERITED, "each", "between", *_OF_COMMANDS)
        unknown = [key for key in view.value if isinstance(key, str) and key not in (*every, *known)]
        near = next((near for key in unknown if not kinds and (near := near_word(key, every))), "")
        hint = f"did you mean '{near}'?" if near else f"give exactly one of: {', '.join(every)}"
        view.note("one-kind", f"the step {found}", hint)
        return None
    if kinds == ["in_turn"] and not view.has("each"):
        view.note(
            "missing", "agents in turn need the elements that they work on", "for example each: {files: src/*.py}"
        )
        return None
    kind, over = kinds[0], view.has("each") and kinds[0] in EACH_OVER
    if over:
        view.is_mapping(f"a step with each and {kind}", (*_COMMON, "each", "between", *_OF_EACH[kind]))
    else:
        view.is_mapping(f"a step with {kind}", (*_COMMON, *_KEYS[kind]))
    if kind == "command":
        seat = view.at_same({key: value for key, value in view.value.items() if key in _OF_COMMANDS})
        view = view.at_same({key: value for key, value in view.value.items() if key not in _OF_COMMANDS})
        kind = "agent"
    else:
        seat = view.get("agent")
    terms = Terms([view, setting.defaults], setting.roles, setting.given)
    inspect(view)
    if over:
        plain = _without_rule(view) if kind == "cluster" else view
        step = _common(plain, "waves", position, setting)
        one = seat if kind == "agent" else view.get("in_turn") if kind == "in_turn" else None
        groups["each"](view, one, step, terms, setting)
        return step  # type: ignore[return-value]
    step = _common(view, kind, position, setting)
    match kind:
        case "agent":
            _agent(view, seat, step, terms, setting)
        case "cluster":
            groups["cluster"](view, None, step, terms, setting)
        case "waves":
            groups["waves"](view, None, step, terms, setting)
        case "gate":
            _gate(view, step)
        case "action":
            step["action"] = view.get("action").words("an action", ACTIONS)
            if view.has("ends"):
                step["ends"] = view.get("ends").text("the sub-pipeline that ends here")
    return step  # type: ignore[return-value]  # each key was read by its kind, above


def _without_rule(view: View) -> View:
    """Of a cluster for every element, the rule is each element's own."""
    words = view.value if isinstance(view.value, dict) else {}
    return view.at_same({key: value for key, value in words.items() if key != "rule"})


def _common(view: View, kind: str, position: int, setting: Setting) -> Json:
    if not view.has("id"):
        view.note("missing", "a step needs an id", "for example id: research")
    identity = identifier(view.get("id"), "the id of a step", f"step-{position}")
    number = view.get("number").text("the number", str(position))
    digits = number[: len(number) - len(number.lstrip("0123456789"))]
    stated = view.get("kind").choice("the kind", KINDS, kind)
    if stated != kind:
        view.get("kind").note("contradiction", f"the step says kind: {stated} and has {kind}", "leave `kind` out")
    return {
        "id": identity,
        "name": view.get("name").text("the name", identity.replace("-", " ").replace("_", " ").capitalize()),
        "stage": view.get("stage").text("the stage"),
        "type": view.get("type").text("the type", _TYPES[kind]),
        "number": number,
        "phase": view.get("phase").number("the phase", int(digits) if digits and len(digits) < 9 else position),
        "aside": view.get("aside").flag("aside", False),
        "when": conditions.read(
            view.get("gate").get("when") if view.get("gate").has("when") else view.get("when"), setting.scope
        ),
        "kind": kind,
        "rule": view.get("rule").choice("the rule", ("word",), "word") if kind not in ("agent", "cluster") else "word",
        "before": view.get("before").words("an action", ACTIONS),
        "after": view.get("after").words("an action", ACTIONS),
        "on": {},
        "evidence_for_next": values.read(view.get("evidence_for_next"), "evidence"),
        "budget": budget(view.get("budget")),
    }


def budget(view: View) -> Budget:
    if view.value is not None:
        view.is_mapping("a budget", _BUDGET)
    return {
        "attempts": view.get("attempts").whole("attempts", None, least=1),
        "tokens": view.get("tokens").whole("tokens", None, least=1),
        "micro_usd": _money(view, "money", "micro_usd"),
        "wall_clock": view.get("wall_clock").seconds("the wall clock limit", None),
        "attempt_tokens": view.get("attempt_tokens").whole("tokens of an attempt", None, least=1),
        "attempt_micro_usd": _money(view, "attempt_money", "attempt_micro_usd"),
    }


def _money(view: View, dollars: str, micro: str) -> int | None:
    if view.has(dollars) and view.has(micro):
        view.get(dollars).note("contradiction", f"`{dollars}` and `{micro}` are both given", "keep one of them")
    return view.get(micro).whole(micro, None) if view.has(micro) else view.get(dollars).dollars(dollars, None)


# ---- agents ----------------------------------------------------------------------------------------


def _agent(view: View, seat: View, step: Json, terms: Terms, setting: Setting) -> None:
    """`seat`: who works here; of a command, its keys stand in the step itself."""
    review, coverage = view.get("review"), view.get("coverage")
    default = "review" if review.value is not None else "word"
    step["rule"] = view.get("rule").choice("the rule", ("word", "audit", "review"), default)
    if (step["rule"] == "review") != (review.value is not None):
        view.get("rule").note("contradiction", "rule: review and `review` belong together", "give both, or neither")
    outcomes = view.get("on")
    terms.may_revise = step["rule"] != "word" or outcomes.has("NEEDS_REVISION") or outcomes.has("NOT_DONE")
    step["agent"] = read_seat(seat, terms)
    step["modes"] = {}
    if view.has("modes") and not isinstance(view.get("modes").value, dict):
        view.get("modes").note("wrong-type", "modes must be a mapping", "for example {replan: {in: verifier.md}}")
    for name, mode in view.get("modes").fields():
        step["modes"][name] = _mode(mode, name, seat, terms)
    step["review"] = None if review.value is None else {"min_block_severity": routes.severity(review, setting)}
    step["coverage"] = None if coverage.value is None else {"threshold": routes.threshold(coverage, setting)}


def _mode(view: View, name: str, plain: View, terms: Terms) -> Seat:
    """A mode says only what differs from the plain seat."""
    base = {"role": plain.value} if isinstance(plain.value, str) else plain.value
    changes = {"role": view.value} if isinstance(view.value, str) else {} if view.value is None else view.value
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return read_seat(view, terms)  # which says what is wrong with it
    merged = {**base, "mode": name, **changes}
    if "role" in changes and changes["role"] != base.get("role") and "mode" not in changes:
        merged["mode"] = ""
        merged.pop("id", None)
        merged.update({"id": changes["id"]} if "id" in changes else {})
    return read_seat(View(merged, view.path, view.problems), terms)


# ---- gates -----------------------------------------------------------------------------------------


def _gate(view: View, step: Json) -> None:
    gate = view.get("gate")
    gate.is_mapping("a gate", ("when", "name", "prompt", "show", "options", "revise", "fields"))
    if gate.has("when") and view.has("when"):
        gate.get("when").note("contradiction", "the step and its gate both say when", "keep one of them")
    can_revise = gate.has("revise") or view.get("on").has("NEEDS_REVISION")
    options = ("approve", "reject", "revise")
    stated = gate.get("options").words("an option", options)
    if "revise" in stated and not can_revise:
        gate.get("options").note(
            "contradiction", "the gate offers revise but not what is revised", "add revise: <step>"
        )
    if stated and ("approve" not in stated or "reject" not in stated):
        gate.get("options").note("contradiction", "a gate can always be approved and rejected", "leave `options` out")
    step["gate"] = {
        "name": gate.get("name").text("the name of a gate", step["id"]),
        "prompt": gate.get("prompt").text("the prompt", "Go on?"),
        "show": values.read(gate.get("show"), "a document to show"),
        "options": [
            option for option in options if option != "revise" or (can_revise and (not stated or "revise" in stated))
        ],
        "fields": forms.read(gate.get("fields")),
    }
