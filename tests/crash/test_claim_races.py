"""Exactly one wins the claim: a supervisor, another supervisor, or a void."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tenuto.supervise import attempts
from tests.support import rogues
from tests.support.sandbox import Sandbox, python

PACKAGE = str(Path(attempts.__file__).parents[2])

RACERS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tenuto.supervise import attempts, records
root, rounds, racers = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for number in range(rounds):
    directory = os.path.join(root, str(number))
    os.mkdir(directory)
    starts, start = os.pipe()
    results, result = os.pipe()
    for racer in range(racers):
        if os.fork() == 0:
            os.close(start)
            os.read(starts, 1)
            if racer % 2:
                won = records.create_once(os.path.join(directory, "claim"),
                    {"state": "claimed", "attempt": "a", "racer": racer}) is not None
                told = records.read(os.path.join(directory, "claim"))
                ours = told.get("racer") == racer
            else:
                won = attempts.void(directory)
                told = records.read(os.path.join(directory, "claim"))
                ours = told["state"] == "void"
            os.write(result, b"w" if won else b"l" if not ours else b"?")
            os._exit(0)
    os.close(start)
    os.close(result)
    for _ in range(racers):
        os.wait()
    claimed = records.read(os.path.join(directory, "claim"))["state"] == "claimed"
    said = os.read(results, 100)
    expected = 1 if claimed else racers // 2
    assert said.count(b"w") == expected and b"?" not in said, (number, said, claimed)
    print("claimed" if claimed else "void")
    for descriptor in (starts, results):
        os.close(descriptor)
"""


def test_of_many_at_the_same_moment_one_gets_the_claim(tmp_path: Path) -> None:
    """150 races of six: one claim, or a void that all who asked for one agree on; never both, never none."""
    done = subprocess.run(
        python(RACERS, PACKAGE, str(tmp_path), "150", "6"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.split()
    assert len(outcomes) == 150
    assert not [name for path in tmp_path.iterdir() for name in path.iterdir() if name.name != "claim"]


VOID = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tenuto.supervise import records
claim = os.path.join(sys.argv[2], "claim")
mine = records.create_once(claim, {"state": "void", "attempt": "", "at": "", "supervisor": None, "cgroup": None})
os._exit(mine is None)
"""


def test_supervisors_and_a_void_race_and_the_agent_runs_once_or_never(tmp_path: Path) -> None:
    """Two launches of the same attempt and a void, all three processes just started: who wins is chance,
    and what the void was told is what happened."""
    with Sandbox(str(tmp_path), cap=8) as sandbox:
        log = Path(sandbox.work, "log")
        agent = ["sh", "-c", f'echo "$TENUTO_ATTEMPT" >> {log}']
        voids: dict[str, subprocess.Popen[bytes]] = {}
        for number in range(60):
            name = f"race-{number}"
            directory = sandbox.directory(name)
            spec = sandbox.spec(name, agent, env={"PATH": "/usr/bin:/bin"})
            attempts.prepare(directory, spec)
            attempts.launch(directory, spec)
            voids[name] = subprocess.Popen(python(VOID, PACKAGE, directory))
            attempts.launch(directory, spec)
        won = {name: process.wait() == 0 for name, process in voids.items()}
        sandbox.await_supervisors()
        ran = log.read_text().split()
        for name, void in won.items():
            assert ran.count(sandbox.prefix + name) == (0 if void else 1)
            assert attempts.inspect(sandbox.directory(name))["state"] == ("void" if void else "finished")


def test_a_void_where_nothing_was_launched_holds_for_ever(tmp_path: Path) -> None:
    """An orchestrator that wakes up late launches what another has given up: nothing is started."""
    with Sandbox(str(tmp_path)) as sandbox:
        directory = sandbox.directory("a")
        assert attempts.inspect(directory)["state"] == "absent"
        assert attempts.void(directory)
        assert attempts.void(directory)
        sandbox.launch("a", rogues.command("obey", sandbox.fifo))
        sandbox.await_supervisors()
        assert attempts.inspect(directory)["state"] == "void"
