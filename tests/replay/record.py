"""Make recordings that are not there yet: `python tests/replay/record.py [NAME ...]`. See prove/recorded.py.

Every shipped pipeline, driven by the engine with scripted agents; every dialect, led by hand; edits by others; a
redaction; and what none of these comes to: lost attempts, limits, parking, blocks, memory, sessions, a fork, an
adoption, runs that are under way.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from prove import frame, recorded, scenes
from prove.looking import opened
from tenuto.encoding import dumps
from tenuto.engine.begin import fork, start
from tenuto.engine.guided import accept, hand_out
from tests.acceptance.rehearsing import Stage

PIPELINES = (
    "eight-step",
    "orchestrate",
    "poc",
    "ticket",
    "feature-dev",
    "staged-minimal",
    "staged-standard",
    "staged-thorough",
    "quick",
    "fix",
)
# Places that say nothing about a machine: paths of the repository and of Tenuto itself end up in events.
PLACE, HOME = Path("/srv/replay"), Path("/srv/tenuto")


def pipeline(name: str) -> Path:
    stage = Stage(PLACE)
    run = stage.play("Add dark mode", name)
    assert run["status"] in ("completed", "poc-complete", "graduated"), run["status"]
    stage.workspace.journal.close()
    return stage.root


def graduated() -> Path:
    stage = Stage(PLACE)
    assert stage.play("Add dark mode", "poc")["status"] == "poc-complete"
    assert stage.play("Add dark mode", "graduate")["status"] == "graduated"
    stage.workspace.journal.close()
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


# What happens seldom, as commands to the rules: by the run that they are given to. Each run rests where its last one
# leaves it.
_MEMORY = {
    "id": "m1",
    "text": "Colours come from one file.",
    "step": "spec",
    "at": "2026-01-02T03:04:05Z",
    "invalidated": None,
}
_ATTEMPT = {"do": "DispatchAttempt", "step": "spec", "role": "writer", "reserved": {"attempts": 1, "tokens": 700}}
_SELDOM: dict[str, tuple[dict[str, Any], ...]] = {
    "lost": (
        {"do": "ChangeBudget", "limits": {"attempts": 9, "tokens": 5_000}, "steps": {"spec": {"attempts": 4}}},
        {"do": "BindSession", "session": "s-1"},
        {"do": "StartStep", "step": "spec"},
        {**_ATTEMPT, "attempt": "spec-1"},
        {"do": "StartAttempt", "attempt": "spec-1", "extra": {"pid": 7}},
        {**_ATTEMPT, "attempt": "spec-2", "role": "critic"},
        {"do": "LoseAttempt", "attempt": "spec-1", "reason": "its supervisor was killed", "ran": True},
        {"do": "LoseAttempt", "attempt": "spec-2", "reason": "it was recorded, but never started", "ran": False},
        {**_ATTEMPT, "attempt": "spec-3"},
        {"do": "ChangeBudget", "limits": {"tokens": None}},
        {"do": "SaveContext", "context": {"next": "plan", "open": ["fonts"]}, "reason": "compaction"},
        {
            "do": "FinishAttempt",
            "attempt": "spec-3",
            "status": "failed",
            "verdict": "PARKED",
            "summary": "limit reached",
            "usage": {"attempts": 1, "tokens": 40},
            "parked_until": "2026-01-02T08:00:00.000Z",
        },
    ),
    "remembered": (
        {"do": "WriteMemory", "kind": "lessons", "entries": [_MEMORY]},
        {"do": "WriteMemory", "kind": "decisions", "entries": [_MEMORY, {**_MEMORY, "id": "m2", "step": "look"}]},
        {
            "do": "WriteMemory",
            "kind": "updates",
            "entries": [{**_MEMORY, "id": "m3"}, {**_MEMORY, "id": "m4", "step": "plan"}],
        },
        {"do": "PruneMemory", "keep": ["spec", "plan"]},
        {
            "do": "WriteMemory",
            "kind": "decisions",
            "entries": [{**_MEMORY, "id": "m5", "step": "plan"}, {**_MEMORY, "id": "m6", "step": "build"}],
        },
        {"do": "InvalidateMemory", "steps": ["plan"], "reason": "plan is revised"},
        {"do": "CleanMemory"},
        {"do": "InvalidateMemory", "steps": ["build"], "reason": "build is revised"},
        {"do": "Block", "reason": "no key", "stage": None},
    ),
    "parked": (
        {"do": "Block", "reason": "no key", "stage": None},
        {"do": "Unblock"},
        {"do": "SaveContext", "context": {"next": "plan"}, "reason": "compaction"},
        {"do": "RestoreContext", "session": "s-2"},
        {"do": "Park", "until": "2026-01-03T08:00:00.000Z", "reason": "the week's limit"},
    ),
    "stopped": ({"do": "StartStep", "step": "spec"}, {"do": "Stop", "reason": "lunch"}),
    "cancelled": ({"do": "StartStep", "step": "spec"}, {"do": "Cancel", "reason": "not wanted any more"}),
}


def seldom() -> Path:
    root = by_hand("context")
    for name in _SELDOM:
        assert scenes.play(root, ("context", f"INIT task: {name}")).returncode == 0
    assert (
        scenes.play(root, ("staged", "init", "--task", "Bright mode", "--pipelineProfile", "minimal")).returncode == 0
    )
    with opened(root) as workspace:
        for name, commands in _SELDOM.items():
            for command in commands:
                with workspace.turn() as turn:
                    turn.do(name, command)
        workspace.staged.restart(None, "begin again")
    return root


def under_way() -> Path:
    """Runs as they are found after a crash: in the midst of a step that something was done before, at a gate, sent
    back."""
    root = PLACE / "repository"
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "prove.yaml").write_text(
        "name: prove\nshown_as: feature_docs\ndocuments: docs/feature/{slug}\nmemory: run\ngiven: [memory.md]\nsteps:\n"
        "  - {id: begin, action: [initialize-memory]}\n"
        "  - {id: first, before: [prune-memory], agent: {role: implementer}, on: {NEEDS_REVISION: {route: "
        "[begin], at_most: 2, then: halt}, ERROR: halt}}\n"
        "  - {id: agree, gate: {name: agree, show: [], prompt: 'Go on?', revise: first}}\n"
        "  - {id: second, agent: {role: implementer}}\n"
    )
    with opened(root) as workspace:
        for name in ("in the midst", "at its gate", "on its way back"):
            start(workspace, name, "prove", name=name)
            hand_out(workspace, name.replace(" ", "-"), {})
        accept(
            workspace,
            "on-its-way-back",
            "first-1-implementer-1",
            {"verdict": "NEEDS_REVISION", "summary": "not yet"},
            {},
        )
        hand_out(workspace, "on-its-way-back", {})
        accept(workspace, "at-its-gate", "first-1-implementer-1", {"verdict": "DONE", "summary": "written"}, {})
        hand_out(workspace, "at-its-gate", {})
    return root


def conditions() -> Path:
    """Steps that run only where something holds: a parameter, a file, what an earlier step came to."""
    root = PLACE / "repository"
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    (root / ".tenuto" / "pipelines").mkdir(parents=True)
    (root / ".tenuto" / "pipelines" / "release.yaml").write_text(
        "name: release\ndocuments: docs/{slug}\nparams:\n  target: [web, api]\n  depth: 2\nsteps:\n"
        "  - id: look\n"
        "    agent: {role: implementer, id: looker, focus: 'for {params.target}', out: 'look-{params.target}.md'}\n"
        "  - {id: deep, agent: {role: implementer}, when: {param: depth, more_than: 2}}\n"
        "  - {id: notes, agent: {role: implementer}, when: {all: [{exists: notes.md}, {outcome: look, is: DONE}]}}\n"
        "  - {id: last, agent: {role: implementer}, when: {not: {changed: 'src/**'}}}\n"
    )
    with opened(root) as workspace:
        start(workspace, "Release it", "release", params={"target": "api"})
        hand_out(workspace, "release-it", {})
        (root / "docs" / "release-it").mkdir(parents=True, exist_ok=True)
        (root / "docs" / "release-it" / "look-api.md").write_text("Looked.\n")
        accept(workspace, "release-it", "look-1-looker-1", {"verdict": "DONE", "summary": "seen"}, {})
        hand_out(workspace, "release-it", {})
    return root


def nested() -> Path:
    """A pipeline as a step of another one: left out once, then failing, and its way back."""
    root = PLACE / "repository"
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    own = root / ".tenuto" / "pipelines"
    own.mkdir(parents=True)
    (own / "part.yaml").write_text(
        "name: part\nparams: {what: text, depth: 1}\nsteps:\n"
        "  - id: look\n    agent: {role: implementer, id: looker, focus: 'at {params.what}', out: look.md}\n"
        "  - {id: deep, agent: {role: implementer}, when: {param: depth, more_than: 1}}\n"
    )
    (own / "whole.yaml").write_text(
        "name: whole\ndocuments: docs/{slug}\nsteps:\n"
        "  - {id: first, agent: {role: implementer}}\n"
        "  - {id: never, pipeline: part, params: {what: nothing}, when: {exists: notes.md}}\n"
        "  - id: part\n    pipeline: part\n    params: {what: it, depth: 2}\n"
        "    on: {ERROR: {route: [first], at_most: 1}}\n"
        "  - {id: last, agent: {role: implementer}, when: {outcome: part, is: DONE}}\n"
    )
    with opened(root) as workspace:
        run = start(workspace, "Nest it", "whole")["id"]
        document = root / "docs" / run / "part" / "look.md"
        for attempt, verdict in (
            ("first-1-implementer-1", "DONE"),
            ("part.look-1-looker-1", "ERROR"),
            ("first-2-implementer-1", "DONE"),
            ("part.look-2-looker-1", "DONE"),
            ("part.deep-1-implementer-1", "DONE"),
        ):
            hand_out(workspace, run, {})
            if attempt.startswith("part.look"):
                document.parent.mkdir(parents=True, exist_ok=True)
                document.write_text(f"{attempt}\n")
            accept(workspace, run, attempt, {"verdict": verdict, "summary": "seen"}, {})
        hand_out(workspace, run, {})
    return root


def forked() -> Path:
    root = by_hand("feature_docs")
    with opened(root) as workspace:
        fork(workspace, "add-dark-mode", "second", name="dark mode again")
    return root


def adopted() -> Path:
    """State files that were there before Tenuto, with a key that it does not know."""
    from tests.acceptance.test_state_managers_conformance import FROM_BEFORE

    root = PLACE / "repository"
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    for path, state in FROM_BEFORE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(dumps(state))
    done = scenes.play(root, ("adopt",))
    assert done.returncode == 0, done.stderr
    return root


MAKERS: dict[str, Callable[[], Path]] = {
    **{f"pipeline-{name}": partial(pipeline, name) for name in PIPELINES},
    **{
        f"by-hand-{name}": partial(by_hand, name)
        for name in ("context", "flow", "staged", "feature", "feature_docs", "mixed")
    },
    "pipeline-graduate": graduated,
    "edited-by-others": edited,
    "redacted": redacted,
    "seldom": seldom,
    "under-way": under_way,
    "conditions": conditions,
    "nested": nested,
    "forked": forked,
    "adopted": adopted,
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
        shutil.copytree(
            HOME / "tests/replay",
            ROOT / "tests/replay",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*.py", "__pycache__"),
        )
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:]) if ROOT == HOME else elsewhere(sys.argv[1:])
