"""The context manager's figures, side by side in one run.

    python bench/context.py                 everything
    python bench/context.py --rounds 40     more rounds
    python bench/context.py --small         a tenth of the sizes, for a first look

Commands as a process are compared with a bare interpreter (`python -I -S -c pass`), interleaved, medians; LIST and
QUERY are timed inside a process at size. Ratios travel between machines, milliseconds do not.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tenuto

BARE = [sys.executable, "-I", "-S", "-c", "pass"]
BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tenuto.entrypoints.launch import main; main()"
TENUTO = [sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), "context"]

SPEC = """# Spec\n\n## Signatures\n\n```ts\nexport function parse(text: string): Row[];\n```\n
## Edge cases\n\n- An empty text gives no rows.\n- A row with too few cells is refused.\n
## Background\n\nLong ago somebody wanted rows.\n"""
# (command, what it may cost in bare starts); %d is the round
COMMANDS = [
    ("INIT task: task %d", 2.5),
    ("START_PHASE phase: architect", 2.5),
    ("END_PHASE phase: architect status: success", 2.5),
    ("SET_GATE gate: design prompt: Review artifacts: spec.md", 2.5),
    ("RESUME decision: approve", 2.5),
    ("PAUSE reason: stuck recommendations: a, b", 2.5),
    ("RESUME decision: retry", 2.5),
    ("LIST", 2.5),
    (f"STORE phase: spec content: {SPEC}", 6),
    ("RETRIEVE for_phase: implementation", 6),
    ("QUERY question: too few cells", 6),
    ("SUMMARY", 6),
    ("METRICS format: detailed", 6),
    ("HISTORY filter: task-0", 6),
]


def run(words: list[str], place: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(words, check=False, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    taken = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{words[-1]}: {done.stderr.decode()}")
    return taken


def processes(rounds: int) -> bool:
    times: dict[str, list[float]] = {"bare": []}
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/.git")
        for number in range(-2, rounds):
            for text, _ in COMMANDS:
                bare = run(BARE, place)
                taken = run([*TENUTO, text.replace("%d", str(number + 2))], place)
                if number >= 0:  # the first rounds fill caches
                    times["bare"].append(bare)
                    times.setdefault(text, []).append(taken)
    limit = statistics.median(times["bare"])
    print(f"\nas a process, {rounds} rounds; a bare interpreter takes {limit * 1000:.1f} ms = 1.00\n")
    print(f"{'command':<14}{'ratio':>7}{'allowed':>9}{'ms':>8}")
    good = True
    for text, allowed in COMMANDS:
        median = statistics.median(times[text])
        ratio = median / limit
        good &= ratio <= allowed
        name = text.split()[0] + (f" {text.split()[-1]}" if text.startswith("RESUME") else "")
        print(f"{name:<14}{ratio:>7.2f}{allowed:>9}{median * 1000:>8.1f}{'' if ratio <= allowed else '  too slow'}")
    return good


def timed(what: str, times: int, call: Callable[[], object], allowed: float) -> bool:
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    median, worst = statistics.median(taken) * 1000, sorted(taken)[int(times * 0.95)] * 1000
    print(f"{what:<52}{median:>8.3f} ms{worst:>9.3f} ms at most in 95 %{'' if median <= allowed else '   too slow'}")
    return median <= allowed


def unhurried(workspace: tenuto.Workspace) -> None:
    """Filling a repository is not what is measured: no flush for each entry."""
    workspace.journal.connection().execute("PRAGMA synchronous=OFF")  # type: ignore[attr-defined]
    workspace.journal._durable = True  # type: ignore[attr-defined]


def listing(tasks: int) -> bool:
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/.git")
        workspace = tenuto.open(place)
        unhurried(workspace)
        start = time.perf_counter()
        for number in range(tasks):
            workspace.context.init(f"Task number {number}")
        print(f"\n{tasks} tasks begun, {(time.perf_counter() - start) / tasks * 1000:.2f} ms each without flushing\n")
        time.sleep(0.1)
        good = timed(f"LIST, newest 50 of {tasks}", 300, lambda: workspace.context.list(limit=50), 1.0)
        timed(f"LIST, all {tasks}", 5, lambda: workspace.context.list(), 1e9)
        return good


def querying(artifacts: int) -> bool:
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"]
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(f"{place}/.git")
        workspace = tenuto.open(place)
        unhurried(workspace)
        workspace.context.init("task")
        size = 0
        for start in range(0, artifacts, 1000):
            with workspace.journal.write() as transaction:
                for number in range(start, min(artifacts, start + 1000)):
                    body = " ".join(chance.choices(words, k=510))
                    rare = f" zebra{number % 5000}" if number % 10 == 0 else ""
                    size += len(body)
                    path = f"docs/orchestrator/context/tasks/task-{number}/spec.md"
                    transaction.index(f"task-{number}", "spec", path, [("Spec", body + rare)])
        print(f"\n{artifacts} artifacts indexed, {size / 1e6:.0f} MB of text\n")
        context = workspace.context
        questions = iter(range(0, 1 << 30, 10))
        good = timed(
            f"QUERY, a rare term in {artifacts} artifacts", 300,
            lambda: context.query(f"zebra{next(questions) % 5000}"), 1.0,
        )  # fmt: skip
        timed("QUERY, a term in every fourth", 10, lambda: context.query("bab"), 1e9)
        timed("QUERY, a question", 10, lambda: context.query("where is the bab of zebra10 stored?"), 1e9)
        return good


def main(words: tuple[str, ...] = ()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args(words)
    shrink = 10 if asked.small else 1
    good = [processes(asked.rounds), listing(10_000 // shrink), querying(50_000 // shrink)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:])))
