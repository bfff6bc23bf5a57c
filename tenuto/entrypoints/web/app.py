"""The application: which address is answered by what. The door (door.py) stands in front of it.

    application(hall)    what uvicorn serves

Addresses are taken apart as they arrive, before quoted characters are put back: a slash in the name of an artifact is
part of the name, and no name leads out of its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from tenuto.encoding import dumps
from tenuto.entrypoints.speak import understand
from tenuto.entrypoints.web import decisions, entering, live, looks
from tenuto.entrypoints.web.door import App, Door, Message, Receive, Scope, Send
from tenuto.entrypoints.web.refusals import problem_of, refusal
from tenuto.errors import BadInput, NotFound
from tenuto.pages.page import changed, document
from tenuto.show.inbox import count_needs
from tenuto.show.runs import OWN

if TYPE_CHECKING:
    from tenuto.entrypoints.web.hall import Hall
    from tenuto.pages.page import Page
    from tenuto.workspace.workspace import Workspace

Handler = Callable[[Request, tuple[str, ...]], Awaitable[Response]]

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_MOST_QUERY = 4096


def application(hall: Hall) -> App:
    return Door(_Inside(hall), hall)


class _Inside:
    def __init__(self, hall: Hall) -> None:
        self.hall = hall
        self.static = _static()
        self.looks: Mapping[str, Handler] = {
            **{address: self._look(look) for address, look in looks.PAGES.items()},
            **{address: self._file(look) for address, look in looks.FILES.items()},
            "/in": entering.look(hall),
            "/live": live.stream(hall),
        }
        self.changes: Mapping[str, Handler] = {
            "/in": entering.enter(hall),
            "/out": entering.leave(hall),
            **decisions.routes(hall),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told, and the server lives on
            problem = problem_of(understand(error))
            response = refusal(problem, self.hall.site(scope.get("session")))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """HEAD is answered like GET; the server leaves the body out."""
        parts = _parts(request.scope.get("raw_path") or request.url.path.encode())
        if len(request.scope["query_string"]) > _MOST_QUERY:
            raise BadInput("too-long", "the address is too long", "open the page from the inbox")
        if parts[:1] == ["static"]:
            return self._static_file(parts[1:])
        table = self.changes if request.method == "POST" else self.looks
        for address in _patterns(parts):
            handler = table.get(address)
            if handler is not None:
                names = tuple(part for part, star in zip(parts, address.split("/")[1:], strict=False) if star == "*")
                if names[:1] == (OWN,):
                    raise NotFound("no-such-run", "'@' is the repository's own stream, not a run", "see the inbox")
                return await handler(request, names)
        raise NotFound("no-such-page", "there is no such page", "see the inbox")

    def _look(self, look: looks.Look) -> Handler:
        async def answer(request: Request, names: tuple[str, ...]) -> Response:
            session, query = request.scope.get("session"), _query(request)

            def made(workspace: Workspace) -> Response:
                self.hall.needs_you = count_needs(workspace)
                site = self.hall.site(session)
                page = look(workspace, looks.Asked(names, query, site))
                if "parts" not in query:
                    return HTMLResponse(document(page, site))
                have = dict(pair.split(":", 1) for pair in query.get("have", "").split(",") if ":" in pair)
                return _parts_of(page, site.needs_you, have)

            response = await self.hall.desk.look(made)
            if names:
                self.hall.live.watch(names[0], names[1] if look is looks.one_attempt else "")
            return response

        return answer

    def _file(self, look: Callable[[Workspace, looks.Asked], looks.File]) -> Handler:
        """To keep, never to open: a browser runs nothing of it."""

        async def answer(request: Request, names: tuple[str, ...]) -> Response:
            asked = looks.Asked(names, _query(request), self.hall.site(request.scope.get("session")))
            name, pieces = await self.hall.desk.look(lambda workspace: look(workspace, asked))
            kept = quote(name, safe="", errors="replace")
            headers = {
                "content-disposition": f"attachment; filename*=UTF-8''{kept}",
                "content-security-policy": "sandbox; default-src 'none'",
            }
            return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)

        return answer

    def _static_file(self, parts: list[str]) -> Response:
        body = self.static.get("/".join(parts))
        if body is None:
            raise NotFound("no-such-page", "there is no such page", "see the inbox")
        kind = _TYPES.get(parts[-1][parts[-1].rfind(".") :], "application/octet-stream")
        return Response(body, media_type=kind, headers={"cache-control": "no-cache"})


def _parts_of(page: Page, needs_you: int, have: Mapping[str, str]) -> Response:
    answer = {
        "title": page.title,
        "needs_you": needs_you,
        "names": [section.name for section in page.sections],
        "sections": changed(page, have),
    }
    return Response(dumps(answer), media_type="application/json")


def _query(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True))


def _parts(raw_path: bytes) -> list[str]:
    """NotFound where a part is not text."""
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw_path.split(b"/")[1:]]
    except UnicodeDecodeError:
        raise NotFound("no-such-page", "the address is not text", "see the inbox") from None
    return parts


def _patterns(parts: list[str]) -> list[str]:
    """/runs/a/attempts/b: as it stands, then with names in every second place."""
    starred = [part if at % 2 == 0 else "*" for at, part in enumerate(parts)]
    return ["/" + "/".join(parts), "/" + "/".join(starred)]


def _static() -> dict[str, bytes]:
    """What lies beside the pages, read once."""
    folder = files("tenuto.pages") / "static"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message: Message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
