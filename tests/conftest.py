"""What every test may rely on, whatever machine it runs on.

A test says what it needs from the system with `@pytest.mark.needs("strace")` or, half-way
through, with the `needs` fixture. Where that is missing it skips and names it; programs
come from tests/system-tools.txt, which `make test` installs where it may.

The person running the tests is kept out of them: their home, their git identity, their
time zone and their agent sessions are never seen, and nothing is written to any of them.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from prove.frame import FOREIGN
from tenuto.cluster.private_postgres import binaries
from tenuto.errors import NotFound

ROOT = Path(__file__).resolve().parent.parent

# A repository that a test opened stays open until its process ends: thousands of tests need more than the usual 1,024
# files.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, _hard) if _hard != resource.RLIM_INFINITY else 20_000, _hard))

# What is started in the background ignores Ctrl-C, and so would every program that a test starts at a terminal.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time: what a fresh clone tests is what was tested here. New examples
# are looked for by `make prove`. No example is judged by the clock.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("prove", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@cache
def system_tools() -> dict[str, str]:
    lines = (ROOT / "tests" / "system-tools.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {program: package for program, package, *_ in rows}


@cache
def may_trace() -> bool:
    """Containers often have strace and forbid what it does."""
    return subprocess.run(["strace", "-o", os.devnull, "true"], check=False, capture_output=True).returncode == 0


@cache
def has_postgresql() -> bool:
    """Its binaries are seldom in PATH."""
    try:
        return bool(binaries())
    except NotFound:
        return False


def missing(name: str) -> str:
    """Why this machine cannot offer `name`; empty when it can."""
    if name == "root":
        return "" if os.geteuid() == 0 else "needs root"
    if name not in system_tools():
        raise LookupError(f"needs({name!r}): add it to tests/system-tools.txt, so that 'make test' can install it")
    if not shutil.which(name) and not (name == "postgres" and has_postgresql()):
        return f"needs {name}, which is not installed (Debian package: {system_tools()[name]})"
    if name == "strace" and not may_trace():
        return "needs strace, and this machine does not let it trace"
    return ""


def require(*names: str) -> None:
    if reasons := [reason for name in names if (reason := missing(name))]:
        pytest.skip("; ".join(reasons))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        require(*marker.args)


@pytest.fixture
def needs() -> Callable[..., None]:
    return require


@pytest.fixture
def database() -> str:
    """The address of an empty PostgreSQL database of this test's own."""
    require("postgres")
    from tests.support.postgres import fresh_database

    return fresh_database()


@pytest.fixture(autouse=True, scope="session")
def _only_the_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("home")
    # No maintenance: git would do it in the background, and change what a test looks at.
    (home / ".gitconfig").write_text(
        "[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(FOREIGN)]:
            patch.delenv(name)
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_NAME", "Ada Tester")
            patch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_TERMINAL_PROMPT", "0")
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))  # what is trusted is written down there
        patch.setenv("LC_ALL", "C.UTF-8")
        patch.setenv("NO_COLOR", "1")
        # A zone that nobody has: a local time shown as UTC stands out.
        patch.setenv("TZ", "NOWHERE-13:45")
        # Scripts that say `env python3` get this one; a version manager's shim would look in HOME.
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        time.tzset()
        yield
    time.tzset()
