"""Steps with several seats: clusters, waves, and a step for every element of a list, which is waves.

`READERS` is handed to `steps.read_step`: this module reads seats by what is there.
"""

from __future__ import annotations

from tenuto.core.pipeline import conditions, each, values
from tenuto.core.pipeline.routes import Setting
from tenuto.core.pipeline.steps import ACTIONS, INHERITED, Terms, inspect, read_seat
from tenuto.core.pipeline.values import View, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.core.pipeline.records import Each, Seat
    from tenuto.core.pipeline.steps import Reader
    from tenuto.core.records.run import Json

PER_ITEM = ("named", "in-turn", "side-by-side", "cluster")
ON_ITEM_ERROR = ("stop", "skip-dependents", "halt")
_EACH = ("cap", "order", "on_error", "quorum", "record")


def _strict(view: View, setting: Setting) -> bool | str:
    if not isinstance(view.value, str):
        return view.flag("strict", False)
    return conditions.switch(view, setting.scope)


# ---- clusters --------------------------------------------------------------------------------------


def _cluster(view: View, seat: View | None, step: Json, terms: Terms, setting: Setting) -> None:
    cluster = view.get("cluster")
    if isinstance(cluster.value, list):
        cluster = View({"members": cluster.value}, cluster.path, cluster.problems)
    cluster.is_mapping("a cluster", ("first", "members", "quorum", *INHERITED))
    inspect(cluster)
    aggregate = view.get("aggregate")
    stated = aggregate.get("rule") if aggregate.has("rule") else view.get("rule")
    step["rule"] = stated.choice("the rule", ("quorum", "ct", "v", "r"), "quorum")
    inside = Terms(
        [cluster, *terms.layers], terms.roles, terms.given, parallel=True, in_waves=terms.in_waves, each=terms.each
    )
    inside.scope = None if terms.in_waves else setting.scope
    first = read_seat(cluster.get("first"), inside) if cluster.has("first") else None
    inside.may_revise = step["rule"] in ("v", "r")
    members = [read_seat(entry, inside) for entry in cluster.get("members").entries()]
    if not members:
        cluster.note("missing", "a cluster needs members", "for example members: [ct-security, ct-scalability]")
    quorum = cluster.get("quorum").number("the quorum", 0 if first else min(2, len(members)))
    if quorum > len(members):
        cluster.get("quorum").note("quorum-too-large", f"the quorum is {quorum} of {len(members)} members", "lower it")
    _distinct(cluster, [*([first] if first else []), *members])
    step["cluster"] = {"first": first, "members": members, "quorum": quorum}
    terms.may_revise = True
    step["aggregate"] = read_seat(aggregate, terms, ("rule",)) if aggregate.value is not None else None
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
    "plan",
    "each",
    "cluster",
    "quorum",
    "items",
    "roles",
    "seats",
    "per_item",
    "default",
    "never_stops",
    "order",
    "at_once",
    "on_item_error",
    "no_items",
    "max_items",
    "limits",
    "strict",
    "record",
    *INHERITED,
)


def _waves(view: View, seat: View | None, step: Json, terms: Terms, setting: Setting) -> None:
    waves = view.get("waves")
    waves.is_mapping("waves", _WAVES)
    inspect(waves)
    named = waves.get("roles") if waves.has("roles") else waves.get("seats")
    if waves.has("roles") and waves.has("seats"):
        waves.get("roles").note("contradiction", "`roles` and `seats` are both given", "keep one of them")
    own = _list(waves.get("each"), step, terms, setting) if waves.has("each") else None
    if own and (waves.has("plan") or waves.has("items")) and (waves.get("plan").value or waves.get("items").value):
        waves.get("each").note("contradiction", "`each` and a plan are both given", "keep one of them")
    inside = Terms([waves, *terms.layers], terms.roles, terms.given, parallel=True, in_waves=True, each=own)
    found = [read_seat(entry, inside) for entry in named.entries()]
    if not found:
        waves.note("missing", "waves need roles", "for example roles: [implementer]")
    _distinct(waves, [*([own["seat"]] if own and own["seat"] else []), *found])
    ids = [seat["id"] for seat in found]
    for name in waves.get("never_stops").words("a role", ids):
        found[ids.index(name)]["weight"] = "never-blocks"
    default = waves.get("default").text("the default", ids[0] if ids else "")
    if ids and default not in ids:
        waves.get("default").note(
            "unknown-member", f"the default '{default}' is none of the roles", did_you_mean(default, ids)
        )
    per_item = waves.get("per_item").choice("per_item", PER_ITEM, "cluster" if waves.has("cluster") else "named")
    step["waves"] = {
        "plan": values.read(waves.get("plan"), "a plan"),
        "each": own,
        "items": values.read_one(waves.get("items"), "the item files"),
        "seats": found,
        "default": default,
        "per_item": per_item,
        "cluster": _team(waves.get("cluster"), ids) if per_item == "cluster" else None,
        "order": waves.get("order").choice("the order", ("barrier", "rolling"), "barrier"),
        "at_once": waves.get("at_once").whole("at_once", None, least=1, most=1000),
        "on_item_error": waves.get("on_item_error").choice("on_item_error", ON_ITEM_ERROR, "stop"),
        "quorum": _share(waves.get("quorum")),
        "no_items": waves.get("no_items").choice("no_items", ("refuse", "one"), "refuse"),
        "max_items": waves.get("max_items").whole("max_items", None, least=1),
        "limits": _limits(waves.get("limits")),
        "strict": _strict(waves.get("strict"), setting),
        "record": values.read_one(waves.get("record"), "the record"),
    }
    step["between"] = view.get("between").words("an action", ACTIONS)


def _each(view: View, seat: View | None, step: Json, terms: Terms, setting: Setting) -> None:
    """An agent, a command or several in turn (`seat`), or a cluster (None), for every element of a list: waves, whose
    items these are."""
    listed = view.get("each")
    if not listed.is_mapping("each", (*each.KEYS, *_EACH)):
        return
    words: Json = listed.value  # type: ignore[assignment]  # it is a mapping
    how = listed.at_same({key: value for key, value in words.items() if key in _EACH})
    own = _list(listed.at_same({key: words[key] for key in words if key in each.KEYS}), step, terms, setting)
    about_files = bool(own["files"] or own["files_of"])
    layers = terms.layers if about_files else [*terms.layers, view.at_same({"touches": []})]
    inside = Terms(layers, terms.roles, terms.given, parallel=True, in_waves=True, each=own)
    inside.may_revise = view.get("on").has("NEEDS_REVISION") or view.get("on").has("NOT_DONE")
    team: Json | None = None
    if seat is not None:
        found = [read_seat(entry, inside) for entry in seat.entries()] or [read_seat(seat, inside)]
    else:
        made: Json = {}
        _cluster(view, None, made, inside, setting)
        first, last = made["cluster"]["first"], made["aggregate"]
        found = [*([first] if first else []), *made["cluster"]["members"], *([last] if last else [])]
        team = {"first": first["id"] if first else "", "aggregate": last["id"] if last else ""}
        team |= {"quorum": made["cluster"]["quorum"], "rule": made["rule"]}
    _distinct(listed, [*([own["seat"]] if own["seat"] else []), *found])
    for one in found:
        if 2 * len(step["id"].encode()) + len(one["id"].encode()) > each.LONGEST_NAMES:
            message = f"the names '{step['id']}' and '{one['id']}' are too long to stand before a key"
            view.get("id").note("bad-id", message, "give the step, or the agent, a shorter id")
    errors = {"go_on": "skip-dependents", "stop": "halt"}
    step["waves"] = {
        "plan": [],
        "each": own,
        "items": "",
        "seats": found,
        "default": found[0]["id"],
        "per_item": "cluster" if team else "in-turn" if view.has("in_turn") else "named",
        "cluster": team,
        "order": how.get("order").choice("the order", ("barrier", "rolling"), "rolling"),
        "at_once": how.get("cap").whole("the cap", None, least=1, most=1000),
        "on_item_error": errors[how.get("on_error").choice("on_error", tuple(errors), "go_on")],
        "quorum": _share(how.get("quorum")),
        "no_items": "refuse",
        "max_items": None,
        "limits": _limits(view.at_same(None)),
        "strict": False,
        "record": values.read_one(how.get("record"), "the record"),
    }
    step["between"] = view.get("between").words("an action", ACTIONS)


def _list(view: View, step: Json, terms: Terms, setting: Setting) -> Each:
    """Where the elements come from, and who prints them where a command does."""
    if not view.is_mapping("each", each.KEYS):
        view = view.at_same({"param": "?"})
        view.problems = []  # noted once; what follows from it is noise
    found, lines = each.read(view, setting.scope), view.get("lines")
    if isinstance(lines.value, list | dict):
        raw = lines.value if isinstance(lines.value, dict) else {"run": lines.value}
        printed = f"{step['id'].replace(':', '-')}.list.txt"
        command = {**raw, "stdout": raw.get("stdout") or printed}
        lister = view.at_same({"id": "list", "command": command, "touches": [], "checks": [], "verdicts": None})
        found["seat"] = read_seat(lister, Terms(terms.layers, terms.roles, []))
    elif view.get("seat").value is not None:
        found["seat"] = read_seat(view.get("seat"), Terms([], terms.roles, []))
    else:
        found["lines"] = values.read_one(lines, "the document with the lines")
    if found["seat"] and found["seat"]["command"]:
        found["lines"] = found["seat"]["command"]["stdout"]
    return found


def _team(view: View, ids: list[str]) -> Json:
    """How the seats of an item work together."""
    view.is_mapping("how the seats of an item work together", ("first", "aggregate", "quorum", "rule"))
    team: Json = {key: view.get(key).text(f"the {key}") for key in ("first", "aggregate")}
    for key, name in team.items():
        if name and name not in ids:
            view.get(key).note("unknown-member", f"'{name}' is none of the roles", did_you_mean(name, ids))
    members = [name for name in ids if name not in team.values()]
    quorum = view.get("quorum").number("the quorum", 0 if team["first"] else min(2, len(members)))
    if quorum > len(members):
        view.get("quorum").note("quorum-too-large", f"the quorum is {quorum} of {len(members)} members", "lower it")
    rule = view.get("rule").choice("the rule", ("quorum", "ct", "v", "r"), "quorum")
    return {**team, "quorum": quorum, "rule": rule}


def _share(view: View) -> int | str:
    """3, 80%, or nothing at all: every item must end well."""
    if not isinstance(view.value, str):
        return view.whole("the quorum", None, least=1) or ""
    number = view.value.removesuffix("%")
    if view.value == "" or (view.value != number and number.isascii() and number.isdigit() and 1 <= int(number) <= 100):
        return view.value
    view.note("wrong-value", f"the quorum cannot be '{view.value}'", "a whole number, or a share like 80%")
    return ""


def _limits(view: View) -> dict[str, object]:
    if view.value is not None:
        view.is_mapping("the limits of an item", ("files", "depends_on", "lines", "effort"))
    return {
        "files": view.get("files").whole("files", None),
        "depends_on": view.get("depends_on").whole("depends_on", None),
        "lines": view.get("lines").whole("lines", None),
        "effort": view.get("effort").choice("the effort", ("", "Low", "Medium", "High"), ""),
    }


READERS: dict[str, Reader] = {"cluster": _cluster, "waves": _waves, "each": _each}
