"""The local engine: this machine, real processes, one loop.

    settle     one turn: everything todo() asks for that needs no waiting; dispatches are recorded before they start
    launch     a supervisor for each recorded dispatch
    wait       until one of them has ended, whoever started it: an agent, or a command of the project (set-up, check)
    collect    its reply and its receipt become one FinishAttempt

Killed between any two lines, the next engine finds the run as it was: attempts under way are adopted, results collected,
what was recorded but never started is proven so and asked for again, what is lost is labelled.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tenuto.core.budget import time_left
from tenuto.core.decisions.attempts import in_flight
from tenuto.core.decisions.runs import ENDED, too_early
from tenuto.core.records import Run
from tenuto.core.times import milliseconds
from tenuto.core.visits import step_of
from tenuto.drivers import actions, branches, continuing, delivery, protection, shown
from tenuto.drivers.bound import definition_of, kept_open
from tenuto.drivers.boundary import Boundary
from tenuto.drivers.checks import GRACE, OUT_OF_TIME, UnderWay
from tenuto.drivers.jobs import Job
from tenuto.drivers.settings import time_limit
from tenuto.drivers.trees import Trees, isolated, tree_name
from tenuto.errors import Refused
from tenuto.supervise import attempts
from tenuto.supervise.watching import wait_any
from tenuto.workspace.open import secrecy_of
from tenuto.workspace.turn import Turn, Workspace

_BACKOFF = 1.0  # seconds before a transient failure is tried again, doubled each time
_BAD_LUCK = 5  # attempts of one agent that certainly never started, while one engine was at work
_OUTPUT_CAP = 32 << 20
_RESTING = ("paused", "stopped", "parked", "blocked", "waiting_gate")  # nothing more starts


class Engine:
    def __init__(
        self, workspace: Workspace, run: str, crew: Any, settings: dict[str, Any], watcher: Any = None
    ) -> None:
        self.workspace = workspace
        self.name = run
        self.crew = crew
        self.settings = settings
        self.watcher = watcher or (lambda run, events: None)
        self.folder = f"{workspace.state}/attempts/{run}"
        workspace.secrecy = secrecy_of(workspace.root, workspace.root_of(""), names=settings.get("secrets", []))
        self.boundary = Boundary(workspace, self.folder)
        self.trees = Trees(workspace, run)
        self._unstarted: dict[str, int] = {}  # how many attempts of a seat left no trace, since this engine began
        self._wake: dict[str, float] = {}  # attempts that wait for another start, and until when
        self.setups: dict[str, str] = {}  # attempts whose work tree is being set up, and where that command runs
        self.checks: dict[str, str] = {}  # attempts that have ended and are being checked

    def drive(self) -> Run:
        """Until the run rests: ended, or waiting for a person."""
        with self._alone(), kept_open(self.workspace):
            protection.refuse_open(self.workspace, self.workspace.load(self.name), self.settings)
            self._take_back()
            self._take_up()
            self._go_on_setting_up()
            ended: list[str] = []  # not under way any more, and not collected yet
            while True:
                run, fresh = self.settle()
                started = [self.launch(run, name) for name in fresh]
                if not all(started):
                    continue
                flying = in_flight(run)
                if not flying:
                    return self._rest(run)
                ended = [name for name in ended if name in flying]  # somebody else may have ended one
                self.setups, self.checks = ({n: d for n, d in c.items() if n in flying} for c in (self.setups, self.checks))
                ended += self.wait([name for name in flying if name not in ended])
                self._refuse_removed()
                for name in delivery.in_turn(self, run, ended, flying):
                    if not delivery.is_held(self, run, name):
                        ended.remove(name)
                        self.collect(name)

    def _take_back(self) -> None:
        """From another orchestrator (guided.py). What it was handed out may be under way there: that is not started again."""
        run = self.workspace.load(self.name)
        if run["driver"] != "guided":
            return
        out = [name for name in in_flight(run) if run["attempts"][name]["agent"] == "guided"]
        if out:
            hint = f"tenuto report {self.name} {out[0]} ..., or give them up: tenuto resume {self.name} --give-up"
            raise Refused("handed-out", f"handed out and not reported yet: {', '.join(out)}", hint, attempts=out)
        with self.workspace.turn() as turn:
            turn.do(self.name, {"do": "ChangeDriver", "driver": "engine"})

    def _take_up(self) -> None:
        """What an engine before this one left: orphans are ended, merged trees cleared, the work tree stands where it must."""
        run = self.workspace.load(self.name)
        protection.refuse_forged(self.workspace, run)
        branches.stand(self.workspace, run, self._definition(run)["pipeline"])
        self.trees.clear(run)
        for name in in_flight(run):
            for folder in (f"{self.folder}/{name}", f"{self.folder}/{name}/checks"):
                attempts.sweep(folder)

    def _go_on_setting_up(self) -> None:
        """Attempts whose agents have not started yet, because a command of the project had not ended."""
        run = self.workspace.load(self.name)
        for name in in_flight(run):
            if os.path.isdir(f"{self.folder}/{name}/checks") and not os.path.isdir(self.directory(name)):
                self.launch(run, name)

    def _rest(self, run: Run) -> Run:
        self.trees.clear(run)
        branches.conclude(self.workspace, run, self._definition(run)["pipeline"])
        return self.workspace.load(self.name)

    def _definition(self, run: Run) -> Any:
        with self.workspace.journal.read() as reader:
            return definition_of(reader, run)

    def job(self, run: Run, name: str) -> Job:
        memory = partial(shown.project_memory, self.workspace)
        return Job(self.workspace.root, run, self._definition(run), name, self.trees.folder, memory)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One engine per run: a second one waits here, and takes over when the first is gone."""
        os.makedirs(self.folder, exist_ok=True)
        file = os.open(f"{self.folder}/engine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _refuse_removed(self) -> None:
        """Without its journal and what supervisors keep, an engine would start the same agent again and again."""
        if not os.path.exists(f"{self.folder}/engine.lock"):
            state = self.workspace.state
            hint = "bring it back from a backup (tenuto import), or begin a new run"
            raise Refused("state-removed", f"{state} was removed while run {self.name} was under way", hint, path=state)

    # ---- what needs no waiting

    def settle(self) -> tuple[Run, list[str]]:
        with self.workspace.turn() as turn:
            run = turn.existing(self.name)
            definition = definition_of(turn.tx, run)
            fresh: list[str] = []
            actions.show_again(self, turn, definition["pipeline"])
            while True:
                wanted = turn.todo(self.name, definition["pipeline"])
                if not wanted or (wanted[0]["act"] == "wake" and too_early(wanted[0]["at"], turn.at)):
                    break
                if wanted[0]["act"] == "dispatch":
                    if delivery.checked_here(self, run):
                        break
                    fresh += self.dispatch(turn, definition, wanted)
                else:
                    actions.perform(self, turn, definition, wanted[0])
        self.watcher(run, fresh)
        return run, fresh

    def dispatch(self, turn: Turn, definition: Any, wanted: list[Any]) -> list[str]:
        """Record the intent. Nothing starts before this is durable."""
        run = turn.existing(self.name)
        told = [self._dispatched(run, definition, action, len(wanted)) for action in wanted]
        turn.do(self.name, {"do": "DispatchAttempts", "attempts": told}, definition["pipeline"])
        return [one["attempt"] for one in told]

    def _dispatched(self, run: Run, definition: Any, action: Any, together: int) -> dict[str, Any]:
        agent = continuing.choose(self, run, definition, action["seat"])
        stay = run["stay"]
        state = stay["seats"].get(action["key"]) if stay else None
        extra = {
            "seat": action["key"], "mode": stay["hop"].get("mode", "") if stay else "", "parallel": together > 1, "memory": action["seat"]["memory"],
            "why_again": self._why_again(run, action) if state or action["item"] else "", "answer": run["answers"].get(f"question:{action['key']}", ""),
        }  # fmt: skip
        if action["seat"]["memory"] == "write" and definition["pipeline"]["memory"] == "run":
            extra["memory_seen"] = delivery.photograph_memory(run)
        if isolated(run, step_of(definition["pipeline"], action["step"])):
            extra["tree"] = continuing.tree(self, run, action, agent) or tree_name(action["attempt"])
        return {
            "attempt": action["attempt"], "role": action["seat"]["role"], "agent": agent.name, "task": _task(action),
            "item": action["item"], "number": action["number"], "iteration": stay["visit"] if stay else 1, "extra": extra,
        }  # fmt: skip

    def _why_again(self, run: Run, action: Any) -> str:
        earlier = [
            a
            for a in run["attempts"].values()
            if a["extra"].get("seat") == action["key"] and a["step"] == action["step"]
        ]
        return earlier[-1]["summary"] if earlier and earlier[-1]["verdict"] != "DONE" else ""

    # ---- agents

    def launch(self, run: Run, name: str, start: int = 1) -> bool:
        """False where the attempt could not even be prepared, and has ended with that."""
        job = self.job(run, name)
        problem = delivery.prepare(self, job) if run["status"] not in ENDED else "the run has ended"
        if isinstance(problem, UnderWay):
            self.setups[name] = self._heard(problem.directory)
            return True
        if problem:
            if start > 1:
                delivery.give_up(self, job)
            self._fail(job, problem)
            return False
        agent = self.crew.named(run["attempts"][name]["agent"])
        directory = f"{self.folder}/{name}/{start}"
        os.makedirs(directory, exist_ok=True)
        if start == 1:  # what an earlier start of the attempt changed is its doing, too
            self.boundary.begin(job, in_flight(run))
        continuing.look_back(self, job, start)
        told = agent.launch(job)
        keep(f"{directory}/before.json", continuing.photograph(self, job, directory))
        with open(f"{directory}/prompt", "w", encoding="utf-8") as file:
            file.write(told["stdin"] if self.workspace.secrecy is None else self.workspace.secrecy.out_of(told["stdin"]))
        secrets = self.settings.get("secrets", [])
        more = [*self.settings.get("environment", []), *secrets, *continuing.names_for(agent, os.environ)]
        attempts.launch(directory, {
            "attempt": f"{self.name}.{name}.{start}", "argv": [*protection.prefix(self.settings), *told["argv"]], "cwd": job.workdir, "stdin": f"{directory}/prompt",
            "env": {**job.environment(dict(os.environ), more), **told["env"]}, "limit": self._limit(run, job), "grace": GRACE,
            "output_cap": _OUTPUT_CAP, "pool": f"{self.workspace.state}/slots", "cap": job.pipeline["cap"],
            **({"masked": secrets} if secrets else {}),  # type: ignore[typeddict-item]
        })  # fmt: skip
        if start > 1:
            self._heard(directory)
        return True

    def _heard(self, directory: str) -> str:
        """A run that was cancelled while this was being started: it is ended with the rest (see cancelling.py)."""
        if self.workspace.load(self.name)["status"] == "cancelled":
            attempts.cancel(directory)
        return directory

    def _fail(self, job: Job, problem: str) -> None:
        attempts.void(self.directory(job.name))
        told: Any = {"usage": {}}
        with self.workspace.turn() as turn:
            receipt = {"outputs": {}, "checks": [], "problem": problem, "severities": []}
            self._record(turn, job, job.name, "PARKED" if problem == OUT_OF_TIME else "ERROR", problem, receipt, told, job.pipeline)

    def _limit(self, run: Run, job: Job) -> float | None:
        """The attempt's own limit, or what is left of the wall clock where that is less."""
        left, own = time_left(run, job.step["id"], self.workspace.clock()), self._own_limit(job)
        return own if left is None else min(max(left / 1000, 0.1), own or left / 1000)

    def _own_limit(self, job: Job) -> int | None:
        """As the pipeline says; where it says nothing, as the settings do."""
        return job.seat["time_limit"] or time_limit(self.settings)

    def wait(self, flying: list[str]) -> list[str]:
        """Attempts that are not under way any more."""
        now = time.monotonic()
        due = [name for name in flying if self._wake.get(name, 0.0) <= now]
        soonest = min((at - now for name, at in self._wake.items() if name in flying and at > now), default=None)
        if not due and soonest is not None:
            time.sleep(soonest)
            return self.wait(flying)
        by_directory = {self.setups.get(name) or self.checks.get(name) or self.directory(name): name for name in due}
        return [by_directory[path] for path in wait_any(list(by_directory), soonest)]

    def directory(self, name: str) -> str:
        """Of the attempt's latest start."""
        folder = f"{self.folder}/{name}"
        starts = [int(entry) for entry in os.listdir(folder) if entry.isdigit()] if os.path.isdir(folder) else []
        return f"{folder}/{max(starts, default=1)}"

    def collect(self, name: str) -> None:
        directory = self.directory(name)
        self.checks.pop(name, None)
        if self.setups.pop(name, None):
            run = self.workspace.load(self.name)
            if run["status"] in _RESTING and attempts.void(directory):
                self.lose(name, f"the run was {run['status']} before it started", False)
            else:
                self.launch(run, name)
            return
        status = attempts.inspect(directory)
        if name in self._wake:
            del self._wake[name]
            self.launch(self.workspace.load(self.name), name, int(os.path.basename(directory)) + 1)
            return
        match status["state"]:
            case "finished":
                self.finish(name, directory, status["result"])
            case "lost":
                attempts.sweep(os.path.dirname(directory))
                ran = status.get("may_have_run", True) or continuing.ran_before(directory)
                self.lose(name, "its supervisor was killed; nobody knows what it did", ran)
            case "void" if continuing.ran_before(directory):
                self.lose(name, "it was to be started again, and was not", True)
            case "void":
                self.lose(name, "it was recorded, but never started", False)
            case _:  # absent, or launching with nobody left to go on: exactly one of us and a late supervisor wins
                attempts.void(directory)

    def finish(self, name: str, directory: str, result: Any) -> None:
        run = self.workspace.load(self.name)
        job = self.job(run, name)
        said = continuing.read(f"{directory}/stdout")
        continuing.look_back(self, job, int(os.path.basename(directory)))
        job.errors = continuing.errors(directory)
        told = {"reply": said, **self.crew.named(run["attempts"][name]["agent"]).read(job, result, said)}
        if told["reply"] not in ("", said):  # a stream of events: what the agent said in the end is kept beside it
            with open(f"{directory}/reply", "w", encoding="utf-8") as file:
                file.write(told["reply"])
        if result["timed_out"] and result["duration"] < (self._own_limit(job) or result["duration"] + 1):
            told = {**told, "verdict": "PARKED", "summary": OUT_OF_TIME}
        told, start = set_aside(told), job.start
        if continuing.may_start_again(job, result, told):
            continuing.again(directory, told)
            self._wake[name] = time.monotonic() + _BACKOFF * 2 ** (start - 1)
            return
        told = continuing.conclude(self, job, told)
        judged = delivery.judge(self, job, directory, told)
        if isinstance(judged, UnderWay):
            self.checks[name] = self._heard(judged.directory)
            return
        verdict, summary, receipt = judged
        summary = continuing.explained(verdict, summary, told)
        receipt |= {"starts": start, "duration_ms": int(result["duration"] * 1000), "leftover": result["leftover"]}
        with self.workspace.turn() as turn:
            self._record(turn, job, name, verdict, summary, receipt, told, job.pipeline)
        if job.isolated:
            self.trees.clear(self.workspace.load(self.name))

    def _record(
        self, turn: Turn, job: Job, name: str, verdict: str, summary: str, receipt: Any, told: Any, pipeline: Any
    ) -> None:
        if verdict not in ("ERROR", "PARKED"):
            shown.keep_outputs(turn, job, list(receipt["outputs"]), told.get("reply", ""))
        if verdict == "DONE" and not job.isolated:
            shown.keep_commits(turn, job, self.boundary.base(job))
        status = {"DONE": "completed", "NEEDS_REVISION": "completed", "QUESTION": "completed"}.get(verdict, "failed")
        finished: Any = {
            "do": "FinishAttempt", "attempt": name, "status": status, "verdict": verdict, "summary": summary,
            "receipt": receipt, "usage": {"attempts": 1, **told["usage"]}, "key": f"finished:{name}",
            "parked_until": told.get("parked_until", ""), "others": told.get("others", False),
        }  # fmt: skip
        turn.do(self.name, finished, pipeline)

    def lose(self, name: str, reason: str, ran: bool) -> None:
        job = self.job(self.workspace.load(self.name), name)
        if not ran:  # a few times that is bad luck; then somebody removes the traces, or no supervisor can start
            seat = f"{job.step['id']}/{job.attempt['extra']['seat']}"
            self._unstarted[seat] = self._unstarted.get(seat, 0) + 1
            if self._unstarted[seat] > _BAD_LUCK:
                reason, ran = f"{reason}; nor did the {_BAD_LUCK} before it leave a trace", True
        delivery.give_up(self, job)
        with self.workspace.turn() as turn:
            definition = definition_of(turn.tx, turn.existing(self.name))
            lost: Any = {"do": "LoseAttempt", "attempt": name, "reason": reason, "ran": ran, "key": f"finished:{name}"}
            turn.do(self.name, lost, definition["pipeline"])


def set_aside(told: Any) -> Any:
    """An agent that may not work before a stated time: the run waits until then, and no try is used up."""
    until = told.get("parked_until")
    if not until:
        return told
    if milliseconds(until) is None:
        return {**told, "verdict": "ERROR", "summary": f"it may not work until '{until}', which is no time", "parked_until": ""}
    return {**told, "verdict": "PARKED", "transient": False}


def _task(action: Any) -> str:
    return str(action["seat"]["task"].replace("{item}", action["item"] or ""))


keep = delivery.keep
