"""A SubagentStop hook as a process: payload in, state file updated, durable, out.

    bare    python -I -S -c pass: the least that any Python program takes
    hook    python -I -S tenuto/entrypoints/hook.py SubagentStop
    shell   bash, flock, jq and sync, doing the same to the same file (where jq is installed)
    typer   a program of typer and pydantic, doing the same to the same file

And how many instructions each of them is (callgrind): a number that no other work on the machine moves.
"""

from __future__ import annotations

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tenuto
from bench.environments import Unavailable, install, title
from bench.measured import (
    ROOT,
    Bars,
    Figure,
    Section,
    Table,
    folder,
    git_repository,
    interleave,
    median_ms,
    number,
    process,
    ratio,
)

HOOK = ROOT / "tenuto" / "entrypoints" / "hook.py"
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
WORDS = [sys.executable, "-I", "-S", str(HOOK), "SubagentStop"]
SESSION = "00000000-0000-4000-8000-000000000001"
ROUNDS, FEWER = 60, 20
BEFORE = (400, 4000)  # attempts that the run has behind it

SEED = {
    "agentName": "spec-writer",
    "completedPhase": "spec",
    "nextPhase": "plan",
    "filesCreated": [],
    "filesModified": [],
    "timestamp": "2025-11-29T14:30:00Z",
}


def measure() -> Section:
    compileall.compile_dir(ROOT / "tenuto", quiet=1)  # as an installation has it
    missing: list[str] = []
    with folder() as made:
        times = beside_others(made, missing)
    rows, bars = [], []
    for who in times:
        found, target = ratio(times, who, "bare"), "2.5, goal 2.0" if who == "hook" else ""
        rows.append([named(who), f"{median_ms(times, who):.1f} ms", number(found), target])
        bars.append((named(who), found))
    figures = [Figure("a hook as a fresh process", ratio(times, "hook", "bare"), 2.5, "x", "a bare interpreter")]
    tables = [Table("A hook, as a process", ["", "median", "to bare", "target"], rows)]
    tables.append(longer_runs())
    counted = count_instructions(missing)
    if counted:
        tables.append(counted)
    text = (
        "An agent's end reaches Tenuto as a new process: the host's payload on standard input, the run's state "
        "and its file "
        "updated, durable when the process ends. The others make the same change to the same file and nothing "
        "else: a shell script with a "
        "lock, one `jq` and `sync`; a program of typer and pydantic with a lock and two flushes."
    )
    return Section(
        "A hook",
        text,
        figures,
        tables,
        [Bars("hook.svg", "A hook as a fresh process, in bare interpreter starts", bars, 2.5)],
        missing,
    )


def named(who: str) -> str:
    if who == "shell":
        return f"durable bash + {jq_version()}"
    return {"bare": "bare interpreter", "hook": "Tenuto's hook", "typer": title("typer").replace(",", " +")}[who]


def beside_others(made: Path, missing: list[str]) -> dict[str, list[float]]:
    repository = prepare(made, ROUNDS + 1)
    payload = json.dumps(SEED).encode()
    works: dict[str, Callable[[], float]] = {
        "bare": lambda: process(BARE, repository),
        "hook": stopping(repository),
    }
    if shutil.which("jq") and shutil.which("flock"):
        script = ["bash", str(ROOT / "bench" / "hook_update.sh"), state_file(repository, "shell")]
        works["shell"] = lambda: process(script, repository, payload)
    else:
        missing.append("bash + jq: there is no jq (or no flock) here")
    try:
        python = str(install("typer"))
        program = [python, str(ROOT / "bench" / "peers" / "hook_with_typer.py"), state_file(repository, "typer")]
        works["typer"] = lambda: process(program, repository, payload)
    except (Unavailable, OSError) as reason:
        missing.append(f"typer + pydantic: {reason}")
    times = interleave(works, ROUNDS)
    check(repository, len(times["hook"]) + 1)
    for who in ("shell", "typer"):
        if who in works:
            assert json.loads(Path(state_file(repository, who)).read_text())["phases"]["plan"] == "in_progress", who
    return times


def state_file(repository: Path, who: str) -> str:
    """One of their own, as Tenuto's was when it began."""
    made = repository / who / "state.json"
    if not made.parent.is_dir():
        made.parent.mkdir()
        shutil.copy(repository / ".feature-state.json", made)
    return str(made)


def longer_runs() -> Table:
    """The state is decoded by every hook: what a run of thousands of attempts costs is shown, too."""
    rows = []
    for before in BEFORE:
        with folder() as made:
            repository = prepare(made, before + FEWER + 1, ended=before)
            stop = stopping(repository, before)
            times = interleave({"bare": lambda place=repository: process(BARE, place), "hook": stop}, FEWER)  # type: ignore[misc]
            rows.append([f"{before:,}", f"{median_ms(times, 'hook'):.1f} ms", number(ratio(times, "hook", "bare"))])
    return Table("A hook in a long run", ["attempts behind it", "median", "to bare"], rows)


def stopping(repository: Path, first: int = 0) -> Callable[[], float]:
    numbers = iter(range(first, 1 << 30))
    return lambda: process(WORDS, repository, stop(repository, next(numbers)))


def prepare(made: Path, attempts: int, ended: int = 0) -> Path:
    """A feature with as many agents under way as there will be stops, and those before them done."""
    workspace = tenuto.open(str(git_repository(made)))
    workspace.feature_state.start("Bench", "What a hook costs", session=SESSION)
    with workspace.turn() as turn:
        for place in range(attempts):
            name = f"agent-{place}"
            turn.do(
                "bench",
                {
                    "do": "DispatchAttempt",
                    "attempt": name,
                    "role": "spec-writer",
                    "agent": "claude",
                    "extra": {"session": SESSION, "depth": 1},
                },
            )
            if place < ended:
                turn.do(
                    "bench",
                    {
                        "do": "FinishAttempt",
                        "attempt": name,
                        "status": "completed",
                        "verdict": "DONE",
                        "summary": "specified",
                    },
                )
    return made


def stop(repository: Path, place: int) -> bytes:
    return json.dumps(
        {
            "session_id": SESSION,
            "transcript_path": str(repository / "t.jsonl"),
            "cwd": str(repository),
            "permission_mode": "bypassPermissions",
            "agent_id": f"agent-{place}",
            "agent_type": "feature-dev-plus:spec-writer",
            "hook_event_name": "SubagentStop",
            "stop_hook_active": False,
            "last_assistant_message": "DONE: specified",
            "background_tasks": [],
            "session_crons": [],
        }
    ).encode()


def check(repository: Path, stops: int) -> None:
    """A hook that did nothing would be fast."""
    run = tenuto.open(str(repository)).load("bench")
    ended = [attempt for attempt in run["attempts"].values() if attempt["status"] == "completed"]
    assert len(ended) == stops, f"{len(ended)} of {stops} were recorded"
    assert json.loads((repository / ".feature-state.json").read_text())["phases"]["spec"] == "completed"


def count_instructions(missing: list[str]) -> Table | None:
    if not shutil.which("valgrind"):
        missing.append("instruction counts: there is no valgrind here")
        return None
    with folder() as made:
        repository = prepare(made, 3)
        process(WORDS, repository, stop(repository, 0))  # the first one of a repository does more
        try:
            bare = instructions(BARE, repository, b"")
            hook = instructions(WORDS, repository, stop(repository, 1))
        except (OSError, subprocess.CalledProcessError, ValueError) as reason:
            missing.append(f"instruction counts: valgrind does not run here ({reason})")
            return None
        check(repository, 2)
    rows = [
        ["bare interpreter", f"{bare / 1e6:.1f} million", "1"],
        ["Tenuto's hook", f"{hook / 1e6:.1f} million", number(hook / bare)],
    ]
    return Table(
        "Instructions (callgrind)",
        ["", "executed", "to bare"],
        rows,
        "The kernel's part (files, flushes) is not counted.",
    )


def instructions(words: list[str], place: Path, payload: bytes) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
    done = subprocess.run(
        command, input=payload, cwd=place, env={"PATH": os.environ["PATH"]}, capture_output=True, check=True
    )
    found = re.search(rb"Collected : (\d+)", done.stderr)
    if not found:
        raise ValueError(done.stderr[-500:].decode("utf-8", "replace"))
    return int(found[1])


def jq_version() -> str:
    return subprocess.run(["jq", "--version"], check=True, capture_output=True, text=True).stdout.strip()
