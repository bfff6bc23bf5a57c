"""Code between machines, by git and nothing else: the origin that a team has already, or any bare repository.

    origin_of(root)                    where code goes through: the remote `origin`
    inputs_of(root, paths, message)    a commit on top of HEAD that also has these documents
    send(root, origin, commit, ref)    to the origin, under a ref that is nobody's branch
    take(root, origin, ref, commit)    from there
    Mirror(folder, origin)             a worker's own copy: every commit is fetched once, every attempt gets a tree

Refs of ours lie below refs/tenuto/: no branch of anybody's is touched, and no clone fetches them unasked. A commit is
named by its hash wherever it counts: a ref only says where it can be had, so moving one changes nothing.

Submodules and files behind filters (git-lfs) are refused by name: a worker would have their place holders.
"""

from __future__ import annotations

import os
import shutil
import threading
from tempfile import mkdtemp

from tenuto.errors import Refused, TenutoError
from tenuto.files import git, git_start
from tenuto.supervise.records import FileLock, make_directory

REFS = "refs/tenuto"
_SECONDS = 600.0  # that one transfer may take
_SUBMODULE = "160000"


def origin_of(root: str) -> str:
    answer = git.ask(root, "config", "--get", "remote.origin.url")
    url = answer.out.strip()
    if not url:
        message = "code goes to other machines through the remote `origin`, and there is none"
        raise Refused("no-origin", message, "git remote add origin URL; a bare repository in a shared folder will do")
    if "://" not in url and (":" not in url.partition("/")[0]):
        url = os.path.normpath(os.path.join(root, url))
    return url


def refuse_what_does_not_travel(root: str) -> None:
    listed = git.tell(root, "ls-files", "--stage", "-z").split("\0")
    inner = [line.partition("\t")[2] for line in listed if line.startswith(f"{_SUBMODULE} ")]
    if inner:
        message = f"submodules do not travel to workers: {', '.join(inner[:5])}"
        raise Refused("submodules", message, "run it on this machine, or fetch them in `setup: run`")
    git.refuse_filters(root)


def inputs_of(root: str, paths: list[str], message: str) -> str:
    """HEAD itself where no document differs from it. Nothing in the work tree or its index is changed."""
    head = git.head(root)
    folder = mkdtemp(prefix="tenuto-index-")
    try:
        index = f"{folder}/index"
        _with_index(root, index, "read-tree", head)
        git.refuse_filters(root, paths)
        if paths:
            _with_index(root, index, "update-index", "--add", "-z", "--stdin", given="\0".join(paths) + "\0")
        tree = _with_index(root, index, "write-tree").strip()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if tree == git.tell(root, "rev-parse", f"{head}^{{tree}}").strip():
        return head
    return git.tell(root, *git.author(root), "commit-tree", tree, "-p", head, "-m", message).strip()


def _with_index(root: str, index: str, *words: str, given: str = "") -> str:
    answer = git_start.start(root, words, given=given, index=index)[0]
    if answer.status != 0:
        raise Refused("git-failed", f"git {words[0]} failed in {root}: {answer.errors}", "correct that, and run again")
    return answer.out


def send(root: str, origin: str, *pairs: tuple[str, str]) -> None:
    """Commits under refs; one that is "" takes the ref away. Repeating it changes nothing."""
    words = [f"{commit}:{ref}" for commit, ref in pairs]
    answer = git.transfer(root, "push", "--quiet", "--no-verify", "--force", origin, *words, seconds=_SECONDS)
    if answer.status != 0:
        raise _unreachable(origin, "push", answer)


def take(root: str, origin: str, ref: str, commit: str) -> None:
    """The commit is here afterwards, or TenutoError."""
    if is_here(root, commit):
        return
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", origin)
    answer = git.transfer(root, *fetch, ref, seconds=_SECONDS)
    if not is_here(root, commit):
        # The ref was moved: many servers give out a commit by its hash as well.
        answer = git.transfer(root, *fetch, commit, seconds=_SECONDS)
    if not is_here(root, commit):
        raise _unreachable(origin, "fetch", answer)


def fetched(root: str, origin: str, ref: str) -> str:
    """The commit that lies there, which is here afterwards; "" where there is none."""
    listed = git.transfer(root, "ls-remote", origin, ref, seconds=_SECONDS)
    if listed.status != 0:
        raise _unreachable(origin, "ls-remote", listed)
    commit = listed.out.partition("\t")[0].strip()
    if commit:
        take(root, origin, ref, commit)
    return commit


def is_here(root: str, commit: str) -> bool:
    return bool(commit) and git.exists(root, commit)


def _unreachable(origin: str, verb: str, answer: git.Answer) -> TenutoError:
    why = answer.errors or answer.out.strip() or f"exit status {answer.status}"
    return TenutoError("origin-away", f"git {verb} with {origin} failed: {why}", "git ls-remote there, by hand")


def changed_in(root: str, inputs: str, commit: str) -> list[str]:
    """Every path that a result changes; refused where it does not stand on its inputs."""
    parents = git.tell(root, "rev-list", "--parents", "--max-count=1", commit).split()[1:]
    if parents != [inputs]:
        raise Refused("other-inputs", f"{commit[:12]} was not made from {inputs[:12]}", "look at it with git log")
    listed = git.tell(root, "diff-tree", "-r", "-z", "--no-renames", "--raw", inputs, commit).split("\0")
    modes, paths = listed[:-1:2], listed[1::2]
    odd = [path for about, path in zip(modes, paths, strict=True) if about.split(" ")[1] == _SUBMODULE]
    if odd:
        raise Refused("submodules", f"a result has a repository in it: {odd[0]}", "look at it with git log")
    outside = [path for path in paths if path.startswith("/") or {"", ".", "..", ".git"} & set(path.lower().split("/"))]
    if outside:
        raise Refused("bad-path", f"a result has a file where none may be: {git.in_words(outside[0])}", "git log")
    return paths


def lay_out(root: str, tree: str, inputs: str, commit: str) -> None:
    """In a work tree that stands on the base of the inputs: what the result changed, and nothing else of it."""
    git.refuse_filters(root)
    paths = changed_in(root, inputs, commit)
    listed = git.tell(root, "--literal-pathspecs", "ls-tree", "-z", "--name-only", "-r", "--full-tree", commit)
    there = set(listed.split("\0"))
    kept, gone = [path for path in paths if path in there], [path for path in paths if path not in there]
    if kept:
        words = ("checkout", "--quiet", "--no-overlay", commit, "--pathspec-from-file=-", "--pathspec-file-nul")
        git.tell(tree, "--literal-pathspecs", *words, given="\0".join(kept))
    for path in gone:
        if os.path.lexists(f"{tree}/{path}"):
            os.unlink(f"{tree}/{path}")
    git.tell(tree, "reset", "--quiet")


class Mirror:
    """What a worker has of one origin: every commit comes once. Each attempt has a repository of its own, which borrows
    its objects: attempts beside each other share no ref, no setting and no index."""

    _in_this_process = threading.RLock()

    def __init__(self, folder: str, origin: str) -> None:
        self.root = folder
        self.origin = origin

    def tree(self, path: str, ref: str, commit: str) -> None:
        """A work tree at this commit. One that is there already is left as it is."""
        if os.path.isdir(path):
            return
        with self._in_this_process, self._alone():
            take(self.root, self.origin, ref, commit)
        making = f"{path}.making"
        shutil.rmtree(making, ignore_errors=True)
        _make_repository(making)
        make_directory(f"{making}/.git/objects/info")
        with open(f"{making}/.git/objects/info/alternates", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{os.path.realpath(self.root)}/.git/objects\n")
        git.tell(making, "symbolic-ref", "HEAD", "refs/heads/attempt")
        git.tell(making, "update-ref", "refs/heads/attempt", commit)
        git.tell(making, "read-tree", "HEAD")
        git.refuse_filters(making)
        git.tell(making, "reset", "--quiet", "--hard")
        os.rename(making, path)

    @staticmethod
    def owns(path: str) -> bool:
        """It still is a repository of its own: no command of ours acts on another one."""
        found = git_start.repository_of(path)
        own = f"{os.path.realpath(path)}/.git"
        return found is not None and not os.path.islink(own) and (found.own, found.common) == (own, own)

    def _alone(self) -> FileLock:
        if not os.path.isdir(f"{self.root}/.git"):
            make_directory(self.root)
            _make_repository(self.root)
        return FileLock(f"{self.root}/.git/tenuto-mirror.lock")


def _make_repository(root: str) -> None:
    make_directory(root)
    answer = git_start.make_repository(root)
    if answer.status != 0:
        raise TenutoError("git-failed", f"git made no repository in {root}: {answer.errors}")
