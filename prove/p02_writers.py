"""Promise 2: no writer loses another's update.

64 processes at once, on one repository. Each makes updates that only it makes, one after the other, through the
library, the command line and the hook (writer.py), and says each one that was answered. One update in a hundred is met
by SIGKILL at any moment; the writer goes on as a new process behind the last update that was answered.

At the end every answered update stands in the journal, once, in the order of its writer, and the state file shows the
last value of each; what the hook was told stands in the run, too. An update that was not answered may be there or not,
but not half.

The broken variant writes what it read before, whoever wrote since.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from prove.frame import ROOT, Amount, Progress, Result, alone, dice, environment, place, python, silent
from prove.looking import opened, reopen
from prove.scenes import play
from prove.writer import SESSION
from tenuto.encoding import loads

# Writers, updates of each, and one in how many goes through the command line, and through the hook.
FULL, SAMPLE = (64, 1_000, 100), (6, 24, 8)
KILLED = 0.01
STAGED, FEATURE = "dark-mode", "oauth-login"


def prove(amount: Amount, tell: Progress) -> Result:
    return _race(*(FULL if amount.full else SAMPLE), tell, broken=False)


def control(amount: Amount) -> Result:
    """Four who write what they read before the others wrote."""
    return _race(4, 40, 1_000, silent, broken=True)


class Writer:
    """Starts the process, kills it now and then, and knows what was answered."""

    def __init__(self, root: Path, name: str, count: int, own: int, broken: int, random: random.Random) -> None:
        self.root, self.name, self.count, self.own, self.broken = root, name, count, own, broken
        self.random = random
        self.answered: list[int] = []
        self.kills = 0
        self.failed = ""

    def run(self) -> None:
        began = 0
        while began < self.count and not self.failed:
            words = [
                str(self.root),
                self.name,
                str(began),
                str(self.count),
                str(self.own),
                *([str(self.broken)] if self.broken else []),
            ]
            command = python(str(ROOT / "prove" / "writer.py"), *words)
            # A group of its own: what it has started is killed with it, or would make a late update that nobody was
            # answered.
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), start_new_session=True
            ) as process:
                assert process.stdout is not None and process.stderr is not None
                killed = False
                for line in process.stdout:
                    self.answered.append(int(line))
                    if self.random.random() < KILLED and not killed:
                        # At any moment of the next update, not at its beginning.
                        timer = threading.Timer(self.random.random() * 0.02, _kill_group, [process.pid])
                        timer.start()
                        killed = True
                        self.kills += 1
                said = process.stderr.read().decode()
            if process.returncode not in (0, -9):
                self.failed = said[-300:] or f"ended with {process.returncode}"
            began = self.answered[-1] + 1 if self.answered else began


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it had ended by itself


def _race(writers: int, count: int, own: int, tell: Progress, broken: bool) -> Result:
    with alone(), place() as work:
        root = work / "repository"
        root.mkdir()
        subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
        for command in (
            ("staged", "init", "--task", "Dark mode", "--pipelineProfile", "minimal"),
            ("feature", "start", "OAuth login", "--session", SESSION),
        ):
            assert play(root, command).returncode == 0
        roster = [
            Writer(root, f"w{n}", count, own, writers if broken else 0, dice("writers", n)) for n in range(writers)
        ]
        threads = [threading.Thread(target=writer.run) for writer in roster]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
                tell(sum(len(writer.answered) for writer in roster), writers * count)
        violations = [f"{writer.name}: {writer.failed}" for writer in roster if writer.failed]
        violations += _lost(root, roster)
        answered = sum(len(writer.answered) for writer in roster)
        figures = {
            "writers": f"{writers}",
            "updates answered": f"{answered:,}",
            "of them by command line and hook": f"{2 * (answered // own):,}",
            "killed": f"{sum(writer.kills for writer in roster):,}",
            "lost": f"{len(violations):,}",
        }
        return Result(answered, violations, figures)


def _lost(root: Path, roster: list[Writer]) -> list[str]:
    # As the writers left it: the next turn would bring a file that is behind up to date.
    shown: Any = loads((root / ".agents/tmp/state.json").read_bytes()).get("writers", {})
    try:
        seen = reopen(root)
    except Exception as error:  # noqa: BLE001  whatever it raises, the repository cannot be opened
        return [f"it cannot be opened: {error!r}"]
    recorded: dict[str, list[int]] = {writer.name: [] for writer in roster}
    with opened(root) as workspace, workspace.journal.read() as reader:
        for event in reader.events(STAGED):
            for name, number in _writers(event):
                recorded[name].append(number)
        told = Counter(event["attempt"] for event in reader.events(FEATURE) if event["type"] == "AttemptDispatched")
        agents = (reader.load(FEATURE) or {"attempts": {}})["attempts"]
    found = [*seen.problems]
    made = {
        f"{writer.name}-{number}" for writer in roster for number in range(writer.own - 2, writer.count, writer.own)
    }
    found += [f"{name} stands there through the hook, and nobody made it" for name in told.keys() - made]
    found += [f"{name} stands there {times} times through the hook" for name, times in told.items() if times > 1]
    for writer in roster:
        by_hook = [number for number in writer.answered if number % writer.own == writer.own - 2]
        staged = [number for number in writer.answered if number % writer.own != writer.own - 2]
        found += [
            f"{writer.name}: update {number} through the hook is not there"
            for number in by_hook
            if f"{writer.name}-{number}" not in told or f"{writer.name}-{number}" not in agents
        ]
        there = recorded[writer.name]
        missing = sorted(set(staged) - set(there))
        found += [f"{writer.name}: update {number} was answered and is not there" for number in missing]
        # Killed between the commit and the answer, an update is there, and its writer repeats it.
        if there != sorted(there) or len(there) - len(set(there)) > writer.kills:
            found.append(f"{writer.name}: its updates stand there twice or in another order")
        if there and shown.get(writer.name) != there[-1]:
            found.append(f"{writer.name}: the file shows {shown.get(writer.name)}, and its last update was {there[-1]}")
    return found


def _writers(event: Any) -> list[tuple[str, int]]:
    told = event.get("extra", {}).get("writers") or event.get("settings", {}).get("writers") or {}
    return list(told.items())
