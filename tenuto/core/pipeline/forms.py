"""Forms: what a gate asks a person for besides the decision.

    gate:
      prompt: Release it?
      fields:
        env: {of: [staging, prod], description: Where it goes.}    a choice; it has no default, so it must be answered
        replicas: 2                                                a number, 2 unless the person says otherwise
        canary: true                                               yes or no
        regions: {type: several, of: [eu, us], required: false}    any of these; may be left out
        why: text

A field is declared like a parameter (params.py). Its answer is called GATE.FIELD: the id of the gate's step, and the
field. `when: {answer: agree.env, is: prod}` asks for it, and {answers.agree.env} stands for it.

    declared(steps)                GATE.FIELD -> field, of a definition as it was read from its file
    complete(gate, fields, ...)    the answers of an approval, checked and whole; BadInput names everything wrong
    known(run)                     gate -> its answers, as they were approved last
    names(text)                    the answers that a text asks for
    fill(text, spell)              the text with each {answers.GATE.FIELD} spelled as `spell` says
    check(view, steps)             what only the whole definition shows: unknown names, places where none can stand
                                   and answers that are needed before anybody was asked

Rule 1: only an approval has answers. Reject and revise take words (feedback), and are refused with answers.
Rule 2: a gate that was never approved has no answers, also where a field has a default: nobody has confirmed it. A
condition on such an answer does not hold, and a command that needs it is not started.
Rule 3: in a prompt, what a definition lists or counts (choice, several, number, flag) stands where it is named. What a
person typed freely is data: it stands between marks, below.
"""

from __future__ import annotations

from tenuto.core.pipeline import params
from tenuto.core.pipeline.values import View, did_you_mean
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tenuto.core.pipeline.records import Outcome, Param, ParamValue, Pipeline, Step, When
    from tenuto.core.records.run import Json, Run

FILLED = ("focus", "task", "prompt", "command", "env")
"""The keys of a step in whose text an answer may stand."""
_OPENING = "{answers."
_LISTED = ("choice", "several", "number", "flag")
NOT_ANSWERED = "(not answered)"


def read(view: View) -> dict[str, Param]:
    return params.read(view, "a field")


def declared(steps: View) -> dict[str, Param]:
    """What is wrong with them is said where the gate is read."""
    found: dict[str, Param] = {}
    for entry in steps.entries():
        gate, identity = entry.get("gate"), entry.get("id").value
        if isinstance(identity, str) and gate.has("fields"):
            own = read(View(gate.get("fields").value, (), []))
            found |= {f"{identity}.{name}": field for name, field in own.items()}
    return found


def fields_of(pipeline: Pipeline) -> dict[str, Param]:
    """The same of a checked one."""
    return {
        f"{step['id']}.{name}": field
        for step in pipeline["steps"]
        if step["kind"] == "gate"
        for name, field in step["gate"].get("fields", {}).items()
    }


# ---- answered --------------------------------------------------------------------------------------


def complete(gate: str, fields: Mapping[str, Param], given: Mapping[str, object], run: str) -> dict[str, ParamValue]:
    answers, problems = params.complete(fields, given, f"gate '{gate}' has no field")
    if problems:
        missing = [name for name in params.missing(fields, given)] or ["NAME"]
        hint = f"tenuto approve {run} {' '.join(f'--set {name}=VALUE' for name in missing)}"
        raise BadInput("bad-answers", "; ".join(problems), hint, fields=list(fields))
    return answers


def known(run: Run) -> dict[str, dict[str, ParamValue]]:
    """By the id of the gate's step. A fork has those of its source."""
    found: dict[str, dict[str, ParamValue]] = {**run["extra"].get("fork", {}).get("answers", {})}
    for decision in run["decisions"]:
        if decision["approved"] and decision["step"] and "answers" in decision:
            found[decision["step"]] = decision["answers"]
    return found


def flat(answers: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, ParamValue]:
    """GATE.FIELD -> value"""
    return {f"{gate}.{name}": value for gate, own in answers.items() for name, value in own.items()}


def value_of(name: str, answers: Mapping[str, Mapping[str, ParamValue]]) -> str | None:
    """As text; "" where the gate was answered without this field, None where it was not answered."""
    gate, _, field = name.rpartition(".")
    if gate not in answers:
        return None
    return params.as_text(answers[gate][field]) if field in answers[gate] else ""


# ---- in texts --------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split(_OPENING)[1:]]


def fill(text: str, spell: Callable[[str], str], literal: Callable[[str], str] = str) -> str:
    """`literal`: what becomes of the text around them. What an answer holds is not looked at again."""
    before, *parts = text.split(_OPENING)
    filled = literal(before)
    for part in parts:
        name, _, rest = part.partition("}")
        filled += spell(name) + literal(rest)
    return filled


def in_line(text: str, answers: Mapping[str, Mapping[str, ParamValue]]) -> str:
    """For people: on one line, whatever was typed."""
    return fill(text, lambda name: " ".join((value_of(name, answers) or NOT_ANSWERED).split()))


def in_instruction(text: str, fields: Mapping[str, Param], answers: Mapping[str, Mapping[str, ParamValue]]) -> str:
    """For a model (rule 3)."""

    def spell(name: str) -> str:
        value = value_of(name, answers)
        if not value:
            return NOT_ANSWERED
        listed = name in fields and fields[name]["type"] in _LISTED
        return value if listed else f"(the answer {name}, in the data below)"

    return fill(text, spell)


# ---- checked ---------------------------------------------------------------------------------------


def check(view: View, steps: Sequence[Step]) -> None:
    """`view`: the same steps, as they were written."""
    fields = declared(view)
    order = {step["id"]: place for place, step in enumerate(steps)}
    for there, step in zip(view.entries(), steps, strict=False):
        for path, text, allowed in _texts(there.value, there, False):
            for name in names(text):
                if name not in fields:
                    path.note("unknown-answer", f"no gate asks for '{name}'", _known(name, fields))
                elif not allowed:
                    hint = f"it can in: {', '.join(FILLED)}"
                    path.note("bad-place", f"'{{answers.{name}}}' cannot stand here", hint)
                else:
                    _ordered(path, step, name, order)
        for place, when in _conditions(there, step):
            for name in _asked(when):
                _ordered(place, step, name, order)


def _conditions(view: View, step: Step) -> Iterator[tuple[View, When]]:
    """Those of the step, of its members and of its routes."""
    yield view.get("when"), step["when"]
    if step["kind"] == "cluster":
        for seat in step["cluster"]["members"]:
            yield view.get("cluster"), seat["when"]
    waiting: list[Outcome | None] = [*step["on"].values()]
    while waiting:
        outcome = waiting.pop()
        if outcome is not None and outcome["do"] == "route":
            yield view.get("on"), outcome["when"]
            waiting += [outcome["then"], outcome["otherwise"]]


def _known(name: str, fields: Mapping[str, Param]) -> str:
    return did_you_mean(name, fields) or "write GATE.FIELD: the id of a gate with `fields`, and one of them"


def _ordered(view: View, step: Step, name: str, order: Mapping[str, int]) -> None:
    gate = name.rpartition(".")[0]
    if not step["aside"] and order[gate] >= order[step["id"]]:
        message = f"'{step['id']}' needs the answer '{name}' before anybody was asked for it"
        view.note("asked-later", message, f"move it behind the gate '{gate}'")


def _texts(value: object, view: View, allowed: bool) -> Iterator[tuple[View, str, bool]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _texts(entry, view.at(key, entry), allowed or key in FILLED)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _texts(entry, view.at(index, entry), allowed)
    elif isinstance(value, str) and _OPENING in value:
        yield view, value, allowed


def _asked(when: When) -> Iterator[str]:
    """The answers that a condition asks for."""
    record: Json = {} if isinstance(when, str) else {**when}
    if "answer" in record:
        yield record["answer"]
    for inner in (*record.get("all", ()), *record.get("any", ()), *([record["not"]] if "not" in record else ())):
        yield from _asked(inner)
