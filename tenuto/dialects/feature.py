"""`tenuto feature ...`: what a person, or an agent for them, asks of the feature in this work tree.

Each command is one turn: everything it changes is durable together, or nothing is. Answers are records;
who prints them is not known here.

Last, what the engine asks about a feature that it drives (feature_state), and about the documents of one
(feature_docs).

A `.feature-state.json` that was there before Tenuto: the run that it tells of.

Real files drift: sections are missing, statuses are spelled in other ways, ids are texts. All of this is read. The
bytes are kept by their hash, and unknown keys stay in the file. A file that tells of no feature belongs to another
tool: it is refused by name, and not touched.
"""

from __future__ import annotations

from tenuto.core.approvals import closed
from tenuto.core.parts import new_item, new_step, new_visit, past_visit
from tenuto.core.status import BEGUN, ENDED, RESUMABLE
from tenuto.dialects.dialect import Dialect
from tenuto.dialects.feature_progress import (
    complete,
    completed,
    enter,
    find_task,
    next_phase,
    status_of,
    task_changed,
    words,
)
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.names import slug
from tenuto.views import feature_docs
from tenuto.views.feature_state import (
    ANSWERS,
    CONTEXT,
    FILE,
    KNOWN,
    MAY_BE_SKIPPED,
    NOT_FOUND,
    OUTPUTS,
    PHASES,
    PIPELINE,
    SECTIONS,
    TASK_STATUSES,
    document,
    in_seeds_words,
    is_another,
    item_of,
    name,
    owner_key,
    pause,
    phase_of,
    refuse_ended,
    schedule,
    task_status,
    tasks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Item, Json, Run, StepState, StepStatus, Visit
    from tenuto.dialects.dialect import Beginning
    from tenuto.workspace.workspace import Turn, Workspace


_STEP_STATUS: dict[str, StepStatus] = {
    "completed": "completed",
    "complete": "completed",
    "done": "completed",
    "approved": "completed",
    "in_progress": "running",
    "in-progress": "running",
    "active": "running",
    "started": "running",
    "skipped": "skipped",
    "pending": "pending",
}
_ITEM_STATUS: dict[str, StepStatus] = {
    **TASK_STATUSES,
    "done": "completed",
    "complete": "completed",
    "in-progress": "running",
}


def adopt(turn: Turn, path: str, body: bytes) -> str:
    """The file becomes a run of its own, shown where it stands. Returns the run's id."""
    state = recognised(path, body)
    feature, sha = state["currentFeature"], digest(body)
    if path != FILE:
        raise Refused("not-its-place", f"{path} holds a feature, but a feature lies at {FILE}", f"move it to {FILE}")
    called = feature["name"]
    run: str = turn.unused(slug(called))
    tree = turn.workspace.tree
    turn.tx.put_blob(sha, body)
    place = {"tree": tree, "name": called} | {f: feature[f] for f in OUTPUTS if isinstance(feature.get(f), str)}
    reported = feature["updatedAt"] if _is_text(feature.get("updatedAt")) else ""
    adopted = _run(run, state, place, turn.at)
    turn.do(
        run, {"do": "Adopt", "dialect": name, "path": path, "sha256": sha, "state": adopted, "reported_at": reported}
    )
    unknown = _unknown(state)
    if unknown:
        turn.do(
            run,
            {
                "do": "AbsorbEdit",
                "dialect": name,
                "path": path,
                "sha256": sha,
                "extra": unknown,
                "reported_at": reported,
            },
        )
    turn.do_repo({"do": "OwnFile", "path": owner_key(tree), "run": run})
    turn.take_over(owner_key(tree), body)
    return run


def recognised(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state: Json = loads_strict(body)
    except NotJson as problem:
        raise Refused("state-damaged", f"{path} is not JSON that can be read: {problem}", path=path) from None
    feature = state.get("currentFeature") if isinstance(state, dict) else None
    phases = state.get("phases", {}) if isinstance(state, dict) else None
    if not isinstance(feature, dict) or not isinstance(feature.get("name"), str) or not isinstance(phases, dict):
        raise Refused(
            "not-a-feature-state",
            f"{path} is not a feature's state: it has no currentFeature with a name and no phases",
            "it belongs to another tool and stays as it is; move it away to use tenuto feature here",
            path=path,
        )
    if feature.get("phase") not in PHASES and not any(phase in PHASES for phase in phases):
        raise Refused(
            "not-a-feature-state",
            f"{path} is not a feature's state: its phases are not {', '.join(PHASES)}",
            "it belongs to another tool and stays as it is",
            path=path,
        )
    return state


def _run(run: str, state: Json, place: Json, at: str) -> Json:
    feature = state["currentFeature"]
    started = feature["startedAt"] if _is_text(feature.get("startedAt")) else at
    steps = {phase: _step(state, feature, phase) for phase in PHASES}
    running = [phase for phase in PHASES if steps[phase]["status"] == "running"]
    adopted: Json = {
        "id": run,
        "name": feature["name"],
        "request": _text(feature.get("description")),
        "created_at": started,
        "pipeline": {"name": PIPELINE, "hash": None},
        "driver": "manual",
        "dialects": {name: place},
        "status": "running",
        "order": "open",
        "schedule": schedule(),
        "steps": steps,
        "position": feature["phase"] if feature.get("phase") in PHASES else running[-1] if running else None,
        "visits": [_visit(phase, steps[phase]["status"], started) for phase in PHASES if steps[phase]["iteration"]],
        "items": _items(state.get("tasks")),
        "answers": _answers(state.get("discoveryAnswers")),
        "resume": _resume(state, feature, at),
    }
    if steps["approval"]["status"] == "completed":
        adopted["decisions"] = [
            {
                "gate": "adopted",
                "name": "approval",
                "step": "approval",
                "decision": "approve",
                "approved": True,
                "feedback": "",
                "who": f"{FILE}, before Tenuto",
                "at": at,
                "proof": {},
            }
        ]
    if steps["commit"]["status"] == "completed":
        adopted["status"], adopted["stopped_at"] = "completed", at
    return adopted


def _step(state: Json, feature: Json, phase: str) -> StepState:
    word = state.get("phases", {}).get(phase)
    status = _STEP_STATUS.get(str(word).lower(), "pending")
    if status == "pending" and phase == feature.get("phase"):
        status = "running"
    return new_step(status, int(status in BEGUN))


def _visit(phase: str, status: StepStatus, at: str) -> Visit:
    return (
        new_visit(phase, at) if status == "running" else past_visit(phase, "success", at, at, duration_ms=0, closed=0)
    )


def _items(tasks: object) -> dict[str, Item]:
    items: dict[str, Item] = {}
    for number, task in enumerate(tasks if isinstance(tasks, list) else (), 1):
        fields: Json = task if isinstance(task, dict) else {"description": str(task)}
        key, planned = str(fields.get("id", number)), item_of(fields)
        if key in items:  # two tasks of one id: both stay
            planned["extra"]["id"], key = fields.get("id"), f"{key}~{number}"
        status = _ITEM_STATUS.get(str(fields.get("status", "pending")).lower(), "pending")
        items[key] = new_item(planned["title"], status=status, extra=planned["extra"])
    return items


def _answers(answers: object) -> Json:
    return {key: value for key, value in answers.items() if value != ""} if isinstance(answers, dict) else {}


def _resume(state: Json, feature: Json, at: str) -> Json | None:
    context = state.get("resumeContext")
    paused = feature.get("pausedAt")
    if not isinstance(context, dict) and not paused:
        return None
    saved = context if isinstance(context, dict) else {}
    reason = _text(feature.get("pauseReason")) or "user_request"
    fields = {field: saved[field] for field in CONTEXT if field in saved}
    return {**fields, "saved_at": paused if _is_text(paused) else at, "reason": reason if paused else ""}


def _unknown(state: Json) -> Json:
    extra: Json = {key: [value] for key, value in state.items() if key not in SECTIONS}
    for section, known in KNOWN.items():
        fields = state.get(section)
        inside = {key: [value] for key, value in fields.items() if key not in known} if isinstance(fields, dict) else {}
        if inside:
            extra[section] = inside
    return extra


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# ---- feature ------------------------------------------------------------


class FeatureCommands:
    """`tenuto.open(path).feature_state`"""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def start(
        self,
        title: str,
        description: str = "",
        *,
        skip: list[str] | None = None,
        hooks: Json | None = None,
        session: str = "",
    ) -> Json:
        """A new feature takes over `.feature-state.json`."""
        for phase in skip or ():
            if phase not in MAY_BE_SKIPPED:
                allowed = " and ".join(MAY_BE_SKIPPED)
                raise BadInput("not-skippable", f"{phase!r} cannot be skipped; {allowed} can")
        called, tree = slug(title), self._workspace.tree
        with self._workspace.turn() as turn:
            refuse_second(turn)
            run_id = turn.unused(called)
            turn.do(
                run_id,
                {
                    "do": "StartRun",
                    "run": run_id,
                    "name": title,
                    "request": description or title,
                    "summary": description.partition("\n")[0],
                    "pipeline": {"name": PIPELINE, "hash": None},
                    "dialects": {name: {"tree": tree, "name": called}},
                    "order": "open",
                    "schedule": schedule(),
                    "settings": {"hooks": hooks} if hooks else {},
                },
            )
            turn.do_repo({"do": "OwnFile", "path": owner_key(tree), "run": run_id})
            turn.do_repo({"do": "MakeCurrent", "run": run_id})
            for phase in skip or ():
                turn.do(run_id, {"do": "SkipStep", "step": phase, "reason": "left out at the start"})
            run = turn.existing(run_id)
            first = next(phase for phase in PHASES if status_of(run, phase) == "pending")
            turn.do(run_id, {"do": "StartStep", "step": first})
            if session:
                turn.bind(run_id, session)
            return _answer(run)

    def answer(self, answers: Json) -> Json:
        """The discovery answers, by their names."""

        def record(turn: Turn, run: Run) -> None:
            for key in answers:
                if key not in ANSWERS and key not in run["answers"]:
                    from tenuto.core.pipeline.values import did_you_mean

                    raise BadInput("no-such-question", f"{key!r} is no question", did_you_mean(key, ANSWERS), key=key)
            turn.do(run["id"], {"do": "RecordAnswers", "answers": answers})
            if status_of(run, "discovery") == "running" and all(run["answers"].get(key) for key in ANSWERS):
                complete(turn, run, "discovery", next_phase(run, "discovery"), "")

        return self._change(record)

    def approve(self, who: str, feedback: str = "") -> Json:
        """A person's word: the implementation may begin."""
        return self._decide(who, feedback, approved=True)

    def revise(self, who: str, feedback: str) -> Json:
        """A person's word: not yet. The plan is taken up again with this feedback."""
        return self._decide(who, feedback, approved=False)

    def _decide(self, who: str, feedback: str, approved: bool) -> Json:
        def decide(turn: Turn, run: Run) -> None:
            if status_of(run, "approval") == "completed":
                raise Refused("already-approved", f"{run['id']} was approved before", "tenuto feature status")
            proof = turn.workspace.person("give an approval", True, run)
            turn.do(
                run["id"],
                {
                    "do": "Checkpoint",
                    "step": "approval",
                    "approved": approved,
                    "who": who,
                    "feedback": feedback,
                    "proof": proof,
                },
            )
            if not approved:
                turn.do(run["id"], {"do": "EndStep", "step": "approval", "status": "failed", "summary": feedback})
                turn.do(run["id"], {"do": "StartStep", "step": "plan"})

        return self._change(decide)

    def plan(self, descriptions: list[str]) -> Json:
        """More tasks, behind those that are there."""

        def add(turn: Turn, run: Run) -> None:
            first = len(run["items"]) + 1
            items = {str(first + i): {"title": text} for i, text in enumerate(descriptions)}
            turn.do(run["id"], {"do": "PlanItems", "items": items})

        return self._change(add)

    def skip(self, phase: str) -> Json:
        def leave_out(turn: Turn, run: Run) -> None:
            if phase not in MAY_BE_SKIPPED:
                raise BadInput("not-skippable", f"{phase!r} cannot be skipped; {' and '.join(MAY_BE_SKIPPED)} can")
            begun = status_of(run, phase) == "running"
            if begun:
                turn.do(run["id"], {"do": "EndStep", "step": phase, "status": "failed", "summary": "left out"})
            turn.do(run["id"], {"do": "SkipStep", "step": phase, "reason": "left out"})
            following = next_phase(run, phase)
            if begun and following:
                enter(turn, run, following, "")

        return self._change(leave_out)

    def phase(self, phase: str) -> Json:
        """A phase is done; the next one begins. `approval` has a command of its own."""

        def end(turn: Turn, run: Run) -> None:
            if phase not in PHASES or phase == "approval":
                raise BadInput(
                    "no-such-phase", f"there is no phase {phase!r} to complete; there are {', '.join(PHASES)}"
                )
            complete(turn, run, phase, next_phase(run, phase), "")
            if status_of(run, phase) != "completed":
                raise Refused("not-completed", turn.workspace.warnings.pop(), "tenuto feature status", phase=phase)

        return self._change(end)

    def report(self, payload: Json) -> Json:
        """SubagentStop and task_update payloads, as hooks and agents write them."""
        record = task_changed if payload.get("type") == "task_update" else completed
        return self._change(lambda turn, run: record(turn, run, payload))

    def task(self, payload: Json) -> Json:
        """A person's word on a task: one that is not there, or a status that is none, is refused."""

        def change(turn: Turn, run: Run) -> None:
            if task_status(payload.get("newStatus")) is None:
                known = ", ".join(TASK_STATUSES)
                message = f"a task is {known}, failed or skipped, not {payload.get('newStatus')!r}"
                raise BadInput("bad-status", message, "tenuto feature task 2 completed")
            for field in ("taskId", "nextTaskId"):
                if payload.get(field) is not None and find_task(run, payload[field]) is None:
                    message = f"there is no task {payload[field]!r}; there are {len(tasks(run))}"
                    raise NotFound("no-such-task", message, "tenuto feature status", field=field)
            task_changed(turn, run, payload)

        return self._change(change)

    def resume(self, session: str = "") -> Json:
        """What to go on with; `pausedAt` goes away."""
        texts: list[str] = []

        def restore(turn: Turn, run: Run) -> None:
            texts.append(words(run))
            if run["status"] in RESUMABLE:
                turn.workspace.person("let a feature go on", False, run)
                turn.do(run["id"], {"do": "Resume"})
            turn.do(run["id"], {"do": "RestoreContext", "session": session})
            if session:
                turn.bind(run["id"], session)

        return self._change(restore) | {"context": "".join(texts)}

    def cancel(self, reason: str = "") -> Json:
        """The end. Where the file is gone, it stays gone."""
        with self._workspace.turn() as turn:
            owner = turn.repo["owners"].get(owner_key(self._workspace.tree))
            if owner is not None and turn.workspace.files().read(FILE) is None:
                turn.do_repo({"do": "OwnFile", "path": owner_key(self._workspace.tree), "run": None})
                run = turn.existing(owner)
                refuse_ended(run)
                turn.do(owner, {"do": "Cancel", "reason": reason})
                return _answer(run)
        return self._change(lambda turn, run: turn.do(run["id"], {"do": "Cancel", "reason": reason}))

    def refuse_commit(self) -> None:
        """Why nothing may be committed now, before git is asked to."""
        run = self._look()
        refuse_ended(run)
        reason = closed(run, "commit")
        if reason:
            raise Refused("gate-closed", f"nothing is committed: {reason}", "tenuto feature answer approval --approve")

    def commit(self, commit_hash: str, message: str) -> Json:
        """The commit that the feature ends with."""

        def record(turn: Turn, run: Run) -> None:
            enter(turn, run, "commit", "")
            turn.do(run["id"], {"do": "RecordCommit", "step": "commit", "hash": commit_hash, "message": message})
            for visit in [visit for visit in run["visits"] if visit["status"] == "running"]:
                turn.do(run["id"], {"do": "EndStep", "step": visit["step"], "status": "success"})
            turn.do(run["id"], {"do": "Finish"})

        return self._change(record)

    def status(self) -> Json:
        """With what others wrote into the file."""
        try:
            with self._workspace.turn() as turn:
                return _answer(turn.existing(current(turn)))
        except TenutoError as error:
            raise in_seeds_words(error) from None

    # -- which feature

    def _change(self, act: Callable[[Turn, Run], object]) -> Json:
        try:
            with self._workspace.turn() as turn:
                run = turn.existing(current(turn))
                refuse_ended(run)
                act(turn, run)
                return _answer(run)
        except TenutoError as error:
            raise in_seeds_words(error) from None

    def _look(self) -> Run:
        with self._workspace.journal.read() as reader:
            owner = reader.load_repo()["owners"].get(owner_key(self._workspace.tree))
            run = reader.load(owner) if owner else None
        if run is None:
            raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
        return run


def refuse_second(turn: Turn) -> None:
    """The file takes one feature at a time."""
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    run = turn.tx.load(owner) if owner else None
    if run is None or run["status"] in ENDED:
        return
    if turn.workspace.files().read(FILE) is None:
        _end_without_file(turn, run, f"{FILE} was removed")
    else:
        raise Refused(
            "feature-active",
            f"feature {run['dialects'][name].get('name') or owner} is in {phase_of(run)}",
            "end it first: tenuto feature commit, or tenuto feature cancel",
            run=owner,
        )


def _end_without_file(turn: Turn, run: Run, why: str) -> None:
    """Its users end a feature by removing the file, or by writing the next one into it. The journal keeps what was."""
    if run["driver"] != "manual":
        message = f"{why}, but run {run['id']} is driven by Tenuto"
        raise Refused("feature-active", message, f"tenuto repair --restore {FILE}, or tenuto cancel {run['id']}")
    where = phase_of(run)
    if turn.repo["owners"].get(owner_key(turn.workspace.tree)) == run["id"]:
        turn.do_repo({"do": "OwnFile", "path": owner_key(turn.workspace.tree), "run": None})
    turn.do(run["id"], {"do": "Cancel", "reason": why})
    turn.workspace.warn(f"{why}: feature {run['dialects'][name].get('name') or run['id']} ended in {where}")


def take_up(turn: Turn, owner: str, body: bytes) -> str | None:
    """The run of another feature that was begun in the file; None where it still tells of the same one."""
    run = turn.tx.load(owner)
    if run is None or not is_another(run, body):
        return None
    state = recognised(FILE, body)
    phases, feature = state.get("phases", {}), state["currentFeature"]
    behind = [
        p for p in PHASES[PHASES.index("approval") + 1 :] if phases.get(p, "pending") in ("in_progress", "completed")
    ]
    claimed = ["approval"] if _STEP_STATUS.get(str(phases.get("approval")).lower()) == "completed" else behind
    if claimed:
        message = (
            f"{FILE} begins feature {feature['name']!r} with {claimed[0]} {phases[claimed[0]]}: nobody has approved it"
        )
        hint = "set approval and what follows to pending; then: tenuto feature answer approval --approve"
        raise Refused("not-a-decision", message, hint, path=FILE)
    _refuse_earlier(turn, feature)
    adopted = adopt(turn, FILE, body)
    if run["status"] not in ENDED:
        _end_without_file(turn, run, f"{FILE} was taken over by {feature['name']}")
    return adopted


def _refuse_earlier(turn: Turn, feature: Json) -> None:
    """A program that still holds an earlier feature's text must not bring that feature back."""
    wanted, number = slug(feature["name"]), 1
    while (run := turn.tx.load(wanted if number == 1 else f"{wanted}-{number}")) is not None:
        place = run["dialects"].get(name)
        if place and feature.get("startedAt") == (place.get("startedAt") or run["created_at"]):
            message = f"{FILE} tells of {feature['name']!r} again, which is run {run['id']} and {run['status']}"
            raise Refused("feature-ended", message, f"tenuto repair --restore {FILE}", path=FILE)
        number += 1


def current(turn: Turn) -> str:
    """The run that this work tree's file shows. A file from before Tenuto is taken over; so is another feature that was
    begun in it."""
    tree = turn.workspace.tree
    owner = turn.repo["owners"].get(owner_key(tree))
    body = turn.workspace.files().read(FILE)
    if owner is not None:
        return (take_up(turn, owner, body) if body is not None else None) or str(owner)
    if body is None:
        raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
    return adopt(turn, FILE, body)


def _answer(run: Run) -> Json:
    since, reason = pause(run)
    done = sum(1 for _, item in tasks(run) if item["status"] == "completed")
    return {
        "run": run["id"],
        "status": run["status"],
        "phase": phase_of(run),
        "file": FILE,
        "tasks": {"completed": done, "total": len(tasks(run))},
        "paused": {"at": since, "reason": reason} if since else None,
        "state": document(run),
    }


# ---- a feature that the engine drives --------------------------------------------------------------


class FeatureStateDialect(Dialect):
    name = name

    def adopt(self, turn: Turn, path: str, body: bytes) -> str:
        return adopt(turn, path, body)

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        return {"place": {"tree": tree, "name": run}, "order": "open", "schedule": schedule()}

    def opened(self, turn: Turn, run: str) -> None:
        """The file takes one feature at a time: an unfinished one is never written over."""
        refuse_second(turn)
        turn.do_repo({"do": "OwnFile", "path": owner_key(turn.workspace.tree), "run": run})

    def collected(self, turn: Turn, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
        """The discovery agent ends with a JSON block: {"discoveryAnswers": {...}}."""
        if run["attempts"][attempt]["step"] != "discovery":
            return
        from tenuto.knowledge.findings import answer

        block = answer(reply)
        answers = block.get("discoveryAnswers", block) if isinstance(block, dict) else None
        if isinstance(answers, dict):
            known = {key: str(value) for key, value in answers.items() if key in ANSWERS and value}
            if known:
                turn.do(run["id"], {"do": "RecordAnswers", "answers": known})


class FeatureDocsDialect(Dialect):
    """It has no commands of its own: its runs are driven with `tenuto run`."""

    name = feature_docs.name

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        return {"place": feature_docs.place(run, tree)}
