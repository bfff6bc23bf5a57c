"""An item whose agent was interrupted goes on in the work tree where it was: the files that it spoke of are there.

The agent is a program with Claude Code's words: a session that can be resumed, and files that it writes on the way.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Ended, Engine
from tenuto.engine.worktrees import look
from tests.acceptance.grounds import PIPELINE, Ground, merges

FIRST, SECOND, THIRD = (f"implementation-1-implementer.01-a-{number}" for number in (1, 2, 3))
PLAN = "## Wave 1\n- 01-a (depends_on: none)\n"
AGENT = """\
echo "$PWD" >> "$LOG"
init() { printf '{"type": "system", "subtype": "init", "session_id": "%s"}\\n' "$1"; }
end() { printf '{"type": "result", "is_error": %s, "result": "%s"}\\n' "$1" "$2"; }
case "$*" in
*--resume*) init 11111111-2222-4333-8444-555555555555; cat >/dev/null; [ -e first.txt ] && RESUMED; end false 'DONE: went on' ;;
*) init 11111111-2222-4333-8444-555555555555; FRESH ;;
esac
"""  # noqa: E501
LOST = 'echo half > first.txt; kill -9 "$PPID"; sleep 60'
LIMIT = f"echo half > first.txt; end true 'Claude AI usage limit reached|{int(time.time()) + 20 * 86400}'"


class Interrupted:
    def __init__(self, folder: Path, fresh: str, resumed: str = "echo rest > second.txt") -> None:
        self.ground = Ground(folder, PIPELINE.replace("LOST: 1", "LOST: 2"))
        self.log = folder / "log"
        self.ground.settings = {"environment": ["LOG"], "setup": {"run": [f"echo set up >> {folder}/set-up"]}}
        self.name = self.ground.start(PLAN)
        self.program = folder / "claude"
        self.program.write_text(
            f"#!/bin/sh\nLOG={self.log}\n" + AGENT.replace("FRESH", fresh).replace("RESUMED", resumed)
        )
        self.program.chmod(0o755)

    def drive(self, kind: type[Engine] = Engine) -> Any:
        roster = Roster(f"scripted:{self.ground.script}", {"implementer": f"claude:program={self.program}"})
        return kind(tenuto.open(str(self.ground.root)), self.name, roster, self.ground.settings).drive()

    @property
    def places(self) -> list[str]:
        return self.log.read_text().split()


def test_a_lost_attempt_goes_on_in_its_tree_and_all_of_it_is_merged(tmp_path: Path) -> None:
    at_work = Interrupted(tmp_path, LOST)
    run = at_work.drive()
    assert run["status"] == "completed" and run["attempts"][SECOND]["summary"] == "went on"
    assert len(set(at_work.places)) == 1 and len(at_work.places) == 2, "in the same work tree"
    assert merges(at_work.ground) == ["01-a"]
    root = at_work.ground.root
    assert (root / "first.txt").read_text() == "half\n" and (root / "second.txt").read_text() == "rest\n"
    assert sorted(run["attempts"][SECOND]["receipt"]["touched"]) == ["first.txt", "second.txt"]
    assert "not merged" not in at_work.ground.git("log", "--format=%s"), (
        "what was kept for the time being is no part of it"
    )
    assert (tmp_path / "set-up").read_text() == "set up\n", "a tree that was set up is not set up again"
    assert look(tenuto.open(str(root))) == [], "the tree and its branch went with the merge"


def test_what_an_earlier_attempt_strayed_to_is_not_merged_with_the_rest(tmp_path: Path) -> None:
    """Who goes on answers for all that was done in the tree, also for what was kept before."""
    at_work = Interrupted(tmp_path, f"mkdir -p docs/feature/x; echo mine > .tenuto/pipelines/small.yaml; {LOST}")
    run = at_work.drive()
    assert run["status"] == "failed" and "outside the boundary" in run["attempts"][SECOND]["summary"]
    assert merges(at_work.ground) == []


def test_a_usage_limit_in_a_tree_is_waited_for_and_then_gone_on_with(tmp_path: Path) -> None:
    at_work = Interrupted(tmp_path, LIMIT)
    assert at_work.drive()["status"] == "parked"
    [tree, branch] = look(tenuto.open(str(at_work.ground.root)))
    assert (tree["kind"], tree["goes"], branch["goes"]) == ("tree", False, False) and "go on" in tree["why"], (
        "tenuto clean leaves it alone"
    )
    with tenuto.open(str(at_work.ground.root)).turn() as turn:
        turn.do(at_work.name, {"do": "Resume", "early": True})
    run = at_work.drive()
    assert run["status"] == "completed" and run["attempts"][SECOND]["summary"] == "went on"
    assert len(set(at_work.places)) == 1 and (at_work.ground.root / "first.txt").exists()


def test_who_had_only_looked_around_goes_on_as_well(tmp_path: Path) -> None:
    at_work = Interrupted(tmp_path, 'kill -9 "$PPID"; sleep 60', "true")
    at_work.program.write_text(
        at_work.program.read_text().replace("[ -e first.txt ] && true", "echo rest > second.txt")
    )
    assert at_work.drive()["attempts"][SECOND]["summary"] == "went on"
    assert len(set(at_work.places)) == 1 and (at_work.ground.root / "second.txt").exists()


def test_killed_before_it_went_on_nothing_is_lost(tmp_path: Path) -> None:
    """The engine dies when the tree is ready and its agent is not started: the next attempt finds what the first one
    left."""
    at_work = Interrupted(tmp_path, LOST)

    class Dies(Engine):
        def launch(self, run: Any, name: str, start: int = 1) -> Ended | None:
            if name == SECOND:
                self.boundary.begin = _dies  # type: ignore[method-assign,assignment]
            return super().launch(run, name, start)

    with pytest.raises(KeyboardInterrupt):
        at_work.drive(Dies)
    run = at_work.drive()
    assert run["attempts"][SECOND]["status"] == "lost" and run["attempts"][THIRD]["summary"] == "went on"
    assert len(set(at_work.places)) == 1 and len(at_work.places) == 2
    assert (at_work.ground.root / "first.txt").exists() and merges(at_work.ground) == ["01-a"]


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_where_the_tree_is_gone_it_starts_over_in_a_fresh_one(tmp_path: Path) -> None:
    at_work = Interrupted(
        tmp_path,
        (
            f"if [ -e {tmp_path}/once ]; then end false 'DONE: from the beginning'; else touch {tmp_path}/once; "
            f"{LIMIT}; fi"
        ),
    )
    assert at_work.drive()["status"] == "parked"
    at_work.ground.git("worktree", "remove", "--force", at_work.places[0])
    with tenuto.open(str(at_work.ground.root)).turn() as turn:
        turn.do(at_work.name, {"do": "Resume", "early": True})
    assert at_work.drive()["attempts"][SECOND]["summary"] == "from the beginning"
    assert len(set(at_work.places)) == 2


def test_when_nobody_goes_on_the_tree_may_be_cleaned_away(tmp_path: Path) -> None:
    at_work = Interrupted(tmp_path, LIMIT)
    at_work.drive()
    workspace = tenuto.open(str(at_work.ground.root))
    with workspace.turn() as turn:
        turn.do(at_work.name, {"do": "Cancel", "reason": ""})
    assert [(one["kind"], one["goes"]) for one in look(workspace)] == [("tree", True), ("branch", False)], (
        "its work is on the branch"
    )
