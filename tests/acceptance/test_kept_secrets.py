"""A declared secret that somebody says to Tenuto, or leaves in a file that it takes in: it is neither kept nor said,
whichever process looks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tenuto.encoding import dumps, loads
from tenuto.workspace.publish import displaced_name
from tests.acceptance.test_mcp import Asking, talk, text_of
from tests.support.trusting import trust

VALUE = "s3cret-5b1f-9a0c"
SETTINGS = "agent: claude\nsecrets: [MY_TOKEN]\n"
SPEC = "docs/orchestrator/context/tasks/y/spec.md"
MANIFEST = "docs/orchestrator/context/tasks/y/manifest.json"
HISTORY = "docs/orchestrator/context/history.md"


class Place:
    """A repository whose settings name a secret; every process that is started in it has the value."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {**os.environ, "MY_TOKEN": VALUE}
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        self.write(".tenuto/config.yaml", SETTINGS)
        trust(root)

    def write(self, path: str, text: str) -> Path:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        return full

    def tenuto(self, *words: str, given: str = "", at: Path | None = None) -> subprocess.CompletedProcess[str]:
        told = [sys.executable, "-m", "tenuto", *words]
        done = subprocess.run(
            told, cwd=at or self.root, env=self.environment, input=given, capture_output=True, text=True, check=False
        )
        assert VALUE not in done.stdout + done.stderr, words
        return done

    def hook(self, event: str, at: Path | None = None, **more: object) -> subprocess.CompletedProcess[str]:
        payload = {
            "session_id": "s",
            "agent_type": "t",
            "agent_id": "a1",
            "cwd": str(at or self.root),
            "hook_event_name": event,
            **more,
        }
        return self.tenuto("hook", event, given=dumps(payload), at=at)

    def holders(self) -> list[str]:
        """Files that hold it: the journal, its log and its index among them."""
        found = [
            path
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_symlink() and VALUE.encode() in path.read_bytes()
        ]
        return [path.relative_to(self.root).as_posix() for path in found]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "repository")


def test_what_a_command_is_told_is_kept_without_it(place: Place) -> None:
    told = [
        ("context", "INIT task: y"),
        ("context", f"STORE phase: spec task: y content: the key is {VALUE}"),
        ("context", f"SET_GATE task: y gate: design prompt: with {VALUE}"),
        ("context", f"QUERY task: y question: {VALUE}"),
        ("flow", "initialize_workflow", "T-1", "--context_summary", f"with {VALUE}"),
        ("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", f"find {VALUE}"),
        ("staged", "init", "--task", "explore"),
        ("staged", "record-output", "0", "--content-file", "-"),
        ("feature", "start", "z", "--session", "s"),
        ("run", f"Use {VALUE}", "--pipeline", "poc", "--start-only"),
    ]
    for words in told:
        done = place.tenuto(*words, given=f"explored {VALUE}\n" if words[-1] == "-" else "")
        assert done.returncode == 0, (words, done.stderr)
    place.hook("SubagentStart")
    place.hook("SubagentStop", last_assistant_message=f"DONE: {VALUE}")
    place.hook("UserPromptSubmit", prompt=f"use {VALUE}")
    assert place.holders() == []
    assert (place.root / SPEC).read_text().strip() == "the key is [secret]"
    assert "with [secret]" in place.tenuto("flow", "get_current_state", "T-1").stdout
    assert place.tenuto("verify").returncode == 0


@pytest.mark.parametrize(
    "words",
    [("staged", "init", "--task", VALUE), ("run", "Use it", "--name", VALUE, "--pipeline", "poc", "--start-only")],
)
def test_it_is_no_name_of_a_run(place: Place, words: tuple[str, ...]) -> None:
    done = place.tenuto(*words)
    assert (
        done.returncode == 4
        and "[holds-a-secret]: the name of the new run holds the value of MY_TOKEN, which is secret" in done.stderr
    )
    assert place.holders() == []


@pytest.mark.parametrize("value", ["signed", "orchestrator"])
def test_a_value_that_cannot_be_kept_is_named_and_nothing_begins(place: Place, value: str) -> None:
    """Masked, it would be taken out of what the run is: how its gates are kept, and where its files lie."""
    place.write(".tenuto/config.yaml", SETTINGS + "gates: signed\n")
    place.environment["MY_TOKEN"] = value
    for words in [
        ("run", "Add x", "--pipeline", "poc", "--name", "x", "--start-only"),
        ("context", "INIT task: y"),
        ("staged", "init", "--task", "explore"),
    ]:
        done = place.tenuto(*words)
        assert done.returncode and "the value of MY_TOKEN cannot be kept secret" in done.stdout + done.stderr, words
    assert place.tenuto("list").stderr == "no runs here\n"
    assert "give MY_TOKEN a longer value" in place.tenuto("doctor").stdout


def test_nor_does_anything_in_a_work_tree_that_is_named_by_one(place: Place, tmp_path: Path) -> None:
    git = ["git", "-C", str(place.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / f"tree-{VALUE}"), "-b", "other"], check=True)
    done = place.tenuto("flow", "initialize_workflow", "T-1", at=tmp_path / f"tree-{VALUE}")
    assert (
        done.returncode == 4
        and "[holds-a-secret]: the name of this work tree holds the value of MY_TOKEN, which is secret" in done.stderr
    )


@pytest.mark.parametrize(
    "words", [("status", VALUE), ("staged", VALUE), (VALUE,), ("context", "--json", f"INIT task: {VALUE}")]
)
def test_what_is_refused_is_named_without_it(place: Place, words: tuple[str, ...]) -> None:
    done = place.tenuto(*words)
    assert done.returncode != 0 and done.stdout + done.stderr


BEGIN = {
    ".feature-state.json": ("feature", "start", "z", "--session", "s"),
    ".agents/tmp/state.json": ("staged", "init", "--task", "explore"),
    ".ai-workspace/T-1/flow-state.json": ("flow", "initialize_workflow", "T-1", "--context_summary", "a"),
    MANIFEST: ("context", "INIT task: y"),
}
LOOK = {
    ".feature-state.json": ("feature", "resume"),
    ".agents/tmp/state.json": ("staged", "stop"),
    ".ai-workspace/T-1/flow-state.json": (
        "flow",
        "update_delegation",
        "T-1",
        "--agent",
        "deep_research",
        "--task",
        "a",
    ),
    MANIFEST: ("context", "START_PHASE phase: spec task: y"),
}


@pytest.mark.parametrize("path", BEGIN)
def test_a_state_file_that_somebody_wrote_is_taken_in_without_it(place: Place, path: str) -> None:
    assert place.tenuto(*BEGIN[path]).returncode == 0
    state = loads((place.root / path).read_text())
    place.write(path, dumps({**state, "note": f"the key is {VALUE}"}))
    done = place.tenuto(*LOOK[path])
    assert done.returncode == 0, done.stderr
    assert loads((place.root / path).read_text())["note"] == "the key is [secret]"
    assert place.holders() == []
    assert place.tenuto("verify").returncode == 0


def test_a_hook_takes_it_in_without_it_too(place: Place) -> None:
    place.tenuto("feature", "start", "z", "--session", "s")
    state = loads((place.root / ".feature-state.json").read_text())
    place.write(".feature-state.json", dumps({**state, "note": VALUE}))
    place.hook("SubagentStart")
    place.hook("SubagentStop", last_assistant_message="DONE: fine")
    assert loads((place.root / ".feature-state.json").read_text())["note"] == "[secret]"
    assert place.holders() == []


@pytest.mark.parametrize("path", BEGIN)
def test_one_that_is_adopted_is_taken_in_without_it_as_well(place: Place, path: str) -> None:
    """The file is there, and no journal is."""
    place.tenuto(*BEGIN[path])
    shutil.rmtree(place.root / ".git" / "tenuto")
    state = loads((place.root / path).read_text())
    place.write(path, dumps({**state, "note": f"the key is {VALUE}"}))
    for words in (("adopt",), LOOK[path]):
        done = place.tenuto(*words)
        assert done.returncode == 0, done
    assert loads((place.root / path).read_text())["note"] == "the key is [secret]"
    assert place.holders() == []


def test_where_the_mark_stood_before_nothing_has_changed(place: Place) -> None:
    """Who writes the value where we had masked it asks for nothing; what stands there is replaced all the same."""
    place.tenuto("flow", "initialize_workflow", "T-1", "--context_summary", f"with {VALUE}")
    path = ".ai-workspace/T-1/flow-state.json"
    ours = (place.root / path).read_text()
    place.write(path, ours.replace("[secret]", VALUE))
    place.tenuto("flow", "resume_workflow", "T-1")
    assert loads((place.root / path).read_text())["context_summary"] == loads(ours)["context_summary"]
    assert "absorbed" not in place.tenuto("history", "t-1").stdout
    assert place.holders() == []


def test_a_write_while_we_publish_is_taken_in_without_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", VALUE)
    path = ".ai-workspace/T-1/flow-state.json"
    place.tenuto("flow", "initialize_workflow", "T-1", "--context_summary", "a")
    with tenuto.open(str(place.root)).turn() as turn:
        turn.do("t-1", {"do": "SetFlags", "flags": {"ours": True}})  # looked at by now
        place.write(path, dumps({**loads((place.root / path).read_text()), "note": f"theirs: {VALUE}"}))
    assert loads((place.root / path).read_text())["note"] == "theirs: [secret]"
    assert place.holders() == []


def test_a_late_write_to_a_file_that_was_displaced_is_taken_in_without_it(place: Place) -> None:
    """By a program that had it open when we replaced it: it writes to what lies on our shelf."""
    path = ".ai-workspace/T-1/flow-state.json"
    place.tenuto("flow", "initialize_workflow", "T-1", "--context_summary", "a")
    delegate = ("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", "a")
    with open(place.root / path, "r+") as file:
        state = loads(file.read())
        place.tenuto(*delegate)
        file.seek(0)
        file.write(dumps({**state, "note": f"late: {VALUE}"}))
        file.truncate()
    assert place.holders() != []
    assert "came late" in place.tenuto("flow", "resume_workflow", "T-1").stderr
    assert loads((place.root / path).read_text())["note"] == "late: [secret]"
    assert place.holders() == []


def test_what_somebody_adds_to_a_log_stays_there_without_it(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    history = place.root / HISTORY
    history.write_text(f"{history.read_text()}by hand: {VALUE}\n")
    assert place.tenuto("context", "START_PHASE phase: spec task: y").returncode == 0
    assert "by hand: [secret]\n" in history.read_text() and "spec" in history.read_text()
    assert place.holders() == []
    assert place.tenuto("verify").returncode == 0


@pytest.mark.parametrize("filler", [0, 1 << 18])
def test_a_document_that_somebody_changed_is_named_and_left_alone(place: Place, filler: int) -> None:
    """It is not ours to change, and not taken in, small or large."""
    place.tenuto("context", "INIT task: y")
    place.tenuto("context", "STORE phase: spec task: y content: fine")
    place.write(SPEC, "x" * filler + f"the key is {VALUE}\n")
    for words in (("context", "STORE phase: spec task: y content: newer"), ("repair",)):
        done = place.tenuto(*words)
        assert (
            done.returncode in (1, 4)
            and f"{SPEC} holds the value of MY_TOKEN, which is secret" in done.stdout + done.stderr
        )
    assert place.holders() == [SPEC]
    place.write(SPEC, "the key is elsewhere\n")
    assert place.tenuto("context", "STORE phase: spec task: y content: newer").returncode == 0


@pytest.mark.parametrize("filler", [0, 1 << 18])
def test_a_file_that_is_said_to_be_made_is_recorded_without_its_text(
    place: Place, filler: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", VALUE)
    place.tenuto("feature", "start", "z", "--session", "s")
    place.write("docs/made.md", "x" * filler + VALUE)
    workspace = tenuto.open(str(place.root))
    with workspace.turn() as turn:
        turn.keep_file("z", "made", "docs/made.md")
    assert workspace.load("z")["artifacts"]["made"]["sha256"] == ""
    assert workspace.warnings == ["docs/made.md holds the value of MY_TOKEN, which is secret; its text is not kept"]
    assert place.holders() == ["docs/made.md"]


def test_a_large_file_that_is_to_be_stored_is_refused(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    large = place.write("../large.md", "x" * ((1 << 20) - 5) + VALUE + "y" * (9 << 20))
    done = place.tenuto("context", "STORE phase: spec task: y", "--content-file", str(large))
    assert done.returncode == 1 and "holds the value of MY_TOKEN, which is secret" in done.stdout
    assert place.holders() == []


@pytest.mark.parametrize("damage", ["\0\0\0", "half of it"])
def test_what_is_kept_aside_is_kept_without_it(place: Place, damage: str) -> None:
    place.tenuto("context", "INIT task: y")
    place.write(HISTORY, f"{VALUE}{damage}")
    assert place.tenuto("repair", "--restore", HISTORY).returncode == 0
    assert place.holders() == []
    kept = [path.read_text() for path in (place.root / ".git" / "tenuto" / "quarantine").iterdir()]
    assert kept == [f"[secret]{damage}"]


def test_nor_is_it_in_what_a_command_finds_damaged_and_keeps_aside(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    history = place.root / HISTORY
    history.write_bytes(history.read_bytes() + f"by hand: {VALUE}\0\0".encode())
    assert "what stood there is kept" in place.tenuto("context", "START_PHASE phase: spec task: y").stderr
    assert "by hand: [secret]" in history.read_text()
    assert place.holders() == []


def test_settings_that_are_not_committed_hold_in_a_work_tree_of_its_own(place: Place, tmp_path: Path) -> None:
    """An agent's hooks run there."""
    place.write("a.txt", "a")
    git = ["git", "-c", "user.name=user", "-c", "user.email=user@localhost"]
    for words in (
        ["add", "a.txt"],
        ["commit", "-q", "-m", "begin"],
        ["worktree", "add", "-q", str(tmp_path / "linked")],
    ):
        subprocess.run([*git, *words], cwd=place.root, check=True, capture_output=True)
    place.tenuto("feature", "start", "z", "--session", "s", at=tmp_path / "linked")
    place.hook("SubagentStart", at=tmp_path / "linked")
    place.hook("SubagentStop", at=tmp_path / "linked", last_assistant_message=f"DONE: {VALUE}")
    assert place.tenuto("history", "z", at=tmp_path / "linked").returncode == 0
    assert place.holders() == []


def test_a_model_that_says_it_over_mcp_hears_the_mark(place: Place) -> None:
    async def conversation(ask: Asking) -> None:
        await ask("store", run="y", phase="spec", content=f"the key is {VALUE}")
        assert VALUE not in dumps(await ask.refused("status", run=VALUE))

    place.tenuto("context", "INIT task: y")
    talk(place.root, conversation, MY_TOKEN=VALUE)
    assert place.holders() == [] and (place.root / SPEC).read_text().strip() == "the key is [secret]"


def test_one_that_slipped_in_is_forgotten_by_a_process_that_knows_it(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    with tenuto.open(str(place.root)).turn() as turn:  # this process has not got the value
        turn.do("y", {"do": "Note", "text": f"used {VALUE}"})
    assert place.holders() != []
    assert place.tenuto("context", "START_PHASE phase: spec task: y").returncode == 0
    assert place.tenuto("forget", "-", given=VALUE).returncode == 0
    assert place.holders() == [] and place.tenuto("verify").returncode == 0


def test_until_then_nobody_who_knows_it_says_it(place: Place) -> None:
    """place.tenuto looks at what was said."""
    tenuto.open(str(place.root)).feature_state.start("z", description=f"with {VALUE}", session="s")
    assert "Description: with [secret]" in place.hook("SessionStart", source="resume").stdout
    assert "with [secret]" in place.tenuto("feature", "resume").stdout
    assert "with [secret]" in place.tenuto("show", "z").stdout


def test_nor_does_an_mcp_server(place: Place) -> None:
    slipped = tenuto.open(str(place.root)).context
    slipped.init("y")
    slipped.store("spec", f"the key is {VALUE}", task="y")

    async def conversation(ask: Asking) -> None:
        read = await ask.client.read_resource("tenuto://y/spec")
        assert "the key is [secret]" in text_of(read.contents[0])
        assert "the key is [secret]" in (await ask("query", question="key"))["passages"][0]["text"]

    talk(place.root, conversation, MY_TOKEN=VALUE)


def test_where_nobody_can_tell_what_is_secret_nothing_is_taken_in(place: Place) -> None:
    """Who only looks is answered."""
    place.tenuto("feature", "start", "z", "--session", "s")
    place.write(".tenuto/config.yaml", 'secrets: ["MY_TOKEN"\n')
    refused = place.tenuto("pause", "z")
    assert refused.returncode == 2 and "config.yaml" in refused.stderr
    assert place.tenuto("list").returncode == 0 and place.tenuto("verify").returncode == 0
    hook = place.hook("SubagentStop", last_assistant_message=f"DONE: {VALUE}")
    assert hook.returncode == 0 and "config.yaml" in hook.stderr
    assert place.holders() == []


def handed_out(place: Place) -> None:
    place.tenuto("run", "x", "--pipeline", "poc", "--start-only", "--name", "x")
    assert place.tenuto("next", "x").returncode == 0


def test_what_is_reported_is_kept_without_it(place: Place) -> None:
    handed_out(place)
    done = place.tenuto(
        "report", "x", "architect-1-architect-1", "--reply", "-", given=f"the key is {VALUE}\nERROR: {VALUE}\n"
    )
    assert "ERROR" in done.stdout + done.stderr
    assert place.holders() == []


def test_so_is_what_a_hook_hears_of_what_was_handed_out(place: Place) -> None:
    handed_out(place)
    place.hook("SubagentStart", agent_type="architect")
    place.hook("SubagentStop", agent_type="architect", last_assistant_message=f"the key is {VALUE}\nDONE: fine")
    heard = [path.read_text() for path in (place.root / ".git" / "tenuto" / "attempts").rglob("heard")]
    assert heard == ["the key is [secret]\nDONE: fine"] and place.holders() == []


def test_so_is_what_project_memory_is_told(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    assert place.tenuto("memory", "add", "decision", f"use {VALUE}").returncode == 0
    assert place.holders() == []


def test_a_backup_with_one_is_neither_written_nor_read(place: Place, tmp_path: Path) -> None:
    before = place.environment
    place.environment = {name: value for name, value in before.items() if name != "MY_TOKEN"}
    place.tenuto("context", "INIT task: y")
    told = [sys.executable, "-m", "tenuto", "context", f"STORE phase: spec task: y content: {VALUE}"]
    subprocess.run(told, cwd=place.root, env=place.environment, check=True, capture_output=True)
    assert place.tenuto("export", "-o", str(tmp_path / "backup")).returncode == 0
    place.environment = before
    for words in (("export",), ("export", "-o", str(tmp_path / "another"))):
        done = place.tenuto(*words)
        assert done.returncode == 4 and "the backup holds the value of MY_TOKEN, which is secret" in done.stderr
    assert not (tmp_path / "another").exists()
    empty = Place(tmp_path / "elsewhere")
    assert empty.tenuto("import", str(tmp_path / "backup")).returncode == 4 and empty.holders() == []


def test_an_mcp_server_hears_of_what_is_declared_later(place: Place) -> None:
    place.write(".tenuto/config.yaml", "agent: claude\n")
    place.tenuto("context", "INIT task: y")

    async def conversation(ask: Asking) -> None:
        await ask("status", run="y")
        place.write(".tenuto/config.yaml", SETTINGS)
        await ask("store", run="y", phase="spec", content=f"the key is {VALUE}")

    talk(place.root, conversation, MY_TOKEN=VALUE)
    assert place.holders() == []


def absorbed(place: Place, value: str, note: str, add: bool = True) -> str:
    """A state file of a flow, in which somebody wrote `note`, as JSON spells it; returns what the next command makes
    of it."""
    place.environment["MY_TOKEN"] = value
    path = ".ai-workspace/T-1/flow-state.json"
    place.tenuto("flow", "initialize_workflow", "T-1", "--context_summary", "a")
    text = (place.root / path).read_text().rstrip().removesuffix("}").rstrip()
    place.write(path, f'{text},\n    "note": "{note}"\n}}\n')
    done = place.tenuto("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", "a")
    assert done.returncode == 0, done.stderr
    return str(loads((place.root / path).read_text())["note"])


@pytest.mark.parametrize(
    ("value", "note"),
    [
        ("abc/def+1234", r"abc\/def+1234"),
        ("<b>é-1234567", r"\u003cb\u003E\u00E9-1234567"),
        ('it"s back\\slash', r"it\"s back\\slash"),
    ],
)
def test_a_state_file_may_spell_it_in_any_way_of_json(place: Place, value: str, note: str) -> None:
    assert absorbed(place, value, f"key {note}.") == "key [secret]."
    for path in (place.root / ".git" / "tenuto").rglob("*"):
        assert not path.is_file() or note.encode() not in path.read_bytes(), path


def test_a_secret_of_many_lines_is_no_secret_of_every_bracket(place: Place) -> None:
    """A credential that is JSON itself: some of its lines stand in every JSON text."""
    value = '{\n    "auth": {\n        "token": "s3cret-5b1f"\n    },\n    "n": {},\n    }\n}'
    assert absorbed(place, value, "harmless") == "harmless"


def test_what_somebody_left_on_the_shelf_when_they_were_killed_is_masked_by_the_next(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    manifest = place.root / MANIFEST
    edited = dumps({**loads(manifest.read_text()), "note": VALUE})
    place.write(MANIFEST, edited)
    place.tenuto("context", "START_PHASE phase: spec task: y")
    assert place.holders() == []
    for path, text in ((HISTORY, f"the key is {VALUE}\n"), (MANIFEST, edited)):
        place.write(f".git/tenuto/shelf/{displaced_name(path)}", text)
    done = place.tenuto("context", "STORE phase: spec task: y content: fine")
    assert place.holders() == [] and "late" not in done.stderr
    assert loads(manifest.read_text())["note"] == "[secret]"


def answered(place: Place, question: str, text: str, knowing: bool) -> None:
    environment = (
        place.environment
        if knowing
        else {name: value for name, value in place.environment.items() if name != "MY_TOKEN"}
    )
    told = [sys.executable, "-m", "tenuto", "feature", "answer", question, text]
    subprocess.run(told, cwd=place.root, env=environment, check=True, capture_output=True)


def test_our_own_older_text_with_one_is_nobodys_edit(place: Place) -> None:
    """Recorded by a process without the value: on the shelf, or in place of a file that was never written, it is
    old, not new."""
    state = place.root / ".feature-state.json"
    place.tenuto("feature", "start", "z", "--session", "s")
    answered(place, "problem", f"uses {VALUE}", knowing=False)
    stale = state.read_text()
    answered(place, "problem", "a better text", knowing=False)
    answered(place, "users", "everybody", knowing=True)
    assert loads(state.read_text())["discoveryAnswers"]["problem"] == "a better text"
    state.write_text(stale)
    answered(place, "outcome", "all is well", knowing=True)
    told = loads(state.read_text())["discoveryAnswers"]
    assert (told["problem"], told["users"], told["outcome"]) == ("a better text", "everybody", "all is well")


def test_who_does_not_know_it_takes_in_nothing_that_was_taken_in_without_it(place: Place) -> None:
    """Where the file was not replaced, or lies on the shelf, for somebody was killed."""
    path = ".feature-state.json"
    place.tenuto("feature", "start", "z", "--session", "s")
    edited = dumps({**loads((place.root / path).read_text()), "note": VALUE})
    place.write(path, edited)
    answered(place, "users", "everybody", knowing=True)
    for left in (path, f".git/tenuto/shelf/{displaced_name(path)}"):
        place.write(left, edited)
        answered(place, "problem", f"another {len(left)}", knowing=False)
    told = loads((place.root / path).read_text())
    assert told["note"] == "[secret]" and told["discoveryAnswers"]["users"] == "everybody"
    assert [left for left in place.holders() if "shelf" not in left] == []


def test_an_edit_back_to_what_was_said_before_is_an_edit(place: Place) -> None:
    """However it spells the value, and whatever it looks like without it."""
    path = ".feature-state.json"
    place.tenuto("feature", "start", "z", "--session", "s")
    for word in ("a", "b", "c", "a"):
        state = loads((place.root / path).read_text())
        odd = dumps({**state, "note": f"{word} @"}).replace("@", rf"\u00{ord(VALUE[0]):x}{VALUE[1:]}")
        place.write(path, odd)
        place.tenuto("feature", "resume")
        assert loads((place.root / path).read_text())["note"] == f"{word} [secret]"


def test_a_log_that_was_taken_in_and_never_replaced_loses_no_line(place: Place) -> None:
    """Killed in between: the file still holds the value."""
    place.tenuto("context", "INIT task: y")
    history = place.root / HISTORY
    with_it = f"{history.read_text()}by hand: {VALUE}\n"
    history.write_text(with_it)
    place.tenuto("context", "START_PHASE phase: spec task: y")
    history.write_text(with_it)
    done = place.tenuto("context", "STORE phase: spec task: y content: fine")
    text = history.read_text()
    assert "rewritten" not in done.stderr and place.holders() == []
    assert [text.count(words) for words in ("by hand: [secret]", "START_PHASE", "STORE phase: spec")] == [1, 1, 1]


def test_a_number_that_looks_like_one_is_a_number(place: Place) -> None:
    place.environment["MY_TOKEN"] = "123456789012"
    path = ".feature-state.json"
    place.tenuto("feature", "start", "z", "--session", "s")
    place.write(path, dumps({**loads((place.root / path).read_text()), "issue": 1234567890123}))
    assert place.tenuto("feature", "answer", "users", "everybody").returncode == 0
    assert loads((place.root / path).read_text())["issue"] == 1234567890123
    assert loads(place.tenuto("status", "--json").stdout)["ok"]


def test_it_is_not_put_together_from_what_a_crash_tore(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    history = place.root / HISTORY
    history.write_bytes(history.read_bytes() + f"by hand: {VALUE[:6]}\0\0{VALUE[6:]}\n".encode())
    place.tenuto("context", "START_PHASE phase: spec task: y")
    assert "by hand: [secret]\n" in history.read_text() and place.holders() == []


def test_a_log_that_holds_one_already_is_added_to(place: Place) -> None:
    place.tenuto("context", "INIT task: y")
    place.environment.pop("MY_TOKEN")
    history = place.root / HISTORY
    history.write_text(f"{history.read_text()}by hand: {VALUE}\n")
    place.tenuto("context", "START_PHASE phase: spec task: y")
    place.environment["MY_TOKEN"] = VALUE
    history.write_text(f"{history.read_text()}harmless\n")
    done = place.tenuto("context", "STORE phase: spec task: y content: fine")
    assert done.returncode == 0 and "rewritten" not in done.stderr
    assert "harmless\n" in history.read_text()


def test_an_agent_is_not_started_with_a_mark_for_an_argument(place: Place) -> None:
    done = place.tenuto("run", "x", "--pipeline", "poc", "--agent", f"command:true {VALUE}")
    assert done.returncode == 4 and "the command of an agent holds the value of MY_TOKEN" in done.stderr


@pytest.mark.parametrize("words", [(VALUE,), ("staged", VALUE), ("status", f"--{VALUE}")])
def test_nor_is_it_said_to_who_looks_for_a_bug(place: Place, words: tuple[str, ...]) -> None:
    place.environment["TENUTO_DEBUG"] = "1"
    assert "Traceback" in place.tenuto(*words).stderr


@pytest.mark.parametrize(
    "value", ["back\\slash-x", "it's\"a-key-12", "tab\tAnd-more", "e\x1bscape-12345", "d\x7fel-1234567"]
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_is_refused_quotes_it_in_no_other_spelling(place: Place, value: str, more: list[str]) -> None:
    place.environment["MY_TOKEN"] = value
    done = place.tenuto("staged", value, *more)
    assert "[secret]" in done.stdout + done.stderr


def test_settings_in_another_encoding_are_no_reason_to_take_it_in(place: Place) -> None:
    place.tenuto("feature", "start", "z", "--session", "s")
    (place.root / ".tenuto" / "config.yaml").write_text(SETTINGS, encoding="utf-16")
    assert place.tenuto("pause", "z").returncode == 2
    assert place.tenuto("list").returncode == 0


def test_settings_that_lead_nowhere_are_named_to_who_changes_something(place: Place) -> None:
    place.tenuto("feature", "start", "z", "--session", "s")
    config = place.root / ".tenuto" / "config.yaml"
    config.unlink()
    config.symlink_to(config)
    assert place.tenuto("pause", "z").returncode != 0
    assert place.tenuto("list").returncode == 0
