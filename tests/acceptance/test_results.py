"""Structured results: JSON besides the verdict, checked, kept in the journal, asked about, handed on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core.pipeline.results import result_of
from tenuto.engine.begin import start
from tenuto.engine.guided import accept, hand_out
from tenuto.errors import BadInput
from tests.acceptance.rehearsing import Stage
from tests.support.trusting import trust

HEAD = "name: own\ndocuments: docs/{slug}\n"
SCHEMA = {
    "type": "object",
    "required": ["open"],
    "additionalProperties": False,
    "properties": {
        "open": {"type": "integer", "minimum": 0},
        "worst": {"enum": ["low", "high"]},
        "modules": {"type": "array", "items": {"type": "string"}},
    },
}
INLINE = json.dumps(SCHEMA)
SCAN = f"""
steps:
  - id: scan
    agent: {{role: researcher, retry: {{ERROR: 1}}, result: {{schema: {INLINE}}}}}
  - id: mend
    when: {{result: scan, field: open, more_than: 0}}
    agent: {{role: implementer, touches: "**", context: [{{result: scan}}]}}
"""


def stage_with(folder: Path, steps: str, answers: list[dict[str, Any]] | None = None, **files: str) -> Stage:
    stage = Stage(folder, answers)
    own = stage.root / ".tenuto" / "pipelines"
    own.mkdir(parents=True)
    (own / "own.yaml").write_text(HEAD + steps)
    for name, text in files.items():
        (own / f"{name}.json").write_text(text)
    trust(stage.root)
    return stage


def play(stage: Stage, **how: Any) -> Any:
    return stage.play("Add dark mode", "own", **how)


def reply(value: object, before: str = "Here it is.", after: str = "") -> str:
    return f"{before}\n\n```json\n{json.dumps(value, indent=2)}\n```\n{after}\nDONE: scanned"


def prompt_of(stage: Stage, attempt: str) -> str:
    return (Path(stage.workspace.state) / f"attempts/add-dark-mode/{attempt}/1/prompt").read_text()


def answer(step: str, text: str, **where: Any) -> dict[str, Any]:
    return {"for": {"step": step, **where}, "reply": text}


# ---- what is handed in


def test_a_result_is_kept_in_the_journal_and_a_condition_asks_about_its_field(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, SCAN, [answer("scan", reply({"open": 2, "worst": "high"}))])
    run = play(stage)
    assert run["status"] == "completed"
    assert list(run["attempts"]) == ["scan-1-researcher-1", "mend-1-implementer-1"]
    assert result_of(run, "scan") == {"open": 2, "worst": "high"}
    with stage.workspace.journal.read() as reader:
        (event,) = [
            one
            for one in reader.events(run["id"])
            if one["type"] == "AttemptFinished" and one["attempt"] == "scan-1-researcher-1"
        ]
    assert event["receipt"]["result"] == {"open": 2, "worst": "high"}
    assert '"worst": "high"' in prompt_of(stage, "mend-1-implementer-1")


def test_a_condition_that_does_not_hold_leaves_the_step_out_and_says_why(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, SCAN, [answer("scan", reply({"open": 0}))])
    run = play(stage)
    assert (run["status"], run["steps"]["mend"]["status"]) == ("completed", "skipped")
    with stage.workspace.journal.read() as reader:
        (reason,) = [one["reason"] for one in reader.events(run["id"]) if one["type"] == "StepSkipped"]
    assert reason == run["steps"]["mend"]["reason"] == "this does not hold: open of scan is more than 0"


def test_the_agent_is_told_which_result_is_asked_of_it(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, SCAN, [answer("scan", reply({"open": 0}))])
    play(stage)
    prompt = prompt_of(stage, "scan-1-researcher-1")
    assert "in the last fenced block" in prompt and '"minimum": 0' in prompt


WRONG = [
    ("DONE: scanned", "it hands in no result: the reply has no fenced block"),
    ("```json\n```\nDONE: x", "it hands in no result: the last fenced block of the reply (line 1) is empty"),
    ("a\n```json\n{open: 2}\n```\nDONE: x", "the last fenced block of the reply (line 2) is not JSON"),
    ('```\n{"open": 1, "open": 2}\n```\nDONE: x', "is not JSON: the key 'open' stands twice in one object"),
    ('```\n{"open": NaN}\n```\nDONE: x', "is not JSON: NaN is not JSON"),
    (reply({"open": -1}), "does not fit its schema: open: -1 is not at least 0"),
    (reply({"open": "2"}), 'does not fit its schema: open: an integer is needed, not "2"'),
    (reply({"worst": "high"}), "does not fit its schema: the whole: 'open' is missing"),
    (reply([1]), "does not fit its schema: the whole: an object is needed, not [1]"),
    (reply({"open": 1, "worst": "hihg"}), 'worst: "hihg" is none of "low", "high"'),
    (reply({"open": 1, "opne": 1}), "opne: there is no such field; did you mean 'open'?"),
    (reply({"open": 1, "modules": ["a", 2]}), "modules[1]: a string is needed, not 2"),
    (reply({"open": 1, "modules": ["x" * 1000] * 1100}), "is larger than 1048576 bytes"),
]


@pytest.mark.parametrize("text, reason", WRONG)
def test_a_result_that_does_not_fit_is_an_error_with_its_place_and_the_retry_hears_it(
    tmp_path: Path, text: str, reason: str
) -> None:
    right = reply({"open": 0})
    stage = stage_with(tmp_path, SCAN, [answer("scan", text, **{"try": 1}), answer("scan", right)])
    run = play(stage)
    first, second = (run["attempts"][f"scan-1-researcher-{number}"] for number in (1, 2))
    assert (first["verdict"], first["said"]["verdict"], second["verdict"]) == ("ERROR", "DONE", "DONE")
    assert reason in first["summary"] and "result" not in first["receipt"]
    assert reason in prompt_of(stage, "scan-1-researcher-2")
    assert run["status"] == "completed" and result_of(run, "scan") == {"open": 0}


def test_with_no_retry_left_the_step_has_failed_and_has_no_result(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, SCAN, [answer("scan", reply({"open": "x"}))])
    run = play(stage)
    assert run["status"] == "failed" and len(run["attempts"]) == 2
    assert "open: an integer is needed" in run["failure"]["error"]
    assert result_of(run, "scan") is None


def test_of_several_fenced_blocks_the_last_counts(tmp_path: Path) -> None:
    text = reply({"open": 7}, before='For example:\n```json\n{"open": "wrong"}\n```\nand `x`')
    run = play(stage_with(tmp_path, SCAN, [answer("scan", text)]))
    assert result_of(run, "scan") == {"open": 7}


def test_a_verdict_of_error_needs_no_result(tmp_path: Path) -> None:
    run = play(stage_with(tmp_path, SCAN, [answer("scan", "ERROR: the tool is not there")]))
    assert [one["summary"] for one in run["attempts"].values()] == ["the tool is not there"] * 2


def test_a_revision_needs_its_result_too(tmp_path: Path) -> None:
    steps = f"""
steps:
  - {{id: write, agent: {{role: implementer, touches: "**", context: [{{result: review}}]}}}}
  - id: review
    agent: {{role: researcher, result: {{schema: {INLINE}}}}}
    on: {{NEEDS_REVISION: {{route: [write], at_most: 1, then: fail}}}}
"""
    once = {"for": {"step": "review", "visit": 1}, "reply": reply({"open": 3}).replace("DONE:", "NEEDS_REVISION:")}
    stage = stage_with(tmp_path, steps, [once, answer("review", reply({"open": 0}))])
    run = play(stage)
    assert run["status"] == "completed"
    assert "there is none: it has not run" in prompt_of(stage, "write-1-implementer-1")
    assert '"open": 3' in prompt_of(stage, "write-2-implementer-1")
    again = stage_with(tmp_path / "again", steps, [answer("review", "NEEDS_REVISION: no result here")])
    assert "claimed NEEDS_REVISION, but it hands in no result" in play(again)["failure"]["error"]


# ---- files and commands


def test_a_result_may_be_a_document(tmp_path: Path) -> None:
    steps = f"""
steps:
  - {{id: scan, agent: {{role: researcher, result: {{schema: {INLINE}, file: scan.json}}}}}}
"""
    written = {"for": {"step": "scan"}, "files": {"docs/{run}/scan.json": '{"open": 4}'}}
    stage = stage_with(tmp_path, steps, [written])
    run = play(stage)
    assert result_of(run, "scan") == {"open": 4}
    assert "docs/add-dark-mode/scan.json" in run["attempts"]["scan-1-researcher-1"]["receipt"]["outputs"]
    assert "as the file docs/add-dark-mode/scan.json" in prompt_of(stage, "scan-1-researcher-1")


@pytest.mark.parametrize(
    "files, reason",
    [
        ({}, "the output docs/add-dark-mode/scan.json does not exist"),
        ({"docs/{run}/scan.json": "{"}, "the result docs/add-dark-mode/scan.json is not JSON"),
        ({"docs/{run}/scan.json": '{"open": true}'}, "scan.json does not fit its schema: open: an integer is needed"),
        ({"docs/{run}/scan.json": " " * (1 << 20) + '{"open": 1}'}, "is larger than 1048576 bytes"),
    ],
)
def test_a_document_that_holds_no_result_is_named(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    steps = f"steps:\n  - {{id: scan, agent: {{role: researcher, result: {{schema: {INLINE}, file: scan.json}}}}}}\n"
    (attempt,) = play(stage_with(tmp_path, steps, [{"for": {"step": "scan"}, "files": files}]))["attempts"].values()
    assert attempt["verdict"] == "ERROR" and reason in attempt["summary"]


def test_a_document_of_an_earlier_visit_is_no_result_of_this_one(tmp_path: Path) -> None:
    steps = f"""
steps:
  - {{id: write, agent: {{role: implementer, touches: "**"}}}}
  - id: review
    agent: {{role: researcher, result: {{schema: {INLINE}, file: review.json}}}}
    on: {{NEEDS_REVISION: {{route: [write], at_most: 2, then: fail}}}}
"""
    first = {
        "for": {"step": "review", "visit": 1},
        "files": {"docs/{run}/review.json": '{"open": 1}'},
        "reply": "NEEDS_REVISION: one is open",
    }
    second = {"for": {"step": "review"}, "files": {}, "reply": "NEEDS_REVISION: still open"}
    run = play(stage_with(tmp_path, steps, [first, second]))
    assert run["attempts"]["review-2-researcher-1"]["verdict"] == "ERROR"
    assert "review.json was not written" in run["attempts"]["review-2-researcher-1"]["summary"]
    assert result_of(run, "review") is None


def test_what_a_command_prints_is_its_result(tmp_path: Path) -> None:
    steps = f"""
steps:
  - id: count
    command: {{run: [sh, -c, 'echo "{{\\"open\\": 5}}"'], stdout: count.txt}}
    result: {{schema: {INLINE}}}
  - {{id: none, when: {{result: count, field: open, is: 0}}, command: ["false"]}}
  - {{id: some, when: {{result: count, field: open, at_least: 5}}, command: ["true"]}}
"""
    stage = stage_with(tmp_path, steps)
    run = play(stage)
    assert (run["status"], run["steps"]["none"]["status"]) == ("completed", "skipped")
    assert run["steps"]["some"]["verdict"] == "DONE" and result_of(run, "count") == {"open": 5}
    assert json.loads(stage.text("docs/add-dark-mode/count.txt")) == {"open": 5}


@pytest.mark.parametrize(
    "words, reason",
    [
        ("['true']", "it printed no result"),
        ("[echo, hello]", "its standard output is not JSON"),
        ("""[echo, '{"open": 1.5}']""", "its standard output does not fit its schema: open: an integer is needed"),
        ("""[sh, -c, 'echo "{\\"open\\": 1}"; exit 3']""", "exit status 3"),
    ],
)
def test_a_command_without_its_result_has_failed(tmp_path: Path, words: str, reason: str) -> None:
    steps = f"steps:\n  - {{id: count, command: {words}, result: {{schema: {INLINE}}}}}\n"
    run = play(stage_with(tmp_path, steps))
    (attempt,) = run["attempts"].values()
    assert (run["status"], attempt["verdict"]) == ("failed", "ERROR") and reason in attempt["summary"]


# ---- members and items

CLUSTER = f"""
steps:
  - id: scan
    cluster:
      members:
        - {{id: lint, command: {{run: [echo, '{{"open": 1}}']}}, result: {{schema: {INLINE}}}}}
        - {{role: researcher, focus: security, out: security.md}}
    aggregate: {{role: r-aggregator, context: [{{result: scan/lint}}, {{findings: scan}}]}}
  - {{id: mend, when: {{result: scan, field: open, is: 1}}, agent: {{role: implementer, context: {{findings: scan}}}}}}
"""


def test_a_member_of_a_cluster_has_a_result_of_its_own(tmp_path: Path) -> None:
    found = "# Security\n\n| Severity | Finding |\n|---|---|\n| High | tokens in the log |\n"
    member = {"for": {"role": "researcher"}, "files": {"{out}": found}}
    aggregate = {"for": {"role": "r-aggregator"}, "reply": "DONE: drawn together", "files": {}}
    stage = stage_with(tmp_path, CLUSTER, [member, aggregate])
    run = play(stage)
    assert run["status"] == "completed"
    assert result_of(run, "scan/lint") == {"open": 1}
    assert result_of(run, "scan/researcher-security") is None
    prompt = prompt_of(stage, "scan-1-r-aggregator-1")
    assert '"open": 1' in prompt and "- [High]" in prompt and "tokens in the log" in prompt
    assert "tokens in the log" in prompt_of(stage, "mend-1-implementer-1")


def test_every_item_of_a_plan_has_a_result_and_the_next_agent_gets_them_all(tmp_path: Path) -> None:
    steps = f"""
steps:
  - {{id: plan, agent: {{role: planner, out: plan.md}}}}
  - id: work
    waves: {{plan: plan.md, roles: [{{role: implementer, touches: "**", result: {{schema: {INLINE}}}}}]}}
  - {{id: sum, agent: {{role: researcher, context: [{{result: work}}]}}}}
"""
    answers = [
        {"for": {"step": "work", "item": "1"}, "run": "echo 1 > a.txt", "reply": reply({"open": 1})},
        {"for": {"step": "work", "item": "2"}, "run": "echo 2 > b.txt", "reply": reply({"open": 2})},
    ]
    stage = stage_with(tmp_path, steps, answers)
    run = play(stage)
    assert run["status"] == "completed"
    assert result_of(run, "work") == {"1": {"open": 1}, "2": {"open": 2}}
    assert '"2": {\n    "open": 2' in prompt_of(stage, "sum-1-researcher-1")


# ---- the definition


def test_a_run_never_changes_under_an_edited_schema(tmp_path: Path) -> None:
    """The schema is read when the run begins, and kept with its definition."""
    steps = "steps:\n  - {id: scan, agent: {role: researcher, result: {schema: scan.json}}}\n"
    stage = stage_with(tmp_path, steps, [answer("scan", reply({"open": 1}))], scan=INLINE)
    start(stage.workspace, "Add dark mode", "own")
    (stage.root / ".tenuto/pipelines/scan.json").write_text('{"type": "string"}')
    run = stage.drive("add-dark-mode")
    assert run["status"] == "completed" and result_of(run, "scan") == {"open": 1}


def test_what_is_wrong_with_a_schema_is_said_with_its_own_file_and_line(tmp_path: Path) -> None:
    steps = "steps:\n  - id: scan\n    agent:\n      role: researcher\n      result: {schema: scan.json}\n"
    stage = stage_with(tmp_path, steps, scan='{\n  "type": "object",\n  "patern": "x"\n}\n')
    with pytest.raises(BadInput) as refused:
        start(stage.workspace, "It", "own")
    assert ".tenuto/pipelines/scan.json:3:3: [unknown-keyword] 'patern' is not carried out" in refused.value.message


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("no.json", None, "own.yaml:6:18: [no-schema] there is no file 'no.json'"),
        ("../no.json", None, "own.yaml:6:18: [bad-name]"),
        ("/etc/passwd", None, "own.yaml:6:18: [bad-name]"),
        ("s.json", "{", "s.json:1:"),
        ("s.json", "[]", "holds no mapping"),
        ("s.json", '{"type": 1, "type": 2}', "is there twice"),
    ],
)
def test_a_schema_file_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    steps = f"steps:\n  - id: scan\n    agent: {{role: researcher,\n        result: {{schema: {name}}}}}\n"
    stage = stage_with(tmp_path, steps, s=text) if text else stage_with(tmp_path, steps)
    with pytest.raises(BadInput) as refused:
        start(stage.workspace, "It", "own")
    assert words in refused.value.message


# ---- killed, and led by others

DRIVE = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine import judge
from tenuto.engine.rest import drive_until_rest

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(judge, sys.argv[4], killed)
drive_until_rest(tenuto.open(sys.argv[2]), "add-dark-mode", Roster("scripted:" + sys.argv[3]), {})
"""


@pytest.mark.parametrize("moment", ["judge", "explained"])
@pytest.mark.parametrize("value, verdict", [({"open": 2}, "DONE"), ({"open": -2}, "ERROR")])
def test_an_engine_killed_between_report_and_judgement_changes_nothing(
    tmp_path: Path, moment: str, value: object, verdict: str
) -> None:
    """The agent has replied, the engine dies before it judges the result, or before it records its judgement."""
    steps = f"steps:\n  - {{id: scan, agent: {{role: researcher, result: {{schema: {INLINE}}}}}}}\n"
    stage = stage_with(tmp_path, steps, [answer("scan", reply(value))])
    start(stage.workspace, "Add dark mode", "own")
    package = str(Path(tenuto.__file__).parents[1])
    words = [sys.executable, "-c", DRIVE, package, str(stage.root), str(stage.script), moment]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert stage.workspace.load("add-dark-mode")["in_flight"] == ["scan-1-researcher-1"]
    run = stage.drive("add-dark-mode")
    (attempt,) = run["attempts"].values()
    assert (attempt["verdict"], result_of(run, "scan")) == (verdict, value if verdict == "DONE" else None)


def test_another_orchestrator_hands_in_results_by_the_same_rule(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, SCAN)
    start(stage.workspace, "Add dark mode", "own")
    _, (work,) = hand_out(stage.workspace, "add-dark-mode", {})
    assert "checked against this JSON Schema" in work["prompt"]
    wrong = accept(stage.workspace, "add-dark-mode", work["attempt"], {"verdict": "DONE", "summary": "scanned"}, {})
    assert wrong.verdict == "ERROR" and "it hands in no result" in wrong.summary
    _, (again,) = hand_out(stage.workspace, "add-dark-mode", {})
    assert "it hands in no result" in again["prompt"]
    good = accept(stage.workspace, "add-dark-mode", again["attempt"], {"reply": reply({"open": 0})}, {})
    assert good.verdict == "DONE" and result_of(stage.workspace.load("add-dark-mode"), "scan") == {"open": 0}


def test_a_result_that_holds_a_declared_secret_never_reaches_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenuto.agents.roster import Roster
    from tenuto.engine.rest import drive_until_rest

    monkeypatch.setenv("MY_TOKEN", "Sesame-0pen-17-Sesame")
    schema = '{"type": "object", "properties": {"token": {"type": "string"}}}'
    steps = f"steps:\n  - {{id: scan, command: [sh, -c, 'printf \\'{{\"token\": \"%s\"}}\\' $MY_TOKEN'], result: {{schema: {schema}}}}}\n"  # noqa: E501
    steps = steps.replace("\\'", "''")
    stage = stage_with(tmp_path, steps)
    start(stage.workspace, "Add dark mode", "own")
    drive_until_rest(stage.workspace, "add-dark-mode", Roster("command:true"), {"secrets": ["MY_TOKEN"]})
    run = stage.workspace.load("add-dark-mode")
    assert "Sesame-0pen-17-Sesame" not in json.dumps(run)
    assert isinstance(result_of(run, "scan"), dict) or run["status"] == "failed"
    assert b"Sesame-0pen-17-Sesame" not in b"".join(
        Path(folder, name).read_bytes() for folder, _, names in os.walk(stage.workspace.state) for name in names
    )


@pytest.mark.parametrize(
    "receipt, reason",
    [
        ({}, "claimed DONE, but it hands in no result"),
        ({"result": {"open": -1}}, "claimed DONE, but its result does not fit: open: -1 is not at least 0"),
    ],
)
def test_no_driver_can_record_a_done_without_its_result(tmp_path: Path, receipt: Any, reason: str) -> None:
    """The rule is in core: agents as coroutines are held to it, too."""
    import asyncio

    from tenuto.engine.in_process import Result, Work, drive

    async def agent(work: Work) -> Result:
        wrong = work.step == "scan" and work.number == 1
        return Result("DONE", "did it", receipt=receipt if wrong else {"result": {"open": 1}})

    stage = stage_with(tmp_path, SCAN)
    start(stage.workspace, "Add dark mode", "own")
    run = asyncio.run(drive(stage.workspace, "add-dark-mode", agent))
    first, second, mend = run["attempts"].values()
    assert (first["verdict"], first["summary"]) == ("ERROR", reason)
    assert first["said"] == {"verdict": "DONE", "summary": "did it"}
    assert (second["verdict"], mend["verdict"], run["status"]) == ("DONE", "DONE", "completed")


def test_a_definition_that_was_kept_before_there_were_results_is_read_in_the_words_of_today(tmp_path: Path) -> None:
    from tenuto.engine.attempt import _of_today, define

    stage = stage_with(tmp_path, "steps:\n  - {id: scan, agent: {role: researcher}}\n")
    today = define("own", str(stage.root))
    earlier: Any = json.loads(json.dumps(today))
    for word in ("result", "context_budget"):
        del earlier["pipeline"]["steps"][0]["agent"][word]
    assert _of_today(earlier) == today
