"""What follows an outcome: from shorthand to the full record.

    halt | fail | pause | block                           the run comes to rest
    {go_on: planning, carry: constraints}                 forward, never back
    {route: [design, design-review], at_most: 1, then: …}  back, a bounded number of times
    {restart: PLAN, at_most: 3, then: block}              the whole stage again
    NOT_DONE: …                                           NEEDS_REVISION and ERROR, one counter

A route is written as far as its author likes and always ends with the step that takes it: what
lies between is filled in. So the step decides again, and a run can never be lost on a detour.

Reviews, coverage and revisions: shorthand for routes.

`review` stands for: a second opinion, then fixes, then the whole stage again, then a person.
`coverage` stands for: back to where tests are written, so many times, then a person.
A gate's `revise` stands for: back to this step, whenever a person says so.

The bounds may come from the pipeline's settings, under the names that the staged state file uses.
"""

from __future__ import annotations

from tenuto.core.actions import group_of
from tenuto.core.pipeline import conditions, values
from tenuto.core.pipeline.values import View, did_you_mean
from tenuto.core.status import VERDICTS, WELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tenuto.core.pipeline.conditions import Scope
    from tenuto.core.pipeline.records import Leg, Outcome, Step
    from tenuto.core.records.run import Json


AUDIT = ("DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE")
ITEMS = ("due", "failing", "affected", "all")
_KEYS = {
    "go_on": ("do", "go_on", "to", "carry"),
    "route": (
        "do",
        "route",
        "restart",
        "at_most",
        "counter",
        "resets",
        "with",
        "because",
        "when",
        "otherwise",
        "then",
    ),
    "pause": ("do", "pause", "reason", "recommendations"),
    "block": ("do", "block", "reason"),
    "fail": ("do", "fail", "halt", "reason"),
    "finish": ("do", "finish", "as"),
}
_WORDS = ("go_on", "route", "restart", "pause", "block", "fail", "halt", "finish")


class Atlas:
    """Where every step lies. Steps are complete here except for their `on`."""

    __slots__ = ("by_id", "finish", "order", "scope", "steps")

    def __init__(self, steps: list[Step], finish: str, scope: Scope) -> None:
        self.steps = steps
        self.scope = scope
        self.finish = finish
        self.by_id = {step["id"]: step for step in steps}
        self.order = {step["id"]: index for index, step in enumerate(steps)}

    def after(self, step: Step) -> Step | None:
        return next((later for later in self.steps[self.order[step["id"]] + 1 :] if not later["aside"]), None)

    def entry(self, name: str, here: str) -> str:
        """Where a way forward to this step begins: a sub-pipeline, seen from outside, at its first step."""
        step = self.by_id[name]
        return name if here.startswith(f"{name}.") else group_of(self.steps, step)[0]

    def between(self, start: str, end: str) -> list[str]:
        """The steps on the way behind `start`, up to and with `end`."""
        ids = [step["id"] for step in self.steps if not step["aside"] or step["id"] == end]
        if self.by_id[start]["aside"]:
            return [end]
        return ids[ids.index(start) + 1 : ids.index(end) + 1]


def read_on(view: View, step: Step, atlas: Atlas, implied: dict[str, View]) -> dict[str, Outcome]:
    """`implied` are outcomes that other keys of the step stand for (review, coverage, revise)."""
    allowed = possible(step)
    view.value = {} if view.value is None else view.value
    view.is_mapping("`on`", (*allowed, "NOT_DONE"))
    given = {name: outcome for name, outcome in view.fields() if outcome.value is not None}
    names = dict.fromkeys(given, "")
    both = view.get("NOT_DONE")
    if both.value is not None:
        for name in ("NEEDS_REVISION", "ERROR"):
            if name in given:
                both.note("contradiction", f"`on` has NOT_DONE and also {name}", "keep one of them")
            given[name], names[name] = both, "NOT_DONE"
    for name, outcome in implied.items():
        if name in given:
            outcome.note("contradiction", f"`on` already says what follows {name}", "keep one of them")
        given[name], names[name] = outcome, ""
    found = {
        name: read(given[name], step, atlas, f"{step['id']}.{names[name] or name}") for name in allowed if name in given
    }
    for name in allowed:
        if name not in found and not (name == "NEEDS_REVISION" and step["kind"] == "gate"):
            found[name] = _default(name, step, atlas, found)
    _check_done(view, found["DONE"])
    return {name: found[name] for name in allowed if name in found}


def possible(step: Step) -> tuple[str, ...]:
    extra = AUDIT if step["rule"] == "audit" else ()
    covered = ("LOW_COVERAGE",) if step["kind"] == "agent" and step["coverage"] else ()
    return (*VERDICTS, *extra, *covered)


def _default(name: str, step: Step, atlas: Atlas, found: dict[str, Outcome]) -> Outcome:
    if name == "DONE":
        following = atlas.after(step)
        if following is not None:
            return {"do": "go_on", "to": following["id"], "carry": ""}
        done: Any = {"do": "finish", "as": atlas.finish}
        ended: Outcome = done
        return ended
    if name == "NEEDS_REVISION":
        return found.get("ERROR", {"do": "fail", "reason": ""})
    if name == "ERROR":
        return {"do": "fail", "reason": ""}
    return {"do": "pause", "reason": name, "recommendations": []}


def _check_done(view: View, outcome: Outcome) -> None:
    if outcome["do"] not in ("go_on", "finish"):
        view.get("DONE").note("contradiction", f"DONE cannot lead to a {outcome['do']}", "say go_on or finish")


def read(view: View, step: Step, atlas: Atlas, counter: str) -> Outcome:
    do, view = _verb(view)
    if do:
        view.is_mapping(f"a {do}", _KEYS[do])
    match do:
        case "go_on":
            return _go_on(view, step, atlas)
        case "route":
            return _route(view, step, atlas, counter)
        case "finish":
            word: Any = {"do": "finish", "as": _either(view, "as", "finish").choice("the end", WELL, atlas.finish)}
            finish: Outcome = word
            return finish
        case "pause":
            recommendations = view.get("recommendations").words("a recommendation")
            return {"do": "pause", "reason": _reason(view, "pause"), "recommendations": recommendations}
        case "block":
            return {"do": "block", "reason": _reason(view, "block")}
    return {"do": "fail", "reason": _reason(view, "halt" if view.has("halt") else "fail")}


def _verb(view: View) -> tuple[str, View]:
    """Which of the six it is, and the mapping that says so."""
    if isinstance(view.value, str):
        word = view.value
        if word not in _WORDS or word in ("route", "restart"):
            view.note("unknown-value", f"nothing is called '{word}'", did_you_mean(word, _WORDS))
            return "", view
        return _plain(word), View({word: True}, view.path, view.problems)
    if isinstance(view.value, dict):
        if view.has("do"):
            return view.get("do").choice("`do`", tuple(_KEYS), "fail"), view
        said = [word for word in _WORDS if word in view.value]
        if len({_plain(word) for word in said}) == 1:
            return _plain(said[0]), view
    view.note("unclear-outcome", "this does not say what follows", f"say one of: {', '.join(_WORDS)}")
    return "", View({}, view.path, [])


def _plain(word: str) -> str:
    return {"halt": "fail", "restart": "route"}.get(word, word)


def _either(view: View, long: str, short: str) -> View:
    if view.has(long) and view.has(short):
        view.get(short).note("contradiction", f"`{short}` and `{long}` are both given", "keep one of them")
    found = view.get(long) if view.has(long) else view.get(short)
    return View(None, found.path, found.problems) if found.value is True else found


def _reason(view: View, short: str) -> str:
    return _either(view, "reason", short).text("the reason")


def _go_on(view: View, step: Step, atlas: Atlas) -> Outcome:
    target = _either(view, "to", "go_on")
    following = atlas.after(step)
    to = target.text("the next step", following["id"] if following else "")
    if to not in atlas.by_id:
        target.note("unknown-step", f"there is no step '{to}'", did_you_mean(to, atlas.by_id))
    elif atlas.by_id[to]["aside"]:
        target.note("contradiction", f"'{to}' is aside: only a route leads there", "use a route with at_most")
    elif atlas.order[atlas.entry(to, step["id"])] <= atlas.order[step["id"]]:
        target.note(
            "backward-go-on",
            f"'{to}' is not behind '{step['id']}': going back needs a bound",
            "use a route with at_most",
        )
    if to in atlas.by_id:
        to = atlas.entry(to, step["id"])
    return {"do": "go_on", "to": to, "carry": view.get("carry").text("what is carried")}


def _route(view: View, step: Step, atlas: Atlas, counter: str) -> Outcome:
    stage = view.get("restart").text("the stage")
    legs = (
        _restart(view, step, atlas, stage) if stage and not view.has("route") else _hops(view.get("route"), step, atlas)
    )
    at_most = view.get("at_most").whole("at_most", None, most=1000)
    if at_most is None and step["kind"] != "gate":
        view.note("unbounded-route", "this route has no bound", "say how often at most: at_most: 1")
    default = f"restart.{stage}" if stage else counter
    own: Outcome | None = None
    if at_most is not None:
        own = (
            read(view.get("then"), step, atlas, counter + ".then") if view.has("then") else {"do": "fail", "reason": ""}
        )
    because = _because(view, step)
    otherwise = read(view.get("otherwise"), step, atlas, counter + ".otherwise") if view.has("otherwise") else None
    when = conditions.read(view.get("when"), atlas.scope)
    bound = bool(because) or when != conditions.ALWAYS
    if otherwise is not None and not bound:
        hint = "say which member it is about, or when the route is taken"
        view.get("otherwise").note("contradiction", "`otherwise` needs a `because`, or a `when`", hint)
    outcome: Any = {
        "do": "route",
        "route": legs,
        "at_most": at_most,
        "counter": view.get("counter").text("the counter", default),
        "resets": view.get("resets").words("a counter"),
        "restart": stage,
        "with": values.read(view.get("with"), "a finding") if view.has("with") else outputs(step),
        "because": because,
        "when": when,
        "otherwise": own if bound and otherwise is None else otherwise,
        "then": own,
    }
    route: Outcome = outcome
    return route


def _because(view: View, step: Step) -> str:
    because = view.get("because").text("because")
    members = seat_ids(step)
    if because and because not in members:
        view.get("because").note(
            "unknown-member", f"'{step['id']}' has no member '{because}'", did_you_mean(because, members)
        )
    return because


def _restart(view: View, step: Step, atlas: Atlas, stage: str) -> list[Leg]:
    steps = [other for other in atlas.steps if other["stage"] == stage and (not other["aside"] or other is step)]
    if stage != step["stage"]:
        hint = did_you_mean(stage, {other["stage"] for other in atlas.steps if other["stage"]})
        view.get("restart").note("unknown-stage", f"'{step['id']}' is not in a stage '{stage}'", hint)
        return []
    up_to = steps[: steps.index(step) + 1]
    return [leg(other, "all" if other["kind"] == "waves" else "") for other in up_to]


def _hops(view: View, step: Step, atlas: Atlas) -> list[Leg]:
    named = [(entry, known) for entry in view.entries() if (known := _leg(entry, atlas)) is not None]
    named = [one for place in range(len(named)) for one in _whole(named, place, step, atlas)]
    found = [known for _, known in named]
    if not found:
        if not view.entries():
            view.note("missing", "a route needs at least one step", "for example route: [design]")
        return []
    if step["kind"] == "gate" and found[0]["items"] == "due" and isinstance(named[0][0].value, str):
        found[0]["items"] = "affected"  # a person sends the work back: what is done is not done yet
    here = atlas.order[step["id"]]
    for entry, known in named:
        there = atlas.by_id[known["step"]]
        if not there["aside"] and atlas.order[known["step"]] > here:
            entry.note("forward-route", f"'{known['step']}' is behind '{step['id']}': a route leads back", "use go_on")
            return found
        if known["step"] == step["id"] and known is not found[-1]:
            entry.note("contradiction", f"'{step['id']}' takes the route and can only be its last step", "leave it out")
    if found[-1]["step"] != step["id"]:
        found += [leg(atlas.by_id[between]) for between in atlas.between(found[-1]["step"], step["id"])]
    return found


def _whole(named: list[tuple[View, Leg]], place: int, step: Step, atlas: Atlas) -> list[tuple[View, Leg]]:
    """A leg to a sub-pipeline is a leg to each of its steps; behind one of them, it is its end only. To one of its own
    steps it is the way up to there: all that was done so far, again."""
    entry, known = named[place]
    before = named[place - 1][1]["step"] if place else ""
    if before.startswith(f"{known['step']}."):
        return [named[place]]
    group = group_of(atlas.steps, atlas.by_id[known["step"]])
    if step["id"] in group[:-1]:
        return [(entry, leg(atlas.by_id[name])) for name in group[: group.index(step["id"]) + 1]]
    return [*((entry, leg(atlas.by_id[name])) for name in group[:-1]), (entry, known)]


def leg(step: Step, items: str = "") -> Leg:
    which: Any = items or ("due" if step["kind"] == "waves" else "")
    return {"step": step["id"], "mode": "", "only": [], "items": which}


def _leg(view: View, atlas: Atlas) -> Leg | None:
    target, long, manner = view, View(None, view.path, view.problems), View(None, view.path, view.problems)
    if isinstance(view.value, dict):
        if "step" in view.value:
            view.is_mapping("a leg", ("step", "mode", "only", "items"))
            target, long = view.get("step"), view
        elif len(view.value) == 1 and view.fields():
            ((key, manner),) = view.fields()
            target = View(key, manner.path, view.problems)
        else:
            view.note("wrong-type", "a leg is a step, or one step with its manner", "for example {planning: replan}")
            return None
    name = target.text("a step")
    if name not in atlas.by_id:
        target.note("unknown-step", f"there is no step '{name}'", did_you_mean(name, atlas.by_id))
        return None
    step = atlas.by_id[name]
    found = leg(step)
    manners: list[tuple[str, View]] = [(key, long.get(key)) for key in ("mode", "only", "items") if long.has(key)]
    if manner.value is not None:
        manners.append(_manner(manner, step))
    for key, value in manners:
        _apply(key, value, step, found)
    return found


def _manner(view: View, step: Step) -> tuple[str, View]:
    text = view.text("how the step runs")
    if step["kind"] == "waves":
        return "items", view
    if text.startswith("only "):
        return "only", View(text[5:].replace(",", " ").split(), view.path, view.problems)
    return "mode", view


def _apply(key: str, value: View, step: Step, found: Leg) -> None:
    if key == "items" and step["kind"] == "waves":
        which: Any = value.choice("which items", ITEMS, "due")
        found["items"] = which
    elif key == "only" and step["kind"] == "cluster":
        found["only"] = value.words("a member", seat_ids(step))
    elif key == "mode" and step["kind"] == "agent":
        found["mode"] = value.text("the mode")
    elif value.value not in ("", []):
        value.note("contradiction", f"'{step['id']}' is a {step['kind']} step and has no {key}", "name the step alone")


def seat_ids(step: Step) -> list[str]:
    if step["kind"] != "cluster":
        return []
    first = [step["cluster"]["first"]] if step["cluster"]["first"] else []
    return [seat["id"] for seat in [*first, *step["cluster"]["members"]]]


def outputs(step: Step) -> list[str]:
    """What a step hands on as its findings."""
    if step["kind"] == "agent":
        return list(step["agent"]["out"])
    if step["kind"] == "cluster":
        seats = [step["aggregate"]] if step["aggregate"] else step["cluster"]["members"]
        return [path for seat in seats for path in seat["out"]]
    return []


# ---- reviews ------------------------------------------------------------


_SEVERITIES = ("LOW", "MEDIUM", "HIGH")


class Setting:
    """What a step inherits from its pipeline."""

    __slots__ = ("defaults", "given", "roles", "scope", "settings")

    def __init__(
        self,
        defaults: View,
        given: list[str],
        roles: Collection[str] | None,
        settings: Json,
        scope: Scope,
    ) -> None:
        self.defaults = defaults
        self.given = given
        self.roles = roles
        self.settings = settings
        self.scope = scope


def severity(view: View, setting: Setting) -> str:
    view.is_mapping(
        "a review",
        ("policy", "min_block_severity", "supplementary", "fix", "max_fix_attempts", "restart", "max_stage_restarts"),
    )
    stated = view.get("min_block_severity")
    return (stated if stated.value is not None else _policy(view, setting).get("minBlockSeverity")).choice(
        "the severity", _SEVERITIES, "LOW"
    )


def _policy(view: View, setting: Setting) -> View:
    name = view.get("policy").text("the policy")
    if not name:
        return View({}, view.path, view.problems)
    if name not in setting.settings:
        view.get("policy").note(
            "unknown-setting", f"there is no setting '{name}'", did_you_mean(name, setting.settings)
        )
    return View(setting.settings.get(name), ("settings", name), view.problems)


def threshold(view: View, setting: Setting) -> int:
    view.is_mapping("coverage", ("threshold", "back_to", "at_most", "then"))
    stated = view.get("threshold")
    if isinstance(stated.value, str):
        if stated.value not in setting.settings:
            stated.note(
                "unknown-setting", f"there is no setting '{stated.value}'", did_you_mean(stated.value, setting.settings)
            )
            return 0
        stated = View(setting.settings[stated.value], ("settings", stated.value), view.problems)
    if stated.value is None:
        view.note("missing", "coverage needs a threshold", "for example threshold: 90")
    return stated.number("the threshold", 0, most=100)


def implied(view: View, step: Step, setting: Setting) -> dict[str, View]:
    """The routes that `review`, `coverage` and `revise` stand for, in the language's own words."""
    found: dict[str, View] = {}
    value: dict[str, object]
    if step["kind"] == "gate" and view.get("gate").has("revise"):
        target = view.get("gate").get("revise")
        value = {
            "route": target.value if isinstance(target.value, list) else [target.value],
            "counter": f"{step['id']}.revise",
        }
        found["NEEDS_REVISION"] = View(value, target.path, view.problems)
    if step["kind"] != "agent":
        return found
    review, coverage = view.get("review"), view.get("coverage")
    if any(review.has(key) for key in ("fix", "restart", "supplementary")):
        found["NEEDS_REVISION"] = View(_review_route(review, step, setting), review.path, view.problems)
    if coverage.has("back_to"):
        value = {
            "route": [coverage.get("back_to").value],
            "at_most": coverage.get("at_most").value,
            "counter": f"{step['id']}.coverage",
            "then": coverage.get("then").value if coverage.has("then") else "block",
        }
        found["LOW_COVERAGE"] = View(value, coverage.path, view.problems)
    return found


def _review_route(review: View, step: Step, setting: Setting) -> dict[str, object]:
    """First a second opinion, then fixes, then the whole stage again, then a person."""
    policy = _policy(review, setting)

    def bound(own: str, theirs: str, default: int) -> int:
        stated = review.get(own) if review.has(own) else policy.get(theirs)
        return stated.number(own, default, most=1000)

    outcome: dict[str, object] = {"block": f"{step['name']} does not pass"}
    if review.has("restart"):
        bounded = bound("max_stage_restarts", "maxStageRestarts", 3)
        outcome = {"restart": review.get("restart").value, "at_most": bounded, "then": outcome}
    if review.has("fix"):
        bounded = bound("max_fix_attempts", "maxFixAttempts", 10)
        outcome = {
            "route": [review.get("fix").value, step["id"]],
            "at_most": bounded,
            "counter": f"{step['id']}.fix",
            "then": outcome,
        }
    if review.get("supplementary").choice("supplementary", ("on-issues", "never"), "never") == "on-issues":
        again = [{"step": step["id"], "mode": "supplementary"}]
        outcome = {"route": again, "at_most": 1, "counter": f"{step['id']}.supplementary", "then": outcome}
    return outcome
