"""Promise 11: same journal, same state, on every version.

Every recording in tests/replay/ (recorded.py) is read into an empty repository: the runs must be those of then, and
every file that they show must be the same bytes. The events are also folded one by one, and from the state after each
of them on. Every kind of event that can be written stands in a recording.

The broken variant folds one kind of event differently.
"""

from __future__ import annotations

from prove import recorded
from prove.frame import Amount, Progress, Result, alone, place
from tenuto.core import fold
from tenuto.encoding import loads


def prove(amount: Amount, tell: Progress) -> Result:
    violations, events = [f"no recording tells of {kind}" for kind in recorded.unrecorded()], 0
    names = recorded.names()
    for done, name in enumerate(names, 1):
        with alone(), place() as work:
            try:
                violations += recorded.replay(name, work / "repository")
            except Exception as error:  # noqa: BLE001  a recording that cannot be read any more is the worst of all
                violations.append(f"{name}: {error!r}")
        events += (recorded.FOLDER / name / "journal.jsonl").read_text().count('{"kind":"event"')
        tell(done, len(names))
    files = sum(len(loads((recorded.FOLDER / name / "files.json").read_text())) for name in names)
    return Result(len(names), violations, {"events": f"{events:,}", "files": f"{files:,}"})


def control(amount: Amount) -> Result:
    """A later version that no longer says when a run was last changed the way it did."""
    started, ended = fold._APPLY["StepStarted"], fold._APPLY["StepEnded"]
    try:
        fold._APPLY["StepStarted"] = lambda run, event: None
        fold._APPLY["StepEnded"] = lambda run, event: None
        return prove(amount, lambda done, of: None)
    finally:
        fold._APPLY["StepStarted"], fold._APPLY["StepEnded"] = started, ended
