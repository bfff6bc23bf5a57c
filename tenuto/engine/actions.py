"""What the engine itself does: bookkeeping that todo() asks for, inside the turn it was asked in.

    perform(driver, turn, definition, action)   one action of todo() that needs no agent
    keep_outputs(turn, plan, ...)               what an attempt wrote becomes artifacts
    keep_commits(turn, plan, base)              what an attempt committed is recorded

A waves step whose pipeline names a file for it leaves a record there, as JSON: its items and what came of each. The
dialects that show a run say what they want of this work (tenuto.dialects.dialect).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tenuto.core.budget import in_words, limit_name
from tenuto.core.decisions.engine import asked_files, facts_of, files_behind
from tenuto.core.items import PlanRefused, directory, names_in
from tenuto.core.pipeline import forms
from tenuto.core.pipeline.check import documents_of
from tenuto.core.pipeline.each import items_of, source_of
from tenuto.core.pipeline.results import result_of
from tenuto.core.pipeline.schema import field_of
from tenuto.core.pipeline.values import kind_of
from tenuto.core.records.run import Run
from tenuto.core.status import ANSWERS
from tenuto.core.visit import NOTHING_LISTED, answers_of, step_of
from tenuto.dialects import dialects_of
from tenuto.dialects.dialect import Dialect
from tenuto.encoding import pretty
from tenuto.engine.attempt import AttemptPlan, Driver, existing, read_text
from tenuto.engine.gates import shown_files
from tenuto.engine.receipts import LONGEST_DOCUMENT, plan_of_step
from tenuto.errors import Refused
from tenuto.files import git
from tenuto.files.exchange import LARGEST
from tenuto.knowledge.elements import lines_of, rows_of
from tenuto.knowledge.findings import failing, findings, lessons
from tenuto.knowledge.passages import INDEXED, passages_of
from tenuto.names import fits
from tenuto.workspace.workspace import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenuto.core.pipeline.records import Each, GateStep, Pipeline, Step, Waves, WavesStep
    from tenuto.core.records.action import Action, Definition, Do
    from tenuto.core.records.commands import Conclude, Finding, OpenGate, Pause, PlanVisit
    from tenuto.core.records.run import IndexEntry, Json, MemoryEntry, PlannedItem


def write_record(turn: Turn, run: Run, pipeline: Pipeline, step: Step) -> None:
    """When the step ends, however it ends: those behind it read from it what was done and what was not."""
    if step["kind"] != "waves" or not step["waves"]["record"]:
        return
    own = step["id"] if step["waves"]["each"] else ""
    items = [name for name, item in run["items"].items() if item["extra"].get("step", "") == own]
    if not items and not own:
        return
    folder = documents_of(pipeline, run)
    path = os.path.normpath(f"{folder}/{step['waves']['record']}")
    body = pretty(
        {
            "tasks": [_task(run, step, name) for name in items],
            "waves": [w["items"] for w in run["waves"]] if items else [],
        }
    )
    turn.store(run["id"], step["waves"]["record"], path, body.encode(), step=step["id"])


def _task(run: Run, step: Step, name: str) -> dict[str, object]:
    item = run["items"][name]
    attempts = [one for one in run["attempts"].values() if one["item"] == name and one["step"] == step["id"]]
    return {
        "id": name,
        "title": item["title"],
        "files": item["files"],
        "dependsOn": item["depends_on"],
        "status": item["status"],
        "attempts": len(attempts),
        "agent": attempts[-1]["role"] if attempts else "",
        "summary": attempts[-1]["summary"] if attempts else "",
    }


# ---- what an attempt leaves


def keep_outputs(turn: Turn, plan: AttemptPlan, outputs: list[str], reply: str) -> None:
    """Each output becomes an artifact, under the name that its dialect knows it by."""
    run = turn.existing(plan.run["id"])
    speaking = dialects_of(run)
    kept = {_name_for(speaking, os.path.relpath(path, plan.documents)): path for path in outputs}
    for artifact, path in kept.items():
        turn.keep_file(run["id"], artifact, path, step=plan.step["id"], attempt=plan.name)
        sha = run["artifacts"][artifact]["sha256"]
        if not sha:
            raise Refused(
                "output-gone", f"{path} was removed while it was taken in", f"tenuto run --run {run['id']}", path=path
            )
        head = turn.workspace.files().stored(turn.tx, sha, INDEXED)
        turn.tx.index(run["id"], artifact, path, passages_of(head))
    for dialect in speaking:
        dialect.collected(turn, run, plan.name, list(kept), reply)


def _name_for(speaking: list[Dialect], path: str) -> str:
    """Of a document: the first name that a dialect has for it, else its path."""
    names = (dialect.artifact_name(path) for dialect in speaking)
    return next((name for name in names if name is not None), path)


def keep_commits(turn: Turn, plan: AttemptPlan, base: str) -> None:
    """What the agent committed, oldest first. Each commit counts once, for the attempt that ended first after it."""
    now = git.head(plan.workdir)
    if not base or now == base:
        return
    run = turn.existing(plan.run["id"])
    known = [commit["hash"] for commit in run["commits"]]
    names = (dialect.commit_step(run, plan.attempt) for dialect in dialects_of(run))
    step = next((name for name in names if name is not None), plan.step["id"])
    for line in reversed(git.ask(plan.workdir, "log", "--format=%H %s", f"{base}..{now}").out.splitlines()):
        sha, _, subject = line.partition(" ")
        if sha not in known:
            turn.do(run["id"], {"do": "RecordCommit", "step": step, "hash": sha, "message": git.in_words(subject)})


def act(turn: Turn, run: Run, pipeline: Pipeline, action: str) -> Json | None:
    for dialect in dialects_of(run):
        details = dialect.act(turn, run, pipeline, action)
        if details is not None:
            return details
    return None


def engaged(turn: Turn, run: Run, pipeline: Pipeline) -> None:
    for dialect in dialects_of(run):
        dialect.engaged(turn, run, pipeline)


# ---- actions


_SECURITY_WORDS = (
    "auth",
    "login",
    "password",
    "secret",
    "token",
    "crypt",
    "security",
    "session",
    "permission",
    "oauth",
    ".env",
    "payment",
)
_DOCUMENTATION = (".md", ".rst", ".txt", ".adoc")


def perform(driver: Driver, turn: Turn, definition: Definition, action: Action) -> None:
    pipeline, name = definition["pipeline"], driver.name
    match action["act"]:
        case "begin":
            files = files_for(turn.workspace.root, turn.existing(name), pipeline, action["step"])
            turn.do(name, {"do": "BeginVisit", "files": files}, pipeline)
        case "conclude":
            step = step_of(pipeline, action["step"])
            write_record(turn, turn.existing(name), pipeline, step)
            files = _look(turn.workspace.root, turn.existing(name), pipeline, files_behind(step))
            conclude: Conclude = {"do": "Conclude", "files": files}
            if step["kind"] == "gate":
                conclude["changed"] = _changed_since(driver, turn, pipeline, step)
            turn.do(name, conclude, pipeline)
        case "plan":
            _plan(driver, turn, pipeline, action["step"])
        case "ask":
            _ask(driver, turn, pipeline, action["step"])
        case "pause":
            limit = limit_name(action["short"])
            pause: Pause = {
                "do": "Pause",
                "kind": "budget",
                "step": action["step"],
                "reason": in_words(action["short"]),
                "recommendations": [f"tenuto resume {name} --limit {limit}=N", f"tenuto cancel {name}"],
            }
            turn.do(name, pause, pipeline)
        case "wake":
            turn.do(name, {"do": "Resume", "decision": "retry"}, pipeline)
        case "do":
            own = _ACTIONS.get(action["action"])
            run = turn.existing(name)
            detail = own(driver, turn, pipeline, action) if own else act(turn, run, pipeline, action["action"])
            turn.do(name, {"do": "RecordAction", "action": action["as"], "detail": detail or {}}, pipeline)
        case "dispatch":
            raise Refused("unknown-action", "this engine cannot dispatch")


def files_for(root: str, run: Run, pipeline: Pipeline, name: str) -> dict[str, bool]:
    """What the conditions of a step ask about files when it begins."""
    return _look(root, run, pipeline, asked_files(step_of(pipeline, name)))


def _look(root: str, run: Run, pipeline: Pipeline, names: list[str]) -> dict[str, bool]:
    """What conditions ask about files, answered as these are now."""
    folder, seen = documents(run, pipeline), dict[str, bool]()
    for asked in names:
        kind, _, pattern = asked.partition(":")
        if kind == "exists":
            seen[asked] = bool(existing(root, f"{folder}/{pattern.replace('{slug}', run['id'])}"))
        else:
            snapshot = git.snapshot(root, run["settings"].get("base_commit", ""))
            own = f"{folder}/" if folder != "." else ""
            paths = [path for path in snapshot or () if not own or not path.startswith(own)]
            seen[asked] = any(fits(pattern, path) for path in paths)
    return seen


def documents(run: Run, pipeline: Pipeline) -> str:
    return os.path.normpath(documents_of(pipeline, run))


def _read(driver: Driver, path: str) -> str:
    with open(os.path.join(driver.workspace.root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- plans and gates -------------------------------------------------------------------------------

_NOTES = 20  # of a plan; the others are shown by `tenuto plan --explain`
_SAID_ELSEWHERE = ("no-items", "unknown-dependency")  # in the reason why the plan is refused


def _plan(driver: Driver, turn: Turn, pipeline: Pipeline, name: str) -> None:
    turn.do(driver.name, plan_for(driver, turn.existing(driver.name), pipeline, name), pipeline)


def plan_for(driver: Driver, run: Run, pipeline: Pipeline, name: str) -> PlanVisit:
    """What the plan of a step says, as it lies there."""
    waves = _waves_step(pipeline, name)["waves"]
    folder = documents(run, pipeline)
    if waves["each"] is not None:
        items, notes, problem = _listed_items(driver, run, pipeline, name, waves["each"])
    else:
        items, notes, problem = _read_items(driver, folder, waves)
    if waves["each"] is not None:
        notes = notes if items or problem else [*notes, NOTHING_LISTED]
    elif not items and not problem and waves["no_items"] == "one":
        items = [_whole(run)]
    elif not items and not problem:
        problem = f"no item was found in {', '.join(waves['plan'])}"
    return {
        "do": "PlanVisit",
        "items": items,
        "findings": _findings(driver, run, pipeline, folder, items),
        "problem": problem,
        "notes": notes,
    }


def read_ahead(driver: Driver, run: Run, pipeline: Pipeline) -> None:
    """The plan that the run is about to follow is read before its turn: while a turn lasts, others wait."""
    visit = run["current_visit"]
    step = step_of(pipeline, visit["step"]) if visit else None
    if step is not None and step["kind"] == "waves" and step["waves"]["each"] is None:
        _read_items(driver, documents(run, pipeline), step["waves"])


def _read_items(driver: Driver, folder: str, waves: Waves) -> tuple[list[PlannedItem], list[str], str]:
    """The items, what a reader of the plan should know, and why it cannot be carried out."""
    try:
        plan = plan_of_step(driver.workspace.root, folder, driver.name, waves)
    except PlanRefused as refused:
        return [], [], refused.message
    notes = [one["message"] for one in plan["warnings"] if one["code"] not in _SAID_ELSEWHERE]
    beyond = [f"and {len(notes) - _NOTES} more: tenuto plan --explain"] if len(notes) > _NOTES else []
    return plan["items"], [*notes[:_NOTES], *beyond], ""


def _listed_items(
    driver: Driver, run: Run, pipeline: Pipeline, name: str, each: Each
) -> tuple[list[PlannedItem], list[str], str]:
    """The list as it is now, and what core makes of its elements."""
    step = _waves_step(pipeline, name)
    try:
        found = items_of(step, _elements(driver, run, documents(run, pipeline), each), facts_of(run, {}, each["when"]))
    except PlanRefused as refused:
        return [], [], refused.message
    return found["items"], found["notes"], ""


def _elements(driver: Driver, run: Run, folder: str, each: Each) -> Sequence[object]:
    """PlanRefused where there is no such list."""
    root = driver.workspace.root
    match source_of(each):
        case "param":
            given = run["params"].get(each["param"])
            return given if isinstance(given, list) else []
        case "result":
            return _of_result(run, each)
        case "files":
            return _files(root, each["files"].replace("{slug}", run["id"]))
        case "table":
            text = _document(root, folder, run, each["table"])
            return rows_of(text, each["table"], each["field"])
        case _:
            return lines_of(_document(root, folder, run, each["lines"]))


def _document(root: str, folder: str, run: Run, name: str) -> str:
    path = f"{folder}/{name.replace('{slug}', run['id'])}"
    if not os.path.isfile(os.path.join(root, path)):
        raise PlanRefused("no-list", f"there is no document {name} to read the list from", [name])
    if os.path.getsize(os.path.join(root, path)) >= LONGEST_DOCUMENT:
        message = f"{name} is too long for a list: less than {LONGEST_DOCUMENT} bytes are read"
        raise PlanRefused("list-too-long", message, [name], "make it shorter")
    return read_text(os.path.join(root, path))


def _of_result(run: Run, each: Each) -> Sequence[object]:
    """The list in what the last attempt of a step handed in."""
    value = field_of(result_of(run, each["result"]), each["field"])
    if not isinstance(value, list):
        where = (
            f"'{each['field']}' in the result of {each['result']}"
            if each["field"]
            else f"the result of {each['result']}"
        )
        raise PlanRefused("no-list", f"{where} is {kind_of(value)}, not a list", [each["result"]])
    return value


def _files(root: str, pattern: str) -> list[dict[str, str]]:
    """Files of the repository that git knows or would take in; without git, all that there are."""
    known = git.ask(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    if known.status == 0:
        every = sorted({path for path in known.out.split("\0") if path and fits(pattern, path)})
    else:
        every = existing(root, pattern)
    kept = [
        path
        for path in every
        if not path.startswith((".tenuto/", ".git/")) and os.path.isfile(os.path.join(root, path))
    ]
    return [_file(path) for path in kept]


def _file(path: str) -> dict[str, str]:
    name = os.path.basename(path)
    return {"value": path, "name": name, "stem": os.path.splitext(name)[0], "folder": os.path.dirname(path) or "."}


def _findings(driver: Driver, run: Run, pipeline: Pipeline, folder: str, items: list[PlannedItem]) -> list[Finding]:
    """What sent the run back here: the items that reports of now, the verdicts beside them and a person's words name as
    failing; and the files of findings that name no item."""
    current_visit = run["current_visit"]
    if current_visit is None:
        return []
    texts: list[str] = []
    for step in pipeline["steps"]:
        said = [(one, name) for one in answers_of(run, step) for name in one["seat"]["out"]]
        if any(name in current_visit["findings"] for _, name in said):
            texts += [
                f"{one['word']}: {one['summary']}" for one, _ in said if one["word"] in ("NEEDS_REVISION", "ERROR")
            ]
    for name in current_visit["findings"]:
        if _is_delivered(run, pipeline, name):
            texts += [_read(driver, path) for path in existing(driver.workspace.root, f"{folder}/{name}")]
    feedback = current_visit["leg"].get("feedback", "")
    texts += [feedback] if feedback else []
    listed: list[Finding] = [{"text": f"task {name}"} for name in failing(texts, items)]
    others: list[Finding] = [{"text": one["text"], "file": one.get("file")} for text in texts for one in findings(text)]
    others += [{"text": line} for line in feedback.splitlines()]
    names = directory(items)
    return [*listed, *(one for one in others if not names_in(one["text"], names))]


def _is_delivered(run: Run, pipeline: Pipeline, name: str) -> bool:
    """Is this document a report of now? One that no seat of a step makes is."""
    answers = [one for step in pipeline["steps"] for one in answers_of(run, step) if name in one["seat"]["out"]]
    return not answers or any(one["word"] in ANSWERS for one in answers)


def _waves_step(pipeline: Pipeline, name: str) -> WavesStep:
    step = step_of(pipeline, name)
    if step["kind"] != "waves":
        raise Refused("no-waves", f"{name} has no items to plan")
    return step


def _gate_step(pipeline: Pipeline, name: str) -> GateStep:
    step = step_of(pipeline, name)
    if step["kind"] != "gate":
        raise Refused("no-gate", f"{name} is no gate")
    return step


def _changed_since(driver: Driver, turn: Turn, pipeline: Pipeline, step: GateStep) -> list[str]:
    """What is another now than when the gate was decided on: between the two, files may have been changed."""
    opened = [e for e in turn.tx.events(driver.name) if e["type"] == "GateOpened" and e["name"] == step["gate"]["name"]]
    then = {entry["path"]: entry["sha256"] for entry in (opened[-1]["shown"] if opened else [])}
    shown = shown_files(driver.workspace.root, pipeline, turn.existing(driver.name), step["id"])
    now = {entry["path"]: entry["sha256"] for entry in shown}
    return [path for path in {**then, **now} if then.get(path) != now.get(path)]


def show_again(driver: Driver, turn: Turn, run: Run, pipeline: Pipeline) -> None:
    """A gate whose artifacts have changed since it was opened is opened anew: a person decides on what is there."""
    if run["status"] == "waiting_gate" and run["current_visit"] is not None:
        _ask(driver, turn, pipeline, run["current_visit"]["step"])


def _whole(run: Run) -> PlannedItem:
    return {
        "id": "1",
        "title": run["name"],
        "files": [],
        "depends_on": [],
        "agent": None,
        "wave": None,
        "description": run["request"],
        "effort": None,
        "lines": None,
    }


def _ask(driver: Driver, turn: Turn, pipeline: Pipeline, name: str) -> None:
    gate = _gate_step(pipeline, name)["gate"]
    opened: OpenGate = {
        "do": "OpenGate",
        "name": gate["name"],
        "prompt": forms.in_line(gate["prompt"], forms.known(turn.existing(driver.name))),
        "options": [*gate["options"]],
        "shown": shown_files(driver.workspace.root, pipeline, turn.existing(driver.name), name),
    }
    if gate.get("fields"):
        opened["fields"] = gate["fields"]
    turn.do(driver.name, opened, pipeline)


# ---- memory ----------------------------------------------------------------------------------------


def _prune(driver: Driver, turn: Turn, pipeline: Pipeline, action: Do) -> None:
    """Entries of the current and the previous numbered step stay (3b counts as 3)."""
    phase = step_of(pipeline, action["step"])["phase"]
    keep = [step["number"] for step in pipeline["steps"] if step["phase"] in (phase, phase - 1)]
    turn.do(driver.name, {"do": "PruneMemory", "keep": keep}, pipeline)


def _extract_lessons(driver: Driver, turn: Turn, pipeline: Pipeline, action: Do) -> None:
    """`Issue -> Resolution` lines in replies and outputs of the items that are done, and what documentation writers
    wrote."""
    run, step = turn.existing(driver.name), step_of(pipeline, action["step"])
    known = [entry["text"] for kind in ("lessons", "updates") for entry in run["memory"][kind]]
    fresh: list[MemoryEntry] = []
    index: list[IndexEntry] = []
    updates: list[MemoryEntry] = []
    for name, attempt in run["attempts"].items():
        if attempt["step"] != step["id"] or attempt["status"] != "completed":
            continue
        outputs = [path for path in attempt["receipt"].get("outputs", {}) if existing(driver.workspace.root, path)]
        texts = [_reply(driver, name), *(_read(driver, path) for path in outputs)]
        for lesson in (one for text in texts for one in lessons(text)):
            entry = f"{lesson['issue']} → {lesson['resolution']}"
            if entry not in known:
                known.append(entry)
                fresh.append({"who": attempt["role"], "step": step["number"], "text": entry, "invalidated": None})
        if attempt["role"] == "documentation-writer":
            for path in dict.fromkeys([*outputs, *attempt["receipt"].get("touched", [])]):
                entry = f"Updated `{path}` — {attempt['summary']}"
                if entry not in known and existing(driver.workspace.root, path):
                    index.append({"artifact": path, "sections": _sections(_read(driver, path)), "who": attempt["role"]})
                    updates.append({"who": attempt["role"], "step": step["number"], "text": entry, "invalidated": None})
    turn.do(driver.name, {"do": "WriteMemory", "kind": "lessons", "entries": fresh}, pipeline)
    turn.do(driver.name, {"do": "WriteMemory", "kind": "index", "entries": index}, pipeline)
    turn.do(driver.name, {"do": "WriteMemory", "kind": "updates", "entries": updates}, pipeline)


def _sections(text: str) -> str:
    """The headings of a document, for the index."""
    titles = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith(("# ", "## "))]
    return ", ".join(title.replace("|", "/") for title in titles[:6])


def _reply(driver: Driver, name: str) -> str:
    return read_text(f"{driver.directory(name)}/reply") or read_text(f"{driver.directory(name)}/stdout")


# ---- the review tier -------------------------------------------------------------------------------


def _review_tier(driver: Driver, turn: Turn, pipeline: Pipeline, action: Do) -> Json:
    """Full, Standard or Lightweight, by what changed since the run's start; without git: Full."""
    base = turn.existing(driver.name)["settings"].get("base_commit", "")
    tier, reason = _tier(driver.workspace.root, base, documents(turn.existing(driver.name), pipeline))
    turn.do(driver.name, {"do": "SetFlags", "flags": {"review_tier": tier, "review_tier_reason": reason}}, pipeline)
    return {"tier": tier, "reason": reason}


def _tier(root: str, base: str, folder: str) -> tuple[str, str]:
    shown = git.ask(root, "diff", "--numstat", "--no-ext-diff", "--no-textconv", base or "HEAD")
    if shown.status != 0:
        return "Full", "there is no git history to measure the change by"
    rows = [line.split("\t") for line in shown.out.splitlines()]
    others = git.ask(root, "ls-files", "--others", "--exclude-standard", "-z")
    rows += [[str(_lines(root, path)), "0", path] for path in others.out.split("\0") if path]
    rows = [row for row in rows if len(row) == 3 and not row[2].startswith(folder + "/")]
    files = [row[2] for row in rows]
    lines = sum(int(number) for row in rows for number in row[:2] if number.isdigit())
    risky = [path for path in files if any(word in path.lower() for word in _SECURITY_WORDS)]
    if risky:
        return "Full", f"{risky[0]} is relevant for security"
    if len(files) > 10 or lines > 500:
        return "Full", f"{len(files)} files and {lines} lines changed"
    if files and all(path.endswith(_DOCUMENTATION) for path in files):
        return "Lightweight", "only documentation changed"
    if len(files) <= 3 and lines <= 50:
        return "Lightweight", f"{len(files)} files and {lines} lines changed"
    return "Standard", f"{len(files)} files and {lines} lines changed"


def _lines(root: str, path: str) -> int:
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read(LARGEST).count(b"\n")
    except OSError:
        return 0


_ACTIONS: dict[str, Callable[[Driver, Turn, Pipeline, Do], Json | None]] = {
    "prune-memory": _prune,
    "extract-lessons": _extract_lessons,
    "choose-review-tier": _review_tier,
}
