"""What an item is called, and which items a name, a text or a file points to.

    look_up(directory(items), "task-3")   the one item that is meant, or none, or several
    named_in(text, items)                 the items that a text names by id
    same_file(a, b)                       whether two paths mean one file

People and agents write one item in many ways: `03`, `3`, `task-3`, `Task 3`, `TASK-003`, `T3`,
`#3`, `03-parser`, `parser`. A name is tried exactly first, then without prefix and leading zeros,
then by its number alone, then by its words alone, then by the item's title. The first way that
finds anything decides.

Rule 1: a name that fits two items fits none. Nothing here guesses; whoever asks gets all that fit.
Rule 2: a bare number in running text is not an item. It is one after "task", "item", "id" or "#".
Rule 3: nothing here decides what happens to an item; waves.py does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import NotRequired, TypedDict

    class PlannedItem(TypedDict):
        """One unit of implementation work, as the plan has it."""

        id: str
        title: str
        files: list[str]
        depends_on: list[str]
        agent: str | None  # as written; None where the plan names none
        wave: int | None  # as written, from 1; None where none was written
        description: str
        effort: str | None
        lines: int | None
        file_count: NotRequired[int]  # where a plan says how many files, but not which
        source: NotRequired[str]  # the item's own file
        digest: NotRequired[str]  # of everything the plan says about it, its wave apart

    Directory = dict[str, dict[str, list[str]]]

_PREFIXES = ("task", "tasks", "item", "items", "todo", "step")
_LISTING = ("task", "tasks", "item", "items", "id", "ids")
_JOINING = ("and", "or", "to", "through")
_TIERS = ("exact", "key", "number", "words", "title")


def key_of(name: str) -> str:
    """A name without decoration, prefix and leading zeros: `TASK-003` and `3` are both `3`."""
    plain = name.strip().strip("`*[](){}\"' \t").lower().removesuffix(".md").lstrip("#").strip()
    for mark in (" ", "_", ":"):
        plain = plain.replace(mark, "-")
    parts = [part for part in plain.split("-") if part]
    while len(parts) > 1 and parts[0] in _PREFIXES:
        parts = parts[1:]
    if len(parts) > 1 and parts[0] == "t" and parts[1][0].isdigit():
        parts = parts[1:]
    if parts:
        for prefix in ("task", "t"):
            rest = parts[0].removeprefix(prefix)
            if _is_number(rest):
                parts[0] = rest
    return "-".join(_without_zeros(part) for part in parts)


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "").isdigit() and text[0].isdigit()


def _without_zeros(part: str) -> str:
    if not _is_number(part):
        return part
    return ".".join(piece.lstrip("0") or "0" for piece in part.split("."))


def number_of(name: str) -> str:
    """The number that a name begins with, without leading zeros; empty when there is none."""
    return _divided(name)[0]


def words_of(name: str) -> str:
    """A name without its number: `03-parser` is `parser`. Empty when it has no number to begin with."""
    return _divided(name)[1]


def _divided(name: str) -> tuple[str, str]:
    number, _, words = key_of(name).partition("-")
    # `1-3` is a range or an id of its own, not number 1 with a remark.
    return (number, words) if _is_number(number) and not words[:1].isdigit() else ("", "")


def directory(items: Iterable[PlannedItem]) -> Directory:
    """All names under which items can be found, one table per way of looking."""
    made: Directory = {tier: {} for tier in _TIERS}
    for item in items:
        name = item["id"]
        for tier, entry in (
            ("exact", name.lower()),
            ("key", key_of(name)),
            ("number", number_of(name)),
            ("words", words_of(name)),
            ("title", key_of(item["title"])),
        ):
            found = made[tier].setdefault(entry, [])
            if entry and name not in found:
                found.append(name)
    return made


def look_up(names: Directory, name: str) -> list[str]:
    """The ids that a name fits: one, none, or all that it could mean."""
    key, number, words = key_of(name), number_of(name), words_of(name)
    tries = [("exact", name.strip().lower()), ("key", key)]
    if words:
        # `03-parser` for the item `03`; never for `03-lexer`, which is another one.
        tries.append(("key", number))
    else:
        tries.append(("number", number) if number else ("words", key))
    tries.append(("title", key))
    for tier, entry in tries if key else ():
        found = names[tier].get(entry)
        if found:
            return list(found)
    return []


# ---- names in running text -------------------------------------------------------------------------


def named_in(text: str, items: Sequence[PlannedItem]) -> list[str]:
    """The items that a text names, in the items' order."""
    names = directory(items)
    named = {item["id"]: False for item in items}
    for name, listed in _names(text):
        # Outside a list `2-phase` is a word of its own, not item 2 with a remark.
        found = look_up(names, name) if listed or not words_of(name) else names["key"].get(key_of(name), [])
        if len(found) == 1:
            named[found[0]] = True
    return [name for name, hit in named.items() if hit]


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """What may be an id: words that look like one, and whatever stands in a list after "task"."""
    listing, ranging, start = False, False, ""
    for word, mark in _words(text):
        low = word.lower()
        if low in _LISTING or (listing and low in _JOINING):
            listing, ranging = True, low in ("to", "through")
            start = start if ranging else ""
            continue
        is_number = bool(number_of(word)) and not words_of(word)
        distinct = any(c.isalpha() for c in word) and ("-" in word or any(c.isdigit() for c in word))
        listed = listing or mark == "#"
        if distinct or listed:
            yield word, listed
        if listed:
            spans = start and is_number and (ranging or mark in ("–", "—"))
            for name in _between(start, word) if spans else _range_in(word):
                yield name, True
        # A plain word ends a list, unless a comma, a bullet or the like says that it is an entry: `task IDs: a, b`.
        listing = listing and (is_number or distinct or mark in (",", ":", "[", "(", "-"))
        ranging, start = False, word if is_number else ""


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Each word, and the mark that stands before it: `tasks 2, 3` gives `2` after nothing, `3` after a comma."""
    word, gap = "", ""
    for c in text + " ":
        if c.isalnum() or c in "./" or (word and c in "-_"):
            word += c
            continue
        stripped = word.strip("./-_")
        if stripped:
            yield stripped, gap.strip(" \t\r\n`*\"'")[-1:]
            gap = ""
        word = ""
        gap += c


def _range_in(word: str) -> Iterator[str]:
    """`02-04` and `02..04` are two numbers with what lies between."""
    for mark in ("..", "-"):
        first, _, last = word.partition(mark)
        if _is_number(first) and _is_number(last):
            yield from _between(first, last)


def _between(first: str, last: str) -> Iterator[str]:
    if not (number_of(first).isdigit() and number_of(last).isdigit()):
        return
    low, high = int(number_of(first)), int(number_of(last))
    if 0 <= high - low <= 500:
        for number in range(low, high + 1):
            yield str(number)


# ---- files -----------------------------------------------------------------------------------------


def same_file(a: str, b: str) -> bool:
    """Whether two paths can mean one file: equal, one the end of the other, a folder, or a `*` in `a`."""
    first, second = _path(a), _path(b)
    if not first or not second:
        return False
    if "*" in first:
        return _fits(first, second)
    if first.endswith("/"):
        return second.startswith(first) or f"/{first}" in second
    return first == second or first.endswith("/" + second) or second.endswith("/" + first)


def meant_by(name: str) -> list[str]:
    """Patterns of what a plan can mean by a file that is not there by that very path: the end of a path, a name without its
    ending, a folder. Planners write `spec.agent.md` or `ct-security` for `agents/ct-security.agent.md`."""
    plain = _path(name)
    if not plain or "*" in plain or plain.endswith("/") or plain.startswith(("/", "../")):
        return [plain] if plain else []
    bare = "." not in plain.rpartition("/")[2]
    return [plain, f"**/{plain}", *([f"{plain}.*", f"**/{plain}.*", f"{plain}/**"] if bare else [])]


def _path(path: str) -> str:
    plain = path.strip().strip("`'\"").replace("\\", "/").removeprefix("./")
    head, _, tail = plain.partition(":")
    return head if tail[:1].isdigit() else plain


def _fits(pattern: str, path: str) -> bool:
    first, *rest = pattern.split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for piece in rest[:-1]:
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return path.endswith(rest[-1]) and len(path) >= at + len(rest[-1])
