"""What an exchange does with our requests, seen without one: ccxt prepares them, and says so nowhere else.

An exchange that needs more than a market of which little is known is as one that cannot: nobody knows what it does.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import ccxt

from tip_broker_ccxt.connection import OPTIONS
from tip_broker_ccxt.exchanges import CREDENTIALS
from tip_brokers.answers import MISREAD

SYMBOL, MARKET_ID = "BTC/USDT", "BTCUSDT"
OUR_ID, THEIR_ID = "0123456789abcdef0123456789abcdef", "740123456"
NUMBER = 70123456789
QUANTITY, PRICE = Decimal("1.2345"), Decimal("20.06")
ALIVE = ("NEW", "OPEN", "ACTIVE", "LIVE", "ACCEPTED", "WORKING", "PENDING", "PENDING_NEW", "PARTIAL_FILL",
         "PARTIAL_FILLED", "PARTIAL-FILLED", "PARTIALLY_FILLED", "PENDING_CANCEL", "PENDINGCANCEL", "CANCEL_SENT",
         "CANCEL_ALL_SENT", "CANCELING", "CANCELLING")  # fmt: skip
"""Words of exchanges for orders that may still be filled."""
SHOWN = ("clientOrderId", "client_order_id", "clientOrderID")
"""Under which exchanges show our id, where they do not under what it was sent as."""
SAYS_LITTLE = {"data": [{"id": "1", "type": "spot"}]}
"""An answer to what some exchanges request before an order."""
NEEDS_MORE = (ccxt.BaseError, AssertionError, *MISREAD)
STEPS = {
    ccxt.TICK_SIZE: ("0.0001", "0.01"),
    ccxt.DECIMAL_PLACES: (4, 2),
    ccxt.SIGNIFICANT_DIGITS: (8, 8),
}


Made = Callable[..., Any]
"""What makes an exchange `offline`, anew for each question."""


class Requested(Exception):
    """Instead of a request; with its parameters."""


class Anything(dict[str, Any]):
    """An order as an exchange may show it: it has every field."""

    def __missing__(self, _field: str) -> str:
        return "0"


def is_tradable(name: str, *, in_sandbox: bool = False) -> bool:
    """Whether an order is sent as it is meant, and can be recognized, read, listed and canceled afterwards."""
    made = partial(offline, name, in_sandbox=in_sandbox)
    try:
        return (
            sends_what_was_ordered(made)
            and carries_our_id(made)
            and lists_all_open_orders(made)
            and names_an_order(made, "fetch_order")
            and names_an_order(made, "cancel_order")
            and says_how_much_is_filled(made)
            and ends_nothing_that_lives(made)
            and loads_markets(made)
        )
    except NEEDS_MORE:
        return False


def sends_what_was_ordered(made: Made) -> bool:
    """Whether quantity and price of a limit order reach the exchange as they are, not rounded nor as money, at once.

    What requests something else before an order does not always send the same: it depends on the answer.
    """
    request = _request(partial(_order, OUR_ID), made())
    sent = list(_numbers(request))
    return sent.count(QUANTITY) == 1 and sent.count(PRICE) == 1 and QUANTITY * PRICE not in sent


def carries_our_id(made: Made) -> bool:
    """Whether our id goes to the exchange as its own field for it, and an order that is shown with it is recognized.

    A parameter that ccxt does not know goes as it is, which the exchange ignores: so a number must have become text.
    """
    fields = [field for field, value in _fields(_request(partial(_order, OUR_ID), made())) if value == OUR_ID]
    texts = [field for field, value in _fields(_request(partial(_order, NUMBER), made())) if value == str(NUMBER)]
    is_recognized = any(_parsed_id(made(), field) == OUR_ID for field in (*fields, *SHOWN))
    return bool(fields) and fields == texts and is_recognized


def lists_all_open_orders(made: Made) -> bool:
    """Whether open orders can be listed without naming a symbol."""
    request = _request(lambda exchange: exchange.fetch_open_orders(), made())
    return request is not None and all(value not in (SYMBOL, MARKET_ID) for _, value in _fields(request))


def names_an_order(made: Made, call: str) -> bool:
    """Whether this call is about one order, by the exchange's id and our symbol."""
    return _request(lambda exchange: getattr(exchange, call)(THEIR_ID, SYMBOL), made(THEIR_ID)) is not None


def says_how_much_is_filled(made: Made) -> bool:
    """Whether that is a field of the exchange's: otherwise ccxt counts trades, which may not be there."""
    exchange = made()
    exchange.safe_order = lambda order, *_: order
    return exchange.parse_order(Anything(), exchange.market(SYMBOL)).get("filled") is not None


def ends_nothing_that_lives(made: Made) -> bool:
    """Whether no word for an order that may still be filled is to ccxt one for an order that has ended."""
    exchange = made()
    words = {spelled for word in ALIVE for spelled in (word, word.lower(), word.capitalize())}
    return all(exchange.parse_order_status(word) in (None, "open", word) for word in words)


def loads_markets(made: Made) -> bool:
    """Whether it requests them, with the options that a connection has."""
    exchange = made()
    exchange.options = exchange.deep_extend(exchange.options, OPTIONS)
    return _request(lambda exchange: exchange.fetch_markets(), exchange) is not None


def is_same_house(name: str) -> bool:
    """Whether the sandbox is at the exchange's own domain: some have another company's."""
    exchange = getattr(ccxt, name)()
    there, here = (_domains(exchange.urls.get(kind), exchange.hostname) for kind in ("test", "api"))
    return bool(there) and there <= here


def _domains(urls: Any, own: str | None) -> set[str]:
    if isinstance(urls, dict):
        return {domain for part in urls.values() for domain in _domains(part, own)}
    host = urlsplit(str(urls).replace("{hostname}", own or "")).hostname
    return {".".join(host.split(".")[-2:])} if host else set()


def _order(our_id: str | int, exchange: Any) -> None:
    terms = {"clientOrderId": our_id, "timeInForce": "GTC"}
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


def offline(name: str, wanted: str | None = None, *, in_sandbox: bool = False) -> Any:
    """An exchange that knows one market. Its first request, or the first with what is wanted in it, is `Requested`."""
    made = getattr(ccxt, name)(dict.fromkeys(CREDENTIALS, "any"))
    if in_sandbox:
        made.set_sandbox_mode(True)
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
