"""Waves, sub-waves, and what may start now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenuto.core.items import PlanRefused, arrange, chain_lengths, partition, shared_files, skipped
from tests.support.waves_at_work import WavesAtWork

if TYPE_CHECKING:
    from tenuto.core.records.run import PlannedItem


def plan(text: str) -> list[PlannedItem]:
    """`a@2: b c` is an item a, written in wave 2, that depends on b and c."""
    items: list[PlannedItem] = []
    for line in text.strip().splitlines():
        name, _, before = line.strip().partition(":")
        name, _, wave = name.partition("@")
        items.append(
            {
                "id": name,
                "title": name,
                "files": [],
                "depends_on": before.split(),
                "agent": None,
                "wave": int(wave) if wave else None,
                "description": "",
                "effort": None,
                "lines": None,
            }
        )
    return items


# ---- waves -----------------------------------------------------------------------------------------


def test_written_waves_are_kept() -> None:
    """Also where an item could run earlier."""
    found = arrange(plan("a@1:\nb@1:\nc@3:\nd@2: a"))
    assert found["waves"] == [["a", "b"], ["d"], ["c"]]
    assert found["numbers"] == [1, 2, 3]
    assert found["moves"] == []


def test_an_item_is_moved_later_past_its_dependencies_and_the_move_is_reported() -> None:
    """Each item that has to move, with its reason; the others stay."""
    found = arrange(plan("a@1:\nb@1: a\nc@2: b\nd@2: a"))
    assert found["waves"] == [["a"], ["b", "d"], ["c"]]
    assert found["moves"] == [
        {"item": "b", "from_wave": 1, "to_wave": 2, "because": ["a"]},
        {"item": "c", "from_wave": 2, "to_wave": 3, "because": ["b"]},
    ]


def test_a_dependency_written_below_is_waited_for() -> None:
    """The order of the plan's lines is not the order of the work."""
    assert arrange(plan("a: b\nb:"))["waves"] == [["b"], ["a"]]


def test_without_written_waves_they_are_derived() -> None:
    """Each item in the first wave in which everything it depends on is done; no move to report."""
    found = arrange(plan("a:\nb: a\nc:\nd: b c\ne: a"))
    assert found["waves"] == [["a", "c"], ["b", "e"], ["d"]]
    assert found["moves"] == []
    assert found["unwritten"] == []


def test_an_item_without_a_wave_among_others_is_named() -> None:
    """The planner forgot it; it runs as early as it can."""
    found = arrange(plan("a@1:\nb@2: a\nc:\nd: b"))
    assert found["waves"] == [["a", "c"], ["b"], ["d"]]
    assert found["unwritten"] == ["c", "d"]


def test_a_wave_that_everybody_left_is_gone() -> None:
    """The numbers of the others stay as written."""
    found = arrange(plan("a@3:\nb@3: a\nc@9:"))
    assert found["waves"] == [["a"], ["b"], ["c"]]
    assert found["numbers"] == [3, 4, 9]


def test_no_items_are_no_waves() -> None:
    """Nothing to do is not an error here."""
    assert arrange([]) == {"waves": [], "numbers": [], "moves": [], "unwritten": []}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a: a", ["a"]),
        ("a: b\nb: a", ["a", "b"]),
        ("x:\na: x c\nb: a\nc: b", ["a", "c", "b"]),
        ("a: b\nb: c\nc: b", ["b", "c"]),
    ],
)
def test_cycles_are_refused_by_name(text: str, names: list[str]) -> None:
    """Only the items of the cycle are named, not those that wait for it."""
    with pytest.raises(PlanRefused) as refused:
        arrange(plan(text))
    assert refused.value.code == "cycle"
    assert refused.value.names == names
    assert " -> ".join([*names, names[0]]) in str(refused.value)


def test_unknown_ids_are_refused_by_name() -> None:
    """All of them at once, each with who wants it."""
    with pytest.raises(PlanRefused) as refused:
        arrange(plan("a: x\nb: a y x"))
    assert refused.value.code == "unknown-item"
    assert refused.value.names == ["x", "y"]
    assert "a depends on 'x'" in str(refused.value)
    assert "b depends on 'y'" in str(refused.value)


def test_an_id_used_twice_is_refused_by_name() -> None:
    """Which of the two would `depends_on` mean?"""
    with pytest.raises(PlanRefused) as refused:
        arrange(plan("a:\nb:\na: b"))
    assert (refused.value.code, refused.value.names) == ("item-twice", ["a"])


# ---- sub-waves -------------------------------------------------------------------------------------


def test_a_wave_is_partitioned_under_the_cap() -> None:
    """In order, each full but the last."""
    assert partition(list("abcdefghi"), 4) == [["a", "b", "c", "d"], ["e", "f", "g", "h"], ["i"]]
    assert partition([], 4) == []
    with pytest.raises(ValueError, match="nothing run"):
        partition(["a"], 0)


def test_files_that_two_items_of_a_wave_change_are_named() -> None:
    """Side by side they would overwrite each other; one after the other they do not."""
    items = plan("a:\nb:\nc: a")
    for item in items:
        item["files"] = ["src/x.py", "./src/x.py", f"{item['id']}.py"]
    assert shared_files([["a", "b"], ["c"]], items) == [("src/x.py", ["a", "b"])]


# ---- barrier ---------------------------------------------------------------------------------------

WAVES = plan("a@1:\nb@1:\nc@1:\nd@1:\ne@1:\nf@2:\ng@2:")


def now(done: str = "", running: str = "", failed: str = "", never: str = "", cap: int = 4) -> str:
    return WavesAtWork(WAVES, order="barrier", cap=cap, never_stops=never).after(done, running, failed)


def test_barrier_starts_the_first_sub_wave() -> None:
    """No more than the cap, whatever else is waiting."""
    assert now() == "abcd"
    assert now(running="ab") == "cd"
    assert now(cap=2) == "ab"


def test_barrier_waits_for_all_of_a_sub_wave() -> None:
    """A free place is not enough."""
    assert now(done="abc", running="d") == ""
    assert now(done="abcd") == "e"


def test_barrier_waits_for_all_of_a_wave() -> None:
    """The next wave starts when the last item of this one has ended."""
    assert now(done="abcd", running="e") == ""
    assert now(done="abcde") == "fg"
    assert now(done="abcdefg") == ""


def test_after_an_error_the_remaining_sub_waves_run_and_no_later_wave_starts() -> None:
    """The wave is finished, then verification looks at it."""
    assert now(done="ac", failed="b") == "d", "what failed is not started again"
    assert now(done="acd", failed="b") == "e"
    assert now(done="acde", failed="b") == ""


def test_a_documentation_writers_error_stops_nothing() -> None:
    """Its name is among those that never stop a run."""
    assert now(done="acde", failed="b", never="b") == "fg"
    assert now(done="acd", failed="be", never="b") == ""


# ---- rolling ---------------------------------------------------------------------------------------

CHAIN = plan("a@1:\nb@1:\nc@2: a\nd@2: b\ne@3: c d\nf@3:")


def next_up(done: str = "", running: str = "", failed: str = "", never: str = "", cap: int = 4) -> str:
    work = WavesAtWork(CHAIN, order="rolling", cap=cap, on_item_error="skip-dependents", never_stops=never)
    return work.after(done, running, failed)


def test_rolling_starts_an_item_as_soon_as_its_dependencies_are_done() -> None:
    """Waves do not hold it back."""
    assert next_up() == "abf"
    assert next_up(done="a", running="bf") == "c"
    assert next_up(done="abcf", running="d") == ""
    assert next_up(done="abcdf") == "e"


def test_rolling_keeps_the_cap() -> None:
    """Running items count."""
    assert next_up(cap=2) == "ab"
    assert next_up(running="a", cap=2) == "b"
    assert next_up(running="ab", cap=2) == ""


def test_rolling_prefers_the_longest_chain() -> None:
    """With one place only, what others wait for goes first."""
    items = plan("x:\na:\nb: a\nc: b")
    assert WavesAtWork(items, order="rolling", cap=1).startable() == ["a"]
    assert chain_lengths(items) == {"x": 1, "a": 3, "b": 2, "c": 1}
    assert chain_lengths(items, {"x": 900, "a": 5, "b": 5, "c": 5})["x"] == 900


def test_rolling_never_starts_what_waits_for_a_failed_item() -> None:
    """Everything else goes on; a failure that never stops anything frees its followers."""
    assert next_up(failed="a") == "bf"
    assert next_up(done="bdf", failed="a") == ""
    assert next_up(done="bdf", failed="a", never="a") == "c"


def test_only_dependents_of_a_failed_item_are_skipped() -> None:
    """Directly or through others; the failed one itself is not among them."""
    assert skipped(CHAIN, ["a"]) == ["c", "e"]
    assert skipped(CHAIN, ["f"]) == []
    assert skipped(CHAIN, ["a", "c"]) == ["e"]
    assert skipped(CHAIN, ["a", "b"]) == ["c", "d", "e"]


def test_an_item_whose_length_nobody_knows_counts_as_one() -> None:
    fork = plan("a@1:\nb@2: a\nc@2: a\nd@3: c\ne@2: a")
    assert chain_lengths(fork) == {"a": 3, "b": 1, "c": 2, "d": 1, "e": 1}, "the longest one"
    assert chain_lengths(plan("a@1:\nb@2: a"), {"a": 5}) == {"a": 6, "b": 1} and chain_lengths(
        plan("a@1:\nb@2: a")
    ) == {"a": 2, "b": 1}
