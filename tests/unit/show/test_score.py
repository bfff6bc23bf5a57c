"""The score: steps as lanes, attempts as bars, idle time folded; and the longest chain, as it was defined at first."""

from __future__ import annotations

import heapq
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.items import chain_lengths, partition
from tenuto.metrics import critical_path, reckoned, rolling_gain, spans
from tenuto.show.score import Axis, ghost_view, score_view, visits_with_items
from tests.property.rehearsal import Rehearsal, item
from tests.unit.test_metrics import attempt, run_of

NOW = "2026-11-15T10:00:00.000Z"


def test_every_step_of_the_pipeline_has_a_lane_those_to_come_and_left_out_too() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item("1"), item("2", "1")])
    while "spec" not in play.run["steps"]:
        assert play.step()
    score = score_view(play.run, play.pipeline, NOW)
    lanes = {lane["step"]: lane for lane in score["lanes"]}
    assert list(lanes) == [step["id"] for step in play.pipeline["steps"] if not step["aside"]]
    assert lanes["post-research"]["state"] == "left-out" and "approval" in lanes["post-research"]["reason"]
    assert score["lanes"][-1]["state"] == "pending"
    assert {bar["attempt"] for lane in score["lanes"] for bar in lane["bars"]} == set(play.run["attempts"])


def test_a_lane_has_no_more_rows_than_attempts_were_under_way_together() -> None:
    play = Rehearsal("eight-step", lambda a: "DONE", [item(str(number)) for number in range(9)])
    run = play.play()
    for lane in score_view(run, play.pipeline, NOW)["lanes"]:
        assert lane["rows"] <= play.pipeline["cap"]
        for bar in lane["bars"]:
            beside = [one for one in lane["bars"] if one["lane"] == bar["lane"] and one is not bar]
            apart = [
                str(one["ended_at"]) <= bar["started_at"] or str(bar["ended_at"]) <= one["started_at"] for one in beside
            ]
            assert all(apart), "two bars of one row overlap"


def test_a_long_idle_stretch_is_folded_and_nothing_runs_backwards() -> None:
    axis = Axis(0, 1_000_000, [(0, 50_000), (900_000, 1_000_000)])
    assert axis.folds == [(50_000, 900_000)] and axis.width < 200_000
    places = [axis.at(moment) for moment in range(0, 1_000_001, 1000)]
    assert places == sorted(places) and places[0] == 0 and places[-1] == axis.width
    assert axis.at(950_000) - axis.at(900_000) == 50_000, "busy time keeps its length"


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), max_size=12))
def test_the_axis_keeps_the_order_of_moments(given_: list[tuple[int, int]]) -> None:
    busy = [(start, start + length) for start, length in given_]
    end = max([to for _, to in busy], default=1000)
    axis = Axis(0, end, busy)
    moments = sorted({0, end, *(one for pair in busy for one in pair)})
    places = [axis.at(moment) for moment in moments]
    assert places == sorted(places)
    assert all(0 <= place <= axis.width for place in places)


def test_a_done_that_did_not_stand_is_a_refuted_claim() -> None:
    said = {"verdict": "DONE", "summary": "all tests pass"}
    refuted = attempt("build", "b", 0, 4, said=said, found={"verdict": "ERROR", "problem": "tests: exit status 1"})
    stood = attempt("build", "c", 0, 4, said=said, found={"verdict": "DONE", "problem": ""})
    run = run_of(refuted, stood)
    run["created_at"], run["steps"] = refuted["started_at"], {"build": {"status": "completed", "verdict": "DONE"}}
    (lane,) = score_view(run, None, refuted["ended_at"])["lanes"]
    assert [bar["is_refuted"] for bar in lane["bars"]] == [True, False]


def test_another_cap_and_another_order_are_reckoned_from_what_was_measured() -> None:
    chain = [attempt("w", f"w@{name}", 0, length, item=name) for name, length in (("a", 4), ("b", 1), ("c", 4))]
    run = run_of(*chain, items={"a": [], "b": [], "c": ["b"]}, waves=(["a", "b"], ["c"]))
    assert visits_with_items(run) == [("w", 1)]
    waves = ghost_view(run, None, "w", 1, 2, "waves")
    rolling = ghost_view(run, None, "w", 1, 2, "rolling")
    alone = ghost_view(run, None, "w", 1, 1, "rolling")
    assert (waves["reckoned_ms"], rolling["reckoned_ms"], alone["reckoned_ms"]) == (8000, 5000, 9000)
    assert (rolling["rows"], alone["rows"]) == (2, 1)
    assert {bar["item"]: (bar["left"], bar["right"]) for bar in rolling["bars"]}["c"] == (1000, 5000)


# ---- the definitions as they were before they were made quick


def first_critical_path(run: Any) -> list[Any]:
    path: list[Any] = []
    visits: dict[Any, list[Any]] = {}
    for span in spans(run):
        visits.setdefault((span["step"], span["visit"]), []).append(span)
    for mine in visits.values():
        lengths: dict[str, int] = {}
        for span in mine:
            lengths[span["seat"]] = lengths.get(span["seat"], 0) + span["duration_ms"]
        if any(span["item"] for span in mine):
            links = first_longest_chain(run, mine)
        else:
            beside = [place for place in lengths if any(s["group"] for s in mine if s["seat"] == place)]
            longest = max(beside, key=lambda place: lengths[place], default="")
            links = [(place, ms) for place, ms in lengths.items() if place not in beside or place == longest]
        path += [{"name": name, "step": mine[0]["step"], "ms": ms} for name, ms in links]
    return path


def first_items(run: Any, mine: list[Any]) -> tuple[list[Any], dict[str, int]]:
    lengths: dict[str, int] = {}
    for span in mine:
        if span["item"]:
            lengths[span["item"]] = lengths.get(span["item"], 0) + span["duration_ms"]
    known = [item(name, *[b for b in run["items"][name]["depends_on"] if b in lengths]) for name in run["items"]]
    return [one for one in known if one["id"] in lengths], lengths


def first_longest_chain(run: Any, mine: list[Any]) -> list[tuple[str, int]]:
    items, lengths = first_items(run, mine)
    chains = chain_lengths(items, lengths)
    followers = {one["id"]: [other["id"] for other in items if one["id"] in other["depends_on"]] for one in items}
    starts = [one["id"] for one in items if not one["depends_on"]]
    path: list[tuple[str, int]] = []
    while starts:
        name = max(starts, key=lambda one: chains[one])
        path.append((name, lengths[name]))
        starts = followers[name]
    return path


def first_gain(run: Any, cap: int) -> tuple[int, int]:
    items, lengths = first_items(run, spans(run))
    waves = [[name for name in wave["items"] if name in lengths] for wave in run["waves"]]
    left_over = [name for name in lengths if not any(name in wave for wave in waves)]
    barrier = sum(
        max(lengths[name] for name in group) for wave in [*waves, left_over] for group in partition(wave, cap)
    )
    chains = chain_lengths(items)
    waits = {one["id"]: len(one["depends_on"]) for one in items}
    ready = sorted((name for name, count in waits.items() if not count), key=lambda name: -chains[name])
    running: list[tuple[int, str]] = []
    now = 0
    while ready or running:
        while ready and len(running) < cap:
            name = ready.pop(0)
            heapq.heappush(running, (now + lengths[name], name))
        now, ended = heapq.heappop(running)
        for one in items:
            if ended in one["depends_on"]:
                waits[one["id"]] -= 1
                if not waits[one["id"]]:
                    ready.append(one["id"])
        ready.sort(key=lambda name: -chains[name])
    return barrier, now


@st.composite
def runs_of_items(draw: st.DrawFn) -> Any:
    names = [f"i{number}" for number in range(draw(st.integers(1, 9)))]
    depends = {name: sorted(draw(st.sets(st.sampled_from(names[:at])))) if at else [] for at, name in enumerate(names)}
    cut = draw(st.integers(0, len(names)))
    made = [
        attempt("w", f"w@{name}", 0, draw(st.integers(0, 9)), item=name, number=number)
        for name in names
        for number in range(1, draw(st.integers(1, 2)) + 1)
    ]
    beside = [attempt("c", place, 0, draw(st.integers(0, 9)), parallel=draw(st.booleans())) for place in "abca"]
    return run_of(*made, *beside, items=depends, waves=(names[:cut], names[cut:]) if draw(st.booleans()) else ())


@given(runs_of_items(), st.integers(1, 4))
def test_the_quick_definitions_say_what_the_first_ones_said(run: Any, cap: int) -> None:
    assert critical_path(run) == first_critical_path(run)
    barrier, rolled = first_gain({**run, "attempts": {k: a for k, a in run["attempts"].items() if a["item"]}}, cap)
    (gain,) = rolling_gain(run, cap)
    assert (gain["waves_ms"], gain["rolling_ms"]) == (barrier, rolled)


@given(runs_of_items(), st.integers(1, 4))
def test_no_more_than_the_cap_are_under_way_and_none_before_what_it_depends_on(run: Any, cap: int) -> None:
    slots = {slot["item"]: slot for slot in reckoned(run, "w", 1, cap, "rolling")}
    for name, slot in slots.items():
        assert slot["lane"] < cap
        for before in run["items"][name]["depends_on"]:
            assert slots[before]["to_ms"] <= slot["from_ms"]
        for other, its in slots.items():
            if other != name and its["lane"] == slot["lane"]:
                assert its["to_ms"] <= slot["from_ms"] or slot["to_ms"] <= its["from_ms"]
