"""Orders, the requests that create and change them, and the events that report what became of them."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

ZERO = Decimal(0)
PLACES = Decimal("1e-9")  # the finest quantity and average price Alpaca knows


class Side(StrEnum):
    """BUY takes the ask, SELL takes the bid."""

    BUY = "buy"
    SELL = "sell"


class Kind(StrEnum):
    """Alpaca's `type`."""

    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"
    TRAILING_STOP = "trailing_stop"


class TimeInForce(StrEnum):
    """How long an order waits for its price."""

    DAY = "day"
    GTC = "gtc"
    IOC = "ioc"
    FOK = "fok"


class Status(StrEnum):
    """The subset of Alpaca's order statuses this broker uses."""

    ACCEPTED = "accepted"
    NEW = "new"
    HELD = "held"
    PARTIALLY_FILLED = "partially_filled"
    FILLED = "filled"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REJECTED = "rejected"
    REPLACED = "replaced"
    PENDING_CANCEL = "pending_cancel"
    PENDING_REPLACE = "pending_replace"


CLOSED = frozenset({Status.FILLED, Status.CANCELED, Status.EXPIRED, Status.REJECTED, Status.REPLACED})
REPLACEABLE = frozenset({Status.NEW, Status.HELD, Status.PARTIALLY_FILLED})


class EventKind(StrEnum):
    """Alpaca's trade update events."""

    NEW = "new"
    HELD = "held"
    RESTATED = "restated"
    FILL = "fill"
    PARTIAL_FILL = "partial_fill"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REJECTED = "rejected"
    REPLACED = "replaced"
    PENDING_CANCEL = "pending_cancel"
    PENDING_REPLACE = "pending_replace"
    CANCEL_REJECTED = "order_cancel_rejected"
    REPLACE_REJECTED = "order_replace_rejected"


@dataclass(frozen=True, slots=True)
class StopLoss:
    """The other leg of an `oco` order: a stop, or a stop limit if it has a limit price."""

    stop_price: Decimal
    limit_price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order as requested. Either `qty` or, for market orders, `notional` is given."""

    symbol: str
    side: Side
    kind: Kind
    time_in_force: TimeInForce
    client_order_id: str | None = None
    qty: Decimal | None = None
    notional: Decimal | None = None
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    extended_hours: bool = False
    trail_price: Decimal | None = None
    trail_percent: Decimal | None = None
    hwm: Decimal | None = None
    """Where the trailing stop that this one replaces stood; None of a new one."""
    stop_loss: StopLoss | None = None
    """Of an `oco` order, whose limit leg this is."""


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement as requested; what is None stays as it was."""

    client_order_id: str | None = None
    qty: Decimal | None = None
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    time_in_force: TimeInForce | None = None
    trail: Decimal | None = None
    """Of a trailing stop: the new trail_price or trail_percent, whichever it has."""


@dataclass(frozen=True, slots=True)
class Order:
    """An accepted order; immutable, so an event keeps the order as it was at that moment."""

    id: str
    account_id: str
    sequence: int
    client_order_id: str
    symbol: str
    side: Side
    kind: Kind
    time_in_force: TimeInForce
    qty: Decimal
    status: Status
    created_at: datetime
    updated_at: datetime
    # What one open unit holds back of the buying power. None: the order reduces a position and holds back shares.
    unit_hold: Decimal | None
    filled_qty: Decimal = ZERO
    filled_value: Decimal = ZERO
    notional: Decimal | None = None
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    triggered: bool = False
    extended_hours: bool = False
    expires_at: datetime | None = None
    filled_at: datetime | None = None
    canceled_at: datetime | None = None
    expired_at: datetime | None = None
    failed_at: datetime | None = None
    replaced_at: datetime | None = None
    replaced_by: str | None = None
    replaces: str | None = None
    trail_price: Decimal | None = None
    trail_percent: Decimal | None = None
    # Alpaca's "high water mark": the best price since a trailing stop was entered, the lowest one of a buy.
    hwm: Decimal | None = None
    # The id of the limit leg of an `oco` order, the same of both legs and of what replaces them.
    oco_id: str | None = None

    @property
    def open(self) -> bool:
        return self.status not in CLOSED

    @property
    def remaining(self) -> Decimal:
        return self.qty - self.filled_qty

    @property
    def filled_avg_price(self) -> Decimal | None:
        if not self.filled_qty:
            return None
        return (self.filled_value / self.filled_qty).quantize(PLACES, ROUND_HALF_UP).normalize()

    @property
    def working(self) -> Status:
        """The status of this order when nothing about it is pending."""
        if self.filled_qty:
            return Status.PARTIALLY_FILLED
        return Status.HELD if self.is_held_leg else Status.NEW

    @property
    def is_held_leg(self) -> bool:
        """Whether it is the stop of an `oco` order: the limit leg holds back what both are for."""
        return self.oco_id is not None and self.kind is not Kind.LIMIT

    def with_status(self, status: Status, now: datetime) -> "Order":
        return replace(self, status=status, updated_at=now)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an order. An execution is an event with an `execution_id`."""

    id: int
    kind: EventKind
    at: datetime
    order: Order
    execution_id: str | None = None
    qty: Decimal | None = None
    price: Decimal | None = None
    position_qty: Decimal | None = None
