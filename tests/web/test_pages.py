"""The pages as people use them: by keyboard alone, on a phone, with what reads pages aloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.web.grounds import RUN, Served, run_of
from tests.web.test_browser import come_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.needs("chromium")

PAGES = (
    "/",
    "/runs",
    f"/runs/{RUN}",
    f"/runs/{RUN}?at=3",
    f"/runs/{RUN}/attempts/draft-1-designer-1",
    f"/runs/{RUN}/artifacts/design.md",
    f"/runs/{RUN}/attempts/draft-1-designer-1?of=output",
    f"/compare?a={RUN}&b={RUN}&pipeline=gated",
    "/runs?status=failed",
    "/figures",
    "/machine?verify=1",
    "/nowhere",
)
STANDARDS: Any = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


def test_inbox_to_decision_by_keyboard_alone(served: Served, page: Page) -> None:
    """j and Enter to the run, Tab to the button that approves, Space on it: no letter decides by itself."""
    served.press_enter()
    come_in(page, served)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{RUN}*")
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.id") == "card"
    wanted = "document.activeElement.value === 'approve'"
    for _ in range(60):
        if page.evaluate(wanted):
            break
        page.keyboard.press("Tab")
    assert page.evaluate(wanted), "no way to the button by Tab"
    assert not run_of(served.root)["decisions"], "a key that leads to the card decides nothing"
    with page.expect_navigation():
        page.keyboard.press("Space")
    assert run_of(served.root)["decisions"][-1]["approved"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_reads_pages_aloud_finds_nothing_wrong(served: Served, browser: Browser, scheme: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    served.press_enter()
    come_in(page, served)
    found = []
    for address in PAGES:
        page.goto(served.address + address)
        for one in Axe().run(page, options=STANDARDS).response["violations"]:
            found.append(f"{address}: {one['id']}: {one['nodes'][0]['html'][:200]}")
    context.close()
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [390, 768])
def test_no_page_scrolls_sideways(served: Served, browser: Browser, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    served.press_enter()
    come_in(page, served)
    for address in PAGES:
        page.goto(served.address + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    context.close()


def test_without_a_script_a_gate_is_decided_and_the_past_is_shown(served: Served, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    name, _, value = served.session.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": served.address}])
    page.goto(f"{served.address}/runs/{RUN}?at=2")
    page.get_by_role("link", name="Now").click()
    page.locator("button[name=answer][value=approve]").click()
    assert run_of(served.root)["decisions"][-1]["approved"]
    context.close()


def test_keys_are_shown_and_the_theme_turns_and_stays(served: Served, page: Page) -> None:
    served.press_enter()
    come_in(page, served)
    page.keyboard.press("?")
    page.locator("#keys").wait_for(state="visible")
    page.keyboard.press("Escape")
    page.locator("#keys").wait_for(state="hidden")
    page.keyboard.press("t")
    turned = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == turned == "dark"
