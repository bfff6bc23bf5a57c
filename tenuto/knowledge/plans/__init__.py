"""A plan, as a planner wrote it -> items, and everything about it that a reader should know.

    read_plan(text, item_files)      plan.md and tasks/*.md
    explain_plan(text, item_files)   the same, and line by line what was read from where

Two kinds of plan. One with a fenced block `tenuto-plan` (data.py) is read from there, and held to its form: the
shipped planner is asked for it. Any other is somebody's own text: tables in any column order, lists, checklists,
headings, arrows, `mermaid` graphs, YAML or JSON, mixed. There we are generous, and say what we did not understand.

Rule 1: only what the plan lists is an item. A task file that it does not list is named, and not run. Where the plan
lists none at all, its task files are the items.

Rule 2: an item that is marked as superseded, dropped, deferred or struck out is not run; nobody waits for it.

Rule 3: no dependency is lost. One that cannot be resolved stays in `depends_on` in the plan's own words, so that
core/items.py refuses it by name; a range with a hole is reported. "needs" and "after" count only with an item behind
them: people write "needs Node 22".

Rule 4: an amount is no id. A column of dependencies whose cells are plain numbers counts them: when one is 0 and no
item is called so; when every item has one; when the table counts files, too, and no id is written like that; or when
each is the number of dependencies that the rest of the plan gives. `02` is never an amount.

Rule 5: arrows say who comes first, not in which direction they are drawn. All arrows of one list point the same way;
which one is seen from the waves and dependencies of the plan, else from the order in which it lists the items.

Rule 6: where two places of a plan disagree, the stricter reading stands and the difference is a warning:
dependencies add up, of two waves the later one counts. Only for an item's agent does its own file win, because that is
where the orchestrator is told to look.

Rule 7: an item keeps the most telling name that was written: `01-parser` rather than `01`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenuto.knowledge.plans.reading import Explained, Plan, PlanLine, PlanWarning, explain_plan

__all__ = ["Explained", "Plan", "PlanLine", "PlanWarning", "explain_plan", "read_plan"]


def read_plan(text: str, item_files: Mapping[str, str] | None = None, name: str = "plan.md") -> Plan:
    """`item_files`: file name -> text. PlanRefused where a `tenuto-plan` block is not in order."""
    return explain_plan(text, item_files, name)["plan"]
