"""`tenuto staged <operation>`: the staged state in .agents/tmp/state.json. JSON in, JSON out.

    tenuto staged init '{"task": "Add dark mode", "taskAnalysis": {"complexity": "medium"}}'
    tenuto staged init --task "Add dark mode" --pipelineProfile standard
    tenuto staged read
    tenuto staged update '{"coverageThreshold": 80}'
    tenuto staged record-output 1.2 --content-file plan.md
    tenuto staged record-output '{"phase": "1.3", "content": {"status": "approved", "issues": []}}'
    tenuto staged record-review '{"status": "needs_revision", "issues": []}'
    tenuto staged record-coverage 85
    tenuto staged record-failure '{"phase": "2.1", "error": "Task agent timeout", "context": {}}'
    tenuto staged validate-gate [GATE]
    tenuto staged advance
    tenuto staged restart PLAN --reason "the plan is wrong"
    tenuto staged stop | resume | unblock | owner [PID]

A JSON object comes as the argument, or on standard input (`-`). --json for the envelope. Ends with 4 when a gate does not pass or
a review is not approved.
"""

from __future__ import annotations

import sys

from tenuto.encoding import NotJson, loads_strict
from tenuto.entrypoints.answers import show
from tenuto.entrypoints.opening import open_here
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json

_LONGEST = 1 << 26
_NOT_PASSED = 4
_CONTENT = ("--content-file", "--file")


def main(words: list[str]) -> int:
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    if not words or words[0] in ("--help", "-h"):
        sys.stdout.write((__doc__ or "") if words else (__doc__ or "").partition("\n\n")[2])
        return 0 if words else 2
    name = words[0].replace("_", "-")
    operation = OPERATIONS.get(name)
    if operation is None:
        raise BadInput("usage", f"tenuto staged has no operation {words[0]!r}; it has {', '.join(OPERATIONS)}")
    workspace = open_here()
    plain, fields = divide(words[1:])
    answer = operation(workspace.staged, plain, fields)
    show(workspace, answer, as_json)
    return _NOT_PASSED if _is_negative(answer) else 0


def _is_negative(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    review = answer.get("review")
    return answer.get("passed") is False or answer.get("advanced") is False or (
        isinstance(review, dict) and not review["approved"]
    )  # fmt: skip


def divide(words: list[str]) -> tuple[list[str], Json]:
    """Plain words, and fields: from a JSON object given as a word or on standard input, and from --field value."""
    plain: list[str] = []
    fields: Json = {}
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            key, equals, value = word.partition("=")
            value = value if equals else next(rest, "true")
            fields["file" if key in _CONTENT else key[2:]] = value if key in (*_CONTENT, "--task") else read_value(value)
        elif word == "-":
            fields = {**read_object(sys.stdin.buffer.read(_LONGEST).decode("utf-8", "surrogateescape")), **fields}
        elif word.lstrip().startswith("{"):
            fields = {**read_object(word), **fields}
        else:
            plain.append(word)
    return plain, fields


def read_value(text: str) -> Any:
    try:
        return loads_strict(text)
    except NotJson:
        return text


def read_object(text: str) -> Json:
    try:
        given = loads_strict(text)
    except (NotJson, UnicodeEncodeError) as problem:
        raise BadInput("not-json", f"this is not JSON: {problem}", '{"task": "Add dark mode"}') from None
    if not isinstance(given, dict):
        raise BadInput("not-json", "this is no JSON object", '{"task": "Add dark mode"}')
    return given


def _init(staged: Any, plain: list[str], fields: Json) -> Any:
    task = fields.pop("task", None) or " ".join(plain)
    if not isinstance(task, str) or not task.strip():
        raise BadInput("missing-field", "init needs a task", '{"task": "Add dark mode"}')
    return staged.init(task, **fields)


def _read(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.read()


def _update(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.update(fields)


def _record_output(staged: Any, plain: list[str], fields: Json) -> Any:
    phase = str(_one(plain, fields, "phase"))
    file = fields.get("file")
    if file == "-":
        return staged.record_output(phase, content=sys.stdin.buffer.read(_LONGEST))
    return staged.record_output(phase, content=fields.get("content"), file=file)


def _record_review(staged: Any, plain: list[str], fields: Json) -> Any:
    phase = str(plain[0]) if plain else fields.pop("phase", None)
    if "file" in fields:
        return staged.record_output(phase if phase is not None else staged.read()["currentPhase"], file=fields["file"])
    return staged.record_review(fields.get("review", fields), phase)


def _record_coverage(staged: Any, plain: list[str], fields: Json) -> Any:
    percent = read_value(str(_one(plain, fields, "percent")).removesuffix("%"))
    if not isinstance(percent, (int, float)) or isinstance(percent, bool):
        raise BadInput("bad-coverage", f"coverage is a number of percent, not {percent!r}", "85")
    return staged.record_coverage(percent, fields.get("phase"))


def _record_failure(staged: Any, plain: list[str], fields: Json) -> Any:
    error = fields.get("error") or " ".join(plain)
    if not error:
        raise BadInput("missing-field", "record-failure needs an error", '{"phase": "2.1", "error": "..."}')
    phase = fields.get("phase")
    return staged.record_failure(str(error), str(phase) if phase is not None else None, fields.get("context"))


def _validate_gate(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.validate_gate(plain[0] if plain else fields.get("gate"))


def _advance(staged: Any, plain: list[str], fields: Json) -> Any:
    to = plain[0] if plain else fields.get("to")
    return staged.advance(str(to) if to is not None else None)


def _restart(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.restart(plain[0] if plain else fields.get("stage"), str(fields.get("reason", "")))


def _stop(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.stop(str(fields.get("reason") or " ".join(plain)))


def _resume(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.resume()


def _unblock(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.unblock()


def _owner(staged: Any, plain: list[str], fields: Json) -> Any:
    return staged.owner(plain[0] if plain else fields.get("pid"))


def _one(plain: list[str], fields: Json, field: str) -> Any:
    value = plain[0] if plain else fields.get(field)
    if value is None:
        raise BadInput("missing-field", f"{field} is missing", "tenuto staged --help", field=field)
    return value


OPERATIONS: dict[str, Callable[[Any, list[str], Json], Any]] = {
    "init": _init, "read": _read, "update": _update, "record-output": _record_output, "record-failure": _record_failure,
    "validate-gate": _validate_gate, "advance": _advance, "record-review": _record_review,
    "record-coverage": _record_coverage, "restart": _restart, "stop": _stop, "resume": _resume, "unblock": _unblock,
    "owner": _owner,
}  # fmt: skip
