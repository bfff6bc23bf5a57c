"""A plan, as a planner wrote it -> items, and everything about it that a reader should know.

    read_plan(text, item_files)   plan.md and tasks/*.md
    read_breakdown(value)         the JSON task breakdown of an architect or spec

Generous in reading: tables in any column order, lists, headings, item files, front matter, mixed.
Strict in meaning:

Rule 1: nothing is dropped. A dependency that cannot be resolved stays in `depends_on` in the plan's
own words, so that core/waves.py refuses it by name; a range with a hole is reported.

Rule 2: where two places of a plan disagree, the stricter reading stands and the difference is a
warning: dependencies add up, of two waves the later one counts. Only for an item's agent does its
own file win, because that is where the orchestrator is told to look.

Rule 3: an item keeps the most telling name that was written: `01-parser` rather than `01`.
"""

from __future__ import annotations

from tenuto.knowledge.plans.breakdown import read_breakdown
from tenuto.knowledge.plans.reading import Plan, PlanWarning, read_plan

__all__ = ["Plan", "PlanWarning", "read_breakdown", "read_plan"]
