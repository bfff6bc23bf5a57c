"""`tenuto plan`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenuto.entrypoints.cli.amounts import told
from tenuto.entrypoints.cli.driving import LIMIT_HELP, limits_of, switches_of
from tenuto.entrypoints.cli.frame import Answer, Command, open_here
from tenuto.entrypoints.cli.runs import has_journal
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, counted
from tenuto.errors import BadInput, NotFound

if TYPE_CHECKING:
    from tenuto.workspace.turn import Workspace

_RUNS = 50  # of the past, the latest
_ITEMS = 5


@click.command(
    "plan",
    cls=Command,
    examples=[
        ("tenuto plan", "the usual pipeline: its graph, the worst case, what it may cost"),
        ("tenuto plan 'Add dark mode' --pipeline ticket --items 8", "another one, for eight items"),
        ("tenuto plan --plan-file docs/feature/dark-mode/plan.md", "for the items of a plan that exists"),
    ],
)
@click.argument("request", required=False)
@click.option("--pipeline", default="", help="Which pipeline; eight-step unless the settings say otherwise.")
@click.option("--items", type=click.IntRange(0, 100_000), default=None, help=f"How many items; {_ITEMS} unless given.")
@click.option("--plan-file", default=None, metavar="FILE", help="Read the items from this plan.")
@click.option("--approval", is_flag=True, help="With the approval gates on.")
@click.option("--switch", multiple=True, metavar="NAME=on|off", help="Any other switch of the pipeline.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
def command(
    request: str | None, pipeline: str, items: int | None, plan_file: str | None, approval: bool, switch: tuple[str, ...],
    limit: tuple[str, ...],
) -> Answer:  # fmt: skip
    """What a run would do at most, and what it may cost, before anything starts.

    Nothing is started and nothing is written. A definition with problems is refused with every one of them, as FILE:LINE.
    """
    from tenuto.core.bounds import worst_case
    from tenuto.core.budget import limits_of as own_limits
    from tenuto.drivers.bound import define
    from tenuto.drivers.settings import read_settings, time_limit
    from tenuto.metrics.usual import forecast, history

    if items is not None and plan_file is not None:
        raise BadInput("bad-usage", "--items and --plan-file say the same thing twice", "give one of them")
    workspace = open_here()
    settings = read_settings(workspace.root)
    chosen = pipeline or settings.get("pipeline", "eight-step")
    definition = define(chosen, workspace.root)["pipeline"]
    switches = {**definition["switches"], **switches_of(approval, switch)}
    unknown = [name for name in switches if name not in definition["switches"]]
    if unknown:
        known = ", ".join(definition["switches"])
        raise BadInput("bad-switch", f"{chosen} has no switch {unknown[0]!r}", f"switches: {known}")
    read = _read(Path(plan_file)) if plan_file else None
    number = len(read["items"]) if read else _ITEMS if items is None else items
    bound = worst_case(definition, number, switches=switches)
    lost = worst_case(definition, number, losses=True, switches=switches)["attempts"] - bound["attempts"]
    past = history(_past(workspace), definition["name"])
    expected = forecast(definition, bound, past)
    limits = {**own_limits(definition)[0], **limits_of(limit).run}
    data = {
        "pipeline": definition, "request": request or "", "switches": switches, "plan": read, "worst_case": bound,
        "forecast": expected, "limits": limits, "lost": lost, "time_limit": time_limit(settings),
    }  # fmt: skip
    return Answer(data, _shown(data))


def _past(workspace: Workspace) -> Iterator[Any]:
    if not has_journal(workspace):
        return
    with workspace.journal.read() as reader:
        for card in reader.runs(limit=_RUNS):
            run = reader.load(card["id"])
            if run is not None:
                yield run


def _read(path: Path) -> dict[str, Any]:
    """The items, their waves, and what is odd about them; a plan that cannot be carried out is refused."""
    from tenuto.core.waves import arrange, shared_files
    from tenuto.knowledge.plans import read_plan

    if not path.is_file():
        raise NotFound("no-plan", f"there is no file {path}", "give the path of a plan")
    folder = path.parent / "tasks"
    files = {f"tasks/{one.name}": one.read_text("utf-8", "replace") for one in sorted(folder.glob("*.md"))}
    found = read_plan(path.read_text("utf-8", "replace"), files)["items"]
    if not found:
        raise BadInput("no-items", f"no item was found in {path}", "a plan lists its items, with ids and dependencies")
    arranged = arrange(found)
    notes = [
        f"{move['item']} cannot stay in wave {move['from_wave']}: it waits for {', '.join(move['because'])}, so wave {move['to_wave']}"
        for move in arranged["moves"]
    ]
    notes += [f"{', '.join(names)} change the same file in one wave: {file}" for file, names in shared_files(arranged["waves"], found)]
    return {"items": found, "waves": arranged["waves"], "notes": notes}


def _shown(data: Any) -> Iterator[Part]:
    from tenuto.entrypoints.cli.outline import outline

    pipeline, bound = data["pipeline"], data["worst_case"]
    yield Heading(f"{pipeline['name']}, at most {pipeline['cap']} agents at a time")
    if data["request"]:
        yield f"  for: {data['request'].splitlines()[0]}"
    yield ""
    yield from outline(pipeline, data["switches"])
    yield from _plan_shown(data["plan"])
    yield ""
    waves = any(step["kind"] == "waves" for step in pipeline["steps"])
    items = f" for {counted(bound['items'], 'item')}" if waves else ""
    yield Heading(f"At most {counted(bound['attempts'], 'attempt')} ({bound['starts']} starts){items}")
    yield Table(("STEP", "ATTEMPTS", "STARTS", "WHY"), [
        (line["step"], str(line["attempts"]), str(line["starts"]),
         ", ".join(f"{visit['because']} {visit['times']} x {visit['attempts']}" for visit in line["visits"]))
        for line in bound["steps"]
    ])  # fmt: skip
    yield "  until the run ends or waits for a person; a person's revise or retry begins anew"
    if data["lost"]:
        yield f"  and {data['lost']} more, if so many are lost (a power cut) and made again"
    yield f"  {_time_shown(pipeline, data['time_limit'])} (time_limit: in the pipeline, or in the settings)"
    yield from _cost_shown(data["forecast"])
    yield from _limits_shown(data)


def _time_shown(pipeline: Any, others: int | None) -> str:
    """`others`: for agents whose place in the pipeline says nothing."""
    from tenuto.core.definition.graph import seats

    own = {seat["time_limit"] for step in pipeline["steps"] for seat in seats(step)}
    limits = sorted(limit for limit in {*own, *([others] if None in own else [])} if limit)
    known = f"an attempt is ended after {', '.join(_span(limit) for limit in limits)}" if limits else ""
    endless = "an attempt may take as long as it takes" if None in own and others is None else ""
    return " or, elsewhere, ".join(filter(None, (known, endless)))


def _span(seconds: int) -> str:
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _plan_shown(read: Any) -> Iterator[Part]:
    if not read:
        return
    yield ""
    yield Heading(f"{counted(len(read['items']), 'item')} in {counted(len(read['waves']), 'wave')}")
    for number, wave in enumerate(read["waves"], 1):
        yield f"  {number}: {', '.join(wave)}"
    yield from (f"  note: {note}" for note in read["notes"])


def _cost_shown(expected: Any) -> Iterator[Part]:
    yield ""
    if not expected["runs"]:
        yield Heading("What it may cost")
        yield "  nothing is known yet: no earlier run in this repository"
        return
    yield Heading(f"What it may cost, from {counted(expected['attempts'], 'attempt')} of {counted(expected['runs'], 'earlier run')}")
    names = {"attempts": "attempts", "tokens": "tokens", "micro_usd": "money", "ms": "time of agents"}
    rows = []
    for unit, name in names.items():
        likely, worst = expected["likely"][unit], expected["worst"][unit]
        if likely is not None or worst is not None:
            rows.append((name, *(told(unit, amount) if amount is not None else "unknown" for amount in (likely, worst))))
    yield Table(("", "LIKELY", "WORST"), rows)
    if expected["unknown"]:
        yield f"  nothing is known about: {', '.join(expected['unknown'])}; the worst case leaves them out"


def _limits_shown(data: Any) -> Iterator[Part]:
    worst = {**data["forecast"]["worst"], "attempts": data["worst_case"]["attempts"]}
    for unit, limit in data["limits"].items():
        most = worst.get(unit)
        verdict = "" if most is None else ": the worst case fits" if most <= limit else ": the worst case would pause there"
        yield f"  limit of {told(unit, limit)}{verdict}"
