"""Git, called as a program. The one module of the drivers that starts it.

Rules: no hook, no signature, no pager, no prompt: whatever a user or an agent configured, a call of ours neither waits for
anybody nor runs what an agent left behind. Variables of an outer git (GIT_DIR, ...) never reach it. What we
commit is on the disk before the journal hears of it.
"""

from __future__ import annotations

import os
import subprocess

from tenuto.drivers import git_locks
from tenuto.encoding import digest
from tenuto.errors import Refused
from tenuto.files.places import LARGEST

_ALWAYS = (
    "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "core.quotePath=false", "-c", "gc.auto=0",
    "-c", "core.fsync=committed,index,reference", "-c", "advice.detachedHead=false", "-c", "merge.renames=true",
)  # fmt: skip
# Who the user is, and where their settings lie; nothing that says which repository.
_KNOWN = (
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
Photograph = dict[str, str]


class Told:
    __slots__ = ("errors", "out", "status")

    def __init__(self, status: int, out: bytes, errors: bytes) -> None:
        self.status = status
        self.out = out.decode("utf-8", "surrogateescape")
        self.errors = errors.decode("utf-8", "replace").strip()


def ask(root: str, *words: str, given: str = "") -> Told:
    """Run it, whatever comes of it. Where another git's lock was in the way, once more when that is gone."""
    told = ask_together(root, words, given=given)[0]
    lock = git_locks.named(told.errors) if told.status != 0 else ""
    if lock:
        own = ask_together(root, ("rev-parse", "--path-format=absolute", "--git-common-dir"))[0]
        if own.status == 0 and git_locks.is_gone(lock, own.out.rstrip("\n")):
            return ask_together(root, words, given=given)[0]
    return told


def ask_together(root: str, *questions: tuple[str, ...], given: str = "") -> list[Told]:
    """Several that change nothing, at the same time: most of what a short one takes is its start."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KNOWN}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "GIT_EDITOR": "true", "LC_ALL": "C"}
    pipe = subprocess.PIPE
    begun: list[subprocess.Popen[bytes]] = []
    try:
        for words in questions:
            begun.append(
                subprocess.Popen(
                    ["git", *_ALWAYS, *words], cwd=root, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
                )
            )
    except OSError as error:
        for process in begun:
            process.communicate()
        return [Told(127, b"", str(error).encode()) for _ in questions]
    answers = [process.communicate(given.encode("utf-8", "surrogateescape")) for process in begun]
    return [Told(process.returncode, *answer) for process, answer in zip(begun, answers, strict=True)]


def tell(root: str, *words: str, given: str = "") -> str:
    """Run it, and have it succeed."""
    told = ask(root, *words, given=given)
    if told.status != 0:
        said = told.errors or told.out.strip() or f"exit status {told.status}"
        raise Refused("git-failed", f"git {words[0]} failed in {root}: {said}", "correct that, and run again")
    return told.out


def head(root: str) -> str:
    """The commit a work tree stands on; "" without git or before the first commit."""
    told = ask(root, "rev-parse", "--verify", "--quiet", "HEAD")
    return told.out.strip() if told.status == 0 else ""


def branch(root: str) -> str:
    """Its branch; "" where there is none (detached, no git)."""
    told = ask(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return told.out.strip() if told.status == 0 else ""


def exists(root: str, ref: str) -> bool:
    return ask(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").status == 0


def author(root: str) -> list[str]:
    """Options that name one, where the user has named nobody."""
    if ask(root, "var", "GIT_COMMITTER_IDENT").status == 0 and ask(root, "var", "GIT_AUTHOR_IDENT").status == 0:
        return []
    return ["-c", "user.name=Tenuto", "-c", "user.email=tenuto@localhost"]


def photograph(root: str, base: str = "") -> Photograph | None:
    """Every file that differs from `base` (what the tree stands on otherwise), with a hash of what it holds; None without git.

    Against a commit, not against HEAD: an agent that commits what it did has still done it. Ignored files are not seen.
    """
    known = base or head(root)
    changed = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", known) if known else ("ls-files", "-z")
    tracked, others = ask_together(root, changed, ("ls-files", "--others", "--exclude-standard", "-z"))
    if tracked.status != 0 or others.status != 0:
        return None
    names = [name for told in (tracked, others) for name in told.out.split("\0") if name]
    return {name: _hash(os.path.join(root, name)) for name in dict.fromkeys(names)}


def in_words(path: str) -> str:
    """For people and for the journal: a name that is no text (bytes that are no UTF-8) is told as one."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def differences(before: Photograph, after: Photograph) -> list[str]:
    return sorted(path for path in {**before, **after} if before.get(path) != after.get(path))


def commit(root: str, paths: list[str], message: str, base: str = "") -> bool:
    """These paths as they are, on top of `base` (HEAD), and nothing else that may be staged; False where that changes nothing.
    What is too large to be kept stays where it is."""
    paths = [path for path in paths if size(os.path.join(root, path)) <= LARGEST]
    tell(root, "reset", "--quiet", *([base] if base else []))
    gone = [path for path in paths if not os.path.lexists(os.path.join(root, path))]
    known = tell(root, "--literal-pathspecs", "ls-files", "-z", "--", *gone).split("\0") if gone else []
    wanted = [path for path in paths if path not in gone or path in known]
    if wanted:
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        tell(root, "--literal-pathspecs", "add", "--all", "--force", *listed, given="\0".join(wanted))
    if ask(root, "diff", "--cached", "--quiet").status == 0:
        return False
    tell(root, *author(root), "commit", "--quiet", "--no-verify", "-m", message)
    return True


def trailers(root: str, since: str, key: str) -> dict[str, str]:
    """What the commits made since say under this key, with the commit: only the branch's own, not what was merged into it."""
    asked = f"--format=%H%x00%(trailers:key={key},valueonly,unfold)%x01"
    told = ask(root, "log", "--first-parent", asked, f"{since}..HEAD" if since else "HEAD")
    found: dict[str, str] = {}
    for entry in told.out.split("\x01"):
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
        with open(path, "rb") as file:
            return digest(file.read())
    except OSError:
        return ""
