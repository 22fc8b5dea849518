"""The pictures of the manual, taken of the console as it is; CONTRIBUTING.md says how."""

import os
from pathlib import Path

import pytest
from browser_pages import browser, sign_in
from playwright.sync_api import expect
from risk_desk import control, submit

from tip_testing.waiting import eventually

__all__ = ["browser"]
INTO = os.environ.get("MANUAL_SCREENSHOTS")
"""The folder for them; in a run of the tests nobody keeps them."""
IMAGES = Path(__file__).parents[3] / "docs" / "manual" / "images"
LIMITS = {"max_quantity": "500", "max_open_orders": 20}
MORE_LIMITS = {**LIMITS, "max_position_notional": "50000", "max_daily_loss": "2000"}
"""These need figures of the broker, which a new account does not have at once."""


@pytest.fixture(scope="module")
def account(stack):
    """An account that has traded: filled, open and refused orders, and controls of every kind."""
    body = {"name": "main desk", "broker": "paper", "environment": "paper", "time_zone": "America/New_York"}
    made = stack.call("POST", "/v1/accounts", body)["id"]
    control(stack, made, "PUT", "/limits", LIMITS)
    for symbol, side, spec in (
        ("AAPL", "BUY", {"Market": {"quantity": "40"}}),
        ("MSFT", "BUY", {"Market": {"quantity": "25"}}),
        ("NVDA", "BUY", {"Limit": {"quantity": "60", "limit_price": "12.50"}}),
        ("AAPL", "SELL", {"Market": {"quantity": "10"}}),
        ("MSFT", "SELL", {"Limit": {"quantity": "25", "limit_price": "990.00"}}),
        ("AMZN", "BUY", {"Market": {"quantity": "15"}}),
        ("AAPL", "BUY", {"StopLimit": {"quantity": "5", "stop_price": "900.00", "limit_price": "901.00"}}),
    ):
        submit(stack, made, symbol, spec, order_side=side, tags=["momentum"])
    control(stack, made, "PUT", "/symbols/TSLA", {"manually_disabled": True, "manual_reason": "earnings tonight"})
    control(stack, made, "PATCH", "/symbols/AAPL/time", {"trading_start": "09:30:00", "trading_end": "16:00:00"})
    eventually(lambda: len(stack.call("GET", f"/v1/accounts/{made}/orders?status=FILLED")["data"]) == 4)
    control(stack, made, "PUT", "/limits", MORE_LIMITS)
    submit(stack, made, "TSLA", {"Market": {"quantity": "5"}})
    submit(stack, made, "MSFT", {"Market": {"quantity": "900"}})
    return made


@pytest.fixture(scope="module")
def desk(browser, stack):
    context = sign_in(browser, stack.base, stack.logins["admin"])
    yield context
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_of_the_manual_are_taken(desk, stack, account, theme, tmp_path):
    desk.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    filled = stack.call("GET", f"/v1/accounts/{account}/orders?status=FILLED")["data"][0]["intent_id"]
    page = desk.new_page()
    for name, path, width, height in (
        ("orders", "orders", 1280, 520),
        ("order", f"orders/{filled}", 1280, 720),
        ("risk", "risk", 1280, 800),
        ("phone", "orders", 390, 720),
    ):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"/console/accounts/{account}/{path}")
        expect(page.locator("#stream")).to_have_attribute("data-state", "live", timeout=30_000)
        if name == "order":
            page.locator(".timeline summary").first.click()
        picture = f"{name}{'-dark' if theme == 'dark' else ''}.png"
        page.screenshot(path=Path(INTO or tmp_path) / picture)
        assert (IMAGES / picture).exists()
    page.close()
