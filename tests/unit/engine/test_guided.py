"""Another orchestrator does the dispatching: the same rules, receipts and files, and a run may change hands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.engine.guided import read_report
from tenuto.errors import BadInput

from .conftest import reopen

Say = Callable[..., Any]
Script = Callable[..., str]
A, B, WRITE = "look-1-researcher-architecture-1", "look-1-researcher-impact-1", "write-1-designer-1"


@pytest.fixture
def begun(say: Say, repository: Path) -> Path:
    assert say("run", "Add dark mode", "--pipeline", "small", "--name", "r", "--start-only").status == 0
    return repository


def deliver(repository: Path, say: Say, attempt: str, name: str) -> Any:
    (repository / "docs" / "r").mkdir(parents=True, exist_ok=True)
    (repository / "docs" / "r" / name).write_text(f"# {name}\n")
    return say("report", "r", attempt, "--verdict", "DONE", "--summary", f"wrote {name}")


def test_next_hands_out_everything_an_agent_needs_and_again_the_same(say: Say, begun: Path) -> None:
    first = say("next", "--json").data
    assert [work["attempt"] for work in first["work"]] == [A, B]
    work = first["work"][0]
    assert work["outputs"] == ["docs/r/a.md"] and work["workdir"] == str(begun) and work["verdicts"]
    assert work["environment"]["TENUTO_OUTPUTS"] == "docs/r/a.md" and work["environment"]["TENUTO_ATTEMPT"] == f"r.{A}"
    assert "- focus: architecture" in work["prompt"] and "Add dark mode" in work["prompt"]
    assert say("next", "r", "--json").data == first, "until it is reported"
    assert reopen(begun).load("r")["driver"] == "guided"
    assert f"when it is done: tenuto report r {A} --reply FILE" in say("next").out


def test_a_run_is_led_to_its_end_with_receipts(say: Say, begun: Path) -> None:
    say("next")
    assert deliver(begun, say, A, "a.md").out == f"{A}: DONE: wrote a.md\n  try: tenuto next r\n"
    deliver(begun, say, B, "b.md")
    assert [work["attempt"] for work in say("next", "--json").data["work"]] == [WRITE]
    deliver(begun, say, WRITE, "design.md")
    rest = say("next", "--json")
    assert rest.status == 0 and rest.data == {"run": "r", "status": "completed", "work": []}
    run = reopen(begun).load("r")
    assert run["artifacts"]["design.md"]["attempt"] == WRITE
    assert run["attempts"][WRITE]["receipt"]["outputs"]["docs/r/design.md"]["size"] == 12


def test_a_false_done_is_found_out_as_ever(say: Say, begun: Path) -> None:
    say("next")
    told = say("report", "r", A, "--verdict", "DONE", "--json").data
    assert told["verdict"] == "ERROR" and "the output docs/r/a.md does not exist" in told["summary"]
    attempt = reopen(begun).load("r")["attempts"][A]
    assert attempt["said"] == {"verdict": "DONE", "summary": ""}, "the agent's own word is kept beside it"
    assert attempt["found"] is not None and attempt["found"]["verdict"] == "ERROR"
    retry = say("next", "--json").data["work"]
    assert [work["attempt"] for work in retry] == [B, "look-1-researcher-architecture-2"]
    assert "docs/r/a.md does not exist" in retry[1]["prompt"], "it is told why it is asked again"


def test_a_reply_is_read_as_an_agents_reply_is(say: Say, begun: Path, tmp_path: Path) -> None:
    say("next")
    (tmp_path / "reply.md").write_text("I looked.\n\nNEEDS_REVISION: more to see\n")
    told = say("report", "r", A, "--reply", str(tmp_path / "reply.md"), "--json").data
    assert (told["verdict"], told["summary"]) == ("NEEDS_REVISION", "more to see")
    assert say("logs", "r", A).out.startswith("I looked.")
    (tmp_path / "report.json").write_text('{"verdict": "ERROR", "summary": "no", "usage": {"tokens": 12}}')
    say("report", "r", B, "--reply", str(tmp_path / "report.json"), "--usage", "micro_usd=5")
    assert reopen(begun).load("r")["attempts"][B]["usage"] == {"attempts": 1, "tokens": 12, "micro_usd": 5}


def test_what_ended_or_is_unknown_cannot_be_reported(say: Say, begun: Path) -> None:
    assert say("report", "r", A, "--verdict", "DONE").status == 3, "nothing was handed out yet"
    say("next")
    deliver(begun, say, A, "a.md")
    again = say("report", "r", A, "--verdict", "ERROR", "--json")
    assert again.status == 4 and again.error["code"] == "attempt-ended"
    assert say("report", "r", B).status == 2
    assert say("report", "r", B, "--reply", "nowhere.md").status == 3


def test_a_run_changes_hands_in_the_middle(say: Say, begun: Path, script: Script) -> None:
    """Guided, then the engine, then guided again: nothing is done twice."""
    agent = script()
    say("next")
    refused = say("run", "--agent", agent, "--json")
    assert refused.status == 4 and refused.error["code"] == "handed-out"
    deliver(begun, say, A, "a.md")
    deliver(begun, say, B, "b.md")
    assert say("run", "--agent", agent, "--limit", "attempts=9").status == 0
    run = reopen(begun).load("r")
    assert run["driver"] == "engine" and run["status"] == "completed"
    assert [attempt["agent"].partition(":")[0] for attempt in run["attempts"].values()] == [
        "guided",
        "guided",
        "scripted",
    ]


def test_the_engine_begins_and_another_goes_on(say: Say, begun: Path, script: Script) -> None:
    say("resume", "r", "--agent", script(), "--limit", "attempts=2")
    assert say("next").status == 5, "it waits for a person"
    say("resume", "r", "--limit", "attempts=9", "--no-drive")
    assert [work["attempt"] for work in say("next", "--json").data["work"]] == [WRITE]
    assert deliver(begun, say, WRITE, "design.md").status == 0
    assert say("next", "--json").data["status"] == "completed"


def test_what_was_handed_out_can_be_given_up(say: Say, begun: Path, script: Script) -> None:
    say("next")
    deliver(begun, say, A, "a.md")
    assert say("resume", "r", "--give-up", "--agent", script()).status == 0
    run = reopen(begun).load("r")
    assert run["attempts"][B]["status"] == "lost" and "never reported" in run["attempts"][B]["summary"]


def test_a_run_that_an_engine_drives_is_not_handed_out(say: Say, begun: Path) -> None:
    import fcntl
    import io

    say("next")
    lock = io.FileIO(f"{reopen(begun).state}/attempts/r/engine.lock", "r+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    told = say("next", "--json")
    lock.close()
    assert told.status == 4 and told.error["code"] == "driven"


def test_reports_at_the_same_time_take_their_turn(say: Say, begun: Path) -> None:
    """Two agents of a session report at once, as processes: neither is turned away, and nothing is lost."""
    say("next")
    (begun / "docs" / "r").mkdir(parents=True, exist_ok=True)
    for name in ("a.md", "b.md"):
        (begun / "docs" / "r" / name).write_text(f"# {name}\n")
    report = [sys.executable, "-m", "tenuto", "report", "r"]
    both = [
        subprocess.Popen([*report, attempt, "--verdict", "DONE"], cwd=begun, stdout=subprocess.PIPE)
        for attempt in (A, B)
    ]
    assert [one.communicate()[0].split()[1] for one in both] == [b"DONE", b"DONE"]
    assert [one.returncode for one in both] == [0, 0]
    assert [attempt["verdict"] for attempt in reopen(begun).load("r")["attempts"].values()] == ["DONE", "DONE"]


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": "FINE"}',
        '{"verdict": "DONE", "more": 1}',
        '{"verdict": "DONE", "usage": {"tokens": -1}}',
        '{"verdict": 1}',
    ],
)
def test_a_report_that_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_report(text)
    assert read_report('{"not": "a report"}\n\nDONE: ok')["reply"].endswith("DONE: ok"), "then it is a reply"


def test_what_is_recorded_and_was_never_handed_out_is_not_reported(say: Say, begun: Path) -> None:
    """Whoever asked died between the record and the answer: the next one who asks is handed it."""
    import shutil

    say("next")
    shutil.rmtree(f"{reopen(begun).state}/attempts/r/{A}")
    said = say("report", "r", A, "--verdict", "DONE", "--json")
    assert (said.status, said.error["code"]) == (4, "not-handed-out")
    assert A in [work["attempt"] for work in say("next", "--json").data["work"]]
    assert deliver(begun, say, A, "a.md").status == 0
