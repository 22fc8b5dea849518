"""What can come of a command, and the reason codes that an intent shows for it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from intents.model import Update
from tip_brokers.protocol import Order

OPERATOR_REQUIRED = "OPERATOR_REQUIRED"
"""Only a person can find out what became of it."""
RESOLVED_BY_OPERATOR = "RESOLVED_BY_OPERATOR"
CANCELED_BEFORE_SENT = "CANCELED_BEFORE_SENT"
BROKER_CANNOT = "BROKER_CANNOT"
ENTITLEMENT_REQUIRED = "ENTITLEMENT_REQUIRED"
ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
REPLACE_NOT_SENT = "REPLACE_NOT_SENT"
NOT_FOUND_AT_BROKER = "NOT_FOUND_AT_BROKER"
ORDER_AFTER_END = "ORDER_AFTER_END"
DUPLICATE_ORDER = "DUPLICATE_ORDER"
REPLACED_LATE = "REPLACED_LATE"
REPLACED_ELSEWHERE = "REPLACED_ELSEWHERE"
OVERFILLED = "OVERFILLED"
NOT_REDUCING = "NOT_REDUCING"
REFERENCE_PRICE_UNKNOWN = "REFERENCE_PRICE_UNKNOWN"
POSITION_UNKNOWN = "POSITION_UNKNOWN"
PARENT_ENDED = "PARENT_ENDED"
GROUP_OVERFILLED = "GROUP_OVERFILLED"
GROUP_UNCOVERED = "GROUP_UNCOVERED"


class OrderFound(NamedTuple):
    """The broker shows this order; and, where the command concerned them, these others of the intent."""

    order: Order
    others: tuple[Order, ...] = ()


class LegFound(NamedTuple):
    """The broker shows the order as part of another one of the group, under a client order id of its own making."""

    order: Order


class Rejected(NamedTuple):
    """The broker's definite no, with the intent's orders as they stand, as far as they were seen."""

    code: str
    reason: str
    orders: tuple[Order, ...] = ()


class Requested(NamedTuple):
    """Taken in by the broker; how it ends will be seen."""


class Unknown(NamedTuple):
    """Perhaps done. Queried again later, never assumed. With a `code` the intent shows what it takes to find out."""

    reason: str
    code: str | None = None
    seconds: float | None = None


class RetryLater(NamedTuple):
    """Nothing was done. With a `code` the intent shows why it waits."""

    seconds: float
    reason: str
    code: str | None = None
    absent: bool = False
    """Whether the broker was queried for what may have been sent, and did not have it."""
    waiting_since: datetime | None = None
    """Its place in the wait queue of an open circuit: it is claimed when the breaker has a try, or in `seconds`."""


class Decided(NamedTuple):
    """Settled here, without the broker."""

    update: Update
    code: str
    reason: str
    reasons: tuple[Mapping[str, Any], ...] = ()
    """All that controls say against it, as the answer to a refused submit lists them."""


Verdict = OrderFound | LegFound | Rejected | Requested | Unknown | RetryLater | Decided
