"""ccxt's structures in our words. Amounts are text, because `number` is set so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tip_broker_ccxt.statuses import CANCELING
from tip_brokers.answers import parse_decimal, parse_price, parse_word, understood
from tip_brokers.protocol import Balance, NewOrder, Order, OrderStatus, Position, Quote

STATUSES = {
    "open": OrderStatus.WORKING,
    CANCELING: OrderStatus.PENDING_CANCEL,
    "closed": OrderStatus.FILLED,
    "canceled": OrderStatus.CANCELED,
    "expired": OrderStatus.EXPIRED,
    "rejected": OrderStatus.REJECTED,
}
QUOTE_CURRENCIES = ("USDT", "USDC", "USD", "EUR")
"""In which an account is valued: the first of which it holds most."""
LATEST = 10**14  # in the year 5138
_ZERO = Decimal(0)
_AT = "@"

Ours = Callable[[str | None], str]


def parts(broker_order_id: str) -> tuple[str, str]:
    """The exchange's id of an order, and its symbol, without which most exchanges do not find it."""
    order_id, _, symbol = broker_order_id.partition(_AT)
    return order_id, symbol


def is_ours(broker_order_id: str) -> bool:
    """Whether it was made here: then it names a symbol."""
    return _AT in broker_order_id


def complete_id(order_id: str, symbol: str) -> str:
    """From what the exchange shows to people, which is its id alone."""
    return order_id if is_ours(order_id) else f"{order_id}{_AT}{symbol}"


def read_order(row: Any, ours: Ours) -> Order:
    with understood():
        amount, filled = parse_decimal(row["amount"]), _known(parse_decimal(row["filled"]))
        symbol = parse_word(row["symbol"])
        broker_order_id = f"{parse_word(row['id'])}{_AT}{symbol}"
        created = _moment(row.get("timestamp"))
        name = ours(row.get("clientOrderId"))
        return Order(
            client_order_id=parse_word(name or broker_order_id),
            broker_order_id=broker_order_id,
            status=_status(row, amount, filled),
            symbol=symbol,
            order_side=parse_word(row["side"]).upper(),
            kind="Limit" if row.get("type") == "limit" else "Market",
            quantity=amount,
            filled_quantity=filled,
            average_price=parse_price(row.get("average")) if filled else None,
            updated_at=_moment(row.get("lastUpdateTimestamp") or row.get("lastTradeTimestamp") or row.get("timestamp")),
            created_at=created,
            is_nameless=not name,
        )
    raise AssertionError


def read_created(row: Any, order: NewOrder, ours: Ours) -> Order:
    """Some exchanges answer with the new order's id alone: the rest is what was requested, and is read again soon."""
    now = int(1000 * datetime.now(UTC).timestamp())
    requested = {
        "symbol": order.symbol,
        "side": order.order_side.lower(),
        "type": "limit" if order.limit_price is not None else "market",
        "amount": str(order.quantity),
        "filled": "0",
        "status": "open",
        "timestamp": now,
    }
    with understood():
        stated = {name: value for name, value in row.items() if value is not None}
        shown = read_order({**requested, **stated}, ours)
    if stated.get("clientOrderId"):
        return shown
    return replace(shown, client_order_id=order.client_order_id, is_nameless=False)


def _status(row: Any, amount: Decimal | None, filled: Decimal) -> OrderStatus:
    """What is closed and not filled whole has ended otherwise: the rest was canceled. An unknown word ends nothing."""
    status = STATUSES.get(row.get("status"), OrderStatus.WORKING)
    if status is OrderStatus.FILLED and filled < _known(amount):
        return OrderStatus.CANCELED
    return status


def _known(figure: Decimal | None) -> Decimal:
    """An order that does not say how much of it is filled is not one of which nothing is."""
    if figure is None:
        raise ValueError
    return figure


def _moment(milliseconds: Any) -> datetime:
    """Some exchanges do not say when."""
    if milliseconds is None:
        return datetime.now(UTC)
    if not 0 < int(milliseconds) < LATEST:
        raise ValueError
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def read_positions(balance: Any) -> list[Position]:
    """What is held of each coin, as a position in its pair with the account's own currency."""
    with understood():
        totals = _totals(balance)
        currency = _currency(totals)
        held = {coin: total for coin, total in totals.items() if coin != currency and total}
        return [Position(f"{coin}/{currency}", total, None, None, None, None) for coin, total in held.items()]
    raise AssertionError


def read_balance(balance: Any) -> Balance:
    """Without the value of coins, which has no price here."""
    with understood():
        totals = _totals(balance)
        currency = _currency(totals)
        free = parse_decimal((balance.get("free") or {}).get(currency)) or _ZERO
        cash = totals.get(currency, _ZERO)
        return Balance(currency, cash, cash, free)
    raise AssertionError


def _totals(balance: Any) -> Mapping[str, Decimal]:
    return {parse_word(coin): parse_decimal(total) or _ZERO for coin, total in (balance.get("total") or {}).items()}


def _currency(totals: Mapping[str, Decimal]) -> str:
    return max(QUOTE_CURRENCIES, key=lambda name: totals.get(name, _ZERO))


def read_quotes(tickers: Any, symbols: Sequence[str]) -> list[Quote]:
    with understood():
        return [_quote(symbol, tickers[symbol]) for symbol in symbols if symbol in tickers]
    raise AssertionError


def _quote(symbol: str, ticker: Any) -> Quote:
    moment = _moment(ticker.get("timestamp") or None)
    bid, ask, last = (parse_price(ticker.get(name)) for name in ("bid", "ask", "last"))
    return Quote(symbol, bid, ask, last, moment, moment)
