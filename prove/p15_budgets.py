"""Promise 15: nothing is admitted past a budget, whoever is killed.

The kill matrix once more, with agents that spend as soon as they start, often fail (some so that the same attempt may
start them again), and sometimes never get to say what they spent. What they really spent stands in the witness; the
limit, of the run or of its step, must hold for that, not for what was reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from prove.frame import Amount, Progress, Result, spread
from prove.matrix import HEAD, SEAT, Case, World, cases, play
from tenuto.agents.command import CommandAgent
from tenuto.agents.roster import Roster
from tenuto.core.fold import apply
from tenuto.core.parts import new_run
from tenuto.engine import loop

if TYPE_CHECKING:
    from tenuto.core.records.action import Ending, Reply
    from tenuto.ports import Agent, Assignment

DEAREST = 100  # what an attempt may cost, and sets aside
AGENT = """#!/bin/sh
cat > /dev/null
set -- $(echo "$TENUTO_ATTEMPT" | cksum)
kind=$(($1 / 100 % 4))
cost=$(($1 % 100 + 1))
[ $kind = 2 ] && cost=0
echo "start $TENUTO_ATTEMPT $cost" >> {world}/witness
if mv {world}/stand {world}/stood 2> /dev/null; then echo $$ > {world}/agent-ear; read go < {world}/agent-gate; fi
echo "end $TENUTO_ATTEMPT $cost" >> {world}/witness
[ $(($1 / 400 % 3)) = 0 ] || echo "cost: $cost" >> {world}/told-$TENUTO_ATTEMPT
case $kind in
0) echo "DONE: worked";;
1 | 2) exit 3;;
*) echo "ERROR: not yet";;
esac
"""
MEMBERS = ", ".join(f"{{id: {name}, {SEAT}}}" for name in "abc")
TEXT = HEAD + (
    "  - "
    f"{{id: work, cluster: {{members: [{MEMBERS}], quorum: 3}}, retry: {{ERROR: 6, LOST: 6}}, on: {{ERROR: halt}},\n"
    f"     budget: {{attempt_micro_usd: {DEAREST}%s}}}}\n"
)


class Limits(NamedTuple):
    run: dict[str, int]
    step: dict[str, int]


LIMITS = (Limits({"attempts": 4}, {}), Limits({}, {"micro_usd": 400}), Limits({"micro_usd": 350}, {"attempts": 5}))
PASSING = 3  # the exit status of an agent that may be started again


class Metered(CommandAgent):
    """Says what an attempt cost where the agent got to say it."""

    reports: tuple[str, ...] = ("micro_usd",)

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        reply = super().reply(plan, ending, output)
        reply["transient"] = ending["exit_code"] == PASSING
        path = self.argv[0].rpartition("/")[0] + f"/told-{ending['attempt']}"
        try:
            with open(path) as file:
                said = file.read()
        except FileNotFoundError:
            return reply
        if said.endswith("\n"):  # or it was killed between making the file and writing to it
            reply["usage"] = {"micro_usd": int(said.partition(":")[2])}
        return reply


class MeteredRoster(Roster):
    def __init__(self, agent: str) -> None:
        loop._BACKOFF = 0.0  # nobody is overloaded here
        self.agent = Metered(agent)
        super().__init__(self.agent.name)

    def named(self, spelling: str) -> Agent:
        return self.agent


def prove(amount: Amount, tell: Progress) -> Result:
    # A sample does not get as far as the second pipeline: it has both kinds of limit in one.
    listed = cases("budgets", amount, full=1_500, sample=20, pipelines=("0", "1", "2") if amount.full else ("2",))
    killed, violations = 0, list[str]()
    for dead, found in spread(_try, listed, amount.jobs, tell):
        killed += dead
        violations += found
    return Result(
        len(listed), violations, {"points": "18", "processes killed": f"{killed:,}", "overspends": str(len(violations))}
    )


def control(amount: Amount) -> Result:
    """An orchestrator that does not look at limits when it comes back."""
    listed = [
        case for case in cases("budgets", Amount(True, 1), 72, 72, ("0",)) if case.kills[0].victims == "orchestrator"
    ]
    return Result(3, [words for case in listed[:3] for words in _play(case, broken=_admit_all)[1]], {})


def _admit_all() -> None:
    from tenuto.core import budget, todo

    budget.shortage = todo.shortage = lambda *_, **__: None  # type: ignore[attr-defined]


def _try(case: Case) -> tuple[int, list[str]]:
    return _play(case)


def _play(case: Case, broken: Any = None) -> tuple[int, list[str]]:
    limits = LIMITS[int(case.pipeline)]

    def judge(world: World, run: Any, events: list[Any]) -> list[str]:
        # There is one step: what holds for it holds for the run.
        return [*_spent(world, run, limits.run | limits.step), *_promised(events, limits.run | limits.step)]

    text = TEXT % "".join(f", {unit}: {limit}" for unit, limit in limits.step.items())
    return play(case, judge, text=text, agent=AGENT, limits=limits.run, roster=MeteredRoster, broken=broken)


def _spent(world: World, run: Any, limits: dict[str, int]) -> Iterator[str]:
    """What agents really spent fits the limit, and the journal charged at least that."""
    lines = (world.folder / "witness").read_text().split("\n") if (world.folder / "witness").exists() else []
    starts = [line.split()[1:] for line in lines if line.startswith("start ")]
    real = {
        "attempts": len({name.rpartition(".")[0] for name, _ in starts}),
        "micro_usd": sum(int(cost) for _, cost in starts),
    }
    charged = run["budget"]["spent"]
    for unit, limit in limits.items():
        if real[unit] > limit:
            yield f"{real[unit]} {unit} were spent, and the limit is {limit}"
    # Of an attempt that is lost after several starts, what no limit is in is charged once.
    for unit in {"attempts", *limits}:
        if charged.get(unit, 0) < real[unit]:
            yield f"{real[unit]} {unit} were spent, and {charged.get(unit, 0)} are charged"
    if run["status"] in ("running", "created"):
        yield f"the run rests as {run['status']}"


def _promised(events: list[Any], limits: dict[str, int]) -> Iterator[str]:
    """At no moment were more spent and set aside than there is."""
    run = new_run()
    for event in events:
        apply(run, event)
        for unit, limit in limits.items():
            held = run["budget"]["spent"].get(unit, 0) + run["budget"]["reserved"].get(unit, 0)
            if held > limit:
                yield f"after {event['type']} {run['version']}: {held} {unit} spent or promised of {limit}"
                return
