"""What people say about a pull request, as feedback.

    reviews_of(workspace, run, ...)   what is new about a run's pull request; read_until notes that it was read
    comments(forge, root, number)     everything that was said there, the oldest first; not what Tenuto said
    in_words(comments)                as one text: who, where, what

Whoever passes it on quotes it (words.py): it is data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tenuto.errors import Refused
from tenuto.forge.api import Forge, forge_of, pages
from tenuto.forge.words import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenuto.core.records.run import Json, Run
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace

MARK = "<!-- tenuto:run "


class Comment(TypedDict):
    at: str
    author: str
    path: str  # empty: about the whole
    line: int  # 0: about the file
    text: str
    verdict: str  # of a review: approved, changes requested; empty otherwise


def comments(forge: Forge, root: str, number: str, since: str = "") -> list[Comment]:
    """`since`: only what was said after that time."""
    found = _of_github(forge, root, number) if forge.kind == "github" else _of_gitlab(forge, root, number)
    kept = [one for one in found if (one["text"].strip() or one["verdict"]) and MARK not in one["text"]]
    return sorted((one for one in kept if one["at"] > since), key=lambda one: one["at"])


def in_words(said: Sequence[Comment]) -> str:
    parts = []
    for one in said:
        where = f" on {one['path']}{':' + str(one['line']) if one['line'] else ''}" if one["path"] else ""
        verdict = f" ({one['verdict']})" if one["verdict"] else ""
        head = " ".join(clean(f"{one['author']}{where}{verdict}").split())
        parts.append(f"{head}:\n{clean(one['text']).strip()}".rstrip())
    return "\n\n".join(parts)


def reviews_of(workspace: Workspace, run: Run, settings: Settings, number: str = "") -> list[Comment]:
    """What is new. `number`: of another pull request than the one that was opened for the run."""
    known = run["settings"].get("pull_request") or {}
    wanted = number.lstrip("#") or str(known.get("number", ""))
    if not wanted.isdecimal():
        message = f"no pull request was opened for run {run['id']}" if not number else f"{number!r} is no number"
        raise Refused("no-pull-request", message, "tenuto pr, or: tenuto revise --from-pr NUMBER", run=run["id"])
    said = settings.get("pull_request", {})
    forge = forge_of(workspace.root, said.get("remote", ""), said.get("forge", ""))
    since = str(known.get("read_until", "")) if wanted == str(known.get("number", "")) else ""
    found = comments(forge, workspace.root, wanted, since)
    if not found:
        message = f"nobody said anything new about pull request {wanted}"
        raise Refused("nothing-new", message, "tenuto revise --feedback 'what should change'", run=run["id"])
    return found


def read_until(workspace: Workspace, run: str, said: Sequence[Comment]) -> None:
    """The next time begins behind these."""
    with workspace.turn() as turn:
        known = turn.existing(run)["settings"].get("pull_request") or {}
        if known:
            turn.do(run, {"do": "ChangeSettings", "changes": {"pull_request": {**known, "read_until": said[-1]["at"]}}})


def _of_github(forge: Forge, root: str, number: str) -> Iterator[Comment]:
    pull = f"{forge.project}/pulls/{number}"
    for one in pages(forge, root, f"{pull}/reviews"):
        state = str(one.get("state", "")).lower().replace("_", " ")
        verdict = state if state in ("approved", "changes requested") else ""
        yield _comment(one, str(one.get("submitted_at") or ""), verdict=verdict)
    for one in pages(forge, root, f"{pull}/comments"):
        yield _comment(one, path=str(one.get("path") or ""), line=one.get("line") or one.get("original_line") or 0)
    for one in pages(forge, root, f"{forge.project}/issues/{number}/comments"):
        yield _comment(one)


def _of_gitlab(forge: Forge, root: str, number: str) -> Iterator[Comment]:
    for one in pages(forge, root, f"{forge.project}/merge_requests/{number}/notes?sort=asc"):
        if not one.get("system"):
            place = one.get("position") or {}
            yield _comment(one, path=str(place.get("new_path") or ""), line=place.get("new_line") or 0)


def _comment(one: Json, at: str = "", path: str = "", line: object = 0, verdict: str = "") -> Comment:
    author = one.get("user") or one.get("author") or {}
    return {
        "at": at or str(one.get("created_at") or ""),
        "author": str(author.get("login") or author.get("username") or "somebody"),
        "path": path,
        "line": line if isinstance(line, int) else 0,
        "text": str(one.get("body") or ""),
        "verdict": verdict,
    }
