"""Agents that misbehave, as programs of their own:

    python -I -S .../rogues.py KIND FIFO [ARGUMENT...]

Whatever a rogue starts writes one line, "NAME PID", into the FIFO once it is in place; whoever
tests then knows whom to look for, and waits for events instead of sleeping. The kinds are the
functions below; `command` gives the argument list.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def command(kind: str, fifo: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), kind, fifo, *arguments]


def _tell(fifo: str, name: str) -> None:
    descriptor = os.open(fifo, os.O_WRONLY)
    os.write(descriptor, f"{name} {os.getpid()}\n".encode())
    os.close(descriptor)


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _last_for_ever() -> None:
    while True:
        signal.pause()


def _in_child(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def obey(fifo: str) -> None:
    """Does its work, says so, ends."""
    _tell(fifo, "agent")
    print("DONE: nothing to do", flush=True)


def linger(fifo: str) -> None:
    """Works for ever, but ends when asked."""
    _tell(fifo, "agent")
    _last_for_ever()


def ignore(fifo: str) -> None:
    """Neither it nor its child hears a signal that can be ignored."""
    _ignore_signals()

    def current_visit(name: str) -> None:
        _tell(fifo, name)
        _last_for_ever()

    _in_child(lambda: current_visit("child"))
    current_visit("agent")


def stop(fifo: str) -> None:
    """Stops itself, so that no signal but SIGKILL and SIGCONT has any effect."""
    _tell(fifo, "agent")
    os.kill(os.getpid(), signal.SIGSTOP)
    _last_for_ever()


def daemonise(fifo: str) -> None:
    """Leaves a daemon: two forks, its own session, deaf, standard output held open. Ends well itself."""
    readable, writable = os.pipe()

    def between() -> None:
        os.setsid()

        def daemon() -> None:
            _ignore_signals()
            os.chdir("/")
            _tell(fifo, "daemon")
            os.write(writable, b".")
            _last_for_ever()

        _in_child(daemon)

    os.waitpid(_in_child(between), 0)
    os.read(readable, 1)
    _tell(fifo, "agent")
    print("DONE: and left a daemon", flush=True)


def daemonise_and_linger(fifo: str) -> None:
    daemonise(fifo)
    _last_for_ever()


def record_and_daemonise(fifo: str, log: str, seat: str) -> None:
    """Leaves a line per start in LOG, and a daemon; one SEAT is theirs while either of them lives."""
    name = os.environ["TENUTO_ATTEMPT"] if _take_seat(seat) else "standing"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{name}\n".encode())
    os.close(descriptor)
    daemonise(fifo)


def _take_seat(seat: str) -> bool:
    import fcntl

    descriptor = os.open(seat, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    return True


def hide(fifo: str) -> None:
    """Leaves a daemon without any environment, so that no mark can be read from it."""

    def between() -> None:
        os.setsid()
        _in_child(lambda: os.execve(sys.executable, command("linger", fifo), {}))

    os.waitpid(_in_child(between), 0)


def hide_below(fifo: str) -> None:
    """The same, below a daemon that can be found."""

    def between() -> None:
        os.setsid()

        def daemon() -> None:
            _in_child(lambda: os.execve(sys.executable, command("linger", fifo), {}))
            _last_for_ever()

        _in_child(daemon)

    os.waitpid(_in_child(between), 0)
    _last_for_ever()


def flee(fifo: str) -> None:
    """Every process forks and ends at once: whoever is found is already gone. They hand on a lock of the FIFO
    (Sandbox.is_held)."""
    import fcntl

    fcntl.flock(os.open(fifo, os.O_RDWR), fcntl.LOCK_SH)
    _tell(fifo, "agent")
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


def flee_and_linger(fifo: str) -> None:
    """Works for ever, with one beside it that flees."""
    _in_child(lambda: flee(fifo))
    _last_for_ever()


def breed(fifo: str) -> None:
    """A broad tree: three generations of three, each deaf and in its own session."""

    def grow(depth: int) -> None:
        _ignore_signals()
        os.setsid()
        for _ in range(3 if depth else 0):
            _in_child(lambda: grow(depth - 1))
        _tell(fifo, "member")
        _last_for_ever()

    for _ in range(3):
        _in_child(lambda: grow(2))
    _last_for_ever()


def flood(fifo: str, mebibytes: str) -> None:
    """More output than anyone will keep, then the verdict; the last of it when room was made for it."""
    import time

    _tell(fifo, "agent")
    line = b"x" * 1023 + b"\n"
    for left in range(int(mebibytes), 0, -1):
        while left == 1 and os.fstat(1).st_blocks * 512 >= (int(mebibytes) - left) << 20:
            time.sleep(0.01)
        os.write(1, line * 1024)
    os.write(1, b"DONE: at last\n")


def unlink(fifo: str) -> None:
    """Removes the file behind its own standard output."""
    os.unlink(os.readlink("/proc/self/fd/1"))
    print("DONE: and covered its tracks", flush=True)


def sit(fifo: str, seats: str, count: str) -> None:
    """Takes one of COUNT seats while it or its daemon lives, and says so where there was none left. Works until it
    is let go (`let_go`)."""
    attempt = os.environ["TENUTO_ATTEMPT"]
    seated = any(_take_seat(os.path.join(seats, str(number))) for number in range(int(count)))
    os.mkfifo(_end_of_work(seats, attempt))
    _tell(fifo, attempt if seated else "standing")
    daemonise(fifo)
    os.close(os.open(_end_of_work(seats, attempt), os.O_RDONLY))


def let_go(seats: str, attempt: str) -> int:
    """The one that sits there may end, as long as what is returned is open."""
    return os.open(_end_of_work(seats, attempt), os.O_RDWR | os.O_CLOEXEC)


def _end_of_work(seats: str, attempt: str) -> str:
    return os.path.join(seats, f"end-of-{attempt}")


def environment(fifo: str) -> None:
    """Its environment as the kernel has it."""
    with open("/proc/self/environ", "rb") as file:
        os.write(1, file.read())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
