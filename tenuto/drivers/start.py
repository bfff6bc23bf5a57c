"""Begin a run of a pipeline: a name that is free, the definition bound, the first step queued."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenuto.core.budget import limits_of, unmetered
from tenuto.core.decisions.engine import refuse_switches
from tenuto.core.names import slug
from tenuto.core.records import Run
from tenuto.drivers.bound import Definition, bind, define
from tenuto.drivers.branches import begin, branch_for, put_aside
from tenuto.drivers.engage import engage
from tenuto.drivers.protection import of_new_run
from tenuto.drivers.settings import read_settings
from tenuto.errors import Refused
from tenuto.workspace.guard import refuse_attempts
from tenuto.workspace.turn import Turn, Workspace


class Place(NamedTuple):
    """Where a run works: what it says counts more than what its pipeline says."""

    workspace: str = ""  # shared, worktree
    own_branch: bool = False
    dirty: str = ""  # refuse, stash


def start(
    workspace: Workspace, request: str, pipeline: str, *, switches: dict[str, bool] | None = None, limits: dict[str, Any] | None = None,
    of_steps: dict[str, dict[str, Any]] | None = None, name: str = "", settings: dict[str, Any] | None = None, crew: Any = None,
    place: Place | None = None, definition: Definition | None = None, at: str = "", approved: Sequence[str] = (), protected: Any = None,
    then: Callable[[Turn, str], None] | None = None,
) -> Run:  # fmt: skip
    """Everything is checked before anything is written; the run is not driven yet.

    `definition`: one that was bound before, instead of reading it. `at`: where to begin, behind gates that are `approved`. `protected`:
    how its gates are, where that is settled already. `then`: more, in the same turn.
    """
    refuse_attempts(workspace.state, "begin a run")
    definition = definition or define(pipeline, workspace.root, settings)
    checked = definition["pipeline"]
    refuse_switches(checked, switches or {})
    if checked["starts_from"] != "new":
        return engage(workspace, name or request, pipeline, switches=switches, limits=limits, of_steps=of_steps, crew=crew)
    if crew is not None:
        limits_, steps_ = limits_of(checked)
        check_crew(definition, {**limits_, **(limits or {})}, {**steps_, **(of_steps or {})}, crew)
    place, request = place or Place(), _without_secrets(workspace, request)
    protected = protected or of_new_run(workspace.root, read_settings(workspace.root))
    own = begin(workspace, place.workspace or checked["workspace"], place.own_branch, place.dirty)
    with workspace.turn() as turn:
        run_id = turn.unused(slug(name or _short(request)))
        ref: Any = {"name": checked["name"], "hash": bind(turn, definition)}
        begun: Any = {
            "do": "StartRun", "run": run_id, "name": name or _short(request), "request": request, "summary": _short(request),
            "mode": checked["mode"], "pipeline": ref, "driver": "engine", "dialects": {}, "order": "strict", "schedule": [],
            "settings": {**checked["settings"], "base_commit": head_commit(workspace.root), **protected},
        }  # fmt: skip
        if "from_branch" in own:
            own["branch"] = branch_for(workspace.root, run_id)
        begun["settings"] |= own
        for dialect in checked["shown_as"]:
            _show_in(workspace, dialect, run_id, begun, {**checked, "switches": {**checked["switches"], **(switches or {})}})
        turn.do(run_id, begun)
        engaged: Any = {"do": "Engage", "pipeline": ref, "switches": switches or {}}
        turn.do(run_id, engaged | ({"start_at": at, "approved": list(approved)} if at else {}), checked)
        if limits or of_steps:
            turn.do(run_id, {"do": "ChangeBudget", "limits": limits or {}, "steps": of_steps or {}}, checked)
        for dialect in checked["shown_as"]:
            opened = getattr(workspace.dialects[dialect], "opened", None)
            if opened is not None:
                opened(turn, run_id)
        if then is not None:
            then(turn, run_id)
        turn.do_repo({"do": "MakeCurrent", "run": run_id})
        begun_run = turn.existing(run_id)
    return put_aside(workspace, begun_run)


def check_crew(definition: Definition, limits: Any, of_steps: Any, crew: Any) -> None:
    """Whoever may get a seat can play its role, and says what it uses where a limit needs that; else it is refused."""
    from tenuto.core.definition.graph import seats

    pipeline, roles = definition["pipeline"], definition["roles"]
    for step in pipeline["steps"]:
        for seat in seats(step):
            crew.check(seat, roles[seat["role"]])
    found = unmetered(pipeline, limits, of_steps, lambda seat: _reported(crew.candidates(seat, roles[seat["role"]])))
    if found is not None:
        seat, unit = found["seat"], found["unit"]
        silent = next(agent.name for agent in crew.candidates(seat, roles[seat["role"]]) if unit not in agent.reports)
        said = f"the limit of {found['limit']} {unit} cannot be held: {silent} ({seat['role']} in {found['step']}) does not report {unit}"
        raise Refused("unmetered", said, "limit attempts or wall_clock instead, or choose an agent that reports it", unit=unit)


def _reported(agents: list[Any]) -> set[str]:
    """What each of them tells."""
    return set.intersection(*(set(agent.reports) for agent in agents))


def _show_in(workspace: Workspace, dialect: str, run_id: str, begun: Any, pipeline: Any) -> None:
    """Each dialect says where the run is shown, and what its files need to know from the start."""
    module: Any = workspace.dialects[dialect]
    told = (
        module.begin(run_id, begun, pipeline, workspace.tree)
        if hasattr(module, "begin")
        else {"place": module.place(run_id, workspace.tree)}
    )
    begun["dialects"][dialect] = told.pop("place")
    begun["settings"].update(told.pop("settings", {}))
    begun.update(told)


def head_commit(root: str) -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() if found.returncode == 0 else ""


def _without_secrets(workspace: Workspace, request: str) -> str:
    """Before a name is made of it."""
    return request if workspace.secrecy is None else str(workspace.secrecy.out_of(request))


def _short(request: str) -> str:
    first = next((line.strip() for line in request.splitlines() if line.strip()), "run")
    return first if len(first) <= 72 else first[:72].rsplit(" ", 1)[0]
