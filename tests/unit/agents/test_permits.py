"""An agent that asks first gets an answer by rule; what cannot be shown to stay inside is rejected."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.agents.acp_program import PERMITS, allowed, choose, inside

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other", None, 7)


def edit(*paths: str) -> dict[str, Any]:
    return {"kind": "edit", "locations": [{"path": path} for path in paths]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "src").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    os.symlink(tmp_path / "other", place / "way-out")
    return place


@pytest.mark.parametrize("path", ["src/a.py", "src/../new/b.py", "."])
def test_edits_below_the_work_directory_are_allowed(root: Path, path: str) -> None:
    assert allowed("edits", edit(path), str(root))
    assert allowed("edits", edit(str(root / path)), str(root))


@pytest.mark.parametrize(
    "path",
    [
        "../other/a",
        "/etc/passwd",
        "way-out/a",
        "src/../../x",
        ".git/config",
        "sub/.git/hooks/x",
        ".GIT/x",
        ".tenuto/config.yaml",
        "a\0b",
    ],
)
def test_whatever_leads_out_or_into_the_repository_s_own_folders_is_rejected(root: Path, path: str) -> None:
    assert not allowed("edits", edit("src/a.py", path), str(root))
    assert inside(path, str(root)) is None


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "edit"},
        {"kind": "edit", "locations": "everywhere", "rawInput": ["x"]},
        {"kind": "execute", "rawInput": {"command": "ls"}},
        {"kind": "fetch"},
        {"kind": "switch_mode"},
        {"kind": "edit", "locations": [{"path": "src/a"}], "content": [{"type": "diff", "path": "/etc/passwd"}]},
        {"kind": "edit", "locations": [{"path": "src/a"}], "rawInput": {"file_path": "/etc/passwd"}},
        {"kind": "edit", "rawInput": {"changes": {"src/a": {}, "/etc/passwd": {}}}},
        {"kind": "read", "locations": [{"path": "/etc/passwd"}]},
        {},
    ],
)
def test_what_names_no_path_or_a_foreign_one_anywhere_is_rejected(root: Path, call: dict[str, Any]) -> None:
    assert not allowed("edits", call, str(root))


def test_looking_around_is_allowed_with_edits(root: Path) -> None:
    assert allowed("edits", {"kind": "search"}, str(root))
    assert allowed("edits", {"kind": "read", "locations": [{"path": "src"}]}, str(root))


@given(st.sampled_from(KINDS), st.lists(st.text(max_size=8), max_size=3), st.sampled_from(PERMITS))
def test_all_allows_everything_and_none_nothing(kind: Any, paths: list[str], permit: str) -> None:
    call = {**edit(*paths), "kind": kind}
    answer = allowed(permit, call, "/nowhere")
    assert answer == {"all": True, "none": False}.get(permit, answer)


def offer(*kinds: str) -> list[dict[str, str]]:
    return [{"optionId": f"the-{kind}", "kind": kind, "name": kind} for kind in kinds]


def test_the_answer_holds_for_this_call_only_where_that_is_offered() -> None:
    every = offer("allow_always", "allow_once", "reject_always", "reject_once")
    assert choose(every, True) == {"outcome": "selected", "optionId": "the-allow_once"}
    assert choose(every, False) == {"outcome": "selected", "optionId": "the-reject_once"}
    assert choose(offer("allow_always"), True) == {"outcome": "selected", "optionId": "the-allow_always"}


@given(st.lists(st.sampled_from(["allow_once", "allow_always", "odd"]), max_size=3))
def test_a_rejection_is_never_answered_with_an_allowance(kinds: list[str]) -> None:
    assert choose(offer(*kinds), False) == {"outcome": "cancelled"}
    assert choose("odd", False) == {"outcome": "cancelled"}
