"""What Claude Code alone has: sessions that go on, agents in the background, options and tools per role. With the
real program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import Lab
from tests.real.model import Asked
from tests.real.stage import Stage
from tests.real.subjects import WHEN_LATER, ClaudeSubject

FIRST, SECOND = "work-1-worker-1", "work-1-worker-2"
ITEMS = """name: items
existing: [plan.md]
documents: docs
steps:
  - id: build
    waves: {plan: plan.md, roles: [{role: worker}], default: worker, order: barrier, on_item_error: skip-dependents}
    verdicts: [DONE, NEEDS_REVISION, ERROR]
    retry: {LOST: 1, ERROR: 0}
"""


@pytest.fixture
def claude(lab: Lab, tmp_path: Path, program: Callable[[str], str]) -> ClaudeSubject:
    return ClaudeSubject(lab, tmp_path, program)


def staged(
    claude: ClaudeSubject, turns: Any, seat: str = "transient: 1", role: str = "", scene: str = "done", **scripts: Any
) -> Stage:
    claude.model = claude.lab.model({"work": turns, **scripts})
    return Stage(claude.folder, claude.environment(scene), seat, role)


def conversation(claude: ClaudeSubject) -> str:
    return json.dumps(claude.model.requests[-1].body["messages"])


def test_agents_in_the_background_are_waited_for(claude: ClaudeSubject) -> None:
    """The program answers, its agent goes on, and what it says when that has ended is the reply."""
    helper = {
        "tool": "Agent",
        "input": {"description": "help", "subagent_type": "general-purpose", "prompt": "help [[script:help]]"},
    }
    turns = [["Starting.", helper], ["DONE: I only started it"], ["DONE: and now it has ended"]]
    done = claude.folder / "go"
    stage = staged(
        claude, turns, help=[[claude.write("out.md", "by the helper\n")], {"until": done, "say": ["the help is done"]}]
    )
    with stage.begin("--agent", "claude:tools=default") as engine:
        claude.model.wait_for("work", 1)
        done.touch()
        found = engine.wait()
    assert (found.only["verdict"], found.only["summary"]) == ("DONE", "and now it has ended"), found.err
    assert stage.output.read_text() == "by the helper\n"
    assert found.only["usage"]["tokens"] == 5 * 120, "the helper's tokens are counted"


def test_a_role_says_which_agent_model_effort_and_tools(claude: ClaudeSubject) -> None:
    role = "agent: claude:max-turns=7\nmodel: claude-haiku-4-5\neffort: high\n"
    stage = staged(claude, claude.turns("done"), role=role)
    found = stage.run("--agent", "command:./nobody")
    assert (found.only["verdict"], found.only["agent"]) == ("DONE", "claude:max-turns=7"), found.only["summary"]
    asked = claude.model.requests[0]
    assert asked.body["model"] == "claude-haiku-4-5"
    assert {"Read", "Grep", "Glob", "Write", "Edit", "Bash"} <= set(
        asked.asked.tools
    ) and "Agent" not in asked.asked.tools


def test_the_settings_name_agents_for_roles(claude: ClaudeSubject) -> None:
    stage = staged(claude, claude.turns("done"))
    stage.configure("agent: command:./nobody\nroles: {worker: 'claude:model=claude-haiku-4-5'}\n")
    found = stage.run()
    assert found.only["agent"] == "claude:model=claude-haiku-4-5" and found.only["verdict"] == "DONE"
    assert claude.model.requests[0].body["model"] == "claude-haiku-4-5"


def test_a_role_that_may_run_commands_runs_them_unasked(claude: ClaudeSubject) -> None:
    shell = {
        "tool": "Bash",
        "input": {"command": "printf 'by the shell' > out.md && chmod 600 out.md", "description": "write"},
    }
    stage = staged(claude, [[shell], ["DONE: ran it"]])
    assert stage.run("--agent", "claude").only["verdict"] == "DONE"
    assert stage.output.read_text() == "by the shell"


def test_what_it_was_not_permitted_to_do_is_said(claude: ClaudeSubject) -> None:
    stage = staged(claude, claude.turns("done"))
    found = stage.run("--agent", "claude:permission-mode=default,tools=default")
    assert found.only["verdict"] == "ERROR" and not stage.output.exists()
    assert (
        found.only["summary"]
        == f"claimed DONE, but the output out.md does not exist; it was not permitted: Write {stage.output}"
    )


def test_more_turns_or_money_than_allowed_is_an_error_that_says_so(claude: ClaudeSubject) -> None:
    again = {"tool": "Read", "input": {"file_path": str(claude.work / "README.md")}}
    stage = staged(claude, lambda asked: {"say": [again], "usage": {"input_tokens": 400_000}})
    turns = stage.run("--agent", "claude:max-turns=2")
    assert turns.only["verdict"] == "ERROR" and "turns (2)" in turns.only["summary"]
    assert turns.only["usage"]["tokens"] == 2 * 400_020


def test_the_amount_set_aside_for_an_attempt_holds_while_it_works(claude: ClaudeSubject) -> None:
    again = {"tool": "Read", "input": {"file_path": str(claude.work / "README.md")}}
    stage = staged(
        claude,
        lambda asked: {"say": [again], "usage": {"input_tokens": 400_000}},
        seat="budget: {attempt_micro_usd: 500000}",
    )
    found = stage.run("--agent", "claude")
    assert found.only["verdict"] == "ERROR" and "budget ($0.5)" in found.only["summary"]
    assert claude.model.count("work") == 1


def test_an_attempt_goes_on_after_a_usage_limit(claude: ClaudeSubject) -> None:
    """Half of it is done when the limit comes; when the limit is over, the same session goes on."""

    def play(asked: Asked) -> Any:
        if "You were interrupted" in asked.latest:
            return ["DONE: went on"]
        return claude.limit() if asked.results else [claude.write("out.md", "x\n")]

    stage = staged(claude, play, scene="limit")
    parked = stage.run("--agent", "claude")
    assert parked.status == "parked" and parked.code == 5
    resumed = stage.tenuto("resume", "task", "--now", "--agent", "claude")
    found = stage.load()
    assert found["status"] == "completed", resumed.stdout + resumed.stderr
    assert found["attempts"][SECOND]["extra"]["follows"] == FIRST and found["attempts"][SECOND]["summary"] == "went on"
    assert found["attempts"][FIRST]["extra"]["parked_until"].startswith(WHEN_LATER[:10])
    assert "out.md" in conversation(claude)


def test_a_question_is_answered_in_the_same_session(claude: ClaudeSubject) -> None:
    def play(asked: Asked) -> Any:
        if "A person has answered" in asked.latest:
            return ["DONE: in green"] if (claude.work / "out.md").exists() else [claude.write("out.md", "green\n")]
        return ["I looked at everything.\n\nQUESTION: which colour?"]

    stage = staged(claude, play, seat="questions: 1")
    asked = stage.run("--agent", "claude")
    assert asked.status == "paused" and asked.only["verdict"] == "QUESTION"
    assert stage.tenuto("answer", "task", "green").returncode == 0
    found = stage.go_on("--agent", "claude")
    assert found.status == "completed" and found.attempts[SECOND]["summary"] == "in green", found.out + found.err
    assert "I looked at everything" in conversation(claude) and "green" in conversation(claude)


def test_a_session_that_is_gone_is_started_afresh_in_the_same_attempt(claude: ClaudeSubject) -> None:
    """Somebody cleared Claude Code's folder after the kill: the work starts over, and no try is used up for that."""
    stage = staged(claude, claude.half_way)
    with stage.begin("--agent", "claude") as engine:
        claude.wait_until_begun()
        engine.kill()
    stage.kill(FIRST)
    for kept in (claude.lab.home / ".claude" / "projects").rglob("*.jsonl"):
        kept.unlink()
    claude.model.scripts["work"] = claude.turns("done")
    found = stage.go_on("--agent", "claude")
    assert found.status == "completed", found.out + found.err
    assert found.attempts[SECOND]["summary"] == "wrote it" and found.attempts[SECOND]["receipt"]["starts"] == 2


def test_a_program_killed_alone_goes_on_inside_its_attempt(claude: ClaudeSubject) -> None:
    """The supervisor lives and knows how it ended: no attempt is lost, and the session goes on."""
    import os
    import signal

    from tenuto.supervise import attempts

    stage = staged(claude, claude.half_way)
    with stage.begin("--agent", "claude") as engine:
        claude.wait_until_begun()
        started = attempts.inspect(str(stage.folder(FIRST)))["started"]
        assert started and started["agent"]
        os.kill(started["agent"]["pid"], signal.SIGKILL)
        found = engine.wait()
    assert (found.only["summary"], found.only["receipt"]["starts"]) == ("went on", 2), found.err
    assert "the first half" in conversation(claude)


def test_an_item_goes_on_in_its_own_work_tree(claude: ClaudeSubject) -> None:
    """Claude Code knows its sessions by the folder they were in: the attempt after the kill works in the same one."""

    def shell(command: str) -> Any:
        return {"tool": "Bash", "input": {"command": command, "description": "write"}}

    def play(asked: Asked) -> Any:
        if "You were interrupted" in asked.latest:
            return (
                ["DONE: went on"]
                if "rest" in asked.results[-1]
                else [shell("cat first.txt && echo the rest > second.txt && cat second.txt")]
            )
        return {"until": claude.go, "say": ["DONE: late"]} if asked.results else [shell("echo half > first.txt")]

    stage = staged(claude, play)
    for name, text in {
        ".tenuto/pipelines/items.yaml": ITEMS,
        "docs/plan.md": "## Wave 1\n- 01-a (depends_on: none)\n",
    }.items():
        (stage.root / name).parent.mkdir(exist_ok=True)
        (stage.root / name).write_text(text)
    stage.git("add", ".")
    stage.git("commit", "-q", "-m", "items")
    with stage.begin("--pipeline", "items", "--name", "task", "--workspace", "worktree", "--agent", "claude") as engine:
        claude.model.wait_until_asked(lambda one: bool(one.asked.results))
        claude.wait_for(
            lambda: any("tool_result" in one.read_text() for one in claude.lab.home.rglob("projects/*/*.jsonl")),
            "its own record",
        )
        stage.kill("build-1-worker.01-a-1")
        found = engine.wait()
    assert (found.status, found.attempts["build-1-worker.01-a-2"]["summary"]) == ("completed", "went on"), (
        found.out + found.err
    )
    assert (stage.root / "first.txt").read_text() == "half\n" and (
        stage.root / "second.txt"
    ).read_text() == "the rest\n"
    assert "echo half > first.txt" in conversation(claude)


def test_keys_reach_the_program_and_no_file(claude: ClaudeSubject) -> None:
    stage = staged(claude, claude.turns("done"))
    stage.environment["ANTHROPIC_API_KEY"] = "a-key-that-nobody-may-see"
    stage.environment["SOMEBODY_ELSES_KEY"] = "another-one"
    stage.run("--agent", "claude")
    assert claude.model.requests[0].headers.get("x-api-key") == "a-key-that-nobody-may-see"
    kept = [path for path in stage.root.rglob("*") if path.is_file()]
    assert len(kept) > 10
    assert not [path for path in kept if b"nobody-may-see" in path.read_bytes() or b"another-one" in path.read_bytes()]


def test_auto_finds_it_and_says_so(claude: ClaudeSubject) -> None:
    stage = staged(claude, claude.turns("done"))
    found = stage.run("--agent", "auto")
    assert found.only["agent"] == "claude" and "agent: claude" in found.err
    shown = stage.tenuto("logs", "task", FIRST)
    for kept in stage.folder(FIRST).glob("reply"):
        kept.rename(kept.with_name("aside"))
    assert stage.tenuto("logs", "task", FIRST).stdout.splitlines() == [
        "Writing.",
        f"[Write {stage.output}]",
        "DONE: wrote it",
    ], "or as it was said"
    assert shown.stdout == "DONE: wrote it\n", "what it said in the end"
    assert '"type":"result"' in stage.tenuto("logs", "task", FIRST, "--of", "stdout").stdout, "all it printed"
