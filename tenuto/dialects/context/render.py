"""A task as its files show it: manifest.json, current-task.md, metrics.

Rule 1: what stands here follows from the run alone. Keys that others added are shown again, after ours
or inside our objects, and never in place of one of ours.

Rule 2: a task that was found in the repository is left as it was found until a command changes it.
"""

from __future__ import annotations

from tenuto.core.durations import item_of, plain, totals, wave_numbers
from tenuto.dialects.context.places import (
    CURRENT,
    NAME,
    folder_of,
    is_current,
    kept,
    manifest_of,
    metrics_of,
    phase_of,
    status_of,
    visits_of,
)
from tenuto.encoding import pretty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Repo, Run


def paths(run: Run, repo: Repo) -> list[str]:
    found = run["dialects"][NAME].get("as_found")
    if found:
        return [found]
    listed = [manifest_of(run["id"])]
    if is_current(run, repo):
        listed.append(CURRENT)
    if any(visit["closed"] is not None for visit in visits_of(run)):
        listed.append(metrics_of(run["id"]))
    return listed


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    if run["dialects"][NAME].get("as_found"):
        return {}
    ended = ended_visits(run)
    figures = measure(run, ended)
    files = {manifest_of(run["id"]): pretty(manifest(run, ended, figures)).encode()}
    if is_current(run, repo):
        files[CURRENT] = current_task(run).encode()
    if ended:
        shown = metrics(run, ended, figures)
        lay_over(shown, kept(run).get("metrics", {}))
        files[metrics_of(run["id"])] = pretty(shown).encode()
    return files


# ---- the manifest ----------------------------------------------------------------------------------


def manifest(run: Run, ended: list[Any] | None = None, figures: Any = None) -> dict[str, Any]:
    ended = ended_visits(run) if ended is None else ended
    figures = measure(run, ended) if figures is None else figures
    others = kept(run)
    made: dict[str, Any] = {
        "name": others.get("name", run["id"]),
        "mode": run["mode"],
        "workflow": run["pipeline"]["name"],
        "status": status_of(run),
        "current_phase": current_phase(run),
        "running_phases": [_running(visit, others) for visit in visits_of(run) if visit["status"] == "running"],
        "completed_phases": completed_phases(run, ended),
        "failure_context": failure_context(run),
        "gate_context": gate_context(run),
        "metrics": {
            "total_duration_ms": figures["total"] if ended else None,
            "parallelization_savings_ms": figures["savings"] if ended else None,
            "total_retries": retries(run),
        },
        "waves": {"task_breakdown": breakdown(run), "execution": execution(run, ended, figures["waves"])},
        "created_at": run["created_at"],
        "updated_at": run["updated_at"],
    }
    if run["graduated_at"]:
        made["graduated_at"] = run["graduated_at"]
    if others:
        lay_over(made, others.get("manifest", {}))
    return made


def current_phase(run: Run) -> str | None:
    """Under an engine: of the phases under way, the first."""
    if "unseen" not in run["dialects"][NAME]:
        return run["position"]
    return next((phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"), None)


def retries(run: Run) -> int:
    if "unseen" not in run["dialects"][NAME]:
        return run["retries"]
    from tenuto.dialects.context.engine import retries as failed_attempts

    return failed_attempts(run)


def lay_over(ours: dict[str, Any], others: dict[str, Any]) -> None:
    """Add the keys that we do not have, at every depth."""
    for key, value in others.items():
        if key not in ours:
            ours[key] = value
        elif isinstance(value, dict) and isinstance(ours[key], dict):
            lay_over(ours[key], value)


def ended_visits(run: Run) -> list[Any]:
    """In the order in which they ended."""
    return sorted((v for v in visits_of(run) if v["closed"] is not None), key=_closed)


def _closed(visit: Any) -> int:
    return visit["closed"]  # type: ignore[no-any-return]


def _running(visit: Any, others: Any) -> dict[str, Any]:
    phase = phase_of(visit)
    made = {"phase": phase, "started_at": visit["started_at"]}
    if others:
        lay_over(made, others.get("running", {}).get(phase, {}))
    return made


def completed_phases(run: Run, ended: list[Any]) -> list[dict[str, Any]]:
    """Entries that others wrote stay as they wrote them."""
    found = kept(run).get("phases", {})
    return [found[str(at)] if str(at) in found else _completed(visit) for at, visit in enumerate(ended)]


def _completed(visit: Any) -> dict[str, Any]:
    return {
        "phase": phase_of(visit),
        "status": "success" if visit["status"] == "skipped" else visit["status"],
        "started_at": visit["started_at"],
        "ended_at": visit["ended_at"],
        "duration_ms": visit["duration_ms"],
        "retries": visit["retries"],
    }


def failure_context(run: Run) -> dict[str, Any] | None:
    pause = run["pause"]
    if pause is None or run["status"] == "waiting_gate":
        return None
    made = {
        "phase": pause["step"],
        "reason": pause["reason"],
        "attempts": pause["attempts"],
        "last_feedback": pause["last_feedback"],
        "recommendations": pause["recommendations"],
    }
    lay_over(made, kept(run).get("contexts", {}).get(run["paused_at"], {}))
    return made


def gate_context(run: Run) -> dict[str, Any] | None:
    gate = run["gate"]
    if gate is None:
        return None
    made = {
        "gate": gate["name"],
        "prompt": gate["prompt"],
        "options": gate["options"],
        "artifacts": [entry["path"] for entry in gate["shown"]],
    }
    lay_over(made, kept(run).get("contexts", {}).get(gate["id"], {}))
    return made


def breakdown(run: Run) -> Any:
    """The plan as it was written; where an engine planned the items, in the same words."""
    written = kept(run).get("breakdown")
    if written is not None or not run["items"]:
        return written
    return {
        "tasks": [
            {
                "id": _number(name), "name": item["title"], "files": item["files"],
                "dependencies": [_number(before) for before in item["depends_on"]],
                "description": item["extra"].get("description", ""),
            }
            for name, item in run["items"].items()
        ]
    }  # fmt: skip


def _number(item: str) -> int | str:
    bare = plain(item)
    return int(bare) if bare.isdecimal() and bare.isascii() else item


# ---- what took how long ----------------------------------------------------------------------------


def measure(run: Run, ended: list[Any]) -> dict[str, Any]:
    waves = wave_numbers(ended, [wave["items"] for wave in run["waves"]])
    return {**totals(ended, waves), "waves": waves}


def execution(run: Run, ended: list[Any], waves: list[int | None]) -> list[dict[str, Any]]:
    """Per wave its tasks: how each stands, how long the longest of its phases took, how often it failed."""
    planned = {number: [plain(item) for item in wave["items"]] for number, wave in enumerate(run["waves"], 1)}
    tasks: dict[int, dict[str, list[Any]]] = {
        number: {item: [] for item in items} for number, items in planned.items()
    }
    for visit, wave in zip(ended, waves, strict=True):
        if wave is not None:
            tasks.setdefault(wave, {}).setdefault(item_of(visit), []).append(visit)
    if not any(visits for items in tasks.values() for visits in items.values()) and not run["items"]:
        return []
    running = {item_of(visit) for visit in visits_of(run) if visit["status"] == "running"}
    failed = {item for items in tasks.values() for item, visits in items.items() if _has_failed(visits)}
    skipped = _dependents(run, failed) if failed else set()
    return [
        {
            "waveNumber": number,
            "tasks": [_task(item, visits, running, skipped, run) for item, visits in sorted(items.items(), key=_order)],
        }
        for number, items in sorted(tasks.items())
    ]


def _order(entry: tuple[str, Any]) -> tuple[int, int, str]:
    item = entry[0]
    return (0, int(item), "") if item.isdecimal() else (1, 0, item)


def _task(item: str, visits: list[Any], running: set[str], skipped: set[str], run: Run) -> dict[str, Any]:
    if item in running:
        status = "running"
    elif visits:
        status = "failed" if _has_failed(visits) else "completed"
    elif item in skipped:
        status = "skipped"
    else:
        status = next((it["status"] for name, it in run["items"].items() if plain(name) == item), "pending")
    return {
        "id": _number(item),
        "status": status,
        "duration_ms": max((visit["duration_ms"] or 0 for visit in visits), default=0),
        "retries": sum(1 for visit in visits if visit["status"] == "failed"),
    }


def _has_failed(visits: list[Any]) -> bool:
    """The last word of any of its phases is a failure."""
    last = {phase_of(visit): visit["status"] for visit in visits}
    return "failed" in last.values()


def _dependents(run: Run, failed: set[str]) -> set[str]:
    """Everything that waits for a failed item, directly or through others."""
    lost = set(failed)
    grown = True
    while grown:
        grown = False
        for name, item in run["items"].items():
            if plain(name) not in lost and any(plain(before) in lost for before in item["depends_on"]):
                lost.add(plain(name))
                grown = True
    return lost - failed


def metrics(run: Run, ended: list[Any], figures: Any) -> dict[str, Any]:
    """The JSON form of METRICS."""
    return {
        "task": run["id"],
        "metrics": {
            "total_duration_ms": figures["total"],
            "sequential_estimate_ms": figures["sequential"],
            "parallelization_savings_ms": figures["savings"],
            "savings_percent": figures["percent"],
            "total_retries": retries(run),
        },
        "waves": {
            "taskBreakdown": breakdown(run),
            "waveExecutionData": execution(run, ended, figures["waves"]),
        },
        "completed_phases": completed_phases(run, ended),
    }


# ---- current-task.md -------------------------------------------------------------------------------


def current_task(run: Run) -> str:
    text = (
        "# Current Task\n\n"
        f"**Task:** {run['id']}\n"
        f"**Mode:** {run['mode']}\n"
        f"**Workflow:** {run['pipeline']['name']}\n"
        f"**Status:** {status_of(run)}\n"
        f"**Path:** `{folder_of(run['id'])}/`\n\n"
        f"## Summary\n\n{situation(run)}\n"
    )
    notes = kept(run).get("notes")
    return f"{text}\n## Notes\n\n{notes}\n" if notes else text


def situation(run: Run) -> str:
    """One sentence: where the task stands and what it waits for."""
    status = status_of(run)
    running = [phase_of(visit) for visit in visits_of(run) if visit["status"] == "running"]
    if run["gate"]:
        return f"Waiting for approval of the {run['gate']['name']} gate: {_line(run['gate']['prompt'])}"
    if status == "paused":
        return f"Paused: {_line(run['pause']['reason'])}" if run["pause"] else "Paused."
    if running:
        return f"Running: {', '.join(running)}."
    if status == "running":
        last = ended_visits(run)[-1:]
        return f"Last phase: {phase_of(last[0])} ({last[0]['status']})." if last else "Task initialized."
    return {
        "completed": "Task completed.", "failed": "Task failed.", "graduated": "POC graduated.",
        "poc-complete": "POC complete, ready for graduation.",
    }.get(status, f"Status: {status}.")  # fmt: skip


def _line(text: str) -> str:
    return " ".join(text.split())
