"""`tenuto verify`: is everything as it was written? `tenuto repair`: bring files back in line with the journal.

`tenuto doctor`
"""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command, open_existing, open_here, run_argument
from tenuto.entrypoints.cli.terminal import Marked, Part, counted, say, when
from tenuto.errors import Damaged, Refused, SchemaSkew, TenutoError

if TYPE_CHECKING:
    from tenuto.ports import Check, Finding
    from tenuto.workspace.checkup import Repaired
    from tenuto.workspace.workspace import Workspace


@click.command(
    "verify",
    cls=Command,
    examples=[
        ("tenuto verify", "the whole journal and every file written from it"),
        ("tenuto verify dark-mode", "one run"),
        ("tenuto verify --signers ~/my-signers", "every gate was decided by one of these, whatever the journal says"),
    ],
)
@run_argument
@click.option(
    "--signers",
    type=click.File(encoding="utf-8"),
    default=None,
    help="Who may decide, in ssh's allowed_signers format; a copy that agents cannot write.",
)
def verify(run: str | None, signers: IO[str] | None) -> Answer:
    """Is everything as it was written?

    Recomputes every digest and the chain of each run, and compares stored files, projected
    files and logs with what was written. Names the first bad event of a run and a cut tail.
    Ends with 1 on damage or when another program changed a file; files that merely lag behind
    (a crash, a checkout) are named and do no harm. Where decisions are signed, every gate that was passed must
    show a signature, and nothing may have begun behind one that does not. Ends with 6 when a run holds events of a
    newer Tenuto.
    """
    from tenuto.workspace.checkup import examine

    workspace = open_existing()
    report = examine(workspace, run)
    findings = report["findings"]
    damaged = {found["run"] for found in findings if found["severity"] == "damage"}
    findings += _forgeries(workspace, run, damaged, signers.read() if signers else "")
    bad = [found for found in findings if found["severity"] != "behind"]
    if bad and all(found["severity"] == "newer" for found in bad):
        raise SchemaSkew("event-newer", "\n".join(found["message"] for found in bad), bad[0]["fix"], report=report)
    if bad:
        raise _damage(bad, findings, report)
    parts: list[Part] = [f"sound: {counted(report['runs'], 'run')}, {counted(report['events'], 'event')}"]
    for found in findings:
        parts.append(Marked(found["severity"], f"{found['where']}: {found['message']}; {found['fix']}"))
    return Answer(report, parts)


def _forgeries(workspace: Workspace, only: str | None, damaged: set[str | None], signers: str) -> list[Finding]:
    """Damaged runs are left out: what was decided in them cannot be known."""
    from tenuto.engine.gates import forgeries

    if only:
        known = [only]
    else:
        with workspace.journal.read() as reader:
            known = reader.names()
    names = [name for name in known if name != "@" and name not in damaged]
    fix = "restore a backup, or fork the run before that"
    return [
        {"severity": "damage", "run": name, "where": "decisions", "message": message, "fix": fix}
        for name in names
        for message in forgeries(workspace, name, signers)
    ]


def _damage(bad: list[Finding], findings: list[Finding], report: object) -> Damaged:
    lines = [f"{len(bad)} of what was checked {'is' if len(bad) == 1 else 'are'} not as written"]
    for found in findings:
        of_run = f" of run {found['run']}" if found["run"] else ""
        lines.append(f"{found['severity']}: {found['where']}{of_run}: {found['message']}")
    return Damaged("not-as-written", "\n".join(lines), bad[0]["fix"], report=report)


_DONE = {"behind": "written", "damage": "made anew", "edited": "taken in"}


@click.command(
    "repair",
    cls=Command,
    examples=[
        ("tenuto repair", "write what lags behind, take in what others changed"),
        ("tenuto repair --restore docs/plan.md", "ours again; theirs is kept in quarantine"),
    ],
)
@click.option("--restore", metavar="PATH", help="Put our version of this file back; theirs is moved to quarantine.")
def repair(restore: str | None) -> Answer:
    """Bring files back in line with the journal.

    Changes that others made are taken in where the rules allow it. Where they do not, the file
    is named and left as it is; --restore PATH then puts ours back.
    """
    from tenuto.workspace import checkup

    workspace = open_existing()
    if restore is not None:
        path = _below(workspace, restore)
        kept = checkup.restore(workspace, path)
        line = f"{path} is ours again" + (f"; what stood there is kept as {kept}" if kept else "")
        return Answer({"restored": path, "kept": kept}, [line])
    done = checkup.repair(workspace)
    lines = [f"{_DONE[found['severity']]}: {_named(found)}" for found in done["mended"]]
    problem = _problem(done)
    if problem is not None:
        for line in lines:
            say(line)
        raise problem
    return Answer({"mended": done["mended"]}, lines or ["nothing to repair"])


def _named(found: Finding) -> str:
    of_run = f" of run {found['run']}" if found["run"] and "/" not in found["where"] else ""
    return f"{found['where']}{of_run} ({found['message']})"


def _problem(done: Repaired) -> TenutoError | None:
    left = [found for found in done["left"] if found["severity"] != "behind"]
    details = {"mended": done["mended"], "left": left}
    if done["refused"]:
        first = done["refused"][0]
        messages = "\n".join(error.message for error in done["refused"])
        return Refused(first.code, messages, first.hint, **details)
    if left:
        lines = "\n".join(_named(finding) for finding in left)
        return Damaged("not-repaired", f"this cannot be made from the journal:\n{lines}", left[0]["fix"], **details)
    return None


def _below(workspace: Workspace, path: str) -> str:
    """A path below the repository; one that a shell completed is below the current folder."""
    here = os.path.relpath(os.path.abspath(path), workspace.root)
    below = here if not here.startswith("../") and os.path.lexists(path) else path
    return below.removeprefix("./")


# ---- doctor ------------------------------------------------------------


_NEWER = 6


@click.command(
    "doctor",
    cls=Command,
    examples=[
        ("tenuto doctor", "everything at a glance"),
        ("tenuto doctor --json | jq '.data.checks[] | select(.status != \"ok\")'", "what needs a look"),
    ],
)
def doctor() -> Answer:
    """What about this machine could hurt, and the fix.

    The journal and its place, Python and SQLite, git; values declared secret that cannot be kept so; agent programs
    with their versions and logins (nothing is asked over a network), their hook settings, the plugin, and whether all
    of these belong to the same Tenuto; where machines share a database, whether this one can work or drive. Ends with 1
    when something is broken, with 6 when the journal is a newer Tenuto's.
    """
    from tenuto.cluster.checkup import survey
    from tenuto.entrypoints.cli.machines import worker_home
    from tenuto.workspace.checkup import diagnose

    workspace = open_here()
    checks = [_check_python(), *diagnose(workspace), *_check_connections(workspace), *_check_hooks(workspace)]
    checks += survey(workspace.state, worker_home(None, "default"))
    parts: list[Part] = []
    for found in checks:
        parts.append(Marked(found["status"], f"{found['name']:<10} {found['message']}"))
        if found["fix"]:
            parts.append(f"{'':<8} {'':<10} try: {found['fix']}")
    problems = [found for found in checks if found["status"] == "problem"]
    status = _NEWER if any(found["code"] == "schema-newer" for found in problems) else int(bool(problems))
    return Answer({"checks": checks, "problems": len(problems)}, parts, status)


def _check_python() -> Check:
    from tenuto import __version__
    from tenuto.workspace.checkup import check

    return check("ok", "tenuto", f"{__version__} on Python {sys.version.split()[0]}")


def _check_connections(workspace: Workspace) -> list[Check]:
    from tenuto.hooks.connections import survey
    from tenuto.workspace.checkup import check
    from tenuto.workspace.settings import read_settings

    try:
        settings = read_settings(workspace.root)
    except TenutoError as error:
        return [check("problem", "settings", error.message, error.hint, error.code), *survey(workspace, {})]
    return survey(workspace, settings)


def _check_hooks(workspace: Workspace) -> list[Check]:
    from tenuto.hooks.reports import read_log
    from tenuto.workspace.checkup import check

    entries = read_log(workspace.state)
    if not entries:
        return []
    last = entries[-1]
    entry = f"{last.get('event')}: {last.get('message')}"
    number = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    fix = f"see {workspace.state}/hook.log; remove it when you have read it"
    return [check("note", "hooks", f"{number}; the last at {when(last.get('at'))}: {entry}", fix)]
