"""What can be seen of the work on an item, for the rule about a DONE that changed nothing (core/claims.py).

    problem, note = hold(engine, job, before, changed, said)

Git tells what changed. A file that git ignores is held against how it was before the agent started; how it was when the run
began nobody knows then. Writing the same bytes again counts, as it does for outputs.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.core.claims import unproven
from tenuto.drivers import git
from tenuto.drivers.jobs import Job, matches
from tenuto.drivers.receipts import written


def hold(engine: Any, job: Job, before: dict[str, Any], changed: list[str], said: str) -> tuple[str, str]:
    if not job.item or not job.item["files"]:
        return "", ""
    code = [path for path in engine.boundary.touched(job, changed) if not job.is_document(path)]
    own = [path for path in changed if any(matches(path, name) for name in job.item_patterns())]
    done = bool(code or own or written(job, before))
    since = None if done else _since_start(job)
    there = done or _is_there(job)
    told = unproven(job.run, job.name, job.seat, {"said": said, "changed": done, "there": there, "since_start": since})
    return told["problem"], told["note"]


def _is_there(job: Job) -> bool:
    """One of the item's files, or what can be meant by them."""
    names = job.item["files"] if job.item else []
    if any(os.path.lexists(os.path.join(job.workdir, name.partition("*")[0] or ".")) for name in names):
        return True
    known = git.ask(job.workdir, "ls-files", "--cached", "--others", "--exclude-standard", "-z").out.split("\0")
    return any(matches(path, name) for path in known if path for name in job.item_patterns())


def _since_start(job: Job) -> bool | None:
    settings, files = job.run["settings"], job.item_patterns()
    base = settings.get("origin_commit") or settings.get("base_commit")
    now = git.photograph(job.workdir, base) if base else None
    if now is None:
        return None
    if any(matches(path, name) for path in now for name in files):
        return True
    here = [path for path in job.item_files if os.path.isfile(os.path.join(job.workdir, path))]
    known = git.ask(job.workdir, "--literal-pathspecs", "ls-files", "-z", "--", *here).out.split("\0") if here else []
    return None if any(path not in known for path in here) else False
