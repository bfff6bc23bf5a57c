"""Promise 15: nothing is admitted past a budget, whoever is killed.

The kill matrix once more, with agents that spend as soon as they start, often fail, and sometimes never get to say what they
spent. What they really spent stands in the witness; the limit must hold for that, not for what was reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prove.frame import Amount, Progress, Result, spread
from prove.matrix import HEAD, SEAT, Case, World, cases, play
from tenuto.agents.command import CommandAgent
from tenuto.agents.crew import Crew
from tenuto.core.fold import apply, new_run

DEAREST = 100  # what an attempt may cost, and sets aside
AGENT = """#!/bin/sh
cat > /dev/null
set -- $(echo "$TENUTO_ATTEMPT" | cksum)
cost=$(($1 % 100 + 1))
echo "start $TENUTO_ATTEMPT $cost" >> {world}/witness
if mv {world}/stand {world}/stood 2> /dev/null; then echo $$ > {world}/agent-ear; read go < {world}/agent-gate; fi
echo "end $TENUTO_ATTEMPT $cost" >> {world}/witness
case $(($1 / 100 % 4)) in
0) echo "DONE: worked";;
1) exit 3;;
*) echo "ERROR: not yet";;
esac
[ $(($1 / 400 % 3)) = 0 ] || echo "cost: $cost" >> {world}/told-$TENUTO_ATTEMPT
"""
MEMBERS = ", ".join(f"{{id: {name}, {SEAT}}}" for name in "abc")
TEXT = HEAD + (
    f"  - {{id: work, cluster: {{members: [{MEMBERS}], quorum: 3}}, retry: {{ERROR: 6, LOST: 6}}, on: {{ERROR: halt}},\n"
    f"     budget: {{attempt_micro_usd: {DEAREST}}}}}\n"
)
LIMITS: tuple[dict[str, int], ...] = ({"attempts": 4}, {"micro_usd": 400}, {"attempts": 5, "micro_usd": 350})


class Metered(CommandAgent):
    """Says what an attempt cost where the agent got to say it."""

    reports = ("micro_usd",)

    def read(self, job: Any, result: dict[str, Any], reply: str) -> dict[str, Any]:
        told = super().read(job, result, reply)
        path = self.argv[0].rpartition("/")[0] + f"/told-{result['attempt']}"
        try:
            with open(path) as file:
                told["usage"] = {"micro_usd": int(file.read().partition(":")[2])}
        except FileNotFoundError:
            pass
        return told


class MeteredCrew(Crew):
    def __init__(self, agent: str) -> None:
        self.agent = Metered(agent)
        super().__init__(self.agent.name)

    def named(self, spelling: str) -> Metered:
        return self.agent


def prove(amount: Amount, tell: Progress) -> Result:
    listed = cases("budgets", amount, full=1_500, sample=20, pipelines=("0", "1", "2"))
    killed, violations = 0, list[str]()
    for dead, found in spread(_try, listed, amount.jobs, tell):
        killed += dead
        violations += found
    return Result(len(listed), violations, {"points": "18", "processes killed": f"{killed:,}", "overspends": str(len(violations))})


def control(amount: Amount) -> Result:
    """An orchestrator that does not look at limits when it comes back."""
    listed = [case for case in cases("budgets", Amount(True, 1), 72, 72, ("0",)) if case.kills[0].victims == "orchestrator"]
    return Result(3, [words for case in listed[:3] for words in _play(case, broken=_admit_all)[1]], {})


def _admit_all() -> None:
    from tenuto.core import todo
    from tenuto.core.decisions import attempts

    for module in (todo, attempts):
        if hasattr(module, "shortage"):
            module.shortage = lambda *_, **__: None


def _try(case: Case) -> tuple[int, list[str]]:
    return _play(case)


def _play(case: Case, broken: Any = None) -> tuple[int, list[str]]:
    limits = LIMITS[int(case.pipeline)]

    def judge(world: World, run: Any, events: list[Any]) -> list[str]:
        return [*_spent(world, run, limits), *_promised(events, limits)]

    return play(case, judge, text=TEXT, agent=AGENT, limits=limits, crew=MeteredCrew, broken=broken)


def _spent(world: World, run: Any, limits: dict[str, int]) -> Iterator[str]:
    """What agents really spent fits the limit, and the journal charged at least that."""
    lines = (world.folder / "witness").read_text().split("\n") if (world.folder / "witness").exists() else []
    costs = [int(line.split()[2]) for line in lines if line.startswith("start ")]
    real = {"attempts": len(costs), "micro_usd": sum(costs)}
    charged = run["budget"]["spent"]
    for unit, limit in limits.items():
        if real[unit] > limit:
            yield f"{real[unit]} {unit} were spent, and the limit is {limit}"
    for unit, amount in real.items():
        if charged.get(unit, 0) < amount:
            yield f"{amount} {unit} were spent, and {charged.get(unit, 0)} are charged"
    if run["status"] in ("running", "created"):
        yield f"the run rests as {run['status']}"


def _promised(events: list[Any], limits: dict[str, int]) -> Iterator[str]:
    """At no moment were more spent and set aside than there is."""
    run = new_run()
    for event in events:
        apply(run, event)
        for unit, limit in limits.items():
            held = run["budget"]["spent"].get(unit, 0) + run["budget"]["reserved"].get(unit, 0)
            if held > limit and run["budget"]["limits"]:
                yield f"after {event['type']} {run['version']}: {held} {unit} spent or promised of {limit}"
                return
