"""Artifacts as resources: tenuto://RUN/NAME, as the attempt delivered it, whatever stands in the file now.

Listed are the artifacts of runs that have not ended, and of the current one; any other can be read by its address.
"""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

SCHEME = "tenuto"
TEMPLATE = f"{SCHEME}://{{run}}/{{name}}"
MOST_LISTED = 200


def uri_of(run: str, artifact: str) -> str:
    return f"{SCHEME}://{quote(run, safe='')}/{quote(artifact, safe='/')}"


def listed(workspace: Workspace) -> list[dict[str, Any]]:
    with workspace.journal.read() as reader:
        names = [*dict.fromkeys([reader.load_repo()["current"], *(run for run, _ in reader.open_runs())])]
        runs = [run for name in names if name and (run := reader.load(name)) is not None]
    made = [_described(run, name) for run in runs for name in run["artifacts"]]
    return made[:MOST_LISTED]


def _described(run: Run, name: str) -> dict[str, Any]:
    one = run["artifacts"][name]
    return {
        "name": f"{run['id']}/{name}", "uri": uri_of(run["id"], name), "size": one["size"], "mime_type": kind_of(one["path"]),
        "description": f"{one['path']}, by {one['attempt'] or one['by']}",
    }  # fmt: skip


def kind_of(path: str) -> str:
    return "text/markdown" if path.endswith(".md") else mimetypes.guess_type(path)[0] or "text/plain"


def read(workspace: Workspace, uri: str) -> tuple[str, bytes]:
    """(its kind, its bytes)"""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME or not parts.netloc or not parts.path.strip("/"):
        raise BadInput("bad-address", f"{uri} is no address of an artifact", TEMPLATE)
    run = workspace.load(unquote(parts.netloc))
    name, body = find(workspace, run, unquote(parts.path[1:]))
    return kind_of(run["artifacts"][name]["path"]), body


def find(workspace: Workspace, run: Run, wanted: str) -> tuple[str, bytes]:
    """An artifact by its name or its path."""
    from tenuto.workspace.versions import stored_version

    name = next((name for name, one in run["artifacts"].items() if wanted in (name, one["path"])), None)
    if name is None:
        known = ", ".join(run["artifacts"]) or "none"
        raise NotFound("no-such-artifact", f"run {run['id']} has no artifact {wanted!r}", f"it has: {known}", artifact=wanted)
    return name, stored_version(workspace, run["artifacts"][name]["sha256"])
