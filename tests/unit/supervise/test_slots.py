"""A slot is held, free, or unproven; an unproven one is not used before its last holder's tree is gone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenuto.encoding import dumps
from tenuto.supervise import processes, slots
from tests.unit.supervise.marked import marked

if TYPE_CHECKING:
    from tenuto.supervise.records import Hold, Identity


def hold(attempt: str, supervisor: Identity | None = None) -> Hold:
    who = supervisor or processes.identify(os.getpid())
    return {
        "directory": f"/attempts/{attempt}",
        "claim": {"state": "claimed", "attempt": attempt, "at": "", "supervisor": who, "cgroup": None},
    }


def somebody_dead() -> Identity:
    """An identity that was somebody's a moment ago."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    who = processes.identify(child.pid)
    child.communicate()
    assert who is not None
    return who


def test_there_are_as_many_slots_as_the_cap_and_a_released_one_is_free_again(tmp_path: Path) -> None:
    pool = str(tmp_path)
    taken = [slots.take(pool, 3, hold(str(number))) for number in range(3)]
    assert all(taken)
    assert slots.take(pool, 3, hold("late")) is None
    assert [state["state"] for state in slots.survey(pool)] == ["held"] * 3
    me = processes.identify(os.getpid())
    assert slots.holders(pool, 3) == [me] * 3
    assert taken[1] is not None
    slots.release(taken[1])
    assert slots.holders(pool, 3) is None
    again = slots.take(pool, 3, hold("late"))
    assert again is not None and again.number == taken[1].number
    for slot in (taken[0], taken[2], again):
        assert slot is not None
        slots.release(slot)
    assert [state["state"] for state in slots.survey(pool)] == ["free"] * 3


def test_one_who_waited_at_the_slot_while_it_was_released_has_it_alone(tmp_path: Path) -> None:
    """A slot's file stays the same one: with a new one in its place, two would hold the lock of their own."""
    first = slots.take(str(tmp_path), 1, hold("first"))
    assert first is not None
    waiting = os.open(tmp_path / "slot-0", os.O_RDWR)
    slots.release(first)
    fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert slots.take(str(tmp_path), 1, hold("second")) is None
    os.close(waiting)


def test_the_larger_cap_leaves_the_smaller_one_its_slots(tmp_path: Path) -> None:
    """Two orchestrators with caps of 4 and 1 on one pool: together they never hold more than 4."""
    large = [slots.take(str(tmp_path), 4, hold("large")) for _ in range(3)]
    small = slots.take(str(tmp_path), 1, hold("small"))
    assert small is not None and small.number == 0
    assert slots.take(str(tmp_path), 4, hold("large")) is None
    for slot in (*large, small):
        assert slot is not None
        slots.release(slot)


def test_a_slot_whose_holder_died_with_nothing_left_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "slot-0").write_text(dumps(hold("dead", somebody_dead())))
    assert slots.survey(str(tmp_path))[0]["state"] == "unproven"
    taken = slots.take(str(tmp_path), 1, hold("next"))
    assert taken is not None
    assert slots.survey(str(tmp_path))[0]["attempt"] == "next"
    slots.release(taken)


@pytest.mark.parametrize("length", [0, 1, 3000])
def test_a_slot_says_who_holds_it_now_however_much_it_said_of_the_one_before(tmp_path: Path, length: int) -> None:
    """A longer record under a shorter one would leave its end behind it, and nobody could judge the slot again."""
    before = hold("dead" + "d" * length, somebody_dead())
    (tmp_path / "slot-0").write_text(dumps(before) + "\n" * length)
    taken = slots.take(str(tmp_path), 1, hold("next"))
    assert taken is not None
    assert (tmp_path / "slot-0").read_text() == dumps(hold("next"))
    assert slots.holders(str(tmp_path), 1) == [processes.identify(os.getpid())]
    slots.release(taken)


def test_a_slot_whose_holder_cannot_be_judged_stays_blocked(tmp_path: Path) -> None:
    """The holder is alive without its lock, lived in another container, or cannot be known: fail closed."""
    me = processes.identify(os.getpid())
    assert me is not None
    elsewhere: Identity = {**me, "space": "pid:[1]"}
    for content in (dumps(hold("alive")), dumps(hold("elsewhere", elsewhere)), "garbage", "{}", '{"claim": 3}', "\xff"):
        (tmp_path / "slot-0").write_text(content, encoding="latin-1")
        assert slots.take(str(tmp_path), 1, hold("next")) is None
        assert slots.survey(str(tmp_path))[0]["state"] == "unproven"
        assert slots.holders(str(tmp_path), 1) in (None, [me])


def test_what_a_slots_last_holder_left_is_ended_before_the_slot_is_used(tmp_path: Path) -> None:
    attempt = f"left-{os.urandom(4).hex()}"
    left = marked(attempt)
    dead = somebody_dead()
    seen = processes.identify(left.pid)
    assert seen is not None
    dead["start"] = seen["start"]  # the supervisor was there before what it left
    (tmp_path / "slot-0").write_text(dumps(hold(attempt, dead)))
    taken = slots.take(str(tmp_path), 1, hold("next"))
    assert taken is not None
    assert left.wait() == -9
    left.communicate()
    slots.release(taken)


def test_a_process_older_than_the_supervisor_is_never_ended(tmp_path: Path) -> None:
    """It may carry the same mark: somebody's shell, an attempt of the same name. It cannot be a descendant."""
    attempt = f"older-{os.urandom(4).hex()}"
    older = marked(attempt)
    dead = somebody_dead()
    dead["start"] = str(int(dead["start"]) + 100)
    (tmp_path / "slot-0").write_text(dumps(hold(attempt, dead)))
    taken = slots.take(str(tmp_path), 1, hold("next"))
    assert taken is not None
    older.communicate()
    assert older.returncode == 0
    slots.release(taken)


def test_a_supervisor_loads_next_to_nothing() -> None:
    """It starts with every agent: what it imports is time before the agent runs."""
    root = str(Path(slots.__file__).parents[2])
    source = "import sys; sys.path.insert(0, sys.argv[1]); import tenuto.supervise.supervisor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", source, root], capture_output=True, text=True, check=True)
    heavy = {"json", "re", "enum", "signal", "typing", "subprocess", "selectors", "ctypes", "threading", "tempfile"}
    assert not heavy & set(done.stdout.split())
