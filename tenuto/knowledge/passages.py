"""An artifact's text as passages for the search: a heading and what stands below it.

A heading is a Markdown heading outside a code fence, named with the headings above it. Long sections are
cut between paragraphs or lines, so that a hit shows its surroundings and not a whole document.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

INDEXED = 1 << 18  # bytes of an artifact that can be found; the rest is stored, not searched
_LONGEST = 1500  # characters
BETWEEN = " > "


def passages_of(content: bytes, most: int = INDEXED) -> Iterator[tuple[str, str]]:
    text = content[:most].decode("utf-8", "replace")
    if "\0" in text:
        return  # not a text
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        fence = _fence(line, fence)
        level = 0 if fence else _level(line)
        if level:
            yield from _cut(path, lines)
            lines = []
            path = [entry for entry in path if entry[0] < level]
            path.append((level, line.strip("# \t")))
        else:
            lines.append(line)
    yield from _cut(path, lines)


def _fence(line: str, fence: str) -> str:
    bare = line.lstrip(" ")
    mark = bare[:3]
    if mark not in ("```", "~~~"):
        return fence
    if not fence:
        return mark
    return "" if mark == fence and not bare.strip("`~ \t") else fence


def _level(line: str) -> int:
    count = len(line) - len(line.lstrip("#"))
    return count if 0 < count <= 6 and line[count : count + 1] in (" ", "\t") else 0


def _cut(path: list[tuple[int, str]], lines: list[str]) -> Iterator[tuple[str, str]]:
    heading = BETWEEN.join(title for _, title in path)
    piece: list[str] = []
    size = 0
    for line in lines:
        if size + len(line) > _LONGEST and piece and (not line.strip() or size > _LONGEST):
            yield from _piece(heading, piece)
            piece, size = [], 0
        # One line can be a whole document, too.
        piece += [line[at : at + _LONGEST] for at in range(0, len(line), _LONGEST)] or [""]
        size += len(line) + 1
    yield from _piece(heading, piece)


def _piece(heading: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    text = "\n".join(lines).strip("\n")
    if text.strip() or heading:
        yield heading, text
