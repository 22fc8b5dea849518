"""What an exchange does with our requests, seen without one: ccxt prepares them, and says so nowhere else.

An exchange that needs more than a market of which little is known is as one that cannot: nobody knows what it does.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import CREDENTIALS

SYMBOL, MARKET_ID = "BTC/USDT", "BTCUSDT"
OUR_ID, THEIR_ID = "0123456789abcdef0123456789abcdef", "740123456"
QUANTITY, PRICE = Decimal("1.2345"), Decimal("20.06")
SHOWN = ("clientOrderId", "client_order_id")
"""Under which exchanges show our id, where they do not under what it was sent as."""
SAYS_LITTLE = {"data": [{"id": "1", "type": "spot"}]}
"""An answer to what some exchanges request before an order."""
NEEDS_MORE = (ccxt.BaseError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
STEPS = {
    ccxt.TICK_SIZE: ("0.0001", "0.01"),
    ccxt.DECIMAL_PLACES: (4, 2),
    ccxt.SIGNIFICANT_DIGITS: (8, 8),
}


class Requested(Exception):
    """Instead of a request; with its parameters."""


def is_tradable(name: str) -> bool:
    """Whether an order is sent as it is meant, and can be recognized, read, listed and canceled afterwards."""
    return (
        sends_what_was_ordered(name)
        and shows_our_id(name)
        and lists_all_open_orders(name)
        and names_an_order(name, "fetch_order")
        and names_an_order(name, "cancel_order")
    )


def sends_what_was_ordered(name: str) -> bool:
    """Whether quantity and price of a limit order reach the exchange as they are: not rounded, nor as money."""
    sent = list(_numbers(_request(_ordered, offline(name, OUR_ID))))
    return sent.count(QUANTITY) == 1 and sent.count(PRICE) == 1 and QUANTITY * PRICE not in sent


def shows_our_id(name: str) -> bool:
    """Whether an order carries our id to the exchange, and is shown with it."""
    exchange = offline(name, OUR_ID)
    sent = [field for field, value in _fields(_request(_ordered, exchange)) if value == OUR_ID]
    return bool(sent) and any(_parsed_id(exchange, field) == OUR_ID for field in (*sent, *SHOWN))


def lists_all_open_orders(name: str) -> bool:
    """Whether open orders can be listed without naming a symbol."""
    request = _request(lambda exchange: exchange.fetch_open_orders(), offline(name))
    return request is not None and all(value not in (SYMBOL, MARKET_ID) for _, value in _fields(request))


def names_an_order(name: str, call: str) -> bool:
    """Whether this call is about one order, by the exchange's id and our symbol."""
    request = _request(lambda exchange: getattr(exchange, call)(THEIR_ID, SYMBOL), offline(name, THEIR_ID))
    return request is not None


def _ordered(exchange: Any) -> None:
    terms = {"clientOrderId": OUR_ID, "timeInForce": "GTC"}
    exchange.create_order(SYMBOL, "limit", "buy", str(QUANTITY), str(PRICE), terms)


def _request(call: Callable[[Any], object], exchange: Any) -> Any:
    """What the call would send, or None if ccxt cannot prepare it."""
    try:
        call(exchange)
    except Requested as request:
        return request.args[0]
    except NEEDS_MORE:
        return None
    return None


def _parsed_id(exchange: Any, field: str) -> Any:
    try:
        return exchange.parse_order({field: OUR_ID}, exchange.market(SYMBOL))["clientOrderId"]
    except NEEDS_MORE:
        return None


def _fields(values: Any) -> Iterator[tuple[Any, Any]]:
    for field, value in values.items() if isinstance(values, dict) else enumerate(values or ()):
        if isinstance(value, (dict, list)):
            yield from _fields(value)
        else:
            yield field, value


def _numbers(values: Any) -> Iterator[Decimal]:
    for _, value in _fields(values):
        try:
            yield Decimal(str(value))
        except InvalidOperation:
            continue


def offline(name: str, wanted: str | None = None) -> Any:
    """An exchange that knows one market. Its first request, or the first with what is wanted in it, is `Requested`."""
    made = getattr(ccxt, name)(dict.fromkeys(CREDENTIALS, "any"))
    made.number = str
    made.options["warnOnFetchOpenOrdersWithoutSymbol"] = False
    market = made.safe_market_structure(_market(made))
    made.markets, made.markets_by_id = {SYMBOL: market}, {MARKET_ID: [market]}
    made.currencies = made.currencies_by_id = {coin: {"id": coin, "code": coin} for coin in ("BTC", "USDT")}
    made.load_markets = lambda *_, **__: made.markets
    made.sign = partial(_sign, wanted)
    made.fetch = lambda *_, **__: SAYS_LITTLE
    return made


def _market(exchange: Any) -> dict[str, Any]:
    amount, price = STEPS[exchange.precisionMode]
    return {
        "id": MARKET_ID, "symbol": SYMBOL, "base": "BTC", "quote": "USDT", "baseId": "BTC", "quoteId": "USDT",
        "type": "spot", "spot": True, "swap": False, "future": False, "option": False, "contract": False,
        "active": True, "precision": {"amount": amount, "price": price}, "info": {},
        "limits": {"amount": {}, "price": {}, "cost": {}, "leverage": {}},
    }  # fmt: skip


def _sign(
    wanted: str | None, _path: str, _api: Any = "public", method: str = "GET", params: Any = None, *_: Any
) -> Any:
    if wanted is None or any(str(value) == wanted for _, value in _fields(params)):
        raise Requested(params or {})
    return {"url": "", "method": method, "body": None, "headers": None}
