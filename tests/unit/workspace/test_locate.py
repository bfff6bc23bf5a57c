"""Where the journal of a repository lies, in every shape that git gives to one. git itself is the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tenuto
from tenuto.dialects.staged_beginning import worktree_of
from tenuto.errors import NotFound, Refused
from tenuto.files.git_start import repository_of
from tenuto.workspace.locate import locate

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> str:
    allowed = ["-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *allowed, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(folder: Path, *how: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", *how)
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def common_of(folder: Path) -> str:
    return os.path.join(git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"), "tenuto")


@pytest.mark.parametrize("name", ["plain", "with space", "größe-東京-🎉", "-dash", "a.git"])
def test_a_repository_keeps_it_in_its_git_folder_wherever_one_stands(tmp_path: Path, name: str) -> None:
    root = repository(tmp_path / name)
    (root / "deep" / "down").mkdir(parents=True)
    for place in (root, root / "deep" / "down", root / "deep" / ".." / "deep", root / ".git"):
        assert locate(str(place)) == (str(root), "", common_of(root))


def test_all_work_trees_share_one_journal_and_know_each_others_roots(tmp_path: Path) -> None:
    root = repository(tmp_path / "main")
    tree = tmp_path / "with space" / "fix ü"
    git(root, "worktree", "add", "-q", "--detach", str(tree))
    (name,) = os.listdir(root / ".git" / "worktrees")
    assert locate(str(tree)) == (str(tree), name, common_of(root))
    here, there = tenuto.open(str(root)), tenuto.open(str(tree))
    assert (here.root_of(name), there.root_of("")) == (str(tree), str(root))
    shutil.rmtree(tree)
    assert here.root_of(name) is None


@pytest.mark.parametrize("name", [b" \xff ", b"new\nline", b"\r\n'\"\\$\t\x01\r\n"])
def test_a_work_tree_may_be_called_as_it_likes_and_so_may_its_repository(tmp_path: Path, name: bytes) -> None:
    """Git's own files hold a path as it is, and it takes off nothing but line ends at its end."""
    root, tree = repository(tmp_path / os.fsdecode(name) / "main"), tmp_path / "trees" / os.fsdecode(name)
    git(root, "worktree", "add", "-q", "-b", "fix", str(tree))
    (own,) = os.listdir(root / ".git" / "worktrees")
    assert locate(str(tree)) == (str(tree), own, f"{root}/.git/tenuto")
    assert tenuto.open(str(root)).root_of(own) == str(tree)
    assert repository_of(str(tree)) == (str(tree), f"{root}/.git/worktrees/{own}", f"{root}/.git")
    there = worktree_of(tenuto.open(str(tree)), "now")
    assert there == {"path": str(tree), "branch": "fix", "createdAt": "now"}


def test_a_work_tree_with_relative_links_is_found_from_the_main_one(tmp_path: Path) -> None:
    """Newer gits can write links that survive a move of both."""
    root = repository(tmp_path / "main")
    git(root, "worktree", "add", "-q", "../fix")
    (root / ".git/worktrees/fix/gitdir").write_text("../../../../fix/.git\n")
    (tmp_path / "fix/.git").write_text("gitdir: ../main/.git/worktrees/fix\n")
    shutil.move(tmp_path / "main", tmp_path / "moved" / "main")
    shutil.move(tmp_path / "fix", tmp_path / "moved" / "fix")
    here = tenuto.open(str(tmp_path / "moved" / "main"))
    assert here.root_of("fix") == str(tmp_path / "moved" / "fix")
    assert locate(str(tmp_path / "moved" / "fix"))[1:] == ("fix", here.state)


def test_a_submodule_is_a_repository_of_its_own_and_so_are_its_work_trees(tmp_path: Path) -> None:
    """The main work tree of a submodule is not beside its git folder, which lies deep in the outer one's."""
    repository(tmp_path / "library")
    outer = repository(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", "../library", "lib")
    inner = outer / "lib"
    assert locate(str(inner)) == (str(inner), "", common_of(inner))
    assert locate(str(inner))[2] != locate(str(outer))[2]
    tree = tmp_path / "tree"
    git(inner, "worktree", "add", "-q", str(tree))
    there = tenuto.open(str(tree))
    assert (there.state, there.root_of("")) == (common_of(inner), str(inner))


def test_where_git_does_not_know_the_main_work_tree_nothing_is_guessed(tmp_path: Path) -> None:
    """A git folder kept apart, or a bare one: files of the main work tree are left to whoever stands in it."""
    root = tmp_path / "main"
    repository(root, f"--separate-git-dir={tmp_path / 'kept'}")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert locate(str(root)) == (str(root), "", str(tmp_path / "kept" / "tenuto"))
    assert tenuto.open(str(tmp_path / "tree")).root_of("") is None
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "from-bare"))
    bare = tenuto.open(str(tmp_path / "from-bare"))
    assert (bare.state, bare.root_of("")) == (str(tmp_path / "bare.git" / "tenuto"), None)


@pytest.mark.parametrize("text", [b"", b"nonsense", b"gitdir: /nowhere/at/all", b"gitdir: ../gone", b"\xff\xfe"])
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, text: bytes) -> None:
    """git says the same. Nothing is made where it points to."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / ".git").write_bytes(text)
    assert locate(str(tmp_path / "copy"))[2] == str(tmp_path / "copy" / ".tenuto")


def test_without_git_it_is_the_nearest_folder_that_has_one_else_this_one(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert locate(str(deep)) == (str(deep), "", str(deep / ".tenuto"))
    (tmp_path / ".tenuto").mkdir()
    assert locate(str(deep)) == (str(tmp_path), "", str(tmp_path / ".tenuto"))
    assert locate("/") == ("/", "", "/.tenuto")


def test_below_a_git_repository_no_journal_of_its_own_is_opened(tmp_path: Path) -> None:
    """It came with a clone, with runs and approvals that nobody here ever saw; git clean would take away ours."""
    root = repository(tmp_path / "mono")
    for below in (root / "pkg", root / "pkg" / "deeper"):
        (below / ".tenuto").mkdir(parents=True)
        (below / ".tenuto" / "journal.db").write_bytes(b"SQLite format 3\0")
        assert locate(str(below)) == (str(root), "", common_of(root))
    (root / "linked").mkdir()
    (root / "linked" / ".tenuto").symlink_to(tmp_path)
    assert locate(str(root / "linked")) == (str(root), "", common_of(root))


def test_a_link_in_the_place_of_a_journals_folder_is_refused(tmp_path: Path) -> None:
    """Through it something would be written elsewhere, or read from there."""
    (tmp_path / "outside").mkdir()
    for name, target in (("to-a-folder", tmp_path / "outside"), ("to-nothing", tmp_path / "gone")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".tenuto").symlink_to(target)
        with pytest.raises(Refused, match="is a link to"):
            tenuto.open(str(tmp_path / name))
    assert not list((tmp_path / "outside").iterdir()) and not (tmp_path / "gone").exists()


def test_a_path_that_is_no_utf_8_is_a_path(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    repository(root)
    git(root, "worktree", "add", "-q", "../tree")
    assert tenuto.open(str(tmp_path / "tree")).root_of("") == str(root)
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        tx.put_marker("a", "b")
    assert (root / ".git/tenuto/journal.db").exists()


def test_an_empty_folder_named_git_is_no_repository(tmp_path: Path) -> None:
    """Codex puts one into /tmp, for as long as its sandbox guards it: whoever works below it is not at home there."""
    (tmp_path / ".git").mkdir()
    below = tmp_path / "work"
    below.mkdir()
    assert locate(str(below)) == (str(below), "", str(below / ".tenuto"))
    assert locate(str(tmp_path)) == (str(tmp_path), "", str(tmp_path / ".tenuto"))
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert locate(str(below)) == (str(tmp_path), "", str(tmp_path / ".git" / "tenuto"))


@pytest.mark.parametrize("path", [".", "below"])
def test_a_folder_that_is_gone_is_named(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NotFound, match="the folder that this was started in is gone") as refused:
        locate(path)
    assert refused.value.code == "no-folder"
