"""A run as spans: the run, each visit of a step, each attempt, and in it the project's checks.

    spans = spans_of(run)                   those that have ended, outermost first
    text = context_of(run, attempt)         the attempt as W3C trace context, for the environment of its agent

Ids follow from the run's name and the time it was created. So an agent hears today the id of a span that is sent
tomorrow, by another process, and a span that is sent twice is the same span.

Names and attributes are those of the GenAI conventions where they have one; `tenuto.*` where they have none. A usage is
a sum: programs do not agree on what of it was input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tenuto.core.status import OVER, WELL, shown_status_of
from tenuto.encoding import digest

if TYPE_CHECKING:
    from tenuto.core.records.run import Attempt, Run, Visit

Values = dict[str, "str | int | float | bool"]


class CheckEvent(TypedDict):
    at: str
    attributes: Values


class TraceSpan(TypedDict):
    trace: str  # hexadecimal, as are the others
    span: str
    parent: str  # empty: of the run itself
    name: str
    started_at: str
    ended_at: str
    attributes: Values
    error: str  # empty: it went well
    checks: list[CheckEvent]


def spans_of(run: Run) -> list[TraceSpan]:
    found = [
        *(_of_visit(run, visit) for visit in run["visits"] if visit["ended_at"]),
        *(_of_attempt(run, name, one) for name, one in run["attempts"].items() if one["ended_at"]),
    ]
    return [_of_run(run, max(span["ended_at"] for span in found)), *found] if run["status"] in OVER and found else found


def context_of(run: Run, attempt: str) -> str:
    return f"00-{_trace(run)}-{_id(run, 'attempt', attempt)}-01"


def _trace(run: Run) -> str:
    return digest(f"{run['id']}\0{run['created_at']}".encode())[:32]


def _id(run: Run, *names: str) -> str:
    return digest("\0".join([_trace(run), *names]).encode())[:16]


def _of_run(run: Run, ended_at: str) -> TraceSpan:
    status = shown_status_of(run)
    return {
        "trace": _trace(run),
        "span": _id(run, "run"),
        "parent": "",
        "name": f"invoke_workflow {run['pipeline']['name']}",
        "started_at": run["created_at"],
        "ended_at": max(run["created_at"], ended_at),
        "attributes": {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": run["pipeline"]["name"],
            "gen_ai.conversation.id": run["id"],
            "tenuto.run": run["id"],
            "tenuto.status": status,
        },
        "error": "" if status in WELL else status,
        "checks": [],
    }


def _of_visit(run: Run, visit: Visit) -> TraceSpan:
    return {
        "trace": _trace(run),
        "span": _visit_id(run, visit["step"], visit["iteration"], visit["item"]),
        "parent": _id(run, "run"),
        "name": f"step {visit['step']}",
        "started_at": visit["started_at"],
        "ended_at": max(visit["started_at"], visit["ended_at"] or ""),
        "attributes": {
            "tenuto.run": run["id"],
            "tenuto.step": visit["step"],
            "tenuto.visit": visit["iteration"],
            **({"tenuto.item": visit["item"]} if visit["item"] else {}),
        },
        "error": "failed" if visit["status"] == "failed" else "",
        "checks": [],
    }


def _visit_id(run: Run, step: str, iteration: int, item: str | None) -> str:
    return _id(run, "visit", step, str(iteration), item or "")


def _of_attempt(run: Run, name: str, attempt: Attempt) -> TraceSpan:
    ended_at = max(attempt["started_at"], attempt["ended_at"] or "")
    visits = {(visit["step"], visit["iteration"], visit["item"]) for visit in run["visits"]}
    item = attempt["item"] if (attempt["step"], attempt["iteration"], attempt["item"]) in visits else None
    return {
        "trace": _trace(run),
        "span": _id(run, "attempt", name),
        "parent": _visit_id(run, attempt["step"], attempt["iteration"], item),
        "name": f"invoke_agent {attempt['role']}",
        "started_at": attempt["started_at"],
        "ended_at": ended_at,
        "attributes": {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": attempt["agent"].partition(":")[0],
            "gen_ai.agent.name": attempt["role"],
            "gen_ai.agent.id": name,
            "gen_ai.conversation.id": run["id"],
            "tenuto.run": run["id"],
            "tenuto.step": attempt["step"],
            "tenuto.visit": attempt["iteration"],
            "tenuto.try": attempt["number"],
            "tenuto.verdict": attempt["verdict"] or attempt["status"],
            **({"tenuto.item": attempt["item"]} if attempt["item"] else {}),
            **{
                f"tenuto.usage.{unit}": amount
                for unit, amount in attempt["usage"].items()
                if isinstance(amount, (int, float))
            },
        },
        "error": "" if attempt["status"] == "completed" else attempt["status"],
        "checks": [
            {
                "at": ended_at,
                "attributes": {
                    "tenuto.check": check.get("name", ""),
                    "process.exit.code": -1 if check["exit"] is None else check["exit"],
                    "tenuto.check.passed": not check["reason"],
                },
            }
            for check in attempt["receipt"].get("checks", [])
        ],
    }
