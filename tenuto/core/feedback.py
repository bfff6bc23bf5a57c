"""What an audit leads to: on, once more, or to a person.

    after_audit("DESIGN_FLAW", taken=1) -> "again"

A flaw sends the work back at most twice; then, and whenever an audit cannot be read or asks for it, the run
pauses and a person decides. What the verdict amounts to (minor findings loop nothing) is in rules.py.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

MOST_LOOPS = 2
_FLAWS = ("DESIGN_FLAW", "IMPLEMENTATION_FLAW")


def after_audit(verdict: str, taken: int) -> Literal["on", "again", "pause"]:
    """`taken`: how often the work went back for this kind of flaw so far."""
    if verdict == "PASS":
        return "on"
    return "again" if verdict in _FLAWS and taken < MOST_LOOPS else "pause"
