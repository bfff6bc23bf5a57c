"""The context manager's commands as processes, against a bare interpreter."""

from __future__ import annotations

import sys
import time

from bench.measured import (
    ROOT,
    Bars,
    Curves,
    Figure,
    Section,
    Table,
    folder,
    git_repository,
    median_ms,
    number,
    process,
    ratio,
)

BARE = [sys.executable, "-I", "-S", "-c", "pass"]
BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tenuto.entrypoints.launch import main; main()"
TENUTO = [sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), "context"]
ROUNDS = 60

SPEC = """# Spec\n\n## Signatures\n\n```ts\nexport function parse(text: string): Row[];\n```\n
## Edge cases\n\n- An empty text gives no rows.\n- A row with too few cells is refused.\n
## Background\n\nLong ago somebody wanted rows.\n"""
DECIDES = 3.0  # what a command that decides may cost, in bare starts
# (name, command, what it may cost in bare starts); %d is the round
COMMANDS = [
    ("INIT", "INIT task: task %d", DECIDES),
    ("START_PHASE", "START_PHASE phase: architect", DECIDES),
    ("END_PHASE", "END_PHASE phase: architect status: success", DECIDES),
    ("SET_GATE", "SET_GATE gate: design prompt: Review artifacts: spec.md", DECIDES),
    ("RESUME approve", "RESUME decision: approve", DECIDES),
    ("PAUSE", "PAUSE reason: stuck recommendations: a, b", DECIDES),
    ("RESUME retry", "RESUME decision: retry", DECIDES),
    ("LIST", "LIST", DECIDES),
    ("STORE", f"STORE phase: spec content: {SPEC}", 6),
    ("RETRIEVE", "RETRIEVE for_phase: implementation", 6),
    ("QUERY", "QUERY question: too few cells", 6),
    ("SUMMARY", "SUMMARY", 6),
    ("METRICS", "METRICS format: detailed", 6),
    ("HISTORY", "HISTORY filter: task-0", 6),
]


def measure() -> Section:
    with folder() as made:
        git_repository(made)
        rounds = iter(range(ROUNDS + 3))

        def one_round() -> dict[str, tuple[float, float]]:
            place, found = next(rounds), {}
            for name, words, _ in COMMANDS:
                bare = process(BARE, made)
                found[name] = (bare, process([*TENUTO, words.replace("%d", str(place))], made))
            return found

        one_round(), one_round()  # fill caches
        rounds_made: list[dict[str, tuple[float, float]]] = []
        until = time.monotonic() + 120
        while len(rounds_made) < ROUNDS and (len(rounds_made) < 5 or time.monotonic() < until):
            rounds_made.append(one_round())
    return section(rounds_made)


def section(rounds: list[dict[str, tuple[float, float]]]) -> Section:
    rows, figures = [], []
    bars: dict[float, list[tuple[str, float]]] = {DECIDES: [], 6: []}
    for name, _, allowed in COMMANDS:
        times = {"bare": [one[name][0] for one in rounds], "ours": [one[name][1] for one in rounds]}
        found = ratio(times, "ours", "bare")
        rows.append([name, f"{median_ms(times, 'ours'):.1f} ms", number(found), f"{allowed:g}"])
        bars[allowed].append((f"Tenuto {name}", found))
        figures.append(Figure(f"{name} as a process", found, allowed, "x", "a bare interpreter"))
    # The slowest of each kind stands for them.
    figures = [
        max((one for one in figures if one.target == allowed), key=lambda one: one.value) for allowed in (DECIDES, 6)
    ]
    text = (
        "Each command of the context manager as a process of its own, durable where it changes something. "
        "Between each two, "
        f"a bare `python -I -S -c pass`; {len(rounds)} rounds."
    )
    table = Table("Commands, as processes", ["command", "median", "to bare", "target"], rows)
    plots: list[Bars | Curves] = [
        Bars("commands.svg", "Commands that decide, in bare interpreter starts", bars[DECIDES], DECIDES),
        Bars("texts.svg", "Commands that read or write texts, in bare interpreter starts", bars[6], 6),
    ]
    return Section("Commands", text, figures, [table], plots)
