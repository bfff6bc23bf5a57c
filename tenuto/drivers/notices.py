"""Tell somebody when a run waits, fails or finishes: run a command, or post to a URL. Never in the way of the run."""

from __future__ import annotations

import subprocess
from typing import Any

from tenuto.core.records import Run
from tenuto.encoding import dumps
from tenuto.workspace.turn import Workspace

_SECONDS = 20


def notify(workspace: Workspace, run: Run, settings: dict[str, Any]) -> None:
    wanted = settings.get("notify", {})
    waits: Any = run["gate"] or run["pause"] or run["blocked"] or {}
    notice = dumps({
        "run": run["id"], "status": run["status"], "step": run["position"], "prompt": waits.get("prompt", waits.get("reason", "")),
        "error": run["failure"]["error"] if run["failure"] else "",
    })  # fmt: skip
    try:
        if "command" in wanted:
            subprocess.run(
                wanted["command"],
                shell=True,
                cwd=workspace.root,
                input=notice.encode(),
                timeout=_SECONDS,
                check=True,
                capture_output=True,
            )
        if "url" in wanted:
            from urllib.request import Request, urlopen

            with urlopen(
                Request(wanted["url"], notice.encode(), {"Content-Type": "application/json"}), timeout=_SECONDS
            ):
                pass
    except Exception as error:  # noqa: BLE001  # a notice that cannot be delivered is said, and changes nothing
        workspace.warn(f"nobody was notified: {error}")
