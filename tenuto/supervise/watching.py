"""Sleep until an attempt has come to rest, whoever started it.

A finished attempt shows a new file in its directory (inotify); a killed supervisor shows its
end (pidfd). Where both exist, all that is looked at every now and then is whether a supervisor was
stopped (its agent can do that): it holds no time limit then, and is told to go on. Elsewhere the
directories are looked at, too.
"""

from __future__ import annotations

import os
import select
import signal
import time

from tenuto.supervise import attempts, identity, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.supervise.shapes import Status

_UNDER_WAY = ("launching", "queued", "running")
_LOOK_AGAIN = 0.05
_WAKE_AGAIN = 2.0


def wait_any(directories: Sequence[str], timeout: float | None = None) -> list[str]:
    """Those of the attempts that are not under way, as soon as there is one; none when the time is over.

    Not under way is finished, lost, void, absent, and launching with nobody left to go on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    watch = _watch(directories)
    try:
        while True:
            attempts.collect_ended()
            found = [attempts.inspect(directory) for directory in directories]
            resting = [path for path, status in zip(directories, found, strict=True) if _rests(status)]
            left = None if deadline is None else deadline - time.monotonic()
            if resting or not found or (left is not None and left <= 0):
                return resting
            _wake(found)
            _sleep(watch, found, _WAKE_AGAIN if left is None else min(left, _WAKE_AGAIN))
    finally:
        if watch is not None:
            os.close(watch)


def _rests(status: Status) -> bool:
    return status["state"] not in _UNDER_WAY or status.get("stalled", False)


def _wake(found: Sequence[Status]) -> None:
    for status in found:
        supervisor = status.get("supervisor")
        descriptor = identity.open_pidfd(supervisor) if supervisor is not None else None
        if supervisor is None or descriptor is None:
            continue
        try:
            process = identity.look(supervisor["pid"])
            if process is not None and process.state == "T":
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        except OSError:
            pass  # it ended a moment ago
        finally:
            os.close(descriptor)


def _watch(directories: Sequence[str]) -> int | None:
    try:
        return kernel.watch_new_names([directory for directory in directories if os.path.isdir(directory)])
    except OSError:
        return None


def _sleep(watch: int | None, found: Sequence[Status], left: float | None) -> None:
    """Until a directory or a supervisor shows something new, or the time is over."""
    poll = select.poll()
    opened: list[int] = []
    blind = watch is None
    if watch is not None:
        poll.register(watch, select.POLLIN)
    for status in found:
        supervisor = status.get("supervisor")
        descriptor = identity.open_pidfd(supervisor) if supervisor is not None else None
        if descriptor is None:
            blind = True  # it ended a moment ago, or cannot be watched from here
        else:
            opened.append(descriptor)
            poll.register(descriptor, select.POLLIN)
    if blind:
        left = _LOOK_AGAIN if left is None else min(left, _LOOK_AGAIN)
    try:
        poll.poll(None if left is None else max(0.0, left) * 1000)
        if watch is not None:
            _drain(watch)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _drain(watch: int) -> None:
    try:
        while os.read(watch, 1 << 16):
            pass
    except BlockingIOError:
        pass
