"""Set-up commands and checks: nobody waits for them who need not, and they end with what they belong to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.begin import Place
from tenuto.engine.gates import command
from tenuto.engine.loop import Engine
from tenuto.engine.receipts import OUT_OF_TIME, UnderWay, Where, end_all, pursue, titled
from tenuto.engine.receipts import wait_for as wait_for_end
from tenuto.engine.rest import cancel
from tenuto.supervise import attempts
from tests.acceptance.grounds import OWN_TREES, PIPELINE, TWO, Ground, merges, receipts

CHECKED = PIPELINE.replace("in: plan.md}", "in: plan.md, checks: [tests]}")
ROLLING = CHECKED.replace("order: barrier", "order: rolling")
SHARED = Place()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path, CHECKED)


def until(path: Path | str) -> str:
    return f"until [ -e {path} ]; do sleep 0.01; done"


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


class Meddler(Engine):
    """An engine to which something happens when it waits for a command of the project."""

    def __init__(self, ground: Ground, name: str, happens: Any) -> None:
        super().__init__(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), ground.settings)
        self.happens = happens

    def wait(self, flying: list[str]) -> list[str]:
        if (self.setups or self.checks) and self.happens:
            happens, self.happens = self.happens, None
            happens(self)
        return super().wait(flying)


def killed(engine: Engine) -> None:
    raise KeyboardInterrupt


def killed_after(path: Path) -> Callable[[Engine], None]:
    def wait_and_kill(engine: Engine) -> None:
        wait_for(path)
        killed(engine)

    return wait_and_kill


def is_alive(pid_file: Path) -> bool:
    return os.path.exists(f"/proc/{pid_file.read_text().strip()}")


def test_the_trees_of_a_wave_are_set_up_side_by_side(ground: Ground) -> None:
    """Each set-up waits for the other: one after the other would never end."""
    git = ground.root / ".git"
    ground.settings = {
        "setup": {"run": [f"mkdir {git}/one 2>/dev/null && {{ {until(git / 'two')}; }} || touch {git}/two"]}
    }
    run = ground.drive(ground.start(_01="echo a > a.txt", _02="echo b > b.txt"))
    assert run["status"] == "completed", run["failure"]
    assert merges(ground) == ["01-a", "02-b"]


def test_a_check_holds_up_nobody_in_another_tree(tmp_path: Path) -> None:
    """The check of 01 waits for a sign that 03 gives, which starts when 02 is merged: the engine collects and starts
    meanwhile."""
    ground = Ground(tmp_path, ROLLING)
    sign = ground.root / ".git" / "sign"
    ground.settings = {"checks": {"tests": f"[ ! -e a.txt ] || {{ {until(sign)}; }}"}}
    plan = "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n## Wave 2\n- 03-c (depends_on: 02-b)\n"
    run = ground.drive(
        ground.start(plan=plan, _01="echo a > a.txt", _02="echo b > b.txt", _03=f"echo c > c.txt; touch {sign}")
    )
    assert run["status"] == "completed", run["failure"]
    assert merges(ground)[0] == "02-b" and sorted(merges(ground)) == ["01-a", "02-b", "03-c"]


@pytest.mark.parametrize(
    ("stage", "place", "said"),
    [
        ("setup", OWN_TREES, "the run has ended"),
        ("checks", OWN_TREES, "it was cancelled"),
        ("checks", SHARED, "it was cancelled"),
    ],
    ids=["setup", "check in a tree", "check in the shared tree"],
)
def test_cancel_ends_a_command_with_everything_it_started(ground: Ground, stage: str, place: Place, said: str) -> None:
    pid = ground.root / ".git" / "pid"
    hang = f"sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; sleep 1000"
    ground.settings = {"setup": {"run": [hang]}} if stage == "setup" else {"checks": {"tests": hang}}
    name = ground.start(plan="## Wave 1\n- 01-a (depends_on: none)\n", place=place, _01="echo a > a.txt")

    def cancelled(engine: Engine) -> None:
        wait_for(pid)
        cancel(tenuto.open(str(ground.root)), name, "enough")

    run = Meddler(ground, name, cancelled).drive()
    assert run["status"] == "cancelled"
    assert run["in_flight"] == []
    assert said in run["attempts"]["implementation-1-implementer.01-a-1"]["summary"]
    assert not is_alive(pid)


def test_pause_is_heard_while_a_check_runs(ground: Ground) -> None:
    """What is under way ends and is collected; nothing more starts."""
    go = ground.root / ".git" / "go"
    ground.settings = {"checks": {"tests": until(go)}}
    plan = "## Wave 1\n- 01-a (depends_on: none)\n## Wave 2\n- 02-b (depends_on: 01-a)\n"
    name = ground.start(plan=plan, _01="echo a > a.txt", _02="echo b > b.txt")

    def paused(engine: Engine) -> None:
        command(
            tenuto.open(str(ground.root)),
            name,
            {"do": "Pause", "kind": "person", "reason": "wait", "recommendations": []},
        )
        go.touch()

    run = Meddler(ground, name, paused).drive()
    assert run["status"] == "paused"
    assert {item: one["status"] for item, one in run["items"].items()} == {"01-a": "completed", "02-b": "pending"}


def test_pause_during_a_set_up_starts_no_agent(ground: Ground) -> None:
    """The attempt that was being prepared never ran, and costs no try; resumed, another one does the work."""
    go = ground.root / ".git" / "go"
    ground.settings = {"setup": {"run": [until(go)]}}
    name = ground.start(
        plan="## Wave 1\n- 01-a (depends_on: none)\n", _01=f"echo a > a.txt; touch {ground.root}/.git/ran"
    )

    def paused(engine: Engine) -> None:
        command(
            tenuto.open(str(ground.root)),
            name,
            {"do": "Pause", "kind": "person", "reason": "wait", "recommendations": []},
        )
        go.touch()

    run = Meddler(ground, name, paused).drive()
    assert (run["status"], run["in_flight"]) == ("paused", [])
    assert not (ground.root / ".git/ran").exists()
    command(tenuto.open(str(ground.root)), name, {"do": "Resume", "decision": "retry"})
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert merges(ground) == ["01-a"]


@pytest.mark.parametrize("place", [OWN_TREES, SHARED], ids=["worktree", "shared"])
def test_an_engine_that_dies_during_a_check_leaves_it_to_the_next(ground: Ground, place: Place) -> None:
    """The check goes on, is taken up and not run twice; what it wrote is neither merged nor blamed on the agent."""
    count = ground.root / ".git" / "count"
    ground.settings = {
        "checks": {"tests": f"echo x >> {count}; echo made > made-by-check; {until(ground.root / '.git/go')}"}
    }
    plan = "| Task | File(s) | Dependencies |\n|---|---|---|\n| 01-a | a.txt | none |\n"
    name = ground.start(plan=plan, place=place, _01="echo a > a.txt")
    with pytest.raises(KeyboardInterrupt):
        Meddler(ground, name, killed_after(count)).drive()
    (ground.root / ".git/go").touch()
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert count.read_text() == "x\n"
    attempt = run["attempts"]["implementation-1-implementer.01-a-1"]
    assert attempt["receipt"]["touched"] == ["a.txt"]
    if place is OWN_TREES:
        assert not (ground.root / "made-by-check").exists()


def test_an_engine_that_dies_during_a_set_up_leaves_it_to_the_next(ground: Ground) -> None:
    """No attempt is lost, and no command of the set-up runs twice."""
    count = ground.root / ".git" / "count"
    ground.settings = {
        "setup": {"run": [f"echo first >> {count}", f"echo second >> {count}; {until(ground.root / '.git/go')}"]}
    }
    name = ground.start(plan="## Wave 1\n- 01-a (depends_on: none)\n", _01="echo a > a.txt")
    with pytest.raises(KeyboardInterrupt):
        Meddler(ground, name, killed).drive()
    (ground.root / ".git/go").touch()
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert count.read_text() == "first\nsecond\n"
    assert [one["number"] for one in run["attempts"].values() if one["item"]] == [1]


def test_while_a_check_runs_in_the_shared_tree_nothing_starts_there(ground: Ground) -> None:
    """Rolling, two places: 02 has ended and 03 could start, but the tree that is being tested is not written to."""
    (ground.root / ".tenuto/pipelines/small.yaml").write_text(ROLLING)
    ground.git("commit", "-q", "-a", "-m", "rolling")
    ground.settings = {"checks": {"tests": "if [ -e testing ]; then exit 9; fi; touch testing; sleep 0.2; rm testing"}}
    plan = "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n- 03-c (depends_on: 01-a)\n"
    busy = "if [ -e testing ]; then exit 8; fi; sleep 0.1; if [ -e testing ]; then exit 8; fi; touch $TENUTO_ITEM"
    run = ground.drive(ground.start(plan=plan, place=SHARED, _01=busy, _02=busy, _03=busy))
    assert run["status"] == "completed", [one["summary"] for one in run["attempts"].values()]
    assert all(receipt["checks"] for receipt in receipts(run).values())


def test_cancel_collects_what_is_left_where_no_engine_is(ground: Ground) -> None:
    """No attempt stays under way in a run that is over, and what an agent had done is kept on its branch."""
    pid = ground.root / ".git" / "pid"
    name = ground.start(
        plan="## Wave 1\n- 01-a (depends_on: none)\n", _01=f"echo half > a.txt; echo $$ > {pid}; sleep 1000"
    )

    class Dies(Engine):
        def wait(self, flying: list[str]) -> list[str]:
            if "implementer" in flying[0]:
                wait_for(pid)
                raise KeyboardInterrupt
            return super().wait(flying)

    with pytest.raises(KeyboardInterrupt):
        Dies(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), {}).drive()
    run = cancel(tenuto.open(str(ground.root)), name)
    assert (run["status"], run["in_flight"]) == ("cancelled", [])
    assert not is_alive(pid)
    (attempt,) = (one for one in run["attempts"].values() if one["item"])
    assert (attempt["verdict"], attempt["summary"]) == ("ERROR", "it was cancelled")
    assert ground.git("show", f"{attempt['receipt']['kept']}:a.txt") == "half"


def test_a_start_that_is_about_to_happen_is_void_once_its_attempt_is_ended(tmp_path: Path) -> None:
    end_all(f"{tmp_path}/attempt")
    assert attempts.inspect(f"{tmp_path}/attempt/1")["state"] == "void"


def test_a_cancelled_run_starts_no_agent_again_after_a_transient_failure(ground: Ground) -> None:
    """The program could not be started, and is tried again a moment later; by then the run is over."""
    name = ground.start(plan="## Wave 1\n- 01-a (depends_on: none)\n", _01="true")

    class Fails(Engine):
        def finish(self, name: str, directory: str, result: Any) -> Any:
            if "implementer" in name:
                self._wake[name] = 0.0
                cancel(tenuto.open(str(ground.root)), self.name)
                return None
            return super().finish(name, directory, result)

    run = Fails(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), {}).drive()
    assert (run["status"], run["in_flight"]) == ("cancelled", [])
    assert run["attempts"]["implementation-1-implementer.01-a-1"]["summary"] == "the run has ended"
    assert not (ground.root / ".git/tenuto/attempts" / name / "implementation-1-implementer.01-a-1" / "2").exists()


# ---- one command -----------------------------------------------------------------------------------


def where(tmp_path: Path, left: float | None = None) -> Where:
    return Where(
        "run.attempt", str(tmp_path), f"{tmp_path}/checks", {"PATH": os.environ["PATH"]}, f"{tmp_path}/slots", left
    )


def test_the_runs_time_binds_a_command_and_is_told_from_its_own_limit(tmp_path: Path) -> None:
    told = wait_for_end(lambda: pursue(where(tmp_path, 0.2), "check-1", "sleep 1000", 60))
    assert (told.kind, told.result["reason"]) == ("out_of_time", OUT_OF_TIME)
    told = wait_for_end(lambda: pursue(where(tmp_path, 60), "check-2", "sleep 1000", 0.2))
    assert (told.kind, told.result["reason"]) == ("failed", "the time limit of 0.2 s was reached")


def test_the_runs_time_parks_an_attempt_whose_check_it_cuts_off(ground: Ground) -> None:
    """The agent did nothing wrong: no try is used up, and the run pauses with the way on."""
    ground.settings = {"checks": {"tests": "sleep 1000"}}
    name = ground.start(plan="## Wave 1\n- 01-a (depends_on: none)\n", _01="echo a > a.txt")
    command(
        tenuto.open(str(ground.root)),
        name,
        {"do": "ChangeBudget", "limits": {}, "steps": {"implementation": {"wall_clock": 10}}},
    )
    run = ground.drive(name)
    assert run["status"] == "paused"
    assert "wall_clock" in run["pause"]["recommendations"][0]
    assert run["attempts"]["implementation-1-implementer.01-a-1"]["verdict"] == "PARKED"


def test_commands_of_one_attempt_never_share_a_result_whatever_they_are_called(tmp_path: Path) -> None:
    names = [
        titled("check", 1, "tests"),
        titled("check", 2, "tests"),
        titled("check", 3, "../../x"),
        titled("check", 4, "!"),
        titled("setup", 1),
    ]
    assert names == ["check-1-tests", "check-2-tests", "check-3-x", "check-4", "setup-1"]
    assert isinstance(pursue(where(tmp_path), names[0], "echo one"), UnderWay)
    assert wait_for_end(lambda: pursue(where(tmp_path), names[0], "echo one")).result["tail"] == "one"
    assert wait_for_end(lambda: pursue(where(tmp_path), names[1], "echo two")).result["tail"] == "two"


def test_two_items_without_checks_are_as_before(ground: Ground) -> None:
    assert ground.drive(ground.start(plan=TWO, _01="true", _02="true"))["status"] == "completed"
