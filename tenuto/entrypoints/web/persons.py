"""Who is a person? Four conditions for everything that changes something.

    1  the server was started by a person: where not, it only shows
    2  the browser has come in, and the form is of a page that this server made for this session
    3  the process at the other end is no agent's, by the same rule as at a terminal (peers.py, workspace/guard.py)
    4  no program drives that browser

A process that cannot be seen from here (a tunnel, another machine, macOS) is asked for four digits, which the terminal
shows for this one decision. Without a terminal it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse

from tenuto.encoding import digest, dumps
from tenuto.errors import BadInput, Refused, TenutoError
from tenuto.pages.door import digits_page
from tenuto.pages.page import document
from tenuto.workspace.guard import Person, require_person

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from tenuto.entrypoints.web.hall import Hall
    from tenuto.entrypoints.web.sessions import Session

Fields = Mapping[str, Sequence[str]]
TOKEN, DIGITS = "token", "digits"
_MOST_FIELDS = 400


def parsed(body: bytes) -> dict[str, list[str]]:
    """Empty fields stay. BadInput where it is no form, is not UTF-8, or holds very many fields."""
    try:
        return parse_qs(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise BadInput("bad-form", "this is not a form that a browser sends", "open the page again") from None


class Asking(NamedTuple):
    """A form that somebody sent: from which session, to which address, with what."""

    session: Session
    path: str
    fields: Fields
    peer: tuple[str, int]

    def one(self, name: str) -> str:
        """A field that may stand once. Line ends as everywhere else: a browser sends CR and LF."""
        values = self.fields.get(name, ())
        if len(values) > 1:
            raise Refused("twice", f"the form names {name!r} twice", "open the page again")
        return values[0].replace("\r\n", "\n") if values else ""


async def asking(request: Request, hall: Hall) -> Asking:
    """The form of a request, with the conditions 1 and 2."""
    if hall.only_look:
        raise Refused("only-looks", f"nothing is decided here: {hall.only_look}", "use a terminal of your own")
    session: Session | None = request.scope.get("session")
    client = request.scope.get("client")
    if session is None or client is None:
        raise Refused("no-session", "this browser has not come in", "enter the code")
    asked = Asking(session, request.url.path, parsed(await request.body()), (client[0], client[1]))
    if not compare_digest(asked.one(TOKEN).encode(), session.form_token.encode()):
        raise Refused("foreign-form", "this form is not of a page that this server made for you", "open the page again")
    return asked


async def person(asked: Asking, hall: Hall, what: str, command: str) -> Person | Response:
    """Conditions 3 and 4. A response: the page that asks for the four digits."""
    caller = await hall.desk.beside(lambda: hall.judge(asked.peer, hall.port))
    if caller is not None:
        require_person(caller, what, command)
        return caller if isinstance(caller, Person) else Person("web")
    if not hall.has_terminal:
        message = "the program that asks cannot be seen from here, and there is no terminal to ask at"
        raise Refused("unseen", message, f"in a terminal: {command}")
    key = _key(asked)
    given = asked.one(DIGITS)
    if given and hall.digits.are_right(key, given):
        return Person("web", {"seen": "digits"})
    if not hall.digits.is_asked(key):
        hall.digits.ask(key, f"a browser that cannot be seen from here wants to {what}")
    page = digits_page(
        what,
        asked.path,
        [(name, value) for name, value in _flat(asked.fields) if name != DIGITS],
        was_wrong=bool(given),
    )
    return HTMLResponse(document(page, hall.site(asked.session)), 403)


def _key(asked: Asking) -> str:
    """The decision word for word: digits for one are none for another."""
    words = [asked.session.name, asked.path, [pair for pair in _flat(asked.fields) if pair[0] != DIGITS]]
    return digest(dumps(words).encode())


def _flat(fields: Fields) -> list[tuple[str, str]]:
    return [(name, value) for name, values in fields.items() for value in values]


def why_only_look(what: str = "decide in a browser") -> str:
    """Condition 1, when the server starts: "" where a person starts it."""
    from tenuto.workspace.guard import who_calls

    try:
        require_person(who_calls(), what, "tenuto ui")
    except TenutoError:
        return "the server was started by an agent"
    return ""
