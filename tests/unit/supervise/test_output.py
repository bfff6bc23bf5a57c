"""Output is bounded: its beginning and its end are kept, and its whole length is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.supervise.supervisor import Output


@given(
    pieces=st.lists(st.integers(0, 200_000), max_size=8),
    cap=st.one_of(st.integers(0, 100), st.integers(0, 300_000)),
)
def test_beginning_and_end_are_kept_whatever_is_written(
    pieces: list[int], cap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never more than the cap and a marker, never fewer bytes than there were below the cap, and the
    first and the last ones to the byte."""
    path = tmp_path_factory.mktemp("output") / "stdout"
    output = Output(str(path), cap)
    agent = os.open(path, os.O_WRONLY | os.O_APPEND)
    written = b""
    for number, size in enumerate(pieces):
        piece = bytes((number * 37 + index) % 251 for index in range(min(size, 251))) * (size // 251 + 1)
        os.write(agent, piece[:size])
        written += piece[:size]
        output.trim()
    os.close(agent)
    stream = output.finish()
    kept = path.read_bytes()
    assert stream == {"bytes": len(written), "kept": min(len(written), cap), "truncated": len(written) > cap}
    if len(written) <= cap:
        assert kept == written
    else:
        head, tail = cap - cap // 2, cap // 2
        assert kept[:head] == written[:head]
        assert kept[len(kept) - tail :] == written[len(written) - tail :]
        marker = f"\n[tenuto: {len(written) - cap} of {len(written)} bytes left out here]\n"
        assert kept[head : len(kept) - tail] == marker.encode()
    assert os.listdir(path.parent) == ["stdout"]


def test_a_flood_holds_no_more_blocks_than_its_cap_needs(tmp_path: Path) -> None:
    """64 MiB go through a file that never holds more than a few of them."""
    path = tmp_path / "stdout"
    output = Output(str(path), 1 << 20)
    agent = os.open(path, os.O_WRONLY | os.O_APPEND)
    for _ in range(64):
        os.write(agent, b"x" * (1 << 20))
        output.trim()
        os.fsync(agent)
        assert path.stat().st_blocks * 512 < 4 << 20
    os.close(agent)
    assert output.finish()["bytes"] == 64 << 20


def test_a_file_that_was_replaced_under_its_name_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    output = Output(str(path), 100)
    path.write_text("the truth")
    path.unlink()
    path.write_text("a lie")
    output.finish()
    assert path.read_text() == "the truth"
