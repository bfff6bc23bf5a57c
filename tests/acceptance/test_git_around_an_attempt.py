"""What an agent leaves in git's own files is named, is put back, and is its ERROR; what it may do there stays."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import start
from tenuto.engine.loop import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.workspace.settings import Settings

PIPELINE = """
name: small
documents: docs/{slug}
steps:
  - id: build
    agent: {role: implementer, out: built.md}
    on: {ERROR: halt}
"""
WRITE = 'mkdir -p "$(dirname "$TENUTO_OUTPUTS")"; echo built > "$TENUTO_OUTPUTS"; echo "DONE: fine"\n'
WHO = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"


class Ground:
    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "repository"
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        own = self.root / ".tenuto" / "pipelines"
        own.mkdir(parents=True)
        (own / "small.yaml").write_text(PIPELINE)
        (self.root / "a.txt").write_text("one\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        self.git("branch", "other")
        self.begin = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def drive(self, script: str, settings: Settings | None = None) -> Any:
        """The one attempt of the run, made by this script."""
        agent = self.folder / "agent.sh"
        agent.write_text(f"#!/bin/sh\ncat > /dev/null\n{WHO}\n{script}\n{WRITE}")
        agent.chmod(0o755)
        self.workspace = tenuto.open(str(self.root))
        name = start(self.workspace, "Add dark mode", "small")["id"]
        run = Engine(self.workspace, name, Roster(f"command:{agent}"), settings or {}).drive()
        return next(iter(run["attempts"].values()))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


PLANTED = {
    ".git/config": "git config core.fsmonitor ./evil",
    ".git/config ": "echo '[garbage' >> .git/config",
    ".git/info/exclude": "echo hidden >> .git/info/exclude; echo evil > hidden",
    ".git/info/attributes": "echo '* filter=x' > .git/info/attributes",
    ".git/hooks/post-checkout": "printf '#!/bin/sh\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "HEAD was moved from the branch main to the branch side": "git switch -q -c side",
    "HEAD was moved from the branch main to the branch other": "git switch -q other",
    "the branch side is new": "git branch side",
    "the branch other was removed": "git branch -q -D other",
    "the branch other was moved": "git branch -q -f other $(git commit-tree -m x HEAD^{tree})",
    "the branch main was moved": "git commit -q --amend --allow-empty -m 'other words'",
    "refs/tags/v1 was moved": "git tag -f v1 $(git commit-tree -m x HEAD^{tree}) > /dev/null",
}


@pytest.mark.parametrize("named", PLANTED)
def test_what_is_planted_in_gits_files_is_named_put_back_and_an_error(ground: Ground, named: str) -> None:
    ground.git("tag", "v1")
    before = state(ground)
    attempt = ground.drive(PLANTED[named])
    assert attempt["verdict"] == "ERROR", attempt["summary"]
    assert named.strip() in attempt["summary"]
    assert state(ground) == before


def state(ground: Ground) -> dict[str, str]:
    folder = ground.root / ".git"
    files = [*folder.glob("info/*"), *folder.glob("hooks/*"), folder / "config", folder / "HEAD"]
    texts = {str(path.relative_to(folder)): path.read_text() for path in files if path.suffix != ".sample"}
    refs = ground.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    return {**texts, "refs": refs, "trees": ground.git("worktree", "list")}


def test_what_was_put_back_is_not_lost(ground: Ground) -> None:
    attempt = ground.drive(
        "git config user.signature mine; git switch -q -c side; echo x > b.txt; git add b.txt; git commit -q -m b"
    )
    assert attempt["verdict"] == "ERROR"
    (aside,) = Path(ground.workspace.state).glob("attempts/*/*/displaced/config")
    assert "signature = mine" in aside.read_text()
    kept = ground.git("for-each-ref", "--format=%(contents:subject)", "refs/tenuto-displaced")
    assert kept == "b"


def test_commits_on_its_branch_fetches_and_tags_are_an_attempts_own(ground: Ground) -> None:
    script = "git fetch -q . main:refs/remotes/origin/main; git tag mine; git config branch.main.remote origin"
    attempt = ground.drive(f"{script}; git commit -q --allow-empty -m mine")
    assert attempt["verdict"] == "DONE", attempt["summary"]
    assert ground.git("log", "-1", "--format=%s") == "mine" and ground.git("tag") == "mine"


def test_a_stash_is_named_and_left(ground: Ground) -> None:
    (ground.root / "a.txt").write_text("the user's own change\n")
    attempt = ground.drive("git stash -q")
    assert attempt["verdict"] == "ERROR" and "the stash is new" in attempt["summary"]
    assert ground.git("stash", "list")


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_flag_in_the_index_hides_no_stray_edit(ground: Ground, flag: str) -> None:
    attempt = ground.drive(f"git update-index {flag} a.txt; echo evil >> a.txt")
    assert attempt["verdict"] == "ERROR" and "a.txt" in attempt["summary"]


def test_a_work_tree_elsewhere_hides_no_stray_edit(ground: Ground) -> None:
    attempt = ground.drive(
        f"cp -r . {ground.folder}/copy; git config core.worktree {ground.folder}/copy; echo evil >> a.txt"
    )
    assert attempt["verdict"] == "ERROR" and ".git/config" in attempt["summary"]


def test_what_a_check_planted_is_found(ground: Ground) -> None:
    (ground.root / ".tenuto/pipelines/small.yaml").write_text(
        PIPELINE.replace("out: built.md", "out: built.md, checks: [tests]")
    )
    ground.git("commit", "-q", "-a", "-m", "with a check")
    attempt = ground.drive("", {"checks": {"tests": "git config core.fsmonitor ./evil"}})
    assert attempt["verdict"] == "ERROR" and ".git/config" in attempt["summary"]
    assert "fsmonitor" not in (ground.root / ".git/config").read_text()
