"""Limits hold whatever agents answer, lose or report, and in whatever order."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.fold import fold
from tenuto.core.todo import todo
from tenuto.encoding import dumps, loads
from tests.property.rehearsal import Rehearsal, item
from tests.support.present import present

ITEMS = [item("1"), item("2"), item("3", "1"), item("4", "1", "2"), item("5")]
UNITS = ("attempts", "tokens", "micro_usd")


class Spender(Rehearsal):
    """Agents that use what they like; `overuse` is what they used beyond what was set aside for them."""

    def __init__(self, chance: Random, greedy: bool, **kept: Any) -> None:
        self.chance, self.greedy = chance, greedy
        self.overuse = dict.fromkeys(UNITS, 0)
        super().__init__("eight-step", self.verdict, ITEMS)
        for name, budget in kept.items():
            own = self.pipeline["budget"] if name == "run" else self.steps()[name]["budget"]
            own.update(budget)
        # Limits were bound before they were written into the definition: say them as a person would.
        self.say(
            {
                "do": "ChangeBudget",
                "limits": _limits(self.pipeline["budget"]),
                "steps": {
                    name: _limits(step["budget"]) for name, step in self.steps().items() if _limits(step["budget"])
                },
            }
        )

    def steps(self) -> Any:
        return {step["id"]: step for step in self.pipeline["steps"]}

    def verdict(self, attempt: Any) -> Any:
        return self.chance.choice(["DONE", "DONE", "DONE", "NEEDS_REVISION", "ERROR", "LOST"])

    def end(self, attempt: str) -> None:
        found = self.run["attempts"][attempt]
        told = self.answer({"attempt": attempt, **found})
        if told == "LOST":
            self.say({"do": "LoseAttempt", "attempt": attempt, "reason": "killed", "ran": self.chance.random() < 0.8})
            return
        usage: Any = {"attempts": 1}
        for unit in UNITS[1:]:
            aside = found["reserved"].get(unit, 0)
            if self.chance.random() < 0.8:
                usage[unit] = self.chance.randint(0, int(aside * 3 if self.greedy else aside))
                self.overuse[unit] += max(0, usage[unit] - aside)
        verdict = "PARKED" if self.chance.random() < 0.1 else told
        status = "completed" if verdict == "DONE" else "failed"
        self.say({"do": "FinishAttempt", "attempt": attempt, "status": status, "verdict": verdict, "usage": usage})


def _limits(budget: Any) -> Any:
    return {unit: budget[unit] for unit in UNITS if budget[unit] is not None}


def held(account: Any, unit: str) -> int:
    return int(account["spent"].get(unit, 0) + account["reserved"].get(unit, 0))


@settings(max_examples=60)
@given(st.data())
def test_spent_and_promised_never_pass_a_limit_of_the_run_or_of_a_step(data: st.DataObject) -> None:
    """Attempts never; tokens and money by no more than agents used beyond what was set aside for them. What is not
    reported and what is lost is charged as set aside, and a limit that is reached pauses the run."""
    chance = Random(data.draw(st.integers(0, 2**32)))
    limit = st.one_of(st.none(), st.integers(0, 60))
    figure = st.one_of(st.none(), st.integers(1, 12))
    budgets = {
        name: {
            "attempts": data.draw(limit),
            "tokens": data.draw(limit),
            "micro_usd": data.draw(limit),
            "attempt_tokens": data.draw(figure),
            "attempt_micro_usd": data.draw(figure),
        }
        for name in ("run", "research", "implementation", "verification")
    }
    play = Spender(chance, data.draw(st.booleans()), **budgets)
    for _ in range(3000):
        run = play.run
        wanted = [action for action in todo(play.pipeline, run) if action["act"] == "dispatch"]
        for action in wanted if chance.random() < 0.5 else ():
            play.perform(action)  # what is asked for together may be started together
        moved = play.step(chance.choice)
        for account in (run["budget"], *run["budget"]["steps"].values()):
            for unit, most in account["limits"].items():
                assert most is not None and held(account, unit) <= most + play.overuse[unit], (unit, account)
            assert all(amount >= 0 for amount in account["reserved"].values())
        if not moved:
            break
    assert run["status"] in ("completed", "failed", "paused"), run["status"]
    assert not any(run["budget"]["reserved"].values())
    if run["status"] == "paused" and present(run["pause"])["kind"] == "budget":
        assert todo(play.pipeline, {**run, "status": "running"})[0]["act"] == "pause", "a restart does not reset it"
    assert fold(loads(dumps(play.journal))) == run


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_accounts_of_steps_add_up_to_the_run(seed: int) -> None:
    chance = Random(seed)
    play = Spender(chance, True)
    run = play.play(chance.choice)
    for unit in UNITS:
        of_steps = sum(account["spent"].get(unit, 0) for account in run["budget"]["steps"].values())
        assert of_steps == run["budget"]["spent"].get(unit, 0)
    assert sum(account["busy_ms"] for account in run["budget"]["steps"].values()) == run["budget"]["busy_ms"]
