"""The card of a run: what a list of runs shows, small enough to keep for each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_FIELDS = (
    "id", "name", "mode", "status", "pipeline", "created_at", "updated_at", "graduated_at", "position", "summary", "driver",
)  # fmt: skip


def card(state: Any) -> Json:
    """Empty for the repository's own stream, which no list shows."""
    return {field: state[field] for field in _FIELDS} if "id" in state else {}
