"""`tenuto plan`: a pipeline as text (its steps, who works in each, what follows an outcome), its worst case and its
cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from tenuto.core.pipeline import each, ways
from tenuto.core.pipeline.conditions import ALWAYS, decided, in_words, why_not
from tenuto.entrypoints.cli.frame import Answer, Command, complete_pipeline, open_here
from tenuto.entrypoints.cli.run import LIMIT_HELP, PARAM_HELP, limits_of, params_of, switches_of
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted
from tenuto.errors import BadInput, NotFound
from tenuto.show.measures import amount
from tenuto.show.runs import checks_in_words, past_runs

if TYPE_CHECKING:
    from tenuto.core.pipeline.records import ActionStep, Bound, Outcome, Pipeline, PlannedChecks, Route, Seat, Step
    from tenuto.core.records.run import Leg, ParamValue, PlannedItem
    from tenuto.knowledge.plans import PlanLine, PlanWarning
    from tenuto.metrics import Forecast


class ReadPlan(TypedDict):
    """A plan that was given: its items, their waves, and what is odd about them."""

    items: list[PlannedItem]
    waves: list[list[str]]
    notes: list[str]


class ExplainedPlan(ReadPlan):
    """A plan line by line; what makes it impossible does not hide what was read."""

    file: str
    warnings: list[PlanWarning]
    lines: list[PlanLine]
    problem: str


class PlanData(TypedDict):
    pipeline: Pipeline
    request: str
    switches: dict[str, bool]
    params: dict[str, ParamValue] | None  # None: not all of them are given
    plan: ReadPlan | None
    worst_case: Bound
    forecast: Forecast
    limits: dict[str, int]
    lost: int  # attempts that may be lost and made again
    time_limit: int | None
    checks: PlannedChecks


_RUNS = 50  # of the past, the latest
_ITEMS = 5
_WIDTH = 100  # of a plan's line that is shown


@click.command(
    "plan",
    cls=Command,
    examples=[
        ("tenuto plan", "the usual pipeline: its graph, the worst case, what it may cost"),
        ("tenuto plan 'Add dark mode' --pipeline ticket --items 8", "another one, for eight items"),
        ("tenuto plan --plan-file docs/feature/dark-mode/plan.md", "for the items of a plan that exists"),
        ("tenuto plan --plan-file plan.md --explain", "line by line: what was read from that plan, and what was not"),
    ],
)
@click.argument("request", required=False)
@click.option(
    "--pipeline",
    default="",
    shell_complete=complete_pipeline,
    help="Which pipeline; eight-step unless the settings say otherwise.",
)
@click.option("--items", type=click.IntRange(0, 100_000), default=None, help=f"How many items; {_ITEMS} unless given.")
@click.option("--plan-file", default=None, metavar="FILE", help="Read the items from this plan.")
@click.option("--explain", is_flag=True, help="Only the plan of --plan-file, line by line: what was read from where.")
@click.option("--approval", is_flag=True, help="With the approval gates on.")
@click.option("--switch", multiple=True, metavar="NAME=on|off", help="Any other switch of the pipeline.")
@click.option("--param", multiple=True, metavar="NAME=VALUE", help=PARAM_HELP)
@click.option("--params-file", default=None, metavar="FILE", help="Parameters as a mapping, in YAML or JSON.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
def plan(
    request: str | None,
    pipeline: str,
    items: int | None,
    plan_file: str | None,
    explain: bool,
    approval: bool,
    switch: tuple[str, ...],
    param: tuple[str, ...],
    params_file: str | None,
    limit: tuple[str, ...],
) -> Answer:
    """What a run would do at most, and what it may cost, before anything starts.

    Nothing is started and nothing is written. A definition with problems is refused with every one of them, as
    FILE:LINE.
    """
    from tenuto.core.budget import limits_of as own_limits
    from tenuto.core.budget import worst_case
    from tenuto.core.pipeline.check import planned_checks
    from tenuto.engine.attempt import define
    from tenuto.metrics import forecast, history
    from tenuto.workspace.settings import read_settings, time_limit

    if items is not None and plan_file is not None:
        raise BadInput("bad-usage", "--items and --plan-file say the same thing twice", "give one of them")
    if explain:
        return _explain(plan_file)
    workspace = open_here()
    settings = read_settings(workspace.root)
    chosen = pipeline or settings.get("pipeline", "eight-step")
    given = params_of(workspace, chosen, param, params_file, ask=False)
    definition = define(chosen, workspace.root, given=given or None)["pipeline"]
    params = _params(workspace.root, definition, given)
    switches = _switched(definition, switches_of(approval, switch))
    read = _read(Path(plan_file)) if plan_file else None
    number = len(read["items"]) if read else _ITEMS if items is None else items
    bound = worst_case(definition, number, switches=switches, params=params)
    more = worst_case(definition, number, losses=True, switches=switches, params=params)
    past = history(past_runs(workspace, _RUNS), definition["name"])
    expected = forecast(definition, bound, past)
    asked = {unit: limit for unit, limit in limits_of(limit).run.items() if limit is not None}
    own = {unit: limit for unit, limit in own_limits(definition)[0].items() if limit is not None}
    data: PlanData = {
        "pipeline": definition,
        "request": request or "",
        "switches": switches,
        "params": params,
        "plan": read,
        "worst_case": bound,
        "forecast": expected,
        "limits": {**own, **asked},
        "lost": more["attempts"] - bound["attempts"],
        "time_limit": time_limit(settings),
        "checks": planned_checks(definition, settings.get("checks", {})),
    }
    return Answer(data, _shown(data, workspace.root))


def _switched(pipeline: Pipeline, given: dict[str, bool]) -> dict[str, bool]:
    unknown = [name for name in given if name not in pipeline["switches"]]
    if unknown:
        known = ", ".join(pipeline["switches"])
        raise BadInput("bad-switch", f"{pipeline['name']} has no switch {unknown[0]!r}", f"switches: {known}")
    return {**pipeline["switches"], **given}


def _read(path: Path) -> ReadPlan:
    """The items, their waves, and what is odd about them; a plan that cannot be carried out is refused."""
    from tenuto.knowledge.plans import read_plan

    text, files = _texts(path)
    found = read_plan(text, files, path.name)
    items = found["items"]
    if not items:
        raise BadInput("no-items", f"no item was found in {path}", "a plan lists its items, with ids and dependencies")
    waves, notes = _arranged(items)
    return {"items": items, "waves": waves, "notes": [*_messages(found["warnings"]), *notes]}


def _params(root: str, definition: Pipeline, given: dict[str, object]) -> dict[str, ParamValue] | None:
    """None: there are some that must be given, and nobody said any."""
    from tenuto.core.pipeline.params import missing, values
    from tenuto.engine.gates import refuse_no_files

    if not given and missing(definition["params"], {}):
        return None
    params = values(definition["name"], definition["params"], given)
    refuse_no_files(root, definition["params"], given, "--param")
    return params


def _explain(plan_file: str | None) -> Answer:
    if plan_file is None:
        raise BadInput("bad-usage", "--explain needs a plan", "add --plan-file FILE")
    explained = _line_by_line(Path(plan_file))
    return Answer(explained, _explained(explained), status=4 if explained["problem"] else 0)


def _line_by_line(path: Path) -> ExplainedPlan:
    from tenuto.core.items import PlanRefused
    from tenuto.knowledge.plans import explain_plan

    text, files = _texts(path)
    plan: ReadPlan = {"items": [], "waves": [], "notes": []}
    warnings: list[PlanWarning] = []
    lines: list[PlanLine] = []
    problem = ""
    try:
        found = explain_plan(text, files, path.name)
        lines, warnings, plan["items"] = found["lines"], found["plan"]["warnings"], found["plan"]["items"]
        plan["notes"] = _messages(warnings)
        plan["waves"], notes = _arranged(plan["items"])
        plan["notes"] += notes
    except PlanRefused as refused:
        problem = refused.message
    if not problem and not plan["items"]:
        problem = f"no item was found in {path}"
    return {**plan, "file": str(path), "warnings": warnings, "lines": lines, "problem": problem}


def _texts(path: Path) -> tuple[str, dict[str, str]]:
    """The plan, and the task files beside it."""
    if not path.is_file():
        raise NotFound("no-plan", f"there is no file {path}", "give the path of a plan")
    folder = path.parent / "tasks"
    files = {f"tasks/{one.name}": one.read_text("utf-8", "replace") for one in sorted(folder.glob("*.md"))}
    return path.read_text("utf-8", "replace"), files


def _messages(warnings: list[PlanWarning]) -> list[str]:
    """What _arranged does not say."""
    return [one["message"] for one in warnings if one["code"] not in ("shared-file", "no-items")]


def _arranged(items: list[PlannedItem]) -> tuple[list[list[str]], list[str]]:
    from tenuto.core.items import arrange, shared_files

    arranged = arrange(items)
    notes = [
        f"{move['item']} cannot stay in wave {move['from_wave']}: it waits for {', '.join(move['because'])}, so "
        f"wave {move['to_wave']}"
        for move in arranged["moves"]
    ]
    notes += [
        f"{', '.join(names)} change the same file in one wave: {file}"
        for file, names in shared_files(arranged["waves"], items)
    ]
    return arranged["waves"], notes


def _explained(shown: ExplainedPlan) -> Iterator[Part]:
    yield Heading(shown["file"])
    file = ""
    for line in shown["lines"]:
        if line["file"] != file:
            file = line["file"]
            yield ""
            yield Heading(file)
        text = line["text"] if len(line["text"]) <= _WIDTH else f"{line['text'][: _WIDTH - 3]}..."
        yield f"{line['line']:>5}  {text}"
        yield from (f"         = {fact}" for fact in line["read"])
        if line["ignored"]:
            yield f"         - {line['ignored']}"
    yield from _plan_shown(shown)
    if shown["problem"]:
        yield ""
        yield f"this plan cannot be carried out: {shown['problem']}"


def _shown(data: PlanData, root: str) -> Iterator[Part]:
    pipeline, bound = data["pipeline"], data["worst_case"]
    yield Heading(f"{pipeline['name']}, at most {pipeline['cap']} agents at a time")
    if data["request"]:
        yield f"  for: {data['request'].splitlines()[0]}"
    yield ""
    yield from outline(pipeline, data["switches"], data["params"])
    yield from _plan_shown(data["plan"])
    yield ""
    waves = any(step["kind"] == "waves" and not step["waves"]["each"] for step in pipeline["steps"])
    items = f" for {counted(bound['items'], 'item')}" if waves else ""
    yield Heading(f"At most {counted(bound['attempts'], 'attempt')} ({bound['starts']} starts){items}")
    yield Table(
        ("STEP", "ATTEMPTS", "STARTS", "WHY"),
        [
            (
                line["step"],
                str(line["attempts"]),
                str(line["starts"]),
                ", ".join(f"{visit['because']} {visit['times']} x {visit['attempts']}" for visit in line["visits"]),
            )
            for line in bound["steps"]
        ],
    )
    yield "  until the run ends or waits for a person; a person's revise or retry begins anew"
    if data["lost"]:
        yield f"  and {data['lost']} more, if so many are lost (a power cut) and made again"
    yield f"  {_time_shown(pipeline, data['time_limit'])} (time_limit: in the pipeline, or in the settings)"
    yield from (f"  {line}" for line in _checks_shown(data["checks"], root))
    yield from _cost_shown(data["forecast"])
    yield from _limits_shown(data)


def _time_shown(pipeline: Pipeline, others: int | None) -> str:
    """`others`: for agents whose place in the pipeline says nothing."""
    from tenuto.core.pipeline.check import seats

    own = {seat["time_limit"] for step in pipeline["steps"] for seat in seats(step)}
    limits = sorted(limit for limit in {*own, *([others] if None in own else [])} if limit)
    known = f"an attempt is ended after {', '.join(_span(limit) for limit in limits)}" if limits else ""
    endless = "an attempt may take as long as it takes" if None in own and others is None else ""
    return " or, elsewhere, ".join(filter(None, (known, endless)))


def _checks_shown(checks: PlannedChecks, root: str) -> Iterator[str]:
    if checks["commands"] and not checks["left_out"]:
        yield f"checks: {', '.join(checks['commands'])}"
    yield from checks_in_words(checks, root)


def _span(seconds: int) -> str:
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _plan_shown(read: ReadPlan | None) -> Iterator[Part]:
    if not read:
        return
    yield ""
    yield Heading(f"{counted(len(read['items']), 'item')} in {counted(len(read['waves']), 'wave')}")
    for number, wave in enumerate(read["waves"], 1):
        yield f"  {number}: {', '.join(wave)}"
    yield from (f"  note: {note}" for note in read["notes"])


def _cost_shown(expected: Forecast) -> Iterator[Part]:
    yield ""
    if not expected["runs"]:
        yield Heading("What it may cost")
        yield "  nothing is known yet: no earlier run in this repository"
        return
    yield Heading(
        f"What it may cost, from {counted(expected['attempts'], 'attempt')} of "
        f"{counted(expected['runs'], 'earlier run')}"
    )
    names = {"attempts": "attempts", "tokens": "tokens", "micro_usd": "money", "ms": "time of agents"}
    rows = []
    for unit, name in names.items():
        likely, worst = expected["likely"][unit], expected["worst"][unit]
        if likely is not None or worst is not None:
            rows.append(
                (name, *(amount(unit, figure) if figure is not None else "unknown" for figure in (likely, worst)))
            )
    yield Table(("", "LIKELY", "WORST"), rows)
    if expected["unknown"]:
        yield f"  nothing is known about: {', '.join(expected['unknown'])}; the worst case leaves them out"


def _limits_shown(data: PlanData) -> Iterator[Part]:
    worst = {**data["forecast"]["worst"], "attempts": data["worst_case"]["attempts"]}
    for unit, limit in data["limits"].items():
        most = worst.get(unit)
        verdict = (
            "" if most is None else ": the worst case fits" if most <= limit else ": the worst case would pause there"
        )
        yield f"  limit of {amount(unit, limit)}{verdict}"


# ---- the pipeline as text


def outline(
    pipeline: Pipeline, switches: Mapping[str, bool] | None, params: Mapping[str, ParamValue] | None = None
) -> Iterator[str]:
    """`switches` None: neither they nor the parameters are decided yet, and both ways are shown."""
    on = None if switches is None else {**pipeline["switches"], **switches}
    width = max(len(step["id"]) for step in pipeline["steps"])
    following = {one["id"]: two["id"] for one, two in zip(pipeline["steps"], pipeline["steps"][1:], strict=False)}
    for step in pipeline["steps"]:
        answer = decided(step["when"], on, params)
        off = answer is False
        mark = "-" if off else "?" if step["kind"] == "gate" else "o"
        aside = "  (only by a route)" if step["aside"] else ""
        maybe = "left out: " if off else "" if answer else "only where "
        words = why_not(step["when"]) if off else "" if answer else in_words(step["when"])
        skipped = f"  ({maybe}{words})" if words else ""
        yield f"  {mark} {step['id']:<{width}}  {_what(step)}{skipped}{aside}"
        if off:
            continue
        margin = f"  |   {'':<{width}}"
        for line in (*_acts(step), *_limits(step)):
            yield f"{margin}{line}"
        for words, outcome in _outcomes(step, following.get(step["id"])):
            first, *rest = follows(outcome)
            yield f"{margin}{words}: {first}"
            yield from (f"{margin}    {line}" for line in rest)


def _outcomes(step: Step, following: str | None) -> Iterator[tuple[str, Outcome]]:
    """Outcomes that lead to the same thing in one line; not the plain way on, and nothing that cannot come of this
    step.
    """
    same: dict[str, tuple[list[str], Outcome]] = {}
    for name, outcome in step["on"].items():
        if name == "DONE" and outcome["do"] == "go_on" and outcome["to"] == following:
            continue
        if name == "DONE" or step["kind"] != "action":
            same.setdefault("\n".join(follows(outcome)), ([], outcome))[0].append(name)
    for names, outcome in same.values():
        yield ", ".join(names), outcome


def _what(step: Step) -> str:
    match step["kind"]:
        case "agent":
            modes = f" (modes: {', '.join(step['modes'])})" if step["modes"] else ""
            return f"{_seat(step['agent'])}{modes}{_writes(step['agent'])}"
        case "cluster":
            cluster = step["cluster"]
            first = f"{_seat(cluster['first'])}, then " if cluster["first"] else ""
            last = f", then {_seat(step['aggregate'])}{_writes(step['aggregate'])}" if step["aggregate"] else ""
            quorum = f" (quorum {cluster['quorum']})" if cluster["quorum"] else ""
            return f"{first}{_side_by_side(cluster['members'])}{quorum}{last}"
        case "waves":
            waves = step["waves"]
            order = "in rolling order" if waves["order"] == "rolling" else "in waves"
            who = ", ".join(_seat(seat) for seat in waves["seats"])
            if waves["each"]:
                return f"{each.in_words(waves['each'])} (at most {waves['each']['max']}) {order}: {who}"
            return f"items of {', '.join(waves['plan'])} {order}: {who}"
        case "gate":
            return f"a person decides: {step['gate']['prompt']}"
        case _:
            return f"the engine: {', '.join(step['action'])}" if step["action"] else _mark(step)


def _mark(step: ActionStep) -> str:
    """A step without anything to do: it stands before a sub-pipeline, or behind it."""
    return f"the pipeline {step['ends']} ends here" if step.get("ends") else "a sub-pipeline begins here"


def _seat(seat: Seat) -> str:
    if seat["command"]:
        return f"runs {' '.join(seat['command']['run'])}"
    words = [word for word in (seat["mode"], seat["focus"]) if word]
    weight = {"blocking": " [blocks]", "never-blocks": " [never blocks]"}.get(seat["weight"], "")
    return f"{seat['role']}{_bracketed(words)}{weight}"


def _bracketed(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _side_by_side(members: list[Seat]) -> str:
    roles = {member["role"] for member in members}
    if len(roles) == 1 and len(members) > 1 and not any(_only_where(member) for member in members):
        focuses = ", ".join(member["focus"] or member["id"] for member in members)
        return f"{len(members)} x {members[0]['role']} ({focuses})"
    return " | ".join(f"{_seat(member)}{_only_where(member)}" for member in members)


def _only_where(member: Seat) -> str:
    return "" if member["when"] == ALWAYS else f" (only where {in_words(member['when'])})"


def _writes(seat: Seat) -> str:
    return f" -> {', '.join(seat['out'])}" if seat["out"] else ""


def _acts(step: Step) -> Iterator[str]:
    between = step["between"] if step["kind"] == "waves" else []
    for when, actions in (("before", step["before"]), ("between", between), ("after", step["after"])):
        if actions:
            yield f"{when}: {', '.join(actions)}"


def _limits(step: Step) -> Iterator[str]:
    given = [f"{amount} {unit}" for unit, amount in step["budget"].items() if amount is not None]
    if given:
        yield f"at most {', '.join(given)}"


def follows(outcome: Outcome | None) -> list[str]:
    """What follows, and in lines of their own what follows when that is used up."""
    if outcome is None:
        return ["nothing"]
    match outcome["do"]:
        case "go_on":
            carried = f", findings as {outcome['carry']}" if outcome["carry"] else ""
            return [f"on to {outcome['to']}{carried}"]
        case "route":
            return _route(outcome)
        case "finish":
            return [f"the run is {outcome['as']}"]
        case "pause":
            return [_with_reason("pause for a person", outcome["reason"])]
        case "block":
            return [_with_reason("blocked", outcome["reason"])]
        case _:
            return [_with_reason("the run fails", outcome["reason"])]


def _with_reason(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def _route(route: Route) -> list[str]:
    legs = " > ".join(_leg(leg) for leg in route["route"])
    bound = ways.in_words(route)
    because = f"{bound}: " if bound else ""
    if route["at_most"] is None:
        return [f"{because}back to {legs}, as often as a person asks"]
    lines = [f"{because}back to {legs}, at most {route['at_most']} x"]
    beyond = follows(route["then"])
    otherwise = follows(route["otherwise"]) if bound and route["otherwise"] else beyond
    others = "because of others" if bound == f"because of {route['because']}" else "otherwise"
    if bound and otherwise == beyond:
        return [*lines, f"then, or {others}: {beyond[0]}", *beyond[1:]]
    lines += [f"then {beyond[0]}", *beyond[1:]]
    return lines + ([f"{others}: {otherwise[0]}", *otherwise[1:]] if bound else [])


def _leg(leg: Leg) -> str:
    words = [*([leg["mode"]] if leg["mode"] else []), *(f"only {name}" for name in leg["only"])]
    words += [f"{leg['items']} items"] if leg["items"] and leg["items"] != "due" else []
    return f"{leg['step']}{_bracketed(words)}"
