"""What was declared secret is not in what an agent printed, wherever it stands, however much there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.supervise.masking import MARK, masked, values
from tenuto.testing.yard import Yard, python

SECRET, KEY = "s3cret-5b1f", "-----BEGIN KEY-----\nAAAABBBBCCCC\nDDDDEEEEFFFF\n-----END KEY-----"


def test_the_output_says_a_mark_where_the_value_stood(tmp_path: Path) -> None:
    source = "import os, sys; print('it is', os.environ['TOKEN'], os.environ['PLAIN']); print(os.environ['KEY'].splitlines()[1], file=sys.stderr); print('DONE: with', os.environ['TOKEN'])"
    with Yard(str(tmp_path)) as yard:
        directory = yard.launch("a", python(source), env={"TOKEN": SECRET, "PLAIN": "plain-value", "KEY": KEY}, masked=["TOKEN", "KEY"])
        result = yard.result(directory)
        assert Path(directory, "stdout").read_text() == "it is [secret] plain-value\nDONE: with [secret]\n"
        assert Path(directory, "stderr").read_text() == "[secret]\n"
        assert (result["exit_code"], result["stdout"]["truncated"]) == (0, False)
        for path in Path(directory).iterdir():
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("secret", ['pass"word\\\\1', "pässwörd-ü", "tab\tand-more", KEY])
def test_what_is_read_out_of_json_is_the_mark(tmp_path: Path, secret: str) -> None:
    """Agent programs print JSON: there the value is spelled otherwise, and whoever reads it has the value again."""
    source = "import json, os; [print(json.dumps({'said': os.environ['TOKEN']}, ensure_ascii=plain)) for plain in (True, False)]"
    with Yard(str(tmp_path)) as yard:
        directory = yard.launch("a", python(source), env={"TOKEN": secret}, masked=["TOKEN"])
        yard.result(directory)
        lines = Path(directory, "stdout").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [{"said": "[secret]"}] * 2


def test_nothing_of_it_reaches_the_disk_while_the_agent_works(tmp_path: Path) -> None:
    """It is killed together with its supervisor: what it had said is in no file."""
    import os
    import signal

    from tenuto.supervise import attempts

    source = "import os, sys, time; print(os.environ['TOKEN'], flush=True); f = os.open(sys.argv[1], os.O_WRONLY); os.write(f, b'agent %d\\n' % os.getpid()); time.sleep(3600)"
    with Yard(str(tmp_path)) as yard:
        directory = yard.launch("a", python(source, yard.fifo), env={"TOKEN": SECRET}, masked=["TOKEN"])
        yard.hear()
        supervisor = attempts.inspect(directory)["supervisor"]
        assert supervisor is not None
        os.kill(supervisor["pid"], signal.SIGKILL)
        yard.rest(directory)
        assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("cap", [100, 101, 120, 137])
def test_a_cut_leaves_no_half_of_it(tmp_path: Path, cap: int) -> None:
    source = f"import os; print((os.environ['TOKEN'] + '.') * 400); print('DONE: {cap}')"
    with Yard(str(tmp_path)) as yard:
        directory = yard.launch("a", python(source), env={"TOKEN": SECRET}, masked=["TOKEN"], output_cap=cap)
        result = yard.result(directory)
        text = Path(directory, "stdout").read_text()
        assert result["stdout"]["truncated"] and f"DONE: {cap}" in text and "bytes left out here" in text
        head, tail = text.split("\n[tenuto:")[0], text.rpartition("left out here]\n")[2]
        assert SECRET not in text
        assert not head.endswith(tuple(SECRET[:n] for n in range(4, len(SECRET)))), head
        assert not tail.startswith(tuple(SECRET[-n:] for n in range(4, len(SECRET)))), tail


@given(st.lists(st.binary(min_size=6, max_size=12), max_size=4), st.binary(max_size=200))
def test_no_value_is_left_whatever_surrounds_it(secrets: list[bytes], text: bytes) -> None:
    ordered = sorted(secrets, key=len, reverse=True)
    body = text.join([b"", *secrets, b""])
    made = masked(body, ordered)
    assert all(secret not in made or secret in MARK * 3 or _is_made_by_marks(secret) for secret in secrets)


def _is_made_by_marks(secret: bytes) -> bool:
    """A value that a mark and its neighbours happen to spell."""
    return any(part in secret for part in (MARK[:2], MARK[-2:], MARK[1:3]))


def test_short_values_are_no_secrets() -> None:
    assert values({"A": "short", "B": "longer", "C": ""}, ["A", "B", "C", "D"]) == [b"longer"]
    assert values({"A": "one-of-them", "B": "one-of-them-and-more"}, ["A", "B"]) == [b"one-of-them-and-more", b"one-of-them"]


@pytest.mark.parametrize(("value", "text", "left"), [
    ("p@$$-w0!\n", "it is p@$$-w0!.", "it is [secret]."),
    ("  p@$$-w0!  ", "it is p@$$-w0!.", "it is [secret]."),
    ("user\np@$$-w0!", "it is p@$$-w0!.", "it is [secret]."),
    ("{\n    \"a\": {\n    },\n  token-5b1f\n", "    },\ntoken-5b1f", "    },\n[secret]"),
    ("secret", "the secret", "the secret"),
])  # fmt: skip
def test_what_counts_as_the_value(value: str, text: str, left: str) -> None:
    """All of it, without the blanks around it; of many lines those that say something; nothing that is part of the mark."""
    known = values({"TOKEN": value}, ["TOKEN"])
    assert masked(text.encode(), known).decode() == left


def test_as_messages_quote_it() -> None:
    value = "it's\ta-\x7f-key\\"
    assert masked(repr(value).encode(), values({"TOKEN": value}, ["TOKEN"])) == b'"[secret]"'
    assert masked(json.dumps(repr(value)).encode(), values({"TOKEN": value}, ["TOKEN"])) == b'"\\"[secret]\\""'
