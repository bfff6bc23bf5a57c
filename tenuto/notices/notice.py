"""What a notice says: which moment it is, in which repository and run, what waits, what it has cost, and where to look.

    notice = notice_of(run, repository)              at the moment that the run rests at
    notice = notice_of(run, repository, "asks")      a person at a terminal is about to be asked

Programs get it whole; people read its `title` and `text`, the same words everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict
from urllib.parse import quote

from tenuto.core.budget import money
from tenuto.core.status import moment_of, open_ends, shown_status_of, waits_for
from tenuto.encoding import escape_terminal

if TYPE_CHECKING:
    from tenuto.core.records.run import Moment, Run, Waiting

_LONGEST = 1000  # characters of what waits, for people: a chat shows no more, and a file is behind the link


class Cost(TypedDict):
    attempts: float
    tokens: float
    micro_usd: float


class Notice(TypedDict):
    moment: Moment
    repository: str
    run: str
    status: str
    step: str | None
    prompt: str  # what waits: a gate's prompt, an agent's question, why it paused
    error: str
    until: str  # when the run goes on by itself, where it does
    cost: Cost
    link: str  # its page; empty where the settings name none
    command: str  # where to look in a terminal
    title: str
    text: str
    open_ends: NotRequired[list[str]]


_WORDS: dict[Moment, str] = {
    "asks": "asks for a decision",
    "gate": "waits for a decision",
    "question": "has a question",
    "limit": "has come to a limit",
    "time": "waits for a time",
    "pause": "is paused",
    "blocked": "is blocked",
    "completed": "is completed",
    "completed with failures": "is completed with failures",
    "failed": "has failed",
    "cancelled": "is cancelled",
}


def notice_of(run: Run, repository: str, moment: Moment | None = None) -> Notice:
    waiting, ends = waits_for(run), open_ends(run)
    spent = run["budget"]["spent"]
    said = moment or moment_of(run)
    notice: Notice = {
        "moment": said,
        "repository": repository,
        "run": run["id"],
        "status": shown_status_of(run),
        "step": run["position"],
        "prompt": waiting["reason"] if waiting else "",
        "error": run["failure"]["error"] if run["failure"] else "",
        "until": _until(waiting),
        "cost": {
            "attempts": spent.get("attempts", 0),
            "tokens": spent.get("tokens", 0),
            "micro_usd": spent.get("micro_usd", 0),
        },
        "link": "",
        "command": f"tenuto status {run['id']}",
        "title": f"{repository}: {run['id']} {_WORDS[said]}",
        "text": "",
    }
    left = [*ends["failed"], *ends["never_started"], *ends["not_done"], *ends["checks"]]
    if left:
        notice["open_ends"] = left
    return notice


def _until(waiting: Waiting | None) -> str:
    return waiting["until"] if waiting and waiting["kind"] == "time" else ""


def with_words(notice: Notice, page: str) -> Notice:
    """The notice as one target gets it. `page`: where `tenuto ui` can be reached from there."""
    link = f"{page.rstrip('/')}/runs/{quote(notice['run'], safe='')}" if page else ""
    return {**notice, "link": link, "text": _text(notice, link)}


def _text(notice: Notice, link: str) -> str:
    """Lines for people. What agents wrote is shown as characters and does nothing to the place where it is shown."""
    lines = [notice["prompt"] or notice["error"]]
    lines += [f"left open: {', '.join(notice['open_ends'])}"] if notice.get("open_ends") else []
    lines += [f"step: {notice['step']}"] if notice["step"] and lines[0] else []
    lines += [f"until: {notice['until']}"] if notice["until"] else []
    lines += [f"cost: {_cost(notice['cost'])}", link or notice["command"]]
    return "\n".join(escape_terminal(_cut(line), keep="\n") for line in lines if line)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def _cost(cost: Cost) -> str:
    attempts = f"{cost['attempts']:,.0f} attempt{'' if cost['attempts'] == 1 else 's'}"
    tokens = f"{cost['tokens']:,.0f} tokens" if cost["tokens"] else ""
    return ", ".join(part for part in (attempts, tokens, money(cost["micro_usd"]) if cost["micro_usd"] else "") if part)
