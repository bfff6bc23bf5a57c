"""Any program as an agent: the prompt on standard input, the reply on standard output.

    command:./my-agent --flag

A reply that ends with `PARKED: <time> <why>` says that the program may not work before then (a usage limit): the run waits.
Reaching a time limit, dying by a signal or a non-zero exit is an ERROR, whatever was printed; what could not even be
started may be tried again inside the same attempt.
"""

from __future__ import annotations

import shlex
from typing import Any

from tenuto.agents.reply import parked, question, verdict
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

    def launch(self, job: Any) -> dict[str, Any]:
        return {"argv": self.argv, "stdin": job.prompt(), "env": {}}

    def read(self, job: Any, result: dict[str, Any], reply: str) -> dict[str, Any]:
        """The reply as a verdict; `transient` where the same attempt may start the program once more; `parked_until`
        where it may not work before a time."""
        if result["exit_code"] is None and result["signal"] is None:
            return _error(
                f"the program could not be started: {result['error']}", transient=not _is_missing(result["error"])
            )
        if result["cancelled"]:
            return _error("it was cancelled")
        if result["timed_out"]:
            return _error("the time limit was reached")
        if result["signal"] is not None:
            return _error(f"the program was ended by signal {result['signal']}")
        if result["exit_code"] != 0:
            return _error(f"the program ended with exit status {result['exit_code']}")
        waits = parked(reply)
        if waits is not None:
            return {**_error(waits[1]), "parked_until": waits[0]}
        asked = question(reply)
        if asked is not None:
            return {"verdict": "QUESTION", "summary": asked, "transient": False, "usage": {}}
        told = verdict(reply)
        return {
            "verdict": told["verdict"],
            "summary": told["summary"] or told.get("reason", ""),
            "transient": False,
            "usage": {},
        }


def _is_missing(error: str | None) -> bool:
    """A program that is not there will not be there a second later."""
    return any(
        words in (error or "") for words in ("No such file", "Permission denied", "Exec format", "Not a directory")
    )


def _error(reason: str, transient: bool = False) -> dict[str, Any]:
    return {"verdict": "ERROR", "summary": reason, "transient": transient, "usage": {}}
