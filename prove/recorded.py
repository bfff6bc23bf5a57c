"""A recorded journal, and what must come of it on every version.

    tests/replay/NAME/journal.jsonl    a backup, as `tenuto export` wrote it then
                      state.json       the folded runs, and the fold version of then
                      files.json       every file that the runs showed: path -> text

Recordings are kept for ever and never made anew: a version that makes something else of one is wrong. A newer fold
may keep more about a run than was known then, and may call a field by another name (`as_called_today` has every such
name); whatever was known then must be the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prove.frame import ROOT
from prove.looking import opened
from tenuto import __version__
from tenuto.core.fold import _APPLY, FOLD_VERSION, apply
from tenuto.core.parts import new_run
from tenuto.encoding import dumps, loads
from tenuto.workspace.backup import export, import_lines

FOLDER = ROOT / "tests" / "replay"


# No command has ever led to these; they stand in the list of events, and are folded.
NEVER_WRITTEN = ("WaveStarted", "WaveEnded")


# What folds before version 8 called the fields of a run.
_RUN_OF_THEN = {
    "stay": "current_visit",
    "flying": "in_flight",
    "words": "last_verdicts",
    "carried": "handed_over",
    "told_at": "reported_at",
}
_VISIT_OF_THEN = {"did": "done_actions"}


def names() -> list[str]:
    return sorted(path.name for path in FOLDER.iterdir() if (path / "journal.jsonl").is_file())


def unrecorded() -> list[str]:
    """Kinds of event that stand in no recording: they could mean something else tomorrow, and nobody would see it."""
    told = "\n".join((FOLDER / name / "journal.jsonl").read_text() for name in names())
    return [kind for kind in _APPLY if kind not in NEVER_WRITTEN and f'{{"type":"{kind}"' not in told]


def record(root: Path, name: str) -> None:
    """What stands in this repository, as a new recording."""
    folder = FOLDER / name
    if folder.exists():
        raise FileExistsError(f"{folder}: a recording is never made anew")
    with opened(root) as workspace:
        lines = [dumps(line) for line in export(workspace, __version__)]
        runs = _runs(workspace)
        files = _rendered(workspace, runs)
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "state.json").write_text(f"{dumps({'fold': FOLD_VERSION, 'runs': runs})}\n")
    (folder / "files.json").write_text(f"{dumps(files)}\n")


def _runs(workspace: Any) -> dict[str, Any]:
    with workspace.journal.read() as reader:
        return {card["id"]: reader.load(card["id"]) for card in reader.runs()}


def _rendered(workspace: Any, runs: dict[str, Any]) -> dict[str, str]:
    with workspace.journal.read() as reader:
        repo = reader.load_repo()
        files = {path: b"".join(reader.log_text(path)).decode() for path, _ in reader.logs()}
    for run in runs.values():
        for dialect in run["dialects"]:
            shown = workspace.views[dialect].render(run, repo)
            files |= {path: body.decode() for path, body in shown.items()}
    return files


def replay(name: str, root: Path) -> list[str]:
    """Read the recording into an empty repository; what is different now."""
    folder = FOLDER / name
    told = loads((folder / "state.json").read_text())
    files: dict[str, str] = loads((folder / "files.json").read_text())
    (root / ".git" / "tenuto").mkdir(parents=True, exist_ok=True)
    with opened(root) as workspace:
        import_lines(workspace, (folder / "journal.jsonl").read_bytes().splitlines(keepends=True))
        runs = _runs(workspace)
        found = [f"{name}: run {run} is not there" for run in told["runs"].keys() - runs.keys()]
        for run, recorded in told["runs"].items():
            if run in runs:
                before = as_called_today(recorded, told["fold"])
                found += [
                    f"{name}: {run}: {line}" for line in _compare(workspace, run, before, runs[run], told["fold"])
                ]
        shown = _rendered(workspace, runs)
    found += [f"{name}: {path} is not shown any more" for path in files.keys() - shown.keys()]
    found += [
        f"{name}: {path} is other bytes now" for path, text in files.items() if path in shown and shown[path] != text
    ]
    return found


def as_called_today(run: dict[str, Any], fold: int) -> dict[str, Any]:
    """A recorded run, its fields called what they are called today; no value is changed."""
    if fold < 8:
        run = {_RUN_OF_THEN.get(field, field): value for field, value in run.items()}
        if run["current_visit"] is not None:
            visit = run["current_visit"]
            run["current_visit"] = {_VISIT_OF_THEN.get(field, field): value for field, value in visit.items()}
    if fold < 9:
        if run["current_visit"] is not None:
            run["current_visit"]["leg"] = run["current_visit"].pop("hop")
        if run["pause"] is not None:
            # One field held feedback, the time at which a parked run goes on, or the attempt that asks a person.
            value = run["pause"].pop("last_feedback")
            field = {"parked": "until", "question": "question_of"}.get(run["pause"]["kind"], "feedback")
            run["pause"][field] = value
    return run


def _compare(workspace: Any, run: str, before: Any, now: Any, fold: int) -> list[str]:
    with workspace.journal.read() as reader:
        told = [dumps(event) for event in reader.events(run)]
    found = ["folded one by one, it is another run"] if _folded("", told) != dumps(now) else []
    kept = ""
    for number, event in enumerate(told, 1):
        kept = _folded(kept, [event])
        if _folded(kept, told[number:]) != dumps(now):
            found.append(f"folded from the state after event {number} on, it is another run")
    if fold == FOLD_VERSION and dumps(before) != dumps(now):
        found.append("it is not byte for byte the same, and the fold has the same version")
    return found + list(_changed(before, now, ""))


def _folded(kept: str, told: list[str]) -> str:
    """As the journal does it: a kept state is text, and so is every event."""
    state: Any = loads(kept) if kept else new_run()
    for event in told:
        apply(state, loads(event))
    return dumps(state)


def _changed(before: Any, now: Any, where: str) -> list[str]:
    """What was known then and is not the same now. New keys are no difference."""
    if isinstance(before, dict) and isinstance(now, dict):
        gone = [f"{where}{key} is gone" for key in before if key not in now]
        return gone + [
            line for key in before if key in now for line in _changed(before[key], now[key], f"{where}{key}.")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            line
            for number, (one, other) in enumerate(zip(before, now, strict=True))
            for line in _changed(one, other, f"{where}{number}.")
        ]
    return [] if before == now else [f"{where.rstrip('.')}: {json.dumps(before)[:80]} became {json.dumps(now)[:80]}"]
