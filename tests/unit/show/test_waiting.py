"""What a run waits for, and what core says would follow each answer."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.records.run import Run
from tenuto.core.status import waits_for
from tenuto.encoding import dumps
from tenuto.show.waiting import AnswerView, Surroundings, WaitingView, waiting_view
from tests.property.rehearsal import Rehearsal, item

NOW = "2026-11-15T10:00:00.000Z"
SHOWN = [{"path": "docs/plan.md", "sha256": "aa"}]


def at_gate(**more: Any) -> Rehearsal:
    """The eight steps, stopped at the gate behind research."""
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")], {"approval": True}, lambda gate: None)
    while not play.run["gate"] and play.run["position"] != "post-research":
        assert play.step()
    if not play.run["gate"]:
        play.say({"do": "OpenGate", "name": "post-research", "prompt": "Go on?", "shown": SHOWN, **more})
    return play


def look(play: Rehearsal, **more: Any) -> WaitingView:
    view = waiting_view(play.run, Surroundings(play.pipeline, play.repo, NOW, **more))
    assert view is not None
    return view


def answers(view: WaitingView) -> dict[str, AnswerView]:
    return {one["answer"]: one for one in view["answers"]}


def test_a_gate_says_what_it_shows_and_what_follows_each_decision() -> None:
    play = at_gate()
    before = dumps(play.run)
    view = look(play)
    assert (view["kind"], view["name"], view["reason"]) == ("gate", "post-research", "Go on?")
    assert view["shown"] == SHOWN
    found = answers(view)
    assert list(found) == ["approve", "reject", "revise"]
    assert found["approve"]["due"] == [{"act": "dispatch", "step": "spec", "what": "spec-1-spec-1"}]
    assert found["approve"]["status"] == "running" and found["approve"]["command"] == "tenuto approve r"
    assert found["reject"]["status"] == "failed" and found["reject"]["due"] == []
    assert {one["step"] for one in found["revise"]["due"]} == {"synthesis"}
    assert dumps(play.run) == before, "a look changes nothing"


@pytest.mark.parametrize("option", ["approve", "reject", "revise"])
def test_what_is_said_to_follow_is_what_follows(option: str) -> None:
    """The same decision, given for real: the same status, and the same attempts are due."""
    play = at_gate()
    expected = answers(look(play))[option]
    play.say({"do": "DecideGate", "decision": option, "who": "ada", "shown": SHOWN, "proof": {"level": "guarded"}})
    dispatched: list[str] = []
    while play.run["status"] == "running" and not dispatched:
        assert play.step()
        dispatched = list(play.run["in_flight"])
    assert play.run["status"] == expected["status"]
    assert dispatched == [one["what"] for one in expected["due"]][:1], "they are dispatched one after the other"


def test_an_approval_of_something_else_than_was_shown_would_be_refused() -> None:
    play = at_gate()
    found = answers(look(play, shown=[{"path": "docs/plan.md", "sha256": "bb"}]))
    assert "has changed since: docs/plan.md" in found["approve"]["refused"]
    assert found["approve"]["events"] == [] and found["approve"]["status"] == "waiting_gate"
    assert found["reject"]["refused"] == "" and found["reject"]["status"] == "failed"


def test_a_limit_can_be_raised_and_without_that_the_run_would_stop_again() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    play.say({"do": "ChangeBudget", "limits": {"attempts": 2}})
    while play.run["status"] == "running" and play.step():
        pass
    assert play.run["status"] == "paused"
    view = look(play)
    found = answers(view)
    assert view["kind"] == "limit" and list(found) == ["raise", "resume", "cancel"]
    assert [one["act"] for one in found["resume"]["due"]] == ["pause"], "as it is, there is nothing left to spend"
    assert found["resume"]["due"][0]["what"] == "attempts"
    assert {one["act"] for one in found["raise"]["due"]} == {"dispatch"}
    assert found["cancel"]["status"] == "cancelled"


def test_a_question_names_who_asks_and_an_answer_asks_them_again() -> None:
    play = Rehearsal("ticket", lambda a: "QUESTION")
    while play.run["status"] == "running" and play.step():
        pass
    view = look(play)
    assert view["kind"] == "question" and view["asked_by"] in play.run["attempts"]
    found = answers(view)
    assert list(found) == ["answer", "cancel"]
    again = found["answer"]["due"][0]
    assert again["act"] == "dispatch" and again["what"].endswith("-2"), "the same place, a second attempt"


def waiting(run: Run) -> tuple[str, str]:
    view = waits_for(run)
    assert view is not None
    return view["kind"], view["cause"]


def test_each_kind_of_rest_has_its_own_answers() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    assert waits_for(play.run) is None and waiting_view(play.run, Surroundings(play.pipeline, play.repo, NOW)) is None
    play.say({"do": "Pause", "kind": "person", "reason": "lunch"})
    assert waiting(play.run) == ("pause", "person")
    assert list(answers(look(play))) == ["resume", "cancel"]
    assert answers(look(play))["resume"]["due"], "research begins"
    play.say({"do": "Resume"})
    play.say({"do": "Park", "until": "2099-01-01T00:00:00.000Z", "reason": "the limit of the program"})
    view = look(play)
    assert (view["kind"], view["until"]) == ("time", "2099-01-01T00:00:00.000Z")
    assert answers(view)["resume"]["command"] == "tenuto resume r --now" and not answers(view)["resume"]["refused"]
    play.say({"do": "Resume", "early": True})
    play.say({"do": "Block", "reason": "nothing to build"})
    view = look(play)
    assert view["kind"] == "blocked" and answers(view)["retry"]["refused"], "no step was begun yet"


def test_a_run_that_is_led_by_hand_has_no_next_step_to_foretell() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [])
    play.say({"do": "Pause", "kind": "person", "reason": "lunch"})
    run: Any = {**play.run, "driver": "manual"}
    view = waiting_view(run, Surroundings(None, play.repo, NOW))
    assert view is not None and answers(view)["resume"]["due"] == []
    assert answers(view)["resume"]["events"] == ["resumed with retry"]
