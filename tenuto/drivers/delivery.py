"""What an attempt gets before it starts, and what it hands over when it has ended.

    prepare(engine, job)               its work tree, where it has one of its own, and the folders of its outputs; why that failed, in words; or UnderWay
    in_turn(engine, run, ended, flying)   those of the ended ones whose turn it is to be collected
    judge(engine, job, directory, told)   its word, held against what it did: (verdict, summary, receipt); or UnderWay
    give_up(engine, job)               an attempt that was lost: what it left is kept
    make_ready, receive                prepare and judge, for those who wait until they are done

Both are asked again until they are done, and take up what they left (checks.py): also in another process.

Rules about turns. In work trees, under the barrier, items are merged in the order of their wave: one that ended early waits
for those before it, though not for another attempt at one of them. Under rolling order they are merged as they end. In a shared tree a check of the engine runs when no
agent works there, and until it has ended nothing starts and nothing is collected there: what a build leaves behind is then
nobody else's doing, and no test runs over half-written files.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.budget import time_left
from tenuto.core.decisions.attempts import in_flight
from tenuto.core.records import Run
from tenuto.drivers import claims, git, leaks, receipts
from tenuto.drivers.branches import checkpoint
from tenuto.drivers.checks import OUT_OF_TIME, UnderWay, Where, pursue, settled, titled
from tenuto.drivers.continuing import may_go_on
from tenuto.drivers.jobs import Job
from tenuto.drivers.trees import tree_name
from tenuto.encoding import digest, dumps, loads
from tenuto.errors import Refused
from tenuto.files.places import place
from tenuto.workspace.turn import Turn

Judged = tuple[str, str, dict[str, Any]]


def make_ready(engine: Any, job: Job) -> str:
    return settled(lambda: prepare(engine, job))


def receive(engine: Any, job: Job, directory: str, told: Any) -> Judged:
    return settled(lambda: judge(engine, job, directory, told))


def prepare(engine: Any, job: Job) -> str | UnderWay:
    problem = _set_up(engine, job) if job.isolated else ""
    if not problem and not engine.settings.get("isolation"):  # another user could not write into a folder of ours
        _make_room(job)
    return problem


def _make_room(job: Job) -> None:
    """The folders of its outputs: some agents may make files, and neither folders nor commands that make them."""
    for path in job.outputs:
        try:
            where = place(job.workdir, path.partition("*")[0] + "_")
        except (OSError, Refused):
            continue  # something else lies there, or it leads out of the repository: whether the output is there, the receipt will say
        if where:
            with where:
                pass


def _set_up(engine: Any, job: Job) -> str | UnderWay:
    own, project = job.pipeline["setup"], engine.settings.get("setup", {})
    if _is_another(job) and engine.trees.stands(job.attempt["extra"]["tree"]):
        engine.boundary.go_on(job)  # before the tree is as it was: whoever dies in between leaves nothing that nobody answers for
        engine.trees.take_up(job)
        return ""
    if not os.path.isdir(job.workdir):
        checkpoint(engine.workspace, job.run, job.pipeline, job.step["id"])
        engine.trees.prepare(job, [*own["copy"], *project.get("copy", [])])
    for number, command in enumerate([*own["run"], *project.get("run", [])], 1):
        done = pursue(_where(engine, job), titled("setup", number), command)
        if isinstance(done, UnderWay):
            return done
        if done["reason"] == OUT_OF_TIME:
            return OUT_OF_TIME
        if done["reason"]:
            return f"the set-up command '{command}' failed: {done['reason']}\n{done['tail']}".strip()
    return ""


def in_turn(engine: Any, run: Run, ended: list[str], flying: list[str]) -> list[str]:
    """In the order in which they are to be collected; the rest waits."""
    chosen = []
    for name in sorted(ended, key=flying.index):
        if name in engine.setups:  # it has not even started
            chosen.append(name)
            continue
        if is_held(engine, run, name):
            continue
        job = engine.job(run, name)
        under_way = [other for other in flying if other not in ended]
        if job.isolated and job.step["kind"] == "waves" and job.step["waves"]["order"] == "barrier":
            under_way = [other for other in under_way if flying.index(other) < flying.index(name)]
        elif job.isolated or not receipts.wants_checks(job, engine.settings.get("checks", {})):
            under_way = []
        if not under_way:
            chosen.append(name)
    return chosen


def is_held(engine: Any, run: Run, name: str) -> bool:
    """It would be collected in the shared tree, where a check has begun a moment ago."""
    checked = checked_here(engine, run)
    return bool(checked) and name not in checked and not run["attempts"][name]["extra"].get("tree")


def checked_here(engine: Any, run: Run) -> list[str]:
    """Attempts for which a check runs in the shared tree."""
    return [name for name in engine.checks if not run["attempts"][name]["extra"].get("tree")]


def judge(engine: Any, job: Job, directory: str, told: Any) -> Judged | UnderWay:
    seen = _seen(engine, job, directory, told)
    verdict, summary, receipt = told["verdict"], told["summary"], seen["receipt"]
    if verdict == "DONE" and not receipt["problem"]:
        checks = receipts.run_checks(job, engine.settings.get("checks", {}), _where(engine, job))
        if isinstance(checks, UnderWay):
            return checks
        receipt |= {"checks": checks, "problem": receipts.problem_of(checks)}
        if checks:
            engine.boundary.excuse(job, [path for path in engine.boundary.changed(job) if path not in seen["changed"]])
        if checks and checks[-1]["reason"] == OUT_OF_TIME:
            verdict, summary = "PARKED", OUT_OF_TIME
    if receipt["problem"] and verdict in ("DONE", "NEEDS_REVISION"):
        verdict, summary = "ERROR", f"claimed {told['verdict']}, but {receipt['problem']}"
    receipt["touched"] = engine.boundary.touched(job, seen["changed"]) or receipts.written(job, _kept(f"{directory}/before.json"))
    if verdict == "DONE":
        engine.boundary.forgive(job, seen["changed"])
    if job.isolated:
        verdict, summary = _take_over(engine, job, seen["changed"], verdict, summary, receipt)
    return verdict, summary, receipt


def _seen(engine: Any, job: Job, directory: str, told: Any) -> Any:
    """What the attempt left, as it was before any check of ours: looked at once, and kept for whoever goes on."""
    path = f"{directory}/seen.json"
    known = _kept(path)
    if known and known["verdict"] == told["verdict"]:
        return known
    with engine.workspace.turn() as turn:  # whatever was written into memory.md is looked at first
        run = turn.existing(engine.name)
        memory_broken = job.name in run["extra"].get("feature_docs", {}).get("memory_broken_by", [])
        _validate_memory(engine, turn, run, job, told["verdict"])
    changed = engine.boundary.changed(job)
    strayed = (engine.trees.damage(job, changed) if job.isolated else "") or engine.boundary.strayed(job, changed, in_flight(run))
    unproven = strayed or ("memory.md was changed while only readers ran" if memory_broken else "")
    before = _kept(f"{directory}/before.json")
    receipt = receipts.check(job, before, "" if unproven else told["verdict"], directory)
    receipt["problem"] = unproven or receipt["problem"] or leaks.told(engine, job, [*receipt["outputs"], *(changed if job.isolated else [])])
    if told["verdict"] == "DONE" and not receipt["problem"]:
        receipt["problem"], note = claims.hold(engine, job, before, changed, told["summary"])
        _say(engine, job, note)
    seen = {"verdict": told["verdict"], "changed": changed, "receipt": receipt}
    if receipts.wants_checks(job, engine.settings.get("checks", {})):
        keep(path, seen)
    return seen


def _keep(engine: Any, job: Job, changed: list[str], reason: str) -> str:
    """As a commit on the attempt's branch; what holds a secret stays in its tree."""
    leaking = leaks.found(engine, job, changed)
    return str(engine.trees.keep(job, [path for path in changed if path not in leaking], reason))


def photograph_memory(run: Run) -> str:
    return digest(dumps(run["memory"]).encode())[:16]


def _validate_memory(engine: Any, turn: Turn, run: Run, job: Job, verdict: str) -> None:
    """An agent that may write memory is expected to; where it did not, that is said, and stops nothing."""
    seen = job.attempt["extra"].get("memory_seen")
    if seen and verdict in ("DONE", "NEEDS_REVISION") and photograph_memory(run) == seen:
        text = f"{job.name} did not write to {job.path('memory.md')}"
        if turn.do(engine.name, {"do": "Note", "text": text, "key": f"memory-not-written:{job.name}"}):
            engine.workspace.warn(text)


def _say(engine: Any, job: Job, note: str) -> None:
    if note:
        with engine.workspace.turn() as turn:
            if turn.do(engine.name, {"do": "Note", "text": note, "key": f"files-not-changed:{job.name}"}):
                engine.workspace.warn(note)


def _take_over(
    engine: Any, job: Job, changed: list[str], verdict: str, summary: str, receipt: dict[str, Any]
) -> tuple[str, str]:
    """A DONE is merged; whatever is not merged is kept."""
    if verdict == "DONE":
        merged = engine.trees.merge(job, engine.boundary.base(job), changed, summary)
        if "commit" in merged:
            receipt["merged"] = merged["commit"]
            return verdict, summary
        receipt["conflict"] = git.in_words(merged["conflict"])
        verdict, summary = "NEEDS_REVISION", receipt["conflict"]
    receipt["kept"] = _keep(engine, job, changed, summary)
    receipt["outputs"] = {}  # they lie in the attempt's tree, and are no part of the run
    return verdict, summary


def give_up(engine: Any, job: Job) -> None:
    if not job.isolated or not os.path.isdir(job.workdir):
        return
    changed = engine.boundary.changed(job)
    if changed:
        _keep(engine, job, changed, "its outcome is not known")
    elif not _is_another(job) and not may_go_on(engine, job.run, job.name, engine.crew.named(job.attempt["agent"])):
        engine.trees.remove(job.attempt["extra"]["tree"])


def _is_another(job: Job) -> bool:
    """It works in the tree of an attempt before it."""
    return bool(job.attempt["extra"]["tree"] != tree_name(job.name))


def _where(engine: Any, job: Job) -> Where:
    secrets = engine.settings.get("secrets", [])
    environment = job.environment(dict(os.environ), [*engine.settings.get("environment", []), *secrets])
    left = time_left(job.run, job.step["id"], engine.workspace.clock())
    return Where(
        f"{engine.name}.{job.name}", job.workdir, f"{engine.folder}/{job.name}/checks", environment,
        f"{engine.workspace.state}/check-slots", None if left is None else left / 1000, tuple(secrets),
    )  # fmt: skip


def keep(path: str, value: Any) -> None:
    """Renamed into place: whoever finds it finds all of it."""
    with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:  # names of files are bytes
        file.write(dumps(value))
    os.replace(path + ".new", path)


def _kept(path: str) -> Any:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return loads(file.read())
    except FileNotFoundError:
        return {}
