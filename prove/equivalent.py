"""Mutants that nobody can tell apart from the rule they were made of, each with the reason.

The name is the one that `python -m prove.mutants` shows; it changes with the code it is about.
"""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
