"""An attempt that follows an unfinished one says so, and its agent gets to know what was said before."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.command import AgentProgram
from tenuto.agents.roster import Roster
from tenuto.core.pipeline.records import Role
from tenuto.core.records.action import Launch, Reply
from tenuto.core.times import milliseconds
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine
from tenuto.ports import Agent
from tenuto.supervise import attempts
from tests.support.present import present

PIPELINE = (
    "name: one\ndocuments: .\nsteps:\n  - {id: work, agent: {role: worker, out: out.md}, retry: {LOST: 2, ERROR: "
    "1}, questions: 1}\n"
)


class Speaker(AgentProgram):
    """An agent of this test: prints what it is told to, and keeps what it was shown of an earlier start."""

    name = "speaker"
    reports: tuple[str, ...] = ("tokens",)
    environment: tuple[str, ...] = ("SPEAKER_*",)
    barred: tuple[str, ...] = ("SPEAKER_SECRET",)

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.shown: list[tuple[int, str]] = []
        self.heard: list[str] = []
        self.goes_on = False

    def program(self, role: Role | None) -> str:
        return "sh"

    def launch(self, job: Any) -> Launch:
        self.shown.append((job.start, job.earlier))
        if self.goes_on and job.earlier:
            job.going_on()
        return {"argv": ["sh", "-c", self.lines.pop(0)], "stdin": "", "env": {}}

    def reply(self, job: Any, result: Any, said: str) -> Reply:
        self.heard.append(f"{said}{job.errors}")
        if result["signal"]:
            return {
                "verdict": "ERROR",
                "summary": "killed",
                "transient": True,
                "usage": {"tokens": 5} if "spent 5" in said else {},
            }
        if "LIMITED" in said:
            return {"verdict": "ERROR", "summary": "slow down", "transient": True, "limited": True, "usage": {}}
        word, _, rest = said.strip().partition(" ")
        verdict: Any = word
        reply: Reply = {"verdict": verdict, "summary": rest, "transient": False, "usage": {}, "text": f"{word}: {rest}"}
        if word == "PARKED":
            reply["parked_until"] = rest
        return reply


class Alone(Roster):
    """A roster of one agent, whatever is asked for."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        super().__init__(agent.name)

    def named(self, spelling: str) -> Agent:
        return self.agent


@pytest.fixture
def ground(tmp_path: Path) -> tuple[Any, str]:
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "roles").mkdir()
    (root / ".tenuto" / "pipelines" / "one.yaml").write_text(PIPELINE)
    (root / ".tenuto" / "roles" / "worker.md").write_text("---\nname: worker\n---\nWork.\n")
    workspace = tenuto.open(str(root))
    return workspace, start(workspace, "Do it", "one")["id"]


WRITE = "echo hi > out.md; "


def test_a_start_inside_the_same_attempt_sees_what_the_one_before_it_printed(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker("echo first half; kill -9 $$", WRITE + "echo DONE all")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["status"] == "completed"
    assert agent.shown == [(1, ""), (2, "first half\n")]
    assert list(found["attempts"]) == ["work-1-worker-1"]


def test_what_an_earlier_start_did_counts(ground: tuple[Any, str]) -> None:
    """For it, where the agent goes on: an output that was written before is written. And against it: it strayed."""
    workspace, run = ground
    agent = Speaker(WRITE + "echo first half; kill -9 $$", "echo DONE all")
    agent.goes_on = True
    assert Engine(workspace, run, Alone(agent), {}).drive()["status"] == "completed"
    astray = start(workspace, "Do it again", "one")["id"]
    agent = Speaker("echo first half; echo x > astray.txt; kill -9 $$", WRITE + "echo DONE all", "echo ERROR nothing")
    found = Engine(workspace, astray, Alone(agent), {}).drive()
    assert "astray.txt" in found["attempts"]["work-1-worker-1"]["summary"]


def test_an_agent_that_starts_over_writes_its_output_itself(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker(WRITE + "echo first half; kill -9 $$", "echo DONE all", "echo ERROR nothing")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert "was not written" in found["attempts"]["work-1-worker-1"]["summary"]


def test_an_attempt_after_a_lost_one_names_it_and_sees_what_it_printed(ground: tuple[Any, str]) -> None:
    """The supervisor and the agent are killed half-way: nobody knows the end, and the next one goes on from there."""
    workspace, run = ground
    agent = Speaker("echo first half; kill -9 $PPID; sleep 600", WRITE + "echo DONE all")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["status"] == "completed"
    assert found["attempts"]["work-1-worker-1"]["status"] == "lost"
    assert found["attempts"]["work-1-worker-2"]["extra"]["follows"] == "work-1-worker-1"
    assert agent.shown == [(1, ""), (1, "first half\n")]
    with workspace.journal.read() as reader:
        second = [e for e in reader.events(run) if e["type"] == "AttemptDispatched"][1]
    assert second["extra"]["follows"] == "work-1-worker-1"


def test_an_attempt_that_was_set_aside_is_gone_on_with(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker("echo PARKED 2020-01-01T00:00:00Z", WRITE + "echo DONE all")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["status"] == "completed"
    assert found["attempts"]["work-1-worker-2"]["extra"]["follows"] == "work-1-worker-1"
    assert agent.shown[1] == (1, "PARKED 2020-01-01T00:00:00Z\n")


def test_an_attempt_after_an_error_starts_over(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker("echo ERROR it cannot be done", WRITE + "echo DONE all")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["status"] == "completed"
    assert "follows" not in found["attempts"]["work-1-worker-2"]["extra"]
    assert agent.shown[1] == (1, "")


def test_an_agent_gets_the_variables_of_its_kind_and_no_others(
    ground: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, and where a name is barred not even then. No value is written to the disk."""
    workspace, run = ground
    for name in ("SPEAKER_KEY", "SPEAKER_SECRET", "OTHER_KEY"):
        monkeypatch.setenv(name, "Wert-aus-der-Umgebung")
    agent = Speaker(WRITE + 'echo "DONE $(env | grep -o "^[A-Z]*_KEY\\|^SPEAKER_SECRET" | sort | tr "\\n" " ")"')
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["attempts"]["work-1-worker-1"]["summary"].split() == ["SPEAKER_KEY"]
    folder = Path(workspace.state) / "attempts"
    assert not [path for path in folder.rglob("*") if path.is_file() and b"Wert-aus" in path.read_bytes()]


def test_the_end_of_standard_error_reaches_the_adapter(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker(WRITE + "echo 'please log in' >&2; echo DONE all")
    Engine(workspace, run, Alone(agent), {}).drive()
    assert agent.heard == ["DONE all\nplease log in\n"]


def test_what_all_starts_of_an_attempt_used_is_charged(ground: tuple[Any, str]) -> None:
    workspace, run = ground
    agent = Speaker("echo spent 5; kill -9 $$", "echo spent 5; kill -9 $$", WRITE + "echo DONE all")
    reply = agent.reply

    def told(job: Any, result: Any, said: str) -> Reply:
        return {**reply(job, result, said), "usage": {"tokens": 7}} if "DONE" in said else reply(job, result, said)

    agent.reply = told  # type: ignore[method-assign]
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert found["attempts"]["work-1-worker-1"]["usage"] == {"attempts": 1, "tokens": 17}


def test_under_a_limit_a_start_that_used_something_is_the_attempts_last(ground: tuple[Any, str]) -> None:
    """Set aside is what one start may use. The next attempt is admitted like any other, or not."""
    workspace, _ = ground
    agent = Speaker("echo spent 5; kill -9 $$", "echo not told; kill -9 $$", WRITE + "echo DONE all")
    run = start(workspace, "Do it once more", "one", limits={"tokens": 100})["id"]
    found = Engine(workspace, run, Alone(agent), {}).drive()
    assert [attempt["receipt"]["starts"] for attempt in found["attempts"].values()] == [1, 1]
    assert found["budget"]["spent"] == {"attempts": 2, "tokens": 10}, (
        "5, and what was set aside for the one that did not tell"
    )


def test_under_a_limit_a_start_that_used_nothing_is_followed_by_another(ground: tuple[Any, str]) -> None:
    workspace, _ = ground
    agent = Speaker("kill -9 $$", WRITE + "echo DONE all")
    reply = agent.reply
    agent.reply = lambda job, result, said: {**reply(job, result, said), "usage": {"tokens": 0}}  # type: ignore[method-assign]
    run = start(workspace, "Do it once more", "one", limits={"tokens": 100})["id"]
    assert Engine(workspace, run, Alone(agent), {}).drive()["attempts"]["work-1-worker-1"]["receipt"]["starts"] == 2


def test_an_attempt_whose_first_start_ran_is_never_called_unstarted(ground: tuple[Any, str]) -> None:
    """Its second start comes to nothing: what it used before that is charged all the same."""
    workspace, run = ground
    agent = Speaker("echo first half; kill -9 $$", "true", WRITE + "echo DONE all")
    engine, launch = Engine(workspace, run, Alone(agent), {}), agent.launch

    def launched(job: Any) -> Launch:
        if job.start == 2:
            attempts.void(f"{engine.folder}/{job.name}/2")
        return launch(job)

    agent.launch = launched  # type: ignore[method-assign]
    found = engine.drive()
    assert {name: attempt["status"] for name, attempt in found["attempts"].items()} == {
        "work-1-worker-1": "lost",
        "work-1-worker-2": "completed",
    }
    assert found["budget"]["spent"]["attempts"] == 2


def test_a_limit_without_a_time_is_tried_again_and_then_waited_for(ground: tuple[Any, str]) -> None:
    """Agents that would be turned away are not started one after another: the run waits a few minutes, and no try is
    used up."""
    workspace, run = ground
    agent = Speaker("echo LIMITED", "echo LIMITED", "echo LIMITED")
    found = Engine(workspace, run, Alone(agent), {}).drive()
    over = present(milliseconds(workspace.clock()))
    assert found["status"] == "parked"
    attempt = found["attempts"]["work-1-worker-1"]
    assert (attempt["verdict"], attempt["receipt"]["starts"]) == ("PARKED", 3)
    until = present(milliseconds(present(found["pause"])["until"]))
    assert until - present(milliseconds(attempt["ended_at"])) > 250_000 and until - over < 310_000, (
        "a few minutes from the moment it is recorded, between the attempt's end and now"
    )
