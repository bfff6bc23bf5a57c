"""What the user declares for hooks, for the repository or for one run.

    gate=block        no agent is called while the run waits for a person      (off)
    files=PATTERN,..  no edit outside these; files=items: the items under way  (off)
    verdicts=on       an agent's answer ends with a verdict line               (off)
    stop=block        a session that owns a run is reminded before it stops    (off)

`key=off` takes a declaration back. A run's own word counts before the repository's.
"""

from __future__ import annotations

from tenuto.core.boundaries import settings_of
from tenuto.drivers.hooks.failing import mark
from tenuto.errors import BadInput, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json
    from tenuto.workspace.turn import Workspace

_OFF = ("off", "no", "false", "")


def parse(pairs: list[str]) -> Json:
    declared: Json = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in ("gate", "files", "verdicts", "stop"):
            raise BadInput(
                "bad-declaration", f"{pair!r} declares nothing", "gate=block files=src/** verdicts=on stop=block"
            )
        declared[key] = _value(key, value)
    return declared


def _value(key: str, value: str) -> Any:
    if value.lower() in _OFF:
        return False if key == "verdicts" else "off" if key in ("gate", "stop") else None
    if key == "verdicts":
        return True
    if key == "files":
        return "items" if value == "items" else [pattern.strip() for pattern in value.split(",") if pattern.strip()]
    if value != "block":
        raise BadInput("bad-declaration", f"{key} is block or off, not {value!r}", f"{key}=block")
    return value


def declare(workspace: Workspace, declared: Json, run: str = "") -> Json:
    """Record it; returns everything that is declared now."""
    changes: Json = {"hooks": declared}
    with workspace.turn() as turn:
        target = turn.existing(run) if run else None
        if _blocks(declared):
            mark(workspace.state, run or "@", True)  # before it is recorded: killed in between, it is closed too early, not too late
        if run:
            turn.do(run, {"do": "ChangeSettings", "changes": changes})
            now = settings_of(turn.repo["settings"], target)
        else:
            turn.do_repo({"do": "ChangeSettings", "changes": changes})
            now = settings_of(turn.repo["settings"], None)
        recorded = (target or turn.repo)["settings"]["hooks"]
    remember(workspace, recorded, run)
    return now


def remember(workspace: Workspace, declared: Json, run: str = "") -> None:
    """What must hold even when the journal cannot be asked."""
    if "gate" in declared or "files" in declared:
        workspace.journal.lock()
        try:
            mark(workspace.state, run or "@", _blocks(declared))
        finally:
            workspace.journal.unlock()


def mark_again(workspace: Workspace, run: str) -> None:
    """Somebody may have been killed before they marked what they declared, or a backup was read in. Best effort: the journal answers now."""
    try:
        workspace.journal.lock()  # whoever takes it back does that under the lock, too
        try:
            with workspace.journal.read() as reader:
                found = reader.load(run) if run else None
                ways = {"@": reader.load_repo()["settings"].get("hooks"), run: found["settings"].get("hooks") if found else None}
            for who, declared in ways.items():
                if declared and _blocks(declared):
                    mark(workspace.state, who, True)
        finally:
            workspace.journal.unlock()
    except (OSError, TenutoError):
        pass


def _blocks(declared: Json) -> bool:
    return declared.get("gate") == "block" or bool(declared.get("files"))
