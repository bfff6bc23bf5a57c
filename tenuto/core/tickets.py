"""What follows from what happened in a run that a person leads from phase to phase.

    current_step(run)   the task that was delegated last
    next_actions(run)   what is to be done now, in the words of TICKET_ACTIONS
    flags(run)          what may be called true, each from its own events

    requirements_clear, codebase_analyzed   research completed
    implementation_planned                  planning completed
    step_N_complete                         a commit of step N; false once the step is known
    tests_passing, code_reviewed            what the last validation found
    mr_ready                                integration approved

Nobody sets these by hand: a claim that the events do not bear out is refused (decisions/records.py). Where no event speaks
of one, what an adopted file said of it stands; any other flag is the caller's.

Any agent name is accepted. What kind of work it does is told by its name, else by its task, else by the phase it ran in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Attempt, Json, Run

PIPELINE = "ticket"
PHASES = ("understanding", "planning", "execution", "integration")
COMPLETE = "complete"
_KINDS = (
    ("commit", ("commit",)),
    ("validation", ("validat", "verif", "review", "test", "lint", "audit", "check")),
    ("research", ("research", "analy", "explor", "investigat", "understand")),
    ("planning", ("plan", "design", "architect")),
    ("execution", ("execut", "implement", "develop", "coder")),
)
_KIND_OF_PHASE = {"understanding": "research", "planning": "planning", "execution": "execution", "integration": "integration"}
_GOOD = ("pass", "passed", "passing", "ok", "success", "successful", "succeeded", "true", "yes", "clean", "approved", "done", "green")
_IN_FLIGHT = ("dispatched", "running")


def phase_of(run: Run) -> str:
    """Where the run is. `complete` is behind the last phase."""
    if run["status"] in ("completed", "graduated", "poc-complete"):
        return COMPLETE
    entry = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), None)
    for word in (run["position"], entry.get("stage") if entry else None, (run["position"] or "").rpartition("-")[0]):
        if word in PHASES:
            return str(word)
    return PHASES[0] if run["position"] is None else "execution"


def current_step(run: Run) -> str:
    last = next(reversed(run["attempts"].values()), None)
    return (last["task"] or last["role"]) if last else ""


# ---- what is to be done ----------------------------------------------------------------------------


def next_actions(run: Run) -> list[str]:
    match run["status"]:
        case "completed" | "failed" | "cancelled" | "graduated" | "poc-complete":
            return []
        case "waiting_gate":
            return ["get_user_approval"]
        case "paused" | "blocked":
            return ["retry", "skip", "abort"]
    waiting = [f"wait_for_{attempt['role']}" for attempt in run["attempts"].values() if attempt["status"] in _IN_FLIGHT]
    if waiting:
        return list(dict.fromkeys(waiting))
    here = phase_of(run)
    last = next((a for a in reversed(run["attempts"].values()) if _phase(run, a) == here), None)
    word = next((d for d in reversed(run["decisions"]) if here in (d["step"], d["name"])), None)
    if word is not None and not word["approved"] and (last is None or (last["ended_at"] or "") <= word["at"]):
        return ["address_feedback"]
    if last is None:
        return ["proceed_to_next_step"]
    if last["status"] != "completed":
        return ["retry", "skip", "abort"]
    return ["get_user_approval", "proceed_to_next_step"] if here == "execution" else ["get_user_approval"]


# ---- what may be called true -----------------------------------------------------------------------


def flags(run: Run) -> Json:
    """Every flag, in the order its readers know: those that follow, then the caller's."""
    following = _following(run)
    shown = {name: run["flags"].get(name) is True if value is None else value for name, value in following.items()}
    return shown | {name: value for name, value in run["flags"].items() if name not in shown}


def follows(name: str) -> bool:
    """Whether a flag of this name follows from events."""
    return name in _FOLLOWING or step_number(name.removesuffix("_complete"), whole=True) is not None


def step_number(text: object, whole: bool = False) -> int | None:
    """implement_step_3, step_3_auth_middleware -> 3. `whole`: nothing may stand around `step_3`."""
    words = str(text).lower().replace("-", "_").replace(" ", "_").split("_")
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "step" and following.isdecimal() and (not whole or len(words) == 2):
            return int(following)
        if word.startswith("step") and word[4:].isdecimal() and not whole:
            return int(word[4:])
    return None


_FOLLOWING = ("requirements_clear", "codebase_analyzed", "implementation_planned", "tests_passing", "code_reviewed", "mr_ready")


def _following(run: Run) -> dict[str, bool | None]:
    attempts = list(run["attempts"].values())
    researched, planned = _done(run, attempts, "research"), _done(run, attempts, "planning")
    validation = next((a for a in reversed(attempts) if _kind(run, a) == "validation" and a["ended_at"]), None)
    approved = any("integration" in (d["step"], d["name"]) and d["approved"] for d in run["decisions"])
    return {
        "requirements_clear": researched, "codebase_analyzed": researched, "implementation_planned": planned,
        **{f"step_{number}_complete": done for number, done in _steps(run, attempts).items()},
        "tests_passing": _found(validation, ("test",)), "code_reviewed": _found(validation, ("review", "quality")),
        "mr_ready": True if approved else None,
    }  # fmt: skip


def _done(run: Run, attempts: list[Attempt], kind: str) -> bool | None:
    return True if any(a["status"] == "completed" and _kind(run, a) == kind for a in attempts) else None


def _steps(run: Run, attempts: list[Attempt]) -> dict[int, bool | None]:
    """Known from what was delegated, committed or told; true by its commit alone."""
    told = [attempt["extra"].get("step_number", attempt["task"]) for attempt in attempts]
    known = [number if type(number) is int else step_number(number) for number in told]
    known += [step_number(name.removesuffix("_complete"), whole=True) for name in run["flags"]]
    committed = [step_number(commit["step"]) for commit in run["commits"]]
    numbers = sorted({number for number in [*known, *committed] if number is not None})
    return {number: True if number in committed else None for number in numbers}


def _found(validation: Attempt | None, words: tuple[str, ...]) -> bool | None:
    """What the last validation says of this. Not completed, or with blocking issues: nothing is good."""
    if validation is None:
        return None
    extra = validation["extra"]
    if validation["status"] != "completed" or validation["verdict"] not in (None, "DONE") or extra.get("blocking_issues"):
        return False
    results = extra.get("validation_results")
    for name, value in results.items() if isinstance(results, dict) else ():
        if any(word in name.lower() for word in words):
            return _is_good(value)
    passed = extra.get("validation_passed", results if isinstance(results, (bool, str)) else True)
    return _is_good(passed)


def _is_good(value: Any) -> bool:
    """true, `passed`, {"passed": 12, "failed": 0}. What cannot be understood is not good."""
    if isinstance(value, dict):
        lowered = {str(name).lower(): entry for name, entry in value.items()}
        for name in ("failed", "failures", "errors", "failing"):
            if lowered.get(name):
                return False
        told = next((lowered[name] for name in ("status", "result", "passed", "passing", "success", "total") if name in lowered), None)
        return _is_good(told) if not isinstance(told, int) else told > 0
    if isinstance(value, str):
        return value.strip().lower() in _GOOD
    return value is True


def _phase(run: Run, attempt: Attempt) -> str:
    """The phase that an attempt ran in: its step, or the stage that the step belongs to."""
    entry = next((entry for entry in run["schedule"] if entry["step"] == attempt["step"]), None)
    stage = entry.get("stage") if entry else None
    return str(stage) if stage in PHASES else attempt["step"]


def _kind(run: Run, attempt: Attempt) -> str:
    for text in (attempt["role"], attempt["task"]):
        for kind, words in _KINDS:
            if isinstance(text, str) and any(word in text.lower() for word in words):  # others may write anything there
                return kind
    return _KIND_OF_PHASE.get(_phase(run, attempt), "")
