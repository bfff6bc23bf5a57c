"""The small process that owns one attempt, and what the rest of Tenuto knows about it.

    attempts.py     launch, inspect, void, cancel, sweep, wait_any: the library side
    supervisor.py   the process: claim, slot, from fork to exec, output with a bound, time limit, tree, result
    slots.py        at most N agents per pool, across processes and restarts; what a killed supervisor left is ended
    processes.py    who a process is, the process table, signals that reach the right process, three Linux calls
    records.py      small records on disk, and their types: whole or absent, durable, created once

Nothing here knows the journal, a run or a step: an attempt is a directory.
Nothing is imported here: the supervisor starts with every agent and pays for each import.
"""
