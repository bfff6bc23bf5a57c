"""What a hook may forbid: only what the user declared, and then without exception."""

from __future__ import annotations

import os
from typing import Any

import pytest

SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"


def to_approval(repository: Any, **hooks: Any) -> None:
    repository.feature.start("OAuth login", session=SESSION, skip=["discovery"], hooks=hooks)
    repository.feature.phase("spec")
    repository.feature.phase("plan")


def denied(said: Any) -> str:
    assert said["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    return str(said["hookSpecificOutput"]["permissionDecisionReason"])


def test_nothing_declared_nothing_denied(repository: Any) -> None:
    to_approval(repository)
    for name in ("PreToolUse.Agent", "PreToolUse.Write", "PreToolUse.Bash", "PreToolUse.mcp", "Stop"):
        assert repository.replay(f"claude-2.1.325/{name}") is None


def test_no_agent_is_called_in_front_of_a_closed_gate(repository: Any) -> None:
    to_approval(repository, gate="block")
    assert "not approved" in denied(repository.replay("claude-2.1.325/PreToolUse.Agent"))
    repository.feature.approve("ada")
    assert repository.replay("claude-2.1.325/PreToolUse.Agent") is None


def test_what_lies_before_the_gate_may_be_worked_on(repository: Any) -> None:
    """The plan is revised in front of its approval."""
    to_approval(repository, gate="block")
    call = repository.payload("claude-2.1.325/PreToolUse.Agent")
    call["tool_input"]["subagent_type"] = "feature-dev-plus:code-architect"
    assert repository.hook("PreToolUse", call) is None
    call["tool_input"]["subagent_type"] = "feature-dev-plus:test-designer"
    denied(repository.hook("PreToolUse", call))


@pytest.mark.parametrize("rest", ["Pause", "Stop"])
def test_no_agent_is_called_while_the_run_rests(repository: Any, rest: str) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"gate": "block"})
    with repository.workspace.turn() as turn:
        turn.do("oauth-login", {"do": rest, "reason": "lunch", "kind": "user"})
    denied(repository.replay("claude-2.1.325/PreToolUse.Agent"))


def test_no_agent_is_called_while_a_gate_is_open(repository: Any) -> None:
    with repository.workspace.turn() as turn:
        turn.do(
            "dark-mode",
            {"do": "StartRun", "run": "dark-mode", "name": "Dark mode", "pipeline": {"name": "x", "hash": None}},
        )
        turn.do("dark-mode", {"do": "OpenGate", "name": "design", "prompt": "Good?"})
        turn.do_repo({"do": "ChangeSettings", "changes": {"hooks": {"gate": "block"}}})
    assert "design" in denied(repository.replay("claude-2.1.325/PreToolUse.Agent"))
    with repository.workspace.turn() as turn:
        turn.do("dark-mode", {"do": "DecideGate", "decision": "approve", "who": "ada"})
    assert repository.replay("claude-2.1.325/PreToolUse.Agent") is None


def test_a_runs_own_word_counts_before_the_repositorys(repository: Any) -> None:
    to_approval(repository, gate="off")
    with repository.workspace.turn() as turn:
        turn.do_repo({"do": "ChangeSettings", "changes": {"hooks": {"gate": "block"}}})
    assert repository.replay("claude-2.1.325/PreToolUse.Agent") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("codex-0.166.0/PreToolUse.spawn_agent", lambda said: said["hookSpecificOutput"]["permissionDecisionReason"]),
        ("copilot-1.0.102/native/preToolUse", lambda said: said["permissionDecisionReason"]),
        ("copilot-1.0.102/claude-plugin-format/PreToolUse.Agent", lambda said: said["permissionDecisionReason"]),
        ("gemini-0.61.0/BeforeTool.invoke_agent", lambda said: said["reason"] if said["decision"] == "deny" else ""),
    ],
)
def test_every_program_is_denied_in_its_own_words(repository: Any, name: str, reason: Any) -> None:
    to_approval(repository, gate="block")
    assert "not approved" in reason(repository.replay(name))
    assert repository.run()["attempts"] == {}


def edit(repository: Any, path: str, tool: str = "Write") -> Any:
    asked = repository.payload("claude-2.1.325/PreToolUse.Write")
    asked["tool_name"], asked["tool_input"]["file_path"] = tool, path
    return repository.hook("PreToolUse", asked)


@pytest.mark.parametrize("path", ["src/a.py", "src/deep/b.py", "{root}/src/a.py", "src/../src/a.py", "docs/x.md"])
def test_edits_inside_what_was_declared_pass(repository: Any, path: str) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"files": ["src/**", "docs/*.md"]})
    assert edit(repository, path.format(root=repository.root)) is None


@pytest.mark.parametrize(
    "path",
    ["b.py", "srcs/a.py", "docs/deep/x.md", "../src/a.py", "/etc/passwd", "src/../b.py", "**", "src*", "link/a.py"],
)
def test_edits_outside_are_denied(repository: Any, path: str) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"files": ["src/**", "docs/*.md", "link/**"]})
    os.symlink("/", repository.root / "link")
    assert "outside" in denied(edit(repository, path))


def test_files_may_be_declared_by_step_and_by_item(repository: Any) -> None:
    repository.feature.start("OAuth login", session=SESSION, skip=["discovery"], hooks={"files": {"spec": ["docs/**"]}})
    denied(edit(repository, "src/a.py"))
    repository.feature.phase("spec")
    assert edit(repository, "src/a.py") is None
    with repository.workspace.turn() as turn:
        turn.do("oauth-login", {"do": "ChangeSettings", "changes": {"hooks": {"files": "items"}}})
        turn.do("oauth-login", {"do": "PlanItems", "items": {"1": {"title": "x", "files": ["src/a.py"]}}})
    assert edit(repository, "b.py") is None  # no item is under way: nothing is declared
    with repository.workspace.turn() as turn:
        turn.do("oauth-login", {"do": "ChangeItem", "item": "1", "status": "running"})
    assert edit(repository, "src/a.py") is None
    denied(edit(repository, "b.py"))


def test_a_patch_is_judged_by_every_file_it_touches(repository: Any) -> None:
    repository.feature.start("OAuth login", hooks={"files": ["p.txt"]})
    assert repository.replay("codex-0.166.0/PreToolUse.apply_patch") is None
    patch = "*** Begin Patch\n*** Update File: p.txt\n*** Move to: q.txt\n*** End Patch"
    denied(repository.replay("codex-0.166.0/PreToolUse.apply_patch", tool_input={"command": patch}))


def test_an_edit_of_nobody_knows_what_is_denied(repository: Any) -> None:
    repository.feature.start("OAuth login", hooks={"files": ["src/**"]})
    denied(repository.replay("codex-0.166.0/PreToolUse.apply_patch", tool_input={"command": 7}))


def test_agents_do_not_call_agents_without_end(repository: Any) -> None:
    """The depth of each attempt is in the journal: the sixth agent in a chain is not called."""
    repository.feature.start("OAuth login", session=SESSION)
    caller = ""
    for depth in range(1, 6):
        call = {"agent_id": caller} if caller else {}
        assert repository.replay("claude-2.1.325/PreToolUse.Agent", **call) is None
        caller = f"agent-{depth}"
        more = {"parent_agent_id": f"agent-{depth - 1}"} if depth > 1 else {}
        repository.replay("claude-2.1.325/SubagentStart", agent_id=caller, **more)
        assert repository.run()["attempts"][caller]["extra"]["depth"] == depth
    assert "deep" in denied(repository.replay("claude-2.1.325/PreToolUse.Agent", agent_id=caller))


def test_a_session_that_owns_a_run_is_reminded_once(repository: Any) -> None:
    repository.feature.start("OAuth login", session=SESSION, hooks={"stop": "block"})
    said = repository.replay("claude-2.1.325/Stop")
    assert said["decision"] == "block"
    assert "oauth-login" in said["reason"]
    assert repository.replay("claude-2.1.325/Stop", stop_hook_active=True) is None


def test_a_stop_is_never_held_without_a_reason(repository: Any) -> None:
    """Not a stranger's, not while agents work in the background, not in front of a gate, not when it is over."""
    repository.feature.start("OAuth login", session=SESSION, skip=["discovery"], hooks={"stop": "block"})
    assert repository.replay("claude-2.1.325/Stop", session_id="stranger") is None
    assert repository.replay("claude-2.1.325/Stop.background-pending", session_id=SESSION) is None
    assert repository.replay("copilot-1.0.102/native/agentStop.in-subagent", sessionId=SESSION) is None
    repository.replay("claude-2.1.325/SubagentStart")
    assert repository.replay("claude-2.1.325/Stop") is None
    repository.replay("claude-2.1.325/SubagentStop")
    assert repository.replay("claude-2.1.325/Stop")["decision"] == "block"
    repository.feature.phase("spec")
    repository.feature.phase("plan")
    assert repository.replay("claude-2.1.325/Stop") is None
    repository.feature.cancel()
    assert repository.replay("claude-2.1.325/Stop") is None
