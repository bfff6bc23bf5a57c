"""What somebody wrote on a forge, as data: spelled out and quoted, so that it can be nobody else's word."""

from __future__ import annotations

from tenuto.encoding import escape_terminal

_LARGEST = 64 << 10  # characters


def clean(text: str) -> str:
    """Without control characters; those are spelled out."""
    return escape_terminal(text.replace("\r\n", "\n"), keep="\n\t")


def quoted(text: str) -> str:
    """Every line behind a mark: nothing in it can be a heading, a fence or a last line of anybody else's."""
    kept = clean(text)
    cut = kept[:_LARGEST]
    lines = [f"> {line}".rstrip() for line in cut.splitlines()]
    return "\n".join([*lines, *(["> [cut: it is longer]"] if len(kept) > len(cut) else [])])


def one_line(text: str) -> str:
    return " ".join(clean(text).split())[:200]
