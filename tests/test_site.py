"""The documentation as a site: every page is there, reads as its source does, and is found by the search.

That links and anchors lead somewhere is Zensical's own check (`--strict`); here it is seen to be on.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = {"blockquote", "h1", "h2", "h3", "h4", "li", "ol", "pre", "table", "tr", "ul"}


def script() -> Any:
    loader = SourceFileLoader("site_script", str(ROOT / "scripts" / "site"))
    spec = importlib.util.spec_from_loader("site_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["site_script"] = module
    loader.exec_module(module)
    return module


def build(docs: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script as it is called, on a checkout of which only the pages are there."""
    return subprocess.run(
        [sys.executable, str(docs.parent / "scripts" / "site"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )


def checkout(place: Path) -> Path:
    """The pages and the script that makes a site of them, to be changed at will."""
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(ROOT / "docs", place / "docs", ignore=ignored)
    (place / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "site", place / "scripts")
    for name in script().BESIDE:
        shutil.copy(ROOT / name, place)
    return place / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


class Blocks(HTMLParser):
    """How many blocks of each kind a page has; of a page of the site, only its article counts."""

    def __init__(self, html: str, whole: bool) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self._inside = whole
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = self._inside or tag == "article"
        if self._inside and tag in BLOCKS:
            self.found[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._inside = False


def test_every_page_reads_as_its_source_does(site: Path) -> None:
    """As many headings, entries, tables and blocks of code as a forge shows: nothing runs into its neighbour."""
    read = MarkdownIt("commonmark").enable("table")
    different = {}
    for page in script().pages():
        place = page.place.removesuffix("README.md") + "index.md" if page.place.endswith("README.md") else page.place
        shown = Blocks((site / place).with_suffix(".html").read_text(), whole=False).found
        written = Blocks(read.render(page.source.read_text()), whole=True).found
        if shown != written:
            different[page.place] = {tag: (written[tag], shown[tag]) for tag in BLOCKS if written[tag] != shown[tag]}
    assert not different, f"(in the source, on the site): {different}"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [("[a](concepts.md#gone)", "anchor does not exist"), ("[a](concepts.md)", "")],
)
def test_a_link_that_leads_nowhere_is_an_error(line: str, wrong: str, tmp_path: Path) -> None:
    docs = checkout(tmp_path / "checkout")
    with (docs / "why.md").open("a") as page:
        page.write(f"\n{line}\n")
    done = build(docs, tmp_path / "built")
    assert (done.returncode != 0) == bool(wrong), done.stdout + done.stderr
    assert wrong in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "converted"),
    [
        ("Words:\n- one\n- two", "Words:\n\n- one\n- two"),
        ("- one\n  more\n  - deeper\n\n    code", "- one\n    more\n    - deeper\n\n        code"),
        ("1. one\n   more\n\nafter", "1. one\n    more\n\nafter"),
        ("```console run exit=5\n$ a\n- b\n```", "```console\n$ a\n- b\n```"),
        ("[a](why.md) `[b](why.md)` [c](../Makefile)", "[a](why.md) `[b](why.md)` c"),
        ("[a](../SECURITY.md#report)", "[a](project/SECURITY.md#report)"),
    ],
)
def test_what_forges_and_the_site_read_differently_is_rewritten(source: str, converted: str) -> None:
    site = script()
    places = {ROOT / "docs" / "why.md": "why.md", ROOT / "SECURITY.md": "project/SECURITY.md"}
    assert site.converted(source, site.Page(ROOT / "docs" / "page.md", "page.md"), places) == converted


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.needs("chromium")
def test_the_search_finds_a_page_without_any_other_machine(address: str) -> None:
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address + "/index.html")
        box = page.get_by_role("combobox", include_hidden=True)
        box.wait_for(state="attached")  # made by the script that also listens to the keys
        page.keyboard.press("Control+k")
        box.fill("quarantine")
        page.get_by_role("link", name="Glossary").first.wait_for()
        browser.close()
    assert {url for url in asked if not url.startswith((address, "data:", "blob:"))} == set()
