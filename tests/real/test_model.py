"""The scripted model itself: every program understands it, and it does what its script says."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import Lab
from tests.real.model import Model


def post(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=280) as answer:
        said: str = answer.read().decode()
        return said


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": "go [[script:two]]"}, {"role": "assistant", "content": "one"}]},
        ),
        (
            "/v1/responses",
            {"input": [{"role": "user", "content": "go [[script:two]]"}, {"role": "assistant", "content": "one"}]},
        ),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "go [[script:two]]"}, {"role": "assistant", "content": "one"}]},
        ),
        (
            "/v1beta/models/m:generateContent",
            {"contents": [{"parts": [{"text": "go [[script:two]]"}]}, {"role": "model", "parts": [{"text": "one"}]}]},
        ),
    ],
)
def test_the_number_of_turns_in_the_request_chooses_the_answer(path: str, body: dict[str, Any], stream: bool) -> None:
    """The same request gets the same answer, however often it is sent."""
    with Model({"two": [["first"], ["second"]]}) as model:
        for _ in range(2):
            said = post(model.url + path, {**body, "stream": stream})
            assert "second" in said and "first" not in said
        assert model.count("two", 1) == 2 and model.count("two", 0) == 0


def test_a_failure_may_pass_and_carries_its_headers() -> None:
    busy = {"status": 429, "headers": {"retry-after": "7"}, "times": 1}
    with Model({"busy": [{"fail": busy, "say": ["at last"]}]}) as model:
        body = {"messages": [{"role": "user", "content": "[[script:busy]]"}]}
        with pytest.raises(urllib.error.HTTPError) as told:
            post(model.url + "/v1/messages", body)
        told.value.close()
        assert told.value.code == 429 and told.value.headers["retry-after"] == "7"
        assert "at last" in post(model.url + "/v1/messages", body)


CASES: dict[str, Any] = {
    "claude": (
        [
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "go [[script:go]]",
        ],
        {"tool": "Write", "input": {"file_path": "{cwd}/w.txt", "content": "x\n"}},
    ),
    "codex": (
        ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", "go [[script:go]]"],
        {"tool": "exec_command", "input": {"cmd": "echo x > {cwd}/w.txt"}},
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_real_program_calls_a_tool_and_ends(
    kind: str, program: Callable[[str], str], lab: Lab, tmp_path: Path
) -> None:
    """Each program writes the file that the script has it write, and says what the script has it say."""
    argv, call = CASES[kind]
    work = tmp_path / "work"
    work.mkdir()
    filled = json.loads(json.dumps(call).replace("{cwd}", str(work)))
    model = lab.model({"go": [["Writing.", filled], ["DONE: written"]]})
    done = subprocess.run(
        [program(argv[0]), *argv[1:]],
        cwd=work,
        env={**lab.environment(kind), "PWD": str(work)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (work / "w.txt").read_text() == "x\n", done.stdout + done.stderr
    assert "DONE: written" in done.stdout and model.count("go", 1) >= 1
