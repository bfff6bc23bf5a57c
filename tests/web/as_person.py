"""`tenuto ui` with another judge of who asks: person, unseen, or agent. A browser of a test is driven, which the real
one refuses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import tenuto
from tenuto.entrypoints.web.peers import Judge
from tenuto.entrypoints.web.serve import Wish, serve
from tenuto.workspace.guard import Host, Person

if TYPE_CHECKING:
    from tenuto.workspace.guard import Caller

JUDGES: dict[str, Caller | None] = {"person": Person("web"), "unseen": None, "agent": Host("Codex", "CODEX_THREAD_ID")}


def judged(name: str) -> Judge:
    return lambda peer, port: JUDGES[name]


def main(words: list[str]) -> None:
    port = int(words[words.index("--port") + 1])
    only_look = "you asked for that (--look-only)" if "--look-only" in words else ""
    workspace = tenuto.open(".")
    serve(Wish(workspace.root, port, only_look=only_look), judged(words[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
