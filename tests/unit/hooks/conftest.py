"""A repository with a feature in it, the captured payloads of four programs, and a hook as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads
from tenuto.hooks.call import answer
from tenuto.hooks.parse import parse_hook

PAYLOADS = Path(__file__).resolve().parents[2] / "data" / "payloads"
SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"  # of most payloads of Claude Code 2.1.325


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = tenuto.open(str(root))

    @property
    def feature(self) -> Any:
        return self.workspace.feature_state

    @property
    def state(self) -> Any:
        return json.loads((self.root / ".feature-state.json").read_text())

    def run(self, name: str = "oauth-login") -> Any:
        return self.workspace.load(name)

    def payload(self, name: str, **changes: Any) -> Any:
        text = (PAYLOADS / f"{name}.json").read_text().replace("$PROJECT", str(self.root))
        return json.loads(text)["stdin"] | changes

    def hook(self, event: str, payload: Any) -> Any:
        """What the hook answers: None, an object, or text."""
        said = answer(tenuto.open(str(self.root)), parse_hook(event, payload))
        return None if not said else loads(said) if said.startswith("{") else said

    def replay(self, name: str, **changes: Any) -> Any:
        return self.hook(name.rpartition("/")[2].partition(".")[0], self.payload(name, **changes))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def started(repository: Repository) -> Repository:
    """With a feature that Claude Code's session works on."""
    repository.feature.start("OAuth login", "Let people sign in with their provider", session=SESSION)
    return repository


Replay = Callable[..., Any]
