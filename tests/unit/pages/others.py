"""Records of the pages besides inbox and run."""

from __future__ import annotations

from typing import Any

from tenuto.pages.compare import Choice, Comparison, Replayed, WhatIf, compare_page
from tenuto.pages.evidence import Kept, artifact_page, attempt_page
from tenuto.pages.figures import figures_page, machine_page
from tenuto.pages.page import Page
from tenuto.show.score import ghost_view
from tests.unit.pages.records import SITE, difference, hostile, page_of, played

AT = "2026-11-15T10:00:00.000Z"


def attempt(**more: Any) -> Any:
    view = next(one for one in page_of(played(30))["run"]["attempts"] if one["ended_at"])
    said: Any = {"verdict": "DONE", "summary": "all tests pass"}
    found: Any = {"verdict": "ERROR", "problem": "the engine ran 'make test' itself: exit status 1\nTraceback"}
    return {
        "attempt": {**view, "verdict": "ERROR", "said": said, "found": found, "item": "01", "follows": "a"},
        "task": "do it",
        "is_refuted": True,
        "took_ms": 1200,
        "checks": [{"name": "tests", "reason": "exit status 1"}, {"name": "build", "reason": ""}],
        "outputs": ["docs/plan.md"],
        "touched": ["docs/plan.md", "src/a.py"],
        "merged": "ab" * 20,
        "conflict": "both changed a.py",
        "kept": "tenuto/kept",
        "leftover": [],
        "starts": 2,
        "earlier": ["a"],
        "later": ["b"],
        "logs": [log_file("output", 1), log_file("output", 2), log_file("checks", 0), log_file("reply", 1)],
        **more,
    }


def log_file(kind: str, start: int) -> Any:
    return {"kind": kind, "start": start, "name": "tests", "path": "p", "size": 900, "is_narrated": False}


def log_part(text: str = "one\ntwo\n", first: int = 100, size: int = 900) -> Any:
    last = first + len(text.encode("utf-8", "replace"))
    return {"path": "p", "first": first, "last": last, "size": size, "text": text, "is_whole_line": True}


def artifact(**more: Any) -> Any:
    versions = [
        {"sha256": sha * 32, "size": 12, "seq": 9, "at": AT, "step": "planning", "by": "planning-1-planner-1"}
        for sha in ("ab", "cd")
    ]
    document = {"sha256": "ab" * 32, "size": 12, "text": "# Plan\n", "why_not": ""}
    return {
        "name": "plan.md",
        "path": "docs/plan.md",
        "versions": versions,
        "document": document,
        "against": "",
        "diff": None,
        **more,
    }


def figures() -> Any:
    group = {
        "name": "2026-11-16",
        "runs": 3,
        "unknown": 1,
        "well": 1,
        "failed": 1,
        "attempts": 9,
        "refuted": 2,
        "micro_usd": 10_000,
        "tokens": None,
        "busy_ms": 9000,
        "latest": 2,
        "retries": 1,
        "waited_ms": 500,
    }
    worker = {
        "name": "planner",
        "attempts": 3,
        "retries": 1,
        "refuted": 1,
        "micro_usd": 5000,
        "tokens": 10,
        "ms": 100,
        "median_ms": None,
    }
    return {
        "all": group,
        "by_pipeline": [group],
        "by_week": [group, {**group, "micro_usd": None, "unknown": 3}],
        "latest": 3,
        "by_role": [worker],
        "by_agent": [worker, {**worker, "micro_usd": None}],
        "waiting": {"decisions": 2, "median_ms": 1000, "longest_ms": 2000, "total_ms": 3000},
        "forecasts": [{"pipeline": "quick", "runs": 2, "likely": {"attempts": 4.0, "ms": None}, "worst": {"ms": 10.0}}],
    }


def machine() -> Any:
    return {
        "version": "0.1",
        "python": "3.11",
        "system": "Linux",
        "journal": "journal.db",
        "gates": "guarded",
        "checks": [
            {"status": status, "name": "git", "message": "it works", "fix": "tenuto init", "code": ""}
            for status in ("ok", "note", "problem")
        ],
        "settings": [{"name": "agent", "value": {"a": ["b"]}, "shape": "a name", "example": "claude"}],
        "problem": "config.yaml cannot be read",
    }


def other_pages(text: str) -> list[Page]:
    """Each of them, with this text wherever somebody else may have written."""
    made = attempt()
    report: Any = {
        "runs": 1,
        "events": 9,
        "findings": [{"severity": "damage", "run": "r", "where": "w", "message": "m", "fix": "f"}],
    }
    play = played()
    ghost = ghost_view(play.run, play.pipeline, "implementation", 1, 8, "rolling")
    a, b = hostile(page_of(play), text), hostile(page_of(play), text)
    rolling: Any = {**hostile(ghost, text), "order": "rolling"}
    waves: Any = {**hostile(ghost, text), "order": "waves"}
    what_if = WhatIf(rolling, waves, [("implementation", 1), (text, 2)])
    trace = {"status": "completed", "why": text, "visits": [(text, text)], "attempts": [text], "routes": {}}
    found: Any = {"then": trace, "now": trace, "assumed": [text], "unused": [text], "differences": [text]}
    differences: Any = {
        "sides": ({"run": text}, {"run": text}),
        "steps": [],
        "params": [(text, text, text)],
        "artifacts": [(text, text, text)],
    }
    fork: Any = {
        "step": text,
        "steps": [text],
        "kept": [text],
        "again": [text],
        "attempts": 2,
        "micro_usd": 10_000,
        "command": text,
    }
    replayed = Replayed([text], text, found, text)
    comparison = Comparison([Choice(text, text)], a, b, differences, what_if, replayed, fork)
    bad: Any = hostile(made, text)
    bad["logs"] = [{**one, "name": text} for one in made["logs"]]
    hits: Any = {"hits": [{"at": 3, "line": text}], "more": True}
    return [
        attempt_page(text, text, bad, Kept("output", 0, log_part(text), None, text)),
        attempt_page(text, text, bad, Kept("reply", 0, log_part(text, 0))),
        attempt_page(text, text, bad, Kept("output", 0, log_part(text), hits, text)),
        attempt_page(text, text, bad, Kept("diff", difference=hostile(difference(), text))),
        artifact_page(text, text, hostile(artifact(), text)),
        artifact_page(text, text, hostile(artifact(), text), "source"),
        artifact_page(text, text, hostile(artifact(against="cd", diff=difference()), text)),
        figures_page(hostile(figures(), text)),
        machine_page(hostile(machine(), text), hostile(report, text)),
        compare_page(comparison, SITE),
    ]
