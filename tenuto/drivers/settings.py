"""The repository's own settings: .tenuto/config.yaml. What is not there has its default; what is not known is refused.

agent: command:./my-agent        who does the work; roles may differ
roles: {designer: "command:./other"}
checks: {build: make, tests: make test}   the project's own commands, run by the engine where a pipeline says so
environment: [MY_API_URL]        variables that agents get besides the allow-list
notify: {command: ./tell-me}     run (or posted to, with url:) when a run waits, fails or finishes
gates: guarded                   guarded | signed | isolated
workspace: worktree              shared | worktree: each parallel item in a git work tree of its own
setup: {run: [npm ci], copy: [.env]}      what a fresh work tree needs before an agent starts in it
signers: .tenuto/signers         signed: who may approve, in ssh's allowed_signers format
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tenuto.errors import BadInput

_SHAPES: dict[str, type | tuple[type, ...]] = {
    "agent": str, "roles": dict, "checks": dict, "environment": list, "notify": dict, "gates": str, "signers": str, "pipeline": str,
    "workspace": str, "setup": dict,
}  # fmt: skip
LEVELS = ("guarded", "signed", "isolated")


def read_settings(root: str) -> dict[str, Any]:
    from tenuto.knowledge import yaml_data

    path = Path(root) / ".tenuto" / "config.yaml"
    if not path.is_file():
        return {}
    found = yaml_data.read(path.read_text(encoding="utf-8"), str(path)).data or {}
    if not isinstance(found, dict):
        raise BadInput("bad-settings", f"{path} must hold a mapping", "see docs/reference/settings.md")
    for name, value in found.items():
        if name not in _SHAPES:
            raise BadInput(
                "bad-settings", f"{path} has a setting '{name}' that nobody knows", f"known: {', '.join(_SHAPES)}"
            )
        if not isinstance(value, _SHAPES[name]):
            raise BadInput(
                "bad-settings", f"{path}: '{name}' has the wrong kind of value", "see docs/reference/settings.md"
            )
    if found.get("gates", "guarded") not in LEVELS:
        raise BadInput("bad-settings", f"{path}: gates is one of {', '.join(LEVELS)}", "gates: guarded")
    if found.get("workspace", "shared") not in ("shared", "worktree"):
        raise BadInput("bad-settings", f"{path}: workspace is shared or worktree", "workspace: shared")
    for key, value in found.get("setup", {}).items():
        if key not in ("run", "copy") or not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadInput(
                "bad-settings", f"{path}: setup has 'run' and 'copy', each a list", "setup: {run: [make deps], copy: [.env]}"
            )
    return found
