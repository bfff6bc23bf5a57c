"""Tell somebody when a run waits, fails or finishes: run a command, post to a URL. Never in the way of the run.

A notice that cannot be delivered is said, and changes nothing; the other one is delivered all the same. Nobody waits for what a
command leaves in the background, and what takes longer than its time is ended with everything it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import Any

from tenuto.core.records import Run
from tenuto.encoding import dumps
from tenuto.workspace.turn import Workspace

_SECONDS = 20


def notify(workspace: Workspace, run: Run, settings: dict[str, Any]) -> None:
    wanted = settings.get("notify", {})
    waits: Any = run["gate"] or run["pause"] or run["blocked"] or {}
    told: Any = {
        "run": run["id"], "status": run["status"], "step": run["position"], "prompt": waits.get("prompt", waits.get("reason", "")),
        "error": run["failure"]["error"] if run["failure"] else "",
    }  # fmt: skip
    notice = dumps(told if workspace.secrecy is None else workspace.secrecy.out_of(told)).encode()
    for way, deliver in (("command", _run), ("url", _post)):
        if way in wanted:
            try:
                deliver(workspace, wanted[way], notice)
            except Exception as error:  # noqa: BLE001  # whatever it is: it is said, and changes nothing
                workspace.warn(f"nobody was notified: {error}")


def _run(workspace: Workspace, command: str, notice: bytes) -> None:
    with tempfile.TemporaryFile() as told:
        begun = subprocess.Popen(
            command, shell=True, cwd=workspace.root, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=told,
            start_new_session=True,
        )  # fmt: skip
        try:
            begun.communicate(notice, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()
            raise RuntimeError(f"{command!r} took longer than {_SECONDS} seconds") from None
        if begun.returncode != 0:
            told.seek(0)
            said = told.read()[-300:].decode("utf-8", "replace").strip()
            raise RuntimeError(f"{command!r} ended with exit status {begun.returncode}{f': {said}' if said else ''}")


def _post(workspace: Workspace, url: str, notice: bytes) -> None:
    from urllib.request import Request, urlopen

    with urlopen(Request(url, notice, {"Content-Type": "application/json"}), timeout=_SECONDS):
        pass
