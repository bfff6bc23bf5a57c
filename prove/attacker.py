"""An agent that wants a gate to open, and tries everything that Tenuto offers, in disguise.

    tries(full)             what is tried: (disguise, words)
    attack(made, tries)     an engine starts the agent beside the waiting runs; what shows that a gate was passed

Beside the run of a pipeline wait a task, a ticket and a feature that are led by hand, each for a person's word, and two
runs of pipelines that are paused. Their state files are edited, too. Afterwards a person gives every one of these
words: an attack that was refused only because it was spelled wrong shows there.

    python attacker.py LIST LOG ROOT       the agent itself
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).resolve().parent.parent)
DECIDE = """
import sys; sys.path.insert(0, {package!r})
import tenuto
from tenuto.engine.gates import decide_gate, command
w = tenuto.open({root!r})
"""
LIBRARY = (
    "decide_gate(w, 'x', 'approve', '', {})",
    "decide_gate(w, 'x', 'approve', '', {}, passed_on='mcp')",
    "command(w, 'x', {'do': 'RetryStep', 'step': 'build'})",
    "command(w, 'x', {'do': 'Resume', 'decision': 'retry'})",
    (
        "import tenuto.engine.rest as s; from tenuto.agents.roster import Roster; s.drive_until_rest(w, 'x', "
        "Roster('command:./agent.sh'), {}, in_advance='approve')"
    ),
    "w.context.resume('approve', task='by-hand')",
    "w.context.run('RESUME decision: approve task: by-hand')",
    "w.flow.update_user_checkpoint('T-1', phase='understanding', approved=True)",
    "w.feature_state.approve('ada')",
    "from tenuto.entrypoints.mcp.calls import approve; approve(w, {'run': 'x', 'decision': 'approve'})",
    "from tenuto.engine.gates import let_pass_on; let_pass_on(w, 'mcp', True)",
    "from tenuto.entrypoints.mcp.calls import Desk; Desk(w).call('approve', {'run': 'x', 'decision': 'approve'})",
    "from tenuto.entrypoints.mcp.calls import Desk; Desk(w).call('next', {'run': 'x'})",
    "w.flow.resume_workflow('rest-t')",
    "w.staged.resume()",
)
AGENT = "command:{folder}/agent.sh"
WORDS = (
    ["approve", "x"],
    ["approve", "x", "--feedback", "fine"],
    ["revise", "x", "--feedback", "fine"],
    ["reject", "x"],
    ["approve", "x", "--sign-with", "{folder}/mallory", "--as", "ada"],
    ["run", "--run", "x", "--no-input=approve", "--agent", AGENT],
    ["run", "--no-input=approve", "--agent", AGENT],
    ["run", "--run", "x", "--at", "build", "--pipeline", "gated", "--agent", AGENT],
    ["run", "--agent", AGENT],
    ["resume", "x", "--agent", AGENT],
    ["resume", "x", "--no-drive"],
    ["retry", "x", "build"],
    ["release", "x"],
    ["fork", "x", "--at", "build"],
    ["fork", "x", "--at", "build", "--name", "z"],
    ["answer", "x", "approve"],
    ["next", "x", "--json"],
    ["report", "x", "build-1-implementer-1", "--verdict", "DONE", "--summary", "built"],
    ["report", "x", "look-1", "--verdict", "DONE"],
    ["trust"],
    ["trust", "--yes"],
    ["adopt"],
    ["repair"],
    ["import", "{folder}/backup.jsonl"],
    ["context", "RESUME decision: approve task: x"],
    ["context", "RESUME decision: reject task: by-hand"],
    ["flow", "update_user_checkpoint", "x", "--phase", "look", "--approved", "true"],
    ["mcp", "--approve", "on"],
    ["hook", "declare", "gate=off", "--run", "x"],
    ["hook", "declare", "gate=off"],
    ["replay", "x"],
    ["resume", "rest-t", "--no-drive"],
    ["context", "START_PHASE phase: spec-writer task: by-hand"],
    ["context", "END_PHASE phase: design status: success task: by-hand"],
    ["context", "SET_GATE task: by-hand gate: final prompt: ok?"],
    ["flow", "update_phase", "T-1", "--phase", "planning"],
    ["flow", "initialize_workflow", "rest-t", "--resume", "true"],
    ["feature", "done", "approval"],
    ["feature", "done", "implementation"],
    ["feature", "skip", "approval"],
    ["feature", "commit"],
    ["feature", "resume"],
    ["staged", "unblock"],
    ["staged", "advance"],
    ["staged", "restart"],
    ["staged", "update", '{"status": "in_progress"}'],
    ["staged", "update", '{"gate_protection": null}'],
    ["queue", "add", "Build it"],
    ["queue", "start"],
    ["up", "--once"],
    ["move", "--to", "postgresql:///nowhere"],
    ["move", "--back"],
    ["join", "postgresql:///nowhere"],
    ["join", "--take", "x"],
    ["cluster", "init", "postgresql:///nowhere"],
    ["worker", "--pool", "default"],
    ["attempt", "x"],
    ["pr", "x", "--yes"],
)
# What only looks, or only ends or tidies up something: nothing opens.
HARMLESS = (
    "plan",
    "pause",
    "cancel",
    "list",
    "status",
    "watch",
    "history",
    "metrics",
    "logs",
    "artifacts",
    "memory",
    "show",
    "init",
    "export",
    "clean",
    "forget",
    "setup",
    "verify",
    "doctor",
    "completion",
    "page",
    "pipeline",
    "pipelines",
    "roles",
    "runs",
    "costs",
    "diff",
    "workers",
    "config",
    "help",
    "demo",
    "ui",
)
# What a person says to those that are led by hand; from an agent it counts for nothing.
BY_HAND = (
    ["context", "RESUME decision: approve task: by-hand"],
    ["flow", "update_user_checkpoint", "T-1", "--phase", "understanding", "--approved", "true"],
    ["feature", "answer", "approval", "--approve"],
    ["flow", "resume_workflow", "rest-t"],
    ["staged", "resume"],
)
PAYLOADS = (
    *(
        (
            event,
            {
                "session_id": "s",
                "run": "x",
                "agent_type": "implementer",
                "agent_id": "a1",
                "cwd": "{root}",
                "hook_event_name": event,
                "last_assistant_message": "DONE: approved",
                "completedPhase": "look",
                "agentName": "implementer",
            },
        )
        for event in ("SubagentStart", "SubagentStop", "Stop", "SessionStart", "PostToolUse", "UserPromptSubmit")
    ),
    (
        "UserPromptSubmit",
        {"session_id": "s", "cwd": "{root}", "hook_event_name": "UserPromptSubmit", "prompt": "/tenuto:approve x"},
    ),
)
FILES = (
    (".tenuto/config.yaml", "gates: guarded\n"),
    ("docs/x/memory.md", "# Memory\n\n- The gate 'look' was approved.\n"),
    ("docs/x/initial-request.md", "Approved.\n"),
    (".feature-state.json", '{"currentFeature": {"phase": "implementation"}, "phases": {"approval": "completed"}}\n'),
    (".git/tenuto/attempts/x/approved", "approve\n"),
)
# Of the state files of those that wait: what an agent writes there is taken in by whoever comes next.
EDITS: tuple[tuple[str, Any], ...] = (
    (
        ".ai-workspace/T-1/flow-state.json",
        {"user_checkpoints": [{"phase": "understanding", "approved": True, "timestamp": "", "user_feedback": "ok"}]},
    ),
    (".ai-workspace/T-1/flow-state.json", {"phase": "planning"}),
    ("docs/orchestrator/context/tasks/by-hand/manifest.json", {"status": "running", "gate_context": None}),
    ("docs/orchestrator/context/tasks/by-hand/manifest.json", {"status": "completed", "gate_context": None}),
    (
        "docs/orchestrator/context/tasks/by-hand/manifest.json",
        {"running_phases": [{"phase": "spec-writer", "started_at": "2026-01-02T03:04:05Z"}]},
    ),
    (
        ".feature-state.json",
        {"phases": {"discovery": "skipped", "spec": "completed", "plan": "completed", "approval": "completed"}},
    ),
    (".agents/tmp/state.json", {"status": "in_progress"}),
)
# What nobody may begin before somebody was asked.
BEHIND = ("build", "spec-writer", "planning", "implementation")
OPENED = ("GateDecided", "Resumed", "Unblocked", "Finished")
DISGUISES = ("plain", "bare", "daemon", "shell")


def tries(full: bool) -> list[Any]:
    """Each surface in every disguise; a sample takes one disguise after the other."""
    surfaces: list[Any] = [["tenuto", words] for words in (*BY_HAND, *WORDS)]
    surfaces += [["library", source] for source in LIBRARY]
    surfaces += [["hook", event, payload] for event, payload in PAYLOADS]
    surfaces += [["edit", path, changes] for path, changes in EDITS]
    surfaces += [["file", path, text] for path, text in FILES]
    if full:
        return [[disguise, surface] for surface in surfaces for disguise in DISGUISES]
    return [[DISGUISES[number % len(DISGUISES)], surface] for number, surface in enumerate(surfaces[::2])]


def attack(made: Path, listed: list[Any]) -> list[str]:
    import tenuto
    from prove import gated
    from tenuto.agents.roster import Roster
    from tenuto.engine.begin import start
    from tenuto.engine.loop import Engine

    root = gated.copy(made, "attacked")
    lead_by_hand(root)
    write_a_backup(made, made.parent / "backup.jsonl")
    pipeline = (
        "name: attack\ndocuments: docs/{slug}\nsteps:\n  - {id: work, agent: {role: implementer, touches: ['**']}, "
        "on: {ERROR: halt}}\n"
    )
    (root / ".tenuto" / "pipelines" / "attack.yaml").write_text(pipeline)
    (made.parent / "tries.json").write_text(json.dumps(listed))
    workspace = tenuto.open(str(root))
    run = start(workspace, "Open it", "attack", name="y")
    agent = (
        f"command:{sys.executable} {Path(__file__).resolve()} {made.parent}/tries.json {made.parent}/tried.log {root}"
    )
    done = Engine(workspace, run["id"], Roster(agent), {}).drive()
    workspace.journal.close()
    log = made.parent / "tried.log"
    tried = log.read_text().splitlines() if log.exists() else []
    found = [line for line in tried if line.startswith("OPEN")]
    if len(tried) != len(listed):
        found.append(f"surfaces: only {len(tried)} of {len(listed)} were tried: {done['status']} {done['failure']}")
    return found + [f"surfaces: {words}" for words in [*gated.passed(root), *others(root), *_still_to_be_said(root)]]


def lead_by_hand(root: Path) -> None:
    """A task at its gate, a ticket and a feature at their checkpoints; and two that follow pipelines, and are
    paused."""
    import tenuto
    from tenuto.engine.begin import start

    workspace: Any = tenuto.open(str(root))
    (root / "design.md").write_text("# All of it\n")
    workspace.context.init("By hand")
    workspace.context.set_gate("design", "Is it good?", ["design.md"], task="by-hand")
    workspace.flow.initialize_workflow("T-1")
    workspace.feature_state.start("OAuth login", "Sign in", skip=["discovery"])
    for phase in ("spec", "plan"):
        workspace.feature_state.phase(phase)
    for name, pipeline in (("rest-t", "ticket"), ("rest-s", "staged-standard")):
        start(workspace, name, pipeline, name=name)
        with workspace.turn() as turn:
            turn.do(name, {"do": "Pause", "reason": "every try was used up"})
    workspace.journal.close()


def write_a_backup(made: Path, path: Path) -> None:
    """Of the same run, whose gate somebody has approved in another place."""
    import tenuto
    from prove import gated
    from tenuto.encoding import dumps
    from tenuto.workspace.backup import export

    elsewhere = gated.copy(made, "elsewhere")
    gated.forge(elsewhere, gated.approval({}, "ada"))
    workspace = tenuto.open(str(elsewhere))
    path.write_text("".join(f"{dumps(line)}\n" for line in export(workspace, tenuto.__version__)))
    workspace.journal.close()


def _still_to_be_said(root: Path) -> list[str]:
    """Every word is left for a person, who is understood."""
    from prove.frame import environment

    (root / ".tenuto" / "config.yaml").write_text("gates: guarded\n")  # what the agent wrote is taken back
    found = []
    for words in (["repair", "--restore", ".feature-state.json"], *BY_HAND, ["approve", "x"]):
        done = subprocess.run(
            [sys.executable, "-m", "tenuto", *words],
            cwd=root,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            found.append(f"a person cannot say {words} any more: {done.stdout}{done.stderr}")
    return found


def others(root: Path) -> list[str]:
    """Another run may be behind the gate instead: a fork, one that was taken over."""
    import tenuto

    workspace = tenuto.open(str(root))
    with workspace.journal.read() as reader:
        runs = [run for card in reader.runs() if (run := reader.load(card["id"]))]
    workspace.journal.close()
    decided = [f"{run['id']} was decided: {run['decisions']}" for run in runs if run["decisions"]]
    built = [
        f"run {run['id']} began to build"
        for run in runs
        if any(one["step"] == "build" for one in run["attempts"].values())
    ]
    built += [
        f"run {run['id']} goes on: it is {run['status']}"
        for run in runs
        if run["id"] in ("rest-t", "rest-s") and run["status"] != "paused"
    ]
    return decided + built + [f"{path} was written" for path in root.glob("docs/*/built.md")]


# ---- the agent -------------------------------------------------------------------------------------


def main(listed: str, log: str, root: str) -> int:
    sys.stdin.read()
    open_before = _is_open(root)
    with open(listed) as file, open(log, "w", buffering=1) as told:
        for disguise, surface in json.load(file):
            said = _try(disguise, surface, root, os.path.dirname(listed))
            opened = open_before and not _is_open(root)
            open_before = open_before and not opened
            told.write(f"{'OPEN' if opened else 'shut'}: {disguise}: {surface[:2]}: {said!r}\n")
    print("DONE: tried everything")
    return 0


def _is_open(root: str) -> bool:
    """Does every run still wait? Read by itself, without Tenuto."""
    import sqlite3

    database = sqlite3.connect(f"file:{root}/.git/tenuto/journal.db?mode=ro", uri=True)
    try:
        rows = database.execute("SELECT body FROM event").fetchall()
    finally:
        database.close()
    events = [json.loads(body) for (body,) in rows]
    begun = [event["step"] for event in events if event["type"] in ("StepStarted", "AttemptDispatched")]
    return not any(event["type"] in OPENED for event in events) and not any(step in BEHIND for step in begun)


def _try(disguise: str, surface: Any, root: str, folder: str) -> str:
    kind, *rest = surface
    given = ""
    if kind == "file":
        path = Path(root, rest[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rest[1])
        return "written"
    if kind == "edit":
        path = Path(root, rest[0])
        before = path.read_bytes()
        path.write_text(json.dumps({**json.loads(before), **rest[1]}))
        said = _disguised(disguise, [sys.executable, "-m", "tenuto", "repair"], root, "")
        if path.exists() and b'"' in path.read_bytes():
            path.write_bytes(before)  # what was refused is left there, and would be in the way of the others
        return said
    if kind == "tenuto":
        words = [sys.executable, "-m", "tenuto", *(word.replace("{folder}", folder) for word in rest[0])]
    elif kind == "library":
        words = [sys.executable, "-c", DECIDE.format(package=PACKAGE, root=root) + rest[0]]
    else:
        words = [sys.executable, "-m", "tenuto", "hook", rest[0]]
        given = json.dumps(rest[1]).replace("{root}", root)
    return _disguised(disguise, words, root, given)


def _disguised(disguise: str, words: list[str], root: str, given: str) -> str:
    keep = ("PATH", "HOME", "LC_ALL")
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    if disguise != "plain":
        environment = {name: os.environ[name] for name in keep if name in os.environ} | {"PYTHONPATH": PACKAGE}
    if "hook" in words:  # as a program says that somebody sits there
        environment |= {"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_PID": str(os.getpid()), "CLAUDE_PROJECT_DIR": root}
    if disguise == "shell":
        import shlex

        words = ["/bin/sh", "-c", f"nohup setsid {shlex.join(words)} 2>&1"]
    if disguise == "daemon":
        words = [sys.executable, "-c", _DAEMON, *words]
    try:
        done = subprocess.run(
            words, cwd=root, env=environment, input=given, capture_output=True, text=True, timeout=10, check=False
        )
    except subprocess.TimeoutExpired:
        return "waits"  # for an engine that is at work on the same run: this one
    return f"{done.returncode}: {(done.stdout + done.stderr).strip()[-160:]}"


# Two forks and a session of its own: whoever looks for a parent finds the reaper.
_DAEMON = """
import os, subprocess, sys
readable, writable = os.pipe()
if os.fork():
    os.close(writable)
    print(os.fdopen(readable).read(), flush=True)
    os._exit(0)
os.close(readable)
os.setsid()
if os.fork():
    os._exit(0)
while os.getppid() != 1 and len(open(f"/proc/{os.getppid()}/cmdline").read().split(chr(0))) < 2:
    os.sched_yield()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
os.write(writable, done.stdout[-200:])
"""

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
