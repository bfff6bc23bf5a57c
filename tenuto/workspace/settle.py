"""Make a repository ready: the journal, and .tenuto/ for the user's own pipelines and roles.

Nothing that is there is changed, so that it may be called again at any time.
"""

from __future__ import annotations

import os

from tenuto.files.places import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.files.places import Place
    from tenuto.workspace.turn import Workspace

_CONFIG = """\
# Tenuto in this repository. Everything here is optional; commit what you change.
#
#   pipelines/NAME.yaml   a pipeline of your own, or your version of one that ships with Tenuto
#   roles/NAME.md         the prompt of a role, in place of the one that ships with Tenuto
#
# Where is the journal?  tenuto init      Is all well?  tenuto doctor
#
# Who does the work (auto: what is installed; claude, codex, acp:gemini, command:./my-agent), who else for one role, and who
# takes over from an agent that has reached its usage limit:
#agent: auto
#roles: {designer: "claude:model=opus"}
#fallback: {claude: codex}
# Your project's own checks, run again by the engine where a pipeline says so:
#checks: {build: make, tests: make test}
# Variables that agents get besides the short list that they always get:
#environment: [MY_API_URL]
# Called when a run waits for somebody, fails or finishes:
#notify: {command: ./tell-me}
# How far a gate is protected: guarded, signed or isolated.
#gates: guarded
"""
_IGNORED = """\
# The journal and what lies beside it belong to this copy, not to the repository.
/*
!/.gitignore
!/config.yaml
!/pipelines/
!/roles/
!/signers
"""


def settle(workspace: Workspace) -> list[str]:
    """What was made: paths below the repository, and "journal". Refused, before anything is made, where .tenuto is a link: a repository
    that somebody else made could lead out of itself that way.
    """
    made = [] if os.path.exists(workspace.state + "/journal.db") else ["journal"]
    there = place(workspace.root, ".tenuto/config.yaml", create=False)
    if there is not None:
        with there:
            pass
    with workspace.journal.read():
        pass  # it is made where there is none, and refused where it is a newer Tenuto's
    files = {".tenuto/config.yaml": _CONFIG}
    if os.path.realpath(workspace.root + "/.tenuto") == os.path.realpath(workspace.state):
        files[".tenuto/.gitignore"] = _IGNORED
    for path, text in files.items():
        spot: Any = place(workspace.root, path)
        with spot:
            if _write(spot, text):
                made.append(path)
    return made


def _write(spot: Place, text: str) -> bool:
    """Whole or not at all: half a file would be found there the next time, and left as it is."""
    try:
        file = os.open(spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=spot.fd)
    except FileExistsError:
        return False
    try:
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    except BaseException:
        os.unlink(spot.name, dir_fd=spot.fd)
        raise
    return True
