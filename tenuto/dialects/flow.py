"""A ticket's workflow in the words of its users: the seven commands of the flow state, and one to take a workflow up
again.

Each command is one turn: everything it changes is durable together, or nothing is. The caller says what happened;
phase, next actions and flags follow. An approval leads to the next phase; `update_phase` to the phase that this led to
changes nothing, and without an approval it is refused.

Which workflow is meant: by its ticket, by the beginning of its folder's name, or because there is only one.

    TICKET-123                      the ticket alone
    TICKET-123-description          a ticket with a few words
    task-description-YYYY-MM-DD     no ticket

A folder from before Tenuto is taken over when it is first asked for. Last, what the engine asks about a ticket that it
drives: its folder, its name, and what its commits are called.
"""

from __future__ import annotations

from tenuto.core.rules import COMPLETE, PHASES, phase_of
from tenuto.core.status import OVER, RESUMABLE
from tenuto.dialects.dialect import Dialect
from tenuto.encoding import digest
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.names import check, file_key, slug
from tenuto.views.flow import (
    CHECKPOINT,
    COMMIT,
    ENDS,
    ENTRY,
    ENTRY_FIELDS,
    FILE,
    FOLDER,
    KEYS,
    OPEN,
    PIPELINE,
    adopted,
    describe,
    document,
    folder_of,
    mend_of,
    name,
    path_of,
    schedule,
    state_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Attempt, Json, Run
    from tenuto.dialects.dialect import Beginning
    from tenuto.workspace.workspace import Turn, Workspace


def adopt(turn: Turn, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    top, _, rest = path.partition("/")
    folder, _, file = rest.partition("/")
    if top != FOLDER or file != FILE or not folder:
        raise Refused("not-its-place", f"{path} is not where a workflow lies", f"move it to {FOLDER}/<ticket>/{FILE}")
    state, sha, tree = state_in(path, body), digest(body), turn.workspace.tree
    run: str = turn.unused(slug(folder))
    turn.tx.put_blob(sha, body)
    ticket = str(state.get("workflow_id") or describe(folder))
    state_of_run = adopted(run, state, {"tree": tree, "folder": folder, "ticket": ticket}, turn.at)
    turn.do(run, {"do": "Adopt", "dialect": name, "path": path, "sha256": sha, "state": state_of_run})
    turn.take_over(file_key(tree, path), body)
    return run


# ---- flow ------------------------------------------------------------


_HEX = frozenset("0123456789abcdefABCDEF")
_BESIDES = ("quality_gates", "context_summary", "extra")
_OWN_FIELDS = {*ENTRY, *CHECKPOINT, *COMMIT, *KEYS, *ENTRY_FIELDS}
_BEHIND = "COMPLETE"  # how core calls what lies behind the last step
# code of core's refusal -> what it means for a workflow
_WORDS = {
    "step-skipped": "phase {step!r} cannot come next: after {here!r} comes {next!r}",
    "not-approved": "phase {step!r} is not approved: update_user_checkpoint comes first",
    "wrong-checkpoint": "there is no phase {step!r} to approve: the workflow is in {here!r}",
    "stage-ahead": "phase {stage!r} is not behind: the workflow is in {here!r}",
    "not-an-agent": "{role!r} is the state manager: agent_history holds actual work only",
}


class FlowCommands:
    """`tenuto.open(path).flow`"""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def initialize_workflow(
        self,
        ticket: str = "",
        *,
        description: str = "",
        context_summary: str = "",
        resume: bool = False,
        **extra: object,
    ) -> Json:
        with self._workspace.turn() as turn:
            _texts(description=description, context_summary=context_summary)
            folder = new_folder(ticket, description, turn.at)
            known = find_named(turn, folder)
            if known is None and self._workspace.files().read(path_of(folder)) is not None:
                known = find(turn, folder)
            if known is not None:
                return _go_on(turn, turn.existing(known), resume)
            run = turn.unused(slug(folder))
            turn.do(
                run,
                {
                    "do": "StartRun",
                    "run": run,
                    "name": folder,
                    "request": description or folder,
                    "summary": context_summary or description,
                    "pipeline": {"name": PIPELINE, "hash": None},
                    "dialects": {name: {"tree": self._workspace.tree, "folder": folder, "ticket": ticket or folder}},
                    "order": "strict",
                    "schedule": schedule(),
                },
            )
            turn.do_repo({"do": "MakeCurrent", "run": run})
            turn.do(run, {"do": "Advance"})
            _also(turn, run, extra)
            _keep(turn, turn.existing(run), extra)
            return _answer(turn.existing(run))

    def update_delegation(
        self,
        ticket: str = "",
        *,
        agent: str,
        task: str = "",
        status: str = OPEN[0],
        output_summary: str = "",
        **extra: object,
    ) -> Json:
        """The orchestrator handed work to an agent."""
        _texts(task=task, output_summary=output_summary)
        if status not in OPEN:
            raise BadInput("bad-status", f"a delegation is {OPEN[0]}, not {status!r}", "update_completion ends it")

        def delegate(turn: Turn, run: Run) -> None:
            turn.do(
                run["id"],
                {
                    "do": "DispatchAttempt",
                    "attempt": f"a{len(run['attempts']) + 1}",
                    "role": _text("agent", agent),
                    "task": task,
                    "summary": output_summary,
                    "extra": _fields(extra, ENTRY_FIELDS),
                },
            )

        return self._change(ticket, delegate, extra)

    def update_completion(
        self,
        ticket: str = "",
        *,
        agent: str,
        task: str | None = None,
        status: str = "completed",
        output_summary: str = "",
        **extra: object,
    ) -> Json:
        """An agent's work ended: well, badly, or it could not go on."""
        ended = ENDS.get(str(status).lower())
        if ended is None:
            raise BadInput("bad-status", f"a completion is completed, failed or blocked, not {status!r}")
        _texts(task=task, output_summary=output_summary)

        def complete(turn: Turn, run: Run) -> None:
            attempt = _open_delegation(run, _text("agent", agent), task)
            turn.do(
                run["id"],
                {
                    "do": "FinishAttempt",
                    "attempt": attempt,
                    "status": ended,
                    "summary": output_summary,
                    "extra": _fields(extra, ENTRY_FIELDS),
                },
            )

        return self._change(ticket, complete, extra)

    def update_user_checkpoint(
        self,
        ticket: str = "",
        *,
        approved: bool,
        phase: str | None = None,
        stay: bool | None = None,
        user_feedback: str = "",
        who: str = "user",
        **extra: object,
    ) -> Json:
        """The user's word on a phase. Approved, the next one begins, unless it is to stay: then this is a word on what
        was done so far. Where `stay` is not said, it stays while known steps of the execution are open."""
        if not isinstance(approved, bool):
            raise BadInput("bad-approval", f"approved is true or false, not {approved!r}")
        if stay is not None and (not isinstance(stay, bool) or not approved):
            raise BadInput(
                "bad-field", "stay is true or false, and belongs to an approval", "--approved true --stay true"
            )
        _texts(phase=phase, user_feedback=user_feedback, who=who)

        def decide(turn: Turn, run: Run) -> None:
            step = phase if phase is not None else _phase_with_work(run)
            if step not in PHASES:
                raise BadInput("no-such-phase", f"there is no phase {step!r} to approve; there are {', '.join(PHASES)}")
            further = _fields(extra, ("timestamp",))
            if run["gate"] is not None:  # an engine's gate may ask for more than a word: hashes, a signature
                message = f"the engine waits at its gate {run['gate']['name']!r}"
                raise Refused("gate-open", message, f"tenuto approve {run['id']}, reject or revise", run=run["id"])
            proof = turn.workspace.person("give a user's word at a checkpoint", True, run)
            turn.do(
                run["id"],
                {
                    "do": "Checkpoint",
                    "step": step,
                    "approved": approved,
                    "stays": stay,
                    "who": who,
                    "feedback": user_feedback,
                    "proof": {**proof, "told": further} if further else proof,
                },
            )

        return self._change(ticket, decide, extra, checkpoint=phase)

    def update_commit(
        self, ticket: str = "", *, step: str, commit_hash: str, commit_message: str = "", **extra: object
    ) -> Json:
        """A commit was made; it must exist where there is a repository."""
        _texts(commit_message=commit_message)
        subject = _subject_of(self._workspace.root, _text("commit_hash", commit_hash))

        def record(turn: Turn, run: Run) -> None:
            turn.do(
                run["id"],
                {
                    "do": "RecordCommit",
                    "step": _text("step", step),
                    "hash": commit_hash,
                    "message": commit_message or subject,
                    "extra": _fields(extra, ENTRY_FIELDS),
                },
            )

        return self._change(ticket, record, extra)

    def update_phase(self, ticket: str = "", *, phase: str, back: bool = False, **extra: object) -> Json:
        """On to this phase. Without an approval of the one before, no. `back`: an earlier one begins again, and is
        approved again before it is left."""
        _texts(phase=phase)
        if _fields(extra):
            raise BadInput(
                "unknown-field", "a change of phase keeps nothing besides", "extra belongs to other commands"
            )
        if phase not in (*PHASES, COMPLETE):
            raise BadInput("no-such-phase", f"there is no phase {phase!r}; there are {', '.join(PHASES)}, {COMPLETE}")

        def advance(turn: Turn, run: Run) -> None:
            if back and phase != phase_of(run):
                turn.do(run["id"], {"do": "RestartStage", "stage": phase, "reason": f"back from {phase_of(run)}"})
            else:
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

    def _change(
        self, ticket: str, act: Callable[[Turn, Run], None], extra: Json, checkpoint: str | None = None
    ) -> Json:
        """`checkpoint`: the phase that a person decides on here, whatever others wrote about it into the file."""
        run: Run | None = None
        try:
            with self._workspace.turn() as turn:
                named = find(turn, ticket)
                try:
                    run = turn.existing(named)
                except Refused as refusal:
                    if checkpoint is None or refusal.details.get("mend") != mend_of(checkpoint):
                        raise
                    run = turn.read_again(named, {mend_of(checkpoint): b"decided"})
                act(turn, run)
                _also(turn, run["id"], extra)
                return _answer(run)
        except TenutoError as error:
            raise _in_flows_words(error, run) from None


COMMANDS: dict[str, Callable[..., Json]] = {
    "initialize_workflow": FlowCommands.initialize_workflow,
    "update_delegation": FlowCommands.update_delegation,
    "update_completion": FlowCommands.update_completion,
    "update_user_checkpoint": FlowCommands.update_user_checkpoint,
    "update_commit": FlowCommands.update_commit,
    "update_phase": FlowCommands.update_phase,
    "get_current_state": FlowCommands.get_current_state,
    "resume_workflow": FlowCommands.resume_workflow,
}
NAMES = tuple(COMMANDS)


def _in_flows_words(error: TenutoError, run: Run | None) -> TenutoError:
    words = _WORDS.get(error.code)
    if words is None or run is None:
        return error
    details = {key: COMPLETE if value == _BEHIND else value for key, value in error.details.items()}
    here, hint = phase_of(run), error.hint
    if error.code == "step-skipped":
        behind = details["step"] in PHASES[: PHASES.index(here)] if here in PHASES else False
        hint = f"update_phase --phase {details['step']} --back" if behind else f"update_phase --phase {details['next']}"
    return type(error)(error.code, words.format(**{"here": here, **details}), hint, **error.details)


def _go_on(turn: Turn, run: Run, resume: bool) -> Json:
    if run["status"] in OVER:
        raise Refused(
            "run-ended", f"workflow {folder_of(run)} is {run['status']}", "use another workspace name", run=run["id"]
        )
    if not resume:
        raise Refused(
            "workflow-exists",
            f"workflow {folder_of(run)} is in {phase_of(run)} already",
            f"tenuto flow resume_workflow {folder_of(run)}",
            run=run["id"],
        )
    if run["status"] in RESUMABLE:
        turn.workspace.person("let a workflow go on", False, run)
        turn.do(run["id"], {"do": "Resume"})
    else:
        turn.do(run["id"], {"do": "PickUp"})
    turn.do_repo({"do": "MakeCurrent", "run": run["id"]})
    return _answer(run)


def _open_delegation(run: Run, agent: str, task: str | None) -> str:
    """The delegation that ended. Several of the same agent are told apart by their task; of one task, the first."""
    open_ones = [
        key
        for key, attempt in run["attempts"].items()
        if attempt["status"] in ("dispatched", "running")
        and attempt["role"] == agent
        and task in (None, attempt["task"])
    ]
    if len({run["attempts"][key]["task"] for key in open_ones}) > 1:
        tasks = ", ".join(repr(run["attempts"][key]["task"]) for key in open_ones)
        raise BadInput(
            "which-delegation", f"several delegations to {agent!r} are in progress: {tasks}", "name the task"
        )
    if not open_ones:
        what = f"{agent!r} for {task!r}" if task else repr(agent)
        message = f"there is no delegation to {what} in progress: a completion needs one"
        raise Refused("no-delegation", message, "update_delegation comes first", agent=agent)
    return open_ones[0]


def _phase_with_work(run: Run) -> str:
    """The phase that an approval without a name is for: the one under way, once something was done in it."""
    here = phase_of(run)
    if here == COMPLETE or not any(attempt["step"] == run["position"] for attempt in run["attempts"].values()):
        raise Refused(
            "nothing-to-approve",
            f"there is no phase to approve: nothing was delegated in {here!r} so far",
            "name the phase that was approved",
            phase=here,
        )
    return here


def _also(turn: Turn, run: str, extra: Json) -> None:
    """What any command may tell besides: flags of the caller's own, and what the work is about."""
    gates = extra.get("quality_gates", {})
    if not isinstance(gates, dict):
        raise BadInput("bad-gates", "quality_gates is a JSON object", '{"docs_updated": true}')
    if gates:
        turn.do(run, {"do": "SetFlags", "flags": gates})
    if "context_summary" in extra:
        _texts(context_summary=extra["context_summary"])
        turn.do(run, {"do": "ChangeSettings", "changes": {name: {"context_summary": extra["context_summary"]}}})


def _keep(turn: Turn, run: Run, extra: Json) -> None:
    further = _fields(extra)
    if further:
        turn.do(
            run["id"],
            {
                "do": "AbsorbEdit",
                "dialect": name,
                "path": path_of(folder_of(run)),
                "sha256": "",
                "extra": further,
            },
        )


def _fields(further: Json, known: tuple[str, ...] = ()) -> Json:
    """What is kept with an entry. A field that nobody knows is more often a slip than a fact."""
    for key in further:
        if key not in known and key not in _BESIDES:
            from tenuto.core.pipeline.values import near_word

            every = (*known, *_BESIDES)
            near = near_word(key, every)
            hint = f"did you mean {near}?" if near else f"put it into extra: {{{key!r}: ...}}"
            raise BadInput("unknown-field", f"there is no field {key!r}", hint, field=key)
    besides = further.get("extra", {})
    if not isinstance(besides, dict):
        raise BadInput("bad-field", f"extra is a JSON object, not {besides!r}", '--extra \'{"key": "value"}\'')
    for key in besides:
        if key in _OWN_FIELDS:
            raise BadInput("bad-field", f"{key} has an option of its own and cannot stand in extra", f"--{key} ...")
    return {key: value for key, value in further.items() if key in known} | besides


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
    fields = ("workflow_id", "phase", "current_step", "next_actions", "quality_gates", "updated_at")
    return {field: shown[field] for field in fields} | {"run": run["id"], "path": path_of(folder_of(run))}


def _subject_of(root: str, commit_hash: str) -> str:
    """The first line of a commit, which must exist. Empty where there is no repository to ask."""
    from os.path import exists

    if not exists(f"{root}/.git"):
        return ""
    if not 4 <= len(commit_hash) <= 64 or not _HEX.issuperset(commit_hash):
        raise BadInput("bad-hash", f"{commit_hash!r} is not a commit's hash", "git rev-parse HEAD")
    from tenuto.files import git

    commit = git.ask(root, "log", "-1", "--format=%s", "--no-show-signature", f"{commit_hash}^{{commit}}", "--")
    if commit.status == git.NOT_STARTED:
        message = f"git could not be asked about {commit_hash}: {commit.errors}"
        raise Refused("git-failed", message, "is git installed?")
    if commit.status != 0:
        raise Refused(
            "no-such-commit",
            f"there is no commit {commit_hash} in this repository",
            "git log --oneline",
            hash=commit_hash,
        )
    return commit.out.strip()


# ---- which workflow --------------------------------------------------------------------------------


def new_folder(ticket: str, description: str, at: str) -> str:
    if ticket:
        folder = f"{ticket}-{slug(description)}" if description else ticket
    elif description:
        words = slug(description)
        folder = f"{words if words.startswith('task-') else 'task-' + words}-{at[:10]}"
    else:
        raise BadInput(
            "no-ticket", "a workflow needs a ticket or a description", "tenuto flow initialize_workflow TICKET-123"
        )
    return check(folder, "workspace")


def find(turn: Turn, ticket: str) -> str:
    """The id of the run; a file from before Tenuto becomes one."""
    run = find_known(turn, ticket) or _adopt(turn, ticket)
    if run is None:
        if ticket:
            raise NotFound(
                "no-workflow",
                f"there is no workflow {ticket!r}",
                f"tenuto flow initialize_workflow {ticket}",
                ticket=ticket,
            )
        raise NotFound("no-workflow", "there is no workflow under way", "tenuto flow initialize_workflow TICKET-123")
    return run


def find_known(turn: Turn, ticket: str) -> str | None:
    summaries = turn.tx.runs(dialect=name)
    if not ticket:
        under_way = [summary["id"] for summary in summaries if summary["status"] not in OVER]
        if len(under_way) > 1 and turn.repo["current"] in under_way:
            return str(turn.repo["current"])
        return _only(under_way, "under way")
    exact = find_named(turn, ticket)
    if exact is not None:
        return exact
    begin = [summary["id"] for summary in summaries if summary["id"].startswith(slug(ticket) + "-")]
    return _only(begin, f"that begin with {ticket!r}")


def find_named(turn: Turn, folder: str) -> str | None:
    """The run of exactly this workspace. Another one may have taken its name: AB_1 and AB-1 are two, and one id."""
    stem = slug(folder)
    for summary in turn.tx.runs(dialect=name):
        if summary["id"] == stem or summary["id"].removeprefix(f"{stem}-").isdecimal():
            run = turn.tx.load(summary["id"])
            if run is not None and folder_of(run).casefold() == folder.casefold():
                return run["id"]
    return None


def _adopt(turn: Turn, ticket: str) -> str | None:
    """From the files: the folder of this name, or the only one that begins so."""
    files, taken = turn.workspace.files(), _folders(turn)
    bodies = {folder: files.read(path_of(folder)) for folder in files.names(FOLDER) if folder not in taken}
    names = [folder for folder, body in bodies.items() if body is not None]
    named = [one for one in names if not ticket or one == ticket] or [
        one for one in names if one.startswith(f"{ticket}-")
    ]
    folder = _only(named, f"in {FOLDER}")
    body = bodies[folder] if folder is not None else None
    return adopt(turn, path_of(folder), body) if folder is not None and body is not None else None


def _folders(turn: Turn) -> list[str]:
    runs = [turn.tx.load(summary["id"]) for summary in turn.tx.runs(dialect=name)]
    return [folder_of(run) for run in runs if run is not None]


def _only(names: list[str], where: str) -> str | None:
    if len(names) > 1:
        raise BadInput("which-workflow", f"there are several workflows {where}: {', '.join(names)}", "name one of them")
    return names[0] if names else None


# ---- a ticket that the engine drives ---------------------------------------------------------------


class FlowDialect(Dialect):
    name = name

    def adopt(self, turn: Turn, path: str, body: bytes) -> str:
        return adopt(turn, path, body)

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        """`PROJ-123 Add a login` is about the ticket PROJ-123."""
        first = title.split(" ")[0].strip(":,")
        ticket = first if first != "" and describe(f"{first}-x") == first else run
        return {"place": {"tree": tree, "folder": run, "ticket": ticket}, "order": "strict", "schedule": schedule()}

    def opened(self, turn: Turn, run: str) -> None:
        path = path_of(folder_of(turn.existing(run)))
        if turn.workspace.files().changed_at(path) is not None:
            raise Refused("workflow-exists", f"{path} is there already", "give the run another name: --name", path=path)

    def engaged(self, turn: Turn, run: Run, pipeline: Pipeline) -> None:
        """A ticket that was led by hand keeps its documents where its state lies, whatever case its name is written
        in."""
        folder, documents = folder_of(run), f"{FOLDER}/{{slug}}"
        if pipeline["documents"] == documents and folder != run["id"] and "documents" not in run["settings"]:
            turn.do(run["id"], {"do": "ChangeSettings", "changes": {"documents": f"{FOLDER}/{folder}"}})

    def commit_step(self, run: Run, attempt: Attempt) -> str:
        """step_1_authentication_middleware"""
        item = attempt["item"]
        if item is None:
            return attempt["step"]
        digits = "".join(sign for sign in item if sign.isdigit())
        words = slug(run["items"][item]["title"] or item).replace("-", "_")
        return f"step_{int(digits)}_{words}" if digits else f"step_{words}"
