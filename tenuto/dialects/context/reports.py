"""METRICS, SUMMARY and HISTORY: looking, never changing.

A look still takes in what others wrote into the task's files: a report on what nobody sees would be wrong.
"""

from __future__ import annotations

from tenuto.dialects.context.places import (
    CURRENT,
    HISTORY,
    NAME,
    folder_of,
    key_of,
    manifest_of,
    phase_of,
    status_of,
    visits_of,
)
from tenuto.dialects.context.render import ended_visits, manifest, measure, metrics, retries, situation
from tenuto.dialects.context.tasks import candidates, named
from tenuto.dialects.context.wording import wrong
from tenuto.encoding import pretty
from tenuto.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import History, Measured, Summarized, Turn, Workspace

FORMATS = ("summary", "detailed", "json")
RULE = "\u2500" * 56


# ---- METRICS ---------------------------------------------------------------------------------------


def report(workspace: Workspace, format: str, filter: str, task: str) -> Measured:
    shape = format.strip().lower() or "summary"
    if shape not in FORMATS:
        raise wrong(f"Invalid format: {format.strip()}. Use summary, detailed, or json")
    with workspace.turn() as turn:
        run, phase = _chosen(turn, filter.strip(), task)
        _refuse_without_manifest(turn, run)
    ended = [visit for visit in ended_visits(run) if not phase or _is_phase(visit, phase)]
    figures = measure(run, ended)
    if phase:
        run = {**run, "retries": sum(1 for visit in ended if visit["status"] == "failed")}
    told = metrics(run, ended, figures)
    text = {"summary": _summary, "detailed": _detailed}.get(shape)
    return {
        "task": run["id"], "format": shape, "report": told,
        "text": text(run, ended, figures) if text else pretty(told).rstrip("\n"),
    }  # fmt: skip


def _chosen(turn: Turn, filter: str, task: str) -> tuple[Run, str]:
    """The task a filter names; else the current task and the phase it names."""
    if not filter:
        return named(turn, task), ""
    if not task:
        try:
            return named(turn, filter), ""
        except NotFound:
            pass
    try:
        run = named(turn, task)
    except NotFound:
        run = None
    if run is not None and any(_is_phase(visit, filter) for visit in visits_of(run)):
        return run, filter
    slug = candidates(filter)[-1]
    if turn.workspace.files().changed_at(folder_of(slug)) is not None:
        raise NotFound("no-manifest", f"Manifest not found for task: {slug}", task=slug)
    raise NotFound("no-such-task", f"Task not found: {slug}", "tenuto context LIST", task=slug)


def _refuse_without_manifest(turn: Turn, run: Run) -> None:
    """Somebody took the manifest away: METRICS says so and leaves it. Every other command writes it anew."""
    path = manifest_of(run["id"])
    files = turn.workspace.files(run["dialects"][NAME].get("tree", ""))
    if turn.tx.renders(path) and files.changed_at(path) is None:
        raise NotFound("no-manifest", f"Manifest not found for task: {run['id']}", "tenuto repair", task=run["id"])


def _is_phase(visit: Any, phase: str) -> bool:
    name = phase_of(visit)
    return phase in (name, name.partition(":")[0])


def _summary(run: Run, ended: list[Any], figures: Any) -> str:
    return "\n".join([
        f"METRICS: {run['id']}",
        f"{'Total Duration:':<20}{span(figures['total'])}",
        f"{'Sequential Est:':<20}{span(figures['sequential'])}",
        f"{'Parallel Est:':<20}{span(figures['parallel'])}",
        f"{'Savings:':<20}{span(figures['savings'])} ({figures['percent']}%)",
        f"{'Retries:':<20}{retries(run)}",
    ])  # fmt: skip


def _detailed(run: Run, ended: list[Any], figures: Any) -> str:
    lines = [f"METRICS: {run['id']}", "", "Phase                    Duration    Status    Retries", RULE]
    shown: set[int] = set()
    for visit, wave in zip(ended, figures["waves"], strict=True):
        if wave is None:
            lines.append(_row(visit, ""))
        elif wave not in shown:
            shown.add(wave)
            lines.append(f"[Wave {wave}]")
            lines += [_row(v, "  ") for v, w in zip(ended, figures["waves"], strict=True) if w == wave]
    return "\n".join([
        *lines,
        RULE,
        f"{'Total:':<20}{span(figures['total'])}",
        f"{'Sequential Est:':<20}{span(figures['sequential'])}",
        f"{'Savings:':<20}{span(figures['savings'])} ({figures['percent']}%)",
    ])  # fmt: skip


def _row(visit: Any, indent: str) -> str:
    """The columns of the seed's table; a long name pushes them to the right, never over one another."""
    name = f"{indent}{phase_of(visit)}"
    duration = f"{_seconds(visit['duration_ms'] or 0)}s"
    room = max(32 - len(name), len(duration) + 1)
    return f"{name}{duration:>{room}}     {visit['status']:<9}{visit['retries']:>6}"


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
        run = named(turn, task)
        current = turn.repo["owners"].get(key_of(workspace.tree, CURRENT)) == run["id"]
    ended = ended_visits(run)
    running = [phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"]
    figures = measure(run, ended)
    lines = [
        f"Task: {run['name']} ({run['id']})" if run["name"] != run["id"] else f"Task: {run['id']}",
        f"Current: {'yes' if current else 'no'}",
        f"Mode: {run['mode']}",
        f"Workflow: {run['pipeline']['name']}",
        f"Status: {status_of(run)}",
        f"Situation: {situation(run)}",
        f"Running phases: {', '.join(running) or 'none'}",
        f"Completed phases: {', '.join(_told(visit) for visit in ended) or 'none'}",
        f"Artifacts: {', '.join(run['artifacts']) or 'none'}",
        f"Retries: {retries(run)}",
        f"Duration: {span(figures['total'])}",
        f"Created: {run['created_at']}",
        f"Updated: {run['updated_at']}",
    ]
    return {
        "status": "success", "task": run["id"], "data": "\n".join(lines), "files_touched": [],
        "manifest": manifest(run, ended, figures),
    }  # fmt: skip


def _told(visit: Any) -> str:
    return f"{phase_of(visit)} ({visit['status']})"


# ---- HISTORY ---------------------------------------------------------------------------------------


def read_history(workspace: Workspace, filter: str, task: str) -> History:
    """The file as it stands; from the journal where there is none. A filter keeps the entries that hold it."""
    with workspace.journal.read() as reader:
        text = workspace.files().read(HISTORY) or b"".join(reader.log_text(HISTORY))
        current = reader.load_repo()["owners"].get(key_of(workspace.tree, CURRENT)) or "none"
    head, *entries = _entries(text.decode("utf-8", "replace"))
    slug = candidates(task)[-1] if task else ""
    words = filter.lower()
    chosen = [entry for entry in entries if words in entry.lower() and (not slug or f"**Task:** {slug}\n" in entry)]
    if slug and not any(f"**Task:** {slug}\n" in entry for entry in entries):
        with workspace.turn() as turn:
            named(turn, task)  # refused where there is no such task; one without entries is none the less there
    whole = len(chosen) == len(entries) and not words
    shown = (head + "".join(chosen)) if whole else "".join(chosen)
    return {
        "status": "success", "task": slug or current, "data": shown.strip("\n") or "(no entries)", "files_touched": [],
        "entries": len(chosen),
    }  # fmt: skip


def _entries(text: str) -> list[str]:
    """What stands before the first entry, then each entry."""
    pieces: list[str] = [""]
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            pieces.append("")
        pieces[-1] += line
    return pieces
