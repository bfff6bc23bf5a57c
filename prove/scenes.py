"""The product as users start it: for each dialect, a beginning and the commands that write.

A scene is what the provers play: `setup` once, then sequences over `commands`. A command is its
argument list, with `STDIN` bytes as the last element where it reads standard input.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from prove.frame import ROOT, environment, python

Command = tuple[str, ...]


class Scene(NamedTuple):
    name: str
    setup: tuple[Command, ...]
    commands: tuple[Command, ...]


PIPELINE = """\
name: prove
shown_as: feature_docs
steps:
  - {id: first, agent: {role: implementer}}
  - {id: second, agent: {role: implementer}}
"""

_STOPPED = (
    '{"agentName": "spec-writer", "completedPhase": "spec", "nextPhase": "plan", "filesCreated": [], '
    '"filesModified": [], "timestamp": "2026-01-02T03:04:05Z"}'
)
_UPDATE = '{"type": "task_update", "taskId": 1, "newStatus": "completed", "timestamp": "2026-01-02T03:04:05Z"}'

SCENES = (
    Scene(
        "context",
        (("context", "INIT task: Dark mode"),),
        (
            ("context", "START_PHASE phase: spec"),
            (
                "context",
                "STORE phase: spec content: # Dark mode\n\nAll of it, and a switch.\n"
                + "Colours, fonts, pictures. " * 200,
            ),
            ("context", "END_PHASE phase: spec status: success"),
            ("context", "PAUSE reason: lunch recommendations: eat, rest"),
            ("context", "RESUME decision: retry"),
            ("context", "INIT task: Light mode"),
        ),
    ),
    Scene(
        "flow",
        (("flow", "initialize_workflow", "T-1", "--context_summary", "Sign in"),),
        (
            ("flow", "update_delegation", "T-1", "--agent", "deep_research", "--task", "ticket_analysis"),
            ("flow", "update_completion", "T-1", "--agent", "deep_research", "--output_summary", "Found it"),
            ("flow", "update_user_checkpoint", "T-1", "--phase", "understanding", "--approved", "true"),
            ("flow", "resume_workflow", "T-1"),
            ("flow", "initialize_workflow", "T-2"),
        ),
    ),
    Scene(
        "staged",
        (("staged", "init", "--task", "Dark mode", "--pipelineProfile", "minimal"),),
        (
            ("staged", "update", '{"coverageThreshold": 80, "extra": {"mine": {"a": [1, 2]}}}'),
            ("staged", "record-output", "0", "--content", "# What there is\n"),
            ("staged", "advance"),
            ("staged", "stop", "--reason", "lunch"),
            ("staged", "resume"),
            ("staged", "record-failure", '{"phase": "2.1", "error": "no answer", "context": {}}'),
        ),
    ),
    Scene(
        "feature",
        (("feature", "start", "OAuth login", "Sign in with a provider"),),
        (
            ("feature", "answer", "problem", "Passwords are forgotten"),
            ("feature", "done", "discovery"),
            ("feature", "done", "spec"),
            ("feature", "task", "add", "Provider", "Token storage"),
            ("feature", "task", "1", "completed"),
            ("hook", "SubagentStop", "STDIN", _STOPPED),
        ),
    ),
    Scene(
        "feature_docs",
        (("run", "Add dark mode", "--pipeline", "prove", "--start-only", "--dirty", "stash"),),
        (
            ("next", "--json"),
            ("report", "add-dark-mode", "first-1-implementer-1", "--verdict", "DONE", "--summary", "written"),
            ("pause", "--reason", "lunch"),
        ),
    ),
    Scene(
        "large",  # artifacts that lie beside the database
        (("context", "INIT task: Dark mode"),),
        (
            (
                "context",
                "-",
                "STDIN",
                "STORE phase: spec content: # All of it " + "and colours, fonts, pictures, " * 10_000,
            ),
            ("context", "-", "STDIN", "STORE phase: spec content: # Less of it " + "and no pictures, " * 16_000),
            ("context", "START_PHASE phase: spec"),
        ),
    ),
    Scene(
        "mixed",
        (),
        (
            ("context", "INIT task: Dark mode"),
            ("flow", "initialize_workflow", "T-1"),
            ("staged", "init", "--task", "Dark mode", "--pipelineProfile", "minimal"),
            ("feature", "start", "OAuth login", "--skip", "discovery"),
            ("hook", "task_update", "STDIN", _UPDATE),
        ),
    ),
)
BY_NAME = {scene.name: scene for scene in SCENES}


def words(command: Command) -> tuple[list[str], bytes]:
    """The process to start, and what it reads."""
    if "STDIN" in command:
        at = command.index("STDIN")
        return python("-m", "tenuto", *command[:at]), command[at + 1].encode()
    return python("-m", "tenuto", *command), b""


def play(repository: Path, command: Command) -> subprocess.CompletedProcess[bytes]:
    arguments, text = words(command)
    return subprocess.run(arguments, cwd=repository, input=text, capture_output=True, check=False, env=environment())


def begin(repository: Path, scene: Scene) -> None:
    """A git repository with the scene's setup done; every command of it must have been answered with success."""
    repository.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "--template=", str(repository)], check=True)
    if scene.name == "feature_docs":
        (repository / ".tenuto" / "pipelines").mkdir(parents=True)
        (repository / ".tenuto" / "pipelines" / "prove.yaml").write_text(PIPELINE)
        commit = ["git", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "begin"]
        subprocess.run(["git", "add", "."], cwd=repository, check=True)
        subprocess.run(commit, cwd=repository, check=True)
    for command in scene.setup:
        done = play(repository, command)
        if done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.stdout.decode()}{done.stderr.decode()}")


__all__ = ["BY_NAME", "PIPELINE", "ROOT", "SCENES", "Command", "Scene", "begin", "play", "words"]
