"""Somebody changed flow-state.json: the same in commands, which decide() judges like any others.

    agent_history       an entry more: a delegation (and its end); a status that ended: a completion
    user_checkpoints    an entry more: a rejection of the phase under way. An approval is refused: nobody knows who wrote it
    commits_created     an entry more: a commit
    phase               the same as update_phase: never past an approval that nobody gave
    quality_gates       the caller's own flags; a claim about one that follows must be true
    context_summary     as told;  resumed_at: taken up again
    what we do not know kept where it stands

Histories only grow. next_actions, current_step, completed_phases and times follow: ours are shown again.

A generator: after each command the run stands where that command led.
"""

from __future__ import annotations

from tenuto.core.tickets import COMPLETE, PHASES, phase_of
from tenuto.dialects.differences import ABSENT, changes, dropped, nested
from tenuto.dialects.flow import CHECKPOINT, COMMIT, ENTRY, entry, name
from tenuto.dialects.flow.commands import ENDS
from tenuto.encoding import loads_strict
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenuto.core.records import Json, Run

_OPEN = ("in_progress", "in-progress", "running", "started")
_LABELS = ("started_at", "updated_at", "current_step", "completed_phases", "next_actions")
_TRANSLATED = ("workflow_id", "phase", "agent_history", "user_checkpoints", "commits_created", "context_summary",
               "quality_gates", "resumed_at")  # fmt: skip


def understand(run: Run, path: str, before: bytes, after: bytes) -> Iterator[Any]:
    old, new = loads_strict(before) if before else {}, loads_strict(after)
    if not isinstance(new, dict) or not isinstance(old, dict):
        raise Refused("not-an-object", f"{path} holds no JSON object", path=path)
    if new.get("workflow_id") != old.get("workflow_id"):
        raise Refused("not-yours", "workflow_id names the workflow; it cannot become another one", path=path)
    told = yield from _history(run, _list(old, "agent_history"), _list(new, "agent_history"))
    yield from _checkpoints(run, _list(old, "user_checkpoints"), _list(new, "user_checkpoints"))
    yield from _commits(_list(old, "commits_created"), _list(new, "commits_created"))
    yield from _phase(run, old, new)
    yield from _rest(old, new)
    kept = [c for c in changes(old, new) if c[0][0] not in _TRANSLATED and c[0][0] not in _LABELS]
    extra = nested(kept) | ({"agent_history": told} if told else {})
    yield {"do": "AbsorbEdit", "extra": extra, "drop": dropped(kept)}


def _list(document: Json, key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise Refused("not-a-list", f"{key} is a list", key=key)
    return value


def _history(run: Run, old: list[Any], new: list[Any]) -> Any:
    """Returns what was told afterwards of delegations that had ended."""
    if len(new) < len(old):
        raise Refused("history-rewritten", "agent_history only grows", "undo the change", key="agent_history")
    attempts, told = _attempts_of(run, old), {}
    for number, said in enumerate(new):
        if not isinstance(said, dict) or not isinstance(said.get("agent"), str):
            raise Refused("bad-entry", f"agent_history[{number}] names no agent", key="agent_history")
        if number >= len(old):
            yield from _delegated(run, said)
            continue
        attempt = attempts[number]
        if said != old[number] and attempt is not None:
            changed = {key: value for key, value in said.items() if value != old[number].get(key, ABSENT)}
            rest = yield from _changed(run, attempt, changed)
            if rest:
                told[attempt] = rest
    return told


def _attempts_of(run: Run, entries: list[Any]) -> list[str | None]:
    """Which attempt each entry is about. Theirs and ours may stand in another order than in the run by now."""
    left = dict(run["attempts"])
    found: list[str | None] = []
    for said in entries:
        named = (said.get("agent"), said.get("task", "")) if isinstance(said, dict) else None
        match = next((key for key, attempt in left.items() if (attempt["role"], attempt["task"]) == named), None)
        left.pop(match, None)  # type: ignore[arg-type]
        found.append(match)
    return found


def _delegated(run: Run, said: Json) -> Iterator[Any]:
    attempt, status = f"a{len(run['attempts']) + 1}", said.get("status", "in_progress")
    _check_status(status)
    extra = {key: value for key, value in said.items() if key not in ENTRY}
    summary = str(said.get("output_summary", ""))
    yield {
        "do": "DispatchAttempt", "attempt": attempt, "role": said["agent"], "task": str(said.get("task", "")),
        "summary": summary, "extra": extra,
    }  # fmt: skip
    if status in ENDS:
        yield {"do": "FinishAttempt", "attempt": attempt, "status": ENDS[status], "summary": summary}


def _check_status(status: object) -> None:
    if not isinstance(status, str) or (status not in _OPEN and status not in ENDS):
        raise Refused("bad-status", f"agent_history: there is no status {status!r}", key="agent_history")


def _changed(run: Run, attempt: str, changed: Json) -> Any:
    """An entry that was there says something else now."""
    known = run["attempts"][attempt]
    for field in ("agent", "task"):
        if field in changed:
            raise Refused("history-rewritten", f"agent_history: {field} of a delegation cannot change", key="agent_history")
    extra = {key: value for key, value in changed.items() if key not in ENTRY}
    summary, status = str(changed.get("output_summary", "")), changed.get("status")
    is_open = known["status"] in ("dispatched", "running")
    if status is not None:
        _check_status(status)
    if status is not None and status not in _OPEN and ENDS[status] != known["status"]:
        yield {"do": "FinishAttempt", "attempt": attempt, "status": ENDS[status], "summary": summary, "extra": extra}
        return {}
    if status in _OPEN and not is_open:
        raise Refused("history-rewritten", f"agent_history: {known['role']!r} has ended; delegate again", key="agent_history")
    rest = {key: value for key, value in changed.items() if key in ("output_summary", *extra)}
    return {key: value for key, value in rest.items() if entry(known).get(key) != value}


def _checkpoints(run: Run, old: list[Any], new: list[Any]) -> Iterator[Any]:
    since = [decision["step"] for decision in run["decisions"][len(old) :] if decision["approved"]]
    for said in _appended(old, new, "user_checkpoints"):
        if said.get("approved") is True and said.get("phase") in since:
            continue  # approved by somebody else since they read the file
        if said.get("phase") not in PHASES or not isinstance(said.get("approved"), bool):
            raise Refused("bad-entry", "user_checkpoints: an entry has a phase and approved, true or false", key="user_checkpoints")
        if said["approved"]:
            message = f"nobody knows who wrote the approval of {said['phase']} into the file: a person gives it with update_user_checkpoint"
            raise Refused("not-a-decision", message, key="user_checkpoints")
        told = {key: value for key, value in said.items() if key not in CHECKPOINT}
        yield {
            "do": "Checkpoint", "step": said["phase"], "approved": False, "who": "external",
            "feedback": str(said.get("user_feedback", "")), "proof": {"told": told} if told else {},
        }  # fmt: skip


def _commits(old: list[Any], new: list[Any]) -> Iterator[Any]:
    for said in _appended(old, new, "commits_created"):
        if not isinstance(said.get("commit_hash"), str) or not said["commit_hash"]:
            raise Refused("bad-entry", "commits_created: an entry has a commit_hash", key="commits_created")
        yield {
            "do": "RecordCommit", "step": str(said.get("step", "")), "hash": said["commit_hash"],
            "message": str(said.get("commit_message", "")),
            "extra": {key: value for key, value in said.items() if key not in COMMIT},
        }  # fmt: skip


def _appended(old: list[Any], new: list[Any], key: str) -> list[Json]:
    if new[: len(old)] != old:
        raise Refused("history-rewritten", f"{key} only grows", "undo the change", key=key)
    added = new[len(old) :]
    if not all(isinstance(said, dict) for said in added):
        raise Refused("bad-entry", f"{key} holds objects", key=key)
    return added


def _phase(run: Run, old: Json, new: Json) -> Iterator[Any]:
    wanted, every = new.get("phase"), (*PHASES, COMPLETE)
    if wanted == old.get("phase") or wanted == phase_of(run):
        return
    if wanted not in every:
        raise Refused("no-such-phase", f"there is no phase {wanted!r}", key="phase")
    if old.get("phase") in every and every.index(old["phase"]) < every.index(wanted) < every.index(phase_of(run)):
        return  # forwards for them, and the run is past it already
    yield {"do": "Advance", "to": "COMPLETE" if wanted == COMPLETE else wanted}


def _rest(old: Json, new: Json) -> Iterator[Any]:
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
