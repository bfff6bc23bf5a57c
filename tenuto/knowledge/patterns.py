"""Regular expressions that are compiled when they are first tried.

Compiling costs more than matching a short text, and most texts need few of the patterns that reading
agents' Markdown takes: a process that retrieves once should not pay for all of them.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Uncompiled:
    """Stands for a compiled pattern and becomes one, method by method, as they are asked for."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        # Reached once for each method: what is found is kept on the instance.
        found = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, found)
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return _Uncompiled(text, flags)  # type: ignore[return-value]
