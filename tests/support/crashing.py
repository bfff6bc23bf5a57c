"""Run a function in a process to which something happens before a chosen line:

    python -I -S .../crashing.py ACTION LINE FOLDER MODULE FUNCTION [ARGUMENT...]

    kill               SIGKILL to itself
    cancel             SIGTERM to itself
    pause:EAR:GATE     tell the FIFO EAR "paused PID", then wait for a byte from the FIFO GATE
    pause-child:...    the same, in a child that it forks

LINE counts the lines of FOLDER's modules as they are executed, each of them once. A run that
reaches its end writes its number of lines to standard error. So death before each line can be
tried, one after the other, and the code under test holds no hook for it: nothing an agent
could set makes a real process crash.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


def command(action: str, line: int, folder: str, module: str, function: str, *arguments: str) -> list[str]:
    start = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    return [*start, action, str(line), os.path.abspath(folder), module, function, *arguments]


def run(action: str, line: int, folder: str, module: str, function: str, *arguments: str) -> int:
    call = getattr(__import__(module, fromlist=[function]), function)
    own = os.getpid()
    in_child = action.startswith("pause-child")
    seen: dict[int, set[tuple[str, int]]] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(folder):
            return None
        pid = os.getpid()
        if event == "line" and (pid != own) == in_child:
            lines = seen.setdefault(pid, set())
            before = len(lines)
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            if before < len(lines) == line:
                _act(action)
        return trace

    sys.settrace(trace)
    try:
        code: int = call(*arguments)
    finally:
        sys.settrace(None)
    sys.stderr.write(f"reached its end after {len(seen.get(own, ()))} lines\n")
    sys.stderr.flush()
    return code


def _act(action: str) -> None:
    kind, *fifos = action.split(":")
    if kind == "kill":
        os.kill(os.getpid(), 9)
    elif kind == "cancel":
        os.kill(os.getpid(), 15)
    else:
        ear, gate = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in fifos)
        os.write(ear, f"paused {os.getpid()}\n".encode())
        os.read(gate, 1)
        os.close(ear)
        os.close(gate)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    os._exit(run(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
