"""The state managers that people and models know, each in its own words: a table of them by name.

What their files show lies below the workspace (tenuto.views). Here is what acts: their commands, the adoption of their
files, and what the engine asks of them (tenuto.dialects.dialect).
"""

from __future__ import annotations

from tenuto.names import DIALECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.dialects.dialect import Dialect


def dialect_named(name: str) -> Dialect:
    match name:
        case "context":
            from tenuto.dialects.context.dialect import ContextDialect

            return ContextDialect()
        case "flow":
            from tenuto.dialects.flow import FlowDialect

            return FlowDialect()
        case "feature_docs":
            from tenuto.dialects.feature import FeatureDocsDialect

            return FeatureDocsDialect()
        case "staged":
            from tenuto.dialects.staged import StagedDialect

            return StagedDialect()
        case "feature_state":
            from tenuto.dialects.feature import FeatureStateDialect

            return FeatureStateDialect()
    raise KeyError(name)


def dialects_of(run: Run) -> list[Dialect]:
    """Those that the run is shown in, in the order in which it came to be. A newer Tenuto may know more of them."""
    return [dialect_named(name) for name in run["dialects"] if name in DIALECTS]
