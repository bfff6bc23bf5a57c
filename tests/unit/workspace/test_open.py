"""What a library's user holds of the repositories they open."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tenuto.stores.sqlite import SqliteJournal

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="/proc lists the open files")


def open_in(folder: Path) -> int:
    links = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(str(folder)) for link in links if os.path.islink(link))


def test_who_lets_go_of_a_workspace_lets_go_of_its_files(tmp_path: Path) -> None:
    """At once: Python's collector may be late, or switched off."""
    (tmp_path / ".tenuto").mkdir()
    tenuto.open(str(tmp_path)).context.init("The first task")
    of_one = open_in(tmp_path)
    for number in range(20):
        tenuto.open(str(tmp_path)).context.init(f"Task {number}")
    assert 0 < open_in(tmp_path) <= of_one, "the latest one alone is kept (workspace/workspace.py says why)"
    (tmp_path / "other").mkdir()
    tenuto.open(str(tmp_path / "other"))
    assert open_in(tmp_path) == 0


def test_a_journal_that_the_collector_ends_after_its_database_is_let_go_of_without_a_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """In a circle of references, the order is Python's; the first collection here puts the database before its
    journal."""
    journal = SqliteJournal(str(tmp_path))
    holder: list[object] = [journal, journal.connection()]
    del journal
    gc.collect()
    holder.append(holder)
    del holder
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
    assert open_in(tmp_path) == 0


def test_a_journal_that_could_not_be_made_is_let_go_of_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted half-way, a hook would say a traceback to its host."""
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    SqliteJournal.__new__(SqliteJournal)
    gc.collect()
    assert not heard


def test_a_program_that_ends_without_closing_anything_says_nothing(tmp_path: Path) -> None:
    """The interpreter takes modules apart in an order of its own: a journal may be let go of when its module is
    empty already."""
    (tmp_path / ".tenuto").mkdir()
    source = (
        "import tenuto, tenuto.stores.sqlite as store, tenuto.workspace.workspace as opening\n"
        "held = tenuto.open('.')\n"
        "held.context.init('Task')\n"
        "opening._latest = store.os = None\n"
    )
    around = {**os.environ, "PYTHONPATH": str(Path(tenuto.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, env=around, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
