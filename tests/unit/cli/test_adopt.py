"""`tenuto adopt`: what was here before goes on; what belongs to somebody else is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.flow.test_adoption import SEED
from tests.unit.staged.test_adoption import ADOPTED

FEATURE: Any = {
    "currentFeature": {
        "name": "oauth-login",
        "description": "Sign in",
        "phase": "spec",
        "startedAt": "2025-01-01T00:00:00Z",
    },
    "phases": {"discovery": "completed", "spec": "in_progress"},
    "tasks": [],
}
FILES: Any = {
    ".ai-workspace/TICKET-123/flow-state.json": SEED,
    ".agents/tmp/state.json": ADOPTED,
    ".feature-state.json": FEATURE,
    "docs/orchestrator/context/tasks/dark-mode/manifest.json": {
        "name": "Dark mode",
        "mode": "standard",
        "workflow": "orchestrate",
        "status": "running",
        "created_at": "2025-01-01T00:00:00Z",
    },
    "docs/orchestrator/context/tasks/old-one/metadata.json": {"name": "Old one", "status": "in-progress"},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root: Path, files: Any) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content if isinstance(content, str) else json.dumps(content))


def test_every_kind_of_file_becomes_a_run_and_a_second_time_is_known(here: Path, say: Callable[..., Any]) -> None:
    write(here, FILES)
    rows = say("adopt", "--json").data["files"]
    assert {row["path"]: row["state"] for row in rows} == dict.fromkeys(FILES, "adopted")
    listed = {run["id"]: run["status"] for run in say("list", "--json").data["runs"]}
    assert {row["run"] for row in rows} == set(listed)
    assert listed["ticket-123"] == "running" and listed["rework-the-login"] == "running"
    assert {row["state"] for row in say("adopt", "--json").data["files"]} == {"known"}


def test_a_look_changes_no_file_and_makes_no_run(here: Path, say: Callable[..., Any]) -> None:
    write(here, FILES)
    before = {path: (here / path).read_bytes() for path in FILES}
    assert {row["state"] for row in say("adopt", "--look", "--json").data["files"]} == {"adoptable"}
    assert {path: (here / path).read_bytes() for path in FILES} == before
    assert say("list", "--json").data["runs"] == []


def test_files_of_other_tools_are_refused_by_name_and_the_rest_is_adopted(here: Path, say: Callable[..., Any]) -> None:
    strangers: Any = {
        ".agents/tmp/state.json": {"version": 4, "terraform_version": "1.5.0", "resources": []},
        ".feature-state.json": {"flags": {"beta": True}},
        ".ai-workspace/other/flow-state.json": "not json",
    }
    write(here, strangers | {".ai-workspace/TICKET-123/flow-state.json": SEED})
    before = {path: (here / path).read_bytes() for path in strangers}
    said = say("adopt", "--json")
    assert said.status == 1
    states = {row["path"]: row["state"] for row in said.data["files"]}
    assert states == dict.fromkeys(strangers, "refused") | {".ai-workspace/TICKET-123/flow-state.json": "adopted"}
    for row in said.data["files"]:
        if row["state"] == "refused":
            assert row["path"] in row["message"]
    assert {path: (here / path).read_bytes() for path in strangers} == before


def test_one_file_can_be_named_and_anything_else_is_a_usage_error(here: Path, say: Callable[..., Any]) -> None:
    write(here, FILES | {"state.json": ADOPTED})
    assert [row["path"] for row in say("adopt", ".agents/tmp/state.json", "--json").data["files"]] == [
        ".agents/tmp/state.json"
    ]
    assert say("adopt", "state.json", "--json").error["code"] == "not-a-state-file"
    assert say("adopt", ".ai-workspace/NONE-1/flow-state.json", "--json").data["files"][0]["code"] == "no-such-file"


def test_nothing_to_adopt_is_said(here: Path, say: Callable[..., Any]) -> None:
    said = say("adopt")
    assert said.status == 0 and "nothing to adopt" in said.out
