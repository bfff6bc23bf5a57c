"""START_PHASE and END_PHASE, PAUSE, SET_GATE and RESUME: a task works, comes to rest, and goes on.

Whether any of it may happen is decided in core/. A gate is bound to what it shows: each artifact's hash is taken
when the gate is set and again when it is approved. A file that is not there yet is shown without a hash.

METRICS, SUMMARY and HISTORY: looking, never changing.

A look still takes in what others wrote into the task's files: a report that leaves it out would be wrong.
"""

from __future__ import annotations

from tenuto.dialects.context.language import in_words, wrong
from tenuto.dialects.context.tasks import as_written, candidates, find_task, for_change, keep_file, look_at_artifacts
from tenuto.encoding import pretty
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.names import file_key
from tenuto.views.context.state import (
    CURRENT,
    HISTORY,
    as_found,
    ended_visits,
    folder_of,
    is_known,
    manifest,
    manifest_of,
    measure,
    metrics,
    metrics_of,
    phase_of,
    retries,
    situation,
    status_of,
    tree_of,
    visits_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.commands import Command
    from tenuto.core.records.run import Run, Shown, Visit
    from tenuto.dialects.context.language import (
        GateSet,
        History,
        Measured,
        Paused,
        PhaseEnded,
        PhaseStarted,
        Resumed,
        Summarized,
    )
    from tenuto.views.context.state import Figures, Metrics
    from tenuto.workspace.workspace import Turn, Workspace


RESULTS = ("success", "failed")
GATES = ("design", "final")
DECISIONS = ("approve", "reject", "retry", "revise")
# After a gate: (its name, the decision) -> where the work goes on.
ROUTES = {
    ("design", "approve"): "spec-writer",
    ("design", "revise"): "architect-revision",
    ("final", "revise"): "implementation-fix",
}
# For gates of other names, adopted with a folder: what follows the last phase that succeeded.
ORDER = ("architect", "design-audit", "spec-writer", "implementer", "test-writer", "test-runner", "impl-audit")
NOWHERE = "none"


# ---- phases ----------------------------------------------------------------------------------------


def start_phase(workspace: Workspace, phase: str, task: str) -> PhaseStarted:
    name = _phase(phase)
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(run["id"], {"do": "StartStep", "step": name})
        except TenutoError as refusal:
            raise in_words("START_PHASE", refusal, run) from None
        return {"status": "success", "task": run["id"], "phase_started": name, "started_at": turn.at}


def end_phase(workspace: Workspace, phase: str, status: str, task: str) -> PhaseEnded:
    name, result = _phase(phase), _result(status)
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(run["id"], {"do": "EndStep", "step": name, "status": result})
        except TenutoError as refusal:
            raise in_words("END_PHASE", refusal, run) from None
        ended = max((visit for visit in run["visits"] if visit["closed"] is not None), key=lambda v: v["closed"] or 0)
        _settle_metrics(turn, run)
        return {
            "status": "success",
            "task": run["id"],
            "phase_ended": name,
            "duration_ms": ended["duration_ms"] or 0,
            "result": result,
            "running_phases": sum(1 for visit in run["visits"] if visit["status"] == "running"),
        }


def _result(status: str) -> Literal["success", "failed"]:
    match status.strip().lower():
        case "success":
            return "success"
        case "failed":
            return "failed"
    raise wrong(f"Invalid status: {status}. Use {' or '.join(RESULTS)}")


def _phase(phase: str) -> str:
    name = ":".join(" ".join(part.split()) for part in phase.split(":"))
    if not name:
        raise wrong("Missing required parameter: phase")
    if "," in name:
        raise wrong(f"Invalid phase: {name}. One phase per command")
    return name


def _settle_metrics(turn: Turn, run: Run) -> None:
    """Another program's metrics of a task of that name are kept before ours take their place."""
    if sum(1 for visit in run["visits"] if visit["closed"] is not None) == 1:
        keep_file(turn, run, metrics_of(run["id"]))


# ---- rests -----------------------------------------------------------------------------------------


def pause(workspace: Workspace, reason: str, recommendations: list[str], last_feedback: str, task: str) -> Paused:
    if not reason.strip():
        raise wrong("Missing required parameter: reason")
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            turn.do(
                run["id"],
                {
                    "do": "Pause",
                    "reason": reason,
                    "recommendations": recommendations,
                    "feedback": last_feedback,
                },
            )
        except TenutoError as refusal:
            raise in_words("PAUSE", refusal, run) from None
        return {
            "status": "success",
            "task": run["id"],
            "action": "paused",
            "reason": reason,
            "recommendations": recommendations,
            "resume_with": f"/resume {run['id']}",
        }


def set_gate(workspace: Workspace, gate: str, prompt: str, artifacts: list[str], task: str) -> GateSet:
    name = gate.strip().lower()
    with workspace.turn() as turn:
        run = for_change(turn, task)
        if name not in GATES and not any(visit["status"] == "running" for visit in visits_of(run)):
            raise wrong(f"Invalid gate type: {gate.strip()}")
        if name in GATES and not prompt.strip():
            raise wrong("Missing required parameter: prompt")
        command: Command = {
            "do": "OpenGate",
            "name": name,
            "prompt": prompt,
            "completes": name == "final",
            "shown": _with_hashes(turn, run, artifacts),
        }
        try:
            turn.do(run["id"], command)
        except TenutoError as refusal:
            raise in_words("SET_GATE", refusal, run) from None
        return {
            "status": "success",
            "task": run["id"],
            "action": "gate_set",
            "gate": name,
            "prompt": prompt,
            "artifacts": artifacts,
            "resume_with": f"/resume {run['id']}",
        }


def _with_hashes(turn: Turn, run: Run, artifacts: list[str]) -> list[Shown]:
    """Each path as it was written, with the hash of what lies there now."""
    return [{"path": path, "sha256": _hash_of(turn, run, path)} for path in artifacts]


def _hash_of(turn: Turn, run: Run, path: str) -> str | None:
    files = turn.workspace.files(tree_of(run))
    bare = path.removeprefix("./")
    if files.root and bare.startswith(files.root.rstrip("/") + "/"):
        bare = bare[len(files.root.rstrip("/")) + 1 :]
    try:
        return files.hash_of(bare) or files.hash_of(f"{folder_of(run['id'])}/{bare}")
    except (BadInput, Refused):
        raise wrong(f"Invalid artifact path: {path}. Use paths below the repository") from None


def resume(workspace: Workspace, decision: str, feedback: str, task: str) -> Resumed:
    word = decision.strip().lower()
    with workspace.turn() as turn:
        run = for_change(turn, task)
        previous = status_of(run)
        if word not in DECISIONS and previous in ("paused", "waiting_gate"):
            raise wrong(f"Invalid decision: {decision.strip()}. Use approve, reject, or retry")
        from_phase = run["pause"]["step"] if run["pause"] else None
        gate = run["gate"]["name"] if run["gate"] else ""
        try:
            turn.do(run["id"], _answer(turn, run, word, feedback))
        except TenutoError as refusal:
            raise in_words("RESUME", refusal, run) from None
        if run["status"] == "completed" and gate == "final":
            from tenuto.dialects.context.retrieving import remember_candidates

            remember_candidates(turn, run)
        return {
            "status": "success",
            "task": run["id"],
            "action": "resumed",
            "previous_state": previous,
            "decision": word,
            "continue_from": _continue_from(run, word, gate, from_phase),
            "completed_phases": [phase_of(visit) for visit in ended_visits(run)],
        }


def _answer(turn: Turn, run: Run, word: str, feedback: str) -> Command:
    """The command for core: a gate and a pause take different words, and core says which."""
    if run["status"] == "waiting_gate":
        now = _with_hashes(turn, run, [entry["path"] for entry in run["gate"]["shown"]]) if run["gate"] else []
        proof = turn.workspace.person(f"{word} a gate", True, run)
        return {
            "do": "DecideGate",
            "decision": word,
            "feedback": feedback,
            "who": turn.workspace.by,
            "shown": now,
            "proof": proof,
        }
    turn.workspace.person("let a paused task go on", False, run)
    if run["status"] == "blocked" and word in ("retry", "reject"):
        return {"do": "Unblock"} if word == "retry" else _rejected()
    return {"do": "Resume", "decision": word}


def _rejected() -> Command:
    return {"do": "Fail", "error": "rejected: blocked", "context": {"decision": "reject"}}


def _continue_from(run: Run, word: str, gate: str, from_phase: str | None) -> str:
    status = status_of(run)
    if status in ("completed", "failed"):
        return NOWHERE
    if word == "retry":
        return from_phase or _following(run)
    if gate == "final" and word == "approve":
        audited = any(phase_of(visit).startswith("impl-audit") for visit in visits_of(run))
        return "graduate-complete" if status == "poc-complete" and audited else NOWHERE
    return ROUTES.get((gate, word)) or _following(run)


def _following(run: Run) -> str:
    """By the phases that have succeeded: the first that has not."""
    done = {phase_of(visit).partition(":")[0] for visit in visits_of(run) if visit["status"] == "success"}
    done |= {"spec-writer"} if "spec" in done else set()
    last = max((at for at, phase in enumerate(ORDER) if phase in done), default=-1)
    return ORDER[last + 1] if last + 1 < len(ORDER) else NOWHERE


# ---- reports ------------------------------------------------------------


FORMATS = ("summary", "detailed", "json")
RULE = "\u2500" * 56
UNKNOWN = "unknown"


# ---- METRICS ---------------------------------------------------------------------------------------


def report(workspace: Workspace, format: str, filter: str, task: str) -> Measured:
    shape = format.strip().lower() or "summary"
    if shape not in FORMATS:
        raise wrong(f"Invalid format: {format.strip()}. Use summary, detailed, or json")
    with workspace.turn() as turn:
        run, phase = _chosen(turn, filter.strip(), task)
        _refuse_without_manifest(turn, run)
    every = ended_visits(run)
    places = [at for at, visit in enumerate(every) if not phase or _is_phase(visit, phase)]
    ended = [every[at] for at in places]
    figures = measure(run, ended)
    figures_shown = metrics(run, ended, figures, places if phase else None)
    text = {"summary": _summary, "detailed": _detailed}.get(shape)
    return {
        "task": run["id"],
        "format": shape,
        "report": figures_shown,
        "text": text(figures_shown, ended, figures) if text else pretty(figures_shown).rstrip("\n"),
    }


def _chosen(turn: Turn, filter: str, task: str) -> tuple[Run, str]:
    """The task a filter names; else the current task and the phase it names."""
    if not filter:
        return find_task(turn, task), ""
    if not task:
        try:
            return find_task(turn, filter), ""
        except NotFound:
            pass
    try:
        run = find_task(turn, task)
    except NotFound:
        run = None
    if run is not None and any(_is_phase(visit, filter) for visit in visits_of(run)):
        return run, filter
    slug = candidates(filter)[-1]
    if turn.workspace.files().changed_at(folder_of(slug)) is not None:
        raise NotFound("no-manifest", f"Manifest not found for task: {slug}", task=slug)
    raise NotFound("no-such-task", f"Task not found: {slug}", "tenuto context LIST", task=slug)


def _refuse_without_manifest(turn: Turn, run: Run) -> None:
    """A legacy task has none yet; or somebody took it away: METRICS says so and leaves it. Every other command writes
    it anew."""
    path = manifest_of(run["id"])
    tree = tree_of(run)
    expected = as_found(run) or turn.tx.renders(file_key(tree, path))
    if expected and turn.workspace.files(tree).changed_at(path) is None:
        raise NotFound("no-manifest", f"Manifest not found for task: {run['id']}", "tenuto repair", task=run["id"])


def _is_phase(visit: Visit, phase: str) -> bool:
    name = phase_of(visit)
    return phase in (name, name.partition(":")[0])


def _summary(report: Metrics, ended: list[Visit], figures: Figures) -> str:
    known = is_known(ended)
    return "\n".join(
        [
            f"METRICS: {report['task']}",
            f"{'Total Duration:':<20}{_span(figures['total'], known)}",
            f"{'Sequential Est:':<20}{_span(figures['sequential'], known)}",
            f"{'Parallel Est:':<20}{_span(figures['parallel'], known)}",
            _savings(figures, known),
            f"{'Retries:':<20}{report['metrics']['total_retries']}",
        ]
    )


def _span(milliseconds: int, known: bool) -> str:
    return span(milliseconds) if known else UNKNOWN


def _savings(figures: Figures, known: bool) -> str:
    shown = f"{span(figures['savings'])} ({figures['percent']}%)" if known else UNKNOWN
    return f"{'Savings:':<20}{shown}"


def _detailed(report: Metrics, ended: list[Visit], figures: Figures) -> str:
    known = is_known(ended)
    rows: list[tuple[str, Visit | None]] = []
    shown: set[int] = set()
    for visit, wave in zip(ended, figures["waves"], strict=True):
        if wave is None:
            rows.append((phase_of(visit), visit))
        elif wave not in shown:
            shown.add(wave)
            rows.append((f"[Wave {wave}]", None))
            rows += [(f"  {phase_of(v)}", v) for v, w in zip(ended, figures["waves"], strict=True) if w == wave]
    # The columns of the seed's table; a long name moves all of them to the right.
    room = max([32, *(len(name) + len(_length(visit)) + 1 for name, visit in rows if visit)])
    wider = " " * (room - 32)
    rule = RULE + RULE[0] * len(wider)
    return "\n".join(
        [
            f"METRICS: {report['task']}",
            "",
            f"Phase                    {wider}Duration    Status    Retries",
            rule,
            *(_row(name, visit, room) for name, visit in rows),
            rule,
            f"{'Total:':<20}{_span(figures['total'], known)}",
            f"{'Sequential Est:':<20}{_span(figures['sequential'], known)}",
            _savings(figures, known),
        ]
    )


def _row(name: str, visit: Visit | None, room: int) -> str:
    if visit is None:
        return name
    return f"{name}{_length(visit):>{room - len(name)}}     {visit['status']:<9}{visit['retries']:>6}"


def _length(visit: Visit) -> str:
    return UNKNOWN if visit["duration_ms"] is None else f"{_seconds(visit['duration_ms'])}s"


def _seconds(milliseconds: int) -> int:
    return (milliseconds + 500) // 1000


def span(milliseconds: int) -> str:
    """45s, 5m 07s, 1h 02m 05s"""
    minutes, seconds = divmod(_seconds(milliseconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m {seconds:02d}s"
    return f"{minutes}m {seconds:02d}s" if minutes else f"{seconds}s"


# ---- SUMMARY ---------------------------------------------------------------------------------------


def summarize(workspace: Workspace, task: str) -> Summarized:
    with workspace.turn() as turn:
        run = find_task(turn, task)
        current = turn.repo["owners"].get(file_key(workspace.tree, CURRENT)) == run["id"]
        others = look_at_artifacts(turn, run)
        written = as_written(turn, run)
    ended = ended_visits(run)
    running = [phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"]
    figures = measure(run, ended)
    document = manifest(run, ended, figures) if written is None else written
    shown = {"created_at": None, "updated_at": None, **document}
    lines = [
        f"Task: {run['name']} ({run['id']})" if run["name"] != run["id"] else f"Task: {run['id']}",
        f"Current: {'yes' if current else 'no'}",
        f"Mode: {run['mode']}",
        f"Workflow: {run['pipeline']['name']}",
        f"Status: {status_of(run)}",
        f"Situation: {situation(run)}",
        f"Running phases: {', '.join(running) or 'none'}",
        f"Completed phases: {', '.join(_with_status(visit) for visit in ended) or 'none'}",
        f"Artifacts: {', '.join(run['artifacts']) or 'none'}",
        *([f"Not read: {', '.join(others)}"] if others else []),
        f"Retries: {retries(run)}",
        f"Duration: {_span(figures['total'], is_known(ended) and (written is None or 'completed_phases' in written))}",
        f"Created: {shown['created_at'] or UNKNOWN}",
        f"Updated: {shown['updated_at'] or UNKNOWN}",
    ]
    return {
        "status": "success",
        "task": run["id"],
        "data": "\n".join(lines),
        "files_touched": [],
        "manifest": document,
    }


def _with_status(visit: Visit) -> str:
    return f"{phase_of(visit)} ({visit['status']})"


# ---- HISTORY ---------------------------------------------------------------------------------------


def read_history(workspace: Workspace, filter: str, task: str) -> History:
    """The file as it stands; from the journal where there is none. A filter keeps the entries that hold it."""
    with workspace.journal.read() as reader:
        text = workspace.files().read(HISTORY) or b"".join(reader.log_text(HISTORY))
        current = reader.load_repo()["owners"].get(file_key(workspace.tree, CURRENT)) or "none"
    head, *entries = _entries(text.decode("utf-8", "replace"))
    slug = candidates(task)[-1] if task else ""
    words = filter.lower()
    chosen = [entry for entry in entries if words in entry.lower() and (not slug or f"**Task:** {slug}\n" in entry)]
    if slug and not any(f"**Task:** {slug}\n" in entry for entry in entries):
        with workspace.turn() as turn:
            find_task(turn, task)  # refused where there is no such task; one without entries is none the less there
    whole = len(chosen) == len(entries) and not words
    shown = (head + "".join(chosen)) if whole else "".join(chosen)
    return {
        "status": "success",
        "task": slug or current,
        "data": shown.strip("\n") or "(no entries)",
        "files_touched": [],
        "entries": len(chosen),
    }


def _entries(text: str) -> list[str]:
    """What stands before the first entry, then each entry."""
    pieces: list[str] = [""]
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            pieces.append("")
        pieces[-1] += line
    return pieces
