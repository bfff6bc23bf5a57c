"""Which of our renders did somebody start from? The one with the fewest differing places.

Loaded only when a foreign edit was found.
"""

from __future__ import annotations

from tenuto.encoding import NotJson, loads_strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def nearest(bodies: list[bytes], found: bytes) -> bytes:
    """Newest first in `bodies`; of equally near ones the newest."""
    if len(bodies) == 1:
        return bodies[0]
    if not bodies:
        return b""
    try:
        target: Any = loads_strict(found)
        return min(bodies, key=lambda body: _differing(loads_strict(body), target))
    except NotJson:
        lines = found.splitlines()
        return min(bodies, key=lambda body: _differing_lines(body.splitlines(), lines))


def _differing(one: Any, other: Any) -> int:
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return sum(_differing(one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return sum(_differing(a, b) for a, b in zip(one, other, strict=True) if a != b)
    return 0 if one == other else 1


def _differing_lines(one: list[bytes], other: list[bytes]) -> int:
    ours, theirs = set(one), set(other)
    return sum(1 for line in one if line not in theirs) + sum(1 for line in other if line not in ours)
