"""What is typed after a hot command. Every word becomes a named field, or it is refused: nothing is guessed or dropped.

    tenuto flow update_delegation T-1 --agent plan_work                    a plain word; an option and its value
    tenuto staged init '{"task": "Dark mode"}'                             a JSON object as a word
    echo '{"agent": "plan_work"}' | tenuto flow update_delegation T-1      a JSON object on standard input

- A command lists its plain words and its options. Any other word, option or field of an object is refused with the
  nearest known one. Capitals, `-` and `_` inside a name make no difference.
- `--name value` or `--name=value`. A word that begins with `-` is never taken for a value, except a number and a text
  with blanks: a value that was forgotten is said. `--name=-x` gives such a value, and behind `--` every word is plain.
- The same field twice, by option, word or object, is refused, unless the option may be repeated.
- `--help` and `-h` anywhere before `--` show the help, and nothing is done.
- What is piped in is read. `-` waits for it; a pipe on which nothing comes is passed over with a warning.

Hot commands load this module, so it imports nothing heavy.
"""

from __future__ import annotations

import sys

from tenuto.encoding import NotJson, dumps, loads_strict
from tenuto.entrypoints.speak import is_fed
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Literal

    from tenuto.core.records.run import Json

    # text: as it is typed. word: a text; in an object also a number. json: what is JSON is read as JSON. object: a JSON
    # object. texts: may be repeated, a list. file: a path; `-` is standard input, which fills the command's `content`.
    # switch: alone, or with true or false. flag: alone; sets `value`.
    Kind = Literal["text", "word", "json", "object", "texts", "file", "switch", "flag"]

_LONGEST = 1 << 26  # bytes on standard input
_HELP = ("--help", "-h")


class Option:
    """How one option is read, and which field it fills: the one of its own name, if no other is named."""

    __slots__ = ("field", "kind", "value")

    def __init__(self, kind: Kind, field: str = "", value: object = True) -> None:
        self.kind = kind
        self.field = field
        self.value = value


class Command:
    """What a command takes.

    `plain`: fields of the plain words, in order; one that ends in `...` takes all that are left, joined by blanks;
    one that ends in `[]` takes them as a list. `options`: names without their dashes, in the spelling of the help
    (`m` is `-m`). `required`: fields without which the command is not called. `content`: the field that a file `-`
    fills; what is piped in does, too, where `instead` names fields, none of them is given, and nothing required is
    missing. `is_open`: an object may hold further fields. `words_only`: no object is taken, and a word that begins
    with `{` is a word.
    """

    __slots__ = ("content", "instead", "is_open", "options", "plain", "required", "words_only")

    def __init__(
        self,
        plain: tuple[str, ...] = (),
        options: Mapping[str, Option] | None = None,
        required: tuple[str, ...] = (),
        content: str = "",
        instead: tuple[str, ...] = (),
        is_open: bool = False,
        words_only: bool = False,
    ) -> None:
        self.plain = plain
        self.options: dict[str, Option] = {**(options or {}), **_ALWAYS}
        self.required = required
        self.content = content
        self.instead = instead
        self.is_open = is_open
        self.words_only = words_only


class Call:
    """One command with its fields."""

    __slots__ = ("as_json", "fields", "name")

    def __init__(self, name: str, fields: Json, as_json: bool) -> None:
        self.name = name
        self.fields = fields
        self.as_json = as_json


_ALWAYS = {"json": Option("flag")}
TEXT, WORD, JSON, OBJECT = Option("text"), Option("word"), Option("json"), Option("object")
TEXTS, FILE, SWITCH, FLAG = Option("texts"), Option("file"), Option("switch"), Option("flag")


def read_call(program: str, noun: str, commands: Mapping[str, Command], words: list[str], usage: str) -> Call | None:
    """The command that was called; None where only help was asked for, which has been shown."""
    if asks_for_help(words):
        sys.stdout.write(usage)
        return None
    name, rest = _command_word(words)
    given: Json = {}
    if not name:  # then an object names it
        body = _everything() if "-" in rest else _piped(is_needed=False) or b""
        if not body.strip():
            raise BadInput("usage", f"tenuto {program} has {', '.join(commands)}", f"tenuto {program} --help")
        given = _object(body, f"tenuto {program}: standard input")
        name, rest = str(given.pop("command", "")), [word for word in rest if word != "-"]
    name = _known_command(program, noun, commands, name)
    return _read(f"{program} {name}", name, commands[name], rest, given)


def read_words(program: str, command: Command, words: list[str]) -> Call:
    """The same for a command without names of its own below it."""
    return _read(program, program, command, words, {})


def asks_for_help(words: list[str]) -> bool:
    return any(word in _HELP for word in (words[: words.index("--")] if "--" in words else words))


def _command_word(words: list[str]) -> tuple[str, list[str]]:
    """The first word that is no option, and the others."""
    for at, word in enumerate(words):
        if word == "-":
            break
        if not word.startswith("-"):
            return word, words[:at] + words[at + 1 :]
        if _folded(word) != "json":
            raise BadInput("usage", f"{word} stands before the command", "the command comes first, then its options")
    return "", words


def _known_command(program: str, noun: str, commands: Mapping[str, Command], name: str) -> str:
    for known in commands:
        if _folded(known) == _folded(name):
            return known
    near = nearest(name, commands)
    raise BadInput(
        "usage",
        f"tenuto {program} has no {noun} {name!r}; it has {', '.join(commands)}",
        f"tenuto {program} {near}" if near else f"tenuto {program} --help",
    )


# ---- words -------------------------------------------------------------------------------------------


def _read(where: str, name: str, command: Command, words: list[str], given: Json) -> Call:
    fields: Json = {}
    plain: list[str] = []
    waits = False
    _add_object(where, command, given, fields)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            plain += rest
            break
        if word == "-" and not command.words_only:
            waits = True
        elif _is_option(word):
            _read_option(where, command, word, rest, fields)
        elif word.lstrip().startswith("{") and not command.words_only:
            _add_object(where, command, _object(word.encode("utf-8", "surrogateescape"), f"tenuto {where}"), fields)
        else:
            plain.append(word)
    _add_plain(where, command, plain, fields)
    _add_input(where, command, waits, fields)
    as_json = bool(fields.pop("json", False))
    missing = [field for field in command.required if fields.get(field) in (None, "")]
    if missing:
        raise BadInput(
            "missing-field",
            f"{name} needs {', '.join(missing)}: {missing[0]} is missing",
            f"tenuto {where} {_shown(command, missing[0])}",
            missing=missing,
        )
    return Call(name, fields, as_json)


def _shown(command: Command, field: str) -> str:
    """How a missing field is given."""
    return f"--{field} ..." if field in command.options else field.upper()


def _is_option(word: str) -> bool:
    """Not `-`, no number, and no text with blanks."""
    return word.startswith("-") and word != "-" and not word[1:2].isdigit() and not any(c.isspace() for c in word[:2])


def _looks_like_option(word: str) -> bool:
    """In the place of a value: `--stop it` is a text."""
    return _is_option(word) and not any(c.isspace() for c in word)


def _read_option(where: str, command: Command, word: str, rest: list[str], fields: Json) -> None:
    written, equals, text = word.partition("=")
    name = _known_option(where, command, written)
    option = command.options[name]
    if option.kind == "switch" and not equals and rest[:1] in (["true"], ["false"]):
        equals, text = "=", rest.pop(0)
    if option.kind in ("flag", "switch"):
        value = _switched(where, option, written, text if equals else "")
    elif equals:
        value = _typed(option, text)
    elif rest and not _looks_like_option(rest[0]):
        value = _typed(option, rest.pop(0))
    else:
        why = f"{rest[0]} is an option, not a value" if rest else "nothing follows it"
        hint = f"{written} VALUE, or {written}=VALUE where it begins with a dash"
        raise BadInput("missing-value", f"tenuto {where}: {written} needs a value: {why}", hint, option=written)
    _add(where, option, option.field or name, value, fields, written)


def _switched(where: str, option: Option, written: str, text: str) -> object:
    if not text:
        return option.value
    if option.kind == "flag" or text not in ("true", "false"):
        takes = "no value" if option.kind == "flag" else "true or false"
        raise BadInput("usage", f"tenuto {where}: {written} takes {takes}, not {text!r}", written)
    return text == "true"


def _typed(option: Option, text: str) -> object:
    if option.kind in ("json", "object"):
        try:
            return loads_strict(text)
        except (NotJson, UnicodeEncodeError):
            return text
    return [text] if option.kind == "texts" else text


def _known_option(where: str, command: Command, written: str) -> str:
    for name in command.options:
        if len(name) == 1:
            if written == f"-{name}":
                return name
        elif written.startswith("--") and _folded(name) == _folded(written):
            return name
    raise _unknown(where, written, [_dashed(name) for name in command.options])


def _dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _folded(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _unknown(where: str, word: str, known: list[str], shown: str = "") -> BadInput:
    near = nearest(word, known)
    hint = f"did you mean {near}?" if near else f"it takes {', '.join(known) or 'none'}; tenuto {where} --help"
    return BadInput("usage", f"tenuto {where} does not know {shown or word}: nothing was done", hint, unknown=word)


def nearest(word: str, known: Collection[str]) -> str:
    """The known word that is nearly this one; "" where there is none."""
    from tenuto.core.pipeline.values import near_word

    by_fold = {_folded(one): one for one in known}
    return by_fold.get(near_word(_folded(word), by_fold), "")


def _add_plain(where: str, command: Command, words: list[str], fields: Json) -> None:
    left = list(words)
    for field in command.plain:
        if not left:
            return
        if field.endswith("..."):
            value: object = " ".join(left)
            left = []
        elif field.endswith("[]"):
            value, left = left, []
        else:
            value = left.pop(0)
        name = field.removesuffix("...").removesuffix("[]")
        _add(where, TEXT, name, value, fields, repr(value))
    if left:
        takes = " and ".join(f"one {field}" for field in command.plain) or "no plain word"
        raise BadInput(
            "usage",
            f"tenuto {where} takes {takes}: there is no place for {left[0]!r}",
            "put a value behind its --option, and blanks into quotes",
        )


def _add(where: str, option: Option, field: str, value: object, fields: Json, written: str) -> None:
    if field not in fields:
        fields[field] = value
    elif option.kind == "texts":
        fields[field] = [*fields[field], *value]  # type: ignore[misc]
    elif option.kind != "flag" or fields[field] != value:
        raise BadInput(
            "given-twice", f"tenuto {where}: {field} is given twice, the second time by {written}", f"give {field} once"
        )


# ---- objects -----------------------------------------------------------------------------------------


def _object(text: bytes, where: str) -> Json:
    try:
        given = loads_strict(text)
    except (NotJson, UnicodeEncodeError) as problem:
        raise BadInput("not-json", f"{where}: this is not JSON: {problem}", _NOT_FOR_ME) from None
    if not isinstance(given, dict):
        raise BadInput("not-json", f"{where}: this is no JSON object, but {dumps(given)[:40]}", _NOT_FOR_ME)
    return given


_NOT_FOR_ME = 'a JSON object, {"field": "value"}; `</dev/null` where standard input is not meant for this command'


def _add_object(where: str, command: Command, given: Json, fields: Json) -> None:
    """An object's fields are those of the options and of the plain words."""
    places = [field.removesuffix("...").removesuffix("[]") for field in command.plain]
    known = [name for name, option in command.options.items() if option.kind != "flag" and len(name) > 1] + places
    for key, value in given.items():
        name = next((one for one in known if _folded(one) == _folded(key)), None)
        if name is None and not command.is_open:
            raise _unknown(where, key, known, f"the field {key!r}")
        option = command.options.get(name or "", JSON if name is None else WORD)
        _add(where, JSON, option.field or name or key, _checked(option, key, value), fields, f"the field {key!r}")


def _checked(option: Option, key: str, value: object) -> object:
    """A field of an object is of its option's kind."""
    kind = option.kind
    if kind == "text" and not isinstance(value, str):
        raise BadInput("bad-field", f"{key} is a text, not {_brief(value)}", f'"{key}": "..."', field=key)
    if kind == "word":
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise BadInput("bad-field", f"{key} is a text, not {_brief(value)}", f'"{key}": "..."', field=key)
        return str(value)
    if kind == "switch" and not isinstance(value, bool):
        raise BadInput("bad-field", f"{key} is true or false, not {_brief(value)}", f'"{key}": true', field=key)
    if kind == "texts":
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadInput(
                "bad-field", f"{key} is a list of texts, not {_brief(value)}", f'"{key}": ["..."]', field=key
            )
    return value


def _brief(value: object) -> str:
    return dumps(value)[:60]


# ---- standard input ----------------------------------------------------------------------------------


def _add_input(where: str, command: Command, waits: bool, fields: Json) -> None:
    complete = all(fields.get(field) not in (None, "") for field in command.required)
    takes_content = bool(command.instead) and complete and not any(field in fields for field in command.instead)
    files = [option.field or name for name, option in command.options.items() if option.kind == "file"]
    named = next((field for field in files if fields.get(field) == "-"), None)
    if named is not None:
        fields[command.content] = _everything()
        del fields[named]
        return
    body = _everything() if waits else _piped(is_needed=not complete)
    if body is None or not body.strip():
        if waits:
            raise BadInput("no-input", f"tenuto {where}: there is nothing on standard input", _NOT_FOR_ME)
        return
    if takes_content and not waits:
        fields[command.content] = body
    elif command.words_only:
        raise BadInput("usage", f"tenuto {where} takes nothing from standard input", "tenuto ... </dev/null")
    else:
        _add_object(where, command, _object(body, f"tenuto {where}: standard input"), fields)


def _everything() -> bytes:
    body = sys.stdin.buffer.read(_LONGEST + 1)
    if len(body) > _LONGEST:
        raise BadInput("too-long", f"standard input is longer than {_LONGEST} bytes", "name a file instead")
    return body


def _piped(is_needed: bool) -> bytes | None:
    """What stands on standard input; None where it is a terminal, a device, or a pipe on which nothing comes.

    A program that starts others often leaves them a pipe that it never writes to and never closes. Such a pipe is read
    to its end only where the command lacks something.
    """
    return _everything() if is_fed(is_needed) else None
