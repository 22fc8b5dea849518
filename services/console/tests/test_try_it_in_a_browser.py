"""Requests from the API reference in Chromium: with a reader's key, which nothing keeps."""

import pytest
from browser_pages import FITS, browser, violations, watched
from playwright.sync_api import expect

__all__ = ["browser"]
PATIENCE_MS = 30_000
LIST, SUBMIT, CLOSE = "#accounts_list_accounts", "#intents_submit_intent", "#accounts_delete_credential"
XSS = "<img src=x onerror=document.title='broken'>"
ONE_OF_EACH = """document.querySelectorAll("details.operation:not([open]), section:last-child details")
    .forEach((part) => part.remove())"""
"""What is closed is drawn like what is open, and a thousand of them keep a checker busy for minutes."""


@pytest.fixture
def page(browser, stack):
    """The reference as a reader has it who has pasted a key; it logs no error but those of refused requests."""
    context = browser.new_context(base_url=stack.base, viewport={"width": 390, "height": 844})
    opened, errors = watched(context)
    opened.goto("/docs")
    opened.get_by_label("Key or token").fill(stack.key())
    yield opened
    context.close()
    assert [error for error in errors if "status of 4" not in error] == []


def open_form(page, operation):
    page.goto(f"/docs{operation}")
    page.locator(operation).get_by_role("button", name="Try it").click()
    form = page.locator(f"{operation} form")
    expect(form).to_be_visible(timeout=PATIENCE_MS)
    return form


def send(form, **values):
    """What the page then shows of the answer."""
    for name, value in values.items():
        form.get_by_label(name).fill(value)
    form.get_by_role("button", name="Send").click()
    expect(form.locator(".answer strong")).to_be_visible(timeout=PATIENCE_MS)
    return form.locator(".answer")


def test_a_key_reads_accounts(page, stack):
    answer = send(open_form(page, LIST))

    expect(answer.locator("strong")).to_contain_text("200")
    expect(answer).to_contain_text("X-Request-Id")
    expect(answer.locator("pre").last).to_contain_text(stack.account())


def test_the_example_places_an_order_on_a_paper_account(page, stack):
    answer = send(open_form(page, SUBMIT), account_id=stack.account())

    expect(answer.locator("strong")).to_contain_text("201")
    placed = stack.call("GET", f"/v1/accounts/{stack.account()}/orders?order=desc&limit=1")["data"][0]["intent_id"]
    expect(answer.locator("pre").last).to_contain_text(placed)


def test_a_refusal_is_explained_and_leads_to_the_page_of_its_code(page, stack):
    answer = send(open_form(page, SUBMIT), account_id=stack.account(), Body='{"command": {"type": "CREATE"}}')
    expect(answer.locator("strong")).to_contain_text("422")
    expect(answer).to_contain_text("payload")

    answer.get_by_role("link").click()
    expect(page.get_by_role("heading", name="What to do")).to_be_visible(timeout=PATIENCE_MS)


def test_the_key_is_nowhere_when_the_page_is_left(page, stack):
    send(open_form(page, LIST))
    assert stack.key() not in page.content() and stack.key() not in page.url
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    expect(page.get_by_label("Key or token")).to_have_value("")  # also if the browser keeps the page to come back to

    page.goto("/docs/problems/not_found")
    page.go_back()
    expect(page.get_by_label("Key or token")).to_have_value("")
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.context.cookies() == []
    assert stack.key() not in page.content()


def test_what_deletes_asks_once_more(page, stack):
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    form = open_form(page, CLOSE)
    form.get_by_role("button", name="Send").click()
    sure = form.get_by_role("button", name="Yes, send DELETE /v1/accounts/{account_id}/credentials/{credential_id}")
    expect(sure).to_be_visible()
    form.get_by_label("account_id").fill(stack.account())
    expect(sure).to_have_count(0)
    assert "DELETE" not in sent

    form.get_by_role("button", name="Send").click()
    sure.click()
    expect(form.locator(".answer strong")).to_be_visible(timeout=PATIENCE_MS)
    assert sent.count("DELETE") == 1


@pytest.mark.parametrize("kind", ["live key", "token"])
def test_a_change_with_anything_but_a_paper_key_asks_once_more(page, stack, kind):
    if kind == "live key":
        page.get_by_label("Key or token").fill(stack.key(environment="live"))
    else:
        page.get_by_label("Try operations with").select_option("a token")
        page.get_by_label("Key or token").fill(stack.local["organizations"]["acme"]["tokens"]["admin"])
    form = open_form(page, SUBMIT)
    form.get_by_role("button", name="Send").click()

    expect(form.get_by_role("button", name="Yes, send POST")).to_be_visible()


def test_an_answer_is_text(page):
    page.route("**/v1/accounts", lambda route: route.fulfill(status=409, json={"code": XSS, "detail": XSS}))
    answer = send(open_form(page, LIST))

    expect(answer).to_contain_text(XSS)
    assert answer.locator("img").count() == 0 and "broken" not in page.title()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_form_with_its_answer_is_accessible_and_fits_a_phone(page, stack, scheme):
    page.emulate_media(color_scheme=scheme)
    send(open_form(page, SUBMIT), account_id=stack.account(), Body="{}")

    assert page.evaluate(FITS)
    page.evaluate(ONE_OF_EACH)
    assert violations(page) == []
