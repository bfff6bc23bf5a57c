"""One run, two vendors: roles name Claude Code and Codex, and when one has reached its limit the other takes over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tenuto
from tests.real.conftest import Lab
from tests.real.model import Asked
from tests.real.other_subjects import CodexSubject
from tests.real.stage import Stage
from tests.real.subjects import ClaudeSubject

PIPELINE = """name: two
documents: .
steps:
  - {id: draft, agent: {role: worker, out: out.md}}
  - {id: check, agent: {role: checker, in: [out.md], out: check.md}}
"""
CODEX = "codex:sandbox=danger-full-access"


def test_roles_of_two_vendors_and_one_takes_over_from_the_other(
    lab: Lab, tmp_path: Path, program: Callable[[str], str]
) -> None:
    claude, codex = ClaudeSubject(lab, tmp_path, program), CodexSubject(lab, tmp_path, program)

    def play(asked: Asked) -> Any:
        """Claude Code drafts, and has no more left when it is to check: Codex does that."""
        file = "check.md" if "Check it" in asked.text else "out.md"
        by = codex if "exec_command" in asked.tools else claude
        if by is claude and file == "check.md":
            return claude.limit()
        return ["DONE: wrote it"] if asked.results else [by.write(file, "x\n")]

    model = lab.model({"work": play})
    stage = Stage(tmp_path, claude.environment("limit") | codex.environment("limit"))
    (stage.root / ".tenuto/pipelines/two.yaml").write_text(PIPELINE)
    (stage.root / ".tenuto/roles/checker.md").write_text(
        "---\nname: checker\ntools: [read, write]\n---\nCheck it. [[script:work]]\n"
    )
    stage.configure(
        f"environment: [CODEX_TEST_KEY]\nagent: {CODEX}\nroles:\n  worker: claude:model=claude-haiku-4-5\n  "
        f"checker: claude\nfallback: {{claude: {CODEX}}}\n"
    )
    found = stage.run("--pipeline", "two", "--name", "task")
    assert found.status == "completed", found.out + found.err
    done = [(one["role"], one["agent"], one["verdict"]) for one in found.attempts.values()]
    assert done == [
        ("worker", "claude:model=claude-haiku-4-5", "DONE"),
        ("checker", "claude", "PARKED"),
        ("checker", CODEX, "DONE"),
    ]
    assert (stage.root / "check.md").read_text() == "x\n"
    assert {one.body["model"] for one in model.requests if one.asked.tools and one.protocol != "responses"} >= {
        "claude-haiku-4-5"
    }
    assert tenuto.open(str(stage.root)).load("task")["budget"]["spent"]["tokens"] == sum(
        one["usage"].get("tokens", 0) for one in found.attempts.values()
    )
