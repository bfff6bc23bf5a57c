"""A script that cannot be followed is refused when it is named, and says which answer is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.agents.scripted import ScriptedAgent
from tenuto.errors import BadInput, NotFound


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("answers: {role: designer}", "`answers` is no list"),
        ("answers: [DONE]", "answer 1: it is no mapping"),
        ("answers: [{reply: 'DONE: x'}, {run: true}]", "answer 2: run: True is no text; put it in quotes"),
        ("answers: [{reply: 7}]", "answer 1: reply: 7 is no text"),
        (
            "answers: [{answer: x}]",
            "answer 1: there is no 'answer'; there are reply, run, fault, wait, exit, for, files, usage",
        ),
        ("answers: [{for: designer}]", "answer 1: for: 'designer' is no mapping"),
        ("answers: [{for: {roll: designer}}]", "answer 1: for: 'roll': 'designer' is no place"),
        ("answers: [{for: {role: [designer]}}]", "answer 1: for: 'role': ['designer'] is no place"),
        ("answers: [{files: {a.md: 7}}]", "answer 1: files: 'a.md': 7 is no file and its text"),
        ("answers: [{exit: 300}]", "answer 1: exit: 300 is no exit status; a whole number up to 255"),
        ("answers: [{usage: {tokens: 1.5}}]", "answer 1: usage: 'tokens': 1.5 is no unit and a whole number"),
        ("answers: [{usage: {tokens: -1}}]", "answer 1: usage: 'tokens': -1 is no unit and a whole number"),
        ("answers: [{usage: {tokens: true}}]", "answer 1: usage: 'tokens': True is no unit and a whole number"),
        ("answers: [{fault: hnag}]", "answer 1: fault: there is no 'hnag'; there are hang, exit, signal,"),
        ("answers: [{fault: exit x}]", "answer 1: fault: there is no 'exit x'"),
        ("answers: [{for: {try: true}}]", "answer 1: for: 'try': True is no place"),
        ("- just a list", "cannot be read as answers"),
        ("answers: [", "cannot be read as answers"),
    ],
)
def test_a_wrong_answer_is_named(tmp_path: Path, script: str, said: str) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(script)
    with pytest.raises(BadInput) as refused:
        ScriptedAgent(str(path))
    assert refused.value.code == "bad-script"
    assert said in refused.value.message


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no file .*nothing\.yaml"):
        ScriptedAgent(str(tmp_path / "nothing.yaml"))


@pytest.mark.parametrize(
    "script",
    [
        "",
        "answers: []",
        "answers: [{for: {step: 3.5}, fault: exit 3}, {fault: flood}]",
        "answers: [{for: {try: 1, item: '*'}, files: {}, usage: {tokens: 0}}]",
    ],
)
def test_what_can_be_followed_is_taken(tmp_path: Path, script: str) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(script)
    assert ScriptedAgent(str(path)).script == str(path)
