"""Git, called as a program. No other module starts it for a run's work.

Rules: no hook, no filter, no driver, no signature, no pager, no prompt: whatever a repository, a user or an agent
configured, a call of Tenuto's neither waits for a person nor runs what an agent left behind (git_start.py says how).
Variables of an outer git (GIT_DIR, ...) never reach it. What Tenuto commits is on the disk before the journal hears of
it.

A snapshot fails closed: where there is a repository and git does not answer, nobody knows what changed, and that is
refused. Flags of the index (assume-unchanged, skip-worktree) hide nothing, and neither do submodules and repositories
inside the work tree.

A git that is killed leaves its lock file behind (`index.lock`, HEAD.lock, refs/heads/x.lock, ...), and every later git
refuses. A run must go on after that without help. A lock counts as left behind only if

- git names it, and it lies in the repository's own git directory: words in a file's name are not git's word;
- it is a file of this user, and was there before this process began, or has stood there for a while: a git that was
  ended together with its agent leaves one, too;
- no process has it open, and no git works in this repository (an editor of `git commit` may stand open for hours).

Any other lock is waited for a moment: `git status` in another window is done soon.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time

from tenuto.encoding import digest
from tenuto.errors import Refused
from tenuto.files import git_start
from tenuto.files.exchange import LARGEST
from tenuto.files.git_links import git_directory, path_in
from tenuto.files.git_start import NO_REPOSITORY, NOT_STARTED, Answer, repository_of
from tenuto.files.planted import read_plain

__all__ = ["NOT_STARTED", "NO_REPOSITORY", "Answer", "repository_of"]
# ---- lock files that a killed git left behind -----------------------------

_BEGAN = time.time()
_PATIENCE = 15.0  # seconds, for a git that is at work; on a busy machine a short one takes some of them
_WHILE = 2.0  # seconds, after which the process that made it can be seen at work
_PAUSE = 0.1
_TOLD = r"Unable to create '({}[^\n]+?\.lock)': File exists"
_CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f]")


def named(errors: str, *known: str) -> str:
    """The lock file that kept git from its work; "" where it was something else. `known`: folders that it may lie in,
    which git shows with other signs in the place of some."""
    for folder in known:
        shown = f"{_CONTROLS.sub('?', folder.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace'))}/"
        found = re.search(_TOLD.format(re.escape(shown)), errors)
        if found:
            return f"{folder}/{found[1].removeprefix(shown)}"
    found = re.search(_TOLD.format(""), errors)
    return found[1] if found else ""


def is_gone(lock: str, repository: str) -> bool:
    """May git be asked again? After a wait for the process that holds the lock, or after its removal where none
    does."""
    lock = os.path.realpath(os.path.dirname(lock)) + "/" + os.path.basename(lock)
    if not lock.startswith(os.path.realpath(repository) + "/"):
        return False
    until = time.monotonic() + _PATIENCE
    while os.path.lexists(lock):
        if _is_left_behind(lock, repository):
            os.unlink(lock)
        elif time.monotonic() > until:
            return False
        else:
            time.sleep(_PAUSE)
    return True


def _is_left_behind(lock: str, repository: str) -> bool:
    try:
        found = os.lstat(lock)
    except OSError:
        return False
    own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    now = time.time()  # a lock that is yet to come is from before the clock was set back
    old = found.st_mtime < max(_BEGAN, now - _WHILE) or found.st_mtime > now + _WHILE
    return (
        own and old and os.path.isdir("/proc/self/fd") and not any(_holds(pid, lock, repository) for pid in _others())
    )


def _others() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _holds(pid: str, lock: str, repository: str) -> bool:
    """Has this process the lock open, or is it a git in this repository? One that we may not look into is another
    user's."""
    folder = f"/proc/{pid}"
    try:
        if any(_leads_to(f"{folder}/fd/{number}") == lock for number in os.listdir(f"{folder}/fd")):
            return True
        with open(f"{folder}/comm", "rb") as file:
            is_git = file.read().startswith(b"git")
        return is_git and _is_within(_leads_to(f"{folder}/cwd"), repository)
    except OSError:  # it has ended
        return False


def _is_within(place: str, repository: str) -> bool:
    """In the git directory, or in a tree that belongs to it: its own, or one of its work trees."""
    roots = [os.path.dirname(os.path.realpath(repository)), os.path.realpath(repository)]
    trees = f"{repository}/worktrees"
    for name in os.listdir(trees) if os.path.isdir(trees) else []:
        lies = path_in(f"{trees}/{name}/gitdir")
        if lies:
            roots.append(os.path.realpath(os.path.dirname(os.path.join(trees, name, lies))))
    return any(place == root or place.startswith(root + "/") for root in roots)


def _leads_to(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


# ---- calls of git ---------------------------------------------------------


Snapshot = dict[str, str]


def ask(root: str, *words: str, given: str = "", seconds: float | None = None) -> Answer:
    """Run it, whatever comes of it. Where another git's lock was in the way, once more when that is gone."""
    answer = git_start.start(root, words, given=given, seconds=seconds)[0]
    repository = repository_of(root) if answer.status != 0 else None
    lock = named(answer.errors, repository.own, repository.common) if repository else ""
    if repository and lock and is_gone(lock, repository.common):
        return git_start.start(root, words, given=given, seconds=seconds)[0]
    return answer


def transfer(root: str, *words: str, seconds: float) -> Answer:
    """Fetch or push, to or from a repository that is named in full: the only calls that leave this one."""
    return git_start.start(root, words, seconds=seconds, transfers=True)[0]


def tell(root: str, *words: str, given: str = "") -> str:
    """Run it, and have it succeed."""
    answer = ask(root, *words, given=given)
    if answer.status != 0:
        reason = answer.errors or answer.out.strip() or f"exit status {answer.status}"
        raise Refused("git-failed", f"git {words[0]} failed in {root}: {reason}", "correct that, and run again")
    return answer.out


def add_tree(root: str, path: str, *where: str) -> None:
    """A new work tree. `where`: what it stands on, as `git worktree add` is told it, options first."""
    repository = repository_of(root)
    assert repository is not None
    # Git makes this folder with the first work tree, and would make it in the stand-in.
    os.makedirs(f"{repository.common}/worktrees", exist_ok=True)
    options, commit = where[:-1], where[-1]
    tell(root, "worktree", "add", "--quiet", *options, path, commit)
    settle_tree(root, path)


def settle_tree(root: str, path: str) -> None:
    """Git notes where it found its own files when the tree was made: in the stand-in, which goes with this process. The
    tree shall know the place itself. One that is no work tree of this repository is left as it is."""
    repository = repository_of(root)
    noted = git_directory(path)
    real = f"{repository.common}/worktrees/{os.path.basename(noted)}" if repository and noted else ""
    back = path_in(f"{real}/gitdir") if real else ""
    if back and noted != real and os.path.realpath(os.path.join(real, back)) == os.path.realpath(f"{path}/.git"):
        beside = f"{path}/.git.tenuto-{os.getpid()}"
        with open(beside, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"gitdir: {real}\n")
        os.replace(beside, f"{path}/.git")


def make_repository(root: str, message: str) -> None:
    """A new one in this folder, with all that lies there in its first commit."""
    answer = git_start.make_repository(root)
    if answer.status != 0:
        raise Refused("git-failed", f"git made no repository in {root}: {answer.errors}", "tenuto doctor")
    tell(root, "add", "--all")
    tell(root, *author(root), "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message)


def head(root: str) -> str:
    """The commit a work tree stands on; "" without git or before the first commit."""
    answer = ask(root, "rev-parse", "--verify", "--quiet", "HEAD")
    return answer.out.strip() if answer.status == 0 else ""


def branch(root: str) -> str:
    """Its branch; "" where there is none (detached, no git)."""
    answer = ask(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return answer.out.strip() if answer.status == 0 else ""


def exists(root: str, ref: str) -> bool:
    return ask(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").status == 0


def author(root: str) -> list[str]:
    """Options that name one, where the user has named none."""
    if ask(root, "var", "GIT_COMMITTER_IDENT").status == 0 and ask(root, "var", "GIT_AUTHOR_IDENT").status == 0:
        return []
    return ["-c", "user.name=Tenuto", "-c", "user.email=tenuto@localhost"]


def snapshot(root: str, base: str = "") -> Snapshot | None:
    """Every file that differs from `base` (what the tree stands on otherwise), with a hash of what it holds; None
    without git. Refused where there is a repository and git does not answer: nobody knows what changed.

    Against a commit, not against HEAD: an agent that commits what it did has still done it. Ignored files are not seen.
    """
    if repository_of(root) is None:
        return None
    known = base or head(root)
    changed = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", known) if known else ("ls-files", "-z")
    asked = (changed, ("ls-files", "--others", "--exclude-standard", "-z"), ("ls-files", "--stage", "-v", "-z"))
    answers = git_start.start(root, *asked)
    for answer in answers:
        _refuse_silence(root, answer)
    entries = _entries(answers[2])
    with _SeeingIndex(root, [path for tag, _, path in entries if tag in _HIDDEN]) as index:
        if index:
            answers[0] = git_start.start(root, changed, index=index)[0]
            _refuse_silence(root, answers[0])
    names = list(dict.fromkeys(name for answer in answers[:2] for name in answer.out.split("\0") if name))
    found = {name: _hash(os.path.join(root, name)) for name in names}
    inner = [path for _, mode, path in entries if mode == _SUBMODULE] + [name for name in names if name.endswith("/")]
    for path in inner:
        found |= _inside(root, path.rstrip("/"))
    return found


_HIDDEN = ("h", "S", "s")  # what `git ls-files -v` calls entries that git was told not to look at
_SUBMODULE = "160000"


def _entries(answer: Answer) -> list[tuple[str, str, str]]:
    """Of the index: tag, mode and path."""
    lines = [line.partition("\t") for line in answer.out.split("\0") if line]
    return [(about[0], about[2:8], path) for about, _, path in lines]


def _refuse_silence(root: str, answer: Answer) -> None:
    if answer.status != 0:
        message = f"git does not say what changed in {root}: {answer.errors or f'exit status {answer.status}'}"
        raise Refused("git-failed", message, "correct that, and run again")


def _inside(root: str, path: str) -> Snapshot:
    """Of a submodule, or of a repository that lies in the work tree."""
    folder = os.path.join(root, path)
    inner = repository_of(folder) if os.path.isdir(folder) and not os.path.islink(folder) else None
    if inner is None or inner.tree != os.path.realpath(folder):
        return {}
    found = {f"{path}/{name}": sha for name, sha in (snapshot(folder) or {}).items()}
    return {f"{path}/": head(folder), **found}


class _SeeingIndex:
    """A copy of the index in which nothing is hidden; "" where nothing is hidden in the index itself. What a sparse
    checkout leaves out is not there, and is no change."""

    def __init__(self, root: str, hidden: list[str]) -> None:
        self.root, self.hidden, self.folder = root, hidden, ""

    def __enter__(self) -> str:
        sparse = (
            ask(self.root, "config", "--bool", "core.sparseCheckout").out.strip() == "true" if self.hidden else False
        )
        shown = [path for path in self.hidden if not sparse or os.path.lexists(os.path.join(self.root, path))]
        repository = repository_of(self.root)
        if not shown or repository is None:
            return ""
        self.folder = tempfile.mkdtemp(prefix="tenuto-index-")
        index = f"{self.folder}/index"
        shutil.copyfile(f"{repository.own}/index", index)
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            words = ("update-index", flag, "-z", "--stdin")
            _refuse_silence(self.root, git_start.start(self.root, words, given="\0".join(shown) + "\0", index=index)[0])
        return index

    def __exit__(self, *error: object) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def in_words(path: str) -> str:
    """For people and for the journal: a name that is no text (bytes that are no UTF-8) is spelled as one."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    return sorted(path for path in {**before, **after} if before.get(path) != after.get(path))


def commit(root: str, paths: list[str], message: str, base: str = "") -> bool:
    """These paths as they are, on top of `base` (HEAD), and nothing else that may be staged; False where that
    changes nothing. What is too large to be kept stays where it is."""
    paths = [path for path in paths if size(os.path.join(root, path)) <= LARGEST and not is_inside_another(root, path)]
    refuse_filters(root, paths)
    tell(root, "reset", "--quiet", *([base] if base else []))
    gone = [path for path in paths if not os.path.lexists(os.path.join(root, path))]
    known = tell(root, "--literal-pathspecs", "ls-files", "-z", "--", *gone).split("\0") if gone else []
    wanted = [path for path in paths if path not in gone or path in known]
    if wanted:
        _show(root, wanted)
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        tell(root, "--literal-pathspecs", "add", "--all", "--force", *listed, given="\0".join(wanted))
    if ask(root, "diff", "--cached", "--quiet").status == 0:
        return False
    tell(root, *author(root), "commit", "--quiet", "--no-verify", "-m", message)
    return True


def is_inside_another(root: str, path: str) -> bool:
    """In a submodule, or in a repository that lies in the work tree: only git there can commit it."""
    folder = os.path.dirname(path.rstrip("/"))
    while folder:
        if os.path.lexists(f"{root}/{folder}/.git"):
            return True
        folder = os.path.dirname(folder)
    return path.endswith("/")


def _show(root: str, paths: list[str]) -> None:
    """Git commits nothing that it was told not to look at."""
    listed = ask(root, "--literal-pathspecs", "ls-files", "-v", "-z", "--", *paths) if len(paths) < 1000 else None
    listed = listed or ask(root, "ls-files", "-v", "-z")
    flagged = [line[2:] for line in listed.out.split("\0") if line[:1] in _HIDDEN and line]
    hidden = [path for path in flagged if path in set(paths)]
    for flag in ("--no-assume-unchanged", "--no-skip-worktree") if hidden else ():
        tell(root, "update-index", flag, "-z", "--stdin", given="\0".join(hidden) + "\0")


def restore(root: str, paths: list[str]) -> None:
    """As the commit has them that the tree stands on, in the index, too; the ones that it does not have leave the
    index."""
    refuse_filters(root, paths)
    _show(root, paths)
    given = "\0".join(paths)
    words = ("restore", "--source=HEAD", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
    tell(root, "--literal-pathspecs", *words, given=given)


def kept(root: str, paths: list[str]) -> set[str]:
    """Those that the commit has that the tree stands on."""
    listed = tell(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD") if head(root) else ""
    return set(listed.split("\0")) & set(paths)


def refuse_filters(root: str, paths: list[str] | None = None) -> None:
    """What a filter should have changed is neither committed nor checked out without it. `paths`: None for every
    file that git keeps."""
    if paths is None:
        kept = tell(root, "ls-files", "-z", "--", ".gitattributes", "**/.gitattributes").split("\0")
        if not any(b"filter" in _bytes(os.path.join(root, name)) for name in kept if name):
            return
        paths = tell(root, "ls-files", "-z").split("\0")
    asked = "\0".join(path for path in paths if path and not path.endswith("/"))
    answer = ask(root, "check-attr", "-z", "--stdin", "filter", given=asked + "\0") if asked else None
    fields = answer.out.split("\0") if answer else []
    for path, name in zip(fields[::3], fields[2::3], strict=False):
        if name not in ("unspecified", "unset", "set", "") and not git_start.is_allowed(root, name):
            message = (
                f"{in_words(path)} goes through git's filter '{name}', which Tenuto does not run unless you say so"
            )
            hint = f"write it down in {git_start.filters_file()} (docs/howto/protect-gates.md)"
            raise Refused("filter-not-allowed", message, hint, filter=name)


def _bytes(path: str) -> bytes:
    return read_plain(path, 1 << 20) or b""


def trailers(root: str, since: str, key: str) -> dict[str, str]:
    """What the commits made since say under this key, with the commit: only the branch's own, not what was merged
    into it."""
    asked = f"--format=%H%x00%(trailers:key={key},valueonly,unfold)%x01"
    answer = ask(root, "log", "--first-parent", asked, f"{since}..HEAD" if since else "HEAD")
    found: dict[str, str] = {}
    for entry in answer.out.split("\x01"):
        sha, _, value = entry.strip().partition("\0")
        if value.strip():
            found[value.strip()] = sha
    return found


def size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _hash(path: str) -> str:
    try:
        if os.path.islink(path):
            return digest(os.fsencode(os.readlink(path)))
        if size(path) > LARGEST:
            return f"{size(path)} bytes, written {os.stat(path).st_mtime_ns}"  # to read it all would take for ever
        body = read_plain(path)
    except OSError:
        return ""
    return "" if body is None else digest(body)
