"""Plans and reviews are read while others wait: twice as long takes twice as many steps, whatever they say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from tenuto.core.items import PlanRefused
from tenuto.knowledge.findings import failing, findings
from tenuto.knowledge.plans import read_plan
from tests.unit.test_failing_items import item

Make = Callable[[int], str]
SIZE = 30


def each(line: str) -> Make:
    return lambda count: "".join(line.format(n=n, before=n - 1) for n in range(count))


TABLE = "| id | title | depends on |\n|---|---|---|\n"
REVIEW = "| id | severity | finding |\n|---|---|---|\n"
PLANS: dict[str, Make] = {
    "waves and nothing else": each("Wave {n}: {n}\n"),
    "a wave each": each("## Wave {n}\n- {n:04}-a\n"),
    "fences": lambda count: "```\n" * count,
    "rulers": lambda count: "---\n" * count,
    "an honest table": lambda count: TABLE + each("| t{n} | Do {n} | t{before} |\n")(count),
    "entries that end alike": lambda count: "## Wave 1\n" + each("- {n:04}-a (depends_on: {before:04}-a)\n")(count),
    "a heading each": each("## Task {n}: do\nDepends on: {before}\nFiles: a.txt\n\n"),
    "numbers below numbers": each("## Tasks\n- {n}: a\n- {n}.1: b\n"),
    "the plan's own block": lambda count: f"```tenuto-plan\n{each('- id: t{n}' + chr(10))(count)}```\n",
}
REVIEWS: dict[str, Make] = {
    "severities": each("severity: High\n"),
    "a section of entries": lambda count: "## All\n" + each("- **High** x in a.py:{n}\n")(count),
    "a table": lambda count: REVIEW + each("| F{n} | High | bad |\n")(count),
    "a heading each": each("### F{n} [High] x\n\nfile: a.py:1\n\n"),
    "one long line": lambda count: "- [High] " + "not " * count,
}


def steps(call: Callable[[], object]) -> int:
    """Lines of Python that were run."""
    counted = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal counted
        counted += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        call()
    except PlanRefused:
        pass
    finally:
        sys.settrace(before)
    return counted


def grows_evenly(read: Callable[[str], object], make: Make) -> bool:
    """Measured where the beginning of a text does not count: from twice to four times."""
    texts = [make(times * SIZE) for times in (4, 1, 2, 4)]
    _, one, two, four = [steps(partial(read, text)) for text in texts]  # the first one fills caches
    return four - two <= 2.6 * (two - one)


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_a_plan_twice_as_long_takes_twice_as_many_steps(make: Make) -> None:
    assert grows_evenly(read_plan, make)


@pytest.mark.parametrize("make", REVIEWS.values(), ids=REVIEWS)
def test_so_does_a_review(make: Make) -> None:
    assert grows_evenly(findings, make)


@pytest.mark.parametrize("make", REVIEWS.values(), ids=REVIEWS)
def test_and_so_does_the_search_for_items_that_fail(make: Make) -> None:
    items = [item(f"t{n}") for n in range(5)]
    assert grows_evenly(lambda text: failing([text], items), make)
