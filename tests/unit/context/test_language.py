"""The command language: what is understood, what is refused, and that nothing anybody writes breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.dialects.context.language import COMMANDS, listed, parse, split
from tenuto.errors import TenutoError

UNDERSTOOD: dict[str, tuple[str, dict[str, str]]] = {
    "START_PHASE phase: architect": ("START_PHASE", {"phase": "architect"}),
    "start_phase PHASE: architect": ("START_PHASE", {"phase": "architect"}),
    "Start Phase phase : architect": ("START_PHASE", {"phase": "architect"}),
    "START-PHASE phase:architect": ("START_PHASE", {"phase": "architect"}),
    "START_PHASE: phase: architect,": ("START_PHASE", {"phase": "architect"}),
    "START_PHASE phase=architect": ("START_PHASE", {"phase": "architect"}),
    "  START_PHASE\tphase:\t'architect' \n": ("START_PHASE", {"phase": "architect"}),
    "`START_PHASE phase: architect`": ("START_PHASE", {"phase": "architect"}),
    "```\nSTART_PHASE phase: architect\n```": ("START_PHASE", {"phase": "architect"}),
    "START_PHASE architect": ("START_PHASE", {"phase": "architect"}),
    "START_PHASE phase: implementer:task-1": ("START_PHASE", {"phase": "implementer:task-1"}),
    'START_PHASE phase: "architect", task: "dark-mode"': ("START_PHASE", {"phase": "architect", "task": "dark-mode"}),
    "END_PHASE status: success, phase: architect": ("END_PHASE", {"status": "success", "phase": "architect"}),
    "INIT task: Dark mode mode: poc workflow:": ("INIT", {"task": "Dark mode", "mode": "poc"}),
    "INIT task: Fix: login": ("INIT", {"task": "Fix: login"}),
    'INIT task: "Add feature: dark mode"': ("INIT", {"task": "Add feature: dark mode"}),
    "PAUSE reason: It broke: badly. recommendations: a, b": (
        "PAUSE", {"reason": "It broke: badly.", "recommendations": "a, b"},
    ),
    "PAUSE recommendations: a, b reason: see Task: 3": (
        "PAUSE", {"recommendations": "a, b", "reason": "see Task: 3"},
    ),
    "SET_GATE gate: design prompt: Approve the gate: design? artifacts: a.md": (
        "SET_GATE", {"gate": "design", "prompt": "Approve the gate: design?", "artifacts": "a.md"},
    ),
    "SET_GATE gate: final prompt: 'artifacts: are below' artifacts: a.md": (
        "SET_GATE", {"gate": "final", "prompt": "artifacts: are below", "artifacts": "a.md"},
    ),
    "RETRIEVE needs: a,b for_phase: spec max_tokens: 500": (
        "RETRIEVE", {"needs": "a,b", "for_phase": "spec", "max_tokens": "500"},
    ),
    "QUERY How is it stored?": ("QUERY", {"question": "How is it stored?"}),
    "METRICS": ("METRICS", {}),
    "METRICS format: json filter:": ("METRICS", {"format": "json"}),
    "LIST": ("LIST", {}),
    "list": ("LIST", {}),
    "RESUME decision:": ("RESUME", {}),
}  # fmt: skip


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_what_is_understood(text: str) -> None:
    request = parse(text)
    assert (request["command"], request["values"]) == UNDERSTOOD[text]


REFUSED = {
    "": "There is no command. Use INIT, START_PHASE",
    "DANCE now: please": "Unknown command: DANCE. Use INIT, START_PHASE",
    "START_PHASE": "Missing required parameter: phase. Usage: START_PHASE phase: <phase-name>",
    "START_PHASE phase:": "Missing required parameter: phase. Usage",
    "START_PHASE phase: ''": "Missing required parameter: phase. Usage",
    "END_PHASE phase: a": "Missing required parameter: status. Usage",
    "START_PHASE phase: architect priority: high": "Unknown parameter: priority. START_PHASE takes phase, task",
    "INIT task: Dark mode owner: ada": "Unknown parameter: owner. INIT takes task, mode, workflow",
    "START_PHASE phase: a phase: b": "Parameter given twice: phase. Usage",
    "LIST everything": "Unexpected text: everything. Usage: LIST",
    "START_PHASE now phase: a": "Unexpected text: now. Usage",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_what_is_wrong(text: str) -> None:
    with pytest.raises(TenutoError) as refusal:
        parse(text)
    assert refusal.value.message.startswith(REFUSED[text])


def test_every_keys_order() -> None:
    assert parse("STORE iteration: 2 task_id: 1 phase: tests content: x")["values"] == parse(
        "STORE phase: tests task_id: 1 iteration: 2 content: x"
    )["values"]


@given(st.text())
def test_content_is_everything_after_its_key(content: str) -> None:
    first_line = content.partition("\n")[0].strip()
    if "\n" in content and not first_line:
        return  # content that begins on the next line is its own rule
    assert parse(f"STORE phase: spec content: {content}")["content"] == content


def test_content_may_begin_on_the_next_line() -> None:
    assert parse("STORE phase: debt content:\n---\na: 1\n---\n")["content"] == "---\na: 1\n---\n"
    assert parse("STORE phase: debt content:   \n\n  x")["content"] == "\n  x"


def test_commands_after_content_need_a_closing_word() -> None:
    text = "STORE phase: spec content: <<END\nLIST\n\n  kept \nEND\nLIST\nSTORE phase: tests content: rest\nLIST"
    commands = split(text)
    assert [parse(command)["command"] for command in commands] == ["STORE", "LIST", "STORE"]
    assert parse(commands[0])["content"] == "LIST\n\n  kept \n"
    assert parse(commands[2])["content"] == "rest\nLIST"
    with pytest.raises(TenutoError, match="content: <<END is not closed"):
        split("STORE phase: spec content: <<END\nnever closed")


@given(st.lists(st.text(alphabet="ab \t\n#<\r", max_size=20), max_size=4))
def test_content_up_to_a_closing_word_is_word_for_word(lines: list[str]) -> None:
    body = "\n".join(lines) + "\n"
    commands = split(f"STORE phase: spec content: <<STOP\n{body}STOP\nLIST")
    assert parse(commands[0])["content"] == body
    assert commands[1:] == ["LIST"]


def test_several_commands_in_one_text() -> None:
    text = "INIT task: a\nSTART_PHASE phase: x\n\nPAUSE reason: two\nlines here recommendations: a\nLIST\n"
    assert [parse(command)["command"] for command in split(text)] == ["INIT", "START_PHASE", "PAUSE", "LIST"]
    assert parse(split(text)[2])["values"]["reason"] == "two\nlines here"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a,b", ["a", "b"]),
        (" a , , b, ", ["a", "b"]),
        ("", []),
        ('["a", "b, c"]', ["a", "b, c"]),
        ("'Fix it, now', later", ["Fix it, now", "later"]),
        ("it's, fine", ["it's", "fine"]),
    ],
)
def test_lists(text: str, entries: list[str]) -> None:
    assert listed(text) == entries


WORDS = st.sampled_from(
    [*COMMANDS, *(key for keys, _, _ in COMMANDS.values() for key in keys), ":", "=", ",", "'", '"', "`", "<<END", "\n", " ", "END", "[", "]"]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=30))
def test_anything_is_parsed_or_refused(pieces: list[str]) -> None:
    """Whatever the order, the quotes and the letters: a request, or an error with a text."""
    text = "".join(pieces)
    try:
        for command in split(text):
            request = parse(command)
            assert request["command"] in COMMANDS
            assert all(key in COMMANDS[request["command"]][0] for key in request["values"])
    except TenutoError as error:
        assert error.message
