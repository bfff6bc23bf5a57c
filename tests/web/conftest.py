"""One repository for all of them, copied for each test; one browser for each worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require
from tests.web.grounds import Served, copied, make

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--no-first-run",
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # any other site is this machine
]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("made") / "repo")


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A repository whose run waits at a gate."""
    return copied(made, tmp_path / "repo")


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    """Its server, with a session."""
    with Served(root) as server:
        server.enter()
        yield server


@pytest.fixture(scope="session")
def launch() -> Iterator[Callable[..., Browser]]:
    """Starts a browser, with this environment besides ours."""
    require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield lambda **environment: playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=FLAGS, env={**os.environ, **environment}
        )


@pytest.fixture(scope="session")
def browser(launch: Callable[..., Browser]) -> Iterator[Browser]:
    started = launch()
    yield started
    started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab of a browser that knows nothing."""
    context = browser.new_context()
    yield context.new_page()
    context.close()
