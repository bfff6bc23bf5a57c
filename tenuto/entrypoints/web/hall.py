"""What one server is: its addresses, who has come in, what it may do. Every route is given this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenuto.entrypoints.web.desk import Desk
from tenuto.entrypoints.web.live import Live
from tenuto.entrypoints.web.sessions import Codes, Digits, Sessions
from tenuto.pages.page import Site

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from tenuto.entrypoints.web.peers import Judge
    from tenuto.entrypoints.web.refusals import Problem
    from tenuto.entrypoints.web.sessions import Session

Say = Callable[[str], None]


class Hall:
    def __init__(
        self,
        desk: Desk,
        port: int,
        judge: Judge,
        *,
        names: Sequence[str] = (),
        only_look: str = "",
        is_open_to_look: bool = False,
        say: Say | None = None,
        repository: str = "",
    ) -> None:
        """`only_look`: why nothing can be decided here; "" where it can. `is_open_to_look`: there is no terminal that
        could show a code, so every program of this user may look. `say`: the terminal; None where there is none."""
        self.desk = desk
        self.port = port
        self.judge = judge
        self.only_look = only_look
        self.is_open_to_look = is_open_to_look
        self.has_terminal = say is not None
        self.say: Say = say or _unheard
        self.repository = repository
        self.address = f"http://127.0.0.1:{port}"
        known = ("127.0.0.1", "localhost", "[::1]", *(name.lower() for name in names))
        self.hosts = frozenset(f"{name}:{port}" for name in known)
        self.cookie = f"tenuto-{port}"  # a browser sends cookies to every port of a host
        self.sessions = Sessions()
        self.codes = Codes(self.sessions, self.say)
        self.digits = Digits(self.say)
        self.live = Live(desk)
        self.needs_you = 0

    def site(self, session: Session | None = None) -> Site:
        may_decide = session is not None and not self.only_look
        return Site(self.repository, self.needs_you, may_decide, session.form_token if session else "")

    def judge_onlooker(self, scope: MutableMapping[str, Any]) -> Problem | None:
        """Without a session: programs of the same user, and nobody else."""
        from tenuto.entrypoints.web.peers import is_same_user
        from tenuto.entrypoints.web.refusals import Problem

        client = scope.get("client")
        if client is not None and is_same_user((client[0], client[1]), self.port):
            return None
        return Problem(403, "another-user", "this server shows its pages to the user who started it", "")


def _unheard(text: str) -> None:
    pass
