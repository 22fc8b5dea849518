"""The console in Chromium: every page in both themes and three widths, live tables, and what attackers try."""

import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from browser_pages import WIDTHS, browser, sign_in, violations, watched
from playwright.sync_api import expect

from tip_local.home import Home
from tip_testing.commands import batch, limit
from tip_testing.console_journeys import a_traders_day, show_key

__all__ = ["browser"]
XSS = "<img src=x onerror=document.title='broken'>"
PAGES = ("orders", "ticket", "positions")
MEASURE_SHIFT = """() => {
  window.shift = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
    .observe({ type: "layout-shift" });
}"""
PLACES = """() => {
  const head = document.querySelector("#orders thead").getBoundingClientRect().bottom;
  return [...document.querySelectorAll("#orders tbody tr")].map((row) => row.getBoundingClientRect().top - head);
}"""
SHOW = """(row, texts) => ["time", ".state"].forEach((name, place) => {
  row.querySelector(name).textContent = texts[place];
})"""
OVERDRAWN = """(row) => [...row.children]
  .filter((cell) => getComputedStyle(cell).overflowX === "visible" && cell.scrollWidth > cell.clientWidth)
  .map((cell) => cell.textContent)"""
SIZES = "performance.getEntries().filter((one) => 'transferSize' in one).map((one) => [one.name, one.decodedBodySize])"
SHOTS = os.environ.get("CONSOLE_SCREENSHOTS")
"""A folder to keep screenshots in."""


@pytest.fixture(scope="module")
def desk(browser, stack):
    """Somebody with a key, orders and controls with text that would run if it were markup."""
    symbol = f"/v1/controls/accounts/{stack.account()}/symbols/TSLA"
    stack.call("PUT", symbol, {"manually_disabled": True, "manual_reason": XSS})
    context = sign_in(browser, stack.base, stack.logins["admin"])
    page = context.new_page()
    show_key(page, stack.account(), stack.key())
    page.close()
    submit(stack, "AAPL", tags=["desk"])
    yield context
    context.close()


def address(stack, name):
    return f"/console/accounts/{stack.account()}/{name}"


def submit(stack, symbol, side="BUY", spec=None, **more):
    payload = {"symbol": symbol, "order_side": side, "spec": spec or {"Limit": {"quantity": "7", "limit_price": "1"}}}
    command = {"command": {"type": "CREATE", "payload": {**payload, **more}}}
    return stack.call("POST", f"/v1/accounts/{stack.account()}/intents", command, key=stack.key())


def every_page(stack):
    newest = stack.call("GET", f"/v1/accounts/{stack.account()}/orders?order=desc&limit=1")["data"][0]["intent_id"]
    named = {name: address(stack, name) for name in PAGES}
    return {"accounts": "/console", **named, "order": address(stack, f"orders/{newest}")}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible_fits_and_has_no_errors(desk, stack, theme):
    page, errors = watched(desk)
    desk.add_cookies([{"name": "tip_console_theme", "value": theme, "url": stack.base, "httpOnly": True}])
    for name, path in every_page(stack).items():
        page.goto(path)
        assert violations(page) == [], name
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            if SHOTS:
                page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{theme}.png")
    assert errors == []
    page.close()


def test_the_first_page_is_small_and_nothing_comes_from_outside(desk, stack):
    page = desk.new_page()
    page.goto(address(stack, "orders"), wait_until="load")
    read = (
        "performance.getEntries().filter((one) => 'transferSize' in one).map((one) => [one.name, one.decodedBodySize])"
    )
    sizes = dict(page.evaluate(read))

    assert len(sizes) > 3 and all(url.startswith(stack.base) for url in sizes)
    assert sum(sizes.values()) < 300_000
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.evaluate("document.cookie") == ""
    page.close()


def test_orders_come_and_change_without_loading_the_page(desk, stack):
    page, errors = watched(desk)
    page.goto(address(stack, "orders"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    intent = submit(stack, "MSFT", spec={"Market": {"quantity": "2"}})["intent_id"]
    row = page.locator(f"[data-intent='{intent}']")

    expect(row).to_contain_text("MSFT")
    expect(row).to_contain_text("filled")
    assert row.locator("[data-cell=filled]").inner_text() == "2"
    assert errors == []
    page.close()


def test_rows_that_change_move_nothing(desk, stack):
    page = desk.new_page()
    intent = submit(stack, "AAPL", spec={"Limit": {"quantity": "2", "limit_price": "1"}})["intent_id"]
    page.goto(address(stack, "orders"))
    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("accepted")
    page.wait_for_timeout(300)
    page.evaluate(MEASURE_SHIFT)
    cancel = {"command": {"type": "CANCEL", "payload": {"ref_intent_id": intent}}}
    stack.call("POST", f"/v1/accounts/{stack.account()}/intents", cancel, key=stack.key())

    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("canceled")
    page.wait_for_timeout(300)
    assert page.evaluate("window.shift") == 0
    page.close()


def test_orders_that_come_move_nothing_and_wait_while_one_is_pointed_at(desk, stack):
    page, errors = watched(desk)
    intent = submit(stack, "AAPL")["intent_id"]
    page.goto(address(stack, "orders"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("accepted")
    page.evaluate(MEASURE_SHIFT)
    shown = [submit(stack, "AAPL")["intent_id"] for _ in range(3)]
    for intent in shown:
        expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("accepted")
    page.wait_for_timeout(500)
    assert page.evaluate("window.shift") == 0

    page.locator(f"[data-intent='{shown[0]}']").hover()
    waiting = submit(stack, "AAPL")["intent_id"]
    expect(page.locator("#count")).to_contain_text("1 new above")
    assert page.locator(f"[data-intent='{waiting}']").count() == 0
    page.mouse.move(1, 1)
    expect(page.locator(f"[data-intent='{waiting}']")).to_contain_text("accepted")
    assert errors == []
    page.close()


def test_however_many_orders_come_each_stands_below_the_one_before_it(desk, stack):
    made = stack.call("POST", "/v1/accounts", {"name": "many orders", "broker": "paper", "environment": "paper"})["id"]
    page, errors = watched(desk)
    page.goto(f"/console/accounts/{made}/orders")
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    refused = batch(*[limit("SIM.REJECT", "1", "1.00")] * 60)
    for shown in (60, 100, 100):
        answer = stack.call("POST", f"/v1/accounts/{made}/intents/batch", refused, key=stack.key())
        newest = answer["results"][-1]["action"]["intent_id"]
        expect(page.locator("#orders tbody tr").first).to_have_attribute("data-intent", newest)
        assert page.evaluate(PLACES) == [33 * place for place in range(shown)]
        assert page.evaluate("document.querySelector('#orders table').offsetHeight") == 28 + 33 * shown
        page.evaluate(MEASURE_SHIFT)  # from the first on, which makes the table appear

    page.wait_for_timeout(500)
    assert page.evaluate("window.shift") == 0
    assert errors == []
    page.close()


@pytest.mark.parametrize("width", [320, *WIDTHS])
def test_nothing_in_the_table_is_drawn_over_its_neighbour_or_out_of_reach(desk, stack, width):
    page = desk.new_page()
    page.set_viewport_size({"width": width, "height": 800})
    long = {"Limit": {"quantity": "123456789", "limit_price": "1234567.89"}}
    intent = submit(stack, "S" * 32, spec=long, tags=["as-long-as-a-tag-may-be-at-most"])["intent_id"]
    page.goto(address(stack, "orders"))
    row = page.locator(f"[data-intent='{intent}']")
    for words in ("partially filled", "outcome unknown", "pending replace"):
        row.evaluate(SHOW, ["17 Nov 14:02", words])

        assert row.evaluate(OVERDRAWN) == []
    assert row.evaluate("(row) => row.offsetWidth") == page.locator("#orders table").evaluate(
        "(all) => all.offsetWidth"
    )
    page.close()


def test_a_tab_whose_stream_breaks_says_so_and_catches_up(desk, stack):
    page = desk.new_page()
    page.goto(address(stack, "orders"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    gateways = [one["pid"] for one in Home(stack.home).state()["processes"] if one["name"] == "stream-gateway"]
    os.kill(gateways[0], signal.SIGKILL)
    expect(page.locator("#stream")).to_have_attribute("data-state", "lost")
    expect(page.locator("#stream-state")).to_contain_text("connection lost")
    intent = submit(stack, "NFLX")["intent_id"]

    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("NFLX")
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    page.close()


def test_a_pause_holds_rows_back_until_it_ends(desk, stack):
    page = desk.new_page()
    page.goto(address(stack, "orders"))
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    page.keyboard.press("p")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    intent = submit(stack, "ORCL")["intent_id"]
    expect(page.locator("#pause")).to_contain_text("waiting")
    assert page.locator(f"[data-intent='{intent}']").count() == 0
    page.keyboard.press("p")

    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("ORCL")
    page.close()


def test_a_trader_checks_places_and_cancels_with_the_keyboard(desk, stack):
    page, errors = watched(desk)
    a_traders_day(page, stack.account())

    assert errors == []
    page.close()


def test_what_could_not_be_read_is_read_again_though_nothing_else_happens(desk, stack):
    intent = submit(stack, "INTC")["intent_id"]
    page, failed = desk.new_page(), []
    page.goto(address(stack, f"orders/{intent}"))
    expect(page.locator("[data-part=order]")).to_contain_text("accepted")

    def fail_once(route):
        is_first = route.request.resource_type == "fetch" and not failed
        failed.append(route.request.url) if is_first else None
        route.abort() if is_first else route.continue_()

    page.route(f"**/orders/{intent}", fail_once)
    command = {"command": {"type": "CANCEL", "payload": {"ref_intent_id": intent}}}
    stack.call("POST", f"/v1/accounts/{stack.account()}/intents", command, key=stack.key())

    expect(page.locator("[data-part=order]")).to_contain_text("canceled")
    assert failed
    page.close()


def test_text_of_others_never_runs(desk, stack):
    page, errors = watched(desk)
    page.goto(address(stack, "ticket"))
    page.fill("[name=symbol]", "TSLA")
    page.fill("[name=quantity]", "1")
    page.fill("[name=limit_price]", "1")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#main").get_by_text(XSS)).to_be_visible()

    assert "broken" not in page.title()
    assert [error for error in errors if "422" not in error] == []
    page.close()


class Evil(BaseHTTPRequestHandler):
    """Another site, which frames the console and sends its forms."""

    target = ""

    def do_GET(self):
        body = (
            f'<iframe id="frame" src="{self.target}"></iframe>'
            f'<form id="form" method="post" action="{self.target}/sign-out"><button>win</button></form>'
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Quiet."""


def test_another_site_can_neither_frame_it_nor_send_its_forms(desk, stack):
    Evil.target = f"{stack.base}/console"
    server = HTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = desk.new_page()
    page.goto(f"http://localhost:{server.server_port}/")
    page.wait_for_timeout(500)
    framed = "".join(frame.content() for frame in page.frames[1:])
    page.locator("#form button").click()
    page.wait_for_load_state()

    assert "paper account" not in framed
    assert "Signed out" not in page.content()
    page.goto(f"{stack.base}/console")
    expect(page.locator("h1")).to_have_text("Accounts")
    server.shutdown()
    server.server_close()
    page.close()
