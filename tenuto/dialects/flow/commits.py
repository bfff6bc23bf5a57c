"""Whether a commit exists, asked of git. Only `update_commit` asks: it is not a command that hooks run all the time."""

from __future__ import annotations

from tenuto.errors import BadInput, Refused

_HEX = frozenset("0123456789abcdefABCDEF")


def check_commit(root: str, commit_hash: str) -> str:
    """The commit's first line. Empty where there is no repository to ask."""
    from os.path import exists

    if not exists(f"{root}/.git"):
        return ""
    if not 4 <= len(commit_hash) <= 64 or not _HEX.issuperset(commit_hash):
        raise BadInput("bad-hash", f"{commit_hash!r} is not a commit's hash", "git rev-parse HEAD")
    import subprocess

    words = ["git", "-C", root, "log", "-1", "--format=%s", "--no-show-signature", f"{commit_hash}^{{commit}}", "--"]
    try:
        asked = subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused("git-failed", f"git could not be asked about {commit_hash}: {error}", "is git installed?") from None
    if asked.returncode != 0:
        raise Refused(
            "no-such-commit", f"there is no commit {commit_hash} in this repository", "git log --oneline", hash=commit_hash
        )
    return asked.stdout.decode("utf-8", "replace").strip()
