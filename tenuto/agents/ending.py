"""How a program's process ended, before anything it said is looked at.

    ending(result)         an ERROR where it never began, was cancelled or ran out of time; None: its words count
    broken(result)         an ERROR for a signal or an exit status; None where it ended by itself and well
    told(verdict, ...)     what an adapter answers: verdict, summary, transient, usage, and what else it knows
    error(reason, ...)     the same for an ERROR

`transient`: the same attempt may start the program once more. `parked_until`: it may not work before then.
"""

from __future__ import annotations

from typing import Any

_FOR_GOOD = ("No such file", "Permission denied", "Exec format", "Not a directory")


def ending(result: Any) -> dict[str, Any] | None:
    if result["exit_code"] is None and result["signal"] is None:
        # A program that is not there will not be there a second later.
        missing = any(words in (result["error"] or "") for words in _FOR_GOOD)
        return error(f"the program could not be started: {result['error']}", transient=not missing)
    if result["cancelled"]:
        return error("it was cancelled")
    if result["timed_out"]:
        return error("the time limit was reached")
    return None


def broken(result: Any) -> dict[str, Any] | None:
    if result["signal"] is not None:
        return error(f"the program was ended by signal {result['signal']}")
    if result["exit_code"] != 0:
        return error(f"the program ended with exit status {result['exit_code']}")
    return None


def told(verdict: str, summary: str, **more: Any) -> dict[str, Any]:
    return {"verdict": verdict, "summary": summary, "transient": False, "usage": {}, **more}


def error(reason: str, transient: bool = False, **more: Any) -> dict[str, Any]:
    return told("ERROR", reason, **{"transient": transient, **more})
