"""How big things may get, what they may be called, and what a hook may load.

Engines of this kind rot in one place: the file that "is the workflow". So no file and no
function grows past what one sitting can read. The way out is a better cut, not an exception;
TOLERATED is there to show that there is none.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tenuto"

MODULE_LINES = 700
FUNCTION_LINES = 60
FOLDER_MODULES = 14
WIDER = {"tenuto/entrypoints/cli": 20}  # a door for each group of commands
TOLERATED: set[str] = set()

# Names that say nothing: whatever ends up behind them has a better one.
EMPTY_NAMES = {"base", "helper", "helpers", "manager", "util", "utils"}

# Modules that cost a hook process a good part of an interpreter's start, or more.
HEAVY = (
    "argparse",
    "click",
    "dataclasses",
    "datetime",
    "hashlib",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "re",
    "rich",
    "ruamel",
    "subprocess",
    "tempfile",
    "typing",
)
HOT = (
    "__init__.py",
    "encoding.py",
    "errors.py",
    "names.py",
    "core",
    "views",
    "dialects",
    "files",
    "stores",
    "workspace",
)
HOT_ENTRIES = ("entrypoints/hook.py", "entrypoints/launch.py")
# Hot folders' modules that no hook imports: types only, git as a program, copies of whole folders, files of settings,
# moving a journal;
# and a server's journal, whose driver costs what it costs where a journal is there.
COLD = {
    "core/pipeline/records.py",
    *(f"core/records/{path.name}" for path in (PACKAGE / "core" / "records").glob("*.py")),
    *(f"stores/postgres/{path.name}" for path in (PACKAGE / "stores" / "postgres").glob("*.py")),
    "stores/moving.py",
    "workspace/moving.py",
    "files/copies.py",
    "files/git.py",
    "files/git_remote.py",
    "files/git_start.py",
    "files/git_state.py",
    "workspace/config_file.py",
    "workspace/shared.py",
}

WATCH = """
import sys
sys.path.insert(0, sys.argv[1])
heavy = sys.argv[2].split(",")
for name in sys.argv[3:]:
    before = set(heavy) & sys.modules.keys()
    __import__(name)
    for module in sorted(set(heavy) & sys.modules.keys() - before):
        print(name, "loads", module)
"""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def hot_modules() -> list[str]:
    found = [
        path for part in HOT for path in ([PACKAGE / part] if part.endswith(".py") else (PACKAGE / part).rglob("*.py"))
    ]
    found += [PACKAGE / entry for entry in HOT_ENTRIES]
    kept = [path for path in found if path.is_file() and path.relative_to(PACKAGE).as_posix() not in COLD]
    names = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in kept]
    return sorted(name.removesuffix(".__init__") for name in names)


def test_no_module_is_too_long() -> None:
    sizes = {name_of(path): len(path.read_text().splitlines()) for path in modules()}
    found = {name: size for name, size in sizes.items() if size > MODULE_LINES and name not in TOLERATED}
    assert not found, f"above {MODULE_LINES} lines, look for the second noun in them: {found}"


def test_no_folder_has_too_many_doors() -> None:
    """What lies in a folder can be read at one glance."""
    doors: dict[str, int] = {}
    for path in modules():
        if path.name != "__init__.py":
            folder = path.parent.relative_to(ROOT).as_posix()
            doors[folder] = doors.get(folder, 0) + 1
    found = {folder: count for folder, count in doors.items() if count > WIDER.get(folder, FOLDER_MODULES)}
    assert not found, f"more modules than {FOLDER_MODULES}, join those that are only read together: {found}"


def test_no_function_is_too_long() -> None:
    found = {}
    for path in modules():
        for function in functions(path):
            size = (function.end_lineno or function.lineno) - function.lineno + 1
            name = f"{name_of(path)}:{function.name}"
            if size > FUNCTION_LINES and name not in TOLERATED:
                found[name] = size
    assert not found, f"above {FUNCTION_LINES} lines, look for the second verb in them: {found}"


def test_names_say_something() -> None:
    """Modules are nouns of the domain; nothing is called utils, helpers, base or manager."""
    found = [name_of(path) for path in modules() if words("_".join(path.relative_to(PACKAGE).parts)) & EMPTY_NAMES]
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and words(node.name) & EMPTY_NAMES:
                found.append(f"{name_of(path)}:{node.name}")
    assert not found, found


def test_the_hot_path_loads_nothing_heavy() -> None:
    """A hook starts nearly as fast as Python itself, because of what it does not import."""
    watch = [sys.executable, "-I", "-S", "-c", WATCH, str(ROOT), ",".join(HEAVY), *hot_modules()]
    done = subprocess.run(watch, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert not done.stdout, done.stdout


def test_nothing_is_tolerated() -> None:
    """An exception is a decision: it takes a record in docs/decisions/ and a change of this test."""
    assert set() == TOLERATED
