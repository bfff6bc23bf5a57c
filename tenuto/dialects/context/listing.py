"""LIST: every task, newest first, from the index that the journal keeps.

Folders that appeared since the last look are adopted on the way. Looking costs two numbers, not ten
thousand files: the folder of tasks tells when it last changed, and a manifest whose time of change is not the
one that our own writes have tells that somebody edited it. One that cannot be parsed is skipped, by name.
"""

from __future__ import annotations

from time import time_ns

from tenuto.core.times import milliseconds
from tenuto.dialects.context.places import KNOWN_STATUSES, NAME, TASKS, manifest_of, shown_status
from tenuto.encoding import dumps, loads
from tenuto.errors import TenutoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.dialects.context.shapes import Task, Workspace
    from tenuto.ports import Reader

_SCANNED = "context:scanned:"  # + tree: when the folder of tasks had changed last, and what lay there without a manifest
_LOOKED = "context:looked:"  # + slug: a manifest's time of change that was looked into already; what is wrong with it
_FEW = 50  # folders: looking at their names is cheaper than a note
_UNPARSABLE = ("not-json", "not-an-object")
_OWN_WRITE = 100  # ms between a command's time and the time its file was written
_SETTLED = 50_000_000  # ns: a folder that changed only now may change again within one tick of its clock


def list_tasks(workspace: Workspace, limit: int) -> list[Task]:
    with workspace.journal.read() as reader:
        found = _folders(workspace, reader)
        tasks = [] if found else reader.runs(dialect=NAME, limit=limit)
    if found:
        _take_in(workspace, *found)
        tasks = _cards(workspace, limit)
    fresh, broken = _notice_edits(workspace, tasks)
    if fresh:
        tasks = _cards(workspace, limit)
    return [_task(card, workspace) for card in tasks if card["id"] not in broken]


def _cards(workspace: Workspace, limit: int) -> list[Any]:
    with workspace.journal.read() as reader:
        return reader.runs(dialect=NAME, limit=limit)


def _task(card: Any, workspace: Workspace) -> Task:
    status = shown_status(card["status"], card["dialects"].get(NAME, {}).get("status"))
    if status not in KNOWN_STATUSES:
        file = card["dialects"][NAME].get("as_found") or manifest_of(card["id"])
        workspace.warn(f"{file}: unknown status {status!r}, shown as it is")
    return {
        "task": card["id"], "mode": card["mode"], "workflow": card["pipeline"]["name"], "status": status,
        "created_at": card["created_at"],
    }  # fmt: skip


# ---- folders that appeared -------------------------------------------------------------------------


def notice_folders(workspace: Workspace) -> list[str]:
    """Adopt what lies in the folder of tasks and is not in the journal. Returns the slugs."""
    with workspace.journal.read() as reader:
        found = _folders(workspace, reader)
    return _take_in(workspace, *found) if found else []


def _folders(workspace: Workspace, reader: Reader) -> tuple[list[str], int] | None:
    """Those that the journal does not know, and when the folder of tasks had changed where that is worth a note (else 0); None: nothing to do."""
    files = workspace.files()
    changed = files.changed_at(TASKS)
    if changed is None:
        return None
    said = reader.note(_SCANNED + workspace.tree)
    before, bare = loads(said) if said else (0, [])
    if before == changed:
        return (bare, 0) if bare else None
    names = [name for name in files.names(TASKS) if name[0] != "."]
    many, unknown = len(names) > _FEW, [name for name in names if not reader.version(name)]
    return (unknown, changed if many else 0) if unknown or many else None


def _take_in(workspace: Workspace, unknown: list[str], changed: int) -> list[str]:
    from tenuto.dialects.context.adoption import adopt_all

    adopted, without = adopt_all(workspace, unknown)
    if changed and time_ns() - changed > _SETTLED:
        with workspace.journal.write() as transaction:
            transaction.put_note(_SCANNED + workspace.tree, dumps([changed, without]))
    return adopted


# ---- manifests that others changed -----------------------------------------------------------------


def _notice_edits(workspace: Workspace, cards: list[Any]) -> tuple[bool, list[str]]:
    """(whether anything was looked into, the tasks whose file cannot be parsed)"""
    files, tree = workspace.files(), workspace.tree
    days: dict[str, int] = {}
    suspects = []
    for card in cards:
        place = card["dialects"][NAME]
        if place.get("tree", "") != tree:
            continue
        changed = files.changed_at(place.get("as_found") or manifest_of(card["id"]))
        if changed is None or changed == place.get("seen"):
            continue
        marked = changed % 1_000_000 == 0
        if not marked or changed // 1_000_000 > _moment(card["updated_at"], days) + _OWN_WRITE:
            suspects.append((card["id"], str(changed)))
    return _look_into(workspace, suspects) if suspects else (False, [])


def _moment(text: str, days: dict[str, int]) -> int:
    """`milliseconds`, for many times of few days, as we write them ourselves."""
    if len(text) != 24:
        return milliseconds(text) or 0
    day = days.get(text[:10])
    if day is None:
        day = days[text[:10]] = milliseconds(f"{text[:10]}T00:00:00Z") or 0
    return day + int(text[11:13]) * 3_600_000 + int(text[14:16]) * 60_000 + int(text[17:19] + text[20:23])


def _look_into(workspace: Workspace, suspects: list[tuple[str, str]]) -> tuple[bool, list[str]]:
    """A turn for each file that was not looked into since it changed. What is refused is said each time, and stays."""
    with workspace.journal.read() as reader:
        before = {slug: (reader.note(_LOOKED + slug) or "").split("\n", 2) for slug, _ in suspects}
    looked = {slug: [changed, "", ""] for slug, changed in suspects if before[slug][0] != changed}
    for slug, found in looked.items():
        try:
            with workspace.turn() as turn:
                turn.run(slug)
        except TenutoError as refusal:
            found[1:] = [str(refusal.details.get("reason") or refusal.code), refusal.message]
    if looked:
        with workspace.journal.write() as transaction:
            for slug, found in looked.items():
                transaction.put_note(_LOOKED + slug, "\n".join(found))
    broken = []
    for slug, (_, *wrong) in (before | looked).items():
        if any(wrong):
            skipped = wrong[0] in _UNPARSABLE
            workspace.warn(f"{wrong[1]}; skipped" if skipped else wrong[1])
            broken += [slug] if skipped else []
    return bool(looked), broken
