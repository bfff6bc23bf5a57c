"""The agents' roles: Markdown with front matter, found in six places and read as one thing.

    find("researcher", root)            -> Role
    instructions(role, "synthesis")     -> the text an agent gets: the role without its other modes
    modes(root)                         -> each role's name with its modes, for pipeline.check

Places, in this order unless the caller gives another:
    tenuto    .tenuto/roles/NAME.md             the repository's own; these override everything
    shared    roles/NAME.md                     of the repositories that this one uses (sources.py)
    user      ~/.config/tenuto/roles/NAME.md
    shipped   tenuto/roles/NAME.md
    claude    .claude/agents/NAME.md            agents of Claude Code and of plugins
    github    .github/agents/NAME.agent.md      agents of Copilot
The last two belong to other programs, so they only add names; "claude:NAME" and "github:NAME" ask for
them where a shipped role has the same name.

Front matter of a role says what a pipeline can rely on: inputs, outputs, verdicts, memory, tools; per
mode where it has several. Files of other programs say less; what they do not say is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from tenuto import names
from tenuto.core.pipeline.records import Role, Terms
from tenuto.core.pipeline.values import did_you_mean
from tenuto.core.status import VERDICTS
from tenuto.errors import BadInput, NotFound
from tenuto.knowledge import plain_data
from tenuto.knowledge.sources import origins

COMMAND: Role = {
    "name": "command",
    "description": "A program of the project, in an agent's place.",
    "origin": "shipped",
    "file": "",
    "text": "",
    "modes": {},
    "default_mode": "",
    "any_mode": True,
    "tools": [],
    "model": "",
    "extra": {},
}
SHIPPED = Path(__file__).parent.parent / "roles"
FOLDERS = {
    "tenuto": Path(".tenuto") / "roles",
    "claude": Path(".claude") / "agents",
    "github": Path(".github") / "agents",
}
ENDINGS = {"tenuto": ".md", "shared": ".md", "user": ".md", "shipped": ".md", "claude": ".md", "github": ".agent.md"}
ORDER = ("tenuto", "shared", "user", "shipped", "claude", "github")
_MODE = re.compile(r"## Mode: *(\S+) *$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


def find(name: str, root: Path | None = None, order: tuple[str, ...] = ORDER) -> Role:
    origin, colon, plain = name.partition(":")
    places = (origin,) if colon and origin in ORDER else order
    wanted = plain if colon and origin in ORDER else name
    names.check(wanted, "role")
    for place in places:
        for folder in _folders(place, root):
            if (folder / (wanted + ENDINGS[place])).is_file():
                return read(folder / (wanted + ENDINGS[place]), place)
    known = list(modes(root, order))
    raise NotFound("no-role", f"there is no role '{name}'", did_you_mean(wanted, known))


def modes(root: Path | None = None, order: tuple[str, ...] = ORDER) -> dict[str, list[str] | None]:
    """Every role's name with its modes ("" is the plain one); None where any mode goes. Broken files are left out:
    whoever asks for one by name is told what is wrong with it."""
    found: dict[str, list[str] | None] = {}
    for place, path in _files(root, order):
        name = path.name[: -len(ENDINGS[place])]
        try:
            role = read(path, place)
        except BadInput:
            continue
        found.setdefault(name, None if role["any_mode"] else ["", *role["modes"]])
        if role["any_mode"]:
            found[f"{place}:{name}"] = None
    return found


def available(root: Path | None = None, order: tuple[str, ...] = ORDER) -> list[Role]:
    """The roles that `find` would return, by name. A broken file is refused by name."""
    found: dict[str, Role] = {}
    for place, path in _files(root, order):
        name = path.name[: -len(ENDINGS[place])]
        if name not in found:
            found[name] = read(path, place)
    return [found[name] for name in sorted(found)]


def read(path: Path, origin: str = "tenuto") -> Role:
    if path.stat().st_size > plain_data.LARGEST:
        raise BadInput("too-large", f"{path} is larger than {plain_data.LARGEST // 1024} KB", "shorten it")
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as wrong:
        raise BadInput("not-text", f"{path} is not UTF-8 at byte {wrong.start}", "save it as UTF-8") from None
    head, body = split(text)
    foreign = origin in ("claude", "github")
    source = _front_matter(head, path, foreign)
    return _role(source, body, path, origin, foreign)


def split(text: str) -> tuple[str, str]:
    """Front matter (without its marks) and body. No front matter: all of it is body."""
    if not text.startswith("---\n"):
        return "", text
    end = re.search(r"^---[ \t]*$", text[4:], re.MULTILINE)
    if end is None:
        return "", text
    return text[4 : 4 + end.start()], text[4 + end.end() :].lstrip("\n")


def terms(role: Role, mode: str = "") -> Terms:
    """What the role promises in this mode ("" is the plain one)."""
    return role["modes"].get(mode or role["default_mode"]) or _open_terms()


def instructions(role: Role, mode: str = "") -> str:
    """The body without the sections of other modes."""
    wanted = mode or role["default_mode"]
    kept: list[str] = []
    fence, keep = "", True
    for line in role["text"].splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif not fence and line.startswith("## "):  # a heading inside a fence is an example, not a section
            section = _MODE.match(line)
            keep = section is None or section.group(1) == wanted
        if keep:
            kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


# ---- reading ---------------------------------------------------------------------------------------


def _folders(place: str, root: Path | None) -> list[Path]:
    match place:
        case "shipped":
            return [SHIPPED]
        case "shared" | "user":
            return [one.folder / "roles" for one in origins(root) if one.kind == place]
        case _:
            return [root / FOLDERS[place]] if root else []


def _files(root: Path | None, order: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for place in order:
        for folder in _folders(place, root):
            for path in sorted(folder.glob("*" + ENDINGS[place])):
                if path.is_file():
                    yield place, path


def _front_matter(head: str, path: Path, foreign: bool) -> plain_data.Source:
    try:
        source = plain_data.read_yaml(head, str(path), first_line=2)
    except BadInput:
        if not foreign:
            raise
        # Other programs take descriptions with colons and examples that are no YAML. So do we.
        source = plain_data.Source(str(path))
        pairs = (line.partition(":") for line in head.splitlines() if re.match(r"[\w-]+:", line))
        source.data = {key: value.strip().strip("\"'") for key, _, value in pairs}
    if source.data is None:
        source.data = {}
    if not isinstance(source.data, dict):
        raise BadInput("bad-role", f"{path}:2:1: front matter must be a mapping", "write `name: ...` lines")
    return source


def _role(source: plain_data.Source, body: str, path: Path, origin: str, foreign: bool) -> Role:
    data: dict[str, object] = dict(source.data) if isinstance(source.data, dict) else {}
    stem = path.name[: -len(ENDINGS[origin])]
    reader = _Reader(source, data)
    name = reader.text("name", stem)
    if not foreign and name != stem:
        reader.refuse("name", f"the file is called {stem} and the role '{name}'", "call both the same")
    if not body.strip():
        raise BadInput("bad-role", f"{path}: the role has no text", "say what the agent is to do")
    declared: dict[str, object] = {
        key: data.pop(key) for key in ("inputs", "outputs", "verdicts", "memory") if key in data
    }
    found = reader.modes(data.pop("modes", None), declared)
    default = reader.text("default_mode", next(iter(found)))
    if default not in found:
        reader.refuse("default_mode", f"there is no mode '{default}'", did_you_mean(default, found))
    return {
        "name": stem,
        "description": reader.text("description", ""),
        "origin": origin,
        "file": str(path),
        "text": body,
        "modes": found,
        "default_mode": default,
        "any_mode": foreign,
        "tools": reader.words("tools", data.get("tools")),
        "model": reader.text("model", ""),
        "extra": {k: v for k, v in data.items() if k not in ("name", "description", "default_mode", "tools", "model")},
    }


def _open_terms() -> Terms:
    return {"inputs": [], "outputs": [], "verdicts": list(VERDICTS), "memory": "read"}


class _Reader:
    def __init__(self, source: plain_data.Source, data: dict[str, object]) -> None:
        self.source = source
        self.data = data

    def refuse(self, key: str, message: str, hint: str = "") -> NoReturn:
        line, column = self.source.place(key.split("."))
        raise BadInput("bad-role", f"{self.source.name}:{line}:{column}: {message}", hint)

    def text(self, key: str, default: str) -> str:
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.refuse(key, f"`{key}` must be text", "write it in quotes")
        return str(value)

    def words(self, key: str, value: object) -> list[str]:
        """A list, or words with commas between them as other programs write them."""
        if value is None:
            return []
        found = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            self.refuse(key, f"`{key}` must be a list of words", "for example [read, search]")
        return [word for word in found if word]

    def modes(self, given: object, declared: dict[str, object]) -> dict[str, Terms]:
        if given is None:
            return {"plain": self.terms("", declared)}
        if declared:
            key = next(iter(declared))
            self.refuse(key, f"`{key}` stands beside `modes`", "say it in each mode")
        if not isinstance(given, dict) or not given:
            self.refuse("modes", "`modes` must be a mapping", "for example {replan: {outputs: [plan.md]}}")
        return {name: self.terms(f"modes.{name}", row) for name, row in given.items()}

    def terms(self, path: str, row: object) -> Terms:
        row = {} if row is None else row
        if not isinstance(row, dict):
            self.refuse(path, "a mode must be a mapping", "for example {outputs: [plan.md]}")
        for key in row:
            if key not in Terms.__annotations__:
                self.refuse(
                    f"{path}.{key}".strip("."), f"a mode has no `{key}`", did_you_mean(key, list(Terms.__annotations__))
                )
        verdicts = self.words(f"{path}.verdicts".strip("."), row.get("verdicts")) or list(VERDICTS)
        for verdict in verdicts:
            if verdict not in VERDICTS:
                self.refuse(
                    f"{path}.verdicts".strip("."), f"'{verdict}' is no verdict", did_you_mean(verdict, VERDICTS)
                )
        memory = row.get("memory", "read")
        if memory not in ("read", "write"):
            self.refuse(f"{path}.memory".strip("."), "`memory` is read or write")
        return {
            "inputs": self.words(f"{path}.inputs".strip("."), row.get("inputs")),
            "outputs": self.words(f"{path}.outputs".strip("."), row.get("outputs")),
            "verdicts": verdicts,
            "memory": memory,
        }
