"""An orchestrator dies after it started a supervisor and before it wrote that down. The next one finds nobody, and
goes on without."""

from __future__ import annotations

import pytest

from prove.matrix import PIPELINES, Case, Kill, play
from prove.p04_attempts import judge
from tests.support.fresh import in_fresh_process


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_supervisor_that_comes_after_its_attempt_was_given_up_starts_nothing(pipeline: str) -> None:
    case = Case("late", pipeline, (Kill("before the claim", 1, "orchestrator", 0.0, held=True),))
    assert in_fresh_process(play, case, judge) == (1, [])
