"""The whole system, whatever happens to it: work, decisions, crashes, power losses, hand edits, and a clock that jumps.

Two runs live in one repository: one that a pipeline drives (handed out and reported, so that no process is needed), and
one that is led by hand (whole.py). In any step the process may die: before the commit, after it, between two files;
what goes on stands on the files of that very moment. Or the power fails: the step is made by a process of its own,
whose system calls a model of a file system follows (prove/disk.py), and what that may have kept at one of these calls
takes the repository's place. After each step everything that was ever answered is still there, and every rule that a
user relies on holds.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tenuto
from prove.disk import Disk
from prove.frame import place
from prove.looking import read_tree, write_tree
from prove.power import SECTORS
from prove.tracing import trace_process
from tenuto.core.fold import fold
from tenuto.core.times import iso
from tenuto.encoding import dumps, loads
from tenuto.errors import Damaged, TenutoError
from tenuto.metrics import figures
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace import workspace as turns
from tenuto.workspace.checkup import examine
from tenuto.workspace.publish import publish_all
from tests.property.whole import CAP, act, in_another_process

DAY = 86_400_000
ENDED = ("completed", "failed", "cancelled")
LIMIT = 4  # attempts: as many as the way through takes
POINTS = ("", "", "", "before the commit", "after the commit", "between the files", "the power fails")
POWER = POINTS[-1] if shutil.which("strace") else ""
CRASHES = st.tuples(st.sampled_from([*POINTS[:-1], POWER]), st.integers(1, 3), st.integers(0, 1 << 32))
NO_CRASH = ("", 1, 0)


class Crash(BaseException):
    """The process is gone."""


@contextlib.contextmanager
def dying(root: Path, point: str, nth: int) -> Iterator[dict[str, bytes | None]]:
    """The nth time that a turn comes to this point, there is no process any more. Yields what it leaves, as soon as
    it is known."""
    seen, showing, left = [0], [0], dict[str, bytes | None]()
    commit, publish = SqliteJournal.commit, publish_all

    def here(at: str) -> None:
        # Not while a file is exchanged, where an edit may take a turn of its own: that file is ours alone then, and
        # nobody can read what is left.
        seen[0] += at == point and not showing[0]
        if at == point and not showing[0] and seen[0] == nth:
            left.update(read_tree(root))
            raise Crash

    def committed(journal: SqliteJournal) -> None:
        here("before the commit")
        commit(journal)
        here("after the commit")

    def published(workspace: Any, publications: list[Any], absorb: Any) -> None:
        half = len(publications) // 2 if point == "between the files" else 0
        for part in (publications[:half], publications[half:]):
            showing[0] += 1
            try:
                publish(workspace, part, absorb)
            finally:
                showing[0] -= 1
            here("between the files")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteJournal, "commit", committed)
        patch.setattr(turns, "publish_all", published)
        yield left


class WholeSystem(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kept = contextlib.ExitStack()
        self.root = self.kept.enter_context(place()) / "repository"
        self.root.mkdir()
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)  # in its folder lies the journal
        self.now = 1_900_000_000_000
        self.answered: dict[str, list[Any]] = {}  # the events of each run, as of the last time somebody was answered
        self.hidden: dict[str, str] = {}  # why a file may differ from what it should show
        self.behind: set[str] = (
            set()
        )  # runs that nothing was answered about since a crash: their files may tell less than the journal
        self.workspace = self.opened()

    def teardown(self) -> None:
        self.workspace.journal.close()
        self.kept.close()

    def clock(self) -> str:
        self.now += 1000
        return iso(self.now)

    def opened(self) -> tenuto.Repository:
        return tenuto.open(str(self.root), clock=self.clock)

    # ---- what is asked

    def ask(self, asked: list[Any], crash: tuple[str, int, int] = NO_CRASH) -> Any:
        """Answered, refused, or dead in the middle of it."""
        point, nth, chance = crash
        if point == "the power fails":
            return self.lose_power(asked, random.Random(chance))
        left: dict[str, bytes | None] = {}
        try:
            with dying(self.root, point, nth) as left:
                answer = act(self.workspace, asked)
        except Crash:
            self.begin_anew(left)
            return None
        except Damaged as refusal:
            # A file that cannot be read is named, and nothing is done before somebody has looked at it.
            assert self.hidden, refusal.message
            return None
        except TenutoError as refusal:
            assert refusal.code and refusal.message
            return None
        self.behind.discard("by-hand" if asked[0] == "lead" else "driven")
        self.remember()
        return answer

    def lose_power(self, asked: list[Any], dice: random.Random) -> None:
        """At some call of the process that makes this step. What was flushed is there; of the rest, whatever the
        dice keep."""
        before = read_tree(self.root)
        disk = Disk.holding(before)
        done = trace_process(self.root, in_another_process(self.root, self.now, asked), b"", self.root.parent / "trace")
        self.now += DAY // 24
        after, ended = read_tree(self.root), self.events()
        made = done.ops[: dice.randint(0, len(done.ops))]
        for op in made:
            disk.apply(op)
        share = dice.random()
        decision = {unit: dice.randrange(count) for unit, count in disk.choices().items() if dice.random() < share}
        left = disk.tree(decision, dice.choice([0, 0, *SECTORS]))
        if any(op.kind == "answer" for op in made):
            self.answered = ended
        for path, content in left.items():
            if (
                content is not None
                and not path.startswith(".git/")
                and content not in (before.get(path), after.get(path))
            ):
                self.hidden[str(self.root / path)] = "cut"
        self.begin_anew(left)

    def begin_anew(self, left: dict[str, bytes | None]) -> None:
        """The process is gone, and this is what it left."""
        self.behind = {"driven", "by-hand"}
        self.workspace.journal.close()  # whatever that still writes is not there any more
        shutil.rmtree(self.root)
        self.root.mkdir()
        write_tree(self.root, {path: content for path, content in left.items() if not path.endswith("-shm")})
        self.workspace = self.opened()

    def remember(self) -> None:
        self.answered = self.events()

    def events(self) -> dict[str, list[Any]]:
        with self.workspace.journal.read() as reader:
            return {card["id"]: list(reader.events(card["id"])) for card in reader.runs()}

    def run(self, name: str) -> Any:
        with self.workspace.journal.read() as reader:
            return reader.load(name)

    @initialize(limited=st.booleans(), far=st.booleans())
    def begin(self, limited: bool, far: bool = False) -> None:
        """`far`: already at its gate, which few get to by chance."""
        self.ask(["begin", {"attempts": LIMIT} if limited else {}])
        self.ask(["lead", "init"])
        for _ in range(3 if far else 0):
            self.next(NO_CRASH)
            for _ in range(CAP):
                self.report(0, "DONE", NO_CRASH)

    @rule(crash=CRASHES)
    def next(self, crash: Any) -> None:
        self.ask(["next"], crash)

    @rule(
        which=st.integers(0, 3),
        verdict=st.sampled_from(["DONE", "DONE", "DONE", "ERROR", "NEEDS_REVISION", "lie"]),
        crash=CRASHES,
    )
    def report(self, which: int, verdict: str, crash: Any) -> None:
        """An agent delivers, fails, wants more, or says that it delivered and did not."""
        run = self.run("driven")
        if not run or not run["in_flight"]:
            return
        name = run["in_flight"][which % len(run["in_flight"])]
        out = {"one": "a.md", "two": "b.md", "three": "c.md"}.get(run["attempts"][name]["extra"]["seat"], "design.md")
        if verdict == "DONE":
            path = self.root / "docs" / "feature" / "driven" / out
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}\n\nat {self.now}\n")
        said: Any = {"verdict": "DONE" if verdict == "lie" else verdict, "summary": f"{verdict}, as of {self.now}"}
        self.ask(["report", name, said], crash)

    @rule(word=st.sampled_from(["approve", "approve", "revise", "reject"]), changed=st.booleans(), crash=CRASHES)
    def decide(self, word: str, changed: bool, crash: Any) -> None:
        """A person decides; where what was shown has changed meanwhile, an approval is void."""
        shown = self.root / "docs" / "feature" / "driven" / "a.md"
        run = self.run("driven")
        waits = run is not None and run["gate"] is not None
        if changed and waits and shown.exists():
            shown.write_text(shown.read_text() + "and more\n")
        self.ask(["decide", word], crash)
        after = self.run("driven")
        if changed and waits and shown.exists() and word == "approve":
            assert after["gate"] is not None, "approved, though what was shown had changed"

    @rule(what=st.sampled_from(["Pause", "Resume", "Cancel"]), sure=st.integers(0, 5), crash=CRASHES)
    def steer(self, what: str, sure: int, crash: Any) -> None:
        if what != "Cancel" or sure == 0:
            self.ask(["steer", what], crash)

    @rule(
        what=st.sampled_from(["start", "end", "gate", "decide", "store", "pause"]),
        phase=st.sampled_from(["architect", "task-breakdown"]),
        crash=CRASHES,
    )
    def lead(self, what: str, phase: str, crash: Any) -> None:
        given = {"start": [phase], "end": [phase], "store": [phase, f"as of {self.now}"]}.get(what, [])
        self.ask(["lead", what, *given], crash)

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

    @rule()
    def reopen(self) -> None:
        self.workspace.journal.close()
        self.workspace = self.opened()

    @rule()
    def mend(self) -> None:
        """A person looks: damaged files are removed, and repair writes what is recorded."""
        from tenuto.workspace.checkup import repair

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
                assert run is not None and loads(dumps(run)) == loads(dumps(fold(events))), (
                    "the kept state is not what the events say"
                )
                assert run["version"] == len(events)
        found = examine(self.workspace)["findings"]
        assert [
            one for one in found if one["severity"] == "damage" and str(self.root / one["where"]) not in self.hidden
        ] == []
        # After an answer, files that nobody touched since say what the journal says.
        assert self.behind or self.hidden or not [one for one in found if one["severity"] == "behind"]

    @invariant()
    def the_rules_hold(self) -> None:
        run = self.run("driven")
        if run is None:
            return
        with self.workspace.journal.read() as reader:
            events = list(reader.events("driven"))
        assert len(run["in_flight"]) <= CAP
        ends = Counter(event["attempt"] for event in events if event["type"] in ("AttemptFinished", "AttemptLost"))
        assert all(count == 1 for count in ends.values()), "an attempt ended twice"
        assert len(ends) + len(run["in_flight"]) == len(run["attempts"])
        if run["budget"]["limits"]:
            assert run["budget"]["spent"].get("attempts", 0) + run["budget"]["reserved"].get("attempts", 0) <= LIMIT
        self.behind_the_gate(events)
        self.ends_are_final(events)
        assert figures(run)["total_ms"] >= 0 and figures(run)["sequential_ms"] >= 0, (
            "a clock that jumps makes no time run backwards"
        )

    def behind_the_gate(self, events: list[Any]) -> None:
        approved, decided = False, Counter[str]()
        for event in events:
            if event["type"] == "GateDecided":
                decided[event["gate"]] += 1
                approved = event["approved"]
            assert approved or not (event["type"] == "AttemptDispatched" and event["step"] == "write"), (
                "past a gate that nobody opened"
            )
        assert all(count == 1 for count in decided.values()), "a gate was decided twice"

    def ends_are_final(self, events: list[Any]) -> None:
        ended = [number for number, event in enumerate(events) if event["type"] in ("Finished", "Failed", "Cancelled")]
        if ended:
            later = {event["type"] for event in events[ended[0] + 1 :]}
            assert not later & {"AttemptDispatched", "StepStarted", "GateDecided"}, later


# A few here; `HYPOTHESIS_PROFILE=prove` looks for new ones, and longer.
PROFILE = settings.get_profile(settings.get_current_profile_name())
WholeSystem.TestCase.settings = settings(max_examples=max(25, PROFILE.max_examples // 10), stateful_step_count=20)
test_the_whole_system = WholeSystem.TestCase


def test_the_machine_can_come_to_an_end() -> None:
    """The way through, without anything in between: it ends well, so the rules above are tried on runs that get
    somewhere."""
    system: Any = WholeSystem()
    try:
        system.begin(limited=True)
        for _ in range(3):
            system.next(NO_CRASH)
            for _ in range(3):
                system.report(0, "DONE", NO_CRASH)
        system.decide("approve", False, NO_CRASH)
        system.next(NO_CRASH)
        system.report(0, "DONE", NO_CRASH)
        system.next(NO_CRASH)
        assert system.run("driven")["status"] == "completed"
        system.nothing_answered_is_lost_and_nothing_is_damaged()
        system.the_rules_hold()
    finally:
        system.teardown()
        shutil.rmtree(system.root, ignore_errors=True)
