"""Never more agents than the cap, across processes and restarts, whoever is killed."""

from __future__ import annotations

from pathlib import Path

from tenuto.supervise import attempts, slots
from tests.support.killing import kill_while_full
from tests.support.sandbox import Sandbox


def test_sixteen_orchestrators_and_random_kills_never_exceed_the_cap(tmp_path: Path) -> None:
    """Each agent and its daemon hold one of four seats while they live; none ever finds all four taken.
    Supervisors and orchestrators are killed as they come. At the end nothing is alive and no slot is lost.
    An orchestrator that is killed may leave a launch half made: absent, or void, because nobody is left to go on."""
    with Sandbox(str(tmp_path), cap=4) as sandbox:
        seen = kill_while_full(sandbox, launchers=16, each=4, seed=5)
        assert {"finished", "lost"} <= set(seen) <= {"finished", "lost", "void", "absent"}
        for number in range(4):
            assert sandbox.result(sandbox.launch_rogue(f"after-{number}", "obey"))["exit_code"] == 0


def test_the_one_that_waits_says_that_it_is_queued(tmp_path: Path) -> None:
    """A supervisor without a slot has claimed its attempt and started nothing; it can be cancelled there."""
    with Sandbox(str(tmp_path), cap=1) as sandbox:
        first = sandbox.launch_rogue("first", "linger")
        sandbox.hear()
        second = sandbox.launch_rogue("second", "linger")
        third = sandbox.launch_rogue("third", "obey")
        assert sandbox.claimed(second)["state"] == "queued"
        attempts.cancel(second)
        result = sandbox.result(second)
        assert (result["cancelled"], result["started"], result["exit_code"]) == (True, None, None)
        assert attempts.inspect(third)["state"] in ("launching", "queued")
        [state] = slots.survey(sandbox.pool)
        assert (state["state"], state["directory"]) == ("held", first)
        attempts.cancel(first)
        assert sandbox.result(third)["exit_code"] == 0
