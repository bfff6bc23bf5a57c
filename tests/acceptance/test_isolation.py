"""Items in work trees of their own: merged in order, kept when not merged, never mixed with what was there before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import Place, start
from tenuto.engine.loop import Engine
from tenuto.engine.worktrees import look
from tenuto.errors import Refused
from tenuto.files import git
from tests.acceptance.grounds import Ground, merges, receipts


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_items_are_merged_in_wave_order_whoever_ends_first(ground: Ground) -> None:
    """The second item ends first and waits; the branch reads as the plan does, and each merge names its attempt."""
    name = ground.start(
        _01="until [ -e $TENUTO_GO ]; do sleep 0.01; done; echo a > a.txt".replace(
            "$TENUTO_GO", str(ground.root / ".git" / "go")
        ),
        _02=f"echo b > b.txt; touch {ground.root}/.git/go",
    )
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert merges(ground) == ["01-a", "02-b"]
    named = git.trailers(str(ground.root), run["settings"]["base_commit"], "Tenuto-Attempt")
    assert sorted(named) == [f"{name}/implementation-1-implementer.{item}-1" for item in ("01-a", "02-b")]
    assert {item: named[f"{name}/implementation-1-implementer.{item}-1"] for item in ("01-a", "02-b")} == {
        item: receipt["merged"] for item, receipt in receipts(run).items()
    }
    assert (ground.root / "a.txt").read_text() == "a\n" and (ground.root / "b.txt").read_text() == "b\n"


def test_each_item_works_alone(ground: Ground) -> None:
    """Neither sees what the other has not merged, and both see the run's documents."""
    name = ground.start(
        plan="## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n## Wave 2\n- 03-c (depends_on: 01-a)\n",
        _01="echo a > a.txt; ls > seen-a; git -C . branch --show-current > branch-a",
        _02="ls > seen-b; cat docs/feature/*/plan.md docs/feature/*/memory.md docs/feature/*/initial-request.md > "
        "read-b",
        _03="ls > seen-c",
    )
    run = ground.drive(name)
    assert run["status"] == "completed"
    assert "a.txt" in (ground.root / "seen-a").read_text() and "a.txt" not in (ground.root / "seen-b").read_text()
    assert "a.txt" in (ground.root / "seen-c").read_text()
    assert (
        "01-a" in (ground.root / "read-b").read_text() and "Operational Memory" in (ground.root / "read-b").read_text()
    )
    assert (ground.root / "branch-a").read_text().startswith(f"tenuto-attempts/{name}/")
    assert not os.listdir(ground.root / ".tenuto" / "trees" / name)
    assert ground.git("branch", "--list", "tenuto-attempts/*") == ""


def test_a_conflict_is_a_revision_with_the_conflict_as_its_finding_and_loses_nothing(ground: Ground) -> None:
    """The first item is merged; the second is asked again, told why, and starts from what was merged. What it
    had done stays on its branch."""
    name = ground.start(
        _01="sed -i s/two/TWO-a/ shared.txt",
        _02__1="sed -i s/two/TWO-b/ shared.txt",
        _02__2="grep -q TWO-a shared.txt && sed -i s/TWO-a/TWO-ab/ shared.txt",
    )
    run = ground.drive(name)
    assert run["status"] == "completed", (run["failure"], [a["summary"] for a in run["attempts"].values()])
    first = run["attempts"]["implementation-1-implementer.02-b-1"]
    assert (
        first["verdict"] == "NEEDS_REVISION"
        and "merge conflict" in first["summary"]
        and "shared.txt" in first["summary"]
    )
    assert "TWO-a" in first["receipt"]["conflict"] and "TWO-b" in first["receipt"]["conflict"]
    again = run["attempts"]["implementation-1-implementer.02-b-2"]
    assert again["extra"]["why_again"] == first["summary"]
    assert (ground.root / "shared.txt").read_text() == "one\nTWO-ab\nthree\n"
    assert "TWO-b" in ground.git("show", f"{first['receipt']['kept']}:shared.txt")
    assert ground.git("status", "--porcelain") == ""


def test_what_failed_is_kept_on_its_branch_and_not_merged(ground: Ground) -> None:
    name = ground.start(_01="echo half > a.txt; exit 1", _02="echo b > b.txt")
    run = ground.drive(name)
    assert run["status"] == "failed"
    failed = receipts(run)["01-a"]
    assert "merged" not in failed and ground.git("show", f"{failed['kept']}:a.txt") == "half"
    assert merges(ground) == ["02-b"] and not (ground.root / "a.txt").exists()


def test_in_a_work_tree_the_member_that_strayed_is_named_and_only_it_fails(ground: Ground) -> None:
    plan = "| Task | File(s) | Dependencies |\n|---|---|---|\n| 01-a | a.txt | none |\n| 02-b | b.txt | none |\n"
    name = ground.start(
        plan=plan,
        _01="echo x > a.txt; echo x > shared.txt; git add -A; git -c user.name=u -c user.email=u@localhost commit "
        "-qm mine",
        _02="echo b > b.txt",
    )
    run = ground.drive(name)
    strayed, other = (run["attempts"][f"implementation-1-implementer.{item}-1"] for item in ("01-a", "02-b"))
    assert (strayed["verdict"], other["verdict"]) == ("ERROR", "DONE")
    assert "shared.txt (implementation-1-implementer.01-a-1)" in strayed["summary"]
    assert (ground.root / "shared.txt").read_text() == "one\ntwo\nthree\n"


def test_a_member_that_writes_its_copy_of_memory_is_found_out(ground: Ground) -> None:
    name = ground.start(
        _01="rm -f docs/feature/*/memory.md; echo mine > docs/feature/add-dark-mode/memory.md", _02="true"
    )
    run = ground.drive(name)
    attempt = run["attempts"]["implementation-1-implementer.01-a-1"]
    assert attempt["verdict"] == "ERROR" and "memory.md" in attempt["summary"]
    assert "mine" not in (ground.root / "docs/feature" / name / "memory.md").read_text()


def test_a_fresh_work_tree_gets_the_projects_set_up(ground: Ground) -> None:
    """Copied files and commands, before the agent starts; what they make is not merged."""
    (ground.root / ".env").write_text("KEY=1\n")
    ground.settings = {"setup": {"copy": [".env"], "run": ["echo made > made-by-setup"]}}
    name = ground.start(_01="cat .env made-by-setup > a.txt", _02="true")
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert (ground.root / "a.txt").read_text() == "KEY=1\nmade\n"
    assert not (ground.root / "made-by-setup").exists()


def test_a_set_up_that_fails_starts_no_agent_and_says_why(ground: Ground) -> None:
    ground.settings = {"setup": {"run": ["echo no network; exit 3"]}}
    name = ground.start(_01="touch started", _02="touch started")
    run = ground.drive(name)
    attempt = run["attempts"]["implementation-1-implementer.01-a-1"]
    assert attempt["verdict"] == "ERROR"
    assert (
        "'echo no network; exit 3' failed: exit status 3" in attempt["summary"] and "no network" in attempt["summary"]
    )
    assert not list((ground.root / ".tenuto/trees").rglob("started"))


def test_a_merge_that_the_journal_never_heard_of_is_not_made_again(ground: Ground) -> None:
    """An engine dies right after the merge: the next one knows it by its trailer."""
    name = ground.start(_01="echo a > a.txt", _02="echo b > b.txt")
    workspace = tenuto.open(str(ground.root))

    class Dies(Engine):
        def _record(self, turn: Any, job: Any, *rest: Any) -> None:
            if job.item is not None:
                raise KeyboardInterrupt
            super()._record(turn, job, *rest)

    with pytest.raises(KeyboardInterrupt):
        Dies(workspace, name, Roster(f"scripted:{ground.script}"), {}).drive()
    assert merges(ground) == ["01-a"]
    made = ground.git("rev-parse", "HEAD")
    ground.git("commit", "-q", "--allow-empty", "-m", "somebody went on")
    run = ground.drive(name)
    assert run["status"] == "completed" and merges(ground) == ["01-a", "02-b"]
    assert receipts(run)["01-a"]["merged"] == made and receipts(run)["02-b"]["merged"]


def test_a_dirty_tree_is_refused_and_nothing_is_written(ground: Ground) -> None:
    (ground.root / "shared.txt").write_text("mine\n")
    with pytest.raises(Refused, match=r"not committed: shared.txt"):
        ground.start()
    assert ground.git("branch", "--show-current") == "main" and not (ground.root / "docs").exists()
    assert tenuto.open(str(ground.root)).journal.read().__enter__().runs() == []


def test_a_dirty_tree_is_stashed_by_choice_and_never_mixed_in(ground: Ground) -> None:
    (ground.root / "shared.txt").write_text("mine\n")
    (ground.root / "new.txt").write_text("new\n")
    name = ground.start(place=Place("worktree", dirty="stash"), _01="true", _02="true")
    run = ground.drive(name)
    assert run["status"] == "completed"
    assert (ground.root / "shared.txt").read_text() == "one\ntwo\nthree\n" and not (ground.root / "new.txt").exists()
    ground.git("switch", "-q", "main")
    ground.git("stash", "apply", "-q", run["settings"]["stash"])
    assert (ground.root / "shared.txt").read_text() == "mine\n" and (ground.root / "new.txt").read_text() == "new\n"


def test_a_run_that_is_refused_has_stashed_nothing(ground: Ground) -> None:
    """It is looked at first, and accepted; then what was there is put aside."""
    (ground.root / "shared.txt").write_text("mine\n")
    workspace = tenuto.open(str(ground.root))

    def refuse(turn: Any, run: str) -> None:
        raise Refused("not-now", "something else is wrong with it")

    with pytest.raises(Refused, match="something else"):
        start(workspace, "Add dark mode", "small", place=Place("worktree", dirty="stash"), then=refuse)
    assert (ground.root / "shared.txt").read_text() == "mine\n" and ground.git("stash", "list") == ""
    with workspace.journal.read() as reader:
        assert reader.runs() == []


DEADLY = """#!/bin/sh
case "$*" in
  *"stash push"*)
    [ {when} = before ] || {git} "$@"
    [ {when} != between ] || {git} stash apply -q
    kill -9 $PPID;;
  *) exec {git} "$@";;
esac
"""


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_whoever_is_killed_while_changes_are_put_aside_leaves_the_rest_to_the_next(
    ground: Ground, tmp_path: Path, when: str
) -> None:
    """Before git's stash; when the stash is there and the tree is not cleared yet; before the stash is recorded."""
    (ground.root / "shared.txt").write_text("mine\n")
    (ground.root / "new.txt").write_text("new\n")
    ground.script.write_text(
        "answers:\n  - for: {role: planner}\n    files: {docs/feature/add-dark-mode/plan.md: '- 01-a "
        "(depends_on: none)'}\n"
    )
    deadly = tmp_path / "bin" / "git"
    deadly.parent.mkdir()
    deadly.write_text(DEADLY.format(when=when, git=shutil.which("git")))
    deadly.chmod(0o755)
    words = [
        "run",
        "Add dark mode",
        "--pipeline",
        "small",
        "--workspace",
        "worktree",
        "--dirty",
        "stash",
        "--agent",
        f"scripted:{ground.script}",
    ]
    killed = subprocess.run(
        [sys.executable, "-m", "tenuto", *words],
        cwd=ground.root,
        capture_output=True,
        check=False,
        env={**os.environ, "PATH": f"{deadly.parent}:{os.environ['PATH']}"},
    )
    assert killed.returncode == -9, killed
    run = ground.drive("add-dark-mode")
    assert run["status"] == "completed", run["failure"]
    assert (ground.root / "shared.txt").read_text() == "one\ntwo\nthree\n" and not (ground.root / "new.txt").exists()
    ground.git("switch", "-q", "main")
    ground.git("stash", "apply", "-q", run["settings"]["stash"])
    assert (ground.root / "shared.txt").read_text() == "mine\n" and (ground.root / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize("place", [Place("worktree"), Place("shared", own_branch=True)], ids=["worktree", "shared"])
def test_the_run_ends_with_its_branch_its_summary_and_a_pull_request_text(ground: Ground, place: Place) -> None:
    name = ground.start(place=place, _01="echo a > a.txt", _02="echo b > b.txt")
    run = ground.drive(name)
    assert run["status"] == "completed"
    assert ground.git("branch", "--show-current") == run["settings"]["branch"] == f"tenuto/{name}"
    assert ground.git("status", "--porcelain") == ""
    shown = ground.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert {"a.txt", "b.txt", f"docs/feature/{name}/summary.md", f"docs/feature/{name}/pull-request.md"} <= set(shown)
    text = (ground.root / "docs/feature" / name / "pull-request.md").read_text()
    assert text.startswith("# Add dark mode\n\n> Add dark mode\n") and "- 01-a:" in text and "from `main`" in text
    assert {"summary.md", "pull-request.md"} <= set(run["artifacts"])
    assert ground.git("diff", "--stat", "main", "HEAD", "--", "shared.txt") == ""
    before = ground.git("rev-parse", "HEAD")
    assert ground.drive(name)["status"] == "completed" and ground.git("rev-parse", "HEAD") == before


def test_a_run_goes_back_to_its_branch_and_refuses_to_carry_changes_there(ground: Ground) -> None:
    name = ground.start(_01="true", _02="true")
    (ground.root / "shared.txt").write_text("mine\n")
    with pytest.raises(Refused, match="works on the branch"):
        ground.drive(name)
    ground.git("checkout", "-q", "shared.txt")
    assert ground.drive(name)["status"] == "completed"


def test_without_a_branch_of_its_own_a_run_works_where_it_stands(ground: Ground) -> None:
    """As the seeds do: no branch, no commit, no refusal."""
    (ground.root / "shared.txt").write_text("mine\n")
    before = ground.git("rev-parse", "HEAD")
    name = ground.start(place=Place(), _01="echo a > a.txt", _02="true")
    assert ground.drive(name)["status"] == "completed"
    assert ground.git("branch", "--show-current") == "main" and ground.git("rev-parse", "HEAD") == before
    assert (ground.root / "shared.txt").read_text() == "mine\n"


ONE = "## Wave 1\n- 01-a (depends_on: none)\n"


@pytest.mark.parametrize("target", ["escaped.txt", "shared.txt", ".tenuto/config.yaml"])
def test_who_writes_into_the_runs_own_tree_is_found_out_and_nothing_of_it_is_committed(
    ground: Ground, target: str
) -> None:
    """From a work tree of its own into the one beside it: an ERROR with the file's name, and the branch does not
    have it."""
    name = ground.start(plan=ONE, _01=f"echo a > a.txt; echo mine > {ground.root}/{target}")
    run = ground.drive(name)
    assert run["status"] == "failed"
    assert f"files outside its work tree were changed: {target}" in receipts(run)["01-a"]["problem"]
    assert merges(ground) == []
    assert "mine" not in ground.git("log", "-p", f"tenuto/{name}")
    assert ground.git("status", "--porcelain", "--", target) == "", "it was put aside"
    (kept,) = Path(tenuto.open(str(ground.root)).state).glob(f"quarantine/*/{target}")
    assert kept.read_text() == "mine\n", "for its user to look at"


def test_an_agent_cannot_change_what_agents_are_held_to(ground: Ground) -> None:
    """.tenuto/ has the checks, the pipelines and the roles: no boundary includes it, however wide."""
    name = ground.start(plan=ONE, _01="echo a > a.txt; echo gates: guarded > .tenuto/config.yaml")
    run = ground.drive(name)
    assert "files outside the boundary were changed: .tenuto/config.yaml" in receipts(run)["01-a"]["problem"]
    assert not (ground.root / ".tenuto/config.yaml").exists()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("rm .git", "no work tree of this repository any more"),
        ("echo gitdir: {root}/.git > .git", "no work tree of this repository any more"),
        (
            "git init -q sub && git -C sub -c user.name=u -c user.email=u@localhost commit -q --allow-empty -m x",
            "a git repository of its own, which cannot be merged: sub",
        ),
    ],
    ids=["no .git", "another .git", "a nested repository"],
)
def test_a_tree_that_cannot_be_taken_over_is_its_agents_error_and_stays(ground: Ground, harm: str, said: str) -> None:
    """Neither does the engine stop over it, nor does a command of ours act on another tree."""
    before = ground.git("rev-parse", "main")
    name = ground.start(_01=f"echo a > a.txt; {harm.format(root=ground.root)}", _02="echo b > b.txt")
    run = ground.drive(name)
    assert run["status"] == "failed"
    assert said in receipts(run)["01-a"]["problem"]
    assert merges(ground) == ["02-b"]
    assert ground.git("rev-parse", "main") == before and ground.git("branch", "--show-current") == f"tenuto/{name}"
    kept = list((ground.root / ".tenuto/trees" / name).glob("*01-a*"))
    assert (kept[0] / "a.txt").read_text() == "a\n"
    told = {one["name"]: one["goes"] for one in look(tenuto.open(str(ground.root)))}
    assert told[str(kept[0])] is False


def test_a_branch_that_somebody_moved_back_is_not_merged_into(ground: Ground) -> None:
    ground.git("commit", "-q", "--allow-empty", "-m", "another")
    name = ground.start(plan=ONE, _01=f"echo a > a.txt; git -C {ground.root} reset -q --hard HEAD~1")
    with pytest.raises(Refused, match="was moved: it does not have") as refused:
        ground.drive(name)
    assert "git merge" in refused.value.hint
    ground.git("merge", "-q", ground.git("rev-parse", "main"))
    assert ground.drive(name)["status"] == "completed"
    assert merges(ground) == ["01-a"]


def test_nor_is_one_that_lost_only_what_was_merged_last(ground: Ground) -> None:
    """The commit that the run began with is still on it."""
    name = ground.start(
        plan="## Wave 1\n- 01-a (depends_on: none)\n## Wave 2\n- 02-b (depends_on: 01-a)\n",
        _01="echo a > a.txt",
        _02="echo b > b.txt",
    )
    began = ground.git("rev-parse", "HEAD")

    class Meddler(Engine):
        def finish(self, *given: Any, **named: Any) -> Any:
            if merges(ground) and not (ground.root / ".git/moved").exists():
                (ground.root / ".git/moved").touch()
                ground.git("reset", "-q", "--hard", began)
            return super().finish(*given, **named)

    engine = Meddler(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), ground.settings)
    with pytest.raises(Refused, match="was moved: it does not have"):
        engine.drive()
    assert merges(ground) == []


STRAYING = """
name: straying
documents: docs/feature/{slug}
steps:
  - id: design
    agent: {role: designer, out: design.md}
    retry: {ERROR: 1}
  - id: build
    cluster:
      members:
        - {role: implementer, id: one, out: one.md, touches: "**"}
        - {role: implementer, id: two, out: two.md, touches: "**"}
      quorum: 2
"""


def test_what_strayed_is_not_committed_unless_somebody_who_may_went_on_with_it(ground: Ground) -> None:
    """On a branch of its own: of two files that the designer must not write, the one that a builder changed later is
    part of the result."""
    (ground.root / ".tenuto/pipelines/straying.yaml").write_text(STRAYING)
    ground.git("add", ".")
    ground.git("commit", "-q", "-m", "straying")
    workspace = tenuto.open(str(ground.root))
    name = str(start(workspace, "Add it", "straying", place=Place("shared", own_branch=True))["id"])
    ground.script.write_text("""answers:
  - for: {role: designer, try: 1}
    run: echo mine > shared.txt; echo mine > stray.txt
  - for: {role: implementer, outputs: '*one*'}
    run: echo ours > shared.txt
""")
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert ground.git("show", f"tenuto/{name}:shared.txt") == "ours"
    assert "stray.txt" not in ground.git("ls-tree", "-r", "--name-only", f"tenuto/{name}")
    assert not (ground.root / "stray.txt").exists(), "it was put aside"
    kept = Path(tenuto.open(str(ground.root)).state) / "quarantine"
    assert sorted(path.name for path in kept.glob("*/*")) == ["shared.txt", "stray.txt"]


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b'it\'s "so"', b"\r\n \xff'\"\\$\t\x01 \r\n"])
def test_a_repository_may_be_called_as_it_likes(tmp_path: Path, name: bytes) -> None:
    """Git writes the names of folders as they are. One that is no UTF-8 was taken for a tree that its agent had
    tampered with, and where one has a line end, git was asked about the run's own tree instead of the item's."""
    ground = Ground(tmp_path / os.fsdecode(name))
    assert ground.drive(ground.start(_01="echo a > a.txt", _02="echo b > b.txt"))["status"] == "completed"
    assert merges(ground) == ["01-a", "02-b"]
