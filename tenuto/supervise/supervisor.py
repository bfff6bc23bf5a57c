"""The process that owns one attempt, from claim to result.

    claim     exactly one supervisor, or a void, ever gets it; without it nothing is started
    queue     until one of the pool's slots is free and proven
    run       the agent in its own session, with its environment and nothing else
    end       at the agent's exit, at the time limit, or on SIGTERM: the whole tree, not the agent
    publish   the result, durably, when nothing of the tree is left
    release   the slot

The tree is empty when waitpid says that there is no child: a subreaper's descendants cannot
leave it. Killed with -9, a supervisor leaves a claim without a result; its agent dies with it,
the rest is ended by whoever wants the slot next (orphans.py).

Everything here is paid once per agent, in time before it starts: no import that can be avoided.
"""

from __future__ import annotations

import os
import time

from tenuto.core.times import iso
from tenuto.encoding import NotJson, loads
from tenuto.supervise import agent, cgroups, identity, kernel, processes, records, slots
from tenuto.supervise.output import Output
from tenuto.supervise.wakeups import Wakeups

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from tenuto.supervise.shapes import Claim, Hold, Leftover, Result, Started, StoredSpec, Stream
    from tenuto.supervise.slots import Slot
else:
    import _signal as signal

LEFTOVER_GRACE = 0.25  # for what outlived its agent: the agent is done, nobody waits for these
PATIENCE = 5.0  # after SIGKILL, before the result is published without what cannot be ended
_LOOK_AT_OUTPUT = 0.1
_TRIES_TO_PUBLISH = 60
_NOTHING: Stream = {"bytes": 0, "kept": 0, "truncated": False}


def main(directory: str) -> int:
    environment = _read_environment()
    spec: StoredSpec | None = records.read(os.path.join(directory, "spec.json"))
    if environment is None or spec is None or sorted(environment) != spec["env"]:
        # The launcher died half-way: nothing is claimed, nothing will be started.
        os.write(2, b"not claimed: the environment handed over is not the one in spec.json\n")
        return 1
    wakeups = Wakeups()
    contained = kernel.become_subreaper()
    claim: Claim = {
        "state": "claimed",
        "attempt": spec["attempt"],
        "at": _now(),
        "supervisor": identity.identify(os.getpid()),
        "cgroup": cgroups.choose() if spec.get("cgroup", True) else None,
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
        cgroups.remove(self.claim["cgroup"])
        if slot is not None:
            slots.release(slot)
        return 0 if published else 1

    def _queue(self) -> Slot | None:
        """Wait for a slot; None where the attempt was cancelled first."""
        pool, cap = self.spec["pool"], self.spec["cap"]
        hold: Hold = {"directory": self.directory, "claim": self.claim}
        pause = 0.01
        while not self.wakeups.cancelled:
            slot = slots.take(pool, cap, hold)
            if slot is not None:
                return slot
            held = slots.holders(pool, cap)
            watched = [descriptor for holder in held or () if (descriptor := identity.open_pidfd(holder)) is not None]
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
        if not cgroups.make(self.claim["cgroup"]):
            self.claim["cgroup"] = None
        # Written first without the agent: where this file is missing, the agent certainly never ran.
        started: Started = {"at": _now(), "slot": slot.number, "agent": None}
        path = os.path.join(self.directory, "started.json")
        records.publish(path, started, durable=False)
        environment = {**self.environment, processes.MARK: self.spec["attempt"]}
        self.started = started["at"]
        self.began = time.monotonic()
        self.agent, self.exec_report = agent.start(self.spec, environment, self.directory, self.claim["cgroup"], opened)
        started["agent"] = identity.identify(self.agent)
        try:
            records.publish(path, started, durable=False)
        except OSError:
            pass  # only for those who look; the agent runs, and that is on record

    def _open_outputs(self) -> list[int]:
        """Descriptors for the agent where its output must not reach the disk as it is; [] where it opens the files itself."""
        cap, paths = self.spec["output_cap"], [os.path.join(self.directory, name) for name in ("stdout", "stderr")]
        if self.spec.get("masked"):
            from tenuto.supervise.masking import MaskedOutput, values

            secrets = values(self.environment, self.spec["masked"])
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
                return
            if self.wakeups.cancelled:
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

    def _tree(self) -> list[identity.Process]:
        return processes.descendants(processes.table(), [os.getpid()])

    def _kill_tree(self) -> None:
        cgroups.kill(self.claim["cgroup"])
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
        not_started = agent.reason(self.exec_report) if self.exec_report is not None else None
        if not_started is not None:
            self.error, self.started, self.status = not_started, None, None
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        return {
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
