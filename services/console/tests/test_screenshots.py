"""The pictures of the manual, taken of the console as it is; CONTRIBUTING.md says how."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from browser_pages import browser, sign_in
from manual_shots import (
    IMAGES,
    SHOTS,
    SIZES,
    THEMES,
    WITHOUT_PICTURE,
    address,
    as_webp,
    file_names,
    open_page,
    readable,
    take,
)
from people import TIMEOUT_S
from risk_desk import control, submit

from tip_testing.commands import limit
from tip_testing.console_journeys import show_key
from tip_testing.waiting import eventually

__all__ = ["browser"]
INTO = os.environ.get("MANUAL_SCREENSHOTS")
"""The folder for all of them; without it those are taken for which something is done, once, and nobody keeps them."""
LIMITS = {"max_quantity": "500", "max_open_orders": 20}
MORE_LIMITS = {**LIMITS, "max_position_notional": "50000", "max_daily_loss": "2000"}
"""These need figures of the broker, which a new account does not have at once."""
ORDERS = (
    ("AAPL", "BUY", {"Market": {"quantity": "40"}}),
    ("MSFT", "BUY", {"Market": {"quantity": "25"}}),
    ("NVDA", "BUY", {"Limit": {"quantity": "60", "limit_price": "12.50"}}),
    ("AAPL", "SELL", {"Market": {"quantity": "10"}}),
    ("MSFT", "SELL", {"Limit": {"quantity": "25", "limit_price": "990.00"}}),
    ("AMZN", "BUY", {"Market": {"quantity": "15"}}),
    ("AAPL", "BUY", {"StopLimit": {"quantity": "5", "stop_price": "900.00", "limit_price": "901.00"}}),
)


@pytest.fixture(scope="module")
def account(stack):
    """An account that has traded: filled, open and refused orders, and controls of every kind."""
    body = {"name": "main desk", "broker": "paper", "environment": "paper", "time_zone": "America/New_York"}
    made = stack.call("POST", "/v1/accounts", body)["id"]
    secret = {"label": "main", "secret": {"key_id": "AKDESK", "secret_key": "hush"}}
    stack.call("POST", f"/v1/accounts/{made}/credentials", secret)
    eventually(lambda: credential(stack, made)["status"] == "active")
    control(stack, made, "PUT", "/limits", LIMITS)
    for symbol, side, spec in ORDERS:
        submit(stack, made, symbol, spec, order_side=side, tags=["momentum"])
    eventually(lambda: len(with_status(stack, made, "FILLED")) == 4 and len(with_status(stack, made, "ACCEPTED")) == 3)
    control(stack, made, "PUT", "/symbols/TSLA", {"manually_disabled": True, "manual_reason": "earnings tonight"})
    control(stack, made, "PATCH", "/symbols/AAPL/time", {"trading_start": "09:30:00", "trading_end": "16:00:00"})
    control(stack, made, "PUT", "/limits", MORE_LIMITS)
    submit(stack, made, "TSLA", {"Market": {"quantity": "5"}})
    submit(stack, made, "MSFT", {"Market": {"quantity": "900"}})
    eventually(lambda: len(stack.call("GET", f"/v1/accounts/{made}/positions")["data"]) == 3)
    return made


def credential(stack, account):
    """Its only one. It comes before the orders, because it says which account at the broker is meant."""
    return stack.call("GET", f"/v1/accounts/{account}/credentials")["data"][0]


def with_status(stack, account, status):
    return stack.call("GET", f"/v1/accounts/{account}/orders?status={status}")["data"]


@pytest.fixture(scope="module")
def values(stack, account):
    """What addresses of pages name: the account, an order, a credential, a key."""
    bounds = {"accounts": [account], "symbols": ["AAPL", "MSFT", "NVDA"], "max_notional_per_day": "50000"}
    permissions = {"environment": "paper", "permissions": ["intent:read", "intent:edit"], "bounds": bounds}
    key = stack.call("POST", "/v1/api-keys", {"name": "momentum bot", **permissions})
    invitations = f"/v1/organizations/{stack.local['organizations']['acme']['id']}/invitations"
    stack.call("POST", invitations, {"subject": "erin@acme.example", "role": "member"})
    live = f"/v1/accounts/{stack.account(environment='live')}/intents"
    for symbol in ("AAPL", "NVDA"):
        stack.call("POST", live, limit(symbol, "5", "1"), key=stack.key(environment="live"))
    order, shown = with_status(stack, account, "FILLED")[0]["intent_id"], credential(stack, account)["id"]
    return {"account_id": account, "credential_id": shown, "key_id": key["id"], "intent_id": order, "symbol": "AAPL"}


@pytest.fixture(scope="module")
def followers(stack, account):
    """Two programs that follow the account, as the overview shows."""
    address, headers = f"{stack.base}/v1/accounts/{account}/events", {"x-api-key": stack.key()}
    with ExitStack() as streams:
        for _ in range(2):
            streams.enter_context(requests.get(address, headers=headers, stream=True, timeout=TIMEOUT_S))
        eventually(lambda: stack.call("GET", f"/v1/accounts/{account}/events/streams")["open"] >= 2)
        yield


@pytest.fixture(scope="module")
def desk(browser, stack, account):
    """An admin who has shown a key."""
    context = sign_in(browser, stack.base, stack.logins["admin"])
    page = context.new_page()
    show_key(page, account, stack.key())
    page.close()
    yield context
    context.close()


@pytest.fixture
def stranger(browser, stack):
    context = browser.new_context(base_url=stack.base)
    yield context
    context.close()


def test_every_page_of_the_console_has_pictures_in_both_themes_and_widths():
    assert readable() == {shot.endpoint for shot in SHOTS} | WITHOUT_PICTURE.keys()
    assert not {shot.endpoint for shot in SHOTS} & WITHOUT_PICTURE.keys()
    assert {name for shot in SHOTS for name in file_names(shot)} == {file.name for file in IMAGES.iterdir()}


CUT_OFF = """() => [...document.querySelectorAll("main .checks td, main h1, main button, main dd")].filter((shown) => {
  const room = shown.closest(".timeline, .card, main").getBoundingClientRect();
  return !shown.closest(".table") && shown.getBoundingClientRect().right > room.right;
}).map((shown) => shown.textContent)"""
"""What a person would have to scroll sideways for, outside tables that are meant to be."""


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("followers")
@pytest.mark.parametrize("theme", THEMES if INTO else ["light"])
def test_the_pictures_of_the_manual_are_taken(browser, desk, stranger, stack, values, theme):
    desk.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    for shot in [shot for shot in SHOTS if shot.prepare or INTO]:
        page = (stranger if shot.name == "sign-in" else desk).new_page()
        page.emulate_media(color_scheme=theme)
        own = {"account_id": stack.account(environment="live")} if shot.is_live else {}
        open_page(page, shot, address(shot, {**values, **own}))
        for size in SIZES:
            picture = take(page, shot, size)
            assert page.evaluate(CUT_OFF) == [], f"{shot.name}{size}"
            if INTO:
                Path(INTO, f"{shot.name}{size}{THEMES[theme]}.webp").write_bytes(as_webp(browser, picture))
        page.close()
