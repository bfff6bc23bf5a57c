"""`tenuto context` as a program: arguments, standard input, files, JSON, exit status, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TASKS = "docs/orchestrator/context/tasks"
BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tenuto.entrypoints.launch import main; main()"


class Said:
    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "repository" / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    return tmp_path / "repository"


def tenuto(place: Path, *words: str, text: str | bytes = b"", **more: Any) -> Said:
    command = [sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), "context", *words]
    given = text.encode() if isinstance(text, str) else text
    return Said(subprocess.run(command, check=False, cwd=place, input=given, capture_output=True, **more))


def test_a_command_in_one_argument_or_in_many(place: Path) -> None:
    assert tenuto(place, "INIT task: Dark mode").out.startswith("STATUS: success\nTASK: dark-mode\n")
    assert tenuto(place, "INIT", "task:", "Light", "mode", "mode:", "poc").out.startswith(
        "STATUS: success\nTASK: light-mode\n"
    )
    assert tenuto(place, "START_PHASE phase: a", "START_PHASE phase: b").out.count("PHASE_STARTED") == 2


def test_an_error_exits_with_1_and_says_the_seeds_text(place: Path) -> None:
    said = tenuto(place, "START_PHASE phase: x")
    assert (said.status, said.out) == (1, "STATUS: error\nERROR: No current task. Use INIT first.\n")


def test_commands_on_standard_input_stop_at_the_first_error(place: Path) -> None:
    said = tenuto(
        place, "-", text="# a comment\n\nINIT task: a\r\nSTART_PHASE phase: x\nSTART_PHASE phase: x\nINIT task: b\n"
    )
    assert said.status == 1
    assert said.out.count("STATUS: success") == 2
    assert said.out.endswith("STATUS: error\nERROR: Phase x already running\n")
    assert not (place / TASKS / "b").exists()


def test_a_command_on_standard_input_may_stand_on_several_lines(place: Path) -> None:
    """Where its line leaves it unfinished: up to an empty line, the next command, or the end."""
    text = (
        "INIT\ntask: a\nmode: poc\n\nPAUSE\nreason: two\nlines\nrecommendations:\n- first\n- second\n"
        "RESUME\ndecision: retry\nSTORE\nphase: spec\ncontent: # Spec\nLIST\n"
    )
    said = tenuto(place, "-", text=text)
    assert (said.status, said.out.count("STATUS: success")) == (0, 4), said.out
    assert "REASON: two lines\nRECOMMENDATIONS: first, second\n" in said.out
    assert (place / TASKS / "a/spec.md").read_text() == "# Spec\nLIST\n"
    said = tenuto(place, "-", text="START_PHASE\nfoo bar\nLIST\n")
    assert (
        said.out == "STATUS: error\nERROR: Missing required parameter: phase. Usage: START_PHASE phase: <phase-name>\n"
    )


def test_a_word_that_is_also_a_command_is_a_value_unless_it_stands_in_capitals(place: Path) -> None:
    tenuto(place, "INIT task: a")
    assert tenuto(place, "METRICS", "summary").out.startswith("METRICS: a\nTotal Duration:")
    assert "STATUS" not in tenuto(place, "METRICS", "summary").out
    assert tenuto(place, "LIST", "SUMMARY").out.startswith("TASKS:\n- a |")
    assert "Status: running" in tenuto(place, "LIST", "SUMMARY").out


def test_prose_that_names_another_task_leaves_that_task_alone(place: Path) -> None:
    tenuto(place, "INIT task: other-feature", "INIT task: mine")
    said = tenuto(place, "PAUSE reason: Blocked by task: other-feature recommendations: wait")
    assert "TASK: mine\nACTION: paused\nREASON: Blocked by task: other-feature\n" in said.out
    assert "status: running" in next(line for line in tenuto(place, "LIST").out.splitlines() if "other-feature" in line)
    said = tenuto(place, "PAUSE reason: Blocked by task: other-feature")
    assert "TASK: mine\n" in said.out
    assert "'task: other-feature' is part of the text before it; where you mean task, write it before" in said.err


OPTIONS = {
    ("--jsn", "LIST"): "Unknown option: --jsn. Did you mean --json?",
    ("LIST", "--jsn"): "Unknown option: --jsn.",
    ("STORE phase: spec", "--contentfile", "x"): "Unknown option: --contentfile.",
    ("STORE phase: spec", "--content-file"): "--content-file needs a file",
    ("INIT task: x", "--mode=poc"): "Unknown option: --mode=poc.",
    ("INIT", "--task", "foo"): "Unknown option: --task. Did you mean task:?",
    ("INIT", "name:", "foo"): "Unknown parameter: name.",
}


@pytest.mark.parametrize("words", OPTIONS)
def test_a_mistyped_option_is_never_data(place: Path, words: tuple[str, ...]) -> None:
    said = tenuto(place, *words)
    assert said.status == 1
    assert said.out.startswith(f"STATUS: error\nERROR: {OPTIONS[words]}"), said.out
    assert not (place / TASKS).exists()


def test_an_empty_file_replaces_nothing(place: Path) -> None:
    tenuto(place, "INIT task: a", "STORE phase: spec content: kept")
    (place / "empty.md").write_bytes(b"")
    for words in (["--content-file", "empty.md"], ["--content-file", "-"]):
        said = tenuto(place, "STORE phase: spec", *words)
        assert (said.status, "Content is empty" in said.out) == (1, True)
    assert (place / TASKS / "a/spec.md").read_text() == "kept"


def test_content_on_standard_input_runs_to_the_end_or_to_its_word(place: Path) -> None:
    text = (
        "INIT task: a\nSTORE phase: architect content: <<EOF\n# Design\n\nLIST\nEOF\nSTORE phase: spec content: "
        "first\nLIST\nlast"
    )
    assert tenuto(place, "-", text=text).status == 0
    assert (place / TASKS / "a/architect.md").read_text() == "# Design\n\nLIST\n"
    assert (place / TASKS / "a/spec.md").read_text() == "first\nLIST\nlast"
    said = tenuto(place, "-", text="STORE phase: spec content: <<EOF\nnever closed\n")
    assert (said.status, said.out) == (1, "STATUS: error\nERROR: content: <<EOF is not closed: there is no line EOF\n")
    assert (place / TASKS / "a/spec.md").read_text() == "first\nLIST\nlast"


def test_a_content_file_and_bytes_that_are_no_text(place: Path) -> None:
    tenuto(place, "INIT task: a")
    (place / "input.bin").write_bytes(b"\xff\x00bytes")
    assert tenuto(place, "STORE phase: spec", "--content-file", "input.bin").status == 0
    assert (place / TASKS / "a/spec.md").read_bytes() == b"\xff\x00bytes"
    assert tenuto(place, "--content-file=-", "STORE phase: tests", text=b"\xfepiped").status == 0
    assert (place / TASKS / "a/tests/task-001.md").read_bytes() == b"\xfepiped"
    assert tenuto(place, "-", text=b"STORE phase: test-results content: \xfdraw\n").status == 0
    assert (place / TASKS / "a/test-results.md").read_bytes() == b"\xfdraw\n"
    said = tenuto(place, "STORE phase: spec content: both", "--content-file", "input.bin")
    assert (said.status, said.out) == (1, "STATUS: error\nERROR: Content given twice: in the command and as a file\n")


def test_json(place: Path) -> None:
    told = json.loads(tenuto(place, "--json", "INIT task: a").out)
    assert (told["schema_version"], told["ok"], told["data"]["task"]) == (1, True, "a")
    told = json.loads(tenuto(place, "LIST", "--json").out)
    assert told["data"]["tasks"][0]["status"] == "running"
    said = tenuto(place, "--json", "RESUME decision: approve")
    assert said.status == 1
    assert json.loads(said.out)["error"]["message"] == "Task is not paused or waiting for gate"
    raw = json.loads(tenuto(place, "METRICS format: json").out)
    assert raw["task"] == "a"
    assert json.loads(tenuto(place, "METRICS", "--json").out)["data"] == raw


def test_warnings_go_to_standard_error(place: Path) -> None:
    (place / TASKS / "bad").mkdir(parents=True)
    (place / TASKS / "bad/manifest.json").write_text("{broken")
    said = tenuto(place, "LIST")
    assert (said.status, said.out) == (0, "TASKS:\n")
    assert f"{TASKS}/bad/manifest.json cannot be parsed" in said.err


def test_stored_text_cannot_command_the_terminal(place: Path) -> None:
    tenuto(place, "INIT task: a")
    tenuto(place, "PAUSE reason: red \x1b[31mtext\x07")
    for command in ("SUMMARY", "HISTORY", "RETRIEVE for_phase: resume"):
        assert "\x1b" not in tenuto(place, command).out


def test_help_and_no_words(place: Path) -> None:
    assert "SET_GATE gate: <design|final>" in tenuto(place, "--help").out
    assert tenuto(place).status == 2
    assert not list(place.glob("docs"))


# ---- size ------------------------------------------------------------------------------------------

MEGABYTE = 1 << 20
BIG = 100
# What counts is that it is more than the limit.
SIZES = {"content-file": BIG, "standard input": 70, "closing word": 70}


# 64 MB for everything a process keeps beside its code.
LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({64 * MEGABYTE},) * 2); {BOOT}"


# A process counts the memory of whoever forked it as its own; so a small one stands in between.
MEASURE = """
import os, sys
child = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, usage = os.wait4(child, 0)
sys.stderr.write(f"\\n{usage.ru_maxrss // 1024}")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak(place: Path, *words: str, stdin: int = subprocess.DEVNULL) -> tuple[int, int]:
    """(exit status, highest resident size in MB)"""
    inner = ["-I", "-S", "-c", LIMITED, str(ROOT), "context", *words]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", MEASURE, *inner], check=False, cwd=place, stdin=stdin, capture_output=True
    )
    return done.returncode, int(done.stderr.splitlines()[-1])


def big_file(path: Path, size: int, first: bytes = b"") -> None:
    line = b"a line of a very large artifact, one of a great many that all look the same\n"
    with path.open("wb") as file:
        file.write(first)
        for _ in range(size):
            file.write((line * (MEGABYTE // len(line) + 1))[:MEGABYTE])


@pytest.mark.parametrize("way", SIZES)
def test_a_hundred_megabytes_never_need_more_than_64(place: Path, tmp_path: Path, way: str) -> None:
    tenuto(place, "INIT task: a")
    source = tmp_path / "source"
    if way == "content-file":
        big_file(source, SIZES[way])
        status, used = peak(place, "STORE phase: spec", "--content-file", str(source))
    else:
        big_file(source, SIZES[way], b"STORE phase: spec content: " + (b"<<END\n" if way == "closing word" else b""))
        if way == "closing word":
            with source.open("ab") as file:
                file.write(b"\nEND\n")
        with source.open("rb") as stream:
            status, used = peak(place, "-", stdin=stream.fileno())
    assert status == 0
    assert used < 64, used
    stored = place / TASKS / "a/spec.md"
    assert stored.stat().st_size >= SIZES[way] * MEGABYTE
    if way == "content-file":
        for command in (
            "RETRIEVE for_phase: implementation",
            "QUERY question: great",
            "SUMMARY",
            "STORE phase: spec content: small",
        ):
            status, used = peak(place, command)
            assert (status, used < 64) == (0, True), (command, used)
