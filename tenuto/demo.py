"""`make demo`: the eight steps on a small real project, with scripted agents that do real work. No model, no network.

    python -m tenuto.demo               watch it; the project stays, so that you can go on with it
    python -m tenuto.demo --remove      and remove the project at the end

A design is sent back, a false DONE is found out, an item is planned and made again, the engine runs the project's own
tests, the orchestrator is killed (kill -9) in the middle and started again, and the code is merged. Each agent leaves
a line in a file that Tenuto knows nothing about, so that what really ran can be compared with what the journal says.
Every claim of the summary is checked; the demo fails where one does not hold.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ruamel.yaml import YAML

import tenuto
from tenuto.core.times import between, iso
from tenuto.encoding import dumps
from tenuto.metrics import critical_path, figures, rolling_gain, spans
from tenuto.show.measures import amounts, span
from tenuto.show.runs import recorded
from tenuto.workspace.guard import program

if TYPE_CHECKING:
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Run
    from tenuto.metrics import Span
    from tenuto.show.runs import RecordedEvent

RUN = "add-a-dark-mode"
STORY = Path(__file__).with_name("demo.yaml")
PACKAGE = Path(__file__).resolve().parents[1]
_WIDTH = 60


class Answer(TypedDict, total=False):
    """One answer of a scripted agent; what else stands in it is the script's."""

    run: str


class Story(TypedDict):
    request: str
    project: dict[str, str]  # path -> text
    answers: list[Answer]


def main(words: list[str]) -> int:
    if set(words) - {"--remove"}:
        print("python -m tenuto.demo [--remove]", file=sys.stderr)
        return 2
    home = Path(tempfile.mkdtemp(prefix="tenuto-demo-"))
    try:
        Demo(home).play(stays="--remove" not in words)
    finally:
        if "--remove" in words:
            shutil.rmtree(home, ignore_errors=True)
    return 0


class Demo:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "notes"
        self.script = home / "answers.yaml"
        self.witness = home / "what-really-ran.txt"
        self.killed_at = ""
        self.bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def play(self, stays: bool) -> None:
        story: Story = YAML(typ="safe", pure=True).load(STORY.read_text("utf-8"))
        self.title("A small project, committed to git")
        self.make_project(story)
        self.title("tenuto run 'Add a dark mode'")
        self.run_and_kill(story["request"])
        self.title("The code goes where it belongs")
        self.merge()
        self.title("What was promised, and what was seen")
        self.judge()
        self.sum_up()
        if stays:
            self.show_more()

    def title(self, text: str) -> None:
        print(f"\n\x1b[1m{text}\x1b[0m" if self.bold else f"\n{text}", flush=True)

    # ---- the project

    def make_project(self, story: Story) -> None:
        for path, text in story["project"].items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        python = shlex.quote(sys.executable)
        config = self.root / ".tenuto" / "config.yaml"
        config.parent.mkdir()
        checks = {"build": f"{python} -m compileall -q notes", "tests": f"{python} -m unittest -q"}
        config.write_text(dumps({"agent": f"scripted:{self.script}", "checks": checks}) + "\n", "utf-8")  # JSON is YAML
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "user.name", "Demo")
        self.git("config", "user.email", "demo@example.org")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "Notes as a page")
        self.script.write_text(_script(story["answers"], self.witness), "utf-8")
        print(f"  {self.root}: {len(story['project'])} files, two tests", flush=True)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"git {' '.join(words)}: {done.stderr}")
        return done.stdout.strip()

    # ---- the run

    def run_and_kill(self, request: str) -> None:
        """Killed once, as soon as implementers are at work; agents go on, and the next orchestrator adopts them."""
        engine = self.tenuto(
            "run", request, "--workspace", "worktree", "--limit", "money=20", "--limit", "attempts=120"
        )
        while engine.poll() is None:
            if self.at_work("implementation") >= 2:
                engine.kill()
                engine.wait()
                self.killed_at = iso(time.time_ns() // 1_000_000)
                self.title("kill -9: the orchestrator is dead, its agents work on. tenuto run, again:")
                engine = self.tenuto("run")
                break
            time.sleep(0.05)
        if engine.wait() != 0:
            raise SystemExit(f"tenuto run ended with {engine.returncode}; see {self.root}")

    def at_work(self, step: str) -> int:
        """How many agents of a step have begun, as they say themselves."""
        return self.witness.read_text("utf-8").count(f".{step}-") if self.witness.exists() else 0

    def tenuto(self, *words: str) -> subprocess.Popen[bytes]:
        paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "tenuto", *words, "--trust"],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            env={**_persons(os.environ), "PYTHONPATH": os.pathsep.join(paths)},
        )

    def merge(self) -> None:
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD")
        self.git("switch", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "Merge dark mode", branch)
        print(
            f"  {branch} is merged into main: "
            f"{self.git('diff', '--shortstat', 'HEAD^1', '--', 'notes', 'tests', 'README.md')}"
        )
        shown = subprocess.run(
            [sys.executable, "-m", "notes", "--theme", "dark", "milk"],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"  python -m notes --theme dark milk\n    {shown.stdout.strip()[:100]}...", flush=True)

    # ---- what came of it

    def judge(self) -> None:
        workspace = tenuto.open(str(self.root))
        run = workspace.load(RUN)
        for promise, fact, holds in self.claims(run, recorded(workspace, RUN)["events"]):
            if not holds:
                raise SystemExit(f"NOT KEPT: {promise}: {fact}")
            print(f"  {promise:<39}{fact}", flush=True)

    def claims(self, run: Run, events: list[RecordedEvent]) -> Iterator[tuple[str, str, bool]]:
        ran = self.witness.read_text("utf-8").split()
        ends = [name for entry in events if (name := _ended(entry["event"]))]
        started = {name.split(".", 1)[1].rsplit(".", 1)[0] for name in ran}
        yield (
            "nothing finished ran twice",
            f"{len(ran)} starts, {len(set(ran))} different ones, {len(ends)} results",
            (len(ran) == len(set(ran)) == len(ends) == len(set(ends)) and set(ends) == started),
        )
        over = [
            a
            for a in run["attempts"].values()
            if self.killed_at and a["started_at"] < self.killed_at < (a["ended_at"] or "")
        ]
        yield (
            "agents outlived the orchestrator",
            f"{len(over)} were at work when it was killed; all were collected",
            bool(over),
        )
        peak = _peak(events)
        yield "nothing was admitted past the cap", f"at most {peak} at a time, and the cap is 4", peak <= 4
        false = [a for a in run["attempts"].values() if a["summary"].startswith("claimed DONE, but")]
        yield (
            "a false DONE was found out",
            f"{len(false)}: v-tests said that all tests pass; the engine ran them",
            len(false) == 1,
        )
        back = run["routes"]
        yield (
            "the design was sent back once",
            f"{back.get('design-review.NEEDS_REVISION', 0)} of at most 1",
            back.get("design-review.NEEDS_REVISION") == 1,
        )
        yield (
            "a failing item was made again",
            f"{back.get('verification.NOT_DONE', 0)} of at most 3 rounds: 03-page",
            back.get("verification.NOT_DONE") == 1,
        )
        checks = [check for a in run["attempts"].values() for check in a["receipt"].get("checks", [])]
        passed = sum(1 for check in checks if not check["reason"])
        yield (
            "the engine ran build and tests itself",
            f"{len(checks)} times, {passed} passed",
            passed >= 3 and len(checks) > passed,
        )
        clean = self.tests_pass_in_a_clone()
        yield "the merged code passes its tests", "in a fresh clone of main", clean
        sound = subprocess.run(
            [sys.executable, "-m", "tenuto", "verify"], cwd=self.root, capture_output=True, text=True, check=False
        )
        yield "every event is as it was written", f"{run['version']} events, chained", sound.returncode == 0

    def tests_pass_in_a_clone(self) -> bool:
        clone = self.home / "clone"
        self.git("clone", "-q", ".", str(clone))
        done = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=clone, capture_output=True, check=False)
        return done.returncode == 0 and self.git("-C", str(clone), "status", "--porcelain") == ""

    def sum_up(self) -> None:
        run = tenuto.open(str(self.root)).load(RUN)
        self.title("Receipts: what some of the attempts really did")
        print("\n".join(receipts(run)))
        self.title("The time it took")
        print("\n".join(timeline(run, self.killed_at)))
        found, path = figures(run), critical_path(run)
        gain = sum(one["saved_ms"] for one in rolling_gain(run, 4))
        print(
            f"\n  {span(found['total_ms'])} of work; one after the other {span(found['sequential_ms'])}: side by "
            f"side saved {found['savings_percent']}%"
        )
        print(
            f"  critical path {span(sum(link['ms'] for link in path))}; rolling order would have saved another "
            f"{span(gain)}"
        )
        print(
            f"  {amounts({'attempts': found['attempts']})}, {found['retries']} of them again; the script says "
            f"{amounts(found['usage'])}"
        )

    def show_more(self) -> None:
        self.title("What to try next")
        print(f'  cd {shlex.quote(str(self.root))}; tenuto() {{ {shlex.quote(sys.executable)} -m tenuto "$@"; }}\n')
        for command, words in _NEXT:
            print(f"  {command:<54}{words}")
        sys.stdout.flush()


_NEXT = (
    ("tenuto run 'Once more' --workspace worktree", "watch it; kill it (kill -9) wherever you like,"),
    ("tenuto run", "and run it again: it goes on where it was"),
    ("tenuto run 'With gates' --approval", "it stops for you; then: tenuto approve, tenuto run"),
    (f"tenuto logs {RUN} verification-1-v-tests-1", "what was claimed, and what the receipt says"),
    ("tenuto artifacts --cat design.md", "the design, as it was delivered"),
    ("tenuto history | less", "everything that happened, and why"),
    ("tenuto metrics --format detailed", "attempt by attempt, and the critical path"),
    ("tenuto plan", "the graph, the worst case, the likely cost"),
    (f"tenuto fork {RUN} --at planning", "another way from the plan on"),
)


def _persons(environment: Mapping[str, str]) -> dict[str, str]:
    """The demo trusts what it has written itself a moment ago, also where a model started it."""
    return {name: value for name, value in environment.items() if not program({name: value})}


def _script(answers: list[Answer], witness: Path) -> str:
    """Every answer also leaves a line that Tenuto knows nothing about."""
    from tenuto.encoding import pretty

    leave = f'echo "$TENUTO_ATTEMPT" >> "{witness}"\n'
    witnessed = [{**answer, "run": leave + answer.get("run", "")} for answer in answers]
    return pretty({"answers": witnessed})  # JSON is YAML


def receipts(run: Run) -> Iterator[str]:
    for attempt in run["attempts"].values():
        receipt = attempt["receipt"]
        facts = []
        if receipt.get("merged"):
            facts.append(f"{', '.join(receipt['touched'])}; merged as {receipt['merged'][:10]}")
        for check in receipt.get("checks", []):
            facts.append(f"{check['name']}: {check['reason'] or 'passed'}, run by the engine")
        if attempt["role"] in ("designer", "planner"):
            facts += [
                f"{path.rpartition('/')[2]}, SHA-256 {made['sha256'][:10]}" for path, made in receipt["outputs"].items()
            ][:1]
        if facts:
            claim = "claimed DONE; " if attempt["verdict"] == "ERROR" else ""
            who = f"{attempt['role']} {attempt['item'] or ''}".rstrip() + (
                f" ({attempt['iteration']})" if attempt["iteration"] > 1 else ""
            )
            yield f"  {who:<33}{claim}{'; '.join(facts)}"[:110]


def _ended(event: Event) -> str:
    """An attempt that was started and has come to an end, known or not; "" for everything else."""
    if event["type"] == "AttemptFinished" or (event["type"] == "AttemptLost" and event["ran"]):
        return event["attempt"]
    return ""


def _peak(events: list[RecordedEvent]) -> int:
    in_flight = peak = 0
    for entry in events:
        kind = entry["event"]["type"]
        in_flight += (kind == "AttemptDispatched") - (kind in ("AttemptFinished", "AttemptLost"))
        peak = max(peak, in_flight)
    return peak


def timeline(run: Run, killed_at: str) -> Iterator[str]:
    """A row per step and visit, a column per moment."""
    rows: dict[tuple[str, int], list[Span]] = {}
    for one in spans(run):
        rows.setdefault((one["step"], one["visit"]), []).append(one)
    begin = min(one["started_at"] for mine in rows.values() for one in mine)
    total = max(between(begin, one["ended_at"]) for mine in rows.values() for one in mine) or 1
    for (step, visit), mine in rows.items():
        cells = [0] * _WIDTH
        for one in mine:
            first = between(begin, one["started_at"]) * (_WIDTH - 1) // total
            last = between(begin, one["ended_at"]) * (_WIDTH - 1) // total
            for column in range(first, last + 1):
                cells[column] += 1
        name = step if visit == 1 else f"{step} ({visit})"
        yield f"  {name:<19}{''.join(' ' if not cell else str(min(cell, 9)) for cell in cells).rstrip()}"
    if killed_at:
        yield f"  {'kill -9':<19}{' ' * (between(begin, killed_at) * (_WIDTH - 1) // total)}^"
    yield f"  {'':<19}0s{span(total):>{_WIDTH - 2}}   (figures: agents at work)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
