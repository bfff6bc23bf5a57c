"""`tenuto hook declare [KEY=VALUE ...] [--run RUN] [--json]`: what hooks may insist on; without a pair, what is set.

`tenuto hook --help`, too. A host never calls either, so a hook never loads this module.
"""

from __future__ import annotations

import os
import sys

from tenuto.core.approvals import settings_of
from tenuto.entrypoints.options import TEXT, Command, asks_for_help, read_words
from tenuto.entrypoints.speak import open_here, success
from tenuto.hooks.gates import declare, parse
from tenuto.workspace.guard import require_person

DECLARE = Command(("pairs[]",), {"run": TEXT}, words_only=True)


def for_people(words: list[str]) -> bool:
    """Answer `declare` and a call for help; False where it is a host's call after all."""
    if words[:1] == ["declare"] and not asks_for_help(words):
        declare_or_list(words[1:])
        return True
    if not words and not os.isatty(0):
        return False
    sys.stdout.write(USAGE)
    return True


def declare_or_list(words: list[str]) -> None:
    call = read_words("hook declare", DECLARE, words)
    run, pairs = call.fields.get("run", ""), call.fields.get("pairs", [])
    workspace = open_here()
    if pairs:
        require_person(workspace.caller, "change what hooks insist on", f"tenuto hook declare {' '.join(pairs)}")
        declared = declare(workspace, parse(pairs), run)
    else:
        with workspace.journal.read() as reader:
            found = reader.load(run) if run else None
            declared = settings_of(reader.load_repo()["settings"], found)
    if call.as_json:
        sys.stdout.write(success({"hooks": declared}) + "\n")
    else:
        sys.stdout.write("".join(f"{key} = {value}\n" for key, value in declared.items()) or "nothing is declared\n")


USAGE = """`tenuto hook EVENT < payload`: what an agent program calls on its events. It ends with 0 whatever happens.

    tenuto hook SubagentStop < payload.json
    tenuto hook PreToolUse --blocking < payload.json
    tenuto hook declare gate=block verdicts=on
    tenuto hook declare files='src/**,tests/**' --run oauth-login
    tenuto hook declare

EVENT        SessionStart, PreCompact, SubagentStart, SubagentStop, PreToolUse, PostToolUse, Stop, UserPromptSubmit
             (Claude Code, Codex; Copilot's camelCase), BeforeTool, AfterTool, BeforeAgent, AfterAgent, PreCompress
             (Gemini), task_update. Any other event, and a folder without a run, is passed over in silence.
--blocking   a question that cannot be answered is answered with no
declare      what hooks may insist on: gate, files, verdicts, stop; key=off takes it back
"""
