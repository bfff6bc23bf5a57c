"""What `make` relies on before there is any Python to rely on.

Each test builds a machine out of a folder: the programs in it are all that the scripts see.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
