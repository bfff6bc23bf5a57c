"""`make demo`: a run from request to result in a new git repository, killed on the way. No model, no network.

    python -m tenuto.testing.demo            watch it
    python -m tenuto.testing.demo --keep     and keep the repository

A worker process stands for the agents: for each step it leaves a line in a file that Tenuto knows nothing about,
so that what really ran can be compared with what the journal says. Every claim of the summary is checked; the
demo fails if one does not hold.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import tenuto
from tenuto.testing import crashing
from tenuto.workspace.examine import examine

RUN = "dark-mode"
STEPS = ("research", "design", "build")
SAID = {
    "research": "# Research\n\nThe theme lives in one file; 14 components read it.\n",
    "design": "# Design\n\nOne token per colour, a switch in the header, the choice kept per user.\n",
    "build": "# Build\n\nTokens, switch and storage are in. 31 tests pass.\n",
}
KILLS = 24
RAN = "what-really-ran.txt"
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ---- what the worker process does ------------------------------------------------------------------


def work(root: str, pause_in: str = "") -> int:
    """Every step that is not done yet. A driver that died between two lines left nothing to clean up by hand."""
    workspace = tenuto.open(root, by="worker")
    for step in STEPS:
        known = workspace.load(RUN)["steps"].get(step)
        if known is None or known["status"] != "completed":
            attempt = begin(workspace, step)
            act(root, step, pause_in)
            end(workspace, step, attempt)
    with workspace.turn() as turn:
        shown = [{"path": a["path"], "sha256": a["sha256"]} for a in turn.existing(RUN)["artifacts"].values()]
        turn.do(RUN, {"do": "OpenGate", "name": "release", "prompt": "Ship it?", "shown": shown})  # type: ignore[typeddict-item]
    return 0


def begin(workspace: tenuto.Workspace, step: str) -> str:
    with workspace.turn() as turn:
        run = turn.existing(RUN)
        for name, known in run["attempts"].items():
            if known["status"] in ("dispatched", "running"):
                turn.do(RUN, {"do": "LoseAttempt", "attempt": name, "reason": "its process was killed"})
        if not any(visit["step"] == step and visit["status"] == "running" for visit in run["visits"]):
            turn.do(RUN, {"do": "StartStep", "step": step})
        attempt = f"{step}-{1 + sum(known['step'] == step for known in run['attempts'].values())}"
        turn.do(RUN, {"do": "DispatchAttempt", "attempt": attempt, "step": step, "role": step})
    return attempt


def act(root: str, step: str, pause_in: str) -> None:
    with open(f"{root}/{RAN}", "a") as file:
        file.write(step + "\n")
    if step == pause_in:
        print("in the middle", flush=True)
        sys.stdin.read()  # for ever: whoever started this kills it here


def end(workspace: tenuto.Workspace, step: str, attempt: str) -> None:
    with workspace.turn() as turn:
        turn.store(RUN, step, f"docs/{step}.md", SAID[step].encode(), step=step, attempt=attempt)
        turn.do(RUN, {"do": "FinishAttempt", "attempt": attempt, "status": "completed", "verdict": "DONE"})
        turn.do(RUN, {"do": "EndStep", "step": step, "status": "success", "verdict": "DONE"})


def note(root: str, number: str) -> int:
    """One small command, to be killed at any of its lines."""
    with tenuto.open(root, by="worker").turn() as turn:
        turn.do(RUN, {"do": "Note", "text": f"note {number}", "key": f"note-{number}"})
    print("answered", flush=True)
    return 0


# ---- what is shown ---------------------------------------------------------------------------------


class Demo:
    def __init__(self, root: str) -> None:
        self.root = root
        self.seen: list[tuple[str, str]] = []
        self.bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._number = 0

    def title(self, text: str) -> None:
        self._number += 1
        line = f"{self._number}. {text}"
        print(f"\n\x1b[1m{line}\x1b[0m" if self.bold else f"\n{line}", flush=True)

    def tenuto(self, *words: str, expect: int = 0, show: str = "") -> str:
        """A command as a user would type it. `show`: only lines that match."""
        shown = " ".join(f"'{word}'" if " " in word else word for word in words)
        print(f"   $ tenuto {shown}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "tenuto", *words], cwd=self.root, env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode != expect:
            raise SystemExit(f"tenuto {shown} ended with {done.returncode}, not {expect}:\n{done.stdout}")
        for line in done.stdout.splitlines():
            if re.search(show, line):
                print(f"     {line}".rstrip(), flush=True)
        return done.stdout

    def claim(self, promise: str, fact: str, holds: bool) -> None:
        if not holds:
            raise SystemExit(f"NOT KEPT: {promise}: {fact}")
        self.seen.append((promise, fact))

    def worker(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tenuto.testing.demo", *words], env=environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip


def environment() -> dict[str, str]:
    paths = [PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def play(demo: Demo) -> None:
    begin_run(demo)
    kill_in_the_middle(demo)
    resume(demo)
    wait_at_the_gate(demo)
    kill_everywhere(demo)
    look_back(demo)


def begin_run(demo: Demo) -> None:
    demo.title("A request becomes a run; its files are written from the journal")
    demo.tenuto("init", show="journal")
    demo.tenuto("context", "INIT task: Dark mode", show="STATUS|TASK")


def kill_in_the_middle(demo: Demo) -> None:
    demo.title("A worker does step after step, and is killed (kill -9) in the middle of the third")
    worker = demo.worker("work", demo.root, "build")
    assert worker.stdout is not None
    worker.stdout.readline()
    worker.kill()
    worker.communicate()
    demo.tenuto("status", show="dark-mode:|STEP|research|design|build|ATTEMPT")


def resume(demo: Demo) -> None:
    demo.title("Another worker goes on: what is done is not done again, what was lost is named and repeated")
    if demo.worker("work", demo.root).wait() != 0:
        raise SystemExit("the second worker failed")
    demo.tenuto("history", RUN, show="lost|build|gate")
    with open(f"{demo.root}/{RAN}") as file:
        ran = file.read().split()
    counts = {step: ran.count(step) for step in STEPS}
    told = ", ".join(f"{step} {count}x" for step, count in counts.items())
    demo.claim("nothing finished ran twice", f"{told}; the first build was killed", list(counts.values()) == [1, 1, 2])


def wait_at_the_gate(demo: Demo) -> None:
    demo.title("A gate waits for a person; nothing passes it")
    demo.tenuto("status", "--exit-code", expect=5, show="waits|Ship")
    demo.tenuto("context", "START_PHASE phase: release", expect=1, show="ERROR")
    workspace = tenuto.open(demo.root, by="ada")
    held = workspace.load(RUN)["status"] == "waiting_gate"
    demo.claim("nothing unapproved advanced", "'release' was refused while the gate was open", held)
    print("   (ada approves what was shown to her, by its hashes)", flush=True)
    with workspace.turn() as turn:
        shown = [{"path": a["path"], "sha256": a["sha256"]} for a in turn.existing(RUN)["artifacts"].values()]
        turn.do(RUN, {"do": "DecideGate", "decision": "approve", "who": "ada", "shown": shown})  # type: ignore[typeddict-item]
        turn.do(RUN, {"do": "StartStep", "step": "release"})
        turn.do(RUN, {"do": "EndStep", "step": "release", "status": "success", "verdict": "DONE"})


def kill_everywhere(demo: Demo) -> None:
    demo.title(f"{KILLS} commands are killed, each at another line, before or after its commit")
    folder = os.path.join(PACKAGE, "tenuto")
    whole = killed_before(demo, 1 << 20, folder, 0)
    lines = int(re.findall(r"after (\d+) lines", whole.stderr)[0])
    answered, workspace = 1, tenuto.open(demo.root)
    for number in range(1, KILLS + 1):
        # Most lines only look; the last quarter writes.
        done = killed_before(demo, lines * 3 // 4 + lines * number // (4 * KILLS + 4), folder, number)
        answered += "answered" in done.stdout
        damage = [found for found in examine(workspace)["findings"] if found["severity"] != "behind"]
        if damage:
            raise SystemExit(f"kill {number} left damage: {damage}")
    with workspace.journal.read() as reader:
        kept = sum(reader.has_key(RUN, f"note-{number}") for number in range(KILLS + 1))
    print(f"   {kept - 1} had been recorded, {KILLS - kept + 1} had not begun to be; none was half there", flush=True)
    fact = f"{KILLS} kills, sound after each; all that was answered is there"
    demo.claim("no update was lost", fact, answered <= kept <= KILLS + 1)


def killed_before(demo: Demo, line: int, folder: str, number: int) -> subprocess.CompletedProcess[str]:
    command = crashing.command("kill", line, folder, "tenuto.testing.demo", "note", demo.root, str(number))
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def look_back(demo: Demo) -> None:
    demo.title("Files that a kill left behind are repaired, and everything is checked")
    demo.tenuto("repair", show="written|nothing")
    sound = demo.tenuto("verify")
    demo.claim("every event is as it was written", sound.strip(), sound.startswith("sound") and "behind" not in sound)
    with tenuto.open(demo.root, by="ada").turn() as turn:
        turn.do(RUN, {"do": "Finish"})
    demo.tenuto("list")


def summary(demo: Demo) -> Iterator[str]:
    yield ""
    width = max(len(promise) for promise, _ in demo.seen)
    for promise, fact in demo.seen:
        yield f"   {promise.ljust(width)}   {fact}"


def main(words: list[str]) -> int:
    if words[:1] == ["work"]:
        return work(*words[1:])
    root = tempfile.mkdtemp(prefix="tenuto-demo-")
    try:
        subprocess.run(["git", "init", "-q", root], check=True)
        demo = Demo(root)
        play(demo)
        demo.title("What was promised, and what was seen")
        print("\n".join(summary(demo)), flush=True)
        print(f"\nkept: {root}" if "--keep" in words else "", flush=True)
    finally:
        if "--keep" not in words:
            shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
