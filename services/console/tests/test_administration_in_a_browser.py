"""Administration in Chromium: every page in both themes and three widths, and an administrator's day."""

from uuid import uuid4

import pytest
from administration_pages import audit, check_page
from browser_pages import browser, sign_in, watched
from playwright.sync_api import expect

from tip_testing.console_journeys import an_administrators_day, an_operators_day

__all__ = ["browser"]
PAGES = (
    *("connect", "connect?broker=paper", "settings", "settings of a live account", "credential"),
    *("people", "keys", "keys/new", "key", "audit-log", "outbox", "audit"),
)
XSS = "<img src=x onerror=document.title='broken'>"


@pytest.fixture(scope="module")
def office(browser, stack):
    """An administrator, of an organization with text in it that would run if it were markup."""
    stack.call("POST", "/v1/api-keys", {"name": XSS, "environment": "paper", "permissions": ["intent:read"]})
    context = sign_in(browser, stack.base, stack.logins["admin"])
    yield context
    context.close()


@pytest.fixture(scope="module")
def desk(stack):
    """An account with a credential, whose label would run if it were markup."""
    body = {"name": "research desk", "broker": "paper", "environment": "paper", "time_zone": "Europe/Berlin"}
    account = f"/accounts/{stack.call('POST', '/v1/accounts', body)['id']}"
    secret = {"key_id": "AKDESK", "secret_key": "hush"}
    made = stack.call("POST", f"/v1{account}/credentials", {"label": XSS, "secret": secret})
    yield f"/console{account}", f"/console{account}/credentials/{made['id']}"
    stack.call("DELETE", f"/v1{account}")


def path_of(name, stack, desk):
    settings, credential = desk
    key = stack.call("GET", "/v1/api-keys?limit=99")["data"][-1]["id"]
    live = f"/console/accounts/{stack.account(environment='live')}/settings"
    others = {"settings": f"{settings}/settings", "credential": credential, "settings of a live account": live}
    return others.get(name) or {"key": f"/console/keys/{key}", "audit": audit(stack)}.get(name) or f"/console/{name}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_fits_and_has_no_errors(office, stack, desk, name, theme):
    page, errors = watched(office)
    office.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    page.goto(path_of(name, stack, desk))
    check_page(page, name, theme)

    assert page.title() != "broken"
    assert errors == []
    page.close()


@pytest.mark.parametrize("name", ["reader", "stranger"])
def test_pages_that_say_why_not_are_pages_like_others(browser, stack, name):
    context = sign_in(browser, stack.base, stack.logins[name])
    page, errors = watched(context)
    for path in ("people", "keys", "audit-log", "outbox"):
        page.goto(f"/console/{path}")
        check_page(page, f"{path}-{name}", "light")
    assert errors == []
    context.close()


def test_an_administrators_day(office, stack):
    page, errors = watched(office)
    an_administrators_day(page, stack)

    assert errors == []
    page.close()


def test_an_operators_day(office, stack):
    page, errors = watched(office)
    an_operators_day(page, stack, stack.account())

    assert errors == []
    page.close()


def test_a_double_click_makes_one_key_and_copying_twice_keeps_it_shown(office, stack):
    office.grant_permissions(["clipboard-read", "clipboard-write"])
    page, name = office.new_page(), f"twice {uuid4().hex[:8]}"
    page.goto("/console/keys/new")
    page.fill("[name=name]", name)
    page.locator("label", has_text="intent:read").locator("input").check()
    page.get_by_role("button", name="Create key").dblclick()
    shown = page.locator("code.shown")
    key = shown.inner_text()
    assert [made["name"] for made in stack.call("GET", "/v1/api-keys?limit=99")["data"]].count(name) == 1

    shown.dblclick()
    expect(shown).to_have_text("copied")
    expect(shown).to_have_text(key)
    page.close()


def test_keys_of_the_keyboard_are_listed_on_every_page(office, stack):
    page = office.new_page()
    for path in ("/console/people", audit(stack)):
        page.goto(path)
        page.keyboard.press("?")
        expect(page.locator("dialog#help")).to_be_visible()
        expect(page.locator("dialog#help")).to_contain_text("audit log")
    page.close()
