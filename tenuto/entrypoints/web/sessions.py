"""Who has come in: one-time codes, sessions, and the digits that a person repeats from the terminal. In memory only.

    codes.make()              a code for the link, valid five minutes, used once
    codes.take(code)          a session for it; a code that comes a second time ends the session that it gave
    sessions.find(cookie)     the session behind a cookie; None where there is none
    digits.ask(key, what)     four digits for one decision, said at the terminal
    digits.are_right(key, …)  whether they were repeated; three wrong ones, and the decision has to be asked again

A restart ends every session: nothing of this is written anywhere, and nothing of it stands in a command line.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hmac import compare_digest

from tenuto.errors import Refused

CODE_SECONDS = 300
SESSION_SECONDS = 7 * 24 * 3600
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none that looks like another
_CODE_LENGTH = 10  # 49 bits
_MOST_WRONG = 10
_MOST_SESSIONS = 16
_MOST_ASKED = 16
_DIGITS_WRONG = 3

Moment = Callable[[], float]
Say = Callable[[str], None]


class Session:
    __slots__ = ("began", "form_token", "name")

    def __init__(self, name: str, began: float) -> None:
        self.name = name
        """What the cookie holds."""
        self.form_token = secrets.token_urlsafe(32)
        self.began = began


class Sessions:
    """The sessions that are open, the oldest first."""

    def __init__(self, now: Moment = time.monotonic) -> None:
        self._now = now
        self._open: dict[str, Session] = {}

    def begin(self) -> Session:
        while len(self._open) >= _MOST_SESSIONS:
            self._open.pop(next(iter(self._open)))
        session = Session(secrets.token_urlsafe(32), self._now())
        self._open[session.name] = session
        return session

    def find(self, name: str) -> Session | None:
        """Compared in constant time with each: there are few."""
        found = next((one for one in self._open.values() if compare_digest(one.name.encode(), name.encode())), None)
        if found is not None and self._now() - found.began > SESSION_SECONDS:
            self.end(found.name)
            return None
        return found

    def end(self, name: str) -> bool:
        return self._open.pop(name, None) is not None


class _Code:
    __slots__ = ("made", "session", "text", "wrong")

    def __init__(self, text: str, made: float) -> None:
        self.text = text
        self.made = made
        self.session = ""  # that was given for it
        self.wrong = 0


class Codes:
    """The one-time codes of one server. `say`: the terminal, which hears when one is used a second time."""

    def __init__(self, sessions: Sessions, say: Say, now: Moment = time.monotonic) -> None:
        self._sessions = sessions
        self._say = say
        self._now = now
        self._codes: list[_Code] = []

    def make(self) -> str:
        """A new code; one that was not used until now is valid no more."""
        self._codes = [code for code in self._codes if code.session]
        text = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
        self._codes.append(_Code(text, self._now()))
        return text

    def take(self, given: str) -> Session:
        """Refused where it is not the code, is too old, or was used before."""
        typed = "".join(given.split()).replace("-", "").upper()
        code = next((one for one in self._codes if compare_digest(one.text.encode(), typed.encode())), None)
        if code is None:
            self._count_wrong()
            raise Refused("wrong-code", "that is not the code", "type it as the terminal shows it")
        if code.session:
            ended = self._sessions.end(code.session)
            what = "; the session that it gave is ended" if ended else ""
            self._say(f"a code was used a second time{what}. Somebody else may have read it: press Enter for a new one")
            raise Refused(
                "used-code",
                f"this code was used before{what}",
                "press Enter in the terminal of `tenuto ui` for a new one",
            )
        if self._now() - code.made > CODE_SECONDS:
            raise Refused(
                "old-code",
                "this code is older than five minutes",
                "press Enter in the terminal of `tenuto ui` for a new one",
            )
        session = self._sessions.begin()
        code.session = session.name
        return session

    def _count_wrong(self) -> None:
        """A code that is guessed at is taken away."""
        for code in [one for one in self._codes if not one.session]:
            code.wrong += 1
            if code.wrong >= _MOST_WRONG:
                self._codes.remove(code)
                self._say("too many wrong codes: the one above is valid no more. Press Enter for a new one")


class Digits:
    """Four digits for one decision of a browser that cannot be seen from here. `say`: the terminal."""

    def __init__(self, say: Say, now: Moment = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._asked: dict[str, tuple[str, float, int]] = {}

    def ask(self, key: str, what: str) -> None:
        """`key`: the decision, word for word, of one session. The terminal says `what` with the digits."""
        while len(self._asked) >= _MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        digits = f"{secrets.randbelow(10_000):04d}"
        self._asked[key] = (digits, self._now(), 0)
        self._say(f"{what}. If that was you, type {digits} in the browser; if not, do nothing")

    def are_right(self, key: str, given: str) -> bool:
        digits, made, wrong = self._asked.pop(key, ("", 0.0, 0))
        if not digits or self._now() - made > CODE_SECONDS:
            return False
        if compare_digest(digits.encode(), given.strip().encode()):
            return True
        if wrong + 1 < _DIGITS_WRONG:
            self._asked[key] = (digits, made, wrong + 1)
        return False

    def is_asked(self, key: str) -> bool:
        return key in self._asked
