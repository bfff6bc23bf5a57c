"""Tenuto's entries in the settings of agent programs: what they are, where they stand, how they get in and out.

    files(host, scope, places)            the files that setup writes for a program
    set_up(text, file, launch)            the text with Tenuto's entries, the old ones replaced
    undo(text, file)                      the text without them; None where the file was made for them
    entries(text, file)                   the commands of Tenuto's hooks that stand there
    plan(host, scope, places, servers)    what each file is and would be
    write(plans)                          writes them, if no file was changed in the meantime
    find_launch()                         how hooks start this Tenuto

The first four take text and give text; only `plan` and `write` touch files. An entry is Tenuto's if its command ends
with MARK (a shell's comment), a server if its environment says so; what is not marked is never touched.

A hook's command is absolute and quick: no PATH is searched, and no site-packages. It asks whether the program
is still there and says nothing where it is not: Python answers a missing file with 2, which to a program
that calls hooks means "forbid it".

A file is exchanged whole (a link is followed, so that people's dotfiles stay links) and keeps its mode. A file that
was made for Tenuto's entries goes with them; folders stay.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple, NotRequired, TypedDict

from tenuto.errors import BadInput, Conflict, TenutoError, Unwritable
from tenuto.hooks import settings_text

MARK = " # tenuto setup"
SERVER = "tenuto"
SERVER_MARK = "TENUTO_SETUP"
HOSTS = ("claude", "codex", "copilot", "gemini")
SECONDS = 30

_EDITS = "Write|Edit|MultiEdit|NotebookEdit"
# event -> which tools it is called for (None: it is not about tools)
EVENTS: dict[str, dict[str, str | None]] = {
    "claude": {
        "SessionStart": None,
        "PreCompact": None,
        "UserPromptSubmit": None,
        "SubagentStart": None,
        "SubagentStop": None,
        "PreToolUse": f"Agent|Task|{_EDITS}",
        "PostToolUse": _EDITS,
        "Stop": None,
    },
    "codex": {
        "SessionStart": None,
        "PreCompact": None,
        "SubagentStart": None,
        "SubagentStop": None,
        "PreToolUse": "spawn_agent|apply_patch",
        "PostToolUse": "apply_patch",
        "Stop": None,
    },
    "copilot": {
        "sessionStart": None,
        "preCompact": None,
        "subagentStart": None,
        "subagentStop": None,
        "preToolUse": None,
        "postToolUse": None,
        "agentStop": None,
    },
    "gemini": {
        "SessionStart": None,
        "PreCompress": None,
        "BeforeAgent": None,
        "BeforeTool": "invoke_agent|write_file|replace",
        "AfterTool": "invoke_agent|write_file|replace",
        "AfterAgent": None,
    },
}


class Hook(TypedDict):
    """One command of a group; Copilot's have no groups, and name things differently."""

    name: NotRequired[str]
    type: str
    command: NotRequired[str]
    timeout: NotRequired[int]
    bash: NotRequired[str]
    timeoutSec: NotRequired[int]


class Group(TypedDict):
    matcher: NotRequired[str]
    hooks: list[Hook]


class Server(TypedDict):
    type: NotRequired[str]
    tools: NotRequired[list[str]]
    command: str
    args: list[str]
    env: dict[str, str]


class Launch(NamedTuple):
    """How this Tenuto is started."""

    python: str
    hook: str
    """The file tenuto/entrypoints/hook.py."""


class Places(NamedTuple):
    home: str
    root: str
    environment: dict[str, str]

    def of_user(self, variable: str, folder: str) -> str:
        return self.environment.get(variable) or f"{self.home}/{folder}"


class File(NamedTuple):
    host: str
    kind: str
    """hooks, servers, both, or block (of TOML)."""
    path: str
    comments: bool = False
    shared: bool = False
    """Others get it with the repository."""


def files(host: str, scope: str, places: Places, servers: bool = True) -> list[File]:
    root = places.root
    found: dict[tuple[str, str], list[File]] = {
        ("claude", "user"): [File(host, "hooks", places.of_user("CLAUDE_CONFIG_DIR", ".claude") + "/settings.json")],
        ("claude", "project"): [
            File(host, "hooks", f"{root}/.claude/settings.local.json"),
            File(host, "servers", f"{root}/.mcp.json", shared=True),
        ],
        ("codex", "user"): _codex(places.of_user("CODEX_HOME", ".codex"), False),
        ("codex", "project"): _codex(f"{root}/.codex", True),
        ("copilot", "user"): [
            File(host, "hooks", places.of_user("COPILOT_HOME", ".copilot") + "/hooks/tenuto.json"),
            File(host, "servers", places.of_user("COPILOT_HOME", ".copilot") + "/mcp-config.json"),
        ],
        ("copilot", "project"): [File(host, "hooks", f"{root}/.github/hooks/tenuto.json", shared=True)],
        ("gemini", "user"): [File(host, "both", places.home + "/.gemini/settings.json", comments=True)],
        ("gemini", "project"): [File(host, "both", f"{root}/.gemini/settings.json", comments=True, shared=True)],
    }
    chosen = found[host, scope]
    if servers:
        return chosen
    return [
        file._replace(kind="hooks" if file.kind == "both" else file.kind)
        for file in chosen
        if file.kind in ("hooks", "both")
    ]


def _codex(folder: str, shared: bool) -> list[File]:
    return [
        File("codex", "hooks", folder + "/hooks.json", shared=shared),
        File("codex", "block", folder + "/config.toml", shared=shared),
    ]


def command(event: str, launch: Launch) -> str:
    python, hook = shlex.quote(launch.python), shlex.quote(launch.hook)
    return f"test -x {python} && test -f {hook} && exec {python} -I -S {hook} {event} || true{MARK}"


def launch_of(command: str) -> Launch | None:
    """Which program an entry of ours starts; None where it is not ours."""
    if not command.endswith(MARK):
        return None
    words = shlex.split(command.removesuffix(MARK))
    at = words.index("exec") if "exec" in words else -1
    return Launch(words[at + 1], words[at + 4]) if at >= 0 and len(words) > at + 4 else Launch("", "")


def server(file: File, launch: Launch) -> Server:
    """A shared file names the program, not where it lies on this machine."""
    command, args = ("tenuto", ["mcp"]) if file.shared else (launch.python, ["-I", "-m", "tenuto", "mcp"])
    started: Server = {"command": command, "args": args, "env": {SERVER_MARK: "1"}}
    return {"type": "local", "tools": ["*"], **started} if file.host == "copilot" else started


def group(host: str, event: str, launch: Launch) -> Group | Hook:
    line = command(event, launch)
    if host == "copilot":
        return {"type": "command", "bash": line, "timeoutSec": SECONDS}
    if host == "gemini":
        hook: Hook = {"name": "tenuto", "type": "command", "command": line, "timeout": SECONDS * 1000}
    else:
        hook = {"type": "command", "command": line, "timeout": SECONDS}
    matcher = EVENTS[host][event]
    return {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}


def set_up(text: str | None, file: File, launch: Launch) -> str:
    if file.kind == "block":
        return settings_text.with_block(
            None if text is None else settings_text.without_block(text), _block(file, launch)
        )
    before = None if text is None else undo(text, file)
    return _made(file, launch) if before is None else _extended(before, file, launch)


def _block(file: File, launch: Launch) -> str:
    started = server(file, launch)
    args = ", ".join(map(json.dumps, started["args"]))
    return (
        f"[mcp_servers.{SERVER}]\ncommand = {json.dumps(started['command'])}\nargs = [{args}]\n"
        f'env = {{ {SERVER_MARK} = "1" }}\n'
        # it gives up after 10 otherwise, and the SDK's imports alone take seconds on a busy machine
        "startup_timeout_sec = 30\n"
    )


def _made(file: File, launch: Launch) -> str:
    whole: dict[str, object] = {}
    if file.kind in ("hooks", "both"):
        whole["hooks"] = {event: [group(file.host, event, launch)] for event in EVENTS[file.host]}
        if file.host == "copilot":
            whole["version"] = 1  # behind the hooks: so a file is known that was made by us
    if file.kind in ("servers", "both"):
        whole["mcpServers"] = {SERVER: server(file, launch)}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _extended(text: str, file: File, launch: Launch) -> str:
    if file.kind in ("hooks", "both"):
        for event in EVENTS[file.host]:
            text = _put(text, file, ("hooks", event), None, group(file.host, event, launch))
    if file.kind in ("servers", "both") and not _has_server(text, file):
        text = _put(text, file, ("mcpServers",), SERVER, server(file, launch))
    return text


def _has_server(text: str, file: File) -> bool:
    whole = settings_text.plain(settings_text.read(text, file.comments))
    servers = whole.get("mcpServers") if isinstance(whole, dict) else None
    return isinstance(servers, dict) and SERVER in servers


def _put(text: str, file: File, path: tuple[str, ...], key: str | None, piece: object) -> str:
    """Add to the container at this path; what is missing on the way is made."""
    chain = [_container(settings_text.read(text, file.comments), (), dict)]
    for depth, name in enumerate(path):
        found, rest = chain[-1].named(name), path[depth + 1 :]
        if len(found) > 1:
            raise BadInput("twice", f"{name!r} stands there twice", "leave one of them")
        if not found:
            missing: object = [piece] if key is None else {key: piece}
            for inner in reversed(rest):
                missing = {inner: missing}
            return settings_text.add(text, chain, missing, name)
        wanted: type = dict if rest or key is not None else list
        chain.append(_container(found[0].node, path[: depth + 1], wanted))
    return settings_text.add(text, chain, piece, key)


def _container(node: settings_text.Node, path: tuple[str, ...], wanted: type) -> settings_text.Node:
    if type(node.value) is not wanted:
        what = "an object" if wanted is dict else "a list"
        raise BadInput("bad-shape", f"{'.'.join(path) or 'what it holds'} is not {what}", "mend the file first")
    return node


def undo(text: str, file: File) -> str | None:
    if file.kind == "block":
        return settings_text.without_block(text)
    while True:
        document = settings_text.read(text, file.comments)
        found = _last_of_ours(document)
        if found is None:
            return text
        chain, index = found
        made_by_us = [entry.key for entry in document.entries] == ["hooks", "version"]
        rest = settings_text.drop(text, chain, index)
        if rest is None:
            return None
        text = rest
        if made_by_us and settings_text.plain(settings_text.read(text, file.comments)) == {"version": 1}:
            return None


Found = tuple[list[settings_text.Node], int]


def _last_of_ours(document: settings_text.Node) -> Found | None:
    """The last entry of ours, with the containers around it."""
    found: list[Found] = []
    for hooks in document.named("hooks"):
        for event in hooks.node.entries:
            for place, entry in enumerate(event.node.entries):
                found += _in_group([document, hooks.node, event.node], place, entry.node)
    for servers in document.named("mcpServers"):
        for place, entry in enumerate(servers.node.entries):
            if entry.key == SERVER and _is_our_server(settings_text.plain(entry.node)):
                found.append(([document, servers.node], place))
    return found[-1] if found else None


def _in_group(chain: list[settings_text.Node], place: int, node: settings_text.Node) -> list[Found]:
    if _is_ours(settings_text.plain(node)):
        return [(chain, place)]
    inner = [entry.node for entry in node.entries if entry.key == "hooks"]
    if len(inner) != 1:
        return []
    marked = [at for at, entry in enumerate(inner[0].entries) if _is_ours(settings_text.plain(entry.node))]
    if marked and len(marked) == len(inner[0].entries):
        return [(chain, place)]  # no other hook is in this group
    return [([*chain, node, inner[0]], at) for at in marked]


def _is_ours(entry: object) -> bool:
    return isinstance(entry, dict) and any(str(entry.get(key, "")).endswith(MARK) for key in ("command", "bash"))


def _is_our_server(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("env"), dict) and SERVER_MARK in entry["env"]


def entries(text: str, file: File) -> list[str]:
    """The commands of our hooks that stand in this file."""
    if file.kind in ("block", "servers"):
        return []
    whole = settings_text.plain(settings_text.read(text, file.comments))
    hooks = whole.get("hooks") if isinstance(whole, dict) else None
    found = []
    for groups in hooks.values() if isinstance(hooks, dict) else ():
        for entry in groups if isinstance(groups, list) else ():
            inner = entry.get("hooks") if isinstance(entry, dict) else None
            for one in [entry, *(inner if isinstance(inner, list) else ())]:
                if _is_ours(one):
                    found.append(str(one.get("command") or one.get("bash")))
    return found


# ---- files of this machine -------------------------------------------------


MOST_BYTES = 8 << 20


class Plan(NamedTuple):
    file: File
    before: str | None
    after: str | None

    @property
    def change(self) -> str:
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> Iterator[str]:
        old, new = (text or "" for text in (self.before, self.after))
        was, will = ("/dev/null" if text is None else self.file.path for text in (self.before, self.after))
        yield from difflib.unified_diff(old.splitlines(), new.splitlines(), was, will, lineterm="")


def find_launch() -> Launch:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return Launch(sys.executable, f"{package}/entrypoints/hook.py")


def places(root: str) -> Places:
    return Places(os.path.expanduser("~"), root, dict(os.environ))


def plan(host: str, scope: str, where: Places, servers: bool = True, taking_out: bool = False) -> list[Plan]:
    launch = find_launch()
    plans = []
    for file in files(host, scope, where, servers=servers or taking_out):
        before = read(file.path)
        try:
            after = (before and undo(before, file)) if taking_out else set_up(before, file, launch)
        except TenutoError as error:
            raise BadInput(error.code, f"{file.path}: {error.message}", error.hint) from None
        plans.append(Plan(file, before, after))
    return plans


def read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            body = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput("cannot-read", f"{path}: {error.strerror}", "check what this is and whose") from None
    if len(body) > MOST_BYTES:
        raise BadInput("too-large", f"{path} has more than {MOST_BYTES >> 20} MiB", "this is no settings file")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not-text", f"{path} is not UTF-8", "mend the file first") from None


def write(plans: list[Plan]) -> None:
    for one in plans:
        if read(one.file.path) != one.before:
            raise Conflict("changed-meanwhile", f"{one.file.path} was changed in the meantime", "do it again")
    for one in plans:
        if one.change != "none":
            try:
                _exchange(os.path.realpath(one.file.path), one.after)
            except OSError as error:
                raise Unwritable("cannot-write", f"{one.file.path}: {error.strerror}", "check whose it is") from None


def _exchange(path: str, text: str | None) -> None:
    if text is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.{os.getpid()}.new"
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = None
    try:
        with open(new, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(new, mode)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def compile_bytecode() -> None:
    """A hook without bytecode takes twice as long. Where it may not be written, Python does without."""
    import compileall

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.access(package, os.W_OK):
        compileall.compile_dir(package, quiet=2)
