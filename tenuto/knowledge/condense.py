"""A text as sections, and which of them a phase needs; of code, which lines may be left out.

    read(text) -> Document                     its sections, or the reason why they cannot be trusted
    choose(document, kinds, asides) -> Choice  the sections that are kept, or why all of them are
    read_code(lines, language) -> Code         which lines are bodies of functions, and what the code declares

markdown-it-py reads the text. A section is a heading and what stands below it up to the next heading; sections lie
inside each other. Nothing smaller is judged: lists, tables and paragraphs stay with their section.

Rules, in this order:
1. A text whose sections cannot be trusted is kept whole: it has no heading; a code block is not closed, or holds a
   fence or a heading of its own. So is one with a heading in letters that English has not.
2. A kind that the phase needs, and that nothing in what would be kept names: the text is kept whole.
3. A section goes, with everything below it, where its heading is one of `asides` and nothing else. It stays below a
   heading that names a kind that the phase needs, where a heading or a label in it names one, and where it holds a line
   that may be a heading in another notation.
4. Every other section stays, whatever its heading says.

What names a kind: a word that begins like one in KINDS, in a heading or in a label. A label is a line in bold or before
a colon, the bold beginning of a paragraph or a list item, a cell over a table's column. Code names what it declares, a
path names a file.

Code. Pygments tells words, strings and comments apart; brackets and indentation tell where a block begins and ends,
so that no list of programming languages is needed.

A body is what is indented below a head. It goes only where both are certain:
- the head is a statement with a parameter list; it ends in `{` or `:`, or holds a word such as `def`; it does not
  begin with a word such as `if`, and it holds no word such as `class`: the members of a type are never a body;
- the body has, on its own level, a line that begins with a word such as `return` or `if`; it declares no type, and
  raises nothing, since what it raises is a case that somebody has to know.
Of a body that goes, doc strings and lines with a comment stay, and so does a single line.

A language that Pygments does not know, a word that it cannot read, brackets that do not meet: nothing goes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.token import Token

    Block = tuple[str, int]  # a text, and how many bytes of the document are in it

# How the words begin that name a kind of part.
KINDS = {
    "signatures": "signature api interface function method endpoint command export operation contract route syntax",
    "types": "type schema model struct class prop field data table enum entit",
    "edge-cases": "edge corner error fail except limit constraint valid invariant caveat guarantee",
    "files": "file path placement layout structure module director package location component",
    "behaviors": "behavio expect accept criteri scenario requirement semantic result test",
    "decisions": "decision design approach architecture choice solution proposal",
    "constraints": "constraint pattern convention requirement rule guideline principle standard limit",
}
# Headings of what came before a design, and of what is around it. Several may be joined: "Background and motivation".
AROUND = frozenset(
    "background|motivation|problem|problem statement|prior art|related work|references|bibliography|further reading|"
    "see also|acknowledgements|acknowledgments|credits|authors|contributors|contributing|stakeholders|copyright|"
    "license|changelog|change log|revision history|document history|version history|table of contents|contents|"
    "timeline|milestones|roadmap|future work|future directions|future possibilities|how to teach this|"
    "how we teach this".split("|")
)
# Headings of what was thought about and not done: a specification's writer needs it, an implementer does not.
DISCARDED = frozenset(
    "alternatives|alternatives considered|considered alternatives|rejected alternatives|alternative approaches|"
    "rejected ideas|rationale|drawbacks".split("|")
)

_WORD = re.compile(r"[a-z]+")
_DECORATION = re.compile(r"^[\W\d_]+|[\W_]+$")
_JOINED = re.compile(r"\s*(?:\band\b|\bor\b|&|/|,|\+)\s*")
_PATH = re.compile(r"(?<![\w:/])[\w.@*-]+/[\w./@*\[\]{}-]*\.[A-Za-z]\w*|[├└]──")
_BOLD = re.compile(r"^\s*(?:\*\*|__)(.+?)(?:\*\*|__)\s*(:?)")
_FENCE = re.compile(r"^[\s>]*(?:`{3,}|~{3,})")
_HEADING = re.compile(r"^\s*(#{1,6})\s+(.*?)[\s#]*$")
_UNDERLINE = re.compile(r"^\s*([^\w\s])\1{2,}\s*$")
_SENTENCE_ENDS = (".", "!", "?", ";", ",", ":", "。", "！", "？", "：")
_MATTER = re.compile(r"^---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Section(NamedTuple):
    title: str  # empty for what stands before the first heading
    level: int  # 0 for that, else from 1
    start: int  # the line of its heading
    text_start: int  # the line after its heading
    end: int  # where the next heading stands, or the text ends
    parents: tuple[int, ...]  # the sections around it, outermost first
    names: frozenset[str] = frozenset()  # the kinds that its heading names
    labels: frozenset[str] = frozenset()  # the kinds that labels in it name
    holds: frozenset[str] = frozenset()  # the kinds that code and paths in it name
    odd: bool = False  # it holds a line that may be a heading in another notation
    bodies: tuple[range, ...] = ()  # lines of code that may go
    blocks: tuple[int, ...] = ()  # where its paragraphs, lists, tables and code blocks begin

    def kinds(self) -> frozenset[str]:
        return self.names | self.labels | self.holds


class Document(NamedTuple):
    lines: list[str]  # with their ends: together they are the text
    sections: list[Section]
    doubt: str  # why the sections cannot be trusted; empty where they can


class Choice(NamedTuple):
    kept: set[int]  # numbers of sections
    asides: set[int]  # what may go, whether it does or not
    whole: str = ""  # why everything is kept; empty where it is not
    missing: tuple[str, ...] = ()  # the kinds that were not found


def read(text: str) -> Document:
    lines = _LINES.findall(text)
    tokens = _parse(text)
    at = [number for number, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
    doubt = _doubt(lines, tokens, [tokens[number + 1].content for number in at])
    if doubt:
        return Document(lines, [], doubt)
    sections: list[Section] = []
    if at[0] > 0 or _line(tokens[0]) > 0:
        sections.append(_section(lines, tokens[: at[0]], Section("", 0, 0, 0, _line(tokens[at[0]]), ())))
    for number, following in zip(at, [*at[1:], len(tokens)], strict=True):
        level, start, text_start = int(tokens[number].tag[1:]), *(tokens[number].map or [0, 0])
        end = _line(tokens[following]) if following < len(tokens) else len(lines)
        around = (*sections[-1].parents, len(sections) - 1) if sections else ()
        parents = tuple(parent for parent in around if sections[parent].level < level)
        section = Section(_plain(tokens[number + 1].content), level, start, text_start, end, parents)
        sections.append(_section(lines, tokens[number + 3 : following], section))
    return Document(lines, sections, "")


def _line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _parse(text: str) -> list[Token]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # What stands inside a line is not asked for.
    parser.core.ruler.enableOnly(["normalize", "block"])
    matter = _MATTER.match(text)
    if matter:
        # YAML above the text: a Markdown reader would take its last line for a heading.
        text = "\n" * len(_LINES.findall(matter.group())) + text[matter.end() :]
    return parser.parse(text)


def _doubt(lines: list[str], tokens: list[Token], headings: list[str]) -> str:
    if not headings:
        return "it has no headings"
    titles = set(map(_key, headings))
    for fence in tokens:
        if fence.type != "fence":
            continue
        start, end = fence.map or (0, 0)
        closing = lines[end - 1].strip(" \t\r\n>")
        if end - 1 == start or len(closing) < len(fence.markup) or closing.strip(fence.markup[0]):
            return "a code block is not closed"
        inside = lines[start + 1 : end - 1]
        if any(_FENCE.match(line) for line in inside):
            return "a code block holds fences"
        language = _language(fence)
        for heading in filter(None, map(_HEADING.match, inside)):
            text = language in {"", "markdown", "md", "mdx", "text", "txt"}
            if _key(heading.group(2)) in titles or (text and len(heading.group(1)) > 1):
                return "a code block holds headings"
    return ""


def _section(lines: list[str], tokens: list[Token], section: Section) -> Section:
    labels: list[str] = []
    holds: set[str] = set()
    bodies: list[range] = []
    odd = False
    for number, token in enumerate(tokens):
        start, end = token.map or (0, 0)
        if token.type == "fence" and token.level == 0:
            code = read_code(lines[start + 1 : end - 1], _language(token))
            holds |= code.declares
            bodies += [range(start + 1 + run.start, start + 1 + run.stop) for run in code.bodies]
        elif token.type == "inline":
            bold = _BOLD.match(token.content)
            if bold or tokens[number - 1].type == "th_open":
                labels.append(bold.group(1) if bold else token.content)
            elif "\n" not in token.content and token.content.endswith(":"):
                labels.append(token.content)
            odd = odd or (token.level == 1 and tokens[number - 1].type == "paragraph_open" and _is_odd(token.content))
        elif token.type == "html_block":
            odd = odd or "<h" in token.content.lower()
    if any(_PATH.search(line) for line in lines[section.text_start : section.end]):
        holds.add("files")
    return section._replace(
        names=kinds_of([section.title]),
        labels=kinds_of(labels),
        holds=frozenset(holds),
        odd=odd,
        bodies=tuple(bodies),
        blocks=tuple(sorted({token.map[0] for token in tokens if token.level == 0 and token.map})),
    )


def _is_odd(paragraph: str) -> bool:
    """A line by itself that is no sentence, or one that underlines another."""
    lines = paragraph.split("\n")
    alone = len(lines) == 1 and not lines[0].rstrip("*_ ").endswith(_SENTENCE_ENDS)
    return alone or any(_UNDERLINE.match(line) for line in lines)


def choose(document: Document, kinds: tuple[str, ...], asides: frozenset[str]) -> Choice:
    sections = document.sections
    everything = set(range(len(sections)))
    if document.doubt:
        return Choice(everything, set(), document.doubt)
    if any(letter.isalpha() and not letter.isascii() for section in sections for letter in section.title):
        return Choice(everything, set(), "a heading is not in English letters")  # the tables are, and share some words
    gone = _asides(sections, frozenset(kinds), asides)
    kept = [section for number, section in enumerate(sections) if number not in gone]
    missing = tuple(kind for kind in kinds if not any(kind in section.kinds() for section in kept))
    if missing:
        return Choice(everything, gone, f"no {' and no '.join(missing)} found", missing)
    return Choice(everything - gone, gone)


def _asides(sections: list[Section], kinds: frozenset[str], asides: frozenset[str]) -> set[int]:
    below: dict[int, list[int]] = {number: [] for number in range(len(sections))}
    for number, section in enumerate(sections):
        for parent in section.parents:
            below[parent].append(number)
    titled = sum(1 for section in sections if section.title)
    gone: set[int] = set()
    for number, section in enumerate(sections):
        # A title over the whole text names the feature, not a part of it.
        if not asides.issuperset(_JOINED.split(_key(section.title))) or len(below[number]) + 1 == titled:
            continue
        around = [sections[parent] for parent in section.parents if len(below[parent]) + 1 < titled]
        inner = [sections[other] for other in below[number]]
        named = any(one.names & kinds for one in (*around, *inner))
        if not named and not any(one.odd or one.labels & kinds for one in (section, *inner)):
            gone.update((number, *below[number]))
    return gone


def heading_of(document: Document, number: int) -> tuple[int, str]:
    section = document.sections[number]
    return number, "".join(document.lines[section.start : section.text_start])


def blocks_of(document: Document, section: Section, bodies: bool) -> list[Block]:
    """The section in pieces that stay whole, each with the bytes of the text that are in it. With `bodies`, code stays
    as it is; without, a line stands for each run that may go, and says how long it was."""
    gone = {} if bodies else {run.start: run for run in section.bodies}
    starts = [section.start, *section.blocks[1:]]
    blocks: list[Block] = []
    for start, end in zip(starts, [*starts[1:], section.end], strict=True):
        text, size, at = "", 0, start
        while at < end:
            line = document.lines[at]
            if at in gone:
                text += f"{line[: len(line) - len(line.lstrip())]}[{len(gone[at])} lines left out]\n"
                at = gone[at].stop
            else:
                text, size, at = text + line, size + len(line.encode("utf-8", "surrogatepass")), at + 1
        blocks.append((text, size))
    return blocks


def titles_of(text: str) -> set[str]:
    """The headings of a text without their numbers, decoration and case; none where they cannot be trusted."""
    return {_key(section.title) for section in read(text).sections if section.title}


def kinds_of(titles: Iterable[str]) -> frozenset[str]:
    words = [word for title in titles for word in _WORD.findall(title.lower())]
    return frozenset(
        kind for kind, stems in KINDS.items() if any(word.startswith(tuple(stems.split())) for word in words)
    )


def _key(title: str) -> str:
    """A heading without its number, decoration and case."""
    return " ".join(_DECORATION.sub("", title).lower().split())


def _plain(title: str) -> str:
    return " ".join(title.replace("`", "").replace("*", "").split())


def _language(fence: Token) -> str:
    found = re.match(r"[\s{.]*([\w+#-]+)", fence.info)
    return found.group(1).lower() if found else ""


# ---- code ----------------------------------------------------------------------------------------------


class Code(NamedTuple):
    bodies: list[range]  # runs of lines that may go
    declares: set[str]  # signatures, types


class Word(NamedTuple):
    kind: str  # keyword, comment, function, sign, other
    text: str


class Head(NamedTuple):
    start: int  # its first line
    end: int  # the line after it


TYPES = set(
    "class struct interface enum record object trait impl protocol extension module namespace union type".split()
)
NAMES_OF_TYPES = TYPES | set("table message typedef typealias".split())
FUNCTIONS = set("def defp fn fun func function sub proc procedure method".split())
RAISING = {"raise", "throw"}
STEPS = set("return if for foreach while switch try match yield unless guard with until".split())
NO_HEADS = STEPS | RAISING | set("else elif elsif except catch finally do case when using".split())
_OPENING = {")": "(", "]": "[", "}": "{"}


def read_code(lines: list[str], language: str) -> Code:
    lines = [line.rstrip("\r\n") for line in lines]
    words = _words(lines, language)
    around = _brackets(words) if words is not None else None
    if words is None or around is None:
        return Code([], set())
    code = Code([], _declared(words))
    at = 0
    while at < len(lines):
        head = _head(lines, words, around, at)
        body = _body(lines, words, head) if head is not None else None
        if body is None:
            at += 1
            continue
        code.bodies.extend(_without_comments(words, body))
        code.declares.add("signatures")
        at = body.stop
    return code


def _words(lines: list[str], language: str) -> list[list[Word]] | None:
    """The words of each line; None where Pygments does not know the language, or cannot read the code."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Error, Keyword, Name, Operator, Punctuation, String
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return None
    kinds = [(Comment.Preproc, "other"), (Comment, "comment"), (String.Doc, "comment"), (Keyword, "keyword")]
    kinds += [(Name.Function, "function"), (Punctuation, "sign"), (Operator, "sign")]
    words: list[list[Word]] = [[] for _ in lines]
    at = 0
    for token, text in lexer.get_tokens("\n".join(lines)):
        if token is Error:
            return None
        kind = next((kind for family, kind in kinds if token in family), "other")
        for number, piece in enumerate(text.split("\n")):
            at += number > 0
            # A blank line inside a comment is part of it.
            if at < len(lines) and (piece.strip() or (kind == "comment" and "\n" in text)):
                words[at].append(Word(kind, piece.strip()))
    return words


def _declared(words: list[list[Word]]) -> set[str]:
    kinds = {word.kind for line in words for word in line}
    keywords = {word.text.lower() for line in words for word in line if word.kind == "keyword"}
    declares = {"types"} if keywords & NAMES_OF_TYPES else set()
    return declares | {"signatures"} if keywords & FUNCTIONS or "function" in kinds else declares


def _brackets(words: list[list[Word]]) -> list[str] | None:
    """The innermost bracket that is open where each line begins; None where brackets do not meet."""
    open_: list[str] = []
    around = []
    for line in words:
        around.append(open_[-1] if open_ else "")
        for sign in "".join(word.text for word in line if word.kind == "sign"):
            if sign in "([{":
                open_.append(sign)
            elif sign in _OPENING and (not open_ or open_.pop() != _OPENING[sign]):
                return None
    return None if open_ else around


def _head(lines: list[str], words: list[list[Word]], around: list[str], at: int) -> Head | None:
    """The statement that begins at a line, if it is the head of a function."""
    first = words[at][0] if words[at] else Word("comment", "")
    if around[at] in {"(", "["} or first.kind == "comment" or _is(first, NO_HEADS):
        return None
    end = at + 1
    while end < len(lines) and around[end] in {"(", "["}:
        end += 1
    statement = [word for line in words[at:end] for word in line if word.kind != "comment"]
    opens = statement[-1].text[-1:] in {"{", ":"} or any(_is(word, FUNCTIONS) for word in statement)
    if end < len(lines) and [word.text for word in words[end]] == ["{"] and _indent(lines[end]) == _indent(lines[at]):
        opens, end = True, end + 1
    parameters = any(word.kind == "sign" and "(" in word.text for word in statement)
    return Head(at, end) if opens and parameters and not _declares_type(statement) else None


def _declares_type(statement: list[Word]) -> bool:
    """A word such as `class`; in the parameters it is somebody else's type."""
    depth = 0
    for word in statement:
        if word.kind == "sign":
            depth += word.text.count("(") - word.text.count(")")
        elif depth == 0 and _is(word, TYPES):
            return True
    return False


def _body(lines: list[str], words: list[list[Word]], head: Head) -> range | None:
    """What is indented below a head, if it is certain that it is a body and that it may go."""
    stop = head.end
    for at in range(head.end, len(lines)):
        if lines[at].strip() and _indent(lines[at]) <= _indent(lines[head.start]):
            break
        stop = at + 1 if lines[at].strip() else stop
    body = range(head.end, stop)
    if any(_is(word, TYPES | RAISING) for at in body for word in words[at]):
        return None
    level = min((_indent(lines[at]) for at in body if lines[at].strip()), default=0)
    steps = (words[at][0] for at in body if words[at] and _indent(lines[at]) == level)
    return body if any(_is(word, STEPS) for word in steps) else None


def _without_comments(words: list[list[Word]], body: range) -> list[range]:
    runs: list[range] = []
    for at in body:
        if any(word.kind == "comment" for word in words[at]):
            continue
        if runs and runs[-1].stop == at:
            runs[-1] = range(runs[-1].start, at + 1)
        else:
            runs.append(range(at, at + 1))
    return [run for run in runs if len(run) > 1]


def _is(word: Word, names: set[str]) -> bool:
    return word.kind == "keyword" and word.text.lower() in names


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())
