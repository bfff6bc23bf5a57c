"""One run in depth: as it is, or exactly as it was behind any of its events.

    Runs(workspace)            keeps a few folded runs, so that a step back and forth is quick
    Runs.page(name, at)        everything about one run: its view, who drives it, what it waits for with a rehearsal
                               of each answer, its budget, its score, what is due and why not more, its items, its seal
    history_page(reader, ...)  its events as sentences, a page at a time

The past is no copy that somebody kept: it is the first N events, folded by the engine's own rules, and todo() is asked
what was due then.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tenuto.core.approvals import standing
from tenuto.core.budget import in_words, reservation, shortage
from tenuto.core.parts import new_run
from tenuto.core.status import UNDER_WAY
from tenuto.core.todo import todo
from tenuto.core.upgrade import replay
from tenuto.core.visit import step_of
from tenuto.encoding import dumps, loads
from tenuto.errors import BadInput, NotFound
from tenuto.show.inbox import DrivenView, driven_view
from tenuto.show.runs import HistoryLine, pipeline_in, surroundings_of
from tenuto.show.score import ScoreView, score_view
from tenuto.show.sentences import sentence
from tenuto.show.views import RunView, run_view
from tenuto.show.waiting import DueView, Surroundings, WaitingView, due_view, waiting_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.action import Action
    from tenuto.core.records.run import Account, CurrentVisit, Json, Repo, Run
    from tenuto.ports import Reader
    from tenuto.workspace.workspace import Workspace

APART = 250  # events between two folds that are kept
_RUNS = 8  # of which folds are kept
_LINES = 100  # of the history, on one page


class AmountView(TypedDict):
    """One limit, with what is used of it and what is set aside for attempts under way."""

    step: str  # empty: of the whole run
    unit: str
    limit: int | None  # None: there is none
    spent: float
    reserved: float


class ItemNode(TypedDict):
    """One item in the graph of items, and why it does not go on."""

    item: str
    title: str
    status: str
    wave: int  # from 1; 0: in no wave
    depends_on: list[str]
    attempts: list[str]
    blocked_by: str  # empty: nothing keeps it
    kind: str  # of that: dependency, wave, cap, budget, rest, plan; empty


class HistoryPage(TypedDict):
    lines: list[HistoryLine]  # the oldest first
    first: int
    last: int
    count: int  # of all events


class SealView(TypedDict):
    """What the journal says a run ends with: the same here and there, or the file is not about this run."""

    run: str
    events: int
    head: str  # of the chain of hashes


class RunPage(TypedDict):
    run: RunView
    at: int  # as many events were looked at
    is_past: bool
    driven: DrivenView
    waiting: WaitingView | None
    budget: list[AmountView]
    score: ScoreView
    items: list[ItemNode]
    due: list[DueView]
    why_not_more: list[str]
    history: HistoryPage
    seal: SealView


class Kept(NamedTuple):
    """Of one run: its folds, as text, by the number of events behind which they stand."""

    folds: dict[int, str]
    first: str  # its first event: another run of this name has other ones


class Runs:
    """For a program that looks again and again. One thread at a time."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def page(self, name: str, at: int | None = None, lines: int = _LINES) -> RunPage:
        """`at`: behind so many events; None: as it is."""
        with self.workspace.journal.read() as reader:
            seal = seal_of(reader, name)
            if at is not None and not 1 <= at <= seal["events"]:
                message = f"run {name} has no event {at}: it has {seal['events']}"
                raise BadInput("no-such-event", message, f"a number from 1 to {seal['events']}")
            is_past = at is not None and at < seal["events"]
            run = self._folded_at(reader, name, at) if at is not None and is_past else _as_it_is(reader, name)
            pipeline = pipeline_in(reader, run)
            approved: list[str] = []
            if pipeline and run["blocked"]:
                approved = standing(pipeline, islice(reader.events(name), run["version"]))
            repo = reader.load_repo()
            history = history_page(reader, name, run["version"], lines)
        return self._page(run, pipeline, repo, approved, history, seal, is_past)

    def _page(
        self,
        run: Run,
        pipeline: Pipeline | None,
        repo: Repo,
        approved: list[str],
        history: HistoryPage,
        seal: SealView,
        is_past: bool,
    ) -> RunPage:
        now = run["updated_at"] if is_past else self.workspace.clock()
        surroundings = Surroundings(pipeline, repo, now, None, approved)
        if not is_past:
            surroundings = surroundings_of(self.workspace, run, pipeline, repo, approved)
        due = todo(pipeline, run, now) if pipeline and run["driver"] != "manual" else []
        driven: DrivenView = {"by": "nobody", "words": "this is the past", "command": ""}
        if not is_past:
            driven = driven_view(self.workspace, run["id"], run["status"], run["driver"])
        return {
            "run": run_view(run, pipeline),
            "at": run["version"],
            "is_past": is_past,
            "driven": driven,
            "waiting": waiting_view(run, surroundings),
            "budget": budget_of(run),
            "score": score_view(run, pipeline, now),
            "items": list(items_of(run, pipeline)),
            "due": [due_view(one) for one in due],
            "why_not_more": list(why_not_more(run, pipeline, due)),
            "history": history,
            "seal": seal,
        }

    def run_at(self, name: str, at: int) -> Run:
        with self.workspace.journal.read() as reader:
            return self._folded_at(reader, name, at)

    def _folded_at(self, reader: Reader, name: str, at: int) -> Run:
        """From the last fold that is kept before it; on the way, every APART-th is kept."""
        kept = self._folds(reader, name)
        start = max((number for number in kept.folds if number <= at), default=0)
        run: Run = loads(kept.folds[start]) if start else new_run()
        while start < at:
            until = min(at, (start // APART + 1) * APART)
            replay(list(islice(reader.events(name, start), until - start)), name, run)
            start = until
            if start % APART == 0:
                kept.folds[start] = dumps(run)
        return run

    def _folds(self, reader: Reader, name: str) -> Kept:
        first = dumps(next(iter(reader.events(name)), {}))
        kept = self._kept.pop(name, None)
        if kept is None or kept.first != first:
            kept = Kept({}, first)
        self._kept[name] = kept
        while len(self._kept) > _RUNS:
            self._kept.popitem(last=False)
        return kept


def _as_it_is(reader: Reader, name: str) -> Run:
    run = reader.load(name)
    if run is None:
        raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
    return run


def seal_of(reader: Reader, name: str) -> SealView:
    if name == "@" or not reader.version(name):
        raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
    record = next(iter(reader.records(name)))
    return {"run": name, "events": record["events"], "head": record["head"]}


def history_page(reader: Reader, name: str, last: int, most: int = _LINES) -> HistoryPage:
    """The events up to number `last`, at most so many of them."""
    count = reader.version(name)
    last = min(last, count)
    before = max(0, last - most)
    events: list[Json] = list(islice(reader.events(name, before), last - before))
    lines: list[HistoryLine] = [
        {"seq": seq, "at": event["at"], "by": event["by"], "type": event["type"], "text": sentence(event)}
        for seq, event in enumerate(events, before + 1)
    ]
    return {"lines": lines, "first": before + 1 if lines else 0, "last": last, "count": count}


def budget_of(run: Run) -> list[AmountView]:
    """Every limit; and of the whole run everything that was spent, limit or not."""
    accounts: list[tuple[str, Account]] = [("", run["budget"]), *run["budget"]["steps"].items()]
    return [
        {
            "step": step,
            "unit": unit,
            "limit": account["limits"].get(unit),
            "spent": account["busy_ms"] / 1000 if unit == "wall_clock" else account["spent"].get(unit, 0),
            "reserved": 0 if unit == "wall_clock" else account["reserved"].get(unit, 0),
        }
        for step, account in accounts
        for unit in dict.fromkeys([*account["limits"], *(account["spent"] if not step else ())])
    ]


# ---- why nothing more is under way


def why_not_more(run: Run, pipeline: Pipeline | None, due: list[Action]) -> Iterator[str]:
    """Why an engine would start nothing besides what is under way and what is due."""
    if pipeline is None or run["driver"] == "manual":
        if run["status"] in UNDER_WAY:
            yield "it is led by hand: no rule says what comes next"
        return
    if run["gate"] is not None:
        yield "a gate is open: nothing starts before a person has decided"
        return
    if run["status"] not in UNDER_WAY:
        yield f"the run is {run['status']}"
        return
    for action in due:
        if action["act"] == "pause":
            yield in_words(action["short"])
    starting = sum(1 for action in due if action["act"] == "dispatch")
    if len(run["in_flight"]) + starting >= pipeline["cap"]:
        yield f"the cap: at most {pipeline['cap']} agents work at a time"
        return
    visit = run["current_visit"]
    if visit is None:
        return
    step = step_of(pipeline, visit["step"])
    short = shortage(run, step["id"], reservation(pipeline, run, step))
    if short:
        yield in_words(short)
    reasons = dict.fromkeys(why for name in visit["left"] if (why := _kept_back(run, pipeline, visit, name)[1]))
    yield from reasons


def items_of(run: Run, pipeline: Pipeline | None) -> Iterator[ItemNode]:
    attempts: dict[str, list[str]] = {}
    for name, attempt in run["attempts"].items():
        if attempt["item"]:
            attempts.setdefault(attempt["item"], []).append(name)
    wave_of = {item: number for number, wave in enumerate(run["waves"], 1) for item in wave["items"]}
    visit = run["current_visit"]
    for name, item in run["items"].items():
        kind, why = "", ""
        if item["status"] == "pending":
            kind, why = _kept_back(run, pipeline, visit, name)
        yield {
            "item": name,
            "title": item["title"],
            "status": item["status"],
            "wave": wave_of.get(name, 0),
            "depends_on": list(item["depends_on"]),
            "attempts": attempts.get(name, []),
            "blocked_by": why,
            "kind": kind,
        }


def _kept_back(run: Run, pipeline: Pipeline | None, visit: CurrentVisit | None, name: str) -> tuple[str, str]:
    """Why this item does not start now: the kind of reason, and the reason."""
    items = run["items"]
    missing = [one for one in items[name]["depends_on"] if one in items and items[one]["status"] != "completed"]
    if missing:
        failed = [one for one in missing if items[one]["status"] in ("failed", "skipped")]
        return "dependency", f"{', '.join(failed)} failed" if failed else f"it waits for {', '.join(missing)}"
    if visit is None or name not in visit["wave_of"]:
        return "plan", "the step that it belongs to has not begun"
    if name in visit["busy"] or name not in visit["left"]:
        return "", ""
    if run["status"] not in UNDER_WAY:
        return "rest", f"the run is {run['status']}"
    first = visit["left"][0]
    is_rolling = pipeline is None or _is_rolling(pipeline, visit["step"])
    if not is_rolling and visit["group_of"][name] != visit["group_of"][first]:
        return "wave", f"wave {visit['wave_of'][first] + 1} has not ended"
    if pipeline is not None and len(run["in_flight"]) >= pipeline["cap"]:
        return "cap", f"at most {pipeline['cap']} agents work at a time"
    return "", ""


def _is_rolling(pipeline: Pipeline, name: str) -> bool:
    step = step_of(pipeline, name)
    return step["kind"] == "waves" and step["waves"]["order"] == "rolling"
