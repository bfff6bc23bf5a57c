"""A person has looked at what a test's repository brings that would run: the real record, in the tests' own home."""

from __future__ import annotations

from pathlib import Path

from tenuto.workspace.trust import of_repository, say_so
from tenuto.workspace.workspace import open_workspace


def trust(root: str | Path) -> None:
    """As it is now; what changes afterwards is asked for again."""
    workspace = open_workspace(str(root))
    say_so(workspace, of_repository(workspace.root))
    workspace.journal.close()
