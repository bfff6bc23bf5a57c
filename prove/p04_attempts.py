"""Promise 4: a finished attempt never runs again, and an unknown outcome is labelled.

A small run is killed at a point, started again, and so on until it rests. Then the witness, which agents write and
Tenuto does not know, is held against the journal.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from prove.frame import Amount, Progress, Result, spread
from prove.matrix import Case, World, cases, play
from tenuto.supervise import records
from tenuto.workspace.checkup import examine


def prove(amount: Amount, tell: Progress) -> Result:
    listed = cases("attempts", amount, full=5_400, sample=40)
    hit, killed, violations = 0, 0, list[str]()
    for dead, found in spread(_try, listed, amount.jobs, tell):
        hit += bool(dead)
        killed += dead
        violations += found
    told = {
        "points": "18",
        "runs with a kill": f"{hit:,}",
        "processes killed": f"{killed:,}",
        "repeats and unlabelled": str(len(violations)),
    }
    return Result(len(listed), violations, told)


def control(amount: Amount) -> Result:
    """An orchestrator that forgets results when it comes back, and believes that nothing ever ran."""
    point = "the result is published, the slot is held"
    listed = [case for case in cases("attempts", Amount(True, 1), 72, 72) if case.kills[0].victims == "all"]
    listed = [case for case in listed if case.kills[0].point in (point, "the agent is at work")]
    return Result(len(listed), [words for case in listed for words in play(case, judge, broken=_forget)[1]], {})


def _forget() -> None:
    from tenuto.supervise import attempts

    ordinary = attempts.inspect

    def forgetful(directory: str) -> Any:
        found = ordinary(directory)
        if found["state"] in ("finished", "lost") and not directory.endswith("-2/1"):
            return {**found, "state": "lost", "may_have_run": False}
        return found

    attempts.inspect = forgetful


def _try(case: Case) -> tuple[int, list[str]]:
    return play(case, judge)


def judge(world: World, run: Any, events: list[Any]) -> list[str]:
    return [*_never_again(world, run, events), *_labelled(world, run, events), *_sound(world, run)]


def _never_again(world: World, run: Any, events: list[Any]) -> list[str]:
    found: list[str] = []
    began = [name for what, name in world.witnessed() if what == "start"]
    found += [f"{name} was started {times} times" for name, times in Counter(began).items() if times > 1]
    ends = Counter(event["attempt"] for event in events if event["type"] in ("AttemptFinished", "AttemptLost"))
    found += [f"{name} has {times} ends" for name, times in ends.items() if times != 1]
    done: dict[tuple[str, str], str] = {}
    for event in events:
        if event["type"] not in ("AttemptFinished", "AttemptDispatched"):
            continue
        attempt = run["attempts"][event["attempt"]]
        seat = attempt["step"], attempt["extra"]["seat"]
        if event["type"] == "AttemptDispatched" and seat in done:
            found.append(f"{event['attempt']} was dispatched though {done[seat]} had finished")
        elif event["type"] == "AttemptFinished" and event["status"] == "completed":
            done[seat] = event["attempt"]
    return found


def _labelled(world: World, run: Any, events: list[Any]) -> list[str]:
    """Every start has an end, and what the journal says of it is what the witness and the supervisor saw."""
    found: list[str] = []
    said = world.witnessed()
    began = {name for what, name in said if what == "start"}
    ended = {name for what, name in said if what == "end"}
    lost = {event["attempt"]: event["ran"] for event in events if event["type"] == "AttemptLost"}
    directories = dict(world.starts())
    for name in began:
        short = name.split(".", 1)[1].rsplit(".", 1)[0]
        status = run["attempts"].get(short, {}).get("status", "unknown to the journal")
        result = records.read(str(directories[name] / "result.json")) if name in directories else None
        if status not in ("completed", "failed", "lost"):
            found.append(f"{name} ran, and its status is {status}")
        if status == "lost" and not lost.get(short):
            found.append(f"{name} ran, and is labelled as never started")
        if status == "lost" and result is not None:
            found.append(f"{name} has a result, and is labelled as lost")
        if status != "lost" and result is None:
            found.append(f"{name} has no result, and is labelled {status}")
        if status == "completed" and name not in ended:
            found.append(f"{name} did not come to its end, and is labelled completed")
    for short, attempt in run["attempts"].items():
        if attempt["status"] == "completed" and not any(f".{short}." in name for name in ended):
            found.append(f"{short} is labelled completed, and never ran")
    return found


def _sound(world: World, run: Any) -> list[str]:
    import tenuto

    found: list[str] = []
    if run["status"] != "completed":
        found.append(f"the run rests as {run['status']}: {run['failure'] or run['pause']}")
    if run["in_flight"]:
        found.append(f"still in flight: {run['in_flight']}")
    workspace = tenuto.open(str(world.root))
    found += [one["message"] for one in examine(workspace)["findings"]]
    workspace.journal.close()
    return found
