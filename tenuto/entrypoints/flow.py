"""`tenuto flow <command> [TICKET] [--field value ...]`: a ticket's workflow, kept in its flow-state.json.

    tenuto flow initialize_workflow TICKET-123 --context_summary "User authentication"
    tenuto flow update_delegation TICKET-123 --agent deep_research --task ticket_analysis
    tenuto flow update_completion TICKET-123 --agent deep_research --output_summary "Found the requirements"
    tenuto flow update_user_checkpoint TICKET-123 --phase understanding --approved true --user_feedback "Go on"
    tenuto flow update_commit TICKET-123 --step step_1_middleware --commit_hash abc123def
    tenuto flow update_phase TICKET-123 --phase planning
    tenuto flow get_current_state TICKET-123
    tenuto flow resume_workflow TICKET-123
    echo '{"agent": "plan_work", "task": "create_plan"}' | tenuto flow update_delegation TICKET-123

Fields may also come as a JSON object, as a word or on standard input (`-` waits for it). A field that the command does
not know is refused with the nearest one; what you want to keep besides goes into --extra '{"key": ...}'. TICKET may be
left out where one workflow is under way. --json for the envelope.
"""

from __future__ import annotations

from tenuto.dialects.flow import COMMANDS, FlowCommands
from tenuto.entrypoints.options import JSON, OBJECT, SWITCH, TEXT, WORD, Command, Option, read_call
from tenuto.entrypoints.speak import open_here, show
from tenuto.views.flow import ENTRY_FIELDS

# Every command takes these, under these names, too.
_TICKET = {"ticket": WORD, "workflow_id": Option("word", "ticket"), "ticket_id": Option("word", "ticket")}
_BESIDES = {"context_summary": TEXT, "quality_gates": OBJECT, "extra": OBJECT}
_ENTRY = {**_TICKET, **_BESIDES, **dict.fromkeys(ENTRY_FIELDS, JSON)}
_SUMMARY = {"output_summary": TEXT, "summary": Option("text", "output_summary")}
_FEEDBACK = {"user_feedback": TEXT, "feedback": Option("text", "user_feedback")}
_HASH = {"commit_hash": WORD, "hash": Option("word", "commit_hash")}
_MESSAGE = {"commit_message": TEXT, "message": Option("text", "commit_message")}

TAKES = {
    "initialize_workflow": Command(("ticket",), {**_TICKET, "description": TEXT, "resume": SWITCH, **_BESIDES}),
    "update_delegation": Command(
        ("ticket",), {"agent": TEXT, "task": TEXT, "status": TEXT, **_SUMMARY, **_ENTRY}, required=("agent",)
    ),
    "update_completion": Command(
        ("ticket",), {"agent": TEXT, "task": TEXT, "status": TEXT, **_SUMMARY, **_ENTRY}, required=("agent",)
    ),
    "update_user_checkpoint": Command(
        ("ticket",),
        {
            "phase": TEXT,
            "approved": JSON,
            "stay": SWITCH,
            **_FEEDBACK,
            "who": TEXT,
            "timestamp": TEXT,
            **_TICKET,
            **_BESIDES,
        },
        required=("approved",),
    ),
    "update_commit": Command(
        ("ticket",), {**_ENTRY, "step": TEXT, **_HASH, **_MESSAGE}, required=("step", "commit_hash")
    ),
    "update_phase": Command(
        ("ticket",),
        {"phase": TEXT, "back": SWITCH, **_TICKET, "context_summary": TEXT, "quality_gates": OBJECT},
        required=("phase",),
    ),
    "get_current_state": Command(("ticket",), _TICKET),
    "resume_workflow": Command(("ticket",), _TICKET),
}


def main(words: list[str]) -> int:
    call = read_call("flow", "command", TAKES, words, __doc__ or "")
    if call is None:
        return 0
    workspace = open_here()
    answer = COMMANDS[call.name](FlowCommands(workspace), call.fields.pop("ticket", ""), **call.fields)
    show(workspace, answer, call.as_json)
    return 0
