"""Any program as an agent: the prompt on standard input, the reply on standard output.

    command:./my-agent --flag

A reply that ends with `PARKED: <time> <why>` says that the program may not work before then (a usage limit): the run waits.
Reaching a time limit, dying by a signal or a non-zero exit is an ERROR, whatever was printed; the last line on standard error is its reason.
What could not even be started may be tried again inside the same attempt.
"""

from __future__ import annotations

import shlex
from typing import Any

from tenuto.agents.ending import broken, ending, told
from tenuto.agents.reply import heard
from tenuto.errors import BadInput


class CommandAgent:
    reports: tuple[str, ...] = ()
    """What `usage` tells of an attempt, besides the attempt itself: tokens, micro_usd."""

    def __init__(self, words: str) -> None:
        self.name = f"command:{words}"
        try:
            self.argv = shlex.split(words)
        except ValueError as error:
            raise BadInput("bad-agent", f"'{words}' cannot be read as a command: {error}", "check its quotes") from None
        if not self.argv:
            raise BadInput("bad-agent", "command: needs a program", "for example --agent 'command:./my-agent --flag'")

    def program(self, role: Any) -> str:
        return self.argv[0]

    def launch(self, job: Any) -> dict[str, Any]:
        return {"argv": self.argv, "stdin": job.prompt(), "env": {}}

    def read(self, job: Any, result: dict[str, Any], reply: str) -> dict[str, Any]:
        """The reply as a verdict; `transient` where the same attempt may start the program once more; `parked_until`
        where it may not work before a time."""
        failed = broken(result)
        if failed is not None:
            why = job.errors.strip().rpartition("\n")[2]
            failed["summary"] = f"{failed['summary']}: {why}"[:500] if why else failed["summary"]
        return ending(result) or failed or told(**heard(reply))
