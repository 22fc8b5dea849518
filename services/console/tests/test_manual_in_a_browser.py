"""The manual in Chromium: accessible and without errors in both themes, on phones and wide screens; and its search."""

import pytest
from browser_pages import browser, check_fits, violations, watched
from playwright.sync_api import expect

__all__ = ["browser"]
PAGES = ("/manual/concepts", "/manual/controls-and-limits", "/manual/console", "/manual/reference/brokers")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_manual_is_accessible_fits_and_has_no_errors(browser, stack, theme):
    context = browser.new_context(base_url=stack.base, color_scheme=theme)
    page, errors = watched(context)
    for path in PAGES:
        page.goto(path)
        check_fits(page, path)
        assert violations(page) == [], path
    assert errors == []
    context.close()


def test_pages_are_turned_and_found_by_their_words(browser, stack):
    context = browser.new_context(base_url=stack.base, viewport={"width": 1280, "height": 800})
    page, errors = watched(context)
    page.goto("/manual")
    page.get_by_role("link", name="Quickstart →").click()
    expect(page.get_by_role("heading", name="Quickstart", level=1)).to_be_visible()
    expect(page.get_by_label("Search the manual")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("kill switch cancel")
    page.locator("#results a", has_text="Stop everything").click()

    expect(page.get_by_role("heading", name="Stop everything")).to_be_in_viewport()
    assert errors == []
    context.close()
