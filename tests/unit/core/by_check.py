"""Pipelines written as data, and what `check` makes of them: with all that is wrong, and where."""

from __future__ import annotations

from typing import Any

from tenuto.core.pipeline.check import check


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": {"role": "worker"}, **more}


def back(*to: Any, **more: Any) -> dict[str, Any]:
    return {"route": list(to), "at_most": 1, **more}


def problems(*steps: Any, roles: Any = None, **top: Any) -> list[Any]:
    return check({"name": "trial", "existing": ["plan.md"], "steps": list(steps), **top}, roles)[1]


def wrong(*steps: Any, **top: Any) -> list[tuple[str, str]]:
    """The place and the code of everything that is wrong."""
    return [(".".join(map(str, one["path"])), one["code"]) for one in problems(*steps, **top)]


def checked(*steps: Any, **top: Any) -> dict[str, Any]:
    """The steps by their names, of a pipeline that is right, and stays as it is when it is checked again."""
    raw = {"name": "trial", "existing": ["plan.md"], "steps": list(steps), **top}
    found, noted = check(raw)
    assert found is not None, noted
    assert check(found) == (found, [])
    return {step["id"]: step for step in found["steps"]}
