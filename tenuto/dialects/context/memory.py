"""Project memory: decisions and patterns that outlive a task, appended to two files.

Entries come from `tenuto memory add` and, when the final gate is approved, from the auditors'
`memory_candidates`. A title that is there already is not added again. Nothing is ever taken out.
"""

from __future__ import annotations

from tenuto.dialects.context.places import DECISIONS, PATTERNS
from tenuto.dialects.context.wording import wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Done, Files, Turn, Workspace
    from tenuto.ports import Reader

KINDS = {"decision": DECISIONS, "pattern": PATTERNS}
_TITLES = {"decision": "# Architecture Decisions\n", "pattern": "# Code Patterns\n"}
_EMPTY = {
    "decision": "[No project decisions recorded yet]",
    "pattern": "[No project patterns recorded yet]",
}


def remember(workspace: Workspace, kind: str, title: str, text: str, rationale: str, task: str) -> Done:
    from tenuto.dialects.context.tasks import for_change, named

    if kind not in KINDS:
        raise wrong(f"Invalid kind: {kind}. Use {' or '.join(KINDS)}")
    if not text.strip() and not title.strip():
        raise wrong(f"Missing required parameter: {kind}")
    with workspace.turn() as turn:
        run = for_change(turn, task) if task else None
        if run is None:
            from tenuto.dialects.context.tasks import pointer

            slug = pointer(turn)
            run = named(turn, slug) if slug else None
        source = run["id"] if run else ""
        added = _add(turn, kind, [_entry(kind, title, text, rationale, source, turn.at)])
    said = f"{kind} recorded" if added else f"{kind} was there already"
    return {"status": "success", "task": source, "data": said, "files_touched": [KINDS[kind]] if added else []}


def remember_candidates(turn: Turn, run: Run) -> None:
    """What the auditors of this task thought worth keeping."""
    from tenuto.dialects.context.audits import read_history

    entries: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}
    for audit in read_history(turn, run):
        candidates = audit.get("memory_candidates") if isinstance(audit, dict) else None
        for candidate in candidates if isinstance(candidates, list) else []:
            told = _candidate(candidate, run, turn.at)
            if told is not None:
                kind, title, text = told
                entries[kind].append((title, text))
    counts = {kind: _add(turn, kind, listed) for kind, listed in entries.items() if listed}
    if any(counts.values()):
        turn.do(run["id"], {
            "do": "Note", "text": "Project Memory Updated",
            "extra": {f"{kind.capitalize()}s": count for kind, count in counts.items() if count},
        })  # fmt: skip


def _candidate(candidate: Any, run: Run, at: str) -> tuple[str, str, str] | None:
    if isinstance(candidate, str):
        candidate = {"type": "decision", "content": candidate}
    if not isinstance(candidate, dict):
        return None
    said = str(candidate.get("type") or candidate.get("kind") or "decision").lower()
    kind = "pattern" if "pattern" in said else "decision"
    text = str(candidate.get("content") or candidate.get("description") or candidate.get("text") or "")
    title = str(candidate.get("title") or candidate.get("name") or "")
    rationale = str(candidate.get("rationale") or candidate.get("reason") or "")
    if not rationale and candidate.get("source"):
        rationale = f"from {candidate['source']}"
    if not text.strip() and not title.strip():
        return None
    return (kind, *_entry(kind, title, text, rationale, run["id"], at))


def _entry(kind: str, title: str, text: str, rationale: str, task: str, at: str) -> tuple[str, str]:
    name = " ".join((title.strip() or text.strip().splitlines()[0]).split()).lstrip("# ")[:120]
    body = text.strip() or name
    lines = [f"\n## {name}\n"]
    if kind == "decision":
        lines += [f"**Date:** {at[:10]}", *([f"**Task:** {task}"] if task else []), f"**Decision:** {body}"]
        lines += [f"**Rationale:** {rationale.strip()}"] if rationale.strip() else []
    else:
        lines += [body, "", *([f"**Rationale:** {rationale.strip()}"] if rationale.strip() else [])]
        lines += [*([f"**Source:** {task}"] if task else []), f"**Date:** {at[:10]}"]
    return name, "\n".join(lines) + "\n"


def _add(turn: Turn, kind: str, entries: list[tuple[str, str]]) -> int:
    path = KINDS[kind]
    standing = (turn.workspace.files().read(path) or b"").decode("utf-8", "replace")
    titles = {line.lstrip("# ").strip().lower() for line in standing.splitlines() if line.startswith("#")}
    fresh = []
    for title, text in entries:
        if title.lower() not in titles:
            titles.add(title.lower())
            fresh.append(text)
    if fresh:
        begun = standing or b"".join(turn.tx.log_text(path)).decode("utf-8", "replace")
        added = ("" if begun else _TITLES[kind]) + ("\n" if begun and not begun.endswith("\n") else "") + "".join(fresh)
        turn.log(path, added.encode())
    return len(fresh)


def memory_text(files: Files, reader: Reader, longest: int = 0) -> str:
    """Both files, as RETRIEVE injects them and agents get them. `longest`: characters of each; older entries are left out."""
    shown = {kind: _latest(_recorded(files, reader, kind), longest, kind) or _EMPTY[kind] for kind in KINDS}
    return f"## Project Memory\n\n### Decisions\n{shown['decision']}\n\n### Patterns\n{shown['pattern']}"


def _recorded(files: Files, reader: Reader, kind: str) -> str:
    """A file's text, or the journal's where the file is not there (another branch); empty where there is no entry yet:
    only a title, comments, rules."""
    found = files.read(KINDS[kind])
    text = (found if found is not None else b"".join(reader.log_text(KINDS[kind]))).decode("utf-8", "replace").strip()
    bare = text
    while "<!--" in bare:
        before, _, rest = bare.partition("<!--")
        bare = before + rest.partition("-->")[2]
    content = [line for line in bare.splitlines() if line.strip(" -*_=>") and not line.startswith(("# ", ">"))]
    return text if content else ""


def _latest(text: str, longest: int, kind: str) -> str:
    """The newest entries stand last. A cut is made before an entry, and said."""
    if not longest or len(text) <= longest:
        return text
    kept = text[-longest:]
    begin = kept.find("\n## ")
    return f"[older entries are left out; all of them: {KINDS[kind]}]\n\n{kept[begin + 1 :]}"
