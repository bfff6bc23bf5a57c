"""What the machine of test_whole_system.py asks of a repository, in its own process or in one of its own.

act(workspace, ["decide", "approve"])       here
python -m tests.property.whole ROOT NOW [..]  in another process, which says "answered" when it was
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tenuto
from prove.frame import place
from tenuto.core.records.action import Definition
from tenuto.core.times import iso
from tenuto.engine.attempt import define
from tenuto.engine.begin import start
from tenuto.engine.gates import command, decide_gate
from tenuto.engine.guided import accept, hand_out
from tenuto.errors import TenutoError

CAP = 2
PIPELINE = f"""\
name: whole
documents: docs/feature/{{slug}}
shown_as: feature_docs
memory: run
cap: {CAP}
given: [initial-request.md, memory.md]
steps:
  - {{id: setup, action: [write-request, initialize-memory]}}
  - id: look
    cluster:
      members:
        - {{id: one, role: researcher, mode: focused, focus: architecture, out: a.md}}
        - {{id: two, role: researcher, mode: focused, focus: impact, out: b.md}}
        - {{id: three, role: researcher, mode: focused, focus: patterns, out: c.md}}
      quorum: 2
      retry: {{ERROR: 1, LOST: 1}}
    on: {{ERROR: halt}}
  - id: gate
    gate: {{name: gate, show: [a.md], prompt: "Go on?", revise: look}}
  - id: write
    agent: {{role: designer, in: [a.md, b.md], out: design.md, memory: write}}
    retry: {{ERROR: 1, LOST: 1}}
    on: {{ERROR: halt}}
"""
STEERING: dict[str, Any] = {
    "Pause": {"do": "Pause", "reason": "a break"},
    "Resume": {"do": "Resume", "decision": "retry"},
    "Cancel": {"do": "Cancel"},
}


@functools.cache
def definition() -> Definition:
    with place() as folder:
        (folder / ".tenuto" / "pipelines").mkdir(parents=True)
        (folder / ".tenuto" / "pipelines" / "whole.yaml").write_text(PIPELINE)
        return define("whole", str(folder))


def act(workspace: tenuto.Repository, asked: list[Any]) -> Any:
    name, *given = asked
    acts: dict[str, Callable[..., Any]] = {
        "begin": lambda limits: start(
            workspace, "Make it", "whole", name="driven", definition=definition(), limits=limits
        ),
        "next": lambda: hand_out(workspace, "driven", {}),
        "report": lambda attempt, said: accept(workspace, "driven", attempt, said, {}),
        "decide": lambda word: decide_gate(workspace, "driven", word, "because", {}),
        "steer": lambda what: command(workspace, "driven", STEERING[what]),
        "lead": lambda what, *more: _lead(workspace.context, what, *more),
    }
    return acts[name](*given)


def _lead(context: Any, what: str, *given: Any) -> Any:
    """The other run, by hand."""
    acts: dict[str, Callable[..., Any]] = {
        "init": lambda: context.init("By hand"),
        "start": lambda phase: context.start_phase(phase, task="by-hand"),
        "end": lambda phase: context.end_phase(phase, "success", task="by-hand"),
        "gate": lambda: context.set_gate("design", "good?", task="by-hand"),
        "decide": lambda: context.resume("approve", task="by-hand"),
        "store": lambda phase, text: context.store(phase, text, task="by-hand"),
        "pause": lambda: context.pause("a break", task="by-hand"),
    }
    return acts[what](*given)


def in_another_process(root: Path, now: int, asked: list[Any]) -> list[str]:
    """The words that start it."""
    return [sys.executable, "-m", "tests.property.whole", str(root), str(now), json.dumps(asked)]


def _main(root: str, now: str, asked: str) -> None:
    def ticks() -> Iterator[str]:
        at = int(now)
        while True:
            at += 1000
            yield iso(at)

    try:
        act(tenuto.open(root, clock=ticks().__next__), json.loads(asked))
    except TenutoError as refusal:
        sys.exit(refusal.message)
    print("answered", flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
