"""Pipelines, roles and settings from a shared repository, pinned by a commit, and from the user's own folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.errors import BadInput, Refused
from tenuto.knowledge import roles
from tenuto.knowledge.sources import own_folder, place_of, reference
from tenuto.workspace.settings import read_settings, secret_names
from tests.support.terminal import start_at_terminal
from tests.unit.engine.conftest import SMALL, Said

Say = Callable[..., Said]
TEAM = SMALL.replace("name: small", "name: team")
SETTINGS = """\
agent: 'command:team-agent'
checks: {tests: make team-test}
gates: signed
secrets: [TEAM_TOKEN]
"""
ROLE = "---\nname: designer\n---\nDesign as this team designs.\n"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "team")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home/state"))
    return tmp_path / "home"


@pytest.fixture
def team(tmp_path: Path, home: Path) -> tuple[Path, str]:
    """A repository of the team's, and its commit."""
    folder = tmp_path / "team"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    commit = committed(
        folder,
        pipelines__team_yaml=TEAM,
        roles__designer_md=ROLE,
        config_yaml=SETTINGS,
    )
    return folder, commit


@pytest.fixture
def using(repository: Path, team: tuple[Path, str]) -> str:
    folder, commit = team
    text = f"file://{folder}@{commit}"
    (repository / ".tenuto/config.yaml").write_text(f"uses: {text}\nsecrets: [MY_TOKEN]\n")
    return text


def test_nothing_of_it_counts_or_is_fetched_before_a_person_has_agreed(say: Say, using: str, repository: Path) -> None:
    said = say("run", "Add it", "--pipeline", "team", "--json")
    assert (said.status, said.error["code"]) == (4, "not-fetched") and "tenuto trust" in said.error["hint"]
    with pytest.raises(Refused, match="nobody has fetched"):
        read_settings(str(repository))
    look = say("trust", "--show")
    assert look.status == 5 and using in look.out and not place_of(reference(using)).exists()
    assert say("config", "--json").status == 2


def test_a_person_sees_all_of_it_once_and_it_counts_from_then_on(say: Say, using: str, repository: Path) -> None:
    program, terminal = start_at_terminal(
        [shutil.which("tenuto") or "tenuto", "trust"], repository, {**os.environ, "COLUMNS": "300"}
    )
    os.write(terminal, b"y\ny\n")
    assert program.wait() == 0
    screen = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    for words in ("Fetch it?", "make team-test", "command:team-agent", using, "May this run here"):
        assert words in screen
    found = read_settings(str(repository))
    assert found["checks"] == {"tests": "make team-test"} and found["gates"] == "signed"
    assert secret_names(str(repository)) == ["MY_TOKEN", "TEAM_TOKEN"], "what protects adds up"
    assert "Design as this team designs" in roles.find("designer", repository)["text"]
    listed = {one["name"]: one["origin"] for one in say("pipeline", "list", "--json").data["pipelines"]}
    assert listed["team"] == "shared" and listed["small"] == "repository"
    assert say("trust", "--show").status == 0


def test_another_commit_is_another_one_and_is_asked_for_again(
    say: Say, using: str, repository: Path, team: tuple[Path, str]
) -> None:
    assert say("trust", "--yes").status == 0
    folder, _ = team
    new = committed(folder, config_yaml="checks: {tests: make other}\n")
    (repository / ".tenuto/config.yaml").write_text(f"uses: [file://{folder}@{new}]\n")
    assert say("run", "Add it", "--pipeline", "team", "--json").error["code"] == "not-fetched"
    assert say("trust", "--yes").status == 0
    assert read_settings(str(repository))["checks"] == {"tests": "make other"}


def test_ci_fetches_it_for_one_command(say: Say, using: str, script: Callable[[str], str], repository: Path) -> None:
    subprocess.run(["sed", "-i", "$ a gates: guarded", ".tenuto/config.yaml"], check=True)
    said = say("run", "Add it", "--pipeline", "team", "--trust", "--agent", script("answers: []\n"), "--json")
    assert said.status in (0, 4), said.out
    assert place_of(reference(using)).is_dir()


@pytest.mark.parametrize(
    "text",
    [
        "github.com/org/repo",
        "github.com/org/repo@main",
        "github.com/org/repo@0123456",
        f"ext::sh -c touch@{'a' * 40}",
        f"--upload-pack=x@{'a' * 40}",
        f"github.com/org/repo//../../etc@{'a' * 40}",
        f"http://example.org/x@{'a' * 40}",
    ],
)
def test_a_branch_a_short_commit_and_what_is_no_address_are_refused(repository: Path, text: str) -> None:
    (repository / ".tenuto/config.yaml").write_text(f"uses: '{text}'\n")
    with pytest.raises(BadInput) as refused:
        read_settings(str(repository))
    assert refused.value.code == "bad-settings"


def test_a_commit_that_is_not_there_is_refused_and_nothing_is_left(say: Say, using: str, repository: Path) -> None:
    missing = using[:-40] + "0" * 40
    (repository / ".tenuto/config.yaml").write_text(f"uses: {missing}\n")
    said = say("trust", "--yes", "--json")
    assert said.error["code"] in ("no-such-commit", "git-failed") and not place_of(reference(missing)).exists()
    assert not list(place_of(reference(missing)).parent.glob(".new-*"))


def test_a_link_in_it_leads_nowhere_and_no_filter_of_it_runs(
    say: Say, repository: Path, team: tuple[Path, str]
) -> None:
    folder, _ = team
    (folder / "roles/spy.md").symlink_to("/etc/passwd")
    commit = committed(folder, **{".gitattributes": "*.md filter=evil\n"})
    (repository / ".tenuto/config.yaml").write_text(f"uses: file://{folder}@{commit}\n")
    assert say("trust", "--yes").status == 0
    spy = place_of(reference(f"file://{folder}@{commit}")) / "roles/spy.md"
    assert not spy.is_symlink() and spy.read_text() == "/etc/passwd"
    assert not (spy.parent.parent / ".git").exists() and not os.access(spy, os.X_OK)


def test_the_users_own_folder_counts_everywhere_behind_the_repository(
    say: Say, repository: Path, home: Path, script: Callable[[str], str]
) -> None:
    own = own_folder()
    (own / "pipelines").mkdir(parents=True)
    (own / "pipelines/mine.yaml").write_text(SMALL.replace("name: small", "name: mine"))
    (own / "pipelines/small.yaml").write_text("broken: true\n")
    (own / "config.yaml").write_text("pipeline: mine\nnotify: {command: touch ../told}\n")
    assert read_settings(str(repository))["pipeline"] == "mine"
    said = say("run", "Add it", "--agent", script("answers: []\n"))
    assert said.status == 0, said.err + said.out
    assert (repository.parent / "told").exists(), "what is the user's own runs unasked"
    assert say("run", "Another", "--pipeline", "small", "--agent", script("answers: []\n")).status == 0
    (repository / ".tenuto/config.yaml").write_text("pipeline: small\n")
    assert read_settings(str(repository))["pipeline"] == "small"


def test_settings_that_others_could_have_written_are_refused(repository: Path, home: Path) -> None:
    own_folder().mkdir(parents=True)
    path = own_folder() / "config.yaml"
    path.write_text("notify: {command: touch ../told}\n")
    path.chmod(0o666)
    with pytest.raises(Refused, match="others could have written"):
        read_settings(str(repository))


def test_what_was_kept_of_the_settings_follows_every_file(repository: Path, home: Path, say: Say) -> None:
    """A hook reads what another process kept; a change of the user's file must count at once."""
    state = repository / ".git/tenuto"
    say("init")
    (repository / ".tenuto/config.yaml").write_text("pipeline: small\n")
    own_folder().mkdir(parents=True)
    user = own_folder() / "config.yaml"
    user.write_text("secrets: [A_TOKEN]\n")
    for path in (user, repository / ".tenuto/config.yaml"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert secret_names(str(repository), str(state)) == ["A_TOKEN"]
    user.write_text("secrets: [B_TOKEN]\n")
    assert secret_names(str(repository), str(state)) == ["B_TOKEN"]


def test_uses_stands_in_a_repositorys_settings_only(repository: Path, home: Path) -> None:
    own_folder().mkdir(parents=True)
    (own_folder() / "config.yaml").write_text(f"uses: [github.com/o/r@{'a' * 40}]\n")
    with pytest.raises(BadInput, match="of a repository only"):
        read_settings(str(repository))


# ---- tenuto init --uses and --template


def test_init_pins_the_commit_of_today_and_a_later_one_takes_its_place(
    say: Say, repository: Path, team: tuple[Path, str]
) -> None:
    folder, commit = team
    said = say("init", "--uses", f"file://{folder}", "--yes", "--json")
    assert said.status == 0 and said.data["uses"] == f"file://{folder}@{commit}", said.out
    new = committed(folder, config_yaml="checks: {tests: make other}\n")
    assert say("init", "--uses", f"file://{folder}@{git(folder, 'branch', '--show-current')}", "--yes").status == 0
    lines = (repository / ".tenuto/config.yaml").read_text().splitlines()
    assert [line for line in lines if line.startswith("uses:")] == [f"uses: [file://{folder}@{new}]"]
    said = say("run", "Add it", "--pipeline", "team", "--agent", "command:true", "--json")
    assert said.error["code"] == "not-trusted"


def test_init_copies_a_template_and_replaces_nothing(say: Say, repository: Path, team: tuple[Path, str]) -> None:
    folder, _ = team
    (repository / ".tenuto/roles").mkdir()
    (repository / ".tenuto/roles/designer.md").write_text("mine\n")
    said = say("init", "--template", f"file://{folder}@HEAD", "--yes", "--json")
    assert said.status == 0 and ".tenuto/pipelines/team.yaml" in said.data["created"]
    assert (repository / ".tenuto/config.yaml").read_text() == SETTINGS
    assert (repository / ".tenuto/roles/designer.md").read_text() == "mine\n"
    assert "uses" not in (repository / ".tenuto/config.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--uses", "nonsense", "--yes"), "bad-uses"),
        (("--template", "a", "--uses", "b"), "bad-usage"),
    ],
)
def test_init_refuses_what_is_no_address_and_writes_nothing(
    say: Say, repository: Path, home: Path, words: tuple[str, ...], code: str
) -> None:
    assert say("init", *words, "--json").error["code"] == code
    assert not (repository / ".tenuto/config.yaml").exists()


def test_without_a_persons_word_init_fetches_nothing(say: Say, repository: Path, team: tuple[Path, str]) -> None:
    folder, commit = team
    said = say("init", "--uses", f"file://{folder}@{commit}", "--json")
    assert (said.status, said.error["code"]) == (4, "not-confirmed")
    assert not place_of(reference(f"file://{folder}@{commit}")).exists()
    assert not (repository / ".tenuto/config.yaml").exists()
