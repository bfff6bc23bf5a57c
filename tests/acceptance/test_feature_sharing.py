"""`.feature-state.json` is shared: a script that rewrites it while hooks report loses nothing, and makes us lose
nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tenuto

ROOT = Path(__file__).resolve().parents[2]
HOOK = ROOT / "tenuto" / "entrypoints" / "hook.py"
TIMES = 60
# How people's own hooks do it: read, change, rename.
SCRIPT = """
i=0
while [ $i -lt "$1" ]; do
  i=$((i + 1))
  jq --argjson n $i '.script = {count: ((.script.count // 0) + 1), last: $n}' .feature-state.json > .feature-state.json.mine &&
    mv .feature-state.json.mine .feature-state.json
done
"""  # noqa: E501


@pytest.mark.needs("jq")
def test_a_script_and_sixty_hooks_on_one_file(tmp_path: Path) -> None:
    tenuto.open(str(tmp_path)).feature_state.start("Shared", session="s")
    script = subprocess.Popen(["sh", "-c", SCRIPT, "sh", str(TIMES)], cwd=tmp_path)

    def report(number: int) -> tuple[int, bytes]:
        payload = {
            "session_id": "s",
            "cwd": str(tmp_path),
            "hook_event_name": "SubagentStop",
            "agent_id": f"a{number}",
            "agent_type": "worker",
            "last_assistant_message": f"DONE: {number}",
        }
        command = [sys.executable, "-I", "-S", str(HOOK), "SubagentStop"]
        env = {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            command, input=json.dumps(payload).encode(), cwd=tmp_path, env=env, capture_output=True, check=False
        )
        return done.returncode, done.stderr

    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(report, range(TIMES)))
    assert script.wait() == 0
    assert {status for status, _ in said} == {0}
    assert report(TIMES)[0] == 0  # whatever the script wrote last is read by the next report
    run = tenuto.open(str(tmp_path)).load("shared")
    assert len(run["attempts"]) == TIMES + 1
    state = json.loads((tmp_path / ".feature-state.json").read_text())
    assert state["script"] == {"count": TIMES, "last": TIMES}
