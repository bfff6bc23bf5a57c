"""Seed 002's files: docs/feature/<slug>/initial-request.md and memory.md. The rest of that tree are artifacts.

memory.md is shared with the agents that may write it. What they add comes back as memory entries; what a reader
changed while nobody was allowed to is undone and noted with the attempts that were running. Memory never stops a
run: lines that say nothing we know are dropped with a note, an unreadable file is written anew.
"""

from __future__ import annotations

from tenuto.core.names import slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import IndexEntry, MemoryEntry, Repo, Run

name = "feature_docs"
missing = "rewrite"
FOLDER = "docs/feature"
_SECTIONS = {"Recent Decisions": "decisions", "Lessons Learned": "lessons", "Recent Updates": "updates"}
_HINTS = {
    "decisions": "<!-- Format: - [agent-name, step-N] Decision summary. Rationale: ... -->",
    "lessons": "<!-- Never pruned. Format: - [agent-name, step-N] Issue → Resolution. -->",
    "updates": "<!-- Format: - [agent-name, step-N] Updated `artifact-path` — summary. -->",
}


def api(workspace: Any) -> Any:
    raise AttributeError("feature_docs has no commands of its own; runs are driven with `tenuto run`")


def place(run_id: str, tree: str) -> dict[str, str]:
    return {"tree": tree, "folder": f"{FOLDER}/{slug(run_id)}"}


def paths(run: Run, repo: Repo) -> list[str]:
    folder = run["dialects"][name].get("folder", f"{FOLDER}/{run['id']}")
    return [f"{folder}/initial-request.md", f"{folder}/memory.md"]


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    request, memory = paths(run, repo)
    return {request: _request(run).encode(), memory: _memory(run).encode()}


def log(run: Run, events: list[Any]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes) -> list[Any]:
    if path.endswith("/initial-request.md"):
        return [
            {
                "do": "Note",
                "text": f"{path} was edited; the request of a run does not change, the file was written anew",
            },
            {"do": "AbsorbEdit", "extra": {}},
        ]
    # Those in work trees of their own have a copy of their own: it was not them.
    running = {
        name: a
        for name, a in run["attempts"].items()
        if a["status"] in ("dispatched", "running") and not a["extra"].get("tree")
    }
    if running and not any(a["extra"].get("memory") == "write" for a in running.values()):
        broken = [*run["extra"].get(name, {}).get("memory_broken_by", []), *running]
        note = f"memory.md was changed while only readers ran ({', '.join(running)}); the change was undone"
        return [
            {"do": "Note", "text": note},
            {"do": "AbsorbEdit", "extra": {"memory_broken_by": list(dict.fromkeys(broken))}},
        ]
    return [
        *_additions(run, _parse(before.decode("utf-8", "replace")), _parse(after.decode("utf-8", "replace"))),
        {"do": "AbsorbEdit", "extra": {}},
    ]


def _request(run: Run) -> str:
    text = run["request"] or run["name"]
    return f"# Initial Request\n\n{text.rstrip()}\n"


def _memory(run: Run) -> str:
    memory = run["memory"]
    parts = ["# Operational Memory", "", "## Artifact Index", "", "| Artifact | Key Sections | Last Updated By |"]
    if memory["index"]:
        parts.append("| --- | --- | --- |")
    parts += [_index_row(entry) for entry in memory["index"]]
    for title, kind in _SECTIONS.items():
        entries: list[MemoryEntry] = memory[kind]  # type: ignore[literal-required]
        parts += ["", f"## {title}", "", _HINTS[kind]]
        if entries:
            parts += ["", *(_line(entry) for entry in entries)]
    return "\n".join(parts) + "\n"


def _index_row(entry: IndexEntry) -> str:
    return f"| {entry['artifact']} | {entry['sections']} | {entry['who']} |"


def _line(entry: MemoryEntry) -> str:
    mark = f"[INVALIDATED — {entry['invalidated']}] " if entry["invalidated"] else ""
    return f"- [{entry['who']}, step-{entry['step']}] {mark}{entry['text']}"


def _parse(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"index": [], "decisions": [], "lessons": [], "updates": []}
    kind = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("## "):
            title = line[3:].strip()
            kind = "index" if title == "Artifact Index" else _SECTIONS.get(title, "")
        elif kind == "index" and line.startswith("|") and not line.startswith(("| Artifact |", "| ---", "|---")):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells and cells[0]:
                found["index"].append(
                    {
                        "artifact": cells[0],
                        "sections": cells[1] if len(cells) > 1 else "",
                        "who": cells[2] if len(cells) > 2 else "",
                    }
                )
        elif kind in _HINTS and line.startswith(("- ", "* ")):
            found[kind].append(_entry(line[2:].strip()))
    return found


def _entry(text: str) -> Any:
    who, step = "unknown", ""
    if text.startswith("[") and "]" in text:
        head, _, rest = text[1:].partition("]")
        agent, _, where = head.partition(",")
        if "step" in where.lower():
            who, step, text = agent.strip(), where.strip().lower().removeprefix("step").lstrip("- "), rest.strip()
    return {"who": who, "step": step, "text": text, "invalidated": None}


def _additions(run: Run, before: dict[str, list[Any]], after: dict[str, list[Any]]) -> list[Any]:
    """Entries are added by agents; they are removed by pruning and cleaning only, so a missing line changes nothing."""
    commands: list[Any] = []
    for kind, entries in after.items():
        fresh = [
            entry
            for entry in entries
            if entry not in before[kind] and not str(entry.get("text", "")).startswith("[INVALIDATED")
        ]
        if fresh:
            commands.append({"do": "WriteMemory", "kind": kind, "entries": fresh})
    return commands
