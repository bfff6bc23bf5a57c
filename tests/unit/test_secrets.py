"""Which values are secret, as the settings say it, and how they are found."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenuto
from tenuto.errors import BadInput, Refused
from tenuto.secrets import MARK, NO_SECRETS, Secrets, declared, mask
from tenuto.workspace.settings import secret_names

VALUE = "s3cret-5b1f-9a0c"


def configure(root: Path, text: str) -> str:
    (root / ".tenuto").mkdir(exist_ok=True)
    (root / ".tenuto" / "config.yaml").write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("secrets: [A_KEY, B_KEY]\n", ["A_KEY", "B_KEY"]),
        ("agent: claude\nsecrets:\n  - A_KEY\n  - B_KEY\ngates: signed\n", ["A_KEY", "B_KEY"]),
        ("secrets:\n- A_KEY\n# another\n- B_KEY\n", ["A_KEY", "B_KEY"]),
        ("secrets: [\n  A_KEY,\n  'B_KEY' # mine\n]\n", ["A_KEY", "B_KEY"]),
        ('"secr\\u0065ts": [A_KEY]\n', ["A_KEY"]),
        ("agent: |\n  secrets: none\n", []),
        ("secrets: []\n", []),
        ("secrets: [A_KEY]\nmisspelt: true\n", ["A_KEY"]),
        ("", []),
    ],
)
def test_the_names_that_settings_declare(tmp_path: Path, text: str, names: list[str]) -> None:
    """Also where another setting is wrong: a typing error elsewhere lets no secret through."""
    assert secret_names(configure(tmp_path, text)) == names


@pytest.mark.parametrize("text", ["secrets: A_KEY\n", "secrets: {A_KEY: 1}\n", "secrets: [1]\n"])
def test_other_shapes_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"config\.yaml: 'secrets' must be a list of names of variables"):
        secret_names(configure(tmp_path, text))


@pytest.mark.parametrize("text", ["- secrets\n", "secrets: [", 'secrets: ["\\ud800"]\n', "\xff"])
def test_settings_that_cannot_be_read_tell_of_no_secret_and_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput):
        secret_names(configure(tmp_path, text))


def test_nothing_is_secret_where_nothing_is_declared_or_this_process_has_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    assert tenuto.open(str(tmp_path)).secrets is NO_SECRETS
    configure(tmp_path, "secrets: [A_KEY]\n")
    assert tenuto.open(str(tmp_path)).secrets is NO_SECRETS
    monkeypatch.setenv("A_KEY", VALUE)
    assert tenuto.open(str(tmp_path)).secrets


def test_a_pipe_in_the_place_of_the_settings_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".tenuto").mkdir()
    os.mkfifo(tmp_path / ".tenuto" / "config.yaml")
    with pytest.raises(BadInput) as refusal:
        secret_names(str(tmp_path))
    assert refusal.value.code == "not-a-file"


def test_it_is_taken_out_of_whatever_json_can_say() -> None:
    known = Secrets({"A_KEY": [VALUE], "B_KEY": [VALUE[:13]]})
    record = {"text": f"a {VALUE} b", "flags": {VALUE: [VALUE, 1, None]}, "more": [VALUE[:13]]}
    assert known.value(record) == {
        "text": "a [secret] b",
        "flags": {"[secret]": ["[secret]", 1, None]},
        "more": ["[secret]"],
    }
    assert NO_SECRETS.value(record) is record


def test_a_number_is_the_value_or_it_is_none() -> None:
    known = declared(["A_KEY"], {"A_KEY": "123456789012"})
    record = {"a": 123456789012, "b": 1234567890123, "c": True}
    assert known.value(record) == {"a": "[secret]", "b": 1234567890123, "c": True}
    assert known.body(b'{"b":1234567890123}', "x.json") == b'{"b":1234567890123}'
    known.refuse(b'{"b":1234567890123}', "it")
    with pytest.raises(Refused):
        known.refuse(b'{"b":"1234567890123"}', "it")


def test_two_keys_that_held_one_stay_two() -> None:
    known = Secrets({"A_KEY": ["aaaaAAAA1111", "bbbbBBBB2222"]})
    assert known.value({"aaaaAAAA1111": 1, "bbbbBBBB2222": 2, "c": 3}) == {"[secret]": 1, "[secret] 2": 2, "c": 3}


@pytest.mark.parametrize(
    "value",
    [
        "signed",
        "GateDecided",
        "sha256",
        "a1b2c3",
        "orchestrator",
        "feature-state.json",
        "correct-horse-battery",
        "  { }, [ ]  ; ",
    ],
)
def test_what_would_be_found_in_ordinary_text_is_refused_when_it_is_declared(value: str) -> None:
    """Masked, it would change what a run is, and where its files lie."""
    with pytest.raises(BadInput, match="the value of A_KEY cannot be kept secret") as refusal:
        declared(["A_KEY"], {"A_KEY": value})
    assert refusal.value.code == "bad-secret"


@pytest.mark.parametrize("value", ["sk-ant-api03", "Correct-Horse-Battery", "correct horse battery 9", "péage-à-péage"])
def test_other_values_are_kept_out(value: str) -> None:
    assert declared(["A_KEY"], {"A_KEY": value}).text(f"a {value} b") == "a [secret] b"


@pytest.mark.parametrize(
    ("value", "text", "left"),
    [
        ("p@$$-w0!-1234\n", "it is p@$$-w0!-1234.", "it is [secret]."),
        ("  p@$$-w0!-1234  ", "it is p@$$-w0!-1234.", "it is [secret]."),
        ("user\np@$$-w0!-1234", "user: p@$$-w0!-1234.", "user: [secret]."),
        ('{\n    "a": {\n    },\n  token-5b1f-77\n', "    },\ntoken-5b1f-77", "    },\n[secret]"),
    ],
)
def test_what_counts_as_the_value(value: str, text: str, left: str) -> None:
    """All of it, without the blanks around it; of many lines those that say something."""
    assert declared(["TOKEN"], {"TOKEN": value}).text(text) == left


@pytest.mark.parametrize("value", ['pass"word\\\\123', "pässwörd-ü-12", "tab\tand-more-1", "it's\ta-\x7f-key\\9"])
def test_it_is_found_as_json_spells_it_and_as_messages_quote_it(value: str) -> None:
    known = declared(["TOKEN"], {"TOKEN": value})
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), json.dumps(repr(value))):
        clean = known.body(text.encode()).decode()
        assert MARK in clean and value not in clean, text


@given(st.lists(st.binary(min_size=12, max_size=18), max_size=4), st.binary(max_size=200))
def test_no_value_is_left_whatever_surrounds_it(secrets: list[bytes], text: bytes) -> None:
    ordered = sorted(secrets, key=len, reverse=True)
    clean = mask(text.join([b"", *secrets, b""]), ordered)
    mark = MARK.encode()
    assert all(secret not in clean or any(part in secret for part in (mark[:2], mark[-2:])) for secret in secrets)


@pytest.mark.parametrize("at", [0, (1 << 20) - 8, (1 << 20) - len(VALUE), (1 << 20), (2 << 20) - 1])
def test_it_is_found_wherever_it_stands_in_a_large_file(tmp_path: Path, at: int) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * at + VALUE.encode() + b"y" * 100)
    known = Secrets({"A_KEY": [VALUE], "B_KEY": ["another-one-1"]})
    file = os.open(path, os.O_RDONLY)
    try:
        assert known.holder(file) == "A_KEY"
        with pytest.raises(Refused, match="large holds the value of A_KEY, which is secret"):
            known.refuse_file(file, "large")
        assert Secrets({"B_KEY": ["another-one-1"]}).holder(file) == ""
        assert NO_SECRETS.holder(file) == ""
        assert os.lseek(file, 0, os.SEEK_CUR) == 0
    finally:
        os.close(file)
