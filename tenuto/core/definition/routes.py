"""What follows an outcome: from shorthand to the full record.

    halt | fail | pause | block                           the run comes to rest
    {go_on: planning, carry: constraints}                 forward, never back
    {route: [design, design-review], at_most: 1, then: …}  back, a bounded number of times
    {restart: PLAN, at_most: 3, then: block}              the whole stage again
    NOT_DONE: …                                           NEEDS_REVISION and ERROR, one counter

A route is written as far as its author likes and always ends with the step that takes it: what
lies between is filled in. So the step decides again, and a run can never be lost on a detour.
"""

from __future__ import annotations

from tenuto.core.definition import paths
from tenuto.core.definition.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.pipeline_records import Hop, Outcome, Step

PLAIN = ("DONE", "NEEDS_REVISION", "ERROR")
AUDIT = ("DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE")
ITEMS = ("due", "failing", "affected", "all")
_KEYS = {
    "go_on": ("do", "go_on", "to", "carry"),
    "route": (
        "do", "route", "restart", "at_most", "counter", "resets", "with", "because", "otherwise", "then",
    ),
    "pause": ("do", "pause", "reason", "recommendations"),
    "block": ("do", "block", "reason"),
    "fail": ("do", "fail", "halt", "reason"),
    "finish": ("do", "finish", "as"),
}  # fmt: skip
_WORDS = ("go_on", "route", "restart", "pause", "block", "fail", "halt", "finish")
_FINISHES = ("completed", "poc-complete", "graduated")


class Atlas:
    """Where every step lies. Steps are complete here except for their `on`."""

    __slots__ = ("by_id", "finish", "order", "steps")

    def __init__(self, steps: list[Step], finish: str) -> None:
        self.steps = steps
        self.finish = finish
        self.by_id = {step["id"]: step for step in steps}
        self.order = {step["id"]: index for index, step in enumerate(steps)}

    def after(self, step: Step) -> Step | None:
        return next((later for later in self.steps[self.order[step["id"]] + 1 :] if not later["aside"]), None)

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
    return (*PLAIN, *extra, *covered)


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
            word: Any = {"do": "finish", "as": _either(view, "as", "finish").choice("the end", _FINISHES, atlas.finish)}
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
    elif atlas.order[to] <= atlas.order[step["id"]]:
        target.note(
            "backward-go-on",
            f"'{to}' is not behind '{step['id']}': going back needs a bound",
            "use a route with at_most",
        )
    return {"do": "go_on", "to": to, "carry": view.get("carry").text("what is carried")}


def _route(view: View, step: Step, atlas: Atlas, counter: str) -> Outcome:
    stage = view.get("restart").text("the stage")
    hops = (
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
    if otherwise is not None and not because:
        view.get("otherwise").note("contradiction", "`otherwise` needs a `because`", "say which member it is about")
    outcome: Any = {
        "do": "route", "route": hops, "at_most": at_most, "counter": view.get("counter").text("the counter", default),
        "resets": view.get("resets").words("a counter"), "restart": stage,
        "with": paths.read(view.get("with"), "a finding") if view.has("with") else outputs(step),
        "because": because, "otherwise": own if because and otherwise is None else otherwise, "then": own,
    }  # fmt: skip
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


def _restart(view: View, step: Step, atlas: Atlas, stage: str) -> list[Hop]:
    steps = [other for other in atlas.steps if other["stage"] == stage and (not other["aside"] or other is step)]
    if stage != step["stage"]:
        hint = did_you_mean(stage, {other["stage"] for other in atlas.steps if other["stage"]})
        view.get("restart").note("unknown-stage", f"'{step['id']}' is not in a stage '{stage}'", hint)
        return []
    up_to = steps[: steps.index(step) + 1]
    return [hop(other, "all" if other["kind"] == "waves" else "") for other in up_to]


def _hops(view: View, step: Step, atlas: Atlas) -> list[Hop]:
    named = [(entry, known) for entry in view.entries() if (known := _hop(entry, atlas)) is not None]
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
        found += [hop(atlas.by_id[between]) for between in atlas.between(found[-1]["step"], step["id"])]
    return found


def hop(step: Step, items: str = "") -> Hop:
    which: Any = items or ("due" if step["kind"] == "waves" else "")
    return {"step": step["id"], "mode": "", "only": [], "items": which}


def _hop(view: View, atlas: Atlas) -> Hop | None:
    target, long, manner = view, View(None, view.path, view.problems), View(None, view.path, view.problems)
    if isinstance(view.value, dict):
        if "step" in view.value:
            view.is_mapping("a hop", ("step", "mode", "only", "items"))
            target, long = view.get("step"), view
        elif len(view.value) == 1 and view.fields():
            ((key, manner),) = view.fields()
            target = View(key, manner.path, view.problems)
        else:
            view.note("wrong-type", "a hop is a step, or one step with its manner", "for example {planning: replan}")
            return None
    name = target.text("a step")
    if name not in atlas.by_id:
        target.note("unknown-step", f"there is no step '{name}'", did_you_mean(name, atlas.by_id))
        return None
    step = atlas.by_id[name]
    found = hop(step)
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


def _apply(key: str, value: View, step: Step, found: Hop) -> None:
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
