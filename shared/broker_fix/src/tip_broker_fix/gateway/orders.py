"""Orders, and what the broker's messages make of them. Pure.

An order is what one ClOrdID stands for. A replacement is an order of its own here, while in FIX its CumQty, AvgPx and
OrderQty go on from the order it replaces: `base` is where that one stopped.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from tip_broker_fix.gateway import tags
from tip_broker_fix.gateway.codec import Message

SENT, ABSENT, REFUSED = "sent", "absent", "refused"
"""Not yet answered; not there, by the broker's word; refused before it ever was an order."""
UNSEEN = frozenset({SENT, ABSENT, REFUSED})
"""Nobody has seen such an order at the broker."""
ENDED = frozenset({"filled", "canceled", "expired", "rejected", "replaced"})
STATUSES = {
    "0": "new", "1": "partially_filled", "2": "filled", "3": "done_for_day", "4": "canceled", "5": "replaced",
    "6": "pending_cancel", "7": "stopped", "8": "rejected", "9": "suspended", "A": "pending_new", "B": "calculated",
    "C": "expired", "D": "accepted_for_bidding", "E": "pending_replace",
}  # fmt: skip
REJECTED, REPLACED, PENDING_REPLACE, STATUS, TRADE = "8", "5", "E", "I", "F"
_UNKNOWN_ORDER, _DUPLICATE_ORDER = "5", "6"  # OrdRejReason
_CANCEL_ID = re.compile(r"\.c\d+$")
_ZERO = Decimal(0)
LARGEST_EXPONENT = 18


@dataclass(frozen=True, slots=True)
class Order:
    client_order_id: str
    account: str
    symbol: str
    side: str
    kind: str
    time_in_force: str
    quantity: Decimal
    created_at: datetime
    updated_at: datetime
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    destination: str | None = None
    status: str = SENT
    filled: Decimal = _ZERO
    average: Decimal | None = None
    base: Decimal = _ZERO
    base_value: Decimal = _ZERO
    order_id: str | None = None
    replaces: str | None = None
    replaced_by: str | None = None
    number: int = 0
    """Under which MsgSeqNum it was last sent."""
    cancels: int = 0
    rejected_cancel: int = 0
    """Cancels that were requested, and the last of them that was rejected."""
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.status not in UNSEEN and self.status not in ENDED


class Fill(NamedTuple):
    exec_id: str
    quantity: Decimal
    price: Decimal


class Change(NamedTuple):
    """What a message makes of an order. `event`: the word for it in the stream."""

    order: Order
    event: str
    at: datetime
    exec_id: str | None = None
    fill: Fill | None = None


Find = Callable[[str], Order | None]


def cancel_id(order: Order, attempt: int) -> str:
    return f"{order.client_order_id}.c{attempt}"


def concerned(message: Message) -> list[str]:
    """The orders that a message may be about."""
    named = (message.get(tags.CL_ORD_ID), message.get(tags.ORIG_CL_ORD_ID), message.get(tags.BUSINESS_REJECT_REF_ID))
    return [_CANCEL_ID.sub("", name) for name in named if name]


def read(message: Message, find: Find, now: datetime) -> list[Change]:
    """What changes. A message about an order that nobody here knows changes nothing."""
    name, *others = concerned(message) or [""]
    order = find(name) or next(filter(None, map(find, others)), None)
    if order is None:
        return []
    if message.type == tags.EXECUTION_REPORT:
        return _reported(message, order, find, now)
    if message.type == tags.CANCEL_REJECT:
        return _not_changed(message, order, find, now)
    return _unread(message, order, now)


def _unread(message: Message, order: Order, now: datetime) -> list[Change]:
    """The broker has not even read what was sent: an order, a replacement or a cancel; not a query about one."""
    kind = message.get(tags.REF_MSG_TYPE)
    if kind in tags.QUERIES or not (kind in tags.COMMANDS or message.get(tags.CL_ORD_ID)):
        return []
    if order.status == SENT:
        return [Change(replace(order, status=REFUSED, reason=_text(message), updated_at=now), "rejected", now)]
    if _CANCEL_ID.search(message.get(tags.CL_ORD_ID) or ""):
        rejected = replace(order, rejected_cancel=order.cancels, reason=_text(message), updated_at=now)
        return [Change(rejected, "order_cancel_rejected", now)]
    return []


def _reported(message: Message, order: Order, find: Find, now: datetime) -> list[Change]:
    kind = message.get(tags.EXEC_TYPE)
    at = tags.read_moment(message.get(tags.TRANSACT_TIME), now)
    if message.get(tags.ORD_STATUS) == REJECTED and order.status in (SENT, ABSENT):
        return _refused(message, order, at)
    if kind == PENDING_REPLACE and order.replaces and order.status == SENT:
        old = find(order.replaces)
        return [_changed(message, old, at)] if old else []
    if order.replaces and order.status in (SENT, ABSENT):
        return _replaced(message, order, find, at)
    return [_changed(message, order, at)]


def _refused(message: Message, order: Order, at: datetime) -> list[Change]:
    """An answer to a query counts only if that was sent after the order was last sent."""
    if message.get(tags.EXEC_TYPE) == STATUS and message.get(tags.ORD_REJ_REASON) == _UNKNOWN_ORDER:
        is_of_last = message.get(tags.ORD_STATUS_REQ_ID) == str(order.number)
        return [Change(replace(order, status=ABSENT, updated_at=at), "absent", at)] if is_of_last else []
    if message.get(tags.ORD_REJ_REASON) == _DUPLICATE_ORDER:
        return []  # it has one by this id: a query will show it
    return [Change(replace(order, status=REFUSED, reason=_text(message), updated_at=at), "rejected", at)]


def _replaced(message: Message, new: Order, find: Find, at: datetime) -> list[Change]:
    """The old order ends where the new one begins, as far as that is known."""
    old = find(new.replaces or "")
    base, value = _reached(old) if old else (_ZERO, _ZERO)
    cumulated = _amount(message, tags.CUM_QTY)
    if message.get(tags.EXEC_TYPE) == REPLACED and cumulated is not None and cumulated > base:
        base, value = cumulated, cumulated * (_amount(message, tags.AVG_PX) or _ZERO)
    found = []
    if old:
        filled = max(old.filled, base - old.base)
        ended = replace(old, status="replaced", replaced_by=new.client_order_id, filled=filled, updated_at=at)
        found.append(Change(ended, "replaced", at))
    return [*found, _changed(message, replace(new, base=base, base_value=value), at)]


def _reached(order: Order) -> tuple[Decimal, Decimal]:
    """How much of the chain is filled up to here, and at which value."""
    return order.base + order.filled, order.base_value + (order.average or _ZERO) * order.filled


def _changed(message: Message, order: Order, at: datetime) -> Change:
    status = STATUSES.get(message.get(tags.ORD_STATUS) or "", "")
    filled, average = _filled(message, order)
    fill = _fill(message)
    if filled < order.filled or (filled == order.filled and _is_over(message, order)):
        return Change(order, _event(order, fill), at, message.get(tags.EXEC_ID), fill)
    if status == "replaced" and message.get(tags.EXEC_TYPE) == REPLACED:
        status = "partially_filled" if filled else "new"
    if not status or (order.status in ENDED and status not in ENDED):
        status = order.status
    total = _amount(message, tags.ORDER_QTY)
    changed = replace(
        order,
        status=status,
        filled=filled,
        average=average,
        quantity=total - order.base if total is not None and total >= order.base + filled else order.quantity,
        order_id=_word(message.get(tags.ORDER_ID)) or order.order_id,
        reason=_text(message) if status == "rejected" else order.reason,
        updated_at=at,
    )
    return Change(changed, _event(changed, fill), at, message.get(tags.EXEC_ID), fill)


def _is_over(message: Message, order: Order) -> bool:
    """Whether the message, if it reports no fill, is about the past."""
    return order.status in ENDED or (message.is_set(tags.POSS_RESEND) and order.status not in UNSEEN)


def _filled(message: Message, order: Order) -> tuple[Decimal, Decimal | None]:
    """Of this order alone, and at which price."""
    cumulated, average = _amount(message, tags.CUM_QTY), _amount(message, tags.AVG_PX)
    if cumulated is None or cumulated < order.base:
        return order.filled, order.average
    filled = cumulated - order.base
    if not filled or average is None:
        return filled, order.average if filled else None
    return filled, (average * cumulated - order.base_value) / filled


def _fill(message: Message) -> Fill | None:
    quantity, price = _amount(message, tags.LAST_QTY), _amount(message, tags.LAST_PX)
    exec_id = message.get(tags.EXEC_ID)
    if message.get(tags.EXEC_TYPE) != TRADE or not (quantity and exec_id) or price is None:
        return None
    return Fill(exec_id[:128], quantity, price)


def _event(order: Order, fill: Fill | None) -> str:
    if fill:
        return "fill" if order.status == "filled" else "partial_fill"
    return order.status


def _not_changed(message: Message, order: Order, find: Find, now: datetime) -> list[Change]:
    """OrderCancelReject: of a replacement, which then never was; or of a cancel."""
    if order.replaces and order.status == SENT:
        refused = Change(replace(order, status=REFUSED, reason=_text(message), updated_at=now), "rejected", now)
        old = find(order.replaces)
        return [refused, Change(_restored(message, old), "order_replace_rejected", now)] if old else [refused]
    rejected = replace(_restored(message, order), rejected_cancel=order.cancels, reason=_text(message), updated_at=now)
    return [Change(rejected, "order_cancel_rejected", now)]


def _restored(message: Message, order: Order) -> Order:
    """As it stands after all. That it has ended is in its own report, with what was filled."""
    status = STATUSES.get(message.get(tags.ORD_STATUS) or "", "")
    if order.status not in ("pending_cancel", "pending_replace") or not status or status in ENDED:
        return order
    return replace(order, status=status)


def _text(message: Message) -> str:
    reason = message.get(tags.TEXT) or f"reason {message.get(tags.ORD_REJ_REASON) or message.get(tags.CXL_REJ_REASON)}"
    return reason[:200]


def _word(value: str | None) -> str | None:
    return value[:128] if value else None


def _amount(message: Message, tag: int) -> Decimal | None:
    text = message.get(tag)
    if text is None or len(text) > 40:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= LARGEST_EXPONENT and number >= 0 else None
