"""`tenuto approve`, `reject`, `revise`: a person's word at a gate."""

from __future__ import annotations

from typing import Any

import click

from tenuto.entrypoints.cli.driving import ended
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.cli.runs import chosen, open_existing, run_argument


def _decide(run: str | None, decision: str, feedback: str, key: str | None, name: str) -> Answer:
    from tenuto.drivers.persons import decide_gate
    from tenuto.drivers.protection import said, sign
    from tenuto.drivers.settings import read_settings

    workspace = open_existing()
    run_id = chosen(workspace, run)
    signature = sign(said(workspace.load(run_id), decision, feedback), key) if key else ""
    found = decide_gate(workspace, run_id, decision, feedback, read_settings(workspace.root), signature, name)
    answer = ended(found)
    lines = [
        f"{run_id}: {decision} recorded",
        *([] if found["status"] in ("completed", "failed") else ["  try: tenuto run   (go on)"]),
    ]
    return Answer(found, lines, 0 if decision != "reject" else answer.status)


def _command(decision: str, what: str, feedback_help: str) -> Any:
    @click.command(
        decision,
        cls=Command,
        help=what,
        examples=[
            (f"tenuto {decision}", "the current run"),
            (f"tenuto {decision} dark-mode --feedback 'why'", "another, with a reason"),
        ],
    )
    @run_argument
    @click.option("--feedback", default="", help=feedback_help)
    @click.option(
        "--sign-with", "key", default=None, metavar="KEY", help="An ssh private key, where decisions are signed."
    )
    @click.option("--as", "name", default="", metavar="NAME", help="Your name in the list of signers.")
    def decided(run: str | None, feedback: str, key: str | None, name: str) -> Answer:
        return _decide(run, decision, feedback, key, name)

    return decided


approve = _command("approve", "Let a run pass its gate, for exactly what was shown.", "Words for the record.")
reject = _command("reject", "Refuse at a gate: the run ends as failed.", "Why.")
revise = _command(
    "revise", "Send the step back with your feedback: it runs again, and what follows it.", "What should change."
)
