"""One opened repository, and a turn in it: one locked conversation with the journal.

    workspace = open_workspace(".")          finds the journal; nothing is made until something is written
    workspace.load("dark-mode")              a look without a lock
    with workspace.turn() as turn:
        run = turn.run("dark-mode")                        folded; others' edits of its files absorbed
        turn.do("dark-mode", {"do": "StartStep", ...})     decided, folded; refused = nothing happens
    # events and the hashes of the new renders are durable; then the files were replaced

A workspace holds the journal, the files, the views of the runs, the clock and the secrets. A turn goes from the first
look to the last file written, in this order: lock, look, decide, commit, publish, unlock. A crash before the commit
leaves nothing; one after it leaves files that the next turn repairs. An exception inside the block takes everything
back.
"""

from __future__ import annotations

import posix
from posix import unlink
from sys import modules
from time import time_ns

from tenuto.core.decide import ask, carry_out, carry_out_repo
from tenuto.core.times import iso
from tenuto.encoding import digest, dumps, hash_faster, loads
from tenuto.errors import NotFound, Refused, refuse_halves
from tenuto.names import file_key
from tenuto.stores import open_journal
from tenuto.stores.journal import REPO
from tenuto.views import Views
from tenuto.workspace.edits import (
    absorb,
    absorb_artifact,
    check_logs,
    known,
    look_before_first_write,
    reconcile,
    tree_of,
)
from tenuto.workspace.locate import locate, main_root, root_of_tree
from tenuto.workspace.publish import Publication, clear_displaced, move_aside, publish_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self, TypedDict, TypeVar, Unpack

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.action import Action
    from tenuto.core.records.commands import Command, RepoCommand, StoreArtifact
    from tenuto.core.records.events import Event, RepoEvent
    from tenuto.core.records.run import Json, Repo, Run
    from tenuto.ports import Clock, Journal, Transaction, View, ViewTable
    from tenuto.secrets import Secrets
    from tenuto.workspace.guard import Caller
    from tenuto.workspace.objects import Files

    AnyCommand = TypeVar("AnyCommand", Command, RepoCommand)
    Asked = tuple[Run, int, Pipeline, list[Action]]  # a run, its version, a pipeline: what todo() answered

    class Where(TypedDict, total=False):
        """What an artifact belongs to, beside its run."""

        step: str | None
        attempt: str | None
        at: str
        by: str
        key: str
        reported_at: str

    W = TypeVar("W", bound="Workspace")


SMALL_BLOB = 1 << 18  # larger artifacts lie in objects/, outside the database


class Turn:
    def __init__(self, workspace: Workspace, held: str = "", remember: bool = False, by: str = "") -> None:
        """`held`: inside a turn that is publishing this very file (see absorb_meanwhile)."""
        self._by = by or workspace.by
        self.workspace = workspace
        self._held = held
        self._remembers = remember
        self.shown: bytes | None = None  # what is to stand in the held file
        self.at = ""
        self.tx: Transaction
        self._repo: Repo | None = None
        self._runs: dict[str, Run | None] = {}
        self._events: dict[str, list[Event]] = {}
        self._repo_events: list[RepoEvent] = []
        self._asked: Asked | None = None
        self.seen: dict[str, bytes | None] = {}  # state files as found in this turn, by file_key
        # Artifacts to be shown: path -> run, hash, content (or the name of the file that holds it).
        self.artifacts: dict[str, tuple[str, str, bytes | str]] = {}
        self._logs: dict[str, bytes] = {}
        # By run: the marker that names artifacts of the last turn that no turn has seen in place yet.
        self.unproven: dict[str, str | None] = {}
        self.given: dict[
            str, bytes
        ] = {}  # files that others' edits are judged with as if they stood there: path -> text
        self.moves: dict[str, str] = {}  # files of the work tree to be set aside when all is durable: from -> to
        self.used_up: list[str] = []  # files that others left behind, absorbed: removed when all is durable
        self.displaced: dict[str, bytes | None] = {}  # displaced files that hold a secret, as they were looked at

    # -- looking

    @property
    def repo(self) -> Repo:
        if self._repo is None:
            kept, self.workspace.remembered_repo = self.workspace.remembered_repo, None
            if not self._remembers or kept is None or kept["version"] != self.tx.version(REPO):
                kept = self.tx.load_repo()
            self._repo = kept
        return self._repo

    def run(self, name: str) -> Run | None:
        """The run, with everything that others wrote into its files absorbed. None where there is none."""
        if name not in self._runs:
            run = self._runs[name] = self._remembered(name) or self.tx.load(name)
            if run is not None and not self._held:
                reconcile(self, run)
        return self._runs[name]

    def _remembered(self, name: str) -> Run | None:
        """As an earlier turn of this process left it, unless another writer was here. A turn that fails forgets it."""
        kept = self.workspace.remembered_runs.pop(name, None) if self._remembers else None
        return kept if kept is not None and kept["version"] == self.tx.version(name) else None

    def existing(self, name: str) -> Run:
        run = self.run(name)
        if run is None:
            raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
        return run

    def read_again(self, name: str, given: dict[str, bytes]) -> Run:
        """After a refused edit: the run once more, and the edit judged as if these files stood beside it."""
        self.forget(name)
        self.given = given
        return self.existing(name)

    def forget(self, name: str) -> None:
        """The run as it was before this turn: what the turn did to it is taken back."""
        self._asked = None
        self._runs.pop(name, None)
        self._events.pop(name, None)

    # -- changing

    def do(self, name: str, command: Command, pipeline: Pipeline | None = None) -> list[Event]:
        """Decide one command and fold what it changes. A key that the run has seen is answered with nothing."""
        run = self.run(name)
        if self.workspace.has_secrets:
            command = self._without_secrets(command, "" if run else name)
        if command["do"] == "StartRun":
            command = {**command, "settings": {**_protection(self.workspace), **command.get("settings", {})}}
        key = command.get("key")
        if key is not None and (
            self.tx.has_key(name, key) or any(e.get("key") == key for e in self._events.get(name, ()))
        ):
            return []
        actions = None
        if self._asked is not None and run is not None:
            of, version, by, answer = self._asked
            actions = answer if run is of and by is pipeline and version == run["version"] else None
        self._runs[name], events = carry_out(pipeline, self.repo, run, self._stamped(command), actions)
        if events:
            self._events.setdefault(name, []).extend(events)
        return events

    def todo(self, name: str, pipeline: Pipeline) -> list[Action]:
        """What is to be done now. The next decision about it is given the same answer, instead of asking again."""
        run = self.existing(name)
        actions = ask(pipeline, run, self.at)
        self._asked = (run, run["version"], pipeline, actions)
        return actions

    def do_repo(self, command: RepoCommand) -> list[RepoEvent]:
        if self.workspace.has_secrets:
            command = self._without_secrets(command)
        events = carry_out_repo(self.repo, self._stamped(command))
        self._repo_events.extend(events)
        return events

    def _without_secrets(self, command: AnyCommand, new_run: str = "") -> AnyCommand:
        """A command without secrets. The name of a run stands everywhere: one that holds a secret is refused."""
        secrets = self.workspace.secrets
        secrets.refuse_name(new_run, "the name of the new run")
        return {**secrets.value(command), "do": command["do"]}  # type: ignore[return-value]

    def _stamped(self, command: AnyCommand) -> AnyCommand:
        """With this turn's time and author, where the command does not bring its own."""
        stamped = command.copy()
        stamped.setdefault("at", self.at)
        stamped.setdefault("by", self._by)
        return stamped

    def bind(self, name: str, session: str) -> None:
        """From now on, all that this agent session reports is about this run."""
        if self.workspace.has_secrets:
            session = self.workspace.secrets.text(session)
        self.do(name, {"do": "BindSession", "session": session})
        self.tx.put_marker(f"session:{session}", name)

    def store(self, name: str, artifact: str, path: str, content: bytes, **where: Unpack[Where]) -> list[Event]:
        """Keep `content` by its hash, record it as an artifact of the run, and show it at `path`."""
        content = self.workspace.without_secrets(content)
        sha = digest(content)
        if len(content) > SMALL_BLOB:
            from tenuto.workspace.objects import put_object

            return self._store(
                name, artifact, path, sha, len(content), put_object(self.workspace.state, sha, content), where
            )
        self.tx.put_blob(sha, content)
        return self._store(name, artifact, path, sha, len(content), content, where)

    def unused(self, wanted: str) -> str:
        """This name for a new run, or the first of wanted-2, wanted-3, ... that no run has."""
        name, number = wanted, 1
        while self.tx.version(name):
            number += 1
            name = f"{wanted}-{number}"
        return name

    def take_over(self, key: str, body: bytes) -> None:
        """The file at `key` was there before. Adopted in this turn, it may be replaced, and is no late write."""
        from tenuto.workspace.edits import took_over

        self.seen[key] = body
        took_over(self, key, body)

    def store_file(self, name: str, artifact: str, path: str, source: str, **where: Unpack[Where]) -> list[Event]:
        """The same for a file of any size, streamed."""
        from tenuto.workspace.objects import import_file

        sha, size, kept = import_file(self.workspace.state, source, self.workspace.secrets)
        return self._store(name, artifact, path, sha, size, kept, where)

    def keep_file(self, name: str, artifact: str, path: str, **where: Unpack[Where]) -> list[Event]:
        """A file that stands there already becomes an artifact: its bytes are kept by hash, the file is left alone.

        One that is not there, or holds a secret, is recorded without a hash: somebody says that they made it.
        """
        from tenuto.workspace.objects import keep_standing

        root = self.workspace.root_of(tree_of(self.existing(name)))
        sha, size, content = keep_standing(self.workspace, root, path, SMALL_BLOB)
        if content is not None:
            self.tx.put_blob(sha, content)
        return self.do(name, _store_artifact(artifact, path, sha, size, where))

    def _store(
        self, name: str, artifact: str, path: str, sha: str, size: int, content: bytes | str, where: Where
    ) -> list[Event]:
        run = self.existing(name)
        absorb_artifact(self, run, path, sha, artifact, where.get("step"))
        self.artifacts[path] = (name, sha, content)
        return self.do(name, _store_artifact(artifact, path, sha, size, where))

    def mark(self, name: str) -> tuple[str, int]:
        """Where the run stands in this turn, for `undo`."""
        return dumps(self._runs[name]), len(self._events.get(name, ()))

    def undo(self, name: str, mark: tuple[str, int]) -> None:
        self._asked = None
        run = self._runs[name]
        assert run is not None
        run.clear()  # type: ignore[attr-defined]  # the record that others hold is changed, not replaced
        run.update(loads(mark[0]))
        del self._events.get(name, [])[mark[1] :]

    def look(self, name: str, path: str, artifact: str = "") -> None:
        """Before an artifact's file is read or judged: what somebody wrote there becomes its newest version."""
        absorb_artifact(self, self.existing(name), path, artifact=artifact)

    def log(self, path: str, text: bytes) -> None:
        """Add to an append-only file."""
        self._logs[path] = self._logs.get(path, b"") + self.workspace.without_secrets(text)

    # -- the block

    def __enter__(self) -> Self:
        guarded = self.workspace.has_secrets  # before the lock: settings that cannot be read stop it here
        if guarded:
            self.workspace.secrets.refuse_name(self.workspace.tree, "the name of this work tree")
        self.tx = self.workspace.journal.begin(not self._held, self._remembers, lock=not self._held)
        try:
            if guarded:
                self.tx = _Guarded(self.tx, self.workspace.secrets)  # type: ignore[assignment]  # the rest is passed on
            self.at = self.workspace.clock()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        journal = self.workspace.journal
        try:
            if kind is not None:
                journal.rollback(error)
                refuse_halves(error)
                return
            try:
                publications, changed = self._record()
            except BaseException as refusal:
                journal.rollback(refusal)
                refuse_halves(refusal)
                raise
            if changed:
                journal.commit()
            else:
                journal.rollback()
            publish_all(self.workspace, publications, absorb_meanwhile)
            for path, aside in self.moves.items():
                move_aside(self.workspace, path, aside)
            for path in self.used_up:
                unlink(path)
            if self.displaced:
                clear_displaced(self.workspace, self.displaced)
            if self._remembers:
                runs = {name: run for name, run in self._runs.items() if run is not None}
                self.workspace.remembered_runs.update(runs)
                if self._repo is not None:
                    self.workspace.remembered_repo = self._repo
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if not self._held:
            self.workspace.journal.unlock()

    def _record(self) -> tuple[list[Publication], bool]:
        """Append the events and remember the renders; returns what is to be written once this is durable."""
        publications: list[Publication] = []
        for name, run in self._runs.items():
            events = self._events.get(name)
            if run is None:
                continue
            shown = [view for name in run["dialects"] if (view := self.workspace.views.get(name)) is not None]
            if events:
                for view in shown:
                    for path, text in view.log(run, events).items():
                        self.log(path, text)
                self.tx.append(name, run["version"] - len(events), events, run)
            publications += self._renders(run, shown)
        if self._repo_events:
            self.tx.append(REPO, self.repo["version"] - len(self._repo_events), self._repo_events, self.repo)
        if self._runs or self._logs:
            publications += check_logs(self, self._logs)
        changed = (
            bool(self._repo_events)
            or any(self._events.values())
            or bool(self._logs)
            or any(p.remembered for p in publications)
        )
        return publications, changed

    def _renders(self, run: Run, shown: list[View]) -> list[Publication]:
        made: list[Publication] = []
        for view in shown:
            tree = run["dialects"][view.name].get("tree", "")
            for path, body in view.render(run, self.repo).items():
                key, sha = file_key(tree, path), digest(body)
                if key not in self.seen:
                    try:
                        self.seen[key] = look_before_first_write(self, run, view, tree, path)
                    except Refused:
                        if not self._held:
                            raise
                        continue  # somebody changed this one, too: the next turn looks at it first
                found = self.seen[key]
                new = self.tx.remember(key, (sha, body, run["id"], run["version"]))
                if key == self._held:
                    self.shown = body
                elif new or found != body:
                    made.append(Publication(key, tree, path, found, body, run["id"], view.name, new))
        return self._shown_artifacts(run) + made  # a state file that is there proves that they were written

    def _shown_artifacts(self, run: Run) -> list[Publication]:
        """Artifacts are unproven until a later turn has seen them in place: a crash may come before the file."""
        mine = {path: kept for path, kept in self.artifacts.items() if kept[0] == run["id"]}
        marker = f"unproven:{run['id']}"
        if not mine:
            if self._events.get(run["id"]) and (
                self.unproven[run["id"]] if run["id"] in self.unproven else self.tx.marker(marker)
            ):
                self.tx.put_marker(marker, None)
            return []
        self.tx.put_marker(marker, dumps([run["version"], *(path for path in mine if path not in self.moves)]))
        tree, made = tree_of(run), []
        for path, (_, sha, content) in mine.items():
            key = file_key(tree, path)
            new = self.tx.remember(key, (sha, None, run["id"], run["version"]))
            made.append(Publication(key, tree, path, None, content, run["id"], "", new))
        return made


class _Guarded:
    """A transaction that keeps no text with a secret in it. The callers have masked the text or named it before."""

    def __init__(self, transaction: Transaction, secrets: Secrets) -> None:
        self._transaction = transaction
        self._secrets = secrets

    def __getattr__(self, name: str) -> object:
        return getattr(self._transaction, name)

    def put_blob(self, sha256: str, body: bytes) -> None:
        self._secrets.refuse(body, "what is to be kept")
        self._transaction.put_blob(sha256, body)

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        clean = [(self._secrets.text(heading), self._secrets.text(text)) for heading, text in passages]
        self._transaction.index(run, source, path, clean)


def _store_artifact(artifact: str, path: str, sha: str, size: int, where: Where) -> StoreArtifact:
    return {"do": "StoreArtifact", "name": artifact, "path": path, "sha256": sha, "size": size, **where}


def absorb_meanwhile(workspace: Workspace, publication: Publication, found: bytes, standing: bytes) -> bytes:
    """While we published, somebody wrote `found`: one more turn, under the lock we hold, takes it in.

    Returns what the file shows now; the caller, who holds it, puts it there.
    """
    key = publication.key
    clean = workspace.without_secrets(found, publication.path)
    with Turn(workspace, held=key) as turn:
        run = turn.run(publication.run)
        turn.seen[key] = standing
        if run is not None and not known(turn, key, found, clean):
            absorb(turn, run, workspace.views[publication.kind], publication.path, key, clean, found)
    return turn.shown if turn.shown is not None else standing


class Workspace:
    """One opened repository."""

    def __init__(self, root: str, tree: str, journal: Journal, views: ViewTable, clock: Clock, by: str) -> None:
        self.root = root
        self.tree = tree
        self.journal = journal
        self.state = journal.directory
        self.views = views
        self.clock = clock
        self.by = by
        self.warnings: list[str] = []
        """What went differently than asked, for the caller to say: a repaired file, one that could not be written."""
        self.remembered_runs: dict[str, Run] = {}
        self.remembered_repo: Repo | None = None
        """As the last turn of a driver left them."""
        self._secrets: Secrets | None = None
        self._has_secrets: bool | None = None  # None: nothing has looked so far
        self.door: Callable[[], Caller] | None = None
        """Who asks, judged by the door that opened this: a process by its surroundings, where nothing else is set."""
        self.trusts = False
        """A door was told that everything this repository brings may run, for this one command (trust.py)."""

    def turn(self, remember: bool = False, by: str = "") -> Turn:
        """`remember`: a driver that takes one turn after the other keeps the folded run between them. Its runs are
        live: the next such turn changes them. `by`: who does what happens in it, where it is not who opened this.
        """
        return Turn(self, remember=remember, by=by)

    @property
    def has_secrets(self) -> bool:
        """Is anything to be kept out? Most repositories declare nothing, and load nothing that masks."""
        if self._has_secrets is None:
            self.declare_secrets(())
        return bool(self._has_secrets)

    @property
    def secrets(self) -> Secrets:
        """What is kept out of all that is taken in: NO_SECRETS where nothing is declared."""
        if not self.has_secrets or self._secrets is None:
            from tenuto.secrets import NO_SECRETS

            return NO_SECRETS
        return self._secrets

    def without_secrets(self, body: bytes, path: str = "") -> bytes:
        return self.secrets.body(body, path) if self.has_secrets else body

    def declare_secrets(self, names: Iterable[str]) -> None:
        """By the settings of this work tree and of the main one, which need not be committed; and `names`."""
        roots = dict.fromkeys(root for root in (self.root, self.root_of("")) if root)
        every = [*names, *(name for root in roots for name in _secret_names(root, self.state))]
        secrets = None
        if every:
            from os import environ  # slow to import, and needed by few

            from tenuto.secrets import declared

            secrets = declared(every, environ)
        self._secrets, self._has_secrets = secrets, bool(secrets)

    def forget_secrets(self) -> None:
        """They are looked up again when they are next asked for."""
        self._has_secrets = self._secrets = None

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def files(self, tree: str | None = None) -> Files:
        """The files of a work tree (this one), as they lie there."""
        from tenuto.workspace.objects import Files

        return Files(self, self.tree if tree is None else tree)

    def person(self, what: str, gate: bool, run: Run) -> Json:
        """Refused where an agent asks for what only a person may do; else the proof to record with the decision."""
        from tenuto.workspace.guard import decision_by_hand

        return decision_by_hand(self.caller, self.root, self.state, what, gate, run)

    @property
    def caller(self) -> Caller:
        """Who decides: a person, an agent that Tenuto started, or a model inside an agent program."""
        if self.door is not None:
            return self.door()
        from tenuto.workspace.guard import here, who_calls

        return here(who_calls(), self.state)

    def root_of(self, tree: str) -> str | None:
        """Where the files of a work tree lie; None when that work tree is gone."""
        if tree == self.tree:
            return self.root
        return root_of_tree(self.state, tree, main_root(self.root, self.tree, self.state))

    def load(self, run: str) -> Run:
        """A look without a lock: what the journal says, whatever the files say."""
        found = self.journal.load(run)
        if found is None:
            raise NotFound("no-such-run", f"there is no run {run!r}", "tenuto list", run=run)
        return found


def _protection(workspace: Workspace) -> Json:
    """How the gates of a new run are protected; most repositories have no settings, and load nothing to know."""
    if _has_settings(workspace.root):
        from tenuto.workspace.settings import protection_by_hand

        return protection_by_hand(workspace.root, workspace.state)
    return {}


def _secret_names(root: str, state: str) -> list[str]:
    """Those of the settings. Most repositories have no settings, and their hooks do not load what reads them."""
    if not _has_settings(root):
        return []
    from tenuto.workspace.settings import secret_names

    return secret_names(root, state)


def _has_settings(root: str) -> bool:
    try:
        posix.lstat(f"{root}/.tenuto/config.yaml")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # the settings say what is wrong
    return True


# A command that returns lets go of its workspace; the connection would close, and checkpoint outside the lock.
_latest: Workspace | None = None


def open_workspace(path: str = ".", *, clock: Clock | None = None, by: str = "user") -> Workspace:
    """The repository that `path` lies in. Nothing is created until something is written."""
    return open_as(Workspace, path, clock, by)


def open_as(kind: type[W], path: str, clock: Clock | None, by: str) -> W:
    """The same as an object of a kind of its own."""
    if "_hashlib" in modules:  # a program that has OpenSSL already uses it; it would cost a hook its whole time
        hash_faster()
    return _open(kind, *locate(path), clock, by)


def open_at(root: str, tree: str, state: str, *, clock: Clock | None = None, by: str = "user") -> Workspace:
    """The same for a place that was located before."""
    return _open(Workspace, root, tree, state, clock, by)


def _open(kind: type[W], root: str, tree: str, state: str, clock: Clock | None, by: str) -> W:
    global _latest
    _latest = workspace = kind(root, tree, open_journal(state), Views(), clock or real_clock, by)
    return workspace


def real_clock() -> str:
    return iso(time_ns() // 1_000_000)
