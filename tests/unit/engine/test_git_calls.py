"""What the engine asks of git starts no program that the repository's own files name, and git works as ever."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

from tenuto.errors import Refused
from tenuto.files import git


class Repository:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        self.sign = folder / "it-ran"
        self.program = folder / "program.sh"
        folder.mkdir(exist_ok=True)
        self.program.write_text(f'#!/bin/sh\necho "$@" >> {self.sign}\ncat\n')
        self.program.chmod(0o755)
        self.root.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.root)], check=True)
        (self.root / "a.txt").write_text("one\n")
        (self.root / "b.txt").write_text("one\n")
        self("add", ".")
        self("commit", "-q", "-m", "begin")

    def __call__(self, *words: str) -> str:
        named = ("-c", "user.name=user", "-c", "user.email=user@localhost")
        done = subprocess.run(["git", *named, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout

    def everything_that_is_asked(self) -> None:
        """Each kind of call that the engine makes."""
        root, base = str(self.root), git.head(str(self.root))
        (self.root / "a.txt").write_text("two\n")
        (self.root / "new.txt").write_text("new\n")
        assert set(git.snapshot(root) or {}) >= {"a.txt", "new.txt"}
        git.ask(root, "diff", "--no-ext-diff", "--no-textconv", base)
        git.ask(root, "status", "--porcelain=v1", "-z")
        git.ask(root, "log", "--format=%H %s")
        assert git.commit(root, ["a.txt", "new.txt"], "second")
        git.tell(root, "branch", "other", base)
        git.tell(root, "switch", "--quiet", "other")
        (self.root / "a.txt").write_text("three\n")
        git.commit(root, ["a.txt"], "third")
        git.ask(root, *git.author(root), "merge", "--no-ff", "--no-verify", "--quiet", "-m", "both", "main")
        git.ask(root, "merge", "--abort")
        git.add_tree(root, f"{root}-tree", "-B", "tree", base)
        own = f"{self.root}/.git/worktrees/{self.root.name}-tree"
        assert (Path(f"{root}-tree") / ".git").read_text() == f"gitdir: {own}\n", "and not what ends with this process"
        assert git.branch(f"{root}-tree") == "tree"
        (Path(f"{root}-tree") / "b.txt").write_text("four\n")
        assert git.commit(f"{root}-tree", ["b.txt"], "in a tree")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


PLANTED = {
    "fsmonitor": [("core.fsmonitor", "PROGRAM")],
    "a filter": [("filter.x.clean", "PROGRAM"), ("filter.x.smudge", "PROGRAM"), ("filter.x.required", "true")],
    "a filter that stays": [("filter.x.process", "PROGRAM")],
    "text conversion": [("diff.x.textconv", "PROGRAM"), ("diff.x.command", "PROGRAM")],
    "an external diff": [("diff.external", "PROGRAM")],
    "a merge driver": [("merge.x.driver", "PROGRAM %O %A %B")],
    "hooks elsewhere": [("core.hooksPath", "FOLDER")],
    "hooks in the configuration": [("hook.x.command", "PROGRAM"), ("hook.x.event", "pre-commit")],
    "helpers": [("credential.helper", "PROGRAM"), ("core.askPass", "PROGRAM"), ("core.sshCommand", "PROGRAM")],
    "signatures": [("gpg.program", "PROGRAM"), ("commit.gpgSign", "true"), ("log.showSignature", "true")],
    "pagers and editors": [("core.pager", "PROGRAM"), ("pager.diff", "PROGRAM"), ("core.editor", "PROGRAM")],
    "aliases": [("alias.diff", "!PROGRAM"), ("alias.ls-files", "!PROGRAM")],
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("where", ["config", "included", "included on a condition", "config.worktree"])
def test_no_program_that_the_repository_names_is_started(repository: Repository, kind: str, where: str) -> None:
    hooks = repository.root.parent / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (hooks / name).write_bytes(repository.program.read_bytes())
        (hooks / name).chmod(0o755)
    (repository.root / ".git/info/attributes").write_text("* filter=x diff=x merge=x\n")
    target = repository.root / ".git/config"
    if where == "config.worktree":
        repository("config", "extensions.worktreeConfig", "true")
        target = repository.root / ".git/config.worktree"
    elif where != "config":
        target = repository.root.parent / "more.config"
        condition = "include.path" if where == "included" else f"includeIf.gitdir:{repository.root}/.path"
        repository("config", condition, str(target))
    for key, value in PLANTED[kind]:
        value = value.replace("PROGRAM", str(repository.program)).replace("FOLDER", str(hooks))
        subprocess.run(["git", "config", "--file", str(target), key, value], check=True)
    repository.sign.unlink(missing_ok=True)
    repository.everything_that_is_asked()
    assert not repository.sign.exists(), repository.sign.read_text()


def test_what_a_repository_planted_runs_when_a_person_asks_git(repository: Repository) -> None:
    """Otherwise the test above shows nothing."""
    repository("config", "core.fsmonitor", str(repository.program))
    repository("status")
    assert repository.sign.exists()


def test_hooks_in_their_usual_place_are_not_run(repository: Repository) -> None:
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change", "pre-merge-commit"):
        hook = repository.root / ".git/hooks" / name
        hook.write_bytes(repository.program.read_bytes())
        hook.chmod(0o755)
    repository.everything_that_is_asked()
    assert not repository.sign.exists()


def test_the_repository_is_as_git_itself_would_have_left_it(repository: Repository) -> None:
    repository.everything_that_is_asked()
    repository("fsck", "--strict")
    assert repository("branch", "--format=%(refname:short)").split() == ["main", "other", "tree"]
    assert "in a tree" in repository("log", "--format=%s", "tree")
    assert f"{repository.root}-tree" in repository("worktree", "list")
    assert repository("reflog", "main")
    assert repository("status", "--porcelain") == ""


def test_what_the_repository_is_stays_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of its hashes, refs that were packed, and who commits."""
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", "-b", "main", str(root)], check=True)
    for key, value in (("user.name", 'Ann "the\\one" B'), ("user.email", "ann@localhost")):
        subprocess.run(["git", "-C", str(root), "config", key, value], check=True)
    (root / "a").write_text("1\n")
    assert git.commit(str(root), ["a"], "begin")
    subprocess.run(["git", "-C", str(root), "pack-refs", "--all"], check=True)
    assert len(git.head(str(root))) == 64 and git.branch(str(root)) == "main"
    assert git.tell(str(root), "log", "-1", "--format=%an") == 'Ann "the\\one" B\n'
    git.tell(str(root), "branch", "gone", "main")
    subprocess.run(["git", "-C", str(root), "pack-refs", "--all"], check=True)
    git.tell(str(root), "branch", "-D", "gone")
    shown = subprocess.run(["git", "-C", str(root), "branch"], check=True, capture_output=True, text=True)
    assert shown.stdout == "* main\n"


def test_a_repository_whose_settings_cannot_be_read_answers_nothing(repository: Repository) -> None:
    (repository.root / ".git/config").write_text("[core\n")
    answer = git.ask(str(repository.root), "status")
    assert answer.status != 0 and ".git/config" in answer.errors


# ---- the user's own settings, which an agent of the same user can write


@pytest.mark.parametrize("kind", PLANTED)
def test_no_program_that_the_users_settings_name_is_started(
    repository: Repository, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "users.config"
    for key, value in PLANTED[kind]:
        value = value.replace("PROGRAM", str(repository.program)).replace("FOLDER", str(tmp_path))
        subprocess.run(["git", "config", "--file", str(settings), key, value], check=True)
    (repository.root / ".gitattributes").write_text("* diff=x merge=x\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    repository.everything_that_is_asked()
    assert not repository.sign.exists(), repository.sign.read_text()


def test_variables_of_the_caller_choose_neither_repository_nor_program(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    told = {
        "GIT_DIR": f"{other}/.git",
        "GIT_INDEX_FILE": f"{other}/index",
        "GIT_EXTERNAL_DIFF": str(repository.program),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(repository.program),
        "GIT_EXEC_PATH": str(tmp_path),
        "PAGER": str(repository.program),
        "EDITOR": str(repository.program),
    }
    known = repository("rev-parse", "HEAD").strip()
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert git.head(str(repository.root)) == known
    git.tell(str(repository.root), "diff", known)
    assert not repository.sign.exists()


def test_a_git_in_the_work_tree_is_not_the_one_that_is_started(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = repository.root / "bin" / "git"
    planted.parent.mkdir()
    planted.write_bytes(repository.program.read_bytes())
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:bin:.", prepend=":")
    monkeypatch.chdir(repository.root)
    assert git.head(str(repository.root))
    assert not repository.sign.exists()


def test_only_a_filter_in_the_users_own_list_is_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And without it nothing that it should have changed is committed, or checked out into a tree."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (repository.root / ".gitattributes").write_text("*.big filter=big\n")
    repository("add", ".")
    repository("commit", "-q", "-m", "attributes")
    repository("config", "filter.big.clean", str(repository.program))
    (repository.root / "a.big").write_text("large\n")
    with pytest.raises(Refused, match="filter 'big'") as refused:
        git.commit(str(repository.root), ["a.big"], "large")
    assert refused.value.code == "filter-not-allowed" and not repository.sign.exists()
    allowed = tmp_path / "settings" / "tenuto" / "git-filters"
    allowed.parent.mkdir(parents=True)
    allowed.write_text(f'[filter "big"]\n\tclean = "tr a-z A-Z"\n[core]\n\tfsmonitor = {repository.program}\n')
    assert git.commit(str(repository.root), ["a.big"], "large")
    assert repository("cat-file", "blob", "HEAD:a.big") == "LARGE\n"
    assert not repository.sign.exists()
    allowed.chmod(0o666)
    assert "others could have written it" in git.ask(str(repository.root), "status").errors


# ---- what a snapshot sees


def test_flags_of_the_index_hide_no_change(repository: Repository) -> None:
    root = str(repository.root)
    repository("update-index", "--assume-unchanged", "a.txt")
    repository("update-index", "--skip-worktree", "b.txt")
    assert git.snapshot(root) == {}
    (repository.root / "a.txt").write_text("hidden\n")
    (repository.root / "b.txt").unlink()
    assert set(git.snapshot(root) or {}) == {"a.txt", "b.txt"}
    assert git.commit(root, ["a.txt", "b.txt"], "seen")
    assert repository("show", "--name-status", "--format=", "HEAD").split() == ["M", "a.txt", "D", "b.txt"]


def test_another_work_tree_in_the_settings_changes_nothing(repository: Repository, tmp_path: Path) -> None:
    repository("config", "core.worktree", str(tmp_path))
    (repository.root / "a.txt").write_text("two\n")
    assert set(git.snapshot(str(repository.root)) or {}) == {"a.txt"}


def test_a_git_that_does_not_answer_is_no_empty_answer(repository: Repository) -> None:
    (repository.root / ".git/config").write_text("[core\n")
    with pytest.raises(Refused, match="does not say what changed"):
        git.snapshot(str(repository.root))


def test_a_sparse_checkout_lacks_files_and_that_is_no_change(repository: Repository) -> None:
    for name in ("in", "out"):
        (repository.root / name).mkdir()
        (repository.root / name / "file").write_text("one\n")
    repository("add", ".")
    repository("commit", "-q", "-m", "folders")
    repository("sparse-checkout", "set", "in")
    assert not (repository.root / "out").exists()
    assert git.snapshot(str(repository.root)) == {}
    (repository.root / "out").mkdir()
    (repository.root / "out" / "file").write_text("written where git does not look\n")
    assert set(git.snapshot(str(repository.root)) or {}) == {"out/file"}


def test_a_shallow_clone_is_read(repository: Repository, tmp_path: Path) -> None:
    (repository.root / "a.txt").write_text("two\n")
    repository("commit", "-q", "-a", "-m", "second")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repository.root}", str(clone)], check=True)
    (clone / "a.txt").write_text("three\n")
    assert set(git.snapshot(str(clone)) or {}) == {"a.txt"}
    assert git.commit(str(clone), ["a.txt"], "third")
    assert len(git.tell(str(clone), "log", "--format=%s").splitlines()) == 2


def test_changes_in_a_submodule_are_seen_and_its_settings_run_nothing(repository: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    repository(*add)
    repository("commit", "-q", "-m", "with a submodule")
    root = str(repository.root)
    before = git.snapshot(root) or {}
    subprocess.run(["git", "-C", f"{root}/sub", "config", "core.fsmonitor", str(repository.program)], check=True)
    (repository.root / "sub" / "a.txt").write_text("changed inside\n")
    (repository.root / "a.txt").write_text("two\n")
    assert git.differences(before, git.snapshot(root) or {}) == ["a.txt", "sub/a.txt"]
    assert git.commit(root, ["a.txt", "sub/a.txt"], "only what is ours")
    assert repository("show", "--name-only", "--format=", "HEAD").split() == ["a.txt"]
    assert git.head(f"{root}/sub") == inner("rev-parse", "HEAD").strip()
    assert not repository.sign.exists()


def test_changes_in_a_repository_inside_the_work_tree_are_seen(repository: Repository) -> None:
    subprocess.run(["git", "init", "-q", str(repository.root / "nested")], check=True)
    (repository.root / "nested" / "file").write_text("one\n")
    before = git.snapshot(str(repository.root)) or {}
    (repository.root / "nested" / "file").write_text("two\n")
    assert git.differences(before, git.snapshot(str(repository.root)) or {}) == ["nested/file"]


def test_a_linked_tree_of_a_bare_repository_and_a_git_file_are_read(repository: Repository, tmp_path: Path) -> None:
    bare, tree, moved = tmp_path / "bare.git", tmp_path / "linked", tmp_path / "moved.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(repository.root), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "worktree", "add", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(bare), "config", "core.fsmonitor", str(repository.program)], check=True)
    (tree / "a.txt").write_text("two\n")
    assert set(git.snapshot(str(tree)) or {}) == {"a.txt"}
    assert git.commit(str(tree), ["a.txt"], "in a tree of a bare one")
    assert git.snapshot(str(bare)) is None  # no work tree: nothing that could change
    (repository.root / ".git").rename(moved)
    (repository.root / ".git").write_text(f"gitdir: {moved}\n")
    (repository.root / "b.txt").write_text("two\n")
    assert set(git.snapshot(str(repository.root)) or {}) == {"b.txt"}
    assert not repository.sign.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_is_read_and_not_taken_for_unchanged(repository: Repository) -> None:
    for folder, _, names in os.walk(repository.root):
        for name in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(name, 1000, 1000)
    asked = subprocess.run(["git", "status"], cwd=repository.root, check=False, capture_output=True, text=True)
    assert "dubious ownership" in asked.stderr
    (repository.root / "a.txt").write_text("two\n")
    assert set(git.snapshot(str(repository.root)) or {}) == {"a.txt"}


def test_one_change_among_fifty_thousand_files_is_found(tmp_path: Path) -> None:
    root = tmp_path / "many"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    entries = "".join(f"M 644 :1 d{number % 100}/f{number}\n" for number in range(50_000))
    stream = f"blob\nmark :1\ndata 4\none\n\ncommit refs/heads/main\ncommitter a <a@b> 1 +0000\ndata 0\n{entries}\n"
    subprocess.run(["git", "-C", str(root), "fast-import", "--quiet"], input=stream.encode(), check=True)
    subprocess.run(["git", "-C", str(root), "reset", "-q", "--hard"], check=True)
    assert git.snapshot(str(root)) == {}
    (root / "d7/f7").write_text("two\n")
    subprocess.run(["git", "-C", str(root), "update-index", "--assume-unchanged", "d7/f7"], check=True)
    assert set(git.snapshot(str(root)) or {}) == {"d7/f7"}


def test_no_other_module_starts_git() -> None:
    """By its sources: a list that begins with the word git is a call of it. The demo is a user's own terminal."""
    package = Path(git.__file__).parents[1]
    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        if path.name not in ("git_start.py", "demo.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and node.elts[0].value == "git"
    ]
    assert found == []


def test_nothing_is_fetched_and_no_program_that_would_is_started(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone that lacks objects gets them from its remote, by ssh or a helper of PATH: an agent can name both."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("ssh", "git-remote-own"):
        (programs / name).write_bytes(repository.program.read_bytes())
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    lacking = repository("hash-object", "a.txt").strip()
    for key, value in (("extensions.partialClone", "origin"), ("remote.origin.promisor", "true")):
        repository("config", key, value)
    repository("config", "core.repositoryFormatVersion", "1")
    (repository.root / ".git/objects" / lacking[:2] / lacking[2:]).unlink()
    for url in ("ssh://nobody@localhost/x", "own::x", f"ext::{repository.program}", str(tmp_path)):
        repository("config", "remote.origin.url", url)
        assert git.ask(str(repository.root), "cat-file", "blob", lacking).status != 0
    assert not repository.sign.exists()
