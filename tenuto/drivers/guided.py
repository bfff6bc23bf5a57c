"""Another orchestrator does the dispatching: hand out the next attempts with everything they need, accept their reports.

    hand_out(workspace, run, settings)        -> the run, and what is to be done now
    accept(workspace, run, attempt, report)   -> verdict, summary, receipt

The rules are the engine's: the same todo(), the same caps and budgets, the same receipts (outputs, boundaries, checks), the
same files. Asking again hands out the same attempts again. What is handed out is recorded first, and counts as under way until
somebody reports it. There is no process to supervise: time limits and the end of leftovers are the other orchestrator's.

Where hooks were there when the agent worked (hooks/handed_out.py), its own last word is known: a report may be worse than that,
never better, and may be left empty.

A run changes hands in the middle: `tenuto next` takes a run that no engine drives at the moment, and collects what a dead
engine's agents have finished since; `tenuto run` takes it back once nothing is handed out (or gives up what is).

When the run waits or has ended, that is told (notices.py) and, on a branch of its own, concluded as by an engine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from tenuto.agents.crew import Crew
from tenuto.agents.reply import parked, question, verdict
from tenuto.core.decisions.runs import ACTIVE
from tenuto.core.records import Run
from tenuto.core.times import between
from tenuto.drivers import delivery, receipts
from tenuto.drivers.jobs import Job
from tenuto.drivers.local import Engine, keep, set_aside
from tenuto.drivers.notices import notify
from tenuto.encoding import loads
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.hosts.surroundings import session
from tenuto.supervise import attempts
from tenuto.workspace.guard import refuse_attempts
from tenuto.workspace.turn import Workspace

VERDICTS = ("DONE", "NEEDS_REVISION", "ERROR", "QUESTION", "PARKED")
_RANK = {"ERROR": 0, "NEEDS_REVISION": 1, "DONE": 2}


class Work(TypedDict):
    """One attempt, for whoever carries it out."""

    attempt: str
    step: str
    role: str
    item: str | None
    number: int
    since: str
    workdir: str
    inputs: list[str]
    outputs: list[str]
    verdicts: list[str]
    environment: dict[str, str]
    prompt: str
    prompt_file: str


class Report(TypedDict, total=False):
    verdict: str
    summary: str
    reply: str
    usage: dict[str, int]
    parked_until: str


class _Elsewhere:
    """Whoever works for the other orchestrator; what they use is in their reports."""

    name = "guided"
    reports = ("tokens", "micro_usd")

    def choose(self, *_: Any) -> Any:
        return self

    def named(self, name: str) -> Any:
        return self


class _Left:
    """Those whom an engine started, by the names that the journal has for them."""

    def named(self, name: str) -> Any:
        return Crew(name).named(name)


class Guide(Engine):
    def __init__(self, workspace: Workspace, run: str, settings: dict[str, Any]) -> None:
        super().__init__(workspace, run, _Elsewhere(), settings)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Others who ask or report take their turn. An engine is not waited for: it will not let go before the run rests."""
        refuse_attempts(self.workspace.state, "lead a run")
        os.makedirs(self.folder, exist_ok=True)
        queue, file = (os.open(f"{self.folder}/{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for name in ("guide", "engine"))
        try:
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Refused("driven", f"run {self.name} is driven by an engine", f"tenuto pause {self.name}, then ask again") from None
        finally:
            os.close(file)
            os.close(queue)

    def take(self) -> Run:
        """From here on the other orchestrator moves the run. What an engine left under way is collected first."""
        run = self.workspace.load(self.name)
        if run["pipeline"]["hash"] is None:
            raise Refused("no-pipeline", f"run {self.name} is driven by hand", f"tenuto run --pipeline NAME --run {self.name}")
        if run["driver"] == "manual":
            raise Refused("by-hand", f"run {self.name} was released, and is led by hand", f"tenuto run --run {self.name} --start-only")
        if run["driver"] != "guided":
            self._collect_left(run)
            with self.workspace.turn() as turn:
                turn.do(self.name, {"do": "ChangeDriver", "driver": "guided"})
        asking = session(os.environ)
        if asking and asking not in run["sessions"]:
            with self.workspace.turn() as turn:
                turn.bind(self.name, asking)
        self._take_up()
        return run

    def _collect_left(self, run: Run) -> None:
        """Agents outlive the engine that started them. What they have finished since is taken in as ever; no one is started."""
        engine = Engine(self.workspace, self.name, _Left(), self.settings)
        engine._take_up()
        for name in list(run["flying"]):
            if attempts.inspect(engine.directory(name))["state"] in ("finished", "lost", "void"):
                engine.collect(name)
        still = list(self.workspace.load(self.name)["flying"])
        if still:
            message = f"an engine left attempts of run {self.name} under way: {', '.join(still)}"
            raise Refused("under-way", message, f"ask again when they have ended; or tenuto run, or tenuto cancel {self.name}")

    def prepare(self, run: Run, name: str) -> bool:
        """As before a start of our own: its work tree, a look at what is there, the prompt. Once per attempt."""
        directory = f"{self.folder}/{name}/1"
        if os.path.exists(f"{directory}/prompt"):
            return True
        job = self.job(run, name)
        problem = delivery.make_ready(self, job)
        if problem:
            self._fail(job, problem)
            return False
        os.makedirs(directory, exist_ok=True)
        self.boundary.begin(job, run["flying"])
        keep(f"{directory}/before.json", receipts.look(job, directory))
        # Under its name when it is whole: what is there is not made again.
        with open(f"{directory}/prompt.new", "w", encoding="utf-8") as file:
            prompt = job.prompt() if self.workspace.secrecy is None else self.workspace.secrecy.out_of(job.prompt())
            file.write(f"{mark(self.name, name)}\n\n{prompt}")
        os.replace(f"{directory}/prompt.new", f"{directory}/prompt")
        return True

    def work(self, run: Run, name: str) -> Work:
        job, attempt, path = self.job(run, name), run["attempts"][name], f"{self.folder}/{name}/1/prompt"
        with open(path, encoding="utf-8") as file:
            prompt = file.read()
        return {
            "attempt": name, "step": attempt["step"], "role": attempt["role"], "item": attempt["item"], "number": attempt["number"],
            "since": attempt["started_at"], "workdir": job.workdir, "inputs": job.inputs(), "outputs": job.outputs,
            "verdicts": list(job.seat["verdicts"]), "environment": job.environment({}, []) | {"TENUTO_ATTEMPT": f"{self.name}.{name}"},
            "prompt": prompt, "prompt_file": path,
        }  # fmt: skip

    def end(self, name: str, report: Report) -> tuple[str, str, dict[str, Any]]:
        run = self.workspace.load(self.name)
        job: Job = self.job(run, name)
        directory = f"{self.folder}/{name}/1"
        heard = job.attempt["extra"].get("said") or {}
        told = not_better(set_aside(_told(_with_heard(report, heard, directory))), heard)
        told = told if self.workspace.secrecy is None else self.workspace.secrecy.out_of(told)
        with open(f"{directory}/stdout", "w", encoding="utf-8") as file:
            file.write(told["reply"])
        verdict_, summary, receipt = delivery.receive(self, job, directory, told)
        receipt |= {"starts": 1, "duration_ms": between(job.attempt["started_at"], self.workspace.clock()), "leftover": []}
        with self.workspace.turn() as turn:
            self._record(turn, job, name, verdict_, summary, receipt, told, job.pipeline)
        return verdict_, summary, receipt


def hand_out(workspace: Workspace, run: str, settings: dict[str, Any]) -> tuple[Run, list[Work]]:
    guide = Guide(workspace, run, settings)
    with _told_of(workspace, run, settings), guide.alone():
        guide.take()
        while True:
            found, _ = guide.settle()
            ready = [guide.prepare(found, name) for name in found["flying"]]
            if all(ready):
                found = found if found["flying"] else guide._rest(found)
                return found, [guide.work(found, name) for name in found["flying"]]


@contextmanager
def _told_of(workspace: Workspace, run: str, settings: dict[str, Any]) -> Iterator[None]:
    """Somebody is notified, as by an engine, when the run has come to wait or to an end here; not each time it is asked for."""
    before = _resting(workspace.load(run))
    yield
    found = workspace.load(run)
    if _resting(found) not in ((), before):
        notify(workspace, found, settings)


def _resting(run: Run) -> tuple[str, ...]:
    """What it rests at, and for what; empty where it does not."""
    waits: Any = run["gate"] or run["pause"] or run["blocked"] or {}
    more = run["stay"] is not None or bool(run["queue"])  # a finished proof of concept rests, unless it is being graduated
    moves = run["status"] in ACTIVE and (more or run["status"] != "poc-complete")
    return () if moves else (run["status"], str(waits.get("id") or waits.get("reason", "")))


def accept(
    workspace: Workspace, run: str, attempt: str, report: Report, settings: dict[str, Any]
) -> tuple[str, str, dict[str, Any]]:
    guide = Guide(workspace, run, settings)
    with _told_of(workspace, run, settings), guide.alone():
        known = workspace.load(run)["attempts"].get(attempt)
        if known is None:
            raise NotFound("no-such-attempt", f"run {run} has no attempt {attempt!r}", f"tenuto next {run}", attempt=attempt)
        if known["agent"] != "guided":
            raise Refused("not-yours", f"attempt {attempt} was started by an engine; its result is collected", "tenuto run")
        if known["status"] not in ("dispatched", "running"):
            message = f"attempt {attempt} ended before: {known['verdict'] or known['status']}: {known['summary']}"
            raise Refused("attempt-ended", message, f"tenuto next {run}", attempt=attempt)
        if not os.path.exists(f"{guide.folder}/{attempt}/1/prompt"):
            message = f"attempt {attempt} is recorded, but nobody was handed it yet"  # whoever asked died in between
            raise Refused("not-handed-out", message, f"tenuto next {run}", attempt=attempt)
        return guide.end(attempt, report)


def give_up(workspace: Workspace, run: str) -> list[str]:
    """An engine takes over: what was handed out and not reported is lost. Nobody knows what was done of it."""
    guide, found = Guide(workspace, run, {}), workspace.load(run)
    lost = [name for name in found["flying"] if found["attempts"][name]["agent"] == "guided"]
    for name in lost:
        guide.lose(name, "it was handed out and never reported", True)
    return lost


def mark(run: str, attempt: str) -> str:
    """The first line of a prompt that is handed out: by it a hook knows which attempt an agent works on."""
    return f"[tenuto attempt {run}.{attempt}]"


def _with_heard(report: Report, heard: dict[str, Any], directory: str) -> Report:
    """A report that says nothing is what the agent itself said, where a hook heard it."""
    if "verdict" in report or report.get("reply"):
        return report
    if not heard:
        raise BadInput("bad-report", "the report says neither a verdict nor a reply, and no hook heard the agent", "give one of them")
    try:
        with open(f"{directory}/heard", encoding="utf-8") as file:
            reply = file.read()
    except FileNotFoundError:
        reply = ""
    return {**report, "reply": reply or f"{heard['verdict'] or ''}: {heard['summary']}"}


def not_better(told: dict[str, Any], heard: dict[str, Any]) -> dict[str, Any]:
    """Whoever reports may think less of the work than the agent that did it, never more."""
    own = heard.get("verdict")
    if own not in _RANK or told["verdict"] not in _RANK or _RANK[told["verdict"]] <= _RANK[own]:
        return told
    summary = f"reported {told['verdict']}, but the agent itself said {own}: {heard['summary']}"
    return {**told, "verdict": own, "summary": summary}


def read_report(text: str) -> Report:
    """A JSON object with a verdict, or the agent's own reply with its last line."""
    if text.lstrip().startswith("{"):
        try:
            found = loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and "verdict" in found:
            return _checked(found)
    return {"reply": text}


def _checked(found: dict[str, Any]) -> Report:
    known = {"verdict": str, "summary": str, "reply": str, "usage": dict, "parked_until": str}
    for name, value in found.items():
        if name not in known or not isinstance(value, known[name]):
            raise BadInput("bad-report", f"'{name}' in the report is unknown or of the wrong kind", f"known: {', '.join(known)}")
    if found["verdict"] not in VERDICTS:
        raise BadInput("bad-report", f"a verdict is one of {', '.join(VERDICTS)}, not {found['verdict']!r}")
    for unit, amount in found.get("usage", {}).items():
        if unit not in ("tokens", "micro_usd") or not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise BadInput("bad-report", f"usage: {unit}={amount} is no amount", "tokens, micro_usd; whole numbers")
    return found  # type: ignore[return-value]


def _told(report: Report) -> dict[str, Any]:
    reply, usage = report.get("reply", ""), report.get("usage", {})
    told: dict[str, Any] = {"reply": reply, "usage": usage, "transient": False, "parked_until": report.get("parked_until", "")}
    if "verdict" in report:
        return {**told, "verdict": report["verdict"], "summary": report.get("summary", "")}
    waits, asked = parked(reply), question(reply)
    if waits is not None:
        return {**told, "verdict": "PARKED", "summary": waits[1], "parked_until": waits[0]}
    if asked is not None:
        return {**told, "verdict": "QUESTION", "summary": asked}
    said = verdict(reply)
    return {**told, "verdict": said["verdict"], "summary": said["summary"] or said.get("reason", "")}
