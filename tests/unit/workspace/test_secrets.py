"""Which values are secret, as the settings say it, and how they are found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tenuto.errors import BadInput, Refused
from tenuto.workspace import secrets
from tenuto.workspace.open import secrecy_of
from tenuto.workspace.secrets import Secrecy

VALUE = b"s3cret-5b1f-9a0c"
LINES = [
    "secrets: [A_KEY]", "secrets: [A_KEY, B_KEY]", "secrets: [ A_KEY ,B_KEY ]", "secrets:", "- A_KEY", "  - B_KEY", "secrets: [", "]", "  A_KEY]", "",
    "# secrets", "secrets: [A_KEY] # both", 'secrets: ["A_KEY"]', "agent: claude", "'secrets': [A_KEY]", '"secr\\u0065ts": [A_KEY]', "secrets: A_KEY",
    "roles: {designer: secrets}", "agent: |", "  secrets: [A_KEY]", "secrets: []", "secrets: [A_KEY,]", "---", "...", "- C_KEY", "secrets : [A_KEY]", "? secrets",
    ": [A_KEY]", 'agent: "one', 'two"', "secrets: &a [A_KEY]", "secrets: !!seq [A_KEY]", "{secrets: [A_KEY]}", "-  A_KEY", "-\tA_KEY", " # more", "secrets:  # these",
]  # fmt: skip


def declared(root: Path, text: str) -> list[str]:
    (root / ".tenuto").mkdir(exist_ok=True)
    (root / ".tenuto" / "config.yaml").write_text(text)
    return secrets.named_in(str(root), text.encode())


@pytest.mark.parametrize(("text", "names"), [
    ("secrets: [A_KEY, B_KEY]\n", ["A_KEY", "B_KEY"]),
    ("agent: claude\nsecrets:\n  - A_KEY\n  - B_KEY\ngates: signed\n", ["A_KEY", "B_KEY"]),
    ("secrets:\n- A_KEY\n# another\n- B_KEY\n", ["A_KEY", "B_KEY"]),
    ("secrets: [\n  A_KEY,\n  'B_KEY' # mine\n]\n", ["A_KEY", "B_KEY"]),
    ('"secr\\u0065ts": [A_KEY]\n', ["A_KEY"]),
    ("agent: |\n  secrets: none\n", []),
    ("secrets: []\n", []),
])  # fmt: skip
def test_the_names_that_settings_declare(tmp_path: Path, text: str, names: list[str]) -> None:
    assert declared(tmp_path, text) == names


@given(st.lists(st.sampled_from(LINES), max_size=7))
@example(["secrets:", "- A_KEY", "", "- C_KEY"])
@example(["secrets: [A_KEY] # both"])
def test_what_is_read_without_yaml_is_what_yaml_says(lines: list[str]) -> None:
    """Or more, where YAML says that it is none."""
    text = "\n".join(lines)
    plain = secrets._plain(text.encode())
    try:
        found: Any = YAML(typ="safe").load(text)
    except YAMLError:
        return
    if plain is not None and isinstance(found, dict) and "secrets" in found:
        assert plain == found["secrets"]


@pytest.mark.parametrize("text", ["secrets: A_KEY\n", 'secrets: ["\\ud800"]\n', "secrets: {A_KEY: 1}\n", "secrets: [1]\n", "- secrets\n"])
def test_other_shapes_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"config\.yaml: 'secrets' must be a list of names of variables"):
        declared(tmp_path, text)


def test_nothing_is_secret_where_nothing_is_declared_or_nobody_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    assert secrecy_of(str(tmp_path)) is None
    declared(tmp_path, "secrets: [A_KEY]\n")
    assert secrecy_of(str(tmp_path), None) is None
    monkeypatch.setenv("A_KEY", VALUE.decode())
    assert secrecy_of(str(tmp_path), None) is not None


def test_a_pipe_in_the_place_of_the_settings_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".tenuto").mkdir()
    os.mkfifo(tmp_path / ".tenuto" / "config.yaml")
    assert secrecy_of(str(tmp_path)) is None


def test_it_is_taken_out_of_whatever_json_can_say() -> None:
    known = Secrecy({"A_KEY": [VALUE], "B_KEY": [VALUE[:9]]})
    text = VALUE.decode()
    said = {"do": "Note", "text": f"a {text} b", "flags": {text: [text, 1, None]}, "more": (text[:9],)}
    made = known.out_of_command(said)
    assert made == {"do": "Note", "text": "a [secret] b", "flags": {"[secret]": ["[secret]", 1, None]}, "more": ["[secret]"]}


def test_a_number_is_one_or_is_none() -> None:
    known = Secrecy({"A_KEY": [b"123456"]})
    assert known.out_of({"a": 123456, "b": 1234567, "c": True}) == {"a": "[secret]", "b": 1234567, "c": True}
    assert known.masked(b'{"b":1234567}', "x.json") == b'{"b":1234567}'
    known.refuse(b'{"b":1234567}', "it")
    with pytest.raises(Refused):
        known.refuse(b'{"b":"1234567"}', "it")


def test_two_names_that_were_secret_stay_two() -> None:
    assert Secrecy({"A_KEY": [b"aaaaaaaa", b"bbbbbbbb"]}).out_of({"aaaaaaaa": 1, "bbbbbbbb": 2, "c": 3}) == {"[secret]": 1, "[secret] 2": 2, "c": 3}


@pytest.mark.parametrize("value", ["signed", "protection", "SetFlags", "feature", "feature-state", "state.json", "staged", "orchestrator", "current-task", "strict", "manual", "GateDecided", "sha256"])
def test_a_word_of_ours_is_no_secret(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masked, it would change what a run is: whether its gates are signed, for one."""
    declared(tmp_path, "secrets: [A_KEY]\n")
    monkeypatch.setenv("A_KEY", value)
    with pytest.raises(BadInput, match="the value of A_KEY is a word of Tenuto's own") as refused:
        secrecy_of(str(tmp_path))
    assert refused.value.code == "bad-secret"


@pytest.mark.parametrize("value", ["postgres", "hunter-two", "a1b2c3", "123456", "correcthorse", "signed-4711", "sk-ant-api03", "a sentence"])
def test_other_words_are(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path, "secrets: [A_KEY]\n")
    monkeypatch.setenv("A_KEY", value)
    found = secrecy_of(str(tmp_path))
    assert found is not None and found.out_of(f"a {value} b") == "a [secret] b"


@pytest.mark.parametrize("at", [0, (1 << 20) - 8, (1 << 20) - len(VALUE), (1 << 20), (2 << 20) - 1])
def test_it_is_found_wherever_it_stands_in_a_large_file(tmp_path: Path, at: int) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * at + VALUE + b"y" * 100)
    known = Secrecy({"A_KEY": [VALUE], "B_KEY": [b"another-one"]})
    file = os.open(path, os.O_RDONLY)
    try:
        assert known.held_by(file) == "A_KEY"
        with pytest.raises(Refused, match="large holds the value of A_KEY, which is secret"):
            known.refuse_file(file, "large")
        assert Secrecy({"B_KEY": [b"another-one"]}).held_by(file) == ""
        assert os.lseek(file, 0, os.SEEK_CUR) == 0
    finally:
        os.close(file)


@pytest.mark.parametrize("value", [VALUE, b"sixsix"])
def test_what_lies_in_a_folder_of_ours_is_masked_in_place(tmp_path: Path, value: bytes) -> None:
    """A program that has it open goes on writing to the same file."""
    path = tmp_path / "kept"
    path.write_bytes(b"one " + value + b" two\n")
    before = path.stat().st_ino
    Secrecy({"A_KEY": [value]}).scrub(str(path))
    Secrecy({"A_KEY": [value]}).scrub(f"{path}-nothing")
    assert (path.read_bytes(), path.stat().st_ino) == (b"one [secret] two\n", before)


def test_one_that_somebody_has_open_is_left_to_the_next(tmp_path: Path) -> None:
    """They may be writing to it at this moment. So is one that says something else by now."""
    known = Secrecy({"A_KEY": [VALUE]})
    path = tmp_path / "displaced"
    path.write_bytes(VALUE)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with open(path, "ab"):
            known.discard(folder, "displaced", VALUE)
        known.discard(folder, "displaced", b"another text")
        Secrecy({"A_KEY": [b"another-one"]}).discard(folder, "displaced", VALUE)
        assert path.read_bytes() == VALUE
        known.discard(folder, "displaced", VALUE)
        known.discard(folder, "nothing", None)
        assert not path.exists()
    finally:
        os.close(folder)
