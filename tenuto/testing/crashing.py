"""Run a function in a process that kills itself with SIGKILL before a chosen line:

    python -I -S .../crashing.py LINE FOLDER MODULE FUNCTION [ARGUMENT...]

LINE counts the lines of FOLDER's modules as they are executed, each of them once. Line 0 never
comes. A run that reaches its end writes its number of lines to standard error. So death
before each line can be tried, one after the other, and the code under test holds no hook for
it: nothing an agent could set makes a real process crash.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


def command(line: int, folder: str, module: str, function: str, *arguments: str) -> list[str]:
    here = os.path.abspath(__file__)
    return [sys.executable, "-I", "-S", here, str(line), os.path.abspath(folder), module, function, *arguments]


def run(line: int, folder: str, module: str, function: str, *arguments: str) -> int:
    call = getattr(__import__(module, fromlist=[function]), function)
    own = os.getpid()
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(folder):
            return None
        if event == "line" and os.getpid() == own:  # a forked child is not the process under test
            before = len(seen)
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            if before < len(seen) == line:
                os.kill(own, 9)
        return trace

    sys.settrace(trace)
    try:
        code: int = call(*arguments)
    finally:
        sys.settrace(None)
    sys.stderr.write(f"reached its end after {len(seen)} lines\n")
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    os._exit(run(int(sys.argv[1]), *sys.argv[2:]))
