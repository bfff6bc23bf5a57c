"""`tenuto verify`"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import open_existing, run_argument
from tenuto.entrypoints.cli.terminal import Marked, Part, counted
from tenuto.errors import Damaged, SchemaSkew

if TYPE_CHECKING:
    from tenuto.stores.verify import Finding
    from tenuto.workspace.turn import Workspace


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
@click.option("--signers", type=click.File(encoding="utf-8"), default=None, help="Who may decide, in ssh's allowed_signers format; a copy that agents cannot write.")
def command(run: str | None, signers: IO[str] | None) -> Answer:
    """Is everything as it was written?

    Recomputes every digest and the chain of each run, and compares stored files, projected
    files and logs with what was written. Names the first bad event of a run and a cut tail.
    Ends with 1 on damage or when another program changed a file; files that merely lag behind
    (a crash, a checkout) are named and do no harm. Where decisions are signed, every gate that was passed must
    show a signature, and nothing may have begun behind one that does not. Ends with 6 when a run holds events of a newer Tenuto.
    """
    from tenuto.workspace.examine import examine

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
    """Of a damaged run nobody knows what was decided in it."""
    from tenuto.drivers.protection import forgeries
    from tenuto.stores.verify import REPO, run_names

    known = [only] if only else run_names(workspace.journal.connection())  # type: ignore[attr-defined]
    names = [name for name in known if name != REPO and name not in damaged]
    fix = "restore a backup, or fork the run before that"
    return [
        {"severity": "damage", "run": name, "where": "decisions", "message": said, "fix": fix}
        for name in names for said in forgeries(workspace, name, signers)
    ]  # fmt: skip


def _damage(bad: list[Finding], findings: list[Finding], report: object) -> Damaged:
    lines = [f"{len(bad)} of what was checked {'is' if len(bad) == 1 else 'are'} not as written"]
    for found in findings:
        of_run = f" of run {found['run']}" if found["run"] else ""
        lines.append(f"{found['severity']}: {found['where']}{of_run}: {found['message']}")
    return Damaged("not-as-written", "\n".join(lines), bad[0]["fix"], report=report)
