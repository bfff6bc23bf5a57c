"""What a dialect wants of the engine's work: names for outputs, a look at them, actions of its own.

A dialect stands above the turn and acts; what its files show is its view (tenuto.views, ports.View). Every method has
a default that asks for nothing, so that a dialect says only what is special about it. `tenuto.dialects.dialect_named`
finds one by its name.
"""

from __future__ import annotations

from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NotRequired, TypedDict

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Attempt, Evidence, Json, Run, ScheduledStep
    from tenuto.workspace.workspace import Turn

    class Beginning(TypedDict):
        """What the files of a new run need to know from the start."""

        place: Json  # where it is shown: tree, folder, ...
        settings: NotRequired[Json]
        order: NotRequired[Literal["any", "open", "strict"]]
        schedule: NotRequired[list[ScheduledStep]]
        evidence: NotRequired[dict[str, Evidence]]


class Dialect:
    name: str

    # -- runs that exist as files

    def adopt(self, turn: Turn, path: str, body: bytes) -> str:
        """Make a run of a file that was there before Tenuto. Returns the run's id, or refuses the file by name."""
        raise Refused("not-adoptable", f"{path} is no file that can be adopted", path=path)

    def find(self, turn: Turn, name: str) -> Run | None:
        """A run of this name that only lies in a folder so far."""
        return None

    # -- runs that the engine drives

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        """Where the run is shown. `title`: as its user calls it; "" where it was shown elsewhere before."""
        return {"place": {"tree": tree}}

    def opened(self, turn: Turn, run: str) -> None:
        """The run has begun to be shown: own its file, make it the current one, or refuse."""

    def engaged(self, turn: Turn, run: Run, pipeline: Pipeline) -> None:
        """The engine takes over a run that was led by hand."""

    def artifact_name(self, path: str) -> str | None:
        """This dialect's name for a document of the run; None: it has no names of its own."""
        return None

    def collected(self, turn: Turn, run: Run, attempt: str, artifacts: list[str], reply: str) -> None:
        """An attempt has handed over these artifacts, and said this."""

    def commit_step(self, run: Run, attempt: Attempt) -> str | None:
        """What a commit of this attempt is recorded under; None: under its step."""
        return None

    def act(self, turn: Turn, run: Run, pipeline: Pipeline, action: str) -> Json | None:
        """Carry out an action that is this dialect's own business. Returns its details; None: it is not."""
        return None
