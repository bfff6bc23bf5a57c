"""A journal goes to a PostgreSQL and comes back, at a gate in the middle of a run; a second checkout joins it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tenuto
from tenuto.encoding import dumps, loads
from tenuto.engine.gates import claim_home, refuse_elsewhere, refuse_open
from tenuto.errors import Refused, SchemaSkew
from tenuto.stores import journal_exists, open_journal
from tenuto.stores import moving as moves
from tenuto.stores.sqlite import SqliteJournal
from tenuto.workspace import moving
from tests.support.postgres import shared_database

pytestmark = pytest.mark.needs("postgres")

BIG = os.urandom((2 << 20) + 5)


@pytest.fixture
def address() -> str:
    return shared_database()


@pytest.fixture
def project(tmp_path: Path) -> str:
    return f"p{abs(hash(tmp_path)) % 10**12}"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def filled(repository: Path) -> Path:
    """A run of two kinds of artifacts, at a gate."""
    say(repository, "INIT task: dark-mode mode: standard")
    workspace = tenuto.open(".")
    with workspace.turn() as turn:
        turn.store("dark-mode", "picture", "docs/picture.bin", BIG)
        turn.store("dark-mode", "plan", "docs/plan.md", "# Grüße\n".encode())
        turn.tx.index("dark-mode", "plan", "docs/plan.md", [("Grüße", "from the plan")])
    workspace.journal.close()
    say(repository, "SET_GATE gate: design prompt: Good enough? artifacts: docs/plan.md")
    return repository


def say(root: Path, words: str) -> str:
    done = run(root, "context", words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = [os.path.join(os.path.dirname(os.sys.executable), "tenuto"), *words]  # type: ignore[attr-defined]
    return subprocess.run(program, cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def records(root: Path) -> list[str]:
    journal = open_journal(f"{root}/.git/tenuto")
    with journal.read() as reader:
        found = [dumps(record) for record in reader.records()]
    journal.close()
    return found


def test_there_and_back_in_the_middle_of_a_run_at_a_gate(filled: Path, address: str, project: str) -> None:
    """Every record is the same at each end; the run goes on in both places; files are as they were."""
    before = records(filled)
    gone = run(filled, "move", "--to", address, "--project", project)
    assert gone.returncode == 0 and "compared and the same" in gone.stdout, gone.stderr
    assert records(filled) == before and journal_exists(f"{filled}/.git/tenuto")
    assert run(filled, "verify").returncode == 0
    assert "GATE" in say(filled, "SUMMARY").upper()
    say(filled, "RESUME decision: approve")
    say(filled, "START_PHASE phase: spec")
    (filled / ".git/tenuto/objects").rename(filled / "away")  # a cache: the server has them
    assert run(filled, "verify").returncode == 0
    on_server = records(filled)
    assert len(on_server) > len(before)
    back = run(filled, "move", "--back")
    assert back.returncode == 0 and "compared and the same" in back.stdout, back.stderr
    assert records(filled) == on_server and not (filled / ".git/tenuto/where").exists()
    assert run(filled, "verify").returncode == 0
    say(filled, "END_PHASE phase: spec status: success")
    workspace = tenuto.open(".")
    sha = workspace.load("dark-mode")["artifacts"]["picture"]["sha256"]
    with workspace.journal.read() as reader:
        assert workspace.files().stored(reader, sha) == BIG
    again = run(filled, "move", "--to", address, "--project", project)
    assert again.returncode == 0, again.stderr
    say(filled, "SUMMARY")


def test_the_old_journal_is_opened_by_nobody_any_more(filled: Path, address: str, project: str) -> None:
    """Neither by a program that had it open, nor without the file that says where it is, nor by an older Tenuto."""
    state = f"{filled}/.git/tenuto"
    had_it_open = open_journal(state)
    with had_it_open.read() as reader:
        reader.load("dark-mode")
    moving.set_up(tenuto.open("."), address, project)
    moving.to_server(tenuto.open("."), address, project)
    os.rename(f"{state}/where", f"{state}/hidden")
    for journal in (had_it_open, open_journal(state)):
        for block in (journal.read, journal.write):
            with pytest.raises(Refused, match="was moved to") as refused, block():
                raise AssertionError("it was opened")
            assert refused.value.code == "journal-moved" and project in refused.value.hint
    with closing(sqlite3.connect(f"{state}/journal.db")) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
    assert version > 1000, "an older Tenuto takes it for one of a newer Tenuto"
    had_it_open.close()


def test_another_checkout_joins_and_both_write(filled: Path, address: str, project: str, tmp_path: Path) -> None:
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    other = tmp_path / "elsewhere" / "shop"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    joined = run(other, "join", address, "--project", project)
    assert joined.returncode == 0 and "1 run" in joined.stdout, joined.stderr
    assert "dark-mode" in run(other, "list").stdout
    assert run(other, "show", "dark-mode").returncode == 0
    say(filled, "RESUME decision: approve")
    assert run(filled, "history", "dark-mode").stdout == run(other, "history", "dark-mode").stdout
    journal = open_journal(f"{other}/.git/tenuto")
    with journal.read() as reader:
        (sha,) = reader.large_contents()
        assert b"".join(reader.large(sha)) == BIG
    journal.close()


ANSWERS = (
    "answers:\n  - for: {role: architect}\n    run: echo architect\n  - for: {role: implementer}\n    run: echo done\n"
)


def test_a_run_is_driven_in_one_checkout_until_another_takes_it(
    repository: Path, address: str, project: str, tmp_path: Path
) -> None:
    """Its agents and files are there: another engine would take them for lost, and start the same work again."""
    (repository / "answers.yaml").write_text(ANSWERS)
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    subprocess.run(["git", "commit", "-qm", "x"], cwd=repository, check=True)
    assert run(repository, "init").returncode == 0
    assert run(repository, "move", "--to", address, "--project", project).returncode == 0
    other = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "-q", str(repository), str(other)], check=True)
    assert run(other, "join", address, "--project", project).returncode == 0
    begun = run(repository, "run", "Add it", "--pipeline", "poc", "--agent", "scripted:answers.yaml")
    assert begun.returncode == 0, begun.stderr
    here, there = tenuto.open(str(repository)), tenuto.open(str(other))
    with pytest.raises(Refused) as elsewhere:
        refuse_elsewhere(there, there.load("add-it"))
    assert elsewhere.value.code == "other-checkout" and "tenuto join --take add-it" in elsewhere.value.hint
    assert run(other, "join", "--take", "add-it").returncode == 0
    refuse_elsewhere(there, there.load("add-it"))
    with pytest.raises(Refused):
        refuse_elsewhere(here, here.load("add-it"))


def test_a_run_with_attempts_in_flight_is_not_taken(filled: Path, address: str, project: str, tmp_path: Path) -> None:
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    other = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    assert run(other, "join", address, "--project", project).returncode == 0
    here = tenuto.open(str(filled))
    claim_home(here, here.load("dark-mode"))
    note_in_flight(here)
    refused = run(other, "join", "--take", "dark-mode")
    assert refused.returncode == 4 and "in flight in" in refused.stderr and "tenuto fork" in refused.stderr
    cancelled = run(other, "cancel", "dark-mode")
    assert cancelled.returncode == 4 and "is driven in" in cancelled.stderr


def note_in_flight(workspace: tenuto.Workspace) -> None:
    """As the journal says it while an agent is at work."""
    standing = workspace.journal.load("dark-mode")
    assert standing is not None
    standing["in_flight"] = ["dark-mode-1"]
    note: Any = {"type": "Noted", "v": 2, "at": "2026-11-15T10:00:00.000Z", "by": "t", "text": "x" * 9999, "extra": {}}
    with workspace.journal.write() as tx:
        tx.append("dark-mode", standing["version"], [note], {**standing, "version": standing["version"] + 1})


def test_where_a_journal_with_runs_is_nothing_is_joined(filled: Path, address: str, project: str) -> None:
    moving.set_up(tenuto.open("."), address, project)
    refused = run(filled, "join", address, "--project", project)
    assert refused.returncode == 4 and "tenuto move --to" in refused.stderr
    assert not (filled / ".git/tenuto/where").exists()


def test_nothing_is_moved_while_an_attempt_is_in_flight(filled: Path, address: str, project: str) -> None:
    moving.set_up(tenuto.open("."), address, project)
    before = records(filled)
    note_in_flight(tenuto.open("."))
    with pytest.raises(Refused) as refused:
        moving.to_server(tenuto.open("."), address, project)
    assert refused.value.code == "in-flight" and "dark-mode-1" in refused.value.message
    assert len(records(filled)) == len(before) + 1, "and it goes on here"


@pytest.fixture(params=["_copied", "leave", "write_place", "_admit"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """The move is cut off just before this step."""
    target = SqliteJournal if request.param == "leave" else moves

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    whole = getattr(target, request.param)
    monkeypatch.setattr(target, request.param, end)
    yield lambda: monkeypatch.setattr(target, request.param, whole)


def test_a_move_that_was_cut_off_is_ended_by_the_same_command(
    filled: Path, address: str, project: str, cut: Callable[[], None]
) -> None:
    """At every moment one journal takes writers, or none: nothing is written to the one that is left behind."""
    before = records(filled)
    moving.set_up(tenuto.open("."), address, project)
    with pytest.raises(KeyboardInterrupt):
        moving.to_server(tenuto.open("."), address, project)
    cut()
    try:
        with tenuto.open(".").turn() as turn:
            turn.do("dark-mode", {"do": "Note", "text": "meanwhile"})
        before = records(filled)
    except Refused as refused:
        assert refused.code == "journal-moved"
    state = f"{filled}/.git/tenuto"
    try:
        moving.to_server(tenuto.open("."), address, project)
    except Refused as refused:  # the old journal was left, and its place not noted yet
        assert refused.code == "journal-moved" and "tenuto join" in refused.hint
        moving.join_server(tenuto.open("."), address, project)
    assert records(filled) == before and journal_exists(state)
    say(filled, "SUMMARY")


@pytest.mark.parametrize("step", ["_copied_back", "_take_the_place", "remove_place"])
def test_a_move_back_that_was_cut_off_is_ended_by_the_same_command(
    filled: Path, address: str, project: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving.set_up(tenuto.open("."), address, project)
    moving.to_server(tenuto.open("."), address, project)
    before = records(filled)

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut_off, pytest.raises(KeyboardInterrupt):
        cut_off.setattr(moves, step, end)
        moving.back(tenuto.open("."))
    moving.back(tenuto.open("."))
    assert records(filled) == before
    say(filled, "SUMMARY")


def test_a_project_that_has_runs_of_its_own_takes_no_other_journal(
    filled: Path, address: str, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    monkeypatch.chdir(other)
    say(other, "INIT task: another mode: standard")
    refused = run(other, "move", "--to", address, "--project", project)
    assert refused.returncode == 4 and "runs of its own" in refused.stderr
    say(other, "SUMMARY")


def test_a_file_that_says_where_the_journal_is_and_cannot_be_read_is_no_reason_to_begin_another(filled: Path) -> None:
    (filled / ".git/tenuto/where").write_text("{")
    damaged = run(filled, "context", "SUMMARY")
    assert damaged.returncode == 1 and "where-damaged" in run(filled, "--json", "list").stdout + damaged.stderr
    place = {"format": 99, "store": "postgresql", "address": "a", "project": "b"}
    (filled / ".git/tenuto/where").write_text(dumps(place))
    with pytest.raises(SchemaSkew):
        open_journal(f"{filled}/.git/tenuto")


def test_no_password_is_written_down(filled: Path, address: str) -> None:
    refused = run(filled, "move", "--to", "postgresql://ada:hunter2hunter2@localhost/x", "--project", "x")
    assert refused.returncode == 2 and "hunter2" not in refused.stdout + refused.stderr
    assert not (filled / ".git/tenuto/where").exists()


def test_agents_that_could_read_a_login_are_not_isolated(
    filled: Path, address: str, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password in .pgpass opens the journal, however well its folder is shut."""
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:ada:hunter2hunter2\n")
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    workspace = tenuto.open(".")
    assert workspace.journal.logins() == [str(passwords)]
    with pytest.raises(Refused, match="pgpass can be read") as refused:
        refuse_open(workspace, "isolated", {"isolation": ["env"]})
    assert refused.value.code == "not-isolated"


def test_a_server_that_is_away_is_named_by_every_command_and_by_doctor_among_its_checks(
    filled: Path, address: str, project: str
) -> None:
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    where = filled / ".git/tenuto/where"
    where.write_text(where.read_text().replace("tenuto-pg-", "tenuto-no-"))
    for words in (["list"], ["status"], ["verify"], ["context", "SUMMARY"], ["move", "--back"]):
        away = run(filled, *words)
        assert away.returncode == 1 and "cannot be reached" in away.stdout + away.stderr, words
    doctor = run(filled, "doctor")
    assert doctor.returncode == 1 and "cannot be reached" in doctor.stdout and "git" in doctor.stdout


def test_a_leaked_secret_in_a_large_file_that_another_checkout_stored_is_forgotten(
    filled: Path, address: str, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2hunter2"
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    workspace = tenuto.open(".")
    with workspace.turn() as turn:
        turn.store("dark-mode", "dump", "docs/dump.bin", b"x" * (1 << 20) + secret.encode() + b"y" * (1 << 20))
    workspace.journal.close()
    other = tmp_path / "elsewhere" / "shop"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    assert run(other, "join", address, "--project", project).returncode == 0
    forgotten = run(other, "forget", secret)
    assert forgotten.returncode == 0, forgotten.stderr
    assert run(other, "verify").returncode == 0
    journal = open_journal(f"{other}/.git/tenuto")
    with journal.read() as reader:
        for sha in reader.large_contents():
            assert secret.encode() not in b"".join(reader.large(sha))
    journal.close()


def test_doctor_looks_at_the_database(filled: Path, address: str, project: str) -> None:
    assert run(filled, "move", "--to", address, "--project", project).returncode == 0
    checks = {check["name"]: check for check in loads(run(filled, "--json", "doctor").stdout)["data"]["checks"]}
    assert {"database", "tls", "role", "clock", "room"} <= set(checks)
