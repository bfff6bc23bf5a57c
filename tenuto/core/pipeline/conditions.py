"""When something runs: conditions, as data.

    when: approval                                     a switch is on; `always`, or nothing at all, is no condition
    when: {switch: tests}                              the same
    when: {param: target, is: web}                     a parameter of the run
    when: {outcome: review, is: NEEDS_REVISION}        how the last visit of a step ended, unless it was left out since
    when: {result: scan, field: open.high, more_than: 0}   a field of the result of a step (results.py)
    when: {answer: agree.env, is: prod}                what a person answered at a gate (forms.py)
    when: {exists: notes.md}                           a document of the run, as it was when the step was reached
    when: {changed: "src/**"}                          a file of the repository, changed since the run began; the run's
                                                       own documents are none
    when: {element: status, is: open}                  a field of an element, in `each`
    when: {all: [...]}, {any: [...]}, {not: ...}       of other conditions

A value is compared with one of: is, in, more_than, less_than, at_least, at_most; of several, or of a list, with: has.
There is no other way to say it: nothing is computed.

    read(view, scope)          from what an author wrote to the record, with a problem for what cannot be meant
    holds(condition, facts)    yes or no; the same facts give the same answer, for ever
    decided(condition, known)  yes, no, or None where only the run will show it
    in_words(condition)        for people: "target is web"
    files(condition)           the files that somebody must look at first

Rule 1: what is not known does not hold. A step that was never visited had no outcome, and no comparison with it holds.
Rule 2: a number is compared with a number, text with text. Two kinds are never equal, and none is more than the other.
"""

from __future__ import annotations

from tenuto.core.pipeline import values
from tenuto.core.pipeline.schema import field_of
from tenuto.core.pipeline.values import View, did_you_mean, kind_of
from tenuto.core.status import VERDICTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import NotRequired, TypedDict

    from tenuto.core.pipeline.records import Compares, Condition, Param, ParamValue, PathPart, When

    class Facts(TypedDict):
        """What conditions are asked with. Everything in it was recorded before."""

        switches: Mapping[str, bool]
        params: Mapping[str, ParamValue]
        outcomes: Mapping[str, str]  # of the last visit of each step
        results: Mapping[str, object]  # of the steps that the condition asks about
        answers: Mapping[str, ParamValue]  # GATE.FIELD, of gates that were approved
        files: Mapping[str, bool]  # "exists:PATH" and "changed:PATTERN"
        fields: NotRequired[Mapping[str, ParamValue]]  # of the element that is asked about


ALWAYS = "always"
COMPARISONS = ("is", "in", "more_than", "less_than", "at_least", "at_most", "has")
SUBJECTS = ("switch", "param", "outcome", "answer", "result", "element", "exists", "changed", "all", "any", "not")
_OUTCOMES = (*VERDICTS, "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE", "LOW_COVERAGE")
_DEEPEST = 8
_WORDS = {
    "is": "is",
    "in": "is one of",
    "more_than": "is more than",
    "less_than": "is less than",
    "at_least": "is at least",
    "at_most": "is at most",
    "has": "has",
}
_THINGS = {"param": "parameter", "outcome": "step", "answer": "answer", "element": "field"}


class Scope:
    """What a condition may name."""

    __slots__ = ("answers", "fields", "params", "steps", "switches")

    def __init__(
        self,
        switches: Collection[str],
        params: Mapping[str, Param],
        steps: Collection[str],
        answers: Mapping[str, Param] | None = None,
        fields: Collection[str] | None = None,
    ) -> None:
        """`fields`: of elements; empty where only the run will show them, None where there are no elements."""
        self.fields = fields
        self.switches = switches
        self.params = params
        self.steps = steps
        self.answers = answers or {}  # GATE.FIELD: what gates ask for


def read(view: View, scope: Scope, depth: int = 0) -> When:
    if not isinstance(view.value, dict):
        return switch(view, scope)
    if depth == _DEEPEST:
        view.note("too-deep", f"conditions are nested deeper than {_DEEPEST}", "say it in fewer")
        return ALWAYS
    subjects = [word for word in SUBJECTS if word in view.value]
    if len(subjects) != 1:
        unknown = [key for key in view.value if isinstance(key, str) and key not in (*SUBJECTS, *COMPARISONS)]
        hint = did_you_mean(unknown[0], SUBJECTS) if unknown else f"one of: {', '.join(SUBJECTS)}"
        view.note("unclear-condition", "this does not say one thing that `when` can ask about", hint)
        return ALWAYS
    subject = subjects[0]
    compared = subject == "result" or subject in _THINGS
    more = ("field",) if subject == "result" else ()
    view.is_mapping(f"a condition with {subject}", (subject, *more, *(COMPARISONS if compared else ())))
    own = view.get(subject)
    match subject:
        case "all":
            return {"all": _several(own, scope, depth)}
        case "any":
            return {"any": _several(own, scope, depth)}
        case "not":
            return {"not": read(own, scope, depth + 1)}
        case "switch":
            return {"switch": switch(own, scope)}
        case "exists":
            return {"exists": values.read_one(own, "a document")}
        case "changed":
            return {"changed": values.read_one(own, "a file")}
        case "result":
            return _of_result(view, scope)
    return _comparison(view, subject, scope)


def switch(view: View, scope: Scope) -> str:
    known = (ALWAYS, *scope.switches)
    name = view.text("when", ALWAYS)
    if name not in known:
        view.note("unknown-switch", f"there is no switch '{name}'", did_you_mean(name, known))
    return name


def _several(view: View, scope: Scope, depth: int) -> list[When]:
    if not isinstance(view.value, list) or not view.value:
        found = "an empty one" if view.value == [] else kind_of(view.value)
        view.note("wrong-type", f"a list of conditions is needed, not {found}", "for example [a, {not: b}]")
        return []
    return [read(entry, scope, depth + 1) for entry in view.entries()]


def _comparison(view: View, subject: str, scope: Scope) -> When:
    name = view.get(subject).text(f"the {subject}")
    typed = {"param": scope.params, "answer": scope.answers}.get(subject)
    known: Collection[str] = scope.steps if typed is None else typed
    if subject == "element":
        if scope.fields is None:
            view.get(subject).note("bad-place", "there is no element here to have a field", "use it in `each`")
            return ALWAYS
        known = scope.fields or (name,)
    if name not in known:
        thing = _THINGS[subject]
        hint = did_you_mean(name, known) or ("write GATE.FIELD, of a gate with `fields`" if subject == "answer" else "")
        view.get(subject).note(f"unknown-{thing}", f"there is no {thing} '{name}'", hint)
        return ALWAYS
    value_type = typed[name] if typed is not None else None
    words = _words(view)
    if not words and value_type is not None and value_type["type"] == "flag":
        return {"answer": name, "is": True} if subject == "answer" else {"param": name, "is": True}
    if len(words) != 1:
        view.note(
            "unclear-condition", f"what is '{name}' compared with?", f"give exactly one of: {', '.join(COMPARISONS)}"
        )
        return ALWAYS
    word, value = words[0], view.get(words[0])
    problem = _wrong_value(word, value.value) or (
        _wrong_param(value_type, word, value.value)
        if value_type is not None
        else _wrong_outcome(word, value.value)
        if subject == "outcome"
        else None
    )
    if problem:
        value.note("wrong-value", f"{subject} '{name}': {problem[0]}", problem[1])
        return ALWAYS
    compared: Condition = {subject: name, word: value.value}  # type: ignore[assignment]  # checked above
    return compared


def _words(view: View) -> list[str]:
    """How it compares; also where it compares with nothing, which is a mistake."""
    return [word for word, _ in view.fields() if word in COMPARISONS]


def _of_result(view: View, scope: Scope) -> When:
    """What the step's schema has to say about it is looked at when all steps are known (results.check)."""
    name = view.get("result").text("the result")
    if name not in scope.steps and name.rpartition("/")[0] not in scope.steps:
        view.get("result").note("unknown-step", f"there is no step '{name}'", did_you_mean(name, scope.steps))
        return ALWAYS
    words = _words(view)
    if len(words) > 1:
        hint = f"give one of: {', '.join(COMPARISONS)}"
        view.note("unclear-condition", f"what is the result of '{name}' compared with?", hint)
        return ALWAYS
    word, value = (words[0], view.get(words[0])) if words else ("is", view.at_same(True))
    problem = _wrong_value(word, value.value)
    if problem:
        value.note("wrong-value", f"result '{name}': {problem[0]}", problem[1])
        return ALWAYS
    compared: Condition = {
        "result": name,
        "field": view.get("field").text("the field"),
        word: value.value,
    }  # type: ignore[assignment]  # checked above
    return compared


def _wrong_value(word: str, value: object) -> tuple[str, str] | None:
    if word == "in":
        if not isinstance(value, list) or not value or not all(isinstance(one, str | int | float) for one in value):
            return f"`in` needs a list of values, not {kind_of(value)}", "for example in: [web, api]"
        return None
    if word == "has":
        return None if isinstance(value, str) else (f"`has` needs text, not {kind_of(value)}", "for example has: eu")
    if word != "is" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"`{word}` needs a number, not {kind_of(value)}", f"for example {word}: 3"
    if not isinstance(value, str | int | float):
        return f"`{word}` needs a value, not {kind_of(value)}", f"for example {word}: web"
    return None


def _wrong_outcome(word: str, value: object) -> tuple[str, str] | None:
    if word not in ("is", "in"):
        return f"an outcome cannot be compared by `{word}`", "use is, or in"
    for one in value if isinstance(value, list) else [value]:
        if one not in _OUTCOMES:
            return f"no step ends as {one!r}", did_you_mean(str(one), _OUTCOMES)
    return None


def _wrong_param(param: Param, word: str, value: object) -> tuple[str, str] | None:
    kind = param["type"]
    if (kind in ("list", "several")) != (word == "has"):
        if word == "has":
            return f"a {kind} has no parts", "use is, or in"
        return "a list is only asked what it has", "for example has: eu"
    if word not in ("is", "in", "has") and kind != "number":
        return f"only a number can be {word.replace('_', ' ')} something", "use is, or in"
    if word == "has":
        unknown = param["choices"] and value not in param["choices"]
        return (f"it can never have '{value}'", did_you_mean(str(value), param["choices"])) if unknown else None
    wanted: Mapping[str, type | tuple[type, ...]] = {"number": (int, float), "flag": bool}
    for one in value if isinstance(value, list) else [value]:
        fits = isinstance(one, wanted.get(kind, str)) and isinstance(one, bool) == (kind == "flag")
        if not fits:
            return f"it is a {kind}, and can never be {one!r}", ""
        if kind == "choice" and one not in param["choices"]:
            return f"it can never be '{one}'", did_you_mean(str(one), param["choices"])
    return None


# ---- asked -----------------------------------------------------------------------------------------


def holds(when: When, facts: Facts) -> bool:
    if isinstance(when, str):
        return when == ALWAYS or facts["switches"].get(when, False)
    if "all" in when:
        return all(holds(one, facts) for one in when["all"])
    if "any" in when:
        return any(holds(one, facts) for one in when["any"])
    if "not" in when:
        return not holds(when["not"], facts)
    if "switch" in when:
        return holds(when["switch"], facts)
    if "exists" in when:
        return facts["files"].get(f"exists:{when['exists']}", False)
    if "changed" in when:
        return facts["files"].get(f"changed:{when['changed']}", False)
    return _compare(_value(when, facts), *_comparison_of(when))


def _value(when: Compares, facts: Facts) -> object:
    if "result" in when:
        return field_of(facts["results"].get(when["result"]), when["field"])
    if "param" in when:
        return facts["params"].get(when["param"])
    if "answer" in when:
        return facts["answers"].get(when["answer"])
    if "element" in when:
        return facts.get("fields", {}).get(when["element"])
    return facts["outcomes"].get(when["outcome"])


def _comparison_of(when: Compares) -> tuple[str, object]:
    return next((word, value) for word, value in when.items() if word in COMPARISONS)


def _compare(value: object, word: str, with_: object) -> bool:
    if word == "in":
        return isinstance(with_, list) and any(_same(value, one) for one in with_)
    if word == "is":
        return _same(value, with_)
    if word == "has":
        return isinstance(value, list) and any(_same(one, with_) for one in value)
    if isinstance(value, bool) or isinstance(with_, bool):
        return False
    if not isinstance(value, int | float) or not isinstance(with_, int | float):
        return False
    orders: dict[str, Callable[[float, float], bool]] = {
        "more_than": lambda a, b: a > b,
        "less_than": lambda a, b: a < b,
        "at_least": lambda a, b: a >= b,
        "at_most": lambda a, b: a <= b,
    }
    return orders[word](value, with_)


def _same(a: object, b: object) -> bool:
    """1 and 1.0 are the same number; true is no number, and "1" is text."""
    if a is None or isinstance(a, bool) != isinstance(b, bool) or isinstance(a, str) != isinstance(b, str):
        return False
    return a == b


def decided(
    when: When, switches: Mapping[str, bool] | None, params: Mapping[str, ParamValue] | None = None
) -> bool | None:
    """What is known before the run: switches and parameters. None: the run will show it, or they are not given."""
    if isinstance(when, str):
        return True if when == ALWAYS else None if switches is None else switches.get(when, False)
    if "all" in when:
        known = [decided(one, switches, params) for one in when["all"]]
        return False if False in known else None if None in known else True
    if "any" in when:
        known = [decided(one, switches, params) for one in when["any"]]
        return True if True in known else None if None in known else False
    if "not" in when:
        inner = decided(when["not"], switches, params)
        return None if inner is None else not inner
    if "switch" in when:
        return decided(when["switch"], switches, params)
    if "param" in when and params is not None:
        return _compare(params.get(when["param"]), *_comparison_of(when))
    return None


def in_words(when: When) -> str:
    if isinstance(when, str):
        return when if when == ALWAYS else f"{when} is on"
    if "all" in when:
        return _joined(when["all"], "and")
    if "any" in when:
        return _joined(when["any"], "or")
    if "not" in when:
        inner = when["not"]
        return f"{inner} is off" if isinstance(inner, str) else f"not ({in_words(inner)})"
    if "switch" in when:
        return in_words(when["switch"])
    if "exists" in when:
        return f"{when['exists']} exists"
    if "changed" in when:
        return f"{when['changed']} has changed"
    if "result" in when:
        name = f"{when['field'] or 'the result'} of {when['result']}"
    else:
        name = next(str(when.get(subject)) for subject in _THINGS if subject in when)
    word, value = _comparison_of(when)
    shown = ", ".join(map(_shown, value)) if isinstance(value, list) else _shown(value)
    return f"{name} {_WORDS[word]} {shown}"


def _shown(value: object) -> str:
    """As it is written in YAML and JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def why_not(when: When) -> str:
    """Why something was left out, for people."""
    return f"{when} is off" if isinstance(when, str) else f"this does not hold: {in_words(when)}"


def _joined(several: list[When], word: str) -> str:
    parts = [in_words(one) for one in several]
    nested = [
        f"({part})" if isinstance(one, dict) and ("all" in one or "any" in one) else part
        for one, part in zip(several, parts, strict=True)
    ]
    return f" {word} ".join(nested)


def leaves(when: When, path: tuple[PathPart, ...] = ()) -> Iterator[tuple[tuple[PathPart, ...], When]]:
    """Every single question of it, with the way that leads there."""
    if isinstance(when, str):
        yield path, when
    elif "not" in when:
        yield from leaves(when["not"], (*path, "not"))
    elif "all" in when or "any" in when:
        word, several = ("all", when["all"]) if "all" in when else ("any", when["any"])
        for index, one in enumerate(several):
            yield from leaves(one, (*path, word, index))
    else:
        yield path, when


def files(when: When) -> Iterator[str]:
    """ "exists:PATH" and "changed:PATTERN": what Facts["files"] must have."""
    if isinstance(when, str):
        return
    if "exists" in when:
        yield f"exists:{when['exists']}"
    elif "changed" in when:
        yield f"changed:{when['changed']}"
    elif "all" in when or "any" in when:
        for one in when["all"] if "all" in when else when["any"]:
            yield from files(one)
    elif "not" in when:
        yield from files(when["not"])
