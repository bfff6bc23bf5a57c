"""`tenuto diff`: what a run, an attempt or a gate changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.terminal import start_at_terminal
from tests.unit.engine.conftest import SMALL, Said, repository, say, script

__all__ = ["repository", "say", "script"]
Say = Callable[..., Said]
Script = Callable[[str], str]
GATED = SMALL.replace("name: small", "name: gated") + (
    "  - {id: agreed, gate: {prompt: 'Good so?', show: [design.md], revise: write}}\n"
)
ANSWERS = """
answers:
  - {for: {role: designer, visit: '1'}, files: {'{out}': "# Design\\n\\nUse one colour.\\n"}}
  - {for: {role: designer, visit: '2'}, files: {'{out}': "# Design\\n\\nUse two colours.\\n"}}
"""


@pytest.fixture
def gated(repository: Path, say: Say, script: Script) -> Path:
    (repository / ".tenuto/pipelines/gated.yaml").write_text(GATED)
    assert say("run", "Add it", "--pipeline", "gated", "--agent", script(ANSWERS)).status == 5
    return repository


def test_of_a_run_in_a_shared_tree_the_documents_that_it_stored(say: Say, gated: Path) -> None:
    said = say("diff")
    assert said.status == 0 and "+++ b/docs/add-it/design.md" in said.out and "+Use one colour." in said.out
    stat = say("diff", "add-it", "--stat").out
    assert "docs/add-it/design.md  +3 -0" in stat and "3 files" in stat


def test_of_an_attempt_what_it_wrote_and_of_no_other(say: Say, gated: Path) -> None:
    out = say("diff", "write-1-designer-1").out
    assert "design.md" in out and "a.md" not in out


def test_of_a_gate_what_is_new_since_its_last_decision_word_by_word(say: Say, gated: Path, script: Script) -> None:
    assert "--- /dev/null" in say("diff", "gate").out
    assert say("revise", "--feedback", "two").status == 0
    assert say("run", "--agent", script(ANSWERS)).status == 5
    out = say("diff", "agreed", "--words").out
    assert "Use [-one-]{+two+} [-colour-]{+colours+}." in out
    assert say("diff", "gate", "--exit-code").status == 1


def test_of_a_run_on_its_branch_what_git_says_and_what_is_not_committed_yet(
    repository: Path, say: Say, script: Script
) -> None:
    assert say("run", "Add it", "--pipeline", "small", "--branch", "--agent", script("answers: []\n")).status == 0
    (repository / "README.md").write_text("hello again\n")
    out = say("diff").out
    assert "-hello\n+hello again" in out
    subprocess.run(["git", "checkout", "-q", "."], check=True)
    subprocess.run(["git", "switch", "-q", "main"], check=True)
    assert "pull-request.md" in say("diff", "--stat").out


def test_json_has_files_and_lines_and_hostile_text_is_spelled_out(repository: Path, say: Say, script: Script) -> None:
    hostile = "answers: [{for: {role: designer}, files: {'{out}': \"a\\e[31mb\\n\"}}]"
    assert say("run", "Add it", "--pipeline", "small", "--agent", script(hostile)).status == 0
    assert "\x1b" not in say("diff").out
    file = next(one for one in say("diff", "--json").data["diff"]["files"] if one["path"].endswith("design.md"))
    assert file["added"] == 1 and file["hunks"][0]["lines"][0]["mark"] == "+"


def test_at_a_terminal_it_goes_through_the_pager(gated: Path, tmp_path: Path) -> None:
    (tmp_path / "pager").write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    (tmp_path / "pager").chmod(0o755)
    words = [shutil.which("tenuto") or "tenuto", "diff"]
    environment = {**os.environ, "PAGER": str(tmp_path / "pager"), "LINES": "5", "TERM": "xterm"}
    program, terminal = start_at_terminal(words, gated, environment)
    assert program.wait() == 0
    os.close(terminal)
    assert "Use one colour." in (tmp_path / "paged").read_text()


def test_what_is_nowhere_is_named(say: Say, gated: Path) -> None:
    said = say("diff", "nonsense", "--json")
    assert (said.status, said.error["code"]) == (3, "nothing-to-compare")
