"""What others did to a run's files: noticed before anything is changed, and taken in as commands.

A state file that holds

    the newest render of ours             is as we left it: nothing to do
    an older render of ours               is stale (a crash, a restored copy): written anew
    nothing, blanks, NULs                 is written anew from the journal (a damaged one is kept in quarantine),
                                          or refused where its view says so
    anything else                         was edited: the view says the edit in commands, and decide() judges each

An edit that cannot be understood or is not allowed stops the turn: it is named, and left as it is. Artifacts that were
edited become new versions; what was added to an append-only file stays, and ours follows it.

Which version did an edit start from? With the wrong base, our own changes since then would look like something they
took back. A program that wrote before started from its last text or from a render that came after it: the one that
agrees with more of what we have changed since; of several, the one that differs less. If neither explains the edit,
it came from another program, or from an old copy: then every render counts, the ones that are no longer kept made
again from the journal, and the base is the one with the fewest differing places, the newest of several. Places that
others changed before are not counted there: a flag that goes on and off makes an old version look near.
"""

from __future__ import annotations

import posix as os

from tenuto.core.fold import apply
from tenuto.core.parts import new_run
from tenuto.encoding import NotJson, digest, dumps, loads, loads_strict
from tenuto.errors import Refused, TenutoError
from tenuto.files.exchange import beside, is_written, look, look_when_quiet, open_file, place, read_all, read_file
from tenuto.names import file_key
from tenuto.workspace.publish import Publication, displaced_folder, displaced_name, wait_for_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenuto.core.records.commands import AbsorbEdit, Command, StoreArtifact
    from tenuto.core.records.run import Json, Run
    from tenuto.ports import Render, View
    from tenuto.workspace.workspace import Turn

    JsonPath = tuple[str, ...]  # the names on the way to a value inside a JSON text

_ABANDONED_STEPS = 20  # of 10 ms: somebody may be between closing a file and renaming it
_NOTHING = b"\0 \t\r\n"
_KIND, _PLAIN_FILE = 0o170000, 0o100000
_LATELY = 1 << 16  # bytes of an append-only file: what the kernel may not have written yet
_SMALL = 1 << 18  # bytes; larger artifacts lie in objects/, outside the database


def tree_of(run: Run) -> str:
    """The linked work tree that its files lie in; "" is the main one. A run may be shown in no dialect at all."""
    shown = next((place.get("tree", "") for place in run["dialects"].values()), "")
    return shown or str(run["settings"].get("work_tree", ""))


def reconcile(turn: Turn, run: Run) -> None:
    for name, where in list(run["dialects"].items()):
        view = turn.workspace.views.get(name)
        if view is None:
            continue
        root = turn.workspace.root_of(where.get("tree", ""))
        if root is None:
            continue  # the work tree is gone; the journal is not
        for path in view.paths(run, turn.repo):
            _look_at(turn, run, view, root, path, where.get("tree", ""))
    unproven = turn.unproven[run["id"]] = turn.tx.marker(f"unproven:{run['id']}")
    if unproven:
        version, *paths = loads(unproven)
        # Before versions were kept, paths stood there alone.
        _prove(turn, run, *((version, paths) if isinstance(version, int) else (0, [version, *paths])))


def _prove(turn: Turn, run: Run, version: int, paths: list[str]) -> None:
    """Artifacts of the last turn, which led to this version of the run: a crash may have come between their event and
    their file."""
    from tenuto.workspace.objects import content_of, hash_at

    root = turn.workspace.root_of(tree_of(run))
    if root is None:
        return
    for artifact in run["artifacts"].values():
        if artifact["path"] in paths:
            found = hash_at(root, artifact["path"])
            known = [render[0] for render in turn.tx.renders(file_key(tree_of(run), artifact["path"]))]
            gone = found is None and not _was_published(turn, run, version)
            if gone or (found not in (None, artifact["sha256"]) and found in known):
                content = content_of(turn.workspace.state, turn.tx, artifact["sha256"])
                turn.artifacts[artifact["path"]] = (run["id"], artifact["sha256"], content)


def _was_published(turn: Turn, run: Run, version: int) -> bool:
    """A state file of this version stands there, or somebody's edit started from it. It is written behind the
    artifacts: one that is gone now was removed by somebody."""
    for name, where in run["dialects"].items():
        view = turn.workspace.views.get(name)
        for path in view.paths(run, turn.repo) if view is not None else ():
            key = file_key(where.get("tree", ""), path)
            found, newest = turn.seen.get(key), turn.tx.renders(key, 1)
            if found is None or not newest or newest[0][3] != version:
                continue
            if newest[0][0] in (digest(found), _last(turn, key).base):
                return True
    return False


def _look_at(turn: Turn, run: Run, view: View, root: str, path: str, tree: str) -> None:
    key = file_key(tree, path)
    found = turn.seen[key] = _read_or_clear(turn, view, root, path)
    renders = turn.tx.renders(key)
    if not renders:
        if found is not None:
            raise Refused(
                "foreign-file",
                f"{path} is there, but not from run {run['id']}",
                "move it away, or: tenuto adopt",
                path=path,
            )
        return
    _look_at_displaced(turn, run, view, key, root, path, renders, found)
    if found is not None and digest(found) == renders[0][0]:
        return

    if found is not None and not known(turn, key, found, _without_secrets(turn, found, path)):
        found = turn.seen[key] = wait_for_whole(path, found, lambda: _read_when_quiet(root, path))
    if found is None or not found.strip(_NOTHING):
        _damaged(turn, run, view, key, root, path, found)
        return
    clean = _without_secrets(turn, found, path)  # what stands there is replaced, since it was seen with them
    if not known(turn, key, found, clean):
        if _is_dispensable(view, path) and not _has_lines_of(view.render(run, turn.repo)[path], clean):
            quarantine(turn, path, found, "nothing of what was written there is left")
        absorb(turn, run, view, path, key, clean, found)


def _is_dispensable(view: View, path: str) -> bool:
    return path.rpartition("/")[2] in view.dispensable


def _has_lines_of(ours: bytes, found: bytes) -> bool:
    lines = [line.strip() for line in ours.splitlines() if line.strip()]
    return not lines or (
        b"\0" not in found and any(line.strip() in lines for line in found.splitlines() if line.strip())
    )


def _read_or_clear(turn: Turn, view: View, root: str, path: str) -> bytes | None:
    """A folder or a link in the place of a file that the run can do without is moved away, and that is said."""
    try:
        return read_file(root, path)
    except Refused as problem:
        if problem.code != "bad-file" or not _is_dispensable(view, path):
            raise
        spot = place(root, path, create=False)
        if spot is None:
            return None
        with spot:
            kept = f"{turn.workspace.state}/quarantine/{digest(path.encode())[:8]}-{os.urandom(4).hex()}"
            from tenuto.workspace.objects import make_folder

            make_folder(f"{turn.workspace.state}/quarantine")
            os.rename(spot.name, kept, src_dir_fd=spot.fd)
        turn.workspace.warn(f"{problem.message}; it is kept as {kept}, and the file is written anew")
        return None


def _without_secrets(turn: Turn, text: bytes, path: str = "") -> bytes:
    return turn.workspace.without_secrets(text, path)


def _read_when_quiet(root: str, path: str) -> bytes | None:
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        return look_when_quiet(spot.fd, spot.name)


def look_before_first_write(turn: Turn, run: Run, view: View, tree: str, path: str) -> bytes | None:
    """Before a run first shows itself in a file: only nothing, or our own old text, may stand there."""
    root = turn.workspace.root_of(tree)
    found = _read_or_clear(turn, view, root, path) if root else None
    if found is not None and digest(found) not in [render[0] for render in turn.tx.renders(file_key(tree, path))]:
        raise Refused(
            "foreign-file", f"{path} is there already, and not from Tenuto", "move it away, or: tenuto adopt", path=path
        )
    return found


def absorb_artifact(
    turn: Turn, run: Run, path: str, incoming: str = "", artifact: str = "", step: str | None = None
) -> None:
    """Somebody edited an artifact's file, or wrote one: theirs becomes the artifact before it is replaced or read.

    `artifact`, `step`: what it is, and of which step, where the run does not know it. A text does not move to the step
    in which it was edited.
    """
    known = next((item for item in run["artifacts"].items() if item[1]["path"] == path), None)
    root = turn.workspace.root_of(tree_of(run))
    file = open_file(root, path) if root else None
    if file is None:
        return
    from tenuto.workspace.objects import hash_file, import_open_file

    key = file_key(tree_of(run), path)
    try:
        if os.fstat(file).st_mode & _KIND != _PLAIN_FILE:
            raise Refused("bad-file", f"{path} is not a plain file", "move it away", path=path)
        sha, size = hash_file(file)
        if not size or sha == incoming or sha in [render[0] for render in turn.tx.renders(key)]:
            return
        if size <= _SMALL:
            os.lseek(file, 0, 0)
            body = read_all(file)
            sha, size = digest(body), len(body)
            if turn.workspace.has_secrets:
                turn.workspace.secrets.refuse(body, path)
            if b"\0" in body and known and _show_again(turn, run, path, known[1]["sha256"], body):
                return
            turn.tx.put_blob(sha, body)
        else:
            sha, size, _ = import_open_file(turn.workspace.state, file, turn.workspace.secrets, path)
    finally:
        os.close(file)
    name = known[0] if known else artifact or path
    theirs: StoreArtifact = {
        "do": "StoreArtifact",
        "name": name,
        "path": path,
        "sha256": sha,
        "size": size,
        "by": "external",
    }
    of = known[1]["step"] if known else step
    turn.do(run["id"], {**theirs, "step": of} if of is not None else theirs)
    turn.tx.remember(key, (sha, None, run["id"], run["version"]))


def _show_again(turn: Turn, run: Run, path: str, sha: str, found: bytes) -> bool:
    """A text that holds NULs now was blanked by a crash of the machine, not edited. False where it held some before."""
    ours = turn.tx.blob(sha)
    if ours is None or b"\0" in ours:
        return False
    quarantine(turn, path, found, "it held NULs")
    turn.artifacts[path] = (run["id"], sha, ours)
    return True


def check_logs(turn: Turn, texts: dict[str, bytes]) -> list[Publication]:
    """Append-only files: what stands there stays, what a crash cut off or blanked is completed, ours follows."""
    lengths = dict(turn.tx.logs())
    if turn.workspace.has_secrets:
        turn.displaced |= dict.fromkeys(map(displaced_name, lengths))  # no turn looks at what was there before a log
    made = []
    for path in [*texts, *(path for path in lengths if path not in texts)]:
        damaged = None
        if not _log_stands(turn, path, lengths.get(path)):
            damaged = _log_differs(turn, path)
        elif path not in texts:
            continue
        length = turn.tx.append_log(path, texts[path]) if path in texts else turn.tx.log_length(path)
        made.append(Publication(path, "", path, damaged, texts.get(path, b""), "", "log", True, length))
    return made


def _log_stands(turn: Turn, path: str, length: int | None) -> bool:
    """As far as a look at its size and its end can tell: a crash of the machine blanks what was written lately.

    `length`: what we wrote; None: nothing so far. A file that is gone is written again without a word.
    """
    try:
        file = open_file(turn.workspace.root, path)
    except Refused:
        return False
    if file is None:
        return not length
    try:
        if os.fstat(file).st_size != (length or 0):
            return False
        lately = os.pread(file, _LATELY, max(0, (length or 0) - _LATELY))
        return lately.endswith(turn.tx.log_end(path)[-_LATELY:]) and b"\0" not in lately
    finally:
        os.close(file)


def _log_differs(turn: Turn, path: str) -> bytes | None:
    """What others added is taken in. Returns the bytes that stand there, where they are damaged or hold a secret: to be
    replaced by ours.
    """
    found = read_file(turn.workspace.root, path)
    if found is None:
        return None
    ours = b"".join(turn.tx.log_text(path))
    if ours.startswith(found):
        return None  # cut short by a crash: publishing completes it
    added = found[len(ours) :] if found.startswith(ours) else b""
    if b"\0" in found:
        quarantine(turn, path, found, "it held NULs")
        if added.strip(b"\0"):
            turn.tx.append_log(path, _without_secrets(turn, added.replace(b"\0", b"")))
        return found
    if added:
        kept = _without_secrets(turn, added)
        turn.tx.append_log(path, kept)
        return None if kept == added else found
    kept = _without_secrets(turn, found)
    if kept != found and (ours.startswith(kept) or kept.startswith(ours)):  # taken in before, and not replaced yet
        if kept[len(ours) :]:
            turn.tx.append_log(path, kept[len(ours) :])
        return found
    turn.workspace.warn(f"{path} was rewritten by another program; their text stays, ours follows it")
    ours = _without_secrets(turn, ours)
    turn.tx.put_blob(digest(ours), ours)
    turn.tx.reset_log(path, kept)
    return None if kept == found else found


def _look_at_displaced(
    turn: Turn, run: Run, view: View, key: str, root: str, path: str, renders: list[Render], found: bytes | None
) -> None:
    """What the last publication displaced: somebody who held it open may have written to it since."""
    late = _displaced(turn, key, root, path)
    if late is None or late == found or not late.strip(_NOTHING):
        return
    clean = _without_secrets(turn, late, path)
    if clean != late:
        turn.displaced[displaced_name(key)] = late
    # The beginning of a render of ours is what a crash left of a file that was never published.
    if any(body and body.startswith(late) for _, body, _, _ in renders):
        return
    sha = digest(late)
    if any(sha == render[0] for render in renders):
        return
    if known(turn, key, late, clean) or absorbed_before(turn, key, late):
        return
    try:
        absorb(turn, run, view, path, key, clean, late, late=True)
        turn.workspace.warn(f"{path}: a write to the file that was there before came late; it is absorbed")
    except Refused as refusal:
        quarantine(turn, path, late, refusal.message)


def _displaced(turn: Turn, key: str, root: str, path: str) -> bytes | None:
    fd = displaced_folder(turn.workspace.state, create=False)
    if fd is None:
        return None
    try:
        late = look(fd, displaced_name(key))
    finally:
        os.close(fd)
    if late is None:  # no file was displaced, or it lies on another file system
        folder, _, name = path.rpartition("/")
        late = read_file(root, f"{folder}/{beside(name)}" if folder else beside(name))
    return late


def _damaged(turn: Turn, run: Run, view: View, key: str, root: str, path: str, found: bytes | None) -> None:
    if found is None and _absorb_stand_in(turn, run, view, key, root, path):
        return
    if view.missing == "refuse":
        if found is None:
            raise Refused("state-missing", f"{path} is not there", f"tenuto repair --restore {path}", path=path)
        raise Refused("state-damaged", f"{path} is empty or full of NULs", f"tenuto repair --restore {path}", path=path)
    if found:
        quarantine(turn, path, found, "it held nothing but blanks and NULs")
    else:
        turn.workspace.warn(f"{path} was {'gone' if found is None else 'empty'}; it is written anew")


def _absorb_stand_in(turn: Turn, run: Run, view: View, key: str, root: str, path: str) -> bool:
    """A writer died before its rename: what it had written aside is its edit. One that lives is left alone."""
    stand_in = view.stand_in.get(path)
    text = _abandoned(root, path, stand_in) if stand_in else None
    if text is None:
        return False

    clean = _without_secrets(turn, text, path)
    if not known(turn, key, text, clean):
        absorb(turn, run, view, path, key, clean, text)
    turn.workspace.warn(f"{path} was gone; {stand_in}, which its last writer left behind, was taken in its place")
    turn.used_up.append(f"{root}/{stand_in}")
    return True


def _abandoned(root: str, path: str, stand_in: str) -> bytes | None:
    """What was left aside, when it is not renamed within a moment."""
    from time import sleep

    for _ in range(_ABANDONED_STEPS):
        text = _read_when_quiet(root, stand_in)
        if text is None or read_file(root, path) is not None:
            return None
        sleep(0.01)
    spot = place(root, stand_in, create=False)
    if spot is None:
        return None
    with spot:
        return None if is_written(spot.fd, spot.name) else text


def quarantine(turn: Turn, path: str, found: bytes, why: str) -> None:
    """Kept for ever, and whole but for secrets, before anything else takes its place."""
    from tenuto.workspace.objects import keep_aside

    found = _without_secrets(turn, found)
    kept = f"{turn.workspace.state}/quarantine/{digest(path.encode())[:8]}-{digest(found)[:16]}"
    if not keep_aside(turn.workspace.state, kept, found):
        return  # the same text was kept, with its warning, before
    turn.workspace.warn(f"{path} was damaged ({why}); what stood there is kept as {kept}")


# ---- what an edit means -----------------------------------------------------------------------------


_EVERY = 1 << 30
_FURTHEST = 256  # renders that are made again to find a base; an editor left open for a day is not looked for
_REMEMBERED = 16  # edits
_PLACES = 128


def known(turn: Turn, key: str, found: bytes, clean: bytes) -> bool:
    """A render of ours (perhaps a stale one), or an edit that is in the journal already.

    `clean`: the same without secrets, which is all that was absorbed of it. Where they differ, only the newest render
    counts.
    """
    sha = digest(found)
    last = _last(turn, key)
    if clean != found and (clean == last.text or digest(clean) in [render[0] for render in turn.tx.renders(key, 1)]):
        return True
    if found == last.text or sha == last.found:
        return True
    if all(sha != render[0] for render in turn.tx.renders(key, _EVERY)):
        return _is_torn(turn, key, found)
    # Back to exactly what stood there before their last edit: they took it back; it is no restored copy.
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


def absorb(
    turn: Turn, run: Run, view: View, path: str, key: str, text: bytes, found: bytes, late: bool = False
) -> None:
    """Turn an edit into commands, and those into events; Refused: nothing of it. `text`: `found` without secrets."""
    extra: Json = {}
    drop: list[list[str]] = []
    base = _base(turn, run, view, path, key, text)
    mark = turn.mark(run["id"]) if late else None
    try:
        for command in _read_edit(turn, run, view, path, base, text):
            if command["do"] == "AbsorbEdit":
                extra, drop = command.get("extra", {}), command.get("drop", [])
            else:
                command["by"] = "external"
                turn.do(run["id"], command)
    except (TenutoError, NotJson) as refusal:
        if mark is not None:
            turn.undo(run["id"], mark)
        mend = refusal.details.get("mend") if isinstance(refusal, TenutoError) else None
        raise Refused(
            "foreign-edit",
            f"{path} was changed by another program, and that is not allowed: {refusal}",
            f"{f'{mend}, or ' if mend else ''}undo the change, or: tenuto repair --restore {path}",
            path=path,
            reason=refusal.code if isinstance(refusal, TenutoError) else "not-json",
            said=str(refusal),
            **({"mend": mend} if mend else {}),
        ) from None
    absorbed: AbsorbEdit = {
        "do": "AbsorbEdit",
        "dialect": view.name,
        "path": path,
        "sha256": digest(text),
        "extra": extra,
        "by": "external",
    }
    if drop:
        absorbed["drop"] = drop
    turn.do(run["id"], absorbed)
    turn.tx.put_blob(digest(text), text)  # theirs is about to be replaced, and stays readable by its hash
    _last(turn, key).follow(turn, key, base, text, found)


def _read_edit(turn: Turn, run: Run, view: View, path: str, base: bytes, found: bytes) -> Iterable[Command]:
    from tenuto.workspace.objects import Surroundings

    root = turn.workspace.root_of(run["dialects"][view.name].get("tree", ""))
    return view.read(run, path, base, found, Surroundings(root, turn.given))


class _Last:
    """The edit of a file that was absorbed last: its text, the version it started from, the render before it was
    absorbed, the edits before it, the places that they changed, and the hash of what stood there, secrets included: a
    process that does not know the secrets knows the hash.
    """

    __slots__ = ("absorbed", "base", "found", "places", "render", "text")

    def __init__(self, note: str | None) -> None:
        head, _, text = (note or "").partition("\n")
        self.base, self.render, self.absorbed, places, *found = loads(head) if head else ("", "", [], [])
        self.found = found[0] if found else ""
        self.places: set[JsonPath] = {tuple(place) for place in places}
        # Every byte is a character here: a note is text, and the file may be anything.
        self.text = text.encode("latin-1") if note else None

    def follow(self, turn: Turn, key: str, base: bytes, text: bytes, found: bytes) -> None:
        changed = list(differences(base, text))[:_PLACES]
        places = [*sorted(self.places.difference(changed)), *changed][-_PLACES:]
        renders = turn.tx.renders(key, 1)
        edits = [*self.absorbed, *([digest(found)] if found != text else []), digest(text)][-_REMEMBERED:]
        head = dumps(
            [digest(base), renders[0][0] if renders else "", edits, places, *([digest(found)] if found != text else [])]
        )
        turn.tx.put_marker(f"foreign:{key}", f"{head}\n{text.decode('latin-1')}")


def _last(turn: Turn, key: str) -> _Last:
    return _Last(turn.tx.marker(f"foreign:{key}"))


def _base(turn: Turn, run: Run, view: View, path: str, key: str, found: bytes) -> bytes:
    last, renders = _last(turn, key), turn.tx.renders(key)
    kept = [body for _, body, _, _ in renders if body is not None and body != found]
    if last.text is not None and last.text != found:
        since = (
            [render[0] for render in renders].index(last.render)
            if last.render in [r[0] for r in renders]
            else len(renders)
        )
        fresh = [body for _, body, _, _ in renders[:since] if body is not None and body != found]
        ours = {place for body in fresh for place in differences(last.text, body)}
        places = {place for place in last.places if not any(_is_inside(place, one) for one in ours)}
        base = min(
            [last.text, *fresh],
            key=lambda body: (
                len(ours.intersection(differences(body, found))),
                len(_counted(body, found, places)),
                _leaves_of(body, found),
            ),
        )
        if not _doubts(base, found, last.places):
            return base
        kept = [base, *kept]
    base = _nearest(kept, found, last.places)
    if _doubts(base, found, last.places):
        base = _nearest([*kept, *_older(turn, run, view, path, key)], found, last.places)
    return base


def _is_inside(place: JsonPath, other: JsonPath) -> bool:
    """One of the two holds the other, or is it."""
    depth = min(len(place), len(other))
    return place[:depth] == other[:depth]


def _older(turn: Turn, run: Run, view: View, path: str, key: str) -> list[bytes]:
    """Renders of this run whose text is no longer kept, made again, newest first; only those with the old hash."""
    rows = turn.tx.renders(key, _FURTHEST)
    wanted = {seq: sha for sha, body, name, seq in rows if body is None and name == run["id"]}
    made: list[bytes] = []
    state = new_run()
    for number, event in enumerate(turn.tx.events(run["id"]), 1):
        if number > max(wanted, default=0):
            break
        apply(state, event)
        if number in wanted:
            body = view.render(state, turn.repo).get(path)
            if body is not None and digest(body) == wanted[number]:
                made.append(body)
    return made[::-1]


def _nearest(bodies: list[bytes], found: bytes, places: set[JsonPath]) -> bytes:
    return min(bodies, key=lambda body: len(_counted(body, found, places)), default=b"")


def _doubts(base: bytes, found: bytes, places: set[JsonPath]) -> bool:
    """What stands in the base and is another now may be theirs, or ours from before. What was added is theirs."""
    return not all(_counted(base, found, places).values())


def _counted(body: bytes, found: bytes, places: set[JsonPath]) -> dict[JsonPath, bool]:
    return {
        place: added
        for place, added in differences(body, found).items()
        if not any(place[:depth] in places for depth in range(1, len(place) + 1))
    }


def differences(before: bytes, after: bytes) -> dict[JsonPath, bool]:
    """The places of a JSON text that differ, and whether something was added there; of any other text, the lines."""
    try:
        one, other = loads_strict(before), loads_strict(after)
    except NotJson:
        lines = set(before.splitlines())
        return {("line", line.decode("latin-1")): line not in lines for line in lines ^ set(after.splitlines())}
    found: dict[JsonPath, bool] = {}
    _differ(one, other, (), found)
    return found


def _differ(one: object, other: object, place: JsonPath, found: dict[JsonPath, bool]) -> None:
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


def _leaves(one: object, other: object) -> int:
    """How much differs: an entry more in a list weighs what it holds."""
    if one == other:
        return 0
    if isinstance(one, list) and isinstance(other, list):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return sum(_leaves(one.get(name, _ABSENT), other.get(name, _ABSENT)) for name in names)
    return max(_size(one), _size(other))


def _size(value: object) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return max(1, sum(map(_size, value))) if isinstance(value, list) else 1


_ABSENT = object()
