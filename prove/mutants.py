"""Do the tests see a broken rule? Every mechanical mutant (mutation.py) of core/, or a sample of those of another part,
is tried against the tests of that part.

    python -m prove.mutants                     all of core/; what was killed before is not tried again
    python -m prove.mutants budget todo         some modules
    python -m prove.mutants --list budget       survivors of the last time
    python -m prove.mutants --part stores --sample 40     another part (PARTS); as many of its mutants as asked for,
                                                          chosen by their hashes, so that the same are tried again

A mutant outside core/ may signal processes or remove files: those parts are tried in a PID namespace of their own.

The tests are collected once, in one process, and run once to learn which of them comes to which function. For each
mutant a child of this process takes the function's code out, puts the mutant in, and runs those tests until one fails:
first those that are named like its module, then the quick ones that come to little else. Results are kept by the hash
of the mutant (in .pytest_cache), so a run that is cut short loses nothing. A mutant that lives is killed by a new test,
or listed in equivalent.py with the reason why nobody can tell it apart. The score goes to docs/promises.md.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prove.equivalent import EQUIVALENT
from prove.frame import ROOT, alone, require
from prove.mutation import Mutant, mutants

CORE = ROOT / "tenuto" / "core"
CACHE = ROOT / ".pytest_cache" / "mutants.json"
REACH = ROOT / ".pytest_cache" / "reach.json"
PAGE = ROOT / "docs" / "promises.md"
BEGIN, END = "<!-- mutants: begin, written by python -m prove.mutants -->", "<!-- mutants: end -->"
# One row for each part outside core, of which a sample is tried.
PARTS_BEGIN = "<!-- mutants of parts: begin, written by python -m prove.mutants --part NAME --publish -->"
PARTS_END = "<!-- mutants of parts: end -->"
TESTS = (
    "tests/unit/core",
    "tests/unit/test_rules.py",
    "tests/unit/test_waves.py",
    "tests/unit/test_pipeline.py",
    "tests/unit/test_selection.py",
    "tests/unit/test_items.py",
    "tests/unit/test_shipped_pipelines.py",
    "tests/unit/test_definitions.py",
    "tests/unit/test_nested.py",
    "tests/property/test_core.py",
    "tests/property/test_engine.py",
    "tests/property/test_bounds.py",
    "tests/property/test_nested.py",
    "tests/property/test_spending.py",
    "tests/property/test_waves.py",
    "tests/property/test_flow.py",
    "tests/property/test_replays.py",
    "tests/property/test_changing_hands.py",
    "tests/property/test_whole_system.py",
    "tests/unit/staged",
    "tests/unit/flow",
    "tests/unit/feature_state",
    "tests/unit/context",
    "tests/unit/engine/test_gate_protection.py",
    "tests/unit/hooks/test_delegations.py",
)
PARTS: dict[str, tuple[str, ...]] = {
    "core": TESTS,
    "stores": ("tests/contract", "tests/crash/test_damaged_journal.py", "tests/unit/cli/test_verify.py"),
    "files": ("tests/crash/test_foreign_edits.py", "tests/unit/engine/test_git_calls.py", "tests/unit/workspace"),
    "workspace": ("tests/unit/workspace", "tests/unit/cli", "tests/property/test_backups.py"),
    "supervise": ("tests/unit/supervise", "tests/crash/test_rogue_agents.py", "tests/crash/test_killed_supervisors.py"),
    "engine": ("tests/unit/engine", "tests/acceptance/test_receipts.py", "tests/acceptance/test_isolation.py"),
}
OF_THEIR_OWN = "TENUTO_MUTANTS_APART"  # set where this process has a PID namespace of its own
MOST_SECONDS = 3.0  # of a mutant's tests, in processor time
LONGEST_TEST = 3.0
EXAMPLES = 40  # of a property: --thorough takes all of them


class Hunt:
    """A plugin: collects as ever, and then does this instead of running the tests."""

    def __init__(self, wanted: list[Mutant], kept: dict[str, str], thorough: bool) -> None:
        self.wanted, self.kept, self.thorough = wanted, kept, thorough
        self.longest, self.most = (4 * LONGEST_TEST, 5 * MOST_SECONDS) if thorough else (LONGEST_TEST, MOST_SECONDS)
        self.reach: dict[
            str, list[tuple[float, float, pytest.Item]]
        ] = {}  # how far it is about something else, seconds, test

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not self.thorough:
            _take_fewer_examples(session.items)
        self._learn(session.items)
        gc.freeze()
        for number, mutant in enumerate(self.wanted, 1):
            tests = self._tests(mutant)
            began = time.monotonic()
            answer = self._try(mutant, tests) if tests else "unreached"
            self.kept[mutant.key()] = answer
            if answer != "killed" or number % 50 == 0:
                print(
                    f"{number}/{len(self.wanted)} {answer:9} {time.monotonic() - began:5.1f} s  {mutant.name}",
                    flush=True,
                )
            if number % 20 == 0:
                save(self.kept)
        save(self.kept)
        return True

    def _learn(self, items: list[pytest.Item]) -> None:
        """Which test comes to which function of core, and how long it takes. A test that fails as things are is left
        out."""
        known = json.loads(REACH.read_text()) if REACH.exists() else {}
        for number, item in enumerate(items, 1):
            stamp = f"{item.nodeid} {item.path.stat().st_mtime_ns} {self.thorough} all"
            passed, spent, came = known.get(stamp) or _learned(item)
            known[stamp] = [passed, spent, sorted(came)]
            if number % 50 == 0 or number == len(items):
                CACHE.parent.mkdir(exist_ok=True)
                REACH.write_text(json.dumps(known))
            if not passed or spent > self.longest:
                print(f"{number}/{len(items)} {'' if passed else 'FAILS '}{spent:.1f} s {item.nodeid}", flush=True)
            if passed and spent <= self.longest:
                for function in came:
                    self.reach.setdefault(function, []).append((spent * len(came), spent, item))

    def _tests(self, mutant: Mutant) -> list[pytest.Item]:
        chosen, total = [], 0.0
        own = f"test_{mutant.module.rpartition('.')[2]}"
        found = self.reach.get(f"{mutant.module}:{mutant.function}", ())
        for _, spent, item in sorted(found, key=lambda one: (one[2].path.stem != own, one[0])):
            total += spent
            chosen.append(item)
            if total > self.most:
                break
        return chosen

    def _try(self, mutant: Mutant, tests: list[pytest.Item]) -> str:
        pid = os.fork()
        if pid == 0:
            _become(mutant, tests, int(self.most * 4))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return {0: "lives", 1: "killed"}.get(code, "killed")  # too long, or the end of the process: seen, too


def _become(mutant: Mutant, tests: list[pytest.Item], limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    signal.alarm(limit * 10)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    status = 3
    try:
        put_in(mutant)
        status = 0 if all(_passes(item) for item in tests) else 1
    finally:
        os._exit(status)


def put_in(mutant: Mutant) -> None:
    module = importlib.import_module(mutant.module)
    found: Any = module
    for part in mutant.function.split("."):
        found = getattr(found, part)
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    found.__code__ = mutant.code()
    # Tests keep pipelines that they have read: of no use where it is the reading that is broken.
    folders = ("tenuto", "tests") if ".pipeline." in mutant.module else ("tenuto",)
    for loaded in [one for name, one in sys.modules.items() if name.startswith(folders)]:
        for value in vars(loaded).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _learned(item: pytest.Item) -> tuple[bool, float, set[str]]:
    came: set[str] = set()
    spent = time.process_time()
    with _listening(came):
        passed = _passes(item)
    spent = time.process_time() - spent
    if passed and 0.2 < spent < LONGEST_TEST:  # the first time it may have loaded something that is there from now on
        again = time.process_time()
        passed = _passes(item)
        spent = min(spent, time.process_time() - again)
    return passed, spent, came


def _take_fewer_examples(items: list[pytest.Item]) -> None:
    from hypothesis import Phase, settings

    quick = (Phase.explicit, Phase.generate)  # that it fails is enough: nobody reads the smallest example
    for item in items:
        test: Any = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        known = getattr(test, "_hypothesis_internal_use_settings", None)
        if known is not None:
            test._hypothesis_internal_use_settings = settings(
                known, max_examples=min(known.max_examples, EXAMPLES), phases=quick
            )


def _passes(item: pytest.Item) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


@contextlib.contextmanager
def _listening(came: set[str]) -> Iterator[None]:
    folder = str(ROOT / "tenuto") + os.sep
    names: dict[Any, str] = {}

    def heard(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            name = names.get(code)
            if name is None:
                path = code.co_filename
                # What is nested in a function is part of it.
                name = (
                    f"{module_of(Path(path))}:{code.co_qualname.partition('.<locals>')[0]}"
                    if path.startswith(folder)
                    else ""
                )
                names[code] = name
            if name:
                came.add(name)

    sys.setprofile(heard)
    try:
        yield
    finally:
        sys.setprofile(None)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def save(kept: dict[str, str]) -> None:
    CACHE.parent.mkdir(exist_ok=True)
    beside = CACHE.with_suffix(".new")
    beside.write_text(json.dumps({**load(), **kept}))  # another part may be tried at the same time
    beside.replace(CACHE)


def load() -> dict[str, str]:
    return dict(json.loads(CACHE.read_text())) if CACHE.exists() else {}


def every(names: list[str], folder: Path = CORE) -> list[Mutant]:
    made: list[Mutant] = []
    for path in sorted(folder.rglob("*.py")):
        if not names or path.stem in names or str(path.relative_to(folder)) in names or path.parent.name in names:
            made += mutants(module_of(path), path.read_text("utf-8"))
    return made


def sampled(made: list[Mutant], size: int) -> list[Mutant]:
    """As many, and the same ones each time; 0: all."""
    return sorted(made, key=lambda mutant: mutant.key())[:size] if size else made


def go_apart(part: str) -> None:
    """Begin anew in a PID namespace of its own: whatever a mutant signals is in there, and ends with it."""
    if part == "core" or OF_THEIR_OWN in os.environ:
        return
    require("unshare", "root")
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m", "prove.mutants"]
    os.execvpe("unshare", [*words, *sys.argv[1:]], {**os.environ, OF_THEIR_OWN: "1"})


def report(made: list[Mutant], kept: dict[str, str]) -> str:
    rows = ["| module | mutants | killed | equivalent | alive | not tried |", "|---|---:|---:|---:|---:|---:|"]
    total = [0] * 5
    for module in sorted({mutant.module for mutant in made}):
        own = [mutant for mutant in made if mutant.module == module]
        same = [mutant for mutant in own if mutant.name in EQUIVALENT]
        told = [kept.get(mutant.key(), "") for mutant in own if mutant.name not in EQUIVALENT]
        counts = [
            len(own),
            told.count("killed"),
            len(same),
            told.count("lives") + told.count("unreached"),
            told.count(""),
        ]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        rows.append(f"| `{module.removeprefix('tenuto.')}` | {' | '.join(f'{count:,}' for count in counts)} |")
    tried = total[0] - total[4]
    score = f"{100 * (total[1] + total[2]) / tried:.1f} %" if tried else "-"
    rows.append(f"| **all** | {' | '.join(f'**{count:,}**' for count in total)} |")
    return f"Of {tried:,} mutants that were tried, {score} are killed or equivalent.\n\n" + "\n".join(rows)


def part_row(part: str, there_are: int, made: list[Mutant], kept: dict[str, str]) -> str:
    told = [kept.get(mutant.key(), "") for mutant in made]
    tried = len(told) - told.count("")
    counts = (there_are, tried, told.count("killed"), told.count("lives"), told.count("unreached"))
    score = f"{100 * told.count('killed') / tried:.0f} %" if tried else "-"
    return f"| `{part}` | {' | '.join(f'{count:,}' for count in counts)} | {score} |"


def publish_part(part: str, row: str) -> None:
    """In its place; the rows of other parts stay."""
    before, _, rest = PAGE.read_text().partition(PARTS_BEGIN)
    table, _, after = rest.partition(PARTS_END)
    rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    rows[part] = row
    head = ["| part | mutants | tried | killed | alive | no test comes there | score |", "|---|" + "---:|" * 6]
    text = "\n".join([*head, *(rows[name] for name in PARTS if name in rows)])
    PAGE.write_text(f"{before}{PARTS_BEGIN}\n{text}\n{PARTS_END}{after}")


def publish(text: str) -> None:
    page = PAGE.read_text()
    if BEGIN not in page:
        page += f"\n## Mutants\n\n{__doc__.splitlines()[0] if __doc__ else ''}\n\n{BEGIN}\n{END}\n"
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m prove.mutants", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("modules", nargs="*", help="names of modules of core/; all when none is named")
    parser.add_argument("--list", action="store_true", help="say which live, and try nothing")
    parser.add_argument("--publish", action="store_true", help="write the score to docs/promises.md, and try nothing")
    parser.add_argument("--again", action="store_true", help="try those that lived, too")
    parser.add_argument("--thorough", action="store_true", help="with all examples and the long tests; implies --again")
    parser.add_argument("--part", choices=PARTS, default="core", help="of which part of Tenuto")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N of its mutants, the same each time")
    parser.add_argument("--tests", nargs="*", help="other tests than those listed here")
    asked = parser.parse_args()
    there_are, kept = every(asked.modules, ROOT / "tenuto" / asked.part), load()
    made = sampled(there_are, asked.sample)
    if asked.publish and asked.part != "core":
        publish_part(asked.part, part_row(asked.part, len(there_are), made, kept))
    elif asked.publish:
        publish(report(made, kept))
    elif asked.list:
        for mutant in made:
            if kept.get(mutant.key()) in ("lives", "unreached") and mutant.name not in EQUIVALENT:
                print(
                    f"{kept[mutant.key()]}  {mutant.module.replace('.', '/')}.py:{mutant.line}  "
                    f"{mutant.function}  {mutant.kind}: {mutant.was}  ->  {mutant.now}"
                )
    else:
        done = ("killed",) if asked.again or asked.thorough else ("killed", "lives", "unreached")
        wanted = [mutant for mutant in made if kept.get(mutant.key()) not in done and mutant.name not in EQUIVALENT]
        go_apart(asked.part)
        tests = asked.tests or [path for path in PARTS[asked.part] if (ROOT / path).exists()]
        with alone():
            pytest.main(
                ["-q", "--tb=native", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
                plugins=[Hunt(wanted, kept, asked.thorough)],
            )
        print(report(made, load()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
