"""What a checkout brings runs only after a person has looked at it: `tenuto trust`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.workspace.trust import MARK, folder
from tests.support.terminal import start_at_terminal
from tests.support.trusting import trust
from tests.unit.engine.conftest import Said, make_repository

Say = Callable[..., Said]
ROGUE = """\
name: rogue
documents: docs/{slug}
params: {n: {type: number, default: 1}}
steps:
  - {id: make, command: [sh, -c, "echo $0 > ../made", "{params.n}"]}
"""
CASES = """\
request: Try it
checks: {tests: touch ../by-a-case}
cases:
  - {name: well, expect: {end: completed}}
"""


@pytest.fixture
def hostile(repository: Path) -> Path:
    """A repository that would run this and that, as it was cloned."""
    own = repository / ".tenuto"
    (own / "canary").write_text("#!/bin/sh\ntouch by-canary\n")
    (own / "canary").chmod(0o755)
    (own / "config.yaml").write_text(
        "checks: {tests: .tenuto/canary}\nsetup: {run: [.tenuto/canary]}\nnotify: {command: .tenuto/canary}\n"
        "isolation: [.tenuto/canary]\nenvironment: [GITHUB_TOKEN]\nagent: 'command:.tenuto/canary'\n"
    )
    (own / "pipelines" / "rogue.yaml").write_text(ROGUE)
    return repository


def run(say: Say, *words: str) -> Said:
    return say("run", "Add x", "--pipeline", "small", "--name", "x", "--json", *words)


def test_nothing_runs_and_nothing_is_written_before_somebody_has_looked(say: Say, hostile: Path) -> None:
    for words in (("--agent", "command:touch by-my-agent"), ()):
        said = run(say, *words)
        assert (said.status, said.error["code"]) == (4, "not-trusted"), said.out
    assert (
        say("run", "Add x", "--pipeline", "rogue", "--agent", "command:true", "--json").error["code"] == "not-trusted"
    )
    assert say("list", "--json").data["runs"] == []
    assert not list(hostile.glob("by-*")) and not (hostile.parent / "made").exists() and not (hostile / "docs").exists()


def test_who_only_looks_runs_nothing_and_is_asked_nothing(say: Say, hostile: Path) -> None:
    (hostile / ".tenuto/config.yaml").rename(hostile / "config.yaml")
    assert run(say, "--start-only").status == 0
    (hostile / "config.yaml").rename(hostile / ".tenuto/config.yaml")
    for words in (["status"], ["list"], ["doctor"], ["verify"], ["plan", "--pipeline", "rogue"], ["trust", "--show"]):
        assert say(*words).status in (0, 5), words
    assert not list(hostile.glob("by-*"))


def test_what_is_shown_is_all_of_it_and_a_terminal_decides(hostile: Path) -> None:
    words = [shutil.which("tenuto") or "tenuto", "trust"]
    for answer, status in ((b"n\n", 5), (b"y\n", 0), (b"", 0)):
        program, terminal = start_at_terminal(words, hostile, dict(os.environ))
        os.write(terminal, answer)
        assert program.wait() == status
        screen = os.read(terminal, 1 << 16).decode()
        os.close(terminal)
        if answer:
            for shown in (
                "checks.tests",
                "setup.run",
                "notify.command",
                "isolation",
                "GITHUB_TOKEN",
                "echo $0 > ../made",
            ):
                assert shown in screen
    assert "all of it is trusted" in screen


def test_without_a_terminal_nobody_is_taken_for_agreeing(say: Say, hostile: Path) -> None:
    said = say("trust", "--json")
    assert (said.status, said.error["code"]) == (4, "not-confirmed")
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


@pytest.mark.parametrize("marked", ["CLAUDECODE", "TENUTO_ATTEMPT"])
def test_no_agent_says_it(say: Say, hostile: Path, monkeypatch: pytest.MonkeyPatch, marked: str) -> None:
    trust(hostile)
    (hostile / ".tenuto/config.yaml").write_text("checks: {tests: other}\n")
    monkeypatch.setenv(marked, "1")
    for words in (("trust", "--yes"), ("trust", "--undo"), ("run", "x", "--pipeline", "small", "--trust"), ("trust",)):
        assert say(*words, "--json").error["code"] == "agent-decides", words
    monkeypatch.delenv(marked)
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


def test_what_changes_is_asked_for_again_and_shown_as_a_difference(say: Say, repository: Path) -> None:
    config = repository / ".tenuto/config.yaml"
    config.write_text("checks: {tests: make test, lint: make lint}\n")
    assert say("trust", "--yes").status == 0
    config.write_text("checks: {tests: make evil, lint: make lint}\npipeline: small  # and this runs nothing\n")
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"
    shown = say("trust", "--show", "--json")
    assert shown.status == 5
    assert [one["what"] for one in shown.data["new"]] == ["make evil"]
    assert [one["what"] for one in shown.data["gone"]] == ["make test"]
    config.write_text("checks: {tests: make test, lint: make lint}\n")
    assert say("trust", "--show", "--json").data["trusted"], "what was looked at once stays known"


def test_it_is_taken_back(say: Say, repository: Path) -> None:
    (repository / ".tenuto/config.yaml").write_text("checks: {tests: make test}\n")
    trust(repository)
    assert run(say, "--agent", "command:true", "--start-only").status == 0
    assert say("trust", "--undo").status == 0
    said = say("run", "--agent", "command:true", "--json")
    assert (said.status, said.error["code"]) == (4, "not-trusted")


def test_parameters_have_the_values_that_a_person_gives(say: Say, repository: Path) -> None:
    """The pipeline was looked at without them; the run goes on with them, also when it is taken up."""
    (repository / ".tenuto/pipelines/rogue.yaml").write_text(ROGUE)
    trust(repository)
    said = say("run", "Add x", "--pipeline", "rogue", "--param", "n=7", "--agent", "command:true", "--start-only")
    assert said.status == 0, said.err
    assert say("run", "--agent", "command:true").status == 0
    assert (repository.parent / "made").read_text() == "7\n"


def test_another_repository_at_the_same_place_is_another_one(say: Say, repository: Path, tmp_path: Path) -> None:
    config = ".tenuto/config.yaml"
    (repository / config).write_text("checks: {tests: make test}\n")
    trust(repository)
    os.chdir(tmp_path)
    shutil.rmtree(repository)
    make_repository(repository)
    (repository / config).write_text("checks: {tests: make test}\n")
    os.chdir(repository)
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


def test_nor_does_a_mark_of_its_own_make_it_the_same(say: Say, repository: Path, tmp_path: Path) -> None:
    """An archive can bring a git directory with a mark in it; the one that a person trusted was another."""
    config = ".tenuto/config.yaml"
    (repository / config).write_text("checks: {tests: make test}\n")
    trust(repository)
    os.chdir(tmp_path)
    shutil.rmtree(repository)
    make_repository(repository)
    (repository / config).write_text("checks: {tests: make test}\n")
    mark = repository / ".git/tenuto" / MARK
    mark.parent.mkdir()
    mark.write_text("0123456789abcdef" * 2 + "\n")
    mark.chmod(0o600)
    os.chdir(repository)
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


def test_neither_is_a_copy(say: Say, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive brings the git directory along, and everything in it."""
    (repository / ".tenuto/config.yaml").write_text("checks: {tests: make test}\n")
    trust(repository)
    shutil.copytree(repository, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


@pytest.mark.parametrize("harm", ["others may write", "a link", "not ours"])
def test_a_record_that_others_could_have_written_is_none(say: Say, repository: Path, tmp_path: Path, harm: str) -> None:
    (repository / ".tenuto/config.yaml").write_text("checks: {tests: make test}\n")
    trust(repository)
    state = str((repository / ".git/tenuto").resolve())
    (record,) = [path for path in Path(folder()).glob("*.json") if state in path.read_text()]
    if harm == "others may write":
        record.chmod(0o666)
    elif harm == "a link":
        record.rename(tmp_path / "elsewhere")
        record.symlink_to(tmp_path / "elsewhere")
    elif os.geteuid() == 0:
        os.chown(record, 12345, 12345)
    else:
        record.unlink()
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"


def test_a_script_in_a_case_is_asked_for_too(say: Say, repository: Path) -> None:
    (repository / ".tenuto/pipelines/small.test.yaml").write_text(CASES)
    assert say("pipeline", "test", "small", "--json").error["code"] == "not-trusted"
    trust(repository)
    assert say("pipeline", "test", "small").status == 0


def test_what_has_no_power_needs_nobodys_word(say: Say, repository: Path) -> None:
    """Prompts, gates, limits and plain names of agents: a pipeline of one's own is tried out without a question."""
    (repository / ".tenuto/config.yaml").write_text("agent: claude\npipeline: small\ntime_limit: 5m\n")
    (repository / ".tenuto/roles").mkdir()
    (repository / ".tenuto/roles/designer.md").write_text("---\nname: designer\n---\nDesign.\n")
    assert say("trust", "--show").status == 0
    assert run(say, "--agent", "command:true", "--start-only").status == 0


@pytest.mark.parametrize("front", ["agent: command:./evil", "tools: [execute]", "permission-mode: bypassPermissions"])
def test_a_role_that_says_more_than_a_prompt_is_asked_for(say: Say, repository: Path, front: str) -> None:
    (repository / ".tenuto/roles").mkdir()
    (repository / ".tenuto/roles/designer.md").write_text(f"---\nname: designer\n{front}\n---\nDesign.\n")
    assert run(say, "--agent", "command:true").error["code"] == "not-trusted"
    trust(repository)
    assert run(say, "--agent", "command:true", "--start-only").status == 0


def test_a_pipeline_that_lies_elsewhere_is_looked_at_by_its_path(say: Say, repository: Path) -> None:
    (repository / "ci").mkdir()
    (repository / "ci/rogue.yaml").write_text(ROGUE)
    words = ("run", "Add x", "--pipeline", "ci/rogue.yaml", "--agent", "command:true", "--json")
    assert say(*words).error["code"] == "not-trusted"
    assert say("trust", "--yes", "--pipeline", "ci/rogue.yaml").status == 0
    assert say(*words).status == 0


def test_ci_says_so_on_purpose_for_one_command(say: Say, repository: Path) -> None:
    (repository / ".tenuto/pipelines/rogue.yaml").write_text(ROGUE)
    words = ("run", "Add x", "--pipeline", "rogue", "--agent", "command:true", "--json")
    assert say(*words, "--trust").status == 0
    assert say(*words).error["code"] == "not-trusted"


def test_what_is_handed_out_and_reported_is_judged_as_well(say: Say, repository: Path) -> None:
    (repository / ".tenuto/pipelines/checked.yaml").write_text(
        "name: checked\ndocuments: docs/{slug}\n"
        "steps: [{id: a, agent: {role: designer, out: a.md}, checks: [{name: evil, run: touch by-check}]}]\n"
    )
    trust(repository)
    assert say("run", "x", "--pipeline", "checked", "--name", "x", "--start-only").status == 0
    (work,) = say("next", "--json").data["work"]
    assert say("trust", "--undo").status == 0
    for words in (("next", "--json"), ("report", "x", work["attempt"], "--verdict", "DONE", "--json")):
        assert say(*words).error["code"] == "not-trusted"
    assert not (repository / "by-check").exists()


def test_a_run_goes_on_in_the_work_tree_that_it_began_in(
    say: Say, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere its gate would be shown with other files, or none, and its agents would work on another branch."""
    gate = "name: gated\ndocuments: docs/{slug}\nsteps:\n  - {id: look, gate: {prompt: Good?}}\n"
    for shown in ("", "shown_as: feature_docs\n"):
        (repository / ".tenuto/pipelines/gated.yaml").write_text(gate.replace("steps:", f"{shown}steps:"))
        name = f"x{len(shown)}"
        assert say("run", "x", "--pipeline", "gated", "--name", name, "--agent", "command:true").status == 5
        other = repository.parent / f"other-{name}"
        subprocess.run(["git", "worktree", "add", "-q", str(other)], cwd=repository, check=True)
        monkeypatch.chdir(other)
        for words in (("run", "--agent", "command:true"), ("approve", name), ("next", name)):
            said = say(*words, "--json")
            assert said.error["code"] == "other-tree" and str(repository) in said.error["message"], said.out
        monkeypatch.chdir(repository)
        assert say("approve", name).status == 0 and say("run", "--agent", "command:true").status == 0


# ---- what a run began with


def test_the_commands_that_a_run_works_with_are_those_it_began_with(say: Say, repository: Path) -> None:
    """.tenuto/ lies where agents write: what stands there later counts for later runs."""
    config = repository / ".tenuto/config.yaml"
    config.write_text("notify: {command: echo first >> ../told}\n")
    trust(repository)
    assert run(say, "--start-only").status == 0
    config.write_text("notify: {command: echo second >> ../told}\n")
    said = say("run", "--agent", "command:true")
    assert "notify in .tenuto/config.yaml changed since x began, and does not count for it" in said.err
    assert (repository.parent / "told").read_text() == "first\n"


def test_a_person_takes_new_ones_over(say: Say, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = repository / ".tenuto/config.yaml"
    config.write_text("notify: {command: echo first >> ../told}\n")
    trust(repository)
    assert run(say, "--start-only").status == 0
    config.write_text("notify: {command: echo second >> ../told}\n")
    words = ("resume", "x", "--new-settings", "--agent", "command:true", "--json")
    assert say(*words).error["code"] == "not-trusted"
    trust(repository)
    monkeypatch.setenv("CLAUDECODE", "1")
    assert say(*words).error["code"] == "agent-decides"
    monkeypatch.delenv("CLAUDECODE")
    say(*words)
    assert (repository.parent / "told").read_text() == "second\n"


def test_a_clone_brings_no_mark(repository: Path, tmp_path: Path) -> None:
    """What says "this repository" lies in the git directory, where no clone takes anything from."""
    trust(repository)
    subprocess.run(["git", "clone", "-q", str(repository), str(tmp_path / "clone")], check=True)
    assert not (tmp_path / "clone/.git/tenuto").exists()
