"""A marked block at the end of a TOML file: put in, taken out again, every other byte left alone.

The block is between two comment lines that say whose it is. In front of it one line break is added (none
in an empty file), and taken away with it, so that what was there before comes back to the byte.
"""

from __future__ import annotations

import tomllib

from tenuto.errors import BadInput

BEGIN = "# >>> tenuto setup (tenuto setup codex --undo takes this out)\n"
WHOLE = "# this file was made by tenuto setup\n"
END = "# <<< tenuto setup\n"


def with_block(text: str | None, lines: str) -> str:
    """`lines`: whole lines of TOML, tables of their own. None: there is no file."""
    if text is None:
        return BEGIN + WHOLE + lines + END
    _check(text)
    added = ("\n" if text else "") + BEGIN + lines + END
    try:
        tomllib.loads(text + added)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(
            "cannot-add", f"what is to be added does not fit into this file: {error}", "add it by hand, or clean up"
        ) from None
    return text + added


def without_block(text: str) -> str | None:
    """As it was before; None where the file was made for the block."""
    begin = text.find(BEGIN)
    if begin < 0:
        return text
    end = text.find(END, begin)
    if end < 0:
        raise BadInput("cut-block", "the block of tenuto setup has no end", "take it out by hand")
    whole = text.startswith(WHOLE, begin + len(BEGIN))
    before, after = text[:begin], text[end + len(END) :]
    rest = before.removesuffix("\n") + after
    return None if whole and not rest else rest


def block_of(text: str) -> str:
    """What stands in the block; "" where there is none."""
    begin, end = text.find(BEGIN), text.find(END)
    return text[begin + len(BEGIN) : end] if 0 <= begin < end else ""


def _check(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput("not-toml", str(error), "mend the file first") from None
