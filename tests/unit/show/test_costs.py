"""What all runs have cost: each attempt once, in the day in which it ended, and what nobody said is not zero."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import tenuto
from tenuto.core.parts import new_attempt
from tenuto.show.figures import BY, CostsBy, _model, costs_csv, costs_view
from tests.support.houses import House

ANSWERS = """\
answers:
  - for: {role: designer}
    usage: {micro_usd: 250000, tokens: 1000}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    made = House(tmp_path_factory.mktemp("costs"), "zone: UTC\nbudget: {day: {money: 5}}\n")
    dear = made.script(ANSWERS)
    for name in ("One", "Two"):
        assert made.say("run", name, "--pipeline", "small", "--agent", dear, "--tree").returncode == 0
    return made


@pytest.mark.parametrize("by", BY)
def test_every_way_to_look_at_it_has_the_same_sum(house: House, by: CostsBy) -> None:
    view = costs_view(tenuto.open(str(house.root)), by)
    assert sum(one["micro_usd"] or 0 for one in view["rows"]) == view["all"]["micro_usd"] == 500_000
    assert sum(one["attempts"] for one in view["rows"]) == view["all"]["attempts"] == 2
    assert view["budget"] == [{"span": "day", "unit": "micro_usd", "limit": 5_000_000, "used": 500_000}]


def test_what_a_model_a_role_and_a_run_cost(house: House) -> None:
    workspace = tenuto.open(str(house.root))
    assert [one["name"] for one in costs_view(workspace, "role")["rows"]] == ["designer"]
    assert sorted(one["name"] for one in costs_view(workspace, "run")["rows"]) == ["one", "two"]
    assert costs_view(workspace, "run", "9999-01-01")["rows"] == []
    assert [one["name"] for one in costs_view(workspace, "model")["rows"]] == [""], "nobody named one"


@pytest.mark.parametrize(
    ("agent", "model"), [("claude:model=opus", "opus"), ("codex:effort=high,model=gpt", "gpt"), ("claude", "")]
)
def test_the_model_that_was_asked_for(agent: str, model: str) -> None:
    attempt = new_attempt("write", "designer", "", agent=agent)
    assert _model(attempt) == model


def test_a_spreadsheet_gets_the_same(house: House) -> None:
    view = costs_view(tenuto.open(str(house.root)), "pipeline")
    rows = list(csv.DictReader(io.StringIO(costs_csv(view))))
    assert [(row["pipeline"], row["micro_usd"], row["runs"]) for row in rows] == [("small", "500000", "2")]


def test_what_no_agent_reported_is_unknown_and_not_zero(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.say("run", "One", "--pipeline", "small", "--agent", house.script(), "--tree").returncode == 0
    view = house.data("costs")
    assert view["all"]["micro_usd"] is None and view["all"]["unreported"] == 1
    assert "did not say what they cost" in house.say("costs").stdout
    assert house.data("list")["runs"][0]["figures"]["micro_usd"] is None
    assert house.say("costs", "--since", "yesterday").returncode == 2


def test_runs_shows_every_tree_with_who_drives_and_what_waits(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.say("run", "One", "--pipeline", "gated", "--agent", house.script(), "--tree").returncode == 5
    told = house.say("runs").stdout
    assert "needs you: 1 run" in told and ".tenuto/runs/one" in told and "Go on?" in told
    assert house.data("runs")["needs_you"][0]["tree"].endswith("/.tenuto/runs/one")
