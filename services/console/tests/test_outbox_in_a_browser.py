"""The outbox in Chromium: its states over time, and a failed row that is redriven."""

import pytest
from administration_pages import check_page
from browser_pages import browser, sign_in, watched
from failed_rows import fail_row, redriven_from
from playwright.sync_api import expect

__all__ = ["browser"]
PATIENCE_MS = 60_000
PHONE_PX = 390
NOT_SCROLLED_SIDEWAYS = "(shown) => shown.scrollWidth <= shown.clientWidth"


@pytest.fixture(scope="module")
def office(browser, stack):
    context = sign_in(browser, stack.base, stack.logins["admin"])
    yield context
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["outbox", "outbox?redriven=true"])
def test_a_page_with_failed_rows_is_accessible_and_fits(office, stack, theme, view):
    fail_row(stack, "an-error-without-a-space" * 8)
    page, errors = watched(office)
    office.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    page.goto(f"/console/{view}")
    expect(page.locator("[data-plot=failed] [data-bar]")).to_have_count(1)
    check_page(page, view, theme)

    assert errors == []
    page.close()


def test_the_states_are_counted_again_and_drawn_while_the_page_is_open(office, stack):
    page, errors = watched(office)
    page.goto("/console/outbox")
    failed = page.locator("[data-plot=failed]")
    before = int(page.locator("[data-state=failed]").get_attribute("data-count"))
    row = fail_row(stack, "BrokenSeal")

    expect(failed.locator("[data-bar]")).not_to_have_count(1, timeout=PATIENCE_MS)
    expect(failed.locator("[data-note]")).to_have_text(f"now {before + 1}, at most {before + 1}", timeout=PATIENCE_MS)
    expect(page.get_by_role("region", name="Failed rows")).to_contain_text(str(row), timeout=PATIENCE_MS)
    expect(page.locator("[data-plot=completed] [data-bar]")).not_to_have_count(0)
    assert errors == []
    page.close()


def test_the_button_of_a_failed_row_is_in_sight_on_a_phone(office, stack):
    row = fail_row(stack, "an-error-without-a-space" * 8)
    page, errors = watched(office)
    page.set_viewport_size({"width": PHONE_PX, "height": 844})
    page.goto("/console/outbox")
    box = page.get_by_role("button", name=f"Redrive row {row}", exact=True).bounding_box()

    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE_PX
    assert page.get_by_role("region", name="Failed rows").evaluate(NOT_SCROLLED_SIDEWAYS)
    assert errors == []
    page.close()


def test_a_failed_row_is_redriven_by_hand(office, stack):
    row = fail_row(stack, "BrokenSeal")
    page, errors = watched(office)
    page.goto("/console")
    page.keyboard.press("g")
    page.keyboard.press("x")
    page.wait_for_url("**/console/outbox")
    button = page.get_by_role("button", name=f"Redrive row {row}", exact=True)
    expect(page.locator("tr", has=button)).to_contain_text("a sealed secret was altered or moved")
    button.click()
    page.get_by_role("button", name=f"Redrive row {row}", exact=True).click()
    page.wait_for_url("**/console/outbox")
    expect(page.get_by_role("button", name=f"Redrive row {row}", exact=True)).to_have_count(0)

    [copy] = redriven_from(stack, row)
    page.get_by_role("link", name="Those redriven").click()
    expect(page.get_by_role("region", name="Failed rows")).to_contain_text(f"as row {copy}")
    assert errors == []
    page.close()
