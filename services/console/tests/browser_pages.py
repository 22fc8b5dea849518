"""What tests in a browser share: the browser, people who have signed in with it, and what every page must be."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tip_testing.chromium import chromium, sign_in, watched

__all__ = ["FITS", "WIDTHS", "browser", "check_fits", "sign_in", "violations", "watched"]
WIDTHS = {390: 844, 1280: 800, 2560: 1300}
FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def check_fits(page: Page, path: str) -> None:
    """Nothing is wider than the window, at any width."""
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(FITS), (path, width)


def violations(page: Page) -> list[str]:
    """What axe finds, as lines that say where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found]
