"""What the broker's JSON says, in our words. What is not as agreed is a broken answer: its outcome is unknown."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_brokers.answers import (
    parse,
    parse_amount,
    parse_decimal,
    parse_moment,
    parse_price,
    parse_word,
    parse_word_or_none,
    understood,
)
from tip_brokers.protocol import (
    Balance,
    Execution,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    RejectionNotice,
)

KINDS = {
    "Market": "market",
    "Limit": "limit",
    "Stop": "stop",
    "StopLimit": "stop_limit",
    "TrailingStop": "trailing_stop",
}
_KIND_NAMES = {theirs: ours for ours, theirs in KINDS.items()}
STATUSES: Mapping[str, OrderStatus] = {
    "accepted": OrderStatus.PENDING,
    "pending_new": OrderStatus.PENDING,
    "accepted_for_bidding": OrderStatus.PENDING,
    "held": OrderStatus.PENDING,
    "new": OrderStatus.WORKING,
    "partially_filled": OrderStatus.WORKING,
    "done_for_day": OrderStatus.WORKING,
    "stopped": OrderStatus.WORKING,
    "suspended": OrderStatus.WORKING,
    "calculated": OrderStatus.WORKING,
    "pending_cancel": OrderStatus.PENDING_CANCEL,
    "pending_replace": OrderStatus.PENDING_REPLACE,
    "filled": OrderStatus.FILLED,
    "canceled": OrderStatus.CANCELED,
    "expired": OrderStatus.EXPIRED,
    "rejected": OrderStatus.REJECTED,
    "replaced": OrderStatus.REPLACED,
}
_REJECTIONS = {
    "order_cancel_rejected": RejectionNotice.CANCEL_REJECTED,
    "order_replace_rejected": RejectionNotice.REPLACE_REJECTED,
}


def read_order(body: Any) -> Order:
    """With the legs under it, if it has any."""
    with understood():
        if body.get("order_class") != "oco":
            return _order(body)
        legs = body.get("legs") or ()
        return replace(_order(body), legs=tuple(_order(leg) for leg in legs))
    raise AssertionError  # `understood` never swallows without raising; this is for the type checker


def _order(body: Any) -> Order:
    with understood():
        return Order(
            client_order_id=parse_word(body["client_order_id"]),
            broker_order_id=parse_word(body["id"]),
            # A word we do not know yet is no reason to believe the order has ended.
            status=STATUSES.get(body["status"], OrderStatus.WORKING),
            symbol=parse_word(body["symbol"]),
            order_side=parse_word(body["side"]).upper(),
            kind=_KIND_NAMES.get(body.get("type") or body.get("order_type"), "Market"),
            quantity=parse_decimal(body.get("qty")),
            filled_quantity=parse_decimal(body["filled_qty"]) or Decimal(0),
            average_price=parse_decimal(body.get("filled_avg_price")),
            updated_at=parse_moment(body["updated_at"]),
            created_at=parse_moment(body["created_at"]),
            replaces=parse_word_or_none(body.get("replaces")),
            replaced_by=parse_word_or_none(body.get("replaced_by")),
            extended_hours=body.get("extended_hours") is True,
        )
    raise AssertionError


def read_execution(body: Any) -> Execution:
    """Of the account's activities."""
    with understood():
        return Execution(
            id=parse_word(body["id"]).rpartition("::")[2],
            broker_order_id=parse_word(body["order_id"]),
            quantity=parse_amount(body["qty"]),
            price=parse_amount(body["price"]),
            occurred_at=parse_moment(body["transaction_time"]),
        )
    raise AssertionError


def read_position(body: Any) -> Position:
    with understood():
        return Position(
            parse_word(body["symbol"]),
            parse_amount(body["qty"]),
            parse_decimal(body.get("avg_entry_price")),
            parse_price(body.get("current_price")),
            parse_decimal(body.get("market_value")),
            parse_decimal(body.get("unrealized_pl")),
        )
    raise AssertionError


def read_balance(body: Any) -> Balance:
    with understood():
        amounts = [parse_amount(body[name]) for name in ("cash", "equity", "buying_power")]
        return Balance(parse_word(body["currency"]), *amounts)
    raise AssertionError


def read_account_id(body: Any) -> str:
    with understood():
        return parse_word(body["id"])
    raise AssertionError


def read_message(raw: str | bytes) -> dict[str, Any]:
    """One message of the stream."""
    message = parse(raw)
    if not isinstance(message, dict):
        raise OutcomeUnknown("broken_answer")
    return message


def read_update(raw: str | bytes) -> OrderUpdate | None:
    """None for everything that is not a trade update."""
    message = read_message(raw)
    if message.get("stream") != "trade_updates":
        return None
    with understood():
        data = message["data"]
        order, moment = read_order(data["order"]), parse_moment(data.get("timestamp") or data["order"]["updated_at"])
        return OrderUpdate(order, moment, _execution(data, order, moment), _REJECTIONS.get(data["event"]))
    raise AssertionError


def _execution(data: Mapping[str, Any], order: Order, moment: datetime) -> Execution | None:
    if data.get("event") not in ("fill", "partial_fill") or not data.get("execution_id"):
        return None
    quantity, price = parse_amount(data["qty"]), parse_amount(data["price"])
    position = parse_decimal(data.get("position_qty"))
    return Execution(parse_word(data["execution_id"]), order.broker_order_id, quantity, price, moment, position)
