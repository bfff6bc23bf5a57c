"""A run replayed against the pipeline it had takes the same way; against an edited one, the way that one says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenuto.encoding import dumps, loads
from tenuto.engine.replay import replay
from tests.property.rehearsal import Rehearsal, item
from tests.property.test_engine import NAMES, random_answers

ITEMS = [item("1"), item("2"), item("3", "1"), item("4", "1", "2")]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(st.integers(0, 2**32))
@example(23)  # a fix pass does one item of four
@example(244)  # and one in which nothing is due
def test_the_same_pipeline_takes_the_same_way(name: str, seed: int) -> None:
    chance = Random(seed)
    play = Rehearsal(name, random_answers(chance), ITEMS)
    run = play.play()
    before = dumps(run)
    told = replay(play.pipeline, run, loads(dumps(play.journal)))
    assert told["differences"] == [] and told["assumed"] == [] and told["unused"] == []
    assert told["now"]["attempts"] == told["then"]["attempts"]
    assert dumps(run) == before, "nothing is changed"


def edited(change: Any) -> tuple[Any, Any, Any]:
    words = {"design-review-1-ct-aggregator-1": "NEEDS_REVISION"}
    play = Rehearsal("eight-step", lambda a: words.get(a["attempt"], "DONE"), ITEMS)
    run = play.play()
    pipeline = loads(dumps(play.pipeline))
    change({step["id"]: step for step in pipeline["steps"]})
    return replay(pipeline, run, play.journal), run, pipeline


def test_a_route_that_was_taken_away_is_not_taken_and_its_answers_are_left_over() -> None:
    def no_revision(steps: Any) -> None:
        steps["design-review"]["on"]["NEEDS_REVISION"] = {"do": "go_on", "to": "planning", "carry": "constraints"}

    told, _, _ = edited(no_revision)
    assert "design: DONE, DONE; now DONE" in told["differences"]
    assert "design-review.NEEDS_REVISION was taken 1 times; now 0" in told["differences"]
    assert "design-2-designer-1" in told["unused"] and told["assumed"] == []


def test_a_step_that_never_ran_is_assumed_to_end_well_and_named() -> None:
    def one_more(steps: Any) -> None:
        steps["spec"]["agent"]["id"] = "second-spec"

    told, _, _ = edited(one_more)
    assert told["assumed"] == ["spec-1-second-spec-1"] and told["unused"] == ["spec-1-spec-1"]
    assert told["differences"] == []


def test_a_gate_that_nobody_decided_ends_the_replay_there() -> None:
    def gate_on(steps: Any) -> None:
        steps["post-research"]["when"] = "always"

    told, _, _ = edited(gate_on)
    assert told["now"]["why"] == "it would wait for a person in post-research: no decision is recorded"
    assert "the run was completed; it would be waiting_gate" in told["differences"]
