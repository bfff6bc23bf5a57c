"""`tenuto completion`"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tenuto.entrypoints.cli.frame import Answer, Command
from tenuto.errors import TenutoError


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
def command(shell: str) -> Answer:
    """Completion for your shell: commands, options, and the names of runs."""
    from tenuto.entrypoints.cli.program import program

    maker = get_completion_class(shell)
    if maker is None:
        raise TenutoError("no-completion", f"this version of click cannot complete for {shell}")
    script = maker(program, {}, "tenuto", "_TENUTO_COMPLETE").source()
    return Answer({"shell": shell, "script": script}, raw=script.encode())
