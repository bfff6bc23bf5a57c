"""`tenuto` as a process: what a shell, a terminal and a pipe see of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.workspace.checkup import examine
from tests.support.terminal import start_at_terminal

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[..., subprocess.CompletedProcess[str]]
TENUTO = [sys.executable, "-m", "tenuto"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Runs `tenuto` in a repository that has one run."""
    (tmp_path / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "text": True,
        }
        return subprocess.run([*TENUTO, *words], check=False, **settings | how)

    assert run("context", "INIT task: Dark mode").returncode == 0
    return run


def test_data_and_talk_take_different_ways(program: Program) -> None:
    listed = program("list", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert json.loads(listed.stdout)["data"]["runs"][0]["id"] == "dark-mode"
    missing = program("status", "light-mode")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr == "not found [no-such-run]: there is no run 'light-mode'\n  try: tenuto list\n"
    assert program("--nonsense").returncode == 2


def test_a_hot_command_never_loads_click(program: Program) -> None:
    """A command that runs inside an agent's session starts before anything heavy is imported."""
    watched = [sys.executable, "-X", "importtime", "-m", "tenuto"]
    for words in (["context", "LIST"], ["context", "LIST", "--json"], ["-C", ".", "context", "LIST"]):
        hot = subprocess.run([*watched, *words], capture_output=True, text=True, check=True)
        assert "dark-mode" in hot.stdout
        for module in ("click", "rich", "json", "argparse", "subprocess"):
            assert f" {module}\n" not in hot.stderr, module
    cold = subprocess.run([*watched, "list"], capture_output=True, text=True, check=True)
    assert " click\n" in cold.stderr
    assert " rich\n" not in cold.stderr, "not even a cold command draws where there is no terminal"


def test_a_hot_command_may_be_reached_in_any_way(program: Program) -> None:
    """`--json` and `-C` before the command mean the same as for every other one."""
    plain = program("context", "LIST", "--json")
    assert plain.returncode == 0
    for words in (["--json", "context", "LIST"], ["-C", ".", "context", "LIST", "--json"]):
        assert program(*words).stdout == plain.stdout
    assert program("-C", "nowhere", "context", "LIST").returncode == 2


def test_verify_is_not_misled_by_writers_at_work(program: Program) -> None:
    """While another process writes, the files are never found to be other than the journal says."""
    write = (
        "import tenuto; w = tenuto.open('.')\n"
        "for n in range(150):\n"
        "    with w.turn() as turn: turn.do('dark-mode', {'do': 'SetFlags', 'flags': {'n': n}})\n"
        "    with w.turn() as turn: turn.do('dark-mode', {'do': 'StartStep', 'step': f's{n}'})"
    )
    looked = 0
    with subprocess.Popen([sys.executable, "-c", write]) as writer:
        opened = tenuto.open(".")
        while writer.poll() is None or not looked:
            assert [found for found in examine(opened)["findings"] if found["severity"] != "behind"] == []
            looked += 1
        opened.journal.close()
    assert writer.returncode == 0


def test_a_process_that_ends_leaves_the_log_to_whoever_holds_the_lock(program: Program) -> None:
    """Closing the last connection would checkpoint outside the lock."""
    log = Path(".git/tenuto/journal.db-wal")
    before = log.stat().st_size
    assert before > 0
    for words in (["list"], ["status"], ["verify"], ["context", "LIST"]):
        assert program(*words).returncode == 0
        assert log.stat().st_size == before, words


def test_a_full_disk_under_standard_output_is_not_success(program: Program) -> None:
    with open("/dev/full", "w") as full:
        done = program("list", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "no space left" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [["list"], ["list", "--json"], ["status", "nobody", "--json"], ["run", "--help"], ["context", "LIST", "--json"]],
)
def test_an_answer_that_nobody_can_read_is_told_by_name(
    program: Program, monkeypatch: pytest.MonkeyPatch, words: list[str], unbuffered: str
) -> None:
    """Also the answer that tells of the failure, as JSON on the same standard output."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        done = program(*words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode in (1, 3) and "Traceback" not in done.stderr
    assert re.match(r"[a-z ]+ \[[a-z-]+\]: ", done.stderr)


def test_an_answer_that_was_lost_is_no_update_that_was_lost(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is told "not written, repeat it" would begin a second run."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "")
    with open("/dev/full", "w") as full:
        done = program("context", "INIT task: Light mode", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "[answer-lost]" in done.stderr and "what the command did is done" in done.stderr
    assert "light-mode" in program("list").stdout


def test_a_journal_that_could_not_be_made_is_told_as_the_disk_that_failed(tmp_path: Path) -> None:
    """SQLite had taken the transaction back by itself, and that there was none to take back hid why. Repeated with
    room, it is made."""
    spoken = " ".join(
        f"'{word}'" for word in [*TENUTO, "-C", str(tmp_path), "context", "INIT task: Light mode", "--json"]
    )
    told = subprocess.run(["sh", "-c", f"ulimit -f 64; exec {spoken}"], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert json.loads(told.stdout)["error"]["code"] in ("disk-error", "disk-full")
    assert subprocess.run(["sh", "-c", spoken], capture_output=True, check=False).returncode == 0


def test_a_reader_that_has_seen_enough_hears_no_complaint(program: Program) -> None:
    """`tenuto show | head -1`, when head is gone before the first line."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = program("show", capture_output=False, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_answer_and_no_file(program: Program, closed: str) -> None:
    """Daemons start programs like this. The number of a closed stream would go to the next file that is opened, which
    could be the lock or a log, and what is said would be written into it."""
    for words, status in (
        ("list", 0),
        ("status nobody", 3),
        ("context LIST", 0),
        ("context NONSENSE", 1),
        ("--nope", 2),
    ):
        spoken = " ".join([*(f"'{part}'" for part in TENUTO), words, closed])
        told = subprocess.run(["sh", "-c", spoken], capture_output=True, text=True, check=False)
        assert told.returncode == status, words
        assert "Traceback" not in told.stderr and "unexpected" not in told.stderr, told.stderr
    # The lock holds at most the mark of who writes (stores/sqlite.py); nothing that was said is in it.
    assert Path(".git/tenuto/lock").read_bytes() in (b"", b"0", b"1") and Path(".git/tenuto/queue").read_bytes() == b""
    assert program("verify").returncode == 0


def test_at_a_terminal_a_secret_is_asked_for_unseen_and_can_be_interrupted(program: Program) -> None:
    """Ctrl-C ends with 130 and one line; what is typed is not echoed."""
    for typed, status in ((b"Dark mode\n", 0), (b"\x03", 130)):
        started, terminal = start_at_terminal([*TENUTO, "forget"])
        shown = b""
        while b"(not shown): " not in shown:
            shown += os.read(terminal, 1024)
        os.write(terminal, typed)
        try:
            while chunk := os.read(terminal, 1024):
                shown += chunk
        except OSError:
            pass
        os.close(terminal)
        assert started.wait() == status, shown
        assert b"Traceback" not in shown
        assert b"Dark mode\r\n" not in shown
    assert b"interrupted" in shown


def test_an_unexpected_error_is_one_line_with_a_hint(program: Program) -> None:
    Path(".git/tenuto/shelf").rename("elsewhere")
    Path(".git/tenuto/journal.db-wal").unlink()
    Path(".git/tenuto/journal.db").write_bytes(b"gone" * 2000)
    done = program("list")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "  try: " in done.stderr


@pytest.mark.needs("git")
def test_the_demo_keeps_its_promises() -> None:
    """`make demo` fails where one of them does not hold; here it must not."""
    done = subprocess.run(
        [sys.executable, "-m", "tenuto.demo", "--remove"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing finished ran twice" in done.stdout and "NOT KEPT" not in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines() if "alias tenuto=" not in line)
