"""Carry a run on after a decision: `tenuto resume RUN` as a program of its own, which outlives this server.

Nothing of it is held here: the journal says who drives a run, and its log lies beside the attempts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tenuto.engine.rest import is_driven
from tenuto.errors import TenutoError
from tenuto.hooks.sessions import START

if TYPE_CHECKING:
    from tenuto.workspace.workspace import Workspace

_PACKAGE = __file__.rpartition("/tenuto/")[0]
_BEGINS = 20.0  # seconds, after which nobody waits for it any longer
_LOOK_AGAIN = 0.05
_LAST = 2000
_WAITS = (0, 5)  # exit statuses of a run that has come to its rest
_begun: list[subprocess.Popen[bytes]] = []


def go_on(workspace: Workspace, run: str) -> None:
    """Returns when it drives the run, or has brought it to a rest. Its own words are the error where it cannot."""
    _begun[:] = [one for one in _begun if one.poll() is None]
    if is_driven(workspace, run):
        return
    folder = f"{workspace.state}/attempts/{run}"
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/resume.log"
    with open(path, "ab") as log:
        start = log.tell()
        begun = subprocess.Popen(
            [sys.executable, "-I", "-c", START, _PACKAGE, "-C", workspace.root, "resume", "--", run],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=workspace.root,
            start_new_session=True,
            close_fds=True,
        )
    _begun.append(begun)
    until = time.monotonic() + _BEGINS
    while (status := begun.poll()) is None:
        if is_driven(workspace, run) or time.monotonic() > until:
            return
        time.sleep(_LOOK_AGAIN)
    if status not in _WAITS:
        with open(path, "rb") as log:
            log.seek(max(start, os.path.getsize(path) - _LAST))
            said = log.read().decode("utf-8", "replace").strip()
        raise TenutoError("did-not-go-on", f"it is recorded, but the run does not go on: {said}", f"see {path}")
