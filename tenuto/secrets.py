"""Values that the settings call secret: kept out of all that Tenuto writes, says and hands on.

    secrets = declared(names, environ)     NO_SECRETS where this process has none of the values
    secrets.text("...")                    the same text, [secret] in a value's place
    secrets.value({...})                   the same for anything that JSON can say
    secrets.body(b"...", path)             the same for the bytes of a file
    secrets.refuse(b"...", what)           HoldsSecret where a value stands in something that is not ours to change
    secrets.holder(descriptor)             the variable whose value stands in an open file; "" where none does

A value is found as it is, as JSON spells it, and as error messages quote it. Other forms (base64, one half) cannot
all be known. Of a value with many lines each line counts. A value of fewer than 12 characters, or of plain lower-case
words, would be found in ordinary text and in the names of files, so it is refused when it is declared, and nothing
begins. A process that was not given the variable cannot know the value.

`tenuto forget` uses the same spellings and the same mark.
"""

from __future__ import annotations

import posix

from tenuto.encoding import NotJson, dumps, loads_strict, pretty
from tenuto.errors import BadInput, HoldsSecret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    Value = TypeVar("Value")

MARK = "[secret]"
SHORTEST = 12
_BRACKETS = " \t\r\n{}[](),:;\"'"  # a line of nothing else stands in many secrets, and everywhere
_PLAIN = "abcdefghijklmnopqrstuvwxyz-_./ \t\r\n"
_CHUNK = 1 << 20
_HINT = "take it out of there, and repeat; if the journal holds it already: tenuto forget"


def spellings(text: str) -> list[bytes]:
    """As it is, as JSON spells it, as JSON spells it in ASCII, and as error messages quote it."""
    in_json = dumps(text)[1:-1]
    in_ascii = "".join(c if c.isascii() and c != "\x7f" else _escaped(c) for c in in_json)
    quoted = repr(text)[1:-1]
    forms = _encodable(text, in_json, in_ascii, quoted, dumps(quoted)[1:-1])
    return list(dict.fromkeys(form.encode("utf-8", "surrogateescape") for form in forms))


def _encodable(*forms: str) -> Iterable[str]:
    """Half a character is spelled in JSON only; the bytes of a variable that is no UTF-8 come back as they were."""
    for form in forms:
        try:
            form.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            continue
        yield form


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def declared(names: Iterable[str], environ: Mapping[str, str]) -> Secrets:
    """The secrets with these names that this process was given. BadInput where a value is too short to be kept out."""
    by_name = {name: _parts(environ[name]) for name in dict.fromkeys(names) if environ.get(name)}
    for name, parts in by_name.items():
        if not parts:
            message = (
                f"the value of {name} cannot be kept secret: it is shorter than {SHORTEST} characters, or plain words"
            )
            hint = f"give {name} a longer value, with digits or capitals, or take it off the list 'secrets'"
            raise BadInput("bad-secret", message, hint)
    return Secrets(by_name) if by_name else NO_SECRETS


def _parts(value: str) -> list[str]:
    """The value, and each of its lines: a key of many lines is quoted line by line. Ordinary text is left out."""
    parts = dict.fromkeys([value, value.strip(), *(line.strip() for line in value.splitlines())])
    return [part for part in parts if len(part) >= SHORTEST and not _is_ordinary(part)]


def _is_ordinary(text: str) -> bool:
    """Plain lower-case words, or nothing but brackets and blanks: such a text stands in many places by chance."""
    return not text.strip(_BRACKETS) or all(c in _PLAIN for c in text)


def mask(text: bytes, forms: Iterable[bytes]) -> bytes:
    for form in forms:
        text = text.replace(form, MARK.encode())
    return text


class Secrets:
    def __init__(self, by_name: Mapping[str, Iterable[str]]) -> None:
        """`by_name`: for each variable the texts that stand for it."""
        self._forms = {name: [form for text in texts for form in spellings(text)] for name, texts in by_name.items()}
        every = {form for forms in self._forms.values() for form in forms}
        self.forms = sorted(every, key=len, reverse=True)  # the longest first: one may be part of another
        self._texts = [form.decode("utf-8", "surrogateescape") for form in self.forms]

    def __bool__(self) -> bool:
        return bool(self.forms)

    def text(self, text: str) -> str:
        for form in self._texts:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def value(self, value: Value) -> Value:
        """Of anything that JSON can say; what holds none is returned as it is."""
        if not self.forms:
            return value
        return self._masked(value)  # type: ignore[return-value]  # it has the shape it had

    def _masked(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                keys = _distinct([self.text(key) for key in value])
                return dict(zip(keys, map(self._masked, value.values()), strict=True))
            case list() | tuple():
                return [self._masked(entry) for entry in value]
            case int() | float() if str(value) in self._texts:
                return MARK
        return value

    def body(self, body: bytes, path: str = "") -> bytes:
        """`path`: where its name says that the file is JSON, a value stands in strings only, and may be spelled in
        many ways."""
        if path.endswith(".json"):
            try:
                data = loads_strict(body)
            except NotJson:
                return mask(body, self.forms)  # whoever reads it says that it is no JSON
            clean = self.value(data)
            if clean == data:
                return body
            replaced = mask(body, self.forms)
            return replaced if _parsed(replaced) == clean else pretty(clean).encode()
        return mask(body, self.forms)

    def refuse(self, body: bytes, what: str) -> None:
        self._refuse(self._holder(body), what)

    def refuse_name(self, name: str, what: str) -> None:
        """A name stands everywhere, so one that holds a value is no name."""
        self.refuse(name.encode("utf-8", "surrogatepass"), what)

    def refuse_file(self, file: int, what: str) -> None:
        self._refuse(self.holder(file), what)

    def _refuse(self, holder: str, what: str) -> None:
        if holder:
            raise HoldsSecret(
                "holds-a-secret", f"{what} holds the value of {holder}, which is secret", _HINT, path=what
            )

    def holds(self, body: bytes) -> bool:
        return bool(self._holder(body))

    def holder(self, file: int) -> str:
        """Of an open file of any size; also where the value stands across two pieces of it."""
        if not self.forms:
            return ""
        posix.lseek(file, 0, 0)
        holder, before, overlap = "", b"", len(self.forms[0]) - 1
        while not holder and (chunk := posix.read(file, _CHUNK)):
            holder = self._holder(before + chunk)
            before = (before + chunk)[-overlap:]
        posix.lseek(file, 0, 0)
        return holder

    def _holder(self, body: bytes) -> str:
        holder = next((name for name, forms in self._forms.items() if any(form in body for form in forms)), "")
        if self.forms and body[:1] in (b"{", b"["):
            # JSON is judged by what its strings say: a number may look like a value, a string may spell it in many
            # ways.
            data = _parsed(body)
            if data is not None:
                return (holder or next(iter(self._forms))) if self.value(data) != data else ""
        return holder


def _distinct(keys: list[str]) -> list[str]:
    """Two keys that held a value would be one now: both are kept."""
    made: list[str] = []
    for key in keys:
        made.append(key if key not in made else f"{key} {len(made) + 1}")
    return made


def _parsed(body: bytes) -> object:
    try:
        return loads_strict(body)
    except NotJson:
        return None


NO_SECRETS = Secrets({})
