"""What a piece of code declares: signatures and types without the bodies of functions.

    find_declarations(lines, generous) -> Declared     line numbers, in any programming language

Rules, in the order they are tried on each line outside a body: comments and attributes wait for what
follows them; a type keeps its head and its members, a function its head only, a constant its line; a
namespace is looked into. Everything else is a statement and is dropped, or, where `generous` (under a
heading that promises declarations), kept. A comment is kept if it tells an edge case or names a file.

The languages are recognised by the words and signs they share (keywords.py), not by the fence's tag: tags
are missing or wrong too often.
"""

from __future__ import annotations

from tenuto.knowledge.condense.edges import tells_an_edge_case
from tenuto.knowledge.condense.headings import indent_of
from tenuto.knowledge.condense.keywords import (
    is_attribute,
    is_comment,
    is_import,
    names_test,
    opens_constant,
    opens_function,
    opens_namespace,
    opens_type,
)
from tenuto.knowledge.condense.places import names_a_file
from tenuto.knowledge.condense.scanning import Code, bare, body_end, matching_brace, read_head
from tenuto.knowledge.patterns import pattern

# Types inside types inside types: beyond this it is not code that anybody wrote.
_DEEPEST = 24
_LONGEST_CONSTANT = 12
_MOSTLY = 0.4
# Languages without types tell them in comments.
_TYPE_IN_COMMENT = pattern(r"@(?:typedef|property|prop|callback|param|returns?|template|type)\b.*\{")
_QUOTES = ('"""', "'''")
_COMMENTS = (("/*", "*/"), ("(*", "*)"), ("{-", "-}"), ("<!--", "-->"), ('"""', '"""'), ("'''", "'''"))
# Inside a type: a block that computes (an initializer, a property with a body), which is not part of its shape.
_HIDDEN_BLOCK = pattern(
    r"^\s*(?:(?:(?:public|private|protected|internal|static)\s+)+\w*|init|get|set|willSet|didSet|(?:\w+\s+)*var\s+\w+\s*:[^={]+)\s*\{\s*$"
)
_TYPE_GOES_ON = pattern(r"\}\s*[&|]\s*\{$")
_AFTER_ATTRIBUTE = pattern(r"^\s*(?:@[\w.]+(?:\([^)]*\))?|#!?\[[^\]]*\]|\[[^\]]*\])\s*")
_ONE_LINE_TEXT = pattern(r"^\s*[rub]?([\"'])(?!\1).*\1\s*$")


class Declared:
    """Line numbers: of functions' heads, of types, of comments that tell an edge case, of tests' names."""

    def __init__(self, nested: int = 0) -> None:
        self.nested = nested  # in how many namespaces
        self.functions: set[int] = set()
        self.types: set[int] = set()
        self.notes: set[int] = set()
        self.tests: set[int] = set()

    def lines(self) -> set[int]:
        return self.functions | self.types | self.notes


def find_declarations(lines: list[str], generous: bool = False) -> Declared:
    found = Declared()
    _scan(Code(lines), 0, len(lines), found, 0, generous)
    return found


def _scan(code: Code, at: int, stop: int, found: Declared, depth: int, generous: bool) -> None:
    """`depth`: in how many types this is; 0 is outside of any."""
    waiting: list[int] = []  # attributes that belong to what comes next
    while at < stop:
        line = code[at]
        if not line.strip():
            at += 1
        elif is_attribute(line) and not _declares_after_attribute(line):
            head = read_head(code, at, stop, any_brace=True)
            end = head.end if not head.brace else at + 1
            waiting.extend(range(at, end))
            at = end
        elif is_comment(line):
            end = _comment_end(code, at, stop)
            _note(code, at, end, found)
            at = end
        else:
            at = max(_declaration(code, at, stop, found, depth, generous, waiting), at + 1)
            waiting = []


def _declares_after_attribute(line: str) -> bool:
    rest = _AFTER_ATTRIBUTE.sub("", line)
    return bool(rest.strip()) and (opens_type(rest) or opens_function(rest, bare(rest), False, False) or ":" in rest)


def _declaration(
    code: Code, at: int, stop: int, found: Declared, depth: int, generous: bool, waiting: list[int]
) -> int:
    """Handle what begins at a line; the line after it."""
    line = code[at]
    if names_test(line):
        found.tests.add(at)
        return at + 1
    if opens_namespace(line):
        return _namespace(code, at, stop, found)
    if opens_type(line):
        return _type(code, at, stop, found, depth, generous, waiting)
    if opens_function(line, code.bare[at], depth > 0, generous):
        return _function(code, at, stop, found, waiting)
    if depth:
        return _member(code, at, stop, found, waiting)
    if opens_constant(line):
        return _constant(code, at, stop, found)
    if is_import(line):
        return read_head(code, at, stop, any_brace=True).end
    if generous:
        found.types.add(at)
    return at + 1


def _function(code: Code, at: int, stop: int, found: Declared, waiting: list[int]) -> int:
    if code[at].lstrip().startswith("("):
        return _form(code, at, stop, found)
    head = read_head(code, at, stop, any_brace=False)
    found.functions.update(waiting)
    found.functions.update(number for number in range(at, head.end) if code[number].strip())
    if code[at].lstrip()[:6].lower() == "create" and "$$" in " ".join(code[at : head.end + 3]):
        return _dollar_end(code, at, stop)
    end = body_end(code, head, stop)
    quoted = _quoted_end(code, head.end, end)
    _note(code, head.end, quoted, found)
    for number in range(quoted, end):
        if is_comment(code[number]) and tells_an_edge_case(code[number]):
            found.notes.add(number)
        elif names_test(code[number]):
            found.tests.add(number)
    return end


def _form(code: Code, at: int, stop: int, found: Declared) -> int:
    """Lisp: the head is up to the parameters, the end where the parentheses meet."""
    depth = 0
    for line in range(at, stop):
        text = code.bare[line]
        if line == at or (line < at + 4 and "[" not in "".join(code[at:line])):
            found.functions.add(line)
        depth += text.count("(") - text.count(")")
        if depth <= 0:
            return line + 1
    return at + 1


def _quoted_end(code: Code, start: int, end: int) -> int:
    """Where the text in quotes ends that opens a body; `start` if none does."""
    first = next((number for number in range(start, end) if code[number].strip()), end)
    if first == end:
        return start
    quotes = next((mark for mark in _QUOTES if mark in code[first][: indent_of(code[first]) + 5]), None)
    if quotes is None:
        return start
    for number in range(first, end):
        if code[number].count(quotes) > (number == first):
            return number + 1
    return start


def _dollar_end(code: Code, at: int, stop: int) -> int:
    seen = 0
    for line in range(at, stop):
        seen += code[line].count("$$")
        if seen >= 2:
            return line + 1
    return stop


def _type(code: Code, at: int, stop: int, found: Declared, depth: int, generous: bool, waiting: list[int]) -> int:
    head = read_head(code, at, stop, any_brace=True)
    end = body_end(code, head, stop)
    found.types.update(waiting)
    found.types.update(number for number in range(at, head.end) if code[number].strip())
    inner = head.end
    if head.brace and head.brace[0] >= head.end:
        found.types.add(head.brace[0])
        inner = head.brace[0] + 1
    closing = end - 1 if end > inner and _closes(code[end - 1]) else end
    if closing < end:
        found.types.add(closing)
    if depth < _DEEPEST:
        _scan(code, inner, closing, found, depth + 1, generous)
    return _type_tail(code, end, stop, found)


def _closes(line: str) -> bool:
    return line.strip()[:1] in {"}", ")", "]"} or line.strip() in {"end", "end;", "End", "END;"}


def _type_tail(code: Code, at: int, stop: int, found: Declared) -> int:
    """`} & {` and lines that begin with `|`: the same type goes on."""
    while at < stop and code[at].lstrip()[:2] in {"| ", "& "}:
        found.types.add(at)
        at += 1
    if at < stop and at and _TYPE_GOES_ON.search(code[at - 1].rstrip()):
        end = matching_brace(code, (at - 1, code[at - 1].rindex("{")), stop)
        found.types.update(range(at, end))
        return max(at, end)
    return at


def _member(code: Code, at: int, stop: int, found: Declared, waiting: list[int]) -> int:
    if _ONE_LINE_TEXT.match(code[at]):
        return at + 1
    found.types.update(waiting)
    found.types.add(at)
    if _HIDDEN_BLOCK.match(code[at]):
        return body_end(code, read_head(code, at, stop, any_brace=True), stop)
    return at + 1


def _namespace(code: Code, at: int, stop: int, found: Declared) -> int:
    head = read_head(code, at, stop, any_brace=True)
    end = body_end(code, head, stop)
    if end <= head.end or found.nested >= _DEEPEST:
        inside_line = code[at].partition("{")[2].strip()
        if inside_line and (opens_type(inside_line) or opens_function(inside_line, bare(inside_line), True, False)):
            found.functions.update(range(at, head.end))  # all of it on one line
        return head.end
    before = len(found.lines())
    inside = Declared(found.nested + 1)
    _scan(code, head.end, end, inside, 0, False)
    found.functions |= inside.functions
    found.types |= inside.types
    found.notes |= inside.notes
    found.tests |= inside.tests
    if len(found.lines()) > before:
        found.types.update(range(at, head.end))
        if _closes(code[end - 1]):
            found.types.add(end - 1)
    return end


def _constant(code: Code, at: int, stop: int, found: Declared) -> int:
    """A group in brackets is kept whole when short, else its first line stands for it."""
    head = read_head(code, at, stop, any_brace=True)
    end = body_end(code, head, stop) if head.brace else head.end
    kept = end if end - at <= _LONGEST_CONSTANT else at + 1
    found.types.update(number for number in range(at, kept) if code[number].strip())
    return end


def _comment_end(code: Code, at: int, stop: int) -> int:
    text = code[at].strip()
    for opening, closing in _COMMENTS:
        if text.startswith(opening):
            if closing in text[len(opening) :]:
                return at + 1
            return next((line + 1 for line in range(at + 1, stop) if closing in code[line]), at + 1)
    return at + 1


def _note(code: Code, at: int, end: int, found: Declared) -> None:
    """Of a comment: what tells an edge case, all of it if most does; types told in it; a file's name alone."""
    words = [line for line in range(at, end) if any(sign.isalnum() for sign in code[line])]
    telling = {line for line in words if tells_an_edge_case(code[line])}
    if len(telling) >= 2 and len(telling) >= _MOSTLY * len(words):
        telling = set(words)
    found.notes |= telling
    found.types.update(line for line in words if _TYPE_IN_COMMENT.search(code[line]))
    if end == at + 1 and names_a_file(code[at]) and len(code[at].split()) <= 4:
        found.notes.add(at)
