"""The whole system, whatever happens to it: work, decisions, crashes, power losses, hand edits, and a clock that jumps.

Two runs live in one repository: one that a pipeline drives (handed out and reported, so that no process is needed), and
one that is led by hand. Between any two steps the process may die (before the commit, after it, between two files), and a
power loss may take back files that were not flushed. After each step everything that was ever answered is still there,
and every rule that a user relies on holds.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tenuto
from prove.frame import place
from tenuto.core.fold import fold
from tenuto.core.times import iso
from tenuto.drivers.bound import Definition, define
from tenuto.drivers.guided import accept, hand_out
from tenuto.drivers.persons import command, decide_gate
from tenuto.drivers.start import start
from tenuto.encoding import dumps, loads
from tenuto.errors import Damaged, TenutoError
from tenuto.metrics.figures import figures
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace import turn as turns
from tenuto.workspace.examine import examine

CAP = 2
PIPELINE = f"""\
name: whole
documents: docs/feature/{{slug}}
shown_as: feature_docs
memory: run
cap: {CAP}
given: [initial-request.md, memory.md]
steps:
  - {{id: setup, action: [write-request, initialize-memory]}}
  - id: look
    cluster:
      members:
        - {{id: one, role: researcher, mode: focused, focus: architecture, out: a.md}}
        - {{id: two, role: researcher, mode: focused, focus: impact, out: b.md}}
        - {{id: three, role: researcher, mode: focused, focus: patterns, out: c.md}}
      quorum: 2
      retry: {{ERROR: 1, LOST: 1}}
    on: {{ERROR: halt}}
  - id: gate
    gate: {{name: gate, show: [a.md], prompt: "Go on?", revise: look}}
  - id: write
    agent: {{role: designer, in: [a.md, b.md], out: design.md, memory: write}}
    retry: {{ERROR: 1, LOST: 1}}
    on: {{ERROR: halt}}
"""
DAY = 86_400_000
ENDED = ("completed", "failed", "cancelled")
LIMIT = 9  # attempts
POINTS = ("", "", "", "before the commit", "after the commit", "between the files")


class Crash(BaseException):
    """The process is gone."""


@functools.cache
def definition() -> Definition:
    with place() as folder:
        (folder / ".tenuto" / "pipelines").mkdir(parents=True)
        (folder / ".tenuto" / "pipelines" / "whole.yaml").write_text(PIPELINE)
        return define("whole", str(folder))


@contextlib.contextmanager
def dying(point: str, nth: int) -> Iterator[None]:
    """The nth time that a turn comes to this point, there is no process any more."""
    seen = [0]
    commit, publish = SqliteJournal.commit, turns.publish_all

    def here() -> bool:
        seen[0] += 1
        return seen[0] == nth

    def committed(journal: SqliteJournal) -> None:
        if point == "before the commit" and here():
            raise Crash
        commit(journal)
        if point == "after the commit" and here():
            raise Crash

    def published(workspace: Any, publications: list[Any]) -> None:
        if point == "between the files" and publications and here():
            publish(workspace, publications[: len(publications) // 2])
            raise Crash
        publish(workspace, publications)

    SqliteJournal.commit, turns.publish_all = committed, published  # type: ignore[method-assign]
    try:
        yield
    finally:
        SqliteJournal.commit, turns.publish_all = commit, publish  # type: ignore[method-assign]


class WholeSystem(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kept = contextlib.ExitStack()
        self.root = self.kept.enter_context(place()) / "repository"
        self.root.mkdir()
        (self.root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)  # where the journal lies; git itself is asked nothing it would have to answer
        self.now = 1_900_000_000_000
        self.answered: dict[str, list[Any]] = {}  # the events of each run, as of the last time somebody was answered
        self.hidden: dict[str, str] = {}  # why a file may differ from what it should show
        self.crashed = False
        self.workspace = self.opened()

    def teardown(self) -> None:
        self.workspace.journal.close()  # type: ignore[attr-defined]
        self.kept.close()

    def clock(self) -> str:
        self.now += 1000
        return iso(self.now)

    def opened(self) -> tenuto.Workspace:
        return tenuto.open(str(self.root), clock=self.clock)

    # ---- what is asked

    def ask(self, what: Callable[[], Any], point: str = "", nth: int = 1) -> Any:
        """Answered, refused, or dead in the middle of it."""
        before = self.files()
        try:
            with dying(point, nth):
                answer = what()
        except Crash:
            self.crashed = True
            self.before = before
            self.workspace.journal.close()  # type: ignore[attr-defined]
            self.workspace = self.opened()
            return None
        except Damaged as refusal:
            # A file that cannot be read is named, and nothing is done before somebody has looked at it.
            assert self.hidden, refusal.message
            return None
        except TenutoError as refusal:
            assert refusal.code and refusal.message
            return None
        self.crashed = False
        self.remember()
        return answer

    def remember(self) -> None:
        with self.workspace.journal.read() as reader:
            self.answered = {card["id"]: list(reader.events(card["id"])) for card in reader.runs()}

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (self.root / "docs").rglob("*") if path.is_file()}

    def run(self, name: str) -> Any:
        with self.workspace.journal.read() as reader:
            return reader.load(name)

    @initialize(limited=st.booleans())
    def begin(self, limited: bool) -> None:
        limits = {"attempts": LIMIT} if limited else {}
        self.ask(lambda: start(self.workspace, "Make it", "whole", name="driven", definition=definition(), limits=limits))
        self.ask(lambda: self.workspace.context.init("By hand"))

    @rule(point=st.sampled_from(POINTS), nth=st.integers(1, 3))
    def next(self, point: str, nth: int) -> None:
        self.ask(lambda: hand_out(self.workspace, "driven", {}), point, nth)

    @rule(
        which=st.integers(0, 3), verdict=st.sampled_from(["DONE", "DONE", "DONE", "ERROR", "NEEDS_REVISION", "lie"]),
        point=st.sampled_from(POINTS), nth=st.integers(1, 2),
    )  # fmt: skip
    def report(self, which: int, verdict: str, point: str, nth: int) -> None:
        """An agent delivers, fails, wants more, or says that it delivered and did not."""
        run = self.run("driven")
        if not run or not run["flying"]:
            return
        name = run["flying"][which % len(run["flying"])]
        out = {"one": "a.md", "two": "b.md", "three": "c.md"}.get(run["attempts"][name]["extra"]["seat"], "design.md")
        if verdict == "DONE":
            path = self.root / "docs" / "feature" / "driven" / out
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}\n\nat {self.now}\n")
        said: Any = {"verdict": "DONE" if verdict == "lie" else verdict, "summary": f"{verdict}, as of {self.now}"}
        self.ask(lambda: accept(self.workspace, "driven", name, said, {}), point, nth)

    @rule(word=st.sampled_from(["approve", "approve", "revise", "reject"]), changed=st.booleans(), point=st.sampled_from(POINTS))
    def decide(self, word: str, changed: bool, point: str) -> None:
        """A person decides; where what was shown has changed meanwhile, an approval is void."""
        shown = self.root / "docs" / "feature" / "driven" / "a.md"
        run = self.run("driven")
        waits = run is not None and run["gate"] is not None
        if changed and waits and shown.exists():
            shown.write_text(shown.read_text() + "and more\n")
        self.ask(lambda: decide_gate(self.workspace, "driven", word, "because", {}), point)
        after = self.run("driven")
        if changed and waits and shown.exists() and word == "approve":
            assert after["gate"] is not None, "approved, though what was shown had changed"

    @rule(what=st.sampled_from(["Pause", "Resume", "Cancel"]), point=st.sampled_from(POINTS), sure=st.integers(0, 5))
    def steer(self, what: str, point: str, sure: int) -> None:
        asked: Any = {"Pause": {"do": "Pause", "reason": "a break"}, "Resume": {"do": "Resume", "decision": "retry"}, "Cancel": {"do": "Cancel"}}[what]
        if what != "Cancel" or sure == 0:
            self.ask(lambda: command(self.workspace, "driven", asked), point)

    @rule(what=st.sampled_from(["start", "end", "gate", "decide", "store", "pause"]), point=st.sampled_from(POINTS), phase=st.sampled_from(["architect", "task-breakdown"]))
    def lead(self, what: str, point: str, phase: str) -> None:
        """The other run, by hand."""
        context = self.workspace.context
        acts: dict[str, Callable[[], Any]] = {
            "start": lambda: context.start_phase(phase, task="by-hand"), "end": lambda: context.end_phase(phase, "success", task="by-hand"),
            "gate": lambda: context.set_gate("design", "good?", task="by-hand"), "decide": lambda: context.resume("approve", task="by-hand"),
            "store": lambda: context.run(f"STORE task: by-hand artifact: notes.md content: as of {self.now}"),
            "pause": lambda: context.pause("a break", task="by-hand"),
        }  # fmt: skip
        self.ask(acts[what], point)

    # ---- what happens besides

    @rule(days=st.sampled_from([-1, 1]))
    def jump(self, days: int) -> None:
        self.now += days * DAY

    @rule(which=st.integers(0, 20), how=st.sampled_from(["remark", "gone", "cut", "nul"]))
    def edit(self, which: int, how: str) -> None:
        """Somebody else's hands, on a file that Tenuto shows."""
        shown = sorted((self.root / "docs").rglob("memory.md")) + sorted((self.root / "docs").rglob("manifest.json"))
        if not shown:
            return
        path = shown[which % len(shown)]
        text = path.read_bytes()
        if how == "remark" and path.suffix == ".md":
            path.write_bytes(text + b"\n- a remark\n")
        elif how == "gone":
            path.unlink()
        elif how in ("cut", "nul"):
            path.write_bytes(text[: len(text) // 2] if how == "cut" else b"\0" * len(text))
        self.hidden[str(path)] = how

    @precondition(lambda self: self.crashed)
    @rule(which=st.integers(0, 20), how=st.sampled_from(["old", "gone"]))
    def lose_power(self, which: int, how: str) -> None:
        """What was not flushed may be as it was before: files are, the journal is not."""
        changed = [path for path, body in self.files().items() if self.before.get(path) != body and "manifest" in path]
        if changed:
            path = Path(changed[which % len(changed)])
            if how == "old" and str(path) in self.before:
                path.write_bytes(self.before[str(path)])
            else:
                path.unlink()
            self.hidden[str(path)] = "lost"

    @rule()
    def reopen(self) -> None:
        self.workspace.journal.close()  # type: ignore[attr-defined]
        self.workspace = self.opened()

    @rule()
    def mend(self) -> None:
        """A person looks: damaged files are removed, and repair writes what is recorded."""
        from tenuto.workspace.repair import repair

        for path, how in list(self.hidden.items()):
            if how in ("cut", "nul") and Path(path).exists():
                Path(path).unlink()
        with contextlib.suppress(TenutoError):
            repair(self.workspace)
        self.hidden.clear()
        self.remember()

    # ---- what holds

    @invariant()
    def nothing_answered_is_lost_and_nothing_is_damaged(self) -> None:
        with self.workspace.journal.read() as reader:
            for name, events in self.answered.items():
                assert list(reader.events(name))[: len(events)] == events, f"what was answered about {name} is gone"
            for card in reader.runs():
                events = list(reader.events(card["id"]))
                run = reader.load(card["id"])
                assert run is not None and loads(dumps(run)) == loads(dumps(fold(events))), "the kept state is not what the events say"
                assert run["version"] == len(events)
        found = examine(self.workspace)["findings"]
        assert [one for one in found if one["severity"] == "damage" and str(self.root / one["where"]) not in self.hidden] == []
        # After an answer, files that nobody touched since say what the journal says.
        assert self.crashed or self.hidden or not [one for one in found if one["severity"] == "behind"]

    @invariant()
    def the_rules_hold(self) -> None:
        run = self.run("driven")
        if run is None:
            return
        with self.workspace.journal.read() as reader:
            events = list(reader.events("driven"))
        assert len(run["flying"]) <= CAP
        ends = Counter(event["attempt"] for event in events if event["type"] in ("AttemptFinished", "AttemptLost"))
        assert all(count == 1 for count in ends.values()), "an attempt ended twice"
        assert len(ends) + len(run["flying"]) == len(run["attempts"])
        if run["budget"]["limits"]:
            assert run["budget"]["spent"].get("attempts", 0) + run["budget"]["reserved"].get("attempts", 0) <= LIMIT
        self.behind_the_gate(events)
        self.ends_are_final(events)
        assert figures(run)["total_ms"] >= 0 and figures(run)["sequential_ms"] >= 0, "a clock that jumps makes no time run backwards"

    def behind_the_gate(self, events: list[Any]) -> None:
        approved, decided = False, Counter[str]()
        for event in events:
            if event["type"] == "GateDecided":
                decided[event["gate"]] += 1
                approved = event["approved"]
            assert approved or not (event["type"] == "AttemptDispatched" and event["step"] == "write"), "past a gate that nobody opened"
        assert all(count == 1 for count in decided.values()), "a gate was decided twice"

    def ends_are_final(self, events: list[Any]) -> None:
        ended = [number for number, event in enumerate(events) if event["type"] in ("Finished", "Failed", "Cancelled")]
        if ended:
            later = {event["type"] for event in events[ended[0] + 1 :]}
            assert not later & {"AttemptDispatched", "StepStarted", "GateDecided"}, later


# A few here; `HYPOTHESIS_PROFILE=prove` looks for new ones, and longer.
WholeSystem.TestCase.settings = settings(max_examples=max(10, settings.default.max_examples // 20), stateful_step_count=20)
test_the_whole_system = WholeSystem.TestCase


def test_the_machine_can_come_to_an_end() -> None:
    """The way through, without anything in between: it ends well, so the rules above are tried on runs that get somewhere."""
    system: Any = WholeSystem()
    try:
        system.begin(limited=True)
        for _ in range(3):
            system.next("", 1)
            for _ in range(3):
                system.report(0, "DONE", "", 1)
        system.decide("approve", False, "")
        system.next("", 1)
        system.report(0, "DONE", "", 1)
        system.next("", 1)
        assert system.run("driven")["status"] == "completed"
        system.nothing_answered_is_lost_and_nothing_is_damaged()
        system.the_rules_hold()
    finally:
        system.teardown()
        shutil.rmtree(system.root, ignore_errors=True)
