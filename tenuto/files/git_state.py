"""Git's own files around an attempt: what an agent must not leave behind in them, and how it is undone.

    snapshot(root)                            what git's files say now; None without git
    unentitled(root, before, now, ...)        what changed that no attempt may change, each in words
    put_back(root, before, aside)             undo it, where that loses nothing; what still stands, in words

An attempt may commit on the branch that it began on, fetch, make tags, and do in a linked work tree what is done there.
It may not change settings, hooks, ignore lists and attributes of git, nor where HEAD stands, nor move or remove what a
ref said before, nor hide files in a stash, nor take a linked work tree away. A branch or a work tree of Tenuto's own
(tenuto/, tenuto-attempts/, .tenuto/trees/) is the engine's business, which may be at work for another run.

Nothing is lost by undoing: a file's other version is moved aside first, and a commit that a ref is moved away from is
kept under refs/tenuto-displaced/.
"""

from __future__ import annotations

import os
import posix
import stat
from typing import NotRequired, TypedDict

from tenuto.encoding import digest
from tenuto.files import git, git_start
from tenuto.files.git_start import Repository, repository_of

_LARGEST = 1 << 20  # bytes of a file that is kept to be put back
_FILES = ("config", "info/exclude", "info/attributes", "info/sparse-checkout", "info/grafts", "objects/info/alternates")
_OWN = ("config.worktree", "info/sparse-checkout", "commondir", "gitdir")  # of one work tree
_FREE = ("refs/remotes/", "refs/notes/", "refs/tenuto-displaced/", "refs/prefetch/", "refs/bisect/")
_ENGINES = ("refs/heads/tenuto/", "refs/heads/tenuto-attempts/")
DISPLACED = "refs/tenuto-displaced"


class State(TypedDict):
    """What git's own files said. Texts are bytes as latin-1."""

    where: list[str]  # the git directory and the common one
    files: dict[str, str]  # below the common directory, or "own:NAME"; what is not there is not listed
    head: str  # the branch, as a ref; the commit where HEAD is detached
    commit: str
    refs: dict[str, str]
    trees: dict[str, str]  # name -> its HEAD
    ignored: NotRequired[str]  # the hash of the user's own ignore list


def snapshot(root: str) -> State | None:
    repository = repository_of(root)
    if repository is None:
        return None
    listed = git.ask(root, "for-each-ref", "--format=%(refname) %(objectname)")
    symbolic = git.ask(root, "symbolic-ref", "--quiet", "HEAD").out.strip()
    commit = git.head(root)
    return {
        "where": [repository.own, repository.common],
        "files": _files(repository),
        "head": symbolic or commit,
        "commit": commit,
        "refs": dict(line.split(" ", 1) for line in listed.out.splitlines() if " " in line),
        "trees": _trees(repository.common),
        "ignored": _ignored(root),
    }


def _files(repository: Repository) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in (*_FILES, *(f"hooks/{one}" for one in _listed(f"{repository.common}/hooks"))):
        text = _text(f"{repository.common}/{name}")
        if text is not None:
            found[name] = text
    for name in _OWN:
        text = _text(f"{repository.own}/{name}")
        if text is not None and (name not in found or repository.own != repository.common):
            found[f"own:{name}"] = text
    return found


def _listed(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.endswith(".sample"))
    except OSError:
        return []


def _text(path: str) -> str | None:
    """What it holds; for what is no file, or too large to be kept, a mark that no file's text begins with."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return f"\0{stat.S_IFMT(found.st_mode)} {os.readlink(path) if stat.S_ISLNK(found.st_mode) else ''}"
        with open(path, "rb") as file:
            body = file.read(_LARGEST + 1)
    except OSError:
        return None
    runs = "x" if found.st_mode & 0o111 else "-"
    return f"{runs}{body.decode('latin-1')}" if len(body) <= _LARGEST else f"\0{digest(body)}"


def _trees(common: str) -> dict[str, str]:
    found = {}
    for name in _listed(f"{common}/worktrees"):
        lies = (_text(f"{common}/worktrees/{name}/gitdir") or "")[1:].strip()
        if "/.tenuto/trees/" not in lies:
            found[name] = (_text(f"{common}/worktrees/{name}/HEAD") or "")[1:].strip()
    return found


def _ignored(root: str) -> str:
    """The user's own list: what stands there is not seen in a snapshot."""
    return digest(git_start.ignored_by_user(root).encode("utf-8", "surrogateescape"))


# ---- what changed


def unentitled(root: str, before: State, now: State | None) -> list[str]:
    if now is None:
        return ["the git directory is gone"]
    if now["where"] != before["where"]:
        return [f"the git directory is another one ({now['where'][0]})"]
    return [
        *_changed_files(before, now),
        *(["your own list of ignored files"] if before.get("ignored") != now.get("ignored") else []),
        *_moved_head(before, now),
        *(f"{_short(name)} {what}" for name, what in _changed_refs(root, before, now)),
        *(f"the work tree '{name}' was removed" for name in before["trees"] if name not in now["trees"]),
    ]


def _changed_files(before: State, now: State) -> list[str]:
    names = sorted({**before["files"], **now["files"]})
    changed = [name for name in names if before["files"].get(name) != now["files"].get(name)]
    return [
        f".git/{name.removeprefix('own:')}"
        for name in changed
        if not (name == "config" and _is_harmless(before["files"].get(name, ""), now["files"].get(name, "")))
    ]


def _is_harmless(before: str, now: str) -> bool:
    """Only sections of branches came, went or changed."""
    return _without_branches(before) == _without_branches(now)


def _without_branches(text: str) -> list[str]:
    kept, inside = [], False
    for line in text[1:].splitlines():
        if line.lstrip().startswith("["):
            inside = line.lstrip().lower().startswith('[branch "')
        if not inside:
            kept.append(line)
        elif ("]" in line and line.partition("]")[2].strip()) or line.rstrip().endswith("\\"):
            kept.append(line)  # more than a title: git may read something else in it
        elif not line.lstrip().startswith("[") and line.partition("=")[0].strip().lower() not in _OF_BRANCHES:
            kept.append(line)
    return kept


_OF_BRANCHES = (
    "",
    "remote",
    "merge",
    "rebase",
    "pushremote",
    "description",
    "vscode-merge-base",
    "github-pr-owner-number",
)


def _moved_head(before: State, now: State) -> list[str]:
    if before["head"] == now["head"] or (_is_detached(before) and _is_detached(now)):
        return []  # a commit on no branch is one that the attempt may make
    return [f"HEAD was moved from {_short(before['head'])} to {_short(now['head'])}"]


def _is_detached(state: State) -> bool:
    return not state["head"].startswith("refs/")


def _changed_refs(root: str, before: State, now: State) -> list[tuple[str, str]]:
    elsewhere = [head.removeprefix("ref: ") for head in (*before["trees"].values(), *now["trees"].values())]
    found = []
    for name in sorted({**before["refs"], **now["refs"]}):
        was, new = before["refs"].get(name), now["refs"].get(name)
        if was == new or name.startswith((*_FREE, *_ENGINES)) or name in elsewhere:
            continue
        if name.startswith("refs/tags/") and was is None:
            continue
        if was is None:
            if name != before["head"]:  # the first commit of a repository
                found.append((name, "is new"))
        elif new is None:
            found.append((name, "was removed"))
        elif name != before["head"] or not _has(root, was, new):
            found.append((name, "was moved"))
    return found


def _has(root: str, old: str, new: str) -> bool:
    return git.ask(root, "merge-base", "--is-ancestor", old, new).status == 0


def _short(ref: str) -> str:
    if ref == "refs/stash":
        return "the stash"
    if ref.startswith("refs/heads/"):
        return f"the branch {ref.removeprefix('refs/heads/')}"
    return ref if ref.startswith("refs/") else f"the commit {ref[:12]}" if ref else "no commit"


# ---- and back


def put_back(root: str, before: State, aside: str) -> list[str]:
    """What could not be undone, in words. `aside`: a folder for the versions that are taken away."""
    own, common = before["where"]
    if not os.path.isdir(own) or not os.path.isdir(common):
        return ["git's files were left as they are"]
    left = _put_files_back(Repository(root, own, common), before, aside)
    os.makedirs(f"{common}/refs", exist_ok=True)  # without it there is no repository
    _put_head_file_back(root, before, aside)
    repository = repository_of(root)
    if repository is None or [repository.own, repository.common] != before["where"]:
        return [*left, "git looks for its files elsewhere"]
    now = snapshot(root)
    if now is None:
        return left
    changed = [name for name, _ in _changed_refs(root, before, now)]
    left += _put_refs_back(root, before, now, [name for name in changed if name in before["refs"]])
    if _moved_head(before, now):
        left += _put_head_back(root, before)
    left += _put_refs_back(root, before, now, [name for name in changed if name not in before["refs"]])
    if before.get("ignored") != now.get("ignored"):
        left.append("your own list of ignored files was left as it is")
    left += [f"the work tree '{name}' is gone" for name in before["trees"] if name not in now["trees"]]
    return left


def _put_files_back(repository: Repository, before: State, aside: str) -> list[str]:
    left, found = [], _files(repository)
    for name in sorted({**before["files"], **found}):
        was, is_now = before["files"].get(name), found.get(name)
        if was == is_now:
            continue
        if was is not None and was.startswith("\0"):
            left.append(f".git/{name} was left as it is")
            continue
        folder = repository.own if name.startswith("own:") else repository.common
        path = f"{folder}/{name.removeprefix('own:')}"
        if is_now is not None:
            _move_aside(path, aside, name.replace("own:", "own/"))
        if was is not None:
            _write(path, was)
    return left


def _move_aside(path: str, aside: str, name: str) -> None:
    target, number = f"{aside}/{name}", 2
    while os.path.lexists(target):
        target, number = f"{aside}/{name}.{number}", number + 1
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(path, target)


def _write(path: str, text: str) -> None:
    """Renamed into place: git must never see half of its settings."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = 0o777 if text[:1] == "x" else 0o666
    file = os.open(f"{path}.tenuto", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        posix.write(file, text[1:].encode("latin-1"))
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(f"{path}.tenuto", path)


def _put_refs_back(root: str, before: State, now: State, names: list[str]) -> list[str]:
    left = []
    for name in names:
        was, new = before["refs"].get(name, ""), now["refs"].get(name, "")
        if new and name != "refs/stash":
            git.ask(root, "update-ref", f"{DISPLACED}/{name.removeprefix('refs/')}/{new[:12]}", new)
        words = ("update-ref", name, was, new or "0" * len(was)) if was else ("update-ref", "-d", name, new)
        if name == "refs/stash" or git.ask(root, *words).status != 0:
            left.append(f"{_short(name)} was left as it is")
    return left


def _put_head_file_back(root: str, before: State, aside: str) -> None:
    """Without it, or with one that says nothing to git, there is no repository at all."""
    path = f"{before['where'][0]}/HEAD"
    if os.path.isfile(path) and git.ask(root, "rev-parse", "--git-dir").status == 0:
        return
    if os.path.lexists(path):
        _move_aside(path, aside, "HEAD")
    _write(path, f"-{'' if _is_detached(before) else 'ref: '}{before['head']}\n")


def _put_head_back(root: str, before: State) -> list[str]:
    """By git's own switch, which keeps what is not committed; where it will not, only HEAD moves, and every file
    stays."""
    branch = before["head"].removeprefix("refs/heads/")
    to_branch = before["head"].startswith("refs/heads/")
    switch = ("switch", "--quiet", branch) if to_branch else ("switch", "--quiet", "--detach", before["head"])
    if before["commit"] and git.ask(root, *switch).status == 0:
        return []
    moved = (
        ("symbolic-ref", "HEAD", before["head"]) if to_branch else ("update-ref", "--no-deref", "HEAD", before["head"])
    )
    return [] if git.ask(root, *moved).status == 0 else ["HEAD was left where it is"]
