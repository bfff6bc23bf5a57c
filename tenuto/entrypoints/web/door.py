"""The door: everything that is judged before a request is looked at. Pure ASGI, in front of every route.

    host           exactly an address of this server, else 421: another name may be made to point here (DNS rebinding)
    cross-site     nothing is read or sent from another site: Sec-Fetch-Site, and Origin for what is not a look
    session        the cookie of this server; without it only the page that asks for the code, and what it is made of
    methods        GET, HEAD and POST; no header or field makes one of another
    bodies         64 KB at most, within ten seconds
    answers        the same protecting headers on each; declared secrets masked in each, streams line by line

It decides nothing about who is a person: persons.py does, for every POST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tenuto.entrypoints.web.refusals import Problem, refusal

if TYPE_CHECKING:
    from tenuto.entrypoints.web.desk import Mask
    from tenuto.entrypoints.web.hall import Hall
    from tenuto.entrypoints.web.sessions import Session

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY = 1 << 16
BODY_SECONDS = 10.0
OPEN = ("/in", "/static/")  # without a session
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; "
        "trusted-types tenuto"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with our own forms
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}


class Door:
    def __init__(self, inside: App, hall: Hall) -> None:
        self.inside = inside
        self.hall = hall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inside(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = _Headers(scope["headers"])
        await self.hall.desk.refresh()
        send = protected(send, self.hall.desk.mask)
        problem = _judge_request(scope, headers, self.hall)
        if problem is None:
            session = self.hall.sessions.find(headers.cookie(self.hall.cookie))
            problem = _judge_session(scope, headers, self.hall, session)
            scope["session"] = session
        if problem is None and scope["method"] == "POST":
            body = await _read(headers, receive)
            if isinstance(body, Problem):
                problem = body
            else:
                receive = _again(body, receive)
        if problem is not None:
            await refusal(problem, self.hall.site())(scope, receive, send)
            return
        await self.inside(scope, receive, send)


class _Headers:
    """Of a request. A header that may stand once and stands twice counts as wrong."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = raw

    def all(self, name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._raw if key == wanted]

    def one(self, name: str) -> str:
        """ "" where it is missing; a NUL, which equals nothing, where it stands more than once."""
        found = self.all(name)
        return found[0] if len(found) == 1 else "\0" if found else ""

    def cookie(self, name: str) -> str:
        """ "" where there is none, or two: somebody put one beside ours."""
        pairs = [pair.strip().partition("=") for line in self.all("cookie") for pair in line.split(";")]
        found = [value for key, _, value in pairs if key == name]
        return found[0] if len(found) == 1 else ""


def _judge_request(scope: Scope, headers: _Headers, hall: Hall) -> Problem | None:
    host = headers.one("host").lower()
    if host not in hall.hosts:
        return Problem(421, "wrong-host", f"this server is not {host[:100]!r}", f"open {hall.address}")
    method, site, origin = scope["method"], headers.one("sec-fetch-site"), headers.one("origin")
    if method not in ("GET", "HEAD", "POST"):
        return Problem(405, "no-such-method", f"nothing here answers to {method[:20]}", "")
    if method == "POST":
        if urlsplit(origin).netloc.lower() != host or not origin.startswith("http://"):
            return Problem(403, "cross-site", "the form was not sent from a page of this server", "open it here again")
        if site not in ("", "same-origin"):
            return Problem(403, "cross-site", "the form was not sent from a page of this server", "open it here again")
        return None
    is_visit = headers.one("sec-fetch-mode") == "navigate" and headers.one("sec-fetch-dest") == "document"
    if site not in ("", "none", "same-origin") and not is_visit:
        return Problem(403, "cross-site", "another site asked for this page", "open it in a tab of its own")
    if origin and urlsplit(origin).netloc.lower() != host:
        return Problem(403, "cross-site", "another site asked for this page", "open it in a tab of its own")
    return None


def _judge_session(scope: Scope, headers: _Headers, hall: Hall, session: Session | None) -> Problem | None:
    path = scope["path"]
    if session is not None or any(path == way or (way[-1] == "/" and path.startswith(way)) for way in OPEN):
        return None
    if hall.is_open_to_look and scope["method"] != "POST":
        return hall.judge_onlooker(scope)
    if headers.one("sec-fetch-site") in ("cross-site", "same-site"):
        query = "?" + scope["query_string"].decode("latin-1") if scope["query_string"] else ""
        return Problem(200, "opening", "", "", again="/" + scope["raw_path"].decode("latin-1").lstrip("/\\") + query)
    if headers.one("sec-fetch-dest") in ("", "document") and scope["method"] == "GET":
        return Problem(303, "no-session", "this browser has not come in yet", "/in", to="/in")
    return Problem(401, "no-session", "the server was started anew, or this browser has not come in", "enter the code")


async def _read(headers: _Headers, receive: Receive) -> bytes | Problem:
    """The whole form, before anything looks at it."""
    if headers.all("transfer-encoding") and headers.all("content-length"):
        return Problem(400, "two-lengths", "the length of the form is told twice", "")
    if headers.one("content-type").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return Problem(415, "no-form", "this is not a form", "")
    body: bytes = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return Problem(400, "cut-off", "the form did not arrive whole", "send it again")
                body += message.get("body") or b""
                if len(body) > MOST_BODY:
                    return Problem(413, "too-long", "the form is longer than 64 KB", "say it in fewer words")
                if not message.get("more_body", False):
                    return body
    except TimeoutError:
        return Problem(408, "too-slow", "the form did not arrive within ten seconds", "send it again")


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then whatever comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def protected(send: Send, mask: Mask) -> Send:
    """Every answer: with the headers above, and without declared secrets."""
    start: Message | None = None
    held = b""

    async def checked(message: Message) -> None:
        nonlocal start, held
        if message["type"] == "http.response.start":
            message["headers"] = _with_headers(message.get("headers", []), bool(mask))
            if mask:
                start = message
                return
        elif message["type"] == "http.response.body" and mask:
            held += message.get("body", b"")
            more = message.get("more_body", False)
            ready, held = mask.cut(held) if more else (mask.whole(held), b"")
            if start is not None:
                await send(start)
                start = None
            message = {**message, "body": ready}
        await send(message)

    return checked


def _with_headers(given: list[tuple[bytes, bytes]], is_masked: bool) -> list[tuple[bytes, bytes]]:
    """A header that the answer brings itself counts; a masked answer may have another length."""
    own = {name.lower() for name, _ in given}
    kept = [(name, value) for name, value in given if not (is_masked and name.lower() == b"content-length")]
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
    return [*kept, *more]
