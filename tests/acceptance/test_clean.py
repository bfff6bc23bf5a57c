"""`tenuto clean`: work trees and branches of attempts go when they are merged or recorded, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Engine
from tenuto.engine.worktrees import look, sweep
from tenuto.entrypoints.cli import frame
from tenuto.entrypoints.launch import answer
from tests.acceptance.grounds import Ground, receipts


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def trees(ground: Ground) -> list[Path]:
    return sorted((ground.root / ".tenuto/trees").glob("*/*"))


def clean(ground: Ground, run: str = "") -> dict[str, Any]:
    """By kind and item: does it go, and why."""
    workspace = tenuto.open(str(ground.root))
    found = look(workspace, run)
    sweep(workspace, found)
    return {f"{one['kind']} {one['item']}": (one["goes"], one["why"]) for one in found}


def half_done(ground: Ground, first: str = "echo half > a.txt; exit 1") -> Any:
    return ground.drive(ground.start(_01=first, _02="echo b > b.txt"))


def test_a_tree_goes_when_its_work_is_on_its_branch_and_the_branch_stays(ground: Ground) -> None:
    """A failed item's work is committed on its branch: the tree can be made again from it, the branch cannot."""
    run = half_done(ground)
    told = clean(ground)
    assert told["tree 01-a"] == (True, "all of it is on its branch")
    assert told["branch 01-a"][0] is False
    assert "not merged anywhere" in told["branch 01-a"][1]
    assert trees(ground) == []
    assert ground.git("show", f"{receipts(run)['01-a']['kept']}:a.txt") == "half"


def test_a_branch_goes_once_another_branch_has_it(ground: Ground) -> None:
    run = half_done(ground)
    ground.git("merge", "-q", "-m", "by hand", receipts(run)["01-a"]["kept"])
    told = clean(ground)
    assert told["branch 01-a"] == (True, f"all of it is on tenuto/{run['id']}")
    assert ground.git("branch", "--list", "tenuto-attempts/*") == ""
    assert (ground.root / "a.txt").read_text() == "half\n"
    assert clean(ground) == {}


def test_work_that_is_on_no_branch_stays_and_is_named(ground: Ground) -> None:
    """Somebody went on in the tree that was kept for them: it is theirs to commit."""
    half_done(ground)
    (tree,) = trees(ground)
    (tree / "a.txt").write_text("three quarters\n")
    (tree / "notes.txt").write_text("mine\n")
    told = clean(ground)
    assert told["tree 01-a"][0] is False
    assert "on no branch: a.txt, notes.txt" in told["tree 01-a"][1]
    assert told["branch 01-a"] == (False, "its work tree stays")
    assert (tree / "notes.txt").read_text() == "mine\n"


def test_commits_that_the_branch_does_not_have_stay(ground: Ground) -> None:
    half_done(ground)
    (tree,) = trees(ground)
    ground.git("-C", str(tree), "switch", "-q", "--detach")
    ground.git("-C", str(tree), "commit", "-q", "--allow-empty", "-m", "elsewhere")
    told = clean(ground)
    assert told["tree 01-a"][0] is False
    assert "its branch tenuto-attempts/" in told["tree 01-a"][1]
    assert trees(ground) == [tree]


def test_what_the_set_up_put_there_is_nobodys_work(ground: Ground) -> None:
    ground.settings = {"setup": {"run": ["echo made > made-by-setup"]}}
    half_done(ground)
    assert clean(ground)["tree 01-a"] == (True, "all of it is on its branch")


def test_a_tree_in_which_no_agent_started_goes(ground: Ground) -> None:
    ground.settings = {"setup": {"run": ["echo half > made-by-setup; exit 3"]}}
    half_done(ground)
    told = clean(ground)
    assert told["tree 01-a"] == (True, "no agent started in it")
    assert told["branch 01-a"][0] is True
    assert trees(ground) == []


def test_what_is_under_way_stays(ground: Ground) -> None:
    """Also where the engine that started it is dead: it will be adopted."""
    name = ground.start(_01="echo a > a.txt", _02="echo b > b.txt")

    class Dies(Engine):
        def collect(self, name: str) -> None:
            if "implementer" in name:
                raise KeyboardInterrupt
            super().collect(name)

    with pytest.raises(KeyboardInterrupt):
        Dies(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), {}).drive()
    told = clean(ground)
    assert told["tree 01-a"] == told["branch 01-a"] == (False, "its attempt is under way")
    assert len(trees(ground)) == 2
    assert ground.drive(name)["status"] == "completed"


def test_a_folder_that_is_no_work_tree_is_left_to_its_user(ground: Ground) -> None:
    run = half_done(ground)
    strange = ground.root / ".tenuto/trees" / run["id"] / "strange"
    strange.mkdir()
    (strange / "file").write_text("mine\n")
    told = clean(ground)
    assert told["tree "] == (False, "git knows no work tree here; look at it, and remove it yourself")
    assert (strange / "file").exists()


def test_the_command_says_what_goes_what_stays_and_why(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = half_done(ground)
    monkeypatch.chdir(ground.root)

    def say(*words: str) -> int:
        status = answer(["clean", *words])
        frame.release()
        return status

    assert say("--dry-run") == 0
    dry = capsys.readouterr().out
    assert "would remove: 1 thing" in dry and "kept: 1 thing" in dry and len(trees(ground)) == 1
    assert say(run["id"]) == 0
    told = capsys.readouterr().out
    assert "removed: 1 thing" in told and "01-a: not merged anywhere (ERROR:" in told and "git branch -D" in told
    assert trees(ground) == []
    assert say("nobody") == 3
