"""What Tenuto's entries in an agent program's settings are, where they stand, and how they get in and out.

    files(host, scope, places)          -> the files that setup writes for a program
    set_up(text, file, launch)          -> the text with our entries, the old ones replaced
    undo(text, file)                    -> the text without them; None where the file was made for them
    entries(text, file)                 -> our entries as they stand there

Text in, text out: nothing is read or written here. An entry is ours if its command ends with MARK (a shell's
comment), a server if its environment says so; whatever is not marked is never touched.

A hook's command is absolute and quick: no PATH is searched, and no site-packages. It asks whether the program
is still there and says nothing where it is not: Python answers a missing file with 2, which to a program
that calls hooks means "forbid it".
"""

from __future__ import annotations

import json
import shlex
from typing import Any, NamedTuple

from tenuto.errors import BadInput
from tenuto.hosts import json_text, toml_text

MARK = " # tenuto setup"
SERVER = "tenuto"
SERVER_MARK = "TENUTO_SETUP"
HOSTS = ("claude", "codex", "copilot", "gemini")
SECONDS = 30

_EDITS = "Write|Edit|MultiEdit|NotebookEdit"
# event -> which tools it is called for (None: it is not about tools)
EVENTS: dict[str, dict[str, str | None]] = {
    "claude": {
        "SessionStart": None, "PreCompact": None, "UserPromptSubmit": None, "SubagentStart": None, "SubagentStop": None,
        "PreToolUse": f"Agent|Task|{_EDITS}", "PostToolUse": _EDITS, "Stop": None,
    },
    "codex": {
        "SessionStart": None, "PreCompact": None, "SubagentStart": None, "SubagentStop": None,
        "PreToolUse": "spawn_agent|apply_patch", "PostToolUse": "apply_patch", "Stop": None,
    },
    "copilot": {
        "sessionStart": None, "preCompact": None, "subagentStart": None, "subagentStop": None,
        "preToolUse": None, "postToolUse": None, "agentStop": None,
    },
    "gemini": {
        "SessionStart": None, "PreCompress": None, "BeforeAgent": None, "BeforeTool": "invoke_agent|write_file|replace",
        "AfterTool": "invoke_agent|write_file|replace", "AfterAgent": None,
    },
}  # fmt: skip


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


def server(file: File, launch: Launch) -> dict[str, Any]:
    """A shared file names the program, not where it lies on this machine."""
    started = (
        {"command": "tenuto", "args": ["mcp"]}
        if file.shared
        else {"command": launch.python, "args": ["-I", "-m", "tenuto", "mcp"]}
    )
    extra: dict[str, Any] = {"type": "local", "tools": ["*"]} if file.host == "copilot" else {}
    return {**extra, **started, "env": {SERVER_MARK: "1"}}


def group(host: str, event: str, launch: Launch) -> dict[str, Any]:
    told = command(event, launch)
    if host == "copilot":
        return {"type": "command", "bash": told, "timeoutSec": SECONDS}
    seconds = SECONDS * 1000 if host == "gemini" else SECONDS
    named = {"name": "tenuto"} if host == "gemini" else {}
    hook = {**named, "type": "command", "command": told, "timeout": seconds}
    matcher = EVENTS[host][event]
    return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}


def set_up(text: str | None, file: File, launch: Launch) -> str:
    if file.kind == "block":
        return toml_text.with_block(None if text is None else toml_text.without_block(text), _block(file, launch))
    before = None if text is None else undo(text, file)
    return _made(file, launch) if before is None else _extended(before, file, launch)


def _block(file: File, launch: Launch) -> str:
    told = server(file, launch)
    args = ", ".join(map(json.dumps, told["args"]))
    return (
        f"[mcp_servers.{SERVER}]\ncommand = {json.dumps(told['command'])}\nargs = [{args}]\n"
        f'env = {{ {SERVER_MARK} = "1" }}\n'
        "startup_timeout_sec = 30\n"  # it gives up after 10 otherwise, and the SDK's imports alone take seconds on a busy machine
    )


def _made(file: File, launch: Launch) -> str:
    whole: dict[str, Any] = {}
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
    found = json_text.plain(json_text.read(text, file.comments)).get("mcpServers")
    return isinstance(found, dict) and SERVER in found


def _put(text: str, file: File, path: tuple[str, ...], key: str | None, piece: Any) -> str:
    """Add to the container at this path; what is missing on the way is made."""
    chain = [_container(json_text.read(text, file.comments), (), {})]
    for depth, name in enumerate(path):
        found, rest = chain[-1].named(name), path[depth + 1 :]
        if len(found) > 1:
            raise BadInput("twice", f"{name!r} stands there twice", "leave one of them")
        if not found:
            made: Any = [piece] if key is None else {key: piece}
            for missing in reversed(rest):
                made = {missing: made}
            return json_text.add(text, chain, made, name)
        wanted: Any = {} if rest or key is not None else []
        chain.append(_container(found[0].node, path[: depth + 1], wanted))
    return json_text.add(text, chain, piece, key)


def _container(node: json_text.Node, path: tuple[str, ...], wanted: Any) -> json_text.Node:
    if type(node.value) is not type(wanted):
        what = "an object" if wanted == {} else "a list"
        raise BadInput("bad-shape", f"{'.'.join(path) or 'what it holds'} is not {what}", "mend the file first")
    return node


def undo(text: str, file: File) -> str | None:
    if file.kind == "block":
        return toml_text.without_block(text)
    while True:
        document = json_text.read(text, file.comments)
        found = _last_of_ours(document)
        if found is None:
            return text
        chain, index = found
        made_by_us = [entry.key for entry in document.entries] == ["hooks", "version"]
        rest = json_text.drop(text, chain, index)
        if rest is None:
            return None
        text = rest
        if made_by_us and json_text.plain(json_text.read(text, file.comments)) == {"version": 1}:
            return None


Found = tuple[list[json_text.Node], int]


def _last_of_ours(document: json_text.Node) -> Found | None:
    """The last entry of ours, with the containers around it."""
    found: list[Found] = []
    for hooks in document.named("hooks"):
        for event in hooks.node.entries:
            for place, entry in enumerate(event.node.entries):
                found += _in_group([document, hooks.node, event.node], place, entry.node)
    for servers in document.named("mcpServers"):
        for place, entry in enumerate(servers.node.entries):
            if entry.key == SERVER and _is_our_server(json_text.plain(entry.node)):
                found.append(([document, servers.node], place))
    return found[-1] if found else None


def _in_group(chain: list[json_text.Node], place: int, node: json_text.Node) -> list[Found]:
    if _is_ours(json_text.plain(node)):
        return [(chain, place)]
    inner = [entry.node for entry in node.entries if entry.key == "hooks"]
    if len(inner) != 1:
        return []
    marked = [at for at, entry in enumerate(inner[0].entries) if _is_ours(json_text.plain(entry.node))]
    if marked and len(marked) == len(inner[0].entries):
        return [(chain, place)]  # nobody else's hook is in this group
    return [([*chain, node, inner[0]], at) for at in marked]


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and any(str(entry.get(key, "")).endswith(MARK) for key in ("command", "bash"))


def _is_our_server(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("env"), dict) and SERVER_MARK in entry["env"]


def entries(text: str, file: File) -> list[str]:
    """The commands of our hooks that stand in this file."""
    if file.kind in ("block", "servers"):
        return []
    whole = json_text.plain(json_text.read(text, file.comments))
    hooks = whole.get("hooks") if isinstance(whole, dict) else None
    found = []
    for groups in hooks.values() if isinstance(hooks, dict) else ():
        for entry in groups if isinstance(groups, list) else ():
            inner = entry.get("hooks") if isinstance(entry, dict) else None
            for one in [entry, *(inner if isinstance(inner, list) else ())]:
                if _is_ours(one):
                    found.append(str(one.get("command") or one.get("bash")))
    return found
