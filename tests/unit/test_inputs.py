"""What an agent is told within a budget: nothing above it, nothing lost without a word, JSON whole or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenuto.knowledge.inputs import Entry, Piece, fit, handed_in, split_diff

_TEXTS = st.text("ab\u00e4\n", max_size=400)
_ENTRIES = st.lists(
    st.tuples(st.lists(_TEXTS, min_size=1, max_size=5), st.booleans(), st.booleans()), min_size=1, max_size=4
).map(
    lambda found: [
        Entry(f"entry {number}", [Piece(f"piece {number}.{one}", text) for one, text in enumerate(texts)], cut, largest)
        for number, (texts, cut, largest) in enumerate(found)
    ]
)


@given(_ENTRIES, st.integers(1, 200))
def test_what_is_told_fits_the_budget_and_the_receipt_names_the_rest(entries: list[Entry], tokens: int) -> None:
    told = fit(entries, tokens)
    assert sum(len(text.encode()) + 1 for text in told.texts.values()) <= tokens * 4 + len(entries)
    for entry, line in zip(entries, told.receipt[1:], strict=True):
        text = told.texts.get(entry.name)
        whole = "\n".join(piece.text for piece in entry.pieces)
        assert line.startswith(f"{entry.name}: ")
        if text is None:
            assert "left out" in line
        elif text != whole:
            assert "; left out: " in line or "was cut" in line
        if text is not None and not entry.may_be_cut:
            kept = [piece.text for piece in entry.pieces if f"{piece.name} (" not in line]
            assert text == "\n".join(kept)


@given(_ENTRIES)
def test_with_room_for_all_nothing_is_left_out(entries: list[Entry]) -> None:
    told = fit(entries, 100_000)
    assert list(told.texts) == [entry.name for entry in entries]
    assert all(": whole, " in line for line in told.receipt[1:])


def test_pieces_of_later_entries_go_first_and_whole_entries_last() -> None:
    first = Entry("first", [Piece("a", "x" * 100), Piece("b", "x" * 100)])
    second = Entry("second", [Piece("c", "y" * 100), Piece("d", "y" * 100), Piece("e", "y" * 100)])
    assert fit([first, second], 105).receipt[1:] == ["first: whole, 51 tokens", "second: 2 of 3, 51 tokens; left out: e (25 tokens)"]  # noqa: E501  # fmt: skip
    assert list(fit([first, second], 60).texts) == ["first", "second"]
    assert "first: 1 of 2" in fit([first, second], 60).receipt[1]
    assert list(fit([first, second], 30).texts) == ["first"]


def test_the_last_fenced_block_of_a_reply() -> None:
    assert handed_in("```json\n{}\n```\nand\n~~~\n[1]\n~~~\nDONE: x") == (
        "[1]",
        "the last fenced block of the reply (line 5)",
    )
    assert handed_in("DONE: x") == ("", "the reply has no fenced block")
    assert handed_in("```\n\n```")[1] == "the last fenced block of the reply (line 1) is empty"
    assert handed_in('  - in a list:\n    ```json\n    {"a": 1}\n    ```\nDONE: x')[0] == '{"a": 1}'
    assert handed_in("")[0] == ""


def test_a_diff_is_taken_apart_by_files(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for name in ("a.txt", "b c.txt", "d.txt"):
        (tmp_path / name).write_text("diff --git is a line of this file\n")
    git("add", ".")
    git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "begin")
    (tmp_path / "a.txt").write_text("diff --git is a line of this file\nand more\n")
    (tmp_path / "b c.txt").unlink()
    (tmp_path / "d.txt").chmod(0o755)
    diff = git("diff", "HEAD")
    pieces = split_diff(diff)
    assert [piece.name for piece in pieces] == ["a.txt", "b c.txt", "d.txt"]
    assert "\n".join(piece.text for piece in pieces) == diff.rstrip("\n")
    assert split_diff("") == []
