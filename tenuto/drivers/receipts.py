"""Claims are checked: a DONE counts only with a receipt.

    before = look(job, directory)              what the outputs are before the agent starts, and its item's files
    receipt = check(job, before, verdict)      what it really did; receipt["problem"] names the first false claim
    told = run_checks(job, commands, where)    build and tests, run by us: all of them up to the first that fails, or UnderWay

Outputs exist, hold something, can be kept, and were written. Append-only files keep their old bytes as a prefix, whatever the verdict:
one that does not is put back. A plan can be carried out. Checks (build, tests) are run by us. A verdict that is no DONE
claims nothing else.
"""

from __future__ import annotations

import os
from typing import Any

from tenuto.drivers import copies
from tenuto.drivers.checks import UnderWay, Where, pursue, titled
from tenuto.drivers.jobs import Job, existing
from tenuto.drivers.planning import plan_problem
from tenuto.encoding import digest
from tenuto.errors import Refused
from tenuto.files.places import LARGEST
from tenuto.knowledge.findings import answer, findings

_LARGEST = 8 << 20  # of an output that is read for findings; larger ones are only hashed


def look(job: Job, directory: str) -> dict[str, Any]:
    """Every output, and every file of its item, as it is before the attempt: hash and time of the last write. Append-only
    files are copied aside."""
    seen = {path: _state(job.workdir, path) for name in job.deliverables for path in existing(job.workdir, name)}
    seen |= _item_files(job)
    for path in _append_only(job):
        if path in seen and seen[path]["sha256"]:
            with open(os.path.join(job.workdir, path), "rb") as source, open(_aside(directory, path), "wb") as kept:
                kept.write(source.read())
    return seen


def check(job: Job, before: dict[str, Any], verdict: str, directory: str) -> dict[str, Any]:
    receipt: dict[str, Any] = {"outputs": {}, "checks": [], "problem": ""}
    for pattern in job.deliverables:
        for path in existing(job.workdir, pattern):
            if pattern in job.outputs or before.get(path) != _state(job.workdir, path):
                receipt["outputs"][path] = _state(job.workdir, path)
    problems = [_put_back(job, path, before[path], directory) for path in _append_only(job) if path in before and before[path]["sha256"]]
    for path in [path for path, state in receipt["outputs"].items() if not state["sha256"]]:
        problems.append(f"the output {path} has {receipt['outputs'].pop(path)['size']} bytes; {LARGEST} are the most")
    links = [path for path in receipt["outputs"] if _is_link(job, path)]
    for path in links:
        del receipt["outputs"][path]
    if verdict == "DONE":
        problems += [_output_problem(job, pattern, before) for pattern in job.outputs]
        problems.append("" if any(problems) else plan_problem(job))
    problems += [f"the output {path} is a link, or lies behind one" for path in links]
    receipt["problem"] = next(filter(None, problems), "")
    _read_words(job, receipt)
    return receipt


def written(job: Job, before: dict[str, Any]) -> list[str]:
    """Those of its item's files that are not as they were before the attempt."""
    now = _item_files(job)
    return [path for path in job.item_files if now.get(path) != before.get(path)]


def wants_checks(job: Job, commands: dict[str, str]) -> bool:
    return any(wanted["run"] or commands.get(wanted["name"]) for wanted in job.seat["checks"])


def run_checks(job: Job, commands: dict[str, str], where: Where) -> list[dict[str, Any]] | UnderWay:
    done: list[dict[str, Any]] = []
    for number, wanted in enumerate(job.seat["checks"], 1):
        command = wanted["run"] or commands.get(wanted["name"], "")
        if command:
            told = pursue(where, titled("check", number, wanted["name"]), command, wanted["time_limit"])
            if isinstance(told, UnderWay):
                return told
            done.append({"name": wanted["name"], **told})
            if told["reason"]:
                break
    return done


def problem_of(checks: list[dict[str, Any]]) -> str:
    last = checks[-1] if checks else {"reason": ""}
    return f"the engine ran '{last['command']}' itself: {last['reason']}\n{last['tail']}".strip() if last["reason"] else ""


def _output_problem(job: Job, pattern: str, before: dict[str, Any]) -> str:
    paths = existing(job.workdir, pattern)
    if not paths:
        return f"the output {pattern} does not exist"
    inside = os.path.realpath(job.workdir) + os.sep
    for path in paths:
        full = os.path.join(job.workdir, path)
        if not os.path.realpath(full).startswith(inside):
            return f"the output {path} is a link that leads outside"
        if _blank(full):
            return f"the output {path} is empty"
    if all(path in before and before[path] == _state(job.workdir, path) for path in paths):
        return f"the output {pattern} was not written"
    return ""


def _is_link(job: Job, path: str) -> bool:
    """Then it is not kept: nobody knows what it will lead to by the time it is read."""
    return os.path.realpath(os.path.join(job.workdir, path)) != os.path.join(os.path.realpath(job.workdir), path)


def _blank(path: str) -> bool:
    if os.path.getsize(path) > 4096:
        return False
    with open(path, "rb") as file:
        return not file.read().strip()


def _append_only(job: Job) -> list[str]:
    return [job.path(name) for name in job.seat["append_only"]]


def _put_back(job: Job, path: str, before: dict[str, Any], directory: str) -> str:
    """Old text that was changed is restored; what the agent made of it stays beside the attempt."""
    full = os.path.join(job.workdir, path)
    try:
        with open(full, "rb") as file:
            found = file.read(LARGEST)
    except OSError:  # none, or a folder
        found = b""
    if digest(found[: before["size"]]) == before["sha256"]:
        return ""
    with open(_aside(directory, path), "rb") as kept:
        old = kept.read()
    with open(f"{_aside(directory, path)}.changed", "wb") as file:
        file.write(found)
    said = f"{path} may only be appended to, and its old text was changed"
    try:
        copies.put(job.workdir, path, old)  # never through a link that stands there now
    except Refused as refused:
        return f"{said}; it cannot be put back: {refused.message}"
    return f"{said} (it was put back)"


def _aside(directory: str, path: str) -> str:
    return os.path.join(directory, f"append-only-{digest(path.encode())[:12]}")


def _read_words(job: Job, receipt: dict[str, Any]) -> None:
    """Severities and the JSON answer, from the outputs: the rules over members need them."""
    severities: list[str] = []
    for path in (path for pattern in job.outputs for path in existing(job.workdir, pattern)):
        full = os.path.join(job.workdir, path)
        if os.path.getsize(full) > _LARGEST:
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            text = file.read()
        severities += [finding["severity"] for finding in findings(text)]
        if receipt.get("answer") is None and job.step["rule"] in ("audit", "review"):
            receipt["answer"] = answer(text)
    receipt["severities"] = severities


def _item_files(job: Job) -> dict[str, Any]:
    """Whoever may not read one cannot tell: it is left out."""
    found = [path for path in job.item_files if os.access(os.path.join(job.workdir, path), os.R_OK)]
    return {path: _state(job.workdir, path) for path in found if os.path.isfile(os.path.join(job.workdir, path))}


def _state(root: str, path: str) -> dict[str, Any]:
    """No hash: it is larger than anybody could keep."""
    full = os.path.join(root, path)
    found = os.stat(full)
    if found.st_size > LARGEST:
        return {"sha256": "", "size": found.st_size, "written": found.st_mtime_ns}
    with open(full, "rb") as file:
        body = file.read()
    return {"sha256": digest(body), "size": len(body), "written": os.stat(full).st_mtime_ns}
