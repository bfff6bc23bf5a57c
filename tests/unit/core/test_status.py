"""Every command in every status: accepted, or refused by a code; and the run is afterwards what the table allows."""

from __future__ import annotations

import ast
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any, get_args

import pytest

from prove import recorded
from prove.frame import ROOT
from tenuto.core.decide import _FAMILY_OF, decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.pipeline.check import check
from tenuto.core.records.run import Status
from tenuto.core.status import ENDED, EVERY, FOLLOWED_BY, may_follow
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads
from tenuto.errors import BadInput, Refused

AT = {"at": "2026-11-15T10:00:00.000Z", "by": "ada"}
LATER = "2026-11-15T12:00:00.000Z"
REF = {"name": "trial", "hash": "h"}
FACT = {"exists": True, "filled": True, "parses": True, "recorded": True}
# Each command, asked for in the ways that a rule tells apart.
COMMANDS: dict[str, list[dict[str, Any]]] = {
    "StartRun": [{"run": "other", "name": "other", "pipeline": REF}],
    "Adopt": [{"dialect": "flow", "path": "f", "sha256": "0", "state": {}}],
    "StartStep": [{"step": "build"}, {"step": "review"}, {"step": "nowhere"}],
    "EndStep": [
        {"step": "build", "status": "success"},
        {"step": "build", "status": "failed"},
        {"step": "x", "status": "failed"},
    ],
    "SkipStep": [{"step": "review"}, {"step": "nowhere"}],
    "Advance": [
        {},
        {"to": "review"},
        {"to": "nowhere"},
        {"to": "review", "facts": {"out.md": FACT}},
        {"facts": {"out.md": FACT}},
    ],
    "CheckEvidence": [
        {"gate": "ONE->TWO", "facts": {}},
        {"gate": "ONE->TWO", "facts": {"out.md": FACT}},
        {"gate": "x", "facts": {}},
    ],
    "RestartStage": [{"stage": "ONE", "reason": "r"}, {"stage": "x", "reason": "r"}],
    "DispatchAttempt": [
        {"attempt": "n", "role": "worker"},
        {"attempt": "t", "role": "worker"},
        {"attempt": "build-1-worker-1", "role": "worker", "extra": {"seat": "worker"}},
    ],
    "DispatchAttempts": [
        {"attempts": []},
        {"attempts": [{"attempt": "build-1-worker-1", "role": "worker", "extra": {"seat": "worker"}}]},
    ],
    "StartAttempt": [{"attempt": "t"}, {"attempt": "nobody"}],
    "FinishAttempt": [
        {"attempt": "t", "status": "completed", "verdict": "DONE"},
        {"attempt": "t", "status": "completed", "verdict": "QUESTION", "summary": "which?"},
        {"attempt": "t", "status": "failed", "verdict": "PARKED", "parked_until": LATER},
        {"attempt": "nobody", "status": "failed"},
    ],
    "LoseAttempt": [
        {"attempt": "t", "reason": "r"},
        {"attempt": "t", "reason": "r", "ran": False},
        {"attempt": "nobody", "reason": "r"},
    ],
    "PlanItems": [{"items": {"1": {"title": "one"}}, "waves": [["1"]]}],
    "ChangeItem": [{"item": "1", "status": "completed"}, {"item": "2", "status": "completed"}],
    "OpenGate": [{"name": "look", "prompt": "?"}, {"name": "final", "prompt": "?", "completes": True}],
    "DecideGate": [{"decision": word, "who": "ada"} for word in ("approve", "reject", "revise", "maybe")],
    "Checkpoint": [{"step": "build", "approved": yes, "who": "ada"} for yes in (True, False)]
    + [{"step": "build", "approved": True, "who": "ada", "facts": {"out.md": FACT}}],
    "Pause": [{"reason": "r"}, {"reason": "r", "kind": "person"}],
    "Resume": [{}, {"early": True}, {"decision": "reject"}, {"decision": "maybe", "early": True}],
    "Park": [{"until": LATER, "reason": "r"}],
    "Fail": [{"error": "e"}],
    "Finish": [{"outcome": outcome} for outcome in ("completed", "poc-complete", "graduated")],
    "Cancel": [{}],
    "Stop": [{}],
    "PickUp": [{}],
    "Block": [{"reason": "r"}],
    "Unblock": [{}],
    "RecordReview": [
        {"step": "review", "review": {"status": "approved"}},
        {"step": "build", "review": "approved"},
        {"step": "review", "review": None},
    ],
    "CountReview": [{"step": "review", "fix_attempts": 1}, {"step": "review", "fix_attempts": -1}],
    "RecordCoverage": [
        {"step": "review", "percent": 95.0},
        {"step": "build", "percent": 10.0},
        {"step": "build", "percent": None},
    ],
    "StoreArtifact": [{"name": "a", "path": "a.md", "sha256": "0", "size": 1}],
    "WriteMemory": [{"kind": "lessons", "entries": [{"who": "w", "step": "build", "text": "t", "invalidated": None}]}],
    "PruneMemory": [{"keep": ["build"]}],
    "InvalidateMemory": [{"steps": ["build"], "reason": "r"}],
    "CleanMemory": [{}],
    "SetFlags": [{"flags": {"x": True}}],
    "RecordCommit": [{"step": "build", "hash": "0", "message": "m"}],
    "SaveContext": [{"context": {"lastAction": "x"}}],
    "RestoreContext": [{}],
    "RecordAnswers": [{"answers": {"q": "a"}}],
    "Engage": [{"pipeline": REF}, {"pipeline": REF, "start_at": "review"}, {"pipeline": REF, "start_at": "nowhere"}],
    "BeginVisit": [{}],
    "RecordAction": [{"action": "before:prune-memory"}, {"action": "x"}],
    "PlanVisit": [{"items": []}],
    "Conclude": [{}, {"changed": ["out.md"]}],
    "RetryStep": [{"step": "build"}, {"step": "nowhere"}],
    "Fork": [{"source": "s", "at_step": "review", "at_version": 3, "approved": []}],
    "ChangeSettings": [{"changes": {"a": 1}}, {"changes": {"gate_protection": {}}}],
    "ChangeBudget": [{"limits": {"attempts": 3}}, {"limits": {"wishes": 3}}],
    "ChangeDriver": [
        {"driver": "manual"},
        {"driver": "engine"},
        {"driver": "engine", "pipeline": {"name": "other", "hash": None}},
    ],
    "ShowIn": [{"dialect": "flow", "place": {}}],
    "BindSession": [{"session": "s"}],
    "AbsorbEdit": [{"dialect": "flow", "path": "p", "sha256": "0"}],
    "Note": [{"text": "t"}],
}
LEADING: dict[str, list[dict[str, Any]]] = {
    "paused": [{"do": "Pause", "kind": "person", "reason": "tired"}],
    "waiting_gate": [{"do": "OpenGate", "name": "look", "prompt": "Go on?"}],
    "parked": [{"do": "Park", "until": LATER, "reason": "limit"}],
    "blocked": [{"do": "Block", "reason": "nobody knows"}],
    "stopped": [{"do": "Stop"}],
    "completed": [{"do": "Finish"}],
    "poc-complete": [{"do": "Finish", "outcome": "poc-complete"}],
    "graduated": [{"do": "Finish", "outcome": "poc-complete"}, {"do": "Finish", "outcome": "graduated"}],
    "failed": [{"do": "Fail", "error": "broken"}],
    "cancelled": [{"do": "Cancel"}],
}
SCHEDULE = [
    {"step": "build", "stage": "ONE", "approval": True, "coverage": {"back_to": "build"}},
    {"step": "review", "stage": "TWO", "type": "review"},
]
EVIDENCE = {"ONE->TWO": {"required": ["out.md"], "step": "build"}}
STEPS = [
    {"id": "build", "agent": {"role": "worker", "out": "out.md"}, "before": ["prune-memory"]},
    {"id": "review", "agent": {"role": "reviewer"}},
]
SENT = {"do": "DispatchAttempt", "attempt": "t", "role": "worker"}
SITUATIONS: dict[str, list[dict[str, Any]]] = {
    "by hand, nothing begun": [],
    "by hand, in a step with an agent": [{"do": "StartStep", "step": "build"}, SENT],
    "by hand, along a schedule": [{"schedule": SCHEDULE, "evidence": EVIDENCE}, {"do": "Advance"}],
    "by hand, along an open schedule": [{"schedule": SCHEDULE, "order": "open"}, {"do": "StartStep", "step": "build"}],
    "driven, before its first step": [{"do": "Engage", "pipeline": REF}],
    "driven, in a step": [{"do": "Engage", "pipeline": REF}, {"do": "BeginVisit"}],
    "driven, with an agent at work": [
        {"do": "Engage", "pipeline": REF},
        {"do": "BeginVisit"},
        {"do": "RecordAction", "action": "before:prune-memory"},
        {**SENT, "attempt": "build-1-worker-1", "extra": {"seat": "worker"}},
    ],
}


def pipeline() -> Any:
    found, problems = check({"name": "trial", "steps": STEPS})
    assert found is not None, problems
    return found


PIPELINE = pipeline()


def said(run: Any, command: dict[str, Any]) -> Any:
    """The run after it; the one that is given stays as it is."""
    definition = PIPELINE if run is None or run["pipeline"]["hash"] or command["do"] == "Engage" else None
    stamped: Any = {**command, **AT}
    events = decide(definition, new_repo(), run, stamped)
    after = loads(dumps(run)) if run is not None else new_run()
    for event in events:
        apply(after, loads(dumps(event)))
    return after


def in_status(situation: str, status: str) -> Any:
    """A run of this status in this situation; what no command leads to from there is set."""
    said_first: list[dict[str, Any]] = [*SITUATIONS[situation], {}]
    first, *rest = said_first
    start = {"do": "StartRun", "run": "r", "name": "r", "mode": "poc", "pipeline": {"name": "trial", "hash": None}}
    run = said(None, start | (first if "do" not in first else {}))
    for command in [*([first] if "do" in first else []), *rest]:
        if command:
            run = said(run, command)
    for command in LEADING.get(status, []):
        try:
            run = said(run, command)
        except Refused:
            break
    run["status"] = status
    return run


def tried(situation: str, status: str, do: str, fields: dict[str, Any]) -> str:
    """The status afterwards; or the code of the refusal, with a mark."""
    run = in_status(situation, status)
    before = dumps(run)
    attempt = fields.get("attempt")
    if attempt == "t" and "t" not in run["attempts"] and run["in_flight"]:
        fields = {**fields, "attempt": run["in_flight"][0]}
    try:
        after = said(run, {"do": do, **fields})
    except (Refused, BadInput) as refusal:
        assert refusal.code and refusal.message
        return f"!{refusal.code}"
    finally:
        assert dumps(run) == before, "decide changed the run"
    return str(after["status"])


def load(script: str) -> ModuleType:
    """A script without an ending, as a module."""
    spec = spec_from_loader("script", SourceFileLoader("script", str(ROOT / script)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_is_tried() -> None:
    assert set(COMMANDS) == set(_FAMILY_OF)


def test_every_status_has_its_row() -> None:
    assert sorted(EVERY) == sorted(get_args(Status)) == sorted(FOLLOWED_BY)


@pytest.mark.parametrize("status", EVERY)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_command_in_every_status_is_accepted_or_refused_by_a_code(situation: str, status: Status) -> None:
    """No other exception; a refusal changes nothing; and what the run is afterwards stands in the table."""
    wrong = []
    for do, ways in COMMANDS.items():
        for fields in ways:
            after = tried(situation, status, do, fields)
            if not after.startswith("!") and after not in (status, *FOLLOWED_BY[status]):
                wrong.append(f"{do} {fields}: {status} -> {after}")
    assert wrong == []


@pytest.mark.parametrize("name", recorded.names())
def test_no_recorded_run_ever_went_another_way(name: str) -> None:
    states: dict[str, Any] = {}
    for line in map(loads, (recorded.FOLDER / name / "journal.jsonl").read_text().splitlines()):
        if line["kind"] == "event" and line["run"] != "@":
            event = upgrade(line["event"], line["run"])
            run = states.setdefault(line["run"], new_run())
            before = run["status"]
            apply(run, event)
            assert event["type"] == "Adopted" or may_follow(before, run["status"]), (
                before,
                event["type"],
                run["status"],
            )


def test_what_has_ended_stays_so() -> None:
    """A failed run may be tried again from a step, and the debt of a POC may be stored after its last gate; from every
    other end nothing leads on."""
    assert {status for status in ENDED if FOLLOWED_BY[status]} == {"failed", "completed"}
    assert FOLLOWED_BY["completed"] == ("poc-complete",)
    for situation in SITUATIONS:
        mode = in_status(situation, "completed")["mode"]
        after = tried(situation, "completed", "Finish", {"outcome": "poc-complete"})
        assert after == ("poc-complete" if mode == "poc" else "!run-ended")


def test_the_page_in_the_docs_is_current() -> None:
    page = (ROOT / "docs/reference/statuses.md").read_text(encoding="utf-8")
    assert page == load("docs/reference/write-statuses").text()


def test_every_tuple_of_statuses_has_its_name_in_one_place() -> None:
    """A step, an attempt and the context's own files have statuses, too: their words are not looked at."""
    shared = {"pending", "running", "completed", "failed", "skipped", "blocked", "dispatched", "lost"}
    found = []
    for path in sorted((ROOT / "tenuto").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where == "tenuto/core/status.py" or "/records" in where or "/context/" in where:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 1:
                words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
                if len(words) == len(node.elts) and words <= set(EVERY) and not words <= shared:
                    found.append(f"{where}:{node.lineno}: {sorted(map(str, words))}")
    assert found == []
