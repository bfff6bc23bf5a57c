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
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tenuto.core.times import iso
from tenuto.encoding import dumps
from tenuto.errors import BadInput, Damaged, Refused
from tenuto.supervise import identity, orphans, processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.supervise.shapes import Claim, Identity, Launch, Result, Spec, Started, Status, StoredSpec, Sweep, Swept

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
    note: Launch = {"launcher": identity.identify(os.getpid()), "supervisor": None}
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
    note["supervisor"] = identity.identify(process.pid)
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
    result: Result | None = records.read(os.path.join(directory, "result.json"))
    started: Started | None = records.read(os.path.join(directory, "started.json"))
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
        same_boot = claim["supervisor"] is not None and claim["supervisor"]["boot"] == identity.boot()
        status["may_have_run"] = started is not None or not same_boot
        status["swept"] = os.path.exists(os.path.join(directory, "swept.json"))
    elif started is None:
        status["state"] = "queued"
    return status


def _lives(directory: str, claim: Claim) -> bool:
    supervisor = claim["supervisor"]
    if supervisor is not None and identity.visible(supervisor):
        return identity.alive(supervisor)
    # In another PID namespace (a container on the same repository) its lock is all we can see.
    return records.is_locked(os.path.join(directory, "claim"))


def _inspect_launch(directory: str) -> Status:
    note: Launch | None = records.read(os.path.join(directory, "launch.json"))
    expected: Identity | None = None
    if note is not None:
        expected = note["supervisor"] or note["launcher"]
    status: Status = {"state": "launching", "directory": directory, "stalled": False, "supervisor": expected}
    if expected is None or (identity.visible(expected) and not identity.alive(expected)):
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
        "supervisor": identity.identify(os.getpid()),
        "cgroup": None,
    }
    descriptor = records.create_once(path, claim)
    if descriptor is not None:
        os.close(descriptor)
        return True
    return bool(records.read(path)["state"] == "void")


def cancel(directory: str) -> None:
    """Nothing is started any more, or what runs is ended: SIGTERM, the grace, then the whole tree."""
    if void(directory):
        return
    claim: Claim = records.read(os.path.join(os.path.abspath(directory), "claim"))
    supervisor = claim["supervisor"]
    if supervisor is not None and identity.alive(supervisor):
        process = identity.look(supervisor["pid"])
        if process is not None and process.start == supervisor["start"]:
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
    for directory, answer in zip(claims, orphans.end(list(claims.values())), strict=True):
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
