"""What an attempt gets before it starts, and what becomes of its word when it has ended.

    Site                                   where a run is driven: repository, agents, settings, folder, attempts under
                                           way
    prepare(site, plan)                    its work tree, where it has one of its own, and the folders of its outputs;
                                           or UnderWay
    in_turn(site, run, ended, in_flight)   those of the ended attempts whose turn it is to be collected
    judge(site, plan, directory, reply)    its word, held against what it did: Judgement; or UnderWay
    give_up(site, plan)                    an attempt that was lost: what it left is kept
    make_ready, receive                    prepare and judge, for callers that wait until they are done

prepare and judge are asked again until they are done, and take up what they left (receipts.pursue): also in another
process.

Rules about turns. In work trees, under the barrier, items are merged in the order of their wave: one that ended early
waits for those before it, though not for another attempt at one of them. Under rolling order they are merged as they
end. In a shared tree a check of the engine runs when no agent works there, and until it has ended nothing starts and
nothing is collected there: then no agent is blamed for what a build leaves behind, and no test runs over half-written
files.

What a start of an agent takes over from the one before it:

    look_back(site, plan, start)           plan.start, and plan.earlier: what the agent printed when it was interrupted
    may_go_on(site, run, name, agent)      could it take up what was said in that attempt?
    tree_to_go_on_in(site, run, ...)       the work tree that this attempt goes on in; "" where it starts over
    snapshot(site, plan, directory)        the outputs before the agent's work, whenever that began
    names_for(agent, outer)                the variables that this kind of agent needs; their values are never written
                                           down
    may_start_again(plan, ...)             may the same attempt start its program once more?
    conclude(site, plan, reply)            the attempt ends: with what all its starts used, and for a limit with who may
                                           go on

Whether and how it goes on is the agent program's affair. In a work tree of its own an attempt goes on in the tree of
the one before it, where the files are that were spoken of. Where that tree is gone, or the agent cannot go on, it gets
a fresh one, and nothing is taken over. Nothing is taken over from another kind of agent either: it could not read it.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from tenuto.core.budget import later, parked_agents, time_left, untouched
from tenuto.core.status import ANSWERS
from tenuto.dialects.context.retrieving import memory_text
from tenuto.encoding import digest, dumps, loads
from tenuto.engine import receipts
from tenuto.engine.attempt import AttemptPlan, definition_of, known_definition, read_text
from tenuto.engine.boundary import ChangeWatch, move_aside, part_from_others, written_by_us
from tenuto.engine.branches import checkpoint
from tenuto.engine.gates import isolation
from tenuto.engine.receipts import OUT_OF_TIME, UnderWay, Where, pursue, titled, wait_for
from tenuto.engine.worktrees import Trees, tree_name
from tenuto.errors import Refused
from tenuto.files import git
from tenuto.files.exchange import make_room
from tenuto.supervise import attempts
from tenuto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tenuto.agents.roster import Roster
    from tenuto.core.pipeline.records import Seat
    from tenuto.core.records.action import Definition, Dispatch, Reply, ReplyVerdict
    from tenuto.core.records.run import FileState, Receipt, Run, Usage
    from tenuto.ports import Agent
    from tenuto.supervise.records import Result
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Turn

    Whose = Callable[[str, list[str]], bool]
    """An attempt, and files that changed meanwhile and that it may not change: did the person do that themselves?"""

_TAIL = 4000
_LONGEST_MEMORY = 30_000  # characters of decisions, and of patterns


class Site:
    """Where a run is driven on this machine. The folder of a run holds one folder per attempt, with a numbered one
    for each start of its agent."""

    def __init__(self, workspace: Workspace, run: str, roster: Roster, settings: Settings) -> None:
        self.workspace = workspace
        self.name = run
        self.roster = roster
        self.settings = settings
        self.folder = f"{workspace.state}/attempts/{run}"
        workspace.declare_secrets(settings.get("secrets", []))
        self.boundary = ChangeWatch(workspace, self.folder)
        self.trees = Trees(workspace, run)
        self.lease = ""  # a file that says until when attempts may go on; "": as long as they want
        self.fresh_tree = False  # the work tree was made for this attempt, and is set up before it starts
        self.setups: dict[str, str] = {}  # attempts whose work tree is being set up, and where that command runs
        self.checks: dict[str, str] = {}  # attempts that have ended and are being checked
        self.whose: Whose | None = None  # a person who is there, and can say what they changed themselves

    def definition(self, run: Run) -> Definition:
        known = known_definition(run)
        if known is not None:
            return known
        with self.workspace.journal.read() as reader:
            return definition_of(reader, run)

    def plan(self, run: Run, name: str) -> AttemptPlan:
        memory = partial(project_memory, self.workspace)
        ours = partial(written_by_us, self.workspace)
        return AttemptPlan(self.workspace.root, run, self.definition(run), name, self.trees.folder, memory, ours)

    def current(self) -> Run:
        """The run as it is now."""
        return self.workspace.load(self.name)

    def note(self, text: str, key: str) -> None:
        with self.workspace.turn(by="engine") as turn:
            if turn.do(self.name, {"do": "Note", "text": text, "key": key}):
                self.workspace.warn(text)

    def look_at_documents(self, plan: AttemptPlan, verdict: str) -> tuple[list[str], str]:
        """What was written into the run's own documents is taken in before anything else is looked at. Which attempts
        are under way, and what this one broke; "" where nothing."""
        with self.workspace.turn(by="engine") as turn:
            run = turn.existing(self.name)
            broken = _broken_documents(run, plan.name)
            _validate_memory(self, turn, run, plan, verdict)
        return run["in_flight"], broken

    def directory(self, name: str) -> str:
        """Of the attempt's latest start."""
        folder = f"{self.folder}/{name}"
        starts = [int(entry) for entry in os.listdir(folder) if entry.isdigit()] if os.path.isdir(folder) else []
        return f"{folder}/{max(starts, default=1)}"


def project_memory(workspace: Workspace) -> str:
    """Decisions and patterns that outlive a run, for agents whose seat asks for them. A memory that cannot be read
    stops no run."""
    try:
        with workspace.journal.read() as reader:
            return memory_text(workspace.files(), reader, _LONGEST_MEMORY)
    except Refused as problem:
        workspace.warn(f"project memory is left out: {problem.message}")
        return "[it cannot be read]"


def clear_way(site: Site, plan: AttemptPlan) -> None:
    """Before an agent starts: what others left where they must not, and links where its outputs go."""
    folder = f"{site.workspace.state}/quarantine/{site.name}-{plan.name}"
    if all(name == plan.name for name in plan.run["in_flight"]):
        clear_strays(site, folder)
    clear_traps(site, plan, folder)


def clear_traps(site: Site, plan: AttemptPlan, folder: str) -> None:
    """Before anybody writes there, whoever starts the agent."""
    traps = receipts.traps_in_the_way(plan)
    for path in traps:
        move_aside(plan.workdir, path, folder)
    if traps:
        named = ", ".join(map(git.in_words, traps))
        text = f"links or pipes in the place of outputs were put aside: {named}; they are kept in {folder}"
        site.note(text, f"links:{plan.name}")
    shared = receipts.shared_in_the_way(plan)
    for path in shared:
        part_from_others(os.path.join(plan.workdir, path))
    if shared:
        named = ", ".join(map(git.in_words, shared))
        site.note(f"outputs that were one file with another were parted from it: {named}", f"shared:{plan.name}")


def clear_special(site: Site, plan: AttemptPlan, in_flight: list[str], shared: bool = False) -> None:
    """Before anything is read that the agent may have written. `shared`: others work in this tree, too."""
    alone = not shared and all(name == plan.name for name in in_flight)
    moved, folder = site.boundary.clear_special(plan, in_flight, alone)
    if moved:
        named = ", ".join(map(git.in_words, moved))
        text = f"pipes, sockets or devices were put aside: {named}; they are kept in {folder}"
        site.note(text, f"special:{plan.name}:{digest(named.encode())[:8]}")


def clear_strays(site: Site, folder: str) -> None:
    """What lies outside the boundary: put aside where no agent works, or named where that would lose something."""
    moved, left = site.boundary.put_aside(folder)
    if moved:
        names = ", ".join(map(git.in_words, moved))
        site.note(
            f"changes outside the boundary were put aside: {names}; they are kept in {folder}", f"strays:{folder}"
        )
    if left:
        text = f"changes outside the boundary stand, for these files had changes before: {', '.join(left)}"
        site.note(text, f"strays-left:{' '.join(left)}")


def look_back(site: Site, plan: AttemptPlan, start: int) -> None:
    folder = _interrupted(site, plan, start)
    plan.start, plan.earlier = start, read_text(f"{folder}/stdout") if folder else ""


def _interrupted(site: Site, plan: AttemptPlan, start: int) -> str:
    """Where the agent was interrupted: in a start before this one, the latest first, or in the attempt that this one
    follows, and so on."""
    for number in range(start - 1, 0, -1):
        if read_text(f"{site.folder}/{plan.name}/{number}/stdout"):
            return f"{site.folder}/{plan.name}/{number}"
    extra = plan.attempt["extra"]
    return _before(site, plan.run, extra.get("follows", ""), _kind(plan.attempt["agent"]), extra.get("tree", ""))


def _before(site: Site, run: Run, name: str, kind: str, tree: str) -> str:
    """Where this attempt, or one before it, said something: of the same kind, in the same work tree."""
    attempts = run["attempts"]
    while (
        name in attempts and _kind(attempts[name]["agent"]) == kind and attempts[name]["extra"].get("tree", "") == tree
    ):
        if read_text(f"{site.directory(name)}/stdout"):
            return str(site.directory(name))
        name = attempts[name]["extra"].get("follows", "")
    return ""


def tree_to_go_on_in(site: Site, run: Run, action: Dispatch, agent: Agent) -> str:
    earlier = run["attempts"].get(action["follows"])
    tree = str(earlier["extra"].get("tree", "")) if earlier else ""
    return tree if tree and site.trees.stands(tree) and may_go_on(site, run, action["follows"], agent) else ""


def may_go_on(site: Site, run: Run, name: str, agent: Agent) -> bool:
    """Can this agent take up what was said in that attempt, or before it in the same place?"""
    folder = _before(site, run, name, _kind(agent.name), run["attempts"][name]["extra"].get("tree", ""))
    return bool(folder) and agent.can_go_on(read_text(f"{folder}/stdout"))


def _kind(agent: str) -> str:
    return agent.partition(":")[0]


def snapshot(site: Site, plan: AttemptPlan, directory: str) -> dict[str, FileState]:
    """The outputs as they are before the agent starts. For one that goes on: as they were when it began, for what it
    wrote before it was interrupted is its own work. Files that may only grow are held against what they are now."""
    now = receipts.look(plan, directory)
    if not plan.goes_on:
        return now
    then: dict[str, FileState] = loads(read_text(f"{_interrupted(site, plan, plan.start)}/before.json") or "{}")
    growing = [plan.path(name) for name in plan.seat["append_only"]]
    return {**then, **{path: state for path, state in now.items() if path in growing}}


def names_for(agent: Agent, outer: Mapping[str, str]) -> list[str]:
    return [
        name
        for name in outer
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in agent.environment)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in agent.barred)
    ]


def errors_of(directory: str) -> str:
    """The end of what the agent wrote to standard error."""
    return read_text(f"{directory}/stderr")[-_TAIL:]


def may_start_again(plan: AttemptPlan, result: Result, reply: Reply) -> bool:
    """After a failure that may pass by itself, and where no limit was set aside for more than this start."""
    if not reply["transient"] or plan.start > plan.seat["transient"]:
        return False
    return result["started"] is None or untouched(plan.run, plan.step["id"], reply["usage"])


def ran_before(directory: str) -> bool:
    """Then it is not true that the attempt never ran, whatever became of its last start."""
    folder, _, start = directory.rpartition("/")
    earlier = [attempts.inspect(f"{folder}/{number}") for number in range(1, int(start))]
    return any(
        one["result"]["started"] is not None if "result" in one else one.get("may_have_run", False) for one in earlier
    )


def keep_usage(directory: str, reply: Reply) -> None:
    """The same attempt starts its program once more: what this start used is not forgotten."""
    with open(f"{directory}/usage.json", "w", encoding="utf-8") as file:
        file.write(dumps(reply["usage"]))


def conclude(site: Site, plan: AttemptPlan, reply: Reply) -> Reply:
    reply = {**reply, "usage": _used(site, plan, reply["usage"])}
    now = site.workspace.clock()
    if reply.get("limited") and not reply.get("parked_until"):
        reply = {**reply, "verdict": "PARKED", "parked_until": later(now)}
    until = reply.get("parked_until")
    if reply["verdict"] == "PARKED" and until and site.roster.fallback:
        parked = {**parked_agents(plan.run, now), plan.attempt["agent"]: until}
        reply = {**reply, "others": site.roster.choose(plan.seat, plan.role, parked).name not in parked}
    return reply


def _used(site: Site, plan: AttemptPlan, last: Usage) -> Usage:
    """By all starts together. One that reported nothing, because it was killed, counts as what was set aside for the
    attempt."""
    folder = f"{site.folder}/{plan.name}"
    starts: list[Usage] = [
        *(loads(read_text(f"{folder}/{start}/usage.json") or "{}") for start in range(1, plan.start)),
        last,
    ]
    reserved = plan.attempt["reserved"]
    units = dict.fromkeys(unit for one in starts for unit in one)
    return {unit: sum(one[unit] if unit in one else reserved.get(unit, 0) for one in starts) for unit in units}


def explained(verdict: str, summary: str, reply: Reply) -> str:
    """What the agent was not permitted to do is often why it failed."""
    denied = reply.get("denied") or []
    return f"{summary}; it was not permitted: {', '.join(denied[:3])}" if verdict == "ERROR" and denied else summary


def choose(site: Site, run: Run, definition: Definition, seat: Seat) -> Agent:
    """The agent that gets this seat now."""
    parked = parked_agents(run, site.workspace.clock()) if site.roster.fallback else {}
    return site.roster.choose(seat, definition["roles"][seat["role"]], parked)


# ---- before an agent starts


class Prepared(NamedTuple):
    kind: Literal["ready", "failed", "out_of_time"]
    problem: str = ""


READY = Prepared("ready")


class Judgement(NamedTuple):
    verdict: ReplyVerdict
    summary: str
    receipt: Receipt


class Findings(TypedDict):
    """What an attempt left, as it was before any check of ours."""

    verdict: ReplyVerdict
    changed: list[str]
    receipt: Receipt


def make_ready(site: Site, plan: AttemptPlan) -> Prepared:
    return wait_for(lambda: prepare(site, plan))


def receive(site: Site, plan: AttemptPlan, directory: str, reply: Reply) -> Judgement:
    clear_special(site, plan, list(plan.run["in_flight"]), shared=True)  # with the session that leads the run
    return wait_for(lambda: judge(site, plan, directory, reply))


def prepare(site: Site, plan: AttemptPlan) -> Prepared | UnderWay:
    unknown = plan.unanswered()
    if unknown:
        return Prepared("failed", f"nobody has answered {', '.join(unknown)}: the gate was left out")
    prepared = _make_tree(site, plan) if plan.isolated else _set_up(site, plan) if site.fresh_tree else READY
    if prepared == READY and not site.settings.get("isolation"):  # another user could not write into a folder of ours
        _make_room(plan)
    return prepared


def _make_room(plan: AttemptPlan) -> None:
    """The folders of its outputs: some agents may make files, and neither folders nor commands that make them."""
    for path in plan.outputs:
        try:
            make_room(plan.workdir, path.partition("*")[0] + "_")
        except (OSError, Refused):
            # something else lies there, or it leads out of the repository: whether the output is there, the receipt
            # will say
            continue


def _make_tree(site: Site, plan: AttemptPlan) -> Prepared | UnderWay:
    own, project = plan.pipeline["setup"], site.settings.get("setup", {})
    if _is_another(plan) and site.trees.stands(plan.attempt["extra"]["tree"]):
        # In this order: a kill in between leaves no change in the tree that no attempt answers for.
        site.boundary.go_on(plan)
        site.trees.take_up(plan)
        return READY
    if not os.path.isdir(plan.workdir):
        checkpoint(site.workspace, plan.run, plan.pipeline, plan.step["id"])
        site.trees.prepare(plan, [*own["copy"], *project.get("copy", [])])
    return _set_up(site, plan)


def _set_up(site: Site, plan: AttemptPlan) -> Prepared | UnderWay:
    own, project = plan.pipeline["setup"], site.settings.get("setup", {})
    for number, command in enumerate([*own["run"], *project.get("run", [])], 1):
        end = pursue(_where(site, plan), titled("setup", number), command)
        if isinstance(end, UnderWay):
            return end
        if end.kind == "out_of_time":
            return Prepared("out_of_time", OUT_OF_TIME)
        if end.kind == "failed":
            why = f"the set-up command '{command}' failed: {end.result['reason']}\n{end.result['tail']}"
            return Prepared("failed", why.strip())
    return READY


# ---- after it has ended


def in_turn(site: Site, run: Run, ended: list[str], in_flight: list[str]) -> list[str]:
    """In the order in which they are to be collected; the rest waits."""
    chosen = []
    for name in sorted(ended, key=in_flight.index):
        if name in site.setups:  # it has not even started
            chosen.append(name)
            continue
        if is_held(site, run, name):
            continue
        plan = site.plan(run, name)
        under_way = [other for other in in_flight if other not in ended]
        if plan.isolated and plan.step["kind"] == "waves" and plan.step["waves"]["order"] == "barrier":
            under_way = [other for other in under_way if in_flight.index(other) < in_flight.index(name)]
        elif plan.isolated or not receipts.wants_checks(plan, site.settings.get("checks", {})):
            under_way = []
        if not under_way:
            chosen.append(name)
    return chosen


def is_held(site: Site, run: Run, name: str) -> bool:
    """It would be collected in the shared tree, where a check has begun a moment ago."""
    checked = checked_here(site, run)
    return bool(checked) and name not in checked and not run["attempts"][name]["extra"].get("tree")


def checked_here(site: Site, run: Run) -> list[str]:
    """Attempts for which a check runs in the shared tree."""
    return [name for name in site.checks if not run["attempts"][name]["extra"].get("tree")]


def judge(site: Site, plan: AttemptPlan, directory: str, reply: Reply) -> Judgement | UnderWay:
    findings = _findings(site, plan, directory, reply)
    verdict, summary, receipt = reply["verdict"], reply["summary"], findings["receipt"]
    changed = findings["changed"]
    if verdict == "DONE" and not receipt["problem"]:
        checks = receipts.run_checks(plan, site.settings.get("checks", {}), _where(site, plan))
        if isinstance(checks, UnderWay):
            return checks
        receipt["checks"], receipt["problem"] = checks.results, receipts.problem_of(checks)
        if checks.results:  # what a check ran is what the agent wrote
            clear_special(site, plan, list(plan.run["in_flight"]))
            planted = site.boundary.settle_git(plan, list(plan.run["in_flight"]))
            receipt["problem"] = receipt["problem"] or planted
            site.boundary.excuse(plan, [path for path in site.boundary.changed(plan) if path not in changed])
        if checks.kind == "out_of_time":
            verdict, summary = "PARKED", OUT_OF_TIME
    if receipt["problem"] and verdict in ANSWERS:
        verdict, summary = "ERROR", f"claimed {reply['verdict']}, but {receipt['problem']}"
    before = _load_states(f"{directory}/before.json")
    receipt["touched"] = site.boundary.touched(plan, changed) or receipts.written(plan, before)
    if verdict == "DONE":
        site.boundary.forgive(plan, changed)
    judgement = Judgement(verdict, summary, receipt)
    return take_over(site, plan, site.boundary.base(plan), changed, judgement) if plan.isolated else judgement


def _broken_documents(run: Run, attempt: str) -> str:
    """What was written, while it ran, into a document that is the run's own; it was written anew since."""
    extra = run["extra"].get("feature_docs", {})
    if attempt in extra.get("memory_broken_by", []):
        return "memory.md was changed while only readers ran"
    return "initial-request.md was changed" if attempt in extra.get("request_broken_by", []) else ""


def _findings(site: Site, plan: AttemptPlan, directory: str, reply: Reply) -> Findings:
    """Looked at once, and kept for the engine that goes on with it."""
    path = f"{directory}/seen.json"
    known = _load_findings(path)
    if known and known["verdict"] == reply["verdict"]:
        return known
    in_flight, broken = site.look_at_documents(plan, reply["verdict"])
    planted = site.boundary.settle_git(plan, in_flight)
    changed = site.boundary.changed(plan)
    damage = site.trees.damage(plan, changed) if plan.isolated else ""
    outside = damage or _outside(site, plan, changed, in_flight)
    unproven = planted or outside or broken
    before = _load_states(f"{directory}/before.json")
    receipt = receipts.check(plan, before, "" if unproven else reply["verdict"], directory)
    handed_over = [*receipt["outputs"], *(changed if plan.isolated else [])]
    receipt["problem"] = unproven or receipt["problem"] or receipts.leak_problem(site.workspace, plan, handed_over)
    if reply["verdict"] in ANSWERS and not receipt["problem"] and plan.seat["result"]:
        value, receipt["problem"] = receipts.result_in(plan, before, reply.get("text", ""))
        if not receipt["problem"]:
            receipt["result"] = value
    if reply["verdict"] == "DONE" and not receipt["problem"]:
        receipt["problem"], note = receipts.hold(site.boundary, plan, before, changed, reply["summary"])
        _say(site, plan, note)
    findings: Findings = {"verdict": reply["verdict"], "changed": changed, "receipt": receipt}
    if receipts.wants_checks(plan, site.settings.get("checks", {})):
        save(path, findings)
    return findings


def _outside(site: Site, plan: AttemptPlan, changed: list[str], in_flight: list[str]) -> str:
    """What lies outside every boundary. In a shared tree nobody can tell whose doing it was: a person who is there is
    asked, and what they changed themselves is theirs. It costs no attempt, and is taken out of `changed`."""
    outside = site.boundary.outside_boundary(plan, changed, in_flight)
    if not outside or plan.isolated or site.whose is None:
        return outside
    strays = site.boundary.strays_among(changed)
    if not strays or not site.whose(plan.name, [git.in_words(path) for path in strays]):
        return outside
    site.boundary.leave_to_person(plan, strays)
    named = ", ".join(map(git.in_words, strays))
    site.note(f"a person changed {named} while {plan.name} was at work", f"changed-by-person:{plan.name}")
    changed[:] = [path for path in changed if path not in strays]
    return site.boundary.outside_boundary(plan, changed, in_flight)


def _keep(site: Site, plan: AttemptPlan, changed: list[str], reason: str) -> str:
    """As a commit on the attempt's branch; what holds a secret stays in its tree."""
    leaking = receipts.leaking(site.workspace, plan, changed)
    return site.trees.keep(plan, [path for path in changed if path not in leaking], reason)


def memory_hash(run: Run) -> str:
    return digest(dumps(run["memory"]).encode())[:16]


def _validate_memory(site: Site, turn: Turn, run: Run, plan: AttemptPlan, verdict: str) -> None:
    """An agent that may write memory is expected to; where it did not, that is said, and stops nothing."""
    seen = plan.attempt["extra"].get("memory_seen")
    if seen and verdict in ANSWERS and memory_hash(run) == seen:
        text = f"{plan.name} did not write to {plan.path('memory.md')}"
        if turn.do(site.name, {"do": "Note", "text": text, "key": f"memory-not-written:{plan.name}"}):
            site.workspace.warn(text)


def _say(site: Site, plan: AttemptPlan, note: str) -> None:
    if note:
        site.note(note, f"files-not-changed:{plan.name}")


def take_over(site: Site, plan: AttemptPlan, base: str, changed: list[str], judgement: Judgement) -> Judgement:
    """A DONE is merged; what is not merged is kept."""
    verdict, summary, receipt = judgement
    if verdict == "DONE":
        merge = site.trees.merge(plan, base, changed, summary)
        if merge.commit is not None:
            receipt["merged"] = merge.commit
            return judgement
        receipt["conflict"] = git.in_words(merge.conflict)
        verdict, summary = "NEEDS_REVISION", receipt["conflict"]
    receipt["kept"] = _keep(site, plan, changed, summary)
    receipt["outputs"] = {}  # they lie in the attempt's tree, and are no part of the run
    receipt.pop("result", None)
    return Judgement(verdict, summary, receipt)


def give_up(site: Site, plan: AttemptPlan) -> None:
    clear_special(site, plan, [plan.name])
    site.boundary.settle_git(plan, [plan.name])
    if not plan.isolated or not os.path.isdir(plan.workdir):
        return
    changed = site.boundary.changed(plan)
    if changed:
        _keep(site, plan, changed, "its outcome is not known")
    elif not _is_another(plan) and not may_go_on(site, plan.run, plan.name, site.roster.named(plan.attempt["agent"])):
        site.trees.remove(plan.attempt["extra"]["tree"])


def _is_another(plan: AttemptPlan) -> bool:
    """It works in the tree of an attempt before it."""
    return bool(plan.attempt["extra"]["tree"] != tree_name(plan.name))


def _where(site: Site, plan: AttemptPlan) -> Where:
    secrets = site.settings.get("secrets", [])
    environment = plan.environment(dict(os.environ), [*site.settings.get("environment", []), *secrets])
    left = time_left(plan.run, plan.step["id"], site.workspace.clock())
    return Where(
        f"{site.name}.{plan.name}",
        plan.workdir,
        f"{site.folder}/{plan.name}/checks",
        environment,
        f"{site.workspace.state}/check-slots",
        None if left is None else left / 1000,
        tuple(secrets),
        tuple(isolation(site.settings, site.workspace)),
        site.lease,
    )


def save(path: str, value: dict[str, FileState] | Findings) -> None:
    """Renamed into place: the file is never there half-written."""
    with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:  # names of files are bytes
        file.write(dumps(value))
    os.replace(path + ".new", path)


def _load_states(path: str) -> dict[str, FileState]:
    return loads(_load(path) or "{}")  # type: ignore[no-any-return]  # written by save


def _load_findings(path: str) -> Findings | None:
    return loads(_load(path) or "null")  # type: ignore[no-any-return]  # written by save


def _load(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""
