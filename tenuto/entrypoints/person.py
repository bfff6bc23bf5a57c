"""What only a person may say is refused from inside an agent: started by us, or by an agent program."""

from __future__ import annotations

import os

from tenuto.errors import Refused
from tenuto.hosts.surroundings import program


def require_person(what: str, command: str) -> None:
    from tenuto.supervise.attempts import enclosing_attempt

    agent = enclosing_attempt() or program(os.environ)
    if agent:
        raise Refused(
            "not-a-person",
            f"{what} is a person's word; this comes from an agent ({agent})",
            f"run it in a terminal of your own: {command}",
            agent=agent,
        )
