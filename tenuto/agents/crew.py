"""Who does the work: agents by their spelling, and which role gets which.

command:./my-agent --flag     any program
scripted:answers.yaml         recorded answers, files and faults (for rehearsals and tests)
"""

from __future__ import annotations

from typing import Any

from tenuto.errors import BadInput

KINDS = {
    "command": ("tenuto.agents.command", "CommandAgent"),
    "scripted": ("tenuto.agents.scripted", "ScriptedAgent"),
}


class Crew:
    """`default` for every role that `by_role` does not name."""

    def __init__(self, default: str, by_role: dict[str, str] | None = None) -> None:
        self.default = default
        self.by_role = by_role or {}
        self._made: dict[str, Any] = {}
        for spelling in (default, *self.by_role.values()):
            self.named(spelling)

    def choose(self, seat: Any) -> Any:
        return self.named(seat["program"] or self.by_role.get(seat["role"], self.default))

    def named(self, spelling: str) -> Any:
        if spelling not in self._made:
            kind, _, rest = spelling.partition(":")
            if kind not in KINDS:
                raise BadInput(
                    "unknown-agent",
                    f"there is no agent '{spelling}'",
                    f"known: {', '.join(name + ':...' for name in KINDS)}",
                )
            module, name = KINDS[kind]
            self._made[spelling] = getattr(__import__(module, fromlist=[name]), name)(rest)
        return self._made[spelling]
