"""Another orchestrator does the dispatching: hand out the next attempts with everything they need, accept their
reports.

    hand_out(workspace, run, settings)        -> the run, and what is to be done now
    accept(workspace, run, attempt, report)   -> verdict, summary, receipt

The rules are the engine's: the same todo(), the same caps and budgets, the same receipts (outputs, boundaries, checks),
the same files. Asking again hands out the same attempts again. What is handed out is recorded first, and counts as
under way until it is reported. There is no process to supervise: time limits and the end of leftovers are the other
orchestrator's.

Where hooks were there when the agent worked (hooks/delegations.py), its own last word is known: a report may be worse
than that, never better, and may be left empty.

A run changes hands in the middle: `tenuto next` takes a run that no engine drives at the moment, and collects what a
dead engine's agents have finished since; `tenuto run` takes it back once nothing is handed out (or gives up what is).

When the run waits or has ended, a notice is sent (rest.notify), and the run is, on a branch of its own, concluded as by
an engine.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

from tenuto.agents.command import AgentProgram
from tenuto.agents.reply import parse_parked, parse_question, parse_reply, parse_verdict
from tenuto.agents.roster import NOBODY, Roster
from tenuto.core.records.run import Run
from tenuto.core.status import ACTIVE, REPORTED, SEVERITY, handed_out_state, waits_for
from tenuto.core.times import between
from tenuto.encoding import loads
from tenuto.engine import judge, receipts
from tenuto.engine.attempt import read_text
from tenuto.engine.boundary import refuse_beside
from tenuto.engine.gates import claim_home, refuse_elsewhere, refuse_untrusted
from tenuto.engine.judge import Judgement
from tenuto.engine.loop import Engine, set_aside
from tenuto.engine.rest import notify, send_telemetry
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.supervise import attempts
from tenuto.supervise.records import FileLock, make_directory
from tenuto.workspace.guard import refuse_attempts, session
from tenuto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Role, Seat
    from tenuto.core.records.action import Ending, Launch, Reply, ReplyVerdict
    from tenuto.core.records.run import Attempt
    from tenuto.core.status import HandedOutState
    from tenuto.ports import Agent, Assignment
    from tenuto.workspace.settings import Settings


class AtWork(TypedDict):
    agent: str
    session: str
    since: str


class Work(TypedDict):
    """One attempt, for the agent that carries it out. The prompt of one that an agent is at work on says so instead."""

    attempt: str
    step: str
    role: str
    item: str | None
    number: int
    since: str
    state: HandedOutState
    at_work: AtWork | None  # the agent that is known to work on it, or to have ended
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


class OwnWord(TypedDict, total=False):
    """What a hook heard the agent itself say at its end."""

    verdict: ReplyVerdict | None
    summary: str


class _HandedOut(AgentProgram):
    """An agent that the other orchestrator starts; its use is in the reports."""

    name = "guided"
    reports: tuple[str, ...] = ("tokens", "micro_usd")

    def __init__(self, words: str = "") -> None:
        pass

    def program(self, role: Role | None) -> str:
        return ""

    def launch(self, plan: Assignment) -> Launch:
        raise Refused("handed-out", f"{plan.name} is handed out, and not started by an engine")

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        raise Refused("handed-out", f"{plan.name} is handed out, and not started by an engine")


class _HandedOutOnly(Roster):
    """Every seat is handed out."""

    def __init__(self) -> None:
        super().__init__(NOBODY)
        self._handed_out = _HandedOut()

    def choose(self, seat: Seat, role: Role | None = None, parked: Mapping[str, str] | None = None) -> Agent:
        return self._handed_out

    def named(self, spelling: str) -> Agent:
        return self._handed_out if spelling == "guided" else super().named(spelling)


class Guide(Engine):
    def __init__(self, workspace: Workspace, run: str, settings: Settings) -> None:
        super().__init__(workspace, run, _HandedOutOnly(), settings)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Others who ask or report take their turn. An engine is not waited for: it will not let go before the run
        rests."""
        refuse_attempts(self.workspace.caller, self.workspace.state, "lead a run")
        refuse_beside(self.workspace, self.name)
        run = self.workspace.load(self.name)
        refuse_elsewhere(self.workspace, run)
        refuse_untrusted(self.workspace, run)
        claim_home(self.workspace, run)
        make_directory(self.folder, 0o777)
        with FileLock(f"{self.folder}/guide.lock"), FileLock(f"{self.folder}/engine.lock", wait=False) as ours:
            if not ours:
                raise Refused(
                    "driven", f"run {self.name} is driven by an engine", f"tenuto pause {self.name}, then ask again"
                )
            yield

    def take(self) -> Run:
        """From here on the other orchestrator moves the run. What an engine left under way is collected first."""
        run = self.workspace.load(self.name)
        if run["pipeline"]["hash"] is None:
            raise Refused(
                "no-pipeline", f"run {self.name} is driven by hand", f"tenuto run --pipeline NAME --run {self.name}"
            )
        if run["driver"] == "manual":
            raise Refused(
                "by-hand",
                f"run {self.name} was released, and is led by hand",
                f"tenuto run --run {self.name} --start-only",
            )
        self._refuse_other_place(run)
        if run["driver"] != "guided":
            self._collect_left(run)
            with self.workspace.turn() as turn:
                turn.do(self.name, {"do": "ChangeDriver", "driver": "guided"})
        asking = session(os.environ)
        if asking and asking not in run["sessions"]:
            with self.workspace.turn() as turn:
                turn.bind(self.name, asking)
        self._take_up(self.workspace.load(self.name))
        return run

    def _collect_left(self, run: Run) -> None:
        """Agents outlive the engine that started them. What they have finished since is taken in; no agent is
        started."""
        engine = Engine(self.workspace, self.name, Roster(NOBODY), self.settings)
        engine._take_up(run)
        for name in list(run["in_flight"]):
            if attempts.inspect(engine.directory(name))["state"] in ("finished", "lost", "void"):
                engine.collect(name)
        still = list(self.workspace.load(self.name)["in_flight"])
        if still:
            message = f"an engine left attempts of run {self.name} under way: {', '.join(still)}"
            raise Refused(
                "under-way", message, f"ask again when they have ended; or tenuto run, or tenuto cancel {self.name}"
            )

    def prepare(self, run: Run, name: str) -> bool:
        """As before a start of our own: its work tree, a look at what is there, the prompt. Once per attempt."""
        directory = f"{self.folder}/{name}/1"
        if os.path.exists(f"{directory}/prompt"):
            return True
        plan = self.plan(run, name)
        prepared = judge.make_ready(self, plan)
        if prepared.kind != "ready":
            self._fail(plan, prepared)
            return False
        make_directory(directory, 0o777)
        judge.clear_traps(self, plan, f"{self.workspace.state}/quarantine/{self.name}-{name}")
        self.boundary.begin(plan, run["in_flight"])
        judge.save(f"{directory}/before.json", receipts.look(plan, directory))
        # Under its name when it is whole: what is there is not made again.
        with open(f"{directory}/prompt.new", "w", encoding="utf-8") as file:
            prompt = self.workspace.secrets.text(plan.prompt())
            file.write(f"{mark(self.name, name)}\n\n{prompt}{_REFUSED_NAMES if plan.outputs else ''}")
        os.replace(f"{directory}/prompt.new", f"{directory}/prompt")
        return True

    def forget(self, again: Collection[str]) -> None:
        """Their agents are gone."""
        if not again:
            return
        with self.workspace.turn() as turn:
            run = turn.existing(self.name)
            refuse_unknown(run, again)
            for name in again:
                turn.do(self.name, {"do": "StartAttempt", "attempt": name, "extra": {"agent_id": "", "said": None}})

    def work(self, run: Run, name: str) -> Work:
        plan, attempt, path = self.plan(run, name), run["attempts"][name], f"{self.folder}/{name}/1/prompt"
        state, at_work = handed_out_state(attempt), _at_work(attempt)
        if state == "to do" or at_work is None:
            with open(path, encoding="utf-8") as file:
                prompt = file.read()
        elif state == "ended":
            prompt = f"Its agent has ended. Report it, with its reply or with none: tenuto report {run['id']} {name}"
        else:
            prompt = _BUSY.format(**at_work, run=run["id"], attempt=name)
        return {
            "attempt": name,
            "step": attempt["step"],
            "role": attempt["role"],
            "item": attempt["item"],
            "number": attempt["number"],
            "since": attempt["started_at"],
            "state": state,
            "at_work": at_work,
            "workdir": plan.workdir,
            "inputs": plan.inputs(),
            "outputs": plan.outputs,
            "verdicts": list(plan.seat["verdicts"]),
            "environment": plan.environment({}, []) | {"TENUTO_ATTEMPT": f"{self.name}.{name}"},
            "prompt": prompt,
            "prompt_file": path,
        }

    def end(self, name: str, report: Report) -> Judgement:
        run = self.workspace.load(self.name)
        plan = self.plan(run, name)
        directory = f"{self.folder}/{name}/1"
        own_word: OwnWord = plan.attempt["extra"].get("said") or {}
        reply = not_better(
            set_aside(_reply(_with_own_word(report, own_word, directory)), self.workspace.clock()), own_word
        )
        reply = self.workspace.secrets.value(reply)
        with open(f"{directory}/stdout", "w", encoding="utf-8") as file:
            file.write(reply.get("text", ""))
        judgement = judge.receive(self, plan, directory, reply)
        receipt = judgement.receipt
        receipt["starts"], receipt["leftover"] = 1, []
        receipt["duration_ms"] = between(plan.attempt["started_at"], self.workspace.clock())
        with self.workspace.turn() as turn:
            self._record(turn, plan, judgement, reply)
        return judgement


_BUSY = (
    "An agent ({agent}) has been at work on this since {since}. Wait for its end and report it; do not start another "
    "one. If it is gone for certain, ask for the work anew: tenuto next {run} --again {attempt} (tool next: again)."
)
_REFUSED_NAMES = (
    "\n\nIf a tool of yours refuses to write an output because of its name, make the file in another way: an edit with "
    "an empty text to be replaced, or a command. The file is what counts; a reply does not stand in its place.\n"
)


def refuse_unknown(run: Run, again: Collection[str]) -> None:
    """Before anything is written."""
    for name in again:
        if name not in run["in_flight"]:
            raise NotFound("no-such-attempt", f"{name} is not handed out", f"tenuto next {run['id']}")


def _at_work(attempt: Attempt) -> AtWork | None:
    known = attempt["extra"]
    if not known.get("agent_id"):
        return None
    since = known.get("at_work_since") or attempt["started_at"]
    return {"agent": str(known["agent_id"]), "session": str(known.get("session", "")), "since": since}


def hand_out(workspace: Workspace, run: str, settings: Settings, again: Collection[str] = ()) -> tuple[Run, list[Work]]:
    """`again`: attempts whose agents are gone, though no hook said so. They are handed out anew."""
    guide = Guide(workspace, run, settings)
    with _notifying(workspace, run, settings), guide.alone():
        refuse_unknown(workspace.load(run), again)
        guide.take()
        guide.forget(again)
        while True:
            found, _ = guide.advance()
            ready = [guide.prepare(found, name) for name in found["in_flight"]]
            if all(ready):
                found = found if found["in_flight"] else guide._rest(found)
                return found, [guide.work(found, name) for name in found["in_flight"]]


@contextmanager
def _notifying(workspace: Workspace, run: str, settings: Settings) -> Iterator[None]:
    """Notify, as an engine does, when the run has come to wait or to an end here; not each time it is asked for."""
    before = _resting(workspace.load(run))
    yield
    found = workspace.load(run)
    if _resting(found) not in ((), before):
        send_telemetry(workspace, found)
        notify(workspace, found, settings)


def _resting(run: Run) -> tuple[str, ...]:
    """What it rests at, and for what; empty where it does not."""
    waiting = waits_for(run)
    more = run["current_visit"] is not None or bool(
        run["queue"]
    )  # a finished proof of concept rests, unless it is being graduated
    moves = run["status"] in ACTIVE and (more or run["status"] != "poc-complete")
    return () if moves else (run["status"], waiting["gate"] or waiting["reason"] if waiting else "")


def accept(workspace: Workspace, run: str, attempt: str, report: Report, settings: Settings) -> Judgement:
    guide = Guide(workspace, run, settings)
    with _notifying(workspace, run, settings), guide.alone():
        known = workspace.load(run)["attempts"].get(attempt)
        if known is None:
            raise NotFound(
                "no-such-attempt", f"run {run} has no attempt {attempt!r}", f"tenuto next {run}", attempt=attempt
            )
        if known["agent"] != "guided":
            raise Refused(
                "not-yours", f"attempt {attempt} was started by an engine; its result is collected", "tenuto run"
            )
        if known["status"] not in ("dispatched", "running"):
            message = f"attempt {attempt} ended before: {known['verdict'] or known['status']}: {known['summary']}"
            raise Refused("attempt-ended", message, f"tenuto next {run}", attempt=attempt)
        if not os.path.exists(f"{guide.folder}/{attempt}/1/prompt"):
            message = (
                f"attempt {attempt} is recorded, but nobody was handed it yet"  # the one who asked died in between
            )
            raise Refused("not-handed-out", message, f"tenuto next {run}", attempt=attempt)
        return guide.end(attempt, report)


def give_up(workspace: Workspace, run: str) -> list[str]:
    """An engine takes over: what was handed out and not reported is lost. It is not known what was done of it."""
    guide, found = Guide(workspace, run, {}), workspace.load(run)
    lost = [name for name in found["in_flight"] if found["attempts"][name]["agent"] == "guided"]
    for name in lost:
        guide.lose(name, "it was handed out and never reported", True)
    return lost


def mark(run: str, attempt: str) -> str:
    """The first line of a prompt that is handed out: by it a hook knows which attempt an agent works on."""
    return f"[tenuto attempt {run}.{attempt}]"


def _with_own_word(report: Report, own_word: OwnWord, directory: str) -> Report:
    """An empty report is what the agent itself said, where a hook heard it."""
    if "verdict" in report:
        return report
    if report.get("reply"):
        _refuse_open_ended(report["reply"], own_word)
        return report
    if not own_word:
        raise BadInput(
            "bad-report",
            "the report says neither a verdict nor a reply, and no hook heard the agent",
            "give one of them",
        )
    text = read_text(f"{directory}/heard")
    return {**report, "reply": text or f"{own_word['verdict'] or ''}: {own_word['summary']}"}


def _refuse_open_ended(reply: str, own_word: OwnWord) -> None:
    """A text without a verdict is not the end: an agent that works in the background has only been started."""
    if own_word.get("verdict") or parse_parked(reply) or parse_question(reply):
        return
    if parse_verdict(reply).get("problem") in ("empty", "missing"):
        raise BadInput(
            "no-verdict",
            "the reply ends without a line DONE:, NEEDS_REVISION: or ERROR:, so nothing was recorded",
            "an agent that works in the background has only been started: wait for its last words and report those; if "
            "that was its end, ask it for the line, or report it as an ERROR (--verdict ERROR, or the field verdict)",
        )


def not_better(reply: Reply, own_word: OwnWord) -> Reply:
    """A report may think less of the work than the agent that did it, never more."""
    own = own_word.get("verdict")
    if own not in SEVERITY or reply["verdict"] not in SEVERITY or SEVERITY[reply["verdict"]] >= SEVERITY[own]:
        return reply
    summary = f"reported {reply['verdict']}, but the agent itself said {own}: {own_word['summary']}"
    return {**reply, "verdict": own, "summary": summary}


def read_report(text: str) -> Report:
    """A JSON object with a verdict, or the agent's own reply with its last line."""
    if text.lstrip().startswith("{"):
        try:
            value = loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and "verdict" in value:
            return _checked(value)
    return {"reply": text}


def _checked(value: dict[str, object]) -> Report:
    report: Report = {}
    for name in value:
        if name not in Report.__annotations__:
            raise _bad_report(name)
    for name in ("verdict", "summary", "reply", "parked_until"):
        text = value.get(name, "")
        if not isinstance(text, str):
            raise _bad_report(name)
        if name in value:
            report[name] = text  # type: ignore[literal-required]  # one of the four
    if report["verdict"] not in REPORTED:
        raise BadInput("bad-report", f"a verdict is one of {', '.join(REPORTED)}, not {report['verdict']!r}")
    usage = value.get("usage", {})
    if not isinstance(usage, dict):
        raise _bad_report("usage")
    for unit, amount in usage.items():
        if unit not in ("tokens", "micro_usd") or not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise BadInput("bad-report", f"usage: {unit}={amount} is no amount", "tokens, micro_usd; whole numbers")
    if "usage" in value:
        report["usage"] = usage
    return report


def _bad_report(name: str) -> BadInput:
    known = ", ".join(Report.__annotations__)
    return BadInput("bad-report", f"'{name}' in the report is unknown or of the wrong kind", f"known: {known}")


def _reply(report: Report) -> Reply:
    text, until = report.get("reply", ""), report.get("parked_until", "")
    reply: Reply = {
        "verdict": "ERROR",
        "summary": "",
        "transient": False,
        "usage": report.get("usage", {}),
        "text": text,
    }
    if "verdict" in report:
        verdict = next(word for word in REPORTED if word == report["verdict"])
        return {**reply, "verdict": verdict, "summary": report.get("summary", ""), "parked_until": until}
    parsed = parse_reply(text)
    until = parsed.get("parked_until", until)
    return {**reply, "verdict": parsed["verdict"], "summary": parsed["summary"], "parked_until": until}
