"""Run the cases of a pipeline: the real engine and scripted agents, each case in a new repository that is removed.

    rehearsal = rehearse(read_cases(path), root)

What a case's repository holds: the pipelines and roles beside the pipeline, those of the repository it belongs to, and
the files that the case names; everything committed. No agent program, no settings of the project, no network.

A `command:` of the pipeline is not run either: the script answers in its place (`exit`, `reply`, `files`). Checks of
the project run where the case says what they are.

gone(pipeline, events) says which ways a run went, from its events alone.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tenuto.agents.roster import PROJECT, Roster
from tenuto.agents.scripted import ScriptedAgent, ScriptedCommand
from tenuto.core.decisions.engine import facts_of
from tenuto.core.fold import apply
from tenuto.core.parts import new_run
from tenuto.core.pipeline import conditions, ways
from tenuto.core.status import OVER, RESUMABLE, waits_for
from tenuto.core.visit import step_of
from tenuto.encoding import pretty
from tenuto.engine.attempt import define, pipeline_of
from tenuto.engine.begin import start
from tenuto.engine.gates import shown_now
from tenuto.engine.loop import Engine
from tenuto.errors import TenutoError
from tenuto.files import git
from tenuto.knowledge import definitions
from tenuto.knowledge import roles as roles_of
from tenuto.rehearsal.cases import Case, TestFile
from tenuto.repository import open_repository

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline, Role, Seat, When
    from tenuto.core.pipeline.ways import Way
    from tenuto.core.records.commands import Command, DecideGate
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Run
    from tenuto.ports import Agent
    from tenuto.rehearsal.cases import Decision
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace

_TIME_LIMIT = 60  # seconds, for an answer that hangs where the pipeline has no limit of its own


class Played(TypedDict):
    """What came of one case."""

    name: str
    end: str
    reason: str
    steps: list[str]
    left_out: list[str]
    ways: list[str]
    attempts: int
    problems: list[str]  # what was expected and did not come; [] where the case passes


class Went(TypedDict):
    """One way of the pipeline, and the cases that went it."""

    way: Way
    cases: list[str]


class Rehearsal(TypedDict):
    file: str
    pipeline: str
    cases: list[Played]
    ways: list[Went]


class _Scripted(Roster):
    """Everybody is played from the script, whatever program the pipeline names."""

    def __init__(self, script: Path) -> None:
        everybody = ScriptedAgent(str(script))
        self.everybody: Agent = everybody
        self.commands: Agent = ScriptedCommand(everybody)
        super().__init__(everybody.name)

    def candidates(self, seat: Seat, role: Role | None = None) -> list[Agent]:
        return [self.commands if seat["command"] is not None else self.everybody]

    def named(self, spelling: str) -> Agent:
        """Attempts are known by their recorded names; that of a command is not the script's."""
        return self.commands if spelling == PROJECT.name else super().named(spelling)

    def check(self, seat: Seat, role: Role | None) -> None:
        """No program has to be there."""


def rehearse(test: TestFile, root: Path | None, only: str = "") -> Rehearsal:
    """`root`: the repository that the pipeline belongs to. `only`: the one case to run."""
    source = definitions.find(test["pipeline"], root)
    pipeline = definitions.load(str(source), None)  # what is wrong with it is said once, before the cases
    played = [play(case, source, root) for case in test["cases"] if only in ("", case["name"])]
    went: list[Went] = [
        {"way": way, "cases": [one["name"] for one in played if way["key"] in one["ways"]]}
        for way in ways.every(pipeline)
    ]
    return {"file": test["file"], "pipeline": pipeline["name"], "cases": played, "ways": went}


def play(case: Case, source: Path, root: Path | None) -> Played:
    with tempfile.TemporaryDirectory(prefix="tenuto-test-") as folder:
        script = Path(folder) / "answers.yaml"
        script.write_text(pretty({"answers": case["answers"]}), encoding="utf-8")  # JSON is YAML
        place = Path(folder) / "repository"
        _furnish(place, case, source, root)
        workspace = open_repository(str(place))
        workspace.trusts = True  # nothing of the repository's runs here; what the cases run, their caller has judged
        try:
            return _play(workspace, case, source.stem, _Scripted(script))
        except TenutoError as error:
            problem = error.message.replace(f"{place}/", "")
            return {**_nothing(case), "end": error.code, "reason": problem, "problems": [problem]}
        finally:
            workspace.journal.close()


def _nothing(case: Case) -> Played:
    return {
        "name": case["name"],
        "end": "",
        "reason": "",
        "steps": [],
        "left_out": [],
        "ways": [],
        "attempts": 0,
        "problems": [],
    }


def _furnish(place: Path, case: Case, source: Path, root: Path | None) -> None:
    pipelines, roles = place / definitions.OWN, place / roles_of.FOLDERS["tenuto"]
    if root is not None:
        for folder in (definitions.OWN, *roles_of.FOLDERS.values()):
            if (root / folder).is_dir():
                shutil.copytree(root / folder, place / folder, dirs_exist_ok=True)
    pipelines.mkdir(parents=True, exist_ok=True)
    roles.mkdir(parents=True, exist_ok=True)
    for beside in sorted(source.parent.iterdir()):
        if beside.suffix in definitions.SUFFIXES and not beside.name.endswith(definitions.CASES) and beside.is_file():
            shutil.copyfile(beside, pipelines / beside.name)
    for folder in _beside(source):
        for role in sorted(folder.glob("*.md")):
            shutil.copyfile(role, roles / role.name)
    for name, text in case["files"].items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    git.make_repository(str(place), "As the case begins")


def _beside(source: Path) -> list[Path]:
    """Where the roles of a pipeline lie that is not in a repository's own folder; the shipped ones are found anyway."""
    outer = [source.parent.parent / "roles"] if source.parent.name == "pipelines" else []
    return [folder for folder in (*outer, source.parent / "roles") if folder.is_dir() and folder != roles_of.SHIPPED]


def _play(workspace: Workspace, case: Case, pipeline: str, roster: Roster) -> Played:
    settings: Settings = {"checks": case["checks"], "time_limit": _TIME_LIMIT}
    definition = define(pipeline, workspace.root, given=case["params"])
    name = start(
        workspace, case["request"], pipeline, switches=case["switches"], params=case["params"], definition=definition
    )["id"]
    left = list(case["decisions"])
    run = Engine(workspace, name, roster, settings).drive()
    problems: list[str] = []
    while left and run["status"] not in OVER:
        decision = left.pop(0)
        problem = _decide(workspace, run, decision)
        if problem:
            problems.append(problem)
            break
        run = Engine(workspace, name, roster, settings).drive() if decision["do"] != "reject" else workspace.load(name)
    if left:
        problems.append(f"decisions that nobody asked for: {', '.join(one['do'] for one in left)}")
    with workspace.journal.read() as reader:
        events: list[Event] = [*reader.events(name)]  # type: ignore[list-item]  # as they were written
        checked = pipeline_of(reader, run)
    waiting = waits_for(run)
    reason = run["failure"]["error"] if run["failure"] else waiting["reason"] if waiting else ""
    played: Played = {
        "name": case["name"],
        "end": run["status"],
        "reason": reason,
        "steps": [visit["step"] for visit in run["visits"]],
        "left_out": [event["step"] for event in events if event["type"] == "StepSkipped"],
        "ways": list(dict.fromkeys(gone(checked, events))),
        "attempts": len(run["attempts"]),
        "problems": problems,
    }
    played["problems"] += _differences(case, played, checked, Path(workspace.root))
    return played


def _decide(workspace: Workspace, run: Run, decision: Decision) -> str:
    """A person's word, from the file: in this repository there is nobody to ask. The problem, where it does not fit."""
    do, name = decision["do"], run["id"]
    command: Command
    with workspace.turn() as turn:
        run = turn.existing(name)
        if do in ("approve", "reject", "revise"):
            if run["gate"] is None:
                return f"{do}: the run waits at no gate, it is {run['status']}"
            decided: DecideGate = {
                "do": "DecideGate",
                "decision": do,
                "feedback": decision["words"],
                "who": "the case",
                "shown": shown_now(workspace.root, run),
                "proof": {"level": "rehearsed"},
            }
            command = decided
        elif do == "answer":
            pause = run["pause"]
            if pause is None or pause["kind"] != "question":
                return f"answer: nobody asks, the run is {run['status']}"
            seat = run["attempts"][pause["question_of"]]["extra"]["seat"]
            turn.do(name, {"do": "RecordAnswers", "answers": {f"question:{seat}": decision["words"]}})
            command = {"do": "Resume", "decision": "retry"}
        elif run["status"] in RESUMABLE:
            command = {"do": "Resume", "decision": "retry"}
        else:
            return f"resume: the run does not pause, it is {run['status']}"
        turn.do(name, command, pipeline_of(turn.tx, run))
    return ""


def _differences(case: Case, played: Played, pipeline: Pipeline, root: Path) -> Iterator[str]:
    expect = case["expect"]
    if played["end"] != expect["end"]:
        why = f" ({played['reason']})" if played["reason"] else ""
        yield f"it ends as {played['end']}{why}, not as {expect['end']}"
    if expect["reason"] not in played["reason"]:
        yield f"'{expect['reason']}' does not stand in its reason: {played['reason'] or 'there is none'}"
    for what, wanted, found in (
        ("steps", expect["steps"], played["steps"]),
        ("left out", expect["left_out"], played["left_out"]),
    ):
        if wanted is not None and wanted != found:
            yield f"{what}: {', '.join(found) or 'none'}; expected: {', '.join(wanted) or 'none'}"
    known = {way["key"] for way in ways.every(pipeline)}
    for key in expect["ways"]:
        if key not in known:
            yield f"the pipeline has no way {key}; it has: {', '.join(sorted(known))}"
        elif key not in played["ways"]:
            yield f"it did not go the way {key}"
    for name, text in expect["files"].items():
        file = root / name
        if not file.is_file():
            yield f"{name} was not written"
        elif text not in file.read_text(encoding="utf-8", errors="replace"):
            yield f"'{text}' does not stand in {name}"


def gone(pipeline: Pipeline, events: Iterable[Event]) -> Iterator[str]:
    """The ways that a run went, by their keys, in order."""
    run = new_run()
    for event in events:
        match event["type"]:
            case "StepSkipped":
                yield ways.condition_key(event["step"], ways.LEFT_OUT)
            case "StepStarted" if event["item"] is None:
                if step_of(pipeline, event["step"])["when"] != "always":
                    yield ways.condition_key(event["step"], ways.RUNS)
            case "GateDecided" if event["decision"] == "reject" and event["step"]:
                yield ways.key_of(step_of(pipeline, event["step"]), "ERROR")
            case "StepEnded" if event["item"] is None and event["verdict"]:
                step = step_of(pipeline, event["step"])
                outcome = event["verdict"]
                rule, ended = ways.rule_for(step, outcome), {step["id"]: outcome}
                part, _ = ways.taken(rule, event["because"], run["routes"], partial(_held, run, ended))
                yield ways.key_of(step, outcome, part)
        apply(run, event)


def _held(run: Run, ended: dict[str, str], when: When) -> bool:
    """Did this condition of a route hold when the step had ended?"""
    facts = facts_of(run, {}, when)
    return conditions.holds(when, {**facts, "outcomes": {**facts["outcomes"], **ended}})
