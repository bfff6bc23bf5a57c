"""After the commit, still under the lock: make the files show what the journal says.

A file that changed between our look and our exchange is absorbed in a turn of its own, again and
again; after 32 times it is named and left. A failure here loses nothing: the events are durable,
and the next turn (or `tenuto repair`) writes the files again.
"""

from __future__ import annotations

import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start

from tenuto.encoding import digest
from tenuto.errors import Refused, TenutoError
from tenuto.files.exchange import (
    append_file,
    beside,
    discard,
    is_written,
    look,
    place,
    publish,
    publish_at,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.files.exchange import Exchange, Place
    from tenuto.workspace.workspace import Workspace

    # (workspace, publication, what somebody wrote, what stands in the file) -> what the file is to show
    Absorb = Callable[[Workspace, "Publication", bytes, bytes], bytes]

_TRIES = 32
_WAIT_STEPS, _WAIT_SECONDS = 20, 0.005
_LARGE = 8 << 20


class Publication:
    """One file to be written: a whole state file, an artifact, or text for an append-only file (`kind` "log", which
    is `length` bytes long then; with `expected`, all of it in the place of those damaged bytes).

    `key`: the file's name in the journal, which says where what it displaces is put.
    """

    __slots__ = ("content", "expected", "key", "kind", "length", "path", "remembered", "run", "tree")

    def __init__(
        self,
        key: str,
        tree: str,
        path: str,
        expected: bytes | None,
        content: bytes | str,
        run: str,
        kind: str,
        remembered: bool,
        length: int = 0,
    ) -> None:
        self.key = key
        self.length = length
        self.tree = tree
        self.path = path
        self.expected = expected
        self.content = content
        self.run = run
        self.kind = kind
        self.remembered = remembered


def publish_all(workspace: Workspace, publications: list[Publication], absorb: Absorb) -> None:
    """`absorb`: takes in what somebody wrote into a file while it was being exchanged."""
    shown_anew: set[str] = set()
    incomplete: set[str] = set()  # runs with an artifact that could not be written: their state files must not be newer
    for publication in publications:
        if publication.kind and publication.run in incomplete:
            continue
        try:
            if publication.kind == "log":
                _append(workspace, publication)
            elif publication.kind == "":
                _show_artifact(workspace, publication)
            elif publication.run not in shown_anew and _show_state(workspace, publication, absorb):
                shown_anew.add(publication.run)
        except OSError as error:
            if not publication.kind:
                incomplete.add(publication.run)
            workspace.warn(
                f"{publication.path} could not be written ({error}); it is recorded, and the next command writes it"
            )
        except TenutoError as error:
            workspace.warn(f"{publication.path} was not written: {error.message}")


def displaced_folder(state: str, create: bool = True) -> int | None:
    """Tenuto's own folder for files on their way in or out."""
    try:
        return os.open(state + "/shelf", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        if not create:
            return None
        os.mkdir(state + "/shelf")
        return os.open(state + "/shelf", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def displaced_name(key: str) -> str:
    return digest(key.encode())[:32]


def _show_state(workspace: Workspace, publication: Publication, absorb: Absorb) -> bool:
    """True when others' writes were absorbed on the way: the run's other files have been shown anew by then."""
    root = workspace.root_of(publication.tree)
    if root is None:
        return False
    content, fd = publication.content, displaced_folder(workspace.state)
    assert isinstance(content, bytes) and fd is not None
    try:
        name = displaced_name(publication.key)
        begun = publish_at(root, publication.path, publication.expected, content, fd, name)
        if begun is None:
            _clear(workspace, fd, name, publication.expected)
            return False
        with begun[0] as spot:
            _exchange(workspace, publication, content, spot, begun[1], fd, absorb)
        return True
    finally:
        os.close(fd)


def _exchange(
    workspace: Workspace,
    publication: Publication,
    content: bytes,
    spot: Place,
    first: Exchange,
    fd: int,
    absorb: Absorb,
) -> None:
    """Somebody else writes there: theirs and ours become one, as often as it takes."""
    name, under_way = displaced_name(publication.key), [first]
    try:
        while (done := under_way[-1]).found is not None:
            if len(under_way) > _TRIES:
                raise Refused("busy-file", f"{publication.path} is rewritten by others faster than it can be merged")
            found = wait_for_whole(publication.path, done.found, done.displaced)
            standing = content if done.published else found
            content = absorb(workspace, publication, found, standing)
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


def clear_displaced(workspace: Workspace, looked_at: dict[str, bytes | None]) -> None:
    """What held a secret and is in the journal without it; somebody was killed before they had done this."""
    fd = displaced_folder(workspace.state, create=False)
    if fd is not None:
        for name, text in looked_at.items():
            _discard_secret(workspace, fd, name, text)
        os.close(fd)


def _clear(workspace: Workspace, fd: int, name: str, looked_at: bytes | None) -> None:
    """A displaced file stays for the next look, unless it holds a secret: then it was looked at for the last time."""
    if looked_at is not None and workspace.has_secrets:
        _discard_secret(workspace, fd, name, looked_at)


def _discard_secret(workspace: Workspace, folder: int, name: str, looked_at: bytes | None) -> None:
    """A displaced file, if it holds a secret and says what was `looked_at` (None: any text). One that a program has
    open stays: it may be writing to it, and the next turn looks at it once more.
    """
    if not workspace.has_secrets or is_written(folder, name):
        return
    text = look(folder, name)
    if text is not None and looked_at in (None, text) and workspace.secrets.holds(text):
        discard(folder, name)


def wait_for_whole(path: str, found: bytes, again: Callable[[], bytes | None]) -> bytes:
    """A program that writes in place empties the file first: its text is whole a moment later.

    What stays broken is returned as it is; the caller says so.
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
    """Flushed, unlike a state file: no turn looks at all artifacts again and would notice that one came back empty."""
    root = workspace.root_of(publication.tree)
    if root is None:
        return
    spot, fd = place(root, publication.path), displaced_folder(workspace.state)
    assert spot is not None and fd is not None
    name = displaced_name(publication.path)
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
    """Too large to be held in memory, only to see that it did not change in the last millisecond."""
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
        except OSError:  # the displaced file would lie on another file system
            discard(folder, aside)


def _show_copy(spot: Place, source: str, fd: int, name: str) -> None:
    from tenuto.workspace.objects import copy_to

    copy_to(source, fd, name)
    try:
        os.rename(name, spot.name, src_dir_fd=fd, dst_dir_fd=spot.fd)
    except OSError:  # the displaced file would lie on another file system
        discard(fd, name)
        copy_to(source, spot.fd, beside(spot.name))
        os.rename(beside(spot.name), spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
    os.fsync(spot.fd)


def move_aside(workspace: Workspace, path: str, aside: str) -> None:
    """A file of the work tree goes to another place, whoever writes to it at this moment. One that is gone is gone."""
    here = place(workspace.root, path, create=False)
    if here is None:
        return
    there = place(workspace.root, aside)
    assert there is not None
    with here, there:
        try:
            os.rename(here.name, there.name, src_dir_fd=here.fd, dst_dir_fd=there.fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            workspace.warn(f"{path} could not be set aside ({error}): it is of an earlier visit; move it away")


def _append(workspace: Workspace, publication: Publication) -> None:
    """Everything of the log that the file does not have yet: also what a crash kept from it."""
    path, length = publication.path, publication.length
    assert isinstance(publication.content, bytes)
    if publication.expected is None:
        size = append_file(workspace.root, path, publication.content, length)
        if size >= length:
            return
    with workspace.journal.read() as reader:
        text = b"".join(reader.log_text(path))
    if publication.expected is None:
        append_file(workspace.root, path, text[size:], length)
    else:
        _replace_log(workspace, publication, publication.expected, text)


def _replace_log(workspace: Workspace, publication: Publication, damaged: bytes, text: bytes) -> None:
    """What stands there is damaged, and kept in quarantine. If it was written to since, the next turn looks again."""
    fd = displaced_folder(workspace.state)
    assert fd is not None
    try:
        name = displaced_name(publication.path)
        begun = publish_at(workspace.root, publication.path, damaged, text, fd, name)
        if begun is not None:
            with begun[0]:
                begun[1].take_back()
                begun[1].settle()
        _clear(workspace, fd, name, damaged)
    finally:
        os.close(fd)
