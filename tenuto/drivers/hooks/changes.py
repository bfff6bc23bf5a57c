"""Which files have changes that are not committed: asked of git, where there is one, with an end to its patience."""

from __future__ import annotations

GUARD = "TENUTO_HOOK"
"""Set for everything that a hook starts: a hook that finds it set was called by a hook, and does nothing."""

_SECONDS = 5


def changed_files(root: str, most: int = 20) -> list[str]:
    from os import environ
    from subprocess import DEVNULL, SubprocessError, run

    command = ["git", "-C", root, "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all"]
    try:
        done = run(
            command, check=False, capture_output=True, stdin=DEVNULL, timeout=_SECONDS, env={**environ, GUARD: "1"}
        )
    except (OSError, SubprocessError):
        return []
    if done.returncode:
        return []
    found: list[str] = []
    entries = iter(done.stdout.decode("utf-8", "replace").split("\0"))
    for entry in entries:
        if len(entry) > 3:
            found.append(entry[3:])
            if "R" in entry[:2] or "C" in entry[:2]:
                next(entries, "")  # the name it had before
    return [path for path in found if path != ".feature-state.json"][:most]
