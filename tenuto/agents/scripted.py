"""Recorded answers as an agent: a real process that writes files, replies, and fails on demand. For rehearsals and tests.

scripted:answers.yaml

answers:                       # the first that fits is given; nothing fits: DONE, and every output is written
  - for: {role: designer, try: 1}     # role, step, item, try, visit (how often the step was entered); * stands for anything
    reply: "DONE: designed"
    files: {"{out}": "# Design"}      # {out} is the first declared output; other paths are below the work directory
    fault: hang                       # hang, exit 3, signal 9, flood, silent, daemon, ignore-signals
    wait: .tenuto-go                  # go on when this file exists
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tenuto.agents.command import CommandAgent
from tenuto.errors import NotFound


class ScriptedAgent(CommandAgent):
    def __init__(self, path: str) -> None:
        found = Path(path).resolve()
        if not found.is_file():
            raise NotFound("no-script", f"there is no file {path}", "scripted: takes a YAML file with answers")
        self.name = f"scripted:{found}"
        self.argv = [sys.executable, str(Path(__file__).with_name("scripted_program.py")), str(found)]

    def launch(self, job: Any) -> dict[str, Any]:
        package = str(Path(__file__).resolve().parents[2])
        told = super().launch(job)
        told["env"] = {
            "TENUTO_TRY": str(job.attempt["number"]), "TENUTO_VISIT": str(job.attempt["iteration"]),
            "PYTHONPATH": os.pathsep.join([package, *sys.path[1:]]),
        }  # fmt: skip
        return told
