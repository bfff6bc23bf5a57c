"""Bring one notice to one target of the setting `notify`.

    failures = deliver(target, notice, directory)      (channel, why) of each that could not be reached

The channels of a target: a command of the project's own, a URL, the desktop (notify-send), the terminal that the engine
runs at (bell and OSC 9), and the addresses of apprise, for chats, mail and everything else. Each gets the same notice.
One that fails stops no other; nobody is waited for longer than SECONDS, and what has not ended then is ended with
everything it started. What a command leaves in the background is not waited for.

`${NAME}` in an address is a variable of the engine's environment, so that no file holds a token. What went wrong is
said without its value, and an address of apprise by its kind alone: all of it is a password, more often than not.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tenuto.encoding import dumps
from tenuto.notices.notice import with_words

if TYPE_CHECKING:
    from tenuto.core.records.run import Moment
    from tenuto.notices.notice import Notice

SECONDS = 20
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_THROUGH_APPRISE = str(Path(__file__).with_name("through_apprise.py"))
_URGENT: tuple[Moment, ...] = ("blocked", "failed")
_KINDS: dict[Moment, str] = {
    "completed": "success",
    "completed with failures": "warning",
    "failed": "failure",
    "blocked": "failure",
    "limit": "warning",
}


class Target(TypedDict, total=False):
    """Whom to tell, and of what."""

    command: str
    url: str
    desktop: bool
    terminal: bool
    apprise: str | list[str]
    on: list[Moment]
    page: str


class Failure(NamedTuple):
    channel: str
    why: str


class _Undelivered(Exception):
    """Why nobody was told, in words that may be shown."""


def deliver(target: Target, notice: Notice, directory: str) -> list[Failure]:
    """`directory`: where the project's command runs."""
    said = with_words(notice, target.get("page", ""))
    failures = []
    for channel, send in _channels(target, said, directory):
        try:
            send()
        except Exception as error:  # noqa: BLE001  # every failure is told, and changes nothing
            failures.append(Failure(channel, str(error) or type(error).__name__))
    return failures


def _channels(target: Target, notice: Notice, directory: str) -> Iterator[tuple[str, Callable[[], None]]]:
    whole = dumps(notice).encode()
    if command := target.get("command"):
        yield "command", lambda: _run(command, whole, directory, repr(command))
    if url := target.get("url"):
        yield "url", lambda: _post(url, whole)
    if target.get("desktop"):
        yield "desktop", lambda: _on_desktop(notice)
    if target.get("terminal"):
        yield "terminal", lambda: _on_terminal(notice)
    addresses = target.get("apprise", [])
    for address in [addresses] if isinstance(addresses, str) else addresses:
        yield f"apprise {_kind(address)}", lambda address=address: _through_apprise(address, notice)  # type: ignore[misc]


def _run(command: str | list[str], given: bytes, directory: str, name: str) -> None:
    with tempfile.TemporaryFile() as errors:
        begun = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            begun.communicate(given, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.wait()
            raise _Undelivered(f"{name} took longer than {SECONDS} seconds") from None
        if begun.returncode != 0:
            errors.seek(0)
            why = errors.read()[-300:].decode("utf-8", "replace").strip()
            raise _Undelivered(f"{name} ended with exit status {begun.returncode}{f': {why}' if why else ''}")


def _post(url: str, notice: bytes) -> None:
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    address, values = _filled(url)
    try:
        with urlopen(Request(address, notice, {"Content-Type": "application/json"}), timeout=SECONDS):
            pass
    except (OSError, ValueError, HTTPException) as error:
        raise _Undelivered(_without(str(error), values)) from None


def _on_desktop(notice: Notice) -> None:
    urgency = "critical" if notice["moment"] in _URGENT else "normal"
    # A desktop reads the text as markup; the title it does not.
    words = [f"--urgency={urgency}", "--app-name=Tenuto", "--", notice["title"], escape(notice["text"], quote=False)]
    try:
        _run(["notify-send", *words], b"", "/", "notify-send")
    except FileNotFoundError:
        raise _Undelivered("notify-send is not installed (Debian: libnotify-bin)") from None


def _on_terminal(notice: Notice) -> None:
    """A bell, and OSC 9: terminals that know it show the words, others ignore them."""
    title = "".join(one for one in notice["title"] if one.isprintable())
    try:
        # A terminal of its own opening: one that was stopped (Ctrl-S) holds nobody up.
        terminal = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise _Undelivered("the engine runs at no terminal") from None
    try:
        os.write(terminal, f"\a\x1b]9;Tenuto: {title}\a".encode("utf-8", "replace"))
    except BlockingIOError:
        raise _Undelivered("the terminal is stopped (Ctrl-Q lets it go on)") from None
    finally:
        os.close(terminal)


def _through_apprise(address: str, notice: Notice) -> None:
    """By a program of its own: whatever it does, it ends in time, and its modules are not loaded here."""
    if find_spec("apprise") is None:
        raise _Undelivered("apprise is not installed: pip install 'tenuto[notify]'")
    filled, values = _filled(address)
    asked = {
        "address": filled,
        "title": notice["title"],
        "body": notice["text"],
        "kind": _KINDS.get(notice["moment"], "info"),
    }
    try:
        _run([sys.executable, "-I", _THROUGH_APPRISE], json.dumps(asked).encode(), "/", "apprise")
    except _Undelivered as problem:
        why = str(problem).replace(filled, _kind(address)).replace(address, _kind(address))
        raise _Undelivered(_without(why, values)) from None


def _kind(address: str) -> str:
    """slack://, mailto://; of an address that is a variable, its name."""
    scheme, found, _ = address.partition("://")
    return f"{scheme}://" if found and scheme.isalnum() else address if _VARIABLE.fullmatch(address) else "address"


def _filled(address: str) -> tuple[str, Mapping[str, str]]:
    values = {name: os.environ.get(name, "") for name in _VARIABLE.findall(address)}
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise _Undelivered(f"the variable {', '.join(missing)} is not set where the engine runs")
    return _VARIABLE.sub(lambda found: values[found[1]], address), values


def _without(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(value, f"${{{name}}}")
    return text
