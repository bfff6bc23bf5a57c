"""The program `tenuto`: find who answers, let them, end in the documented way.

A hot command (HOT) runs hundreds of times a day, inside somebody's agent session: it is called
before click is imported, and its modules come from one image (image.py). Everything else is click's, in cli/.
A hot command is a module `tenuto.entrypoints.<name>` with `main(words) -> exit status`.

The process ends with _exit: closing the last connection to the journal would checkpoint
it, outside the lock.

No `from __future__` here, in image.py and in the package itself: it imports a module that a hot command has no other use for.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

HOT = ("hook", "context", "flow", "staged", "feature")


def main() -> "NoReturn":
    open_streams()
    words = sys.argv[1:]
    if _name(words) not in HOT:
        leave(answer(words))
    import gc

    from tenuto.entrypoints.image import install

    gc.disable()  # the process ends before there is anything to collect
    image = install(__file__.rpartition("/tenuto/")[0], _name(words))
    status = answer(words)
    image.save()
    leave(status)


def open_streams() -> None:
    """A standard stream that the caller closed leads to /dev/null. Its number would else be that of the next file
    that is opened, and what is said could end up in a file of ours."""
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
    """By a host, which must not hear of our troubles; `tenuto hook declare` is a person's."""
    return _name(words) == "hook" and "declare" not in words


def answer(words: list[str]) -> int:
    """Run one command; whatever happens, an exit status comes back and the reason has been said."""
    try:
        hot = find_hot(words)
        if hot is None:
            from tenuto.entrypoints.cli.program import run

            return run(words)
        if words[0] == "-C":
            enter(words[1])
            words = words[2:]
        return hot(words[1:])
    except BrokenPipeError:
        return close_quietly()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it is, it is told, never thrown at people
        status = tell_unheard(error, 1) if _is_unheard(error) else tell(error, "--json" in words)
        return 0 if _is_call_of_a_hook(words) else status


def enter(folder: str) -> None:
    try:
        posix.chdir(folder)
    except OSError as error:
        from tenuto.errors import BadInput

        raise BadInput("bad-folder", f"{folder}: {error.strerror}", "name a folder that is there") from None


def find_hot(words: list[str]) -> "Callable[[list[str]], int] | None":
    """The command that is called without click; None where it is click's."""
    name = _name(words)
    if name not in HOT:
        return None
    try:
        module = __import__(f"tenuto.entrypoints.{name}", fromlist=["main"])
    except ModuleNotFoundError as error:
        if error.name != f"tenuto.entrypoints.{name}":
            raise
        return None  # not in this version: click says that there is no such command
    command: Callable[[list[str]], int] = module.main
    return command


def tell(error: BaseException, as_json: bool) -> int:
    """Say what went wrong: as JSON on standard output, otherwise to standard error."""
    import os

    from tenuto.entrypoints import envelope

    _veil()
    if os.environ.get("TENUTO_DEBUG"):
        import traceback

        traceback.print_exception(error)
    understood = envelope.understand(error)
    try:
        if as_json:
            try:
                sys.stdout.write(envelope.failure(understood) + "\n")
                return understood.exit_code
            except OSError:  # nobody can be told there; then at least here
                drop_output()
        sys.stderr.write(_coloured(envelope.explain(understood)))
    except OSError:
        pass  # nor here; the exit status says it
    return understood.exit_code


def _veil() -> None:
    """What went wrong may repeat what was said, and go wrong before any repository was opened."""
    from tenuto.entrypoints.opening import veil_here
    from tenuto.errors import TenutoError

    try:
        veil_here()
    except (OSError, TenutoError):
        pass  # there is no repository here, or its settings cannot be read


def _coloured(text: str) -> str:
    import os

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    word, bracket, rest = text.partition(" [")
    return text if plain else f"\x1b[1;31m{word}\x1b[0m{bracket}{rest}"


def leave(status: int) -> "NoReturn":
    """Everything said is out before the process ends; nobody is there to clean up after it."""
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


def tell_unheard(error: BaseException, status: int) -> int:
    """Standard output takes no answer. What the command did is done all the same: to repeat it could do it twice."""
    from tenuto.entrypoints.envelope import understand
    from tenuto.errors import TenutoError

    drop_output()
    done = "; what the command did is done" if status == 0 else ""
    message = f"the answer could not be written to standard output: {understand(error).message}{done}"
    tell(TenutoError("answer-lost", message, "look before you repeat it: tenuto list, tenuto status"), as_json=False)
    return status or 1


def close_quietly() -> int:
    """The reader went away (`tenuto list | head -1`): no message, and nothing more is written."""
    drop_output()
    return 1


def drop_output() -> None:
    posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 1)
