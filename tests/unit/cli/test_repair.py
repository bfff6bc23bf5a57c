"""repair: what can be made from the journal is made; what somebody wrote is never thrown away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads, pretty

from .test_verify import change

Say = Callable[..., Any]
STATE, PLAN, HISTORY = Path("docs/dark-mode.json"), Path("docs/plan.md"), Path("docs/history.md")
QUARANTINE = Path(".git/tenuto/quarantine")


def test_what_is_right_is_left_alone(say: Say, run: str) -> None:
    before = [path.stat().st_ino for path in (STATE, PLAN, HISTORY)]
    assert say("repair").out == "nothing to repair\n"
    assert [path.stat().st_ino for path in (STATE, PLAN, HISTORY)] == before


def test_files_that_are_gone_stale_or_cut_are_written(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    with workspace.turn() as turn:
        turn.do(run, {"do": "SetFlags", "flags": {"a": 1}})
    for path in (STATE, PLAN, HISTORY):
        whole = path.read_bytes()
        path.unlink()
        assert say("repair").out == f"written: {path} (it is not there)\n"
        assert path.read_bytes() == whole
    whole = HISTORY.read_bytes()
    HISTORY.write_bytes(whole[:7])
    assert say("repair").status == 0
    assert HISTORY.read_bytes() == whole
    assert say("verify").out.startswith("sound")


@pytest.mark.parametrize("path", [STATE, HISTORY])
def test_a_file_full_of_nuls_is_written_anew_and_kept(path: Path, say: Say, run: str) -> None:
    whole = path.read_bytes()
    path.write_bytes(b"\0" * 64)
    done = say("repair")
    assert done.status == 0
    assert "quarantine" in done.err
    assert path.read_bytes() == whole
    assert [kept.read_bytes() for kept in QUARANTINE.iterdir()] == [b"\0" * 64]
    assert say("verify").status == 0


def test_edits_that_the_rules_allow_are_taken_in(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    """A state file, an artifact and an append-only file: all three edits become part of the run."""
    shown = loads(STATE.read_bytes())
    STATE.write_text(pretty({**shown, "flags": {"mine": True}}))
    PLAN.write_text("# My plan\n")
    HISTORY.write_text(HISTORY.read_text() + "- my line\n")
    done = say("repair", "--json")
    assert sorted(entry["where"] for entry in done.data["mended"]) == sorted(map(str, (STATE, PLAN, HISTORY)))
    loaded = workspace.load(run)
    assert loaded["flags"] == {"mine": True}
    assert PLAN.read_text() == "# My plan\n"
    assert "- my line\n" in HISTORY.read_text()
    assert say("verify").out.startswith("sound")


def test_an_edit_that_is_not_allowed_is_named_and_left_until_ours_is_asked_for(
    say: Say, workspace: tenuto.Workspace, run: str
) -> None:
    ours = STATE.read_bytes()
    theirs = ours.replace(b"waiting_gate", b"completed")
    STATE.write_bytes(theirs)
    PLAN.unlink()
    refused = say("repair")
    assert refused.status == 4
    assert f"try: undo the change, or: tenuto repair --restore {STATE}" in refused.err
    assert STATE.read_bytes() == theirs
    restored = say("repair", "--restore", str(STATE), "--json").data
    assert STATE.read_bytes() == ours
    assert Path(restored["kept"]).read_bytes() == theirs
    assert say("repair", "--restore", str(STATE), "--json").data["kept"] is None
    assert say("repair").status == 0
    assert PLAN.exists()
    with workspace.turn() as turn:
        turn.do(run, {"do": "DecideGate", "decision": "approve", "who": "ada"})
    assert workspace.load(run)["status"] == "running"


def test_any_file_of_ours_can_be_restored_from_any_folder(
    say: Say, workspace: tenuto.Workspace, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Artifacts, small and large, and logs; named as the shell completes them; a link in the way is not followed."""
    with workspace.turn() as turn:
        turn.store(run, "picture", "docs/picture.bin", b"x" * (1 << 19))
    before = {path: path.read_bytes() for path in (PLAN, HISTORY, Path("docs/picture.bin"))}
    secret = Path("elsewhere")
    secret.write_text("not to be touched")
    PLAN.unlink()
    PLAN.symlink_to("../elsewhere")
    HISTORY.write_text("rewritten\n")
    Path("docs/picture.bin").write_text("y")
    monkeypatch.chdir("docs")
    for name in ("plan.md", "history.md", "picture.bin"):
        assert say("repair", "--restore", name).status == 0
    monkeypatch.chdir("..")
    assert {path: path.read_bytes() for path in before} == before
    assert secret.read_text() == "not to be touched"
    assert say("verify").out.startswith("sound")


def test_only_what_we_wrote_can_be_restored(say: Say, run: str) -> None:
    Path("README").write_text("mine")
    assert say("repair", "--restore", "README").status == 3
    assert say("repair", "--restore", "../README").status == 3


def test_caches_are_folded_anew(say: Say, run: str) -> None:
    change(
        "UPDATE run SET card=replace(card, 'waiting_gate', 'completed') WHERE id='dark-mode'",
        "UPDATE state SET body=replace(body, 'running', 'failed') WHERE run='dark-mode'",
    )
    assert say("repair").status == 0
    assert say("list", "--json").data["runs"][0]["status"] == "waiting_gate"
    assert say("verify").out.startswith("sound")


def test_a_damaged_event_is_left_for_a_backup(say: Say, run: str) -> None:
    change("UPDATE event SET body=replace(body, 'build', 'built') WHERE seq=2")
    done = say("repair")
    assert done.status == 1
    assert "event 2 of run dark-mode" in done.err
    assert "try: restore a backup" in done.err
