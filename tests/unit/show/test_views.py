"""A run as a flat record."""

from __future__ import annotations

from typing import Any

from tenuto.show.measures import HOW, measured, measures
from tenuto.show.views import is_in_flight, phase_of, run_view
from tests.property.rehearsal import Rehearsal, item


def test_an_attempt_shows_what_was_said_beside_what_was_found() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    while not play.run["in_flight"]:
        assert play.step()
    [name, *_] = play.run["in_flight"]
    play.say(
        {
            "do": "FinishAttempt",
            "attempt": name,
            "status": "failed",
            "verdict": "ERROR",
            "summary": "claimed DONE, but a.md was not written",
            "said": {"verdict": "DONE", "summary": "all is well"},
            "receipt": {"problem": "a.md was not written", "severities": [], "answer": None},
        }
    )
    [attempt] = [one for one in run_view(play.run)["attempts"] if one["attempt"] == name]
    assert attempt["said"] == {"verdict": "DONE", "summary": "all is well"}
    assert attempt["found"] == {"verdict": "ERROR", "problem": "a.md was not written"}
    assert attempt["verdict"] == "ERROR" and not is_in_flight(attempt)


def test_steps_to_come_are_shown_where_the_pipeline_is_known() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1"), item("2", "1")])
    while not (
        play.run["current_visit"] and play.run["current_visit"]["step"] == "implementation" and play.run["in_flight"]
    ):
        assert play.step()
    known, all_steps = run_view(play.run), run_view(play.run, play.pipeline)
    assert "review" not in [step["step"] for step in known["steps"]]
    assert [step for step in all_steps["steps"] if step["step"] == "review"] == [
        {"step": "review", "status": "pending", "verdict": None, "visits": 0, "here": False, "reason": ""}
    ]
    assert [step["step"] for step in known["steps"] if step["here"]] == ["implementation"]
    assert known["current"] == {
        "step": "implementation",
        "visit": 1,
        "wave": 1,
        "waves": 2,
        "items": 2,
        "items_ended": 0,
    }
    assert known["waves"] == [["1"], ["2"]] and [one["item"] for one in known["items"]] == ["1", "2"]


def test_a_limit_shows_what_is_used_or_promised_of_it() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    play.say({"do": "ChangeBudget", "limits": {"attempts": 9}, "steps": {"design": {"attempts": 2}}})
    while not play.run["in_flight"]:
        assert play.step()
    assert run_view(play.run)["limits"] == [
        {"step": "", "unit": "attempts", "limit": 9, "used": len(play.run["in_flight"])},
        {"step": "design", "unit": "attempts", "limit": 2, "used": 0},
    ]


def test_every_status_is_under_way_or_waits_or_has_ended() -> None:
    assert [
        phase_of(one) for one in ("running", "waiting_gate", "parked", "completed", "poc-complete", "cancelled")
    ] == [
        "under_way",
        "waiting",
        "waiting",
        "ended",
        "ended",
        "ended",
    ]


def test_figures_say_how_they_were_measured() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1")])
    run: Any = play.play()
    found = measured(run)
    assert found["how"] == HOW and found["metrics"] == measures(run)["metrics"]
    assert set(HOW) <= set(found["metrics"]) | set(found), "nothing is explained that is not there"
