"""Runs as files, and edits of these files as commands: one view for each dialect, by name.

A view is pure and lies below the workspace; what acts in its words is above it (tenuto.dialects). Each view is imported
when a run is first shown in it: a hook pays for the one that it needs.
"""

from __future__ import annotations

from tenuto.names import DIALECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.ports import View


class Views:
    """The views by name: a mapping that imports what is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, View] = {}

    def __getitem__(self, name: str, /) -> View:
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def get(self, name: str, /) -> View | None:
        """None where there is no such dialect: a newer Tenuto may know more of them."""
        return self[name] if name in DIALECTS else None

    def __contains__(self, name: object, /) -> bool:
        return name in DIALECTS

    def __iter__(self) -> Iterator[str]:
        return iter(DIALECTS)


def _load(name: str) -> View:
    match name:
        case "context":
            from tenuto.views import context

            return context
        case "flow":
            from tenuto.views import flow

            return flow
        case "feature_docs":
            from tenuto.views import feature_docs

            return feature_docs
        case "staged":
            from tenuto.views import staged

            return staged
        case "feature_state":
            from tenuto.views import feature_state

            return feature_state
    raise KeyError(name)
