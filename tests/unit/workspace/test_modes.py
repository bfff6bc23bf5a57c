"""Who may read a state file is its owner's choice, and stays so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tenuto


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_keeps_its_mode_whatever_the_umask_of_its_next_writer(tmp_path: Path, mode: int, umask: int) -> None:
    (tmp_path / ".git" / "tenuto").mkdir(parents=True)
    workspace = tenuto.open(str(tmp_path))
    workspace.context.init("Dark mode")
    manifest = tmp_path / "docs/orchestrator/context/tasks/dark-mode/manifest.json"
    manifest.chmod(mode)
    before = manifest.read_text()
    usual = os.umask(umask)
    try:
        with workspace.turn() as turn:
            turn.do("dark-mode", {"do": "StartStep", "step": "architect"})
    finally:
        os.umask(usual)
    assert manifest.read_text() != before
    assert manifest.stat().st_mode & 0o777 == mode
