"""Declared secrets in files that agents write: what holds one is not taken in, merged or committed by us.

    told(engine, job, paths)       why they are not taken in, in words; empty when all is well
    found(engine, job, paths)      which of them hold a secret, and which one

What an agent says is masked on its way to the disk: supervise/masking.py, which also knows how a value may be spelled. What turns take in
whoever wrote it (state files, memory.md): workspace/secrets.py.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.drivers import git
from tenuto.drivers.jobs import Job
from tenuto.files.places import LARGEST


def told(engine: Any, job: Job, paths: list[str]) -> str:
    """What holds what was declared secret is not taken in, nor merged; where it stands, it is the agent's doing."""
    found_in = [f"the output {git.in_words(path)} holds the value of {name}, which is secret" for path, name in found(engine, job, paths).items()]
    return found_in[0] if found_in else ""


def found(engine: Any, job: Job, paths: list[str]) -> dict[str, str]:
    """Those of these files that hold a secret, and which one. One that is too large to be kept is not read."""
    secrecy = engine.workspace.secrecy
    leaking: dict[str, str] = {}
    for path in paths if secrecy is not None else ():
        full = os.path.join(job.workdir, path)
        if os.path.isfile(full) and os.path.getsize(full) <= LARGEST:
            with open(full, "rb") as file:
                name = secrecy.held_by(file.fileno())
            if name:
                leaking[path] = name
    return leaking
