"""The program `tenuto`: find the command, run it, end in the documented way.

A hot command (HOT) runs hundreds of times a day, inside a person's agent session: it is called before click is
imported. Everything else is click's, in cli/. A hot command is a module of this folder with
`main(words) -> exit status`.

The process ends with _exit: closing the last connection to the journal would checkpoint it, outside the lock.
"""

from __future__ import annotations

import posix
import sys

from tenuto.entrypoints.speak import close_quietly, enter, tell, tell_unheard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    HotCommand = Callable[[list[str]], int]


def main() -> NoReturn:
    open_streams()
    words = sys.argv[1:]
    if _name(words) in HOT:
        import gc

        gc.disable()  # the process ends before there is anything to collect
    leave(answer(words))


def open_streams() -> None:
    """A standard stream that the caller closed leads to /dev/null. Its number would else be that of the next file
    that is opened, and output could end up in that file."""
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            posix.set_inheritable(posix.open("/dev/null", posix.O_RDWR), True)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115  # open until the end


def _name(words: list[str]) -> str:
    at = 2 if words[:1] == ["-C"] else 0
    return words[at] if len(words) > at else ""


def _is_call_of_a_hook(words: list[str]) -> bool:
    """Does a host call? It must see no failure of Tenuto; `tenuto hook declare` is called by a person."""
    return _name(words) == "hook" and "declare" not in words


def answer(words: list[str]) -> int:
    """Run one command; whatever happens, an exit status comes back and the reason has been said."""
    try:
        hot = find_hot(words)
        if hot is None:
            from tenuto.entrypoints.cli.program import run

            return run(words, HOT)
        if words[0] == "-C":
            enter(words[1])
            words = words[2:]
        return hot(words[1:])
    except BrokenPipeError:
        return close_quietly()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it is, it is told, never thrown at people
        status = tell_unheard(error, 1) if _is_unheard(error) else tell(error, "--json" in words)
        return 0 if _is_call_of_a_hook(words) else status


def find_hot(words: list[str]) -> HotCommand | None:
    """The command that is called without click; None where it is click's."""
    return HOT.get(_name(words))


def _hook(words: list[str]) -> int:
    from tenuto.entrypoints.hook import main

    return main(words)


def _context(words: list[str]) -> int:
    from tenuto.entrypoints.context import main

    return main(words)


def _flow(words: list[str]) -> int:
    from tenuto.entrypoints.flow import main

    return main(words)


def _staged(words: list[str]) -> int:
    from tenuto.entrypoints.staged import main

    return main(words)


def _feature(words: list[str]) -> int:
    from tenuto.entrypoints.feature import main

    return main(words)


HOT: dict[str, HotCommand] = {
    "hook": _hook,
    "context": _context,
    "flow": _flow,
    "staged": _staged,
    "feature": _feature,
}


def leave(status: int) -> NoReturn:
    """Everything said is out before the process ends. Memory is not given back, and the journal is not closed; folders
    that were made for this process alone (files/git.py) are removed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = close_quietly()
    except OSError as error:
        status = tell_unheard(error, status)
    try:
        sys.stderr.flush()
    except OSError:
        pass
    if "atexit" in sys.modules:
        sys.modules["atexit"]._run_exitfuncs()
    posix._exit(status)


def _is_unheard(error: BaseException) -> bool:
    """Was it standard output that failed? What it would not take is still to be said, and fails again."""
    if not isinstance(error, OSError) or error.filename:
        return False
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False
