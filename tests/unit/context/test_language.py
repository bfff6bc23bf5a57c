"""The command language: what is understood, what is refused, and that nothing anybody writes breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.dialects.context.language import COMMANDS, parse, split, split_list
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
        "PAUSE",
        {"reason": "It broke: badly.", "recommendations": "a, b"},
    ),
    "PAUSE recommendations: a, b reason: see Task: 3": (
        "PAUSE",
        {"recommendations": "a, b", "reason": "see Task: 3"},
    ),
    "SET_GATE gate: design prompt: Approve the gate: design? artifacts: a.md": (
        "SET_GATE",
        {"gate": "design", "prompt": "Approve the gate: design?", "artifacts": "a.md"},
    ),
    "SET_GATE gate: final prompt: 'artifacts: are below' artifacts: a.md": (
        "SET_GATE",
        {"gate": "final", "prompt": "artifacts: are below", "artifacts": "a.md"},
    ),
    "RETRIEVE needs: a,b for_phase: spec max_tokens: 500": (
        "RETRIEVE",
        {"needs": "a,b", "for_phase": "spec", "max_tokens": "500"},
    ),
    "QUERY How is it stored?": ("QUERY", {"question": "How is it stored?"}),
    "METRICS": ("METRICS", {}),
    "METRICS format: json filter:": ("METRICS", {"format": "json"}),
    "LIST": ("LIST", {}),
    "list": ("LIST", {}),
    "RESUME decision:": ("RESUME", {}),
    # Keys inside a free text are text.
    "PAUSE reason: Blocked by task: other-feature recommendations: wait": (
        "PAUSE",
        {"reason": "Blocked by task: other-feature", "recommendations": "wait"},
    ),
    "PAUSE reason: Blocked by task: other-feature": ("PAUSE", {"reason": "Blocked by task: other-feature"}),
    "PAUSE Blocked by task: other-feature": ("PAUSE", {"reason": "Blocked by task: other-feature"}),
    "PAUSE task: mine reason: Blocked by task: other": (
        "PAUSE",
        {"task": "mine", "reason": "Blocked by task: other"},
    ),
    "PAUSE reason: x recommendations: finish task: other, then go on": (
        "PAUSE",
        {"reason": "x", "recommendations": "finish task: other, then go on"},
    ),
    "PAUSE reason: see task: a, reason: b last_feedback: in task: c": (
        "PAUSE",
        {"reason": "see task: a, reason: b", "last_feedback": "in task: c"},
    ),
    'PAUSE reason: "Blocked by recommendations: none" task: mine': (
        "PAUSE",
        {"reason": "Blocked by recommendations: none", "task": "mine"},
    ),
    'PAUSE reason: "Blocked" by task: other': ("PAUSE", {"reason": '"Blocked" by task: other'}),
    "SET_GATE gate: design prompt: Is it for task: x": ("SET_GATE", {"gate": "design", "prompt": "Is it for task: x"}),
    "SET_GATE prompt: Is it for task: x? gate: design": (
        "SET_GATE",
        {"gate": "design", "prompt": "Is it for task: x?"},
    ),
    "SET_GATE gate: design prompt: Then comes gate: final for task: x artifacts: a.md": (
        "SET_GATE",
        {"gate": "design", "prompt": "Then comes gate: final for task: x", "artifacts": "a.md"},
    ),
    "RESUME decision: revise feedback: do task: x, then decision: approve": (
        "RESUME",
        {"decision": "revise", "feedback": "do task: x, then decision: approve"},
    ),
    "RESUME feedback: as in task: x decision: revise": (
        "RESUME",
        {"decision": "revise", "feedback": "as in task: x"},
    ),
    "QUERY question: what did we decide for task: x?": (
        "QUERY",
        {"question": "what did we decide for task: x?"},
    ),
    "QUERY what is the limit: 5 or 6": ("QUERY", {"question": "what is the limit: 5 or 6"}),
    "QUERY task: x limit: 2 question: what about task: y": (
        "QUERY",
        {"task": "x", "limit": "2", "question": "what about task: y"},
    ),
    "METRICS filter: impl-audit task: t format: json": (
        "METRICS",
        {"filter": "impl-audit", "task": "t", "format": "json"},
    ),
    "METRICS summary": ("METRICS", {"format": "summary"}),
    "HISTORY filter: Action: STORE phase: spec": ("HISTORY", {"filter": "Action: STORE phase: spec"}),
    "INIT Fix: login": ("INIT", {"task": "Fix: login"}),
    "INIT fix:login": ("INIT", {"task": "fix:login"}),
    "START_PHASE implementer:task-1": ("START_PHASE", {"phase": "implementer:task-1"}),
    "INIT task: '--force is gone'": ("INIT", {"task": "--force is gone"}),
}


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
    "INIT name: foo": "Unknown parameter: name. INIT takes task, mode, workflow",
    "INIT tsk: foo": "Unknown parameter: tsk. Did you mean task:? INIT takes",
    "INIT tsk:foo": "Unknown parameter: tsk. Did you mean task:?",
    "INIT name=foo": "Unknown parameter: name. INIT takes",
    "INIT --task foo": "Unknown option: --task. Did you mean task:? INIT takes",
    "INIT --task=foo": "Unknown option: --task=foo. Did you mean task:?",
    "INIT -t foo": "Unknown option: -t. INIT takes",
    "INIT task: foo --mode poc": "Unknown option: --mode. Did you mean mode:?",
    "INIT task: foo mdoe: poc": "Unknown parameter: mdoe. Did you mean mode:?",
    'START_PHASE {"phase": "b8"}': 'Unexpected text: {"phase": "b8"}. Usage: START_PHASE phase',
    'PAUSE {"reason": "b8"}': 'Unexpected text: {"reason": "b8"}. Usage: PAUSE reason',
    "SUMMARY task:": "Missing value: task. Name the task, or leave task: out for the current one.",
    "PAUSE task: reason: it broke": "Missing value: task.",
    'START_PHASE phase: {"name": "b8"}': 'Unexpected JSON: {"name": "b8"}. Usage',
    "START_PHASE phse: a": "Unknown parameter: phse. Did you mean phase:?",
    "START_PHASE --phase a": "Unknown option: --phase. Did you mean phase:?",
    "END_PHASE phase: a status: success --force": "Unknown option: --force. END_PHASE takes",
    "PAUSE reasn: stuck": "Unknown parameter: reasn. Did you mean reason:?",
    "PAUSE --reason stuck": "Unknown option: --reason. Did you mean reason:?",
    "QUERY qestion: why": "Unknown parameter: qestion. Did you mean question:?",
    "RESUME decison: approve": "Unknown parameter: decison. Did you mean decision:?",
    "STORE phse: spec content: x": "Unknown parameter: phse. Did you mean phase:?",
    "RETRIEVE need: all for_phase: spec": "Unknown parameter: need. Did you mean needs:?",
    "RETRIEVE needs: all forphase: spec": "Unknown parameter: forphase. Did you mean for_phase:?",
    "METRICS fromat: json": "Unknown parameter: fromat. Did you mean format:?",
    "LIST limt: 3": "Unknown parameter: limt. Did you mean limit:?",
    "LIST --limit 3": "Unknown option: --limit. Did you mean limit:?",
    "SUMMARY tsak: x": "Unknown parameter: tsak. Did you mean task:?",
    "STROE phase: spec": "Unknown command: STROE. Did you mean STORE? Use INIT",
    "SET_GATE gate: design prompt: ok? artifacts: a.md task: x": (
        "Misplaced parameter: task. prompt takes what follows it: task stands before it"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_what_is_wrong(text: str) -> None:
    with pytest.raises(TenutoError) as refusal:
        parse(text)
    assert refusal.value.message.startswith(REFUSED[text])


def test_every_keys_order() -> None:
    assert (
        parse("STORE iteration: 2 task_id: 1 phase: tests content: x")["values"]
        == parse("STORE phase: tests task_id: 1 iteration: 2 content: x")["values"]
    )


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
    text = "INIT task: a\nSTART_PHASE phase: x\n\nPAUSE reason: 'two\nLIST\nlines here' recommendations: \"a\"\nLIST\n"
    assert [parse(command)["command"] for command in split(text)] == ["INIT", "START_PHASE", "PAUSE", "LIST"]
    assert parse(split(text)[2])["values"]["reason"] == "two\nLIST\nlines here"


@pytest.mark.parametrize(
    "text",
    [
        "PAUSE reason: the auditor wrote\nRESUME decision: approve",
        "QUERY question: what does\nSTORE phase: spec\nmean?",
        "SET_GATE gate: design prompt: see artifacts: a.md\nRESUME decision: approve",
        "RESUME decision: revise feedback: first\nLIST",
    ],
)
def test_a_line_of_a_free_text_is_never_a_command(text: str) -> None:
    """It is refused, and the refusal says how to send either: nothing of the argument is carried out."""
    with pytest.raises(TenutoError, match=r"begins a command: .*in quotes, or give each command as an argument"):
        split(text)


@given(
    st.text(alphabet="ab :=,;'\n", max_size=12), st.sampled_from(["PAUSE", "QUERY", "SET_GATE", "RESUME"]), st.data()
)
def test_no_key_inside_a_free_text_redirects_a_command(words: str, name: str, data: st.DataObject) -> None:
    """Whatever stands in it: the task, the gate and the decision are those that were given before it."""
    form = COMMANDS[name]
    before = {key: "mine" for key in form["keys"] if key not in (*form["text"], "artifacts", "limit")}
    key = form["text"][0]
    inside = data.draw(st.sampled_from(form["keys"]))
    head = " ".join(f"{one}: {value}" for one, value in before.items())
    values = parse(f"{name} {head} {key}: x {words} {inside}: other {words}")["values"]
    assert {one: values[one] for one in before} == before


def test_a_key_without_a_value_is_named() -> None:
    assert parse("METRICS format: json filter:")["empty"] == ["filter"]
    assert parse("METRICS format: json")["empty"] == []


def test_what_may_have_been_meant_as_a_key_is_named() -> None:
    assert parse("PAUSE reason: Blocked by task: other")["doubt"] == "task: other"
    assert parse("QUERY question: tokens limit: 3")["doubt"] == "limit: 3"
    assert parse("PAUSE reason: Blocked by task: other for good")["doubt"] == ""
    assert parse("PAUSE task: other reason: Blocked")["doubt"] == ""


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
    assert split_list(text) == entries


WORDS = st.sampled_from(
    [
        *COMMANDS,
        *(key for form in COMMANDS.values() for key in form["keys"]),
        ":",
        "=",
        ",",
        "'",
        '"',
        "`",
        "<<END",
        "\n",
        " ",
        "END",
        "[",
        "]",
    ]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=30))
def test_anything_is_parsed_or_refused(pieces: list[str]) -> None:
    """Whatever the order, the quotes and the letters: a request, or an error with a text."""
    text = "".join(pieces)
    try:
        for command in split(text):
            request = parse(command)
            assert request["command"] in COMMANDS
            assert all(key in COMMANDS[request["command"]]["keys"] for key in request["values"])
    except TenutoError as error:
        assert error.message
