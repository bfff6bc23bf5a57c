"""The file of cases beside a pipeline: read, and checked with line and column.

read_cases(path)      -> TestFile, or BadInput with every problem as file:line:column
file_for(pipeline)    -> where the cases of a pipeline lie: NAME.test.yaml beside it

pipeline: bug-fix.yaml          # left out: the file beside it, of the same name
request: Login fails            # what the runs are asked for
files: {src/login.py: "..."}    # what lies in the repository of every case
answers: [...]                  # for every case, behind its own (docs/reference/agents.md: scripted)
cases:
  - name: the review sends it back once
    params: {target: web}
    switches: {approval: true}
    files: {notes.md: text}
    checks: {tests: "true"}     # the project's own commands, by name; those without one do not run
    answers: [{for: {step: review, visit: 1}, reply: "NEEDS_REVISION: one finding"}]
    decisions: [approve, {revise: "shorter"}, reject, resume, {answer: "PostgreSQL"}]   # in turn, whenever it waits
    expect:
      end: completed            # or failed, waiting_gate, paused, blocked, ...
      reason: tests fail        # stands in what the run says about its end
      steps: [plan, change, review, change, review]
      left_out: [agree]
      ways: [review.NEEDS_REVISION]
      files: {docs/changes/login-fails/review.md: "text that stands in it"}
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict

from tenuto.agents.scripted_program import Answer, wrong
from tenuto.core.pipeline.records import Problem
from tenuto.core.pipeline.values import View, kind_of
from tenuto.core.records.run import Json
from tenuto.core.status import EVERY
from tenuto.errors import BadInput, NotFound
from tenuto.knowledge import definitions, plain_data

_SHARED = ("request", "files", "checks", "answers")
_TOP = ("pipeline", *_SHARED, "cases")
_CASE = ("name", *_SHARED, "params", "switches", "decisions", "expect")
_EXPECT = ("end", "reason", "steps", "left_out", "ways", "files")
_PLAIN = ("approve", "reject", "resume")
_WITH_WORDS = ("approve", "reject", "revise", "answer")


class Decision(TypedDict):
    """What a person does when the run waits."""

    do: Literal["approve", "reject", "revise", "resume", "answer"]
    words: str


class Expectation(TypedDict):
    """What must come of it; None: anything may."""

    end: str
    reason: str
    steps: list[str] | None
    left_out: list[str] | None
    ways: list[str]
    files: dict[str, str]


class Case(TypedDict):
    name: str
    request: str
    files: dict[str, str]
    checks: dict[str, str]
    answers: list[Answer]
    params: Json
    switches: dict[str, bool]
    decisions: list[Decision]
    expect: Expectation


class TestFile(TypedDict):
    file: str
    pipeline: str  # the file, or the name of one
    cases: list[Case]


def file_for(pipeline: Path) -> Path:
    return pipeline.with_name(pipeline.stem + definitions.CASES)


def read_cases(path: Path) -> TestFile:
    if not path.is_file():
        raise NotFound("no-cases", f"there is no file {path}", "tenuto pipeline test --help shows what stands in one")
    source = plain_data.source_of(path)
    problems: list[Problem] = []
    view = View(source.data, (), problems)
    found = _read(view, path) if view.is_mapping("a file of cases", _TOP) else None
    if problems or found is None:
        lines = []
        for problem in sorted(problems, key=lambda one: source.place(one["path"])):
            line, column = source.place(problem["path"])
            located: definitions.LocatedProblem = {
                "file": str(path),
                "line": line,
                "column": column,
                "problem": problem,
            }
            lines.append(definitions.in_words(located))
        raise BadInput("bad-cases", "\n  ".join([f"the cases in {path} cannot be read:", *lines]), "correct them")
    return found


def _read(view: View, path: Path) -> TestFile:
    beside = path.with_name(path.name.removesuffix(definitions.CASES) + ".yaml")
    pipeline = view.get("pipeline").text("the pipeline", "")
    if pipeline.endswith(definitions.SUFFIXES):
        pipeline = str(path.parent / pipeline)
    shared = _shared(view)
    cases = [_case(entry, shared, number) for number, entry in enumerate(view.get("cases").entries(), 1)]
    if not cases:
        view.get("cases").note(
            "missing", "there is no case", "cases: [{name: all goes well, expect: {end: completed}}]"
        )
    names = [case["name"] for case in cases]
    for number, name in enumerate(names):
        if name in names[:number]:
            view.get("cases").entries()[number].note("duplicate", f"two cases are called '{name}'", "rename one")
    return {"file": str(path), "pipeline": pipeline or str(beside), "cases": cases}


class _Shared(TypedDict):
    request: str
    files: dict[str, str]
    checks: dict[str, str]
    answers: list[Answer]


def _shared(view: View) -> _Shared:
    return {
        "request": view.get("request").text("the request", ""),
        "files": _texts(view.get("files"), "the text of a file"),
        "checks": _texts(view.get("checks"), "a command"),
        "answers": [answer for entry in view.get("answers").entries() if (answer := _answer(entry)) is not None],
    }


def _texts(view: View, what: str) -> dict[str, str]:
    return {name: value.text(what) for name, value in view.fields()}


def _answer(view: View) -> Answer | None:
    problem = wrong(view.value)
    if problem:
        view.note("bad-answer", problem, "for example {for: {step: review}, reply: 'DONE: good'}")
        return None
    answer: Answer = view.value  # type: ignore[assignment]  # checked above
    return answer


def _case(view: View, shared: _Shared, number: int) -> Case:
    view.is_mapping("a case", _CASE)
    own = _shared(view)
    return {
        "name": view.get("name").text("the name", f"case {number}"),
        "request": own["request"] or shared["request"] or "Try this pipeline",
        "files": {**shared["files"], **own["files"]},
        "checks": {**shared["checks"], **own["checks"]},
        "answers": [*own["answers"], *shared["answers"]],
        "params": {name: value.value for name, value in view.get("params").fields()},
        "switches": {name: value.flag("a switch", True) for name, value in view.get("switches").fields()},
        "decisions": [_decision(entry) for entry in view.get("decisions").entries()],
        "expect": _expectation(view.get("expect")),
    }


def _decision(view: View) -> Decision:
    if isinstance(view.value, dict):
        view.is_mapping("a decision", _WITH_WORDS)
        if len(view.fields()) == 1:
            ((word, value),) = view.fields()
            return {"do": word, "words": value.text("the words")}  # type: ignore[typeddict-item]  # checked above
        view.note("unclear", "a decision is one word, or one word with what is said", "for example {revise: shorter}")
        return {"do": "resume", "words": ""}
    word = view.choice("a decision", (*_PLAIN, "revise"), "resume")
    return {"do": word, "words": ""}  # type: ignore[typeddict-item]  # checked by choice


def _expectation(view: View) -> Expectation:
    if view.value is None:
        view.note("missing", "nothing is expected of this case", "expect: {end: completed}")
    elif not isinstance(view.value, dict):
        view.note("wrong-type", f"a mapping is needed, not {kind_of(view.value)}", "expect: {end: completed}")
    else:
        view.is_mapping("what is expected", _EXPECT)
    return {
        "end": view.get("end").choice("the end", EVERY, "completed"),
        "reason": view.get("reason").text("the reason"),
        "steps": _steps(view.get("steps")) if view.has("steps") else None,
        "left_out": _steps(view.get("left_out")) if view.has("left_out") else None,
        "ways": view.get("ways").words("a way"),
        "files": _texts(view.get("files"), "text of the file"),
    }


def _steps(view: View) -> list[str]:
    """One may come twice."""
    return [entry.text("a step") for entry in view.entries()]
