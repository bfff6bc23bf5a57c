"""Declarations in running text: a signature in a list item, a type in a table, a call in a title.

Rules: a code span counts if it is a declaration, or a call with types or a result; a bare call counts only
where it leads an item or a row, since in the middle of a sentence it is just a name.
"""

from __future__ import annotations

import re

from tenuto.knowledge.condense.declarations import is_declaration

_SPAN = re.compile(r"``([^`].*?)``|`([^`]+)`")
_RESULT = re.compile(r"^[\w.$:#<>]+\??!?\s*\(.*\)\s*(?:->|→|=>|⇒|:|returns\b)\s*\S")
_TYPED = re.compile(r"^[\w.$:#<>]+\s*\([^)]*\w\??\s*:\s*\S")
_TYPE_FIRST = re.compile(r"^(?:[A-Za-z_][\w.<>,\[\]?*& ]*\s)[*&]?[A-Za-z_]\w*\([^)]*\)")
_ROUTE = re.compile(r"^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+/|^/[\w{}:/-]+\s")
_LEADING = re.compile(r"^[^\w`]*(?:`[\w.$:#<>]+\??!?\([^`]*\)?[^`]*`|\*\*`?[\w.$:#]+\([^*]*\)[^*]*\*\*)")
_PLAIN = re.compile(
    r"^(?:[-*+•]\s+|\d+[.)]\s+|[#>|\s]+)?[A-Za-z_][\w.$:#]*(?:<[^()]*>)?\([^()]*\)\s*(?:->|→|=>|:|returns\b)\s*\S"
)
_PLAIN_ROUTE = re.compile(r"^[^\w]*(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+`?/\S")
_MEMBERS = re.compile(
    r"\b(?:fields?|members?|variants?|columns?|attributes?|properties|one of|record|struct|enum|tuple|dataclass|interface|"
    r"type alias|values?|carries|holds|consists of|union)\b",
    re.I,
)
_TYPE_WORD = re.compile(r"^(?:type|struct|enum|interface|class|record|union|trait|data|newtype|message|alias)\s+\w")
_FIELD = re.compile(r"^[^\w`]*[`*]*[A-Za-z_][\w.\[\]?]*[`*]*\s*(?:\([^)]*\)|:|—|–|-|\|)\s*\S")


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
    bare = re.sub(r"^[\s>]*(?:[-*+•]\s+|\d+[.)]\s+|#+\s+)?", "", text)
    return "(" in bare and is_declaration(bare)


def shows_a_type(text: str) -> bool:
    if re.match(r"^[\s>*+-]*" + _TYPE_WORD.pattern[1:], text) and is_declaration(text.lstrip(" >*+-")):
        return True
    found = spans(text)
    if any(_TYPE_WORD.match(span) and re.search(r"[={(:]", span) for span in found):
        return True
    return len(found) >= 2 and bool(_MEMBERS.search(text))


def shows_a_field(text: str) -> bool:
    """Under a heading about types or signatures: `name: meaning`, in an item or a row."""
    return bool(spans(text)) or bool(_FIELD.match(text.strip()))
