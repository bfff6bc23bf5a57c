"""A run on a branch of its own: what was there before is never mixed in, and the end is a branch that can be reviewed.

    begin(workspace, mode, dirty)     before anything is recorded: a tree with changes is refused, or noted to be
                                      stashed by choice
    put_aside(workspace, run)         the stash, once the run is recorded: one that was refused has touched nothing
    stand(workspace, run)             the work tree stands on the run's branch; made at its base where it is not there
                                      yet
    checkpoint(workspace, run, ...)   what sequential agents left becomes a commit, so that work trees start from it
    conclude(workspace, run, ...)     at the end: the documents, the summary and the pull-request text, committed

.tenuto/ (the user's definitions) and files that Tenuto projects for other runs are left alone everywhere. No branch is
ever deleted, moved back or pushed.

Summary and pull-request text are made from the run alone. Agents' words stand in them as quotations: one line each,
without marks that would make them headings or commands.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tenuto.core.pipeline.check import documents_of
from tenuto.core.records.run import Run
from tenuto.core.status import OVER, UNSTARTED, WELL, open_ends, shown_status_of
from tenuto.engine.attempt import definition_of
from tenuto.engine.boundary import changes, strays
from tenuto.errors import Refused
from tenuto.files import git
from tenuto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Json


def summary(run: Run) -> str:
    parts = [
        f"# {_line(run['name'])}",
        "",
        f"{_shown(run)}, pipeline {run['pipeline']['name']}, {len(run['attempts'])} attempts.",
    ]
    if run["failure"]:
        parts += ["", f"ERROR: {_line(run['failure']['error'])}"]
    parts += ["", "## Steps", "", "| Step | Visit | Result |", "| --- | --- | --- |"]
    parts += [f"| {visit['step']} | {visit['iteration']} | {visit['status']} |" for visit in run["visits"]]
    if unresolved(run):
        parts += ["", f"Went on without a DONE of: {', '.join(unresolved(run))}"]
    parts += [*_items(run), *_checks(run), *_false_claims(run)]
    return "\n".join(parts).rstrip() + "\n"


def pull_request(run: Run, folder: str, changed: bool = True) -> str:
    """`changed`: there is more to see on the branch than the run's own documents."""
    settings = run["settings"]
    parts = [f"# {_line(run['name'])}", "", _quoted(run["request"]), "", "## What was done", ""]
    done = [f"- {name}: {_line(item['title'])}" for name, item in run["items"].items() if item["status"] == "completed"]
    parts += done or ["- see the commits" if changed else "- nothing besides the documents of the run"]
    parts += [*_open_ends(run), *_checks(run)]
    parts += [
        "",
        "## How it was made",
        "",
        (
            f"Run `{run['id']}` of the pipeline `{run['pipeline']['name']}`: {_shown(run)}, "
            f"{len(run['attempts'])} attempts."
        ),
    ]
    parts.append(
        f"Documents: `{folder}/`. Branch: `{settings.get('branch', '')}`, from "
        f"`{settings.get('from_branch') or settings.get('base_commit', '')[:12]}`."
    )
    return "\n".join(parts).rstrip() + "\n"


def _shown(run: Run) -> str:
    return shown_status_of(run)


def unfinished(run: Run, *states: str) -> list[str]:
    """Items that were planned and never started (or are in these states), by name."""
    return [name for name, item in run["items"].items() if item["status"] in (states or UNSTARTED)]


def unresolved(run: Run) -> list[str]:
    """Steps that a run which ended well went on from without their DONE."""
    if run["status"] not in WELL:
        return []
    return [
        f"{name} ({step['verdict']})"
        for name, step in run["steps"].items()
        if step["verdict"] not in (None, "", "DONE")
    ]


def _items(run: Run) -> list[str]:
    if not run["items"]:
        return []
    rows = [f"| {name} | {_line(item['title'])} | {_word(item['status'])} |" for name, item in run["items"].items()]
    return ["", "## Items", "", "| Item | Title | State |", "| --- | --- | --- |", *rows]


def _word(status: str) -> str:
    return "never started" if status in UNSTARTED else status


def _open_ends(run: Run) -> list[str]:
    left = [
        f"- {name}: {_line(item['title'])} ({_word(item['status'])})"
        for name, item in run["items"].items()
        if item["status"] != "completed"
    ]
    left += [f"- the run went on without a DONE of {step}" for step in unresolved(run)]
    left += [f"- `{_line(command)}` failed when the engine last ran it" for command in open_ends(run)["checks"]]
    return ["", "## Not done", "", *left] if left else []


def _checks(run: Run) -> list[str]:
    found = [
        f"- `{_line(check['command'])}`: {check.get('reason') or 'passed'} (after {name})"
        for name, attempt in run["attempts"].items()
        for check in attempt["receipt"].get("checks", [])
    ]
    none = ["- none: neither build nor tests were run by the engine"]
    return ["", "## Checks the engine ran itself", "", *(found or none)]


def _false_claims(run: Run) -> list[str]:
    found = [
        f"- {name}: {_line(attempt['receipt']['problem'])}"
        for name, attempt in run["attempts"].items()
        if attempt["receipt"].get("problem")
    ]
    return ["", "## Claims that did not hold", "", *found] if found else []


def _line(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")[:300]


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines())


# ---- branches


def begin(workspace: Workspace, mode: str, own_branch: bool, dirty: str, own_tree: str | None = None) -> Json:
    """The settings of a run that works this way. `dirty`: refuse, stash, or "" for what the mode says. `own_tree`: it
    was made for this run, from this branch ("": from none)."""
    wanted: Json = {"workspace": mode} if mode == "worktree" else {}
    if own_tree is not None:
        return {**wanted, "own_tree": True, "from_branch": own_tree}
    if not (own_branch or wanted or dirty):
        return {}
    if not git.head(workspace.root):
        raise Refused("no-commit", "a branch needs a git repository with a commit", "git init, git add, git commit")
    found = _changes(workspace, "")
    others = _documents_of_others(workspace, found)
    if others and (own_branch or wanted):
        run, paths = next(iter(others.items()))
        message = f"run {run} has not ended, and its documents in this work tree are not committed: {_listed(paths)}"
        raise Refused("tree-in-use", message, f"tenuto run ... --tree, or first: tenuto status {run}", run=run)
    found = [path for path in found if not any(path in paths for paths in others.values())]
    if found and dirty != "stash":
        raise Refused(
            "dirty-tree",
            f"the work tree has changes that are not committed: {_listed(found)}",
            "commit them, or: --dirty stash",
        )
    noted = {"to_stash": found} if found else {}
    return {**noted, **wanted, "from_branch": git.branch(workspace.root)} if own_branch or wanted else noted


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _documents_of_others(workspace: Workspace, found: list[str]) -> dict[str, list[str]]:
    """By run that goes on or waits in this work tree: those of these files that are its documents. No other run stashes
    them, or takes the tree to another branch under them."""
    others: dict[str, list[str]] = {}
    with workspace.journal.read() as reader:
        for name, tree in reader.open_runs() if found else ():
            run = reader.load(name) if tree == workspace.tree else None
            if run is None or run["status"] in OVER or run["driver"] == "manual" or run["pipeline"]["hash"] is None:
                continue
            folder = _folder(run, definition_of(reader, run)["pipeline"])
            made = [artifact["path"] for artifact in run["artifacts"].values()]
            mine = [path for path in found if path in made or (folder != "." and path.startswith(f"{folder}/"))]
            if mine:
                others[name] = mine
    return others


def put_aside(workspace: Workspace, run: Run) -> Run:
    """What was not committed when the run began. Repeating it changes nothing: a process that was killed in between
    left the rest of it to us."""
    wanted = run["settings"].get("to_stash")
    if not wanted:
        return run
    title = f"tenuto: changes from before the run {run['id']}"
    now = changes(workspace, "")
    left = [path for path in wanted if path in now]
    if left:
        _stash(workspace.root, left, title)
    with workspace.turn(by="engine") as turn:
        turn.do(
            run["id"], {"do": "ChangeSettings", "changes": {"to_stash": [], "stash": _stashed(workspace.root, title)}}
        )
        return turn.existing(run["id"])


def branch_for(root: str, run: str) -> str:
    name, number = f"tenuto/{run}", 2
    while git.exists(root, f"refs/heads/{name}"):
        name, number = f"tenuto/{run}-{number}", number + 1
    return name


def stand(workspace: Workspace, run: Run, pipeline: Pipeline) -> None:
    run = put_aside(workspace, run)
    wanted, root = run["settings"].get("branch", ""), workspace.root
    found = git.branch(root)
    if not wanted or found == wanted or run["status"] in OVER:
        return
    standing = _changes(workspace, _folder(run, pipeline), run["id"])
    if standing:
        raise Refused(
            "other-branch",
            (
                f"run {run['id']} works on the branch {wanted}; this work tree stands on {found or 'no branch'} "
                f"and has changes: {', '.join(standing[:5])}"
            ),
            f"commit or stash them, git switch {wanted}, then: tenuto run",
        )
    if not git.exists(root, f"refs/heads/{wanted}"):  # one after the other: each of the two can be repeated
        git.tell(root, "branch", wanted, run["settings"]["base_commit"])
    git.tell(root, "switch", "--quiet", wanted)


def has_changes(workspace: Workspace, run: Run, pipeline: Pipeline) -> bool:
    """That a checkpoint would commit."""
    return bool(_changes(workspace, _folder(run, pipeline), run["id"]))


def checkpoint(workspace: Workspace, run: Run, pipeline: Pipeline, before: str) -> bool:
    message = f"{run['name']}: before {before}\n\nTenuto-Run: {run['id']}"
    return git.commit(workspace.root, _changes(workspace, _folder(run, pipeline), run["id"]), message)


def conclude(workspace: Workspace, run: Run, pipeline: Pipeline) -> None:
    """Repeating it changes nothing."""
    if not run["settings"].get("branch") or run["status"] not in OVER:
        return
    if git.branch(workspace.root) != run["settings"]["branch"]:
        return  # its user went on elsewhere: what stands here now is not the run's
    folder = _folder(run, pipeline)
    differing = git.snapshot(workspace.root, run["settings"].get("base_commit", "")) or {}
    text = pull_request(run, folder, any(not path.startswith((f"{folder}/", ".tenuto/")) for path in differing))
    with workspace.turn(by="engine") as turn:
        for name, body in (("summary.md", summary(run)), ("pull-request.md", text)):
            turn.store(run["id"], name, os.path.normpath(f"{folder}/{name}"), body.encode())
    message = f"{run['name']}\n\n{_shown(run)}: see {folder}/summary.md\n\nTenuto-Run: {run['id']}"
    git.commit(workspace.root, [*_changes(workspace, folder, run["id"]), *_documents(workspace.root, folder)], message)


def _folder(run: Run, pipeline: Pipeline) -> str:
    return os.path.normpath(documents_of(pipeline, run))


def _changes(workspace: Workspace, folder: str, run: str = "") -> list[str]:
    """What is not committed and may be: not the user's definitions, and nothing that an agent wrote where it must
    not."""
    outside_boundary = strays(f"{workspace.state}/attempts/{run}") if run else []
    return [
        path for path in changes(workspace, folder) if not path.startswith(".tenuto/") and path not in outside_boundary
    ]


def _documents(root: str, folder: str) -> list[str]:
    if folder == ".":
        return [name for name in ("summary.md", "pull-request.md") if os.path.exists(f"{root}/{name}")]
    return [path for path in git.snapshot(root) or {} if path.startswith(folder + "/")]


def _stash(root: str, paths: list[str], title: str) -> None:
    git.tell(
        root,
        "--literal-pathspecs",
        *git.author(root),
        "stash",
        "push",
        "--quiet",
        "--include-untracked",
        "-m",
        title,
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
        given="\0".join(paths),
    )


def _stashed(root: str, title: str) -> str:
    """The first one of this title: what a kill in the middle left for a second one is in the first, too."""
    found = [line.partition(" ") for line in git.ask(root, "stash", "list", "--format=%H %gs").out.splitlines()]
    return next((sha for sha, _, said in reversed(found) if said.endswith(title)), "")
