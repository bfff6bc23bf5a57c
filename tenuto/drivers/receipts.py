"""Claims are checked: a DONE counts only with a receipt.

    before = look(job)              what the outputs are before the agent starts
    receipt = check(job, before, reply)   what it really did; receipt["problem"] names the first false claim

Outputs exist, hold something, and were written. Append-only files keep their old bytes as a prefix. Checks
(build, tests) are run by us. A verdict that is no DONE is not checked: it claims nothing.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from tenuto.drivers.jobs import Job, existing
from tenuto.encoding import digest
from tenuto.knowledge.findings import answer, findings

_LARGEST = 8 << 20  # of an output that is read for findings; larger ones are only hashed


def look(job: Job) -> dict[str, Any]:
    """Every output as it is before the attempt: hash and time of the last write."""
    names = [*job.outputs, *(job.path(name) for name in job.seat["optional"])]
    return {path: _state(job.workdir, path) for name in names for path in existing(job.workdir, name)}


def check(job: Job, before: dict[str, Any], verdict: str, checks: dict[str, str], directory: str) -> dict[str, Any]:
    receipt: dict[str, Any] = {"outputs": {}, "checks": [], "problem": ""}
    for pattern in job.outputs:
        paths = existing(job.workdir, pattern)
        for path in paths:
            receipt["outputs"][path] = _state(job.workdir, path)
        if verdict == "DONE" and not receipt["problem"]:
            receipt["problem"] = _output_problem(job, pattern, paths, before)
    for path in (job.path(name) for name in job.seat["append_only"]):
        if verdict == "DONE" and not receipt["problem"] and path in before:
            receipt["problem"] = _prefix_problem(job, path, before[path])
    if verdict == "DONE" and not receipt["problem"]:
        for wanted in job.seat["checks"]:
            command = wanted["run"] or checks.get(wanted["name"], "")
            if command:
                result = run_check(job.workdir, wanted["name"], command, wanted["time_limit"] or 1800, directory)
                receipt["checks"].append(result)
                if result["exit"] != 0:
                    receipt["problem"] = f"the engine ran '{command}' itself: exit status {result['exit']}"
                    break
    _read_words(job, receipt)
    return receipt


def _output_problem(job: Job, pattern: str, paths: list[str], before: dict[str, Any]) -> str:
    if not paths:
        return f"the output {pattern} does not exist"
    empty = [path for path in paths if not os.path.getsize(os.path.join(job.workdir, path))]
    if empty:
        return f"the output {empty[0]} is empty"
    if all(path in before and before[path] == _state(job.workdir, path) for path in paths):
        return f"the output {pattern} was not written"
    return ""


def _prefix_problem(job: Job, path: str, before: dict[str, Any]) -> str:
    try:
        with open(os.path.join(job.workdir, path), "rb") as file:
            old = file.read(before["size"])
    except FileNotFoundError:
        old = b""
    return "" if digest(old) == before["sha256"] else f"{path} may only be appended to, and its old text was changed"


def _read_words(job: Job, receipt: dict[str, Any]) -> None:
    """Severities and the JSON answer, from the outputs: the rules over members need them."""
    severities: list[str] = []
    for path in receipt["outputs"]:
        full = os.path.join(job.workdir, path)
        if os.path.getsize(full) > _LARGEST:
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            text = file.read()
        severities += [finding["severity"] for finding in findings(text)]
        if receipt.get("answer") is None and job.step["rule"] in ("audit", "review"):
            receipt["answer"] = answer(text)
    receipt["severities"] = severities


def run_check(workdir: str, name: str, command: str, limit: int, directory: str) -> dict[str, Any]:
    """A command of the project, run by us; its output is kept beside the attempt's."""
    log = os.path.join(directory, f"check-{name}.log")
    with open(log, "wb") as out:
        try:
            done = subprocess.run(
                command,
                shell=True,
                cwd=workdir,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=limit,
                check=False,
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = 124
    return {"name": name, "command": command, "exit": status, "log": log}


def _state(root: str, path: str) -> dict[str, Any]:
    full = os.path.join(root, path)
    with open(full, "rb") as file:
        body = file.read()
    return {"sha256": digest(body), "size": len(body), "written": os.stat(full).st_mtime_ns}
