"""What the suite needs of a broker under test, and a listener to its updates."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol
from uuid import uuid4

from tip_brokers.capabilities import Capabilities
from tip_brokers.protocol import (
    Broker,
    BrokerError,
    NewOrder,
    Order,
    OrderUpdate,
)
from tip_testing.waiting import eventually

SOON_SECONDS = 30.0
_ZERO = Decimal(0)


class Market(Protocol):
    """What the suite needs of a broker under test. A symbol that cannot be had is None, and its facts are left out."""

    can: Capabilities
    """What the broker claims: it is held to that, and what it does not claim is left out."""
    broker: Broker
    stranger: Broker | None
    """The same broker with a key pair that it does not know."""
    resting: str
    """Accepts orders and fills nothing."""
    filling: str
    """Fills a market order at once."""
    halving: str | None
    """Fills half of an order at once and leaves the rest open."""
    refusing: str | None
    """Refuses orders."""
    silent: str | None
    """Does what is requested and never answers."""
    doubling: str | None
    """Sends every update twice."""
    late: str | None
    """Fills an order only after its cancel was taken in."""
    at: Callable[[str], Broker] | None
    """The same adapter at an HTTP address of the suite's own; None if it does not speak HTTP."""
    full_pages: Mapping[str, Callable[[int], bytes]]
    """Of listings that have pages (`open_orders`, `orders`, `executions`): the body of the nth; there is another."""


def symbols_of(market: Market) -> list[str]:
    named = (
        market.resting,
        market.filling,
        market.halving,
        market.refusing,
        market.silent,
        market.doubling,
        market.late,
    )
    return [symbol for symbol in named if symbol is not None]


def new_client_order_id() -> str:
    return f"tip-{uuid4().hex}"


def order(symbol: str, quantity: str = "10", **more: Any) -> NewOrder:
    return NewOrder(new_client_order_id(), symbol, "BUY", "Market", Decimal(quantity), "DAY", **more)


def limit(symbol: str, price: str = "1", quantity: str = "10") -> NewOrder:
    return NewOrder(new_client_order_id(), symbol, "BUY", "Limit", Decimal(quantity), "GTC", Decimal(price))


@dataclass
class Listener:
    """Listens to an account in a thread, and adds up fills as the platform does: each execution once."""

    broker: Broker
    counts_executions: bool = True
    """Otherwise an order's total says what is filled."""
    updates: list[OrderUpdate] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._ready = threading.Event()
        thread = threading.Thread(target=self._listen, daemon=True)
        thread.start()
        eventually(lambda: self._ready.is_set() or not thread.is_alive(), SOON_SECONDS)
        assert self._ready.is_set(), "the stream ended before it was ready"

    def _listen(self) -> None:
        try:
            self.broker.listen(self._ready.set, self.updates.append, self.stop)
        except BrokerError:
            if not self.stop.is_set():  # afterwards the line may be cut, with the broker under test itself
                raise

    def of(self, order: Order) -> list[OrderUpdate]:
        return [update for update in self.updates if update.order.client_order_id == order.client_order_id]

    def filled(self, order: Order) -> Decimal:
        updates = self.of(order)
        if not self.counts_executions:
            return max((update.order.filled_quantity for update in updates), default=_ZERO)
        executions = [update.execution for update in updates if update.execution]
        return sum({execution.id: execution.quantity for execution in executions}.values(), _ZERO)

    def close(self) -> None:
        """The thread ends by itself a little later."""
        self.stop.set()


@dataclass
class Poller:
    """Polls in place of a stream, where a broker claims none, by the broker's ids."""

    market: Market

    def of(self, order: Order) -> list[OrderUpdate]:
        shown = self.market.broker.order(order.broker_order_id)
        return [OrderUpdate(shown, shown.updated_at)] if shown else []

    def filled(self, order: Order) -> Decimal:
        return sum((update.order.filled_quantity for update in self.of(order)), _ZERO)

    def close(self) -> None:
        """Nothing is open."""


def listen(market: Market) -> Listener | Poller:
    return Listener(market.broker, market.can.executions) if market.can.streams else Poller(market)
