"""A person's word at a gate, typed into an agent program: `/tenuto:approve [RUN] [FEEDBACK]`, `:revise`, `:reject`.

The program tells what its user typed before any model sees it. The words go to `tenuto approve` itself, and what came of it is
the answer: the prompt ends there, no model is asked, and no token is spent.

That it was a person is taken from three signs, all of them the program's own: it says that somebody is at this session, it is our
parent (it called this hook, no shell of a model did), and it gives hooks what shells do not get. Without them nothing is decided, and
the prompt goes on to the model, which is told to send the user to a terminal. Like all of workspace/guard.py this keeps
mistakes out, not malice; decisions that must be signed are still refused.
"""

from __future__ import annotations

import posix

from tenuto.drivers.hooks import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.hosts.hearing import Heard
    from tenuto.workspace.turn import Workspace

PREFIX = "/tenuto:"
DECISIONS = ("approve", "revise", "reject")
_SECONDS = 25
_START = "import sys; sys.path.append(sys.argv.pop(1)); from tenuto.entrypoints.launch import main; main()"


def decision_of(text: str) -> tuple[str, str]:
    """The decision and the words after it; ("", "") where none was typed."""
    first, _, rest = text.strip().partition(" ")
    word = first.removeprefix(PREFIX)
    return (word, rest.strip()) if first != word and word in DECISIONS else ("", "")


def decided(workspace: Workspace, heard: Heard) -> str:
    decision, words = decision_of(heard["text"])
    if not decision or heard["agent"] or not is_attended():
        return ""
    with workspace.journal.read() as reader:
        known = [run for run, _ in reader.open_runs()]
        found = find(reader, workspace, heard) or ""
    from tenuto.hosts.answers import block

    return block(heard, _passed_on(workspace.root, [decision, *arguments(words, known, found)]))


def is_attended() -> bool:
    known = posix.environ
    return (
        known.get(b"CLAUDE_CODE_SESSION_ATTENDED") == b"1"
        and known.get(b"CLAUDE_PID") == str(posix.getppid()).encode()
        and b"CLAUDE_PROJECT_DIR" in known
    )


def arguments(words: str, known: list[str], found: str) -> list[str]:
    """For the program: the run first, then its options; words that are neither are the feedback."""
    from shlex import split

    first, _, rest = words.partition(" ")
    run, rest = (first, rest.strip()) if first in known else (found, words)
    if rest.startswith("-"):
        try:
            given = split(rest)
        except ValueError:
            given = rest.split()
    else:
        given = ["--feedback", rest] if rest else []
    return [*([run] if run else []), *given]


def _passed_on(root: str, words: list[str]) -> str:
    import sys
    from os import environ
    from subprocess import DEVNULL, PIPE, STDOUT, SubprocessError, run

    from tenuto.drivers.hooks.changes import GUARD
    from tenuto.hosts.surroundings import program

    # The person speaks, not the program that they typed it into.
    kept = {name: value for name, value in environ.items() if not program({name: value})}
    package = __file__.rpartition("/tenuto/")[0]
    command = [sys.executable, "-I", "-c", _START, package, "-C", root, *words]
    try:
        done = run(
            command, check=False, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, timeout=_SECONDS, env={**kept, GUARD: "1"}
        )
    except (OSError, SubprocessError) as error:
        return f"nothing was decided: {error}. In a terminal: tenuto {' '.join(words)}"
    return done.stdout.decode("utf-8", "replace").strip().replace("tenuto run   (go on)", "/tenuto:resume   (go on)")
