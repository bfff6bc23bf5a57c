"""A repository and its one staged task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.views.staged_document import OUTPUTS

APPROVED: Any = {"status": "approved", "issues": [], "summary": "All checks passed."}
REJECTED: Any = {"status": "needs_revision", "issues": [{"severity": "HIGH", "issue": "no"}]}


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / ".agents/tmp/state.json"
        self.left = root / ".agents/tmp/state.json.tmp"
        self.phases = root / ".agents/tmp/phases"

    @property
    def workspace(self) -> Any:
        """Opened anew: what a later process sees."""
        return tenuto.open(str(self.root))

    @property
    def staged(self) -> Any:
        return self.workspace.staged

    @property
    def state(self) -> Any:
        return json.loads(self.file.read_text())

    def write(self, state: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(state if isinstance(state, str) else json.dumps(state, indent=2) + "\n")

    def edit(self, **changes: Any) -> Any:
        """Another program rewrites the file."""
        self.write({**self.state, **changes})

    def output(self, phase: str, content: Any = None) -> Any:
        kind = APPROVED if "review" in OUTPUTS[phase] else {"done": True}
        return self.staged.record_output(phase, content or (kind if OUTPUTS[phase].endswith(".json") else "# text\n"))

    def go_to(self, phase: str) -> None:
        """Every phase on the way leaves its output and is left."""
        while (here := self.state["currentPhase"]) != phase:
            self.output(here)
            assert self.staged.advance()["advanced"], here

    def types(self) -> list[str]:
        workspace = self.workspace
        with workspace.journal.read() as reader:
            owner = reader.load_repo()["owners"][".agents/tmp/state.json"]
            return [event["type"] for event in reader.events(owner)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def started(repository: Repository) -> Repository:
    repository.staged.init("Add dark mode", ownerPpid="1")
    return repository
