"""Names that become file names.

    slug("Add dark mode!")  -> "add-dark-mode"
    check("TICKET-123")     -> the same, or BadInput

A path is only ever built from what these two return, so a name can never lead outside
the repository: no separator, no `..`, no drive letter, no control or direction mark,
no leading dash, no more than a file system takes.
"""

from __future__ import annotations

from tenuto.errors import BadInput

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


def check_path(path: str, what: str = "path") -> str:
    """A path below the repository, each part a good name."""
    if path.startswith("/"):
        raise BadInput(
            "bad-name", f"the {what} {path!r} cannot be used: it is absolute", "use a path below the repository"
        )
    for part in path.split("/"):
        check(part, what)
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
