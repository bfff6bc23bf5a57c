"""What an agent's start takes over from the one before it: what was said, and what of our environment it may see.

    look_back(engine, job, start)  job.start, and job.earlier: what the agent printed when it was interrupted, "" where there is
                                   nothing to go on with
    may_go_on(engine, run, name, agent)   could it take up what was said in that attempt?
    tree(engine, run, action, agent)   the work tree that this attempt goes on in; "" where it starts over
    photograph(engine, job, ...)   the outputs before the agent's work, whenever that began
    names_for(agent, outer)        the variables that this kind of agent needs; their values are never written down
    errors(directory)              the end of what it wrote to standard error
    may_start_again(job, ...)      may the same attempt start its program once more?
    ran_before(directory)          did a start of this attempt before this one run?
    again(directory, told)         the same attempt starts its program once more: what this start used is not forgotten
    conclude(engine, job, told)    the attempt ends: with what all its starts used, and for a limit with who may go on

Whether and how it goes on is the adapter's affair. In a work tree of its own an attempt goes on in the tree of the one before
it, where the files are that were spoken of; where that is gone, or the agent cannot go on, it gets a fresh one, and nothing is
taken over. Neither from another kind of agent: it could not read it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

from tenuto.core.budget import untouched
from tenuto.core.records import Run
from tenuto.core.waiting import later, parked_agents
from tenuto.drivers import receipts
from tenuto.drivers.jobs import Job
from tenuto.encoding import dumps, loads
from tenuto.supervise import attempts

_TAIL = 4000


def look_back(engine: Any, job: Job, start: int) -> None:
    folder = _interrupted(engine, job, start)
    job.start, job.earlier = start, read(f"{folder}/stdout") if folder else ""


def _interrupted(engine: Any, job: Job, start: int) -> str:
    """Where the agent was interrupted: in a start before this one, the latest first, or in the attempt that this one follows, and so on."""
    for number in range(start - 1, 0, -1):
        if read(f"{engine.folder}/{job.name}/{number}/stdout"):
            return f"{engine.folder}/{job.name}/{number}"
    extra = job.attempt["extra"]
    return _before(engine, job.run, extra.get("follows", ""), _kind(job.attempt["agent"]), extra.get("tree", ""))


def _before(engine: Any, run: Run, name: str, kind: str, tree: str) -> str:
    """Where this attempt, or one before it, said something: of the same kind, in the same work tree."""
    attempts = run["attempts"]
    while name in attempts and _kind(attempts[name]["agent"]) == kind and attempts[name]["extra"].get("tree", "") == tree:
        if read(f"{engine.directory(name)}/stdout"):
            return str(engine.directory(name))
        name = attempts[name]["extra"].get("follows", "")
    return ""


def tree(engine: Any, run: Run, action: Any, agent: Any) -> str:
    earlier = run["attempts"].get(action["follows"])
    found = str(earlier["extra"].get("tree", "")) if earlier else ""
    return found if found and engine.trees.stands(found) and may_go_on(engine, run, action["follows"], agent) else ""


def may_go_on(engine: Any, run: Run, name: str, agent: Any) -> bool:
    """Can this agent take up what was said in that attempt, or before it in the same place?"""
    folder = _before(engine, run, name, _kind(agent.name), run["attempts"][name]["extra"].get("tree", ""))
    return bool(folder) and hasattr(agent, "can_go_on") and agent.can_go_on(read(f"{folder}/stdout"))


def _kind(agent: str) -> str:
    return agent.partition(":")[0]


def photograph(engine: Any, job: Job, directory: str) -> dict[str, Any]:
    """The outputs as they are before the agent starts. For one that goes on: as they were when it began, for what it wrote before it
    was interrupted is its own work. Files that may only grow are held against what they are now."""
    now = receipts.look(job, directory)
    if not job.goes_on:
        return now
    then = loads(read(f"{_interrupted(engine, job, job.start)}/before.json") or "{}")
    growing = [job.path(name) for name in job.seat["append_only"]]
    return {**then, **{path: state for path, state in now.items() if path in growing}}


def names_for(agent: Any, outer: Mapping[str, str]) -> list[str]:
    patterns = getattr(agent, "environment", ())
    barred = getattr(agent, "barred", ())
    return [
        name for name in outer
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in barred)
    ]  # fmt: skip


def errors(directory: str) -> str:
    return read(f"{directory}/stderr")[-_TAIL:]


def may_start_again(job: Job, result: Any, told: Any) -> bool:
    """After a failure that may pass by itself, and where no limit was set aside for more than this start."""
    if not told["transient"] or job.start > job.seat["transient"]:
        return False
    return result["started"] is None or untouched(job.run, job.step["id"], told["usage"])


def ran_before(directory: str) -> bool:
    """Then it is not true that the attempt never ran, whatever became of its last start."""
    folder, _, start = directory.rpartition("/")
    earlier = [attempts.inspect(f"{folder}/{number}") for number in range(1, int(start))]
    return any(one["result"]["started"] is not None if "result" in one else one.get("may_have_run", False) for one in earlier)


def again(directory: str, told: Any) -> None:
    with open(f"{directory}/usage.json", "w", encoding="utf-8") as file:
        file.write(dumps(told["usage"]))


def conclude(engine: Any, job: Job, told: Any) -> Any:
    told = {**told, "usage": _used(engine, job, told["usage"])}
    now = engine.workspace.clock()
    if told.get("limited") and not told.get("parked_until"):
        told = {**told, "verdict": "PARKED", "parked_until": later(now)}
    if told["verdict"] == "PARKED" and told.get("parked_until") and getattr(engine.crew, "fallback", None):
        parked = {**parked_agents(job.run, now), job.attempt["agent"]: told["parked_until"]}
        told = {**told, "others": engine.crew.choose(job.seat, job.role, parked).name not in parked}
    return told


def _used(engine: Any, job: Job, last: dict[str, int]) -> dict[str, int]:
    """By all starts together. One that did not tell, because it was killed, counts as what was set aside for the attempt."""
    folder = f"{engine.folder}/{job.name}"
    starts = [*(loads(read(f"{folder}/{start}/usage.json") or "{}") for start in range(1, job.start)), last]
    units = dict.fromkeys(unit for one in starts for unit in one)
    return {unit: sum(one.get(unit, job.attempt["reserved"].get(unit, 0)) for one in starts) for unit in units}


def explained(verdict: str, summary: str, told: Any) -> str:
    """What the agent was not permitted to do is often why it failed."""
    denied = told.get("denied") or []
    return f"{summary}; it was not permitted: {', '.join(denied[:3])}" if verdict == "ERROR" and denied else summary


def choose(engine: Any, run: Any, definition: Any, seat: Any) -> Any:
    """Who gets this seat now."""
    parked = parked_agents(run, engine.workspace.clock()) if getattr(engine.crew, "fallback", None) else {}
    return engine.crew.choose(seat, definition["roles"][seat["role"]], parked)


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
