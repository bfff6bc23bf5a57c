"""Begin a run of a pipeline, take one over, let go of it, fork it.

    start(workspace, request, "eight-step")         a name that is free, the definition bound, the first step queued
    engage(workspace, "dark-mode", "orchestrate")   from here the pipeline says what is to be done
    release(workspace, "dark-mode")                 from here a person leads it by hand, or another program does
    fork(workspace, "dark-mode", "planning")        a new run that goes on from a step of another

engage: a run that was led by hand goes on at the first step that is not done. One that was released goes on where it
was left; what was done by hand meanwhile is not done again. A pipeline that starts from a finished proof of concept
finds it here.

fork: what the steps before it made is handed over as the journal has it: artifacts with their bytes (shown in the new
run's own folder), memory, items, answers, flags. The old run stays as it is. The work tree stays as it is, too: code is
git's business. Behind a gate it begins only where the old run holds an approval of it (core decides that), only for a
person, and with the protection that the old run began with: what must be signed there must be signed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.approvals import PROTECTION, protection, standing
from tenuto.core.budget import limits_of, unmetered
from tenuto.core.decisions.engine import refuse_switches
from tenuto.core.pipeline import forms
from tenuto.core.pipeline.check import documents_of, inputs_of
from tenuto.core.pipeline.params import values, without_fixed
from tenuto.core.records.action import Definition
from tenuto.core.records.run import Run
from tenuto.dialects import dialect_named
from tenuto.engine import actions
from tenuto.engine.attempt import bind, define, definition_of
from tenuto.engine.branches import begin, branch_for, put_aside
from tenuto.engine.gates import approved, of_new_run, refuse_no_files, refuse_open
from tenuto.engine.many.timetable import budget_of
from tenuto.errors import BadInput, NotFound, Refused
from tenuto.files import git
from tenuto.names import DIALECTS, slug
from tenuto.workspace import trust
from tenuto.workspace.guard import refuse_attempts, require_person
from tenuto.workspace.objects import stored_version
from tenuto.workspace.settings import read_settings
from tenuto.workspace.workspace import Turn, Workspace

if TYPE_CHECKING:
    from tenuto.agents.roster import Roster
    from tenuto.core.pipeline.records import ParamValue, Pipeline, Step
    from tenuto.core.records.commands import Engage, StartRun, StoreArtifact
    from tenuto.core.records.run import Artifact, Json, PipelineRef
    from tenuto.ports import Agent
    from tenuto.workspace.settings import Settings

    Limits = Mapping[str, int | None]
    StepLimits = Mapping[str, Limits]


def engage(
    workspace: Workspace,
    name: str,
    pipeline: str = "",
    *,
    switches: dict[str, bool] | None = None,
    params: Mapping[str, object] | None = None,
    limits: Limits | None = None,
    of_steps: StepLimits | None = None,
    roster: Roster | None = None,
    at: str = "",
) -> Run:
    """`pipeline` "": the one that the run follows already. `at`: the step to begin with."""

    with workspace.turn() as turn:
        run = _find(turn, name)
        run_id, under_way = (
            run["id"],
            run["driver"] != "manual" and (run["current_visit"] is not None or bool(run["queue"])),
        )
        if under_way and pipeline in ("", run["pipeline"]["name"]) and not at:
            turn.do_repo({"do": "MakeCurrent", "run": run_id})
            return run
        if under_way:
            require_person(workspace.caller, "take a run to another pipeline or step", f"tenuto run --run {run_id} ...")
        definition = _definition(turn, run, pipeline, {**run["params"], **(params or {})})
        checked = definition["pipeline"]
        told = {**without_fixed(checked["params"], run["params"]), **(params or {})}
        complete, documents = _params(workspace, checked, told, params or {})
        _check_limits(workspace, definition, limits, of_steps, roster)
        bound = not pipeline and run["pipeline"]["hash"]
        _require_trust(workspace, definition, "" if bound else pipeline or run["pipeline"]["name"])
        _refuse_other_law(run, checked["name"], bind(turn, definition), switches or {}, params or {})
        if checked["starts_from"] == "poc-complete":
            actions.act(turn, run, checked, "check-graduation")
        _show(turn, run, checked)
        command: Engage = {
            "do": "Engage",
            "pipeline": {"name": checked["name"], "hash": bind(turn, definition)},
            "settings": of_new_run(workspace.root, read_settings(workspace.root)),
            "switches": {**run["switches"], **(switches or {})},
            "params": complete,
        }
        if at:
            command["start_at"], command["approved"] = at, _approved(turn, run, checked)
        turn.do(run_id, command, checked)
        _hand_in(turn, run_id, checked, documents)
        _change_budget(turn, run_id, limits, of_steps, checked)
        turn.do_repo({"do": "MakeCurrent", "run": run_id})
        return run


def _refuse_other_law(
    run: Run, name: str, definition: str, switches: Mapping[str, bool], params: Mapping[str, object]
) -> None:
    """A run whose decisions are signed is judged by what it was bound to first, and keeps it."""
    if protection(run)["level"] != "signed" or not run["pipeline"]["hash"]:
        return
    changed = [f"switch {one}" for one, on in switches.items() if run["switches"].get(one, False) != on]
    changed += [f"parameter {one}" for one, value in params.items() if run["params"].get(one) != value]
    if run["pipeline"]["hash"] != definition:
        changed.append(f"pipeline {name}")
    if changed:
        message = f"run {run['id']} takes signed decisions, and keeps what it began with: {', '.join(changed)}"
        raise Refused("protected", message, f"tenuto fork {run['id']} --at STEP", run=run["id"])


def release(workspace: Workspace, name: str) -> Run:
    require_person(workspace.caller, "let go of a run", f"tenuto release {name}")
    with workspace.turn() as turn:
        run = turn.existing(name)
        turn.do(name, {"do": "ChangeDriver", "driver": "manual"})
        return run


def _find(turn: Turn, name: str) -> Run:
    """By its id or its name; also one that only lies in a folder so far."""
    wanted = [name]
    try:
        wanted.append(slug(name))
    except BadInput:
        pass
    for one in dict.fromkeys(wanted):
        run = turn.run(one) if turn.tx.version(one) else None
        if run is not None:
            return run
    for dialect in DIALECTS:
        found = dialect_named(dialect).find(turn, name)
        if found is not None:
            return found
    raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)


def _approved(turn: Turn, run: Run, checked: Pipeline) -> list[str]:
    """By what the run followed so far; led by hand, it knows the gates of what it is about to follow."""
    if not run["pipeline"]["hash"]:
        return standing(checked, turn.tx.events(run["id"]))
    same = run["pipeline"]["name"] == checked["name"]
    return standing(definition_of(turn.tx, run)["pipeline"], turn.tx.events(run["id"])) if same else []


def _definition(turn: Turn, run: Run, pipeline: str, params: Mapping[str, object]) -> Definition:
    """What was bound at the start stays bound, unless a pipeline is named."""
    if not pipeline and run["pipeline"]["hash"]:
        return definition_of(turn.tx, run)
    return define(pipeline or run["pipeline"]["name"], turn.workspace.root, given=params)


def _show(turn: Turn, run: Run, checked: Pipeline) -> None:
    """A run is also shown where its new pipeline is at home; where it was shown, it stays."""
    for name in checked["shown_as"]:
        if name not in run["dialects"]:
            dialect = dialect_named(name)
            beginning = dialect.begin(run["id"], "", dict(run["settings"]), checked, turn.workspace.tree)
            turn.do(run["id"], {"do": "ShowIn", "dialect": name, "place": beginning["place"]})
            if beginning.get("settings"):
                turn.do(run["id"], {"do": "ChangeSettings", "changes": beginning["settings"]})
            dialect.opened(turn, run["id"])
    actions.engaged(turn, run, checked)


# ---- start


class Place(NamedTuple):
    """Where a run works: what it says counts more than what its pipeline says."""

    workspace: str = ""  # shared, worktree
    own_branch: bool = False
    dirty: str = ""  # refuse, stash
    own_tree: str | None = None  # this work tree was made for the run (many/own_tree.py), from this branch
    run: str = ""  # the id that the run is to have, where its tree has one already


def start(
    workspace: Workspace,
    request: str,
    pipeline: str,
    *,
    switches: dict[str, bool] | None = None,
    params: Mapping[str, object] | None = None,
    limits: Limits | None = None,
    of_steps: StepLimits | None = None,
    name: str = "",
    settings: Json | None = None,
    roster: Roster | None = None,
    place: Place | None = None,
    definition: Definition | None = None,
    at: str = "",
    approved: Sequence[str] = (),
    protected: Json | None = None,
    then: Callable[[Turn, str], None] | None = None,
    current: bool = True,
) -> Run:
    """Everything is checked before anything is written; the run is not driven yet.

    `definition`: one that was bound before, instead of reading it. `at`: where to begin, behind gates that are
    `approved`. `protected`: how its gates are, where that is decided already. `then`: more, in the same turn.
    `current`: from now on commands that name no run mean this one.
    """
    refuse_attempts(workspace.caller, workspace.state, "begin a run")
    read_now = definition is None
    definition = definition or define(pipeline, workspace.root, settings, params or {})
    checked = definition["pipeline"]
    refuse_switches(checked, switches or {})
    complete, documents = _params(workspace, checked, params or {}, params or {}, is_fork=bool(at))
    if checked["starts_from"] != "new":
        old = name or request
        return engage(
            workspace, old, pipeline, switches=switches, params=params, limits=limits, of_steps=of_steps, roster=roster
        )
    _check_limits(workspace, definition, limits, of_steps, roster)
    place, request = place or Place(), workspace.secrets.text(request)  # before a name is made of it
    protected = protected or of_new_run(workspace.root, read_settings(workspace.root))
    _require_trust(workspace, definition, pipeline if read_now else "")
    refuse_open(workspace, protected.get(PROTECTION, {}).get("level", ""), read_settings(workspace.root))
    own = begin(workspace, place.workspace or checked["workspace"], place.own_branch, place.dirty, place.own_tree)
    with workspace.turn() as turn:
        run_id = turn.unused(place.run or slug(name or short(request)))
        ref: PipelineRef = {"name": checked["name"], "hash": bind(turn, definition)}
        if "from_branch" in own:
            own["branch"] = branch_for(workspace.root, run_id)
        shown: Pipeline = {**checked, "switches": {**checked["switches"], **(switches or {})}}
        turn.do(run_id, _start_run(workspace, run_id, name, request, ref, shown, {**protected, **own}))
        engage_run: Engage = {"do": "Engage", "pipeline": ref, "switches": switches or {}, "params": complete}
        if at:
            engage_run["start_at"], engage_run["approved"] = at, list(approved)
        turn.do(run_id, engage_run, checked)
        _change_budget(turn, run_id, limits, of_steps, checked)
        run = _opened(turn, run_id, checked, documents, then, current)
    return put_aside(workspace, run)


def _params(
    workspace: Workspace,
    pipeline: Pipeline,
    told: Mapping[str, object],
    given: Mapping[str, object],
    is_fork: bool = False,
) -> tuple[dict[str, ParamValue], list[str]]:
    """All values; and the files of the repository among them that steps read as documents. Both these and those that
    were `given` just now must be there. A fork has the documents of its source."""
    complete = values(pipeline["name"], pipeline["params"], told)
    if is_fork:
        return complete, []
    wanted = [path for step in pipeline["steps"] for path in inputs_of(step)]
    files = {name for name, one in pipeline["params"].items() if one["type"] == "file" and not one.get("fixed")}
    read = {name: str(value) for name, value in complete.items() if name in files and value in wanted}
    refuse_no_files(workspace.root, pipeline["params"], {**read, **given}, "--param")
    return complete, list(dict.fromkeys(read.values()))


def _opened(
    turn: Turn,
    run: str,
    pipeline: Pipeline,
    documents: list[str],
    then: Callable[[Turn, str], None] | None,
    current: bool,
) -> Run:
    _hand_in(turn, run, pipeline, documents)
    for dialect in pipeline["shown_as"]:
        dialect_named(dialect).opened(turn, run)
    if then is not None:
        then(turn, run)
    if current:
        turn.do_repo({"do": "MakeCurrent", "run": run})
    return turn.existing(run)


def _hand_in(turn: Turn, run_id: str, pipeline: Pipeline, documents: list[str]) -> None:
    """As they are now: a run never changes under an edited file."""
    folder = documents_of(pipeline, turn.existing(run_id))
    for name in documents:
        path = os.path.normpath(f"{folder}/{name}")
        if path != os.path.normpath(name):
            turn.store_file(run_id, name, path, os.path.join(turn.workspace.root, name))


def _require_trust(workspace: Workspace, definition: Definition, pipeline: str) -> None:
    """`pipeline`: what the definition was read from; "": it is one that was bound before."""
    settings = read_settings(workspace.root, workspace.state)
    if pipeline:
        trust.require_new(workspace, settings, definition, define(pipeline, workspace.root))
    else:
        trust.require_bound(workspace, settings, definition)


def _start_run(
    workspace: Workspace, run_id: str, name: str, request: str, ref: PipelineRef, pipeline: Pipeline, settings: Json
) -> StartRun:
    """Each dialect says where the run is shown, and what its files need to know from the start."""
    command: StartRun = {
        "do": "StartRun",
        "run": run_id,
        "name": name or short(request),
        "request": request,
        "summary": short(request),
        "mode": pipeline["mode"],
        "pipeline": ref,
        "driver": "engine",
        "dialects": {},
        "order": "strict",
        "schedule": [],
        "settings": {**pipeline["settings"], "base_commit": git.head(workspace.root), **settings},
    }
    if workspace.tree:
        command["settings"]["work_tree"] = workspace.tree  # of a linked one; also where no dialect shows the run
    for dialect in pipeline["shown_as"]:
        own = dialect_named(dialect).begin(run_id, command["name"], command["settings"], pipeline, workspace.tree)
        command["dialects"][dialect] = own["place"]
        command["settings"].update(own.get("settings", {}))
        if "order" in own:
            command["order"] = own["order"]
        if "schedule" in own:
            command["schedule"] = own["schedule"]
        if "evidence" in own:
            command["evidence"] = own["evidence"]
    return command


def _change_budget(
    turn: Turn, run: str, limits: Limits | None, of_steps: StepLimits | None, pipeline: Pipeline
) -> None:
    if limits or of_steps:
        steps = {step: dict(own) for step, own in (of_steps or {}).items()}
        turn.do(run, {"do": "ChangeBudget", "limits": dict(limits or {}), "steps": steps}, pipeline)


def limits_of_all(settings: Settings) -> Limits:
    """What all runs together may use: whoever works under such a limit reports what it uses."""
    budget = budget_of(settings)
    return {**budget["ever"], **budget["per_day"]}


def _check_limits(
    workspace: Workspace,
    definition: Definition,
    limits: Limits | None,
    of_steps: StepLimits | None,
    roster: Roster | None,
) -> None:
    """With the pipeline's own limits, where others are not given."""
    if roster is not None:
        own, own_steps = limits_of(definition["pipeline"])
        of_all = limits_of_all(read_settings(workspace.root))
        check_roster(definition, {**of_all, **own, **(limits or {})}, {**own_steps, **(of_steps or {})}, roster)


def check_roster(definition: Definition, limits: Limits, of_steps: StepLimits, roster: Roster) -> None:
    """Refuse an agent that may get a seat and cannot play its role, or does not report what a limit needs: the run's,
    or that of all runs together."""
    from tenuto.core.pipeline.check import seats

    pipeline, roles = definition["pipeline"], definition["roles"]
    for step in pipeline["steps"]:
        for seat in seats(step):
            roster.check(seat, roles[seat["role"]])
    found = unmetered(pipeline, limits, of_steps, lambda seat: _reported(roster.candidates(seat, roles[seat["role"]])))
    if found is not None:
        seat, unit = found["seat"], found["unit"]
        silent = next(agent.name for agent in roster.candidates(seat, roles[seat["role"]]) if unit not in agent.reports)
        said = (
            f"the limit of {found['limit']} {unit} cannot be held: {silent} ({seat['role']} in {found['step']}) "
            f"does not report {unit}"
        )
        raise Refused(
            "unmetered", said, "limit attempts or wall_clock instead, or choose an agent that reports it", unit=unit
        )


def _reported(agents: list[Agent]) -> set[str]:
    """The units that all of them report."""
    return set.intersection(*(set(agent.reports) for agent in agents))


def short(request: str) -> str:
    """Its first line, as a name."""
    first = next((line.strip() for line in request.splitlines() if line.strip()), "run")
    return first if len(first) <= 72 else first[:72].rsplit(" ", 1)[0]


# ---- fork


def fork(workspace: Workspace, source: str, step: str, *, name: str = "", pipeline: str = "") -> Run:
    """`pipeline`: another definition, or the same one as its file is now; otherwise what the source was bound to."""
    old = workspace.load(source)
    with workspace.journal.read() as reader:
        definition = define(pipeline, workspace.root, given=old["params"]) if pipeline else definition_of(reader, old)
    checked = definition["pipeline"]
    if step not in [one["id"] for one in checked["steps"]]:
        known = ", ".join(one["id"] for one in checked["steps"])
        raise Refused("no-such-step", f"pipeline {checked['name']} has no step {step!r}", f"it has: {known}", step=step)
    handed_over = _handed_over(old, checked, step)
    held = protection(old)
    protected = of_new_run(workspace.root, read_settings(workspace.root))
    if held["level"]:
        mine = protected.get(PROTECTION, {}).get("instance") or os.urandom(16).hex()
        protected = {**protected, PROTECTION: {**held, "instance": mine}}
    stands: list[str] = []
    if old["pipeline"]["name"] == checked["name"]:
        with workspace.journal.read() as reader:
            stands = approved(reader, source, checked, protected.get(PROTECTION, held)["signers"], old["version"])
    if stands and any(one["kind"] == "gate" for one in _before(checked, step)):
        require_person(workspace.caller, "fork a run behind a gate", f"tenuto fork {source} --at {step}")
    bodies = {sha: stored_version(workspace, sha) for sha in {one["sha256"] for one in handed_over.values()} if sha}

    def hand_over(turn: Turn, new: str) -> None:
        turn.do(
            new,
            {
                "do": "Fork",
                "source": source,
                "at_step": step,
                "at_version": old["version"],
                "approved": stands,
                "answers": forms.known(old) if stands else {},
            },
            checked,
        )
        _show_fork(turn, old, new, checked, handed_over, bodies)
        _hand_over_facts(turn, old, new, checked, step)
        turn.do(new, {"do": "ChangeSettings", "changes": _settings(old)})

    return start(
        workspace,
        old["request"],
        checked["name"],
        switches=old["switches"],
        params=without_fixed(checked["params"], old["params"]),
        name=name or f"{old['name']} {step}",
        definition=definition,
        at=step,
        approved=stands,
        protected=protected,
        then=hand_over,
    )


def _settings(old: Run) -> Json:
    """Its agents, and the commit that all of this began with: what the old run changed since is work that is there
    (core/rules.py)."""
    settings = old["settings"]
    origin = settings.get("origin_commit") or settings.get("base_commit")
    return {name: value for name, value in (("crew", settings.get("crew")), ("origin_commit", origin)) if value}


def _before(pipeline: Pipeline, step: str) -> list[Step]:
    order = [one["id"] for one in pipeline["steps"]]
    return list(pipeline["steps"][: order.index(step)])


def _handed_over(old: Run, pipeline: Pipeline, step: str) -> dict[str, Artifact]:
    """What later steps made is theirs to make again; what no step made was there before."""
    made = [one["id"] for one in _before(pipeline, step)]
    return {name: artifact for name, artifact in old["artifacts"].items() if artifact["step"] in (None, "", *made)}


def would_hand_over(workspace: Workspace, source: str, step: str) -> tuple[Run, list[str], list[str]]:
    """The run, the steps at which it can be forked, in order, and the documents that a fork at this one takes over."""
    old = workspace.load(source)
    with workspace.journal.read() as reader:
        pipeline = definition_of(reader, old)["pipeline"]
    known = [one["id"] for one in pipeline["steps"] if not one["aside"]]
    if step not in known:
        message = f"pipeline {pipeline['name']} has no step {step!r}"
        raise Refused("no-such-step", message, f"it has: {', '.join(known)}", step=step)
    return old, known, [artifact["path"] for artifact in _handed_over(old, pipeline, step).values()]


def _show_fork(
    turn: Turn, old: Run, new: str, pipeline: Pipeline, handed_over: dict[str, Artifact], bodies: dict[str, bytes]
) -> None:
    there, here = (os.path.normpath(documents_of(pipeline, run)) for run in (old, turn.existing(new)))
    for name, artifact in handed_over.items():
        inside = there != here and artifact["path"].startswith(there + "/")
        if inside and artifact["sha256"] in bodies:
            path = f"{here}/{os.path.relpath(artifact['path'], there)}"
            body = bodies[artifact["sha256"]]
            turn.store(new, name, path, body, step=artifact["step"], attempt=artifact["attempt"])
        else:
            known: StoreArtifact = {
                "do": "StoreArtifact",
                "name": name,
                "path": artifact["path"],
                "sha256": artifact["sha256"],
                "size": artifact["size"],
                "step": artifact["step"],
                "attempt": artifact["attempt"],
            }
            turn.do(new, known)


def _hand_over_facts(turn: Turn, old: Run, new: str, pipeline: Pipeline, step: str) -> None:
    numbers = [one["number"] for one in _before(pipeline, step)]
    memory = old["memory"]
    turn.do(new, {"do": "WriteMemory", "kind": "index", "entries": memory["index"]})
    for kind in ("decisions", "lessons", "updates"):
        entries = [entry for entry in memory[kind] if entry["step"] in numbers]
        turn.do(new, {"do": "WriteMemory", "kind": kind, "entries": entries})
    if old["items"] and any(one["kind"] == "waves" for one in _before(pipeline, step)):
        waves = [wave["items"] for wave in old["waves"]]
        turn.do(
            new, {"do": "PlanItems", "items": {name: dict(item) for name, item in old["items"].items()}, "waves": waves}
        )
    turn.do(new, {"do": "RecordAnswers", "answers": old["answers"]})
    turn.do(new, {"do": "SetFlags", "flags": old["flags"]})
