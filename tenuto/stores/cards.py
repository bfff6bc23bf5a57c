"""The card of a run: what a list of runs shows, small enough to keep for each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_FIELDS = (
    "id", "name", "mode", "status", "pipeline", "created_at", "updated_at", "graduated_at", "position", "summary", "driver",
    "dialects",
)  # fmt: skip


_ENDED = ("completed", "failed", "cancelled", "graduated")


def card(state: Any) -> Json:
    """Empty for the repository's own stream, which no list shows."""
    if "id" not in state:
        return {}
    shown: Json = {field: state[field] for field in _FIELDS}
    shown["open_in"] = None if state["status"] in _ENDED else _tree(state)
    return shown


def _tree(state: Any) -> str:
    """The work tree that a run is shown in; "" for the main one, and for a run that is shown nowhere."""
    return next((str(place.get("tree", "")) for place in state["dialects"].values()), "")
