"""What every agent owes the engine, whatever program it is. The subjects and their scenes: subjects.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.core.times import milliseconds
from tenuto.supervise import attempts
from tests.real.conftest import Lab
from tests.real.stage import Ran, Stage
from tests.real.subjects import GOES_ON, ModelSubject, Subject, playing

FIRST, SECOND = "work-1-worker-1", "work-1-worker-2"


@pytest.fixture
def subject(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path, program: Callable[[str], str]) -> Subject:
    made: Subject = request.param(lab, tmp_path, program)
    return made


def stage_for(subject: Subject, scene: str, seat: str = "transient: 1") -> Stage:
    subject.play(scene)
    return Stage(subject.folder, subject.environment(scene), seat)


def ran(subject: Subject, scene: str, *words: str, seat: str = "transient: 1") -> tuple[Stage, Ran]:
    stage = stage_for(subject, scene, seat)
    return stage, stage.run("--agent", subject.spelling(scene), *words)


@playing("done")
def test_done_with_its_output_is_done(subject: Subject) -> None:
    """The verdict, the output as the program wrote it, and what it used, to the token."""
    stage, found = ran(subject, "done")
    assert (found.status, found.code) == ("completed", 0), found.out + found.err
    assert (found.only["verdict"], found.only["summary"]) == ("DONE", "wrote it")
    assert stage.output.read_text() == "x\n" and list(found.only["receipt"]["outputs"]) == ["out.md"]
    assert found.only["usage"] == {"attempts": 1, **subject.usage}
    assert found.only["agent"] == subject.spelling("done")
    assert not attempts.inspect(str(stage.folder(FIRST)))["result"]["survivors"]


@playing("revise")
def test_a_wish_for_revision_is_one(subject: Subject) -> None:
    _, found = ran(subject, "revise")
    assert (found.only["verdict"], found.only["summary"]) == ("NEEDS_REVISION", "not good yet"), found.out + found.err


@playing("unproven")
def test_done_without_its_output_is_an_error(subject: Subject) -> None:
    _, found = ran(subject, "unproven")
    assert found.only["verdict"] == "ERROR" and "out.md does not exist" in found.only["summary"]


@playing("talk")
def test_a_reply_without_a_verdict_is_an_error(subject: Subject) -> None:
    _, found = ran(subject, "talk")
    assert found.only["verdict"] == "ERROR" and "DONE:" in found.only["summary"], found.only["summary"]


@playing("hang")
def test_the_time_limit_ends_it(subject: Subject) -> None:
    stage, found = ran(subject, "hang", seat="time_limit: 2s")
    assert found.only["verdict"] == "ERROR" and "time limit" in found.only["summary"]
    result = attempts.inspect(str(stage.folder(FIRST)))["result"]
    assert result["timed_out"] and not result["survivors"]


@playing("hang")
def test_cancelling_the_run_ends_it(subject: Subject) -> None:
    stage = stage_for(subject, "hang")
    with stage.begin("--agent", subject.spelling("hang")) as engine:
        subject.wait_until_begun()
        told = stage.tenuto("cancel", "task")
        assert told.returncode == 0, told.stderr
        found = engine.wait()
    assert found.status == "cancelled"
    result = attempts.inspect(str(stage.folder(FIRST)))["result"]
    assert result["cancelled"] and not result["survivors"]


@playing("limit")
def test_a_usage_limit_parks_the_run_until_it_ends(subject: Subject) -> None:
    """No try is used up, and nothing is started before that time."""
    _, found = ran(subject, "limit")
    assert found.status == "parked", (found.only["summary"], found.out, found.err)
    assert milliseconds(found.run["pause"]["until"]) == subject.until
    assert found.only["verdict"] == "PARKED"


@playing("limit")
def test_the_fallback_takes_over_from_an_agent_that_has_reached_its_limit(subject: Subject) -> None:
    """The run does not wait, and the journal says who did it."""
    stage = stage_for(subject, "limit")
    script = subject.folder / "other.sh"
    script.write_text("echo y > out.md; echo 'DONE: I took over'\n")
    stage.configure(f'fallback: {{"{subject.spelling("limit")}": "command:sh {script}"}}\n')
    found = stage.run("--agent", subject.spelling("limit"))
    assert found.status == "completed", found.out + found.err
    assert [one["verdict"] for one in found.attempts.values()] == ["PARKED", "DONE"]
    assert found.attempts[SECOND]["agent"] == f"command:sh {script}"


@playing("busy")
def test_a_rate_limit_without_a_time_is_tried_again(subject: Subject) -> None:
    _, found = ran(subject, "busy")
    assert (found.only["verdict"], found.only["receipt"]["starts"]) == ("DONE", 2), found.only["summary"]


@playing("passing")
def test_an_overloaded_model_is_asked_again(subject: Subject) -> None:
    """By the program itself, or by a second start of it inside the same attempt."""
    _, found = ran(subject, "passing")
    assert found.only["verdict"] == "DONE", found.only["summary"]


@playing("lasting")
def test_a_refused_request_is_an_error_with_its_reason(subject: Subject) -> None:
    """And is not repeated: it would be refused again."""
    _, found = ran(subject, "lasting")
    assert found.only["verdict"] == "ERROR" and found.only["receipt"]["starts"] == 1
    assert "this model does not exist" in found.only["summary"]


@playing("garbage")
def test_an_answer_that_nobody_understands_is_an_error(subject: Subject) -> None:
    _, found = ran(subject, "garbage", seat="transient: 0")
    assert found.only["verdict"] == "ERROR" and len(found.only["summary"]) > 10
    assert "half" not in found.only["summary"], "what was never said counts for nothing"


@playing("cut")
def test_an_answer_that_is_cut_is_an_error(subject: Subject) -> None:
    _, found = ran(subject, "cut", seat="transient: 0")
    assert found.only["verdict"] == "ERROR" and len(found.only["summary"]) > 10


@playing("half-way")
def test_killed_half_way_it_is_continued(subject: Subject) -> None:
    """kill -9 of supervisor and agent: the next attempt names the lost one, and goes on with what was said before."""
    stage = stage_for(subject, "half-way")
    with stage.begin("--agent", subject.spelling("half-way")) as engine:
        subject.wait_until_begun()
        stage.kill(FIRST)
        found = engine.wait()
    assert found.status == "completed", found.out + found.err
    assert [one["status"] for one in found.attempts.values()] == ["lost", "completed"]
    dispatched = stage.events("AttemptDispatched")
    assert [event["extra"].get("follows") for event in dispatched] == [None, FIRST]
    if subject.goes_on:
        _continued(subject, found)
    else:
        assert found.attempts[SECOND]["summary"] == "started over"


@playing("half-way")
def test_an_orchestrator_killed_half_way_is_followed_by_one_that_goes_on(subject: Subject) -> None:
    """Everything dies: orchestrator, supervisor, agent. `tenuto run` picks it up where it was."""
    stage = stage_for(subject, "half-way")
    with stage.begin("--agent", subject.spelling("half-way")) as engine:
        subject.wait_until_begun()
        engine.kill()
    stage.kill(FIRST)
    found = stage.go_on("--agent", subject.spelling("half-way"))
    assert found.status == "completed", found.out + found.err
    if subject.goes_on:
        _continued(subject, found)


def _continued(subject: Subject, found: Ran) -> None:
    assert isinstance(subject, ModelSubject)
    assert found.attempts[SECOND]["summary"] == "went on"
    last = subject.model.requests[-1]
    assert GOES_ON in last.asked.latest or any(GOES_ON in json.dumps(one.body) for one in subject.model.requests)
    assert "the first half" in json.dumps(last.body), "what was done before the kill is known to the model"
