"""Files of the repository as they lie there, for whoever needs facts about them. Nothing is changed.

Every path is below the repository and no link leads outside (tenuto.files.places).
"""

from __future__ import annotations

import posix

from tenuto.files.places import place, read_all
from tenuto.workspace.objects import content_of, hash_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Reader
    from tenuto.workspace.turn import Workspace


class Files:
    """The files of one work tree."""

    def __init__(self, workspace: Workspace, tree: str) -> None:
        self._state = workspace.state
        self._secrecy = workspace.secrecy
        self.root = workspace.root_of(tree)

    def read(self, path: str) -> bytes | None:
        """All of a file, without secrets; None where there is none."""
        spot = place(self.root, path, create=False) if self.root else None
        if spot is None:
            return None
        with spot:
            text = spot.read()
        return text if self._secrecy is None or text is None else self._secrecy.masked(text, path)

    def names(self, path: str) -> list[str]:
        """What a folder holds, sorted; nothing where there is no such folder."""
        spot = place(self.root, f"{path}/x", create=False) if self.root else None
        if spot is None:
            return []
        with spot:
            return sorted(posix.listdir(spot.fd))

    def changed_at(self, path: str) -> int | None:
        """When a file or folder was last written to, in nanoseconds; None where there is none."""
        try:
            return posix.stat(f"{self.root}/{path}").st_mtime_ns
        except OSError:
            return None

    def is_written(self, path: str) -> bool:
        """Whether somebody has the file open for writing at this moment."""
        from tenuto.files.exchange import is_written

        spot = place(self.root, path, create=False) if self.root else None
        if spot is None:
            return False
        with spot:
            return is_written(spot.fd, spot.name)

    def hash_of(self, path: str) -> str | None:
        return hash_at(self.root, path) if self.root else None

    def stored(self, reader: Reader, sha256: str, limit: int = -1) -> bytes:
        """A stored content by its hash; `limit`: no more than so many bytes of it."""
        found = content_of(self._state, reader, sha256)
        if isinstance(found, bytes):
            return found if limit < 0 else found[:limit]
        file = posix.open(found, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return read_all(file) if limit < 0 else posix.read(file, limit)
        finally:
            posix.close(file)
