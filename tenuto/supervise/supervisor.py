"""The process that owns one attempt, from claim to result.

    claim     exactly one supervisor, or a void, ever gets it; without it nothing is started
    queue     until one of the pool's slots is free and proven
    run       the agent in its own session, with its environment and nothing else
    end       at the agent's exit, at the time limit, on SIGTERM, or when its lease is over: the whole tree, not the
              agent
    publish   the result, durably, when nothing of the tree is left
    release   the slot

The tree is empty when waitpid says that there is no child: a subreaper's descendants cannot
leave it. Killed with -9, a supervisor leaves a claim without a result; its agent dies with it,
the rest is ended by the process that wants the slot next (slots.py).

From fork to exec: the supervisor has one thread, so what runs between the two is safe here; elsewhere in Tenuto it
would not be. The agent is told to die with its supervisor, and checks that the supervisor had not died before it could
be told: after a kill -9 there is no moment at which an agent starts with nothing above it.

Waiting: a child's end, a cancel, a descriptor and a time are waited for in one place. The handlers are there before the
claim is made: from then on SIGTERM means cancel, and never the default, which would lose the attempt.

Output: stdout and stderr are files, never pipes, and never longer than their cap. A file cannot block the agent, and a
daemon that holds it open delays nothing. What is over the cap is cut out of the middle: the beginning shows what was
asked, and the end holds the verdict. While the agent writes, the middle's blocks are given back to the file system, so
a flood fills no disk; at the end the file is put together as beginning, marker and end. Output of an agent that was
given secrets is in memory while it runs, and on disk without them (tenuto/secrets.py); where it is cut in the middle,
the half of a value that would stand next to the cut is left out, too.

Everything here is paid once per agent, in time before it starts: no import that can be avoided.
"""

from __future__ import annotations

import fcntl
import os
import select
import time

from tenuto.core.times import iso
from tenuto.encoding import NotJson, loads
from tenuto.supervise import processes, records, slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Mapping
    from typing import NoReturn

    from tenuto.supervise.records import Claim, Hold, Leftover, Result, Started, StoredSpec, Stream
    from tenuto.supervise.slots import Slot
else:
    import _signal as signal


_CHUNK = 1 << 20


class Output:
    def __init__(self, path: str, cap: int) -> None:
        self.path = path
        self._head = cap - cap // 2
        self._tail = cap // 2
        self._cap = cap
        self._given_back = self._head  # up to this offset
        self._lost = 0  # bytes that an old file system could only cut off
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def trim(self) -> None:
        """Give back what will not be kept, once it is worth a call."""
        size = os.fstat(self._descriptor).st_size
        end = size - self._tail
        if end - self._given_back < max(self._cap, 1 << 16):
            return
        try:
            processes.punch(self._descriptor, self._given_back, end - self._given_back)
            self._given_back = end
        except OSError:
            # Writers append, so they go on at the new end; the bytes cut off are counted as well as can be.
            try:
                os.ftruncate(self._descriptor, self._head)
                self._lost += size - self._head
            except OSError:
                pass  # a file that cannot be bounded is no reason to lose the attempt

    def finish(self) -> Stream:
        """Bring the file into its final form, durably. Nothing of the tree writes any more."""
        size = os.fstat(self._descriptor).st_size
        total = size + self._lost
        kept = size
        if total > self._cap or not self._in_place():
            kept = self._compose(size, total)
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        return {"bytes": total, "kept": kept, "truncated": total > self._cap}

    def _in_place(self) -> bool:
        """The agent may have removed or replaced the file under its name."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _compose(self, size: int, total: int) -> int:
        """Write the file anew under its name; the number of the agent's own bytes in it."""
        head, tail = size, 0
        if total > self._cap:
            head, tail = min(self._head, size), min(self._tail, max(0, size - self._head))
        temporary = f"{self.path}.{os.urandom(6).hex()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600)
        try:
            self._copy(descriptor, 0, head)
            if total > self._cap:
                left_out = total - head - tail
                write_all(descriptor, f"\n[tenuto: {left_out} of {total} bytes left out here]\n".encode())
                self._copy(descriptor, size - tail, tail)
            os.rename(temporary, self.path)
        except BaseException:
            os.close(descriptor)
            os.unlink(temporary)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        return head + tail

    def _copy(self, to: int, offset: int, length: int) -> None:
        while length > 0:
            chunk = os.pread(self._descriptor, min(length, _CHUNK), offset)
            if not chunk:
                return
            write_all(to, chunk)
            offset += len(chunk)
            length -= len(chunk)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


NOT_STARTED = 127


def start(
    spec: StoredSpec, environment: Mapping[str, str], directory: str, cgroup: str | None, outputs: list[int]
) -> tuple[int, int]:
    """The agent's pid, and a descriptor that holds the reason where it could not be started.

    `outputs`: what it writes to, where that is not the files in its directory.
    """
    readable, writable = os.pipe()
    supervisor = os.getpid()
    pid = _fork(cgroup)
    if pid == 0:
        _become_agent(spec, environment, directory, supervisor, writable, outputs)
    os.close(writable)
    os.set_blocking(readable, False)
    return pid, readable


def _fork(cgroup: str | None) -> int:
    if cgroup is not None:
        try:
            return slots.fork_into(cgroup)
        except OSError:
            pass  # an older kernel, or a sandbox: the subreaper has to be enough
    return os.fork()


def reason(readable: int) -> str | None:
    """Why the agent never started, None where it did; asked after its end."""
    try:
        text = os.read(readable, 4096)
    except BlockingIOError:
        text = b""
    os.close(readable)
    return text.decode("utf-8", "replace") or None


def _become_agent(
    spec: StoredSpec,
    environment: Mapping[str, str],
    directory: str,
    supervisor: int,
    writable: int,
    outputs: list[int],
) -> NoReturn:
    doing = "start"
    try:
        os.setsid()
        processes.die_with_parent(signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(NOT_STARTED)
        _reset_signals()
        doing = f"read {spec['stdin']!r} for"
        os.dup2(os.open(spec["stdin"] or os.devnull, os.O_RDONLY), 0)
        doing = "write the output of"
        for number, name in ((1, "stdout"), (2, "stderr")):
            held = outputs[number - 1] if outputs else os.open(os.path.join(directory, name), os.O_WRONLY | os.O_APPEND)
            os.dup2(held, number)
        doing = f"use the working directory {spec['cwd']!r} for"
        os.chdir(spec["cwd"])
        doing = "start"
        os.execvpe(spec["argv"][0], spec["argv"], environment)
    except (OSError, ValueError) as problem:
        text = problem.strerror if isinstance(problem, OSError) else str(problem)
        os.write(writable, f"cannot {doing} {spec['argv'][0]!r}: {text}".encode("utf-8", "replace")[:4000])
    finally:
        os._exit(NOT_STARTED)


def _reset_signals() -> None:
    """Handlers vanish with exec, ignored signals would stay ignored: Python ignores SIGPIPE, agents must not."""
    for number in signal.valid_signals():
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)


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


LEFTOVER_GRACE = 0.25  # for what outlived its agent: the agent is done, nobody waits for these
PATIENCE = 5.0  # after SIGKILL, before the result is published without what cannot be ended
_LOOK_AT_OUTPUT = 0.1
_TRIES_TO_PUBLISH = 60
_LATE = 2.0  # seconds after its limit, at which an agent that ended may be found on a busy machine
_NOTHING: Stream = {"bytes": 0, "kept": 0, "truncated": False}


def main(directory: str) -> int:
    environment = _read_environment()
    spec: StoredSpec | None = records.read(os.path.join(directory, "spec.json"))
    if environment is None or spec is None or sorted(environment) != spec["env"]:
        # The launcher died half-way: nothing is claimed, nothing will be started.
        os.write(2, b"not claimed: the environment handed over is not the one in spec.json\n")
        return 1
    wakeups = Wakeups()
    contained = processes.become_subreaper()
    claim: Claim = {
        "state": "claimed",
        "attempt": spec["attempt"],
        "at": _now(),
        "supervisor": processes.identify(os.getpid()),
        "cgroup": slots.choose() if spec.get("cgroup", True) else None,
    }
    # The descriptor stays open, and locked, for as long as this process lives.
    if records.create_once(os.path.join(directory, "claim"), claim) is None:
        return 0
    return Supervision(directory, spec, environment, claim, wakeups, contained).run()


def _read_environment() -> dict[str, str] | None:
    """The agent's environment comes through a pipe: its secrets are written nowhere."""
    text = b""
    while chunk := os.read(0, 1 << 16):
        text += chunk
    try:
        environment: dict[str, str] = loads(text.decode("utf-8", "surrogateescape"))
    except NotJson:
        return None
    return environment


def _now() -> str:
    return iso(time.time_ns() // 1_000_000)


class Supervision:
    def __init__(
        self,
        directory: str,
        spec: StoredSpec,
        environment: dict[str, str],
        claim: Claim,
        wakeups: Wakeups,
        contained: bool,
    ) -> None:
        self.directory = directory
        self.spec = spec
        self.environment = environment
        self.claim = claim
        self.wakeups = wakeups
        self.contained = contained
        self.outputs: list[Output] = []
        self.agent: int | None = None
        self.status: int | None = None  # of the agent, once it has ended
        self.childless = True
        self.started: str | None = None
        self.ended: str | None = None
        self.began = 0.0
        self.duration = 0.0
        self.timed_out = False
        self.cancelled = False
        self.lease_over = False
        self.error: str | None = None
        self.exec_report: int | None = None
        self.leftover: list[Leftover] = []

    def run(self) -> int:
        slot: Slot | None = None
        try:
            slot = self._queue()
            if slot is not None:
                self._start(slot)
                self._watch()
        except Exception as problem:  # noqa: BLE001 - whatever it is, the tree must be ended
            self.error = f"the supervisor could not go on: {problem}"
        self._end_tree()
        published = self._publish()
        while not self._is_empty():
            self._kill_tree()
            self.wakeups.wait(1.0)
        slots.remove(self.claim["cgroup"])
        if slot is not None:
            slots.release(slot)
        return 0 if published else 1

    def _queue(self) -> Slot | None:
        """Wait for a slot; None where the attempt was cancelled first."""
        pool, cap = self.spec["pool"], self.spec["cap"]
        hold: Hold = {"directory": self.directory, "claim": self.claim}
        pause = 0.01
        while not self.wakeups.cancelled and not self._may_not_go_on():
            slot = slots.take(pool, cap, hold)
            if slot is not None:
                return slot
            held = slots.holders(pool, cap)
            watched = [descriptor for holder in held or () if (descriptor := processes.open_pidfd(holder)) is not None]
            # Where every holder is known, the end of one is the only thing to wait for. Otherwise a slot
            # is changing hands, or is blocked by a tree that cannot be proven gone: look again, less and less often.
            pause = 1.0 if watched and held and len(watched) == len(held) else min(1.0, pause * 2)
            self.wakeups.wait(pause, watched)
            for descriptor in watched:
                os.close(descriptor)
        self.cancelled = True
        return None

    def _start(self, slot: Slot) -> None:
        opened = self._open_outputs()
        if not slots.make(self.claim["cgroup"]):
            self.claim["cgroup"] = None
        # Written first without the agent: where this file is missing, the agent certainly never ran.
        started: Started = {"at": _now(), "slot": slot.number, "agent": None}
        path = os.path.join(self.directory, "started.json")
        records.publish(path, started, durable=False)
        environment = {**self.environment, processes.MARK: self.spec["attempt"]}
        self.started = started["at"]
        self.began = time.monotonic()
        self.agent, self.exec_report = start(self.spec, environment, self.directory, self.claim["cgroup"], opened)
        started["agent"] = processes.identify(self.agent)
        try:
            records.publish(path, started, durable=False)
        except OSError:
            pass  # only for those who look; the agent runs, and that is on record

    def _open_outputs(self) -> list[int]:
        """Descriptors for the agent where its output must not reach the disk as it is; [] where it opens the files
        itself."""
        cap, paths = self.spec["output_cap"], [os.path.join(self.directory, name) for name in ("stdout", "stderr")]
        if self.spec.get("masked"):
            from tenuto.secrets import declared

            secrets = declared(self.spec["masked"], self.environment).forms
            if secrets:
                held = [MaskedOutput(path, cap, secrets) for path in paths]
                self.outputs = [*held]
                return [output.descriptor for output in held]
        self.outputs = [Output(path, cap) for path in paths]
        return []

    def _watch(self) -> None:
        """Until the agent has ended, its time is over, or it is to be cancelled."""
        deadline = None if self.spec["limit"] is None else self.began + self.spec["limit"]
        while True:
            self._trim()
            self._reap()
            if self.status is not None:
                # Whoever stopped this process for a while stopped the clock that the limit is read from.
                limit = self.spec["limit"]
                self.timed_out = limit is not None and self.duration > limit + _LATE
                return
            if self.wakeups.cancelled or self._may_not_go_on():
                self.cancelled = True
                return
            rest = _LOOK_AT_OUTPUT
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    self.timed_out = True
                    return
                rest = min(rest, left)
            self.wakeups.wait(rest)

    def _may_not_go_on(self) -> bool:
        """Another machine may start the same work when this lease is over: nothing of this one is left by then."""
        lease = self.spec.get("lease")
        if lease and records.lease_left(lease) <= 0:
            self.lease_over = True
        return self.lease_over

    def _trim(self) -> None:
        for output in self.outputs:
            output.trim()

    def _reap(self) -> None:
        """Collect whoever has ended: the agent, and the orphans that became our children."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                self.childless = False
                return
            if pid == self.agent and self.status is None:
                self.status = status
                self.ended = _now()
                self.duration = time.monotonic() - self.began

    def _is_empty(self) -> bool:
        self._reap()
        return self.childless

    def _end_tree(self) -> None:
        if self._is_empty() and self.contained:
            return
        grace = self.spec["grace"] if self.status is None else LEFTOVER_GRACE
        tree = self._tree()
        self.leftover = processes.name_all(process for process in tree if process.pid != self.agent)
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process hears nothing until it goes on
            for process in tree:
                processes.send(process, number)
        self._await_empty(time.monotonic() + grace, kill=False)
        self._await_empty(time.monotonic() + PATIENCE, kill=True)
        if not self.contained and self.agent is not None:
            try:
                os.killpg(self.agent, signal.SIGKILL)  # all that can be done where there is no subreaper
            except OSError:
                pass

    def _await_empty(self, deadline: float, kill: bool) -> None:
        pause = 0.001
        while not self._is_empty() and (left := deadline - time.monotonic()) > 0:
            if kill:
                self._kill_tree()
            self._trim()
            pause = min(_LOOK_AT_OUTPUT, pause * 2)
            self.wakeups.wait(min(left, pause))

    def _tree(self) -> list[processes.Process]:
        return processes.descendants(processes.table(), [os.getpid()])

    def _kill_tree(self) -> None:
        slots.kill(self.claim["cgroup"])
        for process in self._tree():
            processes.send(process, signal.SIGKILL)

    def _publish(self) -> bool:
        result = self._result()
        for _ in range(_TRIES_TO_PUBLISH):
            try:
                records.publish(os.path.join(self.directory, "result.json"), result)
                return True
            except OSError:
                self.wakeups.wait(0.5)  # a full disk may have room again in a moment
        return False

    def _result(self) -> Result:
        streams = [_NOTHING, _NOTHING]
        for index, output in enumerate(self.outputs):
            try:
                streams[index] = output.finish()
            except OSError as problem:
                self.error = f"{output.path} could not be kept: {problem}"
        not_started = reason(self.exec_report) if self.exec_report is not None else None
        if not_started is not None:
            self.error, self.started, self.status = not_started, None, None
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        result: Result = {
            "attempt": self.spec["attempt"],
            "exit_code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "timed_out": self.timed_out,
            "cancelled": self.cancelled,
            "error": self.error,
            "claimed": self.claim["at"],
            "started": self.started,
            "ended": self.ended or _now(),
            "duration": round(self.duration, 3),
            "stdout": streams[0],
            "stderr": streams[1],
            "leftover": self.leftover,
            "survivors": [] if self._is_empty() else processes.name_all(self._tree()),
        }
        if self.lease_over:
            result["lease_over"] = True
        return result


class MaskedOutput(Output):
    def __init__(self, path: str, cap: int, secrets: list[bytes]) -> None:
        from tenuto.secrets import mask  # every agent's start would pay for it

        super().__init__(path, cap)
        self._secrets = secrets
        self._mask = mask
        os.close(self._descriptor)  # what others look at stays empty until the end
        self._descriptor = os.memfd_create("output", os.MFD_CLOEXEC)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, os.O_APPEND)

    @property
    def descriptor(self) -> int:
        """For the agent to write to."""
        return self._descriptor

    def finish(self) -> Stream:
        size = os.fstat(self._descriptor).st_size
        total = size + self._lost
        cut = total > self._cap
        if not cut:
            made, kept = self._mask(self._read(0, size), self._secrets), size
        else:
            head, tail = min(self._head, size), min(self._tail, max(0, size - self._head))
            parts = [self._before_a_cut(self._read(0, head)), self._behind_a_cut(self._read(size - tail, tail))]
            kept = head + tail
            made = f"\n[tenuto: {total - kept} of {total} bytes left out here]\n".encode().join(parts)
        os.close(self._descriptor)
        self._write(made)
        return {"bytes": total, "kept": kept, "truncated": cut}

    def _before_a_cut(self, text: bytes) -> bytes:
        """Without the beginning of a value at its end."""
        text = self._mask(text, self._secrets)
        halves = [secret[:length] for secret in self._secrets for length in range(1, len(secret))]
        return text[: len(text) - max((len(half) for half in halves if text.endswith(half)), default=0)]

    def _behind_a_cut(self, text: bytes) -> bytes:
        """Without the end of a value at its beginning."""
        text = self._mask(text, self._secrets)
        halves = [secret[-length:] for secret in self._secrets for length in range(1, len(secret))]
        return text[max((len(half) for half in halves if text.startswith(half)), default=0) :]

    def _read(self, offset: int, length: int) -> bytes:
        chunks = []
        while length > 0 and (chunk := os.pread(self._descriptor, length, offset)):
            chunks.append(chunk)
            offset += len(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def _write(self, made: bytes) -> None:
        temporary = f"{self.path}.{os.urandom(6).hex()}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, made)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, self.path)
