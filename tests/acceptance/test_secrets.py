"""A value that was declared secret, in a file that an agent wrote: nothing of ours takes it over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import dumps
from tenuto.engine.begin import Place
from tenuto.errors import Refused
from tests.acceptance.grounds import OWN_TREES, Ground, merges
from tests.support.trusting import trust

VALUE = "s3cret-5b1f-9a0c"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("MY_TOKEN", VALUE)
    made = Ground(tmp_path)
    made.settings["secrets"] = ["MY_TOKEN"]
    return made


def summaries(run: Any) -> dict[str, str]:
    return {attempt["item"]: attempt["summary"] for attempt in run["attempts"].values() if attempt["item"]}


def committed(ground: Ground) -> str:
    """Everything that any commit holds."""
    return ground.git("log", "--all", "-p", "--format=%B")


def test_code_with_a_secret_in_it_is_neither_merged_nor_kept_as_a_commit(ground: Ground) -> None:
    name = ground.start(_01="echo fine > fine.txt", _02="printenv MY_TOKEN > code.txt; echo more > other.txt")
    run = ground.drive(name)
    assert (
        summaries(run)["02-b"] == "claimed DONE, but the output code.txt holds the value of MY_TOKEN, which is secret"
    )
    assert merges(ground) == ["01-a"]
    assert VALUE not in committed(ground) and "other.txt" in committed(ground)


def test_nor_where_the_agent_says_that_it_failed(ground: Ground) -> None:
    name = ground.start(_01="echo fine > fine.txt", _02="printenv MY_TOKEN > code.txt; exit 3")
    ground.drive(name)
    assert "fine.txt" in committed(ground) and VALUE not in committed(ground)


@pytest.mark.parametrize("place", [OWN_TREES, Place("shared")], ids=["worktree", "shared"])
@pytest.mark.parametrize(
    ("plan", "why"), [("- 01-a (depends_on: none)", "holds the value of MY_TOKEN"), ("", "no item was found")]
)
def test_an_output_with_a_secret_in_it_is_not_taken_in(ground: Ground, place: Place, plan: str, why: str) -> None:
    """Whatever else is wrong with it."""
    name = ground.start(place=place)
    command = (
        f"echo '## Wave 1' > plan; echo '{plan}' >> plan; printenv MY_TOKEN >> plan; mv plan "
        f"docs/feature/{name}/plan.md"
    )
    ground.script.write_text(dumps({"answers": [{"for": {"role": "planner"}, "files": {}, "run": command}]}))
    first = next(iter(ground.drive(name)["attempts"].values()))
    assert first["verdict"] == "ERROR" and why in first["summary"]
    assert kept_by_us(ground) == []


def test_a_file_that_nobody_could_read_whole_is_not_searched_for_one(ground: Ground) -> None:
    """A sparse file takes no room on the disk, and all of the memory of whoever reads it."""
    name = ground.start(_01="echo fine > fine.txt", _02="truncate -s 300G code.txt; exit 3")
    ground.drive(name)
    assert "fine.txt" in committed(ground)


def test_one_that_is_spelled_as_json_spells_it_is_found_too(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", 'with "quotes" in it')
    (tmp_path / "text").write_text(dumps({"key": 'with "quotes" in it'}))
    name = ground.start(_01="echo fine > fine.txt", _02=f"cp {tmp_path}/text code.txt")
    assert "holds the value of MY_TOKEN" in summaries(ground.drive(name))["02-b"]


def kept_by_us(ground: Ground) -> list[Path]:
    """Files of the journal that hold it."""
    return [
        path
        for path in (ground.root / ".git" / "tenuto").rglob("*")
        if path.is_file() and VALUE.encode() in path.read_bytes()
    ]


def says_it_in_memory(ground: Ground, besides: str) -> str:
    name = ground.start(place=Place("shared"))
    memory = f"docs/feature/{name}/memory.md"
    command = f"printf '\\n- key: %s\\n' $MY_TOKEN >> {memory}; {besides.format(memory=memory)}"
    answers = [
        {
            "for": {"role": "planner"},
            "run": command,
            "files": {f"docs/feature/{name}/plan.md": "## Wave 1\n- 01-a (depends_on: none)\n"},
        }
    ]
    ground.script.write_text(dumps({"answers": answers}))
    return name


def test_a_secret_in_the_memory_is_masked_before_it_is_taken_in(ground: Ground) -> None:
    name = says_it_in_memory(ground, "true")
    ground.drive(name)
    text = (ground.root / "docs" / "feature" / name / "memory.md").read_text()
    assert "key: [secret]" in text and VALUE not in text
    assert kept_by_us(ground) == []


@pytest.mark.needs("root")
def test_nor_is_it_taken_in_from_a_memory_that_cannot_be_replaced(ground: Ground) -> None:
    """Something is mounted in its place: it can be read and written, and nothing put there."""
    name = says_it_in_memory(ground, "mount --bind {memory} {memory}")
    memory = ground.root / "docs" / "feature" / name / "memory.md"
    try:
        ground.drive(name)
        assert VALUE in memory.read_text() and kept_by_us(ground) == []
    finally:
        subprocess.run(["umount", str(memory)], check=False)
    ground.drive(name)
    assert VALUE not in memory.read_text() and kept_by_us(ground) == []


def leave_it_in_memory(ground: Ground, paused: bool = False) -> Path:
    """An engine was killed before it came to what its agent had written."""
    name = ground.start(place=Place("shared"))
    if paused:
        with tenuto.open(str(ground.root)).turn() as turn:
            turn.do(name, {"do": "Pause", "kind": "user", "reason": "lunch"})
    memory = ground.root / "docs" / "feature" / name / "memory.md"
    memory.write_text(f"{memory.read_text()}\n- key: {VALUE}\n")
    return memory


def test_an_engine_that_goes_on_masks_it_before_anything_else(ground: Ground) -> None:
    memory = leave_it_in_memory(ground)
    ground.drive(memory.parent.name)
    assert "key: [secret]" in memory.read_text() and VALUE not in memory.read_text()
    assert kept_by_us(ground) == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--agent", "command:true"],
        ["run", "--pipeline", "small", "--agent", "command:true"],
        ["resume", "--no-drive"],
        ["pause", "add-dark-mode"],
        ["cancel", "add-dark-mode"],
        ["repair"],
        ["next", "--json"],
    ],
)
def test_so_does_whichever_command_comes_next(ground: Ground, words: list[str]) -> None:
    (ground.root / ".tenuto" / "config.yaml").write_text("secrets: [MY_TOKEN]\n")
    trust(ground.root)
    memory = leave_it_in_memory(ground, paused=words[0] == "resume")
    subprocess.run(
        [sys.executable, "-m", "tenuto", *words],
        cwd=ground.root,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert "key: [secret]" in memory.read_text() and VALUE not in memory.read_text()
    assert kept_by_us(ground) == []


def with_a_role_that_holds_it(ground: Ground) -> None:
    (ground.root / ".tenuto" / "roles").mkdir()
    (ground.root / ".tenuto" / "roles" / "planner.md").write_text(f"---\nname: planner\n---\n\nLog in with {VALUE}.\n")


def test_a_role_that_holds_one_begins_no_run(ground: Ground) -> None:
    with_a_role_that_holds_it(ground)
    (ground.root / ".tenuto" / "config.yaml").write_text("secrets: [MY_TOKEN]\n")
    trust(ground.root)
    with pytest.raises(Refused, match="holds the value of MY_TOKEN, which is secret"):
        ground.start()
    assert kept_by_us(ground) == []


def test_one_that_slipped_in_stands_in_no_prompt(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an engine's agents, and of those that `tenuto next` hands out."""
    with_a_role_that_holds_it(ground)
    (ground.root / ".tenuto" / "config.yaml").write_text("secrets: [MY_TOKEN]\n")
    trust(ground.root)
    monkeypatch.delenv("MY_TOKEN")
    driven = ground.start(place=Place("shared"))
    monkeypatch.setenv("MY_TOKEN", VALUE)
    handed = subprocess.run(
        [sys.executable, "-m", "tenuto", "next", driven, "--json"],
        cwd=ground.root,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Log in with [secret]." in handed.stdout and VALUE not in handed.stdout
    monkeypatch.delenv("MY_TOKEN")
    driven = ground.start(place=Place("shared"))
    monkeypatch.setenv("MY_TOKEN", VALUE)
    ground.drive(driven)
    prompts = [path.read_text() for path in (ground.root / ".git" / "tenuto" / "attempts").rglob("prompt")]
    assert len(prompts) >= 2 and not any(VALUE in text for text in prompts)


def test_an_edit_without_secrets_is_taken_in_to_the_letter(ground: Ground) -> None:
    memory = leave_it_in_memory(ground)
    memory.write_text(memory.read_text().replace(VALUE, "no s3cret"))
    ground.drive(memory.parent.name)
    assert "key: no s3cret" in memory.read_text()
