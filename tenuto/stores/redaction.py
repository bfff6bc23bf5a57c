"""Which words are to be forgotten, how they may be spelled, and what stands in their place.

Tenuto's own words stay: a text that is part of an event's type, a status or a field's name cannot
be taken out without changing what happened, and is refused.
"""

from __future__ import annotations

from tenuto.encoding import digest, dumps
from tenuto.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

MARK = "[forgotten]"
SHORTEST = 4
_OWN = (
    "type",
    "v",
    "at",
    "run",
    "status",
    "verdict",
    "decision",
    "outcome",
    "driver",
    "order",
    "mode",
    "kind",
    "dialect",
)
# Where an event holds what people and agents said; everything else is how it fits into the run.
_SAID = (
    "answers", "changes", "context", "entries", "error", "extra", "feedback", "flags", "last_feedback", "message", "prompt",
    "proof", "reason", "receipt", "recommendations", "request", "settings", "summary", "task", "text", "title",
)  # fmt: skip


class Redaction:
    def __init__(self, texts: list[str]) -> None:
        for text in texts:
            if len(text) < SHORTEST:
                raise BadInput(
                    "too-short", f"a text of {len(text)} characters stands everywhere", f"name {SHORTEST} or more"
                )
            if text in MARK:
                raise BadInput("bad-text", "that is what stands in the place of forgotten text")
        self._pairs = [(text, MARK) for text in sorted(dict.fromkeys(texts), key=len, reverse=True)]
        self.contents: dict[str, bytes] = {}  # stored files that are forgotten as a whole, by hash

    def rename(self, old: str, new: str) -> None:
        """A content's hash changes with the content: whoever names it names the new one."""
        self._pairs.append((old, new))

    def text(self, text: str) -> str:
        for old, new in self._pairs:
            text = text.replace(old, new)
        return text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(entry) for entry in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(entry) for key, entry in value.items()}
        return value

    def body(self, body: bytes) -> bytes:
        """The bytes of a file, in whatever way it spells the text."""
        if self.contents and digest(body) in self.contents:
            return self.contents[digest(body)]
        for old, new in self._pairs:
            for spelling in spellings(old):
                if spelling in body:
                    body = body.replace(spelling, new.encode())
        return body

    def stands_in(self, body: Any) -> bool:
        """`body`: bytes, or a file in memory. Hashes that were renamed are no secret."""
        if self.contents and digest(body) in self.contents:
            return True
        return any(body.find(spelling) >= 0 for old, new in self._pairs if new == MARK for spelling in spellings(old))

    def event(self, event: Json, where: str) -> Json:
        made: Json = self.value(event)
        if list(made) != list(event) or any(made.get(name) != event.get(name) for name in _OWN):
            raise Refused("own-word", f"the text is one of Tenuto's own words in {where}", "name more of it")
        return made


def spellings(text: str) -> list[bytes]:
    """As it is, as JSON spells it, and as JSON spells it in ASCII."""
    plain = dumps(text)[1:-1]
    ascii_only = "".join(c if c.isascii() else _escaped(c) for c in plain)
    return list(dict.fromkeys(form.encode("utf-8", "surrogatepass") for form in (text, plain, ascii_only)))


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def scrub(event: Json) -> tuple[Json, list[str]]:
    """Everything that was said in an event is taken out. Also returns the texts, to be looked for elsewhere."""
    said: list[str] = []
    made = _scrubbed(event, False, (*_SAID, "name") if event["type"] == "RunStarted" else _SAID, said)
    return made, [text for text in dict.fromkeys(said) if _is_telling(text)]


def _is_telling(text: str) -> bool:
    """A single short word stands for nothing elsewhere; it may be anybody's."""
    return len(text) >= 16 or (len(text) >= 8 and " " in text)


def _scrubbed(value: Any, free: bool, names: tuple[str, ...], said: list[str]) -> Any:
    if isinstance(value, str) and free and value not in ("", MARK):
        said.append(value)
        return MARK
    if isinstance(value, list):
        return [_scrubbed(entry, free, names, said) for entry in value]
    if isinstance(value, dict):
        # A pipeline's name, a schedule, a place: how the run is built, not what was said.
        built = ("pipeline", "schedule", "evidence", "dialects")
        return {
            key: entry if key in built else _scrubbed(entry, free or key in names, names, said)
            for key, entry in value.items()
        }
    return value
