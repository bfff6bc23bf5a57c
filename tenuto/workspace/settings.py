"""The repository's own settings: .tenuto/config.yaml. What is not there has its default; what is not known is refused.

    read_settings(root, state)     all of them, checked
    secret_names(root, state)      only the list `secrets`, also where another setting is wrong
    gate_level(root, state)        only how gates are protected, likewise
    settings_of(root, run)         for a run: what it began with stands for what an agent could have changed since
    init_repository(workspace)     `tenuto init`: the journal, and .tenuto/ with a first config.yaml that sets nothing;
                                   what is there already is not changed

The file is read and checked once. What came of it is kept beside the journal (`state`), with the stamp of the file it
was read from, so that a hook needs no YAML. A file that was changed in the last two seconds is read again each time:
its stamp could be that of another text. Each setting with its shape, default and an example:
docs/reference/settings.md, which tests hold against SETTINGS.
"""

from __future__ import annotations

import os
import posix
from time import time_ns

from tenuto.core.approvals import BOUND, PROTECTION
from tenuto.encoding import digest, dumps, loads
from tenuto.errors import BadInput, Refused
from tenuto.files.exchange import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypedDict

    from tenuto.core.records.run import Json, Run
    from tenuto.files.exchange import Place
    from tenuto.workspace.workspace import Workspace

    class SetUp(TypedDict, total=False):
        run: list[str]
        copy: list[str]

    class Notify(TypedDict, total=False):
        command: str
        url: str

    class Settings(TypedDict, total=False):
        agent: str
        roles: dict[str, str]
        fallback: dict[str, str]
        pipeline: str
        checks: dict[str, str]
        environment: list[str]
        secrets: list[str]
        time_limit: str | int
        workspace: Literal["shared", "worktree"]
        setup: SetUp
        gates: Literal["guarded", "signed", "isolated"]
        signers: str
        isolation: list[str]
        notify: Notify

    class Problem(TypedDict):
        code: str
        message: str
        hint: str

    class Compiled(TypedDict):
        stamp: list[int]
        settings: dict[str, object] | None  # None: it cannot be read, or is no mapping
        problem: Problem | None


CONFIG = ".tenuto/config.yaml"
TIME_LIMIT = "2h"  # no program that hangs is waited for longer
UNLIMITED = "unlimited"
LEVELS = ("guarded", "signed", "isolated")
WORKSPACES = ("shared", "worktree")
_BOUND_NAMES = ("checks", "environment", "setup", "isolation", "notify")
_LARGEST = 1 << 20  # bytes of compiled settings
_SETTLED = 2_000_000_000  # nanoseconds after which a file's stamp stands for its text


class Setting:
    __slots__ = ("example", "fits", "shape")

    def __init__(self, shape: str, fits: Callable[[object], bool], example: str) -> None:
        self.shape = shape
        """In words, as an error and the reference say it."""
        self.fits = fits
        self.example = example


def read_settings(root: str, state: str = "") -> Settings:
    compiled = _compiled(root, state)
    _raise(compiled["problem"])
    return compiled["settings"] or {}  # type: ignore[return-value]  # checked, each by its own shape


def bound_in(settings: Settings) -> Json:
    """What a run that begins now keeps to its end: the settings lie where agents can write."""
    return {BOUND: {name: value for name, value in settings.items() if name in _BOUND_NAMES}}


def settings_of(root: str, run: Run, state: str = "") -> Settings:
    """The settings for this run: as they are now, but for what it began with."""
    now = read_settings(root, state)
    if BOUND not in run["settings"]:
        return now  # led by hand so far, or begun by an older Tenuto
    free = {name: value for name, value in now.items() if name not in _BOUND_NAMES}
    kept: Settings = {**free, **run["settings"][BOUND]}  # type: ignore[typeddict-item]
    return kept


def changed_since(root: str, run: Run, state: str = "") -> list[str]:
    """The settings that say another thing now than the run began with, and do not count for it."""
    if BOUND not in run["settings"]:
        return []
    now, then = read_settings(root, state), run["settings"][BOUND]
    return [name for name in _BOUND_NAMES if now.get(name) != then.get(name)]


def secret_names(root: str, state: str = "") -> list[str]:
    """The variables that the settings call secret. Where that cannot be known, nothing may be taken in."""
    names = _one(root, state, "secrets", [])
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def gate_level(root: str, state: str = "") -> str:
    return str(_one(root, state, "gates", LEVELS[0]))


def stricter(began_with: str, now: str) -> str:
    """How gates are protected: what a run began with holds to its end, and what holds now does, too."""
    return next((level for level in ("signed", "isolated") if level in (began_with, now)), LEVELS[0])


def protection_by_hand(root: str, state: str) -> Json:
    """For a run that somebody leads by hand: as its gates are protected when it begins."""
    level = gate_level(root, state)
    if level == LEVELS[0]:
        return {}
    signers = ""
    if level == "signed":
        named = _one(root, state, "signers", ".tenuto/signers")
        try:
            with open(f"{root}/{named}", encoding="utf-8") as file:
                signers = file.read()
        except (OSError, UnicodeDecodeError):
            pass  # nobody may sign, until somebody is named
    return {PROTECTION: {"level": level, "signers": signers, "instance": posix.urandom(16).hex()}}


def _one(root: str, state: str, name: str, default: object) -> object:
    """One setting, also where another one is wrong."""
    compiled = _compiled(root, state)
    if compiled["settings"] is None:
        _raise(compiled["problem"])
        return default
    value = compiled["settings"].get(name, default)
    if not SETTINGS[name].fits(value):
        _raise(_misfit(f"{root}/{CONFIG}", name))
    return value


def _raise(problem: Problem | None) -> None:
    if problem is not None:
        raise BadInput(problem["code"], problem["message"], problem["hint"])


def _compiled(root: str, state: str) -> Compiled:
    path = f"{root}/{CONFIG}"
    try:
        found = posix.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if not _is_link(path):
            return {"stamp": [], "settings": None, "problem": None}
        return {"stamp": [], "settings": None, "problem": _no_file(path)}
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise Refused("bad-settings", message, "whether anything is secret is not known") from None
    stamp = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    kept = f"{state}/settings-{digest(root.encode('utf-8', 'surrogateescape'))[:16]}.json" if state else ""
    compiled = _kept(kept)
    if compiled is not None and compiled["stamp"] == stamp:
        return compiled
    compiled = _compile(path, stamp)
    if kept and time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED:
        _keep(kept, compiled)
    return compiled


def _compile(path: str, stamp: list[int]) -> Compiled:
    """Read the file and check it: the slow way, with YAML."""
    from pathlib import Path

    try:
        from tenuto.knowledge.definitions import is_file, source_of
    except ModuleNotFoundError:  # a hook is started without site-packages (-S), where the YAML reader lies
        import site

        site.main()
        from tenuto.knowledge.definitions import is_file, source_of

    try:
        data = source_of(Path(path)).data if is_file(Path(path)) else None
    except BadInput as error:
        return {
            "stamp": stamp,
            "settings": None,
            "problem": {"code": error.code, "message": error.message, "hint": error.hint},
        }
    if data is None:
        return {"stamp": stamp, "settings": {}, "problem": None}
    if not isinstance(data, dict):
        problem: Problem = {
            "code": "bad-settings",
            "message": f"{path} must hold a mapping",
            "hint": "see docs/reference/settings.md",
        }
        return {"stamp": stamp, "settings": None, "problem": problem}
    return {"stamp": stamp, "settings": data, "problem": _first_problem(path, data)}


def _first_problem(path: str, data: dict[str, object]) -> Problem | None:
    for name, value in data.items():
        if name not in SETTINGS:
            message = f"{path} has a setting '{name}' that nobody knows"
            return {"code": "bad-settings", "message": message, "hint": f"known: {', '.join(SETTINGS)}"}
        if not SETTINGS[name].fits(value):
            return _misfit(path, name)
    return None


def _misfit(path: str, name: str) -> Problem:
    setting = SETTINGS[name]
    message = f"{path}: '{name}' must be {setting.shape}"
    return {"code": "bad-settings", "message": message, "hint": f"{name}: {setting.example}"}


def _no_file(path: str) -> Problem:
    message = f"{path} is a link to nothing that can be read"
    return {"code": "not-a-file", "message": message, "hint": "put the file there, or remove it"}


def _is_link(path: str) -> bool:
    try:
        posix.readlink(path)
    except OSError:
        return False
    return True


def _kept(path: str) -> Compiled | None:
    """What an earlier process compiled; None where there is nothing, or nothing whole."""
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        compiled = loads(posix.read(file, _LARGEST).decode())
    except (OSError, ValueError):
        return None
    finally:
        posix.close(file)
    return compiled if isinstance(compiled, dict) and compiled.keys() == {"stamp", "settings", "problem"} else None  # type: ignore[return-value]


def _keep(path: str, compiled: Compiled) -> None:
    """A cache: where it cannot be written, the next process compiles again."""
    text = dumps(compiled).encode("utf-8", "surrogateescape")
    beside = f"{path}.{posix.getpid()}"
    if len(text) >= _LARGEST:
        return
    try:
        file = posix.open(beside, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
        try:
            posix.write(file, text)
        finally:
            posix.close(file)
        posix.rename(beside, path)
    except OSError:
        pass


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _variables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name.isprintable() for name in value)


def _named_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and _text(one) for name, one in value.items())


def seconds(value: object) -> int | None:
    """A span of time, as pipelines write it: 90, 90s, 30m, 2h, 1d."""
    from tenuto.core.pipeline.values import View

    return View(value, (), []).seconds("a time", None)


def time_limit(settings: Settings) -> int | None:
    """Of an attempt whose pipeline says nothing, in seconds; None where the user wants none."""
    said = settings.get("time_limit", TIME_LIMIT)
    return None if said == UNLIMITED else seconds(said)


def _one_of(words: tuple[str, ...]) -> Setting:
    return Setting(f"one of {', '.join(words)}", lambda value: value in words, words[0])


def _parts(**parts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict) and all(name in parts and parts[name](one) for name, one in value.items())
    )


SETTINGS: dict[str, Setting] = {
    "agent": Setting("an agent", _text, "command:./my-agent"),
    "roles": Setting("a mapping of roles to agents", _named_texts, '{designer: "command:./other"}'),
    "fallback": Setting("a mapping of agents to agents", _named_texts, "{claude: codex}"),
    "pipeline": Setting("the name of a pipeline", _text, "eight-step"),
    "checks": Setting("a mapping of names to commands", _named_texts, "{build: make, tests: make test}"),
    "environment": Setting("a list of names of variables", _variables, "[MY_API_URL]"),
    "secrets": Setting("a list of names of variables", _variables, "[MY_API_TOKEN]"),
    "time_limit": Setting(
        f"a span of time, or {UNLIMITED}", lambda value: value == UNLIMITED or seconds(value) is not None, "90m"
    ),
    "workspace": _one_of(WORKSPACES),
    "setup": Setting("run and copy, each a list", _parts(run=_texts, copy=_texts), "{run: [npm ci], copy: [.env]}"),
    "gates": _one_of(LEVELS),
    "signers": Setting("the path of a file", _text, ".tenuto/signers"),
    "isolation": Setting("a list of words, a command", _texts, "[sudo, -u, agent, --]"),
    "notify": Setting(
        "command, a text, or url, which begins with http:// or https://",
        _parts(command=_text, url=_address),
        "{command: ./tell-me}",
    ),
}


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
"""  # noqa: E501  # a file of the user's
_IGNORED = """\
# The journal and what lies beside it belong to this copy, not to the repository.
/*
!/.gitignore
!/config.yaml
!/pipelines/
!/roles/
!/signers
"""


def init_repository(workspace: Workspace) -> list[str]:
    """What was made: paths below the repository, and "journal". Refused, before anything is made, where .tenuto is a
    link: a repository that somebody else made could lead out of itself that way.
    """
    made = [] if workspace.journal.exists() else ["journal"]
    there = place(workspace.root, ".tenuto/config.yaml", create=False)
    if there is not None:
        with there:
            pass
    with workspace.journal.write():
        pass  # its commit makes the journal where there is none; one of a newer Tenuto is refused
    files = {".tenuto/config.yaml": _CONFIG}
    if os.path.realpath(workspace.root + "/.tenuto") == os.path.realpath(workspace.state):
        files[".tenuto/.gitignore"] = _IGNORED
    for path, text in files.items():
        spot = place(workspace.root, path)
        assert spot is not None
        with spot:
            if _write(spot, text):
                made.append(path)
    return made


def _write(spot: Place, text: str) -> bool:
    """Whole or not at all: half a file would be found there the next time, and left as it is."""
    try:
        file = os.open(
            spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=spot.fd
        )
    except FileExistsError:
        return False
    try:
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    except BaseException:
        os.unlink(spot.name, dir_fd=spot.fd)
        raise
    return True
