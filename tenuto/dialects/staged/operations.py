"""`tenuto staged ...`: the operations on state.json. JSON in, JSON out.

Each is one turn: everything it changes is durable together, or nothing is. Whether a gate passes, a review counts or
a stage begins again is decided in core/; here its words are put in and its answers taken out.
"""

from __future__ import annotations

from tenuto.core.names import slug
from tenuto.dialects.staged import FILE, LEFT_OVER, PHASES_FOLDER, name, owner_key
from tenuto.dialects.staged.document import SETTINGS, document, evidence, files, phase_of, schedule, stage_of
from tenuto.dialects.staged.evidence import coverage_in, gather, path_of, review_in, unjudged_review
from tenuto.dialects.staged.profiles import COMPLETE, OUTPUTS, phase_of_file
from tenuto.encoding import NotJson, digest, loads_strict, pretty
from tenuto.errors import BadInput, NotFound, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tenuto.core.records import Json, Run

OVER = ("completed", "failed", "cancelled", "graduated", "poc-complete")
_LARGE = 1 << 22  # bytes; larger texts are streamed
# Whoever wants to change these has an operation for it; `update` must not be a way around it.
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
    """`workspace.staged`"""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def init(self, task: str, **fields: Any) -> Json:
        """A new task takes over the file. Refused while the one before it is unfinished."""
        from tenuto.dialects.staged.beginning import beginning

        with self._workspace.turn() as turn:
            refuse_second(turn)
            run = turn.unused(slug(task))
            start, unknown = beginning(self._workspace, turn.at, run, task, fields)
            turn.do(run, start)
            turn.do_repo({"do": "OwnFile", "path": owner_key(self._workspace.tree), "run": run})
            turn.do_repo({"do": "MakeCurrent", "run": run})
            turn.do(run, {"do": "Advance"})
            if unknown:
                _keep(turn, run, unknown)
            return document(turn.existing(run))

    def read(self) -> Json | None:
        """The state, with what others wrote into it; None where there is none."""
        from tenuto.dialects.staged.adoption import recover, state_in

        if not _has_journal(self._workspace):
            body = recover(self._workspace)
            return state_in(FILE, body) if body is not None else None
        with self._workspace.turn() as turn:
            owner = turn.repo["owners"].get(owner_key(self._workspace.tree))
            if owner is not None:
                return document(turn.existing(owner))
            body = recover(self._workspace)
            return state_in(FILE, body) if body is not None else None

    def update(self, changes: Json) -> Json:
        """Merge deeply; arrays are replaced. Position, statuses and stages have operations of their own."""
        if not isinstance(changes, dict):
            raise BadInput("bad-update", "an update is a JSON object", '{"webSearch": false}')
        for key in changes:
            if key in _BY_OPERATION:
                raise Refused("not-by-update", f"{key} is not changed by update", _BY_OPERATION[key], key=key)

        def merge(turn: Any, run: Run) -> Json:
            known = {key: value for key, value in changes.items() if key in SETTINGS}
            unknown = {key: value for key, value in changes.items() if key not in SETTINGS and key != "updatedAt"}
            if "ownerPpid" in known:
                from tenuto.dialects.staged.owner import identify

                known["owner"] = identify(known["ownerPpid"])
            turn.do(run["id"], {"do": "ChangeSettings", "changes": known})
            if unknown:
                _keep(turn, run["id"], unknown)
            return document(run)

        return self._change(merge)

    # -- outputs and reviews

    def record_output(self, phase: str, content: Any = None, file: str | None = None) -> Json:
        """Keep a phase's output under its name. Without content: what the agent wrote there itself."""

        def record(turn: Any, run: Run) -> Json:
            entry = _scheduled(run, phase)
            output = OUTPUTS.get(phase) or f"{phase}-{slug(entry.get('name', 'output'))}.md"
            self._store(turn, run, phase, output, content, file)
            kept = run["artifacts"][output]
            answer: Json = {
                "phase": phase, "file": output, "path": kept["path"], "sha256": kept["sha256"], "size": kept["size"],
            }  # fmt: skip
            if entry.get("type") == "review" and phase == run["position"]:
                text = self._workspace.files().stored(turn.tx, kept["sha256"])
                answer |= _judge(turn, run, phase, review_in(text), digest(text))
            return answer

        return self._change(record)

    def record_review(self, review: Any, phase: str | None = None) -> Json:
        """The same for a review, by default of the current phase; a phase that is no review takes none."""
        with self._workspace.turn() as turn:
            run = turn.existing(current(turn))
            wanted = phase if phase is not None else phase_of(run)
            if _scheduled(run, wanted).get("type") != "review":
                reviews = ", ".join(entry["step"] for entry in schedule(run) if entry.get("type") == "review")
                raise Refused(
                    "not-a-review", f"phase {wanted} is no review; there are {reviews}",
                    f"tenuto staged record-output {wanted}", phase=wanted,
                )  # fmt: skip
        return self.record_output(wanted, content=review)

    def record_coverage(self, percent: float | None, phase: str | None = None) -> Json:
        """Below the threshold the run goes back to where tests are written."""

        def record(turn: Any, run: Run) -> Json:
            step = phase if phase is not None else phase_of(run)
            turn.do(run["id"], {"do": "RecordCoverage", "step": step, "percent": percent})
            return {"phase": step, "coverage": percent, "threshold": run["settings"].get("coverageThreshold"), **_here(run)}

        return self._change(record)

    def _store(self, turn: Any, run: Run, phase: str, output: str, content: Any, file: str | None) -> None:
        path = path_of(output)
        if file is not None:
            import os

            if not isinstance(file, str):  # a number would be a descriptor that happens to be open
                raise BadInput("bad-file", f"file is a path, not {file!r}", "--content-file plan.md", field="file")

            if not output.endswith(".json") and os.path.isfile(file) and os.path.getsize(file) > _LARGE:
                turn.store_file(run["id"], output, path, file, step=phase)
                return
            try:
                with open(file, "rb") as source:
                    content = source.read()
            except (OSError, ValueError) as error:  # the latter: no file can have this name
                why = getattr(error, "strerror", None) or error
                raise NotFound("no-such-file", f"{file} cannot be read: {why}", path=file) from None
        elif content is None:
            content = self._workspace.files().read(path)
            if content is None:
                raise NotFound("no-output", f"there is no output of phase {phase} at {path}", "give its content")
        turn.store(run["id"], output, path, _as_text(output, content), step=phase)

    # -- gates and position

    def validate_gate(self, gate: str | None = None) -> Json:
        """`{"passed": true}`, or what is missing; then the run is blocked until a later check passes."""

        def check(turn: Any, run: Run) -> Json:
            wanted, here = gate or gate_ahead(run), run["position"]
            self._take_review(turn, run)
            if run["position"] != here or (run["blocked"] and not run["blocked"]["missing"]):  # the review led elsewhere
                missing = [output for output in evidence(run)[wanted]["required"] if phase_of_file(output) == here]
                return {"passed": False, "missing": missing}
            turn.do(run["id"], {"do": "CheckEvidence", "gate": wanted, "facts": self._facts(turn, run)})
            return _gate_result(run)

        return self._change(check)

    def advance(self, to: str | None = None) -> Json:
        """On to the next phase of the schedule: the only way forward. A gate between two stages is validated first."""

        def go(turn: Any, run: Run) -> Json:
            judged = self._take_review(turn, run)
            if judged and not judged["approved"]:
                return {"advanced": False, "review": judged, **_here(run)}
            command: Json = {"do": "Advance", "facts": self._facts(turn, run)}
            if to is not None:
                command["to"] = to
            before = run["version"]
            turn.do(run["id"], command)
            if run["status"] == "blocked":
                return _gate_result(run)
            return {"advanced": run["version"] != before, **_here(run)}

        return self._change(go)

    def _take_review(self, turn: Any, run: Run) -> Json | None:
        """A review that stands in its file, recorded by others, and that nobody has judged so far."""
        command = unjudged_review(run, self._workspace.files().read)
        if command is None:
            return None
        answer = _judge(turn, run, command["step"], command["review"], command["sha256"])
        return answer["review"]  # type: ignore[no-any-return]

    def _facts(self, turn: Any, run: Run) -> dict[str, Json]:
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

    def record_failure(self, error: str, phase: str | None = None, context: Any = None) -> Json:
        def fail(turn: Any, run: Run) -> Json:
            step = phase if phase is not None else phase_of(run)
            turn.do(run["id"], {"do": "Fail", "error": error, "step": step, "context": context})
            shown = document(run)
            return {"status": shown["status"], "failure": shown["failure"]}

        return self._change(fail)

    def restart(self, stage: str | None = None, reason: str = "") -> Json:
        def again(turn: Any, run: Run) -> Json:
            wanted = stage if stage is not None else stage_of(run)
            void(turn, run, turn.do(run["id"], {"do": "RestartStage", "stage": wanted, "reason": reason}))
            shown = document(run)
            return {**_here(run), "restartCount": shown["stages"][wanted].get("restartCount"), "stage": wanted}

        return self._change(again)

    def stop(self, reason: str = "") -> Json:
        return self._change(lambda turn, run: (turn.do(run["id"], {"do": "Stop", "reason": reason}), _here(run))[1])

    def resume(self) -> Json:
        return self._go_on("Resume")

    def unblock(self) -> Json:
        return self._go_on("Unblock")

    def _go_on(self, how: str) -> Json:
        def end_rest(turn: Any, run: Run) -> Json:
            self._workspace.person("let a task go on", False, run)
            turn.do(run["id"], {"do": how})
            return _here(run)

        return self._change(end_rest)

    def owner(self, pid: str | int | None = None) -> Json:
        """Which session the state belongs to, whether it is still there, and whether `pid` is it."""
        from tenuto.dialects.staged.owner import is_alive, owns

        def tell(turn: Any, run: Run) -> Json:
            told: Json = {"ownerPpid": run["settings"].get("ownerPpid"), "alive": is_alive(run)}
            return told if pid is None else told | {"owns": owns(run, pid)}

        return self._change(tell)

    # -- which run

    def _change(self, act: Callable[[Any, Run], Json]) -> Json:
        with self._workspace.turn() as turn:
            return act(turn, turn.existing(current(turn)))


def refuse_second(turn: Any) -> None:
    """The file takes one task at a time."""
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    if owner is None:
        from tenuto.dialects.staged.adoption import adopt, recover

        body = recover(turn.workspace)
        if body is None:
            if turn.workspace.files().changed_at(LEFT_OVER) is not None:
                raise Refused("being-written", f"{LEFT_OVER} was written a moment ago: somebody else begins a task", "try again")
            return
        owner = adopt(turn, FILE, body)
    run = turn.existing(owner)
    if run["status"] not in OVER:
        raise Refused(
            "unfinished", f"{FILE} holds an unfinished task: {run['name']} ({document(run)['status']})",
            "finish it, or: tenuto staged record-failure, or: tenuto cancel " + run["id"], run=run["id"],
        )  # fmt: skip


def current(turn: Any) -> str:
    """The run that this work tree's file shows. A file from before Tenuto is taken over."""
    owner = turn.repo["owners"].get(owner_key(turn.workspace.tree))
    if owner is not None:
        if turn.workspace.files().changed_at(LEFT_OVER) is not None:
            from tenuto.dialects.staged.adoption import clear_left_over

            clear_left_over(turn.workspace)
        return str(owner)
    from tenuto.dialects.staged.adoption import adopt, recover

    body = recover(turn.workspace)
    if body is None:
        raise NotFound("no-state", f"there is no {FILE}", 'tenuto staged init \'{"task": "..."}\'')
    return adopt(turn, FILE, body)


def _has_journal(workspace: Any) -> bool:
    """A look must not make one."""
    from os.path import exists

    return exists(getattr(workspace.journal, "path", "/"))


def gate_ahead(run: Run) -> str:
    """The gate out of the current stage."""
    stage = stage_of(run)
    stages = list(dict.fromkeys(entry.get("stage", "") for entry in schedule(run)))
    return f"{stage}->{[*stages, COMPLETE][stages.index(stage) + 1]}"


def void(turn: Any, run: Run, events: list[Any]) -> None:
    """After a restart: what others recorded of the stage and those behind it counts no more, either."""
    for event in events:
        if event["type"] == "StageRestarted":
            steps = [(entry["step"], entry.get("stage", "")) for entry in run["schedule"]]
            first = [step for step, _ in steps].index(event["to"])
            drop = [["files", step] for step, _ in steps[first:]]
            drop += [["stages", stage, "phases", step] for step, stage in steps[first:]]
            _keep(turn, run["id"], {}, drop)


def _judge(turn: Any, run: Run, phase: str, review: Any, sha: str) -> Json:
    events = turn.do(run["id"], {"do": "RecordReview", "step": phase, "review": review, "sha256": sha})
    void(turn, run, events)
    said = events[0]["changes"]
    answer: Json = {"review": {"approved": said["approved"], "next": said["next"], "reason": said["reason"]}}
    covered = coverage_in(review)
    if said["approved"] and covered is not None and "coverage" in _scheduled(run, phase):
        turn.do(run["id"], {"do": "RecordCoverage", "step": phase, "percent": covered})
        answer["coverage"] = covered
        if run["position"] != phase or run["status"] == "blocked":
            answer["review"] |= {"approved": False, "next": "coverage", "reason": f"coverage is {covered}%"}
    return answer | _here(run)


def _keep(turn: Any, run: str, extra: Json, drop: list[list[str]] | None = None) -> None:
    command: Json = {"do": "AbsorbEdit", "dialect": name, "path": FILE, "sha256": "", "extra": extra}
    turn.do(run, command | ({"drop": drop} if drop else {}))


def _here(run: Run) -> Json:
    shown = document(run)
    return {field: shown[field] for field in ("status", "currentStage", "currentPhase")}


def _gate_result(run: Run) -> Json:
    if run["status"] == "blocked" and run["blocked"] is not None:
        return {"passed": False, "missing": run["blocked"]["missing"]}
    return {"passed": True}


def _scheduled(run: Run, phase: str) -> Any:
    entry = next((entry for entry in schedule(run) if entry["step"] == phase), None)
    if entry is None:
        known = ", ".join(entry["step"] for entry in schedule(run))
        raise BadInput("no-such-phase", f"there is no phase {phase!r} in the schedule; it has {known}", phase=phase)
    return entry


def _as_text(output: str, content: Any) -> bytes:
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
