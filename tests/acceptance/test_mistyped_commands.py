"""Every hot command, with everything that can be mistyped: it is said, and nothing happens.

The table is the product of all commands, as their own lists of options name them, and the kinds of mistakes. Each one
is tried in a repository with work in it, whose files and journal stay as they were, and in an empty folder, which stays
empty.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tenuto
from tenuto.entrypoints import feature, flow, hook_declare, staged
from tenuto.entrypoints.launch import answer
from tenuto.entrypoints.options import Command

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS: dict[str, dict[str, Command]] = {
    "flow": flow.TAKES,
    "staged": staged.TAKES,
    "feature": feature.TAKES,
    "hook": {"declare": hook_declare.DECLARE},
}
COMMANDS = [(program, name) for program, commands in PROGRAMS.items() for name in commands]


class Case(NamedTuple):
    words: list[str]
    status: int
    says: str
    piped: str = ""


def cases(program: str, name: str) -> Iterator[Case]:
    command = PROGRAMS[program][name]
    here = [program, name]
    yield Case([*here, "--zzqqzz"], 2, "does not know --zzqqzz")
    yield Case([*here, "--zzqqzz=1"], 2, "does not know --zzqqzz")
    yield Case([*here, "-q"], 2, "does not know -q")
    yield Case([*here, "-json"], 2, "does not know -json")
    yield Case([*here, "--json=1"], 2, "takes no value")
    for option, kind in command.options.items():
        dashed = f"-{option}" if len(option) == 1 else f"--{option}"
        if len(option) > 1:
            yield Case([*here, f"--{option[1]}{option[0]}{option[2:]}", "x"], 2, "did you mean --")
            yield Case([*here, f"--{option}q"], 2, "did you mean --")
        if kind.kind not in ("flag", "switch"):
            yield Case([*here, dashed], 2, f"{dashed} needs a value: nothing follows it")
            yield Case([*here, dashed, "--follows"], 2, f"{dashed} needs a value: --follows is an option")
        if kind.kind not in ("flag", "texts"):
            value = "true" if kind.kind == "switch" else "1"
            yield Case([*here, f"{dashed}={value}", f"{dashed}={value}"], 2, "is given twice")
        yield Case([*here, dashed, "x", "--help"], 0, "")
    for word in ("--help", "-h"):
        yield Case([*here, word], 0, "")
        yield Case([program, word, name], 0, "")
        yield Case([*here, "--zzqqzz", word], 0, "")
    if not any(field.endswith(("...", "[]")) for field in command.plain):
        yield Case([*here, "a", "b", "c"], 2, "there is no place for")
    refused = "takes nothing from standard input"
    for piped, says in (
        ('{"zzqqzz": 1}', "a review needs a status" if command.is_open else "does not know the field 'zzqqzz'"),
        ("garbage", "this is not JSON"),
        ("[1, 2]", "this is no JSON object"),
        ('{"a": 1', "this is not JSON"),
        ('{"a": 1, "a": 2}', "this is not JSON"),
    ):
        needed = "" if program == "hook" or not command.required else "x"
        words = [*here, *([needed] if command.words_only and needed else [])]
        yield Case(words, 2, refused if command.words_only else says, piped)


def say(
    words: list[str], piped: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> tuple[int, str, str]:
    file = folder.parent / "standard-input"
    file.write_text(piped)
    capsys.readouterr()
    with file.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        monkeypatch.chdir(folder)
        status = answer(words)
    return status, *capsys.readouterr()


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.suffix != ".db-shm"}


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a ticket, a task and a feature."""
    root = tmp_path_factory.mktemp("worked-in")
    workspace: Any = tenuto.open(str(root))
    workspace.flow.initialize_workflow("T-1")
    workspace.flow.update_delegation("T-1", agent="plan_work", task="plan")
    workspace.staged.init("Dark mode", pipelineProfile="minimal")
    workspace.feature_state.start("Login", "")
    workspace.journal.close()
    return root


@pytest.mark.parametrize(("program", "name"), COMMANDS, ids=[" ".join(pair) for pair in COMMANDS])
def test_a_mistake_is_said_and_nothing_happens(
    program: str,
    name: str,
    worked_in: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    before = contents(worked_in)
    tried = 0
    for case in cases(program, name):
        for folder in (worked_in, empty):
            status, out, err = say(case.words, case.piped, monkeypatch, capsys, folder)
            assert (status, case.says in err) == (case.status, True), (case, status, out, err)
            assert bool(out) == (case.status == 0), case
            if status:
                assert "try: " in err, case
        assert contents(worked_in) == before, case
        assert list(empty.iterdir()) == [], case
        tried += 1
    assert tried > 15


def test_the_repository_does_take_what_is_typed_rightly(
    worked_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control: the same door, the same folder, and something happens."""
    before = contents(worked_in)
    assert say(["staged", "update", "--webSearch", "false"], "", monkeypatch, capsys, worked_in)[0] == 0
    assert contents(worked_in) != before


LOOKS = [
    ["flow", "get_current_state"],
    ["flow", "update_phase", "--phase", "planning"],
    ["flow", "update_delegation", "--agent", "x"],
    ["flow", "resume_workflow", "T-1"],
    ["flow", "initialize_workflow"],
    ["staged", "read"],
    ["staged", "advance"],
    ["staged", "update", "--webSearch", "false"],
    ["staged", "record-output", "0", "--content", "x"],
    ["staged", "init", "--task", "x", "--pipelineProfile", "huge"],
    ["feature", "status"],
    ["feature", "resume"],
    ["feature", "done", "spec"],
    ["feature", "start", "x", "--skip", "plan"],
    ["feature", "task", "1", "completed"],
    ["context", "LIST"],
    ["context", "RETRIEVE phase: spec"],
    ["context", "START_PHASE phase: spec"],
    ["hook", "declare"],
    ["hook", "SubagentStop"],
    ["list"],
    ["status"],
    ["adopt"],
]


@pytest.mark.parametrize("words", LOOKS, ids=map(" ".join, LOOKS))
def test_what_fails_or_only_looks_leaves_no_journal_behind(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal here would own every folder below it."""
    empty = tmp_path / "empty"
    empty.mkdir()
    say(words, "", monkeypatch, capsys, empty)
    assert list(empty.iterdir()) == []


# ---- what is typed rightly ---------------------------------------------------------------------------


RIGHTLY: list[tuple[list[str], str, dict[str, object]]] = [
    (["update_completion", "T-1", "--agent", "a"], '{"status": "failed"}', {"agent": "a", "status": "failed"}),
    (["update_completion", '{"agent": "a", "status": "failed"}'], "", {"agent": "a", "status": "failed"}),
    (["update-completion", "--agent=-a"], "", {"agent": "-a"}),
    (["update_completion", "--agent", "- a"], "", {"agent": "- a"}),
    (["update_completion", "--agent", "a", "--step-number", "-1"], "", {"agent": "a", "step_number": -1}),
    (["update_completion", "--agent", "a", "--Output-Summary", "x"], "", {"agent": "a", "output_summary": "x"}),
    (["update_completion", "--agent", "a", "--", "--json"], "", {"agent": "a", "ticket": "--json"}),
    (["--json", "update_completion", "--agent", "a"], "", {"agent": "a"}),
    (["-"], '{"command": "update_completion", "agent": "a"}', {"agent": "a"}),
    ([], '{"command": "update_completion", "agent": "a"}', {"agent": "a"}),
]


@pytest.mark.parametrize(("words", "piped", "fields"), RIGHTLY, ids=[" ".join(words) for words, _, _ in RIGHTLY])
def test_every_word_becomes_a_field(
    words: list[str], piped: str, fields: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenuto.entrypoints.options import read_call

    (tmp_path / "in").write_text(piped)
    with (tmp_path / "in").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        call = read_call("flow", "command", flow.TAKES, words, "")
    assert call is not None and call.name == "update_completion"
    assert {key: value for key, value in call.fields.items() if value != "T-1"} == fields


def test_a_stream_without_a_descriptor_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.entrypoints.options import read_call

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"agent": "a"}')))
    call = read_call("flow", "command", flow.TAKES, ["update_completion", "-"], "")
    assert call is not None and call.fields == {"agent": "a"}


# ---- the commands of `tenuto context` are a language of their own; what is piped in is read the same way --------


def piped(folder: Path, text: str, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tenuto", "context", *words],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["LIST"], '{"filter": "x"}'),
        (["PAUSE reason: r"], '{"recommendations": "wait"}'),
        (["STORE phase: spec content: here"], "and there"),
        (["--content-file", "spec.md", "STORE phase: spec"], "and there"),
        (["STORE phase: spec", "STORE phase: architect"], "whose?"),
    ],
)
def test_what_is_piped_in_beside_a_context_command_is_not_dropped(words: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "spec.md").write_text("# Spec\n")
    assert piped(tmp_path, "", "INIT task: t")[0] == 0
    before = contents(tmp_path / "docs")
    status, out = piped(tmp_path, text, *words)
    assert status == 1 and "ERROR: Standard input is read by: tenuto context -" in out
    assert contents(tmp_path / "docs") == before


@pytest.mark.parametrize("words", [["PAUSE reason: r", "--content-fle", "x"], ["LIST", "--jsn"], ["--jsn", "LIST"]])
def test_an_option_that_context_does_not_know_is_no_part_of_the_text(words: list[str], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert piped(tmp_path, "", "INIT task: t")[0] == 0
    before = contents(tmp_path / "docs")
    status, out = piped(tmp_path, "", *words)
    assert status == 1 and "Unknown option: --" in out
    assert contents(tmp_path / "docs") == before


def test_a_store_without_content_and_a_call_without_words_take_what_is_piped_in(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert piped(tmp_path, "INIT task: t\nSTART_PHASE phase: architect\n")[0] == 0
    assert piped(tmp_path, "# Design\n", "STORE phase: architect")[0] == 0
    assert (tmp_path / "docs/orchestrator/context/tasks/t/architect.md").read_text() == "# Design\n"
    assert piped(tmp_path, "\n", "END_PHASE phase: architect status: success")[0] == 0
