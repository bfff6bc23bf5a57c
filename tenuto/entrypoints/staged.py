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

A JSON object comes as a word, or on standard input (`-` waits for it); record-output takes what is piped in as the
phase's output. A field or an option that the operation does not know is refused with the nearest one. --json for the
envelope. Ends with 4 when a gate does not pass or a review is not approved.

init takes the flags of the original, too: --profile, --complexity, --no-test, --no-web-search, --no-worktree.
"""

from __future__ import annotations

from tenuto.dialects.staged import StagedOperations
from tenuto.dialects.staged_beginning import FOLLOWING
from tenuto.entrypoints.options import FILE, JSON, OBJECT, TEXT, WORD, Command, Option, read_call
from tenuto.entrypoints.speak import open_here, show
from tenuto.errors import BadInput
from tenuto.views.staged_document import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.records.run import Json

_NOT_PASSED = 4
# Keys of real files that belong to their hooks.
_OF_HOOKS = (
    "plugin",
    "pipeline",
    "loopIteration",
    "reviewFix",
    "supplementaryRun",
    "coverageLoop",
    "codexFallback",
    "exploreAggregator",
    "planAggregator",
    "compaction",
)
_KEYS = {**dict.fromkeys((*SETTINGS, *_OF_HOOKS, *FOLLOWING), JSON), "extra": OBJECT}
_CONTENT_FILE = {"file": FILE, "content-file": Option("file", "file")}
_BEGINNING = {
    "task": TEXT,
    "pipelineProfile": TEXT,
    "profile": Option("text", "pipelineProfile"),
    "complexity": TEXT,
    "no-test": Option("flag", "needsTests", False),
    "no-tests": Option("flag", "needsTests", False),
    "no-docs": Option("flag", "needsDocs", False),
    "no-web-search": Option("flag", "webSearch", False),
    "no-worktree": Option("flag", "worktree", None),
}

TAKES = {
    "init": Command(("task...",), {**_BEGINNING, **_KEYS}, required=("task",)),
    "read": Command(),
    "update": Command((), {**_KEYS, "task": TEXT, "pipelineProfile": TEXT}),
    "record-output": Command(
        ("phase",),
        {"phase": WORD, "content": JSON, **_CONTENT_FILE},
        required=("phase",),
        content="content",
        instead=("content", "file"),
    ),
    "record-failure": Command(("error...",), {"phase": WORD, "error": TEXT, "context": JSON}, required=("error",)),
    "validate-gate": Command(("gate",), {"gate": TEXT}),
    "advance": Command(("to",), {"to": WORD}),
    "record-review": Command(
        ("phase",), {"phase": WORD, "review": JSON, **_CONTENT_FILE}, content="review", is_open=True
    ),
    "record-coverage": Command(("percent",), {"percent": JSON, "phase": WORD}, required=("percent",)),
    "restart": Command(("stage",), {"stage": TEXT, "reason": TEXT}),
    "stop": Command(("reason...",), {"reason": TEXT}),
    "resume": Command(),
    "unblock": Command(),
    "owner": Command(("pid",), {"pid": WORD}),
}


def main(words: list[str]) -> int:
    call = read_call("staged", "operation", TAKES, words, __doc__ or "")
    if call is None:
        return 0
    workspace = open_here()
    answer = OPERATIONS[call.name](StagedOperations(workspace), call.fields)
    show(workspace, answer, call.as_json)
    return _NOT_PASSED if _is_negative(answer) else 0


def _is_negative(answer: Json | None) -> bool:
    if not isinstance(answer, dict):
        return False
    review = answer.get("review")
    return (
        answer.get("passed") is False
        or answer.get("advanced") is False
        or (isinstance(review, dict) and not review["approved"])
    )


def _init(staged: StagedOperations, fields: Json) -> Json | None:
    """The originals' flags speak of the task's analysis."""
    analysis = {key: fields.pop(key) for key in ("complexity", "needsTests", "needsDocs") if key in fields}
    if analysis:
        given = fields.get("taskAnalysis", {})
        fields["taskAnalysis"] = {**given, **analysis} if isinstance(given, dict) else given
    return staged.init(fields.pop("task"), **fields.pop("extra", {}), **fields)


def _read(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.read()


def _update(staged: StagedOperations, fields: Json) -> Json | None:
    changes = {**fields.pop("extra", {}), **fields}
    if not changes:
        raise BadInput("missing-field", "update needs something to change", '{"webSearch": false}')
    return staged.update(changes)


def _record_output(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.record_output(fields["phase"], content=fields.get("content"), file=fields.get("file"))


def _record_review(staged: StagedOperations, fields: Json) -> Json | None:
    phase, file, review = fields.pop("phase", None), fields.pop("file", None), fields.pop("review", None)
    if file is not None:
        if phase is None:
            state = staged.read()
            phase = state["currentPhase"] if state else ""  # without a state, the operation says so itself
        return staged.record_output(phase, file=file)
    if review is None and "status" not in fields and "issues" not in fields:
        near = f" it has {', '.join(map(repr, fields))}" if fields else ""
        raise BadInput(
            "missing-field",
            f"a review needs a status:{near or ' there is none'}",
            '{"status": "approved", "issues": []}',
        )
    return staged.record_review(fields if review is None else review, phase)


def _record_coverage(staged: StagedOperations, fields: Json) -> Json | None:
    percent = fields["percent"]
    if isinstance(percent, str):
        from tenuto.encoding import NotJson, loads_strict

        try:
            percent = loads_strict(percent.removesuffix("%"))
        except NotJson:
            pass
    if not isinstance(percent, (int, float)) or isinstance(percent, bool):
        raise BadInput("bad-coverage", f"coverage is a number of percent, not {percent!r}", "85")
    return staged.record_coverage(percent, fields.get("phase"))


def _record_failure(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.record_failure(fields["error"], fields.get("phase"), fields.get("context"))


def _validate_gate(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.validate_gate(fields.get("gate"))


def _advance(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.advance(fields.get("to"))


def _restart(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.restart(fields.get("stage"), fields.get("reason", ""))


def _stop(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.stop(fields.get("reason", ""))


def _resume(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.resume()


def _unblock(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.unblock()


def _owner(staged: StagedOperations, fields: Json) -> Json | None:
    return staged.owner(fields.get("pid"))


OPERATIONS: dict[str, Callable[[StagedOperations, Json], Json | None]] = {
    "init": _init,
    "read": _read,
    "update": _update,
    "record-output": _record_output,
    "record-failure": _record_failure,
    "validate-gate": _validate_gate,
    "advance": _advance,
    "record-review": _record_review,
    "record-coverage": _record_coverage,
    "restart": _restart,
    "stop": _stop,
    "resume": _resume,
    "unblock": _unblock,
    "owner": _owner,
}
