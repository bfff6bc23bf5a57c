"""Promise 8: nothing is written outside the repository's own places.

10,000 hostile names (ways up, absolute paths, links' names, bytes that file systems and terminals misread) are given to
everything that makes a path of a name: tasks, tickets, features, phases, artifacts, files that a hook reports, files to
restore, paths in a backup. Around the repository stand other directories, in it files that are not Tenuto's; after each
name all of it is compared. Some names also go to processes under strace, and every file that was opened for writing is
compared with the list.

Then folders and files of the repository are replaced by symbolic links to the outside, standing still and swapped back
and forth as fast as it goes while commands run, and while an engine copies into work trees and out of them
(outward.py).

The broken variant follows links.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prove.frame import ROOT, Amount, Progress, Result, alone, dice, environment, merged, place, python, spread
from prove.looking import opened
from prove.outward import STANDING, SWAPPER, attack
from prove.outward import SWAPPED as SWAPPED_IN_TREES
from prove.scenes import words as words_of
from tenuto.errors import TenutoError
from tenuto.workspace.config_file import init_repository

FULL, SAMPLE = (
    (10_000, 300, 60, 8),
    (240, 4, 2, 0),
)  # names, of them as processes, rounds of swapping for each place, the same around engines
BATCH = 24
OWN = re.compile(
    r"docs$|(docs/orchestrator|docs/feature|\.ai-workspace|\.agents|\.claude/orchestrator|\.tenuto|\.git/tenuto)(/.*)?$|\.claude$|\.feature-state\.json$"
)
# What stands between the repository's root and a file that Tenuto writes.
SWAPPED = (
    "docs",
    "docs/orchestrator",
    "docs/orchestrator/context",
    "docs/orchestrator/context/tasks/dark-mode",
    "docs/orchestrator/context/tasks/dark-mode/manifest.json",
    "docs/orchestrator/context/history.md",
    ".agents",
    ".agents/tmp",
    ".agents/tmp/state.json",
    ".ai-workspace",
    ".ai-workspace/T-1",
    ".ai-workspace/T-1/flow-state.json",
    ".feature-state.json",
    ".tenuto",
)
TREES = (*STANDING, *SWAPPED_IN_TREES)

Snapshot = dict[str, bytes | str | None]


def prove(amount: Amount, tell: Progress) -> Result:
    names, processes, rounds, engines = FULL if amount.full else SAMPLE
    jobs: list[tuple[str, int, int, bool]] = [
        ("names", number, BATCH * 10, False) for number in range(max(1, names // (BATCH * 10)))
    ]
    if names % (BATCH * 10) and amount.full:
        jobs.append(("names", len(jobs), BATCH * 10, False))
    if shutil.which("strace"):
        jobs += [("processes", number, min(processes, 25), False) for number in range(max(1, processes // 25))]
    jobs += [("links", number, 0, False) for number in range(len(SWAPPED))]
    jobs += [("swaps", number, rounds, False) for number in range(len(SWAPPED)) if amount.full or number % 5 == 0]
    jobs += [("trees", number, 1, False) for number in range(len(STANDING)) if amount.full or number < 3]
    jobs += [("trees", number, engines, False) for number in range(len(STANDING), len(TREES)) if engines]
    return merged(spread(_job, jobs, amount.jobs, tell))


def control(amount: Amount) -> Result:
    broken = [("links", number, 0, True) for number in (0, 6, 9)] + [("trees", number, 1, True) for number in range(3)]
    return merged(_job(job) for job in broken)


def _job(job: tuple[str, int, int, bool]) -> Result:
    kind, number, count, broken = job
    with alone(), place() as work, _following_links(broken):
        act: Callable[[Path, int, int], Result] = {
            "names": _names,
            "processes": _processes,
            "links": _links,
            "swaps": _swaps,
            "trees": _trees,
        }[kind]
        return act(work, number, count)


# ---- the place ---------------------------------------------------------------------------------------


def _build(work: Path) -> Path:
    """A repository with files that are not ours, between neighbours."""
    root = work / "project"
    for path, text in {
        "project/src/main.py": "print()\n",
        "project/docs/guide.md": "# Mine\n",
        "project/README.md": "# Mine\n",
        "project/.git/config": "[core]\n",
        "project/.git/HEAD": "ref: x\n",
        "project/.git/hooks/pre-commit": "#!/bin/sh\n",
        "project/.github/x.yml": "a: b\n",
        "project/.claude/settings.json": "{}\n",
        "project/.tenuto/roles/reviewer.md": "# Mine\n",
        "neighbour/state.json": "{}\n",
        "neighbour/notes.md": "theirs\n",
        "secret": "theirs\n",
        "outside/flow-state.json": "{}\n",
    }.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    with opened(root) as workspace:
        workspace.context.init("Dark mode")
        workspace.context.store("spec", "# Dark mode\n")
        workspace.flow.initialize_workflow("T-1")
        workspace.staged.init("Dark mode", pipelineProfile="minimal")
        workspace.feature_state.start("OAuth login", "Sign in")
    return root


def _around(work: Path) -> Snapshot:
    """Everything but the repository's own places."""
    found: Snapshot = {}
    for folder, folders, files in os.walk(work):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            below = os.path.relpath(path, work)
            if below.startswith("project/") and OWN.match(below.removeprefix("project/")):
                continue
            if os.path.islink(path):
                found[below] = f"-> {os.readlink(path)}"
            else:
                found[below] = Path(path).read_bytes() if name in files else None
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
    return found


def _escapes(before: Snapshot, after: Snapshot, label: str) -> list[str]:
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path, 0) != after.get(path, 0))
    return [f"{label}: {path} was {'changed' if path in before else 'made'}" for path in changed]


# ---- names -------------------------------------------------------------------------------------------


def _hostile(dice: random.Random, work: Path) -> str:
    ups = dice.choice(
        (
            "../",
            "..\\",
            "../../",
            "./../",
            "..//",
            "%2e%2e/",
            "..%2f",
            "․․/",
            "．．/",
            "..\u200b/",
            "a/../../",
            "/../",
            "~/",
        )
    )
    parts = (
        "neighbour/state.json",
        "outside",
        "secret",
        ".git/config",
        ".git/hooks/pre-commit",
        "src/main.py",
        "README.md",
        "con",
        "nul.txt",
        "x",
        "a" * 300,
        "\0",
        "\n",
        "\r",
        "\x1b[2J",
        "\u202egpj.exe",
        "-rf",
        "--",
        "*",
        "$(touch x)",
        "`touch x`",
        ";touch x",
        "|x",
        "",
        " ",
        ".",
        "..",
        "...",
        "é",
        "é",
        "ﬀ",
        "\ud800",
        "%00",
        "file:///x",
        "C:\\x",
        "\\\\host\\share",
        "/etc/passwd",
        f"{work}/outside/made",
        "project",
        "../project/../outside/x",
        ".github/x.yml",
        ".claude/settings.json",
        ".ai-workspace",
        "docs/../src/main.py",
        "docs/guide.md",
        ".tenuto/../README.md",
    )
    made = dice.choice(parts)
    for _ in range(dice.randrange(3)):
        made = dice.choice(
            (ups + made, made + "/" + dice.choice(parts), made + dice.choice(parts), "/" + made, ups * 3 + made)
        )
    return made[:600]


def _names(work: Path, number: int, count: int) -> Result:
    random = dice("names", number)
    violations: list[str] = []
    refused = 0
    here = os.getcwd()
    for begun in range(0, count, BATCH):
        root = _build(work)
        os.chdir(root)
        try:
            before = _around(work)
            with opened(root) as workspace:
                for _ in range(BATCH):
                    name = _hostile(random, work)
                    way = random.choice(WAYS)
                    try:
                        way(workspace, name)
                    except (TenutoError, OSError, ValueError):
                        refused += 1
                    label = f"{way.__name__} {name!r}"
                    violations += _escapes(before, after := _around(work), label)
                    before = after
        finally:
            os.chdir(here)
            for path in work.iterdir():
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        assert begun >= 0
    return Result(count, violations, {"hostile names": f"{count:,}", "of them refused": f"{refused:,}"})


def task(workspace: Any, name: str) -> None:
    workspace.context.init(name)
    workspace.context.store("spec", "# x\n", task_id=name)


def stored_for_a_task(workspace: Any, name: str) -> None:
    workspace.context.store("implementation", "# x\n", task_id=name)


def ticket(workspace: Any, name: str) -> None:
    workspace.flow.initialize_workflow(name, description=name)


def described(workspace: Any, name: str) -> None:
    workspace.flow.initialize_workflow("", description=name)


def staged_output(workspace: Any, name: str) -> None:
    workspace.staged.record_output(name, "# x\n")


def staged_setting(workspace: Any, name: str) -> None:
    workspace.staged.update({"worktree": name, "files": name} if len(name) % 2 else {"worktree": name})


def feature(workspace: Any, name: str) -> None:
    workspace.feature_state.start(name, name)


def reported_files(workspace: Any, name: str) -> None:
    from tenuto.hooks.call import answer
    from tenuto.hooks.parse import parse_hook

    told: dict[str, object] = {
        "agentName": "spec-writer",
        "completedPhase": "spec",
        "filesCreated": [name],
        "filesModified": [name],
    }
    answer(workspace, parse_hook("SubagentStop", told | {"timestamp": "2026-01-02T03:04:05Z"}))


def artifact(workspace: Any, name: str) -> None:
    with workspace.turn() as turn:
        turn.store("dark-mode", name[:100] or "x", f"docs/feature/dark-mode/{name}", b"x")


def restored(workspace: Any, name: str) -> None:
    from tenuto.workspace.checkup import restore

    restore(workspace, name)


def imported(workspace: Any, name: str) -> None:
    with workspace.journal.write() as transaction:
        taken = transaction.importing()
        taken.take({"kind": "log", "path": name, "text": "x"})
        taken.finish()
    with workspace.turn() as turn:
        turn.run("dark-mode")


def edited_file(workspace: Any, name: str) -> None:
    """Somebody writes hostile names into a state file."""
    import json

    path = Path(workspace.root, ".agents/tmp/state.json")
    state = json.loads(path.read_bytes())
    state["files"] = {"0-explore.md": name}
    state["worktree"] = name
    path.write_text(json.dumps(state))
    workspace.staged.read()


WAYS: tuple[Callable[[Any, str], None], ...] = (
    task,
    stored_for_a_task,
    ticket,
    described,
    staged_output,
    staged_setting,
    feature,
    reported_files,
    artifact,
    restored,
    imported,
    edited_file,
)


# ---- processes ---------------------------------------------------------------------------------------


def _processes(work: Path, number: int, count: int) -> Result:
    """As users start it; strace tells every file that was opened for writing, made, renamed or removed."""
    random = dice("processes", number)
    root, violations = _build(work), list[str]()
    temporary = work / "temporary"
    temporary.mkdir(exist_ok=True)
    for _ in range(count):
        name = _hostile(random, work).replace("\0", "")
        command = random.choice(
            (
                ("context", f"INIT task: {name}"),
                ("flow", "initialize_workflow", name),
                ("feature", "start", name),
                ("staged", "record-output", name, "--content", "x"),
                ("run", name, "--name", name, "--start-only"),
                ("repair", "--restore", name),
                ("context", f"STORE phase: spec task_id: {name} content: x"),
                ("adopt", name),
            )
        )
        log = work / "trace"
        calls = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,truncate"  # noqa: E501
        arguments, text = words_of(
            tuple(os.fsdecode(os.fsencode(word.encode("utf-8", "ignore").decode())) for word in command)
        )
        strace = ["strace", "--seccomp-bpf", "-f", "-y", "-o", str(log), "-s", "4096", "-e", f"trace={calls}"]
        brief = environment(TMPDIR=str(temporary))  # where what lasts as long as one process may lie
        subprocess.run([*strace, *arguments], cwd=root, input=text, capture_output=True, check=False, env=brief)
        violations += [f"{command!r}: leaves {left}" for left in os.listdir(temporary)]
        violations += [f"{command!r}: {line}" for line in _writes_elsewhere(log, root, temporary)]
        log.unlink()
    return Result(count, violations, {"of them as processes": f"{count:,}"})


def _writes_elsewhere(log: Path, root: Path, temporary: Path) -> Iterator[str]:
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)", line)
        if (
            call is None
            or int(call[3]) < 0
            or (call[1] == "openat" and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", call[2]))
        ):
            continue
        folders, names = re.findall(r"(?:\d+|AT_FDCWD)<([^>]*)>", call[2]), re.findall(r'"((?:[^"\\]|\\.)*)"', call[2])
        if call[1].startswith("symlink"):
            names = names[1:]  # where it leads to is not written
        for folder, name in itertools.zip_longest(folders, names, fillvalue=folders[-1] if folders else str(root)):
            path = os.path.normpath(os.path.join(folder, name))
            below = os.path.relpath(path, root)
            ours = (path.startswith(f"{root}/") and OWN.match(below)) or path.startswith(f"{temporary}/")
            if not ours and not re.match(
                rf"/dev/(null|tty)|/proc/|{re.escape(str(ROOT))}/tenuto/.*__pycache__|{re.escape(str(root))}/\.git($|/(?!hooks|config|info))",
                path,
            ):
                yield f"{call[1]} {path}"


# ---- links -------------------------------------------------------------------------------------------


def _commands(workspace: Any, number: int) -> None:
    acts: tuple[Callable[[], Any], ...] = (
        lambda: workspace.context.start_phase("spec"),
        lambda: workspace.context.store("spec", f"# {number}\n"),
        lambda: workspace.context.end_phase("spec", "success"),
        lambda: workspace.staged.update({"mine": number}),
        lambda: workspace.flow.update_delegation("T-1", agent="deep_research"),
        lambda: workspace.feature_state.answer({"problem": str(number)}),
        lambda: init_repository(workspace),
    )
    for act in acts:
        with contextlib.suppress(TenutoError, OSError):
            act()


def _links(work: Path, number: int, count: int) -> Result:
    """A link to the outside stands where a folder or file of ours should."""
    root, path = _build(work), SWAPPED[number]
    outside = work / "outside" if (root / path).is_dir() else work / "secret"
    (root / path).rename(work / "aside")
    (root / path).symlink_to(outside)
    before = _around(work)
    with opened(root) as workspace:
        for turn in range(3):
            _commands(workspace, turn)
    return Result(1, _escapes(before, _around(work), f"{path} is a link"), {"places replaced by links": "1"})


def _swaps(work: Path, number: int, rounds: int) -> Result:
    root, path = _build(work), SWAPPED[number]
    outside = work / "outside" if (root / path).is_dir() else work / "secret"
    before = _around(work)
    words = python("-c", SWAPPER, str(root / path), str(outside), str(work / "aside"), "0")
    with subprocess.Popen(words, stdout=subprocess.PIPE) as swapper, opened(root) as workspace:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            for turn in range(rounds):
                _commands(workspace, turn)
        finally:
            swapper.kill()
    if (root / path).is_symlink():
        (root / path).unlink()
    after = _put_back(_around(work), path)
    return Result(
        rounds, _escapes(before, after, f"{path} is swapped with a link"), {"rounds against swapped links": f"{rounds}"}
    )


def _trees(work: Path, number: int, rounds: int) -> Result:
    """What an engine copies, with a link in its way."""
    violations, through = list[str](), 0
    for turn in range(rounds):
        found, ended = attack(work / str(turn), TREES[number])
        through += ended
        violations += [f"an engine, {TREES[number]} is a link: outside, {name} was written" for name in found]
    return Result(
        rounds,
        violations,
        {"engines with links in their way": f"{rounds}", "of them at their end all the same": f"{through}"},
    )


def _put_back(found: Snapshot, path: str) -> Snapshot:
    """The swapper is stopped anywhere: what it had put aside belongs to its place."""
    aside = {
        f"{path}{name.removeprefix('aside')}": text for name, text in found.items() if name.partition("/")[0] == "aside"
    }
    rest = {name: text for name, text in found.items() if name.partition("/")[0] != "aside"}
    return {f"project/{name}": text for name, text in aside.items() if not OWN.match(name)} | rest


@contextlib.contextmanager
def _following_links(on: bool) -> Iterator[None]:
    """The promise broken on purpose."""
    if not on:
        yield
        return
    from tenuto.files import exchange

    kept = exchange._FOLDER
    exchange._FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        yield
    finally:
        exchange._FOLDER = kept
