"""Pipes, sockets and devices that an agent leaves: nobody waits for them, they are put aside and named, and what git
needs is there again."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import tenuto
from tenuto.engine.begin import start
from tenuto.engine.guided import hand_out
from tests.acceptance.test_git_around_an_attempt import PIPELINE, Ground, state

NAME = "add-dark-mode"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def notes(ground: Ground) -> str:
    with ground.workspace.journal.read() as reader:
        return " ".join(str(event.get("text", "")) for event in reader.events(NAME))


IN_THE_TREE = {
    ".gitignore": "mkfifo .gitignore",
    ".gitattributes": "mkfifo .gitattributes",
    "d/.gitignore": "mkdir d; mkfifo d/.gitignore",
    "new": "mkfifo new",
    "pool/socket": "mkdir pool; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"pool/socket\")'",
    ".tenuto/config.yaml": "mkfifo .tenuto/config.yaml",
    ".tenuto/roles/implementer.md": "mkdir .tenuto/roles; mkfifo .tenuto/roles/implementer.md",
}


@pytest.mark.parametrize("path", IN_THE_TREE)
def test_what_is_no_file_is_put_aside_and_named(ground: Ground, path: str) -> None:
    attempt = ground.drive(IN_THE_TREE[path])
    assert attempt["verdict"] == "DONE", attempt["summary"]
    assert not os.path.lexists(ground.root / path)
    assert f"put aside: {path};" in notes(ground)
    assert list(Path(ground.workspace.state).glob(f"quarantine/special-*/{path}"))


@pytest.mark.parametrize("how", ["mkfifo a.txt", "mkfifo p; ln p a.txt; rm p", "ln -s /dev/zero a.txt"])
def test_in_the_place_of_a_file_of_the_repository_it_is_a_change_of_that_file(ground: Ground, how: str) -> None:
    attempt = ground.drive(f"rm a.txt; {how}")
    assert attempt["verdict"] == "ERROR" and "a.txt" in attempt["summary"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_so_is_a_device(ground: Ground) -> None:
    attempt = ground.drive("rm a.txt; mknod a.txt c 1 5")
    assert attempt["verdict"] == "ERROR" and "a.txt" in attempt["summary"]


IN_GIT = {
    ".git/HEAD": "rm .git/HEAD",
    ".git/config": "rm .git/config",
    ".git/packed-refs": "true",
    ".git/refs/heads/main": "rm .git/refs/heads/main",
    ".git/refs/heads/side": "true",
    ".git/info/exclude": "rm -f .git/info/exclude",
    ".git/commondir": "true",
    ".git/shallow": "true",
    ".git/MERGE_HEAD": "true",
    ".git/hooks/pre-commit": "true",
    ".git/objects/info/alternates": "true",
    ".git/index.lock": "true",
}


@pytest.mark.parametrize("path", IN_GIT)
def test_a_pipe_in_gits_own_files_is_named_put_back_and_an_error(ground: Ground, path: str) -> None:
    ground.git("tag", "v1")
    before = state(ground)
    attempt = ground.drive(f"{IN_GIT[path]}; mkfifo {path}")
    assert attempt["verdict"] == "ERROR" and f"{path} was no file any more" in attempt["summary"]
    assert state(ground) == before


OUT_OF_ORDER = {
    "no HEAD": "rm .git/HEAD",
    "a HEAD that says nothing": "echo nothing > .git/HEAD",
    "no refs": "rm -rf .git/refs",
    "another common directory": "cp -r .git ../other; echo ../../other > .git/commondir",
}


@pytest.mark.parametrize("how", OUT_OF_ORDER)
def test_a_repository_that_git_does_not_know_any_more_is_put_in_order_and_the_next_boundary_holds(
    ground: Ground, how: str
) -> None:
    (ground.root / ".tenuto/pipelines/small.yaml").write_text(
        PIPELINE.replace("    on:", "    retry: {ERROR: 1}\n    on:")
    )
    ground.git("commit", "-q", "-a", "-m", "twice")
    before = state(ground)
    once = ground.folder / "once"
    ground.drive(f"if [ -e {once} ]; then echo evil >> a.txt; else touch {once}; {OUT_OF_ORDER[how]}; fi")
    run = ground.workspace.load(NAME)
    first, second = run["attempts"].values()
    assert first["verdict"] == "ERROR" and "git's own files were changed" in first["summary"]
    assert second["verdict"] == "ERROR" and "outside the boundary were changed: a.txt" in second["summary"]
    assert state(ground) == before


def test_a_pipe_in_the_place_of_the_users_own_list_is_not_waited_for(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    lists = tmp_path / "settings" / "git"
    lists.mkdir(parents=True)
    attempt = ground.drive(f"mkfifo {lists}/ignore {lists}/attributes")
    assert attempt["verdict"] == "DONE", attempt["summary"]


def test_what_stood_there_before_and_where_somebody_listens_stays(ground: Ground) -> None:
    os.mkfifo(ground.root / "mine")
    (ground.root / "d").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        agent = f'ln {ground.root}/d/theirs "$PWD/linked"'
        server.bind(str(ground.root / "d/theirs"))
        server.listen()
        assert ground.drive(agent.replace("linked", "d/theirs2"))["verdict"] == "DONE"
    assert (ground.root / "mine").is_fifo() and (ground.root / "d/theirs").is_socket()
    assert not os.path.lexists(ground.root / "d/theirs2")


def test_a_trap_in_the_place_of_an_output_is_gone_before_work_is_handed_out(ground: Ground, tmp_path: Path) -> None:
    """Whoever starts the agents: a session of the user's does not write through it, either."""
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    workspace = tenuto.open(str(ground.root))
    name = start(workspace, "Add dark mode", "small")["id"]
    document = ground.root / "docs" / name / "built.md"
    document.parent.mkdir(parents=True, exist_ok=True)
    document.symlink_to(outside)
    _, (work,) = hand_out(workspace, name, {})
    assert work["outputs"] and not os.path.lexists(document)
    assert outside.read_text() == "mine\n"
