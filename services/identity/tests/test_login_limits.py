"""Guessing passwords against the limits; `LOGIN_ATTEMPTS=10000` guesses as often, against the limits as shipped."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import Browser, HttpClient, Person, hidden
from tip_testing.platform_plugin import Platform

from .login_pages import person

ATTEMPTS = int(os.environ.get("LOGIN_ATTEMPTS", "300"))
AT_ONCE = 16
PER_ADDRESS = 20 if ATTEMPTS >= 1_000 else 5
PER_PERSON = 10 * PER_ADDRESS
"""A minute. Few attempts need low limits: two windows' worth of both must be less."""
TIMEOUT_S = 120

Send = Callable[[int], tuple[str, str]]


@pytest.fixture(scope="module")
def base(platform: Platform, serve: Any) -> Iterator[str]:
    """Behind a proxy that names the caller's address."""
    limit = {"LOGIN_RATE_LIMIT_PER_MINUTE": str(PER_ADDRESS)}
    environment = platform.web_environment("identity", PUBLIC_URL="http://localhost", TRUSTED_PROXIES="1", **limit)
    with serve(environment) as (address, _):
        yield address


@pytest.fixture
def alice(identity: IdentityFixtures, organization: Organization, base: str) -> Person:
    made = person(identity, organization)
    assert Browser(HttpClient(base)).set_password(made).status_code == 303
    return made


class Guessers:
    """Each has a page of its own, as a browser has."""

    def __init__(self, base: str) -> None:
        self._base, self._own = base, threading.local()

    def guess(self, address: str, email: str, password: str = "of nobody at all") -> int:
        session, form = self._page()
        data = {**form, "email": email, "password": password}
        headers = {"X-Forwarded-For": address}
        answer = session.post(
            f"{self._base}/login", data=data, headers=headers, timeout=TIMEOUT_S, allow_redirects=False
        )
        return answer.status_code

    def _page(self) -> tuple[requests.Session, dict[str, str]]:
        if not hasattr(self._own, "page"):
            session = requests.Session()
            self._own.page = session, hidden(session.get(f"{self._base}/login", timeout=TIMEOUT_S).text)
        found: tuple[requests.Session, dict[str, str]] = self._own.page
        return found


def attempts(base: str, send: Send) -> tuple[Counter[int], float]:
    """How often each status was answered, and how many minutes it took."""
    guessers, began = Guessers(base), time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = Counter(pool.map(lambda number: guessers.guess(*send(number)), range(ATTEMPTS)))
    return statuses, (time.monotonic() - began) / 60


def report(what: str, statuses: Counter[int], minutes: float) -> None:
    figures = f"{statuses[403]} tried, {statuses[429]} refused with 429, {statuses[503]} with 503"
    others = sum(statuses.values()) - statuses[403] - statuses[429] - statuses[503]
    os.write(1, f"\n{ATTEMPTS} attempts {what}: {figures}, {others} otherwise, {minutes * 60:.0f} s\n".encode())


def windows(minutes: float) -> int:
    """Quotas that may have been used up: one at the beginning, and what has come back since."""
    return int(minutes) + 2


@pytest.mark.parametrize(
    ("what", "send", "quota"),
    [
        ("from one address about many people", lambda number: ("192.0.2.1", f"p{number}@example.org"), PER_ADDRESS),
        (
            "from many addresses about one person",
            lambda number: (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", "one@example.org"),
            PER_PERSON,
        ),
        ("from one address about one person", lambda _: ("192.0.2.2", "two@example.org"), PER_ADDRESS),
    ],
    ids=["one address", "one person", "both"],
)
def test_guesses_beyond_the_limit_are_not_even_tried(base: str, what: str, send: Send, quota: int) -> None:
    statuses, minutes = attempts(base, send)

    report(what, statuses, minutes)
    assert set(statuses) <= {403, 429, 503}
    assert 0 < statuses[403] + statuses[503] <= quota * windows(minutes)
    assert statuses[429] >= ATTEMPTS - quota * windows(minutes) > 0


def test_one_address_that_guesses_does_not_keep_the_person_out(base: str, alice: Person) -> None:
    guessers = Guessers(base)
    refused = [guessers.guess("192.0.2.3", alice.email) for _ in range(PER_ADDRESS + 5)]

    assert refused[-1] == 429
    assert Guessers(base).guess("192.0.2.4", alice.email, alice.password) == 303
