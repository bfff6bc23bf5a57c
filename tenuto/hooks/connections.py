"""What of the agent programs on this machine could hurt: the program, its login, its hooks, the plugin. Looked at,
never mended.

    survey(workspace, settings)          what there is to say about all of them
    login(program, places, holds)        where a program finds its login: "ANTHROPIC_API_KEY", "~/.codex/auth.json", or
                                         ""

Nothing here talks to a network. Programs are asked for their version only, and for the plugin's errors where the
plugin is installed; all at once, and none is waited for longer than _PATIENCE.

Of a login only its presence is looked at, never what it is: whether it is still good, only the program's own service
could tell.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from tenuto.agents.roster import INSTALLED
from tenuto.errors import TenutoError
from tenuto.hooks.setup import (
    HOSTS,
    MARK,
    File,
    Launch,
    Places,
    entries,
    files,
    find_launch,
    launch_of,
    places,
    read,
    set_up,
)
from tenuto.workspace.checkup import check
from tenuto.workspace.locate import has_blocking_gate

if TYPE_CHECKING:
    from tenuto.ports import Check
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace


class Login(NamedTuple):
    variables: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """A file, and a word that must be in it; "": that it is there is enough."""
    how: str


CLAUDE, CODEX, COPILOT = "{CLAUDE_CONFIG_DIR|.claude}", "{CODEX_HOME|.codex}", "{COPILOT_HOME|.copilot}"
LOGINS = {
    "claude": Login(
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ),
        (
            (f"{CLAUDE}/.credentials.json", ""),
            (f"{CLAUDE}/settings.json", '"apiKeyHelper"'),
            ("~/.claude.json", '"oauthAccount"'),
            ("~/.claude.json", '"primaryApiKey"'),
        ),
        "start claude and type /login, or set ANTHROPIC_API_KEY",
    ),
    "codex": Login(
        ("CODEX_API_KEY",),
        ((f"{CODEX}/auth.json", ""), (f"{CODEX}/config.toml", "model_provider")),
        "codex login, or set CODEX_API_KEY",
    ),
    "copilot": Login(
        ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
        ((f"{COPILOT}/config.json", "ogged"), ("~/.config/gh/hosts.yml", "")),
        "copilot login",
    ),
    "gemini": Login(
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS"),
        (("~/.gemini/oauth_creds.json", ""), ("~/.gemini/.env", "_KEY")),
        "start gemini and sign in, or set GEMINI_API_KEY",
    ),
    "opencode": Login(
        ("OPENCODE_CONFIG", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        (("~/.local/share/opencode/auth.json", ""), ("~/.config/opencode/opencode.json", "")),
        "opencode auth login",
    ),
}


def login(program: str, places: Places, holds: Callable[[str, str], bool]) -> str:
    """`holds(path, word)`: is there such a file, with this word in it?"""
    known = LOGINS[program]
    for variable in known.variables:
        if places.environment.get(variable):
            return variable
    for path, word in known.files:
        found = _path(path, places)
        if holds(found, word):
            return "~" + found.removeprefix(places.home) if found.startswith(places.home + "/") else found
    return ""


def _path(path: str, places: Places) -> str:
    if path.startswith("~"):
        return places.home + path[1:]
    variable, _, rest = path[1:].partition("}")[0].partition("|")
    return places.of_user(variable, rest) + path.partition("}")[2]


# The oldest of each that Tenuto is tried with.
OLDEST = {"claude": "2.1.197", "codex": "0.60.0", "copilot": "1.0.102", "gemini": "0.61.0", "opencode": "1.18.33"}
_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_OFFLINE": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "NO_UPDATE_NOTIFIER": "1",
}
_PATIENCE = 20
_SLOW = f"no answer within {_PATIENCE} seconds"
_LOOKED_INTO = 1 << 20


def survey(workspace: Workspace, settings: Settings) -> list[Check]:
    where = places(workspace.root)
    programs = {name: path for name in INSTALLED if (path := shutil.which(name))}
    with ThreadPoolExecutor(max_workers=len(INSTALLED) + 1) as threads:
        versions = dict(zip(programs, threads.map(_version, programs.values()), strict=True))
        plugin = threads.submit(_check_plugin, where, programs.get("claude", ""))
        needed = _needed(settings)
        found = [_check_program(name, versions[name], where, name in needed) for name in programs]
        found += [_missing(name) for name in needed if name not in programs]
        hooks = list(_check_hooks(where))
        found += hooks + plugin.result()
    if not programs:
        message = f"none of {', '.join(INSTALLED)} is on the PATH"
        found.append(check("note", "agents", message, "install one, or run with --agent 'command:./my-agent'"))
    connected = hooks or any(entry["name"] == "plugin" for entry in found)
    if not connected and has_blocking_gate(workspace.state):
        message = "a blocking gate is declared, and no program's settings call Tenuto's hooks"
        found.append(check("note", "setup", message, "tenuto setup claude (or codex, copilot, gemini)"))
    twice = any(entry["name"] == "plugin" and entry["status"] == "ok" for entry in found)
    if twice and any("/.claude/" in entry["message"] for entry in hooks):
        message = "Claude Code calls Tenuto twice: through the plugin and through its settings"
        found.append(check("note", "setup", message, "tenuto setup claude --undo"))
    return found


def _needed(settings: Settings) -> list[str]:
    """The programs that this repository's settings name."""
    spellings = [settings.get("agent", ""), *settings.get("roles", {}).values(), *settings.get("fallback", {}).values()]
    words = [
        spelling.removeprefix("acp:").replace(":", " ").split() for spelling in spellings if isinstance(spelling, str)
    ]
    return list(dict.fromkeys(word[0] for word in words if word and word[0] in INSTALLED))


def _missing(name: str) -> Check:
    message = f"{name} is to do the work (.tenuto/config.yaml), and is not on the PATH"
    return check("problem", name, message, f"install {name}, or name another agent")


def _version(path: str) -> str:
    """Its number; "?" and the reason where it does not tell."""
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
        )
    except subprocess.TimeoutExpired:
        return f"? ({_SLOW})"
    except OSError as error:
        return f"? ({error})"
    words = done.stdout.replace("v", " ").split()
    number = next((word.strip(".,") for word in words if _numbers(word)), "")
    return number or f"? (ended with {done.returncode})"


def _numbers(word: str) -> tuple[int, ...]:
    parts = word.strip(".,").partition("-")[0].split(".")
    return tuple(map(int, parts)) if len(parts) > 1 and all(part.isdecimal() for part in parts) else ()


def _check_program(name: str, version: str, where: Places, needed: bool) -> Check:
    if version.startswith("?"):
        return check(
            "problem" if needed else "note",
            name,
            f"it does not tell its version: {version[3:-1]}",
            "ask again when this machine has less to do" if _SLOW in version else f"install {name} again",
        )
    by = login(name, where, _holds)
    if not by:
        return check("problem" if needed else "note", name, f"{version}, and no login was found", LOGINS[name].how)
    if _numbers(version) < _numbers(OLDEST[name]):
        message = f"{version}, login by {by}; Tenuto is tried with {OLDEST[name]} and newer"
        return check("note", name, message, f"update {name}")
    return check("ok", name, f"{version}, login by {by}")


def _holds(path: str, word: str) -> bool:
    try:
        with open(path, "rb") as file:
            return word.encode() in file.read(_LOOKED_INTO) if word else True
    except OSError:
        return False


def _check_hooks(where: Places) -> Iterator[Check]:
    for host in HOSTS:
        for scope in ("user", "project"):
            for file in files(host, scope, where):
                if file.kind in ("hooks", "both") and (found := _check_settings(file, scope)):
                    yield found


def _check_settings(file: File, scope: str) -> Check | None:
    again = f"tenuto setup {file.host}{' --project' if scope == 'project' else ''}"
    try:
        text = read(file.path)
        if text is None or MARK not in text:
            return None
        launches = {launch for command in entries(text, file) if (launch := launch_of(command))}
        # With the server or without: both are what setup writes, as it was asked to.
        current = [
            set_up(text, file._replace(kind=kind), find_launch()) for kind in dict.fromkeys(("hooks", file.kind))
        ]
    except TenutoError as error:
        return check("note", "setup", f"{file.path}: {error.message}", error.hint)
    for launch in sorted(launches):
        if found := _check_launch(file, launch, again):
            return found
    if text not in current and set(launches) == {find_launch()}:
        return check("note", "setup", f"{file.path}: not what setup writes today", again)
    return check("ok", "setup", f"{file.path}: {len(entries(text, file))} events")


def _check_launch(file: File, launch: Launch, again: str) -> Check | None:
    package = os.path.dirname(os.path.dirname(launch.hook))
    if not os.access(launch.python, os.X_OK) or not os.path.isfile(launch.hook):
        gone = launch.hook if os.access(launch.python, os.X_OK) else launch.python
        return check("problem", "setup", f"{file.path}: {gone} is gone, so nothing is recorded", again)
    version = version_at(package)
    if version != _own_version():
        message = f"{file.path}: its hooks start Tenuto {version or '?'} ({package}), this is {_own_version()}"
        return check("problem", "setup", message, again)
    cached = os.path.join(package, "hooks", "__pycache__")
    if not (os.path.isdir(cached) and any(name.startswith("call.") for name in os.listdir(cached))):
        return check(
            "note",
            "setup",
            f"{file.path}: its hooks have no bytecode, and start slowly",
            f"{launch.python} -m compileall -q {package}",
        )
    return None


def _own_version() -> str:
    return version_at(os.path.dirname(os.path.dirname(find_launch().hook)))


def version_at(package: str) -> str:
    """The version of a Tenuto that is not this one, without starting it."""
    try:
        with open(os.path.join(package, "__init__.py"), encoding="utf-8") as file:
            lines = file.read(_LOOKED_INTO).splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.partition("=")[2].strip(" \"'") for line in lines if line.startswith("__version__ =")), "")


def _check_plugin(where: Places, program: str) -> list[Check]:
    folder = where.of_user("CLAUDE_CONFIG_DIR", ".claude")
    if not program or not _holds(folder + "/plugins/installed_plugins.json", '"tenuto@'):
        return []
    try:
        done = subprocess.run(
            [program, "plugin", "list", "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
        )
        listed = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return [check("note", "plugin", f"claude does not list its plugins: {error}", "claude plugin list")]
    return [_judged(one) for one in listed if isinstance(one, dict) and str(one.get("id", "")).startswith("tenuto@")]


def _judged(plugin: dict[str, object]) -> Check:
    name, version, errors = str(plugin["id"]), str(plugin.get("version", "?")), plugin.get("errors")
    if errors:
        reasons = "; ".join(map(str, errors if isinstance(errors, list) else [errors]))
        return check("problem", "plugin", f"{name}: {reasons}", f"claude plugin update {name}, or install it again")
    if not plugin.get("enabled", True):
        return check("note", "plugin", f"{name} is installed, and switched off", f"claude plugin enable {name}")
    if version != _own_version():
        return check(
            "problem",
            "plugin",
            f"{name} is version {version}, this is Tenuto {_own_version()}",
            f"claude plugin update {name}",
        )
    if shutil.which("tenuto") is None:
        return check("problem", "plugin", f"{name} finds no tenuto on the PATH, so nothing is recorded", "put it there")
    return check("ok", "plugin", f"{name} {version}")
