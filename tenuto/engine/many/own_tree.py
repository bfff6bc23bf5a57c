"""A run in a git work tree of its own: made for it, on a branch of its own, and removed when it is merged.

    tree = make(workspace, "dark-mode")     a fresh work tree, on the commit that this one stands on, opened
    define_again(there, run)                your definitions there as they are now
    fill(site, run, definition)             before the first agent: what git does not know is copied, commands are run
    look(workspace, run)                    for `tenuto clean`: what is left of such trees, and what may go

Trees lie in .tenuto/runs/, which git ignores, under the name of their run. Your definitions (.tenuto/config.yaml,
pipelines, roles, signers) are as they are here, committed or not. What else is not committed stays where it is.

A tree goes when its run is over, nothing in it is uncommitted, and another branch has all that the run's branch has.
The branch stays. So does everything that is under way, locked, or not understood.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tenuto.core.status import OVER
from tenuto.engine.attempt import ENVIRONMENT
from tenuto.engine.boundary import changes, is_engine_here
from tenuto.engine.gates import isolation, opened
from tenuto.engine.receipts import LIMIT, Where, pursue, titled, wait_for
from tenuto.engine.worktrees import Leftover, locked, matching, remove_tree
from tenuto.errors import Refused, TenutoError
from tenuto.files import copies, git
from tenuto.names import slug
from tenuto.workspace.locate import locate, main_root

if TYPE_CHECKING:
    from tenuto.core.records.action import Definition
    from tenuto.core.records.run import Run
    from tenuto.engine.judge import Site
    from tenuto.workspace.workspace import Workspace

FOLDER = ".tenuto/runs"
_DEFINITIONS = ("config.yaml", "pipelines", "roles", "signers")


def make(workspace: Workspace, wanted: str) -> Workspace:
    """`wanted`: the name of the run that is to begin there; the tree's own name says which one it can get."""
    root = workspace.root
    base = git.head(root)
    if not base:
        raise Refused(
            "no-commit", "a tree of its own needs a git repository with a commit", "git init, git add, git commit"
        )
    git.refuse_filters(root)
    home = main_root(root, workspace.tree, workspace.state) or root
    copies.make_folder(home, FOLDER)
    if not os.path.lexists(f"{home}/{FOLDER}/.gitignore"):
        copies.put(home, f"{FOLDER}/.gitignore", b"*\n")
    path = _new_folder(workspace, f"{home}/{FOLDER}", slug(wanted))
    try:
        git.add_tree(root, path, "--detach", base)
        _define(root, path)
    except BaseException:
        discard(workspace, path)
        raise
    return opened(workspace, *locate(path))


def discard(workspace: Workspace, path: str) -> None:
    """A tree that no run has begun in."""
    with suppress(Refused, OSError):
        remove_tree(workspace.root, path)


def _new_folder(workspace: Workspace, home: str, wanted: str) -> str:
    """The first free name that no run has, either. To make the folder is to have it."""
    name, number = wanted, 1
    while True:
        with workspace.journal.read() as reader:
            taken = reader.version(name)
        if not taken:
            with suppress(FileExistsError):
                os.mkdir(f"{home}/{name}")
                return f"{home}/{name}"
        number += 1
        name = f"{wanted}-{number}"


def define_again(there: Workspace, run: Run) -> None:
    """Your definitions as they are in the main tree now: a person wants a run to go on with them."""
    home = main_root(there.root, there.tree, there.state)
    if run["settings"].get("own_tree") and home:
        _define(home, there.root)


def _define(root: str, path: str) -> None:
    for name in _DEFINITIONS:
        if os.path.lexists(f"{root}/.tenuto/{name}"):
            copies.copy(f"{root}/.tenuto/{name}", path, f".tenuto/{name}")


# ---- before the first agent ------------------------------------------------------------------------------


def fill(site: Site, run: Run, definition: Definition) -> str:
    """Why no agent can start there, in words; "" where all is well. Repeating it does what is not done yet."""
    folder = f"{site.folder}/set-up"
    if not run["settings"].get("own_tree") or os.path.exists(f"{folder}/done"):
        return ""
    own, project = definition["pipeline"]["setup"], site.settings.get("setup", {})
    home = main_root(site.workspace.root, site.workspace.tree, site.workspace.state)
    for pattern in [*own["copy"], *project.get("copy", [])]:
        for name in matching(home, pattern) if home else ():
            if not os.path.lexists(f"{site.workspace.root}/{name}"):
                copies.copy(f"{home}/{name}", site.workspace.root, name)
    for number, command in enumerate([*own["run"], *project.get("run", [])], 1):
        where, name = _where(site, folder), titled("setup", number)
        end = wait_for(lambda: pursue(where, name, command))  # noqa: B023  # it is asked at once
        if end.kind != "passed":
            os.rename(folder, f"{folder}-{run['version']}")  # the next time from the beginning
            return f"the set-up command '{command}' failed: {end.result['reason']}\n{end.result['tail']}".strip()
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/done", "w", encoding="utf-8"):
        return ""


def _where(site: Site, folder: str) -> Where:
    settings, outer = site.settings, os.environ
    secrets = settings.get("secrets", [])
    names = (*ENVIRONMENT, *settings.get("environment", []), *secrets)
    environment = {name: outer[name] for name in names if name in outer} | {"TENUTO_RUN": site.name}
    return Where(
        f"{site.name}.set-up",
        site.workspace.root,
        folder,
        environment,
        f"{site.workspace.state}/check-slots",
        LIMIT,
        tuple(secrets),
        tuple(isolation(settings, site.workspace)),
    )


# ---- what is left of them --------------------------------------------------------------------------------


def look(workspace: Workspace, run: str = "") -> list[Leftover]:
    """Of one run, or of every run."""
    home = main_root(workspace.root, workspace.tree, workspace.state) or workspace.root
    folder = f"{home}/{FOLDER}"
    names = sorted(one.name for one in os.scandir(folder) if one.is_dir()) if os.path.isdir(folder) else []
    found = []
    for name in names:
        if run in ("", name):
            goes, why = _fate(workspace, name, f"{folder}/{name}")
            found.append(_leftover(name, f"{folder}/{name}", goes, why))
    return found


def _leftover(run: str, path: str, goes: bool, why: str) -> Leftover:
    return {
        "kind": "tree",
        "name": path,
        "run": run,
        "attempt": "",
        "item": "",
        "goes": goes,
        "why": why,
        "commit": "",
    }


def _fate(workspace: Workspace, name: str, path: str) -> tuple[bool, str]:
    if os.path.realpath(path) == os.path.realpath(workspace.root):
        return False, "you are in it"
    root, tree, state = locate(path)
    if not os.listdir(path):
        return True, "it is empty: its making was interrupted"
    if root != path or not tree or state != workspace.state:
        return False, "git knows no work tree here; look at it, and remove it yourself"
    if locked(path):
        return False, f"it is locked: git worktree unlock {path}"
    there = opened(workspace, root, tree, state)
    try:
        return _fate_of(there, workspace.journal.load(name))
    except TenutoError as problem:
        return False, f"{problem.message}"
    finally:
        there.journal.close()


def _fate_of(there: Workspace, run: Run | None) -> tuple[bool, str]:
    if is_engine_here(there):
        return False, "a run is at work in it"
    if run is not None and run["status"] not in OVER:
        return False, f"its run is {run['status']}"
    left = [path for path in changes(there, "") if not path.startswith(".tenuto/")]
    if left:
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        away = f"commit them there, or: git worktree remove --force {there.root}"
        return False, f"on no branch: {', '.join(left[:5])}{more}; {away}"
    own = run["settings"].get("branch", "") if run is not None else ""
    other = _branch_with_all(there.root, f"refs/heads/{own}")
    if other:
        return True, f"all of it is on {other}"
    return False, f"not merged anywhere: git merge {own}" if own else "what it stands on is on no branch"


def _branch_with_all(root: str, own: str) -> str:
    """Another branch, or a tag, that has the commit this tree stands on."""
    asked = ("for-each-ref", "--contains", "HEAD", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags")
    names = git.ask(root, *asked).out.split()
    found = (ref for ref in names if ref != own and not ref.startswith("refs/heads/tenuto-attempts/"))
    return next((ref.partition("/")[2].partition("/")[2] for ref in found), "")
