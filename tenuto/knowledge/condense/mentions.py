"""Declarations in running text: a signature in a list item, a type in a table, a call in a title.

Rules: a code span counts if it is a declaration, or a call with types or a result; a bare call counts only
where it leads an item or a row, since in the middle of a sentence it is just a name.
"""

from __future__ import annotations

from tenuto.knowledge.condense.keywords import is_declaration
from tenuto.knowledge.patterns import pattern

_SPAN = pattern(r"``([^`].*?)``|`([^`]+)`")
_RESULT = pattern(r"^[\w.$:#<>]+\??!?\s*\(.*\)\s*(?:->|→|=>|⇒|:|returns\b)\s*\S")
_TYPED = pattern(r"^[\w.$:#<>]+\s*\([^)]*\w\??\s*:\s*\S")
_TYPE_FIRST = pattern(r"^(?:[A-Za-z_][\w.<>,\[\]?*& ]*\s)[*&]?[A-Za-z_]\w*\([^)]*\)")
_ROUTE = pattern(r"^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+/|^/[\w{}:/-]+\s")
_LEADING = pattern(r"^[^\w`]*(?:`[\w.$:#<>]+\??!?\([^`]*\)?[^`]*`|\*\*`?[\w.$:#]+\([^*]*\)[^*]*\*\*)")
_PLAIN = pattern(
    r"^(?:[-*+•]\s+|\d+[.)]\s+|[#>|\s]+)?[A-Za-z_][\w.$:#]*(?:<[^()]*>)?\([^()]*\)\s*(?:->|→|=>|:|returns\b)\s*\S"
)
_PLAIN_ROUTE = pattern(r"^[^\w]*(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+`?/\S")
_MEMBERS = pattern(
    r"\b(?:fields?|members?|variants?|columns?|attributes?|properties|one of|record|struct|enum|tuple|dataclass|interface|"
    r"type alias|consists of|union)\b"
)
_TYPE_WORD = pattern(r"^(?:type|struct|enum|interface|class|record|union|trait|data|newtype|message|alias)\s+\w")
_MARKER = pattern(r"^[\s>]*(?:[-*+•]\s+|\d+[.)]\s+|#+\s+)?")
_FIELD = pattern(r"^[^\w`]*[`*]*[A-Za-z_][\w.\[\]?]*[`*]*\s*(?:\([^)]*\)|:|—|–|-|\|)\s*\S")


def spans(text: str) -> list[str]:
    return [(found.group(1) or found.group(2)).strip() for found in _SPAN.finditer(text)]


def shows_a_signature(text: str, leading: bool) -> bool:
    """`leading`: the text is an item, a row or a title, where a bare call counts."""
    if "(" not in text and "/" not in text:
        return False
    for span in spans(text):
        if _RESULT.match(span) or _TYPED.match(span) or _ROUTE.match(span) or _TYPE_FIRST.match(span):
            return True
        if "(" in span and is_declaration(span):
            return True
    if leading and (_LEADING.match(text.strip()) or _PLAIN_ROUTE.match(text.strip())):
        return True
    return (bool(_PLAIN.match(text.strip())) and "`" not in text.split("(")[0]) or _is_code_line(text)


def _is_code_line(text: str) -> bool:
    bare = _MARKER.sub("", text)
    return "(" in bare and is_declaration(bare)


def shows_a_type(text: str) -> bool:
    bare = _MARKER.sub("", text)
    if _TYPE_WORD.match(bare) and is_declaration(bare):
        return True
    found = spans(text)
    if any(_TYPE_WORD.match(span) and any(sign in span for sign in "={(:") for span in found):
        return True
    return len(found) >= 2 and bool(_MEMBERS.search(text.lower()))


def shows_a_field(text: str) -> bool:
    """Under a heading about types or signatures: `name: meaning`, in an item or a row."""
    return bool(spans(text)) or bool(_FIELD.match(text.strip()))
