"""Python programs that Tenuto starts import nothing from the folder that they are started in."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "tenuto"
# The demos' repositories are their own. A scripted agent is an agent: it gets the agents' environment, without
# PYTHONPATH.
OTHERS = {"demo.py", "demo_machines.py", "agents/scripted.py"}


def test_each_is_started_isolated() -> None:
    """With -I: a folder tenuto/, a sitecustomize.py or PYTHONPATH in a work tree would else be ours."""
    found: dict[str, list[bool]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                isolated = len(node.elts) > 1 and ast.unparse(node.elts[1]) == "'-I'"
                found.setdefault(path.relative_to(PACKAGE).as_posix(), []).append(isolated)
    assert {"supervise/attempts.py", "agents/acp.py", "hooks/sessions.py"} <= found.keys()
    assert {name for name, every in found.items() if not all(every)} <= OTHERS
