"""Any command, any file: an answer or a refusal with a text, never a traceback, and never a half-done thing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.dialects.context.language import COMMANDS
from tests.unit.context.conftest import TASKS, Repository

FEW = settings(max_examples=settings().max_examples * 2 // 5)

ODD = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            " ",
            "none",
            "null",
            "0",
            "-1",
            "1",
            "999999999999",
            "1e9",
            "../../etc",
            "/etc/passwd",
            "a/b",
            ".",
            "..",
            "con",
            "\x00",
            "\x1b[31m",
            "\u202eabc",
            "\ud800",
            "x" * 300,
            "é" * 130,
            "a:b",
            "a,b",
            "'",
            '"',
            "<<END",
            "a\nb",
            "task-1",
            "design",
            "final",
            "approve",
            "retry",
            "success",
            "failed",
            "poc",
            "architect",
            "spec",
            "debt",
            "design-audit",
            "json",
            "detailed",
            "manifest",
            "memory",
            "all",
            "resume",
            "graduate",
            "[",
            "{}",
            "---\na: 1\n---\n",
            '{"taskBreakdown": {"tasks": 7}}',
            '{"verdict": "PASS"}',
            "t",
        ]
    ),
)


@st.composite
def commands(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(COMMANDS)))
    keys = draw(st.lists(st.sampled_from([*COMMANDS[name]["keys"], "bogus"]), max_size=4, unique=True))
    return " ".join([name, *(f"{key}: {draw(ODD)}" for key in sorted(keys, key=lambda key: key == "content"))])


@given(st.lists(st.one_of(commands(), commands(), st.text(max_size=40)), min_size=1, max_size=8))
@FEW
def test_any_command_is_answered_or_refused(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        repository.must("INIT task: t mode: poc", "START_PHASE phase: a", "END_PHASE phase: a status: success")
        for text in texts:
            said = repository.say(text)
            assert said
            assert said.startswith(("STATUS: ", "TASKS:", "METRICS: ", "{"))
        outside = [path for path in Path(folder).iterdir() if path.name != "repository"]
        assert not outside, "something was written outside the repository"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "name mode workflow status current_phase running_phases completed_phases failure_context gate_context "
    "metrics waves created_at"
    " updated_at graduated_at mystery"
).split()
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "phase": JSON,
        "name": JSON,
        "status": JSON,
        "started_at": JSON,
        "ended_at": JSON,
        "duration_ms": JSON,
        "retries": JSON,
    },
)
INNER = st.dictionaries(
    st.sampled_from(
        (
            "task_breakdown execution tasks total_retries total_duration_ms phase reason recommendations gate "
            "prompt artifacts options x"
        ).split()
    ),
    JSON
    | st.fixed_dictionaries({"tasks": st.lists(st.fixed_dictionaries({"id": JSON, "dependencies": JSON}), max_size=2)}),
    max_size=4,
)
VALUE = JSON | INNER | st.lists(ENTRY | INNER, max_size=2)
LOOKS = (
    "LIST",
    "SUMMARY task: t",
    "METRICS filter: t",
    "METRICS format: detailed filter: t",
    "RETRIEVE for_phase: resume task: t",
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=8), st.lists(ENTRY, max_size=3), st.booleans())
@FEW
def test_any_manifest_is_adopted_and_can_be_worked_with(told: dict[str, Any], entries: list[Any], legacy: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        if entries:
            told = {**told, "completed_phases": entries}
        repository.write(f"{TASKS}/t/{'metadata' if legacy else 'manifest'}.json", json.dumps(told))
        for command in LOOKS:
            if legacy and command.startswith("METRICS"):  # nothing was measured, and no zeros are made up
                assert "Manifest not found for task: t" in repository.say(command)
            else:
                assert not repository.say(command).startswith("STATUS: error"), command
        repository.must("STORE task: t phase: spec content: x")
        after = repository.manifest("t")
        for key in set(told) - set(KEYS[:-1]):
            assert after[key] == told[key]
        assert after["completed_phases"][: len(entries)] == entries
        for command in LOOKS:
            assert not repository.say(command).startswith("STATUS: error"), command


@given(
    st.sampled_from([*KEYS, "another"]), VALUE, st.sampled_from(["running", "paused", "waiting_gate", "poc-complete"])
)
@FEW
def test_any_edit_of_a_manifest_is_absorbed_or_left_alone(key: str, value: Any, status: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        repository.must("INIT task: t mode: poc", "START_PHASE phase: a", "END_PHASE phase: a status: success")
        repository.must(
            *{
                "running": (),
                "paused": ("PAUSE reason: x",),
                "waiting_gate": ("SET_GATE gate: design prompt: ok?",),
                "poc-complete": ("STORE phase: debt content: ---\na: 1\n---\n",),
            }[status]
        )
        repository.wait(1000)
        repository.edit("t", **{key: value})
        edited = repository.read(f"{TASKS}/t/manifest.json")
        said = repository.say("STORE phase: spec content: x")
        if said.startswith("STATUS: error"):
            assert "was changed by another program" in said
            assert repository.read(f"{TASKS}/t/manifest.json") == edited
        elif key in ("mystery", "another"):
            assert repository.manifest("t")[key] == value
        assert (repository.workspace.load("t")["gate"] is not None) == (status == "waiting_gate")
