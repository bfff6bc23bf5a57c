"""Codex, and agents over the Agent Client Protocol, held to the contract of test_contract.py.

Codex, alone and behind its bridge, plays every scene. The other programs that speak the protocol take seconds to start:
they play those in which they differ.
"""

from __future__ import annotations

from typing import Any

from tests.real.subjects import LATER, ModelSubject


class CodexSubject(ModelSubject):
    name = program = kind = "codex"
    usage = {"tokens": 240}  # noqa: RUF012
    record = (".codex/sessions", "function_call_output")
    until = LATER * 1000 + 20_000  # it leaves the seconds out: 26:40 is told as 26, and taken as 27

    def spelling(self, scene: str) -> str:
        return "codex:sandbox=danger-full-access"

    def environment(self, scene: str) -> dict[str, str]:
        """It asks the model once: what it does about failures is its own affair."""
        told = {**super().environment(scene), "CODEX_TEST_KEY": "no-key-at-all"}
        settings = self.lab.home / ".codex/config.toml"
        text = settings.read_text().replace("SCRIPTED_KEY", "CODEX_TEST_KEY")
        settings.write_text(f"{text}request_max_retries = 0\nstream_max_retries = 0\n")
        return told

    def write(self, name: str, text: str) -> Any:
        return {"tool": "exec_command", "input": {"cmd": f"printf '%s' '{text}' | tee {name}"}}

    def limit(self) -> Any:
        more = {"plan_type": "plus", "resets_at": LATER}
        return {
            "fail": {
                "status": 429,
                "type": "usage_limit_reached",
                "message": "The usage limit has been reached",
                "more": more,
            }
        }


class CodexAcpSubject(CodexSubject):
    name = "acp-codex"
    program = "codex-acp"
    scenes = tuple(scene for scene in ModelSubject.scenes if scene not in ("revise", "unproven"))  # a reply is a reply

    def spelling(self, scene: str) -> str:
        return "acp:codex-acp"

    def environment(self, scene: str) -> dict[str, str]:
        told = super().environment(scene)
        settings = self.lab.home / ".codex/config.toml"
        settings.write_text(f'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n{settings.read_text()}')
        return told


class Slow(ModelSubject):
    """One that plays a few scenes only, and no limit."""

    def limit(self) -> Any:
        return []


class AtLeast(int):
    """The bridge has the model find a title besides: its cost is told in time, or not."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and int(other) >= int(self)


class ClaudeAcpSubject(Slow):
    name = "acp-claude"
    program = "claude-agent-acp"
    kind = "claude"
    scenes = ("done", "half-way")
    usage = {"tokens": 240, "micro_usd": AtLeast(1600)}  # noqa: RUF012
    record = (".claude/projects", "tool_result")

    def prepare(self) -> None:
        for needed in (self.program, "claude", "node"):
            self.find(needed)

    def spelling(self, scene: str) -> str:
        return "acp:claude-agent-acp"

    def write(self, name: str, text: str) -> Any:
        return {"tool": "Write", "input": {"file_path": str(self.work / name), "content": text}}


class GeminiSubject(Slow):
    name = "acp-gemini"
    program = kind = "gemini"
    scenes = ("done",)
    usage = {"tokens": 240}  # noqa: RUF012

    def spelling(self, scene: str) -> str:
        return "acp:gemini --acp --skip-trust"

    def write(self, name: str, text: str) -> Any:
        return {"tool": "write_file", "input": {"file_path": str(self.work / name), "content": text}}


class OpenCodeSubject(Slow):
    name = "acp-opencode"
    program = kind = "opencode"
    scenes = ("done",)

    def spelling(self, scene: str) -> str:
        return "acp:opencode"

    def write(self, name: str, text: str) -> Any:
        return {"tool": "write", "input": {"filePath": str(self.work / name), "content": text}}


class CopilotSubject(Slow):
    name = "acp-copilot"
    program = kind = "copilot"
    scenes = ("done", "half-way")
    usage = {"tokens": 240}  # noqa: RUF012

    def spelling(self, scene: str) -> str:
        return "acp:copilot"

    def write(self, name: str, text: str) -> Any:
        return {"tool": "create", "input": {"path": str(self.work / name), "file_text": text}}


OTHERS: list[type[ModelSubject]] = [
    CodexSubject,
    CodexAcpSubject,
    ClaudeAcpSubject,
    GeminiSubject,
    OpenCodeSubject,
    CopilotSubject,
]
