"""One attempt in depth, and the files that it left: what was asked, what was said, what was found.

    attempt_page(workspace, run, name)      said beside found, its receipt, its checks, its cost, its files by kind
    log_files(workspace, run, name, kind)   the files of a kind, one a start (checks: one a command)
    log_part(path, before, size)            a part of a file from its end, or from `before` on backwards, cut at lines
    log_after(path, after, size)            what came behind a place: for those who follow
    find_in_log(path, words, ...)           the lines in which words stand

A log may have hundreds of megabytes. Nothing here reads more of one than it gives, but for a search, which reads it in
pieces and keeps none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal, TypedDict

from tenuto.core.parts import is_refuted
from tenuto.core.times import between
from tenuto.errors import BadInput, NotFound
from tenuto.show.sentences import first_line
from tenuto.show.views import AttemptView, attempt_view

if TYPE_CHECKING:
    from tenuto.core.records.run import CheckResult, Leftover, Run
    from tenuto.workspace.workspace import Workspace

LogKind = Literal["reply", "output", "errors", "prompt", "checks"]
LOG_KINDS: tuple[LogKind, ...] = ("reply", "output", "errors", "prompt", "checks")

PART = 64 << 10
_PIECE = 1 << 20
_LONGEST = 4_000  # bytes of a line that a search shows
_FILES: dict[LogKind, str] = {"output": "stdout", "errors": "stderr", "prompt": "prompt"}


class LogFile(TypedDict):
    kind: LogKind
    start: int  # the how-many-th start of the attempt; 0: of none
    name: str
    path: str
    size: int
    is_narrated: bool  # events of a program, which read better as what they say


class LogPart(TypedDict):
    path: str
    first: int  # the place of its first byte
    last: int  # the place behind its last one
    size: int  # of the whole file
    text: str
    is_whole_line: bool  # False: a line longer than a part begins before it


class LogHit(TypedDict):
    at: int  # the place of the line's first byte
    line: str


class LogHits(TypedDict):
    hits: list[LogHit]
    more: bool  # there are others behind these


class AttemptPage(TypedDict):
    attempt: AttemptView
    task: str
    is_refuted: bool
    took_ms: int | None  # None: it has not ended
    checks: list[CheckResult]
    outputs: list[str]
    touched: list[str]
    merged: str  # the commit; empty: no code was merged
    conflict: str
    kept: str  # the branch that keeps what was not merged
    leftover: list[Leftover]
    starts: int
    earlier: list[str]  # other attempts at the same place in the same visit
    later: list[str]
    logs: list[LogFile]


def attempt_page(workspace: Workspace, run: Run, name: str) -> AttemptPage:
    attempt = run["attempts"].get(name)
    if attempt is None:
        raise NotFound("no-such-attempt", f"run {run['id']} has no attempt {name!r}", f"tenuto logs {run['id']}")
    receipt, ended = attempt["receipt"], attempt["ended_at"]
    place = (attempt["step"], attempt["iteration"], attempt["extra"].get("seat"))
    same = [
        one
        for one, other in run["attempts"].items()
        if (other["step"], other["iteration"], other["extra"].get("seat")) == place
    ]
    here = same.index(name)
    logs = list(log_files(workspace, run, name))
    return {
        "attempt": attempt_view(name, attempt),
        "task": attempt["task"],
        "is_refuted": is_refuted(attempt["said"], attempt["found"]),
        "took_ms": between(attempt["started_at"], ended) if ended else None,
        "checks": receipt.get("checks", []),
        "outputs": list(receipt.get("outputs", ())),
        "touched": receipt.get("touched", []),
        "merged": receipt.get("merged", ""),
        "conflict": receipt.get("conflict", ""),
        "kept": receipt.get("kept", ""),
        "leftover": receipt.get("leftover", []),
        "starts": receipt.get("starts", max((one["start"] for one in logs), default=0)),
        "earlier": same[:here],
        "later": same[here + 1 :],
        "logs": logs,
    }


# ---- the files of an attempt


def log_files(workspace: Workspace, run: Run, name: str, kind: LogKind | None = None) -> Iterator[LogFile]:
    """Of one kind, or of all; the first start first. What was cleaned away, or is on another machine, is not here."""
    folder = f"{workspace.state}/attempts/{run['id']}/{name}"
    starts = sorted((entry for entry in _names(folder) if entry.isdigit()), key=int)
    for wanted in [kind] if kind else LOG_KINDS:
        if wanted == "checks":
            yield from _checks(folder, starts)
            continue
        for start in starts:
            found = _names(f"{folder}/{start}")
            own = _FILES.get(wanted) or ("reply" if "reply" in found else "stdout")
            if own in found:
                yield _file(wanted, int(start), own, f"{folder}/{start}/{own}", wanted == "reply" and own == "stdout")


def log_paths(workspace: Workspace, run: str, name: str) -> list[str]:
    """What the last start of an attempt writes to, for those who wait until there is more."""
    folder = f"{workspace.state}/attempts/{run}/{name}"
    starts = sorted(int(entry) for entry in _names(folder) if entry.isdigit())
    return [f"{folder}/{starts[-1]}/{file}" for file in ("stdout", "stderr", "reply")] if starts else []


def _checks(folder: str, starts: list[str]) -> Iterator[LogFile]:
    """What commands of the project printed: each in a folder of its own beside the starts, set-up included."""
    for name in _names(f"{folder}/checks"):
        for stream in ("stdout", "stderr"):
            path = f"{folder}/checks/{name}/{stream}"
            if os.path.isfile(path) and (stream == "stdout" or os.path.getsize(path)):
                yield _file("checks", 0, name if stream == "stdout" else f"{name}, errors", path, False)
    for start in starts:  # where earlier versions kept them
        for name in _names(f"{folder}/{start}"):
            if name.startswith("check-"):
                yield _file("checks", int(start), name, f"{folder}/{start}/{name}", False)


def _file(kind: LogKind, start: int, name: str, path: str, is_narrated: bool) -> LogFile:
    size = os.path.getsize(path)
    return {"kind": kind, "start": start, "name": name, "path": path, "size": size, "is_narrated": is_narrated}


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


# ---- parts of a file


def log_part(path: str, before: int | None = None, size: int = PART) -> LogPart:
    """At most so many bytes that end at `before`, or at the end of the file; the first line is a whole one, unless it
    is longer than that."""
    with _opened(path) as file:
        whole = os.fstat(file.fileno()).st_size
        last = whole if before is None else max(0, min(before, whole))
        first = max(0, last - max(1, size))
        file.seek(max(0, first - 1))
        body = file.read(last - max(0, first - 1))
    if first == 0:
        return _part(path, 0, whole, body, True)
    cut = body.find(b"\n", 0, len(body) - 1)  # the byte before the part tells whether a line begins with it
    if cut < 0:
        return _part(path, first, whole, body[1:], False)
    return _part(path, first - 1 + cut + 1, whole, body[cut + 1 :], True)


def log_after(path: str, after: int, size: int = PART, unfinished: bool = False) -> LogPart:
    """At most so many bytes from `after` on, up to the end of a line; `unfinished`: the last line need not have ended.
    A file that has become shorter is read from its beginning."""
    with _opened(path) as file:
        whole = os.fstat(file.fileno()).st_size
        first = after if 0 <= after <= whole else 0
        file.seek(first)
        body = file.read(max(1, size))
    ended = body.rfind(b"\n") + 1
    if not (unfinished and first + len(body) == whole) and (ended or len(body) < size):
        body = body[:ended]
    return _part(path, first, whole, body, True)


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise NotFound("no-log", f"{os.path.basename(path)} cannot be read: {error.strerror}") from None


def _part(path: str, first: int, whole: int, body: bytes, is_whole_line: bool) -> LogPart:
    return {
        "path": path,
        "first": first,
        "last": first + len(body),
        "size": whole,
        "text": body.decode("utf-8", "replace"),
        "is_whole_line": is_whole_line,
    }


def find_in_log(path: str, words: str, after: int = 0, most: int = 200) -> LogHits:
    """The lines from `after` on in which these words stand, whatever their case."""
    if not words:
        raise BadInput("no-words", "a search needs a word", "give one")
    wanted = words.lower()
    hits: list[LogHit] = []
    with _opened(path) as file:
        file.seek(max(0, after))
        at, rest = max(0, after), b""
        while piece := file.read(_PIECE):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop() if len(lines[-1]) < _PIECE else b""
            for line in lines:
                if wanted in line.decode("utf-8", "replace").lower():
                    if len(hits) == most:
                        return {"hits": hits, "more": True}
                    hits.append({"at": at, "line": line[:_LONGEST].decode("utf-8", "replace")})
                at += len(line) + 1
        if rest and wanted in rest.decode("utf-8", "replace").lower():
            hits.append({"at": at, "line": rest[:_LONGEST].decode("utf-8", "replace")})
    return {"hits": hits[:most], "more": len(hits) > most}


def problem_line(page: AttemptPage) -> str:
    """The first claim that was not true, in one line."""
    found = page["attempt"]["found"]
    return first_line(found["problem"]) if found and found["problem"] else ""
