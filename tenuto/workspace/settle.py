"""Make a repository ready: the journal, and .tenuto/ for the user's own pipelines and roles.

Nothing that is there is changed, so that it may be called again at any time.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """What was made: paths below the repository, and "journal"."""
    made = []
    if not os.path.exists(workspace.state + "/journal.db"):
        made.append("journal")
    with workspace.journal.read():
        pass  # it is made where there is none, and refused where it is a newer Tenuto's
    own = workspace.root + "/.tenuto"
    os.makedirs(own, exist_ok=True)
    files = {"config.yaml": _CONFIG}
    if os.path.realpath(own) == os.path.realpath(workspace.state):
        files[".gitignore"] = _IGNORED
    for name, text in files.items():
        if _write(f"{own}/{name}", text):
            made.append(f".tenuto/{name}")
    return made


def _write(path: str, text: str) -> bool:
    """Whole or not at all: half a file would be found there the next time, and left as it is."""
    try:
        file = open(path, "x", encoding="utf-8")  # noqa: SIM115  # closed below, before it may be removed
    except FileExistsError:
        return False
    try:
        with file:
            file.write(text)
    except BaseException:
        os.unlink(path)
        raise
    return True
