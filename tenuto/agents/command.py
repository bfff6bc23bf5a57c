"""Any program as an agent: the prompt on standard input, the reply on standard output.

    command:./my-agent --flag

A reply that ends with `PARKED: <time> <why>` says that the program may not work before then (a usage limit): the run
waits. Reaching a time limit, dying by a signal or a non-zero exit is an ERROR, whatever was printed; the last line on
standard error is its reason. A program that could not even be started may be tried again inside the same attempt.

The other agents build on this module:

    AgentProgram            what holds for an agent that says nothing else (see ports.Agent)
    cut_short(ending)       an ERROR where the process never began, was cancelled or ran out of time; None: its words
                            count
    broken(ending)          an ERROR for a signal or an exit status; None where it ended by itself and well
    replied(text)           the agent's own words as a Reply
    error(reason, ...)      an ERROR as a Reply
    read_events(text)       what a program printed as JSON lines, one event each

Lines that are no event (a warning, the mark where a flood was cut, a tail that a kill cut off) are passed over and
counted. What they might have said is never guessed.

What a model's refusal means for the attempt: wait, try again, or give up. Each program says it in its own words.

    judge(words, at)      the ERROR, with `transient`, `parked_until` or `limited` as the words say
    resets(words, at)     when it may work again, if the words say so
    is_limit(words)       a rate or usage limit, not another failure

Rule 1: a limit that says when it ends parks the run until then; one that does not may pass by itself: transient,
and `limited`, so that another agent may take over.
Rule 2: an overloaded or unreachable model is transient. Anything else (a wrong key, a refused request) is an error:
trying again would fail the same way.
Rule 3: a clock time without a date is the next such time after `at`, in this machine's zone, as the programs print it;
they leave the seconds out, so a minute is added.

Options of an agent: `model=opus,max-turns=40` behind its name, and the same words in a role's front matter.

    read("claude", "model=opus,tools=Read,Edit", SHAPES)   -> {"model": "opus", "tools": ["Read", "Edit"]}
    for_role("claude", given, role, SHAPES)                -> what is given, and what the role says where nothing is
                                                           given
    agent_of(role)                                         -> the agent that a role names; "" where it names none

    agent: claude                  in a role: who plays it, unless it is said elsewhere
    model: opus                    of that agent; a role that names another agent says nothing to this one
    max-turns: 40                  any option of that agent

A role that names no agent: its model is for the agent that plays it. But models that only Claude Code knows by these
names are Claude Code's alone, and so is what agents of Claude Code and of Copilot (their own files) say: each of its
own program. Other options of such a role are Claude Code's.

A piece without `=` belongs to the list before it. What is spelled out counts more than what a role says. An unknown
option, or a value of the wrong kind, is refused with a hint. A role's other front matter is not judged here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tenuto.agents.reply import parse_reply
from tenuto.core.pipeline.values import did_you_mean
from tenuto.core.times import iso
from tenuto.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenuto.core.pipeline.records import Role
    from tenuto.core.records.action import Ending, Launch, Reply
    from tenuto.ports import Assignment


Event = dict[str, object]
"""One JSON object that a program printed."""

_FOR_GOOD = ("No such file", "Permission denied", "Exec format", "Not a directory")
_TOOL_WORDS = ("file_path", "command", "pattern", "path", "url", "query", "description", "skill")
_LONGEST = 200  # characters of a tool's call that are shown


# ---- how a process ended


def cut_short(ending: Ending) -> Reply | None:
    if ending["exit_code"] is None and ending["signal"] is None:
        # A program that is not there will not be there a second later.
        missing = any(words in (ending["error"] or "") for words in _FOR_GOOD)
        return error(f"the program could not be started: {ending['error']}", transient=not missing)
    if ending["cancelled"]:
        return error("it was cancelled")
    if ending["timed_out"]:
        return error("the time limit was reached")
    return None


def broken(ending: Ending) -> Reply | None:
    if ending["signal"] is not None:
        return error(f"the program was ended by signal {ending['signal']}")
    if ending["exit_code"] != 0:
        return error(f"the program ended with exit status {ending['exit_code']}")
    return None


def explained(failure: Reply, errors: str) -> Reply:
    """With the last line that the program wrote to standard error."""
    why = errors.strip().rpartition("\n")[2]
    return {**failure, "summary": f"{failure['summary']}: {why}"[:500]} if why else failure


def replied(text: str) -> Reply:
    parsed = parse_reply(text)
    reply: Reply = {"verdict": parsed["verdict"], "summary": parsed["summary"], "transient": False, "usage": {}}
    if "parked_until" in parsed:
        reply["parked_until"] = parsed["parked_until"]
    return reply


def error(reason: str, *, transient: bool = False, parked_until: str = "", limited: bool = False) -> Reply:
    reply: Reply = {"verdict": "ERROR", "summary": reason, "transient": transient, "usage": {}}
    if parked_until:
        reply["parked_until"] = parked_until
    if limited:
        reply["limited"] = True
    return reply


# ---- agents


class AgentProgram:
    """What an agent program is unless it says otherwise: it reports nothing, sees nothing of our environment and
    starts over."""

    name = ""
    reports: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    def check(self, role: Role | None) -> None:
        return None

    def can_go_on(self, earlier: str) -> bool:
        return False

    @staticmethod
    def narrate(line: str) -> list[str]:
        return [line]


class CommandAgent(AgentProgram):
    def __init__(self, words: str) -> None:
        self.name = f"command:{words}"
        try:
            self.argv = shlex.split(words)
        except ValueError as error:
            raise BadInput("bad-agent", f"'{words}' cannot be read as a command: {error}", "check its quotes") from None
        if not self.argv:
            raise BadInput("bad-agent", "command: needs a program", "for example --agent 'command:./my-agent --flag'")

    def program(self, role: Role | None) -> str:
        return self.argv[0]

    def launch(self, plan: Assignment) -> Launch:
        return {"argv": self.argv, "stdin": plan.prompt(), "env": {}}

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        failure = broken(ending)
        return cut_short(ending) or (explained(failure, plan.errors) if failure else replied(output))


class ProjectCommand(AgentProgram):
    """A program of the project in an agent's place (`command:` in a pipeline). No model, so nothing is spent."""

    name = "project"
    reports: tuple[str, ...] = ("tokens", "micro_usd")

    def __init__(self, words: str = "") -> None:
        """It takes no words: the pipeline says what is run."""

    def program(self, role: Role | None) -> str:
        return ""

    def launch(self, plan: Assignment) -> Launch:
        return {"argv": plan.command_line(), "stdin": "", "env": plan.command_environment()}

    def reply(self, plan: Assignment, ending: Ending, output: str) -> Reply:
        failure = cut_short(ending)
        if failure is None and ending["signal"] is not None:
            failure = broken(ending)
        if failure is not None:
            return {**explained(failure, plan.errors), "usage": dict.fromkeys(self.reports, 0)}
        verdict = plan.verdict_of(ending["exit_code"] or 0)
        last = (output.strip() or plan.errors.strip()).rpartition("\n")[2][:300]
        if verdict != "DONE":
            last = f"exit status {ending['exit_code']}: {plan.errors.strip().rpartition(chr(10))[2][:300] or last}"
        summary = last or "exit status 0"
        usage = dict.fromkeys(self.reports, 0)
        return {"verdict": verdict, "summary": summary, "transient": False, "usage": usage, "text": output}


# ---- events


class Stream(NamedTuple):
    events: list[Event]
    strange: int  # lines that are no event

    def of(self, kind: str, subtype: str | None = None) -> list[Event]:
        return [one for one in self.events if one.get("type") == kind and subtype in (None, one.get("subtype"))]


def read_events(text: str) -> Stream:
    events: list[Event] = []
    strange = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            events.append(value)
        else:
            strange += 1
    return Stream(events, strange)


def mapping(value: object) -> Event:
    """The value, where it is a JSON object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Event]:
    """The JSON objects of a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def narrate_events(line: str, narrate: Callable[[Event], Iterator[str]]) -> list[str]:
    """A line of a program that prints events. One that is no event is shown as it is."""
    stream = read_events(line)
    if not stream.events:
        return [line] if line.strip() else []
    return [part for event in stream.events for part in narrate(event)]


def narrate_tool(name: str, arguments: object) -> str:
    """What a program does stands in square brackets: [Bash make test]."""
    given = mapping(arguments)
    word = next((value for key in _TOOL_WORDS if isinstance(value := given.get(key), str)), "")
    first = word.strip().partition("\n")[0]
    return f"[{name} {first[:_LONGEST]}]" if first else f"[{name}]"


# ---- limits ------------------------------------------------------------


_LIMIT = re.compile(
    r"(usage|rate|request|token|spend|session|weekly|quota)[ _-]?limit|too many "
    r"requests|\b429\b|quota|resource.?exhausted|out of credits",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"high demand|overload|temporar|stream (disconnected|closed)|timed? ?out|connection|unreachable|network "
    r"error|fetch failed"
    r"|econn|enotfound|eai_again|socket hang up|server error|service unavailable|bad gateway|\b(500|502|503|504|529)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"(?:again|retry|reset(?:s|ting)?|wait|available)\D{0,12}?\b(?:in|after|for)\s+((?:[\d.]+\s*(?:days?|hours?|minutes?|seconds?|ms|[dhms])(?![a-z])[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_PIECE = re.compile(r"([\d.]+)\s*(ms|d|h|m|s)", re.IGNORECASE)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(
    r"\b(?:at|resets?)\s+(?:(?P<month>[A-Z][a-z]{2})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[AaPp])\.?[Mm]\b\.?(?:\s*\(?(?P<zone>UTC|GMT)\)?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def judge(words: str, at: str) -> Reply:
    summary = " ".join(words.split())[:500] or "it failed without a word"
    if not is_limit(words):
        return error(summary, transient=bool(_PASSING.search(words)))
    when = resets(words, at)
    return error(summary, parked_until=when) if when else error(summary, transient=True, limited=True)


def is_limit(words: str) -> bool:
    return bool(_LIMIT.search(words))


def resets(words: str, at: str) -> str:
    """As an ISO time; empty where the words have none, it is no time, or it is over."""
    now = datetime.fromisoformat(at)
    try:
        when = _moment(words, now)
        return iso(int(when.timestamp() * 1000)) if when and when.timestamp() > now.timestamp() else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _moment(words: str, now: datetime) -> datetime | None:
    later = _LATER.search(words)
    if later:
        pieces = _PIECE.findall(later.group(1))
        return now + timedelta(seconds=sum(float(number) * _SECONDS[unit.lower()] for number, unit in pieces) + 1)
    stamp = _STAMP.search(words)
    if stamp:
        return datetime.fromisoformat(stamp.group())
    clock = _CLOCK.search(words)
    return _next(clock, now) if clock else None


def _next(clock: re.Match[str], now: datetime) -> datetime:
    local = now.astimezone(UTC if clock["zone"] else None)
    hour = int(clock["hour"]) % 12 + (12 if clock["half"] in "pP" else 0)
    day = local
    if clock["month"] and clock["month"].lower() in _MONTHS:
        month, number = _MONTHS.index(clock["month"].lower()) + 1, int(clock["day"])
        day = datetime(int(clock["year"] or local.year), month, number, tzinfo=local.tzinfo)
    wanted = day.replace(hour=hour % 24, minute=int(clock["minute"] or 0), second=0, microsecond=0)
    if clock["month"] is None and wanted + timedelta(minutes=1) <= local:
        wanted += timedelta(days=1)
    return wanted + timedelta(minutes=1)


# ---- options ------------------------------------------------------------


_CLAUDES = re.compile(r"default|best|opusplan|(?:opus|sonnet|haiku)(?:\[\w+\])?|claude-.*", re.IGNORECASE)

Shape = type[str] | type[int] | type[float] | type[list[str]] | tuple[str, ...]
"""Of a value; a tuple: one of these words."""
Shapes = Mapping[str, Shape]
Value = str | int | float | list[str]
Options = dict[str, Value]


def read(kind: str, words: str, shapes: Shapes) -> Options:
    given: dict[str, str] = {}
    last = ""
    for piece in words.split(",") if words else []:
        name, sign, value = piece.partition("=")
        name = name.strip()
        if last and shapes[last] is list and name not in shapes:
            given[last] += f",{piece}"
            continue
        if name not in shapes or not sign:
            hint = did_you_mean(name, list(shapes)) if name not in shapes else f"{kind}:{name}=..."
            raise BadInput("bad-agent", f"'{piece.strip()}' is no option of {kind}", hint)
        if name in given:
            raise BadInput("bad-agent", f"{kind}: {name} is given twice", "once is enough")
        given[name], last = value, name
    return {name: _value(f"{kind}: {name}", value, shapes[name]) for name, value in given.items()}


def word(options: Options, name: str, default: str = "") -> str:
    return str(options.get(name, default))


def words(options: Options, name: str) -> list[str]:
    value = options.get(name, [])
    return value if isinstance(value, list) else [str(value)]


def agent_of(role: Role | None) -> str:
    agent = role["extra"].get("agent", "") if role else ""
    if not isinstance(agent, str):
        file = role["file"] if role else ""
        raise BadInput("bad-role", f"{file}: `agent` is the name of an agent", "agent: claude")
    return agent


def for_role(kind: str, given: Options, role: Role | None, shapes: Shapes) -> Options:
    options = dict(given)
    named = agent_of(role).partition(":")[0]
    if role is None or named not in ("", kind):
        return options
    own = {_plain(name): value for name, value in role["extra"].items()} if kind in (named, "claude") else {}
    if role["model"] and role["model"] != "inherit" and (named or _is_meant(role, kind)):
        own["model"] = role["model"]
    for name, shape in shapes.items():
        if name not in options and _plain(name) in own:
            options[name] = _value(f"{role['file']}: {name}", own[_plain(name)], shape)
    return options


def _is_meant(role: Role, kind: str) -> bool:
    """Is the model of a role that names no agent one for this kind?"""
    if kind == "claude":
        return role.get("origin") != "github"
    return role.get("origin") not in ("claude", "github") and not _CLAUDES.fullmatch(role["model"])


def _plain(name: str) -> str:
    """Other programs write permissionMode for permission-mode."""
    return name.replace("-", "").replace("_", "").lower()


def _value(what: str, value: object, shape: Shape) -> Value:
    if shape is list:
        pieces = value.split(",") if isinstance(value, str) else value
        if isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces):
            return [piece.strip() for piece in pieces if piece.strip()]
        raise BadInput("bad-agent", f"{what} is a list of words", "for example Read,Edit,Bash")
    text = str(value).strip()
    if shape is int or shape is float:
        return _number(what, text, whole=shape is int)
    if isinstance(shape, tuple) and text not in shape:
        raise BadInput("bad-agent", f"{what} cannot be '{text}'", f"one of {', '.join(shape)}")
    if not text:
        raise BadInput("bad-agent", f"{what} is empty", "leave it out, or say what it is")
    return text


def _number(what: str, text: str, *, whole: bool) -> int | float:
    try:
        number = int(text.removeprefix("$")) if whole else float(text.removeprefix("$"))
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000_000:
        raise BadInput("bad-agent", f"{what} is a number above 0, not '{text}'", "for example 40")
    return number
