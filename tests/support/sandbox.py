"""A place to try attempts in: a pool of slots, attempt directories, and an ear for what agents say."""

from __future__ import annotations

import os
import select
import sys
import time

from tenuto.supervise import attempts, processes
from tests.support import crashing, rogues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from tenuto.supervise.processes import Process
    from tenuto.supervise.records import Result, Spec, Status

DEADLINE = 300.0  # for what must happen; reaching it is a failure, never a result


class Sandbox:
    def __init__(self, root: str, cap: int = 4, prefix: str | None = None) -> None:
        """A new sandbox; with a prefix, the sandbox that is already there, shared with whoever made it."""
        self.root = os.path.join(root, "attempts")
        self.pool = os.path.join(root, "slots")
        self.work = os.path.join(root, "work")
        self.fifo = os.path.join(root, "fifo")
        self.gate = os.path.join(root, "gate")
        self.cap = cap
        self.shared = prefix is not None
        # Attempts of other sandboxes on this machine must not be mistaken for ours.
        self.prefix = prefix or f"y{os.urandom(4).hex()}-"
        if not self.shared:
            for directory in (self.root, self.work):
                os.makedirs(directory)
            os.mkfifo(self.fifo)
            os.mkfifo(self.gate)
        self._ear = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._gate = os.open(self.gate, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever a failed test left behind must not outlive it."""
        if not self.shared:
            for process in processes.table().values():
                if self._is_ours(process):
                    processes.send(process, 9)
            self.await_supervisors()
            attempts.sweep(self.root)
        os.close(self._ear)
        os.close(self._gate)
        attempts.collect_ended()

    def pause(self, who: str = "pause") -> str:
        """The action that stops a process until `go_on`, and says so where `hear` listens."""
        try:
            os.read(self._gate, 4096)  # a word to go on that nobody was left to hear
        except BlockingIOError:
            pass
        return f"{who}:{self.fifo}:{self.gate}"

    def go_on(self) -> None:
        os.write(self._gate, b".")

    def directory(self, name: str) -> str:
        return os.path.join(self.root, self.prefix + name)

    def spec(self, name: str, argv: list[str], **changes: Any) -> Spec:
        made: Spec = {
            "attempt": self.prefix + name,
            "argv": argv,
            "cwd": self.work,
            "stdin": None,
            "env": {},
            "limit": DEADLINE,
            "grace": 0.2,
            "output_cap": 1 << 16,
            "pool": self.pool,
            "cap": self.cap,
        }
        return {**made, **changes}  # type: ignore[typeddict-item]

    def launch(self, name: str, argv: list[str], **changes: Any) -> str:
        attempts.launch(self.directory(name), self.spec(name, argv, **changes))
        return self.directory(name)

    def launch_rogue(self, name: str, kind: str, *arguments: str, **changes: Any) -> str:
        return self.launch(name, rogues.command(kind, self.fifo, *arguments), **changes)

    def launch_to_crash(self, name: str, action: str, line: int, argv: list[str], **changes: Any) -> str:
        """Like launch, with a supervisor to which this happens before this line of its own (crashing.py)."""
        directory = self.directory(name)
        spec = self.spec(name, argv, **changes)
        attempts.prepare(directory, spec)
        folder = os.path.dirname(attempts.__file__)
        command = crashing.command(action, line, folder, "tenuto.supervise.supervisor", "main", directory)
        attempts.start_supervisor(directory, spec["env"], command)
        return directory

    def claimed(self, directory: str) -> Status:
        """Wait until a supervisor has claimed it."""
        watch = processes.watch_new_names([directory])
        try:
            while (status := attempts.inspect(directory))["state"] == "launching":
                if not ready([watch], DEADLINE):
                    raise TimeoutError(f"nobody claims it: {status}")
                os.read(watch, 4096)
        finally:
            os.close(watch)
        return status

    def rest(self, *directories: str) -> list[Status]:
        """Wait until all of them have come to rest."""
        waiting = list(directories)
        while waiting:
            resting = attempts.wait_any(waiting, DEADLINE)
            if not resting:
                raise TimeoutError(f"still under way: {[attempts.inspect(path) for path in waiting]}")
            waiting = [path for path in waiting if path not in resting]
        return [attempts.inspect(path) for path in directories]

    def result(self, directory: str) -> Result:
        status = self.rest(directory)[0]
        if "result" not in status:
            with open(os.path.join(directory, "supervisor.log")) as log:
                raise LookupError(f"no result: {status}\n{log.read()}")
        return status["result"]

    def latest_supervisor(self) -> int:
        return attempts._started[-1].pid

    def await_supervisors(self) -> None:
        """Until every supervisor that this process started has ended, those that lost the claim, too."""
        for process in list(attempts._started):
            await_end(process.pid)
        attempts.collect_ended()

    def hear(self, within: float = DEADLINE) -> tuple[str, Process]:
        """The next thing an agent says: its name for the process, and the process."""
        said = self.hear_or_end(None, within)
        if said is None:
            raise TimeoutError("no agent said anything")
        return said

    def hear_or_end(self, supervisor: int | None, within: float = DEADLINE) -> tuple[str, Process] | None:
        """The next thing said; None where there was nothing in time, or before this process ended."""
        ended = []
        if supervisor is not None:
            try:
                ended = [os.pidfd_open(supervisor)]
            except ProcessLookupError:  # somebody has seen its end already
                within = 0.0
        deadline = time.monotonic() + within
        try:
            while b"\n" not in self._heard:
                left = max(0.0, deadline - time.monotonic())
                if self._ear not in ready([self._ear, *ended], left):
                    return None
                self._heard += os.read(self._ear, 4096)
        finally:
            for descriptor in ended:
                os.close(descriptor)
        line, _, self._heard = self._heard.partition(b"\n")
        name, pid = line.decode().split()
        gone = processes.Process(int(pid), 0, "X", "gone", name)
        return name, processes.look(int(pid)) or gone

    def alive(self) -> list[Process]:
        """Every process that carries one of this sandbox's marks, wherever it has gone."""
        return [process for process in processes.table().values() if self._is_marked(process)]

    def is_held(self) -> bool:
        """Does one of those that always flee live? No walk finds them for sure; the lock that they hand on does."""
        import fcntl

        descriptor = os.open(self.fifo, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _is_marked(self, process: Process) -> bool:
        return not process.dead and (processes.mark_of(process.pid) or "").startswith(self.prefix)

    def _is_ours(self, process: Process) -> bool:
        """Marked, or started with a path of this sandbox: supervisors, and rogues that threw their mark away."""
        try:
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                named = os.path.dirname(self.root).encode() + b"/" in file.read()
        except OSError:
            named = False
        return self._is_marked(process) or (named and process.pid != os.getpid())


def lives(process: Process) -> bool:
    now = processes.look(process.pid)
    return now is not None and now.start == process.start and not now.dead


def ready(descriptors: list[int], seconds: float) -> list[int]:
    """Which of them have something to say, within so long. select() would know only the first 1,024 of a process."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]


def await_end(pid: int) -> None:
    """Until this process has ended; it need not be a child of ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = ready([descriptor], DEADLINE)
    os.close(descriptor)
    if not ended:
        raise TimeoutError(f"process {pid} does not end")


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", source, *arguments]
