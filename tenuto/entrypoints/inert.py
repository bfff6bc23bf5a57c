"""Stored text, made harmless for a terminal.

Names and summaries come from people, agents and files. A terminal obeys some of what it is
shown (colours, titles, links, deletions, reversed writing), so every such character is shown
as an escape instead. What is visible stays as it is, in any script.
"""

from __future__ import annotations

# Not "printable" to Python, yet harmless: wide and narrow spaces, and the joiners inside emoji and some scripts.
_HARMLESS = "\u00a0\u2002\u2003\u2009\u200a\u202f\u3000\u200c\u200d"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def inert(text: str, keep: str = "") -> str:
    """One line of text (`keep="\\n\\t"`: several), safe to print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _HARMLESS or c in keep else _escaped(c) for c in text)


def inert_json(text: str) -> str:
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
