"""Structured results: what an agent or a command answers besides its verdict, as JSON that was checked.

    result: {schema: schemas/scan.json}                     on an agent or a command; the schema may stand there itself
    result: {schema: {...}, file: scan.json}                it is in this document, not in the reply

    when: {result: scan, field: open.high, more_than: 0}    asked about in a condition
    context: [{result: scan}]                               handed to a later agent

    read(view)                what an author wrote -> the record
    result_of(run, name)      the result of a step: what its last attempt handed in, if that counted; None otherwise
    problems(asked, value)    why a value is not the result that was asked for, each with its place; none where it is
    names(when)               the results that a condition asks about
    check(view, steps, ways)  what only the whole pipeline shows: is there such a result, and can it be known there?

Which result. `scan` is the step of that name; `scan/lint` is the member, or the seat, `lint` in it. A cluster's own
result is its aggregator's, or that of its only member that has one. In waves every item has its own: the result of the
step is a mapping of items.

Rule 1: the last word counts. Where the last attempt failed, or is under way, there is no result, whatever came before.
Rule 2: a DONE or a NEEDS_REVISION without the result that was asked for is an ERROR.
Rule 3: what is not known does not hold: no comparison with a field that is not there does.
"""

from __future__ import annotations

from tenuto.core.actions import group_of, is_end
from tenuto.core.pipeline import conditions, values
from tenuto.core.pipeline import each as elements
from tenuto.core.pipeline import schema as schemas
from tenuto.core.pipeline.values import did_you_mean
from tenuto.core.status import ANSWERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from tenuto.core.pipeline.records import (
        Each,
        Outcome,
        PathPart,
        ResultAsked,
        ResultCompares,
        Route,
        Seat,
        Step,
        StepInput,
        When,
    )
    from tenuto.core.pipeline.values import View
    from tenuto.core.records.run import Attempt, Json, Run

LARGEST = 1 << 20  # bytes of a result, as JSON: it is kept with the run
INPUTS = ("result", "findings", "answers")


def result_of(run: Run, name: str) -> object | None:
    """`name`: a step, or STEP/SEAT. Of items: a mapping of those that have a result."""
    own = attempts_of(run, name)
    if any(attempt["item"] is not None for attempt in own):
        last = {str(attempt["item"]): attempt for attempt in own if attempt["item"] is not None}
        found = {item: handed_in(attempt) for item, attempt in last.items()}
        return {item: value for item, value in found.items() if value is not None} or None
    return handed_in(own[-1]) if own else None


def attempts_of(run: Run, name: str) -> list[Attempt]:
    """Of a step, or of STEP/SEAT, in the order in which they were dispatched."""
    own = [attempt for attempt in run["attempts"].values() if attempt["step"] == name]
    step, slash, seat = name.rpartition("/")
    if own or not slash:
        return own
    return [attempt for attempt in run["attempts"].values() if attempt["step"] == step and _seat(attempt) == seat]


def _seat(attempt: Attempt) -> str:
    return str(attempt["extra"].get("seat", "")).partition("@")[0]


def handed_in(attempt: Attempt) -> object | None:
    """The result of one attempt; None where it has none that counts."""
    return attempt["receipt"].get("result") if attempt["verdict"] in ANSWERS else None


# ---- asked for -------------------------------------------------------------------------------------


def read(view: View) -> ResultAsked | None:
    if view.value is None:
        return None
    if not view.is_mapping("a result", ("schema", "file")):
        return None
    asked = view.get("schema")
    if asked.value is None:
        hint = "for example {schema: {type: object, required: [ok], properties: {ok: {type: boolean}}}}"
        view.note("missing", "a result needs its schema", hint)
    elif isinstance(asked.value, str):
        asked.note("no-schema", f"the schema '{asked.value}' was not read", "give a file beside the pipeline")
    else:
        schemas.check(asked)
    file = values.read_one(view.get("file"), "the file of a result")
    if "*" in file:
        view.get("file").note("bad-path", f"'{file}' stands for several files, and a result is in one", "name it")
    return {"schema": asked.value if isinstance(asked.value, dict) else {}, "file": file}


def problems(asked: ResultAsked, value: object) -> list[str]:
    """Each begins with the place."""
    return [f"{place or 'the whole'}: {reason}" for place, reason in schemas.misfits(value, asked["schema"])]


# ---- used ------------------------------------------------------------------------------------------


def read_context(view: View, words: Sequence[str]) -> list[str | StepInput]:
    """Words, and what is taken from earlier steps: {result: STEP}, {findings: STEP}, {answers: GATE}."""
    found: list[str | StepInput] = []
    for entry in view.entries():
        if not isinstance(entry.value, dict):
            one: str | StepInput = next(iter(entry.words("the context", words)), "")
        else:
            one = _input(entry)
        if one and one in found:
            entry.note("duplicate", f"the context names {one if isinstance(one, str) else _spelled(one)!r} twice")
        elif one:
            found.append(one)
    return found


def _input(view: View) -> StepInput | Literal[""]:
    given, before = [word for word in INPUTS if view.has(word)], len(view.problems)
    view.is_mapping("an entry of the context", INPUTS)
    if len(view.problems) > before:
        return ""
    if len(given) != 1:
        view.note("unclear-context", "this does not name one thing of an earlier step", "{result: STEP}")
        return ""
    name = view.get(given[0]).text("the step")
    return {given[0]: name} if name else ""  # type: ignore[return-value]  # one of INPUTS


def names(when: When) -> Iterator[str]:
    for _, condition in _nested(when, ()):
        yield condition["result"]


def _nested(when: When, path: tuple[PathPart, ...]) -> Iterator[tuple[tuple[PathPart, ...], ResultCompares]]:
    """Every question about a result, with the way that leads to it."""
    for way, one in conditions.leaves(when, path):
        if not isinstance(one, str) and "result" in one:
            yield way, one


def _places(step: Step) -> Iterator[tuple[tuple[PathPart, ...], Seat]]:
    """Every seat of a step, with the way that leads to it in the full record."""
    if step["kind"] == "agent":
        yield ("agent",), step["agent"]
        for mode, seat in step["modes"].items():
            yield ("modes", mode), seat
    elif step["kind"] == "cluster":
        if step["cluster"]["first"]:
            yield ("cluster", "first"), step["cluster"]["first"]
        for index, seat in enumerate(step["cluster"]["members"]):
            yield ("cluster", "members", index), seat
        if step["aggregate"]:
            yield ("aggregate",), step["aggregate"]
    elif step["kind"] == "waves":
        for index, seat in enumerate(step["waves"]["seats"]):
            yield ("waves", "roles", index), seat


def check(view: View, steps: Sequence[Step], ways: Mapping[str, Sequence[str]]) -> None:
    """Names that stand for one of several are spelled out: `scan` becomes `scan/lint`."""
    atlas = _Uses({step["id"]: step for step in steps}, ways)
    for index, step in enumerate(steps):
        for path, condition in _nested(step["when"], ("when",)):
            atlas.condition(_at(view, (index, *path)), condition, step)
        each = step["waves"]["each"] if step["kind"] == "waves" else None
        if each is not None:
            place: tuple[PathPart, ...] = ("each",) if view.entries()[index].has("each") else ("waves", "each")
            for path, condition in _nested(each["when"], (*place, "when")):
                atlas.condition(_at(view, (index, *path)), condition, step)
            if each["result"]:
                atlas.listed(_at(view, (index, *place)), each, step)
        for way, route in _routes(step):
            for path, condition in _nested(route["when"], (*way, "when")):
                atlas.condition(_at(view, (index, *path)), condition, step, ended=True)
        for way, seat in _places(step):
            for path, condition in _nested(seat["when"], (*way, "when")):
                atlas.condition(_at(view, (index, *path)), condition, step)
            for number, entry in enumerate(seat["context"]):
                if isinstance(entry, dict):
                    atlas.input(_at(view, (index, *way, "context", number)), entry, step, seat)


def _routes(step: Step) -> Iterator[tuple[tuple[PathPart, ...], Route]]:
    """Every route of a step, with the way that leads to it in the full record. What follows a NEEDS_REVISION that
    nobody wrote is the very record of what follows an ERROR."""
    waiting: list[tuple[tuple[PathPart, ...], Outcome | None]]
    errors = step["on"].get("ERROR")
    waiting = [(("on", name), own) for name, own in step["on"].items() if name == "ERROR" or own is not errors]
    while waiting:
        way, outcome = waiting.pop(0)
        if outcome is not None and outcome["do"] == "route":
            yield way, outcome
            waiting += [((*way, "then"), outcome["then"]), ((*way, "otherwise"), outcome["otherwise"])]


def _at(view: View, path: Sequence[PathPart]) -> View:
    for part in path:
        view = view.at(part, None)
    return view


class _Uses:
    """Is what is asked for there, and can it be known by then?"""

    def __init__(self, steps: Mapping[str, Step], ways: Mapping[str, Sequence[str]]) -> None:
        self.steps = steps
        self.ways = ways

    def condition(self, view: View, condition: ResultCompares, here: Step, ended: bool = False) -> None:
        """`ended`: it is asked when `here` has ended, and its own result is known."""
        found = self.result(view, condition["result"], here, None, ended)
        if found is None:
            return
        condition["result"], step, asked = found
        if step["kind"] == "waves":
            message = f"'{step['id']}' has a result for each item, and a condition asks about one"
            view.note("no-result", message, "let a step behind it draw them together")
            return
        for shape_problem in _wrong_comparison(condition, asked["schema"]):
            view.note(*shape_problem)

    def listed(self, view: View, each: Each, here: Step) -> None:
        """The list of a step's elements."""
        found = self.result(_at(view, ["result"]), each["result"], here, None)
        if found is None:
            return
        each["result"], step, asked = found
        if step["kind"] == "waves":
            message = f"'{step['id']}' has a result for each item, and none that is a list"
            _at(view, ["result"]).note("no-result", message, "let a step behind it draw them together")
            return
        shapes, missing, known = schemas.known_field(asked["schema"], each["field"])
        types = schemas.types_of(shapes)
        if missing:
            message = f"the result of '{each['result']}' has no field '{missing}'"
            _at(view, ["field"]).note("unknown-field", message, did_you_mean(missing, known))
        elif types and "array" not in types:
            message = f"'{each['field'] or each['result']}' is {schemas.an(types[0])}, and no list"
            _at(view, ["field"]).note("wrong-type", message, "name a field that is an array")
        else:
            elements.check_elements(view, each, _places(here), schemas.fields_of_elements(asked["schema"], shapes))

    def input(self, view: View, entry: StepInput, here: Step, seat: Seat) -> None:
        if "result" in entry:
            found = self.result(view, entry["result"], here, seat)
            if found is not None:
                entry["result"] = found[0]
        elif "findings" in entry:
            named = self.named(view, entry["findings"], here, seat)
            if named and not any(one["out"] or one["optional"] for one in named[1]):
                view.note("no-findings", f"'{entry['findings']}' writes no document that could hold findings")
        else:
            step = self.steps.get(entry["answers"])
            gates = [name for name, one in self.steps.items() if one["kind"] == "gate"]
            if step is None or step["kind"] != "gate":
                message = f"there is no gate '{entry['answers']}'"
                view.note("unknown-step", message, did_you_mean(entry["answers"], gates) or "it has none")
            else:
                self.is_before(view, step, here)

    def named(
        self, view: View, name: str, here: Step, seat: Seat | None, ended: bool = False
    ) -> tuple[Step, list[Seat]] | None:
        """The step, and those of its seats that are meant."""
        step = self.steps.get(name)
        member = "" if step else name.rpartition("/")[2]
        step = step or self.steps.get(name.rpartition("/")[0])
        if step is None:
            view.note("unknown-step", f"there is no step '{name}'", did_you_mean(name, self.steps))
            return None
        every = [one for _, one in _places(step) if seat is None or one is not seat]
        meant = [one for one in every if not member or one["id"] == member]
        if not meant:
            ids = [one["id"] for one in every]
            message = f"'{step['id']}' has no agent '{member}'" if member else f"in '{step['id']}' no agent works"
            view.note("unknown-member", message, did_you_mean(member, ids) if member else "")
            return None
        draws_together = step is here and step["kind"] == "cluster" and seat is step["aggregate"]
        if not draws_together and not (ended and step is here) and not self.is_before(view, step, here):
            return None
        return step, meant

    def result(
        self, view: View, name: str, here: Step, seat: Seat | None, ended: bool = False
    ) -> tuple[str, Step, ResultAsked] | None:
        """Its name, spelled out; its step; what was asked for."""
        named = self.named(view, self.handed_in_by(name), here, seat, ended)
        if named is None:
            return None
        step, meant = named
        name = name if step["id"] in (name, name.rpartition("/")[0]) else step["id"]
        asked = {one["id"]: one["result"] for one in meant if one["result"] is not None}
        aggregate = step["aggregate"] if step["kind"] == "cluster" else None
        if aggregate is not None and aggregate["id"] in asked:
            asked = {aggregate["id"]: asked[aggregate["id"]]}
        if not asked:
            view.note("no-result", f"'{name}' hands in no result", "give it one: result: {schema: ...}")
            return None
        if len(asked) > 1 and step["kind"] != "agent":
            ways = ", ".join(f"{step['id']}/{one}" for one in asked)
            view.note("unclear-result", f"which result of '{name}' is meant?", f"one of: {ways}")
            return None
        own = next(iter(asked))
        return name if step["kind"] == "agent" else f"{step['id']}/{own}", step, asked[own]

    def handed_in_by(self, name: str) -> str:
        """The result of a sub-pipeline is that of the last of its steps that hands one in."""
        step = self.steps.get(name)
        if step is None or not is_end(step):
            return name
        several = [self.steps[one] for one in group_of(list(self.steps.values()), step)]
        found = [one["id"] for one in several if any(seat["result"] for _, seat in _places(one))]
        return found[-1] if found else name

    def is_before(self, view: View, step: Step, here: Step) -> bool:
        """Some way leads from there to here, perhaps back."""
        waiting, seen = list(self.ways.get(step["id"], ())), {step["id"]: False}
        while waiting:
            one = waiting.pop()
            if one == here["id"]:
                return True
            if one not in seen:
                seen[one] = True
                waiting += self.ways.get(one, ())
        view.note("too-early", f"'{step['id']}' never runs before '{here['id']}'", "name an earlier step")
        return False


def _wrong_comparison(condition: ResultCompares, schema: Json) -> Iterator[tuple[str, str, str]]:
    """(code, message, hint), where the schema leaves no value for which it could hold."""
    shapes, missing, known = schemas.known_field(schema, condition["field"])
    if missing:
        message = f"the result of '{condition['result']}' has no field '{condition['field']}'"
        yield "unknown-field", message, did_you_mean(missing, known)
        return
    what = f"'{condition['field'] or condition['result']}'"
    types = schemas.types_of(shapes)
    words = schemas.words_of(shapes)
    if "has" in condition:
        if types and "array" not in types:
            yield "wrong-value", f"{what} is {schemas.an(types[0])}, which has no parts", "use is, or in"
        return
    ordered = not any(word in condition for word in ("is", "in"))
    no_number = types and not any(kind in ("number", "integer") for kind in types)
    if ordered and (no_number or (words and not any(schemas.is_a(word, "number") for word in words))):
        yield "wrong-value", f"{what} is no number, and is never more or less than something", "use is, or in"
        return
    if types and all(kind in ("object", "array") for kind in types):
        yield "wrong-value", f"{what} is {schemas.an(types[0])}, which is not compared", "name a field of it"
        return
    wanted: list[object] = [condition["is"]] if "is" in condition else [*condition.get("in", [])]
    for one in wanted:
        if types and not any(schemas.is_a(one, kind) for kind in types):
            yield "wrong-value", f"{what} can never be {one!r}: it is {' or '.join(dict.fromkeys(types))}", ""
        elif words and not any(schemas.same(one, word) for word in words):
            yield "wrong-value", f"{what} can never be {one!r}", did_you_mean(str(one), [str(word) for word in words])


def _spelled(entry: StepInput) -> str:
    return " ".join(f"{word} of {name}" for word, name in entry.items())
