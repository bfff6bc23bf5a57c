"""An agent's place in a step: from shorthand to the full record.

    "ct-security"                                       the role's name alone
    {role: researcher, focus: impact, out: impact.md}   with its own settings

Settings that are not the seat's own come from the first layer that has them: the cluster, the
step, the pipeline's defaults, the language's defaults. A layer replaces, it never merges.
"""

from __future__ import annotations

from tenuto.core.definition import paths
from tenuto.core.definition.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tenuto.core.pipeline_records import Check, Retry, Seat

INHERITED = ("retry", "transient", "time_limit", "question", "questions", "checks", "touches", "verdicts", "program")
KEYS = (
    "id", "role", "mode", "focus", "task", "in", "if_present", "context", "out", "optional", "append_only", "memory",
    "weight", *INHERITED,
)  # fmt: skip
VERDICTS = ("DONE", "NEEDS_REVISION", "ERROR")
CONTEXT = ("review-tier", "git-diff", "item", "answers", "project-memory")
QUESTIONS = 3  # `question: true`
TRANSIENT = 2


class Terms:
    """What a place in a step means for whoever sits there."""

    __slots__ = ("given", "in_waves", "layers", "may_revise", "parallel", "roles")

    def __init__(
        self, layers: list[View], roles: Collection[str] | None, given: list[str],
        parallel: bool = False, in_waves: bool = False, may_revise: bool = False,
    ) -> None:  # fmt: skip
        self.layers = layers
        self.roles = roles
        self.given = given
        self.parallel = parallel
        self.in_waves = in_waves
        self.may_revise = may_revise


def read(view: View, terms: Terms, extra: tuple[str, ...] = ()) -> Seat:
    """`extra` are keys that the caller reads from the same mapping."""
    if isinstance(view.value, str):
        view = View({"role": view.value}, view.path, view.problems)
    if not view.is_mapping("an agent", (*KEYS, *extra)):
        view = View({"role": "?"}, view.path, [])  # noted once; what follows from it is noise
    seat: Any = {
        "role": _role(view, terms), "mode": view.get("mode").text("the mode"), "focus": view.get("focus").text("the focus"),
        "task": view.get("task").text("the task"), "id": "",
        "in": _inputs(view, terms), "if_present": paths.read(view.get("if_present"), "an input"),
        "context": _context(view, terms),
        "out": paths.read(view.get("out"), "an output"), "optional": paths.read(view.get("optional"), "an optional output"),
        "append_only": paths.read(view.get("append_only"), "an append-only output"),
        "memory": view.get("memory").choice("memory", ("read", "write"), "read"),
        "weight": view.get("weight").choice("the weight", ("blocking", "normal", "never-blocks"), "normal"),
        **settings(view, terms),
    }  # fmt: skip
    plain = seat["role"] + ("-" + seat["focus"] if seat["focus"] else "")
    seat["id"] = identifier(view.get("id"), "the id of an agent", plain)
    _contradictions(view, seat, terms)
    checked: Seat = seat
    return checked


def settings(view: View, terms: Terms) -> dict[str, object]:
    def find(key: str) -> View:
        return next((layer.get(key) for layer in [view, *terms.layers] if layer.has(key)), view.get(key))

    touches = find("touches")
    return {
        "touches": paths.read(touches, "a file")
        if touches.value is not None
        else [paths.ITEM_FILES]
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
    good = found and len(found) <= 100 and found[0] not in "-." and all(c.isalnum() or c in "-_.:" for c in found)
    if not good:
        view.note("bad-id", f"{what} cannot be '{found}'", "use letters, digits, '-', '_' and '.'")
    return found if good else default


def _role(view: View, terms: Terms) -> str:
    role = view.get("role").text("the role")
    if not role:
        view.note("missing", "an agent needs a role", "for example {role: researcher}")
    elif terms.roles is not None and role not in terms.roles:
        view.get("role").note("unknown-role", f"there is no role '{role}'", did_you_mean(role, terms.roles))
    return role or "unnamed"


def _inputs(view: View, terms: Terms) -> list[str]:
    found = paths.read(view.get("in"), "an input")
    return [*terms.given, *(path for path in found if path not in terms.given)]


def _context(view: View, terms: Terms) -> list[str]:
    found = view.get("context").words("the context", CONTEXT)
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
