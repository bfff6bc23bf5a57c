"""Lines that were found, and why: the notebook that the readers of a text share.

Rule: a line is claimed once; whoever comes first keeps it.
"""

from __future__ import annotations


class Claim:
    """For which kind of part, and by what: heading, fence (any code), line (its wording)."""

    def __init__(self, kind: str, by: str) -> None:
        self.kind = kind
        self.by = by


class Found:
    def __init__(self) -> None:
        self.claims: dict[int, Claim] = {}
        self.kinds: set[str] = set()  # that were found at all
        self.heads: set[str] = set()  # of functions, so that an implementation does not repeat the interface

    def claim(self, lines: set[int], kind: str, by: str) -> bool:
        """Claim what is still free of these lines; False if nothing is."""
        fresh = [line for line in sorted(lines) if line not in self.claims]
        for line in fresh:
            self.claims[line] = Claim(kind, by)
        if fresh:
            self.kinds.add(kind)
        return bool(fresh)
