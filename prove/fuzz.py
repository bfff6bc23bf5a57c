"""Words, values, commands and files that nobody would send on purpose, and those that somebody would, slightly changed.

Everything is drawn from one seeded generator: the same seed gives the same million.
"""

from __future__ import annotations

import json
import random
from typing import Any

from prove.frame import ROOT

TEXTS = (
    "",
    " ",
    "\n",
    "\t",
    "\0",
    "a",
    "A" * 300,
    "x" * 5000,
    "é",
    "💥",
    "\ud800",
    "\u202eabc",
    "\ufeff",
    "٣",
    "..",
    "../x",
    "/etc/passwd",
    "~",
    "a/b",
    "a\\b",
    "con",
    "-",
    "--",
    "--json",
    "-C",
    "{",
    "}",
    "{}",
    "[]",
    "null",
    "true",
    "false",
    "-1",
    "0",
    "1",
    "1e400",
    "NaN",
    "9" * 40,
    "%s",
    "{{x}}",
    "$(x)",
    "`x`",
    "'",
    '"',
    "'\"",
    ";",
    "|",
    "a: b",
    "phase: spec",
    "content:",
    "task:",
    "\x1b[31m",
    "</x>",
    "2026-01-02T03:04:05Z",
    "2026-13-45",
    "0001-01-01T00:00:00Z",
    "spec",
    "plan",
    "design",
    "success",
    "failed",
    "approve",
    "reject",
    "DONE:",
    "NEEDS_REVISION:",
    "IMPLEMENT",
    "completed",
    "pending",
    "understanding",
    "planning",
    "T-1",
    "T-2",
    "Dark mode",
    "dark-mode",
)
NUMBERS = (0, 1, -1, 2, 3, 99, 100, 101, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, True, False)

CONTEXT = {
    "INIT": ("task", "mode", "workflow"),
    "START_PHASE": ("phase",),
    "END_PHASE": ("phase", "status"),
    "PAUSE": ("reason", "recommendations"),
    "SET_GATE": ("gate", "prompt", "artifacts"),
    "RESUME": ("decision",),
    "STORE": ("phase", "task_id", "iteration", "content"),
    "RETRIEVE": ("needs", "for_phase"),
    "QUERY": ("question",),
    "SUMMARY": (),
    "METRICS": ("format", "filter"),
    "HISTORY": ("filter",),
    "LIST": (),
}
FLOW = (
    "initialize_workflow",
    "update_delegation",
    "update_completion",
    "update_user_checkpoint",
    "update_commit",
    "update_phase",
    "get_current_state",
    "resume_workflow",
)
FLOW_FIELDS = (
    "agent",
    "task",
    "output_summary",
    "phase",
    "approved",
    "user_feedback",
    "step",
    "commit_hash",
    "commit_message",
    "status",
    "context_summary",
    "description",
    "quality_gates",
    "validation_results",
    "blocking_issues",
    "step_number",
    "ticket",
)
STAGED = (
    "init",
    "read",
    "update",
    "record-output",
    "record-failure",
    "validate-gate",
    "advance",
    "record-review",
    "record-coverage",
    "restart",
    "stop",
    "resume",
    "unblock",
    "owner",
)
STAGED_FIELDS = (
    "task",
    "phase",
    "content",
    "file",
    "error",
    "context",
    "status",
    "issues",
    "percent",
    "coverage",
    "stage",
    "reason",
    "pid",
    "gate",
    "pipelineProfile",
    "taskAnalysis",
    "coverageThreshold",
    "maxFixAttempts",
    "minBlockSeverity",
    "version",
    "stages",
    "currentPhase",
)
FEATURE = ("start", "answer", "task", "status", "resume", "cancel", "done", "skip")
HOOKS = (
    "SessionStart",
    "PreCompact",
    "SubagentStart",
    "SubagentStop",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "UserPromptSubmit",
    "BeforeAgent",
    "task_update",
)
PAYLOADS = [
    json.loads(path.read_text())["stdin"] for path in sorted((ROOT / "tests" / "data" / "payloads").glob("*/*.json"))
] + [
    {
        "agentName": "spec-writer",
        "completedPhase": "spec",
        "nextPhase": "plan",
        "filesCreated": ["a.md"],
        "timestamp": "2026-01-02T03:04:05Z",
    },
    {
        "type": "task_update",
        "taskId": 1,
        "newStatus": "completed",
        "nextTaskId": 2,
        "filesCreated": [],
        "timestamp": "2026-01-02T03:04:05Z",
    },
    {
        "reason": "context_limit",
        "currentPhase": "spec",
        "currentTask": {"id": 1, "description": "x"},
        "timestamp": "2026-01-02T03:04:05Z",
    },
]


class Fuzz:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def text(self) -> str:
        dice = self.dice
        roll = dice.random()
        if roll < 0.75:
            return dice.choice(TEXTS)
        if roll < 0.9:
            return dice.choice(TEXTS)[:200] + dice.choice(TEXTS)[:200]
        return "".join(
            chr(dice.choice((dice.randrange(128), dice.randrange(0xD800), dice.randrange(0x110000)))) for _ in range(8)
        )

    def value(self, depth: int = 3) -> Any:
        roll = self.dice.random()
        if roll < 0.35 or not depth:
            return self.text()
        if roll < 0.55:
            return self.dice.choice(NUMBERS)
        if roll < 0.65:
            return None
        if roll < 0.8:
            return [self.value(depth - 1) for _ in range(self.dice.randrange(4))]
        if roll < 0.82:
            return self._deep(80)
        return {self.text(): self.value(depth - 1) for _ in range(self.dice.randrange(4))}

    def _deep(self, depth: int) -> Any:
        made: Any = 1
        for _ in range(depth):
            made = [made] if self.dice.random() < 0.5 else {"a": made}
        return made

    def plausible(self, field: str) -> Any:
        """Often what belongs there, so that more than the first check is reached."""
        known = {
            "phase": ("spec", "architect", "understanding", "planning", "0", "1.2", "2.1", "2.3"),
            "status": ("success", "failed", "completed"),
            "task": ("Dark mode", "Light mode"),
            "decision": ("approve", "reject", "retry"),
            "gate": ("design", "final"),
            "agent": ("deep_research", "plan_work"),
            "approved": (True, False, "true"),
            "format": ("summary", "detailed", "json"),
            "ticket": ("T-1", "T-2", ""),
            "content": ("# A", {"status": "approved", "issues": []}),
            "stage": ("PLAN", "IMPLEMENT"),
            "pipelineProfile": ("minimal", "standard", "thorough"),
            "percent": (50, 90),
            "error": ("x",),
            "question": ("dark mode",),
        }.get(field)
        return self.dice.choice(known) if known and self.dice.random() < 0.6 else self.value(2)

    def fields(self, names: tuple[str, ...]) -> dict[str, Any]:
        chosen = [name for name in names if self.dice.random() < (0.8 if len(names) < 5 else 0.25)]
        made = {name: self.plausible(name) for name in chosen}
        if self.dice.random() < 0.1:
            made[self.text()] = self.value(2)
        return made

    def context(self) -> str:
        name = self.dice.choice(list(CONTEXT)) if self.dice.random() < 0.95 else self.text()
        parts = [name if self.dice.random() < 0.9 else name.lower()]
        for field in CONTEXT.get(name, ("task",)):
            if self.dice.random() < 0.85:
                value = self.plausible(field)
                parts.append(f"{field}: {value if isinstance(value, str) else json.dumps(value)}")
        if self.dice.random() < 0.1:
            self.dice.shuffle(parts)
        return (" " if self.dice.random() < 0.9 else self.dice.choice(("\n", "", ": "))).join(parts)

    def words(self) -> list[str]:
        return [self.text() for _ in range(self.dice.randrange(4))]

    def payload(self) -> Any:
        made = json.loads(json.dumps(self.dice.choice(PAYLOADS)))
        for _ in range(self.dice.randrange(4)):
            made = self.changed(made)
        return made

    def changed(self, record: Any) -> Any:
        """One place of a record is another now: replaced, removed, added or doubled."""
        if not isinstance(record, dict | list) or not record or self.dice.random() < 0.05:
            return self.value()
        keys: list[Any] = list(record) if isinstance(record, dict) else list(range(len(record)))
        key = self.dice.choice(keys)
        roll = self.dice.random()
        if roll < 0.5 and isinstance(record[key], dict | list):
            record[key] = self.changed(record[key])
        elif roll < 0.75:
            record[key] = self.value()
        elif roll < 0.9:
            del record[key]
        elif isinstance(record, dict):
            record[self.text()] = self.value()
        else:
            record.insert(key, self.value())
        return record

    def file(self, content: bytes) -> bytes:
        """A state file as somebody else may have left it."""
        roll = self.dice.random()
        try:
            record = json.loads(content)
        except ValueError:
            record = None
        if record is not None and roll < 0.7:
            for _ in range(self.dice.randrange(1, 4)):
                record = self.changed(record)
            text = json.dumps(record, indent=self.dice.choice((None, 2)), ensure_ascii=self.dice.random() < 0.7)
            return text.encode("utf-8", "surrogatepass")
        at = self.dice.randrange(len(content) + 1)
        if roll < 0.8:
            return content[:at] + self.text().encode("utf-8", "surrogatepass") + content[at:]
        if roll < 0.85:
            return self.dice.randbytes(self.dice.randrange(200))
        if roll < 0.9:
            return content[:at]
        lines = content.splitlines(keepends=True)
        self.dice.shuffle(lines)
        return b"".join(lines[: self.dice.randrange(len(lines) + 1)])
