"""Files of settings as people write and read them: begun, shown with where each comes from, checked line by line.

    init_repository(workspace, ...)   `tenuto init`: the journal, and .tenuto/ with a first config.yaml that sets
                                      nothing but the checks that were agreed to; what is there is not changed
    shown(root)                       every setting: its value, and which file says so
    problems(root)                    everything that is wrong, with its place
    pin(root, reference)              name a shared repository under `uses`

Reading a setting for the work itself is settings.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tenuto.errors import TenutoError
from tenuto.files.exchange import place
from tenuto.knowledge import sources
from tenuto.knowledge.plain_data import is_file, read_yaml, source_of
from tenuto.workspace.settings import CONFIG, SETTINGS, layers, merged, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenuto.files.exchange import Place
    from tenuto.workspace.workspace import Workspace

SCHEMAS = Path(__file__).parent.parent / "schemas"
SCHEMA = SCHEMAS / "config.schema.json"
TEMPLATE = SCHEMAS / "config.template.yaml"
_IGNORED = """\
# The journal and what lies beside it belong to this copy, not to the repository.
/*
!/.gitignore
!/config.yaml
!/*.schema.json
!/pipelines/
!/roles/
!/signers
"""


class Shown(TypedDict):
    name: str
    value: object  # None: nobody sets it
    origin: str  # repository, shared, user or default
    file: str
    line: int
    shape: str


class ConfigProblem(TypedDict):
    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str


class _File(NamedTuple):
    kind: str
    path: Path


# ---- begun


def init_repository(workspace: Workspace, checks: Mapping[str, str] | None = None) -> list[str]:
    """What was made: paths below the repository, and "journal". Refused, before anything is made, where .tenuto is a
    link: a repository that somebody else made could lead out of itself that way. `checks`: those that a person agreed
    to; where the settings name some already, they stay."""
    made = [] if workspace.journal.exists() else ["journal"]
    there = place(workspace.root, CONFIG, create=False)
    if there is not None:
        with there:
            pass
    with workspace.journal.write():
        pass  # its commit makes the journal where there is none; one of a newer Tenuto is refused
    text = _with_checks(TEMPLATE.read_text(encoding="utf-8"), checks or {})
    files = {CONFIG: text, f".tenuto/{SCHEMA.name}": SCHEMA.read_text(encoding="utf-8")}
    if os.path.realpath(workspace.root + "/.tenuto") == os.path.realpath(workspace.state):
        files[".tenuto/.gitignore"] = _IGNORED
    for path, body in files.items():
        spot = place(workspace.root, path)
        assert spot is not None
        with spot:
            if _write(spot, body):
                made.append(path)
    if checks and CONFIG not in made and "checks" not in _named(workspace.root):
        _append(workspace.root, _lines(checks))
        made.append(f"{CONFIG}: checks")
    return made


def _with_checks(text: str, checks: Mapping[str, str]) -> str:
    if not checks:
        return text
    lines = text.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("#checks:"))
    return "".join([*lines[:at], _lines(checks), *lines[at + 1 :]])


def _lines(checks: Mapping[str, str]) -> str:
    from tenuto.encoding import dumps

    return "checks:\n" + "".join(f"  {name}: {dumps(command)}\n" for name, command in checks.items())


def pin(root: str, one: sources.Reference) -> None:
    """Behind what is used already."""
    path = Path(root) / CONFIG
    known = [each.text for each in sources.uses_of(Path(root))]
    before = path.read_text(encoding="utf-8") if is_file(path) else ""
    kept = [line for line in before.splitlines(keepends=True) if not line.startswith("uses:")]
    where = sources.split(one.text.rpartition("@")[0])
    others = [text for text in known if sources.split(text.rpartition("@")[0]) != where]
    line = f"uses: [{', '.join([*others, one.text])}]\n"
    text = "".join(kept)
    text += "" if not text or text.endswith("\n") else "\n"
    read_yaml(text + line, str(path))  # a list over several lines would be torn: refused, nothing is written
    path.parent.mkdir(exist_ok=True)
    _replace(path, text + line)


def _append(root: str, text: str) -> None:
    path = Path(root) / CONFIG
    before = path.read_text(encoding="utf-8")
    _replace(path, before + ("" if not before or before.endswith("\n") else "\n") + text)


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _named(root: str) -> set[str]:
    path = Path(root) / CONFIG
    data = source_of(path).data if is_file(path) else None
    return set(data) if isinstance(data, dict) else set()


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


# ---- shown and checked


def shown(root: str) -> list[Shown]:
    """In the order of the reference. What adds up (secrets, gates) is shown with the strongest file that has it."""
    found = layers(root)
    values = merged(found)
    rows: list[Shown] = []
    for name, setting in SETTINGS.items():
        says = next((one for one in found if name in (one["settings"] or {})), None)
        place = source_of(Path(says["file"])).place([name]) if says else (0, 0)
        row: Shown = {
            "name": name,
            "value": values.get(name),
            "origin": says["kind"] if says else "default",
            "file": says["file"] if says else "",
            "line": place[0],
            "shape": setting.shape,
        }
        rows.append(row)
    return rows


def problems(root: str) -> list[ConfigProblem]:
    """Of every file, all of it; where nothing is wrong in them, of what they use."""
    found = [problem for one in _files(root) for problem in _problems(one)]
    if not found:
        try:
            layers(root)
        except TenutoError as error:
            found = [_problem(str(Path(root) / CONFIG), (1, 1), error.code, error.message, error.hint)]
    return found


def _files(root: str) -> Iterator[_File]:
    for one in sources.of_here(Path(root)):
        yield _File(one.kind, one.folder / sources.CONFIG)
    for used in sources.uses_of(Path(root)):
        if sources.is_fetched(used):
            yield _File("shared", sources.fetched(used) / sources.CONFIG)


def _problems(one: _File) -> Iterator[ConfigProblem]:
    file = str(one.path)
    try:
        if not is_file(one.path):
            return
        if one.kind == "user":
            sources.refuse_strangers_file(one.path)
        source = source_of(one.path)
    except TenutoError as error:
        line, column = error.details.get("line", 1), error.details.get("column", 1)
        yield _problem(file, (int(str(line)), int(str(column))), error.code, error.message, error.hint)
        return
    if source.data is not None and not isinstance(source.data, dict):
        yield _problem(file, (1, 1), "bad-settings", f"{file} must hold a mapping", "docs/reference/settings.md")
        return
    for name, value in (source.data or {}).items():
        wrong = problem_of(one.kind, file, name, value)
        if wrong is not None:
            message = wrong["message"].removeprefix(f"{file}: ").removeprefix(f"{file} ")
            yield _problem(file, source.place([name]), wrong["code"], message, wrong["hint"])


def _problem(file: str, place: tuple[int, int], code: str, message: str, hint: str | None) -> ConfigProblem:
    return {"file": file, "line": place[0], "column": place[1], "code": code, "message": message, "hint": hint or ""}
