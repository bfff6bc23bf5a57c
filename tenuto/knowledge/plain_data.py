"""YAML and JSON written by people, read as plain data with the place of everything in it.

    read_yaml(text, "my.yaml")  -> Source: .data, and .place(path) -> (line, column), both from 1
    source_of(path)             -> the same of a file

Refused by name and place: aliases (a few lines of them expand to gigabytes), tags, duplicate keys,
several documents, infinities, nesting deeper than 64, more than 256 KB. Keys are text, as in JSON.

The data is built from the parser's events, without recursion, so no input can exhaust the stack.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tenuto.errors import BadInput

DEEPEST = 64
LARGEST = 256 * 1024
YamlPath = tuple[str | int, ...]
Place = tuple[int, int]

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?\Z")
_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


class Source:
    """Data and where each part of it stands."""

    __slots__ = ("data", "name", "places")

    def __init__(self, name: str) -> None:
        self.name = name
        self.data: object = None
        self.places: dict[YamlPath, Place] = {}

    def place(self, path: Sequence[str | int]) -> Place:
        """The nearest place on the way to `path` that is in the text."""
        found: YamlPath = tuple(path)
        while found and found not in self.places:
            found = found[:-1]
        return self.places.get(found, (1, 1))


def read_yaml(text: str, name: str = "text", first_line: int = 1) -> Source:
    """`name` is what errors call the file; names in .json are read as JSON. `first_line`: where the text begins in
    it."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise BadInput("too-large", f"{name}: larger than {LARGEST // 1024} KB", "split it")
    source = Source(name)
    if name.endswith(".json"):
        try:
            _Builder(source, first_line).build(text.replace("\t", " "))
        except BadInput as refused:
            if refused.code in ("too-deep", "duplicate-key"):
                raise
            source.places = {}  # where the YAML parser reads JSON differently, there are no places
        source.data = _json(text, name)
        return source
    _Builder(source, first_line).build(text)
    return source


def _json(text: str, name: str) -> object:
    def constant(word: str) -> NoReturn:
        raise BadInput("bad-number", f"{name}: {word} is no JSON number", "write a number")

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(found)
        if len(made) < len(found):
            twice = next(key for index, (key, _) in enumerate(found) if key in dict(found[:index]))
            raise BadInput("duplicate-key", f"{name}: the key '{twice}' is there twice", "remove one of them")
        return made

    def number(word: str) -> float:
        if not isfinite(float(word)):
            constant(word)
        return float(word)

    try:
        data: object = json.loads(text, parse_constant=constant, parse_float=number, object_pairs_hook=pairs)
        return data
    except json.JSONDecodeError as wrong:
        raise BadInput("not-json", f"{name}:{wrong.lineno}:{wrong.colno}: {wrong.msg}", "correct the JSON") from None
    except RecursionError:
        raise BadInput("too-deep", f"{name}: nested deeper than {DEEPEST}", "flatten it") from None


class _Builder:
    """Parser events -> data, with an explicit stack of open collections."""

    def __init__(self, source: Source, first_line: int) -> None:
        self.source = source
        self.offset = first_line
        self.open: list[tuple[dict[str, object] | list[object], YamlPath]] = []
        self.keys: list[str | None] = []  # per open mapping: the key that waits for its value

    def build(self, text: str) -> None:
        documents = 0
        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                documents += isinstance(event, DocumentStartEvent)
                if documents > 1:
                    self.refuse("several-documents", event.start_mark, "there is more than one document", "keep one")
                self.take(event)
        except MarkedYAMLError as wrong:
            mark = wrong.problem_mark or wrong.context_mark
            message = str(wrong.problem or wrong.context or "it cannot be read")
            self.refuse("not-yaml", mark, message, "correct the YAML")
        except (YAMLError, ValueError) as wrong:
            message = str(wrong).splitlines()[0] if str(wrong) else "it cannot be read"
            raise BadInput("not-yaml", f"{self.source.name}: {message}", "correct the YAML") from None

    def refuse(self, code: str, mark: StreamMark | None, message: str, hint: str) -> NoReturn:
        line, column = self.at(mark)
        place = {"line": line, "column": column}
        raise BadInput(code, f"{self.source.name}:{line}:{column}: {message}", hint, **place) from None

    def at(self, mark: StreamMark | None) -> Place:
        return (mark.line + self.offset, mark.column + 1) if mark is not None else (self.offset, 1)

    def take(self, event: Event) -> None:
        match event:
            case AliasEvent():
                self.refuse("alias", event.start_mark, "aliases are not allowed", "write the value out")
            case ScalarEvent():
                self.scalar(event)
            case MappingStartEvent():
                self.begin({}, event)
            case SequenceStartEvent():
                self.begin([], event)
            case MappingEndEvent() | SequenceEndEvent():
                self.open.pop()
                self.keys.pop()

    def scalar(self, event: ScalarEvent) -> None:
        self.untagged(event)
        plain = event.style in (None, "") and event.implicit[0]
        if self.open and isinstance(self.open[-1][0], dict) and self.keys[-1] is None:
            self.key(event)
            return
        self.put(self.resolve(event) if plain else event.value, event.start_mark)

    def key(self, event: ScalarEvent) -> None:
        mapping, path = self.open[-1]
        if event.value in mapping:
            self.refuse("duplicate-key", event.start_mark, f"the key '{event.value}' is there twice", "remove one")
        self.keys[-1] = event.value
        self.source.places[(*path, event.value)] = self.at(event.start_mark)

    def begin(self, made: dict[str, object] | list[object], event: CollectionStartEvent) -> None:
        self.untagged(event)
        if len(self.open) >= DEEPEST:
            self.refuse("too-deep", event.start_mark, f"nested deeper than {DEEPEST}", "flatten it")
        if self.open and isinstance(self.open[-1][0], dict) and self.keys[-1] is None:
            self.refuse("bad-key", event.start_mark, "a key must be text", "write a word before the colon")
        path = self.put(made, event.start_mark)
        self.open.append((made, path))
        self.keys.append(None)

    def put(self, value: object, mark: StreamMark | None) -> YamlPath:
        if not self.open:
            self.source.data = value
            self.source.places[()] = self.at(mark)
            return ()
        holder, path = self.open[-1]
        if isinstance(holder, dict):
            key = self.keys[-1]
            assert key is not None
            holder[key] = value
            self.keys[-1] = None
            return (*path, key)
        holder.append(value)
        here = (*path, len(holder) - 1)
        self.source.places[here] = self.at(mark)
        return here

    def untagged(self, event: ScalarEvent | CollectionStartEvent) -> None:
        if event.tag is not None and str(event.tag) != "!":
            self.refuse("tag", event.start_mark, f"the tag {event.tag} is not allowed", "write the plain value")

    def resolve(self, event: ScalarEvent) -> object:
        text = str(event.value)
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.match(text):
            return int(text)
        if _FLOAT.match(text):
            if not isfinite(float(text)):
                self.refuse("bad-number", event.start_mark, f"the number {text} is too large", "write a smaller one")
            return float(text)
        return text


# ---- files


def is_file(path: Path) -> bool:
    """What lies there and is no file is refused, not passed over: gates that its owner believes in would be missing."""
    if path.is_file():
        return True
    if os.path.lexists(path):
        kind = "a link to nothing that can be read" if path.is_symlink() else "no file"
        raise BadInput("not-a-file", f"{path} is {kind}", "put the file there, or remove it")
    return False


def source_of(path: Path) -> Source:
    if path.stat().st_size > LARGEST:
        raise BadInput("too-large", f"{path} is larger than {LARGEST // 1024} KB", "split it")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise BadInput("not-text", f"{path} is not UTF-8 at byte {wrong.start}", "save it as UTF-8") from None
    return read_yaml(text, str(path))
