"""JSON and SHA-256 at the speed of their C parts.

`import json` costs as much as starting the interpreter (it imports re), so a hook
uses the accelerator behind it directly, and falls back to the standard library where
there is none. `loads` reads what we wrote; `loads_strict` reads what others wrote and
refuses what the standard library lets through: NaN, 1e400, duplicate keys, depth over 64.

What `dumps` and `pretty` give can always be written as UTF-8. Agents that cut a text in the middle of an emoji
send half a character ("\\ud83d"), which is JSON, but no text: it is spelled as they spelled it, and comes back as it
was.

A terminal or a page obeys some of what it is shown: `escape_terminal` and `escape_json` spell such characters out.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _hashlib import HASH
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    PairsHook = Callable[[list[tuple[str, object]]], object]
    Scanner = Callable[[str, int], tuple[Any, int]]
    Encoder = Callable[[object, int], Iterable[str]]

if TYPE_CHECKING:
    from hashlib import sha256 as _sha256
else:
    try:
        if sys.hexversion < 0x030C0000:  # to look for a module that is not there takes longer than to load one
            from _sha256 import sha256 as _sha256
        else:
            from _sha2 import sha256 as _sha256
    except ImportError:
        from hashlib import sha256 as _sha256


class Hashing:
    """Which SHA-256 is used: a hook has no time to load OpenSSL, a process that stays takes it for long texts."""

    __slots__ = ("limit", "long", "short")

    def __init__(self) -> None:
        self.short = self.long = _sha256
        self.limit = 128


HASHING = Hashing()
MAX_DEPTH = 64
_BLANKS = " \t\n\r"


class NotJson(ValueError):
    """The text is not JSON that Tenuto accepts; the message says where and why."""


def _constant(word: str) -> NoReturn:
    raise NotJson(f"{word} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value - value != 0:
        raise NotJson(f"{digits[:24]} is larger than any number that can be kept")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return made


class _Reading:
    """What the C scanner asks of its context."""

    strict = True
    object_hook = None
    array_hook = None  # since Python 3.15
    parse_float: Callable[[str], float] = float
    parse_int = int
    parse_constant = staticmethod(_constant)

    def __init__(self, pairs_hook: PairsHook | None) -> None:
        self.object_pairs_hook = pairs_hook
        if pairs_hook is not None:  # others' text: 1e400 would be read as an infinity, which is not JSON
            self.parse_float = _finite
        self.memo: dict[str, str] = {}


def _scanner(pairs_hook: PairsHook | None) -> Scanner:
    make: Any
    try:
        from _json import make_scanner as make
    except ImportError:
        from json.scanner import py_make_scanner as make  # type: ignore[attr-defined, no-redef]
    scan: Scanner = make(_Reading(pairs_hook))
    return scan


_own_scanner: Scanner | None = (
    None  # of what we wrote ourselves; made once: making it takes longer than reading an event
)


def _for_own() -> Scanner:
    global _own_scanner
    _own_scanner = _scanner(None)
    return _own_scanner


def _parse(text: str, pairs_hook: PairsHook | None) -> Any:
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        scan = _scanner(pairs_hook) if pairs_hook else _own_scanner or _for_own()
        value, end = scan(text, start)
    except SystemError:
        # The C scanner makes its error message with a module that nobody loaded so far.
        import json.decoder  # noqa: F401

        return _parse(text, pairs_hook)
    except StopIteration as stop:
        raise NotJson(f"no JSON value at character {stop.value}") from None
    except RecursionError:
        raise NotJson(f"nested deeper than {MAX_DEPTH}") from None
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from None
    if text[end:].strip(_BLANKS):
        raise NotJson(f"more text after the JSON value, at character {end}")
    return value


def loads(text: str | bytes) -> Any:
    return _parse(text.decode() if isinstance(text, bytes) else text, None)


def loads_all(texts: Iterable[str]) -> list[Any]:
    """Each of them as `loads` gives it."""
    return [_parse(text, None) for text in texts]


def loads_strict(text: str | bytes) -> Any:
    """Others' JSON: every deviation is an error with a reason."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise NotJson(f"not UTF-8 at byte {error.start}") from None
    value = _parse(text.removeprefix("\ufeff"), _unique)
    if _deeper_than(value, MAX_DEPTH):
        raise NotJson(f"nested deeper than {MAX_DEPTH}")
    return value


def _deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        if not below:
            return False
        level = below
    return any(isinstance(node, (dict, list)) for node in level)


def _refuse_type(value: object) -> NoReturn:
    raise TypeError(f"not JSON: {type(value).__name__}")


def dumps(value: object) -> str:
    """One line, keys in the order they were put in, as short as it gets."""
    return _whole("".join((_encoder or _make_encoder())(value, 0)))


def dumps_all(values: Iterable[object]) -> list[str]:
    """Each of them as `dumps` gives it."""
    encode = _encoder or _make_encoder()
    return [_whole("".join(encode(value, 0))) for value in values]


_encoder: Encoder | None = None  # made once; it keeps nothing between two texts


def _make_encoder() -> Encoder:
    global _encoder
    try:
        from _json import encode_basestring, make_encoder
    except ImportError:
        import json

        return lambda value, _: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    _encoder = make_encoder(None, _refuse_type, encode_basestring, None, ":", ",", False, False, False)
    return _encoder


def _whole(text: str) -> str:
    """Halves of characters as escapes; in JSON they can only stand inside strings."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def pretty(value: object) -> str:
    """The way people and `jq` write files: two spaces, a line per entry, a newline at the end."""
    lines: list[str] = []
    _pretty(value, "", lines)
    return "".join(lines) + "\n"


def _pretty(value: object, indent: str, out: list[str]) -> None:
    if isinstance(value, dict) and value:
        opening, closing = "{", "}"
        entries: list[tuple[str, object]] = [(dumps(key) + ": ", item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        opening, closing = "[", "]"
        entries = [("", item) for item in value]
    else:
        out.append(dumps(value))
        return
    deeper = indent + "  "
    separator = opening + "\n" + deeper
    for label, item in entries:
        out.append(separator + label)
        _pretty(item, deeper, out)
        separator = ",\n" + deeper
    out.append("\n" + indent + closing)


def sha256(data: bytes = b"") -> HASH:
    return (HASHING.long if len(data) > HASHING.limit else HASHING.short)(data)


def hash_faster() -> None:
    """For a process that stays: OpenSSL hashes events and states in a third of the time, and takes a hook's whole
    time to load."""
    try:
        from _hashlib import openssl_sha256
    except ImportError:
        return
    HASHING.long = openssl_sha256


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def delimited(name: str, text: str) -> list[str]:
    """For a model: data between marks that cannot stand in it. Whatever the text says, it does not end the data."""
    mark = digest(text.encode("utf-8", "replace"))[:12]
    return [f'<data name="{name}" mark="{mark}">', text.replace("</data", "<\\/data"), f'</data mark="{mark}">', ""]


# ---- text that is safe to show

# Not "printable" to Python, yet harmless: wide and narrow spaces, and the joiners inside emoji and some scripts.
_HARMLESS = "\u00a0\u2002\u2003\u2009\u200a\u202f\u3000\u200c\u200d"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_terminal(text: str, keep: str = "") -> str:
    """One line of text (`keep="\\n\\t"`: several), safe to print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _HARMLESS or c in keep else _escaped(c) for c in text)


def escape_json(text: str) -> str:
    """JSON text that says the same and holds no such character. Outside strings JSON has none but its own blanks."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _HARMLESS or c == "\n" else _escaped_json(c) for c in text)


def _escaped(c: str) -> str:
    if c in _SHORT:
        return _SHORT[c]
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped_json(c: str) -> str:
    code = ord(c)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
