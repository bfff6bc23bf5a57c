"""Every action, in every dialect: something carries it out, or the pipeline is refused before it starts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import pytest

from tenuto.core.actions import CARRIED_OUT_BY, ENGINE, carries_out
from tenuto.core.pipeline.records import ActionName
from tenuto.engine.actions import _ACTIONS
from tenuto.names import DIALECTS
from tests.unit.core.by_check import agent, wrong

PACKAGE = Path(__file__).resolve().parents[3] / "tenuto"
PLACES: dict[str, Any] = {
    "action": lambda action: ({"id": "a", "action": action}, agent("b")),
    "before": lambda action: (agent("a", before=[action]),),
    "after": lambda action: (agent("a", after=[action]),),
    "between": lambda action: (
        {"id": "a", "waves": {"plan": "plan.md", "roles": [{"role": "worker"}]}, "between": [action]},
    ),
}


def test_every_action_is_carried_out_by_the_engine_or_by_a_dialect_that_there_is() -> None:
    assert set(CARRIED_OUT_BY) == set(get_args(ActionName))
    assert set(CARRIED_OUT_BY.values()) <= {ENGINE, *DIALECTS}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("action", CARRIED_OUT_BY)
def test_an_action_that_nothing_carries_out_is_refused(action: ActionName, dialect: str, place: str) -> None:
    """Three of them were recorded as done, and nothing had done them."""
    found = wrong(*PLACES[place](action), shown_as=dialect)
    expected = [] if carries_out(action, [dialect]) else [(f"steps.0.{place}", "contradiction")]
    assert found == expected


def test_an_action_that_there_is_not_is_refused() -> None:
    assert wrong({"id": "a", "action": "clean-memory"}, agent("b"), shown_as="feature_docs") != []


def test_what_the_table_says_of_the_engine_is_so() -> None:
    assert set(_ACTIONS) == {action for action, by in CARRIED_OUT_BY.items() if by == ENGINE}


def test_what_the_table_says_of_the_dialects_is_so() -> None:
    """feature_docs shows the files themselves; every other dialect that has actions names them in its `act`."""
    named: dict[str, set[str]] = {}
    for path in (PACKAGE / "dialects").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and function.name == "act":
                words = {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)}
                dialect = path.relative_to(PACKAGE / "dialects").parts[0].removesuffix(".py")
                named.setdefault(dialect, set()).update(word for word in words if word in set(CARRIED_OUT_BY))
    acting = {dialect: words for dialect, words in named.items() if words}
    assert acting == {"context": {action for action, by in CARRIED_OUT_BY.items() if by == "context"}}
