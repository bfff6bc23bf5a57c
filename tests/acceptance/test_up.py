"""`tenuto up` works off the queue: a loop that anybody may run, and kill, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.entrypoints.mcp.calls import Desk
from tests.support.houses import TENUTO, House, kill, until
from tests.support.trusting import trust

SETTINGS = "pipeline: small\nqueue: {at_once: 2}\n"


def made(folder: Path, settings: str = SETTINGS, answers: str = "answers: []\n") -> House:
    script = folder / "answers.yaml"
    script.write_text(answers)
    return House(folder, f"agent: scripted:{script}\n{settings}")


def types(house: House) -> list[str]:
    return [event["type"] for event in house.events("@") if event["type"].startswith(("Request", "Schedule"))]


def test_requests_are_worked_off_each_in_a_tree_of_its_own(tmp_path: Path) -> None:
    house = made(tmp_path)
    for request in ("One", "Two", "Three"):
        assert "nobody works off the queue" in house.say("queue", "add", request).stdout
    done = house.say("up", "--once")
    assert done.returncode == 0, done
    assert [house.run(name)["status"] for name in ("one", "two", "three")] == ["completed"] * 3
    assert (house.root / ".tenuto/runs/three/docs/three/design.md").exists()
    assert house.git("status", "--porcelain") == "" and house.git("symbolic-ref", "--short", "HEAD") == "main"
    assert house.data("queue")["entries"] == []
    assert house.say("status").returncode == 3, "no run of the queue takes the place of the one you are at"


def test_killed_in_the_middle_the_next_one_takes_over_and_nothing_is_done_twice(tmp_path: Path) -> None:
    """kill -9 of `up`, of the engines that it started, and of both, at moments at which agents are at work."""
    log, go = tmp_path / "log", tmp_path / "go"
    house = made(
        tmp_path, answers=f"answers:\n  - run: 'echo $TENUTO_RUN >> {log}; until [ -e {go} ]; do sleep 0.02; done'\n"
    )
    for number in range(3):
        house.say("queue", "add", f"Request {number}")
    first = house.start("up")
    until(lambda: log.exists() and len(log.read_text().split()) == 2)
    kill(first)
    told = house.data("queue")
    assert [one["standing"] for one in told["entries"]] == ["begun", "begun", "waiting"] and not told["worked_off"]
    assert [one["driven"]["by"] for one in told["entries"] if one["driven"]] == ["engine", "engine"], "they go on"
    for pid in engines(house):
        os.kill(pid, signal.SIGKILL)
    until(lambda: {one["driven"]["by"] for one in house.data("queue")["entries"] if one["driven"]} == {"nobody"})
    assert "nobody drives" in house.say("queue").stdout and "nobody works it off" in house.say("queue").stdout
    go.touch()
    done = house.say("up", "--once")
    assert done.returncode == 0, done
    assert sorted(log.read_text().split()) == ["request-0", "request-1", "request-2"], "each agent was started once"
    assert types(house).count("RequestBegun") == types(house).count("RequestEnded") == 3


def engines(house: House) -> list[int]:
    """Those that drive runs of this very repository."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(house.root) in words and b"queue" in words and b"start" in words:
                found.append(int(place.name))
    return found


def test_a_second_one_waits_and_takes_over_when_the_first_is_gone(tmp_path: Path) -> None:
    house = made(tmp_path)
    first = house.start("up")
    until(lambda: house.data("queue")["worked_off"])
    assert "another tenuto up" in house.say("up", "--once").stdout
    second = house.start("up")
    assert second.stdout is not None
    assert "this one waits" in second.stdout.readline()
    kill(first)
    assert "taking over" in second.stdout.readline()
    house.say("queue", "add", "One")
    until(lambda: "RequestEnded" in types(house))
    second.send_signal(signal.SIGINT)
    second.communicate()
    assert types(house) == ["RequestQueued", "RequestBegun", "RequestEnded"]


def test_what_waits_for_a_person_holds_no_place_and_goes_on_after_their_word(tmp_path: Path) -> None:
    house = made(tmp_path, "pipeline: gated\n")
    house.say("queue", "add", "One")
    house.say("queue", "add", "Two", "--pipeline", "small")
    listed: Any = Desk(tenuto.open(str(house.root))).call("list", {})
    assert [one["standing"] for one in listed["queue"]] == ["waiting"] * 2, "a model is told the same"
    waiting = house.say("up", "--once")
    assert waiting.returncode == 5, waiting
    assert house.run("one")["status"] == "waiting_gate" and house.run("two")["status"] == "completed"
    assert house.say("approve", "one").returncode == 0
    assert house.say("up", "--once").returncode == 0 and house.run("one")["status"] == "completed"


def test_a_request_that_cannot_begin_says_why_and_does_not_keep_the_others_back(tmp_path: Path) -> None:
    house = made(tmp_path)
    assert house.say("queue", "add", "x", "--pipeline", "nonesuch").returncode != 0, "what is wrong is said at once"
    house.say("queue", "add", "One")
    house.say("queue", "add", "Two")
    config = house.root / ".tenuto" / "config.yaml"
    before = config.read_text()
    config.write_text(f"checks: {{more: 'echo new'}}\n{before}")  # which nobody has looked at
    assert house.say("up", "--once").returncode == 4, "nothing of it runs"
    trust(house.root)
    (house.root / ".tenuto/pipelines/small.yaml").write_text("steps: nonsense\n")
    told = house.say("up", "--once")
    assert told.returncode == 1 and "tenuto queue retry 1" in told.stdout, told
    assert [one["standing"] for one in house.data("queue")["entries"]] == ["refused", "refused"]
    house.git("checkout", "-q", ".tenuto/pipelines/small.yaml")
    assert house.say("queue", "remove", "2").returncode == 0
    assert house.say("queue", "retry", "1").returncode == 0
    assert house.say("up", "--once").returncode == 0 and house.run("one")["status"] == "completed"


def test_a_schedule_is_queued_when_its_time_has_come_and_never_twice(tmp_path: Path) -> None:
    """The clock is the test's own: three nights during which the lid was closed."""
    from tenuto.engine.many.queue import Up

    house = made(tmp_path, SETTINGS + "schedules: {nightly: {every: day 02:00, zone: Europe/Berlin, request: Look}}\n")
    now = "2026-11-19T12:00:00.000Z"
    workspace = tenuto.open(str(house.root), clock=lambda: now)
    started: list[str] = []

    def drive(entry: str, log: str) -> subprocess.Popen[bytes]:
        started.append(entry)
        return subprocess.Popen(["sleep", "1000"])

    up = Up(workspace, drive, lambda text: None)
    try:
        assert up.step() and types(house) == ["ScheduleKept"], "it counts from now on"
        assert not up.step()
        now = "2026-11-20T00:59:59.000Z"
        assert not up.step()
        now = "2026-11-22T12:00:00.000Z"
        up.step()
        assert (
            types(house) == ["ScheduleKept", "RequestQueued"]
            and house.events("@")[-1]["due"] == "2026-11-22T01:00:00.000Z"
        )
        up.step()
        another = Up(tenuto.open(str(house.root), clock=lambda: now), drive, lambda text: None)
        another._keep_schedules({})  # one whose settings have it no more
        assert types(house) == ["ScheduleKept", "RequestQueued", "ScheduleDropped"]
        assert started == ["1"]
    finally:
        for process in up._at_work.values():
            process.kill()
            process.wait()


def test_a_schedule_that_nobody_has_looked_at_starts_nothing(tmp_path: Path) -> None:
    house = made(tmp_path)
    (house.root / ".tenuto/config.yaml").write_text("schedules: {evil: {every: 1m, request: Look}}\n")
    refused = house.say("up", "--once")
    assert refused.returncode == 4 and "not-trusted" in refused.stderr and "schedules.evil" in refused.stderr


NEVER = "schedules: {n: {every: never, request: x}}\n"
ON_MARS = "zone: Mars/Olympus\nschedules: {n: {every: 1h, request: x}}\n"


@pytest.mark.parametrize("settings", [NEVER, ON_MARS])
def test_a_schedule_that_makes_no_sense_is_refused_before_anything_starts(tmp_path: Path, settings: str) -> None:
    house = made(tmp_path, settings)
    refused = house.say("up", "--once")
    assert refused.returncode == 2 and ("bad-schedule" in refused.stderr or "bad-zone" in refused.stderr)


def test_where_the_days_budget_is_used_up_runs_are_parked_until_the_day_is_over(tmp_path: Path) -> None:
    house = made(tmp_path, SETTINGS + "budget: {day: {attempts: 2}}\nzone: UTC\n")
    for number in range(2):
        assert house.say("run", f"Request {number}", "--tree").returncode == 0
    third = house.say("run", "Request 2", "--tree")
    assert third.returncode == 5 and "may use 2 attempts a day: 2 are used or promised" in third.stdout
    assert house.run("request-2")["pause"]["until"].endswith("T00:00:00.000Z")
    house.say("queue", "add", "One")
    told = house.say("up", "--once")
    assert "the budget is used up" in told.stderr and "tenuto up" not in types(house)
    assert types(house) == ["RequestQueued"]
    assert "today (UTC): 2 attempts used or promised of 2 attempts" in told.stdout


def test_where_the_repositorys_budget_is_used_up_a_person_raises_it(tmp_path: Path) -> None:
    house = made(tmp_path, SETTINGS + "budget: {ever: {attempts: 1}}\n")
    assert house.say("run", "One", "--tree").returncode == 0
    second = house.say("run", "Two", "--tree")
    assert second.returncode == 5 and "--new-settings" in second.stdout, second
    config = house.root / ".tenuto" / "config.yaml"
    config.write_text(config.read_text().replace("attempts: 1", "attempts: 5"))
    assert house.say("resume", "two").returncode == 5, "it keeps what it began with"
    assert house.say("resume", "two", "--new-settings").returncode == 0


def test_a_limit_that_the_agent_cannot_be_held_to_is_refused(tmp_path: Path) -> None:
    house = made(tmp_path, "pipeline: small\nbudget: {day: {money: 5}}\n")
    refused = house.say("run", "One")
    assert refused.returncode == 4 and "unmetered" in refused.stderr


@pytest.mark.parametrize(("kind", "word"), [("systemd", "ExecStart="), ("cron", "up --once")])
def test_a_unit_names_this_repository_and_starts_nothing(tmp_path: Path, kind: str, word: str) -> None:
    house = made(tmp_path)
    told = house.say("up", "--unit", kind)
    assert told.returncode == 0 and word in told.stdout and str(house.root) in told.stdout
    assert TENUTO[0] in told.stdout
