"""The seven commands of the flow state, and one to take a workflow up again.

Each is one turn: everything it changes is durable together, or nothing is. The caller says what happened; phase,
next actions and flags follow. An approval leads to the next phase; `update_phase` to the phase that this led to
changes nothing, and without an approval it is refused.
"""

from __future__ import annotations

from tenuto.core.names import slug
from tenuto.core.tickets import COMPLETE, PHASES, phase_of
from tenuto.dialects.flow import PIPELINE, document, folder_of, name, path_of, schedule
from tenuto.dialects.flow.finding import OVER, find, find_named, new_folder
from tenuto.errors import BadInput, Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json, Run

NAMES = (
    "initialize_workflow", "update_delegation", "update_completion", "update_user_checkpoint", "update_commit",
    "update_phase", "get_current_state", "resume_workflow",
)  # fmt: skip
ENDS = {"completed": "completed", "complete": "completed", "success": "completed", "failed": "failed", "failure": "failed",
        "error": "failed", "blocked": "blocked"}  # fmt: skip
_BEHIND = "COMPLETE"  # how core calls what lies behind the last step
# code of core's refusal -> what it means for a workflow
_WORDS = {
    "step-skipped": "phase {step!r} cannot come next: after {here!r} comes {next!r}",
    "not-approved": "phase {step!r} is not approved: update_user_checkpoint comes first",
    "wrong-checkpoint": "there is no phase {step!r} to approve: the workflow is in {here!r}",
    "not-an-agent": "{role!r} is the state manager: agent_history holds actual work only",
}


class FlowCommands:
    """`workspace.flow`"""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def initialize_workflow(
        self, ticket: str = "", *, description: str = "", context_summary: str = "", resume: bool = False, **extra: Any
    ) -> Json:
        with self._workspace.turn() as turn:
            _texts(description=description, context_summary=context_summary)
            folder = new_folder(ticket, description, turn.at)
            found = find_named(turn, folder)
            if found is None and self._workspace.files().read(path_of(folder)) is not None:
                found = find(turn, folder)
            if found is not None:
                return _go_on(turn, turn.existing(found), resume)
            run = turn.unused(slug(folder))
            turn.do(run, {
                "do": "StartRun", "run": run, "name": folder, "request": description or folder,
                "summary": context_summary or description, "pipeline": {"name": PIPELINE, "hash": None},
                "dialects": {name: {"tree": self._workspace.tree, "folder": folder, "ticket": ticket or folder}},
                "order": "strict", "schedule": schedule(),
            })  # fmt: skip
            turn.do_repo({"do": "MakeCurrent", "run": run})
            turn.do(run, {"do": "Advance"})
            _also(turn, run, extra)
            _keep(turn, turn.existing(run), extra)
            return _answer(turn.existing(run))

    def update_delegation(
        self, ticket: str = "", *, agent: str, task: str = "", output_summary: str = "", **extra: Any
    ) -> Json:
        """The orchestrator handed work to an agent."""
        _texts(task=task, output_summary=output_summary)

        def delegate(turn: Any, run: Run) -> None:
            turn.do(run["id"], {
                "do": "DispatchAttempt", "attempt": f"a{len(run['attempts']) + 1}", "role": _text("agent", agent),
                "task": task, "summary": output_summary, "extra": _fields(extra),
            })  # fmt: skip

        return self._change(ticket, delegate, extra)

    def update_completion(
        self, ticket: str = "", *, agent: str, task: str | None = None, status: str = "completed", output_summary: str = "",
        **extra: Any,
    ) -> Json:  # fmt: skip
        """An agent's work ended: well, badly, or it could not go on."""
        ended = ENDS.get(str(status).lower())
        if ended is None:
            raise BadInput("bad-status", f"a completion is completed, failed or blocked, not {status!r}")
        _texts(task=task, output_summary=output_summary)

        def complete(turn: Any, run: Run) -> None:
            attempt = _open_delegation(run, _text("agent", agent), task)
            turn.do(run["id"], {
                "do": "FinishAttempt", "attempt": attempt, "status": ended, "summary": output_summary,
                "extra": _fields(extra),
            })  # fmt: skip

        return self._change(ticket, complete, extra)

    def update_user_checkpoint(
        self, ticket: str = "", *, approved: bool, phase: str | None = None, user_feedback: str = "", who: str = "user",
        **extra: Any,
    ) -> Json:  # fmt: skip
        """The user's word on a phase. Approved, the next one begins."""
        if not isinstance(approved, bool):
            raise BadInput("bad-approval", f"approved is true or false, not {approved!r}")
        _texts(phase=phase, user_feedback=user_feedback, who=who)

        def decide(turn: Any, run: Run) -> None:
            step = phase if phase is not None else _phase_with_work(run)
            if step not in PHASES:
                raise BadInput("no-such-phase", f"there is no phase {step!r} to approve; there are {', '.join(PHASES)}")
            told = _fields(extra)
            if run["gate"] is not None:  # an engine's gate may ask for more than a word: hashes, a signature
                message = f"the engine waits at its gate {run['gate']['name']!r}"
                raise Refused("gate-open", message, f"tenuto approve {run['id']}, reject or revise", run=run["id"])
            proof = turn.workspace.person("give a user's word at a checkpoint", True, run)
            turn.do(run["id"], {
                "do": "Checkpoint", "step": step, "approved": approved, "who": who, "feedback": user_feedback,
                "proof": {**proof, "told": told} if told else proof,
            })  # fmt: skip

        return self._change(ticket, decide, extra)

    def update_commit(
        self, ticket: str = "", *, step: str, commit_hash: str, commit_message: str = "", **extra: Any
    ) -> Json:
        """A commit was made; it must exist where there is a repository."""
        from tenuto.dialects.flow.commits import check_commit

        _texts(commit_message=commit_message)
        subject = check_commit(self._workspace.root, _text("commit_hash", commit_hash))

        def record(turn: Any, run: Run) -> None:
            turn.do(run["id"], {
                "do": "RecordCommit", "step": _text("step", step), "hash": commit_hash,
                "message": commit_message or subject, "extra": _fields(extra),
            })  # fmt: skip

        return self._change(ticket, record, extra)

    def update_phase(self, ticket: str = "", *, phase: str, **extra: Any) -> Json:
        """On to this phase. Without an approval of the one before, no."""
        _texts(phase=phase)
        if phase not in (*PHASES, COMPLETE):
            raise BadInput("no-such-phase", f"there is no phase {phase!r}; there are {', '.join(PHASES)}, {COMPLETE}")

        def advance(turn: Any, run: Run) -> None:
            turn.do(run["id"], {"do": "Advance", "to": _BEHIND if phase == COMPLETE else phase})

        return self._change(ticket, advance, extra)

    def get_current_state(self, ticket: str = "") -> Json:
        """The whole state, with what others wrote into the file."""
        with self._workspace.turn() as turn:
            return document(turn.existing(find(turn, ticket)))

    def resume_workflow(self, ticket: str = "") -> Json:
        """A new session goes on with it: `resumed_at`, and no longer stopped."""
        with self._workspace.turn() as turn:
            return _go_on(turn, turn.existing(find(turn, ticket)), resume=True)

    def _change(self, ticket: str, act: Callable[[Any, Run], None], extra: Json) -> Json:
        run: Run | None = None
        try:
            with self._workspace.turn() as turn:
                run = turn.existing(find(turn, ticket))
                act(turn, run)
                _also(turn, run["id"], extra)
                return _answer(run)
        except TenutoError as error:
            raise _in_flows_words(error, run) from None


def _in_flows_words(error: TenutoError, run: Run | None) -> TenutoError:
    words = _WORDS.get(error.code)
    if words is None or run is None:
        return error
    told = {key: COMPLETE if value == _BEHIND else value for key, value in error.details.items()}
    made = type(error)(error.code, words.format(**{"here": phase_of(run), **told}), error.hint, **error.details)
    return made


def _go_on(turn: Any, run: Run, resume: bool) -> Json:
    if run["status"] in OVER:
        raise Refused("run-ended", f"workflow {folder_of(run)} is {run['status']}", "use another workspace name", run=run["id"])
    if not resume:
        raise Refused(
            "workflow-exists", f"workflow {folder_of(run)} is in {phase_of(run)} already",
            f"tenuto flow resume_workflow {folder_of(run)}", run=run["id"],
        )  # fmt: skip
    rests = run["status"] in ("paused", "stopped", "parked")
    if rests:
        turn.workspace.person("let a workflow go on", False, run)
    turn.do(run["id"], {"do": "Resume" if rests else "PickUp"})
    turn.do_repo({"do": "MakeCurrent", "run": run["id"]})
    return _answer(run)


def _open_delegation(run: Run, agent: str, task: str | None) -> str:
    """The delegation that ended. Several of the same agent are told apart by their task."""
    found = [
        key for key, attempt in run["attempts"].items()
        if attempt["status"] in ("dispatched", "running") and attempt["role"] == agent and task in (None, attempt["task"])
    ]  # fmt: skip
    if len(found) > 1:
        tasks = ", ".join(repr(run["attempts"][key]["task"]) for key in found)
        raise BadInput("which-delegation", f"several delegations to {agent!r} are in progress: {tasks}", "name the task")
    if not found:
        what = f"{agent!r} for {task!r}" if task else repr(agent)
        message = f"there is no delegation to {what} in progress: a completion needs one"
        raise Refused("no-delegation", message, "update_delegation comes first", agent=agent)
    return found[0]


def _phase_with_work(run: Run) -> str:
    """The phase that an approval without a name is for: the one under way, once something was done in it."""
    here = phase_of(run)
    if here == COMPLETE or not any(attempt["step"] == run["position"] for attempt in run["attempts"].values()):
        raise Refused(
            "nothing-to-approve", f"there is no phase to approve: nothing was delegated in {here!r} so far",
            "name the phase that was approved", phase=here,
        )  # fmt: skip
    return here


def _also(turn: Any, run: str, extra: Json) -> None:
    """What any command may tell besides: flags of the caller's own, and what the work is about."""
    gates = extra.get("quality_gates", {})
    if not isinstance(gates, dict):
        raise BadInput("bad-gates", "quality_gates is a JSON object", '{"docs_updated": true}')
    if gates:
        turn.do(run, {"do": "SetFlags", "flags": gates})
    if "context_summary" in extra:
        _texts(context_summary=extra["context_summary"])
        turn.do(run, {"do": "ChangeSettings", "changes": {name: {"context_summary": extra["context_summary"]}}})


def _keep(turn: Any, run: Run, extra: Json) -> None:
    told = _fields(extra)
    if told:
        turn.do(run["id"], {
            "do": "AbsorbEdit", "dialect": name, "path": path_of(folder_of(run)), "sha256": "", "extra": told,
        })  # fmt: skip


def _fields(extra: Json) -> Json:
    return {key: value for key, value in extra.items() if key not in ("quality_gates", "context_summary")}


def _text(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInput("missing-field", f"{field} is missing", f"--{field} ...", field=field)
    return value


def _texts(**fields: object) -> None:
    """Refused where one of them is there and is no text."""
    for field, value in fields.items():
        if value is not None and not isinstance(value, str):
            raise BadInput("bad-field", f"{field} is a text, not {value!r}", f'--{field} "..."', field=field)


def _answer(run: Run) -> Json:
    shown = document(run)
    told = ("workflow_id", "phase", "current_step", "next_actions", "quality_gates", "updated_at")
    return {field: shown[field] for field in told} | {"run": run["id"], "path": path_of(folder_of(run))}
