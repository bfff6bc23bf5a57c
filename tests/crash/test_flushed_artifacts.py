"""An artifact that was answered as stored is on the disk: its bytes, its name, and the folders above it.

A state file need not be: every turn looks at it and writes it again. Nobody looks at all artifacts of a run again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prove.disk import Disk, Op
from prove.looking import read_tree
from prove.tracing import trace

CONTENT = "STORE phase: spec content: # All of it\n"
SPEC = "docs/orchestrator/context/tasks/t/spec.md"


@pytest.mark.needs("strace")
@pytest.mark.parametrize("large", [False, True])
def test_a_stored_artifact_does_not_depend_on_what_the_kernel_writes_later(tmp_path: Path, large: bool) -> None:
    """Whatever else is lost with the power, this file is there, with the folders that were made for it."""
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    disk = Disk()
    for path, content in sorted(read_tree(root).items()):
        disk.apply(Op("mkdir" if content is None else "create", path))
    disk.settle()
    words = [CONTENT]
    if large:
        (tmp_path / "large").write_bytes(b"# Much of it\n" * 30_000)
        words = ["STORE phase: spec", "--content-file", str(tmp_path / "large")]
    for command in (("context", "INIT task: t"), ("context", *words)):
        done = trace(root, command, tmp_path / "trace")
        assert done.status == 0, done.output
        for op in done.ops:
            disk.apply(op)
    nothing_else = disk.tree(dict.fromkeys(disk.choices(), 0))
    assert nothing_else[SPEC] == Path(root, SPEC).read_bytes()


COMMITS = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tenuto.files import git; git.commit(sys.argv[2], ['a'], 'm')"
)


@pytest.mark.needs("strace")
def test_what_tenuto_commits_is_on_the_disk_before_anybody_hears_of_it(tmp_path: Path) -> None:
    """Objects, index and the branch: the journal names the commit from then on."""
    root, flushed = tmp_path / "project", tmp_path / "flushed"
    subprocess.run(["git", "init", "-q", "-b", "main", "--template=", str(root)], check=True)
    (root / "a").write_text("one\n")
    watched = ["strace", "-f", "-y", "-qq", "-o", str(flushed), "-e", "trace=fsync,fdatasync"]
    words = [sys.executable, "-c", COMMITS, str(Path(__file__).parents[2]), str(root)]
    subprocess.run([*watched, *words], check=True, capture_output=True)
    said = flushed.read_text()
    objects = [line for line in said.splitlines() if "/.git/objects/" in line]
    assert len(objects) >= 3, "the file, its folder and the commit"
    assert "/.git/index.lock>" in said and "/.git/refs/heads/main.lock>" in said
