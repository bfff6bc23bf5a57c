"""One run in depth: the past at any event is what the engine folds, and every rehearsal is what then happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.core.fold import fold
from tenuto.core.todo import todo
from tenuto.encoding import dumps, loads
from tenuto.errors import BadInput, NotFound
from tenuto.knowledge import definitions
from tenuto.show.run_page import APART, Runs, items_of, why_not_more
from tenuto.show.waiting import Surroundings, waiting_view
from tests.property.rehearsal import Rehearsal, item
from tests.support.journals import append, noted, started

NOW = "2026-11-15T23:00:00.000Z"
ITEMS = [item("01"), item("02"), item("03", "01"), item("04", "01"), item("05", "03")]
DECIDING = ("choose-review-tier", "check-graduation", "record-debt", "mark-graduated")
SHIPPED = sorted(one["name"] for one in definitions.available(None) if not one["problems"])


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    (tmp_path / ".git").mkdir()
    return tenuto.open(str(tmp_path))


def long_run(workspace: Any, events: int) -> None:
    append(workspace.journal, "r", 0, started("r"), *(noted(f"{number}") for number in range(events - 1)))


def test_the_past_at_an_event_is_the_fold_of_the_events_up_to_it(workspace: Any) -> None:
    """In any order, so that a kept fold is gone on from, and gone back behind."""
    count = 2 * APART + 20
    long_run(workspace, count)
    with workspace.journal.read() as reader:
        events = list(reader.events("r"))
    runs = Runs(workspace)
    for at in (count, 3, APART, APART + 1, 2 * APART + 7, APART - 1, 1):
        assert dumps(runs.run_at("r", at)) == dumps(fold(loads(dumps(events[:at])))), at


def test_a_page_of_the_past_says_so_and_its_history_ends_there(workspace: Any) -> None:
    long_run(workspace, 9)
    page = Runs(workspace).page("r", 4)
    assert (page["at"], page["is_past"], page["run"]["version"]) == (4, True, 4)
    assert [line["seq"] for line in page["history"]["lines"]] == [1, 2, 3, 4] and page["history"]["count"] == 9
    assert page["driven"]["words"] == "this is the past"
    now = Runs(workspace).page("r", 9)
    assert not now["is_past"] and now["seal"] == page["seal"] and now["seal"]["events"] == 9
    for at in (0, 10, -1):
        with pytest.raises(BadInput):
            Runs(workspace).page("r", at)
    with pytest.raises(NotFound):
        Runs(workspace).page("nobody")


def test_a_run_of_the_same_name_that_was_begun_anew_has_its_own_past(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        place = tmp_path / name
        (place / ".git").mkdir(parents=True)
        workspace = tenuto.open(str(place))
        append(workspace.journal, "r", 0, {**started("r"), "request": name}, noted("one"))
        runs.append(workspace)
    looking = Runs(runs[0])
    assert looking.run_at("r", 1)["request"] == "a"
    looking.workspace = runs[1]
    assert looking.run_at("r", 1)["request"] == "b"


# ---- why nothing more is under way


def until_waves(pipeline: str = "eight-step") -> Rehearsal:
    play = Rehearsal(pipeline, lambda a: "DONE", ITEMS)
    while not play.run["items"] or not play.run["in_flight"]:
        assert play.step()
    return play


def test_an_item_that_waits_says_for_what() -> None:
    play = until_waves()
    nodes = {node["item"]: node for node in items_of(play.run, play.pipeline)}
    assert nodes["03"]["kind"] == "dependency" and nodes["03"]["blocked_by"] == "it waits for 01"
    assert nodes["01"]["attempts"] and nodes["01"]["wave"] == 1 and nodes["05"]["wave"] == 3


def test_the_cap_is_named_where_it_holds_work_back() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item(str(number)) for number in range(9)])
    play.pipeline["cap"] = 2
    while len(play.run["in_flight"]) < 2 or not play.run["items"]:
        actions = todo(play.pipeline, play.run)
        assert play.step((lambda options: options[0]) if actions else (lambda options: options[-1]))
    assert list(why_not_more(play.run, play.pipeline, todo(play.pipeline, play.run))) == [
        "the cap: at most 2 agents work at a time"
    ]


def test_a_budget_that_is_used_up_is_named() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    play.say({"do": "ChangeBudget", "limits": {"attempts": 2}})
    while todo(play.pipeline, play.run)[:1] == [] or todo(play.pipeline, play.run)[0]["act"] != "pause":
        assert play.step()
    reasons = list(why_not_more(play.run, play.pipeline, todo(play.pipeline, play.run)))
    assert "the run may use 2 attempts" in reasons[0]


# ---- what is rehearsed is what happens


def gates_of(name: str) -> list[tuple[str, str]]:
    pipeline = definitions.load(name)
    found: list[tuple[str, str]] = []
    for step in pipeline["steps"]:
        if step["kind"] == "gate":
            found += [(step["id"], option) for option in step["gate"]["options"]]
    return found


CHOICES = [(name, gate, option) for name in SHIPPED for gate, option in gates_of(name)]


@pytest.mark.parametrize(("name", "gate", "option"), CHOICES)
def test_what_a_button_says_is_what_then_happens(name: str, gate: str, option: str) -> None:
    """Every gate of every shipped pipeline, every choice: the engine's own rules, for real."""
    switches = dict.fromkeys(definitions.load(name)["switches"], True)
    good = {"status": "approved", "issues": [], "verdict": "PASS", "coverage": 95}
    play = Rehearsal(name, lambda a: ("DONE", [], good), ITEMS, switches)
    assert stand_at(play, gate)
    plan: Any = lambda run, step: {"do": "PlanVisit", "items": ITEMS, "findings": []}
    view = waiting_view(play.run, Surroundings(play.pipeline, play.repo, NOW, plan=plan))
    assert view is not None
    (told,) = [one for one in view["answers"] if one["answer"] == option]
    play.say({"do": "DecideGate", "decision": option, "who": "p", "shown": [], "proof": {"level": "guarded"}})
    go_on(play)
    assert told["refused"] == "" and told["status"] == play.run["status"]
    due = todo(play.pipeline, play.run)
    named = [(one["act"], one["step"] or "", one.get("attempt", one.get("action", one.get("unit", "")))) for one in due]
    assert [(one["act"], one["step"], one["what"]) for one in told["due"]] == named
    for one in due:
        if one["act"] == "dispatch":
            assert (one["item"] or one["attempt"]) in told["told"] or " more" in told["told"]


def stand_at(play: Rehearsal, gate: str) -> bool:
    """Open it, and decide nothing."""
    for _ in range(5000):
        actions = todo(play.pipeline, play.run)
        if actions and actions[0]["act"] == "ask" and actions[0]["step"] == gate:
            play.say({"do": "OpenGate", "name": gate, "prompt": "?"})
            return True
        if not play.step():
            return False
    raise AssertionError("the run did not come to rest")


def go_on(play: Rehearsal) -> None:
    """What an engine does by itself, and nothing that starts, asks or must be done."""
    for _ in range(100):
        due = todo(play.pipeline, play.run)
        if not due or due[0]["act"] not in ("begin", "conclude", "plan", "do"):
            return
        if due[0]["act"] == "do" and due[0]["action"] in DECIDING:
            return
        play.perform(due[0])


def test_an_approval_before_waves_says_how_many_items_and_waves_and_who_starts() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", ITEMS, {"approval": True})
    assert stand_at(play, "post-planning")
    plan: Any = lambda run, step: {"do": "PlanVisit", "items": ITEMS, "findings": []}
    before = dumps(play.run)
    view = waiting_view(play.run, Surroundings(play.pipeline, play.repo, NOW, plan=plan))
    assert view is not None and dumps(play.run) == before, "a look changes nothing"
    told = {one["answer"]: one["told"] for one in view["answers"]}
    assert "5 items in 3 waves" in told["approve"] and "starts 01, 02" in told["approve"]
    assert told["reject"] == "the run ends as failed" and "back to " in told["revise"]


def test_a_rehearsal_says_what_is_left_of_each_limit() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", ITEMS, {"approval": True})
    play.say({"do": "ChangeBudget", "limits": {"attempts": 100}})
    assert stand_at(play, "post-research")
    view = waiting_view(play.run, Surroundings(play.pipeline, play.repo, NOW))
    assert view is not None
    (left,) = view["answers"][0]["budget"]
    spent = play.run["budget"]["spent"]["attempts"]
    assert (left["unit"], left["limit"], left["left"]) == ("attempts", 100, 100 - spent - 1)
