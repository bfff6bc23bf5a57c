"""A program at a terminal of its own, which is its controlling terminal: Ctrl-C reaches it.

`pty.fork` would fork the process that runs the tests, which has several threads.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

# The leader of a session gets the terminal that it opens first.
_TAKE = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"


def start_at_terminal(
    words: list[str], cwd: Path | None = None, env: dict[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], int]:
    """The program, and our end of its terminal."""
    ours, its = pty.openpty()
    command = [sys.executable, "-I", "-S", "-c", _TAKE, *words]
    program = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, start_new_session=True, cwd=cwd, env=env, close_fds=True
    )
    os.close(its)
    return program, ours
