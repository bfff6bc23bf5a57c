"""The context manager as a library: `tenuto.open(path).context`.

Each method is one command of the language and returns a record (shapes.py). A refusal is an exception of
tenuto.errors whose message is the seed's text; nothing was written then. `task` addresses a task that is not
the current one, by slug.

    context = tenuto.open(".").context
    context.init("Dark mode")
    context.start_phase("architect")
    context.store("architect", "# Design ...")
    context.end_phase("architect", "success")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tenuto.dialects.context.shapes import (
        Answered,
        Done,
        GateSet,
        History,
        Initialized,
        Measured,
        Paused,
        PhaseEnded,
        PhaseStarted,
        Resumed,
        Retrieved,
        Stored,
        Summarized,
        Task,
        Workspace,
    )


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
        from tenuto.dialects.context.rests import pause

        return pause(self.workspace, reason, list(recommendations), last_feedback, task)

    def set_gate(self, gate: str, prompt: str, artifacts: Sequence[str] = (), *, task: str = "") -> GateSet:
        """The task waits for a person, who decides on exactly these artifacts as they are now."""
        from tenuto.dialects.context.rests import set_gate

        return set_gate(self.workspace, gate, prompt, list(artifacts), task)

    def resume(self, decision: str, *, feedback: str = "", task: str = "") -> Resumed:
        """`retry` or `reject` after a pause; `approve`, `reject` or `revise` (with feedback) at a gate."""
        from tenuto.dialects.context.rests import resume

        return resume(self.workspace, decision, feedback, task)

    def store(
        self, phase: str, content: str | bytes | None = None, *, content_file: str = "",
        task_id: str | int = "", iteration: str | int = "", task: str = "",
    ) -> Stored:  # fmt: skip
        """Keep a phase's output. `content_file` is streamed, however large it is."""
        from tenuto.dialects.context.storing import store

        body = _encoded(content) if isinstance(content, str) else content
        return store(self.workspace, phase, body, content_file, str(task_id), str(iteration), task)

    def retrieve(
        self, for_phase: str, needs: Sequence[str] = (), *, max_tokens: int | str = "", task_id: str | int = "",
        task: str = "",
    ) -> Retrieved:  # fmt: skip
        """What a phase needs to know, condensed; `max_tokens` drops the least useful first and says so."""
        from tenuto.dialects.context.retrieving import retrieve

        return retrieve(self.workspace, for_phase, list(needs), str(max_tokens), str(task_id), task)

    def query(self, question: str, *, limit: int | str = 5, task: str = "") -> Answered:
        """Ranked passages of artifacts, memory and history."""
        from tenuto.dialects.context.querying import query

        return query(self.workspace, question, str(limit), task)

    def summary(self, *, task: str = "") -> Summarized:
        """Where a task stands."""
        from tenuto.dialects.context.reports import summarize

        return summarize(self.workspace, task)

    def metrics(self, format: str = "summary", filter: str = "", *, task: str = "") -> Measured:
        """Durations, estimates, savings, retries. `filter` is a task's slug or a phase."""
        from tenuto.dialects.context.reports import report

        return report(self.workspace, format, filter, task)

    def history(self, filter: str = "", *, task: str = "") -> History:
        """history.md, or the entries that hold the filter."""
        from tenuto.dialects.context.reports import read_history

        return read_history(self.workspace, filter, task)

    def list(self, limit: int = -1) -> list[Task]:
        """All tasks, newest first; folders that appeared are adopted."""
        from tenuto.dialects.context.listing import list_tasks

        return list_tasks(self.workspace, limit)

    def adopt(self) -> list[str]:  # type: ignore[valid-type]
        """Take in the folders that another program wrote. Returns their slugs."""
        from tenuto.dialects.context.listing import notice_folders

        return notice_folders(self.workspace)

    def remember(self, kind: str, text: str, *, title: str = "", rationale: str = "", task: str = "") -> Done:
        """Add a `decision` or a `pattern` to the project's memory."""
        from tenuto.dialects.context.memory import remember

        return remember(self.workspace, kind, title, text, rationale, task)

    def run(self, command: str, *, content_file: str = "") -> dict[str, Any]:
        """One command of the language, as text. Returns its record with the command's name."""
        from tenuto.dialects.context.answers import perform
        from tenuto.dialects.context.language import parse

        return perform(self, parse(command), content_file)


def _encoded(text: str) -> bytes:
    """Bytes that came in as no text go out as they came; half a character is kept as three bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
