"""Replace a file that others may be rewriting at this moment, and lose nobody's write.

    publish_at(root, path, expected, new, shelf, name)    all of it, where nobody else writes; else what is under way:

    done = publish(place, expected, new, shelf, name)
    done.found            what somebody else wrote between our look and now (None: nobody did)
    done.rewrite(text)    theirs and ours as one: it becomes what stands there. False: not any more, publish again
    done.take_back()      theirs cannot be understood: it goes back to where its writer put it
    done.settle(text)     readers are let in

A new inode is written aside (on the shelf, in Tenuto's own folder) and exchanged with the file in one
step; what was displaced is read afterwards. Other bytes than `expected` mean that somebody wrote in between.

Until that is absorbed our file stands there without their change. A program that read it now, added to it and
wrote it back would lose its own last write. So the new inode carries a lease of the kernel: whoever opens it waits
until we settle, and then sees what was made of both. The exchange thus works like a lock that programs obey without
knowing of it. The kernel breaks a lease that is held for 45 s (/proc/sys/fs/lease-break-time); a crash ends it.

What was displaced stays on the shelf until the next publication of that path, which looks at it once more: a
program that held it open may have written to it since.

Where there is no exchange: check, then rename. Where there is no lease: exchange again. Measured against a program
that reads, changes and renames as fast as it can, 2,000 times: 546 writes lost without the lease, none with it.

A file's place is found so that no name and no link can lead outside: the path is checked name by name, and every folder
on the way is opened relative to the one before with O_NOFOLLOW. A folder that is a link, or becomes one while we look,
is refused.
"""

from __future__ import annotations

import posix as os  # the part of it that is C; all of os costs a hook a fifth of the interpreter's start

from tenuto.errors import Refused
from tenuto.names import check_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


# Bytes of a state file or a document: no person writes more, and to read it all would take too long.
LARGEST = 256 << 20
_ELOOP = 40
_MOST_CHECKED = 1024
_checked: set[str] = set()  # paths whose names are good: a turn comes to the same file again and again
_KIND, _PLAIN_FILE, _DIRECTORY = 0o170000, 0o100000, 0o040000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """An open folder and a name in it. `with` closes the folder."""

    __slots__ = ("fd", "name", "path")

    def __init__(self, fd: int, name: str, path: str) -> None:
        self.fd = fd
        self.name = name
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def read(self) -> bytes | None:
        """All of the file; None where there is none."""
        try:
            file = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "is a symbolic link" if error.errno == _ELOOP else f"cannot be read: {error.strerror}"
            raise Refused("bad-file", f"{self.path} {why}", "move it away", path=self.path) from None
        try:
            found = os.fstat(file)
            if found.st_mode & _KIND not in (_PLAIN_FILE, _DIRECTORY):  # a pipe or a device has no end
                raise Refused("bad-file", f"{self.path} is no plain file", "move it away", path=self.path)
            size = found.st_size
            if size > LARGEST:
                raise Refused(
                    "too-large", f"{self.path} has {size} bytes; {LARGEST} are the most", "move it away", path=self.path
                )
            return read_all(file)
        except IsADirectoryError:
            raise Refused("bad-file", f"{self.path} is a folder", "move it away", path=self.path) from None
        finally:
            os.close(file)


def read_all(file: int) -> bytes:
    chunks = []
    while chunk := os.read(file, 1 << 16):  # more than this and each read maps memory anew
        chunks.append(chunk)
    return b"".join(chunks)


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def place(root: str, path: str, create: bool = True) -> Place | None:
    """The place of `path` below `root`. Without `create`, None where a folder on the way is missing."""
    if path not in _checked:
        check_path(path, colons=True)
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked.add(path)
    if create and path.partition("/")[0].lower() == ".git":
        raise Refused("bad-folder", f"{path} belongs to git", "name another place", path=path)
    return descend(root, path, create)


def read_file(root: str, path: str) -> bytes | None:
    """All of a file below `root`; None where there is none."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    try:
        return spot.read()
    finally:
        os.close(spot.fd)


def open_file(root: str, path: str, hint: str = "move it away") -> int | None:
    """A file below `root`, open for reading; None where there is none."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    try:
        return os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=spot.fd)
    except FileNotFoundError:
        return None
    except OSError:
        raise Refused("bad-file", f"{path} is not a plain file", hint, path=path) from None
    finally:
        os.close(spot.fd)


def make_room(root: str, path: str) -> None:
    """The folders on the way to a file below `root`."""
    spot = place(root, path)
    if spot is not None:
        os.close(spot.fd)


def append_file(root: str, path: str, text: bytes, length: int) -> int:
    """Add `text`, after which the file is `length` bytes long. Where it would not be: its size, and nothing is added.

    Returns `length` where it was added.
    """
    spot = place(root, path)
    assert spot is not None
    with spot:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(spot.name, flags, 0o644, dir_fd=spot.fd)
    try:
        size = os.fstat(file).st_size
        if size + len(text) != length:
            return size
        write_all(file, text)
        return length
    finally:
        os.close(file)


def descend(root: str, path: str, create: bool = True) -> Place | None:
    """The same for a name that others chose, and that the caller knows not to lead up."""
    parts = path.split("/")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(parts[:-1], 1):
        try:
            below = _enter(here, part, create)
        except OSError:
            raise no_folder("/".join(parts[:number])) from None
        finally:
            os.close(here)
        if below is None:
            return None
        here = below
    return Place(here, parts[-1], path)


def no_folder(path: str) -> Refused:
    return Refused(
        "bad-folder", f"{path} is not a folder of this repository", "a link or a file stands in the way", path=path
    )


def _enter(folder: int, name: str, create: bool) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            return None
    try:
        os.mkdir(name, dir_fd=folder)
        os.fsync(folder)  # a file that is flushed below it would be lost with it
    except FileExistsError:
        pass  # another process was faster
    return os.open(name, _FOLDER, dir_fd=folder)


_RENAME_EXCHANGE = 2
_ON_ANOTHER_FILE_SYSTEM = 18  # EXDEV
_PATIENCE, _PATIENCE_WITH_NOTHING = 50, 2000  # milliseconds without a change, for somebody who writes in place
_POUNCE_SECONDS = 0.005
_exchange_at = 0  # address of renameat2 in the C library; -1: there is none
_held: dict[tuple[int, int], bytes] = {}  # files under a lease of this process: we must not open them either


class Exchange:
    """One publication under way. `published`: our file stands in the place now, or did a moment ago."""

    __slots__ = ("_aside", "_aside_fd", "_file", "_identity", "_place", "found", "published")

    def __init__(self, place: Place, aside_fd: int, aside: str, file: int) -> None:
        self.published = False
        self.found: bytes | None = None
        self._place = place
        self._aside_fd = aside_fd
        self._aside = aside
        self._file = file
        status = os.fstat(file)
        self._identity = (status.st_dev, status.st_ino)

    def run(self, expected: bytes | None, new: bytes, pounce: bool) -> None:
        if expected is None:
            self._create()
            return
        _keep_mode(self._place, self._aside_fd, self._aside)
        if _lease(self._file):
            _held[self._identity] = new
            if pounce:
                _await_next_version(self._place)
        if self._exchange():
            self.published = True
            found = look_when_quiet(self._aside_fd, self._aside)
            self.found = None if found == expected else found
            return
        found = self._place.read()
        if found is not None and found != expected:
            self.found = found
            return
        os.rename(self._aside, self._place.name, src_dir_fd=self._aside_fd, dst_dir_fd=self._place.fd)
        self.published = True

    def displaced(self) -> bytes | None:
        """What somebody else wrote, read once more: it may have been half-way before."""
        return look_when_quiet(self._aside_fd, self._aside) if self.published else self._place.read()

    def rewrite(self, text: bytes) -> bool:
        """Nobody has opened our file so far, so it can still change. False: it is not there any more, or had no
        lease."""
        if self._identity not in _held or not self._stands():
            return False
        self._fill(self._file, text)
        return self._stands()

    def take_back(self) -> None:
        if self.published and self._exchange() and _identify(self._aside_fd, self._aside) != self._identity:
            self._exchange()  # a newer write than theirs stands there: that one stays

    def settle(self, standing: bytes | None = None) -> None:
        """Whoever waits for our file is let in. If it is not there any more, they get what has taken its place."""
        if self._file < 0:
            return
        file, self._file = self._file, -1
        try:
            held = _held.pop(self._identity, None)
            if held is not None and self.published and standing is not None and not self._stands():
                self._fill(file, standing)
        finally:
            os.close(file)  # which ends the lease
        if self._aside_fd == self._place.fd:
            discard(self._aside_fd, self._aside)

    def _stands(self) -> bool:
        return self.published and _identify(self._place.fd, self._place.name) == self._identity

    def _fill(self, file: int, text: bytes) -> None:
        """In one write, blanks over what is left of a longer text: killed before it is cut off, it still reads the
        same."""
        os.lseek(file, 0, 0)
        write_all(file, text.ljust(os.fstat(file).st_size, b"\n"))
        os.ftruncate(file, len(text))
        if self._identity in _held:
            _held[self._identity] = text

    def _create(self) -> None:
        to = {"src_dir_fd": self._aside_fd, "dst_dir_fd": self._place.fd}
        try:
            os.link(self._aside, self._place.name, follow_symlinks=False, **to)
        except FileExistsError:
            self.found = self._place.read() or b""
            return
        except PermissionError:  # a file system without hard links
            os.rename(self._aside, self._place.name, **to)
        else:
            os.unlink(self._aside, dir_fd=self._aside_fd)
        self.published = True

    def _exchange(self) -> bool:
        return _exchange(self._aside_fd, self._aside, self._place.fd, self._place.name)


def publish(
    place: Place, expected: bytes | None, new: bytes, shelf: int, name: str, pounce: bool = False, lasting: bool = False
) -> Exchange:
    """Make `new` the content of the place, which held `expected` (None: nothing) a moment ago.

    `pounce`: somebody rewrites it all the time. Right after one of their writes they have not read the file
    again: from then on the lease holds them. `lasting`: flushed before it gets its name, and the name, too.
    """
    try:
        return _publish(place, expected, new, shelf, name, pounce, lasting)
    except OSError as error:
        if error.errno != _ON_ANOTHER_FILE_SYSTEM:
            raise
    discard(shelf, name)
    return _publish(place, expected, new, place.fd, beside(place.name), pounce, lasting)


def publish_at(
    root: str, path: str, expected: bytes | None, new: bytes, shelf: int, name: str
) -> tuple[Place, Exchange] | None:
    """`publish` at a path below `root`. None where it is done; else somebody wrote meanwhile, and the caller, who gets
    the open place, makes one of both.
    """
    spot = place(root, path)
    assert spot is not None
    try:
        done = publish(spot, expected, new, shelf, name)
    except BaseException:
        os.close(spot.fd)
        raise
    if done.found is not None:
        return spot, done
    os.close(spot.fd)
    return None


def beside(name: str) -> str:
    """Where a file waits when the shelf lies on another file system."""
    return f".{name}.tenuto-new"


def _publish(
    place: Place, expected: bytes | None, new: bytes, aside_fd: int, aside: str, pounce: bool, lasting: bool
) -> Exchange:
    discard(aside_fd, aside)
    file = _write_new(aside_fd, aside, new)
    made = Exchange(place, aside_fd, aside, file)
    try:
        if lasting:
            os.fsync(file)
        made.run(expected, new, pounce)
        if lasting:
            os.fsync(place.fd)
    except BaseException:
        made.settle()
        raise
    if made.found is None:
        made.settle()
    return made


def look(fd: int, name: str) -> bytes | None:
    return _look(fd, name)[0]


def is_written(fd: int, name: str) -> bool:
    """Whether somebody has the file open for writing. False where nobody can tell."""
    return _look(fd, name)[1]


def look_when_quiet(fd: int, name: str) -> bytes | None:
    """The same, once nobody has the file open for writing: not half of what is being written in place."""
    text, written = _look(fd, name)
    waited = 0
    while written and waited < (_PATIENCE if text and text.strip() else _PATIENCE_WITH_NOTHING):
        from time import sleep

        sleep(0.001)
        waited += 1
        before = text
        text, written = _look(fd, name)
        if text != before:
            waited = 0
    return text


def _look(fd: int, name: str) -> tuple[bytes | None, bool]:
    """The text, and whether somebody has the file open for writing."""
    if _held:
        held = _held.get(_identify(fd, name))
        if held is not None:
            return held, False
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd)
    except OSError:
        return None, False
    try:
        written = _is_written(file)
        return read_all(file), written
    finally:
        os.close(file)


def discard(fd: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass


def _await_next_version(place: Place) -> None:
    from time import monotonic

    standing, end = _identify(place.fd, place.name), monotonic() + _POUNCE_SECONDS
    while _identify(place.fd, place.name) == standing and monotonic() < end:
        pass  # they read again some microseconds after their write: sleeping would be too late


def _identify(fd: int, name: str) -> tuple[int, int]:
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _write_new(fd: int, name: str, data: bytes) -> int:
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=fd)
    try:
        write_all(file, data)
        # Times of whole milliseconds are the mark of our own files: another program's write has more digits.
        changed = os.fstat(file).st_mtime_ns // 1_000_000 * 1_000_000
        os.utime(file, ns=(changed, changed))
    except BaseException:
        os.close(file)
        raise
    return file


def _keep_mode(place: Place, aside_fd: int, aside: str) -> None:
    try:
        mode = os.stat(place.name, dir_fd=place.fd, follow_symlinks=False).st_mode & 0o777
        if mode != os.stat(aside, dir_fd=aside_fd, follow_symlinks=False).st_mode & 0o777:  # as the umask left it
            os.chmod(aside, mode, dir_fd=aside_fd)
    except FileNotFoundError:
        pass


def _lease(file: int) -> bool:
    """Nobody else can open this file until we close it. False where that cannot be had."""
    try:
        from _signal import SIGURG  # type: ignore[import-not-found]
        from fcntl import F_SETLEASE, F_SETSIG, F_WRLCK, fcntl

        fcntl(file, F_SETSIG, SIGURG)  # somebody waits: a signal that is ignored unless asked for, not one that kills
        fcntl(file, F_SETLEASE, F_WRLCK)
    except (ImportError, OSError):
        return False
    return True


def _is_written(file: int) -> bool:
    """Whether somebody has it open for writing: then there is no lease for readers. False where nobody can tell."""
    try:
        from _signal import SIGURG
        from fcntl import F_RDLCK, F_SETLEASE, F_SETSIG, F_UNLCK, fcntl

        fcntl(file, F_SETSIG, SIGURG)
        fcntl(file, F_SETLEASE, F_RDLCK)
        fcntl(file, F_SETLEASE, F_UNLCK)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        pass
    return False


def _exchange(one_fd: int, one: str, other_fd: int, other: str) -> bool:
    """Both names change places in one step. False where that cannot be done here, or one is missing."""
    global _exchange_at
    if _exchange_at == 0:
        _exchange_at = _find_renameat2()
    if _exchange_at == -1:
        return False
    from _ctypes import call_function

    result: int = call_function(_exchange_at, (one_fd, _encoded(one), other_fd, _encoded(other), _RENAME_EXCHANGE))
    return result == 0


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _find_renameat2() -> int:
    # ctypes itself is slow to import; the C module behind it can look up and call a function.
    try:
        from _ctypes import dlopen, dlsym

        return int(dlsym(dlopen(None, 0), "renameat2"))  # type: ignore[arg-type]
    except (ImportError, OSError):
        return -1
