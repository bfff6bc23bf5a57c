"""Promise 14: any input is answered or refused by name.

Commands of all five dialects, hook payloads, calls of MCP tools, state files, pipelines and settings: drawn at random,
half of them nearly right, so that they get past the first check. Each is given to the entry point that users reach; an
answer must be printable, and anything but an answer must be one of Tenuto's own errors, with a code. Everything else
would be a traceback, or the words "unexpected".

A repository is used for some hundred inputs, so that inputs meet the state that earlier ones left. The broken
variant refuses with an error that has no name.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prove.frame import Amount, Progress, Result, alone, dice, merged, place, spread
from prove.fuzz import FEATURE, FLOW, FLOW_FIELDS, HOOKS, NUMBERS, STAGED, STAGED_FIELDS, Fuzz
from prove.looking import impatient, opened
from prove.scenes import PIPELINE
from tenuto.encoding import NotJson, dumps, loads_strict
from tenuto.entrypoints.launch import HOT
from tenuto.entrypoints.options import Call, Command, read_call
from tenuto.entrypoints.speak import explain, failure, success, understand
from tenuto.errors import TenutoError

FULL, SAMPLE = 1_000_000, 4_000
CHUNK = 2_500
A_REPOSITORY = 400  # inputs
FILES = {
    "context": (
        "docs/orchestrator/context/tasks/dark-mode/manifest.json",
        "docs/orchestrator/context/current-task.md",
        "docs/orchestrator/context/history.md",
    ),
    "flow": (".ai-workspace/T-1/flow-state.json",),
    "staged": (".agents/tmp/state.json",),
    "feature": (".feature-state.json",),
    "docs": ("docs/feature/add-dark-mode/memory.md", "docs/feature/add-dark-mode/initial-request.md"),
}
# Commands that look, and those that lead a run of the documents' dialect. None that writes where its user says (export
# -o).
NAMES = (
    "list",
    "status",
    "history",
    "metrics",
    "artifacts",
    "memory",
    "show",
    "plan",
    "pause",
    "resume",
    "logs",
    "adopt",
    "verify",
    "run",
    "next",
    "report",
    "approve",
    "reject",
    "revise",
    "answer",
    "retry",
    "release",
    "cancel",
    "fork",
    "replay",
    "repair",
    "init",
    "clean",
    "forget",
    "pipeline",
    "page",
    "trust",
    "runs",
    "costs",
    "diff",
    "pr",
    "config",
    "pipelines",
    "roles",
    "help",
    "queue",
    "workers",
    "attempt",
    "move",
    "join",
)
WORDS = (
    "--json",
    "dark-mode",
    "add-dark-mode",
    "prove",
    "first",
    "first-1-implementer-1",
    "--run",
    "--pipeline",
    "--name",
    "--start-only",
    "--at",
    "--feedback",
    "--verdict",
    "DONE",
    "--summary",
    "--reply",
    "--no-drive",
    "--reason",
    "--restore",
    "--no-input=approve",
    "--sign-with",
    "--as",
    "--cat",
    "--format",
    "--all",
    "--limit",
    "attempts=3",
    "-",
)


def prove(amount: Amount, tell: Progress) -> Result:
    total = FULL if amount.full else SAMPLE
    chunk = CHUNK if amount.full else 1_000
    jobs = [(number, chunk, False) for number in range(total // chunk)]
    return merged(spread(_chunk, jobs, amount.jobs, tell))


def control(amount: Amount) -> Result:
    return _chunk((0, 600, True))


def _chunk(job: tuple[int, int, bool]) -> Result:
    number, count, broken = job
    fuzz = Fuzz(dice("input", number))
    kinds = dict.fromkeys(("answered", "refused by name"), 0)
    violations: list[str] = []
    with alone(), place() as work, impatient(), _broken(broken):
        here = os.getcwd()
        try:
            for begun in range(0, count, A_REPOSITORY):
                root = _begin(work / f"repository-{begun}")
                os.chdir(root)
                with opened(root) as workspace:
                    user = User(root, workspace, fuzz)
                    for at in range(begun, min(begun + A_REPOSITORY, count)):
                        verdict = user.try_one()
                        if verdict in kinds:
                            kinds[verdict] += 1
                        else:
                            violations.append(f"input {at} of chunk {number}: {verdict}")
                os.chdir(here)
                shutil.rmtree(root, ignore_errors=True)
        finally:
            os.chdir(here)
    return Result(count, violations, {kind: f"{found:,}" for kind, found in kinds.items()})


def _begin(root: Path) -> Path:
    (root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "prove.yaml").write_text(PIPELINE)
    with opened(root) as workspace:
        workspace.context.init("Dark mode")
        workspace.flow.initialize_workflow("T-1")
        workspace.staged.init("Dark mode", pipelineProfile="minimal")
        workspace.feature_state.start("OAuth login", "Sign in")
        with workspace.turn() as turn:
            where = {"feature_docs": {"tree": "", "folder": "docs/feature/add-dark-mode"}}
            turn.do(
                "add-dark-mode",
                {
                    "do": "StartRun",
                    "run": "add-dark-mode",
                    "name": "add-dark-mode",
                    "pipeline": {"name": "prove", "hash": None},
                    "dialects": where,
                },
            )
    return root


class User:
    """Somebody who types anything. Each way in is a method that makes a call; `try_one` judges what came of it."""

    def __init__(self, root: Path, workspace: Any, fuzz: Fuzz) -> None:
        self.root, self.workspace, self.fuzz = root, workspace, fuzz
        self.ways: list[tuple[Callable[[], tuple[str, Callable[[], Any]]], float]] = [
            (self.context, 0.30),
            (self.flow, 0.24),
            (self.staged, 0.10),
            (self.feature, 0.10),
            (self.hook, 0.16),
            (self.file, 0.08),
            (self.program, 0.01),
            (self.definition, 0.01),
            (self.mcp, 0.005),
        ]

    def try_one(self) -> str:
        way = self.fuzz.dice.choices([way for way, _ in self.ways], [weight for _, weight in self.ways])[0]
        label, call = way()
        try:
            with contextlib.redirect_stdout(_paper()), contextlib.redirect_stderr(_paper()):
                answer = call()
                success(answer).encode()
            return "answered"
        except TenutoError as error:
            return self._named(label, error)
        except NotJson as error:
            if way != self.hook:  # whose entry point says so in its own words
                return f"{label}: {error!r} at {_where(error)}"
            return "refused by name"
        except (Exception, SystemExit) as error:  # noqa: BLE001  that is what is looked for
            understood = understand(error)
            where = _where(error)
            return (
                self._named(label, understood) if understood.code != "unexpected" else f"{label}: {error!r} at {where}"
            )
        finally:
            self.workspace.warnings.clear()

    def _named(self, label: str, error: TenutoError) -> str:
        try:
            explain(error).encode()
            failure(error).encode()
        except Exception as again:  # noqa: BLE001  a refusal that cannot be printed is a traceback, too
            return f"{label}: {error.code} cannot be said: {again!r}"
        return "refused by name" if error.code and error.message else f"{label}: a refusal without a name"

    # -- the ways in

    def context(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.dialects.context.commands import json_answer, perform, render_answer
        from tenuto.dialects.context.language import parse, split

        text = self.fuzz.context()

        def call() -> Any:
            records = [perform(self.workspace.context, parse(command)) for command in split(text)]
            return [(json_answer(record), render_answer(record)) for record in records]

        return f"context {text[:300]!r}", call

    def flow(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.entrypoints.flow import TAKES

        command, fields = self.fuzz.dice.choice(FLOW), self.fuzz.fields(FLOW_FIELDS)
        if self.fuzz.dice.random() < 0.8:  # most of them get past the reader
            fields = {name: value for name, value in fields.items() if name in TAKES[command].options}
        if self.fuzz.dice.random() < 0.4:
            words = [command, *self.fuzz.words(), *(f"--{name}={_word(value)}" for name, value in fields.items())]

            def typed() -> Any:
                name, fields = _read("flow", TAKES, words)
                return getattr(self.workspace.flow, name)(fields.pop("ticket", ""), **fields)

            return f"flow {words!r}"[:400], typed
        words = [command, *([_word(fields.pop("ticket"))] if "ticket" in fields else ["T-1"]), "-"]

        def piped() -> Any:
            name, read = _read("flow", TAKES, words, dumps(fields).encode())
            return getattr(self.workspace.flow, name)(read.pop("ticket", ""), **read)

        return f"flow {words!r} < {fields!r}"[:400], piped

    def staged(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.entrypoints.staged import OPERATIONS, TAKES

        name, fields = self.fuzz.dice.choice(STAGED), self.fuzz.fields(STAGED_FIELDS)
        is_typed, plain = self.fuzz.dice.random() < 0.4, [_word(word) for word in self.fuzz.words() if word != "-"]
        if self.fuzz.dice.random() < 0.8:  # most of them get past the reader
            fields = {key: value for key, value in fields.items() if key in TAKES[name].options}
            plain = plain[: len(TAKES[name].plain)]
        words = [name, *plain]
        if is_typed:
            words += [f"--{key}={_word(value)}" for key, value in fields.items()]
        else:
            words.append("-")

        def call() -> Any:
            _, read = _read("staged", TAKES, words, b"" if is_typed else dumps(fields).encode())
            return OPERATIONS[name](self.workspace.staged, read)

        return f"staged {words!r} {fields!r}"[:400], call

    def feature(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.entrypoints.feature import TAKES, VERBS, show

        verb = self.fuzz.dice.choice(FEATURE)
        known = (
            "problem",
            "users",
            "approval",
            "--approve",
            "add",
            "1",
            "2",
            "completed",
            "spec",
            "plan",
            "discovery",
            "--next",
            "--skip",
        )
        words = [
            self.fuzz.dice.choice(known) if self.fuzz.dice.random() < 0.6 else self.fuzz.text()
            for _ in range(self.fuzz.dice.randrange(5))
        ]
        words = [word for word in words if word != "-"]

        def call() -> Any:
            _, fields = _read("feature", TAKES, [verb, *words])
            answer = VERBS[verb](self.workspace, fields)
            show(verb, answer, False)
            return answer

        return f"feature {verb} {words!r}"[:400], call

    def hook(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.hooks.call import answer
        from tenuto.hooks.parse import parse_hook

        event, payload = self.fuzz.dice.choice(HOOKS), self.fuzz.payload()
        text = dumps(payload).encode() if self.fuzz.dice.random() < 0.9 else self.fuzz.file(dumps(payload).encode())

        def call() -> Any:
            given = loads_strict(text) if text.strip() else {}
            if not isinstance(given, dict):
                raise NotJson("the payload is no object")
            call = parse_hook(event, given)
            return answer(self.workspace, call) if call["event"] else ""

        return f"hook {event} {text[:400]!r}", call

    def file(self) -> tuple[str, Callable[[], Any]]:
        """Somebody rewrites a state file; then a turn looks at it. Afterwards it is put back."""
        name = self.fuzz.dice.choice(list(FILES))
        path = self.root / self.fuzz.dice.choice(FILES[name])
        before = path.read_bytes() if path.is_file() else b""
        damaged = self.fuzz.file(before)

        def call() -> Any:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(damaged)
            try:
                with self.workspace.journal.read() as reader:
                    runs = [run for run, _ in reader.open_runs()]
                for run in runs:
                    with self.workspace.turn() as turn:
                        turn.run(run)
                return runs
            except TenutoError:
                path.write_bytes(before)
                raise

        return f"file {path.relative_to(self.root)} {damaged[:300]!r}", call

    def program(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.entrypoints.cli.program import run

        dice = self.fuzz.dice
        words = [
            dice.choice(NAMES),
            *(dice.choice(WORDS) if dice.random() < 0.6 else self.fuzz.text() for _ in range(dice.randrange(5))),
        ]
        words = [word for word in words if "\0" not in word]

        def call() -> Any:
            said = _paper()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), _standard_input(b""):
                status = run(words, HOT)
                said.flush()
            text = said.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
            if "[unexpected]" in text or '"unexpected"' in text or "Traceback" in text:
                raise AssertionError(text[:400])
            return status

        return f"tenuto {words!r}"[:400], call

    def mcp(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.entrypoints.mcp.calls import Desk

        dice, desk = self.fuzz.dice, Desk(self.workspace)
        tool = dice.choice(desk.tools)
        shape: Any = tool.arguments
        needed = shape.get("required", ())
        given: Any = {
            name: self._argument(name, kind)
            for name, kind in shape["properties"].items()
            if name in needed or dice.random() < 0.5
        }
        if dice.random() < 0.1:
            given = {**given, self.fuzz.text(): self.fuzz.value(2)} if dice.random() < 0.7 else self.fuzz.value(2)
        return f"mcp {tool.name} {given!r}"[:400], lambda: desk.call(tool.name, given)

    def _argument(self, name: str, schema: Any) -> Any:
        """Mostly of the right type: what is not is refused before anybody looks at it."""
        dice = self.fuzz.dice
        if dice.random() < 0.15:
            return self.fuzz.value(2)
        if name in ("run", "artifact", "pipeline", "attempt") and dice.random() < 0.7:
            return dice.choice(("dark-mode", "t-1", "add-dark-mode", "prove", "spec", "first-1-implementer-1"))
        match schema["type"]:
            case "integer":
                return dice.choice(NUMBERS)
            case "boolean":
                return dice.random() < 0.5
            case "array":
                return [self._argument("", schema["items"]) for _ in range(dice.randrange(3))]
            case "object":
                return {
                    key: self._argument(key, kind) for key, kind in schema["properties"].items() if dice.random() < 0.5
                }
        return dice.choice(schema["enum"]) if "enum" in schema else self.fuzz.plausible(name)

    def definition(self) -> tuple[str, Callable[[], Any]]:
        from tenuto.knowledge import definitions
        from tenuto.workspace.settings import read_settings

        text = self.fuzz.file(
            PIPELINE.encode() if self.fuzz.dice.random() < 0.5 else b"agent: command:x\nroles: {a: b}\ngates: signed\n"
        )
        settings = self.fuzz.dice.random() < 0.5
        path = self.root / ".tenuto" / ("config.yaml" if settings else "pipelines/prove.yaml")
        known = path.read_bytes() if path.exists() else b""

        def call() -> Any:
            path.write_bytes(text)
            try:
                return read_settings(str(self.root)) if settings else bool(definitions.load("prove", self.root))
            finally:
                path.write_bytes(known)

        return f"{path.name} {text[:300]!r}", call


def _paper() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", "replace")


def _read(program: str, takes: dict[str, Command], words: list[str], piped: bytes = b"") -> tuple[str, Any]:
    with _standard_input(piped):
        call = read_call(program, "command", takes, words, "")
    assert isinstance(call, Call), f"{words!r} showed help"
    return call.name, call.fields


@contextlib.contextmanager
def _standard_input(text: bytes) -> Iterator[None]:
    kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text))
    try:
        yield
    finally:
        sys.stdin = kept


def _word(value: Any) -> str:
    try:
        return value if isinstance(value, str) else dumps(value)
    except (ValueError, RecursionError):
        return "?"


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/tenuto/')[2]}:{trace.tb_lineno}" if trace else "?"


@contextlib.contextmanager
def _broken(on: bool) -> Iterator[None]:
    """The promise broken on purpose: the context manager refuses with an error of Python's own."""
    if not on:
        yield
        return
    from tenuto.dialects import context

    modules = [
        importlib.import_module(f"{context.__name__}.{found.name}") for found in pkgutil.iter_modules(context.__path__)
    ]
    patched = [(module, vars(module)["wrong"]) for module in modules if "wrong" in vars(module)]
    for module, _ in patched:
        vars(module)["wrong"] = _nameless
    try:
        yield
    finally:
        for module, kept in patched:
            vars(module)["wrong"] = kept


def _nameless(*said: Any) -> Any:
    raise KeyError(said)
