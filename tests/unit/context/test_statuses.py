"""Every command against every status a task can have."""

from __future__ import annotations

import pytest

from tenuto.core.records.commands import Command
from tenuto.views.context.state import KNOWN_STATUSES
from tests.unit.context.conftest import Repository, error

DEBT = "STORE phase: debt content: ---\nskipped_phases: [spec]\n---\n"

# How a task gets there; mode poc throughout, so that every status can be reached.
WAYS: dict[str, tuple[str, ...]] = {
    "running": (),
    "running, a phase too": ("START_PHASE phase: busy",),
    "paused": ("PAUSE reason: stuck",),
    "waiting_gate": ("SET_GATE gate: design prompt: ok?",),
    "waiting_gate, final": ("SET_GATE gate: final prompt: ok?",),
    "completed": ("SET_GATE gate: final prompt: ok?", "RESUME decision: approve"),
    "failed": ("PAUSE reason: stuck", "RESUME decision: reject"),
    "poc-complete": (DEBT,),
    "graduated": (DEBT, "STORE phase: graduate-complete"),
}

NOT_PAUSED = "Task is not paused or waiting for gate"
NOT_READY = "Task not ready for graduation, current status: '{status}'"


def invalid(decision: str) -> str:
    return f"Invalid decision: {decision}. Use approve, reject, or retry"


# Per command what each status answers: "" is success, anything else the seed's text; `*` is for all others.
ANSWERS: dict[str, dict[str, str]] = {
    "START_PHASE phase: x": {
        "running": "",
        "running, a phase too": "",
        "poc-complete": "",
        "paused": "Cannot start phase while task is paused",
        "waiting_gate": "Cannot start phase while waiting for gate approval",
        "*": "Cannot start phase on {status} task",
    },
    "START_PHASE phase: busy": {
        "running": "",
        "running, a phase too": "Phase busy already running",
        "poc-complete": "",
        "paused": "Cannot start phase while task is paused",
        "waiting_gate": "Cannot start phase while waiting for gate approval",
        "*": "Cannot start phase on {status} task",
    },
    "END_PHASE phase: busy status: success": {"running, a phase too": "", "*": "Phase busy not currently running"},
    "PAUSE reason: r recommendations: a, b": {
        "running": "",
        "paused": "",
        "poc-complete": "",
        "running, a phase too": "Cannot pause while phases are running: busy",
        "waiting_gate": "Cannot pause while waiting for gate approval",
        "*": "Cannot pause {status} task",
    },
    "SET_GATE gate: final prompt: p artifacts: x.md": {
        "running": "",
        "poc-complete": "",
        "running, a phase too": "Cannot set gate while phases are running",
        "paused": "Cannot set gate while task is paused",
        "waiting_gate": "Cannot set gate while waiting for gate approval",
        "*": "Cannot set gate on {status} task",
    },
    "RESUME decision: approve": {
        "waiting_gate": "",
        "paused": invalid("approve"),
        "completed": "Task is already completed",
        "*": NOT_PAUSED,
    },
    "RESUME decision: revise feedback: again": {
        "waiting_gate": "",
        "paused": invalid("revise"),
        "completed": "Task is already completed",
        "*": NOT_PAUSED,
    },
    "RESUME decision: reject": {
        "waiting_gate": "",
        "paused": "",
        "completed": "Task is already completed",
        "*": NOT_PAUSED,
    },
    "RESUME decision: retry": {
        "paused": "",
        "waiting_gate": invalid("retry"),
        "completed": "Task is already completed",
        "*": NOT_PAUSED,
    },
    "STORE phase: architect content: text": {"*": ""},
    "STORE phase: impl-audit content: text": {"*": ""},
    DEBT: {
        "running": "",
        "running, a phase too": "",
        "poc-complete": "",
        "completed": "",
        "paused": "Cannot store debt while task is paused",
        "waiting_gate": "Cannot store debt while waiting for gate approval",
        "*": "Cannot store debt on {status} task",
    },
    "STORE phase: graduate-complete": {"poc-complete": "", "*": NOT_READY},
    "RETRIEVE needs: debt for_phase: graduate": {
        "poc-complete": "Missing architect.md required for graduation",
        "*": NOT_READY,
    },
    "RETRIEVE needs: manifest for_phase: resume": {"*": ""},
    "RETRIEVE for_phase: spec": {"*": ""},
    "QUERY question: anything": {"*": ""},
    "SUMMARY": {"*": ""},
    "METRICS": {"*": ""},
    "METRICS format: detailed": {"*": ""},
    "HISTORY": {"*": ""},
    "LIST": {"*": ""},
    "INIT task: t": {"*": "Task already exists: t"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", ANSWERS)
def test_each_command_in_each_status(repository: Repository, command: str, way: str) -> None:
    status = way.partition(",")[0]
    repository.must("INIT task: t mode: poc", *WAYS[way])
    assert repository.manifest("t")["status"] == status
    before = repository.files()
    answers = ANSWERS[command]
    expected = next(answers[key] for key in (way, status, "*") if key in answers)
    said = repository.say(command)
    if expected:
        assert said == error(expected.format(status=status))
        assert repository.files() == before, "a refusal writes nothing"
    else:
        assert not said.startswith("STATUS: error"), said


def test_poc_complete_survives_gates_and_pauses(repository: Repository) -> None:
    repository.must(
        "INIT task: t mode: poc", DEBT, "START_PHASE phase: test-writer", "END_PHASE phase: test-writer status: failed"
    )
    repository.must("PAUSE reason: stuck", "RESUME decision: retry")
    assert repository.manifest("t")["status"] == "poc-complete"
    repository.must("SET_GATE gate: final prompt: ok?", "RESUME decision: approve")
    assert repository.manifest("t")["status"] == "poc-complete"
    repository.must("STORE phase: graduate-complete")
    assert repository.manifest("t")["status"] == "graduated"


def test_a_second_pause_replaces_the_reason(repository: Repository) -> None:
    repository.must("INIT task: t", "PAUSE reason: one recommendations: a", "PAUSE reason: two recommendations: b")
    assert repository.manifest("t")["failure_context"]["reason"] == "two"
    repository.must("RESUME decision: retry")
    assert repository.manifest("t")["status"] == "running"


CORE_STATUSES: dict[str, tuple[Command, ...]] = {
    "stopped": ({"do": "Stop"},),
    "parked": ({"do": "Park", "until": "2027-01-01T00:00:00.000Z", "reason": "usage limit"},),
    "cancelled": ({"do": "Cancel"},),
}


@pytest.mark.parametrize(("status", "shown"), [("stopped", "paused"), ("parked", "paused"), ("cancelled", "failed")])
def test_statuses_of_other_dialects_are_shown_in_the_seeds_words(
    repository: Repository, status: str, shown: str
) -> None:
    repository.must("INIT task: t")
    with repository.workspace.turn() as turn:
        for command in CORE_STATUSES[status]:
            turn.do("t", command)
    assert repository.manifest("t")["status"] == shown
    assert f"status: {shown} |" in repository.say("LIST")
    assert shown in KNOWN_STATUSES


def test_every_status_of_a_run_is_one_of_the_seeds() -> None:
    from tenuto.views.context.state import shown_status

    every = (
        "created running paused waiting_gate parked stopped blocked restarting completed failed cancelled "
        "poc-complete graduated"
    )
    assert {shown_status(status) for status in every.split()} == set(KNOWN_STATUSES)
