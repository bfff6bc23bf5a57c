"""`with journal.write() as transaction:` the same in every store: all of it or nothing, durable when the block has ended.

The lock is let go between commit and flush, so that many writers share one flush: it takes along whatever stands in
the log by then, and who writes meanwhile does not wait for a disk. Nobody is answered before their own flush, and that
covers everything that they built upon. What was committed and not flushed yet can be seen by others; a loss of
power at that moment takes it back, and nobody was told that it is there.

A turn cannot do this. It shows in files what it committed, and no file may tell of what the journal could still lose.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.ports import Journal, Transaction


class Writing:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> Transaction:
        self._journal.lock()
        try:
            return self._journal.begin(durable=False)
        except BaseException:
            self._journal.unlock()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._journal.commit()
            else:
                self._journal.rollback(error)
        finally:
            self._journal.unlock()
        if kind is None:
            self._journal.flush()
