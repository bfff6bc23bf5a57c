"""QUERY: ranked passages of artifacts, memory and history, and where they come from. No model answers.

Artifacts are indexed when they are stored. History and memory are indexed here, as far as they have
grown since the last question: a command that only starts a phase must not pay for a search.
"""

from __future__ import annotations

from tenuto.dialects.context.language import NOTHING
from tenuto.dialects.context.passages import passages_of
from tenuto.dialects.context.places import CURRENT, DECISIONS, HISTORY, PATTERNS, key_of
from tenuto.dialects.context.wording import wrong
from tenuto.encoding import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.dialects.context.shapes import Answered, Files, Passage, Workspace

_INDEXED = "context:indexed:"  # + file: when it had changed last; then how much of it is indexed, its hash, the sources
_FILES = (HISTORY, DECISIONS, PATTERNS)
_SHOWN = 700  # characters of a passage
_FILTERED = 400  # passages that are looked through for one task's


def query(workspace: Workspace, question: str, limit: str, task: str) -> Answered:
    if not question.strip():
        raise wrong("Missing required parameter: question")
    count = _count(limit)
    from tenuto.dialects.context.listing import notice_folders

    notice_folders(workspace)
    _index_files(workspace)
    slug = ""
    if task:
        from tenuto.dialects.context.tasks import named

        with workspace.turn() as turn:
            slug = named(turn, task)["id"]
    with workspace.journal.read() as reader:
        found = sorted(reader.search(question, _FILTERED if slug else 3 * count), key=_worth, reverse=True)
        current = reader.load_repo()["owners"].get(key_of(workspace.tree, CURRENT)) or "none"
    passages = [
        _passage(entry)
        for entry in found
        if not slug or entry["run"] == slug or f"**Task:** {slug}\n" in entry["text"]
    ][:count]
    return {
        "status": "success", "task": slug or current, "data": _shown(question, passages), "files_touched": [],
        "passages": passages,
    }  # fmt: skip


def _worth(entry: Any) -> float:
    """What was designed or decided says more than that it was stored."""
    score: float = entry.get("score", 0.0)
    return score / 2 if entry["path"] == HISTORY else score


def _passage(entry: Any) -> Passage:
    return {"task": entry["run"], "path": entry["path"], "heading": entry["heading"], "text": entry["text"]}


def _count(limit: str) -> int:
    if limit.strip().lower() in NOTHING:
        return 5
    if not (limit.strip().isascii() and limit.strip().isdecimal() and 0 < int(limit.strip()[:6]) <= 1000):
        raise wrong(f"Invalid limit: {limit.strip()}. Use a number from 1 to 1000")
    return int(limit.strip()[:6])


def _shown(question: str, passages: list[Passage]) -> str:
    if not passages:
        return f"No passage found for: {' '.join(question.split())}"
    lines: list[str] = []
    for number, passage in enumerate(passages, 1):
        where = f"{passage['path']} > {passage['heading']}" if passage["heading"] else passage["path"]
        text = passage["text"].strip("\n")
        lines += [f"[{number}] {where}", text if len(text) <= _SHOWN else text[:_SHOWN].rstrip() + " ...", ""]
    return "\n".join(lines).rstrip("\n")


def _index_files(workspace: Workspace) -> None:
    """History and memory, as far as they have grown since the last question; all of one that was rewritten."""
    files = workspace.files()
    with workspace.journal.read() as reader:
        grown = [path for path in _FILES if _stamp(files, path) != (reader.note(_INDEXED + path) or "").partition("\n")[0]]
    if not grown:
        return
    with workspace.journal.write() as transaction:
        for path in grown:
            stamp, text = _stamp(files, path), files.read(path) or b""
            stood, _, rest = (transaction.note(_INDEXED + path) or "").partition("\n")[2].partition(" ")
            done, sources = int(stood or 0), rest.split()
            head = digest(text[:done])
            if not sources or sources[0] != head:
                for source in sources[1:]:
                    transaction.index("", source, path, ())
                done, sources = 0, []
            source = f"{path}@{done}"
            transaction.index("", source, path, passages_of(text[done:], len(text)))
            told = " ".join([str(len(text)), digest(text), *sources[1:], source])
            transaction.put_note(_INDEXED + path, f"{stamp}\n{told}")


def _stamp(files: Files, path: str) -> str:
    changed = files.changed_at(path)
    return "" if changed is None else str(changed)
