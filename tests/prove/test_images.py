"""The ext4 images of promise 1 begin empty, whatever else runs on the machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from prove import images


def test_an_image_is_new_though_another_program_keeps_the_one_before_it_mounted(tmp_path: Path) -> None:
    if not shutil.which("mkfs.ext4") or not shutil.which("unshare") or not images._can_mount():
        pytest.skip("needs root, mkfs.ext4, unshare and loop devices")
    image, here = tmp_path / "image", tmp_path / "here"
    images._make(image)
    own_mounts = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; exec cat"]
    with images._mounted(image, here):
        (here / "old").touch()
        holder = subprocess.Popen(own_mounts, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        assert holder.stdout is not None and holder.stdout.readline() == b"there\n"
    try:
        images._make(image)
        with images._mounted(image, here):
            assert [path.name for path in here.iterdir()] == ["lost+found"]
    finally:
        holder.communicate(b"")
