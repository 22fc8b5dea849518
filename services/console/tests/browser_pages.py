"""Debian's Chromium, driven by playwright, and people who have signed in with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = {390: 844, 1280: 800, 2560: 1300}
FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one file: while playwright runs in a thread, `asyncio.run` does not, in whatever test comes next."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield started
        started.close()


def sign_in(browser: Browser, base: str, login: dict[str, str]) -> BrowserContext:
    """By hand, as a person would."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=base)
    page = context.new_page()
    page.goto("/")
    page.fill("#email", login["email"])
    page.fill("#password", login["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("button[value=allow]").click()
    page.wait_for_url("**/console")
    page.close()
    return context


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page, and the errors that its console shows."""
    page, errors = context.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


def check_fits(page: Page, path: str) -> None:
    """Nothing is wider than the window, at any width."""
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(FITS), (path, width)


def violations(page: Page) -> list[str]:
    """What axe finds, as lines that say where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found]
