"""Budgets from the command line: refused before anything starts, reached with a way on, never reset by a restart."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenuto.core.budget import time_left
from tenuto.entrypoints.cli.run import limits_of
from tenuto.errors import BadInput
from tests.support.present import present

from .conftest import reopen

Say = Callable[..., Any]
Script = Callable[..., str]
RUN = ("run", "Add dark mode", "--pipeline", "small", "--name", "r")


def test_a_money_limit_for_an_agent_that_reports_no_cost_is_refused_and_nothing_is_written(
    say: Say, repository: Path, script: Script
) -> None:
    told = say(*RUN, "--agent", script(), "--limit", "money=2.50", "--json")
    assert told.status == 4 and told.error["code"] == "unmetered"
    assert "2500000 micro_usd" in told.error["message"] and "does not report" in told.error["message"]
    assert not (repository / ".git" / "tenuto" / "journal.db").exists()


def test_the_same_limit_holds_where_the_agent_reports_it(say: Say, repository: Path, script: Script) -> None:
    agent = script("answers:\n  - {usage: {micro_usd: 900000}}\n")
    told = say(*RUN, "--agent", agent, "--limit", "money=2.50", "--json")
    assert told.status == 5
    assert told.data["pause"]["kind"] == "budget"
    assert told.data["budget"]["spent"] == {"attempts": 2, "micro_usd": 1_800_000}
    assert "900000" in told.data["pause"]["reason"], "the next one sets aside what the dearest has cost"
    again = say("resume", "r", "--agent", agent, "--limit", "money=9", "--json")
    assert again.status == 0 and again.data["budget"]["spent"]["micro_usd"] == 2_700_000


def test_who_goes_on_with_an_agent_that_reports_nothing_is_refused_too(say: Say, script: Script) -> None:
    agent = script("answers:\n  - {usage: {tokens: 10}}\n")
    assert say(*RUN, "--agent", agent, "--limit", "tokens=15").status == 5
    assert say("run", "--agent", "command:true", "--json").error["code"] == "unmetered"


def test_reaching_a_limit_pauses_with_the_reason_and_the_way_on_and_a_restart_does_not_reset_it(
    say: Say, repository: Path, script: Script
) -> None:
    agent = script()
    told = say(*RUN, "--agent", agent, "--limit", "attempts=2")
    assert told.status == 5
    assert "the run may use 2 attempts: 2 are used or promised, and the next attempt needs 1" in told.out
    assert "try: tenuto resume r --limit attempts=N" in told.out
    for _ in range(2):
        assert say("run", "--agent", agent).status == 5
        assert say("resume", "r", "--agent", agent).status == 5
    assert reopen(repository).load("r")["budget"]["spent"] == {"attempts": 2}
    assert say("resume", "r", "--agent", agent, "--limit", "attempts=3").status == 0


def test_a_person_goes_back_from_the_middle_of_a_step_that_its_limit_stopped(
    say: Say, repository: Path, script: Script
) -> None:
    """Nothing is at work there, and without a higher limit nothing ever would be."""
    say("run", "Add x", "--pipeline", "small", "--name", "r", "--agent", script(), "--limit", "attempts=1")
    assert say("retry", "r", "look", "--json").status == 0
    told = say("run", "--agent", script(), "--limit", "attempts=9", "--json").data
    assert told["status"] == "completed"
    assert [(visit["step"], visit["status"]) for visit in told["visits"]] == [
        ("look", "failed"),
        ("look", "success"),
        ("write", "success"),
    ]


@pytest.mark.parametrize("own", ["", "time_limit: 1h"])
def test_an_agent_that_hangs_is_ended_after_the_time_of_the_settings(
    say: Say, repository: Path, script: Script, own: str
) -> None:
    """Where the pipeline has no limit for it; what the pipeline says counts more."""
    pipeline = (
        f"name: hangs\ndocuments: docs/{{slug}}\nsteps: [{{id: a, agent: {{role: designer, out: design.md}}, {own}}}]\n"
    )
    (repository / ".tenuto/pipelines/hangs.yaml").write_text(pipeline)
    (repository / ".tenuto/config.yaml").write_text("time_limit: 1s\n")
    agent = script('answers: [{for: {}, run: "sleep 3"}]')
    told = say("run", "Add x", "--pipeline", "hangs", "--name", "r", "--agent", agent)
    if own:
        assert told.status == 0
    else:
        assert told.status == 1 and "the time limit was reached" in told.out


@pytest.mark.parametrize(
    ("settings", "seconds", "words"),
    [
        ("", 7200, "an attempt is ended after 2h ("),
        ("time_limit: 90m\n", 5400, "an attempt is ended after 90m ("),
        ("time_limit: unlimited\n", None, "an attempt may take as long as it takes ("),
    ],
)
def test_nobody_waits_for_ever_unless_they_want_to(
    say: Say, repository: Path, settings: str, seconds: int | None, words: str
) -> None:
    (repository / ".tenuto/config.yaml").write_text(settings or "pipeline: small\n")
    assert say("plan", "--pipeline", "small", "--json").data["time_limit"] == seconds
    assert words in say("plan", "--pipeline", "small").out
    own = "an attempt is ended after 5m, 10m, 30m"
    assert (
        own + {7200: ", 2h (", 5400: ", 90m (", None: " or, elsewhere, an attempt may"}[seconds or None]
        in say("plan", "--pipeline", "staged-standard").out
    )


def test_a_step_has_limits_of_its_own(say: Say, repository: Path, script: Script) -> None:
    agent = script('answers:\n  - {for: {role: designer}, reply: "ERROR: no"}\n')
    told = say(*RUN, "--agent", agent, "--limit", "attempts@write=1")
    assert told.status == 5
    assert "step write may use 1 attempts: 1 are used" in told.out and "--limit attempts@write=N" in told.out
    assert say("resume", "r", "--agent", script(), "--limit", "attempts@write=2").status == 0
    assert (
        say("resume", "r", "--limit", "attempts@nowhere=2", "--agent", agent, "--json").error["code"] == "no-such-step"
    )


def test_limits_in_the_pipeline_hold_too(say: Say, repository: Path, script: Script) -> None:
    own = repository / ".tenuto" / "pipelines" / "small.yaml"
    own.write_text(
        own.read_text().replace("cap: 2", "cap: 2\nbudget: {attempts: 9, wall_clock: 2h}")
        + "    budget: {attempts: 1}\n"
    )
    assert say(*RUN, "--agent", script(), "--limit", "attempts=2", "--json").status == 5, "what a person says wins"
    budget = reopen(repository).load("r")["budget"]
    assert budget["limits"] == {"attempts": 2, "wall_clock": 7200}
    assert budget["steps"]["write"]["limits"] == {"attempts": 1}


def test_when_the_time_is_over_agents_are_ended_and_no_try_is_used_up(
    say: Say, repository: Path, script: Script
) -> None:
    """The attempt under way ends with the time, the run pauses, and with more time the same step goes on."""
    agent = script("answers:\n  - {for: {role: designer}, fault: hang}\n")
    told = say(*RUN, "--agent", agent, "--limit", "wall_clock@write=1")
    assert told.status == 5, told
    assert re.search(r"step write may use 1 seconds: \d+ are used", told.out), (
        "as many as it took the machine to notice"
    )
    run = reopen(repository).load("r")
    assert [a["verdict"] for a in run["attempts"].values()] == ["DONE", "DONE", "PARKED"]
    assert present(run["current_visit"])["seats"]["designer"]["results"] == []
    assert present(time_left(run, "write", run["updated_at"])) <= 0
    assert say("resume", "r", "--agent", script(), "--limit", "wall_clock@write=60").status == 0


def test_a_usage_limit_parks_the_run_until_the_stated_time_and_burns_no_retry(
    say: Say, repository: Path, script: Script
) -> None:
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 20 * 86400))
    agent = script(
        f'answers:\n  - {{for: {{role: designer}}, reply: "PARKED: {day}T00:00:00Z the limit is reached"}}\n'
    )
    told = say(*RUN, "--agent", agent)
    assert told.status == 5
    assert f"until {day} 00:00:00Z: the limit is reached" in told.out
    assert "tenuto resume r --now" in told.out
    good = script()
    assert say("run", "--agent", good).status == say("resume", "r", "--agent", good).status == 5, "before that time"
    assert say("resume", "r", "--no-drive", "--json").data["status"] == "parked"
    assert present(reopen(repository).load("r")["current_visit"])["seats"]["designer"]["results"] == []
    assert say("resume", "r", "--agent", good, "--now").status == 0


def test_after_the_stated_time_a_parked_run_goes_on_by_itself(say: Say, repository: Path, script: Script) -> None:
    script("answers: []\n")
    agent = script('answers:\n  - {for: {role: designer, try: 1}, reply: "PARKED: 2020-01-01T00:00:00Z over"}\n')
    told = say(*RUN, "--agent", agent, "--json")
    assert told.status == 0 and told.data["status"] == "completed"
    with reopen(repository).journal.read() as reader:
        kinds = [event["type"] for event in reader.events("r")]
    assert kinds.index("Parked") < kinds.index("Resumed")


def test_a_time_that_is_none_does_not_park(say: Say, script: Script) -> None:
    agent = script('answers:\n  - {for: {role: designer}, reply: "PARKED: later"}\n')
    told = say(*RUN, "--agent", agent, "--json")
    assert told.status == 1 and "'later', which is no time" in str(told.data["attempts"])


@pytest.mark.parametrize(
    "word", ["attempts=-1", "attempts=x", "apples=3", "money=a", "money=1.1234567", "attempts@=3", "40"]
)
def test_a_limit_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(BadInput):
        limits_of((word,))
    assert limits_of(("money=0.05", "tokens@1.2=7")) == ({"micro_usd": 50_000}, {"1.2": {"tokens": 7}})


def test_status_tells_what_is_left(say: Say, repository: Path, script: Script) -> None:
    say(*RUN, "--agent", script(), "--limit", "attempts=2", "--limit", "wall_clock@write=90")
    told = say("status").out
    assert "limit: 2 attempts, 2 attempts used or promised" in told
    assert "limit of write: 1m 30s, 0.0s used or promised" in told
    assert "spent: 2 attempts" in told
