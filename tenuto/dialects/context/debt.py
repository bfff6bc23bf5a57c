"""The life of a POC: debt.md is stored and the POC is complete; it graduates and debt.md says when.

Front matter is checked before anything is written. What most people write (keys, quoted or bare values, lists
in brackets or with dashes) is recognised here, in microseconds; everything else is put to a YAML parser.
Aliases are refused: a few lines of them can become gigabytes.
"""

from __future__ import annotations

from tenuto.dialects.context.places import folder_of, status_of
from tenuto.dialects.context.wording import wrong
from tenuto.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Run
    from tenuto.dialects.context.shapes import Stored, Turn

INVALID = "Invalid YAML frontmatter in debt document"
_LARGEST = 1 << 20


def store_debt(turn: Turn, run: Run, content: bytes) -> Stored:
    from tenuto.dialects.context.storing import done, keep

    if run["mode"] != "poc":
        raise Refused("not-poc", "STORE phase: debt only valid for POC mode tasks", mode=run["mode"])
    document = with_front_matter(content)
    if run["status"] != "poc-complete":
        turn.do(run["id"], {"do": "Finish", "outcome": "poc-complete"})
    path = f"{folder_of(run['id'])}/debt.md"
    stored = keep(turn, run, "debt", path, (document, ""), step="debt")
    return done(turn, run, f"debt stored | status: {status_of(run)}", [path], "debt", stored)


def graduate(turn: Turn, run: Run, content: bytes | None, source: str) -> Stored:
    from tenuto.dialects.context.storing import done, keep

    refuse_ungraduated(run)
    touched = []
    path = f"{folder_of(run['id'])}/debt.md"
    turn.look(run["id"], path, "debt")
    if "debt" not in run["artifacts"]:
        raise Refused("no-debt", "Missing debt.md required for graduation")
    debt = turn.workspace.files().stored(turn.tx, run["artifacts"]["debt"]["sha256"])
    document = with_graduation(with_front_matter(debt), turn.at)
    turn.do(run["id"], {"do": "Finish", "outcome": "graduated"})
    stored = keep(turn, run, "debt", path, (document, ""), step="debt")
    touched.append(path)
    if content or source:
        report = f"{folder_of(run['id'])}/graduate-complete.md"
        keep(turn, run, "graduate-complete", report, (content or None, source), step="graduate-complete")
        touched.append(report)
    return done(turn, run, f"Task graduated | graduated_at: {turn.at}", touched, "debt", stored)


def refuse_ungraduated(run: Run) -> None:
    """The first two conditions of a graduation: it is a POC, and a complete one."""
    if run["mode"] != "poc":
        raise Refused("not-poc", f"Cannot graduate non-POC task. Task mode is '{run['mode']}'", mode=run["mode"])
    if run["status"] != "poc-complete":
        raise Refused("not-ready", f"Task not ready for graduation, current status: '{status_of(run)}'")


# ---- front matter ----------------------------------------------------------------------------------


def with_front_matter(content: bytes) -> bytes:
    """The document as it will be stored; bare YAML gets its two lines of dashes."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong(INVALID) from None
    matter, _ = split_matter(text)
    if matter is None:
        if not _is_mapping(text):
            raise wrong(INVALID)
        return f"---\n{text.strip()}\n---\n".encode()
    if not _is_mapping(matter):
        raise wrong(INVALID)
    return content


def split_matter(text: str) -> tuple[str | None, str]:
    """(what stands between the two lines of dashes, what follows); None where it does not begin with one."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return None, text
    for at, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return "".join(lines[1:at]), "".join(lines[at + 1 :])
    raise wrong(INVALID)


def with_graduation(document: bytes, at: str) -> bytes:
    """The time of graduation in the front matter; everything else as it stands."""
    lines = document.decode("utf-8-sig").splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    entry = f'graduated_at: "{at}"\n'
    for number in range(1, end):
        if lines[number].startswith("graduated_at:"):
            lines[number] = entry
            return "".join(lines).encode()
    return "".join([*lines[:end], entry, *lines[end:]]).encode()


def _is_mapping(matter: str) -> bool:
    if len(matter) > _LARGEST:
        return False
    return _is_plain(matter) or _is_yaml_mapping(matter)


def _is_plain(matter: str) -> bool:
    """`key: value` lines, lists with dashes, one level of keys below a dash; nothing that YAML reads in another way."""
    keys: set[str] = set()
    opened = False  # the last key has no value: a list may follow
    within: set[str] | None = None  # the keys of the entry we are in
    for line in matter.splitlines():
        bare = line.strip()
        if not line.isprintable():
            return False
        if not bare:
            continue
        entry = bare.removeprefix("- ")
        key, colon, value = entry.partition(":")
        if line[0] != " ":
            if entry != bare or not colon or not _is_key(key) or key in keys or not _is_value(value):
                return False
            keys.add(key)
            opened, within = not value.strip(), None
            continue
        if entry != bare:
            if not opened or not line.startswith("  - "):
                return False
            within = set() if colon else None
            if not colon and not _is_value(f" {entry}"):
                return False
        elif within is None or not line.startswith("    ") or line[4] == " " or not colon:
            return False
        if colon and within is not None:
            if not _is_key(key) or key in within or not value.strip() or not _is_value(value):
                return False
            within.add(key)
    return bool(keys)


def _is_key(key: str) -> bool:
    return bool(key) and key.isascii() and key.replace("_", "a").replace("-", "a").isalnum() and key[0].isalpha()


def _is_value(value: str) -> bool:
    bare = value.strip()
    if not bare:
        return True
    if value[0] != " ":
        return False
    if bare[0] == "[":
        inner = bare[1:-1]
        words = inner.split(",") if inner.strip() else []
        return bare[-1] == "]" and all(_is_word(word.strip()) for word in words)
    if bare[0] == '"':
        return len(bare) > 1 and bare[-1] == '"' and '"' not in bare[1:-1] and "\\" not in bare
    return _is_word(bare)


def _is_word(word: str) -> bool:
    """Text that cannot be anything but a plain scalar."""
    return bool(word) and word[0].isalnum() and not any(sign in word for sign in ":#,[]{}&*!|>'\"%@`\\")


def _is_yaml_mapping(matter: str) -> bool:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    try:
        parser: Any = YAML(typ="safe", pure=True)
        depth = 0
        for event in parser.parse(matter):
            depth += {"+": 1, "-": -1}.get(_step(event), 0)
            if isinstance(event, AliasEvent) or depth > 64:
                return False
        return isinstance(YAML(typ="safe", pure=True).load(matter), dict)
    except (YAMLError, ValueError, RecursionError):
        return False


def _step(event: Any) -> str:
    name = type(event).__name__
    return "+" if name.endswith("StartEvent") else "-" if name.endswith("EndEvent") else ""
