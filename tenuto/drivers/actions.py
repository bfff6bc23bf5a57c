"""What the engine itself does: bookkeeping that todo() asks for, inside the turn it was asked in."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from tenuto.core.budget import in_words, limit_name
from tenuto.core.pipeline import documents_of
from tenuto.core.visits import step_of
from tenuto.drivers import continuing
from tenuto.drivers.jobs import existing
from tenuto.drivers.persons import exhibits
from tenuto.drivers.planning import read_items
from tenuto.drivers.record import write_record
from tenuto.drivers.shown import act
from tenuto.errors import Refused
from tenuto.files.places import LARGEST
from tenuto.knowledge.findings import findings, lessons
from tenuto.workspace.turn import Turn

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


def perform(engine: Any, turn: Turn, definition: Any, action: Any) -> None:
    pipeline, name = definition["pipeline"], engine.name
    match action["act"]:
        case "begin":
            turn.do(name, {"do": "BeginVisit"}, pipeline)
        case "conclude":
            write_record(turn, turn.existing(name), pipeline, _step(pipeline, action["step"]))
            ended: Any = {"do": "Conclude"}
            turn.do(name, ended | _changed_since(engine, turn, pipeline, action["step"]), pipeline)
        case "plan":
            _plan(engine, turn, pipeline, action["step"])
        case "ask":
            _ask(engine, turn, pipeline, action["step"])
        case "pause":
            paused: Any = {
                "do": "Pause", "kind": "budget", "step": action["step"], "reason": in_words(action["short"]),
                "recommendations": [f"tenuto resume {name} --limit {limit_name(action['short'])}=N", f"tenuto cancel {name}"],
            }  # fmt: skip
            turn.do(name, paused, pipeline)
        case "wake":
            turn.do(name, {"do": "Resume", "decision": "retry"}, pipeline)
        case "do":
            doing = _ACTIONS.get(action["action"])
            run = turn.existing(name)
            detail = doing(engine, turn, pipeline, action) if doing else act(turn, run, pipeline, action["action"])
            turn.do(name, {"do": "RecordAction", "action": action["as"], "detail": detail or {}}, pipeline)
        case other:
            raise Refused("unknown-action", f"this engine cannot {other}")


def documents(run: Any, pipeline: Any) -> str:
    return os.path.normpath(documents_of(pipeline, run))


def _step(pipeline: Any, name: str) -> Any:
    return step_of(pipeline, name)


def _read(engine: Any, path: str) -> str:
    with open(os.path.join(engine.workspace.root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- plans and gates -------------------------------------------------------------------------------


def _plan(engine: Any, turn: Turn, pipeline: Any, name: str) -> None:
    run, waves = turn.existing(engine.name), _step(pipeline, name)["waves"]
    folder = documents(run, pipeline)
    items = read_items(engine.workspace.root, folder, engine.name, waves)
    problem = ""
    if not items and waves["no_items"] == "one":
        items = [_whole(run)]
    elif not items:
        problem = f"no item was found in {', '.join(waves['plan'])}"
    stay = run["stay"]
    texts = [
        _read(engine, path)
        for name in (stay["findings"] if stay else [])
        for path in existing(engine.workspace.root, f"{folder}/{name}")
    ]
    found = [{"text": one["text"], "file": one.get("file")} for text in texts for one in findings(text)]
    found += (
        [{"text": line} for text in texts for line in text.splitlines() if "task" in line.lower()] if not found else []
    )
    found += [{"text": line} for line in (stay["hop"].get("feedback", "") if stay else "").splitlines()]
    turn.do(engine.name, {"do": "PlanVisit", "items": items, "findings": found, "problem": problem}, pipeline)


def _changed_since(engine: Any, turn: Turn, pipeline: Any, name: str) -> dict[str, list[str]]:
    """At a gate: what is another now than when it was decided on. Between the two, nobody watched."""
    step = _step(pipeline, name)
    if step["kind"] != "gate":
        return {}
    opened = [e for e in turn.tx.events(engine.name) if e["type"] == "GateOpened" and e["name"] == step["gate"]["name"]]
    then = {entry["path"]: entry["sha256"] for entry in (opened[-1]["shown"] if opened else [])}
    now = {entry["path"]: entry["sha256"] for entry in exhibits(engine.workspace.root, pipeline, turn.existing(engine.name), name)}
    return {"changed": [path for path in {**then, **now} if then.get(path) != now.get(path)]}


def show_again(engine: Any, turn: Turn, pipeline: Any) -> None:
    """A gate whose artifacts have changed since it was opened is opened anew: nobody can decide on what is not there any more."""
    run = turn.existing(engine.name)
    if run["status"] == "waiting_gate" and run["stay"] is not None:
        _ask(engine, turn, pipeline, run["stay"]["step"])


def _whole(run: Any) -> Any:
    return {
        "id": "1", "title": run["name"], "files": [], "depends_on": [], "agent": None, "wave": None,
        "description": run["request"], "effort": None, "lines": None,
    }  # fmt: skip


def _ask(engine: Any, turn: Turn, pipeline: Any, name: str) -> None:
    gate = _step(pipeline, name)["gate"]
    opened: Any = {
        "do": "OpenGate",
        "name": gate["name"],
        "prompt": gate["prompt"],
        "options": gate["options"],
        "shown": exhibits(engine.workspace.root, pipeline, turn.existing(engine.name), name),
    }
    turn.do(engine.name, opened, pipeline)


# ---- memory ----------------------------------------------------------------------------------------


def _prune(engine: Any, turn: Turn, pipeline: Any, action: Any) -> None:
    """Entries of the current and the previous numbered step stay (3b counts as 3)."""
    phase = _step(pipeline, action["step"])["phase"]
    keep = [step["number"] for step in pipeline["steps"] if step["phase"] in (phase, phase - 1)]
    turn.do(engine.name, {"do": "PruneMemory", "keep": keep}, pipeline)


def _extract_lessons(engine: Any, turn: Turn, pipeline: Any, action: Any) -> None:
    """`Issue -> Resolution` lines in replies and outputs of the items that are done, and what documentation writers wrote."""
    run, step = turn.existing(engine.name), _step(pipeline, action["step"])
    known = [entry["text"] for kind in ("lessons", "updates") for entry in run["memory"][kind]]
    fresh, index, updates = [], [], []
    for name, attempt in run["attempts"].items():
        if attempt["step"] != step["id"] or attempt["status"] != "completed":
            continue
        outputs = [path for path in attempt["receipt"].get("outputs", {}) if existing(engine.workspace.root, path)]
        texts = [_reply(engine, name), *(_read(engine, path) for path in outputs)]
        for lesson in (one for text in texts for one in lessons(text)):
            told = f"{lesson['issue']} → {lesson['resolution']}"
            if told not in known:
                known.append(told)
                fresh.append({"who": attempt["role"], "step": step["number"], "text": told, "invalidated": None})
        if attempt["role"] == "documentation-writer":
            for path in dict.fromkeys([*outputs, *attempt["receipt"].get("touched", [])]):
                told = f"Updated `{path}` — {attempt['summary']}"
                if told not in known and existing(engine.workspace.root, path):
                    index.append({"artifact": path, "sections": _sections(_read(engine, path)), "who": attempt["role"]})
                    updates.append({"who": attempt["role"], "step": step["number"], "text": told, "invalidated": None})
    for kind, entries in (("lessons", fresh), ("index", index), ("updates", updates)):
        written: Any = {"do": "WriteMemory", "kind": kind, "entries": entries}
        turn.do(engine.name, written, pipeline)


def _sections(text: str) -> str:
    """The headings of a document, for the index."""
    titles = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith(("# ", "## "))]
    return ", ".join(title.replace("|", "/") for title in titles[:6])


def _reply(engine: Any, name: str) -> str:
    return continuing.read(f"{engine.directory(name)}/reply") or continuing.read(f"{engine.directory(name)}/stdout")


# ---- the review tier -------------------------------------------------------------------------------


def _review_tier(engine: Any, turn: Turn, pipeline: Any, action: Any) -> dict[str, Any]:
    """Full, Standard or Lightweight, by what changed since the run's start; without git: Full."""
    base = turn.existing(engine.name)["settings"].get("base_commit", "")
    tier, reason = _tier(engine.workspace.root, base, documents(turn.existing(engine.name), pipeline))
    turn.do(engine.name, {"do": "SetFlags", "flags": {"review_tier": tier, "review_tier_reason": reason}}, pipeline)
    return {"tier": tier, "reason": reason}


def _tier(root: str, base: str, folder: str) -> tuple[str, str]:
    shown = subprocess.run(
        ["git", "diff", "--numstat", base or "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    if shown.returncode != 0:
        return "Full", "there is no git history to measure the change by"
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    others = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=False
    )
    rows += [[str(_lines(root, path)), "0", path] for path in others.stdout.splitlines()]
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


_ACTIONS = {"prune-memory": _prune, "extract-lessons": _extract_lessons, "choose-review-tier": _review_tier}
