"""What a hook says back, in the words of the program that called it.

    deny      PreToolUse: this tool call does not happen, and why
    block     Stop, SubagentStop: go on, and with what
    context   SessionStart: what to know from now on
    tell      a line for the user

Nothing to say is said with nothing: all of them take an empty answer as "go ahead".
"""

from __future__ import annotations

from tenuto.encoding import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Json
    from tenuto.hosts.hearing import Heard


def deny(heard: Heard, reason: str) -> str:
    if heard["host"] == "gemini":
        return dumps({"decision": "deny", "reason": reason})
    decision: Json = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    answer: Json = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
    # Copilot's own hooks want it at the top; hooks of a plugin made for Claude Code inside. Others allow no more keys.
    return dumps({**decision, **answer} if heard["host"] == "copilot" else answer)


def block(heard: Heard, reason: str) -> str:
    return dumps({"decision": "deny" if heard["host"] == "gemini" else "block", "reason": reason})


def context(heard: Heard, text: str) -> str:
    name = heard["name"] if heard["name"] == "BeforeAgent" else "SessionStart"
    answer: Json = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    return dumps({"additionalContext": text, **answer} if heard["host"] == "copilot" else answer)


def tell(heard: Heard, text: str) -> str:
    return text.rstrip("\n") if heard["host"] == "seed" else dumps({"systemMessage": text.rstrip("\n")})
