"""Every state of the disk that a loss of power may leave, for one command after the other.

A command runs under strace; the disk model follows its calls. Between two flushes, what is undecided only grows, so the
states of an epoch (up to the next flush, the answer, or the end) contain those of every moment in it. An epoch
with few states is enumerated whole; of a larger one: nothing kept, all kept, all but one, only one, every prefix in
time, and then decisions drawn at random, half of them with torn pages. Equal states are counted once.

Each state of the journal's files is opened by the product, and must hold exactly what was answered, or that and the
command under way, whole. A part of them, with the states of all other files drawn as well, is opened as a repository,
where a turn must bring every file back.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from prove.disk import Disk, File, Op, Unit
from prove.looking import Heads, heads, reopen, write_tree

STATE = ".git/tenuto"
JOURNAL = ("journal.db", "journal.db-wal", "journal.db-journal", "lock")
SECTORS = (512, 1024, 1536, 2048, 2560, 3072, 3584)

Decision = dict[Unit, int]


class Trial:
    """One sequence under way: what was tried and what was found."""

    def __init__(self, work: Path, states: int, turns: int, dice: random.Random) -> None:
        self.work = work
        self.states, self.turns = states, turns
        self.dice = dice
        self.seen: set[int] = set()
        self.opened = self.restored = self.kills = 0
        self.violations: list[str] = []

    def violated(self, label: str, text: str) -> None:
        self.violations.append(f"{label}: {text}")

    # -- the journal alone

    def journal(self, disk: Disk, decision: Decision, torn: int) -> Heads | None:
        """What the product finds in this state of the journal's files; None when it was opened before."""
        names = disk.names(decision)
        folder = _walk(names, STATE)
        files: dict[str, list[bytes]] = {}
        if folder is not None:
            for name in JOURNAL:
                number = names[folder].get(name)
                node = disk.nodes[number] if number is not None else None
                if isinstance(node, File) and number is not None:
                    files[name] = disk.decided(number, node, decision, torn)
        if not self._is_new(files):
            return None
        place = self.work / "journal"
        place.mkdir(exist_ok=True)
        for name in JOURNAL:
            _write(place / name, b"".join(files[name]) if name in files else None)
        # A file for sharing memory survives as it was, or torn: it is never to be believed after a crash.
        _write(place / "journal.db-shm", self.dice.randbytes(64) * 512 if len(self.seen) % 4 == 0 else None)
        return heads(str(place))

    def _is_new(self, files: dict[str, list[bytes]]) -> bool:
        """By the hashes of its pages: two states that are one count once, and two that are two are not taken for one
        more often than once in a billion runs."""
        key = hash(tuple((name, tuple(map(hash, pages))) for name, pages in files.items()))
        known = key in self.seen
        self.seen.add(key)
        return not known

    # -- one command

    def follow(self, disk: Disk, ops: list[Op], before: Heads, after: Heads, label: str) -> None:
        """Apply the command's operations to the disk, and try every epoch of it."""
        allowed, answered = {before}, False
        for number, op in enumerate(ops):
            if op.kind == "sync" or (op.kind == "answer" and not answered):
                self._epoch(disk, allowed, f"{label}, before call {number} ({op.kind} {op.path})")
            disk.apply(op)
            if op.kind == "answer":
                answered = True
                allowed = {after}
            elif op.path.startswith(f"{STATE}/journal"):
                # Killed here, all that was written is kept: what stands there now may be there after a loss of power,
                # too.
                found = self._guarded(disk, {}, 0, f"{label}, killed after call {number}")
                self.kills += 1
                if found is not None and not answered:
                    if not _holds(found, before):
                        self.violated(
                            label,
                            f"killed after call {number}: {_short(found)} is less than was answered, {_short(before)}",
                        )
                    allowed.add(found)
        self._epoch(disk, allowed, f"{label}, answered")
        if after not in allowed:
            self.violated(label, "answered, and what was answered never stood in the journal")

    def _guarded(self, disk: Disk, decision: Decision, torn: int, label: str) -> Heads | None:
        try:
            return self.journal(disk, decision, torn)
        except Exception as error:  # noqa: BLE001  whatever it raises, it could not be opened
            self.violated(label, f"cannot be opened: {error!r} {_told(decision)}")
            return None

    def _epoch(self, disk: Disk, allowed: set[Heads], label: str) -> None:
        units = disk.choices()
        ours = {unit: count for unit, count in units.items() if _is_journals(disk, unit)}
        known = len(self.seen)
        for decision, torn in _decisions(ours, self.dice, self.states):
            if len(self.seen) - known >= self.states:
                break
            found = self._guarded(disk, decision, torn, label)
            if found is not None and found not in allowed:
                self.violated(
                    label, f"{_short(found)} is neither {' nor '.join(sorted(map(_short, allowed)))} {_told(decision)}"
                )
        for decision, torn in _some(units, self.dice, self.turns):
            self._reopened(disk, decision, torn, allowed, label)

    def _reopened(self, disk: Disk, decision: Decision, torn: int, allowed: set[Heads], label: str) -> None:
        tree = disk.tree(decision, torn)
        if not self._is_new({path: [content or b""] for path, content in tree.items()}):
            return
        root = self.work / "reopened"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        write_tree(root, {path: content for path, content in tree.items() if not path.endswith("-shm")})
        self.opened += 1
        try:
            seen = reopen(root)
        except Exception as error:  # noqa: BLE001  whatever it raises, it could not be opened
            self.violated(label, f"reopened: {error!r} {_told(decision)}")
            return
        self.restored += bool(seen.restored)
        for problem in seen.problems:
            self.violated(label, f"reopened: {problem} {_told(decision)}")
        if seen.heads not in allowed and not seen.problems:
            self.violated(label, f"reopened: {_short(seen.heads)} was not answered {_told(decision)}")


def _write(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, content)
    os.close(file)


def _walk(names: dict[int, dict[str, int]], path: str) -> int | None:
    here: int | None = 0
    for part in path.split("/"):
        here = names[here].get(part) if here is not None and here in names else None
    return here


def _is_journals(disk: Disk, unit: Unit) -> bool:
    kind, number, _ = unit
    if kind == "names":
        return any(name in (*JOURNAL, "tenuto") for _, name, _ in disk.pending[number].names)
    folder = disk.find(STATE)
    names = disk.nodes[folder] if folder is not None else {}
    return isinstance(names, dict) and number in [names.get(name) for name in JOURNAL]


def _decisions(units: dict[Unit, int], dice: random.Random, most: int) -> Iterator[tuple[Decision, int]]:
    listed = list(units.items())
    space = 1
    for _, count in listed:
        space = min(space * count, most + 1)
    if space <= most:
        for answers in itertools.product(*(range(count) for _, count in listed)):
            yield dict(zip(units, answers, strict=True)), 0
        return
    yield {}, 0
    yield dict.fromkeys(units, 0), 0
    for unit, count in listed:
        for version in range(count - 1):
            yield {unit: version}, 0
        yield {**dict.fromkeys(units, 0), unit: count - 1}, 0
    names = [unit for unit in units if unit[0] == "names"]
    for kept in range(len(names)):
        yield dict.fromkeys(names[kept:], 0), 0
    for _ in range(most * 4):
        share = dice.random()
        torn = dice.choice(SECTORS) if dice.random() < 0.5 else 0
        yield {unit: dice.randrange(count) for unit, count in listed if dice.random() < share}, torn


def _some(units: dict[Unit, int], dice: random.Random, most: int) -> list[tuple[Decision, int]]:
    """All of them where they are few; else all kept, nothing kept, and of every other kind as the dice fall."""
    listed = list(_decisions(units, dice, most))
    return listed if len(listed) <= most else [*listed[:2], *dice.sample(listed[2:], most - 2)]


def _holds(found: Heads, answered: Heads) -> bool:
    """Everything that was answered, and perhaps more."""
    now = {name: (seq, chain) for name, seq, chain in found}
    return all(now.get(name, (0, b""))[0] > seq or now.get(name) == (seq, chain) for name, seq, chain in answered)


def _short(found: Heads) -> str:
    return "{" + ", ".join(f"{name} {seq} {chain.hex()[:6]}" for name, seq, chain in found) + "}"


def _told(decision: Decision) -> str:
    return f"[{', '.join(f'{kind} {one}.{other}={answer}' for (kind, one, other), answer in sorted(decision.items()))[:400]}]"  # noqa: E501
