"""Mutants that nobody can tell apart from the rule they were made of, each with the reason.

The name is the one that `python -m prove.mutants` shows; it changes with the code it is about.
"""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {
    "visits:step_of:number:0 -> 1": "where the search begins is a hint: what stands there is compared with the name",
    "visits:step_of:drop:_seen_at[name] = place -> pass": "without the hint all steps are looked at",
}
