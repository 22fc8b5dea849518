"""The pictures of the manual: which page of the console each is of, and what is done there before it is taken."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask
from playwright.sync_api import Browser, Page, expect
from werkzeug.routing import MapAdapter

from console import routes

IMAGES = Path(__file__).parents[3] / "docs" / "manual" / "images"
THEMES = {"light": "", "dark": "-dark"}
SIZES = {"": (1200, 700), "-phone": (390, 680)}
"""By what their files' names end with: how wide, and how high at most."""
BOTTOM = "Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + scrollY)"
WITHOUT_GUTTER = "document.documentElement.style.scrollbarGutter = 'auto'"
BELOW_HEADER = """(shown) => {
  const header = document.querySelector("header.top")?.offsetHeight ?? 0;
  const { top, bottom } = shown.getBoundingClientRect();
  if (bottom > innerHeight) scrollBy(0, top - header - 12);
}"""
AS_WEBP = """async (png) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const { width, height } = picture;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { alpha: false });
  context.drawImage(picture, 0, 0);
  const data = context.getImageData(0, 0, width, height);
  const pixels = new Uint32Array(data.data.buffer);
  const counts = new Map();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 64).map(([colour]) => colour);
  const part = (a, b, shift) => (((a >>> shift) & 255) - ((b >>> shift) & 255)) ** 2;
  const distance = (a, b) => part(a, b, 0) + part(a, b, 8) + part(a, b, 16);
  const nearest = (colour) => common.reduce((a, b) => distance(colour, b) < distance(colour, a) ? b : a);
  const drawn = new Map([...counts.keys()].map((colour) => [colour, nearest(colour)]));
  pixels.forEach((colour, place) => { pixels[place] = drawn.get(colour); });
  context.putImageData(data, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality: 1 })).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""
"""In its 64 most common colours: the others are edges of letters. With quality 1 Chromium's encoder loses nothing."""


@dataclass(frozen=True)
class Shot:
    name: str
    endpoint: str
    """Of the page, in the console's routing table."""
    prepare: Callable[[Page], None] | None = None
    query: str = ""
    is_live: bool = False
    """Of the live account."""
    shows: str = "h1"
    """What is scrolled to on a phone."""


def open_step(page: Page) -> None:
    page.locator(".timeline summary").first.click()


def check_order(page: Page) -> None:
    fields = {"symbol": "NVDA", "quantity": "5", "limit_price": "12.50", "tags": "momentum"}
    for name, value in fields.items():
        page.fill(f"[name={name}]", value)
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".state.good").first).to_have_text("Allowed")


def ask_for_a_halt(page: Page) -> None:
    page.get_by_label("Reason").fill("prices look wrong")
    page.get_by_role("button", name="Halt and cancel").click()
    expect(page.locator("button.danger")).to_be_visible()


def fill_in_key(page: Page) -> None:
    page.fill("[name=name]", "overnight bot")
    for label in ("intent:read", "intent:edit", "main desk"):
        page.locator("label", has_text=label).locator("input").first.check()
    page.fill("[name=symbols]", "AAPL, MSFT")
    page.fill("[name=max_notional_per_day]", "25000")


def create_key(page: Page) -> None:
    """Covered in the picture: nobody should learn to paste keys from documents."""
    fill_in_key(page)
    page.get_by_role("button", name="Create key").click()
    shown = page.locator("code.shown")
    shown.evaluate("(node) => { node.textContent = `${node.textContent.slice(0, 10)}${'•'.repeat(32)}`; }")


def verify_statement(page: Page) -> None:
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator("[data-verdict=verified]")).to_be_visible()


SHOTS = (
    Shot("sign-in", "sign_in.begin"),
    Shot("accounts", "accounts.show_accounts"),
    Shot("overview", "overview.show_overview"),
    Shot("orders", "orders.show_orders"),
    Shot("order", "orders.show_order", open_step),
    Shot("ticket", "ticket.show_ticket", check_order, shows=".checks"),
    Shot("positions", "holdings.show_positions"),
    Shot("risk", "risk.show_risk"),
    Shot("limits", "risk.show_limits"),
    Shot("symbol", "symbols.show_symbol"),
    Shot("refusals", "records.show_refusals"),
    Shot("history", "records.show_history"),
    Shot("question", "risk.show_risk", ask_for_a_halt, is_live=True),
    Shot("audit", "audit.show_audit", verify_statement, shows="[data-verdict]"),
    Shot("connect", "administration.show_connect"),
    Shot("connect-paper", "administration.show_connect", query="?broker=paper"),
    Shot("settings", "administration.show_settings"),
    Shot("credential", "credentials.show_credential"),
    Shot("people", "people.show_people"),
    Shot("keys", "keys.show_keys"),
    Shot("key", "keys.show_key"),
    Shot("new-key", "keys.show_new_key", fill_in_key),
    Shot("created-key", "keys.show_new_key", create_key),
    Shot("audit-log", "audit_log.show_audit_log"),
    Shot("outbox", "outbox.show_outbox"),
)
WITHOUT_PICTURE = {
    "sign_in.show_root": "leads to the accounts",
    "sign_in.complete": "leads to the page that was wanted",
    "sign_in.show_signed_out": "one sentence",
    "sign_in.show_static": "style and script",
    "symbols.find_symbol": "leads to the page of a symbol",
    "audit_log.export_audit_log": "a file",
    "audit.download_statement": "a file",
    "manual.show_first_page": "the manual itself",
    "manual.show_page": "the manual itself",
    "operations.live": "for whoever runs it",
    "operations.ready": "for whoever runs it",
    "operations.exposed": "for whoever runs it",
}
"""Addresses that can be read and are in no picture, and why."""


def file_names(shot: Shot) -> list[str]:
    return [f"{shot.name}{size}{theme}.webp" for size in SIZES for theme in THEMES.values()]


@cache
def routing() -> MapAdapter:
    app = Flask("console", static_folder=None)
    routes.register(app)
    return app.url_map.bind("")


def readable() -> set[str]:
    """The endpoints that a browser can open."""
    return {rule.endpoint for rule in routing().map.iter_rules() if "GET" in (rule.methods or ())}


def address(shot: Shot, values: dict[str, Any]) -> str:
    [rule] = [rule for rule in routing().map.iter_rules(shot.endpoint) if "GET" in (rule.methods or ())]
    needed = {name: values[name] for name in rule.arguments}
    return routing().build(shot.endpoint, needed) + shot.query


def open_page(page: Page, shot: Shot, path: str) -> None:
    page.goto(path)
    if page.locator("#stream").count():
        expect(page.locator("#stream")).to_have_attribute("data-state", "live")
    if shot.prepare:
        shot.prepare(page)


def take(page: Page, shot: Shot, size: str) -> bytes:
    """The page at this size, no higher than what is on it."""
    width, most = SIZES[size]
    page.evaluate(WITHOUT_GUTTER)
    page.set_viewport_size({"width": width, "height": most})
    page.set_viewport_size({"width": width, "height": min(most, page.evaluate(BOTTOM))})
    page.evaluate("scrollTo(0, 0)")
    page.locator(shot.shows).first.evaluate(BELOW_HEADER)
    return page.screenshot(animations="disabled", caret="hide")


def as_webp(browser: Browser, png: bytes) -> bytes:
    page = browser.new_page()
    made: str = page.evaluate(AS_WEBP, base64.b64encode(png).decode())
    page.close()
    return base64.b64decode(made)
