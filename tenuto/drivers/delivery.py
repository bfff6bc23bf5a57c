"""What an attempt gets before it starts, and what it hands over when it has ended.

    make_ready(engine, job)            its work tree, where it has one of its own; why that failed, in words
    in_turn(engine, run, ended, flying)   those of the ended ones whose turn it is to be collected
    receive(engine, job, directory, told) its word, held against what it did: (verdict, summary, receipt)
    give_up(engine, job)               an attempt that was lost: what it left is kept

Rules about turns. In work trees, under the barrier, items are merged in the order of their wave: one that ended early waits
for those before it. Under rolling order they are merged as they end. In a shared tree a check of the engine runs when no
agent works there: what a build leaves behind is then nobody else's doing, and no test runs over half-written files.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.decisions.attempts import in_flight
from tenuto.core.records import Run
from tenuto.drivers import receipts
from tenuto.drivers.branches import checkpoint
from tenuto.drivers.checks import Where, run_command
from tenuto.drivers.jobs import Job
from tenuto.encoding import digest, dumps, loads
from tenuto.workspace.turn import Turn


def make_ready(engine: Any, job: Job) -> str:
    if not job.isolated:
        return ""
    checkpoint(engine.workspace, job.run, job.pipeline, job.step["id"])
    own, project = job.pipeline["setup"], engine.settings.get("setup", {})
    engine.trees.prepare(job, [*own["copy"], *project.get("copy", [])])
    for number, command in enumerate([*own["run"], *project.get("run", [])], 1):
        done = run_command(_where(engine, job), f"setup-{number}", command)
        if done["reason"]:
            return f"the set-up command '{command}' failed: {done['reason']}\n{done['tail']}".strip()
    return ""


def in_turn(engine: Any, run: Run, ended: list[str], flying: list[str]) -> list[str]:
    """In the order in which they are to be collected; the rest waits."""
    chosen = []
    for name in sorted(ended, key=flying.index):
        job = engine.job(run, name)
        under_way = [other for other in flying if other not in ended]
        if job.isolated and job.step["kind"] == "waves" and job.step["waves"]["order"] == "barrier":
            under_way = [other for other in under_way if flying.index(other) < flying.index(name)]
        elif job.isolated or not receipts.wants_checks(job, engine.settings.get("checks", {})):
            under_way = []
        if not under_way:
            chosen.append(name)
    return chosen


def receive(engine: Any, job: Job, directory: str, told: Any) -> tuple[str, str, dict[str, Any]]:
    with engine.workspace.turn() as turn:  # whatever was written into memory.md is looked at first
        run = turn.existing(engine.name)
        memory_broken = job.name in run["extra"].get("feature_docs", {}).get("memory_broken_by", [])
        _validate_memory(engine, turn, run, job, told["verdict"])
    changed = engine.boundary.changed(job)
    strayed = engine.boundary.strayed(job, changed, in_flight(run))
    commands = engine.settings.get("checks", {})
    verdict, summary = told["verdict"], told["summary"]
    before = _kept(f"{directory}/before.json")
    unproven = strayed or ("memory.md was changed while only readers ran" if memory_broken else "")
    receipt = receipts.check(job, before, "" if unproven else verdict, commands, directory, _where(engine, job))
    receipt["problem"] = unproven or receipt["problem"]
    if receipt["checks"]:
        engine.boundary.excuse(job, [path for path in engine.boundary.changed(job) if path not in changed])
    if receipt["problem"] and verdict in ("DONE", "NEEDS_REVISION"):
        verdict, summary = "ERROR", f"claimed {told['verdict']}, but {receipt['problem']}"
    receipt["touched"] = engine.boundary.touched(job, changed)
    if job.isolated:
        verdict, summary = _take_over(engine, job, changed, verdict, summary, receipt)
    return verdict, summary, receipt


def photograph_memory(run: Run) -> str:
    return digest(dumps(run["memory"]).encode())[:16]


def _validate_memory(engine: Any, turn: Turn, run: Run, job: Job, verdict: str) -> None:
    """An agent that may write memory is expected to; where it did not, that is said, and stops nothing."""
    seen = job.attempt["extra"].get("memory_seen")
    if seen and verdict in ("DONE", "NEEDS_REVISION") and photograph_memory(run) == seen:
        text = f"{job.name} did not write to {job.path('memory.md')}"
        if turn.do(engine.name, {"do": "Note", "text": text, "key": f"memory-not-written:{job.name}"}):
            engine.workspace.warn(text)


def _take_over(
    engine: Any, job: Job, changed: list[str], verdict: str, summary: str, receipt: dict[str, Any]
) -> tuple[str, str]:
    """A DONE is merged; whatever is not merged is kept."""
    if verdict == "DONE":
        merged = engine.trees.merge(job, engine.boundary.base(job), changed, summary)
        if "commit" in merged:
            receipt["merged"] = merged["commit"]
            return verdict, summary
        receipt["conflict"] = merged["conflict"]
        verdict, summary = "NEEDS_REVISION", merged["conflict"]
    receipt["kept"] = engine.trees.keep(job, changed, summary)
    receipt["outputs"] = {}  # they lie in the attempt's tree, and are no part of the run
    return verdict, summary


def give_up(engine: Any, job: Job) -> None:
    if not job.isolated or not os.path.isdir(job.workdir):
        return
    changed = engine.boundary.changed(job)
    if changed:
        engine.trees.keep(job, changed, "its outcome is not known")
    else:
        engine.trees.remove(job.name)


def _where(engine: Any, job: Job) -> Where:
    environment = job.environment(dict(os.environ), engine.settings.get("environment", []))
    return Where(
        f"{engine.name}.{job.name}", job.workdir, f"{engine.folder}/{job.name}/checks", environment,
        f"{engine.workspace.state}/check-slots",
    )  # fmt: skip


def _kept(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return loads(file.read())
    except FileNotFoundError:
        return {}
