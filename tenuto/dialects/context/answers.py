"""A request becomes a call, and its record the lines that are printed.

    perform(context, request, content_file) -> record with "command"
    printed(record) -> text

Commands with an output block of their own print only that; the others print the generic block. Lists join
with a comma and a blank; FILES_TOUCHED stands in brackets.
"""

from __future__ import annotations

from tenuto.dialects.context.language import COMMANDS, NOTHING, listed
from tenuto.dialects.context.wording import wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.dialects.context.commands import Context
    from tenuto.dialects.context.language import Request

_GENERIC = ("status", "task", "data", "files_touched")
_BLOCKS: dict[str, tuple[str, ...]] = {
    "START_PHASE": ("status", "task", "phase_started", "started_at"),
    "END_PHASE": ("status", "task", "phase_ended", "duration_ms", "result", "running_phases"),
    "PAUSE": ("status", "task", "action", "reason", "recommendations", "resume_with"),
    "SET_GATE": ("status", "task", "action", "gate", "prompt", "artifacts", "resume_with"),
    "RESUME": ("status", "task", "action", "previous_state", "decision", "continue_from", "completed_phases"),
}


def perform(context: Context, request: Request, content_file: str = "") -> dict[str, Any]:
    values, content = request["values"], request["content"]
    name = request["command"]
    if name == "STORE":
        record: Any = _store(context, values, content, content_file)
    elif content_file:
        raise wrong(f"{name} takes no content; STORE does")
    else:
        record = _call(context, name, values)
    if name == "LIST":
        record = {"tasks": record}
    return {"command": name, **record}


def _call(context: Context, name: str, values: dict[str, str]) -> Any:
    task = values.get("task", "")
    match name:
        case "INIT":
            return context.init(task, values.get("mode", ""), values.get("workflow", ""))
        case "START_PHASE":
            return context.start_phase(values["phase"], task=task)
        case "END_PHASE":
            return context.end_phase(values["phase"], values["status"], task=task)
        case "PAUSE":
            advice = listed(values.get("recommendations", ""))
            return context.pause(values["reason"], advice, last_feedback=values.get("last_feedback", ""), task=task)
        case "SET_GATE":
            artifacts = listed(values.get("artifacts", ""))
            return context.set_gate(values["gate"], values.get("prompt", ""), artifacts, task=task)
        case "RESUME":
            return context.resume(values.get("decision", ""), feedback=values.get("feedback", ""), task=task)
        case "RETRIEVE":
            return context.retrieve(
                values.get("for_phase", ""), _needs(values.get("needs", "")), max_tokens=values.get("max_tokens", ""),
                task_id=values.get("task_id", ""), task=task,
            )  # fmt: skip
        case "QUERY":
            return context.query(values["question"], limit=values.get("limit", ""), task=task)
        case "SUMMARY":
            return context.summary(task=task)
        case "METRICS":
            return context.metrics(values.get("format", ""), values.get("filter", ""), task=task)
        case "HISTORY":
            return context.history(values.get("filter", ""), task=task)
        case "LIST":
            return context.list(_limit(values.get("limit", "")))
    raise wrong(f"Unknown command: {name}. Use {', '.join(COMMANDS)}")


def _store(context: Context, values: dict[str, str], content: str | None, content_file: str) -> Any:
    if content and content_file:
        raise wrong("Content given twice: in the command and as a file")
    task_id, iteration = (
        "" if values.get(key, "").lower() in NOTHING else values[key] for key in ("task_id", "iteration")
    )
    return context.store(
        values["phase"], content, content_file=content_file, task_id=task_id, iteration=iteration,
        task=values.get("task", ""),
    )  # fmt: skip


def _needs(value: str) -> list[str]:
    return [need for need in listed(value.replace("+", ",").replace(" and ", ",")) if need.lower() not in NOTHING]


def _limit(value: str) -> int:
    if value.lower() in NOTHING:
        return -1
    if not (value.isascii() and value.isdecimal() and int(value[:9]) > 0):
        raise wrong(f"Invalid limit: {value}. Use a number from 1")
    return int(value[:9])


# ---- what is printed -------------------------------------------------------------------------------


def printed(record: dict[str, Any]) -> str:
    name = record["command"]
    if name == "METRICS":
        return str(record["text"])
    if name == "LIST":
        return "\n".join(["TASKS:", *map(_task, record["tasks"])])
    lines = [_line(key, record[key]) for key in _BLOCKS.get(name, _GENERIC)]
    return "\n".join([*lines, *record.get("receipt_lines", ())])


def failed(message: str) -> str:
    return f"STATUS: error\nERROR: {message}"


def _line(key: str, value: Any) -> str:
    label = key.upper()
    if isinstance(value, list):
        joined = ", ".join(map(str, value))
        value = f"[{joined}]" if key == "files_touched" else joined
    text = str(value)
    if "\n" in text:
        return f"{label}:\n{text}"
    return f"{label}: {text}" if text else f"{label}:"


def _task(task: Any) -> str:
    return (
        f"- {task['task']} | mode: {task['mode']} | workflow: {task['workflow']} | status: {task['status']}"
        f" | created: {task['created_at']}"
    )


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """The record as `--json` shows it; METRICS shows its report."""
    if record["command"] == "METRICS":
        return dict(record["report"])
    return {key: value for key, value in record.items() if key != "receipt_lines"}
