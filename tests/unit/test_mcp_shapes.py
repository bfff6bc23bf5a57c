"""A question that does not fit its tool is refused with the first problem, in plain words."""

from __future__ import annotations

import pytest

from tenuto.entrypoints.mcp import tools
from tenuto.entrypoints.mcp.tools import APPROVE, TOOLS
from tenuto.errors import BadInput

BY_NAME = {tool.name: tool for tool in (*TOOLS, APPROVE)}


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("list", {"limit": 0}, "list: limit is at least 1"),
        ("list", {"limit": "x"}, "list: limit must be of type integer"),
        ("list", {"limit": 1.0}, "list: limit must be of type integer"),
        ("list", {"limit": True}, "list: limit must be of type integer"),
        ("list", {"status": ["running", 1]}, "list: status[1] must be of type string"),
        ("list", {"colour": 1}, "list: colour is unknown"),
        ("list", [1], "list: the arguments must be of type object"),
        ("report", {"run": "r"}, "report: attempt is missing"),
        ("report", {"colour": 1, "run": "r"}, "report: attempt is missing"),
        ("report", {"run": 1, "attempt": 2}, "report: run must be of type string"),
        ("report", {"attempt": 2, "run": 1}, "report: attempt must be of type string"),
        (
            "report",
            {"run": "r", "attempt": "a", "verdict": "MAYBE"},
            "report: verdict is one of DONE, NEEDS_REVISION, ERROR, QUESTION, not 'MAYBE'",
        ),
        ("start", {"request": "x", "limits": {"attempts": -1}}, "start: limits.attempts is at least 0"),
        ("start", {"request": "x", "limits": {"hours": 1}}, "start: limits.hours is unknown"),
    ],
)
def test_the_first_problem_is_named(tool: str, given: object, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        tools.check(tool, BY_NAME[tool].arguments, given)
    assert (refused.value.code, refused.value.message) == ("bad-argument", message)
    assert refused.value.hint.startswith(f"{tool}: ")


def test_what_fits_passes() -> None:
    tools.check("start", BY_NAME["start"].arguments, {"request": "x", "limits": {"attempts": 3}, "approval": True})
    tools.check("list", BY_NAME["list"].arguments, {})
