"""A SubagentStop hook as a process: payload in, state file updated, durable, out.

    bare    python -I -S -c pass: the least that any Python program takes
    hook    python -I -S tenuto/entrypoints/hook.py SubagentStop
    shell   bash, flock, jq and sync, doing the same to the same file (where jq is installed)

Interleaved, so that whatever else the machine does falls on all of them; medians, and ratios to bare.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOOK = ROOT / "tenuto" / "entrypoints" / "hook.py"
LIMITS = {"hook": "2.5, goal 2.0", "shell": "the same update with flock, jq and sync"}
SESSION = "00000000-0000-4000-8000-000000000001"


def main(rounds: int = 60) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        repository = prepare(Path(folder), rounds)
        times: dict[str, list[float]] = {"bare": [], "hook": [], "shell": []}
        for number in range(rounds):
            times["bare"].append(timed([sys.executable, "-I", "-S", "-c", "pass"], b"", repository))
            times["hook"].append(
                timed([sys.executable, "-I", "-S", str(HOOK), "SubagentStop"], stop(repository, number), repository)
            )
            if shutil.which("jq"):
                script = ["bash", str(ROOT / "bench" / "hook_update.sh"), str(repository / "shell" / "state.json")]
                times["shell"].append(timed(script, json.dumps(SEED).encode(), repository))
        check(repository, rounds)
    medians = {name: statistics.median(found) * 1000 for name, found in times.items() if found}
    ratios = {name: median / medians["bare"] for name, median in medians.items()}
    print(f"{rounds} rounds, interleaved\n{'':8}{'median':>10}{'to bare':>9}   limit")
    for name, median in medians.items():
        print(f"{name:8}{median:7.1f} ms{ratios[name]:9.2f}   {LIMITS.get(name, '')}".rstrip())
    if "shell" not in medians:
        print("shell   not measured: there is no jq here")
    return ratios | {"bare_ms": medians["bare"]}


SEED = {
    "agentName": "spec-writer", "completedPhase": "spec", "nextPhase": "plan", "filesCreated": [], "filesModified": [],
    "timestamp": "2025-11-29T14:30:00Z",
}  # fmt: skip


def prepare(folder: Path, rounds: int) -> Path:
    """A feature with as many agents under way as there will be stops; bytecode as an installation has it."""
    import compileall

    import tenuto

    compileall.compile_dir(ROOT / "tenuto", quiet=1)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    workspace = tenuto.open(str(folder))
    workspace.feature_state.start("Bench", "What a hook costs", session=SESSION)
    with workspace.turn() as turn:
        for number in range(rounds):
            started = {"do": "DispatchAttempt", "attempt": f"agent-{number}", "role": "spec-writer", "agent": "claude"}
            turn.do("bench", started | {"extra": {"session": SESSION, "depth": 1}})
    (folder / "shell").mkdir()
    shutil.copy(folder / ".feature-state.json", folder / "shell" / "state.json")
    return folder


def stop(repository: Path, number: int) -> bytes:
    return json.dumps({
        "session_id": SESSION, "transcript_path": str(repository / "t.jsonl"), "cwd": str(repository),
        "permission_mode": "bypassPermissions", "agent_id": f"agent-{number}", "agent_type": "feature-dev-plus:spec-writer",
        "hook_event_name": "SubagentStop", "stop_hook_active": False, "last_assistant_message": "DONE: specified",
        "background_tasks": [], "session_crons": [],
    }).encode()  # fmt: skip


def timed(command: list[str], payload: bytes, folder: Path) -> float:
    environment = {"PATH": os.environ["PATH"]}
    begun = time.perf_counter()
    subprocess.run(command, input=payload, cwd=folder, env=environment, check=True)
    return time.perf_counter() - begun


def check(repository: Path, rounds: int) -> None:
    """A hook that did nothing would be fast."""
    import tenuto

    run = tenuto.open(str(repository)).load("bench")
    ended = [attempt for attempt in run["attempts"].values() if attempt["status"] == "completed"]
    assert len(ended) == rounds, f"{len(ended)} of {rounds} were recorded"
    assert json.loads((repository / ".feature-state.json").read_text())["phases"]["spec"] == "completed"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(int(sys.argv[1]) if sys.argv[1:] else 60)
