"""The image of the hot bytecode is a cache: it may be missing, old, broken or forbidden, and nothing changes but the time."""

from __future__ import annotations

import marshal
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVENT = "SubagentStop"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of Tenuto, without any bytecode."""
    copy = tmp_path / "lib" / "tenuto"
    shutil.copytree(
        ROOT / "tenuto",
        copy,
        ignore=shutil.ignore_patterns("__pycache__", "roles", "pipelines", "knowledge", "schemas"),
    )
    return copy


def call(package: Path, *options: str) -> str:
    """What the hook says on standard error: nobody started a feature here."""
    command = [sys.executable, "-I", "-S", *options, str(package / "entrypoints" / "hook.py"), EVENT]
    done = subprocess.run(command, input=b"{}", cwd=package.parent.parent, capture_output=True, check=True)
    return done.stderr.decode()


def images(package: Path) -> list[Path]:
    return sorted((package / "__pycache__").glob("*.image*"))


def test_the_first_process_leaves_it_and_the_next_takes_it(package: Path) -> None:
    said = call(package)
    assert "State file not found" in said
    (image,) = images(package)
    made = image.stat().st_mtime_ns
    assert call(package) == said
    assert image.stat().st_mtime_ns == made


@pytest.mark.parametrize("command", ["context", "flow", "staged", "feature"])
def test_help_is_the_same_with_and_without_it(package: Path, command: str) -> None:
    boot = f"import sys; sys.path.insert(0, {str(package.parent)!r}); from tenuto.entrypoints.launch import main; main()"
    words = [sys.executable, "-I", "-S", "-c", boot, command, "--help"]
    first, second = (subprocess.run(words, cwd=package.parent, capture_output=True, check=True).stdout for _ in range(2))
    assert len(images(package)) == 1
    assert len(first) > 200 and second == first


def test_a_changed_source_is_seen_at_once(package: Path) -> None:
    call(package)
    source = package / "dialects" / "feature_state" / "__init__.py"
    source.write_text(source.read_text().replace("State file not found.", "No state file here."))
    assert "No state file here." in call(package)
    assert "No state file here." in call(package)


def test_a_source_that_is_gone_is_gone(package: Path) -> None:
    call(package)
    (package / "hosts" / "hearing.py").unlink()
    shutil.rmtree(package / "hosts" / "__pycache__")
    command = [sys.executable, "-I", "-S", str(package / "entrypoints" / "hook.py"), EVENT]
    assert b"tenuto.hosts.hearing" in subprocess.run(command, input=b"{}", capture_output=True, check=False).stderr


@pytest.mark.parametrize("broken", [b"", b"\0", b"no image", b"\xe9\x01\x00"])
def test_a_broken_image_is_made_anew(package: Path, broken: bytes) -> None:
    said = call(package)
    (image,) = images(package)
    whole = image.read_bytes()
    for text in (broken, whole[: len(whole) // 2]):
        image.write_bytes(text)
        assert call(package) == said
        assert image.stat().st_size == len(whole)


def test_an_image_of_another_python_is_not_used(package: Path) -> None:
    said = call(package)
    (image,) = images(package)
    image.write_bytes(image.read_bytes().replace(sys.version.encode(), b"9" + sys.version.encode()[1:]))
    assert call(package) == said


def test_nothing_is_written_where_python_writes_no_bytecode(package: Path) -> None:
    assert "State file not found" in call(package, "-B")
    assert images(package) == []


def test_many_at_once_leave_one_whole_image(package: Path) -> None:
    command = [sys.executable, "-I", "-S", str(package / "entrypoints" / "hook.py"), EVENT]
    started = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=package.parent.parent)
        for _ in range(8)
    ]
    assert {process.wait() for process in started} == {0}
    (image,) = images(package)
    made = image.stat().st_mtime_ns
    call(package)
    assert image.stat().st_mtime_ns == made


def test_a_place_that_cannot_be_written_to_is_no_error(package: Path) -> None:
    said = call(package)
    shutil.rmtree(package / "__pycache__")
    (package / "__pycache__").write_text("a file where a folder should be")
    assert call(package) == said
    assert call(package) == said


def index_of(image: Path) -> tuple[Any, Any, bytes]:
    """Who made it, what it lists, and the code behind that."""
    whole = image.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    return *marshal.loads(whole[8:end]), whole[end:]


@pytest.mark.parametrize("damage", ["no code", "code beyond its end", "odd entries", "no table"])
def test_one_that_is_damaged_inside_is_made_anew(package: Path, damage: str) -> None:
    """Its frame is right, and what it holds is not: modules are found the ordinary way, and the next image is whole."""
    said = call(package)
    [image] = images(package)
    made_by, kept, codes = index_of(image)
    broken = {
        "no code": {name: (*entry[:4], 1) for name, entry in kept.items()},
        "code beyond its end": {name: (*entry[:3], 1 << 62, 1 << 62) for name, entry in kept.items()},
        "odd entries": dict.fromkeys(kept, 7),
        "no table": [7],
    }
    index = marshal.dumps((made_by, broken[damage]))
    image.write_bytes(len(index).to_bytes(8, "little") + index + codes)
    assert call(package) == said
    assert index_of(image)[1].keys() == kept.keys()
    assert call(package) == said


def test_an_image_in_the_shape_of_an_older_version_is_made_anew(package: Path) -> None:
    said = call(package)
    [image] = images(package)
    whole = image.stat().st_size
    image.write_bytes(marshal.dumps((("3", b""), {"tenuto.errors": (False, 1, 2, b"code")})))
    assert call(package) == said
    assert image.stat().st_size == whole


def test_of_a_large_image_a_process_reads_what_it_imports(package: Path) -> None:
    """Other commands' code costs a command nothing: a gigabyte of it would take this one minutes."""
    said = call(package)
    [image] = images(package)
    with image.open("r+b") as file:
        file.truncate(1 << 40)
    assert call(package) == said
    assert image.stat().st_size == 1 << 40
