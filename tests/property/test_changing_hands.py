"""An engine lets go of a run and takes it again, at any moment between two agents: nothing is lost, nothing is done
twice."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.fold import fold, running_visits
from tenuto.encoding import dumps, loads
from tenuto.errors import Refused
from tests.property.rehearsal import Rehearsal
from tests.property.test_engine import ITEMS, NAMES, RESTING, random_answers

GOOD = {"status": "approved", "issues": [], "verdict": "PASS", "coverage": 95}


def hand_over(play: Rehearsal) -> bool:
    """Released and engaged again. False where the rules do not allow it now."""
    try:
        play.say({"do": "ChangeDriver", "driver": "manual"})
    except Refused as refusal:
        assert refusal.code in ("attempts-in-flight", "gate-open")
        return False
    assert play.run["current_visit"] is None and play.run["driver"] == "manual"
    play.say({"do": "Engage", "pipeline": play.run["pipeline"]})
    assert not running_visits(play.run)
    return True


def play_on(play: Rehearsal, chance: Random, times: int) -> Any:
    for _ in range(20000):
        if times and play.run["queue"] and chance.random() < 0.2:
            times -= hand_over(play)
        if not play.step(chance.choice):
            return play.run
    raise AssertionError("the run did not come to rest")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_a_run_that_changes_hands_comes_to_rest_and_replays(name: str, seed: int) -> None:
    chance = Random(seed)
    play = Rehearsal(name, random_answers(chance), ITEMS)
    run = play_on(play, chance, 5)
    assert run["status"] in RESTING, run["status"]
    assert len(play.dispatched) == len(set(play.dispatched))
    assert fold(loads(dumps(play.journal))) == run


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_items_that_are_done_stay_done(name: str, seed: int) -> None:
    """All goes well: the run ends as its pipeline says, each item was completed once, whoever held the run
    meanwhile."""
    chance = Random(seed)
    play = Rehearsal(name, lambda attempt: ("DONE", [], GOOD), ITEMS)
    run = play_on(play, chance, 5)
    assert run["status"] == play.pipeline["finish"], (run["status"], run["pause"], run["failure"], run["blocked"])
    ended = [
        event["item"] for event in play.journal if event["type"] == "ItemChanged" and event["status"] == "completed"
    ]
    assert len(ended) == len(set(ended))


def test_what_was_done_by_hand_meanwhile_is_not_done_again() -> None:
    play = Rehearsal("orchestrate", lambda attempt: ("DONE", [], GOOD), ITEMS)
    while not play.run["queue"] or play.run["queue"][0]["step"] != "spec-writer":
        play.step()
    play.say({"do": "ChangeDriver", "driver": "manual"})
    play.say({"do": "StartStep", "step": "spec-writer"})
    play.say({"do": "EndStep", "step": "spec-writer", "status": "success"})
    play.say({"do": "Engage", "pipeline": play.run["pipeline"]})
    assert play.run["queue"][0]["step"] == "implementation"
    assert "spec-writer" not in [attempt["step"] for attempt in play.run["attempts"].values()]


def test_what_was_approved_is_asked_for_again_when_work_came_after_it() -> None:
    """Led by hand: the design was approved, then made anew. An engine audits it again, and asks again."""
    play = Rehearsal("orchestrate", lambda attempt: ("DONE", [], GOOD), ITEMS)
    play.say({"do": "ChangeDriver", "driver": "manual"})

    def by_hand(*steps: str) -> None:
        for step in steps:
            play.say({"do": "StartStep", "step": step})
            play.say({"do": "EndStep", "step": step, "status": "success"})

    by_hand("architect", "design-audit")
    play.say({"do": "OpenGate", "name": "design", "prompt": "?"})
    play.say({"do": "DecideGate", "decision": "approve", "who": "p"})
    play.say({"do": "Engage", "pipeline": {"name": "orchestrate", "hash": "h"}})
    assert play.run["queue"][0]["step"] == "spec-writer"
    play.say({"do": "ChangeDriver", "driver": "manual"})
    by_hand("architect")
    play.say({"do": "Engage", "pipeline": {"name": "orchestrate", "hash": "i"}})
    assert play.run["queue"][0]["step"] == "design-audit"
    play.play()
    assert [decision["name"] for decision in play.run["decisions"]] == ["design", "design", "final"]
