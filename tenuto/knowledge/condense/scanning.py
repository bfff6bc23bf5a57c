"""Brackets, strings and comments in code of a language nobody named.

    read_head(code, at, stop)   a declaration's head: where it ends and how its body begins
    body_end(code, head, stop)  one past the last line of the body

Rules: only what most languages share is used: brackets nest, strings and comments hide brackets, a body
is in braces or is indented. Where a text breaks these rules (a brace is missing, an excerpt was cut), the
indentation decides, and no scan ever runs past the end it was given.
"""

from __future__ import annotations

from tenuto.knowledge.condense.headings import indent_of
from tenuto.knowledge.patterns import pattern

_STRING = pattern(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\\s<>,]){0,60}\'|`(?:\\.|[^`\\])*`')
_COMMENT = pattern(r"(?:^|\s)//.*$|\s#(?![\[!]).*$|\s--\s.*$|/\*.*?\*/")
# A line that goes on with the head of a declaration above it.
_GOES_ON = pattern(
    r"^(?:->|=>|:(?!:)|\||&|,|\)|where\b|throws\b|returns\b|extends\b|implements\b|with\b|requires\b|noexcept\b|const\b|"
    r"override\b|RETURNS\b|LANGUAGE\b|constraint\b)"
)
# What a line ends with when its declaration is not complete yet.
_UNFINISHED = pattern(r"(?:,|\||&|\\|->|\+|\b(?:where|extends|implements|throws|with))$")
_LONGEST_HEAD = 60
# Nobody declares anything in a longer line; minified code is not worth looking into.
_LONGEST_LINE = 2000
_END_WORD = pattern(r"^(?:end\b|End\b|END\b|done\b|fi\b|esac\b|\}|\)|\]).{0,20}$")


class Head:
    """Lines `at` up to `end`. `brace` is where the body's brace opens: line and column, or None."""

    def __init__(self, at: int, end: int, brace: tuple[int, int] | None, closed: bool) -> None:
        self.at = at
        self.end = end
        self.brace = brace
        self.closed = closed  # ended by a semicolon: there is no body


def bare(line: str) -> str:
    """A line with the insides of strings, and comments, blanked out; columns stay."""
    if len(line) > _LONGEST_LINE:
        return line
    if '"' in line or "'" in line or "`" in line:
        line = _STRING.sub(lambda found: '"' + " " * (len(found.group()) - 2) + '"', line)
    if "/" in line or "#" in line or "--" in line:
        line = _COMMENT.sub(lambda found: " " * len(found.group()), line)
    return line


class Code(list[str]):
    """Lines of code; what is asked of them again and again is computed once."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines)
        self.bare = [bare(line) for line in lines]
        self.closing: dict[tuple[int, int], int] = {}  # of each brace that is closed, the line after its end
        opened: list[tuple[int, int]] = []
        for number, text in enumerate(self.bare):
            for column, sign in enumerate(text):
                if sign == "{":
                    opened.append((number, column))
                elif sign == "}" and opened:
                    self.closing[opened.pop()] = number + 1


def read_head(code: Code, at: int, stop: int, any_brace: bool) -> Head:
    """From the first line of a declaration to where its body begins or it is complete.

    `any_brace`: in a type, the first brace outside brackets opens the body; in a function, one after a
    colon is the type of what it returns.
    """
    depth = 0
    for line in range(at, min(stop, at + _LONGEST_HEAD)):
        text = code.bare[line]
        for column, sign in enumerate(text):
            if sign in "([{":
                if sign == "{" and depth == 0 and (any_brace or not _is_type_brace(text, column)):
                    return Head(at, line + 1, (line, column), False)
                depth += 1
            elif sign in ")]}":
                depth = max(0, depth - 1)
        stripped = text.strip()
        if depth > 0 or (stripped and _UNFINISHED.search(stripped)):
            continue
        if stripped.endswith(";"):
            return Head(at, line + 1, None, True)
        below = next((number for number in range(line + 1, min(stop, line + 3)) if code[number].strip()), stop)
        follows = code[below].strip() if below < stop else ""
        if follows.startswith("{"):
            return Head(at, line + 1, (below, code[below].index("{")), False)
        if not _GOES_ON.match(follows) or stripped.endswith(("=", ":", " do", "{")):
            return Head(at, line + 1, None, False)
    # Brackets never met: an excerpt, or not a declaration at all. Its first line stands for it.
    return Head(at, at + 1, None, False)


def _is_type_brace(text: str, column: int) -> bool:
    before = text[:column].rstrip()
    return before.endswith((":", "|", "&", "<")) and not before.endswith("::")


def body_end(code: Code, head: Head, stop: int) -> int:
    if head.brace:
        end = matching_brace(code, head.brace, stop)
        return end if end else _indented_end(code, head, stop)
    return head.end if head.closed else _indented_end(code, head, stop)


def matching_brace(code: Code, brace: tuple[int, int], stop: int) -> int:
    """One past the line where a brace closes; 0 if it never does."""
    end = code.closing.get(brace, 0)
    return end if end <= stop else 0


def _indented_end(code: Code, head: Head, stop: int) -> int:
    """What is indented deeper than the head, and the word or bracket that ends it."""
    depth = indent_of(code[head.at])
    end = head.end
    for line in range(head.end, stop):
        if not code[line].strip():
            continue
        if indent_of(code[line]) <= depth:
            if indent_of(code[line]) == depth and line > head.end and _END_WORD.match(code[line].strip()):
                end = line + 1
            break
        end = line + 1
    return end
