"""A run as one file, for a pull request or an archive: no script, nothing to load, nothing that leads anywhere.

Its foot names the run's number of events and the head of their chain: `tenuto verify` recomputes both, so a reader can
check that the file tells of the run that the journal holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import htpy as h

from tenuto.core.times import between
from tenuto.pages.card import decisions
from tenuto.pages.documents import coloured, difference, log, markdown
from tenuto.pages.page import Page, Section, file_document
from tenuto.pages.parts import Column, badge, band, facts, moment, short_hash, state_of, table, verdict
from tenuto.pages.score import drawing, lane_state, legend
from tenuto.show.measures import amount, amounts, span
from tenuto.show.sentences import first_line

if TYPE_CHECKING:
    from tenuto.show.changes import DiffView, ExportView, KeptDocument, KeptLog
    from tenuto.show.run_page import AmountView, RunPage
    from tenuto.show.views import AttemptView


def static_page(view: ExportView) -> str:
    page = view["page"]
    sections = [
        Section("status", _status(page)),
        Section("score", _score(page)),
        Section("refuted", _refuted(page)),
        Section("decisions", decisions(view["decisions"])),
        Section("attempts", _attempts(page)),
        Section("documents", [h.h2["Documents"], [_document(one) for one in view["documents"]]]),
        Section("changes", _changes(view["diff"])),
        Section("logs", _logs(view["logs"])),
        Section("history", _history(page)),
    ]
    seal = page["seal"]
    foot = [
        h.p[f"Run {seal['run']}: {seal['events']} events, chain head ", h.code[seal["head"]]],
        h.p["To check it against the journal: ", h.code[f"tenuto verify {seal['run']}"]],
    ]
    return file_document(Page(page["run"]["name"] or seal["run"], "runs", sections, seal["run"]), foot)


def _status(page: RunPage) -> h.Node:
    run = page["run"]
    ended = run["stopped_at"] or run["updated_at"]
    told = [
        ("pipeline", run["pipeline"]),
        ("started", moment(run["created_at"])),
        ("took", span(between(run["created_at"], ended))),
        ("attempts", str(len(run["attempts"]))),
        ("spent", amounts({unit: used for unit, used in run["spent"].items() if unit != "attempts"}) or "not reported"),
        *(
            (f"limit of {one['step'] or 'the run'}", f"{amount(one['unit'], one['spent'])} of {_limit(one)}")
            for one in page["budget"]
            if one["limit"] is not None
        ),
    ]
    failure, waiting = run["failure"], run["waiting"]
    return [
        h.h1[run["name"] or run["run"], " ", badge(state_of(run["status"]))],
        h.p[run["request"]] if run["request"] else None,
        band("bad", "failed", f"failed in {failure['step'] or 'no step'}: {failure['error']}") if failure else None,
        band("you", "fermata", waiting["reason"]) if waiting else None,
        facts([(name, value) for name, value in told]),
    ]


def _limit(one: AmountView) -> str:
    return amount(one["unit"], one["limit"] or 0)


def _score(page: RunPage) -> h.Node:
    score = page["score"]
    rows = [
        [
            lane["title"],
            badge(lane_state(lane)),
            lane["verdict"] or "",
            str(lane["visits"]),
            str(len(lane["bars"])),
            lane["reason"],
        ]
        for lane in score["lanes"]
    ]
    columns = [
        Column("step"),
        Column("state"),
        Column("verdict"),
        Column("visits", True),
        Column("attempts", True),
        Column("note"),
    ]
    chain = f", critical path {span(score['critical_ms'])}" if score["critical_ms"] else ""
    return [
        h.h2["Score", h.small[f"{span(score['real_ms'])} from begin to end{chain}"]],
        h.div(class_="score")[
            h.div(class_="music")[drawing("", score)], legend(), table("steps, as they went", columns, rows)
        ],
    ]


def _refuted(page: RunPage) -> h.Node:
    refuted = {bar["attempt"] for lane in page["score"]["lanes"] for bar in lane["bars"] if bar["is_refuted"]}
    mine = [one for one in page["run"]["attempts"] if one["attempt"] in refuted]
    if not mine:
        return [h.h2["Refuted claims"], h.p["None: every DONE of an agent stood."]]
    rows = [[one["attempt"], _said(one), _found(one)] for one in mine]
    return [
        h.h2["Refuted claims"],
        table("what was said, and what was found", [Column("attempt"), Column("it said"), Column("found")], rows),
    ]


def _said(attempt: AttemptView) -> str:
    said = attempt["said"]
    return f"{said['verdict'] or ''}: {first_line(said['summary'])}".strip(": ") if said else ""


def _found(attempt: AttemptView) -> str:
    found = attempt["found"]
    return first_line(found["problem"]) or str(found["verdict"]) if found else ""


def _attempts(page: RunPage) -> h.Node:
    rows = [
        [
            one["attempt"],
            one["agent"],
            verdict(one["verdict"], one["status"]),
            span(between(one["started_at"], one["ended_at"])) if one["ended_at"] else "under way",
            first_line(one["summary"]),
        ]
        for one in page["run"]["attempts"]
    ]
    columns = [Column("attempt"), Column("agent"), Column("verdict"), Column("took", True), Column("summary")]
    return [h.h2["Attempts"], table("every attempt", columns, rows)] if rows else None


def _document(one: KeptDocument) -> h.Node:
    text = one["document"]["text"]
    body: h.Node = h.p[one["document"]["why_not"]]
    if text is not None:
        is_markdown = one["path"].endswith((".md", ".markdown"))
        body = markdown(text) if is_markdown else h.pre[coloured(text, path=one["path"])]
    return h.details[h.summary[one["path"], " ", short_hash(one["document"]["sha256"]), f" by {one['by']}"], body]


def _changes(diff: DiffView | None) -> h.Node:
    return [h.h2["Changes"], h.p[diff["of"]], difference(diff)] if diff is not None else None


def _logs(logs: list[KeptLog]) -> h.Node:
    if not logs:
        return None
    return [h.h2["Logs"], list(_printed(logs))]


def _printed(logs: list[KeptLog]) -> Iterator[h.Element]:
    for one in logs:
        title = f"{one['attempt']}: {one['name']}" + (", its end" if one["is_cut"] else "")
        yield h.details[h.summary[title], h.pre[log(one["text"])]]


def _history(page: RunPage) -> h.Node:
    lines = page["history"]["lines"]
    rows = [[str(line["seq"]), moment(line["at"]), line["text"], line["by"]] for line in lines]
    columns = [Column("event", True), Column("when"), Column("what"), Column("by")]
    return [h.h2["History"], table("every event", columns, rows)]
