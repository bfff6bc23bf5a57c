"""The local engine: this machine, real processes, one loop.

    advance    one turn: everything todo() asks for that needs no waiting; dispatches are recorded before they start
    launch     a supervisor for each recorded dispatch
    wait       until one of them has ended: an agent, or a command of the project (set-up, check)
    collect    its reply and its receipt become one FinishAttempt

Killed between any two lines, the next engine finds the run as it was: attempts under way are adopted, results
collected, what was recorded but never started is proven so and asked for again, what is lost is labelled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.approvals import protection
from tenuto.core.budget import time_left
from tenuto.core.decisions.runs import too_early
from tenuto.core.queue.day import in_words
from tenuto.core.records.run import Run
from tenuto.core.status import ACTIVE, ENDED, RESTING
from tenuto.core.times import milliseconds
from tenuto.core.visit import step_of
from tenuto.engine import actions, branches, gates, judge
from tenuto.engine.attempt import AttemptPlan, definition_of, kept_open, read_text, task_of
from tenuto.engine.boundary import alone_in_tree
from tenuto.engine.judge import Judgement, Prepared, Site
from tenuto.engine.many import own_tree
from tenuto.engine.many.day import Account
from tenuto.engine.receipts import GRACE, LONGEST_DOCUMENT, OUT_OF_TIME, UnderWay
from tenuto.engine.worktrees import isolated, tree_name
from tenuto.errors import Refused
from tenuto.supervise import attempts
from tenuto.supervise.attempts import wait_any
from tenuto.supervise.records import FileLock, make_directory
from tenuto.workspace.settings import time_limit
from tenuto.workspace.workspace import Turn, Workspace

if TYPE_CHECKING:
    from tenuto.agents.roster import Roster
    from tenuto.core.records.action import Definition, Dispatch, Reply, ReplyVerdict
    from tenuto.core.records.commands import DispatchAttempts, Dispatched, FinishAttempt, LoseAttempt, Pause
    from tenuto.core.records.run import Receipt
    from tenuto.supervise.records import Result, Spec
    from tenuto.workspace.settings import Settings

    Watcher = Callable[[Run, list[str]], None]
    """Is shown the run after each turn, and the attempts that were dispatched in it."""

_BACKOFF = 1.0  # seconds before a transient failure is tried again, doubled each time
_BAD_LUCK = 5  # attempts of one agent that certainly never started, while one engine was at work
_OUTPUT_CAP = 32 << 20
_LONGEST_PARKING = 31 * 24 * 3600 * 1000  # milliseconds: no usage limit lasts longer than a month


class Ended(NamedTuple):
    """What came of an attempt, judged."""

    plan: AttemptPlan
    judgement: Judgement
    reply: Reply


class Lost(NamedTuple):
    reason: str
    ran: bool


class Carrier(Site):
    """Carries attempts out on this machine: made ready, started, waited for, judged. What becomes of them is recorded
    elsewhere."""

    def __init__(self, workspace: Workspace, run: str, roster: Roster, settings: Settings) -> None:
        super().__init__(workspace, run, roster, settings)
        self._wake: dict[str, float] = {}  # attempts that wait for another start, and until when

    def launch(self, run: Run, name: str, start: int = 1) -> Ended | None:
        """None where it has begun, or is being set up; otherwise it could not even be prepared, and has ended."""
        plan = self.plan(run, name)
        ended = run["status"] in ENDED
        prepared = Prepared("failed", "the run has ended") if ended else judge.prepare(self, plan)
        if isinstance(prepared, UnderWay):
            self.setups[name] = self._unless_cancelled(prepared.directory)
            return None
        if prepared.kind != "ready":
            if start > 1:
                judge.give_up(self, plan)
            return self._not_started(plan, prepared)
        directory = f"{self.folder}/{name}/{start}"
        make_directory(directory, 0o777)
        if start == 1:  # what an earlier start of the attempt changed is its doing, too
            judge.clear_way(self, plan)
            self.boundary.begin(plan, run["in_flight"])
        judge.look_back(self, plan, start)
        attempts.launch(directory, self._spec(run, plan, directory))
        if start > 1:
            self._unless_cancelled(directory)
        return None

    def _spec(self, run: Run, plan: AttemptPlan, directory: str) -> Spec:
        """What the supervisor is to start. The prompt, and the outputs as they are now, are kept beside it."""
        agent = self.roster.named(plan.attempt["agent"])
        launch = agent.launch(plan)
        judge.save(f"{directory}/before.json", judge.snapshot(self, plan, directory))
        with open(f"{directory}/prompt", "w", encoding="utf-8") as file:
            prompt = launch["stdin"]
            file.write(self.workspace.secrets.text(prompt) if self.workspace.has_secrets else prompt)
        secrets = self.settings.get("secrets", [])
        more = [*self.settings.get("environment", []), *secrets, *judge.names_for(agent, os.environ)]
        spec: Spec = {
            "attempt": f"{self.name}.{plan.name}.{plan.start}",
            "argv": [*gates.isolation(self.settings, self.workspace), *launch["argv"]],
            "cwd": plan.workdir,
            "stdin": f"{directory}/prompt",
            "env": {**plan.environment(dict(os.environ), more), **launch["env"]},
            "limit": self._limit(run, plan),
            "grace": GRACE,
            "output_cap": _OUTPUT_CAP,
            "pool": f"{self.workspace.state}/slots",
            "cap": plan.pipeline["cap"],
        }
        if secrets:
            spec["masked"] = secrets
        if self.lease:
            spec["lease"] = self.lease
        return spec

    def _unless_cancelled(self, directory: str) -> str:
        """A run that was cancelled while this was being started: it is ended with the rest (see rest.cancel)."""
        if self.current()["status"] == "cancelled":
            attempts.cancel(directory)
        return directory

    def _not_started(self, plan: AttemptPlan, prepared: Prepared) -> Ended:
        attempts.void(self.directory(plan.name))
        verdict: ReplyVerdict = "PARKED" if prepared.kind == "out_of_time" else "ERROR"
        reply: Reply = {"verdict": verdict, "summary": prepared.problem, "transient": False, "usage": {}}
        receipt: Receipt = {"outputs": {}, "checks": [], "problem": prepared.problem, "severities": []}
        return Ended(plan, Judgement(verdict, prepared.problem, receipt), reply)

    def _limit(self, run: Run, plan: AttemptPlan) -> float | None:
        """The attempt's own limit, or what is left of the wall clock where that is less."""
        left, own = time_left(run, plan.step["id"], self.workspace.clock()), self._own_limit(plan)
        return own if left is None else min(max(left / 1000, 0.1), own or left / 1000)

    def _own_limit(self, plan: AttemptPlan) -> int | None:
        """As the pipeline says; where it says nothing, as the settings do."""
        return plan.seat["time_limit"] or time_limit(self.settings)

    def wait(self, in_flight: list[str]) -> list[str]:
        """Attempts that are not under way any more."""
        now = time.monotonic()
        due = [name for name in in_flight if self._wake.get(name, 0.0) <= now]
        soonest = min((at - now for name, at in self._wake.items() if name in in_flight and at > now), default=None)
        if not due and soonest is not None:
            time.sleep(soonest)
            return self.wait(in_flight)
        by_directory = {self.setups.get(name) or self.checks.get(name) or self.directory(name): name for name in due}
        return [by_directory[path] for path in wait_any(list(by_directory), soonest)]

    def carry(self, name: str) -> Ended | Lost | None:
        """What came of an attempt that is not under way any more; None where it goes on: another start, a check."""
        directory = self.directory(name)
        self.checks.pop(name, None)
        if self.setups.pop(name, None):
            run = self.current()
            if run["status"] in RESTING and attempts.void(directory):
                return Lost(f"the run was {run['status']} before it started", False)
            return self.launch(run, name)
        status = attempts.inspect(directory)
        if name in self._wake:
            del self._wake[name]
            return self.launch(self.current(), name, int(os.path.basename(directory)) + 1)
        match status["state"]:
            case "finished":
                return self.finish(name, directory, status["result"])
            case "lost":
                attempts.sweep(os.path.dirname(directory))
                ran = status.get("may_have_run", True) or judge.ran_before(directory)
                return Lost("its supervisor was killed; nobody knows what it did", ran)
            case "void" if judge.ran_before(directory):
                return Lost("it was to be started again, and was not", True)
            case "void":
                return Lost("it was recorded, but never started", False)
            # absent, or launching with no process left that would go on: exactly one of us and a late supervisor wins
            case _:
                attempts.void(directory)
                return None

    def finish(self, name: str, directory: str, result: Result) -> Ended | None:
        run = self.current()
        plan = self.plan(run, name)
        judge.clear_special(self, plan, list(run["in_flight"]))
        output = read_text(f"{directory}/stdout")
        judge.look_back(self, plan, int(os.path.basename(directory)))
        plan.errors = judge.errors_of(directory)
        reply = self.roster.named(run["attempts"][name]["agent"]).reply(plan, result, output)
        text = reply.setdefault("text", output)
        if text not in ("", output):  # a stream of events: what the agent said in the end is kept beside it
            with open(f"{directory}/reply", "w", encoding="utf-8") as file:
                file.write(text)
        if result["timed_out"] and result["duration"] < (self._own_limit(plan) or result["duration"] + 1):
            reply = {**reply, "verdict": "PARKED", "summary": OUT_OF_TIME}
        reply = set_aside(reply, self.workspace.clock())
        if judge.may_start_again(plan, result, reply):
            judge.keep_usage(directory, reply)
            self._wake[name] = time.monotonic() + _BACKOFF * 2 ** (plan.start - 1)
            return None
        reply = judge.conclude(self, plan, reply)
        judgement = judge.judge(self, plan, directory, reply)
        if isinstance(judgement, UnderWay):
            self.checks[name] = self._unless_cancelled(judgement.directory)
            return None
        receipt = judgement.receipt
        receipt["starts"], receipt["duration_ms"] = plan.start, int(result["duration"] * 1000)
        receipt["leftover"] = result["leftover"]
        summary = judge.explained(judgement.verdict, judgement.summary, reply)
        return Ended(plan, judgement._replace(summary=summary), reply)


class Engine(Carrier):
    elsewhere = False
    """Are its attempts carried out on other machines?"""

    def __init__(
        self, workspace: Workspace, run: str, roster: Roster, settings: Settings, watcher: Watcher | None = None
    ) -> None:
        super().__init__(workspace, run, roster, settings)
        self.watcher = watcher or (lambda run, fresh: None)
        self.account = Account(workspace)
        self._unstarted: dict[str, int] = {}  # how many attempts of a seat left no trace, since this engine began

    def drive(self) -> Run:
        """Until the run rests: ended, or waiting for a person."""
        with self._alone(), kept_open(self.workspace):
            run = self.workspace.load(self.name)
            self._refuse_other_place(run)
            gates.refuse_elsewhere(self.workspace, run)
            gates.refuse_untrusted(self.workspace, run)
            gates.refuse_open(self.workspace, protection(run)["level"], self.settings)
            gates.claim_home(self.workspace, run)
            run = self._take_back(run)
            self._take_up(run)
            self._go_on_setting_up(run)
            ended: list[str] = []  # not under way any more, and not collected yet
            while True:
                run, fresh = self.advance()
                launched = [self.launch(run, name) for name in fresh]
                not_started = [end for end in launched if end is not None]
                for end in not_started:
                    self.record(end)
                if not_started:
                    continue
                in_flight = list(run["in_flight"])
                if not in_flight:
                    return self._rest(run)
                ended = [name for name in ended if name in in_flight]  # another process may have ended one
                self.setups, self.checks = (
                    {n: d for n, d in c.items() if n in in_flight} for c in (self.setups, self.checks)
                )
                ended += self.wait([name for name in in_flight if name not in ended])
                self._refuse_removed()
                for name in judge.in_turn(self, run, ended, in_flight):
                    if not judge.is_held(self, run, name):
                        ended.remove(name)
                        self.collect(name)

    def _refuse_other_place(self, run: Run) -> None:
        """An attempt that runs on another machine would be taken for one that never started."""
        place = str(run["settings"].get("on", ""))
        if bool(place) != self.elsewhere:
            message = f"the attempts of run {self.name} are carried out {f'on {place}' if place else 'on this machine'}"
            raise Refused("other-place", message, f"tenuto run --run {self.name}")

    def _take_back(self, run: Run) -> Run:
        """From another orchestrator (guided.py). What it was handed out may be under way there: that is not started
        again."""
        if run["driver"] != "guided":
            return run
        refuse_handed_out(run)
        with self.workspace.turn() as turn:
            turn.do(self.name, {"do": "ChangeDriver", "driver": "engine"})
        return self.workspace.load(self.name)

    def _take_up(self, run: Run) -> None:
        """What an engine before this one left: orphans are ended, merged trees cleared, the work tree stands where
        it must."""
        gates.refuse_forged(self.workspace, run)
        branches.stand(self.workspace, run, self.definition(run)["pipeline"])
        actions.read_ahead(self, run, self.definition(run)["pipeline"])
        self.trees.clear(run)
        self._fill_tree(run)
        for name in list(run["in_flight"]):
            for folder in (f"{self.folder}/{name}", f"{self.folder}/{name}/checks"):
                attempts.sweep(folder)

    def _fill_tree(self, run: Run) -> None:
        """A tree that was made for the run gets what its agents need, once. Where that fails, none starts."""
        problem = own_tree.fill(self, run, self.definition(run)) if run["status"] in ACTIVE else ""
        if problem:
            asked: Pause = {"do": "Pause", "kind": "set-up", "reason": problem, "recommendations": ["resume"]}
            with self.workspace.turn() as turn:
                turn.do(self.name, asked)

    def _go_on_setting_up(self, run: Run) -> None:
        """Attempts whose agents have not started yet, because a command of the project had not ended."""
        for name in list(run["in_flight"]):
            if os.path.isdir(f"{self.folder}/{name}/checks") and not os.path.isdir(self.directory(name)):
                not_started = self.launch(run, name)
                if not_started is not None:
                    self.record(not_started)

    def _rest(self, run: Run) -> Run:
        self.trees.clear(run)
        judge.clear_strays(self, f"{self.workspace.state}/quarantine/{self.name}-{run['version']}")
        branches.conclude(self.workspace, run, self.definition(run)["pipeline"])
        return self.workspace.load(self.name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One engine per run: a second one waits here, and takes over when the first is gone."""
        make_directory(self.folder, 0o777)
        with FileLock(f"{self.folder}/engine.lock"), alone_in_tree(self.workspace, self.name):
            yield

    def _refuse_removed(self) -> None:
        """Without its journal and what supervisors keep, an engine would start the same agent again and again."""
        if not os.path.exists(f"{self.folder}/engine.lock"):
            state = self.workspace.state
            hint = "bring it back from a backup (tenuto import), or begin a new run"
            raise Refused("state-removed", f"{state} was removed while run {self.name} was under way", hint, path=state)

    # ---- what needs no waiting

    def advance(self) -> tuple[Run, list[str]]:
        with self.workspace.turn(by="engine") as turn:
            run = turn.existing(self.name)
            definition = definition_of(turn.tx, run)
            fresh: list[str] = []
            actions.show_again(self, turn, run, definition["pipeline"])
            while True:
                wanted = turn.todo(self.name, definition["pipeline"])
                if not wanted or (wanted[0]["act"] == "wake" and too_early(wanted[0]["at"], turn.at)):
                    break
                if wanted[0]["act"] == "dispatch":
                    if judge.checked_here(self, run):
                        break
                    gates.refuse_forged_start(turn, run)
                    admitted = self._admitted(turn, run, [one for one in wanted if one["act"] == "dispatch"])
                    if admitted is None:
                        break
                    fresh += self.dispatch(turn, run, definition, admitted) if admitted else []
                else:
                    actions.perform(self, turn, definition, wanted[0])
        self.watcher(run, fresh)
        return run, fresh

    def _admitted(self, turn: Turn, run: Run, wanted: list[Dispatch]) -> list[Dispatch] | None:
        """Those that all runs together may still afford. None: what is under way has to end first; []: the run rests
        instead."""
        answer = self.account.admitted(turn.tx, self.settings, [one["reserved"] for one in wanted])
        if answer.number or answer.short is None:
            return wanted[: answer.number]
        if run["in_flight"]:
            return None
        reason = in_words(answer.short)
        if answer.short["span"] == "day":
            turn.do(self.name, {"do": "Park", "until": answer.until, "reason": reason})
        else:
            way_on = f"raise budget: ever: in .tenuto/config.yaml, then: tenuto resume {self.name} --new-settings"
            turn.do(self.name, {"do": "Pause", "kind": "budget", "reason": reason, "recommendations": [way_on]})
        return []

    def dispatch(self, turn: Turn, run: Run, definition: Definition, wanted: list[Dispatch]) -> list[str]:
        """Record the intent. Nothing starts before this is durable."""
        dispatched = [self._dispatched(run, definition, action, len(wanted)) for action in wanted]
        command: DispatchAttempts = {"do": "DispatchAttempts", "attempts": dispatched}
        turn.do(self.name, command, definition["pipeline"])
        return [action["attempt"] for action in wanted]

    def _dispatched(self, run: Run, definition: Definition, action: Dispatch, together: int) -> Dispatched:
        agent = judge.choose(self, run, definition, action["seat"])
        current_visit = run["current_visit"]
        state = current_visit["seats"].get(action["key"]) if current_visit else None
        extra = {
            "seat": action["key"],
            "mode": current_visit["leg"].get("mode", "") if current_visit else "",
            "parallel": together > 1,
            "memory": action["seat"]["memory"],
            "why_again": self._why_again(run, action) if state or action["item"] else "",
            "answer": run["answers"].get(f"question:{action['key']}", ""),
        }
        if action["seat"]["memory"] == "write" and definition["pipeline"]["memory"] == "run":
            extra["memory_seen"] = judge.memory_hash(run)
        if action["item"] is not None and isolated(run, step_of(definition["pipeline"], action["step"])):
            extra["tree"] = judge.tree_to_go_on_in(self, run, action, agent) or tree_name(action["attempt"])
        return {
            "attempt": action["attempt"],
            "role": action["seat"]["role"],
            "agent": agent.name,
            "task": task_of(run, action["seat"], action["item"]),
            "item": action["item"],
            "number": action["number"],
            "iteration": current_visit["visit"] if current_visit else 1,
            "extra": extra,
        }

    def _why_again(self, run: Run, action: Dispatch) -> str:
        earlier = [
            attempt
            for attempt in run["attempts"].values()
            if attempt["extra"].get("seat") == action["key"] and attempt["step"] == action["step"]
        ]
        return earlier[-1]["summary"] if earlier and earlier[-1]["verdict"] != "DONE" else ""

    def _fail(self, plan: AttemptPlan, prepared: Prepared) -> None:
        self.record(self._not_started(plan, prepared))

    def collect(self, name: str) -> None:
        match self.carry(name):
            case Ended() as ended:
                self.record(ended)
            case Lost(reason, ran):
                self.lose(name, reason, ran)

    def record(self, ended: Ended) -> None:
        with self.workspace.turn(by="engine") as turn:
            self._record(turn, *ended)
        if ended.plan.isolated:
            self.trees.clear(self.workspace.load(self.name))

    def _record(self, turn: Turn, plan: AttemptPlan, judgement: Judgement, reply: Reply) -> None:
        verdict, summary, receipt = judgement
        self._keep_printed(turn, plan, reply)
        if verdict not in ("ERROR", "PARKED"):
            actions.keep_outputs(turn, plan, list(receipt["outputs"]), reply.get("text", ""))
        if verdict == "DONE" and not plan.isolated:
            actions.keep_commits(turn, plan, self.boundary.base(plan))
        finished: FinishAttempt = {
            "do": "FinishAttempt",
            "attempt": plan.name,
            "status": "failed" if verdict in ("ERROR", "PARKED") else "completed",
            "verdict": verdict,
            "summary": summary,
            "receipt": receipt,
            "usage": {"attempts": 1, **reply["usage"]},
            "key": f"finished:{plan.name}",
            "parked_until": reply.get("parked_until", ""),
            "others": reply.get("others", False),
        }
        if verdict != reply["verdict"]:
            finished["said"] = {"verdict": reply["verdict"], "summary": reply["summary"]}
        turn.do(self.name, finished, plan.pipeline)

    def _keep_printed(self, turn: Turn, plan: AttemptPlan, reply: Reply) -> None:
        """What a command printed, as the document that its pipeline makes of it, whatever its exit status."""
        command = plan.seat["command"]
        if command and command["stdout"] and not (plan.isolated and plan.item is not None):
            body = reply.get("text", "").encode()[-LONGEST_DOCUMENT:]
            name = plan.filled(command["stdout"])
            turn.store(self.name, name, plan.path(command["stdout"]), body, step=plan.step["id"])

    def lose(self, name: str, reason: str, ran: bool) -> None:
        plan = self.plan(self.workspace.load(self.name), name)
        if not ran:  # a few times that is bad luck; then another program removes the traces, or no supervisor can start
            seat = f"{plan.step['id']}/{plan.attempt['extra']['seat']}"
            self._unstarted[seat] = self._unstarted.get(seat, 0) + 1
            if self._unstarted[seat] > _BAD_LUCK:
                reason, ran = f"{reason}; nor did the {_BAD_LUCK} before it leave a trace", True
        judge.give_up(self, plan)
        with self.workspace.turn(by="engine") as turn:
            definition = definition_of(turn.tx, turn.existing(self.name))
            lost: LoseAttempt = {
                "do": "LoseAttempt",
                "attempt": name,
                "reason": reason,
                "ran": ran,
                "key": f"finished:{name}",
            }
            turn.do(self.name, lost, definition["pipeline"])


def refuse_handed_out(run: Run) -> None:
    out = [name for name in run["in_flight"] if run["attempts"][name]["agent"] == "guided"]
    if run["driver"] == "guided" and out:
        name = run["id"]
        hint = f"tenuto report {name} {out[0]} ..., or give them up: tenuto resume {name} --give-up"
        raise Refused("handed-out", f"handed out and not reported yet: {', '.join(out)}", hint, attempts=out)


def set_aside(reply: Reply, now: str) -> Reply:
    """An agent that may not work before a stated time: the run waits until then, and no try is used up."""
    until = reply.get("parked_until")
    if not until:
        return reply
    then = milliseconds(until)
    if then is None or then - (milliseconds(now) or 0) > _LONGEST_PARKING:
        why = f"it may not work until '{until}', which is {'no time' if then is None else 'more than 31 days away'}"
        return {**reply, "verdict": "ERROR", "summary": why, "parked_until": ""}
    return {**reply, "verdict": "PARKED", "transient": False}
