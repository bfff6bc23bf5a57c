"""What was answered is on the disk: for every path by which Tenuto answers, its system calls are followed.

Each command of a scene runs under strace, with everything that it starts, and the disk model (disk.py) follows.
Whenever the command writes to its standard output, and when it ends, nothing may be undecided that the answer stands
on:

    the journal, its log, and what lies beside it       bytes, length and name
    git's objects, index and references                 bytes and length (git leaves names to the file system)

Of attempts, whose supervisors are processes of their own, other moments count:

    an agent does something                             its claim and its specification are there for good
    a slot is given back                                the result of the attempt that had it is, and so is its output

The broken variant is the same search with every flush taken out of the trace.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from prove.disk import Disk, File, Op
from prove.frame import Result, alone, place
from prove.looking import read_tree
from prove.scenes import Command, Scene, begin, play
from prove.tracing import trace

STATE = ".git/tenuto"
_JOURNAL = (f"{STATE}/journal.db", f"{STATE}/journal.db-wal")
_OF_GIT = (".git/objects/", ".git/refs/", ".git/index", ".git/packed-refs")
_BEFORE_IT_RUNS = ("spec.json", "claim")
_BEFORE_THE_NEXT = ("result.json", "stdout", "stderr")
TRACE_OF_AN_AGENT = "ran."  # an agent makes a file of this name, with its attempt

PIPELINE = """\
name: answered
documents: docs/{slug}
steps:
  - id: planning
    agent: {role: planner, out: plan.md, touches: "**"}
  - id: look
    gate: {name: look, show: [plan.md], prompt: "Is it good?", revise: planning}
  - id: implementation
    waves:
      plan: plan.md
      roles: [{role: implementer, in: plan.md, touches: "**"}]
      default: implementer
      order: barrier
"""
AGENT = """\
cat > /dev/null
: > "ran.$TENUTO_ATTEMPT"
case $TENUTO_ROLE in
planner)
    mkdir -p docs/x; printf '## Wave 1\\n- 01-a (depends_on: none)\\n- 02-b (depends_on: none)\\n' > docs/x/plan.md;;
*)
    echo "$TENUTO_ITEM" > "$TENUTO_ITEM.txt";;
esac
echo "DONE: written"
"""
_RUN = ("run", "--agent", f"command:sh -c {shlex.quote(AGENT)}", "--json")

SCENES = (
    Scene(
        "an engine",
        (),
        (
            ("init",),
            ("run", "Add x", "--name", "x", "--pipeline", "answered", "--workspace", "worktree", *_RUN[1:]),
            ("approve", "x"),
            _RUN,
            ("clean",),
        ),
    ),
    Scene(
        "a backup",
        (),
        (("import", ".git/backup.jsonl"), ("repair",), ("adopt",), ("export", "-o", ".git/again.jsonl")),
    ),
    Scene(
        "a refusal",
        (),
        (
            ("run", "Add x", "--name", "x", "--pipeline", "answered", *_RUN[1:]),
            ("revise", "x", "--feedback", "shorter"),
            _RUN,
            ("reject", "x", "--feedback", "no"),
        ),
    ),
    Scene(
        "a person",
        (("run", "Add x", "--name", "x", "--pipeline", "answered", "--start-only"),),
        (
            ("next", "--json"),
            ("pause", "x", "--reason", "canary-4711"),
            ("fork", "x", "--at", "planning", "--name", "y"),
            ("cancel", "y", "--reason", "no"),
            ("import", ".git/backup.jsonl"),
            ("forget", "canary-4711"),
            ("repair",),
        ),
    ),
    Scene(
        "dialects",
        (("context", "INIT task: Dark mode"),),
        (
            ("context", "-", "STDIN", "STORE phase: spec content: # All of it " + "and colours, " * 30_000),
            ("flow", "initialize_workflow", "T-1"),
            ("flow", "update_user_checkpoint", "T-1", "--phase", "understanding", "--approved", "true"),
            ("staged", "init", "--task", "Dark mode", "--pipelineProfile", "minimal"),
            ("staged", "record-output", "0", "--content", "# What there is\n"),
            ("feature", "start", "OAuth login", "--skip", "discovery"),
            ("memory", "add", "decision", "Colours are variables"),
            ("hook", "task_update", "STDIN", '{"type": "task_update", "taskId": 1, "newStatus": "completed"}'),
        ),
    ),
)


def prove(scenes: tuple[Scene, ...] = SCENES, broken: bool = False) -> Result:
    """`broken`: as if nobody flushed anything."""
    violations: list[str] = []
    answers = commands = 0
    for scene in scenes:
        with alone(), place() as work:
            root = work / "repository"
            _prepare(root, scene)
            for command in scene.commands:
                found = _Followed(root, command, work / "trace", broken)
                answers += found.answers
                commands += 1
                violations += [f"{scene.name}: {' '.join(command)[:60]!r}: {problem}" for problem in found.problems]
    return Result(answers, violations, {"answers followed": f"{answers:,}", "of commands": f"{commands:,}"})


def _prepare(root: Path, scene: Scene) -> None:
    begin(root, Scene(scene.name, (), ()))
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "answered.yaml").write_text(PIPELINE)
    for words in (("add", "."), ("commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=root, check=True)
    _a_backup(root)
    for command in scene.setup:
        done = play(root, command)
        if done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.stdout.decode()}{done.stderr.decode()}")


def _a_backup(root: Path) -> None:
    """Of another repository, with a run of another name, for the import."""
    other = root.parent / "other"
    content = "STORE phase: spec content: # All of it " + "and colours, " * 30_000
    begin(other, Scene("other", (("context", "INIT task: From elsewhere"), ("context", "-", "STDIN", content)), ()))
    (root / ".git" / "backup.jsonl").write_bytes(play(other, ("export",)).stdout)
    shutil.rmtree(other)


class _Followed:
    """One command, from its first system call to its last."""

    def __init__(self, root: Path, command: Command, log: Path, broken: bool) -> None:
        self.disk = Disk.holding(read_tree(root), broken)
        self.problems: list[str] = []
        self.answers = 0
        done = trace(root, command, log)
        if done.status not in (0, 5) and command[0] != "reject":  # 5: it waits for a person; 1: the run has failed
            self.problems.append(f"exit status {done.status}: {done.output.decode(errors='replace')[:500]}")
        for op in [*done.ops, Op("answer", "")]:
            self._before(op)
            self.disk.apply(op)

    def _before(self, op: Op) -> None:
        if op.kind == "answer":
            self.answers += 1
            self._hold("it answered", lambda path: path in _JOURNAL or path.startswith(f"{STATE}/objects/"))
            self._hold("it answered", lambda path: path.startswith(_OF_GIT), names=False)
        elif op.kind == "create" and op.path.rpartition("/")[2].startswith(TRACE_OF_AN_AGENT):
            attempt = op.path.rpartition(TRACE_OF_AN_AGENT)[2]
            self._hold(f"the agent of {attempt} ran", lambda path: _is_record(path, attempt, _BEFORE_IT_RUNS))
        elif op.kind == "truncate" and f"{STATE}/slots/" in op.path and op.offset == 0:
            held = self.disk.file(op.path)
            text = held.content().decode() if held is not None else ""
            attempt = text.partition('"attempt":')[2].strip().partition('"')[2].partition('"')[0]
            if attempt:
                self._hold(f"the slot of {attempt} is free", lambda path: _is_record(path, attempt, _BEFORE_THE_NEXT))

    def _hold(self, when: str, stands_on: object, names: bool = True) -> None:
        assert callable(stands_on)
        for path in self._undecided(names):
            if stands_on(path):
                self.problems.append(f"{when}, and a loss of power may still change {path}")

    def _undecided(self, names: bool) -> Iterator[str]:
        paths = dict(_paths(self.disk, 0, ""))
        found: dict[str, None] = {}
        for kind, number, _ in self.disk.choices():
            if kind != "names":
                found[paths.get(number, "")] = None
            elif names:
                for folder, name, _ in self.disk.pending[number].names:
                    path = f"{paths.get(folder, '?')}/{name}"
                    found |= dict.fromkeys(one for one in paths.values() if one == path or one.startswith(path + "/"))
        yield from found


def _is_record(path: str, attempt: str, names: tuple[str, ...]) -> bool:
    """.../attempts/RUN/ATTEMPT/1/claim, of the attempt RUN.ATTEMPT.1"""
    folder, _, name = path.partition(f"{STATE}/attempts/")[2].rpartition("/")
    return name in names and folder.replace("/", ".") == attempt


def _paths(disk: Disk, number: int, path: str) -> Iterator[tuple[int, str]]:
    node = disk.nodes[number]
    if path:
        yield number, path
    if not isinstance(node, File):
        for name, below in node.items():
            yield from _paths(disk, below, f"{path}/{name}" if path else name)
