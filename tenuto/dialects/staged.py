"""A staged task in the words of its users: the operations on state.json. JSON in, JSON out.

Each operation is one turn: everything it changes is durable together, or nothing is. Whether a gate passes, a review
counts or a stage begins again is decided in core/; here its words are put in and its answers taken out.

A new task has the defaults that its users know, and what the caller says otherwise. `ownerPpid` names the session that
a state belongs to, by its process id and by the time at which that process began: process ids are used again, and a
state whose owner has gone belongs to no session.

Last, what the engine asks about a task that it drives. The schedule and the gates are the pipeline's own where its
steps are phases of this dialect; a run of another pipeline is shown along the phases of its profile.
"""

from __future__ import annotations

from tenuto.core.parts import merge
from tenuto.core.status import OVER
from tenuto.dialects.dialect import Dialect
from tenuto.dialects.staged_beginning import (
    adopt,
    begin,
    check_settings,
    clear_left_over,
    complexity_of,
    owner_record,
    recover,
    session_process,
    state_in,
    worktree_of,
)
from tenuto.encoding import NotJson, digest, dumps, loads, loads_strict, pretty
from tenuto.errors import BadInput, NotFound, Refused, Unwritable
from tenuto.files.exchange import place
from tenuto.names import slug
from tenuto.views.staged import owner_key
from tenuto.views.staged_document import (
    AS_JSON,
    COMPLETE,
    DEFAULTS,
    EARLIER_FOLDER,
    FILE,
    LEFT_OVER,
    PHASES,
    PHASES_FOLDER,
    SETTINGS,
    agents,
    document,
    evidence,
    evidence_of,
    files,
    gather,
    is_review,
    known_profile,
    name,
    output_of,
    path_of,
    phase_of,
    phase_of_file,
    review_in,
    schedule,
    schedule_of,
    stage_of,
    stale_review,
    unjudged_review,
)
from tenuto.workspace.objects import began

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.commands import AbsorbEdit, Advance, Fail, Resume, Unblock
    from tenuto.core.records.events import Event
    from tenuto.core.records.run import Json, Run, ScheduledStep
    from tenuto.dialects.dialect import Beginning
    from tenuto.workspace.workspace import Turn, Workspace

_LARGE = 1 << 22  # bytes; larger texts are streamed
# Each of these has an operation of its own; `update` must not be a way around it.
_BY_OPERATION = {
    "status": "advance, stop, resume, unblock or record-failure",
    "currentStage": "advance",
    "currentPhase": "advance",
    "stages": "advance, record-output, record-review or restart",
    "files": "record-output",
    "failure": "record-failure",
    "restartHistory": "restart",
    "schedule": "init, with another profile",
    "gates": "init, with another profile",
    "pipelineProfile": "init, with another profile",
    "task": "init",
    "version": "init",
    "startedAt": "init",
    "stoppedAt": "stop",
}


class StagedOperations:
    """`tenuto.open(path).staged`"""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def init(self, task: str, **fields: object) -> Json:
        """A new task takes over the file. Refused while the one before it is unfinished."""
        with self._workspace.turn() as turn:
            refuse_second(turn)
            run = turn.unused(slug(task))
            set_aside(turn, self._workspace.files().names(PHASES_FOLDER), "before-" + run)
            start, unknown = begin(self._workspace, turn.at, run, task, fields)
            turn.do(run, start)
            turn.do_repo({"do": "OwnFile", "path": owner_key(self._workspace.tree), "run": run})
            turn.do_repo({"do": "MakeCurrent", "run": run})
            turn.do(run, {"do": "Advance"})
            if unknown:
                _keep(turn, run, unknown)
            state = document(turn.existing(run))
        place(
            self._workspace.root, f"{PHASES_FOLDER}/output"
        )  # the folder is there for whoever writes the first output
        return state

    def read(self) -> Json | None:
        """The state, with what others wrote into it; None where there is none."""
        if self._workspace.journal.exists():  # a look must not make one
            try:
                with self._workspace.turn() as turn:
                    if turn.repo["owners"].get(owner_key(self._workspace.tree)) is not None:
                        return document(turn.existing(current(turn)))
            except Unwritable as problem:
                self._workspace.warn(
                    f"{FILE} is shown as it stands, and not compared with the journal: {problem.message}"
                )
                body = self._workspace.files().read(FILE)
                return state_in(FILE, body) if body is not None else None
        body = recover(self._workspace)
        return state_in(FILE, body) if body is not None else None

    def update(self, changes: Json) -> Json:
        """Merge deeply; arrays are replaced. Position, statuses and stages have operations of their own."""
        if not isinstance(changes, dict):
            raise BadInput("bad-update", "an update is a JSON object", '{"webSearch": false}')
        for key in changes:
            if key in _BY_OPERATION:
                raise Refused("not-by-update", f"{key} is not changed by update", _BY_OPERATION[key], key=key)

        if not changes:
            raise BadInput("empty-update", "an update names what is to be changed", '{"webSearch": false}')

        def change(turn: Turn, run: Run) -> Json:
            known = {key: value for key, value in changes.items() if key in SETTINGS}
            unknown = {key: value for key, value in changes.items() if key not in SETTINGS and key != "updatedAt"}
            after: Json = loads(dumps(run["settings"]))
            merge(after, loads(dumps(known)))
            check_settings({key: after[key] for key in known})
            before = document(run)
            if "ownerPpid" in known:
                known["owner"] = owner_record(known["ownerPpid"])
            turn.do(run["id"], {"do": "ChangeSettings", "changes": known})
            if unknown:
                _keep(turn, run["id"], unknown)
            state = document(run)
            if {**state, "updatedAt": before["updatedAt"]} == before:
                self._workspace.warn(f"nothing was changed: {', '.join(changes)} had this value before")
            return state

        return self._change(change)

    # -- outputs and reviews

    def record_output(self, phase: str, content: object = None, file: str | None = None) -> Json:
        """Keep a phase's output under its name. Without content: what the agent wrote there itself.

        Where another program moved on without this output, recording it makes that move allowed.
        """
        with self._workspace.turn() as turn:
            try:
                run = turn.existing(current(turn))
            except Refused as refusal:
                if not refusal.details.get("mend"):
                    raise
                run = self._mended(turn, _owner_of(turn), phase, content, file)
            return self._record(turn, run, phase, content, file)

    def _mended(self, turn: Turn, name: str, phase: str, content: object, file: str | None) -> Run:
        """The run with the refused edit taken in, judged as if this output lay there."""
        known = turn.tx.load(name)
        assert known is not None
        output, text = self._output(known, phase, content, file, fresh=True)
        return turn.read_again(name, {path_of(output): text if isinstance(text, bytes) else b"large"})

    def _record(self, turn: Turn, run: Run, phase: str, content: object, file: str | None) -> Json:
        entry = _scheduled(run, phase)
        output, text = self._output(run, phase, content, file)
        if isinstance(text, bytes):
            turn.store(run["id"], output, path_of(output), text, step=phase)
        else:
            turn.store_file(run["id"], output, path_of(output), text, step=phase)
        artifact = run["artifacts"][output]
        answer: Json = {
            "phase": phase,
            "file": output,
            "path": artifact["path"],
            "sha256": artifact["sha256"],
            "size": artifact["size"],
        }
        if entry.get("type") == "review" and phase == run["position"]:
            body = self._workspace.files().stored(turn.tx, artifact["sha256"])
            answer |= _judge(turn, run, phase, review_in(body), digest(body))
        return answer

    def record_review(self, review: object, phase: str | None = None) -> Json:
        """The same for a review, by default of the current phase; a phase that is no review takes none."""
        with self._workspace.turn() as turn:
            run = turn.existing(current(turn))
            wanted = phase if phase is not None else phase_of(run)
            if _scheduled(run, wanted).get("type") != "review":
                reviews = ", ".join(entry["step"] for entry in schedule(run) if entry.get("type") == "review")
                raise Refused(
                    "not-a-review",
                    f"phase {wanted} is no review; there are {reviews}",
                    f"tenuto staged record-output {wanted}",
                    phase=wanted,
                )
        return self.record_output(wanted, content=review)

    def record_coverage(self, percent: float | None, phase: str | None = None) -> Json:
        """Below the threshold the run goes back to where tests are written."""

        def record(turn: Turn, run: Run) -> Json:
            step = phase if phase is not None else phase_of(run)
            void(turn, run, turn.do(run["id"], {"do": "RecordCoverage", "step": step, "percent": percent}))
            return {
                "phase": step,
                "coverage": percent,
                "threshold": run["settings"].get("coverageThreshold"),
                **_here(run),
            }

        return self._change(record)

    def _output(
        self, run: Run, phase: str, content: object, file: str | None, fresh: bool = False
    ) -> tuple[str, bytes | str]:
        """The name and the text of an output; of a large one, the file that holds it. `fresh`: what lies there counts,
        whenever it was written."""
        output = output_of(run, phase)
        if file is not None:
            output = AS_JSON.get(phase, output) if str(file).endswith(".json") else output
            return output, _read_file(output, file)
        if content is not None:
            if phase in AS_JSON and _is_object(content):
                output = AS_JSON[phase]
            return output, _as_text(output, content)
        folder = self._workspace.files()
        found = folder.read(path_of(output))
        if found is None:
            others = [other for other in folder.names(PHASES_FOLDER) if phase_of_file(other) == phase]
            if len(others) == 1 and not others[0].endswith(".tmp"):
                output, found = others[0], folder.read(path_of(others[0]))
        if found is None:
            raise NotFound("no-output", f"there is no output of phase {phase} at {path_of(output)}", "give its content")
        if is_review(run, phase) and phase == run["position"] and not fresh:
            stale = stale_review(run, phase, digest(found), folder.changed_at)
            if stale:
                raise Refused(
                    "stale-review",
                    f"{stale}: it is no review of this visit",
                    f"write the review anew, or: tenuto staged record-output {phase} --content-file FILE",
                    phase=phase,
                )
        return output, _as_text(output, found)

    # -- gates and position

    def validate_gate(self, gate: str | None = None) -> Json:
        """`{"passed": true}`, or what is missing; then the run is blocked until a later check passes."""

        def check(turn: Turn, run: Run) -> Json:
            wanted, here = gate or gate_ahead(run), run["position"]
            self._take_review(turn, run)
            if run["position"] != here or (
                run["blocked"] and not run["blocked"]["missing"]
            ):  # the review led elsewhere
                missing = [output for output in evidence(run)[wanted]["required"] if phase_of_file(output) == here]
                return {"passed": False, "missing": missing}
            turn.do(run["id"], {"do": "CheckEvidence", "gate": wanted, "facts": self._facts(turn, run)})
            return self._gate_result(run)

        return self._change(check)

    def advance(self, to: str | None = None) -> Json:
        """On to the next phase of the schedule: the only way forward. A gate between two stages is validated first."""

        def go(turn: Turn, run: Run) -> Json:
            here = run["position"]
            judged = self._take_review(turn, run)
            if judged and not judged["approved"]:
                back = {"movedBack": True} if run["position"] != here else {}
                return {"advanced": False, **back, "review": judged, **_here(run)}
            command: Advance = {"do": "Advance", "facts": self._facts(turn, run)}
            if to is not None:
                command["to"] = to
            before = run["version"]
            turn.do(run["id"], command)
            if run["status"] == "blocked":
                return self._gate_result(run)
            return {"advanced": run["version"] != before, **_here(run)}

        return self._change(go)

    def _gate_result(self, run: Run) -> Json:
        if run["status"] != "blocked" or run["blocked"] is None:
            return {"passed": True}
        folder, known = self._workspace.files(), files(run)
        for output in run["blocked"]["missing"]:
            phase = phase_of_file(output)
            if phase not in known and folder.changed_at(path_of(output)) is not None:
                self._workspace.warn(
                    f"{output} lies there, and is not recorded; try: tenuto staged record-output {phase}"
                )
        return {"passed": False, "missing": run["blocked"]["missing"]}

    def _take_review(self, turn: Turn, run: Run) -> Json | None:
        """Judge a review that another program recorded in its file, and that was not judged so far."""
        folder = self._workspace.files()
        command = unjudged_review(run, folder.read, folder.changed_at)
        if command is None:
            return None
        answer = _judge(turn, run, command["step"], command["review"], command["sha256"])
        return answer["review"]  # type: ignore[no-any-return]

    def _facts(self, turn: Turn, run: Run) -> dict[str, Json]:
        """What others recorded becomes an artifact of ours first: a restart voids it like any other."""
        folder = self._workspace.files()
        for phase, path in files(run).items():
            output = str(path).rpartition("/")[2]
            if path == path_of(output) and phase == phase_of_file(output) and output not in run["artifacts"]:
                text = folder.read(path)
                if text is not None:
                    turn.store(run["id"], output, path, text, step=phase)
        return gather(run, folder.read)

    # -- failures, restarts, rests

    def record_failure(
        self, error: str, phase: str | None = None, context: Json | None = None, failedAt: str = ""
    ) -> Json:
        def fail(turn: Turn, run: Run) -> Json:
            step = phase if phase is not None else phase_of(run)
            command: Fail = {"do": "Fail", "error": error, "step": step, "context": context}
            turn.do(run["id"], {**command, "reported_at": failedAt} if failedAt else command)
            shown = document(run)
            return {"status": shown["status"], "failure": shown["failure"]}

        return self._change(fail)

    def restart(self, stage: str | None = None, reason: str = "") -> Json:
        def again(turn: Turn, run: Run) -> Json:
            wanted = stage if stage is not None else stage_of(run)
            aside = void(turn, run, turn.do(run["id"], {"do": "RestartStage", "stage": wanted, "reason": reason}))
            shown = document(run)
            count = shown["stages"][wanted].get("restartCount")
            return {**_here(run), "restartCount": count, "stage": wanted, **({"setAside": aside} if aside else {})}

        return self._change(again)

    def stop(self, reason: str = "") -> Json:
        return self._change(lambda turn, run: (turn.do(run["id"], {"do": "Stop", "reason": reason}), _here(run))[1])

    def resume(self) -> Json:
        """Go on: after a stop, or with the phase that failed."""
        return self._go_on({"do": "Resume"})

    def unblock(self) -> Json:
        return self._go_on({"do": "Unblock"})

    def _go_on(self, command: Resume | Unblock) -> Json:
        def end_rest(turn: Turn, run: Run) -> Json:
            self._workspace.person("let a task go on", False, run)
            turn.do(run["id"], command)
            return _here(run)

        return self._change(end_rest)

    def owner(self, pid: str | int | None = None) -> Json:
        """Which session the state belongs to, whether it is still there, and whether `pid` is it."""

        def tell(turn: Turn, run: Run) -> Json:
            owner: Json = {"ownerPpid": run["settings"].get("ownerPpid"), "alive": is_alive(run)}
            return owner if pid is None else owner | {"owns": owns(run, pid)}

        return self._change(tell)

    # -- which run

    def _change(self, act: Callable[[Turn, Run], Json]) -> Json:
        with self._workspace.turn() as turn:
            return act(turn, turn.existing(current(turn)))


def refuse_second(turn: Turn) -> None:
    """The file takes one task at a time."""
    if turn.repo["owners"].get(owner_key(turn.workspace.tree)) is None:
        body = recover(turn.workspace)
        if body is None:
            if turn.workspace.files().changed_at(LEFT_OVER) is not None:
                raise Refused(
                    "being-written", f"{LEFT_OVER} was written a moment ago: somebody else begins a task", "try again"
                )
            return
        adopt(turn, FILE, body)
    run = turn.existing(_begun_by_others(turn, _owner_of(turn)))
    if run["status"] not in OVER:
        raise Refused(
            "unfinished",
            f"{FILE} holds an unfinished task: {run['name']} ({document(run)['status']})",
            "finish it, or: tenuto staged record-failure, or: tenuto cancel " + run["id"],
            run=run["id"],
        )


def current(turn: Turn) -> str:
    """The run that this work tree's file shows, with what others wrote into it. A file from before Tenuto is taken
    over, and so is a task that others began in it after the last one had ended."""
    return _begun_by_others(turn, _owner_of(turn))


def _owner_of(turn: Turn) -> str:
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    if owner is not None:
        if turn.workspace.files().changed_at(LEFT_OVER) is not None:
            clear_left_over(turn.workspace)
        return str(owner)
    body = recover(turn.workspace)
    if body is None:
        raise NotFound("no-state", f"there is no {FILE}", 'tenuto staged init \'{"task": "..."}\'')
    return adopt(turn, FILE, body)


def _begun_by_others(turn: Turn, owner: str) -> str:
    """The run of the task that the file holds: another one, where the last has ended and others began the next."""
    try:
        turn.existing(owner)
    except Refused as refusal:
        if refusal.details.get("reason") != "another-task":
            raise
        turn.forget(owner)
        known, body = turn.tx.load(owner), turn.workspace.files().read(FILE)
        if known is None or known["status"] not in OVER or body is None:
            raise
        return adopt(turn, FILE, body)
    return owner


def gate_ahead(run: Run) -> str:
    """The gate out of the current stage."""
    stage = stage_of(run)
    stages = list(dict.fromkeys(entry.get("stage", "") for entry in schedule(run)))
    return f"{stage}->{[*stages, COMPLETE][stages.index(stage) + 1]}"


def set_aside(turn: Turn, outputs: list[str], label: str) -> str:
    """Outputs of phases/ go to a folder of their own when the turn is durable. Returns it; empty for no outputs."""
    if not outputs:
        return ""
    taken, number = turn.workspace.files().names(EARLIER_FOLDER), 1
    while f"{label}-{number}" in taken:
        number += 1
    folder = f"{EARLIER_FOLDER}/{label}-{number}"
    turn.moves |= {path_of(output): f"{folder}/{output}" for output in outputs}
    return folder


def void(turn: Turn, run: Run, events: list[Event]) -> str:
    """Where the run went back: what the phases from there on had recorded counts no more, and is set aside."""
    aside = ""
    for event in events:
        steps = [entry["step"] for entry in run["schedule"]]
        if event["type"] == "StageRestarted":
            again, stage = steps[steps.index(event["to"]) :], event["stage"]
            drop = [["files", step] for step in again]
            drop += [
                ["stages", entry.get("stage", ""), "phases", entry["step"]] for entry in run["schedule"][-len(again) :]
            ]
            count = sum(1 for restart in run["restarts"] if restart["stage"] == stage)
            own = {"stages": {stage: {"stageRestarts": count}}}
            _keep(turn, run["id"], own, [*drop, ["reviewFix"], ["supplementaryRun"], ["coverageLoop"]])
        elif event["type"] == "RouteTaken" and run["position"] in steps:
            again = steps[steps.index(str(run["position"])) :]
            loop = {"coverageLoop": _coverage_loop(run, event["route"], event["reason"])}
            _keep(turn, run["id"], loop, [["coverageLoop"], *(["files", step] for step in again)])
        else:
            continue
        aside = set_aside(turn, _outputs_of(turn, again), run["id"])
    return aside


def _outputs_of(turn: Turn, phases: list[str]) -> list[str]:
    """What lies in phases/ of these phases, or is about to be written there."""
    written = [path.rpartition("/")[2] for path in turn.artifacts if path.startswith(f"{PHASES_FOLDER}/")]
    names = dict.fromkeys([*turn.workspace.files().names(PHASES_FOLDER), *written])
    return [output for output in names if phase_of_file(output) in phases]


def _coverage_loop(run: Run, route: str, reason: str) -> Json:
    """The rounds as the hooks count them: they end at the same number."""
    step = route.removesuffix(".coverage")
    return {
        "currentCoverage": run["reviews"].get(step, {}).get("coverage"),
        "threshold": run["settings"].get("coverageThreshold"),
        "iteration": run["routes"].get(route, 0),
        "maxIterations": _scheduled(run, step).get("coverage", {}).get("at_most"),
        "reason": reason,
    }


def _judge(turn: Turn, run: Run, phase: str, review: object, sha: str) -> Json:
    events = turn.do(run["id"], {"do": "RecordReview", "step": phase, "review": review, "sha256": sha})
    aside = void(turn, run, events)
    recorded = events[0]
    assert recorded["type"] == "ReviewRecorded"
    judgement = recorded["changes"]
    following = judgement["next"]
    answer: Json = {
        "review": {"approved": judgement["approved"], "next": following, "reason": judgement["reason"]},
    }
    if "coverage" in judgement:
        answer["coverage"] = judgement["coverage"]
    if following == "supplementary":  # it is made again, and what the hooks find there must not be the first one
        _keep(turn, run["id"], {"supplementaryRun": {phase: True}})
        aside = set_aside(turn, _outputs_of(turn, [phase]), run["id"])
    elif following == "fix":
        _keep(turn, run["id"], {"reviewFix": _fix_of(run, phase, review)}, [["reviewFix"]])
    elif judgement["approved"]:
        _keep(turn, run["id"], {}, [["reviewFix"], ["supplementaryRun", phase]])
    if aside:
        answer["setAside"] = aside
    return answer | _here(run)


def _fix_of(run: Run, phase: str, review: object) -> Json:
    """What is to be mended, as the hooks and their fixing agents read it."""
    from tenuto.core.decisions.gates import plain, policy
    from tenuto.core.rules import review as judge

    issues = judge(plain(review), str(policy(run, "minBlockSeverity")))["blocking"]
    return {
        "phase": phase,
        "stage": stage_of(run),
        "attempt": run["reviews"][phase]["fix_attempts"],
        "maxAttempts": policy(run, "maxFixAttempts"),
        "issues": issues,
    }


def _keep(turn: Turn, run: str, extra: Json, drop: list[list[str]] | None = None) -> None:
    command: AbsorbEdit = {"do": "AbsorbEdit", "dialect": name, "path": FILE, "sha256": "", "extra": extra}
    if drop:
        command["drop"] = drop
    turn.do(run, command)


def _here(run: Run) -> Json:
    shown = document(run)
    return {field: shown[field] for field in ("status", "currentStage", "currentPhase")}


def _scheduled(run: Run, phase: str) -> ScheduledStep:
    entry = next((entry for entry in schedule(run) if entry["step"] == phase), None)
    if entry is None:
        known = ", ".join(entry["step"] for entry in schedule(run))
        raise BadInput("no-such-phase", f"there is no phase {phase!r} in the schedule; it has {known}", phase=phase)
    return entry


def _read_file(output: str, file: str) -> bytes | str:
    """The text of a file, or its own name where it is large."""
    import os

    if not isinstance(file, str):  # a number would be a descriptor that happens to be open
        raise BadInput("bad-file", f"file is a path, not {file!r}", "--content-file plan.md", field="file")
    if not output.endswith(".json") and os.path.isfile(file) and os.path.getsize(file) > _LARGE:
        return file
    try:
        with open(file, "rb") as source:
            return _as_text(output, source.read())
    except (OSError, ValueError) as error:  # the latter: no file can have this name
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise NotFound("no-such-file", f"{file} cannot be read: {why}", path=file) from None


def _is_object(content: object) -> bool:
    if not isinstance(content, (str, bytes)):
        return isinstance(content, dict)
    try:
        return isinstance(loads_strict(content), dict)
    except NotJson:
        return False


def _as_text(output: str, content: object) -> bytes:
    if not isinstance(content, (str, bytes)):
        content = pretty(content)
    body = content.encode() if isinstance(content, str) else content
    if not body.strip():
        raise BadInput("empty-output", f"{output} would be empty", "give its content")
    if output.endswith(".json"):
        try:
            loads_strict(body)
        except NotJson as problem:
            raise BadInput("not-json", f"{output} must hold JSON: {problem}", f"look at {PHASES_FOLDER}") from None
    return body


# ---- which session it belongs to -------------------------------------------------------------------


def owns(run: Run, pid: object) -> bool:
    """Whether the process `pid` of this moment is the one that the run belongs to."""
    owner = run["settings"].get("owner")
    if not isinstance(owner, dict) or owner.get("pid") != str(pid) or owner.get("began") is None:
        return False
    return str(run["settings"].get("ownerPpid")) == str(pid) and owner["began"] == began(pid)


def is_alive(run: Run) -> bool:
    owner = run["settings"].get("owner")
    return isinstance(owner, dict) and owner.get("began") is not None and began(owner.get("pid")) == owner["began"]


# ---- a task that the engine drives -----------------------------------------------------------------


class StagedDialect(Dialect):
    name = name

    def adopt(self, turn: Turn, path: str, body: bytes) -> str:
        return adopt(turn, path, body)

    def begin(self, run: str, title: str, settings: Json, pipeline: Pipeline, tree: str) -> Beginning:
        profile = known_profile(settings.get("pipelineProfile"))
        tests, docs = pipeline["switches"].get("tests", True), pipeline["switches"].get("docs", True)
        pid = session_process()
        own: Json = {
            **loads(dumps(DEFAULTS)),
            **settings,
            "pipelineProfile": profile,
            "ownerPpid": pid,
            "owner": owner_record(pid),
            **agents(False),
            "codexAvailable": False,
            "worktree": None,
            "taskAnalysis": {
                "complexity": complexity_of(profile),
                "needsTests": tests,
                "needsDocs": docs,
                "reasoning": "",
            },
        }
        beginning: Beginning = {"place": {"tree": tree}, "settings": own, "order": "strict"}
        phases = [phase for phase, _, _, _ in PHASES]
        if all(step["id"] in phases for step in pipeline["steps"]):
            steps = schedule_of(profile, tests)
            beginning["schedule"], beginning["evidence"] = steps, evidence_of(steps)
        return beginning

    def opened(self, turn: Turn, run: str) -> None:
        """The file takes one task at a time: an unfinished one is never written over."""
        refuse_second(turn)
        turn.do_repo({"do": "OwnFile", "path": owner_key(turn.workspace.tree), "run": run})
        worktree = worktree_of(turn.workspace, turn.at)
        if worktree is not None:
            turn.do(run, {"do": "ChangeSettings", "changes": {"worktree": worktree}})
