"""Large stored files in PostgreSQL: rows of 1 MiB, written in the turn that names the file.

Beside the journal, objects/ of each machine holds those that it has stored or asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.encoding import sha256
from tenuto.stores.journal import object_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.ports import Finding
    from tenuto.stores.postgres.link import Link

_PIECE = 1 << 20


def large_contents(link: Link) -> list[str]:
    return [sha for (sha,) in link.execute("SELECT sha256 FROM piece WHERE n=0 ORDER BY sha256")]


def large(link: Link, sha: str) -> Iterator[bytes]:
    number = 0
    while row := link.execute("SELECT body FROM piece WHERE sha256=? AND n=?", (sha, number)).fetchone():
        yield row[0]
        number += 1


def put_large(link: Link, folder: str, sha: str) -> None:
    """A large stored file that lies beside the journal here goes into it, unless it is there already."""
    try:
        file = open(object_path(folder, sha), "rb")  # noqa: SIM115  # closed below
    except OSError:
        return  # it is a small one; or it came from elsewhere
    with file:
        if link.execute("SELECT 1 FROM piece WHERE sha256=? AND n=0", (sha,)).fetchone():
            return
        number = 0
        while body := file.read(_PIECE):
            link.execute("INSERT INTO piece VALUES(?,?,?)", (sha, number, body))
            number += 1


def verify_pieces(link: Link) -> Iterator[Finding]:
    from tenuto.stores.verify import BACKUP, finding

    for sha in large_contents(link):
        hashed = sha256()
        for part in large(link, sha):
            hashed.update(part)
        if hashed.hexdigest() != sha:
            yield finding("damage", None, f"content {sha}", "the stored file is not what was stored", BACKUP)
