"""The command language: text in, requests out.

    parse("START_PHASE phase: architect")  -> {"command": "START_PHASE", "values": {"phase": "architect"}, ...}
    split(text)                            -> the commands in a text of several lines

Rule 1: a value runs to the next known key of that command. Keys come in any order, commands in any case.

Rule 2: `content:` comes last and takes everything after it word for word, to the end of the text;
after `content: <<WORD` only up to a line WORD.

Rule 3: a language model's slips are understood where only one thing can be meant: blanks before a colon or
none after it, quotes around a value, a trailing comma, `START PHASE`, the first key left out. Everything
else is refused, and the refusal says what is wrong. Nothing here guesses, and nothing is dropped in silence.
"""

from __future__ import annotations

from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Request(TypedDict):
        command: str
        values: dict[str, str]
        content: str | None  # None: there was no content key

    Mark = tuple[str, int, int]  # the key, where it stands, where its value begins


# Per command its keys, the required ones, and how it is written. `task` addresses a task that is not the current one.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "INIT": (
        ("task", "mode", "workflow"), ("task",),
        "INIT task: <task-name> mode: <standard|poc> workflow: <orchestrate|poc|graduate>",
    ),
    "START_PHASE": (("phase", "task"), ("phase",), "START_PHASE phase: <phase-name>"),
    "END_PHASE": (
        ("phase", "status", "task"), ("phase", "status"), "END_PHASE phase: <phase-name> status: <success|failed>",
    ),
    "PAUSE": (
        ("reason", "recommendations", "last_feedback", "task"), ("reason",),
        "PAUSE reason: <text> recommendations: <comma-separated-list>",
    ),
    "SET_GATE": (
        ("gate", "prompt", "artifacts", "task"), ("gate",),
        "SET_GATE gate: <design|final> prompt: <text> artifacts: <comma-separated-paths>",
    ),
    "RESUME": (("decision", "feedback", "task"), ("decision",), "RESUME decision: <approve|reject|retry>"),
    "STORE": (
        ("phase", "task_id", "iteration", "content", "task"), ("phase",),
        "STORE phase: <phase> task_id: <optional> iteration: <optional> content: <content>",
    ),
    "RETRIEVE": (
        ("needs", "for_phase", "max_tokens", "task_id", "task"), ("for_phase",),
        "RETRIEVE needs: <what> for_phase: <phase>",
    ),
    "QUERY": (("question", "limit", "task"), ("question",), "QUERY question: <question>"),
    "SUMMARY": (("task",), (), "SUMMARY"),
    "METRICS": (("format", "filter", "task"), (), "METRICS format: <summary|detailed|json> filter: <optional-filter>"),
    "HISTORY": (("filter", "task"), (), "HISTORY filter: <optional>"),
    "LIST": (("limit",), (), "LIST"),
}  # fmt: skip
# Running text: inside it only a key in its exact spelling, not given before, ends it.
_PROSE = ("reason", "recommendations", "last_feedback", "prompt", "feedback", "question", "filter")
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_BLANKS = " \t\r\n"
# What a model writes into a field it has nothing for.
NOTHING = ("", "none", "null", "nil", "n/a", "-")


def split(text: str) -> list[str]:
    """The commands of a text: a line that begins with a command's name begins a command, except inside content."""
    commands: list[str] = []
    rest = unwrap(text)
    while rest.strip():
        first, at = _next_command(rest)
        if first.strip():
            commands.append(first)
        rest = rest[at:]
    return commands


def _next_command(text: str) -> tuple[str, int]:
    """One command from the beginning of a text, and where the next one begins."""
    storing = _starts_with_command(text, "STORE")
    end = len(text) - len(text.lstrip(_BLANKS))
    for number, line in enumerate(text[end:].splitlines(keepends=True)):
        if number and _opens_command(line):
            break
        end += len(line)
        if storing:
            head, found = find_content(text[:end])
            if found:
                return _with_content(text, head)
    return text[:end], end


def _opens_command(line: str) -> bool:
    """Commands stand in capitals here: a line of prose may well begin with the word "list"."""
    word = line.split(None, 1)[0].rstrip(":,") if line.strip() else ""
    if word in COMMANDS and word.isupper():
        rest = line.strip()[len(word) :].strip(_BLANKS + ":,")
        return not rest or any(rest.lower().startswith(key) for key in COMMANDS[word][0])
    return False


def find_content(text: str) -> tuple[str, bool]:
    """Everything up to and with the `content:` key of a STORE, and whether it is there."""
    name, rest = _command_name(text)
    if name != "STORE":
        return text, False
    for key, _, value in _scan(rest, COMMANDS[name][0]):
        if key == "content":
            return text[: len(text) - len(rest) + value], True
    return text, False


def _with_content(text: str, head: str) -> tuple[str, int]:
    word = closing_word(text[len(head) :].split("\n", 1)[0])
    if not word:
        return text, len(text)
    first_line = text.find("\n", len(head)) + 1
    at = first_line
    for line in text[first_line:].splitlines(keepends=True):
        if line.rstrip("\r\n") == word and first_line:
            body = text[first_line:at]
            return f"{head}\n{body}", at + len(line)
        at += len(line)
    raise BadInput("bad-command", f"content: <<{word} is not closed: there is no line {word}")


def closing_word(line: str) -> str:
    """WORD of `<<WORD`; empty for any other text."""
    bare = line.strip()
    word = bare[2:].strip("'\"") if bare.startswith("<<") else ""
    return word if word and word.replace("_", "a").replace("-", "a").isalnum() else ""


def after_key(text: str) -> str:
    """Content begins behind the blank after its key, or on the next line."""
    line, newline, rest = text.partition("\n")
    if newline and not line.strip():
        return rest
    return text[1:] if text[:1] == " " else text


def parse(text: str) -> Request:
    """One command."""
    bare = unwrap(text)
    name, rest = _command_name(bare)
    keys, required, usage = COMMANDS[name]
    values: dict[str, str] = {}
    content: str | None = None
    marks = _scan(rest, keys)
    loose = rest[: marks[0][1] if marks else len(rest)].strip(_BLANKS + ",;:")
    for number, (key, _, start) in enumerate(marks):
        if key == "content":
            content = after_key(rest[start:])
            break
        if key in values:
            raise BadInput("bad-command", f"Parameter given twice: {key}. Usage: {usage}")
        end = marks[number + 1][1] if number + 1 < len(marks) else len(rest)
        values[key] = _value(name, key, rest[start:end])
    if loose:
        if loose.split()[0].lower() == keys[0] and len(loose.split()) > 1:
            raise BadInput("bad-command", f"Missing colon after {keys[0]}: {loose}. Usage: {usage}")
        if not keys or keys[0] in values or name in ("LIST", "SUMMARY"):
            raise BadInput("bad-command", f"Unexpected text: {loose}. Usage: {usage}")
        values[keys[0]] = _value(name, keys[0], loose)
    for key in required:
        if not values.get(key):
            if key == "decision" or (key == "for_phase" and "needs" in values):
                continue  # the command itself has an answer for these
            raise BadInput("bad-command", f"Missing required parameter: {key}. Usage: {usage}")
    return {"command": name, "values": {key: value for key, value in values.items() if value}, "content": content}


def unwrap(text: str) -> str:
    """Without the fence, the quotes or the backticks somebody put around a whole command."""
    bare = text.lstrip("\ufeff").strip(_BLANKS)
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6 and "\n" in bare:
        return bare.partition("\n")[2][: -len("```")].rstrip("\n")
    if len(bare) > 1 and _QUOTES.get(bare[0]) == bare[-1] and _starts_with_command(bare[1:-1]):
        return bare[1:-1]
    # Content is kept to the last character, so nothing is taken away at the end.
    return text.lstrip("\ufeff").lstrip(_BLANKS)


def _starts_with_command(text: str, name: str = "") -> bool:
    word = text[:100].split(None, 1)[0].rstrip(":,;").upper().replace("-", "_") if text[:100].strip() else ""
    return word == name if name else word in COMMANDS


def _command_name(text: str) -> tuple[str, str]:
    bare = text.lstrip(_BLANKS)
    words = bare.split(None, 2)
    if not words:
        raise BadInput("bad-command", f"There is no command. Use {', '.join(COMMANDS)}")
    for count in (1, 2):
        written = words[:count]
        name = "_".join(written).rstrip(":,;").upper().replace("-", "_")
        if len(written) == count and name in COMMANDS:
            at = 0
            for word in written:
                at = bare.index(word, at) + len(word)
            return name, bare[at:]
    shown = words[0][:60].rstrip(":,;")
    raise BadInput("bad-command", f"Unknown command: {shown}. Use {', '.join(COMMANDS)}")


def _scan(text: str, keys: tuple[str, ...]) -> list[Mark]:
    """Where keys stand. Inside quotes there is none; behind `content:` there is none."""
    found: list[Mark] = []
    at = 0
    lower = text.lower()
    if len(lower) != len(text):  # some letters change length; positions must not
        lower = text
    while at < len(text):
        mark = _key_at(text, lower, at, keys, found)
        if mark is None:
            at += 1
            continue
        found.append(mark)
        if mark[0] == "content":
            break
        at = _behind_quotes(text, mark[2])
    return found


def _key_at(text: str, lower: str, at: int, keys: tuple[str, ...], before: list[Mark]) -> Mark | None:
    if at and text[at - 1] not in " \t\r\n,;":
        return None
    for key in keys:
        if not lower.startswith(key, at):
            continue
        colon = at + len(key)
        while colon < len(text) and text[colon] in " \t":
            colon += 1
        if colon >= len(text) or text[colon] not in ":=" or (text[colon] == "=" and before):
            continue
        inside_prose = before and before[-1][0] in _PROSE
        if inside_prose and (not text.startswith(key, at) or any(mark[0] == key for mark in before)):
            continue
        return key, at, colon + 1
    return None


def _behind_quotes(text: str, at: int) -> int:
    """Where to look for the next key: behind a value in quotes."""
    start = at
    while start < len(text) and text[start] in _BLANKS:
        start += 1
    closing = _QUOTES.get(text[start : start + 1])
    if closing:
        end = text.find(closing, start + 1)
        while end != -1:
            if end + 1 == len(text) or text[end + 1] in " \t\r\n,;":
                return end + 1
            end = text.find(closing, end + 1)
    return at


def _value(command: str, key: str, text: str) -> str:
    value = text.strip(_BLANKS)
    if key not in _PROSE:
        value = " ".join(value.split()).rstrip(",;").rstrip()
    quoted = unquoted(value)
    if quoted != value:
        return quoted.strip(_BLANKS) if key in _PROSE else quoted.strip()
    if key not in _PROSE:
        unknown = _unknown_key(value)
        if unknown:
            allowed = ", ".join(COMMANDS[command][0])
            raise BadInput(
                "bad-command", f"Unknown parameter: {unknown}. {command} takes {allowed}; a value with a colon goes in quotes"
            )
    return value.rstrip(",;").rstrip() if key == "question" else value


def unquoted(value: str) -> str:
    if len(value) > 1 and _QUOTES.get(value[0]) == value[-1]:
        inner = value[1:-1]
        if value[-1] not in inner:
            return inner
    return value


def _unknown_key(value: str) -> str:
    """A word with a colon behind it, inside a value that should be one name."""
    for word in value.split(" ")[1:]:
        name, colon, _ = word.partition(":")
        if colon and name.isidentifier() and name == name.lower():
            return name
    return ""


def listed(value: str) -> list[str]:
    """A comma-separated list, as written or as a JSON array; quotes keep a comma inside an entry."""
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    entries: list[str] = []
    at, start = 0, 0
    while at <= len(text):
        if at == len(text) or text[at] in ",\n":
            entries.append(text[start:at])
            start = at + 1
        elif not text[start:at].strip() and text[at] in _QUOTES:
            end = text.find(_QUOTES[text[at]], at + 1)
            if end != -1 and text[end + 1 : end + 2].strip(_BLANKS) in ("", ","):
                at = end
        at += 1
    stripped = [unquoted(entry.strip()).strip() for entry in entries]
    return [entry for entry in stripped if entry]
