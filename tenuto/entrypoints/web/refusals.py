"""How the server says no: what, why and what now, as a page, with the right status."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tenuto.errors import (
    BadInput,
    Conflict,
    Damaged,
    NotFound,
    Refused,
    SchemaSkew,
    TenutoError,
    Unwritable,
    Waiting,
)
from tenuto.pages.door import opening_page, refusal_page
from tenuto.pages.page import document

if TYPE_CHECKING:
    from tenuto.pages.page import Site

_STATUSES: tuple[tuple[type[TenutoError], int], ...] = (
    (BadInput, 400),
    (NotFound, 404),
    (Refused, 403),
    (Waiting, 409),
    (Conflict, 409),
    (SchemaSkew, 503),
    (Damaged, 500),
    (Unwritable, 507),
)
_LATE = ("not-this-gate", "no-gate", "no-question", "gate-stale", "late")


class Problem(NamedTuple):
    status: int
    code: str
    message: str
    hint: str
    to: str = ""
    """Where the browser is sent instead of a page."""
    again: str = ""
    """What the browser asks for once more, from here: a strict cookie is not sent with a link from another site."""
    kept: str = ""
    """What the person had written: it stays to be copied."""


def refusal(problem: Problem, site: Site) -> Response:
    if problem.to:
        return RedirectResponse(problem.to, problem.status)
    if problem.again:
        return HTMLResponse(opening_page(problem.again))
    page = refusal_page(problem.status, problem.code, problem.message, problem.hint, problem.kept)
    return HTMLResponse(document(page, site), problem.status)


def problem_of(error: TenutoError, kept: str = "") -> Problem:
    status = 409 if error.code in _LATE else next((code for kind, code in _STATUSES if isinstance(error, kind)), 500)
    return Problem(status, error.code, error.message, error.hint, kept=kept)
