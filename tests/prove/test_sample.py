"""A sample of every promise, and the proof that its prover can fail. `make prove` tries all of it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from prove import frame, table
from prove.promises import PROMISES, Promise
from tests.support.fresh import in_fresh_process

HERE = [promise for promise in PROMISES if (frame.ROOT / "prove" / f"{promise.module}.py").is_file()]
SAMPLE = frame.Amount(full=False, jobs=1)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """As `make prove` runs them; nobody's open files are shared with the processes that a prover starts."""
    with frame.alone():
        yield


def prover(promise: Promise) -> ModuleType:
    return importlib.import_module(f"prove.{promise.module}")


@pytest.mark.parametrize("promise", HERE, ids=lambda promise: promise.module)
def test_the_promise_is_kept(promise: Promise) -> None:
    """What a sample of the attacks finds: nothing."""
    result = attempt(prover(promise).prove, SAMPLE, frame.silent)
    assert not result.violations, "\n".join(result.violations[:10])
    assert result.tried > 0


@pytest.mark.parametrize("promise", HERE, ids=lambda promise: promise.module)
def test_the_prover_sees_a_broken_promise(promise: Promise) -> None:
    """The same search over a variant that is broken on purpose finds violations."""
    result = attempt(prover(promise).control, SAMPLE)
    assert result.violations, "the prover cannot fail, so it proves nothing"


def attempt(act: Callable[..., frame.Result], *arguments: object) -> frame.Result:
    try:
        return in_fresh_process(act, *arguments)
    except frame.Lacking as lacking:
        pytest.skip(str(lacking))


def test_the_table_has_a_row_for_every_promise_and_keeps_what_was_not_run(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of one promise changes one row."""
    page = Path(tmp_path, "promises.md")
    page.write_text(f"above\n{table.BEGIN}\n{table.END}\nbelow\n")
    monkeypatch.setattr(table, "PAGE", page)
    good = frame.Result(1_000, [], {"states": "7"})
    table.write([table.Outcome(PROMISES[0], good, frame.Result(3, ["seen"], {}), 1.0)])
    first = next(line for line in page.read_text().splitlines() if line.startswith("| 1 |"))
    assert "1,000" in first and "states: 7" in first and "1 violations found in 3" in first
    table.write([table.Outcome(PROMISES[1], good, frame.Result(3, [], {}), 1.0)])
    text = page.read_text()
    assert first in text and "**found nothing**" in text
    assert text.startswith("above\n") and text.endswith("\nbelow\n")
    assert [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:] == [
        str(promise.number) for promise in PROMISES
    ]
