"""The promises, as a table: number, module, the promise, what is tried to break it, the figure wanted."""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    number: int
    module: str
    promise: str
    tried: str
    wanted: str


PROMISES = (
    Promise(
        1,
        "p01_survives",
        "Answered success survives kill -9 and power loss",
        "all sequences of three commands: kill at every system call; every state that a power loss may leave, "
        "enumerated from the trace; real ext4 images cut at each step",
        "0 violations in ≥ 1,000,000 modelled states and ≥ 500 images",
    ),
    Promise(
        2,
        "p02_writers",
        "No writer loses another's update",
        "64 processes × 1,000 updates through command line, hook and library, 1 % of them killed",
        "0 lost",
    ),
    Promise(
        3,
        "p03_damage",
        "A torn, NUL-filled, bit-flipped or hand-edited file is named, never silently used or overwritten",
        "every truncation and 10,000 flips of every kind of file",
        "0 silent",
    ),
    Promise(
        4,
        "p04_attempts",
        "A finished attempt never runs again; an unknown outcome is labelled",
        "orchestrator, supervisor, agent and all three killed at 18 points, ≥ 5,000 runs",
        "0 repeats, 0 unlabelled",
    ),
    Promise(
        5,
        "p05_cap",
        "Never more than `cap` agents, across processes and restarts",
        "16 orchestrators, cap 4, 5,000 agents, random kills",
        "peak ≤ 4",
    ),
    Promise(
        6,
        "p06_leftovers",
        "On Linux, nothing an agent started outlives its attempt; time limits bind the whole tree",
        "agents that daemonise, fork twice, hold standard output, ignore signals",
        "0 alive 2 s after; ≤ limit + 2 s",
    ),
    Promise(
        7,
        "p07_gates",
        "Gates fail closed, are decided once, by a person, for exactly what was shown",
        "10,000 forged, replayed, stale and racing decisions; an agent that tries every surface; "
        "at level *signed*, direct writes to the database",
        "0 accepted, 0 undetected",
    ),
    Promise(
        8,
        "p08_places",
        "Nothing is written outside the repository's own places",
        "10,000 hostile names; symbolic links put in the way and swapped meanwhile",
        "0 escapes",
    ),
    Promise(
        9,
        "p09_secrets",
        "Declared secrets never reach disk, logs or output; an agent's environment is the allow-list exactly",
        "200 canaries; the environments compared; `tenuto forget` for one that slipped in",
        "0; forgotten everywhere, and the chain still verifies",
    ),
    Promise(
        10,
        "p10_text",
        "Stored text is data: delimited in prompts, inert in terminal and HTML",
        "1,000 payloads with escapes and markup",
        "0",
    ),
    Promise(
        11,
        "p11_replay",
        "Same journal, same state, on every version",
        "the recorded journals in `tests/replay/`, kept for ever",
        "byte-equal",
    ),
    Promise(
        12,
        "p12_faults",
        "Disk full, read-only and I/O errors stop safely and resume",
        "the nth failing system call × 3 errors; a small file system that is full",
        "0 corruption",
    ),
    Promise(
        13,
        "p13_hooks",
        "Hooks cannot recurse, and cannot break the host",
        "a hook that calls itself; every internal error forced",
        "depth ≤ 1; exit 0",
    ),
    Promise(
        14,
        "p14_input",
        "Any input is answered or refused by name",
        "1,000,000 fuzzed commands and files over all five dialects",
        "0 tracebacks",
    ),
    Promise(
        15,
        "p15_budgets",
        "Nothing is admitted past a budget, across crashes",
        "the kill matrix, with budgets",
        "0 overspend (what is in flight was reserved)",
    ),
    Promise(
        16,
        "p16_stale_workers",
        "A worker whose lease was ended cannot change anything any more",
        "reports, beats and returns with old, guessed and replayed epochs, of other workers and other logins; ≥ 10,000",
        "0 accepted",
    ),
    Promise(
        17,
        "p17_dead_workers",
        "A dead worker's work is back within a lease; nothing starts twice; no pool passes its cap",
        "8 workers, a cap of 12, 800 attempts; workers killed for a moment, for good, and stopped",
        "0 twice; peak ≤ cap; back ≤ lease + 5 s",
    ),
    Promise(
        19,
        "p19_restarts",
        "A database server that is killed loses no event that was answered",
        "25 runs, journal and tables on one server, which is killed with -9 six times during each",
        "0 lost, 0 twice",
    ),
)

BY_NUMBER = {promise.number: promise for promise in PROMISES}
