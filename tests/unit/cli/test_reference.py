"""The page about the command line is what the commands say of themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/reference/cli.md"


def test_the_page_is_up_to_date() -> None:
    """After a change of a command: docs/reference/write-cli"""
    script = [sys.executable, str(ROOT / "docs/reference/write-cli"), "--print"]
    made = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    assert made == PAGE.read_text(), "run: docs/reference/write-cli"
