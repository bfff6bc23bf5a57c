"""The repository's own settings: .tenuto/config.yaml. What is not there has its default; what is not known is refused.

Each setting with its shape, default and an example: docs/reference/settings.md, which tests hold against SETTINGS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tenuto.errors import BadInput

TIME_LIMIT = "2h"  # nobody waits for ever for a program that hangs
UNLIMITED = "unlimited"
LEVELS = ("guarded", "signed", "isolated")
WORKSPACES = ("shared", "worktree")


class Setting(NamedTuple):
    shape: str
    """In words, as an error and the reference say it."""
    fits: Callable[[Any], bool]
    example: str


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _named_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and _text(one) for name, one in value.items())


def seconds(value: Any) -> int | None:
    """A span of time, as pipelines write it: 90, 90s, 30m, 2h, 1d."""
    from tenuto.core.definition.values import View

    return View(value, (), []).seconds("a time", None)


def time_limit(settings: dict[str, Any]) -> int | None:
    """Of an attempt whose pipeline says nothing, in seconds; None where the user wants none."""
    said = settings.get("time_limit", TIME_LIMIT)
    return None if said == UNLIMITED else seconds(said)


def _one_of(words: tuple[str, ...]) -> Setting:
    return Setting(f"one of {', '.join(words)}", lambda value: value in words, words[0])


def _parts(**parts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(name in parts and parts[name](one) for name, one in value.items())


SETTINGS: dict[str, Setting] = {
    "agent": Setting("an agent", _text, "command:./my-agent"),
    "roles": Setting("a mapping of roles to agents", _named_texts, '{designer: "command:./other"}'),
    "fallback": Setting("a mapping of agents to agents", _named_texts, "{claude: codex}"),
    "pipeline": Setting("the name of a pipeline", _text, "eight-step"),
    "checks": Setting("a mapping of names to commands", _named_texts, "{build: make, tests: make test}"),
    "environment": Setting("a list of names of variables", _texts, "[MY_API_URL]"),
    "secrets": Setting("a list of names of variables", _texts, "[MY_API_TOKEN]"),
    "time_limit": Setting(f"a span of time, or {UNLIMITED}", lambda value: value == UNLIMITED or seconds(value) is not None, "90m"),
    "workspace": _one_of(WORKSPACES),
    "setup": Setting("run and copy, each a list", _parts(run=_texts, copy=_texts), "{run: [npm ci], copy: [.env]}"),
    "gates": _one_of(LEVELS),
    "signers": Setting("the path of a file", _text, ".tenuto/signers"),
    "isolation": Setting("a list of words, a command", _texts, "[sudo, -u, agent, --]"),
    "notify": Setting("command, a text, or url, which begins with http:// or https://", _parts(command=_text, url=_address), "{command: ./tell-me}"),
}


def read_settings(root: str) -> dict[str, Any]:
    from tenuto.knowledge.definitions import is_file, source_of

    path = Path(root) / ".tenuto" / "config.yaml"
    if not is_file(path):
        return {}
    found = source_of(path).data or {}
    if not isinstance(found, dict):
        raise BadInput("bad-settings", f"{path} must hold a mapping", "see docs/reference/settings.md")
    for name, value in found.items():
        setting = SETTINGS.get(name)
        if setting is None:
            known = ", ".join(SETTINGS)
            raise BadInput("bad-settings", f"{path} has a setting '{name}' that nobody knows", f"known: {known}")
        if not setting.fits(value):
            raise BadInput("bad-settings", f"{path}: '{name}' must be {setting.shape}", f"{name}: {setting.example}")
    return found
