"""Any version of a file that Tenuto ever stored or wrote, by its hash.

artifact      from the database, or from objects/
state file    the last few as they were; older ones are made again from the events up to that
              point, and count only when the hash is the one that was asked for
"""

from __future__ import annotations

from tenuto.core.fold import fold, fold_repo
from tenuto.encoding import digest
from tenuto.errors import BadInput, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Reader, Render
    from tenuto.workspace.turn import Workspace


def stored_version(workspace: Workspace, sha: str) -> bytes:
    if len(sha) != 64 or sha.strip("0123456789abcdef"):
        raise BadInput("bad-hash", f"{sha!r} is not a SHA-256 hash: 64 of 0-9 and a-f")
    with workspace.journal.read() as reader:
        body = reader.blob(sha)
        if body is not None:
            return body
        found = reader.render_of(sha)
        if found is not None:
            kept = found[1][1] or _made_again(workspace, reader, *found)
            if kept is not None:
                return kept
    from tenuto.workspace.objects import object_path

    try:
        with open(object_path(workspace.state, sha), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise NotFound("no-such-content", f"nothing is stored under {sha}", "tenuto show RUN", sha256=sha) from None


def _made_again(workspace: Workspace, reader: Reader, key: str, render: Render) -> bytes | None:
    sha, _, name, seq = render
    events = [event for number, event in enumerate(reader.events(name), 1) if number <= seq]
    if not events:
        return None
    run = fold(events)
    repo = fold_repo(event for event in reader.events("@") if event["at"] <= events[-1]["at"])
    path = key.rpartition("//")[2]
    for name in run["dialects"]:
        dialect = workspace.dialects.get(name)
        made = dialect.render(run, repo).get(path) if dialect is not None else None
        if made is not None and digest(made) == sha:
            return made
    return None
