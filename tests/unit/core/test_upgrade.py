"""Which versions of events there are, and that no journal is left behind."""

from __future__ import annotations

import pytest

from tenuto.core.upgrade import UPGRADES, VERSIONS, upgrade
from tenuto.errors import SchemaSkew


def test_every_version_that_was_ever_written_can_be_read() -> None:
    """A type at version 3 has a way from 1 to 2 and from 2 to 3, and no other."""
    assert set(UPGRADES) == {(type_, old) for type_, newest in VERSIONS.items() for old in range(1, newest)}


def test_an_event_of_today_is_left_alone() -> None:
    event = {"type": "Noted", "v": 1, "text": "as it is"}
    assert upgrade(event, "a") is event


def test_an_event_of_tomorrow_is_refused_by_name() -> None:
    with pytest.raises(SchemaSkew, match="run a holds an event Noted of version 7; this tenuto knows 1"):
        upgrade({"type": "Noted", "v": 7}, "a")


def test_an_old_event_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.core import upgrade as module

    monkeypatch.setitem(module.VERSIONS, "Noted", 3)
    monkeypatch.setitem(module.UPGRADES, ("Noted", 1), lambda event: {**event, "v": 2, "two": True})
    monkeypatch.setitem(module.UPGRADES, ("Noted", 2), lambda event: {**event, "v": 3, "three": True})
    assert module.upgrade({"type": "Noted", "v": 1}, "x") == {"type": "Noted", "v": 3, "two": True, "three": True}
    assert module.upgrade({"type": "Noted", "v": 3}, "x") == {"type": "Noted", "v": 3}
