"""Values with a type, as people give them: the parameters of a pipeline (`--param`), the fields of a gate (`--set`).

    given(declared, words, file, of)     from NAME=VALUE words and a file; the words count more
    ask(declared, names, values)         at a terminal, one by one, until each fits
    ask_feedback()                       at a terminal, what should change
    at_terminal()                        is there somebody to ask?

What fits is decided in core (core/pipeline/params.py). What does not fit here stays as it was typed, and core names it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from tenuto.core.pipeline.params import as_text, describe, from_text, wrong
from tenuto.core.records.run import Param, Waiting
from tenuto.encoding import escape_terminal
from tenuto.errors import BadInput, NotFound


class Wording(NamedTuple):
    """What the values are called where they are given."""

    option: str  # --param
    file: str  # --params-file
    several: str  # parameters
    code: str  # of what is wrong with them


PARAMS = Wording("--param", "--params-file", "parameters", "bad-params")
ANSWERS = Wording("--set", "--answers-file", "answers", "bad-answers")


def fields_of(waiting: Waiting | None) -> dict[str, Param]:
    """The form of the gate that a run waits at, by name."""
    return {field["name"]: field for field in waiting["fields"]} if waiting else {}


def given(declared: Mapping[str, Param], words: Iterable[str], file: str | None, of: Wording) -> dict[str, object]:
    """A list may be given in parts: --param modules=a --param modules=b,c."""
    values = {} if file is None else _from_file(file, of)
    in_words: dict[str, object] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            form = f"{of.option} NAME=VALUE"
            raise BadInput("bad-usage", f"'{word}' is not of the form {form}", f"{of.option} target=web")
        value = from_text(declared[name], text) if name in declared else text
        earlier = in_words.get(name)
        in_words[name] = [*earlier, *value] if isinstance(earlier, list) and isinstance(value, list) else value
    return {**values, **in_words}


def _from_file(file: str, of: Wording) -> dict[str, object]:
    from tenuto.knowledge.plain_data import source_of

    if not Path(file).is_file():
        raise NotFound("no-file", f"there is no file {file}", f"{of.file} FILE: a mapping, as YAML or JSON")
    data = source_of(Path(file)).data
    if not isinstance(data, dict):
        raise BadInput(of.code, f"{file} holds no mapping of {of.several}", "for example target: web")
    return {**data}


def at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_feedback() -> str:
    """What should change: asked until something is said."""
    while True:
        feedback: str = click.prompt("what should change", default="", show_default=False, err=True)
        if feedback.strip():
            return feedback
        click.echo("a step is sent back with words: say what should change", err=True)


def ask(declared: Mapping[str, Param], names: Iterable[str], values: dict[str, object]) -> None:
    """Each is asked for until it fits. Nothing, where it has a default or may be left out, leaves it out."""
    for name in names:
        param = declared[name]
        value = click.prompt(
            escape_terminal(f"{name} ({describe(param)})"),
            default=_offered(param),
            show_default=param["default"] is not None,
            value_proc=lambda text, param=param: _read(param, text),
            err=True,
        )
        if value is not None:
            values[name] = value


def _offered(param: Param) -> str | None:
    if param["default"] is not None:
        return as_text(param["default"])
    return None if param.get("required", True) else ""


def _read(param: Param, text: str) -> object:
    if not text and not param.get("required", True):
        return None
    value = from_text(param, text)
    problem = wrong(param, value)
    if problem:
        raise click.BadParameter(problem)
    return value
