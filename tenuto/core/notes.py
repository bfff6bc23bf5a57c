"""The quiet half of fold: artifacts, memory, flags, commits, settings, what was spent. Nothing here moves a run.

fold.py's rules hold here too: never refuse, add nothing, change the run in place.
"""

from __future__ import annotations

from tenuto.core import progress
from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json, Run


def merge(into: Json, changes: Json) -> None:
    """Objects deeply, everything else by replacement (arrays too)."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def artifact_stored(run: Run, e: Any) -> None:
    run["artifacts"][e["name"]] = {
        "path": e["path"], "sha256": e["sha256"], "size": e["size"],
        "step": e["step"], "attempt": e["attempt"], "at": e["at"], "by": e["by"],
    }  # fmt: skip


def memory_written(run: Run, e: Any) -> None:
    memory: Any = run["memory"]
    if e["kind"] == "index":
        changed = {entry["artifact"] for entry in e["entries"]}
        memory["index"] = [entry for entry in memory["index"] if entry["artifact"] not in changed]
    memory[e["kind"]].extend(e["entries"])


def memory_pruned(run: Run, e: Any) -> None:
    memory: Any = run["memory"]
    for kind in ("decisions", "updates"):
        memory[kind] = [entry for entry in memory[kind] if entry["step"] in e["keep"]]


def memory_invalidated(run: Run, e: Any) -> None:
    for entry in run["memory"]["decisions"] + run["memory"]["updates"]:
        if entry["step"] in e["steps"]:
            entry["invalidated"] = e["reason"]


def memory_cleaned(run: Run, e: Any) -> None:
    memory: Any = run["memory"]
    for kind in ("decisions", "updates"):
        memory[kind] = [entry for entry in memory[kind] if entry["invalidated"] is None]


def flag_set(run: Run, e: Any) -> None:
    run["flags"].update(e["flags"])


def commit_recorded(run: Run, e: Any) -> None:
    run["commits"].append({
        "step": e["step"], "hash": e["hash"], "message": e["message"], "at": e["at"], "extra": e["extra"],
    })  # fmt: skip


def context_saved(run: Run, e: Any) -> None:
    run["resume"] = {**e["context"], "saved_at": e.get("told") or e["at"], "reason": e["reason"]}


def context_restored(run: Run, e: Any) -> None:
    if run["resume"] is not None:
        run["resume"]["restored_at"] = e["at"]


def answers_recorded(run: Run, e: Any) -> None:
    run["answers"].update(e["answers"])


def settings_changed(run: Run, e: Any) -> None:
    """How gates are protected is settled at the start: an event that says otherwise was decided by nobody."""
    merge(run["settings"], {name: value for name, value in e["changes"].items() if name != "gate_protection"})


def budget_changed(run: Run, e: Any) -> None:
    run["budget"]["limits"].update(e["limits"])
    for step, limits in e.get("steps", {}).items():
        _account(run, step)["limits"].update(limits)


def set_aside(run: Run, e: Any) -> None:
    """One more is under way. The first one starts the clock."""
    if not run["flying"]:
        run["budget"]["busy_since"] = e["at"]
    run["flying"].append(e["attempt"])
    _book(run, e["step"], "reserved", e["reserved"], 1)


def charge(run: Run, e: Any, attempt: Any, used: Json) -> None:
    """One less: what was set aside for it is free again, what it used is spent. The last one stops the clock."""
    budget = run["budget"]
    _book(run, attempt["step"], "reserved", attempt["reserved"], -1)
    _book(run, attempt["step"], "spent", used, 1)
    for unit, amount in used.items():
        if isinstance(amount, int) and amount > budget["dearest"].get(unit, 0):
            budget["dearest"][unit] = amount
    if e["attempt"] in run["flying"]:
        run["flying"].remove(e["attempt"])
    if not run["flying"] and budget["busy_since"] is not None:
        # `lasted_ms`: what was measured where the clock tells less, because it was set back meanwhile.
        elapsed = max(between(budget["busy_since"], e["at"]), e.get("extra", {}).get("lasted_ms", 0))
        budget["busy_ms"] += elapsed
        _account(run, attempt["step"])["busy_ms"] += elapsed
        budget["busy_since"] = None


def _book(run: Run, step: str, side: str, amounts: Json, sign: int) -> None:
    if amounts:
        _add(run["budget"][side], amounts, sign)  # type: ignore[literal-required]
        _add(_account(run, step)[side], amounts, sign)


def _account(run: Run, step: str) -> Any:
    accounts = run["budget"]["steps"]
    if step not in accounts:
        accounts[step] = {"limits": {}, "spent": {}, "reserved": {}, "busy_ms": 0}
    return accounts[step]


def _add(into: Json, amounts: Json, sign: int) -> None:
    for unit, amount in amounts.items():
        if isinstance(amount, (int, float)) and not isinstance(amount, bool):
            into[unit] = into.get(unit, 0) + sign * amount


def driver_changed(run: Run, e: Any) -> None:
    if e["driver"] == "manual" and run["driver"] != "manual":
        progress.released(run, e)
    run["driver"], run["pipeline"] = e["driver"], e["pipeline"]


def shown_in(run: Run, e: Any) -> None:
    run["dialects"][e["dialect"]] = e["place"]


def session_bound(run: Run, e: Any) -> None:
    if e["session"] not in run["sessions"]:
        run["sessions"].append(e["session"])


def foreign_edit_absorbed(run: Run, e: Any) -> None:
    kept = run["extra"].setdefault(e["dialect"], {})
    for place in e.get("drop", ()):
        _drop(kept, place)
    merge(kept, e["extra"])


def _drop(kept: Json, place: list[str]) -> None:
    *way, last = place
    for name in way:
        kept = kept.get(name, {})
        if not isinstance(kept, dict):
            return
    kept.pop(last, None)


def noted(run: Run, e: Any) -> None:
    pass
