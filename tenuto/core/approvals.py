"""By whose word a gate was passed: what a decision must bring along, and what a journal must show for it.

    weakness(run, proof)                why this proof does not do for this run; "" where it does
    statement(run, gate, decision, ..)  what a person signs: the run, the gate, the decision, its answers, everything
                                        that was shown, and which run of which definition this is
    law(events)                         what the run was bound to first: by that it is judged
    doubts(pipeline, run, events)       what was passed, or begun, without the decision that it needs
    decided(run, events)                each decision with what had to be signed for it
    standing(pipeline, events)          the gates that are approved, and whose approval nothing has undone since
    refuse_unapproved(pipeline, ...)    Refused, where a gate on the way to this step is not among them

Rule 1: the protection that a run began with holds to its end. Settings lie where agents can write; the run's own do
not. So do the definition, the switches and the parameters that a protected run was bound to first: who may change
those writes the law.

Rule 2: behind a gate nothing begins before the gate was opened and approved. The engine keeps this by itself; here it
is read off the journal again, because whoever can write to the database can write events that nobody decided.

Rule 3: nobody is put behind a gate that was not approved: not by a retry, not by taking a run over, not by a fork. An
approval stands until the gate is asked again, or the run goes back to come through it again. A route that ends behind
the gate (a replan) leaves it standing. It is for the gate of the pipeline that was followed: in another pipeline a gate
of the same name shows other things, and is asked.

What an agent may do right now: be dispatched, call another one, touch a file.

Asked before it happens, by hooks inside agent programs. Each answer is None (yes) or the reason why not.

A gate is closed while the run waits for a person: at an open gate, in a pause, or in front of an
approval that nobody gave. What belongs to a step before that approval may go on: a plan is
revised in front of its approval, not behind it.

An agent that calls agents that call agents is a loop somebody pays for: MAX_DEPTH is the end of it.
"""

from __future__ import annotations

from tenuto.core.status import WAITING
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.events import GateOpened
    from tenuto.core.records.run import Gate, Json, ParamValue, Run


LEVELS = ("guarded", "signed", "isolated")
PROTECTION = "gate_protection"  # in the run's settings: {"level", "signers", "instance"}
BOUND = "bound_settings"  # in the run's settings: the commands that it works with
PASSED_ON = "passed_on"  # in the repository's settings: over what a model may pass a person's decision on


def protection(run: Run) -> Json:
    return run["settings"].get(PROTECTION) or {"level": "", "signers": ""}


def weakness(run: Run, proof: Json) -> str:
    """Whether a signature is a true one is for the driver to see; that there is one is for us."""
    if protection(run)["level"] == "signed" and proof.get("level") != "signed":
        return f"run {run['id']} takes signed decisions only"
    return ""


def statement(
    run: str,
    gate: Gate | GateOpened | Json,
    decision: str,
    feedback: str,
    answers: Mapping[str, ParamValue] | None = None,
    about: Json | None = None,
) -> Json:
    """`gate`: the open gate, or the event that opened it. `answers`: of an approval, where the gate has a form; what
    was asked is signed with what was answered. `about`: what tells this run from any other of its name."""
    record: Json = {**gate}
    form = {} if answers is None else {"fields": record.get("fields", {}), "answers": {**answers}}
    return {
        "run": run,
        "gate": record.get("id") or record["gate"],
        "name": gate["name"],
        "decision": decision,
        "feedback": feedback,
        "shown": gate["shown"],
        **form,
        **(about or {}),
    }


def identity(settings: Json, definition: str | None) -> Json:
    """What a signature is bound to besides the gate. Runs of an older Tenuto have no such thing."""
    instance = (settings.get(PROTECTION) or {}).get("instance", "")
    return {"instance": instance, "definition": definition or ""} if instance else {}


class Law:
    """What a run was bound to first, and each event that binds it to another thing."""

    __slots__ = ("definition", "params", "strayed", "switches")

    def __init__(self) -> None:
        self.definition: Json = {}
        self.switches: dict[str, bool] = {}
        self.params: dict[str, ParamValue] = {}
        self.strayed: list[str] = []


def law(events: Iterable[Json]) -> Law:
    found, engaged = Law(), False
    for number, event in enumerate(events, 1):
        if event["type"] not in ("RunStarted", "Engaged", "DriverChanged"):
            continue
        definition = event.get("pipeline") or {}
        if not found.definition.get("hash"):
            found.definition = definition
        elif definition.get("hash") != found.definition["hash"]:
            found.strayed.append(f"event {number}: the run was bound to another definition under way")
        if event["type"] == "Engaged":
            ways = (event["switches"], event.get("params", {}))
            if not engaged:
                found.switches, found.params = ways
            elif ways != (found.switches, found.params):
                found.strayed.append(f"event {number}: switches or parameters were changed under way")
            engaged = engaged or bool(definition.get("hash"))
    return found


def decided(run: str, events: Iterable[Json]) -> Iterator[tuple[Json, Json]]:
    """(GateDecided, what had to be signed), for every gate that was opened."""
    opened: dict[str, Json] = {}
    settings: Json = {}
    bound: str | None = None
    for event in events:
        if event["type"] == "RunStarted":
            settings = event.get("settings", {})
        if event["type"] in ("RunStarted", "Engaged", "DriverChanged"):
            bound = bound or (event.get("pipeline") or {}).get("hash")
        if event["type"] == "GateOpened":
            opened[event["gate"]] = event
        elif event["type"] == "GateDecided" and event["gate"] in opened:
            opening = opened[event["gate"]]
            about = identity(settings, bound)
            yield event, statement(run, opening, event["decision"], event["feedback"], event.get("answers"), about)


def standing(pipeline: Pipeline | None, events: Iterable[Json]) -> list[str]:
    """The names of these gates. `events`: of one run, from the beginning."""
    held = _Approvals(pipeline)
    for event in events:
        held.apply(event)
    return list(held.names)


def refuse_unapproved(
    pipeline: Pipeline, switches: Mapping[str, bool], step: str, approved: Collection[str]
) -> list[str]:
    """The gates on the way to this step, each of them approved."""
    order = [one["id"] for one in pipeline["steps"]]
    ahead = order[: order.index(step)]
    passed = {name: gate for gate, name in _gates(pipeline, switches).items() if gate in ahead}
    closed = [name for name in passed if name not in approved]
    if closed:
        what = f"gate {closed[0]!r}" if len(closed) == 1 else f"gates {', '.join(repr(name) for name in closed)}"
        message = f"{step} lies behind {what}, and no approval of it stands"
        raise Refused("gate-ahead", message, f"begin at {passed[closed[0]]}, or before it", step=step, gates=closed)
    return list(passed)


def _gates(pipeline: Pipeline, switches: Mapping[str, bool]) -> dict[str, str]:
    """Step -> name, of those that are on the way and not known to be off."""
    from tenuto.core.pipeline import conditions  # which hooks that only ask what may be done do without

    return {
        step["id"]: step["gate"]["name"]
        for step in pipeline["steps"]
        if step["kind"] == "gate" and not step["aside"] and conditions.decided(step["when"], switches) is not False
    }


class _Approvals:
    """Rule 3, event by event."""

    def __init__(self, pipeline: Pipeline | None) -> None:
        self.names: dict[str, None] = {}
        self._follows = ""
        steps = pipeline["steps"] if pipeline is not None else []
        self._order = [step["id"] for step in steps]
        self._of = {step["gate"]["name"]: step["id"] for step in steps if step["kind"] == "gate"}

    def apply(self, event: Json) -> None:
        if event["type"] in ("RunStarted", "Engaged", "DriverChanged"):
            self._follow(event.get("pipeline") or {})
        match event["type"]:
            case "GateDecided":
                self.names.pop(event["name"], None)
                if event["approved"]:
                    self.names[event["name"]] = None
            case "RouteTaken" | "Engaged" if event["queue"]:
                last = event["queue"][-1]["step"]
                behind = self._order[self._order.index(last) :] if last in self._order else []
                self.names = {name: None for name in self.names if self._of.get(name) not in behind}
            case "StepStarted":
                asked = [name for name in self.names if self._of.get(name) == event["step"]]
                self.names = {name: None for name in self.names if name not in asked}
            case "Forked":
                self.names.update(dict.fromkeys(event.get("approved", ())))

    def _follow(self, pipeline: Json) -> None:
        """Led by hand (no definition is bound), a run knows the gates of what it is about to follow."""
        if pipeline.get("hash"):
            if self._follows not in ("", pipeline["name"]):
                self.names = {}
            self._follows = pipeline["name"]


def doubts(pipeline: Pipeline, events: Sequence[Json]) -> Iterator[str]:
    """`pipeline`: what the run was bound to first (law)."""
    from tenuto.core.pipeline import conditions

    began = law(events)
    yield from began.strayed
    order = [step["id"] for step in pipeline["steps"]]
    gates = _gates(pipeline, began.switches)
    optional = [
        step["id"]
        for step in pipeline["steps"]
        if conditions.decided(step["when"], began.switches, began.params) is None
    ]
    left_out: list[str] = []  # gates that only the run could decide about
    waiting, approved = "", _Approvals(pipeline)
    for number, event in enumerate(events, 1):
        approved.apply(event)
        match event["type"]:
            case "SettingsChanged" if PROTECTION in event["changes"]:
                yield f"event {number}: how gates are protected was changed under way"
            case "SettingsChanged" if BOUND in event["changes"]:
                yield f"event {number}: the commands that the run works with were changed under way"
            case "StepSkipped" if event["step"] in optional:
                left_out.append(event["step"])
            case "GateOpened":
                waiting = event["gate"]
            case "GateDecided":
                if event["gate"] != waiting and event["name"] in gates.values():
                    yield f"event {number}: gate {event['name']!r} was decided without being open"
                waiting = ""
            case "StepStarted" | "AttemptDispatched" if event["step"] in order:
                here = order.index(event["step"])
                if waiting:
                    yield f"event {number}: {event['step']} began while {waiting} was open"
                left_out = [step for step in left_out if step != event["step"]]
                for step, name in gates.items():
                    if order.index(step) < here and name not in approved.names and step not in left_out:
                        yield f"event {number}: {event['step']} began without an approval of {name!r}"


# ---- boundaries ------------------------------------------------------------


MAX_DEPTH = 5


def closed(run: Run, step: str | None) -> str | None:
    """Why no agent may be dispatched for `step` now."""
    if run["status"] in WAITING:
        what = f"waits at gate {run['gate']['name']!r}" if run["gate"] else f"is {run['status']}"
        return f"run {run['id']} {what}"
    order = [entry["step"] for entry in run["schedule"]]
    if run["order"] == "open" and step in order:
        from tenuto.core.decisions.steps import approved

        for entry in run["schedule"][: order.index(step) + 1]:
            if entry.get("approval") and not approved(run, entry["step"]):
                return f"{entry['step']!r} of run {run['id']} is not approved by a person"
    return None


def depth_of(run: Run, parent: str | None) -> int:
    """How deep an agent called by attempt `parent` would stand; the session itself calls at depth 1."""
    caller = run["attempts"].get(parent or "")
    return 1 if caller is None else int(caller["extra"].get("depth", 1)) + 1


def outside(run: Run, declared: object, path: str) -> str | None:
    """Why `path` (below the work tree) may not be edited in the step the run is in.

    `declared`: patterns, patterns by step ("*": any step), or "items" for the files of the items under way.
    """
    patterns = _patterns(run, declared)
    if patterns is None:
        return None
    from tenuto.names import fits

    meant = patterns
    if _declared(run, declared) == "items":
        from tenuto.core.items import meant_by

        meant = [pattern for name in patterns for pattern in meant_by(name)]
    if not path.startswith(("/", "..")) and any(fits(pattern, path) for pattern in meant):
        return None
    allowed = ", ".join(patterns) or "nothing"
    return f"{path} is outside what {run['position'] or 'this step'!r} of run {run['id']} may edit: {allowed}"


def _declared(run: Run, declared: object) -> object:
    return declared.get(run["position"] or "", declared.get("*")) if isinstance(declared, dict) else declared


def _patterns(run: Run, declared: object) -> list[str] | None:
    declared = _declared(run, declared)
    if declared == "items":
        busy = [item for item in run["items"].values() if item["status"] == "running"]
        return [path for item in busy for path in item["files"]] if busy else None
    return [str(pattern) for pattern in declared] if isinstance(declared, list) else None


def settings_of(repo_settings: Json, run: Run | None) -> Json:
    """What the user declared for hooks: the run's own word counts before the repository's."""
    declared = dict(repo_settings.get("hooks") or {})
    declared.update((run["settings"].get("hooks") if run else None) or {})
    return declared
