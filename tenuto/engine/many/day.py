"""What all runs of this repository have spent together, held against what they may: before anything is dispatched.

    account = Account(workspace)
    account.admitted(reader, settings, now, wanted)    how many of these attempts may start, and what keeps the next one
                                                       back
    account.look(reader, settings, now)                what is used in this day, and ever, of each limit

The rule is core's (core/queue/day.py); here it is looked up what the runs have spent. A run that has not changed since
the last look is not read again. Under the lock of a turn the answer is true for all engines: each records what it
dispatches before it lets the lock go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tenuto.core.queue.calendar import midnight, next_midnight
from tenuto.core.queue.day import held_of, shortage, stricter, together, used
from tenuto.core.times import iso, milliseconds
from tenuto.engine.many.timetable import budget_of, offset_of
from tenuto.workspace.locate import main_root
from tenuto.workspace.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.queue.day import Budget, DayShortage, Used
    from tenuto.core.records.run import Amounts
    from tenuto.ports import Reader
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace


class Admitted(NamedTuple):
    number: int
    short: DayShortage | None
    until: str  # when the day ends


class UsedOf(NamedTuple):
    span: str  # day, ever
    unit: str
    limit: int
    held: float


class _Known(NamedTuple):
    version: int
    since: int
    day: Used
    ever: Used


class Account:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._known: dict[str, _Known] = {}

    def admitted(self, reader: Reader, settings: Settings, wanted: list[Amounts]) -> Admitted:
        """`settings`: as the run has them; what the settings say now counts as well, the lower limit of both."""
        now = self._settings_now()
        budget = stricter(budget_of(settings), budget_of(now))
        if not (budget["per_day"] or budget["ever"]):
            return Admitted(len(wanted), None, "")
        offset, at = offset_of(now.get("zone", "")), milliseconds(self.workspace.clock()) or 0
        day, ever = self._read(reader, budget, midnight(offset, at))
        short = None
        for number in range(len(wanted), 0, -1):
            left = shortage(budget, day, ever, wanted[:number])
            if left is None:
                return Admitted(number, short, iso(next_midnight(offset, at)))
            short = left
        return Admitted(0, short, iso(next_midnight(offset, at)))

    def look(self, reader: Reader) -> Iterator[UsedOf]:
        now = self._settings_now()
        budget = budget_of(now)
        if not (budget["per_day"] or budget["ever"]):
            return
        offset, at = offset_of(now.get("zone", "")), milliseconds(self.workspace.clock()) or 0
        day, ever = self._read(reader, budget, midnight(offset, at))
        for span, limits, known in (("day", budget["per_day"], day), ("ever", budget["ever"], ever)):
            for unit, limit in limits.items():
                if limit is not None:
                    yield UsedOf(span, unit, limit, held_of(unit, limit, known, ever["dearest"]))

    def _settings_now(self) -> Settings:
        """Of the main tree: the copy in a run's own tree is not what a person changes."""
        here = self.workspace
        return read_settings(main_root(here.root, here.tree, here.state) or here.root, here.state)

    def _read(self, reader: Reader, budget: Budget, since: int) -> tuple[Used, Used]:
        summaries = reader.runs()
        if not budget["ever"]:  # what has not happened today counts only while it is under way
            first = iso(since)
            unfinished = {one["id"] for one in reader.unfinished()}
            summaries = [one for one in summaries if one["updated_at"] >= first or one["id"] in unfinished]
        versions = reader.versions()
        found = [self._of(reader, one["id"], versions.get(one["id"], 0), since) for one in summaries]
        return together(one.day for one in found), together(one.ever for one in found)

    def _of(self, reader: Reader, name: str, version: int, since: int) -> _Known:
        known = self._known.get(name)
        if known is None or (known.version, known.since) != (version, since):
            run = reader.load(name)
            attempts = list(run["attempts"].values()) if run is not None else []
            known = self._known[name] = _Known(version, since, used(attempts, since), used(attempts, 0))
        return known
