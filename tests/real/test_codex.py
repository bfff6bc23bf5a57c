"""What Codex alone has: threads that go on, a sandbox, options per role; and a short pipeline from its first step to
its last.

With the real program; also behind its bridge to the Agent Client Protocol.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.supervise import attempts
from tests.real.conftest import Lab
from tests.real.model import Asked
from tests.real.other_subjects import CodexSubject
from tests.real.stage import Stage

CODEX = "codex:sandbox=danger-full-access"
FIRST, SECOND = "work-1-worker-1", "work-1-worker-2"
PIPELINE = """name: short
documents: docs
steps:
  - id: plan
    agent: {role: worker, out: plan.md}
  - id: build
    agent: {role: builder, in: [plan.md], out: built.md, touches: ["src/**"]}
  - id: look
    agent: {role: looker, in: [built.md], out: seen.md}
    verdicts: [DONE, NEEDS_REVISION, ERROR]
    on: {NEEDS_REVISION: {route: [build, look], at_most: 1, then: halt}, ERROR: halt}
"""


@pytest.fixture
def codex(lab: Lab, tmp_path: Path, program: Callable[[str], str]) -> CodexSubject:
    return CodexSubject(lab, tmp_path, program)


def staged(codex: CodexSubject, turns: Any, seat: str = "transient: 1", role: str = "") -> Stage:
    codex.model = codex.lab.model({"work": turns})
    return Stage(codex.folder, codex.environment("done"), seat, role)


def conversation(codex: CodexSubject) -> str:
    return json.dumps(codex.model.requests[-1].body["input"])


def shell(command: str) -> Any:
    return {"tool": "exec_command", "input": {"cmd": command}}


def test_a_short_pipeline_with_a_way_back(codex: CodexSubject) -> None:
    """Plan and build by Codex, looked at by Codex behind its bridge; what it does not like is built once more."""
    codex.find("codex-acp")

    def play(asked: Asked) -> Any:
        step = next(
            word
            for word in ("docs/plan.md", "docs/built.md", "docs/seen.md")
            if f"Write exactly these files:\n- {word}" in asked.text
        )
        again = (stage.root / "src/again").exists()
        if asked.results:
            return ["NEEDS_REVISION: not twice yet"] if step == "docs/seen.md" and not again else ["DONE: did its part"]
        more = (
            "mkdir -p src && { [ ! -e src/once ] || touch src/again; } && touch src/once && "
            if step == "docs/built.md"
            else ""
        )
        return [shell(f"{more}mkdir -p docs && date +%N > {step}")]

    stage = staged(codex, play)
    (stage.root / ".tenuto/pipelines/short.yaml").write_text(PIPELINE)
    for name in ("builder", "looker"):
        text = (stage.root / ".tenuto/roles/worker.md").read_text().replace("name: worker", f"name: {name}")
        (stage.root / f".tenuto/roles/{name}.md").write_text(text)
    stage.configure(f"agent: {CODEX}\nroles: {{looker: 'acp:mode=agent-full-access codex-acp'}}\n")
    found = stage.run("--pipeline", "short", "--limit", "tokens=100000")
    told = [(one["step"], one["verdict"], one["agent"].partition(":")[0]) for one in found.attempts.values()]
    assert (found.status, found.code) == ("completed", 0), (told, found.out, found.err)
    assert told == [
        ("plan", "DONE", "codex"),
        ("build", "DONE", "codex"),
        ("look", "NEEDS_REVISION", "acp"),
        ("build", "DONE", "codex"),
        ("look", "DONE", "acp"),
    ]
    assert found.run["budget"]["spent"]["tokens"] == 5 * 240


def test_a_question_is_answered_in_the_same_thread_and_no_token_counts_twice(codex: CodexSubject) -> None:
    def play(asked: Asked) -> Any:
        if "A person has answered" in asked.latest:
            return ["DONE: in green"] if (codex.work / "out.md").exists() else [codex.write("out.md", "green\n")]
        return ["I looked at everything.\n\nQUESTION: which colour?"]

    stage = staged(codex, play, seat="questions: 1")
    asked = stage.run("--agent", CODEX)
    assert asked.status == "paused" and asked.only["verdict"] == "QUESTION", asked.only["summary"]
    assert stage.tenuto("answer", "task", "green").returncode == 0
    found = stage.go_on("--agent", CODEX)
    assert found.status == "completed" and found.attempts[SECOND]["summary"] == "in green", found.out + found.err
    assert "I looked at everything" in conversation(codex)
    assert [one["usage"]["tokens"] for one in found.attempts.values()] == [120, 240]


def test_an_attempt_goes_on_after_a_usage_limit(codex: CodexSubject) -> None:
    def play(asked: Asked) -> Any:
        if "You were interrupted" in asked.latest:
            return ["DONE: went on"]
        return codex.limit() if asked.results else [codex.write("out.md", "x\n")]

    stage = staged(codex, play)
    assert stage.run("--agent", CODEX).status == "parked"
    resumed = stage.tenuto("resume", "task", "--now", "--agent", CODEX)
    found = stage.load()
    assert found["status"] == "completed", resumed.stdout + resumed.stderr
    assert found["attempts"][SECOND]["extra"]["follows"] == FIRST and found["attempts"][SECOND]["summary"] == "went on"
    assert "out.md" in conversation(codex)


def test_a_thread_that_is_gone_is_started_over_in_the_same_start(codex: CodexSubject) -> None:
    stage = staged(codex, codex.half_way)
    with stage.begin("--agent", CODEX) as engine:
        codex.wait_until_begun()
        engine.kill()
    stage.kill(FIRST)
    for kept in (codex.lab.home / ".codex/sessions").rglob("*.jsonl"):
        kept.unlink()
    codex.model.scripts["work"] = codex.turns("done")
    found = stage.go_on("--agent", CODEX)
    assert found.status == "completed", found.out + found.err
    assert (found.attempts[SECOND]["summary"], found.attempts[SECOND]["receipt"]["starts"]) == ("wrote it", 1)


def test_a_program_killed_alone_goes_on_inside_its_attempt(codex: CodexSubject) -> None:
    stage = staged(codex, codex.half_way)
    with stage.begin("--agent", CODEX) as engine:
        codex.wait_until_begun()
        started = attempts.inspect(str(stage.folder(FIRST)))["started"]
        assert started and started["agent"]
        os.kill(started["agent"]["pid"], signal.SIGKILL)
        found = engine.wait()
    assert (found.only["summary"], found.only["receipt"]["starts"]) == ("went on", 2), found.err
    assert "the first half" in conversation(codex)


def test_in_a_sandbox_that_only_reads_nothing_is_written(codex: CodexSubject) -> None:
    stage = staged(codex, codex.turns("done"))
    found = stage.run("--agent", "codex:sandbox=read-only")
    assert found.only["verdict"] == "ERROR" and "out.md does not exist" in found.only["summary"]
    assert not stage.output.exists()


def test_in_its_own_sandbox_it_writes_outputs_below_a_folder_that_it_protects(codex: CodexSubject) -> None:
    """.agents/ is read-only there; the staged pipelines have their documents in it."""
    stage = staged(
        codex, [[shell("echo x > .agents/tmp/out.md; echo y > .agents/mine; echo x > beside.txt")], ["DONE: wrote it"]]
    )
    (stage.root / ".agents").mkdir()
    kept = (
        "name: kept\ndocuments: .agents/tmp\nsteps:\n  - {id: work, agent: {role: worker, out: out.md, touches: "
        "beside.txt}}\n"
    )
    (stage.root / ".tenuto/pipelines/kept.yaml").write_text(kept)
    found = stage.run("--pipeline", "kept", "--agent", "codex")
    if not (stage.root / "beside.txt").exists():
        pytest.skip("Codex's own sandbox does not work on this machine")
    assert (found.only["verdict"], found.only["summary"]) == ("DONE", "wrote it"), found.out + found.err
    assert not (stage.root / ".agents/mine").exists(), "only the outputs' folder is opened"


def test_a_role_that_names_codex_says_which_model_and_effort(codex: CodexSubject) -> None:
    stage = staged(codex, codex.turns("done"), role=f"agent: {CODEX}\nmodel: gpt-5.4\neffort: high\n")
    found = stage.run("--agent", "command:./nobody")
    assert (found.only["verdict"], found.only["agent"]) == ("DONE", CODEX), found.only["summary"]
    body = codex.model.requests[0].body
    assert (body["model"], body["reasoning"]["effort"]) == ("gpt-5.4", "high")


def test_what_is_wrong_with_the_command_line_is_told(codex: CodexSubject) -> None:
    stage = staged(codex, codex.turns("done"))
    told = stage.tenuto("run", "Do it", "--pipeline", "one", "--agent", f"codex:program={codex.folder / 'nobody'}")
    assert told.returncode == 2 and "[no-program]" in told.stderr and "nobody" in told.stderr
