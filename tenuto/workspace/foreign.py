"""Somebody changed a projected file: which version did they start from, and what do they ask for?

    known(turn, key, found, clean)  nothing new: a render of ours, or an edit that was absorbed before
    absorb(turn, run, ...)          the dialect says the edit in commands, decide() judges each
    absorb_meanwhile(workspace, ..) the same for what was written while we published

With the wrong base our own changes since then would look like something they took back. Whoever wrote before started from
their last text or from a render that came after it, whichever differs less. If neither explains the edit, it was somebody
else, or an old copy: then every render counts, the ones that are no longer kept made again from the journal, and the
base is the one with the fewest differing places, the newest of several. Places that others changed before are not counted
there: a flag that goes on and off makes an old version look near.

Loaded only when a file is not as we left it.
"""

from __future__ import annotations

from tenuto.core.fold import apply, new_run
from tenuto.encoding import NotJson, digest, dumps, loads, loads_strict
from tenuto.errors import Refused, TenutoError
from tenuto.workspace.publish import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.ports import Dialect
    from tenuto.workspace.publish import Publication
    from tenuto.workspace.turn import Turn, Workspace

    Place = tuple[str, ...]

_EVERY = 1 << 30
_FURTHEST = 256  # renders that are made again to find a base; an editor left open for a day is not looked for
_REMEMBERED = 16  # edits
_PLACES = 128


def known(turn: Turn, key: str, found: bytes, clean: bytes) -> bool:
    """A render of ours (perhaps a stale one), or an edit that is in the journal already.

    `clean`: the same without secrets, which is all that was absorbed of it. With one, an older render that says the same is not meant.
    """
    sha = digest(found)
    last = _last(turn, key)
    if clean != found and (clean == last.text or digest(clean) in [render[0] for render in turn.tx.renders(key, 1)]):
        return True
    if found == last.text or sha == last.found:
        return True
    if all(sha != render[0] for render in turn.tx.renders(key, _EVERY)):
        return _is_torn(turn, key, found)
    # Back to exactly what stood there before their last edit: they took it back, nobody restored a copy.
    return bool(sha != last.base)


def _is_torn(turn: Turn, key: str, found: bytes) -> bool:
    """We died while we wrote what we had merged into the file that we held: new text, then old text, or empty lines."""
    bodies = [body for _, body, _, _ in turn.tx.renders(key) if body is not None]
    for new in bodies[:1]:
        at = next((n for n, (a, b) in enumerate(zip(new, found, strict=False)) if a != b), min(len(new), len(found)))
        rest = found[at:]
        if not rest:  # a beginning only: our write never makes the file shorter than what stood there
            return any(len(old) <= at for old in bodies[1:])
        if at and (not rest.strip(b"\n") or any(rest == old[at : len(found)] for old in bodies[1:])):
            return True
    return False


def took_over(turn: Turn, key: str, body: bytes) -> None:
    """A file from before us, adopted in this turn: known from now on, and what its writers may start from again."""
    _last(turn, key).follow(turn, key, body, body, body)


def absorbed_before(turn: Turn, key: str, found: bytes) -> bool:
    return digest(found) in _last(turn, key).absorbed


def absorb(turn: Turn, run: Run, dialect: Dialect, path: str, key: str, text: bytes, found: bytes, late: bool = False) -> None:
    """Turn somebody's edit into commands, and those into events; refused: nothing of it. `text`: what was `found`, without secrets."""
    extra: Any = {}
    drop: list[list[str]] = []
    base = _base(turn, run, dialect, path, key, text)
    mark = turn.mark(run["id"]) if late else None
    try:
        for command in _read(turn, run, dialect, path, base, text):
            if command["do"] == "AbsorbEdit":
                extra, drop = command.get("extra", {}), command.get("drop", [])
            else:
                turn.do(run["id"], command | {"by": "external"})
    except (TenutoError, NotJson) as refusal:
        if mark is not None:
            turn.undo(run["id"], mark)
        raise Refused(
            "foreign-edit", f"{path} was changed by another program, and that is not allowed: {refusal}",
            f"undo the change, or: tenuto repair --restore {path}",
            path=path, reason=getattr(refusal, "code", "not-json"), said=str(refusal),
        ) from None  # fmt: skip
    absorbed: Any = {
        "do": "AbsorbEdit", "dialect": dialect.name, "path": path, "sha256": digest(text), "extra": extra, "by": "external",
    }  # fmt: skip
    if drop:
        absorbed["drop"] = drop
    turn.do(run["id"], absorbed)
    turn.tx.put_blob(digest(text), text)  # theirs is about to be replaced, and stays readable by its hash
    _last(turn, key).follow(turn, key, base, text, found)


def absorb_meanwhile(workspace: Workspace, publication: Publication, found: bytes, standing: bytes) -> bytes:
    """While we published, somebody wrote `found`: one more turn, under the lock we hold, takes it in.

    Returns what the file shows now; the caller, who holds it, puts it there.
    """
    from tenuto.workspace.turn import Turn

    key = key_of(publication.tree, publication.path)
    clean = workspace.secrecy.masked(found, publication.path) if workspace.secrecy else found
    with Turn(workspace, held=key) as turn:
        run = turn.run(publication.run)
        turn.seen[key] = standing
        if run is not None and not known(turn, key, found, clean):
            absorb(turn, run, workspace.dialects[publication.kind], publication.path, key, clean, found)
    return turn.shown if turn.shown is not None else standing


def _read(turn: Turn, run: Run, dialect: Dialect, path: str, base: bytes, found: bytes) -> Any:
    """A dialect whose commands need facts about other files reads the edit where they lie."""
    read_at = getattr(dialect, "read_at", None)
    if read_at is None:
        return dialect.read(run, path, base, found)
    root = turn.workspace.root_of(run["dialects"][dialect.name].get("tree", ""))
    return read_at(root, run, path, base, found)


class _Last:
    """The edit of a file that was absorbed last: its text, the version it started from, the render before it was absorbed, the edits
    before it, the places that they changed, and the hash of what stood there, secrets included: who does not know them knows that."""

    __slots__ = ("absorbed", "base", "found", "places", "render", "text")

    def __init__(self, note: str | None) -> None:
        head, _, text = (note or "").partition("\n")
        self.base, self.render, self.absorbed, places, *found = loads(head) if head else ("", "", [], [])
        self.found = found[0] if found else ""
        self.places: set[Place] = {tuple(place) for place in places}
        # Every byte is a character here: a note is text, and the file may be anything.
        self.text = text.encode("latin-1") if note else None

    def follow(self, turn: Turn, key: str, base: bytes, text: bytes, found: bytes) -> None:
        changed = list(differences(base, text))[:_PLACES]
        places = [*sorted(self.places.difference(changed)), *changed][-_PLACES:]
        renders = turn.tx.renders(key, 1)
        edits = [*self.absorbed, *([digest(found)] if found != text else []), digest(text)][-_REMEMBERED:]
        head = dumps([digest(base), renders[0][0] if renders else "", edits, places, *([digest(found)] if found != text else [])])
        turn.tx.put_note(f"foreign:{key}", f"{head}\n{text.decode('latin-1')}")


def _last(turn: Turn, key: str) -> _Last:
    return _Last(turn.tx.note(f"foreign:{key}"))


def _base(turn: Turn, run: Run, dialect: Dialect, path: str, key: str, found: bytes) -> bytes:
    last, renders = _last(turn, key), turn.tx.renders(key)
    kept = [body for _, body, _, _ in renders if body is not None and body != found]
    if last.text is not None and last.text != found:
        since = [render[0] for render in renders].index(last.render) if last.render in [r[0] for r in renders] else len(renders)
        fresh = [body for _, body, _, _ in renders[:since] if body is not None and body != found]
        base = min([last.text, *fresh], key=lambda body: (len(_counted(body, found, last.places)), _leaves_of(body, found)))
        if not _doubts(base, found, last.places):
            return base
        kept = [base, *kept]
    base = _nearest(kept, found, last.places)
    if _doubts(base, found, last.places):
        base = _nearest([*kept, *_older(turn, run, dialect, path, key)], found, last.places)
    return base


def _older(turn: Turn, run: Run, dialect: Dialect, path: str, key: str) -> list[bytes]:
    """Renders of this run whose text is not kept any more, made again, newest first; only what has the hash of then counts."""
    rows = turn.tx.renders(key, _FURTHEST)
    wanted = {seq: sha for sha, body, name, seq in rows if body is None and name == run["id"]}
    made: list[bytes] = []
    state = new_run()
    for number, event in enumerate(turn.tx.events(run["id"]), 1):
        if number > max(wanted, default=0):
            break
        apply(state, event)
        if number in wanted:
            body = dialect.render(state, turn.repo).get(path)
            if body is not None and digest(body) == wanted[number]:
                made.append(body)
    return made[::-1]


def _nearest(bodies: list[bytes], found: bytes, places: set[Place]) -> bytes:
    return min(bodies, key=lambda body: len(_counted(body, found, places)), default=b"")


def _doubts(base: bytes, found: bytes, places: set[Place]) -> bool:
    """What stands in the base and is another now may be theirs, or ours from before. What was added is theirs."""
    return not all(_counted(base, found, places).values())


def _counted(body: bytes, found: bytes, places: set[Place]) -> dict[Place, bool]:
    return {
        place: added for place, added in differences(body, found).items()
        if not any(place[:depth] in places for depth in range(1, len(place) + 1))
    }  # fmt: skip


def differences(before: bytes, after: bytes) -> dict[Place, bool]:
    """The places of a JSON text that differ, and whether something was added there; of any other text, the lines."""
    try:
        one, other = loads_strict(before), loads_strict(after)
    except NotJson:
        lines = set(before.splitlines())
        return {("line", line.decode("latin-1")): line not in lines for line in lines ^ set(after.splitlines())}
    found: dict[Place, bool] = {}
    _differ(one, other, (), found)
    return found


def _differ(one: Any, other: Any, place: Place, found: dict[Place, bool]) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            if one.get(name, _ABSENT) != other.get(name, _ABSENT):
                _differ(one.get(name, _ABSENT), other.get(name, _ABSENT), (*place, name), found)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                _differ(left, right, (*place, str(number)), found)
    else:
        found[place] = one is _ABSENT


def _leaves_of(before: bytes, after: bytes) -> int:
    try:
        return _leaves(loads_strict(before), loads_strict(after))
    except NotJson:
        return len(differences(before, after))


def _leaves(one: Any, other: Any) -> int:
    """How much differs: an entry more in a list weighs what it holds."""
    if one == other:
        return 0
    if isinstance(one, list) and isinstance(other, list):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return sum(_leaves(one.get(name, _ABSENT), other.get(name, _ABSENT)) for name in names)
    return max(_size(one), _size(other))


def _size(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return max(1, sum(map(_size, value))) if isinstance(value, list) else 1


_ABSENT = object()
