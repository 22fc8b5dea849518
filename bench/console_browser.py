"""Pages in Chromium for the console's benchmark, of somebody who has signed in, and a bare one to compare with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tip_testing.chromium import sign_in

VIEWPORT: Any = {"width": 1280, "height": 800}
ROWS = 200
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def signed_in(browser: Browser, base: str, login: dict[str, str]) -> Any:
    """The cookies of somebody who has signed in."""
    context = sign_in(browser, base, login)
    cookies = context.storage_state()
    context.close()
    return cookies


class Visit:
    """A browser that has no page of ours yet; counts the bytes that come and the errors that its console shows."""

    def __init__(self, browser: Browser, base: str, cookies: Any = None) -> None:
        self.context: BrowserContext = browser.new_context(viewport=VIEWPORT, base_url=base, storage_state=cookies)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.bytes = 0
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        network = self.context.new_cdp_session(self.page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", self._finished)

    def load(self, path: str) -> float:
        """Milliseconds until everything is there."""
        self.page.goto(path, wait_until="load")
        self.page.wait_for_function(f"{LOADED} > 0")
        return float(self.page.evaluate(LOADED))

    def close(self) -> None:
        self.context.close()

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)

    def _finished(self, event: dict[str, Any]) -> None:
        self.bytes += int(event["encodedDataLength"])


class BareHandler(BaseHTTPRequestHandler):
    """A page of rows and nothing else."""

    body = (
        "<!doctype html><html lang=en><title>bare</title><link rel=icon href='data:,'><table>"
        + "".join(f"<tr><td>{number}<td>AAPL<td>BUY<td>accepted</tr>" for number in range(ROWS))
        + "</table></html>"
    ).encode()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def bare_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BareHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
