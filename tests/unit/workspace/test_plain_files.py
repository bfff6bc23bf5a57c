"""Other people's files are read where they stand, and only if they are files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.errors import Refused
from tenuto.files.exchange import place


@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a pipe", "a socket", "a device", "a folder"])
def test_what_is_no_plain_file_is_refused_by_name_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    path, outside = tmp_path / "root" / "state.json", tmp_path / "outside"
    path.parent.mkdir()
    outside.write_text("somebody's own\n")
    if kind == "a device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    with socket.socket(socket.AF_UNIX) as server:
        make: dict[str, Callable[[], object]] = {
            "a link": lambda: path.symlink_to(outside),
            "a link to nothing": lambda: path.symlink_to(tmp_path / "nothing"),
            "a pipe": lambda: os.mkfifo(path),
            "a socket": lambda: server.bind(str(path)),
            "a device": lambda: os.mknod(path, 0o20666, os.makedev(1, 5)),
            "a folder": path.mkdir,
        }
        make[kind]()
        spot = place(str(path.parent), "state.json", create=False)
        assert spot is not None
        with spot, pytest.raises(Refused, match=r"state\.json") as refused:
            spot.read()
    assert refused.value.code == "bad-file"
