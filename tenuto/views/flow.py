"""`.ai-workspace/<ticket>/flow-state.json`: a ticket from understanding to a merge request, a checkpoint after each
phase.

`next_actions`, `current_step` and the flags among `quality_gates` follow from what happened (tenuto.core.rules);
no caller is asked for them.

Another program changed the file: the same in commands, which decide() judges like any others.

    agent_history       an entry more: a delegation (and its end); a status that ended: a completion
    user_checkpoints    an entry more: a rejection of the phase under way. An approval is refused: its author is not
                        known
    commits_created     an entry more: a commit
    phase               the same as update_phase: never past an approval that was not given
    quality_gates       the caller's own flags; a claim about one that follows must be true
    context_summary     as written;  resumed_at: taken up again
    unknown keys        kept where they stand

Histories only grow. next_actions, current_step, completed_phases and times follow: ours are shown again.

A flow-state.json that was there before Tenuto: the run that it tells of. Real files drift: entries lack fields,
statuses are spelled in other ways, flags are claimed. All of this is read, and unknown keys stay in the file. A file
that tells of no workflow belongs to another tool: it is refused by name, and not touched. Until something happens to a
workflow that was taken over, labels that follow are shown as its file has them.
"""

from __future__ import annotations

from tenuto.core.parts import new_attempt, new_step, new_visit, past_visit
from tenuto.core.rules import COMPLETE, PHASES, current_step, flags, next_actions, phase_of
from tenuto.encoding import NotJson, loads_strict, pretty
from tenuto.errors import Refused
from tenuto.views.differences import ABSENT, absorbed, changes, dropped, nested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Literal

    from tenuto.core.records.commands import Command
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import (
        Attempt,
        Commit,
        Decision,
        Ended,
        Json,
        Repo,
        Run,
        ScheduledStep,
        StepState,
        Visit,
    )
    from tenuto.ports import Surroundings


name = "flow"
missing: Literal["rewrite"] = "rewrite"
stand_in: dict[str, str] = {}
dispensable: tuple[str, ...] = ()

FOLDER = ".ai-workspace"
FILE = "flow-state.json"
PIPELINE = "ticket"
STATUS = {
    "dispatched": "in_progress",
    "running": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "blocked": "blocked",
    "lost": "failed",
}
ENDS: dict[str, Ended] = {
    "completed": "completed",
    "complete": "completed",
    "success": "completed",
    "failed": "failed",
    "failure": "failed",
    "error": "failed",
    "blocked": "blocked",
}
"""The words for the end of a delegation that are in use."""
ENTRY = ("agent", "task", "status", "timestamp", "output_summary")
CHECKPOINT = ("phase", "approved", "timestamp", "user_feedback")
COMMIT = ("step", "commit_hash", "commit_message", "timestamp")
ENTRY_FIELDS = (
    "timestamp",
    "step",
    "step_number",
    "commit_checkpoint",
    "commit_hash",
    "commit_message",
    "files_created",
    "files_modified",
    "files_committed",
    "tests_added",
    "validation_passed",
    "validation_results",
    "blocking_issues",
    "integration_ready",
    "ready_for_commit",
    "next_step_ready",
)
"""What reporters tell of their work besides, kept with its entry. Anything else goes into `extra`."""
OPEN = ("in_progress", "in-progress", "running", "started")
"""The words for a delegation that is under way."""
_ADOPTED_ONLY = 1  # the version of a run that was adopted, and to which nothing happened since
_KEPT_LABELS = ("updated_at", "current_step", "next_actions")
_LABELS = ("started_at", "updated_at", "current_step", "completed_phases", "next_actions")
_TRANSLATED = (
    "workflow_id",
    "phase",
    "agent_history",
    "user_checkpoints",
    "commits_created",
    "context_summary",
    "quality_gates",
    "resumed_at",
)
_HOOKS_OWN = ("session", "depth")
KEYS = (
    "workflow_id",
    "phase",
    "started_at",
    "updated_at",
    "current_step",
    "completed_phases",
    "next_actions",
    "agent_history",
    "user_checkpoints",
    "commits_created",
    "context_summary",
    "quality_gates",
    "resumed_at",
)


def schedule() -> list[ScheduledStep]:
    return [{"step": phase, "approval": True} for phase in PHASES]


def mend_of(phase: str) -> str:
    """What takes the place of an approval of this phase that somebody wrote into the file."""
    return f"tenuto flow update_user_checkpoint --phase {phase} --approved true"


def path_of(folder: str) -> str:
    return f"{FOLDER}/{folder}/{FILE}"


def folder_of(run: Run) -> str:
    return str(run["dialects"][name].get("folder") or run["id"])


def describe(folder: str) -> str:
    """The ticket in a folder's name: TICKET-123-description -> TICKET-123; without one, the whole name."""
    head, _, rest = folder.partition("-")
    number = rest.partition("-")[0]
    return f"{head}-{number}" if head.isalpha() and head.isupper() and number.isdecimal() else folder


def paths(run: Run, repo: Repo) -> list[str]:
    return [path_of(folder_of(run))]


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    return {path_of(folder_of(run)): pretty(document(run)).encode()}


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    return {}


# ---- what the file shows ---------------------------------------------------------------------------


def document(run: Run) -> Json:
    place, extra, phase = run["dialects"][name], run["extra"].get(name, {}), phase_of(run)
    own = run["settings"].get(name, {})
    shown: Json = {
        "workflow_id": place.get("ticket") or folder_of(run),
        "phase": phase,
        "started_at": run["created_at"],
        "updated_at": run["updated_at"],
        "current_step": current_step(run),
        "completed_phases": list(PHASES if phase == COMPLETE else PHASES[: PHASES.index(phase)]),
        "next_actions": next_actions(run),
        "agent_history": history(run),
        "user_checkpoints": [_checkpoint(run, decision) for decision in run["decisions"]],
        "commits_created": [_commit(commit) for commit in run["commits"]],
        "context_summary": own.get("context_summary", run["summary"]),
        "quality_gates": flags(run),
    }
    if run["version"] == _ADOPTED_ONLY:
        shown |= place.get("labels", {})
    if run["resumed_at"]:
        shown["resumed_at"] = run["resumed_at"]
    for key, value in extra.items():
        if key not in KEYS:
            shown[key] = value
    return shown


def history(run: Run) -> list[Json]:
    later = run["extra"].get(name, {}).get("agent_history", {})
    return [entry(attempt) | later.get(key, {}) for key, attempt in run["attempts"].items()]


def entry(attempt: Attempt) -> Json:
    """One delegation, with the further fields that its reporter gave."""
    shown: Json = {
        "agent": attempt["role"],
        "task": attempt["task"],
        "status": STATUS[attempt["status"]],
        "timestamp": attempt["ended_at"] or attempt["started_at"],
        "output_summary": attempt["summary"],
    }
    extra = attempt["extra"]
    if "seat" in extra:
        return shown  # an engine keeps notes of its own there
    if attempt["agent"]:  # so does a hook
        extra = {key: value for key, value in extra.items() if key not in _HOOKS_OWN}
    return shown | extra


def _checkpoint(run: Run, decision: Decision) -> Json:
    shown = {
        "phase": _phase_decided(run, decision),
        "approved": decision["approved"],
        "timestamp": decision["at"],
        "user_feedback": decision["feedback"],
    }
    extra = decision["proof"].get("told")
    return shown | extra if isinstance(extra, dict) else shown


def _phase_decided(run: Run, decision: Decision) -> str:
    """A gate of an engine is called after its phase; a checkpoint is its step."""
    for word in (decision["step"], decision["name"], str(decision["step"]).rpartition("-")[0]):
        if word in PHASES:
            return str(word)
    return phase_of(run)


def _commit(commit: Commit) -> Json:
    return {
        "step": commit["step"],
        "commit_hash": commit["hash"],
        "commit_message": commit["message"],
        "timestamp": commit["at"],
        **commit["extra"],
    }


# ---- what another program wrote --------------------------------------------------------------------


def read(run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> Iterator[Command]:
    """A generator: after each command the run stands where that command led."""
    old, new = loads_strict(before) if before else {}, loads_strict(after)
    if not isinstance(new, dict) or not isinstance(old, dict):
        raise Refused("not-an-object", f"{path} holds no JSON object", path=path)
    if new.get("workflow_id") != old.get("workflow_id"):
        raise Refused("not-yours", "workflow_id names the workflow; it cannot become another one", path=path)
    later = yield from _history(run, _list(old, "agent_history"), _list(new, "agent_history"))
    decided = [phase for phase in PHASES if around.file(mend_of(phase)) is not None]
    yield from _checkpoints(run, _list(old, "user_checkpoints"), _list(new, "user_checkpoints"), decided)
    yield from _commits(_list(old, "commits_created"), _list(new, "commits_created"))
    yield from _phase(run, old, new, decided)
    yield from _rest(old, new)
    unknown = [c for c in changes(old, new) if c[0][0] not in _TRANSLATED and c[0][0] not in _LABELS]
    extra = nested(unknown) | ({"agent_history": later} if later else {})
    yield absorbed(name, path, after, extra, dropped(unknown))


def _list(document: Json, key: str) -> list[object]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise Refused("not-a-list", f"{key} is a list", key=key)
    return value


def _history(run: Run, old: list[object], new: list[object]) -> Generator[Command, None, Json]:
    """Returns what was written afterwards about delegations that had ended, by attempt."""
    if len(new) < len(old):
        raise Refused("history-rewritten", "agent_history only grows", "undo the change", key="agent_history")
    attempts, later = _attempts_of(run, old), {}
    for number, entry in enumerate(new):
        if not isinstance(entry, dict) or not isinstance(entry.get("agent"), str):
            raise Refused("bad-entry", f"agent_history[{number}] names no agent", key="agent_history")
        if number >= len(old):
            yield from _delegated(run, entry)
            continue
        attempt, known = attempts[number], old[number]
        if entry != known and attempt is not None and isinstance(known, dict):
            changed = {key: value for key, value in entry.items() if value != known.get(key, ABSENT)}
            rest = yield from _changed(run, attempt, changed)
            if rest:
                later[attempt] = rest
    return later


def _attempts_of(run: Run, entries: list[object]) -> list[str | None]:
    """Which attempt each entry is about. Theirs and ours may stand in another order than in the run by now."""
    left = dict(run["attempts"])
    attempts: list[str | None] = []
    for entry in entries:
        named = (entry.get("agent"), entry.get("task", "")) if isinstance(entry, dict) else None
        match = next((key for key, attempt in left.items() if (attempt["role"], attempt["task"]) == named), None)
        if match is not None:
            del left[match]
        attempts.append(match)
    return attempts


def _delegated(run: Run, entry: Json) -> Iterator[Command]:
    attempt, status = f"a{len(run['attempts']) + 1}", entry.get("status", "in_progress")
    _check_status(status)
    summary = str(entry.get("output_summary", ""))
    yield {
        "do": "DispatchAttempt",
        "attempt": attempt,
        "role": entry["agent"],
        "task": str(entry.get("task", "")),
        "summary": summary,
        "extra": {key: value for key, value in entry.items() if key not in ENTRY},
    }
    if status in ENDS:
        yield {"do": "FinishAttempt", "attempt": attempt, "status": ENDS[status], "summary": summary}


def _check_status(status: object) -> None:
    if not isinstance(status, str) or (status not in OPEN and status not in ENDS):
        raise Refused("bad-status", f"agent_history: there is no status {status!r}", key="agent_history")


def _changed(run: Run, attempt: str, changed: Json) -> Generator[Command, None, Json]:
    """An entry that was there says something else now. Returns what no command says."""
    known = run["attempts"][attempt]
    for field in ("agent", "task"):
        if field in changed:
            raise Refused(
                "history-rewritten", f"agent_history: {field} of a delegation cannot change", key="agent_history"
            )
    extra = {key: value for key, value in changed.items() if key not in ENTRY}
    summary, status = str(changed.get("output_summary", "")), changed.get("status")
    is_open = known["status"] in ("dispatched", "running")
    if status is not None:
        _check_status(status)
    if status is not None and status not in OPEN and ENDS[status] != known["status"]:
        yield {"do": "FinishAttempt", "attempt": attempt, "status": ENDS[status], "summary": summary, "extra": extra}
        return {}
    if status in OPEN and not is_open:
        raise Refused(
            "history-rewritten", f"agent_history: {known['role']!r} has ended; delegate again", key="agent_history"
        )
    rest = {key: value for key, value in changed.items() if key in ("output_summary", *extra)}
    return {key: value for key, value in rest.items() if entry(known).get(key) != value}


def _checkpoints(run: Run, old: list[object], new: list[object], decided: list[str]) -> Iterator[Command]:
    """`decided`: a person decides on these phases right now; what others wrote about them counts for nothing."""
    since = [decision["step"] for decision in run["decisions"][len(old) :] if decision["approved"]]
    for entry in _appended(old, new, "user_checkpoints"):
        if entry.get("approved") is True and entry.get("phase") in (*since, *decided):
            continue  # approved since they read the file, or decided now
        if entry.get("phase") not in PHASES or not isinstance(entry.get("approved"), bool):
            raise Refused(
                "bad-entry",
                "user_checkpoints: an entry has a phase and approved, true or false",
                key="user_checkpoints",
            )
        if entry["approved"]:
            message = (
                f"nobody knows who wrote the approval of {entry['phase']} into the file: "
                "a person gives it with update_user_checkpoint"
            )
            mend = mend_of(str(entry["phase"]))
            raise Refused("not-a-decision", message, mend, key="user_checkpoints", mend=mend)
        extra = {key: value for key, value in entry.items() if key not in CHECKPOINT}
        yield {
            "do": "Checkpoint",
            "step": entry["phase"],
            "approved": False,
            "who": "external",
            "feedback": str(entry.get("user_feedback", "")),
            "proof": {"told": extra} if extra else {},
        }


def _commits(old: list[object], new: list[object]) -> Iterator[Command]:
    for entry in _appended(old, new, "commits_created"):
        if not isinstance(entry.get("commit_hash"), str) or not entry["commit_hash"]:
            raise Refused("bad-entry", "commits_created: an entry has a commit_hash", key="commits_created")
        yield {
            "do": "RecordCommit",
            "step": str(entry.get("step", "")),
            "hash": entry["commit_hash"],
            "message": str(entry.get("commit_message", "")),
            "extra": {key: value for key, value in entry.items() if key not in COMMIT},
        }


def _appended(old: list[object], new: list[object], key: str) -> list[Json]:
    if new[: len(old)] != old:
        raise Refused("history-rewritten", f"{key} only grows", "undo the change", key=key)
    added = [entry for entry in new[len(old) :] if isinstance(entry, dict)]
    if len(added) < len(new) - len(old):
        raise Refused("bad-entry", f"{key} holds objects", key=key)
    return added


def _phase(run: Run, old: Json, new: Json, decided: list[str]) -> Iterator[Command]:
    wanted, every = new.get("phase"), (*PHASES, COMPLETE)
    if wanted == old.get("phase") or wanted == phase_of(run):
        return
    if phase_of(run) in decided and wanted == every[every.index(phase_of(run)) + 1]:
        return  # where the person's word leads, if it does
    if wanted not in every:
        raise Refused("no-such-phase", f"there is no phase {wanted!r}", key="phase")
    if old.get("phase") in every and every.index(old["phase"]) < every.index(wanted) < every.index(phase_of(run)):
        return  # forwards for them, and the run is past it already
    yield {"do": "Advance", "to": "COMPLETE" if wanted == COMPLETE else wanted}


def _rest(old: Json, new: Json) -> Iterator[Command]:
    gates, before = new.get("quality_gates", {}), old.get("quality_gates", {})
    if not isinstance(gates, dict):
        raise Refused("bad-gates", "quality_gates is an object", key="quality_gates")
    claimed = {flag: value for flag, value in gates.items() if value != before.get(flag, ABSENT)}
    if claimed:
        yield {"do": "SetFlags", "flags": claimed}
    if new.get("context_summary") != old.get("context_summary"):
        yield {"do": "ChangeSettings", "changes": {name: {"context_summary": new.get("context_summary", "")}}}
    if "resumed_at" in new and new["resumed_at"] != old.get("resumed_at"):
        yield {"do": "PickUp"}


# ---- a file from before ---------------------------------------------------------------------------


_WORDS_FOR_PHASES = {
    "research": "understanding",
    "analysis": "understanding",
    "plan": "planning",
    "implementation": "execution",
    "implement": "execution",
    "execute": "execution",
    "integrate": "integration",
    "completed": COMPLETE,
    "done": COMPLETE,
}


def state_in(path: str, body: bytes) -> Json:
    """The state, or the refusal by name of what this is not."""
    try:
        state: Json = loads_strict(body)
    except NotJson as problem:
        raise Refused(
            "state-damaged", f"{path} is not JSON that can be read: {problem}", "mend it, or move it away", path=path
        ) from None
    lists = ("agent_history", "user_checkpoints", "commits_created", "completed_phases")
    sections = [key for key in lists if isinstance(state.get(key), list)] if isinstance(state, dict) else []
    if not sections or phase_in(state) is None:
        raise Refused(
            "not-a-flow-state",
            f"{path} is not a workflow's state: it has no phase and no history of agents",
            "it belongs to another tool and stays as it is; use another workspace name",
            path=path,
        )
    return state


def phase_in(state: Json) -> str | None:
    word = str(state.get("phase", "")).lower()
    return word if word in (*PHASES, COMPLETE) else _WORDS_FOR_PHASES.get(word)


def adopted(run: str, state: Json, place: Json, at: str) -> Json:
    """The run that a state tells of."""
    phase = phase_in(state) or PHASES[0]
    here = PHASES[-1] if phase == COMPLETE else phase
    started = _text(state.get("started_at")) or at
    decisions = [_decision_in(n, entry, started) for n, entry in enumerate(_objects(state, "user_checkpoints"), 1)]
    known = dict(state.get("quality_gates") or {}) if isinstance(state.get("quality_gates"), dict) else {}
    return {
        "id": run,
        "name": place["folder"],
        "request": _text(state.get("context_summary")) or place["folder"],
        "summary": _text(state.get("context_summary")),
        "created_at": started,
        "resumed_at": _text(state.get("resumed_at")) or None,
        "status": "completed" if phase == COMPLETE else "running",
        "stopped_at": _text(state.get("updated_at")) or started if phase == COMPLETE else None,
        "pipeline": {"name": PIPELINE, "hash": None},
        "dialects": {name: {**place, "labels": {key: state[key] for key in _KEPT_LABELS if key in state}}},
        "order": "strict",
        "schedule": schedule(),
        "position": here,
        "steps": {step: _step_in(step, here, phase) for step in PHASES},
        "visits": _visits_in(here, phase, started),
        "attempts": {
            f"a{n}": _attempt_in(entry, here, decisions, started)
            for n, entry in enumerate(_objects(state, "agent_history"), 1)
        },
        "decisions": decisions,
        "commits": [_commit_in(entry, started) for entry in _objects(state, "commits_created")],
        "flags": known,
        "extra": {name: {key: value for key, value in state.items() if key not in KEYS}},
    }


def _step_in(step: str, here: str, phase: str) -> StepState:
    if PHASES.index(step) < PHASES.index(here) or phase == COMPLETE:
        return new_step("completed", 1)
    return new_step("running", 1) if step == here else new_step()


def _visits_in(here: str, phase: str, started: str) -> list[Visit]:
    return [
        past_visit(step, "success", started, started, closed=0)
        if step != here or phase == COMPLETE
        else new_visit(step, started)
        for step in PHASES[: PHASES.index(here) + 1]
    ]


def _attempt_in(entry: Json, here: str, decisions: list[Decision], started: str) -> Attempt:
    status, at = ENDS.get(str(entry.get("status", "")).lower()), _text(entry.get("timestamp")) or started
    extra = {key: value for key, value in entry.items() if key not in ENTRY}
    if status is None and entry.get("status") not in ("in_progress", "running", None):
        extra["status"] = entry["status"]  # a word of their own, shown as it was
    phase = next((d["step"] for d in decisions if d["approved"] and d["at"] >= at and d["step"] in PHASES), None)
    task, summary = str(entry.get("task", "")), str(entry.get("output_summary", ""))
    attempt = new_attempt(phase or here, str(entry.get("agent", "")), at, task=task, summary=summary, extra=extra)
    attempt["status"] = status or "running"
    attempt["ended_at"] = at if status else None
    return attempt


def _decision_in(number: int, entry: Json, started: str) -> Decision:
    extra = {key: value for key, value in entry.items() if key not in CHECKPOINT}
    approved = entry.get("approved") is True
    return {
        "gate": f"checkpoint-{number}",
        "name": str(entry.get("phase", "")),
        "step": str(entry.get("phase", "")),
        "decision": "approve" if approved else "revise",
        "approved": approved,
        "feedback": str(entry.get("user_feedback", "")),
        "who": "external",
        "at": _text(entry.get("timestamp")) or started,
        "proof": {"told": extra} if extra else {},
    }


def _commit_in(entry: Json, started: str) -> Commit:
    return {
        "step": str(entry.get("step", "")),
        "hash": str(entry.get("commit_hash", "")),
        "message": str(entry.get("commit_message", "")),
        "at": _text(entry.get("timestamp")) or started,
        "extra": {key: value for key, value in entry.items() if key not in COMMIT},
    }


def _objects(state: Json, key: str) -> list[Json]:
    entries = state.get(key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
