"""What people install is what was tested: the packages build, pass the index's own checks, and work by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(words: list[str], place: Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=place, env={**os.environ, **environment}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)], folder)
    return folder


def test_the_packages_are_what_an_index_takes(dist: Path) -> None:
    packages = sorted(dist.iterdir())
    assert [path.suffix for path in packages] == [".whl", ".gz"]
    assert run([sys.executable, "-m", "twine", "check", "--strict", *map(str, packages)], dist).count("PASSED") == 2


def test_the_wheel_holds_every_file_that_the_program_reads(dist: Path) -> None:
    listed = run(["git", "ls-files", "-z", "tenuto"], ROOT).split("\0")[:-1]
    (wheel,) = dist.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held >= {name for name in listed if (ROOT / name).is_file()}


def test_an_installed_wheel_works_where_there_is_no_checkout(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    site = tmp_path / "site"
    quiet = ["-qq", "--no-deps", "--no-index", "--disable-pip-version-check", "--root-user-action=ignore"]
    run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(site), str(wheel)], tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    run(["git", "init", "-q"], project)
    (tmp_path / "answers.yaml").write_text("answers: []\n")
    command = ["run", "Dark mode", "--pipeline", "poc", "--agent", "scripted:../answers.yaml"]
    where = "import tenuto, sys; sys.stderr.write(tenuto.__file__); from tenuto.entrypoints.launch import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", where, *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site) in done.stderr
    assert "dark-mode: poc-complete" in done.stdout + done.stderr


def test_the_page_of_dependencies_is_what_is_installed() -> None:
    script = ROOT / "docs" / "reference" / "write-dependencies"
    written = run([sys.executable, str(script), "--print"], ROOT)
    assert written == (ROOT / "docs/reference/dependencies.md").read_text(), "docs/reference/write-dependencies"


def test_nobody_is_handed_a_licence_that_binds_their_own_code() -> None:
    """Permissive ones; the LGPL, under which PostgreSQL's driver may be used by any program; and the MPL, which binds
    the files of certifi (certificates) and no others."""
    permissive = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT License", "PSF-2.0")
    older_spellings = ("3-Clause BSD License", "Apache Software License", "BSD License", "MPL 2.0")
    fine = (*permissive, *older_spellings, "LGPL-3.0-only")
    text = (ROOT / "docs/reference/dependencies.md").read_text()
    rows = [
        line.split(" | ") for line in text.splitlines() if line.startswith("| ") and not line.startswith("| package")
    ]
    along = [part.rpartition("(")[2].rstrip(") |") for row in rows for part in row[3].split("), ") if "(" in part]
    assert len(rows) > 5 and {*(row[2] for row in rows), *along} <= set(fine)
