"""A turn: one locked conversation with the journal, from the first look to the last file written.

    with workspace.turn() as turn:
        run = turn.run("dark-mode")                        folded; others' edits of its files absorbed
        turn.do("dark-mode", {"do": "StartStep", ...})     decided, folded; refused = nothing happens
    # events and the hashes of the new renders are durable; then the files were replaced

Order: lock, look, decide, commit, publish, unlock. A crash before the commit leaves nothing; one after it
leaves files that the next turn repairs. An exception inside the block takes everything back.
"""

from __future__ import annotations

from posix import unlink

from tenuto.core.decide import ask, decide, decide_repo
from tenuto.core.fold import apply, apply_repo
from tenuto.encoding import digest, dumps, loads
from tenuto.errors import NotFound, Refused, refuse_halves
from tenuto.workspace.locate import main_root, root_of_tree
from tenuto.workspace.publish import Publication, clear_shelf, key_of, publish_all
from tenuto.workspace.reconcile import absorb_artifact, check_logs, look_before_first_write, reconcile, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from tenuto.core.commands import Command, RepoCommand
    from tenuto.core.records import Json, Repo, Run
    from tenuto.ports import Clock, Dialect, Journal, Transaction
    from tenuto.workspace.looking import Files
    from tenuto.workspace.secrets import Secrecy

REPO = "@"
SMALL_BLOB = 1 << 18  # larger artifacts lie in objects/, outside the database


class Workspace:
    """One opened repository."""

    secrecy: Secrecy | None
    """What is kept out of all that is taken in; looked up when first asked for."""

    def __init__(self, root: str, tree: str, journal: Journal, dialects: Any, clock: Clock, by: str) -> None:
        self.root = root
        self.tree = tree
        self.journal = journal
        self.state = journal.directory
        self.dialects: dict[str, Dialect] = dialects
        self.clock = clock
        self.by = by
        self.warnings: list[str] = []
        """What went differently than asked, for the caller to say: a repaired file, one that could not be written."""
        self.remembered: dict[str, Any] = {}

    def turn(self, remember: bool = False) -> Turn:
        """`remember`: a driver that takes one turn after the other keeps the folded run between them. Its runs are live:
        the next such turn changes them."""
        return Turn(self, remember=remember)

    def __getattr__(self, name: str) -> Any:
        """`workspace.context`, `workspace.flow`, ...: the commands of a dialect, loaded when first used."""
        if name == "secrecy":
            from tenuto.workspace.open import secrecy_of

            self.secrecy = secrecy_of(self.root, self.root_of(""))
            return self.secrecy
        if name.startswith("_") or name not in self.dialects:
            raise AttributeError(name)
        api = self.__dict__[name] = self.dialects[name].api(self)
        return api

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def files(self, tree: str | None = None) -> Files:
        """The files of a work tree (this one), as they lie there."""
        from tenuto.workspace.looking import Files

        return Files(self, self.tree if tree is None else tree)

    def person(self, what: str, gate: bool, run: Run) -> Json:
        """Refused where an agent asks for what only a person may do; else the proof to record with the decision."""
        from tenuto.workspace.guard import decision_by_hand

        return decision_by_hand(self.root, what, gate, run)

    def knowledge(self, name: str) -> Any:
        """A module of tenuto.knowledge, loaded when first used: a dialect asks for it here."""
        return __import__(f"tenuto.knowledge.{name}", fromlist=["*"])

    def root_of(self, tree: str) -> str | None:
        """Where the files of a work tree lie; None when that work tree is gone."""
        if tree == self.tree:
            return self.root
        return root_of_tree(self.state, tree, main_root(self.root, self.tree, self.state))

    def load(self, run: str) -> Run:
        """A look without a lock: what the journal says, whatever the files say."""
        with self.journal.read() as reader:
            found = reader.load(run)
        if found is None:
            raise NotFound("no-such-run", f"there is no run {run!r}", "tenuto list", run=run)
        return found


class Turn:
    def __init__(self, workspace: Workspace, held: str = "", remember: bool = False) -> None:
        """`held`: inside a turn that is publishing this very file (see foreign.absorb_meanwhile)."""
        self.workspace = workspace
        self._held = held
        self._remembers = remember
        self.shown: bytes | None = None  # what is to stand in the held file
        self.at = ""
        self.tx: Transaction
        self._repo: Repo | None = None
        self._runs: dict[str, Run | None] = {}
        self._events: dict[str, list[Any]] = {}
        self._asked: tuple[Any, int, Any, list[Any]] = ({}, 0, None, [])  # a run, its version, a pipeline: what todo() said
        self.seen: dict[str, bytes | None] = {}  # state files as found in this turn, by key_of
        # Artifacts to be shown: path -> run, hash, content (or the name of the file that holds it).
        self.artifacts: dict[str, tuple[str, str, bytes | str]] = {}
        self._logs: dict[str, bytes] = {}
        self.unproven: dict[str, str | None] = {}  # by run: artifacts of the last turn that nobody has seen in place yet
        self.used_up: list[str] = []  # files that others left behind, absorbed: removed when all is durable
        self.shelved: dict[str, bytes | None] = {}  # what lies on the shelf and holds a secret, as it was looked at

    # -- looking

    @property
    def repo(self) -> Repo:
        if self._repo is None:
            self._repo = self._remembered(REPO) or self.tx.load_repo()
        return self._repo

    def run(self, name: str) -> Run | None:
        """The run, with everything that others wrote into its files absorbed. None where there is none."""
        if name not in self._runs:
            run = self._runs[name] = self._remembered(name) or self.tx.load(name)
            if run is not None and not self._held:
                reconcile(self, run)
        return self._runs[name]

    def _remembered(self, name: str) -> Any:
        """As an earlier turn of this process left it, unless another writer was here. Taken out: a turn that fails forgets it."""
        kept = self.workspace.remembered.pop(name, None) if self._remembers else None
        return kept if kept is not None and kept["version"] == self.tx.version(name) else None

    def existing(self, name: str) -> Run:
        run = self.run(name)
        if run is None:
            raise NotFound("no-such-run", f"there is no run {name!r}", "tenuto list", run=name)
        return run

    # -- changing

    def do(self, name: str, command: Command, pipeline: Any = None) -> list[Any]:
        """Decide one command and fold what it changes. A key that the run has seen is answered with nothing."""
        run = self.run(name)
        if self.workspace.secrecy is not None:
            command = self.workspace.secrecy.out_of_command(command, name if run is None else "")
        key = command.get("key")
        if key is not None and (self.tx.has_key(name, key) or any(e.get("key") == key for e in self._events.get(name, ()))):
            return []
        stamped: Any = {"at": self.at, "by": self.workspace.by, **command}
        of, version, by, said = self._asked
        same = run is not None and run is of and by is pipeline and version == run["version"]
        events = decide(pipeline, self.repo, run, stamped, said if same else None)
        if run is None and events:
            from tenuto.core.fold import new_run

            run = self._runs[name] = new_run()
        for event in events:
            apply(run, event)  # type: ignore[arg-type]
        self._events.setdefault(name, []).extend(events)
        return events

    def todo(self, name: str, pipeline: Any) -> list[Any]:
        """What is to be done now. Whoever decides about it next is told the same answer, instead of asking again."""
        run = self.existing(name)
        self._asked = (run, run["version"], pipeline, ask(pipeline, run, self.at))
        return self._asked[3]

    def do_repo(self, command: RepoCommand) -> list[Any]:
        told = self.workspace.secrecy.out_of_command(command) if self.workspace.secrecy else command
        stamped: Any = {"at": self.at, "by": self.workspace.by, **told}
        events = decide_repo(self.repo, stamped)
        for event in events:
            apply_repo(self.repo, event)
        self._events.setdefault(REPO, []).extend(events)
        return events

    def bind(self, name: str, session: str) -> None:
        """From now on, whatever this agent session reports is about this run."""
        session = self.workspace.secrecy.out_of(session) if self.workspace.secrecy else session
        self.do(name, {"do": "BindSession", "session": session})
        self.tx.put_note(f"session:{session}", name)

    def store(self, name: str, artifact: str, path: str, content: bytes, **where: Any) -> list[Any]:
        """Keep `content` by its hash, record it as an artifact of the run, and show it at `path`."""
        content = self.workspace.secrecy.masked(content) if self.workspace.secrecy else content
        sha, kept = digest(content), content  # type: str, bytes | str
        if len(content) > SMALL_BLOB:
            from tenuto.workspace.objects import put_object

            kept = put_object(self.workspace.state, sha, content)
        else:
            self.tx.put_blob(sha, content)
        return self._store(name, artifact, path, sha, len(content), kept, where)

    def unused(self, wanted: str) -> str:
        """This name for a new run, or the first of wanted-2, wanted-3, ... that no run has."""
        name, number = wanted, 1
        while self.tx.version(name):
            number += 1
            name = f"{wanted}-{number}"
        return name

    def take_over(self, key: str, body: bytes) -> None:
        """The file at `key` was there before: adopted in this turn, it may be replaced, and is nobody's late write after that."""
        from tenuto.workspace.foreign import took_over

        self.seen[key] = body
        took_over(self, key, body)

    def store_file(self, name: str, artifact: str, path: str, source: str, **where: Any) -> list[Any]:
        """The same for a file of any size, streamed."""
        from tenuto.workspace.objects import import_file

        sha, size, kept = import_file(self.workspace.state, source, self.workspace.secrecy)
        return self._store(name, artifact, path, sha, size, kept, where)

    def keep_file(self, name: str, artifact: str, path: str, **where: Any) -> list[Any]:
        """A file that stands there already becomes an artifact: its bytes are kept by hash, the file is left alone.

        One that is not there, or holds a secret, is recorded without a hash: somebody says that they made it.
        """
        from tenuto.workspace.objects import keep_standing

        root = self.workspace.root_of(tree_of(self.existing(name)))
        sha, size, content = keep_standing(self.workspace, root, path, SMALL_BLOB)
        if content is not None:
            self.tx.put_blob(sha, content)
        stored: Any = {"do": "StoreArtifact", "name": artifact, "path": path, "sha256": sha, "size": size, **where}
        return self.do(name, stored)

    def _store(self, name: str, artifact: str, path: str, sha: str, size: int, content: bytes | str, where: Any) -> list[Any]:
        run = self.existing(name)
        absorb_artifact(self, run, path, sha)
        self.artifacts[path] = (name, sha, content)
        stored: Any = {"do": "StoreArtifact", "name": artifact, "path": path, "sha256": sha, "size": size, **where}
        return self.do(name, stored)

    def mark(self, name: str) -> tuple[str, int]:
        """Where the run stands in this turn, for `undo`."""
        return dumps(self._runs[name]), len(self._events.get(name, ()))

    def undo(self, name: str, mark: tuple[str, int]) -> None:
        self._asked = ({}, 0, None, [])
        run: Any = self._runs[name]
        run.clear()
        run.update(loads(mark[0]))
        del self._events.get(name, [])[mark[1] :]

    def look(self, name: str, path: str, artifact: str = "") -> None:
        """Before an artifact's file is read or judged: what somebody wrote there becomes its newest version."""
        absorb_artifact(self, self.existing(name), path, artifact=artifact)

    def log(self, path: str, text: bytes) -> None:
        """Add to an append-only file."""
        self._logs[path] = self._logs.get(path, b"") + (self.workspace.secrecy.masked(text) if self.workspace.secrecy else text)

    # -- the block

    def __enter__(self) -> Self:
        secrecy = self.workspace.secrecy  # before the lock: settings that cannot be read stop it here
        if secrecy is not None:
            secrecy.refuse(self.workspace.tree.encode("utf-8", "surrogatepass"), "the name of this work tree")
        if not self._held:
            self.workspace.journal.lock()
        try:
            self.tx = self.workspace.journal.begin(durable=not self._held, remember=self._remembers)
            if secrecy is not None:
                self.tx = secrecy.guarding(self.tx)
            self.at = self.workspace.clock()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
            publish_all(self.workspace, publications)
            for path in self.used_up:
                unlink(path)
            if self.shelved:
                clear_shelf(self.workspace, self.shelved)
            if self._remembers:
                self.workspace.remembered.update({name: run for name, run in self._runs.items() if run is not None})
                if self._repo is not None:
                    self.workspace.remembered[REPO] = self._repo
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
            if events:
                for dialect in self._shown(run):
                    for path, text in dialect.log(run, events).items():
                        self.log(path, text)
                self.tx.append(name, run["version"] - len(events), events, run)
            publications += self._renders(run)
        if self._events.get(REPO):
            self.tx.append(REPO, self.repo["version"] - len(self._events[REPO]), self._events[REPO], self.repo)
        if self._runs or self._logs:
            publications += check_logs(self, self._logs)
        changed = any(self._events.values()) or bool(self._logs) or any(p.remembered for p in publications)
        return publications, changed

    def _shown(self, run: Run) -> list[Dialect]:
        return [self.workspace.dialects[name] for name in run["dialects"] if name in self.workspace.dialects]

    def _renders(self, run: Run) -> list[Publication]:
        made: list[Publication] = []
        for dialect in self._shown(run):
            tree = run["dialects"][dialect.name].get("tree", "")
            for path, body in dialect.render(run, self.repo).items():
                key, sha = key_of(tree, path), digest(body)
                if key not in self.seen:
                    try:
                        self.seen[key] = look_before_first_write(self, run, tree, path)
                    except Refused:
                        if not self._held:
                            raise
                        continue  # somebody changed this one, too: the next turn looks at it first
                found = self.seen[key]
                new = self._remember(key, sha, body, run)
                if key == self._held:
                    self.shown = body
                elif new or found != body:
                    made.append(Publication(tree, path, found, body, run["id"], dialect.name, new))
        return made + self._shown_artifacts(run)

    def _shown_artifacts(self, run: Run) -> list[Publication]:
        """Until a later turn has seen them in place, artifacts count as unproven: a crash may come before they are written."""
        mine = {path: kept for path, kept in self.artifacts.items() if kept[0] == run["id"]}
        note = f"unproven:{run['id']}"
        if not mine:
            if self._events.get(run["id"]) and (self.unproven[run["id"]] if run["id"] in self.unproven else self.tx.note(note)):
                self.tx.put_note(note, None)
            return []
        self.tx.put_note(note, dumps(list(mine)))
        tree = tree_of(run)
        return [
            Publication(tree, path, None, content, run["id"], "", self._remember(key_of(tree, path), sha, None, run))
            for path, (_, sha, content) in mine.items()
        ]

    def _remember(self, key: str, sha: str, body: bytes | None, run: Run) -> bool:
        newest = self.tx.renders(key)[:1]
        if newest and newest[0][0] == sha:
            return False
        self.tx.remember(key, (sha, body, run["id"], run["version"]))
        return True
