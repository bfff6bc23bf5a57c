"""One function per tool. Each asks the engine, the dialect or the read model that the command line asks, and returns a
record.

Nothing is decided here. A refusal is an error of tenuto.errors, as everywhere, and means that nothing was written.

Artifacts as resources: tenuto://RUN/NAME, as the attempt delivered it, whatever stands in the file now.

Listed are the artifacts of runs that have not ended, and of the current one; any other can be read by its address.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote, unquote, urlsplit

from tenuto.dialects.context.commands import Context
from tenuto.entrypoints.mcp import tools as shapes
from tenuto.entrypoints.mcp.tools import APPROVE, INSIDE, INSTRUCTIONS, TOOLS, Tool
from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.show import runs
from tenuto.show.inbox import driven_view, queue_view
from tenuto.show.inbox import listed as driven_runs
from tenuto.show.measures import measures
from tenuto.show.views import ArtifactView, RunView, is_in_flight, run_view
from tenuto.show.waiting import set_words
from tenuto.workspace.guard import is_in_attempt

if TYPE_CHECKING:
    from tenuto.core.records.run import Waiting
    from tenuto.engine.guided import Work
    from tenuto.show.runs import ListedRun
    from tenuto.show.waiting import WaitingView
    from tenuto.workspace.workspace import Workspace


SCHEME = "tenuto"
TEMPLATE = f"{SCHEME}://{{run}}/{{name}}"
MOST_LISTED = 200


def uri_of(run: str, artifact: str) -> str:
    return f"{SCHEME}://{quote(run, safe='')}/{quote(artifact, safe='/')}"


class Listed(TypedDict):
    """As the protocol lists a resource."""

    name: str
    uri: str
    size: int
    mime_type: str
    description: str


def listed(workspace: Workspace) -> list[Listed]:
    views = [run_view(run) for run in runs.open_and_current(workspace)]
    return [_described(view["run"], one) for view in views for one in view["artifacts"]][:MOST_LISTED]


def _described(run: str, one: ArtifactView) -> Listed:
    return {
        "name": f"{run}/{one['name']}",
        "uri": uri_of(run, one["name"]),
        "size": one["size"],
        "mime_type": kind_of(one["path"]),
        "description": f"{one['path']}, by {one['by']}",
    }


def kind_of(path: str) -> str:
    return "text/markdown" if path.endswith(".md") else mimetypes.guess_type(path)[0] or "text/plain"


def read(workspace: Workspace, uri: str) -> tuple[str, bytes]:
    """(its kind, its bytes)"""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME or not parts.netloc or not parts.path.strip("/"):
        raise BadInput("bad-address", f"{uri} is no address of an artifact", TEMPLATE)
    run = workspace.load(unquote(parts.netloc))
    one, _, body = runs.find_artifact(workspace, run, unquote(parts.path[1:]))
    return kind_of(one["path"]), body


# ---- calls ------------------------------------------------------------


Record = dict[str, object]

MOST_INLINE = 40_000  # characters of prompts in one answer: clients cut what is longer


class Arguments(TypedDict, total=False):
    """What the tools are asked with. Which of them a tool takes, and which it needs, says its schema."""

    run: str
    request: str
    pipeline: str
    name: str
    approval: bool
    limits: dict[str, int]
    params: dict[str, object]
    inline: bool
    again: list[str]
    attempt: str
    verdict: str
    summary: str
    reply: str
    usage: dict[str, int]
    decision: str
    feedback: str
    answers: dict[str, object]
    status: list[str]
    limit: int
    question: str
    artifact: str
    for_phase: str
    needs: list[str]
    max_tokens: int
    phase: str
    content: str
    task_id: str
    iteration: int


class Desk:
    """What one connection asks of one repository. `approve` is listed where the user had switched it on when the
    server started.

    To an agent that the engine started, in whose program the user has this server, only what looks is shown.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.tools: tuple[Tool, ...] = (*TOOLS, APPROVE) if _switched_on(workspace) else TOOLS
        self.instructions = INSTRUCTIONS
        if is_in_attempt(workspace.caller, workspace.state):
            self.tools, self.instructions = tuple(tool for tool in TOOLS if not tool.changes), INSIDE

    def call(self, name: str, given: object) -> Record:
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise _unknown(name, self.tools)
        self.workspace.forget_secrets()  # a server lives long: what is secret may have been declared since
        record = _CALLS[name](self.workspace, _checked(tool, given))
        notes, self.workspace.warnings[:] = list(self.workspace.warnings), []
        return {**record, **({"notes": notes} if notes else {})}


def _checked(tool: Tool, given: object) -> Arguments:
    arguments: Any = {} if given is None else given
    shapes.check(tool.name, tool.arguments, arguments)
    checked: Arguments = arguments
    return checked


def _switched_on(workspace: Workspace) -> bool:
    """A journal that is not there, or cannot be read, switches nothing on; a tool that needs it says what is wrong."""
    from tenuto.engine.gates import is_passed_on

    try:
        return runs.has_journal(workspace) and is_passed_on(workspace, "mcp")
    except TenutoError:
        return False


def _unknown(name: str, tools: tuple[Tool, ...]) -> Exception:
    if name == APPROVE.name:
        message = "approve is not switched on: only a person opens a gate"
        return Refused("not-switched-on", message, "tell the person: tenuto approve RUN, in a terminal of their own")
    return NotFound(
        "no-such-tool", f"there is no tool {name!r}", f"there are: {', '.join(tool.name for tool in tools)}"
    )


# ---- a run, led from here


def start(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.engine.begin import Place
    from tenuto.engine.begin import start as begin
    from tenuto.workspace.settings import read_settings

    if not a["request"].strip():
        raise BadInput("no-request", "the request is empty", "say what is wanted")
    settings = read_settings(workspace.root)
    record = begin(
        workspace,
        a["request"],
        a.get("pipeline") or settings.get("pipeline", "eight-step"),
        name=a.get("name", ""),
        limits=a.get("limits"),
        params=a.get("params"),
        switches={"approval": True} if a.get("approval") else {},
        place=Place(settings.get("workspace", "")),
    )
    view = run_view(record)
    return {
        "run": view["run"],
        "status": view["status"],
        "pipeline": view["pipeline"],
        "advice": f"call next with run={view['run']}",
    }


def next_(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.engine.guided import hand_out
    from tenuto.workspace.settings import settings_of

    name = _chosen(workspace, a)
    settings = settings_of(workspace.root, workspace.load(name), workspace.state)
    run, works = hand_out(workspace, name, settings, a.get("again", ()))
    view = run_view(run)
    record: Record = {
        "run": name,
        "status": view["status"],
        "work": _fitting(works, a.get("inline", True)),
        **_waiting(view),
    }
    if any(work["state"] == "to do" for work in works):
        record["advice"] = (
            "carry out each piece that is to do (side by side where you can, one subagent each), then report each one, "
            "then call next again"
        )
    elif works:
        record["advice"] = (
            "all of it has an agent: wait for those at work, report those that have ended, then call next again"
        )
    elif view["waiting"]:
        record["advice"] = "the run waits for a person: tell them what for, and stop; do not decide for them"
    else:
        record["advice"] = f"nothing is left to do: the run is {view['status']}"
    return record


def _fitting(works: list[Work], inline: bool) -> list[Work]:
    """Prompts that are too long together are read from their files."""
    if inline and sum(len(work["prompt"]) for work in works) <= MOST_INLINE:
        return works
    return [
        {
            **work,
            "prompt": f"{work['prompt'].partition(chr(10))[0]}\nRead the file {work['prompt_file']} and do what it "
            f"says.",
        }
        for work in works
    ]


def report(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.engine.guided import Report, accept, read_report
    from tenuto.workspace.settings import settings_of

    handed_in: Report = {}
    if "verdict" in a:
        handed_in = {
            "verdict": a["verdict"],
            "summary": a.get("summary", ""),
            "reply": a.get("reply") or f"{a['verdict']}: {a.get('summary', '')}\n",
        }
    elif "reply" in a:
        handed_in = read_report(a["reply"])
    if "usage" in a:
        handed_in["usage"] = a["usage"]
    settings = settings_of(workspace.root, workspace.load(a["run"]), workspace.state)
    verdict, summary, receipt = accept(workspace, a["run"], a["attempt"], handed_in, settings)
    return {
        "run": a["run"],
        "attempt": a["attempt"],
        "verdict": verdict,
        "summary": summary,
        "receipt": receipt,
        "advice": "report what else is under way, then call next"
        if verdict == "DONE"
        else "call next: it says whether and why it is asked again",
    }


def approve(workspace: Workspace, a: Arguments) -> Record:
    from tenuto.engine.gates import decide_gate
    from tenuto.workspace.settings import read_settings

    decision = a["decision"]
    if decision == "revise" and not a.get("feedback"):
        raise BadInput("no-feedback", "what should change is missing", "feedback: the person's words")
    run = decide_gate(
        workspace,
        a["run"],
        decision,
        a.get("feedback", ""),
        read_settings(workspace.root),
        passed_on="mcp",
        answers=a.get("answers"),
    )
    return {"run": a["run"], "status": run_view(run)["status"], "decision": decision, "advice": "call next to go on"}


# ---- a look


def status(workspace: Workspace, a: Arguments) -> Record:
    found = runs.look(workspace, _chosen(workspace, a))
    view = found["run"]
    return {
        "run": view["run"],
        "name": view["name"],
        "request": view["request"],
        "status": view["status"],
        "pipeline": view["pipeline"],
        "driver": view["driver"],
        "driven": driven_view(workspace, view["run"], view["status"], view["driver"])["words"],
        "step": view["position"],
        "steps": [
            {"step": one["step"], "status": one["status"], "visits": one["visits"], "verdict": one["verdict"]}
            for one in view["steps"]
        ],
        **_waiting(view),
        **({"would_follow": _would_follow(found["waiting"])} if found["waiting"] else {}),
        **({"failure": view["failure"]["error"]} if view["failure"] else {}),
        "under_way": [
            {
                "attempt": one["attempt"],
                "step": one["step"],
                "role": one["role"],
                "status": one["status"],
                "since": one["started_at"],
            }
            for one in view["attempts"]
            if is_in_flight(one)
        ],
        "artifacts": [_artifact(view, one) for one in view["artifacts"]],
        "spent": view["spent"],
        "limits": {one["unit"]: one["limit"] for one in view["limits"] if not one["step"]},
    }


def _would_follow(waiting: WaitingView) -> Record:
    """By answer: what core says that would happen then, or why it would refuse it now."""
    return {one["answer"]: one["told"] or f"refused: {one['refused']}" for one in waiting["answers"]}


def _artifact(view: RunView, one: ArtifactView) -> Record:
    return {
        "name": one["name"],
        "path": one["path"],
        "sha256": one["sha256"],
        "size": one["size"],
        "by": one["by"],
        "uri": uri_of(view["run"], one["name"]),
    }


def _waiting(view: RunView) -> Record:
    """What a person has to do; nothing where the run goes on without one."""
    waiting, name = view["waiting"], view["run"]
    return {} if waiting is None else {"waiting": _for_a_person(waiting, name)}


def _for_a_person(waiting: Waiting, name: str) -> Record:
    match waiting["kind"]:
        case "gate":
            return {
                "kind": "gate",
                "name": waiting["name"],
                "reason": waiting["reason"],
                "options": waiting["options"],
                "since": waiting["since"],
                "shown": [entry["path"] for entry in waiting["shown"]],
                **({"fields": waiting["fields"]} if waiting["fields"] else {}),
                "how": _how(waiting, name),
            }
        case "question":
            how = f"tenuto answer {name} 'their answer'"
            return {"kind": "question", "reason": waiting["reason"], "how": how}
        case "time":
            how = f"after {waiting['until']}: call next; an engine's run: tenuto resume {name} --wait"
            return {"kind": "parked", "reason": waiting["reason"], "how": how}
        case "blocked":
            reason = f"{waiting['reason']} {', '.join(waiting['missing'])}".strip()
            return {"kind": "blocked", "reason": reason, "how": f"tenuto retry {name} STEP"}
        case "pause" | "limit":
            how = f"tenuto resume {name}, or: tenuto cancel {name}"
            return {"kind": "pause", "reason": waiting["reason"], "how": how}


def _how(waiting: Waiting, name: str) -> str:
    words = f"{name}{set_words(waiting)}"
    return (
        f"the person types /tenuto:approve {words} (where the plugin is installed), or in a terminal of "
        f"their own: tenuto approve {words}; or reject, revise"
    )


def list_(workspace: Workspace, a: Arguments) -> Record:
    if not runs.has_journal(workspace):
        return {"runs": [], "current": None}
    fitting = driven_runs(workspace, a.get("status", []), limit=a.get("limit", 20))
    cards = [{**_summary(one), "driven": one["driven"]["words"]} for one in fitting]
    return {"runs": cards, "current": runs.current(workspace), "queue": _queue(workspace)}


def _queue(workspace: Workspace) -> list[Record]:
    return [
        {"entry": one["entry"], "request": one["request"], "standing": one["standing"], "run": one["run"]}
        for one in queue_view(workspace)["entries"]
    ]


def _summary(one: ListedRun) -> Record:
    return {
        "run": one["id"],
        "name": one["name"],
        "status": one["status"],
        "pipeline": one["pipeline"]["name"],
        "driver": one["driver"],
        "step": one["position"],
        "created_at": one["created_at"],
        "updated_at": one["updated_at"],
        "summary": one["summary"],
    }


def metrics(workspace: Workspace, a: Arguments) -> Record:
    run = workspace.load(_chosen(workspace, a))
    found = measures(run, runs.cap_of(workspace, run))
    return {
        "run": found["run"],
        "metrics": found["metrics"],
        "usage": found["usage"],
        "steps": found["steps"],
        "critical_path": found["critical_path"],
    }


# ---- what was stored


def query(workspace: Workspace, a: Arguments) -> Record:
    _require_journal(workspace)
    name, limit = a.get("run", ""), a.get("limit", 5)
    if name and "context" not in run_view(workspace.load(name))["dialects"]:
        return {"passages": runs.passages(workspace, a["question"], name, limit)}
    found = Context(workspace).query(a["question"], limit=limit, task=name)
    return {
        "passages": [
            {"run": one["task"], "path": one["path"], "heading": one["heading"], "text": one["text"]}
            for one in found["passages"]
        ]
    }


def retrieve(workspace: Workspace, a: Arguments) -> Record:
    if ("artifact" in a) == ("for_phase" in a):
        raise BadInput(
            "bad-argument",
            "retrieve: give either artifact or for_phase",
            "artifact='design.md', or for_phase='implementation'",
        )
    run = workspace.load(_chosen(workspace, a))
    view = run_view(run)
    if "artifact" in a:
        one, _, body = runs.find_artifact(workspace, run, a["artifact"])
        return {
            "run": view["run"],
            "artifact": one["name"],
            "path": one["path"],
            "sha256": one["sha256"],
            "text": body.decode("utf-8", "replace"),
        }
    _require_context(view, "retrieve for_phase")
    needs: Sequence[str] = a.get("needs", ())
    pack = Context(workspace).retrieve(a["for_phase"], needs, max_tokens=a.get("max_tokens", ""), task=view["run"])
    return {"run": pack["task"], "text": pack["data"], "receipts": pack["receipts"], "missing": pack["missing"]}


def store(workspace: Workspace, a: Arguments) -> Record:
    view = run_view(workspace.load(_chosen(workspace, a)))
    _require_context(view, "store")
    stored = Context(workspace).store(
        a["phase"],
        a["content"],
        task_id=a.get("task_id", ""),
        iteration=a.get("iteration", ""),
        task=view["run"],
    )
    return {
        "run": stored["task"],
        "artifact": stored["artifact"],
        "path": stored["path"],
        "sha256": stored["sha256"],
        "size": stored["size"],
        "said": stored["data"],
    }


# ---- which run is meant


def _chosen(workspace: Workspace, a: Arguments) -> str:
    _require_journal(workspace)
    return runs.chosen(workspace, a.get("run") or None, "call list, or start")


def _require_journal(workspace: Workspace) -> None:
    if not runs.has_journal(workspace):
        raise NotFound("no-journal", f"no run was ever started in {workspace.root}", "call start")


def _require_context(view: RunView, tool: str) -> None:
    if "context" not in view["dialects"]:
        message = f"{tool} is for context tasks, and run {view['run']} is none (pipeline {view['pipeline'] or '-'})"
        hint = "write the files that next lists as outputs, and report; read with retrieve artifact"
        raise Refused("not-a-context-task", message, hint)


_CALLS: dict[str, Callable[[Workspace, Arguments], Record]] = {
    "start": start,
    "next": next_,
    "report": report,
    "status": status,
    "query": query,
    "retrieve": retrieve,
    "store": store,
    "list": list_,
    "metrics": metrics,
    "approve": approve,
}
