"""Names that become file names.

    slug("Add dark mode!")  -> "add-dark-mode"
    check("TICKET-123")     -> the same, or BadInput
    file_key("fix", "a.md") -> "fix//a.md", a.md of the linked work tree fix

A path is only ever built from what these two return, so a name can never lead outside
the repository: no separator, no `..`, no drive letter, no control or direction mark,
no leading dash, no more than a file system takes.

Patterns of paths, read the same way by the engine, the hooks, the plans and the check of a pipeline:

    fits("src/*.py", "src/a.py")   -> True
    as_glob("docs/[id]/*.md")      -> the same pattern, for the glob module

Rule 1: a pattern is a path below one folder, compared part by part. A leading `./` means nothing.
Rule 2: `*` stands for any characters of one part: `src/*.py` is not `src/a/b.py`.
Rule 3: `**` as a whole part stands for any number of parts, also none: `**/a.py` is `a.py`, too. Beside other
characters it is `*`.
Rule 4: a pattern that ends in a slash is everything below that folder. A folder's name without the slash is only
itself.
Rule 5: {slug}, {item}, {number} and {iteration} stand for one word that is not known yet, like `*`.
Rule 6: every other character is itself; `?` and `[` are no signs. Capitals count.
"""

from __future__ import annotations

from tenuto.errors import BadInput

DIALECTS = ("context", "flow", "feature_docs", "staged", "feature_state")
"""The dialects that a run can be shown in, by name. tenuto.views and tenuto.dialects have the parts of each."""
LONGEST = 200  # bytes; 255 is the limit of file systems, the rest is room for suffixes
_RESERVED = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)))
_DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_INVISIBLE = "\u200b\u200c\u200d\u2028\u2029\ufeff"


def slug(name: str) -> str:
    """Lowercase words joined by hyphens; letters of any script are kept."""
    if not name.isascii():
        from unicodedata import normalize

        name = normalize("NFKC", name.encode("utf-8", "ignore").decode())
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    made = "-".join(words)
    if len(made.encode()) > LONGEST:
        from tenuto.encoding import digest

        # Two long names that begin alike must not become one.
        made = made.encode()[: LONGEST - 9].decode("utf-8", "ignore").rstrip("-") + "-" + digest(name.encode())[:8]
    if not made:
        raise BadInput(
            "bad-name", f"the name {name!r} has no letter or digit to make a folder name from", "use letters or digits"
        )
    return made + "-run" if made in _RESERVED else made


def check(name: str, what: str = "name") -> str:
    """A name that is used as it is; anything that a file system or a reader could misread is refused."""
    problem = _problem(name)
    if problem:
        raise BadInput(
            "bad-name", f"the {what} {name!r} cannot be used: {problem}", "use letters, digits, '-', '_' and '.'"
        )
    return name


def check_path(path: str, what: str = "path", colons: bool = False) -> str:
    """A path below the repository, each part a good name. `colons`: other programs' files may have some."""
    if path.startswith("/"):
        raise BadInput(
            "bad-name", f"the {what} {path!r} cannot be used: it is absolute", "use a path below the repository"
        )
    for part in path.split("/"):
        check(part.replace(":", "-") if colons else part, what)
    return path


def _problem(name: str) -> str:
    if name in ("", ".", ".."):
        return "it names no file"
    if name[0] == "-":
        return "it begins with a dash"
    if name[-1] in ". ":
        return "it ends in a dot or a space"
    for c in name:
        if (
            c in "/\\:"
            or c in _DIRECTION_MARKS
            or c in _INVISIBLE
            or c < " "
            or "\x7f" <= c <= "\x9f"
            or "\ud800" <= c <= "\udfff"
        ):
            return f"it holds the character U+{ord(c):04X}"
    if len(name.encode()) > LONGEST:
        return f"it is longer than {LONGEST} bytes"
    if name.lower().partition(".")[0] in _RESERVED:
        return "some systems reserve it"
    return ""


def file_key(tree: str, path: str) -> str:
    """The name under which the journal keeps a projected file: each linked work tree has files of its own."""
    return f"{tree}//{path}" if tree else path


def split_file_key(key: str) -> tuple[str, str]:
    """(work tree, path) of a file key; the main work tree is ""."""
    tree, _, path = key.rpartition("//")
    return tree, path


# ---- patterns of paths

PLACEHOLDERS = ("slug", "item", "number", "iteration")


def fits(pattern: str, path: str) -> bool:
    """Whether the pattern means this one file."""
    pattern = fill_with_stars(without_dots(pattern))
    return pattern == path or _parts_fit(
        (pattern + "**" if pattern.endswith("/") else pattern).split("/"), path.split("/")
    )


def as_glob(pattern: str) -> str:
    """For the glob module, which knows two signs more."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def fill_with_stars(path: str) -> str:
    for word in PLACEHOLDERS:
        path = path.replace("{" + word + "}", "*")
    return path


def without_dots(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path


def _parts_fit(pattern: list[str], parts: list[str]) -> bool:
    """Row by row, so that no pattern, however odd, costs more than its length times the path's."""
    reached = [True] + [False] * len(parts)
    for piece in pattern:
        if piece == "**":
            for index in range(1, len(reached)):
                reached[index] = reached[index] or reached[index - 1]
        else:
            reached = [False] + [reached[index] and _part_fits(piece, part) for index, part in enumerate(parts)]
    return reached[-1]


def _part_fits(pattern: str, part: str) -> bool:
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
