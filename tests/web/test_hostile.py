"""What agents, files and other sites write is text, on every page and in every field; nothing of it acts or leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import tenuto
from tenuto.encoding import dumps
from tenuto.entrypoints.web import looks
from tests.support.trusting import trust
from tests.web.grounds import DEADLINE, Served, program
from tests.web.test_browser import come_in, other_site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.needs("chromium")

CORPUS = [
    "<script>window.pwned=1</script>",
    "<img src=http://evil.example:9/x onerror=window.pwned=1>",
    '"><svg onload=window.pwned=1>',
    "'><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "javascript:window.pwned=1",
    "[x](javascript:window.pwned=1)",
    "![x](http://evil.example:9/y.png)",
    "<a href='data:text/html,<script>opener.pwned=1</script>'>x</a>",
    "<style>@import url(http://evil.example:9/z.css);</style>",
    "<meta http-equiv=refresh content='0;url=http://evil.example:9/'>",
    "<base href=http://evil.example:9/>",
    "</title><script>window.pwned=1</script>",
    "\u202egnp.exe \u0007 \u001b]8;;http://evil.example:9\u001b\\x",
    "<form action=http://evil.example:9/><button>approve</button></form>",
]
TEXT = "\n\n".join(CORPUS)
NAME = CORPUS[0] + CORPUS[2]
ODD = "'\"><img src=x onerror=window.pwned=1>.md"  # a file may be called so
PIPELINE = {
    "name": "hostile",
    "description": TEXT,
    "documents": "docs/{slug}",
    "steps": [
        {
            "id": "draft",
            "name": CORPUS[1],
            "agent": {"role": "designer", "out": "design.md", "checks": ["tests"]},
            "on": {"ERROR": {"pause": CORPUS[3]}},
        },
        {
            "id": "look",
            "gate": {
                "name": "look",
                "show": ["design.md"],
                "prompt": TEXT,
                "fields": {"why": {"type": "text", "description": TEXT, "default": CORPUS[5]}},
            },
        },
    ],
}
AGENT = """
import os, sys
text = open(sys.argv[1]).read()
os.makedirs("docs/r", exist_ok=True)
open("docs/r/design.md", "w").write(text)
print(text)
print(text, file=sys.stderr)
print("DONE: " + text.replace("\\n", " "))
"""
RUN = "r"
ATTEMPT = f"/runs/{RUN}/attempts/draft-1-designer-1"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which everything that somebody else may write is hostile, and a run that waits at its gate."""
    root = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=window.pwned=1>"
    (root / ".tenuto/pipelines").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".tenuto/pipelines/hostile.yaml").write_text(dumps(PIPELINE))
    (root / "says.txt").write_text(TEXT)
    (root / "agent.py").write_text(AGENT)
    check = f"sh -c 'cat {root.parent / 'says.txt'}'"
    (root.parent / "says.txt").write_text(TEXT)
    (root / ".tenuto/config.yaml").write_text(dumps({"checks": {"tests": check}}))
    trust(root)
    agent = f"command:{sys.executable} agent.py says.txt"
    done = program(root, "run", NAME, "--name", RUN, "--pipeline", "hostile", "--agent", agent)
    assert done.returncode == 5, done
    workspace = tenuto.open(str(root))
    with workspace.turn() as turn:
        for number, words in enumerate(CORPUS):
            turn.do(RUN, {"do": "Note", "text": words})
            turn.store(RUN, f"x{number}{ODD}", f"docs/r/x{number}.html", TEXT.encode())
    workspace.journal.close()
    return root


def pages() -> list[str]:
    from tenuto.pages import addresses

    odd = addresses.artifact(RUN, f"x1{ODD}")
    attempt = [f"{ATTEMPT}?of={part}" for part in ("reply", "output", "errors", "prompt", "checks", "diff")]
    found = [
        "/",
        "/runs",
        f"/runs?q={quote(CORPUS[2])}",
        f"/runs/{RUN}",
        f"/runs/{RUN}?at=9",
        f"/runs/{RUN}?step=draft",
    ]
    found += [*attempt, f"{ATTEMPT}?of=output&find=pwned", odd, f"{odd}?shape=source"]
    found += [f"/runs/{RUN}/artifacts/design.md", f"/runs/{RUN}/artifacts/design.md?shape=source"]
    found += [f"/compare?a={RUN}&b={RUN}&pipeline=hostile", "/figures", "/machine", "/machine?verify=1"]
    return [*found, f"/runs/{quote(CORPUS[0], safe='')}", f"/runs/{RUN}/artifacts/{quote(CORPUS[1], safe='')}"]


def test_hostile_text_is_text_on_every_page_and_nothing_leaves(hostile: Path, page: Page) -> None:
    left: list[str] = []
    with Served(hostile) as server:
        page.on("request", lambda request: None if request.url.startswith(server.address) else left.append(request.url))
        page.on("dialog", lambda dialog: left.append("dialog"))
        come_in(page, server)
        for path in pages():
            page.goto(server.address + path)
            page.locator("main").wait_for()
            assert page.evaluate("() => window.pwned") is None, path
            wild = "main :is(script, iframe, style, base, img, link, object, embed, [style]), main meta"
            assert page.locator(wild).count() == 0, path
            away = ":is([href^='javascript:' i], [href^='data:' i], form[action^=http])"
            assert page.locator(f"main {away}").count() == 0, path
            handlers = "one => [...one.attributes].some(a => a.name.startsWith('on'))"
            assert page.evaluate(f"() => [...document.querySelectorAll('*')].filter({handlers}).length") == 0, path
        page.goto(f"{server.address}/runs/{RUN}")
        page.locator("textarea[name=feedback]").fill(TEXT)
        page.locator("button[value=reject]").click()
        page.wait_for_url(f"**/runs/{RUN}")
        assert page.evaluate("() => window.pwned") is None
        page.goto(f"{server.address}/runs/{RUN}?at=9")
        page.go_back()
        page.locator("#decisions blockquote", has_text="window.pwned").wait_for()
    assert not left


def test_a_page_as_a_file_asks_for_nothing_and_runs_nothing(hostile: Path, tmp_path: Path, page: Page) -> None:
    kept = tmp_path / "run.html"
    assert program(hostile, "page", RUN, "-o", str(kept), "--with", "logs,diffs").returncode == 0
    asked: list[str] = []
    complained: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complained.append(message.text))
    page.goto(kept.as_uri())
    page.get_by_role("heading", name="Documents").wait_for()
    assert asked == [kept.as_uri()] and not complained, "its own style is allowed, and nothing was refused"
    assert page.locator("script, iframe, img, link, form, a[href]").count() == 0
    assert page.evaluate("() => [window.pwned, document.scripts.length]") == [None, 0]
    assert page.locator(".sheet-music").count() == 1
    assert page.evaluate("() => getComputedStyle(document.querySelector('main')).maxWidth") != "none", (
        "it has its style"
    )


def test_no_page_is_shown_in_a_frame(hostile: Path, page: Page) -> None:
    """Of another site, and of another port of this machine: nobody's click is led to a button."""
    with Served(hostile) as server:
        come_in(page, server)
        frames = "".join(f'<iframe src="{server.address}{path}"></iframe>' for path in ("/", f"/runs/{RUN}", "/in"))
        with other_site(f"<p>outside</p>{frames}") as site:
            for host in ("evil.example", "127.0.0.1"):
                page.goto(f"http://{host}:{site}/", timeout=DEADLINE * 1000)
                page.wait_for_load_state("networkidle")
                assert len(page.frames) == 4
                for frame in page.frames[1:]:
                    assert frame.locator("button, form, main").count() == 0, frame.url


def test_no_look_at_any_address_changes_a_table_or_a_file(hostile: Path) -> None:
    """Every address that the server knows, those that change something among them: asked for, they are not there."""
    from tests.web.test_decisions import state

    with Served(hostile) as server:
        server.enter()
        names = {"attempts": "draft-1-designer-1", "artifacts": "design.md", "raw": "design.md"}
        known = [
            *looks.PAGES,
            *looks.FILES,
            "/in",
            *(f"/runs/*/{one}" for one in ("answer", "statement", "fork", "seen")),
        ]
        before = state(hostile)
        for address in [*known, "/out", *pages()]:
            parts = address.split("/")
            filled = [names.get(parts[at - 1], RUN) if part == "*" else part for at, part in enumerate(parts)]
            for method in ("GET", "HEAD"):
                answer = server.ask("/".join(filled), method=method)
                assert answer.status in (200, 303, 404), (address, answer.status)
        server.ask("/live", method="HEAD")
        assert state(hostile) == before
