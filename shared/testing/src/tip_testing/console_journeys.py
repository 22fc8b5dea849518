"""The days of four people at the console, each in one page: on the platform of `make up` and on containers."""

import re
from uuid import uuid4

from playwright.sync_api import Page, expect

from tip_testing.commands import limit
from tip_testing.console_platform import ConsolePlatform
from tip_testing.waiting import eventually

OUTBOX_STATES = ("pending", "processing", "completed", "failed")


def go(page: Page, keys: str, ends: str) -> None:
    """To another page, by the keyboard."""
    for key in keys.split():
        page.keyboard.press(key)
    page.wait_for_url(f"**{ends}")


def show_key(page: Page, account: str, key: str) -> None:
    page.goto(f"/console/accounts/{account}/ticket")
    page.fill("[name=key]", key)
    page.get_by_role("button", name="Use this key").click()
    expect(page.get_by_role("button", name="Forget it")).to_be_visible()


def a_traders_day(page: Page, account: str) -> None:
    """An order is checked, placed and canceled with the keyboard. A key was shown before."""
    page.goto(f"/console/accounts/{account}/orders")
    go(page, "n", "/ticket")
    page.fill("[name=symbol]", "amd")
    page.fill("[name=quantity]", "4")
    page.fill("[name=limit_price]", "2.5")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Place BUY 4 AMD Limit 2.5").click()
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}$"))
    expect(page.locator("[data-part=order]")).to_contain_text("accepted")
    page.get_by_role("button", name="Cancel order").click()

    expect(page.locator("[data-part=order]")).to_contain_text("canceled")


def a_risk_managers_day(page: Page, platform: ConsolePlatform, account: str) -> None:
    """Halt; an order is refused and explained; resume; a limit is set and its use is drawn."""
    page.goto(f"/console/accounts/{account}/orders")
    go(page, "g r", "/risk")
    page.get_by_label("Reason").fill("the news")
    page.get_by_role("button", name="Halted").click()
    expect(page.locator("[data-part=state]")).to_contain_text("HALTED")

    page.get_by_role("link", name="Check an order").first.click()
    page.fill("[name=symbol]", "AAPL")
    page.fill("[name=quantity]", "1")
    page.fill("[name=limit_price]", "1")
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".checks")).to_contain_text("Trading state of the account")
    expect(page.locator(".checks")).to_contain_text("the news")
    page.get_by_role("link", name="The controls of").click()

    platform.call("POST", f"/v1/accounts/{account}/intents", limit("AAPL", "7", "1"), key=platform.key())
    expect(page.locator("[data-part=refusals]")).to_contain_text("TRADING_HALTED")
    page.get_by_role("button", name="Active", exact=True).click()
    expect(page.locator("[data-part=state]")).to_contain_text("ACTIVE")
    page.get_by_role("link", name="Change limits").click()
    page.get_by_label("Orders in a day").fill("1000")
    page.get_by_role("button", name="Set limits").click()
    page.wait_for_url("**/risk")
    expect(page.locator(".usage")).to_contain_text("Orders in a day")
    assert page.locator(".usage .bar .used").count() >= 1


def an_operators_day(page: Page, platform: ConsolePlatform, account: str) -> None:
    """The last hour, the outbox, the way to the broker, and a log that nobody altered."""
    platform.call("POST", f"/v1/accounts/{account}/intents", limit("AAPL", "7", "1"), key=platform.key())
    page.goto(f"/console/accounts/{account}/orders")
    go(page, "g v", "/overview")
    expect(page.locator("[data-part=figures]")).to_contain_text("Oldest in the outbox")
    go(page, "g x", "/console/outbox")
    assert [name for name in OUTBOX_STATES if name not in page.locator("dl.states").inner_text()] == []
    page.goto(f"/console/accounts/{account}/overview")
    go(page, "g s", "/settings")
    page.get_by_role("button", name="Read at the broker now").click()
    expect(page.locator("[data-part=account]")).to_contain_text(re.compile(r"\d s ago"))

    go(page, "g u", "/audit")
    shown = eventually(lambda: _verdict(page), every=0.5)
    assert "No entry was altered" in shown


def _verdict(page: Page) -> str | None:
    """None while the newest entries are not signed yet."""
    page.get_by_role("button", name="Verify", exact=True).click()
    found = page.locator("[data-verdict]:not([data-verdict=verifying])")
    expect(found).to_be_visible()
    return found.inner_text() if found.get_attribute("data-verdict") == "verified" else None


def an_administrators_day(page: Page, platform: ConsolePlatform) -> None:
    """Somebody is invited, a key made, an account connected with a credential, and the key disabled."""
    run = uuid4().hex[:8]
    page.goto("/console")
    _invite(page, f"{run}@acme.example")
    key = _create_key(page, f"bot {run}")
    assert platform.call("GET", "/v1/auth/self", key=key)["bounds"]["symbols"] == ["AAPL"]
    _connect_account(page, f"desk {run}")

    page.goto("/console/keys")
    page.get_by_role("link", name=f"bot {run}").click()
    page.get_by_role("button", name="Disable the key").click()
    expect(page.locator(".facts")).to_contain_text("disabled")
    assert platform.call("GET", "/v1/auth/self", key=key)["code"] == "unauthenticated"
    assert key not in page.content()


def _invite(page: Page, subject: str) -> None:
    go(page, "g m", "/console/people")
    page.fill("input[data-search]", subject)
    page.get_by_role("button", name="Invite", exact=True).click()
    code = page.locator("code.shown").first.inner_text()
    assert len(code) > 10
    page.goto("/console/people")
    expect(page.get_by_role("region", name="Invitations")).to_contain_text(subject)
    assert code not in page.content()


def _create_key(page: Page, name: str) -> str:
    go(page, "g k", "/console/keys")
    go(page, "n", "/console/keys/new")
    page.fill("[name=name]", name)
    page.locator("label", has_text="intent:edit").locator("input").check()
    page.locator("label", has_text="paper account").locator("input").first.check()
    page.fill("[name=symbols]", "AAPL")
    page.fill("[name=max_notional_per_day]", "1000")
    page.get_by_role("button", name="Create key").click()
    return page.locator("code.shown").inner_text()


def _connect_account(page: Page, name: str) -> None:
    page.goto("/console")
    go(page, "n", "/console/connect")
    page.locator("a[href='/console/connect?broker=paper']").click()
    page.fill("[name=name]", name)
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("**/settings")
    page.fill("[name=label]", "main")
    page.fill("[name='secret.key_id']", "AKDAY")
    page.fill("[name='secret.secret_key']", "hush")
    page.get_by_role("button", name="Add and test").click()
    expect(page.get_by_role("region", name="Credentials")).to_contain_text("active")
    page.get_by_role("link", name="main", exact=True).click()
    page.get_by_role("button", name="Test main").click()
    expect(page.locator("[data-part=credential]")).to_contain_text("accepted")
    expect(page.locator("[data-part=credential]")).to_contain_text("active")
