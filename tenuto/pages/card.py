"""The card of a run that waits: what is asked, about which bytes, what each answer would do, and how it is given.

The card shows the bytes that each hash names, and the form carries the gate's id with those hashes: a decision is for
what was read, and for nothing else. Every button says what would follow, from a rehearsal on a copy (show/waiting.py),
and with which command the same is done at a terminal. A file that has changed since locks the buttons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import htpy as h

from tenuto.pages import addresses, documents
from tenuto.pages.parts import Tone, band, command, hidden, mark, moment, short_hash
from tenuto.show.measures import amount

if TYPE_CHECKING:
    from tenuto.core.records.run import AskedField
    from tenuto.pages.page import Site
    from tenuto.show.changes import DecisionView, DiffView, GateFile
    from tenuto.show.run_page import RunPage
    from tenuto.show.waiting import AnswerView, StillView, WaitingView

Level = Literal["guarded", "signed", "isolated"]

_MARKS: dict[str, tuple[Tone, str, str]] = {
    "gate": ("you", "fermata", "gate"),
    "question": ("you", "question", "question"),
    "limit": ("you", "pause", "a limit was met"),
    "time": ("idle", "clock", "parked"),
    "blocked": ("bad", "blocked", "blocked"),
    "pause": ("you", "pause", "paused"),
}
_WORDS: dict[str, tuple[Tone, str]] = {
    "approve": ("well", "Approve"),
    "reject": ("bad", "Reject"),
    "revise": ("you", "Send back"),
    "answer": ("well", "Answer"),
    "raise": ("well", "Raise the limit"),
    "resume": ("work", "Go on"),
    "retry": ("work", "Try the step again"),
    "cancel": ("bad", "End the run"),
}
_LEVELS: dict[Level, str] = {
    "guarded": "Guarded: this keeps mistakes out. A program of your own user that hides what it is, or drives your "
    "browser, could still press these buttons.",
    "signed": "Signed: no button decides. It shows the exact statement; you sign it with your key in a terminal, and "
    "paste the signature. The key never reaches this server.",
    "isolated": "Isolated: agents of this run cannot write the journal, so no agent can decide for you.",
}
_MOST_EVENTS = 8


def card(view: RunPage, site: Site, shown: Sequence[GateFile], level: Level) -> h.Node:
    waiting = view["waiting"]
    if waiting is None:
        return None
    tone, sign, kind = _MARKS[waiting["kind"]]
    name = f"{kind} {waiting['name']}" if waiting["kind"] == "gate" else kind
    return h.article("#card", class_=f"card {tone}", tabindex="-1", aria_labelledby="asked")[
        h.header[
            mark(sign),
            h.h2("#asked")[waiting["reason"] or name],
            h.p[
                name,
                [" · asked ", moment(waiting["since"], ago=True)] if waiting["since"] else None,
                [" · may go on at ", moment(waiting["until"])] if waiting["until"] else None,
                f" · asked by {waiting['asked_by']}" if waiting["asked_by"] else None,
                " · your decision is for exactly these bytes" if shown else None,
            ],
        ],
        [h.blockquote(class_="said lines")[summary] for summary in waiting["summaries"]],
        h.ul[(h.li["missing: ", one] for one in waiting["missing"])] if waiting["missing"] else None,
        [_shown(one, number == 0) for number, one in enumerate(shown)],
        _changed_meanwhile(shown, view["run"]["run"]),
        _form(view, waiting, shown, site, level) if site.may_decide else _commands(waiting),
    ]


# ---- what it is about


def _shown(one: GateFile, is_open: bool) -> h.Element:
    text = one["document"]["text"]
    is_same = one["is_as_shown"]
    told = h.span(class_="toned well small")["as shown"] if is_same else h.span(class_="toned bad")["changed since"]
    if is_same and one["before"]:
        told = h.span(class_="toned you small")["new since it was shown before"]
        told = told if one["diff"] and one["diff"]["files"] else h.span(class_="toned well small")["as before"]
    return h.details(class_="shown", open=is_open)[
        h.summary[mark("document"), h.span(class_="mono")[one["path"]], short_hash(one["sha256"]), told],
        h.div(class_="body")[
            _folded("What lies there now, against what is shown", one["changed"]) if not is_same else None,
            _folded("What changed since it was shown before", one["diff"]),
            h.p(class_="soft")[f"No text to show: {one['document']['why_not']}."]
            if text is None
            else _text(one["path"], text),
        ],
    ]


def _folded(words: str, view: DiffView | None) -> h.Node:
    return h.details[h.summary[words], documents.difference(view)] if view is not None else None


def _text(path: str, text: str) -> h.Node:
    lines = text.removesuffix("\n").split("\n")
    if not path.endswith((".md", ".markdown")):
        return documents.numbered(lines, prefix=path)
    by_line = h.details[h.summary["Line by line, to comment on"], documents.numbered(lines, prefix=path)]
    return [documents.markdown(text), by_line]


def _changed_meanwhile(shown: Sequence[GateFile], run: str) -> h.Node:
    paths = [one["path"] for one in shown if not one["is_as_shown"]]
    if not paths:
        return None
    return band(
        "bad",
        "lock",
        h.strong["Locked. "],
        f"{', '.join(paths)} changed after it was shown here. Nobody decides about what they have not seen: ",
        "put it back, or let the gate show what is there now: ",
        command(addresses.shell("tenuto", "resume", run)),
        role="alert",
    )


# ---- the form


def _form(view: RunPage, waiting: WaitingView, shown: Sequence[GateFile], site: Site, level: Level) -> h.Element:
    run = view["run"]["run"]
    answers = [one for one in waiting["answers"] if one["answer"] != "cancel"]
    ending = [one for one in waiting["answers"] if one["answer"] == "cancel"]
    is_locked = any(not one["is_as_shown"] for one in shown)
    return h.form("#decide", method="post", action=addresses.answer(run), class_="locked" if is_locked else None)[
        hidden({"token": site.form_token, "gate": waiting["gate"], "step": waiting["step"] or ""}),
        (
            h.input(type="hidden", name="shown", value=f"{one['sha256'] or '-'} {one['path']}")
            for one in waiting["shown"]
        ),
        h.fieldset[h.legend["For the approval"], (field(one) for one in waiting["fields"])]
        if waiting["fields"]
        else None,
        _limit(view) if waiting["kind"] == "limit" else None,
        _own_words(waiting),
        _comments() if waiting["kind"] == "gate" and shown else None,
        h.div(class_="choices")[(_choice(one, is_locked, level) for one in answers)],
        h.details[h.summary["Or end the run"], h.div(class_="choices")[(_choice(one, False, level) for one in ending)]]
        if ending
        else None,
        h.p(class_="small soft")[mark("lock"), " ", _LEVELS[level]] if waiting["kind"] == "gate" else None,
    ]


def _own_words(waiting: WaitingView) -> h.Element:
    if waiting["kind"] == "question":
        label, hint = "Your answer", "The agent reads it, and goes on with it."
    elif "revise" in waiting["options"]:
        label, hint = (
            "Your words",
            "Needed to send it back: whoever does it again reads them. Kept with every decision.",
        )
    else:
        label, hint = "Your words", "Kept in the record."
    return h.div(class_="field")[
        h.label(for_="feedback")[label],
        h.p("#feedback-hint.hint")[hint],
        h.textarea("#feedback", name="feedback", rows="3", aria_describedby="feedback-hint"),
    ]


def _comments() -> h.Element:
    """One comment without a script; the script adds one for each line that is clicked."""
    return h.details("#comments")[
        h.summary["Comment on a line"],
        h.div(class_="comment row-of")[
            h.input(name="line", type="text", placeholder="plan.md:12", aria_label="file and line"),
            h.input(name="comment", type="text", placeholder="what about it", aria_label="comment"),
        ],
    ]


def _limit(view: RunPage) -> h.Node:
    """Of the limits, the one that is nearest to its end."""
    limited = [one for one in view["budget"] if one["limit"]]
    if not limited:
        return None
    short = max(limited, key=lambda one: (one["spent"] + one["reserved"]) / max(one["limit"] or 1, 1))
    unit = {"micro_usd": "money", "wall_clock": "time"}.get(short["unit"], short["unit"])
    where = f" of {short['step']}" if short["step"] else ""
    example = {"money": "40", "time": "2h"}.get(unit, str(2 * (short["limit"] or 0)))
    return h.div(class_="field")[
        hidden({"unit": unit, "limit_step": short["step"]}),
        h.label(for_="limit")[f"The new limit: {unit}{where}"],
        h.p("#limit-hint.hint")[f"for example {example}; in dollars, as a length of time, or as a number"],
        h.input("#limit", type="text", name="limit", aria_describedby="limit-hint"),
    ]


def field(one: AskedField, value: str = "", problem: str = "") -> h.Element:
    """A field of a gate's form, by its kind."""
    name, default = f"field.{one['name']}", one["default"]
    needed = one["required"] and default is None
    label = [
        one["name"].replace("_", " ").replace("-", " "),
        h.span(class_="soft")["" if needed else " (may stay empty)"],
    ]
    hint = h.p(class_="hint", id=f"{name}-hint")[one["description"]] if one["description"] else None
    told = h.p(class_="problem", role="alert")[problem] if problem else None
    about = {"aria-describedby": f"{name}-hint"} if one["description"] else {}
    if one["type"] in ("choice", "several") or one["type"] == "flag":
        return _options(one, name, label, [hint, told], needed)
    start = value or _as_text(default)
    control: h.Node = h.input(about, id=name, name=name, type="text", value=start, required=needed)
    if one["type"] == "number":
        control = h.input(about, id=name, name=name, type="text", inputmode="decimal", value=start, required=needed)
    elif one["type"] == "list":
        control = h.textarea(about, id=name, name=name, rows="3", required=needed)[start]
    more = h.p(class_="hint")["one on each line"] if one["type"] == "list" else None
    return h.div(class_="field wrong" if problem else "field")[h.label(for_=name)[label], hint, more, control, told]


def _options(one: AskedField, name: str, label: h.Node, about: h.Node, needed: bool) -> h.Element:
    choices = ["true", "false"] if one["type"] == "flag" else one["choices"]
    words = {"true": "yes", "false": "no"} if one["type"] == "flag" else {}
    default = one["default"]
    chosen = {_as_text(part) for part in (default if isinstance(default, list) else [default]) if part is not None}
    several = one["type"] == "several"
    return h.fieldset(class_="field")[
        h.legend[label],
        about,
        (
            h.label(class_="option")[
                h.input(
                    type="checkbox" if several else "radio",
                    name=name,
                    value=choice,
                    checked=choice in chosen,
                    required=needed and not several,
                ),
                words.get(choice, choice),
            ]
            for choice in choices
        ),
    ]


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


# ---- the answers


def _choice(one: AnswerView, is_locked: bool, level: Level) -> h.Element:
    tone, words = _WORDS.get(one["answer"], ("idle", one["answer"]))
    name = one["answer"]
    off = is_locked or bool(one["refused"])
    by_key = level == "signed" and name in ("approve", "reject", "revise")
    buttons: list[h.Node] = []
    if name == "approve" and not by_key:
        buttons.append(
            h.button(".first", type="submit", name="answer", value="approve+go_on", disabled=off)["Approve and go on"]
        )
        buttons.append(h.button(type="submit", name="answer", value="approve", disabled=off)["Approve only"])
    else:
        label = f"{words}: sign it" if by_key else words
        on = f"{name}+go_on" if name in ("answer", "raise", "resume", "retry") else name
        first = "first" if name in ("answer", "raise", "resume", "retry", "approve") else "toned"
        buttons.append(h.button(class_=first, type="submit", name="answer", value=on, disabled=off)[label])
    events = one["events"]
    return h.div(class_=f"choice {tone}", role="group", aria_label=words)[
        h.p(class_="will")[h.strong[f"{words}: "], will(one)],
        h.div(class_="row-of")[buttons],
        command(one["command"]),
        h.details[
            h.summary["what would be recorded"],
            h.ul[(h.li[text] for text in events[:_MOST_EVENTS])],
            h.p(class_="small soft")[f"and {len(events) - _MOST_EVENTS} more"] if len(events) > _MOST_EVENTS else None,
        ]
        if events
        else None,
    ]


def will(answer: AnswerView) -> str:
    """What would follow, in words, with what is left of each limit then."""
    if answer["refused"]:
        return f"not now: {answer['refused']}"
    return "; ".join([answer["told"], *(_left(answer["budget"]) if answer["due"] else ())])


def _left(budget: Sequence[StillView]) -> Iterator[str]:
    """Of the run's own limits; and of a step's, where next to nothing is left."""
    for one in budget:
        unit, where = one["unit"], f" of {one['step']}" if one["step"] else ""
        if where and one["left"] > 0:
            continue
        of = f"{amount(unit, one['limit'])}{where}"
        yield f"leaves {amount(unit, one['left'])} of {of}" if one["left"] >= 0 else f"passes the limit of {of}"


def _commands(waiting: WaitingView) -> h.Element:
    """Nobody decides in this browser: what to type instead."""
    return h.div(class_="choices")[
        (
            h.div(class_=f"choice {_WORDS.get(one['answer'], ('idle', ''))[0]}")[
                h.p(class_="will")[h.strong[_WORDS.get(one["answer"], ("", one["answer"]))[1] + ": "], will(one)],
                command(one["command"]),
            ]
            for one in waiting["answers"]
        )
    ]


# ---- after a failure


def failure(view: RunPage, site: Site) -> h.Node:
    run = view["run"]
    found, open_ends = run["failure"], run["open_ends"]
    if found:
        step = found["step"] or ""
        again = addresses.shell("tenuto", "retry", run["run"], *([step] if step else []))
        return h.article("#card", class_="card bad", tabindex="-1")[
            h.header[
                mark("cross"),
                h.h2[f"It failed{f' in {step}' if step else ''}"],
                h.p[moment(run["stopped_at"], ago=True)],
            ],
            h.pre(class_="raw lines")[found["error"]],
            h.form(class_="row-of", method="post", action=addresses.answer(run["run"]))[
                hidden({"token": site.form_token, "step": step}),
                h.button(".first.work", type="submit", name="answer", value="retry+go_on")["Try the step again"],
                command(again),
            ]
            if site.may_decide and step
            else command(again),
        ]
    left = [(words, names) for words, names in _open_ends(open_ends) if names]
    if run["phase"] != "ended" or not left:
        return None
    return band(
        "bad",
        "alone",
        h.strong["Not everything in it was done. "],
        "; ".join(f"{words}: {', '.join(names)}" for words, names in left),
    )


def _open_ends(found: Mapping[str, object]) -> list[tuple[str, list[str]]]:
    words = {
        "failed": "items that failed",
        "never_started": "items that were never started",
        "not_done": "steps whose last word was no DONE",
        "checks": "checks that failed when they last ran",
    }
    return [
        (said, [str(one) for one in names]) for key, said in words.items() if isinstance(names := found.get(key), list)
    ]


# ---- what was decided


def decisions(made: Sequence[DecisionView], run: str = "") -> h.Node:
    """Each with its seal: who, how it was protected, which event records it, and the hashes that it rests on. `run`:
    where its links lead; empty: nowhere, in a file of its own."""
    if not made:
        return None
    return [
        h.h2["Decisions", h.small[str(len(made))]],
        h.ol(class_="list decided")[(_decided(one, run) for one in made)],
    ]


def _decided(one: DecisionView, run: str) -> h.Element:
    words = _DECIDED.get(one["decision"], one["decision"])
    tone, sign = _SIGNS.get(one["decision"], ("idle", "seal"))
    number = f"event {one['seq']}"
    by = f"gates {one['level']}" if one["level"] else "before gates were protected"
    return h.li(class_=f"item {tone}")[
        mark(sign),
        h.p(class_="title")[f"{one['name']}: {words} by {one['who']}"],
        h.div(class_="more")[
            h.span[moment(one["at"])],
            h.span[h.a(href=addresses.run(run, at=one["seq"]))[number] if run else number],
            h.span[by],
            h.span[f"signed by {one['signer']}"] if one["signer"] else None,
            (h.span[_basename(shown["path"]), " ", short_hash(shown["sha256"])] for shown in one["shown"]),
        ],
        h.blockquote(class_="said lines")[one["feedback"]] if one["feedback"] else None,
        h.p(class_="soft small")["; ".join(f"{name}: {value}" for name, value in one["answers"].items())]
        if one["answers"]
        else None,
    ]


def _basename(path: str) -> str:
    return path.rpartition("/")[2]


_DECIDED = {"approve": "approved", "reject": "rejected", "revise": "sent back"}
_SIGNS: dict[str, tuple[Tone, str]] = {
    "approve": ("well", "seal"),
    "reject": ("bad", "cross"),
    "revise": ("you", "again"),
}
