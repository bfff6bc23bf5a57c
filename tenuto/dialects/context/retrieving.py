"""RETRIEVE: what a phase needs to know, condensed, with a receipt for each artifact. QUERY: ranked passages, and where
they come from. No model answers.

Which parts of which artifact a phase gets is in knowledge/packs.py; here the artifacts are collected: edits that others
made to their files are taken in first. Of audits, results and specifications the newest is read; designs are read with
all their revisions. Whatever is not read is named in the receipts.

Artifacts are indexed when they are stored. History and memory are indexed by QUERY, as far as they have
grown since the last question: a command that only starts a phase must not pay for a search.

Project memory: decisions and patterns that outlive a task, appended to two files.

Entries come from `tenuto memory add` and, when the final gate is approved, from the auditors'
`memory_candidates`. A title that is there already is not added again. Nothing is ever taken out.
"""

from __future__ import annotations

from tenuto.dialects.context.language import NOTHING, wrong
from tenuto.dialects.context.storing import refuse_ungraduated, task_name
from tenuto.dialects.context.tasks import as_written, find_task, look_at_artifacts, notice_folders
from tenuto.encoding import digest, pretty
from tenuto.errors import Refused
from tenuto.names import file_key
from tenuto.views.context.state import (
    CURRENT,
    DECISIONS,
    HISTORY,
    PATTERNS,
    ended_visits,
    folder_of,
    status_of,
    tree_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.dialects.context.language import Answered, Passage, Retrieved
    from tenuto.knowledge.packs import Artifact, Unread
    from tenuto.ports import SearchHit
    from tenuto.workspace.objects import Files
    from tenuto.workspace.workspace import Turn, Workspace


LARGEST = 8 << 20  # bytes; what is larger is named, not shown: no reader of a pack could use it
# Other names for "everything this phase lists".
_EVERYTHING = ("graduation-context", "everything", "*")
# Whose need an artifact serves, where it has another name.
_BELONGS_TO = {"architect-revision": "architect", "implementation-fix": "implementation"}
# Written anew in each iteration: the newest one counts.
_LATEST_ONLY = ("spec", "test-results", "design-audit", "impl-audit", "debt")
_INDEXED = "context:indexed:"  # + file: when it had changed last; then how much of it is indexed, its hash, the sources
_FILES = (HISTORY, DECISIONS, PATTERNS)
_SHOWN = 700  # characters of a passage
_FILTERED = 400  # passages that are looked through for one task's


# ---- RETRIEVE --------------------------------------------------------------------------------------


def retrieve(
    workspace: Workspace, for_phase: str, needs: list[str], max_tokens: str, task_id: str, task: str
) -> Retrieved:
    phase = for_phase.strip().lower()
    if not phase:
        raise wrong("Missing required parameter: for_phase. Usage: RETRIEVE needs: <what> for_phase: <phase>")
    budget = _budget(max_tokens)
    asked = tuple("all" if need.lower() in _EVERYTHING else need.lower() for need in needs)
    from tenuto.knowledge.packs import make_pack, render_pack, render_receipts, rows_for

    with workspace.turn() as turn:
        run = find_task(turn, task)
        rows = rows_for(phase, asked)  # an unknown phase or need is refused before anything is read
        memory = "memory" in asked
        if phase == "resume":
            return _manifest(turn, run, memory)
        look_at_artifacts(turn, run)
        if phase == "graduate":
            refuse_graduation(turn, run)
            asked = (*asked, "manifest") if asked else asked
        artifacts, unread = _artifacts(turn, run, {row.need for row in rows}, task_id, phase)
        if memory:
            artifacts.append(_memory(turn))
    pack = make_pack(artifacts, phase, asked, budget, unread)
    notes = [f"NOT SHOWN: {one['path']}: {one['reason']}" for one in unread if one["size"] > LARGEST]
    notes += [f"NOT STORED YET: {', '.join(pack['missing'])}"] if pack["missing"] else []
    return {
        "status": "success",
        "task": run["id"],
        "data": "\n".join([render_pack(pack), *notes]).strip("\n"),
        "files_touched": [],
        "receipts": pack["receipts"],
        "receipt_lines": render_receipts(pack),
        "missing": pack["missing"],
    }


def _budget(max_tokens: str) -> int | None:
    if max_tokens.strip().lower() in NOTHING:
        return None
    digits = max_tokens.strip().replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and int(digits[:12]) > 0):
        raise wrong(f"Invalid max_tokens: {max_tokens.strip()}. Use a number from 1")
    return int(digits[:12])


def _manifest(turn: Turn, run: Run, memory: bool) -> Retrieved:
    """The file as it is, also another program's; project memory below it where it was asked for."""
    from tenuto.views.context.state import manifest, measure

    ended = ended_visits(run)
    text = pretty(as_written(turn, run) or manifest(run, ended, measure(run, ended))).rstrip("\n")
    return {
        "status": "success",
        "task": run["id"],
        "data": f"{text}\n\n{_memory(turn)['text']}" if memory else text,
        "files_touched": [],
        "receipts": [],
        "receipt_lines": [],
        "missing": [],
    }


def refuse_graduation(turn: Turn, run: Run) -> None:
    """Five conditions, in the order in which they are said. The files must lie there, too: a POC whose folder lost
    them is not whole, even though the journal can bring them back."""
    refuse_ungraduated(run)
    files = turn.workspace.files(tree_of(run))
    there = [name for name, record in run["artifacts"].items() if files.changed_at(record["path"]) is not None]
    for needed, is_there in (
        ("debt.md", "debt" in there),
        ("architect.md", "architect" in there),  # a revision says what changed, not what the design is
        ("implementation files", any(name.startswith("implementation/") for name in there)),
    ):
        if not is_there:
            hint = (
                "tenuto repair writes again what was stored and is gone" if len(there) < len(run["artifacts"]) else ""
            )
            raise Refused("incomplete", f"Missing {needed} required for graduation", hint, artifact=needed)


# ---- the artifacts of a task -----------------------------------------------------------------------


def _artifacts(turn: Turn, run: Run, needs: set[str], task_id: str, phase: str) -> tuple[list[Artifact], list[Unread]]:
    """(what the phase reads, the rest), each in the order of phases, items and iterations."""
    from tenuto.views.context.manifest import latest_of, part_of

    only = task_name(task_id) if task_id.strip().lower() not in NOTHING else ""
    parts = {name: part_of(name) for name in run["artifacts"]}
    latest = {phase: latest_of(run, phase) for phase in _LATEST_ONLY}
    artifacts: list[Artifact] = []
    unread: list[Unread] = []
    for name in sorted(parts, key=parts.__getitem__):
        kind, item, _ = parts[name]
        need = _BELONGS_TO.get(kind, kind)
        reason = ""
        if need not in needs or (kind == "implementation-fix" and phase == "graduate"):
            reason = "not for this phase, or not asked for"
        elif only and item and item != only:
            reason = f"not for {only}"
        elif kind in _LATEST_ONLY and not item and name != latest[kind]:
            reason = f"{_path(run, latest[kind])} is the latest"
        elif run["artifacts"][name]["size"] > LARGEST:
            reason = f"{run['artifacts'][name]['size']} bytes are too many to be shown; read it where it lies"
        if reason:
            unread.append(_unread(run, need, name, reason))
        else:
            artifacts.append(_artifact(turn, run, need, name))
    if phase == "graduate":
        text = f"mode: {run['mode']}\nstatus: {status_of(run)}\nworkflow: {run['pipeline']['name']}\n"
        artifacts.append({"name": "manifest", "path": "manifest.json", "text": text, "sha256": digest(text.encode())})
    return artifacts, unread


def _memory(turn: Turn) -> Artifact:
    text = memory_text(turn.workspace.files(), turn.tx)
    return {"name": "memory", "path": "docs/orchestrator/memory", "text": text, "sha256": digest(text.encode())}


def _artifact(turn: Turn, run: Run, need: str, name: str) -> Artifact:
    sha256 = run["artifacts"][name]["sha256"]
    text = turn.workspace.files().stored(turn.tx, sha256).decode("utf-8", "replace")
    return {"name": need, "path": _path(run, name), "text": text, "sha256": sha256}


def _unread(run: Run, need: str, name: str, reason: str) -> Unread:
    record = run["artifacts"][name]
    path = _path(run, name)
    return {"name": need, "path": path, "sha256": record["sha256"], "size": record["size"], "reason": reason}


def _path(run: Run, name: str) -> str:
    """The task is named above the pack; a path within its folder says the rest in fewer tokens."""
    return run["artifacts"][name]["path"].removeprefix(f"{folder_of(run['id'])}/")


# ---- QUERY -----------------------------------------------------------------------------------------


def query(workspace: Workspace, question: str, limit: str, task: str) -> Answered:
    if not question.strip():
        raise wrong("Missing required parameter: question")
    count = _count(limit)
    notice_folders(workspace)
    _index_files(workspace)
    slug = ""
    if task:
        with workspace.turn() as turn:
            slug = find_task(turn, task)["id"]
    with workspace.journal.read() as reader:
        entries = sorted(reader.search(question, _FILTERED if slug else 3 * count), key=_worth, reverse=True)
        current = reader.load_repo()["owners"].get(file_key(workspace.tree, CURRENT)) or "none"
    asked = [one for one in entries if not slug or one["run"] == slug or f"**Task:** {slug}\n" in one["text"]]
    answers = [one for one in asked if one["text"].strip()] or asked  # a heading alone answers nothing
    passages = [_passage(entry) for entry in answers[:count]]
    return {
        "status": "success",
        "task": slug or current,
        "data": _shown(question, passages),
        "files_touched": [],
        "passages": passages,
    }


def _worth(entry: SearchHit) -> float:
    """What was designed or decided says more than that it was stored."""
    return entry["score"] / 2 if entry["path"] == HISTORY else entry["score"]


def _passage(entry: SearchHit) -> Passage:
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
        grown = [
            path for path in _FILES if _stamp(files, path) != (reader.marker(_INDEXED + path) or "").partition("\n")[0]
        ]
    if not grown:
        return
    from tenuto.knowledge.passages import passages_of

    with workspace.journal.write() as transaction:
        for path in grown:
            stamp, text = _stamp(files, path), files.read(path) or b""
            length, _, rest = (transaction.marker(_INDEXED + path) or "").partition("\n")[2].partition(" ")
            done, sources = int(length or 0), rest.split()
            head = digest(text[:done])
            if not sources or sources[0] != head:
                for source in sources[1:]:
                    transaction.index("", source, path, ())
                done, sources = 0, []
            source = f"{path}@{done}"
            transaction.index("", source, path, passages_of(text[done:], len(text)))
            indexed = " ".join([str(len(text)), digest(text), *sources[1:], source])
            transaction.put_marker(_INDEXED + path, f"{stamp}\n{indexed}")


def _stamp(files: Files, path: str) -> str:
    changed = files.changed_at(path)
    return "" if changed is None else str(changed)


# ---- memory ------------------------------------------------------------


if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.dialects.context.language import Done
    from tenuto.ports import Reader
    from tenuto.workspace.objects import Files
    from tenuto.workspace.workspace import Turn, Workspace

    Entry = tuple[str, str]  # title and text

KINDS = {"decision": DECISIONS, "pattern": PATTERNS}
_TITLES = {"decision": "# Architecture Decisions\n", "pattern": "# Code Patterns\n"}
_EMPTY = {
    "decision": "[No project decisions recorded yet]",
    "pattern": "[No project patterns recorded yet]",
}


def remember(workspace: Workspace, kind: str, title: str, text: str, rationale: str, task: str) -> Done:
    from tenuto.dialects.context.tasks import find_task, for_change, pointer

    if kind not in KINDS:
        raise wrong(f"Invalid kind: {kind}. Use {' or '.join(KINDS)}")
    if not text.strip() and not title.strip():
        raise wrong(f"Missing required parameter: {kind}")
    with workspace.turn() as turn:
        run = for_change(turn, task) if task else None
        if run is None:
            slug = pointer(turn)
            run = find_task(turn, slug) if slug else None
        source = run["id"] if run else ""
        added = _add(turn, kind, [_entry(kind, title, text, rationale, source, turn.at)])
    data = f"{kind} recorded" if added else f"{kind} was there already"
    return {"status": "success", "task": source, "data": data, "files_touched": [KINDS[kind]] if added else []}


def remember_candidates(turn: Turn, run: Run) -> None:
    """What the auditors of this task thought worth keeping."""
    from tenuto.dialects.context.storing import read_audits

    entries: dict[str, list[Entry]] = {kind: [] for kind in KINDS}
    for audit in read_audits(turn, run):
        candidates = audit.get("memory_candidates") if isinstance(audit, dict) else None
        for candidate in candidates if isinstance(candidates, list) else []:
            memory = _candidate(candidate, run, turn.at)
            if memory is not None:
                kind, entry = memory
                entries[kind].append(entry)
    counts = {kind: _add(turn, kind, listed) for kind, listed in entries.items() if listed}
    if any(counts.values()):
        turn.do(
            run["id"],
            {
                "do": "Note",
                "text": "Project Memory Updated",
                "extra": {f"{kind.capitalize()}s": count for kind, count in counts.items() if count},
            },
        )


def _candidate(candidate: object, run: Run, at: str) -> tuple[str, Entry] | None:
    if isinstance(candidate, str):
        candidate = {"type": "decision", "content": candidate}
    if not isinstance(candidate, dict):
        return None
    word = str(candidate.get("type") or candidate.get("kind") or "decision").lower()
    kind = "pattern" if "pattern" in word else "decision"
    text = str(candidate.get("content") or candidate.get("description") or candidate.get("text") or "")
    title = str(candidate.get("title") or candidate.get("name") or "")
    rationale = str(candidate.get("rationale") or candidate.get("reason") or "")
    if not rationale and candidate.get("source"):
        rationale = f"from {candidate['source']}"
    if not text.strip() and not title.strip():
        return None
    return kind, _entry(kind, title, text, rationale, run["id"], at)


def _entry(kind: str, title: str, text: str, rationale: str, task: str, at: str) -> Entry:
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


def _add(turn: Turn, kind: str, entries: list[Entry]) -> int:
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
    """Both files, as RETRIEVE shows them and agents get them. `longest`: characters of each; older entries are left
    out."""
    shown = {kind: _latest(_recorded(files, reader, kind), longest, kind) or _EMPTY[kind] for kind in KINDS}
    return f"## Project Memory\n\n### Decisions\n{shown['decision']}\n\n### Patterns\n{shown['pattern']}"


def _recorded(files: Files, reader: Reader, kind: str) -> str:
    """A file's text, or the journal's where the file is not there (another branch); empty where there is no entry yet:
    only a title, comments, rules."""
    body = files.read(KINDS[kind])
    text = (body if body is not None else b"".join(reader.log_text(KINDS[kind]))).decode("utf-8", "replace").strip()
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
    end = text[-longest:]
    begin = end.find("\n## ")
    return f"[older entries are left out; all of them: {KINDS[kind]}]\n\n{end[begin + 1 :]}"
