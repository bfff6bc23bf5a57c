"""Real agent programs for tests: found, alone in a home of their own, talking to nobody but the scripted model.

    program("claude")           its path; where it is not installed, the test skips and names it
    home                        an empty home folder
    lab                         `lab.model({...scripts})` starts a model; `lab.environment("claude")` is what a program
                                gets:
                                nothing of the caller's settings and keys, its own home, the model's address, no talk
                                home

Programs come from scripts/agent-programs, never from the machine's own PATH: tests know their versions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.real.model import Model

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / os.environ.get("TENUTO_AGENT_PROGRAMS", ".agent-programs") / "bin"
FOREIGN = ("ANTHROPIC", "CLAUDE", "CODEX", "COPILOT", "GEMINI", "GOOGLE", "OPENAI", "OPENCODE", "OTEL", "NODE_")


def find(name: str) -> str:
    found = PROGRAMS / name
    if not os.access(found, os.X_OK):
        pytest.skip(f"needs {name}, which scripts/agent-programs has not installed")
    return str(found)


@pytest.fixture
def program() -> Callable[[str], str]:
    return find


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


class Lab:
    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack
        self._model: Model | None = None

    def model(self, scripts: dict[str, Any], **more: Any) -> Model:
        self._model = self._stack.enter_context(Model(scripts, **more))
        return self._model

    @property
    def url(self) -> str:
        assert self._model is not None, "lab.model({...}) first"
        return self._model.url

    def environment(self, kind: str) -> dict[str, str]:
        """For a program of this kind: claude, codex, copilot, gemini or opencode. Its settings are written below the
        home."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        path = os.pathsep.join([str(PROGRAMS), kept["PATH"]])
        common = {"HOME": str(self.home), "PATH": path, "TMPDIR": str(self.home), "IS_SANDBOX": "1", "NO_BROWSER": "1"}
        return {**kept, **common, **getattr(self, f"_{kind}")()}

    def _claude(self) -> dict[str, str]:
        quiet = (
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        )
        return {
            **dict.fromkeys(quiet, "1"),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "no-key-at-all",
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_TMPDIR": str(self.home),
            "CLAUDE_CODE_EXECUTABLE": str(PROGRAMS / "claude"),
        }

    def _codex(self) -> dict[str, str]:
        self._write(
            ".codex/config.toml",
            f"""
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
[model_providers.scripted]
name = "scripted"
base_url = "{self.url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
""",
        )
        return {"CODEX_HOME": str(self.home / ".codex"), "SCRIPTED_KEY": "no-key-at-all"}

    def _gemini(self) -> dict[str, str]:
        self._write(
            ".gemini/settings.json",
            """{"general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false},
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-pro"}}""",
        )
        return {"GEMINI_API_KEY": "no-key-at-all", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_MODEL": "gemini-2.5-pro"}

    def _copilot(self) -> dict[str, str]:
        return {
            "COPILOT_HOME": str(self.home / ".copilot"),
            "COPILOT_PROVIDER_BASE_URL": self.url,
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": "no-key-at-all-0123456789",
            "COPILOT_MODEL": "claude-sonnet-4.5",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def _opencode(self) -> dict[str, str]:
        self._write(
            "opencode.json",
            f"""{{"autoupdate": false, "share": "disabled", "model": "scripted/m1", "small_model": "scripted/m1",
            "permission": {{"edit": "ask"}}, "enabled_providers": ["scripted"], "provider": {{"scripted": {{
            "npm": "@ai-sdk/openai-compatible", "name": "scripted", "models": {{"m1": {{"name": "m1"}}}},
            "options": {{"baseURL": "{self.url}/v1", "apiKey": "no-key-at-all"}}}}}}}}""",
        )
        return {
            "OPENCODE_CONFIG": str(self.home / "opencode.json"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
        }

    def _write(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def lab(home: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(home, stack)
