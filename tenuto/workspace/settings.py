"""Settings: a repository's .tenuto/config.yaml, then those of the repositories that it `uses`, then the user's own.

    read_settings(root, state)     all of them, checked; what is nowhere has its default, what is not known is refused
    layers(root)                   the files one by one, the strongest first
    repository_settings(root)      without the user's own: what a checkout brings
    user_settings(root)            the user's own alone
    secret_names(root, state)      only the list `secrets`, also where another setting is wrong
    gate_level(root, state)        only how gates are protected, likewise
    settings_of(root, run)         for a run: what it began with stands for what an agent could have changed since

A setting is taken whole from the strongest file that has it. What protects adds up instead: the names in `secrets` of
all files, and the strictest of their `gates`.

The files are read and checked once. What came of it is kept beside the journal (`state`), with the stamps of the files
it was read from, so that a hook needs no YAML. A file that was changed in the last two seconds is read again each time:
its stamp could be that of another text. Each setting with its shape, default and an example:
docs/reference/settings.md, which tests hold against SETTINGS.
"""

from __future__ import annotations

import os
import posix
from time import time_ns

from tenuto.core.approvals import BOUND, PROTECTION
from tenuto.core.status import MOMENTS
from tenuto.encoding import digest, dumps, loads
from tenuto.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal, NotRequired, TypedDict

    from tenuto.core.records.run import Json, ParamValue, Run
    from tenuto.notices.delivery import Target

    class SetUp(TypedDict, total=False):
        run: list[str]
        copy: list[str]

    class Schedule(TypedDict):
        every: str
        request: str
        pipeline: NotRequired[str]
        agent: NotRequired[str]
        zone: NotRequired[str]
        limits: NotRequired[dict[str, float]]
        switches: NotRequired[dict[str, bool]]
        params: NotRequired[dict[str, ParamValue]]

    class Queue(TypedDict, total=False):
        at_once: int

    class Budgets(TypedDict, total=False):
        day: dict[str, float]
        ever: dict[str, float]

    class PullRequest(TypedDict, total=False):
        forge: Literal["github", "gitlab"]
        remote: str
        base: str
        draft: bool
        ask: bool

    class Settings(TypedDict, total=False):
        agent: str
        roles: dict[str, str]
        fallback: dict[str, str]
        pipeline: str
        checks: dict[str, str]
        environment: list[str]
        secrets: list[str]
        time_limit: str | int
        workspace: Literal["shared", "worktree"]
        setup: SetUp
        gates: Literal["guarded", "signed", "isolated"]
        signers: str
        isolation: list[str]
        notify: Target | list[Target]
        uses: str | list[str]
        zone: str
        schedules: dict[str, Schedule]
        queue: Queue
        budget: Budgets
        pull_request: PullRequest

    class Layer(TypedDict):
        """One file of settings, as it is written."""

        kind: str  # repository, shared or user
        file: str
        settings: dict[str, object] | None  # None: it cannot be read, or is no mapping
        problem: Problem | None

    class Problem(TypedDict):
        code: str
        message: str
        hint: str

    class Compiled(TypedDict):
        stamp: list[list[int]]  # of the repository's file and of the user's
        shared: dict[str, list[int]]  # the same for the files of repositories that this one uses
        settings: dict[str, object] | None  # None: it cannot be read, or is no mapping
        problem: Problem | None


CONFIG = ".tenuto/config.yaml"
TIME_LIMIT = "2h"  # no program that hangs is waited for longer
UNLIMITED = "unlimited"
LEVELS = ("guarded", "signed", "isolated")
WORKSPACES = ("shared", "worktree")
FORGES = ("github", "gitlab")
_BOUND_NAMES = ("checks", "environment", "setup", "isolation", "notify", "budget")
_OF_A_SCHEDULE = ("every", "request", "pipeline", "agent", "zone", "limits", "switches", "params")
_LARGEST = 1 << 20  # bytes of compiled settings
_SETTLED = 2_000_000_000  # nanoseconds after which a file's stamp stands for its text


class Setting:
    __slots__ = ("example", "fits", "shape")

    def __init__(self, shape: str, fits: Callable[[object], bool], example: str) -> None:
        self.shape = shape
        """In words, as an error and the reference say it."""
        self.fits = fits
        self.example = example


def read_settings(root: str, state: str = "") -> Settings:
    compiled = _compiled(root, state)
    _raise(compiled["problem"])
    return compiled["settings"] or {}  # type: ignore[return-value]  # checked, each by its own shape


def bound_in(settings: Settings) -> Json:
    """What a run that begins now keeps to its end: the settings lie where agents can write."""
    return {BOUND: {name: value for name, value in settings.items() if name in _BOUND_NAMES}}


def settings_of(root: str, run: Run, state: str = "") -> Settings:
    """The settings for this run: as they are now, but for what it began with."""
    now = read_settings(root, state)
    if BOUND not in run["settings"]:
        return now  # led by hand so far, or begun by an older Tenuto
    free = {name: value for name, value in now.items() if name not in _BOUND_NAMES}
    kept: Settings = {**free, **run["settings"][BOUND]}  # type: ignore[typeddict-item]
    return kept


def changed_since(root: str, run: Run, state: str = "") -> list[str]:
    """The settings that say another thing now than the run began with, and do not count for it."""
    if BOUND not in run["settings"]:
        return []
    now, then = read_settings(root, state), run["settings"][BOUND]
    return [name for name in _BOUND_NAMES if now.get(name) != then.get(name)]


def secret_names(root: str, state: str = "") -> list[str]:
    """The variables that the settings call secret. Where that cannot be known, nothing may be taken in."""
    names = _one(root, state, "secrets", [])
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def gate_level(root: str, state: str = "") -> str:
    return str(_one(root, state, "gates", LEVELS[0]))


def stricter(began_with: str, now: str) -> str:
    """How gates are protected: what a run began with holds to its end, and what holds now does, too."""
    return next((level for level in ("signed", "isolated") if level in (began_with, now)), LEVELS[0])


def protection_by_hand(root: str, state: str) -> Json:
    """For a run that somebody leads by hand: as its gates are protected when it begins."""
    level = gate_level(root, state)
    if level == LEVELS[0]:
        return {}
    signers = ""
    if level == "signed":
        named = _one(root, state, "signers", ".tenuto/signers")
        try:
            with open(f"{root}/{named}", encoding="utf-8") as file:
                signers = file.read()
        except (OSError, UnicodeDecodeError):
            pass  # nobody may sign, until somebody is named
    return {PROTECTION: {"level": level, "signers": signers, "instance": posix.urandom(16).hex()}}


def _one(root: str, state: str, name: str, default: object) -> object:
    """One setting, also where another one is wrong."""
    compiled = _compiled(root, state)
    if compiled["settings"] is None:
        _raise(compiled["problem"])
        return default
    value = compiled["settings"].get(name, default)
    if not SETTINGS[name].fits(value):
        _raise(_misfit(f"{root}/{CONFIG}", name))
    return value


def _raise(problem: Problem | None) -> None:
    if problem is not None:
        raise BadInput(problem["code"], problem["message"], problem["hint"])


def user_config() -> str:
    home = os.environ.get("HOME") or "/"
    return f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/tenuto/config.yaml"


def _compiled(root: str, state: str) -> Compiled:
    stamp = [_stamp(f"{root}/{CONFIG}"), _user_stamp()]
    if not any(stamp):
        return {"stamp": stamp, "shared": {}, "settings": None, "problem": None}
    kept = f"{state}/settings-{digest(root.encode('utf-8', 'surrogateescape'))[:16]}.json" if state else ""
    compiled = _kept(kept)
    if compiled is not None and _is_fresh(compiled, stamp):
        return compiled
    compiled = _compile(root, stamp)
    times = [time for one in (*stamp, *compiled["shared"].values()) for time in one[2:]]
    if kept and compiled["settings"] is not None and time_ns() - max(times) > _SETTLED:
        _keep(kept, compiled)
    return compiled


def _is_fresh(compiled: Compiled, stamp: list[list[int]]) -> bool:
    return compiled["stamp"] == stamp and all(_stamp(path) == known for path, known in compiled["shared"].items())


def _user_stamp() -> list[int]:
    """Whoever works with somebody else's HOME (an agent under another user) and may not look into it has no settings of
    their own there."""
    try:
        return _stamp(user_config())
    except Refused:
        if _is_somebody_elses(os.environ.get("HOME") or "/"):
            return []
        raise


def _is_somebody_elses(folder: str) -> bool:
    try:
        return posix.stat(folder).st_uid != posix.geteuid()
    except OSError:
        return True


def _stamp(path: str) -> list[int]:
    """Empty where nothing is there. A link that leads nowhere has one: it is refused, not passed over."""
    try:
        found = posix.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return [0, 0, 0, 0] if _is_link(path) else []
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise Refused("bad-settings", message, "whether anything is secret is not known") from None
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _compile(root: str, stamp: list[list[int]]) -> Compiled:
    """Read the files and check them: the slow way, with YAML."""
    found = layers(root)
    shared = {one["file"]: _stamp(one["file"]) for one in found if one["kind"] == "shared"}
    problem = next((one["problem"] for one in found if one["problem"]), None)
    readable = all(one["settings"] is not None for one in found)
    return {"stamp": stamp, "shared": shared, "settings": merged(found) if readable else None, "problem": problem}


def layers(root: str, kinds: tuple[str, ...] = ("repository", "shared", "user")) -> list[Layer]:
    """The files that are there, the strongest first. Refused where a repository that is used has not been fetched, and
    where others could have written the user's own."""
    from pathlib import Path

    try:
        from tenuto.knowledge import sources
    except ModuleNotFoundError:  # a hook is started without site-packages (-S), where the YAML reader lies
        import site

        site.main()
        from tenuto.knowledge import sources

    wanted = sources.origins(Path(root)) if "shared" in kinds else sources.of_here(Path(root))
    files = [(one.kind, one.folder / sources.CONFIG) for one in wanted if one.kind in kinds]
    return [read for kind, path in files if (read := _layer(kind, path)) is not None]


def _layer(kind: str, path: Path) -> Layer | None:
    from tenuto.knowledge import sources
    from tenuto.knowledge.plain_data import is_file, source_of

    file = str(path)
    try:
        if not is_file(path):
            return None
        if kind == "user":
            sources.refuse_strangers_file(path)
        data = source_of(path).data
    except BadInput as error:
        wrong: Problem = {"code": error.code, "message": error.message, "hint": error.hint}
        return {"kind": kind, "file": file, "settings": None, "problem": wrong}
    if data is None:
        return {"kind": kind, "file": file, "settings": {}, "problem": None}
    if not isinstance(data, dict):
        problem: Problem = {
            "code": "bad-settings",
            "message": f"{file} must hold a mapping",
            "hint": "see docs/reference/settings.md",
        }
        return {"kind": kind, "file": file, "settings": None, "problem": problem}
    return {"kind": kind, "file": file, "settings": data, "problem": _first_problem(kind, file, data)}


def merged(found: list[Layer]) -> dict[str, object]:
    """Of each setting what the strongest file says; what protects adds up."""
    whole: dict[str, object] = {}
    for one in reversed(found):
        for name, value in (one["settings"] or {}).items():
            before = whole.pop(name, None)
            if name == "secrets" and isinstance(before, list) and isinstance(value, list):
                value = [*value, *(each for each in before if each not in value)]
            elif name == "gates" and before in LEVELS and value in LEVELS:
                value = stricter(str(before), str(value))
            whole[name] = value
    return whole


def repository_settings(root: str) -> Settings:
    return _checked(layers(root, ("repository", "shared")))


def user_settings(root: str) -> Settings:
    return _checked(layers(root, ("user",)))


def _checked(found: list[Layer]) -> Settings:
    for one in found:
        _raise(one["problem"])
    return merged(found)  # type: ignore[return-value]  # checked, each by its own shape


def problem_of(kind: str, path: str, name: str, value: object) -> Problem | None:
    """What is wrong with one setting of a file."""
    if name not in SETTINGS:
        from tenuto.core.pipeline.values import near_word

        message = f"{path} has a setting '{name}' that nobody knows"
        near = near_word(name, list(SETTINGS))
        hint = f"did you mean '{near}'? " if near else ""
        hint += f"known: {', '.join(SETTINGS)}"
        return {"code": "bad-settings", "message": message, "hint": hint}
    if name == "uses" and kind != "repository":
        message = f"{path}: 'uses' stands in the settings of a repository only"
        return {"code": "bad-settings", "message": message, "hint": "write it into .tenuto/config.yaml"}
    return None if SETTINGS[name].fits(value) else _misfit(path, name)


def _first_problem(kind: str, path: str, data: dict[str, object]) -> Problem | None:
    for name, value in data.items():
        problem = problem_of(kind, path, name, value)
        if problem is not None:
            return problem
    return None


def _misfit(path: str, name: str) -> Problem:
    setting = SETTINGS[name]
    message = f"{path}: '{name}' must be {setting.shape}"
    return {"code": "bad-settings", "message": message, "hint": f"{name}: {setting.example}"}


def _is_link(path: str) -> bool:
    try:
        posix.readlink(path)
    except OSError:
        return False
    return True


def _kept(path: str) -> Compiled | None:
    """What an earlier process compiled; None where there is nothing, or nothing whole."""
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        compiled = loads(posix.read(file, _LARGEST).decode())
    except (OSError, ValueError):
        return None
    finally:
        posix.close(file)
    whole = isinstance(compiled, dict) and compiled.keys() == {"stamp", "shared", "settings", "problem"}
    return compiled if whole else None


def _keep(path: str, compiled: Compiled) -> None:
    """A cache: where it cannot be written, the next process compiles again."""
    text = dumps(compiled).encode("utf-8", "surrogateescape")
    beside = f"{path}.{posix.getpid()}"
    if len(text) >= _LARGEST:
        return
    try:
        file = posix.open(beside, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
        try:
            posix.write(file, text)
        finally:
            posix.close(file)
        posix.rename(beside, path)
    except OSError:
        pass


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _text_or_texts(value: object) -> bool:
    return _text(value) or (isinstance(value, list) and bool(value) and all(map(_text, value)))


def _moments(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(one in MOMENTS for one in value)


def _is_target(value: object) -> bool:
    return _TARGET(value) and isinstance(value, dict) and any(value.get(name) for name in CHANNELS)


def _variables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name.isprintable() for name in value)


def _named_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and _text(one) for name, one in value.items())


def seconds(value: object) -> int | None:
    """A span of time, as pipelines write it: 90, 90s, 30m, 2h, 1d."""
    from tenuto.core.pipeline.values import View

    return View(value, (), []).seconds("a time", None)


def targets(settings: Settings) -> list[Target]:
    """Everybody who is to be told."""
    said = settings.get("notify", [])
    return said if isinstance(said, list) else [said]


def time_limit(settings: Settings) -> int | None:
    """Of an attempt whose pipeline says nothing, in seconds; None where the user wants none."""
    said = settings.get("time_limit", TIME_LIMIT)
    return None if said == UNLIMITED else seconds(said)


def _one_of(words: tuple[str, ...]) -> Setting:
    return Setting(f"one of {', '.join(words)}", lambda value: value in words, words[0])


def _parts(**parts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict) and all(name in parts and parts[name](one) for name, one in value.items())
    )


def _is_amounts(value: object, more: tuple[str, ...] = ()) -> bool:
    """Limits by unit: attempts, tokens and, in dollars, money."""
    known = ("attempts", "tokens", "money", *more)
    return isinstance(value, dict) and all(
        unit in known and _is_number(amount) and (unit == "money" or isinstance(amount, int))
        for unit, amount in value.items()
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _is_queue(value: object) -> bool:
    return isinstance(value, dict) and all(
        name == "at_once" and isinstance(number, int) and not isinstance(number, bool) and 0 < number <= 64
        for name, number in value.items()
    )


def _is_budget(value: object) -> bool:
    return isinstance(value, dict) and all(span in ("day", "ever") and _is_amounts(one) for span, one in value.items())


def _is_schedules(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and _is_schedule(one) for name, one in value.items())


def _is_schedule(value: object) -> bool:
    if not isinstance(value, dict) or any(name not in _OF_A_SCHEDULE for name in value):
        return False
    texts = [value.get(name, "-") for name in ("every", "request", "pipeline", "agent", "zone")]
    switches = value.get("switches", {})
    return (
        "every" in value
        and "request" in value
        and all(isinstance(text, str) and bool(text.strip()) for text in texts)
        and _is_amounts(value.get("limits", {}), ("wall_clock",))
        and isinstance(switches, dict)
        and all(isinstance(on, bool) for on in switches.values())
        and isinstance(value.get("params", {}), dict)
    )


CHANNELS = ("command", "url", "desktop", "terminal", "apprise")
_TARGET = _parts(
    command=_text,
    url=_address,
    desktop=lambda value: isinstance(value, bool),
    terminal=lambda value: isinstance(value, bool),
    apprise=_text_or_texts,
    on=_moments,
    page=_address,
)
SETTINGS: dict[str, Setting] = {
    "agent": Setting("an agent", _text, "command:./my-agent"),
    "roles": Setting("a mapping of roles to agents", _named_texts, '{designer: "command:./other"}'),
    "fallback": Setting("a mapping of agents to agents", _named_texts, "{claude: codex}"),
    "pipeline": Setting("the name of a pipeline", _text, "eight-step"),
    "checks": Setting("a mapping of names to commands", _named_texts, "{build: make, tests: make test}"),
    "environment": Setting("a list of names of variables", _variables, "[MY_API_URL]"),
    "secrets": Setting("a list of names of variables", _variables, "[MY_API_TOKEN]"),
    "time_limit": Setting(
        f"a span of time, or {UNLIMITED}", lambda value: value == UNLIMITED or seconds(value) is not None, "90m"
    ),
    "workspace": _one_of(WORKSPACES),
    "setup": Setting("run and copy, each a list", _parts(run=_texts, copy=_texts), "{run: [npm ci], copy: [.env]}"),
    "gates": _one_of(LEVELS),
    "signers": Setting("the path of a file", _text, ".tenuto/signers"),
    "isolation": Setting("a list of words, a command", _texts, "[sudo, -u, agent, --]"),
    "notify": Setting(
        f"a target, or a list of them; each has one or more of {', '.join(CHANNELS)}, and may have on, page",
        lambda value: _is_target(value) or (isinstance(value, list) and all(map(_is_target, value))),
        "{desktop: true, apprise: 'slack://${SLACK_TOKEN}', on: [gate, failed], page: 'http://127.0.0.1:8000'}",
    ),
    "uses": Setting(
        "a shared repository, or a list of them, each pinned by its commit",
        lambda value: _is_reference(value) or (isinstance(value, list) and all(map(_is_reference, value))),
        f"[github.com/our-org/agents@{'0123456789' * 4}]",
    ),
    "zone": Setting("the name of a zone of time", _text, "Europe/Berlin"),
    "schedules": Setting(
        "a mapping of names to every, request and, if you like, pipeline, agent, zone, limits, switches, params",
        _is_schedules,
        "{nightly: {every: weekday 02:00, request: Update the dependencies}}",
    ),
    "queue": Setting("at_once, a number from 1 to 64", _is_queue, "{at_once: 2}"),
    "budget": Setting(
        "day and ever, each with attempts, tokens, money (dollars)",
        _is_budget,
        "{day: {money: 20, attempts: 200}}",
    ),
    "pull_request": Setting(
        "forge (github or gitlab), remote, base, draft (true or false) and ask (true or false)",
        _parts(forge=lambda value: value in FORGES, remote=_text, base=_text, draft=_flag, ask=_flag),
        "{remote: origin, base: main, draft: true, ask: true}",
    ),
}


def _is_reference(value: object) -> bool:
    from tenuto.knowledge.sources import is_reference

    return is_reference(value)
