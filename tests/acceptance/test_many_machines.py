"""A run on other machines is the run that it would have been here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import tenuto
from tenuto.cluster.database import install
from tenuto.engine.rest import cancel
from tenuto.errors import Refused
from tenuto.workspace.moving import join_server, to_server
from tests.support.fleet import fleet
from tests.support.trusting import trust

pytestmark = pytest.mark.needs("postgres", "git")


def another_database() -> str:
    from tests.support.postgres import fresh_database

    return fresh_database()


def test_a_run_goes_through_workers_and_its_code_is_merged_in_order(tmp_path: Path, database: str) -> None:
    with fleet(tmp_path, database) as machines:
        machines.worker()
        name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
        run = machines.drive(name)
        assert run["status"] == "completed", machines.said()
        root = machines.ground.root
        assert (root / "a.txt").read_text() == "a\n" and (root / "b.txt").read_text() == "b\n"
        subjects = machines.ground.git("log", "--first-parent", "--format=%s", "--grep=Tenuto-Attempt")
        assert [line.split()[1].rstrip(":") for line in subjects.splitlines()] == ["02-b", "01-a"]
        assert machines.ask("SELECT count(*) FROM task WHERE NOT recorded") == [(0,)]
        assert machines.ask("SELECT count(*) FROM lease") == [(0,)]


def test_what_an_agent_does_outside_its_boundary_is_found_whatever_its_worker_says(
    tmp_path: Path, database: str
) -> None:
    with fleet(tmp_path, database) as machines:
        machines.worker()
        name = machines.start(_01="echo a > .tenuto/pipelines/small.yaml", _02="echo b > b.txt")
        run = machines.drive(name)
        assert run["status"] == "failed"
        summary = run["attempts"]["implementation-1-implementer.01-a-1"]["summary"]
        assert "files outside the boundary were changed: .tenuto/pipelines/small.yaml" in summary
        assert "pipelines" not in machines.ground.git("diff", "--name-only", "main", "HEAD", "--", ".tenuto")


def test_a_conflict_between_two_items_is_handed_to_the_next_attempt(tmp_path: Path, database: str) -> None:
    with fleet(tmp_path, database) as machines:
        machines.worker()
        name = machines.start(
            _01="echo one > shared.txt", _02__2="echo three >> shared.txt", _02="echo two > shared.txt"
        )
        run = machines.drive(name)
        assert run["status"] == "completed", machines.said()
        assert (machines.ground.root / "shared.txt").read_text() == "one\nthree\n"
        assert run["attempts"]["implementation-1-implementer.02-b-1"]["verdict"] == "NEEDS_REVISION"


def test_a_worker_killed_and_started_again_takes_up_its_agents(tmp_path: Path, database: str) -> None:
    """Nothing is lost and nothing runs twice: the agent outlives its worker."""
    witness, gate = tmp_path / "witness", tmp_path / "gate"
    slow = f"echo x >> {witness}; while [ ! -e {gate} ]; do sleep 0.05; done; echo a > a.txt"
    with fleet(tmp_path, database) as machines:
        first = machines.worker()
        name = machines.start(_01=slow, _02="echo b > b.txt")
        with machines.driving(name) as found:
            machines.await_file(witness)
            first.kill()
            first.wait()
            machines.worker()
            gate.touch()
        assert found[0]["status"] == "completed", machines.said()
        assert witness.read_text() == "x\n"
        assert "taken up" in machines.said()
        assert [one["status"] for one in found[0]["attempts"].values()] == ["completed"] * 3


def test_work_of_a_worker_that_never_comes_back_is_made_again_and_its_agents_have_ended(
    tmp_path: Path, database: str
) -> None:
    """Killed for good: the tree ends before the lease does, the attempt is lost, another worker makes the next."""
    witness, gate = tmp_path / "witness", tmp_path / "gate"
    slow = f"echo $$ >> {witness}; while [ ! -e {gate} ]; do sleep 0.05; done; echo a > a.txt"
    with fleet(tmp_path, database) as machines:
        machines.tell("UPDATE pool SET lease_seconds = 10")
        first = machines.worker()
        name = machines.start(_01=slow, _02="echo b > b.txt")
        with machines.driving(name) as found:
            machines.await_file(witness)
            first.kill()
            first.wait()
            machines.worker("other")
            machines.await_("SELECT count(*) FROM task WHERE outcome = 'lost' AND attempt LIKE '%01-a-1'")
            assert not Path(f"/proc/{witness.read_text().split()[0]}").exists()
            gate.touch()
        assert found[0]["status"] == "completed", machines.said("other")
        ends = {one: attempt["status"] for one, attempt in found[0]["attempts"].items() if attempt["item"] == "01-a"}
        assert list(ends.values()) == ["lost", "completed"]


def test_a_cancelled_run_ends_its_agents_on_every_machine(tmp_path: Path, database: str) -> None:
    witness = tmp_path / "witness"
    with fleet(tmp_path, database) as machines:
        machines.tell("UPDATE pool SET lease_seconds = 10")
        machines.worker()
        name = machines.start(_01=f"echo $$ >> {witness}; sleep 3600", _02="echo b > b.txt")
        with machines.driving(name) as found:
            machines.await_file(witness)
            cancel(tenuto.open(str(machines.ground.root)), name, "not needed")
        assert (found[0]["status"], list(found[0]["in_flight"])) == ("cancelled", [])
        assert not Path(f"/proc/{witness.read_text().split()[0]}").exists()
        assert machines.ask("SELECT count(*) FROM task WHERE NOT recorded") == [(0,)]


def test_a_worker_that_is_asked_to_stop_ends_what_is_under_way_and_takes_nothing_more(
    tmp_path: Path, database: str
) -> None:
    witness, gate = tmp_path / "witness", tmp_path / "gate"
    slow = f"echo x >> {witness}; while [ ! -e {gate} ]; do sleep 0.05; done; echo a > a.txt"
    with fleet(tmp_path, database) as machines:
        worker = machines.worker("w", "--slots", "1")
        name = machines.start(_01=slow, _02="echo b > b.txt")
        with machines.driving(name) as found:
            machines.await_file(witness)
            worker.terminate()
            machines.await_("SELECT count(*) FROM worker WHERE draining")
            gate.touch()
            assert worker.wait() == 0
            assert machines.ask("SELECT count(*) FROM task WHERE state = 'waiting'") == [(1,)]
            machines.worker("other")
        assert found[0]["status"] == "completed"


def test_a_driver_that_died_is_taken_over_wherever_it_was(tmp_path: Path) -> None:
    """Between any two of its steps: the attempts go on, and each end is recorded once."""
    for step in ("launch", "carry", "record", "_tidy"):
        folder = tmp_path / step
        folder.mkdir()
        with fleet(folder, another_database()) as machines:
            machines.worker()
            name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
            for _ in range(2):
                engine = machines.engine(name)
                setattr(engine, step, _dying(getattr(engine, step), before=step == "record"))
                with suppress(KeyboardInterrupt):
                    engine.drive()
            run = machines.drive(name)
            assert run["status"] == "completed", f"{step}: {machines.said()}"
            assert [one["status"] for one in run["attempts"].values()] == ["completed"] * 3
            assert machines.ask("SELECT count(*) FROM task WHERE NOT recorded") == [(0,)]


def test_another_checkout_takes_over_a_run_whose_journal_is_on_a_server(tmp_path: Path, database: str) -> None:
    """The first one is gone with its machine: its branch comes from the origin, its documents from the journal."""
    with fleet(tmp_path, database) as machines:
        first = machines.ground.root
        machines.ground.git("push", "-q", "origin", "main")
        name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
        to_server(tenuto.open(str(first)), database, "shop")
        machines.worker()
        engine = machines.engine(name)
        engine.collect = _dying(engine.collect, before=True, at=2)  # type: ignore[method-assign,assignment]
        with suppress(KeyboardInterrupt):
            engine.drive()
        second = tmp_path / "second"
        subprocess.run(["git", "clone", "-q", str(machines.origin), str(second), "-b", "main"], check=True)
        join_server(tenuto.open(str(second)), database, "shop")
        first.rename(tmp_path / "gone")
        machines.ground.root = second
        trust(second)
        run = machines.drive(name)
        assert run["status"] == "completed", machines.said()
        assert (second / "a.txt").read_text() == "a\n" and (second / "b.txt").read_text() == "b\n"
        assert [one["status"] for one in run["attempts"].values()] == ["completed"] * 3
        assert (second / f"docs/feature/{name}/plan.md").exists()


def test_a_run_begun_for_other_machines_is_not_driven_as_if_its_attempts_were_here(
    tmp_path: Path, database: str
) -> None:
    with fleet(tmp_path, database) as machines:
        name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
        with pytest.raises(Refused, match="are carried out on cluster:default"):
            machines.ground.drive(name)


def test_after_its_database_was_lost_nothing_that_may_have_run_is_offered_again(tmp_path: Path, database: str) -> None:
    """Nobody knows what became of it; the next attempt is another one."""
    with fleet(tmp_path, database) as machines:
        name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
        engine = machines.engine(name)
        engine.launch = _dying(engine.launch, before=False, at=1)  # type: ignore[method-assign,assignment]
        with suppress(KeyboardInterrupt):
            engine.drive()
        machines.tell("DROP SCHEMA tenuto_cluster CASCADE")
        install(machines.address)
        machines.worker()
        run = machines.drive(name)
        assert run["status"] == "completed"
        ends = [one["status"] for one in run["attempts"].values() if one["step"] == "planning"]
        assert ends == ["lost", "completed"]


def test_a_secret_that_a_worker_does_not_have_is_no_try_of_the_attempt(tmp_path: Path, database: str) -> None:
    with fleet(tmp_path, database) as machines:
        machines.ground.settings = {"secrets": ["MY_TOKEN"]}
        machines.worker("without")
        name = machines.start(_01="echo a > a.txt", _02="echo b > b.txt")
        with machines.driving(name) as found:
            machines.await_("SELECT count(*) FROM task WHERE given_back = 1")
            machines.tell("UPDATE worker SET draining = true; UPDATE task SET not_before = clock_timestamp()")
            machines.worker("with", MY_TOKEN="q7Zk-93fQ-77x1-Hw2")
        assert found[0]["status"] == "completed", machines.said("with")
        assert "this worker has no MY_TOKEN" in machines.said("without")
        assert len(found[0]["attempts"]) == 3


def _dying(ordinary: Callable[..., object], before: bool, at: int = 2) -> Callable[..., object]:
    """The second time, the process ends there: before it, or behind it."""
    calls: list[object] = []

    def dies(*given: object) -> object:
        calls.append(given)
        if before and len(calls) == at:
            raise KeyboardInterrupt
        made = ordinary(*given)
        if len(calls) == at:
            raise KeyboardInterrupt
        return made

    return dies
