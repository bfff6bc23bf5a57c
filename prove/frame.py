"""What every prover shares: how much is asked of it, what it hands back, and a place to work in.

A prover is a module `prove/pNN_<noun>.py` with two functions:

    prove(amount, tell) -> Result     tries to break the promise; `tell(done, of)` moves the bar
    control(amount) -> Result         the same search with the promise broken on purpose: it must
                                      report violations, because a prover that cannot fail proves nothing

Everything random comes from `dice(...)`, seeded by what it is for, so that a violation that names
its case can be repeated. A violation is one line that says what was done and what was seen.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parent.parent
# Whatever the person at the keyboard has set up must not change what is proven.
FOREIGN = (
    "AI_AGENT",
    "CLAUDE",
    "CODEX",
    "COPILOT",
    "CURSOR_",
    "GEMINI",
    "GIT_",
    "GOOSE_",
    "OPENCODE",
    "QWEN_",
    "TENUTO_",
    "XDG_",
)

Progress = Callable[[int, int], None]
Case = TypeVar("Case")
Found = TypeVar("Found")


class Amount(NamedTuple):
    full: bool
    jobs: int


class Result(NamedTuple):
    tried: int
    violations: list[str]
    figures: dict[str, str]


class Lacking(Exception):
    """This machine cannot try it: strace, root, ... The promise is then neither kept nor broken."""


def silent(done: int, of: int) -> None:
    """For whoever looks at no bar."""


def dice(*what: object) -> random.Random:
    return random.Random(" ".join(map(str, what)))


def require(*programs: str) -> None:
    absent = [name for name in programs if name != "root" and not shutil.which(name)]
    if "root" in programs and os.geteuid() != 0:
        absent.append("root")
    if absent:
        raise Lacking(f"needs {', '.join(absent)}")


@contextlib.contextmanager
def place(on_disk: bool = False) -> Iterator[Path]:
    """A new directory; in memory where that can be had, because nothing here needs a real disk unless it says so."""
    memory = "/dev/shm"
    where = memory if not on_disk and os.access(memory, os.W_OK | os.X_OK) else None
    made = tempfile.mkdtemp(prefix="prove-", dir=where)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A home, a git identity and an environment of its own, here and in every process started from here."""
    kept = dict(os.environ)
    with place() as home:
        for name in [name for name in os.environ if name.startswith(FOREIGN)]:
            del os.environ[name]
        (home / ".gitconfig").write_text(
            "[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n"
        )
        os.environ.update(HOME=str(home), GIT_CONFIG_NOSYSTEM="1", LC_ALL="C.UTF-8", NO_COLOR="1", PYTHONHASHSEED="0")
        for who in ("AUTHOR", "COMMITTER"):
            os.environ[f"GIT_{who}_NAME"], os.environ[f"GIT_{who}_EMAIL"] = "Ada Tester", "ada@example.org"
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(kept)


def repository(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    return path


def spread(
    work: Callable[[Case], Found], cases: Iterable[Case], jobs: int, tell: Progress = silent, of: int | None = None
) -> Iterator[Found]:
    """`work` of every case, on `jobs` processes; results come in the order of the cases."""
    listed = list(cases)
    total = of or len(listed)
    if jobs < 2 or len(listed) < 2:
        for done, case in enumerate(listed, 1):
            yield work(case)
            tell(done, total)
        return
    # Spawned, not forked: a lock or a connection of this process must not be in two.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done, found in enumerate(pool.map(functools.partial(_work, work), listed), 1):
            yield found
            tell(done, total)


def _work(work: Callable[[Case], Found], case: Case) -> Found:
    try:
        return work(case)
    except Exception:  # noqa: BLE001  not every error can be sent from one process to another; its text can
        raise RuntimeError(traceback.format_exc()) from None


def python(*words: str) -> list[str]:
    """A Python process that finds this checkout, as an installed Tenuto finds itself."""
    return [sys.executable, *words]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def merged(results: Iterable[Result]) -> Result:
    """One result out of many; figures that are whole numbers add up, others are taken as they come last."""
    tried, violations, figures = 0, [], dict[str, str]()
    for result in results:
        tried += result.tried
        violations += result.violations
        for name, value in result.figures.items():
            known = figures.get(name, "0").replace(",", "")
            new = value.replace(",", "")
            figures[name] = f"{int(known) + int(new):,}" if known.isdigit() and new.isdigit() else value
    return Result(tried, violations, figures)
