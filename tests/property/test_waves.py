"""Whatever the plan and whatever the agents answer, the order of items holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.frontier import Frontier
from tenuto.core.waves import PlanRefused, arrange, barrier, partition, restrict, rolling, skipped

if TYPE_CHECKING:
    from tenuto.core.items import PlannedItem


@st.composite
def plans(draw: st.DrawFn, cyclic: bool = False) -> list[PlannedItem]:
    """Items that depend on earlier ones (on any, if cyclic), with and without written waves, in any order."""
    count = draw(st.integers(0, 12))
    items: list[PlannedItem] = []
    for at in range(count):
        candidates = [f"i{n}" for n in range(count if cyclic else at)]
        before = draw(st.lists(st.sampled_from(candidates), max_size=3)) if candidates else []
        items.append(
            {
                "id": f"i{at}",
                "title": "",
                "files": [],
                "depends_on": before,
                "agent": None,
                "description": "",
                "wave": draw(st.none() | st.integers(1, 5)),
                "effort": None,
                "lines": None,
            }
        )
    return draw(st.permutations(items))


@given(plans())
def test_every_item_once_after_its_dependencies_never_earlier_than_written(items: list[PlannedItem]) -> None:
    """And what moved is reported, nothing else is."""
    found = arrange(items)
    placed = {name: number for number, wave in zip(found["numbers"], found["waves"], strict=True) for name in wave}
    assert sorted(name for wave in found["waves"] for name in wave) == sorted(item["id"] for item in items)
    assert found["numbers"] == sorted(set(found["numbers"]))
    assert all(found["waves"])
    moved = {move["item"]: move for move in found["moves"]}
    for item in items:
        own, written = placed[item["id"]], item["wave"]
        assert all(placed[before] < own for before in item["depends_on"])
        if written is not None:
            assert own >= written
            assert (item["id"] in moved) == (own != written)
        else:
            assert item["id"] not in moved
        if item["id"] in moved:
            assert any(placed[before] == own - 1 for before in moved[item["id"]]["because"])


@given(plans())
def test_an_item_is_moved_no_further_than_it_must(items: list[PlannedItem]) -> None:
    """Each stands in its written wave or directly after something that it depends on."""
    found = arrange(items)
    placed = {name: number for number, wave in zip(found["numbers"], found["waves"], strict=True) for name in wave}
    for item in items:
        reasons = [placed[before] + 1 for before in item["depends_on"]]
        assert placed[item["id"]] == max([item["wave"] or 1, *reasons])


@given(plans(cyclic=True))
def test_a_plan_is_arranged_or_refused_by_name(items: list[PlannedItem]) -> None:
    """A refusal names a real cycle: each of its items depends on the next."""
    try:
        arrange(items)
    except PlanRefused as refused:
        assert refused.code == "cycle"
        by_id = {item["id"]: item for item in items}
        for name, before in zip(refused.names, [*refused.names[1:], refused.names[0]], strict=True):
            assert before in by_id[name]["depends_on"]


@given(st.lists(st.text(min_size=1, max_size=3), unique=True), st.integers(1, 6))
def test_sub_waves_hold_the_cap_and_the_order(wave: list[str], cap: int) -> None:
    """Nothing is lost, nothing is reordered, only the last one is smaller."""
    groups = partition(wave, cap)
    assert [name for group in groups for name in group] == wave
    assert all(len(group) == cap for group in groups[:-1])
    assert all(0 < len(group) <= cap for group in groups)


class Work:
    """Agents that end in any order, well or badly."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failed: list[str] = []
        self.running: list[str] = []
        self.started: list[str] = []

    def start(self, names: list[str], cap: int) -> None:
        self.running += names
        self.started += names
        assert len(self.running) <= cap
        assert len(set(self.started)) == len(self.started)

    def end_one(self, data: st.DataObject) -> str:
        name = data.draw(st.sampled_from(self.running))
        self.running.remove(name)
        (self.done if data.draw(st.integers(0, 9)) else self.failed).append(name)
        return name


@given(st.data(), plans(), st.integers(1, 4))
def test_barrier_order_whatever_the_agents_answer(data: st.DataObject, items: list[PlannedItem], cap: int) -> None:
    """Never over the cap, never before a dependency, always to the end of the wave that had the first failure."""
    waves = arrange(items)["waves"]
    by_id = {item["id"]: item for item in items}
    work = Work()
    while True:
        names = barrier(waves, done=work.done, running=work.running, failed=work.failed, cap=cap)
        for name in names:
            assert all(before in work.done for before in by_id[name]["depends_on"])
        work.start(names, cap)
        if not work.running:
            break
        work.end_one(data)
    stopped = next((at for at, wave in enumerate(waves) if any(name in work.failed for name in wave)), len(waves))
    assert sorted(work.started) == sorted(name for wave in waves[: stopped + 1] for name in wave)


@given(st.data(), plans(), st.integers(1, 4))
def test_rolling_order_whatever_the_agents_answer(data: st.DataObject, items: list[PlannedItem], cap: int) -> None:
    """Never over the cap, never before a dependency, and everything runs that does not wait for a failure.

    The frontier, which does not look at every item again, starts the same items at the same moments.
    """
    by_id = {item["id"]: item for item in items}
    never = data.draw(st.lists(st.sampled_from(sorted(by_id)))) if items else []
    work, frontier = Work(), Frontier(items, never_stops=never)
    while True:
        names = rolling(items, done=work.done, running=work.running, failed=work.failed, cap=cap, never_stops=never)
        assert frontier.start(cap) == names
        for name in names:
            ended = [before for before in by_id[name]["depends_on"] if before in work.failed and before in never]
            assert all(before in work.done or before in ended for before in by_id[name]["depends_on"])
        work.start(names, cap)
        if not work.running:
            break
        ended = work.end_one(data)
        frontier.end(ended, well=ended in work.done)
    lost = skipped(items, [name for name in work.failed if name not in never])
    assert sorted(work.started) == sorted(item["id"] for item in items if item["id"] not in lost)


@given(st.data(), plans(), st.integers(1, 4))
def test_a_fix_pass_runs_a_part_of_a_plan_in_the_plans_order(data: st.DataObject, items: list[PlannedItem], cap: int) -> None:
    """Whichever items it is about: all of them, nothing else, after each other as the whole plan has it."""
    chosen = [item for item in items if data.draw(st.booleans())]
    names = [item["id"] for item in chosen]
    waves = restrict(arrange(items)["waves"], names)
    assert sorted(name for wave in waves for name in wave) == sorted(names)
    assert all(waves)
    done = [item["id"] for item in items if item["id"] not in names]
    frontier = Frontier(chosen, done=done)
    while started := rolling(chosen, done=done, running=(), failed=(), cap=cap):
        assert frontier.start(cap) == started
        for name in started:
            assert all(before in done for before in next(i for i in items if i["id"] == name)["depends_on"])
            frontier.end(name, well=True)
        done += started
    assert sorted(done) == sorted(item["id"] for item in items)


@given(st.data(), plans(), st.integers(1, 4))
def test_a_frontier_made_in_the_middle_goes_on_like_the_old_one(
    data: st.DataObject, items: list[PlannedItem], cap: int
) -> None:
    """A restart loses nothing: it is rebuilt from what is done, running and failed."""
    work, frontier = Work(), Frontier(items)
    for _ in range(data.draw(st.integers(0, 2 * len(items)))):
        work.start(frontier.start(cap), cap)
        if not work.running:
            break
        ended = work.end_one(data)
        frontier.end(ended, well=ended in work.done)
    again = Frontier(items, done=work.done, running=work.running, failed=work.failed)
    assert again.start(cap) == frontier.start(cap)
