"""`tenuto.open(path)`: one opened repository, with the commands of its state managers.

    repository = tenuto.open(".")
    repository.context.init("Dark mode")

Each property loads its dialect when it is first used. Code inside Tenuto makes the command objects itself.
"""

from __future__ import annotations

from tenuto.workspace.workspace import Workspace, open_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.dialects.context.commands import Context
    from tenuto.dialects.feature import FeatureCommands
    from tenuto.dialects.flow import FlowCommands
    from tenuto.dialects.staged import StagedOperations
    from tenuto.ports import Clock


class Repository(Workspace):
    # The command objects are not kept: they hold this object, and the two would hold each other, and the journal's
    # files, until a collection.

    @property
    def context(self) -> Context:
        from tenuto.dialects.context.commands import Context

        return Context(self)

    @property
    def flow(self) -> FlowCommands:
        from tenuto.dialects.flow import FlowCommands

        return FlowCommands(self)

    @property
    def staged(self) -> StagedOperations:
        from tenuto.dialects.staged import StagedOperations

        return StagedOperations(self)

    @property
    def feature_state(self) -> FeatureCommands:
        from tenuto.dialects.feature import FeatureCommands

        return FeatureCommands(self)


def open_repository(path: str = ".", *, clock: Clock | None = None, by: str = "user") -> Repository:
    """The repository that `path` lies in. Nothing is created until something is written."""
    return open_as(Repository, path, clock, by)
