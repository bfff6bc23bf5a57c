"""Which runs there are, which one is meant, and what is recorded of them. A look creates nothing and takes no lock.

has_journal, current, chosen, load        the run that a person or a model means
summaries, history, recorded, artifacts   what the journal knows of runs
look                                      everything about one run: its view, and what each answer would lead to
ProgressLines                             what happened since the last look, a line each
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, TypedDict

from tenuto.core.status import shown_status
from tenuto.errors import NotFound
from tenuto.ports import RunOutline
from tenuto.show.measures import CAP
from tenuto.show.sentences import progress_line, sentence
from tenuto.show.views import ArtifactView, RunView, artifact_view, run_view
from tenuto.show.waiting import Surroundings, WaitingView, waiting_view

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Pipeline, PlannedChecks
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Artifact, Attempt, Memory, Repo, Run, ShownStatus
    from tenuto.ports import Reader, RunSummary
    from tenuto.workspace.workspace import Workspace

_MOST_HITS = 400  # looked at, before those of other runs are left out
OWN = "@"  # the repository's own stream: it has events, and is no run


class HistoryLine(TypedDict):
    seq: int
    at: str
    by: str
    type: str
    text: str


class RecordedEvent(TypedDict):
    seq: int
    event: Event


class Recorded(TypedDict):
    run: str
    count: int  # of all its events
    events: list[RecordedEvent]


class ListedRun(RunOutline):
    status: ShownStatus


class LookView(TypedDict):
    run: RunView
    waiting: WaitingView | None


# ---- the run that is meant


def has_journal(workspace: Workspace) -> bool:
    return workspace.journal.exists()


def current(workspace: Workspace) -> str | None:
    with workspace.journal.read() as reader:
        return reader.load_repo()["current"]


def chosen(workspace: Workspace, run: str | None, hint: str = "tenuto list") -> str:
    """The run that was named, or the current one."""
    name = run if run is not None else current(workspace)
    if name is None:
        raise NotFound("no-current-run", "no run was named, and none is current", hint)
    return name


def load(workspace: Workspace, run: str) -> Run:
    if run == OWN:
        raise NotFound("no-such-run", "'@' is the repository's own stream, not a run", "tenuto show @", run=run)
    return workspace.load(run)


def pipeline_for(workspace: Workspace, run: Run) -> Pipeline | None:
    """The checked definition that the run is bound to; None where it is led by hand."""
    with workspace.journal.read() as reader:
        return pipeline_in(reader, run)


def pipeline_in(reader: Reader, run: Run) -> Pipeline | None:
    from tenuto.engine.attempt import pipeline_of

    return pipeline_of(reader, run) if run["pipeline"]["hash"] is not None else None


def cap_of(workspace: Workspace, run: Run) -> int:
    pipeline = pipeline_for(workspace, run)
    return pipeline["cap"] if pipeline else CAP


def look(workspace: Workspace, name: str) -> LookView:
    """One consistent look: all of it from the same state of the journal, with the gate's files as they are now."""
    from tenuto.core.approvals import standing
    from tenuto.engine.gates import at_home

    with workspace.journal.read() as reader:
        run = reader.load(name)
        if run is None:
            raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
        pipeline = pipeline_in(reader, run)
        approved = standing(pipeline, reader.events(name)) if pipeline and run["blocked"] else []
        repo: Repo = reader.load_repo()
    surroundings = surroundings_of(at_home(workspace, run), run, pipeline, repo, approved)
    return {"run": run_view(run, pipeline), "waiting": waiting_view(run, surroundings)}


class _Site:
    """A run, as what reads its plan asks for it."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace = workspace
        self.name = name

    def directory(self, name: str) -> str:
        return f"{self.workspace.state}/attempts/{self.name}/{name}"


def surroundings_of(
    workspace: Workspace, run: Run, pipeline: Pipeline | None, repo: Repo, approved: list[str]
) -> Surroundings:
    """The files of its gate, its plan and what its conditions ask about, as they are now."""
    from tenuto.engine.actions import files_for, plan_for
    from tenuto.engine.gates import shown_now

    now, shown = workspace.clock(), shown_now(workspace.root, run)
    if pipeline is None:
        return Surroundings(None, repo, now, shown, approved)
    checked, site = pipeline, _Site(workspace, run["id"])
    return Surroundings(
        checked,
        repo,
        now,
        shown,
        approved,
        lambda then, step: plan_for(site, then, checked, step),
        lambda then, step: files_for(workspace.root, then, checked, step),
    )


def left_out(workspace: Workspace, run: Run) -> list[str]:
    """Steps of its pipeline before those that it was in, which it was never in: it began behind them."""
    pipeline = pipeline_for(workspace, run)
    order = [step["id"] for step in pipeline["steps"] if not step["aside"]] if pipeline else []
    known = [at for at, name in enumerate(order) if name in run["steps"]]
    return [name for name in order[: max(known, default=0)] if name not in run["steps"]]


def checks_for(workspace: Workspace, run: Run) -> PlannedChecks | None:
    """What the engine runs itself in this run; None where it is led by hand."""
    from tenuto.core.pipeline.check import planned_checks
    from tenuto.workspace.settings import settings_of

    pipeline = pipeline_for(workspace, run)
    settings = settings_of(workspace.root, run, workspace.state) if pipeline else {}
    return planned_checks(pipeline, settings.get("checks", {})) if pipeline else None


def checks_in_words(checks: PlannedChecks, root: str) -> Iterator[str]:
    """What is not checked comes first: nobody misses what nobody names."""
    from pathlib import Path

    from tenuto.knowledge.project import proposed

    if not checks["commands"]:
        yield "checks: none, so neither build nor tests are run by the engine, whatever agents say"
    elif checks["left_out"]:
        missing = ", ".join(checks["left_out"])
        yield f"checks: {', '.join(checks['commands'])}; left out for want of a command: {missing}"
    if checks["left_out"]:
        found = {name: line for name, line in proposed(Path(root)).items() if name in checks["left_out"]}
        listed = ", ".join(f"{name}: {line}" for name, line in found.items())
        offer = f"tenuto init --checks   (writes what was found into the settings: {listed})"
        yield f"  try: {offer if found else 'checks: {tests: your command} in .tenuto/config.yaml'}"


def gone_on_from(run: Run) -> list[str]:
    """Steps that a run which ended well went on from without their DONE."""
    from tenuto.engine.branches import unresolved

    return unresolved(run)


# ---- what the journal knows


def summaries(
    workspace: Workspace, statuses: Collection[str] = (), dialect: str = "", limit: int = 0
) -> list[ListedRun]:
    """Newest first. `limit` 0: all. A status is looked for in all of them; otherwise the journal counts."""
    if not has_journal(workspace):
        return []
    with workspace.journal.read() as reader:
        known = reader.runs(dialect=dialect, limit=-1 if statuses or not limit else limit)
    listed = [listed_run(one) for one in known]
    fitting = [one for one in listed if not statuses or one["status"] in statuses]
    return fitting[:limit] if limit else fitting


def listed_run(summary: RunSummary) -> ListedRun:
    return {**summary, "status": shown_status(summary["status"], summary.get("open_ends", 0))}


def past_runs(workspace: Workspace, most: int) -> Iterator[Run]:
    """The latest runs, whole, one at a time."""
    if not has_journal(workspace):
        return
    with workspace.journal.read() as reader:
        for one in reader.runs(limit=most):
            run = reader.load(one["id"])
            if run is not None:
                yield run


def recorded(workspace: Workspace, name: str, since: int = 0) -> Recorded:
    """The events after number `since`, as they are stored. Also of the repository's own stream."""
    with workspace.journal.read() as reader:
        count = reader.version(name)
        events: Any = list(reader.events(name, since))
    if not count:
        raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
    numbered: list[RecordedEvent] = [{"seq": seq, "event": event} for seq, event in enumerate(events, since + 1)]
    return {"run": name, "count": count, "events": numbered}


def history(workspace: Workspace, name: str) -> list[HistoryLine]:
    return [
        {
            "seq": entry["seq"],
            "at": entry["event"]["at"],
            "by": entry["event"]["by"],
            "type": entry["event"]["type"],
            "text": sentence(entry["event"]),
        }
        for entry in recorded(workspace, name)["events"]
    ]


def artifacts_of(run: Run) -> dict[str, Artifact]:
    """As they are recorded, by name."""
    return run["artifacts"]


def attempts_of(run: Run) -> dict[str, Attempt]:
    return run["attempts"]


def memory_of(run: Run) -> Memory:
    return run["memory"]


def find_artifact(workspace: Workspace, run: Run, wanted: str) -> tuple[ArtifactView, Artifact, bytes]:
    """An artifact by its name or its path: its view, its record, and its bytes as they were delivered."""
    from tenuto.workspace.objects import stored_version

    for name, artifact in run["artifacts"].items():
        if wanted in (name, artifact["path"]):
            return artifact_view(name, artifact), artifact, stored_version(workspace, artifact["sha256"])
    known = ", ".join(run["artifacts"]) or "none"
    message = f"run {run['id']} has no artifact {wanted!r}"
    raise NotFound("no-such-artifact", message, f"it has: {known}", artifact=wanted)


class PassageView(TypedDict):
    run: str
    path: str
    heading: str
    text: str


def passages(workspace: Workspace, question: str, run: str, limit: int) -> list[PassageView]:
    """Of what was stored in one run: the best, best first."""
    with workspace.journal.read() as reader:
        hits = [hit for hit in reader.search(question, _MOST_HITS) if hit["run"] == run][:limit]
    return [{"run": hit["run"], "path": hit["path"], "heading": hit["heading"], "text": hit["text"]} for hit in hits]


def open_and_current(workspace: Workspace) -> list[Run]:
    """The current run first, then every run that has not ended."""
    with workspace.journal.read() as reader:
        names = [*dict.fromkeys([reader.load_repo()["current"], *(name for name, _ in reader.open_runs())])]
        return [run for name in names if name and (run := reader.load(name)) is not None]


class ProgressLines:
    """Everything since the last call, each event once."""

    def __init__(self, workspace: Workspace, run: str, since: int = 0) -> None:
        self.workspace = workspace
        self.name = run
        self.seen = since

    @classmethod
    def from_now_on(cls, workspace: Workspace, run: str) -> ProgressLines:
        with workspace.journal.read() as reader:
            return cls(workspace, run, reader.version(run))

    def lines(self) -> list[str]:
        run, happened = self.workspace.journal.since(self.name, self.seen)
        events: Any = happened
        self.seen += len(events)
        lines = [progress_line(event, run) for event in events] if run else []
        return [line for line in lines if line is not None]
