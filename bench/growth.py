"""How cost grows with the number of runs: LIST, QUERY and RETRIEVE in one process, and the memory of a process.

    LIST       the newest 50               limit: 50 rows from an index    beside: reading every manifest below docs/
    QUERY      a word that one run has     limit: bare FTS5                beside: ripgrep (or grep) through every file
               below docs/
    RETRIEVE   a pack for the current run

One repository grows from 100 to 1,000 to 10,000 runs, each with a specification of its own; a copy is put by at each
size, and the copies take turns. A second one holds 50,000 artifacts.
"""

from __future__ import annotations

import hashlib  # noqa: F401  # a program that stays has it; Tenuto uses what is there
import json
import os
import posix
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tenuto
from bench.measured import (
    ROOT,
    Bars,
    Curves,
    Figure,
    Section,
    Table,
    folder,
    git_repository,
    interleave,
    median_ms,
    number,
    ratio,
    timed,
)

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
QUICK_ROUNDS, SLOW_ROUNDS = 100, 3
MANIFESTS = "reading every manifest"
Found = dict[int, dict[str, float]]


def measure() -> Section:
    with folder() as made:
        found, begun = sizes(made)
    with folder() as made:
        large = large_index(made)
    last = found[RUNS[-1]]
    figures = [
        Figure("LIST, newest 50 of 10,000 runs, in process", last["LIST"], 1.0, "ms"),
        Figure("QUERY, a rare word in 10,000 runs, in process", last["QUERY"], 1.0, "ms"),
        Figure("QUERY, a rare word in 50,000 artifacts, in process", large["rare"], 1.0, "ms"),
        Figure("RETRIEVE at 10,000 runs, to 100", last["RETRIEVE grown"], 1.5, "x", "as long"),
        Figure(
            "memory of a process at 10,000 runs, to 100", last["memory"] / found[RUNS[0]]["memory"], 1.5, "x", "as much"
        ),
    ]
    names = ["LIST", "limit: an index", MANIFESTS, "QUERY", "limit: FTS5", through_files(), "RETRIEVE"]
    rows = [[f"{runs:,}", *(number(one[name], "ms") for name in names)] for runs, one in found.items()]
    took = [[f"{runs:,}", f"{one['memory']:.1f} MB", f"{one['journal']:.1f} MB"] for runs, one in found.items()]
    tables = [
        Table(
            "In one process, by the number of runs",
            ["runs", *names],
            rows,
            f"A run was begun, and its specification stored, in {begun * 1000:.1f} ms without flushing.",
        ),
        Table(
            "Memory",
            ["runs", "a process that lists, queries and retrieves", "journal on disk"],
            took,
            f"A bare interpreter takes {bare_memory():.1f} MB.",
        ),
        Table(
            f"QUERY in {ARTIFACTS:,} artifacts, {large['megabytes']:.0f} MB of text",
            ["", "median", "to bare FTS5"],
            [[name, number(large[key], "ms"), number(large[f"{key} to limit"])] for key, name in QUESTIONS.items()],
        ),
    ]
    series = {(f"Tenuto {name}" if name.isupper() else name): [one[name] for one in found.values()] for name in names}
    plots: list[Bars | Curves] = [
        Curves(
            "growth.svg",
            "LIST, QUERY and RETRIEVE by the number of runs",
            "runs",
            "ms",
            [float(one) for one in RUNS],
            series,
            1.0,
            "LIST and QUERY",
        ),
        Bars(
            "list.svg",
            "LIST, newest 50 of 10,000 runs, to 50 rows from an index",
            [
                ("50 rows from an index", 1.0),
                ("Tenuto LIST", last["LIST to limit"]),
                (MANIFESTS, last[f"{MANIFESTS} to limit"]),
            ],
        ),
        Bars(
            "query.svg",
            f"A rare word in {ARTIFACTS:,} artifacts, to bare FTS5",
            [
                ("bare FTS5", 1.0),
                ("Tenuto QUERY", large["rare to limit"]),
                (through_files(), large["files to limit"]),
            ],
        ),
    ]
    text = (
        "Listing and searching are answered from indexes in the journal, whatever the files look like; a pack "
        "is made from one run alone. "
        "LIST also looks whether somebody changed one of the files that it shows, and everything that is read "
        "is compared with its hash; "
        "the limits do neither. The program that asks has `hashlib` loaded."
    )
    return Section("Growth", text, figures, tables, plots)


QUESTIONS = {
    "limit": "limit: a rare word, bare FTS5",
    "rare": "a rare word",
    "common": "a word in every fourth",
    "question": "a question",
    "files": "a rare word, through every file",
}


@contextmanager
def unhurried(made: Path) -> Iterator[Any]:
    """Filling a repository is not what is measured: no flush for each entry, none for each file."""
    flush = posix.fsync
    posix.fsync = lambda file: None  # type: ignore[assignment]
    try:
        workspace = tenuto.open(str(git_repository(made)))
        workspace.journal.connection().execute("PRAGMA synchronous=OFF")  # type: ignore[attr-defined]
        yield workspace
        workspace.journal.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # type: ignore[attr-defined]
    finally:
        posix.fsync = flush


def sizes(made: Path) -> tuple[Found, float]:
    """Opened anew, each of them, by a program that flushes as every program does."""
    spent, chance = [], random.Random(7)
    for before, runs in zip((0, *RUNS), RUNS, strict=False):
        if before:
            shutil.copytree(made / str(before), made / str(runs))
        with unhurried(made / str(runs)) as workspace:
            for place in range(before, runs):
                prose = " ".join(chance.choices(TEXTS, k=200))
                begun = time.perf_counter()
                workspace.context.init(f"Part number {place}")
                workspace.context.store("spec", SPEC.format(number=place, prose=prose))
                spent.append(time.perf_counter() - begun)
    return look({runs: made / str(runs) for runs in RUNS}), statistics.median(spent)


def look(places: dict[int, Path]) -> Found:
    quick: dict[str, Callable[[], object]] = {}
    slow: dict[str, Callable[[], object]] = {}
    for runs, place in places.items():
        workspace = tenuto.open(str(place))
        for name, work in looks(workspace, runs).items():
            quick[f"{name} {runs}"] = work
        for name, work in others(place / "docs", runs).items():
            slow[f"{name} {runs}"] = work
    times = interleave({name: timed(work) for name, work in quick.items()}, QUICK_ROUNDS)
    beside = {name: work for name, work in quick.items() if name.startswith("limit")}
    others_times = interleave({name: timed(work) for name, work in (slow | beside).items()}, SLOW_ROUNDS)
    found: Found = {}
    for runs, place in places.items():
        one = {name: median_ms(times, f"{name} {runs}") for name in (*LOOKS, *LIMITS)}
        one |= {name: median_ms(others_times, f"{name} {runs}") for name in (MANIFESTS, through_files())}
        one["LIST to limit"] = ratio(times, f"LIST {runs}", f"{LIMITS[0]} {runs}")
        one[f"{MANIFESTS} to limit"] = ratio(others_times, f"{MANIFESTS} {runs}", f"{LIMITS[0]} {runs}")
        one["RETRIEVE grown"] = ratio(times, f"RETRIEVE {runs}", f"RETRIEVE {RUNS[0]}")
        one["memory"] = memory(place)
        one["journal"] = os.stat(tenuto.open(str(place)).journal.location).st_size / 1e6
        found[runs] = one
    return found


LOOKS, LIMITS = ("LIST", "QUERY", "RETRIEVE"), ("limit: an index", "limit: FTS5")


def looks(workspace: Any, runs: int) -> dict[str, Callable[[], object]]:
    context, database, wanted = workspace.context, workspace.journal.connection(), iter(range(3, 1 << 30, 7))

    def query() -> None:
        assert context.query(f"zebra{next(wanted) % runs}")["passages"]

    def listed() -> None:
        assert len(context.list(limit=50)) == 50

    def index() -> None:
        assert (
            len(database.execute("SELECT id, created, card FROM run ORDER BY created DESC LIMIT 50").fetchall()) == 50
        )

    return {
        "LIST": listed,
        "QUERY": query,
        "RETRIEVE": lambda: context.retrieve("implementation"),
        LIMITS[0]: index,
        LIMITS[1]: lambda: bare_search(database, f"zebra{next(wanted) % runs}"),
    }


def bare_search(database: Any, word: str) -> None:
    """The five best passages, from the same index, and nothing else."""
    rows = database.execute(
        "SELECT p.path, p.heading, p.body FROM (SELECT rowid AS id, rank FROM passage_text WHERE passage_text MATCH ? ORDER BY rank LIMIT 5) m"  # noqa: E501
        " JOIN passage p ON p.id=m.id",
        (f'"{word}"',),
    ).fetchall()
    assert rows


def others(docs: Path, runs: int) -> dict[str, Callable[[], object]]:
    def manifests() -> None:
        read = [json.loads(path.read_bytes()) for path in docs.rglob("manifest.json")]
        assert len(read) == runs, len(read)
        read.sort(key=lambda manifest: str(manifest.get("created_at", "")))

    return {MANIFESTS: manifests, through_files(): lambda: search_files(docs, f"zebra{runs - 1}")}


def search_files(docs: Path, word: str) -> None:
    words = ["rg", "-l", "--no-ignore", word] if searcher() == "rg" else ["grep", "-rl", word]
    subprocess.run([*words, str(docs)], check=True, stdout=subprocess.DEVNULL)


def through_files() -> str:
    return f"{searcher()} through every file"


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
    """In the journal, and as files for those who search through files."""
    chance, size, docs = random.Random(7), 0, "docs/orchestrator/context/tasks"
    with unhurried(made / "large") as workspace:
        workspace.context.init("task")
        for first in range(0, ARTIFACTS, 1000):
            with workspace.journal.write() as transaction:
                for place in range(first, first + 1000):
                    body = " ".join(chance.choices(TEXTS, k=510))
                    body += f" zebra{place % 5000}" if place % 10 == 0 else ""
                    size += len(body)
                    transaction.index(f"task-{place}", "spec", f"{docs}/task-{place}/spec.md", [("Spec", body)])
                    (made / "files" / f"task-{place}").mkdir(parents=True)
                    (made / "files" / f"task-{place}" / "spec.md").write_text(f"# Spec\n\n{body}\n")
    workspace = tenuto.open(str(made / "large"))
    context, database, questions = workspace.context, workspace.journal.connection(), iter(range(0, 1 << 30, 10))  # type: ignore[attr-defined]
    quick = {
        "limit": lambda: bare_search(database, f"zebra{next(questions) % 5000}"),
        "rare": lambda: context.query(f"zebra{next(questions) % 5000}"),
    }
    slow = {
        "limit": quick["limit"],
        "common": lambda: context.query("bab"),
        "question": lambda: context.query("where is the bab of zebra10 stored?"),
        "files": lambda: search_files(made / "files", "zebra10"),
    }
    found = {"megabytes": size / 1e6}
    for works, rounds in ((slow, 5), (quick, QUICK_ROUNDS)):
        times = interleave({name: timed(work) for name, work in works.items()}, rounds)
        found |= {name: median_ms(times, name) for name in works}
        found |= {f"{name} to limit": ratio(times, name, "limit") for name in works}
    return found
