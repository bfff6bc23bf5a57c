"""Claims are checked: a DONE counts only with a receipt.

    before = look(plan, directory)             the outputs before the agent starts, and the files of its item
    receipt = check(plan, before, verdict)     what the attempt really did; receipt["problem"] names the first false
                                               claim
    value, why = result_in(plan, before, text) the structured result, where one was asked for; or why there is none
    ends = run_checks(plan, commands, where)   build and tests, run by us: all of them up to the first that fails, or
                                               UnderWay

Outputs exist, hold something, can be kept, and were written. Append-only files keep their old bytes as a prefix,
whatever the verdict: one that does not is put back. A plan can be carried out: one that cannot (a cycle, an unknown id,
no item) is the planner's error, and core decides what makes it impossible. A verdict that is no DONE claims nothing
else.

    end = pursue(where, "check-1-tests", "make test")    a command of the project, started or looked after: its end, or
                                                         UnderWay
    end = wait_for(lambda: pursue(...))                  the same, for callers that have nothing else to do meanwhile

The project's own commands (set-up of a work tree, build, tests) are supervised like agents. `pursue` never waits: its
caller asks again when the command's directory has come to rest, and gets the result from there. So an engine goes on
with everything else, and the next engine takes up the same run of the command where this one dies. The time limit binds
the whole process tree, nothing outlives the command, output is bounded and kept. The environment is the agents'
allow-list: what runs here may be what an agent wrote.

    problem, note = hold(watch, plan, before, changed, summary)   the rule about a DONE that changed nothing
                                                                  (core/rules.py)

Git tells what changed. A file that git ignores is compared with how it was before the agent started. Writing the same
bytes again counts, as it does for outputs.

    leaking(workspace, plan, paths)    which of these files hold a declared secret, and which one

A file that holds a declared secret is not taken in, merged or committed by us. What an agent says is masked on its way
to the disk (supervise/supervisor.py); what turns take in is looked at in workspace/secrets.py.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from tenuto.core.decisions.engine import impossible
from tenuto.core.items import PlanRefused
from tenuto.core.pipeline.results import LARGEST as LARGEST_RESULT
from tenuto.core.pipeline.results import problems
from tenuto.core.rules import unproven
from tenuto.encoding import NotJson, digest, loads_strict
from tenuto.engine.attempt import AttemptPlan, existing
from tenuto.errors import BadInput, Refused
from tenuto.files import copies, git
from tenuto.files.exchange import LARGEST
from tenuto.knowledge.findings import answer, findings
from tenuto.knowledge.inputs import handed_in
from tenuto.knowledge.plans import read_plan
from tenuto.names import as_glob, fits, slug
from tenuto.supervise import attempts
from tenuto.supervise.attempts import wait_any
from tenuto.supervise.records import make_directory

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Waves
    from tenuto.core.records.run import CheckResult, FileState, PlannedItem, Receipt
    from tenuto.core.rules import Seen
    from tenuto.engine.boundary import ChangeWatch
    from tenuto.knowledge.plans import Plan
    from tenuto.supervise.records import Result, Spec
    from tenuto.workspace.workspace import Workspace

    FileStates = dict[str, FileState]

LIMIT = 1800.0  # seconds, where nothing else is said
OUT_OF_TIME = "the time that the run may use is over"
# seconds between SIGTERM and SIGKILL, for agents too: a time limit binds within two, and those that flee take a while
GRACE = 1.0
_KEPT = 4 << 20  # bytes of output
_TAIL = 2000  # characters of it that a receipt quotes
_TOGETHER = 4

End = TypeVar("End")
EndKind = Literal["passed", "failed", "out_of_time"]
"""How a command ended; out_of_time: the time that the run may use is over, and nothing is wrong with the command."""


class UnderWay(NamedTuple):
    """Ask again when this attempt directory has come to rest."""

    directory: str


class CommandEnd(NamedTuple):
    kind: EndKind
    result: CheckResult


class Checked(NamedTuple):
    """The checks of an attempt, up to the first that did not pass."""

    kind: EndKind
    results: list[CheckResult]


class Where(NamedTuple):
    attempt: str  # what the command's processes are marked with
    workdir: str
    folder: str  # its output lies below
    environment: dict[str, str]
    pool: str
    left: float | None = None  # seconds that the run may still use
    masked: tuple[str, ...] = ()  # variables whose values are kept out of its output
    prefix: tuple[str, ...] = ()  # the words of `isolation`: what runs here may be what an agent wrote
    lease: str = ""  # a file that says until when it may go on (supervise/records.py)


def titled(kind: str, number: int, name: str = "") -> str:
    """A name that two commands of one attempt never share, and that is a file's name whatever the pipeline calls it."""
    try:
        return f"{kind}-{number}-{slug(name)[:40]}" if name else f"{kind}-{number}"
    except BadInput:
        return f"{kind}-{number}"


def pursue(where: Where, name: str, command: str, limit: float | None = None) -> CommandEnd | UnderWay:
    """A command whose supervisor was killed is started anew, beside the old one."""
    number = 1
    while True:
        directory = f"{where.folder}/{name}-{number}"
        state = attempts.inspect(directory)
        if state["state"] == "finished":
            return _end(directory, command, state["result"], limit or LIMIT)
        if state["state"] == "absent":
            _launch(where, f"{name}-{number}", directory, command, limit or LIMIT)
            return UnderWay(directory)
        if state["state"] in ("queued", "running") or (state["state"] == "launching" and not state.get("stalled")):
            return UnderWay(directory)
        if state["state"] == "lost":
            attempts.sweep(where.folder)
        elif not attempts.void(directory):  # a supervisor claimed it after all
            continue
        number += 1


def wait_for(ask: Callable[[], End | UnderWay]) -> End:
    while isinstance(end := ask(), UnderWay):
        wait_any([end.directory])
    return end


def end_all(folder: str) -> None:
    """End what is under way of an attempt: its starts, its commands, and everything they started. A first start that
    is about to happen finds that it may not."""
    for number in [name for name in _names(folder) if name.isdigit()] or ["1"]:
        attempts.cancel(f"{folder}/{number}")
    for name in _names(f"{folder}/checks"):
        attempts.cancel(f"{folder}/checks/{name}")


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _launch(where: Where, name: str, directory: str, command: str, limit: float) -> None:
    make_directory(where.folder, 0o777)
    spec: Spec = {
        "attempt": f"{where.attempt}.{name}",
        "argv": [*where.prefix, "sh", "-c", f"exec 2>&1\n{command}"],
        "cwd": where.workdir,
        "stdin": None,
        "env": where.environment,
        "limit": limit if where.left is None else min(limit, max(where.left, 0.1)),
        "grace": GRACE,
        "output_cap": _KEPT,
        "pool": where.pool,
        "cap": _TOGETHER,
    }
    if where.masked:
        spec["masked"] = list(where.masked)
    if where.lease:
        spec["lease"] = where.lease
    attempts.launch(directory, spec)


def _end(directory: str, command: str, result: Result, limit: float) -> CommandEnd:
    kind: EndKind = "failed"
    reason = ""
    if result["cancelled"]:
        reason = "it was cancelled"
    elif result["timed_out"] and result["duration"] >= limit:
        reason = f"the time limit of {limit:g} s was reached"
    elif result["timed_out"]:
        kind, reason = "out_of_time", OUT_OF_TIME
    elif result["error"]:
        reason = str(result["error"])
    elif result["signal"] is not None:
        reason = f"signal {result['signal']}"
    elif result["exit_code"]:
        reason = f"exit status {result['exit_code']}"
    else:
        kind = "passed"
    log = f"{directory}/stdout"
    exit_code = 124 if result["timed_out"] else result["exit_code"]
    return CommandEnd(kind, {"command": command, "exit": exit_code, "reason": reason, "log": log, "tail": _tail(log)})


def _tail(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.path.getsize(log) - 4 * _TAIL))
            return file.read().decode("utf-8", "replace")[-_TAIL:].strip()
    except OSError:
        return ""


# ---- plans in files


LONGEST_DOCUMENT = 1 << 20  # bytes; of what a command printed, its end


def plan_of_step(root: str, folder: str, slug: str, waves: Waves) -> Plan:
    """The first of the step's plans that has any items. PlanRefused where a plan in the planner's form is not in
    order."""
    files = existing(root, _pattern(folder, waves["items"], slug)) if waves["items"] else []
    texts = {os.path.relpath(path, folder): text(root, path) for path in files}
    for name in waves["plan"]:
        for source in existing(root, _pattern(folder, name, slug)):
            plan = _read_once(text(root, source), texts, os.path.relpath(source, folder))
            if plan["items"]:
                return {**plan, "items": [_with_source(item, list(texts)) for item in plan["items"]]}
    return {"items": [], "warnings": []}


_read: dict[tuple[str, tuple[tuple[str, str], ...], str], Plan] = {}
_MOST_KEPT = 4


def _read_once(body: str, texts: Mapping[str, str], name: str) -> Plan:
    """A plan is read when its planner has ended, and not again in the turn that plans with it: others wait for that
    turn."""
    if len(body) > LONGEST_DOCUMENT:
        message = f"{name} has {len(body):,} characters; a plan has {LONGEST_DOCUMENT:,} at most"
        raise PlanRefused("plan-too-long", message, [], "divide the work into several runs")
    asked = (body, tuple(sorted(texts.items())), name)
    if asked not in _read:
        plan = read_plan(body, texts, name)
        while len(_read) >= _MOST_KEPT:
            del _read[next(iter(_read))]
        _read[asked] = plan
    return deepcopy(_read[asked])


def _with_source(item: PlannedItem, files: list[str]) -> PlannedItem:
    """The item's own file, as a path below the documents."""
    if "source" not in item:
        return item
    return {
        **item,
        "source": next((path for path in files if os.path.basename(path) == item["source"]), item["source"]),
    }


def plan_problem(plan: AttemptPlan) -> str:
    """Why the plan that this attempt wrote cannot be carried out; "" where it can, or where it wrote none."""
    for step in plan.pipeline["steps"]:
        if step["kind"] == "waves" and any(name in step["waves"]["plan"] for name in plan.seat["out"]):
            waves = step["waves"]
            try:
                items = plan_of_step(plan.workdir, os.path.normpath(plan.documents), plan.run["id"], waves)["items"]
            except PlanRefused as refused:
                return f"the plan cannot be carried out: {refused.message}"
            if not items and waves["no_items"] != "one":
                return f"no item was found in {', '.join(waves['plan'])}; list the tasks in a `tenuto-plan` block"
            problem = impossible(waves, items, plan.run["switches"]) if items else ""
            if problem:
                return f"the plan cannot be carried out: {problem}"
    return ""


def text(root: str, path: str) -> str:
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def _pattern(folder: str, name: str, slug: str) -> str:
    return os.path.normpath(f"{folder}/{name.replace('{slug}', slug).replace('{iteration}', '*')}")


# ---- outputs


_LARGEST = 8 << 20  # of an output that is read for findings; larger ones are only hashed


def look(plan: AttemptPlan, directory: str) -> FileStates:
    """Every output, and every file of its item, as it is before the attempt: hash and time of the last write.
    Append-only files are copied aside."""
    seen = {path: _state(plan.workdir, path) for name in plan.deliverables for path in existing(plan.workdir, name)}
    seen |= _item_files(plan)
    for path in _append_only(plan):
        if path in seen and seen[path]["sha256"]:
            with open(os.path.join(plan.workdir, path), "rb") as source, open(_aside(directory, path), "wb") as kept:
                kept.write(source.read())
    return seen


def check(plan: AttemptPlan, before: FileStates, verdict: str, directory: str) -> Receipt:
    receipt: Receipt = {"outputs": {}, "checks": [], "problem": ""}
    for pattern in plan.deliverables:
        for path in existing(plan.workdir, pattern):
            if pattern in plan.outputs or before.get(path) != _state(plan.workdir, path):
                receipt["outputs"][path] = _state(plan.workdir, path)
    problems = [
        _put_back(plan, path, before[path], directory)
        for path in _append_only(plan)
        if path in before and before[path]["sha256"]
    ]
    for path in [path for path, state in receipt["outputs"].items() if not state["sha256"]]:
        problems.append(f"the output {path} has {receipt['outputs'].pop(path)['size']} bytes; {LARGEST} are the most")
    links = [path for path in receipt["outputs"] if _is_link(plan, path)]
    for path in links:
        del receipt["outputs"][path]
    if verdict == "DONE":
        problems += [_output_problem(plan, pattern, before) for pattern in plan.outputs]
        problems.append("" if any(problems) else plan_problem(plan))
    problems += [f"the output {path} is a link, or lies behind one" for path in links]
    receipt["problem"] = next(filter(None, problems), "")
    _read_words(plan, receipt)
    return receipt


def result_in(plan: AttemptPlan, before: FileStates, reply: str) -> tuple[object, str]:
    """(the result that was asked for, ""), or (None, why it does not count): where it is, and what is wrong there."""
    asked = plan.seat["result"]
    if asked is None:
        return None, ""
    if asked["file"]:
        where = f"the result {plan.path(asked['file'])}"
        body, problem = _result_file(plan, plan.path(asked["file"]), before)
    elif plan.seat["command"]:
        where, body, problem = "its standard output", reply, "" if reply.strip() else "it printed no result"
    else:
        body, where = handed_in(reply)
        problem = "" if body else f"it hands in no result: {where}"
    if problem:
        return None, problem
    if len(body.encode("utf-8", "replace")) > LARGEST_RESULT:
        return None, f"{where} is larger than {LARGEST_RESULT} bytes; put what is long into a document"
    try:
        value = loads_strict(body)
    except NotJson as wrong:
        return None, f"{where} is not JSON: {wrong}"
    found = problems(asked, value)
    return (None, f"{where} does not fit its schema: {'; '.join(found)}") if found else (value, "")


def _result_file(plan: AttemptPlan, path: str, before: FileStates) -> tuple[str, str]:
    full = os.path.join(plan.workdir, path)
    if not os.path.isfile(full):
        return "", f"the result {path} does not exist"
    if _is_link(plan, path):
        return "", f"the result {path} is a link, or lies behind one"
    if before.get(path) == _state(plan.workdir, path):
        return "", f"the result {path} was not written"
    with open(full, "rb") as file:
        body = file.read(LARGEST_RESULT + 1)
    try:
        return body.decode(), ""
    except UnicodeDecodeError as wrong:
        if len(body) > LARGEST_RESULT:
            return body.decode("utf-8", "replace"), ""
        return "", f"the result {path} is not UTF-8 at byte {wrong.start}"


def written(plan: AttemptPlan, before: FileStates) -> list[str]:
    """Those of its item's files that are not as they were before the attempt."""
    now = _item_files(plan)
    return [path for path in plan.item_files if now.get(path) != before.get(path)]


def wants_checks(plan: AttemptPlan, commands: dict[str, str]) -> bool:
    return any(wanted["run"] or commands.get(wanted["name"]) for wanted in plan.seat["checks"])


def run_checks(plan: AttemptPlan, commands: dict[str, str], where: Where) -> Checked | UnderWay:
    results: list[CheckResult] = []
    for number, wanted in enumerate(plan.seat["checks"], 1):
        command = wanted["run"] or commands.get(wanted["name"], "")
        if command:
            end = pursue(where, titled("check", number, wanted["name"]), command, wanted["time_limit"])
            if isinstance(end, UnderWay):
                return end
            results.append({**end.result, "name": wanted["name"]})
            if end.kind != "passed":
                return Checked(end.kind, results)
    return Checked("passed", results)


def problem_of(checks: Checked) -> str:
    if checks.kind == "passed":
        return ""
    last = checks.results[-1]
    return f"the engine ran '{last['command']}' itself: {last['reason']}\n{last['tail']}".strip()


def _output_problem(plan: AttemptPlan, pattern: str, before: FileStates) -> str:
    paths = existing(plan.workdir, pattern)
    if not paths:
        return f"the output {pattern} does not exist"
    inside = os.path.realpath(plan.workdir) + os.sep
    for path in paths:
        full = os.path.join(plan.workdir, path)
        if not os.path.realpath(full).startswith(inside):
            return f"the output {path} is a link that leads outside"
        if _blank(full):
            return f"the output {path} is empty"
    if all(path in before and before[path] == _state(plan.workdir, path) for path in paths):
        return f"the output {pattern} was not written"
    return ""


def _is_link(plan: AttemptPlan, path: str) -> bool:
    """Then it is not kept: it may lead elsewhere by the time it is read."""
    return os.path.realpath(os.path.join(plan.workdir, path)) != os.path.join(os.path.realpath(plan.workdir), path)


def traps_in_the_way(plan: AttemptPlan) -> list[str]:
    """Links, pipes, sockets and devices in the place of its outputs, and folders of the run's documents that are links:
    whoever writes there writes elsewhere, or waits for ever. Folders above the documents are the user's."""
    documents, found = plan.boundary()["documents"], []
    for pattern in plan.deliverables:
        folder = os.path.dirname(pattern.partition("*")[0])
        names = glob.glob(as_glob(pattern), root_dir=plan.workdir, recursive=True) if "*" in pattern else [pattern]
        for name in (folder, *names):
            parts = name.split("/")
            for path in ("/".join(parts[:length]) for length in range(1, len(parts) + 1)):
                own = path in names or (documents and path.startswith(f"{documents}/"))
                if own and _is_trap(os.path.join(plan.workdir, path)):
                    found.append(path)
                    break
    return list(dict.fromkeys(found))


def _is_trap(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def shared_in_the_way(plan: AttemptPlan) -> list[str]:
    """Outputs that are one file with another name (hard links): what is written there is written to the other, too."""
    found = [path for name in plan.deliverables for path in existing(plan.workdir, name)]
    return [path for path in dict.fromkeys(found) if _has_other_names(os.path.join(plan.workdir, path))]


def _has_other_names(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def _blank(path: str) -> bool:
    if os.path.getsize(path) > 4096:
        return False
    with open(path, "rb") as file:
        return not file.read().strip()


def _append_only(plan: AttemptPlan) -> list[str]:
    return [plan.path(name) for name in plan.seat["append_only"]]


def _put_back(plan: AttemptPlan, path: str, before: FileState, directory: str) -> str:
    """Old text that was changed is restored; what the agent made of it stays beside the attempt."""
    full = os.path.join(plan.workdir, path)
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
        copies.put(plan.workdir, path, old)  # never through a link that stands there now
    except Refused as refused:
        return f"{said}; it cannot be put back: {refused.message}"
    return f"{said} (it was put back)"


def _aside(directory: str, path: str) -> str:
    return os.path.join(directory, f"append-only-{digest(path.encode())[:12]}")


def _read_words(plan: AttemptPlan, receipt: Receipt) -> None:
    """Severities and the JSON answer, from the outputs: the rules over members need them."""
    severities: list[str] = []
    for path in (path for pattern in plan.outputs for path in existing(plan.workdir, pattern)):
        full = os.path.join(plan.workdir, path)
        if os.path.getsize(full) > _LARGEST:
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            text = file.read()
        severities += [finding["severity"] for finding in findings(text)]
        if receipt.get("answer") is None and plan.step["rule"] in ("audit", "review"):
            receipt["answer"] = answer(text)
    receipt["severities"] = severities


def _item_files(plan: AttemptPlan) -> FileStates:
    """A file that we may not read is left out."""
    found = [path for path in plan.item_files if os.access(os.path.join(plan.workdir, path), os.R_OK)]
    return {path: _state(plan.workdir, path) for path in found if os.path.isfile(os.path.join(plan.workdir, path))}


def _state(root: str, path: str) -> FileState:
    """No hash: the file is larger than anything that can be kept."""
    full = os.path.join(root, path)
    found = os.stat(full)
    if found.st_size > LARGEST:
        return {"sha256": "", "size": found.st_size, "written": found.st_mtime_ns}
    with open(full, "rb") as file:
        body = file.read()
    return {"sha256": digest(body), "size": len(body), "written": os.stat(full).st_mtime_ns}


# ---- a DONE that changed nothing


def hold(
    watch: ChangeWatch, plan: AttemptPlan, before: FileStates, changed: list[str], summary: str
) -> tuple[str, str]:
    """(problem, note) of a DONE."""
    if not plan.item or not plan.item["files"]:
        return "", ""
    code = [path for path in watch.touched(plan, changed) if not plan.is_document(path)]
    own = [path for path in changed if any(fits(name, path) for name in plan.item_patterns())]
    done = bool(code or own or written(plan, before))
    since = None if done else _since_start(plan)
    there = done or _is_there(plan)
    seen: Seen = {"said": summary, "changed": done, "there": there, "since_start": since}
    answer = unproven(plan.run, plan.name, plan.seat, seen)
    return answer["problem"], answer["note"]


def _is_there(plan: AttemptPlan) -> bool:
    """One of the item's files, or what can be meant by them."""
    names = plan.item["files"] if plan.item else []
    if any(os.path.lexists(os.path.join(plan.workdir, name.partition("*")[0] or ".")) for name in names):
        return True
    known = git.ask(plan.workdir, "ls-files", "--cached", "--others", "--exclude-standard", "-z").out.split("\0")
    return any(fits(name, path) for path in known if path for name in plan.item_patterns())


def _since_start(plan: AttemptPlan) -> bool | None:
    settings, files = plan.run["settings"], plan.item_patterns()
    base = settings.get("origin_commit") or settings.get("base_commit")
    now = git.snapshot(plan.workdir, base) if base else None
    if now is None:
        return None
    if any(fits(name, path) for path in now for name in files):
        return True
    here = [path for path in plan.item_files if os.path.isfile(os.path.join(plan.workdir, path))]
    known = git.ask(plan.workdir, "--literal-pathspecs", "ls-files", "-z", "--", *here).out.split("\0") if here else []
    return None if any(path not in known for path in here) else False


# ---- secrets in files


def leak_problem(workspace: Workspace, plan: AttemptPlan, paths: list[str]) -> str:
    """What holds what was declared secret is not taken in, nor merged; where it stands, it is the agent's doing."""
    for path, name in leaking(workspace, plan, paths).items():
        return f"the output {git.in_words(path)} holds the value of {name}, which is secret"
    return ""


def leaking(workspace: Workspace, plan: AttemptPlan, paths: list[str]) -> dict[str, str]:
    """Those of these files that hold a secret, and which one. One that is too large to be kept is not read."""
    found: dict[str, str] = {}
    if not workspace.has_secrets:
        return found
    secrets = workspace.secrets
    for path in paths:
        full = os.path.join(plan.workdir, path)
        if os.path.isfile(full) and os.path.getsize(full) <= LARGEST:
            with open(full, "rb") as file:
                name = secrets.holder(file.fileno())
            if name:
                found[path] = name
    return found
