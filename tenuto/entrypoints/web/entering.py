"""Coming in and leaving: a code for a session, as a cookie that no script can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, RedirectResponse

from tenuto.entrypoints.web.persons import asking, parsed
from tenuto.errors import Refused, TenutoError
from tenuto.pages.door import enter_page
from tenuto.workspace.guard import require_person

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from tenuto.entrypoints.web.hall import Hall

Handler = Callable[["Request", tuple[str, ...]], Awaitable["Response"]]


def look(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        return HTMLResponse(enter_page())

    return answer


def enter(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        try:
            client = request.scope.get("client") or ("", 0)
            caller = await hall.desk.beside(lambda: hall.judge((client[0], client[1]), hall.port))
            if caller is not None:
                require_person(caller, "come in", "tenuto ui")
            codes = parsed(await request.body()).get("code", [""])
            session = hall.codes.take(codes[0] if len(codes) == 1 else "")
        except TenutoError as refusal:
            status = 403 if isinstance(refusal, Refused) else 400
            said = f"{refusal.message[:1].upper()}{refusal.message[1:]}. {refusal.hint}"
            return HTMLResponse(enter_page(said), status)
        response = RedirectResponse("/", 303)
        response.set_cookie(hall.cookie, session.name, httponly=True, samesite="strict", path="/")
        return response

    return answer


def leave(hall: Hall) -> Handler:
    async def answer(request: Request, names: tuple[str, ...]) -> Response:
        asked = await asking(request, hall)
        hall.sessions.end(asked.session.name)
        response = RedirectResponse("/in", 303)
        response.delete_cookie(hall.cookie, path="/", httponly=True, samesite="strict")
        return response

    return answer
