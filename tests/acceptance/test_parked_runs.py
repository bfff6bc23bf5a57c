"""A run that may not work before a stated time is waited for, and goes on when that time has come."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.houses import House, kill, until


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def parking(house: House, seconds: float) -> str:
    """An agent that may work after so many seconds, and then does."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    return house.script(f'answers:\n  - {{for: {{try: 1}}, reply: "PARKED: {at} the limit is reached"}}\n')


def waits(house: House) -> bool:
    return any(one["driven"]["by"] == "waiter" for one in house.data("list")["runs"])


RUN = ("run", "Dark mode", "--pipeline", "small")


def test_who_waits_goes_on_by_itself_and_the_exit_status_is_that_of_the_end(house: House) -> None:
    program = house.start(*RUN, "--agent", parking(house, 6), "--wait")
    until(lambda: waits(house))
    assert "a process on this machine waits for its time" in house.say("status", "dark-mode").stdout
    said, _ = program.communicate()
    assert program.returncode == 0 and "is parked, and goes on at" in said
    assert house.run("dark-mode")["status"] == "completed"


def test_without_waiting_it_says_how_to_go_on(house: House) -> None:
    done = house.say(*RUN, "--agent", parking(house, 3600))
    assert done.returncode == 5 and "tenuto resume dark-mode --wait" in done.stdout
    assert "nobody waits for its time" in house.say("status", "dark-mode").stdout


def test_a_machine_that_slept_over_the_time_goes_on_as_soon_as_it_is_awake(house: House) -> None:
    """The lid was closed: the process stood still, and the clock of the wall went on."""
    program = house.start(*RUN, "--agent", parking(house, 6), "--wait")
    until(lambda: waits(house))
    due = house.run("dark-mode")["pause"]["until"]
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) > due)
    assert house.run("dark-mode")["status"] == "parked"
    os.kill(program.pid, signal.SIGCONT)
    program.communicate()
    assert program.returncode == 0


def test_who_resumes_it_at_once_is_heard(house: House) -> None:
    agent = parking(house, 3600)
    program = house.start(*RUN, "--agent", agent, "--wait")
    until(lambda: waits(house))
    assert house.say("resume", "dark-mode", "--now", "--no-drive").returncode == 0
    program.communicate()
    assert program.returncode == 0 and house.run("dark-mode")["status"] == "completed"


def test_a_waiter_that_was_killed_is_replaced_by_any_other(house: House) -> None:
    program = house.start(*RUN, "--agent", parking(house, 6), "--wait")
    until(lambda: waits(house))
    kill(program)
    assert "nobody waits for its time" in house.say("status", "dark-mode").stdout
    assert house.say("resume", "dark-mode", "--wait").returncode == 0
    assert len(house.run("dark-mode")["attempts"]) == 2
