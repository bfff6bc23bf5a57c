"""Documents and files a definition names: do they stay inside, and can two names mean one file?

A pattern is a path below a folder. `*` stands for anything within one part, `**` for any parts,
a {placeholder} for one word that is not yet known.
"""

from __future__ import annotations

from tenuto.core import names
from tenuto.core.definition.values import View, kind_of
from tenuto.errors import BadInput

PLACEHOLDERS = ("slug", "item", "number", "iteration")
ITEM_FILES = "@item"


def read(view: View, what: str) -> list[str]:
    """A list of patterns, each of them inside."""
    found: list[str] = []
    for entry in view.entries():
        path = tidy(entry.text(what))
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


def tidy(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path


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
    a, b = _open(a), _open(b)
    return _matches(a.split("/"), b.split("/")) or _matches(b.split("/"), a.split("/"))


def fits(pattern: str, path: str) -> bool:
    """Whether this one file is meant by the pattern."""
    return _matches(_open(pattern).split("/"), path.split("/"))


def _open(path: str) -> str:
    for word in PLACEHOLDERS:
        path = path.replace("{" + word + "}", "*")
    return path


def _matches(pattern: list[str], parts: list[str]) -> bool:
    """Row by row, so that no pattern, however odd, costs more than its length times the path's."""
    reached = [True] + [False] * len(parts)
    for piece in pattern:
        if piece == "**":
            for index in range(1, len(reached)):
                reached[index] = reached[index] or reached[index - 1]
        else:
            reached = [False] + [reached[index] and _part_matches(piece, part) for index, part in enumerate(parts)]
    return reached[-1]


def _part_matches(pattern: str, part: str) -> bool:
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return pattern == part
    if not part.startswith(pieces[0]) or not part.endswith(pieces[-1]):
        return False
    rest = part[len(pieces[0]) :]
    for piece in pieces[1:-1]:
        position = rest.find(piece)
        if position < 0:
            return False
        rest = rest[position + len(piece) :]
    return len(rest) >= len(pieces[-1])
