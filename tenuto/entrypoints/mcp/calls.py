"""One function per tool. Each asks the driver or dialect that the command line asks, and returns a record.

Nothing is decided here. A refusal is an error of tenuto.errors, as everywhere, and means that nothing was written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenuto.entrypoints.mcp import shapes
from tenuto.entrypoints.mcp.resources import uri_of
from tenuto.entrypoints.mcp.tools import APPROVE, INSIDE, INSTRUCTIONS, TOOLS, Tool
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.workspace.guard import is_in_attempt

if TYPE_CHECKING:
    from tenuto.core.records import Run
    from tenuto.workspace.turn import Workspace

Arguments = dict[str, Any]
Record = dict[str, Any]

MOST_INLINE = 40_000  # characters of prompts in one answer: clients cut what is longer


class Desk:
    """What one connection asks of one repository. `approve` is listed where the user had switched it on when the server started.

    To an agent that the engine started, in whose program the user has this server, only what looks is shown.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.tools: tuple[Tool, ...] = (*TOOLS, APPROVE) if _switched_on(workspace) else TOOLS
        self.instructions = INSTRUCTIONS
        if is_in_attempt(workspace.state):
            self.tools, self.instructions = tuple(tool for tool in TOOLS if not tool.changes), INSIDE

    def call(self, name: str, given: Any) -> Record:
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise _unknown(name, self.tools)
        self.workspace.__dict__.pop("secrecy", None)  # a server lives long: what is secret may have been declared since
        arguments = shapes.check(name, tool.arguments, given)
        record = _CALLS[name](self.workspace, arguments)
        notes, self.workspace.warnings[:] = list(self.workspace.warnings), []
        return {**record, **({"notes": notes} if notes else {})}


def _switched_on(workspace: Workspace) -> bool:
    """A journal that is not there, or cannot be read, switches nothing on; whoever needs it says what is wrong with it."""
    from tenuto.drivers.persons import is_passed_on

    try:
        return _has_journal(workspace) and is_passed_on(workspace, "mcp")
    except TenutoError:
        return False


def _unknown(name: str, tools: tuple[Tool, ...]) -> Exception:
    if name == APPROVE.name:
        message = "approve is not switched on: only a person opens a gate"
        return Refused("not-switched-on", message, "tell the person: tenuto approve RUN, in a terminal of their own")
    return NotFound("no-such-tool", f"there is no tool {name!r}", f"there are: {', '.join(tool.name for tool in tools)}")


# ---- a run, led from here


def start(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.drivers.settings import read_settings
    from tenuto.drivers.start import Place
    from tenuto.drivers.start import start as begin

    if not a["request"].strip():
        raise BadInput("no-request", "the request is empty", "say what is wanted")
    settings = read_settings(workspace.root)
    run = begin(
        workspace, a["request"], a.get("pipeline") or settings.get("pipeline", "eight-step"), name=a.get("name", ""), limits=a.get("limits"),
        switches={"approval": True} if a.get("approval") else {}, place=Place(settings.get("workspace", "")),
    )  # fmt: skip
    return {"run": run["id"], "status": run["status"], "pipeline": run["pipeline"]["name"], "advice": f"call next with run={run['id']}"}


def next_(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.drivers.guided import hand_out
    from tenuto.drivers.settings import read_settings

    name = _chosen(workspace, a)
    run, works = hand_out(workspace, name, read_settings(workspace.root))
    record: Record = {"run": name, "status": run["status"], "work": _fitting(works, a.get("inline", True)), **_waiting(run)}
    if works:
        record["advice"] = "carry out each piece (side by side where you can, one subagent each), then report each one, then call next again"
    elif "waiting" in record:
        record["advice"] = "the run waits for a person: tell them what for, and stop; do not decide for them"
    else:
        record["advice"] = f"nothing is left to do: the run is {run['status']}"
    return record


def _fitting(works: list[Any], inline: bool) -> list[Any]:
    """Prompts that are too long together are read from their files."""
    if inline and sum(len(work["prompt"]) for work in works) <= MOST_INLINE:
        return works
    return [
        {**work, "prompt": f"{work['prompt'].partition(chr(10))[0]}\nRead the file {work['prompt_file']} and do what it says."} for work in works
    ]


def report(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.drivers.guided import Report, accept, read_report
    from tenuto.drivers.settings import read_settings

    told: Report = {}
    if "verdict" in a:
        told = {"verdict": a["verdict"], "summary": a.get("summary", ""), "reply": a.get("reply") or f"{a['verdict']}: {a.get('summary', '')}\n"}
    elif "reply" in a:
        told = read_report(a["reply"])
    if "usage" in a:
        told["usage"] = a["usage"]
    verdict, summary, receipt = accept(workspace, a["run"], a["attempt"], told, read_settings(workspace.root))
    return {
        "run": a["run"], "attempt": a["attempt"], "verdict": verdict, "summary": summary, "receipt": receipt,
        "advice": "report what else is under way, then call next" if verdict == "DONE" else "call next: it says whether and why it is asked again",
    }  # fmt: skip


def approve(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.drivers.persons import decide_gate
    from tenuto.drivers.settings import read_settings

    decision = a["decision"]
    if decision == "revise" and not a.get("feedback"):
        raise BadInput("no-feedback", "what should change is missing", "feedback: the person's words")
    run = decide_gate(workspace, a["run"], decision, a.get("feedback", ""), read_settings(workspace.root), passed_on="mcp")
    return {"run": a["run"], "status": run["status"], "decision": decision, "advice": "call next to go on"}


# ---- a look


def status(workspace: Workspace, a: Arguments) -> Record:
    run = workspace.load(_chosen(workspace, a))
    visits = [visit["step"] for visit in run["visits"]]
    steps = [{"step": name, "status": step["status"], "visits": visits.count(name), "verdict": step["verdict"]} for name, step in run["steps"].items()]
    busy = [(name, one) for name, one in run["attempts"].items() if one["status"] in ("dispatched", "running")]
    failure = {"failure": run["failure"]["error"]} if run["failure"] else {}
    return {
        "run": run["id"], "name": run["name"], "request": run["request"], "status": run["status"], "pipeline": run["pipeline"]["name"],
        "driver": run["driver"], "step": run["position"], "steps": steps, **_waiting(run), **failure,
        "under_way": [{"attempt": name, "step": one["step"], "role": one["role"], "status": one["status"], "since": one["started_at"]} for name, one in busy],
        "artifacts": [_artifact(run, name) for name in run["artifacts"]], "spent": dict(run["budget"]["spent"]), "limits": dict(run["budget"]["limits"]),
    }  # fmt: skip


def _artifact(run: Run, name: str) -> Record:
    one = run["artifacts"][name]
    return {
        "name": name, "path": one["path"], "sha256": one["sha256"], "size": one["size"], "by": one["attempt"] or one["by"],
        "uri": uri_of(run["id"], name),
    }  # fmt: skip


def _waiting(run: Run) -> Record:
    """What a person has to do; nothing where the run goes on without one."""
    gate, pause, name = run["gate"], run["pause"], run["id"]
    if gate is not None:
        how = f"the person types /tenuto:approve {name} (where the plugin is installed), or in a terminal of their own: tenuto approve {name}; or reject, revise"
        return {"waiting": {
            "kind": "gate", "name": gate["name"], "reason": gate["prompt"], "options": list(gate["options"]), "since": gate["opened_at"],
            "shown": [entry["path"] for entry in gate["shown"]], "how": how,
        }}  # fmt: skip
    if pause is not None:
        question = pause["kind"] == "question"
        how = f"tenuto answer {name} 'their answer'" if question else f"tenuto resume {name}, or: tenuto cancel {name}"
        kind = "parked" if run["status"] == "parked" else "question" if question else "pause"
        if kind == "parked":
            how = f"it goes on by itself after {pause['last_feedback']}: call next then"
        return {"waiting": {"kind": kind, "reason": pause["reason"], "how": how}}
    if run["blocked"] is not None:
        missing = ", ".join(run["blocked"]["missing"])
        return {"waiting": {"kind": "blocked", "reason": f"{run['blocked']['reason']} {missing}".strip(), "how": f"tenuto retry {name} STEP"}}
    return {}


def list_(workspace: Workspace, a: Arguments) -> Record:
    limit, wanted = a.get("limit", 20), a.get("status", [])
    if not _has_journal(workspace):
        return {"runs": [], "current": None}
    with workspace.journal.read() as reader:
        cards = reader.runs(dialect="", limit=-1 if wanted else limit)
        current = reader.load_repo()["current"]
    found = [card for card in cards if not wanted or card["status"] in wanted][:limit]
    return {"runs": [_card(card) for card in found], "current": current}


def _card(card: Any) -> Record:
    return {
        "run": card["id"], "name": card["name"], "status": card["status"], "pipeline": card["pipeline"]["name"], "driver": card["driver"],
        "step": card["position"], "created_at": card["created_at"], "updated_at": card["updated_at"], "summary": card["summary"],
    }  # fmt: skip


def metrics(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.entrypoints.cli.metrics import measured

    found = measured(workspace, workspace.load(_chosen(workspace, a)))
    return {key: found[key] for key in ("run", "metrics", "usage", "steps", "critical_path")}


# ---- what was stored


def query(workspace: Workspace, a: Arguments) -> Record:
    _require_journal(workspace)
    task = a.get("run", "")
    if task and "context" not in workspace.load(task)["dialects"]:
        with workspace.journal.read() as reader:
            hits = [hit for hit in reader.search(a["question"], 400) if hit["run"] == task][: a.get("limit", 5)]
        return {"passages": [{"run": hit["run"], "path": hit["path"], "heading": hit["heading"], "text": hit["text"]} for hit in hits]}
    found = workspace.context.query(a["question"], limit=a.get("limit", 5), task=task)
    return {"passages": [{"run": one["task"], "path": one["path"], "heading": one["heading"], "text": one["text"]} for one in found["passages"]]}


def retrieve(workspace: Workspace, a: Arguments) -> Record:
    if ("artifact" in a) == ("for_phase" in a):
        raise BadInput("bad-argument", "retrieve: give either artifact or for_phase", "artifact='design.md', or for_phase='implementation'")
    run = workspace.load(_chosen(workspace, a))
    if "artifact" in a:
        from tenuto.entrypoints.mcp.resources import find

        name, body = find(workspace, run, a["artifact"])
        one = run["artifacts"][name]
        return {"run": run["id"], "artifact": name, "path": one["path"], "sha256": one["sha256"], "text": body.decode("utf-8", "replace")}
    _require_context(run, "retrieve for_phase")
    pack = workspace.context.retrieve(a["for_phase"], a.get("needs", ()), max_tokens=a.get("max_tokens", ""), task=run["id"])
    return {"run": pack["task"], "text": pack["data"], "receipts": pack["receipts"], "missing": pack["missing"]}


def store(workspace: Workspace, a: Arguments) -> Record:
    run = workspace.load(_chosen(workspace, a))
    _require_context(run, "store")
    more = {"task_id": a.get("task_id", ""), "iteration": a.get("iteration", ""), "task": run["id"]}
    kept = workspace.context.store(a["phase"], a["content"], **more)
    return {"run": kept["task"], "artifact": kept["artifact"], "path": kept["path"], "sha256": kept["sha256"], "size": kept["size"], "said": kept["data"]}


# ---- which run is meant


def _chosen(workspace: Workspace, a: Arguments) -> str:
    _require_journal(workspace)
    if a.get("run"):
        return str(a["run"])
    with workspace.journal.read() as reader:
        current = reader.load_repo()["current"]
    if current is None:
        raise NotFound("no-current-run", "no run was named, and none is current", "call list, or start")
    return current


def _has_journal(workspace: Workspace) -> bool:
    return os.path.exists(workspace.state + "/journal.db")


def _require_journal(workspace: Workspace) -> None:
    if not _has_journal(workspace):
        raise NotFound("no-journal", f"no run was ever started in {workspace.root}", "call start")


def _require_context(run: Run, tool: str) -> None:
    if "context" not in run["dialects"]:
        message = f"{tool} is for context tasks, and run {run['id']} is none (pipeline {run['pipeline']['name'] or '-'})"
        raise Refused("not-a-context-task", message, "write the files that next lists as outputs, and report; read with retrieve artifact")


_CALLS: dict[str, Callable[[Workspace, Arguments], Record]] = {
    "start": start, "next": next_, "report": report, "status": status, "query": query, "retrieve": retrieve, "store": store, "list": list_,
    "metrics": metrics, "approve": approve,
}  # fmt: skip
