"""Backups that were changed in any one place: refused with a reason, or as good as they were. Never half taken."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tenuto
from tenuto.encoding import dumps
from tenuto.errors import TenutoError
from tenuto.workspace.backup import export, import_lines
from tenuto.workspace.checkup import examine
from tests.crash.plain_dialect import PLAIN

LARGE = random.Random(0).randbytes((1 << 20) + 1)  # an object of two parts
something: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.sampled_from([-1, 0, 1, 2, 1 << 70, 0.5])
    | st.sampled_from(["", "..", "a\ud800", "00" * 32])
    | st.just([])
    | st.just({})
    | st.just(["x"])
)


@pytest.fixture(autouse=True, scope="module")
def _clean_up() -> Iterator[None]:
    yield
    for workspace in _empty:
        workspace.journal.close()
        shutil.rmtree(workspace.root)
    _empty.clear()


def open_at(folder: str) -> Any:
    workspace = tenuto.open(folder)
    workspace.views = {"plain": PLAIN}
    return workspace


@cache
def backup() -> tuple[dict[str, Any], ...]:
    with tempfile.TemporaryDirectory() as folder:
        workspace = open_at(folder)
        with workspace.turn() as turn:
            where: Any = {"pipeline": {"name": "p", "hash": None}, "dialects": {"plain": {}}}
            turn.do("a", {"do": "StartRun", "run": "a", "name": "a", **where})
            turn.do_repo({"do": "MakeCurrent", "run": "a"})
            turn.tx.index("a", "plan", "docs/plan.md", [("Plan", "words")])
            turn.tx.put_marker("session:1", "a")
        with workspace.turn() as turn:
            turn.store("a", "plan", "docs/plan.md", b"# Plan\n")
            turn.store("a", "film", "docs/film", LARGE)
        made = tuple(export(workspace, "1"))
        workspace.journal.close()
    return made


def sealed(records: list[Any]) -> list[bytes]:
    """As somebody who knows the format would write it: the end fits again."""
    lines = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]
    hashed = hashlib.sha256(b"".join(dumps(record).encode() + b"\n" for record in records))
    return [*lines, dumps({"kind": "end", "lines": len(records), "sha256": hashed.hexdigest()}).encode()]


def places(record: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every field of a record, also inside the event that it carries."""
    found = [(*way, key) for key in record]
    return found + [
        place for key, value in record.items() if isinstance(value, dict) for place in places(value, (*way, key))
    ]


def put(record: Any, way: tuple[Any, ...], value: Any) -> Any:
    """None: the field is gone."""
    key, *below = way
    if not below and value is None:
        return {name: kept for name, kept in record.items() if name != key}
    return {**record, key: put(record[key], tuple(below), value) if below else value}


_empty: list[Any] = []  # a repository that took nothing so far: one that refused is as good as new


def outcome(lines: list[bytes]) -> tuple[str, str]:
    """("", state) when it was taken; (why, state) when it was not. Whatever happened, what is here is whole."""
    workspace = _empty.pop() if _empty else open_at(tempfile.mkdtemp())
    try:
        import_lines(workspace, lines)
        why = ""
    except TenutoError as refusal:
        assert refusal.code != "unexpected" and refusal.message and refusal.hint
        why = refusal.code
    report = examine(workspace)
    objects = sorted(path.name for path in Path(workspace.state, "objects").rglob("*") if path.is_file())
    left = os.listdir(workspace.state) if os.path.isdir(workspace.state) else []
    assert not [name for name in left if name.startswith("import-")]
    # Whoever can seal a copy again can leave a content out of it: that is said, and the events are as they were.
    damage = [found for found in report["findings"] if found["severity"] == "damage"]
    assert all("not stored any more" in found["message"] for found in damage), damage
    if why:
        assert (report["runs"], report["events"], objects) == (0, 0, [])
        _empty.append(workspace)
    else:
        workspace.journal.close()
        shutil.rmtree(workspace.root)
    return why, f"{report['runs']} runs, {len(objects)} objects"


def test_an_unchanged_one_is_taken() -> None:
    assert outcome(sealed(list(backup()[:-1]))) == ("", "1 runs, 1 objects")


@settings(max_examples=60)
@given(st.integers(0, 99), st.integers(0, 99), something)
@example(0, 1, None)  # a head without a format
@example(1, 1, [])  # a run without a name
@example(1, 2, 1 << 70)  # more events than there are numbers
@example(2, 4, {})  # an event that is none
def test_one_field_changed_is_refused_with_a_reason_or_does_no_harm(record: int, field: int, value: Any) -> None:
    records = list(backup()[:-1])
    record %= len(records)
    fields = places(records[record])
    records[record] = put(records[record], fields[field % len(fields)], value)
    outcome(sealed(records))


@settings(max_examples=15)
@given(st.integers(0, 30), st.integers(0, 30))
def test_a_record_lost_or_moved_is_refused_or_does_no_harm(one: int, other: int) -> None:
    records = list(backup()[:-1])
    taken = records.pop(one % len(records))
    if other % 2:
        records.insert(other % len(records), taken)
    outcome(sealed(records))


@settings(max_examples=15)
@given(st.integers(0, 1 << 23), st.binary(max_size=3))
def test_a_copy_that_was_cut_or_scribbled_on_is_refused(at: int, scribble: bytes) -> None:
    body = b"".join(sealed(list(backup()[:-1])))
    at %= len(body) - 2
    broken = body[:at] + (scribble + body[at + len(scribble) :] if scribble else b"")
    why, _ = outcome(broken.splitlines(keepends=True))
    assert why or broken == body
