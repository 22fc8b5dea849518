"""What the broker's JSON says, in our words. What is not as agreed is a broken answer: its outcome is unknown."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from intents.brokers.protocol import (
    Balance,
    Execution,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    RejectionNotice,
)

LONGEST_WORD = 256  # of an id or a symbol
LONGEST_REASON = 200
LARGEST_EXPONENT = 30  # of a number, either way: written out, a larger one is mostly zeros
_MISREAD = (KeyError, TypeError, ValueError, AttributeError, InvalidOperation, IndexError, RecursionError)

KINDS = {"Market": "market", "Limit": "limit", "Stop": "stop", "StopLimit": "stop_limit"}
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


class understood:  # noqa: N801 - reads as a word of the language
    """Around the reading of an answer: one that breaks the contract proves nothing about what was done."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, _MISREAD):
            raise OutcomeUnknown("broken_answer") from None


def parse(content: str | bytes) -> Any:
    """JSON in UTF-8. What no database keeps is a broken answer: here U+0000, halves of a surrogate pair in `_word`."""
    with understood():
        text = content.decode() if isinstance(content, bytes) else content
        if "\\u0000" in text:
            raise ValueError
        return json.loads(text)


def plain(value: Decimal | None) -> str | None:
    """A number as the broker takes it."""
    return None if value is None else format(value, "f")


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_moment(text: str) -> datetime:
    """Alpaca counts nanoseconds; we keep what a datetime can."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _word(value: object) -> str:
    text = str(value)
    text.encode()  # fails for half of a surrogate pair
    if len(text) > LONGEST_WORD:
        raise ValueError
    return text


def reason(value: object) -> str:
    """The broker's message for people, as far as it can be stored: a refusal counts whatever its wording is."""
    return str(value)[:LONGEST_REASON].encode(errors="replace").decode()


def _word_or_none(value: object) -> str | None:
    return None if value is None else _word(value)


def parse_decimal(value: object) -> Decimal | None:
    if value is None or value == "":
        return None
    number = Decimal(_word(value))
    if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise ValueError
    return number


def parse_price(value: object) -> Decimal | None:
    """None for what is not above zero: so a side of the book that is empty, or an asset without a price, is written."""
    number = parse_decimal(value)
    return number if number is not None and number > 0 else None


def _amount(value: object) -> Decimal:
    number = parse_decimal(value)
    if number is None:
        raise ValueError
    return number


def read_order(body: Any) -> Order:
    with understood():
        return Order(
            client_order_id=_word(body["client_order_id"]),
            broker_order_id=_word(body["id"]),
            # A word we do not know yet is no reason to believe the order has ended.
            status=STATUSES.get(body["status"], OrderStatus.WORKING),
            symbol=_word(body["symbol"]),
            order_side=_word(body["side"]).upper(),
            kind=_KIND_NAMES.get(body.get("type") or body.get("order_type"), "Market"),
            quantity=parse_decimal(body.get("qty")),
            filled_quantity=parse_decimal(body["filled_qty"]) or Decimal(0),
            average_price=parse_decimal(body.get("filled_avg_price")),
            updated_at=parse_moment(body["updated_at"]),
            created_at=parse_moment(body["created_at"]),
            replaces=_word_or_none(body.get("replaces")),
            replaced_by=_word_or_none(body.get("replaced_by")),
        )
    raise AssertionError  # `understood` never swallows without raising; this is for the type checker


def read_execution(body: Any) -> Execution:
    """Of the account's activities."""
    with understood():
        return Execution(
            id=_word(body["id"]).rpartition("::")[2],
            broker_order_id=_word(body["order_id"]),
            quantity=_amount(body["qty"]),
            price=_amount(body["price"]),
            occurred_at=parse_moment(body["transaction_time"]),
        )
    raise AssertionError


def read_position(body: Any) -> Position:
    with understood():
        return Position(
            _word(body["symbol"]),
            _amount(body["qty"]),
            parse_decimal(body.get("avg_entry_price")),
            parse_price(body.get("current_price")),
            parse_decimal(body.get("market_value")),
            parse_decimal(body.get("unrealized_pl")),
        )
    raise AssertionError


def read_balance(body: Any) -> Balance:
    with understood():
        amounts = [_amount(body[name]) for name in ("cash", "equity", "buying_power")]
        return Balance(_word(body["currency"]), *amounts)
    raise AssertionError


def read_account_id(body: Any) -> str:
    with understood():
        return _word(body["id"])
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
    quantity, price = _amount(data["qty"]), _amount(data["price"])
    position = parse_decimal(data.get("position_qty"))
    return Execution(_word(data["execution_id"]), order.broker_order_id, quantity, price, moment, position)
