"""Rolling order in work trees: an item starts as soon as what it depends on is merged, from a tree that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.agents.roster import Roster
from tenuto.engine.loop import Engine
from tests.acceptance.grounds import PIPELINE, Ground, merges, receipts

THREE = "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: none)\n## Wave 2\n- 03-c (depends_on: {})\n"
ROLLING = PIPELINE.replace("order: barrier", "order: rolling")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path, ROLLING)


def until(path: Path) -> str:
    return f"until [ -e {path} ]; do sleep 0.01; done"


def while_there(pattern: str) -> str:
    return f"while ls {pattern} >/dev/null 2>&1; do sleep 0.01; done"


def test_a_dependent_starts_from_its_merged_dependency_while_others_still_work(ground: Ground) -> None:
    """02 waits for a sign that only 03 gives, and 03 depends on 01: under the barrier this would never end."""
    sign = ground.root / ".git" / "sign"
    name = ground.start(
        plan=THREE.format("01-a"),
        _01="echo a > a.txt",
        _02=f"{until(sign)}; ls > seen-b; echo b > b.txt",
        _03=f"cat a.txt > c.txt; ls > seen-c; touch {sign}",
    )
    run = ground.drive(name)
    assert run["status"] == "completed", run["failure"]
    assert merges(ground)[0] == "01-a" and sorted(merges(ground)) == ["01-a", "02-b", "03-c"]
    assert (ground.root / "c.txt").read_text() == "a\n"
    assert "b.txt" not in (ground.root / "seen-c").read_text(), "it does not depend on 02, and 02 was not merged yet"
    assert "a.txt" not in (ground.root / "seen-b").read_text(), "who started before a merge does not see it"
    assert ground.git("status", "--porcelain") == ""


def test_a_conflict_sends_that_item_back_and_its_dependents_wait_for_the_merge(ground: Ground) -> None:
    """02 ends after 01 was merged, and changed the same line: it is asked again with the conflict as its finding, from
    a tree that has 01. 03, which depends on 02, starts when the second attempt of 02 is merged."""
    merged = f"{ground.root}/.git/refs/heads/tenuto-attempts/*/*01-a*"
    begun = ground.root / ".git" / "begun"
    name = ground.start(
        plan=THREE.format("02-b"),
        _01=f"touch {begun}; sed -i s/two/TWO-a/ shared.txt",
        # 01 is merged when its branch is gone again; 02 began before that, from the same commit. Either may begin
        # first.
        _02__1=f"sed -i s/two/TWO-b/ shared.txt; {until(begun)}; {while_there(merged)}",
        _02__2="grep -q TWO-a shared.txt && sed -i s/TWO-a/TWO-ab/ shared.txt",
        _03="cp shared.txt c.txt",
    )
    run = ground.drive(name)
    assert run["status"] == "completed", (run["failure"], [a["summary"] for a in run["attempts"].values()])
    assert merges(ground) == ["01-a", "02-b", "03-c"]
    first, again = (run["attempts"][f"implementation-1-implementer.02-b-{number}"] for number in (1, 2))
    assert first["verdict"] == "NEEDS_REVISION"
    assert first["summary"].startswith("merge conflict with what was merged before it, in shared.txt")
    assert again["extra"]["why_again"] == first["summary"]
    assert (ground.root / "c.txt").read_text() == "one\nTWO-ab\nthree\n"
    assert "TWO-b" in ground.git("show", f"{first['receipt']['kept']}:shared.txt")
    third = run["attempts"]["implementation-1-implementer.03-c-1"]
    assert third["started_at"] >= again["ended_at"]


def test_a_conflict_that_is_never_resolved_skips_the_dependents_and_nothing_else(ground: Ground) -> None:
    merged = f"{ground.root}/.git/refs/heads/tenuto-attempts/*/*01-a*"
    begun = ground.root / ".git" / "begun"
    name = ground.start(
        plan=THREE.format("02-b"),
        _01=f"touch {begun}; sed -i s/two/TWO-a/ shared.txt",
        _02__1=f"sed -i s/two/TWO-b/ shared.txt; {until(begun)}; {while_there(merged)}",
        _02__2="exit 1",
        _03="touch c.txt",
    )
    run = ground.drive(name)
    assert run["status"] == "failed"
    assert {item: one["status"] for item, one in run["items"].items()} == {
        "01-a": "completed",
        "02-b": "failed",
        "03-c": "skipped",
    }
    assert merges(ground) == ["01-a"]
    assert (ground.root / "shared.txt").read_text() == "one\nTWO-a\nthree\n"


def test_a_merge_that_the_journal_never_heard_of_is_not_made_again(ground: Ground) -> None:
    """The engine dies after the merge of 01; the next one knows the merge by its trailer, and 03 starts from it,
    once."""
    name = ground.start(plan=THREE.format("01-a"), _01="echo a > a.txt", _02="echo b > b.txt", _03="cat a.txt > c.txt")

    class Dies(Engine):
        def _record(self, turn: Any, job: Any, *rest: Any) -> None:
            if job.item is not None:
                raise KeyboardInterrupt
            super()._record(turn, job, *rest)

    with pytest.raises(KeyboardInterrupt):
        Dies(tenuto.open(str(ground.root)), name, Roster(f"scripted:{ground.script}"), {}).drive()
    assert len(merges(ground)) == 1
    run = ground.drive(name)
    assert run["status"] == "completed"
    assert sorted(merges(ground)) == ["01-a", "02-b", "03-c"]
    assert all(receipt["merged"] for receipt in receipts(run).values())
    assert len(run["attempts"]) == 4, "nothing finished runs twice"
