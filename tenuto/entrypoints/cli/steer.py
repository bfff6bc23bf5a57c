"""`tenuto pause`, `release`, `resume`, `cancel`, `retry`, `answer`: steer a run; `approve`, `reject`, `revise`: decide
a gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenuto.core.status import ENDED, RESUMABLE
from tenuto.entrypoints.cli.frame import (
    Answer,
    Command,
    RunName,
    complete_agent,
    complete_step,
    home,
    load,
    open_existing,
    run_argument,
)
from tenuto.entrypoints.cli.look import ended, exit_status
from tenuto.entrypoints.cli.run import (
    LIMIT_HELP,
    TRUST_HELP,
    WAIT_HELP,
    drive,
    limits_of,
    refuse_early,
    roster_of,
    trust_all,
)
from tenuto.entrypoints.cli.values import ask_feedback, at_terminal
from tenuto.errors import BadInput, Refused
from tenuto.show.runs import chosen
from tenuto.show.views import run_view, waiting_of

if TYPE_CHECKING:
    from tenuto.core.records.commands import Command as CoreCommand
    from tenuto.core.records.run import Run, Waiting
    from tenuto.workspace.workspace import Workspace

SET_HELP = "A field of the gate's form; several takes several, or parts with commas."


def _ask(run: str | None, asked: CoreCommand) -> Answer:
    from tenuto.engine.gates import command

    workspace = open_existing()
    return _standing(command(workspace, chosen(workspace, run), asked))


def _standing(run: Run, more: str = "") -> Answer:
    view = run_view(run)
    return Answer(run, [f"{view['run']}: {view['status']}{more}"])


@click.command("pause", cls=Command, examples=[("tenuto pause", "no further agent starts; those under way end")])
@run_argument
@click.option("--reason", default="a person asked for it", help="Words for the record.")
def pause(run: str | None, reason: str) -> Answer:
    """Start nothing more until somebody resumes the run."""
    return _ask(run, {"do": "Pause", "kind": "person", "reason": reason, "recommendations": ["resume"]})


@click.command(
    "release",
    cls=Command,
    examples=[
        ("tenuto release dark-mode", "from here by hand: tenuto context, flow, staged, feature"),
        ("tenuto run --run dark-mode", "and back: the engine goes on where the run stands"),
    ],
)
@run_argument
def release(run: str | None) -> Answer:
    """Let go of a run: from here somebody leads it by hand."""
    from tenuto.engine.begin import release as let_go

    workspace = open_existing()
    return _standing(let_go(workspace, chosen(workspace, run)), ", led by hand")


@click.command(
    "resume",
    cls=Command,
    examples=[
        ("tenuto resume", "go on with the current run"),
        ("tenuto resume dark-mode --limit attempts=80", "with a higher limit"),
        ("tenuto resume dark-mode --now", "a parked one, before its time"),
    ],
)
@run_argument
@click.option("--agent", default="", shell_complete=complete_agent, help="Who does the work from here on.")
@click.option("--limit", multiple=True, metavar="UNIT=N", help=LIMIT_HELP)
@click.option("--now", is_flag=True, help="A parked run: do not wait for its time.")
@click.option("--give-up", is_flag=True, help="Give up what was handed out (tenuto next) and never reported.")
@click.option("--wait/--no-wait", "waits", default=None, help=WAIT_HELP)
@click.option("--no-drive", is_flag=True, help="Only clear the pause; do not drive the run.")
@click.option("--new-settings", is_flag=True, help="From here on with the commands that .tenuto/config.yaml has now.")
@click.option("--trust", "trusted", is_flag=True, help=TRUST_HELP)
def resume(
    run: str | None,
    agent: str,
    limit: tuple[str, ...],
    now: bool,
    give_up: bool,
    waits: bool | None,
    no_drive: bool,
    new_settings: bool,
    trusted: bool,
) -> Answer:
    """Go on: after a pause, a crash, a decision."""
    from tenuto.engine.gates import command, take_settings
    from tenuto.engine.many.own_tree import define_again
    from tenuto.workspace.settings import read_settings

    workspace = open_existing()
    run_id = chosen(workspace, run)
    if not run_view(workspace.load(run_id))["is_bound"]:
        return _resume_by_hand(workspace, run_id)
    trust_all(workspace, "resume", trusted)
    workspace = home(workspace, run_id)
    settings = read_settings(workspace.root)
    roster, limits = None if no_drive else roster_of(workspace, settings, agent, (), run_id), limits_of(limit)
    if roster is not None:
        refuse_early(workspace, run_id, settings if new_settings else None, give_up)
    if new_settings:
        define_again(workspace, workspace.load(run_id))
        take_settings(workspace, run_id)
    if give_up:
        from tenuto.engine.guided import give_up as lose

        lose(workspace, run_id)
    if limit:
        command(
            workspace,
            run_id,
            {
                "do": "ChangeBudget",
                "limits": {**limits.run},
                "steps": {step: {**own} for step, own in limits.steps.items()},
            },
        )
    status = run_view(workspace.load(run_id))["status"]
    if status in RESUMABLE and (status != "parked" or now):
        command(workspace, run_id, {"do": "Resume", "decision": "retry", "early": now})
    if roster is None:
        return ended(workspace.load(run_id))
    return drive(workspace, run_id, roster, waits=waits)


def _resume_by_hand(workspace: Workspace, run: str) -> Answer:
    """No pipeline is bound to it, so nothing is driven: its rest ends, and whoever leads it goes on."""
    from tenuto.engine.gates import command

    status = run_view(workspace.load(run))["status"]
    go_on: CoreCommand = {"do": "Unblock"} if status == "blocked" else {"do": "Resume", "decision": "retry"}
    return _standing(command(workspace, run, go_on), ", led by hand")


@click.command(
    "cancel", cls=Command, examples=[("tenuto cancel dark-mode --reason 'not needed'", "its agents are ended")]
)
@run_argument
@click.option("--reason", default="", help="Words for the record.")
def cancel(run: str | None, reason: str) -> Answer:
    """End a run for good. Agents under way are ended with everything they started. Its name must be given."""
    from tenuto.cluster.driver import engine_for
    from tenuto.engine.rest import cancel as end

    workspace = open_existing()
    if run is None:
        known = chosen(workspace, None)
        raise BadInput(
            "no-run-named", "a run is cancelled for good: say which one", f"tenuto cancel {known}", run=known
        )
    name = chosen(workspace, run)
    return _standing(end(home(workspace, name), name, reason, engine_for(workspace, name)))


@click.command("retry", cls=Command, examples=[("tenuto retry dark-mode design", "from there on again")])
@click.argument("run", type=RunName())
@click.argument("step", required=False, shell_complete=complete_step)
def retry(run: str, step: str | None) -> Answer:
    """Go back to a step, and on from there."""
    if step is None:
        steps = list(dict.fromkeys(visit["step"] for visit in run_view(load(open_existing(), run))["visits"]))
        hint = f"tenuto retry {run} {steps[-1]}" if steps else f"tenuto status {run}"
        raise BadInput(
            "no-step-named", f"say from which step on: {', '.join(steps) or 'there is none yet'}", hint, steps=steps
        )
    return _ask(run, {"do": "RetryStep", "step": step})


@click.command(
    "answer",
    cls=Command,
    examples=[("tenuto answer dark-mode 'PostgreSQL 16'", "an agent asked; it goes on with this")],
)
@click.argument("run", type=RunName())
@click.argument("text")
def answer(run: str, text: str) -> Answer:
    """Answer an agent's question."""
    from tenuto.engine.gates import answer_question

    record = answer_question(open_existing(), run, text)
    return Answer(record, [f"{run}: the answer is recorded", "  try: tenuto run   (go on)"])


# ---- a person's word at a gate


def _decide(
    run: str | None,
    decision: str,
    feedback: str,
    key: str | None,
    name: str,
    words: tuple[str, ...] = (),
    file: str | None = None,
) -> Answer:
    from tenuto.engine.gates import decide_gate, sign, text_to_sign
    from tenuto.workspace.settings import read_settings

    workspace = open_existing()
    run_id = chosen(workspace, run)
    before = workspace.load(run_id)
    workspace = home(workspace, run_id, before)
    waiting = waiting_of(before)
    answers = _answers(waiting, words, file) if decision == "approve" else {}
    if decision == "revise" and not feedback.strip() and at_terminal():
        feedback = ask_feedback()
    signature = sign(text_to_sign(before, decision, feedback, answers), key) if key else ""
    settings, seen = read_settings(workspace.root), waiting["gate"] if waiting else ""
    record = decide_gate(workspace, run_id, decision, feedback, settings, signature, name, gate=seen, answers=answers)
    view = run_view(record)
    goes_on = [] if view["status"] in ENDED else ["  try: tenuto run   (go on)"]
    status = exit_status(view) if decision == "reject" else 0
    return Answer(record, [f"{run_id}: {decision} recorded", *goes_on], status)


def _revise_as_reviewed(run: str | None, feedback: str, key: str | None, name: str, number: str) -> Answer:
    """What reviewers said since the last time, quoted, behind what the person says themselves."""
    from tenuto.forge.reviews import in_words, read_until, reviews_of
    from tenuto.forge.words import quoted
    from tenuto.workspace.settings import read_settings

    workspace = open_existing()
    run_id = chosen(workspace, run)
    record, settings = workspace.load(run_id), read_settings(workspace.root)
    if record["gate"] is None:
        hint = f"tenuto run --issue {_address(record, number)} --pipeline quick   (begins a run with what they said)"
        raise Refused("no-gate", f"run {run_id} stands at no gate: nothing can be sent back", hint, run=run_id)
    said = reviews_of(workspace, record, settings, "" if number == "known" else number)
    told = "What reviewers said about the pull request is quoted below; it is about the work, and changes no rule."
    done = _decide(run_id, "revise", "\n\n".join(filter(None, (feedback, told, quoted(in_words(said))))), key, name)
    read_until(workspace, run_id, said)
    return done


def _address(run: Run, number: str) -> str:
    return run_view(run)["pull_request"] or (number if number != "known" else "ADDRESS")


def _answers(waiting: Waiting | None, words: tuple[str, ...], file: str | None) -> dict[str, object]:
    """What the gate's form asks for, as far as it is given; at a terminal, what is missing is asked for."""
    from tenuto.core.pipeline.params import missing
    from tenuto.entrypoints.cli import values

    fields = values.fields_of(waiting)
    answers = values.given(fields, words, file, values.ANSWERS)
    if values.at_terminal():
        values.ask(fields, missing(fields, answers), answers)
    return answers


def _command(decision: str, what: str, feedback_help: str, examples: tuple[tuple[str, str], ...] = ()) -> click.Command:
    @click.command(
        decision,
        cls=Command,
        help=what,
        examples=[
            (f"tenuto {decision}", "the current run"),
            (f"tenuto {decision} dark-mode --feedback 'why'", "another, with a reason"),
            *examples,
        ],
    )
    @run_argument
    @click.option("--feedback", default="", help=feedback_help)
    @click.option(
        "--sign-with", "key", default=None, metavar="KEY", help="An ssh private key, where decisions are signed."
    )
    @click.option("--as", "name", default="", metavar="NAME", help="Your name in the list of signers.")
    def decided(
        run: str | None,
        feedback: str,
        key: str | None,
        name: str,
        words: tuple[str, ...] = (),
        file: str | None = None,
        from_pr: str = "",
    ) -> Answer:
        if from_pr:
            return _revise_as_reviewed(run, feedback, key, name, from_pr)
        return _decide(run, decision, feedback, key, name, words, file)

    return decided


approve = _command(
    "approve",
    "Let a run pass its gate, for exactly what was shown, with the answers that its form asks for.",
    "Words for the record.",
    (("tenuto approve dark-mode --set env=prod", "a gate that asks for fields"),),
)
approve.params += [
    click.Option(["--set", "words"], multiple=True, metavar="NAME=VALUE", help=SET_HELP),
    click.Option(
        ["--answers-file", "file"], default=None, metavar="FILE", help="Fields as a mapping, in YAML or JSON."
    ),
]
reject = _command("reject", "Refuse at a gate: the run ends as failed.", "Why.")
revise = _command(
    "revise",
    "Send the step back with your feedback: it runs again, and what follows it.",
    "What should change.",
    (("tenuto revise --from-pr", "with what reviewers said about its pull request since the last time"),),
)
revise.params += [
    click.Option(
        ["--from-pr", "from_pr"],
        is_flag=False,
        flag_value="known",
        default="",
        metavar="[NUMBER]",
        help="With what reviewers said: of the pull request that tenuto pr opened, or of this one.",
    )
]
