"""Check a journal and the files written from it, and bring them back in line with each other.

`examine` looks, changes nothing and takes no lock. The journal checks itself (ports.Reader.verify_*); a file is

    the newest we wrote            fine, not mentioned
    an older one of ours, or none  behind: a crash or a checkout; the next command or `tenuto repair` writes it
    somebody else's                edited: the next command takes it in, or refuses and names it
    empty, NULs, no plain file     damage

and every version of an artifact that an event names must still be stored, unchanged.

`repair` makes anew what can be made from the journal: caches are folded again, files that are behind are written, edits
are taken in as events where the rules allow it, and named and left where not. A damaged event cannot be made from
anything: it is named, and left for a backup. `restore` puts our version of one file back, whatever stands there; theirs
is moved to quarantine first.

What about this machine and this repository could hurt, and what to do about each.

A check looks and answers; it mends nothing and waits for no other process.

    ok        nothing to do
    note      works, but could be better or will matter one day
    problem   something is broken, or will be
"""

from __future__ import annotations

import os

from tenuto.core.approvals import PASSED_ON
from tenuto.core.parts import new_repo
from tenuto.encoding import digest
from tenuto.errors import Damaged, NotFound, Refused, TenutoError
from tenuto.files.exchange import place, read_all, write_all
from tenuto.names import file_key, split_file_key
from tenuto.stores.journal import REPO, object_path
from tenuto.workspace.edits import absorb_artifact, tree_of
from tenuto.workspace.objects import content_of, copy_to, hash_at, hash_file, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    from tenuto.core.records.run import Artifact, Repo, Run
    from tenuto.files.exchange import Place
    from tenuto.ports import Check, Finding, Reader, View
    from tenuto.workspace.workspace import Turn, Workspace

    class Report(TypedDict):
        runs: int
        events: int
        findings: list[Finding]

    class Repaired(TypedDict):
        mended: list[Finding]  # what was wrong and is right now
        refused: list[TenutoError]  # edits that the rules do not allow
        left: list[Finding]


_WRITE = "tenuto repair"


def finding(severity: str, run: str | None, where: str, message: str, fix: str) -> Finding:
    return {"severity": severity, "run": run, "where": where, "message": message, "fix": fix}


def compare_files(workspace: Workspace, reader: Reader, runs: set[str]) -> Iterator[Finding]:
    """State files and artifacts of these runs."""
    try:
        repo = reader.load_repo()
    except Damaged:
        repo = new_repo()  # the check of its events names it
    loaded: dict[str, Run | None] = {}
    for key, name, sha in reader.projected():
        if name in runs:
            if name not in loaded:
                loaded[name] = reader.load(name)
            run = loaded[name]
            if run is not None:
                yield from _compare_file(workspace, reader, repo, run, key, sha)


def compare_logs(workspace: Workspace, reader: Reader) -> Iterator[Finding]:
    for path, _ in reader.logs():
        yield from _compare_log(workspace, reader, path)


def missing_contents(workspace: Workspace, reader: Reader, run: str) -> Iterator[Finding]:
    """Every version of every artifact that this run's events name."""
    seen: set[str] = set()
    elsewhere = reader.large_contents()  # the store's own, compared with their hash when its contents are verified
    for event in reader.events(run):
        if event["type"] != "ArtifactStored":
            continue
        sha: str = event["sha256"]
        if not sha or sha in seen or _is_stored(reader, sha):  # without a hash: it was reported, and was not there
            continue
        seen.add(sha)
        found = _hash_of_object(object_path(workspace.state, sha))
        if found != sha and not (found is None and sha in elsewhere):
            problem = "is not stored any more" if found is None else "is not what was stored"
            yield finding(
                "damage", run, event["path"], f"the version {sha} {problem}", "restore a backup: tenuto import FILE"
            )


def _is_stored(reader: Reader, sha: str) -> bool:
    try:
        return reader.blob(sha) is not None
    except Damaged:
        return True  # it is there, and the check of the contents names it


def read_at(root: str, path: str) -> bytes | None:
    """A file below the repository; None where there is none."""
    spot = place(root, path, create=False)
    if spot is None:
        return None
    with spot:
        return spot.read()


def _hash_of_object(path: str) -> str | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return hash_file(file)[0]
    finally:
        os.close(file)


def _compare_file(workspace: Workspace, reader: Reader, repo: Repo, run: Run, key: str, sha: str) -> Iterator[Finding]:
    tree, path = split_file_key(key)
    root = workspace.root_of(tree)
    if root is None:
        return  # the work tree is gone, and its files with it
    view = _shown_by(workspace, repo, run, path)
    name = run["id"]
    if view is None:
        if any(artifact["path"] == path for artifact in run["artifacts"].values()):
            yield from _compare_artifact(root, name, path, sha, [render[0] for render in reader.renders(key)])
        return
    try:
        found = read_at(root, path)
    except TenutoError as error:
        yield finding("damage", name, path, error.message, error.hint)
        return
    if found is not None and digest(found) == sha:
        return
    restore = f"tenuto repair --restore {path}"
    if found is None and view.missing != "refuse":
        yield finding("behind", name, path, "it is not there", _WRITE)
    elif found is None or not found.strip(b"\0 \t\r\n"):
        state = "not there" if found is None else "empty or full of NULs"
        yield finding("damage", name, path, f"it is {state}", restore if view.missing == "refuse" else _WRITE)
    elif digest(found) in [render[0] for render in reader.renders(key)]:
        yield finding("behind", name, path, "it shows an older state", _WRITE)
    else:
        yield finding("edited", name, path, "another program changed it", f"tenuto repair takes it in, or: {restore}")


def _shown_by(workspace: Workspace, repo: Repo, run: Run, path: str) -> View | None:
    for name in run["dialects"]:
        view = workspace.views.get(name)
        if view is not None and path in view.paths(run, repo):
            return view
    return None


def _compare_artifact(root: str, run: str, path: str, sha: str, known: list[str]) -> Iterator[Finding]:
    found = hash_at(root, path)
    if found == sha:
        return
    if found is None:
        yield finding("behind", run, path, "it is not there", _WRITE)
    elif found in known:
        yield finding("behind", run, path, "it is an older version", _WRITE)
    else:
        fix = f"tenuto repair keeps both versions, or: tenuto repair --restore {path}"
        yield finding("edited", run, path, "another program changed it", fix)


def _compare_log(workspace: Workspace, reader: Reader, path: str) -> Iterator[Finding]:
    try:
        ours = b"".join(reader.log_text(path))
        found = read_at(workspace.root, path)
    except TenutoError as error:
        yield finding("damage", None, path, error.message, error.hint)
        return
    if found == ours:
        return
    if found is None:
        yield finding("behind", None, path, "it is not there", _WRITE)
    elif ours.startswith(found):
        yield finding("behind", None, path, f"its last {len(ours) - len(found)} bytes are not there", _WRITE)
    elif b"\0" in found:
        yield finding("damage", None, path, "it holds NULs", _WRITE)
    else:
        what = "added to it" if found.startswith(ours) else "rewrote it"
        yield finding("edited", None, path, f"another program {what}", f"{_WRITE} takes it in")


def examine(workspace: Workspace, only: str | None = None) -> Report:
    """Without `only`: all runs, the repository's own stream, all contents and logs."""
    with workspace.journal.read() as reader:
        names = reader.names()
        if only is not None and only not in names:
            raise NotFound("no-such-run", f"there is no run {only!r}", "tenuto list", run=only)
        chosen = [name for name in names if only in (None, name)]
        findings: list[Finding] = list(reader.verify_store()) if only is None else []
        sound: set[str] = set()  # what the files of a damaged run should be is not known
        for name in chosen:
            bad = list(reader.verify_run(name))
            findings += bad
            if not bad and name != REPO:
                sound.add(name)
                findings += missing_contents(workspace, reader, name)
        if only is None:
            findings += reader.verify_contents()
        files = _compare(workspace, reader, sound, only)
        events = sum(reader.version(name) for name in chosen)
    if files:
        files = _compare_again(workspace, sound, only, files)
    return {"runs": len([name for name in chosen if name != REPO]), "events": events, "findings": findings + files}


def _compare(workspace: Workspace, reader: Reader, runs: set[str], only: str | None) -> list[Finding]:
    logs = compare_logs(workspace, reader) if only is None else ()
    return [*compare_files(workspace, reader, runs), *logs]


def _compare_again(workspace: Workspace, runs: set[str], only: str | None, found: list[Finding]) -> list[Finding]:
    """A writer may have been between its commit and its files while we looked. Under the lock there is none."""
    try:
        workspace.journal.lock()
    except OSError:
        return found  # it may not be written to: then there is no writer
    try:
        with workspace.journal.read() as reader:
            return _compare(workspace, reader, runs, only)
    finally:
        workspace.journal.unlock()


_CACHES = ("state", "card")
_EVENTS = ("event ", "end", "fold")


def repair(workspace: Workspace) -> Repaired:
    before = examine(workspace)["findings"]
    for found in before:
        if found["where"] in _CACHES:
            with workspace.journal.write() as transaction:
                transaction.rebuild(found["run"] or "")
    if any(found["where"] == "index" for found in before):
        with workspace.journal.write() as transaction:
            transaction.rebuild_index()
    refused: list[TenutoError] = []
    # A damaged run is left alone: what its files should be is not known.
    damaged = [found["run"] for found in before if found["where"].startswith(_EVENTS)]
    for run in dict.fromkeys(found["run"] for found in before if found["run"] and found["run"] not in damaged):
        try:
            with workspace.turn() as turn:
                _mend_run(turn, run)
        except TenutoError as error:
            refused.append(error)
    if any(found["run"] is None for found in before):
        _mend_logs(workspace)
    left = examine(workspace)["findings"]
    still = [(found["run"], found["where"]) for found in left]
    return {
        "mended": [found for found in before if (found["run"], found["where"]) not in still],
        "refused": refused,
        "left": left,
    }


def restore(workspace: Workspace, path: str) -> str | None:
    """Our version of a file again. Returns where theirs is kept; None where nothing stood there."""
    workspace.journal.lock()
    try:
        with workspace.journal.read() as reader:
            ours = _ours(workspace, reader, path)
        spot = place(workspace.root, path)
        assert spot is not None
        with spot:
            theirs = _look(spot)
            if isinstance(ours, bytes) and theirs == ours:
                return None
            kept = _move_away(workspace, spot, theirs)
            if kept and workspace.secrets:
                _mask_in_place(workspace, kept)
            _put(spot, ours)
        return kept
    finally:
        workspace.journal.unlock()


def _mend_run(turn: Turn, name: str) -> None:
    run = turn.run(name)
    if run is None:
        return
    root = turn.workspace.root_of(tree_of(run))
    if root is None:
        return
    for artifact in list(run["artifacts"].values()):
        _mend_artifact(turn, run, root, artifact)


def _mend_artifact(turn: Turn, run: Run, root: str, artifact: Artifact) -> None:
    path, sha = artifact["path"], artifact["sha256"]
    found = hash_at(root, path)
    if found == sha:
        return
    known = [render[0] for render in turn.tx.renders(file_key(tree_of(run), path))]
    if found is None or found in known:
        turn.artifacts[path] = (run["id"], sha, content_of(turn.workspace.state, turn.tx, sha))
    else:
        absorb_artifact(turn, run, path)


def _mend_logs(workspace: Workspace) -> None:
    """A turn completes what was cut off and takes in what was added; what is gone or full of NULs is written whole."""
    with workspace.journal.read() as reader:
        paths = [path for path, _ in reader.logs()]
    for path in paths:
        found = read_at(workspace.root, path)
        if found is None or b"\0" in found:
            kept = restore(workspace, path)
            if kept:
                workspace.warn(f"{path} was damaged; what stood there is kept as {kept}")
    with workspace.turn() as turn:
        turn.run("")


def _ours(workspace: Workspace, reader: Reader, path: str) -> bytes | str:
    if path in [log for log, _ in reader.logs()]:
        return b"".join(reader.log_text(path))
    renders = reader.renders(file_key(workspace.tree, path))
    if not renders:
        raise NotFound(
            "not-ours", f"{path} was never written by Tenuto", "tenuto verify names the files that were", path=path
        )
    sha, body, _, _ = renders[0]
    return body if body is not None else content_of(workspace.state, reader, sha)


def _look(spot: Place) -> bytes | None:
    try:
        return spot.read()
    except Refused:
        return b""  # a link or a folder: moved as it is, never followed


def _move_away(workspace: Workspace, spot: Place, found: bytes | None) -> str | None:
    """Theirs goes to quarantine in one step: a program that has it open goes on writing to it there."""
    if found is None:
        return None
    folder = workspace.state + "/quarantine"
    make_folder(folder)
    name = f"{digest(spot.path.encode())[:8]}-{digest(found)[:16]}"
    kept, number = f"{folder}/{name}", 1
    while os.path.lexists(kept):
        number += 1
        kept = f"{folder}/{name}-{number}"
    try:
        os.rename(spot.name, kept, src_dir_fd=spot.fd)
    except OSError:  # on another file system
        with open(kept, "xb") as file:
            file.write(found)
        os.unlink(spot.name, dir_fd=spot.fd)
    return kept


def _put(spot: Place, ours: bytes | str) -> None:
    if isinstance(ours, str):
        copy_to(ours, spot.fd, spot.name)
        return
    file = os.open(
        spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=spot.fd
    )
    try:
        write_all(file, ours)
    finally:
        os.close(file)


def _mask_in_place(workspace: Workspace, path: str) -> None:
    """A file that lies in a folder of ours: a program that has it open goes on writing to it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return  # a link or a folder, which was moved as it is
    try:
        text = read_all(file)
        clean = workspace.secrets.body(text)
        if clean != text:
            os.lseek(file, 0, 0)
            write_all(file, clean.ljust(len(text), b"\n"))
            os.ftruncate(file, len(clean))
    finally:
        os.close(file)


_OLDEST_GIT = (2, 20)


def check(status: str, name: str, message: str, fix: str = "", code: str = "") -> Check:
    return {"status": status, "name": name, "message": message, "fix": fix, "code": code}


def diagnose(workspace: Workspace) -> list[Check]:
    return [
        *workspace.journal.health(workspace.root + "/.tenuto"),
        *_check_gates(workspace),
        *_check_leftovers(workspace),
        _check_bytecode(),
        _check_git(),
        *_check_secrets(workspace),
        *_check_project(workspace),
    ]


def _check_gates(workspace: Workspace) -> Iterator[Check]:
    try:
        if not workspace.journal.exists():
            return
        with workspace.journal.read() as reader:
            passed_on = reader.load_repo()["settings"].get(PASSED_ON)
    except TenutoError:
        return  # the journal's own check says why
    for over in passed_on or ():
        yield check(
            "note",
            "gates",
            f"over {over} a model may pass on what a person decides",
            f"tenuto {over} --approve off, unless you want that",
        )


def _check_leftovers(workspace: Workspace) -> Iterator[Check]:
    state = workspace.state
    stale = _stale_displaced(workspace)
    if stale:
        yield check(
            "note",
            "shelf",
            f"{len(stale)} file{'' if len(stale) == 1 else 's'} on the shelf that nothing is shown in any more",
            f"rm {' '.join(stale[:3])}" + (" ..." if len(stale) > 3 else ""),
        )
    unfinished = [name for name in _names(state) if name.startswith("import-")]
    unfinished += [f"objects/{name}" for name in _names(state + "/objects") if name.startswith(".new-")]
    unfinished = [name for name in unfinished if not os.path.exists(f"/proc/{name.rpartition('-')[2]}")]
    if unfinished:
        yield check(
            "note", "objects", "left over by a crash", "rm " + " ".join(f"{state}/{name}" for name in unfinished)
        )
    kept = _names(state + "/quarantine")
    if kept:
        yield check(
            "note",
            "quarantine",
            f"{len(kept)} file{'' if len(kept) == 1 else 's'} that others wrote and Tenuto replaced",
            f"look at {state}/quarantine, then remove what you do not need",
        )


def _stale_displaced(workspace: Workspace) -> list[str]:
    from tenuto.names import split_file_key
    from tenuto.workspace.publish import displaced_name

    names = _names(workspace.state + "/shelf")
    if not names:
        return []
    try:
        with workspace.journal.read() as reader:
            known = {displaced_name(key) for key, _, _ in reader.projected()}
            known |= {displaced_name(split_file_key(key)[1]) for key, _, _ in reader.projected()}
    except TenutoError:
        return []  # the journal's own check says why
    return [f"{workspace.state}/shelf/{name}" for name in names if name[:32] not in known]


def _check_bytecode() -> Check:
    """A process without bytecode compiles everything it imports: a hook takes twice as long."""
    from importlib.util import cache_from_source

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    modules = [f"{where}/{name}" for where, _, names in os.walk(package) for name in names if name.endswith(".py")]
    missing = [path for path in modules if not _is_fresh(cache_from_source(path), path)]
    if len(missing) * 4 > len(modules):
        return check(
            "note",
            "bytecode",
            f"{len(missing)} of {len(modules)} modules have none: every start takes longer",
            f"python -m compileall -q {package}",
        )
    return check("ok", "bytecode", "in place")


def _is_fresh(cached: str, source: str) -> bool:
    try:
        return os.stat(cached).st_mtime >= os.stat(source).st_mtime
    except OSError:
        return False


def _check_git() -> Check:
    from tenuto.files.git_start import version as git_version

    version = git_version()
    if not version:
        return check("note", "git", "not found: commits cannot be checked, and work trees not be used", "install git")
    number = next((word for word in version.split() if word[:1].isdecimal()), "").split(".")
    found = tuple(int(part) for part in number[:2] if part.isdecimal())
    if len(found) == 2 and found < _OLDEST_GIT:
        return check("note", "git", f"{version} is old", f"use git {_OLDEST_GIT[0]}.{_OLDEST_GIT[1]} or newer")
    return check("ok", "git", version)


def _check_secrets(workspace: Workspace) -> Iterator[Check]:
    """Whether the values that the settings call secret are such that they can be kept out."""
    from tenuto.secrets import declared
    from tenuto.workspace.settings import secret_names

    try:
        roots = [root for root in (workspace.root, workspace.root_of("")) if root]
        names = dict.fromkeys(name for root in roots for name in secret_names(root, workspace.state))
    except TenutoError:
        return  # the check of the settings says why
    kept: list[str] = []
    for name in names:
        try:
            known = bool(declared([name], os.environ))
        except TenutoError as error:
            yield check("problem", "secrets", error.message, error.hint, error.code)
            continue
        if known:
            kept.append(name)
        else:
            yield check("ok", "secrets", f"{name} has no value here: this process cannot know it")
    if kept:
        yield check("ok", "secrets", f"kept out of all that is written: {', '.join(kept)}")


def _check_project(workspace: Workspace) -> Iterator[Check]:
    """Whether the engine runs build and tests of this project itself, or believes what agents say."""
    from pathlib import Path

    from tenuto.knowledge.project import proposed
    from tenuto.workspace.settings import read_settings

    try:
        checks = read_settings(workspace.root, workspace.state).get("checks", {})
    except TenutoError:
        return  # the check of the settings says why
    if checks:
        yield check("ok", "checks", f"the engine runs {', '.join(checks)} itself, where a pipeline says so")
        return
    found = ", ".join(f"{name}: {command}" for name, command in proposed(Path(workspace.root)).items())
    message = "the settings name none: neither build nor tests are run by the engine, whatever agents say"
    yield check(
        "note",
        "checks",
        message,
        f"tenuto init --checks (found: {found})" if found else "checks: {tests: your command} in .tenuto/config.yaml",
    )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
