"""How the commands of a dialect with JSON answers say them: pretty, or in the envelope; warnings apart."""

from __future__ import annotations

import sys

from tenuto.encoding import pretty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.workspace.turn import Workspace


def show(workspace: Workspace, answer: Any, as_json: bool) -> None:
    for warning in workspace.warnings:
        from tenuto.entrypoints.inert import inert

        sys.stderr.write(f"tenuto: {inert(warning)}\n")
    if as_json:
        from tenuto.entrypoints.envelope import success

        sys.stdout.write(success(answer) + "\n")
        return
    text = pretty(answer)
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        from tenuto.entrypoints.inert import inert_json

        text = inert_json(text)
    sys.stdout.write(text)
