"""Whatever agents answer, in whatever order: the rules hold and the run comes to rest."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.budget import worst_case
from tenuto.core.fold import fold
from tenuto.encoding import dumps, loads
from tenuto.knowledge import definitions
from tests.property.rehearsal import Rehearsal, item

ITEMS = [item("1"), item("2"), item("3", "1"), item("4", "1", "2"), item("5"), item("6"), item("7", "4")]
RESTING = ("completed", "failed", "paused", "blocked", "poc-complete", "graduated")
NAMES = definitions.shipped()


def random_answers(chance: Random) -> Any:
    well = chance.random()  # how often this run's agents succeed

    def answer(attempt: Any) -> Any:
        verdict = "DONE" if chance.random() < well else chance.choice(["NEEDS_REVISION", "ERROR", "LOST"])
        if verdict == "LOST":
            return verdict
        severities = [] if chance.random() < well else chance.choice([["Critical"], ["Blocker"], ["Major"], ["Low"]])
        said = chance.choice(
            [
                *([{"status": "approved", "issues": [], "verdict": "PASS", "coverage": 95}] * 3),
                {"status": "needs_revision", "issues": [{"severity": "HIGH"}], "verdict": "DESIGN_FLAW"},
                {"status": "approved", "issues": [], "verdict": "IMPLEMENTATION_FLAW", "coverage": 10},
            ]
        )
        return verdict, severities, said

    return answer


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_whatever_agents_answer_the_cap_holds_the_bound_holds_and_the_journal_replays(name: str, seed: int) -> None:
    """Never more than `cap` attempts in flight, never more in all than the bound says, the run always comes to rest, no
    attempt is dispatched twice, and folding the journal gives the state the run had."""
    chance = Random(seed)
    play = Rehearsal(name, random_answers(chance), ITEMS)
    run = play.play(chance.choice)
    assert play.peak <= play.pipeline["cap"]
    assert run["status"] in RESTING, run["status"]
    assert len(play.dispatched) == len(set(play.dispatched))
    assert len(play.dispatched) <= worst_case(play.pipeline, len(ITEMS), losses=True)["attempts"]
    assert fold(loads(dumps(play.journal))) == run


@pytest.mark.parametrize("name", NAMES)
def test_a_run_in_which_all_goes_well_completes(name: str) -> None:
    good = {"status": "approved", "issues": [], "verdict": "PASS", "coverage": 95}
    play = Rehearsal(name, lambda attempt: ("DONE", [], good), ITEMS)
    run = play.play()
    assert run["status"] == play.pipeline["finish"], (run["status"], run["failure"], run["pause"], run["blocked"])
    steps = [step for step in play.pipeline["steps"] if not step["aside"]]
    skipped = [name for name, state in run["steps"].items() if state["status"] == "skipped"]
    assert [v["step"] for v in run["visits"]] == [step["id"] for step in steps if step["id"] not in skipped]
    assert not run["current_visit"] and not run["queue"]
