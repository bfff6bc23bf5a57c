"""One attempt on a worker: from its task to its report. The engine's own hands do the work; nothing here decides.

    work = Work(folder)                what lies in the folder of an attempt, after a restart as well
    work.note(held, spec)              written down before anything is started
    work.unpack(content)               the texts, and the tree with the code
    work.carry()                       made ready, started or taken up, waited for, judged: a Report
    work.hand_in(report)               the result as a commit in the origin
    work.end()                         ask everything of it to end

The attempt works alone in a tree of its own, as it would on the machine of the driver in a shared one. Its supervisor
and every command of the project hold the lease: they end when it is over, whatever became of the worker.

    <folder>/task.json    which attempt, which epoch; its spec
    <folder>/texts/       the folded run, the definition, the memory, each by its hash
    <folder>/lease        until when it may go on
    <folder>/tree/        its work tree                    state/    what supervisors keep
    <folder>/report.json  what came of it, once that is known
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from tenuto.agents.roster import Roster
from tenuto.cluster import code
from tenuto.cluster.board import Held
from tenuto.cluster.code import Mirror
from tenuto.encoding import digest, dumps, loads
from tenuto.engine import loop
from tenuto.engine.attempt import AttemptPlan, read_text
from tenuto.engine.loop import Carrier
from tenuto.engine.receipts import GRACE, LONGEST_DOCUMENT, end_all, leaking
from tenuto.engine.worktrees import tree_name
from tenuto.errors import Damaged, Refused
from tenuto.files import git
from tenuto.supervise import attempts
from tenuto.supervise.records import extend_lease, lease_left, make_directory, publish, read
from tenuto.supervise.supervisor import PATIENCE
from tenuto.workspace.workspace import open_at

if TYPE_CHECKING:
    from tenuto.cluster.records import Lost, Report, Said, TaskSpec
    from tenuto.core.records.action import Definition, Reply
    from tenuto.core.records.run import Run
    from tenuto.engine.judge import Findings

MARGIN = GRACE + PATIENCE + 1.0
"""Seconds before the end of a lease at which its tree is asked to end: by then, nothing of it is left."""
_LONGEST_OUTPUT = 256 << 10  # characters of a log that travel; the rest stays where it was printed


class Note(TypedDict):
    task: str
    epoch: int
    spec: TaskSpec


class Hands(Carrier):
    """The engine's hands, with a run that does not change and a journal that is elsewhere."""

    def __init__(self, folder: str, spec: TaskSpec, run: Run, definition: Definition, memory: str) -> None:
        crew = spec["crew"]
        roster = Roster(crew["default"], crew["roles"], crew["fallback"])
        workspace = open_at(f"{folder}/tree", "", f"{folder}/state")
        super().__init__(workspace, run["id"], roster, spec["settings"])
        self.lease = f"{folder}/lease"
        self.fresh_tree = True
        self.notes: list[tuple[str, str]] = []
        self.cancelled = False
        self._run, self._definition, self._memory = run, definition, memory

    def current(self) -> Run:
        return {**self._run, "status": "cancelled"} if self.cancelled else self._run

    def definition(self, run: Run) -> Definition:
        return self._definition

    def plan(self, run: Run, name: str) -> AttemptPlan:
        return AttemptPlan(self.workspace.root, run, self._definition, name, memory=lambda: self._memory)

    def note(self, text: str, key: str) -> None:
        self.notes.append((text, key))

    def look_at_documents(self, plan: AttemptPlan, verdict: str) -> tuple[list[str], str]:
        """The driver takes it in."""
        return [plan.name], ""


class Work:
    def __init__(self, folder: str, home: str) -> None:
        self.folder = folder
        self.home = home
        self._noted: Note | None = read(f"{folder}/task.json")
        self._hands: Hands | None = None
        self._ends = False
        self._closing = threading.Lock()
        self._is_closed = False

    @property
    def is_known(self) -> bool:
        """False where its worker died before it was written down: then nothing was started."""
        return self._noted is not None

    @property
    def held(self) -> Held:
        return Held(self._note["task"], self._note["epoch"])

    @property
    def spec(self) -> TaskSpec:
        return self._note["spec"]

    @property
    def _note(self) -> Note:
        if self._noted is None:
            raise Damaged("attempt-record-damaged", f"{self.folder} is no attempt's folder", "remove it")
        return self._noted

    def note(self, held: Held, spec: TaskSpec) -> None:
        make_directory(self.folder)
        self._noted = {"task": held.task, "epoch": held.epoch, "spec": spec}
        publish(f"{self.folder}/task.json", self._noted)

    def extend(self, asked: float, seconds: float) -> None:
        """`asked`: the moment before the lease was asked for; `seconds`: what was given."""
        extend_lease(f"{self.folder}/lease", asked + seconds - MARGIN)

    @property
    def is_over(self) -> bool:
        return lease_left(f"{self.folder}/lease") <= 0

    # ---- what it needs

    def unpack(self, content: Callable[[str], bytes]) -> None:
        """Repeating it changes nothing."""
        spec = self.spec
        make_directory(f"{self.folder}/texts")
        for sha in filter(None, (spec["run"], spec["definition"], spec["memory"])):
            path = f"{self.folder}/texts/{sha}"
            if not os.path.exists(path):
                body = content(sha)
                if digest(body) != sha:
                    raise Damaged(
                        "content-damaged", f"{sha} is not what it is called", "tenuto run --on cluster, again"
                    )
                with open(path + ".new", "wb") as file:
                    file.write(body)
                os.replace(path + ".new", path)
        self._mirror.tree(f"{self.folder}/tree", spec["inputs_ref"], spec["inputs"])

    @property
    def _mirror(self) -> Mirror:
        origin = self.spec["origin"]
        return Mirror(f"{self.home}/code/{digest(origin.encode())[:16]}", origin)

    def _text(self, sha: str) -> str:
        with open(f"{self.folder}/texts/{sha}", encoding="utf-8") as file:
            return file.read()

    def make_hands(self) -> Hands:
        """Refused where this machine cannot do it: settings, a secret, an agent that it does not know."""
        spec = self.spec
        run: Run = loads(self._text(spec["run"]))
        mine = run["attempts"][spec["attempt"]]
        mine["extra"] = {name: value for name, value in mine["extra"].items() if name != "tree"}
        run["in_flight"] = [spec["attempt"]]
        definition: Definition = loads(self._text(spec["definition"]))
        memory = self._text(spec["memory"]) if spec["memory"] else ""
        hands = Hands(self.folder, spec, run, definition, memory)
        hands.roster.named(mine["agent"])
        hands.cancelled = self._ends
        self._hands = hands
        return hands

    @property
    def hands(self) -> Hands:
        return self._hands or self.make_hands()

    def refuse_what_is_missing(self) -> None:
        """A secret that this machine does not have: another worker may have it."""
        missing = [name for name in self.spec["settings"].get("secrets", []) if name not in os.environ]
        if missing:
            raise Refused("no-secret", f"this worker has no {', '.join(missing)}", "set it where the worker is started")

    # ---- the work

    @property
    def began(self) -> bool:
        """Was anything started? What was not can be given back."""
        place = f"{self.folder}/state/attempts"
        return os.path.isdir(place) and any(files for _, _, files in os.walk(place))

    def carry(self) -> Report:
        known: Report | None = read(f"{self.folder}/report.json")
        if known is not None:
            return known
        hands, name = self.hands, self.spec["attempt"]
        result: loop.Ended | loop.Lost | None = None
        if not os.path.isdir(hands.directory(name)):
            result = hands.launch(hands.current(), name)
        else:
            attempts.sweep(f"{hands.folder}/{name}")
        while result is None:
            for ended in hands.wait([name]):
                result = hands.carry(ended)
        report = self._lost(result) if isinstance(result, loop.Lost) else self._ended(result)
        publish(f"{self.folder}/report.json", report)
        self.close()
        return report

    def _lost(self, lost: loop.Lost) -> Lost:
        return {"kind": "lost", "reason": lost.reason, "ran": lost.ran}

    def _ended(self, ended: loop.Ended) -> Report:
        hands, plan = self.hands, ended.plan
        if self._was_over():
            return {"kind": "lost", "reason": "its lease was over, and it was ended", "ran": True}
        reply: Reply = {**ended.reply, "text": ended.reply.get("text", "")[-LONGEST_DOCUMENT:]}
        verdict, summary, receipt = ended.judgement
        ours = not os.path.isdir(plan.workdir) or self._mirror.owns(plan.workdir)
        if not ours:
            receipt["problem"] = "its work tree is no work tree of this repository any more (.git was changed)"
            verdict, summary = "ERROR", f"claimed {verdict}, but {receipt['problem']}"
        return {
            "kind": "ended",
            "verdict": verdict,
            "summary": summary,
            "receipt": receipt,
            "reply": reply,
            "commit": self._commit(plan) if ours else "",
            "notes": hands.notes,
            "said": self._said(plan),
        }

    def _was_over(self) -> bool:
        """Its agent, or a command of the project, was ended because nobody renewed the lease."""
        top = f"{self.hands.folder}/{self.spec['attempt']}"
        places = [top, f"{top}/checks"]
        folders = [f"{place}/{name}" for place in places if os.path.isdir(place) for name in os.listdir(place)]
        found = [attempts.inspect(folder) for folder in folders if os.path.exists(f"{folder}/result.json")]
        return any(one["result"].get("lease_over", False) for one in found if one["state"] == "finished")

    def _commit(self, plan: AttemptPlan) -> str:
        """What it changed, as it was before any check of ours; what holds a secret stays behind."""
        hands = self.hands
        if not os.path.isdir(plan.workdir):
            return ""
        seen: Findings | None = read(f"{hands.directory(plan.name)}/seen.json")
        changed = seen["changed"] if seen else hands.boundary.changed(plan)
        secret = leaking(hands.workspace, plan, changed)
        wanted = [path for path in changed if path not in secret]
        message = f"{hands.name}: {plan.name}"
        if not wanted:
            return ""
        git.tell(plan.workdir, "checkout", "--quiet", "--detach")  # the agent may have made a branch of its own
        made = git.commit(plan.workdir, wanted, message, self.spec["inputs"])
        return git.head(plan.workdir) if made else ""

    def _said(self, plan: AttemptPlan) -> Said:
        folder = self.hands.directory(plan.name)
        said: Said = {
            "prompt": read_text(f"{folder}/prompt")[:_LONGEST_OUTPUT],
            "stdout": read_text(f"{folder}/stdout")[-_LONGEST_OUTPUT:],
            "stderr": read_text(f"{folder}/stderr")[-_LONGEST_OUTPUT:],
        }
        reply = read_text(f"{folder}/reply")
        if reply:
            said["reply"] = reply[-_LONGEST_OUTPUT:]
        return said

    # ---- and its end

    def hand_in(self, report: Report) -> str:
        """The body of the report. The result lies in the origin before anybody hears of it."""
        if report["kind"] == "ended" and report["commit"]:
            ref = f"{self.spec['result_ref']}/{self.held.epoch}"
            code.send(f"{self.folder}/tree", self.spec["origin"], (report["commit"], ref))
        return dumps(report)

    def end(self) -> None:
        """Its agent, the project's commands, and all that they started. What came of it may be told meanwhile: then
        there is nothing left to end."""
        with self._closing:
            if self._is_closed:
                return
            self._ends = True
            if self._hands is not None:
                self._hands.cancelled = True
            top = f"{self.folder}/state/attempts"
            for run in os.listdir(top) if os.path.isdir(top) else []:
                end_all(f"{top}/{run}/{self.spec['attempt']}")

    def close(self) -> None:
        """All of it has ended, and what came of it is about to be told."""
        with self._closing:
            self._is_closed = True

    def clear(self) -> None:
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def folder_of(home: str, task: str) -> str:
    return f"{home}/attempts/{digest(task.encode())[:24]}"


def result_ref(project: str, run: str, attempt: str) -> str:
    """Where results of an attempt go: a name for each, whatever characters theirs have."""
    return f"{code.REFS}/attempts/{project[:12]}/{run}/{tree_name(attempt)}"


def inputs_ref(project: str, run: str, attempt: str) -> str:
    return f"{code.REFS}/inputs/{project[:12]}/{run}/{tree_name(attempt)}"
