"""Looking at runs in a real browser: the past, logs that grow, two ways of one run, and who is told that one waits."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenuto
from tenuto.core.fold import fold
from tenuto.encoding import dumps, loads
from tenuto.pages.parts import state_of
from tests.property.rehearsal import Rehearsal, item
from tests.web.grounds import GATED, ROOT, RUN, Served, copied, make, program
from tests.web.test_browser import come_in, live

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.needs("chromium")
ATTEMPT = f"/runs/{RUN}/attempts/draft-1-designer-1"


@pytest.fixture
def server(root: Path) -> Iterator[Served]:
    with Served(root) as started:
        yield started


# ---- the past


def test_the_slider_shows_the_fold_of_the_first_events_and_its_address_leads_there_again(
    server: Served, page: Page
) -> None:
    workspace = tenuto.open(str(server.root))
    with workspace.journal.read() as reader:
        events: list[Any] = list(reader.events(RUN))
    workspace.journal.close()
    come_in(page, server)
    page.goto(f"{server.address}/runs/{RUN}")
    live(page)
    page.focus("#at")
    for at in range(len(events) - 1, 0, -1):
        page.keyboard.press("ArrowLeft")
        page.locator("#history .seq").first.get_by_text(str(at), exact=True).wait_for()
        run = fold(loads(dumps(events[:at])))
        assert page.url.endswith(f"?at={at}")
        assert page.locator("h1 + .badge").inner_text().strip() == state_of(run["status"]).words
        attempts = page.locator(".facts dt:text-is('attempts') + dd").inner_text().split()[0]
        assert int(attempts) == len(run["attempts"])
        assert page.locator("#history li").count() == at
        assert page.locator("button[name=answer]").count() == 0, "the past is not decided"
    page.goto(f"{server.address}/runs/{RUN}?at=3")
    assert page.locator("#history li").count() == 3 and page.locator("#at").input_value() == "3"
    page.keyboard.press("]")
    page.locator("#history .seq").first.get_by_text("4", exact=True).wait_for()
    page.get_by_role("link", name="Now").click()
    page.locator("button[name=answer][value=approve]").wait_for()


# ---- a log

SPEAKER = """\
import os, sys
with open(sys.argv[1]) as said:
    for line in said:
        print(line, end="", flush=True)
os.makedirs("docs/spoken", exist_ok=True)
open("docs/spoken/design.md", "w").write("# Design\\n")
print("DONE: spoken")
"""


@pytest.fixture
def speaking(made: Path, tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """A repository in which an agent is at work that prints what it is told, and the pipe that tells it."""
    root = copied(made, tmp_path / "repo")
    (tmp_path / "speaker.py").write_text(SPEAKER)
    os.mkfifo(tmp_path / "pipe")
    agent = f"command:{sys.executable} {tmp_path / 'speaker.py'} {tmp_path / 'pipe'}"
    words = ["run", "Spoken", "--pipeline", "gated", "--agent", agent]
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        [sys.executable, "-m", "tenuto", *words],
        cwd=root,
        env=around,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with started, open(tmp_path / "pipe", "w", buffering=1) as pipe:
        yield root, pipe
        pipe.close()
        started.wait()


def test_a_log_follows_what_an_agent_prints_until_somebody_scrolls_up(
    speaking: tuple[Path, Any], browser: Browser
) -> None:
    root, pipe = speaking
    pipe.write("the first line\n" * 200)
    with Served(root) as server:
        context = browser.new_context()
        reading, following = context.new_page(), context.new_page()
        come_in(reading, server)
        for page in (reading, following):
            page.goto(f"{server.address}/runs/spoken/attempts/draft-1-designer-1?of=output")
            page.locator(".log", has_text="the first line").wait_for()
        for page in (reading, following):
            pipe.write(f"told to {'one' if page is reading else 'both'}\n")
            page.locator(".log", has_text="told to").wait_for()
            page.locator(".log[data-follow]").evaluate(
                "log => new Promise(done => { const look = () => log.isConnected && log.scrollHeight - log.scrollTop"
                " - log.clientHeight > 40 ? requestAnimationFrame(look) : done(); look(); })"
            )
        reading.locator(".log").evaluate("log => { log.scrollTop = 0; }")
        pipe.write("said while somebody read\n")
        following.locator(".log", has_text="said while somebody read").wait_for()
        assert reading.locator(".log").evaluate("log => log.scrollTop") == 0
        assert "said while" not in reading.locator(".log").inner_text(), "what is read stays as it is"
        reading.locator(".log").evaluate("log => { log.scrollTop = log.scrollHeight; }")
        reading.locator(".log", has_text="said while somebody read").wait_for()
        context.close()


def test_of_a_log_of_200_mb_a_page_holds_a_part_and_leads_to_the_others(root: Path, page: Page) -> None:
    workspace = tenuto.open(str(root))
    (kept,) = Path(workspace.state, "attempts", RUN, "draft-1-designer-1").glob("1/stdout")
    workspace.journal.close()
    size = 200 << 20
    with kept.open("wb") as file:
        file.write(b"the very beginning\n")
        file.truncate(size - 70_000)  # a hole: nothing of it is on the disk
        file.seek(0, 2)
        file.write(b"\nneedle in the hay\n" + b"hay\n" * 17_000)
        file.write(b"the very end\n")
    size = kept.stat().st_size
    with Served(root) as server:
        server.enter()
        server.press_enter()
        come_in(page, server)
        page.goto(f"{server.address}{ATTEMPT}?of=output")
        log = page.locator(".log[data-follow]")
        assert log.inner_text().rstrip().endswith("the very end")
        assert len(log.inner_text().splitlines()) <= 5_001 and len(page.content()) < 200_000
        page.get_by_role("link", name="Earlier").click()
        page.locator(".log", has_text="needle in the hay").wait_for()
        page.goto(f"{server.address}{ATTEMPT}?of=output")
        page.get_by_role("link", name="Beginning").click()
        page.locator(".log", has_text="the very beginning").wait_for()
        page.goto(f"{server.address}{ATTEMPT}?of=output")
        page.fill("#find-in-log", "NEEDLE")
        page.keyboard.press("Enter")
        page.locator(".log .at").first.wait_for()
        assert page.locator(".log .at").count() == 1
        assert downloaded(server, f"{ATTEMPT}/log?of=output") == size


def downloaded(server: Served, path: str) -> int:
    """Its length; it is read piece by piece, as it is sent."""
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", path, headers={"Cookie": server.session})
    answer, length = connection.getresponse(), 0
    while piece := answer.read(1 << 20):
        length += len(piece)
    connection.close()
    return length


# ---- another way


def test_an_edited_pipeline_is_replayed_and_a_fork_is_begun_where_it_is_looked_at(server: Served, page: Page) -> None:
    edited = GATED.replace("    gate: {name: look,", "    gate: {name: glance,").replace("id: draft", "id: sketch")
    edited = edited.replace("revise: draft", "revise: sketch")
    come_in(page, server)
    page.goto(f"{server.address}/compare?a={RUN}")
    page.get_by_role("button", name="Replay", exact=True).click()
    page.get_by_text("Nothing differs.").wait_for()
    (server.root / ".tenuto/pipelines/gated.yaml").write_text(edited)
    page.reload()  # the address says what is asked
    page.get_by_text("What differs:").wait_for()
    row = page.locator("#replay tr", has=page.locator("td:text-is('sketch')"))
    assert row.locator("td").all_inner_texts() == ["sketch", "–", "DONE"]
    page.goto(f"{server.address}/compare?a={RUN}&pipeline=../../etc/passwd")
    page.locator("#replay [role=alert]", has_text="there is no pipeline").wait_for()
    page.select_option("#another-way select[name=step]", "look")
    page.get_by_role("button", name="Look", exact=True).click()
    page.locator("#another-way", has_text="Takes over: docs/dark-mode/design.md").wait_for()
    page.get_by_role("button", name="Fork at look", exact=True).click()
    page.locator("#head", has_text=f"forked from {RUN} at look").wait_for()
    assert program(server.root, "status", page.url.rpartition("/")[2]).returncode == 0


def test_another_cap_draws_other_bars_while_it_is_dragged(root: Path, page: Page) -> None:
    items = [item("01"), item("02"), item("03", "01"), item("04")]
    play = Rehearsal("eight-step", lambda a: "DONE", items)
    while play.step():
        pass
    workspace = tenuto.open(str(root))
    with workspace.journal.write() as tx:
        events: list[Any] = [
            {**event, "run": "r"} if event["type"] == "RunStarted" else event for event in play.journal
        ]
        for event in events:
            if "pipeline" in event:
                event["pipeline"] = {**event["pipeline"], "hash": None}
        tx.append("r", 0, events, fold(loads(dumps(events))))
    workspace.journal.close()
    with Served(root) as server:
        come_in(page, server)
        page.goto(f"{server.address}/compare?a=r")
        page.locator("#ghosts", has_text="With 4 agents at a time").wait_for()
        page.focus("#what-if input[name=cap]")
        page.keyboard.press("Home")
        page.locator("#ghosts", has_text="With 1 agent at a time, each as soon as it may").wait_for()
        assert page.locator("#what-if output").inner_text() == "1" and "cap=1" in page.url
        page.get_by_label("wave by wave").check()
        page.locator("#ghosts", has_text="With 1 agent at a time, wave by wave").wait_for()


# ---- who is told


def test_a_run_that_waits_is_counted_in_title_and_icon_and_told_to_a_hidden_tab(
    server: Served, browser: Browser
) -> None:
    """The browser's own window for it belongs to the desktop: what it is given is looked at here."""
    context = browser.new_context()
    context.add_init_script(
        "window.told = []; Object.defineProperty(document, 'hidden', {get: () => true});"
        "window.Notification = class { static permission = 'granted';"
        " constructor(title, more) { window.told.push(title + ': ' + more.body) } };"
    )
    page = context.new_page()
    come_in(page, server)
    live(page)
    assert page.title() == "(1) Inbox · tenuto" and "icon-1.svg" in str(page.get_attribute("link[rel=icon]", "href"))
    assert program(server.root, "run", "Another", "--pipeline", "gated", "--start-only").returncode == 0
    page.locator("link[rel=icon][href*='icon-2.svg']").wait_for(state="attached")
    told = "new Promise(done => { const look = () => told.length ? done(told) : setTimeout(look, 50); look(); })"
    assert page.title() == "(2) Inbox · tenuto" and page.evaluate(told) == ["tenuto: 2 runs wait for you."]
    assert page.locator(".count").inner_text().startswith("2")
    context.close()


# ---- keys


def test_letters_lead_to_the_log_the_difference_the_search_and_the_failed_ones(server: Served, page: Page) -> None:
    come_in(page, server)
    page.goto(server.address + ATTEMPT)
    for key, address in (("l", "of=output"), ("d", "of=diff")):
        page.keyboard.press(key)
        page.wait_for_url(f"**{address}*")
    page.keyboard.press("Escape")
    page.wait_for_url(f"**/runs/{RUN}")
    page.keyboard.press("f")
    page.wait_for_url("**/runs?status=failed")
    for place in ("/runs", "/"):
        page.goto(server.address + place)
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?q=dark")
    page.get_by_role("link", name="Dark mode").wait_for()


# ---- a journal that cannot be read


def test_a_damaged_journal_names_its_first_bad_event_and_a_newer_one_says_only_that(root: Path, page: Page) -> None:
    (database,) = root.rglob("journal.db")
    with closing(sqlite3.connect(database)) as journal, journal:
        journal.execute("UPDATE event SET body = '{}' WHERE run = ? AND seq = 2", (RUN,))
    with Served(root) as server:
        come_in(page, server)
        page.goto(f"{server.address}/runs/{RUN}?at=4")
        page.get_by_role("heading", name="The journal is damaged").wait_for()
        page.locator(".band.bad[role=alert]", has_text=f"event 2 of run {RUN}").wait_for()
        page.locator(".command", has_text="tenuto verify").wait_for()
        with closing(sqlite3.connect(database)) as journal, journal:
            journal.execute("PRAGMA user_version = 999")
    with Served(root) as server:
        for path in ("/", f"/runs/{RUN}", "/figures"):
            assert server.ask(path, Cookie="").status == 303
            server.session = server.session or server.enter().header("set-cookie").partition(";")[0]
            newer = server.ask(path)
            assert newer.status == 503 and "A newer Tenuto wrote this journal" in newer.text
            assert "Dark mode" not in newer.text


# ---- where there is nothing


def test_an_empty_place_says_with_which_command_something_begins(tmp_path: Path, page: Page) -> None:
    root = tmp_path / "new"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    with Served(root) as server:
        come_in(page, server)
        page.locator(".command", has_text="tenuto init").wait_for()
        live(page)
        assert program(root, "init").returncode == 0
        page.get_by_role("heading", name="No runs yet").wait_for()
        page.locator(".command", has_text="tenuto run 'what you want' --agent auto").wait_for()
    quiet = make(tmp_path / "quiet")
    assert program(quiet, "cancel", RUN).returncode in (0, 1)
    with Served(quiet) as server:
        server.press_enter()
        come_in(page, server)
        page.get_by_text("Nothing waits for you.").wait_for()
