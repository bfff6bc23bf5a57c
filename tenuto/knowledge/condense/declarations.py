"""What a piece of code declares: signatures and types without the bodies of functions.

    find_declarations(code, generous) -> Declared     line numbers, in any programming language

Rules, in the order they are tried on each line outside a body: comments and attributes wait for what
follows them; a type keeps its head and its members, a function its head only, a constant its line; a
namespace is looked into. Everything else is a statement and is dropped, or, where `generous` (under a
heading that promises declarations), kept. A comment is kept if it tells an edge case or names a file.

The languages are recognised by the words and signs they share (`fn`, `func`, `def`, `type name(...)`,
`name :: type`, `CREATE TABLE`), not by the fence's tag: tags are missing or wrong too often.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenuto.knowledge.condense.headings import indent_of
from tenuto.knowledge.condense.passages import names_a_file, tells_an_edge_case
from tenuto.knowledge.condense.scanning import Head, bare, body_end, read_head

_BEFORE = (
    r"(?:(?:export|default|declare|public|private|protected|internal|fileprivate|static|final|abstract|sealed|open|inline|"
    r"readonly|partial|async|unsafe|extern(?:\s+\"[^\"]*\")?|virtual|override|pub(?:\([^)]*\))?|case|inner|local|required|mut|"
    r"native|synchronized|constexpr|consteval|friend|explicit|suspend|tailrec|operator|infix|external|mutating|"
    r"convenience|indirect|lateinit|noncomputable|opaque|comptime|mutable|deriving|expect|actual|fun(?=\s+interface)|"
    r"const(?=\s+(?:fn|enum|unsafe|async))|enum(?=\s+(?:class|struct))|data(?=\s+(?:class|object))|value(?=\s+class)|"
    r"annotation(?=\s+class)|record(?=\s+(?:class|struct))|module(?=\s+type)|readonly|replace|or)\s+)*"
)
_TYPE = re.compile(
    r"^\s*(?:typedef\s+)?"
    + _BEFORE
    + r"(?:class|interface|struct|enum|union|trait|protocol|record|type|typedef|newtype|"
    r"message|service|oneof|input|scalar|schema|model|object|actor|extension|typealias|alias|data|contract|event|delegate|"
    r"@interface|entity|table|abstract type|exception|concept|subtype|mixin|module type|defstruct|defexception|package type|"
    r"opaque type|state|protocol)\b\s*(?:[A-Za-z_$@\"'`(<\[{:]|$)(?!\s*=\s*(?:new|await|\d)\b)"
)
_NOT_A_TYPE = re.compile(
    r"^\s*\w+\s*(?:=|\(|\.|\+|\[|:\s)|^\s*(?:type|data|model|state|table|input|message|event)\s*[:=]"
)
_TYPE_FORMS = re.compile(
    r"^\s*(?:typedef\b|defstruct\b|@type\b|@opaque\b|@callback\b|-type\b|-record\b|-opaque\b|"
    r"\((?:defstruct|defrecord|defprotocol|deftype|s/def|def-type|struct)\b|"
    r"(?:export\s+)?(?:const\s+)?[A-Z]\w*\s*(?::\s*TypeAlias\s*)?=\s*(?:TypedDict|NamedTuple|namedtuple|NewType|TypeVar|Enum|"
    r"Union|Optional|Literal|Annotated|Callable|dict\[|list\[|tuple\[|Dict\[|List\[|Struct\.new|Data\.define|z\.|t\.|yup\.|"
    r"Joi\.|Type\.|S\.|v\.|[A-Z]\w*\s*\||[\"']\w+[\"']\s*\|)|"
    r"(?i:create|alter)\s+(?i:or\s+replace\s+)?(?i:unique\s+|temp\s+|temporary\s+|materialized\s+)*"
    r"(?i:table|type|view|index|domain|schema|enum|extension|policy)\b|extend\s+(?:type|input|schema)\b|directive\s+@)"
)
_CONTAINER = re.compile(
    r"^\s*"
    + _BEFORE
    + r"(?:namespace|module|mod|impl|defmodule|package(?=[^;]*\{)|extern\s+\"C\"|library|functor|signature|"
    r"instance|companion\s+object)\b(?!\.)[^=;]*(?:\{|$|\bdo$|\bwhere$|:$)"
)
_FUNCTION = re.compile(
    r"^\s*"
    + _BEFORE
    + r"(?:(?:function\*?|func|fn|fun|def|defp|defmacro|defmethod|sub|proc|procedure|subroutine|method|"
    r"rpc|macro|modifier|lemma|theorem|task|function_clause)\s*(?:<[^>]*>\s*)?(?:\([^)]*\)\s*)?[\w$.:~`'?!\"=+*/-]+"
    r"|(?:constructor|init\??|deinit|destructor|fallback|receive)\s*[(<{]"
    r"|(?:val|external)\s+[a-z_]\w*'?\s*:|operator\s*\S+\s*\()"
)
_FUNCTION_FORMS = re.compile(
    r"^\s*(?:@spec\b|@impl\b.*def|-spec\b|-callback\b|\((?:defn-?|defun|define|defmacro|defmulti|defmethod|declare)\s"
    r"|[\w.]+\s*(?:<-|=)\s*function\s*\(|(?:local\s+)?function\b|[-+]\s*\([^)]+\)\s*\w+"
    r"|[a-z_][\w']*(?:\s*,\s*[a-z_][\w']*)*\s*::\s*\S|[a-z_][\w']*\s+:\s+\S.*->"
    r"|let\s+(?:rec\s+|inline\s+|mutable\s+|private\s+)*[a-z_]\w*'?\s+(?:\(|[a-z_]\w*\s+.*=|[a-z_]\w*\s*=)"
    r"|(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|QUERY|WS|SSE)\s+[/{:h]"
    r"|(?i:create)\s+(?i:or\s+replace\s+)?(?i:function|procedure|trigger|aggregate)\b"
    r"|(?:Public|Private|Friend)?\s*(?:Function|Sub)\s+\w+\s*\(|template\s*<|\w[\w.]*\s*:\s*(?:\([^()]*\)|\w+)\s*->\s*\S)"
)
_ARROW = re.compile(
    r"^\s*" + _BEFORE + r"(?:(?:const|let|var|val)\s+)?[\w$.#]+\s*(?::[^=]*(?:=>[^=]*)?)?=\s*"
    r"(?:async\s+)?(?:function\b|(?:<[^>]*>\s*)?\(|\w+\s*=>|(?:React\.)?(?:memo|forwardRef|useCallback)\b|lambda\b|fn\b)"
)
_DECLARED_VALUE = re.compile(r"^\s*(?:export\s+)?declare\s|^\s*(?:export\s+)?const\s+\w+\s*:\s*\S.*(?:=>|<)[^=]*;?\s*$")
_CALLED = re.compile(r"^\s*" + _BEFORE + r"(?:get\s+|set\s+|\*\s*)?[\w$#~]+\??!?\s*(?:<[^()]*>)?\(")
_TYPED = re.compile(
    r"^\s*(?:\[\[[^\]]*\]\]\s*)?"
    + _BEFORE
    + r"(?:const\s+|unsigned\s+|signed\s+|struct\s+|enum\s+|volatile\s+|long\s+|short\s+|"
    r"auto\s+|<[^>]+>\s*)*[A-Za-z_][\w.:]*(?:<[^()=;]*>)?(?:\[\])*[?*&]*\s+[*&]*(?:[A-Za-z_~][\w:~]*|operator\S+)\s*(?:<[^()]*>)?\("
)
_PSEUDO = re.compile(r"^\s*[\w.$:#]+\s*(?:<[^()]*>)?\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:->|→|=>|⇒|:|returns\b)\s*\S")
_STATEMENT = re.compile(
    r"^\s*(?:return|else|elif|if|for|foreach|while|switch|match|case|catch|except|finally|try|with|when|unless|until|do|throw|"
    r"raise|new|await|yield|delete|goto|assert|import|from|package|using|use|require|include|go|defer|print|echo|puts|"
    r"super|self|this|not|and|or|in|is|select|insert|update|begin|end|pass|break|continue|expect|mut|move|ref|guard|loop)\b"
    r"(?!\s*[:=]\s*\S*\()"
)
_VALUE = re.compile(
    r"^\s*" + _BEFORE + r"(?:(?:const|final|static|val|var|let|define|#define|int|char|double|float|long|bool)\s+)+"
    r"(?:[\w<>:*&\[\]]+\s+)?\*?(?:[A-Z][A-Z0-9_]+|[A-Z]\w*|Err\w+|k[A-Z]\w*)\b|^\s*[A-Z][A-Z0-9_]+\s*(?::[^=]+)?=(?!=)"
    r"|^\s*(?:const|var|type)\s*\($|^\s*@[a-z_]+\s+[\[\d%\"{~:]|^\s*\(def\s|^\s*#define\s+\w"
)
_COMMENT = re.compile(
    r"^\s*(?://|#(?![\[!]|define|include|if|end)|--(?!\w)|;;|\*(?:\s|/|$)|/\*|\(\*|\{-|<!--|%%|'''|\"\"\"|REM\b|///)"
)
_ATTRIBUTE = re.compile(r"^\s*(?:@[A-Za-z][\w.:]*(?:\(|$|\s)|#!?\[|\[[A-Z]\w*(?:[(\],]|$)|\[\[|template\s*<|@\w+$)")
_TEST = re.compile(r"^\s*(?:it|test|describe|context|scenario|specify|should)(?:\.\w+)*\s*\(?\s*[\"'`]", re.I)
_IMPORT = re.compile(
    r"^\s*(?:import|from\s+\S+\s+import|using|use|require|include|#include|package|open|library|alias|source)\b"
)
# Inside a type: a block that computes (an initializer, a property with a body), which is not part of its shape.
_HIDDEN_BLOCK = re.compile(
    r"^\s*(?:(?:(?:public|private|protected|internal|static)\s+)+\w*|init|get|set|willSet|didSet|(?:\w+\s+)*var\s+\w+\s*:[^={]+)\s*\{\s*$"
)
_QUOTES = ('"""', "'''")


class Declared(NamedTuple):
    """Line numbers: of functions' heads, of types, of comments that tell an edge case, of tests' names."""

    functions: set[int]
    types: set[int]
    notes: set[int]
    tests: set[int]

    def lines(self) -> set[int]:
        return self.functions | self.types | self.notes


def find_declarations(code: list[str], generous: bool = False) -> Declared:
    found = Declared(set(), set(), set(), set())
    _scan(code, 0, len(code), found, inside=False, generous=generous)
    return found


def is_declaration(text: str) -> bool:
    """A line of prose that is a declaration all the same: stricter, it needs a declaration's signs."""
    text = text.strip()
    if len(text) > 300 or _STATEMENT.match(text) or not re.search(r"[{(;=:]", text):
        return False
    if _TYPE.match(text) and not _NOT_A_TYPE.match(text):
        return bool(re.search(r"[{;:(]$|\s=\s|\{.*\}", text))
    if (_FUNCTION.match(text) or _FUNCTION_FORMS.match(text)) and "(" in text:
        return bool(re.search(r"\w\s*(?:<[^>]*>)?\(.*\)|\($", text)) and not text.endswith((".", "?"))
    if _TYPE_FORMS.match(text):
        return True
    typed = _TYPED.match(text) and re.search(r"\)\s*(?:const|noexcept|override)?\s*[;{]$", text)
    return bool(typed) or bool(_ARROW.match(text) and "=>" in text)


def _scan(code: list[str], at: int, stop: int, found: Declared, inside: bool, generous: bool) -> None:
    waiting: list[int] = []  # attributes and comments that belong to what comes next
    while at < stop:
        line = code[at]
        if not line.strip():
            at += 1
            continue
        if _COMMENT.match(line) and not _ATTRIBUTE.match(line):
            end = _comment_end(code, at, stop)
            _note(code, at, end, found)
            at = end
            continue
        if _ATTRIBUTE.match(line) and not _FUNCTION_FORMS.match(line) and not _TYPE_FORMS.match(line):
            head = read_head(code, at, stop, any_brace=True)
            one_line = head.end if not head.brace else at + 1
            if not _same_line_declaration(line):
                waiting.extend(range(at, one_line))
                at = one_line
                continue
        end = _declaration(code, at, stop, found, inside, generous, waiting)
        waiting = []
        at = max(end, at + 1)


def _same_line_declaration(line: str) -> bool:
    rest = re.sub(r"^\s*(?:@[\w.]+(?:\([^)]*\))?|#!?\[[^\]]*\]|\[[^\]]*\])\s*", "", line)
    return bool(rest.strip()) and bool(_FUNCTION.match(rest) or _TYPE.match(rest) or _TYPED.match(rest) or ":" in rest)


def _declaration(
    code: list[str], at: int, stop: int, found: Declared, inside: bool, generous: bool, waiting: list[int]
) -> int:
    """Handle what begins at a line; the line after it."""
    line = code[at]
    if _TEST.match(line):
        found.tests.add(at)
        return at + 1
    if _is_container(line):
        return _container(code, at, stop, found, generous)
    if _is_type(line):
        return _type(code, at, stop, found, generous, waiting)
    if _is_function(line, inside, generous):
        return _function(code, at, stop, found, waiting)
    if inside:
        found.types.update(waiting)
        found.types.add(at)
        block = _HIDDEN_BLOCK.match(line)
        return body_end(code, read_head(code, at, stop, any_brace=True), stop) if block else at + 1
    if _VALUE.match(line) and not _STATEMENT.match(line):
        return _value(code, at, stop, found)
    if _IMPORT.match(line):
        return read_head(code, at, stop, any_brace=True).end
    if generous:
        found.types.add(at)
    return at + 1


def _is_container(line: str) -> bool:
    return bool(_CONTAINER.match(bare(line))) and not re.match(r"^\s*module\s+type\b", line)


def _is_type(line: str) -> bool:
    if _TYPE_FORMS.match(line):
        return True
    return bool(_TYPE.match(line)) and not _NOT_A_TYPE.match(line)


def _is_function(line: str, inside: bool, generous: bool) -> bool:
    if _FUNCTION.match(line) or _FUNCTION_FORMS.match(line) or _DECLARED_VALUE.match(line):
        return True
    if _STATEMENT.match(line):
        return False
    text = bare(line)
    if _ARROW.match(text):
        return "=>" in text or "function" in text or text.rstrip().endswith(("(", ",")) or inside or "lambda" in text
    if _PSEUDO.match(text):
        return True
    before = text.split("(", 1)[0]
    if "=" in before.replace("operator=", "") and not re.search(r"operator\s*\S*=", before):
        return False
    if _TYPED.match(text):
        return True
    return (inside or generous) and bool(_CALLED.match(text)) and not text.lstrip().startswith((".", "@"))


def _function(code: list[str], at: int, stop: int, found: Declared, waiting: list[int]) -> int:
    head = read_head(code, at, stop, any_brace=False)
    found.functions.update(waiting)
    found.functions.update(number for number in range(at, head.end) if code[number].strip())
    if "$$" in " ".join(code[at : head.end + 3]) and re.match(r"^\s*create\b", code[at], re.I):
        return _dollar_end(code, at, stop)
    end = body_end(code, head, stop)
    if re.match(r"^\s*template\s*<", code[at]) and end == head.end and end < stop:
        return end
    for number in range(head.end, end):
        if _is_remark(code, number, head.end, end) and tells_an_edge_case(code[number]):
            found.notes.add(number)
        elif _TEST.match(code[number]):
            found.tests.add(number)
    return end


def _is_remark(code: list[str], line: int, start: int, end: int) -> bool:
    """A comment, or a line of the text in quotes that opens a body."""
    if _COMMENT.match(code[line]):
        return True
    first = next((number for number in range(start, end) if code[number].strip()), end)
    quotes = next((mark for mark in _QUOTES if first < end and mark in code[first][: indent_of(code[first]) + 5]), None)
    if not quotes:
        return False
    for number in range(first, end):
        closes = code[number].count(quotes) - (number == first)
        if closes > 0:
            return line <= number
    return False


def _dollar_end(code: list[str], at: int, stop: int) -> int:
    seen = 0
    for line in range(at, stop):
        seen += code[line].count("$$")
        if seen >= 2:
            return line + 1
    return stop


def _type(code: list[str], at: int, stop: int, found: Declared, generous: bool, waiting: list[int]) -> int:
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
    _scan(code, inner, closing, found, inside=True, generous=generous)
    return _type_tail(code, end, stop, found)


def _closes(line: str) -> bool:
    return line.strip()[:1] in {"}", ")", "]"} or line.strip() in {"end", "end;", "End", "END;"}


def _type_tail(code: list[str], at: int, stop: int, found: Declared) -> int:
    """`} & {` and lines that begin with `|`: the same type goes on."""
    while at < stop and re.match(r"^\s*[|&]\s*\S", code[at]):
        found.types.add(at)
        at += 1
    if at and at < stop and re.search(r"\}\s*[&|]\s*\{$", code[at - 1].rstrip()):
        head = Head(at - 1, at, (at - 1, code[at - 1].rindex("{")), False)
        end = body_end(code, head, stop)
        found.types.update(range(at, end))
        return end
    return at


def _container(code: list[str], at: int, stop: int, found: Declared, generous: bool) -> int:
    head = read_head(code, at, stop, any_brace=True)
    end = body_end(code, head, stop)
    if end <= head.end:
        return head.end
    before = len(found.lines())
    _scan(code, head.end, end, found, inside=False, generous=generous and False)
    if len(found.lines()) > before:
        found.types.update(range(at, head.end))
        if _closes(code[end - 1]):
            found.types.add(end - 1)
    return end


def _value(code: list[str], at: int, stop: int, found: Declared) -> int:
    """A constant: a group in brackets is kept whole when short, else its first line stands for it."""
    head = read_head(code, at, stop, any_brace=True)
    end = body_end(code, head, stop) if head.brace else head.end
    kept = end if end - at <= 12 else at + 1
    found.types.update(number for number in range(at, kept) if code[number].strip())
    return end


def _comment_end(code: list[str], at: int, stop: int) -> int:
    text = code[at].strip()
    for opening, closing in (("/*", "*/"), ("(*", "*)"), ("{-", "-}"), ("<!--", "-->"), ('"""', '"""'), ("'''", "'''")):
        if text.startswith(opening):
            if closing in text[len(opening) :]:
                return at + 1
            for line in range(at + 1, stop):
                if closing in code[line]:
                    return line + 1
            return at + 1
    return at + 1


def _note(code: list[str], at: int, end: int, found: Declared) -> None:
    for line in range(at, end):
        text = code[line]
        if tells_an_edge_case(text) or (end == at + 1 and names_a_file(text) and len(text.split()) <= 4):
            found.notes.add(line)
