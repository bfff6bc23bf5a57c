"""Look at a repository as the next user would: open it, take a turn with every run, compare everything.

heads(state)    what the journal holds: run -> (events, head of the chain); the chain is a hash over all of them
reopen(root)    the same through whole turns; what was found wrong, and what had to be restored by name
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tenuto
from tenuto.encoding import digest, dumps
from tenuto.errors import TenutoError
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace import edits, publish
from tenuto.workspace.checkup import examine, restore

Heads = tuple[tuple[str, int, bytes], ...]
CLOCK = "2030-01-02T03:04:05.678Z"
_TRIES = 8


class Seen(NamedTuple):
    heads: Heads
    states: dict[str, str]
    problems: list[str]
    restored: list[str]
    warnings: list[str]


def state_folder(root: Path) -> str:
    return str(root / ".git" / "tenuto")


def heads(state: str) -> Heads:
    journal = SqliteJournal(state)
    try:
        return _heads(journal.connection())
    finally:
        journal.close()


def _heads(db: Any) -> Heads:
    return tuple(db.execute("SELECT id, seq, chain FROM run WHERE seq>0 ORDER BY id").fetchall())


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Any]:
    workspace = tenuto.open(str(root), clock=lambda: CLOCK)
    try:
        yield workspace
    finally:
        workspace.journal.close()


def reopen(root: Path) -> Seen:
    with opened(root) as workspace:
        problems, restored = list[str](), list[str]()
        before = _heads(workspace.journal.connection())
        for name, _, _ in before:
            if name != "@":
                problems += _turn(workspace, name, restored)
        after = _heads(workspace.journal.connection())
        for name, seq, _ in after:
            known = next((row[1] for row in before if row[0] == name), 0)
            if seq != known:
                with workspace.journal.read() as reader:
                    more = [event["type"] for event in reader.events(name, known)]
                problems.append(f"opening it again wrote {more} into run {name}: {'; '.join(workspace.warnings)}")
        states = {name: digest(dumps(workspace.load(name)).encode()) for name, _, _ in after if name != "@"}
        problems += [f"{found['where']}: {found['message']}" for found in examine(workspace)["findings"]]
        return Seen(after, states, problems, restored, list(workspace.warnings))


def _turn(workspace: Any, name: str, restored: list[str]) -> list[str]:
    """One turn; what is refused by naming a file is restored, as the refusal says, and tried again."""
    for _ in range(_TRIES):
        try:
            with workspace.turn() as turn:
                turn.run(name)
            return []
        except TenutoError as refusal:
            path = refusal.details.get("path")
            if not isinstance(path, str) or not path or "repair" not in refusal.hint:
                return [f"{name}: {refusal.code}: {refusal.message}"]
            restored.append(path)
            restore(workspace, path)
    return [f"{name}: refused again and again: {restored}"]


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Nobody else writes here: a broken file gets no better by waiting for its writer."""
    kept = publish._WAIT_STEPS, edits._ABANDONED_STEPS
    publish._WAIT_STEPS = edits._ABANDONED_STEPS = 1
    try:
        yield
    finally:
        publish._WAIT_STEPS, edits._ABANDONED_STEPS = kept


def write_tree(root: Path, tree: dict[str, bytes | None]) -> None:
    for path, content in sorted(tree.items()):
        if content is None:
            os.mkdir(root / path)
        else:
            with open(root / path, "wb", buffering=0) as file:
                file.write(content)


def read_tree(root: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(root):
        below = os.path.relpath(folder, root)
        prefix = "" if below == "." else f"{below}/"
        found |= {prefix + name: None for name in folders}
        found |= {prefix + name: Path(folder, name).read_bytes() for name in files}
    return found
