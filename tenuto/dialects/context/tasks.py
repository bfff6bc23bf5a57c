"""Which task a command is about, and how a task begins.

    named(turn, "dark-mode")   that task
    named(turn, "")            the one that current-task.md points to

A task that lies in the repository and is not in the journal yet is adopted on the way. current-task.md is a
pointer per work tree; somebody who points it at another task has chosen that task.
"""

from __future__ import annotations

from tenuto.core.names import slug as slug_of
from tenuto.dialects.context.history import HEADER
from tenuto.dialects.context.places import CURRENT, HISTORY, NAME, folder_of, key_of, legacy_of, manifest_of
from tenuto.dialects.context.wording import no_current_task, no_task, wrong
from tenuto.encoding import digest
from tenuto.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Initialized, Turn, Workspace

MODES = ("standard", "poc")
WORKFLOWS = ("orchestrate", "poc", "graduate")


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
        _refuse_existing(turn, slug)
        settle_pointer(turn)
        turn.do(slug, {
            "do": "StartRun", "run": slug, "name": task.strip(), "request": task.strip(), "mode": mode,
            "pipeline": {"name": workflow, "hash": None}, "driver": "manual",
            "dialects": {NAME: {"tree": workspace.tree}},
        })  # fmt: skip
        point_to(turn, slug)
        open_history(turn)
        at = turn.at
    return {
        "status": "success", "task": slug,
        "data": f"Task initialized | mode: {mode} | workflow: {workflow} | status: running | created: {at}",
        "files_touched": [manifest_of(slug), CURRENT, HISTORY],
        "mode": mode, "workflow": workflow, "created_at": at,
    }  # fmt: skip


def _refuse_existing(turn: Turn, slug: str) -> None:
    files = turn.workspace.files()
    if (
        turn.tx.version(slug)
        or files.changed_at(manifest_of(slug)) is not None
        or files.changed_at(legacy_of(slug)) is not None
    ):
        raise Refused("task-exists", f"Task already exists: {slug}", f"RETRIEVE for_phase: resume task: {slug}", task=slug)


def open_history(turn: Turn) -> None:
    """The first entry of a repository that has no history.md stands below a title."""
    if not turn.tx.log_length(HISTORY) and turn.workspace.files().changed_at(HISTORY) is None:
        turn.log(HISTORY, HEADER)


# ---- the current task ------------------------------------------------------------------------------


def named(turn: Turn, task: str) -> Run:
    """The task of that name, or the current one."""
    return _by_name(turn, task) if task else _current(turn)


def _by_name(turn: Turn, task: str) -> Run:
    for slug in candidates(task):
        run = turn.run(slug)
        if run is not None and NAME in run["dialects"]:
            return run
        if run is None and turn.workspace.files().changed_at(folder_of(slug)) is not None:
            from tenuto.dialects.context.adoption import adopt

            found = adopt(turn, slug)
            if found is not None:
                return found
    raise no_task(candidates(task)[-1])


def candidates(task: str) -> list[str]:
    """A folder's own name, or the slug of what was written; both are names that cannot lead elsewhere."""
    from tenuto.core.names import check

    names = []
    try:
        names.append(check(task.strip(), "task"))
    except BadInput:
        pass
    try:
        made = slug_of(task)
    except BadInput:
        raise no_task(task) from None
    return names if made in names else [*names, made]


def _current(turn: Turn) -> Run:
    slug = pointer(turn)
    if slug is None:
        from tenuto.dialects.context.adoption import adopt_current

        slug = adopt_current(turn)
        if slug is None:
            raise no_current_task()
    try:
        run = turn.run(slug)
    except Refused as refusal:
        if refusal.details.get("reason") != "other-task":
            raise
        from tenuto.dialects.context.adoption import adopt_current

        chosen = adopt_current(turn)
        if chosen is None:
            raise
        run = turn.run(chosen)
    if run is None or NAME not in run["dialects"]:
        raise no_current_task()
    return run


def pointer(turn: Turn) -> str | None:
    """The task this work tree is at: the repository's current run where it is one of this tree's tasks."""
    tree = turn.workspace.tree
    owner = turn.repo["owners"].get(key_of(tree, CURRENT))
    current = turn.repo["current"]
    if current is not None and current != owner:
        run = turn.tx.load(current)
        if run is not None and run["dialects"].get(NAME, {}).get("tree") == tree:
            point_to(turn, current)
            return current
    return owner


def point_to(turn: Turn, slug: str) -> None:
    turn.do_repo({"do": "MakeCurrent", "run": slug})
    turn.do_repo({"do": "OwnFile", "path": key_of(turn.workspace.tree, CURRENT), "run": slug})


def settle_pointer(turn: Turn) -> None:
    """Before another task takes current-task.md: what others wrote there is kept."""
    found = turn.workspace.files().read(CURRENT)
    if found is not None:
        key = key_of(turn.workspace.tree, CURRENT)
        owner = turn.repo["owners"].get(key) or ""
        _remember(turn, key, found, owner, turn.tx.version(owner) if owner else 0)


def keep_file(turn: Turn, run: Run, path: str) -> None:
    """Another program's file, which ours will replace one day, counts as known and can be read by its hash for ever."""
    found = turn.workspace.files(run["dialects"][NAME].get("tree", "")).read(path)
    if found is not None:
        keep(turn, run, path, found)


def keep(turn: Turn, run: Run, path: str, found: bytes) -> None:
    _remember(turn, key_of(run["dialects"][NAME].get("tree", ""), path), found, run["id"], run["version"])


def _remember(turn: Turn, key: str, found: bytes, owner: str, version: int) -> None:
    sha = digest(found)
    if sha not in [render[0] for render in turn.tx.renders(key)]:
        turn.tx.put_blob(sha, found)
        turn.tx.remember(key, (sha, found, owner, version))


def take_over(turn: Turn, run: Run) -> None:
    """A task that was only looked at so far is about to be changed: from here its files are written."""
    place = run["dialects"][NAME]
    if "as_found" in place:
        turn.do(run["id"], {
            "do": "ShowIn", "dialect": NAME, "place": {key: value for key, value in place.items() if key != "as_found"},
        })  # fmt: skip
        open_history(turn)


def for_change(turn: Turn, task: str) -> Run:
    run = named(turn, task)
    if "as_found" in run["dialects"][NAME]:
        take_over(turn, run)
    return run
