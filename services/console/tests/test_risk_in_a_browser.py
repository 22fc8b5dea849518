"""Risk and overview in Chromium: both themes and three widths, a risk manager's day, plots that move nothing."""

import os
from pathlib import Path

import pytest
from browser_pages import WIDTHS, browser, sign_in, violations, watched
from playwright.sync_api import expect
from risk_desk import XSS, control, new_account, submit

from tip_testing.console_journeys import a_risk_managers_day
from tip_testing.waiting import eventually

__all__ = ["browser"]
PATIENCE_MS = 60_000
SHOTS = os.environ.get("CONSOLE_SCREENSHOTS")
PAGES = ("overview", "risk", "risk/limits", "risk/symbols/TSLA", "risk/refusals", "risk/history")
MEASURE_SHIFT = """() => {
  window.shift = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
    .observe({ type: "layout-shift" });
}"""

READ_THREE_TIMES = """async () => {
  const { src } = document.querySelector("script[src$='parts.js']");
  const { refreshParts } = await import(src.replace("parts", "refresh"));
  const real = window.fetch;
  let [open, most, total] = [0, 0, 0];
  window.fetch = async (...given) => {
    total += 1;
    most = Math.max(most, open += 1);
    return real(...given).finally(() => { open -= 1; });
  };
  await Promise.all([refreshParts(), refreshParts(), refreshParts()]);
  return { most, total };
}"""


@pytest.fixture(scope="module")
def account(stack):
    """One with controls of every kind, their text such that it would run if it were markup."""
    account = new_account(stack, "desk")
    submit(stack, account, "MSFT", {"Market": {"quantity": "2"}})
    limits = {
        "max_open_orders": 4,
        "max_orders_per_minute": 100,
        "max_quantity": "250",
        "max_position_quantity": "1000",
    }
    control(stack, account, "PUT", "/limits", {**limits, "allow_short": False})
    control(stack, account, "PUT", "/symbols/TSLA", {"manually_disabled": True, "manual_reason": XSS})
    control(stack, account, "PATCH", "/symbols/TSLA/time", {"trading_start": "09:30:00", "trading_end": "16:00:00"})
    control(stack, account, "PATCH", "/symbols/ES/time", {"trading_start": "18:00:00", "trading_end": "17:00:00"})
    control(stack, account, "PUT", "/symbols/TSLA/limits", {"max_position_quantity": "50"})
    for symbol in ("AAPL", "TSLA", "TSLA", "NVDA"):
        submit(stack, account, symbol)
    return account


@pytest.fixture(scope="module")
def manager(browser, stack, account):
    context = sign_in(browser, stack.base, stack.logins["admin"])
    yield context
    context.close()


def address(account, name):
    return f"/console/accounts/{account}/{name}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_about_risk_are_accessible_fit_and_have_no_errors(manager, stack, account, name, theme):
    page, errors = watched(manager)
    manager.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    page.goto(address(account, name))
    assert violations(page) == []
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name.replace('/', '-')}-{width}-{theme}.png", full_page=True)
    assert errors == []
    page.close()


def test_text_in_controls_never_runs(manager, account):
    page, errors = watched(manager)
    for name in PAGES:
        page.goto(address(account, name))
        assert "broken" not in page.title()
    expect(page.locator("#main").get_by_text(XSS).first).to_be_visible()
    assert errors == []
    page.close()


def test_a_risk_managers_day(manager, stack, account):
    page, errors = watched(manager)
    a_risk_managers_day(page, stack, account)

    assert page.locator(".usage .bar .used").count() >= 4
    assert errors == []
    page.close()


def test_the_state_follows_what_others_do_without_loading_the_page(manager, stack, account):
    page, errors = watched(manager)
    page.goto(address(account, "risk"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    page.get_by_label("Reason").fill("half a sen")
    page.get_by_role("heading", name="Risk").click()
    control(stack, account, "PUT", "", {"trading_state": "REDUCING", "reason": "by the API"})

    expect(page.locator("[data-part=state]")).to_contain_text("by the API")
    expect(page.get_by_role("button", name="Reducing")).to_have_attribute("aria-pressed", "true")
    assert page.get_by_label("Reason").input_value() == "half a sen"
    control(stack, account, "DELETE")
    assert errors == []
    page.close()


def test_a_page_is_read_once_at_a_time_and_once_more_for_what_came_meanwhile(manager, account):
    page, errors = watched(manager)
    page.goto(address(account, "risk"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")

    def read_twice() -> bool:
        """A reading may be under way, whose end is the first, and an event of the account be a reason for one more."""
        read = page.evaluate(READ_THREE_TIMES)
        assert read["most"] == 1
        return read["total"] in (2, 3)

    eventually(read_twice, 240)  # a busy machine reads for so long that each event finds a reading under way
    assert errors == []
    page.close()


def test_enter_in_the_reason_of_a_symbol_changes_nothing(manager, stack, account):
    page = manager.new_page()
    page.goto(address(account, "risk/symbols/NVDA"))
    page.get_by_label("Reason").fill("half a sen")
    page.get_by_label("Reason").press("Enter")

    expect(page.get_by_label("Reason")).to_have_value("half a sen")
    assert control(stack, account, "GET", "/symbols/NVDA")["status"] == 404
    page.close()


def test_the_overview_counts_on_and_moves_nothing(manager, stack, account):
    page, errors = watched(manager)
    page.goto(address(account, "orders"))
    page.keyboard.press("g")
    page.keyboard.press("v")
    page.wait_for_url("**/overview")
    expect(page.locator("#read-at")).to_contain_text("s ago")
    page.evaluate(MEASURE_SHIFT)
    before = int(page.locator("[data-part=figures] dd").first.inner_text().split()[0])
    submit(stack, account, "AMD", {"Market": {"quantity": "1"}})

    expect(page.locator("[data-part=figures] dd").first).to_contain_text(str(before + 1))
    assert page.evaluate("window.shift") == 0
    assert errors == []
    page.close()


def test_a_stream_that_opens_is_counted_and_drawn_on_the_overview(manager, stack):
    account = new_account(stack, "followed")
    page, errors = watched(manager)
    page.goto(address(account, "overview"))
    figure, plot = page.locator("[data-state=streams] dd"), page.locator("[data-plot=streams]")
    expect(figure).to_contain_text("0 gRPC, 0 server-sent")
    expect(plot.locator("[data-note]")).to_have_text("now 0, at most 0")
    other = manager.new_page()
    other.goto(address(account, "orders"))

    expect(figure).to_contain_text("0 gRPC, 1 server-sent", timeout=PATIENCE_MS)
    expect(plot.locator("[data-note]")).to_have_text("now 1, at most 1", timeout=PATIENCE_MS)
    expect(plot.locator("[data-bar]").last).to_have_attribute("data-bar", "1")
    other.close()
    expect(plot.locator("[data-note]")).to_have_text("now 0, at most 1", timeout=PATIENCE_MS)
    assert errors == []
    page.close()


def test_figures_that_can_no_longer_be_read_are_greyed_and_say_so(manager, account):
    page = manager.new_page()
    page.clock.install()
    page.goto(address(account, "overview"))
    page.route("**/overview", lambda route: route.abort())
    page.clock.run_for(130_000)

    expect(page.locator("#read-at")).to_have_text("not read for 2 min")
    expect(page.locator("main.is-stale")).to_have_count(1)
    page.close()
