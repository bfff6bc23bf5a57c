"""How cost grows with the number of runs: LIST, QUERY and RETRIEVE in one process, and the memory of a process.

    LIST       the newest 50               beside: reading every manifest below docs/
    QUERY      a word that one run has     beside: grep through every file below docs/
    RETRIEVE   a pack for the current run

One repository grows from 100 to 1,000 to 10,000 runs, each with a specification of its own; and a second one holds 50,000 artifacts.
"""

from __future__ import annotations

import json
import os
import posix
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tenuto
from bench.measured import ROOT, Curves, Figure, Section, Table, calls, folder, number

RUNS = (100, 1_000, 10_000)
ARTIFACTS = 50_000
TEXTS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"]
SPEC = """# Specification of part {number}

## Signatures

```python
def part_{number}(rows: list[Row]) -> int: ...
```

## Edge cases

- no rows: the answer is 0
- zebra{number}: refused by name

## Background

{prose}
"""
Found = dict[int, dict[str, float]]


def measure() -> Section:
    flush = posix.fsync
    try:
        with folder() as made:
            found, begun = grown(made)
        with folder() as made:
            large = large_index(made)
    finally:
        posix.fsync = flush
    last = found[RUNS[-1]]
    figures = [
        Figure("LIST, newest 50 of 10,000 runs, in process", last["LIST"], 1.0, "ms"),
        Figure("QUERY, a rare word in 10,000 runs, in process", last["QUERY"], 1.0, "ms"),
        Figure("QUERY, a rare word in 50,000 artifacts, in process", large["rare"], 1.0, "ms"),
        Figure("RETRIEVE at 10,000 runs, to 100", last["RETRIEVE"] / found[RUNS[0]]["RETRIEVE"], 1.5, "x", "as long"),
        Figure(
            "memory of a process at 10,000 runs, to 100", last["memory"] / found[RUNS[0]]["memory"], 1.5, "x", "as much"
        ),
    ]
    names = ["LIST", "reading every manifest", "QUERY", f"{searcher()} through every file", "RETRIEVE"]
    rows = [[f"{runs:,}", *(number(one[name], "ms") for name in names)] for runs, one in found.items()]
    sizes = [[f"{runs:,}", f"{one['memory']:.1f} MB", f"{one['journal']:.1f} MB"] for runs, one in found.items()]
    tables = [
        Table("In one process, by the number of runs", ["runs", *names], rows, f"A run was begun, and its specification stored, in {begun * 1000:.1f} ms without flushing."),
        Table("Memory", ["runs", "a process that lists, queries and retrieves", "journal on disk"], sizes, f"A bare interpreter takes {bare_memory():.1f} MB."),
        Table(
            f"QUERY in {ARTIFACTS:,} artifacts, {large['megabytes']:.0f} MB of text", ["a rare word", "a word in every fourth", "a question"],
            [[number(large[name], "ms") for name in ("rare", "common", "question")]],
        ),
    ]  # fmt: skip
    series = {(f"Tenuto {name}" if name.isupper() else name): [one[name] for one in found.values()] for name in names}
    plot = Curves(
        "growth.svg",
        "LIST, QUERY and RETRIEVE by the number of runs",
        "runs",
        "ms",
        [float(one) for one in RUNS],
        series,
    )
    text = "Listing and searching are answered from indexes in the journal, whatever the files look like; a pack is made from one run alone."
    return Section("Growth", text, figures, tables, [plot])


def unhurried(made: Path) -> Any:
    """Filling a repository is not what is measured: no flush for each entry, none for each file."""
    posix.fsync = lambda file: None  # type: ignore[assignment]
    os.mkdir(made / ".git")
    workspace = tenuto.open(str(made))
    journal: Any = workspace.journal
    journal.connection().execute("PRAGMA synchronous=OFF")
    return workspace


def grown(made: Path) -> tuple[Found, float]:
    workspace, found, spent = unhurried(made), {}, []
    chance, place = random.Random(7), 0
    for runs in RUNS:
        while place < runs:
            prose = " ".join(chance.choices(TEXTS, k=200))
            begun = time.perf_counter()
            workspace.context.init(f"Part number {place}")
            workspace.context.store("spec", SPEC.format(number=place, prose=prose))
            spent.append(time.perf_counter() - begun)
            place += 1
        found[runs] = look(made, workspace, runs)
    return found, statistics.median(spent)


def look(made: Path, workspace: Any, runs: int) -> dict[str, float]:
    context, wanted = workspace.context, iter(range(3, 1 << 30, 7))
    docs = made / "docs"

    def query() -> Any:
        answer = context.query(f"zebra{next(wanted) % runs}")
        assert answer["status"] == "success", answer
        return answer

    def manifests() -> None:
        read = [json.loads(path.read_text()) for path in docs.rglob("manifest.json")]
        assert len(read) == runs, len(read)
        read.sort(key=lambda manifest: str(manifest.get("created_at", "")))

    def search() -> None:
        subprocess.run(
            [searcher(), "-rl" if searcher() == "grep" else "-l", f"zebra{runs - 1}", str(docs)],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    assert len(context.list(limit=50)) == 50
    times = {
        "LIST": calls(lambda: context.list(limit=50), 200), "QUERY": calls(query, 200),
        "RETRIEVE": calls(lambda: context.retrieve("implementation"), 20), "reading every manifest": calls(manifests, 2 if runs > 1000 else 5),
        f"{searcher()} through every file": calls(search, 2 if runs > 1000 else 5),
    }  # fmt: skip
    found = {name: taken * 1000 for name, taken in times.items()}
    workspace.journal.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    found["memory"] = memory(made)
    found["journal"] = os.stat(workspace.journal.path).st_size / 1e6
    return found


def searcher() -> str:
    return "rg" if shutil.which("rg") else "grep"


# ---- memory ----------------------------------------------------------------------------------------

USER = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
context = tenuto.open(sys.argv[2]).context
assert len(context.list(limit=50)) == 50
context.query("zebra17"); context.retrieve("implementation")
"""
# Not ru_maxrss: a process that was forked counts what its parent had.
PEAK = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"


def memory(made: Path) -> float:
    return peak([sys.executable, "-I", "-c", USER + PEAK, str(ROOT), str(made)])


def bare_memory() -> float:
    return peak([sys.executable, "-I", "-c", PEAK])


def peak(words: list[str]) -> float:
    """MB."""
    return int(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout) * 1024 / 1e6


# ---- a large index ---------------------------------------------------------------------------------


def large_index(made: Path) -> dict[str, float]:
    workspace, chance, size = unhurried(made), random.Random(7), 0
    workspace.context.init("task")
    for first in range(0, ARTIFACTS, 1000):
        with workspace.journal.write() as transaction:
            for place in range(first, first + 1000):
                body = " ".join(chance.choices(TEXTS, k=510))
                rare = f" zebra{place % 5000}" if place % 10 == 0 else ""
                size += len(body)
                path = f"docs/orchestrator/context/tasks/task-{place}/spec.md"
                transaction.index(f"task-{place}", "spec", path, [("Spec", body + rare)])
    context, questions = workspace.context, iter(range(0, 1 << 30, 10))
    return {
        "rare": calls(lambda: context.query(f"zebra{next(questions) % 5000}"), 300) * 1000,
        "common": calls(lambda: context.query("bab"), 10) * 1000,
        "question": calls(lambda: context.query("where is the bab of zebra10 stored?"), 10) * 1000,
        "megabytes": size / 1e6,
    }
