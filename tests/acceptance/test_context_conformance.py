"""The context manager as a tester of its conformance would try it: states made by hand, then each command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.dialects.context.commands import perform, render_answer, render_error
from tenuto.dialects.context.language import parse, split
from tenuto.errors import NotFound

TASKS = "docs/orchestrator/context/tasks"
DEBT = "---\nskipped_phases: [spec-writer]\n---\n\n# Technical Debt\n"


class Repository:
    """The real clock, as people use it: an edit can follow a command within a millisecond."""

    def __init__(self, root: Path) -> None:
        (root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
        self.root = root
        self.workspace = tenuto.open(str(root), by="ada")

    def say(self, text: str) -> str:
        try:
            said = [render_answer(perform(self.workspace.context, parse(command))) for command in split(text)]
        except tenuto.TenutoError as error:
            return render_error(error.message)
        return said[-1]

    def must(self, *texts: str) -> None:
        for text in texts:
            assert not self.say(text).startswith("STATUS: error"), text

    def warnings(self) -> list[str]:
        said, self.workspace.warnings[:] = list(self.workspace.warnings), []
        return said

    def write(self, slug: str, text: str, file: str = "manifest.json") -> None:
        folder = self.root / TASKS / slug
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)

    def edit(self, slug: str, **changes: Any) -> None:
        told = json.loads((self.root / TASKS / slug / "manifest.json").read_text())
        self.write(slug, json.dumps(told | changes))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def error(text: str) -> str:
    return f"STATUS: error\nERROR: {text}"


# ---- LIST sees what others did a moment after us ---------------------------------------------------


@pytest.mark.parametrize("status", ["paused", "waiting_gate", "failed", "completed", "poc-complete", "graduated"])
def test_a_status_set_by_hand_right_after_a_command_is_listed(repository: Repository, status: str) -> None:
    """No time need pass between our write and theirs."""
    repository.must("INIT task: t mode: poc")
    repository.edit("t", status=status)
    assert f"| status: {status} |" in repository.say("LIST")
    assert repository.warnings() == []


def test_a_manifest_that_cannot_be_parsed_is_skipped_each_time_and_named(repository: Repository) -> None:
    repository.must("INIT task: whole", "INIT task: half")
    repository.write("half", '{"name": "half", "sta')
    for _ in range(3):
        listed = repository.say("LIST")
        assert "- whole |" in listed
        assert "half" not in listed
        assert [text for text in repository.warnings() if f"{TASKS}/half/manifest.json" in text and "skipped" in text]
    assert (repository.root / TASKS / "half/manifest.json").read_text() == '{"name": "half", "sta'
    repository.must("STORE task: whole phase: spec content: x")


def test_an_edit_that_is_not_allowed_is_named_by_each_list(repository: Repository) -> None:
    repository.must("INIT task: t")
    repository.edit("t", status="dancing")
    for _ in range(2):
        assert "- t |" in repository.say("LIST")
        assert [text for text in repository.warnings() if f"{TASKS}/t/manifest.json" in text and "dancing" in text]


def test_listing_what_we_wrote_ourselves_looks_into_nothing(repository: Repository) -> None:
    """A file of ours is known by its time: LIST writes no note about it."""
    repository.must("INIT task: t", "START_PHASE phase: a", "LIST")
    with repository.workspace.journal.read() as reader:
        assert reader.marker("context:looked:t") is None


def test_a_legacy_file_with_an_unknown_status_is_named_itself(repository: Repository) -> None:
    repository.write("old", '{"name": "old", "status": "odd", "created_at": "2026-02-02"}', "metadata.json")
    assert "| status: odd | created: 2026-02-02" in repository.say("LIST")
    assert repository.warnings() == [f"{TASKS}/old/metadata.json: unknown status 'odd', shown as it is"]


# ---- a status made by hand, then each command ------------------------------------------------------

START = "START_PHASE phase: architect"
AFTER = {
    "paused": {START: "Cannot start phase while task is paused"},
    "waiting_gate": {START: "Cannot start phase while waiting for gate approval"},
    "failed": {START: "Cannot start phase on failed task"},
    "completed": {START: "Cannot start phase on completed task", "RESUME decision: retry": "Task is already completed"},
    "graduated": {START: "Cannot start phase on graduated task"},
    "poc-complete": {"RETRIEVE for_phase: graduate": "Missing debt.md required for graduation"},
}


@pytest.mark.parametrize("status", AFTER)
def test_a_status_set_by_hand_is_answered_in_the_seeds_words(repository: Repository, status: str) -> None:
    """Only the word is changed: no context of a gate or of a failure beside it."""
    repository.must("INIT task: t mode: poc")
    repository.edit("t", status=status)
    for command, text in AFTER[status].items():
        assert repository.say(command) == error(text)


def test_a_gate_set_by_hand_is_a_gate(repository: Repository) -> None:
    repository.must("INIT task: t")
    repository.edit("t", status="waiting_gate")
    assert repository.say("RESUME decision: retry") == error("Invalid decision: retry. Use approve, reject, or retry")
    assert "\nPREVIOUS_STATE: waiting_gate\n" in repository.say("RESUME decision: approve")
    assert "| status: running |" in repository.say("LIST")


# ---- which of two refusals is said: the seed's order -----------------------------------------------


def test_resume_looks_at_the_status_before_the_decision(repository: Repository) -> None:
    assert repository.say("RESUME decision: maybe") == error("No current task. Use INIT first.")
    repository.must("INIT task: t")
    assert repository.say("RESUME decision: maybe") == error("Task is not paused or waiting for gate")
    assert repository.say("RESUME") == error("Task is not paused or waiting for gate")
    repository.must("PAUSE reason: r recommendations: a")
    assert repository.say("RESUME decision: maybe") == error("Invalid decision: maybe. Use approve, reject, or retry")
    repository.must("RESUME decision: retry", "SET_GATE gate: final prompt: p artifacts: a", "RESUME decision: approve")
    assert repository.say("RESUME decision: maybe") == error("Task is already completed")


def test_set_gate_looks_at_running_phases_before_the_gate(repository: Repository) -> None:
    repository.must("INIT task: t", "START_PHASE phase: a")
    assert repository.say("SET_GATE gate: odd prompt: p") == error("Cannot set gate while phases are running")
    repository.must("END_PHASE phase: a status: success")
    assert repository.say("SET_GATE gate: odd prompt: p") == error("Invalid gate type: odd")


def test_a_poc_whose_folder_lost_a_file_does_not_graduate(repository: Repository) -> None:
    """Each of the three files, in the seed's order; `tenuto repair` or a STORE brings them back."""
    repository.must(
        "INIT task: t mode: poc",
        "STORE phase: architect content: a",
        "STORE phase: implementation content: i",
        f"STORE phase: debt content: {DEBT}",
    )
    folder = repository.root / TASKS / "t"
    for file, text in (
        ("implementations/task-001.md", "implementation files"),
        ("architect.md", "architect.md"),
        ("debt.md", "debt.md"),
    ):
        (folder / file).unlink()
        assert repository.say("RETRIEVE for_phase: graduate") == error(f"Missing {text} required for graduation")


# ---- slips -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("START_PHASE phase architect", "phase"),
        ("INIT task dark mode", "task"),
        ("RESUME decision approve", "decision"),
    ],
)
def test_a_key_without_its_colon_is_refused_not_guessed(repository: Repository, command: str, key: str) -> None:
    repository.must("INIT task: t")
    assert repository.say(command).startswith(error(f"Missing colon after {key}: "))


def test_blanks_around_the_colon_of_a_phase_mean_nothing(repository: Repository) -> None:
    repository.must("INIT task: t", "START_PHASE phase: implementer : task-2")
    assert repository.say("END_PHASE phase: implementer:task-2 status: success").startswith("STATUS: success")


def test_two_phases_in_one_command_are_refused(repository: Repository) -> None:
    repository.must("INIT task: t")
    assert repository.say("START_PHASE phase: a, b") == error("Invalid phase: a, b. One phase per command")


@pytest.mark.parametrize("given", ["0", "000", "task-0", "1.5", "../x", "a/b"])
def test_a_task_id_that_is_no_number_and_no_name_is_refused(repository: Repository, given: str) -> None:
    """It would become another file than the one that was meant."""
    repository.must("INIT task: t")
    assert repository.say(f"STORE phase: implementation task_id: {given} content: x") == error(
        f"Invalid task_id: {given}. Use a number from 1"
    )


@pytest.mark.parametrize("value", ["[1, 2]", '"see below"', "null", "7"])
def test_a_breakdown_that_is_no_object_is_refused_and_the_document_is_not_stored(
    repository: Repository, value: str
) -> None:
    repository.must("INIT task: t")
    said = repository.say(f'STORE phase: architect content: {{"taskBreakdown": {value}}}')
    assert said == error("Invalid taskBreakdown: it is no object")
    assert not list(repository.root.rglob("architect.md"))


def test_commands_after_an_error_are_not_run_and_that_is_said(repository: Repository) -> None:
    text = "INIT task: t\nSTART_PHASE\nINIT task: u\n"
    done = subprocess.run(
        [sys.executable, "-m", "tenuto", "context", "-"],
        cwd=repository.root,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "commands are run up to the first error; what follows it was not run" in done.stderr
    assert not (repository.root / "docs/orchestrator/context/tasks/u").exists()


def test_a_negative_task_id_does_not_replace_the_first_task(repository: Repository) -> None:
    repository.must("INIT task: t", "STORE phase: implementation task_id: 1 content: first")
    assert repository.say("STORE phase: implementation task_id: -1 content: x") == error(
        "Invalid task_id: -1. Use a number from 1"
    )
    assert (repository.root / TASKS / "t/implementations/task-001.md").read_text() == "first"


# ---- drift -----------------------------------------------------------------------------------------


def test_numbers_in_quotes_are_numbers(repository: Repository) -> None:
    phases = [{"name": "architect", "status": "success", "duration_ms": "61000"}]
    repository.write("t", json.dumps({"name": "t", "completed_phases": phases, "metrics": {"total_retries": "3"}}))
    said = repository.say("METRICS filter: t")
    assert "Sequential Est:     1m 01s" in said
    assert "Retries:            3" in said


@pytest.mark.parametrize("text", ["one\n", "# Current Task: one\n\nIts summary.\n", "Task: `one`\n"])
def test_the_pointer_may_hold_little_more_than_a_name(repository: Repository, text: str) -> None:
    repository.must("INIT task: one", "INIT task: two")
    (repository.root / "docs/orchestrator/context/current-task.md").write_text(text)
    assert "\nTASK: one\n" in repository.say("SUMMARY")


# ---- condensed, and nothing lost -------------------------------------------------------------------

RUN_IN = """**Design: currency formatter**

*Decisions.* Integer minor units throughout.

*Signatures.* In the order of their use:

~~~rust
pub enum Currency { Eur, Usd, Jpy }
pub fn parse(s: &str) -> Result<Money, ParseError>;
~~~

As well as, in other places,

~~~
impl Money { pub fn checked_add(self, o: Money) -> Option<Money>; }
namespace pay { int charge(const Card& c, long cents); }
~~~

*Edge cases.* (1) The smallest number must format without overflow. (2) An unknown locale falls back to "en".
(3) Empty input is `ParseError::Empty`.

*Background.* Before this change every part had its own formatter, and no two agreed about negative numbers.
Eleven of them were counted, by hand, over two summers, in a table that is still worth reading for other reasons.
"""


@pytest.mark.parametrize("phase", ["implementation", "testing"])
def test_labels_set_into_their_paragraph_and_blocks_on_one_line_are_read(repository: Repository, phase: str) -> None:
    """Each signature and each edge case, also one on the second line of its paragraph: a text without headings is
    handed over whole, and flagged."""
    repository.must("INIT task: t", f"STORE phase: spec content: {RUN_IN}")
    pack = repository.say(f"RETRIEVE needs: spec for_phase: {phase}")
    for needed in (
        "enum Currency",
        "fn parse",
        "checked_add",
        "int charge",
        "overflow",
        'back to "en"',
        "ParseError::Empty",
    ):
        assert needed in pack
    assert "whole: it has no headings" in pack


def test_the_history_of_a_task_that_is_not_there_is_refused(repository: Repository) -> None:
    repository.must("INIT task: t")
    assert repository.say("HISTORY task: nope") == error("No task found with slug: nope")
    assert "Task Initialized" in repository.say("HISTORY task: t")


def test_metrics_of_a_task_whose_manifest_was_taken_away(tmp_path: Path) -> None:
    """METRICS names the missing manifest; the next command writes it anew."""
    workspace = tenuto.open(str(tmp_path))
    workspace.context.init("Dark mode")
    manifest = tmp_path / "docs/orchestrator/context/tasks/dark-mode/manifest.json"
    manifest.unlink()
    with pytest.raises(NotFound, match="Manifest not found for task: dark-mode"):
        workspace.context.metrics()
    assert not manifest.exists()
    workspace.context.start_phase("architect")
    assert manifest.exists()
