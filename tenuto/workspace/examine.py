"""Everything that can be checked about a journal and the files written from it, in one look."""

from __future__ import annotations

from tenuto.errors import NotFound
from tenuto.stores.verify import REPO, run_names, verify_contents, verify_database, verify_run
from tenuto.workspace.compare import compare_files, compare_logs, missing_contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.ports import Reader
    from tenuto.stores.verify import Finding
    from tenuto.workspace.turn import Workspace

    class Report(TypedDict):
        runs: int
        events: int
        findings: list[Finding]


def examine(workspace: Workspace, only: str | None = None) -> Report:
    """Without `only`: all runs, the repository's own stream, all contents and logs."""
    with workspace.journal.read() as reader:
        db = workspace.journal.connection()  # type: ignore[attr-defined]
        names = run_names(db)
        if only is not None and only not in names:
            raise NotFound("no-such-run", f"there is no run {only!r}", "tenuto list", run=only)
        chosen = [name for name in names if only in (None, name)]
        findings: list[Finding] = list(verify_database(db)) if only is None else []
        sound: set[str] = set()  # of a damaged run nobody knows what its files should be
        for name in chosen:
            bad = list(verify_run(db, name))
            findings += bad
            if not bad and name != REPO:
                sound.add(name)
                findings += missing_contents(workspace, reader, name)
        if only is None:
            findings += verify_contents(db)
        files = _compare(workspace, reader, sound, only)
        events = sum(reader.version(name) for name in chosen)
    if files:
        files = _compare_again(workspace, sound, only, files)
    return {"runs": len([name for name in chosen if name != REPO]), "events": events, "findings": findings + files}


def _compare(workspace: Workspace, reader: Reader, runs: set[str], only: str | None) -> list[Finding]:
    logs = compare_logs(workspace, reader) if only is None else ()
    return [*compare_files(workspace, reader, runs), *logs]


def _compare_again(workspace: Workspace, runs: set[str], only: str | None, found: list[Finding]) -> list[Finding]:
    """A writer may have been between its commit and its files while we looked. Under the lock there is none."""
    try:
        workspace.journal.lock()
    except OSError:
        return found  # it may not be written to: then nobody does
    try:
        with workspace.journal.read() as reader:
            return _compare(workspace, reader, runs, only)
    finally:
        workspace.journal.unlock()
