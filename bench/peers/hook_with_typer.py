"""The same update of a state file as a SubagentStop hook makes, the way a program of typer and pydantic does it: one
lock, the file read and checked, the new one flushed and renamed, its folder flushed.
"""

import fcntl
import os
import sys
from pathlib import Path

import typer
from pydantic import BaseModel, ConfigDict


class Payload(BaseModel):
    agentName: str
    completedPhase: str
    nextPhase: str
    timestamp: str


class Feature(BaseModel):
    model_config = ConfigDict(extra="allow")
    phase: str
    updatedAt: str


class State(BaseModel):
    model_config = ConfigDict(extra="allow")
    currentFeature: Feature
    phases: dict[str, str]


def update(file: Path) -> None:
    payload = Payload.model_validate_json(sys.stdin.buffer.read())
    with open(f"{file}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = State.model_validate_json(file.read_bytes())
        state.currentFeature.phase = payload.nextPhase
        state.currentFeature.updatedAt = payload.timestamp
        state.phases |= {payload.completedPhase: "completed", payload.nextPhase: "in_progress"}
        with open(f"{file}.new", "w") as new:
            new.write(state.model_dump_json(indent=2))
            new.flush()
            os.fsync(new.fileno())
        os.rename(f"{file}.new", file)
        folder = os.open(file.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


typer.run(update)
