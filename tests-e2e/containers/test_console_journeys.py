"""The console through the ingress, in Chromium: TLS by our own authority, and four people's days."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error

from tip_testing.chromium import CHROMIUM, FLAGS, chromium, sign_in, trusting, watched
from tip_testing.console_journeys import (
    a_risk_managers_day,
    a_traders_day,
    an_administrators_day,
    an_operators_day,
    show_key,
)
from tip_testing.console_platform import ConsolePlatform

pytestmark = [
    pytest.mark.skipif(
        "glewlwyd" in os.environ.get("TIP_COMPOSE_FILES", ""), reason="in this run people sign in at glewlwyd"
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def platform(stack: Any) -> ConsolePlatform:
    return ConsolePlatform(local=stack.local, ca=stack.ca)


@pytest.fixture(scope="module")
def browser(platform: ConsolePlatform) -> Iterator[Browser]:
    flags = [trusting(platform.base, platform.ca)] if platform.ca else []
    with chromium(*flags) as started:
        yield started


@pytest.fixture
def person(browser: Browser, platform: ConsolePlatform) -> Iterator[BrowserContext]:
    """Somebody of the demo's organization, newly signed in."""
    context = sign_in(browser, platform.base, platform.local["login"])
    yield context
    context.close()


def test_a_traders_day(platform: ConsolePlatform, person: BrowserContext) -> None:
    page, errors = watched(person)
    account = platform.new_account("trader")
    show_key(page, account, platform.key())
    a_traders_day(page, account)

    assert errors == []


def test_a_risk_managers_day(platform: ConsolePlatform, person: BrowserContext) -> None:
    page, errors = watched(person)
    account = platform.new_account("risk")
    platform.call("PUT", f"/v1/controls/accounts/{account}/limits", {"max_open_orders": 4})
    a_risk_managers_day(page, platform, account)

    assert errors == []


def test_an_operators_day(platform: ConsolePlatform, person: BrowserContext) -> None:
    page, errors = watched(person)
    an_operators_day(page, platform, platform.account())

    assert errors == []


def test_an_administrators_day(platform: ConsolePlatform, person: BrowserContext) -> None:
    page, errors = watched(person)
    an_administrators_day(page, platform)

    assert errors == []


def test_a_browser_that_does_not_know_the_authority_shows_nothing(browser: Browser, platform: ConsolePlatform) -> None:
    if platform.ca is None:
        pytest.skip("there is no TLS here")
    stranger = browser.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS])
    with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
        stranger.new_page().goto(platform.base)
    stranger.close()
