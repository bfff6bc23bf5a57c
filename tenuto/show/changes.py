"""Documents as they were at each moment, and what changed between two of them.

    artifact_page(workspace, run, ...)  a document of a run: its versions, who made each, one of them, and a difference
    gate_files(workspace, run)          what an open gate shows: the bytes that each hash names, what is new in them
    attempt_diff(workspace, run, name)  what an attempt changed: by git where it was merged, else in what it stored
    run_diff(workspace, run)            what a run changed in the repository: from its base commit to its branch
    text_diff(path, before, after)      of two texts
    decisions_of, export_view           what persons decided, on which hashes; and all that a file about a run holds

The bytes of a hash come from the journal. The file on the disk counts only where it has that very hash.
Git is asked without the programs that a repository may name for differences, and for so many bytes at most.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, Literal, TypedDict

from tenuto.encoding import digest
from tenuto.errors import NotFound, TenutoError
from tenuto.names import check_path
from tenuto.show.attempts import log_files, log_part
from tenuto.show.run_page import RunPage, Runs
from tenuto.show.runs import load
from tenuto.show.views import ArtifactView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenuto.core.records.run import Json, Run
    from tenuto.workspace.workspace import Workspace

LONGEST = 200 << 10  # bytes of a document that is shown, or compared
_MOST_LINES = 5_000  # of a difference
_LONGEST_DIFF = 2 << 20  # characters that git says
_SECONDS = 20.0
_MOST_RUNS = 200  # that are looked through for an attempt
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Mark = Literal[" ", "+", "-"]


class DiffLine(TypedDict):
    mark: Mark
    old: int  # its number there; 0: it is not there
    new: int
    text: str


class Hunk(TypedDict):
    header: str
    lines: list[DiffLine]


class FileDiff(TypedDict):
    path: str
    before: str  # its path then; empty: it is new
    after: str  # its path now; empty: it is gone
    added: int
    removed: int
    is_binary: bool
    hunks: list[Hunk]


class DiffView(TypedDict):
    source: Literal["git", "stored", "none"]
    of: str  # what is compared, in words
    files: list[FileDiff]
    is_cut: bool  # there is more than is shown


class VersionView(TypedDict):
    sha256: str
    size: int
    seq: int  # the event that stored it
    at: str
    step: str | None
    by: str  # the attempt that made it, else the person or program


class DocumentView(TypedDict):
    """One version of a document, as it may be shown."""

    sha256: str
    size: int
    text: str | None  # None: it is no text, too long, or not there
    why_not: str  # why there is no text


class ArtifactPage(TypedDict):
    name: str
    path: str
    versions: list[VersionView]  # the newest first
    document: DocumentView
    against: str  # the hash that it is compared with; empty: with none
    diff: DiffView | None


class GateFile(TypedDict):
    """A file that a gate shows."""

    path: str
    sha256: str | None  # of what is decided on; None: there was nothing to read
    now: str | None  # of what lies there at the moment
    is_as_shown: bool  # a decision holds for what lies there
    document: DocumentView
    before: str  # the hash that this gate showed the last time; empty: it did not show it
    diff: DiffView | None  # against that
    changed: DiffView | None  # from what is shown to what lies there now


# ---- documents


def artifact_page(workspace: Workspace, run: Run, name: str, sha: str = "", against: str = "") -> ArtifactPage:
    """`sha`: which version; empty: the newest. `against`: compare it with that version."""
    versions = versions_of(workspace, run, name)
    if not versions:
        known = ", ".join(run["artifacts"]) or "none"
        message = f"run {run['id']} has no artifact {name!r}"
        raise NotFound("no-such-artifact", message, f"it has: {known}", artifact=name)
    path = run["artifacts"][name]["path"] if name in run["artifacts"] else name
    wanted = _version(versions, sha, name) if sha else versions[0]["sha256"]
    before = _version(versions, against, name) if against else ""
    return {
        "name": name,
        "path": path,
        "versions": versions,
        "document": document(workspace, wanted),
        "against": before,
        "diff": stored_diff(workspace, path, before, wanted) if before else None,
    }


def versions_of(workspace: Workspace, run: Run, name: str) -> list[VersionView]:
    """The newest first. One that was stored again as it was is no new version."""
    found: list[VersionView] = []
    with workspace.journal.read() as reader:
        for seq, event in enumerate(reader.events(run["id"]), 1):
            if event["type"] != "ArtifactStored" or event["name"] != name:
                continue
            if not found or found[-1]["sha256"] != event["sha256"]:
                found.append(
                    {
                        "sha256": event["sha256"],
                        "size": event["size"],
                        "seq": seq,
                        "at": event["at"],
                        "step": event["step"],
                        "by": event["attempt"] or event["by"],
                    }
                )
    return found[::-1]


def _version(versions: Sequence[VersionView], sha: str, name: str) -> str:
    near = {one["sha256"] for one in versions if one["sha256"].startswith(sha)}
    if len(near) != 1:
        raise NotFound("no-such-version", f"{name} has no version {sha}", "see its versions", artifact=name)
    return near.pop()


def document(workspace: Workspace, sha: str | None, path: str = "") -> DocumentView:
    """The bytes that a hash names: from the journal, else from the disk if they are the same."""
    body = content(workspace, sha, path)
    if body is None:
        why = (
            "there was nothing to read" if sha is None else "nothing is stored under this hash, and the file is another"
        )
        return {"sha256": sha or "", "size": 0, "text": None, "why_not": why}
    text, why = _as_text(body)
    return {"sha256": sha or "", "size": len(body), "text": text, "why_not": why}


def content(workspace: Workspace, sha: str | None, path: str = "") -> bytes | None:
    from tenuto.workspace.objects import stored_version

    if sha is None:
        return None
    try:
        return stored_version(workspace, sha)
    except TenutoError:
        body = _on_disk(workspace, path) if path else None
        return body if body is not None and digest(body) == sha else None


def _on_disk(workspace: Workspace, path: str) -> bytes | None:
    """As a person reads it there, also through a link (engine/gates.hash_of)."""
    full = os.path.join(workspace.root, check_path(path, colons=True))
    try:
        with open(full if os.path.isfile(full) else "", "rb") as file:
            return file.read()
    except OSError:
        return None


def _as_text(body: bytes) -> tuple[str | None, str]:
    if len(body) > LONGEST:
        return None, f"it has {len(body):,} bytes; up to {LONGEST:,} are shown"
    if b"\0" in body:
        return None, "it is no text"
    return body.decode("utf-8", "replace"), ""


def gate_files(workspace: Workspace, run: Run) -> list[GateFile]:
    gate = run["gate"]
    if gate is None:
        return []
    before = _shown_before(workspace, run, gate["name"])
    return [_gate_file(workspace, one["path"], one["sha256"], before.get(one["path"]) or "") for one in gate["shown"]]


def _gate_file(workspace: Workspace, path: str, sha: str | None, before: str) -> GateFile:
    lying = _on_disk(workspace, path)
    now = digest(lying) if lying is not None else None
    shown = content(workspace, sha, path)
    changed = None
    if now != sha:
        changed = text_diff(path, shown or b"", lying or b"", "what is shown, and what lies there now")
    return {
        "path": path,
        "sha256": sha,
        "now": now,
        "is_as_shown": now == sha,
        "document": document(workspace, sha, path),
        "before": before,
        "diff": stored_diff(workspace, path, before, sha) if before and sha and before != sha else None,
        "changed": changed,
    }


def _shown_before(workspace: Workspace, run: Run, name: str) -> dict[str, str | None]:
    """What this gate showed when it was decided the last time."""
    opened: dict[str, Json] = {}
    last: Json | None = None
    with workspace.journal.read() as reader:
        for event in reader.events(run["id"]):
            if event["type"] == "GateOpened" and event["name"] == name:
                opened[event["gate"]] = event
            elif event["type"] == "GateDecided" and event["gate"] in opened:
                last = opened[event["gate"]]
    return {one["path"]: one["sha256"] for one in last["shown"]} if last else {}


# ---- differences


def stored_diff(workspace: Workspace, path: str, before: str, after: str) -> DiffView:
    then, now = content(workspace, before, path), content(workspace, after, path)
    return text_diff(path, then or b"", now or b"", f"{before[:8]} and {after[:8]}")


def text_diff(path: str, before: bytes, after: bytes, of: str = "") -> DiffView:
    """Lines that differ only in how they end count as the same."""
    then, now = _as_text(before)[0], _as_text(after)[0]
    if then is None or now is None:
        changed: FileDiff = {
            "path": path,
            "before": path,
            "after": path,
            "added": 0,
            "removed": 0,
            "is_binary": True,
            "hunks": [],
        }
        return {"source": "stored", "of": of, "files": [changed], "is_cut": False}
    old, new = then.splitlines(), now.splitlines()
    is_cut = max(len(old), len(new)) > _MOST_LINES
    said = difflib.unified_diff(old[:_MOST_LINES], new[:_MOST_LINES], f"a/{path}", f"b/{path}", lineterm="")
    return {"source": "stored", "of": of, "files": parsed("\n".join(said)), "is_cut": is_cut}


def attempt_diff(workspace: Workspace, run: Run, name: str) -> DiffView:
    attempt = run["attempts"].get(name)
    if attempt is None:
        raise NotFound("no-such-attempt", f"run {run['id']} has no attempt {name!r}", f"tenuto logs {run['id']}")
    merged = attempt["receipt"].get("merged", "")
    if merged:
        return git_diff(workspace, f"{merged}^1", merged, f"what was merged as {merged[:12]}")
    return _of_outputs(workspace, run, name)


def _of_outputs(workspace: Workspace, run: Run, name: str) -> DiffView:
    """What the attempt stored, against the version before; of all attempts where none is named."""
    versions: dict[str, list[tuple[str, bool]]] = {}
    with workspace.journal.read() as reader:
        for event in reader.events(run["id"]):
            if event["type"] == "ArtifactStored":
                is_own = event["attempt"] == name if name else bool(event["attempt"])
                versions.setdefault(event["path"], []).append((event["sha256"], is_own))
    files: list[FileDiff] = []
    is_cut = False
    for path, known in versions.items():
        own = [number for number, (_, is_own) in enumerate(known) if is_own]
        if own:
            before = known[own[0] - 1][0] if own[0] else ""
            diff = stored_diff(workspace, path, before, known[own[-1]][0])
            files += [{**one, "before": one["before"] if before else ""} for one in diff["files"]]
            is_cut = is_cut or diff["is_cut"]
    source: Literal["stored", "none"] = "stored" if files else "none"
    return {
        "source": source,
        "of": f"the documents that {name or 'its attempts'} wrote",
        "files": files,
        "is_cut": is_cut,
    }


class Difference(TypedDict):
    run: str
    of: str  # a run, an attempt or a gate, in words
    diff: DiffView


def difference(workspace: Workspace, target: str | None) -> Difference:
    """By the name of a run, of an attempt of any run (the newest that has it), or of the current run's open gate."""
    from tenuto.show.runs import chosen, past_runs

    if target is not None:
        with workspace.journal.read() as reader:
            named = reader.load(target) if target != "@" else None
        if named is not None:
            return _of_run(workspace, named)
    current = load(workspace, chosen(workspace, None)) if target is None or _has_current(workspace) else None
    if target is None:
        assert current is not None
        return _of_run(workspace, current)
    if current is not None and current["gate"] is not None and target in ("gate", current["gate"]["name"]):
        return _of_gate(workspace, current)
    owners = [current] if current is not None and target in current["attempts"] else past_runs(workspace, _MOST_RUNS)
    owner = next((run for run in owners if run is not None and target in run["attempts"]), None)
    if owner is None:
        message = f"there is no run, no attempt and no open gate {target!r}"
        raise NotFound("nothing-to-compare", message, "tenuto list; tenuto logs RUN; tenuto status", target=target)
    return {
        "run": owner["id"],
        "of": f"attempt {target} of {owner['id']}",
        "diff": attempt_diff(workspace, owner, target),
    }


def _has_current(workspace: Workspace) -> bool:
    from tenuto.show.runs import current

    return current(workspace) is not None


def _of_run(workspace: Workspace, run: Run) -> Difference:
    """On a branch of its own what git says, with what is not committed while the tree stands on it; otherwise what the
    run stored."""
    from tenuto.files import git

    base, branch = run["settings"].get("base_commit", ""), run["settings"].get("branch", "")
    if not base or not branch:
        diff = _of_outputs(workspace, run, "")
    elif git.branch(workspace.root) == branch:
        diff = git_diff(
            workspace, base, "", f"{base[:12]} and the work tree; files that git does not know are left out"
        )
    else:
        diff = run_diff(workspace, run)
    return {"run": run["id"], "of": f"run {run['id']}", "diff": diff}


def _of_gate(workspace: Workspace, run: Run) -> Difference:
    """What is decided on, against what the last decision was made on; a file that it did not show then is new."""
    files: list[FileDiff] = []
    is_cut = False
    for one in gate_files(workspace, run):
        if one["sha256"] is None or one["before"] == one["sha256"]:
            continue
        diff = stored_diff(workspace, one["path"], one["before"], one["sha256"])
        files += [{**file, "before": file["before"] if one["before"] else ""} for file in diff["files"]]
        is_cut = is_cut or diff["is_cut"]
    gate = run["gate"]["name"] if run["gate"] else ""
    view: DiffView = {
        "source": "stored",
        "of": "what it shows, since its last decision",
        "files": files,
        "is_cut": is_cut,
    }
    return {"run": run["id"], "of": f"gate {gate} of {run['id']}", "diff": view}


def run_diff(workspace: Workspace, run: Run) -> DiffView:
    base, branch = run["settings"].get("base_commit", ""), run["settings"].get("branch", "")
    if not base or not branch:
        return {"source": "none", "of": "it has no branch of its own", "files": [], "is_cut": False}
    return git_diff(workspace, base, branch, f"{base[:12]} and branch {branch}")


def git_diff(workspace: Workspace, before: str, after: str, of: str) -> DiffView:
    """`after`: the work tree where it is empty."""
    from tenuto.files import git

    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/")
    ends = [
        git.ask(workspace.root, "rev-parse", "--verify", "--quiet", "--end-of-options", end)
        for end in (before, after)
        if end
    ]
    if any(end.status != 0 for end in ends):
        return {"source": "none", "of": f"{of}: git does not know it here", "files": [], "is_cut": False}
    hashes = [end.out.strip() for end in ends]
    answer = git.ask(workspace.root, "diff", *options, *hashes, "--", seconds=_SECONDS)
    if answer.status != 0:
        return {"source": "none", "of": f"{of}: {answer.errors or 'git gave no answer'}", "files": [], "is_cut": False}
    said, is_cut = answer.out[:_LONGEST_DIFF], len(answer.out) > _LONGEST_DIFF
    return {"source": "git", "of": of, "files": parsed(said), "is_cut": is_cut}


def parsed(said: str) -> list[FileDiff]:
    """A unified difference as records. What it does not know, it passes over."""
    return [_file(lines) for lines in _by_file(said)]


def _by_file(said: str) -> Iterator[list[str]]:
    lines: list[str] = []
    left = 0  # lines of the hunk that are to come: what stands in a file is no header
    for line in said.split("\n"):
        begins = line.startswith("diff --git ") or (line.startswith("--- ") and not _has_header(lines))
        if begins and left <= 0 and lines:
            yield lines
            lines = []
        lines.append(line)
        left = _left(line, left)
    if any(lines):
        yield lines


def _has_header(lines: list[str]) -> bool:
    return bool(lines) and lines[0].startswith("diff --git ") and not any(line.startswith("@@ ") for line in lines)


def _left(line: str, left: int) -> int:
    found = re.match(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line) if left <= 0 else None
    if found:
        return int(found[1] or 1) + int(found[2] or 1)
    return left - {" ": 2, "+": 1, "-": 1}.get(line[:1], 2 if not line and left > 0 else 0) if left > 0 else 0


def _file(lines: list[str]) -> FileDiff:
    made: FileDiff = {
        "path": "",
        "before": "",
        "after": "",
        "added": 0,
        "removed": 0,
        "is_binary": False,
        "hunks": [],
    }
    old = new = left = 0
    for line in lines:
        found = _HUNK.match(line) if left <= 0 else None
        if found:
            old, new = int(found[1]), int(found[2])
            made["hunks"].append({"header": line, "lines": []})
        elif left > 0 and made["hunks"] and line[:1] in (" ", "+", "-", ""):
            mark: Mark = "+" if line[:1] == "+" else "-" if line[:1] == "-" else " "
            entry: DiffLine = {
                "mark": mark,
                "old": 0 if mark == "+" else old,
                "new": 0 if mark == "-" else new,
                "text": line[1:],
            }
            made["hunks"][-1]["lines"].append(entry)
            made["added"] += mark == "+"
            made["removed"] += mark == "-"
            old, new = old + (mark != "+"), new + (mark != "-")
        else:
            _header(made, line)
        left = _left(line, left)
    made["path"] = made["after"] or made["before"]
    return made


def _header(made: FileDiff, line: str) -> None:
    if line.startswith("diff --git "):
        half = line[len("diff --git ") :]
        made["before"], made["after"] = half[: len(half) // 2][2:], half[len(half) // 2 + 1 :][2:]
    elif line.startswith(("rename from ", "copy from ")):
        made["before"] = line.partition(" from ")[2]
    elif line.startswith(("rename to ", "copy to ")):
        made["after"] = line.partition(" to ")[2]
    elif line.startswith("--- "):
        made["before"] = "" if line == "--- /dev/null" else line[4:].removeprefix("a/").rstrip("\t")
    elif line.startswith("+++ "):
        made["after"] = "" if line == "+++ /dev/null" else line[4:].removeprefix("b/").rstrip("\t")
    elif line.startswith("new file"):
        made["before"] = ""
    elif line.startswith("deleted file"):
        made["after"] = ""
    elif line.startswith(("Binary files ", "GIT binary patch")):
        made["is_binary"] = True


# ---- a run in one file


class ShownHash(TypedDict):
    path: str
    sha256: str | None


class DecisionView(TypedDict):
    """A person's decision, and what it rests on."""

    seq: int  # the event that recorded it
    at: str
    name: str
    step: str | None
    decision: str
    who: str
    level: str  # how gates were protected then
    signer: str
    feedback: str
    answers: dict[str, str]
    shown: list[ShownHash]


class KeptDocument(TypedDict):
    name: str
    path: str
    by: str
    document: DocumentView


class KeptLog(TypedDict):
    attempt: str
    kind: str
    name: str
    text: str
    is_cut: bool


class ExportView(TypedDict):
    """Everything that a file about a run holds."""

    page: RunPage
    decisions: list[DecisionView]
    documents: list[KeptDocument]
    diff: DiffView | None
    logs: list[KeptLog]


SHORT = 64 << 10  # bytes of a document that a file about a run holds


def decisions_of(workspace: Workspace, name: str) -> list[DecisionView]:
    """In the order in which they were made, each with the hashes that its gate showed."""
    shown: dict[str, list[ShownHash]] = {}
    found: list[DecisionView] = []
    with workspace.journal.read() as reader:
        for seq, event in enumerate(reader.events(name), 1):
            if event["type"] == "GateOpened":
                shown[event["gate"]] = [{"path": one["path"], "sha256": one["sha256"]} for one in event["shown"]]
            elif event["type"] == "GateDecided":
                proof = event["proof"]
                found.append(
                    {
                        "seq": seq,
                        "at": event["at"],
                        "name": event["name"],
                        "step": event["step"],
                        "decision": event["decision"],
                        "who": event["who"],
                        "level": str(proof.get("level", "")),
                        "signer": str(proof.get("signer", "")),
                        "feedback": event["feedback"],
                        "answers": {field: str(value) for field, value in event.get("answers", {}).items()},
                        "shown": shown.get(event["gate"], []),
                    }
                )
    return found


def export_view(workspace: Workspace, name: str, with_logs: bool = False, with_diffs: bool = False) -> ExportView:
    """One run, its documents under SHORT bytes, and where asked for what it changed and the end of what agents printed.
    Declared secrets are masked."""
    run = load(workspace, name)
    page = Runs(workspace).page(name, lines=run["version"])
    documents = [_kept(workspace, artifact) for artifact in page["run"]["artifacts"]]
    logs = list(_logs(workspace, run)) if with_logs else []
    view: ExportView = {
        "page": page,
        "decisions": decisions_of(workspace, name),
        "documents": documents,
        "diff": run_diff(workspace, run) if with_diffs else None,
        "logs": logs,
    }
    masked: ExportView = workspace.secrets.value(view)
    return masked


def _kept(workspace: Workspace, artifact: ArtifactView) -> KeptDocument:
    if artifact["size"] > SHORT:
        why = f"it has {artifact['size']:,} bytes; this file holds those of up to {SHORT:,}"
        held: DocumentView = {"sha256": artifact["sha256"], "size": artifact["size"], "text": None, "why_not": why}
    else:
        held = document(workspace, artifact["sha256"], artifact["path"])
    return {"name": artifact["name"], "path": artifact["path"], "by": artifact["by"], "document": held}


def _logs(workspace: Workspace, run: Run) -> Iterator[KeptLog]:
    for name in run["attempts"]:
        for file in log_files(workspace, run, name):
            if file["kind"] in ("reply", "checks"):
                part = log_part(file["path"], size=SHORT)
                yield {
                    "attempt": name,
                    "kind": file["kind"],
                    "name": file["name"],
                    "text": part["text"],
                    "is_cut": part["first"] > 0,
                }
