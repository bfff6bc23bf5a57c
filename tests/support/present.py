"""What a record may lack and a test says is there."""

from __future__ import annotations

from typing import TypeVar

Part = TypeVar("Part")


def present(part: Part | None) -> Part:
    assert part is not None
    return part
