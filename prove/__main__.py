"""`make prove`: every promise, in full, with a bar for each; the table goes to docs/promises.md.

make prove                       all of them
make prove ARGS='1 3'            some of them
make prove ARGS='--sample'       little of each, as the tests do it; nothing is written
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import time
import traceback
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from prove import table
from prove.frame import ROOT, Amount, Lacking, Result, alone
from prove.promises import BY_NUMBER, PROMISES, Promise

SHOWN = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("numbers", nargs="*", type=int, metavar="N", help="which promises; all when none is named")
    parser.add_argument("--sample", action="store_true", help="little of each; docs/promises.md is left alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes at a time")
    found = parser.parse_args()
    if unknown := [number for number in found.numbers if number not in BY_NUMBER]:
        parser.error(f"no such promise: {', '.join(map(str, unknown))}; there are 1 to {len(PROMISES)}")
    return found


def run(promise: Promise, amount: Amount, tell: Callable[[int, int], None]) -> table.Outcome:
    """The prover and its control; a prover that breaks is a violation, not an excuse."""
    module = importlib.import_module(f"prove.{promise.module}")
    began = time.monotonic()
    result = _guarded(lambda: module.prove(amount, tell))
    control = _guarded(lambda: module.control(amount._replace(full=False)))
    return table.Outcome(promise, result, control, time.monotonic() - began)


def _guarded(act: Callable[[], Result]) -> Result:
    try:
        return act()
    except Lacking:
        raise
    except Exception:  # noqa: BLE001  whatever it is, it is shown
        return Result(0, [f"the prover itself failed: {traceback.format_exc()}"], {})


@contextlib.contextmanager
def bars(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.fields[number]:>2}"),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        yield progress


def main() -> int:
    asked = arguments()
    console = Console()
    amount = Amount(not asked.sample, asked.jobs)
    outcomes: list[table.Outcome] = []
    untried: list[str] = []
    with alone(), bars(console) as progress:
        for promise in [BY_NUMBER[number] for number in asked.numbers] or PROMISES:
            if not (ROOT / "prove" / f"{promise.module}.py").is_file():
                untried.append(f"{promise.number}: nobody has written its prover yet")
                continue
            task = progress.add_task(promise.promise, total=None, number=promise.number)

            def tell(done: int, of: int, task: object = task) -> None:
                progress.update(task, completed=done, total=of)  # type: ignore[arg-type]

            try:
                outcome = run(promise, amount, tell)
            except Lacking as lacking:
                untried.append(f"{promise.number}: {lacking}")
                continue
            outcomes.append(outcome)
            say(console, outcome)
            # After each one: a long run that is cut short keeps what it has shown.
            if amount.full:
                table.write([outcome])
    for line in untried:
        console.print(f"not tried: {line}", style="yellow", markup=False)
    kept = sum(outcome.kept for outcome in outcomes)
    console.print(f"{kept} of {len(outcomes)} promises kept" + ("" if amount.full else " (sample)"))
    return 0 if kept == len(outcomes) and not untried else 1


def say(console: Console, outcome: table.Outcome) -> None:
    result, control = outcome.result, outcome.control
    figures = ", ".join(f"{name} {value}" for name, value in result.figures.items())
    word = "kept" if outcome.kept else "BROKEN"
    console.print(
        f"{outcome.promise.number:>2} {word}: {result.tried:,} tried; {figures}", markup=False, highlight=False
    )
    for line in result.violations[:SHOWN]:
        console.print(f"   violation: {line}", style="red", markup=False, highlight=False)
    if len(result.violations) > SHOWN:
        console.print(f"   and {len(result.violations) - SHOWN:,} more", style="red")
    if not control.violations:
        console.print("   broken on purpose, and the prover saw nothing", style="red")


if __name__ == "__main__":
    raise SystemExit(main())
