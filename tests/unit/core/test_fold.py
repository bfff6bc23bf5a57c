"""What a run is after each event: core/fold.py and its two halves, notes.py and progress.py."""

from __future__ import annotations

from typing import Any

import pytest

from tenuto.core.fold import apply, fold
from tenuto.core.parts import new_run
from tests.unit.core.by_command import BEGUN, Asked

T0, T1, T2 = "2026-11-15T10:00:00.000Z", "2026-11-15T10:00:01.000Z", "2026-11-15T10:00:03.000Z"


def told(run: Any, type_: str, at: str = T0, **fields: Any) -> Any:
    apply(run, {"type": type_, "v": 2, "at": at, "by": "ada", **fields})
    return run


def fresh(**more: Any) -> Any:
    run: Any = new_run()
    run.update(id="x", status="running", **more)
    return run


# ---- times and versions


def test_every_event_counts_and_leaves_its_time() -> None:
    run = told(fresh(), "Noted", T1, text="", extra={})
    assert (run["version"], run["updated_at"], run["reported_at"]) == (1, T1, T1)
    told(run, "Noted", T2, reported_at=T0, text="", extra={})
    assert (run["version"], run["updated_at"], run["reported_at"]) == (2, T2, T0), (
        "when it happened, where somebody says so"
    )
    kept = fresh()
    assert fold([], kept) is kept and fold([]) == new_run()
    asked = Asked()
    events = list(asked.last)
    asked.do("StartStep", step="a")
    assert fold([*events, *asked.last]) == asked.run == fold(asked.last, fold(events)), (
        "from the beginning, or from what was kept"
    )
    with pytest.raises(KeyError):
        told(fresh(), "Danced")


def test_a_run_begins_with_its_steps_pending() -> None:
    run = Asked(order="strict", schedule=[{"step": "a"}, {"step": "b"}], request="r", settings={"s": 1}).run
    assert (run["id"], run["request"], run["status"], run["settings"], run["order"]) == (
        "x",
        "r",
        "running",
        {"s": 1},
        "strict",
    )
    assert run["created_at"] == run["updated_at"] and run["steps"]["b"] == {
        "status": "pending",
        "iteration": 0,
        "verdict": None,
    }
    assert set(BEGUN) - {"do", "run"} <= run.keys()


def test_what_is_adopted_flies_where_it_flew() -> None:
    one: Any = {"status": "dispatched"}
    state = {
        "attempts": {"a": one, "b": {"status": "running"}, "c": {"status": "completed"}, "d": {"status": "lost"}},
        "status": "stopped",
    }
    run = told(fresh(), "Adopted", dialect="d", path="p", sha256="s", state=state)
    assert (run["in_flight"], run["status"]) == (["a", "b"], "stopped")


# ---- rests


@pytest.mark.parametrize("status", ["running", "poc-complete", "restarting"])
def test_a_run_goes_on_as_what_it_was(status: str) -> None:
    run = fresh(retries=2)
    run["status"] = status
    told(run, "Paused", T1, kind="person", reason="r", step="s", feedback="f", question_of="a-1", recommendations=["x"])
    assert run["pause"] == {
        "kind": "person",
        "reason": "r",
        "step": "s",
        "attempts": 2,
        "feedback": "f",
        "until": "",
        "question_of": "a-1",
        "recommendations": ["x"],
        "resting": status,
    }
    assert (run["status"], run["paused_at"]) == ("paused", T1)
    told(run, "Paused", T2, kind="failure", reason="q", step="s", feedback="", question_of="", recommendations=[])
    assert run["pause"]["resting"] == status, "paused twice, it still goes on as what it was"
    told(run, "Parked", T2, until="u", reason="p")
    assert (run["status"], run["pause"]["resting"], run["pause"]["until"], run["pause"]["kind"]) == (
        "parked",
        status,
        "u",
        "parked",
    )
    told(run, "Resumed", T2, decision="retry")
    assert (run["status"], run["pause"], run["paused_at"], run["stopped_at"], run["resumed_at"]) == (
        status,
        None,
        None,
        None,
        T2,
    )
    told(run, "Parked", T1, until="u", reason="p")
    assert (run["pause"]["resting"], run["paused_at"]) == (status, T1)
    told(run, "Resumed", T2, decision="retry")
    told(run, "Stopped", T1, reason="r")
    assert (run["status"], run["pause"]["resting"], run["pause"]["kind"], run["stopped_at"]) == (
        "stopped",
        status,
        "stopped",
        T1,
    )
    told(run, "Resumed", T2, decision="retry")
    assert (run["status"], run["stopped_at"]) == (status, None)
    assert told(fresh(), "PickedUp", T2, session="")["resumed_at"] == T2
    adopted = fresh()
    adopted["status"] = "stopped"
    assert told(adopted, "Resumed", decision="retry")["status"] == "running", (
        "found at rest, and nobody knows from what"
    )


@pytest.mark.parametrize(
    ("event", "fields", "status"),
    [
        ("Failed", {"step": "s", "error": "e", "context": "c"}, "failed"),
        ("Finished", {"outcome": "completed"}, "completed"),
        ("Cancelled", {"reason": ""}, "cancelled"),
        ("Finished", {"outcome": "graduated"}, "graduated"),
    ],
)
def test_an_end_leaves_nothing_open(event: str, fields: Any, status: str) -> None:
    run = fresh(pause={"resting": "running"}, gate={"id": "g"}, paused_at=T0)
    told(run, event, T1, **fields)
    assert (run["status"], run["stopped_at"], run["pause"], run["gate"], run["paused_at"]) == (
        status,
        T1,
        None,
        None,
        None,
    )
    assert run["graduated_at"] == (T1 if status == "graduated" else None)
    assert run["failure"] == ({"step": "s", "error": "e", "at": T1, "context": "c"} if status == "failed" else None)


def test_blocked_and_unblocked() -> None:
    run = told(fresh(), "Blocked", reason="r", stage="ONE", missing=["a"])
    assert (run["status"], run["blocked"]) == ("blocked", {"reason": "r", "stage": "ONE", "missing": ["a"]})
    told(run, "Unblocked", stage="ONE")
    assert (run["status"], run["blocked"]) == ("running", None)


# ---- steps


def began(run: Any, step: str, at: str = T0, item: str | None = None, iteration: int = 1) -> Any:
    return told(run, "StepStarted", at, step=step, item=item, iteration=iteration, leg=None)


def done(
    run: Any, step: str, at: str = T1, item: str | None = None, status: str = "success", verdict: str | None = "DONE"
) -> Any:
    return told(run, "StepEnded", at, step=step, item=item, status=status, verdict=verdict, summary="", because=[])


def test_where_a_run_is() -> None:
    for order, places in (
        ("any", ["a", "a", "a", None]),
        ("open", ["a", "b", "b", "b"]),
        ("strict", ["a", "a", "a", "a"]),
    ):
        run = fresh(order=order)
        seen = []
        for happens, step in ((began, "a"), (began, "b"), (done, "b"), (done, "a")):
            happens(run, step)
            seen.append(run["position"])
        assert seen == places, order


def test_a_visit_ends_as_the_one_that_began() -> None:
    run = fresh()
    began(run, "a", T0)
    began(run, "a", T1, "1", iteration=2)
    assert run["steps"]["a"] == {"status": "running", "iteration": 2, "verdict": None}
    done(run, "a", T2, status="failed", verdict="ERROR")
    first, second = run["visits"]
    assert (first["status"], first["ended_at"], first["duration_ms"], first["closed"]) == ("failed", T2, 3000, 2)
    assert (second["status"], second["ended_at"], second["closed"]) == ("running", None, None)
    assert (run["retries"], run["steps"]["a"]["status"], run["steps"]["a"]["verdict"]) == (1, "failed", "ERROR")
    done(run, "a", T2, "1")
    assert (second["status"], second["duration_ms"], run["retries"], run["steps"]["a"]["status"]) == (
        "success",
        2000,
        1,
        "completed",
    )
    began(run, "a", T2)
    began(run, "b", T2)
    assert [visit["retries"] for visit in run["visits"]] == [0, 0, 1, 0], "how often it had failed"
    done(run, "nobody began it")
    assert run["steps"]["nobody began it"]["status"] == "completed"
    told(run, "StepSkipped", step="c", reason="")
    assert run["steps"]["c"]["status"] == "skipped"


def test_the_latest_of_two_that_run_is_the_one_that_ends() -> None:
    run = fresh()
    began(run, "a", T0)
    began(run, "a", T1)
    done(run, "a", T2)
    assert [visit["status"] for visit in run["visits"]] == ["running", "success"]


def test_a_stage_that_begins_again_voids_what_it_and_those_behind_it_had() -> None:
    run = fresh(schedule=[{"step": "z"}, {"step": "a"}, {"step": "b"}], order="strict")
    for step in "zab":
        began(run, step)
        if step != "b":
            done(run, step)
        told(run, "ReviewRecorded", step=step, changes={"approved": True})
        told(run, "ArtifactStored", name=step, path=step, sha256="1", size=1, step=step, attempt=None)
    told(run, "Blocked", reason="r", stage="ONE", missing=[])
    told(run, "StageRestarted", T2, stage="ONE", reason="r", to="a", extra={"who": "ada"})
    assert run["restarts"] == [{"stage": "ONE", "reason": "r", "at": T2, "restart": 1, "who": "ada"}]
    assert {step: state["status"] for step, state in run["steps"].items()} == {
        "z": "completed",
        "a": "pending",
        "b": "pending",
    }
    assert run["steps"]["b"] == {"status": "pending", "iteration": 0, "verdict": None}
    assert list(run["reviews"]) == ["z"] and list(run["artifacts"]) == ["z"]
    last = run["visits"][-1]
    assert (last["status"], last["ended_at"], last["duration_ms"], last["closed"]) == (
        "failed",
        T2,
        3000,
        run["version"] - 1,
    )
    assert [visit["status"] for visit in run["visits"]] == ["success", "success", "failed"]
    assert (run["position"], run["blocked"], run["status"]) == ("a", None, "restarting")
    began(run, "a")
    assert run["status"] == "running"
    told(run, "StageRestarted", stage="TWO", reason="r", to="elsewhere")
    assert run["restarts"][-1]["restart"] == 1 and run["steps"]["z"]["status"] == "completed"
    told(run, "StageRestarted", stage="ONE", reason="r", to="a")
    assert run["restarts"][-1]["restart"] == 2
    held = fresh()
    held["status"] = "poc-complete"
    assert began(held, "a")["status"] == "poc-complete", "only a restart ends by beginning"


# ---- attempts, items, gates


def sent(run: Any, name: str = "t", at: str = T0, reserved: Any = None, step: str = "s", **more: Any) -> Any:
    fields = {
        "attempt": name,
        "step": step,
        "role": "r",
        "agent": "g",
        "task": "k",
        "item": None,
        "iteration": 1,
        "number": 1,
        "summary": "first",
        "reserved": reserved or {},
        "extra": {},
    }
    return told(run, "AttemptDispatched", at, **{**fields, **more})


def answered(run: Any, name: str = "t", at: str = T1, usage: Any = None, **more: Any) -> Any:
    fields = {
        "attempt": name,
        "status": "completed",
        "verdict": "DONE",
        "said": {"verdict": "DONE", "summary": "all of it"},
        "found": {"verdict": "DONE", "problem": ""},
        "receipt": {"a": 1},
        "usage": usage or {},
        "summary": "",
        "extra": {},
    }
    return told(run, "AttemptFinished", at, **{**fields, **more})


def test_an_attempt_from_its_dispatch_to_its_end() -> None:
    run = sent(fresh(), extra={"x": 1})
    one = run["attempts"]["t"]
    assert (one["status"], one["started_at"], one["ended_at"], one["summary"], run["in_flight"]) == (
        "dispatched",
        T0,
        None,
        "first",
        ["t"],
    )
    told(run, "AttemptStarted", attempt="t", extra={"pid": 7})
    assert (one["status"], one["extra"]) == ("running", {"x": 1, "pid": 7})
    answered(run, extra={"y": 2})
    assert (one["status"], one["verdict"], one["receipt"], one["summary"], one["ended_at"]) == (
        "completed",
        "DONE",
        {"a": 1},
        "first",
        T1,
    )
    assert one["said"] == {"verdict": "DONE", "summary": "all of it"}, "the agent's own word"
    assert one["found"] == {"verdict": "DONE", "problem": ""}, "and what was left of it"
    assert one["extra"] == {"x": 1, "pid": 7, "y": 2} and run["in_flight"] == []
    other = answered(sent(fresh()), summary="second")
    assert other["attempts"]["t"]["summary"] == "second"
    lost = told(sent(fresh()), "AttemptLost", T1, attempt="t", reason="killed", ran=True)
    assert [lost["attempts"]["t"][key] for key in ("status", "summary", "ended_at")] == ["lost", "killed", T1] and lost[
        "in_flight"
    ] == []


def test_what_is_set_aside_is_free_again_and_what_was_used_is_spent() -> None:
    run = sent(sent(fresh(), "t", T0, {"tokens": 5}), "u", T1, {"tokens": 7})
    budget = run["budget"]
    assert (budget["reserved"], budget["steps"]["s"]["reserved"], budget["busy_since"]) == (
        {"tokens": 12},
        {"tokens": 12},
        T0,
    )
    answered(run, "t", T1, {"tokens": 3, "model": "x", "cached": True, "cost": 0.5})
    assert (budget["reserved"], budget["spent"], budget["dearest"]) == (
        {"tokens": 7},
        {"tokens": 3, "cost": 0.5},
        {"tokens": 3, "cached": True},
    )
    assert (budget["busy_ms"], budget["busy_since"]) == (0, T0), "one is still under way"
    told(run, "AttemptLost", T2, attempt="u", reason="", ran=True)
    assert (budget["reserved"], budget["spent"], budget["dearest"]["tokens"]) == (
        {"tokens": 0},
        {"tokens": 10, "cost": 0.5},
        7,
    ), "nobody knows what it used: all of it"
    assert (budget["busy_ms"], budget["steps"]["s"]["busy_ms"], budget["busy_since"]) == (3000, 3000, None)
    never = told(sent(fresh(), "t", T0, {"tokens": 5}), "AttemptLost", T1, attempt="t", reason="", ran=False)
    assert (never["budget"]["reserved"], never["budget"]["spent"]) == ({"tokens": 0}, {})
    again = answered(sent(run, "v", T2), "v", T2, {"tokens": 2})
    assert again["budget"]["dearest"]["tokens"] == 7 and again["budget"]["spent"]["tokens"] == 12
    assert answered(sent(fresh()), usage={"tokens": 0})["budget"]["dearest"] == {}, "what cost nothing"
    adopted = fresh(in_flight=["t"], attempts={"t": sent(fresh())["attempts"]["t"]})
    assert answered(adopted)["budget"]["busy_ms"] == 0 and adopted["budget"]["steps"] == {}, (
        "nobody knows since when it was under way"
    )
    assert told(fresh(), "BudgetChanged", limits={"tokens": 1}, steps={"s": {"attempts": 2}})["budget"]["steps"]["s"][
        "limits"
    ] == {"attempts": 2}


def test_items_and_waves() -> None:
    run = told(
        fresh(),
        "ItemsPlanned",
        items={"1": {"title": "one", "files": ["a"], "odd": 5}, "2": {"status": "completed"}},
        waves=[["1"], ["2"]],
        groups=[],
        notes=[],
    )
    assert run["items"]["1"] == {
        "title": "one",
        "files": ["a"],
        "depends_on": [],
        "agent": "",
        "status": "pending",
        "extra": {"odd": 5},
    }
    assert run["items"]["2"]["status"] == "completed" and [wave["wave"] for wave in run["waves"]] == [1, 2]
    told(run, "WaveStarted", T1, wave=2)
    told(run, "WaveEnded", T2, wave=2)
    assert [(wave["started_at"], wave["ended_at"]) for wave in run["waves"]] == [(None, None), (T1, T2)]
    told(run, "ItemChanged", item="1", status="failed", files=["a", "b"], harmless=False)
    assert (run["items"]["1"]["status"], run["items"]["1"]["files"]) == ("failed", ["a", "b"])
    told(run, "ItemsPlanned", items={"1": {"title": "other", "extra": {"id": "1"}}}, waves=[], groups=[], notes=[])
    assert (run["items"]["1"]["status"], run["items"]["1"]["extra"]) == ("failed", {"id": "1"}), (
        "planned again, it is where it was"
    )


def opened(run: Any, gate: str = "gate-1") -> Any:
    return told(run, "GateOpened", gate=gate, name="n", prompt="?", options=["approve"], shown=[], completes=False)


def decided(run: Any, gate: str = "gate-1") -> Any:
    return told(
        run,
        "GateDecided",
        T1,
        gate=gate,
        name="n",
        step="s",
        decision="approve",
        approved=True,
        feedback="f",
        who="ada",
        proof={"level": "signed"},
    )


def test_a_gate_holds_what_the_run_was_and_gives_it_back() -> None:
    run = fresh()
    run["status"] = "poc-complete"
    opened(run)
    assert (run["status"], run["gate"]["resting"], run["gate"]["opened_at"]) == ("waiting_gate", "poc-complete", T0)
    opened(run, "gate-1.2")
    assert run["gate"]["resting"] == "poc-complete", "shown anew, too"
    decided(run, "gate-1")
    assert run["status"] == "waiting_gate" and run["gate"]["id"] == "gate-1.2", "a word on another gate opens nothing"
    decided(run, "gate-1.2")
    assert (run["status"], run["gate"], len(run["decisions"])) == ("poc-complete", None, 2)
    assert run["decisions"][0] == {
        "gate": "gate-1",
        "name": "n",
        "step": "s",
        "decision": "approve",
        "approved": True,
        "feedback": "f",
        "who": "ada",
        "at": T1,
        "proof": {"level": "signed"},
        "attempts": 0,
    }
    assert decided(fresh(), "checkpoint-1")["status"] == "running"


# ---- notes


def test_settings_are_merged_deeply_and_the_protection_of_gates_is_settled() -> None:
    run = fresh(settings={"a": {"b": 1, "l": [1, 2]}, "w": {"x": 1}, "p": 1, "gate_protection": {"level": "signed"}})
    told(run, "SettingsChanged", changes={"a": {"c": 2, "l": [3]}, "w": 5, "p": {"q": 1}, "gate_protection": None})
    assert run["settings"] == {
        "a": {"b": 1, "c": 2, "l": [3]},
        "w": 5,
        "p": {"q": 1},
        "gate_protection": {"level": "signed"},
    }


def test_memory_is_written_pruned_invalidated_and_cleaned() -> None:
    run = fresh()

    def entry(step: str, **more: Any) -> Any:
        return {"who": "x", "step": step, "text": "t", "invalidated": None, **more}

    told(run, "MemoryWritten", kind="decisions", entries=[entry("1"), entry("2")])
    told(run, "MemoryWritten", kind="updates", entries=[entry("1"), entry("3")])
    told(run, "MemoryWritten", kind="lessons", entries=[entry("1")])
    told(run, "MemoryWritten", kind="index", entries=[{"artifact": "a", "n": 1}, {"artifact": "b", "n": 1}])
    told(run, "MemoryWritten", kind="index", entries=[{"artifact": "a", "n": 2}])
    assert run["memory"]["index"] == [{"artifact": "b", "n": 1}, {"artifact": "a", "n": 2}], (
        "the last word on each artifact"
    )
    told(run, "MemoryInvalidated", steps=["1"], reason="again")
    assert [one["invalidated"] for kind in ("decisions", "updates", "lessons") for one in run["memory"][kind]] == [
        "again",
        None,
        "again",
        None,
        None,
    ]
    told(run, "MemoryCleaned")
    assert [[one["step"] for one in run["memory"][kind]] for kind in ("decisions", "updates", "lessons")] == [
        ["2"],
        ["3"],
        ["1"],
    ]
    told(run, "MemoryPruned", keep=["3"])
    assert [[one["step"] for one in run["memory"][kind]] for kind in ("decisions", "updates", "lessons")] == [
        [],
        ["3"],
        ["1"],
    ], "lessons stay"


def test_small_notes() -> None:
    run = fresh()
    told(run, "FlagSet", flags={"a": 1})
    told(run, "AnswersRecorded", answers={"q": "w"})
    told(run, "CommitRecorded", T1, step="s", hash="h", message="m", extra={"e": 1})
    told(run, "SessionBound", session="i")
    told(run, "SessionBound", session="i")
    told(run, "ShownIn", dialect="d", place={"tree": "t"})
    assert (run["flags"], run["answers"], run["sessions"], run["dialects"]) == (
        {"a": 1},
        {"q": "w"},
        ["i"],
        {"d": {"tree": "t"}},
    )
    assert run["commits"] == [{"step": "s", "hash": "h", "message": "m", "at": T1, "extra": {"e": 1}}]
    told(run, "ContextRestored", T1, session="")
    assert run["resume"] is None
    told(run, "ContextSaved", T1, context={"c": 1}, reason="r")
    told(run, "ContextRestored", T2, session="")
    assert run["resume"] == {"c": 1, "saved_at": T1, "reason": "r", "restored_at": T2}
    told(run, "ContextSaved", T1, reported_at=T0, context={}, reason="r")
    assert dict(run)["resume"] == {"saved_at": T0, "reason": "r"}
    told(run, "ArtifactStored", T1, name="n", path="p", sha256="s", size=1, step="t", attempt="a")
    assert run["artifacts"]["n"] == {
        "path": "p",
        "sha256": "s",
        "size": 1,
        "step": "t",
        "attempt": "a",
        "at": T1,
        "by": "ada",
    }
    assert told(fresh(), "Forked", source="y", at_step="s", at_version=3, approved=[])["extra"]["fork"] == {
        "source": "y",
        "step": "s",
        "version": 3,
    }


def test_what_others_wrote_into_a_file_is_kept_and_dropped_again() -> None:
    run = fresh()
    told(run, "ForeignEditAbsorbed", dialect="d", path="p", sha256="s", extra={"a": {"b": 1, "c": 2}, "n": 1}, drop=[])
    told(
        run,
        "ForeignEditAbsorbed",
        dialect="d",
        path="p",
        sha256="s",
        extra={"a": {"e": 3}},
        drop=[["a", "b"], ["n"], ["no", "such"], ["n", "deeper"]],
    )
    assert run["extra"]["d"] == {"a": {"c": 2, "e": 3}}
    told(run, "ForeignEditAbsorbed", dialect="d", path="p", sha256="s", extra={"t": "text"})
    told(run, "ForeignEditAbsorbed", dialect="d", path="p", sha256="s", extra={}, drop=[["t", "x"]])
    assert run["extra"]["d"] == {"a": {"c": 2, "e": 3}, "t": "text"}


# ---- the engine's half


def stayed(**more: Any) -> Any:
    run = fresh(driver="engine", queue=[{"step": "s"}, {"step": "u"}], **more)
    return told(run, "StepStarted", step="s", item=None, iteration=2, leg={"step": "s", "findings": ["f"]})


def test_a_hop_begins_a_stay_and_ends_it() -> None:
    run = stayed()
    current_visit = run["current_visit"]
    assert (
        current_visit["step"],
        current_visit["visit"],
        current_visit["findings"],
        current_visit["seats"],
        run["queue"],
    ) == (
        "s",
        2,
        ["f"],
        {},
        [{"step": "u"}],
    )
    told(run, "ActionDone", action="before:x", detail={})
    assert current_visit["done_actions"] == ["before:x"]
    current_visit["seats"]["a"] = {"results": ["DONE"]}
    run["handed_over"]["s"] = {"name": "n", "paths": []}
    done(run, "other")
    assert run["current_visit"] is current_visit, "the end of another step"
    done(run, "s")
    assert (run["current_visit"], run["last_verdicts"], run["handed_over"]) == (
        None,
        {"s": {"a": {"results": ["DONE"]}}},
        {},
    )
    told(run, "ActionDone", action="late", detail={})
    assert run["current_visit"] is None


def test_what_waits_for_another_step_goes_on_waiting() -> None:
    run = fresh(driver="engine", queue=[{"step": "u"}])
    told(run, "StepStarted", step="s", item=None, iteration=1, leg={"step": "s"})
    assert run["queue"] == [{"step": "u"}] and run["current_visit"]["step"] == "s"


def test_where_some_go_again_what_the_others_said_still_counts() -> None:
    words = {"s": {"a": 1, "b": 2, "z": 3}}

    def seats(**leg: Any) -> Any:
        run = fresh(driver="engine", last_verdicts=words, queue=[])
        return told(run, "StepStarted", step="s", item=None, iteration=2, leg={"step": "s", **leg})["current_visit"][
            "seats"
        ]

    assert (
        seats(only=[]) == {}
        and seats(only=["a"]) == {"b": 2, "z": 3}
        and seats(only=["a"], again=["a", "z"]) == {"b": 2}
    )
    assert seats(kept={"q": 4}) == {"q": 4} and seats(only=["a"], kept={"b": 5}) == {"b": 5, "z": 3}


def test_routes_are_counted_and_reset() -> None:
    run = fresh(routes={"r": 1, "q": 4})
    told(run, "RouteTaken", route="r", queue=[{"step": "a"}], resets=["q", "none"], carry={"c": 1}, reason="")
    assert (run["routes"], run["queue"], run["handed_over"]) == ({"r": 2}, [{"step": "a"}], {"c": 1})
    told(run, "RouteTaken", route="", queue=[], resets=[], carry={}, reason="")
    assert (run["routes"], run["queue"]) == ({"r": 2}, [])


def test_seats_are_taken_freed_and_answered() -> None:
    run = stayed(items={"1": {"status": "pending"}})
    sent(run, "t", extra={"seat": "a@1"}, item="1")
    seat = run["current_visit"]["seats"]["a@1"]
    assert (seat["tries"], seat["open"], run["current_visit"]["busy"], run["items"]["1"]["status"]) == (
        1,
        "t",
        ["1"],
        "running",
    )
    told(run, "AttemptLost", attempt="t", reason="", ran=False)
    assert (seat["open"], seat["results"], seat["tries"]) == (None, [], 1)
    sent(run, "u", extra={"seat": "a@1"}, item="1")
    assert run["current_visit"]["busy"] == ["1"] and seat["tries"] == 2
    answered(run, "u", verdict="PARKED")
    assert (seat["open"], seat["results"]) == (None, [])
    sent(run, "v", extra={"seat": "a@1"}, item="1")
    told(run, "AttemptLost", attempt="v", reason="", ran=True)
    sent(run, "w", extra={"seat": "a@1"}, item="1")
    answered(run, "w", verdict=None, receipt={"severities": ["Low"], "answer": {"x": 1}})
    assert (seat["results"], seat["severities"], seat["answer"], seat["open"]) == (
        ["LOST", "ERROR"],
        ["Low"],
        {"x": 1},
        None,
    )
    sent(run, "heard of")
    answered(run, "heard of")
    sent(run, "never started")
    told(run, "AttemptLost", attempt="never started", reason="", ran=False)
    assert list(run["current_visit"]["seats"]) == ["a@1"], "who has no seat takes none"
    apart = answered(sent(fresh(), extra={"seat": "a"}))
    assert apart["current_visit"] is None


def test_items_of_a_stay() -> None:
    run = stayed()
    run["current_visit"]["seats"] = {"a@1": {"results": ["DONE"]}, "a@2": {"results": []}}
    items = {name: {"status": "failed"} for name in "123"}
    told(
        run,
        "ItemsPlanned",
        items=items,
        waves=[["1", "2"], ["3"]],
        groups=[["1"], ["2"], ["3"]],
        notes=[],
        made=["a@1", "b@1"],
    )
    current_visit = run["current_visit"]
    assert (current_visit["planned"], current_visit["left"], current_visit["wave_of"], current_visit["group_of"]) == (
        True,
        ["1", "2", "3"],
        {"1": 0, "2": 0, "3": 1},
        {"1": 0, "2": 1, "3": 2},
    )
    assert (
        current_visit["seats"].keys() == {"a@1", "b@1"}
        and current_visit["seats"]["b@1"]["results"] == ["DONE"]
        and current_visit["seats"]["b@1"]["tries"] == 0
    )
    assert current_visit["seats"]["a@1"] == {"results": ["DONE"]} and {
        one["status"] for one in run["items"].values()
    } == {"pending"}
    current_visit["busy"] = ["1", "2", "3"]
    told(run, "ItemChanged", item="1", status="running", files=[], harmless=False)
    assert current_visit["left"] == ["1", "2", "3"]
    told(run, "ItemChanged", item="1", status="completed", files=[], harmless=False)
    told(run, "ItemChanged", item="2", status="failed", files=[], harmless=True)
    assert (current_visit["left"], current_visit["busy"], current_visit["stopped_by"]) == (["3"], ["3"], [])
    told(run, "ItemChanged", item="3", status="failed", files=[], harmless=False)
    told(run, "ItemChanged", item="2", status="skipped", files=[], harmless=False)
    assert (current_visit["left"], current_visit["busy"], current_visit["stopped_by"]) == ([], [], ["3"])
    old = stayed()
    old["current_visit"]["seats"] = {"a@1": 1}
    told(old, "ItemsPlanned", items={}, waves=[], groups=[], notes=[])
    assert old["current_visit"]["seats"] == {"a@1": 1}, "a journal of before does not say what was made"


def test_somebody_takes_over_by_hand_and_the_stay_waits() -> None:
    run = stayed(schedule=[{"step": "p"}, {"step": "q"}], order="strict")
    run["steps"]["q"] = {"status": "pending", "iteration": 3, "verdict": None}
    run["visits"].insert(0, {"step": "q", "status": "success", "started_at": T0})
    run["current_visit"]["seats"] = {
        "a": {"results": ["ERROR"], "open": None},
        "b": {"results": [], "open": None},
        "c": {"results": ["DONE"], "open": "t"},
        "d@1": {"results": ["ERROR"], "open": None},
        "e@1": {"results": ["ERROR", "DONE"], "open": None},
    }
    told(run, "DriverChanged", T1, driver="manual", pipeline={"name": "p", "hash": None})
    assert (run["driver"], run["current_visit"], run["pipeline"]) == ("manual", None, {"name": "p", "hash": None})
    assert (
        run["queue"][0]["step"] == "s"
        and run["queue"][0]["kept"].keys() == {"a", "e@1"}
        and run["queue"][1] == {"step": "u"}
    )
    left = next(visit for visit in run["visits"] if visit["step"] == "s")
    assert (left["status"], left["ended_at"], left["duration_ms"], left["closed"], run["steps"]["s"]["status"]) == (
        "skipped",
        T1,
        1000,
        1,
        "pending",
    )
    assert (
        run["position"],
        run["steps"]["q"]["status"],
        run["visits"][-1]["step"],
        run["visits"][-1]["iteration"],
    ) == ("q", "running", "q", 3)
    assert (run["visits"][-1]["started_at"], run["visits"][-1]["status"]) == (T1, "running")
    assert run["visits"][-1]["retries"] == 0
    there = fresh(
        schedule=[{"step": "p"}, {"step": "q"}],
        order="strict",
        driver="engine",
        position="p",
        visits=[{"step": "q", "status": "success"}],
    )
    told(there, "DriverChanged", driver="manual", pipeline={})
    assert there["position"] == "p", "who is in a step of the order stays there"
    free = stayed()
    told(free, "DriverChanged", driver="manual", pipeline=free["pipeline"])
    assert free["position"] == "s" and len(free["visits"]) == 1, "without an order nothing is begun"
    handed = stayed()
    told(handed, "DriverChanged", driver="guided", pipeline=handed["pipeline"])
    assert handed["current_visit"] is not None and handed["driver"] == "guided"
    begun = fresh(
        schedule=[{"step": "p"}],
        order="strict",
        driver="engine",
        position="p",
        steps={"p": {"status": "completed", "iteration": 1, "verdict": None}},
    )
    told(begun, "DriverChanged", driver="manual", pipeline={})
    assert begun["visits"] == [] and begun["steps"]["p"]["status"] == "completed"
    nowhere = fresh(schedule=[{"step": "p"}], order="strict", driver="engine", position="g")
    told(nowhere, "DriverChanged", driver="manual", pipeline={})
    assert nowhere["position"] is None
    again = fresh(driver="manual", queue=[{"step": "s"}])
    began(again, "s")
    told(again, "DriverChanged", driver="manual", pipeline={"name": "o", "hash": None})
    assert again["visits"][0]["status"] == "running", "who leads it already goes on"


def test_an_engine_that_takes_over_begins_the_step_anew() -> None:
    run = began(fresh(), "s")
    told(
        run,
        "Engaged",
        T1,
        pipeline={"name": "p", "hash": "h"},
        driver="engine",
        switches={"a": True},
        params={"target": "web"},
        queue=[{"step": "s"}],
    )
    assert (run["driver"], run["switches"], run["params"], run["queue"], run["pipeline"]["hash"]) == (
        "engine",
        {"a": True},
        {"target": "web"},
        [{"step": "s"}],
        "h",
    )
    assert (run["visits"][0]["status"], run["steps"]["s"]["status"]) == ("skipped", "pending")


@pytest.mark.parametrize(
    ("step", "item", "status", "driver", "left"),
    [
        ("s", None, "success", "manual", ["u"]),
        ("s", None, "failed", "manual", ["s", "u"]),
        ("s", "1", "success", "manual", []),
        ("t", None, "success", "manual", []),
        ("s", None, "success", "engine", ["s", "u"]),
    ],
)
def test_what_waited_for_an_engine_may_be_done_by_hand(
    step: str, item: str | None, status: str, driver: str, left: list[str]
) -> None:
    run = fresh(driver=driver, queue=[{"step": "s"}, {"step": "u"}])
    began(run, step, item=item)
    done(run, step, item=item, status=status)
    assert [leg["step"] for leg in run["queue"]] == left
    assert done(began(fresh(driver="manual"), "s"), "s")["queue"] == []
