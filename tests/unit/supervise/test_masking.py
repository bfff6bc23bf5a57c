"""What was declared secret is not in what an agent printed, wherever it stands, however much there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.sandbox import Sandbox, python

SECRET, KEY = "s3cret-5b1f-9a0c", "-----BEGIN KEY-----\nAAAABBBBCCCC\nDDDDEEEEFFFF\n-----END KEY-----"


def test_the_output_says_a_mark_where_the_value_stood(tmp_path: Path) -> None:
    source = (
        "import os, sys; print('it is', os.environ['TOKEN'], os.environ['PLAIN']); "
        "print(os.environ['KEY'].splitlines()[1], file=sys.stderr); print('DONE: with', os.environ['TOKEN'])"
    )
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch(
            "a", python(source), env={"TOKEN": SECRET, "PLAIN": "plain-value", "KEY": KEY}, masked=["TOKEN", "KEY"]
        )
        result = sandbox.result(directory)
        assert Path(directory, "stdout").read_text() == "it is [secret] plain-value\nDONE: with [secret]\n"
        assert Path(directory, "stderr").read_text() == "[secret]\n"
        assert (result["exit_code"], result["stdout"]["truncated"]) == (0, False)
        for path in Path(directory).iterdir():
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("secret", ['pass"word\\\\123', "pässwörd-ü-12", "tab\tand-more-1", KEY])
def test_what_is_read_out_of_json_is_the_mark(tmp_path: Path, secret: str) -> None:
    """Agent programs print JSON: there the value is spelled otherwise, and whoever reads it has the value again."""
    source = (
        "import json, os; [print(json.dumps({'said': os.environ['TOKEN']}, ensure_ascii=plain)) for plain in "
        "(True, False)]"
    )
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch("a", python(source), env={"TOKEN": secret}, masked=["TOKEN"])
        sandbox.result(directory)
        lines = Path(directory, "stdout").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [{"said": "[secret]"}] * 2


def test_nothing_of_it_reaches_the_disk_while_the_agent_works(tmp_path: Path) -> None:
    """It is killed together with its supervisor: what it had said is in no file."""
    import os
    import signal

    from tenuto.supervise import attempts

    source = (
        "import os, sys, time; print(os.environ['TOKEN'], flush=True); f = os.open(sys.argv[1], os.O_WRONLY); "
        "os.write(f, b'agent %d\\n' % os.getpid()); time.sleep(3600)"
    )
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch("a", python(source, sandbox.fifo), env={"TOKEN": SECRET}, masked=["TOKEN"])
        sandbox.hear()
        supervisor = attempts.inspect(directory)["supervisor"]
        assert supervisor is not None
        os.kill(supervisor["pid"], signal.SIGKILL)
        sandbox.rest(directory)
        assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("cap", [100, 101, 120, 137])
def test_a_cut_leaves_no_half_of_it(tmp_path: Path, cap: int) -> None:
    source = f"import os; print((os.environ['TOKEN'] + '.') * 400); print('DONE: {cap}')"
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.launch("a", python(source), env={"TOKEN": SECRET}, masked=["TOKEN"], output_cap=cap)
        result = sandbox.result(directory)
        text = Path(directory, "stdout").read_text()
        assert result["stdout"]["truncated"] and f"DONE: {cap}" in text and "bytes left out here" in text
        head, tail = text.split("\n[tenuto:")[0], text.rpartition("left out here]\n")[2]
        assert SECRET not in text
        assert not head.endswith(tuple(SECRET[:n] for n in range(4, len(SECRET)))), head
        assert not tail.startswith(tuple(SECRET[-n:] for n in range(4, len(SECRET)))), tail
