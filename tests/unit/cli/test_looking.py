"""init, list, status, history, show, completion: looking changes nothing, and says enough."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import tenuto
from tenuto.core import fold
from tenuto.core.records import events
from tenuto.entrypoints.cli.terminal import Table, show
from tenuto.show.sentences import SENTENCES, sentence
from tenuto.workspace.settings import read_settings

from .conftest import start

Say = Callable[..., Any]


def test_looking_where_nothing_is_creates_nothing(say: Say, repository: Path) -> None:
    assert say("list", "--json").data == {"runs": []}
    assert say("list").err == "no runs here\n"
    for command in ("status", "history", "show"):
        assert say(command, "--json").error["code"] == "no-journal"
    assert [path.name for path in (repository / ".git").iterdir()] == ["HEAD"]


def test_init_says_where_the_journal_is_and_changes_nothing_the_second_time(say: Say, repository: Path) -> None:
    told = say("init")
    assert str(repository / ".git/tenuto/journal.db") in told.out
    (repository / ".tenuto/config.yaml").write_text("mine: true\n")
    assert say("init", "--json").data["created"] == []
    assert (repository / ".tenuto/config.yaml").read_text() == "mine: true\n"


@pytest.mark.parametrize("link", [".tenuto", ".tenuto/config.yaml"])
def test_init_writes_nothing_where_a_link_leads(
    say: Say, repository: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    """A repository that somebody else made may hold a link out of itself."""
    outside = tmp_path_factory.mktemp("outside")
    (repository / link).parent.mkdir(exist_ok=True)
    (repository / link).symlink_to(outside if link == ".tenuto" else outside / "made")
    told = say("init")
    assert list(outside.iterdir()) == []
    if link == ".tenuto":
        assert told.status == 4 and "bad-folder" in told.err
        assert not (repository / ".git/tenuto/journal.db").exists()


def test_settings_are_written_whole_or_not_at_all(say: Say, repository: Path) -> None:
    """On a full disk, half of them would count as somebody's own the next time."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert say("init").status == 0
    whole = Path(".tenuto/config.yaml").read_text()
    Path(".tenuto/config.yaml").unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) // 2, limits[1]))
    try:
        assert say("init").status == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "made .tenuto/config.yaml" in say("init").out
    assert Path(".tenuto/config.yaml").read_text() == whole


def test_the_settings_that_init_shows_are_settings(say: Say, repository: Path) -> None:
    """As it comes, the file says nothing; with its comments taken off, everything in it is known."""
    say("init")
    path = repository / ".tenuto/config.yaml"
    assert read_settings(str(repository)) == {}
    text = path.read_text().replace("#uses:", "# uses:")  # nobody has fetched that
    path.write_text(re.sub(r"^#(?=\w+:)", "", text, flags=re.MULTILINE))
    assert {"agent", "roles", "checks", "environment", "notify", "gates"} <= set(read_settings(str(repository)))


@pytest.mark.needs("git")
def test_without_git_the_journal_stays_out_of_a_later_repository(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.tenuto/ is to be committed; the journal that lies in it is not."""
    monkeypatch.chdir(tmp_path)
    assert say("init", "--json").data["journal"] == str(tmp_path / ".tenuto/journal.db")
    subprocess.run(["git", "init", "-q", "."], check=True)
    told = subprocess.run(["git", "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True)
    assert told.stdout.split() == [
        word for name in (".gitignore", "config.schema.json", "config.yaml") for word in ("??", f".tenuto/{name}")
    ]


def test_runs_are_listed_newest_first_and_can_be_chosen(say: Say, workspace: tenuto.Workspace, run: str) -> None:
    start(workspace, "second", shown=False)
    start(workspace, "third")
    runs = [entry["id"] for entry in say("list", "--json").data["runs"]]
    assert runs == ["third", "second", run]
    assert [entry["id"] for entry in say("list", "--limit", "1", "--json").data["runs"]] == ["third"]
    assert [entry["id"] for entry in say("list", "--dialect", "plain", "--json").data["runs"]] == ["third", run]
    waiting = say("list", "--status", "waiting_gate", "--limit", "1", "--json").data["runs"]
    assert [entry["id"] for entry in waiting] == [run]
    assert say("list").out.splitlines()[0].split() == ["RUN", "STATUS", "STEP", "COST", "UPDATED", "SUMMARY"]


def test_status_tells_what_the_current_run_waits_for(say: Say, run: str) -> None:
    told = say("status")
    assert told.status == 0
    assert "dark-mode: waiting_gate" in told.out
    assert "waits for a decision on 'design' since 2025-11-15 08:12:13Z: approve, reject, revise" in told.out
    assert "Ship it?" in told.out
    assert say("status", run, "--json").data["gate"]["name"] == "design"


@pytest.mark.parametrize(("decision", "status"), [(None, 5), ("approve", 0), ("reject", 1)])
def test_a_script_can_ask_whether_a_run_waits(
    decision: Any, status: int, say: Say, workspace: tenuto.Workspace, run: str
) -> None:
    if decision:
        with workspace.turn() as turn:
            turn.do(run, {"do": "DecideGate", "decision": decision, "who": "ada"})
    assert say("status", "--exit-code").status == status
    assert say("status").status == 0


def test_an_unknown_run_is_not_found(say: Say, run: str) -> None:
    for command in ("status", "history", "show"):
        told = say(command, "light-mode")
        assert told.status == 3
        assert told.err == "not found [no-such-run]: there is no run 'light-mode'\n  try: tenuto list\n"


def test_a_name_that_is_no_text_is_not_found(say: Say, run: str) -> None:
    """What a shell passes on need not be UTF-8."""
    for command in ("status", "history", "show", "verify", "export"):
        told = say(command, "dark\udcff")
        assert (told.status, told.err) == (
            3,
            "not found [no-such-run]: there is no run 'dark\\udcff'\n  try: tenuto list\n",
        )


def test_the_repositorys_own_stream_has_events_and_is_no_run(say: Say, run: str) -> None:
    assert "CurrentRunChanged" in say("show", "@").out
    assert "current run: dark-mode" in say("history", "@").out
    told = say("status", "@")
    assert (told.status, told.err) == (
        3,
        "not found [no-such-run]: '@' is the repository's own stream, not a run\n  try: tenuto show @\n",
    )


def test_history_is_told_in_sentences(say: Say, run: str) -> None:
    lines = [line.split(None, 3)[2:] for line in say("history").out.splitlines()[1:]]
    assert [words[1] for words in lines][:2] == [
        "run started with pipeline poc, mode standard: Dark mode",
        "build started, iteration 1",
    ]
    assert say("history", "--last", "1", "--json").data["history"][0]["text"] == "gate design opened: Ship it?"


def test_an_event_without_a_sentence_is_told_by_its_name() -> None:
    assert sentence({"type": "SomethingHappened"}) == "something happened"
    assert not set(SENTENCES) - set(fold._APPLY) - set(fold._APPLY_REPO), "no sentence is left over"


@pytest.mark.parametrize(
    "event", [*get_args(events.Event), *get_args(events.RepoEvent)], ids=lambda event: event.__name__
)
def test_every_event_has_a_sentence_about_what_is_in_it(event: Any) -> None:
    """A history hides nothing, and names no field that an event does not have."""
    fields = get_type_hints(event)
    words = SENTENCES[get_args(fields["type"])[0]]
    assert [name for name in re.findall(r"\{(\w+)", words) if name not in fields] == []


def test_a_way_is_told_by_its_steps() -> None:
    told: Any = {
        "type": "RouteTaken",
        "queue": [{"step": "design"}, {"step": "design-review"}],
        "route": "design-review.NEEDS_REVISION",
        "reason": "",
    }
    assert sentence(told) == "next: design > design-review (design-review.NEEDS_REVISION)"
    assert sentence(told | {"queue": [], "route": ""}) == "next: -"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            {
                "type": "SettingsChanged",
                "changes": {"crew": {"agent": "claude:model=opus", "roles": {}}, "dirty": "stash"},
            },
            "settings changed: crew=claude:model=opus, dirty=stash",
        ),
        (
            {"type": "ItemsPlanned", "items": {"01-a": {"title": "Theme"}, "02-b": {"title": ""}}},
            "items planned: 01-a (Theme), 02-b",
        ),
        ({"type": "BudgetChanged", "limits": {"attempts": 60, "tokens": None}}, "budget: attempts=60, tokens=none"),
        ({"type": "FlagSet", "flags": {"review_tier": "Full"}}, "set: review_tier=Full"),
        ({"type": "FlagSet", "flags": {}}, "set: -"),
    ],
)
def test_what_was_changed_is_told_by_name(event: Any, told: str) -> None:
    assert sentence(event) == told


def test_events_are_shown_from_any_point_on(say: Say, run: str) -> None:
    shown = say("show", run, "--since", "3", "--json").data
    assert [entry["seq"] for entry in shown["events"]] == [4, 5]
    assert shown["count"] == 5
    assert "5  GateOpened  2025-11-15T08:12:13.000Z  by ada" in say("show").out


def test_every_stored_version_of_a_file_can_be_read_by_its_hash(
    say: Say, workspace: tenuto.Workspace, run: str
) -> None:
    """Artifacts that were replaced, large ones, and state files older than those kept word for word."""
    first = Path("docs/dark-mode.json").read_text()
    big = b"\xff" * (1 << 18) + b"end"
    with workspace.turn() as turn:
        turn.store(run, "plan", "docs/plan.md", b"# Another plan\n")
        turn.store(run, "picture", "docs/picture.bin", big)
    for number in range(12):
        with workspace.turn() as turn:
            turn.do(run, {"do": "SetFlags", "flags": {"n": number}})
    for body in (b"# Plan\n", first.encode()):
        assert say("show", "--sha256", hashlib.sha256(body).hexdigest()).out.encode() == body
    assert say("show", "--sha256", hashlib.sha256(big).hexdigest(), "--json").data["size"] == len(big)
    assert say("show", "--sha256", "0" * 64).status == 3
    assert say("show", "--sha256", "plan").status == 2


def test_what_is_stored_cannot_forge_lines_or_colours(say: Say, workspace: tenuto.Workspace) -> None:
    """A hostile summary is shown escaped, in people's tables and in JSON on a terminal alike."""
    start(workspace, "dark-mode", summary="\x1b[2J\x9b31m\nfake  completed\u202egnol")
    for words in (["list"], ["status"], ["history"], ["show"], ["list", "--json"], ["status", "--json"]):
        out = say(*words).out
        assert not [c for c in out if c in "\x1b\x9b\u202e"], words
    assert "\\x1b[2J\\x9b31m\\nfake  completed\\u202egnol" in say("list").out


def everything(terminal: int) -> bytes:
    """What a terminal was shown; its end is an error to whoever reads."""
    read = b""
    try:
        while chunk := os.read(terminal, 65536):
            read += chunk
    except OSError:
        pass
    os.close(terminal)
    return read


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 columns no row is broken; brackets in stored text are text, not markup."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        show([Table(("RUN", "STATUS", "SUMMARY"), [("dark-mode", "failed", "[red]word[/red] " * 20)])])
    shown = everything(ours).decode().splitlines()
    assert [line.split()[:3] for line in shown] == [
        ["RUN", "STATUS", "SUMMARY"],
        ["dark-mode", "failed", "[red]word[/red]"],
    ]
    assert all(len(line) <= 80 for line in shown)
    assert "\x1b" not in "".join(shown), "NO_COLOR is set for all tests"


def test_the_shell_completes_the_names_of_runs(say: Say, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "_tenuto_completion" in say("completion", "bash").out
    monkeypatch.setenv("_TENUTO_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "tenuto status da")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert say().out == "plain,dark-mode\n"


def test_a_name_with_half_a_character_is_nobodys(say: Say, run: str) -> None:
    """What a shell passes on that is no UTF-8 arrives like this."""
    for command in ("memory", "status", "history"):
        told = say(command, "dark\udcff")
        assert told.status == 3 and "Traceback" not in told.err, told.err


def test_a_task_that_is_led_by_hand_goes_on_without_an_agent(say: Say, repository: Path) -> None:
    """No pipeline is bound to it, so nothing is driven; advance names this command where a task has failed."""
    staged = tenuto.open(str(repository)).staged
    staged.init("by hand", pipelineProfile="minimal")
    staged.record_failure("it broke")
    told = say("resume", "by-hand")
    assert (told.status, told.out) == (0, "by-hand: running, led by hand\n")
    state = staged.read()
    assert state is not None and state["status"] == "in_progress"
    assert "tenuto resume by-hand" in say("retry", "by-hand", "0").err
