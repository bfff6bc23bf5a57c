"""Drives a run whose attempts are carried out on other machines: the engine's own loop, with other hands.

    launch     the code and the documents go to the origin, the attempt is offered; the journal has it already
    wait       until one has ended: reported, lost, withdrawn
    carry      what it changed is laid out in a work tree here, held against its boundary, and merged
    record     the run's branch goes to the origin, then the journal says so, then the database forgets it

Everything else is as on one machine: what is due, gates, budgets, order of merges, pauses, cancels, forks.

Rules. Offers follow the commit of the dispatch, and come again for whatever is in flight and was never offered. What
ended is taken from the database, and stays there until it is in the journal: a driver may die between any two lines.
The journal never names a commit that lies on one machine only. Workers are not believed: which files an attempt may
change is looked at here, too. One driver at a time has a run, for order; where two had it, the journal would still take
each end once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tenuto.cluster import code
from tenuto.cluster.board import DriverBoard, End, Offer
from tenuto.cluster.database import Line, address
from tenuto.cluster.dispatch import POLL, Dispatcher, NoDispatcher
from tenuto.cluster.work import inputs_ref, result_ref
from tenuto.core.status import ANSWERS, ENDED
from tenuto.encoding import dumps, loads
from tenuto.engine import branches, judge
from tenuto.engine.attempt import AttemptPlan, allows, existing
from tenuto.engine.judge import Judgement, Prepared
from tenuto.engine.loop import Ended, Engine, Lost
from tenuto.engine.worktrees import remove_tree, tree_name
from tenuto.errors import NotFound, Refused, TenutoError
from tenuto.files import copies, git
from tenuto.supervise.records import make_directory
from tenuto.workspace.objects import stored_version

if TYPE_CHECKING:
    from tenuto.agents.roster import Roster
    from tenuto.cluster.records import Ended as EndedReport
    from tenuto.cluster.records import Report, TaskSpec
    from tenuto.core.records.action import Definition, Dispatch
    from tenuto.core.records.commands import Dispatched
    from tenuto.core.records.run import Json, Run
    from tenuto.engine.loop import Watcher
    from tenuto.engine.rest import MakeEngine
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Turn, Workspace

ON = "on"
"""The setting of a run that says where its attempts are carried out: cluster:POOL; without it, where it is driven."""
_DRIVES = 60.0  # seconds that a driver has a run for, unless it says more
_PATIENCE = 600.0  # seconds that a database may be away: a failover, a restart
_PROJECT = "cluster:project"


def project_of(workspace: Workspace) -> str:
    """What this repository is called among others in one database: kept in its journal."""
    with workspace.journal.read() as reader:
        known = reader.marker(_PROJECT)
    if known:
        return known
    with workspace.journal.write() as writer:
        known = writer.marker(_PROJECT) or os.urandom(12).hex()
        writer.put_marker(_PROJECT, known)
    return known


def pool_of(run: Run) -> str:
    """The pool that this run's attempts go to; "": they are carried out where it is driven."""
    kind, _, pool = str(run["settings"].get(ON, "")).partition(":")
    return (pool or "default") if kind == "cluster" else ""


class ClusterEngine(Engine):
    elsewhere = True

    def __init__(
        self,
        workspace: Workspace,
        run: str,
        roster: Roster,
        settings: Settings,
        watcher: Watcher | None = None,
        *,
        line: Line,
        dispatcher: Dispatcher | None = None,
    ) -> None:
        super().__init__(workspace, run, roster, settings, watcher)
        self.line = line
        self.project = project_of(workspace)
        self.board = DriverBoard(line, self.project)
        self.dispatcher = dispatcher or NoDispatcher()
        self.pool = pool_of(workspace.load(run))
        self.origin = code.origin_of(workspace.root)
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
        self._ends: dict[str, End] = {}
        self._pulse = ""

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with super()._alone():
            while not self._has_it():
                self.line.wait("tenuto_driver", POLL)
            try:
                yield
            finally:
                self.board.let_go(self.name, self.holder)
                self.line.close()

    def _has_it(self) -> bool:
        return self.board.drive(self.name, self.holder, self._place, _DRIVES) == self.holder

    @property
    def _place(self) -> str:
        return f"{socket.gethostname()}:{self.workspace.root}"

    @property
    def _run_ref(self) -> str:
        """Where the run's branch lies in the origin, under no name of a branch."""
        return f"{code.REFS}/runs/{self.project[:12]}/{self.name}"

    def _take_up(self, run: Run) -> None:
        code.refuse_what_does_not_travel(self.workspace.root)
        self._come_home(run)
        super()._take_up(run)
        offered = self.board.open(self.name)
        self._lose_with_the_tables([name for name in run["in_flight"] if name not in offered])
        for name in list(self.current()["in_flight"]):
            not_started = self.launch(run, name) if name not in offered else None
            if not_started is not None:
                self.record(not_started)

    def _come_home(self, run: Run) -> None:
        """A run that was driven in another checkout goes on in this one: its branch comes from the origin, its
        documents from the journal. A branch that is ahead of the origin's is left as it is."""
        marker, here, root = f"cluster:home:{self.name}", self._place, self.workspace.root
        with self.workspace.journal.read() as reader:
            before = reader.marker(marker)
        if before == here:
            return
        if before is not None:
            self._bring_branch(root, run)
            self._bring_documents(root, run)
        with self.workspace.journal.write() as writer:
            writer.put_marker(marker, here)

    def _bring_branch(self, root: str, run: Run) -> None:
        branch = f"refs/heads/{run['settings'].get('branch', '')}"
        found = code.fetched(root, self.origin, self._run_ref)
        if not found or branch == "refs/heads/":
            return
        known = git.exists(root, branch)
        if known and git.ask(root, "merge-base", "--is-ancestor", branch, found).status != 0:
            return
        if known and git.branch(root) == branch.removeprefix("refs/heads/"):
            git.tell(root, *git.author(root), "merge", "--quiet", "--ff-only", found)
        else:
            git.tell(root, "update-ref", branch, found)

    def _bring_documents(self, root: str, run: Run) -> None:
        """Those that are not there: what stands here already is looked at as ever."""
        for artifact in run["artifacts"].values():
            if artifact["sha256"] and not os.path.lexists(f"{root}/{artifact['path']}"):
                copies.put(root, artifact["path"], stored_version(self.workspace, artifact["sha256"]))

    def _lose_with_the_tables(self, missing: list[str]) -> None:
        """Where these are other tables than those in which attempts were offered, nobody knows what became of them."""
        name, now = f"cluster:tables:{self.name}", self.board.instance()
        with self.workspace.journal.read() as reader:
            known = reader.marker(name)
        if known == now:
            return
        for attempt in missing if known else ():
            self.lose(attempt, "the tables that it was offered in are gone; nobody knows what became of it", True)
        with self.workspace.journal.write() as writer:
            writer.put_marker(name, now)

    def _dispatched(self, run: Run, definition: Definition, action: Dispatch, together: int) -> Dispatched:
        dispatched = super()._dispatched(run, definition, action, together)
        return {**dispatched, "extra": {**dispatched["extra"], "tree": tree_name(action["attempt"])}}

    # ---- offered

    def launch(self, run: Run, name: str, start: int = 1) -> Ended | None:
        plan = self.plan(run, name)
        why = "the run has ended" if run["status"] in ENDED else self._does_not_travel(plan)
        if why:
            return self._not_started(plan, Prepared("failed", why))
        root = self.workspace.root
        branches.checkpoint(self.workspace, run, plan.pipeline, plan.step["id"])
        inputs = code.inputs_of(root, self._documents(plan), f"{self.name}: what {name} begins with")
        ref = inputs_ref(self.project, self.name, name)
        code.send(root, self.origin, (inputs, ref))
        spec = self._task(run, plan, inputs, ref)
        contents = [sha for sha in (spec["run"], spec["definition"], spec["memory"]) if sha]
        task = self._task_id(name)
        self.board.offer(Offer(task, self.project, self.name, name, self.pool, dumps(spec), contents, []))
        self.dispatcher.offer([task], self.pool)
        return None

    def _does_not_travel(self, plan: AttemptPlan) -> str:
        unknown = plan.unanswered()
        if unknown:
            return f"nobody has answered {', '.join(unknown)}: the gate was left out"
        copied = [*plan.pipeline["setup"]["copy"], *self.settings.get("setup", {}).get("copy", [])]
        if copied:
            return (
                f"`setup: copy` names files that git ignores ({', '.join(copied[:3])}): they do not travel to workers"
            )
        return ""

    def _documents(self, plan: AttemptPlan) -> list[str]:
        """As for a work tree on this machine: what it reads, and what it may change."""
        root = self.workspace.root
        names = [*plan.deliverables, plan.path("memory.md")]
        found = [*plan.inputs(root), *(path for name in names for path in existing(root, name))]
        return [path for path in dict.fromkeys(found) if not os.path.islink(f"{root}/{path}")]

    def _task(self, run: Run, plan: AttemptPlan, inputs: str, ref: str) -> TaskSpec:
        keep: Callable[[str], str] = lambda text: self.board.keep(text.encode("utf-8", "surrogateescape"))
        asks_memory = "project-memory" in plan.seat["context"]
        return {
            "project": self.project,
            "attempt": plan.name,
            "run": keep(dumps(run)),
            "definition": keep(dumps(self.definition(run))),
            "memory": keep(plan.memory()) if asks_memory else "",
            "settings": self.settings,
            "crew": {
                "default": self.roster.default,
                "roles": self.roster.by_role,
                "fallback": self.roster.fallback,
            },
            "origin": self.origin,
            "inputs": inputs,
            "base": git.head(self.workspace.root),
            "inputs_ref": ref,
            "result_ref": result_ref(self.project, self.name, plan.name),
        }

    def _task_id(self, name: str) -> str:
        return f"{self.project}/{self.name}/{name}"

    # ---- waited for

    def wait(self, in_flight: list[str]) -> list[str]:
        while True:
            self._has_it()
            self._cancel_with_the_run(in_flight)
            self.board.expire()
            self._ends = {end.attempt: end for end in self.board.ended(self.name)}
            ended = [name for name in in_flight if name in self._ends]
            if ended:
                return ended
            waiting = [name for name, state in self.board.open(self.name).items() if state == "waiting"]
            self.dispatcher.offer([self._task_id(name) for name in waiting], self.pool)
            self.line.wait("tenuto_driver", POLL)

    def _cancel_with_the_run(self, in_flight: list[str]) -> None:
        pulse = self.workspace.journal.pulse()
        if pulse != self._pulse:
            self._pulse = pulse
            if self.workspace.load(self.name)["status"] in ENDED:
                for name in in_flight:
                    self.board.cancel(self._task_id(name))

    # ---- taken in

    def carry(self, name: str) -> Ended | Lost | None:
        end = self._ends[name]
        match end.outcome:
            case "lost":
                return Lost("the lease of its worker was over; nobody knows what it did", True)
            case "withdrawn":
                return Lost("it was withdrawn before it started", False)
            case "unwanted":
                plan = self.plan(self.current(), name)
                return self._not_started(plan, Prepared("failed", f"no worker could begin it: {end.why}"))
            case "reported":
                report: Report = loads(end.body)
                if report["kind"] == "lost":
                    return Lost(report["reason"], report["ran"])
                return self._taken_in(name, end, report)

    def collect(self, name: str) -> None:
        super().collect(name)
        end = self._ends.pop(name)
        self.board.recorded(end.task)
        self.dispatcher.withdraw([end.task])
        self._tidy(name, end)

    def _tidy(self, name: str, end: End) -> None:
        """What was merged lies in the run's branch; what was not stays where its worker put it."""
        spec: TaskSpec = loads(end.spec)
        refs = [spec["inputs_ref"]]
        if self.current()["attempts"][name]["receipt"].get("merged") is not None:
            refs += [f"{spec['result_ref']}/{end.epoch}"] if '"commit":""' not in end.body else []
        try:
            code.send(self.workspace.root, self.origin, *(("", ref) for ref in refs))
        except TenutoError as problem:
            self.workspace.warn(f"refs of {name} were left in the origin: {problem.message}")
        self.board.tidy()

    def record(self, ended: Ended) -> None:
        head = git.head(self.workspace.root)
        if head:
            code.send(self.workspace.root, self.origin, (head, self._run_ref))
        super().record(ended)

    def _taken_in(self, name: str, end: End, report: EndedReport) -> Ended:
        spec: TaskSpec = loads(end.spec)
        plan = self.plan(self.current(), name)
        for text, key in report["notes"]:
            self.note(text, key)
        self._keep_words(name, report)
        judgement = Judgement(report["verdict"], report["summary"], report["receipt"])
        changed: list[str] = []
        if report["commit"]:
            changed, problem = self._lay_out(plan, end, spec, report["commit"])
            if problem:
                judgement.receipt["problem"] = problem
                judgement = judgement._replace(verdict="ERROR", summary=f"claimed {report['verdict']}, but {problem}")
        if changed or judgement.verdict == "DONE":
            judgement = self._merged(plan, spec, changed, judgement)
        self.look_at_documents(plan, judgement.verdict)
        return Ended(plan, judgement, report["reply"])

    def _lay_out(self, plan: AttemptPlan, end: End, spec: TaskSpec, commit: str) -> tuple[list[str], str]:
        """Its result in a work tree here, as if it had worked in it; and what is wrong with it, in words."""
        root = self.workspace.root
        code.take(root, self.origin, f"{spec['result_ref']}/{end.epoch}", commit)
        code.take(root, self.origin, spec["inputs_ref"], spec["inputs"])
        try:
            changed = code.changed_in(root, spec["inputs"], commit)
        except Refused as refused:
            return [], refused.message
        self._make_tree(plan, spec["base"])
        code.lay_out(root, plan.workdir, spec["inputs"], commit)
        boundary = plan.boundary()
        outside = [git.in_words(path) for path in changed if not allows(boundary, path)]
        return changed, f"files outside the boundary were changed: {', '.join(outside[:5])}" if outside else ""

    def _make_tree(self, plan: AttemptPlan, base: str) -> None:
        """Anew where a driver before this one died over it: nothing of it is anywhere else."""
        root = self.workspace.root
        if os.path.isdir(plan.workdir):
            remove_tree(root, plan.workdir)
        self.trees.make(plan, base)

    def _merged(self, plan: AttemptPlan, spec: TaskSpec, changed: list[str], judgement: Judgement) -> Judgement:
        if not os.path.isdir(plan.workdir):
            self._make_tree(plan, spec["base"])
        verdict, summary, receipt = judgement
        stands = plan.step["kind"] != "waves" and verdict in ANSWERS  # as in a tree that all steps share
        if verdict == "DONE" or not stands:
            return judge.take_over(self, plan, spec["base"], changed, judgement)
        merge = self.trees.merge(plan, spec["base"], changed, summary)
        if merge.commit is None:
            return judge.take_over(self, plan, spec["base"], changed, judgement._replace(verdict="ERROR"))
        receipt["merged"] = merge.commit
        return judgement

    def _keep_words(self, name: str, report: EndedReport) -> None:
        """What it was told and what it printed lies here as if it had run here; its worker has the rest."""
        folder = f"{self.folder}/{name}/1"
        make_directory(folder, 0o777)
        said: Json = {**report["said"]}
        for file, text in said.items():
            with open(f"{folder}/{file}", "w", encoding="utf-8", errors="surrogateescape") as out:
                out.write(self.workspace.secrets.text(text) if self.workspace.has_secrets else text)


def engine_for(workspace: Workspace, run: str) -> MakeEngine:
    """What drives this run: on this machine, or on those that share a database."""
    if not pool_of(workspace.load(run)):
        return Engine
    return partial(ClusterEngine, line=Line(address(workspace.state), _PATIENCE))


def remember_pool(turn: Turn, run: str, pool: str) -> None:
    """For a run that begins: its attempts are carried out there."""
    turn.do(run, {"do": "ChangeSettings", "changes": {ON: f"cluster:{pool}"}})


def refuse_unready(workspace: Workspace, pool: str) -> str:
    """The pool, where a run could be carried out there: there is an origin, a database, and the pool in it."""
    code.origin_of(workspace.root)
    code.refuse_what_does_not_travel(workspace.root)
    line = Line(address(workspace.state))
    try:
        pools = [str(name) for (name,) in line.rows("SELECT name FROM pool ORDER BY name")]
    finally:
        line.close()
    if pool not in pools:
        raise NotFound("no-pool", f"there is no pool {pool}; there are: {', '.join(pools)}", "tenuto cluster pool NAME")
    return pool
