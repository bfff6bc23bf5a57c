"""The engine takes over a run that exists, and lets go of it again.

    engage(workspace, "dark-mode", "orchestrate")   from here the pipeline says what is to be done
    release(workspace, "dark-mode")                 from here somebody leads it by hand, or another program does

A run that was led by hand goes on at the first step that is not done. One that was released goes on where it was left; what
was done by hand meanwhile is not done again. A pipeline that starts from a finished proof of concept finds it here.
"""

from __future__ import annotations

from typing import Any

from tenuto.core.approvals import standing
from tenuto.core.budget import limits_of
from tenuto.core.names import slug
from tenuto.core.records import Run
from tenuto.drivers import shown
from tenuto.drivers.bound import Definition, bind, define, definition_of
from tenuto.drivers.protection import of_new_run
from tenuto.drivers.settings import read_settings
from tenuto.errors import BadInput, NotFound
from tenuto.workspace.guard import require_person
from tenuto.workspace.turn import Turn, Workspace


def engage(
    workspace: Workspace, name: str, pipeline: str = "", *, switches: dict[str, bool] | None = None,
    limits: dict[str, Any] | None = None, of_steps: dict[str, dict[str, Any]] | None = None, crew: Any = None, at: str = "",
) -> Run:  # fmt: skip
    """`pipeline` "": the one that the run follows already. `at`: the step to begin with."""
    from tenuto.drivers.start import check_crew

    with workspace.turn() as turn:
        run = _find(turn, name)
        run_id, under_way = run["id"], run["driver"] != "manual" and (run["stay"] is not None or bool(run["queue"]))
        if under_way and pipeline in ("", run["pipeline"]["name"]) and not at:
            turn.do_repo({"do": "MakeCurrent", "run": run_id})
            return run
        if under_way:
            require_person("take a run to another pipeline or step", f"tenuto run --run {run_id} ...")
        definition = _definition(turn, run, pipeline)
        checked = definition["pipeline"]
        if crew is not None:
            own, own_steps = limits_of(checked)
            check_crew(definition, {**own, **(limits or {})}, {**own_steps, **(of_steps or {})}, crew)
        if checked["starts_from"] == "poc-complete":
            shown.act(turn, run, checked, "check-graduation")
        _show(turn, run, checked)
        asked: Any = {"do": "Engage", "pipeline": {"name": checked["name"], "hash": bind(turn, definition)}}
        asked["settings"] = of_new_run(workspace.root, read_settings(workspace.root))
        asked["switches"] = {**run["switches"], **(switches or {})}
        if at:
            asked |= {"start_at": at, "approved": _approved(turn, run, checked)}
        turn.do(run_id, asked, checked)
        if limits or of_steps:
            turn.do(run_id, {"do": "ChangeBudget", "limits": limits or {}, "steps": of_steps or {}}, checked)
        turn.do_repo({"do": "MakeCurrent", "run": run_id})
        return run


def release(workspace: Workspace, name: str) -> Run:
    require_person("let go of a run", f"tenuto release {name}")
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
    for dialect in turn.workspace.dialects.values():
        found = dialect.find(turn, name) if hasattr(dialect, "find") else None
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)


def _approved(turn: Turn, run: Run, checked: Any) -> list[str]:
    """By what the run followed so far; led by hand, it knows the gates of what it is about to follow."""
    if not run["pipeline"]["hash"]:
        return standing(checked, turn.tx.events(run["id"]))
    same = run["pipeline"]["name"] == checked["name"]
    return standing(definition_of(turn.tx, run)["pipeline"], turn.tx.events(run["id"])) if same else []


def _definition(turn: Turn, run: Run, pipeline: str) -> Definition:
    """What was bound at the start stays bound, unless somebody names a pipeline."""
    if not pipeline and run["pipeline"]["hash"]:
        return definition_of(turn.tx, run)
    return define(pipeline or run["pipeline"]["name"], turn.workspace.root)


def _show(turn: Turn, run: Run, checked: Any) -> None:
    """A run is also shown where its new pipeline is at home; where it was shown, it stays."""
    for dialect in checked["shown_as"]:
        if dialect not in run["dialects"]:
            module: Any = turn.workspace.dialects[dialect]
            told = (
                module.begin(run["id"], {"settings": dict(run["settings"])}, checked, turn.workspace.tree)
                if hasattr(module, "begin")
                else {"place": module.place(run["id"], turn.workspace.tree)}
            )
            turn.do(run["id"], {"do": "ShowIn", "dialect": dialect, "place": told["place"]})
            if told.get("settings"):
                turn.do(run["id"], {"do": "ChangeSettings", "changes": told["settings"]})
            if hasattr(module, "opened"):
                module.opened(turn, run["id"])
    shown.engaged(turn, run, checked)
