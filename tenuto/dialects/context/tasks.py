"""Which task a command is about, how a task begins, and how one that lies in the repository is taken in.

    init(workspace, ...)       INIT
    find_task(turn, "dark-mode")   that task
    find_task(turn, "")            the one that current-task.md points to
    list_tasks(workspace, n)   LIST: every task, newest first, from the index that the journal keeps
    adopt(turn, slug)          a folder that another program wrote: manifest.json, or a legacy metadata.json

A task that lies in the repository and is not in the journal yet is adopted on the way. current-task.md is a
pointer per work tree; a person who points it at another task has chosen that task.

Rule 1: nothing is written to an adopted folder until a command changes its task.

Rule 2: a file that cannot be parsed is named and left alone.

Rule 3: looking for new folders costs two numbers, not ten thousand files: the folder of tasks tells when it last
changed, and a manifest whose time of change is not the one that our own writes have tells that it was edited.
"""

from __future__ import annotations

from time import time_ns

from tenuto.core.times import milliseconds
from tenuto.dialects.context.language import no_current_task, no_task, wrong
from tenuto.encoding import NotJson, digest, dumps, loads, loads_strict
from tenuto.errors import BadInput, Damaged, Refused, TenutoError
from tenuto.names import file_key
from tenuto.names import slug as slug_of
from tenuto.views.context.state import (
    CURRENT,
    HISTORY,
    KNOWN_STATUSES,
    NAME,
    TASKS,
    as_found,
    folder_of,
    legacy_of,
    manifest_of,
    metrics_of,
    shown_status,
    tree_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Json, Run
    from tenuto.dialects.context.language import Initialized, Task
    from tenuto.ports import Reader, RunSummary
    from tenuto.workspace.workspace import Turn, Workspace

MODES = ("standard", "poc")
WORKFLOWS = ("orchestrate", "poc", "graduate")

_BATCH = 200  # folders that are adopted in one transaction
# + tree: when the folder of tasks had changed last, and what lay there without a manifest
_SCANNED = "context:scanned:"
_LOOKED = "context:looked:"  # + slug: a manifest's time of change that was looked into already; what is wrong with it
_FEW = 50  # folders: looking at their names is cheaper than a note
_UNPARSABLE = ("not-json", "not-an-object")
_OWN_WRITE = 100  # ms between a command's time and the time its file was written
_SETTLED = 50_000_000  # ns: a folder that changed only now may change again within one tick of its clock


# ---- INIT ------------------------------------------------------------------------------------------


def init(workspace: Workspace, task: str, mode: str, workflow: str) -> Initialized:
    mode, workflow = (mode or "standard").lower(), (workflow or "orchestrate").lower()
    if mode not in MODES:
        raise wrong(f"Invalid mode: {mode}. Use {' or '.join(MODES)}")
    if workflow not in WORKFLOWS:
        raise wrong(f"Invalid workflow: {workflow}. Use {', '.join(WORKFLOWS[:-1])}, or {WORKFLOWS[-1]}")
    if not task.strip():
        raise wrong("Missing required parameter: task")
    slug = slug_of(task)
    with workspace.turn() as turn:
        if turn.tx.version(slug):
            raise task_exists(slug, f"RETRIEVE for_phase: resume task: {slug}")
        refuse_folder(turn, slug, f"RETRIEVE for_phase: resume task: {slug}")
        settle_pointer(turn)
        turn.do(
            slug,
            {
                "do": "StartRun",
                "run": slug,
                "name": task.strip(),
                "request": task.strip(),
                "mode": mode,
                "pipeline": {"name": workflow, "hash": None},
                "driver": "manual",
                "dialects": {NAME: {"tree": workspace.tree}},
            },
        )
        point_to(turn, slug)
        open_history(turn)
        at = turn.at
    return {
        "status": "success",
        "task": slug,
        "data": f"Task initialized | mode: {mode} | workflow: {workflow} | status: running | created: {at}",
        "files_touched": [manifest_of(slug), CURRENT, HISTORY],
        "mode": mode,
        "workflow": workflow,
        "created_at": at,
    }


def task_exists(slug: str, hint: str) -> Refused:
    return Refused("task-exists", f"Task already exists: {slug}", hint, task=slug)


def refuse_folder(turn: Turn, slug: str, hint: str) -> None:
    """Where a folder of this name holds a task already."""
    files = turn.workspace.files()
    if files.changed_at(folder_of(slug)) is None:
        return
    if any(files.changed_at(path) is not None for path in (manifest_of(slug), legacy_of(slug))):
        raise task_exists(slug, hint)


def open_history(turn: Turn) -> None:
    """The first entry of a repository that has no history.md stands below a title."""
    if not turn.tx.log_length(HISTORY) and turn.workspace.files().changed_at(HISTORY) is None:
        from tenuto.views.context.history import HEADER

        turn.log(HISTORY, HEADER)


# ---- the task that is meant ------------------------------------------------------------------------


def find_task(turn: Turn, task: str) -> Run:
    """The task of that name, or the current one."""
    return _by_name(turn, task) if task else _current(turn)


def for_change(turn: Turn, task: str) -> Run:
    """The same, about to be changed."""
    run = find_task(turn, task)
    take_over(turn, run)
    return run


def _by_name(turn: Turn, task: str) -> Run:
    for slug in candidates(task):
        run = turn.run(slug)
        if run is not None and NAME in run["dialects"]:
            return run
        if run is None and turn.workspace.files().changed_at(folder_of(slug)) is not None:
            adopted = adopt(turn, slug)
            if adopted is not None:
                return adopted
    raise no_task(candidates(task)[-1])


def candidates(task: str) -> list[str]:
    """A folder's own name, or the slug of what was written; both are names that cannot lead elsewhere."""
    from tenuto.names import check

    names = []
    try:
        names.append(check(task.strip(), "task"))
    except BadInput:
        pass
    try:
        slug = slug_of(task)
    except BadInput:
        raise no_task(task) from None
    return names if slug in names else [*names, slug]


def _current(turn: Turn) -> Run:
    slug = pointer(turn)
    if slug is None:
        slug = adopt_current(turn)
        if slug is None:
            raise no_current_task()
    try:
        run = turn.run(slug)
    except Refused as refusal:
        if refusal.details.get("reason") != "other-task":
            raise
        chosen = adopt_current(turn)
        if chosen is None:
            raise
        run = turn.run(chosen)
    if run is None or NAME not in run["dialects"]:
        raise no_current_task()
    return run


def take_over(turn: Turn, run: Run) -> None:
    """A task that was only looked at so far is about to be changed: from here its files are written."""
    if as_found(run):
        place = {key: value for key, value in run["dialects"][NAME].items() if key != "as_found"}
        turn.do(run["id"], {"do": "ShowIn", "dialect": NAME, "place": place})
        open_history(turn)


# ---- current-task.md -------------------------------------------------------------------------------


def pointer(turn: Turn) -> str | None:
    """The task this work tree is at: the repository's current run where it is one of this tree's tasks."""
    tree = turn.workspace.tree
    owner = turn.repo["owners"].get(file_key(tree, CURRENT))
    current = turn.repo["current"]
    if current is not None and current != owner:
        run = turn.tx.load(current)
        if run is not None and run["dialects"].get(NAME, {}).get("tree") == tree:
            point_to(turn, current)
            return current
    return owner


def point_to(turn: Turn, slug: str) -> None:
    turn.do_repo({"do": "MakeCurrent", "run": slug})
    turn.do_repo({"do": "OwnFile", "path": file_key(turn.workspace.tree, CURRENT), "run": slug})


def settle_pointer(turn: Turn) -> None:
    """Before another task takes current-task.md: what others wrote there is kept."""
    body = turn.workspace.files().read(CURRENT)
    if body is not None:
        key = file_key(turn.workspace.tree, CURRENT)
        owner = turn.repo["owners"].get(key) or ""
        _remember(turn, key, body, owner, turn.tx.version(owner) if owner else 0)


def keep_file(turn: Turn, run: Run, path: str) -> None:
    """Another program's file, which ours will replace one day, counts as known and can be read by its hash for ever."""
    body = turn.workspace.files(tree_of(run)).read(path)
    if body is not None:
        _keep(turn, run, path, body)


def _keep(turn: Turn, run: Run, path: str, body: bytes) -> None:
    _remember(turn, file_key(tree_of(run), path), body, run["id"], run["version"])


def _remember(turn: Turn, key: str, body: bytes, owner: str, version: int) -> None:
    sha = digest(body)
    if sha not in [render[0] for render in turn.tx.renders(key)]:
        turn.tx.put_blob(sha, body)
        turn.tx.remember(key, (sha, body, owner, version))


# ---- adoption --------------------------------------------------------------------------------------


def adopt(turn: Turn, slug: str) -> Run | None:
    """The folder's task; None where it holds none. The manifest wins over the legacy file."""
    files = turn.workspace.files()
    for path in (manifest_of(slug), legacy_of(slug)):
        body = files.read(path)
        if body is not None:
            return _adopt_file(turn, slug, path, body)
    return None


def _adopt_file(turn: Turn, slug: str, path: str, body: bytes) -> Run:
    from tenuto.views.context.manifest import read_manifest

    try:
        document: object = loads_strict(body)
    except NotJson as error:
        raise Damaged("unreadable", f"{path} cannot be parsed: {error}", "correct it, or move it away") from None
    if not isinstance(document, dict):
        raise Damaged("unreadable", f"{path} cannot be parsed: it is not a JSON object", "correct it, or move it away")
    files = turn.workspace.files()
    place: Json = {"tree": turn.workspace.tree, "as_found": path, "seen": files.changed_at(path)}
    has_debt = files.changed_at(f"{folder_of(slug)}/debt.md") is not None
    state = read_manifest(slug, document, turn.at, place, has_debt)
    turn.do(slug, {"do": "Adopt", "dialect": NAME, "path": path, "sha256": digest(body), "state": state})
    run = turn.existing(slug)
    _keep(turn, run, path, body)
    keep_file(turn, run, metrics_of(slug))
    others = look_at_artifacts(turn, run)
    if others:
        turn.workspace.warn(f"{folder_of(slug)}: no artifact, and not read: {', '.join(others)}")
    return run


def adopt_current(turn: Turn) -> str | None:
    """The task that current-task.md points to, made the current one; None where it points to none."""
    from tenuto.views.context.manifest import points_to

    body = turn.workspace.files().read(CURRENT)
    name = points_to(body.decode("utf-8", "replace")) if body else ""
    if not name or body is None:
        return None
    for slug in candidates(name):
        run = turn.run(slug) or adopt(turn, slug)
        if run is not None and NAME in run["dialects"]:
            point_to(turn, slug)
            _keep(turn, run, CURRENT, body)
            return slug
    return None


def _adopt_all(workspace: Workspace, slugs: list[str]) -> tuple[list[str], list[str]]:
    """(adopted, folders that hold no task). What cannot be read is said and skipped."""
    adopted: list[str] = []
    without: list[str] = []
    for start in range(0, len(slugs), _BATCH):
        batch: list[str] = []
        with workspace.turn() as turn:
            for slug in slugs[start : start + _BATCH]:
                (batch if _adopt_or_warn(turn, slug) else without).append(slug)
        adopted += batch
    return adopted, without


def _adopt_or_warn(turn: Turn, slug: str) -> bool:
    workspace = turn.workspace
    try:
        if not _is_folder(workspace.root, folder_of(slug)):
            return False
        if adopt(turn, slug) is not None:
            return True
        workspace.warn(f"{folder_of(slug)} has neither manifest.json nor metadata.json; skipped")
    except TenutoError as refusal:
        workspace.warn(f"{refusal.message}; skipped")
    return False


def _is_folder(root: str, path: str) -> bool:
    import os

    return os.path.isdir(f"{root}/{path}")


# ---- artifacts that others wrote -------------------------------------------------------------------


def look_at_artifacts(turn: Turn, run: Run) -> list[str]:
    """Files that others wrote or changed in the task's folder become its artifacts; what cannot be read is said.

    Returns the files of the folder that are no artifact.
    """
    from tenuto.views.context.manifest import artifacts_in

    folder = folder_of(run["id"])
    artifacts, others = artifacts_in(_names_below(turn, run, folder))
    for name, artifact in artifacts.items():
        try:
            _look_at(turn, run, f"{folder}/{name}", artifact)
        except TenutoError as refusal:
            turn.workspace.warn(f"{folder}/{name} is left alone: {refusal.message}")
    return others


def _names_below(turn: Turn, run: Run, folder: str) -> list[str]:
    files = turn.workspace.files(tree_of(run))
    names = files.names(folder)
    for below in ("implementations", "tests"):
        if below in names:
            names.remove(below)
            try:
                names += [f"{below}/{name}" for name in files.names(f"{folder}/{below}")]
            except TenutoError as refusal:
                turn.workspace.warn(f"{folder}/{below} is left alone: {refusal.message}")
    return names


def _look_at(turn: Turn, run: Run, path: str, artifact: str) -> None:
    before = run["artifacts"].get(artifact)
    turn.look(run["id"], path, artifact)
    now = run["artifacts"].get(artifact)
    if now is not None and now is not before:
        from tenuto.knowledge.passages import INDEXED, passages_of

        head = turn.workspace.files().stored(turn.tx, now["sha256"], INDEXED)
        turn.tx.index(run["id"], artifact, path, passages_of(head))


def as_written(turn: Turn, run: Run) -> Json | None:
    """The file that an adopted task is left in, as it stands; None once the task's files are ours."""
    file = as_found(run)
    body = turn.workspace.files(tree_of(run)).read(file) if file else None
    document: object = loads_strict(body) if body else None
    return document if isinstance(document, dict) else None


# ---- LIST ------------------------------------------------------------------------------------------


def list_tasks(workspace: Workspace, limit: int) -> list[Task]:
    with workspace.journal.read() as reader:
        folders = _new_folders(workspace, reader)
        summaries = [] if folders else reader.runs(dialect=NAME, limit=limit)
    if folders:
        _take_in(workspace, *folders)
        summaries = _summaries(workspace, limit)
    fresh, broken = _notice_edits(workspace, summaries)
    if fresh:
        summaries = _summaries(workspace, limit)
    return [_task(summary, workspace) for summary in summaries if summary["id"] not in broken]


def _summaries(workspace: Workspace, limit: int) -> list[RunSummary]:
    with workspace.journal.read() as reader:
        return reader.runs(dialect=NAME, limit=limit)


def _task(summary: RunSummary, workspace: Workspace) -> Task:
    place = summary["dialects"][NAME]
    status = shown_status(summary["status"], place.get("status"))
    if status not in KNOWN_STATUSES:
        file = place.get("as_found") or manifest_of(summary["id"])
        workspace.warn(f"{file}: unknown status {status!r}, shown as it is")
    return {
        "task": summary["id"],
        "mode": summary["mode"],
        "workflow": summary["pipeline"]["name"],
        "status": status,
        "created_at": str(place.get("created", summary["created_at"])),
    }


def notice_folders(workspace: Workspace) -> list[str]:
    """Adopt what lies in the folder of tasks and is not in the journal. Returns the slugs."""
    with workspace.journal.read() as reader:
        folders = _new_folders(workspace, reader)
    return _take_in(workspace, *folders) if folders else []


def _new_folders(workspace: Workspace, reader: Reader) -> tuple[list[str], int] | None:
    """Those that the journal does not know, and when the folder of tasks had changed; None: nothing to do.

    The time is 0 where it is not worth a note.
    """
    files = workspace.files()
    changed = files.changed_at(TASKS)
    if changed is None:
        return None
    note = reader.marker(_SCANNED + workspace.tree)
    before, bare = loads(note) if note else (0, [])
    if before == changed:
        return (bare, 0) if bare else None
    names = [name for name in files.names(TASKS) if name[0] != "."]
    many, unknown = len(names) > _FEW, [name for name in names if not reader.version(name)]
    return (unknown, changed if many else 0) if unknown or many else None


def _take_in(workspace: Workspace, unknown: list[str], changed: int) -> list[str]:
    adopted, without = _adopt_all(workspace, unknown)
    if changed and time_ns() - changed > _SETTLED:
        with workspace.journal.write() as transaction:
            transaction.put_marker(_SCANNED + workspace.tree, dumps([changed, without]))
    return adopted


# ---- manifests that others changed -----------------------------------------------------------------


def _notice_edits(workspace: Workspace, summaries: list[RunSummary]) -> tuple[bool, list[str]]:
    """(whether anything was looked into, the tasks whose file cannot be parsed)"""
    files, tree = workspace.files(), workspace.tree
    days: dict[str, int] = {}
    suspects = []
    for summary in summaries:
        place = summary["dialects"][NAME]
        if place.get("tree", "") != tree:
            continue
        changed = files.changed_at(place.get("as_found") or manifest_of(summary["id"]))
        if changed is None or changed == place.get("seen"):
            continue
        marked = changed % 1_000_000 == 0
        if not marked or changed // 1_000_000 > _moment(summary["updated_at"], days) + _OWN_WRITE:
            suspects.append((summary["id"], str(changed)))
    return _look_into(workspace, suspects) if suspects else (False, [])


def _moment(text: str, days: dict[str, int]) -> int:
    """`milliseconds`, for many times of few days, as we write them ourselves."""
    if len(text) != 24:
        return milliseconds(text) or 0
    day = days.get(text[:10])
    if day is None:
        day = days[text[:10]] = milliseconds(f"{text[:10]}T00:00:00Z") or 0
    return day + int(text[11:13]) * 3_600_000 + int(text[14:16]) * 60_000 + int(text[17:19] + text[20:23])


def _look_into(workspace: Workspace, suspects: list[tuple[str, str]]) -> tuple[bool, list[str]]:
    """A turn for each file that was not looked into since it changed. A refusal is said each time, and the file
    stays."""
    with workspace.journal.read() as reader:
        before = {slug: (reader.marker(_LOOKED + slug) or "").split("\n", 2) for slug, _ in suspects}
    fresh = {slug: [changed, "", ""] for slug, changed in suspects if before[slug][0] != changed}
    for slug, note in fresh.items():
        try:
            with workspace.turn() as turn:
                turn.run(slug)
        except TenutoError as refusal:
            note[1:] = [str(refusal.details.get("reason") or refusal.code), refusal.message]
    if fresh:
        with workspace.journal.write() as transaction:
            for slug, note in fresh.items():
                transaction.put_marker(_LOOKED + slug, "\n".join(note))
    broken = []
    for slug, (_, *problem) in (before | fresh).items():
        if any(problem):
            skipped = problem[0] in _UNPARSABLE
            workspace.warn(f"{problem[1]}; skipped" if skipped else problem[1])
            broken += [slug] if skipped else []
    return bool(fresh), broken
