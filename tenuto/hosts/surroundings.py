"""Which agent program, if any, started this process: what it leaves in the environment.

A mistake-proof default, no lock: whoever wants to can unset a variable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Programs say so to what they start.
_PROGRAMS = {
    "CLAUDECODE": "Claude Code", "CODEX_THREAD_ID": "Codex", "CODEX_SANDBOX": "Codex", "GEMINI_CLI": "Gemini",
    "COPILOT_AGENT_SESSION_ID": "Copilot", "OPENCODE": "OpenCode", "CURSOR_AGENT": "Cursor", "QWEN_CODE": "Qwen Code", "GOOSE_TERMINAL": "Goose",
    "AI_AGENT": "a program that says so",
}  # fmt: skip
_SESSIONS = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "COPILOT_AGENT_SESSION_ID")


def mark(environment: Mapping[str, str]) -> str:
    """The variable that tells; "" where a person, or a script of theirs, started this."""
    return next((variable for variable in _PROGRAMS if environment.get(variable)), "")


def program(environment: Mapping[str, str]) -> str:
    """The program's name; "" where there is no mark of one."""
    return _PROGRAMS.get(mark(environment), "")


def session(environment: Mapping[str, str]) -> str:
    """The session inside it, where it is told; "" where not."""
    return next((environment[variable] for variable in _SESSIONS if environment.get(variable)), "")
