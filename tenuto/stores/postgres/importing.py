"""A backup that is read into PostgreSQL: many records in one message, so that what stands in it twice is seen late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.stores.backup import Import
from tenuto.stores.records import damaged

if TYPE_CHECKING:
    from tenuto.stores.postgres.link import Link


class PostgresImport(Import):
    _db: Link

    def finish(self) -> None:
        try:
            self._db.send([])
            super().finish()
            self._db.send([])
        except self._db.Duplicate:
            raise damaged("a record stands in it twice") from None
