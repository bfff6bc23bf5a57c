"""The small process that owns one attempt, and what the rest of Tenuto knows about it.

    attempts.py     launch, inspect, void, cancel, sweep: the library side
    watching.py     wait_any: sleep until an attempt has come to rest
    supervisor.py   the process: claim, slot, agent, time limit, tree, result
    agent.py        from fork to exec
    output.py       stdout and stderr as files with a bound
    slots.py        at most N agents per pool, across processes and restarts
    orphans.py      what a killed supervisor left behind is found and ended
    processes.py    the process table, descendants, signals that reach the right process
    identity.py     (pid, start time, boot id)
    cgroups.py      cgroup v2, where we may make one
    kernel.py       three Linux calls that Python has no function for
    wakeups.py      signals and descriptors in one wait
    records.py      small records on disk: whole or absent, durable, created once
    shapes.py       the records' types

Nothing here knows the journal, a run or a step: an attempt is a directory.
Nothing is imported here: the supervisor starts with every agent and pays for each import.
"""
