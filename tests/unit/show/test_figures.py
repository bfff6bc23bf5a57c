"""Figures over runs: what is not known is never zero, and a spreadsheet gets no formula."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.show.figures import compare_view, figures_csv, figures_view, machine_view
from tests.support.journals import append, started

AT = "2026-11-18T10:00:00.000Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    (tmp_path / ".git").mkdir()
    return tenuto.open(str(tmp_path))


def dispatched(name: str, at: str, number: int = 1) -> Any:
    return {
        "type": "AttemptDispatched",
        "v": 2,
        "at": at,
        "by": "test",
        "attempt": name,
        "step": "build",
        "role": "implementer",
        "agent": "scripted",
        "task": "",
        "item": None,
        "iteration": 1,
        "number": number,
        "summary": "",
        "reserved": {},
        "extra": {"seat": "b"},
    }


def finished(name: str, at: str, verdict: str, usage: Any) -> Any:
    return {
        "type": "AttemptFinished",
        "v": 2,
        "at": at,
        "by": "test",
        "attempt": name,
        "status": "completed",
        "verdict": verdict,
        "summary": "",
        "said": {"verdict": "DONE", "summary": "ok"},
        "found": {"verdict": verdict, "problem": "" if verdict == "DONE" else "tests failed"},
        "receipt": {},
        "usage": usage,
        "extra": {},
    }


def run(workspace: Any, name: str, day: str, *pairs: tuple[str, Any]) -> None:
    begun = {**started(name, f"2026-11-{day}T10:00:00.000Z"), "pipeline": {"name": "quick", "hash": None}}
    events: list[Any] = [begun]
    for number, (verdict, usage) in enumerate(pairs, 1):
        events.append(dispatched(f"b-{number}", f"2026-11-{day}T10:0{number}:00.000Z", number))
        events.append(finished(f"b-{number}", f"2026-11-{day}T10:0{number}:30.000Z", verdict, usage))
    append(workspace.journal, name, 0, *events)


def test_what_runs_used_is_added_up_by_pipeline_week_role_and_agent(workspace: Any) -> None:
    run(workspace, "one", "09", ("ERROR", {"micro_usd": 100}), ("DONE", {"micro_usd": 50}))
    run(workspace, "two", "18", ("DONE", {}))
    view = figures_view(workspace)
    assert (view["all"]["runs"], view["all"]["attempts"], view["all"]["refuted"]) == (2, 3, 1)
    assert (view["all"]["micro_usd"], view["all"]["tokens"]) == (150, None), "nobody reported tokens"
    assert [(one["name"], one["micro_usd"]) for one in view["by_week"]] == [("2026-11-16", None), ("2026-11-09", 150)]
    (role,) = view["by_role"]
    assert (role["name"], role["retries"], role["refuted"], role["median_ms"]) == ("implementer", 1, 1, 30_000)
    assert view["by_agent"][0]["name"] == "scripted" and view["latest"] == 2
    (pipeline,) = view["by_pipeline"]
    assert (pipeline["name"], pipeline["latest"], pipeline["retries"], pipeline["waited_ms"]) == ("quick", 2, 1, 0)
    assert [one["retries"] for one in view["by_week"]] == [0, 1]


def test_where_there_is_no_journal_there_are_no_figures_and_none_is_made(workspace: Any) -> None:
    assert figures_view(workspace)["all"]["runs"] == 0 and figures_csv(workspace).count("\r\n") == 1
    assert not workspace.journal.exists()


def test_a_spreadsheet_gets_words_never_a_formula_and_nothing_for_what_is_not_known(workspace: Any) -> None:
    append(workspace.journal, "r", 0, {**started("r", AT), "name": '=HYPERLINK("http://x")'})
    head, line, _ = figures_csv(workspace).split("\r\n")
    assert head.endswith("attempts,refuted,micro_usd,tokens,busy_ms")
    assert line.startswith("r,\"'=HYPERLINK(") and line.endswith(",0,0,,,0")


def test_two_runs_stand_side_by_side_step_by_step(workspace: Any) -> None:
    run(workspace, "one", "09", ("ERROR", {"micro_usd": 100}), ("DONE", {"micro_usd": 50}))
    run(workspace, "two", "18", ("DONE", {}))
    view = compare_view(workspace, "one", "two")
    first, second = view["sides"]
    assert (first["attempts"], second["attempts"], first["retries"], first["refuted"]) == (2, 1, 1, 1)
    assert (first["micro_usd"], second["micro_usd"]) == (150, None)
    assert view["params"] == [] and view["artifacts"] == []


def test_the_machine_says_which_settings_there_are_and_what_they_may_be(workspace: Any) -> None:
    Path(workspace.root, ".tenuto").mkdir()
    Path(workspace.root, ".tenuto/config.yaml").write_text("gates: signed\n")
    view = machine_view(workspace, "9.9")
    settings = {one["name"]: one for one in view["settings"]}
    assert (view["version"], view["gates"], settings["gates"]["value"]) == ("9.9", "signed", "signed")
    assert settings["agent"]["value"] is None and settings["agent"]["shape"] and view["problem"] == ""
    Path(workspace.root, ".tenuto/config.yaml").write_text("gates: [\n")
    assert machine_view(workspace, "9.9")["problem"]
