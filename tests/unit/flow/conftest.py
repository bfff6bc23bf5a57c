"""A repository and its one workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tenuto


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = "TICKET-123"

    @property
    def file(self) -> Path:
        return self.root / ".ai-workspace" / self.folder / "flow-state.json"

    @property
    def workspace(self) -> Any:
        """Opened anew: what a later process sees."""
        return tenuto.open(str(self.root))

    @property
    def flow(self) -> Any:
        return self.workspace.flow

    @property
    def state(self) -> Any:
        return json.loads(self.file.read_text())

    def write(self, state: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(state if isinstance(state, str) else json.dumps(state, indent=2))

    def edit(self, **changes: Any) -> None:
        self.write({**self.state, **changes})

    def work(self, agent: str, task: str = "", **fields: Any) -> Any:
        """Delegated and completed."""
        self.flow.update_delegation(agent=agent, task=task)
        return self.flow.update_completion(agent=agent, task=task, **fields)

    def go_to(self, phase: str) -> None:
        while self.state["phase"] != phase:
            self.flow.update_user_checkpoint(phase=self.state["phase"], approved=True)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def started(repository: Repository) -> Repository:
    repository.flow.initialize_workflow("TICKET-123", context_summary="Working on TICKET-123")
    return repository
