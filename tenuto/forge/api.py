"""Which forge a repository has, and calls of its API through its own program: gh or glab, where you are logged in.

    forge_of(root, settings)            the forge that a remote leads to
    call(forge, root, method, path)     one request; the answer as data
    pages(forge, root, path)            all of a list
    credentials(forge, root)            who knows the credentials for git: the same program

The program is asked for one address of the API, never for anything about the repository: it would start git there, with
settings that an agent can write. So it runs in an empty folder, and is looked for outside the work tree. What it is
given stands on its standard input: nothing of an issue or a run is a word of a command line. No token passes through
here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from shlex import quote
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote as in_path

from tenuto.errors import Refused
from tenuto.files import git_remote
from tenuto.files.git_start import program_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.records.run import Json

Kind = Literal["github", "gitlab"]
PROGRAMS: dict[Kind, str] = {"github": "gh", "gitlab": "glab"}
_SECONDS = 60
_MOST_PAGES = 20
_AT_ONCE = 100
_ADDRESS = re.compile(
    r"(?:(?:https?|ssh)://(?:[^@/\s]+@)?(?P<host>[^/:\s]+)(?::\d+)?/|(?:[^@/\s]+@)?(?P<short>[^/:\s]+):(?!/))"
    r"(?P<path>[^\s?#]+?)(?:\.git)?/?\Z"
)
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GLAB_CHECK_UPDATE": "false", "NO_COLOR": "1"}


class Forge(NamedTuple):
    kind: Kind
    host: str
    path: str  # owner/name; of GitLab also group/group/name
    remote: str  # the remote's name; empty where an address was given
    url: str  # as git pushes to it

    @property
    def project(self) -> str:
        """Where its API keeps this repository."""
        return f"repos/{self.path}" if self.kind == "github" else f"projects/{in_path(self.path, safe='')}"


def forge_of(root: str, remote: str = "", kind: str = "") -> Forge:
    """`kind`: what the settings say, where the name of the host does not."""
    known = git_remote.remotes(root)
    name = remote or ("origin" if "origin" in known else next(iter(known), ""))
    if name not in known:
        message = f"there is no remote {name!r}" if name else "this repository has no remote"
        raise Refused("no-remote", message, "git remote add origin ADDRESS")
    host, path = address(known[name])
    return Forge(kind_of(host, kind), host, path, name, known[name])


def address(url: str) -> tuple[str, str]:
    """Host and path of what git pushes to."""
    found = _ADDRESS.match(url)
    if found is None:
        raise Refused("no-forge", f"{url} leads to no forge", "an address of GitHub or GitLab as remote")
    return found["host"] or found["short"], found["path"]


def kind_of(host: str, said: str = "") -> Kind:
    named = said.lower() or next((part for part in host.lower().split(".") if part in PROGRAMS), "")
    for kind in PROGRAMS:
        if kind == named:
            return kind
    message = f"whether {host} is GitHub or GitLab cannot be told from its name"
    raise Refused("unknown-forge", message, "pull_request: {forge: gitlab} in .tenuto/config.yaml")


def program(kind: Kind, root: str) -> str:
    name = PROGRAMS[kind]
    found = shutil.which(name, path=os.pathsep.join(program_folders(root)))
    if found is None:
        message = f"{name} is not installed; it knows your login at the forge"
        raise Refused("no-forge-program", message, f"install {name}, then: {name} auth login")
    return found


def credentials(forge: Forge, root: str) -> git_remote.Credentials | None:
    """For https; ssh has its own."""
    if not forge.url.startswith("https://"):
        return None
    return git_remote.Credentials(forge.host, f"{quote(program(forge.kind, root))} auth git-credential")


def call(forge: Forge, root: str, method: str, path: str, body: Json | None = None) -> object:
    words = [program(forge.kind, root), "api", "--hostname", forge.host, "--method", method, path]
    if body is not None:
        words += ["--header", "Content-Type: application/json", "--input", "-"]
    place = tempfile.mkdtemp(prefix="tenuto-forge-")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            input=json.dumps(body).encode() if body is not None else b"",
            cwd=place,
            env={**kept, **_QUIET},
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Refused("forge-failed", f"{forge.host} did not answer in {_SECONDS} seconds", "try again later") from None
    except OSError as error:
        raise Refused("forge-failed", f"{words[0]} cannot be started: {error.strerror}", "tenuto doctor") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if done.returncode != 0:
        raise Refused("forge-failed", _reason(forge, path, done.stdout, done.stderr), _hint(forge, done.stderr))
    try:
        return json.loads(done.stdout or b"null")
    except ValueError:
        raise Refused("forge-failed", f"{forge.host} did not answer with JSON for {path}", "try again later") from None


def pages(forge: Forge, root: str, path: str) -> Iterator[Json]:
    join = "&" if "?" in path else "?"
    for number in range(1, _MOST_PAGES + 1):
        found = call(forge, root, "GET", f"{path}{join}per_page={_AT_ONCE}&page={number}")
        rows = found if isinstance(found, list) else []
        yield from (row for row in rows if isinstance(row, dict))
        if len(rows) < _AT_ONCE:
            return


def one(forge: Forge, root: str, method: str, path: str, body: Json | None = None) -> Json:
    found = call(forge, root, method, path, body)
    if not isinstance(found, dict):
        raise Refused("forge-failed", f"{forge.host} answered something else for {path}", "try again later")
    return found


def _reason(forge: Forge, path: str, out: bytes, errors: bytes) -> str:
    said = errors.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace").strip()
    return f"{forge.host} refused {path}: {said[:500] or 'without a word'}"


def _hint(forge: Forge, errors: bytes) -> str:
    name = PROGRAMS[forge.kind]
    text = errors.lower()
    if b"401" in text or b"auth" in text:
        return f"{name} auth login --hostname {forge.host}"
    return f"does it exist, and may you? {name} auth status" if b"404" in text else "correct that, and run again"
