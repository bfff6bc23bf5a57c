"""A process is its pid, its start time and the machine's start: nothing less is trusted."""

from __future__ import annotations

import os
import select
import subprocess

import pytest

from tenuto.supervise import processes
from tests.support.sandbox import python


def test_this_process_is_alive_and_is_found_by_its_identity() -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    assert processes.alive(me)
    descriptor = processes.open_pidfd(me)
    assert descriptor is not None
    os.close(descriptor)


def test_a_reused_pid_another_boot_and_another_namespace_are_somebody_else() -> None:
    """Each part of the identity counts on its own."""
    me = processes.identify(os.getpid())
    assert me is not None
    assert not processes.alive({**me, "start": str(int(me["start"]) + 1)})
    assert not processes.alive({**me, "boot": "another"})
    assert not processes.alive({**me, "space": "pid:[1]"})
    assert processes.open_pidfd({**me, "start": "0"}) is None
    assert not processes.alive(None)


def test_only_another_namespace_of_this_boot_cannot_be_judged() -> None:
    """Another boot is certainly over; another container may well be running."""
    me = processes.identify(os.getpid())
    assert me is not None
    assert processes.visible(me)
    assert processes.visible({**me, "boot": "another", "space": "pid:[1]"})
    assert not processes.visible({**me, "space": "pid:[1]"})


def test_a_process_that_ended_but_was_not_collected_is_dead() -> None:
    """A zombie keeps its pid and its start time, and does nothing any more."""
    child = subprocess.Popen(python("import os; os.read(0, 1)"), stdin=subprocess.PIPE)
    who = processes.identify(child.pid)
    assert who is not None and processes.alive(who)
    ended = processes.open_pidfd(who)
    assert ended is not None and child.stdin is not None
    child.stdin.close()
    waiting = select.poll()  # select() takes no descriptor above 1023, and a long test run has opened more
    waiting.register(ended, select.POLLIN)
    assert waiting.poll(60_000)
    os.close(ended)
    assert processes.look(child.pid) is not None
    assert not processes.alive(who)
    assert processes.identify(child.pid) is None
    child.wait()
    assert processes.look(child.pid) is None


def test_a_name_with_spaces_and_parentheses_is_read_right() -> None:
    """The name is the one field of the process table that a program may choose freely."""
    source = "import os\nopen('/proc/self/comm', 'w').write(') R 1 (x')\nos.write(1, b'.')\nos.read(0, 1)"
    child = subprocess.Popen(python(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.read(1) == b"."
    seen = processes.look(child.pid)
    assert seen is not None
    assert (seen.name, seen.parent) == (") R 1 (x", os.getpid())
    child.communicate()


@pytest.mark.needs("ps")
def test_where_there_is_no_proc_ps_tells_parent_and_start() -> None:
    """Best effort elsewhere: the same questions, answered by a program that every system has."""
    me = next(processes.list_with_ps("-p", str(os.getpid())))
    known = processes.look(os.getpid())
    assert known is not None
    assert (me.pid, me.parent, me.dead) == (known.pid, known.parent, False)
    assert me.start.split()
    assert os.getpid() in {process.pid for process in processes.list_with_ps("-ax")}


def test_the_tree_is_found_below_its_root_and_not_above_it() -> None:
    child = subprocess.Popen(["sh", "-c", "cat & cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(b"x\n")
    child.stdin.flush()
    child.stdout.read(1)
    known = processes.table()
    below = processes.descendants(known, [os.getpid()])
    assert child.pid in {process.pid for process in below}
    assert os.getpid() not in {process.pid for process in below}
    assert os.getpid() in processes.ancestors(known, child.pid)
    child.communicate()
    child.wait()


def test_a_signal_does_not_reach_a_later_process_of_the_same_pid() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    now = processes.look(child.pid)
    assert now is not None
    earlier = processes.Process(child.pid, now.parent, "S", str(int(now.start) - 1), "cat")
    assert not processes.send(earlier, 9)
    child.communicate()
    assert child.returncode == 0
