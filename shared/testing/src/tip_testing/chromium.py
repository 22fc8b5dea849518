"""Debian's Chromium, driven by playwright, and people who sign in to the console with it."""

import base64
import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CONNECT_TIMEOUT_S = 30
EXPECTED_MS = 60_000
"""Waited for what a page is to show: a slow machine is no failure."""


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """For one file of tests: while playwright runs in a thread, `asyncio.run` does not, in whatever test comes next."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=EXPECTED_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        yield browser
        browser.close()


def trusting(base: str, ca: Path) -> str:
    """The flag by which Chromium takes the certificate of this address, after its authority was checked here."""
    key = x509.load_der_x509_certificate(_verified_certificate(base, ca)).public_key()
    hashed = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    return f"--ignore-certificate-errors-spki-list={base64.b64encode(hashed).decode()}"


def _verified_certificate(base: str, ca: Path) -> bytes:
    address = urlsplit(base)
    where = (str(address.hostname), address.port or 443)
    context = ssl.create_default_context(cafile=str(ca))
    with (
        socket.create_connection(where, timeout=CONNECT_TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=address.hostname) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


def sign_in(browser: Browser, base: str, login: dict[str, str]) -> BrowserContext:
    """By hand, as a person would."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=base)
    context.set_default_timeout(EXPECTED_MS)
    page = context.new_page()
    page.goto("/")
    page.fill("#email", login["email"])
    page.fill("#password", login["password"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("button[value=allow]").click()
    page.wait_for_url("**/console")
    page.close()
    return context


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page, and the errors that its console shows."""
    page, errors = context.new_page(), list[str]()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors
