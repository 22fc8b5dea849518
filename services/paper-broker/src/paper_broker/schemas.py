"""JSON in: strict, into model objects. Numbers keep every digit they were sent with."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from paper_broker.model import Change, Kind, NewOrder, Quote, Side, StopLoss, TimeInForce, Unprocessable
from paper_broker.store import stamp
from paper_broker.usecases import OrderQuery

Json = dict[str, Any]
Word = TypeVar("Word", bound=StrEnum)

SYMBOL = re.compile(r"[A-Z][A-Z0-9._/-]{0,31}", re.ASCII)
NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
SMALLEST = Decimal("1e-9")
LARGEST = Decimal("1e9")
LONGEST_CLIENT_ORDER_ID = 128
MOST_SYMBOLS = 100
PAIR = ("take_profit", "stop_loss")


class BadRequest(Exception):
    """A body or parameter that cannot be read at all."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def body(raw: bytes) -> Json:
    try:
        # Every number becomes a Decimal: a float would lose digits before it is checked.
        value = json.loads(raw, parse_float=Decimal, parse_int=Decimal, parse_constant=_no_constant)
    except (ValueError, ArithmeticError, RecursionError):
        raise BadRequest("request body format is invalid") from None
    if not isinstance(value, dict):
        raise BadRequest("request body format is invalid")
    return value


def new_order(data: Json) -> NewOrder:
    if data.get("order_class") == "oco":
        return _oco_order(data)
    _refuse_unsupported(data)
    return NewOrder(
        symbol=symbol(data.get("symbol")),
        side=_word(data, "side", Side),
        kind=_word(data, "type", Kind),
        time_in_force=_word(data, "time_in_force", TimeInForce),
        client_order_id=_client_order_id(data),
        qty=_number(data, "qty"),
        notional=_number(data, "notional"),
        limit_price=_number(data, "limit_price"),
        stop_price=_number(data, "stop_price"),
        extended_hours=data.get("extended_hours") is True,
        trail_price=_number(data, "trail_price"),
        trail_percent=_number(data, "trail_percent"),
    )


def _oco_order(data: Json) -> NewOrder:
    """Its limit leg, with the stop."""
    take_profit, stop_loss = (_leg(data, name) for name in PAIR)
    prices = [_number(data, "limit_price"), _number(take_profit, "limit_price")]
    limit_price, stop_price = prices[1] or prices[0], _number(stop_loss, "stop_price")
    if limit_price is None:
        raise Unprocessable("oco orders require take_profit.limit_price")
    if stop_price is None:
        raise Unprocessable("oco orders require stop_loss.stop_price")
    simple = {name: value for name, value in data.items() if name not in (*PAIR, "order_class")}
    return replace(
        new_order(simple),
        limit_price=limit_price,
        stop_loss=StopLoss(stop_price, _number(stop_loss, "limit_price")),
    )


def _leg(data: Json, name: str) -> Json:
    """The prices of a leg; what is no object has none."""
    leg = data.get(name)
    return leg if isinstance(leg, dict) else {}


def change(data: Json) -> Change:
    _refuse_unsupported(data)
    return Change(
        client_order_id=_client_order_id(data),
        qty=_number(data, "qty"),
        limit_price=_number(data, "limit_price"),
        stop_price=_number(data, "stop_price"),
        time_in_force=_word(data, "time_in_force", TimeInForce) if data.get("time_in_force") else None,
        trail=_number(data, "trail"),
    )


def quote(name: str, data: Json) -> Quote:
    bid, ask = _number(data, "bid"), _number(data, "ask")
    if bid is None or ask is None or bid > ask:
        raise Unprocessable("bid and ask are required, and bid must not be above ask")
    return Quote(symbol(name), bid, ask, _number(data, "bid_size"), _number(data, "ask_size"))


def tick_count(data: Json) -> int:
    count = _number(data, "count") or Decimal(1)
    if count != count.to_integral_value() or count > 100_000:
        raise Unprocessable("count must be a whole number up to 100000")
    return int(count)


def faults(data: Json) -> Json:
    """Decimals back to plain numbers: a probability needs no exactness."""
    return {name: _plain(value) for name, value in data.items()}


def _plain(value: object) -> object:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() and abs(value) < LARGEST else float(value)


def order_query(query: Mapping[str, str]) -> OrderQuery:
    status = query.get("status") or "open"
    if status not in ("open", "closed", "all"):
        raise Unprocessable("status must be one of open, closed or all")
    return OrderQuery(
        status=status,
        limit=limit(query, "limit", default=50, largest=500),
        after=moment(query, "after"),
        until=moment(query, "until"),
        ascending=query.get("direction") == "asc",
        symbols=frozenset(filter(None, query.get("symbols", "").split(","))),
        side=query.get("side") or None,
    )


def is_nested(query: Mapping[str, str]) -> bool:
    return query.get("nested", "").lower() == "true"


def activity_query(query: Mapping[str, str]) -> tuple[Json, bool]:
    """Parameters of an executions query, and whether the oldest come first. The page token is an activity's id."""
    after, until = moment(query, "after"), moment(query, "until")
    values = {
        "after": stamp(after) if after else None,
        "until": stamp(until) if until else None,
        "execution_id": query.get("page_token", "").rpartition("::")[2] or None,
        "limit": limit(query, "page_size", default=100, largest=100),
    }
    return values, query.get("direction") == "asc"


def limit(query: Mapping[str, str], name: str, *, default: int, largest: int) -> int:
    text = query.get(name) or str(default)
    if len(text) > 9 or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= largest:
        raise Unprocessable(f"{name} must be between 1 and {largest}")
    return int(text)


def moment(query: Mapping[str, str], name: str) -> datetime | None:
    """A time with its offset, or a date, as UTC."""
    text = query.get(name)
    if not text:
        return None
    try:
        # A plus sign that was not escaped arrives as a space.
        parsed = datetime.fromisoformat(text.replace(" ", "+"))
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Unprocessable(f"{name} is not a time in RFC 3339 format") from None


def order_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise Unprocessable(f"order_id must be a valid uuid: {text}") from None


def is_symbol(text: str) -> bool:
    return SYMBOL.fullmatch(text) is not None


def _refuse_unsupported(data: Json) -> None:
    for name in (*PAIR, "legs"):
        if data.get(name) is not None:
            raise Unprocessable(f"{name} is not supported by the paper broker")
    if data.get("order_class") not in (None, "", "simple"):
        raise Unprocessable(f"order_class {data['order_class']} is not supported by the paper broker")


def symbol(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise Unprocessable("symbol is required")
    if not is_symbol(value):
        raise Unprocessable(f'asset "{value[:40]}" not found')
    return value


def symbols(query: Mapping[str, str]) -> list[str]:
    """Those that are named, each once; what is no symbol has no price and is left out, as at Alpaca."""
    named = list(dict.fromkeys(filter(is_symbol, query.get("symbols", "").split(","))))
    if not query.get("symbols"):
        raise BadRequest("symbols is required")
    if len(named) > MOST_SYMBOLS:
        raise BadRequest(f"symbols must be at most {MOST_SYMBOLS}")
    return named


def _word(data: Json, name: str, words: type[Word]) -> Word:
    try:
        return words(str(data.get(name)))
    except ValueError:
        raise Unprocessable(f"invalid {name}: must be one of {', '.join(words)}") from None


def _client_order_id(data: Json) -> str | None:
    value = data.get("client_order_id")
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_CLIENT_ORDER_ID:
        raise Unprocessable(f"client_order_id must be no more than {LONGEST_CLIENT_ORDER_ID} characters")
    if not value.isprintable():  # half a surrogate pair, for one, cannot be stored
        raise Unprocessable("client_order_id must be printable")
    return value


def _number(data: Json, name: str) -> Decimal | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        raise Unprocessable(f"{name} must be a number")
    if not SMALLEST <= value <= LARGEST:
        raise Unprocessable(f"{name} must be > 0 and at most {LARGEST:f}")
    if value != value.quantize(SMALLEST):
        raise Unprocessable(f"{name} must have at most 9 decimal places")
    return value
