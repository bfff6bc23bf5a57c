"""`tenuto show`, `list`, `artifacts`, `history`, `memory`: what is recorded of runs and of the project.

`tenuto status`; and how every command that ends with a run says where the run stands then.

`tenuto metrics`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypedDict

import click

from tenuto.core.pipeline.params import as_text, describe
from tenuto.core.status import BADLY, FAILED_IN_PART, UNDER_WAY
from tenuto.encoding import dumps, pretty
from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    complete_artifact,
    load,
    open_existing,
    open_here,
    run_argument,
)
from tenuto.entrypoints.cli.terminal import Heading, Part, Table, say, when
from tenuto.errors import BadInput, NotFound
from tenuto.show import runs
from tenuto.show.inbox import driven_view, listed
from tenuto.show.measures import Measures, amount, amounts, measures, span
from tenuto.show.runs import cap_of, checks_for, checks_in_words, gone_on_from, left_out
from tenuto.show.runs import look as look_at
from tenuto.show.views import RunView, is_in_flight, run_view
from tenuto.show.waiting import set_words

if TYPE_CHECKING:
    from tenuto.core.records.run import Memory, Run, Waiting
    from tenuto.metrics import Span
    from tenuto.show.inbox import DrivenRun, DrivenView
    from tenuto.workspace.workspace import Workspace


_ENVELOPE = ("type", "v", "at", "by")


@click.command(
    "show",
    cls=Command,
    examples=[
        ("tenuto show dark-mode", "every event of a run, as it is stored"),
        ("tenuto show dark-mode --since 40 --json", "what came after event 40, for a script"),
        ("tenuto show --sha256 HASH > old-plan.md", "a file as it was, by the hash that an event names"),
    ],
)
@run_argument
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="N", help="Only events after number N.")
@click.option("--sha256", metavar="HASH", help="Print the stored file that has this hash.")
def show(run: str | None, since: int, sha256: str | None) -> Answer:
    """The events of a run, or any stored version of a file."""
    workspace = open_existing()
    if sha256 is not None:
        return _version(workspace, sha256)
    recorded = runs.recorded(workspace, runs.chosen(workspace, run), since)
    return Answer(recorded, _event_parts(recorded))


def _event_parts(recorded: runs.Recorded) -> Iterator[Part]:
    for entry in recorded["events"]:
        event = entry["event"]
        yield Heading(f"{entry['seq']}  {event['type']}  {event['at']}  by {event['by']}")
        for field, value in event.items():
            if field not in _ENVELOPE and value not in (None, "", [], {}):
                yield f"    {field}: {value if isinstance(value, str) else dumps(value)}"


def _version(workspace: Workspace, sha: str) -> Answer:
    from tenuto.workspace.objects import stored_version

    body = stored_version(workspace, sha)
    data: dict[str, object] = {"sha256": sha, "size": len(body)}
    try:
        data["text"] = body.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        data["base64"] = b64encode(body).decode()
    return Answer(data, raw=body)


@click.command(
    "list",
    cls=Command,
    examples=[
        ("tenuto list", "every run, newest first"),
        ("tenuto list --status waiting_gate", "those that wait for somebody's decision"),
        ("tenuto list --json --limit 1", "the newest, for a script"),
    ],
)
@click.option("--status", multiple=True, metavar="STATUS", help="Only runs in this status; may be given again.")
@click.option("--dialect", default="", metavar="NAME", help="Only runs shown in this dialect's files.")
@click.option("--limit", type=click.IntRange(min=0), default=0, metavar="N", help="At most so many; 0 means all.")
def list_runs(status: tuple[str, ...], dialect: str, limit: int) -> Answer:
    """Runs, newest first."""
    workspace = open_here()
    shown = listed(workspace, status, dialect, limit)
    if not shown:
        say("no runs here" if not (status or dialect) else "no such runs here")
        return Answer({"runs": []})
    rows = [
        (
            one["id"],
            stands_as(one["status"], one["driven"]),
            one["position"] or "-",
            cost_of(one),
            when(one["updated_at"]),
            one["summary"] or one["name"],
        )
        for one in shown
    ]
    return Answer({"runs": shown}, [Table(("RUN", "STATUS", "STEP", "COST", "UPDATED", "SUMMARY"), rows)])


def stands_as(status: str, driven: DrivenView) -> str:
    """A status that says that work goes on is true only where somebody does it."""
    return f"{status}, nobody drives" if status in UNDER_WAY and driven["by"] == "nobody" else status


def cost_of(one: DrivenRun) -> str:
    """What its agents have reported; nothing where none has."""
    known = one["figures"]["micro_usd"] if "figures" in one else None
    return amount("micro_usd", known) if known is not None else "-"


@click.command(
    "artifacts",
    cls=Command,
    examples=[
        ("tenuto artifacts", "what the current run has made: name, path, hash, step, attempt"),
        ("tenuto artifacts dark-mode --cat design.md", "one of them, as its attempt delivered it"),
    ],
)
@run_argument
@click.option(
    "--cat",
    "name",
    default=None,
    metavar="NAME",
    shell_complete=complete_artifact,
    help="Print this one, by its name or its path.",
)
def artifacts(run: str | None, name: str | None) -> Answer:
    """What a run has made, and which attempt made it."""
    workspace = open_existing()
    record = load(workspace, run)
    if name is not None:
        return _cat(workspace, record, name)
    view = run_view(record)
    rows = [
        (one["name"], one["path"], one["sha256"][:12], str(one["size"]), one["step"] or "-", one["by"])
        for one in view["artifacts"]
    ]
    parts: list[Part] = (
        [Table(("NAME", "PATH", "SHA256", "SIZE", "STEP", "BY"), rows)]
        if rows
        else [f"{view['run']} has made nothing yet"]
    )
    return Answer({"run": view["run"], "artifacts": runs.artifacts_of(record)}, parts)


def _cat(workspace: Workspace, run: Run, wanted: str) -> Answer:
    view, artifact, body = runs.find_artifact(workspace, run, wanted)
    return Answer({"name": view["name"], **artifact, "text": body.decode("utf-8", "replace")}, raw=body)


@click.command(
    "history",
    cls=Command,
    examples=[
        ("tenuto history", "the current run, from its start"),
        ("tenuto history dark-mode --last 10", "the ten latest events of another run"),
    ],
)
@run_argument
@click.option(
    "--last", type=click.IntRange(min=0), default=0, metavar="N", help="Only the latest so many; 0 means all."
)
def history(run: str | None, last: int) -> Answer:
    """What happened in a run, when, by whom."""
    workspace = open_existing()
    name = runs.chosen(workspace, run)
    lines = runs.history(workspace, name)[-last:]
    rows = [(when(line["at"]), line["by"], line["text"]) for line in lines]
    return Answer({"run": name, "history": lines}, [Table(("WHEN", "BY", "WHAT"), rows)])


class Remembered(TypedDict):
    run: str | None
    memory: Memory | None
    project: dict[str, str]


_KINDS = ("decision", "pattern")
_FILES = {"decisions": "docs/orchestrator/memory/decisions.md", "patterns": "docs/orchestrator/memory/patterns.md"}


@click.command(
    "memory",
    cls=Command,
    examples=[
        ("tenuto memory", "what the current run remembers, and what the project does"),
        ("tenuto memory dark-mode", "another run's"),
        ("tenuto memory add decision 'Colours are variables' --rationale 'one place'", "for every later run"),
        ("tenuto memory add pattern 'Settings live in one store'", "the same, for how code is written here"),
    ],
)
@click.argument("words", nargs=-1, metavar="[RUN] | add decision|pattern TEXT")
@click.option("--title", default="", help="With add: its heading; the first line of the text otherwise.")
@click.option("--rationale", default="", help="With add: why.")
def memory(words: tuple[str, ...], title: str, rationale: str) -> Answer:
    """What a run remembers, and what the project does; add to the project's."""
    if words[:1] == ("add",):
        return _add(words[1:], title, rationale)
    if len(words) > 1 or title or rationale:
        raise BadInput(
            "bad-usage", f"'{' '.join(words)}' names no run", "tenuto memory [RUN], or: tenuto memory add decision TEXT"
        )
    workspace = open_existing()
    data: Remembered = {"run": None, "memory": None, "project": {}}
    try:
        run = workspace.load(runs.chosen(workspace, words[0] if words else None))
        data["run"], data["memory"] = run_view(run)["run"], runs.memory_of(run)
    except NotFound:
        if words:
            raise  # without a name, and with no current run, the project's memory is still there
    data["project"] = {name: _project(workspace, path) for name, path in _FILES.items()}
    return Answer(data, _shown(data))


def _add(words: tuple[str, ...], title: str, rationale: str) -> Answer:
    if len(words) != 2 or words[0] not in _KINDS or not words[1].strip():
        raise BadInput(
            "bad-usage", "what is to be remembered, and as what?", "tenuto memory add decision|pattern 'TEXT'"
        )
    workspace = open_existing()
    from tenuto.dialects.context.commands import Context

    done = Context(workspace).remember(words[0], words[1], title=title, rationale=rationale)
    files = ", ".join(done["files_touched"])
    return Answer(done, [f"{done['data']}{f' in {files}' if files else ''}"])


def _project(workspace: Workspace, path: str) -> str:
    return (workspace.files().read(path) or b"").decode("utf-8", "replace").strip()


def _shown(data: Remembered) -> Iterator[Part]:
    memory = data["memory"]
    if memory is not None:
        yield Heading(f"{data['run']} remembers")
        for entry in memory["index"]:
            yield f"  {entry['artifact']}  {entry['sections']}  ({entry['who']})"
        entries = {"decisions": memory["decisions"], "lessons": memory["lessons"], "updates": memory["updates"]}
        for kind, remembered in entries.items():
            yield f"  {kind}: {len(remembered) or 'none'}"
            for one in remembered:
                void = f" [invalidated: {one['invalidated']}]" if one["invalidated"] else ""
                yield f"    [{one['who']}, step {one['step']}] {one['text']}{void}"
        yield ""
    yield Heading("The project remembers")
    for name, text in data["project"].items():
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]
        yield f"  {name}: {'' if lines else 'none yet'}".rstrip()
        yield from (f"    {line}" for line in lines)


# ---- status ------------------------------------------------------------


_LEVELS = {
    "guarded": "no agent decides by mistake; whoever works as this user could",
    "signed": "a decision carries a signature; a forged one is found out, and not carried on",
    "isolated": "agents run where they cannot write the journal; that is tried before each start",
}


@click.command(
    "status",
    cls=Command,
    examples=[
        ("tenuto status", "the current run"),
        ("tenuto status dark-mode", "another one"),
        ("tenuto status --exit-code || echo 'not there yet'", "5 while it waits for a person, 1 if it failed"),
    ],
)
@run_argument
@click.option(
    "--exit-code",
    is_flag=True,
    help="End with 5 when the run waits for a person, with 1 when it failed, or is completed with failures.",
)
def status(run: str | None, exit_code: bool) -> Answer:
    """Where a run stands and what it waits for."""
    from tenuto.engine.gates import level_of
    from tenuto.workspace.settings import read_settings

    workspace = open_existing()
    record = load(workspace, run)
    view, level = run_view(record), level_of(record, read_settings(workspace.root))
    driven = driven_view(workspace, view["run"], view["status"], view["driver"])
    skipped, checks = left_out(workspace, record), checks_for(workspace, record)
    unchecked = checks_in_words(checks, workspace.root) if checks and view["phase"] != "ended" else ()
    data = {
        **record,
        "status": view["status"],
        "driven": driven,
        "gates": level,
        "open_ends": view["open_ends"],
        "left_out": skipped,
        "checks": checks,
        "view": look_at(workspace, view["run"]),
    }
    return Answer(data, _parts(view, driven, level, skipped, unchecked), exit_status(view) if exit_code else 0)


def exit_status(view: RunView) -> int:
    """5: it waits for a person; 1: it failed, or something in it did."""
    return 5 if view["phase"] == "waiting" else int(view["status"] in (*BADLY, *FAILED_IN_PART))


def _parts(
    view: RunView, driven: DrivenView, level: str, left_out: list[str], unchecked: Iterable[str]
) -> Iterator[Part]:
    yield Heading(f"{view['run']}: {view['status']}")
    if view["summary"] or view["name"] != view["run"]:
        yield f"  {view['summary'] or view['name']}"
    yield f"  pipeline {view['pipeline'] or '-'}, mode {view['mode']}; {driven['words']}"
    if driven["command"]:
        yield f"    try: {driven['command']}"
    if view["fork"]:
        yield f"  forked from {view['fork']['source']} at {view['fork']['step']}"
    yield f"  started {when(view['created_at'])}, last event {view['version']} at {when(view['updated_at'])}"
    yield f"  gates are {level}: {_LEVELS[level]}"
    yield from (f"  {line}" for line in unchecked)
    yield from _waiting(view)
    yield from _open_ends(view)
    if left_out:
        yield f"  left out, since it began further on: {', '.join(left_out)}"
    if view["steps"]:
        yield ""
        yield Table(("STEP", "STATUS", "VISITS", "VERDICT"), _steps(view))
        yield from (f"  {step['step']} is left out: {step['reason']}" for step in view["steps"] if step["reason"])
    busy = [attempt for attempt in view["attempts"] if is_in_flight(attempt)]
    if busy:
        yield ""
        yield Table(
            ("ATTEMPT", "STATUS", "ROLE", "SINCE"),
            [(one["attempt"], one["status"], one["role"], when(one["started_at"])) for one in busy],
        )
    yield from _counts(view)


def _waiting(view: RunView) -> Iterator[Part]:
    waiting, blocked, failure = view["waiting"], view["blocked"], view["failure"]
    if waiting is not None and waiting["kind"] == "gate":
        options = ", ".join(waiting["options"])
        yield f"  waits for a decision on {waiting['name']!r} since {when(waiting['since'])}: {options}"
        yield f"    {waiting['reason']}"
        yield from (f"    {line}" for line in waiting["summaries"])
        for shown in waiting["shown"]:
            yield f"    see {shown['path']}"
        yield from (f"    {line}" for line in _form(waiting))
    elif waiting is not None and waiting["kind"] != "blocked":
        yield f"  {waiting['cause']}: {waiting['reason'] or 'no reason given'}"
        for recommendation in waiting["recommendations"]:
            yield f"    {recommendation}"
    if blocked is not None:
        missing = ", ".join(blocked["missing"])
        yield f"  blocked at {blocked['reason']}" + (f", missing: {missing}" if missing else "")
    if failure is not None:
        yield f"  failed in {failure['step'] or 'no step'}: {failure['error']}"


def _steps(view: RunView) -> list[tuple[str, ...]]:
    return [
        (
            step["step"] + (" (here)" if step["here"] else ""),
            step["status"],
            str(step["visits"] or "-"),
            step["verdict"] or "-",
        )
        for step in view["steps"]
    ]


def _counts(view: RunView) -> Iterator[Part]:
    items: dict[str, int] = {}
    for item in view["items"]:
        items[item["status"]] = items.get(item["status"], 0) + 1
    counts = {
        "items": ", ".join(f"{count} {status}" for status, count in items.items()),
        "artifacts": str(len(view["artifacts"]) or ""),
        "commits": str(view["commits"] or ""),
        "spent": amounts(view["spent"]),
    }
    line = "; ".join(f"{what}: {count}" for what, count in counts.items() if count)
    if line:
        yield ""
        yield line
    for limit in view["limits"]:
        if limit["limit"] is not None:
            of = f" of {limit['step']}" if limit["step"] else ""
            used = amount(limit["unit"], limit["used"])
            yield f"limit{of}: {amount(limit['unit'], limit['limit'])}, {used} used or promised"


# ---- where a run stands when a command ends


def ended(run: Run) -> Answer:
    """How a run rests, and the exit status that says so."""
    view = run_view(run)
    lines: list[Part] = [f"{view['run']}: {view['status']}"]
    if view["waiting"]:
        lines += _resting(view, view["waiting"])
    if view["phase"] == "ended":
        lines += _left(view, run)
    if view["status"] in BADLY:
        lines.append(f"ERROR: {view['failure']['error'] if view['failure'] else 'cancelled'}")
    return Answer({**run, "status": view["status"], "open_ends": view["open_ends"]}, lines, exit_status(view))


def _resting(view: RunView, waiting: Waiting) -> Iterator[str]:
    match waiting["kind"]:
        case "gate":
            yield f"  {waiting['reason']}"
            yield from (f"  {line}" for line in waiting["summaries"])
            yield from (f"  - {entry['path']}" for entry in waiting["shown"])
            yield from (f"  {line}" for line in _form(waiting))
            more = set_words(waiting)
            yield f"  try: tenuto approve {view['run']}{more}   (or: reject, revise --feedback '...')"
        case "blocked":
            yield f"  {waiting['reason']} {', '.join(waiting['missing'])}".rstrip()
            yield f"  try: tenuto retry {view['run']} STEP"
        case _:
            until = f"until {when(waiting['until'])}: " if waiting["kind"] == "time" else ""
            yield f"  {until}{waiting['reason']}"
            yield f"  try: {_way_on(view['run'], waiting)}"


def _form(waiting: Waiting) -> Iterator[str]:
    """What an approval must answer."""
    for field in waiting["fields"]:
        default = field["default"]
        more = f"; {as_text(default)} unless you say otherwise" if default is not None else ""
        more = more or ("" if field["required"] else "; may be left out")
        yield f"asks for {field['name']} ({describe(field)}{more})"


def _way_on(run: str, waiting: Waiting) -> str:
    match waiting["kind"]:
        case "question":
            return f"tenuto answer {run} 'your answer'"
        case "limit":
            return f"{waiting['recommendations'][0]}   (or: tenuto cancel {run})"
        case "time":
            return f"tenuto resume {run} --wait   (waits, and goes on; at once: tenuto resume {run} --now)"
        case _:
            return f"tenuto resume {run}   (or: tenuto cancel {run})"


def _open_ends(view: RunView) -> Iterator[str]:
    ends = view["open_ends"]
    undone = {
        "failed": ends["failed"],
        "never started": ends["never_started"],
        "not done in the end": ends["not_done"],
        "failed when the engine ran it": ends["checks"],
    }
    yield from (f"  {what}: {', '.join(names)}" for what, names in undone.items() if names)


def _left(view: RunView, run: Run) -> Iterator[str]:
    """What somebody should know once a run has ended: what was not done, its branch, what was stashed."""
    unresolved = gone_on_from(run)
    if unresolved:
        yield f"  went on without a DONE of: {', '.join(unresolved)}"
    yield from _open_ends(view)
    if view["branch"]:
        text = next((one["path"] for one in view["artifacts"] if one["name"] == "pull-request.md"), "")
        yield f"  branch {view['branch']}" + (f", pull-request text in {text}" if text else "")
    if view["stash"]:
        yield f"  your changes from before: git stash apply {view['stash'][:12]}"


def say_what_is_unchecked(workspace: Workspace, run: Run) -> None:
    checks = checks_for(workspace, run)
    for line in checks_in_words(checks, workspace.root) if checks else ():
        say(line)


# ---- metrics ------------------------------------------------------------


_RULE = "\u2500" * 56


@click.command(
    "metrics",
    cls=Command,
    examples=[
        ("tenuto metrics", "durations, savings, retries, cost and critical path of the current run"),
        ("tenuto metrics dark-mode --format detailed", "attempt by attempt, with their waves"),
        ("tenuto metrics dark-mode --format json", "for a program"),
    ],
)
@run_argument
@click.option(
    "--format",
    "shape",
    type=click.Choice(["summary", "detailed", "json"]),
    default="summary",
    help="How much, and for whom.",
)
def metrics(run: str | None, shape: str) -> Answer:
    """How long a run took, what working side by side saved, what was repeated, and what it cost."""
    workspace = open_existing()
    record = load(workspace, run)
    data = measures(record, cap_of(workspace, record))
    if shape == "json":
        return Answer(data, raw=pretty(data).encode())
    lines = _detailed(data) if shape == "detailed" else _summary(data)
    return Answer(data, lines)


def _summary(data: Measures) -> Iterator[str]:
    totals = data["metrics"]
    yield f"METRICS: {data['run']}"
    yield f"{'Total Duration:':<20}{span(totals['total_duration_ms'])}"
    yield f"{'Sequential Est:':<20}{span(totals['sequential_estimate_ms'])}"
    yield f"{'Parallel Est:':<20}{span(totals['parallel_estimate_ms'])}"
    yield f"{'Savings:':<20}{span(totals['parallelization_savings_ms'])} ({totals['savings_percent']}%)"
    yield f"{'Retries:':<20}{totals['total_retries']}"
    yield from _more(data)


def _more(data: Measures) -> Iterator[str]:
    path = data["critical_path"]
    yield f"{'Critical Path:':<20}{span(path['total_ms'])}"
    if data["rolling"]["visits"]:
        yield f"{'Rolling Order:':<20}{_gain(data['rolling']['saved_ms'])}"
    if data["usage"]:
        yield f"{'Cost:':<20}{amounts(data['usage'])}"


def _gain(saved: int) -> str:
    return f"would have saved {span(saved)}" if saved else "would have saved nothing"


def _detailed(data: Measures) -> Iterator[str]:
    totals = data["metrics"]
    yield f"METRICS: {data['run']}"
    yield ""
    yield "Phase                    Duration    Status    Retries"
    yield _RULE
    shown: list[int] = []
    for one in data["spans"]:
        if one["group"] is None:
            yield _row(one, "")
        elif one["group"] not in shown:
            shown.append(one["group"])
            yield f"[Wave {one['wave']}]" if one["wave"] else f"[{one['step']}]"
            yield from (_row(other, "  ") for other in data["spans"] if other["group"] == one["group"])
    yield _RULE
    yield f"{'Total:':<20}{span(totals['total_duration_ms'])}"
    yield f"{'Sequential Est:':<20}{span(totals['sequential_estimate_ms'])}"
    yield f"{'Savings:':<20}{span(totals['parallelization_savings_ms'])} ({totals['savings_percent']}%)"
    yield from _more(data)
    links = data["critical_path"]["links"]
    if links:
        yield "  " + " > ".join(f"{link['name']} {span(link['ms'])}" for link in links)


def _row(one: Span, indent: str) -> str:
    """The columns of the table; a long name pushes them to the right, never over one another."""
    name, duration = f"{indent}{one['name']}", span(one["duration_ms"])
    room = max(32 - len(name), len(duration) + 1)
    return f"{name}{duration:>{room}}     {one['status']:<9}{one['retries']:>6}"
