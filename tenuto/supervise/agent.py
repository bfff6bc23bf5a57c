"""From fork to exec: the agent's session, its descriptors, its environment, its end.

The supervisor has one thread, so what runs between fork and exec is safe here; elsewhere in
Tenuto it would not be. The agent is told to die with its supervisor, and checks that the
supervisor had not died before it could be told: after a kill -9 there is no moment at which
an agent starts with nobody above it.
"""

from __future__ import annotations

import os

from tenuto.supervise import cgroups, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import NoReturn

    from tenuto.supervise.shapes import StoredSpec
else:
    import _signal as signal

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
            return cgroups.fork_into(cgroup)
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
        kernel.die_with_parent(signal.SIGKILL)
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
