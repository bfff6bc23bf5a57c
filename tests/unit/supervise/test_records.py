"""A record is on disk whole or not at all, and what is not ours to read is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.errors import BadInput, Damaged, Refused
from tenuto.supervise import attempts, records

if TYPE_CHECKING:
    from tenuto.supervise.records import Spec

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(record=st.dictionaries(TEXTS, st.one_of(st.none(), st.booleans(), st.integers(), TEXTS, st.lists(TEXTS))))
def test_what_was_published_is_what_is_read(
    record: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = str(tmp_path_factory.mktemp("records") / "record.json")
    records.publish(path, record)
    assert records.read(path) == record
    assert os.listdir(os.path.dirname(path)) == ["record.json"]


def test_a_name_is_created_once_and_locked_while_its_maker_lives(tmp_path: Path) -> None:
    """The second to come changes nothing, and can tell whether the first is still there."""
    path = str(tmp_path / "claim")
    first = records.create_once(path, {"who": "first"})
    assert first is not None
    assert records.create_once(path, {"who": "second"}) is None
    assert records.read(path) == {"who": "first"}
    assert records.is_locked(path)
    os.close(first)
    assert not records.is_locked(path)
    assert [name.name for name in tmp_path.iterdir()] == ["claim"]


def test_records_are_for_their_owner_only(tmp_path: Path) -> None:
    """Prompts and outputs are nobody else's business."""
    place = tmp_path / "attempts" / "a"
    records.make_directory(str(place))
    records.publish(str(place / "record"), {})
    assert place.stat().st_mode & 0o077 == 0
    assert (place / "record").stat().st_mode & 0o077 == 0


def test_a_missing_record_is_none_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert records.read(str(path)) is None
    assert records.read(str(path / "below")) is None
    path.write_bytes(b'{"half": ')
    with pytest.raises(Damaged) as caught:
        records.read(str(path))
    assert str(path) in caught.value.message


def spec(tmp_path: Path) -> Spec:
    return {
        "attempt": "a",
        "argv": ["true"],
        "cwd": "/",
        "stdin": None,
        "env": {},
        "limit": None,
        "grace": 1.0,
        "output_cap": 100,
        "pool": str(tmp_path / "pool"),
        "cap": 1,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": ""},
        {"argv": []},
        {"argv": ["a\0b"]},
        {"cwd": "relative"},
        {"stdin": "relative"},
        {"pool": "relative"},
        {"cap": 0},
        {"limit": 0},
        {"grace": -1},
        {"output_cap": -1},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"env": {"A": "b\0"}},
        {"env": {"A": "\ud800"}},
    ],
    ids=ascii,
)
def test_a_wrong_specification_is_refused_before_anything_is_written(tmp_path: Path, change: dict[str, object]) -> None:
    directory = tmp_path / "attempts" / "a"
    wrong: Any = {**spec(tmp_path), **change}
    with pytest.raises(BadInput) as caught:
        attempts.launch(str(directory), wrong)
    assert caught.value.code == "bad-attempt-spec"
    assert not directory.exists()


def test_a_directory_belongs_to_one_attempt(tmp_path: Path) -> None:
    """The same specification may be launched again, another one may not take its place."""
    directory = str(tmp_path / "a")
    attempts.prepare(directory, spec(tmp_path))
    attempts.prepare(directory, spec(tmp_path))
    with pytest.raises(Refused) as caught:
        attempts.prepare(directory, {**spec(tmp_path), "argv": ["false"]})
    assert caught.value.code == "attempt-exists"
    assert records.read(os.path.join(directory, "spec.json"))["argv"] == ["true"]
