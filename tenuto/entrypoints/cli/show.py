"""`tenuto show`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenuto.encoding import dumps
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import chosen, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Heading, Part
from tenuto.errors import NotFound

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

_ENVELOPE = ("type", "v", "at", "by")


@click.command(
    "show",
    cls=Command,
    examples=[
        ("tenuto show dark-mode", "every event of a run, as it is stored"),
        ("tenuto show dark-mode --since 40 --json", "what came after event 40, for a script"),
        ("tenuto show --sha256 HASH > old-plan.md", "a file as it was, by the hash that an event names"),
    ],
)
@run_argument
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="N", help="Only events after number N.")
@click.option("--sha256", metavar="HASH", help="Print the stored file that has this hash.")
def command(run: str | None, since: int, sha256: str | None) -> Answer:
    """The events of a run, or any stored version of a file."""
    workspace = open_existing()
    if sha256 is not None:
        return _version(workspace, sha256)
    name = chosen(workspace, run)
    with workspace.journal.read() as reader:
        count = reader.version(name)
        events = [{"seq": seq, "event": event} for seq, event in enumerate(reader.events(name, since), since + 1)]
    if not count:
        raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
    return Answer({"run": name, "count": count, "events": events}, _told(events))


def _told(events: list[dict[str, Any]]) -> list[Part]:
    parts: list[Part] = []
    for entry in events:
        event = entry["event"]
        parts.append(Heading(f"{entry['seq']}  {event['type']}  {event['at']}  by {event['by']}"))
        parts += [
            f"    {field}: {value if isinstance(value, str) else dumps(value)}"
            for field, value in event.items()
            if field not in _ENVELOPE and value not in (None, "", [], {})
        ]
    return parts


def _version(workspace: Workspace, sha: str) -> Answer:
    from tenuto.workspace.versions import stored_version

    body = stored_version(workspace, sha)
    data: dict[str, Any] = {"sha256": sha, "size": len(body)}
    try:
        data["text"] = body.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        data["base64"] = b64encode(body).decode()
    return Answer(data, raw=body)
