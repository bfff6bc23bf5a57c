"""Same journal, same state, same files, on every version. The recordings beside this file are kept for ever.

When this fails, the change is wrong, not the recording: an event that was written once means for ever what it meant
then. A new kind of event, or of run, gets a recording of its own (record.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from prove import recorded
from prove.frame import ROOT
from tenuto.core import fold
from tenuto.core.upgrade import upgrade
from tenuto.encoding import dumps, loads


@pytest.mark.parametrize("name", recorded.names())
def test_a_recorded_journal_gives_the_same_runs_and_files(name: str, tmp_path: Path) -> None:
    assert recorded.replay(name, tmp_path / "repository") == []


def test_every_pipeline_and_dialect_is_recorded() -> None:
    """A pipeline that ships without a recording could change its meaning unseen."""
    shipped = {path.stem for path in (ROOT / "tenuto" / "pipelines").glob("*.yaml")}
    told = "\n".join((recorded.FOLDER / name / "journal.jsonl").read_text() for name in recorded.names())
    assert [name for name in sorted(shipped) if f'"pipeline":{{"name":"{name}"' not in told] == []
    assert [
        name
        for name in ("context", "flow", "feature_docs", "staged", "feature_state")
        if f'"dialects":{{"{name}":' not in told
    ] == []


def test_every_kind_of_event_is_recorded() -> None:
    """What a lost attempt or a raised limit means could otherwise change unseen."""
    assert recorded.unrecorded() == []


def test_no_kind_of_event_can_be_forgotten_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some recorded run rests where each of them still shows: parked, not only parked and resumed."""
    told: dict[tuple[str, str], list[Any]] = {}
    for name in recorded.names():
        for line in map(loads, (recorded.FOLDER / name / "journal.jsonl").read_text().splitlines()):
            if line["kind"] == "event" and line["run"] != "@":
                told.setdefault((name, line["run"]), []).append(upgrade(line["event"], line["run"]))
    ordinary = {run: _folded(events) for run, events in told.items()}
    unseen = []
    for kind in fold._APPLY:
        with monkeypatch.context() as patch:
            patch.setitem(fold._APPLY, kind, lambda run, event: None)
            with_it = {run: events for run, events in told.items() if any(event["type"] == kind for event in events)}
            if all(_folded(events) == ordinary[run] for run, events in with_it.items()):
                unseen.append(kind)
    # A note tells people something, and changes nothing.
    assert sorted(unseen) == sorted([*recorded.NEVER_WRITTEN, "Noted"])


def _folded(events: list[Any]) -> str:
    try:
        return dumps(fold.fold(loads(dumps(events))))
    except (KeyError, TypeError, IndexError, StopIteration) as lacking:  # what a later event builds on is not there
        return repr(lacking)


def test_a_recording_that_says_something_else_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison looks at values, keys and bytes."""
    name = "by-hand-flow"
    shutil.copytree(recorded.FOLDER / name, tmp_path / name)
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    for file in ("state.json", "files.json"):
        path = tmp_path / name / file
        whole = path.read_text()
        path.write_text(whole.replace("deep_research", "deep_search", 1))
        assert recorded.replay(name, tmp_path / f"changed {file}")
        path.write_text(whole)
    assert recorded.replay(name, tmp_path / "whole") == []
