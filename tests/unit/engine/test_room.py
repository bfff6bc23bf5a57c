"""An agent that may make files, and neither folders nor commands that make them, can deliver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.trusting import trust
from tests.unit.engine.conftest import reopen

Say = Callable[..., Any]
DEEP = (
    "name: deep\ndocuments: docs/{slug}\nsteps:\n  - {id: a, agent: {role: designer, out: one/two/design.md, "
    "optional: 'parts/*.md'}}\n"
)
AGENT = 'command:sh -c "echo x > $TENUTO_WORKDIR/docs/add-it/one/two/design.md && echo DONE: made"'


def test_the_folder_of_an_output_is_there_before_the_agent(say: Say, repository: Path) -> None:
    """Copilot CLI makes no folder for a file, and asks before it runs mkdir."""
    (repository / ".tenuto/pipelines/deep.yaml").write_text(DEEP)
    told = say("run", "Add it", "--pipeline", "deep", "--agent", AGENT)
    assert told.status == 0, told.err
    assert reopen(repository).load("add-it")["status"] == "completed"


def test_also_for_a_session_that_leads_the_run(say: Say, repository: Path) -> None:
    (repository / ".tenuto/pipelines/deep.yaml").write_text(DEEP)
    say("run", "Add it", "--pipeline", "deep", "--start-only")
    say("next")
    assert (repository / "docs/add-it/one/two").is_dir()


def test_a_file_in_the_folders_place_is_found_out_by_the_receipt(say: Say, repository: Path) -> None:
    (repository / ".tenuto/pipelines/deep.yaml").write_text(DEEP)
    (repository / "docs").write_text("not a folder")
    told = say("run", "Add it", "--pipeline", "deep", "--agent", "command:echo DONE: made")
    assert told.status == 1 and "does not exist" in told.out, told.out + told.err


def test_nothing_is_made_for_agents_that_are_another_user(say: Say, repository: Path) -> None:
    """A folder of ours would keep them out."""
    (repository / ".tenuto/pipelines/deep.yaml").write_text(DEEP)
    (repository / ".tenuto/config.yaml").write_text("isolation: [env]\n")
    trust(repository)
    say("run", "Add it", "--pipeline", "deep", "--agent", "command:echo DONE: made")
    assert not (repository / "docs/add-it/one").exists()


def test_nothing_is_made_where_a_link_leads_out(say: Say, repository: Path, tmp_path: Path) -> None:
    (repository / ".tenuto/pipelines/deep.yaml").write_text(DEEP)
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository / "docs").symlink_to(outside)
    say("run", "Add it", "--pipeline", "deep", "--agent", "command:echo DONE: made")
    assert not list(outside.iterdir())
