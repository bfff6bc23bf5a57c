"""What came of a run, for people: a summary, and the text of a pull request. Made from the run alone.

Agents' words stand in these texts as quotations: one line each, without marks that would make them headings or commands.
"""

from __future__ import annotations

from tenuto.core.records import Run


def summary(run: Run) -> str:
    parts = [
        f"# {_line(run['name'])}",
        "",
        f"{run['status']}, pipeline {run['pipeline']['name']}, {len(run['attempts'])} attempts.",
    ]
    if run["failure"]:
        parts += ["", f"ERROR: {_line(run['failure']['error'])}"]
    parts += ["", "## Steps", "", "| Step | Visit | Result |", "| --- | --- | --- |"]
    parts += [f"| {visit['step']} | {visit['iteration']} | {visit['status']} |" for visit in run["visits"]]
    if unresolved(run):
        parts += ["", f"Went on without a DONE of: {', '.join(unresolved(run))}"]
    parts += [*_items(run), *_checks(run), *_false_claims(run)]
    return "\n".join(parts).rstrip() + "\n"


def pull_request(run: Run, folder: str) -> str:
    settings = run["settings"]
    parts = [f"# {_line(run['name'])}", "", _quoted(run["request"]), "", "## What was done", ""]
    done = [f"- {name}: {_line(item['title'])}" for name, item in run["items"].items() if item["status"] == "completed"]
    parts += done or ["- see the commits"]
    parts += [*_open_ends(run), *_checks(run)]
    parts += ["", "## How it was made", "", f"Run `{run['id']}` of the pipeline `{run['pipeline']['name']}`: {run['status']}, {len(run['attempts'])} attempts."]  # fmt: skip
    parts.append(
        f"Documents: `{folder}/`. Branch: `{settings.get('branch', '')}`, from `{settings.get('from_branch') or settings.get('base_commit', '')[:12]}`."
    )
    return "\n".join(parts).rstrip() + "\n"


def unfinished(run: Run, *states: str) -> list[str]:
    """Items that were planned and never started (or are in these states), by name."""
    return [name for name, item in run["items"].items() if item["status"] in (states or ("pending", "skipped"))]


def unresolved(run: Run) -> list[str]:
    """Steps that a run which ended well went on from without their DONE."""
    if run["status"] not in ("completed", "poc-complete", "graduated"):
        return []
    return [f"{name} ({step['verdict']})" for name, step in run["steps"].items() if step["verdict"] not in (None, "", "DONE")]


def _items(run: Run) -> list[str]:
    if not run["items"]:
        return []
    rows = [f"| {name} | {_line(item['title'])} | {_word(item['status'])} |" for name, item in run["items"].items()]
    return ["", "## Items", "", "| Item | Title | State |", "| --- | --- | --- |", *rows]


def _word(status: str) -> str:
    return "never started" if status in ("pending", "skipped") else status


def _open_ends(run: Run) -> list[str]:
    left = [
        f"- {name}: {_line(item['title'])} ({_word(item['status'])})"
        for name, item in run["items"].items()
        if item["status"] != "completed"
    ]
    left += [f"- the run went on without a DONE of {step}" for step in unresolved(run)]
    return ["", "## Not done", "", *left] if left else []


def _checks(run: Run) -> list[str]:
    found = [
        f"- `{_line(check['command'])}`: {check.get('reason') or 'passed'} (after {name})"
        for name, attempt in run["attempts"].items()
        for check in attempt["receipt"].get("checks", [])
    ]
    return ["", "## Checks the engine ran itself", "", *found] if found else []


def _false_claims(run: Run) -> list[str]:
    found = [
        f"- {name}: {_line(attempt['receipt']['problem'])}"
        for name, attempt in run["attempts"].items()
        if attempt["receipt"].get("problem")
    ]
    return ["", "## Claims that did not hold", "", *found] if found else []


def _line(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")[:300]


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines())
