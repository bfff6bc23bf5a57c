"""Items: what they are called, which of them run, and in which order.

    look_up(directory(items), "task-3")   the one item that is meant, or none, or several
    named_in(text, items)                 the items that a text names by id
    same_file(a, b)                       whether two paths mean one file
    affected(items, findings)             the items that findings name by id or file; none matched: all
    due(items, before, ...)               the items that a fix pass runs
    agent_for(item, ...)                  the agent that an item is given to
    passed_limits(item, limits)           what the planner was told not to exceed, and did
    arrange(items)                        items -> waves; what was moved, and why
    partition(wave, cap)                  a wave -> sub-waves of at most `cap`
    chain_lengths(items)                  how long a chain each item begins: the longest starts first in rolling order
    skipped(items, failed)                which items cannot run any more because one failed

Which items may start at this moment is asked of the current visit (visit.py).

Names. People and agents write one item in many ways: `03`, `3`, `task-3`, `Task 3`, `TASK-003`, `T3`, `#3`,
`03-parser`, `parser`. A name is tried exactly first, then without prefix and leading zeros, then by its number alone,
then by its words alone, then by the item's title. The first way that finds anything decides.

Rule 1: a name that fits two items fits none. Nothing here guesses; the caller gets all that fit.
Rule 2: a bare number in running text is not an item. It is one after "task", "item", "id" or "#".

Selection.

Rule 3: an item that is DONE, unchanged and not named as failing does not run again.
Rule 4: a finding that names nothing concerns every item that is fixed at all.
Rule 5: an agent with an unknown name is never started; the default is, with a warning.
Rule 6: limits are warnings here. Whether one sends the plan back is the pipeline's choice.

Order.

Rule 7: written waves are kept. An item is only ever moved later, past what it depends on, never earlier, and every
move is reported. Without written waves an item stands in the first wave in which everything it depends on is done.
Rule 8: an unknown id, an id used twice and a cycle are refused, and named. Nothing is dropped.
Rule 9: the same items in the same order give the same answer, always.
"""

from __future__ import annotations

from tenuto.errors import Refused
from tenuto.names import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from typing import TypedDict

    from tenuto.core.pipeline.records import ItemLimits
    from tenuto.core.records.commands import Finding
    from tenuto.core.records.run import PlannedItem

    Directory = dict[str, dict[str, list[str]]]

    class Named(TypedDict):
        """Of an item, what it is called."""

        id: str
        title: str

    class Dependent(TypedDict):
        """Of an item, what it waits for."""

        id: str
        depends_on: list[str]

    class Affected(TypedDict):
        items: list[str]
        unmatched: list[int]  # which findings name no item: these go to every item above

    class Move(TypedDict):
        """One item that could not stay where the plan has it."""

        item: str
        from_wave: int
        to_wave: int
        because: list[str]  # the dependencies that end only in the wave before

    class Arrangement(TypedDict):
        waves: list[list[str]]  # each in the plan's order; none empty
        numbers: list[int]  # what the plan calls them
        moves: list[Move]
        unwritten: list[str]  # items that the plan gives no wave, where it gives others one


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


def directory(items: Iterable[Named]) -> Directory:
    """All names under which items can be found, one table per way of looking."""
    made: dict[str, dict[str, dict[str, None]]] = {tier: {} for tier in _TIERS}
    for item in items:
        name = item["id"]
        for tier, entry in (
            ("exact", name.lower()),
            ("key", key_of(name)),
            ("number", number_of(name)),
            ("words", words_of(name)),
            ("title", key_of(item["title"])),
        ):
            made[tier].setdefault(entry, {}).update({name: None} if entry else {})
    return {tier: {entry: list(found) for entry, found in entries.items()} for tier, entries in made.items()}


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
    named = names_in(text, directory(items))
    return [name for name in dict.fromkeys(item["id"] for item in items) if name in named]


def names_in(text: str, names: Directory) -> dict[str, None]:
    """The same, in the text's order, for who asks of many texts."""
    named: dict[str, None] = {}
    for name, listed in _names(text):
        # Outside a list `2-phase` is a word of its own, not item 2 with a remark.
        found = look_up(names, name) if listed or not words_of(name) else names["key"].get(key_of(name), [])
        if len(found) == 1:
            named[found[0]] = None
    return named


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
        return fits(first, second)
    if first.endswith("/"):
        return second.startswith(first) or f"/{first}" in second
    return first == second or first.endswith("/" + second) or second.endswith("/" + first)


def meant_by(name: str) -> list[str]:
    """Patterns of what a plan can mean by a file that is not there by that very path: the end of a path, a name
    without its ending, a folder. Planners write `spec.agent.md` or `ct-security` for `agents/ct-security.agent.md`."""
    plain = _path(name)
    if not plain or "*" in plain or plain.endswith("/") or plain.startswith(("/", "../")):
        return [plain] if plain else []
    bare = "." not in plain.rpartition("/")[2]
    return [plain, f"**/{plain}", *([f"{plain}.*", f"**/{plain}.*", f"{plain}/**"] if bare else [])]


def _path(path: str) -> str:
    plain = path.strip().strip("`'\"").replace("\\", "/").removeprefix("./")
    head, _, tail = plain.partition(":")
    return head if tail[:1].isdigit() else plain


# The planner's limits, where a pipeline gives none of its own.
LIMITS: ItemLimits = {"files": 3, "depends_on": 2, "lines": 500, "effort": "Medium"}

_EFFORTS = {
    "Low": ("low", "small", "s", "xs", "trivial", "tiny", "easy", "simple"),
    "Medium": ("medium", "m", "moderate", "med"),
    "High": ("high", "large", "l", "xl", "xxl", "hard", "complex", "huge", "very"),
}
_TEST_FOLDERS = ("test", "tests", "__tests__", "spec", "specs", "testing", "e2e")
_RANKS = {"Low": 0, "Medium": 1, "High": 2}
_COMPARED = ("title", "files", "depends_on", "agent", "description")


# ---- which items run -------------------------------------------------------------------------------


def affected(items: Sequence[PlannedItem], findings: Sequence[Finding]) -> Affected:
    """`findings`: each with a "text", and a "file" where it has one."""
    hit = {item["id"]: False for item in items}
    unmatched: list[int] = []
    for position, finding in enumerate(findings):
        names = _concerned(items, finding)
        for name in names:
            hit[name] = True
        if not names:
            unmatched.append(position)
    matched = any(hit.values())
    return {"items": [name for name, yes in hit.items() if yes or not matched], "unmatched": unmatched}


def _concerned(items: Sequence[PlannedItem], finding: Finding) -> list[str]:
    text, file = str(finding.get("text") or ""), str(finding.get("file") or "")
    by_id = dict.fromkeys(named_in(text, items))
    places = [file, *(word.strip("`'\"*()[],;.") for word in text.split() if "." in word or "/" in word)]
    return [
        item["id"]
        for item in items
        if item["id"] in by_id or any(same_file(own, place) for own in item["files"] for place in places)
    ]


def due(
    items: Sequence[PlannedItem], before: Sequence[PlannedItem], *, done: Container[str], failing: Container[str]
) -> list[str]:
    """What a fix pass runs: new or changed items, those named as failing, and those that never ended well."""
    old = {item["id"]: item for item in before}
    return [
        item["id"]
        for item in items
        if item["id"] not in done
        or item["id"] in failing
        or item["id"] not in old
        or has_changed(old[item["id"]], item)
    ]


def has_changed(before: PlannedItem, after: PlannedItem) -> bool:
    """Whether the work itself is another one. To stand in another wave is not a change."""
    first, second = before.get("digest"), after.get("digest")
    if first and second:
        return first != second
    return any(before.get(name) != after.get(name) for name in _COMPARED)


# ---- what an item asks for -------------------------------------------------------------------------


def agent_for(item: str, written: str | None, valid: Sequence[str], default: str) -> tuple[str, str]:
    """The agent of this item, and a warning that is empty when all is well. `written`: as the plan names it."""
    if written is None or not written.strip():
        return default, ""
    plain = "-".join(written.strip().strip("`*'\"").lower().replace("_", " ").replace("-", " ").split())
    if plain in valid:
        return plain, ""
    return default, (
        f"item {item} names the agent '{written}', which is none of {', '.join(valid)}; {default} is used instead"
    )


def passed_limits(item: PlannedItem, limits: ItemLimits = LIMITS) -> list[str]:
    """One sentence per limit that the item passes."""
    files = production_files(item)
    count = max(len(files), 0 if item["files"] else item.get("file_count", 0))
    found: list[str] = []
    for what, value, limit in (
        ("production files", count, limits["files"]),
        ("dependencies", len(item["depends_on"]), limits["depends_on"]),
        ("lines", item["lines"] or 0, limits["lines"]),
    ):
        if limit is not None and value > limit:
            found.append(f"item {item['id']} has {value} {what}; the limit is {limit}")
    effort = effort_of(item)
    if limits["effort"] and effort and _RANKS[effort] > _RANKS[limits["effort"]]:
        found.append(f"item {item['id']} is of {item['effort']} effort; the limit is {limits['effort']}")
    return found


def production_files(item: PlannedItem) -> list[str]:
    """The item's files without its tests."""
    return [file for file in dict.fromkeys(item["files"]) if not is_test(file)]


def is_test(path: str) -> bool:
    *folders, name = path.replace("\\", "/").split("/")
    if any(folder.lower() in _TEST_FOLDERS for folder in folders):
        return True
    stem, low = name.partition(".")[0], name.lower()
    if ".test." in low or ".spec." in low or stem.lower() == "conftest":
        return True
    # `ParserTest.java` is a test, `Latest.java` is not.
    return (
        stem.lower().startswith("test_")
        or stem.lower().endswith(("_test", "-test", "_spec"))
        or stem.endswith(("Test", "Tests"))
    )


def effort_of(item: PlannedItem) -> str:
    """Low, Medium, High; the higher end of a range; empty when the plan says nothing that we know."""
    said = (item["effort"] or "").lower()
    words = "".join(c if c.isalnum() else " " for c in said).split()
    found = [level for level, names in _EFFORTS.items() if any(word in names for word in words)]
    return found[-1] if found else ""


class PlanRefused(Refused):
    """A plan that cannot be carried out. `names` are the ids to blame; the planner gets them as NEEDS_REVISION."""

    def __init__(self, code: str, message: str, names: Sequence[str], hint: str = "", **details: object) -> None:
        super().__init__(code, message, hint, names=list(names), **details)
        self.names = list(names)


# ---- items -> waves --------------------------------------------------------------------------------


def arrange(items: Sequence[PlannedItem]) -> Arrangement:
    order = in_order(items)
    by_id = {item["id"]: item for item in items}
    anything_written = any(item["wave"] is not None for item in items)
    placed: dict[str, int] = {}
    moves: dict[str, Move] = {}
    for name in order:
        item = by_id[name]
        earliest = 1 + max((placed[before] for before in item["depends_on"]), default=0)
        written = item["wave"]
        placed[name] = max(earliest, written or 1)
        if written is not None and written < earliest:
            because = [before for before in item["depends_on"] if placed[before] == earliest - 1]
            moves[name] = {"item": name, "from_wave": written, "to_wave": earliest, "because": because}
    waves: dict[int, list[str]] = {}
    for item in items:
        waves.setdefault(placed[item["id"]], []).append(item["id"])
    numbers = sorted(waves)
    return {
        "waves": [waves[number] for number in numbers],
        "numbers": numbers,
        "moves": [moves[item["id"]] for item in items if item["id"] in moves],
        "unwritten": [item["id"] for item in items if anything_written and item["wave"] is None],
    }


def in_order(items: Sequence[PlannedItem]) -> list[str]:
    """Every id once, after what it depends on, otherwise as the plan has them; or PlanRefused."""
    by_id = {item["id"]: item for item in items}
    _refuse_twice(items)
    _refuse_unknown(items, by_id)
    open_counts = {item["id"]: len(dict.fromkeys(item["depends_on"])) for item in items}
    after = dependents(items)
    ready = [item["id"] for item in items if not open_counts[item["id"]]]
    order: list[str] = []
    while ready:
        order.extend(ready)
        freed: list[str] = []
        for name in ready:
            for follower in after[name]:
                open_counts[follower] -= 1
                if not open_counts[follower]:
                    freed.append(follower)
        ready = freed
    if len(order) < len(items):
        _refuse_cycle([item for item in items if open_counts[item["id"]]])
    return order


def dependents(items: Sequence[Dependent]) -> dict[str, list[str]]:
    """Per item those that wait for it, in the plan's order."""
    after: dict[str, list[str]] = {item["id"]: [] for item in items}
    for item in items:
        for before in dict.fromkeys(item["depends_on"]):
            if before in after:
                after[before].append(item["id"])
    return after


def _refuse_twice(items: Sequence[PlannedItem]) -> None:
    seen: dict[str, int] = {}
    for item in items:
        seen[item["id"]] = seen.get(item["id"], 0) + 1
    twice = [name for name, times in seen.items() if times > 1]
    if twice:
        raise PlanRefused(
            "item-twice",
            f"the plan has more than one item with the id {_listed(twice)}",
            twice,
            "give every item an id of its own",
        )


def _refuse_unknown(items: Sequence[PlannedItem], by_id: Mapping[str, PlannedItem]) -> None:
    missing = {item["id"]: [name for name in item["depends_on"] if name not in by_id] for item in items}
    wrong = [(name, before) for name, unknown in missing.items() for before in unknown]
    if wrong:
        said = "; ".join(f"{name} depends on '{before}'" for name, before in wrong)
        raise PlanRefused(
            "unknown-item",
            f"the plan has no such item: {said}",
            list(dict.fromkeys(before for _, before in wrong)),
            "name an item of this plan, or write 'none'",
            missing={name: unknown for name, unknown in missing.items() if unknown},
        )


def _refuse_cycle(stuck: Sequence[PlannedItem]) -> None:
    """Follow one dependency after the other among the items that never became ready, until one comes back."""
    waiting = {item["id"]: [name for name in item["depends_on"]] for item in stuck}
    path: list[str] = [stuck[0]["id"]]
    while path[-1] not in path[:-1]:
        path.append(next(name for name in waiting[path[-1]] if name in waiting))
    cycle = path[path.index(path[-1]) :]
    raise PlanRefused(
        "cycle",
        f"these items wait for each other: {' -> '.join(cycle)}",
        cycle[:-1],
        "remove one of these dependencies",
        stuck=list(waiting),
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def partition(wave: Sequence[str], cap: int) -> list[list[str]]:
    """Sub-waves of at most `cap`, in the wave's order."""
    if cap < 1:
        raise ValueError(f"a cap of {cap} lets nothing run")
    return [list(wave[start : start + cap]) for start in range(0, len(wave), cap)]


def shared_files(waves: Sequence[Sequence[str]], items: Sequence[PlannedItem]) -> list[tuple[str, list[str]]]:
    """Files that two items of one wave both want to change, with these items."""
    by_id = {item["id"]: item for item in items}
    found: list[tuple[str, list[str]]] = []
    for wave in waves:
        owners: dict[str, list[str]] = {}
        for name in wave:
            for file in dict.fromkeys(file.removeprefix("./") for file in by_id[name]["files"]):
                owners.setdefault(file, []).append(name)
        found.extend((file, names) for file, names in owners.items() if len(names) > 1)
    return found


def chain_lengths(items: Sequence[PlannedItem], lengths: Mapping[str, int] | None = None) -> dict[str, int]:
    """Per item how long the longest chain is that it begins, in items or in the lengths given."""
    after = dependents(items)
    chains: dict[str, int] = {}
    # A fix pass runs some items of a plan; what they depend on outside of these lengthens no chain.
    inside: list[PlannedItem] = [
        {**item, "depends_on": [name for name in item["depends_on"] if name in after]} for item in items
    ]
    for name in reversed(in_order(inside)):
        own = 1 if lengths is None else lengths.get(name, 1)
        chains[name] = own + max((chains[follower] for follower in after[name]), default=0)
    return chains


def skipped(items: Sequence[Dependent], failed: Sequence[str]) -> list[str]:
    """Everything that depends on a failed item, directly or through others, in the plan's order."""
    lost = dict.fromkeys(_reached(dependents(items), failed))
    return [item["id"] for item in items if item["id"] in lost]


def _reached(after: Mapping[str, Sequence[str]], start: Sequence[str]) -> Iterator[str]:
    waiting, seen = list(start), dict.fromkeys(start)
    while waiting:
        for follower in after.get(waiting.pop(), ()):
            if follower not in seen:
                seen[follower] = None
                waiting.append(follower)
                yield follower
