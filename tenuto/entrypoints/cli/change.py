"""`tenuto diff`: what a run, an attempt or a gate changed. `tenuto pr`: a run's branch as a pull request; and
how an issue becomes the request of a run.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenuto.encoding import escape_terminal
from tenuto.entrypoints.cli.frame import Answer, Command, load, open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Heading, Part, counted, say, show
from tenuto.errors import BadInput, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenuto.core.records.run import Run
    from tenuto.forge.requests import Proposal
    from tenuto.show.changes import DiffLine, DiffView, FileDiff, Hunk
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Turn, Workspace


# ---- an issue as the request of tenuto run


_ISSUE = "tenuto.issue"


def take_issue(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[_ISSUE] = value


def requested(workspace: Workspace, request: str | None) -> str | None:
    """What was typed, or the issue that was named."""
    from tenuto.forge.issues import find_issue
    from tenuto.forge.issues import request as in_words
    from tenuto.workspace.settings import read_settings

    context = click.get_current_context()
    named = context.meta.get(_ISSUE)
    if named is None:
        return request
    if request is not None:
        raise BadInput("bad-usage", "a request and an issue say the same thing twice", "give one of them")
    wanted = read_settings(workspace.root).get("pull_request", {})
    issue = find_issue(workspace.root, named, wanted.get("remote", ""), wanted.get("forge", ""))
    context.meta[_ISSUE] = issue
    say(f"issue: {issue['url']}  {issue['title']}")
    return in_words(issue)


def note_issue(turn: Turn, run: str) -> None:
    issue = click.get_current_context().meta.get(_ISSUE)
    if isinstance(issue, dict):
        kept = {name: issue[name] for name in ("source", "number", "url", "title")}
        turn.do(run, {"do": "ChangeSettings", "changes": {"issue": kept}})


# ---- differences


@click.command(
    "diff",
    cls=Command,
    examples=[
        ("tenuto diff", "what the current run changed"),
        ("tenuto diff dark-mode --stat", "of another one, only which files and how much"),
        ("tenuto diff design-1-designer-1", "what one attempt changed"),
        ("tenuto diff gate --words", "what the open gate shows that is new since its last decision, word by word"),
    ],
)
@click.argument("target", required=False, metavar="[RUN|ATTEMPT|GATE]")
@click.option("--stat", is_flag=True, help="Only the files, with how many lines were added and removed.")
@click.option("--words", is_flag=True, help="Mark the words that changed, not only the lines.")
@click.option("--no-pager", is_flag=True, help="Print all of it at once.")
@click.option("--exit-code", is_flag=True, help="End with 1 when something differs.")
def diff(target: str | None, stat: bool, words: bool, no_pager: bool, exit_code: bool) -> Answer:
    """What a run, an attempt or a gate changed.

    Of a run on a branch of its own: from where it began to its branch, with what is not committed yet. Of any other,
    the documents that it stored. Of an attempt: what was merged, or the documents that it wrote. Of a gate (by its
    name, or `gate`): what it shows, against what its last decision was made on, or against nothing.
    """
    from tenuto.show.changes import difference

    workspace = open_existing()
    found = difference(workspace, target)
    view = found["diff"]
    lines = list(_stat(view) if stat else _whole(view, words))
    if view["is_cut"]:
        lines.append("[cut: there is more]")
    status = int(exit_code and bool(view["files"]))
    if not lines:
        return Answer(found, [f"{found['of']}: nothing differs ({view['of']})"], status)
    if not no_pager and not stat and sys.stdout.isatty() and len(lines) > _height():
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager("\n".join(_coloured(line) for line in lines) + "\n")
        return Answer(found, (), status)
    if sys.stdout.isatty():
        return Answer(found, _printed(lines), status)
    return Answer(found, raw="".join(f"{line}\n" for line in lines).encode("utf-8", "replace"), status=status)


def _printed(lines: list[str]) -> Iterator[Part]:
    """Coloured, which is no text for a part: that would spell colours out."""
    for line in lines:
        click.echo(_coloured(line))
    yield from ()


def _height() -> int:
    import shutil

    return shutil.get_terminal_size().lines - 2


_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def _coloured(line: str) -> str:
    if os.environ.get("NO_COLOR"):
        return line
    if line.startswith(("+++", "---", "diff ")):
        return click.style(line, bold=True)
    return click.style(line, fg=_COLOURS[line[0]]) if line[:1] in _COLOURS else line


def _whole(view: DiffView, words: bool) -> Iterator[str]:
    for file in view["files"]:
        yield f"--- {_name('a', file['before'])}"
        yield f"+++ {_name('b', file['after'])}"
        if file["is_binary"]:
            yield "[it is no text]"
        for hunk in file["hunks"]:
            yield escape_terminal(hunk["header"])
            yield from _by_words(hunk) if words else (f"{one['mark']}{_safe(one['text'])}" for one in hunk["lines"])


def _name(side: str, path: str) -> str:
    return f"{side}/{escape_terminal(path)}" if path else "/dev/null"


def _safe(text: str) -> str:
    return escape_terminal(text, keep="\t")


def _stat(view: DiffView) -> Iterator[str]:
    width = max((len(_title(file)) for file in view["files"]), default=0)
    for file in view["files"]:
        amount = "no text" if file["is_binary"] else f"+{file['added']} -{file['removed']}"
        yield f"{_title(file):<{width}}  {amount}"
    added, removed = sum(one["added"] for one in view["files"]), sum(one["removed"] for one in view["files"])
    if view["files"]:
        yield f"{counted(len(view['files']), 'file')}, +{added} -{removed}"


def _title(file: FileDiff) -> str:
    moved = file["before"] and file["after"] and file["before"] != file["after"]
    return escape_terminal(f"{file['before']} -> {file['after']}" if moved else file["path"])


_WORD = re.compile(r"\s+|\w+|[^\w\s]")


def _by_words(hunk: Hunk) -> Iterator[str]:
    """As git's --word-diff: [-what was-]{+what is+}."""
    block: list[DiffLine] = []
    for line in [*hunk["lines"], None]:
        if line is not None and line["mark"] != " ":
            block.append(line)
            continue
        if block:
            before = "\n".join(one["text"] for one in block if one["mark"] == "-")
            after = "\n".join(one["text"] for one in block if one["mark"] == "+")
            yield from _merged(before, after).split("\n")
            block = []
        if line is not None:
            yield f" {_safe(line['text'])}"


def _merged(before: str, after: str) -> str:
    old, new = _WORD.findall(before), _WORD.findall(after)
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[a:b]), "".join(new[c:d])
        if kind == "equal":
            parts.append(come)
        else:
            parts.append((f"[-{gone}-]" if gone else "") + (f"{{+{come}+}}" if come else ""))
    return escape_terminal("".join(parts), keep="\n\t")


# ---- pull requests


@click.command(
    "pr",
    cls=Command,
    examples=[
        ("tenuto pr --dry-run", "what would be pushed and opened, with its text; nothing is sent"),
        ("tenuto pr", "shows it, asks, pushes the branch, and opens the pull request or updates it"),
        (
            "tenuto pr dark-mode --record --page run.html",
            "with a comment that holds the record, and the run as one file",
        ),
        ("tenuto pr --yes", "without a question, for a script that a person started"),
    ],
)
@run_argument
@click.option("--dry-run", is_flag=True, help="Only show it.")
@click.option(
    "--base", default="", metavar="BRANCH", help="What it is to be merged into; where the run began otherwise."
)
@click.option("--draft/--ready", "draft", default=None, help="A draft or not; a draft where something was not done.")
@click.option("--record", is_flag=True, help="Also a comment: attempts, checks, decisions, the head of the chain.")
@click.option("--page", default="", metavar="FILE", help="Also write the run as one file (for CI to keep).")
@click.option("--yes", is_flag=True, help="Do it without asking.")
def pr(run: str | None, dry_run: bool, base: str, draft: bool | None, record: bool, page: str, yes: bool) -> Answer:
    """A run's branch as a pull request, on GitHub (through gh) or GitLab (through glab).

    Shows what would be pushed and opened, and asks. Without a person's word nothing is sent, unless the settings say
    `pull_request: {ask: false}`. A branch is never forced. One that is open already gets the new commits and text.
    """
    from tenuto.engine.attempt import definition_of
    from tenuto.forge.requests import commit_what_is_there, open_request, proposal
    from tenuto.workspace.settings import read_settings

    workspace = open_existing()
    record_of = load(workspace, run)
    settings = read_settings(workspace.root, workspace.state)
    with workspace.journal.read() as reader:
        pipeline = definition_of(reader, record_of)["pipeline"]
    of = proposal(workspace, record_of, pipeline, settings, base=base, draft=draft)
    if page:
        _write_page(workspace, of["run"], page)
    if dry_run:
        return Answer({**of, "opened": False}, [*_proposed(of), "", "nothing was sent"])
    _may(workspace, settings, of, yes)
    commit_what_is_there(workspace, record_of, pipeline)
    known = open_request(workspace, of, _record(workspace, record_of) if record else "")
    done = "updated" if of["known"] else "opened"
    return Answer({**of, "opened": True, "known": known}, [f"{done}: {known['url'] or known['number']}"])


def _may(workspace: Workspace, settings: Settings, of: Proposal, yes: bool) -> None:
    from tenuto.workspace import trust
    from tenuto.workspace.guard import require_person

    if settings.get("pull_request", {}).get("ask") is False:
        wanted = [one for one in trust.of_settings(settings, workspace.root) if one[1].endswith("pull_request.ask")]
        trust.require(workspace, wanted)
        return
    require_person(workspace.caller, "open a pull request", f"tenuto pr {of['run']}")
    if yes:
        return
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        hint = "look: tenuto pr --dry-run; then: --yes"
        raise Refused("not-confirmed", f"{of['branch']} would be pushed to {of['url']}", hint)
    show(_proposed(of))
    if not click.confirm("Push and open it?" if not of["known"] else "Push and update it?", default=False, err=True):
        raise Refused("not-confirmed", "nothing was sent", "tenuto pr")


def _proposed(of: Proposal) -> Iterator[Part]:
    known = of["known"]
    pushed = "is there already" if of["there"] == of["commit"] else f"would be pushed to {of['remote']} ({of['url']})"
    kind = "draft" if of["draft"] else "pull request"
    yield Heading(f"{of['title']}  ({kind} on {of['host']}, {of['project']})")
    yield f"  branch {of['branch']} at {of['commit'][:12]} {pushed}"
    yield f"  into {of['base']}"
    yield f"  updates {known['url'] or known['number']}" if known else "  none is open for it yet"
    yield ""
    yield from (f"  {line}".rstrip() for line in of["body"].splitlines())


def _record(workspace: Workspace, run: Run) -> str:
    from tenuto.forge.requests import note
    from tenuto.show.changes import decisions_of
    from tenuto.show.run_page import Runs
    from tenuto.show.views import run_view

    name = run_view(run)["run"]
    seal = Runs(workspace).page(name, lines=0)["seal"]
    decided = [
        f"{one['at']}: {one['decision']} of `{one['name']}` by `{one['who']}`, on "
        + (
            ", ".join(f"`{shown['path']}` `{(shown['sha256'] or 'nothing')[:12]}`" for shown in one["shown"])
            or "nothing"
        )
        for one in decisions_of(workspace, name)
    ]
    return note(run, decided, str(seal["head"]), int(seal["events"]))


def _write_page(workspace: Workspace, run: str, path: str) -> None:
    from tenuto.pages.static_page import static_page
    from tenuto.show.changes import export_view

    try:
        Path(path).write_bytes(static_page(export_view(workspace, run)).encode("utf-8", "replace"))
    except OSError as error:
        raise Refused("not-written", f"{path} cannot be written: {error.strerror}", "name another file") from None
    say(f"page: {path}")
