"""What ccxt knows of its exchanges, as `exchanges.json`: `python -m tip_broker_ccxt.table > exchanges.json`."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import ccxt

from tip_broker_ccxt.exchanges import CREDENTIALS, RECOVERY

NEEDED = (
    "createOrder",
    "createLimitOrder",
    "cancelOrder",
    "fetchOrder",
    "fetchOpenOrders",
    "fetchBalance",
    "fetchTickers",
    "spot",
)
OURS = ("GTC", "IOC", "FOK")
OWN_ADAPTER = ("alpaca",)


SHOWN = ("clientOrderId", "client_order_id")
"""Under which exchanges show it, where they do not under what it was sent as."""
SAYS_LITTLE = {"data": [{"id": "1", "type": "spot"}]}
"""An answer to what some exchanges request before an order."""
OUR_ID = "0123456789abcdef0123456789abcdef"
MARKET: dict[str, Any] = {
    "id": "BTCUSDT", "symbol": "BTC/USDT", "base": "BTC", "quote": "USDT", "baseId": "BTC", "quoteId": "USDT",
    "type": "spot", "spot": True, "swap": False, "future": False, "option": False, "contract": False, "active": True,
    "precision": {"amount": "0.0001", "price": "0.01"}, "info": {},
    "limits": {"amount": {}, "price": {}, "cost": {}, "leverage": {}},
}  # fmt: skip


NEEDS_MORE = (ccxt.BaseError, AssertionError, AttributeError, KeyError)
"""Than a market and an order of which little is known: what such an exchange does is not known here."""


class Requested(Exception):
    """Instead of a request; with its parameters."""


def rows() -> Iterator[dict[str, Any]]:
    """Of the exchanges that have what an adapter needs."""
    for name in ccxt.exchanges:
        exchange = getattr(ccxt, name)()
        wanted = [part for part, required in exchange.requiredCredentials.items() if required]
        if name in RECOVERY or (name not in OWN_ADAPTER and _is_enough(exchange, wanted)):
            yield _row(exchange, wanted)


def _is_enough(exchange: Any, wanted: list[str]) -> bool:
    is_signed_with_key = "apiKey" in wanted and set(wanted) <= CREDENTIALS.keys()
    has_all_calls = all(exchange.has.get(call) is True for call in NEEDED)
    return is_signed_with_key and has_all_calls and lists_all_open_orders(exchange.id) and shows_our_id(exchange.id)


def lists_all_open_orders(name: str) -> bool:
    """Whether open orders can be listed without naming a symbol: ccxt says so only by what it does."""
    try:
        _offline(name).fetch_open_orders()
    except Requested:
        return True
    except NEEDS_MORE:
        return False
    return False


def shows_our_id(name: str) -> bool:
    """Whether an order carries our id to the exchange, and is shown with it."""
    exchange = _offline(name, wanted=OUR_ID)
    try:
        terms = {"clientOrderId": OUR_ID, "timeInForce": "GTC"}
        exchange.create_order("BTC/USDT", "limit", "buy", "1", "20", terms)
    except Requested as request:
        sent = [field for field, value in _fields(request.args[0]) if value == OUR_ID]
        return any(_parsed_id(exchange, field) == OUR_ID for field in (*sent, *SHOWN))
    except NEEDS_MORE:
        return False
    return False


def _parsed_id(exchange: Any, field: str) -> Any:
    try:
        return exchange.parse_order({field: OUR_ID}, exchange.market("BTC/USDT"))["clientOrderId"]
    except NEEDS_MORE:
        return None


def _fields(values: Any) -> Iterator[tuple[Any, Any]]:
    for field, value in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(value, (dict, list)):
            yield from _fields(value)
        else:
            yield field, value


def _offline(name: str, wanted: str | None = None) -> Any:
    """An exchange that knows one market, and requests nothing."""
    made = getattr(ccxt, name)(dict.fromkeys(CREDENTIALS, "any"))
    made.number = str
    made.options["warnOnFetchOpenOrdersWithoutSymbol"] = False
    market = made.safe_market_structure(MARKET)
    made.markets, made.markets_by_id = {"BTC/USDT": market}, {"BTCUSDT": [market]}
    made.currencies = made.currencies_by_id = {coin: {"id": coin, "code": coin} for coin in ("BTC", "USDT")}
    made.load_markets = lambda *_, **__: made.markets
    made.sign = partial(_sign, wanted)
    made.fetch = lambda *_, **__: SAYS_LITTLE
    return made


def _sign(
    wanted: str | None, _path: str, _api: Any = "public", method: str = "GET", params: Any = None, *_: Any
) -> Any:
    """Ends at the first request, or the first with the value that is wanted."""
    if wanted is None or any(value == wanted for _, value in _fields(params or {})):
        raise Requested(params or {})
    return {"url": "", "method": method, "body": None, "headers": None}


def _row(exchange: Any, wanted: list[str]) -> dict[str, Any]:
    spot = (exchange.features or {}).get("spot") or {}
    times = (spot.get("createOrder") or {}).get("timeInForce") or {}
    buys_by_price = exchange.options.get("createMarketBuyOrderRequiresPrice", False)
    return {
        "id": exchange.id,
        "title": exchange.name,
        "sandbox": bool(exchange.urls.get("test")),
        "credential": wanted,
        "market_orders": exchange.has.get("createMarketOrder") is True and not buys_by_price,
        "times_in_force": [time for time in OURS if time == "GTC" or times.get(time)],
        "calls_per_minute": int(60_000 / exchange.rateLimit) if exchange.rateLimit else None,
    }


def table() -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows()) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(table())
