"""The orders that the facts send, made of what the broker claims, and which claim a fact proves."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

import pytest

from tip_brokers.capabilities import DAY, GTC
from tip_brokers.protocol import Change, NewOrder
from tip_testing.broker_conformance.market import Market, new_client_order_id

PROTOCOL, BOUNDS = "protocol", "bounds"
"""What every adapter has to keep, whatever it claims: the verbs of `tip_brokers.protocol`, and bounded answers."""

STOPS = ("Stop", "StopLimit")
FAR_PERCENT = Decimal(50)
"""The trail of an order that does not fill."""

F = TypeVar("F", bound=Callable[..., Any])


def proves(claim: str) -> Callable[[F], F]:
    """The field of `Capabilities` that a fact is about."""

    def mark(fact: F) -> F:
        fact.proves = claim  # type: ignore[attr-defined]
        return fact

    return mark


class Scale(NamedTuple):
    """One unit of quantity, and prices far below and far above the market."""

    unit: Decimal = Decimal(1)
    low: Decimal = Decimal(1)
    high: Decimal | None = Decimal(1000)
    """None if nobody knows: then no Stop is sent, which might fill."""


class Orders:
    """Inherited by `Conformance`."""

    def scale(self, market: Market) -> Scale:  # noqa: ARG002 - a sandbox has one of its own
        return Scale()

    def went_direct(self, market: Market, sent: NewOrder) -> bool | None:  # noqa: ARG002
        """None if the broker under test does not show it."""
        return None

    def move(self, market: Market, price: Decimal) -> str | None:  # noqa: ARG002
        """Set the price of a symbol there; None if the broker under test lets nobody do that."""
        return None

    def resting(self, market: Market, quantity: str = "2") -> NewOrder:
        kind = "Limit" if "Limit" in market.can.kinds else "Market"
        return self.of_kind(market, market.resting, kind, quantity=quantity)

    def filling(self, market: Market, quantity: str = "3") -> NewOrder:
        return self.marketable(market, market.filling, quantity)

    def marketable(self, market: Market, symbol: str, quantity: str = "10") -> NewOrder:
        """A Market order, or where there is none a Limit far above the market."""
        if "Market" in market.can.kinds:
            return self.of_kind(market, symbol, "Market", quantity=quantity)
        high = self.scale(market).high
        if "Limit" not in market.can.kinds or high is None:
            pytest.skip("this broker claims no order that fills at once")
        return replace(self.of_kind(market, symbol, "Limit", quantity=quantity), limit_price=high)

    def of_kind(
        self, market: Market, symbol: str, kind: str, time_in_force: str | None = None, quantity: str = "2"
    ) -> NewOrder:
        """An order that does not fill at the market's price, unless it is a Market order."""
        unit, low, high = self.scale(market)
        limits = {"Limit": low, "StopLimit": high}
        stop = high if kind in STOPS else None
        if kind in STOPS and high is None:
            pytest.skip("without a latest price nobody knows what is far above it")
        time = time_in_force or time_for(market, kind)
        trail = FAR_PERCENT if kind == "TrailingStop" else None
        return NewOrder(
            new_client_order_id(), symbol, "BUY", kind, unit * Decimal(quantity), time, limits.get(kind), stop,
            trail_percent=trail,
        )  # fmt: skip

    def change(self, market: Market, kind: str, quantity: str = "7") -> Change:
        """Of an order of that kind."""
        like = self.of_kind(market, market.resting, kind, quantity=quantity)
        return Change(like.client_order_id, like.quantity, like.time_in_force, like.limit_price, like.stop_price)


def time_for(market: Market, kind: str) -> str:
    """A claimed time in force with which the order stays for as long as a fact takes."""
    claimed = market.can.kinds[kind]
    wanted = (DAY, GTC) if kind == "Market" else (GTC, DAY)
    return next((time for time in wanted if time in claimed), claimed[0])
