"""Other programs rewrite our files while we do: nobody loses a write.

The other programs know nothing of us: they read the file, change it, and rename a new one over it or write into it.
They count (`counter += 1`) and append, so a version that they are shown without their own last write is noticed.

FOREIGN_WRITES=20000 makes each race that long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import loads, pretty
from tenuto.errors import Refused
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace.workspace import Workspace
from tests.crash.plain_dialect import PLAIN

WRITES = int(os.environ.get("FOREIGN_WRITES", "200"))
ROOT = Path(__file__).resolve().parent.parent.parent

RACER = """
import json, os, sys, time
path, writes, pause, how = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
print("ready", flush=True)
for number in range(writes):
    with open(path) as file:
        state = json.load(file)
    state["counter"] = state.get("counter", 0) + 1
    state["seen"] = state.get("seen", []) + [number]
    state["toggle"] = number % 2 == 0
    time.sleep(pause)
    text = json.dumps(state, indent=2)
    if how == "rename":
        with open(path + ".tmp", "w") as file:
            file.write(text)
        os.rename(path + ".tmp", path)
    else:
        with open(path, "w") as file:
            file.write(text)
"""

OURS = """
import sys
sys.path.insert(0, sys.argv[1])
import tenuto
from tests.crash.plain_dialect import PLAIN
workspace = tenuto.open(sys.argv[2])
workspace.views = {"plain": PLAIN}
number = int(sys.argv[3])
while True:
    with workspace.turn() as turn:
        turn.do("a", {"do": "SetFlags", "flags": {f"f{number}": number}})
    print(number, flush=True)
    number += 1
"""


def start(workspace: Any) -> Any:
    workspace.views = {"plain": PLAIN}
    with workspace.turn() as turn:
        turn.do(
            "a",
            {
                "do": "StartRun",
                "run": "a",
                "name": "a",
                "pipeline": {"name": "p", "hash": None},
                "dialects": {"plain": {}},
            },
        )
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    return start(tenuto.open(str(tmp_path)))


def flag(workspace: Any, name: str, value: Any = True) -> None:
    with workspace.turn() as turn:
        turn.do("a", {"do": "SetFlags", "flags": {name: value}})


def file_of(workspace: Any) -> Path:
    return Path(workspace.root, "docs/a.json")


def shown(workspace: Any) -> Any:
    return loads(file_of(workspace).read_bytes())


def other_program(workspace: Any, how: str, pause: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", RACER, str(file_of(workspace)), str(WRITES), str(pause), how]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None and started.stdout.readline() == "ready\n"
    return started


def race(workspace: Any, how: str, pause: float) -> int:
    """How many commands of ours ran while the other program wrote."""
    with other_program(workspace, how, pause) as other:
        ours = 0
        while other.poll() is None:
            flag(workspace, f"f{ours}", ours)
            ours += 1
        assert other.returncode == 0
    flag(workspace, "last")
    return ours


@pytest.mark.parametrize(("how", "pause"), [("rename", 0), ("rename", 0.003), ("in place", 0), ("in place", 0.003)])
def test_a_program_that_reads_changes_and_writes_loses_nothing_and_we_lose_nothing(
    workspace: Any, how: str, pause: float
) -> None:
    """It always finds its own last write in the file it reads next, and every command of ours stands at the end."""
    ours = race(workspace, how, pause)
    state = shown(workspace)
    assert state["counter"] == WRITES
    assert state["seen"] == list(range(WRITES))
    assert state["toggle"] is (WRITES % 2 == 1)
    assert [state["flags"][f"f{number}"] for number in range(ours)] == list(range(ours))


def test_the_same_where_the_journal_lies_on_another_file_system(tmp_path: Path) -> None:
    """An exchange cannot cross file systems: the file waits beside its place then."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system at /dev/shm")
    state = Path(tempfile.mkdtemp(prefix="tenuto-", dir=memory))
    try:
        workspace = start(Workspace(str(tmp_path), "", SqliteJournal(str(state)), {}, tenuto.open(".").clock, "user"))
        ours = race(workspace, "rename", 0)
        assert shown(workspace)["seen"] == list(range(WRITES))
        assert len(shown(workspace)["flags"]) == ours + 1
        assert not [name for name in os.listdir(tmp_path / "docs") if name.startswith(".")]
    finally:
        subprocess.run(["rm", "-rf", str(state)], check=True)


def test_killed_in_the_middle_nothing_that_was_answered_or_written_is_gone(workspace: Any) -> None:
    """We die at any moment of the race, again and again; what others wrote last, and what we answered, is there."""
    answered: list[int] = []
    with other_program(workspace, "rename", 0.002) as other:
        while other.poll() is None:
            words = [sys.executable, "-c", OURS, str(ROOT), workspace.root, str(len(answered))]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ours:
                assert ours.stdout is not None
                for _ in range(3):
                    answered.append(int(ours.stdout.readline()))
                ours.kill()
                answered += map(int, ours.stdout.read().split())
    flag(workspace, "last")
    state = shown(workspace)
    assert set(state["seen"]) <= set(range(WRITES)) and WRITES - 1 in state["seen"]
    assert all(state["flags"][f"f{number}"] == number for number in answered)


# The write protocol of the shell hooks that share state.json: jq into a fixed .tmp, then a rename.
HOOK = """
set -eu
state=$1; writes=$2; how=$3
echo ready
for number in $(seq "$writes"); do
    change='.loopIteration = (.loopIteration // 0) + 1 | .hookLog = (.hookLog // []) + [$n]
            | .stages.EXPLORE.agentCount += 1 | .updatedAt = "2026-01-29T10:15:00Z"'
    if [ "$how" = rename ]; then
        jq --argjson n "$number" "$change" "$state" > "$state.tmp"
        mv "$state.tmp" "$state"
    else
        new=$(jq --argjson n "$number" "$change" "$state")
        printf '%s\\n' "$new" > "$state"
    fi
done
"""


@pytest.mark.needs("jq")
@pytest.mark.parametrize(("how", "as_process"), [("rename", False), ("rename", True), ("in place", False)])
def test_shell_hooks_share_the_staged_state_with_our_operations(tmp_path: Path, how: str, as_process: bool) -> None:
    """bash and jq as the original hooks use them, against operations of ours, also as processes of their own."""
    writes = max(15, WRITES // 8)
    staged = tenuto.open(str(tmp_path)).staged
    staged.init("Shared", pipelineProfile="minimal")
    file = tmp_path / ".agents/tmp/state.json"
    words = ["bash", "-c", HOOK, "hook", str(file), str(writes), how]
    ours = 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as hook:
        assert hook.stdout is not None and hook.stdout.readline() == "ready\n"
        while hook.poll() is None:
            if as_process:
                extra = f'{{"extra": {{"ours": {{"k{ours}": {ours}}}}}}}'
                command = [sys.executable, "-m", "tenuto", "staged", "update", extra]
                environment = {**os.environ, "PYTHONPATH": str(ROOT)}
                subprocess.run(command, check=True, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
            else:
                staged.update({"ours": {f"k{ours}": ours}})
            ours += 1
        assert hook.returncode == 0
    staged.record_output("0", "# found\n")
    assert staged.advance()["currentPhase"] == "2.1"
    state = loads(file.read_bytes())
    assert state["loopIteration"] == writes and state["hookLog"] == list(range(1, writes + 1))
    assert state["stages"]["EXPLORE"]["agentCount"] == writes
    assert state["ours"] == {f"k{number}": number for number in range(ours)}
    assert sorted(os.listdir(file.parent)) == ["phases", "state.json"]


def test_a_broken_rewrite_is_named_refused_and_left_in_place_and_ours_is_kept(workspace: Any) -> None:
    flag(workspace, "before")
    file_of(workspace).write_text('{"status": "running", "fla')
    with pytest.raises(Refused) as refusal:
        flag(workspace, "ours")
    assert refusal.value.code == "foreign-edit" and "docs/a.json" in refusal.value.message
    assert file_of(workspace).read_text() == '{"status": "running", "fla'
    file_of(workspace).unlink()
    flag(workspace, "after")
    assert shown(workspace)["flags"] == {"before": True, "after": True}


def test_a_late_write_that_cannot_be_understood_is_set_aside_and_stops_nobody(workspace: Any) -> None:
    """Nobody can see or mend a file on the shelf: it must not make every command fail."""
    with file_of(workspace).open("r+") as held:
        flag(workspace, "ours")
        held.seek(0)
        held.truncate()
        held.write("{half")
    flag(workspace, "more")
    assert shown(workspace)["flags"] == {"ours": True, "more": True}
    assert [path.read_text() for path in Path(workspace.state, "quarantine").iterdir()] == ["{half"]
    assert any("docs/a.json" in warning for warning in workspace.warnings)


def test_an_edit_taken_back_is_an_edit_not_an_old_copy(workspace: Any) -> None:
    """Off, on, off: the file holds the very bytes that we wrote before the second edit, and still means off."""
    file_of(workspace).write_text(pretty({**shown(workspace), "toggle": False}))
    flag(workspace, "ours")
    off = file_of(workspace).read_bytes()
    for text, on in ((pretty({**loads(off), "toggle": True}).encode(), True), (off, False)):
        file_of(workspace).write_bytes(text)
        with workspace.turn() as turn:
            assert turn.run("a")["extra"]["plain"]["toggle"] is on
        assert shown(workspace)["toggle"] is on


def test_an_old_copy_that_somebody_restores_is_brought_up_to_date(workspace: Any) -> None:
    old = file_of(workspace).read_bytes()
    flag(workspace, "one")
    flag(workspace, "two")
    file_of(workspace).write_bytes(old)
    flag(workspace, "three")
    assert shown(workspace)["flags"] == {"one": True, "two": True, "three": True}


SLOW_WRITER = """
import json, sys, time
path = sys.argv[1]
with open(path) as file:
    state = json.load(file)
with open(path, sys.argv[2]) as file:
    print("open", flush=True)
    time.sleep(0.3)
    file.write(json.dumps({**state, "theirs": True}, indent=2))
    file.truncate()
"""


@pytest.mark.parametrize("mode", ["w", "r+"])
def test_somebody_who_is_writing_in_place_is_waited_for(workspace: Any, mode: str) -> None:
    """`w` has emptied the file already: it is not damaged, and not written anew under its writer's hands."""
    words = [sys.executable, "-c", SLOW_WRITER, str(file_of(workspace)), mode]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        flag(workspace, "ours")
    if mode == "r+":  # it had changed nothing by then: its write came late
        flag(workspace, "more")
    assert shown(workspace)["theirs"] is True and shown(workspace)["flags"]["ours"] is True
    assert not any("written anew" in warning for warning in workspace.warnings)


def test_an_edit_of_a_version_long_gone_changes_only_what_its_writer_changed(workspace: Any) -> None:
    """Twenty commands later the text it started from is no longer kept; it is made again from the journal."""
    flag(workspace, "mode", "early")
    theirs = shown(workspace)
    for number in range(20):
        flag(workspace, "mode", f"m{number}")
        flag(workspace, f"f{number}")
    theirs["flags"] |= {"theirs": 1, "also": 2}
    file_of(workspace).write_text(pretty({**theirs, "unknown": "kept"}))
    flag(workspace, "last")
    state = shown(workspace)
    assert state["flags"]["mode"] == "m19"
    assert state["flags"]["theirs"] == 1 and state["flags"]["also"] == 2 and state["unknown"] == "kept"
    assert all(state["flags"][f"f{number}"] for number in range(20))


@pytest.mark.parametrize("cut", [1, 20, 60, -1])
@pytest.mark.parametrize("tail", ["old", "blank"])
def test_a_merge_that_a_kill_cut_short_is_ours_to_repair(workspace: Any, cut: int, tail: str) -> None:
    """New text, then what stood there before: nobody else writes such a file."""
    flag(workspace, "long_name_of_a_flag")
    old = file_of(workspace).read_bytes()
    flag(workspace, "b")
    new = file_of(workspace).read_bytes()
    file_of(workspace).write_bytes(new[:cut] + (old[cut:] if tail == "old" else b"\n" * 30))
    flag(workspace, "c")
    assert shown(workspace)["flags"] == {"long_name_of_a_flag": True, "b": True, "c": True}
