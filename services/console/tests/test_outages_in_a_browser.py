"""What somebody sees while the stream gateway, Postgres or identity is away, and that it ends by itself."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from browser_pages import browser, sign_in
from playwright.sync_api import expect
from separate_platform import separate_platform

from console.routes.common import SESSION

__all__ = ["browser"]
pytestmark = pytest.mark.timeout(300)
PATIENCE_MS = 60_000
DATABASE_AWAY = re.compile("The database does not answer|The (log|keys of tokens) cannot be read")
PAGES = ("overview", "orders", "ticket", "risk", "risk/limits", "positions", "settings", "audit")
OTHERS = ("/console", "/console/people", "/console/keys", "/console/audit-log", "/console/outbox", "/console/connect")


@pytest.fixture(scope="module")
def parts():
    with separate_platform() as made:
        yield made


@pytest.fixture(scope="module")
def desk(browser, parts):
    parts.submit("AAPL")
    context = sign_in(browser, parts.base, parts.login)
    yield context
    context.close()


@pytest.fixture
def opened(desk):
    """Opens pages; nothing in them may fail."""
    pages, faults = [], []

    def open_page(path):
        page = desk.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        pages.append(page)
        return page, page.goto(path)

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


def address(parts, name):
    return f"/console/accounts/{parts.account}/{name}"


def live(page):
    expect(page.locator("#stream")).to_have_attribute("data-state", "live", timeout=PATIENCE_MS)


def lost(page):
    expect(page.locator("#stream")).to_have_attribute("data-state", "lost", timeout=PATIENCE_MS)


def says(page, words):
    expect(page.locator("#away")).to_contain_text(words, timeout=PATIENCE_MS)


def says_nothing(page):
    expect(page.locator("#away")).to_be_empty(timeout=PATIENCE_MS)


def check_says_what_is_away(page, answer, words):
    assert answer.status == 503
    expect(page.locator("h1")).to_have_text("Not available")
    expect(page.locator(".message")).to_contain_text(words)
    expect(page.locator("#reloads")).to_be_visible()
    assert "Traceback" not in page.content()


def check_no_page_fails(context, parts):
    for path in (*OTHERS, *(address(parts, name) for name in PAGES)):
        answer = context.request.get(path)
        assert answer.status in (200, 503), (path, answer.status)
        assert "Traceback" not in answer.text()


def make_token_due(context, parts):
    """As if somebody had been away for an hour."""
    [cookie] = [cookie["value"] for cookie in context.cookies() if cookie["name"] == SESSION]
    sessions = parts.sessions()
    session = sessions.find(cookie)
    sessions.put(cookie, replace(session, tokens=replace(session.tokens, expires_at=datetime.now(UTC))))


def test_without_the_stream_gateway_pages_say_so_and_catch_up(opened, parts):
    page, _ = opened(address(parts, "orders"))
    live(page)
    with parts.without("stream-gateway"):
        lost(page)
        says(page, "The event stream (stream-gateway) does not answer")
        intent = parts.submit("NFLX")
        other, answer = opened(address(parts, "orders"))
        assert answer.status == 200
        expect(other.locator(f"[data-intent='{intent}']")).to_contain_text("NFLX")
        says(other, "The event stream (stream-gateway) does not answer")
        assert page.locator(f"[data-intent='{intent}']").count() == 0
        overview, answer = opened(address(parts, "overview"))
        assert answer.status == 200, "all else on it is known"
        expect(overview.locator("[data-state=streams]")).to_contain_text("cannot be counted now")

    expect(overview.locator("[data-state=streams]")).to_contain_text("server-sent", timeout=PATIENCE_MS)
    for shown in (page, other):
        live(shown)
        says_nothing(shown)
        expect(shown.locator(f"[data-intent='{intent}']")).to_contain_text("accepted", timeout=PATIENCE_MS)


def test_without_postgres_pages_say_so_and_nobody_is_signed_out(opened, desk, parts):
    orders, _ = opened(address(parts, "orders"))
    risk, _ = opened(address(parts, "risk"))
    live(orders)
    live(risk)
    with parts.without("postgres"):
        lost(orders)
        says(orders, DATABASE_AWAY)
        says(risk, DATABASE_AWAY)
        other, answer = opened(address(parts, "orders?status=open"))
        check_says_what_is_away(other, answer, DATABASE_AWAY)
        check_no_page_fails(desk, parts)
        make_token_due(desk, parts)
        check_no_page_fails(desk, parts)

    expect(other.locator("h1")).to_have_text("Orders", timeout=PATIENCE_MS)
    assert other.url.endswith("?status=open")
    for shown in (orders, risk, other):
        live(shown)
        says_nothing(shown)
    intent = parts.submit("ORCL")
    expect(orders.locator(f"[data-intent='{intent}']")).to_contain_text("ORCL", timeout=PATIENCE_MS)


def test_without_identity_pages_say_so_and_nobody_is_signed_out(opened, browser, desk, parts):
    risk, _ = opened(address(parts, "risk"))
    live(risk)
    stranger = browser.new_context(base_url=parts.base).new_page()
    with parts.without("identity"):
        says(risk, "The service for sign-in and people (identity) does not answer")
        other, answer = opened(address(parts, "orders"))
        check_says_what_is_away(other, answer, "identity")
        check_says_what_is_away(stranger, stranger.goto("/console"), "identity")
        make_token_due(desk, parts)
        check_no_page_fails(desk, parts)

    expect(other.locator("h1")).to_have_text("Orders", timeout=PATIENCE_MS)
    expect(stranger.locator("#email")).to_be_visible(timeout=PATIENCE_MS)
    stranger.context.close()
    live(risk)
    says_nothing(risk)
