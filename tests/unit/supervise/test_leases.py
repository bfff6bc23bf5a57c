"""An attempt that another machine may be given when its lease is over does not outlive that lease."""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.supervise import records
from tests.support.sandbox import Sandbox, python

LONG = 3600.0


def test_without_a_renewed_lease_the_whole_tree_ends_and_the_result_says_why(tmp_path: Path) -> None:
    """The agent and what it left in the background."""
    lease = str(tmp_path / "lease")
    records.extend_lease(lease, records.lease_clock() + LONG)
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch_rogue("a", "daemonise_and_linger", lease=lease)
        _, agent = sandbox.hear()
        records.extend_lease(lease, records.lease_clock() - 1)
        result = sandbox.result(directory)
        assert (result["cancelled"], result.get("lease_over"), result["survivors"]) == (True, True, [])
        assert not os.path.exists(f"/proc/{agent.pid}")


def test_what_waits_for_a_slot_is_not_started_when_its_lease_is_over(tmp_path: Path) -> None:
    lease = str(tmp_path / "lease")
    records.extend_lease(lease, records.lease_clock() - 1)
    with Sandbox(str(tmp_path)) as sandbox:
        result = sandbox.result(sandbox.launch("a", python("raise SystemExit(3)"), lease=lease))
        assert (result["started"], result["exit_code"], result.get("lease_over")) == (None, None, True)


def test_a_lease_that_cannot_be_read_is_over(tmp_path: Path) -> None:
    """Missing, damaged, of another start of the machine: none of them lets an agent go on."""
    lease = tmp_path / "lease"
    assert records.lease_left(str(lease)) == 0
    records.extend_lease(str(lease), records.lease_clock() + LONG)
    assert records.lease_left(str(lease)) > LONG - 60
    for text in ("", "[]", "{}", '{"until": "x", "boot": "y"}', '{"until": 99999999999, "boot": "another"}'):
        lease.write_text(text)
        assert records.lease_left(str(lease)) == 0


def test_without_a_lease_an_attempt_goes_on_as_long_as_it_wants(tmp_path: Path) -> None:
    with Sandbox(str(tmp_path)) as sandbox:
        result = sandbox.result(sandbox.launch("a", python("raise SystemExit(3)")))
        assert result["exit_code"] == 3 and "lease_over" not in result
