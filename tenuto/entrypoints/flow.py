"""`tenuto flow <command> [TICKET] [--field value ...]`: a ticket's workflow, kept in .ai-workspace/<ticket>/flow-state.json.

    tenuto flow initialize_workflow TICKET-123 --context_summary "User authentication"
    tenuto flow update_delegation TICKET-123 --agent deep_research --task ticket_analysis
    tenuto flow update_completion TICKET-123 --agent deep_research --output_summary "Found the requirements"
    tenuto flow update_user_checkpoint TICKET-123 --phase understanding --approved true --user_feedback "Go on"
    tenuto flow update_commit TICKET-123 --step step_1_middleware --commit_hash abc123def
    tenuto flow update_phase TICKET-123 --phase planning
    tenuto flow get_current_state TICKET-123
    tenuto flow resume_workflow TICKET-123
    echo '{"agent": "plan_work", "task": "create_plan"}' | tenuto flow update_delegation TICKET-123

Fields may also come as a JSON object on standard input (`-`, or no field at all). A value that is JSON is read as JSON. TICKET
may be left out where one workflow is under way. Any further field is kept with the entry. --json for the envelope.
"""

from __future__ import annotations

import sys

from tenuto.dialects.flow.commands import NAMES
from tenuto.encoding import NotJson, loads_strict
from tenuto.entrypoints.answers import show
from tenuto.entrypoints.opening import open_here
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

ALIASES = {
    "summary": "output_summary", "feedback": "user_feedback", "hash": "commit_hash", "message": "commit_message",
    "workflow_id": "ticket", "ticket_id": "ticket",
}  # fmt: skip
REQUIRED = {
    "update_delegation": ("agent",),
    "update_completion": ("agent",),
    "update_user_checkpoint": ("approved",),
    "update_commit": ("step", "commit_hash"),
    "update_phase": ("phase",),
}
_TEXTS = ("agent", "task", "output_summary", "user_feedback", "step", "commit_hash", "commit_message", "phase",
          "context_summary", "description", "status", "ticket")  # fmt: skip
_ONLY_A_TICKET = ("get_current_state", "resume_workflow")
_LONGEST = 1 << 24


def main(words: list[str]) -> int:
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    if not words or words[0] in ("--help", "-h"):
        sys.stdout.write((__doc__ or "") if words else (__doc__ or "").partition("\n\n")[2])
        return 0 if words else 2
    command, fields = understand(words)
    workspace = open_here()
    answer = getattr(workspace.flow, command)(fields.pop("ticket", ""), **fields)
    show(workspace, answer, as_json)
    return 0


def understand(words: list[str]) -> tuple[str, Json]:
    """The command and its fields, from the words or from standard input."""
    command, plain, fields = "", [], {}
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            key = known(key)
            fields[key] = read_value(key, value if equals else next(rest, "true"))
        else:
            plain.append(word)
    if plain and plain[0] != "-":
        command = plain.pop(0).replace("-", "_")
    told = plain[-1:] == ["-"] or (not fields and bool(REQUIRED.get(command)) and not sys.stdin.isatty())
    if plain[-1:] == ["-"]:
        plain.pop()
    if told:
        given = standard_input()
        command = command or str(given.pop("command", "")).replace("-", "_")
        fields = {known(key): value for key, value in given.items()} | fields
    if len(plain) > 1:
        raise BadInput("usage", f"one ticket at a time, not {' '.join(plain)}", "put a value behind its --field")
    if plain:
        fields["ticket"] = plain[0]
    if command not in NAMES:
        raise BadInput("usage", f"tenuto flow has no command {command!r}; it has {', '.join(NAMES)}")
    missing = [field for field in REQUIRED.get(command, ()) if field not in fields]
    if missing:
        raise BadInput("missing-field", f"{command} needs {', '.join(missing)}", f"--{missing[0]} ...", missing=missing)
    unknown = [field for field in fields if field != "ticket"] if command in _ONLY_A_TICKET else []
    if unknown:
        raise BadInput("usage", f"{command} takes a ticket and nothing else, not {unknown[0]}", f"tenuto flow {command}")
    fields["ticket"] = str(fields.get("ticket", ""))
    return command, fields


def known(key: str) -> str:
    plain = key.replace("-", "_")
    return ALIASES.get(plain, plain)


def read_value(key: str, text: str) -> Any:
    """Texts stay texts; for other fields, what is JSON is read as JSON."""
    if key in _TEXTS:
        return text
    try:
        return loads_strict(text)
    except NotJson:
        return text


def standard_input() -> Json:
    try:
        given = loads_strict(sys.stdin.buffer.read(_LONGEST))
    except NotJson as problem:
        raise BadInput("not-json", f"standard input is not JSON: {problem}", '{"agent": "deep_research"}') from None
    if not isinstance(given, dict):
        raise BadInput("not-json", "standard input holds no JSON object", '{"agent": "deep_research"}')
    return given
