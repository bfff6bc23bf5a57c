"""Which commands a project brings to build and to test itself, by the files that its tools are known by.

    commands(root)    what was found: a name that pipelines use (build, tests), the command, and the file that says so

The first of each name is the one to offer: a task runner of the project's own (make, just, task, the scripts of
package.json) says what its people type, so it comes before what a language usually does. Nothing is run here, and of a
file only its beginning is read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_LARGEST = 1 << 20  # bytes of a file that is looked into


class Found(NamedTuple):
    name: str  # build or tests
    command: str
    file: str


def commands(root: Path) -> list[Found]:
    found: list[Found] = []
    for look in _TOOLS:
        found += [one for one in look(root) if one not in found]
    return found


def proposed(root: Path) -> dict[str, str]:
    """One command for each name."""
    first: dict[str, str] = {}
    for one in commands(root):
        first.setdefault(one.name, one.command)
    return first


# ---- task runners of the project's own

_TARGET = re.compile(r"^([A-Za-z0-9_.\-]+)[ \t]*:(?![=:])", re.MULTILINE)
_RECIPE = re.compile(r"^@?([A-Za-z0-9_\-]+)(?:[ \t]+[^:\n]*)?:(?!=)", re.MULTILINE)
_TASK = re.compile(r"^  ([A-Za-z0-9_.\-]+):", re.MULTILINE)
_BUILD = ("build", "all", "compile")
_TESTS = ("test", "tests", "check")


def _make(root: Path) -> Iterator[Found]:
    name = next((name for name in ("GNUmakefile", "makefile", "Makefile") if (root / name).is_file()), "")
    yield from _of_targets(name, "make", _TARGET.findall(_text(root / name)) if name else ())


def _just(root: Path) -> Iterator[Found]:
    name = next((name for name in ("justfile", "Justfile", ".justfile") if (root / name).is_file()), "")
    yield from _of_targets(name, "just", _RECIPE.findall(_text(root / name)) if name else ())


def _task(root: Path) -> Iterator[Found]:
    name = next((name for name in ("Taskfile.yml", "Taskfile.yaml") if (root / name).is_file()), "")
    _, _, tasks = _text(root / name).partition("\ntasks:") if name else ("", "", "")
    yield from _of_targets(name, "task", _TASK.findall(tasks))


def _of_targets(file: str, program: str, targets: object) -> Iterator[Found]:
    known = list(targets) if isinstance(targets, list) else []
    for name, words in (("build", _BUILD), ("tests", _TESTS)):
        target = next((word for word in words if word in known), "")
        if target:
            yield Found(name, f"{program} {target}", file)


_MANAGERS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun"))
_NO_TESTS = "no test specified"  # what npm init writes


def _package_json(root: Path) -> Iterator[Found]:
    scripts = _mapping(_json(root / "package.json").get("scripts"))
    manager = next((program for lock, program in _MANAGERS if (root / lock).exists()), "npm")
    for name, script in (("build", "build"), ("tests", "test")):
        if script in scripts and _NO_TESTS not in str(scripts[script]):
            yield Found(name, f"{manager} run {script}", "package.json")


def _deno(root: Path) -> Iterator[Found]:
    file = next((name for name in ("deno.json", "deno.jsonc") if (root / name).is_file()), "")
    tasks = _mapping(_json(root / file).get("tasks")) if file == "deno.json" else {}
    for name, task in (("build", "build"), ("tests", "test")):
        if task in tasks:
            yield Found(name, f"deno task {task}", file)
    if file and "test" not in tasks:
        yield Found("tests", "deno test", file)


def _composer(root: Path) -> Iterator[Found]:
    scripts = _mapping(_json(root / "composer.json").get("scripts"))
    if "test" in scripts:
        yield Found("tests", "composer test", "composer.json")


# ---- what a language usually does


def _python(root: Path) -> Iterator[Found]:
    tools = _mapping(_toml(root / "pyproject.toml").get("tool"))
    if (root / "tox.ini").is_file() or "tox" in tools:
        yield Found("tests", "tox", "tox.ini" if (root / "tox.ini").is_file() else "pyproject.toml")
    if (root / "noxfile.py").is_file():
        yield Found("tests", "nox", "noxfile.py")
    said = next((name for name in ("pytest.ini", "pytest.toml", "conftest.py") if (root / name).is_file()), "")
    said = said or ("pyproject.toml" if "pytest" in tools else "")
    said = said or ("setup.cfg" if "[tool:pytest]" in _text(root / "setup.cfg") else "")
    if said:
        yield Found("tests", f"{_python_runner(root)} pytest", said)


def _python_runner(root: Path) -> str:
    for lock, words in (("uv.lock", "uv run"), ("poetry.lock", "poetry run"), ("pdm.lock", "pdm run")):
        if (root / lock).is_file():
            return words
    return "python -m"


def _usual(*files: str, build: str = "", tests: str = "") -> Callable[[Path], Iterator[Found]]:
    """`files`: patterns of names; the first that is there speaks."""

    def look(root: Path) -> Iterator[Found]:
        file = next((path.name for name in files for path in sorted(root.glob(name))), "")
        for name, command in (("build", build), ("tests", tests)):
            if file and command:
                yield Found(name, command, file)

    return look


_TOOLS: tuple[Callable[[Path], Iterator[Found]], ...] = (
    _make,
    _just,
    _task,
    _package_json,
    _deno,
    _composer,
    _python,
    _usual("Cargo.toml", build="cargo build", tests="cargo test"),
    _usual("go.mod", "go.work", build="go build ./...", tests="go test ./..."),
    _usual("mvnw", build="./mvnw -q compile", tests="./mvnw -q verify"),
    _usual("pom.xml", build="mvn -q compile", tests="mvn -q verify"),
    _usual("gradlew", build="./gradlew assemble", tests="./gradlew check"),
    _usual("build.gradle", "build.gradle.kts", build="gradle assemble", tests="gradle check"),
    _usual("*.sln", "*.slnx", "*.csproj", "*.fsproj", build="dotnet build", tests="dotnet test"),
    _usual("Package.swift", build="swift build", tests="swift test"),
    _usual("mix.exs", build="mix compile", tests="mix test"),
    _usual("rebar.config", build="rebar3 compile", tests="rebar3 eunit"),
    _usual("stack.yaml", build="stack build", tests="stack test"),
    _usual("*.cabal", "cabal.project", build="cabal build all", tests="cabal test all"),
    _usual("dune-project", build="dune build", tests="dune test"),
    _usual("build.sbt", build="sbt compile", tests="sbt test"),
    _usual("project.clj", tests="lein test"),
    _usual("pubspec.yaml", tests="dart test"),
    _usual("shard.yml", build="shards build", tests="crystal spec"),
    _usual(".rspec", tests="bundle exec rspec"),
    _usual("Rakefile", tests="rake test"),
    _usual("phpunit.xml", "phpunit.xml.dist", tests="vendor/bin/phpunit"),
    _usual("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel", build="bazel build //...", tests="bazel test //..."),
    _usual("build.zig", build="zig build", tests="zig build test"),
    _usual("CMakeLists.txt", build="cmake -B build && cmake --build build", tests="ctest --test-dir build"),
    _usual("meson.build", build="meson compile -C build", tests="meson test -C build"),
)


# ---- reading


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""


def _json(path: Path) -> dict[str, object]:
    try:
        return _mapping(json.loads(_text(path) or "{}"))
    except (ValueError, RecursionError):
        return {}


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
