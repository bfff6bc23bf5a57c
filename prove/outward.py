"""Links to the outside where an engine copies: into work trees of items, out of them, and over files that agents
changed.

    STANDING, SWAPPED      what is tried, by name
    attack(work, name)     a run with items in work trees of their own beside `work/outside`: what was changed there,
                           and whether the
                           run came to its end all the same

The agents are shell commands, some of them hostile. None of them writes outside, so whatever changes there was written
by the engine. Nor does git, as long as nobody swaps the folder of work trees while it works: that is left to it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import tenuto
from prove.frame import python, repository
from tenuto.agents.roster import Roster
from tenuto.engine.begin import Place, start
from tenuto.engine.loop import Engine
from tenuto.errors import TenutoError

DOCUMENTS = "docs/feature/r"
PIPELINE = """\
name: outward
documents: docs/feature/{slug}
shown_as: feature_docs
memory: run
given: [initial-request.md, memory.md]
steps:
  - id: planning
    agent: {role: planner, out: plan.md, memory: write, optional: [log.md], append_only: log.md}
    retry: {ERROR: 1}
  - id: work
    waves:
      plan: plan.md
      roles: [{role: implementer, in: plan.md, optional: [notes.md, kept/*.md]}]
      order: rolling
    retry: {ERROR: 1}
"""
PLAN = "## Wave 1\n- 01-a (depends_on: none)\n- 02-b (depends_on: 01-a)\n"
ITEM = (
    f"touch $TENUTO_ITEM; mkdir -p {DOCUMENTS}/kept; rm -f {DOCUMENTS}/notes.md; date | tee {DOCUMENTS}/notes.md > "
    f"{DOCUMENTS}/kept/$TENUTO_ITEM.md"
)
Prepare = Callable[[Path, Path], None]
SWAPPER = """
import os, sys, time
path, outside, aside, pause = *sys.argv[1:4], float(sys.argv[4])
print("ready", flush=True)
while True:
    try:
        os.rename(path, aside)
        os.symlink(outside, path)
        time.sleep(pause / 4)
        os.unlink(path)
        os.rename(aside, path)
        time.sleep(pause)
    except OSError:
        try:
            if os.path.islink(path): os.unlink(path)
            if os.path.lexists(aside) and not os.path.lexists(path): os.rename(aside, path)
        except OSError:
            pass
"""


def _link(path: str, to: str = "") -> Prepare:
    """A link at `path` to the outside folder, or to something in it."""

    def prepare(root: Path, outside: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(root / path) if (root / path).is_dir() else (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(outside / to if to else outside)

    return prepare


def _link_of_the_commit(root: Path, outside: Path) -> None:
    """The commit has a link where the user's tree has a folder by now, from which files are copied."""
    (root / "config").unlink()
    (root / "config").mkdir()
    (root / "config" / "x.local").write_text("mine\n")
    subprocess.run(["git", "update-index", "--skip-worktree", "config"], cwd=root, check=True)


def _growing(root: Path, outside: Path) -> None:
    (root / DOCUMENTS / "log.md").write_text("- old\n")


# What stands there before the engine starts, and what the planner does besides its plan.
STANDING: dict[str, tuple[Prepare, str]] = {
    "a folder of documents": (_link(f"{DOCUMENTS}/kept"), ""),
    "the place of work trees": (_link(".tenuto/trees"), ""),
    "what a tree is filled with": (_link_of_the_commit, ""),
    "a document": (_link(f"{DOCUMENTS}/notes.md", "theirs"), ""),
    "a document that is not there": (_link(f"{DOCUMENTS}/notes.md", "made"), ""),
    "the place of a run's work trees": (_link(".tenuto/trees/r"), ""),
    "the file that hides them": (_link(".tenuto/trees/.gitignore", "made"), ""),
    "the memory": (_link(f"{DOCUMENTS}/memory.md", "theirs"), ""),
    "a file that only grows": (_growing, f"ln -sf ../../../../outside/theirs {DOCUMENTS}/log.md"),
    "a file that only grows, and is gone": (_growing, f"ln -sf ../../../../outside/made {DOCUMENTS}/log.md"),
}
# Where the planner, who works beside them, writes nothing itself.
SWAPPED = (f"{DOCUMENTS}/kept", f"{DOCUMENTS}/notes.md", f"{DOCUMENTS}/memory.md")
_TRIES = 12
_PAUSE = "0.01"
THEIRS = {"theirs": "theirs\n"}


def attack(work: Path, name: str) -> tuple[list[str], bool]:
    """`name`: of STANDING or of SWAPPED. Whoever is refused goes on, as a user would."""
    root, outside = repository(work / "project"), work / "outside"
    outside.mkdir()
    for file, text in THEIRS.items():
        (outside / file).write_text(text)
        (outside / file).chmod(0o640)
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "outward.yaml").write_text(PIPELINE)
    (root / "config").symlink_to(outside)
    for words in (["git", "add", "."], ["git", "commit", "-q", "-m", "begin"]):
        subprocess.run(words, cwd=root, check=True)
    (root / ".git" / "info" / "exclude").write_text(".tenuto/trees\nconfig/\n")
    prepare, besides = STANDING.get(name, (_folders, ""))
    answers = [
        {"for": {"role": "planner"}, "run": besides or "true", "files": {f"{DOCUMENTS}/plan.md": PLAN}},
        {"for": {"role": "implementer"}, "run": ITEM, "files": {}},
    ]
    script = work / "answers.yaml"
    script.write_text(json.dumps({"answers": answers}))
    workspace = tenuto.open(str(root))
    try:
        start(workspace, "Add dark mode", "outward", name="r", place=Place("worktree"))
        prepare(root, outside)
        with _swapping(work, root, name):
            for _ in range(_TRIES if name in SWAPPED else 1):
                with contextlib.suppress(TenutoError, OSError):  # refused: a link is in the way
                    Engine(
                        workspace, "r", Roster(f"scripted:{script}"), {"setup": {"copy": ["config/*.local"]}}
                    ).drive()
                if workspace.load("r")["status"] in ("completed", "failed"):
                    break
        ended = workspace.load("r")["status"] == "completed"
    finally:
        workspace.journal.close()
    return [path.name for path in outside.iterdir() if path.name not in THEIRS or not _untouched(path)], ended


def _untouched(path: Path) -> bool:
    return path.is_file() and path.read_text() == THEIRS[path.name] and path.stat().st_mode & 0o777 == 0o640


def _folders(root: Path, outside: Path) -> None:
    (root / DOCUMENTS / "kept").mkdir()
    (root / DOCUMENTS / "notes.md").write_text("mine\n")


@contextlib.contextmanager
def _swapping(work: Path, root: Path, name: str) -> Iterator[None]:
    """While the engine works, and often enough not there that it comes to its copies."""
    if name not in SWAPPED:
        yield
        return
    to = work / "outside" / ("" if (root / name).is_dir() else "theirs")
    with subprocess.Popen(
        python("-c", SWAPPER, str(root / name), str(to), str(work / "aside"), _PAUSE), stdout=subprocess.PIPE
    ) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()
