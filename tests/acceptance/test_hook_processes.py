"""The hook as agent programs call it: a process, a payload on standard input, an exit status."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.errors import NotFound
from tenuto.hooks.gates import declare
from tenuto.hooks.reports import MOST_BYTES, read_log

ROOT = Path(__file__).resolve().parents[2]
HOOK = ROOT / "tenuto" / "entrypoints" / "hook.py"
PAYLOADS = ROOT / "tests" / "data" / "payloads"
SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"
STOP = {
    "agentName": "spec-writer",
    "completedPhase": "spec",
    "nextPhase": "plan",
    "filesCreated": ["docs/specs/x.md"],
    "filesModified": [],
    "timestamp": "2025-11-29T14:30:00Z",
}


def call(root: Path, event: str, payload: Any, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    command = [sys.executable, "-I", "-S", str(HOOK), event, *words]
    env = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, input=text, cwd=root, env=env, capture_output=True, check=False)


def captured(root: Path, name: str, **changes: Any) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text().replace("$PROJECT", str(root)))["stdin"] | changes


def feature(root: Path, **more: Any) -> None:
    tenuto.open(str(root)).feature_state.start("OAuth login", session=SESSION, **more)


def state(root: Path) -> Any:
    return json.loads((root / ".feature-state.json").read_text())


def test_every_captured_payload_is_answered_and_breaks_nothing(tmp_path: Path) -> None:
    """Exit status 0, nothing on standard error, and on standard output nothing or the program's own JSON."""
    feature(tmp_path)
    names = sorted(path.relative_to(PAYLOADS).as_posix().removesuffix(".json") for path in PAYLOADS.rglob("*.json"))

    def replay(name: str) -> tuple[str, subprocess.CompletedProcess[bytes]]:
        return name, call(tmp_path, name.rpartition("/")[2].partition(".")[0], captured(tmp_path, name))

    with ThreadPoolExecutor(4) as pool:
        for name, done in pool.map(replay, names):
            assert (done.returncode, done.stderr) == (0, b""), name
            if done.stdout:
                assert isinstance(json.loads(done.stdout), dict), name
    run = tenuto.open(str(tmp_path)).load("oauth-login")
    roles = {attempt["role"]: attempt["status"] for attempt in run["attempts"].values()}
    assert set(roles) == {"worker", "reviewer"}
    assert read_log(str(tmp_path / ".tenuto")) == []


def test_the_files_own_payload_is_taken_in_silence(tmp_path: Path) -> None:
    feature(tmp_path)
    done = call(tmp_path, "SubagentStop", STOP)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert state(tmp_path)["phases"]["spec"] == "completed"
    assert state(tmp_path)["currentFeature"]["updatedAt"] == STOP["timestamp"]


def test_a_missing_field_is_a_line_and_an_entry(tmp_path: Path) -> None:
    feature(tmp_path)
    done = call(tmp_path, "SubagentStop", {"completedPhase": "spec", "timestamp": "T"})
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"nextPhase" in done.stderr
    (entry,) = read_log(str(tmp_path / ".tenuto"))
    assert (entry["level"], entry["event"]) == ("warning", "SubagentStop")


@pytest.mark.parametrize("git", [False, True])
@pytest.mark.parametrize("event", ["SubagentStop", "PreCompact", "task_update"])
def test_without_a_state_file_it_says_so_and_makes_nothing(tmp_path: Path, event: str, git: bool) -> None:
    if git:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = call(tmp_path, event, STOP)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"State file not found. Cannot update state." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ([".git"] if git else [])
    assert not (tmp_path / ".git" / "tenuto").exists()


@pytest.mark.parametrize(
    "broken", [b"", b"\0" * 64, b'{"currentFeature": {"na', b"[" * 100_000, b'{"a":1,"a":2}'], ids=range(5)
)
def test_a_corrupted_state_file_is_named_and_left_alone(tmp_path: Path, broken: bytes) -> None:
    feature(tmp_path)
    (tmp_path / ".feature-state.json").write_bytes(broken)
    done = call(tmp_path, "SubagentStop", STOP)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"State file corrupted. Manual intervention required." in done.stderr
    assert (tmp_path / ".feature-state.json").read_bytes() == broken
    assert read_log(str(tmp_path / ".tenuto"))[-1]["code"] == "state-damaged"


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"\0\0\0",
        b"[1]",
        b'"text"',
        b"null",
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"session_id": "\\ud800"}',
        b" " * ((16 << 20) + 2),
        b'{"session_id": 7, "tool_name": [], "cwd": {}}',
    ],
    ids=range(13),
)
@pytest.mark.parametrize("event", ["SubagentStop", "PreToolUse", "NoSuchEvent", ""])
def test_no_payload_breaks_the_host(tmp_path: Path, payload: bytes, event: str) -> None:
    feature(tmp_path)
    before = (tmp_path / ".feature-state.json").read_bytes()
    done = call(tmp_path, event, payload)
    assert done.returncode == 0
    assert done.stdout == b""
    assert done.stderr.count(b"\n") <= 1
    assert (tmp_path / ".feature-state.json").read_bytes() == before


def test_where_tenuto_is_not_used_nothing_happens(tmp_path: Path) -> None:
    for name in ("SubagentStop", "PreToolUse.Agent", "SessionStart.compact", "PreCompact.auto", "Stop"):
        done = call(tmp_path, name.partition(".")[0], captured(tmp_path, f"claude-2.1.325/{name}"))
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_hook_inside_a_hook_does_nothing(tmp_path: Path) -> None:
    feature(tmp_path)
    before = tenuto.open(str(tmp_path)).load("oauth-login")["version"]
    done = call(tmp_path, "SubagentStop", STOP, TENUTO_HOOK="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert tenuto.open(str(tmp_path)).load("oauth-login")["version"] == before


def ruin_the_journal(root: Path) -> None:
    for path in (root / ".tenuto").glob("journal.db*"):
        path.unlink()
    (root / ".tenuto" / "journal.db").write_bytes(b"this is no database, and never was one\n" * 200)


@pytest.mark.parametrize(
    "name", ["SubagentStop", "SubagentStart", "PreToolUse.Agent", "SessionStart.compact", "PreCompact.auto", "Stop"]
)
def test_an_error_of_ours_is_logged_and_not_the_hosts(tmp_path: Path, name: str) -> None:
    feature(tmp_path)
    ruin_the_journal(tmp_path)
    done = call(tmp_path, name.partition(".")[0], captured(tmp_path, f"claude-2.1.325/{name}"))
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1
    (entry,) = read_log(str(tmp_path / ".tenuto"))
    assert entry["level"] == "error"


@pytest.mark.parametrize("declared", [("gate=block",), ("files=src/**",)])
def test_a_gate_that_cannot_be_looked_at_is_closed(tmp_path: Path, declared: tuple[str, ...]) -> None:
    """Only where it was declared, only for what it is about, and still with exit status 0."""
    feature(tmp_path)
    tell = [sys.executable, "-m", "tenuto", "hook", "declare", *declared]
    subprocess.run(tell, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    ruin_the_journal(tmp_path)
    done = call(tmp_path, "PreToolUse", captured(tmp_path, "claude-2.1.325/PreToolUse.Agent"))
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert (done.returncode, said["permissionDecision"]) == (0, "deny")
    for name in ("PreToolUse.Bash", "SubagentStop", "Stop"):
        assert call(tmp_path, name.partition(".")[0], captured(tmp_path, f"claude-2.1.325/{name}")).stdout == b""


def at_a_closed_gate(root: Path) -> Any:
    """A run that waits for an approval, a gate that is declared blocking, and the question that it refuses."""
    feature(root, skip=["discovery"])
    workspace: Any = tenuto.open(str(root))
    workspace.feature_state.phase("spec")
    workspace.feature_state.phase("plan")
    declare(workspace, {"gate": "block"})
    return captured(root, "claude-2.1.325/PreToolUse.Agent")


def permission(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0 and done.stdout, done.stderr
    return str(json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"])


def test_a_gate_whose_journal_was_moved_is_closed(tmp_path: Path) -> None:
    asked = at_a_closed_gate(tmp_path)
    (tmp_path / ".tenuto/journal.db").rename(tmp_path / ".tenuto/j")
    done = call(tmp_path, "PreToolUse", asked)
    assert permission(done) == "deny" and b"is not where it was" in done.stderr


def test_a_variable_opens_no_gate(tmp_path: Path) -> None:
    """Settings of the host can set variables for its hooks, and agents can write such settings."""
    asked = at_a_closed_gate(tmp_path)
    assert permission(call(tmp_path, "PreToolUse", asked, TENUTO_HOOK="1")) == "deny"


@pytest.mark.parametrize("told", [True, False], ids=["the host says where its project is", "it does not"])
@pytest.mark.parametrize("git", [True, False])
def test_a_repository_put_below_opens_no_gate(tmp_path: Path, told: bool, git: bool) -> None:
    asked = at_a_closed_gate(tmp_path)
    decoy = tmp_path / "sub" / "decoy"
    decoy.mkdir(parents=True)
    if git:
        subprocess.run(["git", "init", "-q"], cwd=decoy, check=True)
    else:
        (decoy / ".tenuto").mkdir()
    tenuto.open(str(decoy)).feature_state.start("Decoy", session=SESSION)
    project = {"CLAUDE_PROJECT_DIR": str(tmp_path)} if told else {}
    assert permission(call(decoy, "PreToolUse", {**asked, "cwd": str(decoy)}, **project)) == "deny"
    ruin_the_journal(tmp_path)
    assert permission(call(decoy, "PreToolUse", {**asked, "cwd": str(decoy)}, **project)) == "deny"


def call_from_nowhere(root: Path, event: str, payload: Any) -> subprocess.CompletedProcess[bytes]:
    """Somebody removed the folder that the agent works in."""
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    hook = shlex.join([sys.executable, "-I", "-S", str(HOOK), event])
    script = f"mkdir below && cd below && rmdir ../below && exec {hook}"
    return subprocess.run(
        ["sh", "-c", script], input=text, cwd=root, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False
    )


@pytest.mark.parametrize("told", ["", "below"], ids=["told of the repository", "told of a folder that is gone, too"])
def test_a_gate_stays_closed_for_an_agent_that_removed_its_folder(tmp_path: Path, told: str) -> None:
    feature(tmp_path, skip=["discovery"], hooks={"gate": "block"})
    workspace: Any = tenuto.open(str(tmp_path))
    workspace.feature_state.phase("spec")
    workspace.feature_state.phase("plan")
    asked = captured(tmp_path, "claude-2.1.325/PreToolUse.Agent", cwd=str(tmp_path / told))
    done = call_from_nowhere(tmp_path, "PreToolUse", asked)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_it_did_is_recorded_all_the_same(tmp_path: Path) -> None:
    feature(tmp_path)
    assert call_from_nowhere(tmp_path, "SubagentStop", STOP).stderr == b""
    assert state(tmp_path)["phases"]["spec"] == "completed"


def test_a_gate_that_cannot_be_looked_at_is_closed_wherever_the_hook_was_started(tmp_path: Path) -> None:
    """The payload tells nothing: the folder does, even one that is gone, and so does the host."""
    feature(tmp_path)
    declare(tenuto.open(str(tmp_path)), {"gate": "block"})
    ruin_the_journal(tmp_path)
    for done in (
        call_from_nowhere(tmp_path, "PreToolUse", b"{"),
        call(Path("/"), "PreToolUse", b"{", CLAUDE_PROJECT_DIR=str(tmp_path)),
    ):
        assert done.returncode == 0
        assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert len(done.stderr.splitlines()) == 1
    assert len(read_log(str(tmp_path / ".tenuto"))) == 2


def test_so_is_one_that_was_declared_without_its_mark(tmp_path: Path) -> None:
    """Through the library, by a backup, or by somebody who was killed before they set it: the first hook that looks
    sets it."""
    feature(tmp_path)
    with tenuto.open(str(tmp_path)).turn() as turn:
        turn.do_repo({"do": "ChangeSettings", "changes": {"hooks": {"gate": "block"}}})
    asked = captured(tmp_path, "claude-2.1.325/PreToolUse.Agent")
    call(tmp_path, "PreToolUse", asked)
    ruin_the_journal(tmp_path)
    assert json.loads(call(tmp_path, "PreToolUse", asked).stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_is_taken_back_leaves_no_mark_and_what_stands_keeps_its_own(tmp_path: Path) -> None:
    feature(tmp_path)
    blocking = tmp_path / ".tenuto" / "blocking"
    workspace = tenuto.open(str(tmp_path))
    with pytest.raises(NotFound):
        declare(workspace, {"gate": "block"}, "nobody")
    assert not blocking.exists()
    declare(workspace, {"gate": "block"})
    blocking.unlink()
    call(tmp_path, "PreToolUse", captured(tmp_path, "claude-2.1.325/PreToolUse.Agent"))
    assert blocking.read_text() == "@\n"
    declare(workspace, {"files": ["src/**"]})
    declare(workspace, {"gate": "off"})
    assert blocking.read_text() == "@\n"
    declare(workspace, {"files": None})
    assert blocking.read_text() == ""


def test_a_host_may_declare_it_in_the_call(tmp_path: Path) -> None:
    feature(tmp_path)
    ruin_the_journal(tmp_path)
    asked = captured(tmp_path, "gemini-0.61.0/BeforeTool.invoke_agent")
    assert call(tmp_path, "BeforeTool", asked).stdout == b""
    assert json.loads(call(tmp_path, "BeforeTool", asked, "--blocking").stdout)["decision"] == "deny"
    assert (
        json.loads(call(tmp_path, "PreToolUse", b"{", "--blocking").stdout)["hookSpecificOutput"]["permissionDecision"]
        == "deny"
    )


def test_an_option_that_is_mistyped_is_said_and_opens_nothing(tmp_path: Path) -> None:
    feature(tmp_path)
    ruin_the_journal(tmp_path)
    asked = captured(tmp_path, "gemini-0.61.0/BeforeTool.invoke_agent")
    done = call(tmp_path, "BeforeTool", asked, "--bloking")
    assert json.loads(done.stdout)["decision"] == "deny" and b"does not know --bloking" in done.stderr


def test_the_log_stays_small(tmp_path: Path) -> None:
    feature(tmp_path)
    (tmp_path / ".tenuto" / "hook.log").write_bytes(b"x" * (MOST_BYTES - 10))
    for _ in range(3):
        call(tmp_path, "SubagentStop", b"{")
    assert (tmp_path / ".tenuto" / "hook.log").stat().st_size < 2000
    assert (tmp_path / ".tenuto" / "hook.log.1").stat().st_size < MOST_BYTES + 2000
    assert len(read_log(str(tmp_path / ".tenuto"))) >= 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_nobody_listening_is_no_error(tmp_path: Path, closed: str) -> None:
    """Nor does what would have been said end up in a file of ours, whose number is the closed stream's."""
    feature(tmp_path)
    payload = json.dumps(captured(tmp_path, "claude-2.1.325/PreCompact.auto", session_id=SESSION))
    script = f"{shlex.join([sys.executable, '-I', '-S', str(HOOK)])} PreCompact {closed}"
    done = subprocess.run(["sh", "-c", script], input=payload.encode(), cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert state(tmp_path)["currentFeature"]["pauseReason"] == "context_limit"
    assert [(tmp_path / ".tenuto" / name).read_bytes() for name in ("lock", "queue")] == [b"1", b""]


def test_sixty_four_hooks_at_once_lose_nothing(tmp_path: Path) -> None:
    feature(tmp_path)

    def stopped(number: int) -> int:
        payload = captured(tmp_path, "claude-2.1.325/SubagentStop", agent_id=f"agent-{number}", agent_type="worker")
        return call(tmp_path, "SubagentStop", payload).returncode

    with ThreadPoolExecutor(64) as pool:
        assert set(pool.map(stopped, range(64))) == {0}
    workspace = tenuto.open(str(tmp_path))
    run = workspace.load("oauth-login")
    assert {name: attempt["status"] for name, attempt in run["attempts"].items()} == {
        f"agent-{number}": "completed" for number in range(64)
    }
    with workspace.journal.read() as reader:
        events = list(reader.events("oauth-login"))
    assert len(events) == run["version"]
    assert sum(event["type"] == "AttemptFinished" for event in events) == 64
    assert state(tmp_path)["currentFeature"]["updatedAt"] == run["reported_at"]


def test_tenuto_hook_is_the_same_command(tmp_path: Path) -> None:
    feature(tmp_path)
    words = [sys.executable, "-m", "tenuto", "hook"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, "SubagentStop"],
        input=json.dumps(STOP).encode(),
        cwd=tmp_path,
        env=env,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert state(tmp_path)["phases"]["spec"] == "completed"
    assert subprocess.run(words, input=b"", cwd=tmp_path, env=env, capture_output=True, check=False).returncode == 0


def test_an_agent_does_not_take_a_declaration_back(tmp_path: Path) -> None:
    feature(tmp_path, hooks={"gate": "block"})
    words = [sys.executable, "-m", "tenuto", "hook", "declare", "gate=off", "--run", "oauth-login"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=env | {"CLAUDECODE": "1"}, capture_output=True, check=False)
    assert done.returncode == 4
    assert tenuto.open(str(tmp_path)).load("oauth-login")["settings"]["hooks"] == {"gate": "block"}
    assert subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, check=False).returncode == 0
    assert tenuto.open(str(tmp_path)).load("oauth-login")["settings"]["hooks"] == {"gate": "off"}
