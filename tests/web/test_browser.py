"""The pages in a real browser: coming in, other sites that try, live changes, and a server that comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenuto.encoding import digest
from tests.web.grounds import RUN, Served, program, run_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.needs("chromium")
APPROVE = "button[name=answer][value^=approve]"
WORDS = "textarea[name=feedback]"


def come_in(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/in#{server.code()}")
    page.wait_for_url(f"{server.address}/")


def open_run(page: Page, server: Served) -> None:
    come_in(page, server)
    page.goto(f"{server.address}/runs/{RUN}")
    live(page)


def live(page: Page) -> None:
    page.locator("html[data-live=on]").wait_for(state="attached")


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    with Served(root) as started:
        yield started


# ---- coming in


def test_the_link_lets_in_and_its_code_stands_in_no_address(server: Served, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    come_in(page, server)
    assert not [address for address in asked if server.code() in address]
    page.locator("main").get_by_text("Dark mode").first.wait_for()


def test_a_typed_code_lets_in_and_a_second_use_ends_the_session(server: Served, page: Page, browser: Browser) -> None:
    page.goto(server.address)
    page.get_by_label("Code").fill(server.code().lower())
    page.keyboard.press("Enter")
    page.locator("main").get_by_text("Dark mode").first.wait_for()
    context = browser.new_context()
    other = context.new_page()
    other.goto(f"{server.address}/in#{server.code()}")
    other.locator("[role=alert]", has_text="the session that it gave is ended").wait_for()
    page.reload()
    page.get_by_label("Code").wait_for()
    context.close()


def test_a_link_from_another_site_leads_to_the_page_itself(server: Served, page: Page) -> None:
    """A strict cookie does not come along with such a link; the page asks for itself again."""
    come_in(page, server)
    with other_site(f"<a href='{server.address}/runs/{RUN}'>look</a>") as site:
        page.goto(f"http://evil.example:{site}/")
        page.get_by_text("look").click()
        page.get_by_role("heading", name="Dark mode").first.wait_for()


# ---- other sites


class other_site:
    """A page of another program on this machine."""

    def __init__(self, html: str) -> None:
        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> int:
        self._thread.start()
        return self._server.server_port

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


READS = """
<div id=said></div><iframe id=frame src="{address}/runs/dark-mode"></iframe>
<img id=img src="{address}/static/icon-1.svg"><script src="{address}/static/live.js" type=module></script>
<script>
const run = "{address}/runs/dark-mode", told = [];
const tell = (is_read) => {{ told.push(is_read ? "READ" : "no"); said.textContent = told.join(","); }};
const no = () => tell(false);
const heard = (answer) => answer.text().then((text) => tell(Boolean(text)), no);
fetch(run, {{credentials: "include"}}).then(heard, no);
fetch(run, {{credentials: "include", mode: "no-cors"}}).then(heard, no);
const headers = {{"Content-Type": "application/x-www-form-urlencoded"}};
const post = {{method: "POST", credentials: "include", mode: "no-cors", headers, body: "{form}"}};
fetch(run + "/answer", post).then(heard, no);
frame.onload = () => {{ try {{ tell(frame.contentDocument.body.textContent) }} catch {{ no() }} }};
img.onload = () => tell(true); img.onerror = no;
</script>
"""
POSTS = """
<form id=f method=post action="{address}/runs/dark-mode/answer">{fields}</form><script>f.submit()</script>
"""


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost"])
def test_another_site_or_port_neither_reads_nor_decides(server: Served, page: Page, host: str) -> None:
    """Also one that has stolen the whole form."""
    come_in(page, server)
    page.goto(f"{server.address}/runs/{RUN}")
    hidden = page.locator(f"form[action$='/runs/{RUN}/answer'] input[type=hidden]").all()
    form = {str(one.get_attribute("name")): str(one.get_attribute("value")) for one in hidden} | {"answer": "approve"}
    assert form["token"] and form["gate"]
    body = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in form.items())
    with other_site(READS.format(address=server.address, form=body)) as site:
        page.goto(f"http://{host}:{site}/")
        page.locator("#said", has_text="no,no,no,no,no").wait_for()
    fields = "".join(f"<input name='{name}' value='{value}'>" for name, value in form.items())
    with other_site(POSTS.format(address=server.address, fields=fields)) as site:
        page.goto(f"http://{host}:{site}/")
        page.wait_for_url(f"{server.address}/**")
        page.get_by_text("not sent from a page of this server").wait_for()
    assert run_of(server.root)["status"] == "waiting_gate"


def test_a_name_that_is_made_to_point_here_is_refused(server: Served, page: Page) -> None:
    answer = page.goto(f"http://rebound.example:{server.port}/runs/{RUN}")
    assert answer is not None and answer.status == 421 and "Dark mode" not in answer.text()


# ---- who is a person, by the real judge


def test_a_browser_that_a_program_drives_or_an_agent_started_decides_nothing(
    root: Path, browser: Browser, launch: Callable[..., Browser]
) -> None:
    with Served(root, judge="real") as server:
        server.enter()
        name, _, value = server.session.partition("=")
        started = launch(CLAUDECODE="1")
        for one, words in ((browser, "a program can drive this browser"), (started, "Claude Code")):
            context: BrowserContext = one.new_context()
            context.add_cookies([{"name": name, "value": value, "url": server.address}])
            page = context.new_page()
            page.goto(f"{server.address}/runs/{RUN}")
            page.locator(APPROVE).first.click()
            page.get_by_text(words).wait_for()
            context.close()
        started.close()
    assert run_of(root)["status"] == "waiting_gate"


def test_a_browser_that_cannot_be_seen_is_asked_for_the_digits_of_the_terminal(root: Path, page: Page) -> None:
    with Served(root, judge="unseen") as server:
        server.press_enter()
        open_run(page, server)
        page.fill(WORDS, "not yet")
        page.locator("button[name=answer][value=reject]").click()
        page.get_by_label("Four digits").fill(server.hear(r"reject in run .* type (\d{4}) in the browser")[1])
        page.get_by_role("button", name="That was me").click()
        page.wait_for_url(f"**/runs/{RUN}")
        decision = run_of(root)["decisions"][-1]
        assert (decision["decision"], decision["feedback"]) == ("reject", "not yet")


# ---- deciding, live


def test_approving_in_the_browser_is_one_click(server: Served, page: Page) -> None:
    open_run(page, server)
    page.fill(WORDS, "fine by me")
    page.locator("button[name=answer][value=approve]").click()
    page.locator(APPROVE).first.wait_for(state="detached")
    assert run_of(server.root)["decisions"][-1]["feedback"] == "fine by me"


@pytest.mark.parametrize(
    ("answer", "words", "told", "attempt"),
    [
        ("approve+go_on", "", "starts build-1-implementer-1", "build-1-implementer-1"),
        ("revise", "Too short.", "starts draft-2-designer-1", "draft-2-designer-1"),
    ],
)
def test_a_button_says_what_then_happens(
    server: Served, page: Page, answer: str, words: str, told: str, attempt: str
) -> None:
    """What it says is put to the engine's rules; every gate of every shipped pipeline: tests/unit/show."""
    open_run(page, server)
    page.fill(WORDS, words)
    button = page.locator(f"button[name=answer][value='{answer}']")
    assert told in page.locator(".choice", has=button).locator(".will").inner_text()
    with page.expect_navigation():
        button.click()
    if answer == "revise":
        assert program(server.root, "resume", RUN).returncode == 5
    assert program(server.root, "watch", RUN).returncode in (0, 5)
    assert attempt in run_of(server.root)["attempts"]


def test_a_gate_that_is_decided_elsewhere_locks_the_card_and_the_words_stay(server: Served, page: Page) -> None:
    open_run(page, server)
    page.fill(WORDS, "half a thought")
    assert program(server.root, "reject", RUN).returncode == 1
    page.locator(".outdated").wait_for()
    assert page.locator(APPROVE).first.is_disabled() and page.input_value(WORDS) == "half a thought"


def test_a_gate_that_is_decided_elsewhere_goes_where_nothing_was_written(server: Served, page: Page) -> None:
    open_run(page, server)
    assert program(server.root, "approve", RUN).returncode == 0
    page.locator(APPROVE).first.wait_for(state="detached")


def test_a_shown_file_that_changes_locks_the_buttons_and_back(server: Served, page: Page) -> None:
    open_run(page, server)
    design = server.root / "docs/dark-mode/design.md"
    before = design.read_bytes()
    design.write_text("something else\n")
    page.locator(f"{APPROVE}[disabled]").first.wait_for()
    design.write_bytes(before)
    page.locator(f"{APPROVE}:not([disabled])").first.wait_for()


def test_what_happens_in_another_process_stands_on_the_page_by_itself(server: Served, page: Page) -> None:
    come_in(page, server)
    live(page)
    page.get_by_text("A second thing").first.wait_for(state="detached")
    begun = program(server.root, "run", "A second thing", "--pipeline", "gated", "--start-only")
    assert begun.returncode == 0, begun
    page.get_by_text("A second thing").first.wait_for()


def test_two_servers_over_one_journal_say_the_same(root: Path, page: Page, browser: Browser) -> None:
    with Served(root) as one, Served(root) as other:
        context = browser.new_context()
        second = context.new_page()
        open_run(page, one)
        open_run(second, other)
        second.fill(WORDS, "the other way")
        page.locator("button[name=answer][value=approve]").click()
        second.locator(".outdated").wait_for()
        assert second.locator(APPROVE).first.is_disabled() and second.input_value(WORDS) == "the other way"
        context.close()
    assert len(run_of(root)["decisions"]) == 1


def test_a_comment_on_a_line_that_was_clicked_goes_back_with_the_words(server: Served, page: Page) -> None:
    open_run(page, server)
    page.get_by_text("Line by line, to comment on").click()
    page.locator("[data-line] .no").first.click()
    page.keyboard.type("which one?")
    page.fill(WORDS, "Too short.")
    page.locator("button[name=answer][value=revise]").click()
    page.locator(APPROVE).first.wait_for(state="detached")
    decision = run_of(server.root)["decisions"][-1]
    assert decision["feedback"] == "Too short.\n\ndocs/dark-mode/design.md:1: which one?"
    page.locator("#decisions", has_text="look: sent back").locator("blockquote", has_text="which one?").wait_for()


def test_twelve_tabs_share_one_stream_and_another_takes_over(server: Served, browser: Browser) -> None:
    """A browser opens six connections to a host: with a stream for each tab the seventh would hang."""
    context = browser.new_context()
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if request.url.endswith("/live") else None)
    pages = [context.new_page() for _ in range(12)]
    come_in(pages[0], server)
    live(pages[0])
    for page in pages[1:]:
        page.goto(f"{server.address}/runs/{RUN}")
    assert len(streams) == 1
    pages[0].close()
    with_lock = program(server.root, "approve", RUN)
    assert with_lock.returncode == 0
    for page in pages[1:]:
        page.locator(APPROVE).first.wait_for(state="detached")
    assert len(streams) == 2
    context.close()


def test_a_server_that_was_started_anew_asks_for_its_new_code_and_catches_up(root: Path, page: Page) -> None:
    with Served(root) as first:
        open_run(page, first)
        port = str(first.port)
        first.process.kill()
        page.locator("html[data-live=off]").wait_for(state="attached")
    assert program(root, "approve", RUN).returncode == 0
    with Served(root, "--port", port) as second:
        page.locator(".enter-again").wait_for()
        come_in(page, second)
        page.goto(f"{second.address}/runs/{RUN}")
        page.locator(APPROVE).first.wait_for(state="detached")


def test_the_digest_of_a_section_is_what_the_page_says(server: Served, page: Page) -> None:
    come_in(page, server)
    told = page.evaluate("async () => (await (await fetch('/?parts&have=')).json()).sections")
    assert all(one["digest"] == digest(one["html"].encode())[:16] for one in told)
