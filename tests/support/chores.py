"""Long commands as functions of words, for processes that are killed in the middle of them (see crashing.py)."""

from __future__ import annotations

import tenuto
from tenuto.workspace.backup import import_lines
from tenuto.workspace.checkup import repair, restore
from tenuto.workspace.forget import forget


def forget_text(root: str, text: str) -> int:
    forget(tenuto.open(root), [text])
    return 0


def import_backup(root: str, path: str) -> int:
    with open(path, "rb") as lines:
        import_lines(tenuto.open(root), lines)
    return 0


def repair_all(root: str) -> int:
    return len(repair(tenuto.open(root))["left"])


def restore_file(root: str, path: str) -> int:
    restore(tenuto.open(root), path)
    return 0
