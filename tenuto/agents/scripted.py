"""Recorded answers as an agent: a real process that writes files, replies, and fails on demand. For rehearsals and tests.

scripted:answers.yaml

answers:                       # the first that fits is given; nothing fits: DONE, every output is written, and every file of the item
  - for: {role: designer, try: 1}     # role, step, item, try, visit (how often the step was entered); * stands for anything
    reply: "DONE: designed"
    files: {"{out}": "# Design"}      # {out}: the first declared output, {run}: the run; paths are below the work directory
    run: make fixtures                # a shell command, before the files are written
    fault: hang                       # hang, exit 3, signal 9, flood, silent, daemon, ignore-signals
    wait: .tenuto-go                  # go on when this file exists
    usage: {tokens: 1200, micro_usd: 5400}    # what the attempt is said to have cost
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tenuto.agents.command import CommandAgent
from tenuto.agents.scripted_program import choose, read_script
from tenuto.errors import BadInput, NotFound


class ScriptedAgent(CommandAgent):
    def __init__(self, path: str) -> None:
        found = Path(path).resolve()
        if not found.is_file():
            raise NotFound("no-script", f"there is no file {path}", "scripted: takes a YAML file with answers")
        self.name = f"scripted:{found}"
        self.argv = [sys.executable, str(Path(__file__).with_name("scripted_program.py")), str(found)]
        self.script = str(found)
        try:
            answers = read_script(self.script)
            units = [unit for one in answers for unit in one.get("usage", {})]
        except Exception as error:  # noqa: BLE001  # whatever is wrong with it, it is the script's author who can tell
            hint = "answers: [{for: {role: designer}, reply: 'DONE: designed'}]"
            raise BadInput("bad-script", f"{path} cannot be read as answers: {error}", hint) from None
        self.reports = tuple(dict.fromkeys(units))

    def launch(self, job: Any) -> dict[str, Any]:
        package = str(Path(__file__).resolve().parents[2])
        told = super().launch(job)
        told["env"] = {**_place(job), "PYTHONPATH": os.pathsep.join([package, *sys.path[1:]])}
        return told

    def read(self, job: Any, result: dict[str, Any], reply: str) -> dict[str, Any]:
        told = super().read(job, result, reply)
        if self.reports:
            answer = choose(read_script(self.script), {**job.environment({}, []), **_place(job)})
            told["usage"] = {**dict.fromkeys(self.reports, 0), **answer.get("usage", {})}
        return told


def _place(job: Any) -> dict[str, str]:
    return {
        "TENUTO_TRY": str(job.attempt["number"]), "TENUTO_VISIT": str(job.attempt["iteration"]),
        "TENUTO_ITEM_FILES": "\n".join(job.item_files),
    }  # fmt: skip
