"""What a browser may look at: every page, and every file that can be kept, as show/ tells it. A look writes nothing.

Each function is given the workspace on the reading thread, what was asked, and the site. Of PAGES it returns a page, of
FILES a name and the bytes, piece by piece: a log may have hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from tenuto import __version__
from tenuto.errors import BadInput, NotFound, TenutoError
from tenuto.pages.compare import Choice, Comparison, Replayed, WhatIf, compare_page
from tenuto.pages.evidence import Kept, Part, artifact_page, attempt_page
from tenuto.pages.figures import figures_page, machine_page
from tenuto.pages.inbox import inbox_page, runs_page
from tenuto.pages.run import Asked as AskedOfRun
from tenuto.pages.run import run_page
from tenuto.show import attempts, changes, figures, runs
from tenuto.show.inbox import inbox_view
from tenuto.show.measures import CAP
from tenuto.show.run_page import Runs
from tenuto.show.score import ghost_view, order_of, visits_with_items

if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.pages.card import Level
    from tenuto.pages.page import Page, Site
    from tenuto.workspace.workspace import Workspace

_CHOICES = 200  # runs that can be compared
_PIECE = 1 << 18
_MOST_CAP = 64


class Asked(NamedTuple):
    names: tuple[str, ...]
    """The names in the address: of the run, and of what is looked at in it."""
    query: Mapping[str, str]
    site: Site

    def text(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str) -> int | None:
        """BadInput where something else was given."""
        given = self.query.get(name, "")
        if not given:
            return None
        if not (given.isascii() and given.lstrip("-").isdigit() and len(given) < 16):
            raise BadInput("bad-number", f"{name}={given!r} is no number", "open the page again")
        return int(given)


Look = Callable[["Workspace", Asked], "Page"]
File = tuple[str, Iterator[bytes]]


@lru_cache(maxsize=4)
def _runs(workspace: Workspace) -> Runs:
    """It keeps folds, so that a step back and forth is quick. Only the reading thread has it."""
    return Runs(workspace)


@lru_cache(maxsize=8)
def _decisions(workspace: Workspace, name: str, version: int) -> list[changes.DecisionView]:
    """Found in the events, which for this version are what they are."""
    return changes.decisions_of(workspace, name)


# ---- lists


def inbox(workspace: Workspace, asked: Asked) -> Page:
    return inbox_page(inbox_view(workspace, seen=_seen(workspace)), asked.site)


def all_runs(workspace: Workspace, asked: Asked) -> Page:
    view = inbox_view(workspace, asked.text("q"), asked.text("status"), asked.text("after"), seen=_seen(workspace))
    return runs_page(view)


def _seen(workspace: Workspace) -> list[str]:
    """Failed runs that a person has put aside, and in which nothing happened since."""
    if not workspace.journal.exists():
        return []
    with workspace.journal.read() as reader:
        failed = reader.runs(limit=20, statuses=["failed"])
        return [one["id"] for one in failed if reader.marker(f"seen:{one['id']}") == str(reader.version(one["id"]))]


# ---- a run, and what it left


def one_run(workspace: Workspace, asked: Asked) -> Page:
    from tenuto.engine.gates import level_of
    from tenuto.workspace.settings import read_settings

    (name,) = asked.names
    view = _runs(workspace).page(name, asked.number("at"))
    run = runs.load(workspace, name)
    shown = [] if view["is_past"] else changes.gate_files(workspace, run)
    level = cast("Level", level_of(run, read_settings(workspace.root)))
    left, right = asked.number("from"), asked.number("to")
    window = (max(0, left), right) if left is not None and right is not None and right > left else None
    decided = [one for one in _decisions(workspace, name, run["version"]) if one["seq"] <= view["at"]]
    return run_page(view, asked.site, shown, AskedOfRun(window, asked.text("step"), level, decided))


def one_attempt(workspace: Workspace, asked: Asked) -> Page:
    name, attempt = asked.names
    run = runs.load(workspace, name)
    view = attempts.attempt_page(workspace, run, attempt)
    part = _part(asked.text("of") or _first_part(view))
    return attempt_page(name, run["name"] or name, view, _kept(workspace, run, view, part, asked))


def _first_part(view: attempts.AttemptPage) -> str:
    kinds = {file["kind"] for file in view["logs"]}
    wanted = "output" if view["attempt"]["ended_at"] is None else "checks" if view["is_refuted"] else "reply"
    return wanted if wanted in kinds else "reply"


def _part(word: str) -> Part:
    if word not in (*attempts.LOG_KINDS, "diff"):
        raise BadInput("bad-part", f"{word!r} is nothing that is kept of an attempt", "choose a tab of the page")
    return cast("Part", word)


def _kept(workspace: Workspace, run: Run, view: attempts.AttemptPage, part: Part, asked: Asked) -> Kept:
    if part == "diff":
        return Kept(part, difference=changes.attempt_diff(workspace, run, view["attempt"]["attempt"]))
    files = [one for one in view["logs"] if one["kind"] == part]
    if not files:
        return Kept(part)
    number = asked.number("file")
    at = -1 if number is None or not 0 <= number < len(files) else number
    path, words, after = files[at]["path"], asked.text("find"), asked.number("after")
    log = attempts.log_part(path, asked.number("before")) if after is None else attempts.log_after(path, after)
    hits = attempts.find_in_log(path, words) if words else None
    return Kept(part, at, log, hits, words)


def one_artifact(workspace: Workspace, asked: Asked) -> Page:
    name, artifact = asked.names
    run = runs.load(workspace, name)
    view = changes.artifact_page(workspace, run, artifact, asked.text("sha"), asked.text("against"))
    return artifact_page(name, run["name"] or name, view, "source" if asked.text("shape") == "source" else "document")


# ---- over runs


def compare(workspace: Workspace, asked: Asked) -> Page:
    choices = [Choice(one["id"], one["name"]) for one in runs.summaries(workspace, limit=_CHOICES)]
    name, other = asked.text("a"), asked.text("b")
    if not name:
        return compare_page(Comparison(choices), asked.site)
    view = Comparison(
        choices,
        _runs(workspace).page(name),
        _runs(workspace).page(other) if other else None,
        figures.compare_view(workspace, name, other) if other else None,
        _what_if(workspace, asked),
        _replayed(workspace, asked),
        _forked(workspace, asked),
    )
    return compare_page(view, asked.site)


def _what_if(workspace: Workspace, asked: Asked) -> WhatIf | None:
    """Of the visit that was asked for; otherwise of the first one with items, which has all of them."""
    run = runs.load(workspace, asked.text("a"))
    visits = visits_with_items(run)
    if not visits:
        return None
    pipeline = runs.pipeline_for(workspace, run)
    step, visit = next((one for one in visits if f"{one[0]}:{one[1]}" == asked.text("visit")), visits[0])
    own = pipeline["cap"] if pipeline else CAP
    order: Literal["waves", "rolling"] = "waves" if asked.text("order") == "waves" else "rolling"
    cap = min(max(asked.number("cap") or own, 1), _MOST_CAP)
    measured = ghost_view(run, pipeline, step, visit, own, order_of(pipeline, step))
    return WhatIf(ghost_view(run, pipeline, step, visit, cap, order), measured, visits)


def _replayed(workspace: Workspace, asked: Asked) -> Replayed:
    """Only a pipeline that is listed: a name out of an address leads to no other file."""
    from pathlib import Path

    from tenuto.knowledge import definitions

    run = runs.load(workspace, asked.text("a"))
    known = [one["name"] for one in definitions.available(Path(workspace.root))]
    own, chosen = run["pipeline"]["name"], asked.text("pipeline")
    listed = Replayed([*dict.fromkeys([own, *known])] if own in known else known, chosen or own)
    if not chosen:
        return listed
    if chosen not in known:
        return listed._replace(refused=f"there is no pipeline {chosen!r} here")
    try:
        return listed._replace(found=figures.replay_view(workspace, run["id"], chosen))
    except TenutoError as error:
        return listed._replace(refused=f"{error.message}. {error.hint}".strip())


def _forked(workspace: Workspace, asked: Asked) -> figures.ForkPreview | None:
    """At the step that was asked for, else where the run is. None of a run that is led by hand."""
    run = runs.load(workspace, asked.text("a"))
    if run["pipeline"]["hash"] is None or not run["steps"]:
        return None
    return figures.fork_view(workspace, run["id"], asked.text("step") or run["position"] or next(iter(run["steps"])))


def all_figures(workspace: Workspace, asked: Asked) -> Page:
    return figures_page(figures.figures_view(workspace))


def machine(workspace: Workspace, asked: Asked) -> Page:
    verified = figures.verify_view(workspace) if asked.text("verify") else None
    return machine_page(figures.machine_view(workspace, __version__), verified)


# ---- files to keep


def figures_file(workspace: Workspace, asked: Asked) -> File:
    return "figures.csv", iter([figures.figures_csv(workspace).encode()])


def log_file(workspace: Workspace, asked: Asked) -> File:
    name, attempt = asked.names
    run = runs.load(workspace, name)
    part = asked.text("of")
    files = [one for one in attempts.log_files(workspace, run, attempt) if one["kind"] == part]
    number = asked.number("file")
    if attempt not in run["attempts"] or not files:
        raise NotFound("no-log", f"attempt {attempt!r} of run {name} has no {part or 'log'}", f"tenuto logs {name}")
    file = files[-1 if number is None or not 0 <= number < len(files) else number]
    return f"{attempt}-{part}.txt", _pieces(file["path"])


def _pieces(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def artifact_file(workspace: Workspace, asked: Asked) -> File:
    name, artifact = asked.names
    run = runs.load(workspace, name)
    versions = changes.versions_of(workspace, run, artifact)
    known = [one["sha256"] for one in versions if one["sha256"].startswith(asked.text("sha"))]
    body = changes.content(workspace, known[0]) if known else None
    if body is None:
        raise NotFound("no-such-version", f"run {name} keeps no such version of {artifact!r}", "see its versions")
    return artifact.rpartition("/")[2], iter([body])


PAGES: dict[str, Look] = {
    "/": inbox,
    "/runs": all_runs,
    "/runs/*": one_run,
    "/runs/*/attempts/*": one_attempt,
    "/runs/*/artifacts/*": one_artifact,
    "/compare": compare,
    "/figures": all_figures,
    "/machine": machine,
}
"""By address; a star is one name. """

FILES: dict[str, Callable[[Workspace, Asked], File]] = {
    "/figures.csv": figures_file,
    "/runs/*/attempts/*/log": log_file,
    "/runs/*/raw/*": artifact_file,
}
