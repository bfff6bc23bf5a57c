"""A model in a person's own session: nobody started it for a run, its program has marked its processes. It may lead
a run that is led by hand, and pass a person's word on there, by the seeds; the gate of a pipeline it may not decide,
nor get around, nor let a run go on that follows one and is paused.

    tries(full)             what is tried: (the program's mark, the surface)
    attack(made, tries)     beside the waiting runs; what shows that one of them went on

The marks are written down here once more: a prover that asked the product for them would miss the one that the product
forgot.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from prove import attacker, gated
from prove.frame import environment, python

MARKS = (
    "CLAUDECODE",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "GEMINI_CLI",
    "COPILOT_AGENT_SESSION_ID",
    "OPENCODE",
    "CURSOR_AGENT",
    "QWEN_CODE",
    "GOOSE_TERMINAL",
    "AI_AGENT",
)
LED_BY_HAND = ("by-hand", "t-1")  # a feature's approval is a person's alone


def tries(full: bool) -> list[Any]:
    """Every surface with every mark; a sample takes the shortest way with each."""
    said = (*attacker.WORDS, *attacker.BY_HAND)
    surfaces: list[Any] = [["tenuto", words] for words in (said if full else said[:1])]
    surfaces += [["library", source] for source in attacker.LIBRARY if full and "'x'" in source]
    return [[mark, surface] for surface in surfaces for mark in MARKS]


def attack(made: Path, listed: list[Any]) -> list[str]:
    found: list[str] = []
    root = _waiting(made, "in-sessions")
    backup = made.parent / "backup.jsonl"
    if not backup.exists():
        attacker.write_a_backup(made, backup)
    for number, (mark, (kind, what)) in enumerate(listed):
        words = (
            ["-c", attacker.DECIDE.format(package=attacker.PACKAGE, root=str(root)) + what]
            if kind == "library"
            else ["-m", "tenuto", *what]
        )
        said = _say([word.replace("{folder}", str(made.parent)) for word in words], root, **{mark: "1"})
        if passed := [*gated.passed(root), *_gone_on(root)]:
            found.append(f"in a session ({mark}): {what}: {passed}: {said}")
            root = _waiting(made, f"in-sessions-{number}")
    if _say(["-m", "tenuto", "approve", gated.RUN], root)[:1] != "0":
        found.append("in a session: afterwards a person cannot approve any more")
    return found


def _waiting(made: Path, name: str) -> Path:
    root = gated.copy(made, name)
    attacker.lead_by_hand(root)
    return root


def _gone_on(root: Path) -> list[str]:
    return [
        words
        for words in attacker.others(root)
        if not words.startswith(tuple(f"{run} was decided" for run in LED_BY_HAND))
    ]


def _say(words: list[str], root: Path, **marks: str) -> str:
    done = subprocess.run(
        python(*words),
        cwd=root,
        env=environment(**marks),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return f"{done.returncode}: {done.stdout.strip()[-160:]}"
