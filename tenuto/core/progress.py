"""The engine's half of fold: the stay, its seats and items, and the hops to come.

fold.py's rules hold here too: never refuse, add nothing, change the run in place. What is ready, retried
or finished is not known here: that needs the pipeline, and todo() and decide() have it.
"""

from __future__ import annotations

from tenuto.core.times import between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run


def engaged(run: Run, e: Any) -> None:
    run["pipeline"], run["driver"] = e["pipeline"], e["driver"]
    run["switches"], run["queue"] = e["switches"], e["queue"]
    _leave_open_visits(run, e)


def released(run: Run, e: Any) -> None:
    """Somebody leads the run by hand from here: the stay ends without an outcome, and its hop waits for an engine."""
    stay = run["stay"]
    if stay is not None:
        kept = {seat: said for seat, said in stay["seats"].items() if _is_kept(seat, said)}
        run["queue"] = [{**stay["hop"], "kept": kept}, *run["queue"]]
        run["stay"] = None
    _leave_open_visits(run, e)
    known = [entry["step"] for entry in run["schedule"]]
    if known and run["position"] not in known:
        # Gates and actions are steps of a pipeline only: by hand, the run is in the last of its own steps.
        run["position"] = next((v["step"] for v in reversed(run["visits"]) if v["step"] in known), None)
    here = run["steps"].get(run["position"] or "") if known else None
    if here is not None and here["status"] == "pending":
        # A run with an order is always in a step: this one is begun anew, by hand.
        here["status"] = "running"
        run["visits"].append({
            "step": run["position"] or "", "item": None, "iteration": here["iteration"], "status": "running",
            "started_at": e["at"], "ended_at": None, "duration_ms": None, "retries": 0, "closed": None,
        })  # fmt: skip


def _is_kept(seat: str, said: Any) -> bool:
    """What agents have answered so far is not asked again; an item that failed begins anew."""
    return bool(said["results"]) and said["open"] is None and ("@" not in seat or said["results"][-1] == "DONE")


def _leave_open_visits(run: Run, e: Any) -> None:
    """Whoever takes over begins the step anew."""
    for visit in run["visits"]:
        if visit["status"] == "running":
            visit["status"], visit["ended_at"], visit["closed"] = "skipped", e["at"], run["version"]
            visit["duration_ms"] = between(visit["started_at"], e["at"])
            run["steps"][visit["step"]]["status"] = "pending"


def made_by_hand(run: Run, e: Any) -> None:
    """A hop that waited for an engine was done by somebody else; whoever did something else left that way."""
    if e["status"] == "success" and run["queue"]:
        run["queue"] = run["queue"][1:] if run["queue"][0]["step"] == e["step"] and e["item"] is None else []


def visit_started(run: Run, e: Any) -> None:
    hop = e["hop"]
    if run["queue"] and run["queue"][0]["step"] == e["step"]:
        run["queue"] = run["queue"][1:]
    # Only some seats run again, and whoever draws the conclusion: what the others said last still counts.
    again = hop.get("again") or hop.get("only")
    kept = run["words"].get(e["step"], {}) if again else {}
    run["stay"] = {
        "step": e["step"], "visit": e["iteration"], "hop": hop, "findings": hop.get("findings", []), "did": [],
        "seats": {**({seat: said for seat, said in kept.items() if seat not in again} if kept else {}), **hop.get("kept", {})},
        "planned": False, "left": [], "busy": [], "group_of": {}, "wave_of": {}, "stopped_by": [], "decision": None,
    }  # fmt: skip


def visit_ended(run: Run, e: Any) -> None:
    stay = run["stay"]
    if stay is not None:
        run["words"][e["step"]] = stay["seats"]
        run["carried"].pop(e["step"], None)
    run["stay"] = None


def route_taken(run: Run, e: Any) -> None:
    if e["route"]:
        run["routes"][e["route"]] = run["routes"].get(e["route"], 0) + 1
    for counter in e["resets"]:
        run["routes"].pop(counter, None)
    run["queue"] = e["queue"]
    run["carried"].update(e["carry"])


def action_done(run: Run, e: Any) -> None:
    if run["stay"] is not None:
        run["stay"]["did"].append(e["action"])


def seat_taken(run: Run, e: Any) -> None:
    stay, seat = run["stay"], e["extra"].get("seat")
    if stay is None or seat is None:
        return
    state = stay["seats"].setdefault(seat, {"tries": 0, "results": [], "open": None, "severities": [], "answer": None})
    state["open"] = e["attempt"]
    state["tries"] += 1
    if e["item"] is not None and e["item"] not in stay["busy"]:
        stay["busy"].append(e["item"])
        run["items"][e["item"]]["status"] = "running"


def seat_freed(run: Run, attempt: Any) -> None:
    """The attempt was never started: the seat is as before, and may be taken again."""
    stay, seat = run["stay"], attempt["extra"].get("seat")
    if stay is not None and seat in stay["seats"]:
        stay["seats"][seat]["open"] = None


def seat_answered(run: Run, attempt: Any, result: str) -> None:
    stay, seat = run["stay"], attempt["extra"].get("seat")
    if stay is None or seat not in stay["seats"]:
        return
    state = stay["seats"][seat]
    state["results"].append(result)
    state["open"] = None
    state["severities"] = attempt["receipt"].get("severities", [])
    state["answer"] = attempt["receipt"].get("answer")


def items_chosen(run: Run, e: Any) -> None:
    stay = run["stay"]
    if stay is None:
        return
    stay["planned"] = True
    if "made" in e:
        stay["seats"] = {
            key: stay["seats"].get(key) or {"tries": 0, "results": ["DONE"], "open": None, "severities": [], "answer": None}
            for key in e["made"]
        }
    stay["left"] = [item for group in e["groups"] for item in group]
    stay["group_of"] = {item: number for number, group in enumerate(e["groups"]) for item in group}
    stay["wave_of"] = {item: number for number, wave in enumerate(e["waves"]) for item in wave}
    for item in stay["left"]:
        run["items"][item]["status"] = "pending"


def item_changed(run: Run, e: Any) -> None:
    stay = run["stay"]
    if stay is None or e["status"] not in ("completed", "failed", "skipped"):
        return
    if e["item"] in stay["left"]:
        stay["left"].remove(e["item"])
    if e["item"] in stay["busy"]:
        stay["busy"].remove(e["item"])
    if e["status"] == "failed" and not e["harmless"]:
        stay["stopped_by"].append(e["item"])
