"""One status vocabulary inside; each dialect shows its own, and nothing that its seed does not know."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from tenuto.core.decide import decide
from tenuto.core.fold import apply
from tenuto.core.parts import new_repo, new_run
from tenuto.core.records.run import Status
from tenuto.dialects import dialect_named
from tenuto.names import DIALECTS
from tenuto.views import Views
from tests.acceptance.rehearsing import FILES, validate

WORKFLOW = {"context": "orchestrate", "flow": "ticket", "staged": "staged-standard", "feature_state": "feature-dev"}
SWITCHES: Any = {"switches": {"tests": True, "docs": True}, "steps": []}
# How a run comes to have each status; the two that no command leads to are set.
LEADING: dict[str, list[dict[str, Any]]] = {
    "created": [],
    "running": [],
    "restarting": [],
    "paused": [{"do": "Pause", "kind": "person", "reason": "tired"}],
    "waiting_gate": [{"do": "OpenGate", "name": "design", "prompt": "Go on?"}],
    "parked": [{"do": "Park", "until": "2026-11-15T12:00:00.000Z", "reason": "limit"}],
    "blocked": [{"do": "Block", "reason": "nobody knows"}],
    "stopped": [{"do": "Stop", "reason": "enough"}],
    "completed": [{"do": "Finish"}],
    "poc-complete": [{"do": "Finish", "outcome": "poc-complete"}],
    "graduated": [{"do": "Finish", "outcome": "poc-complete"}, {"do": "Finish", "outcome": "graduated"}],
    "failed": [{"do": "Fail", "error": "broken"}],
    "cancelled": [{"do": "Cancel"}],
}
SHOWN_BY_STAGED = {
    "created": "pending",
    "running": "in_progress",
    "restarting": "restarting",
    "paused": "stopped",
    "parked": "stopped",
    "cancelled": "stopped",
    "stopped": "stopped",
    "waiting_gate": "blocked",
    "blocked": "blocked",
    "completed": "completed",
    "poc-complete": "completed",
    "graduated": "completed",
    "failed": "failed",
}
SHOWN_BY_CONTEXT = {
    "created": "running",
    "running": "running",
    "restarting": "running",
    "paused": "paused",
    "stopped": "paused",
    "blocked": "paused",
    "parked": "paused",
    "waiting_gate": "waiting_gate",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
    "poc-complete": "poc-complete",
    "graduated": "graduated",
}


def render(dialect: str, status: str) -> dict[str, Any]:
    """Every JSON file of a run that came to have this status."""
    view, run, repo = Views()[dialect], new_run(), new_repo()
    beginning: Any = dialect_named(dialect).begin("dark-mode", "Dark mode", {}, SWITCHES, "")
    start = {
        "do": "StartRun",
        "run": "dark-mode",
        "name": "Dark mode",
        "request": "Dark mode",
        "mode": "poc",
        "pipeline": {"name": WORKFLOW.get(dialect, "eight-step"), "hash": None},
        "dialects": {dialect: beginning.pop("place")},
        **beginning,
    }
    started = False
    for command in (start, *LEADING[status]):
        stamped: Any = {"at": "2026-11-15T10:00:00.000Z", "by": "test", **command}
        for event in decide(None, repo, run if started else None, stamped):
            apply(run, event)
        started = True
    if status in ("created", "restarting"):
        run["status"] = status  # type: ignore[typeddict-item]
    assert run["status"] == status
    for path in (".agents/tmp/state.json", ".feature-state.json", "docs/orchestrator/context/current-task.md"):
        repo["owners"][path] = "dark-mode"
    return {
        path: body if not path.endswith(".json") else json.loads(body) for path, body in view.render(run, repo).items()
    }


def test_every_status_is_led_to() -> None:
    assert set(LEADING) == set(get_args(Status)) == set(SHOWN_BY_STAGED) == set(SHOWN_BY_CONTEXT)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", LEADING)
def test_every_status_is_shown_as_the_seed_allows(dialect: str, status: str) -> None:
    files = render(dialect, status)
    assert files
    for path, name in FILES[dialect].items():
        if path.replace("{slug}", "dark-mode") in files:
            validate(files[path.replace("{slug}", "dark-mode")], name)


@pytest.mark.parametrize("status", LEADING)
def test_the_words_are_those_that_were_agreed_on(status: str) -> None:
    assert render("staged", status)[".agents/tmp/state.json"]["status"] == SHOWN_BY_STAGED[status]
    manifest = render("context", status)["docs/orchestrator/context/tasks/dark-mode/manifest.json"]
    assert manifest["status"] == SHOWN_BY_CONTEXT[status]
    assert (manifest["gate_context"] is not None) == (status == "waiting_gate")
    feature = render("feature_state", status)[".feature-state.json"]["currentFeature"]
    assert ("pausedAt" in feature) == (status in ("paused", "parked", "stopped", "cancelled", "failed"))
    flow_state = render("flow", status)[".ai-workspace/dark-mode/flow-state.json"]
    assert (flow_state["phase"] == "complete") == (status in ("completed", "poc-complete", "graduated"))
