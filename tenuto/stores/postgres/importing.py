"""A backup that is read into PostgreSQL: many records in one message, so that what stands in it twice is seen late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.stores.backup import Import, stored_by
from tenuto.stores.postgres.pieces import put_large
from tenuto.stores.records import damaged

if TYPE_CHECKING:
    from tenuto.stores.postgres.link import Link


class PostgresImport(Import):
    _db: Link

    def __init__(self, link: Link, folder: str) -> None:
        super().__init__(link)
        self._folder = folder

    def finish(self) -> None:
        try:
            self._db.send([])
            super().finish()
            for sha in stored_by(self._db, self.runs):
                put_large(self._db, self._folder, sha)
            self._db.send([])
        except self._db.Duplicate:
            raise damaged("a record stands in it twice") from None
