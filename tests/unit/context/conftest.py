"""A repository with a settable clock, and the command language as a function: text in, printed block out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core.times import iso
from tenuto.dialects.context.commands import perform, render_answer, render_error
from tenuto.dialects.context.language import parse, split

START = 1_763_194_331_000
TASKS = "docs/orchestrator/context/tasks"


class Repository:
    def __init__(self, root: Path) -> None:
        (root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
        self.root = root
        self.now = START
        self.workspace = tenuto.open(str(root), clock=lambda: iso(self.now), by="ada")

    @property
    def context(self) -> Any:
        return self.workspace.context

    @property
    def time(self) -> str:
        return iso(self.now)

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    def ask(self, text: str) -> Any:
        """The record of the last command of a text."""
        for command in split(text) or [""]:
            record = perform(self.context, parse(command))
        return record

    def say(self, text: str) -> str:
        """What is printed for the last command of a text."""
        try:
            return render_answer(self.ask(text))
        except tenuto.TenutoError as error:
            return render_error(error.message)

    def must(self, *texts: str) -> None:
        for text in texts:
            said = self.say(text)
            assert not said.startswith("STATUS: error"), (text, said)

    def warnings(self) -> list[str]:
        said, self.workspace.warnings[:] = list(self.workspace.warnings), []
        return said

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def manifest(self, slug: str = "my-feature") -> Any:
        return json.loads(self.read(f"{TASKS}/{slug}/manifest.json"))

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def edit(self, slug: str = "my-feature", **changes: Any) -> None:
        """Somebody changes keys of a manifest by hand."""
        told = self.manifest(slug)
        told.update(changes)
        self.write(f"{TASKS}/{slug}/manifest.json", json.dumps(told, indent=2))

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def error(text: str) -> str:
    return f"STATUS: error\nERROR: {text}"
