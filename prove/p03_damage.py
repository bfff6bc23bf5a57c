"""Promise 3: a torn, NUL-filled, bit-flipped or hand-edited file is named, never silently used or overwritten.

A repository with a run of every dialect, artifacts small and large, and a history. One file of it is damaged at a time:
cut to every length, one bit flipped (10,000 of each file), blanked with NULs from anywhere to anywhere, overwritten
with other text. Then everything that a user does with it is done: a turn with every run, the list, the contents of all
artifacts, `tenuto verify`. What may come of it:

- refused, naming the file (or the journal), and the damaged file stays as it is
- written anew with a warning that names it, and the damaged bytes are kept
- taken in as somebody's edit: an event with its hash, and its bytes are kept by that hash
- named by `tenuto verify`, where nothing of it was used
- nothing at all, where every answer is what it was before (a bit in a free page of the database)

Anything else is silent. In the journal's log (-wal) a damaged frame reads as a crash at that moment: what comes
back must be exactly what was there after one of the commits, and the files, which show more, must be noticed.

The broken variant leaves the journal's hashes unread, and takes any file for its own.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from prove.frame import Amount, Progress, Result, alone, dice, merged, place, silent, spread
from prove.looking import heads, impatient, opened, read_tree, state_folder
from prove.scenes import BY_NAME, begin, play
from tenuto.core.fold import fold
from tenuto.encoding import digest, dumps
from tenuto.errors import TenutoError
from tenuto.workspace.checkup import examine
from tenuto.workspace.objects import content_of

STATE = ".git/tenuto"
FLIPS, BLANKS = 10_000, 500
SAMPLED = 12
# A kind of file: the scene that makes it, and where it lies. One of each kind that Tenuto writes.
KINDS = (
    ("context", f"{STATE}/journal.db"),
    ("context", f"{STATE}/journal.db-wal"),
    ("context", f"{STATE}/objects"),
    ("context", "docs/orchestrator/context/tasks/dark-mode/manifest.json"),
    ("context", "docs/orchestrator/context/tasks/dark-mode/spec.md"),
    ("context", "docs/orchestrator/context/current-task.md"),
    ("context", "docs/orchestrator/context/history.md"),
    ("flow", ".ai-workspace/T-1/flow-state.json"),
    ("staged", ".agents/tmp/state.json"),
    ("feature", ".feature-state.json"),
    ("feature_docs", "docs/feature/add-dark-mode/memory.md"),
    ("feature_docs", "docs/feature/add-dark-mode/initial-request.md"),
)

Tree = dict[str, bytes | None]
Job = tuple[str, str, bool, int, int, bool]


class Told(NamedTuple):
    """All that can be read out of a repository, and everything that was said about it."""

    answers: dict[str, str]
    said: list[str]
    events: dict[str, list[str]]  # of each run, before anything was done with it


def prove(amount: Amount, tell: Progress) -> Result:
    parts = 8 if amount.full else 1
    jobs = [(scene, path, amount.full, part, parts, False) for scene, path in KINDS for part in range(parts)]
    found = merged(spread(_damage, jobs, amount.jobs, tell))
    return found._replace(figures={"kinds of file": f"{len(KINDS)}", **found.figures})


def control(amount: Amount) -> Result:
    return merged(_damage((scene, path, False, 0, 1, True)) for scene, path in KINDS[3:9])


def _repository(root: Path, scene: str, path: str) -> Tree:
    """The first commands stand in the database, the last ones in its log."""
    begin(root, BY_NAME[scene])
    if path.endswith("objects"):
        with opened(root) as workspace, workspace.turn() as turn:
            turn.store("dark-mode", "dump", "docs/dump.bin", b"0123456789abcdef" * 16_400)
    heads(state_folder(root))
    for command in BY_NAME[scene].commands[:2]:
        play(root, command)
    if path.endswith("journal.db"):
        heads(state_folder(root))
    return {name: text for name, text in read_tree(root).items() if not name.endswith("-shm")}


def _damage(job: Job) -> Result:
    scene, path, full, part, parts, broken = job
    violations, counted = list[str](), {"named": 0, "taken in as an edit": 0, "without effect": 0}
    with alone(), place() as work, impatient(), _broken(broken):
        root = work / "repository"
        tree = _repository(root, scene, path)
        if path.endswith("objects"):
            path = next(name for name in sorted(tree) if name.startswith(path) and tree[name])
        sandbox = Sandbox(root, tree)
        whole = _look(root)
        assert not whole.said, whole.said
        original, versions = tree[path] or b"", _versions(root, path)
        for number, (label, damaged) in enumerate(_damages(path, original, full)):
            if number % parts != part or damaged == original or _is_ours(damaged, original, versions):
                continue
            sandbox.restore()
            sandbox.write(path, damaged)
            verdict = _judge(root, path, damaged, whole)
            if verdict in counted:
                counted[verdict] += 1
            else:
                violations.append(f"{path}, {label}: {verdict}")
    tried = sum(counted.values()) + len(violations)
    return Result(tried, violations, {kind: f"{count:,}" for kind, count in counted.items()})


class Sandbox:
    """A repository that is put back as it was, again and again: only what changed is written."""

    def __init__(self, root: Path, tree: Tree) -> None:
        self.root, self.tree = str(root), tree
        self.stamps: dict[str, tuple[int, int, int]] = {}

    def write(self, path: str, content: bytes) -> None:
        with open(f"{self.root}/{path}", "wb", buffering=0) as file:
            file.write(content)
        self.stamps.pop(path, None)

    def restore(self) -> None:
        found = dict(self._walk(""))
        for path in sorted(found.keys() - self.tree.keys(), reverse=True):
            (os.rmdir if found[path] is None else os.unlink)(f"{self.root}/{path}")
        for path in sorted(self.tree):
            content = self.tree[path]
            if content is None:
                if path not in found:
                    os.mkdir(f"{self.root}/{path}")
            elif path not in found or found[path] != self.stamps.get(path):
                if path in found:
                    os.unlink(f"{self.root}/{path}")  # never into a file that somebody may have linked elsewhere
                self.write(path, content)
                self.stamps[path] = self._stamp(os.stat(f"{self.root}/{path}"))

    def _walk(self, below: str) -> Iterator[tuple[str, tuple[int, int, int] | None]]:
        with os.scandir(f"{self.root}/{below}") as entries:
            for entry in entries:
                path = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    yield path, None
                    yield from self._walk(f"{path}/")
                else:
                    yield path, self._stamp(entry.stat(follow_symlinks=False))

    @staticmethod
    def _stamp(found: os.stat_result) -> tuple[int, int, int]:
        return found.st_ino, found.st_mtime_ns, found.st_size


def _versions(root: Path, path: str) -> list[bytes]:
    """What we wrote there so far, as far as it is kept."""
    with opened(root) as workspace, workspace.journal.read() as reader:
        return [body for _, body, _, _ in reader.renders(path, 1000) if body is not None]


def _is_ours(damaged: bytes, original: bytes, versions: list[bytes]) -> bool:
    """Two versions may differ in the digits of a time. A flipped bit there makes the newer one the older, or the
    one's beginning with the other's end, which a crash leaves behind: both are ours, and in the journal."""
    if not versions:
        return False  # of a large journal, say, whose bytes nobody needs to go through one by one
    at = next(
        (n for n, (one, other) in enumerate(zip(damaged, original, strict=False)) if one != other),
        min(len(damaged), len(original)),
    )
    return at < len(damaged) and any(damaged[at:] == version[at : len(damaged)] for version in versions)


def _damages(path: str, original: bytes, full: bool) -> Iterator[tuple[str, bytes]]:
    random = dice("damage", path)
    size = len(original)
    for length in range(size) if full else dict.fromkeys([0, *random.sample(range(size), min(SAMPLED, size))]):
        yield f"cut to {length}", original[:length]
    for _ in range(FLIPS if full else SAMPLED * 2):
        at, bit = random.randrange(size), random.randrange(8)
        yield f"bit {bit} of byte {at} flipped", original[:at] + bytes([original[at] ^ 1 << bit]) + original[at + 1 :]
    for found in list(re.finditer(rb'"type":"', original))[:50]:
        yield (
            f"a letter of the event at {found.end()} flipped",
            original[: found.end()] + bytes([original[found.end()] ^ 1]) + original[found.end() + 1 :],
        )
    for begin_, end in _ranges(random, size, BLANKS if full else SAMPLED):
        yield f"NULs from {begin_} to {end}", original[:begin_] + bytes(end - begin_) + original[end:]
    yield "NULs behind it", original + bytes(4096)
    yield "other text", b"something else entirely\n"
    yield "all of it twice", original + original


def _ranges(random: random.Random, size: int, count: int) -> Iterator[tuple[int, int]]:
    yield 0, size
    yield 0, max(1, size // 2)
    yield size // 2, size
    yield size // 3, max(size // 3 + 1, 2 * size // 3)
    for _ in range(count):
        one, other = sorted((random.randrange(size), random.randrange(size + 1)))
        yield one, max(other, one + 1)


def _judge(root: Path, path: str, damaged: bytes, whole: Told) -> str:
    """One of the counted words, or what is wrong."""
    try:
        told = _look(root)
    except Exception as error:  # noqa: BLE001  anything but a named refusal is a traceback to the user
        return f"{type(error).__name__}: {error}"
    inside = path.startswith(STATE)  # then the journal is named, or what it can no longer answer
    if inside and (odd := _invented(path, told, whole)):
        return f"silently used: {', '.join(odd)[:200]} ({'; '.join(told.said)[:200]})"
    named = [line for line in told.said if path in line or inside]
    standing = (root / path).read_bytes() if (root / path).exists() else None
    if not inside:
        if standing != damaged and not _is_kept(root, damaged) and not _is_beginning(damaged, standing or b""):
            return f"overwritten, and what stood there is gone ({'; '.join(named)[:200]})"
        if standing == damaged == _logged(root, path):
            return "taken in as an edit"
        if any(line.endswith(" by external") for line in told.said):
            kept = _is_kept(root, damaged) or (standing != damaged and _is_beginning(damaged, standing or b""))
            return "taken in as an edit" if kept else "taken in as an edit, and its bytes are not kept"
    if named:
        return "named"
    if told.answers == whole.answers and (inside or standing != damaged):
        return "without effect"
    verified = _verify(root)
    if told.answers == whole.answers and any(path in line for line in verified):
        return "named"
    if inside and _only_search_differs(told, whole) and verified:
        return "named"  # a damaged search index finds less; nobody can see that in what it finds
    state = "the damaged file stands" if standing == damaged else "it was replaced"
    return f"nobody says a word ({state}): {_differing(told, whole)}; verify: {'; '.join(verified)[:200]}"


def _invented(path: str, told: Told, whole: Told) -> list[str]:
    """What is answered and never stood there, whatever else is said. With the log, the last of it may be gone; what
    is left is as it was."""
    odd = [
        f"events of {run}" for run, events in told.events.items() if events != whole.events.get(run, [])[: len(events)]
    ]
    odd += [
        f"the state of {run}"
        for run in told.events
        if told.answers.get(f"run {run}", "") not in ("", told.answers.get(f"folded {run}"))
    ]
    if not path.endswith("-wal"):
        odd += [name for name, answer in told.answers.items() if name != "search" and answer != whole.answers.get(name)]
    return odd


def _only_search_differs(told: Told, whole: Told) -> bool:
    return {**told.answers, "search": ""} == {**whole.answers, "search": ""}


def _differing(told: Told, whole: Told) -> str:
    names = [
        name for name in whole.answers.keys() | told.answers.keys() if whole.answers.get(name) != told.answers.get(name)
    ]
    return f"silently used: {', '.join(sorted(names))[:200]}" if names else "nothing differs"


def _logged(root: Path, path: str) -> bytes:
    """Of an append-only file, what the journal says that it holds."""
    with opened(root) as workspace, workspace.journal.read() as reader:
        return b"".join(reader.log_text(path))


def _is_kept(root: Path, damaged: bytes) -> bool:
    quarantine = root / STATE / "quarantine"
    if quarantine.is_dir() and any(file.read_bytes() == damaged for file in quarantine.iterdir()):
        return True
    try:
        with opened(root) as workspace, workspace.journal.read() as reader:
            return bool(content_of(workspace.state, reader, digest(damaged)))
    except TenutoError:
        return False


def _is_beginning(damaged: bytes, standing: bytes) -> bool:
    """The beginning of what stands there now (or blanks): completed, nothing of anybody's is lost."""
    return standing.startswith(damaged) or not damaged.strip(b"\0 \t\r\n")


def _look(root: Path) -> Told:
    answers, said, events = dict[str, str](), list[str](), dict[str, list[str]]()
    with opened(root) as workspace:
        try:
            _read_all(workspace, answers, said, events)
        except TenutoError as error:
            said.append(f"{error.code}: {error.message}")
        said += workspace.warnings
    return Told(answers, said, events)


def _verify(root: Path) -> list[str]:
    with opened(root) as workspace:
        try:
            return [f"{found['where']}: {found['message']}" for found in examine(workspace)["findings"]]
        except TenutoError as error:
            return [f"{error.code}: {error.message}"]


def _read_all(workspace: Any, answers: dict[str, str], said: list[str], events: dict[str, list[str]]) -> None:
    with workspace.journal.read() as reader:
        cards = reader.runs()
        before = {card["id"]: reader.version(card["id"]) for card in cards}
        answers["list"] = digest(dumps(cards).encode())
        for name in before:
            run = reader.load(name)
            answers[f"run {name}"] = digest(dumps(run).encode())
            told = list(reader.events(name))
            events[name] = [dumps(event) for event in told]
            answers[f"events {name}"] = digest(dumps(told).encode())
            answers[f"folded {name}"] = digest(dumps(fold(told)).encode())
            for artifact in (run or {"artifacts": {}})["artifacts"].values():
                content = content_of(workspace.state, reader, artifact["sha256"])
                body = content if isinstance(content, bytes) else Path(content).read_bytes()
                answers[f"content {artifact['path']}"] = digest(body)
        for path, _ in reader.logs():
            answers[f"log {path}"] = digest(b"".join(reader.log_text(path)))
        answers["search"] = digest(dumps(reader.search("colours mode", 10)).encode())
    for name in before:
        try:
            with workspace.turn() as turn:
                run = turn.run(name)
                for artifact in list(run["artifacts"].values()):
                    turn.look(name, artifact["path"])
        except TenutoError as error:
            said.append(f"{error.code}: {error.message}")
    with workspace.journal.read() as reader:
        for name, version in before.items():
            said += [f"{event['type']} by {event.get('by')}" for event in reader.events(name, version)]


@contextmanager
def _broken(on: bool) -> Iterator[None]:
    """The promise broken on purpose: whatever stands in a file is believed to be ours."""
    if not on:
        yield
        return
    from tenuto.workspace import edits

    kept = edits.known, edits.check_logs
    edits.known = lambda *_: True
    edits.check_logs = lambda *_: []
    try:
        yield
    finally:
        edits.known, edits.check_logs = kept


if __name__ == "__main__":
    print(prove(Amount(False, 1), silent))
