"""Where a repository's journal lies, found without starting git.

in a git repository     <git common dir>/tenuto/   one for all work trees, survives `git clean`
elsewhere               <root>/.tenuto/            the nearest folder upwards that has one, else this folder

Below the top of a git repository no .tenuto/ is looked at, and none that is a link anywhere: what lies there may have
come with a clone, with runs and approvals that nobody here ever saw.
"""

from __future__ import annotations

import posix  # not os: it costs a hook a fifth of the interpreter's start

_KIND, _FOLDER, _FILE = 0o170000, 0o040000, 0o100000  # of a file's mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class Location(NamedTuple):
        root: str  # the work tree
        tree: str  # its name when it is a linked work tree, else ""
        state: str  # the folder of the journal


def locate(path: str) -> tuple[str, str, str]:
    """(root, tree, state folder) for a path inside a repository."""
    here = start = _absolute(path)
    own = None  # the nearest folder that has a .tenuto/
    while True:
        git = here + "/.git"
        kind = _kind(git)
        if kind == _FOLDER and _is_repository(git):
            return here, "", git + "/tenuto"
        if kind == _FILE:
            linked = _linked(here)
            if linked is not None:
                return (here or "/", *linked)
        if own is None and _kind(here + "/.tenuto") == _FOLDER:
            own = here
        if not here:
            return _without_git(start if own is None else own)
        here = _parent(here)


def _without_git(root: str) -> tuple[str, str, str]:
    state = root + "/.tenuto"
    try:
        target = posix.readlink(state)
    except OSError:
        return root or "/", "", state
    from tenuto.errors import Refused

    message = f"{state} is a link to {target}, and a journal is neither read nor written through one"
    raise Refused("state-is-link", message, "put a folder there, or make this a git repository", path=state)


def _is_repository(git: str) -> bool:
    """As git sees it: one has a HEAD. Sandboxes (Codex's) leave empty folders of that name to guard a place."""
    return bool(_kind(git + "/HEAD")) or _kind(git + "/tenuto") == _FOLDER


def has_blocking_gate(state: str) -> bool:
    """Was a gate declared here that must not be passed unasked? The mark lies beside the journal (hooks/reports.py)."""
    try:
        return posix.stat(state + "/blocking").st_size > 0
    except (OSError, ValueError):
        return False


def root_of_tree(state: str, tree: str, main: str | None) -> str | None:
    """The root of a linked work tree by its name; None where it is gone."""
    if not tree:
        return main
    from os.path import join, normpath

    from tenuto.files.git_links import path_in

    about = f"{_parent(state)}/worktrees/{tree}"
    git_file = path_in(about + "/gitdir")  # absolute, or seen from where this is written
    root = _parent(normpath(join(about, git_file))) if git_file else ""
    return root if root and _kind(root) == _FOLDER else None


def main_root(root: str, tree: str, state: str) -> str | None:
    """The root of the main work tree (a linked one asks for it); None where git does not know one, either."""
    if not tree:
        return root
    common = _parent(state)
    if common.endswith("/.git"):
        return _parent(common)
    from os.path import join, normpath

    worktree = _setting(common + "/config", "core", "worktree")  # a submodule's repository says where its files lie
    return normpath(join(common, worktree)) if worktree else None


def _setting(path: str, section: str, name: str) -> str:
    inside = False
    for line in map(str.strip, _text(path).splitlines()):
        key, equals, value = line.partition("=")
        if line.startswith("["):
            inside = line.lower() == f"[{section}]"
        elif inside and equals and key.strip().lower() == name:
            return value.strip().strip('"')
    return ""


def _linked(root: str) -> tuple[str, str] | None:
    """None where the file leads nowhere: then git, too, says that this is no repository."""
    from os.path import basename, join, normpath

    from tenuto.files.git_links import git_directory, path_in

    git_dir = git_directory(root)
    if not git_dir or _kind(git_dir) != _FOLDER:
        return None
    common = path_in(git_dir + "/commondir")
    if not common:  # a submodule: a repository of its own
        return "", git_dir + "/tenuto"
    return basename(git_dir), normpath(join(git_dir, common)) + "/tenuto"


def _absolute(path: str) -> str:
    """The root is ""; no other path ends in a slash."""
    if path[:1] != "/":
        path = _here() if path == "." else f"{_here()}/{path}"
    if "/." in path or "//" in path or path.endswith("/"):
        from os.path import abspath

        path = abspath(path)
    return "" if path == "/" else path


def _here() -> str:
    try:
        return posix.getcwd()
    except FileNotFoundError:
        from tenuto.errors import NotFound

        raise NotFound(
            "no-folder", "the folder that this was started in is gone", "go to the repository, then repeat the command"
        ) from None


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _kind(path: str) -> int:
    try:
        return posix.stat(path).st_mode & _KIND
    except (OSError, ValueError):
        return 0


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(65536).strip()
    except OSError:
        return ""
