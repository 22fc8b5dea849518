"""What a broker is to us: a few verbs, one shape of order, and four ways in which a call can fail.

An adapter bounds what it reads, in bytes, time and pages, by its own limits: an answer beyond them is a broken one.

A new broker is a package whose adapter speaks these words, with an entry point that describes it (`registry`), and a
pass of `tip broker check`.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple, Protocol

from tip_brokers.client_ids import ClientIds


class OrderStatus(StrEnum):
    """PENDING: taken in, not yet at the market. WORKING: at the market, filled in part or not at all."""

    PENDING = "PENDING"
    WORKING = "WORKING"
    PENDING_CANCEL = "PENDING_CANCEL"
    PENDING_REPLACE = "PENDING_REPLACE"
    FILLED = "FILLED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    REJECTED = "REJECTED"
    REPLACED = "REPLACED"


OPEN = frozenset(
    {OrderStatus.PENDING, OrderStatus.WORKING, OrderStatus.PENDING_CANCEL, OrderStatus.PENDING_REPLACE},
)
ENDED = frozenset(OrderStatus) - OPEN


class StopExit(NamedTuple):
    """The other exit of a Limit order that closes a position: one of them filled or canceled cancels the other."""

    stop_price: Decimal
    limit_price: Decimal | None = None
    """Of a StopLimit."""


@dataclass(frozen=True, slots=True)
class NewOrder:
    client_order_id: str
    symbol: str
    order_side: str
    kind: str
    quantity: Decimal
    """0 of a Market order by its `notional`."""
    time_in_force: str
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    route_strategy: str = "AUTO"
    """DIRECT only where the broker claims routing: then it goes where the account's credential says."""
    trail_amount: Decimal | None = None
    """Of a TrailingStop: how far its stop price stays behind the best price, as an amount or in percent of it."""
    trail_percent: Decimal | None = None
    notional: Decimal | None = None
    """What a Market order is to be worth, only where the broker claims such orders: it says what quantity that is."""
    extended_hours: bool = False
    """Whether it may trade outside the regular hours, only where the broker claims that. A replacement keeps it."""
    stop_exit: StopExit | None = None
    """Only of a Limit order, where the broker claims exit pairs: both are made, or neither."""


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement of an order. `quantity` is what the new order alone is for, without what the old one has filled."""

    client_order_id: str
    quantity: Decimal
    time_in_force: str
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    trail_amount: Decimal | None = None
    trail_percent: Decimal | None = None
    """Whichever of the two the order has: a replacement goes on from the best price so far."""
    only_prices: bool = False
    """Of an exit of a pair: whether quantity and time in force are those of the order that it replaces. A broker that
    changes nothing but prices there is not to be sent them."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the broker shows it. `filled_quantity` is of this order alone, not of one that it replaces.

    `quantity` is None while nobody knows it: of an order by its notional, for one. Its status says when that is filled.
    """

    client_order_id: str
    broker_order_id: str
    status: OrderStatus
    symbol: str
    order_side: str
    kind: str
    quantity: Decimal | None
    filled_quantity: Decimal
    average_price: Decimal | None
    updated_at: datetime
    created_at: datetime
    replaces: str | None = None
    replaced_by: str | None = None
    extended_hours: bool = False
    legs: "tuple[Order, ...] | None" = None
    """The stop exit that was sent with it, an order with ids of the broker's making, when it is created or found by its
    client order id; empty in every other answer. None of an order that is alone."""
    is_nameless: bool = False
    """Whether the broker shows no client order id: then the adapter names the order by the broker's."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A fill. Its id is the broker's, and the same wherever the fill is shown."""

    id: str
    broker_order_id: str
    quantity: Decimal
    price: Decimal
    occurred_at: datetime
    position_quantity: Decimal | None = None


class RejectionNotice(StrEnum):
    """What an update says beyond the state of the order it carries."""

    CANCEL_REJECTED = "CANCEL_REJECTED"
    REPLACE_REJECTED = "REPLACE_REJECTED"


@dataclass(frozen=True, slots=True)
class OrderUpdate:
    """One message of the broker's stream."""

    order: Order
    occurred_at: datetime
    execution: Execution | None = None
    rejection: RejectionNotice | None = None


class Position(NamedTuple):
    symbol: str
    quantity: Decimal
    average_entry_price: Decimal | None
    last_price: Decimal | None
    market_value: Decimal | None
    unrealized_profit: Decimal | None


class Balance(NamedTuple):
    currency: str
    cash: Decimal
    equity: Decimal
    buying_power: Decimal


class Quote(NamedTuple):
    """The latest prices of a symbol. Bid and ask are of `quoted_at`, the last trade is of `traded_at`."""

    symbol: str
    bid: Decimal | None
    ask: Decimal | None
    last: Decimal | None
    quoted_at: datetime | None
    traded_at: datetime | None


class BrokerError(Exception):
    """Why a call did not do what it was for. `str()` of it is safe to show: it never quotes a secret."""


class Refused(BrokerError):
    """The broker's definite no: nothing was changed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class DuplicateClientOrderId(Refused):
    """The broker has an order with this id: an earlier send got through."""


class NotSent(BrokerError):
    """Certainly not done: the broker was not reached, or requested a later retry."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retry_after = reason, retry_after


class Unreachable(NotSent):
    """There was no connection to write to: the line or the broker is down, whoever calls and for whatever."""


class RateLimited(NotSent):
    """Not done; `retry_after` seconds are the broker's wish for the whole account."""


BROKEN_ANSWER = "broken_answer"
"""Why an outcome is unknown if the broker has answered in no form that can be read."""


class OutcomeUnknown(BrokerError):
    """Perhaps done: no answer, a broken one, or an error that proves nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ListingTooLong(OutcomeUnknown):
    """A listing has more rows than are read of one. Those that came before are as good as any."""


class CredentialRefused(BrokerError):
    """The broker does not know this key pair, or no longer."""


class NotWritten(Exception):
    """What a `Check` raises when the request must not go out any more: it was not written, or not to its end."""


Check = Callable[[], None]
"""Called immediately before a request is written, after the connection is there; raises NotWritten to stop it."""


def no_check() -> None:
    """For a request that may go out at any time."""


class Broker(Protocol):
    """One account at one broker. Every method may raise BrokerError, and nothing else whatever the broker answers.

    No exchange takes longer than `call_seconds`, from the connection to the last byte of the answer; a listing is one
    exchange for each page.
    """

    @property
    def client_ids(self) -> ClientIds: ...

    @property
    def call_seconds(self) -> float: ...

    def account_id(self) -> str:
        """The broker's own name of the account that the key pair opens: the same for every key pair of it."""

    def create(self, order: NewOrder, check: Check = no_check) -> Order: ...

    def replace(self, broker_order_id: str, change: Change, check: Check = no_check) -> Order:
        """The new order; the old one ends as REPLACED, now or a little later."""

    def cancel(self, broker_order_id: str, check: Check = no_check) -> None:
        """Request it. That the order is canceled shows in its status."""

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        """By our id: how an unknown outcome becomes known. Some brokers also want to know what it was to trade."""

    def order(self, broker_order_id: str) -> Order | None: ...

    def open_orders(self) -> Iterable[Order]: ...

    def orders(self, after: datetime) -> Iterable[Order]:
        """All orders made since then, open or not, oldest first."""

    def executions(self, after: datetime) -> Iterable[Execution]:
        """Fills since then, oldest first."""

    def positions(self) -> list[Position]: ...

    def balance(self) -> Balance: ...

    def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        """The latest prices of these symbols; a symbol without any is left out."""

    def listen(
        self, on_ready: Callable[[], None], on_update: Callable[[OrderUpdate], None], stop: threading.Event
    ) -> None:
        """Call `on_ready` once listening, and `on_update` for each update. Returns or raises when the line is cut."""
