"""A repository and its one feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tenuto


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / ".feature-state.json"

    @property
    def workspace(self) -> Any:
        """Opened anew: what a later process sees."""
        return tenuto.open(str(self.root))

    @property
    def feature(self) -> Any:
        return self.workspace.feature_state

    @property
    def state(self) -> Any:
        return json.loads(self.file.read_text())

    def write(self, state: Any) -> None:
        self.file.write_text(state if isinstance(state, str) else json.dumps(state))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def started(repository: Repository) -> Repository:
    repository.feature.start("OAuth login", "Let people sign in with their provider", skip=["discovery"])
    return repository
