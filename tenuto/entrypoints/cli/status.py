"""`tenuto status`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.amounts import all_told
from tenuto.entrypoints.cli.amounts import told as amount_of
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import load, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, when

if TYPE_CHECKING:
    from tenuto.core.records import Run

WAITING = ("waiting_gate", "paused", "parked", "stopped", "blocked")
_LEVELS = {
    "guarded": "no agent decides by mistake; whoever works as this user could",
    "signed": "a decision carries a signature; a forged one is found out, and not carried on",
    "isolated": "agents run where they cannot write the journal; that is tried before each start",
}
_FAILED = ("failed", "cancelled")


@click.command(
    "status",
    cls=Command,
    examples=[
        ("tenuto status", "the current run"),
        ("tenuto status dark-mode", "another one"),
        ("tenuto status --exit-code || echo 'not there yet'", "5 while it waits for a person, 1 if it failed"),
    ],
)
@run_argument
@click.option("--exit-code", is_flag=True, help="End with 5 when the run waits for a person, with 1 when it failed.")
def command(run: str | None, exit_code: bool) -> Answer:
    """Where a run stands and what it waits for."""
    from tenuto.drivers.protection import level_of
    from tenuto.drivers.settings import read_settings

    workspace = open_existing()
    found = load(workspace, run)
    level = level_of(found, read_settings(workspace.root))
    status = 0
    if exit_code:
        status = 5 if found["status"] in WAITING else 1 if found["status"] in _FAILED else 0
    return Answer({**found, "gates": level}, _told(found, level), status)


def _told(run: Run, level: str) -> Iterator[Part]:
    yield Heading(f"{run['id']}: {run['status']}")
    if run["summary"] or run["name"] != run["id"]:
        yield f"  {run['summary'] or run['name']}"
    yield f"  pipeline {run['pipeline']['name'] or '-'}, driven by {run['driver']}, mode {run['mode']}"
    fork = run["extra"].get("fork")
    if fork:
        yield f"  forked from {fork['source']} at {fork['step']}"
    yield f"  started {when(run['created_at'])}, last event {run['version']} at {when(run['updated_at'])}"
    yield f"  gates are {level}: {_LEVELS[level]}"
    yield from _waiting_for(run)
    if run["steps"]:
        yield ""
        yield Table(("STEP", "STATUS", "VISITS", "VERDICT"), _steps(run))
    busy = [(name, a) for name, a in run["attempts"].items() if a["status"] in ("dispatched", "running")]
    if busy:
        yield ""
        yield Table(
            ("ATTEMPT", "STATUS", "ROLE", "SINCE"),
            [(name, attempt["status"], attempt["role"], when(attempt["started_at"])) for name, attempt in busy],
        )
    yield from _counted(run)


def _waiting_for(run: Run) -> Iterator[Part]:
    gate, pause, blocked, failure = run["gate"], run["pause"], run["blocked"], run["failure"]
    if gate is not None:
        yield f"  waits for a decision on {gate['name']!r} since {when(gate['opened_at'])}: {', '.join(gate['options'])}"
        yield f"    {gate['prompt']}"
        for shown in gate["shown"]:
            yield f"    see {shown['path']}"
    elif pause is not None:
        yield f"  {pause['kind']}: {pause['reason'] or 'no reason given'}"
        for recommendation in pause["recommendations"]:
            yield f"    {recommendation}"
    if blocked is not None:
        missing = ", ".join(blocked["missing"])
        yield f"  blocked at {blocked['reason']}" + (f", missing: {missing}" if missing else "")
    if failure is not None:
        yield f"  failed in {failure['step'] or 'no step'}: {failure['error']}"


def _steps(run: Run) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, step in run["steps"].items():
        visits = sum(1 for visit in run["visits"] if visit["step"] == name)
        here = " (here)" if name == run["position"] else ""
        rows.append((name + here, step["status"], str(visits or "-"), step["verdict"] or "-"))
    return rows


def _counted(run: Run) -> Iterator[Part]:
    items: dict[str, int] = {}
    for item in run["items"].values():
        items[item["status"]] = items.get(item["status"], 0) + 1
    counts: list[tuple[str, Any]] = [
        ("items", ", ".join(f"{count} {status}" for status, count in items.items())),
        ("artifacts", len(run["artifacts"])),
        ("commits", len(run["commits"])),
        ("spent", all_told(run["budget"]["spent"])),
    ]
    told = "; ".join(f"{what}: {count}" for what, count in counts if count)
    if told:
        yield ""
        yield told
    yield from _limits(run)


def _limits(run: Run) -> Iterator[Part]:
    """Each limit with what is used or promised of it."""
    accounts: list[tuple[str, Any]] = [("", run["budget"]), *run["budget"]["steps"].items()]
    for step, account in accounts:
        for unit, limit in account["limits"].items():
            held = account["spent"].get(unit, 0) + account["reserved"].get(unit, 0)
            used = account["busy_ms"] / 1000 if unit == "wall_clock" else held
            if limit is not None:
                of = "" if not step else f" of {step}"
                yield f"limit{of}: {amount_of(unit, limit)}, {amount_of(unit, used)} used or promised"
