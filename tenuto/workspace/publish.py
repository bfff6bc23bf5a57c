"""After the commit, still under the lock: make the files show what the journal says.

A file that changed between our look and our exchange is absorbed in a turn of its own, again and
again; after 32 times it is named and left. A failure here loses nothing: the events are durable,
and the next turn (or `tenuto repair`) writes the files again.
"""

from __future__ import annotations

import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start

from tenuto.encoding import digest
from tenuto.errors import Refused, TenutoError
from tenuto.files.exchange import beside, discard, publish
from tenuto.files.places import place, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.files.places import Place
    from tenuto.workspace.turn import Workspace

_TRIES = 32
_WAIT_STEPS, _WAIT_SECONDS = 20, 0.005
_LARGE = 8 << 20


class Publication:
    """One file to be written: a whole state file, an artifact, or text for an append-only file (`kind` "log"; with
    `expected`, all of it in the place of those damaged bytes)."""

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


def publish_all(workspace: Workspace, publications: list[Publication]) -> None:
    shown_anew: set[str] = set()
    for publication in publications:
        try:
            if publication.kind == "log":
                _append(workspace, publication)
            elif publication.kind == "":
                _show_artifact(workspace, publication)
            elif publication.run not in shown_anew and _show_state(workspace, publication):
                shown_anew.add(publication.run)
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
        os.mkdir(state + "/shelf")
        return os.open(state + "/shelf", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def key_of(tree: str, path: str) -> str:
    """The name under which renders of a file are remembered: linked work trees have files of their own."""
    return f"{tree}//{path}" if tree else path


def shelf_name(key: str) -> str:
    return digest(key.encode())[:32]


def _show_state(workspace: Workspace, publication: Publication) -> bool:
    """True when others' writes were absorbed on the way: the run's other files have been shown anew by then."""
    root = workspace.root_of(publication.tree)
    if root is None:
        return False
    spot, fd = place(root, publication.path), shelf(workspace.state)
    assert spot is not None and fd is not None
    with spot:
        try:
            return _exchange(workspace, publication, spot, fd)
        finally:
            os.close(fd)


def _exchange(workspace: Workspace, publication: Publication, spot: Place, fd: int) -> bool:
    content, name = publication.content, shelf_name(key_of(publication.tree, publication.path))
    assert isinstance(content, bytes)
    under_way = [publish(spot, publication.expected, content, fd, name)]
    if under_way[0].found is None:
        _clear(workspace, fd, name, publication.expected)
        return False
    from tenuto.workspace.foreign import absorb_meanwhile

    try:
        while (done := under_way[-1]).found is not None:
            if len(under_way) > _TRIES:
                raise Refused("busy-file", f"{publication.path} is rewritten by others faster than it can be merged")
            found = wait_for_whole(publication.path, done.found, done.displaced)
            standing = content if done.published else found
            content = absorb_meanwhile(workspace, publication, found, standing)
            if done.rewrite(content):
                break
            under_way.append(publish(spot, standing, content, fd, name, pounce=True))
    except BaseException:
        under_way[-1].take_back()
        content = under_way[-1].found or content
        raise
    finally:
        for done in reversed(under_way):
            done.settle(content)
    workspace.journal.flush()
    for done in under_way:
        _clear(workspace, fd, name, done.found)
    return True


def clear_shelf(workspace: Workspace, looked_at: dict[str, bytes | None]) -> None:
    """What held a secret and is in the journal without it; somebody was killed before they had done this."""
    fd = shelf(workspace.state, create=False)
    if fd is not None:
        for name, text in looked_at.items():
            if workspace.secrecy is not None:
                workspace.secrecy.discard(fd, name, text)
        os.close(fd)


def _clear(workspace: Workspace, fd: int, name: str, looked_at: bytes | None) -> None:
    """What was displaced stays on the shelf for the next look, unless it holds a secret: then nobody looks at it any more."""
    if workspace.secrecy is not None and looked_at is not None:
        workspace.secrecy.discard(fd, name, looked_at)


def wait_for_whole(path: str, found: bytes, again: Callable[[], bytes | None]) -> bytes:
    """A program that writes in place empties the file first: its text is whole a moment later.

    What stays broken is returned as it is; whoever asked says so.
    """
    if not path.endswith(".json"):
        return found
    from time import sleep

    from tenuto.encoding import NotJson, loads_strict

    for _ in range(_WAIT_STEPS):
        try:
            loads_strict(found)
            break
        except NotJson:
            found = again() or b""
            sleep(_WAIT_SECONDS)
    return found


def _show_artifact(workspace: Workspace, publication: Publication) -> None:
    """Flushed, unlike a state file: no turn looks at all artifacts again, so none would notice that one came back empty."""
    root = workspace.root_of(publication.tree)
    if root is None:
        return
    spot, fd = place(root, publication.path), shelf(workspace.state)
    assert spot is not None and fd is not None
    name = shelf_name(publication.path)
    with spot:
        try:
            if isinstance(publication.content, str):
                _show_copy(spot, publication.content, fd, name)
                return
            if _is_large(spot):
                _show_over(spot, publication.content, fd, name)
                return
            before = spot.read()
            if before != publication.content:
                done = publish(spot, before, publication.content, fd, name, lasting=True)
                _clear(workspace, fd, name, before)
                if done.found is not None:  # somebody's version came first: it stays, and is stored before the next one
                    done.take_back()
                    done.settle()
                    workspace.warn(f"{publication.path} was changed by another program meanwhile; theirs is left there")
        finally:
            os.close(fd)


def _is_large(spot: Place) -> bool:
    """Too large to be held in memory, only to see that nobody changed it in the last millisecond."""
    try:
        return os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False).st_size > _LARGE
    except FileNotFoundError:
        return False


def _show_over(spot: Place, content: bytes, fd: int, name: str) -> None:
    for folder, aside in ((fd, name), (spot.fd, beside(spot.name))):
        discard(folder, aside)
        file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
        try:
            write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.rename(aside, spot.name, src_dir_fd=folder, dst_dir_fd=spot.fd)
            os.fsync(spot.fd)
            return
        except OSError:  # the shelf lies on another file system
            discard(folder, aside)


def _show_copy(spot: Place, source: str, fd: int, name: str) -> None:
    from tenuto.workspace.objects import copy_to

    copy_to(source, fd, name)
    try:
        os.rename(name, spot.name, src_dir_fd=fd, dst_dir_fd=spot.fd)
    except OSError:  # the shelf lies on another file system
        discard(fd, name)
        copy_to(source, spot.fd, beside(spot.name))
        os.rename(beside(spot.name), spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
    os.fsync(spot.fd)


def _append(workspace: Workspace, publication: Publication) -> None:
    """Everything of the log that the file does not have yet: also what a crash kept from it."""
    spot = place(workspace.root, publication.path)
    assert spot is not None
    with spot, workspace.journal.read() as reader:
        if publication.expected is not None:
            _replace_log(workspace, publication, spot, b"".join(reader.log_text(publication.path)))
            return
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


def _replace_log(workspace: Workspace, publication: Publication, spot: Place, text: bytes) -> None:
    """What stands there is damaged, and kept in quarantine. If somebody wrote since we looked, the next turn looks again."""
    fd = shelf(workspace.state)
    assert fd is not None
    try:
        done = publish(spot, publication.expected, text, fd, shelf_name(publication.path))
        if done.found is not None:
            done.take_back()
            done.settle()
        _clear(workspace, fd, shelf_name(publication.path), publication.expected)
    finally:
        os.close(fd)
