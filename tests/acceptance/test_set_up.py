"""What `make` relies on before there is any Python to rely on.

Each test builds a machine out of a folder: the programs in it are all that the scripts see.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent.parent
LISTED = [line.split() for line in (ROOT / "tests" / "system-tools.txt").read_text().splitlines() if line[:1].isalpha()]
PROGRAMS = [program for program, *_ in LISTED]
PLAIN = ("cat", "dirname", "head", "mktemp", "rm", "sh", "tail")


class Machine:
    """A folder of programs, and nothing else on the PATH."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        for name in PLAIN:
            found = shutil.which(name)
            assert found, name
            (programs / name).symlink_to(found)

    def add(self, name: str, script: str) -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def run(self, script: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / "scripts" / script), *words],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={"PATH": str(self.programs), "TMPDIR": str(self.programs), **environment},
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    programs = tmp_path / "programs"
    programs.mkdir()
    return Machine(programs)


def test_a_shim_that_does_not_start_is_passed_over(machine: Machine) -> None:
    """A version manager offers every name it knows; the first that really runs is taken."""
    machine.add("python3", "echo 'shim: python3: command not found' >&2; exit 127")
    machine.add("python3.12", f'exec "{sys.executable}" "$@"')
    found = machine.run("find-python")
    assert found.returncode == 0, found.stderr
    assert Path(found.stdout.strip()).samefile(sys.executable)


def test_an_old_python_is_named_and_not_used(machine: Machine) -> None:
    machine.add("python3", "echo 'is Python 3.8' >&2; exit 1")
    found = machine.run("find-python")
    assert found.returncode == 1
    assert "Python 3.11 or newer" in found.stderr
    assert "python3: is Python 3.8" in found.stderr
    assert "try: PYTHON=" in found.stderr


def test_the_chosen_python_is_not_second_guessed(machine: Machine) -> None:
    """PYTHON=... that does not work is an error, even when another Python would."""
    machine.add("python3", f'exec "{sys.executable}" "$@"')
    assert machine.run("find-python").returncode == 0
    assert machine.run("find-python", PYTHON="python9").returncode == 1


def test_a_version_is_looked_for_on_the_path_and_where_version_managers_keep_theirs(machine: Machine) -> None:
    """What carries its name and is another is not taken for it."""
    home = machine.programs / "home"
    machine.add("python3.99", f'exec "{sys.executable}" "$@"')
    told = machine.run("find-python", "3.99", HOME=str(home))
    assert (told.returncode, told.stderr) == (1, "error: there is no Python 3.99 with venv and pip on this machine\n")
    kept = home / ".pyenv" / "versions" / "3.99.1" / "bin"
    kept.mkdir(parents=True)
    (kept / "python").write_text('#!/bin/sh\necho "$0"\n')
    (kept / "python").chmod(0o755)
    assert machine.run("find-python", "3.99", HOME=str(home)).stdout == f"{kept}/python\n"


def test_what_is_supported_is_what_is_run_everywhere() -> None:
    """One list, in pyproject.toml; `make test-all` reads it there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [entry.rsplit(" ", 1)[1] for entry in project["classifiers"] if " :: Python :: 3." in entry]
    workflow: Any = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == listed
    assert project["requires-python"] == f">={listed[0]}"
    finder = (ROOT / "scripts" / "find-python").read_text()
    assert all(f"python{version}" in finder for version in listed)


@pytest.fixture
def pythons(tmp_path: Path) -> Path:
    """A project of three Pythons: one that is here, one that Debian has, one that nobody has."""
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "test-all", project / "scripts")
    listed = ("3.11", "3.98", "3.99")
    (project / "pyproject.toml").write_text("".join(f'"Programming Language :: Python :: {one}",\n' for one in listed))
    scripts = {
        "system-tools": "exit 0",
        "agent-programs": "exit 0",
        "find-python": '[ "$1" = 3.11 ] && echo /a/python3.11',
        # Its Python answers to `-c` with a version, and to `-m pytest` with what the test says.
        "set-up": "mkdir -p $VENV/bin; cp scripts/python $VENV/bin/python",
        "python": 'case "$1" in -c) echo 3.11.7 ;; *) echo "$*"; cat outcome; exit "$(cat status)" ;; esac',
        "unstable": 'case "$1 $2" in "prepare 3.99") echo not as root; exit 1 ;; "test 3.98") echo 2 passed ;; esac',
    }
    for name, script in scripts.items():
        (project / "scripts" / name).write_text(f"#!/bin/sh\n{script}\n")
        (project / "scripts" / name).chmod(0o755)
    (project / "outcome").write_text("3 passed\n")
    (project / "status").write_text("0")
    return project


def run_all(project: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([project / "scripts" / "test-all", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_tests_run_on_every_python_and_what_could_not_be_run_is_said(pythons: Path) -> None:
    status, out = run_all(pythons, "-k", "journal")
    assert "-m pytest -n auto -k journal" in out
    assert (status, out.splitlines()[-4:]) == (
        0,
        [
            "Tests on the supported Pythons:",
            "  3.11  3.11.7: 3 passed",
            "  3.98  in Debian unstable, without tests/real: 2 passed",
            "  3.99  not run: not on this machine; not as root",
        ],
    )


def test_a_failure_on_one_python_is_a_failure(pythons: Path) -> None:
    (pythons / "outcome").write_text("1 failed, 2 passed\n")
    (pythons / "status").write_text("1")
    status, out = run_all(pythons)
    assert status == 1 and "  3.11  3.11.7: 1 failed, 2 passed\n  3.98  in Debian" in out


def test_missing_programs_are_installed_as_root_with_apt(machine: Machine) -> None:
    """Package lists are fetched only when the first try fails, and nothing waits for an answer."""
    machine.add("id", "echo 0")
    *present, last = PROGRAMS
    for name in present:
        machine.add(name, "")
    machine.add(
        "apt-get",
        'echo "$DEBIAN_FRONTEND $*" >>"$TMPDIR/calls"\n'
        'case "$*" in *update*) : >"$TMPDIR/updated" ;; *) [ -e "$TMPDIR/updated" ] || exit 100\n'
        f'cat /dev/null >"$TMPDIR/{last}" && /bin/chmod +x "$TMPDIR/{last}" ;; esac',
    )
    done = machine.run("system-tools")
    assert done.returncode == 0
    assert done.stderr == f"tenuto: installing {LISTED[-1][1]}\n"
    calls = (machine.programs / "calls").read_text().splitlines()
    assert [("update" in call, call.startswith("noninteractive ")) for call in calls] == [
        (False, True),
        (True, True),
        (False, True),
    ]
    assert machine.run("system-tools").stderr == ""
    assert len((machine.programs / "calls").read_text().splitlines()) == 3


@pytest.mark.parametrize("user", ["0", "1000"])
def test_missing_programs_are_named_where_they_cannot_be_installed(machine: Machine, user: str) -> None:
    """Not root, no apt, or apt without a network: the tests still run, and say what was left out."""
    machine.add("id", f"echo {user}")
    if user == "0":
        machine.add("apt-get", "echo 'E: Unable to fetch' >&2; exit 100")
    for name in PROGRAMS[:-2]:
        machine.add(name, "")
    done = machine.run("system-tools")
    assert done.returncode == 0
    assert (
        f"not installed: {LISTED[-2][1]} {LISTED[-1][1]}; the tests that need them will be skipped by name"
        in done.stderr
    )
    assert ("Unable to fetch" in done.stderr) == (user == "0")


def test_what_bench_lacks_is_named_as_not_measured(machine: Machine) -> None:
    """Its own list: jq and ripgrep to compare with, strace and valgrind to count with."""
    machine.add("id", "echo 1000")
    done = machine.run("system-tools", "bench")
    assert done.returncode == 0
    assert "what needs them will be named as not measured" in done.stderr
    assert all(name in done.stderr for name in ("jq", "ripgrep", "strace", "valgrind"))


def test_a_test_that_lacks_a_program_skips_and_names_it(
    needs: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"needs jq, which is not installed .*; needs sqlite3"):
        needs("jq", "sqlite3")


def test_a_test_cannot_need_what_nobody_installs(needs: Callable[..., None]) -> None:
    """Otherwise it would be skipped everywhere, for ever, and look fine."""
    with pytest.raises(LookupError, match=r"tests/system-tools\.txt"):
        needs("no-such-program")


def test_ci_runs_what_people_run() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if "make" in line] == ["exec make test </dev/null"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
