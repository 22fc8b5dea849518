"""Administration in Chromium: every page in both themes and three widths, and an administrator's day."""

from uuid import uuid4

import pytest
from administration_pages import audit, check_page
from browser_pages import browser, sign_in, watched
from playwright.sync_api import expect

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
    run = uuid4().hex[:8]
    page.goto("/console")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/console/people")
    page.fill("input[data-search]", f"{run}@acme.example")
    page.get_by_role("button", name="Invite", exact=True).click()
    code = page.locator("code.shown").first.inner_text()
    assert len(code) > 10
    page.goto("/console/people")
    expect(page.get_by_role("region", name="Invitations")).to_contain_text(f"{run}@acme.example")
    assert code not in page.content()

    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_url("**/console/keys")
    page.keyboard.press("n")
    page.wait_for_url("**/console/keys/new")
    page.fill("[name=name]", f"bot {run}")
    page.locator("label", has_text="intent:edit").locator("input").check()
    page.locator("label", has_text="paper account").locator("input").check()
    page.fill("[name=symbols]", "AAPL")
    page.fill("[name=max_notional_per_day]", "1000")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("code.shown").inner_text()
    assert stack.call("GET", "/v1/auth/self", key=key)["bounds"]["symbols"] == ["AAPL"]

    page.goto("/console")
    page.keyboard.press("n")
    page.wait_for_url("**/console/connect")
    page.locator("a[href='/console/connect?broker=paper']").click()
    page.fill("[name=name]", f"desk {run}")
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("**/settings")
    page.fill("[name=label]", "main")
    page.fill("[name='secret.key_id']", "AKDAY")
    page.fill("[name='secret.secret_key']", "hush")
    page.get_by_role("button", name="Add and test").click()
    expect(page.get_by_role("region", name="Credentials")).to_contain_text("active", timeout=30_000)
    page.get_by_role("link", name="main", exact=True).click()
    page.get_by_role("button", name="Test main").click()
    expect(page.locator("[data-part=credential]")).to_contain_text("accepted", timeout=60_000)
    expect(page.locator("[data-part=credential]")).to_contain_text("active")

    page.goto("/console/keys")
    page.get_by_role("link", name=f"bot {run}").click()
    page.get_by_role("button", name="Disable the key").click()
    expect(page.locator(".facts")).to_contain_text("disabled")
    assert stack.call("GET", "/v1/auth/self", key=key)["code"] == "unauthenticated"
    assert key not in page.content()
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
