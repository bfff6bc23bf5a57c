"""Declared secrets in files that agents write: what holds one is not taken in, merged or committed by us.

    told(engine, job, paths)       why they are not taken in, in words; empty when all is well
    found(engine, job, paths)      which of them hold a secret, and which one
    hide_in_memory(engine, job)    memory.md, which everybody reads, without them

What an agent says is masked on its way to the disk: supervise/masking.py, which also knows how a value may be spelled.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from tenuto.drivers import git
from tenuto.drivers.copies import put
from tenuto.drivers.jobs import Job
from tenuto.errors import Refused
from tenuto.files.places import LARGEST, place
from tenuto.supervise.masking import masked, values


def told(engine: Any, job: Job, paths: list[str]) -> str:
    """What holds what was declared secret is not taken in, nor merged; where it stands, it is the agent's doing."""
    found_in = [f"the output {git.in_words(path)} holds the value of {name}, which is secret" for path, name in found(engine, job, paths).items()]
    return found_in[0] if found_in else ""


def hide_in_memory(engine: Any, job: Job) -> None:
    """memory.md is taken in whoever wrote it, shown to all that come after, and no output that could be refused."""
    secrets = engine.settings.get("secrets")
    with suppress(Refused):  # a link or a folder in its place: the turn that would take it in says so
        spot = place(engine.workspace.root, job.path("memory.md"), create=False) if secrets and not job.isolated else None
        if spot is not None:
            with spot:
                text = spot.read() or b""
            hidden = masked(text, values(os.environ, secrets))
            if hidden != text:
                put(engine.workspace.root, spot.path, hidden)


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
