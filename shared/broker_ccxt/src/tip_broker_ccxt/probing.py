"""What an exchange does with our requests, seen without one: ccxt prepares them, and says so nowhere else.

An exchange that needs more than a market of which little is known is as one that cannot: nobody knows what it does.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import ccxt

from tip_broker_ccxt.connection import make_exchange
from tip_broker_ccxt.exchanges import CREDENTIALS
from tip_brokers.answers import MISREAD
from tip_brokers.checked_http import READING

DONE = ("FILLED", "Filled", "filled", "FULLY_FILLED", "FILLED_FULLY", "fulfilled", "CLOSED", "Closed", "DONE", "done",
        "COMPLETED", "completed", "executed", "deal", "SUCCESS", *map(str, range(10)))  # fmt: skip
"""Words of exchanges for orders that are filled."""
CANCELED = ("CANCELED", "Canceled", "canceled", "CANCELLED", "Cancelled", "cancelled", "CANCEL", "cancel",
            *map(str, range(10)))  # fmt: skip
"""The same of orders that were canceled."""
SYMBOL, MARKET_ID = "BTC/USDT", "BTCUSDT"
OUR_ID, THEIR_ID, NUMBER = "0123456789abcdef0123456789abcdef", "740123456", 70123456789
QUANTITY, PRICE = Decimal("1.2345"), Decimal("20.06")
SHOWN = ("clientOrderId", "client_order_id", "clientOrderID")
"""Under which exchanges show our id, where they do not under what it was sent as."""
SAYS_LITTLE = {"data": [{"id": "1", "type": "spot"}], "result": {"uta": 1}}
"""An answer to what some exchanges request before an order: which of the caller's accounts, and of which kind."""
ABOUT_ERRORS = re.compile("code|err|msg", re.IGNORECASE)
NEEDS_MORE = (ccxt.BaseError, AssertionError, *MISREAD)
STEPS = {
    ccxt.TICK_SIZE: ("0.0001", "0.01"),
    ccxt.DECIMAL_PLACES: (4, 2),
    ccxt.SIGNIFICANT_DIGITS: (8, 8),
}

Made = Callable[..., Any]
"""What makes an exchange `offline`, anew for each question."""


class Word(str):
    """A word of an exchange. What ccxt does not know it repeats, and that is a `Word` still."""

    def lower(self) -> str:
        return self


class Requested(Exception):
    """Instead of a request; with its parameters and its method."""


class Anything(dict[str, Any]):
    """An order as an exchange may show it: every field has a number of its own, but there is nothing about an error.

    The numbers are drawn by the fields' names: one that ccxt has calculated of them is none of them.
    """

    def __missing__(self, field: str) -> str:
        if ABOUT_ERRORS.search(str(field)):
            raise KeyError(field)
        self[field] = str(int(hashlib.sha256(str(field).encode()).hexdigest()[:12], 16))
        return str(self[field])

    def get(self, field: str, _default: Any = None) -> Any:
        return None if ABOUT_ERRORS.search(str(field)) else self[field]


def prepares_an_order(made: Made) -> bool:
    return _order_request(made, None) is not None


def sends_what_was_ordered(made: Made) -> bool:
    """Whether quantity and price of a limit order reach the exchange as they are: neither rounded, nor as money."""
    sent = list(_numbers(_order_request(made, None)))
    return sent.count(QUANTITY) == 1 and sent.count(PRICE) == 1 and QUANTITY * PRICE not in sent


def orders_by_no_reading_method(made: Made) -> bool:
    """Whether a GET makes no order: then one that fails before an order was sent has changed nothing."""
    request = _requested(partial(_order, None), made(str(QUANTITY)))
    return request is not None and request[1] not in READING


def carries_our_id(made: Made) -> bool:
    """Whether our id goes to the exchange as its own field for it, and an order that is shown with it is recognized.

    A parameter that ccxt does not know goes as it is, which the exchange ignores: so a number must have become text.
    """
    fields = [field for field, value in _fields(_order_request(made, OUR_ID)) if value == OUR_ID]
    texts = [field for field, value in _fields(_order_request(made, NUMBER)) if value == str(NUMBER)]
    is_recognized = any(_parsed_id(made(), field) == OUR_ID for field in (*fields, *SHOWN))
    return bool(fields) and fields == texts and is_recognized


def lists_all_open_orders(made: Made) -> bool:
    """Whether open orders can be listed without naming a symbol."""
    request = _request(lambda exchange: exchange.fetch_open_orders(), made())
    return request is not None and all(value not in (SYMBOL, MARKET_ID) for _, value in _fields(request))


def reads_an_order(made: Made) -> bool:
    """Whether one order can be read by the exchange's id and our symbol."""
    return _request(lambda exchange: exchange.fetch_order(THEIR_ID, SYMBOL), made(THEIR_ID)) is not None


def cancels_an_order(made: Made) -> bool:
    return _request(lambda exchange: exchange.cancel_order(THEIR_ID, SYMBOL), made(THEIR_ID)) is not None


def says_how_much_is_filled(made: Made) -> bool:
    """Whether that is a field of the exchange's: otherwise ccxt counts trades, which may not be there, or what remains,
    which may be nothing of an order that was canceled."""
    return _is_own_field(made, "filled")


def says_for_how_much_it_is(made: Made) -> bool:
    return _is_own_field(made, "amount")


def _is_own_field(made: Made, figure: str) -> bool:
    exchange, shown = made(), Anything(order_configuration={"limit_limit_gtc": Anything()})
    exchange.safe_order = lambda order, *_: order
    found = exchange.parse_order(shown, exchange.market(SYMBOL)).get(figure)
    return any(found == value for _, value in _fields(shown))


def has_a_word_for_filled(made: Made) -> bool:
    """Or a number. What ccxt does not know it repeats: so without one no order would ever end."""
    exchange = made()
    return any(exchange.parse_order_status(word) == "closed" for word in DONE)


def has_a_word_for_canceled(made: Made) -> bool:
    """By ccxt's own reading, without what is corrected here: only that knows the words of one exchange."""
    exchange = made()
    read = (type(exchange).parse_order_status(exchange, Word(word)) for word in CANCELED)
    return any(status == "canceled" and not isinstance(status, Word) for status in read)


def sends_no_order_in_doubt(made: Made) -> bool:
    """Whether an order is not sent if what is read before it, as which account it is for, fails or says nothing."""
    return not any(_sends_after(made, reading) for reading in (_fail, _say_nothing))


def _sends_after(made: Made, read: Callable[[], Any]) -> bool:
    exchange, readings = made(str(QUANTITY)), []

    def fetch(*_: Any, **__: Any) -> Any:
        readings.append(1)
        return read()

    exchange.fetch = fetch
    is_sent = _request(partial(_order, None), exchange) is not None
    return is_sent and bool(readings)


def _fail() -> Any:
    raise ccxt.NetworkError


def _say_nothing() -> Any:
    return {}


def loads_markets(made: Made) -> bool:
    """Whether it requests them, with the options that a connection has."""
    return _request(lambda exchange: exchange.fetch_markets(), made()) is not None


NEEDED: Mapping[str, Callable[[Made], bool]] = {
    "an order needs more than a symbol, a quantity and a price, or has them in another form": prepares_an_order,
    "the quantity or the price of an order is sent as another number": sends_what_was_ordered,
    "a GET makes an order": orders_by_no_reading_method,
    "an order is sent although what is read before it failed": sends_no_order_in_doubt,
    "open orders are listed by symbol only": lists_all_open_orders,
    "an order cannot be read by its id": reads_an_order,
    "an order cannot be canceled by its id": cancels_an_order,
    "how much of an order is filled is not stated by the exchange": says_how_much_is_filled,
    "for how much an order is, is not stated by the exchange": says_for_how_much_it_is,
    "no word of the exchange is known by which an order has ended": has_a_word_for_filled,
    "no word of the exchange is known by which an order was canceled": has_a_word_for_canceled,
    "what it trades cannot be read without more settings": loads_markets,
}
"""What an order needs to be sent as it is meant, and to be followed; and what is said of an exchange without it."""


def lacking(name: str, *, in_sandbox: bool = False) -> str | None:
    """The first thing that is needed and is not there."""
    made = partial(offline, name, in_sandbox=in_sandbox)
    return next((lack for lack, is_there in NEEDED.items() if not _is_seen(is_there, made)), None)


def takes_our_id(name: str) -> bool:
    return _is_seen(carries_our_id, partial(offline, name))


def _is_seen(probe: Callable[[Made], bool], made: Made) -> bool:
    try:
        return probe(made)
    except NEEDS_MORE:
        return False


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


def _order(our_id: str | int | None, exchange: Any) -> None:
    terms = {"timeInForce": "GTC"} | ({"clientOrderId": our_id} if our_id else {})
    exchange.create_order(SYMBOL, "limit", "buy", str(QUANTITY), str(PRICE), terms)


def _order_request(made: Made, our_id: str | int | None) -> Any:
    return _request(partial(_order, our_id), made(str(QUANTITY)))


def _request(call: Callable[[Any], object], exchange: Any) -> Any:
    """What the call would send, or None if ccxt cannot prepare it."""
    request = _requested(call, exchange)
    return request[0] if request else None


def _requested(call: Callable[[Any], object], exchange: Any) -> tuple[Any, str] | None:
    try:
        call(exchange)
    except Requested as request:
        return request.args[0], request.args[1]
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
    made = make_exchange(name, dict.fromkeys(CREDENTIALS, "any"))
    if in_sandbox:
        made.set_sandbox_mode(True)
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
        raise Requested(params or {}, method)
    return {"url": "", "method": method, "body": None, "headers": None}
