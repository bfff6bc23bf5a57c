"""What `tenuto hook --help` says. Never loaded by a hook."""

from __future__ import annotations

USAGE = """`tenuto hook EVENT < payload`: what an agent program calls on its events. It ends with 0 whatever happens.

    tenuto hook SubagentStop < payload.json
    tenuto hook PreToolUse --blocking < payload.json
    tenuto hook declare gate=block verdicts=on
    tenuto hook declare files='src/**,tests/**' --run oauth-login
    tenuto hook declare

EVENT        SessionStart, PreCompact, SubagentStart, SubagentStop, PreToolUse, PostToolUse, Stop, UserPromptSubmit (Claude Code,
             Codex; Copilot's camelCase), BeforeTool, AfterTool, BeforeAgent, AfterAgent, PreCompress (Gemini), task_update.
             Any other event, and a folder without a run, is passed over in silence.
--blocking   a question that cannot be answered is answered with no
declare      what hooks may insist on: gate, files, verdicts, stop; key=off takes it back
"""
