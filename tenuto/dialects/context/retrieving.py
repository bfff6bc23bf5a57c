"""RETRIEVE: what a phase needs to know, condensed, with a receipt for each artifact.

Which parts of which artifact a phase gets is in knowledge/; here the artifacts are collected: edits that others
made to their files are taken in first, and the latest revision stands for the original.
"""

from __future__ import annotations

from tenuto.dialects.context.language import NOTHING
from tenuto.dialects.context.passages import INDEXED, passages_of
from tenuto.dialects.context.places import NAME, folder_of, status_of
from tenuto.dialects.context.storing import PHASES, artifact_at, task_name
from tenuto.dialects.context.tasks import named
from tenuto.dialects.context.wording import wrong
from tenuto.encoding import digest, pretty
from tenuto.errors import Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Retrieved, Turn, Workspace

LARGEST = 8 << 20  # bytes; what is larger is named, not shown: no reader of a pack could use it
# Other names for "everything this phase lists".
_EVERYTHING = ("graduation-context", "everything", "*")


def retrieve(
    workspace: Workspace, for_phase: str, needs: list[str], max_tokens: str, task_id: str, task: str
) -> Retrieved:
    phase = for_phase.strip().lower()
    if not phase:
        raise wrong("Missing required parameter: for_phase. Usage: RETRIEVE needs: <what> for_phase: <phase>")
    budget = _budget(max_tokens)
    asked = tuple("all" if need.lower() in _EVERYTHING else need.lower() for need in needs)
    packs = workspace.knowledge("retrieve")
    with workspace.turn() as turn:
        run = named(turn, task)
        packs.rows_for(phase, asked)  # an unknown phase or need is refused before anything is read
        if phase == "resume":
            return _manifest(run)
        look_at_artifacts(turn, run)
        if phase == "graduate":
            refuse_graduation(run, turn)
            asked = (*asked, "manifest") if asked else asked
        artifacts = _artifacts(turn, run, task_id, phase, "memory" in asked)
    pack = packs.make_pack(artifacts, phase, asked, budget)
    missing = [f"NOT STORED YET: {', '.join(pack['missing'])}"] if pack["missing"] else []
    return {
        "status": "success", "task": run["id"], "data": "\n".join([packs.render_pack(pack), *missing]).strip("\n"),
        "files_touched": [], "receipts": pack["receipts"], "receipt_lines": packs.render_receipts(pack),
        "missing": pack["missing"],
    }  # fmt: skip


def _budget(max_tokens: str) -> int | None:
    if max_tokens.strip().lower() in NOTHING:
        return None
    digits = max_tokens.strip().replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and int(digits[:12]) > 0):
        raise wrong(f"Invalid max_tokens: {max_tokens.strip()}. Use a number from 1")
    return int(digits[:12])


def _manifest(run: Run) -> Retrieved:
    from tenuto.dialects.context.render import manifest

    return {
        "status": "success", "task": run["id"], "data": pretty(manifest(run)).rstrip("\n"), "files_touched": [],
        "receipts": [], "receipt_lines": [], "missing": [],
    }  # fmt: skip


def refuse_graduation(run: Run, turn: Turn | None = None) -> None:
    """Five conditions, in the order in which they are said. The files must lie there, too: a POC whose folder lost
    them is not whole, even though the journal can bring them back."""
    from tenuto.dialects.context.debt import refuse_ungraduated

    refuse_ungraduated(run)
    there = list(run["artifacts"])
    if turn is not None:
        files = turn.workspace.files(run["dialects"][NAME].get("tree", ""))
        there = [name for name in there if files.changed_at(run["artifacts"][name]["path"]) is not None]
    for needed, found in (
        ("debt.md", "debt" in there),
        ("architect.md", any(name == "architect" or name.startswith("architect-revision-") for name in there)),
        ("implementation files", any(name.startswith("implementation/") for name in there)),
    ):
        if not found:
            hint = "tenuto repair writes again what was stored and is gone" if len(there) < len(run["artifacts"]) else ""
            raise Refused("incomplete", f"Missing {needed} required for graduation", hint, artifact=needed)


# ---- the artifacts of a task -----------------------------------------------------------------------


def look_at_artifacts(turn: Turn, run: Run) -> None:
    """Files that others wrote or changed in the task's folder become its artifacts; what cannot be read is said."""
    folder = folder_of(run["id"])
    for path, artifact in _found(turn, run, folder):
        try:
            _look_at(turn, run, f"{folder}/{path}", artifact)
        except TenutoError as refusal:
            turn.workspace.warn(f"{folder}/{path} is left alone: {refusal.message}")


def _found(turn: Turn, run: Run, folder: str) -> list[tuple[str, str]]:
    """(file below the folder, artifact), for every file that the layout knows."""
    files = turn.workspace.files(run["dialects"][NAME].get("tree", ""))
    names = files.names(folder)
    for below in ("implementations", "tests"):
        if below in names:
            try:
                names += [f"{below}/{name}" for name in files.names(f"{folder}/{below}")]
            except TenutoError as refusal:
                turn.workspace.warn(f"{folder}/{below} is left alone: {refusal.message}")
    return [(name, artifact_at(name)) for name in names if artifact_at(name)]


def _look_at(turn: Turn, run: Run, path: str, artifact: str) -> None:
    known = run["artifacts"].get(artifact)
    turn.look(run["id"], path, artifact)
    now = run["artifacts"].get(artifact)
    if now is not None and now is not known:
        head = turn.workspace.files().stored(turn.tx, now["sha256"], INDEXED)
        turn.tx.index(run["id"], artifact, path, passages_of(head))


def _latest_design(run: Run) -> str:
    """The newest revision of the design, or the design itself; empty where there is none."""
    numbers = [
        int(name.rpartition("-")[2])
        for name in run["artifacts"]
        if name.startswith("architect-revision-") and name.rpartition("-")[2].isdecimal()
    ]
    if numbers:
        return f"architect-revision-{max(numbers)}"
    return "architect" if "architect" in run["artifacts"] else ""


def _artifacts(turn: Turn, run: Run, task_id: str, phase: str, memory: bool) -> list[Any]:
    listed: list[tuple[str, str]] = [("architect", _latest_design(run))]
    listed += [(name, name) for name in ("spec", "test-results", "design-audit", "impl-audit", "debt")]
    only = task_name(task_id) if task_id.strip().lower() not in NOTHING else ""
    for name in sorted(run["artifacts"], key=_in_order):
        kind, _, item = name.partition("/")
        if item and kind in PHASES and (not only or item == only):
            listed.append((kind, name))
        elif name.startswith("implementation-fix-") and phase != "graduate":
            listed.append(("implementation", name))
    made = [_artifact(turn, run, kind, name) for kind, name in listed if name in run["artifacts"]]
    if phase == "graduate":
        text = f"mode: {run['mode']}\nstatus: {status_of(run)}\nworkflow: {run['pipeline']['name']}\n"
        made.append({"name": "manifest", "path": "manifest.json", "text": text, "sha256": digest(text.encode())})
    if memory:
        from tenuto.dialects.context.memory import memory_text

        text = memory_text(turn.workspace.files(), turn.tx)
        made.append({
            "name": "memory", "path": "docs/orchestrator/memory", "text": text, "sha256": digest(text.encode()),
        })  # fmt: skip
    return made


def _in_order(name: str) -> tuple[str, int, str]:
    head, _, last = name.rpartition("-")
    return (head, int(last), "") if last.isdecimal() and last.isascii() else (name, 0, "")


def _artifact(turn: Turn, run: Run, kind: str, name: str) -> dict[str, str]:
    record = run["artifacts"][name]
    if record["size"] > LARGEST:
        text = f"[{record['path']} has {record['size']} bytes: too large to be shown here; read it where it lies]"
    else:
        text = turn.workspace.files().stored(turn.tx, record["sha256"]).decode("utf-8", "replace")
    # The task is named above the pack; a path within its folder says the rest in fewer tokens.
    path = record["path"].removeprefix(f"{folder_of(run['id'])}/")
    return {"name": kind, "path": path, "text": text, "sha256": record["sha256"]}
