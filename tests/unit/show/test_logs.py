"""Parts of logs: from the end, cut at lines, never more than was asked for; and the files that an attempt left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenuto
from tenuto.errors import BadInput, NotFound
from tenuto.show.attempts import attempt_page, find_in_log, log_after, log_files, log_part
from tests.unit.test_metrics import attempt, run_of


@given(st.lists(st.text("ab\u00e4", max_size=9), max_size=30), st.integers(10, 60))
def test_the_parts_of_a_log_from_its_end_are_the_log(tmp_path_factory: Any, lines: list[str], size: int) -> None:
    body = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path_factory.mktemp("log") / "stdout"
    path.write_bytes(body)
    parts, before = [], None
    while before != 0:
        part = log_part(str(path), before, max(size, 30))
        assert part["is_whole_line"] and part["size"] == len(body)
        assert before in (None, part["last"]) and "\ufffd" not in part["text"], "no character is cut in two"
        parts.append(part["text"])
        before = part["first"]
    assert "".join(reversed(parts)).encode() == body


def test_a_line_longer_than_a_part_is_given_in_pieces_and_said_to_be_one(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_text("short\n" + "x" * 100)
    part = log_part(str(log), size=10)
    assert part["text"] == "x" * 10 and not part["is_whole_line"] and part["first"] == 96


def test_of_a_log_of_any_length_only_a_part_is_read(tmp_path: Path) -> None:
    """A file of a terabyte, nearly all of it a hole: whoever read it would not come back."""
    log = tmp_path / "stdout"
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 40)
        file.write(b"\nthe end\n")
    assert log_part(str(log), size=64)["text"] == "the end\n"
    assert log_after(str(log), (1 << 40) + 1)["text"] == "the end\n"


def test_what_came_later_is_read_from_there_and_a_log_that_was_begun_anew_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_text("one\ntw")
    first = log_after(str(log), 0)
    assert (first["text"], first["last"]) == ("one\n", 4)
    assert log_after(str(log), 4)["text"] == "" and log_after(str(log), 4, unfinished=True)["text"] == "tw"
    log.write_text("x\n")
    assert log_after(str(log), 4)["text"] == "x\n"


def test_a_search_finds_lines_whatever_their_case_and_goes_on_behind_the_last(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_text("Error one\nfine\n" + "pad\n" * 400_000 + "an ERROR two\nerror three")
    found = find_in_log(str(log), "error", most=2)
    assert [hit["line"] for hit in found["hits"]] == ["Error one", "an ERROR two"] and found["more"]
    rest = find_in_log(str(log), "error", after=found["hits"][-1]["at"] + 5)
    assert [hit["line"] for hit in rest["hits"]] == ["ROR two", "error three"][1:] and not rest["more"]
    at = found["hits"][1]["at"]
    assert log.read_bytes()[at : at + 8] == b"an ERROR"
    with pytest.raises(BadInput):
        find_in_log(str(log), "")
    with pytest.raises(NotFound):
        log_part(str(tmp_path / "nothing"))


def test_checks_are_found_where_the_engine_puts_them_beside_the_starts(tmp_path: Path) -> None:
    """`tenuto logs R A --of checks` looked into the starts, and said that nothing is kept."""
    (tmp_path / ".git").mkdir()
    workspace = tenuto.open(str(tmp_path))
    folder = Path(workspace.state) / "attempts" / "r" / "b-1"
    for name, text in (
        ("1/stdout", "DONE: ok\n"),
        ("2/stdout", "events\n"),
        ("2/reply", "DONE: again\n"),
        ("2/prompt", "do it\n"),
        ("checks/check-1-tests-1/stdout", "1 failed\n"),
        ("checks/check-1-tests-1/stderr", ""),
        ("checks/setup-1-1/stderr", "warning\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run = run_of()
    run["id"], run["attempts"] = "r", {"b-1": attempt("b", "b", 0, 4)}

    def texts(kind: Any) -> list[tuple[str, str]]:
        return [(one["name"], Path(one["path"]).read_text()) for one in log_files(workspace, run, "b-1", kind)]

    assert texts("checks") == [("check-1-tests-1", "1 failed\n"), ("setup-1-1, errors", "warning\n")]
    assert texts("reply") == [("stdout", "DONE: ok\n"), ("reply", "DONE: again\n")]
    assert texts("output") == [("stdout", "DONE: ok\n"), ("stdout", "events\n")] and texts("prompt")[0][1] == "do it\n"
    run["attempts"]["b-1"] |= {"said": None, "found": None}
    page = attempt_page(workspace, run, "b-1")
    assert (page["starts"], page["took_ms"], len(page["logs"])) == (2, 4000, 7)
    with pytest.raises(NotFound):
        attempt_page(workspace, run, "b-2")
