"""Audits: each one stored is also added to audit-history.json, and says what follows.

    {"audit_type", "verdict", "iteration", "issues": [...], "kickback_context", "memory_candidates"}

An answer in JSON (alone, or in a code block) is added as it is; prose as {iteration, text}. What the
verdict amounts to, and how often work goes back, is decided in core/.
"""

from __future__ import annotations

from tenuto.dialects.context.places import folder_of
from tenuto.encoding import NotJson, loads_strict, pretty
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Turn

_AGAIN = {"DESIGN_FLAW": "architect-revision", "IMPLEMENTATION_FLAW": "implementation-fix"}
_ONWARD = {"design-audit": "SET_GATE gate: design", "impl-audit": "SET_GATE gate: final"}


def record_audit(
    turn: Turn, run: Run, phase: str, small: bytes, content: tuple[bytes | None, str], iteration: int, path: str
) -> tuple[int, list[str], dict[str, str]]:
    """(its number, the files touched, what to say). `small` is empty where the audit is too large to be read."""
    number = iteration or _last_number(run, phase) + 1
    text = small.decode("utf-8", "replace")
    answer = find_answer(text)
    if answer is not None:
        entry = {**answer, "iteration": answer.get("iteration", number)}
        number = iteration or _as_number(answer.get("iteration")) or number
    else:
        entry = {"iteration": number, "text": text if small else f"(too large to be repeated here; see {path})"}
    log = f"{folder_of(run['id'])}/audit-history.json"
    history = read_history(turn, run)
    if entry not in history:
        turn.store(run["id"], "audit-history", log, pretty([*history, entry]).encode(), step=phase)
    return number, [path, log], _what_follows(run, phase, answer)


def _last_number(run: Run, phase: str) -> int:
    known = run["artifacts"].get(phase)
    return _as_number((known["attempt"] or "").rpartition("-")[2]) if known else 0


def _as_number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 7 else 0


def find_answer(text: str) -> dict[str, Any] | None:
    """The auditor's JSON: the whole text, or the first code block that holds one."""
    for body in (text, *_blocks(text)):
        bare = body.strip()
        if bare.startswith("{") and bare.endswith("}"):
            try:
                answer = loads_strict(bare)
            except NotJson:
                continue
            if isinstance(answer, dict) and ("verdict" in answer or "audit_type" in answer):
                return answer
    return None


def _blocks(text: str) -> list[str]:
    blocks: list[str] = []
    mark, lines = "", [""]
    for line in text.splitlines():
        bare = line.strip()
        if not mark and bare.startswith(("```", "~~~")):
            mark, lines = bare[: len(bare) - len(bare.lstrip("`~"))], []
        elif mark and bare == mark:
            blocks.append("\n".join(lines))
            mark = ""
        elif mark:
            lines.append(line)
    return blocks


def read_history(turn: Turn, run: Run) -> list[Any]:
    path = f"{folder_of(run['id'])}/audit-history.json"
    turn.look(run["id"], path, "audit-history")
    known = run["artifacts"].get("audit-history")
    if known is None:
        return []
    try:
        history = loads_strict(turn.workspace.files().stored(turn.tx, known["sha256"]))
    except NotJson as error:
        raise Refused("bad-audit-history", f"{path} cannot be read: {error}", "correct it, or move it away") from None
    # Another shape is somebody else's: theirs stays, as the first entry.
    return history if isinstance(history, list) else [history]


def _what_follows(run: Run, phase: str, answer: dict[str, Any] | None) -> dict[str, str]:
    if answer is None:
        return {}
    from tenuto.core.feedback import after_audit
    from tenuto.core.rules import audit

    judged = audit(_with_issues(answer))
    verdict = judged["verdict"]
    again = _AGAIN.get(verdict, "")
    taken = sum(1 for name in run["artifacts"] if again and name.startswith(f"{again}-"))
    following = {"on": _ONWARD[phase], "again": f"{again} iteration: {taken + 1}", "pause": "PAUSE"}[
        after_audit(verdict, taken)
    ]
    because = f" ({judged['reason']})" if judged["reason"] else ""
    return {"next": following, "said": f" | verdict: {verdict}{because} | next: {following}"}


def _with_issues(answer: dict[str, Any]) -> dict[str, Any]:
    """Auditors put their issues at the top, or inside their review."""
    if "issues" in answer:
        return answer
    for review in ("design_review", "implementation_review"):
        inner = answer.get(review)
        if isinstance(inner, dict) and isinstance(inner.get("issues"), list):
            return {**answer, "issues": inner["issues"]}
    return answer
