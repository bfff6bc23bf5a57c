"""A process with the mark of an attempt, as an agent has it."""

from __future__ import annotations

import subprocess

from tenuto.supervise import processes


def marked(attempt: str) -> subprocess.Popen[bytes]:
    """It has answered: a moment after it was started, the kernel shows nobody its environment yet."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={processes.MARK: attempt})
    assert child.stdin and child.stdout
    child.stdin.write(b"here\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"here\n"
    return child
