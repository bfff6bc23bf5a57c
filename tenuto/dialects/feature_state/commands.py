"""`tenuto feature ...`: what a person, or an agent for them, asks of the feature in this work tree.

Each command is one turn: everything it changes is durable together, or nothing is. Answers are records;
who prints them is not known here.
"""

from __future__ import annotations

from tenuto.core.boundaries import closed
from tenuto.core.names import slug
from tenuto.dialects.feature_state import (
    ANSWERS,
    FILE,
    MAY_BE_SKIPPED,
    NOT_FOUND,
    PHASES,
    PIPELINE,
    document,
    in_seeds_words,
    name,
    owner_key,
    pause,
    phase_of,
    refuse_ended,
    schedule,
    tasks,
)  # fmt: skip
from tenuto.dialects.feature_state.progress import complete, completed, enter, next_phase, status_of, task_changed
from tenuto.errors import BadInput, NotFound, Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json, Run

_OVER = ("completed", "failed", "cancelled", "graduated")


class FeatureCommands:
    """`workspace.feature_state`"""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def start(
        self, title: str, description: str = "", *, skip: list[str] | None = None, hooks: Json | None = None,
        session: str = "",
    ) -> Json:  # fmt: skip
        """A new feature takes over `.feature-state.json`."""
        for phase in skip or ():
            if phase not in MAY_BE_SKIPPED:
                allowed = " and ".join(MAY_BE_SKIPPED)
                raise BadInput("not-skippable", f"{phase!r} cannot be skipped; {allowed} can")
        called, tree = slug(title), self._workspace.tree
        with self._workspace.turn() as turn:
            refuse_second(turn)
            run_id = turn.unused(called)
            turn.do(run_id, {
                "do": "StartRun", "run": run_id, "name": title, "request": description or title,
                "summary": description.partition("\n")[0], "pipeline": {"name": PIPELINE, "hash": None},
                "dialects": {name: {"tree": tree, "name": called}}, "order": "open", "schedule": schedule(),
                "settings": {"hooks": hooks} if hooks else {},
            })  # fmt: skip
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
        """The discovery answers, by their names (others are kept as well)."""

        def record(turn: Any, run: Run) -> None:
            turn.do(run["id"], {"do": "RecordAnswers", "answers": answers})
            if status_of(run, "discovery") == "running" and all(run["answers"].get(key) for key in ANSWERS):
                complete(turn, run, "discovery", next_phase(run, "discovery"), {})

        return self._change(record)

    def approve(self, who: str, feedback: str = "") -> Json:
        """A person's word: the implementation may begin."""
        return self._decide(who, feedback, approved=True)

    def revise(self, who: str, feedback: str) -> Json:
        """A person's word: not yet. The plan is taken up again with this feedback."""
        return self._decide(who, feedback, approved=False)

    def _decide(self, who: str, feedback: str, approved: bool) -> Json:
        def decide(turn: Any, run: Run) -> None:
            if status_of(run, "approval") == "completed":
                raise Refused("already-approved", f"{run['id']} was approved before", "tenuto feature status")
            proof = turn.workspace.person("give an approval", True, run)
            turn.do(run["id"], {
                "do": "Checkpoint", "step": "approval", "approved": approved, "who": who, "feedback": feedback, "proof": proof,
            })  # fmt: skip
            if not approved:
                turn.do(run["id"], {"do": "EndStep", "step": "approval", "status": "failed", "summary": feedback})
                turn.do(run["id"], {"do": "StartStep", "step": "plan"})

        return self._change(decide)

    def plan(self, descriptions: list[str]) -> Json:
        """More tasks, behind those that are there."""

        def add(turn: Any, run: Run) -> None:
            first = len(run["items"]) + 1
            items = {str(first + i): {"title": text} for i, text in enumerate(descriptions)}
            turn.do(run["id"], {"do": "PlanItems", "items": items})

        return self._change(add)

    def skip(self, phase: str) -> Json:
        def leave_out(turn: Any, run: Run) -> None:
            if phase not in MAY_BE_SKIPPED:
                raise BadInput("not-skippable", f"{phase!r} cannot be skipped; {' and '.join(MAY_BE_SKIPPED)} can")
            begun = status_of(run, phase) == "running"
            if begun:
                turn.do(run["id"], {"do": "EndStep", "step": phase, "status": "failed", "summary": "left out"})
            turn.do(run["id"], {"do": "SkipStep", "step": phase, "reason": "left out"})
            following = next_phase(run, phase)
            if begun and following:
                enter(turn, run, following, {})

        return self._change(leave_out)

    def phase(self, phase: str, told: Json | None = None) -> Json:
        """A phase is done; the next one begins. `approval` has a command of its own."""

        def end(turn: Any, run: Run) -> None:
            if phase not in PHASES or phase == "approval":
                raise BadInput(
                    "no-such-phase", f"there is no phase {phase!r} to complete; there are {', '.join(PHASES)}"
                )
            complete(turn, run, phase, next_phase(run, phase), told or {})
            if status_of(run, phase) != "completed":
                raise Refused("not-completed", turn.workspace.warnings.pop(), "tenuto feature status", phase=phase)

        return self._change(end)

    def report(self, payload: Json) -> Json:
        """SubagentStop and task_update payloads, as hooks and agents write them."""
        return self._change(task_changed if payload.get("type") == "task_update" else completed, payload)

    def resume(self, session: str = "") -> Json:
        """What to go on with; `pausedAt` goes away."""
        told: list[str] = []

        def restore(turn: Any, run: Run) -> None:
            from tenuto.dialects.feature_state.context import words

            told.append(words(run))
            if run["status"] in ("paused", "stopped", "parked"):
                turn.workspace.person("let a feature go on", False, run)
                turn.do(run["id"], {"do": "Resume"})
            turn.do(run["id"], {"do": "RestoreContext", "session": session})
            if session:
                turn.bind(run["id"], session)

        return self._change(restore) | {"context": "".join(told)}

    def cancel(self, reason: str = "") -> Json:
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

        def record(turn: Any, run: Run) -> None:
            enter(turn, run, "commit", {})
            turn.do(run["id"], {"do": "RecordCommit", "step": "commit", "hash": commit_hash, "message": message})
            for visit in [visit for visit in run["visits"] if visit["status"] == "running"]:
                turn.do(run["id"], {"do": "EndStep", "step": visit["step"], "status": "success"})
            turn.do(run["id"], {"do": "Finish"})

        return self._change(record)

    def status(self) -> Json:
        """As the journal has it; nothing is locked, nothing is written."""
        return _answer(self._look())

    # -- which feature

    def _change(self, act: Callable[..., Any], *more: Any) -> Json:
        try:
            with self._workspace.turn() as turn:
                run = turn.existing(current(turn))
                refuse_ended(run)
                act(turn, run, *more)
                return _answer(run)
        except TenutoError as error:
            raise in_seeds_words(error) from None

    def _look(self) -> Run:
        with self._workspace.journal.read() as reader:
            owner = reader.load_repo()["owners"].get(owner_key(self._workspace.tree))
            run = reader.load(owner) if owner else None
        if run is None:
            raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
        return run  # type: ignore[no-any-return]


def refuse_second(turn: Any) -> None:
    """The file takes one feature at a time."""
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    run = turn.tx.load(owner) if owner else None
    if run is not None and run["status"] not in _OVER:
        raise Refused(
            "feature-active", f"feature {run['dialects'][name].get('name') or owner} is in {phase_of(run)}",
            "end it first: tenuto feature commit, or tenuto feature cancel", run=owner,
        )  # fmt: skip


def current(turn: Any) -> str:
    """The run that this work tree's file shows. A file from before Tenuto is taken over."""
    tree = turn.workspace.tree
    owner = turn.repo["owners"].get(owner_key(tree))
    if owner is not None:
        return str(owner)
    body = turn.workspace.files().read(FILE)
    if body is None:
        raise NotFound("state-missing", NOT_FOUND, "tenuto feature start NAME")
    from tenuto.dialects.feature_state.adoption import adopt

    return adopt(turn, FILE, body)


def _answer(run: Run) -> Json:
    since, reason = pause(run)
    done = sum(1 for _, item in tasks(run) if item["status"] == "completed")
    return {
        "run": run["id"], "status": run["status"], "phase": phase_of(run), "file": FILE,
        "tasks": {"completed": done, "total": len(tasks(run))},
        "paused": {"at": since, "reason": reason} if since else None, "state": document(run),
    }  # fmt: skip
