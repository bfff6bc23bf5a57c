"""scripts/agent-programs: pinned programs, once; what cannot be had is named, and stops nothing.

Nothing is fetched here: pip and npm are scripts of this test that put a file where the real ones put the program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = [
    line.split()[:3] for line in (ROOT / "tests" / "agent-programs.txt").read_text().splitlines() if line[:1].isalpha()
]
PROGRAMS = [name for names, *_ in LISTED for name in names.split(",")]
PIP = """#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/claude_agent_sdk/_bundled"
cp /bin/true "$2/claude_agent_sdk/_bundled/claude"
"""
NPM = """#!/bin/sh
echo "$*" >> "{log}"
case $* in *{broken}*) echo 'npm error network' >&2; exit 1 ;; esac
mkdir -p node_modules/.bin
for name in codex codex-acp gemini opencode claude-agent-acp copilot node; do cp /bin/true node_modules/.bin/$name; done
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.project, self.place, self.log = folder / "project", folder / "programs", folder / "npm.log"
        (self.project / ".venv" / "bin").mkdir(parents=True)
        for name in ("scripts", "tests"):
            (self.project / name).mkdir()
        shutil.copy(ROOT / "scripts" / "agent-programs", self.project / "scripts")
        shutil.copy(ROOT / "tests" / "agent-programs.txt", self.project / "tests")
        self.write(self.project / ".venv" / "bin" / "python", PIP)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.npm("nothing-is-broken")

    def write(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def npm(self, broken: str) -> None:
        self.write(self.bin / "npm", NPM.format(log=self.log, broken=broken))

    def install(self) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.bin), "/usr/bin", "/bin"])
        done = subprocess.run(
            [str(self.project / "scripts" / "agent-programs")],
            env={"PATH": path, "TENUTO_AGENT_PROGRAMS": str(self.place)},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        return done

    def there(self) -> list[str]:
        return [name for name in PROGRAMS if os.access(self.place / "bin" / name, os.X_OK)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_every_program_is_pinned() -> None:
    for _, source, packages in LISTED:
        for package in packages.split(","):
            name, _, version = package.rpartition("==" if source == "pypi" else "@")
            assert name and version[:1].isdigit(), package


def test_all_of_them_once_and_then_without_a_word(machine: Machine) -> None:
    assert "done once" in machine.install().stderr
    assert machine.there() == PROGRAMS
    asked = machine.log.read_text()
    again = machine.install()
    assert (again.stdout, again.stderr) == ("", "") and machine.log.read_text() == asked
    assert not list(machine.place.glob("new.*"))


def test_what_cannot_be_had_is_named_and_the_rest_is_there(machine: Machine) -> None:
    machine.npm("gemini")
    told = machine.install().stderr
    assert "not installed: gemini;" in told and "skipped by name" in told
    assert machine.there() == [name for name in PROGRAMS if name != "gemini"]
    machine.npm("nothing-is-broken")
    assert "not installed" not in machine.install().stderr and machine.there() == PROGRAMS


def test_another_version_replaces_the_one_that_is_there(machine: Machine) -> None:
    machine.install()
    listed = machine.project / "tests" / "agent-programs.txt"
    listed.write_text(listed.read_text().replace("opencode-ai@", "opencode-ai@9."))
    before = machine.log.read_text().count("\n")
    machine.install()
    assert machine.log.read_text().count("\n") == before + 1, "and nothing else is fetched again"


def test_without_npm_its_programs_are_named(machine: Machine) -> None:
    (machine.bin / "npm").unlink()
    for folder in ("/usr/bin", "/bin"):
        if Path(folder, "npm").exists():
            machine.write(machine.bin / "npm", "#!/bin/sh\nexit 127\n")
    told = machine.install().stderr
    assert machine.there() == ["claude"] and "codex,codex-acp" in told and "gemini" in told
