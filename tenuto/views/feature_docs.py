"""Seed 002's files: docs/feature/<slug>/initial-request.md and memory.md. The rest of that tree are artifacts.

memory.md is shared with the agents that may write it. What they add comes back as memory entries. A change that was
made while only readers ran is undone, and noted with their attempts. Memory never stops a run: a line that cannot be
read is dropped, a file that cannot be read, or is none, is kept aside and written anew, with a warning.
"""

from __future__ import annotations

from tenuto.names import slug
from tenuto.views.differences import absorbed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tenuto.core.records.commands import Command
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import IndexEntry, Memory, MemoryEntry, Repo, Run
    from tenuto.ports import Surroundings

    Kind = Literal["decisions", "lessons", "updates"]

name = "feature_docs"
missing: Literal["rewrite"] = "rewrite"
stand_in: dict[str, str] = {}
dispensable: tuple[str, ...] = ("memory.md",)
FOLDER = "docs/feature"
_SECTIONS: dict[str, Kind] = {
    "Recent Decisions": "decisions",
    "Lessons Learned": "lessons",
    "Recent Updates": "updates",
}
_HINTS: dict[Kind, str] = {
    "decisions": "<!-- Format: - [agent-name, step-N] Decision summary. Rationale: ... -->",
    "lessons": "<!-- Never pruned. Format: - [agent-name, step-N] Issue → Resolution. -->",
    "updates": "<!-- Format: - [agent-name, step-N] Updated `artifact-path` — summary. -->",
}


def place(run_id: str, tree: str) -> dict[str, str]:
    return {"tree": tree, "folder": f"{FOLDER}/{slug(run_id)}"}


def paths(run: Run, repo: Repo) -> list[str]:
    folder = run["dialects"][name].get("folder", f"{FOLDER}/{run['id']}")
    return [f"{folder}/initial-request.md", f"{folder}/memory.md"]


def render(run: Run, repo: Repo) -> dict[str, bytes]:
    request, memory = paths(run, repo)
    return {request: _request(run).encode(), memory: _memory(run).encode()}


def log(run: Run, events: list[Event]) -> dict[str, bytes]:
    return {}


def read(run: Run, path: str, before: bytes, after: bytes, around: Surroundings) -> list[Command]:
    # Attempts in work trees of their own have a copy of their own: it was not them.
    running = [
        key
        for key, attempt in run["attempts"].items()
        if attempt["status"] in ("dispatched", "running") and not attempt["extra"].get("tree")
    ]
    if path.endswith("/initial-request.md"):
        note = f"{path} was edited; the request of a run does not change, the file was written anew"
        broken = [*run["extra"].get(name, {}).get("request_broken_by", []), *running]
        return [
            {"do": "Note", "text": note},
            absorbed(name, path, after, {"request_broken_by": list(dict.fromkeys(broken))} if running else {}),
        ]
    if running and not any(run["attempts"][key]["extra"].get("memory") == "write" for key in running):
        broken = [*run["extra"].get(name, {}).get("memory_broken_by", []), *running]
        note = f"memory.md was changed while only readers ran ({', '.join(running)}); the change was undone"
        return [
            {"do": "Note", "text": note},
            absorbed(name, path, after, {"memory_broken_by": list(dict.fromkeys(broken))}),
        ]
    additions = _additions(_parse(before.decode("utf-8", "replace")), _parse(after.decode("utf-8", "replace")))
    return [*additions, absorbed(name, path, after, {})]


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
        entries = memory[kind]
        parts += ["", f"## {title}", "", _HINTS[kind]]
        if entries:
            parts += ["", *(_line(entry) for entry in entries)]
    return "\n".join(parts) + "\n"


def _index_row(entry: IndexEntry) -> str:
    return f"| {entry['artifact']} | {entry['sections']} | {entry['who']} |"


def _line(entry: MemoryEntry) -> str:
    mark = f"[INVALIDATED — {entry['invalidated']}] " if entry["invalidated"] else ""
    return f"- [{entry['who']}, step-{entry['step']}] {mark}{entry['text']}"


def _parse(text: str) -> Memory:
    memory: Memory = {"index": [], "decisions": [], "lessons": [], "updates": []}
    kind: Literal["index"] | Kind | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("## "):
            title = line[3:].strip()
            kind = "index" if title == "Artifact Index" else _SECTIONS.get(title)
        elif kind == "index":
            if line.startswith("|") and not line.startswith(("| Artifact |", "| ---", "|---")):
                cells = [*(cell.strip() for cell in line.strip("|").split("|")), "", ""]
                if cells[0]:
                    memory["index"].append({"artifact": cells[0], "sections": cells[1], "who": cells[2]})
        elif kind is not None and line.startswith(("- ", "* ")):
            memory[kind].append(_entry(line[2:].strip()))
    return memory


def _entry(text: str) -> MemoryEntry:
    who, step = "unknown", ""
    if text.startswith("[") and "]" in text:
        head, _, rest = text[1:].partition("]")
        agent, _, where = head.partition(",")
        if "step" in where.lower():
            who, step, text = agent.strip(), where.strip().lower().removeprefix("step").lstrip("- "), rest.strip()
    return {"who": who, "step": step, "text": text, "invalidated": None}


def _additions(before: Memory, after: Memory) -> list[Command]:
    """Entries are added by agents; they are removed by pruning and cleaning only, so a missing line changes nothing."""
    commands: list[Command] = []
    rows = [row for row in after["index"] if row not in before["index"]]
    if rows:
        commands.append({"do": "WriteMemory", "kind": "index", "entries": [{**row} for row in rows]})
    for kind in _HINTS:
        fresh = [
            entry for entry in after[kind] if entry not in before[kind] and not entry["text"].startswith("[INVALIDATED")
        ]
        if fresh:
            commands.append({"do": "WriteMemory", "kind": kind, "entries": [{**entry} for entry in fresh]})
    return commands
