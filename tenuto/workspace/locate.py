"""Where a repository's journal lies, found without starting git.

in a git repository     <git common dir>/tenuto/   one for all work trees, survives `git clean`
elsewhere               <root>/.tenuto/            the nearest folder upwards that has one, else this folder
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class Location(NamedTuple):
        root: str  # the work tree
        tree: str  # its name when it is a linked work tree, else ""
        state: str  # the folder of the journal


def locate(path: str) -> tuple[str, str, str]:
    """(root, tree, state folder) for a path inside a repository."""
    here = start = os.path.abspath(path)
    while True:
        git = here + "/.git"
        if os.path.isdir(git):
            return here, "", git + "/tenuto"
        if os.path.isfile(git):
            return (here, *_linked(here, git))
        if os.path.isdir(here + "/.tenuto"):
            return here, "", here + "/.tenuto"
        above = os.path.dirname(here)
        if above == here:
            return start, "", start + "/.tenuto"
        here = above


def root_of_tree(state: str, tree: str, main: str) -> str | None:
    """The root of a linked work tree by its name; None where it is gone."""
    if not tree:
        return main
    git = _text(os.path.dirname(state) + f"/worktrees/{tree}/gitdir")
    root = os.path.dirname(git)
    return root if root and os.path.isdir(root) else None


def main_root(root: str, tree: str, state: str) -> str:
    """The root of the main work tree (a linked one asks for it)."""
    return os.path.dirname(os.path.dirname(state)) if tree else root


def _linked(root: str, git_file: str) -> tuple[str, str]:
    git_dir = os.path.join(root, _text(git_file).removeprefix("gitdir:").strip())
    common = _text(git_dir + "/commondir")
    if not common:  # a submodule: a repository of its own
        return "", os.path.normpath(git_dir) + "/tenuto"
    return os.path.basename(os.path.normpath(git_dir)), os.path.normpath(os.path.join(git_dir, common)) + "/tenuto"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(65536).strip()
    except OSError:
        return ""
