"""Promise 13: hooks cannot recurse, and cannot break the host.

forced     an error is raised before one line after the other of a hook's own way through Tenuto, also a second one
           while
           the first is told: the exit status is 0, the answer is none or an object, nothing is blocked
streams    standard streams that the host has closed, and a folder that is gone: nothing is said into a file of ours
recursion  a host whose every program calls the hook again: the second one does nothing
"""

from __future__ import annotations

import json
import os
import posix
import random
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import tenuto
from prove.frame import ROOT, Amount, Progress, Result, dice, place, repository, spread
from tenuto.entrypoints import hook, launch
from tenuto.hooks import call as hook_call
from tenuto.workspace.checkup import examine

PAYLOADS = ROOT / "tests" / "data" / "payloads" / "claude-2.1.325"
NAMES = (
    "SubagentStart",
    "SubagentStop",
    "PreToolUse.Agent",
    "PreToolUse.Write",
    "PostToolUse.Write",
    "PreCompact.auto",
    "SessionStart.compact",
    "SessionStart.resume",
    "Stop",
    "UserPromptSubmit",
)
# Of other hosts, and of those that call without a session: other payloads, other answers, other ways to fail.
OTHERS = (
    "gemini-0.61.0/BeforeTool.write_file",
    "gemini-0.61.0/BeforeTool.invoke_agent",
    "gemini-0.61.0/BeforeAgent",
    "codex-0.166.0/PreToolUse.apply_patch",
    "seed/task_update",
    "seed/SubagentStop",
)
SEED: dict[str, Any] = {
    "task_update": {"type": "task_update", "taskId": 1, "newStatus": "completed", "timestamp": "2026-01-02T03:04:05Z"},
    "SubagentStop": {
        "agentName": "spec-writer",
        "completedPhase": "spec",
        "nextPhase": "plan",
        "timestamp": "2026-01-02T03:04:05Z",
    },
}
SESSION = "8dd9056e-c8e9-4b44-be02-7f3be68ade4c"
ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: KeyError("forced"),
    lambda: OSError(28, "No space left on device"),
    lambda: RuntimeError("forced"),
    lambda: MemoryError(),
    lambda: RecursionError("forced"),
    lambda: KeyboardInterrupt(),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "forced"),
)
DEEPEST = 6
OUTERMOST = (
    ("call.py", "leave_with"),
    ("launch.py", "answer"),
    ("launch.py", "_is_call_of_a_hook"),
    ("launch.py", "_name"),
    ("sqlite.py", "__del__"),
)


class Case(NamedTuple):
    payload: str
    entrance: str  # script: python -I -S .../hook.py; command: tenuto hook
    errors: tuple[tuple[int, int], ...]  # (line, which error)


def prove(amount: Amount, tell: Progress) -> Result:
    batches = [(name, entrance, amount.full) for name in NAMES for entrance in ("script", "command")]
    batches += [(name, "script", amount.full) for name in OTHERS]
    if not amount.full:
        batches = [*batches[1:20:5], batches[-2]]
    total = len(batches) + 2
    tried, violations = 0, list[str]()
    for count, found in spread(_force, batches, amount.jobs, tell, of=total):
        tried += count
        violations += found
    closed, found = _close_streams(amount.full)
    violations += found
    tell(total - 1, total)
    depth, found = _recurse(guarded=True)
    violations += found
    tell(total, total)
    figures = {
        "errors forced": f"{tried:,}",
        "closed streams": str(closed),
        "depth": str(depth),
        "hosts broken": str(len(violations)),
    }
    return Result(tried + closed + 1, violations, figures)


def control(amount: Amount) -> Result:
    """A hook that lets errors through, and a host that takes the guard away."""
    kept = hook_call.HookProcess.fail, launch._is_call_of_a_hook
    hook_call.HookProcess.fail, launch._is_call_of_a_hook = _raise, lambda words: False  # type: ignore[method-assign]
    try:
        with place() as folder:
            root = _repository(folder)
            cases = [Case("SubagentStop", "command", ((line, 0),)) for line in range(20, 200, 30)]
            found = [words for case in cases for words in _call(root, case)]
    finally:
        hook_call.HookProcess.fail, launch._is_call_of_a_hook = kept  # type: ignore[method-assign]
    return Result(len(cases) + 1, found + _recurse(guarded=False)[1], {})


def _raise(self: Any, error: BaseException) -> NoReturn:
    raise error


# ---- forced errors ---------------------------------------------------------------------------------


def _repository(folder: Path) -> Path:
    root = repository(folder / "repository")
    workspace = tenuto.open(str(root))
    workspace.feature_state.start("OAuth login", "Let people sign in", session=SESSION)
    workspace.journal.close()
    return root


def _force(batch: tuple[str, str, bool]) -> tuple[int, list[str]]:
    name, entrance, full = batch
    found: list[str] = []
    with place() as folder:
        root = _repository(folder)
        lines = _lines(root, Case(name, entrance, ()))
        chance = dice("hooks", name, entrance)
        cases = list(_cases(name, entrance, lines, chance, full))
        for case in cases:
            found += _call(root, case)
        workspace = tenuto.open(str(root))
        found += [
            f"{name}, {entrance}: {one['message']}"
            for one in examine(workspace)["findings"]
            if one["severity"] == "damage"
        ]
        workspace.journal.close()
    return len(cases), found


def _cases(name: str, entrance: str, lines: int, chance: random.Random, full: bool) -> Any:
    """Before every line once, with one error after the other; then two errors in one call."""
    step = 1 if full else max(1, lines // 6)
    for line in range(1, lines + 1, step):
        yield Case(name, entrance, ((line, (line + len(name)) % len(ERRORS)),))
    for _ in range(lines // 2 if full else 4):
        first = chance.randrange(1, lines + 1)
        second = first + chance.randrange(1, 30)
        yield Case(name, entrance, ((first, chance.randrange(len(ERRORS))), (second, chance.randrange(len(ERRORS)))))


def _lines(root: Path, case: Case) -> int:
    """How many lines of Tenuto such a call executes."""
    _call(root, case)
    return int((root.parent / "lines").read_text())


def _call(root: Path, case: Case) -> list[str]:
    folder = root.parent
    (folder / "in").write_text(json.dumps(_payload(case.payload, root)))
    pid = os.fork()
    if pid == 0:
        _become_a_hook(root, case)
    _, status = os.waitpid(pid, 0)
    out, err = (folder / "out").read_text("utf-8", "replace"), (folder / "err").read_text("utf-8", "replace")
    return [
        f"{case.payload}, {case.entrance}, {case.errors}: {words}"
        for words in _judge(os.waitstatus_to_exitcode(status), out, err)
    ]


def _payload(name: str, root: Path) -> Any:
    host, _, event = name.rpartition("/")
    if host == "seed":
        return SEED[event]
    path = PAYLOADS.parent / host / f"{event}.json" if host else PAYLOADS / f"{event}.json"
    return json.loads(path.read_text().replace("$PROJECT", str(root)))["stdin"]


def _judge(status: int, out: str, err: str) -> list[str]:
    found = []
    if status != 0:
        found.append(f"exit status {status}: {err[-200:]!r}")
    if "Traceback" in err:
        found.append(f"a traceback: {err[-200:]!r}")
    if "{" in out:
        try:
            told = json.loads(out)
        except ValueError:
            return [*found, f"the answer is half an object: {out!r}"]
        if (
            told.get("decision") == "block"
            or "deny" in json.dumps(told.get("hookSpecificOutput", {}))
            or told.get("continue") is False
        ):
            found.append(f"the host is stopped: {out!r}")
    return found


def _become_a_hook(root: Path, case: Case) -> NoReturn:
    """The process as the host starts it, with everything loaded already; what is not caught ends it as Python would."""
    folder = root.parent
    try:
        os.chdir(root)
        os.dup2(os.open(folder / "in", os.O_RDONLY), 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        # Streams of their own: those of the process around us are not ours to write to.
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        event = case.payload.rpartition("/")[2].partition(".")[0]
        status = _traced(folder, case, event)
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001  as the interpreter does it
        import traceback

        os.write(2, traceback.format_exc().encode())
        status = 1
    os._exit(status)


def _traced(folder: Path, case: Case, event: str) -> int:
    wanted, seen = dict(case.errors), [0]
    package = str(ROOT / "tenuto") + os.sep

    def trace(frame: FrameType, what: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(package):
            return None
        if (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name) in OUTERMOST:
            return trace  # a `try:`, an exit, a call: nothing there can fail
        if what == "line":
            seen[0] += 1
            error = wanted.get(seen[0])
            if error is not None:
                raise ERRORS[error]()
        return trace

    sys.settrace(trace)
    try:
        if case.entrance == "command":
            return launch.answer(["hook", event])
        leave, kept = [0], posix._exit
        posix._exit = leave.append  # type: ignore[assignment,unused-ignore]
        try:
            hook_call.leave_with(hook.main, [event])
        finally:
            posix._exit = kept
        return leave[-1]
    finally:
        sys.settrace(None)
        if not case.errors:
            (folder / "lines").write_text(str(seen[0]))


# ---- closed streams --------------------------------------------------------------------------------

CLOSED = ("<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")


def _close_streams(full: bool) -> tuple[int, list[str]]:
    found: list[str] = []
    cases = [(name, closed) for name in NAMES for closed in CLOSED][:: 1 if full else 9]
    with place() as folder:
        root = _repository(folder)
        gone = folder / "gone"
        for name, closed in cases:
            for where in (root, gone):
                gone.mkdir(exist_ok=True)
                leave = f"rmdir {gone}; " if where == gone else ""
                words = shlex.join(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        str(ROOT / "tenuto" / "entrypoints" / "hook.py"),
                        name.partition(".")[0],
                    ]
                )
                payload = json.dumps(_payload(name, root))
                done = subprocess.run(
                    ["sh", "-c", f"{leave}{words} {closed}"],
                    cwd=where,
                    input=payload,
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
                found += [f"{name} with {closed}: {odd}" for odd in _judge(done.returncode, done.stdout, done.stderr)]
            said = [
                path for path in ("lock", "queue") if (root / ".git" / "tenuto" / path).read_bytes() not in (b"", b"1")
            ]
            found += [f"{name} with {closed}: something was said into {path}" for path in said]
        workspace = tenuto.open(str(root))
        found += [
            f"closed streams: {one['message']}" for one in examine(workspace)["findings"] if one["severity"] == "damage"
        ]
        workspace.journal.close()
    return 2 * len(cases), found


# ---- recursion -------------------------------------------------------------------------------------


def _recurse(guarded: bool) -> tuple[int, list[str]]:
    """Whatever a hook starts (git, here) calls the hook again, as a host would that has hooks on everything."""
    with place() as folder:
        root = _repository(folder)
        (folder / "bin").mkdir()
        program = folder / "bin" / "git"
        event = "PreCompact"
        given = (PAYLOADS / "PreCompact.auto.json").read_text().replace("$PROJECT", str(root))
        (folder / "payload").write_text(json.dumps(json.loads(given)["stdin"]))
        take_away = "" if guarded else "unset TENUTO_HOOK\n"
        program.write_text(
            f"#!/bin/sh\necho $DEPTH >> {folder}/depths\n[ $DEPTH -lt {DEEPEST} ] || exit 0\n{take_away}"
            f"DEPTH=$((DEPTH + 1)) {sys.executable} -I -S {ROOT}/tenuto/entrypoints/hook.py {event} < "
            f"{folder}/payload\nexit 0\n"
        )
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "DEPTH": "1"}
        words = [sys.executable, "-I", "-S", str(ROOT / "tenuto" / "entrypoints" / "hook.py"), event]
        done = subprocess.run(
            words,
            cwd=root,
            env=environment,
            input=(folder / "payload").read_text(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        depths = [int(line) for line in (folder / "depths").read_text().split()] if (folder / "depths").exists() else []
        found = [f"recursion: {words}" for words in _judge(done.returncode, "", done.stderr)]
        if not depths:
            found.append("recursion: the hook started nothing, so nothing was tried")
        if max(depths, default=0) > 1:
            found.append(f"recursion: {max(depths)} hooks inside each other")
        return max(depths, default=0), found
