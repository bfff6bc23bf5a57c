"""Read one value of a definition and note what is wrong with it.

A View is a value together with the path that leads to it. Its readers return what the language
means, or the default after noting a problem, so that one pass reports everything that is wrong.

Nothing here knows what a step or a route is. Nothing here raises.

Documents and files a definition names: do they stay inside, and can two names mean one file?

How a pattern is read is said in names.py.
"""

from __future__ import annotations

from tenuto import names
from tenuto.errors import BadInput
from tenuto.names import PLACEHOLDERS, without_dots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tenuto.core.pipeline.records import PathPart, Problem


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LARGEST = 10**15


class View:
    __slots__ = ("path", "problems", "value")

    def __init__(self, value: object, path: tuple[PathPart, ...], problems: list[Problem]) -> None:
        self.value = value
        self.path = path
        self.problems = problems

    # ---- around ------------------------------------------------------------------------------------

    def note(self, code: str, message: str, hint: str = "") -> None:
        self.problems.append({"path": list(self.path), "code": code, "message": message, "hint": hint})

    def at(self, key: PathPart, value: object) -> View:
        return View(value, (*self.path, key), self.problems)

    def at_same(self, value: object) -> View:
        """Another value in the same place: what a shorthand stands for."""
        return View(value, self.path, self.problems)

    def has(self, key: str) -> bool:
        """Given, and not null: null always means the default."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def get(self, key: str) -> View:
        return self.at(key, self.value.get(key) if isinstance(self.value, dict) else None)

    def entries(self) -> list[View]:
        """The elements of a list; a single value is a list of one."""
        if self.value is None:
            return []
        if isinstance(self.value, list):
            return [self.at(index, entry) for index, entry in enumerate(self.value)]
        return [self]

    def fields(self) -> list[tuple[str, View]]:
        if not isinstance(self.value, dict):
            return []
        return [(key, self.at(key, value)) for key, value in self.value.items() if isinstance(key, str)]

    # ---- whole mappings ----------------------------------------------------------------------------

    def is_mapping(self, what: str, allowed: Sequence[str]) -> bool:
        """A mapping with no other keys than these."""
        if not isinstance(self.value, dict):
            self.note(
                "wrong-type",
                f"{what} must be a mapping, not {kind_of(self.value)}",
                f"known keys: {', '.join(allowed)}",
            )
            return False
        for key in self.value:
            if not isinstance(key, str):
                self.note("wrong-type", f"the key {key!r} of {what} is {kind_of(key)}, not text", "write it in quotes")
            elif key not in allowed:
                self.at(key, None).note("unknown-key", f"{what} has no key '{key}'", did_you_mean(key, allowed))
        return True

    # ---- single values -----------------------------------------------------------------------------

    def text(self, what: str, default: str = "") -> str:
        if self.value is None:
            return default
        if isinstance(self.value, str):
            return self.value
        hint = "write it in quotes" if isinstance(self.value, int | float) else ""
        self.note("wrong-type", f"{what} must be text, not {kind_of(self.value)}", hint)
        return default

    def choice(self, what: str, allowed: Sequence[str], default: str) -> str:
        found = self.text(what, default)
        if found in allowed:
            return found
        self.note("unknown-value", f"{what} cannot be '{found}'", did_you_mean(found, allowed))
        return default

    def flag(self, what: str, default: bool) -> bool:
        if self.value is None:
            return default
        if isinstance(self.value, bool):
            return self.value
        self.note("wrong-type", f"{what} must be true or false, not {kind_of(self.value)}")
        return default

    def whole(self, what: str, default: int | None, least: int = 0, most: int = LARGEST) -> int | None:
        if self.value is None:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.note("wrong-type", f"{what} must be a whole number, not {kind_of(self.value)}")
            return default
        if not least <= self.value <= most:
            self.note("out-of-range", f"{what} is {self.value}; it must be from {least} to {most}")
            return default
        return self.value

    def number(self, what: str, default: int, least: int = 0, most: int = LARGEST) -> int:
        found = self.whole(what, default, least, most)
        return default if found is None else found

    def seconds(self, what: str, default: int | None) -> int | None:
        """A whole number of seconds, or text like 90s, 30m, 2h, 1d."""
        if not isinstance(self.value, str):
            return self.whole(what, default, least=1)
        amount, unit = self.value[:-1], self.value[-1:]
        if not (amount.isascii() and amount.isdigit() and unit in _UNITS and len(amount) < 10 and int(amount)):
            self.note(
                "wrong-type",
                f"{what} cannot be read: '{self.value}'",
                "write seconds, or a number with s, m, h or d: 30m",
            )
            return default
        return int(amount) * _UNITS[unit]

    def dollars(self, what: str, default: int | None) -> int | None:
        """An amount of US dollars, as micro-dollars: money is never added up as a float."""
        if self.value is None:
            return default
        text = self.value if isinstance(self.value, str) else repr(self.value)
        whole, _, cents = text.partition(".")
        if not (whole + cents).isdigit() or not text.isascii() or not whole or len(cents) > 6 or len(whole) > 9:
            self.note("wrong-type", f"{what} must be an amount in US dollars, not {text}", "for example 12.50")
            return default
        return int(whole) * 1_000_000 + int(cents.ljust(6, "0"))

    def words(self, what: str, allowed: Sequence[str] | None = None) -> list[str]:
        """A list of text, each once; a single one may stand without its brackets."""
        found: list[str] = []
        for entry in self.entries():
            word = entry.text(what)
            if not word:
                if isinstance(entry.value, str) or entry.value is None:
                    entry.note("empty", f"{what} is empty")
            elif allowed is not None and word not in allowed:
                entry.note("unknown-value", f"{what} cannot be '{word}'", did_you_mean(word, allowed))
            elif word in found:
                entry.note("duplicate", f"{what} '{word}' is there twice")
            else:
                found.append(word)
        return found


def kind_of(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, int | float):
        return f"the number {value!r}"
    if isinstance(value, str):
        return f"the text '{value[:40]}'"
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "something else"


def did_you_mean(word: str, known: Collection[str]) -> str:
    """The closest known word, else all of them."""
    if not known:
        return ""
    near = near_word(word, known)
    return f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(known))}"


def near_word(word: str, known: Collection[str]) -> str:
    """The closest known word, if it is close enough to be meant; else ""."""
    if not known:
        return ""
    near = min(known, key=lambda candidate: (_distance(word.lower(), candidate.lower()), candidate))
    return near if _distance(word.lower(), near.lower()) <= max(1, len(word) // 3) else ""


def _distance(a: str, b: str) -> int:
    """Edits that turn one word into the other (a swap of neighbours is one)."""
    a, b = a[:64], b[:64]
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, previous, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
    return row[-1]


# ---- paths ------------------------------------------------------------


ITEM_FILES = "@item"


def read(view: View, what: str) -> list[str]:
    """A list of patterns, each of them inside."""
    found: list[str] = []
    for entry in view.entries():
        path = without_dots(entry.text(what))
        if not path:
            if isinstance(entry.value, str) or entry.value is None:
                entry.note("empty", f"{what} is empty")
            continue
        problem = wrong(path)
        if problem:
            entry.note(
                "bad-path",
                f"{what} '{path}' cannot be used: {problem}",
                "use a path below the folder, like research/impact.md",
            )
        elif path not in found:
            found.append(path)
        else:
            entry.note("duplicate", f"{what} '{path}' is there twice")
    return found


def read_one(view: View, what: str, default: str = "") -> str:
    if view.value is None or view.value == default:
        return default
    if not isinstance(view.value, str):
        view.note("wrong-type", f"{what} must be one path, not {kind_of(view.value)}")
        return default
    found = read(view, what)
    return found[0] if found else default


def wrong(path: str) -> str:
    """Why a pattern leads outside or cannot be a file name; "" if it is fine."""
    if path == ITEM_FILES:
        return ""
    for word in placeholders(path):
        if word not in PLACEHOLDERS:
            return f"{{{word}}} means nothing; known: {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)}"
    try:
        names.check_path(blank(path), "path")
    except BadInput as refused:
        return refused.message.partition(" cannot be used: ")[2] or refused.message
    return ""


def blank(path: str) -> str:
    """The path with every placeholder turned into an ordinary word."""
    for word in PLACEHOLDERS:
        path = path.replace("{" + word + "}", "x")
    return path


def placeholders(path: str) -> list[str]:
    return [part.partition("}")[0] for part in path.split("{")[1:]]


def meet(a: str, b: str) -> bool:
    """Whether one name can stand for the other."""
    a, b = names.fill_with_stars(a), names.fill_with_stars(b)
    return names.fits(a, b) or names.fits(b, a)
