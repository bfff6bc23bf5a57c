"""What a person changes in a browser: answers at a gate, to a question, at a limit; and the run that goes on then.

Every route asks persons.py first. What may happen, core decides; engine/gates.py takes the decision in, with the
browser as its door. A decision is for the gate and the bytes that the page showed: another gate, or a file that has
changed since, is refused with 409, and the person's words are given back.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tenuto.core.pipeline.params import from_text
from tenuto.entrypoints.web.driving import go_on
from tenuto.entrypoints.web.persons import Asking, asking, person
from tenuto.entrypoints.web.refusals import problem_of, refusal
from tenuto.errors import BadInput, Conflict, TenutoError
from tenuto.pages import addresses
from tenuto.pages.door import signing_page
from tenuto.pages.page import document

if TYPE_CHECKING:
    from starlette.requests import Request

    from tenuto.core.records.commands import Command
    from tenuto.core.records.run import Param, Run
    from tenuto.entrypoints.web.hall import Hall
    from tenuto.workspace.workspace import Workspace

Handler = Callable[["Request", tuple[str, ...]], Awaitable["Response"]]
AT_GATES = ("approve", "reject", "revise")


def routes(hall: Hall) -> dict[str, Handler]:
    return {
        "/runs/*/answer": _answer(hall),
        "/runs/*/statement": _statement(hall),
        "/runs/*/fork": _fork(hall),
        "/runs/*/seen": _seen(hall),
    }


# ---- the routes


def _answer(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        asked, (run,) = await asking(request, hall), names
        word, _, then = asked.one("answer").partition("+")
        try:
            act = _act(word, run, asked)
            if word in AT_GATES and not asked.one("signature"):
                text = await hall.desk.look(lambda workspace: _to_sign(workspace, run, word, asked))
                if text:
                    return _ask_to_sign(hall, asked, run, word, text)
            who = await person(asked, hall, f"{word} in run {run}", f"tenuto {word} {run}")
            if isinstance(who, Response):
                return who
            await hall.desk.act(who, act)
            if then == "go_on" or asked.one("go_on"):
                await hall.desk.act(who, lambda workspace: go_on(workspace, run))
        except TenutoError as error:
            return refusal(problem_of(error, kept=_words(asked)), hall.site(asked.session))
        return RedirectResponse(addresses.run(run), 303)

    return answer


def _statement(hall: Hall) -> Handler:
    """The exact bytes that are signed for this decision, to keep as a file. It changes nothing."""

    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        asked, (run,) = await asking(request, hall), names
        text = await hall.desk.look(lambda workspace: _to_sign(workspace, run, asked.one("answer"), asked, always=True))
        headers = {"content-disposition": 'attachment; filename="decision"', "content-security-policy": "sandbox"}
        return Response(text.encode(), media_type="application/octet-stream", headers=headers)

    return answer


def _fork(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        from tenuto.engine import begin

        asked, (run,) = await asking(request, hall), names
        step = asked.one("step")
        who = await person(asked, hall, f"fork run {run} at {step}", f"tenuto fork {run} --at {step}")
        if isinstance(who, Response):
            return who
        made = await hall.desk.act(
            who,
            lambda workspace: begin.fork(workspace, run, step, name=asked.one("name"), pipeline=asked.one("pipeline")),
        )
        return RedirectResponse(addresses.run(made["id"]), 303)

    return answer


def _seen(hall: Hall) -> Handler:
    """A failure that a person has looked at needs them no more."""

    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        asked, (run,) = await asking(request, hall), names
        who = await person(asked, hall, f"mark the end of run {run} as seen", f"tenuto status {run}")
        if isinstance(who, Response):
            return who
        await hall.desk.act(who, lambda workspace: _mark_seen(workspace, run))
        return RedirectResponse("/", 303)

    return answer


def _mark_seen(workspace: Workspace, name: str) -> None:
    """At this version: what happens later needs them again."""
    version = workspace.load(name)["version"]
    with workspace.journal.write() as transaction:
        transaction.put_marker(f"seen:{name}", str(version))


# ---- one answer


def _act(word: str, run: str, asked: Asking) -> Callable[[Workspace], object]:
    """What this answer does. BadInput before anybody is asked for anything, where it is none."""
    from tenuto.cluster.driver import engine_for
    from tenuto.engine.gates import answer_question, command
    from tenuto.engine.rest import cancel

    words = asked.one("feedback")
    match word:
        case "approve" | "reject" | "revise":
            return lambda workspace: _decide(workspace, run, word, asked)
        case "answer":
            if not words.strip():
                raise BadInput("no-words", "the answer is empty", "write what the agent should know")
            return lambda workspace: answer_question(workspace, run, words)
        case "resume":
            return lambda workspace: command(workspace, run, _resume(workspace.load(run)))
        case "raise":
            change = _raised(asked)
            return lambda workspace: (
                command(workspace, run, change),
                command(workspace, run, _resume(workspace.load(run))),
            )
        case "retry":
            step = asked.one("step")
            return lambda workspace: command(workspace, run, {"do": "RetryStep", "step": step})
        case "cancel":
            return lambda workspace: cancel(workspace, run, words, engine_for(workspace, run))
        case "pause":
            reason = words or "a person asked for it"
            pause: Command = {"do": "Pause", "kind": "person", "reason": reason, "recommendations": ["resume"]}
            return lambda workspace: command(workspace, run, pause)
    raise BadInput("bad-answer", f"{word!r} is no answer", "use a button of the page")


def _resume(run: Run) -> Command:
    """A parked run is waited for no longer."""
    return {"do": "Resume", "decision": "retry", "early": run["status"] == "parked"}


def _raised(asked: Asking) -> Command:
    from tenuto.entrypoints.cli.run import limits_of

    unit, step, limit = asked.one("unit"), asked.one("limit_step"), asked.one("limit").strip()
    if unit in ("time", "wall_clock"):
        unit, limit = "wall_clock", _seconds(limit)
    limits = limits_of((f"{'money' if unit == 'micro_usd' else unit}{'@' if step else ''}{step}={limit}",))
    return {
        "do": "ChangeBudget",
        "limits": {**limits.run},
        "steps": {step: {**own} for step, own in limits.steps.items()},
    }


def _seconds(words: str) -> str:
    """90, 30m, 2h, 1h30m; what is none of them stays, and is refused as no limit."""
    found = re.fullmatch(r"(?:(\d{1,6})h)?\s*(?:(\d{1,6})m)?\s*(?:(\d{1,9})s?)?", words.replace(" ", ""), re.ASCII)
    if found is None or not words:
        return words
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return str(hours * 3600 + minutes * 60 + seconds)


def _decide(workspace: Workspace, name: str, decision: str, asked: Asking) -> Run:
    from tenuto.engine.gates import decide_gate
    from tenuto.workspace.settings import read_settings

    run = workspace.load(name)
    _refuse_another_gate(run, asked)
    return decide_gate(
        workspace,
        name,
        decision,
        _feedback(asked),
        read_settings(workspace.root),
        asked.one("signature"),
        asked.one("signer").strip(),
        gate=asked.one("gate"),
        answers=_answers(run, decision, asked),
        over="web",
    )


def _refuse_another_gate(run: Run, asked: Asking) -> None:
    """The page said what it showed, to the byte."""
    gate, seen = run["gate"], asked.one("gate")
    if not seen:
        raise BadInput("no-gate-named", "the form does not say which gate it is for", "open the page again")
    if gate is None or gate["id"] != seen:
        now = f"it waits for {gate['name']} now" if gate else f"it is {run['status']} now"
        raise Conflict("late", f"this gate of run {run['id']} was decided already, or shown anew: {now}", "look again")
    shown = sorted(f"{entry['sha256'] or '-'} {entry['path']}" for entry in gate["shown"])
    if sorted(asked.fields.get("shown", ())) != shown:
        raise Conflict("late", "the page showed other files than the gate does", "look again")


def _answers(run: Run, decision: str, asked: Asking) -> dict[str, object]:
    """Of the gate's form. An empty field that may be left out is left out."""
    fields: Mapping[str, Param] = run["gate"].get("fields", {}) if run["gate"] and decision == "approve" else {}
    found: dict[str, object] = {}
    for name, field in fields.items():
        given = asked.fields.get(f"field.{name}", ())
        words = [word.replace("\r\n", "\n") for word in given if word != ""]
        if field["type"] in ("list", "several"):
            value = [part for word in words for part in _parts(field, word)]
            if value or field.get("required", True):
                found[name] = value
        elif words:
            found[name] = from_text(field, words[-1])
    return found


def _parts(field: Param, word: str) -> list[str]:
    if field["type"] == "several":
        return [word]
    return [line.strip() for line in word.splitlines() if line.strip()]


def _feedback(asked: Asking) -> str:
    """The words, and under them each comment with the lines that it is about."""
    lines, comments = asked.fields.get("line", ()), asked.fields.get("comment", ())
    if len(lines) != len(comments):
        raise BadInput("bad-form", "a comment without its lines", "open the page again")
    said = [
        f"{line}: {comment.replace(chr(13), '').strip()}"
        for line, comment in zip(lines, comments, strict=True)
        if comment.strip()
    ]
    return "\n\n".join(part for part in (asked.one("feedback").strip(), "\n".join(said)) if part)


def _words(asked: Asking) -> str:
    """What a refusal gives back. It may be the form itself that is wrong."""
    try:
        return _feedback(asked)
    except TenutoError:
        return "\n".join(asked.fields.get("feedback", ()))


# ---- signed


def _to_sign(workspace: Workspace, name: str, decision: str, asked: Asking, always: bool = False) -> str:
    """The statement that this decision signs; "" where none is asked for."""
    from tenuto.engine.gates import level_of, text_to_sign
    from tenuto.workspace.settings import read_settings

    run = workspace.load(name)
    if not always and level_of(run, read_settings(workspace.root)) != "signed":
        return ""
    _refuse_another_gate(run, asked)
    return text_to_sign(run, decision, _feedback(asked), _answers(run, decision, asked))


def _ask_to_sign(hall: Hall, asked: Asking, run: str, decision: str, text: str) -> Response:
    fields = [(name, value) for name, values in asked.fields.items() for value in values if name not in _NOT_KEPT]
    page = signing_page(run, decision, text, fields)
    return HTMLResponse(document(page, hall.site(asked.session)))


_NOT_KEPT = ("signature", "signer", "digits")
