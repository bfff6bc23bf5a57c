"""Documents by their hash, and differences as records."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenuto
from tenuto.core.records.run import Run
from tenuto.encoding import digest
from tenuto.errors import NotFound
from tenuto.show.changes import (
    DiffView,
    artifact_page,
    attempt_diff,
    content,
    decisions_of,
    gate_files,
    git_diff,
    parsed,
    text_diff,
)
from tenuto.workspace.workspace import Workspace
from tests.support.journals import append, started

AT = "2026-11-15T10:00:00.000Z"


def stored(path: str, body: bytes, attempt: str | None = None) -> Any:
    return {
        "type": "ArtifactStored",
        "v": 2,
        "at": AT,
        "by": "test",
        "name": path,
        "path": path,
        "sha256": digest(body),
        "size": len(body),
        "step": "plan",
        "attempt": attempt,
    }


def opened(gate: str, path: str, body: bytes) -> Any:
    return {
        "type": "GateOpened",
        "v": 2,
        "at": AT,
        "by": "test",
        "gate": gate,
        "name": "go",
        "prompt": "?",
        "options": ["approve", "revise"],
        "shown": [{"path": path, "sha256": digest(body)}],
        "completes": False,
    }


def decided(gate: str) -> Any:
    return {
        "type": "GateDecided",
        "v": 2,
        "at": AT,
        "by": "test",
        "gate": gate,
        "name": "go",
        "step": "plan",
        "decision": "revise",
        "approved": False,
        "feedback": "shorter",
        "who": "ada",
        "proof": {"level": "guarded"},
    }


FIRST, SECOND = b"one\ntwo\n", b"one\nthree\n"


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """plan.md was shown, sent back, stored again, and is shown once more."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    workspace = tenuto.open(str(tmp_path))
    append(
        workspace.journal,
        "r",
        0,
        started("r"),
        stored("plan.md", FIRST, "plan-1"),
        opened("g1", "plan.md", FIRST),
        decided("g1"),
        stored("plan.md", SECOND, "plan-2"),
        opened("g2", "plan.md", SECOND),
    )
    with workspace.journal.write() as tx:
        tx.put_blob(digest(FIRST), FIRST)
        tx.put_blob(digest(SECOND), SECOND)
    (tmp_path / "plan.md").write_bytes(SECOND)
    return workspace


def of(workspace: Workspace) -> Run:
    return workspace.load("r")


def lines(view: DiffView | None) -> list[str]:
    assert view is not None
    return [line["mark"] + line["text"] for file in view["files"] for hunk in file["hunks"] for line in hunk["lines"]]


def test_an_artifact_has_its_versions_the_newest_first_and_each_can_be_compared(place: Workspace) -> None:
    page = artifact_page(place, of(place), "plan.md")
    assert [(one["by"], one["seq"]) for one in page["versions"]] == [("plan-2", 5), ("plan-1", 2)]
    assert page["document"]["text"] == SECOND.decode() and page["diff"] is None
    old = artifact_page(place, of(place), "plan.md", sha=digest(SECOND)[:10], against=digest(FIRST))
    assert lines(old["diff"]) == [" one", "-two", "+three"]
    for words in ({"sha": "f" * 64}, {"against": "nothing"}):
        with pytest.raises(NotFound):
            artifact_page(place, of(place), "plan.md", **words)
    with pytest.raises(NotFound):
        artifact_page(place, of(place), "other.md")


def test_a_gate_shows_the_bytes_of_the_hash_and_what_is_new_since_it_was_shown_last(place: Workspace) -> None:
    (file,) = gate_files(place, of(place))
    assert file["is_as_shown"] and file["document"]["text"] == SECOND.decode() and file["changed"] is None
    assert file["before"] == digest(FIRST) and lines(file["diff"]) == [" one", "-two", "+three"]


def test_a_file_that_was_changed_meanwhile_is_said_and_never_shown_in_the_place_of_the_hash(place: Workspace) -> None:
    Path(place.root, "plan.md").write_bytes(b"one\nfour\n")
    (file,) = gate_files(place, of(place))
    assert not file["is_as_shown"] and file["document"]["text"] == SECOND.decode()
    assert lines(file["changed"]) == [" one", "-three", "+four"]
    Path(place.root, "plan.md").unlink()
    (gone,) = gate_files(place, of(place))
    assert gone["now"] is None and not gone["is_as_shown"]


def test_the_file_on_the_disk_counts_only_where_it_has_the_hash(place: Workspace) -> None:
    other = b"never stored\n"
    Path(place.root, "note.md").write_bytes(other)
    assert content(place, digest(other), "note.md") == other
    Path(place.root, "note.md").write_bytes(b"another\n")
    assert content(place, digest(other), "note.md") is None and content(place, None, "note.md") is None


def test_an_attempt_changed_what_it_stored_against_what_was_there_before(place: Workspace) -> None:
    run = of(place)
    run["attempts"] = {name: {"receipt": {}} for name in ("plan-1", "plan-2", "idle")}  # type: ignore[typeddict-item]
    assert lines(attempt_diff(place, run, "plan-1")) == ["+one", "+two"]
    assert lines(attempt_diff(place, run, "plan-2")) == [" one", "-two", "+three"]
    assert attempt_diff(place, run, "idle")["source"] == "none"


def test_a_decision_is_kept_with_its_event_and_the_hashes_that_it_rests_on(place: Workspace) -> None:
    (one,) = decisions_of(place, "r")
    assert (one["seq"], one["who"], one["level"], one["feedback"]) == (4, "ada", "guarded", "shorter")
    assert one["shown"] == [{"path": "plan.md", "sha256": digest(FIRST)}]


# ---- differences


@given(st.lists(st.sampled_from(["a", "b", "- c", "+ d", "@@ -1 +1 @@", "--- x", "diff --git a/x b/x", ""])), st.data())
def test_a_difference_leads_from_the_one_text_to_the_other(before: list[str], data: Any) -> None:
    """Also where lines look like what git says around them."""
    after = data.draw(st.lists(st.sampled_from([*before, "new", "+++ y"]))) if before else ["new"]
    old, new = ["".join(f"{line}\n" for line in text).encode() for text in (before, after)]
    found = [line for file in text_diff("f", old, new)["files"] for hunk in file["hunks"] for line in hunk["lines"]]
    for line in found:
        if line["mark"] != "+":
            assert before[line["old"] - 1] == line["text"]
        if line["mark"] != "-":
            assert after[line["new"] - 1] == line["text"]
    assert len(before) + sum(line["mark"] == "+" for line in found) - sum(line["mark"] == "-" for line in found) == len(
        after
    )


def test_bytes_that_are_no_text_are_said_to_have_changed_and_not_shown() -> None:
    (file,) = text_diff("a.png", b"\0one", b"\0two")["files"]
    assert file["is_binary"] and file["hunks"] == []


@pytest.mark.needs("git")
def test_git_is_asked_without_the_programs_that_a_repository_names(tmp_path: Path) -> None:
    """New, gone, renamed and changed files; and neither an outer diff nor a text filter runs."""

    def git(*words: str) -> None:
        named = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.hooksPath=/dev/null")
        subprocess.run(["git", "-C", str(tmp_path), *named, *words], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "keep.txt").write_text("a\nb\n")
    (tmp_path / "gone.txt").write_text("gone\n")
    (tmp_path / "old name.txt").write_text("the same words\n" * 9)
    git("add", "-A")
    git("commit", "-qm", "one")
    (tmp_path / "keep.txt").write_text("a\nc\n")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "old name.txt").rename(tmp_path / "new name.txt")
    (tmp_path / "new.txt").write_text("--- new\n")
    (tmp_path / ".gitattributes").write_text("*.txt diff=evil\n")
    git("add", "-A")
    git("commit", "-qm", "two")
    git("config", "diff.evil.textconv", f"touch {tmp_path / 'ran'}; cat")
    git("config", "diff.external", f"touch {tmp_path / 'ran'}")
    view = git_diff(tenuto.open(str(tmp_path)), "HEAD^1", "HEAD", "one and two")
    files = {file["path"]: file for file in view["files"]}
    assert view["source"] == "git" and not (tmp_path / "ran").exists()
    assert set(files) == {".gitattributes", "keep.txt", "gone.txt", "new name.txt", "new.txt"}
    assert (files["gone.txt"]["after"], files["new.txt"]["before"]) == ("", "")
    assert files["new name.txt"]["before"] == "old name.txt" and files["new name.txt"]["hunks"] == []
    assert [line["text"] for line in files["new.txt"]["hunks"][0]["lines"]] == ["--- new"]
    unknown = git_diff(tenuto.open(str(tmp_path)), "--output=/elsewhere/x", "HEAD", "nothing")
    assert unknown["source"] == "none" and unknown["files"] == []
    assert parsed("") == []
