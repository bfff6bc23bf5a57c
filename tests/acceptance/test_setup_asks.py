"""At a terminal `tenuto setup` shows what would change and asks; no is the answer unless somebody says yes."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest


def answered(word: bytes, home: Path) -> tuple[int, str]:
    """`tenuto setup gemini` at a terminal of its own, with this word typed when it asks."""
    terminal, other = pty.openpty()
    around = {**os.environ, "HOME": str(home), "TERM": "dumb"}
    program = subprocess.Popen(
        [sys.executable, "-m", "tenuto", "setup", "gemini"],
        stdin=other,
        stdout=other,
        stderr=other,
        env=around,
        cwd=home,
    )
    os.close(other)
    seen, typed = b"", False
    ready = select.poll()  # select() knows no file above number 1023
    ready.register(terminal, select.POLLIN)
    while ready.poll(300_000):
        try:
            seen += os.read(terminal, 1 << 16)
        except OSError:
            break  # it has ended
        if not typed and b"change this?" in seen:
            os.write(terminal, word + b"\n")
            typed = True
    os.close(terminal)
    return program.wait(), seen.decode()


@pytest.mark.parametrize(("word", "done"), [(b"", False), (b"n", False), (b"y", True)])
def test_it_asks(word: bytes, done: bool, tmp_path: Path) -> None:
    status, seen = answered(word, tmp_path)
    assert status == 0
    assert "+++ " in seen and "BeforeTool" in seen
    assert ("not made" in seen) is not done
    assert (tmp_path / ".gemini/settings.json").exists() is done
