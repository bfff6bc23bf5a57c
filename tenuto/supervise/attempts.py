"""Attempts as the rest of Tenuto sees them: a directory each, and a handful of verbs.

    launch    write what to run, start a supervisor, return
    inspect   absent, launching, queued, running, finished, lost or void; changes nothing
    void      make sure that nothing will ever be started here, unless a supervisor was first
    cancel    ask for the end of the attempt's whole tree; the result will say cancelled
    sweep     end what killed supervisors left behind

What a restarted orchestrator does with an attempt it finds in its journal without an end:

    absent, launching   void it. True: it never ran, dispatch a new one. False: inspect again
    queued, running     adopt: wait_any works for supervisors that others started
    finished            collect the result; it is there before anything else hears of it
    lost                the supervisor was killed: sweep; `may_have_run` says what is known
    void                it never ran, and never will

No verb trusts a pid: a process is (pid, start time, boot id).

Sleep until an attempt has come to rest, whoever started it.

A finished attempt shows a new file in its directory (inotify); a killed supervisor shows its
end (pidfd). Where both exist, all that is looked at every now and then is whether a supervisor was
stopped (its agent can do that): it holds no time limit then, and is told to go on. Elsewhere the
directories are looked at, too.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

from tenuto.core.times import iso
from tenuto.encoding import dumps
from tenuto.errors import BadInput, Damaged, Refused
from tenuto.supervise import processes, records, slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.supervise.records import (
        Claim,
        Identity,
        Launch,
        Result,
        Spec,
        Started,
        Status,
        StoredSpec,
        Sweep,
        Swept,
    )


# Supervisors that this process started: they are collected when they end, never waited for.
_started: list[subprocess.Popen[bytes]] = []


def launch(directory: str, spec: Spec) -> None:
    """Start a supervisor for this attempt. Repeating the call is safe: only one ever claims it."""
    directory = os.path.abspath(directory)
    prepare(directory, spec)
    start_supervisor(directory, spec["env"], [sys.executable, "-I", "-S", processes.SUPERVISOR, directory])


def prepare(directory: str, spec: Spec) -> None:
    """Write down what is to be run. The environment's values are left out: secrets do not reach the disk."""
    _check(spec)
    stored: StoredSpec = {**spec, "env": sorted(spec["env"])}
    records.make_directory(directory)
    records.make_directory(os.path.abspath(spec["pool"]))
    path = os.path.join(directory, "spec.json")
    descriptor = records.create_once(path, stored)
    if descriptor is not None:
        os.close(descriptor)
    elif records.read(path) != stored:
        raise Refused(
            "attempt-exists",
            f"{directory} already holds another attempt's specification",
            "an attempt directory is used once: take a new attempt id",
        )


def start_supervisor(directory: str, environment: dict[str, str], command: list[str]) -> None:
    path = os.path.join(directory, "launch.json")
    note: Launch = {"launcher": processes.identify(os.getpid()), "supervisor": None}
    records.publish(path, note, durable=False)
    # An orchestrator may itself run inside an attempt: its supervisors then carry that attempt's mark.
    outer = {name: value for name, value in os.environ.items() if name == processes.MARK}
    log = os.open(os.path.join(directory, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=outer,
            start_new_session=True,
        )
    finally:
        os.close(log)
    note["supervisor"] = processes.identify(process.pid)
    if note["supervisor"] is None:
        note["launcher"] = None  # killed already: we did our part, and whoever waits must not wait for us
    _hand_over(process, environment)
    records.publish(path, note, durable=False)
    collect_ended()
    _started.append(process)


def _hand_over(process: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(dumps(environment).encode("utf-8", "surrogateescape"))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it ended before it had read: nothing was claimed, and inspect says "launching, stalled"


def collect_ended() -> None:
    _started[:] = [process for process in _started if process.poll() is None]


def _check(spec: Spec) -> None:
    def refuse(what: str) -> BadInput:
        return BadInput(
            "bad-attempt-spec", f"attempt {spec['attempt']!r} cannot be launched: {what}", "correct the specification"
        )

    texts = [spec["attempt"], spec["cwd"], *spec["argv"], *spec["env"], *spec["env"].values()]
    if not spec["attempt"] or not spec["argv"] or not spec["argv"][0]:
        raise refuse("it needs an id and a program")
    if any("\0" in text for text in texts) or any("=" in name or not name for name in spec["env"]):
        raise refuse("a NUL byte, or a variable's name that is empty or has a '=' in it")
    try:
        "".join(texts).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise refuse("a text in it cannot be passed to a program") from None
    if not os.path.isabs(spec["cwd"]) or not os.path.isabs(spec["pool"]):
        raise refuse("cwd and pool must be absolute paths")
    if spec["stdin"] is not None and not os.path.isabs(spec["stdin"]):
        raise refuse("stdin must be an absolute path")
    if spec["cap"] < 1:
        raise refuse(f"a pool of {spec['cap']} slots never has a free one")
    if spec["output_cap"] < 0 or spec["grace"] < 0 or (spec["limit"] is not None and spec["limit"] <= 0):
        raise refuse("output_cap and grace must not be negative, and limit must be more than 0 or None")


def inspect(directory: str) -> Status:
    directory = os.path.abspath(directory)
    claim: Claim | None = records.read(os.path.join(directory, "claim"))
    if claim is None:
        if not os.path.exists(os.path.join(directory, "spec.json")):
            return {"state": "absent", "directory": directory}
        return _inspect_launch(directory)
    if claim["state"] == "void":
        return {"state": "void", "directory": directory}
    # In this order: a supervisor publishes its result before it ends, so whoever sees it
    # dead first and finds no result then knows that there will never be one.
    living = _lives(directory, claim)
    result: Result | None
    started: Started | None
    result, started = records.read_all(os.path.join(directory, name) for name in ("result.json", "started.json"))
    status: Status = {
        "state": "running",
        "directory": directory,
        "supervisor": claim["supervisor"],
        "started": started,
    }
    if result is not None:
        status["state"] = "finished"
        status["result"] = result
    elif not living:
        status["state"] = "lost"
        # started.json is not synced: after a restart of the machine its absence proves nothing.
        same_boot = claim["supervisor"] is not None and claim["supervisor"]["boot"] == processes.boot()
        status["may_have_run"] = started is not None or not same_boot
        status["swept"] = os.path.exists(os.path.join(directory, "swept.json"))
    elif started is None:
        status["state"] = "queued"
    return status


def _lives(directory: str, claim: Claim) -> bool:
    supervisor = claim["supervisor"]
    if supervisor is not None and processes.visible(supervisor):
        return processes.alive(supervisor)
    # In another PID namespace (a container on the same repository) its lock is all we can see.
    return records.is_locked(os.path.join(directory, "claim"))


def _inspect_launch(directory: str) -> Status:
    note: Launch | None = records.read(os.path.join(directory, "launch.json"))
    expected: Identity | None = None
    if note is not None:
        expected = note["supervisor"] or note["launcher"]
    status: Status = {"state": "launching", "directory": directory, "stalled": False, "supervisor": expected}
    if expected is None or (processes.visible(expected) and not processes.alive(expected)):
        # It may have claimed and ended since we looked for the claim.
        if os.path.exists(os.path.join(directory, "claim")):
            return inspect(directory)
        status["stalled"] = True
    return status


def void(directory: str) -> bool:
    """True: nothing was started here and nothing ever will be. False: a supervisor had claimed it."""
    directory = os.path.abspath(directory)
    records.make_directory(directory)
    path = os.path.join(directory, "claim")
    claim: Claim = {
        "state": "void",
        "attempt": os.path.basename(directory),
        "at": _now(),
        "supervisor": processes.identify(os.getpid()),
        "cgroup": None,
    }
    descriptor = records.create_once(path, claim)
    if descriptor is not None:
        os.close(descriptor)
        return True
    return bool(records.read(path)["state"] == "void")


def is_out_of_reach(directory: str) -> bool:
    """Does it run where no signal of ours gets to: in another PID namespace, as of a container?"""
    claim: Claim | None = records.read(os.path.join(os.path.abspath(directory), "claim"))
    supervisor = claim["supervisor"] if claim is not None and claim["state"] == "claimed" else None
    return (
        supervisor is not None
        and not processes.visible(supervisor)
        and inspect(directory)["state"] in ("queued", "running")
    )


def cancel(directory: str) -> None:
    """Nothing is started any more, or what runs is ended: SIGTERM, the grace, then the whole tree."""
    if void(directory):
        return
    claim: Claim = records.read(os.path.join(os.path.abspath(directory), "claim"))
    supervisor = claim["supervisor"]
    if supervisor is not None and processes.alive(supervisor):
        process = processes.look(supervisor["pid"])
        # In a copy of a repository the claims are those of the original, whose agents are not this one's to end.
        is_ours = not processes.PROC or os.path.realpath(
            processes.supervised_directory(supervisor["pid"]) or directory
        ) == os.path.realpath(directory)
        if is_ours and process is not None and process.start == supervisor["start"]:
            processes.send(process, signal.SIGTERM)


def sweep(root: str) -> Sweep:
    """End what is left of every attempt under `root` whose supervisor was killed.

    Call it after a crash, before anything new is launched. Whoever takes a slot does the same
    for the slot's last holder, so the cap holds even where nobody calls this.
    """
    claims: dict[str, Claim] = {}
    report: Sweep = {"ended": {}, "unproven": []}
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        directory = os.path.join(os.path.abspath(root), name)
        try:
            claim: Claim | None = records.read(os.path.join(directory, "claim"))
            if claim is not None and _needs_sweeping(directory, claim):
                claims[directory] = claim
        except Damaged:  # `inspect` names it; the others are swept all the same
            report["unproven"].append(directory)
    for directory, answer in zip(claims, slots.end(list(claims.values())), strict=True):
        ended = processes.name_all(answer.processes.values())
        if ended:
            report["ended"][directory] = ended
        if answer.proven:
            note: Swept = {"at": _now(), "ended": ended}
            records.publish(os.path.join(directory, "swept.json"), note, durable=False)
        else:
            report["unproven"].append(directory)
    return report


def _needs_sweeping(directory: str, claim: Claim) -> bool:
    if claim["state"] == "void" or os.path.exists(os.path.join(directory, "swept.json")):
        return False
    if _lives(directory, claim):
        return False
    result: Result | None = records.read(os.path.join(directory, "result.json"))
    # A finished one may have died between its result and the removal of its cgroup.
    return result is None or bool(result["survivors"]) or os.path.isdir(claim["cgroup"] or "")


def enclosing_attempt() -> str | None:
    """The attempt this process runs in, None where no supervisor is above it. Agents must not decide gates."""
    known = processes.table()
    for pid in processes.ancestors(known, os.getpid()):
        directory = processes.supervised_directory(pid)
        if directory is not None:
            claim: Claim | None = records.read(os.path.join(directory, "claim"))
            return claim["attempt"] if claim is not None else os.path.basename(directory)
    return os.environ.get(processes.MARK) or None


def _now() -> str:
    import time

    return iso(time.time_ns() // 1_000_000)


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
            collect_ended()
            found = [inspect(directory) for directory in directories]
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
        descriptor = processes.open_pidfd(supervisor) if supervisor is not None else None
        if supervisor is None or descriptor is None:
            continue
        try:
            process = processes.look(supervisor["pid"])
            if process is not None and process.state == "T":
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
            elif process is not None and process.state == "t" and _is_held(process):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except OSError:
            pass  # it ended a moment ago
        finally:
            os.close(descriptor)


_held: dict[tuple[int, str], str] = {}  # supervisors that were seen traced, and how often they had run by then


def _is_held(process: processes.Process) -> bool:
    """Has it not run since it was last seen so? Its agent can trace it and keep it: no time limit would bind then, and
    it is ended, its agent with it. One that a person traces goes on between two looks."""
    try:
        with open(f"/proc/{process.pid}/status", "rb") as file:
            runs = next((line.decode() for line in file if line.startswith(b"voluntary_ctxt")), "")
    except OSError:
        return False
    before = _held.get((process.pid, process.start))
    _held[process.pid, process.start] = runs
    return before == runs


def _watch(directories: Sequence[str]) -> int | None:
    try:
        return processes.watch_new_names([directory for directory in directories if os.path.isdir(directory)])
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
        descriptor = processes.open_pidfd(supervisor) if supervisor is not None else None
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
