"""What the settings call secret and this process has the value of: kept out of everything that Tenuto takes in and keeps.

    secrecy = workspace.secrecy          None where nothing is secret: open.py
    secrecy.out_of(command)              the same, [secret] in a value's place
    secrecy.masked(text, path)           the same for bytes: a state file that somebody wrote, a document that is stored
    secrecy.refuse_file(file, path)      a document that is nobody's to change: it is named, and not taken in
    secrecy.discard(folder, name, text)  a file that was displaced and lies on our shelf

Whoever opens a repository asks here, hooks and hot commands too: an agent that was given a value may leave it anywhere, and whoever looks
next takes it in. A process that was not given the value cannot know it. How it may be spelled: supervise/masking.py.
"""

from __future__ import annotations

import posix

from tenuto.encoding import NotJson, loads_strict, pretty
from tenuto.errors import BadInput, HoldsSecret
from tenuto.files.exchange import discard, is_written, look
from tenuto.files.places import read_all, write_all
from tenuto.supervise.masking import MARK, masked, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tenuto.ports import Transaction

_HINT = "take it out of there, and repeat; if the journal holds it already: tenuto forget"
_CHUNK = 1 << 20
_CODE = __file__.rpartition("/workspace/")[0]
_LONGEST_WITH_DIGITS = 16
_OUR_WORDS = ("core", "dialects")  # where the words stand that journals and state files are written in


def secrecy(names: Iterable[str]) -> Secrecy | None:
    """None where this process has no value of theirs."""
    from os import environ

    spelled = {name: found for name in dict.fromkeys(names) if (found := values(environ, [name]))}
    for name, found in spelled.items():
        if any(map(_is_ours, found)):
            message = f"the value of {name} is a word of Tenuto's own: what keeps a run together could not be told from it"
            raise BadInput("bad-secret", message, f"give {name} another value, or take it off the list 'secrets'")
    return Secrecy(spelled) if spelled else None


def _is_ours(value: bytes) -> bool:
    """Is it part of a word that the rules, the dialects or their files have? Long ones with digits are tokens, and not looked up."""
    bare = value.translate(None, b"_-./")
    if not (bare.isalpha() or (bare.isalnum() and bare[:1].isalpha() and len(value) <= _LONGEST_WITH_DIGITS)):
        return False
    import os
    import re

    in_quotes = re.compile(rb"""["'][\w./{}-]*""" + re.escape(value) + rb"""[\w./{}-]*["']""")
    for folder in _OUR_WORDS:
        for place, _, files in os.walk(f"{_CODE}/{folder}"):
            for file in files:
                if file.endswith(".py"):
                    with open(f"{place}/{file}", "rb") as code:
                        if in_quotes.search(code.read()):
                            return True
    return False


class Secrecy:
    def __init__(self, spelled: Mapping[str, list[bytes]]) -> None:
        """`spelled`: by the variable's name, the ways its value may stand somewhere."""
        self._spelled = spelled
        self._all = sorted({one for ways in spelled.values() for one in ways}, key=len, reverse=True)  # one may be part of another
        self._texts = [(one.decode("utf-8", "surrogateescape"), MARK.decode()) for one in self._all]

    def masked(self, text: bytes, path: str = "") -> bytes:
        """`path`: of a file whose name says that it is JSON, where a value may be spelled in many ways, and stands in strings only."""
        made = masked(text, self._all)
        if path.endswith(".json"):
            try:
                found = loads_strict(text)
            except NotJson:
                return made  # whoever reads it says so
            said = self.out_of(found)
            if _read(made) != said:
                made = text if said == found else pretty(said).encode()
        return made

    def out_of(self, value: Any) -> Any:
        """Of anything that JSON can say; what holds none is returned as it is."""
        if isinstance(value, str):
            for text, mark in self._texts:
                if text in value:
                    value = value.replace(text, mark)
            return value
        if isinstance(value, dict):
            return dict(zip(_different([self.out_of(name) for name in value]), map(self.out_of, value.values()), strict=True))
        if isinstance(value, list | tuple):
            return [self.out_of(one) for one in value]
        if isinstance(value, int | float) and str(value).encode() in self._all:
            return self._texts[0][1]
        return value

    def out_of_command(self, command: Any, new_run: str = "") -> Any:
        """The same for what is to be decided. The name of a run stands everywhere: one that holds a secret is no name."""
        self.refuse(new_run.encode("utf-8", "surrogatepass"), "the name of the new run")
        return self.out_of(command)

    def refuse(self, text: bytes, what: str) -> None:
        _refuse(self._held_by(text), what)

    def refuse_file(self, file: int, path: str) -> None:
        _refuse(self.held_by(file), path)

    def held_by(self, file: int) -> str:
        """The name of a variable whose value stands in an open file of any size; also where it stands across two pieces."""
        posix.lseek(file, 0, 0)
        found, before, most = "", b"", len(self._all[0]) - 1
        while not found and (chunk := posix.read(file, _CHUNK)):
            found = self._held_by(before + chunk)
            before = (before + chunk)[-most:]
        posix.lseek(file, 0, 0)
        return found

    def _held_by(self, text: bytes) -> str:
        found = next((name for name, ways in self._spelled.items() if any(value in text for value in ways)), "")
        if text[:1] in (b"{", b"["):  # judged by what its strings say: a number may look like one, and a string may be spelled in many ways
            data = _read(text)
            if data is not None:
                return (found or next(iter(self._spelled))) if self.out_of(data) != data else ""
        return found

    def scrub(self, path: str) -> None:
        """A file that lies in a folder of ours, in place: whoever has it open goes on writing to it."""
        try:
            file = posix.open(path, posix.O_RDWR | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK)
        except OSError:
            return  # a link or a folder, which was moved as it is
        try:
            text = read_all(file)
            made = self.masked(text)
            if made != text:
                posix.lseek(file, 0, 0)
                write_all(file, made.ljust(len(text), b"\n"))
                posix.ftruncate(file, len(made))
        finally:
            posix.close(file)

    def discard(self, folder: int, name: str, looked_at: bytes | None) -> None:
        """A file that was displaced, if it holds a secret and says what was `looked_at` (None: whatever it says). One that somebody has
        open stays: they may be writing to it, and the next turn looks at it once more."""
        if is_written(folder, name):
            return
        text = look(folder, name)
        if text is not None and looked_at in (None, text) and self._held_by(text):
            discard(folder, name)

    def guarding(self, transaction: Transaction) -> Any:
        return _Guarded(transaction, self)


def _different(names: list[Any]) -> list[Any]:
    """Two names that were secret are one now: both are kept."""
    made: list[Any] = []
    for name in names:
        made.append(name if name not in made else f"{name} {len(made) + 1}")
    return made


def _read(text: bytes) -> Any:
    try:
        return loads_strict(text)
    except NotJson:
        return None


def _refuse(name: str, what: str) -> None:
    if name:
        raise HoldsSecret("holds-a-secret", f"{what} holds the value of {name}, which is secret", _HINT, path=what)


class _Guarded:
    """A transaction that keeps no text with a secret in it. Those who know what the text is have masked or named it before."""

    def __init__(self, transaction: Transaction, secrecy: Secrecy) -> None:
        self._transaction = transaction
        self._secrecy = secrecy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def put_blob(self, sha256: str, body: bytes) -> None:
        self._secrecy.refuse(body, "what is to be kept")
        self._transaction.put_blob(sha256, body)

    def index(self, run: str, source: str, path: str, passages: Iterable[tuple[str, str]]) -> None:
        self._transaction.index(run, source, path, [(self._secrecy.out_of(head), self._secrecy.out_of(text)) for head, text in passages])


def named_in(root: str, text: bytes) -> list[str]:
    """The names that the settings list under `secrets`. Plain lists are read here: a hook has no time for YAML."""
    names = _plain(text)
    return _by_yaml(root) if names is None else names


def _plain(text: bytes) -> list[str] | None:
    """`secrets: [ONE, OTHER]`, or one per line; None for whatever else YAML allows."""
    lines = text.decode("utf-8", "replace").splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith("secrets:")), -1)
    if at < 0 or text.count(b"secrets") != 1 or b"\\" in text:
        return None
    here = lines[at].removeprefix("secrets:").strip()
    if here:
        names = [name.strip() for name in here[1:-1].split(",")] if here[0] + here[-1] == "[]" else [""]
    else:
        below = lines[at + 1 :]
        end = next((number for number, line in enumerate(below) if line[:1] not in (" ", "-")), len(below))
        names = [line.strip().removeprefix("- ").strip() if line.strip().startswith("- ") else "" for line in below[:end]]
        if any(line.strip().startswith("#") or not line.strip() for line in below[end : end + 1]):
            return None  # the list may go on behind it
    return names if names and all(name.isascii() and name.isidentifier() for name in names) else None


def _by_yaml(root: str) -> list[str]:
    from pathlib import Path

    from tenuto.knowledge.definitions import source_of

    path = Path(root) / ".tenuto" / "config.yaml"
    found = source_of(path).data or {}
    names = found.get("secrets", []) if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) and name.isprintable() for name in names):
        raise BadInput("bad-settings", f"{path}: 'secrets' must be a list of names of variables", "secrets: [MY_API_TOKEN]")
    return names
