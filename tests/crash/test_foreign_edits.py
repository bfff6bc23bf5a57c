"""What others do to our files: absorbed, or named and refused and left as it is. Never lost, never silently used."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads, pretty
from tenuto.errors import BadInput, Refused
from tests.crash.plain_dialect import PLAIN

START: Any = {
    "do": "StartRun",
    "run": "a",
    "name": "a",
    "pipeline": {"name": "p", "hash": None},
    "dialects": {"plain": {}},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    made = tenuto.open(str(tmp_path))
    made.views = {"plain": PLAIN}
    with made.turn() as turn:
        turn.do("a", START)
    return made


def flag(workspace: Any, name: str) -> None:
    with workspace.turn() as turn:
        turn.do("a", {"do": "SetFlags", "flags": {name: True}})


def shown(workspace: Any) -> Any:
    return loads(Path(workspace.root, "docs/a.json").read_bytes())


def kinds(workspace: Any) -> list[str]:
    with workspace.journal.read() as reader:
        return [event["type"] for event in reader.events("a")]


def test_a_hand_edit_that_is_allowed_is_absorbed_as_an_event(workspace: Any) -> None:
    path = Path(workspace.root, "docs/a.json")
    path.write_text(pretty({**shown(workspace), "flags": {"by_hand": True}, "unknown": [1]}))
    flag(workspace, "ours")
    assert shown(workspace)["flags"] == {"by_hand": True, "ours": True}
    assert shown(workspace)["unknown"] == [1]
    assert "ForeignEditAbsorbed" in kinds(workspace)


def test_an_edit_of_an_older_version_is_merged_with_what_came_since(workspace: Any) -> None:
    """Somebody read the file, we changed it, then they wrote: both changes stand."""
    theirs = shown(workspace)
    flag(workspace, "ours")
    Path(workspace.root, "docs/a.json").write_text(pretty({**theirs, "flags": {"theirs": True}}))
    flag(workspace, "later")
    assert shown(workspace)["flags"] == {"ours": True, "theirs": True, "later": True}


@pytest.mark.parametrize(
    "text", ["{broken", "[]", '{"status": "completed", "steps": [], "flags": {}}', '{"a": 1, "a": 2}', "{" * 100_000]
)
def test_an_edit_that_is_not_allowed_is_named_refused_and_left(workspace: Any, text: str) -> None:
    path = Path(workspace.root, "docs/a.json")
    path.write_text(text)
    before = kinds(workspace)
    with pytest.raises(Refused) as refusal:
        flag(workspace, "ours")
    assert refusal.value.code == "foreign-edit"
    assert "docs/a.json" in refusal.value.message
    assert path.read_text() == text
    assert kinds(workspace) == before


@pytest.mark.parametrize("damage", [b"", b"\0" * 64, b" \n"])
def test_an_empty_or_nul_filled_file_is_named_and_written_anew(workspace: Any, damage: bytes) -> None:
    path = Path(workspace.root, "docs/a.json")
    path.write_bytes(damage)
    flag(workspace, "ours")
    assert shown(workspace)["flags"] == {"ours": True}
    assert any("docs/a.json" in warning for warning in workspace.warnings)


def test_a_file_that_is_gone_comes_back(workspace: Any) -> None:
    Path(workspace.root, "docs/a.json").unlink()
    with workspace.turn() as turn:
        turn.run("a")
    assert shown(workspace)["status"] == "running"


def test_a_file_of_somebody_else_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.json").write_text("mine")
    workspace = tenuto.open(str(tmp_path))
    workspace.views = {"plain": PLAIN}
    with pytest.raises(Refused) as refusal, workspace.turn() as turn:
        turn.do("a", START)
    assert refusal.value.code == "foreign-file"
    assert (tmp_path / "docs" / "a.json").read_text() == "mine"
    with workspace.journal.read() as reader:
        assert reader.load("a") is None


@pytest.mark.parametrize("where", ["docs", "docs/a.json"])
def test_a_link_never_leads_a_write_outside(tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.json").write_text("theirs")
    root = tmp_path / "root"
    root.mkdir()
    if where == "docs":
        (root / "docs").symlink_to(outside)
    else:
        (root / "docs").mkdir()
        (root / "docs" / "a.json").symlink_to(outside / "a.json")
    workspace = tenuto.open(str(root))
    workspace.views = {"plain": PLAIN}
    with pytest.raises(Refused), workspace.turn() as turn:
        turn.do("a", START)
    assert sorted(os.listdir(outside)) == ["a.json"]
    assert (outside / "a.json").read_text() == "theirs"


def test_what_others_append_to_the_history_stays_and_ours_follows(workspace: Any) -> None:
    history = Path(workspace.root, "docs/history.md")
    with history.open("a") as file:
        file.write("a line by hand\n")
    before = history.read_bytes()
    flag(workspace, "ours")
    assert history.read_bytes().startswith(before) and history.read_bytes() != before


def test_a_history_that_was_rewritten_is_named_and_kept(workspace: Any) -> None:
    history = Path(workspace.root, "docs/history.md")
    history.write_text("all new\n")
    flag(workspace, "ours")
    assert history.read_text().startswith("all new\n") and "FlagSet" in history.read_text()
    assert any("docs/history.md" in warning for warning in workspace.warnings)


def test_a_history_cut_short_is_completed(workspace: Any) -> None:
    history = Path(workspace.root, "docs/history.md")
    flag(workspace, "one")
    whole = history.read_bytes()
    history.write_bytes(whole[:-7])
    flag(workspace, "two")
    assert history.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"\0" * len(text),
        lambda text: text[:-20] + b"\0" * 20,
        lambda text: text[:-40] + b"\0" * 20,
        lambda text: text + b"\0" * 4096,
        lambda text: b"\0" * 8 + text[8:],
        lambda text: text[:8] + b"\0" * 8 + text[16:],
        lambda text: b"\0" * 8 + text[8:] + b"\0" * 100,
    ],
    ids=[
        "all of it",
        "its end",
        "its end, and too short",
        "blanks behind it",
        "its beginning",
        "its middle",
        "both ends",
    ],
)
def test_a_history_that_a_crash_of_the_machine_blanked_is_kept_and_written_anew(workspace: Any, damage: Any) -> None:
    """The size of a file may survive a loss of power, and what was written last need not: then NULs stand there."""
    flag(workspace, "one")
    path = Path(workspace.root, "docs/history.md")
    before = path.read_bytes()
    path.write_bytes(damage(before))
    flag(workspace, "two")
    after = path.read_bytes()
    assert after.startswith(before) and after.count(b"FlagSet") == 2 and b"\0" not in after
    (said,) = workspace.warnings
    kept = Path(said.rpartition(" ")[2])
    assert "docs/history.md was damaged" in said and kept.read_bytes() == damage(before)


@pytest.mark.parametrize("gone", ["history.md", "."])
def test_a_history_that_is_gone_comes_back_with_the_next_look(workspace: Any, gone: str) -> None:
    """Its name, or that of its folder, was not on the disk yet when the power went out. Nothing new needs to happen
    first."""
    path = Path(workspace.root, "docs/history.md")
    before = path.read_bytes()
    shutil.rmtree(path.parent) if gone == "." else path.unlink()
    with workspace.turn() as turn:
        turn.run("a")
    assert path.read_bytes() == before


def test_what_others_wrote_before_the_damage_stays(workspace: Any) -> None:
    path = Path(workspace.root, "docs/history.md")
    path.write_bytes(path.read_bytes() + b"- by hand\n" + b"\0" * 100)
    flag(workspace, "later")
    lines = path.read_text().splitlines()
    assert lines[1] == "- by hand" and lines[2].endswith("FlagSet") and len(lines) == 3


def test_a_history_of_the_same_length_and_other_words_is_seen(workspace: Any) -> None:
    path = Path(workspace.root, "docs/history.md")
    path.write_bytes(b"x" * path.stat().st_size)
    flag(workspace, "later")
    assert path.read_text().startswith("xxx") and path.read_text().endswith("FlagSet\n")
    assert workspace.warnings == ["docs/history.md was rewritten by another program; their text stays, ours follows it"]


@pytest.mark.parametrize("flags", [{"cut \ud83d": True}, {"a": "\ud83d"}])
def test_half_a_character_goes_through_json_and_is_refused_in_text(workspace: Any, flags: Any) -> None:
    """In a state file it is spelled as it came; no text file can hold it, and that is an answer, not a crash."""
    with workspace.turn() as turn:
        turn.do("a", {"do": "SetFlags", "flags": flags})
    assert shown(workspace)["flags"] == flags
    before = kinds(workspace)
    with pytest.raises(BadInput, match=r"half a character \(U\+D83D\)") as refusal, workspace.turn() as turn:
        turn.do("a", {"do": "SetFlags", "flags": {"b": True}})
        turn.log("docs/history.md", "cut \ud83d".encode())
    assert refusal.value.code == "half-character"
    assert kinds(workspace) == before
    flag(workspace, "and on")


def test_an_edited_artifact_becomes_the_artifact_before_it_is_replaced(workspace: Any) -> None:
    with workspace.turn() as turn:
        turn.store("a", "notes", "docs/notes.md", b"one\n")
    Path(workspace.root, "docs/notes.md").write_text("by hand\n")
    with workspace.turn() as turn:
        turn.store("a", "notes", "docs/notes.md", b"two\n")
    assert Path(workspace.root, "docs/notes.md").read_text() == "two\n"
    with workspace.journal.read() as reader:
        stored = [(event["sha256"], event["by"]) for event in reader.events("a") if event["type"] == "ArtifactStored"]
    assert [by for _, by in stored] == ["user", "external", "user"]


@pytest.mark.parametrize("damage", [b"\0" * 9, b"# P\0\0\0\0\0\0", b"\0\0\0\0lan v1"])
def test_an_artifact_that_a_crash_blanked_is_nobodys_edit(workspace: Any, damage: bytes) -> None:
    """It is kept aside and said; ours is shown again, or the new version."""
    path = Path(workspace.root, "docs/plan.md")
    with workspace.turn() as turn:
        turn.store("a", "plan", "docs/plan.md", b"# Plan v1")
    for text in (None, b"# Plan v2"):
        path.write_bytes(damage)
        with workspace.turn() as turn:
            turn.look("a", "docs/plan.md")
            if text:
                turn.store("a", "plan", "docs/plan.md", text)
        assert path.read_bytes() == (text or b"# Plan v1")
    assert kinds(workspace).count("ArtifactStored") == 2
    assert any("docs/plan.md was damaged" in warning for warning in workspace.warnings)
    assert [kept.read_bytes() for kept in Path(workspace.state, "quarantine").iterdir()] == [damage]


def test_what_was_kept_only_by_half_is_kept_again(workspace: Any) -> None:
    """Somebody was killed while it was being kept: what counts as kept there is all of it."""
    path, damage = Path(workspace.root, "docs/plan.md"), b"# P\0\0\0\0\0\0"
    with workspace.turn() as turn:
        turn.store("a", "plan", "docs/plan.md", b"# Plan v1")
    for half in (None, damage[:4]):
        path.write_bytes(damage)
        kept = list(Path(workspace.state).glob("quarantine/*"))
        if half:
            kept[0].write_bytes(half)
        with workspace.turn() as turn:
            turn.look("a", "docs/plan.md")
        assert [one.read_bytes() for one in Path(workspace.state, "quarantine").iterdir()] == [damage]


def test_a_late_write_into_the_displaced_file_is_absorbed(workspace: Any) -> None:
    """A program that had the old file open writes to it in place after we replaced it."""
    path = Path(workspace.root, "docs/a.json")
    theirs = {**shown(workspace), "flags": {"late": True}}
    with path.open("r+") as held:
        flag(workspace, "ours")
        held.seek(0)
        held.truncate()
        held.write(pretty(theirs))
    flag(workspace, "more")
    assert shown(workspace)["flags"] == {"ours": True, "late": True, "more": True}
