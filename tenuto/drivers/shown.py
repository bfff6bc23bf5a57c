"""What the dialects that show a run want of the engine's work: names for outputs, a look at them, actions of their own.

A dialect says so with these functions, all of them optional (see ports.Dialect):

    begin(run_id, begun, pipeline, tree)     where the run is shown, and what its files need to know from the start
    opened(turn, run_id)                     the run has begun: own the file, become the current one
    engaged(turn, run, pipeline)             the engine takes over a run that somebody else led
    artifact_name(path)                      its name for a document of the run
    collected(turn, run, attempt, artifacts, reply)   an attempt handed these over, and said this
    commit_step(run, attempt)                what a commit of this attempt is called
    act(turn, run, pipeline, action)         an action that is the dialect's own business; None: not mine
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.records import Run
from tenuto.dialects.context.memory import memory_text
from tenuto.dialects.context.passages import INDEXED, passages_of
from tenuto.drivers import git
from tenuto.errors import Refused
from tenuto.workspace.turn import Turn, Workspace

_LONGEST_MEMORY = 30_000  # characters of decisions, and of patterns


def dialects(workspace: Workspace, run: Run) -> list[Any]:
    return [workspace.dialects[name] for name in run["dialects"] if name in workspace.dialects]


def keep_outputs(turn: Turn, job: Any, outputs: list[str], reply: str) -> None:
    """Each output becomes an artifact, under the name that its dialect knows it by."""
    run = turn.existing(job.run["id"])
    speaking = dialects(turn.workspace, run)
    named = next((one.artifact_name for one in speaking if hasattr(one, "artifact_name")), lambda path: path)
    kept = {named(os.path.relpath(path, job.documents)): path for path in outputs}
    for artifact, path in kept.items():
        turn.keep_file(run["id"], artifact, path, step=job.step["id"], attempt=job.name)
        sha = run["artifacts"][artifact]["sha256"]
        if not sha:
            raise Refused("output-gone", f"{path} was removed while it was taken in", f"tenuto run --run {run['id']}", path=path)
        head = turn.workspace.files().stored(turn.tx, sha, INDEXED)
        turn.tx.index(run["id"], artifact, path, passages_of(head))
    for one in speaking:
        if hasattr(one, "collected"):
            one.collected(turn, run, job.name, list(kept), reply)


def keep_commits(turn: Turn, job: Any, base: str) -> None:
    """What the agent committed, oldest first. Each commit counts once, for the attempt that ended first after it."""
    now = git.head(job.workdir)
    if not base or now == base:
        return
    run = turn.existing(job.run["id"])
    known = [commit["hash"] for commit in run["commits"]]
    speaking = next((one for one in dialects(turn.workspace, run) if hasattr(one, "commit_step")), None)
    step = speaking.commit_step(run, job.attempt) if speaking else job.step["id"]
    for line in reversed(git.ask(job.workdir, "log", "--format=%H %s", f"{base}..{now}").out.splitlines()):
        sha, _, subject = line.partition(" ")
        if sha not in known:
            turn.do(run["id"], {"do": "RecordCommit", "step": step, "hash": sha, "message": git.in_words(subject)})


def project_memory(workspace: Workspace) -> str:
    """Decisions and patterns that outlive a run, for agents whose seat asks for them. One that cannot be read stops nobody."""
    try:
        with workspace.journal.read() as reader:
            return memory_text(workspace.files(), reader, _LONGEST_MEMORY)
    except Refused as problem:
        workspace.warn(f"project memory is left out: {problem.message}")
        return "[it cannot be read]"


def act(turn: Turn, run: Run, pipeline: Any, action: str) -> Any:
    for one in dialects(turn.workspace, run):
        done = one.act(turn, run, pipeline, action) if hasattr(one, "act") else None
        if done is not None:
            return done
    return None


def engaged(turn: Turn, run: Run, pipeline: Any) -> None:
    for one in dialects(turn.workspace, run):
        if hasattr(one, "engaged"):
            one.engaged(turn, run, pipeline)
