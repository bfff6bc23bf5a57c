"""The command language: text in, requests out; refusals in the seed's words.

    parse("START_PHASE phase: architect")  -> {"command": "START_PHASE", "values": {"phase": "architect"}, ...}
    split(text)                            -> the commands in a text of several lines
    in_words(command, refusal, run)        -> the same refusal, as the seed says it

Rule 1: a value runs to the next key of that command. Keys come in any order, commands in any case.

Rule 2: a free text (reason, recommendations, last_feedback, prompt, feedback, question, content) takes everything that
follows it, word for word. Only the keys that its command declares `behind` a text end it, each once and in its exact
spelling; every other key stands before the text. In quotes a text ends with its quotes, and any key may follow.
`content:` comes last; after `content: <<WORD` it takes everything up to a line WORD.

Rule 3: a language model's slips are understood where only one thing can be meant: blanks before a colon or
none after it, quotes around a value, a trailing comma, `START PHASE`, the first key left out. Everything
else is refused, and the refusal says what is wrong. Nothing here guesses, and nothing is dropped in silence.

The records that the context manager answers with. For types only.

Every answer has `status` and, where it is about one task, `task`. An error is an exception of tenuto.errors
whose message is the seed's text.
"""

from __future__ import annotations

from tenuto.errors import BadInput, NotFound, Refused, TenutoError
from tenuto.views.context.state import status_of

TYPE_CHECKING = False


if TYPE_CHECKING:
    from typing import TypedDict

    from tenuto.core.records.run import Json, Run

    class Request(TypedDict):
        command: str
        values: dict[str, str]
        content: str | None  # None: there was no content key
        doubt: str  # what may have been meant as a key and is part of a free text; empty where nothing is
        empty: list[str]  # keys without a value

    class Form(TypedDict):
        """How a command is written."""

        keys: tuple[str, ...]  # the first one may be left out
        required: tuple[str, ...]
        text: tuple[str, ...]  # free text
        behind: tuple[str, ...]  # keys that count behind a free text
        usage: str

    Mark = tuple[str, int, int]  # the key, where it stands, where its value begins


def _form(
    usage: str,
    keys: tuple[str, ...],
    required: tuple[str, ...] = (),
    text: tuple[str, ...] = (),
    behind: tuple[str, ...] = (),
) -> Form:
    return {"keys": keys, "required": required, "text": text, "behind": behind, "usage": usage}


# `task` addresses a task that is not the current one; INIT names its task.
_PAUSE_TEXTS = ("reason", "recommendations", "last_feedback")
COMMANDS: dict[str, Form] = {
    "INIT": _form(
        "INIT task: <task-name> mode: <standard|poc> workflow: <orchestrate|poc|graduate>",
        ("task", "mode", "workflow"),
        ("task",),
    ),
    "START_PHASE": _form("START_PHASE phase: <phase-name>", ("phase", "task"), ("phase",)),
    "END_PHASE": _form(
        "END_PHASE phase: <phase-name> status: <success|failed>", ("phase", "status", "task"), ("phase", "status")
    ),
    "PAUSE": _form(
        "PAUSE reason: <text> recommendations: <comma-separated-list>",
        (*_PAUSE_TEXTS, "task"),
        ("reason",),
        text=_PAUSE_TEXTS,
        behind=_PAUSE_TEXTS,
    ),
    "SET_GATE": _form(
        "SET_GATE gate: <design|final> prompt: <text> artifacts: <comma-separated-paths>",
        ("gate", "prompt", "artifacts", "task"),
        ("gate",),
        text=("prompt",),
        behind=("gate", "artifacts"),
    ),
    "RESUME": _form(
        "RESUME decision: <approve|reject|retry>",
        ("decision", "feedback", "task"),
        ("decision",),
        text=("feedback",),
        behind=("decision",),
    ),
    "STORE": _form(
        "STORE phase: <phase> task_id: <optional> iteration: <optional> content: <content>",
        ("phase", "task_id", "iteration", "content", "task"),
        ("phase",),
        text=("content",),
    ),
    "RETRIEVE": _form(
        "RETRIEVE needs: <what> for_phase: <phase>",
        ("needs", "for_phase", "max_tokens", "task_id", "task"),
        ("for_phase",),
    ),
    "QUERY": _form("QUERY question: <question>", ("question", "limit", "task"), ("question",), text=("question",)),
    "SUMMARY": _form("SUMMARY", ("task",)),
    "METRICS": _form("METRICS format: <summary|detailed|json> filter: <optional-filter>", ("format", "filter", "task")),
    "HISTORY": _form("HISTORY filter: <optional>", ("filter", "task")),
    "LIST": _form("LIST", ("limit",)),
}
_NO_LOOSE_WORDS = ("LIST", "SUMMARY")  # commands whose first key is never left out
_LISTS = ("needs", "artifacts")  # may be written as a JSON array
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_BLANKS = " \t\r\n"
_SKIPPED = _BLANKS + ",;:"  # between a command's name and what it says
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
    begin = len(text) - len(text.lstrip(_BLANKS))
    end = begin
    for line in text[begin:].splitlines(keepends=True):
        if end > begin and opens_command(line) and _may_end(text, end, line):
            break
        end += len(line)
        if _name_in(text) == "STORE":
            head, has_content = find_content(text[:end])
            if has_content:
                return _with_content(text, head)
    return text[:end], end


def _may_end(text: str, end: int, line: str) -> bool:
    """Whether a command ends before a line that begins another: not inside quotes, and a free text is not cut."""
    try:
        name, rest = _command_name(text[:end])
    except BadInput:
        return True  # it is refused when its turn comes
    marks, free = _scan(rest, COMMANDS[name])
    start = end - len(rest) + (marks[-1][2] if marks else 0)
    if _behind_quotes(text, start) > end:
        return False
    if free:
        raise wrong(
            f"A line behind {free}: begins a command: {line.strip()[:60]}. Put the {free} in quotes,"
            " or give each command as an argument of its own"
        )
    return True


def opens_command(line: str) -> bool:
    """Commands stand in capitals here: a line of prose may well begin with the word "list"."""
    word = line.split(None, 1)[0].rstrip(":,") if line.strip() else ""
    if word in COMMANDS and word.isupper():
        rest = line.strip()[len(word) :].strip(_BLANKS + ":,")
        return not rest or any(rest.lower().startswith(key) for key in COMMANDS[word]["keys"])
    return False


def find_content(text: str) -> tuple[str, bool]:
    """Everything up to and with the `content:` key of a STORE, and whether it is there."""
    name, rest = _command_name(text)
    if name != "STORE":
        return text, False
    for key, _, value in _scan(rest, COMMANDS[name])[0]:
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
    name, rest = _command_name(unwrap(text))
    form = COMMANDS[name]
    values: dict[str, str] = {}
    content: str | None = None
    marks, free = _scan(rest, form)
    first = form["keys"][0]
    loose = rest[: marks[0][1] if marks else len(rest)].lstrip(_SKIPPED).rstrip(_BLANKS)
    if loose.strip(_SKIPPED):
        _refuse_loose(name, loose, any(key == first for key, _, _ in marks))
        values[first] = _value(name, first, loose)
    for number, (key, _, start) in enumerate(marks):
        if key == "content":
            content = after_key(rest[start:])
            break
        if key in values:
            raise wrong(f"Parameter given twice: {key}. Usage: {form['usage']}")
        end = marks[number + 1][1] if number + 1 < len(marks) else len(rest)
        values[key] = _value(name, key, rest[start:end], free)
    for key in form["required"]:
        if not values.get(key):
            if key == "decision" or (key == "for_phase" and "needs" in values):
                continue  # the command itself has an answer for these
            raise wrong(f"Missing required parameter: {key}. Usage: {form['usage']}")
    if values.get("task") == "":
        raise wrong(
            f"Missing value: task. Name the task, or leave task: out for the current one. Usage: {form['usage']}"
        )
    return {
        "command": name,
        "values": {key: value for key, value in values.items() if value},
        "content": content,
        "doubt": _doubt(form, rest) if free and content is None else "",
        "empty": [key for key in values if not values[key] and key not in form["required"]],
    }


def is_whole(text: str) -> bool:
    """Whether a line says all that its command requires. What is wrong with it is for `parse` to say."""
    try:
        name, rest = _command_name(unwrap(text))
    except BadInput:
        return True
    form = COMMANDS[name]
    marks, _ = _scan(rest, form)
    given = {key: start for key, _, start in marks}
    if rest[: marks[0][1] if marks else len(rest)].strip(_SKIPPED):
        given.setdefault(form["keys"][0], 0)
    return not lacks_content(text) and all(key in given for key in form["required"])


def lacks_content(text: str) -> bool:
    """Whether it is a STORE whose content is not in it."""
    text = unwrap(text)
    return _name_in(text) == "STORE" and not find_content(text)[1] and "graduate" not in text.lower()


def goes_on(head: str, line: str) -> bool:
    """Whether a line below an unfinished command belongs to it: it begins with one of its keys, or goes on with a
    free text."""
    name, rest = _command_name(head)
    form = COMMANDS[name]
    return bool(_scan(rest, form)[1]) or _key_at(line, line.lower(), 0, form["keys"]) is not None


def _refuse_loose(name: str, loose: str, has_first: bool) -> None:
    """Text behind a command's name stands for its first key, unless it is a mistyped key, an option, or JSON."""
    form = COMMANDS[name]
    first, word = form["keys"][0], loose.split()[0]
    if loose[0] == "{":
        raise wrong(f"Unexpected text: {loose}. Usage: {form['usage']}")
    if word.lower() == first and len(loose.split()) > 1:
        raise wrong(f"Missing colon after {first}: {loose}. Usage: {form['usage']}")
    key = word.lstrip("-").partition("=")[0].partition(":")[0]
    if word != key:
        is_option = word.startswith("-")
        is_key = is_option or (key.isidentifier() and key.islower() and (word == f"{key}:" or word[len(key)] == "="))
        if (is_key and first not in form["text"]) or (key and _near_key(name, key)):
            raise _unknown(name, word if is_option else key)
    if has_first or name in _NO_LOOSE_WORDS or (loose[0] == "[" and first not in (*form["text"], *_LISTS)):
        raise wrong(f"Unexpected text: {loose}. Usage: {form['usage']}")


def _unknown(command: str, word: str) -> TenutoError:
    """A key that the command does not know, or an option."""
    keys = COMMANDS[command]["keys"]
    near = _near_key(command, word.strip("-").partition("=")[0])
    meant = f" Did you mean {near}:?" if near else ""
    what = "option" if word.startswith("-") else "parameter"
    quotes = "a value with a colon or a leading -- goes in quotes"
    return wrong(f"Unknown {what}: {word}.{meant} {command} takes {', '.join(keys)}; {quotes}")


def _near_key(command: str, word: str) -> str:
    from tenuto.core.pipeline.values import near_word

    return near_word(word.lower(), COMMANDS[command]["keys"])


def _doubt(form: Form, rest: str) -> str:
    """`task: dark-mode` at the end of a free text: the words stay in the text, and the caller may have meant a key."""
    last = rest.split()[-2:]
    keys = [f"{key}:" for key in form["keys"] if key not in (*form["text"], *form["behind"])]
    return " ".join(last) if len(last) == 2 and last[0] in keys else ""


def unwrap(text: str) -> str:
    """Without the fence, the quotes or the backticks somebody put around a whole command."""
    bare = text.lstrip("\ufeff").strip(_BLANKS)
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6 and "\n" in bare:
        return bare.partition("\n")[2][: -len("```")].rstrip("\n")
    if len(bare) > 1 and _QUOTES.get(bare[0]) == bare[-1] and _name_in(bare[1:-1]) in COMMANDS:
        return bare[1:-1]
    # Content is kept to the last character, so nothing is taken away at the end.
    return text.lstrip("\ufeff").lstrip(_BLANKS)


def _name_in(text: str) -> str:
    return text[:100].split(None, 1)[0].rstrip(":,;").upper().replace("-", "_") if text[:100].strip() else ""


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
    from tenuto.core.pipeline.values import near_word

    near = near_word(shown.upper().replace("-", "_"), COMMANDS)
    meant = f" Did you mean {near}?" if near else ""
    raise BadInput("bad-command", f"Unknown command: {shown}.{meant} Use {', '.join(COMMANDS)}")


def _scan(text: str, form: Form) -> tuple[list[Mark], str]:
    """Where keys stand, and the free text that the command ends in or that stands before its last keys; empty where it
    has none, or where quotes close it. Inside quotes there is no key."""
    lower = text.lower()
    if len(lower) != len(text):  # some letters change length; positions must not
        lower = text
    at = len(text) - len(text.lstrip(_SKIPPED))
    marks: list[Mark] = []
    given: list[str] = []
    free, first = "", form["keys"][0]
    if at < len(text) and first in form["text"] and _key_at(text, lower, at, form["keys"]) is None:
        given.append(first)  # its key is left out
        free, at = _behind_text(text, lower, at, form, first, free)
    while at < len(text):
        keys = tuple(key for key in form["behind"] if key not in given) if free else form["keys"]
        mark = _key_at(text, lower, at, keys, bool(free), bool(given))
        if mark is None:
            at += 1
            continue
        marks.append(mark)
        given.append(mark[0])
        if mark[0] == "content":
            break
        if mark[0] in form["text"]:
            free, at = _behind_text(text, lower, mark[2], form, mark[0], free)
        else:
            at = _behind_quotes(text, mark[2])
    return marks, free


def _behind_text(text: str, lower: str, start: int, form: Form, key: str, free: str) -> tuple[str, int]:
    """The free text that the command is in from here on, and where the next key can stand: right behind the quotes
    that hold the whole text, else anywhere."""
    end = _behind_quotes(text, start)
    if end == start:
        return free or key, start
    following = end
    while following < len(text) and text[following] in " \t\r\n,;":
        following += 1
    if following == len(text) or _key_at(text, lower, following, form["keys"]) is not None:
        return "", following
    return free or key, end


def _key_at(
    text: str, lower: str, at: int, keys: tuple[str, ...], exact: bool = False, colon_only: bool = False
) -> Mark | None:
    if at and text[at - 1] not in " \t\r\n,;":
        return None
    for key in keys:
        if not lower.startswith(key, at) or (exact and not text.startswith(key, at)):
            continue
        colon = at + len(key)
        while colon < len(text) and text[colon] in " \t":
            colon += 1
        if colon < len(text) and (text[colon] == ":" or (text[colon] == "=" and not colon_only)):
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


def _value(command: str, key: str, text: str, free: str = "") -> str:
    """`free`: the free text that stands before it."""
    value = text.strip(_BLANKS)
    form = COMMANDS[command]
    if key in form["text"]:
        quoted = unquote(value)
        if quoted != value:
            return quoted.strip(_BLANKS)
        return value.rstrip(",;").rstrip() if key == "question" else value
    value = " ".join(value.split()).rstrip(",;").rstrip()
    quoted = unquote(value)
    if quoted != value:
        return quoted.strip()
    unknown = "" if key == "filter" else _unknown_key(value)
    if unknown in form["keys"]:
        raise wrong(f"Misplaced parameter: {unknown}. {free or key} takes what follows it: {unknown} stands before it")
    if unknown:
        raise _unknown(command, unknown)
    if value[:1] == "{" and key not in _LISTS:
        raise wrong(f"Unexpected JSON: {value}. Usage: {form['usage']}")
    return value


def unquote(value: str) -> str:
    if len(value) > 1 and _QUOTES.get(value[0]) == value[-1]:
        inner = value[1:-1]
        if value[-1] not in inner:
            return inner
    return value


def _unknown_key(value: str) -> str:
    """A word with a colon behind it, or an option, inside a value that should be one name."""
    for at, word in enumerate(value.split(" ")):
        name, colon, _ = word.partition(":")
        if at and colon and name.isidentifier() and name == name.lower():
            return name
        if word.startswith("--") and word.strip("-"):
            return word
    return ""


def split_list(value: str) -> list[str]:
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
    stripped = [unquote(_without_mark(entry.strip())).strip() for entry in entries]
    return [entry for entry in stripped if entry]


def _without_mark(entry: str) -> str:
    """`- first`, `* first` and `1. first` are list items."""
    mark, blank, rest = entry.partition(" ")
    numbered = mark[-1:] in (".", ")") and mark[:-1].isdecimal()
    return rest.strip() if blank and (numbered or mark in ("-", "*", "+")) else entry


# ---- refusals in the words of the seed --------------------------------------------------------------

# (command, code of the refusal) -> text. `{status}` is the status as this dialect shows it; a text per status comes
# first,
# `*` is for all others. What is not in the table keeps the words that core/ gave it.
_INVALID_DECISION = "Invalid decision: {decision}. Use approve, reject, or retry"
TEXTS: dict[tuple[str, str], dict[str, str]] = {
    ("START_PHASE", "not-running"): {
        "paused": "Cannot start phase while task is paused",
        "waiting_gate": "Cannot start phase while waiting for gate approval",
        "*": "Cannot start phase on {status} task",
    },
    ("START_PHASE", "step-running"): {"*": "Phase {step} already running"},
    ("END_PHASE", "step-not-running"): {"*": "Phase {step} not currently running"},
    ("PAUSE", "steps-running"): {"*": "Cannot pause while phases are running: {steps}"},
    ("PAUSE", "gate-open"): {"*": "Cannot pause while waiting for gate approval"},
    ("PAUSE", "run-ended"): {"*": "Cannot pause {status} task"},
    ("SET_GATE", "steps-running"): {"*": "Cannot set gate while phases are running"},
    ("SET_GATE", "not-running"): {
        "paused": "Cannot set gate while task is paused",
        "waiting_gate": "Cannot set gate while waiting for gate approval",
        "*": "Cannot set gate on {status} task",
    },
    ("RESUME", "not-paused"): {
        "completed": "Task is already completed",
        "*": "Task is not paused or waiting for gate",
    },
    ("RESUME", "bad-decision"): {"*": _INVALID_DECISION},
    ("RESUME", "gate-stale"): {
        "*": "Gate artifacts changed since the gate was set: {paths}. Review them, then use revise or reject,"
        " or put back what was shown",
    },
    ("STORE", "not-running"): {
        "paused": "Cannot store debt while task is paused",
        "waiting_gate": "Cannot store debt while waiting for gate approval",
        "*": "Cannot store debt on {status} task",
    },
    ("STORE", "run-ended"): {"*": "Cannot store debt on {status} task"},
}


def in_words(command: str, refusal: TenutoError, run: Run) -> TenutoError:
    """The same refusal, saying what the seed says."""
    texts = TEXTS.get((command, refusal.code))
    if texts is None:
        return refusal
    status = status_of(run)
    text = texts.get(status) or texts["*"]
    shown = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in refusal.details.items()
    }
    message = text.format(**{**shown, "status": status})
    return Refused(refusal.code, message, refusal.hint, **{**refusal.details, "status": status, "task": run["id"]})


def wrong(text: str) -> TenutoError:
    """The caller's words are wrong."""
    return BadInput("bad-command", text)


def no_current_task() -> TenutoError:
    return NotFound("no-current-task", "No current task. Use INIT first.")


def no_task(slug: str) -> TenutoError:
    return NotFound("no-such-task", f"No task found with slug: {slug}", "tenuto context LIST", task=slug)


# ---- answers ------------------------------------------------------------


if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from tenuto.core.records.run import Json
    from tenuto.knowledge.packs import Receipt
    from tenuto.views.context.state import Metrics

    class Done(TypedDict):
        """INIT, STORE, RETRIEVE, QUERY, SUMMARY, HISTORY: the generic block."""

        status: str
        task: str
        data: str
        files_touched: list[str]

    class Initialized(Done):
        mode: str
        workflow: str
        created_at: str

    class Stored(Done):
        artifact: str
        path: str
        sha256: str
        size: int
        next: NotRequired[str]

    class Retrieved(Done):
        receipts: list[Receipt]
        receipt_lines: list[str]
        missing: list[str]

    class Passage(TypedDict):
        task: str
        path: str
        heading: str
        text: str

    class Answered(Done):
        passages: list[Passage]

    class Summarized(Done):
        manifest: Json

    class History(Done):
        entries: int

    class PhaseStarted(TypedDict):
        status: str
        task: str
        phase_started: str
        started_at: str

    class PhaseEnded(TypedDict):
        status: str
        task: str
        phase_ended: str
        duration_ms: int
        result: str
        running_phases: int

    class Paused(TypedDict):
        status: str
        task: str
        action: str
        reason: str
        recommendations: list[str]
        resume_with: str

    class GateSet(TypedDict):
        status: str
        task: str
        action: str
        gate: str
        prompt: str
        artifacts: list[str]
        resume_with: str

    class Resumed(TypedDict):
        status: str
        task: str
        action: str
        previous_state: str
        decision: str
        continue_from: str
        completed_phases: list[str]

    class Task(TypedDict):
        """One line of LIST."""

        task: str
        mode: str
        workflow: str
        status: str
        created_at: str

    class Measured(TypedDict):
        """METRICS: `report` is the JSON form, `text` what the asked format prints."""

        task: str
        format: str
        report: Metrics
        text: str

    Answer = (
        Initialized
        | Stored
        | Retrieved
        | Answered
        | Summarized
        | History
        | PhaseStarted
        | PhaseEnded
        | Paused
        | GateSet
        | Resumed
        | Measured
    )
    """Of every command but LIST, which answers with a list of tasks."""
