"""docs/reference/eight-step.md leads from what happened to the rule and its proof, and names nothing that is not
there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenuto.knowledge import definitions

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/eight-step.md").read_text()
ROWS = re.findall(r"^\| (?!when|---)(.+?) \| (.+?) \| `([\w-]+)` \| `(test_\w+)` \|$", PAGE, re.MULTILINE)
TESTS = [
    name
    for path in sorted((ROOT / "tests/acceptance").glob("test_seed_002*.py"))
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_a_step_and_a_test_that_exist(row: tuple[str, str, str, str]) -> None:
    assert row[2] in [step["id"] for step in definitions.load("eight-step")["steps"]]
    assert row[3] in TESTS


def test_every_route_of_the_pipeline_is_on_the_page() -> None:
    """With the number of times it may be taken."""
    routed = [
        step["id"]
        for step in definitions.load("eight-step")["steps"]
        if any(then["do"] == "route" and step["kind"] != "gate" for then in step["on"].values())
    ]
    assert routed == ["design-review", "verification", "review"]
    told = {step: " ".join(then for _, then, where, _ in ROWS if where == step) for step in routed}
    assert (
        "at most 1 loop" in told["design-review"]
        and "at most 3 times" in told["verification"]
        and "once" in told["review"]
    )


@pytest.mark.parametrize("document", ["README.md", "AGENTS.md", "docs/README.md", "docs/howto/run-a-pipeline.md"])
def test_whoever_looks_for_a_rule_is_led_there(document: str) -> None:
    """ "CT asks for revision twice" is found in under a minute, from wherever a reader begins."""
    assert "reference/eight-step.md" in (ROOT / document).read_text()
    assert "CT asks for revision twice" in PAGE


def test_the_rule_stands_beside_its_words_in_the_pipeline() -> None:
    text = (ROOT / "tenuto/pipelines/eight-step.yaml").read_text()
    assert "CT asks for revision twice" in text.partition("id: design-review")[2].partition("- id:")[0]
