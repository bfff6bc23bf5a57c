"""Pages of the door: the code that lets a browser in, four digits for one decision, and how the server says no."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from tenuto.pages import addresses
from tenuto.pages.page import Page, Section, lone_document
from tenuto.pages.parts import band, command, mark


def enter_page(said: str = "") -> str:
    """`said`: why the last code was not taken. The script takes a code out of the address; it never leaves the browser
    in one."""
    form = h.form(id="enter", method="post", action="/in")[
        h.label(for_="code")["Code"],
        h.input(
            id="code", name="code", required=True, autofocus=True, autocomplete="off", spellcheck="false", maxlength=40
        ),
        h.button(".first.you", type="submit")["Come in"],
    ]
    words: h.Node = [
        "The terminal in which ",
        h.code["tenuto ui"],
        " runs shows a code. It is valid for five minutes and for one browser.",
    ]
    body = [
        mark("fermata"),
        h.h1["Come in"],
        band("bad", "cross", said, role="alert") if said else None,
        h.p(class_="soft")[words],
        form,
    ]
    return lone_document("Come in", h.div(class_="sheet entry")[body])


def opening_page(address: str) -> str:
    """A link from another site leads here: when the page asks for itself again, the cookie comes along."""
    body = [h.meta(http_equiv="refresh", content=f"0;url={address}"), h.p[h.a(href=address)["Go on to the page"]]]
    return lone_document("Opening", body)


def refusal_page(status: int, code: str, message: str, hint: str, kept: str = "") -> Page:
    """What, why and what now. `kept`: what the person had written, to be copied."""
    now: h.Node = None
    if hint:
        is_command = hint.startswith("tenuto ") and ";" not in hint
        now = h.p["What now: ", command(hint) if is_command else h.span(class_="hint")[hint]]
    body = [
        h.h1[_DAMAGES.get(code) or _HEADS.get(status, "That did not work")],
        band("you" if status == 409 else "bad", "alone" if status == 409 else "cross", message, role="alert"),
        now,
        [h.p["What you wrote:"], h.pre("#kept.raw.lines", tabindex="0")[kept]] if kept else None,
        h.p[h.a(".button", href="/")["To the inbox"]],
        h.p(class_="soft small code")[f"{code} · {status}"],
    ]
    return Page("Not done" if status != 404 else "Not found", "inbox", [Section("refusal", body)])


_DAMAGES = {"journal-damaged": "The journal is damaged", "schema-newer": "A newer Tenuto wrote this journal"}
_HEADS = {
    403: "Refused",
    404: "Not found",
    405: "Not understood",
    409: "Too late",
    421: "Not this server",
}


def digits_page(what: str, address: str, fields: Sequence[tuple[str, str]], was_wrong: bool) -> Page:
    """The same form once more, with four digits that the terminal shows for it."""
    form = h.form(method="post", action=address)[
        [h.input(type="hidden", name=name, value=value) for name, value in fields],
        h.label(for_="digits")["Four digits"],
        h.input(
            id="digits",
            name="digits",
            required=True,
            autofocus=True,
            autocomplete="off",
            inputmode="numeric",
            maxlength=4,
        ),
        h.button(".first.you", type="submit")["That was me"],
    ]
    words: h.Node = [
        "The server cannot see the program behind this browser, so it cannot tell a person from an agent. ",
        "The terminal of ",
        h.code["tenuto ui"],
        f" shows four digits for this one decision: {what}.",
    ]
    wrong = band("bad", "cross", "Those were not the digits.", role="alert") if was_wrong else None
    body = h.div(class_="sheet entry")[h.h1["Is that you?"], wrong, h.p(class_="soft")[words], form]
    return Page("Is that you?", "inbox", [Section("is-that-you", body)])


def signing_page(run: str, decision: str, statement: str, fields: Sequence[tuple[str, str]]) -> Page:
    """Where decisions are signed, a button decides nothing: it shows what is to be signed, and takes the signature."""
    kept = [h.input(type="hidden", name=name, value=value) for name, value in fields]
    line = "ssh-keygen -Y sign -f KEY -n tenuto-gate decision"
    body = [
        h.h1[f"Sign: {decision}"],
        h.p[
            "Decisions of this run are signed, with a key that this server never sees. Save the statement as ",
            h.code["decision"],
            ", sign it in a terminal, and paste what stands in ",
            h.code["decision.sig"],
            ".",
        ],
        h.pre("#statement.raw.lines", tabindex="0")[statement],
        h.form(method="post", action=addresses.statement(run))[kept, h.button(type="submit")["Save the statement"]],
        h.p[command(line)],
        h.form(id="sign", method="post", action=addresses.answer(run))[
            kept,
            h.label(for_="signer")["Your name in the list of signers"],
            h.input(id="signer", name="signer", type="text", required=True, autocomplete="off"),
            h.label(for_="signature")["The signature"],
            h.textarea(id="signature", name="signature", required=True, rows="8", spellcheck="false"),
            h.button(".first.you", type="submit")[decision.capitalize()],
        ],
        h.p[h.a(href=addresses.run(run))["Back to the run: nothing is decided yet"]],
    ]
    return Page(f"Sign: {decision}", "runs", [Section("signing", h.div(class_="sheet signing")[body])])
