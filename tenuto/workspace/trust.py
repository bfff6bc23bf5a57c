"""What a checkout brings that would run, and whether a person has looked at it.

    of_settings(settings, root)         the settings' part of it: checks, set-up, agents, variables, notices
    of_definition(definition)           a pipeline's part of it: programs, commands, checks, set-up; its roles' options
    of_repository(root)                 everything that lies in .tenuto/, for a person to read
    missing(workspace, powers)          what nobody has looked at yet
    require(workspace, powers)          Refused, where something is missing: asked before anything of it runs
    require_new, require_bound          the same for a run that is about to begin, and for one that goes on
    say_so(workspace, powers)           a person has looked at these; from here on they run
    take_back(workspace)                nothing of this repository is trusted any more

A power is one line of it: what kind it is, where it stands, what would run. Whatever has no power (a prompt, a gate, a
time limit) needs nobody's word: only agents, programs and commands can do harm by themselves.

The record lies in the user's own folder of state, outside every repository, under the repository's path. It counts only
together with the mark in the repository's state, which no clone brings along: another repository at the same path is
another one. What was looked at once stays known: to go back to an older version asks nobody again.

Looking at a repository runs nothing of it and asks nothing here. Nobody but a person at a door says that something may
run (guard.require_person); a door that was told so for one command (--trust) sets workspace.trusts.
"""

from __future__ import annotations

import posix

from tenuto.encoding import digest, dumps, loads
from tenuto.errors import BadInput, Refused, TenutoError
from tenuto.workspace.guard import require_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import NamedTuple, TypedDict

    from tenuto.core.pipeline.records import Pipeline, Role, Seat
    from tenuto.core.records.action import Definition
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace

    class Power(NamedTuple):
        kind: str
        where: str
        what: str

    class Look(TypedDict):
        """What somebody looked at, at a time."""

        at: str
        by: str
        hash: str
        powers: list[list[str]]

    class Record(TypedDict):
        repository: str
        mark: str
        looks: list[Look]
        bound: list[str]  # definitions, by hash: looked at, with values that a person gave for their parameters


MARK = "trust-mark"  # a file beside the journal
_LARGEST = 16 << 20
_ON_FILES = ("read", "search", "write")  # tools that run nothing and reach nobody
_PLAIN_AGENTS = ("auto", "claude", "codex")  # as they are when nobody chooses options for them


def power(kind: str, where: str, what: str) -> Power:
    return (kind, where, what)  # type: ignore[return-value]  # a tuple: this module is imported by hooks


# ---- what would run


def of_settings(settings: Settings, root: str) -> list[Power]:
    """`root`: where the list of signers lies."""
    where = ".tenuto/config.yaml"
    found = [power("agent", f"{where}: agent", settings["agent"])] if _has_words(settings.get("agent", "")) else []
    for role, agent in settings.get("roles", {}).items():
        if _has_words(agent):
            found.append(power("agent", f"{where}: roles.{role}", agent))
    for agent, other in settings.get("fallback", {}).items():
        if _has_words(other):
            found.append(power("agent", f"{where}: fallback.{agent}", other))
    found += [power("check", f"{where}: checks.{name}", line) for name, line in settings.get("checks", {}).items()]
    set_up = settings.get("setup", {})
    found += [power("set-up", f"{where}: setup.run", line) for line in set_up.get("run", [])]
    found += [power("copy into work trees", f"{where}: setup.copy", line) for line in set_up.get("copy", [])]
    for name in ("environment", "secrets"):
        variables = settings.get("environment", []) if name == "environment" else settings.get("secrets", [])
        found += [power("variable that agents get", f"{where}: {name}", variable) for variable in variables]
    if settings.get("isolation"):
        found.append(power("isolation", f"{where}: isolation", _words(settings["isolation"])))
    found += _of_notices(where, settings)
    if settings.get("pull_request", {}).get("ask") is False:
        found.append(power("push and open a pull request, unasked", f"{where}: pull_request.ask", "false"))
    uses = settings.get("uses", [])
    for text in [uses] if isinstance(uses, str) else uses:
        found.append(power("shared repository, with its instructions", f"{where}: uses", text))
    for name, one in settings.get("schedules", {}).items():
        found.append(power("request by itself", f"{where}: schedules.{name}", f"{one['every']}: {one['request']}"))
        if _has_words(one.get("agent", "")):
            found.append(power("agent", f"{where}: schedules.{name}", one.get("agent", "")))
    if settings.get("gates") == "signed":
        path = settings.get("signers", ".tenuto/signers")
        found.append(power("who may sign", path, _text(f"{root}/{path}")))
    return found


def _of_notices(where: str, settings: Settings) -> Iterator[Power]:
    """What would be started and where it would be sent, link included. A bell and a desktop are the person's own."""
    from tenuto.workspace.settings import targets

    for target in targets(settings):
        addresses = target.get("apprise", [])
        said = {
            "command": [target.get("command", "")],
            "url": [target.get("url", "")],
            "apprise": [addresses] if isinstance(addresses, str) else addresses,
            "page": [target.get("page", "")],
        }
        for name, texts in said.items():
            yield from (power("notice", f"{where}: notify.{name}", text) for text in texts if text)


def of_definition(definition: Definition) -> list[Power]:
    """A pipeline and the roles that it uses, as they are bound to a run."""
    pipeline = definition["pipeline"]
    where = f"pipeline {pipeline['name']}"
    found = [power("set-up", f"{where}: setup.run", line) for line in pipeline["setup"]["run"]]
    found += [power("copy into work trees", f"{where}: setup.copy", line) for line in pipeline["setup"]["copy"]]
    for step, seat in _seats(pipeline):
        found += _of_seat(f"{where}: {step}", seat)
    for role in definition["roles"].values():
        found += _of_role(role)
    return list(dict.fromkeys(found))


def _seats(pipeline: Pipeline) -> Iterator[tuple[str, Seat]]:
    from tenuto.core.pipeline.check import seats

    for step in pipeline["steps"]:
        for seat in seats(step):
            yield step["id"], seat


def _of_seat(where: str, seat: Seat) -> Iterator[Power]:
    if seat["program"] not in ("", *_PLAIN_AGENTS):
        yield power("agent", where, seat["program"])
    if seat["command"] is not None:
        named = [f"{name}={value}" for name, value in seat["command"]["env"].items()]
        yield power("command", where, _words([*named, *seat["command"]["run"]]))
    for check in seat["checks"]:
        if check["run"]:
            yield power("check", f"{where}: checks.{check['name']}", check["run"])


def _of_role(role: Role) -> Iterator[Power]:
    """What its front matter says to the program that plays it: an agent, tools that need no permission, a mode."""
    if role["origin"] == "shipped":
        return
    tools = [tool for tool in role["tools"] if tool not in _ON_FILES]
    options = {**({"tools": tools} if tools else {}), **role["extra"]}
    if options:
        yield power("options of an agent", f"role {role['name']} ({role['origin']})", dumps(options))


def of_repository(root: str) -> list[Power]:
    """Everything in .tenuto/, and in what it uses, that would run. A file that cannot be read brings nothing: it is
    refused when it is used."""
    from tenuto.workspace.settings import repository_settings

    return list(
        dict.fromkeys([*of_settings(repository_settings(root), root), *_of_files(root, "repository", "shared")])
    )


def of_user(root: str) -> list[Power]:
    """What lies in the user's own folder: it is theirs, and runs unasked."""
    from tenuto.workspace.settings import user_settings

    return [*of_settings(user_settings(root), root), *_of_files(root, "user")]


def _of_files(root: str, *kinds: str) -> list[Power]:
    """Pipelines and roles of these origins."""
    from pathlib import Path

    from tenuto.knowledge import definitions, roles

    found: list[Power] = []
    modes = roles.modes(Path(root))
    for path in [path for origin, path in definitions.brought(Path(root)) if origin.kind in kinds]:
        found += _of_cases(path.with_name(path.stem + definitions.CASES), root)
        try:
            pipeline = definitions.load(str(path), Path(root), modes)
            used = sorted({seat["role"] for _, seat in _seats(pipeline) if seat["command"] is None})
            playing = {name: roles.find(name, Path(root)) for name in used}
            found += of_definition({"pipeline": pipeline, "roles": playing})
        except (TenutoError, OSError):
            continue
    for name in modes:
        try:
            role = roles.find(name, Path(root))
        except (TenutoError, OSError):
            continue
        if role["origin"] in [_ROLES[kind] for kind in kinds]:
            found += _of_role(role)
    return list(dict.fromkeys(found))


_ROLES = {"repository": "tenuto", "shared": "shared", "user": "user"}


def _of_cases(path: Path, root: str) -> list[Power]:
    """What `tenuto pipeline test` would run: the checks of cases, and scripts in the place of agents."""
    from os.path import relpath

    from tenuto.knowledge import plain_data

    if not plain_data.is_file(path):
        return []
    try:
        data = plain_data.source_of(path).data
    except BadInput:
        return []
    where = f"cases {relpath(path, root)}"
    return list(dict.fromkeys(power("script", where, line) for line in _scripts(data)))


def _scripts(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            if name == "run" and isinstance(value, str):
                yield value
            elif name == "checks" and isinstance(value, dict):
                yield from (line for line in value.values() if isinstance(line, str))
            else:
                yield from _scripts(value)
    elif isinstance(data, list):
        for value in data:
            yield from _scripts(value)


def of_cases(path: str, root: str) -> list[Power]:
    """Of a file of cases; none where it lies outside the repository: a person has named it."""
    from os.path import realpath
    from pathlib import Path

    top = realpath(root).rstrip("/")
    return _of_cases(Path(path), root) if realpath(path).startswith(f"{top}/") else []


def _has_words(agent: str) -> bool:
    return agent not in ("", *_PLAIN_AGENTS)


def _words(words: Iterable[str]) -> str:
    from shlex import quote

    return " ".join(quote(word) for word in words)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except OSError:
        return ""


# ---- what a person has looked at


def missing(workspace: Workspace, powers: Iterable[Power]) -> list[Power]:
    wanted = list(powers)
    if not wanted or workspace.trusts:
        return []
    known = known_powers(workspace)
    unknown = [one for one in wanted if one not in known]
    own = of_user(workspace.root) if unknown else []
    return [one for one in unknown if one not in own]


def require(workspace: Workspace, powers: Iterable[Power]) -> None:
    unknown = missing(workspace, powers)
    if unknown:
        few = "; ".join(f"{where}: {what[:100]}" for _, where, what in unknown[:3])
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        message = f"this repository brings what would run, and nobody has said here that it may: {few}{more}"
        raise Refused("not-trusted", message, "tenuto trust   (shows all of it, then asks)", count=len(unknown))


def require_new(workspace: Workspace, settings: Settings, definition: Definition, as_written: Definition) -> None:
    """Before a run is begun. `as_written`: the definition without the values that its parameters have for this run."""
    wanted = [*of_settings(settings, workspace.root), *of_definition(as_written)]
    require(workspace, wanted)
    _note_own(workspace, wanted)
    if missing(workspace, of_definition(definition)):
        record = _read(workspace)
        assert record is not None  # something of it is trusted
        record["bound"] = list(dict.fromkeys([*record["bound"], _hash(definition)]))
        _write(_place(workspace), dumps(record) + "\n")


def _note_own(workspace: Workspace, wanted: list[Power]) -> None:
    """What came from the user's own folder stays known for runs that began with it, whatever stands there later."""
    known = known_powers(workspace)
    if workspace.trusts or all(one in known for one in wanted):
        return
    record = _read(workspace) or _new_record(workspace)
    listed = [list(one) for one in wanted]
    look: Look = {"at": workspace.clock(), "by": "", "hash": digest(dumps(listed).encode()), "powers": listed}
    record["looks"] = [look, *record["looks"]]
    _write(_place(workspace), dumps(record) + "\n")


def require_bound(workspace: Workspace, settings: Settings, definition: Definition) -> None:
    """Before anything of a run is started. It was judged when it began, but its journal may be somebody else's."""
    record = _read(workspace)
    known = record is not None and _hash(definition) in record["bound"]
    require(workspace, [*of_settings(settings, workspace.root), *([] if known else of_definition(definition))])


def _hash(definition: Definition) -> str:
    return digest(dumps(definition).encode())


def say_so(workspace: Workspace, powers: Iterable[Power]) -> None:
    require_person(workspace.caller, "trust a repository", "tenuto trust")
    record = _read(workspace) or _new_record(workspace)
    listed = [list(one) for one in powers]
    look: Look = {"at": workspace.clock(), "by": _user(), "hash": digest(dumps(listed).encode()), "powers": listed}
    record["looks"] = [*(one for one in record["looks"] if one["hash"] != look["hash"]), look]
    _write(_place(workspace), dumps(record) + "\n")


def _new_record(workspace: Workspace) -> Record:
    return {"repository": _repository(workspace), "mark": _new_mark(workspace), "looks": [], "bound": []}


def take_back(workspace: Workspace) -> bool:
    """False where nothing was trusted."""
    require_person(workspace.caller, "change what is trusted", "tenuto trust --undo")
    try:
        posix.unlink(_place(workspace))
    except FileNotFoundError:
        return False
    return True


def known_powers(workspace: Workspace) -> list[Power]:
    record = _read(workspace)
    looks = record["looks"] if record else []
    return [power(*one) for look in looks for one in look["powers"]]


def last_look(workspace: Workspace) -> list[Power]:
    """What was there when a person looked the last time."""
    record = _read(workspace)
    looks = [look for look in record["looks"] if look["by"]] if record else []
    return [power(*one) for one in looks[-1]["powers"]] if looks else []


# ---- where that is written down


def folder() -> str:
    """Of the user, not of any repository: the state of their own programs."""
    from os import environ

    home = environ.get("HOME") or "/"
    state = environ.get("XDG_STATE_HOME", "")
    return f"{state if state.startswith('/') else f'{home}/.local/state'}/tenuto/trust"


def _repository(workspace: Workspace) -> str:
    from os.path import realpath

    return realpath(workspace.state)


def _place(workspace: Workspace) -> str:
    name = digest(_repository(workspace).encode("utf-8", "surrogateescape"))[:32]
    return f"{folder()}/{name}.json"


def _read(workspace: Workspace) -> Record | None:
    """None where nothing is known of this repository. A record that others could have written is none."""
    place = _place(workspace)
    body = _own_file(place)
    mark = _own_file(f"{workspace.state}/{MARK}")
    if body is None or not mark:
        return None
    try:
        record: Record = loads(body.decode())
    except ValueError:
        return None
    if record.get("mark") != mark.decode("utf-8", "replace").strip():
        return None
    return record if record.get("repository") == _repository(workspace) else None


def _own_file(path: str) -> bytes | None:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = posix.fstat(file)
        plain = found.st_mode & 0o170000 == 0o100000
        if not plain or found.st_uid not in (0, posix.geteuid()) or found.st_mode & 0o022 or found.st_size > _LARGEST:
            return None
        parts = []
        while part := posix.read(file, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        posix.close(file)


def _new_mark(workspace: Workspace) -> str:
    from tenuto.workspace.objects import make_folder

    mark = posix.urandom(16).hex()
    make_folder(workspace.state)  # as the first commit would make it
    _write(f"{workspace.state}/{MARK}", mark + "\n")
    return mark


def _write(path: str, text: str) -> None:
    """Whole and durable, for its owner only."""
    import os

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    beside = f"{path}.{posix.getpid()}"
    file = posix.open(
        beside, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o600
    )
    try:
        body = text.encode("utf-8", "surrogateescape")
        while body:
            body = body[posix.write(file, body) :]
        posix.fsync(file)
    finally:
        posix.close(file)
    posix.rename(beside, path)


def _user() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return f"uid {posix.getuid()}"
