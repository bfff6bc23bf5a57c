"""Which run a hook is about: its session's, else its work tree's, else the only one, else none."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.hooks.parse import find_run, parse_hook


def begin(workspace: Any, name: str, session: str = "", tree: str = "") -> None:
    with workspace.turn() as turn:
        turn.do(
            name,
            {
                "do": "StartRun",
                "run": name,
                "name": name,
                "pipeline": {"name": "x", "hash": None},
                "dialects": {"feature_docs": {"tree": tree}} if tree else {},
            },
        )
        if session:
            turn.bind(name, session)


def found(workspace: Any, session: str = "", **more: Any) -> str | None:
    with workspace.journal.read() as reader:
        return find_run(reader, workspace, parse_hook("Stop", {"session_id": session, "cwd": "/", **more}))


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    return tenuto.open(str(tmp_path))


def test_without_a_run_nothing_is_found(workspace: Any) -> None:
    begin(workspace, "over")
    with workspace.turn() as turn:
        turn.do("over", {"do": "Cancel"})
    assert found(workspace, "s") is None


def test_a_session_finds_its_own_run_among_many(workspace: Any) -> None:
    for name in ("one", "two", "three"):
        begin(workspace, name, f"session-{name}")
    assert found(workspace, "session-two") == "two"
    assert found(workspace, "agent-of-its-own", parent_agent_id="session-three") == "three"


def test_a_stranger_finds_the_only_run(workspace: Any) -> None:
    begin(workspace, "one", "s1")
    assert found(workspace, "stranger") == "one"


def test_a_stranger_among_several_finds_none(workspace: Any) -> None:
    begin(workspace, "one", "s1")
    begin(workspace, "two", "s2")
    assert found(workspace, "stranger") is None


def test_of_several_the_chosen_one_counts(workspace: Any) -> None:
    begin(workspace, "one")
    begin(workspace, "two")
    with workspace.turn() as turn:
        turn.do_repo({"do": "MakeCurrent", "run": "two"})
    assert found(workspace, "stranger") == "two"


def test_a_session_whose_run_has_ended_goes_on_with_the_next(workspace: Any) -> None:
    begin(workspace, "one", "s")
    with workspace.turn() as turn:
        turn.do("one", {"do": "Finish"})
    begin(workspace, "two")
    assert found(workspace, "s") == "two"


def test_each_work_tree_has_its_own_run(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    for words in (
        ["init", "-q", str(main)],
        ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"],
        ["-C", str(main), "worktree", "add", "-q", str(linked)],
    ):
        subprocess.run(["git", *words], check=True)
    here, there = tenuto.open(str(main)), tenuto.open(str(linked))
    here.feature_state.start("In the main tree")
    there.feature_state.start("In the linked tree")
    assert found(here, "stranger") == "in-the-main-tree"
    assert found(there, "stranger") == "in-the-linked-tree"
    assert (main / ".feature-state.json").exists()
    assert (linked / ".feature-state.json").exists()
