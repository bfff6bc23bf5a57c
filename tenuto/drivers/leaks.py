"""Declared secrets in files that agents write: what holds one is not taken in, merged or committed by us.

    told(engine, job, paths)       why they are not taken in, in words; empty when all is well
    found(engine, job, paths)      which of them hold a secret, and which one
    guard(workspace, settings)     what turns take in whoever wrote it (memory.md, state files): without them

What an agent says is masked on its way to the disk: supervise/masking.py, which also knows how a value may be spelled.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any

from tenuto.core.records import Run
from tenuto.drivers import git
from tenuto.drivers.copies import put
from tenuto.drivers.jobs import Job
from tenuto.errors import Refused
from tenuto.files.places import LARGEST
from tenuto.supervise.masking import masked, values
from tenuto.workspace.turn import Turn, Workspace


def told(engine: Any, job: Job, paths: list[str]) -> str:
    """What holds what was declared secret is not taken in, nor merged; where it stands, it is the agent's doing."""
    found_in = [f"the output {git.in_words(path)} holds the value of {name}, which is secret" for path, name in found(engine, job, paths).items()]
    return found_in[0] if found_in else ""


def guard(workspace: Workspace, settings: dict[str, Any]) -> None:
    """From now on, no turn of this process takes in what its environment holds and the settings call secret."""
    secrets = values(os.environ, settings.get("secrets", []))
    if secrets:
        workspace.before_looking = partial(_hide, secrets)


def _hide(secrets: list[bytes], turn: Turn, run: Run) -> None:
    """State files and memory.md are taken in whoever wrote them, and shown to all that come after: there is no output to be refused."""
    workspace = turn.workspace
    for name, where in run["dialects"].items():
        dialect, root = workspace.dialects.get(name), workspace.root_of(where.get("tree", ""))
        if dialect is None or root is None:
            continue
        for path in dialect.paths(run, turn.repo):
            text = b""
            with suppress(Refused):  # a link or a folder in its place: the turn says so when it comes to it
                text = workspace.files(where.get("tree", "")).read(path) or b""
            if masked(text, secrets) != text:
                put(root, path, masked(text, secrets))  # refused where it cannot be replaced: nothing is taken in then


def found(engine: Any, job: Job, paths: list[str]) -> dict[str, str]:
    """Those of these files that hold a secret, and which one. One that is too large to be kept is not read."""
    secrets = {name: values(os.environ, [name]) for name in engine.settings.get("secrets", [])}
    leaking: dict[str, str] = {}
    for path in paths if any(secrets.values()) else ():
        full = os.path.join(job.workdir, path)
        if os.path.isfile(full) and os.path.getsize(full) <= LARGEST:
            with open(full, "rb") as file:
                text = file.read()
            for name in [name for name, spelled in secrets.items() if any(value in text for value in spelled)]:
                leaking[path] = name
    return leaking
