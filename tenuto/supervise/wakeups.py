"""Everything a supervisor waits for, in one wait: a child's end, a cancel, a descriptor, a time.

The handlers are in place before the claim is made: from then on SIGTERM means cancel, and
never the default, which would lose the attempt.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal


class Wakeups:
    def __init__(self) -> None:
        self.cancelled = False
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._readable, False)
        os.set_blocking(self._writable, False)
        signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, self._cancel)
        signal.signal(signal.SIGINT, self._cancel)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _cancel(self, number: int, frame: object) -> None:
        self.cancelled = True

    def wait(self, seconds: float, descriptors: Iterable[int] = ()) -> None:
        """Until a signal came, one of the descriptors is readable, or the time is over."""
        poll = select.poll()
        for descriptor in (self._readable, *descriptors):
            poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)
        try:
            while os.read(self._readable, 4096):
                pass
        except BlockingIOError:
            pass
