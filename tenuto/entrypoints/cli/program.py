"""`tenuto` as click sees it: the table of commands, and what is true for all of them.

A command's module is imported when it is called; its line in the help stands in the table, so
that help costs no imports either. `tenuto completion` is defined here: it needs the whole program.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import click
from click.shell_completion import get_completion_class

from tenuto.entrypoints.cli import frame
from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.entrypoints.speak import enter
from tenuto.errors import BadInput, TenutoError

HotCommand = Callable[[list[str]], int]

Commands = dict[str, click.Command]


class Row(NamedTuple):
    commands: Callable[[], Commands]
    """The module's commands by name, among them this one."""
    line: str


def _run() -> Commands:
    from tenuto.entrypoints.cli import run

    return {"run": run.run_}


def _plan() -> Commands:
    from tenuto.entrypoints.cli import plan

    return {"plan": plan.plan}


def _pipeline() -> Commands:
    from tenuto.entrypoints.cli import pipeline

    return {"pipeline": pipeline.pipeline, "pipelines": pipeline.pipelines, "roles": pipeline.roles}


def _steer() -> Commands:
    from tenuto.entrypoints.cli import steer

    return {
        "approve": steer.approve,
        "reject": steer.reject,
        "revise": steer.revise,
        "pause": steer.pause,
        "resume": steer.resume,
        "release": steer.release,
        "cancel": steer.cancel,
        "retry": steer.retry,
        "answer": steer.answer,
    }


def _branching() -> Commands:
    from tenuto.entrypoints.cli import branching

    return {"fork": branching.fork, "replay": branching.replay}


def _guide() -> Commands:
    from tenuto.entrypoints.cli import guide

    return {"next": guide.next_, "report": guide.report}


def _mcp() -> Commands:
    from tenuto.entrypoints.cli import guide

    return {"mcp": guide.mcp_}


def _queue() -> Commands:
    from tenuto.entrypoints.cli import queue

    return {"queue": queue.queue, "up": queue.up, "runs": queue.runs, "costs": queue.costs}


def _change() -> Commands:
    from tenuto.entrypoints.cli import change

    return {"diff": change.diff, "pr": change.pr}


def _look() -> Commands:
    from tenuto.entrypoints.cli import look

    return {
        "list": look.list_runs,
        "history": look.history,
        "artifacts": look.artifacts,
        "memory": look.memory,
        "show": look.show,
    }


def _status() -> Commands:
    from tenuto.entrypoints.cli import look

    return {"status": look.status}


def _watch() -> Commands:
    from tenuto.entrypoints.cli import watch

    return {"watch": watch.watch}


def _ui() -> Commands:
    from tenuto.entrypoints.cli import ui

    return {"ui": ui.ui}


def _page() -> Commands:
    from tenuto.entrypoints.cli import ui

    return {"page": ui.page}


def _metrics() -> Commands:
    from tenuto.entrypoints.cli import look

    return {"metrics": look.metrics}


def _logs() -> Commands:
    from tenuto.entrypoints.cli import watch

    return {"logs": watch.logs}


def _setup() -> Commands:
    from tenuto.entrypoints.cli import setup

    return {"setup": setup.setup}


def _config() -> Commands:
    from tenuto.entrypoints.cli import config

    return {"init": config.init, "config": config.config}


def _trust() -> Commands:
    from tenuto.entrypoints.cli import config

    return {"trust": config.trust}


def _adopt() -> Commands:
    from tenuto.entrypoints.cli import setup

    return {"adopt": setup.adopt}


def _backup() -> Commands:
    from tenuto.entrypoints.cli import backup

    return {"export": backup.export, "import": backup.import_, "forget": backup.forget}


def _clean() -> Commands:
    from tenuto.entrypoints.cli import branching

    return {"clean": branching.clean}


def _move() -> Commands:
    from tenuto.entrypoints.cli import backup

    return {"move": backup.move, "join": backup.join}


def _check() -> Commands:
    from tenuto.entrypoints.cli import check

    return {"verify": check.verify, "repair": check.repair}


def _machines() -> Commands:
    from tenuto.entrypoints.cli import machines

    return {
        "worker": machines.worker,
        "attempt": machines.attempt,
        "workers": machines.workers,
        "cluster": machines.cluster,
    }


def _doctor() -> Commands:
    from tenuto.entrypoints.cli import check

    return {"doctor": check.doctor}


def _own() -> Commands:
    return {"help": help_, "completion": completion, "demo": demo}


# Sections and commands are listed in this order.
SECTIONS: dict[str, dict[str, Row]] = {
    "Run": {
        "run": Row(_run, "Take a request through a pipeline, or go on with the current run."),
        "plan": Row(_plan, "The graph, the worst case and the cost, before anything starts."),
        "approve": Row(_steer, "Let a run pass its gate, for exactly what was shown."),
        "reject": Row(_steer, "Refuse at a gate: the run ends as failed."),
        "revise": Row(_steer, "Send a step back with your feedback."),
        "pause": Row(_steer, "Start nothing more until somebody resumes the run."),
        "resume": Row(_steer, "Go on: after a pause, a crash, a decision."),
        "release": Row(_steer, "Let go of a run: from here it is led by hand."),
        "cancel": Row(_steer, "End a run for good, its agents too."),
        "retry": Row(_steer, "Go back to a step, and on from there."),
        "answer": Row(_steer, "Answer an agent's question."),
        "fork": Row(_branching, "A new run that goes on from a step of another."),
        "replay": Row(_branching, "What an edited pipeline would have made of a run."),
        "queue": Row(_queue, "Requests that wait for their turn."),
        "up": Row(_queue, "Work off the queue and the schedules."),
        "next": Row(_guide, "Hand out what is to be done, for another orchestrator."),
        "report": Row(_guide, "Take in what came of something handed out."),
        "pr": Row(_change, "A run's branch as a pull request."),
        "mcp": Row(_mcp, "Serve the runs to models, over the Model Context Protocol."),
    },
    "Make": {
        "pipeline": Row(_pipeline, "Begin, check, show and try out a pipeline of your own."),
        "pipelines": Row(_pipeline, "Which pipelines there are: yours, those that ship, the cookbook."),
        "roles": Row(_pipeline, "Which roles there are: yours, those of agent programs, those that ship."),
    },
    "Look": {
        "list": Row(_look, "Runs, newest first."),
        "runs": Row(_queue, "All runs at a glance: what needs you, who drives what, in which tree."),
        "status": Row(_status, "Where a run stands and what it waits for."),
        "watch": Row(_watch, "A run while it goes on, until it ends or waits for you."),
        "ui": Row(_ui, "See every run in a browser, and decide there."),
        "page": Row(_page, "A run as one file, for a pull request."),
        "history": Row(_look, "What happened in a run, when, by whom."),
        "metrics": Row(_metrics, "How long, what was saved, what was repeated, what it cost."),
        "costs": Row(_queue, "What all runs have cost, by week, pipeline, role, agent, model."),
        "logs": Row(_logs, "What agents were told and what they said."),
        "diff": Row(_change, "What a run, an attempt or a gate changed."),
        "artifacts": Row(_look, "What a run has made, and which attempt made it."),
        "memory": Row(_look, "What a run remembers, and what the project does."),
        "show": Row(_look, "The events of a run, or any stored version of a file."),
    },
    "Keep": {
        "init": Row(_config, "Start a journal in this repository."),
        "config": Row(_config, "Which settings count, from where, and what is wrong."),
        "adopt": Row(_adopt, "Take over state files that were here before."),
        "export": Row(_backup, "A backup, as JSON lines."),
        "import": Row(_backup, "Read a backup back."),
        "move": Row(_move, "Keep the journal in a PostgreSQL, for several machines; or here again."),
        "join": Row(_move, "Use the journal that another checkout has moved to a PostgreSQL."),
        "clean": Row(_clean, "Remove work trees and branches of attempts that are over."),
        "forget": Row(_backup, "Take a leaked secret out of everything Tenuto keeps."),
    },
    "Connect": {
        "trust": Row(_trust, "Look at what this repository would run, and say that it may."),
        "setup": Row(_setup, "Let an agent program call Tenuto on its events."),
    },
    "Many machines": {
        "cluster": Row(_machines, "Prepare a database that machines share."),
        "workers": Row(_machines, "Who is there, what waits, what came too late."),
        "worker": Row(_machines, "Carry out attempts of runs that are driven elsewhere."),
        "attempt": Row(_machines, "Carry out one of them, and end."),
    },
    "Mend": {
        "verify": Row(_check, "Is everything as it was written?"),
        "repair": Row(_check, "Bring files back in line with the journal."),
        "doctor": Row(_doctor, "What about this machine could hurt, and the fix."),
        "completion": Row(_own, "Completion for your shell."),
        "help": Row(_own, "What a command does: tenuto help run."),
        "demo": Row(_own, "Watch a run from request to result, without a model."),
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
        return [*COMMANDS, *SPOKEN]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            return COMMANDS[name].commands()[name]
        return _pass_on(name) if name in SPOKEN else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
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
                formatter.write_dl([(name, row.line) for name, row in section.items()])
        with formatter.section("Speak a dialect"):
            formatter.write_dl(list(SPOKEN.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_text(EXITS)


def _pass_on(name: str) -> click.Command:
    """A hot command that was reached through click (`tenuto --json context ...`): its words are its own."""

    @click.command(
        name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    )
    @click.pass_context
    def passed(ctx: click.Context) -> int:
        words = [*ctx.args, "--json"] if ctx.meta.get(frame.JSON) else ctx.args
        hot: dict[str, HotCommand] = ctx.find_root().obj
        return hot[name](words)

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


def run(words: list[str], hot: dict[str, HotCommand]) -> int:
    """Everything that is not hot. Returns the exit status, or raises what launch explains.

    `hot`: the commands that need no click, for `tenuto --json context ...`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows an escape for what it has no letter for.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = program.main(args=words, prog_name="tenuto", standalone_mode=False, obj=hot)
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


@click.command(
    "completion",
    cls=Command,
    examples=[
        ('eval "$(tenuto completion bash)"', "in ~/.bashrc"),
        ('eval "$(tenuto completion zsh)"', "in ~/.zshrc"),
        ("tenuto completion fish | source", "in ~/.config/fish/config.fish"),
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> Answer:
    """Completion for your shell: commands, options, and the names of runs."""

    maker = get_completion_class(shell)
    if maker is None:
        raise TenutoError("no-completion", f"this version of click cannot complete for {shell}")
    script = maker(program, {}, "tenuto", "_TENUTO_COMPLETE").source()
    return Answer({"shell": shell, "script": script}, raw=script.encode())


@click.command("help", cls=Command, examples=[("tenuto help run", "what `tenuto run --help` says")])
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> Answer:
    """What a command does, with examples and options."""
    root = ctx.find_root()
    if words and words[0] in SPOKEN:
        hot: dict[str, HotCommand] = root.obj
        return Answer({}, status=hot[words[0]](["--help"]))
    at, command = root, root.command
    for word in words:
        if not isinstance(command, click.Group):
            break
        named, found, _ = command.resolve_command(at, [word])
        if found is None:
            raise BadInput("unknown-command", f"there is no command {word!r}", "tenuto --help")
        at, command = click.Context(found, parent=at, info_name=named), found
    text = command.get_help(at)
    return Answer({"help": text}, text.splitlines())


@click.command("demo", cls=Command, examples=[("tenuto demo --remove", "watch it, and keep nothing")])
@click.option("--remove", is_flag=True, help="Remove the project of the demo at the end.")
def demo(remove: bool) -> Answer:
    """The eight steps on a small real project, with scripted agents, a kill in the middle, and every claim checked."""
    words = [sys.executable, "-I", "-m", "tenuto.demo", *(["--remove"] if remove else [])]
    return Answer({}, status=subprocess.run(words, check=False).returncode)
