"""The API reference in Chromium: it fits a phone, in both themes, and runs nothing but its own file."""

import pytest
from browser_pages import FITS, browser, check_fits, violations, watched
from playwright.sync_api import expect

__all__ = ["browser"]
SUBMIT = "#intents_submit_intent"
PAGES = (f"/docs{SUBMIT}", "/docs#Action", "/docs/problems/control_rejected")
KEEPS_A_FEW = """document.querySelectorAll("section").forEach((section) =>
    [...section.querySelectorAll(":scope > details:not([open])")].slice(1).forEach((part) => part.remove()))"""
"""All of a kind are drawn by one template, and a thousand of them keep a checker busy for minutes."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_reference_is_accessible_fits_and_has_no_errors(browser, stack, theme):
    context = browser.new_context(base_url=stack.base, color_scheme=theme)
    page, errors = watched(context)
    for path in PAGES:
        page.goto(path)
        check_fits(page, path)
        page.evaluate(KEEPS_A_FEW)
        assert violations(page) == [], path
    assert errors == []
    context.close()


def test_everything_opened_at_once_fits_a_phone(browser, stack):
    page = browser.new_page(base_url=stack.base, viewport={"width": 390, "height": 844})
    page.goto("/docs")
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")

    assert page.evaluate(FITS)
    page.close()


def test_a_link_opens_its_operation_and_a_search_leaves_what_fits(browser, stack):
    page = browser.new_page(base_url=stack.base)
    page.goto(f"/docs{SUBMIT}")
    expect(page.locator(f"{SUBMIT} pre").first).to_be_visible()

    page.get_by_label("Search").fill("audit export")

    expect(page.locator("details.operation:visible")).to_have_count(1)
    expect(page.locator("#audit_entries_export_audit_entries")).to_be_visible()
    expect(page.locator("#found")).to_have_text("1 operation")
    page.close()


def test_a_code_leads_to_its_page_and_back(browser, stack):
    page = browser.new_page(base_url=stack.base)
    page.goto(f"/docs{SUBMIT}")
    page.locator(f"{SUBMIT} a[href='/docs/problems/client_id_taken']").click()
    expect(page.get_by_role("heading", name="client_id_taken")).to_be_visible()

    page.get_by_role("link", name="Append an intent command").click()

    expect(page.locator(f"{SUBMIT}[open]")).to_be_visible()
    page.close()


def test_a_script_in_the_page_would_not_run(browser, stack):
    page = browser.new_page(base_url=stack.base)
    page.goto("/docs")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = true'}))")

    assert page.evaluate("window.ran") is None
    page.close()
