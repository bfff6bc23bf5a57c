"""What a file system may have kept when the power went out, given the system calls made so far.

The model is weaker than any file system in use, so that what holds here holds there:

- Of a file, each page of 4096 bytes that was written since the file's last fsync may be on disk as any
  of the versions it had since then, or half of one and half of another; its length may be any it had.
  What was never written reads as zero bytes.
- A change of names (create, link, rename, exchange, unlink, mkdir) is kept or not, whole, each on its
  own, until the folder it happened in is fsynced. The order in which they were made is no promise.
- fsync and fdatasync of a file promise its bytes and its length, not its name; fsync of a folder its names.

`Disk.apply` follows a system call; `Disk.choices` says what is undecided; `Disk.tree` makes the files
of one decision. Files that are mapped (SQLite's -shm) are not followed: they are rebuilt after a crash.
"""

from __future__ import annotations

from typing import NamedTuple

PAGE = 4096
ZERO = bytes(PAGE)


class Op(NamedTuple):
    """One system call that changed something. `paths` are relative to the root of the model."""

    kind: str  # write copy truncate create mkdir link rename exchange unlink rmdir sync answer
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0


class File:
    __slots__ = ("length", "lengths", "pages", "versions")

    def __init__(self) -> None:
        self.length = 0
        self.pages: dict[int, bytes] = {}
        self.versions: dict[int, list[bytes]] = {}  # of pages since the last sync, oldest first, the newest last
        self.lengths: list[int] = [0]

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        at = offset
        while at < end:
            number, start = divmod(at, PAGE)
            piece = data[at - offset : at - offset + PAGE - start]
            old = self.pages.get(number, ZERO)
            self._put(number, old[:start] + piece + old[start + len(piece) :])
            at += len(piece)
        self.resize(max(self.length, end))

    def truncate(self, length: int) -> None:
        for number in [number for number in self.pages if (number + 1) * PAGE > length]:
            kept = max(0, length - number * PAGE)
            self._put(number, self.pages[number][:kept] + ZERO[kept:])
        self.resize(length)

    def _put(self, number: int, page: bytes) -> None:
        known = self.versions.setdefault(number, [self.pages.get(number, ZERO)])
        if page != known[-1]:
            known.append(page)
        self.pages[number] = page

    def resize(self, length: int) -> None:
        self.length = length
        if length != self.lengths[-1]:
            self.lengths.append(length)

    def sync(self) -> None:
        self.versions.clear()
        self.lengths = [self.length]

    def content(self, pages: dict[int, bytes] | None = None, length: int | None = None) -> bytes:
        return b"".join(self.pieces(pages, length))

    def pieces(self, pages: dict[int, bytes] | None = None, length: int | None = None) -> list[bytes]:
        """Page by page; the last one as far as the file goes."""
        chosen = self.pages if pages is None else {**self.pages, **pages}
        length = self.length if length is None else length
        made = [chosen.get(number, ZERO) for number in range((length + PAGE - 1) // PAGE)]
        if length % PAGE:
            made[-1] = made[-1][: length % PAGE]
        return made


Node = File | dict[str, int]  # a folder is its names


class Change(NamedTuple):
    """Names set (or, with None, removed) in folders, all at once."""

    names: tuple[tuple[int, str, int | None], ...]
    certain: bool = False


Unit = tuple[str, int, int]  # ("page", inode, number) | ("length", inode, 0) | ("names", change number, 0)


class Disk:
    def __init__(self, ignore_sync: bool = False) -> None:
        self.nodes: dict[int, Node] = {0: {}}
        self.durable: dict[int, dict[str, int]] = {0: {}}
        self.pending: list[Change] = []
        self.ignore_sync = ignore_sync  # the broken variant: as if nobody flushed anything

    @classmethod
    def holding(cls, tree: dict[str, bytes | None], ignore_sync: bool = False) -> Disk:
        """One on which this has long been: path -> content, None for a folder. Memory that processes share is no
        file of it."""
        disk = cls(ignore_sync)
        for path, content in sorted(tree.items()):
            if path.endswith("-shm"):
                continue
            disk.apply(Op("mkdir" if content is None else "create", path))
            if content:
                disk.apply(Op("write", path, "", 0, content))
        disk.settle()
        return disk

    # -- following

    def find(self, path: str) -> int | None:
        here: int | None = 0
        for part in path.split("/") if path else []:
            node = self.nodes[here] if here is not None else None
            here = node.get(part) if isinstance(node, dict) else None
        return here

    def _spot(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        found = self.find(folder)
        if found is None:
            raise LookupError(f"the trace is not whole: {folder} is not there")
        return found, name

    def _change(self, *names: tuple[int, str, int | None]) -> None:
        for folder, name, target in names:
            node = self.nodes[folder]
            assert isinstance(node, dict)
            if target is None:
                node.pop(name, None)
            else:
                node[name] = target
        self.pending.append(Change(names))

    def _new(self, path: str, node: Node) -> int:
        number = len(self.nodes)
        self.nodes[number] = node
        if isinstance(node, dict):
            self.durable[number] = {}
        folder, name = self._spot(path)
        self._change((folder, name, number))
        return number

    def file(self, path: str) -> File | None:
        found = self.find(path)
        node = self.nodes[found] if found is not None else None
        return node if isinstance(node, File) else None

    def apply(self, op: Op) -> None:
        if op.kind == "create":
            if self.find(op.path) is None:
                self._new(op.path, File())
        elif op.kind == "mkdir":
            self._new(op.path, {})
        elif op.kind == "write":
            file = self.file(op.path)
            if file is not None:
                file.write(file.length if op.offset < 0 else op.offset, op.data)
        elif op.kind == "copy":
            file, source = self.file(op.path), self.file(op.other)
            if file is not None and source is not None:
                file.write(op.offset, source.content()[op.offset : op.offset + op.size])
        elif op.kind == "truncate":
            file = self.file(op.path)
            if file is not None:
                file.truncate(op.offset)
        elif op.kind == "sync":
            self._sync(op.path)
        elif op.kind in ("unlink", "rmdir"):
            folder, name = self._spot(op.path)
            self._change((folder, name, None))
        elif op.kind in ("link", "rename", "exchange"):
            self._move(op)

    def _move(self, op: Op) -> None:
        source, target = self._spot(op.path), self._spot(op.other)
        moved = self.find(op.path)
        if op.kind == "link":
            self._change((*target, moved))
        elif op.kind == "rename":
            self._change((*source, None), (*target, moved))
        else:
            self._change((*source, self.find(op.other)), (*target, moved))

    def _sync(self, path: str) -> None:
        number = self.find(path)
        if number is None or self.ignore_sync:
            return
        node = self.nodes[number]
        if isinstance(node, File):
            node.sync()
            return
        # In its place, not now: an earlier change of the same name, if it is kept at all, comes before it.
        self.pending = [
            change._replace(certain=True) if any(folder == number for folder, _, _ in change.names) else change
            for change in self.pending
        ]
        while self.pending and self.pending[0].certain:
            self._keep(self.pending.pop(0), self.durable)

    @staticmethod
    def _keep(change: Change, names: dict[int, dict[str, int]]) -> None:
        for folder, name, target in change.names:
            if target is None:
                names[folder].pop(name, None)
            else:
                names[folder][name] = target

    def settle(self) -> None:
        """Long ago: everything so far is on disk."""
        for change in self.pending:
            self._keep(change, self.durable)
        self.pending = []
        for node in self.nodes.values():
            if isinstance(node, File):
                node.sync()

    def copy(self) -> Disk:
        made = Disk(self.ignore_sync)
        for number, node in self.nodes.items():
            if isinstance(node, File):
                new = File()
                new.length, new.lengths = node.length, list(node.lengths)
                new.pages = dict(node.pages)
                new.versions = {page: list(known) for page, known in node.versions.items()}
                made.nodes[number] = new
            else:
                made.nodes[number] = dict(node)
        made.durable = {number: dict(names) for number, names in self.durable.items()}
        made.pending = list(self.pending)
        return made

    # -- deciding

    def choices(self) -> dict[Unit, int]:
        """What is undecided, and how many answers each has; the last answer is what the process saw."""
        found: dict[Unit, int] = {
            ("names", number, 0): 2 for number, change in enumerate(self.pending) if not change.certain
        }
        for number, node in self.nodes.items():
            if not isinstance(node, File):
                continue
            for page, known in node.versions.items():
                if len(known) > 1:
                    found["page", number, page] = len(known)
            if len(node.lengths) > 1:
                found["length", number, 0] = len(node.lengths)
        return found

    def names(self, decision: dict[Unit, int]) -> dict[int, dict[str, int]]:
        names = {number: dict(known) for number, known in self.durable.items()}
        for number, change in enumerate(self.pending):
            if change.certain or decision.get(("names", number, 0), 1):
                self._keep(change, names)
        return names

    def tree(self, decision: dict[Unit, int], torn: int = 0) -> dict[str, bytes | None]:
        """path -> content, None for a folder. `torn`: of changed pages, this many bytes are of the version chosen,
        the rest of the one before."""
        names, made = self.names(decision), dict[str, bytes | None]()
        waiting = [("", 0, 0)]
        while waiting:
            path, number, depth = waiting.pop()
            for name, target in names[number].items():
                node, below = self.nodes[target], f"{path}/{name}" if path else name
                if isinstance(node, File):
                    made[below] = b"".join(self.decided(target, node, decision, torn))
                elif depth < 32:  # a cycle of folders cannot come from these changes; be safe
                    made[below] = None
                    waiting.append((below, target, depth + 1))
        return made

    def decided(self, number: int, file: File, decision: dict[Unit, int], torn: int) -> list[bytes]:
        pages = {}
        for page, known in file.versions.items():
            at = decision.get(("page", number, page), len(known) - 1)
            pages[page] = known[at] if not (torn and at) else known[at][:torn] + known[at - 1][torn:]
        return file.pieces(pages, file.lengths[decision.get(("length", number, 0), len(file.lengths) - 1)])
