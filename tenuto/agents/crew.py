"""Who does the work: agents by their spelling, which role gets which, and who takes over when one may not work.

claude                        Claude Code (claude.py)
codex                         Codex (codex.py)
acp:gemini                    any program that speaks the Agent Client Protocol (acp.py)
command:./my-agent --flag     any program
scripted:answers.yaml         recorded answers, files and faults (for rehearsals and tests)
auto                          the first of claude, codex, gemini, opencode and copilot that is installed

An agent is a class, made with the words behind its name:

    name          its spelling, as the journal keeps it
    reports       the units that it tells the use of (tokens, micro_usd)
    environment   patterns of the variables that its program needs; `barred`: which of these not
    program(role) what it starts
    check(role)   refuses a role whose front matter asks for what it cannot do
    can_go_on(earlier)   may it take up what it said there? Agents without this start over
    launch(job)   {argv, stdin, env}: what to start. job.earlier is what it printed when it was interrupted ("": a fresh start),
                  job.going_on() the prompt for going on, job.start the how-many-th start of the attempt
    read(job, result, said)   what came of it: verdict, summary, transient, usage, and where it is known
                  reply (the agent's last words, where `said` is a stream), parked_until, limited (a limit without a time)

Who plays a role: what the pipeline's seat says (program:), then --role-agent, then the settings (roles:), then the role's front
matter (agent:), then the run's own agent.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from tenuto.agents.options import agent_of
from tenuto.core.definition.values import did_you_mean
from tenuto.errors import BadInput

KINDS = {
    "claude": ("tenuto.agents.claude", "ClaudeAgent"),
    "codex": ("tenuto.agents.codex", "CodexAgent"),
    "acp": ("tenuto.agents.acp", "AcpAgent"),
    "command": ("tenuto.agents.command", "CommandAgent"),
    "scripted": ("tenuto.agents.scripted", "ScriptedAgent"),
}
INSTALLED = {"claude": "claude", "codex": "codex", "gemini": "acp:gemini", "opencode": "acp:opencode", "copilot": "acp:copilot"}
"""Programs that `auto` looks for, in this order, and the agent that each of them is."""


class Crew:
    """`default` for every role that `by_role` and its own front matter do not name; `fallback`: who takes over from whom."""

    def __init__(self, default: str, by_role: dict[str, str] | None = None, fallback: dict[str, str] | None = None) -> None:
        self.default = found() if default == "auto" else default  # looked for once: a run does not change hands half-way
        self.by_role = by_role or {}
        self.fallback = fallback or {}
        self.elsewhere = False  # agents are started as another user, who may have other programs
        self.said: dict[str, Any] = {}  # what of this was asked for on the command line, for the run to remember
        self._made: dict[str, Any] = {}
        for spelling in (self.default, *self.by_role.values(), *self.fallback.values()):
            self.named(spelling)

    def choose(self, seat: Any, role: Any = None, parked: Mapping[str, str] | None = None) -> Any:
        """The first who may work now; the one whose place it is where nobody may."""
        able = self.candidates(seat, role)
        return next((agent for agent in able if agent.name not in (parked or {})), able[0])

    def candidates(self, seat: Any, role: Any = None) -> list[Any]:
        """Whose place it is, then those who take over, one after the other."""
        spelling = seat["program"] or self.by_role.get(seat["role"]) or agent_of(role) or self.default
        return list(self._line(spelling))

    def _line(self, spelling: str) -> Iterator[Any]:
        seen: list[str] = []
        while spelling and spelling not in seen:
            seen.append(spelling)
            yield self.named(spelling)
            spelling = self.fallback.get(spelling) or self.fallback.get(spelling.partition(":")[0], "")

    def check(self, seat: Any, role: Any) -> None:
        able = self.candidates(seat, role)
        for agent in able:
            if hasattr(agent, "check"):
                agent.check(role)
        name = able[0].program(role)
        # A path below the work directory is looked for where the attempt works; another user may see other programs.
        if not self.elsewhere and ("/" not in name or name.startswith("/")) and not shutil.which(name):
            where = f"there is no program {name}" if "/" in name else f"{name} is not on the PATH"
            hint = "install it, give its path, or choose another agent; tenuto doctor shows which there are"
            raise BadInput("no-program", f"{where}: {able[0].name} cannot play {seat['role']}", hint, agent=able[0].name)

    def named(self, spelling: str) -> Any:
        spelling = found() if spelling == "auto" else spelling
        if spelling not in self._made:
            kind, _, rest = spelling.partition(":")
            if kind not in KINDS:
                raise BadInput("unknown-agent", f"there is no agent '{spelling}'", did_you_mean(kind, ["auto", *KINDS]))
            module, name = KINDS[kind]
            self._made[spelling] = getattr(__import__(module, fromlist=[name]), name)(rest)
        return self._made[spelling]


def found() -> str:
    """The agent that `auto` is on this machine."""
    for program, spelling in INSTALLED.items():
        if shutil.which(program):
            return spelling
    names = ", ".join(INSTALLED)
    raise BadInput("no-agent", f"no agent program is installed: none of {names} is on the PATH", "install one, or --agent 'command:./my-agent'")
