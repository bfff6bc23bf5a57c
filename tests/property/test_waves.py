"""Whatever the plan and whatever the agents answer, the order of items holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.items import PlanRefused, arrange, chain_lengths, partition, skipped
from tenuto.encoding import dumps, loads
from tests.support.waves_at_work import WavesAtWork

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem


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


class Agents:
    """Agents that end in any order, well or badly, under the rules of a waves step."""

    def __init__(self, work: WavesAtWork, cap: int) -> None:
        self.work, self.cap = work, cap
        self.done: list[str] = []
        self.failed: list[str] = []
        self.running: list[str] = []
        self.started: list[str] = []

    def start(self) -> list[str]:
        """Everything that may start now does."""
        names = self.work.startable()
        self.work.start(names)
        self.running += names
        self.started += names
        assert len(self.running) <= self.cap
        assert len(set(self.started)) == len(self.started), "an item started twice"
        return names

    def end_one(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.running))
        self.running.remove(name)
        well = bool(data.draw(st.integers(0, 9)))
        (self.done if well else self.failed).append(name)
        self.work.end(name, well=well)


@given(st.data(), plans().filter(bool), st.integers(1, 4))
def test_barrier_order_whatever_the_agents_answer(data: st.DataObject, items: list[PlannedItem], cap: int) -> None:
    """Never over the cap, never before a dependency, always to the end of the wave that had the first failure."""
    waves = arrange(items)["waves"]
    by_id = {item["id"]: item for item in items}
    agents = Agents(WavesAtWork(items, order="barrier", cap=cap), cap)
    while True:
        for name in agents.start():
            assert all(before in agents.done for before in by_id[name]["depends_on"])
        if not agents.running:
            break
        agents.end_one(data)
    stopped = next((at for at, wave in enumerate(waves) if any(name in agents.failed for name in wave)), len(waves))
    assert sorted(agents.started) == sorted(name for wave in waves[: stopped + 1] for name in wave)


@given(st.data(), plans().filter(bool), st.integers(1, 4))
def test_rolling_order_whatever_the_agents_answer(data: st.DataObject, items: list[PlannedItem], cap: int) -> None:
    """Never over the cap, never before a dependency, the longest chain first; all runs that waits for no failure."""
    by_id = {item["id"]: item for item in items}
    never = data.draw(st.lists(st.sampled_from(sorted(by_id))))
    chains = chain_lengths(items)
    work = WavesAtWork(items, order="rolling", cap=cap, on_item_error="skip-dependents", never_stops=never)
    agents = Agents(work, cap)
    while True:
        names = agents.start()
        assert [chains[name] for name in names] == sorted((chains[name] for name in names), reverse=True)
        for name in names:
            harmless = [before for before in by_id[name]["depends_on"] if before in agents.failed and before in never]
            assert all(before in agents.done or before in harmless for before in by_id[name]["depends_on"])
        if not agents.running:
            break
        agents.end_one(data)
    lost = skipped(items, [name for name in agents.failed if name not in never])
    assert sorted(agents.started) == sorted(item["id"] for item in items if item["id"] not in lost)


@given(st.data(), plans().filter(bool), st.integers(1, 4), st.sampled_from(["barrier", "rolling"]))
def test_a_driver_that_dies_in_the_middle_loses_nothing(
    data: st.DataObject, items: list[PlannedItem], cap: int, order: str
) -> None:
    """What may start follows from the run alone: folded again from its events, it is the same."""
    agents = Agents(WavesAtWork(items, order=order, cap=cap), cap)
    for _ in range(data.draw(st.integers(0, 2 * len(items)))):
        agents.start()
        if not agents.running:
            break
        agents.end_one(data)
    again = WavesAtWork(items, order=order, cap=cap)
    again.run = loads(dumps(agents.work.run))
    assert again.startable() == agents.work.startable()
