"""One closed set of dialects: each has a view below the workspace, a part that acts above it, and no more than that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tenuto
from tenuto.core.parts import new_run
from tenuto.dialects import dialect_named, dialects_of
from tenuto.dialects.dialect import Dialect
from tenuto.errors import Refused
from tenuto.names import DIALECTS
from tenuto.views import Views
from tenuto.workspace.objects import Surroundings


@pytest.mark.parametrize("name", DIALECTS)
def test_each_name_has_a_view_and_a_dialect_of_that_name(name: str) -> None:
    assert Views()[name].name == dialect_named(name).name == name
    assert name in Views() and Views().get(name) is Views()[name]


def test_another_name_has_neither() -> None:
    """A journal that a newer Tenuto wrote may name one: its runs are read, and not shown there."""
    assert "newer" not in Views() and Views().get("newer") is None
    with pytest.raises(KeyError):
        Views()["newer"]
    with pytest.raises(KeyError):
        dialect_named("newer")
    run = new_run()
    run["dialects"] = {"newer": {}, "flow": {"tree": ""}}
    assert [dialect.name for dialect in dialects_of(run)] == ["flow"]


def test_a_dialect_that_says_nothing_asks_for_nothing(tmp_path: Path) -> None:
    """Every default is harmless: a new dialect says only what is special about it."""
    silent, repository = Dialect(), tenuto.open(str(tmp_path))
    with repository.turn() as turn:
        assert silent.find(turn, "login") is None
        silent.opened(turn, "login")
        with pytest.raises(Refused) as refusal:
            silent.adopt(turn, "state.json", b"{}")
        assert refusal.value.code == "not-adoptable"
    assert silent.artifact_name("plan.md") is None
    with repository.journal.read() as reader:
        assert reader.runs() == []


def test_the_public_object_has_the_commands_of_each_state_manager(tmp_path: Path) -> None:
    repository = tenuto.open(str(tmp_path))
    assert isinstance(repository, tenuto.Repository) and isinstance(repository, tenuto.Workspace)
    assert repository.staged.read() is None
    repository.context.init("Login")
    repository.flow.initialize_workflow("LOGIN-1")
    repository.feature_state.start("Login form")
    with repository.journal.read() as reader:
        assert {card["id"] for card in reader.runs()} == {"login", "login-1", "login-form"}
    with pytest.raises(AttributeError):
        repository.feature_docs  # type: ignore[attr-defined]  # noqa: B018


def test_a_view_sees_plain_files_of_its_work_tree_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "plan.md").write_text("# Plan\n")
    (tmp_path / "secret").write_text("no")
    (tree / "link").symlink_to(tmp_path / "secret")
    around = Surroundings(str(tree))
    assert around.file("plan.md") == b"# Plan\n"
    for path in ("absent", "link", "../secret", str(tmp_path / "secret"), "."):
        assert around.file(path) is None, path
    assert Surroundings(None).file("plan.md") is None
    assert around.began(os.getpid()) == around.began(str(os.getpid())) is not None
    assert around.began("nobody") is None and around.began("../self") is None
