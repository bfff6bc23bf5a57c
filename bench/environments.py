"""The peers, each in an environment of its own below .bench/: installed once, never beside Tenuto's own packages.

A peer's program (bench/peers/with_*.py) stays up for the whole measurement and is asked for one work at a time, so that
its imports are not counted and it takes turns with everybody else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

from bench.measured import ROOT, folder, scratch

HOME = ROOT / ".bench"


class Known(NamedTuple):
    title: str
    packages: tuple[str, ...]
    first: str  # the package whose version is told


KNOWN = {
    "langgraph": Known(
        "LangGraph, SqliteSaver, sync", ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"), "langgraph"
    ),
    "dbos": Known("DBOS, SQLite", ("dbos==3.3.0",), "dbos"),
    "burr": Known("Burr, SQLitePersister", ("apache-burr[tracking]==0.43.0",), "apache-burr[tracking]"),
}
TYPER = Known("typer, pydantic", ("typer==0.29.0", "pydantic==2.14.3"), "typer")  # a fresh process each time
INSTALLED = KNOWN | {"typer": TYPER}


class Unavailable(Exception):
    """A peer cannot be measured here; the words say why."""


class Peer:
    """A peer's program. Whoever makes one closes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        words = program(name)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(HOME),
            "TMPDIR": str(scratch()),  # on the same disk as everybody else
            "BURR_TELEMETRY_ENABLED": "false",
            "DO_NOT_TRACK": "1",
        }
        self.log = open(HOME / f"{name}.log", "w")  # noqa: SIM115  # open as long as the peer is
        self.program = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )

    def ask(self, work: str) -> float:
        """Seconds that the peer took."""
        with folder() as made:
            assert self.program.stdin and self.program.stdout
            try:
                self.program.stdin.write(f"{work} {made}\n")
                self.program.stdin.flush()
                answer = self.program.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                raise Unavailable(f"ended in the middle of '{work}'; see .bench/{self.name}.log")
            return float(answer)

    def close(self) -> None:
        assert self.program.stdin
        try:
            self.program.stdin.close()
            self.program.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.program.kill()
            self.program.wait()
        self.log.close()


def program(name: str) -> list[str]:
    return [str(install(name)), str(ROOT / "bench" / "peers" / f"with_{name}.py")]


def title(name: str) -> str:
    known = INSTALLED[name]
    version = next(one.split("==")[1] for one in known.packages if one.startswith(f"{known.first}=="))
    own, _, rest = known.title.partition(",")
    return f"{own} {version},{rest}"


def install(name: str) -> Path:
    """The peer's own Python. The stamp comes last: what was interrupted is made again."""
    home, packages = HOME / name, INSTALLED[name].packages
    python, stamp = home / "bin" / "python", home / "ready"
    if stamp.is_file() and stamp.read_text() == "\n".join(packages) and python.exists():
        return python
    print(f"installing {', '.join(packages)} into .bench/{name}; this is done once", file=sys.stderr, flush=True)
    HOME.mkdir(exist_ok=True)
    venv.create(home, clear=True, symlinks=True)
    # By this environment's pip, which make has brought up to date: a new one may come without.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--disable-pip-version-check"]
    # What the caller's shell says about targets must not lead elsewhere; where packages come from is the machine's own
    # choice.
    elsewhere = ("PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH", "PYTHONHOME")
    surroundings = {name: value for name, value in os.environ.items() if name not in elsewhere}
    done = subprocess.run([*pip, *packages], check=False, capture_output=True, text=True, env=surroundings)
    if done.returncode:
        (HOME / f"{name}.log").write_text(done.stderr)
        last = done.stderr.strip().splitlines()[-1:] or [f"pip ended with {done.returncode}"]
        raise Unavailable(
            f"could not be installed ({last[0].removeprefix('ERROR: ')}; all of it is in .bench/{name}.log); "
            "check that pip can reach "
            "a package index, then run make bench again"
        )
    subprocess.run([python, "-m", "compileall", "-q", home / "lib"], check=False, stdout=subprocess.DEVNULL)
    stamp.write_text("\n".join(packages))
    return python
