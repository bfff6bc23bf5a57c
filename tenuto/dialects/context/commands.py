"""The context manager as a library: `tenuto.open(path).context`; a request of the language as a call of it, and its
record as what is printed.

Each method is one command of the language and returns a record (language.py). A refusal is an exception of
tenuto.errors whose message is the seed's text; nothing was written then. `task` addresses a task that is not
the current one, by slug.

    context = tenuto.open(".").context
    context.init("Dark mode")
    context.start_phase("architect")
    context.store("architect", "# Design ...")
    context.end_phase("architect", "success")
"""

from __future__ import annotations

from tenuto.dialects.context.language import COMMANDS, NOTHING, parse, split_list, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.core.records.run import Json
    from tenuto.dialects.context.language import (
        Answer,
        Answered,
        Done,
        GateSet,
        History,
        Initialized,
        Measured,
        Paused,
        PhaseEnded,
        PhaseStarted,
        Request,
        Resumed,
        Retrieved,
        Stored,
        Summarized,
        Task,
    )
    from tenuto.workspace.workspace import Workspace


class Context:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def init(self, task: str, mode: str = "standard", workflow: str = "orchestrate") -> Initialized:
        """Begin a task and make it the current one. Its slug is made from its name."""
        from tenuto.dialects.context.tasks import init

        return init(self.workspace, task, mode, workflow)

    def start_phase(self, phase: str, *, task: str = "") -> PhaseStarted:
        """A phase begins; several may run side by side (`implementer:task-1`)."""
        from tenuto.dialects.context.phases import start_phase

        return start_phase(self.workspace, phase, task)

    def end_phase(self, phase: str, status: str, *, task: str = "") -> PhaseEnded:
        """A running phase ends with `success` or `failed`."""
        from tenuto.dialects.context.phases import end_phase

        return end_phase(self.workspace, phase, status, task)

    def pause(
        self, reason: str, recommendations: Sequence[str] = (), *, last_feedback: str = "", task: str = ""
    ) -> Paused:
        """The task rests until somebody resumes it. All phases must have ended."""
        from tenuto.dialects.context.phases import pause

        return pause(self.workspace, reason, list(recommendations), last_feedback, task)

    def set_gate(self, gate: str, prompt: str, artifacts: Sequence[str] = (), *, task: str = "") -> GateSet:
        """The task waits for a person, who decides on exactly these artifacts as they are now."""
        from tenuto.dialects.context.phases import set_gate

        return set_gate(self.workspace, gate, prompt, list(artifacts), task)

    def resume(self, decision: str, *, feedback: str = "", task: str = "") -> Resumed:
        """`retry` or `reject` after a pause; `approve`, `reject` or `revise` (with feedback) at a gate."""
        from tenuto.dialects.context.phases import resume

        return resume(self.workspace, decision, feedback, task)

    def store(
        self,
        phase: str,
        content: str | bytes | None = None,
        *,
        content_file: str = "",
        task_id: str | int = "",
        iteration: str | int = "",
        task: str = "",
    ) -> Stored:
        """Keep a phase's output. `content_file` is streamed, however large it is."""
        from tenuto.dialects.context.storing import store

        body = _encoded(content) if isinstance(content, str) else content
        return store(self.workspace, phase, body, content_file, str(task_id), str(iteration), task)

    def retrieve(
        self,
        for_phase: str,
        needs: Sequence[str] = (),
        *,
        max_tokens: int | str = "",
        task_id: str | int = "",
        task: str = "",
    ) -> Retrieved:
        """What a phase needs to know, condensed; `max_tokens` drops the least useful first and says so."""
        from tenuto.dialects.context.retrieving import retrieve

        return retrieve(self.workspace, for_phase, list(needs), str(max_tokens), str(task_id), task)

    def query(self, question: str, *, limit: int | str = 5, task: str = "") -> Answered:
        """Ranked passages of artifacts, memory and history."""
        from tenuto.dialects.context.retrieving import query

        return query(self.workspace, question, str(limit), task)

    def summary(self, *, task: str = "") -> Summarized:
        """Where a task stands."""
        from tenuto.dialects.context.phases import summarize

        return summarize(self.workspace, task)

    def metrics(self, format: str = "summary", filter: str = "", *, task: str = "") -> Measured:
        """Durations, estimates, savings, retries. `filter` is a task's slug or a phase."""
        from tenuto.dialects.context.phases import report

        return report(self.workspace, format, filter, task)

    def history(self, filter: str = "", *, task: str = "") -> History:
        """history.md, or the entries that hold the filter."""
        from tenuto.dialects.context.phases import read_history

        return read_history(self.workspace, filter, task)

    def adopt(self) -> list[str]:
        """Take in the folders that another program wrote. Returns their slugs."""
        from tenuto.dialects.context.tasks import notice_folders

        return notice_folders(self.workspace)

    def remember(self, kind: str, text: str, *, title: str = "", rationale: str = "", task: str = "") -> Done:
        """Add a `decision` or a `pattern` to the project's memory."""
        from tenuto.dialects.context.retrieving import remember

        return remember(self.workspace, kind, title, text, rationale, task)

    def run(self, command: str, *, content_file: str = "") -> Json:
        """One command of the language, as text. Returns its record with the command's name."""
        return perform(self, parse(command), content_file)

    def list(self, limit: int = -1) -> list[Task]:
        """All tasks, newest first; folders that appeared are adopted."""
        from tenuto.dialects.context.tasks import list_tasks

        return list_tasks(self.workspace, limit)


def _encoded(text: str) -> bytes:
    """Bytes that came in as no text go out as they came; half a character is kept as three bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# ---- requests --------------------------------------------------------------------------------------


def perform(context: Context, request: Request, content_file: str = "") -> Json:
    """A request carried out: the record of its command, with the command's name."""
    values, content = request["values"], request["content"]
    name = request["command"]
    for key in request["empty"]:
        context.workspace.warn(f"{key} has no value, so it counts as not given")
    if request["doubt"]:
        key = request["doubt"].partition(":")[0]
        context.workspace.warn(
            f"{request['doubt']!r} is part of the text before it; where you mean {key}, write it before the text"
        )
    if name == "STORE":
        return {"command": name, **_store(context, values, content, content_file)}
    if content_file:
        raise wrong(f"{name} takes no content; STORE does")
    if name == "LIST":
        return {"command": name, "tasks": context.list(_limit(values.get("limit", "")))}
    return {"command": name, **_call(context, name, values)}


def _call(context: Context, name: str, values: dict[str, str]) -> Answer:
    task = values.get("task", "")
    match name:
        case "INIT":
            return context.init(task, values.get("mode", ""), values.get("workflow", ""))
        case "START_PHASE":
            return context.start_phase(values["phase"], task=task)
        case "END_PHASE":
            return context.end_phase(values["phase"], values["status"], task=task)
        case "PAUSE":
            advice = split_list(values.get("recommendations", ""))
            return context.pause(values["reason"], advice, last_feedback=values.get("last_feedback", ""), task=task)
        case "SET_GATE":
            artifacts = split_list(values.get("artifacts", ""))
            return context.set_gate(values["gate"], values.get("prompt", ""), artifacts, task=task)
        case "RESUME":
            return context.resume(values.get("decision", ""), feedback=values.get("feedback", ""), task=task)
        case "RETRIEVE":
            return context.retrieve(
                values.get("for_phase", ""),
                _needs(values.get("needs", "")),
                max_tokens=values.get("max_tokens", ""),
                task_id=values.get("task_id", ""),
                task=task,
            )
        case "QUERY":
            return context.query(values["question"], limit=values.get("limit", ""), task=task)
        case "SUMMARY":
            return context.summary(task=task)
        case "METRICS":
            return context.metrics(values.get("format", ""), values.get("filter", ""), task=task)
        case "HISTORY":
            return context.history(values.get("filter", ""), task=task)
    raise wrong(f"Unknown command: {name}. Use {', '.join(COMMANDS)}")


def _store(context: Context, values: dict[str, str], content: str | None, content_file: str) -> Stored:
    if content and content_file:
        raise wrong("Content given twice: in the command and as a file")
    task_id, iteration = (
        "" if values.get(key, "").lower() in NOTHING else values[key] for key in ("task_id", "iteration")
    )
    return context.store(
        values["phase"],
        content,
        content_file=content_file,
        task_id=task_id,
        iteration=iteration,
        task=values.get("task", ""),
    )


def _needs(value: str) -> list[str]:
    return [need for need in split_list(value.replace("+", ",").replace(" and ", ",")) if need.lower() not in NOTHING]


def _limit(value: str) -> int:
    if value.lower() in NOTHING:
        return -1
    if not (value.isascii() and value.isdecimal() and int(value[:9]) > 0):
        raise wrong(f"Invalid limit: {value}. Use a number from 1")
    return int(value[:9])


# ---- what is printed -------------------------------------------------------------------------------


_GENERIC = ("status", "task", "data", "files_touched")
_BLOCKS: dict[str, tuple[str, ...]] = {
    "START_PHASE": ("status", "task", "phase_started", "started_at"),
    "END_PHASE": ("status", "task", "phase_ended", "duration_ms", "result", "running_phases"),
    "PAUSE": ("status", "task", "action", "reason", "recommendations", "resume_with"),
    "SET_GATE": ("status", "task", "action", "gate", "prompt", "artifacts", "resume_with"),
    "RESUME": ("status", "task", "action", "previous_state", "decision", "continue_from", "completed_phases"),
}


def render_answer(record: Json) -> str:
    """Commands with an output block of their own print only that; the others print the generic block.

    Lists join with a comma and a blank; FILES_TOUCHED stands in brackets.
    """
    name = record["command"]
    if name == "METRICS":
        return str(record["text"])
    if name == "LIST":
        return "\n".join(["TASKS:", *map(_task, record["tasks"])])
    lines = [_line(key, record[key]) for key in _BLOCKS.get(name, _GENERIC)]
    return "\n".join([*lines, *record.get("receipt_lines", ())])


def render_error(message: str) -> str:
    return f"STATUS: error\nERROR: {message}"


def _line(key: str, value: object) -> str:
    label = key.upper()
    if isinstance(value, list):
        joined = ", ".join(map(str, value))
        value = f"[{joined}]" if key == "files_touched" else joined
    text = str(value)
    if key == "data" and "\n" in text:
        return f"{label}:\n{text}"
    text = " ".join(text.split("\n"))  # a line per fact: a text of several lines cannot look like another fact
    return f"{label}: {text}" if text else f"{label}:"


def _task(task: Json) -> str:
    return (
        f"- {task['task']} | mode: {task['mode']} | workflow: {task['workflow']} | status: {task['status']}"
        f" | created: {task['created_at'] or 'unknown'}"
    )


def json_answer(record: Json) -> Json:
    """The record as `--json` shows it; METRICS shows its report."""
    if record["command"] == "METRICS":
        return dict(record["report"])
    return {key: value for key, value in record.items() if key != "receipt_lines"}
