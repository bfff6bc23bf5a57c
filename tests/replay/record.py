"""Make recordings that are not there yet: `python tests/replay/record.py [NAME ...]`. See prove/recorded.py.

Every shipped pipeline, driven by the engine with scripted agents; every dialect, led by hand; edits by others; a redaction.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from prove import frame, recorded, scenes
from tests.acceptance.rehearsing import Stage

PIPELINES = ("eight-step", "orchestrate", "poc", "ticket", "feature-dev", "staged-minimal", "staged-standard", "staged-thorough")
# Places that say nothing about a machine: paths of the repository and of Tenuto itself end up in events.
PLACE, HOME = Path("/srv/replay"), Path("/srv/tenuto")


def pipeline(name: str) -> Path:
    stage = Stage(PLACE)
    run = stage.play("Add dark mode", name)
    assert run["status"] in ("completed", "poc-complete", "graduated"), run["status"]
    stage.workspace.journal.close()  # type: ignore[attr-defined]
    return stage.root


def graduated() -> Path:
    stage = Stage(PLACE)
    assert stage.play("Add dark mode", "poc")["status"] == "poc-complete"
    assert stage.play("Add dark mode", "graduate")["status"] == "graduated"
    stage.workspace.journal.close()  # type: ignore[attr-defined]
    return stage.root


def by_hand(name: str) -> Path:
    root = PLACE / "repository"
    scene = scenes.BY_NAME[name]
    scenes.begin(root, scene)
    for command in scene.commands:
        scenes.play(root, command)
    return root


def edited() -> Path:
    """Others edit files of a run led by hand: what is taken in is in the journal."""
    root = by_hand("context")
    path = root / "docs/orchestrator/context/tasks/light-mode/manifest.json"
    path.write_text(path.read_text().replace('"name"', '"owner": "ada",\n  "name"', 1))
    with (root / "docs/orchestrator/context/history.md").open("a") as file:
        file.write("\nA line by hand.\n")
    for words in (("context", "START_PHASE phase: spec"), ("context", "STORE phase: spec content: # Light")):
        assert scenes.play(root, words).returncode == 0
    (root / "docs/orchestrator/context/tasks/light-mode/spec.md").write_text("# Light, by hand\n")
    assert scenes.play(root, ("context", "STORE phase: spec content: # Light again")).returncode == 0
    return root


def redacted() -> Path:
    root = by_hand("context")
    assert scenes.play(root, ("context", "PAUSE reason: the key is sk-live-7f3a9c4e")).returncode == 0
    done = scenes.play(root, ("forget", "-", "STDIN", "sk-live-7f3a9c4e"))
    assert done.returncode == 0, done.stderr
    return root


MAKERS: dict[str, Callable[[], Path]] = {
    **{f"pipeline-{name}": (lambda name=name: pipeline(name)) for name in PIPELINES},  # type: ignore[misc]
    **{f"by-hand-{name}": (lambda name=name: by_hand(name)) for name in ("context", "flow", "staged", "feature", "feature_docs", "mixed")},  # type: ignore[misc]
    "pipeline-graduate": graduated,
    "edited-by-others": edited,
    "redacted": redacted,
}


def main(names: list[str]) -> None:
    for name in names or [name for name in MAKERS if not (recorded.FOLDER / name).exists()]:
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir(parents=True)
        with frame.alone():
            recorded.record(MAKERS[name](), name)
        size = sum(path.stat().st_size for path in (recorded.FOLDER / name).iterdir())
        print(f"{name}: {size // 1024} KB")
    shutil.rmtree(PLACE, ignore_errors=True)


def elsewhere(words: list[str]) -> None:
    """In a copy of this checkout, whose recordings are brought back."""
    shutil.rmtree(HOME, ignore_errors=True)
    for name in ("tenuto", "prove", "tests"):
        shutil.copytree(ROOT / name, HOME / name, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        subprocess.run([sys.executable, str(HOME / "tests/replay/record.py"), *words], check=True, cwd=HOME)
        shutil.copytree(HOME / "tests/replay", ROOT / "tests/replay", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:]) if ROOT == HOME else elsewhere(sys.argv[1:])
