"""Every file that can be adopted, at several moments of its life, taken up by every pipeline that ships.

Each pair either runs to its first rest or is refused by a code. None ends in an exception.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tenuto
from tenuto.core.records.run import Run
from tenuto.dialects import dialect_named
from tenuto.encoding import loads_strict
from tenuto.entrypoints.cli.setup import ADOPTERS
from tenuto.errors import NotFound, TenutoError
from tenuto.names import DIALECTS
from tests.acceptance.rehearsing import Stage

PIPELINES = sorted(path.stem for path in (Path(tenuto.__file__).parent / "pipelines").glob("*.yaml"))
RESTS = ("waiting_gate", "paused", "stopped", "completed", "poc-complete")
REFUSED = ("visit-open", "not-poc", "not-poc-complete")
TASK = "docs/orchestrator/context/tasks/login"


def begun_context(repository: tenuto.Repository) -> None:
    repository.context.init("Login")
    repository.context.start_phase("architect")


def going_context(repository: tenuto.Repository) -> None:
    begun_context(repository)
    repository.context.store("architect", "# Design\n")
    repository.context.end_phase("architect", "success")


def begun_flow(repository: tenuto.Repository) -> None:
    repository.flow.initialize_workflow("LOGIN-1", context_summary="Sign in")


def going_flow(repository: tenuto.Repository) -> None:
    begun_flow(repository)
    repository.flow.update_delegation(agent="research_agent", task="ticket_analysis")
    repository.flow.update_completion(agent="research_agent", output_summary="known")
    repository.flow.update_user_checkpoint(approved=True, phase="understanding", user_feedback="good")


def begun_staged(repository: tenuto.Repository) -> None:
    repository.staged.init("Login", pipelineProfile="minimal")


def going_staged(repository: tenuto.Repository) -> None:
    begun_staged(repository)
    repository.staged.record_output("0", content="# Explored\n")
    repository.staged.advance()


def stopped_staged(repository: tenuto.Repository) -> None:
    going_staged(repository)
    repository.staged.stop()


def begun_feature(repository: tenuto.Repository) -> None:
    repository.feature_state.start("Login", "Sign in")


def going_feature(repository: tenuto.Repository) -> None:
    repository.feature_state.start("Login", "Sign in", skip=["discovery"])
    repository.feature_state.phase("spec")
    repository.feature_state.plan(["Form", "Session"])
    repository.feature_state.phase("plan")


def approved_feature(repository: tenuto.Repository) -> None:
    repository.feature_state.start("Login", "Sign in", skip=["discovery"])
    for phase in ("spec", "plan"):
        repository.feature_state.phase(phase)
    repository.feature_state.approve("ada")
    repository.feature_state.phase("implementation")


MOMENTS: dict[str, tuple[str, list[Callable[[tenuto.Repository], None]]]] = {
    "context": (f"{TASK}/manifest.json", [begun_context, going_context]),
    "flow": (".ai-workspace/LOGIN-1/flow-state.json", [begun_flow, going_flow]),
    "staged": (".agents/tmp/state.json", [begun_staged, going_staged, stopped_staged]),
    "feature_state": (".feature-state.json", [begun_feature, going_feature, approved_feature]),
}
CASES = [(dialect, moment) for dialect, (_, moments) in MOMENTS.items() for moment in moments]


def test_every_dialect_with_files_to_adopt_is_here() -> None:
    """feature_docs has documents, and no state file that tells of a run."""
    assert {adopter.dialect for adopter in ADOPTERS} == set(MOMENTS) == set(DIALECTS) - {"feature_docs"}


class Adopted(Stage):
    """A dialect that is not at home in the pipeline shows what it has words for; its files can be read."""

    def look(self, run: Run, fresh: object) -> None:
        with self.workspace.journal.read() as reader:
            repo = reader.load_repo()
        for name in run["dialects"]:
            for path in self.workspace.views[name].paths(run, repo):
                text = (self.root / path).read_bytes()
                assert loads_strict(text) if path.endswith(".json") else text


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(("dialect", "moment"), CASES, ids=[moment.__name__ for _, moment in CASES])
def test_it_is_taken_up_or_refused_by_name(
    tmp_path: Path, dialect: str, moment: Callable[[tenuto.Repository], None], pipeline: str
) -> None:
    path, _ = MOMENTS[dialect]
    (tmp_path / "elsewhere").mkdir()
    moment(tenuto.open(str(tmp_path / "elsewhere")))
    stage = Adopted(tmp_path)
    shutil.copytree((tmp_path / "elsewhere" / path).parent, (stage.root / path).parent, dirs_exist_ok=True)
    with stage.workspace.turn() as turn:
        run = dialect_named(dialect).adopt(turn, path, (stage.root / path).read_bytes())
    stage.answer([], run)
    try:
        rested = stage.take_over(run, pipeline, in_advance="", limits={"attempts": 2})
    except TenutoError as refusal:
        assert refusal.code in REFUSED
    else:
        assert rested["pipeline"]["name"] == pipeline and rested["driver"] == "engine"
        assert rested["status"] in RESTS and not rested["in_flight"]


def test_a_task_that_only_lies_in_its_folder_is_found_by_its_name(tmp_path: Path) -> None:
    """The engine takes it up without `tenuto adopt`: in a process, too, that has looked at no other run before."""
    (tmp_path / "elsewhere").mkdir()
    going_context(tenuto.open(str(tmp_path / "elsewhere")))
    stage = Adopted(tmp_path)
    shutil.copytree(tmp_path / "elsewhere" / TASK, stage.root / TASK)
    rested = stage.take_over("login", "orchestrate", in_advance="")
    assert rested["id"] == "login" and rested["status"] == "waiting_gate"
    with pytest.raises(NotFound, match="there is no run 'logout'"):
        stage.take_over("logout", "orchestrate")
