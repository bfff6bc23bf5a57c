"""What leaves a journal, and what is taken out of it: backups and redaction. The same for every store.

A backup is the journal as JSON, one record a line:

    head      what this is, and which program can read it
    run       name, number of events, head of the chain; its events follow
    event     run, number, digest, and the event itself
    blob      a stored file; object: a large one, in parts
    render    what we wrote to a projected file: hash always, text for the last few
    log       an append-only file;  passage: searchable text;  note: a marker
    end       how many lines there were, and a hash over all of them: a cut copy is seen

Reading back checks every digest and every chain before anything is kept. A run that is here with other events, or a
file that is shown from another run here, is refused by name; one that is here with the same events is passed over. All
of a backup is taken, or nothing.

A redaction says which texts are to be forgotten, how they may be spelled, and what stands in their place. Tenuto's own
words stay: a text that is part of an event's type, a status or a field's name cannot be taken out without changing what
happened, and is refused.
"""

from __future__ import annotations

from tenuto.encoding import digest, sha256
from tenuto.errors import BadInput, Damaged, Refused
from tenuto.names import check, check_path, split_file_key
from tenuto.secrets import MARK, spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from tenuto.core.records.run import Json


FORMAT = 1
SCHEMA = 1  # of what the records say
# What a record raises that our export can never have made: something is missing in it, or of another kind.
NOT_WHOLE = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
# Append-only files are written wherever the journal says; a backup may come from anybody.
_FOLDERS = ("docs", ".ai-workspace", ".agents", ".claude", ".tenuto")
ONLY_HERE = ("shelf:", "unproven:")  # markers about files in this very place begin like this, and are not copied


def head(version: str) -> Json:
    return {"kind": "tenuto-journal", "format": FORMAT, "schema": SCHEMA, "version": version}


def packed(body: bytes) -> Json:
    """Bytes as text where they are text, so that a backup can be read and searched."""
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"base64": b2a_base64(body, newline=False).decode()}


def unpacked(record: Json) -> bytes:
    if "text" in record:
        return str(record["text"]).encode()
    from binascii import a2b_base64

    return a2b_base64(record["base64"])


def check_log_path(path: str) -> str:
    if check_path(path).partition("/")[0] not in _FOLDERS:
        raise damaged(f"{path} is no file that Tenuto writes")
    return path


def check_file_key(key: str) -> str:
    tree, path = split_file_key(key)
    check_path(path, colons=True)
    if path != key:
        check(tree, "work tree")
    return key


def damaged(message: str) -> Damaged:
    return Damaged("backup-damaged", message, "nothing was taken; use another copy")


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
    "answers",
    "changes",
    "context",
    "entries",
    "error",
    "extra",
    "feedback",
    "found",
    "flags",
    "last_feedback",
    "message",
    "prompt",
    "proof",
    "reason",
    "receipt",
    "recommendations",
    "request",
    "said",
    "settings",
    "summary",
    "task",
    "text",
    "title",
)


_BUILT = ("pipeline", "schedule", "evidence", "dialects")


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
        """The hash of a stored file changes with the file: every record that names it names the new one."""
        self._pairs.append((old, new))

    def text(self, text: str) -> str:
        for old, new in self._pairs:
            text = text.replace(old, new)
        return text

    def value(self, value: object) -> object:
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

    def stands_in(self, body: bytes | mmap) -> bool:
        """`mmap`: a file in memory. Hashes that were renamed are no secret."""
        if self.contents:
            hashed = sha256()
            hashed.update(body)
            if hashed.hexdigest() in self.contents:
                return True
        return any(body.find(spelling) >= 0 for old, new in self._pairs if new == MARK for spelling in spellings(old))

    def event(self, event: Json, where: str) -> Json:
        made = {self.text(key): self.value(entry) for key, entry in event.items()}
        if list(made) != list(event) or any(made.get(name) != event.get(name) for name in _OWN):
            raise Refused("own-word", f"the text is one of Tenuto's own words in {where}", "name more of it")
        return made


def scrub(event: Json) -> tuple[Json, list[str]]:
    """Everything that was said in an event is taken out. Also returns the texts, to be looked for elsewhere."""
    texts: list[str] = []
    names = (*_SAID, "name") if event["type"] == "RunStarted" else _SAID
    scrubbed = {key: _scrubbed_field(key, entry, False, names, texts) for key, entry in event.items()}
    return scrubbed, [text for text in dict.fromkeys(texts) if _is_telling(text)]


def _is_telling(text: str) -> bool:
    """A single short word stands for nothing elsewhere; it may be anybody's."""
    return len(text) >= 16 or (len(text) >= 8 and " " in text)


def _scrubbed(value: object, free: bool, names: tuple[str, ...], texts: list[str]) -> object:
    if isinstance(value, str) and free and value not in ("", MARK):
        texts.append(value)
        return MARK
    if isinstance(value, list):
        return [_scrubbed(entry, free, names, texts) for entry in value]
    if isinstance(value, dict):
        return {key: _scrubbed_field(key, entry, free, names, texts) for key, entry in value.items()}
    return value


def _scrubbed_field(key: str, value: object, free: bool, names: tuple[str, ...], texts: list[str]) -> object:
    """A pipeline's name, a schedule, a place: how the run is built, not what was said."""
    return value if key in _BUILT else _scrubbed(value, free or key in names, names, texts)
