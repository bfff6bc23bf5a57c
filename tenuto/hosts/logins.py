"""Where each agent program finds its login. Only whether something is there is looked at, never what it is.

    login(program, places, is_there) -> "ANTHROPIC_API_KEY", "~/.codex/auth.json", or "" where nothing is found

That something is there does not say that it is still good: that only the program's own service could tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tenuto.hosts.settings import Places


class Login(NamedTuple):
    variables: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """A file, and a word that must be in it; "": that it is there is enough."""
    how: str


CLAUDE, CODEX, COPILOT = "{CLAUDE_CONFIG_DIR|.claude}", "{CODEX_HOME|.codex}", "{COPILOT_HOME|.copilot}"
LOGINS = {
    "claude": Login(
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        ((f"{CLAUDE}/.credentials.json", ""), (f"{CLAUDE}/settings.json", '"apiKeyHelper"'), ("~/.claude.json", '"oauthAccount"'), ("~/.claude.json", '"primaryApiKey"')),
        "start claude and type /login, or set ANTHROPIC_API_KEY",
    ),
    "codex": Login(
        ("CODEX_API_KEY",), ((f"{CODEX}/auth.json", ""), (f"{CODEX}/config.toml", "model_provider")), "codex login, or set CODEX_API_KEY",
    ),
    "copilot": Login(
        ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
        ((f"{COPILOT}/config.json", "ogged"), ("~/.config/gh/hosts.yml", "")), "copilot login",
    ),
    "gemini": Login(
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS"),
        (("~/.gemini/oauth_creds.json", ""), ("~/.gemini/.env", "_KEY")), "start gemini and sign in, or set GEMINI_API_KEY",
    ),
    "opencode": Login(
        ("OPENCODE_CONFIG", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        (("~/.local/share/opencode/auth.json", ""), ("~/.config/opencode/opencode.json", "")), "opencode auth login",
    ),
}  # fmt: skip


def login(program: str, places: Places, holds: Callable[[str, str], bool]) -> str:
    """`holds(path, word)`: is there such a file, with this word in it?"""
    known = LOGINS[program]
    for variable in known.variables:
        if places.environment.get(variable):
            return variable
    for path, word in known.files:
        found = _path(path, places)
        if holds(found, word):
            return "~" + found.removeprefix(places.home) if found.startswith(places.home + "/") else found
    return ""


def _path(path: str, places: Places) -> str:
    if path.startswith("~"):
        return places.home + path[1:]
    variable, _, rest = path[1:].partition("}")[0].partition("|")
    return places.of_user(variable, rest) + path.partition("}")[2]
