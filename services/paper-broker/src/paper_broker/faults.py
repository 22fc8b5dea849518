"""Faults on request: by symbol (`SIM.…`) or, for load tests, by probability. Chance depends on seed and order alone."""

import asyncio
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

from paper_broker.model import Event, Unprocessable
from paper_broker.model.prices import chance

REJECT = "SIM.REJECT"
RATE_LIMIT = "SIM.RATE_LIMIT"
SLOW = "SIM.SLOW"
TIMEOUT_AFTER_ACCEPT = "SIM.TIMEOUT_AFTER_ACCEPT"
ERROR500_AFTER_ACCEPT = "SIM.ERROR500_AFTER_ACCEPT"
DUPLICATE_EVENT = "SIM.DUPLICATE_EVENT"


class RateLimited(Exception):
    """429 with Retry-After; nothing was done."""


class Unavailable(Exception):
    """503; nothing was done."""


class FailedAfterAccept(Exception):
    """500, although everything was done."""


class Cut(Exception):
    """The connection is to be cut without an answer."""


class BadFaults(Exception):
    """Settings of faults that cannot be used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Probabilities are per change of an order (create, replace, cancel) unless they say otherwise."""

    timeout_after_accept: float = 0.0
    error_after_accept: float = 0.0
    slow: float = 0.0
    cut_before_accept: float = 0.0
    unavailable: float = 0.0
    rate_limited: float = 0.0
    reads_unavailable: float = 0.0  # per read under /v2/orders
    duplicate_event: float = 0.0  # per trade update
    accept_duplicate_client_order_ids: bool = False
    hang_seconds: float = 30.0
    slow_seconds: float = 2.0
    rate_limit_first: int = 2

    @property
    def any_chance(self) -> bool:
        return any(getattr(self, name) for name in PROBABILITIES)

    def changed(self, wanted: dict[str, Any]) -> "Settings":
        for name, value in wanted.items():
            _check(name, value)
        return replace(self, **wanted)


PROBABILITIES = tuple(
    item.name for item in fields(Settings) if item.type is float and not item.name.endswith("_seconds")
)


def _check(name: str, value: object) -> None:
    known = {item.name: item.type for item in fields(Settings)}
    if name not in known:
        raise BadFaults(f"unknown fault {name}")
    if known[name] is bool:
        fits = isinstance(value, bool)
    else:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        fits = fits and (name not in PROBABILITIES or value <= 1)  # type: ignore[operator]
        fits = fits and (known[name] is float or isinstance(value, int))
    if not fits:
        raise BadFaults(f"{name} cannot be {value!r}")


class Faults:
    """Decides what goes wrong. `attempt` numbers the sends of one thing, so a retry draws again."""

    def __init__(self, seed: str, settings: Settings) -> None:
        self._seed = seed
        self._initial = settings
        self.settings = settings
        self._attempts: Counter[str] = Counter()

    def put(self, wanted: dict[str, Any]) -> Settings:
        """Replace the settings: what is not named goes back to its start value."""
        self.settings = self._initial.changed(wanted)
        self._attempts.clear()
        return self.settings

    def attempt(self, symbol: str, key: str) -> int:
        if not self.settings.any_chance and symbol != RATE_LIMIT:
            return 1
        self._attempts[key] += 1
        return self._attempts[key]

    def before(self, symbol: str, key: str, attempt: int) -> None:
        """Refuse a change before it is processed."""
        if symbol == RATE_LIMIT and attempt <= self.settings.rate_limit_first:
            raise RateLimited
        if symbol == REJECT:
            raise Unprocessable("order rejected by script")
        if not self.settings.any_chance:
            return
        if self._strikes("rate_limited", key, attempt):
            raise RateLimited
        if self._strikes("unavailable", key, attempt):
            raise Unavailable
        if self._strikes("cut_before_accept", key, attempt):
            raise Cut

    async def after(self, symbol: str, key: str, attempt: int) -> None:
        """Spoil the answer to a change that is already durable."""
        if symbol == SLOW or self._strikes("slow", key, attempt):
            await asyncio.sleep(self.settings.slow_seconds)
        if symbol == TIMEOUT_AFTER_ACCEPT or self._strikes("timeout_after_accept", key, attempt):
            await asyncio.sleep(self.settings.hang_seconds)
            raise Cut
        if symbol == ERROR500_AFTER_ACCEPT or self._strikes("error_after_accept", key, attempt):
            raise FailedAfterAccept

    def before_read(self, path: str) -> None:
        if self.settings.reads_unavailable and self._strikes("reads_unavailable", path, self.attempt("", path)):
            raise Unavailable

    def copies(self, event: Event) -> int:
        """How often a trade update is sent."""
        twice = event.order.symbol == DUPLICATE_EVENT or self._strikes("duplicate_event", str(event.id), 1)
        return 2 if twice else 1

    def _strikes(self, name: str, key: str, attempt: int) -> bool:
        probability: float = getattr(self.settings, name)
        return probability > 0 and chance(self._seed, name, key, attempt) < probability
