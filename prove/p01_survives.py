"""Promise 1: answered success survives kill -9 and power loss.

Four attacks on commands (scenes.py), all of them as processes of their own:

- every sequence of three commands of every scene: what a loss of power may leave at any moment (power.py);
- every command, killed with SIGKILL at every system call that writes, and repeated: nothing is lost, nothing comes
  twice;
- every path by which something is answered, an engine with its supervisors and its git included: what the answer
  stands on is flushed before it (answers.py);
- ext4 on a loop device, whose image is copied after every system call, as it is on the disk at that moment, and mounted
  again (images.py; needs root).

The broken variant is the same search with every fsync taken out of the trace.
"""

from __future__ import annotations

import shutil

from prove import answers, images, kills
from prove.disk import Disk
from prove.frame import Amount, Progress, Result, alone, dice, merged, place, require, silent, spread
from prove.looking import Heads, heads, read_tree, state_folder, write_tree
from prove.power import Trial
from prove.scenes import BY_NAME, SCENES, Scene, begin
from prove.tracing import trace

LENGTH = 3
# Distinct states of the journal's files, and whole repositories reopened, for each epoch.
FULL, SAMPLE, CONTROL = (1700, 8), (40, 4), (60, 2)

Job = tuple[str, int, int, tuple[int, int], bool]


def prove(amount: Amount, tell: Progress) -> Result:
    require("strace", "git")
    jobs = _jobs(LENGTH, FULL) if amount.full else _sampled()
    whole = len(jobs) + 3
    found = list(spread(_explore, jobs, amount.jobs, tell, whole))
    found.append(kills.prove(amount))
    tell(len(jobs) + 1, whole)
    found.append(answers.prove())
    tell(len(jobs) + 2, whole)
    found.append(images.prove(amount))
    tell(whole, whole)
    return merged(found)


def control(amount: Amount) -> Result:
    require("strace", "git")
    explored = [_explore((name, 0, 1, CONTROL, True)) for name in ("context", "staged")]
    blind = [scene.name for scene in answers.SCENES if not answers.prove((scene,), broken=True).violations]
    return merged(explored) if not blind else Result(0, [], {"scenes that see nothing": ", ".join(blind)})


def _jobs(length: int, counts: tuple[int, int]) -> list[Job]:
    return [(scene.name, first, length, counts, False) for scene in SCENES for first in range(len(scene.commands))]


def _sampled() -> list[Job]:
    """Each scene's commands in their order, as one sequence; and the first moments of a repository."""
    return [(scene.name, -1, len(scene.commands), SAMPLE, False) for scene in SCENES if scene.name != "feature_docs"]


def _explore(job: Job) -> Result:
    name, first, length, counts, broken = job
    scene = BY_NAME[name]
    with alone(), place() as work:
        trial = Trial(work, *counts, dice("power", name, first))
        root = work / "repository"
        begin(root, scene)
        if first % 2 == 0 and scene.setup:
            heads(state_folder(root))  # which moves the log into the database: the next command begins a new one
        disk = Disk.holding(read_tree(root), broken)
        before = heads(state_folder(root)) if scene.setup else ()
        shutil.rmtree(root)
        order = list(range(len(scene.commands))) if first < 0 else [first]
        commands = _sequences(trial, disk, scene, order, length, before, "", straight=first < 0)
        figures = {
            "modelled states": f"{len(trial.seen):,}",
            "of them reopened whole": f"{trial.opened:,}",
            "a file restored by name": f"{trial.restored:,}",
            "commands traced": f"{commands:,}",
        }
        return Result(len(trial.seen), trial.violations, figures)


def _sequences(
    trial: Trial, disk: Disk, scene: Scene, order: list[int], length: int, before: Heads, label: str, straight: bool
) -> int:
    """Play each of `order` from here, then every command after it, to the given length. `straight`: one after the
    other."""
    if not length:
        return 0
    root, played = trial.work / "repository", 0
    for number in order[:1] if straight else order:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        write_tree(root, {path: text for path, text in disk.tree({}).items() if not path.endswith("-shm")})
        done = trace(root, scene.commands[number], trial.work / "trace")
        left = read_tree(root)
        after = heads(state_folder(root)) if (root / ".git" / "tenuto" / "journal.db").exists() else ()
        here = disk.copy()
        said = (
            f"{label} > {' '.join(scene.commands[number])[:40]!r}"
            if label
            else f"{scene.name}: {scene.commands[number][:2]}"
        )
        trial.follow(here, done.ops, before, after, said)
        _same(trial, here, left, said)
        rest = order[1:] if straight else list(range(len(scene.commands)))
        played += 1 + _sequences(trial, here, scene, rest, length - 1, after, said, straight)
    return played


def _same(trial: Trial, disk: Disk, left: dict[str, bytes | None], label: str) -> None:
    """The model followed every call: what it holds is what the process left."""
    ours, missing = disk.tree({}), object()
    differing = [path for path in ours.keys() | left.keys() if ours.get(path, missing) != left.get(path, missing)]
    if lost := [path for path in differing if _counts(path)]:
        trial.violated(label, f"the model lost track of {lost}")


def _counts(path: str) -> bool:
    return not path.endswith("-shm") and (not path.startswith(".git/") or path.startswith(".git/tenuto/"))


if __name__ == "__main__":
    print(prove(Amount(False, 1), silent))
