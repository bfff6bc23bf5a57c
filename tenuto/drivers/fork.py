"""A new run that goes on from a step of another.

What the steps before it made is carried over as the journal has it: artifacts with their bytes (shown in the new run's own
folder), memory, items, answers, flags. The old run stays as it is. The work tree stays as it is, too: code is git's business.

Behind a gate it begins only where the old run holds an approval of it (core decides that), only for a person, and with the
protection that the old run began with: what must be signed there must be signed here.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.approvals import PROTECTION, protection
from tenuto.core.pipeline import documents_of
from tenuto.core.records import Run
from tenuto.drivers.bound import define, definition_of
from tenuto.drivers.protection import approved, of_new_run
from tenuto.drivers.settings import read_settings
from tenuto.drivers.start import start
from tenuto.errors import Refused
from tenuto.workspace.guard import require_person
from tenuto.workspace.turn import Turn, Workspace
from tenuto.workspace.versions import stored_version


def fork(workspace: Workspace, source: str, step: str, *, name: str = "", pipeline: str = "") -> Run:
    """`pipeline`: another definition, or the same one as its file is now; otherwise what the source was bound to."""
    old = workspace.load(source)
    with workspace.journal.read() as reader:
        definition = define(pipeline, workspace.root) if pipeline else definition_of(reader, old)
    checked = definition["pipeline"]
    if step not in [one["id"] for one in checked["steps"]]:
        known = ", ".join(one["id"] for one in checked["steps"])
        raise Refused("no-such-step", f"pipeline {checked['name']} has no step {step!r}", f"it has: {known}", step=step)
    carried = _carried(old, checked, step)
    held = protection(old)
    protected = {PROTECTION: held} if held["level"] else of_new_run(workspace.root, read_settings(workspace.root))
    stands: list[str] = []
    if old["pipeline"]["name"] == checked["name"]:
        with workspace.journal.read() as reader:
            stands = approved(reader, source, checked, protected.get(PROTECTION, held)["signers"], old["version"])
    if stands and any(one["kind"] == "gate" for one in _before(checked, step)):
        require_person("fork a run behind a gate", f"tenuto fork {source} --at {step}")
    bodies = {sha: stored_version(workspace, sha) for sha in {one["sha256"] for one in carried.values()} if sha}

    def carry(turn: Turn, new: str) -> None:
        turn.do(new, {"do": "Fork", "source": source, "at_step": step, "at_version": old["version"], "approved": stands}, checked)
        _show(turn, old, new, checked, carried, bodies)
        _tell(turn, old, new, checked, step)
        turn.do(new, {"do": "ChangeSettings", "changes": _settings(old)})

    return start(
        workspace, old["request"], checked["name"], switches=old["switches"], name=name or f"{old['name']} {step}",
        definition=definition, at=step, approved=stands, protected=protected, then=carry,
    )  # fmt: skip


def _settings(old: Run) -> dict[str, Any]:
    """Who works, and the commit that all of this began with: what the old run changed since is work that is there (core/claims.py)."""
    settings = old["settings"]
    origin = settings.get("origin_commit") or settings.get("base_commit")
    return {name: value for name, value in (("crew", settings.get("crew")), ("origin_commit", origin)) if value}


def _before(pipeline: Any, step: str) -> list[Any]:
    order = [one["id"] for one in pipeline["steps"]]
    return list(pipeline["steps"][: order.index(step)])


def _carried(old: Run, pipeline: Any, step: str) -> dict[str, Any]:
    """What later steps made is theirs to make again; what no step made was there before."""
    made = [one["id"] for one in _before(pipeline, step)]
    return {name: artifact for name, artifact in old["artifacts"].items() if artifact["step"] in (None, "", *made)}


def _show(turn: Turn, old: Run, new: str, pipeline: Any, carried: dict[str, Any], bodies: dict[str, bytes]) -> None:
    there, here = (os.path.normpath(documents_of(pipeline, run)) for run in (old, turn.existing(new)))
    for name, artifact in carried.items():
        where = {"step": artifact["step"], "attempt": artifact["attempt"]}
        inside = there != here and artifact["path"].startswith(there + "/")
        if inside and artifact["sha256"] in bodies:
            path = f"{here}/{os.path.relpath(artifact['path'], there)}"
            turn.store(new, name, path, bodies[artifact["sha256"]], **where)
        else:
            known = {"path": artifact["path"], "sha256": artifact["sha256"], "size": artifact["size"]}
            kept: Any = {"do": "StoreArtifact", "name": name, **known, **where}
            turn.do(new, kept)


def _tell(turn: Turn, old: Run, new: str, pipeline: Any, step: str) -> None:
    numbers = [one["number"] for one in _before(pipeline, step)]
    for kind, entries in old["memory"].items():
        kept = [entry for entry in entries if kind == "index" or entry["step"] in numbers]  # type: ignore[attr-defined]
        written: Any = {"do": "WriteMemory", "kind": kind, "entries": kept}
        turn.do(new, written)
    if old["items"] and any(one["kind"] == "waves" for one in _before(pipeline, step)):
        waves = [wave["items"] for wave in old["waves"]]
        planned: Any = {"do": "PlanItems", "items": old["items"], "waves": waves}
        turn.do(new, planned)
    turn.do(new, {"do": "RecordAnswers", "answers": old["answers"]})
    turn.do(new, {"do": "SetFlags", "flags": old["flags"]})
