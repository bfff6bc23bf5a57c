"""What must survive a power loss is flushed before anything is built on it. A kill cannot show that; a trace can."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.supervise import attempts, processes
from tests.support.sandbox import Sandbox, python

CALLS = "fsync,link,linkat,rename,renameat,renameat2,execve,write,pwrite64,exit_group"


@pytest.mark.needs("strace")
def test_claim_and_result_are_flushed_before_anything_is_built_on_them(tmp_path: Path) -> None:
    """The claim, content and name, before the agent starts: else a restart would start it again. The output
    before the result that describes it, and the result, content and name, before the slot is given back."""
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.directory("a")
        spec = sandbox.spec("a", ["/bin/echo", "DONE:"])
        attempts.prepare(directory, spec)
        trace = str(tmp_path / "trace")
        strace = ["strace", "-f", "-y", "-s", "200", "-o", trace, "-e", f"trace={CALLS}"]
        attempts.start_supervisor(directory, {}, [*strace, sys.executable, "-I", "-S", processes.SUPERVISOR, directory])
        assert sandbox.result(directory)["exit_code"] == 0
        sandbox.await_supervisors()
        lines = Path(trace).read_text().splitlines()

    def first(pattern: str, after: int = 0) -> int:
        for number, line in enumerate(lines[after:], after):
            if re.search(pattern, line):
                return number
        raise AssertionError(f"no {pattern} after line {after} of\n" + "\n".join(lines))

    here = re.escape(directory)
    steps = [
        rf"fsync\(\d+<{here}/\.claim\.\w+>",
        rf'link\w*\(.*"{here}/claim"',
        rf"fsync\(\d+<{here}>",
        r'execve\("/bin/echo"',
        rf"fsync\(\d+<{here}/stdout>",
        rf"fsync\(\d+<{here}/\.result\.json\.\w+>",
        rf'rename\w*\(.*"{here}/result.json"',
        rf"fsync\(\d+<{here}>",
    ]
    reached = 0
    for step in steps:
        reached = first(step, reached) + 1
    assert first(rf"fsync\(\d+<{here}/stderr>") < first(rf'rename\w*\(.*"{here}/result.json"')


@pytest.mark.needs("strace")
def test_an_attempt_directory_is_flushed_into_its_parents(tmp_path: Path) -> None:
    """A claim in a directory whose own name is lost would be lost with it."""
    trace = str(tmp_path / "trace")
    package = str(Path(attempts.__file__).parents[2])
    place = str(tmp_path / "new" / "attempts" / "a")
    source = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tenuto.supervise import attempts\n"
        "attempts.prepare(sys.argv[2], {'attempt': 'a', 'argv': ['true'], 'cwd': '/', 'stdin': None, 'env': {},"
        " 'limit': None, 'grace': 0, 'output_cap': 0, 'pool': sys.argv[2], 'cap': 1})"
    )
    strace = ["strace", "-y", "-o", trace, "-e", "trace=fsync,link,linkat,mkdir,mkdirat"]
    subprocess.run([*strace, *python(source, package, place)], check=True)
    flushed = re.findall(r"fsync\(\d+<([^>]*)>", Path(trace).read_text())
    for parent in (tmp_path, tmp_path / "new", tmp_path / "new" / "attempts", Path(place)):
        assert str(parent) in flushed
    assert any("/.spec.json." in path for path in flushed)
