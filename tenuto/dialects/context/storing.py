"""STORE: an artifact goes to its file in the task's folder, and nothing that stood there is lost.

Artifacts are named by their phase: architect, architect-revision-1, implementation/task-001, ...
Small ones are checked (a breakdown of tasks, an audit's answer); large ones are streamed and only stored.
"""

from __future__ import annotations

from tenuto.core.names import slug as slug_of
from tenuto.dialects.context.language import NOTHING
from tenuto.dialects.context.passages import INDEXED, passages_of
from tenuto.dialects.context.places import CURRENT, HISTORY, folder_of, is_current, kept, manifest_of
from tenuto.dialects.context.tasks import for_change
from tenuto.dialects.context.wording import in_words, wrong
from tenuto.errors import BadInput, NotFound, Refused, TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Stored, Turn, Workspace

    Content = tuple[bytes | None, str]  # the content itself, or the name of the file that holds it

PHASES = {
    "architect": "architect.md",
    "spec": "spec.md",
    "implementation": "implementations/",
    "tests": "tests/",
    "test-results": "test-results.md",
    "impl-audit": "impl-audit.md",
    "design-audit": "design-audit.md",
    "architect-revision": "architect-revision-",
    "implementation-fix": "implementation-fix-",
    "debt": "debt.md",
    "graduate-complete": "graduate-complete.md",
}
COUNTED = ("architect-revision", "implementation-fix")
PER_TASK = ("implementation", "tests")
AUDITS = ("impl-audit", "design-audit")
PLANNING = ("architect", "architect-revision", "spec")
LOOKED_INTO = 4 << 20  # bytes; a larger document is stored unread


def store(
    workspace: Workspace, phase: str, content: bytes | None, source: str, task_id: str, iteration: str, task: str
) -> Stored:
    """`content`, or the file `source`: one of the two."""
    name, number = _phase(phase, iteration)
    if name != "graduate-complete" and not content and not source:
        raise wrong("Missing required parameter: content")
    if name in COUNTED and not number:
        raise wrong(f"STORE phase: {name} requires an iteration number")
    if task_id and name not in PER_TASK:
        raise wrong(f"STORE phase: {name} takes no task_id; {' and '.join(PER_TASK)} do")
    with workspace.turn() as turn:
        run = for_change(turn, task)
        try:
            if name == "debt":
                from tenuto.dialects.context.debt import store_debt

                return store_debt(turn, run, _bytes(content, source))
            if name == "graduate-complete":
                from tenuto.dialects.context.debt import graduate

                return graduate(turn, run, content, source)
            return _store_phase(turn, run, name, (content, source), task_id, number)
        except TenutoError as refusal:
            raise in_words("STORE", refusal, run) from None


def _phase(phase: str, iteration: str) -> tuple[str, int]:
    """The phase and the iteration; `architect-revision-2` says both."""
    name = "-".join(phase.lower().replace("_", "-").split())
    given = "" if iteration.strip().lower() in NOTHING else iteration.strip().lower()
    base, _, last = name.rpartition("-")
    if name not in PHASES and base in COUNTED and last.isdecimal():
        name, given = base, given or last
    if not name:
        raise wrong("Missing required parameter: phase")
    if name not in PHASES:
        raise wrong(f"Unknown phase: {phase.strip()}. Use {', '.join(PHASES)}")
    digits = given.removeprefix("iteration").strip(" -#")
    if given and not (digits.isascii() and digits.isdecimal() and len(digits) < 7 and int(digits) > 0):
        raise wrong(f"Invalid iteration: {iteration.strip()}. Use a number from 1")
    return name, int(digits) if given else 0


def _store_phase(turn: Turn, run: Run, phase: str, content: Content, task_id: str, iteration: int) -> Stored:
    artifact, file = _placed(turn, run, phase, task_id, iteration)
    path = f"{folder_of(run['id'])}/{file}"
    small = _if_small(*content)
    touched = [path]
    where: Any = {"step": phase}
    audited: dict[str, str] = {}
    if phase in AUDITS:
        from tenuto.dialects.context.audits import record_audit

        iteration, touched, audited = record_audit(turn, run, phase, small, content, iteration, path)
    if iteration:
        where["attempt"] = f"iteration-{iteration}"
    planned = plan_items(turn, run, small) if phase in PLANNING and small else ""
    stored = keep(turn, run, artifact, path, content, **where)
    said = f"{artifact} stored | {stored['size']} bytes | sha256: {stored['sha256']}"
    said = f"{said}{planned}{audited.get('said', '')}"
    return done(turn, run, said, touched, artifact, stored, audited.get("next", ""))


def done(
    turn: Turn, run: Run, data: str, touched: list[str], artifact: str, stored: Any, following: str = ""
) -> Stored:
    files = [*touched, manifest_of(run["id"]), HISTORY]
    if is_current(run, turn.repo):
        files.append(CURRENT)
    record: Stored = {
        "status": "success", "task": run["id"], "data": data, "files_touched": files,
        "artifact": artifact, "path": stored["path"], "sha256": stored["sha256"], "size": stored["size"],
    }  # fmt: skip
    if following:
        record["next"] = following
    return record


def keep(turn: Turn, run: Run, artifact: str, path: str, content: Content, **where: Any) -> Any:
    """Store it, show it, and let it be found; returns the artifact's record."""
    body, source = content
    if body is None:
        turn.store_file(run["id"], artifact, path, source, **where)
    else:
        turn.store(run["id"], artifact, path, body, **where)
    stored = run["artifacts"][artifact]
    head = body if body is not None else turn.workspace.files().stored(turn.tx, stored["sha256"], INDEXED)
    turn.tx.index(run["id"], artifact, path, passages_of(head))
    return stored


# ---- names and numbers -----------------------------------------------------------------------------


def _placed(turn: Turn, run: Run, phase: str, task_id: str, iteration: int) -> tuple[str, str]:
    """The artifact's name, and its file below the task's folder."""
    if phase in COUNTED:
        return f"{phase}-{iteration}", f"{PHASES[phase]}{iteration}.md"
    if phase in PER_TASK:
        task = task_name(task_id) if task_id else _next_task(turn, run, phase)
        return f"{phase}/{task}", f"{PHASES[phase]}{task}.md"
    return phase, PHASES[phase]


def task_name(task_id: str) -> str:
    """1, task-1 and 001 are task-001; other names (wave-1) are kept."""
    bare = "-".join(task_id.lower().removesuffix(".md").replace("_", "-").replace(":", "-").split())
    digits = bare.removeprefix("task").lstrip("-#") if not bare.startswith("-") else ""
    # What is no number and no name (1.5, ../x, 0) is somebody's mistake: another file than they meant.
    if not digits or not digits.strip("0") or any(sign in bare for sign in "./\\"):
        raise wrong(f"Invalid task_id: {task_id}. Use a number from 1")
    if digits.isascii() and digits.isdecimal() and len(digits) < 7:
        return f"task-{int(digits):03d}"
    try:
        return slug_of(task_id)
    except BadInput:
        raise wrong(f"Invalid task_id: {task_id}. Use a number from 1") from None


def _next_task(turn: Turn, run: Run, phase: str) -> str:
    names = [name.partition("/")[2] for name in run["artifacts"] if name.startswith(f"{phase}/")]
    names += turn.workspace.files().names(f"{folder_of(run['id'])}/{PHASES[phase].rstrip('/')}")
    numbers = [name.removesuffix(".md").removeprefix("task-") for name in names]
    return f"task-{max((int(n) for n in numbers if n.isascii() and n.isdecimal()), default=0) + 1:03d}"


# ---- what a document says --------------------------------------------------------------------------


def plan_items(turn: Turn, run: Run, content: bytes) -> str:
    """A breakdown of tasks inside the document becomes the run's items. Returns what to say about it."""
    from tenuto.dialects.context.breakdown import find_breakdown, plan

    if b"taskBreakdown" not in content:
        return ""
    breakdown = find_breakdown(content.decode("utf-8", "replace"))
    if breakdown is None or breakdown == kept(run).get("breakdown"):
        return ""
    items, waves = plan(breakdown)
    turn.do(run["id"], {"do": "PlanItems", "items": items, "waves": waves})
    turn.do(run["id"], {
        "do": "AbsorbEdit", "dialect": "context", "path": "", "sha256": "", "extra": {"breakdown": breakdown},
        "drop": [["breakdown"]],
    })  # fmt: skip
    return f" | {len(items)} tasks in {len(waves)} waves"


def _if_small(content: bytes | None, source: str) -> bytes:
    """The content where it is small enough to be read, else nothing."""
    if content is None:
        import os

        try:
            if os.stat(source).st_size > LOOKED_INTO:
                return b""
        except (OSError, ValueError) as error:
            raise _unreadable(source, error) from None
        return _bytes(None, source)
    return content if len(content) <= LOOKED_INTO else b""


def _bytes(content: bytes | None, source: str) -> bytes:
    if content is not None:
        return content
    try:
        with open(source, "rb") as file:
            body = file.read(LOOKED_INTO + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from None
    if len(body) > LOOKED_INTO:
        raise Refused("too-large", f"This document is larger than {LOOKED_INTO} bytes")
    return body


def _unreadable(source: str, error: Exception) -> NotFound:
    """Also where no file can have this name: one with a NUL in it, or with half a character."""
    return NotFound("no-such-file", f"Content file cannot be read: {source}: {getattr(error, 'strerror', None) or error}")


def artifact_at(path: str) -> str:
    """The artifact's name for a file below a task's folder; empty where the layout has no such file."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    if stem == name:
        return "audit-history" if path == "audit-history.json" else ""
    if folder:
        return next((f"{phase}/{stem}" for phase in PER_TASK if PHASES[phase] == f"{folder}/"), "")
    base, _, last = stem.rpartition("-")
    if base in COUNTED and last.isdecimal():
        return stem
    return stem if PHASES.get(stem) == name else ""
