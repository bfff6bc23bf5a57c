"""After the commit, still under the lock: make the files show what the journal says.

A file that changed between our look and our exchange is absorbed in a turn of its own, at most
eight times; then it is named and left. A failure here loses nothing: the events are durable,
and the next turn (or `tenuto repair`) writes the files again.
"""

from __future__ import annotations

import os

from tenuto.encoding import digest
from tenuto.errors import Refused, TenutoError
from tenuto.files.exchange import publish, take_back
from tenuto.files.places import place, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

_TRIES = 8


class Publication:
    """One file to be written: a whole state file, an artifact, or text for an append-only file (`kind` "log")."""

    __slots__ = ("content", "expected", "kind", "path", "remembered", "run", "tree")

    def __init__(
        self, tree: str, path: str, expected: bytes | None, content: bytes | str, run: str, kind: str, remembered: bool
    ) -> None:
        self.tree = tree
        self.path = path
        self.expected = expected
        self.content = content
        self.run = run
        self.kind = kind
        self.remembered = remembered


def publish_all(workspace: Workspace, publications: list[Publication], depth: int = 0) -> None:
    for publication in publications:
        try:
            if publication.kind == "log":
                _append(workspace, publication)
            elif publication.kind == "":
                _show_artifact(workspace, publication)
            else:
                _show_state(workspace, publication, depth)
        except OSError as error:
            workspace.warn(
                f"{publication.path} could not be written ({error}); it is recorded, and the next command writes it"
            )
        except TenutoError as error:
            workspace.warn(f"{publication.path} was not written: {error.message}")


def shelf(state: str, create: bool = True) -> int | None:
    """Tenuto's own folder for files on their way in or out."""
    try:
        return os.open(state + "/shelf", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        if not create:
            return None
        os.makedirs(state + "/shelf", exist_ok=True)
        return os.open(state + "/shelf", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def key_of(tree: str, path: str) -> str:
    """The name under which renders of a file are remembered: linked work trees have files of their own."""
    return f"{tree}//{path}" if tree else path


def shelf_name(key: str) -> str:
    return digest(key.encode())[:32]


def _show_state(workspace: Workspace, publication: Publication, depth: int) -> None:
    root = workspace.root_of(publication.tree)
    if root is None:
        return
    content, name = publication.content, shelf_name(key_of(publication.tree, publication.path))
    assert isinstance(content, bytes)
    spot, fd = place(root, publication.path), shelf(workspace.state)
    assert spot is not None and fd is not None
    with spot:
        try:
            published, found = publish(spot, publication.expected, content, fd, name)
            if found is None:
                return
            try:
                if depth == _TRIES:
                    raise Refused(
                        "busy-file", f"{publication.path} is rewritten by others faster than it can be merged"
                    )
                workspace.absorb(publication, found, content if published else found, depth + 1)
            except TenutoError:
                if published:
                    take_back(spot, content, fd, name)
                raise
        finally:
            os.close(fd)


def _show_artifact(workspace: Workspace, publication: Publication) -> None:
    root = workspace.root_of(publication.tree)
    if root is None:
        return
    spot, fd = place(root, publication.path), shelf(workspace.state)
    assert spot is not None and fd is not None
    name = shelf_name(publication.path)
    with spot:
        try:
            if isinstance(publication.content, str):
                from tenuto.workspace.objects import copy_to

                copy_to(publication.content, fd, name)
                os.rename(name, spot.name, src_dir_fd=fd, dst_dir_fd=spot.fd)
                return
            before = spot.read()
            if before != publication.content:
                publish(spot, before, publication.content, fd, name)
        finally:
            os.close(fd)


def _append(workspace: Workspace, publication: Publication) -> None:
    """Everything of the log that the file does not have yet: also what a crash kept from it."""
    spot = place(workspace.root, publication.path)
    assert spot is not None
    with spot, workspace.journal.read() as reader:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(spot.name, flags, 0o644, dir_fd=spot.fd)
        try:
            size = os.fstat(file).st_size
            length = reader.log_length(publication.path)
            if size + len(publication.content) == length and isinstance(publication.content, bytes):
                write_all(file, publication.content)
            elif size < length:
                write_all(file, b"".join(reader.log_text(publication.path))[size:])
        finally:
            os.close(file)
