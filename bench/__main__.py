"""`make bench`: every figure, side by side with its limit and with the peers, in one run.

make bench                    all of them, and docs/performance.md is written anew
make bench ARGS='hook'        some of them, printed only
"""

from __future__ import annotations

import sys
import time
import traceback
from importlib import import_module

from bench import page
from bench.measured import IN_MEMORY, Section, file_system, scratch

PARTS = {
    "hook": "a hook as a fresh process, against a bare interpreter, durable bash + jq, typer + pydantic",
    "commands": "the context manager's commands as processes, against a bare interpreter",
    "engine": (
        "durable chain, fan-out and queue, against bare loops, LangGraph, DBOS and Burr; wall clock against the "
        "critical path"
    ),
    "journal": "durable appends and 1 to 64 writers, against bare SQLite",
    "server": "a turn on PostgreSQL, against the same turn on SQLite and psycopg alone",
    "resume": "finding a run again, at 1,000 to 100,000 events and 40 to 4,000 attempts",
    "growth": "LIST, QUERY, RETRIEVE and memory at 100 to 10,000 runs, against bare indexes and reading files",
    "looks": "the inbox of 10,000 runs, a run of 2,000 attempts, a step into the past, the end of 200 MB of log",
    "ui": "the pages over HTTP and in a browser: first bytes, first paint, a commit seen elsewhere, memory, idling",
    "definitions": "checking pipelines of 30 to 300 steps",
    "packs": "tokens of context packs, against the whole artifacts",
}


def main(words: list[str]) -> int:
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    if file_system(scratch()) in IN_MEMORY:
        print(
            f"{scratch()} is kept in memory: flushes cost nothing there; set TMPDIR to a folder on a disk",
            file=sys.stderr,
        )
    sections: list[Section] = []
    failed: list[str] = []
    for name in words or PARTS:
        print(f"\n== {name}: {PARTS[name]}", flush=True)
        begun = time.monotonic()
        try:
            section: Section = import_module(f"bench.{name}").measure()
        except Exception:  # noqa: BLE001  # the others are measured all the same
            traceback.print_exc()
            failed.append(name)
            continue
        sections.append(section)
        print(page.printed(section), f"\n({time.monotonic() - begun:.0f} s)", flush=True)
    if failed:
        print(f"\nnot measured, see above: {', '.join(failed)}; docs/performance.md stays as it was", file=sys.stderr)
        return 1
    if not words:
        print(f"\nwritten: {page.write(sections)}")
    for section in sections:
        for reason in section.missing:
            print(f"\nnot measured here: {reason}")
    late = [figure.what for section in sections for figure in section.figures if not figure.holds]
    print("\nevery target holds" if not late else f"\nshort of the target: {', '.join(late)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
