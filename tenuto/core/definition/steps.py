"""The five kinds of step: from shorthand to the full record, everything but `on`.

What a step is follows from the one key it has: agent, cluster, waves, gate or action.
`review`, `coverage` and a gate's `revise` are shorthand for routes; reviews.py spells them out.
"""

from __future__ import annotations

from tenuto.core.definition import paths, reviews, seats
from tenuto.core.definition.reviews import Setting
from tenuto.core.definition.seats import Terms
from tenuto.core.definition.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.pipeline_records import Budget, Seat, Step

KINDS = ("agent", "cluster", "waves", "gate", "action")
ACTIONS = (
    "write-request", "initialize-memory", "prune-memory", "extract-lessons", "invalidate-memory", "clean-memory",
    "choose-review-tier", "promote-memory", "record-debt", "check-graduation", "mark-graduated",
)  # fmt: skip
_COMMON = (
    "id", "name", "stage", "type", "number", "phase", "aside", "when", "kind", "rule", "before", "after", "on",
    "evidence_for_next", "budget",
)  # fmt: skip
_KEYS = {
    "agent": ("agent", "modes", "review", "coverage", *seats.INHERITED),
    "cluster": ("cluster", "aggregate", *seats.INHERITED),
    "waves": ("waves", "between", *seats.INHERITED),
    "gate": ("gate",),
    "action": ("action",),
}
_TYPES = {"agent": "subagent", "cluster": "dispatch", "waves": "dispatch", "gate": "gate", "action": "action"}
_BUDGET = (
    "attempts",
    "tokens",
    "wall_clock",
    "attempt_tokens",
    "money",
    "micro_usd",
    "attempt_money",
    "attempt_micro_usd",
)


def read(view: View, position: int, setting: Setting) -> Step | None:
    if not isinstance(view.value, dict):
        view.is_mapping("a step", _COMMON + KINDS)
        return None
    kinds = [kind for kind in KINDS if view.has(kind)]
    if len(kinds) != 1:
        found = f"has {' and '.join(kinds)}" if kinds else "does not say what runs"
        view.note("one-kind", f"the step {found}", f"give exactly one of: {', '.join(KINDS)}")
        return None
    kind = kinds[0]
    view.is_mapping(f"a step with {kind}", (*_COMMON, *_KEYS[kind]))
    step = _common(view, kind, position, setting)
    terms = Terms([view, setting.defaults], setting.roles, setting.given)
    seats.inspect(view)
    match kind:
        case "agent":
            _agent(view, step, terms, setting)
        case "cluster":
            _cluster(view, step, terms)
        case "waves":
            _waves(view, step, terms, setting)
        case "gate":
            _gate(view, step)
        case "action":
            step["action"] = view.get("action").words("an action", ACTIONS)
    checked: Step = step
    return checked


def _common(view: View, kind: str, position: int, setting: Setting) -> Any:
    if not view.has("id"):
        view.note("missing", "a step needs an id", "for example id: research")
    identity = seats.identifier(view.get("id"), "the id of a step", f"step-{position}")
    number = view.get("number").text("the number", str(position))
    digits = number[: len(number) - len(number.lstrip("0123456789"))]
    stated = view.get("kind").choice("the kind", KINDS, kind)
    if stated != kind:
        view.get("kind").note("contradiction", f"the step says kind: {stated} and has {kind}", "leave `kind` out")
    return {
        "id": identity,
        "name": view.get("name").text("the name", identity.replace("-", " ").replace("_", " ").capitalize()),
        "stage": view.get("stage").text("the stage"),
        "type": view.get("type").text("the type", _TYPES[kind]),
        "number": number,
        "phase": view.get("phase").number("the phase", int(digits) if digits and len(digits) < 9 else position),
        "aside": view.get("aside").flag("aside", False),
        "when": _when(view.get("gate").get("when") if view.get("gate").has("when") else view.get("when"), setting),
        "kind": kind,
        "rule": view.get("rule").choice("the rule", ("word",), "word") if kind not in ("agent", "cluster") else "word",
        "before": view.get("before").words("an action", ACTIONS),
        "after": view.get("after").words("an action", ACTIONS),
        "on": {},
        "evidence_for_next": paths.read(view.get("evidence_for_next"), "evidence"),
        "budget": budget(view.get("budget")),
    }


def _when(view: View, setting: Setting) -> str:
    known = ("always", *setting.switches)
    found = view.text("when", "always")
    if found not in known:
        view.note("unknown-switch", f"there is no switch '{found}'", did_you_mean(found, known))
    return found


def _strict(view: View, setting: Setting) -> bool | str:
    if not isinstance(view.value, str):
        return view.flag("strict", False)
    return _when(view, setting)


def budget(view: View) -> Budget:
    if view.value is not None:
        view.is_mapping("a budget", _BUDGET)
    return {
        "attempts": view.get("attempts").whole("attempts", None, least=1),
        "tokens": view.get("tokens").whole("tokens", None, least=1),
        "micro_usd": _money(view, "money", "micro_usd"),
        "wall_clock": view.get("wall_clock").seconds("the wall clock limit", None),
        "attempt_tokens": view.get("attempt_tokens").whole("tokens of an attempt", None, least=1),
        "attempt_micro_usd": _money(view, "attempt_money", "attempt_micro_usd"),
    }


def _money(view: View, dollars: str, micro: str) -> int | None:
    if view.has(dollars) and view.has(micro):
        view.get(dollars).note("contradiction", f"`{dollars}` and `{micro}` are both given", "keep one of them")
    return view.get(micro).whole(micro, None) if view.has(micro) else view.get(dollars).dollars(dollars, None)


# ---- agents ----------------------------------------------------------------------------------------


def _agent(view: View, step: Any, terms: Terms, setting: Setting) -> None:
    review, coverage = view.get("review"), view.get("coverage")
    default = "review" if review.value is not None else "word"
    step["rule"] = view.get("rule").choice("the rule", ("word", "audit", "review"), default)
    if (step["rule"] == "review") != (review.value is not None):
        view.get("rule").note("contradiction", "rule: review and `review` belong together", "give both, or neither")
    outcomes = view.get("on")
    terms.may_revise = step["rule"] != "word" or outcomes.has("NEEDS_REVISION") or outcomes.has("NOT_DONE")
    step["agent"] = seats.read(view.get("agent"), terms)
    step["modes"] = {}
    if view.has("modes") and not isinstance(view.get("modes").value, dict):
        view.get("modes").note("wrong-type", "modes must be a mapping", "for example {replan: {in: verifier.md}}")
    for name, mode in view.get("modes").fields():
        step["modes"][name] = _mode(mode, name, view.get("agent"), terms)
    step["review"] = None if review.value is None else {"min_block_severity": reviews.severity(review, setting)}
    step["coverage"] = None if coverage.value is None else {"threshold": reviews.threshold(coverage, setting)}


def _mode(view: View, name: str, plain: View, terms: Terms) -> Seat:
    """A mode says only what differs from the plain seat."""
    base = {"role": plain.value} if isinstance(plain.value, str) else plain.value
    changes = {"role": view.value} if isinstance(view.value, str) else {} if view.value is None else view.value
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return seats.read(view, terms)  # which says what is wrong with it
    merged = {**base, "mode": name, **changes}
    if "role" in changes and changes["role"] != base.get("role") and "mode" not in changes:
        merged["mode"] = ""
        merged.pop("id", None)
        merged.update({"id": changes["id"]} if "id" in changes else {})
    return seats.read(View(merged, view.path, view.problems), terms)


# ---- clusters --------------------------------------------------------------------------------------


def _cluster(view: View, step: Any, terms: Terms) -> None:
    cluster = view.get("cluster")
    if isinstance(cluster.value, list):
        cluster = View({"members": cluster.value}, cluster.path, cluster.problems)
    cluster.is_mapping("a cluster", ("first", "members", "quorum", *seats.INHERITED))
    seats.inspect(cluster)
    aggregate = view.get("aggregate")
    stated = aggregate.get("rule") if aggregate.has("rule") else view.get("rule")
    step["rule"] = stated.choice("the rule", ("quorum", "ct", "v", "r"), "quorum")
    inside = Terms([cluster, *terms.layers], terms.roles, terms.given, parallel=True)
    first = seats.read(cluster.get("first"), inside) if cluster.has("first") else None
    inside.may_revise = step["rule"] in ("v", "r")
    members = [seats.read(entry, inside) for entry in cluster.get("members").entries()]
    if not members:
        cluster.note("missing", "a cluster needs members", "for example members: [ct-security, ct-scalability]")
    quorum = cluster.get("quorum").number("the quorum", 0 if first else min(2, len(members)))
    if quorum > len(members):
        cluster.get("quorum").note("quorum-too-large", f"the quorum is {quorum} of {len(members)} members", "lower it")
    _distinct(cluster, [*([first] if first else []), *members])
    step["cluster"] = {"first": first, "members": members, "quorum": quorum}
    terms.may_revise = True
    step["aggregate"] = seats.read(aggregate, terms, ("rule",)) if aggregate.value is not None else None
    if aggregate.has("rule") and view.has("rule") and aggregate.get("rule").value != view.get("rule").value:
        view.get("rule").note("contradiction", "the step and its aggregate name different rules", "keep one of them")


def _distinct(view: View, found: list[Seat]) -> None:
    seen: list[str] = []
    for seat in found:
        if seat["id"] in seen:
            view.note("duplicate", f"two members are called '{seat['id']}'", "give one of them an id")
        seen.append(seat["id"])


# ---- waves -----------------------------------------------------------------------------------------

_WAVES = (
    "plan", "items", "roles", "seats", "per_item", "default", "never_stops", "order", "at_once", "on_item_error",
    "no_items", "max_items", "limits", "strict", "record", *seats.INHERITED,
)  # fmt: skip


def _waves(view: View, step: Any, terms: Terms, setting: Setting) -> None:
    waves = view.get("waves")
    waves.is_mapping("waves", _WAVES)
    seats.inspect(waves)
    named = waves.get("roles") if waves.has("roles") else waves.get("seats")
    if waves.has("roles") and waves.has("seats"):
        waves.get("roles").note("contradiction", "`roles` and `seats` are both given", "keep one of them")
    inside = Terms([waves, *terms.layers], terms.roles, terms.given, parallel=True, in_waves=True)
    found = [seats.read(entry, inside) for entry in named.entries()]
    if not found:
        waves.note("missing", "waves need roles", "for example roles: [implementer]")
    _distinct(waves, found)
    ids = [seat["id"] for seat in found]
    for name in waves.get("never_stops").words("a role", ids):
        found[ids.index(name)]["weight"] = "never-blocks"
    default = waves.get("default").text("the default", ids[0] if ids else "")
    if ids and default not in ids:
        waves.get("default").note(
            "unknown-member", f"the default '{default}' is none of the roles", did_you_mean(default, ids)
        )
    step["waves"] = {
        "plan": paths.read(waves.get("plan"), "a plan"), "items": paths.read_one(waves.get("items"), "the item files"),
        "seats": found, "default": default,
        "per_item": waves.get("per_item").choice("per_item", ("named", "in-turn", "side-by-side"), "named"),
        "order": waves.get("order").choice("the order", ("barrier", "rolling"), "barrier"),
        "at_once": waves.get("at_once").whole("at_once", None, least=1, most=1000),
        "on_item_error": waves.get("on_item_error").choice("on_item_error", ("stop", "skip-dependents"), "stop"),
        "no_items": waves.get("no_items").choice("no_items", ("refuse", "one"), "refuse"),
        "max_items": waves.get("max_items").whole("max_items", None, least=1),
        "limits": _limits(waves.get("limits")), "strict": _strict(waves.get("strict"), setting),
        "record": paths.read_one(waves.get("record"), "the record"),
    }  # fmt: skip
    step["between"] = view.get("between").words("an action", ACTIONS)


def _limits(view: View) -> dict[str, object]:
    if view.value is not None:
        view.is_mapping("the limits of an item", ("files", "depends_on", "lines", "effort"))
    return {
        "files": view.get("files").whole("files", None),
        "depends_on": view.get("depends_on").whole("depends_on", None),
        "lines": view.get("lines").whole("lines", None),
        "effort": view.get("effort").choice("the effort", ("", "Low", "Medium", "High"), ""),
    }


# ---- gates -----------------------------------------------------------------------------------------


def _gate(view: View, step: Any) -> None:
    gate = view.get("gate")
    gate.is_mapping("a gate", ("when", "name", "prompt", "show", "options", "revise"))
    if gate.has("when") and view.has("when"):
        gate.get("when").note("contradiction", "the step and its gate both say when", "keep one of them")
    can_revise = gate.has("revise") or view.get("on").has("NEEDS_REVISION")
    options = ("approve", "reject", "revise")
    stated = gate.get("options").words("an option", options)
    if "revise" in stated and not can_revise:
        gate.get("options").note(
            "contradiction", "the gate offers revise but not what is revised", "add revise: <step>"
        )
    if stated and ("approve" not in stated or "reject" not in stated):
        gate.get("options").note("contradiction", "a gate can always be approved and rejected", "leave `options` out")
    step["gate"] = {
        "name": gate.get("name").text("the name of a gate", step["id"]),
        "prompt": gate.get("prompt").text("the prompt", "Go on?"),
        "show": paths.read(gate.get("show"), "a document to show"),
        "options": [
            option for option in options if option != "revise" or (can_revise and (not stated or "revise" in stated))
        ],
    }
