"""Who does the work: agents by their spelling, which role gets which, and who takes over when one may not work.

claude                        Claude Code (claude.py)
codex                         Codex (codex.py)
acp:gemini                    any program that speaks the Agent Client Protocol (acp.py)
command:./my-agent --flag     any program
project                       a program of the project, where a pipeline has `command:` in an agent's place
scripted:answers.yaml         recorded answers, files and faults (for rehearsals and tests)
auto                          the first of claude, codex, gemini, opencode and copilot that is installed

An agent is a class that is made with the words behind its name. What the engine asks of it is ports.Agent.

Who plays a role: what the pipeline's seat says (program:), then --role-agent, then the settings (roles:), then the
role's front matter (agent:), then the run's own agent.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, TypedDict

from tenuto.agents.acp import AcpAgent
from tenuto.agents.claude import ClaudeAgent
from tenuto.agents.codex import CodexAgent
from tenuto.agents.command import CommandAgent, ProjectCommand, agent_of
from tenuto.agents.scripted import ScriptedAgent
from tenuto.core.pipeline.values import did_you_mean
from tenuto.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenuto.core.pipeline.records import Role, Seat
    from tenuto.ports import Agent

KINDS: dict[str, type[Agent]] = {
    "claude": ClaudeAgent,
    "codex": CodexAgent,
    "acp": AcpAgent,
    "command": CommandAgent,
    "scripted": ScriptedAgent,
}
INSTALLED = {
    "claude": "claude",
    "codex": "codex",
    "gemini": "acp:gemini",
    "opencode": "acp:opencode",
    "copilot": "acp:copilot",
}
"""Programs that `auto` looks for, in this order, and the agent that each of them is."""

PROJECT: Agent = ProjectCommand()
NOBODY = "command:true"
"""For a roster that dispatches nothing: the agents of attempts are known by their recorded names."""


class Choice(TypedDict, total=False):
    """What was asked for on the command line, for the run to remember."""

    agent: str
    roles: dict[str, str]


class Roster:
    """`default` for every role that `by_role` and its own front matter do not name; `fallback`: who takes over from
    whom."""

    def __init__(
        self, default: str, by_role: dict[str, str] | None = None, fallback: dict[str, str] | None = None
    ) -> None:
        # Looked for once: a run does not change hands half-way.
        self.default = installed_agent() if default == "auto" else default
        self.by_role = by_role or {}
        self.fallback = fallback or {}
        self.elsewhere = False  # agents are started as another user, who may have other programs
        self.choice: Choice = {}
        self._agents: dict[str, Agent] = {}
        for spelling in (self.default, *self.by_role.values(), *self.fallback.values()):
            if self.named(spelling) is PROJECT:
                message, hint = f"'{spelling}' plays no role", "a pipeline says `command:` in an agent's place"
                raise BadInput("unknown-agent", message, hint)

    def choose(self, seat: Seat, role: Role | None = None, parked: Mapping[str, str] | None = None) -> Agent:
        """The first that may work now; the one whose place it is where none may."""
        agents = self.candidates(seat, role)
        return next((agent for agent in agents if agent.name not in (parked or {})), agents[0])

    def candidates(self, seat: Seat, role: Role | None = None) -> list[Agent]:
        """Whose place it is, then those who take over, one after the other."""
        if seat["command"] is not None:
            return [PROJECT]
        spelling = seat["program"] or self.by_role.get(seat["role"]) or agent_of(role) or self.default
        return list(self._line(spelling))

    def _line(self, spelling: str) -> Iterator[Agent]:
        seen: list[str] = []
        while spelling and spelling not in seen:
            seen.append(spelling)
            yield self.named(spelling)
            spelling = self.fallback.get(spelling) or self.fallback.get(spelling.partition(":")[0], "")

    def check(self, seat: Seat, role: Role | None) -> None:
        agents = self.candidates(seat, role)
        for agent in agents:
            agent.check(role)
        first = agents[0]
        program = seat["command"]["run"][0] if seat["command"] else first.program(role)
        # A path below the work directory is looked for where the attempt works; another user may see other programs.
        if not self.elsewhere and ("/" not in program or program.startswith("/")) and not shutil.which(program):
            where = f"there is no program {program}" if "/" in program else f"{program} is not on the PATH"
            hint = "install it, give its path, or choose another agent; tenuto doctor shows which there are"
            raise BadInput("no-program", f"{where}: {first.name} cannot play {seat['role']}", hint, agent=first.name)

    def named(self, spelling: str) -> Agent:
        spelling = installed_agent() if spelling == "auto" else spelling
        if spelling == PROJECT.name:
            return PROJECT
        if spelling not in self._agents:
            kind, _, words = spelling.partition(":")
            if kind not in KINDS:
                raise BadInput("unknown-agent", f"there is no agent '{spelling}'", did_you_mean(kind, ["auto", *KINDS]))
            self._agents[spelling] = KINDS[kind](words)
        return self._agents[spelling]


def installed_agent() -> str:
    """The agent that `auto` is on this machine."""
    for program, spelling in INSTALLED.items():
        if shutil.which(program):
            return spelling
    names = ", ".join(INSTALLED)
    raise BadInput(
        "no-agent",
        f"no agent program is installed: none of {names} is on the PATH",
        "install one, or --agent 'command:./my-agent'",
    )


def narrate(agent: str, line: str) -> list[str]:
    """A line that this agent's program printed, as lines that a person can read while it works.

    `agent`: as the journal has it. Its own words stand as they are, what it does stands in square brackets.
    """
    kind = KINDS.get(agent.partition(":")[0])
    return [line] if kind is None else kind.narrate(line)
