"""Whatever an agent does, its attempt ends with a result, and nothing it started is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenuto.supervise import attempts, records
from tenuto.supervise.processes import Process
from tests.support.sandbox import Sandbox, await_end, lives, python


@pytest.fixture(params=[True, False], ids=["cgroup", "walk"])
def cgroup(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(str(tmp_path)) as made:
        yield made


def test_an_obedient_agent_ends_with_its_exit_code_and_its_output(sandbox: Sandbox) -> None:
    """The result says how it ended; stdout and stderr are files beside it."""
    source = "import sys; print('out: ' + sys.stdin.read()); print('err', file=sys.stderr); sys.exit(3)"
    prompt = Path(sandbox.work, "prompt")
    prompt.write_text("do it")
    directory = sandbox.launch("a", python(source), stdin=str(prompt))
    result = sandbox.result(directory)
    assert (result["exit_code"], result["signal"], result["error"]) == (3, None, None)
    assert not result["timed_out"] and not result["cancelled"]
    assert Path(directory, "stdout").read_text() == "out: do it\n"
    assert Path(directory, "stderr").read_text() == "err\n"
    assert result["stdout"] == {"bytes": 11, "kept": 11, "truncated": False}
    assert result["leftover"] == result["survivors"] == []


def test_a_daemon_that_holds_standard_output_neither_delays_the_result_nor_outlives_it(
    sandbox: Sandbox, cgroup: bool
) -> None:
    """The daemon left the session, the group and its parent, and ignores SIGTERM: it dies, and is named."""
    directory = sandbox.launch_rogue("a", "daemonise", cgroup=cgroup)
    _, daemon = sandbox.hear()
    result = sandbox.result(directory)
    assert not lives(daemon)
    assert result["exit_code"] == 0
    assert [gone["pid"] for gone in result["leftover"]] == [daemon.pid]
    assert Path(directory, "stdout").read_text() == "DONE: and left a daemon\n"
    assert sandbox.alive() == []


def test_the_time_limit_binds_the_whole_tree(tmp_path: Path) -> None:
    """Deaf, stopped, daemonised, numerous or always on the run: when the result is there, they are gone."""
    kinds = ("linger", "ignore", "stop", "daemonise_and_linger", "breed", "flee", "flee_and_linger")
    with Sandbox(str(tmp_path), cap=2 * len(kinds)) as sandbox:
        trees = [(kind, cgroup) for kind in kinds for cgroup in (True, False)]
        started: list[tuple[str, int]] = []
        for kind, cgroup in trees:
            directory = sandbox.launch_rogue(f"{kind}-{cgroup}", kind, limit=4.0, cgroup=cgroup)
            started.append((directory, sandbox.latest_supervisor()))
        members: list[Process] = []
        for (kind, _), (directory, supervisor) in zip(trees, started, strict=True):
            while (heard := sandbox.hear_or_end(supervisor)) is not None:
                members.append(heard[1])
            result = sandbox.result(directory)
            assert result["timed_out"] or kind == "flee"  # there the agent itself ends at once
            assert result["survivors"] == []
        assert not [member for member in members if lives(member)]
        assert sandbox.alive() == [] and not sandbox.is_held()


def test_an_agent_that_ends_when_asked_is_not_killed(sandbox: Sandbox) -> None:
    """SIGTERM comes first, and the grace is for cleaning up: the result keeps the agent's own exit code."""
    source = """
import os, signal, subprocess, sys
def clean(*_):
    subprocess.run([sys.executable, "-c", "print('cleaned up')"])  # that takes a while
    os._exit(7)
signal.signal(signal.SIGTERM, clean)
fifo = os.open(sys.argv[1], os.O_WRONLY); os.write(fifo, b"agent %d\\n" % os.getpid())
while True: signal.pause()
"""
    directory = sandbox.launch("a", python(source, sandbox.fifo), grace=30.0)
    sandbox.hear()
    attempts.cancel(directory)
    result = sandbox.result(directory)
    assert (result["exit_code"], result["cancelled"], result["timed_out"]) == (7, True, False)
    assert Path(directory, "stdout").read_text() == "cleaned up\n"


def test_sigterm_to_the_supervisor_is_a_cancel_of_the_whole_tree(sandbox: Sandbox, cgroup: bool) -> None:
    """However the request to end arrives, the tree is ended and the result is written."""
    directory = sandbox.launch_rogue("a", "ignore", cgroup=cgroup)
    members = [sandbox.hear()[1] for _ in range(2)]
    status = attempts.inspect(directory)
    assert status["state"] == "running"
    supervisor = status["supervisor"]
    assert supervisor is not None
    os.kill(supervisor["pid"], signal.SIGTERM)
    result = sandbox.result(directory)
    assert (result["cancelled"], result["signal"]) == (True, signal.SIGKILL)
    assert not [member for member in members if lives(member)]


def test_a_flood_is_cut_in_the_middle_and_the_verdict_is_kept(sandbox: Sandbox) -> None:
    """Of 300 MiB the cap is kept: the beginning, a marker, and the end with the verdict. The middle is given back while
    the agent still writes: it waits for that."""
    directory = sandbox.launch_rogue("a", "flood", "300", output_cap=10_000)
    sandbox.hear()
    result = sandbox.result(directory)
    kept = Path(directory, "stdout").read_bytes()
    written = 300 * (1 << 20) + len(b"DONE: at last\n")
    assert result["stdout"] == {"bytes": written, "kept": 10_000, "truncated": True}
    assert kept.startswith(b"xxx") and kept.endswith(b"\nDONE: at last\n")
    assert f"[tenuto: {written - 10_000} of {written} bytes left out here]".encode() in kept
    assert len(kept) < 10_100
    assert not result["timed_out"]


def test_an_agent_that_removes_its_output_has_its_output_kept(sandbox: Sandbox) -> None:
    """The supervisor holds the file itself, not its name."""
    directory = sandbox.launch_rogue("a", "unlink")
    assert sandbox.result(directory)["exit_code"] == 0
    assert Path(directory, "stdout").read_text() == "DONE: and covered its tracks\n"


def test_the_environment_is_the_allow_list_exactly(sandbox: Sandbox) -> None:
    """Nothing of the launcher's or the supervisor's environment gets through, whatever it holds."""
    os.environ["CANARY"] = "sings"
    try:
        allowed = {"PATH": "/usr/bin:/bin", "ODD": "a=b\nc\udcff", "EMPTY": ""}
        directory = sandbox.launch_rogue("a", "environment", env=allowed)
        sandbox.result(directory)
    finally:
        del os.environ["CANARY"]
    found = Path(directory, "stdout").read_bytes().decode("utf-8", "surrogateescape").rstrip("\0").split("\0")
    assert dict(entry.split("=", 1) for entry in found) == {**allowed, "TENUTO_ATTEMPT": sandbox.prefix + "a"}


def test_no_value_of_the_environment_reaches_the_disk(sandbox: Sandbox) -> None:
    """Names are written down, values go through a pipe."""
    directory = sandbox.launch_rogue("a", "obey", env={"TOKEN": "canary-5b1f"})
    sandbox.result(directory)
    for folder in (directory, sandbox.pool):
        for path in Path(folder).iterdir():
            assert b"canary-5b1f" not in path.read_bytes(), path
    assert b"TOKEN" in Path(directory, "spec.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"argv": ["no-such-program"]}, "cannot start 'no-such-program': No such file or directory"),
        ({"cwd": "/no/such/place"}, "cannot use the working directory '/no/such/place'"),
        ({"stdin": "/no/such/prompt"}, "cannot read '/no/such/prompt'"),
    ],
)
def test_an_agent_that_cannot_be_started_has_a_result_that_says_why(
    sandbox: Sandbox, change: dict[str, object], reason: str
) -> None:
    """It is a result, not a crash, and nobody takes 127 for the agent's own word."""
    argv = change.pop("argv", ["true"])
    assert isinstance(argv, list)
    result = sandbox.result(sandbox.launch("a", argv, env={"PATH": os.environ["PATH"]}, **change))
    assert result["error"] is not None and reason in result["error"]
    assert (result["exit_code"], result["started"]) == (None, None)


def test_an_agent_gets_its_signals_as_a_shell_would_give_them(sandbox: Sandbox) -> None:
    """Python ignores SIGPIPE; an agent that inherited that would write into closed pipes for ever."""
    directory = sandbox.launch(
        "a", ["sh", "-c", "grep -E '^Sig(Ign|Blk)' /proc/self/status"], env={"PATH": "/usr/bin:/bin"}
    )
    assert sandbox.result(directory)["exit_code"] == 0
    masks = [int(line.split()[1], 16) for line in Path(directory, "stdout").read_text().splitlines()]
    # Signals 32 and 33 belong to the C library; make leaves them ignored in what it starts.
    assert [mask & ~(0b11 << 31) for mask in masks] == [0, 0]


def test_an_agent_that_dies_of_a_signal_says_which(sandbox: Sandbox) -> None:
    result = sandbox.result(sandbox.launch("a", python("import os; os.kill(os.getpid(), 11)")))
    assert (result["exit_code"], result["signal"]) == (None, signal.SIGSEGV)


def test_no_cgroup_is_left_behind(sandbox: Sandbox) -> None:
    """An attempt that used a cgroup takes it away with it."""
    directory = sandbox.launch_rogue("a", "daemonise")
    sandbox.result(directory)
    [status] = sandbox.rest(directory)
    assert status["supervisor"] is not None
    await_end(status["supervisor"]["pid"])
    cgroup = records.read(os.path.join(directory, "claim"))["cgroup"]
    assert cgroup is None or not os.path.exists(cgroup)


def test_a_nested_attempt_ends_with_the_one_around_it(sandbox: Sandbox, cgroup: bool) -> None:
    """An agent may itself run an orchestrator: ending the outer attempt ends the inner one's daemon too."""
    source = f"""
import sys
sys.path.insert(0, {str(Path(attempts.__file__).parents[2])!r})
from tenuto.supervise import attempts
from tests.support import rogues
inner = sys.argv[1]
attempts.launch(inner, {{"attempt": {sandbox.prefix + "inner"!r}, "argv": rogues.command("daemonise_and_linger", sys.argv[2]),
    "cwd": "/", "stdin": None, "env": {{}}, "limit": None, "grace": 30.0, "output_cap": 100, "cgroup": {cgroup},
    "pool": {sandbox.pool + "-inner"!r}, "cap": 1}})
attempts.wait_any([inner])
"""  # noqa: E501
    inner = sandbox.directory("inner")
    outer = sandbox.launch("outer", python(source, inner, sandbox.fifo), cgroup=cgroup)
    members = [sandbox.hear()[1] for _ in range(2)]
    attempts.cancel(outer)
    assert sandbox.result(outer)["cancelled"]
    assert not [member for member in members if lives(member)]


def test_a_process_knows_the_attempt_it_runs_in(sandbox: Sandbox) -> None:
    """Even a daemon that has emptied its environment is still below its supervisor: it cannot decide gates."""
    source = f"""
import os, sys
sys.path.insert(0, {str(Path(attempts.__file__).parents[2])!r})
from tenuto.supervise import attempts
os.environ.clear()
readable, writable = os.pipe()
if os.fork():
    os.read(readable, 1)
    os._exit(0)
os.setsid()
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent:
    os.sched_yield()
print(attempts.enclosing_attempt(), flush=True)
os.write(writable, b".")
"""
    directory = sandbox.launch("a", python(source))
    assert sandbox.result(directory)["exit_code"] == 0
    assert Path(directory, "stdout").read_text() == f"{sandbox.prefix}a\n"
    assert attempts.enclosing_attempt() is None


HOLD = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
held = libc.ptrace(16, os.getppid(), None, None)
print("held" if held == 0 else "refused", flush=True)
time.sleep(3600)
"""


def test_an_agent_that_traces_its_supervisor_does_not_hold_up_whoever_waits(sandbox: Sandbox) -> None:
    """No limit would ever end it. The supervisor is ended, and its agent with it; where the kernel does not allow it
    to be traced, the limit ends the agent."""
    directory = sandbox.launch("a", python(HOLD), limit=5.0)
    [status] = sandbox.rest(directory)
    said = Path(directory, "stdout").read_text()
    if said == "held\n":
        assert status["state"] == "lost"
        attempts.sweep(sandbox.root)
    else:
        assert status["result"]["timed_out"]
    assert sandbox.alive() == []


STOP = """
import os, signal, time
os.kill(os.getppid(), signal.SIGSTOP)
end = time.monotonic() + 4
while time.monotonic() < end:
    pass
print("DONE: with all the time that I wanted", flush=True)
"""


def test_an_agent_that_stopped_the_clock_of_its_limit_ran_out_of_time(sandbox: Sandbox) -> None:
    """Nobody else waits for it, as when it has stopped the engine, too. When its supervisor goes on, it has ended by
    itself, and late."""
    directory = sandbox.launch("a", python(STOP), limit=1.0)
    supervisor = sandbox.claimed(directory)["supervisor"]
    assert supervisor is not None
    said = Path(directory, "stdout")
    while not (said.exists() and said.read_text()):
        os.sched_yield()
    os.kill(supervisor["pid"], signal.SIGCONT)
    assert sandbox.result(directory)["timed_out"]


def test_a_copy_of_a_repository_does_not_end_the_originals_agent(sandbox: Sandbox, tmp_path: Path) -> None:
    """The claim in the copy names a supervisor that works for the original."""
    directory = sandbox.launch("a", ["/bin/cat", sandbox.gate])
    while attempts.inspect(directory)["state"] != "running":
        os.sched_yield()
    copied = str(shutil.copytree(directory, tmp_path / "copy" / os.path.basename(directory)))
    attempts.cancel(copied)
    assert attempts.inspect(directory)["state"] == "running"
    attempts.cancel(directory)
    assert sandbox.result(directory)["cancelled"]


def test_what_runs_in_another_container_is_said_to_be_out_of_reach(sandbox: Sandbox) -> None:
    """A signal would reach nobody, or somebody else."""
    directory = sandbox.launch("a", ["/bin/cat", sandbox.gate])
    while attempts.inspect(directory)["state"] != "running":
        os.sched_yield()
    assert not attempts.is_out_of_reach(directory)
    source = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tenuto.supervise import attempts\n"
        "print(attempts.is_out_of_reach(sys.argv[2]))"
    )
    package = str(Path(attempts.__file__).parents[2])
    words = ["unshare", "--pid", "--fork", "--mount-proc", *python(source, package, directory)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a PID namespace: {done.stderr}")
    assert done.stdout == "True\n"
    attempts.cancel(directory)
    assert sandbox.result(directory)["cancelled"]
