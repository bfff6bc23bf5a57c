"""How far one thing leads through the code: `scripts/walk` counts it, and it does not grow again.

BEFORE is what the same script counted when the code was cut anew. A walk that passes more modules, or changes the
folder more often, than AT_MOST allows is a reason to look for the deeper module, not to raise the number.
"""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# walk -> modules passed, changes of folder
BEFORE = {"INIT": (31, 109), "SubagentStop": (29, 94), "attempt": (70, 470), "approve": (38, 88)}
AT_MOST = {"INIT": (30, 78), "SubagentStop": (30, 72), "attempt": (74, 300), "approve": (39, 70)}
# Half of BEFORE is the goal. How often an attempt is looked at while it runs differs from walk to walk: "attempt" has
# some room. It has grown by some modules since: budgets of all runs, trees of their own, planted files, traces.


def script() -> Any:
    loader = SourceFileLoader("walk", str(ROOT / "scripts" / "walk"))
    spec = importlib.util.spec_from_loader("walk", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_no_walk_grows() -> None:
    figures = {name: (len(walk.modules), walk.changes.total()) for name, walk in script().walks(ROOT).items()}
    assert set(figures) == set(AT_MOST)
    assert min(min(pair) for pair in figures.values()) > 5, f"a walk that counts nothing is not short: {figures}"
    longer = {
        name: f"{figures[name]} now, {AT_MOST[name]} at most, {BEFORE[name]} before"
        for name in figures
        if any(now > most for now, most in zip(figures[name], AT_MOST[name], strict=True))
    }
    assert not longer, f"(modules, changes of folder); scripts/walk --pairs shows them: {longer}"
