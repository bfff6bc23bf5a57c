"""What is known about the outputs that gates ask for. Facts only: whether they suffice is decided in core/.

    exists      .agents/tmp/phases/<name> is a file
    filled      it holds more than blanks
    parses      it is JSON, where its name says so
    recorded    state.files has an entry for its phase
    step        the phase it belongs to; a review must be approved, too
"""

from __future__ import annotations

from tenuto.dialects.staged import PHASES_FOLDER
from tenuto.dialects.staged.document import evidence, files
from tenuto.dialects.staged.profiles import phase_of_file
from tenuto.encoding import NotJson, digest, loads_strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json, Run

    Reader = Callable[[str], bytes | None]


def path_of(name: str) -> str:
    return f"{PHASES_FOLDER}/{name}"


def gather(run: Run, read: Reader, told: Json | None = None) -> dict[str, Json]:
    """The facts about every output that a gate of this run requires. `told`: what is being recorded with this edit."""
    recorded = files(run) | (told or {})
    names = dict.fromkeys(name for gate in evidence(run).values() for name in gate["required"])
    return {name: _facts(name, read(path_of(name)), phase_of_file(name) in recorded) for name in names}


def _facts(name: str, text: bytes | None, recorded: bool) -> Json:
    filled = text is not None and bool(text.strip())
    return {
        "exists": text is not None, "filled": filled, "parses": filled and _parses(name, text),
        "recorded": recorded, "step": phase_of_file(name),
    }  # fmt: skip


def _parses(name: str, text: bytes | None) -> bool:
    if not name.endswith(".json"):
        return True
    try:
        loads_strict(text or b"")
    except NotJson:
        return False
    return True


def unjudged_review(run: Run, read: Reader, told: Json | None = None) -> Any:
    """The command that records the review of the current phase, when its file holds one that was not judged yet."""
    here = next((entry for entry in run["schedule"] if entry["step"] == run["position"]), None)
    if here is None or here.get("type") != "review":
        return None
    path = (files(run) | (told or {})).get(here["step"])
    text = read(path) if isinstance(path, str) else None
    if text is None or run["reviews"].get(here["step"], {}).get("sha256") == digest(text):
        return None
    return {"do": "RecordReview", "step": here["step"], "review": review_in(text), "sha256": digest(text)}


def review_in(text: bytes) -> Any:
    """What a review file says; None where it cannot be read, which approves nothing."""
    try:
        return loads_strict(text)
    except NotJson:
        return None


def coverage_in(review: Any) -> float | None:
    """A coverage figure in a review, under the names that are in use; None where it has none."""
    if not isinstance(review, dict):
        return None
    for name in ("coverage", "coveragePercent", "coverage_percent", "totalCoverage"):
        value = review.get(name)
        if isinstance(value, dict):
            value = next((value[key] for key in ("percent", "percentage", "total", "lines") if key in value), None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None
