"""Never delete context, only add: over arbitrary commands, and arbitrary edits by others in between.

After every command: no file has disappeared; the old history.md is a byte prefix of the new one; every version of
every file that was replaced can be read by its hash; and the manifest is what the journal says.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.encoding import digest
from tenuto.workspace.objects import stored_version
from tests.unit.context.conftest import TASKS, Repository

HISTORY = "docs/orchestrator/context/history.md"
APPENDED = (HISTORY, "docs/orchestrator/memory/decisions.md", "docs/orchestrator/memory/patterns.md")

TASK = st.sampled_from(["", " task: a", " task: b"])
PHASE = st.sampled_from(["architect", "implementer:task-1", "implementer:task-2", "impl-audit"])
TEXT = st.text(alphabet="abc \n#-é", min_size=1, max_size=30)
AUDIT = json.dumps({"verdict": "PASS", "memory_candidates": [{"type": "pattern", "title": "P", "content": "p"}, "D"]})
BREAKDOWN = json.dumps({"taskBreakdown": {"tasks": [{"id": 1}, {"id": 2, "dependencies": [1]}]}})

COMMANDS = st.one_of(
    st.builds("INIT task: {} mode: {}".format, st.sampled_from(["a", "b", "c"]), st.sampled_from(["standard", "poc"])),
    st.builds("START_PHASE phase: {}{}".format, PHASE, TASK),
    st.builds("END_PHASE phase: {} status: {}{}".format, PHASE, st.sampled_from(["success", "failed"]), TASK),
    st.builds("PAUSE reason: stuck{}".format, TASK),
    st.builds(
        "SET_GATE gate: {} prompt: ok? artifacts: architect.md{}".format, st.sampled_from(["design", "final"]), TASK
    ),
    st.builds("RESUME decision: {}{}".format, st.sampled_from(["approve", "reject", "retry", "revise"]), TASK),
    st.builds(
        "STORE phase: {} content: {}".format,
        st.sampled_from(
            [
                "architect",
                "spec",
                "tests",
                "implementation task_id: 1",
                "design-audit",
                "architect-revision iteration: 1",
            ]
        ),
        TEXT,
    ),
    st.just(f"STORE phase: impl-audit content: {AUDIT}"),
    st.just(f"STORE phase: architect content: {BREAKDOWN}"),
    st.just("STORE phase: debt content: ---\na: 1\n---\n"),
    st.just("STORE phase: graduate-complete"),
    st.builds("RETRIEVE for_phase: {}{}".format, st.sampled_from(["spec", "resume", "impl-audit"]), TASK),
    st.sampled_from(["LIST", "SUMMARY", "METRICS", "HISTORY", "QUERY question: architect"]),
)
EDITS = st.tuples(
    st.sampled_from(["architect.md", "spec.md", "manifest.json", "debt.md", "history.md", "current-task.md"]), TEXT
)


def edit(repository: Repository, name: str, text: str) -> None:
    """Somebody appends to a file, writes an artifact, or adds a key to the manifest."""
    if name in ("history.md", "current-task.md"):
        path = f"docs/orchestrator/context/{name}"
        if (repository.root / path).exists():
            repository.write(path, repository.read(path) + f"\n{text}\n")
    elif name == "manifest.json":
        if (repository.root / TASKS / "a/manifest.json").exists():
            repository.edit("a", **{f"key-{len(text)}": text})
    elif (repository.root / TASKS / "a").exists():
        repository.write(f"{TASKS}/a/{name}", text)


@given(st.sampled_from(["standard", "poc"]), st.lists(st.one_of(COMMANDS, COMMANDS, EDITS), min_size=4, max_size=16))
@settings(max_examples=settings().max_examples * 4 // 5)
def test_nothing_is_ever_lost(mode: str, steps: list[str | tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder) / "repository")
        for step in (f"INIT task: a mode: {mode}", *steps):
            repository.wait(1000)
            if isinstance(step, tuple):
                edit(repository, *step)
                continue
            before = repository.files()
            repository.say(step)
            after = repository.files()
            assert set(before) <= set(after), "a file disappeared"
            for path, body in before.items():
                if path in APPENDED:
                    assert after[path].startswith(body), path
                elif after[path] != body:
                    assert stored_version(repository.workspace, digest(body)) == body, path
        for slug in ("a", "b", "c"):
            if (repository.root / TASKS / slug / "manifest.json").exists():
                repository.say(f"SUMMARY task: {slug}")
                assert repository.manifest(slug)["status"] in json.dumps(repository.ask("LIST")["tasks"])
