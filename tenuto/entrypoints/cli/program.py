"""`tenuto` as click sees it: the table of commands, and what is true for all of them.

A command's module is imported when it is called; its line in the help stands in the table, so
that help costs no imports either.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from tenuto.entrypoints.cli import frame
from tenuto.entrypoints.launch import HOT, enter
from tenuto.errors import BadInput

# name -> (module, one line). Sections and commands are listed in this order.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "run": (
            "tenuto.entrypoints.cli.run:command",
            "Take a request through a pipeline, or go on with the current run.",
        ),
        "plan": ("tenuto.entrypoints.cli.plan", "The graph, the worst case and the cost, before anything starts."),
        "approve": ("tenuto.entrypoints.cli.decisions:approve", "Let a run pass its gate, for exactly what was shown."),
        "reject": ("tenuto.entrypoints.cli.decisions:reject", "Refuse at a gate: the run ends as failed."),
        "revise": ("tenuto.entrypoints.cli.decisions:revise", "Send a step back with your feedback."),
        "pause": ("tenuto.entrypoints.cli.steering:pause", "Start nothing more until somebody resumes the run."),
        "resume": ("tenuto.entrypoints.cli.steering:resume", "Go on: after a pause, a crash, a decision."),
        "release": ("tenuto.entrypoints.cli.steering:release", "Let go of a run: from here it is led by hand."),
        "cancel": ("tenuto.entrypoints.cli.steering:cancel", "End a run for good, its agents too."),
        "retry": ("tenuto.entrypoints.cli.steering:retry", "Go back to a step, and on from there."),
        "answer": ("tenuto.entrypoints.cli.steering:answer", "Answer an agent's question."),
        "fork": ("tenuto.entrypoints.cli.branching:fork", "A new run that goes on from a step of another."),
        "replay": ("tenuto.entrypoints.cli.branching:replay", "What an edited pipeline would have made of a run."),
        "next": ("tenuto.entrypoints.cli.guiding:next_", "Hand out what is to be done, for another orchestrator."),
        "report": ("tenuto.entrypoints.cli.guiding:report", "Take in what came of something handed out."),
        "mcp": ("tenuto.entrypoints.cli.mcp", "Serve the runs to models, over the Model Context Protocol."),
    },
    "Look": {
        "list": ("tenuto.entrypoints.cli.list", "Runs, newest first."),
        "status": ("tenuto.entrypoints.cli.status", "Where a run stands and what it waits for."),
        "watch": ("tenuto.entrypoints.cli.watch", "A run while it goes on, until it ends or waits for you."),
        "history": ("tenuto.entrypoints.cli.history", "What happened in a run, when, by whom."),
        "metrics": ("tenuto.entrypoints.cli.metrics", "How long, what was saved, what was repeated, what it cost."),
        "logs": ("tenuto.entrypoints.cli.logs", "What agents were told and what they said."),
        "artifacts": ("tenuto.entrypoints.cli.artifacts", "What a run has made, and which attempt made it."),
        "memory": ("tenuto.entrypoints.cli.memory", "What a run remembers, and what the project does."),
        "show": ("tenuto.entrypoints.cli.show", "The events of a run, or any stored version of a file."),
    },
    "Keep": {
        "init": ("tenuto.entrypoints.cli.init", "Start a journal in this repository."),
        "adopt": ("tenuto.entrypoints.cli.adopt", "Take over state files that were here before."),
        "export": ("tenuto.entrypoints.cli.export", "A backup, as JSON lines."),
        "import": ("tenuto.entrypoints.cli.import_", "Read a backup back."),
        "clean": ("tenuto.entrypoints.cli.clean", "Remove work trees and branches of attempts that are over."),
        "forget": ("tenuto.entrypoints.cli.forget", "Take a leaked secret out of everything Tenuto keeps."),
    },
    "Connect": {
        "setup": ("tenuto.entrypoints.cli.setup", "Let an agent program call Tenuto on its events."),
    },
    "Mend": {
        "verify": ("tenuto.entrypoints.cli.verify", "Is everything as it was written?"),
        "repair": ("tenuto.entrypoints.cli.repair", "Bring files back in line with the journal."),
        "doctor": ("tenuto.entrypoints.cli.doctor", "What about this machine could hurt, and the fix."),
        "completion": ("tenuto.entrypoints.cli.completion", "Completion for your shell."),
    },
}
COMMANDS = {name: row for section in SECTIONS.values() for name, row in section.items()}
SPOKEN = {
    "context": "Task context for orchestrators: INIT, START_PHASE, STORE, RETRIEVE, ...",
    "flow": "The flow state of a ticket.",
    "staged": "The staged state of a task.",
    "feature": "The feature state of a session.",
    "hook": "What an agent program calls on its events.",
}
EXAMPLES = [
    ("tenuto init", "start a journal in this repository"),
    ("tenuto list", "every run, newest first"),
    ("tenuto status dark-mode", "where one run stands and what it waits for"),
    ("tenuto export -o backup.jsonl", "keep a copy"),
]
EXITS = (
    "0 done, 1 failed, 2 wrong command line, 3 not found, 4 refused by a rule, 5 waiting for a person, "
    "6 journal of a newer Tenuto, 130 interrupted."
)


class Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *present_hot()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            module, _, attribute = COMMANDS[name][0].partition(":")
            command: click.Command = getattr(__import__(module, fromlist=["command"]), attribute or "command")
            return command
        return _pass_on(name) if name in present_hot() else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            raise BadInput(
                "unknown-command",
                f"there is no command {args[0]!r}",
                f"tenuto {near[0]}" if near else "tenuto --help",
            )
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        frame.write_examples(EXAMPLES, formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in section.items()])
        if present_hot():
            with formatter.section("Speak a dialect"):
                formatter.write_dl([(name, SPOKEN[name]) for name in present_hot()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_text(EXITS)


def present_hot() -> list[str]:
    """Those hot commands that this version has."""
    from importlib.util import find_spec

    return [name for name in SPOKEN if name in HOT and find_spec(f"tenuto.entrypoints.{name}")]


def _pass_on(name: str) -> click.Command:
    """A hot command that was reached through click (`tenuto --json context ...`): its words are its own."""

    @click.command(
        name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    )
    @click.pass_context
    def passed(ctx: click.Context) -> int:
        words = [*ctx.args, "--json"] if ctx.meta.get(frame.JSON) else ctx.args
        status: int = __import__(f"tenuto.entrypoints.{name}", fromlist=["main"]).main(words)
        return status

    return passed


def _change_folder(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None and not ctx.resilient_parsing:
        enter(value)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from tenuto import __version__

        click.echo(f"tenuto {__version__}")
        ctx.exit(0)


@click.group(cls=Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-C", "folder", metavar="DIR", expose_value=False, callback=_change_folder, help="Act as if started in DIR."
)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object; also after the command.")
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="The version."
)
@click.pass_context
def program(ctx: click.Context, as_json: bool) -> None:
    """Hold AI coding agents to the score: runs, gates, caps and their records."""
    ctx.meta[frame.JSON] = as_json
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(words: list[str]) -> int:
    """Everything that is not hot. Returns the exit status, or raises what launch explains."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows an escape for what it has no letter for.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = program.main(args=words, prog_name="tenuto", standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "tenuto"
        raise BadInput("bad-usage", error.format_message(), f"{path} --help") from None
    except click.ClickException as error:
        raise BadInput("bad-usage", error.format_message()) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as done:  # click's own completion ends like this
        status = done.code
    return status if isinstance(status, int) else 0
