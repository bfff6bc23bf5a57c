"""Recorded answers as an agent: a real process that writes files, replies, and fails on demand. For rehearsals and
tests.

scripted:answers.yaml

answers:                       # the first that fits is given; nothing fits: DONE, every output is written, and every
                               file of the item
  - for: {role: designer, try: 1}     # role, step, member (of a cluster or of waves), item, try, visit (how often the
                                      step was entered); * stands for anything
    reply: "DONE: designed"
    files: {"{out}": "# Design"}      # {out}: the first declared output, {run}: the run; paths are below the work
                                      directory
    run: make fixtures                # a shell command, before the files are written
    fault: hang                       # hang, exit 3, signal 9, flood, silent, daemon, ignore-signals
    wait: .tenuto-go                  # go on when this file exists
    usage: {tokens: 1200, micro_usd: 5400}    # what the attempt is said to have cost
    exit: 2                           # the exit status; where a command is rehearsed, this is its answer
"""

from __future__ import annotations

import os
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.agents.command import CommandAgent, ProjectCommand
from tenuto.agents.scripted_program import choose, read_script
from tenuto.core.pipeline.check import seats
from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.core.records.action import Ending, Launch, Reply
    from tenuto.ports import Assignment


class ScriptedAgent(CommandAgent):
    def __init__(self, path: str) -> None:
        file = Path(path).resolve()
        if not file.is_file():
            raise NotFound("no-script", f"there is no file {path}", "scripted: takes a YAML file with answers")
        self.name = f"scripted:{file}"
        self.argv = [sys.executable, str(Path(__file__).with_name("scripted_program.py")), str(file)]
        self.script = str(file)
        try:
            answers = read_script(self.script)
            units = [unit for one in answers for unit in one.get("usage", {})]
        except Exception as error:  # noqa: BLE001  # the script's author can mend whatever is wrong with it
            hint = "answers: [{for: {role: designer}, reply: 'DONE: designed'}]"
            raise BadInput("bad-script", f"{path} cannot be read as answers: {error}", hint) from None
        self.reports = tuple(dict.fromkeys(units))

    def launch(self, plan: Assignment) -> Launch:
        package = str(Path(__file__).resolve().parents[2])
        launch = super().launch(plan)
        launch["env"] = {**_place(plan), "PYTHONPATH": os.pathsep.join([package, *sys.path[1:]])}
        return launch

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        reply = super().reply(plan, ending, output)
        if self.reports:
            answer = choose(read_script(self.script), {**plan.environment({}, []), **_place(plan)})
            reply["usage"] = {**dict.fromkeys(self.reports, 0), **answer.get("usage", {})}
        return reply


class ScriptedCommand(ProjectCommand):
    """Recorded answers in the place of a project's own command: the pipeline's `exits` and `stdout` hold as ever."""

    def __init__(self, agent: ScriptedAgent) -> None:
        self.agent = agent

    def launch(self, plan: Assignment) -> Launch:
        launch = self.agent.launch(plan)
        written = "\n".join(_written(plan))
        env = {**plan.command_environment(), **launch["env"], "TENUTO_OUTPUTS": written}
        return {**launch, "stdin": "", "env": env}


def _written(plan: Assignment) -> list[str]:
    """The outputs that a command writes itself: not the document that its standard output becomes."""
    member = _place(plan)["TENUTO_MEMBER"]
    commands = [seat["command"] for seat in seats(plan.step) if seat["id"] == member and seat["command"]]
    printed = [re.sub(r"\{\w+\}", "*", one["stdout"]) for one in commands if one["stdout"]]
    outputs = plan.environment({}, [])["TENUTO_OUTPUTS"].splitlines()
    return [path for path in outputs if not any(fnmatchcase(path, f"*/{pattern}") for pattern in printed)]


def _place(plan: Assignment) -> dict[str, str]:
    return {
        "TENUTO_TRY": str(plan.attempt["number"]),
        "TENUTO_VISIT": str(plan.attempt["iteration"]),
        "TENUTO_MEMBER": str(plan.attempt["extra"].get("seat", "")).partition("@")[0],
        "TENUTO_ITEM_FILES": "\n".join(plan.item_files),
    }
