"""What a run left: the page of one attempt, and the page of one artifact.

Of an attempt: what it said beside what was found, and everything that is kept of it.

The two stand side by side, because the difference between them is what this page is for. Below: the reply, the log
from its end with a way to earlier parts, the prompt, the checks, what it changed in files, what it cost.

Of an artifact: the document, its versions with who made each, and the difference between any two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import htpy as h

from tenuto.pages import addresses, documents
from tenuto.pages.page import Page, Section
from tenuto.pages.parts import (
    Column,
    Row,
    State,
    badge,
    crumbs,
    empty,
    facts,
    mark,
    moment,
    pills,
    short_hash,
    size,
    state_of,
    table,
    tabs,
    verdict,
)
from tenuto.show.measures import amounts, span

if TYPE_CHECKING:
    from tenuto.show.attempts import AttemptPage, LogFile, LogHits, LogPart
    from tenuto.show.changes import ArtifactPage, DiffView

Shape = Literal["document", "source"]
Part = Literal["reply", "output", "errors", "prompt", "checks", "diff"]

_PARTS: tuple[tuple[Part, str], ...] = (
    ("reply", "Reply"),
    ("output", "Log"),
    ("errors", "Errors"),
    ("prompt", "Prompt"),
    ("checks", "Checks"),
    ("diff", "Difference"),
)
_MOST_FILES = 40


class Kept(NamedTuple):
    """What is looked at of the attempt besides its record."""

    part: Part
    file: int = -1
    """Which of the files of this kind; the last one is the last start."""
    log: LogPart | None = None
    hits: LogHits | None = None
    """Of a search in it."""
    words: str = ""
    difference: DiffView | None = None


def attempt_page(run: str, name: str, view: AttemptPage, kept: Kept) -> Page:
    """`name`: of the run, for people."""
    sections = [
        Section("head", _heading(run, name, view)),
        Section("said", _said_and_found(view)),
        Section("kept", [_tabs(run, view, kept.part), _kept(run, view, kept)]),
    ]
    return Page(f"{view['attempt']['attempt']} of {name}", "runs", sections, run)


def _heading(run: str, name: str, page: AttemptPage) -> h.Node:
    view = page["attempt"]
    state = state_of(view["verdict"] or view["status"])
    if page["is_refuted"]:
        state = State("bad", "cross", "its claim was refuted")
    tries = [*page["earlier"], view["attempt"], *page["later"]]
    again: h.Node = None
    if len(tries) > 1:
        again = pills(
            "tries at this place",
            ((f"try {n}", addresses.attempt(run, one), one == view["attempt"]) for n, one in enumerate(tries, 1)),
        )
    used = amounts({unit: amount for unit, amount in view["usage"].items() if unit != "attempts"})
    return [
        crumbs(("Runs", addresses.RUNS), (name, addresses.run(run)), last=view["step"]),
        h.div(class_="row-of")[h.h1[view["place"] or view["attempt"]], badge(state)],
        h.p(class_="more soft")[
            h.span[view["attempt"]],
            h.span[f"visit {view['visit']} of {view['step']}"],
            h.span[f"item {view['item']}"] if view["item"] else None,
            h.span["goes on with ", h.a(href=addresses.attempt(run, view["follows"]))[view["follows"]]]
            if view["follows"]
            else None,
        ],
        h.p(class_="lines")[page["task"]] if page["task"] else None,
        again,
        facts(
            [
                ("took", span(page["took_ms"]) if page["took_ms"] is not None else "at work"),
                ("begun", moment(view["started_at"])),
                ("role", view["role"]),
                ("agent", view["agent"] or "–"),
                ("used", used or "not reported"),
                *([("starts", str(page["starts"]))] if page["starts"] > 1 else []),
            ]
        ),
    ]


def _said_and_found(page: AttemptPage) -> h.Node:
    view = page["attempt"]
    said, found = view["said"], view["found"]
    return h.div(class_="grid-2 pair")[
        h.div(class_="sheet")[
            h.h2["It said"],
            [verdict(said["verdict"]), h.blockquote(class_="said lines")[said["summary"]]]
            if said
            else h.p(class_="soft")["Nothing yet." if not view["ended_at"] else "Its own word was not kept."],
        ],
        h.div(class_="sheet refuted" if page["is_refuted"] else "sheet")[
            h.h2["The receipt found"],
            [
                verdict(found["verdict"]),
                _problem(found["problem"]),
            ]
            if found
            else h.p(class_="soft")["It has not ended."],
            h.ul(class_="checks")[(_line(state, words) for state, words in _found(page))],
        ],
    ]


def _problem(text: str) -> h.Node:
    """The first line says it; what a command printed comes below."""
    first, _, rest = text.strip().partition("\n")
    return [
        h.p[h.strong[first]] if first else None,
        h.pre(class_="log short", tabindex="0", role="region", aria_label="what was printed")[documents.log(rest)]
        if rest
        else None,
    ]


def _line(state: State, words: h.Node) -> h.Element:
    return h.li(class_=state.tone)[mark(state.mark, state.words), h.span[words]]


_WELL, _BAD, _PLAIN = (
    State("well", "check", "holds"),
    State("bad", "cross", "does not hold"),
    State("idle", "document", "seen"),
)


def _found(page: AttemptPage) -> list[tuple[State, h.Node]]:
    lines: list[tuple[State, h.Node]] = []
    for path in page["outputs"]:
        lines.append((_WELL, ["delivered ", h.span(class_="mono")[path]]))
    for check in page["checks"]:
        words = check["reason"] or "passed"
        lines.append((_BAD if check["reason"] else _WELL, f"{check['name']}: {words}, run by the engine"))
    touched = [path for path in page["touched"] if path not in page["outputs"]]
    for path in touched[:_MOST_FILES]:
        lines.append((_PLAIN, ["touched ", h.span(class_="mono")[path]]))
    if len(touched) > _MOST_FILES:
        lines.append((_PLAIN, f"and {len(touched) - _MOST_FILES} more files"))
    if page["merged"]:
        lines.append((_WELL, ["merged as ", h.span(class_="seal")[page["merged"][:12]]]))
    if page["conflict"]:
        lines.append((_BAD, f"could not be merged: {page['conflict']}"))
    if page["kept"]:
        lines.append((_PLAIN, ["kept on branch ", h.span(class_="mono")[page["kept"]]]))
    return lines


# ---- what is kept


def _tabs(run: str, page: AttemptPage, here: Part) -> h.Element:
    kinds = {file["kind"] for file in page["logs"]}
    name = page["attempt"]["attempt"]
    return tabs(
        "what is kept of it",
        (
            (words, addresses.attempt(run, name, of=part) + "#kept", part == here)
            for part, words in _PARTS
            if part in kinds or part in (here, "diff")
        ),
    )


def _kept(run: str, page: AttemptPage, kept: Kept) -> h.Node:
    if kept.part == "diff":
        if kept.difference is None or not kept.difference["files"]:
            return h.div(class_="sheet")[empty("document", "It changed no files that are kept")]
        return [h.p(class_="soft small")[kept.difference["of"]], documents.difference(kept.difference)]
    if kept.log is None or not kept.log["size"]:
        return h.div(class_="sheet")[
            empty("document", "Nothing was kept of it" if page["attempt"]["ended_at"] else "Nothing yet")
        ]
    files = [file for file in page["logs"] if file["kind"] == kept.part]
    return [_files(run, page, kept, files), _tools(run, page, kept, kept.log), _text(kept, kept.log)]


def _files(run: str, page: AttemptPage, kept: Kept, files: Sequence[LogFile]) -> h.Node:
    """Where there is more than one: of several starts, or several commands."""
    if len(files) < 2:
        return None
    here = kept.file % len(files)
    name = page["attempt"]["attempt"]
    return pills(
        "which file",
        (
            (
                file["name"] if file["kind"] == "checks" else f"start {file['start']}",
                addresses.attempt(run, name, of=kept.part, file=number) + "#kept",
                number == here,
            )
            for number, file in enumerate(files)
        ),
    )


def _tools(run: str, page: AttemptPage, kept: Kept, log: LogPart) -> h.Node:
    """Where this part stands in the whole, and ways to the others."""
    name, file = page["attempt"]["attempt"], kept.file if kept.file >= 0 else ""

    def way(words: str, **asked: object) -> h.Element:
        return h.a(".button", href=addresses.attempt(run, name, of=kept.part, file=file, **asked) + "#kept")[words]

    is_tail = log["last"] >= log["size"]
    where = (
        f"all {size(log['size'])}"
        if log["first"] == 0 and is_tail
        else (f"bytes {log['first']:,} to {log['last']:,} of {size(log['size'])}")
    )
    follows = is_tail and page["attempt"]["ended_at"] is None
    return h.form(
        class_="row-of spread tools-of-log", method="get", action=addresses.attempt(run, name), role="search"
    )[
        h.span(class_="soft small")[where, " · it follows what comes, until you scroll up" if follows else None],
        h.span(class_="row-of")[
            h.input(type="hidden", name="of", value=kept.part),
            h.input(type="hidden", name="file", value=str(file)),
            h.input(
                id="find-in-log",
                type="search",
                name="find",
                value=kept.words,
                placeholder="Find",
                aria_label="find in the log",
            ),
            way("Earlier", before=log["first"]) if log["first"] else None,
            way("Beginning", after=0) if log["first"] else None,
            [way("Later", after=log["last"]), way("End")] if not is_tail else None,
            h.a(".button", href=addresses.log_file(run, name, of=kept.part, file=file), download=True)["Download"],
        ],
    ]


def _text(kept: Kept, log: LogPart) -> h.Node:
    if kept.hits is not None:
        found = kept.hits["hits"]
        if not found:
            return h.div(class_="sheet")[empty("look", f"“{kept.words}” stands nowhere in it")]
        return [
            h.pre(class_="log", tabindex="0", role="region", aria_label="the lines that were found")[
                ([h.span(class_="at")[f"{hit['at']:>10} "], *documents.log(hit["line"]), "\n"] for hit in found)
            ],
            h.p(class_="soft")["There are more: look for more words."] if kept.hits["more"] else None,
        ]
    if kept.part == "reply":
        return h.div(class_="sheet")[documents.markdown(log["text"])]
    lines = log["text"].split("\n")
    left = len(lines) - documents.MOST_LINES
    return [
        h.p(class_="soft small")[f"{left:,} earlier lines of this part are not shown."] if left > 0 else None,
        h.pre(class_="log", tabindex="0", data_follow="1", role="region", aria_label=kept.part)[
            documents.log("\n".join(lines[-documents.MOST_LINES :]))
        ],
    ]


# ---- an artifact


def artifact_page(run: str, name: str, view: ArtifactPage, shape: Shape = "document") -> Page:
    """`name`: of the run, for people. With `against`, the difference is shown."""
    sections = [
        Section("head", _name(run, name, view)),
        Section("document", _document(run, view, shape)),
        Section("versions", _versions(run, view)),
    ]
    return Page(f"{view['name']} of {name}", "runs", sections, run)


def _name(run: str, name: str, view: ArtifactPage) -> h.Node:
    sha = view["document"]["sha256"]
    return [
        crumbs(("Runs", addresses.RUNS), (name, addresses.run(run)), last="artifact"),
        h.h1[view["name"]],
        h.p(class_="more soft")[
            h.span(class_="mono")[view["path"]],
            h.span[short_hash(sha)],
            h.span[size(view["document"]["size"])],
            h.span[h.a(href=addresses.raw_artifact(run, view["name"], sha=sha), download=True)["Download"]],
        ],
    ]


def _document(run: str, view: ArtifactPage, shape: Shape) -> h.Node:
    sha, text = view["document"]["sha256"], view["document"]["text"]
    is_markdown = view["path"].endswith((".md", ".markdown"))
    here = "difference" if view["diff"] else "source" if shape == "source" or not is_markdown else "document"
    before = view["against"] or next((one["sha256"] for one in view["versions"] if one["sha256"] != sha), "")

    def address(**asked: object) -> str:
        return addresses.artifact(run, view["name"], sha=sha, **asked)

    entries = [("Document", address(), here == "document")] if is_markdown else []
    entries.append(("Source", address(shape="source"), here == "source"))
    if before:
        entries.append(("Difference", address(against=before), here == "difference"))
    shown: h.Node
    if view["diff"]:
        words = h.p(class_="soft")["from ", short_hash(view["against"]), " to ", short_hash(sha)]
        shown = [words, documents.difference(view["diff"])]
    elif text is None:
        why = h.p[f"{view['document']['why_not']}. Download it to look at it."]
        shown = h.div(class_="sheet")[empty("document", "Nothing to show here", why)]
    elif here == "document":
        shown = h.div(class_="sheet")[documents.markdown(text)]
    else:
        shown = documents.source(text, view["path"])
    return [tabs("how it is shown", entries), shown]


def _versions(run: str, view: ArtifactPage) -> h.Node:
    sha = view["document"]["sha256"]
    rows: list[Row] = [
        [
            h.a(href=addresses.artifact(run, view["name"], sha=one["sha256"]))[short_hash(one["sha256"])],
            moment(one["at"]),
            one["by"],
            size(one["size"]),
            h.span(class_="soft")["shown here"]
            if one["sha256"] == sha
            else h.a(href=addresses.artifact(run, view["name"], sha=sha, against=one["sha256"]))["difference"],
        ]
        for one in view["versions"]
    ]
    columns = [Column("version"), Column("made"), Column("by", narrow=False), Column("size", True, False), Column("")]
    return [h.h2["Versions", h.small[str(len(rows))]], h.div(class_="sheet")[table("versions", columns, rows)]]
